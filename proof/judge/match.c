/* match.c: an identity as a guard compares it.
 *
 * By hand for ASCII and Latin-1 (U+0000 to U+00FF), and for the marks that make a letter of Latin-1
 * out of an ASCII one. White space is known in full. Whatever else a rule would have to fold or to
 * compose is "cloudy": the judge then accepts either answer. */
#include "judge/model.h"

#define POINTS_MAX (2 * HF_IDENTITY_MAX)

static bool is_mark(uint32_t c)
{
    return c >= 0x300 && c <= 0x36f;
}

static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* ---- UTF-8 ---- */

/* One code point, or 0 bytes if it is malformed. */
static size_t decode(const unsigned char *p, size_t left, uint32_t *c)
{
    size_t size = p[0] < 0x80   ? 1
                  : p[0] < 0xc2 ? 0
                  : p[0] < 0xe0 ? 2
                  : p[0] < 0xf0 ? 3
                  : p[0] < 0xf5 ? 4
                                : 0;
    if (size == 0 || size > left)
        return 0;
    *c = size == 1 ? p[0] : p[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (*c < least[size] || (*c >= 0xd800 && *c < 0xe000) || *c > 0x10ffff)
        return 0;
    return size;
}

static size_t encode(uint32_t c, unsigned char *out)
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)(0xf00 >> size | c);
    return size;
}

bool judge_name_valid(struct hf_bytes name)
{
    if (name.size < 1 || name.size > HF_NAME_MAX)
        return false;
    const unsigned char *p = name.data;
    for (size_t at = 0, size; at < name.size; at += size) {
        uint32_t c;
        size = p[at] >= 1 && p[at] < 0x80 ? 1 : decode(p + at, name.size - at, &c);
        if (size == 0 || p[at] == 0)
            return false;
    }
    return true;
}

/* ---- The steps, over code points ---- */

struct text {
    uint32_t c[POINTS_MAX];
    size_t count;
    bool cloudy;
};

static void trim(struct text *t)
{
    size_t from = 0;
    while (from < t->count && is_space(t->c[from]))
        from++;
    while (t->count > from && is_space(t->c[t->count - 1]))
        t->count--;
    t->count -= from;
    memmove(t->c, t->c + from, t->count * sizeof *t->c);
}

/* The letter of Latin-1 that is `letter` with `mark`, or 0. */
static uint32_t composed(uint32_t letter, uint32_t mark)
{
    static const struct {
        uint32_t mark;
        const char *letters;
        const unsigned char *made;
    } table[] = {
        { 0x300, "AEIOUaeiou", (const unsigned char *)"\xc0\xc8\xcc\xd2\xd9\xe0\xe8\xec\xf2\xf9" },
        { 0x301, "AEIOUYaeiouy",
          (const unsigned char *)"\xc1\xc9\xcd\xd3\xda\xdd\xe1\xe9\xed\xf3\xfa\xfd" },
        { 0x302, "AEIOUaeiou", (const unsigned char *)"\xc2\xca\xce\xd4\xdb\xe2\xea\xee\xf4\xfb" },
        { 0x303, "ANOano", (const unsigned char *)"\xc3\xd1\xd5\xe3\xf1\xf5" },
        { 0x308, "AEIOUaeiouy",
          (const unsigned char *)"\xc4\xcb\xcf\xd6\xdc\xe4\xeb\xef\xf6\xfc\xff" },
        { 0x30a, "Aa", (const unsigned char *)"\xc5\xe5" },
        { 0x327, "Cc", (const unsigned char *)"\xc7\xe7" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *at = table[i].mark == mark && letter < 0x80 && letter
                             ? strchr(table[i].letters, (int)letter)
                             : NULL;
        if (at)
            return table[i].made[at - table[i].letters];
    }
    return 0;
}

/* NFC, as far as it is known. */
static void compose(struct text *t)
{
    size_t to = 0;
    for (size_t i = 0; i < t->count; i++) {
        uint32_t c = t->c[i];
        if (c == 0x2000 || c == 0x2001) /* two spaces that Unicode has twice */
            c += 2;
        if (is_mark(c) && to > 0 && (i + 1 == t->count || !is_mark(t->c[i + 1]))) {
            uint32_t made = composed(t->c[to - 1], c);
            if (made) {
                t->c[to - 1] = made;
                continue;
            }
        }
        t->cloudy = t->cloudy || (c > 0xff && !is_space(c));
        t->c[to++] = c;
    }
    t->count = to;
}

/* Upper to lower: case folding, and the letters that it composes again. */
static void fold(struct text *t)
{
    struct text out;
    out.count = 0;
    out.cloudy = t->cloudy;
    for (size_t i = 0; i < t->count; i++) {
        uint32_t c = t->c[i];
        if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7))
            c += 0x20;
        else if (c == 0xb5)
            c = 0x3bc;
        else if (c == 0xdf)
            out.c[out.count++] = c = 's';
        out.c[out.count++] = c;
    }
    memcpy(t->c, out.c, out.count * sizeof *t->c);
    t->count = out.count;
    t->cloudy = out.cloudy;
    /* The micro sign becomes a Greek letter, which is known to stay as it is. */
    for (size_t i = 0; i < t->count; i++)
        if (t->c[i] == 0x3bc && (i + 1 == t->count || !is_mark(t->c[i + 1])))
            t->c[i] = 0xb5;
    compose(t);
    for (size_t i = 0; i < t->count; i++)
        if (t->c[i] == 0xb5)
            t->c[i] = 0x3bc;
}

static void normalize(struct text *t)
{
    compose(t);
    size_t to = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!is_space(t->c[i]))
            t->c[to++] = t->c[i];
        else if (to == 0 || t->c[to - 1] != ' ')
            t->c[to++] = ' ';
    }
    t->count = to;
}

static bool is_text(struct text *t, struct hf_bytes identity)
{
    const unsigned char *p = identity.data;
    t->count = 0;
    t->cloudy = false;
    for (size_t at = 0, size; at < identity.size; at += size) {
        size = decode(p + at, identity.size - at, &t->c[t->count]);
        if (size == 0)
            return false;
        t->count++;
    }
    return true;
}

enum judge_form judge_match(const struct hf_guard *guard, struct hf_bytes identity,
                            unsigned char out[JUDGE_FORM_MAX], size_t *size)
{
    struct text t;
    if (identity.size < 1 || identity.size > HF_IDENTITY_MAX)
        return JUDGE_FORM_INVALID;
    memcpy(out, identity.data, identity.size);
    *size = identity.size;
    bool hashed = false, plain = true;
    for (uint32_t i = 0; i < guard->match_count; i++) {
        hashed = hashed || guard->match[i] == HF_MATCH_HASH;
        plain = plain && (guard->match[i] == HF_MATCH_HASH || guard->match[i] == HF_MATCH_EXACT);
    }
    if (!plain) {
        if (!is_text(&t, identity))
            return JUDGE_FORM_INVALID;
        for (uint32_t i = 0; i < guard->match_count; i++) {
            if (guard->match[i] == HF_MATCH_TRIM)
                trim(&t);
            else if (guard->match[i] == HF_MATCH_CASEFOLD)
                fold(&t);
            else if (guard->match[i] == HF_MATCH_NORMALIZE)
                normalize(&t);
        }
        if (t.cloudy)
            return JUDGE_FORM_CLOUDY;
        *size = 0;
        for (size_t i = 0; i < t.count; i++)
            *size += encode(t.c[i], out + *size);
    }
    if (*size == 0 || (!hashed && *size > HF_IDENTITY_MAX))
        return JUDGE_FORM_INVALID;
    if (hashed) {
        uint8_t digest[HF_DIGEST_SIZE];
        judge_sha256(out, *size, digest);
        memcpy(out, digest, sizeof digest);
        *size = sizeof digest;
    }
    return JUDGE_FORM_KNOWN;
}

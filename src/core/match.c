#include "core/match.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"

#include <utf8proc.h>

bool hf_match_valid(const enum hf_match *match, uint32_t count)
{
    unsigned had = 0;
    if (count > HF_MATCH_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        unsigned step = (unsigned)match[i];
        if (step < HF_MATCH_EXACT || step > HF_MATCH_HASH || (had >> step & 1))
            return false;
        if (step == HF_MATCH_HASH && i + 1 < count)
            return false;
        had |= 1U << step;
    }
    return true;
}

/* Scratch for a step. The plan always has enough for an identity and its forms. */
static void *room(struct hf_plan *plan, size_t size)
{
    unsigned char *at = hf_plan_room(plan, size);
    HF_ASSERT(at);
    return at;
}

/* Unicode's property White_Space. */
static bool is_space(int32_t c)
{
    static const struct {
        int32_t from, to;
    } spaces[] = {
        { 0x0009, 0x000d }, { 0x0020, 0x0020 }, { 0x0085, 0x0085 }, { 0x00a0, 0x00a0 },
        { 0x1680, 0x1680 }, { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f },
        { 0x205f, 0x205f }, { 0x3000, 0x3000 },
    };
    size_t i = 0;
    while (i + 1 < sizeof spaces / sizeof *spaces && c > spaces[i].to)
        i++;
    return c >= spaces[i].from && c <= spaces[i].to;
}

/* The code point at the front of `text`, which is valid UTF-8 and not empty; its size in bytes. */
static size_t first_char(struct hf_bytes text, int32_t *c)
{
    utf8proc_ssize_t n = utf8proc_iterate(text.data, (utf8proc_ssize_t)text.size, c);
    HF_ASSERT(n > 0);
    return (size_t)n;
}

/* The code point at the end of `text`, and its size: back over the continuation bytes to its
 * first. */
static size_t last_char(struct hf_bytes text, int32_t *c)
{
    const unsigned char *p = text.data;
    size_t n = 1;
    while ((p[text.size - n] & 0xc0) == 0x80)
        n++;
    return first_char(hf_mem(p + text.size - n, n), c);
}

static struct hf_bytes step_trim(struct hf_bytes text)
{
    int32_t c;
    while (text.size > 0) {
        size_t n = first_char(text, &c);
        if (!is_space(c))
            break;
        text = hf_mem((const unsigned char *)text.data + n, text.size - n);
    }
    while (text.size > 0) {
        size_t n = last_char(text, &c);
        if (!is_space(c))
            break;
        text.size -= n;
    }
    return text;
}

static bool is_ascii(struct hf_bytes text)
{
    const unsigned char *p = text.data;
    unsigned char all = 0;
    for (size_t i = 0; i < text.size; i++)
        all |= p[i];
    return all < 0x80;
}

static unsigned class_of(int32_t c)
{
    return (unsigned)utf8proc_get_property(c)->combining_class;
}

/* Unicode's canonical ordering: marks after a letter are sorted by combining class, and keep their
 * order within a class. utf8proc_decompose swaps neighbours, which takes milliseconds for an
 * identity of marks only, and a client can send many of these. This inserts each mark at its
 * place. */
static void put_in_order(int32_t *points, size_t count)
{
    size_t run = 0; /* where the marks began */
    for (size_t i = 0; i < count; i++) {
        unsigned class = class_of(points[i]);
        if (class == 0)
            run = i + 1;
        if (class == 0 || i == run || class_of(points[i - 1]) <= class)
            continue;
        size_t lo = run, hi = i - 1; /* the first mark of a higher class is in this range */
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (class_of(points[mid]) <= class)
                lo = mid + 1;
            else
                hi = mid;
        }
        int32_t mark = points[i];
        memmove(points + lo + 1, points + lo, (i - lo) * sizeof *points);
        points[lo] = mark;
    }
}

/* Decompose each character. Returns the number of code points. */
static size_t decompose(struct hf_bytes text, utf8proc_option_t options, int32_t *points,
                        size_t count_max)
{
    size_t count = 0;
    int boundary = UTF8PROC_BOUNDCLASS_START;
    while (text.size > 0) {
        int32_t c;
        size_t n = first_char(text, &c);
        utf8proc_ssize_t more = utf8proc_decompose_char(
            c, points + count, (utf8proc_ssize_t)(count_max - count), options, &boundary);
        HF_ASSERT(more >= 0 && (size_t)more <= count_max - count);
        count += (size_t)more;
        text = hf_mem((const unsigned char *)text.data + n, text.size - n);
    }
    return count;
}

/* `text` after decomposition, ordering and, with UTF8PROC_COMPOSE, composition, in scratch. Each
 * byte gives at most four code points, and UTF-8 written over the code points needs one byte more
 * than they do. */
static struct hf_bytes transform(struct hf_bytes text, int how, struct hf_plan *plan)
{
    size_t count_max = 4 * text.size;
    int32_t *points = room(plan, count_max * sizeof *points + 1);
    utf8proc_option_t options = (utf8proc_option_t)how;
    size_t count = decompose(text, options, points, count_max);
    put_in_order(points, count);
    utf8proc_ssize_t size = utf8proc_reencode(points, (utf8proc_ssize_t)count, options);
    HF_ASSERT(size >= 0);
    return hf_mem(points, (size_t)size);
}

static struct hf_bytes step_casefold(struct hf_bytes text, struct hf_plan *plan)
{
    if (!is_ascii(text)) {
        /* Decompose first, as Unicode's canonical caseless matching (D145) requires: folding turns
         * the iota subscript into a letter, and then the marks after it could not be sorted. */
        text = transform(text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, plan);
        return transform(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD, plan);
    }
    const unsigned char *p = text.data;
    unsigned char *out = room(plan, text.size);
    for (size_t i = 0; i < text.size; i++)
        out[i] = p[i] >= 'A' && p[i] <= 'Z' ? (unsigned char)(p[i] - 'A' + 'a') : p[i];
    return hf_mem(out, text.size);
}

/* Each run of white space becomes one U+0020. Runs at the ends too: trim removes them. */
static struct hf_bytes collapse(struct hf_bytes text, struct hf_plan *plan)
{
    unsigned char *out = room(plan, text.size);
    size_t used = 0;
    bool in_run = false;
    while (text.size > 0) {
        int32_t c;
        size_t n = first_char(text, &c);
        bool space = is_space(c);
        if (!space) {
            memcpy(out + used, text.data, n);
            used += n;
        } else if (!in_run) {
            out[used++] = ' ';
        }
        in_run = space;
        text = hf_mem((const unsigned char *)text.data + n, text.size - n);
    }
    return hf_mem(out, used);
}

static struct hf_bytes step_normalize(struct hf_bytes text, struct hf_plan *plan)
{
    if (!is_ascii(text))
        text = transform(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE, plan);
    return collapse(text, plan);
}

static struct hf_bytes step_hash(struct hf_bytes text, struct hf_plan *plan)
{
    unsigned char *out = room(plan, HF_DIGEST_SIZE);
    hf_sha256_of(text.data, text.size, out);
    return hf_mem(out, HF_DIGEST_SIZE);
}

static struct hf_bytes step_apply(enum hf_match step, struct hf_bytes text, struct hf_plan *plan)
{
    switch (step) {
    case HF_MATCH_TRIM: return step_trim(text);
    case HF_MATCH_CASEFOLD: return step_casefold(text, plan);
    case HF_MATCH_NORMALIZE: return step_normalize(text, plan);
    case HF_MATCH_HASH: return step_hash(text, plan);
    default: return text; /* HF_MATCH_EXACT: no guard has an unknown step */
    }
}

static bool needs_text(enum hf_match step)
{
    return step != HF_MATCH_EXACT && step != HF_MATCH_HASH;
}

enum hf_status hf_match_apply(const struct hf_guard *guard, struct hf_bytes identity,
                              struct hf_plan *plan, struct hf_bytes *out)
{
    if (identity.size == 0 || identity.size > HF_IDENTITY_MAX)
        return HF_INVALID_REQUEST;
    for (uint32_t i = 0; i < guard->match_count; i++) {
        if (needs_text(guard->match[i]) && !hf_utf8_valid(identity))
            return HF_INVALID_REQUEST;
        identity = step_apply(guard->match[i], identity, plan);
        if (identity.size == 0)
            return HF_INVALID_REQUEST;
    }
    *out = identity;
    return identity.size > HF_IDENTITY_MAX ? HF_INVALID_REQUEST : HF_OK;
}

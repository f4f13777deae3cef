/* The JSON reader beside a second one, over random texts and what becomes of them when bytes are
 * changed.
 *
 * The second one is written to be plain and not fast, works on code points instead of bytes, and
 * shares nothing with the first: where the two disagree, one of them is wrong. */
#include "base/bytes.h"
#include "support/test.h"
#include "json/canonical.h"

/* ---- The second opinion ---- */

enum { POINTS_MAX = 8192, NAMES_MAX = 128, NAME_MAX_POINTS = 160 };

struct name {
    int points[NAME_MAX_POINTS];
    int count;
};

struct second {
    int in[POINTS_MAX]; /* the text as code points */
    int count, at;
    bool bad;
};

static bool utf8_points(const unsigned char *p, size_t size, struct second *s)
{
    s->count = 0;
    for (size_t i = 0; i < size; s->count++) {
        int first = p[i++], more = first < 0x80       ? 0
                                   : first >> 5 == 6  ? 1
                                   : first >> 4 == 14 ? 2
                                   : first >> 3 == 30 ? 3
                                                      : -1;
        static const int lowest[] = { 0, 0x80, 0x800, 0x10000 };
        if (more < 0 || s->count == POINTS_MAX)
            return false;
        int point = more == 0 ? first : first & (0x3f >> more);
        for (int k = 0; k < more; k++) {
            if (i == size || p[i] >> 6 != 2)
                return false;
            point = point * 64 + (p[i++] & 63);
        }
        if (point < lowest[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            return false;
        s->in[s->count] = point;
    }
    return true;
}

static int look(struct second *s)
{
    return s->at < s->count ? s->in[s->at] : -1;
}

static bool eat(struct second *s, const char *text)
{
    int at = s->at;
    for (; *text; text++, at++)
        if (at >= s->count || s->in[at] != *text)
            return false;
    s->at = at;
    return true;
}

static void blank(struct second *s)
{
    while (eat(s, " ") || eat(s, "\n") || eat(s, "\t") || eat(s, "\r"))
        ;
}

static int unit(struct second *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int c = look(s);
        const char *digits = "0123456789abcdefABCDEF",
                   *found = c > 0 && c < 128 ? strchr(digits, c) : NULL;
        if (!found) {
            s->bad = true;
            return 0;
        }
        int digit = (int)(found - digits);
        value = value * 16 + (digit < 16 ? digit : digit - 6);
        s->at++;
    }
    return value;
}

static int escape(struct second *s)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (eat(s, "u")) {
        int high = unit(s);
        if (s->bad || high < 0xd800 || high >= 0xe000)
            return high;
        if (high >= 0xdc00 || !eat(s, "\\u")) {
            s->bad = true;
            return 0;
        }
        int low = unit(s);
        s->bad = s->bad || low < 0xdc00 || low >= 0xe000;
        return 0x10000 + (high - 0xd800) * 1024 + (low - 0xdc00);
    }
    int c = look(s);
    const char *found = c > 0 && c < 128 ? strchr(letters, c) : NULL;
    s->at++;
    s->bad = !found;
    return found ? means[found - letters] : 0;
}

static void string(struct second *s, struct name *name)
{
    name->count = 0;
    s->bad = s->bad || !eat(s, "\"");
    while (!s->bad && !eat(s, "\"")) {
        int c = look(s);
        s->at++;
        if (c == '\\')
            c = escape(s);
        else if (c < 0x20)
            s->bad = true;
        if (name->count < NAME_MAX_POINTS)
            name->points[name->count++] = c;
    }
}

static bool digits(struct second *s)
{
    int from = s->at;
    while (look(s) >= '0' && look(s) <= '9')
        s->at++;
    return s->at > from;
}

static void number(struct second *s)
{
    (void)eat(s, "-");
    if (!eat(s, "0"))
        s->bad = !digits(s);
    if (!s->bad && eat(s, "."))
        s->bad = !digits(s);
    if (!s->bad && (eat(s, "e") || eat(s, "E"))) {
        (void)(eat(s, "+") || eat(s, "-"));
        s->bad = !digits(s);
    }
}

static void value(struct second *s, int depth);

static void object(struct second *s, int depth)
{
    struct name *names = calloc(NAMES_MAX, sizeof *names);
    int count = 0;
    blank(s);
    bool more = !eat(s, "}");
    while (more && !s->bad) {
        blank(s);
        assert_true(count < NAMES_MAX);
        string(s, &names[count]);
        assert_true(names[count].count < NAME_MAX_POINTS);
        for (int i = 0; i < count && !s->bad; i++)
            if (names[i].count == names[count].count &&
                memcmp(names[i].points, names[count].points,
                       sizeof(int) * (size_t)names[i].count) == 0)
                s->bad = true;
        count++;
        blank(s);
        s->bad = s->bad || !eat(s, ":");
        if (!s->bad)
            value(s, depth);
        blank(s);
        more = eat(s, ",");
        s->bad = s->bad || (!more && !eat(s, "}"));
    }
    free(names);
}

static void array(struct second *s, int depth)
{
    blank(s);
    bool more = !eat(s, "]");
    while (more && !s->bad) {
        value(s, depth);
        blank(s);
        more = eat(s, ",");
        s->bad = s->bad || (!more && !eat(s, "]"));
    }
}

static void value(struct second *s, int depth)
{
    struct name ignored;
    blank(s);
    if (look(s) == '{' || look(s) == '[') {
        s->bad = depth == HF_READER_DEPTH;
        if (!s->bad && eat(s, "{"))
            object(s, depth + 1);
        else if (!s->bad && eat(s, "["))
            array(s, depth + 1);
    } else if (look(s) == '"') {
        string(s, &ignored);
    } else if (!eat(s, "true") && !eat(s, "false") && !eat(s, "null")) {
        number(s);
    }
}

static bool second_takes(struct hf_bytes text)
{
    static struct second s;
    s.at = 0;
    s.bad = false;
    if (!utf8_points(text.data, text.size, &s))
        return false;
    value(&s, 0);
    if (!s.bad)
        blank(&s);
    return !s.bad && s.at == s.count;
}

/* ---- Random texts ---- */

static void space(struct hf_buffer *b, uint64_t *seed, bool spaces)
{
    while (spaces && test_below(seed, 4) == 0)
        hf_buffer_add_char(b, " \t\r\n"[test_below(seed, 4)]);
}

static void random_string(struct hf_buffer *b, uint64_t *seed, uint64_t letters)
{
    static const char *const parts[] = { "a",
                                         "b",
                                         "A",
                                         "\xc3\xa9",
                                         "\xf0\x9f\x98\x80",
                                         "\\n",
                                         "\\u0061",
                                         "\\u00e9",
                                         "\\\\",
                                         "\\ud83d\\ude00",
                                         "\\\"",
                                         "\\/",
                                         "/",
                                         " ",
                                         "\\u0000",
                                         "\x7f",
                                         "0123456789abcdef" };
    hf_buffer_add_char(b, '"');
    for (uint64_t n = test_below(seed, 4); n > 0; n--)
        hf_buffer_add_text(b, parts[test_below(seed, letters)]);
    hf_buffer_add_char(b, '"');
}

static void random_value(struct hf_buffer *b, uint64_t *seed, unsigned depth, bool spaces)
{
    static const char *const plain[] = { "0",     "-1",   "12.5e+3", "true",
                                         "false", "null", "1E9",     "-0.0" };
    space(b, seed, spaces);
    uint64_t kind = test_below(seed, depth > 0 ? 6 : 3);
    if (kind == 0) {
        random_string(b, seed, 17);
    } else if (kind < 3) {
        hf_buffer_add_text(b, plain[test_below(seed, 8)]);
    } else {
        bool is_object = kind > 3;
        hf_buffer_add_char(b, is_object ? '{' : '[');
        uint64_t n = test_below(seed, test_below(seed, 8) == 0 ? 24 : 4);
        for (uint64_t i = 0; i < n; i++) {
            if (i > 0)
                hf_buffer_add_char(b, ',');
            space(b, seed, spaces);
            if (is_object) {
                random_string(b, seed, 17); /* now and then the same name twice */
                space(b, seed, spaces);
                hf_buffer_add_char(b, ':');
            }
            random_value(b, seed, depth - 1, spaces);
        }
        space(b, seed, spaces);
        hf_buffer_add_char(b, is_object ? '}' : ']');
    }
    space(b, seed, spaces);
}

static void mutate(struct hf_buffer *b, uint64_t *seed)
{
    static const char favourites[] =
        "{}[]\",:\\u0019-.eE+tfn \n\xc3\xa9\xf0\x9f\xed\xa0\x80/d8\xef\xbb\xbf";
    for (uint64_t n = 1 + test_below(seed, 3); n > 0 && b->size > 0; n--) {
        size_t at = test_below(seed, b->size);
        char c = test_below(seed, 4) == 0 ? (char)test_random(seed)
                                          : favourites[test_below(seed, sizeof favourites - 1)];
        switch (test_below(seed, 4)) {
        case 0: b->data[at] = (unsigned char)c; break;
        case 1: memmove(b->data + at, b->data + at + 1, --b->size - at); break;
        case 2: b->data[at] ^= (unsigned char)(1 << test_below(seed, 8)); break;
        default:
            hf_buffer_add_char(b, ' ');
            memmove(b->data + at + 1, b->data + at, b->size - at - 1);
            b->data[at] = (unsigned char)c;
        }
    }
}

/* ---- Both ---- */

struct outcome {
    unsigned taken, refused;
};

static struct hf_bytes copy_of(struct hf_bytes b, unsigned char *room)
{
    memcpy(room, b.data, b.size);
    return hf_mem(room, b.size);
}

/* Compact text and canonical text are what they were made from, and making them again changes
 * nothing. */
static void check_forms(struct hf_bytes text, struct hf_arena *arena)
{
    static unsigned char first[2][POINTS_MAX * 32];
    struct hf_bytes compact, canonical, again;
    struct hf_reader r = { .text = text, .arena = arena };
    assert_true(hf_reader_compact(&r, &compact) && hf_reader_end(&r));
    compact = copy_of(compact, first[0]);
    r = (struct hf_reader){ .text = compact, .arena = arena };
    assert_true(hf_reader_compact(&r, &again));
    assert_true(hf_bytes_equal(again, compact));
    assert_int_equal(r.spaces, 0);
    r = (struct hf_reader){ .text = text, .arena = arena };
    assert_true(hf_reader_canonical(&r, &canonical) && hf_reader_end(&r));
    assert_true(canonical.size <= 8 * compact.size); /* 1e20 has 21 digits */
    canonical = copy_of(canonical, first[1]);
    r = (struct hf_reader){ .text = canonical, .arena = arena };
    assert_true(hf_reader_canonical(&r, &again));
    assert_true(hf_bytes_equal(again, canonical));
    r = (struct hf_reader){ .text = compact, .arena = arena };
    assert_true(hf_reader_canonical(&r, &again));
    assert_true(hf_bytes_equal(again, canonical));
    assert_true(second_takes(canonical) && second_takes(compact));
}

static void compare(struct hf_bytes given, struct outcome *outcome)
{
    struct hf_arena arena = { 0 };
    /* Exactly as much memory as there is text, so that a sanitizer sees a step too far. */
    unsigned char *exact = malloc(given.size > 0 ? given.size : 1);
    memcpy(exact, given.data, given.size);
    struct hf_reader r = { .text = hf_mem(exact, given.size), .arena = &arena };
    bool ours = hf_reader_skip(&r) && hf_reader_end(&r), theirs = second_takes(given);
    if (ours != theirs)
        fail_msg("one of two takes it (%s): %.*s", ours ? "ours" : r.error, (int)given.size,
                 (const char *)given.data);
    assert_int_equal(ours, !r.failed);
    if (ours) {
        assert_int_equal(r.depth, 0);
        assert_int_equal(r.name_count, 0);
        check_forms(r.text, &arena);
        outcome->taken++;
    } else {
        assert_true(strlen(r.error) > 10 && !r.no_memory);
        outcome->refused++;
    }
    free(exact);
    hf_arena_free(&arena);
}

static void test_texts_and_their_mutations(void **state)
{
    (void)state;
    uint64_t seed = test_seed("json_reader_random", 20261115);
    struct hf_buffer b = { 0 };
    struct outcome whole = { 0 }, changed = { 0 };
    for (int i = 0; i < 20000; i++) {
        hf_buffer_reset(&b);
        random_value(&b, &seed, 5, test_below(&seed, 2));
        if (b.size > POINTS_MAX / 2)
            continue;
        compare(hf_mem(b.data, b.size), &whole);
        for (int k = 0; k < 3; k++) {
            mutate(&b, &seed);
            compare(hf_mem(b.data, b.size), &changed);
        }
    }
    hf_buffer_free(&b);
    printf("%u of %u whole texts taken (the others repeat a name), %u of %u changed ones\n",
           whole.taken, whole.taken + whole.refused, changed.taken,
           changed.taken + changed.refused);
    assert_true(whole.taken > 5000 && whole.refused > 100 && changed.taken > 1000 &&
                changed.refused > 5000);
}

/* Short texts out of what JSON is made of, which random values seldom come near. */
static void test_soup(void **state)
{
    (void)state;
    static const char *const parts[] = { "{",     "}",           "[",       "]",      ",",  ":",
                                         "\"a\"", "\"\\u0061\"", "1",       "-",      "0",  ".",
                                         "e",     "true",        "null",    " ",      "\"", "\\",
                                         "\xc3",  "\xa9",        "\\ud800", "\\udc00" };
    uint64_t seed = test_seed("json_reader_random: soup", 7);
    struct hf_buffer b = { 0 };
    struct outcome outcome = { 0 };
    for (int i = 0; i < 300000; i++) {
        hf_buffer_reset(&b);
        for (uint64_t n = 1 + test_below(&seed, 9); n > 0; n--)
            hf_buffer_add_text(&b, parts[test_below(&seed, sizeof parts / sizeof *parts)]);
        compare(hf_mem(b.data, b.size), &outcome);
    }
    hf_buffer_free(&b);
    assert_true(outcome.taken > 1000 && outcome.refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_and_their_mutations),
        cmocka_unit_test(test_soup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The Unicode tables of the SQL functions (07_guards.sql), made from the library that
 * src/core/match.c uses, so that both have the same answer for each character.
 *
 * They are JSON objects with characters as names, because PostgreSQL finds a name in such a
 * constant by binary search, and the planner makes the constant once a session. */
#include "store/postgres/migrate.h"

#include "base/assert.h"
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

/* The comment on the first table tells which library made them. */
#define COMMENT "Unicode %s (utf8proc %s)"
#define COMMENT_READ "Unicode %15[0-9.] (utf8proc %15[0-9.])"

enum {
    LAST = 0x10ffff,
    SURROGATE_FIRST = 0xd800,
    SURROGATE_LAST = 0xdfff,
    SYLLABLE_FIRST = 0xac00, /* Hangul syllables are composed by arithmetic */
    SYLLABLE_LAST = 0xd7a3,
    VOWEL_FIRST = 0x1161,
    VOWEL_LAST = 0x1175,
    FINAL_NONE = 0x11a7, /* the code point before the first final consonant */
    FINAL_LAST = 0x11c2,
    FINALS = 28,
    POINTS_MAX = 32,
};

struct points {
    int32_t at[POINTS_MAX];
    size_t count;
};

struct making {
    struct hf_buffer decomposed, folded, classes, composed, marks;
    unsigned char seconds[LAST / 8 + 1]; /* characters that may be composed with the one before */
};

static unsigned class_of(int32_t c)
{
    return (unsigned)utf8proc_get_property(c)->combining_class;
}

static bool is_second(const struct making *m, int32_t c)
{
    return (m->seconds[c / 8] >> (c % 8)) & 1;
}

static void second_set(struct making *m, int32_t c)
{
    m->seconds[c / 8] |= (unsigned char)(1U << (c % 8));
}

static void points_add(struct points *p, int32_t c, int how)
{
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(c, p->at + p->count, (utf8proc_ssize_t)(POINTS_MAX - p->count),
                                (utf8proc_option_t)how, &boundary);
    HF_ASSERT(n >= 0 && (size_t)n <= POINTS_MAX - p->count);
    p->count += (size_t)n;
}

/* Each of the points decomposed or folded, and the marks in order. */
static struct points each(const struct points *from, int how)
{
    struct points to = { .count = 0 };
    for (size_t i = 0; i < from->count; i++)
        points_add(&to, from->at[i], how);
    for (size_t i = 1; i < to.count; i++)
        for (size_t k = i;
             k > 0 && class_of(to.at[k]) > 0 && class_of(to.at[k - 1]) > class_of(to.at[k]); k--) {
            int32_t c = to.at[k];
            to.at[k] = to.at[k - 1];
            to.at[k - 1] = c;
        }
    return to;
}

static struct points composed(const struct points *from)
{
    struct points to = *from;
    utf8proc_ssize_t n = utf8proc_normalize_utf32(to.at, (utf8proc_ssize_t)to.count,
                                                  UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    HF_ASSERT(n >= 0);
    to.count = (size_t)n;
    return to;
}

static bool is_only(const struct points *p, int32_t c)
{
    return p->count == 1 && p->at[0] == c;
}

static void text_add(struct hf_buffer *out, const struct points *p)
{
    for (size_t i = 0; i < p->count; i++) {
        unsigned char bytes[4];
        HF_ASSERT(p->at[i] != '"' && p->at[i] != '\\' && p->at[i] >= ' ');
        hf_buffer_add(out, bytes, (size_t)utf8proc_encode_char(p->at[i], bytes));
    }
}

/* A name in a table; its value follows. */
static void name_add(struct hf_buffer *out, const struct points *p)
{
    hf_buffer_add_text(out, out->size > 0 ? ",\"" : "\"");
    text_add(out, p);
    hf_buffer_add_text(out, "\":");
}

static void entry_add(struct hf_buffer *out, const struct points *from, const struct points *to)
{
    name_add(out, from);
    hf_buffer_add_char(out, '"');
    text_add(out, to);
    hf_buffer_add_char(out, '"');
}

static void pair_add(struct making *m, int32_t first, int32_t second, int32_t both)
{
    struct points pair = { { first, second }, 2 }, one = { { both }, 1 };
    entry_add(&m->composed, &pair, &one);
    second_set(m, second);
}

static struct points decomposed(int32_t c)
{
    struct points one = { { c }, 1 };
    return c >= SYLLABLE_FIRST && c <= SYLLABLE_LAST
               ? one
               : each(&one, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
}

static int32_t next_character(int32_t c)
{
    return c + 1 == SURROGATE_FIRST ? SURROGATE_LAST + 1 : c + 1;
}

/* What two characters compose to: of a composed character, the last part and what all others
 * compose to. */
static void make_pairs(struct making *m)
{
    for (int32_t c = 1; c <= LAST; c = next_character(c)) {
        struct points parts = decomposed(c), whole = composed(&parts);
        if (parts.count < 2 || !is_only(&whole, c))
            continue;
        struct points front = parts;
        front.count--;
        front = composed(&front);
        HF_ASSERT(front.count == 1);
        pair_add(m, front.at[0], parts.at[parts.count - 1], c);
    }
    for (int32_t c = VOWEL_FIRST; c <= VOWEL_LAST; c++)
        second_set(m, c);
    for (int32_t c = FINAL_NONE + 1; c <= FINAL_LAST; c++)
        second_set(m, c);
    /* utf8proc takes the code point before them for a final consonant too. */
    for (int32_t c = SYLLABLE_FIRST; c <= SYLLABLE_LAST; c += FINALS) {
        struct points both = { { c, FINAL_NONE }, 2 };
        both = composed(&both);
        if (both.count == 1)
            pair_add(m, c, FINAL_NONE, both.at[0]);
    }
}

/* May the text before `c` change what becomes of it, or does its normal form differ from it? */
static bool is_mark(const struct making *m, int32_t c, const struct points *parts,
                    const struct points *folded)
{
    struct points whole = composed(parts), again = composed(folded);
    bool folds = again.count != folded->count;
    for (size_t i = 0; i < again.count && !folds; i++)
        folds = again.at[i] != folded->at[i];
    return folds || !is_only(&whole, c) || class_of(c) > 0 || class_of(parts->at[0]) > 0 ||
           class_of(folded->at[0]) > 0 || is_second(m, c) || is_second(m, parts->at[0]) ||
           is_second(m, folded->at[0]);
}

/* The rows of the tables for `c`. Is it in the class of marks? */
static bool make_character(struct making *m, int32_t c)
{
    struct points one = { { c }, 1 }, parts = decomposed(c), folded = one;
    if (c < SYLLABLE_FIRST || c > SYLLABLE_LAST)
        folded = each(&parts, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    if (!is_only(&parts, c)) {
        entry_add(&m->decomposed, &one, &parts);
        folded = composed(&folded); /* by itself: beside marks it is decomposed before it folds */
    }
    if (!is_only(&folded, c))
        entry_add(&m->folded, &one, &folded);
    if (class_of(c) > 0) {
        name_add(&m->classes, &one);
        hf_buffer_printf(&m->classes, "%u", class_of(c));
    }
    return is_mark(m, c, &parts, &folded);
}

/* from to `to` in a bracket expression. */
static void range_add(struct hf_buffer *out, int32_t from, int32_t to)
{
    hf_buffer_printf(out, from > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)from);
    if (to > from)
        hf_buffer_printf(out, to > 0xffff ? "-\\U%08x" : "-\\u%04x", (unsigned)to);
}

static void make_characters(struct making *m)
{
    int32_t from = 0, last = 0; /* the range of marks; 0: there is none */
    for (int32_t c = 1; c <= LAST; last = c, c = next_character(c)) {
        bool mark = make_character(m, c);
        if (mark && from == 0)
            from = c;
        if (!mark && from != 0) {
            range_add(&m->marks, from, last);
            from = 0;
        }
    }
    HF_ASSERT(from == 0); /* the last character is none */
}

/* ---- As SQL ---- */

/* type: jsonb, or text for a bracket expression. */
static void function_add(struct hf_buffer *out, const char *name, const char *type,
                         const struct hf_buffer *rows, const char *comment)
{
    bool text = strcmp(type, "text") == 0;
    hf_buffer_printf(out,
                     "CREATE OR REPLACE FUNCTION holdfast.%s() RETURNS %s LANGUAGE sql IMMUTABLE "
                     "AS $f$ SELECT $t$%c",
                     name, type, text ? '[' : '{');
    hf_buffer_add(out, rows->data, rows->size);
    hf_buffer_printf(out,
                     "%c$t$::pg_catalog.%s $f$;\nCOMMENT ON FUNCTION holdfast.%s IS '%s';\n"
                     "REVOKE ALL ON FUNCTION holdfast.%s FROM PUBLIC;\n",
                     text ? ']' : '}', type, name, comment, name);
}

static void functions_add(struct hf_buffer *out, const struct making *m)
{
    char comment[160];
    snprintf(comment, sizeof comment,
             COMMENT ": a regular expression for the characters that may change beside others.",
             utf8proc_unicode_version(), utf8proc_version());
    function_add(out, "_unicode_marks", "text", &m->marks, comment);
    function_add(out, "_unicode_decomposed", "jsonb", &m->decomposed,
                 "A character and what it decomposes to.");
    function_add(out, "_unicode_folded", "jsonb", &m->folded,
                 "A character and what case folding makes of it.");
    function_add(out, "_unicode_classes", "jsonb", &m->classes,
                 "A character and its combining class, if that is not 0.");
    function_add(out, "_unicode_composed", "jsonb", &m->composed,
                 "Two characters and the one that they compose to.");
}

char *hf_pg_unicode_sql(void)
{
    struct hf_buffer out = { .data = NULL };
    struct making *m = calloc(1, sizeof *m);
    if (m) {
        make_pairs(m);
        make_characters(m);
        functions_add(&out, m);
        out.failed |= m->decomposed.failed || m->folded.failed || m->classes.failed ||
                      m->composed.failed || m->marks.failed;
        hf_buffer_free(&m->decomposed);
        hf_buffer_free(&m->folded);
        hf_buffer_free(&m->classes);
        hf_buffer_free(&m->composed);
        hf_buffer_free(&m->marks);
    }
    const char *text = m ? hf_buffer_text(&out) : NULL;
    char *copy = text ? strdup(text) : NULL;
    free(m);
    hf_buffer_free(&out);
    return copy;
}

/* The versions of Unicode and of utf8proc in one number: 15.0.0 and 2.8.0 are 15000002008000. */
static unsigned long long version_of(const char *unicode, const char *library)
{
    unsigned u[3] = { 0 }, l[3] = { 0 };
    if (sscanf(unicode, "%3u.%3u.%3u", &u[0], &u[1], &u[2]) != 3 ||
        sscanf(library, "%3u.%3u.%3u", &l[0], &l[1], &l[2]) != 3)
        return 0;
    return ((((u[0] * 1000ULL + u[1]) * 1000 + u[2]) * 1000 + l[0]) * 1000 + l[1]) * 1000 + l[2];
}

bool hf_pg_unicode_is_older(const char *comment)
{
    char unicode[16], library[16];
    if (!comment || sscanf(comment, COMMENT_READ, unicode, library) != 2)
        return true;
    return version_of(unicode, library) <
           version_of(utf8proc_unicode_version(), utf8proc_version());
}

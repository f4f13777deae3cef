/* Laws of keys, of matching and of merging, for drawn requests and values. */
#include "support/test.h"
#include "unit/kit/world.h"

#include "base/bytes.h"
#include "core/match.h"
#include "core/merge.h"

#include <utf8proc.h>

/* One effect a token: random calls with few keys and numbers, repeated, reused for other things,
 * and waited out, against a model that remembers what each key's first call was answered. */

#define STEPS 40000
#define KEYS 12
#define WINDOW 40
#define NUMBERS 600

static uint64_t seed;

/* What a call asks, told by a small number, so that the model can compare calls without a
 * digest. */
enum { QUESTIONS = 6 };

static struct hf_request question(unsigned q)
{
    static const char *const rooms[] = { "room", "bed" };
    static const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE };
    if (q < 4)
        return (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .place_hold = { hf_str(rooms[q % 2]), hf_str("guest"),
                                                    10 + (int64_t)q / 2, 0 } };
    return (struct hf_request){ .action = ends[q - 4],
                                .hold = { hf_str("h0000000000000000000000001") } };
}

struct first {
    bool used;
    unsigned question;
    hf_time at, until;
    enum hf_status status;
    enum hf_record kind;
    char id[HF_ID_SIZE];
    enum hf_hold_state state;
};

/* The answer of the last call, as the model remembers it. */
static void remember(const struct world *w, struct first *f, unsigned q, hf_time until)
{
    *f = (struct first){ .used = true, .question = q, .at = w->now, .until = until };
    f->status = w->plan.answer.status;
    f->kind = w->plan.answer.kind;
    if (f->kind == HF_RECORD_HOLD) {
        memcpy(f->id, w->plan.answer.hold.id, HF_ID_SIZE);
        f->state = w->plan.answer.hold.state;
    }
}

/* The key is bound to `f`: the same answer again, or a collision; and nothing happens. */
static void check_again(const struct world *w, const struct first *f, unsigned q)
{
    assert_true(w->plan.row_count == 0 && w->plan.remember == HF_REMEMBER_NOT);
    assert_true(w->plan.token.recorded_at == f->at && w->plan.token.expires_at == f->until);
    assert_int_equal(w->plan.replayed, q == f->question);
    if (q != f->question) {
        assert_int_equal(w->plan.answer.status, HF_TOKEN_COLLISION);
        return;
    }
    assert_int_equal(w->plan.answer.status, f->status);
    assert_int_equal(w->plan.answer.kind, f->kind);
    if (f->kind == HF_RECORD_HOLD) {
        assert_string_equal(w->plan.answer.hold.id, f->id);
        assert_int_equal(w->plan.answer.hold.state, f->state);
    }
}

static void check_first(const struct world *w, size_t holds_before)
{
    assert_false(w->plan.replayed);
    assert_int_not_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_true(world_count(w, HF_ROW_HOLD) <= holds_before + 1); /* one token, at most one hold */
}

static void keys_have_one_effect(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct first firsts[KEYS] = { 0 };
    w->rules.idempotency_window_ms = WINDOW;
    for (int step = 0; step < STEPS; step++) {
        unsigned k = (unsigned)test_below(&seed, KEYS), q = (unsigned)test_below(&seed, QUESTIONS);
        char key[16];
        if (test_below(&seed, 2)) /* most retries ask the same */
            q = firsts[k].question;
        w->now += (int64_t)test_below(&seed, 5);
        snprintf(key, sizeof key, "k%u", k);
        struct hf_request r = question(q);
        r.key = hf_str(key);
        size_t holds = world_count(w, HF_ROW_HOLD);
        bool again = firsts[k].used && w->now < firsts[k].until;
        w->refuse_writes = test_below(&seed, 20) == 0;
        (void)world_do(w, &r);
        if (again) {
            check_again(w, &firsts[k], q);
            assert_int_equal(world_count(w, HF_ROW_HOLD), holds);
        } else if (w->refuse_writes) {
            assert_int_equal(w->plan.answer.status, HF_STORAGE_FAILURE);
        } else {
            check_first(w, holds);
            remember(w, &firsts[k], q, w->now + WINDOW);
        }
    }
    w->refuse_writes = false;
    world_check(w);
    world_free(w);
}

static void numbers_have_one_effect(void **state)
{
    (void)state;
    static struct first firsts[NUMBERS + 1];
    struct world *w = world_new();
    uint64_t highest = 0;
    memset(firsts, 0, sizeof firsts);
    while (highest < NUMBERS) {
        uint64_t back = test_below(&seed, 2) ? test_below(&seed, 300) : test_below(&seed, 8);
        uint64_t n = highest + 1 + test_below(&seed, 2) > back
                         ? highest + 1 + test_below(&seed, 2) - back
                         : 1;
        unsigned q = (unsigned)test_below(&seed, QUESTIONS);
        n = n < 1 ? 1 : n > NUMBERS ? NUMBERS : n;
        if (firsts[n].used && test_below(&seed, 2))
            q = firsts[n].question;
        w->now += (int64_t)test_below(&seed, 5);
        struct hf_request r = question(q);
        r.client = hf_str("pos-7");
        r.sequence = n;
        size_t holds = world_count(w, HF_ROW_HOLD);
        (void)world_do(w, &r);
        if (n + HF_SEQUENCE_WINDOW <= highest) { /* for ever, used or not */
            assert_int_equal(w->plan.answer.status, HF_WINDOW_ELAPSED);
            assert_true(w->plan.row_count == 0 && w->plan.remember == HF_REMEMBER_NOT);
        } else if (firsts[n].used) {
            check_again(w, &firsts[n], q);
        } else {
            check_first(w, holds);
            remember(w, &firsts[n], q, INT64_MAX);
        }
        highest = n > highest ? n : highest;
    }
    world_check(w);
    world_free(w);
}

/* Canonical forms: each step is idempotent, and identities that Unicode holds for the same get the
 * same form. utf8proc's own maps are the witness here. */

#define ROUNDS 20000

static struct hf_plan plan;

/* Code points that meet the rules' edges more often than chance would. */
static int32_t any_point(void)
{
    static const int32_t special[] = { ' ',    '\t',   '\n',   0xa0,   0x2000, 0x3000,  0x85,
                                       'A',    'z',    0xdf,   0x130,  0x131,  0x149,   0x1f0,
                                       0x345,  0x300,  0x301,  0x308,  0x323,  0x327,   0x390,
                                       0x3a3,  0x3c2,  0x1e9e, 0x1fb7, 0x1f82, 0x212b,  0x958,
                                       0x1100, 0x1161, 0x11a8, 0xac00, 0xfb03, 0x10400, 0x1d15e,
                                       0x587,  0xfffd, 0xffff };
    if (test_below(&seed, 4))
        return special[test_below(&seed, sizeof special / sizeof *special)];
    int32_t c = (int32_t)test_below(&seed, test_below(&seed, 2) ? 0x3000 : 0x110000);
    return c >= 0xd800 && c < 0xe000 ? 'x' : c;
}

static size_t any_text(unsigned char *out)
{
    size_t size = 0;
    for (uint64_t n = 1 + test_below(&seed, 10); n > 0; n--)
        size += (size_t)utf8proc_encode_char(any_point(), out + size);
    return size;
}

/* The form under one step, copied out; 0 if there is none. */
static size_t form_of(enum hf_match step, const unsigned char *text, size_t size,
                      unsigned char *out)
{
    struct hf_guard guard = { .match = { step }, .match_count = 1 };
    struct hf_bytes form;
    hf_plan_reset(&plan);
    if (hf_match_apply(&guard, hf_mem(text, size), &plan, &form) != HF_OK)
        return 0;
    memcpy(out, form.data, form.size);
    return form.size;
}

static void same_form(enum hf_match step, const unsigned char *a, size_t a_size,
                      const unsigned char *b, size_t b_size)
{
    unsigned char x[HF_IDENTITY_MAX], y[HF_IDENTITY_MAX];
    size_t n = form_of(step, a, a_size, x), m = form_of(step, b, b_size, y);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

static void steps_are_idempotent(void **state)
{
    (void)state;
    static const enum hf_match steps[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE };
    unsigned char text[64], once[HF_IDENTITY_MAX], twice[HF_IDENTITY_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = any_text(text);
        for (int i = 0; i < 3; i++) {
            size_t n = form_of(steps[i], text, size, once);
            if (n == 0)
                continue; /* white space alone, trimmed */
            size_t m = form_of(steps[i], once, n, twice);
            assert_int_equal(n, m);
            assert_memory_equal(once, twice, n);
        }
    }
}

static void mapped(const unsigned char *text, size_t size, int options, enum hf_match step)
{
    utf8proc_uint8_t *other;
    utf8proc_ssize_t n =
        utf8proc_map(text, (utf8proc_ssize_t)size, &other, (utf8proc_option_t)options);
    assert_true(n > 0);
    same_form(step, text, size, other, (size_t)n);
    free(other);
}

static void equivalent_texts_have_one_form(void **state)
{
    (void)state;
    unsigned char text[64];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = any_text(text);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, HF_MATCH_NORMALIZE);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_COMPOSE, HF_MATCH_NORMALIZE);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, HF_MATCH_CASEFOLD);
        mapped(text, size, UTF8PROC_STABLE | UTF8PROC_COMPOSE, HF_MATCH_CASEFOLD);
    }
}

/* Upper and lower case of every code point that has both fold to one form. */
static void both_cases_have_one_form(void **state)
{
    (void)state;
    for (int32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        int32_t lower = utf8proc_tolower(c), upper = utf8proc_toupper(c);
        /* Where there and back is not the same letter, case folding is not about case alone: the
         * dotted and dotless i of Turkish, and what only looks like a capital. */
        if (lower == c || upper != c || utf8proc_toupper(lower) != c || c == 0x130)
            continue;
        unsigned char a[4], b[4];
        size_t n = (size_t)utf8proc_encode_char(c, a), m = (size_t)utf8proc_encode_char(lower, b);
        same_form(HF_MATCH_CASEFOLD, a, n, b, m);
    }
}

/* Normalised text is in NFC, and holds no white space but single U+0020. */
static void normalized_is_nfc_with_single_spaces(void **state)
{
    (void)state;
    unsigned char text[64], form[HF_IDENTITY_MAX + 1];
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = form_of(HF_MATCH_NORMALIZE, text, any_text(text), form);
        assert_true(n > 0);
        utf8proc_uint8_t *nfc;
        utf8proc_ssize_t m = utf8proc_map(form, (utf8proc_ssize_t)n, &nfc,
                                          (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        assert_true(m == (utf8proc_ssize_t)n);
        assert_memory_equal(nfc, form, n);
        free(nfc);
        form[n] = '\0';
        assert_null(strstr((const char *)form, "  "));
        for (const char *bad = "\t\n\v\f\r"; *bad; bad++)
            assert_null(memchr(form, *bad, n));
    }
}

/* Every merged type is a join-semilattice: idempotent, commutative, associative, and it only moves
 * up. So the same set of merges gives the same register, in any order and however often each is
 * heard. */

#define ITEMS 8

static const enum hf_register_type types[] = { HF_TYPE_MAX,     HF_TYPE_MIN,   HF_TYPE_OR,
                                               HF_TYPE_UNION,   HF_TYPE_LWW,   HF_TYPE_VECTOR,
                                               HF_TYPE_COUNTER, HF_TYPE_UPDOWN };
enum { TYPES = sizeof types / sizeof *types };

/* Few names and small numbers meet often; now and then a number is huge. */
static const char *const words[] = { "a", "b", "ab", "node-1", "node-2", "\xc3\xa9", "z", "zz" };

static uint64_t number(void)
{
    return test_below(&seed, 8) == 0 ? (uint64_t)INT64_MAX / 16 - test_below(&seed, 3)
                                     : test_below(&seed, 4);
}

struct made {
    struct hf_value value;
    struct hf_item items[ITEMS];
};

static void make(enum hf_register_type type, struct made *m)
{
    *m = (struct made){ .value = { .type = type } };
    m->value.number = (int64_t)number() - 2;
    m->value.flag = test_below(&seed, 2);
    m->value.timestamp = (int64_t)test_below(&seed, 3) - 1;
    m->value.node = hf_str(words[test_below(&seed, ITEMS)]);
    m->value.bytes = hf_str(words[test_below(&seed, ITEMS)]);
    m->value.items = m->items;
    for (size_t i = 0; i < ITEMS; i++)
        if (test_below(&seed, 2))
            m->items[m->value.item_count++] =
                (struct hf_item){ hf_str(words[i]), number(), number() };
}

static struct hf_bytes encode(const struct made *m)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_encode(&m->value, &plan, &out), HF_OK);
    return out;
}

static struct hf_bytes join(enum hf_register_type type, struct hf_bytes a, struct hf_bytes b)
{
    struct hf_bytes out = { NULL, 0 };
    assert_int_equal(hf_merge_join(type, a, b, &plan, &out), HF_OK);
    return out;
}

static void laws(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        struct made m[3];
        struct hf_bytes x[3];
        hf_plan_reset(&plan);
        for (int i = 0; i < 3; i++) {
            make(type, &m[i]);
            x[i] = encode(&m[i]);
        }
        struct hf_bytes xy = join(type, x[0], x[1]);
        assert_true(hf_bytes_equal(join(type, x[0], x[0]), x[0])); /* idempotent */
        assert_true(hf_bytes_equal(join(type, x[1], x[0]), xy));   /* commutative */
        assert_true(hf_bytes_equal(join(type, xy, x[2]),
                                   join(type, x[0], join(type, x[1], x[2])))); /* associative */
        assert_true(hf_bytes_equal(join(type, x[0], xy), xy));                 /* x is below xy */
        assert_true(hf_bytes_equal(join(type, xy, x[1]), xy));
    }
}

/* "Up" in the type's own words, read from the decoded value. */
static bool below(const struct hf_value *a, const struct hf_value *b)
{
    switch (a->type) {
    case HF_TYPE_MAX: return a->number <= b->number;
    case HF_TYPE_MIN: return a->number >= b->number;
    case HF_TYPE_OR: return !a->flag || b->flag;
    case HF_TYPE_LWW: return a->timestamp <= b->timestamp;
    default: break;
    }
    for (size_t i = 0; i < a->item_count; i++) {
        size_t j = 0;
        while (j < b->item_count && !hf_bytes_equal(a->items[i].name, b->items[j].name))
            j++;
        if (j == b->item_count || a->items[i].up > b->items[j].up ||
            a->items[i].down > b->items[j].down)
            return false;
    }
    return true;
}

static void values_only_move_up(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        struct made a, b;
        struct hf_item room[3][ITEMS];
        struct hf_value x, y, z;
        hf_plan_reset(&plan);
        make(type, &a);
        make(type, &b);
        struct hf_bytes p = encode(&a), q = encode(&b);
        assert_true(hf_merge_decode(type, p, room[0], ITEMS, &x));
        assert_true(hf_merge_decode(type, q, room[1], ITEMS, &y));
        assert_true(hf_merge_decode(type, join(type, p, q), room[2], ITEMS, &z));
        assert_true(below(&x, &z) && below(&y, &z));
        for (size_t i = 0; i < z.item_count; i++) { /* and no higher than it must */
            bool from_x = false, from_y = false;
            for (size_t j = 0; j < x.item_count; j++)
                from_x |= hf_bytes_equal(x.items[j].name, z.items[i].name);
            for (size_t j = 0; j < y.item_count; j++)
                from_y |= hf_bytes_equal(y.items[j].name, z.items[i].name);
            assert_true(from_x || from_y);
        }
    }
}

static void the_order_of_items_does_not_matter(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct made a, b;
        hf_plan_reset(&plan);
        make(types[test_below(&seed, TYPES)], &a);
        b = a;
        b.value.items = b.items;
        for (size_t i = b.value.item_count; i > 1; i--) {
            size_t j = test_below(&seed, i);
            struct hf_item t = b.items[i - 1];
            b.items[i - 1] = b.items[j];
            b.items[j] = t;
        }
        assert_true(hf_bytes_equal(encode(&a), encode(&b)));
    }
}

/* Two replicas hear the same merges, each in its own order and some twice. */
static void replicas_agree(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        enum hf_register_type type = types[test_below(&seed, TYPES)];
        enum { MERGES = 6 };
        struct made m[MERGES];
        struct world *replicas[2] = { world_new(), world_new() };
        for (int i = 0; i < MERGES; i++)
            make(type, &m[i]);
        for (int r = 0; r < 2; r++) {
            unsigned heard = 0;
            uint64_t version = 0;
            while (heard != (1U << MERGES) - 1) {
                unsigned i = (unsigned)test_below(&seed, MERGES);
                struct hf_request request = { .action = HF_MERGE,
                                              .merge = { hf_str("r"), &m[i].value } };
                assert_int_equal(world_do(replicas[r], &request), HF_OK);
                /* Heard before: nothing changes. */
                if (heard >> i & 1)
                    assert_true(replicas[r]->plan.row_count == 0);
                assert_true(replicas[r]->plan.answer.reg.version ==
                            version + replicas[r]->plan.row_count);
                version = replicas[r]->plan.answer.reg.version;
                heard |= 1U << i;
            }
        }
        const struct hf_row *a = world_row(replicas[0], HF_ROW_REGISTER, "", "r", "");
        const struct hf_row *b = world_row(replicas[1], HF_ROW_REGISTER, "", "r", "");
        assert_true(hf_bytes_equal(a->reg.value.bytes, b->reg.value.bytes));
        world_free(replicas[0]);
        world_free(replicas[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tokens_tests[] = {
        cmocka_unit_test(keys_have_one_effect),
        cmocka_unit_test(numbers_have_one_effect),
    };
    const struct CMUnitTest matches_tests[] = {
        cmocka_unit_test(steps_are_idempotent),
        cmocka_unit_test(equivalent_texts_have_one_form),
        cmocka_unit_test(both_cases_have_one_form),
        cmocka_unit_test(normalized_is_nfc_with_single_spaces),
    };
    const struct CMUnitTest merges_tests[] = {
        cmocka_unit_test(laws),
        cmocka_unit_test(values_only_move_up),
        cmocka_unit_test(the_order_of_items_does_not_matter),
        cmocka_unit_test(replicas_agree),
    };
    int failed = 0;
    seed = test_seed("tokens", 20231118);
    failed += cmocka_run_group_tests(tokens_tests, NULL, NULL);
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    seed = test_seed("matches", 20231120);
    failed += cmocka_run_group_tests(matches_tests, NULL, NULL);
    free(plan.scratch);
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    seed = test_seed("merges", 20231115);
    failed += cmocka_run_group_tests(merges_tests, NULL, NULL);
    free(plan.scratch);
    return failed;
}

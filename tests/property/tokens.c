/* One effect a token: random calls with few keys and numbers, repeated, reused for other things,
 * and waited out, against a model that remembers what each key's first call was answered. */
#include "support/test.h"
#include "unit/kit/world.h"

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

int main(void)
{
    seed = test_seed("tokens", 20231118);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_one_effect),
        cmocka_unit_test(numbers_have_one_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

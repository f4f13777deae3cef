/* Claims under random workers that finish, fail, fall silent and come back late: the fence of a key
 * only rises, no two workers hold the current fence, and what was completed is never begun
 * again. */
#include "support/test.h"
#include "unit/kit/world.h"

#define STEPS 40000
#define KEYS 4
#define LEASE 20
#define WINDOW 100

static uint64_t seed;

struct claim {
    bool known;
    uint64_t fence; /* the current one */
    bool started;   /* not settled under it */
    bool retry;     /* policy of this start */
    hf_time lease_until;
    hf_time settled_until;
    enum hf_claim_state settled;
    int word; /* the response it was settled with */
};

static struct hf_bytes key_of(int k)
{
    static char text[KEYS][16];
    snprintf(text[k], sizeof text[k], "k%d", k);
    return hf_str(text[k]);
}

static void begin(struct world *w, struct claim *c, int k)
{
    bool retry = test_below(&seed, 2);
    struct hf_request r = { .action = HF_BEGIN,
                            .key = key_of(k),
                            .begin = { .payload = hf_str("payload"),
                                       .lease_ms = LEASE,
                                       .on_abandon =
                                           retry ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN } };
    bool alive = c->known && (c->started || w->now < c->settled_until);
    bool lapsed = alive && c->started && w->now >= c->lease_until;
    bool starts =
        !alive || (lapsed && c->retry) || (!c->started && c->settled == HF_CLAIM_RETRYABLE);
    enum hf_status status = world_do(w, &r);
    if (starts) {
        assert_int_equal(status, HF_OK);
        assert_false(w->plan.replayed);
        assert_true(w->plan.answer.claim.fence > c->fence);
        *c = (struct claim){ .known = true,
                             .fence = w->plan.answer.claim.fence,
                             .started = true,
                             .retry = retry,
                             .lease_until = w->now + LEASE };
        return;
    }
    assert_true(w->plan.row_count == 0 && w->plan.answer.claim.fence == c->fence);
    if (c->started) {
        assert_int_equal(status, lapsed ? HF_OUTCOME_UNKNOWN : HF_IN_PROGRESS);
    } else {
        assert_int_equal(status, HF_OK);
        assert_true(w->plan.replayed);
        assert_int_equal(w->plan.answer.claim.state, c->settled);
    }
}

static void settle(struct world *w, struct claim *c, int k)
{
    static const enum hf_action actions[] = { HF_COMPLETE, HF_FAIL, HF_FAIL, HF_HEARTBEAT };
    unsigned which = (unsigned)test_below(&seed, 4);
    static const enum hf_claim_state states[] = { HF_CLAIM_COMPLETED, HF_CLAIM_FAILED,
                                                  HF_CLAIM_RETRYABLE };
    int word = (int)test_below(&seed, 3);
    char text[16];
    uint64_t fence = c->fence + 1 - test_below(&seed, 3); /* one too high, right, or stale */
    if (fence == 0 || fence > c->fence + 1)
        fence = 1;
    snprintf(text, sizeof text, "w%d", word);
    struct hf_request r = {
        .action = actions[which],
        .key = key_of(k),
        .settle = { .fence = fence, .response = hf_str(text), .retryable = which == 2 }
    };
    bool alive = c->known && (c->started || w->now < c->settled_until);
    enum hf_status status = world_do(w, &r);
    if (!alive) {
        assert_int_equal(status, HF_NOT_KNOWN);
    } else if (fence != c->fence) {
        assert_int_equal(status, fence > c->fence ? HF_INVALID_REQUEST : HF_STALE_FENCE);
    } else if (!c->started) {
        bool same = which < 3 && states[which] == c->settled && word == c->word;
        assert_int_equal(status, same ? HF_OK : which == 3 ? HF_NOT_HELD : HF_TOKEN_COLLISION);
        assert_int_equal(w->plan.replayed, same);
    } else {
        assert_int_equal(status, HF_OK);
        if (which == 3) {
            c->lease_until = w->now + LEASE;
        } else {
            c->started = false;
            c->settled = states[which];
            c->settled_until = w->now + WINDOW;
            c->word = word;
        }
    }
    if (status != HF_OK || w->plan.replayed)
        assert_int_equal(w->plan.row_count, 0);
}

static void random_workers(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct claim claims[KEYS] = { 0 };
    w->rules.idempotency_window_ms = WINDOW;
    for (int step = 0; step < STEPS; step++) {
        int k = (int)test_below(&seed, KEYS);
        w->now += (int64_t)test_below(&seed, 12);
        if (test_below(&seed, 2))
            begin(w, &claims[k], k);
        else
            settle(w, &claims[k], k);
    }
    world_free(w);
}

int main(void)
{
    seed = test_seed("claims", 20231119);
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_workers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

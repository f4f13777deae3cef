/* Claims: begin, complete, fail, heartbeat, and leases that run out. */
#include "core/claim.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define WINDOW INT64_C(86400000)
#define LEASE INT64_C(1000)

static struct world *w;

static int setup(void **state)
{
    (void)state;
    w = world_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static enum hf_status begin_with(const char *key, const char *payload, enum hf_abandon on_abandon)
{
    return world_do(w, &(struct hf_request){ .action = HF_BEGIN,
                                             .key = hf_str(key),
                                             .begin = { .payload = hf_str(payload),
                                                        .lease_ms = LEASE,
                                                        .on_abandon = on_abandon } });
}

static enum hf_status begin(const char *key)
{
    return begin_with(key, "payload", HF_ABANDON_UNKNOWN);
}

static enum hf_status settle(enum hf_action action, const char *key, uint64_t fence,
                             const char *response, bool retryable)
{
    return world_do(w, &(struct hf_request){ .action = action,
                                             .key = hf_str(key),
                                             .settle = { .fence = fence,
                                                         .response = hf_str(response),
                                                         .retryable = retryable } });
}

static enum hf_status heartbeat(const char *key, uint64_t fence, int64_t lease_ms)
{
    return world_do(w, &(struct hf_request){ .action = HF_HEARTBEAT,
                                             .key = hf_str(key),
                                             .settle = { .fence = fence, .lease_ms = lease_ms } });
}

static const struct hf_claim *stored(const char *key)
{
    const struct hf_row *row = world_row(w, HF_ROW_CLAIM, "", key, "");
    assert_non_null(row);
    return &row->claim;
}

static bool is(struct hf_bytes got, const char *want)
{
    return got.size == strlen(want) && memcmp(got.data, want, got.size) == 0;
}

/* The answer carries the claim, in this state. */
static void answered(enum hf_claim_state state, uint64_t fence)
{
    assert_int_equal(w->plan.answer.kind, HF_RECORD_CLAIM);
    assert_int_equal(w->plan.answer.claim.state, state);
    assert_true(w->plan.answer.claim.fence == fence);
}

/* ---- Begin ---- */

static void a_claim_begins(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    answered(HF_CLAIM_STARTED, 1);
    assert_true(w->plan.fence_used && !w->plan.replayed);
    assert_int_equal(w->plan.row_count, 1);
    const struct hf_claim *c = stored("k");
    assert_true(is(c->key, "k") && c->lease_ms == LEASE && c->begun_at == WORLD_START);
    assert_true(c->lease_expires_at == WORLD_START + LEASE && c->settled_at == 0 &&
                c->expires_at == 0);
    assert_true(c->on_abandon == HF_ABANDON_UNKNOWN && c->response.size == 0);
    assert_int_equal(begin("other"), HF_OK);
    answered(HF_CLAIM_STARTED, 2);
}

static void leases_and_keys_are_checked(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_BEGIN, .key = hf_str("k"), .begin = { .lease_ms = -1 } };
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.begin.lease_ms = HF_DURATION_MAX_MS + 1;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.begin.lease_ms = 1;
    r.begin.on_abandon = (enum hf_abandon)2;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.begin.on_abandon = HF_ABANDON_RETRY;
    r.key = hf_mem(NULL, 0);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    static char text[257];
    memset(text, 'k', sizeof text);
    r.key = hf_mem(text, 257);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.tenant = hf_str("\xff");
    r.key = hf_mem(text, 256);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    assert_int_equal(w->lookups, 0);
    r.tenant = hf_str("t");
    assert_int_equal(world_do(w, &r), HF_OK);
    r.key = hf_str("default");
    r.begin.lease_ms = 0;
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_true(w->plan.answer.claim.lease_ms == 60000);
    r.key = hf_str("long");
    r.begin.lease_ms = HF_DURATION_MAX_MS;
    assert_int_equal(world_do(w, &r), HF_OK);
}

static void a_second_begin_waits(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    w->now += LEASE - 1;
    assert_int_equal(begin("k"), HF_IN_PROGRESS);
    answered(HF_CLAIM_STARTED, 1);
    assert_int_equal(w->plan.row_count, 0);
    assert_false(w->plan.replayed);
    /* A collision is told before "in progress". */
    assert_int_equal(begin_with("k", "other", HF_ABANDON_UNKNOWN), HF_TOKEN_COLLISION);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
    assert_int_equal(w->plan.token.action, HF_BEGIN);
    assert_true(w->plan.token.recorded_at == WORLD_START && w->plan.token.expires_at == INT64_MAX);
}

static void an_unknown_outcome_stays_unknown(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    w->now += LEASE;
    assert_int_equal(begin("k"), HF_OUTCOME_UNKNOWN);
    answered(HF_CLAIM_UNKNOWN, 1);
    assert_true(!w->plan.replayed && w->plan.row_count == 0);
    assert_int_equal(stored("k")->state, HF_CLAIM_STARTED); /* shown, never stored */
    /* The policy is the one given when it began, not the one given now; and it is never
     * forgotten. */
    w->now += 400 * WINDOW;
    assert_int_equal(begin_with("k", "payload", HF_ABANDON_RETRY), HF_OUTCOME_UNKNOWN);
    /* Whoever holds the fence may still settle it. */
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "done", false), HF_OK);
    assert_int_equal(begin("k"), HF_OK);
    answered(HF_CLAIM_COMPLETED, 1);
    assert_true(w->plan.replayed);
}

static void a_lapsed_lease_with_retry_is_taken_over(void **state)
{
    (void)state;
    assert_int_equal(begin_with("k", "payload", HF_ABANDON_RETRY), HF_OK);
    w->now += LEASE - 1;
    assert_int_equal(begin_with("k", "payload", HF_ABANDON_RETRY), HF_IN_PROGRESS);
    w->now += 1;
    assert_int_equal(begin_with("k", "other", HF_ABANDON_RETRY), HF_TOKEN_COLLISION);
    struct hf_request r = { .action = HF_BEGIN,
                            .key = hf_str("k"),
                            .begin = { .payload = hf_str("payload"), .lease_ms = 7 } };
    assert_int_equal(world_do(w, &r), HF_OK);
    answered(HF_CLAIM_STARTED, 2);
    assert_true(stored("k")->lease_ms == 7 && stored("k")->on_abandon == HF_ABANDON_UNKNOWN);
    assert_true(stored("k")->begun_at == w->now);
    /* The one who came late is refused. */
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "late", false), HF_STALE_FENCE);
    assert_int_equal(heartbeat("k", 1, 0), HF_STALE_FENCE);
    assert_int_equal(settle(HF_FAIL, "k", 1, "late", true), HF_STALE_FENCE);
    assert_int_equal(settle(HF_COMPLETE, "k", 2, "done", false), HF_OK);
}

static void a_key_that_a_call_has_collides(void **state)
{
    (void)state;
    struct hf_request hold = { .action = HF_PLACE_HOLD,
                               .key = hf_str("k"),
                               .place_hold = { hf_str("room"), hf_str("guest"), 1000, 0 } };
    assert_int_equal(world_do(w, &hold), HF_OK);
    w->now += WINDOW - 1;
    assert_int_equal(begin("k"), HF_TOKEN_COLLISION);
    assert_int_equal(w->plan.token.action, HF_PLACE_HOLD);
    assert_true(w->plan.token.expires_at == WORLD_START + WINDOW);
    w->now += 1;
    assert_int_equal(begin("k"), HF_OK);
}

static void what_the_store_cannot_do(void **state)
{
    (void)state;
    w->unreadable[WORLD_CLAIM] = true;
    assert_int_equal(begin("k"), HF_STORAGE_FAILURE);
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "", false), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_CLAIM] = false;
    w->unreadable[WORLD_TOKEN] = true;
    assert_int_equal(begin("k"), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_TOKEN] = false;
    w->refuse_writes = true;
    assert_int_equal(begin("k"), HF_STORAGE_FAILURE);
    assert_false(w->plan.fence_used);
    w->refuse_writes = false;
    assert_int_equal(begin("k"), HF_OK);
    w->refuse_writes = true;
    assert_int_equal(begin("k"), HF_IN_PROGRESS);
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "done", false), HF_STORAGE_FAILURE);
    assert_int_equal(settle(HF_FAIL, "k", 1, "no", false), HF_STORAGE_FAILURE);
    assert_int_equal(heartbeat("k", 1, 0), HF_STORAGE_FAILURE);
    assert_int_equal(stored("k")->state, HF_CLAIM_STARTED);
}

/* ---- Settling ---- */

static void complete_is_the_answer_from_then_on(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    w->now += 10;
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "charged", false), HF_OK);
    answered(HF_CLAIM_COMPLETED, 1);
    assert_false(w->plan.replayed);
    assert_true(is(stored("k")->response, "charged") &&
                stored("k")->settled_at == WORLD_START + 10);
    assert_true(stored("k")->expires_at == WORLD_START + 10 + WINDOW);
    w->now = WORLD_START + 10 + WINDOW - 1;
    assert_int_equal(begin("k"), HF_OK);
    answered(HF_CLAIM_COMPLETED, 1);
    assert_true(w->plan.replayed && is(w->plan.answer.claim.response, "charged"));
    assert_true(w->plan.token.expires_at == WORLD_START + 10 + WINDOW);
    w->now += 1; /* forgotten: the key is new, the fence still rises */
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "charged", false), HF_NOT_KNOWN);
    assert_int_equal(begin_with("k", "another payload", HF_ABANDON_UNKNOWN), HF_OK);
    answered(HF_CLAIM_STARTED, 2);
    assert_false(w->plan.replayed);
}

static void a_failure_for_good_is_the_answer(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    assert_int_equal(settle(HF_FAIL, "k", 1, "card declined", false), HF_OK);
    answered(HF_CLAIM_FAILED, 1);
    assert_int_equal(begin("k"), HF_OK);
    answered(HF_CLAIM_FAILED, 1);
    assert_true(w->plan.replayed && is(w->plan.answer.claim.response, "card declined"));
}

static void a_retryable_failure_begins_again(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    assert_int_equal(settle(HF_FAIL, "k", 1, "timeout", true), HF_OK);
    answered(HF_CLAIM_RETRYABLE, 1);
    assert_true(stored("k")->settled_at == w->now && stored("k")->expires_at == w->now + WINDOW);
    assert_int_equal(begin_with("k", "other", HF_ABANDON_UNKNOWN), HF_TOKEN_COLLISION);
    assert_int_equal(begin("k"), HF_OK);
    answered(HF_CLAIM_STARTED, 2);
    assert_true(stored("k")->settled_at == 0 && stored("k")->expires_at == 0);
    assert_true(stored("k")->response.size == 0);
}

static void saying_the_same_again(void **state)
{
    (void)state;
    const struct {
        enum hf_action action;
        bool retryable;
        enum hf_claim_state state;
    } ends[] = { { HF_COMPLETE, false, HF_CLAIM_COMPLETED },
                 { HF_FAIL, false, HF_CLAIM_FAILED },
                 { HF_FAIL, true, HF_CLAIM_RETRYABLE } };
    for (size_t i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%zu", i);
        assert_int_equal(begin(key), HF_OK);
        uint64_t fence = w->fence;
        assert_int_equal(settle(ends[i].action, key, fence, "words", ends[i].retryable), HF_OK);
        w->now += 5;
        for (size_t j = 0; j < 3; j++) {
            enum hf_status status = settle(ends[j].action, key, fence, "words", ends[j].retryable);
            assert_int_equal(status, i == j ? HF_OK : HF_TOKEN_COLLISION);
            assert_int_equal(w->plan.replayed, i == j);
            assert_int_equal(w->plan.answer.kind, i == j ? HF_RECORD_CLAIM : HF_NO_RECORD);
            assert_int_equal(w->plan.token.action, HF_BEGIN);
        }
        assert_int_equal(settle(ends[i].action, key, fence, "other", ends[i].retryable),
                         HF_TOKEN_COLLISION);
        assert_int_equal(heartbeat(key, fence, 0), HF_NOT_HELD);
        assert_int_equal(stored(key)->state, ends[i].state);
        assert_true(stored(key)->settled_at == w->now - 5); /* retries do not push its window */
    }
}

static void malformed_settlements(void **state)
{
    (void)state;
    static char big[HF_RESPONSE_MAX + 1];
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "", false), HF_NOT_KNOWN);
    assert_int_equal(begin("k"), HF_OK);
    assert_int_equal(settle(HF_COMPLETE, "", 1, "", false), HF_INVALID_REQUEST);
    assert_int_equal(settle(HF_COMPLETE, "k", 0, "", false), HF_INVALID_REQUEST);
    assert_int_equal(settle(HF_COMPLETE, "k", 2, "", false),
                     HF_INVALID_REQUEST); /* never given out */
    assert_int_equal(heartbeat("k", 1, -1), HF_INVALID_REQUEST);
    assert_int_equal(heartbeat("k", 1, HF_DURATION_MAX_MS + 1), HF_INVALID_REQUEST);
    struct hf_request r = {
        .action = HF_COMPLETE,
        .key = hf_str("k"),
        .settle = { .fence = 1, .response = hf_mem(big, HF_RESPONSE_MAX + 1), .lease_ms = -5 }
    };
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.settle.response.size--;
    assert_int_equal(world_do(w, &r), HF_OK); /* a lease means nothing to complete */
    assert_true(stored("k")->response.size == HF_RESPONSE_MAX);
}

static void heartbeats_keep_the_lease(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    w->now += LEASE - 1;
    assert_int_equal(heartbeat("k", 1, 0), HF_OK);
    answered(HF_CLAIM_STARTED, 1);
    assert_true(stored("k")->lease_expires_at == w->now + LEASE &&
                stored("k")->begun_at == WORLD_START);
    w->now += LEASE - 1;
    assert_int_equal(begin("k"), HF_IN_PROGRESS);
    assert_int_equal(heartbeat("k", 1, 5000), HF_OK);
    assert_true(stored("k")->lease_ms == 5000 && stored("k")->lease_expires_at == w->now + 5000);
    w->now += 9000; /* lapsed, but the fence is still the current one */
    assert_int_equal(heartbeat("k", 1, 0), HF_OK);
    answered(HF_CLAIM_STARTED, 1);
    assert_true(stored("k")->lease_expires_at == w->now + 5000);
}

static enum hf_status abandon(const char *key, uint64_t fence)
{
    return settle(HF_ABANDON, key, fence, "", false);
}

static void an_abandoned_claim_is_unknown_at_once(void **state)
{
    (void)state;
    assert_int_equal(begin("k"), HF_OK);
    w->now += 10;
    assert_int_equal(abandon("k", 0), HF_INVALID_REQUEST);
    assert_int_equal(abandon("other", 1), HF_NOT_KNOWN);
    assert_int_equal(abandon("k", 2), HF_INVALID_REQUEST);
    assert_int_equal(abandon("k", 1), HF_OK);
    answered(HF_CLAIM_UNKNOWN, 1);
    hf_time since = w->now;
    assert_true(stored("k")->lease_expires_at == since && stored("k")->lease_ms == LEASE);
    assert_int_equal(begin("k"), HF_OUTCOME_UNKNOWN);
    w->now += 10;
    assert_int_equal(abandon("k", 1), HF_OK); /* it stays unknown since then */
    answered(HF_CLAIM_UNKNOWN, 1);
    assert_true(stored("k")->lease_expires_at == since);
    /* The worker found out after all. */
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "done", false), HF_OK);
    assert_int_equal(abandon("k", 1), HF_NOT_HELD);
    assert_int_equal(begin_with("r", "payload", HF_ABANDON_RETRY), HF_OK);
    assert_int_equal(abandon("r", 2), HF_OK);
    assert_int_equal(begin_with("r", "payload", HF_ABANDON_RETRY), HF_OK); /* taken over at once */
    answered(HF_CLAIM_STARTED, 3);
    assert_int_equal(abandon("r", 2), HF_STALE_FENCE);
    w->refuse_writes = true;
    assert_int_equal(abandon("r", 3), HF_STORAGE_FAILURE);
}

static void a_settled_claim_is_remembered_for_its_retention(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_BEGIN,
                            .key = hf_str("k"),
                            .begin = { .payload = hf_str("p"), .retention_ms = -1 } };
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.begin.retention_ms = HF_DURATION_MAX_MS + 1;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.begin.retention_ms = HF_DURATION_MAX_MS;
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_true(stored("k")->retention_ms == HF_DURATION_MAX_MS && stored("k")->expires_at == 0);
    assert_int_equal(settle(HF_COMPLETE, "k", 1, "done", false), HF_OK);
    assert_true(stored("k")->expires_at == w->now + HF_DURATION_MAX_MS);
    w->now += HF_DURATION_MAX_MS - 1;
    assert_int_equal(world_do(w, &r), HF_OK);
    answered(HF_CLAIM_COMPLETED, 1);
    w->now++;
    assert_int_equal(world_do(w, &r), HF_OK); /* "once" ended: it begins again */
    answered(HF_CLAIM_STARTED, 2);
}

static void shown_at_a_time(void **state)
{
    (void)state;
    struct hf_claim c = { .state = HF_CLAIM_STARTED, .fence = 3, .lease_expires_at = 100 };
    struct hf_answer answer = { .status = HF_IN_PROGRESS };
    hf_claim_show(&c, 99, &answer);
    assert_int_equal(answer.kind, HF_RECORD_CLAIM);
    assert_int_equal(answer.status, HF_IN_PROGRESS); /* left to the caller */
    assert_int_equal(answer.claim.state, HF_CLAIM_STARTED);
    hf_claim_show(&c, 100, &answer);
    assert_int_equal(answer.claim.state, HF_CLAIM_UNKNOWN);
    assert_int_equal(c.state, HF_CLAIM_STARTED);
    c.state = HF_CLAIM_FAILED;
    hf_claim_show(&c, 1000, &answer);
    assert_int_equal(answer.claim.state, HF_CLAIM_FAILED);
}

static void alive(void **state)
{
    (void)state;
    struct hf_claim c = { .state = HF_CLAIM_STARTED };
    assert_true(hf_claim_alive(&c, INT64_MAX));
    const enum hf_claim_state settled[] = { HF_CLAIM_COMPLETED, HF_CLAIM_FAILED,
                                            HF_CLAIM_RETRYABLE };
    for (size_t i = 0; i < 3; i++) {
        c.state = settled[i];
        c.expires_at = 100;
        assert_true(hf_claim_alive(&c, 99));
        assert_false(hf_claim_alive(&c, 100));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_claim_begins),
        TEST(leases_and_keys_are_checked),
        TEST(a_second_begin_waits),
        TEST(an_unknown_outcome_stays_unknown),
        TEST(a_lapsed_lease_with_retry_is_taken_over),
        TEST(a_key_that_a_call_has_collides),
        TEST(what_the_store_cannot_do),
        TEST(complete_is_the_answer_from_then_on),
        TEST(a_failure_for_good_is_the_answer),
        TEST(a_retryable_failure_begins_again),
        TEST(saying_the_same_again),
        TEST(malformed_settlements),
        TEST(heartbeats_keep_the_lease),
        TEST(an_abandoned_claim_is_unknown_at_once),
        TEST(a_settled_claim_is_remembered_for_its_retention),
        TEST(shown_at_a_time),
        TEST(alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

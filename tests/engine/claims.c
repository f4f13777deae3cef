/* Claims, fences, leases, registers, merges and compact keys over a real journal, across
 * restarts. */
#include "engine/kit/engine.h"
#include "support/test.h"

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* A begin that must start; its fence. */
static uint64_t started(const char *key, enum hf_abandon on_abandon)
{
    assert_int_equal(kit_begin(k, key, "charge 100", MINUTE, on_abandon), HF_OK);
    assert_false(k->got.replayed);
    assert_int_equal(k->got.answer.claim.state, HF_CLAIM_STARTED);
    return k->got.answer.claim.fence;
}

static enum hf_status again(const char *key)
{
    return kit_begin(k, key, "charge 100", MINUTE, HF_ABANDON_UNKNOWN);
}

static enum hf_status write_register(const char *key, const char *name, const char *value,
                                     uint64_t fence)
{
    return kit_do(k,
                  (struct hf_request){
                      .action = HF_WRITE,
                      .key = hf_str(key),
                      .write = { .name = hf_str(name), .value = hf_str(value), .fence = fence } });
}

static enum hf_status write_if(const char *name, const char *value, uint64_t version)
{
    return kit_do(k, (struct hf_request){ .action = HF_WRITE,
                                          .key = hf_str(kit_key(k)),
                                          .write = { .name = hf_str(name),
                                                     .value = hf_str(value),
                                                     .has_if_version = true,
                                                     .if_version = version } });
}

static enum hf_status lease(enum hf_action action, const char *key, const char *name,
                            const char *holder, int64_t ttl_ms, uint64_t fence)
{
    return kit_do(k,
                  (struct hf_request){ .action = action,
                                       .key = hf_str(key),
                                       .lease = { hf_str(name), hf_str(holder), ttl_ms, fence } });
}

/* ---- Claims ---- */

static void payment_walkthrough_one_debit_despite_a_duplicate_and_a_stale_writer(void **state)
{
    (void)state;
    /* The account is written under a lease's fence: 41 comes before 42. */
    assert_int_equal(lease(HF_GRANT, "g-old", "payments", "old worker", MINUTE, 0), HF_OK);
    uint64_t stale = k->got.answer.lease.fence;
    kit_at(k, MINUTE); /* it pauses, and its lease runs out */
    assert_int_equal(lease(HF_GRANT, "g-new", "payments", "new worker", HOUR, 0), HF_OK);
    uint64_t token = k->got.answer.lease.fence;
    assert_true(token > stale);

    /* Attempt 1: reserved, debited, recorded. The answer is lost. */
    uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
    assert_int_equal(write_register("K/debit", "account", "balance 900", token), HF_OK);
    assert_int_equal(
        kit_settle_claim(k, HF_COMPLETE, "K", fence, "{\"ok\":true,\"charge\":\"C1\"}", false),
        HF_OK);

    /* Attempt 2, after a crash for good measure: the stored answer, no second debit. */
    kit_reopen(k);
    assert_int_equal(again("K"), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.claim.state, HF_CLAIM_COMPLETED);
    assert_true(kit_is(k->got.answer.claim.response, "{\"ok\":true,\"charge\":\"C1\"}"));
    assert_int_equal(write_register("K/debit", "account", "balance 900", token), HF_OK);
    assert_true(k->got.replayed);

    /* The paused writer wakes up: its fence is refused, and for good. */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(write_register(kit_key(k), "account", "balance 1000", stale),
                         HF_STALE_FENCE);
        kit_reopen(k);
    }
    assert_int_equal(write_register(kit_key(k), "account", "balance 800", token),
                     HF_STALE_FENCE); /* <= */
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "account"), HF_OK);
    assert_true(kit_is(k->got.answer.reg.value.bytes, "balance 900"));
    assert_int_equal(k->got.answer.reg.version, 1);
    assert_int_equal(k->got.answer.reg.fence, token);
}

static void a_begun_claim_is_in_progress_for_everybody_else(void **state)
{
    (void)state;
    uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
    assert_int_equal(again("K"), HF_IN_PROGRESS);
    assert_false(k->got.replayed);
    assert_int_equal(k->got.answer.claim.fence, fence);
    assert_int_equal(kit_begin(k, "K", "charge 200", MINUTE, HF_ABANDON_UNKNOWN),
                     HF_TOKEN_COLLISION);
    kit_reopen(k);
    assert_int_equal(again("K"), HF_IN_PROGRESS);
    assert_int_equal(kit_begin(k, "K", "charge 200", MINUTE, HF_ABANDON_UNKNOWN),
                     HF_TOKEN_COLLISION);
    assert_int_equal(kit_place(k, "K", "room", "guest", HOUR),
                     HF_TOKEN_COLLISION); /* they share the keys */
}

static void an_abandoned_claim_is_unknown_and_nobody_runs_it_again(void **state)
{
    (void)state;
    uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
    kit_at(k, MINUTE - 1);
    assert_int_equal(again("K"), HF_IN_PROGRESS);
    kit_at(k, MINUTE);
    assert_int_equal(again("K"), HF_OUTCOME_UNKNOWN);
    assert_int_equal(k->got.answer.claim.state, HF_CLAIM_UNKNOWN);
    kit_reopen(k);
    kit_at(k, 1000 * DAY); /* one that is not settled is never forgotten */
    kit_settle(k);
    assert_int_equal(again("K"), HF_OUTCOME_UNKNOWN);
    assert_int_equal(kit_get(k, HF_GET_CLAIM, "K"), HF_OK);
    assert_int_equal(k->got.answer.claim.state, HF_CLAIM_UNKNOWN);
    /* An operator settles it with its fence. */
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "found at the bank", false),
                     HF_OK);
    assert_int_equal(again("K"), HF_OK);
    assert_true(kit_is(k->got.answer.claim.response, "found at the bank"));
}

static void
an_abandoned_claim_of_kind_retry_is_taken_over_and_the_late_finisher_refused(void **state)
{
    (void)state;
    uint64_t first = started("K", HF_ABANDON_RETRY);
    kit_at(k, MINUTE);
    kit_reopen(k);
    uint64_t second = started("K", HF_ABANDON_RETRY);
    assert_true(second > first);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", first, "late", false), HF_STALE_FENCE);
    assert_int_equal(kit_settle_claim(k, HF_FAIL, "K", first, "late", true), HF_STALE_FENCE);
    assert_int_equal(kit_settle_claim(k, HF_HEARTBEAT, "K", first, NULL, false), HF_STALE_FENCE);
    assert_int_equal(again("K"), HF_IN_PROGRESS);
    kit_reopen(k);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", first, "late", false), HF_STALE_FENCE);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", second, "in time", false), HF_OK);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", first, "late", false), HF_STALE_FENCE);
    assert_int_equal(again("K"), HF_OK);
    assert_true(kit_is(k->got.answer.claim.response, "in time"));
}

static void a_heartbeat_keeps_the_lease(void **state)
{
    (void)state;
    uint64_t fence = started("K", HF_ABANDON_RETRY);
    for (int i = 1; i <= 10; i++) {
        kit_at(k, i * 50 * SECOND);
        assert_int_equal(kit_settle_claim(k, HF_HEARTBEAT, "K", fence, NULL, false), HF_OK);
        assert_int_equal(k->got.answer.claim.lease_expires_at,
                         KIT_START + i * 50 * SECOND + MINUTE);
    }
    kit_reopen(k);
    kit_at(k, 500 * SECOND + MINUTE - 1);
    assert_int_equal(again("K"), HF_IN_PROGRESS);
    assert_int_equal(kit_settle_claim(k, HF_FAIL, "K", fence, "card declined", false), HF_OK);
    assert_int_equal(kit_settle_claim(k, HF_HEARTBEAT, "K", fence, NULL, false), HF_NOT_HELD);
    assert_int_equal(again("K"), HF_OK); /* failed for good: the failure is the answer */
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.claim.state, HF_CLAIM_FAILED);
    assert_true(kit_is(k->got.answer.claim.response, "card declined"));
}

static void failed_and_retryable_begins_again_with_a_higher_fence(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
        assert_true(fence > last);
        last = fence;
        assert_int_equal(kit_settle_claim(k, HF_FAIL, "K", fence, "timeout", true), HF_OK);
        assert_int_equal(k->got.answer.claim.state, HF_CLAIM_RETRYABLE);
        if (i % 2)
            kit_reopen(k);
    }
    assert_int_equal(kit_begin(k, "K", "charge 200", MINUTE, HF_ABANDON_UNKNOWN),
                     HF_TOKEN_COLLISION);
}

static void settling_twice_alike_is_once_and_otherwise_a_collision(void **state)
{
    (void)state;
    uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence + 1, "done", false),
                     HF_INVALID_REQUEST);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "done", false), HF_OK);
    hf_time settled = k->got.answer.claim.settled_at;
    kit_at(k, SECOND);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "done", false), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.claim.settled_at, settled);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "done otherwise", false),
                     HF_TOKEN_COLLISION);
    assert_int_equal(kit_settle_claim(k, HF_FAIL, "K", fence, "done", false), HF_TOKEN_COLLISION);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "unheard of", 1, "done", false),
                     HF_NOT_KNOWN);
}

static void a_settled_claim_is_forgotten_one_window_later_and_its_fence_is_not(void **state)
{
    (void)state;
    k->options.idempotency_window_ms = 10 * MINUTE;
    kit_reopen(k);
    uint64_t fence = started("K", HF_ABANDON_UNKNOWN);
    kit_at(k, MINUTE);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "done", false), HF_OK);
    kit_at(k, 11 * MINUTE - 1);
    assert_int_equal(again("K"), HF_OK);
    assert_true(k->got.replayed);
    kit_at(k, 11 * MINUTE);
    assert_int_equal(kit_get(k, HF_GET_CLAIM, "K"), HF_NOT_KNOWN);
    for (int i = 0; i < 2000; i++) /* memory is looked through part by part */
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).claims, 0);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_CLAIM, "K"), HF_NOT_KNOWN);
    assert_true(started("K", HF_ABANDON_UNKNOWN) > fence);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "K", fence, "late", false), HF_STALE_FENCE);
}

static void fences_rise_over_restarts_snapshots_and_lost_files(void **state)
{
    (void)state;
    uint64_t last = 0;
    k->options.snapshot_every_bytes = 50000;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    for (int i = 0; i < 60; i++) {
        char name[24];
        snprintf(name, sizeof name, "claim-%d", i);
        kit_at(k, i * 30 * SECOND);
        uint64_t fence = started(name, HF_ABANDON_UNKNOWN);
        assert_true(fence > last);
        last = fence;
        assert_int_equal(kit_settle_claim(k, HF_COMPLETE, name, fence, "", false), HF_OK);
        assert_int_equal(lease(HF_GRANT, kit_key(k), name, "me", 1, 0), HF_OK);
        assert_true(k->got.answer.lease.fence > last);
        last = k->got.answer.lease.fence;
        if (i % 10 == 9) {
            kit_settle(k);
            assert_int_equal(kit_files(k, ".snap"), !k->remote);
            kit_close(k);
            if (i % 20 == 19)
                kit_remove(k, ".snap");
            kit_open(k);
        }
    }
}

/* ---- Leases ---- */

static void a_lease_is_for_one_until_it_is_returned_or_runs_out(void **state)
{
    (void)state;
    assert_int_equal(lease(HF_GRANT, "1", "leader", "a", MINUTE, 0), HF_OK);
    uint64_t a = k->got.answer.lease.fence;
    assert_int_equal(lease(HF_GRANT, "2", "leader", "b", MINUTE, 0), HF_LEASE_HELD);
    kit_reopen(k);
    assert_int_equal(lease(HF_GRANT, "1", "leader", "a", MINUTE, 0),
                     HF_OK); /* the same grant, again */
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.lease.fence, a);
    assert_int_equal(lease(HF_GRANT, "3", "leader", "a", MINUTE, 0), HF_LEASE_HELD);
    kit_at(k, 30 * SECOND);
    assert_int_equal(lease(HF_RENEW, "", "leader", NULL, 0, a), HF_OK);
    assert_int_equal(k->got.answer.lease.expires_at, KIT_START + 90 * SECOND);
    assert_true(kit_is(k->got.answer.lease.holder, "a"));
    kit_at(k, 90 * SECOND - 1);
    assert_int_equal(lease(HF_GRANT, "4", "leader", "b", MINUTE, 0), HF_LEASE_HELD);
    kit_at(k, 90 * SECOND);
    assert_int_equal(lease(HF_RENEW, "", "leader", NULL, 0, a), HF_NOT_HELD);
    assert_int_equal(lease(HF_GRANT, "4", "leader", "b", MINUTE, 0),
                     HF_LEASE_HELD); /* remembered */
    assert_int_equal(lease(HF_GRANT, "5", "leader", "a rather longer holder's name", MINUTE, 0),
                     HF_OK);
    uint64_t b = k->got.answer.lease.fence;
    assert_true(b > a);
    assert_int_equal(lease(HF_RENEW, "", "leader", NULL, 0, a), HF_STALE_FENCE);
    assert_int_equal(lease(HF_RETURN, "", "leader", NULL, 0, a), HF_STALE_FENCE);
    assert_int_equal(lease(HF_RETURN, "", "leader", NULL, 0, b + 1), HF_INVALID_REQUEST);
    assert_int_equal(lease(HF_RETURN, "", "leader", NULL, 0, b), HF_OK);
    kit_reopen(k);
    assert_int_equal(lease(HF_RETURN, "", "leader", NULL, 0, b), HF_OK); /* twice is once */
    assert_int_equal(lease(HF_RENEW, "", "leader", NULL, 0, b), HF_NOT_HELD);
    assert_int_equal(kit_get(k, HF_GET_LEASE, "leader"), HF_OK);
    assert_true(kit_is(k->got.answer.lease.holder, "a rather longer holder's name"));
    assert_int_equal(lease(HF_GRANT, "6", "leader", "c", MINUTE, 0), HF_OK);
    assert_true(k->got.answer.lease.fence > b);
    assert_int_equal(lease(HF_RENEW, "", "nobody's", NULL, 0, 1), HF_NOT_KNOWN);
}

static void a_hold_with_a_fence_refuses_the_older_ones(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .place_hold = { hf_str("machine"), hf_str("w"), HOUR, 7 } };
    assert_int_equal(kit_resource(k, "machine", 10), HF_OK);
    static const struct {
        const char *key;
        uint64_t fence;
        enum hf_status status;
    } steps[] = {
        { "1", 7, HF_OK }, { "2", 7, HF_STALE_FENCE }, { "3", 6, HF_STALE_FENCE },
        { "4", 0, HF_OK }, { "5", 8, HF_OK },          { "6", 7, HF_STALE_FENCE },
        { "1", 7, HF_OK }, /* the first answer */
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        r.key = hf_str(steps[i].key);
        r.place_hold.fence = steps[i].fence;
        assert_int_equal(kit_do(k, r), steps[i].status);
        kit_reopen(k);
    }
    assert_int_equal(kit_get(k, HF_GET_RESOURCE, "machine"), HF_OK);
    assert_int_equal(k->got.answer.resource.fence, 8);
    assert_int_equal(k->got.answer.resource.held, 3);
}

static enum hf_status require_of_resource(enum hf_require wish)
{
    struct hf_request r = { .action = HF_SET_RESOURCE };
    r.set_resource.name = hf_str("machine");
    r.set_resource.capacity = 10;
    r.set_resource.require_fence = wish;
    return kit_do(k, r);
}

static void a_resource_that_requires_a_fence_refuses_holds_without_one(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .place_hold = { hf_str("machine"), hf_str("w"), HOUR, 0 } };
    assert_int_equal(require_of_resource((enum hf_require)3), HF_INVALID_REQUEST);
    assert_int_equal(require_of_resource(HF_REQUIRED), HF_OK);
    static const struct {
        const char *key;
        uint64_t fence;
        enum hf_require wish;
        enum hf_status status;
    } steps[] = { { "1", 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE },
                  { "2", 7, HF_REQUIRED, HF_OK },
                  { "3", 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE },
                  { "4", 7, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE },
                  { "1", 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE }, /* the first answer */
                  { "5", 0, HF_NOT_REQUIRED, HF_OK } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(require_of_resource(steps[i].wish), HF_OK);
        assert_int_equal(k->got.answer.resource.require_fence, i < 5);
        kit_reopen(k);
        r.key = hf_str(steps[i].key);
        r.place_hold.fence = steps[i].fence;
        assert_int_equal(kit_do(k, r), steps[i].status);
    }
    assert_int_equal(kit_get(k, HF_GET_RESOURCE, "machine"), HF_OK);
    assert_true(k->got.answer.resource.open && !k->got.answer.resource.require_fence);
    assert_int_equal(k->got.answer.resource.held, 2);
}

/* ---- Registers ---- */

/* key "": a new one. */
static enum hf_status write_or_delete(enum hf_action action, const char *key, uint64_t fence,
                                      enum hf_require wish)
{
    struct hf_request r = { .action = action, .key = hf_str(key) };
    r.write.name = hf_str("leader");
    r.write.value = hf_str(action == HF_WRITE ? "v" : "");
    r.write.fence = fence;
    r.write.require_fence = wish;
    return kit_do(k, r);
}

/* Also over a restart, and over its deletion. */
static void a_register_that_requires_a_fence_refuses_writes_without_one(void **state)
{
    (void)state;
    static const struct {
        enum hf_action action;
        uint64_t fence;
        enum hf_require wish;
        enum hf_status status;
        bool required;
    } steps[] = { { HF_WRITE, 0, HF_REQUIRED, HF_OK, true },
                  { HF_WRITE, 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE, true },
                  { HF_WRITE, 0, HF_NOT_REQUIRED, HF_STALE_FENCE, true },
                  { HF_DELETE_REGISTER, 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE, true },
                  { HF_WRITE, 5, HF_REQUIRE_UNCHANGED, HF_OK, true },
                  { HF_WRITE, 5, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE, true },
                  { HF_DELETE_REGISTER, 6, HF_REQUIRE_UNCHANGED, HF_OK, true },
                  { HF_WRITE, 0, HF_REQUIRE_UNCHANGED, HF_STALE_FENCE, false },
                  { HF_WRITE, 7, HF_REQUIRE_UNCHANGED, HF_OK, true },
                  { HF_WRITE, 8, HF_NOT_REQUIRED, HF_OK, false },
                  { HF_WRITE, 0, HF_REQUIRE_UNCHANGED, HF_OK, false },
                  { HF_WRITE, 0, (enum hf_require)3, HF_INVALID_REQUEST, false },
                  { HF_DELETE_REGISTER, 0, HF_REQUIRE_UNCHANGED, HF_OK, false } };
    for (size_t i = 0; i < 2 * sizeof steps / sizeof *steps; i++) {
        char key[8];
        snprintf(key, sizeof key, "s%zu", i / 2);
        assert_int_equal(
            write_or_delete(steps[i / 2].action, key, steps[i / 2].fence, steps[i / 2].wish),
            steps[i / 2].status);
        assert_int_equal(k->got.replayed, i % 2);
        kit_reopen(k);
        if (kit_get(k, HF_GET_REGISTER, "leader") == HF_OK)
            assert_int_equal(k->got.answer.reg.require_fence, steps[i / 2].required);
    }
    /* The key is bound to the wish. */
    assert_int_equal(write_or_delete(HF_WRITE, "s0", 0, HF_REQUIRE_UNCHANGED), HF_TOKEN_COLLISION);
    assert_int_equal(write_or_delete(HF_WRITE, "s0", 0, HF_NOT_REQUIRED), HF_TOKEN_COLLISION);
}

static void registers_are_written_by_version(void **state)
{
    (void)state;
    assert_int_equal(write_if("r", "one", 1), HF_VERSION_MISMATCH);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r"), HF_NOT_KNOWN);
    assert_int_equal(write_if("r", "one", 0), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 1);
    assert_int_equal(write_if("r", "two", 0), HF_VERSION_MISMATCH);
    assert_int_equal(write_if("r", "a longer value than before", 1), HF_OK);
    kit_reopen(k);
    assert_int_equal(write_if("r", "three", 1), HF_VERSION_MISMATCH);
    assert_int_equal(write_if("r", "", 2), HF_OK);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r"), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 3);
    assert_int_equal(k->got.answer.reg.value.type, HF_TYPE_PLAIN);
    assert_int_equal(k->got.answer.reg.value.bytes.size, 0);
}

static void a_retried_write_gets_its_first_answer_and_not_the_newer_value(void **state)
{
    (void)state;
    assert_int_equal(write_register("w1", "r", "one", 5), HF_OK);
    assert_int_equal(write_register("w2", "r", "two", 6), HF_OK);
    assert_int_equal(write_register("w1", "r", "one", 5), HF_OK);
    assert_true(k->got.replayed);
    assert_true(kit_is(k->got.answer.reg.value.bytes, "one"));
    assert_int_equal(k->got.answer.reg.version, 1);
    assert_int_equal(write_register("w3", "r", "three", 6), HF_STALE_FENCE);
    assert_int_equal(write_register("w4", "r", "four", 0), HF_OK); /* no fence: no question */
    assert_int_equal(k->got.answer.reg.fence, 6);                  /* and the highest stays */
    assert_int_equal(write_register("w3", "r", "three", 6), HF_STALE_FENCE);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r"), HF_OK);
    assert_true(kit_is(k->got.answer.reg.value.bytes, "four"));
    assert_int_equal(k->got.answer.reg.version, 3);
}

/* ---- Merges ---- */

static enum hf_status merge(const char *name, const struct hf_value *value)
{
    return kit_do(k, (struct hf_request){ .action = HF_MERGE,
                                          .merge = { .name = hf_str(name), .value = value } });
}

/* Every value of the list merged in, in an order at random and some of them twice. */
static void merge_all(uint64_t *random, const char *name, const struct hf_value *values,
                      size_t count)
{
    size_t order[64], n = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t copies = 1 + test_below(random, 3); copies > 0; copies--)
            order[n++] = i;
    for (size_t i = n; i > 1; i--) {
        size_t other = test_below(random, i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(merge(name, &values[order[i]]), HF_OK);
        if (test_below(random, 8) == 0)
            kit_reopen(k);
    }
}

static char *value_text(const char *name)
{
    assert_int_equal(kit_get(k, HF_GET_REGISTER, name), HF_OK);
    char *all = kit_answer(k);
    char *shown =
        strdup(strchr(all, '|')); /* without version and time, with the name cut off below */
    free(all);
    assert_non_null(shown);
    return shown;
}

static void merges_come_to_the_same_whatever_the_order_and_how_often(void **state)
{
    (void)state;
    static const struct hf_item a[] = { { { "x", 1 }, 5, 1 }, { { "y", 1 }, 2, 0 } };
    static const struct hf_item b[] = { { { "y", 1 }, 9, 4 }, { { "z", 1 }, 1, 7 } };
    static const struct hf_item c[] = { { { "x", 1 }, 4, 3 } };
    static const struct hf_item both[] = { { { "x", 1 }, 5, 3 },
                                           { { "y", 1 }, 9, 4 },
                                           { { "z", 1 }, 1, 7 } };
    uint64_t random = test_seed("merges", 11);
    static const struct {
        enum hf_register_type type;
        int64_t total;
    } kinds[] = {
        { HF_TYPE_UNION, 0 }, { HF_TYPE_VECTOR, 0 }, { HF_TYPE_COUNTER, 15 }, { HF_TYPE_UPDOWN, 1 }
    };
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        const struct hf_value values[] = {
            { .type = kinds[n].type, .items = a, .item_count = 2 },
            { .type = kinds[n].type, .items = b, .item_count = 2 },
            { .type = kinds[n].type, .items = c, .item_count = 1 },
        };
        char name[24];
        snprintf(name, sizeof name, "items-%zu", n);
        merge_all(&random, name, values, 3);
        assert_int_equal(kit_get(k, HF_GET_REGISTER, name), HF_OK);
        const struct hf_value *v = &k->got.answer.reg.value;
        assert_int_equal(v->type, kinds[n].type);
        assert_int_equal(v->item_count, 3);
        assert_int_equal(v->number, kinds[n].total);
        for (size_t i = 0; i < 3; i++) {
            assert_memory_equal(v->items[i].name.data, both[i].name.data, 1);
            assert_int_equal(v->items[i].up, kinds[n].type == HF_TYPE_UNION ? 0 : both[i].up);
            assert_int_equal(v->items[i].down, kinds[n].type == HF_TYPE_UPDOWN ? both[i].down : 0);
        }
    }
    const struct hf_value numbers[] = { { .type = HF_TYPE_MAX, .number = -5 },
                                        { .type = HF_TYPE_MAX, .number = INT64_MAX },
                                        { .type = HF_TYPE_MAX, .number = INT64_MIN } };
    merge_all(&random, "max", numbers, 3);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "max"), HF_OK);
    assert_true(k->got.answer.reg.value.number == INT64_MAX);
    const struct hf_value least[] = { { .type = HF_TYPE_MIN, .number = -5 },
                                      { .type = HF_TYPE_MIN, .number = 3 } };
    merge_all(&random, "min", least, 2);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "min"), HF_OK);
    assert_true(k->got.answer.reg.value.number == -5);
    const struct hf_value flags[] = { { .type = HF_TYPE_OR, .flag = true },
                                      { .type = HF_TYPE_OR } };
    merge_all(&random, "or", flags, 2);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "or"), HF_OK);
    assert_true(k->got.answer.reg.value.flag);
    const struct hf_value lww[] = {
        { .type = HF_TYPE_LWW, .timestamp = 5, .node = hf_str("b"), .bytes = hf_str("this one") },
        { .type = HF_TYPE_LWW,
          .timestamp = 5,
          .node = hf_str("a"),
          .bytes = hf_str("same time, lower node") },
        { .type = HF_TYPE_LWW, .timestamp = 4, .node = hf_str("c"), .bytes = hf_str("earlier") },
    };
    merge_all(&random, "lww", lww, 3);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "lww"), HF_OK);
    assert_true(kit_is(k->got.answer.reg.value.bytes, "this one"));
    assert_true(kit_is(k->got.answer.reg.value.node, "b"));
    assert_int_equal(k->got.answer.reg.value.timestamp, 5);
}

static void a_merge_that_changes_nothing_writes_nothing(void **state)
{
    (void)state;
    struct hf_value value = { .type = HF_TYPE_MAX, .number = 10 };
    assert_int_equal(merge("m", &value), HF_OK);
    uint64_t written = kit_written(k);
    char *shown = value_text("m");
    for (int64_t n = 10; n > -100; n--) {
        value.number = n;
        assert_int_equal(merge("m", &value), HF_OK);
        assert_int_equal(k->got.answer.reg.version, 1);
        assert_int_equal(k->got.answer.reg.value.number, 10);
    }
    assert_int_equal(kit_written(k), written);
    char *still = value_text("m");
    assert_string_equal(still, shown);
    free(shown);
    free(still);
    value.type = HF_TYPE_MIN; /* a register keeps its type */
    assert_int_equal(merge("m", &value), HF_INVALID_REQUEST);
    assert_int_equal(write_register(kit_key(k), "m", "x", 0), HF_INVALID_REQUEST);
    assert_int_equal(write_register(kit_key(k), "plain", "x", 0), HF_OK);
    assert_int_equal(merge("plain", &value), HF_INVALID_REQUEST);
}

/* ---- Compact keys ---- */

static enum hf_status numbered(uint64_t number, const char *resource)
{
    return kit_do(
        k, (struct hf_request){ .action = HF_PLACE_HOLD,
                                .client = hf_str("till-7"),
                                .sequence = number,
                                .place_hold = { hf_str(resource), hf_str("till"), HOUR, 0 } });
}

static void numbered_requests_are_answered_again_inside_the_window_of_256(void **state)
{
    (void)state;
    enum { COUNT = 600 };
    static char id[COUNT + 1][HF_ID_SIZE];
    char resource[24];
    for (uint64_t n = 1; n <= COUNT; n++) {
        snprintf(resource, sizeof resource, "r-%llu", (unsigned long long)n);
        assert_int_equal(numbered(n, resource), HF_OK);
        assert_false(k->got.replayed);
        memcpy(id[n], k->got.answer.hold.id, HF_ID_SIZE);
    }
    assert_int_equal(kit_stats(k).tokens, 0); /* no record for each */
    for (int round = 0; round < 3; round++) {
        for (uint64_t n = 1; n <= COUNT; n++) {
            snprintf(resource, sizeof resource, "r-%llu", (unsigned long long)n);
            enum hf_status st = numbered(n, resource);
            if (n <= COUNT - HF_SEQUENCE_WINDOW) {
                assert_int_equal(st, HF_WINDOW_ELAPSED);
                continue;
            }
            assert_int_equal(st, HF_OK);
            assert_true(k->got.replayed);
            assert_string_equal(k->got.answer.hold.id, id[n]);
        }
        assert_int_equal(numbered(COUNT, "another"), HF_TOKEN_COLLISION);
        assert_int_equal(kit_stats(k).holds, COUNT);
        kit_at(k, (round + 1) * 1000 * DAY); /* numbers leave by number, not by time */
        kit_settle(k);
        kit_reopen(k);
    }
}

static void numbers_may_come_out_of_order_and_each_counts_once(void **state)
{
    (void)state;
    enum { COUNT = 250 };
    static bool used[COUNT + 1];
    uint64_t random = test_seed("out of order", 3);
    char resource[24];
    memset(used, 0, sizeof used);
    for (int i = 0; i < 1500; i++) {
        uint64_t n = 1 + test_below(&random, COUNT);
        snprintf(resource, sizeof resource, "r-%llu", (unsigned long long)n);
        assert_int_equal(numbered(n, resource), HF_OK);
        assert_int_equal(k->got.replayed, used[n]);
        used[n] = true;
        if (i % 300 == 299)
            kit_reopen(k);
    }
    uint64_t distinct = 0;
    for (int n = 1; n <= COUNT; n++)
        distinct += used[n];
    assert_int_equal(kit_stats(k).holds, distinct);
}

static void a_gap_that_leaves_the_window_is_closed_for_ever(void **state)
{
    (void)state;
    assert_int_equal(numbered(1, "a"), HF_OK);
    assert_int_equal(numbered(300, "b"), HF_OK);
    assert_int_equal(numbered(44, "c"), HF_WINDOW_ELAPSED); /* 300 - 256 */
    assert_int_equal(numbered(45, "c"), HF_OK);             /* never used, still inside */
    assert_false(k->got.replayed);
    kit_reopen(k);
    assert_int_equal(numbered(45, "c"), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(numbered(301, "d"), HF_OK); /* 45 goes out */
    assert_int_equal(numbered(45, "c"), HF_WINDOW_ELAPSED);
    const uint64_t far = 301 + HF_SEQUENCE_AHEAD_MAX;
    assert_int_equal(numbered(far, "e"), HF_OK);
    assert_int_equal(numbered(301, "d"), HF_WINDOW_ELAPSED);
    assert_int_equal(numbered(far - 255, "f"), HF_OK);
    assert_int_equal(numbered(far - 256, "g"), HF_WINDOW_ELAPSED);
    kit_reopen(k);
    assert_int_equal(numbered(far, "e"), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_stats(k).holds, 6);
}

static void one_wild_number_does_not_lock_the_client_out(void **state)
{
    (void)state;
    const uint64_t most = HF_SEQUENCE_AHEAD_MAX;
    assert_int_equal(numbered(most + 1, "a"), HF_INVALID_REQUEST); /* the first counts from 0 */
    assert_int_equal(numbered(1, "a"), HF_OK);
    assert_int_equal(numbered(UINT64_MAX, "b"), HF_INVALID_REQUEST);
    assert_int_equal(numbered(most + 2, "b"), HF_INVALID_REQUEST);
    assert_false(k->got.replayed);
    assert_int_equal(k->got.token.action, 0); /* nothing is remembered of it */
    assert_int_equal(numbered(2, "b"), HF_OK);
    kit_reopen(k);
    assert_int_equal(numbered(2, "b"), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(numbered(most + 2, "c"), HF_OK);
    assert_int_equal(kit_stats(k).holds, 3);
    assert_int_equal(kit_stats(k).clients, 1);
}

static enum hf_status look_up(uint64_t number)
{
    return kit_do(k, (struct hf_request){
                         .action = HF_GET_TOKEN, .client = hf_str("till-7"), .sequence = number });
}

static void what_happened_to_a_number(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    assert_int_equal(look_up(1), HF_NOT_KNOWN);
    assert_int_equal(numbered(300, "room"), HF_OK);
    memcpy(id, k->got.answer.hold.id, sizeof id);
    assert_int_equal(numbered(301, "room"), HF_RESOURCE_UNAVAILABLE);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(look_up(300), HF_OK);
        assert_string_equal(k->got.answer.hold.id, id);
        assert_int_equal(k->got.answer.hold.state, HF_HELD);
        assert_int_equal(k->got.token.action, HF_PLACE_HOLD);
        assert_int_equal(k->got.token.status, HF_OK);
        assert_true(k->got.token.expires_at == INT64_MAX);
        assert_int_equal(look_up(301), HF_OK);
        assert_int_equal(k->got.token.status, HF_RESOURCE_UNAVAILABLE);
        assert_int_equal(look_up(299), HF_NOT_KNOWN);
        assert_int_equal(look_up(302), HF_NOT_KNOWN);
        assert_int_equal(look_up(45), HF_WINDOW_ELAPSED);
        assert_int_equal(look_up(0), HF_INVALID_REQUEST);
        k->tenant = "elsewhere";
        assert_int_equal(look_up(300), HF_NOT_KNOWN);
        k->tenant = "";
        kit_reopen(k);
    }
    assert_int_equal(numbered(299, "other"), HF_OK); /* looking it up did not use it */
}

static void refusals_under_a_number_are_remembered_and_malformed_numbers_are_not(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    kit_held(k, "room", HOUR, id);
    assert_int_equal(numbered(1, "room"), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), id), HF_OK);
    assert_int_equal(numbered(1, "room"), HF_RESOURCE_UNAVAILABLE);
    assert_true(k->got.replayed);
    assert_int_equal(numbered(2, "room"), HF_OK);
    assert_int_equal(numbered(0, "room"), HF_INVALID_REQUEST);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_RELEASE,
                                                    .key = hf_str("both"),
                                                    .client = hf_str("till-7"),
                                                    .sequence = 3,
                                                    .hold = { hf_str(id) } }),
                     HF_INVALID_REQUEST);
    assert_int_equal(numbered(3, "another"), HF_OK); /* 3 is still new */
    assert_false(k->got.replayed);
    k->tenant = "elsewhere"; /* where till-7 is another client */
    assert_int_equal(numbered(1, "room"), HF_OK);
    assert_false(k->got.replayed);
}

static void numbered_answers_are_read_from_compressed_segments(void **state)
{
    (void)state;
    both_needs_files();
    char resource[24];
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = MINUTE;
    kit_open(k);
    for (uint64_t n = 1; n <= 200; n++) {
        snprintf(resource, sizeof resource, "r-%llu", (unsigned long long)n);
        assert_int_equal(numbered(n, resource), HF_OK);
        if (n % 20 == 0) {
            kit_at(k, (int64_t)n * MINUTE);
            kit_settle(k);
        }
    }
    assert_true(kit_files(k, ".zst") > 5);
    for (int round = 0; round < 2; round++) {
        for (uint64_t n = 200; n >= 1; n--) {
            snprintf(resource, sizeof resource, "r-%llu", (unsigned long long)n);
            assert_int_equal(numbered(n, resource), HF_OK);
            assert_true(k->got.replayed);
            assert_true(kit_is(k->got.answer.hold.resource, resource));
        }
        kit_reopen(k);
    }
}

static void begins_of_a_claim_in_progress_are_races(void **state)
{
    (void)state;
    uint64_t before = kit_stats(k).races;
    uint64_t fence = started("pay", HF_ABANDON_UNKNOWN);
    assert_int_equal(again("pay"), HF_IN_PROGRESS);
    assert_int_equal(again("pay"), HF_IN_PROGRESS);
    assert_int_equal(kit_stats(k).races, before + 2);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "pay", fence, "r", false), HF_OK);
    assert_int_equal(again("pay"), HF_OK);
    assert_int_equal(kit_stats(k).races, before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(payment_walkthrough_one_debit_despite_a_duplicate_and_a_stale_writer),
        TEST(a_begun_claim_is_in_progress_for_everybody_else),
        TEST(begins_of_a_claim_in_progress_are_races),
        TEST(an_abandoned_claim_is_unknown_and_nobody_runs_it_again),
        TEST(an_abandoned_claim_of_kind_retry_is_taken_over_and_the_late_finisher_refused),
        TEST(a_heartbeat_keeps_the_lease),
        TEST(failed_and_retryable_begins_again_with_a_higher_fence),
        TEST(settling_twice_alike_is_once_and_otherwise_a_collision),
        TEST(a_settled_claim_is_forgotten_one_window_later_and_its_fence_is_not),
        TEST(fences_rise_over_restarts_snapshots_and_lost_files),
        TEST(a_lease_is_for_one_until_it_is_returned_or_runs_out),
        TEST(a_hold_with_a_fence_refuses_the_older_ones),
        TEST(a_resource_that_requires_a_fence_refuses_holds_without_one),
        TEST(a_register_that_requires_a_fence_refuses_writes_without_one),
        TEST(registers_are_written_by_version),
        TEST(a_retried_write_gets_its_first_answer_and_not_the_newer_value),
        TEST(merges_come_to_the_same_whatever_the_order_and_how_often),
        TEST(a_merge_that_changes_nothing_writes_nothing),
        TEST(numbered_requests_are_answered_again_inside_the_window_of_256),
        TEST(numbers_may_come_out_of_order_and_each_counts_once),
        TEST(a_gap_that_leaves_the_window_is_closed_for_ever),
        TEST(one_wild_number_does_not_lock_the_client_out),
        TEST(what_happened_to_a_number),
        TEST(refusals_under_a_number_are_remembered_and_malformed_numbers_are_not),
        TEST(numbered_answers_are_read_from_compressed_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

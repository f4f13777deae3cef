/* The judge minds what breaks the rules of claims and leases: fences, late finishers, unknown
 * outcomes. */
#include "judge/tests/told.h"

#define LEASE INT64_C(50)

/* SHA-256 of "pay". */
static const uint8_t fingerprint[HF_DIGEST_SIZE] = {
    0x6b, 0xf9, 0xbf, 0xdd, 0xda, 0x3e, 0xea, 0xe9, 0x7c, 0x2f, 0x79, 0xc1, 0x57, 0x78, 0x47, 0x61,
    0x1a, 0x33, 0xab, 0xcb, 0xc9, 0xc9, 0x66, 0xfe, 0x9f, 0x90, 0xa4, 0xcf, 0xde, 0xea, 0xa2, 0x6b
};

static struct op begin(uint64_t fence, enum hf_abandon on_abandon)
{
    struct op op = answer(HF_BEGIN, HF_OK);
    op.q.key = hf_str("k");
    op.q.begin.fingerprint = fingerprint;
    op.q.begin.lease_ms = LEASE;
    op.q.begin.on_abandon = on_abandon;
    op.r.answer.kind = HF_RECORD_CLAIM;
    op.r.answer.claim = (struct hf_claim){ .tenant = hf_str(""),
                                           .key = hf_str("k"),
                                           .state = HF_CLAIM_STARTED,
                                           .on_abandon = on_abandon,
                                           .fence = fence,
                                           .lease_ms = LEASE,
                                           .begun_at = now,
                                           .lease_expires_at = now + LEASE,
                                           .response = hf_str("") };
    memcpy(op.r.answer.claim.fingerprint, fingerprint, sizeof fingerprint);
    return op;
}

/* complete or fail; retryable is for fail alone. */
static struct op settle(const struct op *begun, enum hf_action action, const char *response,
                        bool retryable)
{
    struct op op = answer(action, HF_OK);
    struct hf_claim *c = &op.r.answer.claim;
    op.q.key = hf_str("k");
    op.q.settle.fence = begun->r.answer.claim.fence;
    op.q.settle.response = hf_str(response);
    op.q.settle.retryable = retryable;
    op.r.answer.kind = HF_RECORD_CLAIM;
    *c = begun->r.answer.claim;
    c->state = action == HF_COMPLETE ? HF_CLAIM_COMPLETED
               : retryable           ? HF_CLAIM_RETRYABLE
                                     : HF_CLAIM_FAILED;
    c->settled_at = now;
    c->expires_at = now + WINDOW;
    c->response = hf_str(response);
    return op;
}

/* The same begin, answered with what is stored. */
static struct op stored(const struct op *begun, const struct op *settled)
{
    struct op op = *begun;
    op.r.now = now;
    op.r.answer = settled->r.answer;
    op.r.replayed = true;
    return op;
}

static struct op refuse(const struct op *as, enum hf_status status)
{
    struct op op = { .q = as->q, .st = status };
    op.r.now = now;
    op.r.answer.status = status;
    return op;
}

/* The claim is unknown from now on. */
static struct op abandon(const struct op *begun)
{
    struct op op = answer(HF_ABANDON, HF_OK);
    op.q.key = hf_str("k");
    op.q.settle.fence = begun->r.answer.claim.fence;
    op.r.answer.kind = HF_RECORD_CLAIM;
    op.r.answer.claim = begun->r.answer.claim;
    op.r.answer.claim.state = HF_CLAIM_UNKNOWN;
    op.r.answer.claim.lease_expires_at = now;
    return op;
}

/* What the store says of it when its lease has ended. */
static void lapse(const struct op *of)
{
    struct hf_claim claim = of->r.answer.claim;
    claim.state = HF_CLAIM_UNKNOWN;
    judge_lapsed(j, now, &claim);
}

static struct op grant(const char *key, uint64_t fence)
{
    struct op op = answer(HF_GRANT, HF_OK);
    op.q.lease.name = hf_str("leader");
    op.q.lease.holder = hf_str("me");
    op.q.lease.ttl_ms = LEASE;
    op.r.answer.kind = HF_RECORD_LEASE;
    op.r.answer.lease = (struct hf_lease){ .tenant = hf_str(""),
                                           .name = hf_str("leader"),
                                           .holder = hf_str("me"),
                                           .fence = fence,
                                           .ttl_ms = LEASE,
                                           .granted_at = now,
                                           .expires_at = now + LEASE };
    with_key(&op, key);
    return op;
}

/* renew or return. */
static struct op renew(const struct op *granted, enum hf_action action)
{
    struct op op = answer(action, HF_OK);
    op.q.lease.name = hf_str("leader");
    op.q.lease.fence = granted->r.answer.lease.fence;
    op.r.answer.kind = HF_RECORD_LEASE;
    op.r.answer.lease = granted->r.answer.lease;
    if (action == HF_RENEW)
        op.r.answer.lease.expires_at = now + LEASE;
    else
        op.r.answer.lease.released_at = now;
    return op;
}

/* ---- Well told ---- */

static void a_life_of_a_claim(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    now += LEASE - 1;
    op = refuse(&a, HF_IN_PROGRESS);
    good(&op);
    now++;
    struct op b = begin(2, HF_ABANDON_UNKNOWN); /* taken over */
    good(&b);
    op = settle(&a, HF_COMPLETE, "late", false);
    op = refuse(&op, HF_STALE_FENCE);
    good(&op);
    struct op f = settle(&b, HF_FAIL, "try again", true);
    good(&f);
    struct op c = begin(5, HF_ABANDON_UNKNOWN);
    good(&c);
    now += LEASE;
    op = refuse(&c, HF_OUTCOME_UNKNOWN);
    good(&op);
    struct op done = settle(&c, HF_COMPLETE, "done", false);
    good(&done);
    now += WINDOW - 1;
    op = stored(&c, &done);
    good(&op);
    op = done;
    op.r.now = now;
    op.r.replayed = true;
    good(&op);
    now++;
    op = begin(6, HF_ABANDON_UNKNOWN); /* forgotten */
    good(&op);
}

static void an_abandoned_claim_is_unknown_and_stays_so(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    now += LEASE - 1;
    struct op gone = abandon(&a);
    good(&gone);
    lapse(&gone);
    now += LEASE;
    gone.r.now = now;
    good(&gone); /* unknown since the first time */
    op = refuse(&a, HF_OUTCOME_UNKNOWN);
    good(&op);
    op = settle(&gone, HF_COMPLETE, "it was paid", false);
    good(&op);
    judge_maintained(j, now, NULL);
    agrees();
}

static void an_abandoned_claim_may_be_retried(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = abandon(&a);
    good(&op);
    op = begin(2, HF_ABANDON_RETRY);
    good(&op);
    a = abandon(&a);
    a = refuse(&a, HF_STALE_FENCE);
    good(&a);
}

static struct op begin_retained(uint64_t fence, int64_t retention_ms)
{
    struct op op = begin(fence, HF_ABANDON_UNKNOWN);
    op.q.begin.retention_ms = op.r.answer.claim.retention_ms = retention_ms;
    return op;
}

static void a_settled_claim_is_remembered_for_its_retention(void **state)
{
    (void)state;
    struct op a = begin_retained(1, 2 * WINDOW), done, op;
    good(&a);
    now += 3 * WINDOW;
    done = settle(&a, HF_COMPLETE, "done", false);
    done.r.answer.claim.expires_at = now + 2 * WINDOW;
    good(&done);
    now += 2 * WINDOW - 1;
    op = stored(&a, &done);
    good(&op);
    now++;
    op = begin(2, HF_ABANDON_UNKNOWN);
    good(&op);
}

static void each_end_of_a_lease_is_said_once(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), beat = answer(HF_HEARTBEAT, HF_OK);
    struct hf_stats stats = { .claims_started = 1, .now = now };
    good(&a);
    judge_maintained(j, now, &stats);
    now += LEASE;
    lapse(&a);
    stats = (struct hf_stats){ .claims_unknown = 1, .claims_unknown_since = now, .now = now };
    judge_maintained(j, now, &stats);
    beat.q = (struct hf_request){ .action = HF_HEARTBEAT, .key = hf_str("k") };
    beat.q.settle.fence = 1;
    beat.r = a.r;
    beat.r.now = now;
    beat.r.answer.claim.lease_expires_at = now + LEASE;
    good(&beat);
    struct op gone = abandon(&a); /* in the same millisecond: it is unknown since then, again */
    good(&gone);
    lapse(&gone);
    beat.r.answer.claim.lease_expires_at = now + LEASE;
    good(&beat);
    now += LEASE;
    lapse(&beat);
    judge_maintained(j, now, NULL);
    judge_opened(j, &rules);
    now++;
    a = refuse(&a, HF_OUTCOME_UNKNOWN);
    good(&a);
    judge_maintained(j, now, NULL); /* it was unknown when the store was opened */
    agrees();
}

static void a_life_of_a_lease(void **state)
{
    (void)state;
    struct op a = grant("a", 1), op;
    good(&a);
    now += LEASE - 1;
    op = refused(&a, "b", HF_LEASE_HELD);
    good(&op);
    a = renew(&a, HF_RENEW);
    good(&a);
    op = renew(&a, HF_RETURN);
    good(&op);
    op = grant("c", 2);
    good(&op);
    a = renew(&a, HF_RENEW);
    op = refuse(&a, HF_STALE_FENCE);
    good(&op);
}

/* ---- Badly told ---- */

static void begun_twice(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY);
    good(&a);
    a = begin(2, HF_ABANDON_RETRY);
    bad(&a, "somebody is at work");
}

static void taken_over_though_the_outcome_is_unknown(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    good(&a);
    now += 10 * WINDOW;
    a = begin(2, HF_ABANDON_RETRY);
    bad(&a, "may have happened");
}

static void stuck_though_it_may_be_retried(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY);
    good(&a);
    now += LEASE;
    a = refuse(&a, HF_IN_PROGRESS);
    bad(&a, "begun again");
}

static void taken_over_before_the_lease_ran_out(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY);
    good(&a);
    now += LEASE - 1;
    a = begin(2, HF_ABANDON_RETRY);
    bad(&a, "somebody is at work");
}

static void a_fence_that_does_not_rise(void **state)
{
    (void)state;
    struct op a = begin(7, HF_ABANDON_RETRY);
    good(&a);
    now += LEASE;
    a = begin(7, HF_ABANDON_RETRY);
    bad(&a, "rises strictly");
}

static void a_fence_that_begins_again_after_the_claim_was_forgotten(void **state)
{
    (void)state;
    struct op a = begin(7, HF_ABANDON_RETRY), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    good(&op);
    now += WINDOW;
    a = begin(1, HF_ABANDON_RETRY);
    bad(&a, "rises strictly");
}

static void a_late_finisher(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), b;
    good(&a);
    now += LEASE;
    b = begin(2, HF_ABANDON_RETRY);
    good(&b);
    a = settle(&a, HF_COMPLETE, "late", false);
    bad(&a, "an older fence settles nothing");
}

static void settled_and_run_again(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    good(&op);
    op = begin(2, HF_ABANDON_RETRY);
    bad(&op, "IR8");
}

static void failed_for_good_and_run_again(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = settle(&a, HF_FAIL, "no", false);
    good(&op);
    op = begin(2, HF_ABANDON_RETRY);
    bad(&op, "IR8");
}

static void another_response_given_again(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), done, op;
    good(&a);
    done = settle(&a, HF_COMPLETE, "done", false);
    good(&done);
    op = stored(&a, &done);
    op.r.answer.claim.response = hf_str("donf");
    bad(&op, "not as it should be");
}

static void settled_in_two_ways(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    good(&op);
    op = settle(&a, HF_FAIL, "no", false);
    bad(&op, "another way");
}

static void settled_again_with_a_new_window(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    good(&op);
    now += 10;
    op = settle(&a, HF_COMPLETE, "done", false);
    op.r.replayed = true;
    bad(&op, "not as it should be");
}

static void another_fingerprint_gets_the_answer(void **state)
{
    (void)state;
    static const uint8_t other[HF_DIGEST_SIZE];
    struct op a = begin(1, HF_ABANDON_RETRY), done, op;
    good(&a);
    done = settle(&a, HF_COMPLETE, "done", false);
    good(&done);
    op = stored(&a, &done);
    op.q.begin.fingerprint = other;
    bad(&op, "IR4");
}

static void a_claim_and_a_call_share_a_key(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = place("k", "room", 1, 0);
    bad(&op, "IR4");
}

static void a_claim_forgotten_before_it_was_settled(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    now += 100 * WINDOW;
    op = refuse(&a, HF_NOT_KNOWN);
    op.q.action = HF_GET_CLAIM;
    bad(&op, "is remembered");
}

static void abandoned_and_still_in_progress(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    op = abandon(&a);
    good(&op);
    op = refuse(&a, HF_IN_PROGRESS);
    bad(&op, "may be begun again");
}

static void abandoned_twice_and_unknown_since_the_second_time(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    op = abandon(&a);
    good(&op);
    now++;
    op = abandon(&a);
    bad(&op, "not as it should be");
}

static void abandoned_with_an_old_fence(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_RETRY), op;
    good(&a);
    now += LEASE;
    op = begin(2, HF_ABANDON_RETRY);
    good(&op);
    op = abandon(&a);
    bad(&op, "an older fence settles nothing");
}

static void remembered_for_the_window_and_not_for_the_retention(void **state)
{
    (void)state;
    struct op a = begin_retained(1, 2 * WINDOW), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false); /* until a window from now */
    bad(&op, "not as it should be");
}

static void forgotten_before_its_retention_is_over(void **state)
{
    (void)state;
    struct op a = begin_retained(1, 2 * WINDOW), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    op.r.answer.claim.expires_at = now + 2 * WINDOW;
    good(&op);
    now += WINDOW;
    op = begin(2, HF_ABANDON_UNKNOWN);
    bad(&op, "IR8");
}

static void said_to_be_unknown_before_its_time(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    good(&a);
    now += LEASE - 1;
    lapse(&a);
    objects("past the wall clock");
}

static void said_to_be_unknown_twice(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    good(&a);
    now += LEASE;
    lapse(&a);
    agrees();
    lapse(&a);
    objects("said so before");
}

static void said_to_be_unknown_though_it_is_settled(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    op = settle(&a, HF_COMPLETE, "done", false);
    good(&op);
    now += LEASE;
    lapse(&a);
    objects("not as it should be");
}

static void said_again_at_each_start(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    now += LEASE + 1;
    lapse(&a);
    op = place("p", "room", 1, 0); /* from now on the time is on disk */
    good(&op);
    judge_opened(j, &rules);
    lapse(&a);
    objects("said so again");
}

static void never_said_to_be_unknown(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    good(&a);
    now += LEASE;
    judge_maintained(j, now - 1, NULL);
    agrees();
    judge_maintained(j, now, NULL);
    objects("did not say so");
}

static void said_of_an_abandon_that_is_lost(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN), op;
    good(&a);
    op = abandon(&a);
    decide(&op);
    lapse(&op);
    agrees();
    judge_crashed(j);
    struct hf_claim claim = a.r.answer.claim;
    struct judge_view view = {
        .now = now, .lists_claims = true, .claims = &claim, .claim_count = 1
    };
    judge_recovered(j, &rules, &view);
    objects("is not listed as it is");
}

static void counted_wrongly(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    struct hf_stats stats = { .claims_unknown = 1, .claims_unknown_since = now, .now = now };
    good(&a);
    judge_maintained(j, now, &stats);
    objects("are counted");
}

static void a_lease_shown_longer_than_granted(void **state)
{
    (void)state;
    struct op a = begin(1, HF_ABANDON_UNKNOWN);
    a.r.answer.claim.lease_expires_at++;
    bad(&a, "not as it should be");
}

static void two_holders(void **state)
{
    (void)state;
    struct op a = grant("a", 1), b = grant("b", 2);
    good(&a);
    bad(&b, "one holder");
}

static void a_lease_whose_fence_does_not_rise(void **state)
{
    (void)state;
    struct op a = grant("a", 4), b;
    good(&a);
    now += LEASE;
    b = grant("b", 4);
    bad(&b, "rises strictly");
}

static void a_lease_renewed_with_an_old_fence(void **state)
{
    (void)state;
    struct op a = grant("a", 1), b;
    good(&a);
    now += LEASE;
    b = grant("b", 2);
    good(&b);
    a = renew(&a, HF_RENEW);
    bad(&a, "older fence");
}

static void a_lease_renewed_after_its_end(void **state)
{
    (void)state;
    struct op a = grant("a", 1);
    good(&a);
    now += LEASE;
    a = renew(&a, HF_RENEW);
    bad(&a, "ran out");
}

static void a_lease_that_is_not_free_at_its_end(void **state)
{
    (void)state;
    struct op a = grant("a", 1);
    good(&a);
    now += LEASE;
    a = refused(&a, "b", HF_LEASE_HELD);
    bad(&a, "is free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(a_life_of_a_claim),
        TOLD(an_abandoned_claim_is_unknown_and_stays_so),
        TOLD(an_abandoned_claim_may_be_retried),
        TOLD(a_settled_claim_is_remembered_for_its_retention),
        TOLD(each_end_of_a_lease_is_said_once),
        TOLD(a_life_of_a_lease),
        TOLD(begun_twice),
        TOLD(taken_over_though_the_outcome_is_unknown),
        TOLD(stuck_though_it_may_be_retried),
        TOLD(taken_over_before_the_lease_ran_out),
        TOLD(a_fence_that_does_not_rise),
        TOLD(a_fence_that_begins_again_after_the_claim_was_forgotten),
        TOLD(a_late_finisher),
        TOLD(settled_and_run_again),
        TOLD(failed_for_good_and_run_again),
        TOLD(another_response_given_again),
        TOLD(settled_in_two_ways),
        TOLD(settled_again_with_a_new_window),
        TOLD(another_fingerprint_gets_the_answer),
        TOLD(a_claim_and_a_call_share_a_key),
        TOLD(a_claim_forgotten_before_it_was_settled),
        TOLD(abandoned_and_still_in_progress),
        TOLD(abandoned_twice_and_unknown_since_the_second_time),
        TOLD(abandoned_with_an_old_fence),
        TOLD(remembered_for_the_window_and_not_for_the_retention),
        TOLD(forgotten_before_its_retention_is_over),
        TOLD(said_to_be_unknown_before_its_time),
        TOLD(said_to_be_unknown_twice),
        TOLD(said_to_be_unknown_though_it_is_settled),
        TOLD(said_again_at_each_start),
        TOLD(never_said_to_be_unknown),
        TOLD(said_of_an_abandon_that_is_lost),
        TOLD(counted_wrongly),
        TOLD(a_lease_shown_longer_than_granted),
        TOLD(two_holders),
        TOLD(a_lease_whose_fence_does_not_rise),
        TOLD(a_lease_renewed_with_an_old_fence),
        TOLD(a_lease_renewed_after_its_end),
        TOLD(a_lease_that_is_not_free_at_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

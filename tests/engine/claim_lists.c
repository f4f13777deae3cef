/* Lists of claims, their counts by state, and the word that one has become unknown, against a naive
 * model of a few claims, over restarts. */
#include "engine/kit/engine.h"
#include "support/test.h"

enum { KEYS = 24, TENANTS = 2, STEPS = 400, TOLD_MAX = 64 };

static struct kit *k;
static const char *const tenants[TENANTS] = { "", "blue" };

/* The newest words of the library about claims that became unknown. */
static struct {
    char key[24], tenant[8];
    enum hf_claim_state state;
    uint64_t fence;
    hf_time since;
} told[TOLD_MAX];
static size_t told_count;

static void on_unknown(void *arg, const struct hf_claim *claim)
{
    (void)arg;
    KIT_WANT(told_count < TOLD_MAX);
    snprintf(told[told_count].key, sizeof told->key, "%.*s", (int)claim->key.size,
             (const char *)claim->key.data);
    snprintf(told[told_count].tenant, sizeof told->tenant, "%.*s", (int)claim->tenant.size,
             claim->tenant.size ? (const char *)claim->tenant.data : "");
    told[told_count].state = claim->state;
    told[told_count].fence = claim->fence;
    told[told_count++].since = claim->lease_expires_at;
}

/* What the claims are, as the test has it from the answers. */
struct known {
    bool exists;
    enum hf_claim_state state; /* as stored */
    uint64_t fence;
    hf_time begun_at, lease_expires_at, expires_at;
    bool is_told;
};

static struct known known[TENANTS][KEYS];
static hf_time clock_ms; /* after KIT_START */

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    k->options.on_unknown = on_unknown;
    k->options.idempotency_window_ms = HOUR;
    k->options.snapshot_every_bytes = 20000;
    kit_reopen(k);
    memset(known, 0, sizeof known);
    told_count = 0;
    clock_ms = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static hf_time now(void)
{
    return KIT_START + clock_ms;
}

static enum hf_claim_state shown(const struct known *c)
{
    return c->state == HF_CLAIM_STARTED && now() >= c->lease_expires_at ? HF_CLAIM_UNKNOWN
                                                                        : c->state;
}

static bool is_alive(const struct known *c)
{
    return c->exists && (c->state == HF_CLAIM_STARTED || now() < c->expires_at);
}

static void key_of(int i, char out[24])
{
    snprintf(out, 24, "%s\\%d-é", i % 3 == 0 ? "pay" : i % 3 == 1 ? "paid" : "mail", i);
}

/* ---- The lists ---- */

static bool wanted(const struct known *c, int i, const struct hf_query *q)
{
    char key[24];
    key_of(i, key);
    return is_alive(c) && (q->claim_state == 0 || shown(c) == q->claim_state) &&
           (q->from == 0 || c->begun_at >= q->from) && (q->to == 0 || c->begun_at < q->to) &&
           strncmp(key, q->prefix.data ? q->prefix.data : "", q->prefix.size) == 0;
}

/* The claim of the tenant that matches and has the highest fence below `below`; -1: none. */
static int next_of(int tenant, const struct hf_query *q, uint64_t below)
{
    int best = -1;
    for (int i = 0; i < KEYS; i++) {
        const struct known *c = &known[tenant][i];
        if (wanted(c, i, q) && c->fence < below &&
            (best < 0 || c->fence > known[tenant][best].fence))
            best = i;
    }
    return best;
}

static void shown_as_known(const struct hf_claim *claim, int tenant, int i)
{
    const struct known *c = &known[tenant][i];
    char key[24];
    key_of(i, key);
    assert_true(kit_is(claim->key, key));
    assert_true(kit_is(claim->tenant, tenants[tenant]));
    assert_int_equal(claim->state, shown(c));
    assert_int_equal(claim->fence, c->fence);
    assert_int_equal(claim->begun_at, c->begun_at);
    assert_int_equal(claim->lease_expires_at, c->lease_expires_at);
    assert_int_equal(claim->expires_at, c->state == HF_CLAIM_STARTED ? 0 : c->expires_at);
    assert_true(kit_is(claim->response, c->state == HF_CLAIM_STARTED ? "" : "done"));
}

static void list_is_right(int tenant, struct hf_query q)
{
    uint64_t below = UINT64_MAX;
    q.kind = HF_LIST_CLAIMS;
    q.tenant = hf_str(tenants[tenant]);
    for (int pages = 0;; pages++) {
        struct hf_page page;
        assert_true(pages < 4 * KEYS);
        assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
        assert_true(page.count <= (q.limit ? q.limit : 100));
        for (size_t n = 0; n < page.count; n++) {
            int i = next_of(tenant, &q, below);
            assert_true(i >= 0);
            shown_as_known(&page.claims[n], tenant, i);
            below = known[tenant][i].fence;
        }
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
        if (q.cursor == 0)
            break;
    }
    int left = next_of(tenant, &q, below);
    if (left >= 0)
        fail_msg(
            "tenant %d, state %d, from %lld, to %lld, prefix %.*s, limit %u: fence %llu is missing",
            tenant, (int)q.claim_state, (long long)q.from, (long long)q.to, (int)q.prefix.size,
            (const char *)q.prefix.data, q.limit, (unsigned long long)known[tenant][left].fence);
}

static void lists_are_right(uint64_t *random)
{
    static const char *const prefixes[] = { "", "pa", "pay\\", "pay\\0-\xc3", "mail", "none" };
    int tenant = (int)test_below(random, TENANTS);
    struct hf_query q = { .limit = (uint32_t)test_below(random, 6),
                          .claim_state =
                              (enum hf_claim_state)test_below(random, HF_CLAIM_UNKNOWN + 1),
                          .prefix = hf_str(prefixes[test_below(random, 6)]) };
    if (test_below(random, 2))
        q.from = KIT_START + (hf_time)test_below(random, (uint64_t)clock_ms + 1);
    if (test_below(random, 2))
        q.to = KIT_START + (hf_time)test_below(random, (uint64_t)clock_ms + 1);
    list_is_right(tenant, q);
    list_is_right(tenant, (struct hf_query){ .limit = 0 });
}

/* ---- What happens to claims ---- */

static void noted(struct known *c)
{
    const struct hf_claim *claim = &k->got.answer.claim;
    enum hf_claim_state state = claim->state == HF_CLAIM_UNKNOWN ? HF_CLAIM_STARTED : claim->state;
    if (claim->lease_expires_at != c->lease_expires_at || claim->fence != c->fence)
        c->is_told = false;
    *c = (struct known){
        true,      state, claim->fence, claim->begun_at, claim->lease_expires_at, claim->expires_at,
        c->is_told
    };
}

static void change(uint64_t *random)
{
    static const enum hf_action settles[] = { HF_COMPLETE, HF_FAIL, HF_HEARTBEAT, HF_ABANDON };
    int tenant = (int)test_below(random, TENANTS), i = (int)test_below(random, KEYS);
    struct known *c = &known[tenant][i];
    char key[24];
    key_of(i, key);
    k->tenant = tenants[tenant];
    bool takes = test_below(random, 2);
    enum hf_action action = settles[test_below(random, 4)];
    enum hf_status st;
    if (!is_alive(c) || test_below(random, 3) == 0) {
        st = kit_begin(k, key, "charge", (int64_t)(1 + test_below(random, 5)) * MINUTE,
                       takes ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN);
        if (st == HF_OK && !k->got.replayed)
            noted(c);
    } else {
        st = kit_settle_claim(k, action, key, c->fence,
                              action == HF_COMPLETE || action == HF_FAIL ? "done" : "", takes);
        if (st == HF_OK && !k->got.replayed)
            noted(c);
    }
    k->tenant = NULL;
}

/* ---- What the library counts and tells ---- */

/* Everything that lapsed has been told, each lease once. */
static void telling_is_right(void)
{
    for (size_t n = 0; n < told_count; n++) {
        bool found = false;
        for (int t = 0; t < TENANTS && !found; t++)
            for (int i = 0; i < KEYS && !found; i++) {
                struct known *c = &known[t][i];
                char key[24];
                key_of(i, key);
                found = strcmp(told[n].tenant, tenants[t]) == 0 && strcmp(told[n].key, key) == 0;
                if (!found)
                    continue;
                assert_int_equal(told[n].state, HF_CLAIM_UNKNOWN);
                assert_int_equal(told[n].fence, c->fence);
                assert_int_equal(told[n].since, c->lease_expires_at);
                assert_int_equal(shown(c), HF_CLAIM_UNKNOWN);
                assert_false(c->is_told);
                c->is_told = true;
            }
        assert_true(found);
    }
    told_count = 0;
    for (int t = 0; t < TENANTS; t++)
        for (int i = 0; i < KEYS; i++)
            if (known[t][i].exists && shown(&known[t][i]) == HF_CLAIM_UNKNOWN)
                assert_true(known[t][i].is_told);
}

static void counts_are_right(void)
{
    uint64_t count[HF_CLAIM_UNKNOWN + 1] = { 0 }, alive[HF_CLAIM_UNKNOWN + 1] = { 0 };
    hf_time since = 0;
    for (int t = 0; t < TENANTS; t++)
        for (int i = 0; i < KEYS; i++) {
            const struct known *c = &known[t][i];
            count[c->exists ? shown(c) : 0] += c->exists;
            alive[shown(c)] += is_alive(c);
            if (c->exists && shown(c) == HF_CLAIM_UNKNOWN &&
                (since == 0 || c->lease_expires_at < since))
                since = c->lease_expires_at;
        }
    struct hf_stats s = kit_stats(k);
    assert_int_equal(s.claims_started, count[HF_CLAIM_STARTED]);
    assert_int_equal(s.claims_unknown, count[HF_CLAIM_UNKNOWN]);
    assert_int_equal(s.claims_unknown_since, since);
    /* Settled ones leave some time after their window has closed. */
    assert_in_range(s.claims_completed, alive[HF_CLAIM_COMPLETED], count[HF_CLAIM_COMPLETED]);
    assert_in_range(s.claims_failed, alive[HF_CLAIM_FAILED], count[HF_CLAIM_FAILED]);
    assert_in_range(s.claims_retryable, alive[HF_CLAIM_RETRYABLE], count[HF_CLAIM_RETRYABLE]);
    assert_int_equal(s.claims, s.claims_started + s.claims_unknown + s.claims_completed +
                                   s.claims_failed + s.claims_retryable);
}

static void lists_counts_and_words_agree_with_a_model(void **state)
{
    (void)state;
    uint64_t random = test_seed("claim_lists", 15);
    for (int step = 0; step < test_size(k->remote ? STEPS / 2 : STEPS); step++) {
        change(&random);
        if (test_below(&random, 4) == 0) {
            clock_ms += (hf_time)test_below(&random, 4 * MINUTE);
            kit_at(k, clock_ms);
        }
        if (test_below(&random, 3) == 0) {
            kit_settle(k);
            telling_is_right();
            counts_are_right();
        }
        if (test_below(&random, 20) == 0) {
            kit_settle(k);
            telling_is_right();
            kit_reopen(k);
        }
        lists_are_right(&random);
    }
}

/* ---- One by one ---- */

static void a_claim_is_told_again_when_a_longer_lease_has_ended(void **state)
{
    (void)state;
    assert_int_equal(kit_begin(k, "pay", "charge", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
    uint64_t fence = k->got.answer.claim.fence;
    kit_settle(k);
    assert_int_equal(told_count, 0);
    kit_at(k, MINUTE);
    kit_settle(k);
    kit_settle(k);
    assert_int_equal(told_count, 1);
    assert_int_equal(kit_settle_claim(k, HF_HEARTBEAT, "pay", fence, "", false), HF_OK);
    kit_settle(k);
    assert_int_equal(told_count, 1);
    kit_at(k, 2 * MINUTE);
    kit_settle(k);
    assert_int_equal(told_count, 2);
    assert_int_equal(told[1].since, KIT_START + 2 * MINUTE);
    kit_reopen(k);
    kit_settle(k);
    assert_int_equal(told_count, 2);
}

static void an_abandoned_claim_is_told(void **state)
{
    (void)state;
    assert_int_equal(kit_begin(k, "pay", "charge", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
    kit_at(k, SECOND);
    assert_int_equal(kit_settle_claim(k, HF_ABANDON, "pay", k->got.answer.claim.fence, "", false),
                     HF_OK);
    kit_settle(k);
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].since, KIT_START + SECOND);
    assert_int_equal(kit_stats(k).claims_unknown, 1);
    assert_int_equal(kit_stats(k).claims_unknown_since, KIT_START + SECOND);
}

static void abandon_done(struct hf_op *op, enum hf_status status)
{
    (void)op;
    (void)status;
}

/* Else a crash takes the abandon back, and the operator was told what never happened. */
static void a_claim_is_told_when_its_abandon_is_durable(void **state)
{
    (void)state;
    if (k->remote) /* there, what tells reads only what is committed */
        return;
    k->options.no_committer = true;
    kit_reopen(k);
    assert_int_equal(kit_begin(k, "pay", "charge", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
    assert_int_equal(kit_begin(k, "mail", "send", SECOND, HF_ABANDON_UNKNOWN), HF_OK);
    uint64_t fence = k->got.answer.claim.fence - 1;
    kit_at(k, 2 * SECOND);
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request abandon = { .action = HF_ABANDON,
                                  .key = hf_str("pay"),
                                  .settle = { .fence = fence } };
    struct hf_op op = { .request = &abandon, .result = &result, .done = abandon_done };
    hf_submit(k->db, &op);
    assert_int_equal(op.status, HF_OK);
    assert_int_equal(result.answer.claim.state, HF_CLAIM_UNKNOWN);
    hf_maintain(k->db);              /* it tells first, and then commits */
    assert_int_equal(told_count, 1); /* the end of this lease is durable since the begin */
    assert_string_equal(told[0].key, "mail");
    hf_flush(k->db);
    kit_settle(k);
    assert_int_equal(told_count, 2);
    assert_string_equal(told[1].key, "pay");
    assert_int_equal(told[1].since, KIT_START + 2 * SECOND);
    hf_result_clear(&result);
}

/* A page of large responses ends before it has a gigabyte. */
static void a_page_has_a_bounded_number_of_bytes(void **state)
{
    (void)state;
    enum { LARGE = 20 };
    static char response[HF_RESPONSE_MAX];
    char key[24];
    memset(response, 'r', sizeof response);
    for (int i = 0; i < LARGE; i++) {
        snprintf(key, sizeof key, "large-%d", i);
        assert_int_equal(kit_begin(k, key, "report", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
        struct hf_request complete = { .action = HF_COMPLETE, .key = hf_str(key) };
        complete.settle.fence = k->got.answer.claim.fence;
        complete.settle.response = hf_mem(response, sizeof response);
        assert_int_equal(kit_do(k, complete), HF_OK);
    }
    struct hf_query q = { .kind = HF_LIST_CLAIMS, .limit = HF_LIST_MAX };
    int next = LARGE, pages = 0;
    do {
        struct hf_page page;
        assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
        assert_in_range(page.count, 1, 9);
        for (size_t i = 0; i < page.count; i++) {
            snprintf(key, sizeof key, "large-%d", --next);
            assert_true(kit_is(page.claims[i].key, key));
            assert_int_equal(page.claims[i].response.size, HF_RESPONSE_MAX);
        }
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
        pages++;
    } while (q.cursor);
    assert_int_equal(next, 0);
    assert_in_range(pages, 3, LARGE);
}

static void queries_out_of_range_are_refused(void **state)
{
    (void)state;
    static char long_prefix[HF_TOKEN_MAX + 1];
    struct hf_page page;
    struct hf_query q = { .kind = HF_LIST_CLAIMS,
                          .claim_state = (enum hf_claim_state)(HF_CLAIM_UNKNOWN + 1) };
    assert_int_equal(hf_list(k->db, &q, &page), HF_INVALID_REQUEST);
    q = (struct hf_query){ .kind = HF_LIST_CLAIMS,
                           .prefix = hf_mem(long_prefix, sizeof long_prefix) };
    assert_int_equal(hf_list(k->db, &q, &page), HF_INVALID_REQUEST);
    q = (struct hf_query){ .kind = HF_LIST_CLAIMS, .from = INT64_MIN, .to = INT64_MAX };
    assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
    hf_page_clear(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(lists_counts_and_words_agree_with_a_model),
        TEST(a_claim_is_told_again_when_a_longer_lease_has_ended),
        TEST(an_abandoned_claim_is_told),
        TEST(a_claim_is_told_when_its_abandon_is_durable),
        TEST(a_page_has_a_bounded_number_of_bytes),
        TEST(queries_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Leases: granted once at a time, renewed, given back, run out. */
#include "core/lease.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define TTL INT64_C(1000)

static struct world *w;
static int keys;

static int setup(void **state)
{
    (void)state;
    w = world_new();
    keys = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static enum hf_status grant(const char *name, const char *holder, int64_t ttl_ms)
{
    static char key[16];
    snprintf(key, sizeof key, "key-%d", ++keys);
    return world_do(w,
                    &(struct hf_request){ .action = HF_GRANT,
                                          .key = hf_str(key),
                                          .lease = { hf_str(name), hf_str(holder), ttl_ms, 0 } });
}

static enum hf_status renew(const char *name, uint64_t fence, int64_t ttl_ms)
{
    return world_do(w, &(struct hf_request){
                           .action = HF_RENEW,
                           .lease = { .name = hf_str(name), .ttl_ms = ttl_ms, .fence = fence } });
}

static enum hf_status give_back(const char *name, uint64_t fence)
{
    return world_do(w, &(struct hf_request){ .action = HF_RETURN,
                                             .lease = { .name = hf_str(name), .fence = fence } });
}

static const struct hf_lease *stored(const char *name)
{
    const struct hf_row *row = world_row(w, HF_ROW_LEASE, "", name, "");
    assert_non_null(row);
    return &row->lease;
}

/* The store draws fences. One that it drew before may be in the hands of a holder who thinks that
 * it is the newest. */
static void a_fence_that_does_not_rise_is_not_given_out(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    w->now += TTL;
    w->fence = 0;
    assert_int_equal(grant("leader", "b", TTL), HF_STORAGE_FAILURE);
    assert_int_equal(w->plan.row_count, 0);
    w->fence = 1;
    assert_int_equal(grant("leader", "b", TTL), HF_OK);
    assert_int_equal(stored("leader")->fence, 2);
}

static void one_holder_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_LEASE);
    assert_true(w->plan.fence_used && w->plan.row_count == 1);
    const struct hf_lease *l = stored("leader");
    assert_true(l->fence == 1 && l->ttl_ms == TTL && l->granted_at == WORLD_START);
    assert_true(l->expires_at == WORLD_START + TTL && l->released_at == 0);
    assert_memory_equal(l->holder.data, "a", 1);
    w->now += TTL - 1;
    assert_int_equal(grant("leader", "b", TTL), HF_LEASE_HELD);
    assert_int_equal(w->plan.row_count, 0);
    assert_false(w->plan.fence_used);
    assert_int_equal(w->plan.remember, HF_REMEMBER_KEY);
    assert_int_equal(grant("leader", "a", TTL), HF_LEASE_HELD); /* the same holder too */
    assert_int_equal(grant("other", "b", TTL), HF_OK);
    w->now += 1;
    assert_int_equal(grant("leader", "b", TTL), HF_OK);
    assert_true(stored("leader")->fence == 3); /* only rises */
}

static void malformed_grants(void **state)
{
    (void)state;
    assert_int_equal(grant("", "a", TTL), HF_INVALID_REQUEST);
    assert_int_equal(grant("leader", "", TTL), HF_INVALID_REQUEST);
    assert_int_equal(grant("leader", "a", 0), HF_INVALID_REQUEST);
    assert_int_equal(grant("leader", "a", HF_DURATION_MAX_MS + 1), HF_INVALID_REQUEST);
    assert_int_equal(world_count(w, HF_ROW_LEASE), 0);
    assert_int_equal(grant("leader", "a", HF_DURATION_MAX_MS), HF_OK);
}

static void renewing(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    w->now += TTL - 1;
    assert_int_equal(renew("leader", 1, 0), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_LEASE);
    assert_true(stored("leader")->expires_at == w->now + TTL);
    assert_true(stored("leader")->granted_at == WORLD_START && stored("leader")->fence == 1);
    assert_int_equal(renew("leader", 1, 5 * TTL), HF_OK);
    assert_true(stored("leader")->expires_at == w->now + 5 * TTL);
    assert_int_equal(renew("leader", 1, 0), HF_OK);
    assert_true(stored("leader")->ttl_ms == 5 * TTL &&
                stored("leader")->expires_at == w->now + 5 * TTL);
    w->now += 5 * TTL;
    assert_int_equal(renew("leader", 1, 0), HF_NOT_HELD);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(give_back("leader", 1), HF_NOT_HELD);
}

static void giving_back(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    w->now += 5;
    assert_int_equal(give_back("leader", 1), HF_OK);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(w->plan.answer.lease.released_at == WORLD_START + 5);
    assert_int_equal(renew("leader", 1, 0), HF_NOT_HELD);
    w->now += 5 * TTL;
    assert_int_equal(give_back("leader", 1), HF_OK); /* again, also after it would have run out */
    assert_int_equal(w->plan.row_count, 0);
    assert_true(w->plan.answer.lease.released_at == WORLD_START + 5);
    assert_int_equal(grant("leader", "b", TTL), HF_OK);
    assert_true(stored("leader")->released_at == 0 && stored("leader")->fence == 2);
    assert_int_equal(give_back("leader", 1), HF_STALE_FENCE);
    assert_int_equal(renew("leader", 1, 0), HF_STALE_FENCE);
}

static void a_lease_that_was_given_back_is_free_at_once(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    assert_int_equal(give_back("leader", 1), HF_OK);
    assert_int_equal(grant("leader", "b", TTL), HF_OK);
}

static void malformed_calls(void **state)
{
    (void)state;
    assert_int_equal(renew("leader", 1, 0), HF_NOT_KNOWN);
    assert_int_equal(give_back("leader", 1), HF_NOT_KNOWN);
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    assert_int_equal(renew("", 1, 0), HF_INVALID_REQUEST);
    assert_int_equal(renew("leader", 0, 0), HF_INVALID_REQUEST);
    assert_int_equal(renew("leader", 2, 0), HF_INVALID_REQUEST); /* never given out */
    assert_int_equal(renew("leader", 1, -1), HF_INVALID_REQUEST);
    assert_int_equal(renew("leader", 1, HF_DURATION_MAX_MS + 1), HF_INVALID_REQUEST);
    assert_int_equal(give_back("", 1), HF_INVALID_REQUEST);
    assert_int_equal(give_back("leader", 0), HF_INVALID_REQUEST);
    assert_int_equal(give_back("leader", 2), HF_INVALID_REQUEST);
    assert_int_equal(renew("leader", 1, HF_DURATION_MAX_MS), HF_OK);
}

static void what_the_store_cannot_do(void **state)
{
    (void)state;
    w->unreadable[WORLD_LEASE] = true;
    assert_int_equal(grant("leader", "a", TTL), HF_STORAGE_FAILURE);
    assert_int_equal(renew("leader", 1, 0), HF_STORAGE_FAILURE);
    assert_int_equal(give_back("leader", 1), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_LEASE] = false;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    w->refuse_writes = true;
    assert_int_equal(grant("other", "a", TTL), HF_STORAGE_FAILURE);
    assert_int_equal(renew("leader", 1, 0), HF_STORAGE_FAILURE);
    assert_int_equal(give_back("leader", 1), HF_STORAGE_FAILURE);
    assert_true(stored("leader")->released_at == 0);
    w->refuse_writes = false;
    assert_int_equal(give_back("leader", 1), HF_OK);
    w->refuse_writes = true;
    assert_int_equal(give_back("leader", 1), HF_OK); /* nothing to write */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fence_that_does_not_rise_is_not_given_out),
        TEST(one_holder_at_a_time),
        TEST(malformed_grants),
        TEST(renewing),
        TEST(giving_back),
        TEST(a_lease_that_was_given_back_is_free_at_once),
        TEST(malformed_calls),
        TEST(what_the_store_cannot_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

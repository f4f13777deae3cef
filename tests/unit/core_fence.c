/* Registers: written with a fence or a version, or merged. */
#include "support/test.h"
#include "unit/kit/world.h"

#include "core/fence.h"
#include "core/lease.h"

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

static struct hf_request to_write(const char *name, const char *value)
{
    static char key[16];
    snprintf(key, sizeof key, "key-%d", ++keys);
    return (struct hf_request){ .action = HF_WRITE,
                                .key = hf_str(key),
                                .write = { .name = hf_str(name), .value = hf_str(value) } };
}

static enum hf_status write_fenced(const char *name, const char *value, uint64_t fence)
{
    struct hf_request r = to_write(name, value);
    r.write.fence = fence;
    return world_do(w, &r);
}

static enum hf_status write_if(const char *name, const char *value, uint64_t version)
{
    struct hf_request r = to_write(name, value);
    r.write.has_if_version = true;
    r.write.if_version = version;
    return world_do(w, &r);
}

static enum hf_status merge(const char *name, struct hf_value value)
{
    return world_do(w,
                    &(struct hf_request){ .action = HF_MERGE, .merge = { hf_str(name), &value } });
}

static enum hf_status merge_max(const char *name, int64_t number)
{
    return merge(name, (struct hf_value){ .type = HF_TYPE_MAX, .number = number });
}

static const struct hf_register *stored(const char *name)
{
    const struct hf_row *row = world_row(w, HF_ROW_REGISTER, "", name, "");
    assert_non_null(row);
    return &row->reg;
}

static bool is(struct hf_bytes got, const char *want)
{
    return got.size == strlen(want) && memcmp(got.data, want, got.size) == 0;
}

static void the_rule_of_fencing(void **state)
{
    (void)state;
    for (int required = 0; required < 2; required++) {
        assert_int_equal(hf_fence_stale(0, 0, required), required);
        assert_int_equal(hf_fence_stale(0, 9, required), required);
        assert_false(hf_fence_stale(1, 0, required));
        assert_true(hf_fence_stale(8, 9, required));
        assert_true(hf_fence_stale(9, 9, required));
        assert_false(hf_fence_stale(10, 9, required));
        assert_true(hf_fence_stale(UINT64_MAX, UINT64_MAX, required));
        assert_int_equal(hf_fence_require(HF_REQUIRE_UNCHANGED, required), required);
        assert_true(hf_fence_require(HF_REQUIRED, required));
        assert_false(hf_fence_require(HF_NOT_REQUIRED, required));
    }
}

static void a_register_is_written(void **state)
{
    (void)state;
    assert_int_equal(write_fenced("r", "one", 0), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_REGISTER);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(stored("r")->version == 1 && stored("r")->fence == 0);
    assert_true(stored("r")->value.type == HF_TYPE_PLAIN && is(stored("r")->value.bytes, "one"));
    assert_true(stored("r")->changed_at == WORLD_START);
    w->now += 5;
    assert_int_equal(write_fenced("r", "one", 0),
                     HF_OK); /* the same value is a write all the same */
    assert_true(stored("r")->version == 2 && stored("r")->changed_at == WORLD_START + 5);
    assert_int_equal(write_fenced("r", "", 0), HF_OK);
    assert_true(stored("r")->value.bytes.size == 0);
}

static void stale_writers_are_refused(void **state)
{
    (void)state;
    assert_int_equal(write_fenced("r", "a", 5), HF_OK);
    assert_true(stored("r")->fence == 5);
    assert_int_equal(write_fenced("r", "b", 5), HF_STALE_FENCE);
    assert_int_equal(write_fenced("r", "b", 4), HF_STALE_FENCE);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
    assert_int_equal(write_fenced("r", "c", 0), HF_OK);
    assert_true(stored("r")->fence == 5 && stored("r")->version == 2);
    assert_int_equal(write_fenced("r", "d", 6), HF_OK);
    assert_true(stored("r")->fence == 6 && is(stored("r")->value.bytes, "d"));
}

static void compare_and_set(void **state)
{
    (void)state;
    assert_int_equal(write_if("r", "a", 1), HF_VERSION_MISMATCH);
    assert_int_equal(world_count(w, HF_ROW_REGISTER), 0);
    assert_int_equal(write_if("r", "a", 0), HF_OK); /* only if it is not there */
    assert_int_equal(write_if("r", "b", 0), HF_VERSION_MISMATCH);
    assert_int_equal(write_if("r", "b", 1), HF_OK);
    assert_int_equal(write_if("r", "c", 1), HF_VERSION_MISMATCH);
    assert_true(stored("r")->version == 2 && is(stored("r")->value.bytes, "b"));
    /* The fence is judged first, and a refused write does not raise it. */
    assert_int_equal(write_fenced("r", "f", 3), HF_OK);
    struct hf_request r = to_write("r", "g");
    r.write.fence = 3;
    r.write.has_if_version = true;
    assert_int_equal(world_do(w, &r), HF_STALE_FENCE);
    r = to_write("r", "g");
    r.write.fence = 4;
    r.write.has_if_version = true;
    assert_int_equal(world_do(w, &r), HF_VERSION_MISMATCH);
    assert_true(stored("r")->fence == 3);
}

static void malformed_writes(void **state)
{
    (void)state;
    static char big[HF_VALUE_MAX + 1];
    assert_int_equal(write_fenced("", "v", 0), HF_INVALID_REQUEST);
    struct hf_request r = to_write("r", "");
    r.write.value = hf_mem(big, HF_VALUE_MAX + 1);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r = to_write("r", "");
    r.write.value = hf_mem(big, HF_VALUE_MAX);
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_int_equal(merge_max("m", 1), HF_OK);
    r = to_write("m", "v");
    r.write.has_if_version = true; /* the type is judged before the version */
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
}

static void merging(void **state)
{
    (void)state;
    assert_int_equal(merge_max("m", 5), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_REGISTER);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(stored("m")->version == 1 && stored("m")->value.type == HF_TYPE_MAX);
    assert_memory_equal(stored("m")->value.bytes.data, "\5\0\0\0\0\0\0\0", 8);
    w->now += 5;
    for (int64_t n = 3; n <= 5; n++) { /* nothing changes: no row, the version stays */
        assert_int_equal(merge_max("m", n), HF_OK);
        assert_int_equal(w->plan.row_count, 0);
        assert_true(w->plan.answer.reg.version == 1 &&
                    w->plan.answer.reg.changed_at == WORLD_START);
    }
    assert_int_equal(merge_max("m", 6), HF_OK);
    assert_true(stored("m")->version == 2 && stored("m")->changed_at == WORLD_START + 5);
    const struct hf_item a = { hf_str("a"), 0, 0 }, b = { hf_str("b"), 0, 0 };
    assert_int_equal(merge("s", (struct hf_value){ .type = HF_TYPE_UNION }),
                     HF_OK); /* the empty set */
    assert_true(stored("s")->version == 1 && stored("s")->value.bytes.size == 0);
    assert_int_equal(merge("s", (struct hf_value){ .type = HF_TYPE_UNION }), HF_OK);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(
        merge("s", (struct hf_value){ .type = HF_TYPE_UNION, .items = &b, .item_count = 1 }),
        HF_OK);
    assert_int_equal(
        merge("s", (struct hf_value){ .type = HF_TYPE_UNION, .items = &a, .item_count = 1 }),
        HF_OK);
    assert_true(stored("s")->version == 3 && stored("s")->value.bytes.size == 6);
    assert_memory_equal(stored("s")->value.bytes.data, "\1\0a\1\0b", 6);
}

static void malformed_merges(void **state)
{
    (void)state;
    assert_int_equal(merge_max("", 1), HF_INVALID_REQUEST);
    assert_int_equal(merge("m", (struct hf_value){ .type = HF_TYPE_PLAIN }), HF_INVALID_REQUEST);
    assert_int_equal(
        world_do(w, &(struct hf_request){ .action = HF_MERGE, .merge = { hf_str("m"), NULL } }),
        HF_INVALID_REQUEST);
    assert_int_equal(world_count(w, HF_ROW_REGISTER), 0);
    assert_int_equal(merge_max("m", 1), HF_OK);
    assert_int_equal(merge("m", (struct hf_value){ .type = HF_TYPE_MIN }), HF_INVALID_REQUEST);
    assert_int_equal(write_fenced("p", "v", 0), HF_OK);
    assert_int_equal(merge_max("p", 1), HF_INVALID_REQUEST);
    /* A join past a limit is refused and changes nothing. */
    const struct hf_item big = { hf_str("a"), INT64_MAX, 0 }, one = { hf_str("b"), 1, 0 };
    assert_int_equal(
        merge("c", (struct hf_value){ .type = HF_TYPE_COUNTER, .items = &big, .item_count = 1 }),
        HF_OK);
    assert_int_equal(
        merge("c", (struct hf_value){ .type = HF_TYPE_COUNTER, .items = &one, .item_count = 1 }),
        HF_INVALID_REQUEST);
    assert_true(stored("c")->version == 1);
}

static void what_the_store_cannot_do(void **state)
{
    (void)state;
    w->unreadable[WORLD_REGISTER] = true;
    assert_int_equal(write_fenced("r", "v", 0), HF_STORAGE_FAILURE);
    assert_int_equal(merge_max("m", 1), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_REGISTER] = false;
    w->refuse_writes = true;
    assert_int_equal(write_fenced("r", "v", 0), HF_STORAGE_FAILURE);
    assert_int_equal(merge_max("m", 1), HF_STORAGE_FAILURE);
    w->refuse_writes = false;
    assert_int_equal(merge_max("m", 1), HF_OK);
    w->refuse_writes = true;
    assert_int_equal(merge_max("m", 1), HF_OK); /* nothing to write */
    assert_int_equal(merge_max("m", 2), HF_STORAGE_FAILURE);
    assert_true(stored("m")->version == 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Leases: granted once at a time, renewed, given back, run out. */

#define TTL INT64_C(1000)

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

static const struct hf_lease *stored_lease(const char *name)
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
    assert_int_equal(stored_lease("leader")->fence, 2);
}

static void one_holder_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(grant("leader", "a", TTL), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_LEASE);
    assert_true(w->plan.fence_used && w->plan.row_count == 1);
    const struct hf_lease *l = stored_lease("leader");
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
    assert_true(stored_lease("leader")->fence == 3); /* only rises */
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
    assert_true(stored_lease("leader")->expires_at == w->now + TTL);
    assert_true(stored_lease("leader")->granted_at == WORLD_START &&
                stored_lease("leader")->fence == 1);
    assert_int_equal(renew("leader", 1, 5 * TTL), HF_OK);
    assert_true(stored_lease("leader")->expires_at == w->now + 5 * TTL);
    assert_int_equal(renew("leader", 1, 0), HF_OK);
    assert_true(stored_lease("leader")->ttl_ms == 5 * TTL &&
                stored_lease("leader")->expires_at == w->now + 5 * TTL);
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
    assert_true(stored_lease("leader")->released_at == 0 && stored_lease("leader")->fence == 2);
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

static void what_the_store_cannot_do_with_a_lease(void **state)
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
    assert_true(stored_lease("leader")->released_at == 0);
    w->refuse_writes = false;
    assert_int_equal(give_back("leader", 1), HF_OK);
    w->refuse_writes = true;
    assert_int_equal(give_back("leader", 1), HF_OK); /* nothing to write */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_rule_of_fencing),
        TEST(a_register_is_written),
        TEST(stale_writers_are_refused),
        TEST(compare_and_set),
        TEST(malformed_writes),
        TEST(merging),
        TEST(malformed_merges),
        TEST(what_the_store_cannot_do),
        TEST(a_fence_that_does_not_rise_is_not_given_out),
        TEST(one_holder_at_a_time),
        TEST(malformed_grants),
        TEST(renewing),
        TEST(giving_back),
        TEST(a_lease_that_was_given_back_is_free_at_once),
        TEST(malformed_calls),
        TEST(what_the_store_cannot_do_with_a_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Limits of memory: what one tenant may use, and that what was begun can always be ended. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

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

static char large[HF_VALUE_MAX];

static enum hf_status write_one(const char *prefix, int n, size_t size)
{
    char name[32], key[32];
    snprintf(name, sizeof name, "%s-%d", prefix, n);
    snprintf(key, sizeof key, "w-%s-%d", prefix, n);
    return kit_do(
        k, (struct hf_request){ .action = HF_WRITE,
                                .key = hf_str(key),
                                .write = { .name = hf_str(name), .value = hf_mem(large, size) } });
}

/* Write registers until one is refused; first large ones, then ever smaller ones, so that nothing
 * is left. */
static int fill(const char *prefix)
{
    int written = 0;
    for (size_t size = HF_VALUE_MAX; size > 0; size /= 8) {
        while (write_one(prefix, written, size) == HF_OK)
            assert_true(++written < 100000);
        assert_int_equal(k->got.answer.status, HF_STORAGE_FAILURE);
    }
    return written;
}

enum { HOLDS = 3000, CLAIMS = 1000, LEASES = 300 };

struct begun {
    char held[HOLDS][HF_ID_SIZE];
    uint64_t claims[CLAIMS], leases[LEASES];
};

static void begin_much(struct begun *b, int holds, int claims, int leases)
{
    char name[32];
    for (int i = 0; i < holds; i++)
        kit_held(k, kit_key(k), i % 3 == 2 ? SECOND : HOUR, b->held[i]);
    for (int i = 0; i < claims; i++) {
        snprintf(name, sizeof name, "claim-%d", i);
        assert_int_equal(kit_begin(k, name, "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
        b->claims[i] = k->got.answer.claim.fence;
    }
    for (int i = 0; i < leases; i++) {
        snprintf(name, sizeof name, "lease-%d", i);
        assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_GRANT,
                                                        .key = hf_str(kit_key(k)),
                                                        .lease = { .name = hf_str(name),
                                                                   .holder = hf_str("me"),
                                                                   .ttl_ms = HOUR } }),
                         HF_OK);
        b->leases[i] = k->got.answer.lease.fence;
    }
}

static enum hf_status lease_do(enum hf_action action, int n, uint64_t fence)
{
    char name[32];
    snprintf(name, sizeof name, "lease-%d", n);
    return kit_do(k, (struct hf_request){ .action = action,
                                          .lease = { .name = hf_str(name), .fence = fence } });
}

/* Every ending there is, each of something that was begun before. */
static void end_all(const struct begun *b, int holds, int claims, int leases)
{
    static const enum hf_action ends[] = { HF_RELEASE, HF_CONFIRM, HF_EXPIRE };
    static char answer[1000];
    memset(answer, 'r', sizeof answer - 1);
    char name[32];
    for (int i = 0; i < holds; i++)
        assert_int_equal(kit_end(k, ends[i % 3], kit_key(k), b->held[i]), HF_OK);
    for (int i = 0; i < claims; i++) {
        snprintf(name, sizeof name, "claim-%d", i);
        assert_int_equal(kit_settle_claim(k, HF_HEARTBEAT, name, b->claims[i], NULL, false), HF_OK);
        assert_int_equal(
            kit_settle_claim(k, i % 2 ? HF_COMPLETE : HF_FAIL, name, b->claims[i], answer, false),
            HF_OK);
    }
    for (int i = 0; i < leases; i++) {
        assert_int_equal(lease_do(HF_RENEW, i, b->leases[i]), HF_OK);
        assert_int_equal(lease_do(HF_RETURN, i, b->leases[i]), HF_OK);
    }
}

static struct begun begun;

static void at_the_memory_limit_everything_that_was_begun_can_be_ended(void **state)
{
    (void)state;
    both_needs_files();
    k->options.memory_max_bytes = 6 << 20;
    kit_reopen(k);
    begin_much(&begun, HOLDS, CLAIMS, LEASES);
    fill("r");
    kit_reopen(k); /* a restart does not change it */
    assert_int_equal(kit_place(k, "new", "other", "guest", HOUR), HF_STORAGE_FAILURE);
    kit_at(k, MINUTE);
    end_all(&begun, HOLDS, CLAIMS, LEASES);
    assert_true(kit_stats(k).memory_bytes < 8 << 20);
}

static void what_ends_nothing_takes_no_memory_at_the_limit(void **state)
{
    (void)state;
    both_needs_files();
    char id[HF_ID_SIZE];
    k->options.memory_max_bytes = 3 << 20;
    kit_reopen(k);
    kit_held(k, "room", HOUR, id);
    char other[HF_ID_SIZE];
    kit_held(k, "other", HOUR, other);
    assert_int_equal(kit_end(k, HF_RELEASE, "done", other), HF_OK);
    fill("r");
    uint64_t before = kit_stats(k).tokens;
    for (int i = 0; i < 1000; i++) {
        /* A refusal is not remembered here, so it is no answer either. */
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), "00000000000000000000000000"),
                         HF_STORAGE_FAILURE);
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), other), HF_STORAGE_FAILURE);
    }
    assert_int_equal(kit_stats(k).tokens, before);
    assert_int_equal(kit_end(k, HF_RELEASE, "done", other), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_end(k, HF_RELEASE, "first", id), HF_OK);
    assert_int_equal(kit_end(k, HF_RELEASE, "first", id), HF_OK);
    assert_true(k->got.replayed);
}

/* ---- A full disk ---- */

static void on_a_full_disk_some_room_is_left_for_endings(void **state)
{
    (void)state;
    both_needs_files();
    enum { HELD = 12 };
    char id[HELD][HF_ID_SIZE];
    for (int i = 0; i < HELD; i++)
        kit_held(k, kit_key(k), HOUR, id[i]);
    assert_int_equal(kit_begin(k, "claim", "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
    uint64_t fence = k->got.answer.claim.fence;
    atomic_store(&k->io.room, 0);
    for (int i = 0; i < 10;
         i++) /* the next segment is prepared early, and that is when the full disk is met */
        assert_int_equal(write_one("early", i, HF_VALUE_MAX), HF_OK);
    kit_settle(k);
    assert_true(kit_stats(k).out_of_space);
    assert_true(fill("d") > 10);
    assert_true(kit_stats(k).out_of_space);
    assert_int_equal(k->got.answer.limit, HF_LIMIT_DISK);
    for (int i = 0; i < 100; i++) /* what ends nothing takes none of it */
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), "00000000000000000000000000"),
                         HF_STORAGE_FAILURE);
    for (int i = 0; i < HELD; i++)
        assert_int_equal(kit_end(k, i % 2 ? HF_CONFIRM : HF_RELEASE, kit_key(k), id[i]), HF_OK);
    assert_int_equal(kit_settle_claim(k, HF_COMPLETE, "claim", fence, "done", false), HF_OK);
    assert_int_equal(kit_place(k, "new", "other", "guest", HOUR), HF_STORAGE_FAILURE);
    atomic_store(&k->io.room, -1);
}

/* Every reason why there is no next segment is told apart. */
static void a_full_disk_says_what_is_full(void **state)
{
    static const struct {
        int error;
        enum hf_limit limit;
        enum hf_fault fault;
    } reasons[] = {
        { ENOSPC, HF_LIMIT_DISK, HF_FAULT_NONE },
        { EDQUOT, HF_LIMIT_DISK_QUOTA, HF_FAULT_NONE },
        { EFBIG, HF_LIMIT_FILE_SIZE, HF_FAULT_NONE },
        { EMFILE, HF_LIMIT_FILES, HF_FAULT_NONE },
        { EIO, HF_LIMIT_NONE, HF_FAULT_DISK },
    };
    (void)state;
    both_needs_files();
    atomic_store(&k->io.room, 0);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        atomic_store(&k->io.room_error, reasons[i].error);
        if (i == 0)
            assert_true(fill("d") > 10);
        /* The next try is a second later; it fails for this reason. */
        atomic_fetch_add(&k->io.later_ns, 1100000000);
        kit_settle(k);
        assert_true(kit_stats(k).out_of_space || kit_stats(k).out_of_files ||
                    kit_stats(k).storage_failing);
        assert_int_equal(write_one("more", (int)i, 100), HF_STORAGE_FAILURE);
        assert_int_equal(k->got.answer.limit, reasons[i].limit);
        assert_int_equal(k->got.answer.cause.fault, reasons[i].fault);
        assert_int_equal(k->got.answer.cause.error, reasons[i].fault ? EIO : 0);
    }
    atomic_store(&k->io.room, -1);
}

/* ---- Quotas ---- */

/* One tenant fills what it may have, and is told which limit it is. */
static void greedy_fills(void)
{
    k->tenant = "greedy";
    assert_true(fill("g") > 10);
    assert_int_equal(k->got.answer.limit, HF_LIMIT_TENANT_MEMORY);
    assert_int_equal(kit_place(k, "refused", "room", "guest", HOUR), HF_STORAGE_FAILURE);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "refused"), HF_NOT_KNOWN); /* nothing is remembered */
}

/* Another one does everything, from the beginning to the end. */
static void other_works(const char *tenant)
{
    static struct begun own;
    k->tenant = tenant;
    begin_much(&own, 60, 20, 10);
    kit_at(k, atomic_load(&k->io.wall) - KIT_START + MINUTE);
    end_all(&own, 60, 20, 10);
    assert_int_equal(write_one(tenant, k->keys, 1000), HF_OK);
}

static void one_tenant_at_its_quota_does_not_stop_another(void **state)
{
    (void)state;
    both_needs_files();
    k->options.memory_max_bytes = 16 << 20;
    k->options.tenant_memory_max_bytes = 8 << 20;
    kit_reopen(k);
    k->tenant = "greedy";
    begin_much(&begun, 300, 100, 30);
    greedy_fills();
    struct hf_usage use;
    hf_usage_of(k->db, hf_str("greedy"), &use);
    assert_true(use.memory_bytes >= 8 << 20 && use.memory_bytes < 9 << 20);
    assert_true(use.refusals > 0 && kit_stats(k).refusals_quota == use.refusals);
    assert_false(kit_stats(k).memory_full);
    k->tenant = "victim";
    other_works("victim");
    kit_reopen(k); /* across a restart */
    k->tenant = "greedy";
    assert_int_equal(kit_place(k, "refused", "room", "guest", HOUR), HF_STORAGE_FAILURE);
    assert_int_equal(k->got.answer.limit, HF_LIMIT_TENANT_MEMORY);
    other_works("victim2");
    k->tenant = "greedy"; /* and it can end what it has begun */
    end_all(&begun, 300, 0, 0);
}

static void a_quota_of_records_counts_rows_keys_and_held_holds(void **state)
{
    (void)state;
    both_needs_files();
    char id[HF_ID_SIZE];
    k->options.tenant_records_max = 100;
    kit_reopen(k);
    k->tenant = "t";
    kit_held(k, "room", HOUR, id); /* a resource, a key, a hold */
    struct hf_usage use;
    hf_usage_of(k->db, hf_str("t"), &use);
    assert_int_equal(use.records, 3);
    int n = 0;
    while (write_one("r", n, 1) == HF_OK)
        n++;
    assert_int_equal(n, 49); /* a register and a key each */
    assert_int_equal(k->got.answer.limit, HF_LIMIT_TENANT_RECORDS);
    assert_int_equal(kit_end(k, HF_RELEASE, "end", id), HF_OK);
    k->tenant = "u";
    assert_int_equal(write_one("r", 0, 1), HF_OK);
    /* Keys leave with their window. */
    k->tenant = "t";
    kit_at(k, 2 * DAY);
    kit_settle(k);
    hf_usage_of(k->db, hf_str("t"), &use);
    assert_int_equal(use.records, 50); /* the registers and the resource */
    assert_int_equal(write_one("s", 0, 1), HF_OK);
}

/* Another tenant has many rows, through which the store looks for those that are over. What is over
 * of a tenant at its quota is found at once all the same. */
static void what_is_over_makes_room_at_a_quota(void **state)
{
    (void)state;
    both_needs_files();
    enum { OTHERS = 20000, MAX = 60 };
    char key[32];
    k->tenant = "other";
    for (int i = 0; i < test_size(OTHERS); i++)
        assert_int_equal(write_one("o", i, 1), HF_OK);
    k->options.tenant_records_max = MAX;
    k->options.idempotency_window_ms = HOUR;
    kit_reopen(k);
    k->tenant = "t";
    for (int i = 0; i < MAX; i++) {
        snprintf(key, sizeof key, "c%d", i);
        assert_int_equal(kit_begin(k, key, "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
        assert_int_equal(
            kit_settle_claim(k, HF_COMPLETE, key, k->got.answer.claim.fence, "r", false), HF_OK);
    }
    kit_at(k, 2 * HOUR);
    assert_int_equal(kit_begin(k, "new", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_STORAGE_FAILURE);
    assert_int_equal(k->got.answer.limit, HF_LIMIT_TENANT_RECORDS);
    kit_settle(k);
    assert_int_equal(kit_begin(k, "new", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
    struct hf_usage use;
    hf_usage_of(k->db, hf_str("t"), &use);
    assert_int_equal(use.records, 1);
}

/* ---- Deletion ---- */

static enum hf_status delete_register(const char *key, const char *name, uint64_t fence)
{
    return kit_do(k, (struct hf_request){ .action = HF_DELETE_REGISTER,
                                          .key = hf_str(key),
                                          .write = { .name = hf_str(name), .fence = fence } });
}

static enum hf_status delete_lease(const char *key, const char *name, uint64_t fence)
{
    return kit_do(k, (struct hf_request){ .action = HF_DELETE_LEASE,
                                          .key = hf_str(key),
                                          .lease = { .name = hf_str(name), .fence = fence } });
}

static enum hf_status write_fenced(const char *key, const char *name, uint64_t fence,
                                   int64_t if_version)
{
    return kit_do(k, (struct hf_request){
                         .action = HF_WRITE,
                         .key = hf_str(key),
                         .write = { .name = hf_str(name),
                                    .value = hf_str("v"),
                                    .fence = fence,
                                    .has_if_version = if_version >= 0,
                                    .if_version = (uint64_t)(if_version > 0 ? if_version : 0) } });
}

static void deleting_lifts_the_refusal(void **state)
{
    (void)state;
    both_needs_files();
    char name[32], key[32];
    k->options.memory_max_bytes = 6 << 20;
    kit_reopen(k);
    begin_much(&begun, 10, 10, LEASES);
    int written = fill("r");
    kit_reopen(k);
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof name, "lease-%d", i);
        snprintf(key, sizeof key, "dl-%d", i);
        assert_int_equal(delete_lease(key, name, begun.leases[i]), HF_OK);
    }
    uint64_t full = kit_stats(k).memory_used_bytes;
    for (int i = 0; i < written; i++) { /* all of them, at the limit and below it */
        snprintf(name, sizeof name, "r-%d", i);
        snprintf(key, sizeof key, "d-%d", i);
        assert_int_equal(delete_register(key, name, 0), HF_OK);
        assert_int_equal(k->got.answer.reg.value.type, HF_TYPE_DELETED);
    }
    assert_int_equal(kit_stats(k).registers, 0);
    assert_true(kit_stats(k).memory_used_bytes < full / 4);
    assert_false(kit_stats(k).memory_full);
    assert_int_equal(kit_place(k, "new", "other", "guest", HOUR), HF_OK);
    assert_int_equal(fill("again") > written / 2, 1);
    assert_int_equal(delete_register("d-0", "r-0", 0), HF_OK);
    assert_true(k->got.replayed);
    /* What is left of them goes with the window of the keys. */
    kit_at(k, 2 * DAY);
    for (int i = 0; i < 1200; i++)
        hf_maintain(k->db);
    struct hf_usage use;
    hf_usage_of(k->db, hf_str(""), &use);
    uint64_t rows = use.records - kit_stats(k).tokens - kit_stats(k).holds_live;
    assert_true(rows == kit_stats(k).registers + kit_stats(k).resources + kit_stats(k).claims);
}

static uint64_t records_of(const char *tenant)
{
    struct hf_usage usage;
    hf_usage_of(k->db, hf_str(tenant), &usage);
    return usage.records;
}

/* What a deleted register leaves if it had a fence stays for ever. It must not use the quota up for
 * ever, too. */
static void what_deleted_registers_leave_is_no_record(void **state)
{
    enum { QUOTA = 100 };
    char name[16], key[16];
    (void)state;
    both_needs_files();
    k->options.tenant_records_max = QUOTA;
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    k->tenant = "t";
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < QUOTA / 3; i++) {
            snprintf(name, sizeof name, "r%d-%d", round, i);
            snprintf(key, sizeof key, "w%d-%d", round, i);
            assert_int_equal(write_fenced(key, name, 1, -1), HF_OK);
            key[0] = 'd';
            assert_int_equal(delete_register(key, name, 0), HF_OK);
        }
        kit_at(k, round * HOUR);
        kit_settle(k);
        assert_int_equal(records_of("t"), 0);
    }
    kit_reopen(k);
    kit_settle(k); /* keys that were freed and are in the journal yet are passed again */
    assert_int_equal(records_of("t"), 0);
    struct hf_usage usage;
    hf_usage_of(k->db, hf_str("t"), &usage);
    assert_true(usage.memory_bytes > (uint64_t)QUOTA * 100); /* of memory it counts */
    /* The fence is known. A register under the name is a record again. */
    assert_int_equal(write_fenced("old", "r1-1", 1, -1), HF_STALE_FENCE);
    uint64_t before = records_of("t");
    assert_int_equal(write_fenced("new", "r1-1", 2, -1), HF_OK);
    assert_int_equal(records_of("t"), before + 2); /* and its key */
    assert_int_equal(delete_register("again", "r1-1", 0), HF_OK);
    assert_int_equal(records_of("t"), before + 2);
}

static void a_deleted_register_keeps_its_fence_and_its_version(void **state)
{
    (void)state;
    assert_int_equal(write_fenced("w1", "r", 7, -1), HF_OK);
    assert_int_equal(delete_register("d0", "r", 7), HF_STALE_FENCE);
    assert_int_equal(delete_register("d1", "r", 8), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 2);
    assert_int_equal(k->got.answer.reg.fence, 8);
    assert_int_equal(delete_register("d1", "r", 8), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(delete_register("d2", "r", 9), HF_NOT_KNOWN);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r"), HF_NOT_KNOWN);
    for (int round = 0; round < 2; round++) { /* also after its window, and from the journal */
        char key[16];
        snprintf(key, sizeof key, "s%d", round);
        assert_int_equal(write_fenced(key, "r", 8, -1), HF_STALE_FENCE);
        kit_at(k, 3 * DAY);
        kit_settle(k);
        kit_reopen(k);
    }
    assert_int_equal(write_fenced("v1", "r", 9, 2),
                     HF_VERSION_MISMATCH); /* the version of what is not there is 0 */
    assert_int_equal(write_fenced("v2", "r", 9, 0), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 3);
    assert_int_equal(k->got.answer.reg.fence, 9);
}

static void without_a_fence_versions_go_on_for_one_window(void **state)
{
    (void)state;
    struct hf_value number = { .type = HF_TYPE_MAX, .number = 5 };
    struct hf_request merge = { .action = HF_MERGE, .merge = { hf_str("r"), &number } };
    assert_int_equal(write_fenced("w1", "r", 0, -1), HF_OK);
    assert_int_equal(delete_register("d1", "r", 0), HF_OK);
    kit_reopen(k);
    assert_int_equal(write_fenced("stale", "r", 0, 1), HF_VERSION_MISMATCH);
    assert_int_equal(kit_do(k, merge), HF_OK); /* it may come back as another type */
    assert_int_equal(k->got.answer.reg.version, 3);
    assert_int_equal(k->got.answer.reg.value.number, 5);
    assert_int_equal(delete_register("d2", "r", 0), HF_OK);
    kit_at(k, 2 * DAY);
    kit_settle(k);
    assert_int_equal(write_fenced("w2", "r", 0, 0), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 1);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r"), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 1);
}

static enum hf_status grant(const char *key, const char *holder)
{
    return kit_do(
        k, (struct hf_request){
               .action = HF_GRANT,
               .key = hf_str(key),
               .lease = { .name = hf_str("l"), .holder = hf_str(holder), .ttl_ms = MINUTE } });
}

static void a_lease_is_deleted_by_its_holder_or_when_it_is_over(void **state)
{
    (void)state;
    assert_int_equal(delete_lease("d0", "l", 0), HF_NOT_KNOWN);
    assert_int_equal(grant("g1", "me"), HF_OK);
    uint64_t fence = k->got.answer.lease.fence;
    assert_int_equal(delete_lease("d1", "l", 0), HF_LEASE_HELD);
    assert_int_equal(delete_lease("d2", "l", fence + 1), HF_INVALID_REQUEST);
    assert_int_equal(delete_lease("d3", "l", fence), HF_OK);
    assert_true(k->got.answer.lease.released_at != 0);
    assert_int_equal(kit_get(k, HF_GET_LEASE, "l"), HF_NOT_KNOWN);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_LEASE, "l"), HF_NOT_KNOWN);
    assert_int_equal(delete_lease("d3", "l", fence), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(grant("g2", "you"), HF_OK);
    assert_true(k->got.answer.lease.fence > fence);
    assert_int_equal(delete_lease("d4", "l", fence), HF_STALE_FENCE);
    fence = k->got.answer.lease.fence;
    kit_at(k, HOUR);
    assert_int_equal(delete_lease("d5", "l", 0), HF_OK); /* it ran out */
    kit_reopen(k);
    assert_int_equal(grant("g3", "me"), HF_OK);
    assert_true(k->got.answer.lease.fence > 2);
}

/* What a tenant uses is counted anew from the snapshot and the journal, and comes out the same. */
static void the_count_is_the_same_after_a_restart(void **state)
{
    (void)state;
    both_needs_files();
    static const char *const tenants[] = { NULL, "a", "b", "tenant-with-a-longer-name" };
    struct hf_usage before[4], after;
    uint64_t snapshots = 0;
    char id[HF_ID_SIZE];
    k->options.snapshot_every_bytes = 200000;
    k->options.idempotency_window_ms = HOUR;
    kit_reopen(k);
    for (int round = 0; round < 12; round++) {
        for (int t = 0; t < 4; t++) {
            k->tenant = tenants[t];
            for (int i = 0; i < 20 * (t + 1); i++) {
                kit_held(k, kit_key(k), i % 2 ? MINUTE : DAY, id);
                if (i % 3 == 0)
                    assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), id), HF_OK);
                assert_int_equal(write_one("r", round * 1000 + i, 500), HF_OK);
                assert_int_equal(kit_begin(k, kit_key(k), "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
            }
        }
        kit_at(k, (round + 1) * 10 * MINUTE);
        kit_settle(k);
        for (int t = 0; t < 4; t++)
            hf_usage_of(k->db, hf_str(tenants[t]), &before[t]);
        snapshots += kit_stats(k).snapshots;
        if (round % 4 == 3) { /* and without a snapshot, from the journal alone */
            kit_close(k);
            kit_remove(k, ".snap");
            kit_open(k);
        } else {
            kit_reopen(k);
        }
        kit_settle(k); /* keys that were freed and are in the journal yet are passed again */
        for (int t = 0; t < 4; t++) {
            hf_usage_of(k->db, hf_str(tenants[t]), &after);
            assert_int_equal(after.records, before[t].records);
            assert_true(after.memory_bytes <= before[t].memory_bytes + before[t].memory_bytes / 8);
        }
    }
    assert_true(kit_stats(k).tokens > 0 && snapshots > 3);
}

static void tenants_that_have_nothing_left_are_forgotten(void **state)
{
    (void)state;
    both_needs_files();
    char name[32];
    k->options.idempotency_window_ms = MINUTE;
    kit_reopen(k);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "tenant-%d", i);
        k->tenant = name;
        assert_int_equal(kit_begin(k, "c", "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
        assert_int_equal(
            kit_settle_claim(k, HF_COMPLETE, "c", k->got.answer.claim.fence, "r", false), HF_OK);
    }
    k->tenant = NULL;
    struct hf_usage top[5], others;
    assert_int_equal(kit_stats(k).tenants, 500);
    assert_int_equal(hf_usage(k->db, top, 5, &others), 5);
    assert_int_equal(others.records, 495);
    kit_at(k, HOUR);
    for (int i = 0; i < 1200; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).tenants, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(at_the_memory_limit_everything_that_was_begun_can_be_ended),
        TEST(what_ends_nothing_takes_no_memory_at_the_limit),
        TEST(on_a_full_disk_some_room_is_left_for_endings),
        TEST(a_full_disk_says_what_is_full),
        TEST(one_tenant_at_its_quota_does_not_stop_another),
        TEST(a_quota_of_records_counts_rows_keys_and_held_holds),
        TEST(what_is_over_makes_room_at_a_quota),
        TEST(deleting_lifts_the_refusal),
        TEST(what_deleted_registers_leave_is_no_record),
        TEST(a_deleted_register_keeps_its_fence_and_its_version),
        TEST(without_a_fence_versions_go_on_for_one_window),
        TEST(a_lease_is_deleted_by_its_holder_or_when_it_is_over),
        TEST(the_count_is_the_same_after_a_restart),
        TEST(tenants_that_have_nothing_left_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

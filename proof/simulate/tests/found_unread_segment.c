/* Found by the simulator: a segment that could not be read once, while keys were freed, was taken
 * for one that has ended. The keys in the rest of it stayed in memory until the next start. */
#include "simulate/disk.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>

struct world {
    hf_time wall;
    uint64_t steady_ns;
    int failing; /* so many reads fail from now on */
    unsigned failed;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    if (call != SIM_READ || w->failing == 0)
        return 0;
    w->failing--;
    w->failed++;
    return -EIO;
}

static uint32_t choose(void *arg, uint32_t n)
{
    (void)arg;
    return n - 1;
}

static hf_time wall_ms(void *arg)
{
    return ((struct world *)arg)->wall;
}

static uint64_t monotonic_ns(void *arg)
{
    return ((struct world *)arg)->steady_ns;
}

static int random_bytes(void *arg, void *data, size_t size)
{
    (void)arg;
    memset(data, 7, size);
    return 0;
}

static struct hf_db *open_store(struct sim_disk *disk)
{
    struct hf_options options = { .idempotency_window_ms = 60000,
                                  .segment_max_bytes = 65536,
                                  .snapshot_every_bytes = 65536,
                                  .no_background = true,
                                  .no_committer = true,
                                  .io = sim_disk_io(disk) };
    struct hf_error why;
    struct hf_db *db;
    if (hf_open("store", &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

static void write_keys(struct hf_db *db, int from, int to)
{
    for (int i = from; i < to; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        struct hf_request r = { .action = HF_WRITE, .key = hf_str(key) };
        r.write.name = hf_str("x");
        r.write.value = hf_str(key);
        assert_int_equal(hf_do(db, &r, NULL), HF_OK);
    }
}

static void maintain(struct hf_db *db)
{
    while (hf_maintain(db))
        ;
}

static uint64_t keys_of(struct hf_db *db)
{
    struct hf_stats stats;
    hf_stats(db, &stats);
    return stats.tokens;
}

static void what_cannot_be_read_is_not_passed_over(void **state)
{
    (void)state;
    struct world w = { .wall = INT64_C(1700000000000) };
    struct sim_disk_owner owner = { .arg = &w,
                                    .before = before,
                                    .choose = choose,
                                    .wall_ms = wall_ms,
                                    .monotonic_ns = monotonic_ns,
                                    .random = random_bytes };
    struct sim_disk *disk = sim_disk_new(&owner);
    struct hf_db *db = open_store(disk);
    write_keys(db, 0, 40);
    maintain(db); /* a snapshot with all keys in it */
    w.wall += 120000;
    write_keys(db, 40, 41);
    maintain(db); /* they are freed, and their segments packed */
    assert_int_equal(keys_of(db), 1);
    hf_close(db);

    db = open_store(disk);
    assert_true(keys_of(db) > 30); /* from the snapshot */
    w.failing = 1;
    for (int i = 0; i < 8; i++) {
        w.steady_ns += UINT64_C(2000000000);
        hf_maintain(db);
    }
    assert_int_equal(w.failed, 1);
    w.failing = 0;
    maintain(db);
    assert_int_equal(keys_of(db), 1);
    hf_close(db);
    sim_disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_cannot_be_read_is_not_passed_over) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The process died, or was told of a failure, between giving the next segment its name and making
 * the name durable. The next start found the segment and wrote into it; the name was still not
 * durable, and a power cut took it away with everything that had been acknowledged since. (Seed
 * 40908 of the simulator.) */
#include "simulate/disk.h"
#include "support/test.h"

#include <errno.h>

struct world {
    struct sim_disk_owner owner;
    struct sim_disk *disk;
    struct hf_db *db;
    bool names_fail;
    unsigned failed;
    uint64_t random, keys;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    if (call != SIM_DIR_SYNC || !w->names_fail)
        return 0;
    w->failed++;
    return -EIO;
}

/* Whatever was not synced is lost. */
static uint32_t choose(void *arg, uint32_t n)
{
    (void)arg;
    (void)n;
    return 0;
}

static hf_time wall_ms(void *arg)
{
    (void)arg;
    return INT64_C(1700000000000);
}

static uint64_t monotonic_ns(void *arg)
{
    (void)arg;
    return 1;
}

static int fill_random(void *arg, void *data, size_t size)
{
    struct world *w = arg;
    unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)test_random(&w->random);
    return 0;
}

static void world_open(struct world *w)
{
    struct hf_options options = { .no_background = true,
                                  .segment_max_bytes = 131072,
                                  .keep_plain = true,
                                  .io = sim_disk_io(w->disk) };
    struct hf_error why;
    if (hf_open("store", &options, &w->db, &why) != HF_OK)
        fail_msg("cannot open: %s", why.text);
}

/* Write with key `n`; was it a replay? */
static bool write_once(struct world *w, uint64_t n)
{
    static const char value[3000] = "v";
    char key[32];
    struct hf_result result = HF_RESULT_INIT;
    snprintf(key, sizeof key, "key-%llu", (unsigned long long)n);
    struct hf_request r = { .action = HF_WRITE,
                            .key = hf_str(key),
                            .write = { .name = hf_str("file"),
                                       .value = hf_mem(value, sizeof value) } };
    assert_int_equal(hf_do(w->db, &r, &result), HF_OK);
    bool replayed = result.replayed;
    hf_result_clear(&result);
    return replayed;
}

static void what_is_acknowledged_in_a_segment_survives(void **state)
{
    (void)state;
    struct world w = { .random = 7 };
    w.owner = (struct sim_disk_owner){ .arg = &w,
                                       .before = before,
                                       .choose = choose,
                                       .wall_ms = wall_ms,
                                       .monotonic_ns = monotonic_ns,
                                       .random = fill_random };
    w.disk = sim_disk_new(&w.owner);
    world_open(&w);
    /* Half of the first segment; then the next one is named, and its name cannot be made
     * durable. */
    while (w.keys < 15)
        assert_false(write_once(&w, w.keys++));
    w.names_fail = true;
    for (int i = 0; i < 20; i++)
        hf_maintain(w.db);
    assert_true(w.failed > 0);
    hf_close(w.db);
    w.names_fail = false;
    world_open(&w);
    while (w.keys < 50)
        assert_false(write_once(&w, w.keys++));
    sim_disk_cut(w.disk);
    hf_close(w.db);
    sim_disk_restart(w.disk);
    world_open(&w);
    for (uint64_t n = 0; n < w.keys; n++)
        if (!write_once(&w, n))
            fail_msg("key %llu was acknowledged, and is lost", (unsigned long long)n);
    hf_close(w.db);
    sim_disk_free(w.disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        what_is_acknowledged_in_a_segment_survives) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

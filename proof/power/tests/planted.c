/* The explorer is not blind: a disk that says it has synced and has not, a directory sync or a
 * rename that is less than it should be, and it objects. */
#include "power/kit.h"
#include "support/test.h"

#include <errno.h>

enum { STEPS = 20 };

static const char *const tenants[] = { "", NULL };
static const char *const names[] = { "register", NULL };

static void step(struct power *p, size_t number)
{
    static char value[9000];
    char key[32];
    snprintf(key, sizeof key, "write-%zu", number);
    memset(value, 'a' + (int)(number % 26), sizeof value);
    /* Keys and what they wrote go out of date now and then, so that segments can be compressed. */
    power_at(p, (int64_t)(number / 5) * 100000);
    if (number % 5 == 0)
        power_settle(p);
    else
        power_do(p,
                 &(struct hf_request){ .action = HF_WRITE,
                                       .key = hf_str(key),
                                       .write = { .name = hf_str("register"),
                                                  .value = hf_mem(value, sizeof value) } },
                 1);
}

static const struct power_script honest = { .name = "planted",
                                            .options = { .segment_max_bytes = 64 << 10,
                                                         .snapshot_every_bytes = 48 << 10,
                                                         .idempotency_window_ms = 60000 },
                                            .steps = STEPS,
                                            .step = step,
                                            .tenants = tenants,
                                            .names = names };

static void explore_must_object(void (*plant)(struct hf_io *io))
{
    struct power_script script = honest;
    struct power_count count;
    script.plant = plant;
    assert_non_null(power_explore(&script, &count));
}

static int sync_lies(struct hf_file *file)
{
    (void)file;
    return 0;
}

static void plant_sync(struct hf_io *io)
{
    io->sync = sync_lies;
}

static void a_sync_that_does_nothing_is_found(void **s)
{
    (void)s;
    explore_must_object(plant_sync);
}

static int dir_sync_lies(struct hf_dir *dir)
{
    (void)dir;
    return 0;
}

static void plant_dir_sync(struct hf_io *io)
{
    io->dir_sync = dir_sync_lies;
}

static void a_directory_sync_that_does_nothing_is_found(void **s)
{
    (void)s;
    explore_must_object(plant_dir_sync);
}

/* Only the second sync of a file counts: most files are never synced then, and batches one sync too
 * late. */
static int (*real_sync)(struct hf_file *file);
static unsigned syncs;

static int sync_every_other(struct hf_file *file)
{
    return ++syncs % 2 ? real_sync(file) : 0;
}

static void plant_some_syncs(struct hf_io *io)
{
    real_sync = io->sync;
    io->sync = sync_every_other;
}

static void every_other_sync_is_not_enough(void **s)
{
    (void)s;
    explore_must_object(plant_some_syncs);
}

static void nothing_is_planted_and_nothing_is_found(void **s)
{
    (void)s;
    struct power_count count;
    const char *objection = power_explore(&honest, &count);
    power_print(&honest, &count);
    if (objection)
        fail_msg("%s", objection);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sync_that_does_nothing_is_found),
        cmocka_unit_test(a_directory_sync_that_does_nothing_is_found),
        cmocka_unit_test(every_other_sync_is_not_enough),
        cmocka_unit_test(nothing_is_planted_and_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

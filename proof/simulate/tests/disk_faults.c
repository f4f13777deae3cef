/* The simulated disk: calls that fail, a disk that is full, bits that flip, and the time without
 * power. */
#include "simulate/tests/kit/disk.h"
#include "support/test.h"

#include <errno.h>

static void a_failed_sync_leaves_a_doubt_that_later_ones_do_not_take_away(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    unsigned char bytes[SIM_SECTOR];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 3);
    memset(bytes, 2, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, 0), 0);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, SIM_SECTOR), 0);
    k.odometer.fail = -EIO;
    k.odometer.fail_call = SIM_SYNC;
    assert_int_equal(k.io->sync(file), -EIO);
    memset(bytes, 3, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, SIM_SECTOR), 0);
    assert_int_equal(k.io->sync(file), 0);
    assert_int_equal(k.io->sync(file), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_int_equal(desk_count(seen), 3);
    assert_true(desk_has(seen, "1536:11 33 11 ") && desk_has(seen, "1536:22 33 11 ") &&
                desk_has(seen, "1536:21 33 11 "));
    /* What was written again is beyond doubt, the same bytes too. */
    memset(bytes, 2, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, 0), 0);
    assert_int_equal(k.io->sync(file), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_string_equal(seen, "|1536:22 33 11 |");
    k.io->close(file);
    desk_close(&k);
}

static void a_size_in_doubt_stays_so_until_there_is_another(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 2);
    assert_int_equal(k.io->truncate(file, SIM_SECTOR), 0);
    k.odometer.fail = -EIO;
    k.odometer.fail_call = SIM_SYNC;
    assert_int_equal(k.io->sync(file), -EIO);
    assert_int_equal(k.io->sync(file), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_int_equal(desk_count(seen), 2);
    assert_true(desk_has(seen, "1024:11 11 ") && desk_has(seen, "512:11 "));
    assert_int_equal(k.io->truncate(file, 10), 0);
    assert_int_equal(k.io->sync(file), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_string_equal(seen, "|10:11 |");
    k.io->close(file);
    desk_close(&k);
}

static void a_failed_write_may_have_written_any_part(void **s)
{
    (void)s;
    for (uint32_t much = 0; much < 3; much++) {
        struct desk k;
        char text[200] = "";
        unsigned char bytes[2 * SIM_SECTOR];
        desk_open(&k);
        struct hf_file *file = desk_sectors(&k, 2);
        memset(bytes, 2, sizeof bytes);
        k.odometer.fail = -EIO;
        k.odometer.fail_call = SIM_WRITE;
        k.odometer.answers[0] = much;
        k.odometer.answers[1] = SIM_SECTOR + 1;
        assert_int_equal(k.io->write(file, bytes, sizeof bytes, 0), -EIO);
        desk_look(k.disk, text, sizeof text);
        assert_string_equal(text, much == 0   ? "1024:11 11 "
                                  : much == 1 ? "1024:22 21 "
                                              : "1024:22 22 ");
        k.io->close(file);
        desk_close(&k);
    }
}

static void other_calls_that_fail_do_nothing(void **s)
{
    (void)s;
    static const enum sim_call calls[] = { SIM_OPEN, SIM_RENAME,   SIM_REMOVE,  SIM_TRUNCATE,
                                           SIM_MAP,  SIM_DIR_OPEN, SIM_READ,    SIM_SIZE,
                                           SIM_LOCK, SIM_DIR_LIST, SIM_DIR_SYNC };
    struct desk k;
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 2), *other;
    struct hf_dir *dir;
    const unsigned char *map;
    unsigned char byte;
    char holder[32];
    uint64_t size, hash = sim_disk_hash(k.disk);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        k.odometer.fail = -ENOMEM;
        k.odometer.fail_call = calls[i];
        int answers[] = { k.io->open(k.dir, "b", HF_OPEN_CREATE, &other), 0 };
        switch (calls[i]) {
        case SIM_OPEN: break;
        case SIM_RENAME: answers[0] = k.io->rename(k.dir, "a", "c"); break;
        case SIM_REMOVE: answers[0] = k.io->remove(k.dir, "a"); break;
        case SIM_TRUNCATE: answers[0] = k.io->truncate(file, 0); break;
        case SIM_MAP: answers[0] = k.io->map(file, 512, &map); break;
        case SIM_DIR_OPEN: answers[0] = k.io->dir_open(k.io->ctx, "store", true, &dir); break;
        case SIM_READ: answers[0] = k.io->read(file, &byte, 1, 0); break;
        case SIM_SIZE: answers[0] = k.io->size(file, &size); break;
        case SIM_LOCK: answers[0] = k.io->lock(k.dir, "me\n", holder, sizeof holder); break;
        case SIM_DIR_LIST: answers[0] = k.io->dir_list(k.dir, NULL, NULL); break;
        default: answers[0] = k.io->dir_sync(k.dir); break;
        }
        assert_int_equal(answers[0], -ENOMEM);
        if (calls[i] == SIM_OPEN)
            continue;
        k.io->close(other);
        assert_int_equal(k.io->remove(k.dir, "b"), 0);
        assert_int_equal(sim_disk_hash(k.disk), hash);
    }
    k.io->close(file);
    desk_close(&k);
}

static void a_full_disk_takes_what_fits(void **s)
{
    (void)s;
    struct desk k;
    unsigned char bytes[1000];
    char text[200] = "";
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 1);
    memset(bytes, 2, sizeof bytes);
    sim_disk_room(k.disk, 1024);
    assert_int_equal(k.io->write(file, bytes, 600, 500), -ENOSPC);
    desk_look(k.disk, text, sizeof text);
    assert_string_equal(text, "1024:12 22 ");
    assert_int_equal(sim_disk_used(k.disk), 1024);
    assert_int_equal(k.io->write(file, bytes, 24, 1000), 0);
    assert_int_equal(k.io->write(file, bytes, 1, 4000), -ENOSPC);
    assert_int_equal(k.io->truncate(file, 1025), -ENOSPC);
    sim_disk_room(k.disk, 100); /* less than there is */
    assert_int_equal(k.io->write(file, bytes, 24, 1000), 0);
    assert_int_equal(k.io->write(file, bytes, 25, 1000), -ENOSPC);
    sim_disk_room(k.disk, UINT64_MAX);
    assert_int_equal(k.io->write(file, bytes, 1000, 1000), 0);
    assert_int_equal(sim_disk_used(k.disk), 2000);
    k.io->close(file);
    desk_close(&k);
}

static void a_bit_can_be_flipped_there_and_back(void **s)
{
    (void)s;
    struct desk k;
    desk_open(&k);
    desk_put(&k, "a", 1, 1000, false);
    uint64_t hash = sim_disk_hash(k.disk);
    assert_false(sim_disk_flip(k.disk, "b", 0, 0));
    assert_false(sim_disk_flip(k.disk, "a", 1000, 0));
    assert_true(sim_disk_flip(k.disk, "a", 999, 7));
    assert_int_not_equal(sim_disk_hash(k.disk), hash);
    assert_true(sim_disk_flip(k.disk, "a", 999, 7));
    assert_int_equal(sim_disk_hash(k.disk), hash);
    desk_close(&k);
}

static void a_lost_write_leaves_what_was_there_before(void **s)
{
    (void)s;
    struct desk k;
    struct hf_bytes now;
    unsigned char old[10] = "as it was";
    desk_open(&k);
    desk_put(&k, "a", 1, 1000, false);
    assert_false(
        sim_disk_put(k.disk, "a", hf_mem(old, 10), 500)); /* not synced: a cut decides about that */
    desk_put(&k, "b", 1, 1000, true);
    assert_false(sim_disk_put(k.disk, "c", hf_mem(old, 10), 0));
    assert_false(sim_disk_put(k.disk, "b", hf_mem(old, 10), 991));
    assert_true(sim_disk_put(k.disk, "b", hf_mem(old, 10), 990));
    assert_true(sim_disk_bytes(k.disk, "b", &now));
    assert_memory_equal((const char *)now.data + 990, old, 10);
    desk_close(&k);
}

static void without_power_nothing_works_and_nothing_changes(void **s)
{
    (void)s;
    struct desk k;
    unsigned char byte;
    struct hf_file *other;
    uint64_t size;
    const unsigned char *map, *early;
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 1);
    assert_int_equal(k.io->map(file, 512, &early), 0);
    uint64_t hash = sim_disk_hash(k.disk);
    k.odometer.fail = SIM_POWER_CUT;
    k.odometer.fail_call = SIM_WRITE;
    assert_int_equal(k.io->write(file, "x", 1, 0), -EIO);
    assert_true(sim_disk_is_cut(k.disk));
    assert_int_equal(k.io->write(file, "x", 1, 0), -EIO);
    assert_int_equal(k.io->sync(file), -EIO);
    assert_int_equal(k.io->read(file, &byte, 1, 0), -EIO);
    assert_int_equal(k.io->size(file, &size), -EIO);
    assert_int_equal(k.io->map(file, 1, &map), -EIO);
    assert_int_equal(k.io->truncate(file, 0), -EIO);
    assert_int_equal(k.io->open(k.dir, "a", HF_OPEN_CREATE, &other), -EIO);
    assert_int_equal(k.io->rename(k.dir, "a", "b"), -EIO);
    assert_int_equal(k.io->remove(k.dir, "a"), -EIO);
    assert_int_equal(k.io->dir_sync(k.dir), -EIO);
    assert_int_equal(k.odometer.calls[SIM_WRITE], 2); /* desk_sectors made the other one */
    assert_int_equal(early[0], 1);
    k.io->unmap(file, early, 512);
    k.io->close(file);
    k.io->dir_close(k.dir);
    sim_disk_restart(k.disk);
    assert_false(sim_disk_is_cut(k.disk));
    assert_int_equal(sim_disk_hash(k.disk), hash);
    assert_int_equal(k.io->dir_open(k.io->ctx, "store", false, &k.dir), 0);
    desk_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_sync_leaves_a_doubt_that_later_ones_do_not_take_away),
        cmocka_unit_test(a_size_in_doubt_stays_so_until_there_is_another),
        cmocka_unit_test(a_failed_write_may_have_written_any_part),
        cmocka_unit_test(other_calls_that_fail_do_nothing),
        cmocka_unit_test(a_full_disk_takes_what_fits),
        cmocka_unit_test(a_bit_can_be_flipped_there_and_back),
        cmocka_unit_test(a_lost_write_leaves_what_was_there_before),
        cmocka_unit_test(without_power_nothing_works_and_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

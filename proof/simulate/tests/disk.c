/* The simulated disk: what a power cut may take, and what it may not. Every state that the chooser
 * can bring about is walked through, and compared with what is written down here. */
#include "simulate/tests/kit/disk.h"
#include "support/test.h"

#include <errno.h>

/* ---- Without a cut it is a disk like any other ---- */

static void it_reads_what_was_written(void **s)
{
    (void)s;
    struct desk k;
    unsigned char bytes[2000], back[2000];
    const unsigned char *map;
    uint64_t size;
    desk_open(&k);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    struct hf_file *file = desk_file(&k, "a", HF_OPEN_CREATE);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, 1000), 0);
    assert_int_equal(k.io->size(file, &size), 0);
    assert_int_equal(size, 3000);
    assert_int_equal(k.io->read(file, back, 1000, 0), 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(back[i], 0);
    assert_int_equal(k.io->map(file, 3000, &map), 0);
    assert_memory_equal(map + 1000, bytes, sizeof bytes);
    assert_int_equal(k.io->write(file, "later", 5, 777), 0);
    assert_memory_equal(map + 777, "later", 5);
    k.io->unmap(file, map, 3000);
    assert_int_equal(k.io->read(file, back, 2, 2999), -EIO);
    assert_int_equal(k.io->truncate(file, 1001), 0);
    assert_int_equal(k.io->truncate(file, 1500), 0);
    assert_int_equal(k.io->read(file, back, 500, 1000), 0);
    assert_int_equal(back[0], bytes[0]);
    assert_int_equal(back[1], 0);
    k.io->close(file);
    assert_int_equal(sim_disk_used(k.disk), 1500);
    file = desk_file(&k, "a", HF_OPEN_CREATE);
    assert_int_equal(sim_disk_used(k.disk), 0);
    k.io->close(file);
    assert_int_equal(k.io->wall_ms(k.io->ctx), 7);
    assert_int_equal(k.io->monotonic_ns(k.io->ctx), 8);
    assert_int_equal(k.io->random(k.io->ctx, back, 3), 0);
    assert_int_equal(back[2], 9);
    desk_close(&k);
}

static void names_are_those_of_one_directory(void **s)
{
    (void)s;
    struct desk k;
    struct hf_file *file;
    struct hf_dir *other;
    char long_name[100], list[200] = "", holder[32] = "";
    desk_open(&k);
    memset(long_name, 'x', sizeof long_name);
    long_name[99] = '\0';
    assert_int_equal(k.io->open(k.dir, "no", HF_OPEN_READ, &file), -ENOENT);
    assert_int_equal(k.io->open(k.dir, "no", HF_OPEN_WRITE, &file), -ENOENT);
    assert_int_equal(k.io->open(k.dir, long_name, HF_OPEN_CREATE, &file), -ENAMETOOLONG);
    desk_put(&k, "a", 1, 10, true);
    desk_put(&k, "b", 2, 20, true);
    desk_put(&k, "c", 3, 30, true);
    assert_int_equal(k.io->rename(k.dir, "a", long_name), -ENAMETOOLONG);
    assert_int_equal(k.io->rename(k.dir, "no", "a"), -ENOENT);
    assert_int_equal(k.io->remove(k.dir, "no"), -ENOENT);
    assert_int_equal(k.io->rename(k.dir, "a", "a"), 0);
    assert_int_equal(k.io->rename(k.dir, "a", "b"), 0);
    file = desk_file(&k, "c", HF_OPEN_READ);
    assert_int_equal(k.io->write(file, "x", 1, 0), -EBADF);
    assert_int_equal(k.io->truncate(file, 0), -EBADF);
    assert_int_equal(k.io->remove(k.dir, "c"), 0);
    assert_int_equal(sim_disk_used(k.disk), 40);
    sim_disk_each(k.disk, desk_list, list);
    assert_string_equal(list, "b:10 ");
    k.io->close(file);
    assert_int_equal(sim_disk_used(k.disk), 10);
    assert_int_equal(k.io->lock(k.dir, "me\n", holder, sizeof holder), 0);
    assert_int_equal(k.io->dir_open(k.io->ctx, "store", false, &other), 0);
    assert_int_equal(k.io->lock(other, "you\n", holder, sizeof holder), -EBUSY);
    assert_string_equal(holder, "me");
    k.io->dir_close(other);
    assert_int_equal(k.io->lock(k.dir, "me\n", holder, sizeof holder), -EBUSY);
    desk_close(&k);
}

static void a_directory_that_was_not_made_is_not_there(void **s)
{
    (void)s;
    struct desk_odometer o = { .asked = 0 };
    struct sim_disk_owner owner = desk_owner(&o);
    struct sim_disk *d = sim_disk_new(&owner);
    struct hf_dir *dir;
    assert_int_equal(sim_disk_io(d)->dir_open(d, "store", false, &dir), -ENOENT);
    assert_int_equal(sim_disk_io(d)->dir_open(d, "store", true, &dir), 0);
    sim_disk_io(d)->dir_close(dir);
    sim_disk_free(d);
}

/* ---- The cut ---- */

static void what_was_synced_stays(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    desk_put(&k, "a", 1, 2000, true);
    assert_int_equal(k.io->dir_sync(k.dir), 0);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_string_equal(seen, "|a:2000 |");
    desk_close(&k);
}

static void a_name_that_was_not_synced_may_go_although_its_content_was(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    desk_put(&k, "a", 1, 100, true);
    desk_put(&k, "b", 1, 200, true);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_int_equal(desk_count(seen), 4);
    assert_true(desk_has(seen, "") && desk_has(seen, "a:100 ") && desk_has(seen, "b:200 ") &&
                desk_has(seen, "a:100 b:200 "));
    desk_close(&k);
}

static void a_rename_is_there_or_not(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    desk_put(&k, "old", 1, 100, true);
    desk_put(&k, "new.tmp", 2, 200, true);
    assert_int_equal(k.io->dir_sync(k.dir), 0);
    assert_int_equal(k.io->rename(k.dir, "new.tmp", "old"), 0);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_int_equal(desk_count(seen), 2);
    assert_true(desk_has(seen, "old:100 new.tmp:200 ") && desk_has(seen, "old:200 "));
    /* A second one over the first: the file is never there twice, and never lost. */
    assert_int_equal(k.io->rename(k.dir, "old", "third"), 0);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_int_equal(desk_count(seen), 4);
    assert_true(desk_has(seen, "old:100 new.tmp:200 ") && desk_has(seen, "old:200 ") &&
                desk_has(seen, "third:200 ") && desk_has(seen, "old:100 third:200 "));
    assert_int_equal(k.io->remove(k.dir, "third"), 0);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_true(desk_has(seen, "") && desk_has(seen, "old:100 new.tmp:200 ") &&
                desk_has(seen, "old:100 "));
    assert_int_equal(k.io->dir_sync(k.dir), 0);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_string_equal(seen, "||");
    desk_close(&k);
}

static void a_removed_file_may_come_back(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    desk_put(&k, "a", 1, 100, true);
    assert_int_equal(k.io->dir_sync(k.dir), 0);
    assert_int_equal(k.io->remove(k.dir, "a"), 0);
    desk_put(&k, "a", 2, 200, true);
    desk_states(&k, seen, sizeof seen, NULL);
    assert_int_equal(desk_count(seen), 3);
    assert_true(desk_has(seen, "") && desk_has(seen, "a:100 ") && desk_has(seen, "a:200 "));
    desk_close(&k);
}

static void sectors_survive_each_by_itself(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    unsigned char bytes[2 * SIM_SECTOR];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 3);
    memset(bytes, 2, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, 0), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_int_equal(desk_count(seen), 9);
    assert_true(desk_has(seen, "1536:11 11 11 ") && desk_has(seen, "1536:22 22 11 ") &&
                desk_has(seen, "1536:11 22 11 ") && desk_has(seen, "1536:22 11 11 ") &&
                desk_has(seen, "1536:21 21 11 ") && desk_has(seen, "1536:11 21 11 "));
    /* A second write over the first: any of the three versions. */
    memset(bytes, 3, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, SIM_SECTOR, 0), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_true(desk_has(seen, "1536:11 22 11 ") && desk_has(seen, "1536:22 22 11 ") &&
                desk_has(seen, "1536:33 22 11 ") && desk_has(seen, "1536:32 11 11 "));
    assert_int_equal(k.io->sync(file), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_string_equal(seen, "|1536:33 22 11 |");
    k.io->close(file);
    desk_close(&k);
}

static void writing_what_is_there_leaves_no_choice(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    unsigned char bytes[3 * SIM_SECTOR];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 3);
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, 0), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_string_equal(seen, "|1536:11 11 11 |");
    k.io->close(file);
    desk_close(&k);
}

static void growth_may_be_lost_or_hold_zeros(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    unsigned char bytes[2 * SIM_SECTOR];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 1);
    memset(bytes, 2, sizeof bytes);
    assert_int_equal(k.io->write(file, bytes, sizeof bytes, SIM_SECTOR), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_true(desk_has(seen, "512:11 ") && desk_has(seen, "1024:11 00 ") &&
                desk_has(seen, "1024:11 22 ") && desk_has(seen, "1536:11 00 00 ") &&
                desk_has(seen, "1536:11 00 22 ") && desk_has(seen, "1536:11 22 22 ") &&
                desk_has(seen, "1536:11 20 00 "));
    k.io->close(file);
    desk_close(&k);
}

static void a_cut_off_end_is_whole_or_gone(void **s)
{
    (void)s;
    struct desk k;
    char seen[4000];
    desk_open(&k);
    struct hf_file *file = desk_sectors(&k, 2);
    assert_int_equal(k.io->truncate(file, 100), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_int_equal(desk_count(seen), 2);
    assert_true(desk_has(seen, "1024:11 11 ") && desk_has(seen, "100:11 "));
    /* What is written where the end was cut off cannot be there if the cut is not. */
    assert_int_equal(k.io->write(file, "\2", 1, SIM_SECTOR), 0);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_int_equal(desk_count(seen), 4);
    assert_true(desk_has(seen, "1024:11 11 ") && desk_has(seen, "100:11 ") &&
                desk_has(seen, "513:10 00 ") && desk_has(seen, "513:10 22 "));
    k.io->close(file);
    file = desk_file(&k, "a", HF_OPEN_CREATE);
    desk_states(&k, seen, sizeof seen, desk_look);
    assert_true(desk_has(seen, "0:") && desk_has(seen, "1024:11 11 "));
    k.io->close(file);
    desk_close(&k);
}

/* ---- At random: against a model that keeps every version of every sector ---- */

enum { MODEL_SECTORS = 6, MODEL_VERSIONS = 64 };

struct model {
    unsigned char versions[MODEL_SECTORS]
                          [MODEL_VERSIONS]; /* what filled the sector; [0] is durable */
    unsigned count[MODEL_SECTORS];
};

static uint32_t random_choose(void *arg, uint32_t n)
{
    return (uint32_t)test_below(arg, n);
}

static bool model_allows(const struct model *m, size_t sector, unsigned char byte)
{
    for (unsigned i = 0; i < m->count[sector]; i++)
        if (m->versions[sector][i] == byte)
            return true;
    return false;
}

static void any_cut_leaves_versions_that_were_there(void **s)
{
    (void)s;
    uint64_t random = test_seed("disk", 11);
    struct sim_disk_owner owner = { .arg = &random, .choose = random_choose };
    struct sim_disk *d = sim_disk_new(&owner);
    const struct hf_io *io = sim_disk_io(d);
    struct model m;
    memset(&m, 0, sizeof m);
    for (size_t i = 0; i < MODEL_SECTORS; i++)
        m.count[i] = 1;
    unsigned char block[MODEL_SECTORS * SIM_SECTOR] = { 0 };
    for (int round = 0; round < 2000; round++) {
        struct hf_dir *dir;
        struct hf_file *file;
        assert_int_equal(io->dir_open(d, "store", true, &dir), 0);
        assert_int_equal(io->open(dir, "a", round ? HF_OPEN_WRITE : HF_OPEN_CREATE, &file), 0);
        if (round == 0) {
            assert_int_equal(io->write(file, block, sizeof block, 0), 0);
            assert_int_equal(io->sync(file), 0);
            assert_int_equal(io->dir_sync(dir), 0);
        }
        for (uint64_t n = test_below(&random, 30); n > 0; n--) {
            size_t sector = test_below(&random, MODEL_SECTORS);
            unsigned char byte = (unsigned char)test_below(&random, 256);
            memset(block, byte, SIM_SECTOR);
            assert_int_equal(io->write(file, block, SIM_SECTOR, sector * SIM_SECTOR), 0);
            m.versions[sector][m.count[sector]++] = byte;
            for (size_t i = 0; n % 7 == 0 && i < MODEL_SECTORS; i++) {
                m.versions[i][0] = m.versions[i][m.count[i] - 1];
                m.count[i] = 1;
            }
            if (n % 7 == 0)
                assert_int_equal(io->sync(file), 0);
        }
        io->close(file);
        io->dir_close(dir);
        sim_disk_cut(d);
        sim_disk_restart(d);
        struct hf_bytes b;
        assert_true(sim_disk_bytes(d, "a", &b));
        const unsigned char *data = b.data;
        assert_int_equal(b.size, sizeof block);
        for (size_t i = 0; i < b.size; i++)
            assert_true(model_allows(&m, i / SIM_SECTOR, data[i]));
        /* Torn sectors would be of two versions from here on: begin the round with whole ones. */
        assert_int_equal(io->dir_open(d, "store", true, &dir), 0);
        assert_int_equal(io->open(dir, "a", HF_OPEN_WRITE, &file), 0);
        for (size_t i = 0; i < MODEL_SECTORS; i++) {
            m.versions[i][0] = data[i * SIM_SECTOR];
            m.count[i] = 1;
            memset(block, m.versions[i][0], SIM_SECTOR);
            assert_int_equal(io->write(file, block, SIM_SECTOR, i * SIM_SECTOR), 0);
        }
        assert_int_equal(io->sync(file), 0);
        io->close(file);
        io->dir_close(dir);
    }
    sim_disk_free(d);
}

/* The simulated disk: calls that fail, a disk that is full, bits that flip, and the time without
 * power. */

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
        cmocka_unit_test(it_reads_what_was_written),
        cmocka_unit_test(names_are_those_of_one_directory),
        cmocka_unit_test(a_directory_that_was_not_made_is_not_there),
        cmocka_unit_test(what_was_synced_stays),
        cmocka_unit_test(a_name_that_was_not_synced_may_go_although_its_content_was),
        cmocka_unit_test(a_rename_is_there_or_not),
        cmocka_unit_test(a_removed_file_may_come_back),
        cmocka_unit_test(sectors_survive_each_by_itself),
        cmocka_unit_test(writing_what_is_there_leaves_no_choice),
        cmocka_unit_test(growth_may_be_lost_or_hold_zeros),
        cmocka_unit_test(a_cut_off_end_is_whole_or_gone),
        cmocka_unit_test(any_cut_leaves_versions_that_were_there),
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

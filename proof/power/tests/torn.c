/* A batch that a power cut tore, and a file that cannot be read: neither is taken for what it is
 * not. */
#include "simulate/disk.h"
#include "support/test.h"

#include <errno.h>

/* A batch of which a power cut had taken one sector was said not to be there, as is right. But its
 * other sectors stayed on the disk; if the next batch, written over it, was torn as well and
 * brought just the bytes that were missing (a retry of the same request has most of its bytes in
 * common), then the old batch was whole, and there, all at once. */

enum { VALUE = 20000 };

struct cut_world {
    hf_time wall;
    bool cut_at_sync;
    bool others; /* what becomes of the sectors but one: kept, or lost */
    size_t one;  /* that one */
    size_t asked;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    const struct cut_world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    return w->cut_at_sync && call == SIM_SYNC ? SIM_POWER_CUT : 0;
}

static uint32_t choose(void *arg, uint32_t n)
{
    struct cut_world *w = arg;
    bool kept = w->asked++ == w->one ? !w->others : w->others;
    return kept ? n - 1 : 0;
}

static hf_time wall_ms(void *arg)
{
    const struct cut_world *w = arg;
    return w->wall;
}

static uint64_t monotonic_ns(void *arg)
{
    (void)arg;
    return 1;
}

static int random_bytes(void *arg, void *data, size_t size)
{
    (void)arg;
    memset(data, 5, size);
    return 0;
}

static struct sim_disk_owner owner_of(struct cut_world *w)
{
    return (struct sim_disk_owner){ .arg = w,
                                    .before = before,
                                    .choose = choose,
                                    .wall_ms = wall_ms,
                                    .monotonic_ns = monotonic_ns,
                                    .random = random_bytes };
}

static void on_fatal(void *arg, const char *sentence)
{
    (void)arg;
    (void)sentence;
}

static struct hf_db *open_store(struct sim_disk *d)
{
    struct hf_db *db;
    struct hf_error why;
    const struct hf_options options = { .io = sim_disk_io(d),
                                        .no_background = true,
                                        .segment_max_bytes = 64 << 10,
                                        .on_fatal = on_fatal };
    if (hf_open("store", &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

/* The write that the power cut meets before its sync. */
static void write_cut(struct cut_world *w, struct sim_disk *d, struct hf_db *db)
{
    static char value[VALUE];
    memset(value, 'v', sizeof value);
    w->cut_at_sync = true;
    assert_int_equal(hf_do(db,
                           &(struct hf_request){ .action = HF_WRITE,
                                                 .key = hf_str("key"),
                                                 .write = { .name = hf_str("register"),
                                                            .value = hf_mem(value, VALUE) } },
                           NULL),
                     HF_INDETERMINATE);
    assert_true(sim_disk_is_cut(d));
    hf_close(db);
    w->cut_at_sync = false;
}

static enum hf_status look(struct hf_db *db)
{
    return hf_do(
        db, &(struct hf_request){ .action = HF_GET_REGISTER, .get = { hf_str("register") } }, NULL);
}

static void what_was_said_not_to_be_there_stays_away(void **s)
{
    (void)s;
    struct cut_world w = { .wall = 1700000000000 };
    struct sim_disk_owner owner = owner_of(&w);
    struct sim_disk *d = sim_disk_new(&owner);
    struct hf_db *db = open_store(d);
    write_cut(&w, d, db);
    w.others = true;
    w.one = 20;
    sim_disk_restart(d);
    assert_true(w.asked > w.one);
    db = open_store(d);
    assert_int_equal(look(db), HF_NOT_KNOWN);
    w.wall += 1000;
    write_cut(&w, d, db); /* the retry */
    w.others = false;
    size_t sectors = 1;
    for (w.one = 0; w.one < sectors; w.one++) {
        struct sim_disk *left = sim_disk_copy(d, &owner);
        w.asked = 0;
        sim_disk_restart(left);
        sectors = w.asked;
        assert_true(sectors > 1); /* else the retry is whole, and may be there */
        db = open_store(left);
        assert_int_equal(look(db), HF_NOT_KNOWN);
        hf_close(db);
        sim_disk_free(left);
    }
    sim_disk_free(d);
}

/* A compressed segment that could not be read at a start (the disk answered with an error, or there
 * was no memory) was said to be damaged, and its owner was told to restore it from a copy. It may
 * be whole: only one that was read tells. */

struct read_world {
    hf_time wall;
    uint64_t reads, fail_at;
    int error;
};

static int before_read(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct read_world *w = arg;
    (void)at;
    (void)size;
    if (call != SIM_READ || !strstr(name, ".zst"))
        return 0;
    return ++w->reads == w->fail_at ? w->error : 0;
}

static hf_time wall_of_reads(void *arg)
{
    const struct read_world *w = arg;
    return w->wall;
}

static uint64_t monotonic_of_wall(void *arg)
{
    const struct read_world *w = arg;
    return (uint64_t)w->wall * 1000000;
}

static enum hf_status open_unread(struct sim_disk *d, struct hf_db **db, struct hf_error *why)
{
    const struct hf_options options = { .io = sim_disk_io(d),
                                        .no_background = true,
                                        .segment_max_bytes = 64 << 10,
                                        .snapshot_every_bytes = 64 << 10,
                                        .idempotency_window_ms = 1000 };
    return hf_open("store", &options, db, why);
}

/* Fill two segments, let the keys go, keep house: the first segment is compressed then. */
static void fill_unread(struct read_world *w, struct hf_db *db)
{
    static char value[9000];
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "key-%d", i);
        memset(value, 'a' + i, sizeof value);
        w->wall += 1000;
        assert_int_equal(
            hf_do(db,
                  &(struct hf_request){ .action = HF_WRITE,
                                        .key = hf_str(key),
                                        .write = { .name = hf_str("register"),
                                                   .value = hf_mem(value, sizeof value) } },
                  NULL),
            HF_OK);
        while (hf_maintain(db))
            ;
    }
}

static bool cut_off(struct sim_disk *d, const char *name, uint64_t size)
{
    const struct hf_io *io = sim_disk_io(d);
    struct hf_dir *dir;
    struct hf_file *file;
    if (io->dir_open(io->ctx, "store", false, &dir) != 0)
        return false;
    bool good = io->open(dir, name, HF_OPEN_WRITE, &file) == 0;
    if (good) {
        good = io->truncate(file, size) == 0 && io->sync(file) == 0;
        io->close(file);
    }
    io->dir_close(dir);
    return good;
}

static void only_what_was_read_is_damaged(void **s)
{
    (void)s;
    struct read_world w = { .wall = 1700000000000 };
    const struct sim_disk_owner owner = { .arg = &w,
                                          .before = before_read,
                                          .wall_ms = wall_of_reads,
                                          .monotonic_ns = monotonic_of_wall,
                                          .random = random_bytes };
    struct sim_disk *d = sim_disk_new(&owner);
    struct hf_db *db;
    struct hf_error why;
    struct hf_bytes packed;
    assert_int_equal(open_unread(d, &db, &why), HF_OK);
    fill_unread(&w, db);
    hf_close(db);
    assert_true(sim_disk_bytes(d, "journal-00000001.zst", &packed));
    w.reads = 0;
    assert_int_equal(open_unread(d, &db, &why), HF_OK);
    hf_close(db);
    uint64_t reads = w.reads, refused = 0;
    assert_true(reads > 2);
    for (int i = 0; i < 2; i++) {
        w.error = i ? -ENOMEM : -EIO;
        for (w.fail_at = 1; w.fail_at <= reads; w.fail_at++) {
            w.reads = 0;
            enum hf_status st = open_unread(d, &db, &why);
            if (st == HF_OK) { /* what it needed was read once more */
                hf_close(db);
                continue;
            }
            refused++;
            assert_int_equal(st, i ? HF_NO_MEMORY : HF_STORAGE_FAILURE);
            assert_non_null(strstr(why.text, "cannot"));
        }
    }
    assert_true(refused > reads);
    w.fail_at = 0;
    assert_int_equal(open_unread(d, &db, &why), HF_OK);
    hf_close(db);
    const uint64_t sizes[] = { 0, 40, 60,
                               packed.size - 1 }; /* in the head, in the table, in a frame */
    for (size_t i = sizeof sizes / sizeof *sizes; i-- > 0;) {
        assert_true(cut_off(d, "journal-00000001.zst", sizes[i]));
        assert_int_equal(open_unread(d, &db, &why), HF_STORE_DAMAGED);
    }
    sim_disk_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_not_to_be_there_stays_away),
        cmocka_unit_test(only_what_was_read_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

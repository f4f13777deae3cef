/* A batch of which a power cut had taken one sector was said not to be there, as is right. But its
 * other sectors stayed on the disk; if the next batch, written over it, was torn as well and
 * brought just the bytes that were missing (a retry of the same request has most of its bytes in
 * common), then the old batch was whole, and there, all at once. */
#include "simulate/disk.h"
#include "support/test.h"

enum { VALUE = 20000 };

struct world {
    hf_time wall;
    bool cut_at_sync;
    bool others; /* what becomes of the sectors but one: kept, or lost */
    size_t one;  /* that one */
    size_t asked;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    const struct world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    return w->cut_at_sync && call == SIM_SYNC ? SIM_POWER_CUT : 0;
}

static uint32_t choose(void *arg, uint32_t n)
{
    struct world *w = arg;
    bool kept = w->asked++ == w->one ? !w->others : w->others;
    return kept ? n - 1 : 0;
}

static hf_time wall_ms(void *arg)
{
    const struct world *w = arg;
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

static struct sim_disk_owner owner_of(struct world *w)
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
static void write_cut(struct world *w, struct sim_disk *d, struct hf_db *db)
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
    struct world w = { .wall = 1700000000000 };
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        what_was_said_not_to_be_there_stays_away) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

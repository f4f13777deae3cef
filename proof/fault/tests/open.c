/* hf_open and hf_close, with every failure point in them: a store that is new, one that is there,
 * one without its snapshot or index, one whose last batch was cut short, one with threads, one in
 * memory, and damaged ones. */
#include "fault/store.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct opening {
    const char *name;
    void (*prepare)(
        struct kit *k);        /* change the furnished store before it is opened; NULL: leave it */
    struct hf_options options; /* what differs from the kit's: window and threads */
};

/* ---- Stores ---- */

static void nothing_there(struct kit *k)
{
    kit_remove(k, "");
}

static void no_snapshot(struct kit *k)
{
    assert_int_equal(kit_remove(k, ".snap"), 1);
}

static void no_index(struct kit *k)
{
    assert_int_equal(kit_remove(k, ".idx"), 1);
}

static void leftovers(struct kit *k)
{
    char path[600];
    snprintf(path, sizeof path, "%s/journal-00000009.tmp", k->dir);
    close(open(path, O_WRONLY | O_CREAT, 0600));
}

struct copy {
    char path[600];
    size_t size;
    unsigned char *data; /* owned */
};

static void copy_read(struct copy *c)
{
    struct stat st = { .st_size = 0 };
    int fd = open(c->path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    c->size = (size_t)st.st_size;
    c->data = malloc(c->size + 1);
    assert_true(c->data && read(fd, c->data, c->size) == (ssize_t)c->size);
    close(fd);
}

static void copy_write(struct copy *c)
{
    int fd = open(c->path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, c->data, c->size, 0), c->size);
    close(fd);
    free(c->data);
}

/* The second half of what differs becomes zeros. False if nothing does. */
static bool tear(struct copy *is, const struct copy *was)
{
    size_t first = 0, last = is->size;
    while (first < is->size && was->data[first] == is->data[first])
        first++;
    while (last > first && was->data[last - 1] == is->data[last - 1])
        last--;
    size_t middle = first + (last - first) / 2;
    memset(is->data + middle, 0, last - middle);
    return last > first;
}

/* The batch of a last request is there by half, and the note is that of the close behind it, or
 * that of the close before. */
static void half_there(struct kit *k, bool noted)
{
    enum { SEGMENTS = 9 };
    struct copy note = { .data = NULL }, was[SEGMENTS + 1] = { { .data = NULL } };
    bool torn = false;
    snprintf(note.path, sizeof note.path, "%s/closed", k->dir);
    copy_read(&note);
    for (int i = 1; i <= SEGMENTS; i++) {
        snprintf(was[i].path, sizeof was[i].path, "%s/journal-%08d.log", k->dir, i);
        if (access(was[i].path, F_OK) == 0)
            copy_read(&was[i]);
    }
    kit_open(k);
    assert_int_equal(kit_place(k, "lost", "lost", "guest", HOUR), HF_OK);
    kit_close(k);
    for (int i = 1; i <= SEGMENTS; i++) {
        if (!was[i].data)
            continue;
        struct copy is = was[i];
        copy_read(&is);
        torn |= tear(&is, &was[i]);
        copy_write(&is);
        free(was[i].data);
    }
    if (noted)
        free(note.data);
    else
        copy_write(&note);
    assert_true(torn);
}

static void cut_short(struct kit *k)
{
    half_there(k, false);
}

/* ---- Damaged stores ---- */

static void rotten(struct kit *k)
{
    half_there(k, true);
}

/* What the snapshot was taken of is not there. What lies before a snapshot would not be needed to
 * open the store. */
static void cut_off(struct kit *k)
{
    assert_int_equal(kit_remove(k, "closed"), 1);
    assert_true(kit_remove(k, ".log") > 0);
}

/* Only holds.idx is left. */
static void gone(struct kit *k)
{
    kit_remove(k, ".log");
    kit_remove(k, ".zst");
    kit_remove(k, ".snap");
    assert_int_equal(kit_remove(k, "closed"), 1);
}

/* ---- Opening ---- */

static enum hf_status open_it(struct kit *k, const struct opening *o, struct hf_error *why)
{
    struct hf_options options = k->options;
    options.idempotency_window_ms = o->options.idempotency_window_ms;
    options.no_background = !o->options.holder; /* a holder stands for threads */
    fault_here(true);
    enum hf_status st = hf_open(k->dir, &options, &k->db, why);
    fault_here(false);
    return st;
}

static struct kit *begin(const struct opening *o)
{
    const hf_time at = 2 * MINUTE; /* nothing is due yet that a thread could find */
    if (o->prepare)
        return fault_begin_prepared(o->prepare, at);
    struct kit *k = fault_begin();
    kit_at(k, at);
    hf_result_clear(&k->got);
    return k;
}

/* The start, or a thread, may have met the failure while it rebuilt or wrote holds.idx: then a list
 * is refused until that is rebuilt. */
static void wait_for_index(struct kit *k)
{
    enum { STEPS = 10000 };
    for (int i = 0; i < STEPS; i++) {
        struct hf_page page;
        enum hf_status st = hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page);
        hf_page_clear(&page);
        if (st != HF_STORAGE_FAILURE)
            return;
        atomic_fetch_add(&k->io.later_ns,
                         UINT64_C(10000000)); /* it is tried again after a second */
        hf_maintain(k->db);
    }
    fault_blame("the holds cannot be listed any more");
}

/* What is in the store. Without its snapshot it has keys in memory that are over, until the sweeper
 * comes. */
static char *dump_of(struct kit *k)
{
    wait_for_index(k);
    char *dump = fault_dump(k);
    *strstr(dump, FAULT_TOKENS) = 0;
    return dump;
}

/* A whole store is there, whatever went wrong before. */
static void is_whole(struct kit *k, const char *wanted, const char *when)
{
    fault_open(k);
    char *dump = dump_of(k);
    fault_same(dump, wanted, when);
    free(dump);
    fault_end(k);
}

static bool opening_fails(const struct opening *o, const char *wanted, enum fault_call call,
                          enum fault_mode mode, unsigned n)
{
    struct hf_error why;
    fault_say(o->name, call, mode, n);
    struct kit *k = begin(o);
    fault_arm(call, n, mode);
    enum hf_status st = open_it(k, o, &why);
    bool failed = fault_lift() > 0;
    if (st != HF_OK) {
        if (!failed || mode >= FAULT_INTERRUPTED)
            fault_blame("answers %s although nothing failed: %s", hf_status_code(st), why.text);
        if (k->db || (st != HF_STORAGE_FAILURE && st != HF_NO_MEMORY))
            fault_blame("answers %s: %s", hf_status_code(st), why.text);
        if (why.status != st || strlen(why.text) < 10)
            fault_blame("gives no reason for %s: \"%s\"", hf_status_code(st), why.text);
    } else {
        char *dump = dump_of(k);
        fault_same(dump, wanted, "opened");
        free(dump);
    }
    fault_end(k);
    if (failed) {
        fault_point();
        is_whole(k, wanted, "opened after that");
        if (fault_chosen(8))
            fault_audit(k);
    }
    return failed;
}

static void opening_try(const struct opening *o)
{
    struct hf_error why;
    bool makes[FAULT_CALLS];
    fault_tried();
    fault_say(o->name, FAULT_NONE, FAULT_ONCE, 0);
    struct kit *k = begin(o);
    fault_forget();
    if (open_it(k, o, &why) != HF_OK)
        fault_blame("does not open: %s", why.text);
    for (int call = 0; call < FAULT_CALLS; call++)
        makes[call] = fault_count((enum fault_call)call) > 0;
    char *wanted = dump_of(k);
    fault_end(k);
    for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (makes[call] && fault_has_mode((enum fault_call)call, (enum fault_mode)mode) &&
                fault_wanted(2))
                for (unsigned n = 1;
                     opening_fails(o, wanted, (enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
    free(wanted);
}

static void openings(void **state)
{
    (void)state;
    static const struct opening all[] = {
        { .name = "a new store", .prepare = nothing_there },
        { .name = "a store that is there" },
        { .name = "another configuration", .options = { .idempotency_window_ms = HOUR } },
        { .name = "no snapshot", .prepare = no_snapshot },
        { .name = "no index", .prepare = no_index },
        { .name = "leftovers of a crash", .prepare = leftovers },
        { .name = "a batch cut short", .prepare = cut_short },
        { .name = "with threads", .options = { .holder = "threads" } },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (fault_wanted(2))
            opening_try(&all[i]);
}

/* What tells that something is lost may be what cannot be read: then the store does not open
 * either, and stays as it is. */
static bool damaged_fails(const struct opening *o, enum fault_call call, enum fault_mode mode,
                          unsigned n)
{
    struct hf_error why;
    fault_say(o->name, call, mode, n);
    struct kit *k = begin(o);
    fault_arm(call, n, mode);
    enum hf_status st = open_it(k, o, &why);
    bool failed = fault_lift() > 0;
    if (st == HF_OK)
        fault_blame("a damaged store opens");
    if (st != HF_STORE_DAMAGED && !(failed && (st == HF_STORAGE_FAILURE || st == HF_NO_MEMORY)))
        fault_blame("answers %s: %s", hf_status_code(st), why.text);
    if (open_it(k, o, &why) != HF_STORE_DAMAGED)
        fault_blame("is not damaged any more");
    fault_end(k);
    if (failed)
        fault_point();
    return failed;
}

static void damages(void **state)
{
    (void)state;
    static const struct opening all[] = {
        { .name = "a batch that rotted", .prepare = rotten },
        { .name = "a journal that was cut off", .prepare = cut_off },
        { .name = "a journal that is gone", .prepare = gone },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fault_tried();
        for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
            for (int mode = 0; mode < FAULT_MODES; mode++)
                if (fault_has_mode((enum fault_call)call, (enum fault_mode)mode))
                    for (unsigned n = 1;
                         damaged_fails(&all[i], (enum fault_call)call, (enum fault_mode)mode, n);)
                        n = n < 200 ? n + 1 : fault_next(n);
    }
}

/* ---- Closing ---- */

static int answered;
static enum hf_status answer;

static void landed(struct hf_op *op, enum hf_status status)
{
    (void)op;
    answered++;
    answer = status;
}

/* A hold is placed, and another one is on its way when the store is closed. */
static bool closing_fails(const char *wanted, enum fault_call call, enum fault_mode mode,
                          unsigned n)
{
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .key = hf_str(FAULT_KEY "-2"),
                            .place_hold = { .resource = hf_str("late"),
                                            .requester = hf_str("guest"),
                                            .duration_ms = HOUR } };
    struct hf_op op = { .request = &r, .done = landed };
    fault_say("closing", call, mode, n);
    struct kit *k = fault_begin();
    fault_open(k);
    assert_int_equal(kit_place(k, FAULT_KEY, "fresh", "guest", HOUR), HF_OK);
    answered = 0;
    hf_submit(k->db, &op);
    fault_arm(call, n, mode);
    fault_end(k);
    bool failed = fault_lift() > 0;
    if (answered != 1 || (answer != HF_OK && answer != (k->fatal ? HF_INDETERMINATE : HF_OK)))
        fault_blame("what was on its way is answered %d times, with %s", answered,
                    hf_status_code(answer));
    if (failed)
        fault_point();
    fault_open(k);
    if (hf_do(k->db, &r, &k->got) != HF_OK || (answer == HF_OK && !k->got.replayed))
        fault_blame("what was acknowledged is lost");
    char *dump = dump_of(k);
    if (wanted)
        fault_same(dump, wanted, "after the close");
    free(dump);
    fault_end(k);
    return failed;
}

static void closings(void **state)
{
    (void)state;
    fault_tried();
    fault_say("closing", FAULT_NONE, FAULT_ONCE, 0);
    assert_false(closing_fails(NULL, FAULT_NONE, FAULT_ONCE, 1));
    struct kit *k = fault_begin();
    fault_open(k);
    assert_int_equal(kit_place(k, FAULT_KEY, "fresh", "guest", HOUR), HF_OK);
    assert_int_equal(kit_place(k, FAULT_KEY "-2", "late", "guest", HOUR), HF_OK);
    char *wanted = dump_of(k);
    fault_end(k);
    for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (fault_has_mode((enum fault_call)call, (enum fault_mode)mode))
                for (unsigned n = 1;
                     closing_fails(wanted, (enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
    free(wanted);
}

/* ---- In memory ---- */

static const struct hf_request in_memory = { .action = HF_WRITE,
                                             .key = { "key", 3 },
                                             .write = { .name = { "name", 4 },
                                                        .value = { "value", 5 } } };

/* Open, write and close with the n-th allocation failing somewhere. */
static bool memory_fails(enum fault_mode mode, unsigned n)
{
    struct hf_options options = { .no_background = true };
    struct hf_db *db;
    struct hf_error why;
    fault_say("in memory", FAULT_ALLOC, mode, n);
    uint64_t mark = fault_mark();
    fault_here(true);
    fault_arm(FAULT_ALLOC, n, mode);
    enum hf_status st = hf_open(":memory:", &options, &db, &why);
    enum hf_status written = st == HF_OK ? hf_do(db, &in_memory, NULL) : HF_OK;
    bool failed = fault_lift() > 0;
    fault_here(false);
    if (st != HF_OK && (!failed || (st != HF_NO_MEMORY && st != HF_STORAGE_FAILURE)))
        fault_blame("answers %s: %s", hf_status_code(st), why.text);
    if (written != HF_OK && (!failed || written != HF_STORAGE_FAILURE))
        fault_blame("a write answers %s", hf_status_code(written));
    if (st == HF_OK) {
        struct hf_result got = HF_RESULT_INIT;
        fault_here(true);
        if (hf_do(db, &in_memory, &got) != HF_OK || got.replayed != (written == HF_OK))
            fault_blame("the second try answers %s", hf_status_code(got.answer.status));
        hf_close(db);
        fault_here(false);
    }
    if (fault_leaked(mark))
        fault_blame("memory was not freed");
    if (failed)
        fault_point();
    return failed;
}

static void stores_in_memory(void **state)
{
    (void)state;
    fault_tried();
    for (unsigned n = 1; memory_fails(FAULT_ONCE, n);)
        n = fault_next(n);
    for (unsigned n = 1; memory_fails(FAULT_LASTING, n);)
        n = fault_next(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openings),
        cmocka_unit_test(damages),
        cmocka_unit_test(closings),
        cmocka_unit_test(stores_in_memory),
    };
    fault_furnish();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_unfurnish();
    fault_report("fault_open");
    return failed;
}

/* hf_maintain, with every failure point in it: snapshots, the next segment, compressing, and the
 * expiry of holds, keys, identities and claims. Whatever fails is tried again, and in the end
 * everything is as if nothing had failed. */
#include "fault/store.h"
#include "support/test.h"

struct upkeep {
    const char *name;
    void (*prepare)(struct kit *k); /* make work */
};

struct end {
    char *dump, *reopened; /* owned */
    size_t packed, snapshots;
};

/* ---- Work ---- */

static void overdue(struct kit *k)
{
    kit_at(k,
           /* every hold, in packed segments too; every key, identity and claim that is settled */
           2 * DAY);
}

static void snapshot(struct kit *k)
{
    assert_int_equal(kit_write(k, 8, 10000, 8), HF_OK);
}

static void segment(struct kit *k)
{
    assert_int_equal(kit_write(k, 20, 40000, 4), HF_OK);
}

static void everything(struct kit *k)
{
    assert_int_equal(kit_write(k, 60, 40000, 4), HF_OK);
    kit_at(k, 2 * DAY);
}

/* ---- Trials ---- */

/* As long as there is something to do, and no longer than that may take. */
static void maintain(struct kit *k)
{
    enum { STEPS = 500 };
    fault_here(true);
    for (int i = 0; i < STEPS && hf_maintain(k->db); i++)
        ;
    fault_here(false);
}

/* What failed may be tried again. */
static void later(struct kit *k)
{
    atomic_fetch_add(&k->io.later_ns, UINT64_C(5000000000));
    atomic_fetch_add(&k->io.wall, 2 * MINUTE);
}

/* What there is, but for times that depend on when something was tried again. */
static char *dump_of(struct kit *k)
{
    char *dump = fault_dump(k);
    for (char *at = dump; (at = strstr(at, " 17")) != NULL; at++) {
        char *end;
        long long number = strtoll(at, &end, 10);
        if (number > KIT_START + 2 * MINUTE && number <= atomic_load(&k->io.wall))
            memset(at + 1, '*', (size_t)(end - at - 1));
    }
    return dump;
}

/* A change that is the same whenever and however often it is made. */
static enum hf_status enlarge(struct kit *k)
{
    return kit_resource(k, "room", 9);
}

/* Rows that are over leave a part of the table at a time. */
static void clear_out(struct kit *k)
{
    enum { PARTS = 1024 };
    for (int i = 0; i <= PARTS; i++)
        hf_maintain(k->db);
}

static void finish(struct kit *k)
{
    later(k);
    kit_settle(k);
    later(k);
    kit_settle(k);
    if (enlarge(k) != HF_OK)
        fault_blame("nothing can be changed: %s", hf_status_code(k->got.answer.status));
    kit_settle(k);
    clear_out(k);
}

/* Where the store is when all is done. */
static void end_make(struct kit *k, struct end *e)
{
    finish(k);
    e->dump = dump_of(k);
    fault_end(k);
    e->packed = kit_files(k, ".zst");
    e->snapshots = kit_files(k, ".snap");
    fault_open(k);
    clear_out(k);
    e->reopened = dump_of(k);
    fault_end(k);
}

static void end_free(struct end *e)
{
    free(e->dump);
    free(e->reopened);
}

static void judge(struct kit *k, const struct end *wanted)
{
    struct end e;
    if (k->fatal) {
        if (k->fatal != 1 || enlarge(k) != HF_STORAGE_FAILURE || hf_maintain(k->db))
            fault_blame("the store goes on after it has failed");
        fault_close(k);
        fault_open(k);
    }
    end_make(k, &e);
    fault_same(e.dump, wanted->dump, "when all is done");
    fault_same(e.reopened, wanted->reopened, "after the next start");
    if (e.packed != wanted->packed || e.snapshots != wanted->snapshots || kit_files(k, ".tmp") > 0)
        fault_blame(
            "%zu packed segments, %zu snapshots, %zu leftovers instead of %zu, %zu and none",
            e.packed, e.snapshots, kit_files(k, ".tmp"), wanted->packed, wanted->snapshots);
    end_free(&e);
    if (fault_chosen(8))
        fault_audit(k);
}

static bool upkeep_fails(const struct upkeep *u, const struct end *wanted, enum fault_call call,
                         enum fault_mode mode, unsigned n)
{
    fault_say(u->name, call, mode, n);
    struct kit *k = fault_begin();
    fault_open(k);
    u->prepare(k);
    fault_arm(call, n, mode);
    maintain(k);
    if (mode == FAULT_LASTING && !k->fatal) { /* others go on meanwhile, or are told to try again */
        later(k);
        maintain(k);
        fault_here(true);
        enum hf_status st = enlarge(k);
        fault_here(false);
        if (st != HF_OK && st != HF_STORAGE_FAILURE && !(st == HF_INDETERMINATE && k->fatal))
            fault_blame("a change is answered with %s", hf_status_code(st));
    }
    bool failed = fault_lift() > 0;
    if (failed)
        fault_point();
    if (mode >= FAULT_INTERRUPTED && (k->fatal || k->warnings))
        fault_blame("complains although nothing failed: %s", k->note);
    judge(k, wanted);
    return failed;
}

static void upkeep_try(const struct upkeep *u)
{
    struct end wanted;
    bool makes[FAULT_CALLS];
    fault_tried();
    fault_say(u->name, FAULT_NONE, FAULT_ONCE, 0);
    struct kit *k = fault_begin();
    fault_open(k);
    u->prepare(k);
    fault_forget();
    maintain(k);
    for (int call = 0; call < FAULT_CALLS; call++)
        makes[call] = fault_count((enum fault_call)call) > 0;
    end_make(k, &wanted);
    for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (makes[call] && fault_has_mode((enum fault_call)call, (enum fault_mode)mode) &&
                fault_wanted(2))
                for (unsigned n = 1;
                     upkeep_fails(u, &wanted, (enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
    end_free(&wanted);
}

static void upkeeps(void **state)
{
    (void)state;
    static const struct upkeep all[] = {
        { "what is overdue", overdue },
        { "a snapshot", snapshot },
        { "the next segment", segment },
        { "everything", everything },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (fault_wanted(2))
            upkeep_try(&all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(upkeeps) };
    fault_furnish();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_unfurnish();
    fault_report("fault_maintain");
    return failed;
}

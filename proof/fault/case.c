/* Trying one call of the library at every point, and judging what came of it. */
#include "fault/store.h"
#include "support/test.h"

/* ---- Outcomes ---- */

static void item_add(struct outcome *o, enum hf_status status, bool replayed, char *text)
{
    assert_true(o->count < FAULT_ITEMS);
    o->item[o->count++] = (struct outcome_item){ status, replayed, text };
}

void outcome_add_result(struct outcome *o, const struct hf_result *result, enum hf_status status)
{
    fault_here(false);
    item_add(o, status, result->replayed, kit_answer_of(result));
    fault_here(true);
}

void outcome_add(struct outcome *o, struct kit *k, enum hf_status status)
{
    outcome_add_result(o, &k->got, status);
}

void outcome_add_text(struct outcome *o, enum hf_status status, const char *text)
{
    fault_here(false);
    item_add(o, status, false, strdup(text));
    fault_here(true);
}

void outcome_clear(struct outcome *o)
{
    for (size_t i = 0; i < o->count; i++)
        free(o->item[i].text);
    *o = (struct outcome){ 0 };
}

/* ---- The call without faults ---- */

struct base {
    struct outcome outcome;
    char *before, *after, *reopened; /* owned: dumps */
    bool makes[FAULT_CALLS];         /* which kinds of calls it makes at all */
};

static void run(const struct fault_case *c, struct kit *k, struct outcome *o)
{
    fault_here(true);
    c->run(k, o);
    fault_here(false);
}

static void base_make(const struct fault_case *c, struct base *b)
{
    fault_say(c->name, FAULT_NONE, FAULT_ONCE, 0);
    struct kit *k = fault_begin();
    fault_open(k);
    b->before = fault_dump(k);
    fault_forget();
    run(c, k, &b->outcome);
    for (int call = 0; call < FAULT_CALLS; call++)
        b->makes[call] = fault_count((enum fault_call)call) > 0;
    b->after = fault_dump(k);
    if (c->reads)
        fault_same(b->after, b->before, "a call that reads has changed something");
    for (size_t i = 0; i < b->outcome.count; i++)
        if (b->outcome.item[i].status >= HF_STORAGE_FAILURE)
            fault_blame("fails without a fault: %s", b->outcome.item[i].text);
    fault_end(k);
    fault_open(k);
    b->reopened = fault_dump(k);
    fault_end(k);
}

static void base_free(struct base *b)
{
    outcome_clear(&b->outcome);
    free(b->before);
    free(b->after);
    free(b->reopened);
}

/* ---- Judging ---- */

static bool is_fault(enum hf_status st)
{
    return st == HF_STORAGE_FAILURE || st == HF_NO_MEMORY;
}

static bool is_like(const struct outcome_item *got, const struct outcome_item *base)
{
    return got->status == base->status && strcmp(got->text, base->text) == 0;
}

/* After the journal could not be made durable: nothing more is said, however often it is asked. */
static void judge_stopped(const struct fault_case *c, struct kit *k)
{
    struct outcome more = { 0 };
    struct hf_page page;
    if (atomic_load(&k->fatal) != 1)
        fault_blame("on_fatal was called %d times", atomic_load(&k->fatal));
    run(c, k, &more);
    for (size_t i = 0; i < more.count; i++)
        if (more.item[i].status != HF_STORAGE_FAILURE)
            fault_blame("a store that has failed answers %s", more.item[i].text);
    outcome_clear(&more);
    if (kit_get(k, HF_GET_RESOURCE, "room") != HF_STORAGE_FAILURE ||
        hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page) != HF_STORAGE_FAILURE)
        fault_blame("a store that has failed still shows something");
    kit_stats(k);
    hf_flush(k->db);
    if (hf_maintain(k->db))
        fault_blame("a store that has failed still has work to do");
    if (atomic_load(&k->fatal) != 1)
        fault_blame("on_fatal was called again");
    fault_close(k);
    fault_open(k);
}

/* May this have been answered when something failed? */
static void judge_item(const struct fault_case *c, const struct outcome_item *got,
                       const struct outcome_item *base, const struct kit *k)
{
    bool excused = c->guard && !k->fatal; /* a guard always has an answer: its policy */
    if ((is_fault(got->status) && !excused) || is_like(got, base))
        return;
    if (got->status == HF_INDETERMINATE && (k->fatal || !c->reads))
        return;
    if (c->guard && got->status == HF_OK)
        return; /* by the guard's policy; that it was missed is looked at later */
    fault_blame("answers %s (%s) instead of %s", got->text, hf_status_code(got->status),
                base->text);
}

/* What has been done by now must fit what was said: all of it, or nothing. */
static void judge_effect(const struct fault_case *c, const struct base *b,
                         const struct outcome *got, const char *now, bool missed)
{
    bool done = strcmp(now, b->after) == 0, undone = strcmp(now, b->before) == 0;
    enum hf_status st = got->item[0].status;
    if (c->group) /* each of them by itself: the second try tells */
        return;
    if (!done && !undone) {
        fault_same(now, b->before, "half an effect (compared with none)");
        fault_same(now, b->after, "half an effect (compared with all)");
    }
    if (is_fault(st) && !undone)
        fault_same(now, b->before, "said to have failed");
    if (!is_fault(st) && st != HF_INDETERMINATE && !done && !missed)
        fault_same(now, b->after, "said to be done");
    if (missed && !undone)
        fault_same(now, b->before, "counted as missed");
}

/* The same call again, without faults. */
static void judge_again(const struct fault_case *c, const struct base *b, const struct outcome *got,
                        struct kit *k)
{
    struct outcome again = { 0 };
    run(c, k, &again);
    for (size_t i = 0; i < again.count; i++) {
        if (!is_like(&again.item[i], &b->outcome.item[i]))
            fault_blame("the second try answers %s instead of %s", again.item[i].text,
                        b->outcome.item[i].text);
        if (!k->fatal && i < got->count && is_fault(got->item[i].status) &&
            again.item[i].replayed != b->outcome.item[i].replayed)
            fault_blame("the failure was remembered: %s", again.item[i].text);
    }
    outcome_clear(&again);
}

/* Is it what a closed guard says that could not be asked? */
static bool was_closed(const struct outcome_item *got)
{
    return strcmp(got->text, "ok seen 1 0 0 0 0:") == 0;
}

static void judge(const struct fault_case *c, const struct base *b, const struct outcome *got,
                  enum fault_mode mode, struct kit *k)
{
    bool missed = c->guard && (kit_stats(k).guard_misses > 0 || was_closed(&got->item[0]));
    if (got->count > b->outcome.count || (got->count < b->outcome.count && !c->group))
        fault_blame("%zu answers instead of %zu", got->count, b->outcome.count);
    for (size_t i = 0; i < got->count; i++) {
        judge_item(c, &got->item[i], &b->outcome.item[i], k);
        if (mode >= FAULT_INTERRUPTED && !is_like(&got->item[i], &b->outcome.item[i]))
            fault_blame("answers %s although nothing failed", got->item[i].text);
    }
    if (k->fatal)
        judge_stopped(c, k);
    char *now = fault_dump(k);
    judge_effect(c, b, got, now, missed);
    bool done = strcmp(now, b->after) == 0 && !c->reads;
    free(now);
    if (!c->once || !done)
        judge_again(c, b, got, k);
    now = fault_dump(k);
    fault_same(now, b->after, "after the second try");
    free(now);
    fault_end(k);
    fault_open(k);
    now = fault_dump(k);
    fault_same(now, b->reopened, "after the next start");
    free(now);
    fault_end(k);
    if (fault_chosen(8))
        fault_audit(k);
}

/* ---- All points ---- */

/* False: the call makes fewer than n such calls. */
static bool trial(const struct fault_case *c, const struct base *b, enum fault_call call,
                  enum fault_mode mode, unsigned n)
{
    struct outcome got = { 0 }, more = { 0 };
    fault_say(c->name, call, mode, n);
    struct kit *k = fault_begin();
    fault_open(k);
    fault_arm(call, n, mode);
    run(c, k, &got);
    if (mode == FAULT_LASTING && fault_failed() && !c->once && !k->fatal) {
        run(c, k, &more);
        for (size_t i = 0; i < more.count; i++)
            judge_item(c, &more.item[i], &b->outcome.item[i], k);
    }
    bool failed = fault_lift() > 0;
    if (failed) {
        fault_point();
        judge(c, b, more.count ? &more : &got, mode, k);
    } else {
        for (size_t i = 0; i < got.count; i++)
            if (!is_like(&got.item[i], &b->outcome.item[i]))
                fault_blame("answers %s although nothing failed", got.item[i].text);
        fault_end(k);
    }
    outcome_clear(&got);
    outcome_clear(&more);
    return failed;
}

void fault_case_try(const struct fault_case *c)
{
    struct base b = { 0 };
    fault_tried();
    base_make(c, &b);
    for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (b.makes[call] && fault_has_mode((enum fault_call)call, (enum fault_mode)mode) &&
                fault_wanted(2))
                for (unsigned n = 1; trial(c, &b, (enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
    base_free(&b);
}

/* recover.c: judging while something is in doubt, crashes and recoveries. */
#include "judge/doubt.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Judging while something is in doubt ---- */

/* An operation of before the crash cannot have lasted if engine time is before it now. */
static void drop_by_time(struct judge *j, const struct judge_op *op)
{
    for (struct judge_doubt *d = j->doubts, *next; d && !j->verdict[0]; d = next) {
        next = d->next;
        size_t before = d->count;
        for (size_t a = d->count; a-- > 0;) {
            bool later = false;
            for (size_t i = 0; i < d->item_count; i++)
                later = later || (d->takes[a][i] && d->items[i]->now > op->now);
            if (later)
                judge_doubt_drop(d, a);
        }
        if (d->count == 0) {
            char why[JUDGE_WORDS];
            snprintf(why, sizeof why,
                     "operation %llu: engine time %lld is before that of an operation which lasted",
                     (unsigned long long)op->number, (long long)op->now);
            judge_doubt_object(j, why);
        } else if (d->count != before) {
            judge_doubt_settle(j, d);
        }
    }
}

/* Note what the operation did under one more alternative. It promises no more than it does under
 * any of them. */
static void note(const struct judge_step *s, struct judge_op *op, bool first)
{
    struct judge_op before = *op;
    judge_step_note(s, op);
    if (first)
        return;
    op->unsure = op->unsure || before.unsure || op->lasting != before.lasting;
    op->lasting = op->lasting || before.lasting;
    op->saw = op->saw < before.saw ? op->saw : before.saw;
    if (!s->lasting && !s->note.recorded)
        op->note = before.note;
    else if (!op->note.entry && op->note.expires_at < before.note.expires_at)
        op->note.expires_at =
            before.note.expires_at; /* of a cloudy identity: under the longer window */
}

/* Judge `op` under each alternative and drop those that it contradicts. mark: mark what it changes.
 * The doubt is returned; *again: it has grown, and all has to be done again. */
static struct judge_doubt *try_all(struct judge *j, struct judge_op *op, struct judge_doubt *d,
                                   bool mark, bool *again, char why[JUDGE_WORDS])
{
    bool first = true;
    const struct judge_doubt *whole = d;
    struct judge_walk w;
    judge_walk_begin(&w, j, d, d->item_count);
    for (size_t a = d->count; a-- > 0;) {
        struct judge_step s;
        judge_walk_to(&w, a);
        size_t own = j->undo_count;
        judge_step_run(&s, j, op, false);
        if (mark && !s.bad && (s.lasting || s.note.recorded))
            d = judge_doubt_mark(j, own, d);
        for (size_t i = 0; i < s.touched_count && d == whole; i++)
            if (s.touched[i] != d)
                d = judge_doubt_merge(j, s.touched[i], d);
        if (d != whole || j->verdict[0])
            break;
        if (s.bad) {
            memcpy(why, s.why, JUDGE_WORDS);
            judge_doubt_drop(d, a);
        } else {
            note(&s, op, first);
            first = false;
        }
    }
    judge_walk_end(&w);
    *again = d != whole && !j->verdict[0];
    return d;
}

static struct judge_doubt *touched(struct judge *j, const struct judge_step *s)
{
    struct judge_doubt *d = s->touched[0];
    for (size_t i = 1; i < s->touched_count; i++)
        d = judge_doubt_merge(j, d, s->touched[i]);
    return d;
}

/* Returns the doubt, with the alternatives that explain the answer; NULL after an objection. */
static struct judge_doubt *explained(struct judge *j, struct judge_op *op,
                                     const struct judge_step *s, bool mark)
{
    char why[JUDGE_WORDS] = "";
    bool again = true;
    struct judge_doubt *d = touched(j, s);
    while (again && !j->verdict[0])
        d = try_all(j, op, d, mark, &again, why);
    if (j->verdict[0])
        return NULL;
    if (d->count > 0)
        return d;
    judge_doubt_object(j, why);
    return NULL;
}

void judge_doubt_step(struct judge *j, struct judge_op *op)
{
    struct judge_step s;
    if (j->doubts && op->status < HF_STORAGE_FAILURE)
        drop_by_time(j, op);
    for (int tries = 0; !j->verdict[0]; tries++) {
        size_t from = j->undo_count;
        judge_step_run(&s, j, op, false);
        if (s.touched_count == 0) {
            judge_step_note(&s, op);
            if (s.bad)
                judge_doubt_object(j, s.why);
            return;
        }
        judge_undo_to(j, from);
        if (tries == 0) { /* time may have settled it */
            for (size_t i = 0; i < s.touched_count; i++)
                judge_doubt_settle(j, s.touched[i]);
            continue;
        }
        /* Find out what its answer tells; if it is still open then what it did, it is in doubt
         * itself. */
        struct judge_doubt *d = explained(j, op, &s, tries > 1);
        if (d && tries > 1) {
            if (op->lasting || op->note.recorded)
                judge_doubt_certain(j, d, op);
            return;
        }
        if (d)
            judge_doubt_settle(j, d);
    }
}

/* ---- Looking ---- */

static bool differs(struct judge *j, const struct judge_view *v, const struct judge_doubt *d,
                    char why[JUDGE_WORDS])
{
    for (size_t i = 0; i < d->record_count; i++)
        if (judge_kind_viewed(d->records[i]->kind) && judge_view_differs(j, v, d->records[i], why))
            return true;
    return false;
}

bool judge_doubt_look(struct judge *j, const struct judge_view *v, char why[JUDGE_WORDS])
{
    for (struct judge_doubt *d = j->doubts, *next; d; d = next) {
        struct judge_walk w;
        next = d->next;
        judge_walk_begin(&w, j, d, d->item_count);
        for (size_t a = d->count; a-- > 0;) {
            judge_walk_to(&w, a);
            if (differs(j, v, d, why))
                judge_doubt_drop(d, a);
        }
        judge_walk_end(&w);
        if (d->count == 0)
            return false;
        judge_doubt_settle(j, d);
    }
    return true;
}

/* ---- Crash ---- */

/* Take off the stack what operations after the floor have changed. What is kept are changes that
 * came late. */
static void back_to_floor(struct judge *j)
{
    if (j->undo_count == j->undo_from)
        return;
    size_t kept = j->undo_count;
    for (size_t i = j->undo_count; i-- > j->undo_from;) {
        struct judge_undo *u = &j->undo[i];
        u->record->saved = 0;
        if (u->op > j->floor)
            u->record->body = u->body;
        else if (--kept != i)
            j->undo[kept] = *u;
    }
    size_t count = j->undo_count - kept;
    memmove(j->undo + j->undo_from, j->undo + kept, count * sizeof *j->undo);
    j->undo_count = j->undo_from + count;
}

void judge_doubt_crash(struct judge *j)
{
    back_to_floor(j);
    for (struct judge_doubt *d = j->doubts; d; d = d->next)
        judge_doubt_cut(d, j->floor);
    /* Who was shown that a hold has expired was shown what lasts. */
    for (uint64_t n = j->floor + 1; n <= j->op_count; n++) {
        const struct judge_op *op = j->ops[n - 1];
        if (op->shown && !op->lasting && op->request.action == HF_GET_HOLD && op->status == HF_OK)
            judge_doubt_carry(j, op, NULL);
    }
}

/* ---- Recovery ---- */

/* The operations in doubt, and with how many of them the model shows what the view does. */
struct choice {
    struct judge_op **ops;
    size_t count;
    bool *fits; /* fits[n]: with the first n */
    size_t first, last;
    bool any;
};

static size_t recount(struct judge *j, const struct judge_view *v, size_t from, size_t differing)
{
    for (size_t i = from; i < j->undo_count; i++)
        if (j->undo[i].record->kind == JUDGE_GUARD) /* it may speak for all of its entries */
            return judge_view_count(j, v, NULL);
    for (size_t i = from; i < j->undo_count; i++) {
        struct judge_record *r = j->undo[i].record;
        if (!judge_kind_viewed(r->kind) || r->doubt)
            continue;
        bool wrong = judge_view_differs(j, v, r, NULL);
        differing = differing + wrong - r->differs;
        r->differs = wrong;
    }
    return differing;
}

static void choose(struct judge *j, const struct judge_view *v, struct choice *c)
{
    size_t from = j->undo_count;
    size_t differing = judge_view_count(j, v, NULL);
    for (size_t n = 0; n <= c->count; n++) {
        c->fits[n] = differing == 0;
        if (c->fits[n]) {
            c->first = c->any ? c->first : n;
            c->last = n;
            c->any = true;
        }
        if (n == c->count)
            break;
        size_t before = j->undo_count;
        judge_doubt_carry(j, c->ops[n], NULL);
        differing = recount(j, v, before, differing);
    }
    judge_undo_to(j, from);
}

static void explain(struct judge *j, const struct judge_view *v, const struct choice *c)
{
    char without[JUDGE_WORDS] = "", with[JUDGE_WORDS] = "", why[JUDGE_WORDS];
    size_t from = j->undo_count;
    (void)judge_view_count(j, v, without);
    for (size_t n = 0; n < c->count; n++)
        judge_doubt_carry(j, c->ops[n], NULL);
    (void)judge_view_count(j, v, with);
    judge_undo_to(j, from);
    if (c->count == 0)
        snprintf(why, sizeof why,
                 "after the crash behind operation %llu, with nothing in doubt: %.700s",
                 (unsigned long long)j->op_count, without);
    else
        snprintf(
            why, sizeof why,
            "after the crash behind operation %llu no beginning of the %zu operations in doubt "
            "explains what is seen; if operation %llu and all after it are lost: %.350s; if none "
            "is lost: %.350s",
            (unsigned long long)j->op_count, c->count, (unsigned long long)c->ops[0]->number,
            without, with[0] ? with : "nothing differs, but a part of it does not fit");
    judge_doubt_object(j, why);
}

/* It has happened for sure. */
static void survived(struct judge *j, struct judge_op *op)
{
    size_t from = j->undo_count;
    struct judge_doubt *d = NULL;
    judge_doubt_carry(j, op, NULL);
    for (size_t i = from; i < j->undo_count; i++)
        d = j->undo[i].record->doubt ? j->undo[i].record->doubt : d;
    if (!d)
        return;
    d = judge_doubt_mark(j, from, d);
    judge_undo_to(j, from);
    judge_doubt_certain(j, d, op);
}

/* The view does not tell how many of the rest have happened. */
static void open_doubt(struct judge *j, const struct choice *c)
{
    size_t alternatives = 0, from = j->undo_count;
    for (size_t n = c->first; n <= c->last; n++)
        alternatives += c->fits[n];
    struct judge_doubt *d = judge_doubt_make(j, c->last - c->first, alternatives);
    for (size_t n = c->first, a = 0; n <= c->last; n++)
        if (c->fits[n])
            memset(d->takes[a++], 1, n - c->first);
    d->item_count = c->last - c->first;
    for (size_t i = 0; i < d->item_count; i++) {
        d->items[i] = c->ops[c->first + i];
        d->items[i]->crash = j->count.crashes;
        judge_doubt_carry(j, d->items[i], NULL);
    }
    (void)judge_doubt_mark(j, from, d);
    judge_undo_to(j, from);
}

void judge_doubt_recover(struct judge *j, const struct judge_view *v)
{
    struct choice c = { .count = 0 };
    c.ops = judge_grow(NULL, (j->op_count - j->floor + 1) * sizeof(struct judge_op *));
    for (uint64_t n = j->floor + 1; n <= j->op_count; n++)
        if (j->ops[n - 1]->lasting)
            c.ops[c.count++] = j->ops[n - 1];
    c.fits = judge_grow(NULL, c.count + 1);
    choose(j, v, &c);
    j->count.in_doubt += c.count;
    j->floor = j->op_count; /* whatever has happened of it is on disk now */
    if (!c.any) {
        explain(j, v, &c);
    } else {
        for (size_t n = 0; n < c.count; n++)
            c.ops[n]->lost = n >= c.first;
        for (size_t n = 0; n < c.first; n++)
            survived(j, c.ops[n]);
        if (c.last > c.first)
            open_doubt(j, &c);
        j->count.survived += c.first;
        j->count.lost += c.count - c.last;
    }
    free(c.ops);
    free(c.fits);
}

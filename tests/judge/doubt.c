/* doubt.c: what a crash left open.
 *
 * After a crash, the operations that nobody was answered may have happened: the first few of them, or none, or all.
 * The view tells most of it. What it does not tell (keys, claims, leases, registers, values) stays in doubt: the
 * operations are kept as items that are not carried out yet, with the alternatives that are still possible, each of
 * which takes some of the items. The records that an item would change carry a mark. An operation that looks at no such
 * record is judged as always, because the items would make no difference to it. One that does is judged once for
 * each alternative; those that cannot explain its answer are dropped, and when none is left the judge objects. If it
 * changes something it becomes an item itself, which every alternative takes. Items that all alternatives take are
 * carried out, late; that makes no difference either, since nothing that came between had looked at what they change. */
#include "judge/model.h"

#include <stdio.h>
#include <stdlib.h>

#define ALTERNATIVES_MAX ((size_t)16384)

struct judge_doubt {
    struct judge_doubt *next;
    struct judge_op **items; /* in the order of their numbers */
    size_t item_count, item_room;
    unsigned char **takes; /* takes[alternative][item] */
    size_t count;          /* of alternatives */
};

/* ---- Doubts ---- */

static struct judge_doubt *doubt_make(struct judge *j, size_t room, size_t count)
{
    struct judge_doubt *d = judge_grow(NULL, sizeof *d);
    *d = (struct judge_doubt){ .next = j->doubts, .item_room = room, .count = count };
    d->items = judge_grow(NULL, (room + 1) * sizeof *d->items);
    d->takes = judge_grow(NULL, (count + 1) * sizeof *d->takes);
    for (size_t a = 0; a < count; a++) {
        d->takes[a] = judge_grow(NULL, room + 1);
        memset(d->takes[a], 0, room + 1);
    }
    j->doubts = d;
    return d;
}

static void doubt_remove(struct judge *j, struct judge_doubt *d)
{
    struct judge_doubt **at = &j->doubts;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    for (size_t a = 0; a < d->count; a++)
        free(d->takes[a]);
    free(d->takes);
    free(d->items);
    free(d);
}

void judge_doubt_free(struct judge *j)
{
    while (j->doubts)
        doubt_remove(j, j->doubts);
}

static void remark(struct judge *j, const struct judge_doubt *from, struct judge_doubt *to)
{
    for (int kind = 0; kind < JUDGE_KINDS; kind++)
        for (struct judge_record *r = j->kinds[kind]; r; r = r->next)
            if (r->doubt == from)
                r->doubt = to;
}

static void item_add(struct judge_doubt *d, struct judge_op *op)
{
    if (d->item_count == d->item_room) {
        d->item_room = 2 * d->item_room + 8;
        d->items = judge_grow(d->items, (d->item_room + 1) * sizeof *d->items);
        for (size_t a = 0; a < d->count; a++)
            d->takes[a] = judge_grow(d->takes[a], d->item_room + 1);
    }
    for (size_t a = 0; a < d->count; a++)
        d->takes[a][d->item_count] = 1;
    d->items[d->item_count++] = op;
}

static void item_remove(struct judge_doubt *d, size_t item)
{
    size_t behind = --d->item_count - item;
    memmove(d->items + item, d->items + item + 1, behind * sizeof *d->items);
    for (size_t a = 0; a < d->count; a++)
        memmove(d->takes[a] + item, d->takes[a] + item + 1, behind);
}

static void drop(struct judge_doubt *d, size_t alternative)
{
    free(d->takes[alternative]);
    d->takes[alternative] = d->takes[--d->count];
}

static void verdict(struct judge *j, const char *why)
{
    if (!j->verdict[0])
        snprintf(j->verdict, sizeof j->verdict, "%s", why);
}

/* One doubt that stands for two: every alternative of the one with every alternative of the other. */
static struct judge_doubt *merge(struct judge *j, struct judge_doubt *a, struct judge_doubt *b)
{
    if (a == b)
        return a;
    if (a->count * b->count > ALTERNATIVES_MAX) {
        verdict(j, "more is in doubt than the judge can follow; ask for the keys in doubt after each crash");
        return a;
    }
    struct judge_doubt *d = doubt_make(j, a->item_count + b->item_count, a->count * b->count);
    for (size_t i = 0, k = 0; i < a->item_count || k < b->item_count;) {
        bool left = k == b->item_count || (i < a->item_count && a->items[i]->number < b->items[k]->number);
        for (size_t alternative = 0; alternative < d->count; alternative++)
            d->takes[alternative][d->item_count] =
                left ? a->takes[alternative / b->count][i] : b->takes[alternative % b->count][k];
        d->items[d->item_count++] = left ? a->items[i++] : b->items[k++];
    }
    remark(j, a, d);
    remark(j, b, d);
    doubt_remove(j, a);
    doubt_remove(j, b);
    return d;
}

static void carry_out(struct judge *j, const struct judge_op *op)
{
    struct judge_step s;
    judge_step_run(&s, j, op, true);
}

static void late(struct judge *j, const struct judge_op *op)
{
    if (j->late_count == j->late_room) {
        j->late_room = j->late_room ? 2 * j->late_room : 64;
        j->late = judge_grow(j->late, j->late_room * sizeof *j->late);
    }
    j->late[j->late_count++] = (struct judge_late){ op, j->op_count };
}

/* The first items are settled as soon as all alternatives agree about them. True: nothing is left of the doubt. */
static bool advance(struct judge *j, struct judge_doubt *d)
{
    while (d->item_count > 0) {
        size_t takers = 0;
        for (size_t a = 0; a < d->count; a++)
            takers += d->takes[a][0];
        if (takers != 0 && takers != d->count)
            return false;
        if (takers > 0) {
            carry_out(j, d->items[0]);
            late(j, d->items[0]);
            d->items[0]->lost = false;
        }
        item_remove(d, 0);
    }
    remark(j, d, NULL);
    doubt_remove(j, d);
    return true;
}

static void carry_out_alternative(struct judge *j, const struct judge_doubt *d, size_t alternative)
{
    for (size_t i = 0; i < d->item_count; i++)
        if (d->takes[alternative][i])
            carry_out(j, d->items[i]);
}

/* Mark what has changed since `from`. Doubts that are met on the way become one with `d`, which is returned. */
static struct judge_doubt *mark_changed(struct judge *j, size_t from, struct judge_doubt *d)
{
    for (size_t i = from; i < j->undo_count; i++) {
        struct judge_record *r = j->undo[i].record;
        if (r->doubt && r->doubt != d)
            d = merge(j, r->doubt, d);
        r->doubt = d;
    }
    return d;
}

/* ---- Judging while something is in doubt ---- */

/* An operation of before the crash cannot have lasted if engine time is before it now. */
static void drop_by_time(struct judge *j, const struct judge_op *op)
{
    for (struct judge_doubt *d = j->doubts, *next; d; d = next) {
        next = d->next;
        size_t before = d->count;
        for (size_t a = d->count; a-- > 0;) {
            bool later = false;
            for (size_t i = 0; i < d->item_count; i++)
                later = later || (d->takes[a][i] && d->items[i]->now > op->now);
            if (later)
                drop(d, a);
        }
        if (d->count == 0) {
            char why[JUDGE_WORDS];
            snprintf(why, sizeof why,
                     "operation %llu: engine time %lld is before that of an operation which lasted",
                     (unsigned long long)op->number, (long long)op->now);
            verdict(j, why);
            return;
        }
        if (d->count != before)
            (void)advance(j, d);
    }
}

static struct judge_doubt *touched(struct judge *j, const struct judge_step *s)
{
    struct judge_doubt *d = s->touched[0];
    for (size_t i = 1; i < s->touched_count; i++)
        d = merge(j, d, s->touched[i]);
    return d;
}

struct outcome {
    bool lasting, unsure, changed, has_guard;
    uint64_t saw;
    struct hf_guard guard;
    char why[JUDGE_WORDS];
};

/* Judge `op` under each alternative. Returns the doubt, which may have grown: then it has to be done again. */
static struct judge_doubt *try_all(struct judge *j, const struct judge_op *op, struct judge_doubt *d,
                                   struct outcome *out, bool *again)
{
    *again = false;
    *out = (struct outcome){ .lasting = false };
    for (size_t a = d->count; a-- > 0 && !*again;) {
        struct judge_step s;
        size_t from = j->undo_count;
        carry_out_alternative(j, d, a);
        size_t own = j->undo_count;
        judge_step_run(&s, j, op, false);
        const struct judge_doubt *own_doubt = d;
        bool others = false;
        for (size_t i = 0; i < s.touched_count; i++)
            others = others || s.touched[i] != d;
        if (others) {
            judge_undo_to(j, from);
            for (size_t i = 0; i < s.touched_count; i++)
                if (s.touched[i] != own_doubt)
                    d = merge(j, s.touched[i], d);
            *again = !j->verdict[0];
            return d;
        }
        if (!s.bad && j->undo_count > own) {
            out->changed = true;
            struct judge_doubt *grown = mark_changed(j, own, d);
            *again = grown != d; /* alternatives have new numbers: begin again */
            d = grown;
        }
        judge_undo_to(j, from);
        if (*again)
            return d;
        if (s.bad) {
            memcpy(out->why, s.why, sizeof out->why);
            drop(d, a);
        } else {
            out->lasting = out->lasting || s.lasting;
            out->unsure = out->unsure || s.unsure;
            out->saw = out->saw > s.saw ? out->saw : s.saw;
            out->has_guard = s.has_guard;
            out->guard = s.guard;
        }
    }
    return d;
}

static void step_in_doubt(struct judge *j, struct judge_op *op, struct judge_doubt *d)
{
    struct outcome out;
    bool again;
    do
        d = try_all(j, op, d, &out, &again);
    while (again);
    if (j->verdict[0])
        return;
    if (d->count == 0) {
        verdict(j, out.why);
        return;
    }
    op->lasting = out.lasting;
    op->unsure = out.unsure;
    op->saw = out.saw;
    op->has_guard = out.has_guard;
    op->guard = out.guard;
    if (out.changed)
        item_add(d, op);
    (void)advance(j, d);
}

void judge_doubt_step(struct judge *j, struct judge_op *op)
{
    if (j->doubts && op->status < HF_STORAGE_FAILURE)
        drop_by_time(j, op);
    if (j->verdict[0])
        return;
    struct judge_step s;
    size_t from = j->undo_count;
    judge_step_run(&s, j, op, false);
    if (s.touched_count > 0) {
        judge_undo_to(j, from);
        step_in_doubt(j, op, touched(j, &s));
        return;
    }
    op->lasting = s.lasting;
    op->unsure = s.unsure;
    op->saw = s.saw;
    op->has_guard = s.has_guard;
    op->guard = s.guard;
    if (s.bad)
        verdict(j, s.why);
}

/* ---- Looking ---- */

static bool alternative_differs(struct judge *j, const struct judge_view *v, const struct judge_doubt *d,
                                char why[JUDGE_WORDS])
{
    for (int kind = 0; kind < JUDGE_KINDS; kind++)
        for (struct judge_record *r = judge_kind_viewed((enum judge_kind)kind) ? j->kinds[kind] : NULL; r;
             r = r->next)
            if (r->doubt == d && judge_view_differs(j, v, r, why))
                return true;
    return false;
}

bool judge_doubt_look(struct judge *j, const struct judge_view *v, char why[JUDGE_WORDS])
{
    for (struct judge_doubt *d = j->doubts, *next; d; d = next) {
        next = d->next;
        for (size_t a = d->count; a-- > 0;) {
            size_t from = j->undo_count;
            carry_out_alternative(j, d, a);
            bool differs = alternative_differs(j, v, d, why);
            judge_undo_to(j, from);
            if (differs)
                drop(d, a);
        }
        if (d->count == 0)
            return false;
        (void)advance(j, d);
    }
    return true;
}

/* ---- Crash and recovery ---- */

void judge_doubt_crash(struct judge *j)
{
    while (j->undo_count > j->undo_from && j->undo[j->undo_count - 1].op > j->floor)
        judge_undo_to(j, j->undo_count - 1);
    for (struct judge_doubt *d = j->doubts; d; d = d->next)
        while (d->item_count > 0 && d->items[d->item_count - 1]->number > j->floor)
            item_remove(d, d->item_count - 1);
    /* What had been found to have happened before an earlier crash is still so. */
    for (size_t i = 0; i < j->late_count; i++)
        if (j->late[i].at > j->floor && j->late[i].op->number <= j->floor)
            carry_out(j, j->late[i].op);
    /* And who was shown that a hold has expired was shown what lasts. */
    for (uint64_t n = j->floor + 1; n <= j->op_count; n++) {
        struct judge_op *op = j->ops[n - 1];
        struct judge_step s;
        size_t from = j->undo_count;
        if (!op->shown || op->lasting || op->request.action != HF_GET_HOLD || op->status != HF_OK)
            continue;
        judge_step_run(&s, j, op, true);
        if (s.touched_count > 0)
            judge_undo_to(j, from);
    }
}

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
        bool differs = judge_view_differs(j, v, r, NULL);
        differing = differing + differs - r->differs;
        r->differs = differs;
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
        carry_out(j, c->ops[n]);
        differing = recount(j, v, before, differing);
    }
    judge_undo_to(j, from);
}

static void explain(struct judge *j, const struct judge_view *v, struct choice *c)
{
    char without[JUDGE_WORDS] = "", with[JUDGE_WORDS] = "", why[JUDGE_WORDS];
    size_t from = j->undo_count;
    (void)judge_view_count(j, v, without);
    for (size_t n = 0; n < c->count; n++)
        carry_out(j, c->ops[n]);
    (void)judge_view_count(j, v, with);
    judge_undo_to(j, from);
    if (c->count == 0)
        snprintf(why, sizeof why, "after the crash behind operation %llu, with nothing in doubt: %.700s",
                 (unsigned long long)j->op_count, without);
    else
        snprintf(
            why, sizeof why,
            "after the crash behind operation %llu no beginning of the %zu operations in doubt explains what "
            "is seen; if operation %llu and all after it are lost: %.350s; if none is lost: %.350s",
            (unsigned long long)j->op_count, c->count, (unsigned long long)c->ops[0]->number, without,
            with[0] ? with : "nothing differs at the end, but in between");
    verdict(j, why);
}

/* It has happened for sure. */
static void survived(struct judge *j, struct judge_op *op)
{
    size_t from = j->undo_count;
    struct judge_doubt *d = NULL;
    carry_out(j, op);
    for (size_t i = from; i < j->undo_count; i++)
        d = j->undo[i].record->doubt ? j->undo[i].record->doubt : d;
    if (!d)
        return;
    d = mark_changed(j, from, d);
    judge_undo_to(j, from);
    item_add(d, op);
}

/* The view does not tell how many of the rest have happened. */
static void open_doubt(struct judge *j, struct choice *c)
{
    size_t alternatives = 0, from = j->undo_count;
    for (size_t n = c->first; n <= c->last; n++)
        alternatives += c->fits[n];
    struct judge_doubt *d = doubt_make(j, c->last - c->first, alternatives);
    for (size_t n = c->first, a = 0; n <= c->last; n++)
        if (c->fits[n])
            memset(d->takes[a++], 1, n - c->first);
    d->item_count = c->last - c->first;
    for (size_t i = 0; i < d->item_count; i++)
        d->items[i] = c->ops[c->first + i];
    for (size_t n = c->first; n < c->last; n++)
        carry_out(j, c->ops[n]);
    (void)mark_changed(j, from, d);
    judge_undo_to(j, from);
}

void judge_doubt_recover(struct judge *j, const struct judge_view *v)
{
    struct choice c = { .count = 0 };
    c.ops = judge_grow(NULL, (j->op_count - j->floor + 1) * sizeof(struct judge_op *));
    for (uint64_t n = j->floor + 1; n <= j->op_count; n++)
        if (j->ops[n - 1]->lasting)
            c.ops[c.count++] = j->ops[n - 1];
    c.fits = judge_grow(NULL, (c.count + 1) * sizeof *c.fits);
    choose(j, v, &c);
    j->count.in_doubt += c.count;
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

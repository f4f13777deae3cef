/* doubt.c: doubts, and how they are settled. */
#include "judge/doubt.h"

#include <stdio.h>
#include <stdlib.h>

#define ALTERNATIVES_MAX ((size_t)16384)

void judge_doubt_object(struct judge *j, const char *why)
{
    if (!j->verdict[0])
        snprintf(j->verdict, sizeof j->verdict, "%s", why);
}

/* ---- Making and unmaking ---- */

struct judge_doubt *judge_doubt_make(struct judge *j, size_t room, size_t count)
{
    struct judge_doubt *d = judge_grow(NULL, sizeof *d);
    *d = (struct judge_doubt){ .next = j->doubts, .item_room = room, .count = count };
    d->items = judge_grow(NULL, (room + 1) * sizeof(struct judge_op *));
    d->takes = judge_grow(NULL, (count + 1) * sizeof(unsigned char *));
    for (size_t a = 0; a < count; a++) {
        d->takes[a] = judge_grow(NULL, room + 1);
        memset(d->takes[a], 0, room + 1);
    }
    j->doubts = d;
    return d;
}

static void discard(struct judge *j, struct judge_doubt *d)
{
    struct judge_doubt **at = &j->doubts;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    for (size_t a = 0; a < d->count; a++)
        free(d->takes[a]);
    free(d->takes);
    free(d->items);
    free(d->records);
    free(d);
}

void judge_doubt_free(struct judge *j)
{
    while (j->doubts)
        discard(j, j->doubts);
}

/* What every view shows in full, and in the order of placing: it is never in doubt. */
static bool definite(enum judge_kind kind)
{
    return kind == JUDGE_COUNTERS || kind == JUDGE_HOLD || kind == JUDGE_RESOURCE ||
           kind == JUDGE_OUTBOX;
}

static void mark(struct judge_doubt *d, struct judge_record *r)
{
    if (r->doubt == d)
        return;
    r->doubt = d;
    if (d->record_count == d->record_room) {
        d->record_room = 2 * d->record_room + 16;
        d->records = judge_grow(d->records, d->record_room * sizeof(struct judge_record *));
    }
    d->records[d->record_count++] = r;
}

static void item_add(struct judge_doubt *d, struct judge_op *op)
{
    if (d->item_count == d->item_room) {
        d->item_room = 2 * d->item_room + 8;
        d->items = judge_grow(d->items, (d->item_room + 1) * sizeof(struct judge_op *));
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
    memmove(d->items + item, d->items + item + 1, behind * sizeof(struct judge_op *));
    for (size_t a = 0; a < d->count; a++)
        memmove(d->takes[a] + item, d->takes[a] + item + 1, behind);
}

void judge_doubt_cut(struct judge_doubt *d, uint64_t number)
{
    while (d->item_count > 0 && d->items[d->item_count - 1]->number > number)
        item_remove(d, d->item_count - 1);
    size_t left = 0;
    for (size_t i = 0; i < d->record_count; i++) {
        if (d->records[i]->doubted_from > number)
            d->records[i]->doubt = NULL;
        else
            d->records[left++] = d->records[i];
    }
    d->record_count = left;
}

void judge_doubt_drop(struct judge_doubt *d, size_t alternative)
{
    free(d->takes[alternative]);
    d->takes[alternative] = d->takes[--d->count];
}

struct judge_doubt *judge_doubt_merge(struct judge *j, struct judge_doubt *a, struct judge_doubt *b)
{
    if (a == b)
        return a;
    if (a->count * b->count > ALTERNATIVES_MAX) {
        judge_doubt_object(
            j,
            "more is in doubt than the judge can follow: ask for the keys in doubt after a crash");
        return a;
    }
    struct judge_doubt *d = judge_doubt_make(j, a->item_count + b->item_count, a->count * b->count);
    for (size_t i = 0, k = 0; i < a->item_count || k < b->item_count;) {
        bool left =
            k == b->item_count || (i < a->item_count && a->items[i]->number < b->items[k]->number);
        for (size_t n = 0; n < d->count; n++)
            d->takes[n][d->item_count] =
                left ? a->takes[n / b->count][i] : b->takes[n % b->count][k];
        d->items[d->item_count++] = left ? a->items[i++] : b->items[k++];
    }
    for (size_t i = 0; i < a->record_count; i++)
        mark(d, a->records[i]);
    for (size_t i = 0; i < b->record_count; i++)
        mark(d, b->records[i]);
    discard(j, a);
    discard(j, b);
    return d;
}

struct judge_doubt *judge_doubt_mark(struct judge *j, size_t from, struct judge_doubt *d)
{
    for (size_t i = from; i < j->undo_count; i++) {
        struct judge_record *r = j->undo[i].record;
        if (definite(r->kind))
            continue;
        if (r->doubt && r->doubt != d)
            d = judge_doubt_merge(j, r->doubt, d);
        if (!r->doubt)
            r->doubted_from = j->undo[i].op;
        mark(d, r);
    }
    return d;
}

/* Is this change one that the doubt is about? */
static bool concerns(const struct judge_undo *u, const struct judge_doubt *d)
{
    return u->record->doubt == d && u->op >= u->record->doubted_from;
}

void judge_doubt_carry(struct judge *j, const struct judge_op *op, const struct judge_doubt *d)
{
    struct judge_step s;
    size_t from = j->undo_count;
    judge_step_run(&s, j, op, true);
    for (size_t i = from; d && i < j->undo_count; i++)
        if (!concerns(&j->undo[i], d))
            j->undo[i].record->body = j->undo[i].body;
}

void judge_doubt_certain(struct judge *j, struct judge_doubt *d, struct judge_op *op)
{
    struct judge_step s;
    size_t from = j->undo_count;
    item_add(d, op);
    judge_step_run(&s, j, op, true);
    for (size_t i = from; i < j->undo_count; i++)
        if (!definite(j->undo[i].record->kind))
            j->undo[i].record->body = j->undo[i].body;
}

/* ---- Going through the alternatives ---- */

void judge_walk_begin(struct judge_walk *w, struct judge *j, const struct judge_doubt *d,
                      size_t item_count)
{
    *w = (struct judge_walk){ .j = j, .d = d, .item_count = item_count };
    w->takes = judge_grow(NULL, item_count + 1);
    w->before = judge_grow(NULL, (item_count + 1) * sizeof *w->before);
    w->before[0] = j->undo_count;
}

void judge_walk_to(struct judge_walk *w, size_t alternative)
{
    const unsigned char *takes = w->d->takes[alternative];
    size_t i = 0;
    while (w->begun && i < w->item_count && w->takes[i] == takes[i])
        i++;
    w->first = i;
    w->begun = true;
    judge_undo_to(w->j, w->before[i]);
    for (; i < w->item_count; i++) {
        w->takes[i] = takes[i];
        if (takes[i])
            judge_doubt_carry(w->j, w->d->items[i], w->d);
        w->before[i + 1] = w->j->undo_count;
    }
}

void judge_walk_end(struct judge_walk *w)
{
    judge_undo_to(w->j, w->before[0]);
    free(w->takes);
    free(w->before);
}

/* ---- Settling ---- */

/* Of a key, only what is still remembered counts; of its fences, the lower of two that may have
 * been the highest. */
static bool key_same(const struct judge_record *r, struct judge_body *a, const struct judge_body *b,
                     hf_time now)
{
    bool token_a = a->key.first && (r->kind == JUDGE_NUMBER || now < a->key.expires_at);
    bool token_b = b->key.first && (r->kind == JUDGE_NUMBER || now < b->key.expires_at);
    struct judge_record x = { .body = *a }, y = { .body = *b };
    const struct hf_claim *claim_a = judge_claim_alive(&x, now),
                          *claim_b = judge_claim_alive(&y, now);
    if (token_a != token_b || (token_a && a->key.first != b->key.first) || !claim_a != !claim_b ||
        (claim_a && !judge_claim_same(claim_a, claim_b)))
        return false;
    if (b->key.highest < a->key.highest)
        a->key.highest = b->key.highest;
    return true;
}

/* Do two alternatives make the same of a record? Bodies point to what the judge keeps, so equal
 * ones are mostly equal byte for byte; a merged value is made anew each time. a: changed so that it
 * can stand for both. */
static bool body_same(const struct judge_record *r, struct judge_body *a,
                      const struct judge_body *b, hf_time now)
{
    /* Unequal is not the last word. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (memcmp(a, b, sizeof *a) == 0)
        return true;
    if (r->kind == JUDGE_KEY || r->kind == JUDGE_NUMBER)
        return key_same(r, a, b, now);
    if (r->kind == JUDGE_ENTRY)
        return (!a->present || now >= a->entry.entry.expires_at) &&
               (!b->present || now >= b->entry.entry.expires_at);
    if (r->kind == JUDGE_VALUE)
        return a->present == b->present && (!a->present || judge_bytes_equal(a->value, b->value));
    return r->kind == JUDGE_REGISTER && a->present && b->present &&
           a->reg.version == b->reg.version && a->reg.fence == b->reg.fence &&
           a->reg.changed_at == b->reg.changed_at && judge_value_same(&a->reg.value, &b->reg.value);
}

/* bodies[i]: what all alternatives make of records[i] with the items that are on disk; agreed[i]:
 * do they? */
static void compare(struct judge *j, const struct judge_doubt *d, struct judge_body *bodies,
                    bool *agreed)
{
    hf_time now = judge_time_on_disk(j);
    struct judge_walk w;
    size_t on_disk = 0;
    while (on_disk < d->item_count && d->items[on_disk]->number <= j->floor)
        on_disk++;
    judge_walk_begin(&w, j, d, on_disk);
    for (size_t a = 0; a < d->count; a++) {
        judge_walk_to(&w, a);
        for (size_t i = 0; i < d->record_count; i++) {
            if (a == 0)
                bodies[i] = d->records[i]->body;
            agreed[i] = a == 0 || (agreed[i] &&
                                   body_same(d->records[i], &bodies[i], &d->records[i]->body, now));
        }
    }
    judge_walk_end(&w);
}

/* What is agreed goes into the model for good: nothing has looked at it since the recovery, so that
 * it might as well have been known from there on. Then come the items that are not on disk. */
static void take_over(struct judge *j, struct judge_doubt *d, const struct judge_body *bodies,
                      const bool *agreed)
{
    static struct judge_doubt passing; /* a mark for those on their way; never looked into */
    size_t left = 0, count = d->record_count;
    for (size_t i = 0; i < count; i++) {
        if (!agreed[i])
            continue;
        d->records[i]->body = bodies[i];
        d->records[i]->doubt = &passing;
    }
    for (size_t i = 0; i < d->item_count; i++)
        if (d->items[i]->number > j->floor)
            judge_doubt_carry(j, d->items[i], &passing);
    for (size_t i = 0; i < count; i++) {
        struct judge_record *r = d->records[i];
        if (r->doubt == &passing)
            r->doubt = NULL;
        else
            d->records[left++] = r;
    }
    d->record_count = left;
}

/* Items that change no marked record any more, under any alternative, are let go. */
static void prune(struct judge *j, struct judge_doubt *d)
{
    size_t count = d->item_count;
    bool *used = judge_grow(NULL, count + 1);
    struct judge_walk w;
    memset(used, 0, count + 1);
    judge_walk_begin(&w, j, d, count);
    for (size_t a = 0; a < d->count; a++) {
        judge_walk_to(&w, a);
        for (size_t i = w.first; i < count; i++)
            for (size_t u = w.before[i]; u < w.before[i + 1]; u++)
                used[i] = used[i] || concerns(&j->undo[u], d);
    }
    judge_walk_end(&w);
    for (size_t i = count; i-- > 0;) {
        size_t takers = 0;
        for (size_t a = 0; a < d->count; a++)
            takers += d->takes[a][i];
        if (takers == d->count)
            d->items[i]->lost = false;
        if (!used[i])
            item_remove(d, i);
    }
    free(used);
}

struct row {
    uint64_t hash;
    size_t alternative;
};

static int by_hash(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->hash != y->hash
               ? (x->hash > y->hash) - (x->hash < y->hash)
               : (x->alternative > y->alternative) - (x->alternative < y->alternative);
}

/* How many different rows the alternatives have over the items with which[item]. rows: out, one of
 * each kind is first in its run. (By a hash of 64 bits: that two rows share one by chance does not
 * happen.) */
static size_t kinds_of_rows(const struct judge_doubt *d, const bool *which, bool wanted,
                            struct row *rows)
{
    for (size_t a = 0; a < d->count; a++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (size_t i = 0; i < d->item_count; i++)
            if (which[i] == wanted) {
                hash = (hash ^ (d->takes[a][i] + 1u)) * UINT64_C(0xff51afd7ed558ccd);
                hash ^= hash >> 31;
            }
        rows[a] = (struct row){ hash, a };
    }
    qsort(rows, d->count, sizeof *rows, by_hash);
    size_t kinds = 0;
    for (size_t a = 0; a < d->count; a++)
        if (a == 0 || rows[a].hash != rows[kinds - 1].hash)
            rows[kinds++] = rows[a];
    return kinds;
}

/* Keep the alternatives named in rows[0 .. kinds). */
static void keep_rows(struct judge_doubt *d, const struct row *rows, size_t kinds)
{
    bool *keep = judge_grow(NULL, d->count + 1);
    memset(keep, 0, d->count + 1);
    for (size_t i = 0; i < kinds; i++)
        keep[rows[i].alternative] = true;
    for (size_t a = d->count; a-- > 0;)
        if (!keep[a])
            judge_doubt_drop(d, a);
    free(keep);
}

/* ---- Splitting: two crashes that one operation has brought together, and that are strangers again
 * ---- */

/* Is there no record that both items with which[item] and others change, under any alternative?
 * Then those that the first change have bit 1 in `bits`, and those of the others bit 2. Mostly
 * there is one, and it is found soon. */
static bool strangers(struct judge *j, const struct judge_doubt *d, const bool *which,
                      unsigned char *bits)
{
    bool apart = true;
    struct judge_walk w;
    judge_walk_begin(&w, j, d, d->item_count);
    for (size_t a = 0; a < d->count && apart; a++) {
        judge_walk_to(&w, a);
        for (size_t i = w.first; i < d->item_count; i++)
            for (size_t u = w.before[i]; u < w.before[i + 1]; u++)
                for (size_t r = 0; concerns(&j->undo[u], d) && r < d->record_count; r++)
                    if (j->undo[u].record == d->records[r])
                        bits[r] |= which[i] ? 1 : 2;
        for (size_t r = 0; r < d->record_count; r++)
            apart = apart && bits[r] != 3;
    }
    judge_walk_end(&w);
    return apart;
}

static void split_off(struct judge *j, struct judge_doubt *d, bool *which,
                      const unsigned char *bits, const struct row *rows, size_t kinds)
{
    struct judge_doubt *made = judge_doubt_make(j, d->item_count, kinds);
    for (size_t i = 0; i < d->item_count; i++) {
        if (!which[i])
            continue;
        for (size_t n = 0; n < kinds; n++)
            made->takes[n][made->item_count] = d->takes[rows[n].alternative][i];
        made->items[made->item_count++] = d->items[i];
    }
    size_t left = 0;
    for (size_t r = 0; r < d->record_count; r++) {
        if (bits[r] & 1)
            mark(made, d->records[r]);
        else
            d->records[left++] = d->records[r];
    }
    d->record_count = left;
    for (size_t i = d->item_count; i-- > 0;)
        if (which[i])
            item_remove(d, i);
}

/* Try to separate the items of one crash from the rest. */
static bool split_by(struct judge *j, struct judge_doubt *d, uint64_t crash)
{
    bool *which = judge_grow(NULL, d->item_count + 1);
    unsigned char *bits = judge_grow(NULL, d->record_count + 1);
    struct row *in = judge_grow(NULL, (d->count + 1) * sizeof *in),
               *out = judge_grow(NULL, (d->count + 1) * sizeof *out);
    size_t own = 0;
    bool apart = false;
    memset(bits, 0, d->record_count + 1);
    for (size_t i = 0; i < d->item_count; i++) {
        which[i] = d->items[i]->crash == crash;
        own += which[i];
    }
    if (own > 0 && own < d->item_count) {
        size_t kinds_in = kinds_of_rows(d, which, true, in),
               kinds_out = kinds_of_rows(d, which, false, out);
        apart = kinds_in * kinds_out == d->count && strangers(j, d, which, bits);
        if (apart) {
            split_off(j, d, which, bits, in, kinds_in);
            keep_rows(d, out, kinds_out);
        }
    }
    free(which);
    free(bits);
    free(in);
    free(out);
    return apart;
}

static bool first_of_its_crash(const struct judge_doubt *d, size_t item)
{
    size_t i = 0;
    while (d->items[i]->crash != d->items[item]->crash)
        i++;
    return i == item;
}

/* Each crash is tried once, not once for each of its items: that may go through all
 * alternatives. */
static void split(struct judge *j, struct judge_doubt *d)
{
    for (size_t i = 1; i < d->item_count; i++) {
        if (d->items[i]->number > j->floor)
            return;
        if (first_of_its_crash(d, i) && split_by(j, d, d->items[i]->crash))
            i = 0;
    }
}

void judge_doubt_settle(struct judge *j, struct judge_doubt *d)
{
    struct judge_body *bodies = judge_grow(NULL, (d->record_count + 1) * sizeof *bodies);
    bool *agreed = judge_grow(NULL, d->record_count + 1);
    compare(j, d, bodies, agreed);
    take_over(j, d, bodies, agreed);
    free(bodies);
    free(agreed);
    prune(j, d);
    if (d->item_count == 0) {
        for (size_t i = 0; i < d->record_count; i++)
            d->records[i]->doubt = NULL;
        discard(j, d);
        return;
    }
    bool *all = judge_grow(NULL, d->item_count);
    struct row *rows = judge_grow(NULL, d->count * sizeof *rows);
    memset(all, 1, d->item_count);
    keep_rows(d, rows, kinds_of_rows(d, all, true, rows));
    free(all);
    free(rows);
    split(j, d);
}

bool judge_doubt_cloudy(const struct judge_record *guard, hf_time now)
{
    if (now < guard->body.guard.cloudy_until)
        return true;
    for (size_t i = 0; guard->doubt && i < guard->doubt->item_count; i++) {
        const struct judge_op *op = guard->doubt->items[i];
        enum hf_action action = op->request.action;
        if ((action == HF_RECORD || action == HF_ADMIT) && op->note.recorded && !op->note.entry &&
            now < op->note.expires_at && judge_bytes_equal(op->request.tenant, guard->tenant) &&
            judge_bytes_equal(op->request.identity.guard, guard->name))
            return true;
    }
    return false;
}

/* view.c: everything that can be seen, held against the model. */
#include "judge/doubt.h"

#include <stdarg.h>
#include <stdio.h>

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

__attribute__((format(printf, 2, 3))) static bool say(char *why, const char *format, ...)
{
    if (why) {
        va_list args;
        va_start(args, format);
        vsnprintf(why, JUDGE_WORDS, format, args);
        va_end(args);
    }
    return true;
}

bool judge_kind_viewed(enum judge_kind kind)
{
    return kind == JUDGE_HOLD || kind == JUDGE_RESOURCE || kind == JUDGE_GUARD ||
           kind == JUDGE_ENTRY || kind == JUDGE_OUTBOX || kind == JUDGE_KEY;
}

/* ---- Rows and records ---- */

static bool hang(struct judge *j, struct judge_record *r, const void *row, char *why)
{
    if (r->row_of == j->views && r->row) {
        say(why, "the view shows %.*s twice", (int)r->name.size, (const char *)r->name.data);
        return false;
    }
    if (r->row_of != j->views)
        r->held = r->confirmed = 0;
    r->row_of = j->views;
    r->row = row;
    return true;
}

/* The counts of a resource must be those of the holds beside it. */
static void tally(struct judge *j, const struct hf_hold *h)
{
    struct judge_record *r = judge_find(j, JUDGE_RESOURCE, h->tenant, h->resource, none());
    if (r->row_of != j->views) {
        r->row_of = j->views;
        r->row = NULL;
        r->held = r->confirmed = 0;
    }
    r->held += h->state == HF_HELD;
    r->confirmed += h->state == HF_CONFIRMED;
    r->confirmed -= h->reverses[0] != '\0';
}

static bool tallies(const struct judge_view *v, struct judge *j, char *why)
{
    for (size_t i = 0; i < v->resource_count; i++) {
        const struct hf_resource *row = &v->resources[i];
        struct judge_record *r = judge_find(j, JUDGE_RESOURCE, row->tenant, row->name, none());
        if (row->held == r->held && row->confirmed == r->confirmed)
            continue;
        say(why, "PC11: resource %.*s says %u held and %u confirmed, and its holds say %u and %u",
            (int)row->name.size, (const char *)row->name.data, row->held, row->confirmed, r->held,
            r->confirmed);
        return false;
    }
    return true;
}

static bool claims_hang(struct judge *j, const struct judge_view *v, char *why)
{
    for (size_t i = 0; i < v->claim_count; i++) {
        const struct hf_claim *c = &v->claims[i];
        if (i > 0 && judge_bytes_equal(c->tenant, c[-1].tenant) && c->fence >= c[-1].fence) {
            say(why,
                "the claims of a tenant are not listed newest begin first: fence %llu comes "
                "after %llu",
                (unsigned long long)c->fence, (unsigned long long)c[-1].fence);
            return false;
        }
        if (!hang(j, judge_find(j, JUDGE_KEY, c->tenant, c->key, none()), c, why))
            return false;
    }
    return true;
}

bool judge_view_hang(struct judge *j, const struct judge_view *v, char why[JUDGE_WORDS])
{
    bool well = true;
    j->views++;
    for (size_t i = 0; i < v->hold_count && well; i++) {
        well = hang(j, judge_find(j, JUDGE_HOLD, none(), hf_str(v->holds[i].id), none()),
                    &v->holds[i], why);
        tally(j, &v->holds[i]);
    }
    for (size_t i = 0; i < v->resource_count && well; i++)
        well = hang(
            j, judge_find(j, JUDGE_RESOURCE, v->resources[i].tenant, v->resources[i].name, none()),
            &v->resources[i], why);
    for (size_t i = 0; i < v->guard_count && well; i++)
        well = hang(j, judge_find(j, JUDGE_GUARD, v->guards[i].tenant, v->guards[i].name, none()),
                    &v->guards[i], why);
    for (size_t i = 0; i < v->entry_count && well; i++)
        well = hang(j,
                    judge_find(j, JUDGE_ENTRY, v->entries[i].tenant, v->entries[i].guard,
                               v->entries[i].identity),
                    &v->entries[i], why);
    for (size_t i = 0; i < v->outbox_count && well; i++)
        well = hang(j,
                    judge_find(j, JUDGE_OUTBOX, none(),
                               hf_mem(&v->outbox[i].number, sizeof(uint64_t)), none()),
                    &v->outbox[i], why);
    return well && claims_hang(j, v, why) && tallies(v, j, why);
}

/* ---- Differences ---- */

static bool entry_differs(struct judge *j, const struct judge_view *v, const struct judge_record *r,
                          const struct hf_entry *row, char *why)
{
    const struct judge_record *guard = judge_find(j, JUDGE_GUARD, r->tenant, r->name, none());
    const struct hf_entry *e = &r->body.entry.entry;
    enum judge_there there = judge_entry_there(j, r, guard);
    if (there != JUDGE_ABSENT && v->now >= e->expires_at)
        there = JUDGE_ABSENT;
    if (!row)
        return there == JUDGE_THERE &&
               say(why,
                   "DP4: an identity of guard %.*s that operation %llu recorded, until %lld, is "
                   "gone",
                   (int)r->name.size, (const char *)r->name.data, (unsigned long long)r->body.stamp,
                   (long long)e->expires_at);
    if (v->now >= row->expires_at || row->recorded_at > v->now)
        return say(why, "DP1: an identity of guard %.*s is shown outside its window",
                   (int)r->name.size, (const char *)r->name.data);
    if (there == JUDGE_ABSENT)
        return !judge_doubt_cloudy(guard, v->now) &&
               say(why, "DP4: guard %.*s shows an identity that it should not have seen",
                   (int)r->name.size, (const char *)r->name.data);
    return (row->recorded_at != e->recorded_at || row->expires_at != e->expires_at ||
            row->has_result != e->has_result || !judge_bytes_equal(row->result, e->result)) &&
           say(why, "DP2: an identity of guard %.*s is not as it was recorded at %lld",
               (int)r->name.size, (const char *)r->name.data, (long long)e->recorded_at);
}

static bool outbox_differs(const struct judge_record *r, const struct hf_outbox *row, char *why)
{
    const struct hf_outbox *o = &r->body.outbox;
    if (r->body.present && !row)
        return say(why, "row %llu of the outbox, of operation %llu, is gone",
                   (unsigned long long)o->number, (unsigned long long)r->body.stamp);
    if (!r->body.present && row)
        return say(why, "row %llu of the outbox belongs to nothing that happened",
                   (unsigned long long)row->number);
    return row &&
           (!judge_bytes_equal(o->tenant, row->tenant) || !judge_bytes_equal(o->key, row->key) ||
            !judge_bytes_equal(o->topic, row->topic) ||
            !judge_bytes_equal(o->payload, row->payload) || o->state != row->state ||
            o->created_at != row->created_at) &&
           say(why, "row %llu of the outbox is not as operation %llu left it",
               (unsigned long long)o->number, (unsigned long long)r->body.stamp);
}

static bool claim_differs(const struct judge_view *v, const struct judge_record *r,
                          const struct hf_claim *row, char *why)
{
    const struct hf_claim *claim = judge_claim_alive(r, v->now);
    if (!v->lists_claims || (!claim && !row))
        return false;
    if (!claim)
        return say(why, "the claim %.*s is listed, and nothing begun is remembered under its key",
                   (int)r->name.size, (const char *)r->name.data);
    struct hf_claim want = judge_claim_shown(claim, v->now);
    return (!row || !judge_claim_same(&want, row)) &&
           say(why,
               "the claim %.*s, last changed by operation %llu, is not listed as it is: state %d, "
               "fence %llu",
               (int)r->name.size, (const char *)r->name.data, (unsigned long long)r->body.stamp,
               (int)want.state, (unsigned long long)want.fence);
}

/* Holds, resources and guards: there or not, and then with the words of their own rules. */
static bool plain_differs(const struct judge_view *v, const struct judge_record *r, const void *row,
                          char *why)
{
    static const char *const names[JUDGE_KINDS] = {
        [JUDGE_HOLD] = "hold", [JUDGE_RESOURCE] = "resource", [JUDGE_GUARD] = "guard"
    };
    const char *kind = names[r->kind], *wrong = NULL;
    int size = (int)r->name.size;
    const char *name = r->name.data;
    if (r->body.present && !row)
        return say(why, "%s%s %.*s, of operation %llu, is gone",
                   r->kind == JUDGE_HOLD ? "PC10: " : "", kind, size, name,
                   (unsigned long long)r->body.stamp);
    if (!r->body.present && row)
        return say(why, "%s %.*s is there, and nothing made it", kind, size, name);
    if (!row)
        return false;
    if (r->kind == JUDGE_HOLD)
        wrong = judge_hold_differs(r, row, v->now);
    else if (r->kind == JUDGE_RESOURCE)
        wrong = judge_resource_differs(r, row, v->now);
    else if (!judge_guard_same(&r->body.guard.guard, row))
        wrong = "it is not as it was set";
    return wrong && say(why, "%s %.*s, last changed by operation %llu: %s", kind, size, name,
                        (unsigned long long)r->body.stamp, wrong);
}

bool judge_view_differs(struct judge *j, const struct judge_view *v, struct judge_record *r,
                        char why[JUDGE_WORDS])
{
    const void *row = r->row_of == j->views ? r->row : NULL;
    switch (r->kind) {
    case JUDGE_HOLD:
    case JUDGE_RESOURCE:
    case JUDGE_GUARD: return plain_differs(v, r, row, why);
    case JUDGE_ENTRY: return entry_differs(j, v, r, row, why);
    case JUDGE_OUTBOX: return outbox_differs(r, row, why);
    case JUDGE_KEY: return claim_differs(v, r, row, why);
    default: return false;
    }
}

size_t judge_view_count(struct judge *j, const struct judge_view *v, char why[JUDGE_WORDS])
{
    size_t count = 0;
    for (int kind = 0; kind < JUDGE_KINDS; kind++) {
        if (!judge_kind_viewed((enum judge_kind)kind))
            continue;
        for (struct judge_record *r = j->kinds[kind]; r; r = r->next) {
            r->differs = !r->doubt && judge_view_differs(j, v, r, count ? NULL : why);
            count += r->differs;
        }
    }
    return count;
}

/* ---- Learning ---- */

static void entry_learn(struct judge_step *s, struct judge_record *r)
{
    const struct judge_record *guard = judge_find(s->j, JUDGE_GUARD, r->tenant, r->name, none());
    if (judge_entry_there(s->j, r, guard) != JUDGE_MAYBE ||
        s->now >= r->body.entry.entry.expires_at)
        return;
    struct judge_body *b = judge_learn(s, r);
    b->present = r->row_of == s->j->views && r->row;
    b->entry.maybe = false;
    b->entry.opened = s->j->opened;
}

void judge_view_learn(struct judge *j, const struct judge_view *v)
{
    struct judge_step s = { .j = j, .now = v->now, .serial = ++j->step, .quiet = true };
    for (struct judge_record *r = j->kinds[JUDGE_HOLD]; r; r = r->next)
        if (!r->doubt && r->body.present && r->row_of == j->views && r->row)
            judge_hold_learn(&s, r, r->row);
    for (struct judge_record *r = j->kinds[JUDGE_ENTRY]; r; r = r->next)
        if (!r->doubt && r->body.present)
            entry_learn(&s, r);
}

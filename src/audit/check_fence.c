/* Leases, registers, numbered clients and the outbox. */
#include "audit/check.h"
#include "audit/digest.h"
#include "audit/words.h"

#include "base/bytes.h"

static struct hf_bytes nothing(void)
{
    return hf_mem("", 0);
}

/* ---- Leases ---- */

static bool lease_over(const struct hf_audit_lease *l, hf_time now)
{
    return l->released_at != 0 || now >= l->expires_at;
}

/* Renew, return and delete: for the lease as it was granted. NULL, or what is wrong. */
static const char *lease_change_wrong(const struct hf_audit_lease *before,
                                      const struct hf_lease *row, const struct hf_audit_entry *e,
                                      uint64_t holder)
{
    hf_time now = e->recorded_at;
    if (!before || before->gone || before->fence != row->fence || before->holder != holder ||
        before->granted_at != row->granted_at)
        return "is renewed, returned or deleted, but it is not the lease that was granted";
    if (e->action == HF_DELETE_LEASE)
        return row->released_at == (lease_over(before, now) ? before->released_at : now)
                   ? NULL
                   : "is deleted with a wrong time of return";
    if (lease_over(before, now))
        return "is renewed or returned after it ended";
    if (e->action == HF_RETURN && row->released_at != now)
        return "is returned at another time than it was recorded";
    return NULL;
}

static const char *lease_wrong(const struct hf_audit_lease *before, const struct hf_audit_row *row,
                               const struct hf_audit_entry *e, uint64_t holder)
{
    const struct hf_lease *lease = &row->lease;
    hf_time now = e->recorded_at;
    bool leaves = row->flags & HF_AUDIT_ROW_LEAVES;
    if (leaves != (e->action == HF_DELETE_LEASE))
        return leaves ? "is removed without a deletion" : "is deleted, but not removed";
    if (e->action == HF_GRANT && before && !before->gone && !lease_over(before, now))
        return "is granted while it is held";
    if (e->action == HF_GRANT && lease->granted_at != now)
        return "is granted at another time than it was recorded";
    if (!leaves && e->action != HF_RETURN &&
        (lease->released_at != 0 || lease->expires_at != hf_audit_plus(now, lease->ttl_ms)))
        return "does not end one ttl from now";
    return e->action == HF_GRANT ? NULL : lease_change_wrong(before, lease, e, holder);
}

void hf_audit_judge_lease(struct hf_audit_state *s, const struct hf_audit_entry *e,
                          const struct hf_audit_row *record)
{
    const struct hf_lease *row = &record->lease;
    bool fresh;
    struct hf_audit_lease *l =
        hf_audit_item(s, &s->leases,
                      hf_audit_name_of(HF_AUDIT_LEASES, row->tenant, row->name, nothing()), &fresh);
    if (!l)
        return;
    uint64_t holder = hf_audit_name_of(HF_AUDIT_LEASES, row->tenant, row->name, row->holder).high;
    s->report->leases += fresh;
    hf_audit_looked(s, HF_AUDIT_LEASE, 1);
    const char *wrong = lease_wrong(fresh ? NULL : l, record, e, holder);
    if (wrong)
        hf_audit_break(s, HF_AUDIT_LEASE, e, "lease %s (fence %llu, holder %s) %s",
                       hf_audit_show(row->name).text, (unsigned long long)row->fence,
                       hf_audit_show(row->holder).text, wrong);
    if (e->action == HF_GRANT)
        hf_audit_fresh_fence(s, e, "lease", row->name, l->fence, row->fence);
    l->fence = row->fence;
    l->holder = holder;
    l->granted_at = row->granted_at;
    l->expires_at = row->expires_at;
    l->released_at = row->released_at;
    l->gone = record->flags & HF_AUDIT_ROW_LEAVES;
}

/* ---- Registers ---- */

/* The row that a deletion leaves: NULL, or what is wrong with it. */
static const char *deletion_wrong(const struct hf_audit_state *s,
                                  const struct hf_audit_register *before,
                                  const struct hf_register *row, const struct hf_audit_entry *e)
{
    struct hf_value left;
    if ((e->action == HF_DELETE_REGISTER) != (row->value.type == HF_TYPE_DELETED))
        return "has the type deleted without a deletion, or was deleted without that type";
    if (row->value.type != HF_TYPE_DELETED)
        return NULL;
    if (before->version == 0 || before->type == HF_TYPE_DELETED)
        return "is deleted, but does not exist";
    if (!hf_audit_value_read(&row->value, NULL, 0, &left))
        return "leaves a record that is not well-formed";
    if (row->fence != 0 ? left.number != INT64_MAX
                        : !hf_audit_window_fits(s, e->recorded_at, left.number))
        return "is deleted, but its version and fence are kept for the wrong time";
    return NULL;
}

/* If a deleted register is forgotten, its name starts again at version 0. */
static void register_forget(struct hf_audit_register *r, hf_time now)
{
    if (r->type == HF_TYPE_DELETED && now >= r->forgotten_at) {
        r->version = r->fence = 0;
        r->type = 0;
        r->requires_fence = false;
    }
}

void hf_audit_judge_register(struct hf_audit_state *s, const struct hf_audit_entry *e,
                             const struct hf_audit_row *record)
{
    const struct hf_register *row = &record->reg;
    bool fresh;
    struct hf_audit_register *r = hf_audit_item(
        s, &s->registers, hf_audit_name_of(HF_AUDIT_REGISTERS, row->tenant, row->name, nothing()),
        &fresh);
    if (!r)
        return;
    s->report->registers += fresh;
    hf_audit_looked(s, HF_AUDIT_REGISTER, 1);
    register_forget(r, e->recorded_at);
    const char *wrong = deletion_wrong(s, r, row, e);
    if (wrong)
        hf_audit_break(s, HF_AUDIT_REGISTER, e, "register %s %s", hf_audit_show(row->name).text,
                       wrong);
    if (row->version != r->version + 1)
        hf_audit_break(s, HF_AUDIT_REGISTER, e, "register %s goes from version %llu to %llu",
                       hf_audit_show(row->name).text, (unsigned long long)r->version,
                       (unsigned long long)row->version);
    if (row->fence < r->fence)
        hf_audit_break(s, HF_AUDIT_REGISTER, e,
                       "the highest fence of register %s falls from %llu to %llu",
                       hf_audit_show(row->name).text, (unsigned long long)r->fence,
                       (unsigned long long)row->fence);
    if (row->fence > r->fence && !hf_audit_digest_raises(e, s->rows, record))
        hf_audit_break(s, HF_AUDIT_REGISTER, e,
                       "the highest fence of register %s rises from %llu to %llu, but the call did "
                       "not have this fence",
                       hf_audit_show(row->name).text, (unsigned long long)r->fence,
                       (unsigned long long)row->fence);
    if (r->requires_fence && e->action != HF_MERGE && row->fence <= r->fence)
        hf_audit_break(s, HF_AUDIT_REGISTER, e,
                       "register %s requires a fence, and was changed without one",
                       hf_audit_show(row->name).text);
    if (row->require_fence != r->requires_fence && !hf_audit_digest_requires(e, row))
        hf_audit_break(s, HF_AUDIT_REGISTER, e,
                       "register %s requires %s fence from now on, but the call did not set that",
                       hf_audit_show(row->name).text, row->require_fence ? "a" : "no");
    if (r->version > 0 && r->type != (uint8_t)row->value.type && r->type != HF_TYPE_DELETED &&
        row->value.type != HF_TYPE_DELETED)
        hf_audit_break(s, HF_AUDIT_REGISTER, e, "register %s changes its type from %s to %s",
                       hf_audit_show(row->name).text, hf_audit_type_name(r->type),
                       hf_audit_type_name(row->value.type));
    if (row->changed_at != e->recorded_at)
        hf_audit_break(s, HF_AUDIT_REGISTER, e, "register %s was changed at %s, but recorded at %s",
                       hf_audit_show(row->name).text, hf_audit_at(row->changed_at).text,
                       hf_audit_at(e->recorded_at).text);
    r->version = row->version;
    r->fence = row->fence;
    r->type = (uint8_t)row->value.type;
    r->requires_fence = row->require_fence;
    r->forgotten_at = r->type == HF_TYPE_DELETED && row->value.bytes.size == 8
                          ? (hf_time)hf_get64(row->value.bytes.data)
                          : INT64_MAX;
}

/* ---- Clients that number their operations ---- */

static bool number_used(const struct hf_audit_numbers *c, uint64_t n)
{
    return c->used[n % HF_SEQUENCE_WINDOW / 8] >> (n % 8) & 1;
}

/* Note number n. Numbers that leave the window below a new highest are forgotten. */
static void number_use(struct hf_audit_numbers *c, uint64_t n)
{
    uint64_t step = n > c->highest ? n - c->highest : 0;
    if (step >= HF_SEQUENCE_WINDOW)
        memset(c->used, 0, sizeof c->used);
    for (uint64_t i = n; step < HF_SEQUENCE_WINDOW && i > n - step; i--)
        c->used[i % HF_SEQUENCE_WINDOW / 8] &= (uint8_t) ~(1U << (i % 8));
    if (n > c->highest)
        c->highest = n;
    c->used[n % HF_SEQUENCE_WINDOW / 8] |= (uint8_t)(1U << (n % 8));
}

static const struct hf_audit_client *client_row(const struct hf_audit_state *s,
                                                const struct hf_audit_entry *e)
{
    for (size_t i = 0; i < e->row_count; i++)
        if (s->rows[i].kind == HF_ROW_CLIENT)
            return &s->rows[i].client;
    return NULL;
}

void hf_audit_judge_sequence(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    bool fresh;
    struct hf_audit_numbers *c = hf_audit_item(
        s, &s->clients, hf_audit_name_of(HF_AUDIT_CLIENTS, e->tenant, e->key, nothing()), &fresh);
    if (!c)
        return;
    uint64_t n = e->sequence;
    bool behind = c->highest >= HF_SEQUENCE_WINDOW && n <= c->highest - HF_SEQUENCE_WINDOW;
    bool again = !behind && n <= c->highest && number_used(c, n);
    bool far = n > c->highest && n - c->highest > HF_SEQUENCE_AHEAD_MAX;
    s->report->clients += fresh;
    hf_audit_looked(s, HF_AUDIT_SEQUENCES, 1);
    hf_audit_looked(s, HF_AUDIT_IR7, 1);
    if (n == 0 || behind || again) {
        const char *how = n == 0   ? "is not valid"
                          : behind ? "is below the client's window"
                                   : "was used before";
        hf_audit_break(s, HF_AUDIT_SEQUENCES, e, "number %llu %s (the highest was %llu)",
                       (unsigned long long)n, how, (unsigned long long)c->highest);
        if (n > 0)
            hf_audit_break(s, HF_AUDIT_IR8, e, "number %llu of a client has another effect",
                           (unsigned long long)n);
    }
    if (far)
        hf_audit_break(
            s, HF_AUDIT_SEQUENCES, e, "number %llu is more than %d above the highest (%llu)",
            (unsigned long long)n, HF_SEQUENCE_AHEAD_MAX, (unsigned long long)c->highest);
    if (!behind && n > 0)
        number_use(c, n);
    const struct hf_audit_client *row = client_row(s, e);
    if (!row || !hf_bytes_equal(row->name, e->key))
        hf_audit_break(s, HF_AUDIT_SEQUENCES, e,
                       "number %llu was used, but the entry has no record of the client",
                       (unsigned long long)n);
    else if (row->highest != c->highest || memcmp(row->used, c->used, sizeof c->used) != 0)
        hf_audit_break(s, HF_AUDIT_SEQUENCES, e,
                       "the client's record (highest %llu) does not have exactly the numbers used "
                       "so far (highest %llu)",
                       (unsigned long long)row->highest, (unsigned long long)c->highest);
}

/* ---- Outbox ---- */

/* In a database numbers may be missing and in any order, but each is used at most once. */
static void judge_outbox_number(struct hf_audit_state *s, const struct hf_audit_entry *e,
                                uint64_t number)
{
    bool fresh;
    unsigned char bytes[8];
    hf_put64(bytes, number);
    struct hf_audit_name name = hf_audit_name_of(HF_AUDIT_OUTBOX_NUMBERS, nothing(),
                                                 hf_mem(bytes, sizeof bytes), nothing());
    if (hf_audit_item(s, &s->outbox_numbers, name, &fresh) && !fresh)
        hf_audit_break(s, HF_AUDIT_OUTBOX, e, "outbox row %s is a duplicate",
                       hf_audit_figure(s, number).text);
}

void hf_audit_judge_outbox(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_outbox *row)
{
    hf_audit_looked(s, HF_AUDIT_OUTBOX, 1);
    if (s->database)
        judge_outbox_number(s, e, row->number);
    else if (row->number != s->outbox_number + 1)
        hf_audit_break(s, HF_AUDIT_OUTBOX, e, "outbox row %s comes after row %s",
                       hf_audit_figure(s, row->number).text,
                       hf_audit_figure(s, s->outbox_number).text);
    if (row->key.size == 0 && e->remember != HF_REMEMBER_SEQUENCE)
        hf_audit_break(s, HF_AUDIT_OUTBOX, e, "outbox row %s has no key for its delivery",
                       hf_audit_figure(s, row->number).text);
    if (!s->database || row->number > s->outbox_number)
        s->outbox_number = row->number;
    s->report->outbox++;
}

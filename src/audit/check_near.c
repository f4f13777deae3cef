/* Near-duplicates: "show me every double charge".
 *
 * Two holds of one requester on one resource within a minute look like a duplicate. The records
 * show the key of each and the state of the first when the second was placed; this distinguishes
 * two requests from one request that was executed twice. */
#include "audit/check.h"
#include "audit/id.h"
#include "audit/words.h"

#include "base/buffer.h"
#include "base/bytes.h"

#include <stdlib.h>

/* The same key again: legitimate only after its first window had closed. */
static void why_same_key(struct hf_buffer *why, const struct hf_audit_entry *first, bool over)
{
    hf_buffer_printf(why, "the same key twice: its first window %s at %s, ",
                     over ? "had closed" : "closes only", hf_audit_at(first->expires_at).text);
    hf_buffer_add_text(why,
                       over ? "so it was a new request; " : "so this is a duplicate (see IR3); ");
}

static void why_first(struct hf_buffer *why, const struct hf_audit_state *s,
                      const struct hf_audit_hold *first)
{
    const struct hf_audit_resource *r = &s->resources[first->resource];
    uint64_t taken = (uint64_t)r->held + r->confirmed;
    if (first->state == HF_RELEASED || first->state == HF_EXPIRED)
        hf_buffer_printf(why, "the first ended before the second was placed: %s at %s",
                         hf_audit_state_name(first->state), hf_audit_at(first->ended_at).text);
    else if (first->flags & HF_AUDIT_IS_REVERSED)
        hf_buffer_add_text(why, "the first was confirmed and then reversed");
    else
        hf_buffer_printf(
            why, "the first was %s then, and both fit: %s of the resource %s taken with the second",
            hf_audit_state_name(first->state), hf_audit_count(taken, "unit", "units").text,
            taken == 1 ? "is" : "are");
}

static bool same_key(const struct hf_audit_entry *a, const struct hf_audit_entry *b)
{
    return a->remember == b->remember && a->sequence == b->sequence &&
           hf_bytes_equal(a->tenant, b->tenant) && hf_bytes_equal(a->key, b->key);
}

/* Is the pair legitimate, and why? `first_entry` is NULL if it could not be read again. */
static bool explain(struct hf_buffer *why, const struct hf_audit_state *s,
                    const struct hf_audit_hold *first, const struct hf_audit_entry *first_entry,
                    const struct hf_audit_entry *second)
{
    if (!first_entry || first_entry->remember == HF_REMEMBER_NOT ||
        second->remember == HF_REMEMBER_NOT) {
        hf_buffer_add_text(why, "one of the two cannot be traced to a key");
        return false;
    }
    bool same = same_key(first_entry, second);
    bool over = second->recorded_at >= first_entry->expires_at;
    if (same)
        why_same_key(why, first_entry, over);
    else
        hf_buffer_printf(why, "different idempotency keys: two separate requests; ");
    why_first(why, s, first);
    return !same || over;
}

/* A place in the report for one more pair, or NULL if out of memory. */
static struct hf_audit_near *near_slot(struct hf_audit_state *s)
{
    struct hf_audit_report *report = s->report;
    if (!report->near)
        report->near = calloc(HF_AUDIT_LISTED_MAX, sizeof *report->near);
    if (report->near)
        return &report->near[report->near_listed++];
    s->no_memory = true;
    return NULL;
}

static void near_list(struct hf_audit_state *s, struct hf_audit_near *near,
                      const struct hf_audit_entry *e, const struct hf_hold *hold,
                      const struct hf_audit_hold *first)
{
    struct hf_audit_entry entry;
    struct hf_buffer why = { 0 };
    bool known = hf_audit_reader_entry(s->reader, first->position, &entry) &&
                 hf_audit_may_name(s, entry.tenant);
    near->legitimate = explain(&why, s, first, known ? &entry : NULL, e);
    near->first_at = first->placed_at;
    near->second_at = hold->placed_at;
    near->first_key = hf_audit_copy(known ? hf_audit_who(&entry).text : "unknown");
    near->second_key = hf_audit_copy(hf_audit_who(e).text);
    near->resource = hf_audit_copy(hf_audit_show(hold->resource).text);
    near->requester = hf_audit_copy(hf_audit_show(hold->requester).text);
    near->why = hf_buffer_text(&why) ? hf_audit_copy((const char *)why.data) : NULL;
    memcpy(near->second, hold->id, HF_ID_SIZE);
    hf_buffer_free(&why);
    if (!near->first_key || !near->second_key || !near->resource || !near->requester || !near->why)
        s->no_memory = true;
}

/* If ids cannot be computed: the id is in the entry that placed the hold. */
static void id_again(struct hf_audit_state *s, uint64_t position, uint64_t ordinal,
                     char id[HF_ID_SIZE])
{
    struct hf_audit_entry entry;
    struct hf_audit_row *rows = malloc(HF_AUDIT_ROWS_MAX * sizeof *rows);
    bool read = rows && hf_audit_reader_entry(s->reader, position, &entry) &&
                !hf_audit_rows_read(&entry, rows);
    for (size_t i = 0; read && i < entry.row_count; i++)
        if (rows[i].kind == HF_ROW_HOLD && rows[i].hold.ordinal == ordinal)
            memcpy(id, rows[i].hold.id, HF_ID_SIZE);
    s->no_memory |= !rows;
    free(rows);
}

static void judge_pair(struct hf_audit_state *s, const struct hf_audit_entry *e,
                       const struct hf_hold *hold, const struct hf_audit_close *before)
{
    const struct hf_audit_journal *j = hf_audit_reader_journal(s->reader);
    struct hf_audit_hold *first = hf_audit_hold_at(s, before->ordinal);
    s->report->near_count++;
    /* The keys are in the journal, not in memory, and are read again only for listed pairs. IR3 and
     * IR8 judge the others, like all entries. */
    if (!first || s->report->near_listed == HF_AUDIT_LISTED_MAX ||
        !hf_audit_may_name(s, hold->tenant))
        return;
    struct hf_audit_near *near = near_slot(s);
    if (!near)
        return;
    near_list(s, near, e, hold, first);
    if (j->keys_known)
        hf_audit_id_make(j, before->ordinal, near->first);
    else
        id_again(s, first->position, before->ordinal, near->first);
    s->report->near_illegitimate += !near->legitimate;
}

void hf_audit_judge_near(struct hf_audit_state *s, const struct hf_audit_entry *e,
                         const struct hf_hold *hold)
{
    struct hf_audit_name name =
        hf_audit_name_of(HF_AUDIT_REQUESTERS, hold->tenant, hold->resource, hold->requester);
    struct hf_audit_close *c = hf_audit_table_find(&s->close, name);
    if (c && hold->placed_at <= c->forget_at)
        judge_pair(s, e, hold, c);
    if (!c)
        c = hf_audit_table_add(&s->close, name, hf_audit_over(s, e->recorded_at));
    if (!c) {
        s->no_memory = true;
        return;
    }
    c->ordinal = hold->ordinal;
    c->placed_at = hold->placed_at;
    c->forget_at = hf_audit_plus(hold->placed_at, s->report->near_ms);
}

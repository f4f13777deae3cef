#include "store/postgres/transaction.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <stdio.h>

/* ---- Entries ---- */

/* Copy the key of the claim that the plan changes, to keep it until the batch is written. False if
 * out of memory. */
static bool keep_claim(struct hf_pg_tx *w, struct hf_bytes *out)
{
    const struct hf_plan *plan = w->s->plan;
    for (size_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].kind != HF_ROW_CLAIM)
            continue;
        struct hf_bytes key = plan->rows[i].claim.key;
        unsigned char *copy = hf_arena_take(&w->s->set.arena, key.size);
        if (copy)
            memcpy(copy, key.data, key.size);
        *out = hf_mem(copy, key.size);
        return copy != NULL;
    }
    return true;
}

bool hf_pg_write_entry(struct hf_pg_tx *w, const struct hf_entry_head *head, size_t need)
{
    struct hf_pg_session *s = w->s;
    struct hf_pg_written *e = hf_arena_take(&s->set.arena, sizeof *e);
    size_t size = hf_entry_size(head, s->plan);
    unsigned char *copy = size <= need ? hf_arena_take(&s->set.arena, size) : NULL;
    if (!e || !copy)
        return false;
    size_t written = hf_entry_encode(head, s->plan, copy);
    HF_ASSERT(written == size);
    *e = (struct hf_pg_written){ .number = hf_pg_drawn(w, w->numbers++, HF_PG_DRAWN_NUMBER),
                                 .head = *head,
                                 .image = hf_mem(copy, size) };
    if (!keep_claim(w, &e->claim))
        return false;
    *w->entries_end = e;
    w->entries_end = &e->next;
    w->entry_count++;
    return hf_pg_set_absorb(&s->set, s->plan, head, e->number, e->image);
}

bool hf_pg_write_own(struct hf_pg_tx *w, enum hf_action action, struct hf_bytes tenant)
{
    static const struct hf_request biggest = { .action = HF_PLACE_HOLD };
    struct hf_entry_head head = { .action = action, .tenant = tenant, .recorded_at = w->s->now };
    return hf_pg_write_entry(w, &head, hf_entry_need(&biggest));
}

/* ---- Writing ---- */

enum change { INSERTED, CHANGED, ERASED };

static bool is_change(const struct hf_pg_slot *s, enum change change)
{
    /* An apply function may delete a value that was not read. */
    bool there = s->stored || (s->table == HF_PG_VALUE && !s->found);
    bool stays = s->found || hf_pg_spec(s->table)->is_marked;
    if (!s->dirty || (!there && !stays))
        return false;
    return change == (!there ? INSERTED : stays ? CHANGED : ERASED);
}

/* Send the rows of a table with this kind of change. */
static void send_changes(struct hf_pg_tx *w, enum hf_pg_table table, enum change change)
{
    static const int statements[] = { HF_PG_INSERT, HF_PG_UPDATE, HF_PG_DELETE };
    struct hf_pg_slot **slots;
    size_t count = 0;
    for (const struct hf_pg_slot *s = w->s->set.tables[table]; s; s = s->next)
        count += is_change(s, change);
    if (count == 0)
        return;
    slots = hf_arena_take(&w->s->set.arena, count * sizeof *slots);
    if (!slots) {
        w->spoiled = true;
        return;
    }
    count = 0;
    for (struct hf_pg_slot *s = w->s->set.tables[table]; s; s = s->next)
        if (is_change(s, change))
            slots[count++] = s;
    for (size_t i = 0; i < count && table == HF_PG_RESOURCE; i++)
        hf_pg_set_due(slots[i]);
    hf_pg_set_sort(slots, count);
    hf_pg_tx_slots(w, statements[change] + (int)table, table, slots, count, change != ERASED,
                   change == CHANGED);
}

/* Every stored row that changes must be locked. It is, unless it became wanted only after it was
 * read. */
static bool all_locked(const struct hf_pg_tx *w)
{
    for (int t = 0; t <= HF_PG_RESOURCE; t++)
        for (const struct hf_pg_slot *s = w->s->set.tables[t]; s; s = s->next)
            if (s->dirty && s->stored && !s->locked)
                return false;
    return true;
}

/* The key for people: "client/number" for a numbered call, the claim's key for an action on a
 * claim. */
static void put_journal_key(const struct hf_pg_written *e, struct hf_buffer *b)
{
    const struct hf_entry_head *head = &e->head;
    char text[HF_NAME_MAX + 24];
    if (head->remember == HF_REMEMBER_NOT && e->claim.size > 0) {
        hf_pg_put_key(b, e->claim);
    } else if (head->remember == HF_REMEMBER_NOT) {
        hf_pg_put_null(b);
    } else if (head->remember == HF_REMEMBER_KEY) {
        hf_pg_put_key(b, head->key);
    } else {
        int n = snprintf(text, sizeof text, "%.*s/%llu", (int)head->key.size,
                         (const char *)head->key.data, (unsigned long long)head->sequence);
        hf_pg_put_key(b, hf_mem(text, (size_t)n));
    }
}

static void send_journal(struct hf_pg_tx *w)
{
    static const enum hf_pg_oid types[] = { HF_PG_INT8, HF_PG_TIMESTAMPTZ, HF_PG_TEXT, HF_PG_TEXT,
                                            HF_PG_TEXT, HF_PG_TEXT,        0,          0,
                                            HF_PG_BYTEA };
    struct hf_buffer *p = w->s->params;
    struct hf_bytes values[9];
    unsigned char writer[4], batch[8];
    for (int i = 0; i < 9; i++)
        if (types[i])
            hf_pg_array_begin(&p[i], types[i]);
    for (const struct hf_pg_written *e = w->entries; e; e = e->next) {
        hf_pg_put_int8(&p[0], (int64_t)e->number);
        hf_pg_put_time(&p[1], e->head.recorded_at);
        hf_pg_put_bytes(&p[2], e->head.tenant);
        hf_pg_put_bytes(&p[3], hf_str(hf_action_name(e->head.action)));
        hf_pg_put_bytes(&p[4], hf_str(hf_status_code(e->head.status)));
        put_journal_key(e, &p[5]);
        hf_pg_put_bytes(&p[8], e->image);
    }
    for (int i = 0; i < 9; i++) {
        if (!types[i])
            continue;
        hf_pg_array_end(&p[i], (uint32_t)w->entry_count);
        w->spoiled = w->spoiled || p[i].failed;
        values[i] = hf_mem(p[i].data, p[i].size);
    }
    values[6] = hf_pg_param4(writer, w->s->writer);
    values[7] = hf_pg_param8(batch, w->s->batch + 1);
    hf_pg_tx_send(w, HF_PG_JOURNAL, HF_PG_TABLES, values, 9);
}

/* The writer's row: the number of this batch, and the chain over its entries. */
static void send_writer(struct hf_pg_tx *w)
{
    struct hf_pg_session *s = w->s;
    unsigned char writer[4], generation[8], batch[8], number[8], from[8], until[8];
    hf_time limit = w->swift ? HF_PG_SWIFT_MS : HF_PG_LOCKED_MS;
    struct hf_sha256 sha;
    hf_sha256_init(&sha);
    hf_sha256_add(&sha, s->chain, HF_DIGEST_SIZE);
    hf_put64(number, (uint64_t)s->batch + 1);
    hf_sha256_add(&sha, number, sizeof number);
    for (const struct hf_pg_written *e = w->entries; e; e = e->next) {
        hf_put64(number, e->number);
        hf_sha256_add(&sha, number, sizeof number);
        hf_sha256_add(&sha, e->image.data, e->image.size);
    }
    hf_sha256_end(&sha, s->next_chain);
    const struct hf_bytes values[] = {
        hf_pg_param4(writer, s->writer),
        hf_pg_param8(generation, s->generation),
        hf_pg_param8(batch, s->batch + 1),
        hf_mem(s->next_chain, HF_DIGEST_SIZE),
        w->swift ? hf_mem(s->rules_version, sizeof s->rules_version) : hf_pg_none(),
        hf_pg_param8(from, hf_pg_time(s->read_at - HF_ENGINE_CLOCK_SLACK_MS)),
        hf_pg_param8(until, hf_pg_time(s->read_at + limit))
    };
    hf_pg_tx_send(w, HF_PG_WRITER, HF_PG_TABLES, values, 7);
}

/* If the commit has waited for the standbys, they have everything visible before it, and the batch
 * itself. writer: the result of the update of its row, before the commit; settings: of the query
 * after the commit, NULL if it failed. */
static void learn_replicated(struct hf_pg_session *s, const PGresult *writer,
                             const PGresult *settings)
{
    struct hf_pg_replicated *r = &s->shared->replicated;
    if (PQntuples(writer) != 1)
        return;
    bool waited = !PQgetisnull(writer, 0, 1) && settings && PQntuples(settings) == 1 &&
                  hf_pg_get_int8(writer, 0, 1) == hf_pg_get_int8(settings, 0, 0);
    if (!waited)
        return;
    hf_pg_replicated_below(r, s->conn.timeline, s->oldest);
    hf_pg_replicated_add(r, s->conn.timeline, (uint64_t)hf_pg_get_int8(writer, 0, 0));
}

/* Send everything in one round trip, COMMIT last. */
static enum hf_pg_end write_all(struct hf_pg_tx *w)
{
    struct hf_pg_session *s = w->s;
    hf_pg_tx_clear(w);
    if (w->swift) {
        hf_pg_tx_send(w, HF_PG_BEGIN, HF_PG_TABLES, NULL, 0);
        hf_pg_tx_send(w, HF_PG_KEEP_RULES, HF_PG_TABLES, NULL, 0);
    }
    /* Update existing rows first: this locks those that are not locked yet, in the same order. */
    for (int t = 0; t < HF_PG_TABLES; t++)
        send_changes(w, (enum hf_pg_table)t, CHANGED);
    for (int t = 0; t < HF_PG_TABLES; t++)
        send_changes(w, (enum hf_pg_table)t, INSERTED);
    for (int t = 0; t < HF_PG_TABLES; t++)
        if (hf_pg_is_taken_out((enum hf_pg_table)t))
            send_changes(w, (enum hf_pg_table)t, ERASED);
    send_journal(w);
    send_writer(w);
    int writer = w->count - 1, commit = w->count, settings = w->count + 1; /* indexes of the
                                                                            * results */
    if (!w->spoiled) /* else a statement is missing, and closing the connection sends the queue */
        hf_pg_tx_send(w, HF_PG_COMMIT, HF_PG_TABLES, NULL, 0);
    if (!w->spoiled && s->replicates)
        hf_pg_tx_send(w, HF_PG_SETTINGS, HF_PG_TABLES, NULL, 0);
    s->conn.warned = false;
    enum hf_pg_end end = hf_pg_tx_trip(w);
    /* Once COMMIT has answered, the batch is committed, even if the query after it fails or the
     * connection is lost. */
    bool committed = commit < w->count && w->results[commit];
    if (committed)
        end = HF_PG_DONE;
    if (end == HF_PG_GONE || (end == HF_PG_DONE && s->conn.warned))
        return HF_PG_DOUBT;
    if (end != HF_PG_DONE)
        return end;
    /* A primary that was replaced meanwhile has committed it; only the new one can tell whether it
     * has the commit. */
    if (!hf_pg_session_is_newest(s))
        return HF_PG_DOUBT;
    s->conn.in_transaction = false;
    if (s->is_behind)
        atomic_fetch_add(&s->shared->stalls, 1);
    s->batch++;
    memcpy(s->chain, s->next_chain, HF_DIGEST_SIZE);
    if (s->replicates)
        learn_replicated(s, w->results[writer], w->results[settings]);
    return HF_PG_DONE;
}

enum hf_pg_end hf_pg_write(struct hf_pg_tx *w)
{
    if (w->spoiled || w->s->set.failed) {
        snprintf(w->s->conn.why, sizeof w->s->conn.why,
                 "not enough memory for a batch, or its journal entry would be too "
                 "large. Run `holdfast audit`");
        w->s->conn.state[0] = '\0';
        return HF_PG_NO;
    }
    if (w->entry_count == 0)
        return HF_PG_DONE;
    return w->swift || all_locked(w) ? write_all(w) : HF_PG_AGAIN;
}

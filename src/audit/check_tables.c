/* The tables of a database: each row must agree with the newest entry about it, and there must be
 * no other rows.
 *
 * While the journal is read, a hash of what each row must contain is noted, with the position of
 * the entry: a few words for each row. Then the tables are read, once. If a row differs, the entry
 * is read again to find the difference. */
#include "audit/check.h"
#include "audit/words.h"

#include "base/buffer.h"
#include "base/bytes.h"

#include <stdlib.h>

struct stored {
    struct hf_audit_name name;
    uint64_t content, position;
    hf_time until; /* from then on the row may be deleted */
    bool gone;     /* the row must not exist */
    bool seen;     /* the row exists */
};

const size_t hf_audit_stored_size = sizeof(struct stored);

bool hf_audit_stored_old(const void *item, hf_time now)
{
    return ((const struct stored *)item)->until <= now;
}

/* ---- Noting ---- */

static struct hf_audit_name name_of(const struct hf_audit_fields_hash *hash)
{
    return (struct hf_audit_name){ hash->key_high, hash->key_low };
}

/* once: keep what is already noted. */
static void note(struct hf_audit_state *s, const struct hf_audit_entry *e,
                 const struct hf_audit_fields *fields, hf_time until, bool once)
{
    struct hf_audit_fields_hash hash = hf_audit_fields_hash(fields);
    struct stored *item = hf_audit_table_find(&s->stored, name_of(&hash));
    if (item && once)
        return;
    if (!item)
        item = hf_audit_table_add(&s->stored, name_of(&hash), hf_audit_over(s, e->recorded_at));
    if (!item) {
        s->no_memory = true;
        return;
    }
    item->content = hash.content;
    item->position = e->position;
    item->until = until;
    item->gone =
        (fields->table == HF_AUDIT_STORED_VALUE || fields->table == HF_AUDIT_STORED_LEASE) &&
        fields->count == fields->keys;
}

static hf_time until_of(const struct hf_audit_row *row)
{
    if (row->kind == HF_ROW_ENTRY)
        return row->identity.expires_at;
    if (row->kind == HF_ROW_REGISTER && row->reg.value.type == HF_TYPE_DELETED &&
        row->reg.value.bytes.size == 8)
        return (hf_time)hf_get64(row->reg.value.bytes.data);
    return row->kind == HF_ROW_CLAIM && row->claim.expires_at ? row->claim.expires_at : INT64_MAX;
}

static void beside_judge(struct hf_audit_state *s, const struct hf_audit_entry *e,
                         const struct hf_audit_fields *must)
{
    const struct hf_audit_fields *is = s->batch->beside;
    const struct hf_audit_field *wrong = is ? hf_audit_fields_differ(must, is) : NULL;
    hf_audit_looked(s, HF_AUDIT_TABLES, 1);
    if (!wrong)
        return;
    const struct hf_audit_field *other = hf_audit_fields_find(is, wrong->name);
    hf_audit_break(s, HF_AUDIT_TABLES, e,
                   "column %s of holdfast.journal is %s, but in the entry it is %s", wrong->name,
                   other ? hf_audit_field_show(other).text : "missing",
                   hf_audit_field_show(wrong).text);
}

void hf_audit_note_tables(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    struct hf_audit_fields fields;
    bool enough = true;
    hf_arena_reset(&s->arena);
    if (hf_audit_fields_beside(e, s->rows, &s->arena, &fields))
        beside_judge(s, e, &fields);
    else
        enough = false;
    for (size_t i = 0; i < e->row_count && enough; i++) {
        const struct hf_audit_row *row = &s->rows[i];
        if (hf_audit_fields_of(e, row, &s->arena, &fields))
            note(s, e, &fields, until_of(row), false);
        enough = enough && fields.count != 1;
        if (hf_audit_fields_made(e, row, &s->arena, &fields))
            note(s, e, &fields, INT64_MAX, true);
        enough = enough && fields.count != 1;
    }
    if (enough && hf_audit_fields_remembered(e, s->rows, &s->arena, &fields))
        note(s, e, &fields, e->expires_at, false);
    s->no_memory |= !enough || fields.count == 1;
}

/* ---- Reporting differences ---- */

/* Read the entry again and find the row with this name. entry: out, borrowed from the reader. */
static bool find_again(struct hf_audit_state *s, const struct stored *item,
                       struct hf_audit_entry *entry, struct hf_audit_fields *out)
{
    struct hf_audit_fields_hash hash;
    hf_arena_reset(&s->arena);
    if (!hf_audit_reader_entry(s->reader, item->position, entry) ||
        hf_audit_rows_read(entry, s->rows))
        return false;
    for (size_t i = 0; i < (size_t)entry->row_count * 2 + 1; i++) {
        bool made = i % 2 == 1;
        const struct hf_audit_row *row = &s->rows[i / 2];
        bool there = i == (size_t)entry->row_count * 2
                         ? hf_audit_fields_remembered(entry, s->rows, &s->arena, out)
                     : made ? hf_audit_fields_made(entry, row, &s->arena, out)
                            : hf_audit_fields_of(entry, row, &s->arena, out);
        if (!there)
            continue;
        hash = hf_audit_fields_hash(out);
        if (hash.key_high == item->name.high && hash.key_low == item->name.low &&
            hash.content == item->content)
            return true;
    }
    return false;
}

/* The field as text. A report for one tenant does not show numbers that count over the whole
 * store. */
static struct hf_audit_field_shown field_told(const struct hf_audit_state *s,
                                              const struct hf_audit_field *field)
{
    static const char *const numbers[] = { "ordinal", "previous", "newest", "number",
                                           "entry",   "hold",     "writer" };
    struct hf_audit_field_shown hidden = { "(not shown)" };
    for (size_t i = 0; s->report->has_tenant && i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(field->name, numbers[i]) == 0)
            return hidden;
    return hf_audit_field_show(field);
}

/* "holdfast.token, tenant "shop", key "order-1"" */
static void row_named(const struct hf_audit_state *s, struct hf_buffer *b,
                      const struct hf_audit_fields *row)
{
    hf_buffer_printf(b, "holdfast.%s", hf_audit_stored_name(row->table));
    for (size_t i = 0; i < row->keys; i++)
        if (row->field[i].value.size > 0 || strcmp(row->field[i].name, "tenant") != 0)
            hf_buffer_printf(b, ", %s %s", row->field[i].name, field_told(s, &row->field[i]).text);
}

/* Does the report cover the row? Not every table has the tenant. */
static bool row_told(const struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    const struct hf_audit_field *tenant = hf_audit_fields_find(row, "tenant");
    return !s->report->has_tenant || (tenant && hf_audit_may_name(s, tenant->value));
}

/* Is there room for one more example? If not, the violation is counted here. */
static bool may_tell(struct hf_audit_state *s)
{
    struct hf_audit_check *check = &s->report->checks[HF_AUDIT_TABLES];
    if (check->example_count < HF_AUDIT_LISTED_MAX)
        return true;
    check->violations++;
    return false;
}

static void tell(struct hf_audit_state *s, const struct hf_audit_fields *row,
                 const struct hf_audit_entry *entry, const char *what)
{
    struct hf_buffer b = { 0 };
    row_named(s, &b, row);
    const char *named = hf_buffer_text(&b);
    s->no_memory |= !named;
    if (named)
        hf_audit_break(s, HF_AUDIT_TABLES, entry, "%.400s: %s", named, what);
    hf_buffer_free(&b);
}

static void tell_difference(struct hf_audit_state *s, const struct hf_audit_fields *row,
                            const struct stored *item)
{
    struct hf_audit_fields must;
    struct hf_audit_entry entry;
    char what[600] = "the row does not match the journal";
    if (!may_tell(s))
        return;
    bool again = find_again(s, item, &entry, &must);
    const struct hf_audit_field *wrong = again ? hf_audit_fields_differ(&must, row) : NULL;
    const struct hf_audit_field *other = wrong ? hf_audit_fields_find(row, wrong->name) : NULL;
    if (other) {
        struct hf_audit_field shown = *other;
        if (shown.type != HF_AUDIT_NULL && wrong->type != HF_AUDIT_NULL)
            shown.type = wrong->type;
        snprintf(what, sizeof what, "%s is %s, but in the journal it is %s", wrong->name,
                 field_told(s, &shown).text, field_told(s, wrong).text);
    }
    tell(s, row, again ? &entry : NULL, what);
}

/* ---- Comparing ---- */

/* Expired tokens and identities stay until the sweeper removes them. */
static bool row_over(const struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    const struct hf_audit_field *until = hf_audit_fields_find(row, "expires_at");
    char digits[24] = "";
    if ((row->table != HF_AUDIT_STORED_TOKEN && row->table != HF_AUDIT_STORED_IDENTITY) || !until ||
        until->value.size >= sizeof digits || *(const char *)until->value.data == 'i')
        return false;
    memcpy(digits, until->value.data, until->value.size);
    return strtoll(digits, NULL, 10) <= hf_audit_reader_journal(s->reader)->as_of;
}

static const char *const counter_names[] = { "journal_number", "hold_ordinal", "fence",
                                             "outbox_number", "writer_id" };
enum { COUNTERS = sizeof counter_names / sizeof *counter_names };

/* A sequence must not be behind the numbers drawn from it: it would give them again. For the
 * journal and the outbox, one drawn number stands for a block of numbers. */
static void judge_counter(struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    enum { BLOCK = 32 };
    const struct {
        uint64_t highest, drawn;
    } counters[COUNTERS] = { { hf_audit_reader_journal(s->reader)->end, BLOCK },
                             { s->hold_count, 1 },
                             { s->highest_fence, 1 },
                             { s->outbox_number, HF_APPLY_ROWS_MAX },
                             { s->highest_writer, 1 } };
    char digits[24] = "";
    if (row->field[1].value.size >= sizeof digits)
        return;
    memcpy(digits, row->field[1].value.data, row->field[1].value.size);
    uint64_t stands = strtoull(digits, NULL, 10);
    for (size_t i = 0; i < COUNTERS; i++) {
        if (!hf_bytes_equal(row->field[0].value, hf_str(counter_names[i])))
            continue;
        s->counters_seen |= 1U << i;
        if (stands + counters[i].drawn - 1 < counters[i].highest)
            hf_audit_break_store(s, HF_AUDIT_TABLES,
                                 "the sequence holdfast.%s is at %llu, but %llu was given out",
                                 counter_names[i], (unsigned long long)stands,
                                 (unsigned long long)counters[i].highest);
    }
}

/* Servers need all sequences. */
static void judge_counters(struct hf_audit_state *s)
{
    for (size_t i = 0; i < COUNTERS; i++)
        if (!(s->counters_seen & 1U << i))
            hf_audit_break_store(s, HF_AUDIT_TABLES, "the sequence holdfast.%s is missing",
                                 counter_names[i]);
}

/* Only the primary key keeps two batches from inserting the same row. */
static void judge_keyless(struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    struct hf_bytes name = row->field[0].value;
    hf_audit_break_store(s, HF_AUDIT_TABLES, "the table holdfast.%.*s has no primary key",
                         (int)name.size, (const char *)name.data);
}

/* place_hold looks for overdue holds only if the resource's due_at says that there may be some. The
 * journal does not have due_at; it is compared with the holds, and only wrong resources come
 * here. */
static void judge_due(struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    char what[200];
    if (row->count != 4 || !may_tell(s))
        return;
    snprintf(what, sizeof what, "due_at is %.60s, but a hold on it ends at %.60s",
             hf_audit_field_show(&row->field[2]).text, hf_audit_field_show(&row->field[3]).text);
    tell(s, row, NULL, what);
}

/* A server refuses such a row and tells the operator to run the audit. The journal does not have
 * the row, only the deletion of the lease. */
static void judge_left(struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    if (may_tell(s))
        tell(s, row, NULL, "a deleted lease cannot have left this row");
}

static void judge_row(struct hf_audit_state *s, const struct hf_audit_fields *row)
{
    struct hf_audit_fields_hash hash = hf_audit_fields_hash(row);
    struct stored *item = hf_audit_table_find(&s->stored, name_of(&hash));
    if (!item && !row_told(s, row) && row->table != HF_AUDIT_STORED_COUNTER &&
        row->table != HF_AUDIT_STORED_KEYLESS)
        return;
    hf_audit_looked(s, HF_AUDIT_TABLES, s->report->has_tenant && !row_told(s, row) ? 0 : 1);
    if (row->table == HF_AUDIT_STORED_COUNTER) {
        judge_counter(s, row);
        return;
    }
    if (row->table == HF_AUDIT_STORED_KEYLESS) {
        judge_keyless(s, row);
        return;
    }
    if (row->table == HF_AUDIT_STORED_LEASE_LEFT) {
        judge_left(s, row);
        return;
    }
    if (row->table == HF_AUDIT_STORED_RESOURCE_DUE) {
        judge_due(s, row);
        return;
    }
    if (row->table == HF_AUDIT_STORED_CONFIG && s->seen == 0)
        return; /* the store is new, and no entry was written yet */
    if (item && !item->gone) {
        if (item->seen && may_tell(s))
            tell(s, row, NULL, "the row is a duplicate");
        item->seen = true;
        if (item->content != hash.content)
            tell_difference(s, row, item);
    } else if (!row_over(s, row) && may_tell(s)) {
        tell(s, row, NULL,
             item ? "the row exists, but in the journal it was deleted"
                  : "the row exists, but no entry of the journal made it");
    }
}

/* Is the row required, but missing? */
static bool is_missing(const struct hf_audit_state *s, const struct stored *item)
{
    hf_time as_of = hf_audit_reader_journal(s->reader)->as_of;
    hf_time newest = s->newest > as_of ? s->newest : as_of;
    return item->name.low != 0 && !item->seen && !item->gone && item->until > newest;
}

static void judge_missing(struct hf_audit_state *s)
{
    for (size_t i = 0; i < s->stored.room && !s->no_memory; i++) {
        const struct stored *item =
            (const struct stored *)(s->stored.slots + i * s->stored.item_size);
        struct hf_audit_fields must;
        struct hf_audit_entry entry;
        if (!is_missing(s, item))
            continue;
        if (s->report->checks[HF_AUDIT_TABLES].example_count == HF_AUDIT_LISTED_MAX)
            s->report->checks[HF_AUDIT_TABLES].violations++;
        else if (!find_again(s, item, &entry, &must))
            hf_audit_break(s, HF_AUDIT_TABLES, NULL,
                           "a row that entry %s made or changed is missing",
                           hf_audit_figure(s, item->position).text);
        else if (may_tell(s))
            tell(s, &must, &entry, "the row is missing");
    }
}

enum hf_status hf_audit_judge_tables(struct hf_audit_state *s, struct hf_error *why)
{
    struct hf_audit_fields row;
    while (!s->no_memory && hf_audit_reader_stored(s->reader, &row, why))
        judge_row(s, &row);
    if (why->status == HF_OK) {
        judge_counters(s);
        judge_missing(s);
    }
    return why->status;
}

/* The records of a store in a database: the table holdfast.journal, entry by entry.
 *
 * Everything is read in one transaction, which sees the database as it was at its begin. Entries
 * come in the order of their numbers; batches of several writers may be interleaved, so each
 * writer's chain is computed separately:
 *
 *   chain = SHA-256(chain before, number of the batch, then for each entry: its number, its bytes)
 *
 * with SHA-256(store id, writer) before the first, and numbers as 8 bytes (the writer as 4), the
 * lowest first. */
#include "audit/read.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/postgres/conninfo.h"
#include "store/postgres/scan.h"

#include <stdio.h>
#include <stdlib.h>

/* The state of a writer while its batches are read. */
struct writing {
    struct hf_audit_writer told;
    bool open; /* a batch has begun and not ended yet */
    struct hf_sha256 sha;
    uint64_t sequence, first;
    uint32_t length, count;
    hf_time now, previous_now;
    bool number_fits;
};

enum phase { ENTRIES, BATCHES, WRITERS, TABLES };

struct postgres {
    struct hf_audit_reader reader;
    struct hf_pg_scan *scan; /* owned */
    enum phase phase;
    struct writing *writers; /* owned, in the order of their ids */
    size_t writer_count, at; /* at: the next writer */
    uint64_t sequence;       /* number of batches so far */
    struct hf_audit_fields beside;
    bool broken;    /* an entry could not be read again: the next step fails */
    bool no_memory; /* out of memory in writer_add */
};

static enum hf_status fail_memory(struct hf_error *why)
{
    return hf_error_set(why, HF_NO_MEMORY, "Out of memory while reading the journal.");
}

static enum hf_audit_step step_failed(const struct postgres *r, struct hf_error *why)
{
    hf_pg_scan_failed(r->scan, why);
    return HF_AUDIT_FAILED;
}

/* ---- Rows ---- */

static void fields_fill(const struct hf_pg_scan_row *row, struct hf_audit_fields *out)
{
    static const enum hf_audit_field_type types[] = {
        [HF_PG_SCAN_NULL] = HF_AUDIT_NULL,    [HF_PG_SCAN_TEXT] = HF_AUDIT_TEXT,
        [HF_PG_SCAN_BYTES] = HF_AUDIT_BYTES,  [HF_PG_SCAN_NUMBER] = HF_AUDIT_NUMBER,
        [HF_PG_SCAN_TIME] = HF_AUDIT_TIME_MS,
    };
    out->keys = row->keys;
    out->count = row->count;
    for (size_t i = 0; i < row->count; i++)
        out->field[i] = (struct hf_audit_field){ row->values[i].name, types[row->values[i].type],
                                                 row->values[i].value };
}
_Static_assert(HF_AUDIT_FIELDS_MAX == HF_PG_SCAN_VALUES_MAX, "a row of the tables fits");

static const enum hf_audit_stored stored_as[HF_PG_SCAN_TABLES] = {
    [HF_PG_SCAN_CONFIG] = HF_AUDIT_STORED_CONFIG,
    [HF_PG_SCAN_TOKEN] = HF_AUDIT_STORED_TOKEN,
    [HF_PG_SCAN_HOLD] = HF_AUDIT_STORED_HOLD,
    [HF_PG_SCAN_SUCCEEDED] = HF_AUDIT_STORED_SUCCEEDED,
    [HF_PG_SCAN_RESOURCE] = HF_AUDIT_STORED_RESOURCE,
    [HF_PG_SCAN_RESOURCE_MADE] = HF_AUDIT_STORED_RESOURCE_MADE,
    [HF_PG_SCAN_RESOURCE_DUE] = HF_AUDIT_STORED_RESOURCE_DUE,
    [HF_PG_SCAN_GUARD] = HF_AUDIT_STORED_GUARD,
    [HF_PG_SCAN_GUARD_MADE] = HF_AUDIT_STORED_GUARD_MADE,
    [HF_PG_SCAN_IDENTITY] = HF_AUDIT_STORED_IDENTITY,
    [HF_PG_SCAN_LEASE] = HF_AUDIT_STORED_LEASE,
    [HF_PG_SCAN_LEASE_LEFT] = HF_AUDIT_STORED_LEASE_LEFT,
    [HF_PG_SCAN_REGISTER] = HF_AUDIT_STORED_REGISTER,
    [HF_PG_SCAN_CLIENT] = HF_AUDIT_STORED_CLIENT,
    [HF_PG_SCAN_CALL] = HF_AUDIT_STORED_CALL,
    [HF_PG_SCAN_VALUE] = HF_AUDIT_STORED_VALUE,
    [HF_PG_SCAN_OUTBOX] = HF_AUDIT_STORED_OUTBOX,
    [HF_PG_SCAN_COUNTER] = HF_AUDIT_STORED_COUNTER,
    [HF_PG_SCAN_KEYLESS] = HF_AUDIT_STORED_KEYLESS,
};

/* The next row of the tables: see hf_audit_reader_stored. */
static bool postgres_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                            struct hf_error *why)
{
    struct postgres *r = (struct postgres *)reader;
    struct hf_pg_scan_row got;
    enum hf_pg_scan_step step = r->broken ? HF_PG_SCAN_FAILED : hf_pg_scan_row(r->scan, &got);
    if (step == HF_PG_SCAN_FAILED)
        hf_pg_scan_failed(r->scan, why);
    if (step != HF_PG_SCAN_ROW)
        return false;
    *row = (struct hf_audit_fields){ .table = stored_as[got.table] };
    fields_fill(&got, row);
    /* Without permission, the value of a sequence is NULL. */
    if (row->table == HF_AUDIT_STORED_COUNTER && row->field[1].type == HF_AUDIT_NULL) {
        (void)hf_error_set(why, HF_STORAGE_FAILURE,
                           "The sequences of the schema holdfast cannot be read: permission "
                           "denied. Use a role with holdfast_auditor (doc/POSTGRES.md, Roles).");
        return false;
    }
    return true;
}

/* ---- Writers ---- */

/* The chain before a writer's first batch. */
static void chain_begin(const struct postgres *r, uint32_t id, uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_sha256 sha;
    unsigned char number[4];
    hf_put32(number, id);
    hf_sha256_init(&sha);
    hf_sha256_add(&sha, r->reader.journal.store_id, sizeof r->reader.journal.store_id);
    hf_sha256_add(&sha, number, sizeof number);
    hf_sha256_end(&sha, out);
}

/* The writer with this id, added if it is new. NULL if out of memory. */
static struct writing *writer_of(struct postgres *r, uint32_t id)
{
    size_t low = 0, high = r->writer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->writers[middle].told.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < r->writer_count && r->writers[low].told.id == id)
        return &r->writers[low];
    struct writing *more = realloc(r->writers, (r->writer_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->writers = more;
    memmove(&more[low + 1], &more[low], (r->writer_count - low) * sizeof *more);
    r->writer_count++;
    more[low] = (struct writing){ .told = { .id = id }, .previous_now = INT64_MIN };
    chain_begin(r, id, more[low].told.chain);
    return &more[low];
}

static bool writer_add(void *arg, const struct hf_pg_scan_writer *writer)
{
    struct postgres *r = arg;
    struct writing *w = writer_of(r, writer->id);
    r->no_memory = !w;
    if (!w)
        return false;
    w->told.known = true;
    w->told.told_batch = writer->batch;
    snprintf(w->told.name, sizeof w->told.name, "%s", writer->name);
    if (writer->chain.size == HF_DIGEST_SIZE)
        memcpy(w->told.told_chain, writer->chain.data, HF_DIGEST_SIZE);
    return true;
}

/* ---- Batches ---- */

static void batch_begin(struct postgres *r, struct writing *w, uint64_t batch, hf_time now,
                        uint64_t number)
{
    unsigned char bytes[8];
    w->open = true;
    w->number_fits = batch == w->told.batch + 1;
    w->told.batch = batch;
    w->sequence = ++r->sequence;
    w->first = number;
    w->length = w->count = 0;
    w->now = now;
    hf_put64(bytes, batch);
    hf_sha256_init(&w->sha);
    hf_sha256_add(&w->sha, w->told.chain, HF_DIGEST_SIZE);
    hf_sha256_add(&w->sha, bytes, sizeof bytes);
}

static void batch_add(struct writing *w, uint64_t number, struct hf_bytes entry)
{
    unsigned char bytes[8];
    hf_put64(bytes, number);
    hf_sha256_add(&w->sha, bytes, sizeof bytes);
    hf_sha256_add(&w->sha, entry.data, entry.size);
    w->length += (uint32_t)entry.size;
    w->count++;
    w->told.entries++;
}

static enum hf_audit_step batch_end(struct writing *w, struct hf_audit_batch *out)
{
    *out =
        (struct hf_audit_batch){ .sequence = w->sequence,
                                 .position = w->first,
                                 .length = w->length,
                                 .entry_count = w->count,
                                 .now = w->now,
                                 .previous_now = w->previous_now,
                                 .bytes = hf_mem("", 0),
                                 .chain_fits = true, /* the chain is compared at HF_AUDIT_WRITER */
                                 .now_fits = w->now >= w->previous_now,
                                 .head_fits = true,
                                 .padding_fits = true,
                                 .single = true,
                                 .writer = w->told.id,
                                 .writer_batch = w->told.batch,
                                 .number_fits = w->number_fits };
    memcpy(out->chain, w->told.chain, HF_DIGEST_SIZE);
    hf_sha256_end(&w->sha, w->told.chain);
    memcpy(out->hash, w->told.chain, HF_DIGEST_SIZE);
    w->open = false;
    w->previous_now = w->now > w->previous_now ? w->now : w->previous_now;
    return HF_AUDIT_WHOLE;
}

/* ---- Entries ---- */

/* The time inside the entry; the column `at` may have been changed. */
static hf_time entry_time(const struct hf_pg_scan_entry *e)
{
    const unsigned char *p = e->entry.data;
    return e->entry.size >= 24 ? (hf_time)hf_get64(p + 16) : e->at;
}

/* A row of the journal. If it begins a new batch of its writer, the previous batch is returned
 * first, and the row is read again. */
static enum hf_audit_step row_take(struct postgres *r, const struct hf_pg_scan_entry *e,
                                   struct hf_audit_batch *out, struct hf_error *why)
{
    struct writing *w = writer_of(r, e->writer);
    if (!w) {
        fail_memory(why);
        return HF_AUDIT_FAILED;
    }
    if (e->writer != 0 && w->open && w->told.batch != e->batch) {
        hf_pg_scan_entry_again(r->scan);
        return batch_end(w, out);
    }
    if (e->writer == 0)
        w->told.entries++;
    else if (!w->open)
        batch_begin(r, w, e->batch, entry_time(e), e->number);
    if (e->writer != 0)
        batch_add(w, e->number, e->entry);
    r->beside = (struct hf_audit_fields){ .table = HF_AUDIT_STORED_BESIDE };
    fields_fill(&e->beside, &r->beside);
    *out = (struct hf_audit_batch){ .sequence = e->writer ? w->sequence : 0,
                                    .position = e->number,
                                    .length = (uint32_t)e->entry.size,
                                    .entry_count = 1,
                                    .now = e->writer ? w->now : entry_time(e),
                                    .previous_now = w->previous_now,
                                    .bytes = e->entry,
                                    .chain_fits = true,
                                    .now_fits = true,
                                    .head_fits = true,
                                    .padding_fits = true,
                                    .single = true,
                                    .writer = e->writer,
                                    .writer_batch = e->batch,
                                    .number_fits = true,
                                    .beside = &r->beside };
    r->reader.journal.end = e->number;
    return HF_AUDIT_PART;
}

static enum hf_audit_step postgres_next(struct hf_audit_reader *reader, struct hf_audit_batch *out,
                                        struct hf_error *why)
{
    struct postgres *r = (struct postgres *)reader;
    if (r->broken)
        return step_failed(r, why);
    if (r->phase == ENTRIES) {
        struct hf_pg_scan_entry e;
        enum hf_pg_scan_step step = hf_pg_scan_entry(r->scan, &e);
        if (step != HF_PG_SCAN_END)
            return step == HF_PG_SCAN_ROW ? row_take(r, &e, out, why) : step_failed(r, why);
        r->phase = BATCHES;
    }
    if (r->phase == BATCHES) {
        for (; r->at < r->writer_count; r->at++)
            if (r->writers[r->at].open)
                return batch_end(&r->writers[r->at], out);
        r->phase = WRITERS;
        r->at = 0;
    }
    if (r->phase == WRITERS && r->at < r->writer_count) {
        reader->writer = r->writers[r->at++].told;
        return HF_AUDIT_WRITER;
    }
    if (r->phase == WRITERS) {
        r->phase = TABLES;
        r->at = 0;
    }
    return HF_AUDIT_END;
}

static bool postgres_entry(struct hf_audit_reader *reader, uint64_t position,
                           struct hf_audit_entry *entry)
{
    struct postgres *r = (struct postgres *)reader;
    struct hf_bytes bytes;
    if (!hf_pg_scan_entry_at(r->scan, position, &bytes)) {
        r->broken = true;
        return false;
    }
    if (bytes.size == 0 || hf_audit_entry_read(bytes, entry) != NULL)
        return false;
    entry->position = position;
    return true;
}

/* ---- Opening and closing ---- */

/* Read the store's own row, the time, the newest number and the writers. */
static enum hf_status store_read(struct postgres *r, struct hf_error *why)
{
    struct hf_audit_journal *j = &r->reader.journal;
    struct hf_pg_scan_store store;
    enum hf_status st = hf_pg_scan_store(r->scan, &store, why);
    if (st != HF_OK)
        return st;
    memcpy(j->store_id, store.store_id, sizeof j->store_id);
    memcpy(j->database_key, store.id_key, sizeof j->database_key);
    j->keys_known = store.has_key;
    j->as_of = store.as_of;
    j->bytes_total = store.newest;
    if (!hf_pg_scan_writers(r->scan, writer_add, r))
        return hf_pg_scan_failed(r->scan, why);
    return r->no_memory ? fail_memory(why) : HF_OK;
}
_Static_assert(HF_AUDIT_ID_KEY == HF_PG_SCAN_ID_KEY, "the key of a database has one size");

static void postgres_close(struct hf_audit_reader *reader)
{
    struct postgres *r = (struct postgres *)reader;
    hf_pg_scan_close(r->scan);
    free(r->writers);
    free(r);
}

enum hf_status hf_audit_reader_connect(const char *conninfo, uint32_t timeline,
                                       struct hf_audit_reader **reader, struct hf_error *why)
{
    static const struct hf_audit_source source = { postgres_next, postgres_entry, postgres_stored,
                                                   postgres_close };
    struct postgres *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return fail_memory(why);
    r->reader.source = &source;
    r->reader.journal.database = true;
    *why = (struct hf_error){ HF_OK, "" };
    enum hf_status st = hf_conninfo_check(conninfo, why);
    if (st == HF_OK) {
        hf_conninfo_show(conninfo, r->reader.journal.where, sizeof r->reader.journal.where);
        st = hf_pg_scan_open(conninfo, r->reader.journal.where, timeline, &r->scan, why);
    }
    if (st == HF_OK)
        st = store_read(r, why);
    if (st == HF_OK)
        *reader = &r->reader;
    else
        postgres_close(&r->reader);
    return st;
}

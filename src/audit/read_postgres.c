/* The records of a store in a database: the table holdfast.journal, entry by entry.
 *
 * Everything is read in one transaction that sees the database as it was when it began. Entries come in the order of their
 * numbers; batches of several writers may lie among each other, so each writer's chain is followed by itself:
 *
 *   chain = SHA-256(chain before, number of the batch, then for each entry: its number, its bytes)
 *
 * with SHA-256(store id, writer) before the first, and numbers as 8 bytes (the writer as 4), the lowest first. */
#include "audit/postgres.h"

#include "base/bytes.h"
#include "base/error.h"
#include "store/postgres/conninfo.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Errors ---- */

/* What a database says may be anything: what a terminal would act on is not shown. */
static void make_harmless(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* Its first line, without the word that it begins with. */
static void message_copy(const struct hf_audit_postgres *r, char *out, size_t room)
{
    const char *text = r->pg ? PQerrorMessage(r->pg) : "";
    if (strncmp(text, "ERROR:  ", 8) == 0 || strncmp(text, "FATAL:  ", 8) == 0)
        text += 8;
    snprintf(out, room, "%.*s", (int)strcspn(text, "\n"), text);
    hf_conninfo_hide(r->conninfo, out, room);
    make_harmless(out);
    if (out[0] == '\0')
        snprintf(out, room, "the rows are not of the types that Holdfast's tables have");
}

enum hf_status hf_audit_postgres_fail(const struct hf_audit_postgres *r, struct hf_error *why)
{
    char told[200];
    message_copy(r, told, sizeof told);
    bool rights = strncmp(told, "permission denied", 17) == 0;
    return hf_error_set(why, HF_STORAGE_FAILURE, "The records in %s cannot be read: %s%s.",
                        r->reader.journal.where, told,
                        rights ? "; an auditor's role may (doc/POSTGRES.md, Roles)" : "");
}

static enum hf_status fail_memory(struct hf_error *why)
{
    *why = (struct hf_error){ HF_NO_MEMORY, "There is not enough memory to read the journal." };
    return why->status;
}

static enum hf_audit_step step_failed(const struct hf_audit_postgres *r, struct hf_error *why)
{
    hf_audit_postgres_fail(r, why);
    return HF_AUDIT_FAILED;
}

/* ---- Writers ---- */

/* The chain before a writer's first batch. */
static void chain_begin(const struct hf_audit_postgres *r, uint32_t id, uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_sha256 sha;
    unsigned char number[4];
    hf_put32(number, id);
    hf_sha256_init(&sha);
    hf_sha256_add(&sha, r->reader.journal.store_id, sizeof r->reader.journal.store_id);
    hf_sha256_add(&sha, number, sizeof number);
    hf_sha256_end(&sha, out);
}

/* The writer with this id; one that the table does not have is added. NULL without memory. */
static struct hf_audit_writing *writer_of(struct hf_audit_postgres *r, uint32_t id)
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
    struct hf_audit_writing *more = realloc(r->writers, (r->writer_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    r->writers = more;
    memmove(&more[low + 1], &more[low], (r->writer_count - low) * sizeof *more);
    r->writer_count++;
    more[low] = (struct hf_audit_writing){ .told = { .id = id }, .previous_now = INT64_MIN };
    chain_begin(r, id, more[low].told.chain);
    return &more[low];
}

static bool writers_read(struct hf_audit_postgres *r, struct hf_error *why)
{
    PGresult *result = PQexecParams(r->pg, "SELECT id, name, batch, chain FROM holdfast.writer ORDER BY id",
                                    0, NULL, NULL, NULL, NULL, 1);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (!done)
        hf_audit_postgres_fail(r, why);
    for (int i = 0; done && i < PQntuples(result); i++) {
        struct hf_audit_writing *w = writer_of(r, (uint32_t)hf_audit_get_number(result, i, 0));
        struct hf_bytes chain = hf_audit_get_bytes(result, i, 3);
        done = w != NULL;
        if (!done) {
            fail_memory(why);
            break;
        }
        w->told.known = true;
        w->told.told_batch = (uint64_t)hf_audit_get_number(result, i, 2);
        snprintf(w->told.name, sizeof w->told.name, "%s", PQgetvalue(result, i, 1));
        make_harmless(w->told.name);
        if (chain.size == HF_DIGEST_SIZE)
            memcpy(w->told.told_chain, chain.data, HF_DIGEST_SIZE);
    }
    PQclear(result);
    return done;
}

/* ---- Batches ---- */

static void batch_begin(struct hf_audit_postgres *r, struct hf_audit_writing *w, uint64_t batch, hf_time now,
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

static void batch_add(struct hf_audit_writing *w, uint64_t number, struct hf_bytes entry)
{
    unsigned char bytes[8];
    hf_put64(bytes, number);
    hf_sha256_add(&w->sha, bytes, sizeof bytes);
    hf_sha256_add(&w->sha, entry.data, entry.size);
    w->length += (uint32_t)entry.size;
    w->count++;
    w->told.entries++;
}

static enum hf_audit_step batch_end(struct hf_audit_writing *w, struct hf_audit_batch *out)
{
    *out = (struct hf_audit_batch){ .sequence = w->sequence,
                                    .position = w->first,
                                    .length = w->length,
                                    .entry_count = w->count,
                                    .now = w->now,
                                    .previous_now = w->previous_now,
                                    .bytes = hf_mem("", 0),
                                    .chain_fits = true, /* the last batch tells: see HF_AUDIT_WRITER */
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

enum { COLUMN_NUMBER, COLUMN_WRITER, COLUMN_BATCH, COLUMN_ENTRY, COLUMN_BESIDE };
#define JOURNAL                                                                                            \
    "SELECT number, writer, batch, entry, at, tenant, action, status, key FROM holdfast.journal ORDER BY " \
    "number"

/* When the entry says that it was decided; that of the column beside it may have been changed. */
static hf_time entry_time(const struct hf_audit_postgres *r, struct hf_bytes entry)
{
    const unsigned char *p = entry.data;
    return entry.size >= 24 ? (hf_time)hf_get64(p + 16)
                            : hf_audit_get_time(r->journal.page, r->journal.row - 1, COLUMN_BESIDE);
}

/* The row that the cursor stands at. A batch that it shows to be whole comes first, and the row stays. */
static enum hf_audit_step row_take(struct hf_audit_postgres *r, struct hf_audit_batch *out,
                                   struct hf_error *why)
{
    const PGresult *page = r->journal.page;
    int row = r->journal.row - 1;
    uint64_t number = (uint64_t)hf_audit_get_number(page, row, COLUMN_NUMBER);
    uint64_t batch = (uint64_t)hf_audit_get_number(page, row, COLUMN_BATCH);
    uint32_t id = (uint32_t)hf_audit_get_number(page, row, COLUMN_WRITER);
    struct hf_bytes entry = hf_audit_get_bytes(page, row, COLUMN_ENTRY);
    struct hf_audit_writing *w = writer_of(r, id);
    if (!w) {
        fail_memory(why);
        return HF_AUDIT_FAILED;
    }
    if (id != 0 && w->open && w->told.batch != batch) {
        r->journal.row--;
        return batch_end(w, out);
    }
    if (id == 0)
        w->told.entries++;
    else if (!w->open)
        batch_begin(r, w, batch, entry_time(r, entry), number);
    if (id != 0)
        batch_add(w, number, entry);
    r->beside = (struct hf_audit_fields){ .table = HF_AUDIT_STORED_BESIDE };
    if (!hf_audit_row_fields(page, row, COLUMN_BESIDE, r->digits, &r->beside))
        return step_failed(r, why);
    *out = (struct hf_audit_batch){ .sequence = id ? w->sequence : 0,
                                    .position = number,
                                    .length = (uint32_t)entry.size,
                                    .entry_count = 1,
                                    .now = id ? w->now : entry_time(r, entry),
                                    .previous_now = w->previous_now,
                                    .bytes = entry,
                                    .chain_fits = true,
                                    .now_fits = true,
                                    .head_fits = true,
                                    .padding_fits = true,
                                    .single = true,
                                    .writer = id,
                                    .writer_batch = batch,
                                    .number_fits = true,
                                    .beside = &r->beside };
    r->reader.journal.end = number;
    return HF_AUDIT_PART;
}

static enum hf_audit_step postgres_next(struct hf_audit_reader *reader, struct hf_audit_batch *out,
                                        struct hf_error *why)
{
    struct hf_audit_postgres *r = (struct hf_audit_postgres *)reader;
    if (r->broken)
        return step_failed(r, why);
    if (r->phase == HF_AUDIT_PHASE_ENTRIES) {
        int got = hf_audit_cursor_next(r, &r->journal);
        if (got != 0)
            return got > 0 ? row_take(r, out, why) : step_failed(r, why);
        hf_audit_cursor_close(r, &r->journal);
        r->phase = HF_AUDIT_PHASE_BATCHES;
    }
    if (r->phase == HF_AUDIT_PHASE_BATCHES) {
        for (; r->at < r->writer_count; r->at++)
            if (r->writers[r->at].open)
                return batch_end(&r->writers[r->at], out);
        r->phase = HF_AUDIT_PHASE_WRITERS;
        r->at = 0;
    }
    if (r->phase == HF_AUDIT_PHASE_WRITERS && r->at < r->writer_count) {
        reader->writer = r->writers[r->at++].told;
        return HF_AUDIT_WRITER;
    }
    if (r->phase == HF_AUDIT_PHASE_WRITERS) {
        r->phase = HF_AUDIT_PHASE_TABLES;
        r->at = 0;
    }
    return HF_AUDIT_END;
}

static bool postgres_entry(struct hf_audit_reader *reader, uint64_t position, struct hf_audit_entry *entry)
{
    struct hf_audit_postgres *r = (struct hf_audit_postgres *)reader;
    char number[24];
    const char *params[] = { number };
    snprintf(number, sizeof number, "%lld", (long long)position); /* by hand it may be below 0 */
    PQclear(r->side);
    r->side = PQexecParams(r->pg, "SELECT entry FROM holdfast.journal WHERE number = $1::bigint", 1, NULL,
                           params, NULL, NULL, 1);
    if (PQresultStatus(r->side) != PGRES_TUPLES_OK) {
        r->broken = true;
        return false;
    }
    if (PQntuples(r->side) != 1 || hf_audit_entry_read(hf_audit_get_bytes(r->side, 0, 0), entry) != NULL)
        return false;
    entry->position = position;
    return true;
}

/* ---- Opening and closing ---- */

static enum hf_status connect_to(struct hf_audit_postgres *r, struct hf_error *why)
{
    /* A database that falls silent must not be waited for for ever. What the connection string says stands behind, and
     * wins. */
    const char *const keywords[] = { "connect_timeout",
                                     "keepalives_idle",
                                     "keepalives_interval",
                                     "tcp_user_timeout",
                                     "fallback_application_name",
                                     "dbname",
                                     NULL };
    const char *const values[] = { "10", "30", "10", "60000", "holdfast audit", r->conninfo, NULL };
    char told[240];
    r->pg = PQconnectdbParams(keywords, values, 1);
    if (!r->pg)
        return fail_memory(why);
    if (PQstatus(r->pg) == CONNECTION_OK && PQsetClientEncoding(r->pg, "UTF8") == 0)
        return HF_OK;
    message_copy(r, told, sizeof told);
    return hf_error_set(why, HF_STORAGE_FAILURE, "There is no connection to %s: %s.", r->reader.journal.where,
                        told);
}

static bool run(struct hf_audit_postgres *r, const char *sql)
{
    PGresult *result = PQexec(r->pg, sql);
    bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return done;
}

/* A number that the database answers with. False: hf_audit_postgres_fail tells why. */
static bool ask(struct hf_audit_postgres *r, const char *sql, int *answer)
{
    PGresult *result = PQexec(r->pg, sql);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    *answer = asked ? atoi(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    return asked;
}

/* Is there a store at all, and do we know its tables? */
static enum hf_status store_find(struct hf_audit_postgres *r, struct hf_error *why)
{
    int there = 0, version = 0;
    if (!ask(r, "SELECT (to_regclass('holdfast.journal') IS NOT NULL)::integer", &there) ||
        (there && !ask(r, "SELECT max(version) FROM holdfast.migration", &version)))
        return hf_audit_postgres_fail(r, why);
    if (there && version <= HF_AUDIT_SCHEMA)
        return HF_OK;
    if (there) {
        return hf_error_set(
            why, HF_STORE_NEWER,
            "The schema holdfast in %s has version %d; this program (%s) knows version %d. Use a newer "
            "holdfast.",
            r->reader.journal.where, version, HF_VERSION, HF_AUDIT_SCHEMA);
    }
    return hf_error_set(why, HF_STORE_ABSENT,
                        "No Holdfast store is in %s: there is no table holdfast.journal.",
                        r->reader.journal.where);
}

/* The secret in the ids of holds, which is not for every auditor: without it, ids are known by the records alone. */
static bool key_read(struct hf_audit_postgres *r)
{
    struct hf_audit_journal *j = &r->reader.journal;
    int may = 0;
    if (!ask(r, "SELECT has_column_privilege('holdfast.store', 'id_key', 'SELECT')::integer", &may))
        return false;
    if (!may)
        return true;
    PGresult *result = PQexecParams(r->pg, "SELECT id_key FROM holdfast.store", 0, NULL, NULL, NULL, NULL, 1);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK;
    struct hf_bytes key = asked && PQntuples(result) == 1 ? hf_audit_get_bytes(result, 0, 0) : hf_mem("", 0);
    j->keys_known = key.size == sizeof j->database_key;
    if (j->keys_known)
        memcpy(j->database_key, key.data, key.size);
    PQclear(result);
    return asked;
}

/* The store's own row, the time, and how far the journal goes. */
static enum hf_status store_read(struct hf_audit_postgres *r, struct hf_error *why)
{
    struct hf_audit_journal *j = &r->reader.journal;
    if (!key_read(r))
        return hf_audit_postgres_fail(r, why);
    PGresult *result = PQexecParams(r->pg,
                                    "SELECT store_id, date_trunc('milliseconds', now()), "
                                    "(SELECT max(number) FROM holdfast.journal) FROM holdfast.store",
                                    0, NULL, NULL, NULL, NULL, 1);
    bool asked = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (asked && PQntuples(result) == 1) {
        struct hf_bytes id = hf_audit_get_bytes(result, 0, 0);
        if (id.size == sizeof j->store_id)
            memcpy(j->store_id, id.data, id.size);
        j->as_of = hf_audit_get_time(result, 0, 1);
        j->bytes_total = (uint64_t)hf_audit_get_number(result, 0, 2);
    } else if (asked) {
        (void)hf_error_set(
            why, HF_STORE_DAMAGED,
            "The store in %s has lost its row in holdfast.store, and with it its id and its keys.", j->where);
    } else {
        hf_audit_postgres_fail(r, why);
    }
    PQclear(result);
    return why->status;
}

/* Is it the primary that the reader knows? One that was replaced by its standby, and came back, has what nobody else has. */
static enum hf_status timeline_is(struct hf_audit_postgres *r, uint32_t timeline, struct hf_error *why)
{
    int is = 0;
    if (timeline == 0)
        return HF_OK;
    if (!ask(r, "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint", &is))
        return hf_audit_postgres_fail(r, why);
    if ((uint32_t)is == timeline)
        return HF_OK;
    return hf_error_set(
        why, HF_STORAGE_FAILURE,
        "The database is on timeline %d, and the server on timeline %u: a standby was promoted, and one of "
        "them must not be used any more.",
        is, (unsigned)timeline);
}

static enum hf_status database_open(struct hf_audit_postgres *r, uint32_t timeline, struct hf_error *why)
{
    enum hf_status st = connect_to(r, why);
    if (st != HF_OK)
        return st;
    if (!run(r, "SET search_path = pg_catalog") || !run(r, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        return hf_audit_postgres_fail(r, why);
    st = timeline_is(r, timeline, why);
    if (st == HF_OK)
        st = store_find(r, why);
    if (st == HF_OK)
        st = store_read(r, why);
    if (st == HF_OK && !writers_read(r, why))
        st = why->status;
    if (st == HF_OK && !hf_audit_cursor_open(r, &r->journal, "holdfast_audit", JOURNAL))
        st = hf_audit_postgres_fail(r, why);
    return st;
}

static void postgres_close(struct hf_audit_reader *reader)
{
    struct hf_audit_postgres *r = (struct hf_audit_postgres *)reader;
    PQclear(r->journal.page);
    PQclear(r->table.page);
    PQclear(r->side);
    PQfinish(r->pg);
    free(r->writers);
    free(r->conninfo);
    free(r);
}

enum hf_status hf_audit_reader_connect(const char *conninfo, uint32_t timeline,
                                       struct hf_audit_reader **reader, struct hf_error *why)
{
    static const struct hf_audit_source source = { postgres_next, postgres_entry, hf_audit_postgres_stored,
                                                   postgres_close };
    struct hf_audit_postgres *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (r)
        r->conninfo = malloc(strlen(conninfo) + 1);
    if (!r || !r->conninfo) {
        free(r);
        return fail_memory(why);
    }
    memcpy(r->conninfo, conninfo, strlen(conninfo) + 1);
    r->reader.source = &source;
    r->reader.journal.database = true;
    *why = (struct hf_error){ HF_OK, "" };
    enum hf_status st = hf_conninfo_check(conninfo, why);
    if (st == HF_OK) {
        hf_conninfo_show(conninfo, r->reader.journal.where, sizeof r->reader.journal.where);
        st = database_open(r, timeline, why);
    }
    if (st == HF_OK)
        *reader = &r->reader;
    else
        postgres_close(&r->reader);
    return st;
}

#include "store/postgres/session.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How long one round trip may take, including waits for locks and for a standby. */
enum { PATIENCE_MS = 15000 };

bool hf_pg_session_init(struct hf_pg_session *s, struct hf_pg_shared *shared)
{
    memset(s, 0, sizeof *s);
    s->shared = shared;
    s->conn.patience_ms = PATIENCE_MS;
    hf_pg_set_init(&s->set, shared->id_key);
    s->plan = malloc(sizeof *s->plan);
    if (!s->plan)
        return false;
    s->plan->scratch = malloc(HF_PLAN_SCRATCH);
    return s->plan->scratch != NULL;
}

void hf_pg_session_free(struct hf_pg_session *s)
{
    hf_pg_disconnect(&s->conn);
    hf_pg_set_free(&s->set);
    if (s->plan)
        free(s->plan->scratch);
    free(s->plan);
    for (int i = 0; i < HF_PG_PARAMS_MAX; i++)
        hf_buffer_free(&s->params[i]);
    memset(s, 0, sizeof *s);
}

/* A former primary that came back after its standby was promoted lacks everything confirmed
 * since. */
static bool timeline_is_good(struct hf_pg_session *s)
{
    uint32_t seen = atomic_load(&s->shared->timeline);
    while (s->conn.timeline > seen &&
           !atomic_compare_exchange_weak(&s->shared->timeline, &seen, s->conn.timeline))
        ;
    if (s->conn.timeline == 0 || s->conn.timeline >= seen)
        return true;
    snprintf(s->conn.why, sizeof s->conn.why,
             "this is an old primary (timeline %" PRIu32 ", and timeline %" PRIu32
             " is known): a standby was promoted, and nothing may be written to "
             "this one",
             s->conn.timeline, seen);
    return false;
}

/* A session that was idle while its primary was replaced still has its connection. */
bool hf_pg_session_is_newest(struct hf_pg_session *s)
{
    if (!s->conn.pg || timeline_is_good(s))
        return true;
    hf_pg_disconnect(&s->conn);
    s->conn.state[0] = '\0';
    return false;
}

/* The connection string may now lead to another database, or the schema may hold another store.
 * Ids, chains, and the knowledge about guards and standbys belong to the store that was opened. */
static enum hf_pg_outcome store_is_same(struct hf_pg_session *s)
{
    PGresult *result;
    enum hf_pg_outcome outcome =
        hf_pg_ask(&s->conn, "SELECT store_id FROM holdfast.store", 0, NULL, true, &result);
    if (outcome != HF_PG_FINE)
        return outcome;
    struct hf_bytes id = PQntuples(result) == 1 ? hf_pg_get_bytes(result, 0, 0) : hf_mem(NULL, 0);
    bool same = hf_bytes_equal(id, hf_mem(s->shared->store_id, sizeof s->shared->store_id));
    PQclear(result);
    if (same)
        return HF_PG_FINE;
    snprintf(s->conn.why, sizeof s->conn.why,
             "this is not the store that was opened: the connection string leads to "
             "another database, or the schema was created again");
    return HF_PG_REFUSED;
}

static void chain_begin(struct hf_pg_session *s)
{
    unsigned char first[20];
    memcpy(first, s->shared->store_id, 16);
    hf_put32(first + 16, (uint32_t)s->writer);
    hf_sha256_of(first, sizeof first, s->chain);
}

static enum hf_pg_outcome writer_make(struct hf_pg_session *s)
{
    char id[16], chain[3 + 2 * HF_DIGEST_SIZE] = "\\x";
    PGresult *result;
    enum hf_pg_outcome outcome =
        hf_pg_ask(&s->conn, "SELECT nextval('holdfast.writer_id')", 0, NULL, false, &result);
    if (outcome != HF_PG_FINE)
        return outcome;
    s->writer = atoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    chain_begin(s);
    for (int i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(chain + 2 + 2 * i, 3, "%02x", s->chain[i]);
    snprintf(id, sizeof id, "%" PRId32, s->writer);
    const char *const params[] = { id, s->shared->name, chain };
    /* The first batch's commit comes after it in the log, so no standby needs it earlier. */
    outcome = hf_pg_ask(&s->conn,
                        "WITH alone AS (SELECT set_config('synchronous_commit', 'local', true)) "
                        "INSERT INTO holdfast.writer (id, name, chain, started_at) SELECT "
                        "$1::integer, $2, $3::bytea, clock_timestamp() FROM alone RETURNING "
                        "(extract(epoch FROM started_at) * 1000000)::bigint",
                        3, params, true, &result);
    if (outcome == HF_PG_FINE)
        s->registered_at = hf_pg_get_int8(result, 0, 0);
    else
        s->writer = 0; /* the row may exist; then it stays unused */
    PQclear(result);
    s->generation = 1;
    s->batch = 0;
    s->resumed = outcome == HF_PG_FINE;
    return outcome;
}

/* Does the writer's row have the last known batch, or the next one, whose outcome was unknown?
 * result: the row, with the batch in this column. *gone: out, the row is missing and no batch of it
 * was known to be committed. */
static bool row_is_known(struct hf_pg_session *s, const PGresult *result, int column, bool *gone)
{
    /* The row was lost with a primary that failed before a standby had it; so was the batch with
     * the unknown outcome, if any. The new primary may have given the row's number to another
     * session: that row is not ours. */
    *gone = PQntuples(result) == 0 && s->batch == 0;
    int64_t batch = PQntuples(result) == 1 ? hf_pg_get_int8(result, 0, column) : -1;
    if (*gone || batch == s->batch || batch == s->batch + 1)
        return true;
    snprintf(s->conn.why, sizeof s->conn.why,
             "the database has lost confirmed commits (batch %" PRId64 " of writer %" PRId32
             " was confirmed, but the database has batch %" PRId64
             "): it is an old primary, or a restored backup",
             s->batch, s->writer, batch);
    return false;
}

/* The identity of the session's row, as parameters. */
struct row_key {
    char id[16], registered_at[24];
    const char *params[3];
};

static void row_key_make(const struct hf_pg_session *s, struct row_key *key)
{
    snprintf(key->id, sizeof key->id, "%" PRId32, s->writer);
    snprintf(key->registered_at, sizeof key->registered_at, "%" PRId64, s->registered_at);
    key->params[0] = key->id;
    key->params[1] = s->shared->name;
    key->params[2] = key->registered_at;
}

#define ITS_ROW \
    "WHERE id = $1 AND name = $2 AND (extract(epoch FROM started_at) * 1000000)::bigint = $3"

/* Does this database have what this session has written? */
static enum hf_pg_outcome writer_look(struct hf_pg_session *s)
{
    struct row_key key;
    PGresult *result;
    bool gone = false;
    row_key_make(s, &key);
    enum hf_pg_outcome outcome = hf_pg_ask(&s->conn, "SELECT batch FROM holdfast.writer " ITS_ROW,
                                           3, key.params, true, &result);
    if (outcome == HF_PG_FINE && !row_is_known(s, result, 0, &gone))
        outcome = HF_PG_REFUSED;
    if (gone)
        s->writer = 0;
    PQclear(result);
    return outcome;
}

static enum hf_pg_outcome writer_resume(struct hf_pg_session *s, bool *committed)
{
    struct row_key key;
    PGresult *result;
    bool gone = false;
    row_key_make(s, &key);
    s->conn.warned = false;
    enum hf_pg_outcome outcome =
        hf_pg_ask(&s->conn,
                  "UPDATE holdfast.writer SET generation = generation + 1 " ITS_ROW
                  " RETURNING generation, batch, chain",
                  3, key.params, true, &result);
    /* The old connection may still be committing: until then the outcome is open. It is open too
     * while a standby does not have it. */
    if (outcome == HF_PG_BUSY || (outcome == HF_PG_FINE && s->conn.warned))
        outcome = HF_PG_LOST;
    /* An old primary cannot tell the outcome of the batch. */
    if (outcome == HF_PG_FINE && (!timeline_is_good(s) || !row_is_known(s, result, 1, &gone)))
        outcome = HF_PG_REFUSED;
    if (gone)
        s->writer = 0;
    if (outcome != HF_PG_FINE || gone) {
        PQclear(result);
        return outcome;
    }
    int64_t batch = hf_pg_get_int8(result, 0, 1);
    if (committed)
        *committed = batch == s->batch + 1;
    s->generation = hf_pg_get_int8(result, 0, 0);
    s->batch = batch;
    s->resumed = true;
    struct hf_bytes chain = hf_pg_get_bytes(result, 0, 2);
    if (chain.size == HF_DIGEST_SIZE)
        memcpy(s->chain, chain.data, HF_DIGEST_SIZE);
    PQclear(result);
    return HF_PG_FINE;
}

static enum hf_pg_outcome connect_once(struct hf_pg_session *s, bool writes, bool *committed)
{
    s->horizon = (struct hf_pg_horizon){ .ended = 0 };
    s->resumed = false;
    enum hf_pg_outcome outcome = hf_pg_connect(&s->conn, s->shared->conninfo, writes);
    if (outcome == HF_PG_FINE && !timeline_is_good(s))
        outcome = HF_PG_REFUSED;
    if (outcome == HF_PG_FINE)
        outcome = store_is_same(s);
    if (outcome == HF_PG_FINE && writes && s->writer)
        outcome = committed ? writer_resume(s, committed) : writer_look(s);
    if (outcome != HF_PG_FINE)
        hf_pg_disconnect(&s->conn);
    return outcome;
}

/* libpq accepts the first host that can be written to, which may be an old primary: then try the
 * other hosts first. */
static enum hf_pg_outcome connect_any(struct hf_pg_session *s, bool writes, bool *committed)
{
    int hosts = hf_pg_hosts(s->shared->conninfo);
    enum hf_pg_outcome outcome = HF_PG_LOST;
    for (int i = 0; i < hosts; i++) {
        outcome = connect_once(s, writes, committed);
        if (outcome != HF_PG_REFUSED)
            break;
        s->conn.first_host = (s->conn.first_host + 1) % hosts;
    }
    return outcome;
}

enum hf_pg_outcome hf_pg_session_connect(struct hf_pg_session *s, bool *committed)
{
    if (committed)
        *committed = false;
    return connect_any(s, true, committed);
}

enum hf_pg_outcome hf_pg_session_register(struct hf_pg_session *s)
{
    if (s->writer && !s->resumed) {
        enum hf_pg_outcome outcome = writer_resume(s, NULL);
        if (outcome != HF_PG_FINE) {
            hf_pg_disconnect(&s->conn);
            return outcome;
        }
    }
    return s->writer ? HF_PG_FINE : writer_make(s);
}

enum hf_pg_outcome hf_pg_session_read(struct hf_pg_session *s)
{
    return connect_any(s, false, NULL);
}

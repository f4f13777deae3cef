#include "store/postgres/migrate.h"

#include "base/error.h"
#include "store/io.h"

#include <stdio.h>
#include <stdlib.h>

static enum hf_status fault(struct hf_error *why, enum hf_status status, const char *sentence)
{
    return hf_error_set(why, status, "%s", sentence);
}

/* To create or change the schema, the role needs the right to do so; to use it, the role needs the
 * grants of roles.sql. */
enum need { MAKING, USING };

static enum hf_status failed(const struct hf_pg_conn *conn, struct hf_error *why, const char *doing,
                             enum need need)
{
    static const char *const advice[] = {
        [MAKING] = ". Start the server once with a role that has the rights, or grant "
                   "them to this role (doc/POSTGRES.md, Roles)",
        [USING] = ". Run roles.sql, then grant holdfast_server to this role "
                  "(doc/POSTGRES.md, Roles)",
    };
    bool rights = strcmp(conn->state, "42501") == 0;
    return hf_error_set(why, HF_STORAGE_FAILURE, "%.120s: %.260s%s", doing, conn->why,
                        rights ? advice[need] : "");
}

/* The newest migration that was applied; 0: there is no schema. */
static enum hf_status version_read(struct hf_pg_conn *conn, int *version, struct hf_error *why)
{
    PGresult *result;
    *version = 0;
    /* Not to_regclass: it may use what this session cached before it waited for the lock. */
    if (hf_pg_ask(conn,
                  "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = "
                  "c.relnamespace WHERE n.nspname = 'holdfast' AND c.relname = 'migration')",
                  0, NULL, false, &result) != HF_PG_FINE)
        return failed(conn, why, "cannot read the list of tables", USING);
    bool there = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    if (!there)
        return HF_OK;
    if (hf_pg_ask(conn, "SELECT coalesce(max(version), 0) FROM holdfast.migration", 0, NULL, false,
                  &result) != HF_PG_FINE)
        return failed(conn, why, "cannot read the schema holdfast", USING);
    *version = atoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    return HF_OK;
}

static void hex(const uint8_t *bytes, size_t size, char *out)
{
    out[0] = '\\';
    out[1] = 'x';
    for (size_t i = 0; i < size; i++)
        snprintf(out + 2 + 2 * i, 3, "%02x", bytes[i]);
}

/* Insert the one row of holdfast.store, with the settings of a new store. */
static enum hf_status store_make(struct hf_pg_conn *conn, const struct hf_options *options,
                                 struct hf_error *why)
{
    uint8_t secret[16 + HF_PG_ID_KEY];
    char id[3 + 2 * 16], key[3 + 2 * HF_PG_ID_KEY], window[24], length[16];
    const struct hf_io *io = options->io ? options->io : hf_io_os();
    if (io->random(io->ctx, secret, sizeof secret) != 0)
        return fault(why, HF_STORAGE_FAILURE, "cannot get random bytes for a new store");
    hex(secret, 16, id);
    hex(secret + 16, HF_PG_ID_KEY, key);
    snprintf(window, sizeof window, "%lld",
             options->idempotency_window_ms ? (long long)options->idempotency_window_ms
                                            : 86400000LL);
    snprintf(length, sizeof length, "%u",
             options->token_max_length ? options->token_max_length : 256);
    const char *const params[] = {
        id,
        key,
        window,
        length,
        options->registry == HF_REGISTRY_STRICT ? "t" : "f",
        HF_DIGEST_NAME,
        "none"
    }; /* until the first writer has recorded it in the journal */
    if (hf_pg_ask(conn,
                  "INSERT INTO holdfast.store (store_id, id_key, idempotency_window_ms, "
                  "token_max_length, registry_strict, digest_name, program) VALUES ($1::bytea, "
                  "$2::bytea, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                  7, params, false, NULL) != HF_PG_FINE)
        return failed(conn, why, "cannot create a new store", MAKING);
    return HF_OK;
}

static enum hf_status apply_one(struct hf_pg_conn *conn, const struct hf_pg_migration *m,
                                struct hf_error *why)
{
    char version[16], doing[128];
    snprintf(version, sizeof version, "%d", m->version);
    snprintf(doing, sizeof doing, "cannot update the schema holdfast to version %d (%.40s)",
             m->version, m->name);
    const char *const params[] = { version, m->name, HF_VERSION };
    if (hf_pg_script(conn, m->sql) != HF_PG_FINE ||
        hf_pg_ask(conn,
                  "INSERT INTO holdfast.migration (version, name, program) VALUES ($1, $2, $3)", 3,
                  params, false, NULL) != HF_PG_FINE)
        return failed(conn, why, doing, MAKING);
    return HF_OK;
}

/* Are the Unicode tables of the SQL functions older than ours? Then an identity that one of them
 * records may differ from the one that this server looks for. False if that cannot be read. */
static bool unicode_is_older(struct hf_pg_conn *conn)
{
    PGresult *result;
    if (hf_pg_ask(conn,
                  "SELECT obj_description(p.oid, 'pg_proc') FROM pg_proc p JOIN pg_namespace n ON "
                  "n.oid = p.pronamespace WHERE n.nspname = 'holdfast' AND p.proname = "
                  "'_unicode_marks'",
                  0, NULL, false, &result) != HF_PG_FINE)
        return false;
    bool there = PQntuples(result) == 1 && !PQgetisnull(result, 0, 0);
    bool older = hf_pg_unicode_is_older(there ? PQgetvalue(result, 0, 0) : NULL);
    PQclear(result);
    return older;
}

static enum hf_status unicode_update(struct hf_pg_conn *conn, struct hf_error *why)
{
    if (!unicode_is_older(conn))
        return HF_OK;
    char *sql = hf_pg_unicode_sql();
    if (!sql)
        return fault(why, HF_NO_MEMORY, "not enough memory for the Unicode tables");
    enum hf_pg_outcome outcome = hf_pg_script(conn, sql);
    free(sql);
    return outcome == HF_PG_FINE
               ? HF_OK
               : failed(conn, why, "cannot create the Unicode tables of the schema holdfast",
                        MAKING);
}

/* In a transaction, under the lock: apply the missing migrations. */
static enum hf_status update(struct hf_pg_conn *conn, const struct hf_options *options,
                             struct hf_error *why)
{
    int version;
    enum hf_status st = version_read(conn, &version, why); /* again: another server may have updated
                                                            * it */
    if (st == HF_OK && version == 0 &&
        hf_pg_script(
            conn,
            "CREATE SCHEMA IF NOT EXISTS holdfast;CREATE TABLE holdfast.migration (version integer "
            "PRIMARY KEY, name text NOT NULL, program text NOT NULL, applied_at timestamptz NOT "
            "NULL DEFAULT now());COMMENT ON SCHEMA holdfast IS 'Retry-safe writes: see "
            "doc/POSTGRES.md of Holdfast.';COMMENT ON TABLE holdfast.migration IS 'Which versions "
            "of the schema were applied, and when.'") != HF_PG_FINE)
        return failed(conn, why, "cannot create the schema holdfast", MAKING);
    for (int i = 0; st == HF_OK && i < hf_pg_migration_count; i++)
        if (hf_pg_migrations[i].version > version)
            st = apply_one(conn, &hf_pg_migrations[i], why);
    if (st == HF_OK)
        st = unicode_update(conn, why);
    return st == HF_OK ? store_make(conn, options, why) : st;
}

static enum hf_status update_locked(struct hf_pg_conn *conn, const struct hf_options *options,
                                    struct hf_error *why)
{
    if (hf_pg_script(
            conn,
            "BEGIN; SET LOCAL lock_timeout = '60s'; SELECT pg_advisory_xact_lock(1213808980, 1)") !=
        HF_PG_FINE)
        return failed(conn, why, "cannot get the lock to change the schema", MAKING);
    enum hf_status st = update(conn, options, why);
    if (st != HF_OK) {
        (void)hf_pg_script(conn, "ROLLBACK");
        return st;
    }
    enum hf_pg_outcome outcome = hf_pg_script(conn, "COMMIT");
    if (outcome == HF_PG_FINE)
        return HF_OK;
    st = failed(conn, why,
                outcome == HF_PG_LOST
                    ? "the new schema may or may not be committed: COMMIT got no answer"
                    : "cannot commit the new schema",
                MAKING);
    if (outcome == HF_PG_LOST)
        st = why->status = HF_INDETERMINATE;
    return st;
}

static enum hf_status store_read(struct hf_pg_conn *conn, struct hf_pg_shared *shared,
                                 struct hf_rules *rules, struct hf_error *why)
{
    PGresult *result;
    if (hf_pg_ask(conn,
                  "SELECT store_id, id_key, idempotency_window_ms, token_max_length, "
                  "registry_strict FROM holdfast.store",
                  0, NULL, true, &result) != HF_PG_FINE)
        return failed(conn, why, "cannot read holdfast.store", USING);
    bool good = PQntuples(result) == 1 &&
                PQgetlength(result, 0, 0) == (int)sizeof shared->store_id &&
                PQgetlength(result, 0, 1) == HF_PG_ID_KEY;
    if (good) {
        memcpy(shared->store_id, PQgetvalue(result, 0, 0), sizeof shared->store_id);
        memcpy(shared->id_key, PQgetvalue(result, 0, 1), HF_PG_ID_KEY);
        *rules = (struct hf_rules){ .idempotency_window_ms = hf_pg_get_int8(result, 0, 2),
                                    .token_max_length = (uint32_t)hf_pg_get_int4(result, 0, 3),
                                    .registry_strict = hf_pg_get_bool(result, 0, 4) };
    }
    PQclear(result);
    if (!good)
        return fault(why, HF_STORE_DAMAGED,
                     "holdfast.store must contain exactly one row, but it was changed by "
                     "hand. Restore the row from a backup: \"What can go wrong\" in "
                     "doc/POSTGRES.md");
    return hf_pg_rules_sound(rules)
               ? HF_OK
               : fault(why, HF_STORE_DAMAGED,
                       "holdfast.store was changed by hand: its window or key length is out "
                       "of range. Set it to the configuration that `holdfast audit` shows: "
                       "\"What can go wrong\" in doc/POSTGRES.md");
}

enum hf_status hf_pg_migrate(struct hf_pg_conn *conn, const struct hf_options *options,
                             struct hf_pg_shared *shared, struct hf_rules *rules,
                             struct hf_error *why)
{
    int version, newest = hf_pg_migrations[hf_pg_migration_count - 1].version;
    enum hf_status st = version_read(conn, &version, why);
    if (st != HF_OK)
        return st;
    if (version > newest) {
        return hf_error_set(why, HF_STORE_NEWER,
                            "the schema holdfast has version %d, but this program knows versions "
                            "up to %d. Use a newer program",
                            version, newest);
    }
    if (version == 0 && options->no_create)
        return fault(why, HF_STORE_ABSENT, "there is no schema holdfast in this database");
    struct hf_error other;
    if (version < newest)
        st = update_locked(conn, options, why);
    else if (unicode_is_older(conn)) /* only the owner of the schema can replace them */
        (void)update_locked(conn, options, &other);
    if (st != HF_OK && version_read(conn, &version, &other) == HF_OK && version == newest)
        st = HF_OK; /* another server has updated it */
    return st == HF_OK ? store_read(conn, shared, rules, why) : st;
}

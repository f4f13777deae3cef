/* The tables and views of the SQLite export.
 *
 * Times are milliseconds since 1970-01-01 UTC; each has a second column that ends in _text and
 * shows it for people. These are computed when they are read, so they always agree. Names and keys
 * are TEXT if they are valid UTF-8, else BLOB. */
#include "audit/export.h"

/* The layout follows the SQL. */
/* clang-format off */

#define TIME_TEXT(column) \
    " TEXT GENERATED ALWAYS AS (strftime('%Y-%m-%dT%H:%M:%fZ', " column \
    " / 1000.0, 'unixepoch')) VIRTUAL"

const char *hf_audit_sqlite_tables(void)
{
    return
        "CREATE TABLE store(name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"

        "CREATE TABLE batches("
        " sequence INTEGER PRIMARY KEY, position INTEGER NOT NULL, length INTEGER NOT NULL,"
        " entries INTEGER NOT NULL, now INTEGER NOT NULL, now_text" TIME_TEXT("now") ","
        " chain TEXT NOT NULL, sha256 TEXT NOT NULL, chain_fits INTEGER NOT NULL,"
        " writer INTEGER, writer_batch INTEGER);"

        "CREATE TABLE entries("
        " position INTEGER PRIMARY KEY, batch INTEGER NOT NULL, tenant NOT NULL,"
        " action TEXT NOT NULL, status TEXT NOT NULL, recorded_at INTEGER NOT NULL,"
        " recorded_text" TIME_TEXT("recorded_at") ", rows INTEGER NOT NULL);"

        "CREATE TABLE tokens("
        " position INTEGER PRIMARY KEY, tenant NOT NULL, key, client, client_sequence INTEGER,"
        " action TEXT NOT NULL, status TEXT NOT NULL, digest TEXT NOT NULL,"
        " recorded_at INTEGER NOT NULL, recorded_text" TIME_TEXT("recorded_at") ","
        " expires_at INTEGER, expires_text" TIME_TEXT("expires_at") ", hold_id TEXT, answer);"

        "CREATE TABLE holds("
        " ordinal INTEGER PRIMARY KEY, id TEXT NOT NULL, tenant NOT NULL, resource NOT NULL,"
        " requester NOT NULL, state TEXT NOT NULL,"
        " placed_at INTEGER NOT NULL, placed_text" TIME_TEXT("placed_at") ","
        " expires_at INTEGER NOT NULL, expires_text" TIME_TEXT("expires_at") ","
        " ended_at INTEGER, ended_text" TIME_TEXT("ended_at") ","
        " reverses TEXT, reacquires TEXT, previous INTEGER NOT NULL, placed_by INTEGER NOT NULL,"
        " action_digest TEXT NOT NULL);"

        "CREATE TABLE hold_events("
        " position INTEGER NOT NULL, ordinal INTEGER NOT NULL, id TEXT NOT NULL,"
        " at INTEGER NOT NULL, at_text" TIME_TEXT("at") ", action TEXT NOT NULL,"
        " state TEXT NOT NULL,"
        " PRIMARY KEY(position, ordinal)) WITHOUT ROWID;"

        "CREATE TABLE successors("
        " original TEXT PRIMARY KEY, successor TEXT NOT NULL,"
        " position INTEGER NOT NULL) WITHOUT ROWID;"

        "CREATE TABLE resources("
        " tenant NOT NULL, name NOT NULL, capacity INTEGER NOT NULL, held INTEGER NOT NULL,"
        " confirmed INTEGER NOT NULL, open INTEGER NOT NULL, require_fence INTEGER NOT NULL,"
        " fence INTEGER NOT NULL, newest INTEGER NOT NULL,"
        " created_at INTEGER NOT NULL, created_text" TIME_TEXT("created_at") ","
        " PRIMARY KEY(tenant, name)) WITHOUT ROWID;"

        "CREATE TABLE resource_events("
        " position INTEGER NOT NULL, at INTEGER NOT NULL, at_text" TIME_TEXT("at") ","
        " tenant NOT NULL, name NOT NULL, capacity INTEGER NOT NULL, held INTEGER NOT NULL,"
        " confirmed INTEGER NOT NULL, open INTEGER NOT NULL, require_fence INTEGER NOT NULL,"
        " fence INTEGER NOT NULL);"

        "CREATE TABLE guards("
        " tenant NOT NULL, name NOT NULL, window_ms INTEGER NOT NULL, match TEXT NOT NULL,"
        " on_unavailable TEXT NOT NULL, durable INTEGER NOT NULL,"
        " created_at INTEGER NOT NULL, created_text" TIME_TEXT("created_at") ","
        " PRIMARY KEY(tenant, name)) WITHOUT ROWID;"

        "CREATE TABLE guard_entries("
        " position INTEGER PRIMARY KEY, tenant NOT NULL, guard NOT NULL, identity NOT NULL,"
        " recorded_at INTEGER NOT NULL, recorded_text" TIME_TEXT("recorded_at") ","
        " expires_at INTEGER, expires_text" TIME_TEXT("expires_at") ", result);"

        "CREATE TABLE claims("
        " tenant NOT NULL, key NOT NULL, state TEXT NOT NULL, on_abandon TEXT NOT NULL,"
        " fence INTEGER NOT NULL, begun_at INTEGER NOT NULL, begun_text" TIME_TEXT("begun_at") ","
        " lease_expires_at INTEGER NOT NULL, lease_expires_text" TIME_TEXT("lease_expires_at") ","
        " settled_at INTEGER, settled_text" TIME_TEXT("settled_at") ","
        " expires_at INTEGER, expires_text" TIME_TEXT("expires_at") ","
        " fingerprint TEXT NOT NULL, response, PRIMARY KEY(tenant, key)) WITHOUT ROWID;"

        "CREATE TABLE claim_events("
        " position INTEGER PRIMARY KEY, at INTEGER NOT NULL, at_text" TIME_TEXT("at") ","
        " tenant NOT NULL, key NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL,"
        " fence INTEGER NOT NULL, lease_expires_at INTEGER NOT NULL,"
        " lease_expires_text" TIME_TEXT("lease_expires_at") ","
        " expires_at INTEGER, expires_text" TIME_TEXT("expires_at") ", response);"

        "CREATE TABLE leases("
        " tenant NOT NULL, name NOT NULL, holder NOT NULL, fence INTEGER NOT NULL,"
        " ttl_ms INTEGER NOT NULL, granted_at INTEGER NOT NULL,"
        " granted_text" TIME_TEXT("granted_at") ","
        " expires_at INTEGER NOT NULL, expires_text" TIME_TEXT("expires_at") ","
        " released_at INTEGER, released_text" TIME_TEXT("released_at") ","
        " PRIMARY KEY(tenant, name)) WITHOUT ROWID;"

        "CREATE TABLE lease_events("
        " position INTEGER PRIMARY KEY, at INTEGER NOT NULL, at_text" TIME_TEXT("at") ","
        " tenant NOT NULL, name NOT NULL, action TEXT NOT NULL, holder NOT NULL,"
        " fence INTEGER NOT NULL, expires_at INTEGER NOT NULL,"
        " expires_text" TIME_TEXT("expires_at") ","
        " released_at INTEGER, released_text" TIME_TEXT("released_at") ");"

        "CREATE TABLE registers("
        " tenant NOT NULL, name NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,"
        " fence INTEGER NOT NULL, require_fence INTEGER NOT NULL, changed_at INTEGER NOT NULL,"
        " changed_text" TIME_TEXT("changed_at") ","
        " value, total INTEGER, PRIMARY KEY(tenant, name)) WITHOUT ROWID;"

        "CREATE TABLE register_events("
        " position INTEGER PRIMARY KEY, at INTEGER NOT NULL, at_text" TIME_TEXT("at") ","
        " tenant NOT NULL, name NOT NULL, version INTEGER NOT NULL, fence INTEGER NOT NULL,"
        " require_fence INTEGER NOT NULL, value, total INTEGER);"

        "CREATE TABLE clients("
        " tenant NOT NULL, name NOT NULL, highest INTEGER NOT NULL, used TEXT NOT NULL,"
        " PRIMARY KEY(tenant, name)) WITHOUT ROWID;"

        "CREATE TABLE app_values("
        " tenant NOT NULL, key NOT NULL, value, PRIMARY KEY(tenant, key)) WITHOUT ROWID;"

        "CREATE TABLE outbox("
        " number INTEGER PRIMARY KEY, position INTEGER NOT NULL, tenant NOT NULL, key NOT NULL,"
        " topic NOT NULL, payload, state INTEGER NOT NULL,"
        " created_at INTEGER NOT NULL, created_text" TIME_TEXT("created_at") ");"

        "CREATE TABLE config("
        " position INTEGER PRIMARY KEY, since INTEGER NOT NULL, since_text" TIME_TEXT("since") ","
        " idempotency_window_ms INTEGER NOT NULL, token_max_length INTEGER NOT NULL,"
        " registry TEXT NOT NULL, digest_function TEXT NOT NULL, program TEXT NOT NULL);";
}

const char *hf_audit_sqlite_views(void)
{
    return
        "CREATE INDEX tokens_by_key ON tokens(tenant, key, recorded_at);"
        "CREATE INDEX tokens_by_client ON tokens(tenant, client, client_sequence);"
        "CREATE INDEX tokens_by_digest ON tokens(digest);"
        "CREATE INDEX claim_events_by_key ON claim_events(tenant, key, position);"
        "CREATE INDEX entries_by_time ON entries(recorded_at);"
        "CREATE INDEX holds_by_id ON holds(id);"
        "CREATE INDEX holds_by_digest ON holds(action_digest);"
        "CREATE INDEX holds_by_pair ON holds(tenant, resource, requester, placed_at);"
        "CREATE INDEX hold_events_by_hold ON hold_events(ordinal, position);"
        "CREATE INDEX resource_events_by_name ON resource_events(tenant, name, position);"
        "CREATE INDEX guard_entries_by_identity"
        " ON guard_entries(tenant, guard, identity, recorded_at);"

        /* The events of each hold, with refused attempts, which are found by the digest that any
         * action on the hold has. */
        "CREATE VIEW hold_life AS"
        " SELECT h.id, v.at, v.at_text, v.action, v.state AS outcome, t.key, t.client,"
        "  t.client_sequence, t.expires_text AS key_until, v.position"
        " FROM hold_events v JOIN holds h ON h.ordinal = v.ordinal"
        "  LEFT JOIN tokens t ON t.position = v.position"
        " UNION ALL"
        " SELECT h.id, t.recorded_at, t.recorded_text, t.action, 'refused: ' || t.status, t.key,"
        "  t.client, t.client_sequence, t.expires_text, t.position"
        " FROM tokens t JOIN holds h ON h.action_digest = t.digest"
        " WHERE t.action IN ('confirm', 'confirm_late', 'release', 'expire', 'reverse')"
        "  AND t.status <> 'ok'"
        " UNION ALL"
        " SELECT r.original, e.recorded_at, e.recorded_text, e.action,"
        "  CASE e.action WHEN 'reverse' THEN 'given back by ' ELSE 'reacquired by ' END"
        "   || r.successor, t.key, t.client, t.client_sequence, t.expires_text, r.position"
        " FROM successors r JOIN entries e ON e.position = r.position"
        "  LEFT JOIN tokens t ON t.position = r.position;"

        /* Each hold and the key that placed it. */
        "CREATE VIEW hold_keys AS"
        " SELECT h.id, h.tenant, h.resource, h.requester, h.state, h.placed_at, h.placed_text,"
        "  t.key, t.client, t.client_sequence, t.digest, t.expires_at AS key_expires_at,"
        "  t.expires_text AS key_expires_text, h.ordinal, h.ended_text, h.reverses, h.reacquires"
        " FROM holds h LEFT JOIN tokens t ON t.position = h.placed_by;"

        /* Two uses of one key with overlapping windows: must be empty. */
        "CREATE VIEW keys_used_twice AS"
        " SELECT a.tenant, a.key, a.client, a.client_sequence, a.position AS first_position,"
        "  a.action AS first_action, a.recorded_text AS first_at, a.hold_id AS first_hold,"
        "  b.position AS second_position, b.action AS second_action, b.recorded_text AS second_at,"
        "  b.hold_id AS second_hold"
        " FROM tokens a JOIN tokens b ON b.tenant = a.tenant AND b.key = a.key"
        "  AND b.position > a.position AND b.recorded_at < a.expires_at"
        " UNION ALL"
        " SELECT a.tenant, a.key, a.client, a.client_sequence, a.position, a.action,"
        "  a.recorded_text, a.hold_id, b.position, b.action, b.recorded_text, b.hold_id"
        " FROM tokens a JOIN tokens b ON b.tenant = a.tenant AND b.client = a.client"
        "  AND b.client_sequence = a.client_sequence AND b.position > a.position;"

        /* Holds of one requester on one resource within a minute of the previous one. Each is
         * paired only with its predecessor, as in the audit, so that a hundred in a row are 99
         * pairs and not 4950. */
        "CREATE VIEW near_duplicates AS"
        " WITH placed AS (SELECT *, lag(ordinal) OVER (PARTITION BY"
        "   tenant, resource, requester ORDER BY ordinal)"
        "   AS before FROM hold_keys WHERE reverses IS NULL AND reacquires IS NULL)"
        " SELECT a.id AS first, b.id AS second, a.tenant, a.resource, a.requester,"
        "  a.placed_text AS first_at, b.placed_text AS second_at,"
        "  b.placed_at - a.placed_at AS apart_ms,"
        "  a.key AS first_key, b.key AS second_key, a.state AS first_state,"
        "  a.ended_text AS first_ended_at,"
        "  CASE WHEN NOT (a.key IS b.key AND a.client IS b.client"
        "    AND a.client_sequence IS b.client_sequence)"
        "    THEN 'different keys: two separate requests'"
        "   WHEN a.key_expires_at IS NULL OR b.placed_at < a.key_expires_at"
        "    THEN 'the same key: a double'"
        "   ELSE 'the same key, after its window: a new request' END AS why"
        " FROM placed b JOIN hold_keys a ON a.ordinal = b.before"
        " WHERE b.placed_at - a.placed_at <= 60000;"

        /* The configuration over time. */
        "CREATE VIEW config_in_force AS"
        " SELECT since_text AS since, lead(since_text) OVER (ORDER BY position) AS until,"
        "  idempotency_window_ms, token_max_length, registry, digest_function, program"
        " FROM config;";
}

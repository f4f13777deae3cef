#include "postgres/kit/functions.h"

#include "base/bytes.h"
#include "store/postgres/migrate.h"
#include "store/postgres/wire.h"
#include "store/record/entry.h"
#include "store/record/sound.h"
#include "support/test.h"

char *functions_file(const char *path)
{
    char full[1024];
    const char *source = getenv("HF_SOURCE");
    snprintf(full, sizeof full, "%s/%s", source ? source : ".", path);
    FILE *f = fopen(full, "r");
    if (!f)
        fail_msg("%s cannot be read", full);
    char *text = NULL;
    size_t size = 0, room = 1 << 16;
    do {
        room *= 2;
        text = realloc(text, room);
        assert_non_null(text);
        size += fread(text + size, 1, room - size - 1, f);
    } while (size == room - 1);
    text[size] = '\0';
    fclose(f);
    return text;
}

char *functions_shell(const struct postgres *p, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line,
             "cd \"$HF_SOURCE\" && PGHOST=127.0.0.1 PGPORT=%d PGUSER=postgres PGDATABASE=postgres "
             "%s 2>&1",
             p->port, command);
    FILE *f = popen(line, "r"); /* the examples are scripts for psql */
    assert_non_null(f);
    char *text = calloc(1, 4096);
    assert_non_null(text);
    text[fread(text, 1, 4095, f)] = '\0';
    if (pclose(f) != 0)
        fail_msg("%s: %s", command, text);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

void functions_make(const struct postgres *p, const struct hf_options *options)
{
    char store[512];
    snprintf(
        store, sizeof store,
        "INSERT INTO holdfast.store (store_id, id_key, idempotency_window_ms, token_max_length, "
        "registry_strict, digest_name, program) VALUES (decode(repeat('5a', 16), 'hex'), sha256('a "
        "secret'), "
        "%lld, %u, %s, 'sha256/1', '" HF_VERSION "'); COMMIT",
        options->idempotency_window_ms ? (long long)options->idempotency_window_ms : 86400000LL,
        options->token_max_length ? options->token_max_length : 256,
        options->registry == HF_REGISTRY_STRICT ? "true" : "false");
    PGconn *c = postgres_connect(p);
    functions_run(
        c, "SET client_min_messages = warning; SET lock_timeout = '20s'; DROP SCHEMA IF EXISTS "
           "holdfast CASCADE; BEGIN; CREATE SCHEMA holdfast");
    for (int i = 0; i < hf_pg_migration_count; i++)
        functions_run(c, hf_pg_migrations[i].sql);
    char *unicode = hf_pg_unicode_sql();
    assert_non_null(unicode);
    functions_run(c, unicode);
    free(unicode);
    functions_run(c, store);
    PQfinish(c);
}

/* ---- Calls ---- */

PGresult *functions_call(PGconn *c, const char *name, const char *const *arguments, size_t count)
{
    char sql[256];
    int n = snprintf(sql, sizeof sql, "SELECT * FROM holdfast.%s(", name);
    assert_true(count <= FUNCTIONS_ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++)
        n += snprintf(sql + n, sizeof sql - (size_t)n, "%s$%zu", i ? ", " : "", i + 1);
    snprintf(sql + n, sizeof sql - (size_t)n, ")");
    PGresult *result = PQexecParams(c, sql, (int)count, NULL, arguments, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) != 1)
        fail_msg("%s: %s", sql, PQresultErrorMessage(result));
    return result;
}

const char *functions_text(const PGresult *result, const char *column)
{
    int n = PQfnumber(result, column);
    if (n < 0)
        fail_msg("the answer has no column %s", column);
    return PQgetvalue(result, 0, n);
}

void functions_expect(PGconn *c, const char *status, bool replayed, const char *name,
                      const char *const *arguments, size_t count)
{
    PGresult *got = functions_call(c, name, arguments, count);
    if (strcmp(functions_text(got, "status"), status) != 0 ||
        strcmp(functions_text(got, "replayed"), replayed ? "t" : "f") != 0)
        fail_msg("%s(%s ...): %s, replayed %s; expected %s, %s", name,
                 count > 0 && arguments[0] ? arguments[0] : "", functions_text(got, "status"),
                 functions_text(got, "replayed"), status, replayed ? "t" : "f");
    PQclear(got);
}

char *functions_column(PGresult *got, const char *column)
{
    char *text = strdup(functions_text(got, column));
    PQclear(got);
    return text;
}

void functions_is(PGresult *got, const char *column, const char *wanted)
{
    assert_string_equal(functions_text(got, column), wanted);
    PQclear(got);
}

void functions_run(PGconn *c, const char *sql)
{
    PGresult *result = PQexec(c, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%.200s: %s", sql, PQresultErrorMessage(result));
    PQclear(result);
}

void functions_fails(PGconn *c, const char *sqlstate, const char *sql)
{
    PGresult *result = PQexec(c, sql);
    if (PQresultStatus(result) != PGRES_FATAL_ERROR)
        fail_msg("%s: was to fail with %s", sql, sqlstate);
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), sqlstate);
    PQclear(result);
}

/* ---- The journal ---- */

enum { NUMBER, AT, TENANT, ACTION, STATUS, KEY, ENTRY };

static struct hf_bytes cell(const PGresult *rows, int row, int n)
{
    return hf_mem(PQgetvalue(rows, row, n), (size_t)PQgetlength(rows, row, n));
}

/* A key as it stands in a column. */
static bool key_equal(struct hf_bytes text, struct hf_bytes key)
{
    char escaped[2 * HF_TOKEN_MAX];
    const char *p = key.data;
    size_t n = 0;
    for (size_t i = 0; i < key.size; i++) {
        if (p[i] == '\\')
            escaped[n++] = '\\';
        escaped[n++] = p[i];
    }
    return hf_bytes_equal(text, hf_mem(escaped, n));
}

/* Everything that was read, as the plan that it came from, is written again: the bytes must be the
 * same. */
static void check_rewritten(const struct hf_entry_view *entry, struct hf_bytes bytes)
{
    static struct hf_plan plan;
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    hf_plan_reset(&plan);
    assert_true(hf_entry_answer(entry, &plan.answer));
    while (hf_image_next(&rows, &image)) {
        struct hf_row *row = hf_plan_row(&plan, image.kind);
        assert_true(hf_image_decode(&image, entry->head.tenant, row) && hf_row_sound(row));
    }
    assert_int_equal(rows.size, 0);
    assert_int_equal(plan.row_count, entry->row_count);
    unsigned char *again = malloc(bytes.size + 4096);
    assert_non_null(again);
    assert_int_equal(hf_entry_encode(&entry->head, &plan, again), bytes.size);
    assert_memory_equal(again, bytes.data, bytes.size);
    free(again);
}

/* The key of the claim that the entry changes; nothing: none. */
static struct hf_bytes claim_key(const struct hf_entry_view *entry)
{
    struct hf_bytes rows = entry->rows, key = { NULL, 0 };
    struct hf_image image;
    struct hf_row row;
    while (hf_image_next(&rows, &image))
        if (image.kind == HF_ROW_CLAIM) {
            assert_true(hf_image_decode(&image, entry->head.tenant, &row));
            key = row.claim.key;
        }
    return key;
}

/* "client/number" */
static void check_number(struct hf_bytes text, const struct hf_entry_head *head)
{
    char key[2 * HF_TOKEN_MAX];
    int n = snprintf(key, sizeof key, "%.*s/%llu", (int)head->key.size,
                     (const char *)head->key.data, (unsigned long long)head->sequence);
    assert_true(key_equal(text, hf_mem(key, (size_t)n)));
    assert_true(head->expires_at == INT64_MAX);
}

static void check_entry(const PGresult *rows, int row)
{
    struct hf_bytes bytes = cell(rows, row, ENTRY);
    struct hf_entry_view entry;
    memset(&entry, 0, sizeof entry);
    assert_true(hf_entry_decode(bytes.data, bytes.size, &entry));
    assert_int_equal(entry.size, bytes.size);
    assert_true(hf_bytes_equal(cell(rows, row, TENANT), entry.head.tenant));
    assert_string_equal(PQgetvalue(rows, row, ACTION), hf_action_name(entry.head.action));
    assert_string_equal(PQgetvalue(rows, row, STATUS), hf_status_code(entry.head.status));
    assert_int_equal(hf_pg_get_int8(rows, row, AT), entry.head.recorded_at);
    struct hf_bytes claim = claim_key(&entry);
    if (entry.head.remember == HF_REMEMBER_NOT && claim.size > 0)
        assert_true(key_equal(cell(rows, row, KEY), claim));
    else if (entry.head.remember == HF_REMEMBER_NOT)
        assert_true(PQgetisnull(rows, row, KEY) && entry.row_count > 0);
    else if (entry.head.remember == HF_REMEMBER_KEY)
        assert_true(key_equal(cell(rows, row, KEY), entry.head.key));
    else
        check_number(cell(rows, row, KEY), &entry.head);
    check_rewritten(&entry, bytes);
}

size_t functions_check_journal(PGconn *c)
{
    PGresult *rows = PQexecParams(
        c,
        "SELECT number, (extract(epoch FROM at) * 1000)::bigint, tenant, action, status, "
        "key, entry FROM holdfast.journal ORDER BY number",
        0, NULL, NULL, NULL, NULL, 1);
    assert_int_equal(PQresultStatus(rows), PGRES_TUPLES_OK);
    int count = PQntuples(rows);
    for (int i = 0; i < count; i++)
        check_entry(rows, i);
    PQclear(rows);
    return (size_t)count;
}

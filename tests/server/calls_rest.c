/* What is asked about the store and the server: audit, trace, export, description, health, figures,
 * the start page; and for every call: HEAD, unknown paths and wrong methods. */
#include "server/kit/case.h"

#include "api/call.h"

#include <dirent.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>

static char hold_id[32];

/* A server with one of everything. */
static int setup(void **state)
{
    (void)calls_setup(state);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    snprintf(hold_id, sizeof hold_id, "%s", reply_text(&t.got, "id"));
    assert_int_equal(talk(&t, "POST /v1/holds", "k2",
                          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     409);
    assert_int_equal(talkf(&t, "k3", NULL, "POST /v1/holds/%s/confirm", hold_id), 200);
    assert_int_equal(talk(&t, "PUT /v1/guards/g", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(&t, "POST /v1/guards/g/record", NULL, "{\"identity\":\"i\"}"), 200);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL, "{\"key\":\"c\",\"payload\":1}"), 201);
    assert_int_equal(talk(&t, "POST /v1/leases/l", "k4", "{\"holder\":\"h\",\"ttl\":\"1h\"}"), 201);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "k5", "{\"value\":1}"), 200);
    return 0;
}

/* ---- The records ---- */

static void the_audit_passes_and_names_every_invariant(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "application/json");
    assert_false(reply_has(&t.got, "\"outcome\":\"broken\""));
    assert_false(reply_has(&t.got, "\"outcome\":\"incomplete\""));
    static const char *const names[] = { "PC", "DP", "IR" };
    static const int counts[] = { 11, 4, 8 };
    for (size_t i = 0; i < 3; i++)
        for (int n = 1; n <= counts[i]; n++) {
            char name[32];
            snprintf(name, sizeof name, "\"name\":\"%s%d\"", names[i], n);
            if (!reply_has(&t.got, name))
                fail_msg("%s is not audited", name);
        }
}

static void a_trace_tells_the_life_of_a_hold_or_a_key(void **state)
{
    (void)state;
    assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/trace/%s", hold_id), 200);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "application/json");
    assert_true(reply_has(&t.got, "place_hold"));
    assert_true(reply_has(&t.got, "confirm"));
    assert_true(reply_has(&t.got, "k1"));
    assert_true(reply_has(&t.got, "k3"));
    assert_int_equal(talk(&t, "GET /v1/trace/k2", NULL, NULL), 200);
    assert_true(reply_has(&t.got, "resource-unavailable"));
    assert_int_equal(talk(&t, "GET /v1/trace/never", NULL, NULL), 404);
    talk_refused(&t, 404, "not-known");
}

static void an_export_has_every_record_as_lines(void **state)
{
    (void)state;
    static const char *const paths[] = { "GET /v1/export", "GET /v1/export?format=jsonl" };
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(talk(&t, paths[i], NULL, NULL), 200);
        assert_string_equal(reply_field(&t.got, "Content-Type"), "application/x-ndjson");
        assert_true(reply_has(&t.got, hold_id));
        assert_int_equal(t.got.body[0], '{');
        assert_int_equal(t.got.body[t.got.body_size - 1], '\n');
    }
    static const char *const wrong[] = { "format=csv", "format=", "formats=jsonl",
                                         "format=jsonl&limit=1" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        talkf(&t, NULL, NULL, "GET /v1/export?%s", wrong[i]);
        talk_refused(&t, 400, "invalid-request");
    }
}

static int column(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int value = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return value;
}

static void an_export_can_be_a_database(void **state)
{
    (void)state;
    char path[600];
    sqlite3 *db;
    assert_int_equal(talk(&t, "GET /v1/export?format=sqlite", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "application/vnd.sqlite3");
    assert_memory_equal(t.got.body, "SQLite format 3", 16);
    snprintf(path, sizeof path, "%s/export.sqlite", s.dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(t.got.body, 1, t.got.body_size, f), t.got.body_size);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(column(db, "SELECT count(*) FROM holds WHERE state = 'confirmed'"), 1);
    assert_int_equal(column(db, "SELECT count(*) FROM tokens"), 5);
    sqlite3_close(db);
}

/* Without sockets: connections come and go, to clients and to a database. */
static int files_open(pid_t pid)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        char target[16] = "";
        if (readlinkat(dirfd(dir), e->d_name, target, sizeof target - 1) > 0)
            count += strncmp(target, "socket:", 7) != 0;
    }
    closedir(dir);
    return count;
}

/* Whoever asks for an export and leaves before it is made must not leave an open file behind. */
static void an_export_that_nobody_takes_is_closed(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    int fds[COUNT], before = files_open(s.pid), after = before + 1;
    assert_int_equal(talk(&t, "HEAD /v1/export", NULL, NULL), 200);
    double asked = talk_figure(&t, "holdfast_http_requests_total") + COUNT;
    char *request = server_request("GET /v1/export?format=sqlite", "", NULL);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_text(fds[i], request));
    }
    free(request);
    while (talk_figure(&t, "holdfast_http_requests_total") < asked)
        continue;
    /* They are made one after the other, so most of them are still to be made. */
    struct linger reset = { .l_onoff = 1 };
    for (int i = 0; i < COUNT; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fds[i]);
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         after > before && server_clock_ms() < until; server_pause_ms(10))
        after = talk_figure(&t, "holdfast_queue") > 1 ? before + 1 : files_open(s.pid);
    assert_int_equal(after, before);
}

/* Long questions wait in a line that has an end. */
static void too_many_long_questions_are_refused(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    int fds[COUNT], done = 0, refused = 0;
    server_freeze(
        &s); /* so that all come at once; and of audits, unlike exports, any number may be unsent */
    for (int i = 0; i < COUNT; i++) {
        fds[i] = server_connect(&s);
        assert_true(server_send_request(fds[i], "GET /v1/audit", "", NULL));
    }
    server_thaw(&s);
    for (int i = 0; i < COUNT; i++) {
        struct reply r;
        assert_true(server_receive(fds[i], &r, false));
        done += r.status == 200;
        if (r.status != 200) {
            assert_int_equal(r.status, 503);
            assert_string_equal(reply_text(&r, "code"), "too-busy");
            assert_non_null(reply_field(&r, "Retry-After"));
            refused++;
        }
        reply_free(&r);
        close(fds[i]);
    }
    assert_true(done >= 16);
    assert_true(refused > 0);
    assert_int_equal(talk(&t, "GET /v1/export", NULL, NULL), 200);
}

static void a_store_in_memory_has_no_records_on_disk(void **state)
{
    (void)state;
    both_needs_files();
    assert_int_equal(server_stop(&s), 0);
    talk_close(&t);
    s.options.data = ":memory:";
    s.options.store.io = NULL;
    server_start(&s);
    talk_open(&t, &s);
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "k1",
                                "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    static const char *const files[] = { "GET /v1/audit", "GET /v1/trace/k1", "GET /v1/export" };
    for (size_t i = 0; i < 3; i++) {
        talk(&t, files[i], NULL, NULL);
        talk_refused(&t, 503, "storage-failure");
    }
    assert_int_equal(talk(&t, "GET /v1/holds", NULL, NULL), 200);
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 200);
}

/* ---- The server ---- */

static void it_lives_and_is_ready(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
    talk_is(&t, "{\"ok\":true}");
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 200);
    talk_is(&t, "{\"ready\":true}");
    char expected[100];
    snprintf(expected, sizeof expected, "holdfast: listening on http://127.0.0.1:%d", s.port);
    assert_string_equal(s.first_line, expected);
}

static void figures_have_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } figures[] = { { "idempotency_key_duplicates_total", 0 },
                    { "idempotency_key_race_conditions_total", 0 },
                    { "idempotency_table_size", 6 },
                    { "holdfast_clock_stalls_total", 0 },
                    { "holdfast_index_rebuilds_total", 0 },
                    { "holdfast_records_unreadable_total", 0 },
                    { "holdfast_clock_jumps_total", 0 },
                    { "holdfast_guard_misses_total", 0 },
                    { "holdfast_ready", 1 },
                    { "holdfast_out_of_space", 0 },
                    { "holdfast_holds", 1 },
                    { "holdfast_holds_live", 0 },
                    { "holdfast_resources", 1 },
                    { "holdfast_guards", 1 },
                    { "holdfast_guard_entries", 1 },
                    { "holdfast_claims{state=\"started\"}", 1 },
                    { "holdfast_claims{state=\"unknown\"}", 0 },
                    { "holdfast_claims{state=\"completed\"}", 0 },
                    { "holdfast_claims_unknown_oldest_seconds", 0 },
                    { "holdfast_registers", 1 },
                    { "holdfast_http_connections", 1 },
                    { "holdfast_refusals_total{code=\"resource-unavailable\"}", 1 },
                    { "holdfast_refusals_total{code=\"token-collision\"}", 0 } };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        double value = talk_figure(&t, figures[i].name);
        if (value != figures[i].value)
            fail_msg("%s is %g instead of %g", figures[i].name, value, figures[i].value);
    }
    const char *type = reply_field(&t.got, "Content-Type");
    assert_memory_equal(type, "text/plain; version=0.0.4", 25);
    assert_true(talk_figure(&t, "holdfast_http_requests_total") >= 20);
    assert_true(talk_figure(&t, "holdfast_commit_seconds_count") >= 8);
    assert_true(reply_has(&t.got, "holdfast_commit_seconds_bucket{le=\"+Inf\"}"));
    assert_true(reply_has(&t.got, "holdfast_build_info{version=\"" HF_VERSION "\"} 1"));
    /* A wall clock that steps back is counted, and engine time stands still. */
    atomic_store(&s.io->wall, TALK_START - 5000);
    assert_int_equal(talk(&t, "PUT /v1/registers/x", "back", "{\"value\":2}"), 200);
    assert_string_equal(reply_field(&t.got, "Idempotency-Expires"), "2023-11-15T22:13:20.000Z");
    assert_true(talk_figure(&t, "holdfast_clock_stalls_total") >= 1);
}

static void it_describes_itself(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /v1/openapi.json", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "application/json");
    assert_true(reply_has(&t.got, "\"openapi\":\"3."));
    for (size_t i = 0; i < hf_call_count; i++) {
        char path[100];
        snprintf(path, sizeof path, "\"%s\":", hf_calls[i].path);
        if (!reply_has(&t.got, path))
            fail_msg("%s is not described", hf_calls[i].path);
    }
}

static void the_start_page_is_a_page(void **state)
{
    (void)state;
    assert_int_equal(talk(&t, "GET /", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Content-Type"), "text/html; charset=utf-8");
    assert_string_equal(reply_field(&t.got, "X-Content-Type-Options"), "nosniff");
    assert_non_null(strstr(reply_field(&t.got, "Content-Security-Policy"), "default-src 'none'"));
    assert_true(reply_has(&t.got, "Holdfast"));
}

/* ---- Every path ---- */

/* A path of the call, with the parameter of something that is there. */
static const char *path_of(const struct hf_call *call)
{
    static const struct {
        const char *begins, *param;
    } params[] = { { "/v1/holds/", hold_id }, { "/v1/resources/", "r" }, { "/v1/guards/", "g" },
                   { "/v1/claims/", "c" },    { "/v1/leases/", "l" },    { "/v1/registers/", "x" },
                   { "/v1/tokens/", "k1" },   { "/v1/trace/", "k1" } };
    static char path[200];
    const char *open = strchr(call->path, '{');
    bool by_number = strcmp(call->path, "/v1/tokens") == 0;
    snprintf(path, sizeof path, "%s%s", call->path, by_number ? "?client=till&sequence=1" : "");
    for (size_t i = 0; open && i < sizeof params / sizeof *params; i++)
        if (strncmp(call->path, params[i].begins, strlen(params[i].begins)) == 0)
            snprintf(path, sizeof path, "%s%s%s", params[i].begins, params[i].param,
                     strchr(open, '}') + 1);
    return path;
}

/* The head without the line that tells the time. Owned. */
static char *head_without_date(const struct reply *r)
{
    char *head = strdup(r->head);
    char *date = strstr(head, "\r\nDate: ");
    assert_non_null(date);
    char *end = strstr(date + 2, "\r\n");
    memmove(date, end, strlen(end) + 1);
    return head;
}

static void head_is_get_without_the_body(void **state)
{
    (void)state;
    size_t gets = 0;
    assert_int_equal(talk(&t, "POST /v1/batch", NULL,
                          "{\"op\":\"write\",\"client\":\"till\",\"sequence\":1,"
                          "\"name\":\"y\",\"value\":1}\n"),
                     200);
    for (size_t i = 0; i < hf_call_count; i++) {
        if (hf_calls[i].method != HF_HTTP_GET)
            continue;
        gets++;
        assert_int_equal(talkf(&t, NULL, NULL, "GET %s", path_of(&hf_calls[i])), 200);
        char *get = head_without_date(&t.got);
        assert_true(t.got.body_size > 0);
        assert_int_equal(talkf(&t, NULL, NULL, "HEAD %s", path_of(&hf_calls[i])), 200);
        char *head = head_without_date(&t.got);
        if (hf_calls[i].kind != HF_CALL_METRICS &&
            strcmp(get, head) != 0) /* figures change while they are asked for */
            fail_msg("GET %s has %s, and HEAD has %s", hf_calls[i].path, get, head);
        free(get);
        free(head);
        /* The next answer follows at once: not a byte of a body was sent. */
        assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
        talk_is(&t, "{\"ok\":true}");
    }
    assert_true(gets >= 18);
    assert_int_equal(talk(&t, "HEAD /v1/holds/none", NULL, NULL), 404);
    assert_int_equal(talk(&t, "HEAD /nowhere", NULL, NULL), 404);
    assert_int_equal(talk(&t, "HEAD /v1/batch", NULL, NULL), 405);
    assert_string_equal(reply_field(&t.got, "Allow"), "POST");
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
}

static void what_is_not_there_is_not_known(void **state)
{
    (void)state;
    static const char *const paths[] = { "/v1",
                                         "/v1/",
                                         "/v2/holds",
                                         "/v1/holds/",
                                         "/v1/hold",
                                         "/V1/holds",
                                         "/v1/holds/a/b",
                                         "/v1/holds/a/confirm/b",
                                         "/v1/batch/x",
                                         "/healthz/",
                                         "/healthz/x",
                                         "//",
                                         "/index.html",
                                         "/v1/holds//confirm",
                                         "/v1/../v1/holds",
                                         "/v1/%68olds" };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        talkf(&t, NULL, NULL, "GET %s", paths[i]);
        talk_refused(&t, 404, "not-known");
        talkf(&t, "k", "{}", "POST %s", paths[i]);
        talk_refused(&t, 404, "not-known");
    }
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    (void)state;
    static const char *const methods[] = {
        "GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"
    };
    static const enum hf_http_method known[] = { HF_HTTP_GET, HF_HTTP_POST, HF_HTTP_PUT,
                                                 HF_HTTP_DELETE };
    for (size_t i = 0; i < hf_call_count; i++) {
        bool takes[4] = { false };
        for (size_t k = 0; k < hf_call_count; k++)
            for (size_t m = 0; m < 4; m++)
                takes[m] |= strcmp(hf_calls[k].path, hf_calls[i].path) == 0 &&
                            hf_calls[k].method == known[m];
        for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
            if (m < 4 && takes[m])
                continue;
            talkf(&t, NULL, NULL, "%s %s", methods[m], path_of(&hf_calls[i]));
            talk_refused(&t, 405, "method-not-allowed");
            const char *allow = reply_field(&t.got, "Allow");
            assert_non_null(allow);
            for (size_t k = 0; k < 4; k++)
                assert_int_equal(strstr(allow, methods[k]) != NULL, takes[k]);
        }
    }
}

static void a_call_without_a_body_takes_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++)
        if (!hf_call_has_body(&hf_calls[i]) && hf_calls[i].kind == HF_CALL_DO) {
            const char *method = hf_calls[i].method == HF_HTTP_GET ? "GET" : "DELETE";
            const char *key = hf_calls[i].key ? "k" : NULL;
            talkf(&t, key, "{}", "%s %s", method, path_of(&hf_calls[i]));
            talk_refused(&t, 400, "invalid-request");
            talkf(&t, key, NULL, "%s %s?x=1", method, path_of(&hf_calls[i]));
            talk_refused(&t, 400, "invalid-request");
        }
}

/* The wall clock of a running server jumped thirty days ahead for a second and a half, while
 * clients only asked: the sweeper committed that time, every key was forgotten, and a retry acted
 * again. */

#define JUMP (INT64_C(30) * 24 * 3600 * 1000)
#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

/* The boot clock is `boot` ms after the start, and the wall clock is ahead of it by `ahead`. While
 * one of the two is set the other is behind by a moment, which is less than the store tolerates. */
static void at(int64_t boot, int64_t ahead)
{
    atomic_store(&s.io->boot, 1000000 + boot);
    atomic_store(&s.io->wall, TALK_START + boot + ahead);
}

/* A server with its sweeper. */
static void make(struct server *server)
{
    talk_server(server);
    server->options.store.no_background = false;
    atomic_store(&server->io->boot, 1000000);
}

/* Wait until the sweeper has come by and gone. It looks at the wall clock three times when it
 * comes, and nobody else does meanwhile: of seven looks, the last belongs to a later visit than the
 * first that was whole. */
static void sweeper_comes_by(void)
{
    enum { LOOKS = 7 };
    uint64_t before = atomic_load(&s.io->looks);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         atomic_load(&s.io->looks) < before + LOOKS;) {
        assert_true(server_clock_ms() < until);
        server_pause_ms(1);
    }
}

static void a_retry_after_a_short_jump_is_a_replay(void **state)
{
    (void)state;
    char id[32], path[64];
    assert_int_equal(talk(&t, "POST /v1/holds", "key", HOLD), 201);
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    snprintf(path, sizeof path, "GET /v1/holds/%s", id);
    for (int64_t ms = 0; ms <= 1500; ms += 100) {
        at(ms, JUMP);
        sweeper_comes_by();
        assert_int_equal(talk(&t, path, NULL, NULL), 200);
        assert_string_equal(reply_text(&t.got, "state"), "held");
    }
    at(1600, 0);
    sweeper_comes_by();
    assert_int_equal(talk(&t, "POST /v1/holds", "key", HOLD), 201);
    assert_string_equal(reply_text(&t.got, "id"), id);
    assert_non_null(reply_field(&t.got, "Idempotent-Replayed"));
    assert_true(talk_figure(&t, "holdfast_clock_jumps_total") == 1);
    assert_true(talk_figure(&t, "holdfast_clock_stalls_total") == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, calls_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_audit_passes_and_names_every_invariant),
        TEST(a_trace_tells_the_life_of_a_hold_or_a_key),
        TEST(an_export_has_every_record_as_lines),
        TEST(an_export_can_be_a_database),
        TEST(an_export_that_nobody_takes_is_closed),
        TEST(too_many_long_questions_are_refused),
        TEST(a_store_in_memory_has_no_records_on_disk),
        TEST(it_lives_and_is_ready),
        TEST(figures_have_their_names),
        TEST(it_describes_itself),
        TEST(the_start_page_is_a_page),
        TEST(head_is_get_without_the_body),
        TEST(what_is_not_there_is_not_known),
        TEST(a_wrong_method_is_told_the_right_ones),
        TEST(a_call_without_a_body_takes_none),
        SERVER_TEST(a_retry_after_a_short_jump_is_a_replay, make, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What operators read: a line for each duplicate, as text or JSON, one line whatever a client
 * sends; and a reader of the log that does not read never stops the server. */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "base/hash.h"
#include "server/kit/case.h"
#include "server/kit/json_tree.h"
#include "server/kit/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

/* ---- Lines ---- */

/* The lines of the log that have `text` in them, one behind the other; how many. lines: out,
 * owned. */
static size_t lines_with(const char *text, char **lines)
{
    char *log = server_log(&s), *rest = log;
    size_t count = 0;
    *lines = calloc(1, strlen(log) + 1);
    assert_non_null(*lines);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (!strstr(line, text))
            continue;
        strcat(strcat(*lines, line), "\n");
        count++;
    }
    free(log);
    return count;
}

/* Wait for so many, and assert that there are no more. Owned. */
static char *await_lines(const char *text, size_t count)
{
    char *lines;
    assert_true(count == 0 || watch_log(&s, text, (unsigned)count));
    server_pause_ms(50); /* for one too many to come; if it takes longer, this test misses it */
    size_t got = lines_with(text, &lines);
    if (got != count)
        fail_msg("expected %zu lines with %s, got %zu: %s", count, text, got, lines);
    return lines;
}

/* One hold, asked for once and then again; a refusal and its repetition; a claim and one in a
 * batch. */
static void cause_duplicates(void)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(talk(&t, "POST /v1/holds", "order-1", HOLD), 201);
    for (int i = 0; i < 2; i++)
        assert_int_equal(talk(&t, "POST /v1/holds", "order-2", HOLD), 409);
    atomic_store(&s.io->wall,
                 TALK_START + 5000); /* the first was seen before, and that is what is told */
    assert_int_equal(
        talk(&t, "POST /v1/batch", NULL,
             "{\"op\":\"place_hold\",\"key\":\"order-1\",\"resource\":\"r\",\"requester\":\"q\","
             "\"duration\":\"1h\"}\n"),
        200);
    talk(&t, "POST /v1/holds", "order-1",
         "{\"resource\":\"x\",\"requester\":\"q\",\"duration\":\"1h\"}");
    talk_refused(&t, 422, "token-collision"); /* not a duplicate */
    assert_int_equal(talk(&t, "GET /v1/tokens/order-1", NULL, NULL), 200);
}

static void a_duplicate_is_a_line(void **state)
{
    (void)state;
    server_start(&s);
    cause_duplicates();
    char *lines = await_lines(" duplicate ", 4);
    assert_string_equal(
        lines, TALK_AT
        " info duplicate key=\"order-1\" tenant=\"\" action=place_hold first_seen=" TALK_AT
        " status=201\n" TALK_AT
        " info duplicate key=\"order-1\" tenant=\"\" action=place_hold first_seen=" TALK_AT
        " status=201\n" TALK_AT
        " info duplicate key=\"order-2\" tenant=\"\" action=place_hold first_seen=" TALK_AT
        " status=409\n"
        "2023-11-14T22:13:25.000Z info duplicate key=\"order-1\" tenant=\"\" action=place_hold "
        "first_seen=" TALK_AT " status=201\n");
    free(lines);
}

static void each_line_is_json(void **state)
{
    (void)state;
    struct hf_arena arena = { 0 };
    s.options.log_json = true;
    server_start(&s);
    cause_duplicates();
    free(await_lines("\"duplicate\"", 4));
    assert_int_equal(kill(s.pid, SIGHUP), 0);
    assert_true(watch_log(&s, "\"event\":\"reloaded\"", 1));
    char *log = server_log(&s), *rest = log;
    size_t duplicates = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && line[0];) {
        struct tree *j = tree_read(hf_str(line), &arena);
        if (!j || !tree_get(j, "time") || !tree_get(j, "level") || !tree_get(j, "event"))
            fail_msg("not a line of the log: %s", line);
        if (!tree_is(tree_get(j, "event"), "duplicate"))
            continue;
        assert_true(tree_is(tree_get(j, "level"), "info"));
        assert_true(tree_is(tree_get(j, "action"), "place_hold"));
        assert_true(tree_is(tree_get(j, "first_seen"), TALK_AT));
        assert_memory_equal(tree_at(j, "status", NULL)->text.data, duplicates == 2 ? "409" : "201",
                            3);
        assert_true(tree_is(tree_get(j, "key"), duplicates == 2 ? "order-2" : "order-1"));
        assert_true(
            tree_is(tree_get(j, "time"), duplicates == 3 ? "2023-11-14T22:13:25.000Z" : TALK_AT));
        duplicates++;
    }
    assert_int_equal(duplicates, 4);
    free(log);
    hf_arena_free(&arena);
}

static void keys_can_be_hashed(void **state)
{
    (void)state;
    uint8_t digest[HF_DIGEST_SIZE];
    char key[17] = "";
    s.options.log_hash_keys = true;
    server_start(&s);
    cause_duplicates();
    char *lines = await_lines(" duplicate ", 4);
    hf_sha256_of("order-1", 7, digest);
    for (size_t i = 0; i < 8; i++)
        snprintf(key + 2 * i, sizeof key - 2 * i, "%02x", digest[i]);
    if (!strstr(lines, key))
        fail_msg("there is no %s: %s", key, lines);
    free(lines);
    char *log = server_log(&s);
    assert_null(strstr(log, "order-"));
    free(log);
}

static void duplicates_can_be_left_out(void **state)
{
    (void)state;
    s.options.log_duplicates = false;
    server_start(&s);
    cause_duplicates();
    free(await_lines(" duplicate ", 0));
}

/* ---- Hostile names ---- */

/* As they stand in JSON. What a terminal or a reader of lines might take for something else. */
static const char *const hostile[] = {
    "a\\nb info duplicate key=forged",
    "a\\r\\n2026-01-01T00:00:00.000Z error fatal",
    "\\u001b[2J\\u001b[31mred",
    "quote\\\" status=500 x=\\\"",
    "back\\\\slash\\\\n",
    "\\u007f\\u0080\\u009b31m",
    "\\u2028line\\u2029paragraph\\u0085next",
    "\\u202eright-to-left\\u202c",
    "tab\\tand\\u000bvertical\\u000cform",
    "\\ud83d\\ude00 and \xc3\xa4",
    "} {\\\"event\\\":\\\"forged\\\"}",
    " ",
};

enum { HOSTILE = sizeof hostile / sizeof *hostile };

static void send_hostile(void)
{
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < HOSTILE; i++) {
            char line[512];
            snprintf(
                line, sizeof line,
                "{\"op\":\"place_hold\",\"key\":\"%s\",\"resource\":\"h%d\",\"requester\":\"q\","
                "\"duration\":\"1h\"}\n",
                hostile[i], i);
            assert_int_equal(talk(&t, "POST /v1/batch", NULL, line), 200);
            if (!reply_has(&t.got, turn ? "\"status\":201,\"replayed\":true"
                                        : "\"status\":201,\"replayed\":false"))
                fail_msg("%s: %s", hostile[i], t.got.body);
        }
}

static void nothing_but_lines(const char *log)
{
    for (const char *p = log; *p; p++)
        if (*p != '\n' && ((unsigned char)*p < 0x20 || *p == 0x7f))
            fail_msg("a control byte %d in the log", *p);
    assert_null(strstr(log, "\xe2\x80\xa8"));
    assert_null(strstr(log, "\xe2\x80\xae"));
    assert_null(strstr(log, "\xc2\x85"));
    assert_null(strstr(log, "\xc2\x9b"));
}

static void a_hostile_name_stays_in_its_line(void **state)
{
    (void)state;
    server_start(&s);
    send_hostile();
    char *lines = await_lines(TALK_AT " info duplicate key=\"", HOSTILE);
    size_t total = 0;
    for (const char *p = lines;
         (p = strstr(p, " action=place_hold first_seen=" TALK_AT " status=201\n")); p++)
        total++;
    assert_int_equal(total, HOSTILE); /* each ends as it should: nothing was added behind */
    nothing_but_lines(lines);
    free(lines);
}

static void a_hostile_name_stays_in_its_json(void **state)
{
    (void)state;
    struct hf_arena arena = { 0 };
    s.options.log_json = true;
    server_start(&s);
    send_hostile();
    char *lines = await_lines("\"event\":\"duplicate\"", HOSTILE), *rest = lines;
    nothing_but_lines(lines);
    for (int i = 0; i < HOSTILE; i++) {
        char text[300];
        struct tree *j = tree_read(hf_str(strsep(&rest, "\n")), &arena);
        snprintf(text, sizeof text, "\"%s\"", hostile[i]);
        struct tree *key = tree_read(hf_str(text), &arena);
        assert_true(j && key);
        struct hf_bytes said = tree_get(j, "key")->text;
        assert_int_equal(said.size, key->text.size); /* the very key, once it is read again */
        assert_memory_equal(said.data, key->text.data, said.size);
    }
    free(lines);
    hf_arena_free(&arena);
}

/* ---- A reader that does not read ---- */

/* A batch of the same line over and over: duplicates, 500 at a time. */
static void flood(int batches)
{
    static const char line[] = "{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"r\","
                               "\"requester\":\"q\",\"duration\":\"1h\"}\n";
    char *body = calloc(500, sizeof line);
    assert_non_null(body);
    for (int i = 0; i < 500; i++)
        memcpy(body + (size_t)i * (sizeof line - 1), line, sizeof line - 1);
    for (int i = 0; i < batches; i++)
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, body), 200);
    free(body);
}

static void a_reader_that_does_not_read_stops_nothing(void **state)
{
    (void)state;
    enum { BATCHES = 40 };
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
    s.err = ends[1];
    server_start(&s);
    close(ends[1]);
    flood(BATCHES); /* all are answered, before anyone reads */
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 200);
    double dropped = talk_figure(&t, "holdfast_log_lines_dropped_total");
    assert_true(dropped > 1000 && dropped < BATCHES * 500);
    /* When somebody reads at last, the lines that were kept are there, and the last says how many
     * are not. */
    char *text = calloc(1, 1 << 22);
    size_t size = 0;
    double said = 0;
    assert_non_null(text);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         said < dropped && server_clock_ms() < until;) {
        ssize_t n = read(ends[0], text + size, (1 << 22) - 1 - size);
        if (n > 0)
            size += (size_t)n;
        else
            server_pause_ms(5);
        for (const char *at = text; (at = strstr(at, "dropped=")); at++)
            said = strtod(at + 8, NULL);
    }
    if (said != dropped)
        fail_msg("%.0f lines were dropped, and the log says %.0f", dropped, said);
    free(text);
    close(ends[0]);
}

/* Nor does one that never comes back, also not at the end. */
static void it_stops_in_time_although_nobody_reads(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
    s.err = ends[1];
    server_start(&s);
    close(ends[1]);
    flood(20);
    assert_int_equal(server_stop(&s), 0);
    close(ends[0]);
}

static void a_reader_that_has_gone_stops_nothing(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.err = ends[1];
    server_start(&s);
    close(ends[0]);
    close(ends[1]);
    flood(10);
    assert_int_equal(talk(&t, "POST /v1/holds", "another", HOLD), 409);
    assert_int_equal(server_stop(&s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST_STOPPED(a_duplicate_is_a_line, talk_server),
        SERVER_TEST_STOPPED(each_line_is_json, talk_server),
        SERVER_TEST_STOPPED(keys_can_be_hashed, talk_server),
        SERVER_TEST_STOPPED(duplicates_can_be_left_out, talk_server),
        SERVER_TEST_STOPPED(a_hostile_name_stays_in_its_line, talk_server),
        SERVER_TEST_STOPPED(a_hostile_name_stays_in_its_json, talk_server),
        SERVER_TEST_STOPPED(a_reader_that_does_not_read_stops_nothing, talk_server),
        SERVER_TEST_STOPPED(it_stops_in_time_although_nobody_reads, talk_server),
        SERVER_TEST_STOPPED(a_reader_that_has_gone_stops_nothing, talk_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

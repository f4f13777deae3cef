/* Many at once: one key from all sides is done once, and a resource is never given to more than it
 * has room for. */
#include "server/kit/talk.h"
#include "support/test.h"

#include <unistd.h>

enum { CROWD = 64 };

static struct server s;
static struct talk t;
static int fds[CROWD];

static int start_with(unsigned threads)
{
    talk_server(&s);
    s.options.threads = threads;
    s.options.store.no_background = false;
    server_start(&s);
    talk_open(&t, &s);
    for (int i = 0; i < CROWD; i++)
        fds[i] = server_connect(&s);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return start_with(1);
}

static int setup_4_threads(void **state)
{
    (void)state;
    return start_with(4);
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    talk_close(&t);
    server_end(&s);
    return 0;
}

static void send_place(int fd, const char *key, const char *resource)
{
    char fields[64], body[128];
    snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
    snprintf(body, sizeof body, "{\"resource\":\"%s\",\"requester\":\"q\",\"duration\":\"1h\"}",
             resource);
    char *request = server_request("POST /v1/holds", fields, body);
    assert_true(server_send_text(fd, request));
    free(request);
}

/* Keep the disk busy, so that all that is sent until unplug is there at once. */
static int plug(void)
{
    int fd = server_connect(&s);
    server_stop_commits(&s);
    send_place(fd, "plug", "plug");
    server_await_commit(&s);
    return fd;
}

/* Let the disk go on, when all is there. A thread that is at the disk itself reads it in one go
 * then. */
static void unplug(int fd)
{
    bool reads = s.options.threads > 1 || both_is_postgres();
    for (int i = 0; reads && i < CROWD; i++)
        server_await_read(fds[i]);
    server_let_commits(&s);
    server_expect(fd, 201);
    close(fd);
}

static void one_key_from_64_sides_is_done_once(void **state)
{
    (void)state;
    struct reply first = { 0 };
    int firsts = 0;
    int plugged = plug();
    for (int i = 0; i < CROWD; i++)
        send_place(fds[i], "one", "room");
    unplug(plugged);
    for (int i = 0; i < CROWD; i++) {
        struct reply r;
        assert_true(server_receive(fds[i], &r, false));
        assert_int_equal(r.status, 201);
        assert_non_null(reply_field(&r, "Idempotency-Expires"));
        firsts += reply_field(&r, "Idempotent-Replayed") == NULL;
        if (!first.body) {
            first = r;
            continue;
        }
        assert_string_equal(r.body, first.body);
        reply_free(&r);
    }
    reply_free(&first);
    assert_int_equal(firsts, 1);
    assert_true(talk_figure(&t, "holdfast_holds") == 2); /* the plug too */
    assert_true(talk_figure(&t, "idempotency_key_duplicates_total") == CROWD - 1);
    assert_true(talk_figure(&t, "idempotency_key_race_conditions_total") > 0);
    assert_int_equal(talk(&t, "GET /v1/resources/room", NULL, NULL), 200);
    assert_int_equal(reply_number(&t.got, "held"), 1);
}

static void one_key_for_two_requests_is_done_for_one(void **state)
{
    (void)state;
    char ids[2][32] = { "", "" };
    int plugged = plug();
    for (int i = 0; i < CROWD; i++)
        send_place(fds[i], "one", i % 2 ? "odd" : "even");
    unplug(plugged);
    for (int i = 0; i < CROWD; i++) {
        struct reply r;
        assert_true(server_receive(fds[i], &r, false));
        if (r.status == 201) {
            if (!ids[i % 2][0])
                snprintf(ids[i % 2], sizeof ids[0], "%s", reply_text(&r, "id"));
            assert_string_equal(reply_text(&r, "id"), ids[i % 2]);
        } else {
            assert_int_equal(r.status, 422);
            assert_string_equal(reply_text(&r, "code"), "token-collision");
        }
        reply_free(&r);
    }
    assert_true((ids[0][0] == 0) != (ids[1][0] == 0)); /* one of the two has won */
    assert_true(talk_figure(&t, "holdfast_holds") == 2);
    assert_true(talk_figure(&t, "holdfast_key_collisions_total") == CROWD / 2);
}

/* Everybody wants one of the few units, and gives it back: no more are ever out than there are. */
static void capacity_is_never_passed(void **state)
{
    (void)state;
    enum { ROUNDS = 12, RESOURCES = 4, CAPACITY = 5 };
    char key[32], path[100];
    unsigned placed = 0;
    for (int i = 0; i < RESOURCES; i++)
        assert_int_equal(talkf(&t, NULL, "{\"capacity\":5}", "PUT /v1/resources/r%d", i), 200);
    for (int round = 0; round < ROUNDS; round++) {
        char ids[CROWD][32] = { "" };
        int held[RESOURCES] = { 0 };
        for (int i = 0; i < CROWD; i++) {
            char resource[8];
            snprintf(key, sizeof key, "p%d-%d", round, i);
            snprintf(resource, sizeof resource, "r%d", i % RESOURCES);
            send_place(fds[i], key, resource);
        }
        for (int i = 0; i < CROWD; i++) {
            struct reply r;
            assert_true(server_receive(fds[i], &r, false));
            assert_true(r.status == 201 || r.status == 409);
            if (r.status == 201) {
                snprintf(ids[i], sizeof ids[i], "%s", reply_text(&r, "id"));
                held[i % RESOURCES]++;
                placed++;
            }
            reply_free(&r);
        }
        for (int i = 0; i < RESOURCES; i++) {
            assert_int_equal(held[i], CAPACITY); /* as many as there are, and not one more */
            assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/resources/r%d", i), 200);
            assert_int_equal(reply_number(&t.got, "held"), CAPACITY);
            assert_int_equal(reply_number(&t.got, "available"), 0);
        }
        for (int i = 0; i < CROWD;
             i++) { /* give back, and ask for it again at once, each on another connection */
            char fields[64];
            if (!ids[i][0])
                continue;
            snprintf(path, sizeof path, "POST /v1/holds/%.31s/release", ids[i]);
            snprintf(fields, sizeof fields, "Idempotency-Key: e%d-%d\r\n", round, i);
            char *request = server_request(path, fields, NULL);
            assert_true(server_send_text(fds[i], request));
            assert_true(server_send_text(fds[(i + 1) % CROWD], request));
            free(request);
        }
        for (int i = 0; i < CROWD; i++)
            for (int from = i ? i - 1 : CROWD - 1, k = 0; k < 2; k++) {
                struct reply r;
                if (!ids[k ? i : from][0])
                    continue;
                assert_true(server_receive(fds[i], &r, false));
                assert_int_equal(r.status, 200);
                assert_true(reply_has(&r, "\"state\":\"released\""));
                reply_free(&r);
            }
    }
    assert_int_equal(placed, ROUNDS * RESOURCES * CAPACITY);
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), placed);
}

/* With several threads, the disk may take a batch in parts; but never an operation at a time. */
static void batches_of_many_share_commits(void **state)
{
    (void)state;
    enum { LINES = 200 };
    char *body = malloc(LINES * 128);
    assert_non_null(body);
    for (int i = 0; i < CROWD; i++) {
        size_t size = 0;
        for (int k = 0; k < LINES; k++) /* half of the keys are everybody's */
            size += (size_t)sprintf(body + size,
                                    "{\"op\":\"place_hold\",\"key\":\"b%d-%d\",\"resource\":\"b%d-%"
                                    "d\",\"requester\":\"q\",\"duration\":\"1h\"}\n",
                                    k % 2 ? i : 0, k, k % 2 ? i : 0, k);
        char *request = server_request("POST /v1/batch", "", body);
        assert_true(server_send_text(fds[i], request));
        free(request);
    }
    free(body);
    for (int i = 0; i < CROWD; i++) {
        struct reply r;
        int lines = 0;
        assert_true(server_receive(fds[i], &r, false));
        assert_int_equal(r.status, 200);
        for (const char *at = r.body; (at = strstr(at, "{\"status\":201,")) != NULL; at++) {
            char expected[32];
            snprintf(expected, sizeof expected, "\"resource\":\"b%d-%d\"", lines % 2 ? i : 0,
                     lines);
            const char *found = strstr(at, expected), *next = strchr(at, '\n');
            assert_true(found && found < next);
            lines++;
        }
        assert_int_equal(lines, LINES);
        reply_free(&r);
    }
    assert_true(talk_figure(&t, "holdfast_holds") == LINES / 2 + CROWD * LINES / 2);
    assert_true(talk_figure(&t, "holdfast_batches_total") <= CROWD * LINES / 16);
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), LINES / 2 + CROWD * LINES / 2);
}

/* Lines that wait for the disk are counted over all connections, so that their memory has a limit:
 * a batch beyond it waits, or is refused as a whole. */
static void batches_beyond_the_limit_of_lines_wait_or_are_refused(void **state)
{
    (void)state;
    enum { BATCHES = 24, LINES = 8000 };
    int done = 0, refused = 0;
    char *body = malloc(LINES * 100);
    assert_non_null(body);
    server_stop_commits(&s);
    for (int i = 0; i < BATCHES; i++) {
        size_t size = 0;
        for (int k = 0; k < LINES; k++)
            size += (size_t)sprintf(
                body + size, "{\"op\":\"write\",\"key\":\"b%d-%d\",\"name\":\"x\",\"value\":%d}\n",
                i, k, k);
        char *request = server_request("POST /v1/batch", "", body);
        assert_true(server_send_text(fds[i], request));
        free(request);
    }
    free(body);
    server_let_commits(&s);
    for (int i = 0; i < BATCHES; i++) {
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
    }
    assert_true(done >= 8);
    assert_int_equal(done + refused, BATCHES);
    /* All of a batch, or nothing. A database is counted now and then. */
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk_figure(&t, "idempotency_table_size") != done * LINES; server_pause_ms(100))
        assert_true(server_clock_ms() < until);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_4(name) cmocka_unit_test_setup_teardown(name, setup_4_threads, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_key_from_64_sides_is_done_once),
        TEST_4(one_key_from_64_sides_is_done_once),
        TEST(one_key_for_two_requests_is_done_for_one),
        TEST_4(one_key_for_two_requests_is_done_for_one),
        TEST(capacity_is_never_passed),
        TEST_4(capacity_is_never_passed),
        TEST(batches_of_many_share_commits),
        TEST_4(batches_of_many_share_commits),
        TEST_4(batches_beyond_the_limit_of_lines_wait_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

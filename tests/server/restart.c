/* Restarts under load: whatever was acknowledged is there, once, with the same answer, however the
 * server went. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "server/kit/talk.h"
#include "server/kit/text.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <dirent.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 4, CALLS_MAX = 20000, ANSWER_MAX = 400, SHARED = 8 };

/* What a client was told, in memory that it shares with the test. */
struct told {
    int status;
    char body[ANSWER_MAX];
};

struct ledger {
    _Atomic bool stop;
    struct {
        _Atomic int count; /* told[0 .. count) are acknowledged */
        _Atomic uint64_t attempts;
        char complaint[600];
        struct told told[CALLS_MAX];
    } clients[CLIENTS];
};

static struct server s;
static struct ledger *ledger;

static int start_with(unsigned threads)
{
    server_init(&s);
    s.options.threads = threads;
    s.options.log_duplicates = false;
    s.options.store.segment_max_bytes = 2 << 20;
    s.options.store.snapshot_every_bytes = 2 << 20;
    server_start(&s);
    server_fix_port(&s);
    ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(ledger != MAP_FAILED);
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
    munmap(ledger, sizeof *ledger);
    server_end(&s);
    return 0;
}

/* ---- Clients, each in a process of its own ---- */

/* Call `number` of a client: mostly a hold that only it wants, sometimes one of a few that all
 * want. */
static char *request_of(int client, int number)
{
    char fields[64], body[128];
    snprintf(fields, sizeof fields, "Idempotency-Key: c%d-%d\r\n", client, number);
    if (number % 5 == 0)
        snprintf(body, sizeof body,
                 "{\"resource\":\"shared %d\",\"requester\":\"c%d\",\"duration\":\"1h\"}",
                 number % SHARED, client);
    else
        snprintf(body, sizeof body,
                 "{\"resource\":\"c%d-%d\",\"requester\":\"c%d\",\"duration\":\"1h\"}", client,
                 number, client);
    return server_request("POST /v1/holds", fields, body);
}

static _Noreturn void complain(int client, const char *what, int number, const struct reply *r)
{
    snprintf(ledger->clients[client].complaint, sizeof ledger->clients[client].complaint,
             "%s, call %d: %d %s", what, number, r->status, r->body ? r->body : "");
    _exit(1);
}

/* One answer, or none because the server went away. */
static bool attempt(int *fd, const char *request, struct reply *r)
{
    *r = (struct reply){ 0 };
    if (*fd < 0)
        *fd = server_try_connect(&s);
    if (*fd >= 0 && server_send_text(*fd, request) && server_receive(*fd, r, false)) {
        const char *connection = reply_field(r, "Connection");
        if (connection && strcmp(connection, "close") == 0) {
            close(*fd);
            *fd = -1;
        }
        return true;
    }
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return false;
}

/* Ask until there is an answer that is not "not now". */
static void insist(int client, int number, int *fd, struct reply *r)
{
    char *request = request_of(client, number);
    for (int64_t until = server_clock_ms() + 2 * SERVER_PATIENCE_MS;;) {
        ledger->clients[client].attempts++;
        bool answered = attempt(fd, request, r);
        if (answered && (r->status == 201 || r->status == 409))
            break;
        if (answered && r->status != 503)
            complain(client, "an answer that cannot be", number, r);
        if (server_clock_ms() > until)
            complain(client, "no answer for two minutes", number, r);
        reply_free(r);
        server_pause_ms(1);
    }
    free(request);
}

static _Noreturn void client_run(int client)
{
    int fd = -1;
    uint64_t random = (uint64_t)client + 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int number = 0; !ledger->stop && number < CALLS_MAX; number++) {
        struct told *told = &ledger->clients[client].told[number];
        struct reply r;
        insist(client, number, &fd, &r);
        if (r.body_size >= ANSWER_MAX)
            complain(client, "a long answer", number, &r);
        told->status = r.status;
        memcpy(told->body, r.body, r.body_size + 1);
        reply_free(&r);
        ledger->clients[client].count = number + 1;
        /* Now and then, something of before again: it must be what it was. */
        int old = (int)test_below(&random, (uint64_t)number + 1);
        told = &ledger->clients[client].told[old];
        insist(client, old, &fd, &r);
        if (r.status != told->status || strcmp(r.body, told->body) != 0 ||
            !reply_field(&r, "Idempotent-Replayed"))
            complain(client, "another answer than before", old, &r);
        reply_free(&r);
    }
    _exit(0);
}

static void clients_start(pid_t pids[CLIENTS])
{
    fflush(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            client_run(i);
    }
}

/* How many calls of all clients are acknowledged. */
static int calls_done(void)
{
    int done = 0;
    for (int i = 0; i < CLIENTS; i++)
        done += ledger->clients[i].count;
    return done;
}

/* Wait until the clients have made so many more calls. */
static void await_calls(int more)
{
    int wanted = calls_done() + more;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; calls_done() < wanted;
         server_pause_ms(1))
        if (server_clock_ms() > until)
            break; /* the clients complain about what they have not got */
}

static void clients_stop(const pid_t pids[CLIENTS])
{
    bool fine = true;
    ledger->stop = true;
    for (int i = 0; i < CLIENTS; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        fine = fine && status == 0;
    }
    for (int i = 0; !fine && i < CLIENTS; i++)
        fail_msg("client %d: %s", i, ledger->clients[i].complaint);
}

/* ---- The judge ---- */

/* All that was told is what the server says now, by key, and there is nothing else. */
static void ledger_check(void)
{
    struct talk t;
    uint64_t placed = 0, shared[SHARED] = { 0 };
    talk_open(&t, &s);
    for (int i = 0; i < CLIENTS; i++) {
        for (int number = 0; number < ledger->clients[i].count; number++) {
            const struct told *told = &ledger->clients[i].told[number];
            char expected[ANSWER_MAX + 64];
            assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/tokens/c%d-%d", i, number), 200);
            snprintf(expected, sizeof expected, "\"status\":%d,\"body\":%s}", told->status,
                     told->body);
            if (!reply_has(&t.got, expected))
                fail_msg("c%d-%d: expected %s, got %s", i, number, expected, t.got.body);
            placed += told->status == 201;
            shared[number % SHARED] += told->status == 201 && number % 5 == 0;
        }
    }
    for (int i = 0; i < SHARED; i++)
        assert_true(shared[i] <= 1);
    assert_true(talk_figure(&t, "holdfast_holds") == (double)placed);
    char next[32] = "";
    uint64_t listed = 0;
    do {
        assert_int_equal(talkf(&t, NULL, NULL, "GET /v1/holds?limit=1000&cursor=%s", next), 200);
        for (const char *at = t.got.body; (at = strstr(at, "\"placed_at\"")) != NULL; at++)
            listed++;
        snprintf(next, sizeof next, "%s", reply_text(&t.got, "next_cursor"));
    } while (next[0]);
    assert_int_equal(listed, placed);
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), placed);
}

static void nothing_is_lost_or_done_twice(void **state)
{
    (void)state;
    const int restarts = both_is_postgres() ? 10 : 25;
    uint64_t random = test_seed("restart", 20261116);
    pid_t pids[CLIENTS];
    clients_start(pids);
    for (int i = 0; i < restarts; i++) {
        await_calls(120 / restarts);
        atomic_store(&s.io->slow_sync_us,
                     (int)test_below(&random, 2000));   /* wider and narrower windows */
        server_pause_ms((int)test_below(&random, 100)); /* so that it ends at any moment */
        if (test_below(&random, 3) == 0)
            assert_int_equal(server_stop(&s), 0);
        else
            server_kill(&s);
        server_start(&s);
    }
    await_calls(1);
    clients_stop(pids);
    uint64_t calls = (uint64_t)calls_done(), attempts = 0;
    for (int i = 0; i < CLIENTS; i++)
        attempts += ledger->clients[i].attempts;
    assert_true(calls > 100);
    assert_true(attempts > 2 * calls); /* some had to be sent again */
    ledger_check();
}

/* ---- Single windows ---- */

static void a_crash_between_commit_and_answer_is_mended_by_the_retry(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *request = request_of(0, i + 1);
        struct reply first, again;
        server_stop_commits(&s);
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, request));
        server_await_commit(&s); /* it is written, and not yet acknowledged */
        server_kill(&s);
        assert_false(server_receive(fd, &first, false));
        close(fd);
        server_let_commits(&s);
        server_start(&s);
        fd = server_connect(&s);
        for (int k = 0; k < 2; k++) {
            assert_true(server_send_text(fd, request));
            assert_true(server_receive(fd, k ? &again : &first, false));
        }
        assert_int_equal(first.status, 201);
        /* which goes on with it, or notices in time that nobody is there any more */
        if (!both_is_postgres())
            assert_non_null(reply_field(&first, "Idempotent-Replayed"));
        assert_non_null(reply_field(&again, "Idempotent-Replayed"));
        assert_string_equal(first.body, again.body);
        reply_free(&first);
        reply_free(&again);
        close(fd);
        free(request);
    }
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), 3);
}

static void sigterm_finishes_what_is_in_flight(void **state)
{
    (void)state;
    enum { CALLERS = 8 };
    int fds[CALLERS], idle = server_connect(&s), unfinished = server_connect(&s);
    struct reply r;
    assert_true(server_call(idle, "GET /healthz", "", NULL, &r));
    reply_free(&r);
    assert_true(server_send_text(
        unfinished,
        "POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: half\r\nContent-Length: "
        "100\r\n\r\n{\"resource\":"));
    server_stop_commits(&s);
    for (int i = 0; i < CALLERS; i++) {
        char *request = request_of(i, 1);
        fds[i] = server_connect(&s);
        assert_true(server_send_text(fds[i], request));
        free(request);
    }
    server_await_commit(&s);
    server_await_read(unfinished);
    int64_t begun = server_clock_ms();
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    server_let_commits(&s);
    int answered = 0;
    bool there[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        there[i] = server_receive(fds[i], &r, false);
        answered += there[i] && r.status == 201;
        reply_free(&r);
        close(fds[i]);
    }
    assert_int_equal(answered, CALLERS);
    assert_true(server_closed(idle, SERVER_PATIENCE_MS));
    assert_true(server_closed(unfinished, SERVER_PATIENCE_MS));
    close(idle);
    close(unfinished);
    assert_int_equal(server_wait(&s), 0);
    assert_true(server_clock_ms() - begun < 20000); /* 30 s if it waited for the unfinished one */
    char *log = server_log(&s);
    assert_non_null(strstr(log, " stopping "));
    assert_non_null(strstr(log, " stopped "));
    free(log);
    server_start(&s);
    for (int i = 0; i < CALLERS;
         i++) { /* who was answered finds it done; the others can do it now */
        char *request = request_of(i, 1);
        int fd = server_connect(&s);
        assert_true(server_send_text(fd, request));
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 201);
        if (there[i])
            assert_non_null(reply_field(&r, "Idempotent-Replayed"));
        reply_free(&r);
        close(fd);
        free(request);
    }
    server_ask(&s, "GET /v1/tokens/half", "", NULL, &r);
    assert_int_equal(r.status, 404);
    reply_free(&r);
}

/* Enough for an export that takes a moment. */
static void fill(void)
{
    enum { LINES = 8000 };
    struct talk t;
    char *batch = malloc(LINES * 128);
    size_t size = 0;
    assert_non_null(batch);
    for (int i = 0; i < LINES; i++)
        size += (size_t)sprintf(
            batch + size, "{\"op\":\"write\",\"key\":\"w%d\",\"name\":\"n%d\",\"value\":%d}\n", i,
            i, i);
    talk_open(&t, &s);
    assert_int_equal(talk(&t, "POST /v1/batch", NULL, batch), 200);
    talk_close(&t);
    free(batch);
}

static int export_files_in(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        count += strncmp(e->d_name, "export", 6) == 0;
    closedir(dir);
    return count;
}

/* How many files of an export there are. */
static int export_files(void)
{
    glob_t found;
    char pattern[600];
    int count = 0;
    snprintf(pattern, sizeof pattern, "%s/%s", s.dir, both_is_postgres() ? "holdfast-*" : "data");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        count += export_files_in(found.gl_pathv[i]);
    globfree(&found);
    return count;
}

/* A connection with an export that has begun. */
static int export_begun(void)
{
    int fd = server_connect(&s);
    assert_true(server_send_request(fd, "GET /v1/export?format=sqlite", "", NULL));
    watch_await_file(&s, "/export.");
    return fd;
}

static void sigterm_waits_for_a_long_question(void **state)
{
    (void)state;
    struct reply r;
    fill();
    int fd = export_begun(); /* one that has not would be refused */
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 200);
    assert_memory_equal(r.body, "SQLite format 3", 16);
    reply_free(&r);
    close(fd);
    assert_int_equal(server_wait(&s), 0);
}

/* What is left of an export that a crash cut short is neither in the way of the next one nor there
 * for ever. */
static void a_crash_in_an_export_leaves_nothing(void **state)
{
    (void)state;
    struct reply r;
    both_needs_files();
    fill();
    /* One that is made before the server stands still has no name any more. */
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;; server_thaw(&s)) {
        int fd = export_begun();
        server_freeze(&s);
        close(fd);
        if (export_files() > 0)
            break;
        assert_true(server_clock_ms() < until);
    }
    server_kill(&s);
    assert_int_equal(export_files(), 1);
    server_start(&s);
    server_ask(&s, "GET /v1/export?format=sqlite", "", NULL, &r);
    assert_int_equal(r.status, 200);
    reply_free(&r);
    assert_int_equal(export_files(), 0);
}

/* Two servers on one directory: the second says who has it. */
static void a_directory_has_one_server(void **state)
{
    (void)state;
    both_needs_files();
    struct server other = s;
    other.options.listen = "127.0.0.1:0";
    other.pid = 0;
    assert_int_equal(server_start_fails(&other), 3);
    char *log = server_log(&s), url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", s.port);
    assert_non_null(strstr(log, url));
    free(log);
    /* And on one port. */
    other = s;
    char elsewhere[600];
    snprintf(elsewhere, sizeof elsewhere, "%s/other", s.dir);
    other.options.data = elsewhere;
    other.pid = 0;
    assert_int_equal(server_start_fails(&other), 3);
    log = server_log(&s);
    assert_non_null(strstr(log, s.address));
    free(log);
}

static const char hold_body[] = "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}";

/* A trace and an export read the journal's files, where a batch stands before it is synced. They
 * waited for nobody and told of holds that a power cut would have undone. */
static void nothing_is_shown_from_the_files_before_it_is_durable(void **state)
{
    (void)state;
    static const char *const questions[] = { "GET /v1/trace/undurable",
                                             "GET /v1/export?format=jsonl", "GET /v1/audit" };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        struct server own;
        struct reply r;
        server_init(&own);
        own.options.threads = 2;
        server_start(&own);
        server_ask_keyed(&own, "POST /v1/holds", "first", hold_body, &r);
        reply_free(&r);
        server_stop_commits(&own);
        char *place =
            server_request("POST /v1/holds", "Idempotency-Key: undurable\r\n",
                           "{\"resource\":\"undurable\",\"requester\":\"q\",\"duration\":\"1h\"}");
        int fd = server_connect(&own), asker = server_connect(&own);
        assert_true(server_send_text(fd, place));
        server_await_commit(&own); /* it is written, and the disk is at work */
        assert_true(server_send_request(asker, questions[i], "", NULL));
        server_await_read(asker);
        /* An answer that comes before the disk is done does not know of it. 500 ms are for an
         * answer that does to come; if it takes longer, this test misses it. An audit names
         * nothing, but it counts: it waits for the disk, too. */
        bool early = poll(&(struct pollfd){ .fd = asker, .events = POLLIN }, 1, 500) == 1;
        assert_false(early && i == 2 && !both_is_postgres());
        if (!early)
            server_let_commits(&own);
        assert_true(server_receive(asker, &r, false));
        assert_false(early && r.status == 200 && reply_has(&r, "undurable"));
        reply_free(&r);
        server_let_commits(&own);
        assert_true(server_receive(fd, &r, false));
        assert_int_equal(r.status, 201);
        reply_free(&r);
        close(fd);
        close(asker);
        free(place);
        server_end(&own);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_4(name) cmocka_unit_test_setup_teardown(name, setup_4_threads, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_lost_or_done_twice),
        TEST_4(nothing_is_lost_or_done_twice),
        TEST(a_crash_between_commit_and_answer_is_mended_by_the_retry),
        TEST_4(a_crash_between_commit_and_answer_is_mended_by_the_retry),
        TEST(sigterm_finishes_what_is_in_flight),
        TEST_4(sigterm_finishes_what_is_in_flight),
        TEST(sigterm_waits_for_a_long_question),
        TEST(a_crash_in_an_export_leaves_nothing),
        TEST(a_directory_has_one_server),
        cmocka_unit_test(nothing_is_shown_from_the_files_before_it_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

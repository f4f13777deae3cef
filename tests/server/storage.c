/* A disk that is full or fails, a memory limit, and the time before the store is open: what is
 * refused, what goes on. */
#include "server/kit/case.h"
#include "server/kit/text.h"

#include <signal.h>
#include <unistd.h>

#define PLACE "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

static void make(struct server *server)
{
    server_init(server);
    server->options.store.segment_max_bytes = 2 << 20;
}

/* ---- A full disk ---- */

/* Write so many bytes under a new key; the status. */
static int write_bytes(size_t size)
{
    static int number;
    static char body[60100];
    char key[32];
    snprintf(key, sizeof key, "big-%d", number++);
    strcpy(body, "{\"value\":\"");
    memset(body + 10, 'v', size);
    strcpy(body + 10 + size, "\"}");
    return talk(&t, "PUT /v1/registers/big", key, body);
}

/* Until not even the smallest write has room in what was prepared before. */
static void fill_up(void)
{
    atomic_store(&s.io->room, 0);
    for (size_t size = 60000; size > 0; size = size > 1 ? 1 : 0) {
        int status = 200;
        for (int i = 0; status == 200; i++) {
            assert_true(i < 400);
            status = write_bytes(size);
        }
        talk_refused(&t, 503, "storage-failure");
        assert_true(reply_has(&t.got, "\"detail\":\"Out of disk space. Nothing was changed"));
        talk_unkeyed(&t);
    }
}

/* One of each, so that there is something to ask for. */
static void furnish(void)
{
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE), 409);
    assert_int_equal(talk(&t, "PUT /v1/guards/open", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(talk(&t, "PUT /v1/guards/closed", NULL,
                          "{\"window\":\"1h\",\"on_unavailable\":\"closed\"}"),
                     200);
    assert_int_equal(talk(&t, "POST /v1/guards/open/record", NULL, "{\"identity\":\"before\"}"),
                     200);
    assert_int_equal(talk(&t, "POST /v1/guards/closed/record", NULL, "{\"identity\":\"before\"}"),
                     200);
}

/* What a store that takes nothing new still does. */
static void goes_on(void)
{
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE), 409);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1",
                          "{\"resource\":\"x\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     422);
    static const char *const reads[] = { "GET /healthz",          "GET /v1/tokens/k1",
                                         "GET /v1/resources/r",   "GET /v1/guards/open",
                                         "GET /v1/holds",         "GET /v1/guards/open/entries",
                                         "GET /v1/registers/big", "GET /v1/resources",
                                         "GET /metrics",          "GET /" };
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (talk(&t, reads[i], NULL, NULL) != 200)
            fail_msg("%s: %d %s", reads[i], t.got.status, t.got.body);
    static const char *const guards[] = { "open", "closed" };
    for (size_t i = 0; i < 2; i++) {
        char name[16];
        double missed = talk_figure(&t, "holdfast_guard_misses_total");
        /* Recording is always fine, and the guard misses it; what was recorded before is seen, and
         * asking is only reading. */
        snprintf(name, sizeof name, "%s", guards[i]);
        assert_int_equal(
            talkf(&t, NULL, "{\"identity\":\"new\"}", "POST /v1/guards/%s/record", name), 200);
        talk_is(&t, "{\"ok\":true}");
        assert_true(talk_figure(&t, "holdfast_guard_misses_total") > missed);
        assert_int_equal(
            talkf(&t, NULL, "{\"identity\":\"new\"}", "POST /v1/guards/%s/check", name), 200);
        talk_is(&t, "{\"seen\":false}");
        assert_int_equal(
            talkf(&t, NULL, "{\"identity\":\"before\"}", "POST /v1/guards/%s/check", name), 200);
        assert_true(reply_has(&t.got, "{\"seen\":true,\"recorded_at\":"));
        /* Whether to let in what could not be recorded is for the guard's owner to say. */
        assert_int_equal(
            talkf(&t, NULL, "{\"identity\":\"new\"}", "POST /v1/guards/%s/admit", name), 200);
        talk_is(&t, i ? "{\"seen\":true}" : "{\"seen\":false}");
    }
}

static void what_is_new_is_refused(void)
{
    static const char *const writes[][2] = {
        { "POST /v1/holds", "{\"resource\":\"n\",\"requester\":\"q\",\"duration\":\"1h\"}" },
        { "POST /v1/holds/none/confirm", "{}" },
        { "PUT /v1/resources/n", "{\"capacity\":1}" },
        { "PUT /v1/guards/n", "{\"window\":\"1h\"}" },
        { "POST /v1/claims", "{\"key\":\"refused\",\"payload\":1}" },
        { "POST /v1/leases/n", "{\"holder\":\"h\",\"ttl\":\"1h\"}" },
        { "PUT /v1/registers/n", "{\"value\":1}" },
        { "POST /v1/registers/m/merge", "{\"type\":\"max\",\"value\":1}" },
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        talk(&t, writes[i][0], "refused", writes[i][1]);
        talk_refused(&t, 503, "storage-failure");
        talk_unkeyed(&t);
    }
    assert_int_equal(talk(&t, "GET /v1/tokens/refused", NULL, NULL), 404);
    assert_int_equal(
        talk(&t, "POST /v1/batch", NULL,
             "{\"op\":\"write\",\"key\":\"refused\",\"name\":\"x\",\"value\":1}\n"
             "{\"op\":\"place_hold\",\"key\":\"k1\",\"resource\":\"r\",\"requester\":\"q\","
             "\"duration\":\"1h\"}\n"),
        200);
    assert_true(reply_has(&t.got, "{\"status\":503,\"replayed\":false,"));
    assert_true(reply_has(&t.got, "{\"status\":201,\"replayed\":true,"));
}

static void work_resumes(void)
{
    int status = 503;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         status == 503 && server_clock_ms() < until; server_pause_ms(20)) {
        status = talk(&t, "POST /v1/holds", "refused",
                      "{\"resource\":\"n\",\"requester\":\"q\",\"duration\":\"1h\"}");
    }
    assert_int_equal(status, 201);
    talk_first(&t); /* the refusals were not remembered */
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 200);
    talk_is(&t, "{\"ready\":true}");
    assert_true(talk_figure(&t, "holdfast_out_of_space") == 0);
}

static void a_full_disk_takes_nothing_new_and_goes_on(void **state)
{
    (void)state;
    furnish();
    fill_up();
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 503);
    talk_is(&t, "{\"ready\":false,\"why\":\"out of space\"}");
    what_is_new_is_refused();
    goes_on();
    assert_true(talk_figure(&t, "holdfast_out_of_space") == 1);
    assert_true(talk_figure(&t, "holdfast_ready") == 0);
    assert_true(talk_figure(&t, "holdfast_storage_failures_total") >= 8);
    atomic_store(&s.io->room, -1);
    work_resumes();
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), 2);
}

/* The same across a restart: a store opens on a full disk, and what it has is there. */
static void a_server_starts_on_a_full_disk(void **state)
{
    (void)state;
    furnish();
    fill_up();
    case_restart();
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    atomic_store(&s.io->room, -1);
    work_resumes();
}

/* ---- A limit of memory ---- */

static void a_memory_limit_takes_nothing_new_and_goes_on(void **state)
{
    (void)state;
    s.options.store.memory_max_bytes = 6 << 20;
    case_restart();
    furnish();
    char *batch = malloc(8192 * 128);
    assert_non_null(batch);
    bool full = false;
    for (int round = 0; !full; round++) {
        size_t size = 0;
        assert_true(round < 60);
        for (int i = 0; i < 8000; i++)
            size += (size_t)sprintf(
                batch + size,
                "{\"op\":\"write\",\"key\":\"m%d-%d\",\"name\":\"big\",\"value\":%d}\n", round, i,
                i);
        assert_int_equal(talk(&t, "POST /v1/batch", NULL, batch), 200);
        full = reply_has(&t.got, "{\"status\":503,");
    }
    free(batch);
    assert_int_equal(talk(&t, "POST /v1/holds", "refused",
                          "{\"resource\":\"n\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     503);
    talk_refused(&t, 503, "storage-failure");
    talk_unkeyed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "GET /v1/registers/big", NULL, NULL), 200);
    assert_int_equal(talk(&t, "POST /v1/guards/open/record", NULL, "{\"identity\":\"new\"}"), 200);
    talk_is(&t, "{\"ok\":true}");
    assert_true(talk_figure(&t, "holdfast_memory_bytes") <= 6 << 20);
    /* More memory, and it goes on. */
    s.options.store.memory_max_bytes = 0;
    case_restart();
    work_resumes();
}

/* ---- A disk that fails ---- */

static void await_syncs(uint64_t count)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; atomic_load(&s.io->syncs) < count;
         server_pause_ms(1))
        assert_true(server_clock_ms() < until);
}

/* The next write is the one that is meant: the background thread writes files other than its note
 * `closed`, which is left out of the faults, only when a quarter of a segment is used. */
static void a_failed_write(_Atomic int *countdown)
{
    struct reply r;
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    char id[32];
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    int fd = server_connect(&s), other = server_connect(&s);
    assert_true(server_call(other, "GET /healthz", "", NULL, &r));
    reply_free(&r);
    atomic_store(countdown, 1);
    assert_true(
        server_send_request(fd, "POST /v1/holds", "Idempotency-Key: k2\r\n",
                            "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}"));
    assert_false(server_receive(fd, &r, false)); /* nobody is told what is not on disk */
    assert_int_equal(server_wait(&s), 3);
    close(fd);
    close(other);
    char *log = server_log(&s);
    const char *fatal = strstr(log, " error fatal ");
    if (!fatal)
        fail_msg("it did not say why: %s", log);
    assert_non_null(strstr(fatal, "journal"));
    free(log);
    case_restart();
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_string_equal(reply_text(&t.got, "id"), id);
    assert_int_equal(talk_twice(&t, "POST /v1/holds", "k3",
                                "{\"resource\":\"r3\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    for (int i = 0; i < 2; i++) /* the retry finds the truth: done now, or done before */
        assert_int_equal(talk(&t, "POST /v1/holds", "k2",
                              "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                         201);
    talk_replayed(&t);
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(server_audit(&s), 3);
}

static void a_sync_that_fails_ends_the_process(void **state)
{
    (void)state;
    a_failed_write(&s.io->fail_sync);
}

static void a_write_that_fails_ends_the_process(void **state)
{
    (void)state;
    atomic_store(&s.io->torn, 100);
    a_failed_write(&s.io->fail_write);
}

/* Many are in flight when it fails, and many duplicates are being logged: who was answered finds it
 * there. */
static void a_sync_that_fails_under_load_takes_back_nothing(void **state)
{
    (void)state;
    enum { CALLERS = 16, CALLS = 100 };
    int fds[CALLERS], answered[CALLERS];
    char fields[64], body[100];
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    uint64_t before = atomic_load(&s.io->syncs);
    atomic_store(&s.io->fail_sync, 2);
    for (int i = 0; i < CALLERS; i++)
        fds[i] = server_connect(&s);
    for (int k = 0; k < CALLS; k++) {
        if (k == 4) /* what came before has a sync of its own */
            await_syncs(before + 1);
        for (int i = 0; i < CALLERS; i++) {
            snprintf(fields, sizeof fields, "Idempotency-Key: l%d-%d\r\n", i, k);
            snprintf(body, sizeof body,
                     "{\"resource\":\"l%d-%d\",\"requester\":\"q\",\"duration\":\"1h\"}", i, k);
            bool again = k % 2 == 0; /* a duplicate of what is long done */
            (void)server_send_request(fds[i], "POST /v1/holds",
                                      again ? "Idempotency-Key: k1\r\n" : fields,
                                      again ? PLACE : body); /* it may be gone by now */
        }
    }
    for (int i = 0; i < CALLERS; i++) {
        struct reply r;
        for (answered[i] = 0; server_receive(fds[i], &r, false); answered[i]++) {
            assert_int_equal(r.status, 201);
            reply_free(&r);
        }
        close(fds[i]);
    }
    assert_int_equal(server_wait(&s), 3);
    case_restart();
    for (int i = 0; i < CALLERS; i++)
        for (int k = 1; k < answered[i]; k += 2)
            if (talkf(&t, NULL, NULL, "GET /v1/tokens/l%d-%d", i, k) != 200)
                fail_msg("l%d-%d was answered, and is lost", i, k);
    double holds = talk_figure(&t, "holdfast_holds");
    assert_int_equal(server_stop(&s), 0);
    assert_true((double)server_audit(&s) == holds);
}

/* ---- Before the store is open ---- */

/* Start it again, and be there before the store is open, which it is not until
 * server_let_commits. */
static void restart_slowly(void)
{
    server_fix_port(&s); /* it is connected to before it has said where it listens */
    assert_int_equal(server_stop(&s), 0);
    talk_close(&t);
    /* Another configuration is written down when the store is opened, and the disk is busy. */
    s.options.store.idempotency_window_ms = 3600000;
    server_stop_commits(&s);
    server_begin(&s);
    talk_open(&t, &s);
    while (t.fd < 0)
        t.fd = server_try_connect(&s);
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 503);
}

static void nothing_is_served_before_the_store_is_open(void **state)
{
    (void)state;
    static const char *const needs_store[][2] = {
        { "POST /v1/holds", PLACE },
        { "GET /v1/holds", NULL },
        { "GET /v1/holds/x", NULL },
        { "POST /v1/batch", "{}" },
        { "GET /v1/audit", NULL },
        { "GET /v1/trace/x", NULL },
        { "GET /v1/export", NULL },
        { "GET /v1/tokens/x", NULL },
        { "POST /v1/guards/g/check", "{\"identity\":\"i\"}" },
    };
    furnish();
    restart_slowly();
    talk_is(&t, "{\"ready\":false,\"why\":\"recovering\"}");
    for (size_t i = 0; i < sizeof needs_store / sizeof *needs_store; i++) {
        talk(&t, needs_store[i][0], "early", needs_store[i][1]);
        talk_refused(&t, 503, "storage-failure");
        talk_unkeyed(&t);
    }
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
    assert_int_equal(talk(&t, "GET /v1/openapi.json", NULL, NULL), 200);
    assert_int_equal(talk(&t, "GET /", NULL, NULL), 200);
    assert_true(talk_figure(&t, "holdfast_ready") == 0);
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL),
                     503); /* all that was before it was open */
    server_let_commits(&s);
    server_await(&s);
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 200);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "GET /v1/tokens/early", NULL, NULL), 404);
}

static void a_server_can_be_stopped_while_it_recovers(void **state)
{
    (void)state;
    restart_slowly();
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    server_let_commits(&s);
    assert_int_equal(server_wait(&s), 0);
}

static void a_store_that_cannot_be_opened_ends_the_process(void **state)
{
    (void)state;
    furnish();
    assert_int_equal(server_stop(&s), 0);
    talk_close(&t);
    s.options.store.token_max_length = HF_TOKEN_MAX + 1;
    assert_int_equal(server_start_fails(&s), 2);
    s.options.store.token_max_length = 0;
    atomic_store(&s.io->fail_open, 1);
    assert_int_equal(server_start_fails(&s), 3);
    atomic_store(&s.io->fail_open, 0);
    server_start(&s);
    talk_open(&t, &s);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
}

/* A journal that rots under a server: one request fails, the server lives, and the operator hears
 * of it. */

#define PLACE_HOLD(resource) \
    "{\"resource\":\"" resource "\",\"requester\":\"q\",\"duration\":\"1h\"}"

enum { BLOCK = 4096 };

static void make_damaged(struct server *server)
{
    server_init(server);
    server->options.store.segment_max_bytes = 1 << 20;
    server->options.store.keep_plain = true;
}

/* Holds under two keys, in the second and the third batch. */
static void furnish_damaged(void)
{
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE_HOLD("a")), 201);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE_HOLD("b")), 201);
}

static void log_has(const char *text)
{
    char *log = server_log(&s);
    if (!strstr(log, text))
        fail_msg("the log does not say \"%s\":\n%s", text, log);
    free(log);
}

/* The file gets shorter than its mapping: the system's signal is the same as for an unreadable
 * sector. */
static void an_unreadable_sector_fails_one_request(void **state)
{
    (void)state;
    char path[600];
    furnish_damaged();
    snprintf(path, sizeof path, "%s/journal-00000001.log", s.data);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE_HOLD("a")), 201);
    talk_replayed(&t);
    assert_int_equal(truncate(path, 3 * BLOCK), 0);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE_HOLD("b")), 503);
    talk_refused(&t, 503, "storage-failure");
    assert_true(reply_has(&t.got, "\"detail\":\"A record that this call needs cannot be read."));
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE_HOLD("a")), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k3", PLACE_HOLD("c")), 201);
    assert_true(talk_figure(&t, "holdfast_records_unreadable_total") >= 1);
    assert_int_equal(server_stop(&s), 0); /* the log is written behind the answers */
    log_has("journal-00000001.log: cannot read at byte 12400");
    log_has("storage-failure cause=record-unreadable action=place_hold text=");
}

static void again(uint64_t snapshot_every_bytes)
{
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    s.options.store.snapshot_every_bytes = snapshot_every_bytes;
    server_start(&s);
    talk_open(&t, &s);
}

/* Damage before the snapshot, which a slow start has not come to. */
static void damage_found_in_the_background_is_told(void **state)
{
    (void)state;
    static char body[60100];
    char path[600], key[32];
    again(3 << 20);
    strcpy(body, "{\"value\":\"");
    memset(body + 10, 'v', 60000);
    strcpy(body + 60010, "\"}");
    for (int i = 0; i < 80; i++) {
        snprintf(key, sizeof key, "big-%d", i);
        assert_int_equal(talk(&t, "PUT /v1/registers/big", key, body), 200);
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk_figure(&t, "holdfast_snapshots_total") == 0 && server_clock_ms() < until;
         server_pause_ms(20))
        ;
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    snprintf(path, sizeof path, "%s/journal-00000003.log", s.data);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, BLOCK + 500, SEEK_SET), 0);
    assert_int_equal(fputc('x', f), 'x');
    fclose(f);
    atomic_store(&s.io->step_ns, 300000000);
    server_start(&s);
    talk_open(&t, &s);
    atomic_store(&s.io->step_ns, 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk_figure(&t, "holdfast_journal_damaged") == 0 && server_clock_ms() < until;
         server_pause_ms(20))
        ;
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 503);
    talk_is(&t, "{\"ready\":false,\"why\":\"the journal is damaged\"}");
    assert_true(talk_figure(&t, "holdfast_ready") == 0);
    assert_int_equal(talk(&t, "POST /v1/holds", "k9", PLACE_HOLD("z")), 201);
    assert_int_equal(server_stop(&s), 0);
    log_has("the journal is damaged in journal-00000003.log at byte 4096");
    log_has("chain head: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_full_disk_takes_nothing_new_and_goes_on, make, 1),
        SERVER_TEST(a_full_disk_takes_nothing_new_and_goes_on, make, 4),
        SERVER_TEST(a_server_starts_on_a_full_disk, make, 1),
        SERVER_TEST(a_memory_limit_takes_nothing_new_and_goes_on, make, 1),
        SERVER_TEST(a_sync_that_fails_ends_the_process, make, 1),
        SERVER_TEST(a_sync_that_fails_ends_the_process, make, 4),
        SERVER_TEST(a_sync_that_fails_under_load_takes_back_nothing, make, 1),
        SERVER_TEST(a_sync_that_fails_under_load_takes_back_nothing, make, 4),
        SERVER_TEST(a_write_that_fails_ends_the_process, make, 1),
        SERVER_TEST(a_write_that_fails_ends_the_process, make, 4),
        SERVER_TEST(nothing_is_served_before_the_store_is_open, make, 1),
        SERVER_TEST(nothing_is_served_before_the_store_is_open, make, 4),
        SERVER_TEST(a_server_can_be_stopped_while_it_recovers, make, 1),
        SERVER_TEST(a_store_that_cannot_be_opened_ends_the_process, make, 1),
        SERVER_TEST(an_unreadable_sector_fails_one_request, make_damaged, 1),
        SERVER_TEST(an_unreadable_sector_fails_one_request, make_damaged, 4),
        SERVER_TEST(damage_found_in_the_background_is_told, make_damaged, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

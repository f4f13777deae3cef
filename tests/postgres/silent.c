/* The synchronous standby is away, and commits wait for it: the server says so itself, in words of
 * its own, whoever asks or does not ask; and what needs no commit goes on beside those that
 * wait. */
#include "postgres/kit/postgres.h"
#include "server/kit/talk.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include "holdfast.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct postgres a, b; /* the primary and its standby */
static const char short_hold[] =
    "{\"resource\":\"room\",\"requester\":\"guest\",\"duration\":\"2s\"}";
static const char hold[] = "{\"resource\":\"other\",\"requester\":\"guest\",\"duration\":\"1h\"}";

static int begin(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_follow(&b, &a, POSTGRES_SYNC, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

/* ---- Readiness and figures ---- */

static void await_ready(struct talk *t, int status)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk(t, "GET /readyz", NULL, NULL) != status; server_pause_ms(50))
        if (server_clock_ms() > until)
            fail_msg("/readyz is not %d: %s", status, t->got.body);
}

static void is_said(struct talk *t)
{
    if (!strstr(t->got.body, "\"why\":\"the synchronous standbys confirm nothing\""))
        fail_msg("%s", t->got.body);
    assert_true(talk_figure(t, "holdfast_ready") == 0);
    assert_true(talk_figure(t, "holdfast_standby_silent_seconds") >= 4);
    assert_true(talk_figure(t, "holdfast_database_up") == 1);
}

/* Nobody asks for what is in doubt: only a writer waits, and the background thread, which expires a
 * hold. */
static void a_server_says_that_the_standbys_are_silent(void **state)
{
    struct server s;
    struct talk t;
    (void)state;
    server_init(&s);
    s.options.store.postgres = postgres_conninfo(&a);
    server_start(&s);
    talk_open(&t, &s);
    assert_int_equal(talk(&t, "POST /v1/holds", "first", short_hold), 201);
    await_ready(&t, 200);
    assert_true(talk_figure(&t, "holdfast_standby_silent_seconds") == 0);
    postgres_stop(&b, POSTGRES_FAST);
    int writer = server_connect(&s);
    assert_true(server_send_request(writer, "POST /v1/holds", "Idempotency-Key: second\r\n", hold));
    int64_t begun = server_clock_ms();
    await_ready(&t, 503);
    is_said(&t);
    assert_true(watch_log(&s, "the synchronous standbys confirm nothing", 1));
    /* For as long as it lasts, also when the first tries have been given up. */
    while (server_clock_ms() - begun < 20000) {
        assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 503);
        is_said(&t);
        server_pause_ms(500);
    }
    postgres_start(&b);
    await_ready(&t, 200);
    assert_true(talk_figure(&t, "holdfast_standby_silent_seconds") == 0);
    assert_true(watch_log(&s, "the synchronous standbys confirm again", 1));
    char *log = server_log(&s);
    assert_null(strstr(log, "the database cannot be reached")); /* it could, all the time */
    free(log);
    close(writer);
    talk_close(&t);
    server_stop(&s);
    server_end(&s);
}

/* ---- A start ---- */

/* A start changes the configuration; the wait of that for the standby is given up, and with it the
 * start. It must not say that nothing was changed. */
static void a_start_says_that_its_configuration_may_be_in_force(void **state)
{
    struct server s;
    int status;
    (void)state;
    server_init(&s);
    s.options.store.postgres = postgres_conninfo(&a);
    server_start(&s);
    server_stop(&s);
    postgres_stop(&b, POSTGRES_FAST);
    s.options.store.idempotency_window_ms = 12345000;
    server_begin(&s);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         waitpid(s.pid, &status, WNOHANG) == 0; server_pause_ms(20)) {
        postgres_try(
            &a,
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND "
            "query = 'COMMIT'");
        assert_true(server_clock_ms() < until);
    }
    s.pid = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_int_equal(postgres_number(&a, "SELECT idempotency_window_ms FROM holdfast.store"),
                     12345000);
    char *log = server_log(&s);
    if (strstr(log, "nothing was changed") || !strstr(log, "may or may not be in force"))
        fail_msg("%s", log);
    free(log);
    server_end(&s);
}

/* ---- Commands that read the tables ---- */

/* Is the warning there? shows: what the command must show in any case. */
static bool is_warned(const char *command, const char *shows)
{
    char line[600], out[20000];
    snprintf(line, sizeof line, "%s/holdfast %s --postgres '%s' 2>&1", getenv("HF_BUILD"), command,
             postgres_conninfo(&a));
    FILE *f = popen(line, "r");
    assert_non_null(f);
    out[fread(out, 1, sizeof out - 1, f)] = '\0';
    if (pclose(f) != 0 || !strstr(out, shows))
        fail_msg("%s: %s", line, out);
    return strstr(out, "warning: the synchronous standbys have not confirmed all of this") != NULL;
}

/* An operator needs them all the more while a standby is away, and must know what they show. */
static void commands_warn_of_what_no_standby_has(void **state)
{
    static const char *const commands[][2] = { { "audit", "CHAIN" },
                                               { "trace key", "place_hold" },
                                               { "export --format jsonl -", "place_hold" } };
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&a) };
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str("key"),
                                .place_hold = { hf_str("room"), hf_str("guest"), 3600000, 0 } };
    assert_int_equal(hf_do(db, &place, NULL), HF_OK);
    hf_close(db);
    for (int i = 0; i < 3; i++)
        assert_false(is_warned(commands[i][0], commands[i][1]));
    postgres_stop(&b, POSTGRES_FAST);
    for (int i = 0; i < 3; i++)
        assert_true(is_warned(commands[i][0], commands[i][1]));
    postgres_await_number(&a, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                          0);
    postgres_start(&b);
    assert_false(is_warned(commands[1][0], commands[1][1]));
}

/* ---- Lists ---- */

static atomic_bool maintained; /* a step of it is over */

static void *maintain(void *db)
{
    for (bool more = true; more; atomic_store(&maintained, true))
        more = hf_maintain(db);
    return NULL;
}

/* Expire an overdue hold, for which the background thread waits; a list needs no commit. */
static void a_list_does_not_wait_for_the_background_thread(void **state)
{
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&a) };
    struct hf_result got = HF_RESULT_INIT;
    struct hf_page page = { 0 };
    struct hf_stats stats;
    struct hf_error why;
    struct hf_db *db;
    pthread_t thread;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str("key"),
                                .place_hold = { hf_str("room"), hf_str("guest"), 1, 0 } };
    assert_int_equal(hf_do(db, &place, &got), HF_OK);
    assert_int_equal(hf_list(db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page), HF_OK);
    hf_page_clear(&page);
    postgres_stop(&b, POSTGRES_FAST);
    atomic_store(&maintained, false);
    assert_int_equal(pthread_create(&thread, NULL, maintain, db), 0);
    postgres_await_waiting(&a);
    assert_int_equal(hf_list(db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page), HF_OK);
    hf_stats(db, &stats);
    bool waited = atomic_load(&maintained);
    assert_int_equal(page.count, 1);
    assert_int_equal(stats.holds, 1);
    hf_page_clear(&page);
    postgres_start(&b);
    pthread_join(thread, NULL);
    hf_result_clear(&got);
    hf_close(db);
    assert_false(waited);
}

/* ---- Questions ---- */

enum { WRITES = 1000, EVERY_MS = 20 };

struct written {
    struct hf_op op;
    struct hf_request request;
    char key[32], room[32];
};

static atomic_uint answered;

static void write_done(struct hf_op *op, enum hf_status status)
{
    (void)op;
    (void)status;
    atomic_fetch_add(&answered, 1);
}

/* Nobody waits for it: a client that gave up, and another that comes. */
static void write_one(struct hf_db *db, struct written *w, unsigned n)
{
    snprintf(w->key, sizeof w->key, "key-%u", n);
    snprintf(w->room, sizeof w->room, "room-%u", n % 40);
    w->request =
        (struct hf_request){ .action = HF_PLACE_HOLD,
                             .key = hf_str(w->key),
                             .place_hold = { hf_str(w->room), hf_str("guest"), 3600000, 0 } };
    w->op = (struct hf_op){ .request = &w->request, .done = write_done };
    hf_submit(db, &w->op);
}

/* Every session that writes came to wait for the standby, and then for the fate of its commit, so
 * that a question about what the standby has had was not answered either. */
static void questions_go_on_beside_many_writes(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&a) };
    struct hf_result got = HF_RESULT_INIT;
    struct hf_error why;
    struct hf_db *db;
    struct written *writes = calloc(WRITES, sizeof *writes);
    int64_t longest = 0;
    unsigned failed = 0;
    (void)state;
    assert_non_null(writes);
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str("first"),
                                .place_hold = { hf_str("room"), hf_str("guest"), 3600000, 0 } };
    assert_int_equal(hf_do(db, &place, &got), HF_OK);
    struct hf_request ask = { .action = HF_GET_HOLD, .hold = { .id = hf_str(got.answer.hold.id) } };
    assert_int_equal(hf_do(db, &ask, NULL), HF_OK);
    postgres_stop(&b, POSTGRES_FAST);
    unsigned n = 0;
    /* That commits wait is only seen when one has waited for a while. */
    for (struct hf_stats stats = { 0 }; stats.standby_silent_ms == 0; n++) {
        assert_true(n < WRITES / 2);
        write_one(db, &writes[n], n);
        server_pause_ms(EVERY_MS);
        hf_stats(db, &stats);
    }
    for (; n < WRITES && failed == 0 && longest <= 5000; n++) {
        write_one(db, &writes[n], n);
        int64_t begun = server_clock_ms();
        failed += hf_do(db, &ask, NULL) != HF_OK;
        int64_t took = server_clock_ms() - begun;
        longest = took > longest ? took : longest;
        server_pause_ms(EVERY_MS);
    }
    postgres_start(&b);
    hf_flush(db);
    assert_int_equal(atomic_load(&answered), n);
    hf_result_clear(&got);
    hf_close(db);
    free(writes);
    if (failed > 0 || longest > 5000)
        fail_msg("a question had %s answer, after %lld ms", failed ? "no" : "its",
                 (long long)longest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(questions_go_on_beside_many_writes, begin, end),
        cmocka_unit_test_setup_teardown(a_list_does_not_wait_for_the_background_thread, begin, end),
        cmocka_unit_test_setup_teardown(commands_warn_of_what_no_standby_has, begin, end),
        cmocka_unit_test_setup_teardown(a_start_says_that_its_configuration_may_be_in_force, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_server_says_that_the_standbys_are_silent, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

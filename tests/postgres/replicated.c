/* What no standby has is shown to nobody. A commit that waits for its synchronous standby is
 * cancelled, or its session ended, or the primary crashes and starts again: then PostgreSQL shows
 * its rows to everybody, although they are lost with the primary. Two servers of Holdfast must not
 * answer with them until the standby has them; and where the standby is promoted instead, a key has
 * acted once for all that its clients were told.
 *
 * The control: with asynchronous replication the same questions are answered, and what they told is
 * lost. */
#include "crash/check.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <unistd.h>

enum { SERVERS = 2 };

static struct postgres a, b; /* the primary and its standby */
static struct server servers[SERVERS];
static const char hold[] = "{\"resource\":\"room\",\"requester\":\"guest\",\"duration\":\"1h\"}";

/* ---- Two servers on two clusters ---- */

static void server_make(unsigned i)
{
    static char conninfo[POSTGRES_CONNINFO_MAX];
    static const char *argvs[SERVERS][16];
    struct server *s = &servers[i];
    server_init(s);
    s->port = crash_port_find();
    server_fix_port(s);
    postgres_conninfo_pair(conninfo, &a, &b);
    const char *const argv[] = { crash_program(),
                                 "serve",
                                 "--store",
                                 "postgres",
                                 "--postgres",
                                 conninfo,
                                 "--listen",
                                 s->address,
                                 "--threads",
                                 "1",
                                 "--sandbox",
                                 WATCH_SANITIZED ? "off" : "on",
                                 NULL };
    memcpy(argvs[i], argv, sizeof argv);
    s->argv = argvs[i];
    server_start(s);
}

static int ask(unsigned server, const char *what, const char *key, const char *body,
               struct reply *r)
{
    if (key)
        server_ask_keyed(&servers[server], what, key, body, r);
    else
        server_ask(&servers[server], what, "", body, r);
    return r->status;
}

static int status_of(unsigned server, const char *what, const char *key, const char *body)
{
    struct reply r;
    int status = ask(server, what, key, body, &r);
    reply_free(&r);
    return status;
}

/* Is the hold's key answered, and with what it was answered before? It must be 503 or 201. */
static bool is_replayed(unsigned server, const char *key)
{
    struct reply r;
    ask(server, "POST /v1/holds", key, hold, &r);
    if (r.status != 201 && r.status != 503)
        fail_msg("%d %.300s", r.status, r.body);
    bool replayed = r.status == 201 && reply_field(&r, "Idempotent-Replayed");
    reply_free(&r);
    return replayed;
}

static void begin_with(enum postgres_copy how)
{
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_follow(&b, &a, how, 0);
    for (unsigned i = 0; i < SERVERS; i++)
        server_make(i);
    assert_int_equal(status_of(0, "PUT /v1/resources/room", NULL, "{\"capacity\":9}"), 200);
    assert_int_equal(status_of(0, "PUT /v1/guards/seen", NULL, "{\"window\":\"1h\"}"), 200);
    assert_int_equal(status_of(0, "POST /v1/holds", "old", hold), 201);
    /* A server applies the rule of a guard without the database only if it has seen the guard. */
    for (unsigned i = 0; i < SERVERS; i++) {
        assert_true(is_replayed(i, "old"));
        assert_int_equal(status_of(i, "POST /v1/guards/seen/check", NULL, "{\"identity\":\"y\"}"),
                         200);
    }
}

static int end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SERVERS; i++) {
        if (servers[i].pid > 0)
            server_kill(&servers[i]);
        if (servers[i].dir)
            server_end(&servers[i]);
        servers[i].dir = NULL;
    }
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

/* ---- What no standby has ---- */

enum how { CANCELLED, TERMINATED, CRASHED };

/* How many of the rows the primary shows. */
#define SEEN                                                                                \
    "SELECT (SELECT count(*) FROM holdfast.token WHERE key IN ('new', 'claim')) + (SELECT " \
    "count(*) FROM "                                                                        \
    "holdfast.guard_entry)"
enum { ALL_SEEN = 3 };

/* Give up the waits of batches for the standby, again and again until the rows can be seen; and
 * that of a session which writes for the first time, for its own row. */
static void give_up(const char *function)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "SELECT CASE WHEN query = 'COMMIT' THEN %s(pid) WHEN query LIKE 'INSERT%%' THEN "
             "pg_cancel_backend(pid) END FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
             function);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         postgres_number(&a, SEEN) < ALL_SEEN; server_pause_ms(20)) {
        postgres_try(&a, sql);
        assert_true(server_clock_ms() < until);
    }
}

/* The standby is away; a hold, a claim and an identity are asked for at the first server, and
 * nobody reads the answers: they would be 503. */
static void leave_behind(enum how how, int fds[3])
{
    static const char *const calls[][3] = {
        { "POST /v1/holds", "Idempotency-Key: new\r\n", hold },
        { "POST /v1/claims", "", "{\"key\":\"claim\",\"payload\":1}" },
        { "POST /v1/guards/seen/record", "", "{\"identity\":\"x\"}" },
    };
    for (int i = 0; i < 3; i++) {
        fds[i] = server_connect(&servers[0]);
        assert_true(server_send_request(fds[i], calls[i][0], calls[i][1], calls[i][2]));
    }
    postgres_await_waiting(&a);
    if (how == CRASHED) {
        give_up("pg_cancel_backend"); /* so that all three are in its log */
        postgres_stop(&a, POSTGRES_KILL);
        postgres_start(&a);
    } else {
        give_up(how == CANCELLED ? "pg_cancel_backend" : "pg_terminate_backend");
    }
    assert_int_equal(postgres_number(&a, SEEN), ALL_SEEN);
}

/* Everything that would show it, but for the hold by its id. */
static const struct question {
    const char *what, *key, *body;
    int status; /* once the standby has it */
    const char *shows;
    const char *before; /* what it shows until then; NULL: nothing, 503 */
} questions[] = {
    { "POST /v1/holds", "new", hold, 201, "\"held\"", NULL },
    { "GET /v1/holds", NULL, NULL, 200, "\"room\"", NULL },
    { "GET /v1/holds?resource=room", NULL, NULL, 200, "\"room\"", NULL },
    { "GET /v1/tokens/new", NULL, NULL, 200, "place_hold", NULL },
    { "GET /v1/claims/claim", NULL, NULL, 200, "started", NULL },
    { "POST /v1/claims", NULL, "{\"key\":\"claim\",\"payload\":1}", 409, "in-progress", NULL },
    /* By its rule on_unavailable. */
    { "POST /v1/guards/seen/check", NULL, "{\"identity\":\"x\"}", 200, "true", "{\"seen\":false}" },
    { "GET /v1/guards/seen/entries", NULL, NULL, 200, "\"x\"", NULL },
    { "GET /v1/resources/room", NULL, NULL, 200, "\"held\":2", NULL },
    { "GET /v1/resources", NULL, NULL, 200, "\"held\":2", NULL },
    { "GET /v1/trace/new", NULL, NULL, 200, "place_hold", NULL },
    { "GET /v1/export?format=jsonl", NULL, NULL, 200, "\"new\"", NULL },
    { "GET /v1/audit", NULL, NULL, 200, "\"ok\"", NULL },
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* first: ask that server, too, which has calls in doubt of its own: each of its sessions takes ten
 * seconds to give them up. */
static void nobody_is_shown_it(bool first)
{
    char path[80],
        *id = postgres_ask(&a, "SELECT id FROM holdfast.hold ORDER BY ordinal DESC LIMIT 1");
    for (unsigned i = 0; i < QUESTIONS; i++) {
        const struct question *q = &questions[i];
        for (unsigned s = SERVERS; s-- > (first ? 0 : 1);) {
            struct reply r;
            ask(s, q->what, q->key, q->body, &r);
            if (q->before ? strcmp(r.body, q->before) != 0 : r.status != 503)
                fail_msg("%s at server %u: %d %.300s", q->what, s, r.status, r.body);
            reply_free(&r);
        }
    }
    snprintf(path, sizeof path, "GET /v1/holds/%s", id);
    assert_int_equal(status_of(1, path, NULL, NULL), 503);
    free(id);
}

static void everybody_is_shown_it(unsigned server)
{
    for (unsigned i = 0; i < QUESTIONS; i++) {
        const struct question *q = &questions[i];
        struct reply r;
        for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
             (ask(server, q->what, q->key, q->body, &r),
              r.status == 503 || (q->before && !reply_has(&r, q->shows))) &&
             server_clock_ms() < until;
             server_pause_ms(20))
            reply_free(&r);
        if (r.status != q->status || !reply_has(&r, q->shows))
            fail_msg("%s: %d %.300s", q->what, r.status, r.body);
        reply_free(&r);
    }
}

static void leave(int fds[3])
{
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

/* ---- The tests ---- */

static void with(enum how how)
{
    int fds[3];
    begin_with(POSTGRES_SYNC);
    postgres_stop(&b, POSTGRES_FAST);
    leave_behind(how, fds);
    nobody_is_shown_it(how == CANCELLED);
    assert_true(is_replayed(1, "old")); /* which the standby has */
    postgres_start(&b);
    everybody_is_shown_it(1);
    everybody_is_shown_it(0);
    leave(fds);
}

static void what_was_cancelled_is_shown_when_the_standby_has_it(void **state)
{
    (void)state;
    with(CANCELLED);
}

static void what_was_terminated_is_shown_when_the_standby_has_it(void **state)
{
    (void)state;
    with(TERMINATED);
}

static void what_survived_a_crash_is_shown_when_the_standby_has_it(void **state)
{
    (void)state;
    with(CRASHED);
}

/* The primary is gone for good. */
static void promote(void)
{
    postgres_stop(&a, POSTGRES_KILL);
    postgres_start(&b);
    postgres_promote(&b);
}

/* The first answer other than 503 that the key gets. replayed: out. Returns the hold's id. Owned,
 * free with free(). */
static char *first_answer(unsigned server, bool *replayed)
{
    struct reply r;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         ask(server, "POST /v1/holds", "new", hold, &r) == 503 && server_clock_ms() < until;
         server_pause_ms(20))
        reply_free(&r);
    assert_int_equal(r.status, 201);
    char *id = strdup(reply_text(&r, "id"));
    *replayed = reply_field(&r, "Idempotent-Replayed") != NULL;
    reply_free(&r);
    return id;
}

static void where_the_standby_is_promoted_instead_the_key_acts_once(void **state)
{
    int fds[3];
    bool replayed;
    (void)state;
    begin_with(POSTGRES_SYNC);
    postgres_stop(&b, POSTGRES_FAST);
    leave_behind(CANCELLED, fds);
    assert_int_equal(status_of(1, "POST /v1/holds", "new", hold), 503);
    char *lost = postgres_ask(&a, "SELECT id FROM holdfast.hold ORDER BY ordinal DESC LIMIT 1");
    promote();
    /* (The call that was first in doubt may be carried out now, by the server that still has
     * it.) */
    char *one = first_answer(1, &replayed), *other = first_answer(0, &replayed);
    assert_string_equal(one, other);
    assert_true(replayed);
    assert_string_not_equal(one, lost);
    free(one);
    free(other);
    free(lost);
    assert_int_equal(postgres_number(&b, "SELECT count(*) FROM holdfast.hold"), 2); /* old, new */
    leave(fds);
}

/* The control: nobody waits for a standby, so everybody is told, and the key acts again. And no
 * commit was made that only confirms. */
static void without_a_synchronous_standby_it_is_told_and_lost(void **state)
{
    (void)state;
    begin_with(POSTGRES_ASYNC);
    postgres_await_copied(&b, &a);
    postgres_stop(&b, POSTGRES_FAST);
    assert_int_equal(status_of(0, "POST /v1/holds", "new", hold), 201);
    assert_true(is_replayed(1, "new"));
    assert_int_equal(postgres_number(&a, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE "
                                         "'%pg_logical_emit_message%' AND pid <> pg_backend_pid()"),
                     0);
    promote();
    bool replayed;
    free(first_answer(1, &replayed));
    assert_false(replayed);
}

/* A transaction that stays open keeps everything that began behind it in doubt; but not what has
 * been confirmed once. */
static void what_was_confirmed_once_is_shown_whatever_else_is_open(void **state)
{
    (void)state;
    begin_with(POSTGRES_SYNC);
    PGconn *c = postgres_connect(&a);
    PQclear(PQexec(c, "BEGIN"));
    PQclear(PQexec(c, "SELECT pg_current_xact_id()"));
    assert_int_equal(status_of(0, "POST /v1/holds", "new", hold), 201);
    assert_true(is_replayed(1, "new"));
    postgres_stop(&b, POSTGRES_FAST);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_true(is_replayed(i, "new"));
    PQfinish(c);
    postgres_start(&b);
}

/* While a standby is away for long, connections that wait for it do not pile up in the database. */
static void waits_do_not_pile_up(void)
{
    const char *scale = getenv("HF_SCALE");
    if (!scale || strcmp(scale, "full") != 0)
        return;
    for (int64_t until = server_clock_ms() + 50000; server_clock_ms() < until; server_pause_ms(200))
        assert_int_equal(status_of(1, "GET /v1/tokens/old", NULL, NULL), 503);
    assert_in_range(
        postgres_number(&a, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
        1, 2);
}

/* An operator does without the standby. */
static void standby_given_up(void)
{
    postgres_set(&a, "synchronous_standby_names", "");
    postgres_reload(&a);
}

/* One that has never seen a commit replicated has to see one first, and needs no right for that. */
static void a_server_that_was_just_started_knows_nothing(void **state)
{
    (void)state;
    begin_with(POSTGRES_SYNC);
    postgres_stop(&b, POSTGRES_FAST);
    server_kill(&servers[1]);
    server_start(&servers[1]);
    int64_t begun = server_clock_ms();
    assert_int_equal(status_of(1, "POST /v1/holds", "old", hold), 503);
    int64_t waited = server_clock_ms() - begun;
    begun = server_clock_ms();
    assert_int_equal(status_of(1, "GET /v1/tokens/old", NULL, NULL), 503);
    assert_true(server_clock_ms() - begun < waited); /* it is known by now that nobody confirms */
    assert_true(is_replayed(0, "old"));
    waits_do_not_pile_up();
    begun = server_clock_ms();
    assert_int_equal(server_stop(&servers[1]), 0);  /* it does not wait for the standby */
    assert_true(server_clock_ms() - begun < 20000); /* 30 s if it did */
    server_start(&servers[1]);
    assert_int_equal(status_of(1, "GET /v1/tokens/old", NULL, NULL), 503);
    standby_given_up();
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; !is_replayed(1, "old");
         server_pause_ms(20))
        assert_true(server_clock_ms() < until);
    postgres_run(&a, "CREATE ROLE anybody; SET ROLE anybody; SELECT pg_logical_emit_message(true, "
                     "'holdfast', '')");
}

/* Whatever becomes the default. */
static void a_reload_does_not_make_commits_wait_for_less(void **state)
{
    struct reply r;
    (void)state;
    begin_with(POSTGRES_SYNC);
    postgres_set(&a, "synchronous_commit", "off");
    postgres_reload(&a);
    postgres_await_number(&a, "SELECT (current_setting('synchronous_commit') = 'off')::integer", 1);
    assert_true(is_replayed(0, "old")); /* its session has heard of it by now */
    postgres_stop(&b, POSTGRES_FAST);
    int fd = server_connect(&servers[0]);
    assert_true(server_send_request(fd, "POST /v1/holds", "Idempotency-Key: new\r\n", hold));
    postgres_await_number(&a, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                          1);
    postgres_start(&b);
    assert_true(server_receive(fd, &r, false));
    assert_int_equal(r.status, 201);
    reply_free(&r);
    close(fd);
}

/* Does the transaction wait for the standby when it commits? Nobody else does. */
static void waits_at_commit(PGconn *c, const char *query)
{
    assert_int_equal(PQsendQuery(c, query), 1);
    postgres_await_number(&a, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                          1);
    postgres_start(&b);
    for (PGresult *r; (r = PQgetResult(c)); PQclear(r))
        if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
            fail_msg("%s: %s", query, PQresultErrorMessage(r));
    postgres_stop(&b, POSTGRES_FAST);
}

/* An application learns from its COMMIT, whatever a call in its transaction was shown. */
static void the_commit_of_an_application_waits_for_what_it_was_shown(void **state)
{
    (void)state;
    begin_with(POSTGRES_SYNC);
    postgres_run(&a, "SELECT holdfast.place_hold('sql', 'room', 'guest', '1 hour')");
    postgres_stop(&b, POSTGRES_FAST);
    PGconn *c = postgres_connect(&a);
    waits_at_commit(c, "SELECT holdfast.place_hold('sql', 'room', 'guest', '1 hour')");
    waits_at_commit(c, "BEGIN READ ONLY; SELECT holdfast.token_status('sql'); COMMIT");
    waits_at_commit(c, "SELECT holdfast.check_seen('seen', 'x')");
    waits_at_commit(c, "SELECT holdfast.get_resource('room')");
    PQfinish(c);
    postgres_start(&b);
    postgres_await_copied(&b, &a);
    assert_true(
        postgres_try(&b, "SELECT holdfast.get_resource('room')")); /* a standby may be asked */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_was_cancelled_is_shown_when_the_standby_has_it, end),
        cmocka_unit_test_teardown(what_was_terminated_is_shown_when_the_standby_has_it, end),
        cmocka_unit_test_teardown(what_survived_a_crash_is_shown_when_the_standby_has_it, end),
        cmocka_unit_test_teardown(where_the_standby_is_promoted_instead_the_key_acts_once, end),
        cmocka_unit_test_teardown(without_a_synchronous_standby_it_is_told_and_lost, end),
        cmocka_unit_test_teardown(what_was_confirmed_once_is_shown_whatever_else_is_open, end),
        cmocka_unit_test_teardown(a_server_that_was_just_started_knows_nothing, end),
        cmocka_unit_test_teardown(a_reload_does_not_make_commits_wait_for_less, end),
        cmocka_unit_test_teardown(the_commit_of_an_application_waits_for_what_it_was_shown, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

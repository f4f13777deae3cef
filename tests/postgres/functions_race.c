/* Eight sessions at once: one key, one effect; and the journal in the order of its numbers tells
 * how the rows came about. */
#include "base/bytes.h"
#include "postgres/kit/functions.h"
#include "store/record/entry.h"
#include "support/test.h"

#include <pthread.h>

enum { SESSIONS = 8, TEXT = 64 };

static struct postgres p;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static bool full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* ---- The same statement, or nearly, by all at once ---- */

struct session {
    PGconn *c;
    pthread_t thread;
    pthread_barrier_t *together;
    int number;
    const char *sql; /* %d: the session's number */
    char status[TEXT], what[TEXT], error[256];
};

static void *session_run(void *arg)
{
    struct session *s = arg;
    char sql[512], number[8], *at;
    snprintf(number, sizeof number, "%d", s->number);
    snprintf(sql, sizeof sql, "%s", s->sql);
    while ((at = strchr(sql, '%')) != NULL)
        *at = number[0];
    pthread_barrier_wait(s->together);
    PGresult *got = PQexec(s->c, sql);
    if (PQresultStatus(got) != PGRES_TUPLES_OK || PQntuples(got) != 1) {
        snprintf(s->error, sizeof s->error, "%s", PQresultErrorMessage(got));
    } else {
        snprintf(s->status, sizeof s->status, "%s", PQgetvalue(got, 0, 0));
        snprintf(s->what, sizeof s->what, "%s", PQgetvalue(got, 0, 1));
    }
    PQclear(got);
    return NULL;
}

/* Two columns are asked for: the status, and what tells the answers apart. */
static void together(struct session sessions[SESSIONS], const char *sql)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, SESSIONS);
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s = &sessions[i];
        *s = (struct session){ .c = s->c, .together = &barrier, .number = i, .sql = sql };
        assert_int_equal(pthread_create(&s->thread, NULL, session_run, s), 0);
    }
    for (int i = 0; i < SESSIONS; i++)
        pthread_join(sessions[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    for (int i = 0; i < SESSIONS; i++)
        if (sessions[i].error[0])
            fail_msg("%s: %s", sql, sessions[i].error);
}

static int with(const struct session sessions[SESSIONS], const char *status, const char *what)
{
    int n = 0;
    for (int i = 0; i < SESSIONS; i++)
        n += strcmp(sessions[i].status, status) == 0 && strcmp(sessions[i].what, what) == 0;
    return n;
}

static void sessions_open(struct session sessions[SESSIONS])
{
    functions_make(&p, &(struct hf_options){ 0 });
    for (int i = 0; i < SESSIONS; i++)
        sessions[i].c = postgres_connect(&p);
}

static void sessions_close(struct session sessions[SESSIONS])
{
    functions_check_journal(sessions[0].c);
    for (int i = 0; i < SESSIONS; i++)
        PQfinish(sessions[i].c);
}

static void test_one_key_one_effect(void **state)
{
    (void)state;
    struct session s[SESSIONS];
    char sql[256];
    sessions_open(s);
    for (int round = 0; round < (full() ? 40 : 10); round++) {
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.place_hold('same-%d', 'room-%d', 'guest', "
                 "'1 hour')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "ok", "t"), SESSIONS - 1);
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.place_hold('other-%d', 'room-%d-%%', "
                 "'guest', '1 hour')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "token-collision", "f"), SESSIONS - 1);
        /* A key whose window has closed is taken over once. */
        snprintf(sql, sizeof sql,
                 "UPDATE holdfast.token SET expires_at = now() - interval '1 hour' WHERE key = "
                 "'same-%d'",
                 round);
        functions_run(s[0].c, sql);
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.place_hold('same-%d', 'next-%d', 'guest', "
                 "'1 hour')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "ok", "t"), SESSIONS - 1);
    }
    sessions_close(s);
}

static void test_units_are_not_sold_twice(void **state)
{
    (void)state;
    struct session s[SESSIONS];
    char sql[256];
    sessions_open(s);
    for (int round = 0; round < (full() ? 25 : 8); round++) {
        snprintf(sql, sizeof sql, "SELECT holdfast.set_resource('room-%d', 3)", round);
        functions_run(s[0].c, sql);
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.place_hold('place-%d-%%', 'room-%d', "
                 "'guest', '1 hour')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 3);
        assert_int_equal(with(s, "resource-unavailable", "f"), SESSIONS - 3);
        /* One hold, ended by eight who each have a key of their own. */
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.confirm('end-%d-%%', (SELECT id FROM "
                 "holdfast.hold WHERE resource = 'room-%d' ORDER BY ordinal LIMIT 1))",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "not-held", "f"), SESSIONS - 1);
        sql[0] = '\0';
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.reverse('back-%d-%%', (SELECT id FROM "
                 "holdfast.hold WHERE resource = 'room-%d' ORDER BY ordinal LIMIT 1))",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        /* Eight make the same resource. */
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.place_hold('new-%d-%%', 'new-%d', 'guest', "
                 "'1 hour')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
    }
    sessions_close(s);
}

static void test_guards_claims_leases_registers(void **state)
{
    (void)state;
    struct session s[SESSIONS];
    char sql[256];
    sessions_open(s);
    functions_run(s[0].c, "SELECT holdfast.set_guard('g', '1 hour', 'trim,casefold')");
    for (int round = 0; round < (full() ? 25 : 8); round++) {
        for (int again = 0; again < 2; again++) { /* new, and then when its window has closed */
            snprintf(sql, sizeof sql,
                     "SELECT status, seen FROM holdfast.admit('g', ' Identity-%d ', 'by %%')",
                     round);
            together(s, sql);
            assert_int_equal(with(s, "ok", "f"), 1);
            assert_int_equal(with(s, "ok", "t"), SESSIONS - 1);
            functions_run(s[0].c,
                          "UPDATE holdfast.guard_entry SET expires_at = now() - interval '1 hour'");
        }
        for (int again = 0; again < 2; again++) { /* new, and then when its lease has run out */
            snprintf(sql, sizeof sql,
                     "SELECT status, state FROM holdfast.begin('claim-%d', 'p', '1 hour', 'retry')",
                     round);
            together(s, sql);
            assert_int_equal(with(s, "ok", "started"), 1);
            assert_int_equal(with(s, "in-progress", "started"), SESSIONS - 1);
            functions_run(s[0].c, "UPDATE holdfast.token SET lease_expires_at = now() - interval "
                                  "'1 hour' WHERE state = 'started'");
        }
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.complete('claim-%d', (SELECT fence FROM "
                 "holdfast.token WHERE key = 'claim-%d'), 'by %%')",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "token-collision", "f"), SESSIONS - 1);
        snprintf(
            sql, sizeof sql,
            "SELECT status, replayed FROM holdfast.grant_lease('l-%d-%%', 'l-%d', 'me', '1 hour')",
            round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "lease-held", "f"), SESSIONS - 1);
        snprintf(sql, sizeof sql,
                 "SELECT status, replayed FROM holdfast.write('w-%d-%%', 'w-%d', 'value', "
                 "if_version => 0)",
                 round, round);
        together(s, sql);
        assert_int_equal(with(s, "ok", "f"), 1);
        assert_int_equal(with(s, "version-mismatch", "f"), SESSIONS - 1);
    }
    sessions_close(s);
}

/* ---- Who waits gets the answer, or the place ---- */

static const char *const the_call =
    "SELECT status, replayed FROM holdfast.place_hold('k', 'room', 'guest', '1 hour')";

static void waits_for(const char *end, const char *status, const char *replayed)
{
    functions_make(&p, &(struct hf_options){ 0 });
    PGconn *first = postgres_connect(&p), *second = postgres_connect(&p);
    functions_run(first, "BEGIN");
    functions_run(first, the_call);
    assert_int_equal(PQsendQuery(second, the_call), 1);
    postgres_await_number(
        &p, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 1);
    functions_run(first, end);
    PGresult *got = PQgetResult(second);
    assert_string_equal(PQgetvalue(got, 0, 0), status);
    assert_string_equal(PQgetvalue(got, 0, 1), replayed);
    PQclear(got);
    assert_null(PQgetResult(second));
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.hold"), 1);
    functions_check_journal(first);
    PQfinish(first);
    PQfinish(second);
}

static void test_the_second_waits(void **state)
{
    (void)state;
    waits_for("COMMIT", "ok", "t");
    waits_for("ROLLBACK", "ok", "f");
}

/* The configuration does not change under those who decide by it. */
static void test_configuration_waits(void **state)
{
    (void)state;
    functions_make(&p, &(struct hf_options){ 0 });
    PGconn *first = postgres_connect(&p), *second = postgres_connect(&p);
    functions_run(first, "BEGIN");
    functions_run(first, the_call);
    functions_run(second, "SET lock_timeout = '50ms'");
    functions_run(second, "BEGIN");
    functions_fails(second, "55P03", "LOCK TABLE holdfast.store IN EXCLUSIVE MODE");
    functions_run(second, "ROLLBACK");
    functions_run(second,
                  /* but others do not wait */
                  "SELECT holdfast.place_hold('l', 'room-2', 'guest', '1 hour')");
    functions_run(first, "COMMIT");
    functions_run(second, "BEGIN; LOCK TABLE holdfast.store IN EXCLUSIVE MODE; COMMIT");
    PQfinish(first);
    PQfinish(second);
}

/* Nor do the rules of a guard, under those who have recorded by them. */
static void test_guard_waits(void **state)
{
    (void)state;
    functions_make(&p, &(struct hf_options){ 0 });
    PGconn *first = postgres_connect(&p), *second = postgres_connect(&p);
    EXPECT(first, "ok", false, "set_guard", "g", "1 hour");
    functions_run(first, "BEGIN");
    IS(first, "f", "seen", "admit", "g", "identity");
    functions_run(second, "SET lock_timeout = '50ms'");
    IS(second, "f", "seen", "admit", "g", "another identity"); /* but others do not wait */
    functions_fails(second, "55P03", "SELECT holdfast.set_guard('g', '2 hours')");
    functions_run(first, "COMMIT");
    EXPECT(second, "ok", false, "set_guard", "g", "2 hours");
    PQfinish(first);
    PQfinish(second);
}

/* ---- A crowd ---- */

struct worker {
    pthread_t thread;
    PGconn *c;
    uint64_t random;
    int calls, again, done;
    char error[256];
};

/* One call. */
static void work_sql(struct worker *w, char *sql, size_t room)
{
    unsigned key = (unsigned)test_below(&w->random, 400),
             name = (unsigned)test_below(&w->random, 5);
    switch (test_below(&w->random, 9)) {
    case 0:
    case 1:
        snprintf(sql, room, "SELECT holdfast.place_hold('p%u', 'room-%u', 'guest', '%s')", key,
                 name, test_below(&w->random, 2) ? "2 ms" : "1 hour");
        break;
    case 2:
    case 3:
    case 4: {
        static const char *const ends[] = { "confirm", "release", "expire", "reverse" };
        snprintf(sql, room,
                 "SELECT holdfast.%s('e%u', (SELECT id FROM holdfast.hold WHERE resource = "
                 "'room-%u' ORDER BY ordinal DESC OFFSET %u LIMIT 1)) WHERE EXISTS (SELECT FROM "
                 "holdfast.hold WHERE resource = 'room-%u' OFFSET %u)",
                 ends[test_below(&w->random, 4)], key, name, key % 3, name, key % 3);
        break;
    }
    case 5:
        snprintf(sql, room, "SELECT holdfast.set_resource('room-%u', %u)", name, 1 + key % 4);
        break;
    case 6: snprintf(sql, room, "SELECT holdfast.admit('g', 'i%u')", key % 20); break;
    case 7:
        snprintf(sql, room, "SELECT holdfast.write('w%u', 'reg-%u', 'value')", key, name);
        break;
    default:
        snprintf(sql, room,
                 "DELETE FROM holdfast.token WHERE ctid = ANY(ARRAY(SELECT ctid FROM "
                 "holdfast.token WHERE expires_at <= holdfast.engine_now() LIMIT 50 FOR UPDATE "
                 "SKIP LOCKED))");
        break;
    }
}

/* False: it is to be tried again, or not at all. */
static bool work_one(struct worker *w, const char *sql)
{
    PGresult *got = PQexec(w->c, sql);
    bool fine = PQresultStatus(got) == PGRES_TUPLES_OK || PQresultStatus(got) == PGRES_COMMAND_OK;
    const char *state = PQresultErrorField(got, PG_DIAG_SQLSTATE);
    if (!fine && state && (strcmp(state, "40P01") == 0 || strcmp(state, "40001") == 0))
        w->again++;
    else if (!fine)
        snprintf(w->error, sizeof w->error, "%s", PQresultErrorMessage(got));
    PQclear(got);
    return fine;
}

/* Transactions of one to three calls, one in four of them rolled back. */
static void *work(void *arg)
{
    struct worker *w = arg;
    char sql[512];
    while (w->done < w->calls && !w->error[0]) {
        bool fine = work_one(w, "BEGIN");
        for (uint64_t n = 1 + test_below(&w->random, 3); fine && n > 0; n--, w->done++) {
            work_sql(w, sql, sizeof sql);
            fine = work_one(w, sql);
        }
        work_one(w, fine && test_below(&w->random, 4) > 0 ? "COMMIT" : "ROLLBACK");
    }
    return NULL;
}

struct last {
    char name[TEXT];
    hf_time at;
    struct hf_resource r;
};

/* The journal by its numbers: for each resource time does not run back, and its last row is the
 * table's. */
static void check_story(PGconn *c)
{
    static struct last last[8];
    size_t count = 0;
    memset(last, 0, sizeof last);
    PGresult *rows = PQexecParams(c, "SELECT entry FROM holdfast.journal ORDER BY number", 0, NULL,
                                  NULL, NULL, NULL, 1);
    for (int i = 0; i < PQntuples(rows); i++) {
        struct hf_entry_view entry;
        struct hf_image image;
        struct hf_row row;
        assert_true(hf_entry_decode((const unsigned char *)PQgetvalue(rows, i, 0),
                                    (size_t)PQgetlength(rows, i, 0), &entry));
        for (struct hf_bytes all = entry.rows; hf_image_next(&all, &image);) {
            if (image.kind != HF_ROW_RESOURCE)
                continue;
            assert_true(hf_image_decode(&image, entry.head.tenant, &row));
            size_t n = 0;
            while (n < count && !hf_bytes_equal(hf_str(last[n].name), row.resource.name))
                n++;
            if (n == count) {
                assert_true(count < sizeof last / sizeof *last);
                snprintf(last[count++].name, TEXT, "%.*s", (int)row.resource.name.size,
                         (const char *)row.resource.name.data);
            }
            assert_true(entry.head.recorded_at >= last[n].at);
            last[n].at = entry.head.recorded_at;
            last[n].r = row.resource;
        }
    }
    PQclear(rows);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        char sql[512];
        const struct hf_resource *r = &last[i].r;
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM holdfast.resource WHERE name = '%.63s' AND capacity = %u "
                 "AND held = %u AND confirmed = %u AND newest = %llu",
                 last[i].name, r->capacity, r->held, r->confirmed, (unsigned long long)r->newest);
        assert_int_equal(postgres_number(&p, sql), 1);
    }
}

static void test_a_crowd(void **state)
{
    (void)state;
    static struct worker workers[SESSIONS];
    uint64_t seed = test_seed("a crowd", 7);
    int again = 0;
    functions_make(&p, &(struct hf_options){ .idempotency_window_ms = 200 });
    postgres_run(&p, "SELECT holdfast.set_guard('g', '50 ms')");
    for (int i = 0; i < SESSIONS; i++) {
        workers[i] = (struct worker){ .c = postgres_connect(&p),
                                      .random = seed * 100 + (uint64_t)i,
                                      .calls = full() ? 800 : 150 };
        functions_run(workers[i].c, "SET deadlock_timeout = '20ms'");
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].error[0])
            fail_msg("%s", workers[i].error);
        again += workers[i].again;
        if (i > 0)
            PQfinish(workers[i].c);
    }
    size_t entries = functions_check_journal(workers[0].c);
    printf("%zu entries; %d deadlocks\n", entries, again);
    assert_true(entries > 100);
    check_story(workers[0].c);
    PQfinish(workers[0].c);
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.resource r WHERE held <> (SELECT count(*) FROM "
                "holdfast.hold h WHERE h.resource = r.name AND h.state = 'held') OR confirmed <> "
                "(SELECT count(*) FROM holdfast.hold h WHERE h.resource = r.name AND h.state = "
                "'confirmed' AND h.succeeded_by IS NULL)"),
        0);
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM holdfast.journal a JOIN holdfast.journal b USING (key) WHERE "
                "a.number < b.number AND b.at < a.at + interval '200 ms'"),
        0); /* one key, one effect, while its window is open */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_key_one_effect),
        cmocka_unit_test(test_units_are_not_sold_twice),
        cmocka_unit_test(test_guards_claims_leases_registers),
        cmocka_unit_test(test_the_second_waits),
        cmocka_unit_test(test_configuration_waits),
        cmocka_unit_test(test_guard_waits),
        cmocka_unit_test(test_a_crowd),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

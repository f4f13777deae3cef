/* What a transaction keeps locked under a guard stops those who need it, and nobody else. */
#define _GNU_SOURCE /* unshare */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct postgres p;
static struct hf_db *db;

/* LONG: until callers are refused whom somebody else's lock has stopped. */
enum {
    ASKING = 4,
    OTHERS = 8,
    DURING_MS = 6000,
    LONG_MS = 15000,
    /* Of what the others do, so much within a minute. Each call would wait two seconds for the
     * lock; then they would come to 240 together, and one alone to 30. */
    ENOUGH = 400,
    ASKED = 100,
};

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static int setup(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_request set = { .action = HF_SET_GUARD,
                              .set_guard = { .name = hf_str("guard"),
                                             .window_ms = HOUR,
                                             .on_unavailable = HF_FAIL_CLOSED } };
    struct hf_error why;
    (void)state;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    assert_int_equal(hf_do(db, &set, NULL), HF_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_close(db);
    return 0;
}

static bool admits(const char *identity)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request admit = {
        .action = HF_ADMIT, .identity = { .guard = hf_str("guard"), .identity = hf_str(identity) }
    };
    KIT_WANT(hf_do(db, &admit, &result) == HF_OK);
    bool admitted = !result.answer.seen.seen;
    hf_result_clear(&result);
    return admitted;
}

static bool places(const char *name)
{
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .key = hf_str(name),
                                .place_hold = { .resource = hf_str(name),
                                                .requester = hf_str("guest"),
                                                .duration_ms = HOUR } };
    return hf_do(db, &place, NULL) == HF_OK;
}

static _Atomic bool over;
static _Atomic int named;

/* arg: NULL, each time another; or two identities, in turns. */
static void *ask_for_what_is_locked(void *arg)
{
    const char *const *two = arg;
    for (int i = 0; !over; i++) {
        char name[24];
        snprintf(name, sizeof name, "asked-%d", named++);
        admits(two ? two[i % 2] : name);
    }
    return NULL;
}

/* Callers who do something else: it must go well all the while, and not wait for the lock. */
static struct others {
    bool (*doing)(const char *name);
    _Atomic int begun, done, failed;
} others;

static void *do_something_else(void *arg)
{
    (void)arg;
    while (!over) {
        char name[24];
        snprintf(name, sizeof name, "other-%d", others.begun++);
        others.failed += !others.doing(name);
        others.done++;
        server_pause_ms(20);
    }
    return NULL;
}

static void goes_on(PGconn *user, const char *const *locked, bool (*doing)(const char *name),
                    int during_ms)
{
    pthread_t threads[ASKING + OTHERS];
    over = false;
    others.doing = doing;
    others.begun = others.done = others.failed = 0;
    for (int i = 0; i < ASKING + OTHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < ASKING ? ask_for_what_is_locked : do_something_else,
                                        (void *)(uintptr_t)locked),
                         0);
    int64_t begun = server_clock_ms();
    server_pause_ms(during_ms);
    while (others.done < ENOUGH && server_clock_ms() - begun < SERVER_PATIENCE_MS)
        server_pause_ms(20);
    int done = others.done;
    over = true;
    functions_run(user, "ROLLBACK");
    for (int i = 0; i < ASKING + OTHERS; i++)
        pthread_join(threads[i], NULL);
    PQfinish(user);
    assert_int_equal(others.failed, 0);
    assert_true(done >= ENOUGH);
}

/* All who asked the guard for anything waited with those who asked for this one, and were then told
 * that it had been seen. */
static void one_identity_that_stays_locked_stops_no_other(void **state)
{
    static const char *const locked[] = { "locked", "locked" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'locked')");
    goes_on(user, locked, admits, DURING_MS);
}

/* Nor are two a sign that it is the guard. */
static void two_identities_that_stay_locked_stop_no_other(void **state)
{
    static const char *const locked[] = { "one", "two" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'one'), holdfast.admit('guard', 'two')");
    goes_on(user, locked, admits, LONG_MS);
}

static void an_identity_that_stays_locked_stops_no_other_however_it_is_written(void **state)
{
    static const char *const locked[] = { "locked", "LOCKED" };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "SELECT holdfast.set_guard('guard', '1 hour', match => 'casefold', "
                        "on_unavailable => 'closed')");
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.admit('guard', 'locked')");
    goes_on(user, locked, admits, LONG_MS);
}

static void *place_what_is_locked(void *arg)
{
    (void)arg;
    while (!over)
        places("locked");
    return NULL;
}

/* Who asks what became of a call is told at once that nothing is committed, also while another
 * server's caller waits. */
static void what_became_of_a_key_is_told_while_it_stays_locked(void **state)
{
    struct hf_request ask = { .action = HF_GET_TOKEN, .key = hf_str("locked") };
    int asked = 0;
    pthread_t thread;
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.place_hold('locked', 'locked', 'user', '1 hour')");
    over = false;
    assert_int_equal(pthread_create(&thread, NULL, place_what_is_locked, NULL), 0);
    int64_t begun = server_clock_ms();
    for (; server_clock_ms() - begun < DURING_MS || asked < ASKED; asked++) {
        assert_int_equal(hf_do(db, &ask, NULL), HF_NOT_KNOWN);
        assert_true(server_clock_ms() - begun < SERVER_PATIENCE_MS);
        server_pause_ms(20);
    }
    over = true;
    functions_run(user, "ROLLBACK");
    pthread_join(thread, NULL);
    PQfinish(user);
}

/* Those who asked any guard, of any tenant, waited, and were then answered by its rule: an open one
 * admitted the same identity again and again. */
static void a_guard_that_is_being_set_stops_nobody_who_asks_another(void **state)
{
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user,
                  "SELECT holdfast.set_guard('another', '1 hour'), holdfast.set_guard('guard', '1 "
                  "hour', tenant => 't1')");
    goes_on(user, NULL, admits, DURING_MS);
}

/* And those who ask that one wait for it. */
static void who_asks_a_guard_that_is_being_set_waits_for_it(void **state)
{
    struct hf_request admit = {
        .action = HF_ADMIT, .identity = { .guard = hf_str("guard"), .identity = hf_str("waits") }
    };
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user,
                  "SELECT holdfast.set_guard('guard', '2 hours', on_unavailable => 'closed')");
    struct hf_result result = HF_RESULT_INIT;
    assert_int_equal(hf_do(db, &admit, &result), HF_OK);
    assert_true(result.answer.seen.seen); /* by the rule: it could not be asked */
    functions_run(user, "COMMIT");
    assert_int_equal(hf_do(db, &admit, &result), HF_OK);
    assert_false(result.answer.seen.seen);
    hf_result_clear(&result);
    PQfinish(user);
}

static void a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it(void **state)
{
    (void)state;
    PGconn *user = postgres_connect(&p);
    functions_run(user, "BEGIN");
    functions_run(user, "SELECT holdfast.set_guard('guard', '2 hours')");
    goes_on(user, NULL, places, DURING_MS);
}

/* What an operator or a timeout of the database stops half-way: a wait for the standby, a
 * statement, a session, a disk that is full. Nothing is half done, and nothing is called done that
 * may be lost. */

static struct hf_result got = HF_RESULT_INIT;
static bool has_mounts; /* of its own: what is mounted goes with this process */
static char notes[4096];
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_note(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    pthread_mutex_lock(&notes_lock);
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
    pthread_mutex_unlock(&notes_lock);
}

static bool is_noted(const char *words)
{
    pthread_mutex_lock(&notes_lock);
    bool found = strstr(notes, words) != NULL;
    pthread_mutex_unlock(&notes_lock);
    return found;
}

/* With a limit for every statement, as a role may have it. */
static int setup_cancelled(void **state)
{
    char conninfo[2 * POSTGRES_CONNINFO_MAX];
    struct hf_options options = { .no_background = true, .on_note = on_note, .postgres = conninfo };
    struct hf_error why;
    (void)state;
    notes[0] = '\0';
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    snprintf(conninfo, sizeof conninfo, "%s options='-c statement_timeout=500ms'",
             postgres_conninfo(&p));
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return 0;
}

static int teardown_cancelled(void **state)
{
    (void)state;
    hf_close(db);
    hf_result_clear(&got);
    return 0;
}

static struct hf_request placing(const char *key, const char *resource)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(key),
                                .place_hold = { .resource = hf_str(resource),
                                                .requester = hf_str("guest"),
                                                .duration_ms = 3600000 } };
}

static enum hf_status place(const char *key, const char *resource)
{
    struct hf_request q = placing(key, resource);
    return hf_do(db, &q, &got);
}

static long long holds(void)
{
    return postgres_number(&p, "SELECT count(*) FROM holdfast.hold");
}

/* ---- The wait for a standby ---- */

/* Let commits wait for a standby that does not exist, or no longer. */
static void standby_wanted(bool wanted)
{
    postgres_set(&p, "synchronous_standby_names", wanted ? "nobody" : "");
    postgres_reload(&p);
    postgres_await_number(
        &p, "SELECT (current_setting('synchronous_standby_names') = 'nobody')::integer", wanted);
}

/* It is on one machine only, and would be lost with it. (A wait that somebody cancels:
 * found_review.c.) */
static void a_commit_that_no_standby_confirms_is_not_called_done(void **state)
{
    (void)state;
    standby_wanted(true);
    enum hf_status st = place("key", "room");
    standby_wanted(false);
    assert_int_equal(st, HF_INDETERMINATE);
    assert_int_equal(place("key", "room"), HF_OK);
    assert_true(got.replayed);
    assert_int_equal(holds(), 1);
}

static void *standby_comes_back(void *arg)
{
    (void)arg;
    postgres_await_waiting(&p);
    standby_wanted(false);
    return NULL;
}

static void it_is_called_done_once_the_standby_is_back(void **state)
{
    pthread_t thread;
    (void)state;
    standby_wanted(true);
    assert_int_equal(pthread_create(&thread, NULL, standby_comes_back, NULL), 0);
    enum hf_status st = place("key", "room");
    pthread_join(thread, NULL);
    assert_int_equal(st, HF_OK);
    assert_false(got.replayed);
    assert_int_equal(holds(), 1);
}

/* ---- Statements and sessions ---- */

static void a_statement_that_takes_too_long_stops_only_those_who_need_its_row(void **state)
{
    enum { COUNT = 5, LOCKED = 2 };
    struct hf_request requests[COUNT];
    struct hf_result results[COUNT];
    char texts[COUNT][16];
    (void)state;
    memset(results, 0, sizeof results);
    assert_int_equal(place("first", "locked"), HF_OK);
    PGconn *other = postgres_connect(&p);
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "SELECT 1 FROM holdfast.resource WHERE name = 'locked' FOR UPDATE"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "free-%d", i);
        requests[i] = placing(texts[i], i == LOCKED ? "locked" : texts[i]);
    }
    assert_int_equal(hf_do_many(db, requests, results, COUNT), HF_OK);
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(results[i].answer.status, i == LOCKED ? HF_STORAGE_FAILURE : HF_OK);
        hf_result_clear(&results[i]);
    }
    assert_int_equal(holds(), COUNT);
}

static void *sessions_are_ended(void *arg)
{
    for (int i = 0; i < 50; i++) {
        server_pause_ms(20);
        postgres_run(&p, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                         "application_name = 'holdfast'");
    }
    return arg;
}

static void sessions_that_are_ended_at_any_moment_lose_nothing_and_do_nothing_twice(void **state)
{
    pthread_t thread;
    long long done = 0;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, sessions_are_ended, NULL), 0);
    for (int i = 0; i < 150; i++) {
        char key[24];
        snprintf(key, sizeof key, "key-%d", i);
        int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
        enum hf_status st;
        do
            st = place(key, key);
        while (st != HF_OK && server_clock_ms() < until);
        done += st == HF_OK;
    }
    pthread_join(thread, NULL);
    assert_int_equal(done, 150);
    assert_int_equal(holds(), done);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.token"), done);
}

/* ---- Rights ---- */

/* A role that may do all but add to the journal, or that too. */
static void clerk_may_write(bool may)
{
    postgres_run(&p, "DO $$BEGIN CREATE ROLE clerk; EXCEPTION WHEN duplicate_object THEN NULL; "
                     "END$$; GRANT USAGE ON SCHEMA holdfast TO clerk; GRANT ALL ON ALL TABLES IN "
                     "SCHEMA holdfast TO clerk; GRANT ALL ON ALL SEQUENCES IN SCHEMA holdfast TO "
                     "clerk");
    if (!may)
        postgres_run(&p, "REVOKE INSERT ON holdfast.journal FROM clerk");
}

static void a_missing_right_is_said_once_and_so_is_that_it_is_there_again(void **state)
{
    char conninfo[2 * POSTGRES_CONNINFO_MAX];
    struct hf_options options = { .no_background = true, .on_note = on_note, .postgres = conninfo };
    struct hf_error why;
    (void)state;
    assert_int_equal(place("known", "room"), HF_OK);
    hf_close(db);
    clerk_may_write(true);
    snprintf(conninfo, sizeof conninfo, "%s options='-c role=clerk'", postgres_conninfo(&p));
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    clerk_may_write(false);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(place("new", "other"), HF_STORAGE_FAILURE);
        assert_int_equal(place("known", "room"), HF_OK); /* needs no right to write */
        hf_maintain(db);
    }
    assert_true(is_noted("the database refuses a batch: "));
    assert_true(is_noted("permission denied for table journal"));
    assert_null(strstr(strstr(notes, "refuses a batch") + 1, "refuses a batch"));
    assert_false(is_noted("accepts writes again"));
    clerk_may_write(true);
    hf_maintain(db); /* nobody asks meanwhile */
    assert_true(is_noted("accepts writes again"));
    assert_int_equal(place("new", "other"), HF_OK);
}

/* ---- Who only asks ---- */

static void who_only_asks_leaves_no_row_of_a_writer(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p) };
    struct hf_error why;
    (void)state;
    assert_int_equal(place("known", "room"), HF_OK);
    hf_close(db);
    long long before = postgres_number(&p, "SELECT count(*) FROM holdfast.writer");
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_page page;
    assert_int_equal(hf_list(db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page), HF_OK);
    assert_int_equal(page.count, 1);
    hf_page_clear(&page);
    assert_int_equal(place("known", "room"), HF_OK);
    assert_true(got.replayed);
    hf_maintain(db);
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.writer"), before);
}

/* ---- A full disk ---- */

/* The tables on a small file system of their own; the log stays where it was, as a full one stops
 * the whole server. */
static void a_full_disk_is_said_and_ends_without_a_restart(void **state)
{
    char small[600], how[80], sql[1400], filler[700];
    struct stat owner;
    struct hf_stats stats;
    (void)state;
    snprintf(small, sizeof small, "%s/small", p.dir);
    assert_int_equal(stat(p.data, &owner), 0);
    snprintf(how, sizeof how, "size=24m,mode=0700,uid=%u,gid=%u", owner.st_uid, owner.st_gid);
    if (!has_mounts || mkdir(small, 0700) != 0 || mount("none", small, "tmpfs", 0, how) != 0)
        skip(); /* only root has a file system to fill */
    snprintf(sql, sizeof sql, "CREATE TABLESPACE small LOCATION '%s'", small);
    bool made = postgres_try(&p, sql);
    if (made)
        postgres_run(&p, "ALTER TABLE holdfast.hold SET TABLESPACE small; ALTER TABLE "
                         "holdfast.token SET TABLESPACE small; ALTER TABLE holdfast.journal SET "
                         "TABLESPACE small");
    enum hf_status first = place("before", "before"), full = HF_OK;
    snprintf(filler, sizeof filler, "dd if=/dev/zero of='%s/filler' bs=64k 2>/dev/null", small);
    int filled = system(filler); /* until there is no room: it fails */
    char key[24];
    int tries = 0;
    for (; full == HF_OK && tries < 2000; tries++) {
        snprintf(key, sizeof key, "key-%d", tries);
        full = place(key, key);
    }
    hf_stats(db, &stats);
    bool said = is_noted("No space left on device"),
         is_full = stats.out_of_space && !stats.database_away;
    enum hf_status replay = place("before", "before");
    bool replayed = got.replayed;
    snprintf(filler, sizeof filler, "%s/filler", small);
    unlink(filler);
    enum hf_status again = place(key, key);
    bool again_replayed = got.replayed;
    hf_stats(db, &stats);
    long long stored = holds();
    postgres_run(&p, "DROP SCHEMA holdfast CASCADE");
    if (made)
        postgres_run(&p, "DROP TABLESPACE small");
    int unmounted = umount(small);
    assert_true(made);
    assert_int_equal(first, HF_OK);
    assert_int_not_equal(filled, 0);
    assert_int_equal(full, HF_STORAGE_FAILURE);
    assert_true(said);
    assert_true(is_full);
    assert_int_equal(replay, HF_OK);
    assert_true(replayed);
    assert_int_equal(again, HF_OK);
    assert_false(again_replayed);
    assert_false(stats.out_of_space || stats.database_away);
    assert_int_equal(stored, 1 + tries);
    assert_int_equal(unmounted, 0);
}

static int begin_cancelled(void **state)
{
    (void)state;
    has_mounts =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

#define TEST_CANCELLED(name) \
    cmocka_unit_test_setup_teardown(name, setup_cancelled, teardown_cancelled)

int main(void)
{
    const struct CMUnitTest locked_tests[] = {
        cmocka_unit_test_setup_teardown(one_identity_that_stays_locked_stops_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(two_identities_that_stay_locked_stop_no_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_identity_that_stays_locked_stops_no_other_however_it_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(what_became_of_a_key_is_told_while_it_stays_locked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_guard_that_is_being_set_stops_nobody_who_asks_another,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(who_asks_a_guard_that_is_being_set_waits_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_guard_that_is_being_changed_stops_nobody_who_does_not_ask_it, setup, teardown),
    };
    const struct CMUnitTest cancelled_tests[] = {
        TEST_CANCELLED(a_commit_that_no_standby_confirms_is_not_called_done),
        TEST_CANCELLED(it_is_called_done_once_the_standby_is_back),
        TEST_CANCELLED(a_statement_that_takes_too_long_stops_only_those_who_need_its_row),
        TEST_CANCELLED(sessions_that_are_ended_at_any_moment_lose_nothing_and_do_nothing_twice),
        TEST_CANCELLED(a_missing_right_is_said_once_and_so_is_that_it_is_there_again),
        TEST_CANCELLED(who_only_asks_leaves_no_row_of_a_writer),
        TEST_CANCELLED(a_full_disk_is_said_and_ends_without_a_restart),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(locked_tests, begin, end);
    failed += cmocka_run_group_tests(cancelled_tests, begin_cancelled, end);
    return failed;
}

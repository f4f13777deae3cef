/* What an operator or a timeout of the database stops half-way: a wait for the standby, a
 * statement, a session, a disk that is full. Nothing is half done, and nothing is called done that
 * may be lost. */
#define _GNU_SOURCE /* unshare */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static struct postgres p;
static struct hf_db *db;
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
static int setup(void **state)
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

static int teardown(void **state)
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
        if (i == LOCKED)
            assert_int_equal(results[i].answer.cause.fault, HF_FAULT_LOCKED);
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
        assert_int_equal(got.answer.cause.fault, HF_FAULT_DATABASE_REFUSED);
        assert_string_equal(got.answer.cause.sqlstate, "42501");
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
    enum hf_limit limit = got.answer.limit;
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
    assert_int_equal(limit, HF_LIMIT_DISK);
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

static int begin(void **state)
{
    (void)state;
    has_mounts =
        unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_commit_that_no_standby_confirms_is_not_called_done),
        TEST(it_is_called_done_once_the_standby_is_back),
        TEST(a_statement_that_takes_too_long_stops_only_those_who_need_its_row),
        TEST(sessions_that_are_ended_at_any_moment_lose_nothing_and_do_nothing_twice),
        TEST(a_missing_right_is_said_once_and_so_is_that_it_is_there_again),
        TEST(who_only_asks_leaves_no_row_of_a_writer),
        TEST(a_full_disk_is_said_and_ends_without_a_restart),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/* The kit itself: one cluster, its beginning and its ends. */
#include "postgres/kit/postgres.h"
#include "postgres/kit/process.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct postgres shared; /* for the tests that leave it running */

/* Does it accept connections, on a busy machine perhaps only after a while? */
static bool accepts(const struct postgres *p)
{
    int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
    bool is_accepting;
    while (!(is_accepting = postgres_accepting(p)) && server_clock_ms() < until)
        server_pause_ms(20);
    return is_accepting;
}

static int set_up(void **state)
{
    (void)state;
    postgres_init(&shared);
    postgres_set(&shared, "max_connections", "21");
    postgres_start(&shared);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&shared);
    return 0;
}

static void is(const struct postgres *p, const char *query, const char *wanted)
{
    char *text = postgres_ask(p, query);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_answers_with_its_settings(void **state)
{
    (void)state;
    assert_true(accepts(&shared));
    is(&shared, "SHOW server_encoding", "UTF8");
    is(&shared, "SHOW lc_collate", "C");
    is(&shared, "SHOW max_connections", "21");
    is(&shared, "SHOW fsync", "off");
    is(&shared, "SHOW unix_socket_directories", "");
    is(&shared, "SELECT inet_server_addr()", "127.0.0.1");
    is(&shared, "SELECT NULL", "");
    assert_int_equal(postgres_number(&shared, "SELECT inet_server_port()"), shared.port);
}

static void test_scripts_and_failures(void **state)
{
    (void)state;
    postgres_run(&shared,
                 "CREATE TABLE a (n int); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)");
    assert_int_equal(postgres_number(&shared, "SELECT sum(n) FROM a"), 3);
    assert_false(postgres_try(&shared, "SELECT 1; SELECT 1 / 0; SELECT 2"));
    assert_true(postgres_try(&shared, "DROP TABLE IF EXISTS never; DROP TABLE a"));
}

static void test_reload(void **state)
{
    (void)state;
    postgres_set(&shared, "work_mem", "5MB");
    postgres_reload(&shared);
    postgres_await_number(&shared, "SELECT setting FROM pg_settings WHERE name = 'work_mem'", 5120);
    postgres_set(&shared, "work_mem", "6MB");
    postgres_reload(&shared);
    postgres_await_number(&shared, "SELECT setting FROM pg_settings WHERE name = 'work_mem'", 6144);
}

/* Every way to stop keeps what was committed, and the port. */
static void test_stops(void **state)
{
    (void)state;
    int port = shared.port;
    postgres_run(&shared, "CREATE TABLE b (n int)");
    for (enum postgres_stop how = POSTGRES_FAST; how <= POSTGRES_KILL; how++) {
        char insert[64];
        snprintf(insert, sizeof insert, "INSERT INTO b VALUES (%d)", (int)how);
        PGconn *idle = postgres_connect(&shared); /* must not hinder it */
        postgres_run(&shared, insert);
        postgres_stop(&shared, how);
        assert_int_equal(shared.pid, 0);
        assert_int_equal(postgres_signal_all(shared.data, 0), 0);
        assert_false(postgres_accepting(&shared));
        PQfinish(idle);
        postgres_start(&shared);
        assert_int_equal(postgres_number(&shared, "SELECT count(*) FROM b"), (int)how + 1);
    }
    assert_int_equal(shared.port, port);
    postgres_run(&shared, "DROP TABLE b");
}

static void test_pause(void **state)
{
    (void)state;
    PGconn *c = postgres_connect(&shared);
    postgres_pause(&shared);
    assert_true(shared.paused);
    assert_false(postgres_accepting(&shared));
    assert_int_equal(PQsendQuery(c, "SELECT 1"), 1);
    server_pause_ms(50); /* an answer that takes longer is missed */
    assert_int_equal(PQconsumeInput(c), 1);
    assert_int_equal(PQisBusy(c), 1);
    postgres_resume(&shared);
    PGresult *result = PQgetResult(c);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    PQclear(result);
    PQfinish(c);
    assert_true(accepts(&shared));
    postgres_pause(&shared);
    postgres_stop(&shared, POSTGRES_KILL);
    postgres_start(&shared);
}

/* A child that ends, as the servers of other kits do, and a thread that ends take no cluster with
 * them. */
static void *start_other(void *arg)
{
    postgres_start(arg);
    return NULL;
}

static void test_ends_of_others(void **state)
{
    (void)state;
    struct postgres other;
    pthread_t thread;
    int status;
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(accepts(&shared));
    postgres_init(&other);
    assert_int_equal(pthread_create(&thread, NULL, start_other, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    server_pause_ms(
        100); /* for it to go with the thread; if it takes longer, this test misses it */
    assert_true(accepts(&other));
    postgres_end(&other);
    assert_true(accepts(&shared));
}

static void test_two_clusters_are_apart(void **state)
{
    (void)state;
    struct postgres other;
    postgres_init(&other);
    postgres_start(&other);
    assert_int_not_equal(other.port, shared.port);
    postgres_run(&other, "CREATE TABLE only_here ()");
    assert_false(postgres_try(&shared, "SELECT FROM only_here"));
    size_t processes = postgres_signal_all(shared.data, 0);
    postgres_stop(&other, POSTGRES_KILL);
    assert_true(processes >= 5 && postgres_signal_all(shared.data, 0) >= 5);
    assert_true(accepts(&shared));
    postgres_end(&other);
    postgres_end(&other);
}

static void test_end_without_start(void **state)
{
    (void)state;
    struct postgres p;
    postgres_init(&p);
    char *dir = strdup(p.dir);
    postgres_end(&p);
    assert_int_not_equal(access(dir, F_OK), 0);
    free(dir);
}

/* A test process that is killed while its cluster is paused leaves neither processes nor the
 * folder. */
static void test_killed_process_leaves_nothing(void **state)
{
    (void)state;
    int ends[2];
    char data[512] = "", *copy;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char program[512];
        ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
        program[n > 0 ? n : 0] = 0;
        dup2(ends[1], 1);
        execl(program, program, "victim", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    assert_non_null(f);
    assert_non_null(fgets(data, sizeof data, f));
    data[strcspn(data, "\n")] = 0;
    assert_true(postgres_signal_all(data, 0) >= 5);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    copy = strdup(data);
    *strrchr(copy, '/') = 0; /* the cluster */
    *strrchr(copy, '/') = 0; /* the root */
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         access(copy, F_OK) == 0 && server_clock_ms() < until;)
        server_pause_ms(10);
    assert_int_equal(postgres_signal_all(data, 0), 0);
    assert_int_not_equal(access(copy, F_OK), 0);
    free(copy);
    fclose(f);
}

static _Noreturn void victim(void)
{
    struct postgres p;
    postgres_init(&p);
    postgres_start(&p);
    postgres_pause(&p);
    puts(p.data);
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        victim();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_with_its_settings),
        cmocka_unit_test(test_scripts_and_failures),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_ends_of_others),
        cmocka_unit_test(test_two_clusters_are_apart),
        cmocka_unit_test(test_end_without_start),
        cmocka_unit_test(test_killed_process_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

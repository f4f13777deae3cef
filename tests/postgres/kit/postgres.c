#define _GNU_SOURCE /* asprintf */
#include "postgres/kit/postgres.h"

#include "postgres/kit/process.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCEPT_MS = 500, LOOK_MS = 5, LOG_END = 4096 };

/* Everything in the folder, nothing in /dev/shm, and no waiting that only a large server would
 * want. */
static const char base_settings[] = "listen_addresses = '127.0.0.1'\n"
                                    "unix_socket_directories = ''\n"
                                    "dynamic_shared_memory_type = mmap\n"
                                    "huge_pages = off\n"
                                    "fsync = off\n"
                                    "synchronous_commit = on\n"
                                    "max_connections = 64\n"
                                    "shared_buffers = '32MB'\n"
                                    "wal_level = replica\n"
                                    "max_wal_senders = 4\n"
                                    "wal_keep_size = '256MB'\n"
                                    "wal_retrieve_retry_interval = '100ms'\n"
                                    "max_logical_replication_workers = 0\n"
                                    "max_worker_processes = 2\n"
                                    "log_line_prefix = '%m [%p] %q%a: '\n"
                                    "log_timezone = 'UTC'\n"
                                    "timezone = 'UTC'\n";

/* ---- The folder ---- */

static _Noreturn void give_up(const struct postgres *p, const char *what)
{
    char *log = postgres_log(p);
    print_error("PostgreSQL on port %d %s. Its log ends:\n%s\n", p->port, what, log);
    free(log);
    fail();
    abort();
}

int postgres_reserve_port(int *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t size = sizeof at;
    int on = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&at, size) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        abort();
    *port = ntohs(at.sin_port);
    return fd;
}

void postgres_conninfo_port(char *out, int port)
{
    snprintf(
        out, POSTGRES_CONNINFO_MAX,
        "host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable gssencmode=disable",
        port);
}

void postgres_conninfo_pair(char *out, const struct postgres *a, const struct postgres *b)
{
    snprintf(out, POSTGRES_CONNINFO_MAX,
             "host=127.0.0.1,127.0.0.1 port=%d,%d user=postgres dbname=postgres sslmode=disable "
             "gssencmode=disable target_session_attrs=read-write",
             a->port, b->port);
}

void postgres_init(struct postgres *p)
{
    *p = (struct postgres){ .reserved = -1 };
    p->dir = postgres_folder_make();
    snprintf(p->data, sizeof p->data, "%s/data", p->dir);
    snprintf(p->log, sizeof p->log, "%s/log", p->dir);
    p->reserved = postgres_reserve_port(&p->port);
    snprintf(p->name, sizeof p->name, "node%d", p->port);
    postgres_conninfo_port(p->conninfo, p->port);
}

/* Run a program that must succeed. */
static void run(const struct postgres *p, const char *const *argv)
{
    if (postgres_spawn_wait(argv, p->dir, p->log) != 0)
        give_up(p, argv[0]);
}

/* Keep the folder for the programs that come later, unless another one does it at the same time. */
static void keep(const char *folder, const char *name)
{
    char *temporary;
    assert_true(asprintf(&temporary, "%s-%d", name, (int)getpid()) > 0);
    if (!postgres_folder_copy(folder, temporary) || rename(temporary, name) != 0)
        test_dir_remove(temporary);
    else
        free(temporary);
}

/* A data folder as initdb leaves it. The first one of a build is made and kept in the build folder,
 * if there is one; the others are copied. */
static void make_data(const struct postgres *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char template[512];
    pthread_mutex_lock(&lock);
    if (!*template) {
        char kept[512], version[600];
        bool keeps = postgres_template(kept, sizeof kept);
        snprintf(version, sizeof version, "%s/PG_VERSION", kept);
        if (keeps && access(version, R_OK) == 0) {
            snprintf(template, sizeof template, "%s", kept);
        } else {
            snprintf(template, sizeof template, "%s/template", postgres_root());
            const char *const initdb[] = {
                "initdb", "--no-sync", "--no-instructions", "-E", "UTF8",   "--locale=C", "-A",
                "trust",  "-U",        "postgres",          "-D", template, NULL
            };
            run(p, initdb);
            if (keeps)
                keep(template, kept);
        }
    }
    pthread_mutex_unlock(&lock);
    if (!postgres_folder_copy(template, p->data))
        give_up(p, "has no data folder");
}

static void write_settings(const struct postgres *p)
{
    char path[600], temporary[600], name[48];
    snprintf(path, sizeof path, "%s/postgresql.conf", p->data);
    snprintf(temporary, sizeof temporary, "%s/settings", p->dir);
    FILE *f = fopen(temporary, "we");
    assert_non_null(f);
    postgres_cluster_name(p->data, name, sizeof name);
    fprintf(f, "%sport = %d\ncluster_name = '%s'\n", base_settings, p->port, name);
    if (p->primary) {
        char conninfo[POSTGRES_CONNINFO_MAX];
        postgres_conninfo_port(conninfo, p->primary);
        fprintf(f, "primary_conninfo = '%s application_name=%s'\n", conninfo, p->name);
    }
    fputs(p->settings, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(temporary, 0644), 0);
    assert_int_equal(rename(temporary, path), 0); /* so that a reload never reads half of it */
}

/* The line of a setting, or NULL. */
static char *find_setting(struct postgres *p, const char *name)
{
    size_t size = strlen(name);
    for (char *at = p->settings; *at; at = strchr(at, '\n') + 1)
        if (strncmp(at, name, size) == 0 && at[size] == ' ')
            return at;
    return NULL;
}

void postgres_set(struct postgres *p, const char *name, const char *value)
{
    char *old = find_setting(p, name);
    if (old) {
        const char *rest = strchr(old, '\n') + 1;
        memmove(old, rest, strlen(rest) + 1);
    }
    size_t at = strlen(p->settings);
    int n = snprintf(p->settings + at, sizeof p->settings - at, "%s = '%s'\n", name, value);
    assert_true(n > 0 && (size_t)n < sizeof p->settings - at);
}

char *postgres_log(const struct postgres *p)
{
    char *text = calloc(1, LOG_END + 1);
    assert_non_null(text);
    int fd = open(p->log, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (fd >= 0 && pread(fd, text, LOG_END, size > LOG_END ? size - LOG_END : 0) < 0)
        text[0] = 0;
    if (fd >= 0)
        close(fd);
    return text;
}

/* ---- Start and stop ---- */

void postgres_begin(struct postgres *p)
{
    assert_int_equal(p->pid, 0);
    if (!p->made)
        make_data(p);
    p->made = true;
    write_settings(p);
    p->pid =
        postgres_spawn((const char *const[]){ "postgres", "-D", p->data, NULL }, p->data, p->log);
}

void postgres_await(struct postgres *p)
{
    enum { STARTS_MAX = 5 };
    int starts = 1;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(LOOK_MS)) {
        if (waitpid(p->pid, NULL, WNOHANG) == p->pid) {
            p->pid = 0;
            if (starts++ == STARTS_MAX)
                give_up(p, "did not start");
            /* On a busy machine those who were killed may still have its shared memory for a
             * moment. */
            server_pause_ms(200);
            postgres_begin(p);
        }
        if (postgres_accepting(p))
            return;
    }
    give_up(p, "did not accept connections in time");
}

void postgres_start(struct postgres *p)
{
    postgres_begin(p);
    postgres_await(p);
}

void postgres_reload(struct postgres *p)
{
    assert_true(p->pid > 0);
    char *before = postgres_ask(p, "SELECT pg_conf_load_time()");
    write_settings(p);
    assert_int_equal(kill(p->pid, SIGHUP), 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;; server_pause_ms(LOOK_MS)) {
        char *now = postgres_ask(p, "SELECT pg_conf_load_time()");
        bool same = strcmp(now, before) == 0;
        free(now);
        if (!same)
            break;
        assert_true(server_clock_ms() < until);
    }
    free(before);
}

/* The postmaster, our child. False if it does not end in time. */
static bool reap(struct postgres *p)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(LOOK_MS))
        if (waitpid(p->pid, NULL, WNOHANG) == p->pid) {
            p->pid = 0;
            return true;
        }
    return false;
}

void postgres_stop(struct postgres *p, enum postgres_stop how)
{
    assert_true(p->pid > 0);
    if (how != POSTGRES_KILL) {
        if (p->paused)
            postgres_resume(p);
        kill(p->pid, how == POSTGRES_FAST ? SIGINT : SIGQUIT);
        if (!reap(p))
            give_up(p, "did not stop");
    }
    postgres_kill_all(
        p->data); /* all, or a child that has not noticed yet that its parent is gone */
    p->paused = false;
    if (p->pid && !reap(p))
        give_up(p, "could not be killed");
}

void postgres_pause(struct postgres *p)
{
    assert_true(p->pid > 0);
    postgres_freeze_all(p->data);
    p->paused = true;
}

void postgres_resume(struct postgres *p)
{
    assert_true(p->pid > 0);
    postgres_signal_all(p->data, SIGCONT);
    p->paused = false;
}

void postgres_end(struct postgres *p)
{
    if (!p->dir)
        return;
    if (p->pid)
        postgres_stop(p, POSTGRES_KILL);
    close(p->reserved);
    postgres_folder_remove(p->dir);
    free(p->dir);
    p->dir = NULL;
}

/* ---- Asking ---- */

/* PQping would do, but that it waits two seconds at least for a server that is paused. */
bool postgres_accepting(const struct postgres *p)
{
    PGconn *c = PQconnectStart(p->conninfo);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    int64_t until = server_clock_ms() + ACCEPT_MS;
    while (PQstatus(c) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
           status != PGRES_POLLING_FAILED) {
        struct pollfd one = { .fd = PQsocket(c),
                              .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT };
        int64_t left = until - server_clock_ms();
        if (left <= 0 || poll(&one, 1, (int)left) <= 0)
            break;
        status = PQconnectPoll(c);
    }
    PQfinish(c);
    return status == PGRES_POLLING_OK;
}

const char *postgres_conninfo(const struct postgres *p)
{
    return p->conninfo;
}

static void ignore(void *arg, const PGresult *notice)
{
    (void)arg;
    (void)notice;
}

PGconn *postgres_connect(const struct postgres *p)
{
    PGconn *c = PQconnectdb(p->conninfo);
    if (PQstatus(c) != CONNECTION_OK) {
        print_error("%s", PQerrorMessage(c));
        PQfinish(c);
        give_up(p, "let nobody in");
    }
    PQsetNoticeReceiver(c, ignore, NULL);
    return c;
}

/* Wait until the next result is there. False if it takes too long: a commit may wait for a standby
 * forever. */
static bool ready(PGconn *c)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; PQisBusy(c);) {
        struct pollfd one = { .fd = PQsocket(c), .events = POLLIN };
        int64_t left = until - server_clock_ms();
        if (left <= 0 || poll(&one, 1, (int)left) <= 0)
            return false;
        if (!PQconsumeInput(c))
            return true; /* the connection is lost, and the result will say so */
    }
    return true;
}

/* The last result of a script, or the first that is an error, or NULL if it took too long.
 * Owned. */
static PGresult *execute(PGconn *c, const char *script)
{
    PGresult *last = NULL, *next;
    if (!PQsendQuery(c, script))
        return PQmakeEmptyPGresult(c, PGRES_FATAL_ERROR);
    while (ready(c)) {
        next = PQgetResult(c);
        if (!next)
            return last;
        if (last && PQresultStatus(last) == PGRES_FATAL_ERROR) {
            PQclear(next);
            continue;
        }
        PQclear(last);
        last = next;
    }
    PQclear(last);
    return NULL;
}

static bool good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

void postgres_run(const struct postgres *p, const char *script)
{
    PGconn *c = postgres_connect(p);
    PGresult *result = execute(c, script);
    bool done = good(result);
    if (!done)
        print_error("%s\n", result ? PQresultErrorMessage(result) : "it took too long");
    PQclear(result);
    PQfinish(c);
    if (!done)
        fail_msg("this script did not succeed: %s", script);
}

bool postgres_try(const struct postgres *p, const char *script)
{
    PGconn *c = PQconnectdb(p->conninfo);
    PQsetNoticeReceiver(c, ignore, NULL);
    PGresult *result = execute(c, script);
    bool done = good(result);
    PQclear(result);
    PQfinish(c);
    return done;
}

char *postgres_ask(const struct postgres *p, const char *query)
{
    PGconn *c = postgres_connect(p);
    PGresult *result = execute(c, query);
    bool there =
        PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0 && PQnfields(result) > 0;
    if (!there)
        print_error("%s\n", result ? PQresultErrorMessage(result) : "it took too long");
    char *text = there ? strdup(PQgetvalue(result, 0, 0)) : NULL;
    PQclear(result);
    PQfinish(c);
    if (!text)
        fail_msg("this query has no answer: %s", query);
    return text;
}

long long postgres_number(const struct postgres *p, const char *query)
{
    char *text = postgres_ask(p, query);
    long long number = strtoll(text, NULL, 10);
    free(text);
    return number;
}

void postgres_await_number(const struct postgres *p, const char *query, long long wanted)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(LOOK_MS))
        if (postgres_number(p, query) == wanted)
            return;
    fail_msg("this did not become %lld: %s", wanted, query);
}

void postgres_await_waiting(const struct postgres *p)
{
    postgres_await_number(
        p, "SELECT (count(*) > 0)::integer FROM pg_stat_activity WHERE wait_event = 'SyncRep'", 1);
}

/* ---- A primary and its standby ---- */

/* Copy the primary's folder, without the log of writes, which the standby fetches by streaming. The
 * copy's own settings come with the start; those that somebody gave the primary by ALTER SYSTEM are
 * not for it. */
static void copy_primary(struct postgres *standby, const struct postgres *primary)
{
    char path[600];
    const char *const backup[] = {
        "pg_basebackup", "-d",        primary->conninfo, "-D", standby->data, "-c", "fast", "-X",
        "none",          "--no-sync", "--no-manifest",   NULL
    };
    const char *const touch[] = { "/usr/bin/touch", "standby.signal", NULL };
    postgres_folder_remove(standby->data);
    run(standby, backup);
    snprintf(path, sizeof path, "%s/postgresql.auto.conf", standby->data);
    assert_int_equal(truncate(path, 0), 0);
    if (postgres_spawn_wait(touch, standby->data, standby->log) != 0)
        give_up(standby, "could not be made a standby");
    standby->made = true;
}

void postgres_follow(struct postgres *standby, struct postgres *primary, enum postgres_copy how,
                     int via)
{
    char names[64], streams[256];
    assert_int_equal(standby->pid, 0);
    copy_primary(standby, primary);
    postgres_set(standby, "synchronous_standby_names", "");
    standby->primary = via ? via : primary->port;
    postgres_start(standby);
    snprintf(names, sizeof names, "FIRST 1 (%s)", standby->name);
    postgres_set(primary, "synchronous_standby_names", how == POSTGRES_SYNC ? names : "");
    /* For a minute behind a reload, servers do not rely on what commits have waited for. Where no
     * session is there yet that would be cut off, they need not wait. */
    if (postgres_number(
            primary,
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid "
            "<> pg_backend_pid()") == 0) {
        postgres_stop(primary, POSTGRES_FAST);
        postgres_start(primary);
    } else {
        postgres_reload(primary);
    }
    snprintf(streams, sizeof streams,
             "SELECT count(*) FROM pg_stat_replication WHERE application_name = '%s' AND state = "
             "'streaming' AND sync_state = '%s'",
             standby->name, how == POSTGRES_SYNC ? "sync" : "async");
    postgres_await_number(primary, streams, 1);
}

void postgres_await_copied(const struct postgres *standby, const struct postgres *primary)
{
    char there[160];
    char *end = postgres_ask(primary, "SELECT pg_current_wal_lsn()");
    snprintf(there, sizeof there, "SELECT (pg_last_wal_replay_lsn() >= '%s')::int", end);
    free(end);
    postgres_await_number(standby, there, 1);
}

void postgres_promote(struct postgres *standby)
{
    /* Not pg_promote(true): it keeps a snapshot while it waits, and what is replayed meanwhile may
     * have to wait for that. */
    char *told = postgres_ask(standby, "SELECT pg_promote(false)");
    bool promoted = strcmp(told, "t") == 0;
    free(told);
    if (!promoted)
        give_up(standby, "was not promoted");
    postgres_await_number(standby, "SELECT pg_is_in_recovery()::integer", 0);
    standby->primary = 0;
}

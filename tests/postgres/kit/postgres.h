/* postgres.h: real PostgreSQL servers for a test, from Debian's packages, on loopback and in a
 * temporary folder.
 *
 *     struct postgres p;
 *     postgres_init(&p);                       a folder, a port, settings that suit a test
 *     postgres_set(&p, "fsync", "on");         other settings, if wanted
 *     postgres_start(&p);                      accepts connections when it comes back
 *     ... postgres_conninfo(&p) ...
 *     postgres_end(&p);
 *
 * The superuser is `postgres`, the database `postgres` (UTF8, locale C), everybody who reaches the
 * port is trusted, there is no TLS and no unix socket. initdb runs once in a test process; other
 * clusters are copies of its result, which means that PostgreSQL itself cannot tell them apart
 * (they share a system identifier).
 *
 * A port belongs to its struct postgres from postgres_init to postgres_end, also while the server
 * is down: nobody else gets it in between, and a connection to it is refused.
 *
 * Whatever cannot be done fails the test, with the end of the server's log. A test that fails, is
 * killed or forgets leaves nothing behind (process.h). Functions may be called by several threads,
 * but not at once for the same cluster; asking and connecting may go on at any time. */
#ifndef HF_TESTS_POSTGRES_KIT_POSTGRES_H
#define HF_TESTS_POSTGRES_KIT_POSTGRES_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

enum { POSTGRES_SETTINGS_MAX = 4096, POSTGRES_CONNINFO_MAX = 256 };

struct postgres {
    char *dir;      /* owned: DIR/data is the cluster, DIR/log what the programs say */
    char data[512]; /* DIR/data */
    char log[512];  /* DIR/log */
    char name[32];  /* its application_name as a standby, unique in the process */
    int port;       /* on 127.0.0.1 */
    int reserved;   /* a socket that keeps the port ours */
    pid_t pid;      /* of the postmaster; 0: not running */
    bool paused;
    bool made; /* there is a cluster in DIR/data */
    /* the port of the primary that it follows; 0: it was not made as a standby, or was promoted */
    int primary;
    char settings
        [POSTGRES_SETTINGS_MAX]; /* lines behind those of postgres_init in postgresql.conf */
    char conninfo[POSTGRES_CONNINFO_MAX];
};

enum postgres_stop {
    POSTGRES_FAST,      /* sessions are ended, then a checkpoint (SIGINT) */
    POSTGRES_IMMEDIATE, /* no checkpoint; recovery at the next start (SIGQUIT) */
    POSTGRES_KILL       /* SIGKILL for the postmaster and all its children at one moment */
};

/* ---- A cluster ---- */

/* p: out, not running yet. Settings: fsync off, synchronous_commit on, 64 connections, 4 WAL
 * senders, 32 MB of buffers. */
void postgres_init(struct postgres *p);
/* Give a setting in place of what it was, without quotes, such as "synchronous_commit",
 * "remote_apply". It counts from the next start or postgres_reload. */
void postgres_set(struct postgres *p, const char *name, const char *value);
/* Start and wait until it accepts connections. What was there before is kept: after POSTGRES_KILL
 * this is the recovery, and for a primary whose standby was promoted meanwhile this revives it as
 * it was, stale and writable. (If it replicated synchronously its commits wait for a standby then;
 * postgres_set "synchronous_standby_names" to "" before, if they should not.) */
void postgres_start(struct postgres *p);
/* The same without waiting: recovery may take its time. postgres_await waits. */
void postgres_begin(struct postgres *p);
void postgres_await(struct postgres *p);
/* Write the settings and let the running server read them (SIGHUP): for new sessions from now on,
 * and for others before their next statement. */
void postgres_reload(struct postgres *p);
/* Stop it, paused or not, and wait until no process of it is left. */
void postgres_stop(struct postgres *p, enum postgres_stop how);
/* Stop all its processes by SIGSTOP: connections stay open and silent. Resume lets all of them go
 * on. */
void postgres_pause(struct postgres *p);
void postgres_resume(struct postgres *p);
/* Does it accept connections now? Answers within half a second, also if it is paused (then: no). */
bool postgres_accepting(const struct postgres *p);
/* Stop it if it runs, remove the folder, give back the port. Also right after postgres_init, and
 * twice. */
void postgres_end(struct postgres *p);
/* The end of DIR/log, for messages. Owned, free with free(). */
char *postgres_log(const struct postgres *p);

/* A free port on 127.0.0.1 that stays ours until the descriptor is closed: a socket bound to it
 * with SO_REUSEADDR that does not listen lets another with SO_REUSEADDR bind the same one and
 * listen, and keeps away all who ask for a free port. */
int postgres_reserve_port(int *port);

/* ---- Asking it ---- */

/* For PQconnectdb or for the store: host, port, user, dbname, no TLS. Borrowed, good until
 * postgres_end. */
const char *postgres_conninfo(const struct postgres *p);
/* The same with the port of a relay or another server in place of its own. out: of
 * POSTGRES_CONNINFO_MAX bytes. */
void postgres_conninfo_port(char *out, int port);
/* One string with both as hosts, `a` first, and target_session_attrs=read-write. out: of
 * POSTGRES_CONNINFO_MAX bytes. */
void postgres_conninfo_pair(char *out, const struct postgres *a, const struct postgres *b);
/* A connection. Owned, PQfinish ends it. */
PGconn *postgres_connect(const struct postgres *p);
/* Run a script of any number of statements on a connection of its own; all must succeed, each
 * within a minute. */
void postgres_run(const struct postgres *p, const char *script);
/* The same; whether all succeeded. */
bool postgres_try(const struct postgres *p, const char *script);
/* The first column of the first row as text, "" if it is null; there must be a row. Owned, free
 * with free(). */
char *postgres_ask(const struct postgres *p, const char *query);
/* That as a number. */
long long postgres_number(const struct postgres *p, const char *query);
/* Ask until the answer is this number; fails the test after a minute. */
void postgres_await_number(const struct postgres *p, const char *query, long long wanted);
/* Wait until a commit waits for the synchronous standby. */
void postgres_await_waiting(const struct postgres *p);

/* ---- A primary and its standby ---- */

enum postgres_copy {
    /* a commit does not wait: what the standby had not received is lost with the primary */
    POSTGRES_ASYNC,
    /* a commit waits for it as synchronous_commit says (on: the standby has flushed it) */
    POSTGRES_SYNC
};

/* Make `standby` a streaming copy of the running `primary` by pg_basebackup, start it, and wait
 * until it streams. standby: after postgres_init or stopped; whatever it had is thrown away, its
 * port, name and settings are kept (but it waits for no standby of its own when it is promoted), so
 * this also takes in an old primary again. via: the port at which the standby reaches the primary,
 * such as that of a relay; 0: the primary's own. The primary's synchronous_standby_names is set to
 * this standby alone, or for POSTGRES_ASYNC to nobody. */
void postgres_follow(struct postgres *standby, struct postgres *primary, enum postgres_copy how,
                     int via);
/* Wait until the standby shows all that the primary has written up to now. */
void postgres_await_copied(const struct postgres *standby, const struct postgres *primary);
/* Make a standby a primary of its own, and wait until it takes writes. Who was its primary is not
 * asked. */
void postgres_promote(struct postgres *standby);

#endif

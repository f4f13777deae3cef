/* process.h: PostgreSQL's programs as processes: as whom they run, what belongs to a cluster, and
 * that nothing of them outlives the test.
 *
 * Everything stands in one temporary folder a test process, the root, with a folder for each
 * cluster in it. It is in TMPDIR; without that in memory (/dev/shm) if 4 GB are free there, or in
 * /tmp. PostgreSQL refuses to run as root; then its programs run as the user `postgres` (or
 * `nobody`), who owns the root.
 *
 * A process belongs to a cluster if its command line says so: that of the postmaster has the data
 * folder in it, those of its children the name of the cluster (the setting cluster_name). That
 * finds the children too, which each lead a session of their own, and those whose parent is dead
 * already.
 *
 * Two things end what a test left: a handler at exit, and a guard, which is a process that waits
 * until the test process is gone, however it went, and then does the same. (PR_SET_PDEATHSIG would
 * do less: it fires when the thread that started the server ends, it does not reach what is stopped
 * by SIGSTOP, and it removes no folder.) */
#ifndef HF_TESTS_POSTGRES_KIT_PROCESS_H
#define HF_TESTS_POSTGRES_KIT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The root, made with the first call, together with the handler and the guard. Borrowed, without a
 * slash at its end. */
const char *postgres_root(void);

/* The folder of the newest PostgreSQL under /usr/lib/postgresql, or what HF_POSTGRES_BIN names; the
 * test fails if there is none. Borrowed. */
const char *postgres_bin(void);

/* A new folder in the root for a cluster. Owned, free with free(). */
char *postgres_folder_make(void);
/* Remove a folder and all that is in it. */
void postgres_folder_remove(const char *path);
/* Copy a folder and all that is in it, with its owners. `to` must not be there yet. False if that
 * failed; then a part of it may be there. */
bool postgres_folder_copy(const char *from, const char *to);

/* Where this build keeps a data folder for its tests, made by the PostgreSQL of postgres_bin() for
 * the user of the root. path: out. False if there is no build folder (HF_BUILD). */
bool postgres_template(char *path, size_t room);

/* Start a program of postgres_bin(), or one with an absolute path, as the user of the root, in the
 * working directory `cwd`, with stdout and stderr appended to the file `log` and no other
 * descriptor. argv: borrowed, ends with NULL. Answers its pid. */
pid_t postgres_spawn(const char *const *argv, const char *cwd, const char *log);
/* The same, and wait for its end: its exit code (128 + n after signal n). */
int postgres_spawn_wait(const char *const *argv, const char *cwd, const char *log);

/* The name of the cluster in `data`, a folder DIR/data where DIR is by postgres_folder_make. name:
 * out. */
void postgres_cluster_name(const char *data, char *name, size_t room);

/* Send a signal to every process of the cluster in `data`, and say how many there were. */
size_t postgres_signal_all(const char *data, int signal);
/* Stop all of them by SIGSTOP: nothing of the cluster runs when this comes back. */
void postgres_freeze_all(const char *data);
/* Kill all of them at one moment, as seen by them: first all are stopped, then all are killed. What
 * they leave outside of the folder (a small shared memory segment) is removed. The one that is the
 * caller's child is left for it to wait for. */
void postgres_kill_all(const char *data);

#endif

#define _GNU_SOURCE /* close_range, asprintf */
#include "postgres/kit/process.h"

#include "server/kit/server.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GUARD_LOOK_MS = 50, RANDOM = 6 /* letters by mkdtemp */ };
#define MEMORY_MIN (UINT64_C(4) << 30)

static struct {
    pthread_mutex_t lock;
    char *root;  /* owned: NULL until it is needed */
    char *bin;   /* owned */
    pid_t owner; /* the process that made the root; a child of it must not clean up */
    bool drop;   /* we are root, so programs run as: */
    uid_t uid;
    gid_t gid;
} kit = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- Who belongs to a cluster ---- */

/* What the command lines of processes show: a postmaster its data folder, its children the name of
 * the cluster. Reading them needs no right that root might not have in a container, as reading
 * /proc/PID/cwd would. */
struct family {
    char path[PATH_MAX]; /* an argument of the postmaster is this, or (all) begins with this */
    char title[64];      /* the titles of its children begin with this */
    bool all;            /* all clusters of the root */
};

void postgres_cluster_name(const char *data, char *name, size_t room)
{
    size_t end = strlen(data) - strlen("/data"); /* .../holdfast-postgres-RANDOM/RANDOM/data */
    assert_true(end > 2 * RANDOM + 1);
    snprintf(name, room, "hf-%.*s-%.*s", RANDOM, data + end - 2 * RANDOM - 1, RANDOM,
             data + end - RANDOM);
}

static void family_of(const char *data, struct family *f)
{
    char name[48];
    f->all = false;
    postgres_cluster_name(data, name, sizeof name);
    snprintf(f->path, sizeof f->path, "%s", data);
    snprintf(f->title, sizeof f->title, "postgres: %s: ", name);
}

static void family_of_root(struct family *f)
{
    f->all = true;
    snprintf(f->path, sizeof f->path, "%s/", kit.root);
    snprintf(f->title, sizeof f->title, "postgres: hf-%s-", kit.root + strlen(kit.root) - RANDOM);
}

/* Is it one of them by its command line, of `size` bytes and a zero behind them? */
static bool belongs(const char *line, size_t size, const struct family *f)
{
    if (strncmp(line, f->title, strlen(f->title)) == 0)
        return true;
    if (strncmp(line, kit.bin, strlen(kit.bin)) != 0)
        return false;
    for (const char *at = line; at < line + size; at += strlen(at) + 1)
        if (f->all ? strncmp(at, f->path, strlen(f->path)) == 0 : strcmp(at, f->path) == 0)
            return true;
    return false;
}

static size_t read_proc(pid_t pid, const char *which, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, which);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? (size_t)n : 0;
}

/* The letter of /proc/PID/stat, behind the name in parentheses; 0 if the process is gone. */
static char state_of(pid_t pid)
{
    char text[512];
    (void)read_proc(pid, "stat", text, sizeof text);
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

/* The process that an entry of /proc names, if it is one of the family and no zombie, or 0. */
static pid_t member(const struct dirent *entry, const struct family *f)
{
    char *end, line[4096];
    long pid = strtol(entry->d_name, &end, 10);
    if (*end || pid <= 1)
        return 0;
    size_t size = read_proc((pid_t)pid, "cmdline", line, sizeof line);
    return size > 0 && belongs(line, size, f) ? (pid_t)pid : 0;
}

/* signal 0: only count. running: count and signal only those that are not stopped. */
static size_t each(const struct family *f, bool running, int signal)
{
    size_t count = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    for (const struct dirent *entry; (entry = readdir(proc));) {
        pid_t pid = member(entry, f);
        char state = pid ? state_of(pid) : 0;
        if (pid <= 1 || state == 0 || state == 'Z' || state == 'X' || (running && state == 'T'))
            continue;
        count++;
        kill(pid, signal);
    }
    closedir(proc);
    return count;
}

/* A process that was told to stop may still finish a fork, so look until all that are there have
 * stopped. */
static void freeze(const struct family *f)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         each(f, true, SIGSTOP) > 0 && server_clock_ms() < until;)
        server_pause_ms(1);
}

static bool kill_and_wait(const struct family *f)
{
    freeze(f);
    each(f, false, SIGKILL);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(1))
        if (each(f, false, 0) == 0)
            return true;
    return false;
}

/* A server that was killed leaves its shared memory segment; the seventh line of postmaster.pid is
 * its key and its id. */
static void release_memory(const char *data)
{
    char path[PATH_MAX], line[256];
    int id;
    snprintf(path, sizeof path, "%s/postmaster.pid", data);
    FILE *f = fopen(path, "re");
    for (int i = 1; f && fgets(line, sizeof line, f); i++)
        if (i == 7 && sscanf(line, "%*u %d", &id) == 1)
            shmctl(id, IPC_RMID, NULL);
    if (f)
        fclose(f);
}

size_t postgres_signal_all(const char *data, int signal)
{
    struct family f;
    family_of(data, &f);
    return each(&f, false, signal);
}

void postgres_freeze_all(const char *data)
{
    struct family f;
    family_of(data, &f);
    freeze(&f);
    assert_int_equal(each(&f, true, 0), 0);
}

void postgres_kill_all(const char *data)
{
    struct family f;
    family_of(data, &f);
    assert_true(kill_and_wait(&f));
    release_memory(data);
}

/* ---- Nothing is left ---- */

static void release_all_memory(void)
{
    DIR *root = opendir(kit.root);
    if (!root)
        return;
    for (const struct dirent *entry; (entry = readdir(root));) {
        char data[PATH_MAX];
        snprintf(data, sizeof data, "%s/%s/data", kit.root, entry->d_name);
        release_memory(data);
    }
    closedir(root);
}

static void sweep(void)
{
    struct family f;
    family_of_root(&f);
    (void)kill_and_wait(&f);
    release_all_memory();
}

static void at_exit(void)
{
    if (getpid() != kit.owner)
        return;
    sweep();
    postgres_folder_remove(kit.root);
}

/* Wait until the test process is gone. test: a descriptor of it, or -1 where the system has
 * none. */
static void await_end(int test)
{
    struct pollfd one = { .fd = test, .events = POLLIN };
    while (test >= 0 && poll(&one, 1, -1) <= 0)
        ;
    while (test < 0 && kill(kit.owner, 0) == 0)
        server_pause_ms(GUARD_LOOK_MS);
}

/* The guard leaves the terminal's group and the test's descendants, so that what ends the test, by
 * an interrupt or with all its children after a time limit, does not end the guard; and it holds
 * nothing open for which somebody might wait. */
static _Noreturn void guard(int test)
{
    int null = open("/dev/null", O_RDWR);
    setsid();
    if (fork() != 0)
        _exit(0);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    if (test >= 0)
        test = dup2(test, 3);
    close_range(4, ~0U, 0);
    await_end(test);
    sweep();
    execl("/bin/rm", "rm", "-rf", "--", kit.root, (char *)NULL);
    _exit(1);
}

static void start_guard(void)
{
    int test = (int)syscall(SYS_pidfd_open, kit.owner, 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        guard(test);
    if (test >= 0)
        close(test);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- The root and the programs ---- */

static void choose_user(void)
{
    kit.drop = geteuid() == 0;
    if (!kit.drop)
        return;
    const struct passwd *user = getpwnam("postgres");
    if (!user)
        user = getpwnam("nobody");
    assert_non_null(user);
    kit.uid = user->pw_uid;
    kit.gid = user->pw_gid;
}

/* Where the root is made. Clusters are made, copied and removed all the time, and memory does that
 * several times faster. */
static const char *temporary(void)
{
    const char *given = getenv("TMPDIR");
    struct statvfs memory;
    if (given && *given)
        return given;
    bool roomy = access("/dev/shm", W_OK | X_OK) == 0 && statvfs("/dev/shm", &memory) == 0 &&
                 (uint64_t)memory.f_bavail * memory.f_frsize >= MEMORY_MIN;
    return roomy ? "/dev/shm" : "/tmp";
}

static void make_root(void)
{
    char *path = NULL;
    (void)postgres_bin();
    choose_user();
    assert_true(asprintf(&path, "%s/holdfast-postgres-XXXXXX", temporary()) > 0);
    assert_non_null(mkdtemp(path));
    if (kit.drop)
        assert_int_equal(chown(path, kit.uid, kit.gid), 0);
    kit.root = path;
    kit.owner = getpid();
    assert_int_equal(atexit(at_exit), 0);
    start_guard();
}

const char *postgres_root(void)
{
    pthread_mutex_lock(&kit.lock);
    if (!kit.root)
        make_root();
    pthread_mutex_unlock(&kit.lock);
    return kit.root;
}

/* The highest number under /usr/lib/postgresql that has a server in it. */
static int newest(void)
{
    int best = 0;
    DIR *folder = opendir("/usr/lib/postgresql");
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[PATH_MAX];
        int version = atoi(entry->d_name);
        snprintf(path, sizeof path, "/usr/lib/postgresql/%s/bin/postgres", entry->d_name);
        if (version > best && access(path, X_OK) == 0)
            best = version;
    }
    closedir(folder);
    return best;
}

const char *postgres_bin(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const char *given = getenv("HF_POSTGRES_BIN");
    if (!kit.bin && given)
        kit.bin = strdup(given);
    else if (!kit.bin && asprintf(&kit.bin, "/usr/lib/postgresql/%d/bin", newest()) < 0)
        kit.bin = NULL;
    pthread_mutex_unlock(&lock);
    assert_non_null(kit.bin);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/postgres", kit.bin);
    if (access(path, X_OK) != 0)
        fail_msg("There is no PostgreSQL server at %s; install Debian's package postgresql.", path);
    return kit.bin;
}

char *postgres_folder_make(void)
{
    char *path = NULL;
    assert_true(asprintf(&path, "%s/XXXXXX", postgres_root()) > 0);
    assert_non_null(mkdtemp(path));
    if (kit.drop)
        assert_int_equal(chown(path, kit.uid, kit.gid), 0);
    return path;
}

void postgres_folder_remove(const char *path)
{
    char *copy = strdup(path);
    if (copy)
        test_dir_remove(copy);
}

bool postgres_folder_copy(const char *from, const char *to)
{
    char *source = strdup(from), *target = strdup(to);
    char program[] = "/bin/cp", all[] = "-a", cheap[] = "--reflink=auto";
    char *const argv[] = { program, all, cheap, source, target, NULL };
    int status = -1;
    pid_t pid;
    assert_true(source && target);
    if (posix_spawn(&pid, program, NULL, NULL, argv, environ) == 0)
        while (waitpid(pid, &status, 0) < 0)
            assert_int_equal(errno, EINTR);
    free(source);
    free(target);
    return status == 0;
}

bool postgres_template(char *path, size_t room)
{
    const char *build = getenv("HF_BUILD");
    (void)postgres_root();
    int n = snprintf(path, room, "%s/postgres%s-of-%d", build ? build : "", postgres_bin(),
                     kit.drop ? (int)kit.uid : (int)getuid());
    assert_true(n > 0 && (size_t)n < room);
    for (char *p = path + (build ? strlen(build) + 1 : 0); *p; p++)
        if (*p == '/')
            *p = '-';
    return build != NULL;
}

/* In the child: only calls that are safe although the test may have threads. */
static _Noreturn void become(const char *program, char *const *argv, const char *cwd, int log)
{
    char locale[] = "LC_ALL=C", zone[] = "TZ=UTC", path[] = "PATH=/usr/bin:/bin";
    char *const environment[] = { locale, zone, path, NULL };
    sigset_t none;
    sigemptyset(&none);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(99);
    close_range(3, ~0U, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (kit.drop && (setgroups(0, NULL) != 0 || setgid(kit.gid) != 0 || setuid(kit.uid) != 0))
        _exit(98);
    if (chdir(cwd) != 0)
        _exit(97);
    execve(program, argv, environment);
    _exit(96);
}

pid_t postgres_spawn(const char *const *argv, const char *cwd, const char *log)
{
    char program[PATH_MAX];
    char *copy[48] = { NULL };
    (void)postgres_root();
    if (argv[0][0] == '/')
        snprintf(program, sizeof program, "%s", argv[0]);
    else
        snprintf(program, sizeof program, "%s/%s", postgres_bin(), argv[0]);
    for (size_t i = 0; argv[i]; i++) {
        assert_true(i + 1 < sizeof copy / sizeof *copy);
        copy[i] = strdup(i ? argv[i] : program); /* they look for each other beside themselves */
    }
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(out >= 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(program, copy, cwd, out);
    close(out);
    for (size_t i = 0; copy[i]; i++)
        free(copy[i]);
    assert_true(pid > 0);
    return pid;
}

int postgres_spawn_wait(const char *const *argv, const char *cwd, const char *log)
{
    int status;
    pid_t pid = postgres_spawn(argv, cwd, log);
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

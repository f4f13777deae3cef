/* Files, by Landlock. The system calls are made without a library, and their constants are defined
 * here, because the headers of a build machine are often older than the kernel that runs the
 * program. */
#define _GNU_SOURCE /* O_PATH */
#include "server/sandbox.h"

#include "server/sandbox_calls.h"
#include "store/postgres/conninfo.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The thread sanitizer has a thread of its own. */
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { THREADS_MAX = 2 };
#else
enum { THREADS_MAX = 1 };
#endif

/* ---- The kernel's constants: see landlock(7) ---- */

#define FS_EXECUTE (UINT64_C(1) << 0)
#define FS_WRITE_FILE (UINT64_C(1) << 1)
#define FS_READ_FILE (UINT64_C(1) << 2)
#define FS_READ_DIR (UINT64_C(1) << 3)
#define FS_REMOVE_DIR (UINT64_C(1) << 4)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_DIR (UINT64_C(1) << 7)
#define FS_MAKE_REG (UINT64_C(1) << 8)
#define FS_REFER (UINT64_C(1) << 13)
#define FS_TRUNCATE (UINT64_C(1) << 14)
#define NET_BIND (UINT64_C(1) << 0)
#define NET_CONNECT (UINT64_C(1) << 1)

/* What each version of Landlock can forbid. All of it is forbidden, except what is allowed
 * below. */
static const struct {
    int abi;
    uint64_t fs, net, scoped;
} versions[] = {
    { 1, (UINT64_C(1) << 13) - 1, 0, 0 }, /* Linux 5.13: read, write, execute, make, remove */
    { 2, FS_REFER, 0, 0 },                /* 5.19: move to another directory */
    { 3, FS_TRUNCATE, 0, 0 },             /* 6.2: truncate */
    { 4, 0, NET_BIND | NET_CONNECT, 0 },  /* 6.7: bind and connect, TCP */
    { 5, UINT64_C(1) << 15, 0, 0 },       /* 6.10: ioctl on devices */
    /* 6.12: abstract sockets and signals of other processes */
    { 6, 0, 0, UINT64_C(1) << 0 | UINT64_C(1) << 1 },
};

struct ruleset_attr {
    /* An older kernel accepts this longer struct if the members that it does not know are 0. */
    uint64_t fs, net, scoped;
};

struct path_attr {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

struct port_attr {
    uint64_t allowed, port;
};

enum { RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2 };

#define WRITABLE                                                                                 \
    (FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | \
     FS_MAKE_REG | FS_REFER | FS_TRUNCATE)

/* ---- Rules ---- */

struct entering {
    int rules; /* the ruleset's descriptor */
    struct ruleset_attr handled;
    struct hf_error *why;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct hf_error *why, const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->status = HF_MISUSE;
    return false;
}

#define OFF "To start without a sandbox, use --sandbox off."

/* With a service file the database's address can change while the server runs: then any port is
 * allowed. */
static bool any_port(const struct hf_sandbox *sandbox)
{
    char service[256] = "";
    if (sandbox->postgres)
        hf_conninfo_value(sandbox->postgres, "service", service, sizeof service);
    return service[0] != '\0';
}

static bool rules_make(struct entering *e, const struct hf_sandbox *sandbox)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    if (abi < 1 && errno == EOPNOTSUPP)
        return refuse(e->why,
                      "Landlock is disabled in this kernel: add landlock to its lsm= list. " OFF);
    if (abi < 1)
        return refuse(
            e->why, "The kernel does not support Landlock (%s). It needs Linux 5.13 or newer. " OFF,
            strerror(errno));
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (versions[i].abi > abi)
            break;
        e->handled.fs |= versions[i].fs;
        e->handled.net |= versions[i].net;
        e->handled.scoped |= versions[i].scoped;
    }
    if (any_port(sandbox))
        e->handled.net &= ~NET_CONNECT;
    e->rules = (int)syscall(SYS_landlock_create_ruleset, &e->handled, sizeof e->handled, 0);
    return e->rules >= 0 ||
           refuse(e->why, "Cannot create Landlock rules: %s. " OFF, strerror(errno));
}

/* Allow `rights` for `path` and everything below; for a file, only the rights that a file can
 * have. */
static bool allow(struct entering *e, const char *path, uint64_t rights)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return refuse(e->why, "%.300s cannot be allowed in the sandbox: %s.", path,
                      strerror(error));
    }
    if (!S_ISDIR(st.st_mode))
        rights &= FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
    struct path_attr rule = { .allowed = rights & e->handled.fs, .parent = fd };
    bool done = syscall(SYS_landlock_add_rule, e->rules, RULE_PATH_BENEATH, &rule, 0) == 0;
    int error = errno;
    close(fd);
    return done || refuse(e->why, "%.300s cannot be allowed in the sandbox: %s. " OFF, path,
                          strerror(error));
}

/* Allow the directory of a file, because another file may replace it. */
static bool allow_beside(struct entering *e, const char *path)
{
    char copy[PATH_MAX];
    int size = snprintf(copy, sizeof copy, "%s", path);
    if (size < 0 || (size_t)size >= sizeof copy)
        return refuse(e->why, "The path is too long: %.300s.", path);
    const char *directory = dirname(copy);
    return strcmp(directory, "/") == 0 || allow(e, directory, FS_READ_FILE);
}

static bool allow_reading(struct entering *e, const char *path)
{
    struct stat st;
    char target[PATH_MAX];
    if (!allow(e, path, FS_READ_FILE | FS_READ_DIR))
        return false;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    if (!realpath(path, target))
        return refuse(e->why, "%.300s cannot be allowed in the sandbox: %s.", path,
                      strerror(errno));
    return allow_beside(e, path) && allow_beside(e, target);
}

/* ---- A database ---- */

/* A file that may be missing, without its directory. */
static bool allow_if_there(struct entering *e, const char *path)
{
    return access(path, F_OK) != 0 || allow(e, path, FS_READ_FILE | FS_READ_DIR);
}

/* A file of the system that may be replaced. If it is a link to another directory
 * (/run/systemd/resolve), that directory is allowed too; but never all of /etc or /usr. */
static bool allow_of_system(struct entering *e, const char *path)
{
    char target[PATH_MAX];
    if (!realpath(path, target))
        return true;
    return allow(e, path, FS_READ_FILE) &&
           (strncmp(target, "/etc/", 5) == 0 || strncmp(target, "/usr/", 5) == 0 ||
            allow_beside(e, target));
}

/* The files that the DNS resolver reads, and by which the C library knows the user. */
static bool allow_names(struct entering *e)
{
    static const char *const files[] = { "/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf",
                                         "/etc/host.conf",   "/etc/gai.conf", "/etc/services",
                                         "/etc/passwd" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!allow_of_system(e, files[i]))
            return false;
    return true;
}

/* The files that libpq reads: named in the connection string or the environment, and its
 * defaults. */
static bool allow_libpq(struct entering *e, const char *conninfo)
{
    static const char *const named[] = { "passfile", "sslrootcert", "sslcert",
                                         "sslkey",   "sslcrl",      "sslcrldir" };
    static const char *const at_home[] = { ".pgpass", ".pg_service.conf", ".postgresql" };
    const char *home = getenv("HOME"), *services = getenv("PGSERVICEFILE");
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        hf_conninfo_value(conninfo, named[i], path, sizeof path);
        /* sslrootcert=system: the certificate authorities of the system. */
        bool system = strcmp(path, "system") == 0;
        if (system && !(allow_if_there(e, "/etc/ssl/certs") &&
                        allow_if_there(e, "/usr/share/ca-certificates")))
            return false;
        if (path[0] && !system && access(path, F_OK) == 0 && !allow_reading(e, path))
            return false;
    }
    for (size_t i = 0; home && i < sizeof at_home / sizeof *at_home; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", home, at_home[i]);
        if (n > 0 && (size_t)n < sizeof path && !allow_if_there(e, path))
            return false;
    }
    return (!services || allow_if_there(e, services)) &&
           allow_if_there(e, "/etc/postgresql-common/pg_service.conf");
}

enum { DEFAULT_PORT = 5432, RESOLVER_PORT = 53 };

static bool allow_port(struct entering *e, unsigned long port)
{
    struct port_attr rule = { NET_CONNECT, port };
    return !(e->handled.net & NET_CONNECT) ||
           syscall(SYS_landlock_add_rule, e->rules, RULE_NET_PORT, &rule, 0) == 0 ||
           refuse(e->why, "Port %lu cannot be allowed in the sandbox: %s. " OFF, port,
                  strerror(errno));
}

/* The ports of the database, which may have several hosts, and the port of the DNS resolver. */
static bool allow_ports(struct entering *e, const char *conninfo)
{
    char ports[256];
    hf_conninfo_value(conninfo, "port", ports, sizeof ports);
    for (const char *p = ports;; p++) {
        unsigned long port = strtoul(p, NULL, 10);
        if (!allow_port(e, port ? port : DEFAULT_PORT)) /* an empty place means the default */
            return false;
        p += strcspn(p, ",");
        if (*p == '\0')
            return allow_port(e, RESOLVER_PORT);
    }
}

static bool allow_database(struct entering *e, const char *conninfo)
{
    return allow_names(e) && allow_libpq(e, conninfo) && allow_ports(e, conninfo);
}

/* The C library's name service modules are code, which cannot be loaded later. */
static void modules_load(void)
{
    struct addrinfo *found = NULL;
    if (getaddrinfo("localhost", NULL, NULL, &found) == 0)
        freeaddrinfo(found);
    (void)getpwuid(getuid());
}

/* ---- All rules ---- */

/* Our own directory, which is removed at the end: to remove it takes a right on its parent. */
static bool allow_temporary(struct entering *e, const char *path)
{
    char copy[PATH_MAX];
    int size = snprintf(copy, sizeof copy, "%s", path);
    if (size < 0 || (size_t)size >= sizeof copy)
        return refuse(e->why, "The path is too long: %.300s.", path);
    return allow(e, path, WRITABLE) && allow(e, dirname(copy), FS_REMOVE_DIR);
}

static bool rules_fill(struct entering *e, const struct hf_sandbox *sandbox)
{
    if (sandbox->writable && !allow(e, sandbox->writable, WRITABLE))
        return false;
    if (sandbox->temporary && !allow_temporary(e, sandbox->temporary))
        return false;
    if (sandbox->postgres && !allow_database(e, sandbox->postgres))
        return false;
    for (size_t i = 0; i < sandbox->readable_count; i++)
        if (!allow_reading(e, sandbox->readable[i]))
            return false;
    return true;
}

/* ---- Entering ---- */

/* Libraries make temporary files (SQLite does, to sort), and these are the only directories where
 * they can. */
static bool temporary_files(const struct hf_sandbox *sandbox, struct hf_error *why)
{
    const char *folder = sandbox->temporary ? sandbox->temporary : sandbox->writable;
    return !folder ||
           (setenv("TMPDIR", folder, 1) == 0 && setenv("SQLITE_TMPDIR", folder, 1) == 0) ||
           refuse(why, "Out of memory while entering the sandbox.");
}

/* Landlock restricts the calling thread and its children, but not threads that already exist. */
static bool is_alone(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) != 0 || st.st_nlink <= 2 + THREADS_MAX;
}

static bool rules_enter(struct entering *e, bool connects)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_landlock_restrict_self, e->rules, 0) != 0)
        return refuse(e->why, "Cannot apply the Landlock rules: %s. " OFF, strerror(errno));
    int error = hf_sandbox_calls(connects);
    return error == 0 ||
           refuse(e->why, "Cannot filter system calls (seccomp): %s. " OFF, strerror(-error));
}

enum hf_status hf_sandbox_enter(const struct hf_sandbox *sandbox, struct hf_error *why)
{
    struct entering e = { .rules = -1, .why = why };
    *why = (struct hf_error){ HF_OK, "" };
    if (sandbox->postgres)
        modules_load();
    if (sizeof(void *) < 8)
        refuse(why, "The sandbox works on 64-bit systems only. " OFF);
    else if (!is_alone())
        refuse(why, "The sandbox must be entered before the first thread is started.");
    else if (rules_make(&e, sandbox) && rules_fill(&e, sandbox) && temporary_files(sandbox, why))
        rules_enter(&e, sandbox->postgres != NULL);
    if (e.rules >= 0)
        close(e.rules);
    return why->status;
}

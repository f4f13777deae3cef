#define _GNU_SOURCE /* O_TMPFILE, sync_file_range */
#include "unit/kit/sandbox.h"

#include "support/test_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED true
#endif
#endif
#ifndef INSTRUMENTED
#define INSTRUMENTED false
#endif

#ifdef HF_COVERAGE
void __gcov_dump(void); /* NOLINT: its name is gcc's */
#endif

struct cell cell;
static bool uncounted; /* this process cannot write its counters */

void cell_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

const char *cell_in(const char *folder, const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

int cell_setup(void **state)
{
    (void)state;
    cell.dir = test_dir_make();
    const char *folders[] = { "data", "etc", "live", "archive" };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(mkdir(cell_in(cell.dir, folders[i]), 0700), 0);
    snprintf(cell.data, sizeof cell.data, "%s/data", cell.dir);
    snprintf(cell.auth, sizeof cell.auth, "%s/etc/auth", cell.dir);
    snprintf(cell.link, sizeof cell.link, "%s/live/link", cell.dir);
    snprintf(cell.secret, sizeof cell.secret, "%s/secret", cell.dir);
    snprintf(cell.old, sizeof cell.old, "%s/old", cell.data);
    cell_write(cell.auth, "first");
    cell_write(cell.secret, "secret");
    cell_write(cell.old, "old");
    cell_write(cell_in(cell.dir, "archive/1.pem"), "first");
    assert_int_equal(symlink("../archive/1.pem", cell.link), 0);
    return 0;
}

int cell_teardown(void **state)
{
    (void)state;
    test_dir_remove(cell.dir);
    return 0;
}

int cell_child_status(void (*work)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        work();
#ifdef HF_COVERAGE
        if (!uncounted)
            __gcov_dump();
#endif
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

void cell_skip_unless_possible(void)
{
    bool landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
    if (!landlock)
        print_message("this kernel has no Landlock\n");
    if (INSTRUMENTED || !landlock)
        skip();
}

void cell_child_does(void (*work)(void))
{
    cell_skip_unless_possible();
    cell_write(cell.old, "old");
    int status = cell_child_status(work);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %#x", status);
}

void cell_enter(void)
{
    uncounted = true;
    cell_enter_with(cell.data);
}

void cell_enter_with(const char *writable)
{
    const char *readable[] = { cell.auth, cell.link };
    struct hf_sandbox sandbox = { .writable = writable, .readable = readable, .readable_count = 2 };
    struct hf_error why;
    enum hf_status st = hf_sandbox_enter(&sandbox, &why);
    if (st != HF_OK)
        fprintf(stderr, "%s\n", why.text);
    WANT(st == HF_OK && why.text[0] == '\0');
}

void cell_use_inside(void)
{
    char got[16];
    struct stat st;
    int fd = open(cell.old, O_RDWR | O_CLOEXEC);
    WANT(fd >= 0 && read(fd, got, 3) == 3 && pwrite(fd, "new", 3, 0) == 3 && ftruncate(fd, 2) == 0);
    WANT(fsync(fd) == 0 && fdatasync(fd) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
         fstat(fd, &st) == 0);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    WANT(map != MAP_FAILED && memcmp(map, "ne", 2) == 0 && munmap(map, 4096) == 0);
    close(fd);
    fd = open(cell_in(cell.data, "fresh"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    WANT(fd >= 0 && write(fd, "x", 1) == 1 && posix_fallocate(fd, 0, 8192) == 0);
    WANT(sync_file_range(fd, 0, 1, SYNC_FILE_RANGE_WRITE) == 0);
    close(fd);
    WANT(rename(cell_in(cell.data, "fresh"), cell_in(cell.data, "renamed")) == 0 &&
         link(cell_in(cell.data, "renamed"), cell_in(cell.data, "second")) == 0);
    WANT(unlink(cell_in(cell.data, "renamed")) == 0 &&
         mkdir(cell_in(cell.data, "folder"), 0700) == 0);
    WANT(open(cell_in(cell.data, "second"), O_WRONLY | O_TRUNC | O_CLOEXEC) >= 0 &&
         unlink(cell_in(cell.data, "second")) == 0);
    DIR *d = opendir(cell.data);
    WANT(d && readdir(d) && closedir(d) == 0 && rmdir(cell_in(cell.data, "folder")) == 0);
    fd = open(cell.data, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    WANT(fd >= 0 || errno == EOPNOTSUPP);
}

void cell_use_outside(void)
{
    FAILS(open(cell.secret, O_RDONLY), EACCES);
    FAILS(open(cell.secret, O_WRONLY), EACCES);
    FAILS(open(cell_in(cell.data, "../secret"), O_RDONLY), EACCES);
    FAILS(open("/etc/passwd", O_RDONLY), EACCES);
    FAILS(open("/proc/self/mem", O_RDWR), EACCES);
    FAILS(open("/dev/null", O_RDWR), EACCES);
    FAILS(open(cell_in(cell.dir, "made"), O_WRONLY | O_CREAT, 0600), EACCES);
    FAILS(open(cell.dir, O_RDONLY | O_DIRECTORY), EACCES);
    FAILS(mkdir(cell_in(cell.dir, "folder"), 0700), EACCES);
    FAILS(unlink(cell.secret), EACCES);
    WANT(rename(cell.old, cell_in(cell.dir, "moved")) == -1 && (errno == EXDEV || errno == EACCES));
    WANT(rename(cell.secret, cell_in(cell.data, "moved")) == -1 &&
         (errno == EXDEV || errno == EACCES));
    WANT(link(cell.secret, cell_in(cell.data, "linked")) == -1 &&
         (errno == EXDEV || errno == EACCES));
    FAILS(symlink(cell.secret, cell_in(cell.data, "leads-out")), EPERM);
    FAILS(mknod(cell_in(cell.data, "device"), S_IFCHR | 0600, 0), EPERM);
    FAILS(chmod(cell.secret, 0666), EPERM);
    FAILS(chown(cell.secret, 1, 1), EPERM);
    FAILS(truncate(cell.secret, 0), EPERM);
    FAILS(open(cell.auth, O_WRONLY), EACCES);
    FAILS(open(cell_in(cell.dir, "etc/made"), O_WRONLY | O_CREAT, 0600), EACCES);
    FAILS(unlink(cell.auth), EACCES);
}

void cell_file_is(const char *path, const char *text)
{
    char got[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    WANT(fd >= 0 && read(fd, got, sizeof got - 1) == (ssize_t)strlen(text) &&
         strcmp(got, text) == 0);
    close(fd);
}

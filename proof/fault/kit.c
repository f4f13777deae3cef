/* The wrapped functions. Their names are the linker's: __wrap_x is called instead of x, __real_x is
 * x itself. */
#define _GNU_SOURCE
#include "fault/kit.h"

#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

/* ---- What is ordered ---- */

struct order {
    _Atomic int call;
    _Atomic int mode;
    _Atomic long left; /* until the one that fails */
    _Atomic unsigned failed;
    _Atomic int leaked_there;
    _Atomic unsigned made[FAULT_CALLS];
};

static struct order *order; /* shared with children */
static atomic_bool here;

static void order_make(void)
{
    if (order)
        return;
    order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (order == MAP_FAILED)
        abort();
}

void fault_here(bool on)
{
    order_make();
    atomic_store(&here, on);
}

void fault_arm(enum fault_call call, unsigned n, enum fault_mode mode)
{
    order_make();
    atomic_store(&order->call, FAULT_NONE);
    atomic_store(&order->left, (long)n);
    atomic_store(&order->failed, 0);
    atomic_store(&order->mode, mode);
    atomic_store(&order->call, call);
}

unsigned fault_failed(void)
{
    return atomic_load(&order->failed);
}

unsigned fault_lift(void)
{
    atomic_store(&order->call, FAULT_NONE);
    return fault_failed();
}

unsigned fault_count(enum fault_call call)
{
    return atomic_load(&order->made[call]);
}

void fault_forget(void)
{
    order_make();
    for (int i = 0; i < FAULT_CALLS; i++)
        atomic_store(&order->made[i], 0);
}

static bool turn(enum fault_call call)
{
    if (!atomic_load(&here))
        return false;
    atomic_fetch_add(&order->made[call], 1);
    if (atomic_load(&order->call) != (int)call)
        return false;
    long left = atomic_fetch_sub(&order->left, 1);
    if (left != 1 && (left > 1 || atomic_load(&order->mode) != FAULT_LASTING))
        return false;
    atomic_fetch_add(&order->failed, 1);
    return true;
}

/* Does this call fail? errno is set then. Not for calls of which a part may be done. */
static bool fails(enum fault_call call, int error)
{
    if (!turn(call))
        return false;
    errno = atomic_load(&order->mode) == FAULT_INTERRUPTED ? EINTR : error;
    return true;
}

/* The same for a call that moves *size bytes: cut short, it moves fewer and does not fail. */
static bool fails_or_shrinks(enum fault_call call, int error, size_t *size)
{
    if (!turn(call))
        return false;
    if (atomic_load(&order->mode) == FAULT_SHORT) {
        *size = *size > 1 ? *size / 2 : *size;
        return false;
    }
    errno = atomic_load(&order->mode) == FAULT_INTERRUPTED ? EINTR : error;
    return true;
}

static bool is_lasting(void)
{
    return order && atomic_load(&order->mode) == FAULT_LASTING;
}

bool fault_has_mode(enum fault_call call, enum fault_mode mode)
{
    bool moves =
        call == FAULT_READ || call == FAULT_WRITE || call == FAULT_RECV || call == FAULT_SEND;
    if (mode == FAULT_SHORT)
        return moves;
    return mode != FAULT_INTERRUPTED || moves || call == FAULT_ACCEPT || call == FAULT_WAIT ||
           call == FAULT_SAY;
}

const char *fault_name(enum fault_call call, enum fault_mode mode)
{
    static const char *const calls[FAULT_CALLS] = {
        "nothing",  "allocation", "open",   "fstat",  "read",  "write", "sync",   "folder sync",
        "truncate", "mmap",       "rename", "remove", "mkdir", "lock",  "random", "thread",
        "socket",   "accept",     "recv",   "send",   "wait",  "watch", "say"
    };
    static const char *const modes[FAULT_MODES] = { "once", "lasting", "interrupted", "short" };
    static char text[64];
    snprintf(text, sizeof text, "%s, %s", calls[call], modes[mode]);
    return text;
}

/* ---- How much is tried ---- */

static unsigned tried, points;

static uint64_t below(uint64_t n)
{
    static uint64_t chance;
    if (chance == 0)
        chance = getenv("HF_SEED") ? strtoull(getenv("HF_SEED"), NULL, 0) : 1;
    return test_below(&chance, n);
}

bool fault_full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

unsigned fault_next(unsigned n)
{
    return fault_full() || n < 2 ? n + 1 : n + 1 + (unsigned)below(2 * n);
}

bool fault_chosen(unsigned of)
{
    return below(of) == 0;
}

bool fault_wanted(unsigned of)
{
    return fault_full() || fault_chosen(of);
}

void fault_tried(void)
{
    tried++;
}

void fault_point(void)
{
    points++;
}

void fault_report(const char *program)
{
    printf("%s: %u failure points in %u calls\n", program, points, tried);
    fflush(stdout);
}

/* ---- Memory ---- */

/* The real ones are weak, so that this file can be linked where nothing is wrapped. */
#define REAL(type, name, ...) extern type __real_##name(__VA_ARGS__) __attribute__((weak))
#define WRAP(type, name, ...)        \
    REAL(type, name, __VA_ARGS__);   \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

enum { BUCKETS = 1 << 16, BLOCKS = 1 << 20 };

struct block {
    const void *address, *site;
    uint64_t serial;
    uint32_t next;
};

/* Blocks that were allocated while faults were on. Block 0 means none. */
static struct block blocks[BLOCKS];
static uint32_t buckets[BUCKETS], free_block, block_count = 1;
static uint64_t serial;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void enter(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
}

static void leave(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static uint32_t *bucket_of(const void *address)
{
    return &buckets[((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

static void block_add(const void *address, const void *site)
{
    enter();
    uint32_t at = free_block;
    if (at)
        free_block = blocks[at].next;
    else
        at = block_count++;
    if (at >= BLOCKS)
        abort();
    blocks[at] = (struct block){ address, site, ++serial, *bucket_of(address) };
    *bucket_of(address) = at;
    leave();
}

/* True if it was there. */
static bool block_remove(const void *address)
{
    bool found = false;
    enter();
    for (uint32_t *link = bucket_of(address); *link; link = &blocks[*link].next) {
        uint32_t at = *link;
        if (blocks[at].address != address)
            continue;
        *link = blocks[at].next;
        blocks[at] = (struct block){ .next = free_block };
        free_block = at;
        found = true;
        break;
    }
    leave();
    return found;
}

uint64_t fault_mark(void)
{
    return serial;
}

unsigned fault_leaked(uint64_t mark)
{
    extern const char __executable_start[];
    enum { SHOWN = 5 };
    unsigned count = 0;
    enter();
    for (uint32_t i = 1; i < block_count; i++) {
        if (!blocks[i].address || blocks[i].serial <= mark)
            continue;
        if (count++ < SHOWN)
            fprintf(stderr, "leaked: block %llu, allocated at %#lx\n",
                    (unsigned long long)blocks[i].serial,
                    (unsigned long)((const char *)blocks[i].site - __executable_start));
    }
    leave();
    return count;
}

static void *kept(void *address, const void *site)
{
    if (address && atomic_load(&here))
        block_add(address, site);
    return address;
}

WRAP(void *, malloc, size_t size)
{
    return fails(FAULT_ALLOC, ENOMEM) ? NULL
                                      : kept(__real_malloc(size), __builtin_return_address(0));
}

WRAP(void *, calloc, size_t count, size_t size)
{
    return fails(FAULT_ALLOC, ENOMEM)
               ? NULL
               : kept(__real_calloc(count, size), __builtin_return_address(0));
}

WRAP(void *, realloc, void *old, size_t size)
{
    if (fails(FAULT_ALLOC, ENOMEM))
        return NULL;
    bool known = old && block_remove(old);
    void *now = __real_realloc(old, size);
    if (now && (known || (!old && atomic_load(&here))))
        block_add(now, __builtin_return_address(0));
    return now;
}

WRAP(void, free, void *old)
{
    if (old)
        block_remove(old);
    __real_free(old);
}

WRAP(char *, strdup, const char *text)
{
    return fails(FAULT_ALLOC, ENOMEM) ? NULL
                                      : kept(__real_strdup(text), __builtin_return_address(0));
}

WRAP(FILE *, open_memstream, char **data, size_t *size)
{
    return fails(FAULT_ALLOC, ENOMEM) ? NULL : __real_open_memstream(data, size);
}

WRAP(FILE *, fdopen, int fd, const char *how)
{
    return fails(FAULT_ALLOC, ENOMEM) ? NULL : __real_fdopen(fd, how);
}

WRAP(DIR *, fdopendir, int fd)
{
    return fails(FAULT_ALLOC, ENOMEM) ? NULL : __real_fdopendir(fd);
}

WRAP(size_t, ZSTD_compress, void *to, size_t room, const void *from, size_t size, int level)
{
    return fails(FAULT_ALLOC, ENOMEM) ? (size_t)-ZSTD_error_memory_allocation
                                      : __real_ZSTD_compress(to, room, from, size, level);
}

WRAP(size_t, ZSTD_decompress, void *to, size_t room, const void *from, size_t size)
{
    return fails(FAULT_ALLOC, ENOMEM) ? (size_t)-ZSTD_error_memory_allocation
                                      : __real_ZSTD_decompress(to, room, from, size);
}

WRAP(int, getaddrinfo, const char *node, const char *service, const struct addrinfo *hints,
     struct addrinfo **out)
{
    return fails(FAULT_ALLOC, ENOMEM) ? EAI_MEMORY : __real_getaddrinfo(node, service, hints, out);
}

static int sqlite_start(void *ctx)
{
    (void)ctx;
    return SQLITE_OK;
}

static void sqlite_end(void *ctx)
{
    (void)ctx;
}

/* SQLite asks how large a block is, so its size stands in front of it. */
static void *sqlite_take(int size)
{
    uint64_t *block = __wrap_malloc((size_t)size + 16);
    if (!block)
        return NULL;
    block[0] = (uint64_t)size;
    return block + 2;
}

static void sqlite_give(void *block)
{
    __wrap_free(block ? (uint64_t *)block - 2 : NULL);
}

static void *sqlite_retake(void *block, int size)
{
    uint64_t *now = __wrap_realloc((uint64_t *)block - 2, (size_t)size + 16);
    if (!now)
        return NULL;
    now[0] = (uint64_t)size;
    return now + 2;
}

static int sqlite_size(void *block)
{
    return block ? (int)((uint64_t *)block)[-2] : 0;
}

static int sqlite_round(int size)
{
    return (size + 7) & ~7;
}

void fault_sqlite(void)
{
    static const sqlite3_mem_methods methods = { .xMalloc = sqlite_take,
                                                 .xFree = sqlite_give,
                                                 .xRealloc = sqlite_retake,
                                                 .xSize = sqlite_size,
                                                 .xRoundup = sqlite_round,
                                                 .xInit = sqlite_start,
                                                 .xShutdown = sqlite_end };
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_initialize() != SQLITE_OK)
        abort();
}

/* ---- Files ---- */

WRAP(int, open, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(FAULT_OPEN, EMFILE) ? -1 : __real_open(path, flags, mode);
}

WRAP(int, openat, int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return fails(FAULT_OPEN, EMFILE) ? -1 : __real_openat(dir, path, flags, mode);
}

WRAP(int, fstat, int fd, struct stat *st)
{
    return fails(FAULT_STAT, EIO) ? -1 : __real_fstat(fd, st);
}

static const char *bad_path;
static off_t bad_at;

void fault_sector(const char *path, int64_t at)
{
    bad_path = path;
    bad_at = (off_t)at;
}

/* Does the read touch the sector that cannot be read? */
static bool sector_bad(int fd, size_t size, off_t at)
{
    struct stat mine, bad;
    return bad_path && at <= bad_at && bad_at < at + (off_t)size && stat(bad_path, &bad) == 0 &&
           __real_fstat(fd, &mine) == 0 && mine.st_ino == bad.st_ino;
}

WRAP(ssize_t, pread, int fd, void *data, size_t size, off_t at)
{
    if (sector_bad(fd, size, at)) {
        errno = EIO;
        return -1;
    }
    return fails_or_shrinks(FAULT_READ, EIO, &size) ? -1 : __real_pread(fd, data, size, at);
}

WRAP(ssize_t, read, int fd, void *data, size_t size)
{
    return fails_or_shrinks(FAULT_READ, EIO, &size) ? -1 : __real_read(fd, data, size);
}

WRAP(ssize_t, pwrite, int fd, const void *data, size_t size, off_t at)
{
    return fails_or_shrinks(FAULT_WRITE, is_lasting() ? ENOSPC : EIO, &size)
               ? -1
               : __real_pwrite(fd, data, size, at);
}

WRAP(ssize_t, write, int fd, const void *data, size_t size)
{
    return fails(FAULT_SAY, EIO) ? -1 : __real_write(fd, data, size);
}

/* What is written stays in the system's cache, and no test here cuts the power: the disk is left
 * alone. */
WRAP(int, fdatasync, int fd)
{
    (void)fd;
    return fails(FAULT_SYNC, EIO) ? -1 : 0;
}

WRAP(int, fsync, int fd)
{
    (void)fd;
    return fails(FAULT_FOLDER_SYNC, EIO) ? -1 : 0;
}

WRAP(int, sync_file_range, int fd, off_t at, off_t size, unsigned flags)
{
    (void)fd;
    (void)at;
    (void)size;
    (void)flags;
    return 0;
}

WRAP(int, ftruncate, int fd, off_t size)
{
    return fails(FAULT_TRUNCATE, EIO) ? -1 : __real_ftruncate(fd, size);
}

static atomic_int mappings;

WRAP(void *, mmap, void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    void *made = fails(FAULT_MAP, ENOMEM) ? MAP_FAILED
                                          : __real_mmap(address, size, protection, flags, fd, at);
    if (made != MAP_FAILED)
        atomic_fetch_add(&mappings, 1);
    return made;
}

WRAP(int, munmap, void *address, size_t size)
{
    atomic_fetch_sub(&mappings, 1);
    return __real_munmap(address, size);
}

WRAP(int, renameat, int from_dir, const char *from, int to_dir, const char *to)
{
    return fails(FAULT_RENAME, EIO) ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

WRAP(int, rename, const char *from, const char *to)
{
    return fails(FAULT_RENAME, EIO) ? -1 : __real_rename(from, to);
}

WRAP(int, unlinkat, int dir, const char *name, int flags)
{
    return fails(FAULT_REMOVE, EIO) ? -1 : __real_unlinkat(dir, name, flags);
}

WRAP(int, unlink, const char *name)
{
    return fails(FAULT_REMOVE, EIO) ? -1 : __real_unlink(name);
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    return fails(FAULT_FOLDER, EROFS) ? -1 : __real_mkdir(path, mode);
}

WRAP(int, flock, int fd, int how)
{
    return fails(FAULT_LOCK, ENOLCK) ? -1 : __real_flock(fd, how);
}

WRAP(ssize_t, getrandom, void *data, size_t size, unsigned flags)
{
    return fails(FAULT_RANDOM, EIO) ? -1 : __real_getrandom(data, size, flags);
}

WRAP(int, pthread_create, pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
     void *arg)
{
    return fails(FAULT_THREAD, EAGAIN) ? EAGAIN : __real_pthread_create(id, attr, run, arg);
}

static atomic_bool no_naps;

void fault_no_naps(void)
{
    atomic_store(&no_naps, true);
}

WRAP(int, nanosleep, const struct timespec *wanted, struct timespec *left)
{
    return atomic_load(&here) && atomic_load(&no_naps) ? 0 : __real_nanosleep(wanted, left);
}

/* ---- Sockets ---- */

WRAP(int, socket, int family, int type, int protocol)
{
    return fails(FAULT_SOCKET, EMFILE) ? -1 : __real_socket(family, type, protocol);
}

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t size)
{
    return fails(FAULT_SOCKET, EADDRINUSE) ? -1 : __real_bind(fd, address, size);
}

WRAP(int, listen, int fd, int backlog)
{
    return fails(FAULT_SOCKET, EADDRINUSE) ? -1 : __real_listen(fd, backlog);
}

WRAP(int, connect, int fd, const struct sockaddr *address, socklen_t size)
{
    return fails(FAULT_SOCKET, ECONNREFUSED) ? -1 : __real_connect(fd, address, size);
}

WRAP(int, epoll_create1, int flags)
{
    return fails(FAULT_SOCKET, EMFILE) ? -1 : __real_epoll_create1(flags);
}

WRAP(int, eventfd, unsigned count, int flags)
{
    return fails(FAULT_SOCKET, EMFILE) ? -1 : __real_eventfd(count, flags);
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    return fails(FAULT_ACCEPT, is_lasting() ? EMFILE : ECONNABORTED)
               ? -1
               : __real_accept4(fd, address, size, flags);
}

WRAP(ssize_t, recv, int fd, void *data, size_t size, int flags)
{
    return fails_or_shrinks(FAULT_RECV, ECONNRESET, &size) ? -1
                                                           : __real_recv(fd, data, size, flags);
}

WRAP(ssize_t, send, int fd, const void *data, size_t size, int flags)
{
    return fails_or_shrinks(FAULT_SEND, EPIPE, &size) ? -1 : __real_send(fd, data, size, flags);
}

WRAP(int, epoll_wait, int fd, struct epoll_event *events, int count, int ms)
{
    return fails(FAULT_WAIT, ENOMEM) ? -1 : __real_epoll_wait(fd, events, count, ms);
}

WRAP(int, poll, struct pollfd *fds, nfds_t count, int ms)
{
    return fails(FAULT_WAIT, ENOMEM) ? -1 : __real_poll(fds, count, ms);
}

WRAP(int, epoll_ctl, int fd, int what, int other, struct epoll_event *event)
{
    return fails(FAULT_WATCH, ENOMEM) ? -1 : __real_epoll_ctl(fd, what, other, event);
}

/* ---- With checks of sizes, as the headers of the system make of some of them ---- */

WRAP(ssize_t, __pread_chk, int fd, void *data, size_t size, off_t at, size_t room)
{
    (void)room;
    return __wrap_pread(fd, data, size, at);
}

WRAP(ssize_t, __read_chk, int fd, void *data, size_t size, size_t room)
{
    (void)room;
    return __wrap_read(fd, data, size);
}

WRAP(ssize_t, __recv_chk, int fd, void *data, size_t size, size_t room, int flags)
{
    (void)room;
    return __wrap_recv(fd, data, size, flags);
}

WRAP(int, __poll_chk, struct pollfd *fds, nfds_t count, int ms, size_t room)
{
    (void)room;
    return __wrap_poll(fds, count, ms);
}

WRAP(int, __open_2, const char *path, int flags)
{
    return __wrap_open(path, flags);
}

WRAP(int, __openat_2, int dir, const char *path, int flags)
{
    return __wrap_openat(dir, path, flags);
}

/* ---- What is left behind ---- */

unsigned fault_descriptors(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        count++;
    closedir(d);
    return count;
}

int fault_mappings(void)
{
    return atomic_load(&mappings);
}

static uint64_t exit_mark;

static void count_at_exit(void)
{
    atomic_store(&here, false);
    atomic_store(&order->leaked_there, (int)fault_leaked(exit_mark));
}

void fault_watch_exit(void)
{
    exit_mark = fault_mark();
    atomic_store(&order->leaked_there, -1);
    atexit(count_at_exit);
}

int fault_leaked_there(void)
{
    return atomic_load(&order->leaked_there);
}

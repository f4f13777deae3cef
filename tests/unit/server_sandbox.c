/* The sandbox, for real: children enter it and then try what they may and what they may not. */
#define _GNU_SOURCE
#include "net/kit/tls.h"
#include "unit/kit/sandbox.h"

#include "audit/export.h"
#include "server/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

/* ---- Files ---- */

static void use_files(void)
{
    int before = open(cell.secret, O_RDONLY | O_CLOEXEC);
    char got[6];
    cell_enter();
    cell_use_inside();
    cell_use_outside();
    cell_file_is(cell.auth, "first");
    cell_file_is(cell.link, "first");
    WANT(read(before, got, 6) == 6); /* what is open stays open */
}

static void files(void **state)
{
    (void)state;
    cell_child_does(use_files);
}

static int to_parent[2], to_child[2];

/* Certificates and auth files are renewed by renaming new ones to the old names, or by turning a
 * link. */
static void read_renewed_files(void)
{
    char c;
    cell_enter();
    WANT(write(to_parent[1], "e", 1) == 1 && read(to_child[0], &c, 1) == 1);
    cell_file_is(cell.auth, "second");
    cell_file_is(cell.link, "second");
    FAILS(open(cell.secret, O_RDONLY), EACCES);
}

static void renewed_files(void **state)
{
    (void)state;
    char c;
    cell_skip_unless_possible();
    assert_int_equal(pipe(to_parent), 0);
    assert_int_equal(pipe(to_child), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        read_renewed_files();
        _exit(0);
    }
    close(to_parent[1]);
    int status;
    assert_int_equal(read(to_parent[0], &c, 1), 1);
    cell_write(cell_in(cell.dir, "etc/auth.new"), "second");
    assert_int_equal(rename(cell_in(cell.dir, "etc/auth.new"), cell.auth), 0);
    cell_write(cell_in(cell.dir, "archive/2.pem"), "second");
    assert_int_equal(unlink(cell.link), 0);
    assert_int_equal(symlink("../archive/2.pem", cell.link), 0);
    assert_int_equal(write(to_child[1], "g", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(to_parent[0]);
    close(to_child[0]);
    close(to_child[1]);
    cell_write(cell.auth, "first");
    assert_int_equal(unlink(cell.link), 0);
    assert_int_equal(symlink("../archive/1.pem", cell.link), 0);
}

static void keep_nothing(void)
{
    struct hf_error why;
    WANT(hf_sandbox_enter(&(struct hf_sandbox){ .writable = NULL }, &why) == HF_OK);
    FAILS(open(cell.old, O_RDONLY), EACCES);
    FAILS(open(cell.auth, O_RDONLY), EACCES);
    FAILS(open("/", O_RDONLY), EACCES);
    _exit(0); /* there is nowhere to write counters to */
}

static void nothing_allowed(void **state)
{
    (void)state;
    cell_child_does(keep_nothing); /* a store in memory needs no file */
}

static char below[4096]; /* a folder in the one that may be written */

static void use_far_down(void)
{
    char path[4200];
    const char *build = getenv("HF_BUILD");
    snprintf(path, sizeof path, "%s/file", below);
    cell_enter_with(CELL_COUNTED && build ? build : cell.dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    WANT(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0 && unlink(path) == 0 &&
         rmdir(below) == 0);
    FAILS(open("/etc/passwd", O_RDONLY), EACCES);
}

static void folders_below_belong_to_it(void **state)
{
    (void)state;
    const char *build = getenv("HF_BUILD");
    snprintf(below, sizeof below, "%s/below.%ld", CELL_COUNTED && build ? build : cell.dir,
             (long)getpid());
    assert_int_equal(mkdir(below, 0700), 0);
    cell_child_does(use_far_down);
}

/* ---- Calls ---- */

static void do_execve(void)
{
    char *const none[] = { NULL };
    execve("/bin/true", none, none);
}

static void do_spawn(void)
{
    pid_t pid;
    char name[] = "true";
    char *const args[] = { name, NULL };
    posix_spawn(&pid, "/bin/true", NULL, NULL, args, NULL);
}

static void do_fork(void)
{
    if (fork() == 0)
        _exit(0);
}

static long number;

static void do_number(void)
{
    syscall(number, 0, 0, 0, 0, 0, 0);
}

static void do_clone_namespace(void)
{
    syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

static void (*deed)(void);

static void enter_and_do(void)
{
    cell_enter();
    deed();
}

static void kills(void (*what)(void))
{
    deed = what;
    int status = cell_child_status(enter_and_do);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
        fail_msg("call %ld: the child ended with status %#x", number, status);
}

static void deadly_calls(void **state)
{
    (void)state;
    cell_skip_unless_possible();
    kills(do_execve);
    kills(do_spawn);
    kills(do_fork);
    kills(do_clone_namespace);
    static const long numbers[] = { SYS_execve,
                                    SYS_execveat,
                                    SYS_ptrace,
                                    SYS_mount,
                                    SYS_umount2,
                                    SYS_move_mount,
                                    SYS_pivot_root,
                                    SYS_chroot,
                                    SYS_unshare,
                                    SYS_setns,
                                    SYS_bpf,
                                    SYS_init_module,
                                    SYS_finit_module,
                                    SYS_delete_module,
                                    SYS_kexec_load,
                                    SYS_process_vm_readv,
                                    SYS_keyctl,
                                    SYS_process_vm_writev,
                                    SYS_perf_event_open,
                                    SYS_userfaultfd,
                                    SYS_open_by_handle_at };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        number = numbers[i];
        kills(do_number);
    }
}

static void try_sockets(void)
{
    static const int families[] = { AF_NETLINK, AF_PACKET, 38 /* AF_ALG */, 40 /* AF_VSOCK */,
                                    AF_BLUETOOTH };
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(9),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int pair[2];
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        FAILS(socket(families[i], SOCK_RAW, 0), EPERM);
    FAILS(socket(AF_INET, SOCK_DGRAM, 0), EPERM);
    FAILS(socket(AF_INET, SOCK_RAW, 1), EPERM);
    FAILS(syscall(SYS_socket, (1UL << 32) | AF_NETLINK, SOCK_RAW, 0), EPERM);
    FAILS(socketpair(AF_INET, SOCK_STREAM, 0, pair), EPERM);
    int inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    WANT(inet >= 0 && socket(AF_INET6, SOCK_STREAM, 0) >= 0 && socket(AF_UNIX, SOCK_DGRAM, 0) >= 0);
    FAILS(connect(inet, (struct sockaddr *)&to, sizeof to), EPERM);
    FAILS(bind(inet, (struct sockaddr *)&to, sizeof to), EPERM);
    FAILS(listen(inet, 1), EPERM);
    FAILS(sendto(inet, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to),
          EPERM);
    char byte = 0;
    struct iovec one = { &byte, 1 };
    struct msghdr message = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &one, .msg_iovlen = 1
    };
    FAILS(sendmsg(inet, &message, MSG_FASTOPEN | MSG_NOSIGNAL), EPERM);
}

static void try_refused_calls(void)
{
    cell_enter();
    try_sockets();
    FAILS(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
              ? -1
              : 0,
          EPERM);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    WANT(page != MAP_FAILED && mprotect(page, 4096, PROT_READ) == 0);
    FAILS(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM);
    FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
    FAILS(syscall(SYS_clone,
                  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWUSER,
                  page, 0, 0, 0),
          EPERM);
    FAILS(kill(getppid(), 0), EPERM);
    FAILS(kill(1, 0), EPERM);
    FAILS(syscall(SYS_tgkill, getppid(), getppid(), 0), EPERM);
    FAILS(syscall(SYS_io_uring_setup, 1, page), EPERM);
    FAILS(syscall(SYS_memfd_create, "x", 0), EPERM);
    FAILS(syscall(SYS_personality, 0x0400000), EPERM);
    FAILS(setuid(0), EPERM);
    FAILS(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), EPERM);
    FAILS(ioctl(0, TIOCSTI, "x"), EPERM);
    struct rlimit limit;
    WANT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    FAILS(setrlimit(RLIMIT_NOFILE, &limit), EPERM);
    FAILS(syscall(9999), EPERM);
}

static void refused_calls(void **state)
{
    (void)state;
    cell_child_does(try_refused_calls);
}

static void *thread_run(void *arg)
{
    struct timespec a_little = { .tv_nsec = 1000000 };
    FAILS(open(cell.secret, O_RDONLY), EACCES);
    FAILS(socket(AF_NETLINK, SOCK_RAW, 0), EPERM);
    nanosleep(&a_little, NULL);
    *(int *)arg = open(cell.old, O_RDONLY);
    return arg;
}

static void make_threads(void)
{
    pthread_t threads[4];
    int fds[4];
    cell_enter();
    for (int i = 0; i < 4; i++)
        WANT(pthread_create(&threads[i], NULL, thread_run, &fds[i]) == 0);
    for (int i = 0; i < 4; i++)
        WANT(pthread_join(threads[i], NULL) == 0 && fds[i] >= 0);
}

static void threads_are_inside_too(void **state)
{
    (void)state;
    cell_child_does(make_threads);
}

static void abort_inside(void)
{
    cell_enter();
    abort();
}

static void wait_for_a_signal(void)
{
    sigset_t set;
    int got = 0;
    cell_enter();
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    WANT(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGTERM) == 0);
    WANT(sigwait(&set, &got) == 0 && got == SIGTERM);
}

static void signals(void **state)
{
    (void)state;
    cell_child_does(wait_for_a_signal);
    int status = cell_child_status(abort_inside); /* a failed assertion looks like one */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- A server's work ---- */

static void store_use(void)
{
    struct hf_db *db;
    struct hf_error why;
    enum { GROUP = 500, GROUPS = 60 };
    static struct hf_request requests[GROUP];
    static char keys[GROUP][32];
    WANT(hf_open(cell.data, &(struct hf_options){ .segment_max_bytes = 4 << 20 }, &db, &why) ==
         HF_OK);
    for (int i = 0; i < GROUP * GROUPS; i++) {
        char *key = keys[i % GROUP];
        snprintf(key, sizeof keys[0], "key-%d", i);
        requests[i % GROUP] =
            (struct hf_request){ .action = HF_PLACE_HOLD,
                                 .key = hf_str(key),
                                 .place_hold = { hf_str(key), hf_str("guest"), 60000, 0 } };
        if (i % GROUP == GROUP - 1)
            WANT(hf_do_many(db, requests, NULL, GROUP) == HF_OK);
    }
    while (hf_maintain(db)) /* snapshots, compression */
        continue;
    hf_close(db);
}

static void audit_use(void)
{
    struct hf_error why;
    struct stat st;
    struct hf_audit_export_options jsonl = { .format = HF_AUDIT_JSONL };
    struct hf_audit_export_options sqlite = { .format = HF_AUDIT_SQLITE };
    WANT(hf_audit_export(cell.data, &jsonl, cell_in(cell.data, "export.jsonl"), &why) == 0);
    WANT(hf_audit_export(cell.data, &sqlite, cell_in(cell.data, "export.db"), &why) == 0);
    WANT(stat(cell_in(cell.data, "export.db"), &st) == 0 &&
         st.st_size > 10000000); /* enough for a sort that does not fit into memory */
    WANT(unlink(cell_in(cell.data, "export.jsonl")) == 0 &&
         unlink(cell_in(cell.data, "export.db")) == 0);
}

static void loop_use(void)
{
    int pair[2], wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                 epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = { .events = EPOLLIN };
    WANT(wake >= 0 && epoll >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    WANT(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0 &&
         send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
    WANT(epoll_wait(epoll, &event, 1, 1000) == 1 && shutdown(pair[0], SHUT_RDWR) == 0);
}

static int listener;

static void serve_like_a_server(void)
{
    struct tls_files files;
    struct tls_link l;
    struct hf_tls *tls;
    struct hf_log *log;
    struct hf_error why;
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    tls_files_make(&files, cell.data, "server", -60, 3600, NULL);
    struct hf_tls_files names = { files.cert, files.key };
    SSL_CTX *client = SSL_CTX_new(TLS_client_method());
    WANT(hf_tls_load(&names, &tls, &why) == HF_OK && client);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    WANT(bind(listener, (struct sockaddr *)&any, sizeof any) == 0 && listen(listener, 5) == 0);
    cell_enter();
    WANT(accept4(listener, NULL, NULL, SOCK_CLOEXEC) == -1 && errno == EAGAIN);
    WANT(hf_log_open(&(struct hf_log_options){ .fd = 2 }, &log) == HF_OK);
    tls_link_open(&l, tls, client);
    WANT(tls_echo(&l, 100000));
    tls_link_close(&l);
    hf_tls_drop(tls);
    WANT(hf_tls_load(&names, &tls, &why) == HF_OK); /* a new certificate */
    hf_tls_drop(tls);
    SSL_CTX_free(client);
    loop_use();
    store_use();
    audit_use();
    hf_log_close(log);
    exit(0); /* the long way out */
}

static void a_servers_work(void **state)
{
    (void)state;
    cell_child_does(serve_like_a_server);
}

/* The sandbox of a server whose store is in a database: it reaches the database, again and again,
 * and nobody else. */

static unsigned ports[2];

/* Listen on a free port of this machine. */
static int database_listener(unsigned *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int connect_to(unsigned port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int result = connect(fd, (struct sockaddr *)&at, sizeof at);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

/* Landlock knows ports since its version 4. */
static bool knows_ports(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;
}

static char temporary[300];

static void reach_a_database(void)
{
    char conninfo[400];
    struct hf_error why;
    struct addrinfo *found = NULL;
    bool exact = knows_ports(); /* asked before the call is forbidden */
    snprintf(conninfo, sizeof conninfo, "host=localhost port=%u dbname=d sslrootcert=%s", ports[0],
             cell.link);
    struct hf_sandbox sandbox = { .temporary = temporary, .postgres = conninfo };
    WANT(hf_sandbox_enter(&sandbox, &why) == HF_OK);
    for (int again = 0; again < 2; again++)
        WANT(connect_to(ports[0]) == 0);
    if (exact)
        FAILS(connect_to(ports[1]), EACCES);
    WANT(getaddrinfo("localhost", NULL, NULL, &found) == 0);
    freeaddrinfo(found);
    int fd = open(cell.link, O_RDONLY | O_CLOEXEC);
    WANT(fd >= 0);
    fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
    WANT(fd >= 0);
    FAILS(open("/etc/hostname", O_RDONLY), EACCES);
    FAILS(open("/etc/shadow", O_RDONLY), EACCES);
    FAILS(open(cell.secret, O_RDONLY), EACCES);
    FAILS(open(cell.old, O_RDONLY), EACCES);
    FAILS(bind(socket(AF_INET, SOCK_STREAM, 0),
               (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET },
               sizeof(struct sockaddr_in)),
          EPERM);
    fd = open(cell_in(temporary, "export"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    WANT(fd >= 0 && close(fd) == 0 && unlink(cell_in(temporary, "export")) == 0 &&
         rmdir(temporary) == 0);
    _exit(0); /* there is nowhere to write counters to */
}

static void a_database_can_be_reached(void **state)
{
    (void)state;
    int listeners[2];
    for (size_t i = 0; i < 2; i++)
        listeners[i] = database_listener(&ports[i]);
    snprintf(temporary, sizeof temporary, "%s/temporary", cell.dir);
    assert_int_equal(mkdir(temporary, 0700), 0);
    cell_child_does(reach_a_database);
    for (size_t i = 0; i < 2; i++)
        close(listeners[i]);
    assert_int_not_equal(access(temporary, F_OK), 0);
}

/* Kernels that cannot do it, and kernels that can do less: what is missing is made to be missing,
 * by a filter of system calls that the child puts in force before it enters. */

/* ---- What cannot be entered ---- */

static void expect_refusal(const struct hf_sandbox *sandbox, const char *words)
{
    struct hf_error why;
    enum hf_status st = hf_sandbox_enter(sandbox, &why);
    if (st != HF_MISUSE || why.status != HF_MISUSE || !strstr(why.text, words))
        fprintf(stderr, "%d: %s\n", st, why.text);
    WANT(st == HF_MISUSE && why.status == HF_MISUSE && strstr(why.text, words));
}

/* From now on the call fails with `error`, as on a kernel without it. */
static void lose_call(int call, int error)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    WANT(filter && seccomp_rule_add(filter, SCMP_ACT_ERRNO((unsigned)error), call, 0) == 0 &&
         seccomp_load(filter) == 0);
    seccomp_release(filter);
}

static void without_landlock(void)
{
    struct hf_sandbox sandbox = { .writable = cell.data };
    lose_call(SCMP_SYS(landlock_create_ruleset), ENOSYS);
    expect_refusal(&sandbox, "does not support Landlock");
    expect_refusal(&sandbox, "Linux 5.13");
    expect_refusal(&sandbox, "--sandbox off");
    WANT(open(cell.secret, O_RDONLY) >= 0);
}

static void with_landlock_off(void)
{
    lose_call(SCMP_SYS(landlock_create_ruleset), EOPNOTSUPP);
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, "disabled in this kernel");
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, "--sandbox off");
}

static void without_rules(void)
{
    lose_call(SCMP_SYS(landlock_add_rule), EINVAL);
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, cell.data);
}

static void without_force(void)
{
    lose_call(SCMP_SYS(landlock_restrict_self), E2BIG);
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data },
                   "Cannot apply the Landlock rules");
}

static void without_seccomp(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    WANT(filter && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(seccomp), 0) == 0);
    WANT(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1,
                          SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP, 0)) == 0);
    WANT(seccomp_load(filter) == 0);
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, "seccomp");
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, "--sandbox off");
    _exit(0); /* the rules for files are in force, also for counters */
}

static void with_missing_paths(void)
{
    const char *absent = cell_in(cell.dir, "absent");
    expect_refusal(&(struct hf_sandbox){ .writable = absent }, absent);
    expect_refusal(
        &(struct hf_sandbox){ .writable = cell.data, .readable = &absent, .readable_count = 1 },
        absent);
    WANT(open(cell.secret, O_RDONLY) >= 0); /* nothing is in force */
}

static void *wait_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void with_a_thread(void)
{
    pthread_t thread;
    WANT(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
    expect_refusal(&(struct hf_sandbox){ .writable = cell.data }, "before the first thread");
    WANT(open(cell.secret, O_RDONLY) >= 0);
}

static void fails_closed(void **state)
{
    (void)state;
    cell_child_does(without_rules);
    cell_child_does(without_force);
    cell_child_does(without_seccomp);
    cell_child_does(with_missing_paths);
    cell_child_does(with_a_thread);
}

static void without_landlock_at_all(void **state)
{
    (void)state;
    assert_int_equal(cell_child_status(without_landlock), 0);
    assert_int_equal(cell_child_status(with_landlock_off), 0);
}

/* ---- Older kernels: the version is asked for, and a signal handler answers ---- */

#ifdef __x86_64__
static int version;

static void answer_version(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = version;
}

static void enter_on_an_older_kernel(void)
{
    struct sigaction action = { .sa_sigaction = answer_version, .sa_flags = SA_SIGINFO };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    WANT(sigaction(SIGSYS, &action, NULL) == 0 && filter);
    WANT(seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(landlock_create_ruleset), 1,
                          SCMP_A2(SCMP_CMP_EQ, 1, 0)) == 0);
    WANT(seccomp_load(filter) == 0);
    cell_enter();
    cell_use_inside();
    cell_file_is(cell.auth, "first");
    cell_file_is(cell.link, "first");
    cell_use_outside();
}

static void older_kernels(void **state)
{
    (void)state;
    for (version = 1; version <= 8; version++)
        cell_child_does(enter_on_an_older_kernel);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
        cmocka_unit_test(renewed_files),
        cmocka_unit_test(nothing_allowed),
        cmocka_unit_test(deadly_calls),
        cmocka_unit_test(folders_below_belong_to_it),
        cmocka_unit_test(refused_calls),
        cmocka_unit_test(threads_are_inside_too),
        cmocka_unit_test(signals),
        cmocka_unit_test(a_servers_work),
        cmocka_unit_test(a_database_can_be_reached),
        cmocka_unit_test(without_landlock_at_all),
        cmocka_unit_test(fails_closed),
#ifdef __x86_64__
        cmocka_unit_test(older_kernels),
#endif

    };
    return cmocka_run_group_tests(tests, cell_setup, cell_teardown);
}

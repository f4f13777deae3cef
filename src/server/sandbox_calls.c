/* System calls, by seccomp. Calls that the server needs are allowed; calls that only an intruder
 * would make kill the process; all others fail with EPERM, so that a library that tries a new call
 * can use another one. */
#define _GNU_SOURCE /* CLONE_THREAD */
#include "server/sandbox_calls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* libseccomp uses negative numbers for calls that the architecture does not have, and skips
 * them. */
static const int allowed[] = {
    /* files and directories: Landlock decides which */
    SCMP_SYS(access), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3),
    SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(fadvise64), SCMP_SYS(fallocate),
    SCMP_SYS(fchmod), SCMP_SYS(fcntl), SCMP_SYS(fdatasync), SCMP_SYS(flock), SCMP_SYS(fstat),
    SCMP_SYS(fstatfs), SCMP_SYS(fsync), SCMP_SYS(ftruncate), SCMP_SYS(getcwd), SCMP_SYS(getdents64),
    SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(lseek), SCMP_SYS(lstat), SCMP_SYS(mkdir),
    SCMP_SYS(mkdirat), SCMP_SYS(newfstatat), SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(pread64),
    SCMP_SYS(preadv), SCMP_SYS(preadv2), SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(pwritev2),
    SCMP_SYS(read), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(readv), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(rmdir), SCMP_SYS(sendfile), SCMP_SYS(stat),
    SCMP_SYS(statfs), SCMP_SYS(statx), SCMP_SYS(sync_file_range), SCMP_SYS(umask), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat), SCMP_SYS(write), SCMP_SYS(writev),
    /* incoming connections; without bind, listen and connect; sending has its own rules */
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(getpeername), SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),
    /* waiting */
    SCMP_SYS(epoll_create), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2), SCMP_SYS(epoll_wait), SCMP_SYS(eventfd2), SCMP_SYS(pipe),
    SCMP_SYS(pipe2), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(pselect6), SCMP_SYS(select),
    SCMP_SYS(signalfd4), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_gettime),
    SCMP_SYS(timerfd_settime),
    /* memory; mmap and mprotect have their own rules */
    SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(membarrier), SCMP_SYS(mincore), SCMP_SYS(mlock),
    SCMP_SYS(mremap), SCMP_SYS(msync), SCMP_SYS(munlock), SCMP_SYS(munmap),
    /* threads; clone has its own rules */
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(futex), SCMP_SYS(get_robust_list),
    SCMP_SYS(getcpu), SCMP_SYS(gettid), SCMP_SYS(restart_syscall), SCMP_SYS(rseq),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler),
    SCMP_SYS(sched_yield), SCMP_SYS(set_robust_list), SCMP_SYS(set_tid_address),
    /* signals; tgkill has its own rule */
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigsuspend), SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(sigaltstack),
    /* time, randomness, and our identity */
    SCMP_SYS(clock_getres), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(getegid),
    SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getrandom),
    SCMP_SYS(getrlimit), SCMP_SYS(getrusage), SCMP_SYS(gettimeofday), SCMP_SYS(getuid),
    SCMP_SYS(nanosleep), SCMP_SYS(sysinfo), SCMP_SYS(time), SCMP_SYS(times), SCMP_SYS(uname)
};

static const int deadly[] = {
    /* other programs and processes; clone has its own rules */
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(pidfd_getfd),
    /* mounts and namespaces */
    SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(move_mount), SCMP_SYS(open_tree),
    SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fsconfig), SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(unshare),
    SCMP_SYS(setns), SCMP_SYS(open_by_handle_at),
    /* the kernel itself */
    SCMP_SYS(bpf), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(userfaultfd),
    SCMP_SYS(perf_event_open), SCMP_SYS(reboot), SCMP_SYS(swapon), SCMP_SYS(swapoff),
    SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key)
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The argument has this value. All 64 bits are compared, also where the kernel uses only 32. */
static struct scmp_arg_cmp is(unsigned arg, scmp_datum_t value)
{
    return (struct scmp_arg_cmp){ arg, SCMP_CMP_EQ, value, 0 };
}

/* The argument has this value in the bits of the mask. */
static struct scmp_arg_cmp masked(unsigned arg, scmp_datum_t mask, scmp_datum_t value)
{
    return (struct scmp_arg_cmp){ arg, SCMP_CMP_MASKED_EQ, mask, value };
}

static int rules_listed(scmp_filter_ctx filter)
{
    int error = 0;
    for (size_t i = 0; i < COUNT(allowed) && error == 0; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; i < COUNT(deadly) && error == 0; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
    return error;
}

/* A thread is a clone with the flags of a thread and without a new namespace; every other clone is
 * a process. clone3 has its flags in memory, where a filter cannot read them: with ENOSYS the C
 * library falls back to clone. */
static int rules_threads(scmp_filter_ctx filter)
{
    const scmp_datum_t shared = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    const scmp_datum_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE |
                                CLONE_VFORK;
    int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                 masked(0, shared | spaces, shared));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(clone), 1,
                                 masked(0, CLONE_THREAD, 0));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                 is(0, (scmp_datum_t)getpid()));
    return error;
}

/* New sockets are harmless: they cannot be bound or connected, and nothing may be sent to an
 * address (with MSG_FASTOPEN that would connect). sendmsg may carry an address where no filter sees
 * it, so UDP is forbidden; local datagrams are allowed, to tell a supervisor that the server is
 * ready. */
static int rules_sockets(scmp_filter_ctx filter)
{
    enum { TYPE = 15 }; /* the type of a socket; the bits above are flags */
    static const scmp_datum_t families[] = { AF_INET, AF_INET6 };
    int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, is(0, AF_UNIX));
    for (size_t i = 0; i < COUNT(families) && error == 0; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, is(0, families[i]),
                                 masked(1, TYPE, SOCK_STREAM));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, is(0, AF_UNIX));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 1, is(4, 0));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1,
                                 masked(2, MSG_FASTOPEN, 0));
    return error;
}

/* For a database: connections, and datagrams for DNS. */
static int rules_connecting(scmp_filter_ctx filter)
{
    enum { TYPE = 15 };
    static const scmp_datum_t families[] = { AF_INET, AF_INET6 };
    int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(connect), 0);
    for (size_t i = 0; i < COUNT(families) && error == 0; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, is(0, families[i]),
                                 masked(1, TYPE, SOCK_DGRAM));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sendmmsg), 0);
    return error;
}

/* Calls with many functions, of which the server needs a few. */
static int rules_partly(scmp_filter_ctx filter)
{
    static const scmp_datum_t controls[] = { FIONBIO, FIONREAD, TCGETS, TIOCGWINSZ };
    int error = 0;
    for (size_t i = 0; i < COUNT(controls) && error == 0; i++)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, is(1, controls[i]));
    if (error == 0)
        error =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, masked(2, PROT_EXEC, 0));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                 masked(2, PROT_EXEC, 0));
    if (error == 0)
        error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, is(0, PR_SET_NAME));
    if (error == 0) /* limits may be read */
        error =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, is(0, 0), is(2, 0));
    return error;
}

int hf_sandbox_calls(bool connects)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter)
        return -ENOMEM;
    /* Calls by another architecture's convention have other numbers. */
    int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    /* Every call passes the filter, so use a tree instead of a list. Kernels before 5.16 turn on a
     * slow mitigation (SSBD) for processes with a filter; all code here is our own, so turn it
     * off. */
    if (error == 0)
        error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (error == 0)
        error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    if (error == 0)
        error = rules_listed(filter);
    if (error == 0)
        error = rules_threads(filter);
    if (error == 0)
        error = rules_sockets(filter);
    if (error == 0 && connects)
        error = rules_connecting(filter);
    if (error == 0)
        error = rules_partly(filter);
    if (error == 0)
        error = seccomp_load(filter);
    seccomp_release(filter);
    return error;
}

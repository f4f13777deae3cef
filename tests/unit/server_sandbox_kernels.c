/* Kernels that cannot do it, and kernels that can do less: what is missing is made to be missing,
 * by a filter of system calls that the child puts in force before it enters. */
#define _GNU_SOURCE
#include "unit/kit/sandbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

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
        cmocka_unit_test(without_landlock_at_all),
        cmocka_unit_test(fails_closed),
#ifdef __x86_64__
        cmocka_unit_test(older_kernels),
#endif
    };
    return cmocka_run_group_tests(tests, cell_setup, cell_teardown);
}

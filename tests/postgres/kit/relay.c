#define _GNU_SOURCE /* close_range */
#include "postgres/kit/relay.h"

#include "postgres/kit/relay_process.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONTROL = 3 };

/* The relay keeps its end and stderr; whoever waits for the end of another descriptor must not wait
 * for the relay. */
static _Noreturn void child(int control, int target, pid_t parent)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL); /* cmocka would take the child for a test that failed */
    if (control != CONTROL && dup2(control, CONTROL) < 0)
        _exit(1);
    close_range(0, 1, 0);
    close_range(CONTROL + 1, ~0U, 0);
    relay_process_run(CONTROL, target, parent);
}

static bool receive_number(const struct relay *r, uint64_t *number)
{
    ssize_t n;
    do
        n = recv(r->control, number, sizeof *number, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *number;
}

void relay_start(struct relay *r, int target)
{
    int ends[2];
    uint64_t port;
    pid_t parent = getpid();
    *r = (struct relay){ 0 };
    assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    fflush(NULL);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0)
        child(ends[1], target, parent);
    close(ends[1]);
    r->control = ends[0];
    assert_true(receive_number(r, &port));
    r->port = (int)port;
}

void relay_end(struct relay *r)
{
    if (r->pid == 0)
        return;
    kill(r->pid, SIGKILL);
    while (waitpid(r->pid, NULL, 0) < 0)
        assert_int_equal(errno, EINTR);
    close(r->control);
    pthread_mutex_destroy(&r->lock);
    r->pid = 0;
}

static uint64_t order(struct relay *r, const struct relay_order *o)
{
    uint64_t answer = 0;
    assert_true(r->pid > 0);
    pthread_mutex_lock(&r->lock);
    bool done = send(r->control, o, sizeof *o, MSG_NOSIGNAL) == (ssize_t)sizeof *o &&
                receive_number(r, &answer);
    pthread_mutex_unlock(&r->lock);
    if (!done)
        fail_msg("the relay on port %d is gone", r->port);
    return answer;
}

void relay_target(struct relay *r, int port)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_TARGET, .value = port });
}

void relay_name(struct relay *r, const char *statement)
{
    struct relay_order o = { .kind = RELAY_ORDER_NAME };
    assert_true(strlen(statement) < sizeof o.name);
    snprintf(o.name, sizeof o.name, "%s", statement);
    order(r, &o);
}

void relay_at_commit(struct relay *r, enum relay_fault fault, unsigned times)
{
    assert_true(fault < RELAY_FAULTS);
    order(r,
          &(struct relay_order){ .kind = RELAY_ORDER_AT_COMMIT, .value = fault, .times = times });
}

void relay_late_ms(struct relay *r, int ms)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_LATE, .value = ms });
}

void relay_black_hole(struct relay *r, bool on)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_HOLE, .value = on });
}

void relay_delay_ms(struct relay *r, int ms)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_DELAY, .value = ms });
}

void relay_refuse(struct relay *r, bool on)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_REFUSE, .value = on });
}

void relay_cut_all(struct relay *r)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_CUT });
}

void relay_pass(struct relay *r)
{
    order(r, &(struct relay_order){ .kind = RELAY_ORDER_PASS });
}

uint64_t relay_count(struct relay *r, unsigned counter)
{
    assert_true(counter < RELAY_COUNTERS);
    return order(r, &(struct relay_order){ .kind = RELAY_ORDER_COUNT, .value = counter });
}

void relay_await(struct relay *r, unsigned counter, uint64_t wanted)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(2))
        if (relay_count(r, counter) >= wanted)
            return;
    fail_msg("the relay's count %u did not become %llu", counter, (unsigned long long)wanted);
}

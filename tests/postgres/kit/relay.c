#define _GNU_SOURCE /* close_range */
#include "postgres/kit/relay.h"

#include "postgres/kit/relay_process.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
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

enum { MESSAGE_MAX = 256 << 20, SSL_REQUEST = 80877103, GSS_REQUEST = 80877104 };

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool in_a_name(int c)
{
    return isalnum(c) || c == '_' || c == '$' || c >= 0x80;
}

bool relay_wire_has_word(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= size; i++)
        if (strncasecmp(text + i, word, n) == 0 &&
            (i == 0 || !in_a_name((unsigned char)text[i - 1])) &&
            (i + n == size || !in_a_name((unsigned char)text[i + n])))
            return true;
    return false;
}

/* The size of the message that begins here, with `head` bytes before the length and in the count;
 * 0: not known yet. */
static size_t size_of(const uint8_t *data, size_t size, size_t head, struct relay_message *m)
{
    if (size < head + 4)
        return 0;
    uint32_t length = number_at(data + head);
    if (length < 4 || length > MESSAGE_MAX) {
        m->kind = RELAY_WIRE_BROKEN;
        return 0;
    }
    return head + length;
}

/* The text that begins at *at and ends with a zero before `end`; NULL if there is none. *at is
 * moved behind it. */
static const char *text_at(const uint8_t **at, const uint8_t *end)
{
    const char *text = (const char *)*at;
    const uint8_t *zero = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
    if (!zero)
        return NULL;
    *at = zero + 1;
    return text;
}

static size_t find_name(const struct relay_wire *w, const char *name)
{
    size_t i = 0;
    while (i < RELAY_NAMES && !(w->used[i] && strcmp(w->commits[i], name) == 0))
        i++;
    return i;
}

/* A Parse: the name now means this text, whatever it meant before. */
static void prepare(struct relay_wire *w, const uint8_t *body, const uint8_t *end)
{
    const char *name = text_at(&body, end), *text = text_at(&body, end);
    if (!name || !text || strlen(name) >= RELAY_NAME_MAX)
        return;
    size_t i = find_name(w, name);
    if (i < RELAY_NAMES)
        w->used[i] = false;
    if (!relay_wire_has_word(text, strlen(text), "commit"))
        return;
    for (i = 0; i < RELAY_NAMES && w->used[i];)
        i++;
    if (i < RELAY_NAMES) {
        w->used[i] = true;
        memcpy(w->commits[i], name, strlen(name) + 1);
    }
}

static bool binds_commit(const struct relay_wire *w, const uint8_t *body, const uint8_t *end,
                         const char *name)
{
    const char *portal = text_at(&body, end), *statement = text_at(&body, end);
    if (!portal || !statement)
        return false;
    return (*name && strcmp(statement, name) == 0) || find_name(w, statement) < RELAY_NAMES;
}

static struct relay_message first_message(struct relay_wire *w, const uint8_t *data, size_t size)
{
    struct relay_message m = { 0 };
    size_t whole = size_of(data, size, 0, &m);
    if (whole == 0 || size < whole)
        return m;
    uint32_t code = whole >= 8 ? number_at(data + 4) : 0;
    m.size = whole;
    if (code == SSL_REQUEST || code == GSS_REQUEST) {
        m.kind = RELAY_WIRE_NO_TLS;
        return m;
    }
    w->begun = true;
    w->asked.stretch++;
    m.ends = true;
    return m;
}

struct relay_message relay_wire_client(struct relay_wire *w, const uint8_t *data, size_t size,
                                       const char *name)
{
    struct relay_message m = { 0 };
    if (!w->begun)
        return first_message(w, data, size);
    size_t whole = size_of(data, size, 1, &m);
    if (whole == 0 || size < whole)
        return m;
    const uint8_t *body = data + 5, *end = data + whole;
    bool commit = false;
    m.size = whole;
    m.place = w->asked;
    switch (data[0]) {
    case 'P': prepare(w, body, end); break;
    case 'B': commit = binds_commit(w, body, end, name); break;
    case 'Q':
        commit = relay_wire_has_word((const char *)body, (size_t)(end - body), "commit");
        break;
    default: break;
    }
    if (commit) {
        m.kind = RELAY_WIRE_COMMIT;
        w->asked.number++;
    }
    m.ends = strchr("QFSH", data[0]) != NULL;
    if (m.ends && data[0] != 'H')
        w->asked = (struct relay_place){ .stretch = w->asked.stretch + 1 };
    return m;
}

struct relay_message relay_wire_server(struct relay_wire *w, const uint8_t *data, size_t size)
{
    struct relay_message m = { 0 };
    size_t whole = size_of(data, size, 1, &m);
    if (whole == 0 || size < whole)
        return m;
    m.size = whole;
    m.place = w->answered;
    if (data[0] == 'C' && whole == 5 + sizeof "COMMIT" &&
        memcmp(data + 5, "COMMIT", sizeof "COMMIT") == 0) {
        m.kind = RELAY_WIRE_COMMITTED;
        w->answered.number++;
    } else if (data[0] == 'Z') {
        m.kind = RELAY_WIRE_READY;
        w->answered = (struct relay_place){ .stretch = w->answered.stretch + 1 };
    }
    return m;
}

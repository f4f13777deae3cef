#define _GNU_SOURCE /* memmem */
#include "server/kit/server.h"

#include "audit/audit.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- The server ---- */

void server_init(struct server *s)
{
    *s = (struct server){ .out = -1, .err = -1 };
    s->dir = test_dir_make();
    snprintf(s->data, sizeof s->data, "%s/data", s->dir);
    s->io = mmap(NULL, sizeof *s->io, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s->io != MAP_FAILED);
    test_io_init(s->io);
    s->options = (struct hf_server_options){ .data = s->data,
                                             .listen = "127.0.0.1:0",
                                             .threads = 1,
                                             .max_body = 1 << 20,
                                             .max_connections = 4096,
                                             .log_duplicates = true,
                                             .store = { .io = &s->io->io } };
    both_empty();
    if (both_is_postgres())
        s->options.store.postgres = postgres_conninfo(both_cluster());
}

static _Noreturn void run_program(const char *const *argv)
{
    char *copy[32] = { NULL };
    for (size_t i = 0; argv[i] && i + 1 < sizeof copy / sizeof *copy; i++)
        copy[i] = strdup(argv[i]);
    execv(copy[0], copy);
    _exit(97);
}

static void child(struct server *s, int out)
{
    char path[600];
    snprintf(path, sizeof path, "%s/log", s->dir);
    int log = s->err >= 0 ? dup(s->err) : open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_DFL);   /* cmocka would take the child for a test that failed */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no server behind */
    if (log < 0 || dup2(log, 2) < 0 || dup2(out, 1) < 0)
        _exit(99);
    close(log);
    close(out);
    if (both_is_postgres())
        setenv("TMPDIR", s->dir, 1); /* it has no directory for what lies on its way to who asked */
    if (s->before)
        s->before();
    if (s->argv)
        run_program(s->argv);
    exit(hf_server_run(&s->options));
}

void server_begin(struct server *s)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        close(ends[0]);
        child(s, ends[1]);
    }
    close(ends[1]);
    s->out = ends[0];
}

int64_t server_clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

void server_pause_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int server_wait(struct server *s)
{
    int status;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(2))
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            close(s->out);
            s->out = -1;
            return code_of(status);
        }
    return -1;
}

/* The first line that the child says. False if it ends without one. */
static bool first_line(struct server *s)
{
    size_t n = 0;
    while (n + 1 < sizeof s->first_line) {
        char c;
        ssize_t got = read(s->out, &c, 1);
        if (got <= 0 || c == '\n') {
            s->first_line[n] = 0;
            return got > 0;
        }
        s->first_line[n++] = c;
    }
    return false;
}

void server_await(struct server *s)
{
    if (!first_line(s)) {
        int code = server_wait(s);
        char *log = server_log(s);
        fail_msg("the server did not start (exit %d): %s", code, log);
    }
    const char *colon = strrchr(s->first_line, ':');
    assert_non_null(colon);
    s->port = atoi(colon + 1);
    assert_true(s->port > 0);
}

void server_start(struct server *s)
{
    server_begin(s);
    server_await(s);
}

void server_fix_port(struct server *s)
{
    snprintf(s->address, sizeof s->address, "127.0.0.1:%d", s->port);
    s->options.listen = s->address;
}

int server_start_fails(struct server *s)
{
    server_begin(s);
    assert_false(first_line(s));
    return server_wait(s);
}

int server_stop(struct server *s)
{
    assert_true(s->pid > 0); /* 0 and -1 would mean many */
    assert_int_equal(kill(s->pid, SIGTERM), 0);
    int code = server_wait(s);
    if (code < 0) {
        server_kill(s);
        fail_msg("the server did not stop");
    }
    return code;
}

void server_kill(struct server *s)
{
    assert_true(s->pid > 0);
    kill(s->pid, SIGKILL);
    (void)server_wait(s);
}

void server_freeze(const struct server *s)
{
    int how;
    assert_int_equal(kill(s->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(s->pid, &how, WUNTRACED), s->pid);
    assert_true(WIFSTOPPED(how));
}

void server_thaw(const struct server *s)
{
    assert_int_equal(kill(s->pid, SIGCONT), 0);
}

void server_end(struct server *s)
{
    int code = s->pid ? server_stop(s) : 0;
    if (code != 0) {
        char *log = server_log(s);
        fail_msg("the server ended with %d: %s", code, log);
    }
    munmap(s->io, sizeof *s->io);
    test_dir_remove(s->dir);
}

char *server_log(struct server *s)
{
    char path[600];
    snprintf(path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (f) {
        size_t n = fread(text, 1, (1 << 20) - 1, f);
        text[n] = 0;
        fclose(f);
    }
    return text;
}

void server_stop_commits(struct server *s)
{
    atomic_store(&s->io->stop_sync, true);
    s->syncs = atomic_load(&s->io->syncs);
    if (both_is_postgres())
        both_stop_commits();
}

void server_await_commit(struct server *s)
{
    if (both_is_postgres()) {
        both_await_stopped();
        return;
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         atomic_load(&s->io->syncs) == s->syncs; server_pause_ms(1))
        assert_true(server_clock_ms() < until);
}

void server_let_commits(struct server *s)
{
    atomic_store(&s->io->stop_sync, false);
    both_let_commits();
}

uint64_t server_commits(struct server *s)
{
    if (!both_is_postgres())
        return atomic_load(&s->io->syncs);
    return (uint64_t)postgres_number(
        both_cluster(), "SELECT count(DISTINCT (writer, batch)) FROM holdfast.journal");
}

uint64_t server_audit(const struct server *s)
{
    const struct hf_audit_options options = { .postgres = s->options.store.postgres };
    struct hf_audit_report report;
    struct hf_error why = { .status = HF_OK };
    if (hf_audit_run(s->data, &options, &report, &why) != HF_OK)
        fail_msg("the store could not be audited: %s", why.text);
    for (size_t i = 0; i < report.check_count; i++)
        if (hf_audit_outcome(&report.checks[i]) != HF_AUDIT_PASSED)
            fail_msg("the audit does not pass %s: %s", report.checks[i].name,
                     report.checks[i].example_count ? report.checks[i].examples[0] : "incomplete");
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    uint64_t holds = report.holds;
    hf_audit_report_free(&report);
    return holds;
}

/* ---- The client ---- */

int server_try_connect(const struct server *s)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port) };
    struct timeval patience = { .tv_sec = SERVER_PATIENCE_MS / 1000 };
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

int server_connect(const struct server *s)
{
    int fd = server_try_connect(s);
    assert_true(fd >= 0);
    return fd;
}

bool server_send(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

bool server_send_text(int fd, const char *text)
{
    return server_send(fd, text, strlen(text));
}

/* Ask the system, over `ask`, about the server's end of a connection: is it accepted, and
 * everything read, or is it closed? */
static bool is_read(int ask, const struct sockaddr_in *server, const struct sockaddr_in *client)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = { .head = { .nlmsg_len = sizeof question,
                             .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                             .nlmsg_flags = NLM_F_REQUEST },
                   .body = {
                       .sdiag_family = AF_INET,
                       .sdiag_protocol = IPPROTO_TCP,
                       .idiag_states = ~0u,
                       .id = { .idiag_sport = server->sin_port,
                               .idiag_dport = client->sin_port,
                               .idiag_src = { server->sin_addr.s_addr },
                               .idiag_dst = { client->sin_addr.s_addr },
                               .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } } };
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg body;
        char attributes[512];
    } answer = { 0 };
    assert_int_equal(send(ask, &question, sizeof question, 0), sizeof question);
    assert_true(recv(ask, &answer, sizeof answer, 0) > 0);
    bool open =
        answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
        (answer.body.idiag_state == TCP_ESTABLISHED || answer.body.idiag_state == TCP_CLOSE_WAIT);
    /* Without an inode it is not accepted. */
    return !open || (answer.body.idiag_inode != 0 && answer.body.idiag_rqueue == 0);
}

void server_await_read(int fd)
{
    struct sockaddr_in here, there;
    socklen_t size = sizeof here;
    int ask = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    assert_true(ask >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &size), 0);
    assert_int_equal(getpeername(fd, (struct sockaddr *)&there, &size), 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; !is_read(ask, &there, &here);
         server_pause_ms(1))
        assert_true(server_clock_ms() < until);
    close(ask);
}

/* Where the head that begins at `head` ends, or NULL. */
static char *head_end(char *head, size_t size)
{
    char *end = memmem(head, size, "\r\n\r\n", 4);
    return end ? end + 4 : NULL;
}

/* Read up to and with the empty line. What comes is looked at first and taken then, so that nothing
 * of the next answer is. */
static char *receive_head(int fd)
{
    size_t size = 0, room = 4096;
    char *head = malloc(room), *end = NULL;
    assert_non_null(head);
    while (!end) {
        if (room - size < 1024)
            head = realloc(head, room *= 2);
        assert_non_null(head);
        ssize_t n = recv(fd, head + size, room - size - 1, MSG_PEEK);
        end = n > 0 ? head_end(head, size + (size_t)n) : NULL;
        size_t take = end ? (size_t)(end - head) - size : n > 0 ? (size_t)n : 1;
        if (n <= 0 || recv(fd, head + size, take, 0) != (ssize_t)take) {
            free(head);
            return NULL;
        }
        size += take;
    }
    head[size] = 0;
    return head;
}

bool server_receive(int fd, struct reply *reply, bool head_only)
{
    *reply = (struct reply){ 0 };
    do {
        free(reply->head);
        reply->head = receive_head(fd);
        if (!reply->head || sscanf(reply->head, "HTTP/1.1 %d ", &reply->status) != 1) {
            reply_free(reply);
            return false;
        }
    } while (reply->status == 100);
    const char *length = reply_field(reply, "Content-Length");
    size_t size = length && !head_only ? strtoull(length, NULL, 10) : 0;
    reply->body = malloc(size + 1);
    assert_non_null(reply->body);
    while (reply->body_size < size) {
        ssize_t n = recv(fd, reply->body + reply->body_size, size - reply->body_size, 0);
        if (n <= 0) {
            reply_free(reply);
            return false;
        }
        reply->body_size += (size_t)n;
    }
    reply->body[size] = 0;
    return true;
}

void server_expect(int fd, int status)
{
    struct reply r;
    if (!server_receive(fd, &r, false))
        fail_msg("no answer: %s", strerror(errno));
    if (r.status != status)
        fail_msg("expected %d, got %d %s", status, r.status, r.body);
    reply_free(&r);
}

void server_leave(int fd, bool reset)
{
    struct linger now = { .l_onoff = 1 };
    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

bool server_closed(int fd, int ms)
{
    char waste[4096];
    for (int64_t until = server_clock_ms() + ms;;) {
        int64_t left = until - server_clock_ms();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (left < 0 || poll(&p, 1, (int)left) == 0)
            return false;
        if (recv(fd, waste, sizeof waste, 0) <= 0)
            return true;
    }
}

void reply_free(struct reply *reply)
{
    free(reply->head);
    free(reply->body);
    *reply = (struct reply){ 0 };
}

const char *reply_field(const struct reply *reply, const char *name)
{
    static char value[1024];
    size_t size = strlen(name);
    for (const char *at = strstr(reply->head, "\r\n"); at && at[2]; at = strstr(at + 2, "\r\n")) {
        if (strncasecmp(at + 2, name, size) == 0 && at[2 + size] == ':') {
            const char *from = at + 2 + size + 1;
            from += strspn(from, " ");
            snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
            return value;
        }
    }
    return NULL;
}

bool reply_has(const struct reply *reply, const char *text)
{
    return reply->body && strstr(reply->body, text) != NULL;
}

const char *reply_text(const struct reply *reply, const char *name)
{
    static char values[4][512];
    static unsigned turn;
    char *value = values[turn++ % 4];
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
    const char *at = strstr(reply->body, quoted);
    value[0] = 0;
    if (at)
        snprintf(value, sizeof values[0], "%.*s", (int)strcspn(at + strlen(quoted), "\""),
                 at + strlen(quoted));
    return value;
}

long long reply_number(const struct reply *reply, const char *name)
{
    char quoted[128];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(reply->body, quoted);
    return at ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

char *server_request(const char *what, const char *fields, const char *body)
{
    size_t room = 256 + strlen(what) + strlen(fields) + (body ? strlen(body) : 0);
    char *text = malloc(room);
    char length[64] = "";
    assert_non_null(text);
    if (body)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    snprintf(text, room, "%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s", what, fields, length,
             body ? body : "");
    return text;
}

bool server_send_request(int fd, const char *what, const char *fields, const char *body)
{
    char *text = server_request(what, fields, body);
    bool sent = server_send_text(fd, text);
    free(text);
    return sent;
}

bool server_call(int fd, const char *what, const char *fields, const char *body,
                 struct reply *reply)
{
    *reply = (struct reply){ 0 };
    return server_send_request(fd, what, fields, body) &&
           server_receive(fd, reply, strncmp(what, "HEAD ", 5) == 0);
}

void server_ask(const struct server *s, const char *what, const char *fields, const char *body,
                struct reply *reply)
{
    int fd = server_connect(s);
    if (!server_call(fd, what, fields, body, reply))
        fail_msg("no answer to %s", what);
    close(fd);
}

void server_ask_keyed(const struct server *s, const char *what, const char *key, const char *body,
                      struct reply *reply)
{
    char fields[2048];
    snprintf(fields, sizeof fields, "Idempotency-Key: %s\r\n", key);
    server_ask(s, what, fields, body, reply);
}

#define _GNU_SOURCE
#include "fault/server.h"

#include "server/kit/talk.h"
#include "support/test.h"

#include <ctype.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STUCK_MS = 20000, LASTING_MS = 25, SPARSE_FROM = 60 };

static struct server server;
static struct hf_io io;
static unsigned number = 1000; /* of the trial; larger than what stands in a date */
static char id[64], fence[32];
static char trying[300];

_Noreturn static void blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void blame(const char *format, ...)
{
    char text[2048];
    va_list args;
    fault_lift();
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_msg("%s: %s", trying, text);
    abort();
}

/* ---- The server ---- */

static void in_the_child(void)
{
    fault_here(true);
    fault_watch_exit();
}

struct server *fault_server(void)
{
    return &server;
}

void fault_server_start(unsigned threads)
{
    fault_here(false);
    talk_server(&server);
    io = *hf_io_os();
    io.ctx = server.io; /* for the clocks; the rest of them has no use for it */
    io.wall_ms = server.io->io.wall_ms;
    io.boot_ms = server.io->io.boot_ms;
    io.monotonic_ns = server.io->io.monotonic_ns;
    server.options.store.io = &io;
    server.options.threads = threads;
    server.options.store.no_background = false; /* what could not be prepared is tried again */
    server.options.store.segment_max_bytes = 256 << 10;
    server.before = in_the_child;
    server_start(&server);
}

void fault_server_end(int kept)
{
    snprintf(trying, sizeof trying, "the server's end");
    int code = server_stop(&server);
    if (code != 0 || fault_leaked_there() < 0 || fault_leaked_there() > kept) {
        char *log = server_log(&server);
        const char *where = strstr(log, "leaked: ");
        size_t size = strlen(log);
        blame("exit code %d, %d blocks of memory not freed: %s", code, fault_leaked_there(),
              where ? where : log + (size > 1000 ? size - 1000 : 0));
    }
    server_audit(&server);
    server_end(&server);
}

/* It may have stopped, which is right if the journal could not be written. True if it had to be
 * started again. */
static bool revive(enum fault_call call)
{
    int status;
    pid_t ended = 0;
    /* It says why before it ends. */
    for (int ms = 0; ended == 0 && ms < (call == FAULT_WRITE || call == FAULT_SYNC ? STUCK_MS : 1);
         ms++) {
        ended = waitpid(server.pid, &status, WNOHANG);
        if (ended == 0)
            server_pause_ms(1);
    }
    if (ended != server.pid)
        return false;
    server.pid = 0;
    close(server.out);
    char *log = server_log(&server);
    bool said = strstr(log, " error fatal ") != NULL;
    if ((call != FAULT_WRITE && call != FAULT_SYNC) || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 3 || !said)
        blame("the server has ended (status %#x): %s", (unsigned)status,
              log + (strlen(log) > 1000 ? strlen(log) - 1000 : 0));
    free(log);
    server_start(&server);
    return true;
}

/* ---- Texts ---- */

static const char *text_of(const char *pattern, char *out, size_t room)
{
    size_t n = 0;
    for (; *pattern && n + 64 < room; pattern++) {
        if (*pattern == '#')
            n += (size_t)sprintf(out + n, "%u", number);
        else if (*pattern == '@' || *pattern == '^')
            n += (size_t)sprintf(out + n, "%s", *pattern == '@' ? id : fence);
        else
            out[n++] = *pattern;
    }
    out[n] = 0;
    return out;
}

/* What is another number in each trial becomes a word: the number itself, ids, digests, fences,
 * positions. Owned. */
static char *mask(const char *text)
{
    char own[24];
    char *out = malloc(strlen(text) * 2 + 64), *to = out;
    assert_non_null(out);
    int size = snprintf(own, sizeof own, "-%u", number);
    while (*text) {
        size_t word = 0;
        while (isalnum((unsigned char)text[word]))
            word++;
        if (strncmp(text, own, (size_t)size) == 0 && !isdigit((unsigned char)text[size])) {
            to += sprintf(to, "-#");
            text += size;
        } else if (strncmp(text, "\"fence\":", 8) == 0 || strncmp(text, "\"position\":", 11) == 0) {
            to += sprintf(to, "^:^");
            text += strcspn(text, ":") + 1;
            text += strspn(text, "0123456789");
        } else if (word == 26 || word == 64) {
            to += sprintf(to, "@");
            text += word;
        } else {
            size_t n = word > 0 ? word : 1;
            memcpy(to, text, n);
            to += n;
            text += n;
        }
    }
    *to = 0;
    return out;
}

/* ---- Calls ---- */

static char *request_of(const struct fault_request *r, const char *more)
{
    char what[2048], body[8192], fields[512], key[128];
    text_of(r->what, what, sizeof what);
    snprintf(fields, sizeof fields, "%s%s%s%s", more ? more : "", r->key ? "Idempotency-Key: " : "",
             r->key ? text_of(r->key, key, sizeof key) : "", r->key ? "\r\n" : "");
    return server_request(what, fields, r->body ? text_of(r->body, body, sizeof body) : NULL);
}

static void patience(int fd, int ms)
{
    struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

/* Does something come, an end included? */
static bool comes(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, ms) > 0;
}

void fault_ask(const struct fault_request *request, const char *fields, struct reply *reply)
{
    int fd = server_connect(&server);
    char *text = request_of(request, fields);
    patience(fd, STUCK_MS);
    bool sent = server_send_text(fd, text);
    free(text);
    if (!sent || !server_receive(fd, reply, strncmp(request->what, "HEAD", 4) == 0))
        blame("no answer to %s, without a fault", request->what);
    close(fd);
}

/* Ask while the fault is on. What does not come while it lasts must come, or be closed, when it is
 * over. Status 0: the connection was closed. */
static void ask_faulty(const struct fault_route *r, int fd, enum fault_mode mode,
                       struct reply *reply)
{
    char *text = request_of(&r->call, r->fields);
    *reply = (struct reply){ 0 };
    patience(fd, STUCK_MS);
    (void)server_send_text(fd, text);
    free(text);
    if (mode == FAULT_LASTING && !comes(fd, LASTING_MS))
        fault_lift();
    if (!comes(fd, STUCK_MS))
        blame("is stuck");
    if (!server_receive(fd, reply, false))
        *reply = (struct reply){ 0 };
}

/* The one line of a batch that could not be done. */
static bool line_failed(const struct reply *got)
{
    return got->status == 200 && strncmp(got->body, "{\"status\":503,", 14) == 0;
}

/* Does it say that nothing was done, and to try again? */
static bool is_put_off(const struct reply *got)
{
    static const char *const codes[] = { "storage-failure", "no-memory", "too-busy" };
    if (got->status != 503 && !line_failed(got))
        return false;
    if (strncmp(got->body, "{\"ready\":false", 14) == 0)
        return true;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(reply_text(got, "code"), codes[i]) == 0)
            return true;
    return false;
}

/* Ask, and ask again while it is put off: a segment that could not be made is made soon. */
static void ask_until_taken(const struct fault_request *request, const char *fields,
                            struct reply *reply)
{
    fault_ask(request, fields, reply);
    for (int ms = 0; ms < STUCK_MS && is_put_off(reply); ms += 10) {
        reply_free(reply);
        server_pause_ms(10);
        fault_ask(request, fields, reply);
    }
}

/* ---- Judging ---- */

struct base {
    int status;
    bool replayed;
    char *body, *before, *after; /* owned, masked */
    bool makes[FAULT_CALLS];
};

static void leads_make(const struct fault_route *r)
{
    struct reply ready;
    number++;
    ask_until_taken(&(struct fault_request){ .what = "GET /readyz" }, NULL, &ready);
    reply_free(&ready);
    for (size_t i = 0; i < 2 && r->leads[i].what; i++) {
        struct reply got;
        ask_until_taken(&r->leads[i], NULL, &got);
        if (got.status != 200 && got.status != 201)
            blame("%s: %s", r->leads[i].what, got.body);
        snprintf(id, sizeof id, "%s", reply_text(&got, "id"));
        snprintf(fence, sizeof fence, "%lld", reply_number(&got, "fence"));
        reply_free(&got);
    }
}

/* Owned, masked; "" for a route that changes nothing. */
static char *look(const struct fault_route *r)
{
    struct reply got;
    if (!r->look)
        return strdup("");
    fault_ask(&(struct fault_request){ .what = r->look }, NULL, &got);
    char *text = mask(got.status == 200 ? got.body : "nothing there");
    reply_free(&got);
    return text;
}

/* The body as it is compared. Owned. */
static char *body_of(const struct fault_route *r, const struct reply *got)
{
    enum { TAIL = 8 };
    size_t size = got->body_size;
    if (r->loose)
        return strdup(got->body + (size > TAIL ? size - TAIL : 0));
    return mask(got->body);
}

static bool is_base(const struct fault_route *r, const struct base *b, const struct reply *got)
{
    char *body = got->status == b->status ? body_of(r, got) : NULL;
    bool same = body && strcmp(body, b->body) == 0;
    free(body);
    return same;
}

static void judge_reply(const struct fault_route *r, const struct base *b, const struct reply *got,
                        enum fault_call call, enum fault_mode mode)
{
    if (mode >= FAULT_INTERRUPTED && !is_base(r, b, got))
        blame("%d %.500s, although nothing failed", got->status, got->body ? got->body : "closed");
    if (got->status == 0 || is_base(r, b, got))
        return;
    if (r->audits && call == FAULT_READ && got->status == 200)
        return;
    if (r->guard && got->status == 200) /* by its policy; the effect is looked at */
        return;
    bool unknown = (got->status == 503 || line_failed(got)) &&
                   strcmp(reply_text(got, "code"), "indeterminate") == 0;
    if (!is_put_off(got) && !(unknown && r->look))
        blame("answers %d %.500s instead of %d %.500s", got->status, got->body, b->status, b->body);
    if (line_failed(got))
        return;
    const char *type = reply_field(got, "Content-Type");
    if (!type || strcmp(type, "application/problem+json") != 0)
        blame("%d without a problem: %.500s", got->status, got->body);
    if (!reply_field(got, "Retry-After"))
        blame("503 without Retry-After");
}

/* What is to be seen must fit what was said. True if it is done. */
static bool judge_effect(const struct fault_route *r, const struct base *b, const struct reply *got)
{
    char *now = look(r);
    bool done = strcmp(now, b->after) == 0, undone = strcmp(now, b->before) == 0;
    if (!done && !undone)
        blame("half an effect: %.500s, neither %.500s nor %.500s", now, b->before, b->after);
    if (is_put_off(got) && !undone)
        blame("said not to be done: %.500s", now);
    if (is_base(r, b, got) && !done && !r->guard)
        blame("said to be done: %.500s", now);
    free(now);
    return done;
}

static void judge_again(const struct fault_route *r, const struct base *b,
                        const struct reply *first)
{
    struct reply got;
    ask_until_taken(&r->call, r->fields, &got);
    if (!is_base(r, b, &got))
        blame("the second try answers %d %.500s instead of %d %.500s", got.status, got.body,
              b->status, b->body);
    bool replayed = reply_field(&got, "Idempotent-Replayed") != NULL;
    if (r->call.key && is_put_off(first) && replayed != b->replayed)
        blame("a failure was remembered");
    if (r->call.key && r->look && is_base(r, b, first) && !replayed)
        blame("what was done is done again");
    reply_free(&got);
    if (!judge_effect(r, b, &(struct reply){ .status = 0 }) && r->look)
        blame("the second try has done nothing");
}

/* ---- Trials ---- */

static int connection(bool kept)
{
    struct reply got;
    int fd = server_connect(&server);
    patience(fd, STUCK_MS);
    if (kept) {
        if (!server_call(fd, "GET /healthz", "", NULL, &got) || got.status != 200)
            blame("no answer to GET /healthz, without a fault");
        reply_free(&got);
    }
    return fd;
}

static bool trial(const struct fault_route *r, const struct base *b, enum fault_call call,
                  enum fault_mode mode, unsigned n, bool kept)
{
    struct reply got;
    snprintf(trying, sizeof trying, "%s (%s, number %u%s)", r->call.what, fault_name(call, mode), n,
             kept ? ", kept connection" : "");
    leads_make(r);
    int fd = kept ? connection(true) : -1;
    fault_arm(call, n, mode);
    if (!kept)
        fd = connection(false);
    ask_faulty(r, fd, mode, &got);
    bool failed = fault_lift() > 0;
    atomic_fetch_add(&server.io->later_ns,
                     UINT64_C(2000000000)); /* what failed may be tried again */
    close(fd);
    bool revived = got.status == 0 && revive(call);
    if (failed)
        fault_point();
    judge_reply(r, b, &got, call, failed ? mode : FAULT_INTERRUPTED);
    bool done = judge_effect(r, b, &got);
    if (!(r->once && done))
        judge_again(r, b, &got);
    if (revived && r->once && r->look && !done && got.status == b->status)
        blame("what was acknowledged is lost");
    reply_free(&got);
    return failed;
}

static void base_make(const struct fault_route *r, struct base *b, bool kept)
{
    struct reply got;
    snprintf(trying, sizeof trying, "%s (no fault)", r->call.what);
    leads_make(r);
    b->before = look(r);
    int fd = kept ? connection(true) : -1;
    fault_arm(FAULT_NONE, 0, FAULT_ONCE);
    fault_forget();
    if (!kept)
        fd = connection(false);
    ask_faulty(r, fd, FAULT_ONCE, &got);
    for (int call = 0; call < FAULT_CALLS; call++)
        b->makes[call] = fault_count((enum fault_call)call) > 0;
    close(fd);
    b->status = got.status;
    b->replayed = got.status && reply_field(&got, "Idempotent-Replayed");
    b->body = got.status ? body_of(r, &got) : NULL;
    if (got.status == 0 || got.status >= 500 || (r->look && got.status >= 300))
        blame("answers %d %s without a fault", got.status, got.body ? got.body : "");
    b->after = look(r);
    if (r->look && strcmp(b->before, b->after) == 0)
        blame("changes nothing: %s", b->after);
    reply_free(&got);
}

void fault_route_try(const struct fault_route *r, enum fault_call from, enum fault_call to,
                     bool kept)
{
    struct base b;
    fault_tried();
    base_make(r, &b, kept);
    for (int call = (int)from; call <= (int)to; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (b.makes[call] && fault_has_mode((enum fault_call)call, (enum fault_mode)mode) &&
                fault_wanted(2))
                for (unsigned n = 1;
                     trial(r, &b, (enum fault_call)call, (enum fault_mode)mode, n, kept);)
                    n = r->sparse && n > SPARSE_FROM ? n + n / 4 : fault_next(n);
    free(b.body);
    free(b.before);
    free(b.after);
}

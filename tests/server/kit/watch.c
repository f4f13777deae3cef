#include "server/kit/watch.h"

#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The process ---- */

static long status_of(const struct server *s, const char *name)
{
    char path[64], line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)s->pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            value = strtol(line + strlen(name) + 1, NULL, 10);
    fclose(f);
    assert_true(value >= 0);
    return value;
}

long watch_memory_kib(const struct server *s)
{
    return status_of(s, "VmRSS");
}

long watch_peak_kib(const struct server *s)
{
    return status_of(s, "VmHWM");
}

void watch_peak_forget(const struct server *s)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)s->pid);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "5", 1), 1);
    close(fd);
}

long watch_bound_kib(long plain_kib)
{
    return WATCH_SANITIZED ? 6 * plain_kib + 768 * 1024 : plain_kib;
}

int watch_files(const struct server *s)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)s->pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static bool has_file(const struct server *s, const char *part)
{
    char path[64], link[400], target[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)s->pid);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; !found && (entry = readdir(dir)) != NULL;) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t size = readlink(link, target, sizeof target - 1);
        target[size > 0 ? size : 0] = 0;
        found = strstr(target, part) != NULL;
    }
    closedir(dir);
    return found;
}

void watch_await_file(const struct server *s, const char *part)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; !has_file(s, part);
         server_pause_ms(1))
        assert_true(server_clock_ms() < until);
}

unsigned watch_allow_files(unsigned count)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < count) {
        limit.rlim_cur = limit.rlim_max < count ? limit.rlim_max : count;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    return limit.rlim_cur < count ? (unsigned)limit.rlim_cur : count;
}

/* ---- What it says ---- */

double watch_figure(const struct server *s, const char *fields, const char *name)
{
    struct reply r;
    double value = -1;
    size_t size = strlen(name);
    server_ask(s, "GET /metrics", fields, NULL, &r);
    assert_int_equal(r.status, 200);
    for (const char *at = r.body; (at = strstr(at, name)) != NULL; at++)
        if ((at == r.body || at[-1] == '\n') && at[size] == ' ')
            value = strtod(at + size, NULL);
    reply_free(&r);
    return value;
}

void watch_await_figure(const struct server *s, const char *fields, const char *name, double value)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;; server_pause_ms(5)) {
        double now = watch_figure(s, fields, name);
        if (now == value)
            return;
        if (server_clock_ms() > until)
            fail_msg("%s is %g instead of %g", name, now, value);
    }
}

static unsigned log_count(struct server *s, const char *text)
{
    unsigned count = 0;
    char *log = server_log(s);
    for (const char *at = log; (at = strstr(at, text)) != NULL; at += strlen(text))
        count++;
    free(log);
    return count;
}

bool watch_log(struct server *s, const char *text, unsigned times)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(5))
        if (log_count(s, text) >= times)
            return true;
    return false;
}

void watch_hangup(struct server *s, const char *event)
{
    unsigned before = log_count(s, event);
    assert_int_equal(kill(s->pid, SIGHUP), 0);
    if (!watch_log(s, event, before + 1)) {
        char *log = server_log(s);
        fail_msg("no %s in the log: %s", event, log);
    }
}

/* ---- Refusals ---- */

const char *watch_problem(const struct reply *r)
{
    static char wrong[512];
    char begin[160], status[32];
    const char *type = reply_field(r, "Content-Type");
    snprintf(begin, sizeof begin, "{\"type\":\"urn:holdfast:%s\",\"title\":\"",
             reply_text(r, "code"));
    snprintf(status, sizeof status, "\"status\":%d,", r->status);
    if (!type || strcmp(type, "application/problem+json") != 0)
        return "it is not problem+json";
    if (r->status < 400 || strncmp(r->body, begin, strlen(begin)) != 0 || !reply_has(r, status) ||
        reply_text(r, "code")[0] == 0 || reply_text(r, "title")[0] == 0 ||
        reply_text(r, "detail")[0] == 0) {
        snprintf(wrong, sizeof wrong, "it is not a whole problem: %.400s", r->body);
        return wrong;
    }
    if ((r->status == 503 || r->status == 429) != (reply_field(r, "Retry-After") != NULL) &&
        strcmp(reply_text(r, "code"), "in-progress") != 0)
        return "Retry-After belongs to 503, 429 and in-progress";
    return NULL;
}

void watch_refused(const struct reply *r, int status, const char *code, const char *sentence)
{
    const char *wrong = watch_problem(r);
    if (wrong)
        fail_msg("expected %d %s, got %d: %s", status, code, r->status, wrong);
    if (r->status != status || strcmp(reply_text(r, "code"), code) != 0 ||
        (sentence && !strstr(reply_text(r, "detail"), sentence)))
        fail_msg("expected %d %s (%s), got %d %s", status, code, sentence ? sentence : "",
                 r->status, r->body);
}

void watch_ends(int fd)
{
    char byte;
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (poll(&p, 1, SERVER_PATIENCE_MS) != 1)
        fail_msg("the server did not close the connection");
    ssize_t n = recv(fd, &byte, 1, 0);
    if (n > 0)
        fail_msg("the server sent more, beginning with %c", byte);
    if (n < 0)
        assert_int_equal(errno, ECONNRESET);
}

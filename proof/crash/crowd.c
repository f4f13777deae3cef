#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "crash/crowd.h"

#include "support/test.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 60000 };

/* Always false. The first complaint counts. */
__attribute__((format(printf, 2, 3))) static bool complain(struct crash_crowd *c,
                                                           const char *format, ...)
{
    va_list args;
    if (c->complaint[0])
        return false;
    va_start(args, format);
    vsnprintf(c->complaint, sizeof c->complaint, format, args);
    va_end(args);
    return false;
}

/* ---- What they find ---- */

const char *crash_program(void)
{
    static char path[4200];
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/../holdfast", slash ? (int)(slash - self) : 0, self);
    return path;
}

int crash_port_find(void)
{
    uint64_t random = (uint64_t)getpid() << 32 ^ (uint64_t)server_clock_ms();
    for (unsigned i = 0; i < 1000; i++) {
        int port = 10000 + (int)test_below(&random, 20000), on = 1;
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
        if (fd >= 0)
            close(fd);
        if (is_free)
            return port;
    }
    return 0;
}

bool crash_listens(struct server *s)
{
    struct pollfd p = { .fd = s->out, .events = POLLIN };
    ssize_t n =
        poll(&p, 1, START_MS) > 0 ? read(s->out, s->first_line, sizeof s->first_line - 1) : -1;
    s->first_line[n > 0 ? n : 0] = 0;
    return n > 0 && strstr(s->first_line, "listening on");
}

/* Closed: a guard that cannot be asked for its entry says "seen" without one, which is no answer to
 * the client. Open, it would say what it says to the first. */
#define RULE "\"window\":\"1d\",\"on_unavailable\":\"closed\""

bool crash_furnish(const struct server *s)
{
    char what[64], body[64];
    struct reply r;
    int fd = server_try_connect(s);
    bool fine = fd >= 0;
    for (unsigned i = 0; i < CRASH_SHARED + 2 && fine; i++) {
        bool guard = i >= CRASH_SHARED;
        snprintf(what, sizeof what, guard ? "PUT /v1/guards/%s" : "PUT /v1/resources/%s%u",
                 !guard              ? "shared-"
                 : i == CRASH_SHARED ? "plain"
                                     : "folded",
                 i);
        snprintf(body, sizeof body, "{\"capacity\":%d}", CRASH_SHARED_CAPACITY);
        fine = server_call(fd, what, "",
                           !guard              ? body
                           : i == CRASH_SHARED ? "{" RULE "}"
                                               : "{" RULE ",\"match\":[\"casefold\",\"hash\"]}",
                           &r) &&
               r.status == 200;
        reply_free(&r);
    }
    if (fd >= 0)
        close(fd);
    return fine;
}

/* ---- Beginning ---- */

static void path_of(const struct crash_crowd *c, unsigned client, char path[600])
{
    snprintf(path, 600, "%s/ledger-%u", c->dir, client);
}

static _Noreturn void client_process(struct crash_crowd *crowd, unsigned i)
{
    char path[600];
    struct crash_client c = { .board = crowd->board,
                              .tally = &crowd->board->clients[i],
                              .servers = crowd->servers,
                              .at = i % crowd->servers,
                              .clients = crowd->count,
                              .random = crowd->seed * crowd->count + i,
                              .pause = crowd->pause_us,
                              .ghosts = crowd->ghosts };
    memcpy(c.to, crowd->to, sizeof c.to);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    path_of(crowd, i, path);
    if (!crash_ledger_make(&c.ledger, path, i))
        _exit(2);
    _exit(crash_client_run(&c));
}

bool crash_crowd_start(struct crash_crowd *c)
{
    c->board =
        mmap(NULL, sizeof *c->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c->board == MAP_FAILED) {
        c->board = NULL;
        return complain(c, "there is no memory to share with the clients");
    }
    fflush(NULL);
    for (unsigned i = 0; i < c->count; i++) {
        c->pids[i] = fork();
        if (c->pids[i] == 0)
            client_process(c, i);
        if (c->pids[i] < 0)
            return complain(c, "no process for client %u", i);
    }
    return true;
}

/* ---- Looking after them ---- */

uint64_t crash_crowd_acknowledged(const struct crash_crowd *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->count; i++)
        sum += c->board->clients[i].acknowledged;
    return sum;
}

bool crash_crowd_accused(struct crash_crowd *c)
{
    for (unsigned i = 0; i < c->count && c->board; i++)
        if (c->board->clients[i].complaint[0])
            complain(c, "client %u: %s", i, c->board->clients[i].complaint);
    return c->complaint[0] != 0;
}

void crash_crowd_sum(const struct crash_crowd *c, struct crash_sum *n)
{
    n->acknowledged = n->in_doubt = n->survived = n->undone = n->resent = n->not_yet =
        n->asked_again = n->breaks = 0;
    memset(n->kinds, 0, sizeof n->kinds);
    for (unsigned i = 0; i < c->count; i++) {
        const struct crash_tally *t = &c->board->clients[i];
        n->acknowledged += t->acknowledged;
        n->in_doubt += t->in_doubt;
        n->survived += t->survived;
        n->undone += t->undone;
        n->resent += t->resent;
        n->not_yet += t->not_yet;
        n->asked_again += t->asked_again;
        n->breaks += t->breaks;
        for (unsigned kind = 0; kind < CRASH_KINDS; kind++)
            n->kinds[kind] += t->kinds[kind];
    }
}

/* ---- Ending ---- */

bool crash_crowd_end(struct crash_crowd *c)
{
    c->board->stop = true;
    for (unsigned i = 0; i < c->count; i++) {
        int status = 0;
        if (c->pids[i] <= 0)
            continue;
        waitpid(c->pids[i], &status, 0);
        c->pids[i] = 0;
        if (!crash_crowd_accused(c) && status != 0)
            complain(c, "client %u ended with %d", i, status);
    }
    return !c->complaint[0];
}

bool crash_crowd_read(struct crash_crowd *c, struct crash_ledger *ledgers)
{
    bool fine = true;
    for (unsigned i = 0; i < c->count; i++)
        ledgers[i] = (struct crash_ledger){ .file = NULL };
    for (unsigned i = 0; i < c->count && fine; i++) {
        char path[600];
        path_of(c, i, path);
        fine = crash_ledger_read(&ledgers[i], path, i, c->complaint, sizeof c->complaint);
    }
    return fine;
}

void crash_crowd_free(struct crash_crowd *c)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->pids[i] > 0) {
            kill(c->pids[i], SIGKILL);
            waitpid(c->pids[i], NULL, 0);
            c->pids[i] = 0;
        }
    if (c->board)
        munmap(c->board, sizeof *c->board);
    c->board = NULL;
}

/* ---- Saying it ---- */

void crash_sum_print(const struct crash_sum *n)
{
    static const char *const kinds[CRASH_KINDS] = { "place",    "numbered", "confirm", "release",
                                                    "expire",   "reverse",  "admit",   "begin",
                                                    "complete", "fail",     "grant",   "write",
                                                    "merge" };
    printf("%" PRIu64 " operations acknowledged; done:", n->acknowledged);
    for (unsigned i = 0; i < CRASH_KINDS; i++)
        printf(" %s %" PRIu64, kinds[i], n->kinds[i]);
    printf("\n%" PRIu64 " in doubt: %" PRIu64 " had survived, %" PRIu64 " had not, %" PRIu64
           " cannot be told; %" PRIu64 " requests sent again, %" PRIu64 " times not yet\n",
           n->in_doubt, n->survived, n->undone, n->in_doubt - n->survived - n->undone, n->resent,
           n->not_yet);
    printf("%" PRIu64 " connections broken; %" PRIu64
           " questions about what had been acknowledged\n",
           n->breaks, n->asked_again);
    printf("%" PRIu64 " holds and %" PRIu64 " journal entries, all of them asked for; %" PRIu64
           " operations judged, %" PRIu64 " of them with their times\n",
           n->holds, n->entries, n->judged, n->timed);
}

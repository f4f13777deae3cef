#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "support/crash_world.h"

#include "support/crash_check.h"
#include "support/server_watch.h"
#include "support/test.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool crash_world_complain(struct crash_world *w, const char *format, ...)
{
    va_list args;
    char *complaint = w->round->complaint;
    if (complaint[0])
        return false;
    va_start(args, format);
    vsnprintf(complaint, sizeof w->round->complaint, format, args);
    va_end(args);
    return false;
}

uint64_t crash_world_acknowledged(const struct crash_world *w)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        sum += w->board->clients[i].acknowledged;
    return sum;
}

bool crash_world_accused(const struct crash_world *w)
{
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        if (w->board->clients[i].complaint[0])
            return true;
    return false;
}

/* ---- Counting ---- */

uint64_t crash_count_kills(const struct crash_count *count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CRASH_SORTS; i++)
        sum += count->kills[i];
    return sum;
}

void crash_count_add(struct crash_count *to, const struct crash_count *more)
{
    uint64_t *sums = (uint64_t *)to;
    const uint64_t *parts = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *to / sizeof *sums; i++)
        sums[i] += parts[i];
}
_Static_assert(sizeof(struct crash_count) % sizeof(uint64_t) == 0, "all of it are counters");

static void count_take(struct crash_world *w)
{
    struct crash_count *n = &w->round->count;
    n->acknowledged = n->in_doubt = n->survived = n->undone = n->resent = n->not_yet = n->asked_again =
        n->breaks = 0;
    memset(n->kinds, 0, sizeof n->kinds);
    for (unsigned i = 0; i < CRASH_CLIENTS; i++) {
        const struct crash_tally *t = &w->board->clients[i];
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

/* ---- Lives ---- */

/* A port that the kernel gives to nobody by itself: a client that calls while nobody listens could otherwise be connected
 * to itself, and take the server's place. It is no part of what the seed decides: two runs with one seed must not meet. */
static int port_find(void)
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

/* Begin a life; the server may be killed from here on. */
static void life_begin(struct crash_world *w)
{
    static char threads[8];
    static const char *argv[16];
    struct server *s = &w->server;
    s->options.threads = 1 + (unsigned)test_below(&w->random, 3);
    snprintf(threads, sizeof threads, "%u", s->options.threads);
    const char *const program[] = { w->round->program,
                                    "serve",
                                    "--data",
                                    s->data,
                                    "--listen",
                                    s->address,
                                    "--threads",
                                    threads,
                                    "--log-duplicates",
                                    "no",
                                    "--sandbox",
                                    WATCH_SANITIZED ? "off" : "on",
                                    NULL };
    memcpy(argv, program, sizeof program);
    s->argv = w->small ? NULL : argv;
    w->round->count.lives++;
    w->round->count.lives_program += !w->small;
    server_begin(s);
}

/* Registry and guards are made in the first life, which nobody disturbs. */
static bool world_furnish(struct crash_world *w)
{
    char what[64], body[64];
    struct reply r;
    int fd = server_try_connect(&w->server);
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
                           : i == CRASH_SHARED ? "{\"window\":\"1d\"}"
                                               : "{\"window\":\"1d\",\"match\":[\"casefold\",\"hash\"]}",
                           &r) &&
               r.status == 200;
        reply_free(&r);
    }
    if (fd >= 0)
        close(fd);
    return fine || crash_world_complain(w, "the store could not be furnished");
}

static _Noreturn void client_process(struct crash_world *w, unsigned i)
{
    char path[600];
    struct crash_client c = { .board = w->board,
                              .tally = &w->board->clients[i],
                              .to = w->server,
                              .random = w->round->seed * CRASH_CLIENTS + i,
                              .pause = w->round->pause_us,
                              .ghosts = w->round->control == CRASH_GHOSTS };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof path, "%s/ledger-%u", w->server.dir, i);
    if (!crash_ledger_make(&c.ledger, path, i))
        _exit(2);
    _exit(crash_client_run(&c));
}

static bool clients_start(struct crash_world *w)
{
    fflush(NULL);
    for (unsigned i = 0; i < CRASH_CLIENTS; i++) {
        w->clients[i] = fork();
        if (w->clients[i] == 0)
            client_process(w, i);
        if (w->clients[i] < 0)
            return crash_world_complain(w, "no process for client %u", i);
    }
    return true;
}

static void complaints_take(struct crash_world *w)
{
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        if (w->board->clients[i].complaint[0])
            crash_world_complain(w, "client %u: %s", i, w->board->clients[i].complaint);
}

/* Let the clients come to their end, which needs a server. */
static bool clients_end(struct crash_world *w)
{
    w->board->stop = true;
    for (unsigned i = 0; i < CRASH_CLIENTS; i++) {
        int status = 0;
        if (w->clients[i] <= 0)
            continue;
        waitpid(w->clients[i], &status, 0);
        w->clients[i] = 0;
        complaints_take(w);
        if (status != 0)
            crash_world_complain(w, "client %u ended with %d", i, status);
    }
    count_take(w);
    return !w->round->complaint[0];
}

/* ---- A round ---- */

static bool world_make(struct crash_world *w)
{
    char path[600];
    struct server *s = &w->server;
    server_init(s);
    s->options.log_duplicates = false;
    s->options.store.io = NULL; /* the operating system itself */
    s->options.store.segment_max_bytes = 256 << 10;
    s->options.store.snapshot_every_bytes = 512 << 10;
    s->port = port_find();
    server_fix_port(s);
    snprintf(w->round->dir, sizeof w->round->dir, "%s", s->dir);
    snprintf(path, sizeof path, "%s/kills", s->dir);
    w->notes = fopen(path, "w");
    w->watch = inotify_init1(IN_CLOEXEC);
    if (!w->notes || w->watch < 0)
        return crash_world_complain(w, "the round cannot be prepared");
    w->small = true;
    life_begin(w);
    if (!crash_listening(w) || !world_furnish(w))
        return false;
    if (inotify_add_watch(w->watch, s->data, IN_CREATE | IN_MOVED_TO | IN_DELETE) < 0)
        return crash_world_complain(w, "the directory cannot be watched");
    return crash_end(w, SIGTERM);
}

/* Each sort once, and then by chance. */
static enum crash_sort sort_draw(struct crash_world *w, unsigned number)
{
    static const unsigned weights[CRASH_SORTS] = {
        [CRASH_KILL] = 20,    [CRASH_COMMIT] = 20,   [CRASH_STOP_KILL] = 8, [CRASH_SNAPSHOT] = 12,
        [CRASH_SEGMENT] = 12, [CRASH_RECOVERY] = 14, [CRASH_TERM_KILL] = 8, [CRASH_TERM] = 6
    };
    unsigned draw = (unsigned)test_below(&w->random, 100), sort = 0;
    if (w->round->control != CRASH_FAIR)
        return CRASH_KILL;
    if (number <= CRASH_SORTS)
        return (enum crash_sort)((number + w->round->seed) % CRASH_SORTS);
    while (draw >= weights[sort])
        draw -= weights[sort++];
    return (enum crash_sort)sort;
}

/* One life and its end. */
static bool life(struct crash_world *w, unsigned number)
{
    enum crash_sort sort = sort_draw(w, number);
    int64_t begun = server_clock_ms();
    uint64_t before = crash_world_acknowledged(w);
    bool files = sort == CRASH_SNAPSHOT || sort == CRASH_SEGMENT;
    w->small = files || test_below(&w->random, 4) == 0;
    if (!crash_control_before(w))
        return false;
    life_begin(w);
    /* A control needs something to lose. */
    while (w->round->control != CRASH_FAIR && !crash_world_accused(w) &&
           crash_world_acknowledged(w) < before + 2000 && server_clock_ms() < begun + 20000)
        server_pause_ms(2);
    bool fine = crash_kill(w, sort) && crash_control_after(w);
    /* No such file was made in time: then it was a kill like others. */
    w->round->count.kills[w->reached ? sort : CRASH_KILL]++;
    count_take(w);
    fprintf(w->notes, "%u: %s%s of a %s server of %u threads, %lld ms after its start, %llu acknowledged\n",
            number, crash_sort_names[sort], w->reached ? "" : " (not reached)", w->small ? "small" : "real",
            w->server.options.threads, (long long)(server_clock_ms() - begun),
            (unsigned long long)(w->round->count.acknowledged - before));
    fflush(w->notes);
    if (w->round->progress)
        w->round->progress(&w->round->count, w->round->arg);
    return fine && !crash_world_accused(w);
}

/* Everyone has come to an end: compare. */
static bool world_judge(struct crash_world *w)
{
    struct crash_ledger ledgers[CRASH_CLIENTS] = { { .file = NULL } };
    struct crash_check k = { .server = &w->server,
                             .ledgers = ledgers,
                             .program = w->round->program,
                             .hush = w->round->control == CRASH_HUSH,
                             .late = w->round->control == CRASH_LATE };
    bool fine = true;
    for (unsigned i = 0; i < CRASH_CLIENTS && fine; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/ledger-%u", w->server.dir, i);
        fine = crash_ledger_read(&ledgers[i], path, i, k.complaint, sizeof k.complaint);
    }
    fine = fine && crash_check_server(&k);
    fine = fine && crash_end(w, SIGTERM) && crash_check_journal(&k);
    w->round->count.holds = k.holds;
    w->round->count.entries = k.entries;
    w->round->count.judged = k.judged;
    w->round->count.timed = k.timed;
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        crash_ledger_free(&ledgers[i]);
    return fine || crash_world_complain(w, "%s", k.complaint);
}

/* Nothing is left running. The directory stays if something is wrong. */
static void world_end(struct crash_world *w, bool fine)
{
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        if (w->clients[i] > 0) {
            kill(w->clients[i], SIGKILL);
            waitpid(w->clients[i], NULL, 0);
        }
    if (w->server.pid > 0)
        server_kill(&w->server);
    if (w->notes)
        fclose(w->notes);
    if (w->watch >= 0)
        close(w->watch);
    munmap(w->board, sizeof *w->board);
    munmap(w->server.io, sizeof *w->server.io);
    if (fine || w->round->control != CRASH_FAIR) {
        test_dir_remove(w->server.dir);
        w->round->dir[0] = 0;
    } else {
        free(w->server.dir);
    }
}

bool crash_round_run(struct crash_round *round)
{
    struct crash_world w = { .round = round, .random = round->seed, .watch = -1 };
    round->complaint[0] = 0;
    round->count = (struct crash_count){ .lives = 0 };
    w.board = mmap(NULL, sizeof *w.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (w.board == MAP_FAILED)
        return crash_world_complain(&w, "there is no memory to share with the clients");
    bool fine = world_make(&w) && clients_start(&w);
    for (unsigned i = 0; i < round->kills && fine; i++)
        fine = life(&w, i + 1);
    if (fine) { /* the last life, for the clients to come to their end in */
        w.small = false;
        life_begin(&w);
        fine = crash_listening(&w) && clients_end(&w) && world_judge(&w);
    }
    complaints_take(&w);
    world_end(&w, fine);
    return fine;
}

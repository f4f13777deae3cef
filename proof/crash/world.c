#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "crash/world.h"

#include "crash/check.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/* ---- Lives ---- */

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
    s->port = crash_port_find();
    server_fix_port(s);
    snprintf(w->round->dir, sizeof w->round->dir, "%s", s->dir);
    snprintf(path, sizeof path, "%s/kills", s->dir);
    w->notes = fopen(path, "w");
    w->watch = inotify_init1(IN_CLOEXEC);
    if (!w->notes || w->watch < 0)
        return crash_world_complain(w, "the round cannot be prepared");
    w->small = true;
    life_begin(w);
    if (!crash_listening(w))
        return false;
    if (!crash_furnish(s)) /* in this life, which nobody disturbs */
        return crash_world_complain(w, "the store could not be furnished");
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
    uint64_t before = crash_crowd_acknowledged(&w->crowd);
    bool files = sort == CRASH_SNAPSHOT || sort == CRASH_SEGMENT;
    w->small = files || test_below(&w->random, 4) == 0;
    if (!crash_control_before(w))
        return false;
    life_begin(w);
    /* A control needs something to lose. */
    while (w->round->control != CRASH_FAIR && !crash_crowd_accused(&w->crowd) &&
           crash_crowd_acknowledged(&w->crowd) < before + 2000 &&
           server_clock_ms() < begun + SERVER_PATIENCE_MS)
        server_pause_ms(2);
    bool fine = crash_kill(w, sort) && crash_control_after(w);
    /* No such file was made in time: then it was a kill like others. */
    w->round->count.kills[w->reached ? sort : CRASH_KILL]++;
    crash_crowd_sum(&w->crowd, &w->round->count.sum);
    fprintf(w->notes,
            "%u: %s%s of a %s server of %u threads, %lld ms after its start, %llu acknowledged\n",
            number, crash_sort_names[sort], w->reached ? "" : " (not reached)",
            w->small ? "small" : "real", w->server.options.threads,
            (long long)(server_clock_ms() - begun),
            (unsigned long long)(w->round->count.sum.acknowledged - before));
    fflush(w->notes);
    if (w->round->progress)
        w->round->progress(&w->round->count, w->round->arg);
    return fine && !crash_crowd_accused(&w->crowd);
}

/* Everyone has come to an end: compare. */
static bool world_judge(struct crash_world *w)
{
    struct crash_ledger ledgers[CRASH_CLIENTS];
    struct crash_check k = { .server = &w->server,
                             .ledgers = ledgers,
                             .clients = CRASH_CLIENTS,
                             .program = w->round->program,
                             .hush = w->round->control == CRASH_HUSH,
                             .late = w->round->control == CRASH_LATE };
    bool fine = crash_crowd_read(&w->crowd, ledgers) && crash_check_server(&k) &&
                crash_end(w, SIGTERM) && crash_check_journal(&k);
    crash_check_sum(&k, &w->round->count.sum);
    for (unsigned i = 0; i < CRASH_CLIENTS; i++)
        crash_ledger_free(&ledgers[i]);
    return fine || crash_world_complain(w, "%s", k.complaint[0] ? k.complaint : w->crowd.complaint);
}

/* Nothing is left running. The directory stays if something is wrong. */
static void world_end(struct crash_world *w, bool fine)
{
    crash_crowd_free(&w->crowd);
    if (w->server.pid > 0)
        server_kill(&w->server);
    if (w->notes)
        fclose(w->notes);
    if (w->watch >= 0)
        close(w->watch);
    munmap(w->server.io, sizeof *w->server.io);
    if (fine || w->round->control != CRASH_FAIR) {
        test_dir_remove(w->server.dir);
        w->round->dir[0] = 0;
    } else {
        free(w->server.dir);
    }
}

static bool clients_start(struct crash_world *w)
{
    w->crowd = (struct crash_crowd){ .count = CRASH_CLIENTS,
                                     .servers = 1,
                                     .to = { w->server },
                                     .dir = w->server.dir,
                                     .seed = w->round->seed,
                                     .pause_us = w->round->pause_us,
                                     .ghosts = w->round->control == CRASH_GHOSTS };
    return crash_crowd_start(&w->crowd);
}

static bool clients_end(struct crash_world *w)
{
    bool fine = crash_crowd_end(&w->crowd);
    crash_crowd_sum(&w->crowd, &w->round->count.sum);
    return fine;
}

bool crash_round_run(struct crash_round *round)
{
    struct crash_world w = { .round = round, .random = round->seed, .watch = -1 };
    round->complaint[0] = 0;
    round->count = (struct crash_count){ .lives = 0 };
    bool fine = world_make(&w) && clients_start(&w);
    for (unsigned i = 0; i < round->kills && fine; i++)
        fine = life(&w, i + 1);
    if (fine) { /* the last life, for the clients to come to their end in */
        w.small = false;
        life_begin(&w);
        fine = crash_listening(&w) && clients_end(&w) && world_judge(&w);
    }
    if (crash_crowd_accused(&w.crowd))
        crash_world_complain(&w, "%s", w.crowd.complaint);
    world_end(&w, fine);
    return fine;
}

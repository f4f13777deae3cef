#include "simulate/world.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A day in 2026, for all runs. */
#define EPOCH_US INT64_C(1790000000000000)
#define CALL_NS 20000

/* ---- Time ---- */

enum { SLACK_US = 1000000, REGAIN = 1000 };
/* A minute, less what the store cannot tell: it reads its clocks in whole milliseconds. */
#define WATCH_NS UINT64_C(59999000000)

static int64_t sure_us(const struct sim_world *w)
{
    int64_t regained = (int64_t)((w->steady_ns - w->sure.begun_ns) / 1000 / REGAIN);
    return w->sure.us + (int64_t)((w->steady_ns - w->sure.ns) / 1000) + regained + SLACK_US;
}

static void sure_begin(struct sim_world *w, int64_t us)
{
    w->sure.us = us;
    w->sure.ns = w->sure.begun_ns = w->steady_ns;
    w->sure.ahead = false;
}

static hf_time paced_ms(const struct sim_world *w)
{
    return w->paced.now + (hf_time)((w->steady_ns - w->paced.ns) / 1000000);
}

/* Where the wall clock is behind, engine time may wait for it. */
static void paced_wait(struct sim_world *w)
{
    if (w->wall_us / 1000 < paced_ms(w))
        w->paced.ns = w->steady_ns;
}

/* The clocks have moved. A wall clock that has been ahead for long enough is believed. */
static void clocks_moved(struct sim_world *w)
{
    bool ahead = w->wall_us > sure_us(w);
    paced_wait(w);
    if (ahead && !w->sure.ahead)
        w->sure.ahead_ns = w->steady_ns;
    w->sure.ahead = ahead;
    if (ahead && w->steady_ns - w->sure.ahead_ns >= WATCH_NS)
        sure_begin(w, w->wall_us);
}

void sim_pass_us(struct sim_world *w, uint64_t us)
{
    w->steady_ns += us * 1000;
    if (!w->stalled)
        w->wall_us += (int64_t)us;
    clocks_moved(w);
}

void sim_clock_sleep(struct sim_world *w, int64_t ms)
{
    sim_pass_us(w, (uint64_t)ms * 1000);
}

void sim_clock_jump(struct sim_world *w, int64_t ms)
{
    w->wall_us += ms * 1000;
    if (w->wall_us < 0)
        w->wall_us = 0;
    if (ms * 1000 > SLACK_US) /* it is watched anew */
        w->sure.ahead_ns = w->steady_ns;
    clocks_moved(w);
}

void sim_clock_first(struct sim_world *w)
{
    sure_begin(w, w->wall_us > w->latest * 1000 ? w->wall_us : w->latest * 1000);
    w->paced.now = 0;
}

hf_time sim_clock_least(struct sim_world *w)
{
    enum { WHOLE = 2 }; /* both clocks are read in whole milliseconds */
    if (w->paced.now == 0)
        return 0;
    paced_wait(w);
    return paced_ms(w) - WHOLE;
}

void sim_clock_read(struct sim_world *w, hf_time now)
{
    if (w->paced.now != 0 && now <= paced_ms(w))
        return;
    w->paced.now = now;
    w->paced.ns = w->steady_ns;
}

hf_time sim_clock_latest(struct sim_world *w)
{
    hf_time sure = sure_us(w) / 1000;
    if (sure > w->wall_latest)
        sure = w->wall_latest;
    if (sure > w->latest)
        w->latest = sure;
    return w->latest;
}

void sim_clock_catch_up(struct sim_world *w)
{
    if (w->told > w->lasting && w->wall_us < w->told * 1000)
        w->wall_us = w->told * 1000;
}

/* ---- Faults ---- */

static void note(struct sim_world *w, const char *what, enum sim_call call, const char *name)
{
    static const char *const calls[SIM_CALLS] = { "dir_open", "dir_sync", "dir_list", "rename",
                                                  "remove",   "lock",     "open",     "size",
                                                  "read",     "write",    "sync",     "truncate",
                                                  "map" };
    snprintf(w->fault, sizeof w->fault, "%s at call %llu to the disk, %s %s%s", what,
             (unsigned long long)w->calls, calls[call], name ? name : "",
             w->starting ? ", in a start" : "");
}

static int fault_of(struct sim_world *w, enum sim_call call, const char *name)
{
    int error = 0;
    for (size_t i = 0; i < SIM_FAULTS_MAX; i++) {
        struct sim_fault *f = &w->faults[i];
        if (f->left == 0 || f->call != call || --f->left > 0 || error)
            continue;
        error = f->error;
        note(w, "a failure", call, name);
        w->faults_happened++;
        w->troubled = true;
        w->troubled_ns = w->steady_ns;
        w->stale |= call == SIM_READ && name && strcmp(name, "holds.idx") == 0;
        w->unread |= call == SIM_READ || call == SIM_OPEN || call == SIM_SIZE;
    }
    return error;
}

/* A copy that rotted is being opened: one call to open or read a file may fail as well. */
static int unread_of(struct sim_world *w, enum sim_call call, const char *name)
{
    bool reads = call == SIM_OPEN || call == SIM_READ || call == SIM_SIZE || call == SIM_MAP;
    if (!reads || w->unread_in == 0 || --w->unread_in > 0)
        return 0;
    size_t said = strlen(w->fault);
    snprintf(w->fault + said, sizeof w->fault - said, ", and %s fails", name ? name : "a file");
    return call == SIM_OPEN ? -EMFILE : -EIO;
}

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct sim_world *w = arg;
    w->calls++;
    w->steady_ns += w->frozen ? 0 : CALL_NS;
    sim_trace_number(&w->trace, (uint64_t)call << 56 ^ at << 20 ^ size);
    if (name)
        sim_trace_bytes(&w->trace, hf_str(name));
    if (w->quiet)
        return unread_of(w, call, name);
    if (w->slow_us)
        sim_pass_us(w, w->slow_us);
    if (w->cut_at && w->calls >= w->cut_at) {
        w->cut_at = 0;
        note(w, "a power cut", call, name);
        return SIM_POWER_CUT;
    }
    return fault_of(w, call, name);
}

/* A read of mapped bytes meets the same faults as any other. */
static int touch(void *arg, const char *name, uint64_t at, size_t size)
{
    struct sim_world *w = arg;
    (void)at;
    (void)size;
    return w->quiet ? unread_of(w, SIM_READ, name) : fault_of(w, SIM_READ, name);
}

static uint32_t choose(void *arg, uint32_t n)
{
    struct sim_world *w = arg;
    return (uint32_t)sim_chance_below(&w->chance, n);
}

static hf_time wall_ms(void *arg)
{
    struct sim_world *w = arg;
    hf_time now = w->wall_us / 1000;
    if (now > w->wall_latest)
        w->wall_latest = now;
    return now;
}

static uint64_t monotonic_ns(void *arg)
{
    return ((struct sim_world *)arg)->steady_ns;
}

static hf_time boot_ms(void *arg)
{
    return (hf_time)(((struct sim_world *)arg)->steady_ns / 1000000);
}

static int entropy(void *arg, void *data, size_t size)
{
    struct sim_world *w = arg;
    sim_chance_bytes(&w->entropy, data, size);
    return 0;
}

void sim_fault_arm(struct sim_world *w, enum sim_call call, uint64_t count, uint64_t draw)
{
    static const int errors[SIM_CALLS][2] = {
        [SIM_DIR_OPEN] = { -EACCES, -EMFILE }, [SIM_DIR_SYNC] = { -EIO, -EIO },
        [SIM_DIR_LIST] = { -EIO, -ENOMEM },    [SIM_RENAME] = { -EIO, -ENOSPC },
        [SIM_REMOVE] = { -EIO, -EACCES },      [SIM_LOCK] = { -EIO, -ENOLCK },
        [SIM_OPEN] = { -EMFILE, -EIO },        [SIM_SIZE] = { -EIO, -EIO },
        [SIM_READ] = { -EIO, -EIO },           [SIM_WRITE] = { -EIO, -ENOSPC },
        [SIM_SYNC] = { -EIO, -ENOSPC },        [SIM_TRUNCATE] = { -EIO, -EIO },
        [SIM_MAP] = { -ENOMEM, -ENOMEM },
    };
    for (size_t i = 0; i < SIM_FAULTS_MAX; i++) {
        if (w->faults[i].left > 0)
            continue;
        w->faults[i] = (struct sim_fault){ call, count, errors[call][draw & 1] };
        return;
    }
}

void sim_faults_stop(struct sim_world *w)
{
    memset(w->faults, 0, sizeof w->faults);
    w->cut_at = w->cuts_left = 0;
    w->slow_us = 0;
    w->stalled = false;
    if (w->limited)
        sim_disk_room(w->disk, UINT64_MAX);
    w->limited = false;
}

unsigned sim_weather(const struct sim_world *w)
{
    unsigned weather = JUDGE_FAIR;
    if (w->limited || w->troubled)
        weather |= JUDGE_NO_ROOM;
    if (w->stale)
        weather |= JUDGE_NO_INDEX;
    if (w->options.memory_max_bytes)
        weather |= JUDGE_AT_LIMIT;
    return weather;
}

void sim_trouble_over(struct sim_world *w)
{
    enum {
        PATIENCE_NS = 1100000000,
        PATIENCE_CALLS = 64
    }; /* the store tries again after a second */
    /* On a slow disk, trying again takes its time too. */
    uint64_t patience = PATIENCE_NS + (uint64_t)w->slow_us * 1000 * PATIENCE_CALLS;
    if (w->troubled && !w->limited && w->steady_ns - w->troubled_ns > patience)
        w->troubled = false;
}

/* ---- Beginning and end ---- */

void sim_world_init(struct sim_world *w, const struct sim_mix *mix, uint32_t labels,
                    struct sim_outcome *out)
{
    memset(w, 0, offsetof(struct sim_world, lost));
    w->lost_count = w->doubted = 0;
    w->mix = mix;
    w->out = out;
    w->owner = (struct sim_disk_owner){ .arg = w,
                                        .before = before,
                                        .choose = choose,
                                        .wall_ms = wall_ms,
                                        .monotonic_ns = monotonic_ns,
                                        .random = entropy,
                                        .boot_ms = boot_ms,
                                        .touch = touch };
    w->disk = sim_disk_new(&w->owner);
    w->wall_us = EPOCH_US;
    sim_chance_init(&w->chance, mix->seed);
    sim_chance_init(&w->entropy, ~mix->seed);
    w->judge = judge_new();
    sim_known_init(&w->known, labels);
}

void sim_world_free(struct sim_world *w)
{
    for (size_t i = 0; i < w->ask_room; i++) {
        hf_result_clear(&w->asks[i]->result);
        free(w->asks[i]);
    }
    free(w->asks);
    hf_arena_free(&w->arena);
    sim_known_free(&w->known);
    judge_free(w->judge);
    free(w->kept);
    sim_pages_free(w);
    sim_disk_free(w->disk);
}

/* The store under load: one thread submits groups and waits for each. (Submitting the next group
 * during a commit was tried. On two cores, the hand-over to another thread costs as much as it
 * saves.) */
#include "cli/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Requests are created in advance, a pool at a time. The clock runs only while they are submitted,
 * because creating them is not the store's work. */
enum { POOL = 16384, GROUPS_MAX = 1024, TEXT = 48 };

struct hf_bench_load {
    struct hf_db *db;
    uint64_t next, resources;
    uint64_t random;
    struct hf_request requests[POOL];
    struct hf_result results[POOL];
    char keys[POOL][TEXT], names[POOL][TEXT], requesters[POOL][TEXT];
};

/* Request number n: the key looks like a UUID, which is what clients send. */
static void request_make(struct hf_bench_load *l, size_t at, uint64_t n)
{
    uint64_t mixed = n * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(l->keys[at], TEXT, "%08" PRIx64 "-%04x-7%03x-8%03x-%012" PRIx64, mixed >> 32,
             (unsigned)(mixed >> 16 & 0xffff), (unsigned)(mixed & 0xfff),
             (unsigned)(n >> 48 & 0xfff), n & 0xffffffffffff);
    snprintf(l->names[at], TEXT, "room-%07" PRIu64, mixed % l->resources);
    snprintf(l->requesters[at], TEXT, "guest-%07" PRIu64, n % 10000000);
    l->requests[at] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .key = hf_str(l->keys[at]),
                                           .place_hold = { .resource = hf_str(l->names[at]),
                                                           .requester = hf_str(l->requesters[at]),
                                                           .duration_ms = INT64_C(7) * 86400000 } };
}

static bool resources_make(struct hf_bench_load *l)
{
    enum { GROUP = 1024 };
    for (uint64_t from = 0; from < l->resources; from += GROUP) {
        size_t n = l->resources - from < GROUP ? (size_t)(l->resources - from) : GROUP;
        for (size_t i = 0; i < n; i++) {
            snprintf(l->names[i], TEXT, "room-%07" PRIu64, from + i);
            l->requests[i] = (struct hf_request){ .action = HF_SET_RESOURCE,
                                                  .set_resource = { .name = hf_str(l->names[i]),
                                                                    .capacity = 1000000000 } };
        }
        if (hf_do_many(l->db, l->requests, l->results, n) != HF_OK ||
            l->results[0].answer.status != HF_OK)
            return false;
    }
    return true;
}

enum hf_status hf_bench_load_open(const struct hf_bench_options *o, uint64_t snapshot_every,
                                  struct hf_bench_load **out, struct hf_error *why)
{
    struct hf_options options = { .snapshot_every_bytes = snapshot_every,
                                  .idempotency_window_ms = INT64_C(7) * 86400000 };
    struct hf_bench_load *l = calloc(1, sizeof *l);
    if (!l)
        return HF_NO_MEMORY;
    enum hf_status st = hf_open(o->dir, &options, &l->db, why);
    if (st != HF_OK) {
        free(l);
        return st;
    }
    struct hf_stats stats;
    hf_stats(l->db, &stats);
    l->next = stats.holds;
    l->resources = o->resources;
    l->random = 88172645463325252U;
    *out = l;
    if (stats.resources == 0 && !resources_make(l)) {
        hf_bench_load_close(l);
        return HF_STORAGE_FAILURE;
    }
    return HF_OK;
}

void hf_bench_load_close(struct hf_bench_load *l)
{
    hf_close(l->db);
    for (size_t i = 0; i < POOL; i++)
        hf_result_clear(&l->results[i]);
    free(l);
}

struct hf_db *hf_bench_load_db(struct hf_bench_load *l)
{
    return l->db;
}

static uint64_t random_next(struct hf_bench_load *l)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return l->random;
}

/* ---- Measuring ---- */

struct measuring {
    unsigned group;
    bool again; /* replays */
    double busy, cpu;
    uint64_t done;
    struct hf_bench_times times;
};

/* Submit the groups of the pool one by one, and note how long each took. */
static bool groups_run(struct hf_bench_load *l, struct measuring *m, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        size_t first = (size_t)i * m->group;
        double begun = hf_bench_clock();
        if (hf_do_many(l->db, l->requests + first, l->results + first, m->group) != HF_OK ||
            !hf_bench_times_add(&m->times, (hf_bench_clock() - begun) * 1e6))
            return false;
    }
    return true;
}

/* Create a pool of requests, submit it with the clock running, and check every answer. */
static bool pool_run(struct hf_bench_load *l, struct measuring *m, uint64_t at_most)
{
    unsigned count = POOL / m->group < GROUPS_MAX ? POOL / m->group : GROUPS_MAX;
    if (m->group < 16)
        count /= 16; /* one pool must take much less time than a point */
    if (at_most && at_most < (uint64_t)count * m->group)
        count = (unsigned)((at_most + m->group - 1) / m->group);
    size_t n = (size_t)count * m->group;
    for (size_t i = 0; i < n; i++)
        request_make(l, i, m->again ? random_next(l) % l->next : l->next + i);
    double begun = hf_bench_clock(), cpu = hf_bench_cpu();
    if (!groups_run(l, m, count))
        return false;
    m->busy += hf_bench_clock() - begun;
    m->cpu += hf_bench_cpu() - cpu;
    m->done += n;
    for (size_t i = 0; i < n; i++)
        if (l->results[i].answer.status != HF_OK || l->results[i].replayed != m->again)
            return false;
    if (!m->again)
        l->next += n;
    return true;
}

static bool run(struct hf_bench_load *l, struct measuring *m, double seconds, uint64_t count,
                struct hf_bench_point *out)
{
    struct hf_stats before, after;
    hf_stats(l->db, &before);
    while ((count == 0 || m->done < count) && m->busy < seconds)
        if (!pool_run(l, m, count ? count - m->done : 0))
            return false;
    hf_stats(l->db, &after);
    *out = (struct hf_bench_point){ .group = m->group,
                                    .per_second = (double)m->done / m->busy,
                                    .cpu_us = m->cpu * 1e6 / (double)m->done };
    if (after.batches > before.batches)
        out->group_bytes = (double)(after.journal_bytes - before.journal_bytes) /
                           (double)(after.batches - before.batches);
    hf_bench_times_end(&m->times, out);
    return true;
}

bool hf_bench_place(struct hf_bench_load *l, unsigned group, double seconds, uint64_t count,
                    struct hf_bench_point *out)
{
    struct measuring m = { .group = group };
    return run(l, &m, seconds, count, out);
}

bool hf_bench_replay(struct hf_bench_load *l, unsigned group, double seconds,
                     struct hf_bench_point *out)
{
    struct measuring m = { .group = group, .again = true };
    return run(l, &m, seconds, 0, out);
}

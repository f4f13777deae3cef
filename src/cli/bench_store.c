/* The store under load: one thread that submits groups and waits for each. */
#include "cli/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MAX = 1024, TEXT = 48 };

struct hf_bench_load {
    struct hf_db *db;
    uint64_t next, resources;
    uint64_t random;
    struct hf_request requests[GROUP_MAX];
    struct hf_result results[GROUP_MAX];
    char keys[GROUP_MAX][TEXT], names[GROUP_MAX][TEXT], requesters[GROUP_MAX][TEXT];
};

/* Request number n: the key looks like a UUID, which is what clients send. */
static void request_make(struct hf_bench_load *l, size_t at, uint64_t n)
{
    uint64_t mixed = n * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(l->keys[at], TEXT, "%08" PRIx64 "-%04x-7%03x-8%03x-%012" PRIx64, mixed >> 32,
             (unsigned)(mixed >> 16 & 0xffff), (unsigned)(mixed & 0xfff), (unsigned)(n >> 48 & 0xfff),
             n & 0xffffffffffff);
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
    for (uint64_t from = 0; from < l->resources; from += GROUP_MAX) {
        size_t n = l->resources - from < GROUP_MAX ? (size_t)(l->resources - from) : GROUP_MAX;
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
    for (size_t i = 0; i < GROUP_MAX; i++)
        hf_result_clear(&l->results[i]);
    hf_close(l->db);
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

/* Submit one group and check every answer. */
static bool group_run(struct hf_bench_load *l, unsigned group, bool again, double *us)
{
    for (unsigned i = 0; i < group; i++)
        request_make(l, i, again ? random_next(l) % l->next : l->next + i);
    double begun = hf_bench_clock();
    if (hf_do_many(l->db, l->requests, l->results, group) != HF_OK)
        return false;
    *us = (hf_bench_clock() - begun) * 1e6;
    for (unsigned i = 0; i < group; i++)
        if (l->results[i].answer.status != HF_OK || l->results[i].replayed != again)
            return false;
    if (!again)
        l->next += group;
    return true;
}

static bool run(struct hf_bench_load *l, unsigned group, double seconds, uint64_t count, bool again,
                struct hf_bench_point *out)
{
    struct hf_bench_times times = { 0 };
    struct hf_stats before, after;
    uint64_t done = 0;
    double us, busy = 0;
    hf_stats(l->db, &before);
    double begun = hf_bench_clock(), cpu = hf_bench_cpu();
    while ((count == 0 || done < count) && hf_bench_clock() - begun < seconds) {
        if (!group_run(l, group, again, &us) || !hf_bench_times_add(&times, us))
            return false;
        busy += us / 1e6;
        done += group;
    }
    double took = hf_bench_clock() - begun;
    hf_stats(l->db, &after);
    /* Making the requests' texts is the load's work, not the store's: it counts in neither rate. */
    double making = took - busy;
    *out = (struct hf_bench_point){ .group = group,
                                    .per_second = (double)done / busy,
                                    .cpu_us = (hf_bench_cpu() - cpu - making) * 1e6 / (double)done };
    if (after.batches > before.batches)
        out->group_bytes = (double)(after.journal_bytes - before.journal_bytes) /
                           (double)(after.batches - before.batches);
    out->sync_share = (double)(after.sync_ns_total - before.sync_ns_total) / 1e9 / busy;
    hf_bench_times_end(&times, out);
    return true;
}

bool hf_bench_place(struct hf_bench_load *l, unsigned group, double seconds, uint64_t count,
                    struct hf_bench_point *out)
{
    return run(l, group, seconds, count, false, out);
}

bool hf_bench_replay(struct hf_bench_load *l, unsigned group, double seconds, struct hf_bench_point *out)
{
    return run(l, group, seconds, 0, true, out);
}

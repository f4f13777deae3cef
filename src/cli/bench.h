/* bench.h: measures the store on this machine beside the bare log, in one run.
 *
 *   bench.c         the measurements in their order     bench_log.c     the bare log
 *   bench_store.c   the store under load                bench_report.c  table, JSON, SVG
 *
 * "The bare log" appends and syncs the same bytes, to files prepared the same way, and does nothing
 * else: no store that syncs each group can be faster. The ratio of both shows what deciding
 * costs. */
#ifndef HF_CLI_BENCH_H
#define HF_CLI_BENCH_H

#include "holdfast.h"

#include <stdio.h>

struct hf_bench_options {
    uint64_t tokens;    /* live keys at the start */
    uint64_t resources; /* the holds are spread over so many */
    double seconds;     /* for each point and round */
    unsigned rounds;
    const char *dir; /* the working folder, removed afterwards */
    const char *out; /* folder for bench.txt, bench.json and bench.svg; NULL: none */
    bool json;       /* JSON instead of the table on stdout */
};

/* One measurement: groups of G operations, one at a time. */
struct hf_bench_point {
    unsigned group;
    double per_second;
    double cpu_us;                          /* of the whole process, for one operation */
    double p50_us, p99_us, p999_us, max_us; /* of a group */
    double group_bytes;                     /* written to the disk */
};

#define HF_BENCH_GROUPS 5
extern const unsigned hf_bench_groups[HF_BENCH_GROUPS];
#define HF_BENCH_ROUNDS_MAX 15

struct hf_bench_report {
    struct hf_bench_options options;
    struct hf_bench_point store[HF_BENCH_GROUPS], log[HF_BENCH_GROUPS]; /* medians by throughput */
    double ratio[HF_BENCH_GROUPS]; /* store to log: median of the rounds' ratios */
    struct hf_bench_point replay;
    double preload_seconds, preload_per_second;
    struct hf_bench_point pause; /* G = 64 while snapshots are written and segments prepared */
    uint64_t pause_snapshots, pause_segments;
    double recovery_seconds;
    uint64_t recovery_tokens, recovery_replayed;
    double memory_token_bytes, memory_all_bytes, rss_bytes; /* for each live key */
    double disk_token_bytes;                                /* at G = 64 */
};

/* ---- bench_store.c ---- */

struct hf_bench_load; /* the store under load, and the keys used so far */

enum hf_status hf_bench_load_open(const struct hf_bench_options *o, uint64_t snapshot_every,
                                  struct hf_bench_load **out, struct hf_error *why);
void hf_bench_load_close(struct hf_bench_load *l);
struct hf_db *hf_bench_load_db(struct hf_bench_load *l);
/* Place holds in groups for `seconds`, or until `count` holds are placed (0: no such limit). */
bool hf_bench_place(struct hf_bench_load *l, unsigned group, double seconds, uint64_t count,
                    struct hf_bench_point *out);
/* Retry answered requests, chosen at random. */
bool hf_bench_replay(struct hf_bench_load *l, unsigned group, double seconds,
                     struct hf_bench_point *out);

/* ---- bench_log.c ---- */

struct hf_bench_log;
struct hf_bench_log *hf_bench_log_open(const char *dir);
void hf_bench_log_close(struct hf_bench_log *log);
/* Append and sync `bytes` at a time. Each append counts as one group. */
bool hf_bench_log_run(struct hf_bench_log *log, unsigned group, double bytes, double seconds,
                      struct hf_bench_point *out);

/* ---- bench_report.c ---- */

void hf_bench_print_text(const struct hf_bench_report *r, FILE *to);
void hf_bench_print_json(const struct hf_bench_report *r, FILE *to);
void hf_bench_print_svg(const struct hf_bench_report *r, FILE *to);

/* ---- Shared: clocks and latencies (bench_time.c) ---- */

double hf_bench_clock(void); /* seconds */
double hf_bench_cpu(void);   /* seconds of the process */

struct hf_bench_times {
    float *us; /* owned */
    size_t count, room;
};
bool hf_bench_times_add(struct hf_bench_times *t, double us);
/* Fill in the percentiles; sorts. Frees the times. */
void hf_bench_times_end(struct hf_bench_times *t, struct hf_bench_point *out);

#endif

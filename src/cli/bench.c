#include "cli/bench.h"

#include "base/text.h"
#include "cli/commands.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const unsigned hf_bench_groups[HF_BENCH_GROUPS] = { 1, 16, 64, 256, 1024 };

enum { PAUSE_GROUP = 64 };
#define PAUSE_SNAPSHOT_EVERY (UINT64_C(32) << 20)

/* ---- Options ---- */

static bool value_of(struct hf_cli *cli, int *at, const char *name, const char **value)
{
    const char *arg = cli->args[*at];
    size_t n = strlen(name);
    if (strncmp(arg, name, n) != 0 || (arg[n] != '=' && arg[n] != '\0'))
        return false;
    if (arg[n] == '=')
        *value = arg + n + 1;
    else if (*at + 1 < cli->arg_count)
        *value = cli->args[++*at];
    else
        *value = "";
    return true;
}

static bool number_of(struct hf_cli *cli, const char *name, const char *text, uint64_t lowest,
                      uint64_t highest, uint64_t *out)
{
    if (hf_number_parse(hf_str(text), out) && *out >= lowest && *out <= highest)
        return true;
    hf_cli_error(cli, "%s takes a whole number from %llu to %llu, not \"%s\"", name,
                 (unsigned long long)lowest, (unsigned long long)highest, text);
    return false;
}

static bool options_parse(struct hf_cli *cli, struct hf_bench_options *o)
{
    for (int i = 0; i < cli->arg_count; i++) {
        const char *value;
        uint64_t n;
        int64_t ms;
        if (strcmp(cli->args[i], "--json") == 0) {
            o->json = true;
        } else if (value_of(cli, &i, "--tokens", &value)) {
            if (!number_of(cli, "--tokens", value, 1000, 100000000, &o->tokens))
                return false;
        } else if (value_of(cli, &i, "--resources", &value)) {
            if (!number_of(cli, "--resources", value, 1, 9999999, &o->resources))
                return false;
        } else if (value_of(cli, &i, "--rounds", &value)) {
            if (!number_of(cli, "--rounds", value, 1, HF_BENCH_ROUNDS_MAX, &n))
                return false;
            o->rounds = (unsigned)n;
        } else if (value_of(cli, &i, "--time", &value)) {
            if (!hf_duration_parse(hf_str(value), &ms) || ms < 50) {
                hf_cli_error(cli, "--time takes a duration of at least 50ms, not \"%s\"", value);
                return false;
            }
            o->seconds = (double)ms / 1000;
        } else if (value_of(cli, &i, "--dir", &value)) {
            o->dir = value;
        } else if (value_of(cli, &i, "--out", &value)) {
            o->out = value;
        } else if (value_of(cli, &i, "--server", &value)) {
            hf_cli_error(
                cli, "bench measures the store on this machine, not a server. Leave out --server; "
                     "bench/compare, in the source, compares servers");
            return false;
        } else {
            hf_cli_error(cli, "bench: unknown option \"%s\"; see: holdfast help bench",
                         cli->args[i]);
            return false;
        }
    }
    return true;
}

/* ---- The folder ---- */

static bool folder_make(struct hf_cli *cli, const char *dir)
{
    if (mkdir(dir, 0700) == 0)
        return true;
    hf_cli_error(cli,
                 errno == EEXIST
                     ? "%s already exists. bench creates its folder itself and removes it "
                       "afterwards. Give another name with --dir"
                     : "cannot create %s",
                 dir);
    return false;
}

/* Remove the files that bench and the store created. A folder inside would stay, and `dir` with
 * it. */
static void folder_remove(const char *dir)
{
    char path[8192];
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

static double rss_bytes(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* ---- Measurements ---- */

static bool preload(struct hf_cli *cli, struct hf_bench_load *l, struct hf_bench_report *r)
{
    enum { GROUP = 1024, SHOW = 64 * GROUP };
    struct hf_stats stats;
    struct hf_bench_point point;
    double begun = hf_bench_clock();
    hf_stats(hf_bench_load_db(l), &stats);
    uint64_t had = stats.holds;
    for (uint64_t done = had; done < r->options.tokens; done += SHOW) {
        uint64_t left = r->options.tokens - done;
        if (!hf_bench_place(l, GROUP, 1e9, left < SHOW ? left : SHOW, &point))
            return false;
        hf_cli_progress(cli, "loading keys", done, r->options.tokens);
    }
    hf_cli_progress_end(cli);
    r->preload_seconds = hf_bench_clock() - begun;
    r->preload_per_second = (double)(r->options.tokens - had) / r->preload_seconds;
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int by_rate(const void *a, const void *b)
{
    return by_value(&((const struct hf_bench_point *)a)->per_second,
                    &((const struct hf_bench_point *)b)->per_second);
}

/* Store and log take turns, so that other work on the machine slows down both. */
static bool groups_run(struct hf_cli *cli, struct hf_bench_load *l, struct hf_bench_log *log,
                       struct hf_bench_report *r)
{
    struct hf_bench_point store[HF_BENCH_ROUNDS_MAX] = { 0 }, bare[HF_BENCH_ROUNDS_MAX] = { 0 };
    double ratio[HF_BENCH_ROUNDS_MAX] = { 0 };
    unsigned rounds = r->options.rounds;
    for (size_t g = 0; g < HF_BENCH_GROUPS; g++) {
        for (unsigned i = 0; i < rounds; i++) {
            if (!hf_bench_place(l, hf_bench_groups[g], r->options.seconds, 0, &store[i]) ||
                !hf_bench_log_run(log, hf_bench_groups[g], store[i].group_bytes, r->options.seconds,
                                  &bare[i]))
                return false;
            ratio[i] = store[i].per_second / bare[i].per_second;
            hf_cli_progress(cli, "measuring", g * rounds + i + 1, HF_BENCH_GROUPS * rounds);
        }
        qsort(store, rounds, sizeof *store, by_rate);
        qsort(bare, rounds, sizeof *bare, by_rate);
        qsort(ratio, rounds, sizeof *ratio, by_value);
        r->store[g] = store[rounds / 2];
        r->log[g] = bare[rounds / 2];
        r->ratio[g] = ratio[rounds / 2];
        if (hf_bench_groups[g] == 64)
            r->disk_token_bytes = r->store[g].group_bytes / 64;
    }
    hf_cli_progress_end(cli);
    return true;
}

static bool replays_run(struct hf_bench_load *l, struct hf_bench_report *r)
{
    struct hf_bench_point point[HF_BENCH_ROUNDS_MAX] = { 0 };
    for (unsigned i = 0; i < r->options.rounds; i++)
        if (!hf_bench_replay(l, 64, r->options.seconds, &point[i]))
            return false;
    qsort(point, r->options.rounds, sizeof *point, by_rate);
    r->replay = point[r->options.rounds / 2];
    return true;
}

static void sizes_take(struct hf_bench_load *l, struct hf_bench_report *r)
{
    struct hf_stats stats;
    hf_stats(hf_bench_load_db(l), &stats);
    r->memory_token_bytes = (double)stats.memory_token_bytes / (double)stats.tokens;
    r->memory_all_bytes = (double)stats.memory_bytes / (double)stats.tokens;
    r->rss_bytes = rss_bytes() / (double)stats.tokens;
}

static void recovery_take(struct hf_bench_load *l, struct hf_bench_report *r)
{
    struct hf_stats stats;
    hf_stats(hf_bench_load_db(l), &stats);
    r->recovery_seconds = (double)stats.recovery_ns / 1e9;
    r->recovery_tokens = stats.tokens;
    r->recovery_replayed = stats.recovery_replayed;
}

/* Measure the longest wait while snapshots are written and segments are prepared all the time. */
static bool pauses_run(struct hf_bench_report *r, struct hf_error *why)
{
    struct hf_bench_load *l;
    struct hf_stats before, after;
    if (hf_bench_load_open(&r->options, PAUSE_SNAPSHOT_EVERY, &l, why) != HF_OK)
        return false;
    hf_stats(hf_bench_load_db(l), &before);
    bool good =
        hf_bench_place(l, PAUSE_GROUP, r->options.seconds * r->options.rounds * 3, 0, &r->pause);
    hf_stats(hf_bench_load_db(l), &after);
    r->pause_snapshots = after.snapshots;
    r->pause_segments = (after.journal_bytes - before.journal_bytes) >> 26;
    hf_bench_load_close(l);
    return good;
}

static bool all_run(struct hf_cli *cli, struct hf_bench_report *r, struct hf_error *why)
{
    struct hf_bench_load *l;
    struct hf_bench_log *log = hf_bench_log_open(r->options.dir);
    if (!log)
        return false;
    bool good = hf_bench_load_open(&r->options, 0, &l, why) == HF_OK;
    if (good) {
        good = preload(cli, l, r) && replays_run(l, r);
        sizes_take(l, r);
        hf_bench_load_close(l);
    }
    good = good && hf_bench_load_open(&r->options, 0, &l, why) == HF_OK;
    if (good) {
        recovery_take(l, r);
        good = groups_run(cli, l, log, r);
        hf_bench_load_close(l);
    }
    hf_bench_log_close(log);
    return good && pauses_run(r, why);
}

static bool files_write(struct hf_cli *cli, const struct hf_bench_report *r)
{
    static const struct {
        const char *name;
        void (*print)(const struct hf_bench_report *, FILE *);
    } files[] = { { "bench.txt", hf_bench_print_text },
                  { "bench.json", hf_bench_print_json },
                  { "bench.svg", hf_bench_print_svg } };
    char path[8192];
    if (mkdir(r->options.out, 0777) != 0 && errno != EEXIST) {
        hf_cli_error(cli, "cannot create %s: %s", r->options.out, strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", r->options.out, files[i].name);
        FILE *f = fopen(path, "w");
        if (!f) {
            hf_cli_error(cli, "cannot write %s: %s", path, strerror(errno));
            return false;
        }
        files[i].print(r, f);
        if (fclose(f) != 0) {
            hf_cli_error(cli, "cannot write %s: %s", path, strerror(errno));
            return false;
        }
    }
    return true;
}

int hf_cmd_bench(struct hf_cli *cli)
{
    char dir[64];
    snprintf(dir, sizeof dir, "holdfast-bench-%ld", (long)getpid());
    struct hf_bench_report r = {
        .options = { .tokens = 1000000, .resources = 100000, .seconds = 1, .rounds = 3, .dir = dir }
    };
    struct hf_error why = { .status = HF_OK };
    if (!options_parse(cli, &r.options))
        return HF_EXIT_USAGE;
    if (!folder_make(cli, r.options.dir))
        return HF_EXIT_USAGE;
    bool good = all_run(cli, &r, &why);
    folder_remove(r.options.dir);
    if (!good) {
        hf_cli_error(cli, "the benchmark failed: %s",
                     why.text[0] ? why.text
                                 : "the store or the disk refused a write. Is the disk full?");
        return HF_EXIT_STORE;
    }
    if (r.options.json)
        hf_bench_print_json(&r, stdout);
    else
        hf_bench_print_text(&r, stdout);
    if (r.options.out && !files_write(cli, &r))
        return HF_EXIT_STORE;
    return HF_EXIT_DONE;
}

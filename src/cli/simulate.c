/* holdfast simulate: the real store, run through faults that are drawn from a seed, and judged. */
#include "base/bug.h"
#include "cli/commands.h"
#include "simulate/apart.h"
#include "simulate/minimize.h"
#include "simulate/record.h"
#include "simulate/script.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHOWN_MAX = 20, RECORD_EVERY_MS = 10000, MINIMIZE_MS = 120000, MINIMIZE_SECONDS = 20 };

struct failure {
    uint64_t seed;
    struct sim_outcome outcome;
};

struct simulation {
    struct hf_cli *cli;
    uint64_t seed, seeds, jobs;
    uint64_t operations;
    const char *record;  /* the file, or NULL */
    uint64_t *traces;    /* owned, by seed; NULL unless they are wanted */
    uint8_t *ended;      /* owned, by seed: 0 not yet, 1 well, 2 failed */
    uint64_t first_open; /* seeds before it have all ended, and are recorded */
    uint64_t done, failed;
    struct failure failures[SHOWN_MAX]; /* the first ones */
    size_t failure_count;
    uint64_t asked, crashes, opens, looks, audits;
    int64_t begun_ms, recorded_ms;
    bool record_failed;
};

/* ---- Options ---- */

#ifdef HF_BUGS
static bool bug_plant(struct hf_cli *cli, const char *name)
{
#define NAME(name, part, words) #name,
    static const char *const names[] = { HF_BUG_LIST(NAME) };
#undef NAME
    struct hf_buffer text = { 0 };
    if (hf_bug_plant(name))
        return true;
    hf_cli_add_quoted(&text, hf_str(name));
    hf_cli_error(cli, "--bug: %s is none of the planted bugs, which are:", hf_buffer_text(&text));
    hf_buffer_free(&text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hf_cli_note(cli, "  %s", names[i]);
    return false;
}
#else
static bool bug_plant(struct hf_cli *cli, const char *name)
{
    (void)name;
    hf_cli_error(cli, "--bug: this build has no planted bugs; configure with -DHF_BUGS=ON");
    return false;
}
#endif

static bool plant(struct hf_cli *cli)
{
    const char *name = cli->values[HF_OPT_BUG];
    return !name || bug_plant(cli, name);
}

/* Without --seed, a record says where to go on. */
static bool first_seed(struct simulation *s)
{
    struct sim_record record;
    struct hf_error why;
    if (!s->record)
        return true;
    if (!sim_record_read(s->record, &record, &why)) {
        hf_cli_error(s->cli, "--record: %s", why.text);
        return false;
    }
    if (!s->cli->values[HF_OPT_SEED])
        s->seed = sim_record_last(&record, (uint32_t)s->operations, SIM_VERSION) + 1;
    sim_record_free(&record);
    return true;
}

static bool options_take(struct simulation *s)
{
    struct hf_cli *cli = s->cli;
    s->seed = s->seeds = s->jobs = 1;
    s->operations = 2000;
    s->record = cli->values[HF_OPT_RECORD];
    return hf_cli_number(cli, HF_OPT_SEED, (struct hf_cli_range){ 1, UINT64_MAX >> 1 }, &s->seed) &&
           hf_cli_number(cli, HF_OPT_SEEDS, (struct hf_cli_range){ 1, 100000000 }, &s->seeds) &&
           hf_cli_number(cli, HF_OPT_OPS, (struct hf_cli_range){ 1, 100000 }, &s->operations) &&
           hf_cli_number(cli, HF_OPT_JOBS, (struct hf_cli_range){ 1, 256 }, &s->jobs) && plant(cli) &&
           first_seed(s);
}

/* ---- The record ---- */

/* Record what has ended without a gap since the last time. */
static void record(struct simulation *s)
{
    struct sim_record more = { 0 };
    struct hf_error why;
    uint64_t at = s->first_open;
    s->recorded_ms = hf_cli_clock_ms();
    while (at < s->seeds && s->ended[at])
        at++;
    for (uint64_t from = s->first_open; from < at;) {
        uint64_t to = from;
        while (to + 1 < at && s->ended[to + 1] == s->ended[from])
            to++;
        sim_record_add(&more, &(struct sim_range){ .from = s->seed + from,
                                                   .to = s->seed + to,
                                                   .operations = (uint32_t)s->operations,
                                                   .version = SIM_VERSION,
                                                   .failed = s->ended[from] == 2 });
        from = to + 1;
    }
    if (at > s->first_open && !sim_record_merge(s->record, &more, &why)) {
        hf_cli_error(s->cli, "--record: %s", why.text);
        s->record_failed = true;
    }
    s->first_open = at;
    sim_record_free(&more);
}

/* ---- Running ---- */

static bool ended(void *arg, uint64_t seed, const struct sim_outcome *outcome)
{
    struct simulation *s = arg;
    uint64_t index = seed - s->seed;
    s->ended[index] = outcome->failed ? 2 : 1;
    s->done++;
    s->asked += outcome->operations;
    s->crashes += outcome->crashes;
    s->opens += outcome->opens;
    s->looks += outcome->looks;
    s->audits += outcome->audits;
    if (s->traces)
        s->traces[index] = outcome->trace;
    if (outcome->failed) {
        s->failed++;
        if (s->failure_count < SHOWN_MAX)
            s->failures[s->failure_count++] = (struct failure){ seed, *outcome };
    }
    hf_cli_progress(s->cli, s->failed ? "simulating, with failures," : "simulating", s->done, s->seeds);
    if (s->record && hf_cli_clock_ms() - s->recorded_ms > RECORD_EVERY_MS)
        record(s);
    return !s->record_failed;
}

static int failure_compare(const void *a, const void *b)
{
    const struct failure *x = a, *y = b;
    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

static bool run(struct simulation *s)
{
    struct sim_campaign campaign = { .from = s->seed,
                                     .count = s->seeds,
                                     .operations = (uint32_t)s->operations,
                                     .jobs = (unsigned)s->jobs,
                                     .ended = ended,
                                     .arg = s };
    s->begun_ms = s->recorded_ms = hf_cli_clock_ms();
    bool good = sim_campaign_run(&campaign);
    hf_cli_progress_end(s->cli);
    if (!good)
        hf_cli_error(s->cli, "the system gives no processes for the simulation");
    if (s->record && !s->record_failed)
        record(s);
    qsort(s->failures, s->failure_count, sizeof *s->failures, failure_compare);
    return good && !s->record_failed;
}

/* ---- The shortest script ---- */

struct shortening {
    struct hf_cli *cli;
    const struct sim_mix *mix;
    struct sim_outcome outcome; /* of the last script that failed */
    int64_t until_ms;
    size_t steps;
};

static bool still_fails(void *arg, const struct sim_script *script)
{
    struct shortening *h = arg;
    struct sim_outcome outcome;
    if (!sim_run_apart(h->mix, script, MINIMIZE_SECONDS, &outcome) || !outcome.failed)
        return false;
    h->outcome = outcome;
    h->steps = script->count;
    return true;
}

static bool go_on(void *arg)
{
    struct shortening *h = arg;
    hf_cli_progress(h->cli, "making it shorter, steps left:", h->steps, 0);
    return hf_cli_clock_ms() < h->until_ms;
}

static void shorten(struct simulation *s, const struct failure *f)
{
    struct sim_mix mix;
    struct sim_script script;
    sim_mix_draw(&mix, f->seed, (uint32_t)s->operations);
    sim_script_draw(&mix, &script);
    struct shortening h = { .cli = s->cli,
                            .mix = &mix,
                            .outcome = f->outcome,
                            .until_ms = hf_cli_clock_ms() + MINIMIZE_MS,
                            .steps = script.count };
    size_t before = script.count;
    sim_minimize(&script, &(struct sim_minimize){ .fails = still_fails, .go_on = go_on, .arg = &h });
    hf_cli_progress_end(s->cli);
    printf("The shortest script found that fails, %zu of %zu steps:\n", script.count, before);
    for (size_t i = 0; i < script.count; i++)
        sim_step_print(&script.steps[i], stdout);
    printf("It fails at step %" PRIu32 ": %s\n", h.outcome.label, h.outcome.sentence);
    sim_script_free(&script);
}

/* ---- Telling ---- */

static void tell_failure(const struct simulation *s, const struct failure *f)
{
    printf("seed %" PRIu64 " failed: %s\n", f->seed, f->outcome.sentence);
    if (f->outcome.label)
        printf("  at step %" PRIu32, f->outcome.label);
    else
        fputs("  before the first step or after the last", stdout);
    printf("; the last fault before it: %s\n", f->outcome.fault);
    printf("  to see it again: holdfast simulate --seed %" PRIu64 " --ops %" PRIu64 " --minimize\n", f->seed,
           s->operations);
}

static void tell_text(struct simulation *s, double seconds)
{
    for (uint64_t i = 0; s->traces && i < s->seeds; i++)
        printf("seed %" PRIu64 " trace %016" PRIx64 "\n", s->seed + i, s->traces[i]);
    for (size_t i = 0; i < s->failure_count; i++)
        tell_failure(s, &s->failures[i]);
    if (s->failed > s->failure_count)
        printf("%" PRIu64 " more seeds failed\n", s->failed - s->failure_count);
    if (s->failure_count && s->cli->values[HF_OPT_MINIMIZE])
        shorten(s, &s->failures[0]);
    printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " operations, %" PRIu64 " crashes, %" PRIu64
           " starts, %" PRIu64 " looks, %" PRIu64 " audits: ",
           s->done, s->seed, s->asked, s->crashes, s->opens, s->looks, s->audits);
    if (s->failed)
        printf("%" PRIu64 " failed", s->failed);
    else
        fputs("none failed", stdout);
    printf(" (%.1f s, %.1f seeds a second and process)\n", seconds,
           (double)s->done / (seconds > 0 ? seconds : 1) / (double)s->jobs);
}

static void add_number(struct hf_json *j, const char *name, uint64_t n)
{
    hf_json_name_bytes(j, hf_str(name));
    hf_json_uint(j, n);
}

static void tell_json(struct simulation *s)
{
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    char trace[20];
    hf_json_object(&j);
    add_number(&j, "seed", s->seed);
    add_number(&j, "seeds", s->done);
    add_number(&j, "ops", s->operations);
    add_number(&j, "version", SIM_VERSION);
    add_number(&j, "operations", s->asked);
    add_number(&j, "crashes", s->crashes);
    add_number(&j, "starts", s->opens);
    add_number(&j, "looks", s->looks);
    add_number(&j, "audits", s->audits);
    add_number(&j, "failed", s->failed);
    hf_json_name(&j, "failures");
    hf_json_array(&j);
    for (size_t i = 0; i < s->failure_count; i++) {
        hf_json_object(&j);
        add_number(&j, "seed", s->failures[i].seed);
        add_number(&j, "step", s->failures[i].outcome.label);
        hf_json_name(&j, "sentence");
        hf_json_text(&j, s->failures[i].outcome.sentence);
        hf_json_name(&j, "fault");
        hf_json_text(&j, s->failures[i].outcome.fault);
        hf_json_object_end(&j);
    }
    hf_json_array_end(&j);
    if (s->traces) {
        hf_json_name(&j, "traces");
        hf_json_array(&j);
        for (uint64_t i = 0; i < s->seeds; i++) {
            snprintf(trace, sizeof trace, "%016" PRIx64, s->traces[i]);
            hf_json_text(&j, trace);
        }
        hf_json_array_end(&j);
    }
    hf_json_object_end(&j);
    hf_buffer_add_char(&out, '\n');
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&out);
}

int hf_cmd_simulate(struct hf_cli *cli)
{
    struct simulation s = { .cli = cli };
    if (!options_take(&s))
        return HF_EXIT_USAGE;
    if (cli->json && cli->values[HF_OPT_MINIMIZE]) {
        hf_cli_error(cli, "--minimize prints a script for people, so leave --json out");
        return HF_EXIT_USAGE;
    }
    s.ended = calloc(s.seeds, 1);
    if (cli->values[HF_OPT_TRACE_HASH])
        s.traces = calloc(s.seeds, sizeof *s.traces);
    if (!s.ended || (cli->values[HF_OPT_TRACE_HASH] && !s.traces)) {
        hf_cli_error(cli, "there is no memory for so many seeds; run them in parts");
        free(s.ended);
        free(s.traces);
        return HF_EXIT_STORE;
    }
    bool good = run(&s);
    if (cli->json)
        tell_json(&s);
    else
        tell_text(&s, (double)(hf_cli_clock_ms() - s.begun_ms) / 1000);
    free(s.ended);
    free(s.traces);
    return s.failed ? HF_EXIT_REFUSED : good ? HF_EXIT_DONE : HF_EXIT_STORE;
}

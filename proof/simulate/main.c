/* holdfast-simulate: the real store, run through faults that are drawn from a seed, and judged.
 * `holdfast simulate` runs this program; it checks the options by its own table first, so that
 * people get its words. */
#include "base/buffer.h"
#include "base/text.h"
#include "simulate/apart.h"
#include "simulate/minimize.h"
#include "simulate/record.h"
#include "simulate/script.h"
#include "json/writer.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The exit codes of holdfast. */
enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_STORE };
enum { PROGRESS_AFTER_MS = 500, PROGRESS_EVERY_MS = 100 };
enum { SHOWN_MAX = 20, RECORD_EVERY_MS = 10000, MINIMIZE_MS = 120000, MINIMIZE_SECONDS = 20 };

struct failure {
    uint64_t seed;
    struct sim_outcome outcome;
};

struct simulation {
    uint64_t seed, seeds, jobs, operations;
    const char *record; /* the file, or NULL */
    bool seed_given, json, minimize, trace_hash;
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

/* ---- Words ---- */

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("holdfast: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t progress_begun_ms, progress_shown_ms;

/* One line that moves, for a person who waits. */
static void progress(const char *what, uint64_t number, const char *unit)
{
    int64_t now = clock_ms();
    if (progress_begun_ms == 0)
        progress_begun_ms = now;
    if (now - progress_begun_ms < PROGRESS_AFTER_MS ||
        now - progress_shown_ms < PROGRESS_EVERY_MS || !isatty(STDERR_FILENO))
        return;
    progress_shown_ms = now;
    fprintf(stderr, "\r%s %" PRIu64 "%s\033[K", what, number, unit);
    fflush(stderr);
}

static void progress_end(void)
{
    if (progress_shown_ms > 0)
        fputs("\r\033[K", stderr);
    progress_begun_ms = progress_shown_ms = 0;
}

/* ---- Options ---- */

/* Without --seed, a record says where to go on. */
static bool first_seed(struct simulation *s)
{
    struct sim_record record;
    struct hf_error why;
    if (!s->record)
        return true;
    if (!sim_record_read(s->record, &record, &why)) {
        complain("--record: %s", why.text);
        return false;
    }
    if (!s->seed_given)
        s->seed = sim_record_last(&record, (uint32_t)s->operations, SIM_VERSION) + 1;
    sim_record_free(&record);
    return true;
}

static const char usage[] =
    "usage: holdfast-simulate [--seed N] [--seeds N] [--ops N] [--jobs N] [--record FILE] "
    "[--trace-hash]\n"
    "                         [--minimize] [--json]; see: holdfast help simulate\n";

static bool number_take(const char *name, const char *text, uint64_t most, uint64_t *out)
{
    if (hf_number_parse(hf_str(text), out) && *out >= 1 && *out <= most)
        return true;
    complain("--%s: \"%s\" is invalid; expected: a whole number from 1 to %" PRIu64, name, text,
             most);
    return false;
}

static bool options_take(struct simulation *s, int argc, char **argv)
{
    static const struct option options[] = {
        { "seed", required_argument, NULL, 's' },
        { "seeds", required_argument, NULL, 'n' },
        { "ops", required_argument, NULL, 'o' },
        { "jobs", required_argument, NULL, 'j' },
        { "record", required_argument, NULL, 'r' },
        { "trace-hash", no_argument, NULL, 't' },
        { "minimize", no_argument, NULL, 'm' },
        { "json", no_argument, NULL, 'J' },
        { NULL, 0, NULL, 0 },
    };
    s->seed = s->seeds = s->jobs = 1;
    s->operations = 2000;
    bool fits = true;
    for (int option; fits && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 's':
            s->seed_given = true;
            fits = number_take("seed", optarg, UINT64_MAX >> 1, &s->seed);
            break;
        case 'n': fits = number_take("seeds", optarg, 100000000, &s->seeds); break;
        case 'o': fits = number_take("ops", optarg, 100000, &s->operations); break;
        case 'j': fits = number_take("jobs", optarg, 256, &s->jobs); break;
        case 'r': s->record = optarg; break;
        case 't': s->trace_hash = true; break;
        case 'm': s->minimize = true; break;
        case 'J': s->json = true; break;
        default: fits = false;
        }
    }
    if (!fits || optind < argc) {
        fputs(usage, stderr);
        return false;
    }
    if (s->json && s->minimize) {
        complain("--minimize prints a script for people, so leave --json out");
        return false;
    }
    return first_seed(s);
}

/* ---- The record ---- */

/* Record what has ended without a gap since the last time. */
static void record(struct simulation *s)
{
    struct sim_record more = { 0 };
    struct hf_error why;
    uint64_t at = s->first_open;
    s->recorded_ms = clock_ms();
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
        complain("--record: %s", why.text);
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
    progress(s->failed ? "simulating, with failures," : "simulating", 100 * s->done / s->seeds,
             " %");
    if (s->record && clock_ms() - s->recorded_ms > RECORD_EVERY_MS)
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
    s->begun_ms = s->recorded_ms = clock_ms();
    bool good = sim_campaign_run(&campaign);
    progress_end();
    if (!good)
        complain("the system gives no processes for the simulation");
    if (s->record && !s->record_failed)
        record(s);
    qsort(s->failures, s->failure_count, sizeof *s->failures, failure_compare);
    return good && !s->record_failed;
}

/* ---- The shortest script ---- */

struct shortening {
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
    progress("making it shorter, steps left:", h->steps, "");
    return clock_ms() < h->until_ms;
}

static void shorten(struct simulation *s, const struct failure *f)
{
    struct sim_mix mix;
    struct sim_script script;
    sim_mix_draw(&mix, f->seed, (uint32_t)s->operations);
    sim_script_draw(&mix, &script);
    struct shortening h = { .mix = &mix,
                            .outcome = f->outcome,
                            .until_ms = clock_ms() + MINIMIZE_MS,
                            .steps = script.count };
    size_t before = script.count;
    sim_minimize(&script,
                 &(struct sim_minimize){ .fails = still_fails, .go_on = go_on, .arg = &h });
    progress_end();
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
    printf("  to see it again: holdfast simulate --seed %" PRIu64 " --ops %" PRIu64 " --minimize\n",
           f->seed, s->operations);
}

static void tell_text(struct simulation *s, double seconds)
{
    for (uint64_t i = 0; s->traces && i < s->seeds; i++)
        printf("seed %" PRIu64 " trace %016" PRIx64 "\n", s->seed + i, s->traces[i]);
    for (size_t i = 0; i < s->failure_count; i++)
        tell_failure(s, &s->failures[i]);
    if (s->failed > s->failure_count)
        printf("%" PRIu64 " more seeds failed\n", s->failed - s->failure_count);
    if (s->failure_count && s->minimize)
        shorten(s, &s->failures[0]);
    printf("%" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " operations, %" PRIu64
           " crashes, %" PRIu64 " starts, %" PRIu64 " looks, %" PRIu64 " audits: ",
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
    fwrite(out.data, 1, out.size, stdout);
    hf_buffer_free(&out);
}

int main(int argc, char **argv)
{
    struct simulation s = { .seed = 1 };
    if (!options_take(&s, argc, argv))
        return EXIT_USAGE;
    s.ended = calloc(s.seeds, 1);
    if (s.trace_hash)
        s.traces = calloc(s.seeds, sizeof *s.traces);
    if (!s.ended || (s.trace_hash && !s.traces)) {
        complain("there is no memory for so many seeds; run them in parts");
        free(s.ended);
        free(s.traces);
        return EXIT_STORE;
    }
    bool good = run(&s);
    if (s.json)
        tell_json(&s);
    else
        tell_text(&s, (double)(clock_ms() - s.begun_ms) / 1000);
    free(s.ended);
    free(s.traces);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("the answer could not be written to the standard output. Is the disk full?");
        return EXIT_STORE;
    }
    return s.failed ? EXIT_REFUSED : good ? EXIT_DONE : EXIT_STORE;
}

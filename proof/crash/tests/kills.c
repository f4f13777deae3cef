/* A loaded server is killed again and again. Nothing that was acknowledged is lost, and nothing is
 * done twice.
 *
 * Run by itself it takes options, for long runs:
 *
 *   crash_kills [--kills N] [--seconds N] [--round N] [--seed N] [--record FILE] [--program FILE]
 *
 * Rounds of --round kills (100) are run, each with a new store, until N kills are done or so many
 * seconds are over. With --record, a line is added to FILE for each round that went well, and a
 * later call goes on behind the last one. It exits with 0 if all went well, 1 if something was lost
 * or done twice, 2 if it could not run, 3 if it went well and nothing was ever in doubt and
 * survived, so that it has shown little: few kills may all miss the moment. */
#include "crash/world.h"
#include "support/test.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

enum { ROUND = 100, PAUSE_US = 2000 };

static bool is_full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* ---- Saying it ---- */

static void sorts_print(FILE *to, const struct crash_count *n)
{
    for (unsigned i = 0; i < CRASH_SORTS; i++)
        fprintf(to, "%s%s %" PRIu64, i ? ", " : "", crash_sort_names[i], n->kills[i]);
}

static void figures_print(const struct crash_count *n)
{
    printf("%" PRIu64 " kills (", crash_count_kills(n));
    sorts_print(stdout, n);
    printf(")\n%" PRIu64 " lives, %" PRIu64 " of them of the program itself\n", n->lives,
           n->lives_program);
    crash_sum_print(&n->sum);
}

static void failure_print(const struct crash_round *r)
{
    printf("seed %" PRIu64 ", after %" PRIu64 " kills: %s\n", r->seed, crash_count_kills(&r->count),
           r->complaint);
    if (r->dir[0])
        printf("kept: %s\n"
               "  ledger-0 .. ledger-%d   what each client asked for and was told "
               "(proof/crash/ledger.h)\n"
               "  kills                  what was done to the server, life by life\n"
               "  log                    what the server said\n"
               "  data                   the store: holdfast audit --data %s/data, holdfast trace "
               "KEY --data "
               "%s/data\n"
               "again, with the same times: crash_kills --kills %u --round %u --seed %" PRIu64 "\n",
               r->dir, CRASH_CLIENTS - 1, r->dir, r->dir, r->kills, r->kills, r->seed);
}

/* ---- As a test ---- */

static void nothing_is_lost_or_done_twice(void **state)
{
    (void)state;
    unsigned kills = is_full() ? 200 : 8;
    struct crash_count sum = { .lives = 0 };
    uint64_t seed = test_seed("kills", 20261116);
    for (; crash_count_kills(&sum) < kills; seed++) {
        struct crash_round r = { .seed = seed,
                                 .kills = is_full() ? ROUND : kills,
                                 .program = crash_program(),
                                 .pause_us = PAUSE_US };
        if (!crash_round_run(&r)) {
            failure_print(&r);
            fail_msg("seed %" PRIu64 ": %s", r.seed, r.complaint);
        }
        crash_count_add(&sum, &r.count);
    }
    figures_print(&sum);
    assert_true(sum.sum.acknowledged > 100);
    /* The order of the callers was looked at. */
    assert_true(sum.sum.timed > sum.sum.entries / 2);
    if (is_full()) { /* a test that never has anything in doubt is blind */
        assert_true(sum.sum.in_doubt > 0 && sum.sum.survived > 0 && sum.sum.undone > 0);
        for (unsigned i = 0; i < CRASH_SORTS; i++)
            assert_true(sum.kills[i] > 0);
        for (unsigned i = 0; i < CRASH_KINDS;
             i++) /* the store itself expires holds before clients come to it */
            assert_true(sum.sum.kinds[i] > 0 || i == CRASH_EXPIRE);
    }
}

/* A store that forgets, or does more than it was asked for, is found out. */
static void found_out(enum crash_control control, const char *const *words)
{
    struct crash_round r = {
        .seed = 1, .kills = 3, .control = control, .program = crash_program(), .pause_us = 500
    };
    assert_false(crash_round_run(&r));
    printf("found: %.200s\n", r.complaint);
    for (; *words; words++)
        if (strstr(r.complaint, *words))
            return;
    fail_msg("found something else: %s", r.complaint);
}

/* What the clients say when something that it was told is gone. */
static const char *const loss[] = { "another answer than before",
                                    "done again, and not a replay",
                                    "its hold is not there",
                                    "its hold is not in the state",
                                    "is another's now",
                                    "what was settled is not so any more",
                                    "it survived, and what was sent before it did not",
                                    "an answer that cannot be",
                                    "somebody else has a claim",
                                    NULL };

static void control_loss_by_an_old_copy(void **state)
{
    (void)state;
    found_out(CRASH_OLD_COPY, loss);
}

static void control_loss_of_the_newest_batches(void **state)
{
    (void)state;
    found_out(CRASH_CUT, loss);
}

static void control_more_than_was_asked_for(void **state)
{
    (void)state;
    static const char *const more[] = { "a hold that nobody asked for", NULL };
    found_out(CRASH_GHOSTS, more);
}

static void control_a_history_with_gaps(void **state)
{
    (void)state;
    static const char *const gaps[] = { "the judge objects", NULL };
    found_out(CRASH_HUSH, gaps);
}

static void control_decided_after_it_was_answered(void **state)
{
    (void)state;
    static const char *const late[] = { "it was answered before something was called", NULL };
    found_out(CRASH_LATE, late);
}

/* ---- As a program ---- */

struct run {
    uint64_t kills, done, seed, begun_done, seconds;
    unsigned round;
    const char *record;
    struct crash_count sum;
    int64_t begun_ms, shown_ms;
};

static void progress(const struct crash_count *n, void *arg)
{
    struct run *run = arg;
    int64_t now = server_clock_ms(), took = now - run->begun_ms;
    uint64_t done = run->done + crash_count_kills(n), here = done - run->begun_done;
    bool terminal = isatty(1);
    if (now - run->shown_ms < (terminal ? 200 : 10000) || here == 0)
        return;
    run->shown_ms = now;
    uint64_t left = done < run->kills ? (run->kills - done) * (uint64_t)took / here / 1000 : 0;
    printf("%s%" PRIu64 " of %" PRIu64 " kills, %" PRIu64 " acknowledged, %" PRIu64
           " in doubt, %" PRIu64 " survived, %" PRIu64 " sent again, %.1f kills/s, %" PRIu64
           ":%02" PRIu64 ":%02" PRIu64 " to go%s",
           terminal ? "\r" : "", done, run->kills, run->sum.sum.acknowledged + n->sum.acknowledged,
           run->sum.sum.in_doubt + n->sum.in_doubt, run->sum.sum.survived + n->sum.survived,
           run->sum.sum.resent + n->sum.resent, (double)here * 1000 / (double)took, left / 3600,
           left / 60 % 60, left % 60, terminal ? "\033[K" : "\n");
    fflush(stdout);
}

/* A line of the record: "kills 1..100 seed 7: " and all counters, in the order of struct
 * crash_count. */
static bool record_read(struct run *run)
{
    FILE *file = run->record ? fopen(run->record, "r") : NULL;
    char line[1024];
    while (file && fgets(line, sizeof line, file)) {
        struct crash_count n;
        uint64_t from, to, seed, *numbers = (uint64_t *)&n;
        int used = 0;
        bool fine = sscanf(line, "kills %" SCNu64 "..%" SCNu64 " seed %" SCNu64 ":%n", &from, &to,
                           &seed, &used) == 3 &&
                    used > 0 && from == run->done + 1;
        char *at = line + used;
        for (size_t i = 0; i < sizeof n / sizeof *numbers; i++)
            numbers[i] = strtoull(at, &at, 10);
        if (!fine || to != run->done + crash_count_kills(&n)) {
            fprintf(stderr, "%s does not make sense at kill %" PRIu64 "; remove it to begin anew\n",
                    run->record, run->done);
            fclose(file);
            return false;
        }
        crash_count_add(&run->sum, &n);
        run->done = to;
        run->seed = seed + 1;
    }
    if (file)
        fclose(file);
    return true;
}

static bool record_add(const struct run *run, const struct crash_round *r)
{
    FILE *file = run->record ? fopen(run->record, "a") : NULL;
    const uint64_t *numbers = (const uint64_t *)&r->count;
    if (!run->record)
        return true;
    if (!file)
        return false;
    fprintf(file, "kills %" PRIu64 "..%" PRIu64 " seed %" PRIu64 ":", run->done + 1,
            run->done + crash_count_kills(&r->count), r->seed);
    for (size_t i = 0; i < sizeof r->count / sizeof *numbers; i++)
        fprintf(file, " %" PRIu64, numbers[i]);
    fprintf(file, "\n");
    return fclose(file) == 0;
}

static int run_rounds(struct run *run, const char *program)
{
    run->begun_done = run->done;
    run->begun_ms = run->shown_ms = server_clock_ms();
    if (run->done)
        printf("going on behind %" PRIu64 " kills of %s\n", run->done, run->record);
    while (run->done < run->kills &&
           (!run->seconds || server_clock_ms() - run->begun_ms < (int64_t)run->seconds * 1000)) {
        uint64_t left = run->kills - run->done;
        struct crash_round r = { .seed = run->seed++,
                                 .kills = left < run->round ? (unsigned)left : run->round,
                                 .program = program,
                                 .pause_us = PAUSE_US,
                                 .progress = progress,
                                 .arg = run };
        if (!crash_round_run(&r)) {
            printf("\n");
            failure_print(&r);
            return 1;
        }
        if (!record_add(run, &r)) {
            fprintf(stderr, "\ncannot write %s\n", run->record);
            return 2;
        }
        crash_count_add(&run->sum, &r.count);
        run->done += crash_count_kills(&r.count);
    }
    printf("%s", isatty(1) ? "\r\033[K" : "");
    figures_print(&run->sum);
    if (run->sum.sum.in_doubt == 0 || run->sum.sum.survived == 0) {
        printf("nothing was ever in doubt and survived: this run was blind\n");
        return 3;
    }
    printf("nothing acknowledged was lost, nothing was done twice\n");
    return 0;
}

static int run_program(int argc, char **argv)
{
    struct run run = { .kills = ROUND, .round = ROUND, .seed = (uint64_t)time(NULL) };
    const char *program = crash_program();
    for (int i = 1; i < argc; i += 2) {
        uint64_t number = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;
        if (i + 1 < argc && strcmp(argv[i], "--record") == 0)
            run.record = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--program") == 0)
            program = argv[i + 1];
        else if (strcmp(argv[i], "--kills") == 0 && number)
            run.kills = number;
        else if (strcmp(argv[i], "--seconds") == 0 && number && number < 1000000)
            run.seconds = number;
        else if (strcmp(argv[i], "--round") == 0 && number && number <= 1000)
            run.round = (unsigned)number;
        else if (strcmp(argv[i], "--seed") == 0 && number)
            run.seed = number;
        else {
            fprintf(stderr,
                    "usage: crash_kills [--kills N] [--seconds N] [--round N] [--seed N] [--record "
                    "FILE] [--program FILE]\n");
            return 2;
        }
    }
    if (access(program, X_OK) != 0) {
        fprintf(stderr, "there is no %s; build it, or give --program\n", program);
        return 2;
    }
    printf("seed %" PRIu64 "\n", run.seed);
    return record_read(&run) ? run_rounds(&run, program) : 2;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_or_done_twice),
        cmocka_unit_test(control_loss_by_an_old_copy),
        cmocka_unit_test(control_loss_of_the_newest_batches),
        cmocka_unit_test(control_more_than_was_asked_for),
        cmocka_unit_test(control_a_history_with_gaps),
        cmocka_unit_test(control_decided_after_it_was_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

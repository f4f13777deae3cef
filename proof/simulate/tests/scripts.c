/* Scripts: drawn from the seed alone, whole in themselves, and between them they try everything. */
#include "simulate/apart.h"
#include "simulate/disk.h"
#include "simulate/minimize.h"
#include "simulate/record.h"
#include "simulate/script.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void draw(uint64_t seed, uint32_t operations, struct sim_mix *mix, struct sim_script *script)
{
    sim_mix_draw(mix, seed, operations);
    sim_script_draw(mix, script);
}

static void the_same_seed_draws_the_same(void **state)
{
    (void)state;
    struct sim_mix mix;
    struct sim_script a, b;
    draw(42, 500, &mix, &a);
    draw(42, 500, &mix, &b);
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        assert_int_equal(a.steps[i].draw, b.steps[i].draw);
        assert_int_equal(a.steps[i].kind, b.steps[i].kind);
        assert_int_equal(a.steps[i].amount, b.steps[i].amount);
    }
    sim_script_free(&b);
    draw(43, 500, &mix, &b);
    assert_true(a.count != b.count || memcmp(a.steps, b.steps, a.count * sizeof *a.steps) != 0);
    sim_script_free(&a);
    sim_script_free(&b);
}

/* Labels rise, and a step names only steps before it: so that any of them can be left out. */
static void steps_look_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct sim_mix mix;
        struct sim_script script;
        uint32_t asked = 0;
        draw(seed, 300, &mix, &script);
        for (size_t i = 0; i < script.count; i++) {
            const struct sim_step *s = &script.steps[i];
            assert_int_equal(s->label, i + 1);
            assert_true(s->first < s->label && s->origin < s->label);
            assert_true(s->tenant < mix.tenants && s->client < mix.clients);
            asked += s->kind == SIM_ASK;
        }
        assert_int_equal(script.labels, script.count);
        assert_true(asked >= 300);
        assert_int_equal(script.steps[script.count - 1].kind, SIM_FLUSH);
        sim_script_free(&script);
    }
}

static void everything_is_tried(void **state)
{
    (void)state;
    uint32_t kinds[SIM_STALE + 1] = { 0 }, actions[128] = { 0 }, calls[SIM_CALLS] = { 0 },
                               keys[8] = { 0 };
    uint32_t again = 0, back = 0, strict = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct sim_mix mix;
        struct sim_script script;
        draw(seed, 200, &mix, &script);
        strict += mix.strict;
        for (size_t i = 0; i < script.count; i++) {
            const struct sim_step *s = &script.steps[i];
            kinds[s->kind]++;
            actions[s->action]++;
            if (s->kind == SIM_FAIL)
                calls[s->variant]++;
            if (s->kind == SIM_ASK)
                keys[s->key_kind]++;
            again += s->first != 0;
            back += s->kind == SIM_JUMP && s->amount < 0;
        }
        sim_script_free(&script);
    }
    for (int i = SIM_ASK; i <= SIM_STALE; i++)
        assert_true(kinds[i] > 0);
    for (int i = HF_PLACE_HOLD; i <= HF_APPLY; i++)
        assert_true(actions[i] > 0);
    for (int i = HF_GET_HOLD; i <= HF_GET_VALUE; i++)
        assert_true(actions[i] > 0);
    for (int i = 0; i < SIM_CALLS; i++)
        assert_true(calls[i] > 0);
    for (int i = SIM_KEY_NONE; i <= SIM_KEY_LONG; i++)
        assert_true(keys[i] > 0);
    assert_true(again > 0 && back > 0 && strict > 0);
}

static void every_step_has_words(void **state)
{
    (void)state;
    struct sim_mix mix;
    struct sim_script script;
    char *text = NULL;
    size_t size = 0, lines = 0;
    draw(11, 300, &mix, &script);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < script.count; i++)
        sim_step_print(&script.steps[i], out);
    fclose(out);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    assert_int_equal(lines, script.count);
    assert_non_null(strstr(text, "commit, and answer"));
    free(text);
    sim_script_free(&script);
}

/* A script of any of its steps runs, and does not fail: that is what the minimizer needs. */
static void parts_of_scripts_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct sim_mix mix;
        struct sim_script script;
        struct sim_outcome outcome;
        struct sim_chance chance;
        size_t kept = 0;
        draw(seed, 300, &mix, &script);
        sim_chance_init(&chance, seed);
        for (size_t i = 0; i < script.count; i++)
            if (sim_chance_once_in(&chance, 1 + seed % 4))
                script.steps[kept++] = script.steps[i];
        script.count = kept;
        sim_run(&mix, &script, &outcome);
        if (outcome.failed)
            print_error("seed %llu: %s\n", (unsigned long long)seed, outcome.sentence);
        assert_false(outcome.failed);
        script.count = 0;
        sim_run(&mix, &script, &outcome); /* and one of none */
        assert_false(outcome.failed);
        sim_script_free(&script);
    }
}

static void a_run_apart_tells_the_same(void **state)
{
    (void)state;
    struct sim_mix mix;
    struct sim_script script;
    struct sim_outcome here, there;
    draw(3, 200, &mix, &script);
    sim_run(&mix, &script, &here);
    assert_true(sim_run_apart(&mix, &script, 60, &there));
    assert_false(here.failed || there.failed);
    assert_int_equal(here.trace, there.trace);
    assert_int_equal(here.operations, there.operations);
    sim_script_free(&script);
}

/* There is no such tenant, so an assertion ends the child: that is a failure like any other, with a
 * sentence. */
static void a_run_that_dies_has_failed(void **state)
{
    (void)state;
    struct sim_mix mix;
    struct sim_script script = { .labels = 1 };
    struct sim_outcome outcome;
    sim_mix_draw(&mix, 3, 200);
    sim_script_add(&script, &(struct sim_step){ .label = 1,
                                                .kind = SIM_ASK,
                                                .action = HF_GET_TOKEN,
                                                .tenant = SIM_TENANTS_MAX });
    assert_true(sim_run_apart(&mix, &script, 60, &outcome));
    assert_true(outcome.failed);
    assert_non_null(strstr(outcome.sentence, "the process "));
    sim_script_free(&script);
}

/* The shortest script that still fails, for failures that are known. */

/* A script fails if it has all of these labels. */
struct needs {
    uint32_t labels[4];
    size_t count;
    unsigned asked, most; /* how often it may go on; 0: for ever */
};

static bool has_label(const struct sim_script *script, uint32_t label)
{
    for (size_t i = 0; i < script->count; i++)
        if (script->steps[i].label == label)
            return true;
    return false;
}

static bool fails(void *arg, const struct sim_script *script)
{
    struct needs *n = arg;
    n->asked++;
    for (size_t i = 1; i < script->count; i++) /* what is left stays in order, each step once */
        assert_true(script->steps[i - 1].label < script->steps[i].label);
    for (size_t i = 0; i < n->count; i++)
        if (!has_label(script, n->labels[i]))
            return false;
    return true;
}

static bool go_on(void *arg)
{
    const struct needs *n = arg;
    return n->most == 0 || n->asked < n->most;
}

static void script_make(struct sim_script *script, uint32_t count)
{
    *script = (struct sim_script){ .labels = count };
    for (uint32_t i = 1; i <= count; i++)
        sim_script_add(script, &(struct sim_step){ .label = i, .kind = SIM_FLUSH });
}

static void only_what_is_needed_is_left(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { 1, 2, 3, 7, 64, 1000, 2311 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t size = sizes[i];
        struct needs needs = { .labels = { 1, (size + 1) / 2, size }, .count = 3 };
        struct sim_script script;
        script_make(&script, size);
        unsigned asked = sim_minimize(&script, &(struct sim_minimize){ fails, go_on, &needs });
        assert_int_equal(asked, needs.asked);
        assert_int_equal(script.count, size < 3 ? size : 3);
        assert_true(fails(&needs, &script));
        assert_int_equal(script.labels, size);
        sim_script_free(&script);
    }
}

static void what_always_fails_needs_no_step(void **state)
{
    (void)state;
    struct needs needs = { .count = 0 };
    struct sim_script script;
    script_make(&script, 500);
    unsigned asked = sim_minimize(&script, &(struct sim_minimize){ fails, NULL, &needs });
    assert_int_equal(script.count, 0);
    assert_true(asked < 50);
    sim_script_free(&script);
    script_make(&script, 0);
    assert_int_equal(sim_minimize(&script, &(struct sim_minimize){ fails, NULL, &needs }), 0);
    sim_script_free(&script);
}

static void it_ends_when_it_is_told_to(void **state)
{
    (void)state;
    struct needs needs = { .labels = { 3, 400 }, .count = 2, .most = 5 };
    struct sim_script script;
    script_make(&script, 1000);
    assert_int_equal(sim_minimize(&script, &(struct sim_minimize){ fails, go_on, &needs }), 5);
    assert_true(script.count < 1000 && script.count > 2); /* shorter, as far as it came */
    assert_true(has_label(&script, 3) && has_label(&script, 400));
    sim_script_free(&script);
}

/* Where two steps are needed only together with a third, taking them out one by one is not enough:
 * runs are. */
static bool fails_in_pairs(void *arg, const struct sim_script *script)
{
    (void)arg;
    return has_label(script, 10) == has_label(script, 11) && has_label(script, 90);
}

static void neighbours_leave_together(void **state)
{
    (void)state;
    struct sim_script script;
    script_make(&script, 128);
    sim_minimize(&script, &(struct sim_minimize){ .fails = fails_in_pairs });
    assert_int_equal(script.count, 1);
    assert_int_equal(script.steps[0].label, 90);
    sim_script_free(&script);
}

/* The record of seeds: ranges that merge, a file that grows, lines that are none. */

static void add(struct sim_record *r, uint64_t from, uint64_t to, bool failed)
{
    sim_record_add(
        r, &(struct sim_range){
               .from = from, .to = to, .operations = 2000, .version = 1, .failed = failed });
}

/* "1-5 ok, 6-6 failed" */
static void shows(const struct sim_record *r, const char *expected)
{
    char text[1000] = "";
    for (size_t i = 0; i < r->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRIu64 "-%" PRIu64 " %s",
                 i ? ", " : "", r->ranges[i].from, r->ranges[i].to,
                 r->ranges[i].failed ? "failed" : "ok");
    assert_string_equal(text, expected);
}

static void ranges_merge(void **state)
{
    (void)state;
    struct sim_record r = { 0 };
    add(&r, 10, 20, false);
    add(&r, 1, 5, false);
    shows(&r, "1-5 ok, 10-20 ok");
    add(&r, 6, 9, false);
    shows(&r, "1-20 ok");
    add(&r, 15, 30, false);
    shows(&r, "1-30 ok");
    add(&r, 40, 40, true);
    shows(&r, "1-30 ok, 40-40 failed");
    assert_int_equal(sim_record_last(&r, 2000, 1), 40);
    assert_int_equal(sim_record_last(&r, 2001, 1), 0);
    assert_int_equal(sim_record_last(&r, 2000, 2), 0);
    sim_record_free(&r);
}

static void the_newest_result_counts(void **state)
{
    (void)state;
    struct sim_record r = { 0 };
    uint64_t seeds, failed;
    add(&r, 1, 100, false);
    add(&r, 50, 50, true);
    shows(&r, "1-49 ok, 50-50 failed, 51-100 ok");
    add(&r, 1, 1, true);
    add(&r, 100, 101, true);
    shows(&r, "1-1 failed, 2-49 ok, 50-50 failed, 51-99 ok, 100-101 failed");
    sim_record_total(&r, 1, &seeds, &failed);
    assert_int_equal(seeds, 101);
    assert_int_equal(failed, 4);
    add(&r, 50, 50, false);
    shows(&r, "1-1 failed, 2-99 ok, 100-101 failed");
    add(&r, 1, 200, false);
    shows(&r, "1-200 ok");
    sim_record_total(&r, 2, &seeds, &failed);
    assert_int_equal(seeds, 0);
    sim_record_free(&r);
}

static void other_runs_are_apart(void **state)
{
    (void)state;
    struct sim_record r = { 0 };
    add(&r, 1, 10, false);
    sim_record_add(&r, &(struct sim_range){ .from = 5, .to = 20, .operations = 100, .version = 1 });
    sim_record_add(&r,
                   &(struct sim_range){ .from = 11, .to = 20, .operations = 2000, .version = 2 });
    shows(&r, "5-20 ok, 1-10 ok, 11-20 ok");
    sim_record_free(&r);
}

/* Every order of a few ranges against a plain array of seeds. */
static void it_agrees_with_a_plain_array(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int round = 0; round < 300; round++) {
        struct sim_record r = { 0 };
        unsigned char seeds[66] = { 0 }; /* 0 not run, 1 ok, 2 failed */
        for (int i = 0; i < 12; i++) {
            random = random * 1664525 + 1013904223;
            uint64_t from = 1 + (random >> 8) % 60, to = from + (random >> 16) % 5;
            bool bad = random >> 30 & 1;
            add(&r, from, to, bad);
            memset(seeds + from, bad ? 2 : 1, to - from + 1);
        }
        size_t range = 0;
        for (uint64_t s = 1; s < sizeof seeds; s++) {
            while (range < r.count && r.ranges[range].to < s)
                range++;
            bool in = range < r.count && r.ranges[range].from <= s;
            assert_int_equal(seeds[s], in ? r.ranges[range].failed ? 2 : 1 : 0);
        }
        for (size_t i = 1; i < r.count; i++) /* none that could be one */
            assert_true(r.ranges[i - 1].to + 1 < r.ranges[i].from ||
                        r.ranges[i - 1].failed != r.ranges[i].failed);
        sim_record_free(&r);
    }
}

static char *path_in(const char *dir, const char *name)
{
    char *path = malloc(strlen(dir) + strlen(name) + 2);
    assert_non_null(path);
    sprintf(path, "%s/%s", dir, name);
    return path;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_file_grows(void **state)
{
    (void)state;
    char *dir = test_dir_make(), *path = path_in(dir, "record");
    struct sim_record r, more = { 0 };
    struct hf_error why;
    assert_true(sim_record_read(path, &r, &why)); /* there is none: it is empty */
    assert_int_equal(r.count, 0);
    add(&more, 1, 10, false);
    assert_true(sim_record_merge(path, &more, &why));
    assert_true(sim_record_merge(path, &more, &why)); /* again: nothing new */
    sim_record_free(&more);
    add(&more, 11, 11, true);
    add(&more, 12, 20, false);
    assert_true(sim_record_merge(path, &more, &why));
    sim_record_free(&more);
    assert_true(sim_record_read(path, &r, &why));
    shows(&r, "1-10 ok, 11-11 failed, 12-20 ok");
    sim_record_free(&r);
    put(path, "1-10 2000 1 ok\n7-7 2000 1 failed\n");
    assert_true(sim_record_read(path, &r, &why)); /* by hand, in any order */
    shows(&r, "1-6 ok, 7-7 failed, 8-10 ok");
    sim_record_free(&r);
    free(path);
    test_dir_remove(dir);
}

static void lines_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = { "\n",
                                       "1-2\n",
                                       "1-2 2000 1\n",
                                       "1-2 2000 1 maybe\n",
                                       "1-2 2000 1 ok more\n",
                                       "0-2 2000 1 ok\n",
                                       "3-2 2000 1 ok\n",
                                       "a-b 2000 1 ok\n",
                                       "1-18446744073709551615 2000 1 ok\n" };
    char *dir = test_dir_make(), *path = path_in(dir, "record");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sim_record r, more = { 0 };
        struct hf_error why = { .text = "" };
        char text[200];
        snprintf(text, sizeof text, "5-6 2000 1 ok\n%s", bad[i]);
        put(path, text);
        assert_false(sim_record_read(path, &r, &why));
        assert_non_null(strstr(why.text, "line 2 of "));
        add(&more, 1, 2, false);
        assert_false(sim_record_merge(path, &more, &why)); /* and it stays as it is */
        sim_record_free(&more);
    }
    struct sim_record r;
    struct hf_error why;
    assert_false(sim_record_read(dir, &r, &why)); /* a folder is no record */
    free(path);
    test_dir_remove(dir);
}

/* Many at a time add to one file, and nothing is lost. */
static void many_add_at_once(void **state)
{
    (void)state;
    enum { WRITERS = 8, EACH = 10 };
    char *dir = test_dir_make(), *path = path_in(dir, "record");
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] > 0)
            continue;
        bool good = true;
        for (int k = 0; good && k < EACH; k++) {
            struct sim_record more = { 0 };
            struct hf_error why;
            uint64_t seed = 1 + (uint64_t)(k * WRITERS + i);
            add(&more, seed, seed, false);
            good = sim_record_merge(path, &more, &why);
            sim_record_free(&more);
        }
        _exit(good ? 0 : 1);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    struct sim_record r;
    struct hf_error why;
    assert_true(sim_record_read(path, &r, &why));
    shows(&r, "1-80 ok");
    sim_record_free(&r);
    free(path);
    test_dir_remove(dir);
}

/* Found by the simulator: a segment that could not be read once, while keys were freed, was taken
 * for one that has ended. The keys in the rest of it stayed in memory until the next start. */

struct world {
    hf_time wall;
    uint64_t steady_ns;
    int failing; /* so many reads fail from now on */
    unsigned failed;
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct world *w = arg;
    (void)name;
    (void)at;
    (void)size;
    if (call != SIM_READ || w->failing == 0)
        return 0;
    w->failing--;
    w->failed++;
    return -EIO;
}

static uint32_t choose(void *arg, uint32_t n)
{
    (void)arg;
    return n - 1;
}

static hf_time wall_ms(void *arg)
{
    return ((struct world *)arg)->wall;
}

static uint64_t monotonic_ns(void *arg)
{
    return ((struct world *)arg)->steady_ns;
}

static int random_bytes(void *arg, void *data, size_t size)
{
    (void)arg;
    memset(data, 7, size);
    return 0;
}

static struct hf_db *open_store(struct sim_disk *disk)
{
    struct hf_options options = { .idempotency_window_ms = 60000,
                                  .segment_max_bytes = 65536,
                                  .snapshot_every_bytes = 65536,
                                  .no_background = true,
                                  .no_committer = true,
                                  .io = sim_disk_io(disk) };
    struct hf_error why;
    struct hf_db *db;
    if (hf_open("store", &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

static void write_keys(struct hf_db *db, int from, int to)
{
    for (int i = from; i < to; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        struct hf_request r = { .action = HF_WRITE, .key = hf_str(key) };
        r.write.name = hf_str("x");
        r.write.value = hf_str(key);
        assert_int_equal(hf_do(db, &r, NULL), HF_OK);
    }
}

static void maintain(struct hf_db *db)
{
    while (hf_maintain(db))
        ;
}

static uint64_t keys_of(struct hf_db *db)
{
    struct hf_stats stats;
    hf_stats(db, &stats);
    return stats.tokens;
}

static void what_cannot_be_read_is_not_passed_over(void **state)
{
    (void)state;
    struct world w = { .wall = INT64_C(1700000000000) };
    struct sim_disk_owner owner = { .arg = &w,
                                    .before = before,
                                    .choose = choose,
                                    .wall_ms = wall_ms,
                                    .monotonic_ns = monotonic_ns,
                                    .random = random_bytes };
    struct sim_disk *disk = sim_disk_new(&owner);
    struct hf_db *db = open_store(disk);
    write_keys(db, 0, 40);
    maintain(db); /* a snapshot with all keys in it */
    w.wall += 120000;
    write_keys(db, 40, 41);
    maintain(db); /* they are freed, and their segments packed */
    assert_int_equal(keys_of(db), 1);
    hf_close(db);

    db = open_store(disk);
    assert_true(keys_of(db) > 30); /* from the snapshot */
    w.failing = 1;
    for (int i = 0; i < 8; i++) {
        w.steady_ns += UINT64_C(2000000000);
        hf_maintain(db);
    }
    assert_int_equal(w.failed, 1);
    w.failing = 0;
    maintain(db);
    assert_int_equal(keys_of(db), 1);
    hf_close(db);
    sim_disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(steps_look_back),
        cmocka_unit_test(everything_is_tried),
        cmocka_unit_test(every_step_has_words),
        cmocka_unit_test(parts_of_scripts_run),
        cmocka_unit_test(a_run_apart_tells_the_same),
        cmocka_unit_test(a_run_that_dies_has_failed),
        cmocka_unit_test(only_what_is_needed_is_left),
        cmocka_unit_test(what_always_fails_needs_no_step),
        cmocka_unit_test(it_ends_when_it_is_told_to),
        cmocka_unit_test(neighbours_leave_together),
        cmocka_unit_test(ranges_merge),
        cmocka_unit_test(the_newest_result_counts),
        cmocka_unit_test(other_runs_are_apart),
        cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(a_file_grows),
        cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(many_add_at_once),
        cmocka_unit_test(what_cannot_be_read_is_not_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

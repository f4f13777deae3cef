/* The record of seeds: ranges that merge, a file that grows, lines that are none. */
#include "simulate/record.h"
#include "support/test.h"
#include "support/test_io.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_merge),         cmocka_unit_test(the_newest_result_counts),
        cmocka_unit_test(other_runs_are_apart), cmocka_unit_test(it_agrees_with_a_plain_array),
        cmocka_unit_test(a_file_grows),         cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(many_add_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Scripts: drawn from the seed alone, whole in themselves, and between them they try everything. */
#include "simulate/apart.h"
#include "simulate/disk.h"
#include "simulate/script.h"
#include "support/test.h"

#include <stdlib.h>

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

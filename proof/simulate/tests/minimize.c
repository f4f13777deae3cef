/* The shortest script that still fails, for failures that are known. */
#include "simulate/minimize.h"
#include "support/test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_needed_is_left),
        cmocka_unit_test(what_always_fails_needs_no_step),
        cmocka_unit_test(it_ends_when_it_is_told_to),
        cmocka_unit_test(neighbours_leave_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

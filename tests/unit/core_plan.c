/* The plan's rows and scratch. */
#include "core/core.h"
#include "support/test.h"

static struct hf_plan *plan_new(void)
{
    struct hf_plan *plan = malloc(sizeof *plan);
    assert_non_null(plan);
    memset(plan, 0xa5, sizeof *plan);
    plan->scratch = malloc(HF_PLAN_SCRATCH);
    assert_non_null(plan->scratch);
    return plan;
}

static void plan_free(struct hf_plan *plan)
{
    free(plan->scratch);
    free(plan);
}

static void reset_empties_everything_but_the_scratch(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    unsigned char *scratch = plan->scratch;
    hf_plan_reset(plan);
    assert_ptr_equal(plan->scratch, scratch);
    assert_int_equal(plan->scratch_used, 0);
    assert_int_equal(plan->row_count, 0);
    assert_int_equal(plan->answer.status, HF_OK);
    assert_int_equal(plan->answer.kind, HF_NO_RECORD);
    assert_int_equal(plan->remember, HF_REMEMBER_NOT);
    assert_false(plan->replayed || plan->ordinal_used || plan->fence_used || plan->missed ||
                 plan->run);
    assert_int_equal(plan->token.expires_at, 0);
    plan_free(plan);
}

static void rows_come_zeroed_one_by_one(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    hf_plan_reset(plan);
    struct hf_row want;
    for (size_t i = 0; i < HF_PLAN_ROWS; i++) {
        struct hf_row *row = hf_plan_row(plan, HF_ROW_LEASE);
        memset(&want, 0, sizeof want);
        want.kind = HF_ROW_LEASE;
        assert_ptr_equal(row, &plan->rows[i]);
        assert_memory_equal(row, &want, sizeof want);
        if (i + 1 < HF_PLAN_ROWS) /* the one behind it is left alone */
            assert_int_equal(((unsigned char *)&plan->rows[i + 1])[0], 0xa5);
    }
    assert_int_equal(plan->row_count, HF_PLAN_ROWS);
    plan_free(plan);
}

static void room_is_aligned_and_ends_with_the_scratch(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    hf_plan_reset(plan);
    unsigned char *a = hf_plan_room(plan, 1);
    unsigned char *b = hf_plan_room(plan, 17);
    unsigned char *c = hf_plan_room(plan, 0);
    assert_ptr_equal(a, plan->scratch);
    assert_ptr_equal(b, plan->scratch + 16);
    assert_ptr_equal(c, plan->scratch + 48);
    assert_null(hf_plan_room(plan, HF_PLAN_SCRATCH - 47));
    assert_null(hf_plan_room(plan, SIZE_MAX));
    assert_non_null(hf_plan_room(plan, HF_PLAN_SCRATCH - 48));
    assert_non_null(hf_plan_room(plan, 0));
    assert_null(hf_plan_room(plan, 1));
    hf_plan_reset(plan);
    assert_non_null(hf_plan_room(plan, HF_PLAN_SCRATCH));
    assert_null(hf_plan_room(plan, 1));
    plan->scratch_used = SIZE_MAX / 2; /* whoever breaks the plan gets nothing */
    assert_null(hf_plan_room(plan, 1));
    plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_empties_everything_but_the_scratch),
        cmocka_unit_test(rows_come_zeroed_one_by_one),
        cmocka_unit_test(room_is_aligned_and_ends_with_the_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

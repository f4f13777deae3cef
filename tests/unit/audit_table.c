/* The auditor's tables: names that a client has chosen cost no more than others. */
#include "audit/table.h"
#include "support/test.h"

enum { NAMES = 20000 };

static struct hf_audit_name name_of(uint64_t i, bool chosen)
{
    /* Chosen: all have the same lowest bits. */
    return (struct hf_audit_name){ chosen ? i << 32 : i * UINT64_C(0x9e3779b97f4a7c15),
                                   i << 1 | 1 };
}

static int64_t spent(bool chosen)
{
    struct hf_audit_table t = { .item_size = sizeof(struct hf_audit_name) };
    int64_t begun = test_cpu_ns();
    for (uint64_t i = 0; i < NAMES; i++)
        assert_non_null(hf_audit_table_add(&t, name_of(i, chosen), 0));
    for (uint64_t i = 0; i < NAMES; i++)
        assert_non_null(hf_audit_table_find(&t, name_of(i, chosen)));
    assert_null(hf_audit_table_find(&t, name_of(NAMES, chosen)));
    int64_t took = test_cpu_ns() - begun;
    hf_audit_table_free(&t);
    return took;
}

static void chosen_names_do_not_stand_in_one_run(void **state)
{
    (void)state;
    (void)spent(false);
    int64_t plain = spent(false), chosen = spent(true);
    printf("%lld us for any names, %lld us for chosen ones\n", (long long)plain / 1000,
           (long long)chosen / 1000);
    assert_true(chosen < 8 * plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(chosen_names_do_not_stand_in_one_run) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

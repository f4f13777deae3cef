/* Which names, tenants and durations are well-formed. */
#include "core/name.h"
#include "support/test.h"

static char letters[HF_NAME_MAX + 1];

static void names_have_1_to_1024_bytes(void **state)
{
    (void)state;
    assert_false(hf_name_valid(hf_mem(NULL, 0)));
    assert_false(hf_name_valid(hf_mem("", 0)));
    assert_true(hf_name_valid(hf_mem(letters, 1)));
    assert_true(hf_name_valid(hf_mem(letters, HF_NAME_MAX)));
    assert_false(hf_name_valid(hf_mem(letters, HF_NAME_MAX + 1)));
}

static void names_are_utf8_without_nul(void **state)
{
    (void)state;
    assert_true(hf_name_valid(hf_str("Zimmer 307 \xe2\x82\xac")));
    assert_false(hf_name_valid(hf_mem("a\0b", 3)));
    assert_false(hf_name_valid(hf_mem("\0", 1)));
    assert_false(hf_name_valid(hf_str("\xff")));
    assert_false(hf_name_valid(hf_str("a\xe2\x82")));
}

static void tenants_have_0_to_64_bytes(void **state)
{
    (void)state;
    assert_true(hf_tenant_valid(hf_mem(NULL, 0)));
    assert_true(hf_tenant_valid(hf_mem(letters, 1)));
    assert_true(hf_tenant_valid(hf_mem(letters, HF_TENANT_MAX)));
    assert_false(hf_tenant_valid(hf_mem(letters, HF_TENANT_MAX + 1)));
    assert_false(hf_tenant_valid(hf_mem("a\0", 2)));
    assert_false(hf_tenant_valid(hf_str("\x80")));
}

static void durations_are_1_ms_to_ten_years(void **state)
{
    (void)state;
    assert_false(hf_duration_valid(INT64_MIN));
    assert_false(hf_duration_valid(-1));
    assert_false(hf_duration_valid(0));
    assert_true(hf_duration_valid(1));
    assert_true(hf_duration_valid(HF_DURATION_MAX_MS));
    assert_false(hf_duration_valid(HF_DURATION_MAX_MS + 1));
    assert_false(hf_duration_valid(INT64_MAX));
}

int main(void)
{
    memset(letters, 'x', sizeof letters);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_1_to_1024_bytes),
        cmocka_unit_test(names_are_utf8_without_nul),
        cmocka_unit_test(tenants_have_0_to_64_bytes),
        cmocka_unit_test(durations_are_1_ms_to_ten_years),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

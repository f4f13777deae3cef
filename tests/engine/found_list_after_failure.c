/* hf_options.on_fatal: "every later [call answers] HF_STORAGE_FAILURE". hf_list answers
 * HF_INDETERMINATE, or the undurable state itself once nothing flies. */
#include "engine/kit/engine.h"
#include "support/test.h"
static void a_list_after_the_store_has_failed_is_a_storage_failure(void **s)
{
    (void)s;
    struct kit *k = kit_make();
    atomic_store(&k->io.fail_sync, 1);
    assert_int_equal(kit_place(k, "k", "r", "g", HOUR), HF_INDETERMINATE);
    struct hf_page page;
    assert_int_equal(hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page),
                     HF_STORAGE_FAILURE);
    hf_page_clear(&page);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        a_list_after_the_store_has_failed_is_a_storage_failure) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

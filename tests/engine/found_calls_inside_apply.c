/* hf_list, hf_stats, hf_maintain, hf_flush and hf_submit from inside an apply function: a deadlock,
 * not misuse. */
#include "engine/kit/engine.h"
#include "support/test.h"
#include <unistd.h>
static struct kit *k;
static enum hf_status fn(struct hf_tx *tx, void *arg)
{
    struct hf_page page;
    (void)tx;
    (void)arg;
    KIT_WANT(hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page) == HF_MISUSE);
    hf_flush(k->db);
    KIT_WANT(!hf_maintain(k->db));
    struct hf_stats st;
    hf_stats(k->db, &st);
    return HF_OK;
}
static void no_call_from_inside_an_apply_function_deadlocks(void **s)
{
    (void)s;
    k = kit_make();
    alarm(20); /* a deadlock would hang here */
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                                    .key = hf_str("k"),
                                                    .apply = { .name = hf_str("n"), .fn = fn } }),
                     HF_OK);
    alarm(0);
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(
        no_call_from_inside_an_apply_function_deadlocks) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

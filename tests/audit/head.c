/* A chain head that was noted earlier is found in a later audit, and is missed in a store that was
 * replaced or cut short. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include "audit/audit.h"

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static struct hf_head head_now(void)
{
    struct hf_head head;
    assert_int_equal(hf_head(k->db, &head), HF_OK);
    return head;
}

static void held(int count)
{
    char id[HF_ID_SIZE];
    for (int i = 0; i < count; i++)
        kit_held(k, "room", HOUR, id);
}

/* Is the head found in the closed store? The verdict must say so too. */
static bool found(const struct hf_head *head)
{
    struct hf_audit_report report;
    struct hf_audit_options options = { .expect_head = head->hash };
    struct hf_error why;
    assert_int_equal(hf_audit_run(k->dir, &options, &report, &why), HF_OK);
    bool is_found = report.head_found;
    assert_int_equal(report.verdict, is_found ? HF_AUDIT_OK : HF_AUDIT_VIOLATIONS);
    hf_audit_report_free(&report);
    return is_found;
}

static void every_head_that_was_noted_is_found(void **state)
{
    (void)state;
    enum { NOTES = 5 };
    struct hf_head notes[NOTES];
    assert_int_equal(kit_resource(k, "room", 100), HF_OK);
    for (int i = 0; i < NOTES; i++) {
        kit_at(k, i * SECOND);
        held(3);
        notes[i] = head_now();
        assert_int_equal(notes[i].at, KIT_START + i * SECOND);
        assert_true(i == 0 || notes[i].position > notes[i - 1].position);
        if (i == 2) {
            kit_reopen(k);
            struct hf_head again = head_now();
            assert_memory_equal(again.hash, notes[i].hash, sizeof again.hash);
            assert_int_equal(again.position, notes[i].position);
            assert_int_equal(again.at, notes[i].at);
        }
    }
    kit_close(k);
    for (int i = 0; i < NOTES; i++)
        assert_true(found(&notes[i]));
    notes[2].hash[7] ^= 1;
    assert_false(found(&notes[2]));
}

static void the_head_of_another_store_is_missing(void **state)
{
    (void)state;
    assert_int_equal(kit_resource(k, "room", 100), HF_OK);
    held(3);
    struct hf_head head = head_now();
    kit_leave(k);
    kit_open(k);
    assert_int_equal(kit_resource(k, "room", 100), HF_OK);
    held(3);
    kit_close(k);
    assert_false(found(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(every_head_that_was_noted_is_found),
        TEST(the_head_of_another_store_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

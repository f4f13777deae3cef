/* The table of actions says nothing that cannot be. */
#include "api/call.h"
#include "core/action.h"
#include "core/digest.h"
#include "support/test.h"

static bool is_inside(uint16_t at, size_t size)
{
    return at + size <= sizeof(struct hf_request);
}

static void every_action_has_a_name_of_its_own(void **state)
{
    (void)state;
    static const struct hf_action_info none;
    assert_null(hf_actions[0].name);
    for (int a = 1; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        if (!action->name) { /* no action: nothing may be said of it */
            assert_memory_equal(action, &none, sizeof *action);
            continue;
        }
        for (int b = 1; b < a; b++)
            if (hf_actions[b].name)
                assert_string_not_equal(action->name, hf_actions[b].name);
        assert_true(action->record_max > 0 && action->weight > 0);
    }
}

static void other_numbers_have_the_empty_row(void **state)
{
    (void)state;
    static const int others[] = { -1, 0, HF_ACTIONS_END, 255, 1 << 20 };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_ptr_equal(hf_action_of((enum hf_action)others[i]), &hf_actions[0]);
    assert_null(hf_actions[0].decide);
}

static void keyed_actions_have_a_digest_and_no_others(void **state)
{
    (void)state;
    static const uint8_t zeros[HF_DIGEST_SIZE];
    for (int a = 0; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        struct hf_request request = { .action = (enum hf_action)a };
        uint8_t digest[HF_DIGEST_SIZE];
        hf_digest(&request, digest);
        assert_int_equal(action->keyed, action->digest != NULL);
        assert_int_equal(action->keyed || a == HF_BEGIN, memcmp(digest, zeros, sizeof zeros) != 0);
        for (const struct hf_digest_field *f = action->digest; f && f->name; f++) {
            bool is_bytes = f->type == HF_DIGEST_BYTES || f->type == HF_DIGEST_ID;
            assert_true(is_inside(f->at, is_bytes ? sizeof(struct hf_bytes) : sizeof(uint64_t)));
            assert_true(is_inside(f->has, sizeof(bool)));
            if (f != action->digest)
                assert_true(strcmp(f[-1].name, f->name) < 0);
        }
    }
}

static void what_a_row_says_fits_together(void **state)
{
    (void)state;
    for (int a = 1; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        assert_true(is_inside(action->row_name, sizeof(struct hf_bytes)));
        assert_true(is_inside(action->payload, sizeof(struct hf_bytes)));
        assert_int_equal(action->payload > 0, action->payload_max > 0);
        if (action->ends == HF_ENDS_PAYLOAD)
            assert_true(action->payload > 0);
        if (action->changes_once)
            assert_true(action->changes >> action->changes_once & 1);
        if (action->reads)
            assert_false(action->keyed || action->swift || action->ends || action->draws ||
                         action->changes);
        else if (action->name)
            assert_true(action->changes != 0);
        if (action->decide)
            assert_true(action->row != 0);
    }
}

static void every_call_has_an_action(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        const struct hf_action_info *action = hf_action_of(call->action);
        assert_int_equal(strchr(call->path, '{') != NULL, call->param != NULL);
        if (call->kind != HF_CALL_DO) {
            assert_int_equal(call->action, 0);
            continue;
        }
        assert_non_null(action->decide);
        assert_int_equal(call->key, action->keyed);
        assert_int_equal(call->role == HF_ROLE_READ, action->reads);
        if (call->param)
            assert_true(action->row_name > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_action_has_a_name_of_its_own),
        cmocka_unit_test(other_numbers_have_the_empty_row),
        cmocka_unit_test(keyed_actions_have_a_digest_and_no_others),
        cmocka_unit_test(what_a_row_says_fits_together),
        cmocka_unit_test(every_call_has_an_action),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

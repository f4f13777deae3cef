/* The names that every interface shows. */
#include "holdfast.h"
#include "support/test.h"

static void statuses(void **state)
{
    (void)state;
    static const struct {
        enum hf_status status;
        const char *code;
        enum hf_status_kind kind;
    } all[] = {
        { HF_OK, "ok", HF_KIND_OK },
        { HF_INVALID_REQUEST, "invalid-request", HF_KIND_REFUSAL },
        { HF_NOT_KNOWN, "not-known", HF_KIND_REFUSAL },
        { HF_RESOURCE_UNAVAILABLE, "resource-unavailable", HF_KIND_REFUSAL },
        { HF_NOT_HELD, "not-held", HF_KIND_REFUSAL },
        { HF_WINDOW_ELAPSED, "window-elapsed", HF_KIND_REFUSAL },
        { HF_WINDOW_NOT_ELAPSED, "window-not-elapsed", HF_KIND_REFUSAL },
        { HF_IN_PROGRESS, "in-progress", HF_KIND_REFUSAL },
        { HF_OUTCOME_UNKNOWN, "outcome-unknown", HF_KIND_REFUSAL },
        { HF_STALE_FENCE, "stale-fence", HF_KIND_REFUSAL },
        { HF_VERSION_MISMATCH, "version-mismatch", HF_KIND_REFUSAL },
        { HF_TOKEN_COLLISION, "token-collision", HF_KIND_REFUSAL },
        { HF_LEASE_HELD, "lease-held", HF_KIND_REFUSAL },
        { HF_REFUSED, "refused", HF_KIND_REFUSAL },
        { HF_STORAGE_FAILURE, "storage-failure", HF_KIND_FAULT },
        { HF_NO_MEMORY, "no-memory", HF_KIND_FAULT },
        { HF_MISUSE, "misuse", HF_KIND_FAULT },
        { HF_STORE_BUSY, "store-busy", HF_KIND_FAULT },
        { HF_STORE_DAMAGED, "store-damaged", HF_KIND_FAULT },
        { HF_STORE_NEWER, "store-newer", HF_KIND_FAULT },
        { HF_STORE_ABSENT, "store-absent", HF_KIND_FAULT },
        { HF_INDETERMINATE, "indeterminate", HF_KIND_INDETERMINATE },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_string_equal(hf_status_code(all[i].status), all[i].code);
        assert_int_equal(hf_status_kind(all[i].status), all[i].kind);
    }
    static const int unknown[] = { -1, 14, 31, 39, 63, 65, 1000 };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_string_equal(hf_status_code((enum hf_status)unknown[i]), "unknown");
}

static void actions(void **state)
{
    (void)state;
    static const char *const names[80] = {
        [1] = "place_hold",    [2] = "confirm",       [3] = "release",
        [4] = "expire",        [5] = "reverse",       [6] = "set_resource",
        [7] = "set_guard",     [8] = "check",         [9] = "record",
        [10] = "admit",        [11] = "begin",        [12] = "complete",
        [13] = "fail",         [14] = "heartbeat",    [15] = "grant",
        [16] = "renew",        [17] = "return",       [18] = "write",
        [19] = "merge",        [20] = "apply",        [21] = "delete_register",
        [22] = "delete_lease", [32] = "sweep",        [33] = "configure",
        [64] = "get_hold",     [65] = "get_resource", [66] = "get_guard",
        [67] = "get_claim",    [68] = "get_lease",    [69] = "get_register",
        [70] = "get_token",    [71] = "get_value"
    };
    for (int a = 0; a < 80; a++)
        assert_string_equal(hf_action_name((enum hf_action)a), names[a] ? names[a] : "unknown");
    assert_string_equal(hf_action_name((enum hf_action) - 1), "unknown");
}

static void version(void **state)
{
    (void)state;
    assert_string_equal(hf_version(), HF_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(actions),
        cmocka_unit_test(version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

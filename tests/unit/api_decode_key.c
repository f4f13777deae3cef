/* Idempotency-Key: bare or quoted, needed or not. */
#include "unit/kit/decode.h"

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *field, *key;
    } fine[] = {
        { "abc", "abc" },
        { "\"abc\"", "abc" },
        { "", "" }, /* for the core to refuse */
        { "\"\"", "" },
        { "\"a\\\"b\\\\c\"", "a\"b\\c" },
        { "\"\\\\\"", "\\" },
        { "\"a b~\"", "a b~" },
        { "a\"b", "a\"b" },
        { "abc\"", "abc\"" },
        { "'abc'", "'abc'" },
        { "a\\\"b", "a\\\"b" },
        { "\xff\xfe", "\xff\xfe" },
        { "\"with, comma; and more\"", "with, comma; and more" },
    };
    static const char *const broken[] = {
        "\"",          "\"abc",    "\"a\"b\"",      "\"a\\\"",  "\"a\\b\"", "\"a\\u0062\"",
        "\"abc\";x=1", "\"abc\" ", "\"a\xc3\xa9\"", "\"a\tb\"", "\"\\",     "\"a\x7f\"",
    };
    struct hf_bytes key;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        assert_true(hf_api_key(hf_str(fine[i].field), &decoded.arena, &key));
        same(key, fine[i].key);
        same(good(POST, "/v1/holds/x/confirm", fine[i].field, NULL)->key, fine[i].key);
    }
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_false(hf_api_key(hf_str(broken[i]), &decoded.arena, &key));
        bad(POST, "/v1/holds/x/confirm", broken[i], NULL,
            "Idempotency-Key: expected a bare key, or a string in quotes");
        /* Calls that need no key ignore it, if it is one. */
        bad(GET, "/v1/holds/x", broken[i], NULL, "Idempotency-Key: ");
        bad(GET, "/v1/holds", broken[i], NULL, "Idempotency-Key: ");
        bad(GET, "/v1/export", broken[i], NULL, "Idempotency-Key: ");
        bad(POST, "/v1/guards/g/check", broken[i], "{\"identity\":\"i\"}", "Idempotency-Key: ");
    }
    assert_int_equal(good(GET, "/v1/holds/x", "k", NULL)->key.size, 0);
    assert_int_equal(good(POST, "/v1/guards/g/check", "k", "{\"identity\":\"i\"}")->key.size, 0);
    /* A claim's key stands elsewhere; a header may only say the same. */
    same(good(POST, "/v1/claims/c/complete", "\"c\"", "{\"fence\":1}")->key, "c");
    bad(POST, "/v1/claims/c/complete", "k", "{\"fence\":1}",
        "Idempotency-Key: this header is not the claim's key, which is in the path.");
    bad(POST, "/v1/claims", "", "{\"key\":\"c\",\"payload\":1}",
        "Idempotency-Key: this header is not the claim's key, which is in the body.");
    same(good(GET, "/v1/claims/c", "k", NULL)->key, "c");
    assert_true(hf_api_key(hf_mem(NULL, 0), &decoded.arena, &key));
}

/* Every call that is marked K, without one. */
static void test_missing_keys(void **state)
{
    (void)state;
    unsigned count = 0;
    for (const struct hf_call *call = hf_calls; call < hf_calls + hf_call_count; call++) {
        struct hf_api_input in = { .params = { hf_str("x") } };
        struct hf_api_fault why = { .detail = "" };
        struct hf_request request;
        if (!call->key)
            continue;
        count++;
        assert_int_equal(hf_api_decode(call, &in, &decoded.arena, &request, &why),
                         HF_INVALID_REQUEST);
        assert_non_null(strstr(why.detail, "Idempotency-Key: this header is missing"));
    }
    assert_int_equal(count, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_missing_keys),
    };
    return cmocka_run_group_tests(tests, NULL, decode_end);
}

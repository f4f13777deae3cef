/* Lines of a batch: the same requests as over their own paths, and what only a line can say
 * wrongly. */
#include "unit/kit/decode.h"

static const struct hf_request *line(const char *text)
{
    (void)decode_line(text);
    expect_good(text);
    return &decoded.request;
}

static void refused(const char *text, const char *detail)
{
    (void)decode_line(text);
    expect_bad(text, detail);
}

static void test_every_operation(void **state)
{
    (void)state;
    const struct hf_request *r =
        line("{\"op\":\"place_hold\",\"key\":\"k\",\"resource\":\"r\",\"requester\":\"q\","
             "\"duration\":\"15m\",\"fence\":2}");
    assert_int_equal(r->action, HF_PLACE_HOLD);
    same(r->key, "k");
    same(r->place_hold.resource, "r");
    same(r->place_hold.requester, "q");
    assert_int_equal(r->place_hold.duration_ms, 900000);
    assert_int_equal(r->place_hold.fence, 2);
    static const struct {
        const char *op;
        enum hf_action action;
    } ends[] = { { "confirm", HF_CONFIRM },
                 { "release", HF_RELEASE },
                 { "expire", HF_EXPIRE },
                 { "reverse", HF_REVERSE } };
    char text[128];
    for (size_t i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "{\"id\":\"x\",\"key\":\"k\",\"op\":\"%s\"}", ends[i].op);
        r = line(text);
        assert_int_equal(r->action, ends[i].action);
        same(r->hold.id, "x");
        same(r->key, "k");
    }
    r = line("{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\"}");
    assert_int_equal(r->action, HF_CHECK);
    same(r->identity.guard, "g");
    same(r->identity.identity, "i");
    r = line("{\"op\":\"record\",\"guard\":\"g\",\"identity\":\"i\",\"result\":5}");
    assert_int_equal(r->action, HF_RECORD);
    assert_true(r->identity.has_result);
    r = line("{\"op\":\"admit\",\"guard\":\"g\",\"identity\":\"i\",\"key\":\"ignored\"}");
    assert_int_equal(r->action, HF_ADMIT);
    assert_int_equal(r->key.size, 0);
    r = line("{\"op\":\"begin\",\"key\":\"c\",\"payload\":{\"b\":1,\"a\":2},\"lease\":\"5s\",\"on_"
             "abandon\":\"retry\"}");
    assert_int_equal(r->action, HF_BEGIN);
    same(r->key, "c");
    same(r->begin.payload, "{\"a\":2,\"b\":1}");
    assert_int_equal(r->begin.lease_ms, 5000);
    r = line("{\"op\":\"complete\",\"key\":\"c\",\"fence\":7,\"response\":\"done\"}");
    assert_int_equal(r->action, HF_COMPLETE);
    same(r->key, "c");
    same(r->settle.response, "done");
    r = line("{\"op\":\"fail\",\"key\":\"c\",\"fence\":7,\"retryable\":true}");
    assert_int_equal(r->action, HF_FAIL);
    assert_true(r->settle.retryable);
    r = line("{\"op\":\"heartbeat\",\"key\":\"c\",\"fence\":7}");
    assert_int_equal(r->action, HF_HEARTBEAT);
    assert_int_equal(r->settle.fence, 7);
    r = line("{\"op\":\"merge\",\"name\":\"n\",\"value\":-4,\"type\":\"min\"}");
    assert_int_equal(r->action, HF_MERGE);
    same(r->merge.name, "n");
    assert_int_equal(r->merge.value->type, HF_TYPE_MIN);
    assert_int_equal(r->merge.value->number, -4);
    r = line("{\"op\":\"write\",\"name\":\"n\",\"key\":\"k\",\"value\":\"v\",\"if_version\":0}");
    assert_int_equal(r->action, HF_WRITE);
    same(r->write.name, "n");
    same(r->write.value, "v");
    same(r->key, "k");
}

/* Where `op` stands does not matter, nor what stands before it. */
static void test_op_anywhere(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"op\":\"write\",\"key\":\"k\",\"name\":\"n\",\"value\":{\"op\":\"merge\"}}",
        "{\"value\":{\"op\":\"merge\"},\"key\":\"k\",\"op\":\"write\",\"name\":\"n\"}",
        ("  "
         "{\"name\":\"n\",\"value\":{\"op\":\"merge\"},\"key\":\"k\",\"\\u006fp\":\"writ\\u0065\" "
         "} \r"),
    };
    for (size_t i = 0; i < 3; i++) {
        const struct hf_request *r = line(lines[i]);
        assert_int_equal(r->action, HF_WRITE);
        same(r->write.name, "n");
        assert_int_equal(r->write.value.size, 16);
    }
    refused("{\"value\":{\"op\":\"write\"}}", "op: missing");
}

static void test_keys(void **state)
{
    (void)state;
    /* In a line a key is a JSON string: quotes are part of it if they are escaped in it. */
    same(line("{\"op\":\"confirm\",\"id\":\"x\",\"key\":\"\\\"k\\\"\"}")->key, "\"k\"");
    assert_int_equal(line("{\"op\":\"confirm\",\"id\":\"x\",\"key\":\"\"}")->key.size,
                     0); /* for the core */
    const struct hf_request *r =
        line("{\"op\":\"confirm\",\"id\":\"x\",\"client\":\"c\",\"sequence\":9}");
    assert_int_equal(r->key.size, 0);
    same(r->client, "c");
    assert_int_equal(r->sequence, 9);
    static const char *const keyed[] = {
        "place_hold\",\"resource\":\"r\",\"requester\":\"q\",\"duration\":1",
        "confirm\",\"id\":\"x\"",
        "release\",\"id\":\"x\"",
        "expire\",\"id\":\"x\"",
        "reverse\",\"id\":\"x\"",
        "write\",\"name\":\"n\",\"value\":1"
    };
    for (size_t i = 0; i < sizeof keyed / sizeof *keyed; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"op\":\"%s}", keyed[i]);
        refused(text, "key: expected a string, or client and sequence instead, but not both.");
        snprintf(text, sizeof text, "{\"op\":\"%s,\"key\":\"k\",\"client\":\"c\",\"sequence\":1}",
                 keyed[i]);
        refused(text, "key: expected a string, or client and sequence instead, but not both.");
        snprintf(text, sizeof text, "{\"op\":\"%s,\"client\":\"c\"}", keyed[i]);
        refused(text, "client, sequence: expected both or none.");
        snprintf(text, sizeof text, "{\"op\":\"%s,\"key\":\"k\",\"sequence\":1}", keyed[i]);
        refused(text, "client, sequence: expected both or none.");
        snprintf(text, sizeof text, "{\"op\":\"%s,\"client\":\"c\",\"sequence\":1}", keyed[i]);
        assert_int_equal(line(text)->sequence, 1);
    }
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"key\":5}", "key: expected a string, got 5.");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"client\":\"\\u0000\",\"sequence\":1}",
            "client: expected text without NUL.");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"client\":\"c\",\"sequence\":-1}",
            "sequence: expected a whole number");
    refused("{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\",\"key\":5}",
            "key: expected a string, got 5.");
    /* Numbered requests are for calls with a key. */
    refused("{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\",\"client\":\"c\",\"sequence\":1}",
            "Unknown member \"client\". This call takes op, key, guard, identity.");
    refused("{\"op\":\"complete\",\"fence\":1,\"client\":\"c\",\"sequence\":1}",
            "Unknown member \"client\"");
    refused("{\"op\":\"complete\",\"fence\":1}", "key: missing, expected a string.");
    refused("{\"op\":\"begin\",\"payload\":1}", "key: missing, expected a string.");
    assert_int_equal(line("{\"op\":\"fail\",\"key\":\"a\\u0000b\",\"fence\":1}")->key.size, 3);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("", "line: expected an object at byte 0, got the end.");
    refused("[]", "line: expected an object, got an array.");
    refused("{}", "op: missing, expected the name of an operation such as \"place_hold\".");
    refused("{\"key\":\"k\"}", "op: missing");
    refused("{\"op\":5}", "op: expected a string, got 5.");
    refused(
        "{\"op\":\"fly\"}",
        "op: expected place_hold, confirm, release, expire, reverse, check, record, admit, begin, "
        "complete, fail, heartbeat, merge, write, delete_register or delete_lease, got \"fly\".");
    refused("{\"op\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
            "op: expected place_hold");
    refused("{\"op\":\"get_hold\",\"id\":\"x\"}", "op: expected place_hold");
    refused("{\"op\":\"grant\",\"name\":\"x\"}", "op: expected place_hold");
    refused("{\"op\":\"confirm\",\"op\":\"confirm\",\"id\":\"x\",\"key\":\"k\"}",
            "duplicate member \"op\"");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"id\":\"x\",\"key\":\"k\"}",
            "duplicate member \"id\"");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"key\":\"k\"",
            "line: expected ',' or '}' at byte 34, got the end.");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"key\":\"k\"} {}",
            "line: expected nothing more at byte 36, got '{'.");
    refused("{\"op\":\"confirm\",\"key\":\"k\"}", "id: missing, expected a string.");
    refused("{\"op\":\"confirm\",\"id\":7,\"key\":\"k\"}", "id: expected a string, got 7.");
    refused("{\"op\":\"confirm\",\"id\":\"\\u0000\",\"key\":\"k\"}",
            "id: expected text without NUL.");
    refused("{\"op\":\"confirm\",\"id\":\"x\",\"key\":\"k\",\"name\":\"n\"}",
            "Unknown member \"name\". This call takes op, key, id.");
    refused("{\"op\":\"check\",\"name\":\"g\",\"identity\":\"i\"}", "Unknown member \"name\"");
    refused("{\"op\":\"check\",\"identity\":\"i\"}", "guard: missing, expected a string.");
    refused("{\"op\":\"write\",\"key\":\"k\",\"value\":1}", "name: missing, expected a string.");
    refused("{\"op\":\"write\",\"key\":\"k\",\"name\":\"n\"}",
            "value: missing, expected any JSON.");
    refused("{\"op\":\"place_hold\",\"key\":\"k\",\"id\":\"x\"}",
            "Unknown member \"id\". This call takes "
            "op, key, resource, requester, duration, fence.");
    refused("{\"a\":1,\"a\":2,\"op\":\"confirm\"}", "line: duplicate member \"a\"");
    refused("{\"a\":[}", "line: expected a value at byte 6, got '}'.");
}

/* What was not understood says so, and leaves nothing that could be taken for a request. */
static void test_no_call(void **state)
{
    (void)state;
    const struct hf_call *call = hf_calls;
    struct hf_request request = { .action = HF_CONFIRM };
    struct hf_api_fault why;
    assert_int_equal(hf_api_decode_line(hf_str("{\"op\":\"x\"}"), hf_str("t"), &decoded.arena,
                                        &request, &call, &why),
                     HF_INVALID_REQUEST);
    assert_null(call);
    assert_int_equal(request.action, 0);
    assert_int_equal(hf_api_decode_line(hf_str("{\"op\":\"confirm\"}"), hf_str("t"), &decoded.arena,
                                        &request, &call, &why),
                     HF_INVALID_REQUEST);
    assert_string_equal(call->op, "confirm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_op_anywhere),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, decode_end);
}

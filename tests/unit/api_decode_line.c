/* Lines of a batch: the same requests as over their own paths, and what only a line can say
 * wrongly. */
#include "unit/kit/decode.h"

#include "api/encode.h"

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
    r = line("{\"op\":\"abandon\",\"key\":\"c\",\"fence\":7}");
    assert_int_equal(r->action, HF_ABANDON);
    assert_int_equal(r->settle.fence, 7);
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
        assert_int_equal(r->write.value.size, HF_STORED_HEAD + 14);
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
    refused("{\"op\":\"begin\",\"payload\":1}", "key: it is missing. Send a key");
    assert_int_equal(line("{\"op\":\"fail\",\"key\":\"a\\u0000b\",\"fence\":1}")->key.size, 3);
}

/* Over HTTP and in a line, the same flaws are the same request. */
static void test_flaws(void **state)
{
    (void)state;
    refused("{\"op\":\"write\",\"key\":\"k\",\"name\":[1.0],\"value\":1,\"fence\":\"x\"}",
            "name: expected a string, got an array. The answer is bound to the key");
    assert_true(is_left_to_core());
    const struct hf_invalid *invalid = decoded.request.invalid;
    assert_int_equal(invalid->count, 2);
    assert_string_equal(invalid->flaws[0].name, "fence");
    same(invalid->flaws[0].sent, "\"x\"");
    assert_string_equal(invalid->flaws[1].name, "name");
    same(invalid->flaws[1].sent, "[1]");
    refused("{\"op\":\"confirm\",\"client\":\"c\",\"sequence\":4}", "id: missing");
    assert_true(is_left_to_core());
    refused("{\"op\":\"confirm\",\"key\":7,\"id\":7}", "key: expected a string, got 7.");
    assert_false(is_left_to_core());
    refused("{\"op\":\"confirm\",\"id\":7}", "key: expected a string, or client");
    assert_false(is_left_to_core());
    refused("{\"op\":\"confirm\",\"key\":\"k\",\"id\":7,\"colour\":1}", "Unknown member");
    assert_false(is_left_to_core());
    refused("{\"op\":\"check\",\"guard\":7,\"identity\":\"i\"}", "guard: expected a string");
    assert_false(is_left_to_core());
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
        "complete, fail, heartbeat, abandon, merge, write, delete_register or delete_lease, got "
        "\"fly\".");
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
            "Unknown member \"name\". This call takes op, key, id, late.");
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

/* Queries: filters, limits and cursors of lists, and the format of an export. */

static const struct hf_query *listed(const char *target)
{
    (void)decode_bytes(GET, target, NULL, hf_mem(NULL, 0));
    if (decoded.status != HF_OK)
        fail_msg("%s: %s", target, decoded.why.detail);
    same(decoded.query.tenant, "t");
    return &decoded.query;
}

static void list_refused(const char *target, const char *detail)
{
    bad(GET, target, NULL, NULL, detail);
}

static void test_holds(void **state)
{
    (void)state;
    const struct hf_query *q = listed("/v1/holds");
    assert_int_equal(q->kind, HF_LIST_HOLDS);
    assert_int_equal(q->state, 0);
    assert_int_equal(q->resource.size, 0);
    assert_int_equal(q->requester.size, 0);
    assert_int_equal(q->from, 0);
    assert_int_equal(q->to, 0);
    assert_int_equal(q->limit, 0);
    assert_int_equal(q->cursor, 0);
    q = listed("/v1/"
               "holds?state=released&resource=a%2Fb+c&requester=caf%c3%A9&from=2026-11-15T21:39:57."
               "123Z&to=@9&limit=1000&cursor=18446744073709551615");
    assert_int_equal(q->state, HF_RELEASED);
    same(q->resource, "a/b+c"); /* a plus is a plus */
    same(q->requester, "caf\xc3\xa9");
    assert_int_equal(q->from, INT64_C(1794778797123));
    assert_int_equal(q->to, 9);
    assert_int_equal(q->limit, 1000);
    assert_true(q->cursor == UINT64_MAX);
    q = listed("/v1/holds?&&limit=1&&%73tate=held&");
    assert_int_equal(q->limit, 1);
    assert_int_equal(q->state, HF_HELD);
    assert_int_equal(listed("/v1/holds?state=confirmed")->state, HF_CONFIRMED);
    assert_int_equal(listed("/v1/holds?state=expired")->state, HF_EXPIRED);
    /* Empty means any resource, any requester, from the start. */
    q = listed("/v1/holds?resource=&requester=&cursor=");
    assert_int_equal(q->resource.size + q->requester.size, 0);
    assert_int_equal(q->cursor, 0);
    assert_int_equal(listed("/v1/holds?from=2026-11-15")->from, INT64_C(1794700800000));
}

/* An end at the beginning of time, or before it, is an end: it must not turn into none. */
static void test_ends_long_ago(void **state)
{
    (void)state;
    assert_int_equal(listed("/v1/holds?to=1970-01-01")->to, 1);
    assert_int_equal(listed("/v1/holds?to=1969-12-31")->to, 1);
    assert_int_equal(listed("/v1/holds?to=@1")->to, 1);
    assert_int_equal(listed("/v1/holds?from=@0")->from, 0);
}

static void test_list_refusals(void **state)
{
    (void)state;
    list_refused("/v1/holds?limit=0", "limit: expected a whole number from 1 to 1000.");
    list_refused("/v1/holds?limit=1001", "limit: expected a whole number from 1 to 1000.");
    list_refused("/v1/holds?limit=4294967297", "limit: expected a whole number from 1 to 1000.");
    list_refused("/v1/holds?limit=18446744073709551617", "limit: expected a whole number.");
    list_refused("/v1/holds?limit=", "limit: expected a whole number.");
    list_refused("/v1/holds?limit", "limit: expected a whole number.");
    list_refused("/v1/holds?limit=-1", "limit: expected a whole number.");
    list_refused("/v1/holds?limit=1e2", "limit: expected a whole number.");
    list_refused("/v1/holds?limit=10%00", "limit: expected a whole number.");
    list_refused("/v1/holds?cursor=x",
                 "cursor: expected the next_cursor of a page, or nothing for the first page.");
    list_refused("/v1/holds?cursor=0", "cursor: expected the next_cursor of a page");
    list_refused("/v1/holds?cursor=18446744073709551616",
                 "cursor: expected the next_cursor of a page");
    list_refused("/v1/holds?cursor=null", "cursor: expected the next_cursor of a page");
    list_refused("/v1/holds?state=", "state: expected one of held, confirmed, released, expired.");
    list_refused("/v1/holds?state=Held",
                 "state: expected one of held, confirmed, released, expired.");
    list_refused("/v1/holds?state=held%7Cconfirmed", "state: expected one of held");
    list_refused("/v1/holds?state=held%00", "state: expected one of held");
    list_refused("/v1/holds?from=yesterday", "from: expected a time such as 2026-11-15T21:39:57Z");
    list_refused("/v1/holds?to=", "to: expected a time such as");
    list_refused("/v1/holds?to=2026-11-15T21:39:57", "to: expected a time such as");
    list_refused("/v1/holds?resource=%ff", "resource: expected UTF-8.");
    list_refused("/v1/holds?requester=a%00b", "requester: expected text without NUL.");
    list_refused("/v1/holds?resource=%4", "query: expected two hexadecimal digits after each %.");
    list_refused("/v1/holds?%zz=1", "query: expected two hexadecimal digits after each %.");
    list_refused("/v1/holds?%ff=1", "query: expected UTF-8.");
    list_refused("/v1/holds?limit=1&limit=1", "limit: it is given twice; give it once.");
    list_refused("/v1/holds?cursor=&cursor=", "cursor: it is given twice; give it once.");
    list_refused("/v1/holds?resource=a&%72esource=b", "resource: it is given twice; give it once.");
    list_refused("/v1/holds?colour=red",
                 "Unknown query parameter \"colour\". This call takes limit, "
                 "cursor, state, resource, requester, from, to.");
    list_refused("/v1/holds?=1", "Unknown query parameter \"\"");
    list_refused("/v1/holds?Limit=1", "Unknown query parameter \"Limit\"");
    list_refused("/v1/resources?state=held",
                 "Unknown query parameter \"state\". This call takes limit, cursor.");
}

static void test_other_lists(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum hf_list_kind kind;
    } lists[] = { { "/v1/resources", HF_LIST_RESOURCES },
                  { "/v1/guards", HF_LIST_GUARDS },
                  { "/v1/guards/a%20b/entries", HF_LIST_ENTRIES } };
    for (size_t i = 0; i < 3; i++) {
        char target[64];
        snprintf(target, sizeof target, "%s?cursor=12&limit=34", lists[i].path);
        const struct hf_query *q = listed(target);
        assert_int_equal(q->kind, lists[i].kind);
        assert_int_equal(q->cursor, 12);
        assert_int_equal(q->limit, 34);
        same(q->name, lists[i].kind == HF_LIST_ENTRIES ? "a b" : "");
        snprintf(target, sizeof target, "%s?limit=0", lists[i].path);
        list_refused(target, "limit: expected a whole number from 1 to 1000.");
        snprintf(target, sizeof target, "%s?resource=x", lists[i].path);
        list_refused(target, "Unknown query parameter \"resource\"");
    }
    list_refused("/v1/guards/%ff/entries", "path: expected UTF-8.");
    list_refused("/v1/guards/%00/entries", "path: expected text without NUL.");
}

/* The cursor that a page ends with leads on. */
static void test_cursors_come_back(void **state)
{
    (void)state;
    static const uint64_t cursors[] = { 1, 17, UINT64_MAX };
    for (size_t i = 0; i < 3; i++) {
        struct hf_buffer out = { 0 };
        struct hf_json j = { .out = &out };
        char target[64], text[32];
        hf_json_object(&j);
        hf_api_cursor(&j, cursors[i]);
        hf_json_object_end(&j);
        assert_int_equal(sscanf(hf_buffer_text(&out), "{\"next_cursor\":\"%31[0-9]\"}", text), 1);
        snprintf(target, sizeof target, "/v1/holds?cursor=%s", text);
        assert_true(listed(target)->cursor == cursors[i]);
        hf_buffer_free(&out);
    }
}

static void test_export(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        unsigned format;
        uint64_t sequence;
    } fine[] = { { "/v1/export", 0, 0 },
                 { "/v1/export?format=jsonl", 0, 0 },
                 { "/v1/export?format=sqlite", 1, 0 },
                 { "/v1/audit", 0, 0 },
                 { "/v1/trace/%ff", 0, 0 },
                 { "/metrics?", 0, 0 },
                 { "/v1/trace/till?sequence=12", 0, 12 } };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        decoded.wishes.format = 77;
        decoded.wishes.has_head = true;
        assert_int_equal(decode_bytes(GET, fine[i].target, NULL, hf_mem(NULL, 0)), HF_OK);
        assert_int_equal(decoded.wishes.format, fine[i].format);
        assert_int_equal(decoded.wishes.sequence, fine[i].sequence);
        assert_false(decoded.wishes.has_head);
    }
    list_refused("/v1/trace/till?sequence=0", "sequence: expected a whole number from 1.");
    list_refused("/v1/export?format=xml", "format: expected one of jsonl, sqlite.");
    list_refused("/v1/export?format=", "format: expected one of jsonl, sqlite.");
    list_refused("/v1/export?format=jsonl&format=sqlite",
                 "format: it is given twice; give it once.");
    list_refused("/v1/export?x=1", "Unknown query parameter \"x\". This call takes format.");
}

#define HASH "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"

static void test_audit(void **state)
{
    (void)state;
    assert_int_equal(decode_bytes(GET, "/v1/audit?expect_head=" HASH, NULL, hf_mem(NULL, 0)),
                     HF_OK);
    assert_true(decoded.wishes.has_head);
    assert_int_equal(decoded.wishes.head[1], 0x23);
    assert_int_equal(decoded.wishes.head[15], 0xef);
    list_refused("/v1/audit?expect_head=" HASH "0",
                 "expect_head: expected the 64 hexadecimal digits of a hash.");
    list_refused("/v1/audit?expect_head=",
                 "expect_head: expected the 64 hexadecimal digits of a hash.");
    list_refused("/v1/audit?head=" HASH,
                 "Unknown query parameter \"head\". This call takes expect_head.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation),
        cmocka_unit_test(test_op_anywhere),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_flaws),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_call),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_ends_long_ago),
        cmocka_unit_test(test_list_refusals),
        cmocka_unit_test(test_other_lists),
        cmocka_unit_test(test_cursors_come_back),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_audit),
    };
    return cmocka_run_group_tests(tests, NULL, decode_end);
}

/* Queries: filters, limits and cursors of lists, and the format of an export. */
#include "api/encode.h"
#include "unit/kit/decode.h"

static const struct hf_query *listed(const char *target)
{
    (void)decode_bytes(GET, target, NULL, hf_mem(NULL, 0));
    if (decoded.status != HF_OK)
        fail_msg("%s: %s", target, decoded.why.detail);
    same(decoded.query.tenant, "t");
    return &decoded.query;
}

static void refused(const char *target, const char *detail)
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

static void test_refusals(void **state)
{
    (void)state;
    refused("/v1/holds?limit=0", "limit: expected a whole number from 1 to 1000.");
    refused("/v1/holds?limit=1001", "limit: expected a whole number from 1 to 1000.");
    refused("/v1/holds?limit=4294967297", "limit: expected a whole number from 1 to 1000.");
    refused("/v1/holds?limit=18446744073709551617", "limit: expected a whole number.");
    refused("/v1/holds?limit=", "limit: expected a whole number.");
    refused("/v1/holds?limit", "limit: expected a whole number.");
    refused("/v1/holds?limit=-1", "limit: expected a whole number.");
    refused("/v1/holds?limit=1e2", "limit: expected a whole number.");
    refused("/v1/holds?limit=10%00", "limit: expected a whole number.");
    refused("/v1/holds?cursor=x",
            "cursor: expected the next_cursor of a page, or nothing for the first page.");
    refused("/v1/holds?cursor=0", "cursor: expected the next_cursor of a page");
    refused("/v1/holds?cursor=18446744073709551616", "cursor: expected the next_cursor of a page");
    refused("/v1/holds?cursor=null", "cursor: expected the next_cursor of a page");
    refused("/v1/holds?state=", "state: expected one of held, confirmed, released, expired.");
    refused("/v1/holds?state=Held", "state: expected one of held, confirmed, released, expired.");
    refused("/v1/holds?state=held%7Cconfirmed", "state: expected one of held");
    refused("/v1/holds?state=held%00", "state: expected one of held");
    refused("/v1/holds?from=yesterday", "from: expected a time such as 2026-11-15T21:39:57Z");
    refused("/v1/holds?to=", "to: expected a time such as");
    refused("/v1/holds?to=2026-11-15T21:39:57", "to: expected a time such as");
    refused("/v1/holds?resource=%ff", "resource: expected UTF-8.");
    refused("/v1/holds?requester=a%00b", "requester: expected text without NUL.");
    refused("/v1/holds?resource=%4", "query: expected two hexadecimal digits after each %.");
    refused("/v1/holds?%zz=1", "query: expected two hexadecimal digits after each %.");
    refused("/v1/holds?%ff=1", "query: expected UTF-8.");
    refused("/v1/holds?limit=1&limit=1", "limit: it is given twice; give it once.");
    refused("/v1/holds?cursor=&cursor=", "cursor: it is given twice; give it once.");
    refused("/v1/holds?resource=a&%72esource=b", "resource: it is given twice; give it once.");
    refused("/v1/holds?colour=red", "Unknown query parameter \"colour\". This call takes limit, "
                                    "cursor, state, resource, requester, from, to.");
    refused("/v1/holds?=1", "Unknown query parameter \"\"");
    refused("/v1/holds?Limit=1", "Unknown query parameter \"Limit\"");
    refused("/v1/resources?state=held",
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
        refused(target, "limit: expected a whole number from 1 to 1000.");
        snprintf(target, sizeof target, "%s?resource=x", lists[i].path);
        refused(target, "Unknown query parameter \"resource\"");
    }
    refused("/v1/guards/%ff/entries", "path: expected UTF-8.");
    refused("/v1/guards/%00/entries", "path: expected text without NUL.");
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
        unsigned choice;
    } fine[] = {
        { "/v1/export", 0 }, { "/v1/export?format=jsonl", 0 }, { "/v1/export?format=sqlite", 1 },
        { "/v1/audit", 0 },  { "/v1/trace/%ff", 0 },           { "/metrics?", 0 }
    };
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        decoded.choice = 77;
        assert_int_equal(decode_bytes(GET, fine[i].target, NULL, hf_mem(NULL, 0)), HF_OK);
        assert_int_equal(decoded.choice, fine[i].choice);
    }
    refused("/v1/export?format=xml", "format: expected one of jsonl, sqlite.");
    refused("/v1/export?format=", "format: expected one of jsonl, sqlite.");
    refused("/v1/export?format=jsonl&format=sqlite", "format: it is given twice; give it once.");
    refused("/v1/export?x=1", "Unknown query parameter \"x\". This call takes format.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_ends_long_ago),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_other_lists),
        cmocka_unit_test(test_cursors_come_back),
        cmocka_unit_test(test_export),
    };
    return cmocka_run_group_tests(tests, NULL, decode_end);
}

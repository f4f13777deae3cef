/* Values: those of merges, and any JSON as stored bytes; what goes in comes out, and what came out
 * goes in. */
#include "api/encode.h"
#include "unit/kit/decode.h"
#include "json/reader.h"
#include "json/stored.h"

static struct hf_buffer out;

static int end(void **state)
{
    hf_buffer_free(&out);
    return decode_end(state);
}

/* Good until the next call: names and bytes are borrowed from the body. */
static const struct hf_value *merged(const char *type, const char *value)
{
    static char body[512];
    snprintf(body, sizeof body, "{\"type\":\"%s\",\"value\":%s}", type, value);
    const struct hf_request *r = good(POST, "/v1/registers/n/merge", NULL, body);
    assert_int_equal(r->action, HF_MERGE);
    same(r->merge.name, "n");
    return r->merge.value;
}

static void refused(const char *type, const char *value, const char *detail)
{
    char body[512];
    snprintf(body, sizeof body, "{\"type\":\"%s\",\"value\":%s}", type, value);
    bad(POST, "/v1/registers/n/merge", NULL, body, detail);
}

static void test_simple_values(void **state)
{
    (void)state;
    assert_int_equal(merged("max", "-5")->type, HF_TYPE_MAX);
    assert_true(merged("max", "-9223372036854775808")->number == INT64_MIN);
    assert_true(merged("min", "9223372036854775807")->number == INT64_MAX);
    assert_int_equal(merged("min", "1")->type, HF_TYPE_MIN);
    assert_true(merged("or", "true")->flag);
    assert_false(merged("or", "false")->flag);
    assert_int_equal(merged("or", "false")->type, HF_TYPE_OR);
    refused("max", "1.0",
            "value: expected a whole number from -9223372036854775808 to 9223372036854775807, got "
            "1.0.");
    refused("max", "1e3", "got 1e3.");
    refused("min", "-0", "got -0.");
    refused("min", "9223372036854775808", "got 9223372036854775808.");
    refused("min", "\"1\"", "got \"1\".");
    refused("or", "1", "value: expected true or false, got 1.");
    refused(
        "plain", "1",
        "type: expected one of max, min, or, union, lww, vector, counter, updown, got \"plain\".");
    refused("MAX", "1", "type: expected one of max");
}

static void test_unions(void **state)
{
    (void)state;
    const struct hf_value *v = merged("union", "[ \"a\" , \"\\u0062\" ]");
    assert_int_equal(v->type, HF_TYPE_UNION);
    assert_int_equal(v->item_count, 2);
    same(v->items[0].name, "a");
    same(v->items[1].name, "b");
    assert_int_equal(merged("union", "[]")->item_count, 0);
    v = merged("union", "[\"b\",\"a\",\"b\",\"\",\"\\u0061\",\"ab\"]");
    assert_int_equal(v->item_count, 4);
    same(v->items[0].name, "");
    same(v->items[1].name, "a");
    same(v->items[2].name, "ab");
    same(v->items[3].name, "b");
    refused("union", "[1]", "value: expected a string, got 1.");
    refused("union", "{}", "value: expected an array, got an object.");
    refused("union", "[\"a\\u0000\"]", "value: each name in it: expected text without NUL.");
}

static void test_nodes(void **state)
{
    (void)state;
    static const char *const types[] = { "vector", "counter" };
    for (size_t i = 0; i < 2; i++) {
        const struct hf_value *v = merged(types[i], "{\"a\":5,\"b\":18446744073709551615}");
        assert_int_equal(v->type, i == 0 ? HF_TYPE_VECTOR : HF_TYPE_COUNTER);
        assert_int_equal(v->item_count, 2);
        same(v->items[0].name, "a");
        assert_int_equal(v->items[0].up, 5);
        assert_true(v->items[1].up == UINT64_MAX); /* for the core to refuse */
        assert_int_equal(merged(types[i], "{}")->item_count, 0);
        refused(types[i], "{\"a\":-1}", "value: expected a whole number from 0 to");
        refused(types[i], "{\"a\":{\"up\":1}}", "value: expected a whole number from 0 to");
        refused(types[i], "[]", "value: expected an object, got an array.");
        refused(types[i], "{\"a\":1,\"\\u0061\":2}", "value: duplicate member \"a\"");
        refused(types[i], "{\"\\u0000\":1}", "value: each name in it: expected text without NUL.");
    }
    const struct hf_value *v =
        merged("updown", "{\"a\":{\"down\":2,\"up\":5},\"b\":{\"down\":1},\"c\":{}}");
    assert_int_equal(v->type, HF_TYPE_UPDOWN);
    assert_int_equal(v->item_count, 3);
    assert_int_equal(v->items[0].up, 5);
    assert_int_equal(v->items[0].down, 2);
    assert_int_equal(v->items[1].up, 0);
    assert_int_equal(v->items[1].down, 1);
    assert_int_equal(v->items[2].up + v->items[2].down, 0);
    refused("updown", "{\"a\":5}", "value: expected an object, got 5.");
    refused("updown", "{\"a\":{\"sideways\":1}}",
            "value: expected only up and down, got the member \"sideways\".");
    refused("updown", "{\"a\":{\"up\":1,\"up\":2}}", "value: duplicate member \"up\"");
    refused("updown", "{\"a\":{\"up\":true}}", "value: expected a whole number from 0 to");
}

static void test_lww(void **state)
{
    (void)state;
    const struct hf_value *v = merged("lww", "{\"node\":\"n1\",\"value\":\"v\",\"timestamp\":-12}");
    assert_int_equal(v->type, HF_TYPE_LWW);
    same(v->bytes, "v");
    same(v->node, "n1");
    assert_int_equal(v->timestamp, -12);
    v = merged("lww", "{\"value\":{\"x\": [1]},\"timestamp\":1,\"node\":\"n\"}");
    same_json(v->bytes, "{\"x\":[1]}", "{\"x\":[1]}");
    refused("lww", "{\"value\":1,\"timestamp\":1}",
            "value: expected value, timestamp and node, all three.");
    refused("lww", "{}", "value: expected value, timestamp and node, all three.");
    refused("lww", "{\"value\":1,\"timestamp\":1,\"node\":\"n\",\"x\":1}",
            "value: expected only value, timestamp and node, got the member \"x\".");
    refused("lww", "{\"value\":1,\"timestamp\":\"now\",\"node\":\"n\"}",
            "value: expected a whole number from -9");
    refused("lww", "{\"value\":1,\"timestamp\":1,\"node\":5}", "value: expected a string, got 5.");
    refused("lww", "{\"value\":1,\"timestamp\":1,\"node\":\"\\u0000\"}",
            "value: node: expected text without NUL.");
    refused("lww", "5", "value: expected an object, got 5.");
}

/* The value may come before its type, and places in it are counted from the body's first byte. */
static void test_order(void **state)
{
    (void)state;
    const struct hf_request *r = good(POST, "/v1/registers/n/merge", NULL,
                                      "{ \"value\" : [\"a\", \"b\"] , \"type\" : \"union\" }");
    assert_int_equal(r->merge.value->item_count, 2);
    bad(POST, "/v1/registers/n/merge", NULL, "{\"value\":[\"a\" \"b\"],\"type\":\"union\"}",
        "value: expected ',' or ']' at byte 14, got '\"'.");
    bad(POST, "/v1/registers/n/merge", NULL, "{\"value\":1}",
        "type: missing, expected one of max, min");
    bad(POST, "/v1/registers/n/merge", NULL, "{\"type\":\"max\"}",
        "value: missing, expected any JSON.");
    bad(POST, "/v1/registers/n/merge", NULL, "{\"type\":\"max\",\"value\":1,\"fence\":1}",
        "Unknown member \"fence\"");
}

/* One item more than a merge may have is refused before there is memory for millions. */
static void test_limits(void **state)
{
    (void)state;
    struct hf_buffer body = { 0 };
    for (int items = HF_MERGE_ITEMS_MAX; items <= HF_MERGE_ITEMS_MAX + 1; items++) {
        for (int kind = 0; kind < 2; kind++) {
            hf_buffer_reset(&body);
            hf_buffer_printf(&body, "{\"type\":\"%s\",\"value\":%c", kind ? "vector" : "union",
                             kind ? '{' : '[');
            for (int i = 0; i < items; i++)
                hf_buffer_printf(&body, kind ? "%s\"%d\":1" : "%s\"%d\"", i ? "," : "", i);
            hf_buffer_printf(&body, "%c}", kind ? '}' : ']');
            (void)decode_bytes(POST, "/v1/registers/n/merge", NULL, hf_mem(body.data, body.size));
            if (items > HF_MERGE_ITEMS_MAX) {
                expect_bad("too many", "value: expected at most 1024 items.");
                continue;
            }
            expect_good("as many as may be");
            const struct hf_value *v = decoded.request.merge.value;
            assert_int_equal(v->item_count, items);
            same(v->items[0].name, "0");
            same(v->items[items - 1].name,
                 kind ? "1023" : "999"); /* a set is sorted, to find what comes twice */
        }
    }
    hf_buffer_free(&body);
    /* as deep as a body may be, on its way to being read for the second time */
    char deep[59];
    memset(deep, '[', 29);
    memset(deep + 29, ']', 29);
    deep[58] = '\0';
    char value[300];
    snprintf(value, sizeof value, "{\"value\":%s,\"timestamp\":1,\"node\":\"n\"}", deep);
    merged("lww", value);
    snprintf(value, sizeof value, "{\"value\":[[%s]],\"timestamp\":1,\"node\":\"n\"}", deep);
    refused("lww", value, "value: expected at most 32 nested arrays and objects");
}

/* ---- There and back ---- */

static const char *encoded(const struct hf_register *reg)
{
    struct hf_json j = { .out = &out };
    hf_buffer_reset(&out);
    hf_api_register(&j, reg);
    return hf_buffer_text(&out);
}

/* The members type and value of a register as it is shown, as a body of a merge. */
static void body_of(const char *shown, struct hf_buffer *body)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = hf_str(shown), .arena = &arena };
    struct hf_bytes name, part;
    hf_buffer_reset(body);
    assert_true(hf_reader_object(&r));
    while (hf_reader_member(&r, &name)) {
        assert_true(hf_reader_compact(&r, &part));
        bool sent = hf_bytes_equal(name, hf_str("type")) || hf_bytes_equal(name, hf_str("value"));
        if (sent)
            hf_buffer_printf(body, "%s\"%.*s\":%.*s", body->size ? "," : "{", (int)name.size,
                             (const char *)name.data, (int)part.size, (const char *)part.data);
    }
    hf_buffer_add_char(body, '}');
    assert_true(hf_reader_end(&r));
    hf_arena_free(&arena);
}

/* A value takes as much memory as it needs, and nothing for what was only passed over on the way to
 * it. */
static void test_memory_of_items(void **state)
{
    (void)state;
    enum { COUNT = 1000, REST = 4096 }; /* a few blocks */
    static const struct {
        const char *type, *open, *before, *behind,
            *close;  /* an item is its number between `before` and `behind` */
        bool same;   /* they have one number, all of them */
        size_t room; /* bytes for each */
    } cases[] = {
        { "union", "[", "\"", "\"", "]", true, 0 },
        { "union", "[", "\"", "\"", "]", false, sizeof(struct hf_item) },
        { "union", "[", "\"\\n", "\"", "]", false, sizeof(struct hf_item) + 4 },
        { "counter", "{", "\"", "\":1", "}", false, sizeof(struct hf_item) },
        { "counter", "{", "\"\\n", "\":1", "}", false, sizeof(struct hf_item) + 4 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_buffer_reset(&out);
        hf_buffer_printf(&out, "{\"value\":%s", cases[i].open);
        for (int k = 0; k < COUNT; k++)
            hf_buffer_printf(&out, "%s%s%03d%s", k ? "," : "", cases[i].before,
                             cases[i].same ? 0 : k, cases[i].behind);
        hf_buffer_printf(&out, "%s,\"type\":\"%s\",\"name\":\"n\",\"op\":\"merge\"}",
                         cases[i].close, cases[i].type);
        hf_arena_free(&decoded.arena);
        assert_int_equal(decode_line(hf_buffer_text(&out)), HF_OK);
        assert_int_equal(decoded.request.merge.value->item_count, cases[i].same ? 1 : COUNT);
        size_t held = decoded.arena.held;
        if (held > COUNT * cases[i].room + REST)
            fail_msg("case %zu: %zu bytes for %zu bytes of text", i, held, out.size);
        struct hf_bytes name = decoded.request.merge.value->items[0].name;
        assert_int_equal(name.size, cases[i].room == sizeof(struct hf_item) + 4 ? 4 : 3);
    }
}

/* A value as it is shown can be sent back, and is the same value then. */
static void test_shown_values_go_back(void **state)
{
    (void)state;
    const struct hf_item items[] = {
        { .name = hf_str("a"), .up = 5, .down = 2 },
        { .name = hf_str("b\"\n\\\xc3\xa9"), .up = INT64_MAX, .down = 0 }
    };
    const struct hf_value cases[] = {
        { .type = HF_TYPE_MAX, .number = INT64_MIN },
        { .type = HF_TYPE_MIN, .number = INT64_MAX },
        { .type = HF_TYPE_OR, .flag = true },
        { .type = HF_TYPE_UNION, .items = items, .item_count = 2 },
        { .type = HF_TYPE_UNION },
        { .type = HF_TYPE_LWW,
          .timestamp = INT64_MIN,
          .node = hf_str("n\t"),
          .bytes = hf_str("text") },
        { .type = HF_TYPE_LWW,
          .timestamp = 3,
          .node = hf_str("n"),
          .bytes = stored_as("{\"a\":[1,null]}", "{\"a\":[1,null]}") },
        { .type = HF_TYPE_LWW, .timestamp = 3, .node = hf_str("n"), .bytes = hf_str("") },
        { .type = HF_TYPE_VECTOR, .items = items, .item_count = 2 },
        { .type = HF_TYPE_COUNTER, .items = items, .item_count = 2, .number = 7 },
        { .type = HF_TYPE_UPDOWN, .items = items, .item_count = 2, .number = 5 },
        { .type = HF_TYPE_UPDOWN },
    };
    struct hf_buffer body = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct hf_value *was = &cases[i];
        struct hf_register reg = { .name = hf_str("n"), .value = *was, .version = 1 };
        body_of(encoded(&reg), &body);
        const struct hf_value *is =
            good(POST, "/v1/registers/n/merge", NULL, hf_buffer_text(&body))->merge.value;
        assert_int_equal(is->type, was->type);
        assert_int_equal(is->flag, was->flag);
        assert_true(is->timestamp == was->timestamp);
        assert_true(hf_bytes_equal(is->node, was->node));
        assert_true(hf_bytes_equal(is->bytes, was->bytes));
        if (was->type == HF_TYPE_MAX || was->type == HF_TYPE_MIN)
            assert_true(is->number == was->number);
        assert_int_equal(is->item_count, was->item_count);
        for (size_t k = 0; k < is->item_count; k++) {
            assert_true(hf_bytes_equal(is->items[k].name, was->items[k].name));
            assert_true(was->type == HF_TYPE_UNION || is->items[k].up == was->items[k].up);
            assert_true(was->type != HF_TYPE_UPDOWN || is->items[k].down == was->items[k].down);
        }
    }
    hf_buffer_free(&body);
}

/* JSON in, JSON out: the stored bytes, and what is shown of them. */
static void test_stored(void **state)
{
    (void)state;
    const struct {
        const char *json, *shown;
        struct hf_bytes stored;
    } cases[] = {
#define STORED(text) { text, sizeof(text) - 1 }
#define SAME(text) stored_as(text, text)
        { "\"plain\"", "\"plain\"", STORED("plain") },
        { "\"\"", "\"\"", STORED("") },
        { "\"{\\\"a\\\":1}\"", "\"{\\\"a\\\":1}\"",
          STORED("{\"a\":1}") }, /* a string that looks like JSON stays one */
        { "\"\\u00e9\\/\"", "\"\xc3\xa9/\"", STORED("\xc3\xa9/") },
        { "\"null\"", "\"null\"", STORED("null") },
        { "null", "null", SAME("null") },
        { "true", "true", SAME("true") },
        { "-0", "-0", stored_as("0", "-0") },
        { "1.50e+3", "1.50e+3", stored_as("1500", "1.50e+3") },
        { "123456789012345678901234567890", "123456789012345678901234567890",
          stored_as("1.2345678901234567890123456789e+29", "123456789012345678901234567890") },
        { " [ 1 , { \"b\" : 2 , \"a\" : \" x \" } ] ", "[1,{\"b\":2,\"a\":\" x \"}]",
          stored_as("[1,{\"a\":\" x \",\"b\":2}]", "[1,{\"b\":2,\"a\":\" x \"}]") },
        { "{}", "{}", SAME("{}") },
        { "\"\\u0000\"", "\"\\u0000\"", STORED("\0") },
        { "\"\\u0000k\"", "\"\\u0000k\"", STORED("\0k") },
        /* A string that begins as stored JSON does is stored with its quotes. */
        { "\"\\u0000j\"", "\"\\u0000j\"", SAME("\"\\u0000j\"") },
        { "\"\\u0000j{}\"", "\"\\u0000j{}\"", SAME("\"\\u0000j{}\"") },
        { "\"\\u0000\\u006anull\"", "\"\\u0000\\u006anull\"",
          stored_as("\"\\u0000jnull\"", "\"\\u0000\\u006anull\"") },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_reader r = { .text = hf_str(cases[i].json), .arena = &decoded.arena };
        struct hf_json j = { .out = &out };
        struct hf_bytes stored;
        assert_true(hf_stored_read(&r, &stored) && hf_reader_end(&r));
        if (!hf_bytes_equal(stored, cases[i].stored))
            fail_msg("%s is stored otherwise", cases[i].json);
        hf_buffer_reset(&out);
        hf_json_stored(&j, stored);
        assert_string_equal(hf_buffer_text(&out), cases[i].shown);
        /* what is shown can be stored again, with the same bytes */
        r = (struct hf_reader){ .text = hf_mem(out.data, out.size), .arena = &decoded.arena };
        assert_true(hf_stored_read(&r, &stored));
        assert_true(hf_bytes_equal(stored, cases[i].stored));
    }
}

/* A program that embeds the library stores any bytes: they never become JSON that is broken, or two
 * lines of a batch. */
static void test_stored_by_others(void **state)
{
    (void)state;
#define HEAD "\0j................................"
    static const struct {
        struct hf_bytes stored;
        const char *shown; /* behind the head, if `headed` */
        bool headed;
    } cases[] = {
        { STORED("\0j"), "\\u0000j", false },
        { STORED("\0j{}"), "\\u0000j{}", false },
        { STORED(HEAD), "", true },
        { STORED(HEAD "nul"), "nul", true },
        { STORED(HEAD "{}{}"), "{}{}", true },
        { STORED(HEAD "[1,\n2]"), "[1,\\n2]", true },
        { STORED(HEAD " 1"), " 1", true },
        { STORED(HEAD "1\n"), "1\\n", true },
        { STORED(HEAD "{\"a\":1,\"a\":2}"), "{\\\"a\\\":1,\\\"a\\\":2}", true },
        { STORED("\0"), "\\u0000", false },
        { STORED("j"), "j", false },
        { { NULL, 0 }, "", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_json j = { .out = &out };
        hf_buffer_reset(&out);
        hf_json_array(&j);
        hf_json_stored(&j, cases[i].stored);
        hf_json_stored(&j, stored_as("{}", "{}")); /* commas come by themselves here too */
        hf_json_array_end(&j);
        char expected[160];
        snprintf(expected, sizeof expected, "[\"%s%s\",{}]",
                 cases[i].headed ? "\\u0000j................................" : "", cases[i].shown);
        assert_string_equal(hf_buffer_text(&out), expected);
    }
    struct hf_json j = { .out = &out };
    hf_buffer_reset(&out);
    hf_json_stored(&j, hf_mem("\xff", 1));
    hf_json_stored(&j, hf_mem(HEAD "\"\xff\"", sizeof HEAD + 2));
    assert_memory_equal(out.data, "{\"base64\":\"/w==\"},{\"base64\":\"AGou", 33);
    char deep[HF_STORED_HEAD + 2 * 33] = "";
    memcpy(deep, HEAD, HF_STORED_HEAD);
    memset(deep + HF_STORED_HEAD, '[', 33);
    memset(deep + HF_STORED_HEAD + 33, ']', 33);
    hf_buffer_reset(&out);
    j.comma = false;
    hf_json_stored(&j, hf_mem(deep, sizeof deep));
    assert_memory_equal(out.data, "\"\\u0000j..", 10); /* deeper than any client can send it */
}

/* Wherever records show what was stored, they show it as what it was. */
static void test_records_show_json(void **state)
{
    (void)state;
    struct hf_bytes stored = stored_as("{\"a\":1}", "{\"a\":1}");
    struct hf_json j = { .out = &out };
    static const enum hf_claim_state states[] = { HF_CLAIM_COMPLETED, HF_CLAIM_FAILED };
    for (size_t i = 0; i < 2; i++) {
        j.comma = false;
        hf_buffer_reset(&out);
        hf_api_claim(&j, &(struct hf_claim){ .state = states[i], .response = stored });
        assert_non_null(
            strstr(hf_buffer_text(&out), i ? "\"error\":{\"a\":1}," : "\"response\":{\"a\":1}"));
    }
    j.comma = false;
    hf_buffer_reset(&out);
    hf_api_seen(&j, &(struct hf_seen){ .seen = true, .has_result = true, .result = stored });
    assert_string_equal(hf_buffer_text(&out), "{\"seen\":true,\"result\":{\"a\":1}}");
    j.comma = false;
    hf_buffer_reset(&out);
    hf_api_entry(&j, &(struct hf_entry){ .has_result = true, .result = stored }, false);
    assert_non_null(strstr(hf_buffer_text(&out), "\"result\":{\"a\":1}}"));
    const struct hf_value plain = { .type = HF_TYPE_PLAIN, .bytes = stored };
    const struct hf_value lww = { .type = HF_TYPE_LWW, .bytes = stored, .node = hf_str("n") };
    assert_non_null(strstr(encoded(&(struct hf_register){ .value = plain }),
                           "\"value\":{\"a\":1},\"version\""));
    assert_non_null(strstr(encoded(&(struct hf_register){ .value = lww }),
                           "\"value\":{\"value\":{\"a\":1},\"time"));
}

/* ---- Through the store ---- */

static struct hf_db *db;

/* The body that the call is answered with, in `out`. */
static const char *answered(enum hf_http_method method, const char *path, const char *key,
                            const char *body, bool replayed)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_json j = { .out = &out };
    const struct hf_request *request = good(method, path, key, body);
    enum hf_status status = hf_do(db, request, &result);
    assert_int_equal(status, result.answer.status);
    hf_buffer_reset(&out);
    hf_api_answer(&j, request->action, &result.answer);
    assert_int_equal(result.replayed, replayed);
    hf_result_clear(&result);
    return hf_buffer_text(&out);
}

/* The first answer comes back byte for byte, to whoever says the same in other white space too. */
static void test_replays(void **state)
{
    (void)state;
    char first[1024];
    struct hf_error why;
    if (hf_open(":memory:", NULL, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
    const char *path = "/v1/registers/r";
    strcpy(first, answered(PUT, path, "k", "{\"value\":{\"a\":[1,\"\\u00e9\"]}}", false));
    assert_non_null(strstr(first, "\"value\":{\"a\":[1,\"\\u00e9\"]},"));
    assert_string_equal(answered(PUT, path, "k", "{\"value\":{\"a\":[1,\"\\u00e9\"]}}", true),
                        first);
    assert_string_equal(
        answered(PUT, path, "\"k\"", "{ \"value\" : { \"a\" : [1, \"\\u00e9\"] } }", true), first);
    assert_string_equal(answered(GET, path, NULL, NULL, false), first);
    assert_non_null(
        strstr(answered(PUT, path, "k", "{\"value\":{\"a\":[2]}}", false), "token-collision"));

    const char *begin = "{\"key\":\"c\",\"payload\":{\"x\":1,\"y\":2}}";
    assert_non_null(strstr(answered(POST, "/v1/claims", NULL, begin, false),
                           "\"status\":\"started\",\"fence\":1,"));
    strcpy(first, answered(POST, "/v1/claims/c/complete", NULL, "{\"fence\":1,\"response\":[true]}",
                           false));
    assert_non_null(strstr(first, "\"response\":[true],"));
    assert_string_equal(
        answered(POST, "/v1/claims/c/complete", NULL, "{\"response\":[ true ],\"fence\":1}", true),
        first);
    begin = "{\"payload\": {\"y\":2, \"\\u0078\":1}, \"key\":\"c\"}";
    assert_string_equal(answered(POST, "/v1/claims", NULL, begin, true), first);
    hf_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simple_values),
        cmocka_unit_test(test_unions),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_memory_of_items),
        cmocka_unit_test(test_lww),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_shown_values_go_back),
        cmocka_unit_test(test_stored),
        cmocka_unit_test(test_stored_by_others),
        cmocka_unit_test(test_records_show_json),
        cmocka_unit_test(test_replays),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}

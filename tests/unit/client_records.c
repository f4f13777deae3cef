/* Answers, read back: what the interface writes comes out as the record that it was, and nothing
 * else comes out. */
#include "api/decode.h"
#include "api/encode.h"
#include "api/problem.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "client/client.h"
#include "support/test.h"
#include "json/stored.h"

static const char id[HF_ID_SIZE] = "0d1b6cv3p1d2pjhxab2na5d60k",
                  other[HF_ID_SIZE] = "2pchzd8hasq1k79e61jzn6k0wx";

/* The JSON of an answer. */
static struct hf_buffer written(enum hf_action action, const struct hf_answer *answer)
{
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    hf_api_answer(&j, action, answer);
    assert_false(out.failed);
    return out;
}

static struct hf_bytes bytes_of(const struct hf_buffer *b)
{
    return hf_mem(b->data, b->size);
}

/* Write, read, write again: the same bytes, whatever the text that was read is used for in
 * between. */
static void back_and_forth(enum hf_action action, const struct hf_answer *answer)
{
    struct hf_buffer first = written(action, answer);
    char *copy = malloc(first.size);
    struct hf_result result = HF_RESULT_INIT;
    struct hf_error why = { .status = HF_OK };
    memcpy(copy, first.data, first.size);
    if (!hf_client_read_answer(action, hf_mem(copy, first.size), &result, &why))
        fail_msg("%.*s: %s", (int)first.size, (char *)first.data, why.text);
    memset(copy, 'x', first.size);
    free(copy);
    assert_int_equal(result.answer.status, HF_OK);
    assert_int_equal(result.answer.kind, answer->kind);
    struct hf_buffer again = written(action, &result.answer);
    if (!hf_bytes_equal(bytes_of(&first), bytes_of(&again)))
        fail_msg("%.*s became %.*s", (int)first.size, (char *)first.data, (int)again.size,
                 (char *)again.data);
    hf_result_clear(&result);
    hf_buffer_free(&first);
    hf_buffer_free(&again);
}

static const char *const names[] = {
    "room-307",    "", "t\xc3\xb6pf \xf0\x9f\x94\x91", "quote\" back\\ /", "\x01\t\r\n\x1f\x7f",
    "\xe2\x80\xae"
};
#define NAMES (sizeof names / sizeof *names)

static struct hf_hold hold_of(enum hf_hold_state state, const char *name)
{
    struct hf_hold hold = { .state = state,
                            .resource = hf_str(name),
                            .requester = hf_str(names[2]),
                            .placed_at = INT64_C(1794794045713),
                            .expires_at = INT64_C(1794794945713) };
    memcpy(hold.id, id, sizeof hold.id);
    if (state != HF_HELD)
        hold.ended_at = INT64_C(1794794045999);
    if (state == HF_RELEASED)
        memcpy(hold.reverses, other, sizeof hold.reverses);
    return hold;
}

static void holds(void **state)
{
    static const enum hf_action actions[] = { HF_PLACE_HOLD, HF_CONFIRM, HF_RELEASE,
                                              HF_EXPIRE,     HF_REVERSE, HF_GET_HOLD };
    (void)state;
    for (size_t a = 0; a < sizeof actions / sizeof *actions; a++)
        for (int s = HF_HELD; s <= HF_EXPIRED; s++)
            for (size_t i = 0; i < NAMES; i++)
                back_and_forth(actions[a], &(struct hf_answer){
                                               .kind = HF_RECORD_HOLD,
                                               .hold = hold_of((enum hf_hold_state)s, names[i]) });
}

static void resources(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        struct hf_resource r = { .name = hf_str(names[i]),
                                 .capacity = HF_CAPACITY_MAX,
                                 .held = 3,
                                 .confirmed = 4,
                                 .open = i % 2,
                                 .fence = UINT64_MAX };
        back_and_forth(HF_SET_RESOURCE,
                       &(struct hf_answer){ .kind = HF_RECORD_RESOURCE, .resource = r });
        back_and_forth(HF_GET_RESOURCE,
                       &(struct hf_answer){ .kind = HF_RECORD_RESOURCE, .resource = r });
    }
}

static void guards(void **state)
{
    (void)state;
    for (uint32_t count = 0; count <= HF_MATCH_MAX; count++) {
        struct hf_guard g = { .name = hf_str(names[count]),
                              .window_ms = count == 0 ? 1 : HF_DURATION_MAX_MS / count,
                              .match = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE,
                                         HF_MATCH_HASH },
                              .match_count = count,
                              .on_unavailable = count % 2 ? HF_FAIL_CLOSED : HF_FAIL_OPEN,
                              .durable = count % 2,
                              .created_at = 1 };
        back_and_forth(HF_SET_GUARD, &(struct hf_answer){ .kind = HF_RECORD_GUARD, .guard = g });
        back_and_forth(HF_GET_GUARD, &(struct hf_answer){ .kind = HF_RECORD_GUARD, .guard = g });
    }
}

static void seen(void **state)
{
    char object[HF_STORED_HEAD + 19] = HF_STORED_JSON;
    memcpy(object + HF_STORED_HEAD, "{\"n\":[1,true,null]}", 19);
    hf_sha256_of(object + HF_STORED_HEAD, 19, (uint8_t *)object + 2);
    const struct hf_bytes results[] = { hf_str("receipt 4711"), hf_str(""), hf_str("\xc3\xa9"),
                                        hf_mem(object, sizeof object) };
    struct hf_answer a = { .kind = HF_RECORD_SEEN, .seen = { .seen = false } };
    (void)state;
    back_and_forth(HF_CHECK, &a);
    back_and_forth(HF_RECORD, &a);
    a.seen = (struct hf_seen){ .seen = true }; /* a closed guard that could not be asked */
    back_and_forth(HF_ADMIT, &a);
    a.seen.recorded_at = 1;
    a.seen.expires_at = 2;
    back_and_forth(HF_CHECK, &a);
    a.seen.has_result = true;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        a.seen.result = results[i];
        back_and_forth(HF_ADMIT, &a);
    }
}

static void leases(void **state)
{
    static const enum hf_action actions[] = { HF_GRANT, HF_RENEW, HF_RETURN, HF_DELETE_LEASE,
                                              HF_GET_LEASE };
    (void)state;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        for (size_t n = 0; n < NAMES; n++) {
            struct hf_answer answer = { .kind = HF_RECORD_LEASE };
            answer.lease = (struct hf_lease){ .name = hf_str(names[n]),
                                              .holder = hf_str(names[NAMES - 1 - n]),
                                              .fence = UINT64_MAX - n,
                                              .ttl_ms = HF_DURATION_MAX_MS,
                                              .granted_at = INT64_C(1794794045713),
                                              .expires_at = INT64_C(1794794945713) };
            if (n % 2)
                answer.lease.released_at = INT64_C(1794794046000);
            back_and_forth(actions[i], &answer);
        }
}

static void registers(void **state)
{
    static const struct hf_item items[] = { { { "a", 1 }, 1, 0 },
                                            { { "t\xc3\xb6pf \"", 8 }, INT64_MAX, 17 } };
    static const enum hf_action actions[] = { HF_WRITE, HF_MERGE, HF_DELETE_REGISTER,
                                              HF_GET_REGISTER };
    (void)state;
    for (int type = HF_TYPE_PLAIN; type <= HF_TYPE_DELETED; type++)
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
            struct hf_answer answer = { .kind = HF_RECORD_REGISTER };
            answer.reg =
                (struct hf_register){ .name = hf_str(names[i]), .version = UINT64_MAX, .fence = i };
            answer.reg.value = (struct hf_value){ .type = (enum hf_register_type)type,
                                                  .number = -7,
                                                  .flag = i % 2,
                                                  .timestamp = INT64_MIN,
                                                  .node = hf_str(names[2]),
                                                  .bytes = hf_str(names[i]) };
            if (type == HF_TYPE_UNION || type >= HF_TYPE_VECTOR) {
                answer.reg.value.items = items;
                answer.reg.value.item_count = i % 3;
            }
            back_and_forth(actions[i], &answer);
        }
}

static void pages(void **state)
{
    static struct hf_hold list[HF_LIST_MAX];
    const size_t counts[] = { 0, 1, 7, HF_LIST_MAX };
    (void)state;
    for (size_t i = 0; i < HF_LIST_MAX; i++)
        list[i] = hold_of((enum hf_hold_state)(HF_HELD + i % 4), names[i % NAMES]);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct hf_page page = { .count = counts[c],
                                .next_cursor = c % 2 ? UINT64_MAX : 0,
                                .holds = list },
                       got;
        struct hf_buffer first = { 0 }, again = { 0 };
        struct hf_json j = { .out = &first };
        struct hf_error why = { .status = HF_OK };
        hf_api_holds(&j, &page);
        if (!hf_client_read_page(HF_LIST_HOLDS, bytes_of(&first), &got, &why))
            fail_msg("%s", why.text);
        assert_int_equal(got.count, counts[c]);
        j = (struct hf_json){ .out = &again };
        hf_api_holds(&j, &got);
        assert_true(hf_bytes_equal(bytes_of(&first), bytes_of(&again)));
        hf_page_clear(&got);
        hf_buffer_free(&first);
        hf_buffer_free(&again);
    }
}

static void problems(void **state)
{
    (void)state;
    for (unsigned s = HF_INVALID_REQUEST; s <= HF_INDETERMINATE; s++) {
        struct hf_buffer out = { 0 };
        struct hf_json j = { .out = &out };
        struct hf_client_problem got;
        struct hf_error why = { .status = HF_OK };
        struct hf_refusal problem = hf_refusal_of(HF_CONFIRM, (enum hf_status)s);
        hf_api_problem(&j, &problem);
        assert_true(hf_client_read_problem(bytes_of(&out), &got, &why));
        assert_string_equal(got.code, problem.code);
        assert_true(hf_bytes_equal(hf_str(got.detail), problem.detail));
        bool known = strcmp(problem.code, "unknown") != 0;
        assert_int_equal(got.status, known ? s : HF_OK);
        hf_buffer_free(&out);
    }
}

static void a_long_detail_is_cut_off(void **state)
{
    char text[5000];
    struct hf_client_problem got;
    struct hf_error why;
    (void)state;
    int size = snprintf(text, sizeof text, "{\"code\":\"x\",\"detail\":\"%04000d\"}", 0);
    assert_true(hf_client_read_problem(hf_mem(text, (size_t)size), &got, &why));
    assert_int_equal(strlen(got.detail), sizeof got.detail - 1);
}

#define HOLD                                                                                  \
    "\"id\":\"0d1b6cv3p1d2pjhxab2na5d60k\",\"resource\":\"r\",\"requester\":\"q\",\"state\":" \
    "\"held\","                                                                               \
    "\"placed_at\":\"2026-11-16T01:54:05.713Z\",\"expires_at\":\"2026-11-16T02:09:05.713Z\""

#define REGISTER(type, value) \
    "{\"name\":\"r\",\"type\":\"" type "\",\"value\":" value ",\"version\":1,\"fence\":0}"

static void what_is_no_answer(void **state)
{
    static const struct {
        enum hf_action action;
        const char *text, *why;
    } bad[] = {
        { HF_CONFIRM, "", "expected an object" },
        { HF_CONFIRM, "null", "expected an object" },
        { HF_CONFIRM, "[]", "expected an object" },
        { HF_CONFIRM, "{}", "the member \"id\" is missing" },
        { HF_CONFIRM, "<html>", "expected an object" },
        { HF_CONFIRM, "{" HOLD "} x", "expected nothing more" },
        { HF_CONFIRM,
          "{" HOLD ",\"id\":\""
          "0d1b6cv3p1d2pjhxab2na5d60k\"}",
          "duplicate member" },
        { HF_CONFIRM, "{" HOLD ",\"confirmed_at\":\"2026-11-16T01:54:05.713Z\"}",
          "a held hold has the time" },
        { HF_CONFIRM, "{" HOLD ",\"reverses\":\"x\"}", "expected the id of a hold" },
        { HF_CONFIRM, "{" HOLD ",\"reverses\":null}", "expected a string" },
        { HF_CONFIRM, "{" HOLD ",\"new\":[1,}", "expected" },
        { HF_CONFIRM, "{\"id\":\"short\"}", "expected the id of a hold" },
        { HF_CONFIRM, "{\"state\":\"melted\"}", "a word that this program knows" },
        { HF_CONFIRM, "{\"state\":null}", "expected a string" },
        { HF_CONFIRM, "{\"placed_at\":\"yesterday\"}", "expected a time" },
        { HF_CONFIRM, "{\"placed_at\":5}", "expected a string" },
        { HF_GET_RESOURCE, "{" HOLD "}", "the member \"name\" is missing" },
        { HF_GET_RESOURCE, "{\"name\":\"r\",\"capacity\":4294967296}", "below 4294967296" },
        { HF_GET_RESOURCE, "{\"name\":\"r\",\"capacity\":-1}", "expected a whole number" },
        { HF_GET_RESOURCE, "{\"name\":\"r\",\"open\":\"yes\"}", "expected true or false" },
        { HF_GET_GUARD, "{\"window\":\"soon\"}", "expected a duration" },
        { HF_GET_GUARD, "{\"match\":[\"trim\",\"fuzzy\"]}", "a word that this program knows" },
        { HF_GET_GUARD, "{\"match\":[\"trim\",\"trim\",\"trim\",\"trim\",\"trim\"]}",
          "expected at most 4" },
        { HF_GET_GUARD, "{\"match\":\"trim\"}", "expected an array" },
        { HF_CHECK, "{\"ok\":true}", "the member \"seen\" is missing" },
        { HF_RECORD, "{\"seen\":true}", "the member \"ok\" is missing" },
        { HF_GET_LEASE, "{" HOLD "}", "the member \"name\" is missing" },
        { HF_GET_LEASE, "{\"fence\":-1}", "expected a whole number" },
        { HF_GET_REGISTER, "{\"name\":\"r\",\"type\":\"sum\"}", "a word that this program knows" },
        { HF_GET_REGISTER, REGISTER("max", "\"1\""), "its value: expected" },
        { HF_GET_REGISTER, REGISTER("union", "[1]"), "its value: expected" },
        { HF_GET_REGISTER, REGISTER("counter", "{\"a\":{}}"), "its value: expected" },
        { HF_GET_REGISTER, REGISTER("deleted", "1"), "its value: expected" },
    };
    struct hf_result result = HF_RESULT_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_error why = { .status = HF_OK };
        if (hf_client_read_answer(bad[i].action, hf_str(bad[i].text), &result, &why) ||
            !strstr(why.text, bad[i].why) || why.status != HF_INDETERMINATE)
            fail_msg("%s: %s", bad[i].text, why.text);
    }
    hf_result_clear(&result);
}

static void what_is_no_page(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "{}", "is missing" },
        { "{\"holds\":[]}", "is missing" },
        { "{\"next_cursor\":null}", "is missing" },
        { "{\"holds\":{},\"next_cursor\":null}", "expected an array" },
        { "{\"holds\":[{}],\"next_cursor\":null}", "\"id\" is missing" },
        { "{\"holds\":[{" HOLD "}],\"next_cursor\":5}", "expected a string" },
        { "{\"holds\":[{" HOLD "}],\"next_cursor\":\"x\"}", "a cursor of this program" },
        { "{\"holds\":[{" HOLD "}],\"next_cursor\":\"0\"}", "a cursor of this program" },
        { "{\"holds\":[{" HOLD "}],\"next_cursor\":\"1\"", "expected" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_error why = { .status = HF_OK };
        struct hf_page page;
        if (hf_client_read_page(HF_LIST_HOLDS, hf_str(bad[i].text), &page, &why) ||
            !strstr(why.text, bad[i].why))
            fail_msg("%s: %s", bad[i].text, why.text);
        assert_null(page.rows);
    }
}

static void what_is_no_problem(void **state)
{
#define MORE_THAN_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    static const struct {
        const char *text;
    } bad[] = {
        { "{}" },
        { "{\"code\":\"x\"}" },
        { "{\"detail\":\"x\"}" },
        { "{\"code\":\"\",\"detail\":\"x\"}" },
        { "{\"code\":\"Not\",\"detail\":\"x\"}" },
        { "{\"code\":\"a b\",\"detail\":\"x\"}" },
        { "{\"code\":\"a\\u001b\",\"detail\":\"x\"}" },
        { "{\"code\":5,\"detail\":\"x\"}" },
        { "{\"code\":\"x\",\"detail\":\"x\"}{}" },
        { "{\"code\":\"" MORE_THAN_63 "\",\"detail\":\"x\"}" },
    };
    struct hf_client_problem got;
    struct hf_client_version version;
    struct hf_error why;
    hf_time at;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hf_client_read_problem(hf_str(bad[i].text), &got, &why))
            fail_msg("%s is taken", bad[i].text);
    assert_true(hf_client_read_token(
        hf_str("{\"recorded_at\":\"1970-01-01T00:00:00.007Z\",\"body\":{}}"), &at, &why));
    assert_int_equal(at, 7);
    assert_false(hf_client_read_token(hf_str("{}"), &at, &why));
    assert_true(hf_client_read_version(
        hf_str("{\"openapi\":\"3\",\"info\":{\"title\":\"Holdfast\",\"version\":\"1.2.3\"}}"),
        &version, &why));
    assert_string_equal(version.text, "1.2.3");
    assert_false(hf_client_read_version(
        hf_str("{\"info\":{\"title\":\"Something\",\"version\":\"1.2.3\"}}"), &version, &why));
    assert_false(hf_client_read_version(hf_str("{}"), &version, &why));
}

/* Cut off anywhere, and with any byte changed: refused, or a record that can be written again.
 * Never anything else, which the sanitizers see. */
static void broken_anywhere(void **state)
{
    struct hf_answer answer = { .kind = HF_RECORD_HOLD, .hold = hold_of(HF_RELEASED, names[3]) };
    struct hf_buffer text = written(HF_CONFIRM, &answer);
    struct hf_result result = HF_RESULT_INIT;
    struct hf_error why;
    uint64_t random = test_seed("broken_anywhere", 7);
    (void)state;
    for (size_t size = 0; size < text.size; size++)
        assert_false(hf_client_read_answer(HF_CONFIRM, hf_mem(text.data, size), &result, &why));
    for (int round = 0; round < 20000; round++) {
        size_t at = test_below(&random, text.size);
        unsigned char was = text.data[at];
        text.data[at] = (unsigned char)test_random(&random);
        if (hf_client_read_answer(HF_CONFIRM, bytes_of(&text), &result, &why)) {
            struct hf_buffer again = written(HF_CONFIRM, &result.answer);
            hf_buffer_free(&again);
        }
        text.data[at] = was;
    }
    hf_result_clear(&result);
    hf_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds),
        cmocka_unit_test(resources),
        cmocka_unit_test(guards),
        cmocka_unit_test(seen),
        cmocka_unit_test(leases),
        cmocka_unit_test(registers),
        cmocka_unit_test(pages),
        cmocka_unit_test(problems),
        cmocka_unit_test(a_long_detail_is_cut_off),
        cmocka_unit_test(what_is_no_answer),
        cmocka_unit_test(what_is_no_page),
        cmocka_unit_test(what_is_no_problem),
        cmocka_unit_test(broken_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The description of the interface: every call of the table and nothing else is in it, and what it
 * says about bodies is what the decoder does. Its answers are held against the encoders in
 * server_answers.c. */
#include "api/problem.h"
#include "base/bytes.h"
#include "server/inner.h"
#include "server/kit/json_tree.h"
#include "support/test.h"

static struct hf_arena arena;
static struct hf_buffer text;
static struct tree *document;

static int setup(void **state)
{
    (void)state;
    hf_server_openapi(&text);
    assert_false(text.failed);
    document = tree_read(hf_mem(text.data, text.size), &arena);
    return document ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    hf_buffer_free(&text);
    hf_arena_free(&arena);
    return 0;
}

static const char *method_of(const struct hf_call *call)
{
    return call->method == HF_HTTP_GET      ? "get"
           : call->method == HF_HTTP_PUT    ? "put"
           : call->method == HF_HTTP_DELETE ? "delete"
                                            : "post";
}

static struct tree *operation_of(const struct hf_call *call)
{
    struct tree *operation = tree_at(document, "paths", call->path, method_of(call), NULL);
    if (!operation)
        fail_msg("%s %s is not described", method_of(call), call->path);
    return operation;
}

static struct tree *schema_of(const char *name)
{
    struct tree *schema = tree_at(document, "components", "schemas", name, NULL);
    if (!schema)
        fail_msg("there is no schema %s", name);
    return schema;
}

static struct tree *followed(struct tree *t)
{
    const struct tree *ref = tree_get(t, "$ref");
    return ref ? tree_resolve(document, ref->text) : t;
}

/* ---- Calls ---- */

static void test_document(void **state)
{
    (void)state;
    assert_true(tree_is(tree_get(document, "openapi"), "3.1.0"));
    assert_true(tree_is(tree_at(document, "info", "version", NULL), hf_version()));
    assert_true(tree_is(
        tree_at(document, "components", "securitySchemes", "bearer", "scheme", NULL), "bearer"));
    struct hf_buffer again = { 0 };
    hf_server_openapi(&again);
    assert_int_equal(again.size, text.size);
    assert_memory_equal(again.data, text.data, text.size);
    hf_buffer_free(&again);
}

static void test_every_call_and_no_other(void **state)
{
    (void)state;
    size_t described = 0;
    for (const struct tree *path = tree_get(document, "paths")->child; path; path = path->next)
        described += tree_count(path);
    assert_int_equal(described, hf_call_count);
    for (size_t i = 0; i < hf_call_count; i++) {
        struct tree *operation = operation_of(&hf_calls[i]);
        assert_true(tree_is(tree_get(operation, "summary"), hf_calls[i].help));
        assert_non_null(tree_at(operation, "responses", "default", NULL));
    }
}

static void test_operation_ids_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        struct hf_bytes id = tree_get(operation_of(&hf_calls[i]), "operationId")->text;
        assert_true(id.size > 0);
        for (size_t k = 0; k < i; k++)
            assert_false(
                hf_bytes_equal(id, tree_get(operation_of(&hf_calls[k]), "operationId")->text));
    }
}

static struct tree *parameter_of(struct tree *operation, const char *in, struct hf_bytes name)
{
    struct tree *list = tree_get(operation, "parameters");
    for (struct tree *c = list ? list->child : NULL; c; c = c->next) {
        struct tree *parameter = followed(c);
        if (tree_is(tree_get(parameter, "in"), in) &&
            hf_bytes_equal(tree_get(parameter, "name")->text, name))
            return parameter;
    }
    return NULL;
}

static void test_parameters(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        struct tree *operation = operation_of(call);
        const char *open = strchr(call->path, '{');
        size_t count = 0;
        if (open) {
            count++;
            assert_non_null(
                parameter_of(operation, "path", hf_mem(open + 1, strcspn(open + 1, "}"))));
        }
        if (call->key) {
            static const char *const fields[] = { "Idempotency-Key", "Holdfast-Client",
                                                  "Holdfast-Sequence" };
            for (size_t k = 0; k < 3; k++, count++) {
                struct tree *key = parameter_of(operation, "header", hf_str(fields[k]));
                assert_non_null(key);
                assert_int_equal(tree_get(key, "required")->type, HF_READ_FALSE);
            }
        }
        for (size_t k = 0; !hf_call_has_body(call) && k < call->field_count; k++) {
            struct tree *field = parameter_of(operation, "query", hf_str(call->fields[k].name));
            count++;
            assert_non_null(field);
            assert_int_equal(tree_get(field, "required")->type,
                             call->fields[k].required ? HF_READ_TRUE : HF_READ_FALSE);
        }
        assert_int_equal(tree_count(tree_get(operation, "parameters")), count);
    }
}

static void test_security(void **state)
{
    (void)state;
    static const char *const roles[] = { "", "read", "write", "admin" };
    for (size_t i = 0; i < hf_call_count; i++) {
        struct tree *security = tree_get(operation_of(&hf_calls[i]), "security");
        assert_int_equal(tree_count(security), hf_calls[i].role > HF_ROLE_NONE ? 2 : 0);
        if (hf_calls[i].role > HF_ROLE_NONE)
            assert_true(tree_has(tree_get(security->child, "bearer"), roles[hf_calls[i].role]));
    }
}

/* ---- Bodies ---- */

static struct tree *body_schema(const struct hf_call *call)
{
    return tree_at(operation_of(call), "requestBody", "content", "application/json", "schema",
                   NULL);
}

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        struct tree *body = body_schema(call);
        assert_int_equal(body != NULL, hf_call_has_body(call) && call->kind == HF_CALL_DO);
        if (!body)
            continue;
        assert_int_equal(tree_count(tree_get(body, "properties")), call->field_count);
        assert_int_equal(tree_get(body, "additionalProperties")->type, HF_READ_FALSE);
        for (size_t k = 0; k < call->field_count; k++) {
            assert_non_null(tree_at(body, "properties", call->fields[k].name, NULL));
            assert_int_equal(tree_has(tree_get(body, "required"), call->fields[k].name),
                             call->fields[k].required);
        }
    }
}

/* A value of the field's type; of another one. */
static const char *good_value(const struct hf_call *call, const struct hf_call_field *field)
{
    if (call->action == HF_MERGE)
        return strcmp(field->name, "type") == 0 ? "\"max\"" : "7";
    switch (field->type) {
    case HF_TYPE_OF_TIME: return "\"2026-11-15T21:39:57Z\"";
    case HF_TYPE_OF_TEXT: return "\"some text\"";
    case HF_TYPE_OF_DURATION: return "\"15m\"";
    case HF_TYPE_OF_NUMBER: return "7";
    case HF_TYPE_OF_FLAG: return "true";
    case HF_TYPE_OF_JSON: return "{\"any\":[1,null]}";
    case HF_TYPE_OF_MATCH: return "[\"trim\",\"hash\"]";
    case HF_TYPE_OF_CHOICE:
        return field->becomes             ? "\"reacquire\""
               : field->choices[0] == 'o' ? "\"open\""
                                          : "\"retry\"";
    }
    return "";
}

static const char *bad_value(enum hf_field_type type)
{
    return type == HF_TYPE_OF_CHOICE || type == HF_TYPE_OF_MATCH ? "[\"nonsense\"]" : "[[]]";
}

/* Both must say the same of the body: the schema and the decoder. */
static void agree(const struct hf_call *call, const char *body, bool good)
{
    char why[256];
    struct hf_request request;
    struct hf_api_fault fault = { "" };
    struct hf_api_input in = { .params = { hf_str("p") },
                               /* a begin may have its key in either place */
                               .has_key = call->key ||
                                          (call->action == HF_BEGIN && !strstr(body, "\"key\"")),
                               .key_field = hf_str("k"),
                               .body = hf_str(body) };
    struct tree *value = tree_read(hf_str(body), &arena);
    assert_non_null(value);
    bool decoded = hf_api_decode(call, &in, &arena, &request, &fault) == HF_OK && !request.invalid;
    bool obeyed = tree_obeys(document, body_schema(call), value, why);
    if (decoded != good || obeyed != good)
        fail_msg("%s %s: decoder \"%s\", description \"%s\", expected %s", call->path, body,
                 fault.detail, why, good ? "good" : "bad");
}

/* skip, spoil: the index of the field that is left out, or wrong; SIZE_MAX: none. */
static const char *body_make(const struct hf_call *call, size_t skip, size_t spoil,
                             const char *extra)
{
    static struct hf_buffer b;
    const char *comma = "";
    hf_buffer_free(&b);
    hf_buffer_add_char(&b, '{');
    for (size_t i = 0; i < call->field_count; i++) {
        const struct hf_call_field *field = &call->fields[i];
        if (i == skip ||
            (call->action == HF_BEGIN && skip != i && strcmp(field->name, "fingerprint") == 0))
            continue;
        hf_buffer_printf(&b, "%s\"%s\":%s", comma, field->name,
                         i == spoil ? bad_value(field->type) : good_value(call, field));
        comma = ",";
    }
    hf_buffer_printf(&b, "%s%s}", *extra ? comma : "", extra);
    return hf_buffer_text(&b);
}

static void test_bodies_and_the_decoder_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        if (!body_schema(call))
            continue;
        agree(call, body_make(call, SIZE_MAX, SIZE_MAX, ""), true);
        agree(call, body_make(call, SIZE_MAX, SIZE_MAX, "\"nobody\":1"), false);
        for (size_t k = 0; k < call->field_count; k++) {
            const struct hf_call_field *field = &call->fields[k];
            bool payload = call->action == HF_BEGIN && strcmp(field->name, "payload") == 0;
            bool fingerprint = call->action == HF_BEGIN && strcmp(field->name, "fingerprint") == 0;
            agree(call, body_make(call, k, SIZE_MAX, ""), !field->required && !payload);
            if (field->type != HF_TYPE_OF_JSON && !fingerprint)
                agree(call, body_make(call, SIZE_MAX, k, ""), false);
        }
    }
}

static void test_bounds_of_fields(void **state)
{
    (void)state;
    struct {
        enum hf_http_method method;
        const char *path, *body;
        bool good;
    } cases[] = {
        { HF_HTTP_PUT, "/v1/resources/p", "{}", true },
        { HF_HTTP_PUT, "/v1/resources/p", "{\"capacity\":0}", false },
        { HF_HTTP_PUT, "/v1/resources/p", "{\"capacity\":1000000000}", true },
        { HF_HTTP_PUT, "/v1/resources/p", "{\"capacity\":1000000001}", false },
        { HF_HTTP_PUT, "/v1/resources/p", "{\"capacity\":1.5}", false },
        { HF_HTTP_PUT, "/v1/resources/p", "{\"capacity\":-1}", false },
        { HF_HTTP_PUT, "/v1/guards/p", "{\"window\":60}", true },
        { HF_HTTP_PUT, "/v1/guards/p", "{\"window\":\"60\"}", true },
        { HF_HTTP_PUT, "/v1/guards/p", "{\"window\":\"60 s\"}", false },
        /* One below zero can be read, and is refused by the rules. */
        { HF_HTTP_PUT, "/v1/guards/p", "{\"window\":\"--60\"}", false },
        { HF_HTTP_PUT, "/v1/guards/p", "{\"window\":60,\"match\":[]}", true },
        { HF_HTTP_POST, "/v1/claims", "{\"key\":\"k\",\"fingerprint\":\"f\"}", true },
        { HF_HTTP_POST, "/v1/claims", "{\"key\":\"k\",\"fingerprint\":\"f\",\"payload\":1}",
          false },
        { HF_HTTP_POST, "/v1/claims", "{\"key\":\"k\"}", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_call_match match;
        hf_call_find(cases[i].method, hf_str(cases[i].path), &match);
        assert_non_null(match.call);
        agree(match.call, cases[i].body, cases[i].good);
    }
}

static void line_agrees(const char *line, bool good)
{
    char why[256];
    struct hf_request request;
    struct hf_api_fault fault = { "" };
    const struct hf_call *call;
    struct tree *value = tree_read(hf_str(line), &arena);
    assert_non_null(value);
    bool decoded =
        hf_api_decode_line(hf_str(line), hf_str(""), &arena, &request, &call, &fault) == HF_OK &&
        !request.invalid;
    bool obeyed = tree_obeys(document, schema_of("batch_operation"), value, why);
    if (decoded != good || obeyed != good)
        fail_msg("%s: decoder \"%s\", description \"%s\"", line, fault.detail, why);
}

static void test_batch_lines_and_the_decoder_agree(void **state)
{
    (void)state;
    size_t ops = 0;
    for (size_t i = 0; i < hf_call_count; i++)
        ops += hf_calls[i].op != NULL;
    assert_int_equal(tree_count(tree_get(schema_of("batch_operation"), "oneOf")), ops);
    assert_int_equal(
        tree_count(tree_at(schema_of("batch_operation"), "discriminator", "mapping", NULL)), ops);
#define HOLD "\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1m\""
    line_agrees("{\"op\":\"place_hold\",\"key\":\"k\"," HOLD "}", true);
    line_agrees("{\"op\":\"place_hold\",\"client\":\"c\",\"sequence\":1," HOLD "}", true);
    line_agrees("{\"op\":\"place_hold\",\"client\":\"c\"," HOLD "}", false);
    line_agrees("{\"op\":\"place_hold\",\"key\":\"k\",\"client\":\"c\",\"sequence\":1," HOLD "}",
                false);
    line_agrees("{\"op\":\"place_hold\"," HOLD "}", false);
    line_agrees("{\"op\":\"place_hold\",\"key\":\"k\",\"id\":\"x\"," HOLD "}", false);
    line_agrees("{\"op\":\"confirm\",\"key\":\"k\",\"id\":\"x\"}", true);
    line_agrees("{\"op\":\"confirm\",\"key\":\"k\"}", false);
    line_agrees("{\"op\":\"release\",\"key\":\"k\",\"id\":\"x\"}", true);
    line_agrees("{\"op\":\"expire\",\"key\":\"k\",\"id\":\"x\"}", true);
    line_agrees("{\"op\":\"reverse\",\"key\":\"k\",\"id\":\"x\"}", true);
    line_agrees("{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\"}", true);
    line_agrees("{\"op\":\"check\",\"guard\":\"g\",\"identity\":\"i\",\"result\":1}", false);
    line_agrees("{\"op\":\"record\",\"guard\":\"g\",\"identity\":\"i\",\"result\":1}", true);
    line_agrees("{\"op\":\"admit\",\"guard\":\"g\",\"identity\":\"i\",\"key\":\"k\"}", true);
    line_agrees("{\"op\":\"admit\",\"name\":\"g\",\"identity\":\"i\"}", false);
    line_agrees("{\"op\":\"begin\",\"key\":\"k\",\"payload\":1}", true);
    line_agrees("{\"op\":\"begin\",\"payload\":1}", false);
    line_agrees("{\"op\":\"complete\",\"key\":\"k\",\"fence\":1}", true);
    line_agrees("{\"op\":\"complete\",\"fence\":1}", false);
    line_agrees("{\"op\":\"fail\",\"key\":\"k\",\"fence\":1,\"retryable\":true}", true);
    line_agrees("{\"op\":\"heartbeat\",\"key\":\"k\",\"fence\":1,\"lease\":\"1m\"}", true);
    line_agrees("{\"op\":\"write\",\"key\":\"k\",\"name\":\"n\",\"value\":1}", true);
    line_agrees("{\"op\":\"merge\",\"name\":\"n\",\"type\":\"max\",\"value\":1}", true);
    line_agrees("{\"op\":\"grant\",\"key\":\"k\",\"name\":\"n\",\"holder\":\"h\",\"ttl\":1}",
                false);
#undef HOLD
}

/* ---- References, codes, headers ---- */

static size_t references;

static void references_check(struct tree *t)
{
    for (struct tree *c = t->child; c; c = c->next) {
        bool mapped = hf_bytes_equal(t->name, hf_str("mapping"));
        if (c->type == HF_READ_STRING && (mapped || hf_bytes_equal(c->name, hf_str("$ref")))) {
            references++;
            if (!tree_resolve(document, c->text))
                fail_msg("%.*s leads nowhere", (int)c->text.size, (const char *)c->text.data);
        }
        references_check(c);
    }
}

static void test_references(void **state)
{
    (void)state;
    references = 0;
    references_check(document);
    assert_true(references > 300);
}

static bool has_words(enum hf_status status)
{
    return strcmp(hf_status_code(status), "unknown") != 0;
}

static bool has_number(const struct tree *array, unsigned number)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%u", number);
    for (const struct tree *c = array->child; c; c = c->next)
        if (hf_bytes_equal(c->text, hf_str(digits)))
            return true;
    return false;
}

static void test_every_code(void **state)
{
    (void)state;
    struct tree *problem = schema_of("problem");
    size_t codes = 0;
    for (int i = 1; i <= HF_INDETERMINATE; i++) {
        if (!has_words((enum hf_status)i))
            continue;
        codes++;
        assert_true(tree_has(tree_at(problem, "properties", "code", "enum", NULL),
                             hf_status_code((enum hf_status)i)));
        assert_true(has_number(tree_at(problem, "properties", "status", "enum", NULL),
                               hf_refusal_http((enum hf_status)i)));
    }
    assert_true(codes >= 20);
    assert_false(tree_has(tree_at(problem, "properties", "code", "enum", NULL), "unknown"));
}

static struct tree *response_of(const struct hf_call *call, unsigned status)
{
    char name[16];
    snprintf(name, sizeof name, "%u", status);
    return followed(tree_at(operation_of(call), "responses", name, NULL));
}

static bool names_code(const struct hf_call *call, enum hf_status status)
{
    char word[64];
    struct tree *response = response_of(call, hf_refusal_http(status));
    const struct tree *about = tree_get(response, "description");
    snprintf(word, sizeof word, "`%s`", hf_status_code(status));
    struct hf_bytes in = about ? about->text : hf_str("");
    for (size_t i = 0; i + strlen(word) <= in.size; i++)
        if (memcmp((const char *)in.data + i, word, strlen(word)) == 0)
            return true;
    return false;
}

/* Where there are words for a refusal of this very action, it can happen, so it must be described;
 * the words are for this action if they are not the general ones. */
static void test_every_refusal_of_a_call(void **state)
{
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        for (int s = HF_INVALID_REQUEST; call->kind == HF_CALL_DO && s < HF_REFUSED; s++) {
            enum hf_status status = (enum hf_status)s;
            struct hf_bytes own = hf_refusal_of(call->action, status).detail;
            if (own.data == hf_refusal_of((enum hf_action)0, status).detail.data)
                continue;
            found++;
            if (!names_code(call, status))
                fail_msg("%s may be refused as %s, and that is not described", call->path,
                         hf_status_code(status));
        }
        if (call->kind == HF_CALL_DO)
            assert_true(names_code(call, HF_INVALID_REQUEST));
        if (call->key)
            assert_true(names_code(call, HF_TOKEN_COLLISION));
        if (call->kind <= HF_CALL_EXPORT)
            assert_true(names_code(call, HF_STORAGE_FAILURE));
    }
    assert_true(found > 40);
}

/* Every refusal of the rules can be met somewhere. */
static void test_no_refusal_is_forgotten(void **state)
{
    (void)state;
    for (int s = HF_INVALID_REQUEST; s < HF_REFUSED; s++) {
        size_t calls = 0;
        for (size_t i = 0; i < hf_call_count; i++)
            calls += names_code(&hf_calls[i], (enum hf_status)s);
        if (calls == 0)
            fail_msg("no call is described to be refused as %s", hf_status_code((enum hf_status)s));
    }
}

static void test_successes_and_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        bool made =
            call->kind == HF_CALL_DO &&
            (call->action == HF_PLACE_HOLD || call->action == HF_GRANT || call->action == HF_BEGIN);
        bool may_make = call->kind == HF_CALL_DO && call->action == HF_CONFIRM; /* late */
        assert_int_equal(response_of(call, 201) != NULL, made || may_make);
        assert_int_equal(response_of(call, 200) != NULL, !made || call->action == HF_BEGIN);
        struct tree *headers = tree_get(response_of(call, made ? 201 : 200), "headers");
        bool settled =
            call->kind == HF_CALL_DO && (call->action == HF_COMPLETE || call->action == HF_FAIL ||
                                         call->action == HF_GET_CLAIM);
        assert_int_equal(tree_get(headers, "Idempotency-Expires") != NULL, call->key || settled);
        if (call->key)
            assert_non_null(tree_get(headers, "Idempotent-Replayed"));
        if (call->role > HF_ROLE_NONE)
            assert_non_null(tree_at(response_of(call, 401), "headers", "WWW-Authenticate", NULL));
        if (call->kind <= HF_CALL_EXPORT || call->kind == HF_CALL_READY)
            assert_non_null(tree_at(response_of(call, 503), "headers", "Retry-After", NULL));
        if (call->kind == HF_CALL_DO && call->action == HF_BEGIN)
            assert_non_null(tree_at(response_of(call, 409), "headers", "Retry-After", NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_every_call_and_no_other),
        cmocka_unit_test(test_operation_ids_are_unique),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_security),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_bodies_and_the_decoder_agree),
        cmocka_unit_test(test_bounds_of_fields),
        cmocka_unit_test(test_batch_lines_and_the_decoder_agree),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_every_code),
        cmocka_unit_test(test_every_refusal_of_a_call),
        cmocka_unit_test(test_no_refusal_is_forgotten),
        cmocka_unit_test(test_successes_and_headers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

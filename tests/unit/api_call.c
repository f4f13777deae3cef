/* The table of calls: every promise of the interface is a row, and every row is found by its path
 * alone. */
#include "api/call.h"
#include "base/bytes.h"
#include "support/test.h"

static const struct {
    enum hf_http_method method;
    const char *path;
    enum hf_call_kind kind;
    int number; /* action or list */
    enum hf_role role;
    bool key;
    const char *op;
} promised[] = {
    { HF_HTTP_POST, "/v1/holds", HF_CALL_DO, HF_PLACE_HOLD, HF_ROLE_WRITE, true, "place_hold" },
    { HF_HTTP_GET, "/v1/holds", HF_CALL_LIST, HF_LIST_HOLDS, HF_ROLE_READ, false, NULL },
    { HF_HTTP_POST, "/v1/holds/{id}/confirm", HF_CALL_DO, HF_CONFIRM, HF_ROLE_WRITE, true,
      "confirm" },
    { HF_HTTP_POST, "/v1/holds/{id}/release", HF_CALL_DO, HF_RELEASE, HF_ROLE_WRITE, true,
      "release" },
    { HF_HTTP_POST, "/v1/holds/{id}/expire", HF_CALL_DO, HF_EXPIRE, HF_ROLE_WRITE, true, "expire" },
    { HF_HTTP_POST, "/v1/holds/{id}/reverse", HF_CALL_DO, HF_REVERSE, HF_ROLE_WRITE, true,
      "reverse" },
    { HF_HTTP_GET, "/v1/holds/{id}", HF_CALL_DO, HF_GET_HOLD, HF_ROLE_READ, false, NULL },
    { HF_HTTP_PUT, "/v1/resources/{name}", HF_CALL_DO, HF_SET_RESOURCE, HF_ROLE_WRITE, false,
      NULL },
    { HF_HTTP_GET, "/v1/resources/{name}", HF_CALL_DO, HF_GET_RESOURCE, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/resources", HF_CALL_LIST, HF_LIST_RESOURCES, HF_ROLE_READ, false, NULL },
    { HF_HTTP_PUT, "/v1/guards/{name}", HF_CALL_DO, HF_SET_GUARD, HF_ROLE_WRITE, false, NULL },
    { HF_HTTP_GET, "/v1/guards/{name}", HF_CALL_DO, HF_GET_GUARD, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/guards", HF_CALL_LIST, HF_LIST_GUARDS, HF_ROLE_READ, false, NULL },
    { HF_HTTP_POST, "/v1/guards/{name}/check", HF_CALL_DO, HF_CHECK, HF_ROLE_READ, false, "check" },
    { HF_HTTP_POST, "/v1/guards/{name}/record", HF_CALL_DO, HF_RECORD, HF_ROLE_WRITE, false,
      "record" },
    { HF_HTTP_POST, "/v1/guards/{name}/admit", HF_CALL_DO, HF_ADMIT, HF_ROLE_WRITE, false,
      "admit" },
    { HF_HTTP_GET, "/v1/guards/{name}/entries", HF_CALL_LIST, HF_LIST_ENTRIES, HF_ROLE_READ, false,
      NULL },
    { HF_HTTP_POST, "/v1/claims", HF_CALL_DO, HF_BEGIN, HF_ROLE_WRITE, false, "begin" },
    { HF_HTTP_GET, "/v1/claims", HF_CALL_LIST, HF_LIST_CLAIMS, HF_ROLE_READ, false, NULL },
    { HF_HTTP_POST, "/v1/claims/{key}/complete", HF_CALL_DO, HF_COMPLETE, HF_ROLE_WRITE, false,
      "complete" },
    { HF_HTTP_POST, "/v1/claims/{key}/fail", HF_CALL_DO, HF_FAIL, HF_ROLE_WRITE, false, "fail" },
    { HF_HTTP_POST, "/v1/claims/{key}/heartbeat", HF_CALL_DO, HF_HEARTBEAT, HF_ROLE_WRITE, false,
      "heartbeat" },
    { HF_HTTP_POST, "/v1/claims/{key}/abandon", HF_CALL_DO, HF_ABANDON, HF_ROLE_WRITE, false,
      "abandon" },
    { HF_HTTP_GET, "/v1/claims/{key}", HF_CALL_DO, HF_GET_CLAIM, HF_ROLE_READ, false, NULL },
    { HF_HTTP_POST, "/v1/leases/{name}", HF_CALL_DO, HF_GRANT, HF_ROLE_WRITE, true, NULL },
    { HF_HTTP_POST, "/v1/leases/{name}/renew", HF_CALL_DO, HF_RENEW, HF_ROLE_WRITE, false, NULL },
    { HF_HTTP_POST, "/v1/leases/{name}/release", HF_CALL_DO, HF_RETURN, HF_ROLE_WRITE, false,
      NULL },
    { HF_HTTP_GET, "/v1/leases/{name}", HF_CALL_DO, HF_GET_LEASE, HF_ROLE_READ, false, NULL },
    { HF_HTTP_DELETE, "/v1/leases/{name}", HF_CALL_DO, HF_DELETE_LEASE, HF_ROLE_WRITE, true,
      "delete_lease" },
    { HF_HTTP_PUT, "/v1/registers/{name}", HF_CALL_DO, HF_WRITE, HF_ROLE_WRITE, true, "write" },
    { HF_HTTP_POST, "/v1/registers/{name}/merge", HF_CALL_DO, HF_MERGE, HF_ROLE_WRITE, false,
      "merge" },
    { HF_HTTP_GET, "/v1/registers/{name}", HF_CALL_DO, HF_GET_REGISTER, HF_ROLE_READ, false, NULL },
    { HF_HTTP_DELETE, "/v1/registers/{name}", HF_CALL_DO, HF_DELETE_REGISTER, HF_ROLE_WRITE, true,
      "delete_register" },
    { HF_HTTP_POST, "/v1/batch", HF_CALL_BULK, 0, HF_ROLE_WRITE, false, NULL },
    { HF_HTTP_GET, "/v1/tokens/{key}", HF_CALL_DO, HF_GET_TOKEN, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/tokens", HF_CALL_DO, HF_GET_TOKEN, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/audit", HF_CALL_AUDIT, 0, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/head", HF_CALL_HEAD, 0, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/trace/{id}", HF_CALL_TRACE, 0, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/v1/export", HF_CALL_EXPORT, 0, HF_ROLE_ADMIN, false, NULL },
    { HF_HTTP_GET, "/v1/openapi.json", HF_CALL_OPENAPI, 0, HF_ROLE_NONE, false, NULL },
    { HF_HTTP_GET, "/healthz", HF_CALL_HEALTH, 0, HF_ROLE_NONE, false, NULL },
    { HF_HTTP_GET, "/readyz", HF_CALL_READY, 0, HF_ROLE_NONE, false, NULL },
    { HF_HTTP_GET, "/metrics", HF_CALL_METRICS, 0, HF_ROLE_READ, false, NULL },
    { HF_HTTP_GET, "/", HF_CALL_PAGE, 0, HF_ROLE_NONE, false, NULL },
};

#define PROMISED (sizeof promised / sizeof *promised)

/* The path with `param` in place of what stands in braces. */
static bool path_with(const char *path, const char *param, char out[256])
{
    const char *open = strchr(path, '{'), *close = strchr(path, '}');
    if (open)
        snprintf(out, 256, "%.*s%s%s", (int)(open - path), path, param, close + 1);
    else
        snprintf(out, 256, "%s", path);
    return open != NULL;
}

static struct hf_call_match found(enum hf_http_method method, const char *path)
{
    struct hf_call_match match;
    hf_call_find(method, hf_str(path), &match);
    return match;
}

static void test_promises(void **state)
{
    (void)state;
    assert_int_equal(hf_call_count, PROMISED);
    for (size_t i = 0; i < PROMISED; i++) {
        char path[256];
        path_with(promised[i].path, "x", path);
        const struct hf_call *call = found(promised[i].method, path).call;
        if (!call)
            fail_msg("%s is not found", path);
        assert_string_equal(call->path, promised[i].path);
        assert_int_equal(call->kind, promised[i].kind);
        assert_int_equal(call->kind == HF_CALL_LIST ? (int)call->list : (int)call->action,
                         promised[i].number);
        assert_int_equal(call->role, promised[i].role);
        assert_int_equal(call->key, promised[i].key);
        if (promised[i].op)
            assert_string_equal(call->op, promised[i].op);
        else
            assert_null(call->op);
    }
}

/* Whatever the table has is found, with whatever may stand in a path. */
static void test_every_row_is_found(void **state)
{
    (void)state;
    static const char *const params[] = { "x",    "a%2Fb", "%00", "confirm", "holds",
                                          "{id}", "..",    "a b", "\xff" };
    for (const struct hf_call *row = hf_calls; row < hf_calls + hf_call_count; row++) {
        for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
            char path[256];
            bool has_param = path_with(row->path, params[i], path);
            struct hf_call_match match = found(row->method, path);
            assert_ptr_equal(match.call, row);
            assert_string_equal(match.allow, "");
            assert_true(hf_bytes_equal(match.params[0], hf_str(has_param ? params[i] : "")));
            if (has_param) /* borrowed */
                assert_int_equal(match.params[0].size, strlen(params[i]));
            match = found(row->method == HF_HTTP_GET ? HF_HTTP_HEAD : row->method, path);
            assert_ptr_equal(match.call, row);
        }
    }
}

static void test_other_methods(void **state)
{
    (void)state;
    static const struct {
        enum hf_http_method method;
        const char *path, *allow;
    } cases[] = {
        { HF_HTTP_DELETE, "/v1/holds", "GET, POST" },
        { HF_HTTP_PUT, "/v1/holds/x", "GET" },
        { HF_HTTP_GET, "/v1/holds/x/confirm", "POST" },
        { HF_HTTP_HEAD, "/v1/holds/x/confirm", "POST" },
        { HF_HTTP_POST, "/v1/resources/x", "GET, PUT" },
        { HF_HTTP_OPTIONS, "/v1/guards/x", "GET, PUT" },
        { HF_HTTP_OTHER, "/v1/leases/x", "GET, POST, DELETE" },
        { HF_HTTP_GET, "/v1/batch", "POST" },
        { HF_HTTP_POST, "/", "GET" },
        { HF_HTTP_POST, "/healthz", "GET" },
        { HF_HTTP_POST, "/v1/registers/x", "GET, PUT, DELETE" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf_call_match match = found(cases[i].method, cases[i].path);
        assert_null(match.call);
        assert_string_equal(match.allow, cases[i].allow);
    }
}

static void test_unknown_paths(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "",
        "v1/holds",
        "//",
        "/x",
        "/v1",
        "/v1/",
        "/v2/holds",
        "/v1/hold",
        "/v1/holdss",
        "/v1/Holds",
        "/v1/hold%73",
        "/v1/holds/",
        "/v1//holds",
        "/v1/holds//confirm",
        "/v1/holds/x/",
        "/v1/holds/x/confir",
        "/v1/holds/x/confirmed",
        "/v1/holds/x/confirm/",
        "/v1/holds/x/confirm/y",
        "/v1/holds/x/y/z",
        "/v1/leases",
        "/v1/tokens/",
        "/v1/claims//fail",
        "/v1/audit/",
        "/v1/audit/x",
        "/v1/batch/x",
        "/v1/openapi.json/x",
        "/healthz/",
        "/healthzz",
        "/metrics/x",
        "/index.html",
    };
    static const enum hf_http_method methods[] = { HF_HTTP_GET, HF_HTTP_POST, HF_HTTP_PUT,
                                                   HF_HTTP_DELETE };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
            struct hf_call_match match = found(methods[k], paths[i]);
            if (match.call || match.allow[0])
                fail_msg("%s is not unknown", paths[i]);
        }
    }
    struct hf_call_match match;
    hf_call_find(HF_HTTP_POST, hf_mem("/v1/holds/x/confirm\0y", 21), &match); /* a NUL is no end */
    assert_null(match.call);
    hf_call_find(HF_HTTP_GET, hf_mem(NULL, 0), &match);
    assert_null(match.call);
}

/* Paths that are cut anywhere, in exactly as much memory, for a sanitizer to watch. */
static void test_cut_paths(void **state)
{
    (void)state;
    for (const struct hf_call *row = hf_calls; row < hf_calls + hf_call_count; row++) {
        for (size_t size = 0; size <= strlen(row->path); size++) {
            char *path = malloc(size + 1);
            memcpy(path, row->path, size);
            path = realloc(path, size > 0 ? size : 1);
            struct hf_call_match match;
            hf_call_find(row->method, hf_mem(path, size), &match);
            if (match.call)
                assert_int_equal(match.call->method, row->method);
            free(path);
        }
    }
}

static void test_ops(void **state)
{
    (void)state;
    size_t count = 0;
    for (size_t i = 0; i < PROMISED; i++) {
        if (!promised[i].op)
            continue;
        count++;
        const struct hf_call *call = hf_call_of_op(hf_str(promised[i].op));
        assert_non_null(call);
        assert_int_equal(call->action, promised[i].number);
        assert_string_equal(hf_action_name(call->action), call->op);
    }
    assert_int_equal(count, 17);
    static const char *const none[] = { "",        "hold",  "place_hol", "place_hold ",
                                        "Confirm", "grant", "get_hold" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(hf_call_of_op(hf_str(none[i])));
    assert_null(hf_call_of_op(hf_mem("fail\0", 5)));
}

/* Does the field's value have the size in the request that its type needs? */
static bool is_placed(const struct hf_call *call, const struct hf_call_field *field)
{
    size_t whole = call->kind == HF_CALL_LIST ? sizeof(struct hf_query) : sizeof(struct hf_request);
    if (field->at == 0)
        return !field->has && !field->is_name;
    if (field->at + field->size > whole || field->has >= whole)
        return false;
    switch (field->type) {
    case HF_TYPE_OF_TEXT:
    case HF_TYPE_OF_JSON: return field->size == sizeof(struct hf_bytes);
    case HF_TYPE_OF_DURATION:
    case HF_TYPE_OF_TIME: return field->size == sizeof(int64_t);
    case HF_TYPE_OF_NUMBER: return field->size == sizeof(uint64_t) || field->most > 0;
    case HF_TYPE_OF_FLAG: return field->yes != field->no;
    case HF_TYPE_OF_CHOICE: return field->size == sizeof(enum hf_abandon);
    case HF_TYPE_OF_MATCH: return field->size == HF_MATCH_MAX * sizeof(enum hf_match);
    }
    return false;
}

/* What a description for people and programs is made from. */
static void test_words(void **state)
{
    (void)state;
    for (const struct hf_call *row = hf_calls; row < hf_calls + hf_call_count; row++) {
        size_t size = strlen(row->help);
        assert_true(size > 10 && (row->help[size - 1] == '.' || row->help[size - 1] == '?'));
        assert_true(row->answers && row->answers[0]);
        assert_true(row->field_count <= HF_CALL_FIELDS_MAX);
        for (size_t i = 0; i < row->field_count; i++) {
            const struct hf_call_field *field = &row->fields[i];
            bool chosen = field->type == HF_TYPE_OF_CHOICE || field->type == HF_TYPE_OF_MATCH;
            assert_true(field->name[0] && field->help[0]);
            assert_int_equal(field->choices != NULL, chosen);
            assert_true(is_placed(row, field));
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(row->fields[k].name, field->name);
        }
    }
}

static const char *fields_of(enum hf_http_method method, const char *path)
{
    static char text[160];
    const struct hf_call *call = found(method, path).call;
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < call->field_count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s", i ? " " : "",
                               call->fields[i].name, call->fields[i].required ? "!" : "");
    return text;
}

static void test_fields(void **state)
{
    (void)state;
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/holds"),
                        "resource! requester! duration! fence");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/holds/x/confirm"), "late");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/holds/x/release"), "");
    assert_string_equal(fields_of(HF_HTTP_GET, "/v1/holds"),
                        "limit cursor state resource requester from to");
    assert_string_equal(fields_of(HF_HTTP_PUT, "/v1/resources/x"), "capacity open require_fence");
    assert_string_equal(fields_of(HF_HTTP_GET, "/v1/resources"), "limit cursor");
    assert_string_equal(fields_of(HF_HTTP_PUT, "/v1/guards/x"),
                        "window! match on_unavailable durable force");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/guards/x/check"), "identity!");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/guards/x/record"), "identity! result");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/guards/x/admit"), "identity! result");
    assert_string_equal(fields_of(HF_HTTP_GET, "/v1/guards/x/entries"), "limit cursor");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/claims"),
                        "key fingerprint payload lease on_abandon retention");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/claims/x/complete"), "fence! response");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/claims/x/fail"), "fence! retryable error");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/claims/x/heartbeat"), "fence! lease");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/claims/x/abandon"), "fence!");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/leases/x"), "holder! ttl!");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/leases/x/renew"), "fence! ttl");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/leases/x/release"), "fence!");
    assert_string_equal(fields_of(HF_HTTP_PUT, "/v1/registers/x"),
                        "value! fence if_version require_fence");
    assert_string_equal(fields_of(HF_HTTP_POST, "/v1/registers/x/merge"), "type! value!");
    assert_string_equal(fields_of(HF_HTTP_DELETE, "/v1/registers/x"), "fence if_version");
    assert_string_equal(fields_of(HF_HTTP_DELETE, "/v1/leases/x"), "fence");
    assert_string_equal(fields_of(HF_HTTP_GET, "/v1/export"), "format");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),      cmocka_unit_test(test_every_row_is_found),
        cmocka_unit_test(test_other_methods), cmocka_unit_test(test_unknown_paths),
        cmocka_unit_test(test_cut_paths),     cmocka_unit_test(test_ops),
        cmocka_unit_test(test_words),         cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The schemas of the description: whatever an encoder writes has the members that its schema lists,
 * all that are required and no others; and every member that is listed is written by somebody. */
#include "server/kit/json_tree.h"
#include "support/test.h"

#include "api/encode.h"
#include "audit/audit.h"
#include "audit/trace.h"
#include "base/bytes.h"
#include "server/inner.h"
#include "server/tenant.h"
#include "json/stored.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define T0 INT64_C(1794778797123)

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

static struct tree *schema_of(const char *name)
{
    struct tree *schema = tree_at(document, "components", "schemas", name, NULL);
    if (!schema)
        fail_msg("there is no schema %s", name);
    return schema;
}

static bool has_words(enum hf_status status)
{
    return strcmp(hf_status_code(status), "unknown") != 0;
}

/* ---- Records ---- */

static const struct tree *met[512]; /* the properties that some sample had */
static size_t met_count;

static void obeys_schema(const char *name, struct hf_bytes body)
{
    char why[256];
    struct tree *schema = schema_of(name), *value = tree_read(body, &arena);
    assert_non_null(value);
    if (!tree_obeys(document, schema, value, why))
        fail_msg("%s: %s: %.*s", name, why, (int)body.size, (const char *)body.data);
    for (const struct tree *c = tree_get(schema, "properties")->child; c; c = c->next)
        for (const struct tree *v = value->child; v; v = v->next)
            if (hf_bytes_equal(c->name, v->name) && met_count < sizeof met / sizeof *met)
                met[met_count++] = c;
}

/* The samples together have every member that the schema lists. */
static void all_met(const char *name)
{
    for (const struct tree *c = tree_get(schema_of(name), "properties")->child; c; c = c->next) {
        bool found = false;
        for (size_t i = 0; i < met_count; i++)
            found |= met[i] == c;
        if (!found)
            fail_msg("%s: no sample has %.*s", name, (int)c->name.size, (const char *)c->name.data);
    }
}

#define OBEYS(name, encode)                                    \
    do {                                                       \
        struct hf_buffer b_ = { 0 };                           \
        struct hf_json j = { .out = &b_ };                     \
        encode;                                                \
        assert_false(b_.failed);                               \
        unsigned char *kept_ = hf_arena_take(&arena, b_.size); \
        memcpy(kept_, b_.data, b_.size);                       \
        obeys_schema((name), hf_mem(kept_, b_.size));          \
        hf_buffer_free(&b_);                                   \
    } while (0)

static void test_holds(void **state)
{
    (void)state;
    struct hf_hold hold = { .id = "2pchzd8hasq1k79e61jzn6k0wx",
                            .resource = hf_str("r"),
                            .requester = hf_str("q"),
                            .placed_at = T0,
                            .expires_at = T0 + 1 };
    met_count = 0;
    for (int s = HF_HELD; s <= HF_EXPIRED; s++) {
        hold.state = (enum hf_hold_state)s;
        hold.ended_at = s == HF_HELD ? 0 : T0;
        OBEYS("hold", hf_api_hold(&j, &hold));
        struct hf_answer answer = { .status = HF_OK, .kind = HF_RECORD_HOLD, .hold = hold };
        OBEYS("hold", hf_api_answer(&j, HF_CONFIRM, &answer));
    }
    strcpy(hold.reverses, "5w0crm2eyxsy4k3pv1y0ajt7d2");
    OBEYS("hold", hf_api_hold(&j, &hold));
    strcpy(hold.reacquires, hold.reverses);
    hold.reverses[0] = '\0';
    OBEYS("hold", hf_api_hold(&j, &hold));
    struct hf_page page = { .count = 1, .holds = &hold };
    OBEYS("holds", hf_api_holds(&j, &page));
    page.next_cursor = 7;
    OBEYS("holds", hf_api_holds(&j, &page));
    page.count = 0;
    OBEYS("holds", hf_api_holds(&j, &page));
    all_met("hold");
    all_met("holds");
}

static void test_resources(void **state)
{
    (void)state;
    struct hf_resource r = { .name = hf_str("r"), .capacity = 5, .held = 1, .open = true };
    struct hf_page page = { .count = 1, .resources = &r };
    met_count = 0;
    OBEYS("resource", hf_api_resource(&j, &r));
    r.require_fence = true;
    OBEYS("resource", hf_api_resource(&j, &r));
    OBEYS("resources", hf_api_resources(&j, &page));
    all_met("resource");
    all_met("resources");
}

static void test_guards(void **state)
{
    (void)state;
    struct hf_guard g = {
        .name = hf_str("g"), .window_ms = 60000, .durable = true, .created_at = T0
    };
    struct hf_page page = { .count = 1, .guards = &g };
    met_count = 0;
    OBEYS("guard", hf_api_guard(&j, &g));
    for (int m = HF_MATCH_EXACT; m <= HF_MATCH_HASH; m++) {
        g.match[0] = (enum hf_match)m;
        g.match_count = 1;
        g.on_unavailable = m % 2 ? HF_FAIL_OPEN : HF_FAIL_CLOSED;
        OBEYS("guard", hf_api_guard(&j, &g));
    }
    OBEYS("guards", hf_api_guards(&j, &page));
    all_met("guard");
    all_met("guards");
}

static void test_identities(void **state)
{
    (void)state;
    struct hf_entry e = { .identity = hf_str("i"), .recorded_at = T0, .expires_at = T0 + 1 };
    struct hf_seen seen = { .seen = false };
    struct hf_answer answer = { .status = HF_OK, .kind = HF_RECORD_SEEN };
    struct hf_page page = { .count = 1, .entries = &e };
    met_count = 0;
    OBEYS("entry", hf_api_entry(&j, &e, false));
    OBEYS("entry", hf_api_entry(&j, &e, true));
    e.identity = hf_mem("\xff\x00", 2);
    e.result = hf_str("a result");
    e.has_result = true;
    OBEYS("entry", hf_api_entry(&j, &e, false));
    OBEYS("entries", hf_api_entries(&j, &page, false));
    OBEYS("seen", hf_api_seen(&j, &seen));
    seen.seen = true;
    OBEYS("seen", hf_api_seen(&j, &seen));
    seen = (struct hf_seen){ true, true, T0, T0 + 1,
                             hf_mem("\0j................................{\"a\":1}", 41) };
    OBEYS("seen", hf_api_seen(&j, &seen));
    answer.seen = seen;
    OBEYS("ok", hf_api_answer(&j, HF_RECORD, &answer));
    OBEYS("seen", hf_api_answer(&j, HF_ADMIT, &answer));
    all_met("entry");
    all_met("entries");
    all_met("seen");
    all_met("ok");
}

static void test_claims_leases_registers(void **state)
{
    (void)state;
    struct hf_claim c = {
        .key = hf_mem("\xff", 1), .lease_ms = 60000, .begun_at = T0, .lease_expires_at = T0 + 60000
    };
    struct hf_lease l = { .name = hf_str("n"),
                          .holder = hf_str("h"),
                          .fence = 3,
                          .ttl_ms = 1500,
                          .granted_at = T0,
                          .expires_at = T0 + 1500 };
    struct hf_item item = { hf_str("node"), 3, 1 };
    met_count = 0;
    for (int s = HF_CLAIM_STARTED; s <= HF_CLAIM_UNKNOWN; s++) {
        bool settled = s != HF_CLAIM_STARTED && s != HF_CLAIM_UNKNOWN;
        c.state = (enum hf_claim_state)s;
        c.on_abandon = s % 2 ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
        c.settled_at = settled ? T0 : 0;
        c.expires_at = settled ? T0 + 1 : 0;
        c.retention_ms = settled ? 1 : 0;
        OBEYS("claim", hf_api_claim(&j, &c));
    }
    OBEYS("lease", hf_api_lease(&j, &l));
    l.released_at = T0;
    OBEYS("lease", hf_api_lease(&j, &l));
    for (int t = HF_TYPE_PLAIN; t <= HF_TYPE_UPDOWN; t++) {
        struct hf_register r = { .name = hf_str("r"),
                                 .version = 1,
                                 .fence = 2,
                                 .require_fence = t == HF_TYPE_PLAIN,
                                 .value = { .type = (enum hf_register_type)t,
                                            .number = -4,
                                            .items = &item,
                                            .item_count = 1 } };
        OBEYS("register", hf_api_register(&j, &r));
    }
    all_met("claim");
    all_met("lease");
    all_met("register");
}

static void test_tokens_and_problems(void **state)
{
    (void)state;
    struct hf_token token = { .action = HF_PLACE_HOLD,
                              .status = HF_RESOURCE_UNAVAILABLE,
                              .recorded_at = T0,
                              .expires_at = T0 + 1 };
    struct hf_answer answer = { .status = HF_RESOURCE_UNAVAILABLE };
    met_count = 0;
    OBEYS("token", hf_api_token(&j, &token, &answer));
    token = (struct hf_token){ .action = HF_APPLY, .recorded_at = T0, .expires_at = T0 + 1 };
    answer =
        (struct hf_answer){ .status = HF_OK, .kind = HF_RECORD_VALUE, .value = hf_mem("\xff", 1) };
    OBEYS("token", hf_api_token(&j, &token, &answer));
    token.action = HF_GRANT;
    answer = (struct hf_answer){
        .status = HF_OK,
        .kind = HF_RECORD_LEASE,
        .lease = { .name = hf_str("n"), .holder = hf_str("h"), .granted_at = T0, .expires_at = T0 }
    };
    OBEYS("token", hf_api_token(&j, &token, &answer));
    for (int i = 1; i <= HF_INDETERMINATE; i++) {
        answer = (struct hf_answer){ .status = (enum hf_status)i };
        if (has_words((enum hf_status)i))
            OBEYS("problem", hf_api_answer(&j, HF_CONFIRM, &answer));
    }
    all_met("token");
    struct hf_answer unknown = { .status = HF_OUTCOME_UNKNOWN,
                                 .kind = HF_RECORD_CLAIM,
                                 .claim = { .key = hf_str("k"),
                                            .state = HF_CLAIM_UNKNOWN,
                                            .fence = 7,
                                            .begun_at = 1,
                                            .lease_expires_at = 2 } };
    OBEYS("problem", hf_api_answer(&j, HF_BEGIN, &unknown));
    struct hf_answer refund = { .status = HF_WINDOW_ELAPSED, .refund = true };
    OBEYS("problem", hf_api_answer(&j, HF_CONFIRM_LATE, &refund));
    all_met("problem");
}

/* ---- Audit and trace, of a real store ---- */

static char folder[] = "/tmp/hf-openapi-XXXXXX";

static void folder_remove(void)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    char path[512];
    while (dir && (e = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void place(struct hf_db *db, const char *key, char id[HF_ID_SIZE])
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request request = { .action = HF_PLACE_HOLD,
                                  .key = hf_str(key),
                                  .place_hold = { hf_str("r"), hf_str("q"), 60000, 0 } };
    (void)!hf_do(db, &request, &result);
    if (result.answer.status == HF_OK)
        memcpy(id, result.answer.hold.id, HF_ID_SIZE);
    hf_result_clear(&result);
}

static void claim_extend(struct hf_db *db, int times)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request begin = { .action = HF_BEGIN,
                                .key = hf_str("long"),
                                .begin = { .payload = hf_str("p"), .lease_ms = 60000 } };
    assert_int_equal(hf_do(db, &begin, &result), HF_OK);
    struct hf_request beat = { .action = HF_HEARTBEAT,
                               .key = hf_str("long"),
                               .settle = { .fence = result.answer.claim.fence } };
    for (int i = 0; i < times; i++)
        assert_int_equal(hf_do(db, &beat, NULL), HF_OK);
    hf_result_clear(&result);
}

static void store_fill(char id[HF_ID_SIZE])
{
    struct hf_db *db;
    struct hf_error why;
    char second[HF_ID_SIZE] = "";
    assert_int_equal(hf_open(folder, NULL, &db, &why), HF_OK);
    struct hf_request capacity = { .action = HF_SET_RESOURCE };
    capacity.set_resource.name = hf_str("r");
    capacity.set_resource.capacity = 2;
    assert_int_equal(hf_do(db, &capacity, NULL), HF_OK);
    place(db, "one", id);
    place(db, "two", second);   /* a near-duplicate */
    place(db, "three", second); /* refused: both units are taken */
    struct hf_request numbered = {
        .action = HF_RELEASE, .client = hf_str("c"), .sequence = 1, .hold = { hf_str(id) }
    };
    assert_int_equal(hf_do(db, &numbered, NULL), HF_OK);
    claim_extend(db, 1001); /* more events than a trace shows */
    hf_close(db);
}

/* One byte of the first batch is another one from now on. */
static void first_batch_spoil(void)
{
    char path[512], byte = 0;
    snprintf(path, sizeof path, "%s/journal-00000001.log", folder);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, 4096 + 100) == 1);
    byte = (char)(byte ^ 1);
    assert_int_equal(pwrite(fd, &byte, 1, 4096 + 100), 1);
    close(fd);
}

typedef bool print_fn(FILE *out, const char *name);

static bool print_audit(FILE *out, const char *tenant)
{
    struct hf_audit_report report;
    struct hf_error why;
    static const uint8_t head[HF_DIGEST_SIZE];
    struct hf_audit_options options = { .has_tenant = tenant != NULL,
                                        .tenant = hf_str(tenant),
                                        .expect_head = tenant ? NULL : head };
    bool done =
        hf_audit_run(folder, &options, &report, &why) == HF_OK && hf_audit_print_json(&report, out);
    hf_audit_report_free(&report);
    return done;
}

static bool print_trace(FILE *out, const char *name)
{
    struct hf_audit_trace_options options = { .json = true };
    struct hf_error why;
    return hf_audit_trace(folder, hf_str(name), &options, out, &why) == 0;
}

static struct tree *printed(print_fn *print, const char *name, const char *schema)
{
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    assert_non_null(out);
    assert_true(print(out, name));
    fclose(out);
    char *copy = hf_arena_take(&arena, size);
    memcpy(copy, data, size);
    free(data);
    obeys_schema(schema, hf_mem(copy, size));
    return tree_read(hf_mem(copy, size), &arena);
}

/* Every member of a part's schema is there. */
static void part_met(const char *schema, const struct tree *part)
{
    assert_non_null(part);
    for (const struct tree *c = tree_get(schema_of(schema), "properties")->child; c; c = c->next) {
        bool found = false;
        for (const struct tree *m = part->child; m; m = m->next)
            found |= hf_bytes_equal(m->name, c->name);
        if (!found)
            fail_msg("%s has no %.*s", schema, (int)c->name.size, (const char *)c->name.data);
    }
}

static void test_audit_and_trace(void **state)
{
    (void)state;
    char id[HF_ID_SIZE] = "";
    met_count = 0;
    assert_non_null(mkdtemp(folder));
    store_fill(id);
    struct tree *audit = printed(print_audit, NULL, "audit");
    printed(print_audit, "", "audit");
    struct tree *trace = printed(print_trace, id, "trace");
    printed(print_trace, "three", "trace");
    printed(print_trace, "long", "trace");
    first_batch_spoil();
    struct tree *damaged = printed(print_audit, NULL, "audit");
    folder_remove();
    part_met("audit_damage", tree_at(damaged, "journal", "damage", NULL)->child);
    all_met("audit");
    all_met("trace");
    part_met("audit_check", tree_get(audit, "checks")->child);
    part_met("audit_configuration", tree_get(audit, "configuration")->child);
    part_met("audit_near_duplicates", tree_get(audit, "near_duplicates"));
    part_met("audit_near_duplicate", tree_at(audit, "near_duplicates", "listed", NULL)->child);
    part_met("audit_journal", tree_get(audit, "journal"));
    part_met("audit_holds", tree_get(audit, "holds"));
    part_met("audit_failures", tree_get(audit, "failures_cached"));
    part_met("audit_records", tree_get(audit, "records"));
    assert_int_equal(tree_count(tree_get(trace, "events")), 2);
    assert_non_null(tree_get(tree_get(trace, "events")->child, "key_expires_at"));
    assert_non_null(tree_get(tree_get(trace, "events")->child->next, "sequence"));
}

/* The judge itself: a record with a member too many, too few, or of another type is found. */
static void test_the_judge(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"ok\":true,\"more\":1}", "{}", "{\"ok\":false}", "{\"ok\":\"true\"}", "[]", "1",
    };
    char why[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(tree_obeys(document, schema_of("ok"), tree_read(hf_str(bad[i]), &arena), why));
    assert_true(
        tree_obeys(document, schema_of("ok"), tree_read(hf_str("{\"ok\":true}"), &arena), why));
    assert_false(
        tree_obeys(document, schema_of("time"), tree_read(hf_str("\"yesterday\""), &arena), why));
    assert_false(tree_obeys(document, schema_of("hex"), tree_read(hf_str("\"0g\""), &arena), why));
}

/* What each tenant may have: found by name, and requests a second. */

static struct hf_tenants tenants;

static struct hf_tenant *find(const char *name, struct hf_tenant *before)
{
    struct hf_tenant *t = hf_tenant_find(&tenants, before, hf_str(name));
    assert_non_null(t);
    return t;
}

static void found_by_name(void **state)
{
    (void)state;
    hf_tenants_init(&tenants, 7, 0);
    struct hf_tenant *some[600];
    char name[32];
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "t%d", i);
        some[i] = find(name, i ? some[i - 1] : NULL);
        assert_int_equal(some[i]->group.max, 7);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(some[i], some[k]);
    }
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_ptr_equal(find(name, NULL), some[i]);
        assert_ptr_equal(find(name, some[i]), some[i]);
        assert_ptr_equal(find(name, some[(i + 1) % 600]), some[i]);
    }
    assert_ptr_equal(find("", NULL),
                     find("", some[0])); /* the default tenant is one like the others */
    assert_ptr_not_equal(find("", NULL), &tenants.nobody);
    hf_tenants_free(&tenants);
}

/* How many of `tries` are let in at `now`? */
static int64_t take(struct hf_tenant *t, int64_t now_us, uint64_t count)
{
    return hf_tenant_take(&tenants, t, &(struct hf_charge){ .now_us = now_us, .count = count });
}

static int let_in(struct hf_tenant *t, int64_t now_us, int tries)
{
    int in = 0;
    for (int i = 0; i < tries; i++)
        in += take(t, now_us, 1) == 0;
    return in;
}

static void a_second_at_once_and_then_the_rate(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL), *b = find("b", NULL);
    assert_int_equal(let_in(a, start, 50), 10);
    assert_int_equal(take(a, start, 1), 100000); /* in a tenth of a second */
    assert_int_equal(let_in(a, start + 99999, 5), 0);
    assert_int_equal(let_in(a, start + 100000, 5), 1);
    assert_int_equal(let_in(b, start + 100000, 50), 10); /* another one has its own */
    for (int i = 2; i < 100; i++)
        assert_int_equal(let_in(a, start + i * 100000, 3), 1);
    assert_int_equal(let_in(a, start + 3600000000, 50),
                     10); /* what was not used for an hour is worth a second */
    hf_tenants_free(&tenants);
}

/* A batch is owed for, for ten seconds at most, and two at once are not two of them. */
static void a_batch_is_owed_for(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL);
    assert_int_equal(hf_tenant_batch_max(&tenants), 100);
    assert_int_equal(let_in(a, start, 50), 10);
    assert_int_equal(take(a, start + 100000, 100), 0);
    assert_int_equal(take(a, start + 100000, 100), 10000000);
    assert_int_equal(let_in(a, start + 10099999, 5), 0);
    assert_int_equal(let_in(a, start + 10100000, 5), 1);
    hf_tenants_free(&tenants);
}

static void endings_are_counted_apart(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    struct hf_charge ending = { .now_us = start, .count = 1, .ending = true };
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL);
    assert_int_equal(take(a, start, 100), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(hf_tenant_take(&tenants, a, &ending), 0);
    assert_int_equal(hf_tenant_take(&tenants, a, &ending), 100000);
    hf_tenants_free(&tenants);
}

static void without_a_rate_all_are_let_in(void **state)
{
    (void)state;
    hf_tenants_init(&tenants, 0, 0);
    assert_int_equal(let_in(find("a", NULL), 1, 10000), 10000);
    assert_int_equal(hf_tenant_batch_max(&tenants), 0);
    assert_int_equal(take(find("a", NULL), 1, 8192), 0);
    assert_int_equal(let_in(find("a", NULL), 1, 10), 10);
    hf_tenants_free(&tenants);
    hf_tenants_init(&tenants, 0, 1000000); /* the highest */
    assert_int_equal(let_in(find("a", NULL), INT64_C(10000000), 2000000), 1000000);
    hf_tenants_free(&tenants);
}

int main(void)
{
    const struct CMUnitTest server_answers_tests[] = {
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_resources),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_claims_leases_registers),
        cmocka_unit_test(test_tokens_and_problems),
        cmocka_unit_test(test_audit_and_trace),
        cmocka_unit_test(test_the_judge),
    };
    const struct CMUnitTest server_tenant_tests[] = {
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(a_second_at_once_and_then_the_rate),
        cmocka_unit_test(a_batch_is_owed_for),
        cmocka_unit_test(endings_are_counted_apart),
        cmocka_unit_test(without_a_rate_all_are_let_in),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(server_answers_tests, setup, teardown);
    failed += cmocka_run_group_tests(server_tenant_tests, NULL, NULL);
    return failed;
}

/* The plan's rows and scratch. */
#include "support/test.h"

#include "api/call.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "core/action.h"
#include "core/core.h"
#include "core/digest.h"
#include "core/name.h"

static struct hf_plan *plan_new(void)
{
    struct hf_plan *plan = malloc(sizeof *plan);
    assert_non_null(plan);
    memset(plan, 0xa5, sizeof *plan);
    plan->scratch = malloc(HF_PLAN_SCRATCH);
    assert_non_null(plan->scratch);
    return plan;
}

static void plan_free(struct hf_plan *plan)
{
    free(plan->scratch);
    free(plan);
}

static void reset_empties_everything_but_the_scratch(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    unsigned char *scratch = plan->scratch;
    hf_plan_reset(plan);
    assert_ptr_equal(plan->scratch, scratch);
    assert_int_equal(plan->scratch_used, 0);
    assert_int_equal(plan->row_count, 0);
    assert_int_equal(plan->answer.status, HF_OK);
    assert_int_equal(plan->answer.kind, HF_NO_RECORD);
    assert_int_equal(plan->remember, HF_REMEMBER_NOT);
    assert_false(plan->replayed || plan->ordinal_used || plan->fence_used || plan->missed ||
                 plan->run);
    assert_int_equal(plan->token.expires_at, 0);
    plan_free(plan);
}

static void rows_come_zeroed_one_by_one(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    hf_plan_reset(plan);
    struct hf_row want;
    for (size_t i = 0; i < HF_PLAN_ROWS; i++) {
        struct hf_row *row = hf_plan_row(plan, HF_ROW_LEASE);
        memset(&want, 0, sizeof want);
        want.kind = HF_ROW_LEASE;
        assert_ptr_equal(row, &plan->rows[i]);
        assert_memory_equal(row, &want, sizeof want);
        if (i + 1 < HF_PLAN_ROWS) /* the one behind it is left alone */
            assert_int_equal(((unsigned char *)&plan->rows[i + 1])[0], 0xa5);
    }
    assert_int_equal(plan->row_count, HF_PLAN_ROWS);
    plan_free(plan);
}

static void room_is_aligned_and_ends_with_the_scratch(void **state)
{
    (void)state;
    struct hf_plan *plan = plan_new();
    hf_plan_reset(plan);
    unsigned char *a = hf_plan_room(plan, 1);
    unsigned char *b = hf_plan_room(plan, 17);
    unsigned char *c = hf_plan_room(plan, 0);
    assert_ptr_equal(a, plan->scratch);
    assert_ptr_equal(b, plan->scratch + 16);
    assert_ptr_equal(c, plan->scratch + 48);
    assert_null(hf_plan_room(plan, HF_PLAN_SCRATCH - 47));
    assert_null(hf_plan_room(plan, SIZE_MAX));
    assert_non_null(hf_plan_room(plan, HF_PLAN_SCRATCH - 48));
    assert_non_null(hf_plan_room(plan, 0));
    assert_null(hf_plan_room(plan, 1));
    hf_plan_reset(plan);
    assert_non_null(hf_plan_room(plan, HF_PLAN_SCRATCH));
    assert_null(hf_plan_room(plan, 1));
    plan->scratch_used = SIZE_MAX / 2; /* whoever breaks the plan gets nothing */
    assert_null(hf_plan_room(plan, 1));
    plan_free(plan);
}

/* The table of actions says nothing that cannot be. */

static bool is_inside(uint16_t at, size_t size)
{
    return at + size <= sizeof(struct hf_request);
}

static void every_action_has_a_name_of_its_own(void **state)
{
    (void)state;
    static const struct hf_action_info none;
    assert_null(hf_actions[0].name);
    for (int a = 1; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        if (!action->name) { /* no action: nothing may be said of it */
            assert_memory_equal(action, &none, sizeof *action);
            continue;
        }
        for (int b = 1; b < a; b++)
            if (hf_actions[b].name)
                assert_string_not_equal(action->name, hf_actions[b].name);
        assert_true(action->record_max > 0 && action->weight > 0);
    }
}

static void other_numbers_have_the_empty_row(void **state)
{
    (void)state;
    static const int others[] = { -1, 0, HF_ACTIONS_END, 255, 1 << 20 };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_ptr_equal(hf_action_of((enum hf_action)others[i]), &hf_actions[0]);
    assert_null(hf_actions[0].decide);
}

static void keyed_actions_have_a_digest_and_no_others(void **state)
{
    (void)state;
    static const uint8_t zeros[HF_DIGEST_SIZE];
    for (int a = 0; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        struct hf_request request = { .action = (enum hf_action)a };
        uint8_t digest[HF_DIGEST_SIZE];
        hf_digest(&request, digest);
        assert_int_equal(action->keyed, action->digest != NULL);
        assert_int_equal(action->keyed || a == HF_BEGIN, memcmp(digest, zeros, sizeof zeros) != 0);
        for (const struct hf_digest_field *f = action->digest; f && f->name; f++) {
            bool is_bytes =
                f->type == HF_DIGEST_BYTES || f->type == HF_DIGEST_ID || f->type == HF_DIGEST_VALUE;
            assert_true(is_inside(f->at, is_bytes ? sizeof(struct hf_bytes) : sizeof(uint64_t)));
            assert_true(is_inside(f->has, sizeof(bool)));
            if (f != action->digest)
                assert_true(strcmp(f[-1].name, f->name) < 0);
        }
    }
}

static void what_a_row_says_fits_together(void **state)
{
    (void)state;
    for (int a = 1; a < HF_ACTIONS_END; a++) {
        const struct hf_action_info *action = &hf_actions[a];
        assert_true(is_inside(action->row_name, sizeof(struct hf_bytes)));
        assert_true(is_inside(action->payload, sizeof(struct hf_bytes)));
        assert_int_equal(action->payload > 0, action->payload_max > 0);
        if (action->ends == HF_ENDS_PAYLOAD)
            assert_true(action->payload > 0);
        if (action->changes_once)
            assert_true(action->changes >> action->changes_once & 1);
        if (action->reads)
            assert_false(action->keyed || action->swift || action->ends || action->draws ||
                         action->changes);
        else if (action->name)
            assert_true(action->changes != 0);
        if (action->decide)
            assert_true(action->row != 0);
    }
}

static void every_call_has_an_action(void **state)
{
    (void)state;
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        const struct hf_action_info *action = hf_action_of(call->action);
        assert_int_equal(strchr(call->path, '{') != NULL, call->param != NULL);
        if (call->kind != HF_CALL_DO) {
            assert_int_equal(call->action, 0);
            continue;
        }
        assert_non_null(action->decide);
        assert_int_equal(call->key, action->keyed);
        assert_int_equal(call->role == HF_ROLE_READ, action->reads);
        if (call->param)
            assert_true(action->row_name > 0);
    }
}

/* Which names, tenants and durations are well-formed. */

static char letters[HF_NAME_MAX + 1];

static void names_have_1_to_1024_bytes(void **state)
{
    (void)state;
    assert_false(hf_name_valid(hf_mem(NULL, 0)));
    assert_false(hf_name_valid(hf_mem("", 0)));
    assert_true(hf_name_valid(hf_mem(letters, 1)));
    assert_true(hf_name_valid(hf_mem(letters, HF_NAME_MAX)));
    assert_false(hf_name_valid(hf_mem(letters, HF_NAME_MAX + 1)));
}

static void names_are_utf8_without_nul(void **state)
{
    (void)state;
    assert_true(hf_name_valid(hf_str("Zimmer 307 \xe2\x82\xac")));
    assert_false(hf_name_valid(hf_mem("a\0b", 3)));
    assert_false(hf_name_valid(hf_mem("\0", 1)));
    assert_false(hf_name_valid(hf_str("\xff")));
    assert_false(hf_name_valid(hf_str("a\xe2\x82")));
}

static void tenants_have_0_to_64_bytes(void **state)
{
    (void)state;
    assert_true(hf_tenant_valid(hf_mem(NULL, 0)));
    assert_true(hf_tenant_valid(hf_mem(letters, 1)));
    assert_true(hf_tenant_valid(hf_mem(letters, HF_TENANT_MAX)));
    assert_false(hf_tenant_valid(hf_mem(letters, HF_TENANT_MAX + 1)));
    assert_false(hf_tenant_valid(hf_mem("a\0", 2)));
    assert_false(hf_tenant_valid(hf_str("\x80")));
}

static void durations_are_1_ms_to_ten_years(void **state)
{
    (void)state;
    assert_false(hf_duration_valid(INT64_MIN));
    assert_false(hf_duration_valid(-1));
    assert_false(hf_duration_valid(0));
    assert_true(hf_duration_valid(1));
    assert_true(hf_duration_valid(HF_DURATION_MAX_MS));
    assert_false(hf_duration_valid(HF_DURATION_MAX_MS + 1));
    assert_false(hf_duration_valid(INT64_MAX));
}

/* The digest against the form that digest.h describes, written down here a second time by hand. */

/* ---- The form by hand ---- */

static unsigned char form[400000];
static size_t form_size;

static void put(const void *data, size_t size)
{
    assert_true(form_size + size <= sizeof form);
    if (size > 0)
        memcpy(form + form_size, data, size);
    form_size += size;
}

static void field(const char *name, unsigned char type, const void *value, size_t size)
{
    unsigned char n[2] = { (unsigned char)strlen(name), 0 };
    unsigned char v[4] = { (unsigned char)size, (unsigned char)(size >> 8),
                           (unsigned char)(size >> 16), (unsigned char)(size >> 24) };
    put(n, 2);
    put(name, strlen(name));
    put(&type, 1);
    put(v, 4);
    put(value, size);
}

static void field_text(const char *name, const char *value)
{
    field(name, 1, value, strlen(value));
}

static void field_number(const char *name, uint64_t value)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(value >> (8 * i));
    field(name, 2, b, 8);
}

/* The digest of `request` is the SHA-256 of what was put; then start afresh. */
static void expect(const struct hf_request *request)
{
    uint8_t want[HF_DIGEST_SIZE], got[HF_DIGEST_SIZE];
    hf_sha256_of(form, form_size, want);
    hf_digest(request, got);
    assert_memory_equal(got, want, HF_DIGEST_SIZE);
    form_size = 0;
}

static void place_hold(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .tenant = hf_str("not part of it"),
                            .key = hf_str("nor this"),
                            .place_hold = { .resource = hf_str("room-307"),
                                            .requester = hf_str("guest-91"),
                                            .duration_ms = 900000 } };
    field_number("duration_ms", 900000);
    field_text("requester", "guest-91");
    field_text("resource", "room-307");
    expect(&r);

    r.place_hold.fence = 7;
    r.place_hold.duration_ms = -2;
    field_number("duration_ms", (uint64_t)-2);
    field_number("fence", 7);
    field_text("requester", "guest-91");
    field_text("resource", "room-307");
    expect(&r);
}

/* What could not be read stands in the place of the parameter, or of a field that is none. */
static void flaws(void **state)
{
    (void)state;
    const struct hf_flaw list[] = { { "aside", hf_str("[1]") },
                                    { "duration_ms", hf_mem(NULL, 0) },
                                    { "requester", hf_str("null") },
                                    { "zone", hf_str("\"x\"") } };
    const struct hf_invalid invalid = { list, 4, hf_str("not part of it") };
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .invalid = &invalid,
                            .place_hold = { .resource = hf_str("room-307") } };
    field("aside", 4, "[1]", 3);
    field("requester", 4, "null", 4);
    field_text("resource", "room-307");
    field("zone", 4, "\"x\"", 3);
    expect(&r);

    const struct hf_invalid nothing = { NULL, 0, hf_mem(NULL, 0) };
    r = (struct hf_request){ .action = HF_CONFIRM, .invalid = &nothing, .hold = { hf_str("i") } };
    field_text("id", "i");
    expect(&r);
    r.invalid = &(struct hf_invalid){ &(struct hf_flaw){ "id", hf_mem(NULL, 0) }, 1, hf_str("") };
    expect(&r);
}

/* Of JSON as servers store it, the head counts: a mark, and the hash of its canonical form. */
static void a_value_counts_by_what_it_means(void **state)
{
    (void)state;
    char value[HF_STORED_HEAD + 8];
    memset(value, 'v', sizeof value);
    memcpy(value, HF_STORED_JSON, 2);
    struct hf_request r = { .action = HF_WRITE, .write = { .name = hf_str("n") } };
    for (size_t size = 0; size <= sizeof value; size++) {
        r.write.value = hf_mem(value, size);
        field_text("name", "n");
        field("value", 1, value, size < HF_STORED_HEAD ? size : HF_STORED_HEAD);
        expect(&r);
    }
    value[1] = 'k';
    field_text("name", "n");
    field("value", 1, value, sizeof value);
    expect(&r);
}

/* The very bytes, so that a change of the form cannot hide in both places. Made with:
 *   printf
 *   '\x0b\0duration_ms\x02\x08\0\0\0\xa0\xbb\x0d\0\0\0\0\0\x09\0requester\x01\x08\0\0\0guest-91'\
 *          '\x08\0resource\x01\x08\0\0\0room-307' | sha256sum */
static void known_digest(void **state)
{
    (void)state;
    static const char want[] = "868c5381590aedcba7a0947022a13889c56d8b69894dcf4bc6e3aca7423b1557";
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .place_hold = { .resource = hf_str("room-307"),
                                            .requester = hf_str("guest-91"),
                                            .duration_ms = 900000 } };
    uint8_t got[HF_DIGEST_SIZE];
    char text[2 * HF_DIGEST_SIZE + 1];
    hf_digest(&r, got);
    for (int i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(text, want);
}

static void ends_of_a_hold(void **state)
{
    (void)state;
    const enum hf_action actions[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
    for (size_t i = 0; i < 4; i++) {
        struct hf_request r = { .action = actions[i], .hold = { hf_str("0AZaz@[`{9") } };
        field_text("id", "0azaz@[`{9"); /* letters alone are folded, not what stands beside them */
        expect(&r);
        r.hold.id = hf_mem(NULL, 0);
        field_text("id", "");
        expect(&r);
    }
}

static void a_long_id_is_read_to_its_end(void **state)
{
    (void)state;
    static char id[1000], other[1000];
    uint8_t a[HF_DIGEST_SIZE], b[HF_DIGEST_SIZE];
    memset(id, 'q', sizeof id);
    memcpy(other, id, sizeof id);
    other[999] = 'r';
    struct hf_request r = { .action = HF_CONFIRM, .hold = { hf_mem(id, sizeof id) } };
    field("id", 1, id, sizeof id);
    expect(&r);
    hf_digest(&r, a);
    r.hold.id = hf_mem(other, sizeof other);
    hf_digest(&r, b);
    assert_memory_not_equal(a, b, HF_DIGEST_SIZE);
}

static void grant(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_GRANT,
                            .lease = {
                                .name = hf_str("leader"), .holder = hf_str("me"), .ttl_ms = 5 } };
    field_text("holder", "me");
    field_text("name", "leader");
    field_number("ttl_ms", 5);
    expect(&r);
}

static void write_with_and_without_conditions(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_WRITE,
                            .write = { .name = hf_str("n"), .value = hf_str("v") } };
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);

    r.write.has_if_version = true; /* version 0 was given: that is not the same as none */
    field_number("if_version", 0);
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);

    r.write.fence = UINT64_MAX;
    r.write.if_version = 3;
    field_number("fence", UINT64_MAX);
    field_number("if_version", 3);
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);
}

/* Values of every length around the sizes at which the hash is fed differently. */
static void apply_with_payloads_of_many_lengths(void **state)
{
    (void)state;
    static unsigned char payload[300000];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 7);
    static const size_t more[] = { 4096, 65535, 65536, 65537, sizeof payload };
    for (size_t n = 0; n < 600 + sizeof more / sizeof *more; n++) {
        size_t size = n < 600 ? n : more[n - 600];
        struct hf_request r = { .action = HF_APPLY,
                                .apply = { .name = hf_str("charge"),
                                           .payload = hf_mem(payload, size) } };
        field_text("name", "charge");
        field("payload", 1, payload, size);
        expect(&r);
    }
}

static void begin_is_its_fingerprint(void **state)
{
    (void)state;
    uint8_t fingerprint[HF_DIGEST_SIZE], got[HF_DIGEST_SIZE];
    memset(fingerprint, 0x5a, sizeof fingerprint);
    struct hf_request r = { .action = HF_BEGIN,
                            .begin = { .payload = hf_str("abc"), .fingerprint = fingerprint } };
    hf_digest(&r, got);
    assert_memory_equal(got, fingerprint, HF_DIGEST_SIZE);
    r.begin.fingerprint = NULL;
    put("abc", 3);
    expect(&r);
    r.begin.payload = hf_mem(NULL, 0);
    expect(&r);
}

static void other_actions_have_none(void **state)
{
    (void)state;
    static const uint8_t zeros[HF_DIGEST_SIZE];
    uint8_t got[HF_DIGEST_SIZE];
    const enum hf_action actions[] = { HF_SET_RESOURCE, HF_SET_GUARD, HF_CHECK, HF_RECORD,
                                       HF_ADMIT,        HF_COMPLETE,  HF_FAIL,  HF_HEARTBEAT,
                                       HF_RENEW,        HF_RETURN,    HF_MERGE, HF_GET_HOLD,
                                       HF_GET_TOKEN };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        memset(got, 1, sizeof got);
        hf_digest(&(struct hf_request){ .action = actions[i] }, got);
        assert_memory_equal(got, zeros, HF_DIGEST_SIZE);
    }
}

/* Lengths stand in front, so bytes cannot wander from one field into the next. */
static void fields_do_not_run_together(void **state)
{
    (void)state;
    uint8_t a[HF_DIGEST_SIZE], b[HF_DIGEST_SIZE];
    hf_digest(&(struct hf_request){ .action = HF_APPLY,
                                    .apply = { .name = hf_str("ab"), .payload = hf_str("c") } },
              a);
    hf_digest(&(struct hf_request){ .action = HF_APPLY,
                                    .apply = { .name = hf_str("a"), .payload = hf_str("bc") } },
              b);
    assert_memory_not_equal(a, b, HF_DIGEST_SIZE);
}

int main(void)
{
    const struct CMUnitTest core_plan_tests[] = {
        cmocka_unit_test(reset_empties_everything_but_the_scratch),
        cmocka_unit_test(rows_come_zeroed_one_by_one),
        cmocka_unit_test(room_is_aligned_and_ends_with_the_scratch),
        cmocka_unit_test(every_action_has_a_name_of_its_own),
        cmocka_unit_test(other_numbers_have_the_empty_row),
        cmocka_unit_test(keyed_actions_have_a_digest_and_no_others),
        cmocka_unit_test(what_a_row_says_fits_together),
        cmocka_unit_test(every_call_has_an_action),
        cmocka_unit_test(place_hold),
        cmocka_unit_test(flaws),
        cmocka_unit_test(a_value_counts_by_what_it_means),
        cmocka_unit_test(known_digest),
        cmocka_unit_test(ends_of_a_hold),
        cmocka_unit_test(a_long_id_is_read_to_its_end),
        cmocka_unit_test(grant),
        cmocka_unit_test(write_with_and_without_conditions),
        cmocka_unit_test(apply_with_payloads_of_many_lengths),
        cmocka_unit_test(begin_is_its_fingerprint),
        cmocka_unit_test(other_actions_have_none),
        cmocka_unit_test(fields_do_not_run_together),
    };
    const struct CMUnitTest core_name_tests[] = {
        cmocka_unit_test(names_have_1_to_1024_bytes),
        cmocka_unit_test(names_are_utf8_without_nul),
        cmocka_unit_test(tenants_have_0_to_64_bytes),
        cmocka_unit_test(durations_are_1_ms_to_ten_years),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(core_plan_tests, NULL, NULL);
    memset(letters, 'x', sizeof letters);
    failed += cmocka_run_group_tests(core_name_tests, NULL, NULL);
    return failed;
}

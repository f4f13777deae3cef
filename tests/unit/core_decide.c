/* The way in: which actions there are, what reads answer, the sweep, and the six-step
 * walkthrough. */
#include "core/action.h"
#include "core/decide.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct world *w;

static int setup(void **state)
{
    (void)state;
    w = world_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static enum hf_status get(enum hf_action action, const char *name)
{
    return world_do(w, &(struct hf_request){ .action = action, .get = { hf_str(name) } });
}

static enum hf_status get_hold(const char *id)
{
    return world_do(w, &(struct hf_request){ .action = HF_GET_HOLD, .hold = { hf_str(id) } });
}

static enum hf_status get_by_key(enum hf_action action, const char *key)
{
    return world_do(w, &(struct hf_request){ .action = action, .key = hf_str(key) });
}

static enum hf_status place(const char *key, const char *resource)
{
    return world_do(
        w, &(struct hf_request){ .action = HF_PLACE_HOLD,
                                 .key = hf_str(key),
                                 .place_hold = { hf_str(resource), hf_str("guest"), HOUR, 0 } });
}

static enum hf_status end(enum hf_action action, const char *key, const char *id)
{
    return world_do(
        w, &(struct hf_request){ .action = action, .key = hf_str(key), .hold = { hf_str(id) } });
}

static bool is(struct hf_bytes got, const char *want)
{
    return got.size == strlen(want) && memcmp(got.data, want, got.size) == 0;
}

/* ---- Actions ---- */

static void which_actions_there_are(void **state)
{
    (void)state;
    static const enum hf_action keyed[] = { HF_PLACE_HOLD,   HF_CONFIRM,     HF_RELEASE,
                                            HF_EXPIRE,       HF_REVERSE,     HF_GRANT,
                                            HF_WRITE,        HF_APPLY,       HF_DELETE_REGISTER,
                                            HF_DELETE_LEASE, HF_CONFIRM_LATE };
    static const enum hf_action reads[] = { HF_CHECK,        HF_GET_HOLD,  HF_GET_RESOURCE,
                                            HF_GET_GUARD,    HF_GET_CLAIM, HF_GET_LEASE,
                                            HF_GET_REGISTER, HF_GET_TOKEN, HF_GET_VALUE };
    for (int a = -2; a < 300; a++) {
        bool is_keyed = false, is_read = false;
        for (size_t i = 0; i < sizeof keyed / sizeof *keyed; i++)
            is_keyed |= (int)keyed[i] == a;
        for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
            is_read |= (int)reads[i] == a;
        assert_int_equal(hf_action_keyed((enum hf_action)a), is_keyed);
        assert_int_equal(hf_action_reads((enum hf_action)a), is_read);
    }
}

static void unknown_actions_are_refused(void **state)
{
    (void)state;
    static const int unknown[] = {
        -1, 0, 23, 31, HF_SWEEP, HF_CONFIGURE, 63, 72, 1000, 0x7fffffff
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct hf_request r = { .action = (enum hf_action)unknown[i], .key = hf_str("key") };
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
        assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    }
    assert_int_equal(w->lookups, 0);
}

static void a_malformed_tenant_is_refused_everywhere(void **state)
{
    (void)state;
    for (int a = 1; a <= HF_GET_VALUE; a++) {
        struct hf_request r = { .action = (enum hf_action)a,
                                .tenant = hf_str("\xff"),
                                .key = hf_str("key") };
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    }
    assert_int_equal(w->lookups, 0);
}

static void the_plan_of_before_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(place("key", "room"), HF_OK);
    assert_int_equal(get(HF_GET_LEASE, "nobody"), HF_NOT_KNOWN);
    assert_true(w->plan.row_count == 0 && !w->plan.ordinal_used);
    assert_true(w->plan.remember == HF_REMEMBER_NOT && w->plan.token.recorded_at == 0);
}

static enum hf_status nothing(struct hf_tx *tx, void *arg)
{
    (void)tx;
    (void)arg;
    return HF_OK;
}

static void apply_is_left_to_the_shell(void **state)
{
    (void)state;
    struct hf_request r = {
        .action = HF_APPLY,
        .key = hf_str("key"),
        .apply = { .name = hf_str("charge"), .payload = hf_str("12.50"), .fn = nothing }
    };
    w->refuse_writes = true;
    assert_int_equal(world_do(w, &r), HF_STORAGE_FAILURE);
    assert_false(w->plan.run);
    w->refuse_writes = false;
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_true(w->plan.run && w->plan.remember == HF_REMEMBER_KEY && w->plan.row_count == 0);
    assert_int_equal(w->plan.token.action, HF_APPLY);
    assert_true(w->plan.token.recorded_at == WORLD_START);
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_true(w->plan.replayed && !w->plan.run);
    r.apply.payload = hf_str("13.50");
    assert_int_equal(world_do(w, &r), HF_TOKEN_COLLISION);
    assert_false(w->plan.run);
    r.key = hf_str("nameless");
    r.apply.name = hf_mem(NULL, 0);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    assert_true(!w->plan.run && w->plan.remember == HF_REMEMBER_KEY);
    r.key = hf_str("without a function");
    r.apply.name = hf_str("charge");
    r.apply.fn = NULL;
    assert_int_equal(world_do(w, &r), HF_MISUSE);
    assert_true(!w->plan.run && w->plan.remember == HF_REMEMBER_NOT);
}

/* ---- Reading ---- */

static void reading_a_hold(void **state)
{
    (void)state;
    assert_int_equal(place("key", "room"), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    assert_int_equal(get_hold(id), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_HOLD);
    assert_string_equal(w->plan.answer.hold.id, id);
    assert_int_equal(get_hold("nothing like an id"), HF_NOT_KNOWN);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
    assert_int_equal(get_hold(""), HF_NOT_KNOWN);
    w->unreadable[WORLD_HOLD] = true;
    assert_int_equal(get_hold(id), HF_STORAGE_FAILURE);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
}

static void reading_by_name(void **state)
{
    (void)state;
    const struct hf_value five = { .type = HF_TYPE_MAX, .number = 5 };
    const struct hf_request made[] = {
        { .action = HF_SET_RESOURCE, .set_resource = { .name = hf_str("n"), .capacity = 7 } },
        { .action = HF_SET_GUARD, .set_guard = { .name = hf_str("n"), .window_ms = 77 } },
        { .action = HF_GRANT,
          .key = hf_str("key"),
          .lease = { .name = hf_str("n"), .holder = hf_str("me"), .ttl_ms = 777 } },
        { .action = HF_MERGE, .merge = { hf_str("n"), &five } },
    };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(world_do(w, &made[i]), HF_OK);
    static const struct {
        enum hf_action action;
        enum hf_record kind;
        enum world_lookup lookup;
    } reads[] = { { HF_GET_RESOURCE, HF_RECORD_RESOURCE, WORLD_RESOURCE },
                  { HF_GET_GUARD, HF_RECORD_GUARD, WORLD_GUARD },
                  { HF_GET_LEASE, HF_RECORD_LEASE, WORLD_LEASE },
                  { HF_GET_REGISTER, HF_RECORD_REGISTER, WORLD_REGISTER } };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(get(reads[i].action, "other"), HF_NOT_KNOWN);
        assert_int_equal(get(reads[i].action, ""), HF_INVALID_REQUEST);
        assert_int_equal(get(reads[i].action, "\xff"), HF_INVALID_REQUEST);
        assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
        w->unreadable[reads[i].lookup] = true;
        assert_int_equal(get(reads[i].action, "n"), HF_STORAGE_FAILURE);
        w->unreadable[reads[i].lookup] = false;
        w->refuse_writes = true; /* reading needs no room */
        assert_int_equal(get(reads[i].action, "n"), HF_OK);
        w->refuse_writes = false;
        assert_int_equal(w->plan.answer.kind, reads[i].kind);
        const struct hf_answer *a = &w->plan.answer;
        if (reads[i].kind == HF_RECORD_RESOURCE)
            assert_int_equal(a->resource.capacity, 7);
        if (reads[i].kind == HF_RECORD_GUARD)
            assert_int_equal(a->guard.window_ms, 77);
        if (reads[i].kind == HF_RECORD_LEASE)
            assert_int_equal(a->lease.ttl_ms, 777);
        if (reads[i].kind == HF_RECORD_REGISTER)
            assert_memory_equal(a->reg.value.bytes.data, "\5\0\0\0\0\0\0\0", 8);
    }
}

static void reading_a_value(void **state)
{
    (void)state;
    static char key[HF_APP_KEY_MAX + 1];
    static struct hf_row row; /* such rows come from the shell */
    row.kind = HF_ROW_VALUE;
    row.pair.key = hf_mem(key, HF_APP_KEY_MAX); /* any bytes: NULs here */
    row.pair.value = hf_str("value");
    w->tables[HF_ROW_VALUE].rows = malloc(sizeof row);
    assert_non_null(w->tables[HF_ROW_VALUE].rows);
    w->tables[HF_ROW_VALUE].rows[0] = row;
    w->tables[HF_ROW_VALUE].count = w->tables[HF_ROW_VALUE].room = 1;
    struct hf_request r = { .action = HF_GET_VALUE, .get = { hf_mem(key, HF_APP_KEY_MAX) } };
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_VALUE);
    assert_true(is(w->plan.answer.value, "value"));
    w->unreadable[WORLD_VALUE] = true;
    assert_int_equal(world_do(w, &r), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_VALUE] = false;
    r.get.name.size = 1;
    assert_int_equal(world_do(w, &r), HF_NOT_KNOWN);
    r.get.name.size = 0;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    r.get.name.size = HF_APP_KEY_MAX + 1;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
}

static void begin(const char *key)
{
    struct hf_request r = { .action = HF_BEGIN,
                            .key = hf_str(key),
                            .begin = { .payload = hf_str("p"), .lease_ms = 100 } };
    assert_int_equal(world_do(w, &r), HF_OK);
}

static void reading_a_claim(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = HOUR;
    begin("k");
    assert_int_equal(get_by_key(HF_GET_CLAIM, "k"), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_CLAIM);
    assert_int_equal(w->plan.answer.claim.state, HF_CLAIM_STARTED);
    w->now += 100;
    assert_int_equal(get_by_key(HF_GET_CLAIM, "k"), HF_OK);
    assert_int_equal(w->plan.answer.claim.state, HF_CLAIM_UNKNOWN);
    struct hf_request complete = { .action = HF_COMPLETE,
                                   .key = hf_str("k"),
                                   .settle = { .fence = 1 } };
    assert_int_equal(world_do(w, &complete), HF_OK);
    w->now += HOUR - 1;
    assert_int_equal(get_by_key(HF_GET_CLAIM, "k"), HF_OK);
    assert_int_equal(w->plan.answer.claim.state, HF_CLAIM_COMPLETED);
    w->now += 1; /* forgotten, though the store still has it */
    assert_int_equal(get_by_key(HF_GET_CLAIM, "k"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_CLAIM, "other"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_CLAIM, ""), HF_INVALID_REQUEST);
    w->unreadable[WORLD_CLAIM] = true;
    assert_int_equal(get_by_key(HF_GET_CLAIM, "k"), HF_STORAGE_FAILURE);
}

static void what_happened_to_my_request(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = HOUR;
    assert_int_equal(place("won", "room"), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    assert_int_equal(place("lost", "room"), HF_RESOURCE_UNAVAILABLE);
    w->now += HOUR - 1;
    assert_int_equal(get_by_key(HF_GET_TOKEN, "won"), HF_OK);
    assert_false(w->plan.replayed);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_HOLD);
    assert_string_equal(w->plan.answer.hold.id, id);
    assert_int_equal(w->plan.token.action, HF_PLACE_HOLD);
    assert_true(w->plan.token.recorded_at == WORLD_START);
    assert_true(w->plan.token.expires_at == WORLD_START + HOUR);
    assert_int_equal(get_by_key(HF_GET_TOKEN, "lost"), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.token.status, HF_RESOURCE_UNAVAILABLE);
    w->now += 1;
    assert_int_equal(get_by_key(HF_GET_TOKEN, "won"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_TOKEN, "never"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_TOKEN, ""), HF_INVALID_REQUEST);
    begin("claim");
    assert_int_equal(get_by_key(HF_GET_TOKEN, "claim"), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_CLAIM);
    assert_int_equal(w->plan.token.action, HF_BEGIN);
    assert_true(w->plan.token.recorded_at == w->now && w->plan.token.expires_at == INT64_MAX);
    w->unreadable[WORLD_CLAIM] = true;
    assert_int_equal(get_by_key(HF_GET_TOKEN, "claim"), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_CLAIM] = false;
    w->unreadable[WORLD_TOKEN] = true;
    assert_int_equal(get_by_key(HF_GET_TOKEN, "claim"), HF_STORAGE_FAILURE);
}

static enum hf_status as_acme(struct hf_request r)
{
    r.tenant = hf_str("acme");
    return world_do(w, &r);
}

/* Every kind of row stands under the tenant that asked, and no other tenant finds it. */
static void rows_belong_to_their_tenant(void **state)
{
    (void)state;
    const struct hf_value five = { .type = HF_TYPE_MAX, .number = 5 };
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .client = hf_str("c"),
                            .sequence = 1,
                            .place_hold = { hf_str("n"), hf_str("guest"), HOUR, 0 } };
    assert_int_equal(as_acme(r), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    r = (struct hf_request){ .action = HF_CONFIRM, .key = hf_str("k1"), .hold = { hf_str(id) } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_REVERSE, .key = hf_str("k2"), .hold = { hf_str(id) } };
    assert_int_equal(as_acme(r), HF_OK);
    char reversal[HF_ID_SIZE];
    memcpy(reversal, w->plan.answer.hold.id, sizeof reversal);
    r = (struct hf_request){ .action = HF_SET_RESOURCE, .set_resource = { .name = hf_str("new") } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_SET_GUARD,
                             .set_guard = { .name = hf_str("n"), .window_ms = 5 } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_ADMIT,
                             .identity = { .guard = hf_str("n"), .identity = hf_str("i") } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_BEGIN, .key = hf_str("n") };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_GRANT,
                             .key = hf_str("k3"),
                             .lease = {
                                 .name = hf_str("n"), .holder = hf_str("me"), .ttl_ms = 5 } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_MERGE, .merge = { hf_str("n"), &five } };
    assert_int_equal(as_acme(r), HF_OK);
    r = (struct hf_request){ .action = HF_WRITE,
                             .key = hf_str("k4"),
                             .write = { .name = hf_str("p") } };
    assert_int_equal(as_acme(r), HF_OK);
    const struct {
        enum hf_row_kind kind;
        const char *first, *second;
    } rows[] = { { HF_ROW_HOLD, id, "" },        { HF_ROW_HOLD, reversal, "" },
                 { HF_ROW_SUCCESSOR, id, "" },   { HF_ROW_RESOURCE, "n", "" },
                 { HF_ROW_RESOURCE, "new", "" }, { HF_ROW_GUARD, "n", "" },
                 { HF_ROW_ENTRY, "n", "i" },     { HF_ROW_CLAIM, "n", "" },
                 { HF_ROW_LEASE, "n", "" },      { HF_ROW_REGISTER, "n", "" },
                 { HF_ROW_REGISTER, "p", "" },   { HF_ROW_CLIENT, "c", "" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(world_row(w, rows[i].kind, "acme", rows[i].first, rows[i].second));
        assert_null(world_row(w, rows[i].kind, "", rows[i].first, rows[i].second));
    }
    assert_int_equal(get_hold(id), HF_NOT_KNOWN);
    assert_int_equal(get(HF_GET_RESOURCE, "n"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_TOKEN, "k1"), HF_NOT_KNOWN);
    assert_int_equal(get_by_key(HF_GET_CLAIM, "n"), HF_NOT_KNOWN);
    world_check(w);
}

/* ---- The store's own wish ---- */

static void sweeping(void **state)
{
    (void)state;
    assert_int_equal(place("key", "room"), HF_OK);
    struct hf_hold hold = world_row(w, HF_ROW_HOLD, "", w->plan.answer.hold.id, "")->hold;
    w->now += HOUR - 1;
    assert_int_equal(world_sweep(w, &hold), HF_WINDOW_NOT_ELAPSED);
    assert_int_equal(w->plan.row_count, 0);
    w->now += 1;
    w->unreadable[WORLD_RESOURCE] = true;
    assert_int_equal(world_sweep(w, &hold), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_RESOURCE] = false;
    assert_int_equal(world_sweep(w, &hold), HF_OK);
    assert_int_equal(w->plan.row_count, 2);
    assert_int_equal(w->plan.rows[0].kind, HF_ROW_HOLD);
    assert_int_equal(w->plan.rows[1].kind, HF_ROW_RESOURCE);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_HOLD);
    assert_int_equal(w->plan.answer.hold.state, HF_EXPIRED);
    assert_true(w->plan.answer.hold.ended_at == w->now);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    hold = world_row(w, HF_ROW_HOLD, "", hold.id, "")->hold;
    assert_int_equal(world_sweep(w, &hold), HF_NOT_HELD);
    world_check(w);
}

/* ---- The walkthrough: a hotel room over a flaky network, window of ten minutes ---- */

static void walkthrough(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = 10 * MINUTE;
    struct hf_request hold = { .action = HF_PLACE_HOLD,
                               .key = hf_str("idem_x73a"),
                               .place_hold = { hf_str("room_307"), hf_str("guest_g91"), 24 * HOUR,
                                               0 } };
    assert_int_equal(world_do(w, &hold), HF_OK); /* 1 */
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    for (int retry = 0; retry < 3; retry++) { /* 2, 3 */
        w->now += 1000;
        assert_int_equal(world_do(w, &hold), HF_OK);
        assert_true(w->plan.replayed);
        assert_string_equal(w->plan.answer.hold.id, id);
    }
    w->now += 2 * HOUR;
    assert_int_equal(end(HF_CONFIRM, "idem_y22", id), HF_OK); /* 4 */
    assert_false(w->plan.replayed);
    assert_int_equal(end(HF_CONFIRM, "idem_y22", id), HF_OK); /* 5: not not-held */
    assert_true(w->plan.replayed);
    w->now += 11 * MINUTE;
    assert_int_equal(world_do(w, &hold),
                     HF_RESOURCE_UNAVAILABLE); /* 6: the key is new, the room taken */
    assert_false(w->plan.replayed);
    assert_int_equal(world_count(w, HF_ROW_HOLD), 1);
    world_check(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(which_actions_there_are),
        TEST(unknown_actions_are_refused),
        TEST(a_malformed_tenant_is_refused_everywhere),
        TEST(the_plan_of_before_is_forgotten),
        TEST(apply_is_left_to_the_shell),
        TEST(reading_a_hold),
        TEST(reading_by_name),
        TEST(reading_a_value),
        TEST(reading_a_claim),
        TEST(what_happened_to_my_request),
        TEST(rows_belong_to_their_tenant),
        TEST(sweeping),
        TEST(walkthrough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

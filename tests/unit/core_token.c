/* One key, one action, one effect; and the compact keys of clients that number their operations. */
#include "base/bytes.h"
#include "core/token.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define HOUR INT64_C(3600000)
#define WINDOW (24 * HOUR)

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
    world_check(w);
    world_free(w);
    return 0;
}

static struct hf_request hold_on(const char *resource)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .place_hold = { hf_str(resource), hf_str("guest"), HOUR, 0 } };
}

static enum hf_status by_key(const char *key, struct hf_request r)
{
    r.key = hf_str(key);
    return world_do(w, &r);
}

static enum hf_status by_number(const char *client, uint64_t sequence, struct hf_request r)
{
    r.client = hf_str(client);
    r.sequence = sequence;
    return world_do(w, &r);
}

/* ---- Well-formed ---- */

static void keys_have_1_to_max_bytes(void **state)
{
    (void)state;
    static char text[HF_TOKEN_MAX + 1];
    memset(text, 'k', sizeof text);
    static const uint32_t limits[] = { 1, 256, HF_TOKEN_MAX };
    for (size_t i = 0; i < 3; i++) {
        w->rules.token_max_length = limits[i];
        text[0] = (char)('a' + i);
        struct hf_request r = hold_on("room");
        const struct {
            size_t size;
            bool valid;
        } sizes[] = { { 0, false }, { 1, true }, { limits[i], true }, { limits[i] + 1, false } };
        for (size_t j = 0; j < 4; j++) {
            unsigned lookups = w->lookups;
            r.key = hf_mem(text, sizes[j].size);
            enum hf_status status = world_do(w, &r);
            assert_int_equal(status == HF_INVALID_REQUEST, !sizes[j].valid);
            if (!sizes[j].valid) { /* before anything is consulted, and not remembered */
                assert_int_equal(w->lookups, lookups);
                assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
                assert_int_equal(w->plan.token.recorded_at, 0);
            }
        }
    }
}

static void keys_are_compared_byte_for_byte(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } keys[] = { { "k", 1 },    { "K", 1 },    { "k ", 2 },       { "k\0", 2 },
                 { "k\0x", 3 }, { "\xff", 1 }, { "\xc3\xa9", 2 }, { "e\xcc\x81", 3 } };
    struct hf_request r = hold_on("room");
    w->rules.token_max_length = 8;
    for (size_t i = 0; i < 8; i++) {
        r.key = hf_mem(keys[i].bytes, keys[i].size);
        assert_int_equal(world_do(w, &r), i == 0 ? HF_OK : HF_RESOURCE_UNAVAILABLE);
        assert_false(w->plan.replayed);
    }
    assert_int_equal(w->token_count, 8);
}

static void a_key_or_a_number_and_not_both(void **state)
{
    (void)state;
    struct hf_request r = hold_on("room");
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST); /* neither */
    r.key = hf_str("key");
    r.client = hf_str("client");
    r.sequence = 1;
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST); /* both */
    assert_int_equal(by_number("client", 0, hold_on("room")), HF_INVALID_REQUEST);
    assert_int_equal(by_number("\xff", 1, hold_on("room")), HF_INVALID_REQUEST);
    assert_int_equal(w->lookups, 0);
    assert_int_equal(w->token_count, 0);
}

static void tenants_have_keys_of_their_own(void **state)
{
    (void)state;
    struct hf_request r = hold_on("room");
    r.key = hf_str("key");
    assert_int_equal(world_do(w, &r), HF_OK);
    r.tenant = hf_str("other");
    assert_int_equal(world_do(w, &r), HF_OK); /* its own key, its own room */
    assert_false(w->plan.replayed);
    static char long_name[HF_TENANT_MAX + 1];
    memset(long_name, 't', sizeof long_name);
    r.tenant = hf_mem(long_name, HF_TENANT_MAX);
    assert_int_equal(world_do(w, &r), HF_OK);
    r.tenant = hf_mem(long_name, HF_TENANT_MAX + 1);
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
}

/* ---- Again ---- */

static void the_same_call_gets_its_first_answer(void **state)
{
    (void)state;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    assert_false(w->plan.replayed);
    assert_int_equal(w->plan.remember, HF_REMEMBER_KEY);
    assert_int_equal(w->plan.token.action, HF_PLACE_HOLD);
    assert_int_equal(w->plan.token.status, HF_OK);
    assert_true(w->plan.token.recorded_at == WORLD_START);
    assert_true(w->plan.token.expires_at == WORLD_START + WINDOW);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    struct hf_request confirm = { .action = HF_CONFIRM, .hold = { hf_str(id) } };
    assert_int_equal(by_key("confirm", confirm), HF_OK);
    w->now += HOUR;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    assert_true(w->plan.replayed);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(w->plan.row_count, 0);
    assert_string_equal(w->plan.answer.hold.id, id);
    assert_int_equal(w->plan.answer.hold.state, HF_HELD); /* as it was answered, not as it is */
    assert_true(w->plan.token.recorded_at == WORLD_START);
    assert_true(w->plan.token.expires_at == WORLD_START + WINDOW);
    assert_int_equal(by_key("confirm", confirm), HF_OK); /* not not-held: the first answer */
    assert_true(w->plan.replayed);
    assert_int_equal(world_count(w, HF_ROW_HOLD), 1);
}

static void refusals_are_remembered(void **state)
{
    (void)state;
    assert_int_equal(by_key("a", hold_on("room")), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    assert_int_equal(by_key("b", hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.token.status, HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(by_key("bad", hold_on("")), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember,
                     HF_REMEMBER_KEY); /* the action was malformed, the key was not */
    assert_int_equal(
        by_key("c", (struct hf_request){ .action = HF_RELEASE, .hold = { hf_str(id) } }), HF_OK);
    assert_int_equal(by_key("b", hold_on("room")),
                     HF_RESOURCE_UNAVAILABLE); /* though it is free now */
    assert_true(w->plan.replayed);
    assert_int_equal(by_key("bad", hold_on("")), HF_INVALID_REQUEST);
    assert_true(w->plan.replayed);
    assert_int_equal(by_key("d", hold_on("room")), HF_OK);
}

/* The parameters that could be read and those that could not are what the key is bound to. */
static void what_could_not_be_read_is_remembered(void **state)
{
    (void)state;
    const struct hf_flaw seven = { "requester", hf_str("7") }, none = { "requester", { 0 } };
    const struct hf_invalid sent = { &seven, 1, hf_str("requester: not a name") },
                            missing = { &none, 1, hf_str("requester: missing") },
                            mute = { &none, 1, hf_mem(w, HF_WHY_MAX + 1) };
    struct hf_request r = hold_on("room");
    r.place_hold.requester = hf_mem(NULL, 0);
    r.invalid = &sent;
    assert_int_equal(by_key("", r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(by_key("a", r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember, HF_REMEMBER_KEY);
    assert_int_equal(w->plan.token.status, HF_INVALID_REQUEST);
    assert_int_equal(by_key("a", r), HF_INVALID_REQUEST);
    assert_true(w->plan.replayed);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_VALUE);
    assert_true(hf_bytes_equal(w->plan.answer.value, sent.why));
    r.invalid = &missing;
    assert_int_equal(by_key("a", r), HF_TOKEN_COLLISION); /* nothing is not 7 */
    assert_int_equal(by_number("c", 1, r), HF_INVALID_REQUEST);
    r.invalid = NULL;
    assert_int_equal(by_number("c", 1, r), HF_TOKEN_COLLISION);
    assert_int_equal(by_key("a", hold_on("room")), HF_TOKEN_COLLISION);
    r.invalid = &mute; /* a reason that is too long is left out */
    assert_int_equal(by_key("b", r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
    w->refuse_writes = true;
    assert_int_equal(by_key("d", r), HF_STORAGE_FAILURE);
    w->refuse_writes = false;
    r = (struct hf_request){ .action = HF_CHECK, .invalid = &missing };
    assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(world_count(w, HF_ROW_RESOURCE), 0);
}

static void another_action_or_digest_collides(void **state)
{
    (void)state;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    struct hf_request confirm = { .action = HF_CONFIRM, .hold = { hf_str(id) } };
    struct hf_request others[] = { hold_on("other"), hold_on("room"), hold_on("room"),
                                   hold_on("room"), confirm };
    others[1].place_hold.duration_ms++;
    others[2].place_hold.fence = 1;
    others[3].place_hold.requester = hf_str("someone");
    w->now += 1;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(by_key("key", others[i]), HF_TOKEN_COLLISION);
        assert_false(w->plan.replayed);
        assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
        assert_int_equal(w->plan.row_count, 0);
        assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
        assert_int_equal(w->plan.token.action, HF_PLACE_HOLD); /* what the key is bound to */
        assert_true(w->plan.token.recorded_at == WORLD_START);
    }
    /* The same digest under another action: two ends of one hold. */
    assert_int_equal(by_key("end", confirm), HF_OK);
    confirm.action = HF_RELEASE;
    assert_int_equal(by_key("end", confirm), HF_TOKEN_COLLISION);
}

static void the_window_is_half_open(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = 1000;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    w->now = WORLD_START + 999;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    assert_true(w->plan.replayed);
    assert_int_equal(by_key("key", hold_on("other")), HF_TOKEN_COLLISION);
    w->now = WORLD_START + 1000; /* retries have not pushed it */
    assert_int_equal(by_key("key", hold_on("other")), HF_OK);
    assert_false(w->plan.replayed);
    assert_true(w->plan.token.recorded_at == w->now && w->plan.token.expires_at == w->now + 1000);
}

static void a_key_keeps_the_window_of_its_first_use(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = 1000;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    w->rules.idempotency_window_ms = 5000;
    w->now += 1000;
    assert_int_equal(by_key("key", hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_false(w->plan.replayed);
}

static void faults_are_not_remembered(void **state)
{
    (void)state;
    w->refuse_writes = true;
    assert_int_equal(by_key("key", hold_on("room")), HF_STORAGE_FAILURE);
    assert_int_equal(w->plan.token.recorded_at, 0);
    w->refuse_writes = false;
    static const enum world_lookup all[] = { WORLD_TOKEN, WORLD_CLAIM, WORLD_RESOURCE };
    for (size_t i = 0; i < 3; i++) {
        w->unreadable[all[i]] = true;
        assert_int_equal(by_key("key", hold_on("room")), HF_STORAGE_FAILURE);
        assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
        assert_int_equal(w->plan.token.recorded_at, 0);
        w->unreadable[all[i]] = false;
    }
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    assert_false(w->plan.replayed);
    w->refuse_writes = true; /* what is known is still answered */
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
    assert_true(w->plan.replayed);
    assert_int_equal(by_key("key", hold_on("other")), HF_TOKEN_COLLISION);
}

static void a_live_claim_has_the_key(void **state)
{
    (void)state;
    w->rules.idempotency_window_ms = 1000;
    struct hf_request begin = { .action = HF_BEGIN,
                                .begin = { .payload = hf_str("p"), .lease_ms = 10 } };
    assert_int_equal(by_key("key", begin), HF_OK);
    uint64_t fence = w->plan.answer.claim.fence;
    w->now += 100; /* the lease ran out, but nobody has settled it */
    assert_int_equal(by_key("key", hold_on("room")), HF_TOKEN_COLLISION);
    assert_int_equal(w->plan.token.action, HF_BEGIN);
    assert_true(w->plan.token.recorded_at == WORLD_START && w->plan.token.expires_at == INT64_MAX);
    struct hf_request complete = { .action = HF_COMPLETE, .settle = { .fence = fence } };
    assert_int_equal(by_key("key", complete), HF_OK);
    hf_time settled_at = w->now;
    w->now = settled_at + 999;
    assert_int_equal(by_key("key", hold_on("room")), HF_TOKEN_COLLISION);
    assert_true(w->plan.token.expires_at == settled_at + 1000);
    w->now = settled_at + 1000;
    assert_int_equal(by_key("key", hold_on("room")), HF_OK);
}

/* ---- Numbers ---- */

static const struct hf_client *client_of(const char *name)
{
    const struct hf_row *row = world_row(w, HF_ROW_CLIENT, "", name, "");
    assert_non_null(row);
    return &row->client;
}

static bool used(const struct hf_client *c, uint64_t n)
{
    return c->used[n % HF_SEQUENCE_WINDOW / 8] >> (n % 8) & 1;
}

static unsigned used_count(const struct hf_client *c)
{
    unsigned count = 0;
    for (unsigned n = 0; n < HF_SEQUENCE_WINDOW; n++)
        count += used(c, n);
    return count;
}

static void numbers_are_keys(void **state)
{
    (void)state;
    assert_int_equal(by_number("pos-1", 1, hold_on("room")), HF_OK);
    assert_int_equal(w->plan.remember, HF_REMEMBER_SEQUENCE);
    assert_true(w->plan.token.expires_at == INT64_MAX);
    assert_int_equal(w->plan.token.status, HF_OK);
    assert_int_equal(w->plan.row_count, 3);
    assert_true(client_of("pos-1")->highest == 1 && used_count(client_of("pos-1")) == 1);
    assert_int_equal(by_number("pos-1", 1, hold_on("room")), HF_OK);
    assert_true(w->plan.replayed);
    assert_int_equal(by_number("pos-1", 1, hold_on("other")), HF_TOKEN_COLLISION);
    assert_int_equal(w->plan.token.action, HF_PLACE_HOLD);
    assert_int_equal(by_number("pos-1", 2, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.row_count, 1); /* a refusal takes its number too */
    w->now += 100 * WINDOW;                 /* they leave by number, not by time */
    assert_int_equal(by_number("pos-1", 2, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_true(w->plan.replayed);
    assert_int_equal(by_number("pos-2", 2, hold_on("room-2")), HF_OK); /* another client */
}

static void numbers_may_come_late_but_not_too_late(void **state)
{
    (void)state;
    assert_int_equal(by_number("c", 300, hold_on("room")), HF_OK); /* begins far ahead */
    assert_true(client_of("c")->highest == 300 && used_count(client_of("c")) == 1);
    assert_int_equal(by_number("c", 300 - 256, hold_on("room")), HF_WINDOW_ELAPSED);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(by_number("c", 300 - 255, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_false(w->plan.replayed);
    assert_true(client_of("c")->highest == 300 && used_count(client_of("c")) == 2);
    assert_true(used(client_of("c"), 45));
    assert_int_equal(by_number("c", 300 - 255, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_true(w->plan.replayed);
    /* One step up: 45 has left, and its bit now stands for 301. */
    assert_int_equal(by_number("c", 301, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_false(w->plan.replayed);
    assert_int_equal(by_number("c", 45, hold_on("room")), HF_WINDOW_ELAPSED);
    assert_true(client_of("c")->highest == 301 && used_count(client_of("c")) == 2);
    assert_int_equal(by_number("c", 1, hold_on("room")), HF_WINDOW_ELAPSED);
}

static void gaps_are_free_and_the_mark_moves_over_them(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 256; n++)
        (void)by_number("c", n, hold_on("room"));
    assert_int_equal(used_count(client_of("c")), 256);
    (void)by_number("c", 511, hold_on("room")); /* 255 up: of the old ones only 256 is left */
    assert_true(used_count(client_of("c")) == 2 && used(client_of("c"), 256));
    assert_int_equal(by_number("c", 256, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_true(w->plan.replayed);
    assert_int_equal(by_number("c", 400, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_false(w->plan.replayed);
    (void)by_number("c", 511 + 256, hold_on("room")); /* nothing is left */
    assert_int_equal(used_count(client_of("c")), 1);
    assert_int_equal(by_number("c", 511, hold_on("room")), HF_WINDOW_ELAPSED);
    assert_int_equal(by_number("c", 512, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
}

static void a_number_far_above_the_highest_changes_nothing(void **state)
{
    (void)state;
    const uint64_t most = HF_SEQUENCE_AHEAD_MAX;
    assert_int_equal(by_number("c", most + 1, hold_on("room")), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(w->plan.token.expires_at, 0);
    assert_int_equal(world_count(w, HF_ROW_CLIENT), 0);
    assert_int_equal(by_number("c", most, hold_on("room")), HF_OK); /* the first counts from 0 */
    assert_int_equal(by_number("c", UINT64_MAX, hold_on("room")), HF_INVALID_REQUEST);
    assert_int_equal(by_number("c", 2 * most + 1, hold_on("room")), HF_INVALID_REQUEST);
    assert_true(client_of("c")->highest == most);
    assert_int_equal(by_number("c", most + 1, hold_on("other")), HF_OK); /* it goes on */
    assert_int_equal(by_number("c", 2 * most + 1, hold_on("third")), HF_OK);
}

static enum hf_status look_up(const char *client, uint64_t number)
{
    return by_number(client, number, (struct hf_request){ .action = HF_GET_TOKEN });
}

static void numbers_are_looked_up(void **state)
{
    (void)state;
    assert_int_equal(by_number("c", 300, hold_on("room")), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    assert_int_equal(by_number("c", 299, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(look_up("c", 300), HF_OK);
    assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
    assert_int_equal(w->plan.row_count, 0);
    assert_string_equal(w->plan.answer.hold.id, id);
    assert_int_equal(w->plan.token.action, HF_PLACE_HOLD);
    assert_int_equal(w->plan.token.status, HF_OK);
    assert_true(w->plan.token.recorded_at == WORLD_START);
    assert_int_equal(look_up("c", 299), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.token.status, HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(look_up("c", 298), HF_NOT_KNOWN); /* left out */
    assert_int_equal(look_up("c", 301), HF_NOT_KNOWN);
    assert_int_equal(look_up("c", UINT64_MAX), HF_NOT_KNOWN);
    assert_int_equal(look_up("c", 300 - 256), HF_WINDOW_ELAPSED);
    assert_int_equal(look_up("d", 1), HF_NOT_KNOWN);
    assert_int_equal(look_up("c", 0), HF_INVALID_REQUEST);
    assert_int_equal(look_up("\xff", 1), HF_INVALID_REQUEST);
    struct hf_request both = { .action = HF_GET_TOKEN, .key = hf_str("k") };
    assert_int_equal(by_number("c", 300, both), HF_INVALID_REQUEST);
    static const enum world_lookup all[] = { WORLD_CLIENT, WORLD_SEQUENCE };
    for (size_t i = 0; i < 2; i++) {
        w->unreadable[all[i]] = true;
        assert_int_equal(look_up("c", 300), HF_STORAGE_FAILURE);
        w->unreadable[all[i]] = false;
    }
    w->token_count = 0; /* used, and its answer is lost: not "it did not happen" */
    assert_int_equal(look_up("c", 300), HF_STORAGE_FAILURE);
}

static void the_highest_number_of_all(void **state)
{
    (void)state;
    assert_int_equal(by_number("c", 1, hold_on("elsewhere")), HF_OK);
    ((struct hf_client *)(uintptr_t)client_of("c"))->highest = UINT64_MAX - HF_SEQUENCE_AHEAD_MAX;
    memset(((struct hf_client *)(uintptr_t)client_of("c"))->used, 0, HF_SEQUENCE_WINDOW / 8);
    assert_int_equal(by_number("c", UINT64_MAX - 3, hold_on("room")), HF_OK);
    assert_int_equal(by_number("c", UINT64_MAX, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_true(client_of("c")->highest == UINT64_MAX && used_count(client_of("c")) == 2);
    assert_int_equal(by_number("c", UINT64_MAX, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_true(w->plan.replayed);
    assert_int_equal(by_number("c", UINT64_MAX - 255, hold_on("room")), HF_RESOURCE_UNAVAILABLE);
    assert_false(w->plan.replayed);
    assert_int_equal(by_number("c", UINT64_MAX - 256, hold_on("room")), HF_WINDOW_ELAPSED);
}

static void faults_take_no_number(void **state)
{
    (void)state;
    w->refuse_writes = true;
    assert_int_equal(by_number("c", 1, hold_on("room")), HF_STORAGE_FAILURE);
    w->refuse_writes = false;
    static const enum world_lookup all[] = { WORLD_CLIENT, WORLD_RESOURCE };
    for (size_t i = 0; i < 2; i++) {
        w->unreadable[all[i]] = true;
        assert_int_equal(by_number("c", 1, hold_on("room")), HF_STORAGE_FAILURE);
        assert_int_equal(w->plan.row_count, 0);
        w->unreadable[all[i]] = false;
    }
    assert_int_equal(world_count(w, HF_ROW_CLIENT), 0);
    assert_int_equal(by_number("c", 1, hold_on("room")), HF_OK);
    w->unreadable[WORLD_SEQUENCE] = true;
    assert_int_equal(by_number("c", 1, hold_on("room")), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_SEQUENCE] = false;
    w->token_count = 0; /* the mark says used, the answer is lost: never a second effect */
    assert_int_equal(by_number("c", 1, hold_on("room")), HF_STORAGE_FAILURE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_have_1_to_max_bytes),
        TEST(keys_are_compared_byte_for_byte),
        TEST(a_key_or_a_number_and_not_both),
        TEST(tenants_have_keys_of_their_own),
        TEST(the_same_call_gets_its_first_answer),
        TEST(refusals_are_remembered),
        TEST(what_could_not_be_read_is_remembered),
        TEST(another_action_or_digest_collides),
        TEST(the_window_is_half_open),
        TEST(a_key_keeps_the_window_of_its_first_use),
        TEST(faults_are_not_remembered),
        TEST(a_live_claim_has_the_key),
        TEST(numbers_are_keys),
        TEST(numbers_may_come_late_but_not_too_late),
        TEST(gaps_are_free_and_the_mark_moves_over_them),
        TEST(a_number_far_above_the_highest_changes_nothing),
        TEST(numbers_are_looked_up),
        TEST(the_highest_number_of_all),
        TEST(faults_take_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

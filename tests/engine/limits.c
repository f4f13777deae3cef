/* Every limit of holdfast.h at its edge and one past it, large values, odd bytes, full memory. */
#include "engine/kit/engine.h"
#include "support/test.h"

static struct kit *k;
static char *big; /* 2 MiB of 'n' */
enum { BIG = 2 << 20 };

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    big = malloc(BIG);
    assert_non_null(big);
    memset(big, 'n', BIG);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    free(big);
    return 0;
}

static struct hf_bytes text(size_t size)
{
    assert_true(size <= BIG);
    return hf_mem(big, size);
}

/* ---- Names ---- */

/* Ask with a name of `size` bytes, in each place where a request has one. */
enum { PLACES = 10, NOT_THERE = 9 };

static enum hf_status name_in(int place, size_t size)
{
    static const struct hf_value value = { .type = HF_TYPE_MAX, .number = 1 };
    struct hf_bytes name = text(size);
    struct hf_request r = { .key = hf_str(kit_key(k)) };
    switch (place) {
    case 0:
        r.action = HF_PLACE_HOLD;
        r.place_hold.resource = name;
        r.place_hold.requester = hf_str("guest");
        r.place_hold.duration_ms = HOUR;
        break;
    case 1:
        r.action = HF_PLACE_HOLD;
        r.place_hold.resource = hf_str("room");
        r.place_hold.requester = name;
        r.place_hold.duration_ms = HOUR;
        break;
    case 2:
        r.action = HF_SET_RESOURCE;
        r.set_resource.name = name;
        break;
    case 3:
        r.action = HF_SET_GUARD;
        r.set_guard.name = name;
        r.set_guard.window_ms = HOUR;
        break;
    case 4:
        r.action = HF_ADMIT;
        r.identity.guard = name;
        r.identity.identity = hf_str("x");
        break;
    case 5:
        r.action = HF_GRANT;
        r.lease.name = name;
        r.lease.holder = hf_str("me");
        r.lease.ttl_ms = HOUR;
        break;
    case 6:
        r.action = HF_GRANT;
        r.lease.name = hf_str("lease");
        r.lease.holder = name;
        r.lease.ttl_ms = HOUR;
        break;
    case 7:
        r.action = HF_WRITE;
        r.write.name = name;
        break;
    case 8:
        r.action = HF_MERGE;
        r.tenant = hf_str("merges"); /* where the register is not a plain one */
        r.merge.name = name;
        r.merge.value = &value;
        break;
    default: /* releases a hold that is not there */
        r.action = HF_RELEASE;
        r.key = hf_str("");
        r.client = name;
        r.sequence = 1;
        break;
    }
    return kit_do(k, r);
}

static void names_have_up_to_1024_bytes_everywhere(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        assert_int_equal(name_in(place, HF_NAME_MAX), place == NOT_THERE ? HF_NOT_KNOWN : HF_OK);
        assert_int_equal(name_in(place, HF_NAME_MAX + 1), HF_INVALID_REQUEST);
        assert_int_equal(name_in(place, 0), HF_INVALID_REQUEST);
    }
    kit_reopen(k);
    struct hf_request get = { .action = HF_GET_RESOURCE, .get = { text(HF_NAME_MAX) } };
    assert_int_equal(kit_do(k, get), HF_OK);
    assert_int_equal(k->got.answer.resource.name.size, HF_NAME_MAX);
    assert_int_equal(k->got.answer.resource.held, 1);
    get.get.name.size++;
    assert_int_equal(kit_do(k, get), HF_INVALID_REQUEST);
}

static void names_are_utf8_without_nul(void **state)
{
    (void)state;
    static const struct hf_bytes bad[] = {
        { "a\0b", 3 }, { "\xff", 1 }, { "\xc3", 1 }, { "\xed\xa0\x80", 3 }, { "\xc0\xaf", 2 }
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_request r = { .action = HF_PLACE_HOLD,
                                .key = hf_str(kit_key(k)),
                                .place_hold = { bad[i], hf_str("guest"), HOUR, 0 } };
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        r = (struct hf_request){ .action = HF_SET_GUARD,
                                 .tenant = bad[i],
                                 .set_guard = { .name = hf_str("g"), .window_ms = 1 } };
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    }
    assert_int_equal(kit_place(k, kit_key(k), "Z\xc3\xbcrich \xf0\x9f\x9b\x8f", "guest", HOUR),
                     HF_OK);
    assert_int_equal(kit_stats(k).holds, 1);
}

/* Every case of every size that slices have to be copied at: inside the result, at its edge, on the
 * heap. */
static void answers_of_every_size_come_back_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1,
                                    200,
                                    HF_RESULT_INLINE - 2,
                                    HF_RESULT_INLINE - 1,
                                    HF_RESULT_INLINE,
                                    HF_RESULT_INLINE + 1,
                                    HF_NAME_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int again = 0; again < 2; again++) {
            char key[24];
            snprintf(key, sizeof key, "size-%zu", i);
            struct hf_request r = { .action = HF_PLACE_HOLD,
                                    .key = hf_str(key),
                                    .place_hold = { text(sizes[i]), hf_str("g"), HOUR, 0 } };
            assert_int_equal(kit_do(k, r), HF_OK);
            assert_int_equal(k->got.answer.hold.resource.size, sizes[i]);
            assert_memory_equal(k->got.answer.hold.resource.data, big, sizes[i]);
            assert_true(kit_is(k->got.answer.hold.requester, "g"));
            kit_reopen(k);
        }
    }
}

static void tenants_have_up_to_64_bytes(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .tenant = text(HF_TENANT_MAX),
                            .key = hf_str("k"),
                            .place_hold = { hf_str("room"), hf_str("guest"), HOUR, 0 } };
    assert_int_equal(kit_do(k, r), HF_OK);
    kit_reopen(k);
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.hold.tenant.size, HF_TENANT_MAX);
    r.tenant.size++;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    r.tenant.size = BIG;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    r = (struct hf_request){ .action = HF_RECORD,
                             .tenant = text(HF_TENANT_MAX + 1),
                             .identity = { .guard = hf_str("g"), .identity = hf_str("x") } };
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
}

/* ---- Tokens ---- */

static void tokens_have_up_to_the_configured_bytes(void **state)
{
    (void)state;
    static const uint32_t lengths[] = { 1, 16, 256, HF_TOKEN_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        k->options.token_max_length = lengths[i];
        kit_reopen(k);
        struct hf_request r = { .action = HF_RELEASE,
                                .key = text(lengths[i]),
                                .hold = { hf_str("none") } };
        assert_int_equal(kit_do(k, r), HF_NOT_KNOWN);
        assert_int_equal(kit_do(k, r), HF_NOT_KNOWN);
        assert_true(k->got.replayed);
        r.key.size++;
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        struct hf_request begin = { .action = HF_BEGIN, .key = r.key };
        assert_int_equal(kit_do(k, begin), HF_INVALID_REQUEST);
    }
    k->options.token_max_length = 0; /* as the store has it */
    kit_reopen(k);
    struct hf_request r = { .action = HF_BEGIN, .key = text(HF_TOKEN_MAX - 1) };
    assert_int_equal(kit_do(k, r), HF_OK);
}

static void tokens_are_bytes_and_every_byte_counts(void **state)
{
    (void)state;
    static const struct hf_bytes tokens[] = {
        { "\0", 1 },       { "\0\0", 2 }, { "a", 1 },        { "a\0", 2 },       { "a\0b", 3 },
        { "a\0c", 3 },     { "\xff", 1 }, { "\xff\xff", 2 }, { "\xfe", 1 },      { " a", 2 },
        { "a ", 2 },       { "A", 1 },    { "\xc3\xa9", 2 }, { "e\xcc\x81", 3 }, { "\x80", 1 },
        { "\xc0\xaf", 2 }, { "\r\n", 2 },
    };
    enum { COUNT = sizeof tokens / sizeof *tokens };
    char id[COUNT][HF_ID_SIZE];
    assert_int_equal(kit_resource(k, "hall", COUNT), HF_OK);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            struct hf_request r = { .action = HF_PLACE_HOLD,
                                    .key = tokens[i],
                                    .place_hold = { hf_str("hall"), hf_str("guest"), HOUR, 0 } };
            assert_int_equal(kit_do(k, r), HF_OK);
            assert_int_equal(k->got.replayed, round > 0);
            if (round == 0)
                memcpy(id[i], k->got.answer.hold.id, HF_ID_SIZE);
            assert_string_equal(k->got.answer.hold.id, id[i]);
        }
        if (round == 1)
            kit_reopen(k);
    }
    assert_int_equal(kit_stats(k).holds, COUNT);
}

/* ---- Values ---- */

static void identities_and_their_results_have_limits(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct hf_request r = { .action = HF_ADMIT,
                                .identity = { .guard = hf_str("g"),
                                              .identity = text(HF_IDENTITY_MAX),
                                              .result = text(HF_GUARD_RESULT_MAX),
                                              .has_result = true } };
        assert_int_equal(
            kit_do(k, (struct hf_request){ .action = HF_SET_GUARD,
                                           .set_guard = { .name = hf_str("g"),
                                                          .window_ms = HOUR,
                                                          .volatile_only = round == 1 } }),
            HF_OK);
        assert_int_equal(kit_do(k, r), HF_OK);
        assert_false(k->got.answer.seen.seen);
        assert_int_equal(kit_do(k, r), HF_OK);
        assert_true(k->got.answer.seen.seen);
        assert_int_equal(k->got.answer.seen.result.size, HF_GUARD_RESULT_MAX);
        assert_memory_equal(k->got.answer.seen.result.data, big, HF_GUARD_RESULT_MAX);
        r.identity.identity.size++;
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        r.identity.identity.size = 5;
        r.identity.result.size++;
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        r.action = HF_CHECK;
        r.identity.has_result = false;
        assert_int_equal(kit_do(k, r), HF_OK);
        assert_false(k->got.answer.seen.seen);
        kit_at(k, HOUR);
        kit_reopen(k);
    }
}

static void responses_of_a_mebibyte_are_kept_and_given_again(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        const char *key = fails ? "fails" : "completes";
        assert_int_equal(kit_begin(k, key, "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
        struct hf_request r = { .action = fails ? HF_FAIL : HF_COMPLETE,
                                .key = hf_str(key),
                                .settle = { .fence = k->got.answer.claim.fence,
                                            .response = text(HF_RESPONSE_MAX + 1) } };
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        r.settle.response.size--;
        assert_int_equal(kit_do(k, r), HF_OK);
        assert_int_equal(kit_do(k, r), HF_OK);
        assert_true(k->got.replayed);
        kit_settle(k);
    }
    kit_reopen(k);
    for (int fails = 0; fails < 2; fails++) {
        assert_int_equal(kit_begin(k, fails ? "fails" : "completes", "p", HOUR, HF_ABANDON_UNKNOWN),
                         HF_OK);
        assert_true(k->got.replayed);
        assert_int_equal(k->got.answer.claim.response.size, HF_RESPONSE_MAX);
        assert_memory_equal(k->got.answer.claim.response.data, big, HF_RESPONSE_MAX);
    }
}

static void many_large_responses_span_segments_and_snapshots(void **state)
{
    (void)state;
    char key[24];
    k->options.snapshot_every_bytes = 3 << 20;
    kit_reopen(k);
    for (int i = 0; i < 12; i++) {
        snprintf(key, sizeof key, "claim-%d", i);
        assert_int_equal(kit_begin(k, key, "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
        big[i] = 'x';
        struct hf_request r = { .action = HF_COMPLETE,
                                .key = hf_str(key),
                                .settle = { .fence = k->got.answer.claim.fence,
                                            .response = text(1000000) } };
        assert_int_equal(kit_do(k, r), HF_OK);
        big[i] = 'n';
        hf_maintain(k->db);
    }
    kit_settle(k);
    assert_true(k->remote || kit_stats(k).snapshots > 0);
    for (int round = 0; round < 2; round++) {
        kit_reopen(k);
        for (int i = 0; i < 12; i++) {
            snprintf(key, sizeof key, "claim-%d", i);
            assert_int_equal(kit_get(k, HF_GET_CLAIM, key), HF_OK);
            assert_int_equal(k->got.answer.claim.response.size, 1000000);
            big[i] = 'x';
            assert_memory_equal(k->got.answer.claim.response.data, big, 1000000);
            big[i] = 'n';
        }
        kit_close(k);
        kit_remove(k, ".snap");
        kit_open(k);
    }
}

static void register_values_have_up_to_65536_bytes(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_WRITE,
                            .key = hf_str("k"),
                            .write = { .name = hf_str("r"), .value = text(HF_VALUE_MAX) } };
    assert_int_equal(kit_do(k, r), HF_OK);
    kit_reopen(k);
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(k->got.answer.reg.value.bytes.size, HF_VALUE_MAX);
    r.key = hf_str("k2");
    r.write.value.size++;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    /* A stored form of last-writer-wins: 8 + 2 bytes, the node, the bytes. */
    struct hf_value value = {
        .type = HF_TYPE_LWW, .timestamp = 1, .node = hf_str("n"), .bytes = text(HF_VALUE_MAX - 11)
    };
    r = (struct hf_request){ .action = HF_MERGE, .merge = { hf_str("lww"), &value } };
    assert_int_equal(kit_do(k, r), HF_OK);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "lww"), HF_OK);
    assert_int_equal(k->got.answer.reg.value.bytes.size, HF_VALUE_MAX - 11);
    value.timestamp = 2;
    value.bytes.size++;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
}

static void merged_values_have_up_to_1024_items(void **state)
{
    (void)state;
    static struct hf_item items[HF_MERGE_ITEMS_MAX + 1];
    static char names[HF_MERGE_ITEMS_MAX + 1][24];
    for (int i = 0; i <= HF_MERGE_ITEMS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "n%04d", i);
        items[i] = (struct hf_item){ hf_str(names[i]), 1, 2 };
    }
    struct hf_value value = { .type = HF_TYPE_UPDOWN,
                              .items = items,
                              .item_count = HF_MERGE_ITEMS_MAX };
    struct hf_request r = { .action = HF_MERGE, .merge = { hf_str("updown"), &value } };
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(k->got.answer.reg.value.item_count, HF_MERGE_ITEMS_MAX);
    assert_int_equal(k->got.answer.reg.value.number, -HF_MERGE_ITEMS_MAX);
    value.item_count++;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    value.items = &items[HF_MERGE_ITEMS_MAX]; /* one item, but the union of both is one too many */
    value.item_count = 1;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "updown"), HF_OK);
    assert_int_equal(k->got.answer.reg.version, 1);
    assert_int_equal(k->got.answer.reg.value.item_count, HF_MERGE_ITEMS_MAX);
    assert_true(kit_is(k->got.answer.reg.value.items[HF_MERGE_ITEMS_MAX - 1].name, "n1023"));
    struct hf_item most[] = { { hf_str("a"), INT64_MAX, 0 }, { hf_str("b"), 0, INT64_MAX } };
    value = (struct hf_value){ .type = HF_TYPE_UPDOWN, .items = most, .item_count = 2 };
    r.merge.name = hf_str("most");
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(k->got.answer.reg.value.number, 0);
    most[0].up++;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    most[0] = (struct hf_item){ hf_str("c"), 1, 0 }; /* the sum would leave 64 bits */
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    most[1] = most[0]; /* a name twice */
    r.merge.name = hf_str("twice");
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    value.item_count = 0; /* an empty set is a value */
    value.items = NULL;
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(k->got.answer.reg.value.item_count, 0);
}

/* ---- Numbers ---- */

static void durations_are_one_millisecond_to_ten_years(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        enum hf_status status;
    } steps[] = { { 1, HF_OK },
                  { HF_DURATION_MAX_MS, HF_OK },
                  { HF_DURATION_MAX_MS + 1, HF_INVALID_REQUEST },
                  { 0, HF_INVALID_REQUEST },
                  { -1, HF_INVALID_REQUEST },
                  { INT64_MAX, HF_INVALID_REQUEST },
                  { INT64_MIN, HF_INVALID_REQUEST } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t ms = steps[i].ms;
        enum hf_status st = steps[i].status;
        enum hf_status or_default = ms == 0 ? HF_OK : st; /* where 0 means: as usual */
        const char *name = kit_key(k);
        assert_int_equal(kit_place(k, kit_key(k), name, "guest", ms), st);
        assert_int_equal(kit_guard(k, name, ms, NULL, 0), st);
        struct hf_request r = { .action = HF_GRANT,
                                .key = hf_str(kit_key(k)),
                                .lease = { hf_str(name), hf_str("me"), ms, 0 } };
        assert_int_equal(kit_do(k, r), st);
        assert_int_equal(kit_begin(k, name, "p", ms, HF_ABANDON_UNKNOWN), or_default);
        r.key = hf_str(kit_key(k));
        r.lease.name = hf_str("renewed");
        r.lease.ttl_ms = HOUR;
        if (i == 0)
            assert_int_equal(kit_do(k, r), HF_OK);
        assert_int_equal(kit_get(k, HF_GET_LEASE, "renewed"), HF_OK);
        r = (struct hf_request){
            .action = HF_RENEW,
            .lease = { .name = hf_str("renewed"), .ttl_ms = ms, .fence = k->got.answer.lease.fence }
        };
        assert_int_equal(kit_do(k, r), or_default);
        if (i == 0)
            assert_int_equal(kit_begin(k, "beats", "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
        assert_int_equal(kit_get(k, HF_GET_CLAIM, "beats"), HF_OK);
        r = (struct hf_request){ .action = HF_HEARTBEAT,
                                 .key = hf_str("beats"),
                                 .settle = { .fence = k->got.answer.claim.fence, .lease_ms = ms } };
        assert_int_equal(kit_do(k, r), or_default);
    }
}

static void capacity_goes_up_to_a_thousand_million_and_not_below_what_is_taken(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    assert_int_equal(kit_resource(k, "r", HF_CAPACITY_MAX), HF_OK);
    assert_int_equal(kit_resource(k, "r", HF_CAPACITY_MAX + 1), HF_INVALID_REQUEST);
    assert_int_equal(kit_resource(k, "r", UINT32_MAX), HF_INVALID_REQUEST);
    assert_int_equal(kit_resource(k, "r", 0), HF_OK); /* as it is */
    assert_int_equal(k->got.answer.resource.capacity, HF_CAPACITY_MAX);
    kit_held(k, "r", HOUR, id);
    assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), id), HF_OK);
    kit_held(k, "r", HOUR, id);
    assert_int_equal(kit_resource(k, "r", 1), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(kit_resource(k, "r", 2), HF_OK);
    assert_int_equal(kit_place(k, kit_key(k), "r", "guest", HOUR), HF_RESOURCE_UNAVAILABLE);
    kit_reopen(k);
    assert_int_equal(kit_resource(k, "r", 0), HF_OK);
    assert_int_equal(k->got.answer.resource.capacity, 2);
    struct hf_request r = { .action = HF_SET_RESOURCE,
                            .set_resource = { .name = hf_str("r"), .open = 3 } };
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    r.set_resource.open = HF_SET_CLOSED;
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), id), HF_OK);
    assert_int_equal(kit_place(k, kit_key(k), "r", "guest", HOUR), HF_RESOURCE_UNAVAILABLE);
    r.set_resource.open = HF_SET_OPEN;
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_int_equal(kit_place(k, kit_key(k), "r", "guest", HOUR), HF_OK);
}

static void a_match_rule_has_up_to_four_steps_with_the_hash_last(void **state)
{
    (void)state;
    static const struct {
        enum hf_match match[5];
        uint32_t count;
        enum hf_status status;
    } steps[] = {
        { { 0 }, 0, HF_OK },
        { { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE, HF_MATCH_HASH }, 4, HF_OK },
        { { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE, HF_MATCH_HASH },
          5,
          HF_INVALID_REQUEST },
        { { HF_MATCH_HASH, HF_MATCH_TRIM }, 2, HF_INVALID_REQUEST },
        { { HF_MATCH_TRIM, HF_MATCH_TRIM }, 2, HF_INVALID_REQUEST },
        { { 0 }, 1, HF_INVALID_REQUEST },
        { { 6 }, 1, HF_INVALID_REQUEST },
        { { HF_MATCH_EXACT }, 1, HF_OK },
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct hf_request r = {
            .action = HF_SET_GUARD,
            .set_guard = { .name = hf_str("g"), .window_ms = HOUR, .match_count = steps[i].count }
        };
        memcpy(r.set_guard.match, steps[i].match, sizeof r.set_guard.match);
        assert_int_equal(kit_do(k, r), steps[i].status);
    }
}

static void unknown_actions_and_ids_are_refused(void **state)
{
    (void)state;
    static const int actions[] = { 0, 21, HF_SWEEP, HF_CONFIGURE, 63, 72, 1000, -1 };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        assert_int_equal(kit_do(k, (struct hf_request){ .action = (enum hf_action)actions[i],
                                                        .key = hf_str(kit_key(k)) }),
                         HF_INVALID_REQUEST);
    char id[HF_ID_SIZE], other[HF_ID_SIZE];
    kit_held(k, "room", HOUR, id);
    memcpy(other, id, HF_ID_SIZE);
    for (int i = 0; i < HF_ID_SIZE - 1; i++) { /* no id is near another one */
        other[i] = id[i] == '0' ? '1' : '0';
        assert_int_equal(kit_get_hold(k, other), HF_NOT_KNOWN);
        other[i] = id[i];
    }
    assert_int_equal(kit_get_hold(k, ""), HF_NOT_KNOWN);
    assert_int_equal(kit_get_hold(k, "not an id at all, and rather too long for one"),
                     HF_NOT_KNOWN);
    for (int i = 0; i < HF_ID_SIZE - 1; i++) /* but either case will do */
        if (other[i] >= 'a' && other[i] <= 'z')
            other[i] = (char)(other[i] - 'a' + 'A');
    assert_int_equal(kit_get_hold(k, other), HF_OK);
    assert_string_equal(k->got.answer.hold.id, id);
    assert_int_equal(kit_end(k, HF_CONFIRM, "c", other), HF_OK);
    assert_int_equal(kit_end(k, HF_CONFIRM, "c", id), HF_OK); /* the same request */
    assert_true(k->got.replayed);
}

/* ---- Full memory ---- */

static void at_the_memory_limit_new_keys_are_refused_while_replays_and_reads_go_on(void **state)
{
    (void)state;
    both_needs_files();
    char id[HF_ID_SIZE];
    k->options.memory_max_bytes = 3 << 20;
    kit_reopen(k);
    assert_int_equal(kit_guard(k, "g", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "g", "before", NULL), HF_OK);
    assert_int_equal(kit_begin(k, "claim", "p", HOUR, HF_ABANDON_UNKNOWN), HF_OK);
    kit_held(k, "room", HOUR, id);
    struct hf_request write = { .action = HF_WRITE, .write = { .value = text(HF_VALUE_MAX) } };
    enum hf_status st = HF_OK;
    int written = 0;
    char name[24], key[24];
    for (; st == HF_OK && written < 1000; written++) {
        snprintf(name, sizeof name, "r-%d", written);
        snprintf(key, sizeof key, "w-%d", written);
        write.key = hf_str(key);
        write.write.name = hf_str(name);
        st = kit_do(k, write);
    }
    assert_int_equal(st, HF_STORAGE_FAILURE);
    assert_true(written > 10 && written < 60);
    assert_true(kit_stats(k).memory_bytes < 4 << 20);
    assert_int_equal(kit_stats(k).refusals_storage, 1);
    for (int i = 0; i < written - 1; i++) { /* replays */
        snprintf(name, sizeof name, "r-%d", i);
        snprintf(key, sizeof key, "w-%d", i);
        write.key = hf_str(key);
        write.write.name = hf_str(name);
        assert_int_equal(kit_do(k, write), HF_OK);
        assert_true(k->got.replayed);
    }
    assert_int_equal(kit_get_hold(k, id), HF_OK); /* reads */
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "r-1"), HF_OK);
    assert_int_equal(kit_ask(k, HF_CHECK, "g", "before", NULL), HF_OK);
    assert_true(k->got.answer.seen.seen);
    assert_int_equal(kit_begin(k, "claim", "p", HOUR, HF_ABANDON_UNKNOWN), HF_IN_PROGRESS);
    struct hf_page page;
    struct hf_query q = { .kind = HF_LIST_HOLDS };
    assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
    assert_int_equal(page.count, 1);
    hf_page_clear(&page);
    assert_int_equal(kit_place(k, "new", "other", "guest", HOUR),
                     HF_STORAGE_FAILURE); /* and nothing new */
    assert_int_equal(kit_begin(k, "new", "p", HOUR, HF_ABANDON_UNKNOWN), HF_STORAGE_FAILURE);
    assert_int_equal(kit_ask(k, HF_RECORD, "g", "after", NULL), HF_OK);
    assert_int_equal(kit_stats(k).guard_misses, 1);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "new"),
                     HF_NOT_KNOWN); /* nor is the refusal remembered */
    k->options.memory_max_bytes = 0;
    kit_reopen(k);
    assert_int_equal(kit_place(k, "new", "other", "guest", HOUR), HF_OK);
    assert_false(k->got.replayed);
}

static void a_request_that_does_not_fit_into_a_segment_is_a_storage_failure(void **state)
{
    (void)state;
    both_needs_files();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    kit_open(k);
    struct hf_request r = { .action = HF_WRITE,
                            .key = hf_str("k"),
                            .write = { .name = hf_str("r"), .value = text(HF_VALUE_MAX) } };
    assert_int_equal(kit_do(k, r), HF_STORAGE_FAILURE);
    r.write.value.size = 30000;
    assert_int_equal(kit_do(k, r), HF_OK); /* the key was not used up */
    assert_false(k->got.replayed);
    assert_false(kit_stats(k).out_of_space);
    char id[HF_ID_SIZE];
    for (int i = 0; i < 300; i++) /* and small ones go on from segment to segment */
        kit_held(k, kit_key(k), HOUR, id);
    assert_true(kit_files(k, ".log") > 10);
    kit_reopen(k);
    assert_int_equal(kit_stats(k).holds, 300);
    assert_int_equal(kit_do(k, r), HF_OK);
    assert_true(k->got.replayed);
}

/* A memory limit once reached is never left again: the sweeper is refused too, so overdue holds
 * stay held, and tables do not give back what expired keys took. Only a restart helps. */
static void after_everything_has_ended_there_is_room_again(void **s)
{
    (void)s;
    both_needs_files();
    static struct hf_request r[8192];
    static struct hf_result got[8192];
    static char key[8192][40];
    struct kit *own = kit_make();
    own->options.memory_max_bytes = 8 << 20;
    own->options.idempotency_window_ms = MINUTE;
    kit_reopen(own);
    bool full = false;
    for (int z = 0; z < 100 && !full; z++) {
        for (int i = 0; i < 8192; i++) {
            snprintf(key[i], sizeof key[i], "n%d-%d", z, i);
            r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                        .key = hf_str(key[i]),
                                        .place_hold = { hf_str(key[i]), hf_str("g"), SECOND, 0 } };
        }
        assert_int_equal(hf_do_many(own->db, r, got, 8192), HF_OK);
        for (int i = 0; i < 8192; i++) {
            full |= got[i].answer.status == HF_STORAGE_FAILURE;
            hf_result_clear(&got[i]);
        }
    }
    assert_true(full);
    kit_at(own, HOUR);
    kit_settle(own);
    assert_int_equal(kit_stats(own).holds_live, 0); /* fails: none was expired */
    kit_free(own);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_have_up_to_1024_bytes_everywhere),
        TEST(names_are_utf8_without_nul),
        TEST(answers_of_every_size_come_back_whole),
        TEST(tenants_have_up_to_64_bytes),
        TEST(tokens_have_up_to_the_configured_bytes),
        TEST(tokens_are_bytes_and_every_byte_counts),
        TEST(identities_and_their_results_have_limits),
        TEST(responses_of_a_mebibyte_are_kept_and_given_again),
        TEST(many_large_responses_span_segments_and_snapshots),
        TEST(register_values_have_up_to_65536_bytes),
        TEST(merged_values_have_up_to_1024_items),
        TEST(durations_are_one_millisecond_to_ten_years),
        TEST(capacity_goes_up_to_a_thousand_million_and_not_below_what_is_taken),
        TEST(a_match_rule_has_up_to_four_steps_with_the_hash_last),
        TEST(unknown_actions_and_ids_are_refused),
        TEST(at_the_memory_limit_new_keys_are_refused_while_replays_and_reads_go_on),
        TEST(a_request_that_does_not_fit_into_a_segment_is_a_storage_failure),
        cmocka_unit_test(after_everything_has_ended_there_is_room_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

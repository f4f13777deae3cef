/* Stories at random over close and open: small segments, snapshots, compressed segments, lost help
 * files, and a disk that fails now and then. After each opening everything that can be seen is as
 * it was, and every key that is still in its window is answered as it was the first time. */
#include "engine/kit/engine.h"
#include "support/test.h"

enum { RESOURCES = 8, CLIENTS = 3, REGISTERS = 4, CLAIMS = 30, MEMORY = 512 };

#define WINDOW (2 * MINUTE)

static const char *const tenants[] = { "", "north", "south" };
enum { TENANTS = sizeof tenants / sizeof *tenants };

/* A keyed request and what it was answered with. */
struct told {
    char tenant[8], key[40], a[32], b[32], id[HF_ID_SIZE];
    enum hf_action action;
    uint64_t sequence, number;
    int64_t duration_ms;
    hf_time expires_at;
    char *answer; /* owned */
};

struct story {
    struct kit *k;
    uint64_t random;
    int64_t clock;
    struct told told[MEMORY];
    size_t told_count;
    char ids[64][HF_ID_SIZE];
    size_t id_count;
    uint64_t sequence[TENANTS][CLIENTS];
    uint64_t replays, refusals, healed, failed_opens;
    bool faults;
};

static uint64_t below(struct story *s, uint64_t n)
{
    return test_below(&s->random, n);
}

/* ---- A disk that fails ---- */

static void faults_clear(struct story *s)
{
    atomic_store(&s->k->io.fail_write, 0);
    atomic_store(&s->k->io.fail_sync, 0);
    atomic_store(&s->k->io.fail_open, 0);
    atomic_store(&s->k->io.room, -1);
}

static void faults_order(struct story *s)
{
    int n = (int)below(s, 4) + 1;
    switch (below(s, 4)) {
    case 0: atomic_store(&s->k->io.fail_write, n); break;
    case 1: atomic_store(&s->k->io.fail_sync, n); break;
    case 2: atomic_store(&s->k->io.fail_open, n); break;
    default: atomic_store(&s->k->io.room, (int64_t)below(s, 100000)); break;
    }
}

/* The store cannot go on: open it again, perhaps not at the first try. */
static void heal(struct story *s)
{
    struct kit *k = s->k;
    faults_clear(s);
    kit_close(k);
    atomic_store(&k->fatal, 0);
    for (int tries = 0; tries < 3; tries++) {
        faults_order(s);
        enum hf_status st = hf_open(k->dir, &k->options, &k->db, NULL);
        faults_clear(s);
        if (st == HF_OK)
            break;
        assert_int_equal(st, HF_STORAGE_FAILURE);
        assert_null(k->db);
        s->failed_opens++;
    }
    if (!k->db)
        kit_open(k);
    s->healed++;
}

/* Ask until there is an answer: after a fault the same request is asked again. */
static enum hf_status ask(struct story *s, const struct hf_request *r)
{
    if (s->faults && below(s, 20) == 0)
        faults_order(s);
    for (int tries = 0; tries < 3; tries++) {
        enum hf_status st = hf_do(s->k->db, r, &s->k->got);
        if (st < HF_STORAGE_FAILURE)
            return st;
        assert_true(s->faults);
        assert_true(st == HF_STORAGE_FAILURE || st == HF_INDETERMINATE);
        heal(s);
    }
    fail_msg("no answer");
    return HF_STORAGE_FAILURE;
}

static void maintain(struct story *s)
{
    if (s->faults && below(s, 20) == 0)
        faults_order(s);
    hf_maintain(s->k->db);
    if (atomic_load(&s->k->fatal))
        heal(s);
}

/* ---- Steps ---- */

static struct hf_request request_of(const struct told *t)
{
    struct hf_request r = { .action = t->action, .tenant = hf_str(t->tenant) };
    if (t->sequence) {
        r.client = hf_str(t->key);
        r.sequence = t->sequence;
    } else {
        r.key = hf_str(t->key);
    }
    switch (t->action) {
    case HF_PLACE_HOLD:
        r.place_hold.resource = hf_str(t->a);
        r.place_hold.requester = hf_str(t->b);
        r.place_hold.duration_ms = t->duration_ms;
        break;
    case HF_GRANT:
        r.lease.name = hf_str(t->a);
        r.lease.holder = hf_str(t->b);
        r.lease.ttl_ms = t->duration_ms;
        break;
    case HF_WRITE:
        r.write.name = hf_str(t->a);
        r.write.value = hf_str(t->b);
        r.write.fence = t->number;
        break;
    default: r.hold.id = hf_str(t->id); break;
    }
    return r;
}

static void remember(struct story *s, struct told *t)
{
    struct hf_answer *answer = &s->k->got.answer;
    t->answer = kit_answer(s->k);
    t->expires_at = s->k->got.token.expires_at;
    assert_true(t->expires_at == (t->sequence ? INT64_MAX : s->k->got.token.recorded_at + WINDOW));
    size_t at = s->told_count < MEMORY ? s->told_count++ : below(s, MEMORY);
    free(s->told[at].answer);
    s->told[at] = *t;
    if (answer->status != HF_OK)
        s->refusals++;
    if (answer->kind == HF_RECORD_HOLD)
        memcpy(s->ids[s->id_count++ % 64], answer->hold.id, HF_ID_SIZE);
}

static void step_new(struct story *s)
{
    static const enum hf_action actions[] = { HF_PLACE_HOLD, HF_PLACE_HOLD, HF_PLACE_HOLD,
                                              HF_CONFIRM,    HF_RELEASE,    HF_EXPIRE,
                                              HF_REVERSE,    HF_GRANT,      HF_WRITE };
    size_t tenant = below(s, TENANTS);
    struct told t = { .action = actions[below(s, sizeof actions / sizeof *actions)] };
    snprintf(t.tenant, sizeof t.tenant, "%s", tenants[tenant]);
    if (below(s, 4) == 0) {
        size_t client = below(s, CLIENTS);
        snprintf(t.key, sizeof t.key, "client-%zu", client);
        t.sequence = ++s->sequence[tenant][client];
    } else {
        snprintf(t.key, sizeof t.key, "key-%llu", (unsigned long long)test_random(&s->random));
    }
    snprintf(t.a, sizeof t.a, "name-%llu", (unsigned long long)below(s, RESOURCES));
    snprintf(t.b, sizeof t.b, "guest-%llu", (unsigned long long)below(s, 100));
    t.duration_ms = (int64_t)below(s, 90 * SECOND) + 1;
    t.number = below(s, 3) ? 0 : below(s, 1000);
    if (s->id_count)
        memcpy(t.id, s->ids[below(s, s->id_count < 64 ? s->id_count : 64)], HF_ID_SIZE);
    struct hf_request r = request_of(&t);
    uint64_t healed = s->healed;
    (void)ask(s, &r);
    /* Again only where a fault has left it open whether the first time had happened. */
    assert_true(!s->k->got.replayed || s->healed > healed);
    remember(s, &t);
}

/* The same again: the first answer while it is remembered. */
static void step_again(struct story *s)
{
    if (s->told_count == 0)
        return;
    struct told *t = &s->told[below(s, s->told_count)];
    struct hf_request r = request_of(t);
    if (t->sequence) {
        size_t tenant = t->tenant[0] == 'n' ? 1 : t->tenant[0] == 's' ? 2 : 0;
        size_t client = (size_t)(t->key[7] - '0');
        enum hf_status st = ask(s, &r);
        if (s->sequence[tenant][client] - t->sequence >= HF_SEQUENCE_WINDOW) {
            assert_int_equal(st, HF_WINDOW_ELAPSED);
            return;
        }
    } else if (KIT_START + s->clock >= t->expires_at) {
        return; /* it would be a new request */
    } else {
        (void)ask(s, &r);
    }
    char *answer = kit_answer(s->k);
    assert_string_equal(answer, t->answer);
    assert_true(s->k->got.replayed);
    s->replays++;
    free(answer);
}

static void step_plain(struct story *s)
{
    static const struct hf_item items[] = { { { "x", 1 }, 7, 0 }, { { "y", 1 }, 0, 9 } };
    const struct hf_value value = { .type = HF_TYPE_UPDOWN,
                                    .items = items + below(s, 2),
                                    .item_count = 1 };
    char name[32], identity[32];
    struct hf_request r = { .tenant = hf_str(tenants[below(s, TENANTS)]) };
    snprintf(name, sizeof name, "name-%llu", (unsigned long long)below(s, RESOURCES));
    snprintf(identity, sizeof identity, "identity-%llu", (unsigned long long)below(s, 50));
    switch (below(s, 6)) {
    case 0:
        r.action = HF_SET_RESOURCE;
        r.set_resource.name = hf_str(name);
        r.set_resource.capacity = (uint32_t)below(s, 5);
        break;
    case 1:
        r.action = HF_SET_GUARD;
        r.set_guard.name = hf_str(name);
        r.set_guard.window_ms = (int64_t)below(s, MINUTE) + 1;
        break;
    case 2:
        r.action = HF_ADMIT;
        r.identity.guard = hf_str(name);
        r.identity.identity = hf_str(identity);
        r.identity.result = hf_str("a result");
        r.identity.has_result = true;
        break;
    case 3:
        r.action = HF_MERGE;
        snprintf(name, sizeof name, "merged-%llu", (unsigned long long)below(s, REGISTERS));
        r.merge.name = hf_str(name);
        r.merge.value = &value;
        break;
    default:
        snprintf(name, sizeof name, "claim-%llu", (unsigned long long)below(s, CLAIMS));
        r.action = HF_BEGIN;
        r.key = hf_str(name);
        r.begin.payload = hf_str("payload");
        r.begin.lease_ms = (int64_t)below(s, MINUTE) + 1;
        r.begin.on_abandon = HF_ABANDON_RETRY;
        if (ask(s, &r) != HF_OK || s->k->got.replayed || below(s, 2))
            return;
        r.settle.fence = s->k->got.answer.claim.fence;
        r.settle.response = hf_str(identity);
        r.settle.retryable = false;
        r.settle.lease_ms = 0;
        r.action = HF_COMPLETE;
        break;
    }
    (void)ask(s, &r);
}

static void check_capacity(struct story *s)
{
    for (size_t i = 0; i < TENANTS; i++) {
        struct hf_page page;
        struct hf_query q = { .kind = HF_LIST_RESOURCES, .tenant = hf_str(tenants[i]) };
        kit_list(s->k, &q, &page);
        for (size_t n = 0; n < page.count; n++)
            assert_true(page.resources[n].held + page.resources[n].confirmed <=
                        page.resources[n].capacity);
        hf_page_clear(&page);
    }
}

/* What the lists do not show: claims, leases and registers, one by one, behind what they do
 * show. */
static char *all_of(struct story *s)
{
    char *lists = kit_dump(s->k, tenants, TENANTS);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fputs(lists, out);
    free(lists);
    static const struct {
        enum hf_action action;
        const char *prefix;
        int count;
    } kinds[] = { { HF_GET_CLAIM, "claim", CLAIMS },
                  { HF_GET_LEASE, "name", RESOURCES },
                  { HF_GET_REGISTER, "name", RESOURCES },
                  { HF_GET_REGISTER, "merged", REGISTERS } };
    for (size_t t = 0; t < TENANTS; t++) {
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
            for (int i = 0; i < kinds[n].count; i++) {
                char name[32];
                snprintf(name, sizeof name, "%s-%d", kinds[n].prefix, i);
                s->k->tenant = tenants[t];
                (void)kit_get(s->k, kinds[n].action, name);
                s->k->tenant = NULL;
                char *answer = kit_answer(s->k);
                fprintf(out, "%s\n", answer);
                free(answer);
            }
        }
    }
    fclose(out);
    return text;
}

static void reopen(struct story *s)
{
    struct kit *k = s->k;
    char *before = all_of(s);
    struct hf_stats was = kit_stats(k);
    kit_close(k);
    switch (below(s, 4)) {
    case 0: kit_remove(k, "holds.idx"); break;
    case 1: kit_remove(k, ".snap"); break;
    case 2:
        kit_remove(k, "holds.idx");
        kit_remove(k, ".snap");
        break;
    default: break;
    }
    kit_open(k);
    char *after = all_of(s);
    assert_string_equal(after, before);
    struct hf_stats is = kit_stats(k);
    assert_int_equal(is.holds, was.holds);
    assert_int_equal(is.holds_live, was.holds_live);
    free(before);
    free(after);
}

struct telling {
    uint64_t segment_bytes, snapshot_bytes;
    int rounds, steps;
    bool faults;
};

static void tell(uint64_t seed, const struct telling *how)
{
    struct story s = { .k = kit_make(), .random = seed, .faults = how->faults };
    struct kit *k = s.k;
    kit_leave(k);
    k->options.segment_max_bytes = how->segment_bytes;
    k->options.snapshot_every_bytes = how->snapshot_bytes;
    k->options.idempotency_window_ms = WINDOW;
    kit_open(k);
    int rounds = k->remote ? how->rounds / 3 : how->rounds;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < how->steps; i++) {
            uint64_t what = below(&s, 10);
            if (below(&s, 4) == 0)
                kit_at(k, s.clock += (int64_t)below(&s, 2 * SECOND));
            if (what < 5)
                step_new(&s);
            else if (what < 8)
                step_again(&s);
            else
                step_plain(&s);
            if (below(&s, 3) == 0)
                maintain(&s);
        }
        if (how->faults) /* so that the state in memory is that on disk */
            heal(&s);
        if (below(&s, 2)) {
            kit_at(k, s.clock += (int64_t)below(&s, 3 * MINUTE));
            kit_settle(k);
        }
        check_capacity(&s);
        reopen(&s);
    }
    assert_true(s.replays > 0 && s.refusals > 0);
    assert_true(!how->faults || (s.healed > (uint64_t)rounds && s.failed_opens > 0));
    for (size_t i = 0; i < s.told_count; i++)
        free(s.told[i].answer);
    kit_free(k);
}

static void a_story_over_small_segments(void **state)
{
    (void)state;
    tell(test_seed("small segments", 1), &(struct telling){ 65536 * 2, 100000, 12, 250, false });
}

static void a_story_over_larger_segments(void **state)
{
    (void)state;
    tell(test_seed("larger segments", 2), &(struct telling){ 1 << 20, 300000, 8, 300, false });
}

static void a_story_on_a_disk_that_fails(void **state)
{
    (void)state;
    both_needs_files();
    tell(test_seed("failing disk", 3), &(struct telling){ 65536 * 2, 100000, 10, 200, true });
}

/* ---- Old records ---- */

static struct kit *small_kit(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 100000;
    k->options.idempotency_window_ms = MINUTE;
    kit_open(k);
    return k;
}

/* Place holds of other resources and let time pass, until all that was before is compressed. */
static void bury(struct kit *k, int64_t *clock)
{
    size_t packed = kit_files(k, ".zst");
    for (int i = 0; i < 60; i++)
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "filler", SECOND), HF_OK);
    kit_at(k, *clock += 2 * MINUTE);
    kit_settle(k);
    for (int i = 0; i < 60; i++)
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "filler", SECOND), HF_OK);
    kit_at(k, *clock += 2 * MINUTE);
    kit_settle(k);
    assert_true(k->remote || kit_files(k, ".zst") > packed + 2);
}

static void overdue_holds_in_compressed_segments_make_room_one_by_one(void **state)
{
    (void)state;
    enum { UNITS = 20 };
    char id[UNITS][HF_ID_SIZE];
    int64_t clock = 0;
    struct kit *k = small_kit();
    assert_int_equal(kit_resource(k, "hall", UNITS), HF_OK);
    for (int i = 0; i < UNITS; i++)
        kit_held(k, "hall", HOUR + i, id[i]);
    bury(k, &clock);
    assert_int_equal(kit_place(k, kit_key(k), "hall", "late", HOUR), HF_RESOURCE_UNAVAILABLE);
    kit_at(k, clock = 2 * HOUR); /* no maintenance: placing finds them itself */
    for (int i = 0; i < UNITS; i++)
        assert_int_equal(kit_place(k, kit_key(k), "hall", "late", HOUR), HF_OK);
    assert_int_equal(kit_place(k, kit_key(k), "hall", "late", HOUR), HF_RESOURCE_UNAVAILABLE);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < UNITS; i++) {
            assert_int_equal(kit_get_hold(k, id[i]), HF_OK);
            assert_int_equal(k->got.answer.hold.state, HF_EXPIRED);
            assert_int_equal(k->got.answer.hold.expires_at, KIT_START + HOUR + i);
            assert_true(kit_is(k->got.answer.hold.resource, "hall"));
        }
        kit_reopen(k);
    }
    kit_free(k);
}

static void holds_in_compressed_segments_can_be_ended_and_given_back(void **state)
{
    (void)state;
    char held[4][HF_ID_SIZE], confirmed[HF_ID_SIZE], reversal[HF_ID_SIZE];
    int64_t clock = 0;
    struct kit *k = small_kit();
    assert_int_equal(kit_resource(k, "hall", 10), HF_OK);
    for (int i = 0; i < 4; i++)
        kit_held(k, "hall", i == 3 ? HOUR : DAY, held[i]);
    kit_held(k, "hall", DAY, confirmed);
    assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), confirmed), HF_OK);
    bury(k, &clock);
    kit_reopen(k);
    assert_int_equal(kit_end(k, HF_CONFIRM, "confirm", held[0]), HF_OK);
    assert_true(kit_is(k->got.answer.hold.requester, "guest"));
    assert_int_equal(kit_end(k, HF_RELEASE, "release", held[1]), HF_OK);
    assert_int_equal(kit_end(k, HF_EXPIRE, "early", held[2]), HF_WINDOW_NOT_ELAPSED);
    assert_int_equal(kit_end(k, HF_REVERSE, "reverse", confirmed), HF_OK);
    assert_true(kit_is(k->got.answer.hold.resource, "hall"));
    memcpy(reversal, k->got.answer.hold.id, HF_ID_SIZE);
    kit_at(k, clock += HOUR);
    assert_true(hf_maintain(k->db)); /* the sweeper reads the fourth out of a compressed segment */
    kit_settle(k);
    for (int round = 0; round < 3; round++) {
        static const enum hf_hold_state states[] = { HF_CONFIRMED, HF_RELEASED, HF_HELD,
                                                     HF_EXPIRED };
        for (int i = 0; i < 4; i++) {
            assert_int_equal(kit_get_hold(k, held[i]), HF_OK);
            assert_int_equal(k->got.answer.hold.state, states[i]);
        }
        assert_int_equal(kit_get_hold(k, reversal), HF_OK);
        assert_string_equal(k->got.answer.hold.reverses, confirmed);
        assert_int_equal(kit_end(k, HF_REVERSE, kit_key(k), confirmed), HF_NOT_HELD);
        assert_int_equal(kit_get(k, HF_GET_RESOURCE, "hall"), HF_OK);
        assert_int_equal(k->got.answer.resource.held, 1);
        assert_int_equal(k->got.answer.resource.confirmed, 1);
        bury(k, &clock);
        kit_close(k);
        kit_remove(k, round == 0 ? "holds.idx" : ".snap");
        kit_open(k);
    }
    kit_free(k);
}

static void a_list_walks_over_plain_and_compressed_segments(void **state)
{
    (void)state;
    int64_t clock = 0;
    struct kit *k = small_kit();
    for (int i = 0; i < 3; i++)
        bury(k, &clock);
    assert_true(k->remote || kit_files(k, ".log") > 0);
    uint64_t holds = kit_stats(k).holds;
    for (int round = 0; round < 3; round++) {
        struct hf_query q = { .kind = HF_LIST_HOLDS, .limit = 37 };
        uint64_t expected = holds, before = UINT64_MAX;
        do {
            struct hf_page page;
            assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
            for (size_t i = 0; i < page.count; i++, expected--) {
                assert_true(k->remote || page.holds[i].ordinal == expected);
                assert_true(page.holds[i].ordinal < before);
                before = page.holds[i].ordinal;
                assert_true(kit_is(page.holds[i].requester, "filler"));
            }
            q.cursor = page.next_cursor;
            hf_page_clear(&page);
        } while (q.cursor != 0);
        assert_int_equal(expected, 0);
        kit_close(k);
        kit_remove(k, round == 0 ? "holds.idx" : ".snap");
        kit_open(k);
    }
    kit_free(k);
}

static void a_group_of_8192_spans_many_small_segments(void **state)
{
    (void)state;
    static struct hf_request r[HF_GROUP_MAX];
    static struct hf_result got[HF_GROUP_MAX];
    static char key[HF_GROUP_MAX][24];
    static char id[HF_GROUP_MAX][HF_ID_SIZE];
    struct kit *k = small_kit();
    for (int i = 0; i < HF_GROUP_MAX; i++) {
        snprintf(key[i], sizeof key[i], "key-%d", i);
        r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .key = hf_str(key[i]),
                                    .place_hold = { hf_str(key[i]), hf_str("guest"), HOUR, 0 } };
    }
    for (int round = 0; round < 3; round++) {
        assert_int_equal(hf_do_many(k->db, r, got, HF_GROUP_MAX), HF_OK);
        for (int i = 0; i < HF_GROUP_MAX; i++) {
            assert_int_equal(got[i].answer.status, HF_OK);
            assert_int_equal(got[i].replayed, round > 0);
            if (round == 0)
                memcpy(id[i], got[i].answer.hold.id, HF_ID_SIZE);
            assert_string_equal(got[i].answer.hold.id, id[i]);
            hf_result_clear(&got[i]);
        }
        if (round == 1)
            kit_settle(k); /* a snapshot */
        kit_reopen(k);
    }
    assert_true(k->remote || kit_files(k, ".log") > 30);
    assert_int_equal(kit_stats(k).holds, HF_GROUP_MAX);
    assert_int_equal(kit_stats(k).recovery_replayed < 1000, true); /* and it was used */
    kit_free(k);
}

/* ---- Many holds ---- */

enum { GROUP = 3000, ROUNDS = 7 };

/* End `count` holds of any age that are still held. */
static void end_some(struct kit *k, uint64_t *random, char (*id)[HF_ID_SIZE], uint8_t *states,
                     size_t holds, size_t count)
{
    static struct hf_request r[GROUP];
    static char key[GROUP][32];
    static int keys;
    size_t n = 0;
    for (size_t tries = 0; n < count && tries < 10 * count; tries++) {
        size_t i = test_below(random, holds);
        if (states[i] != HF_HELD)
            continue;
        bool confirm = test_below(random, 2);
        states[i] = confirm ? HF_CONFIRMED : HF_RELEASED;
        snprintf(key[n], sizeof key[n], "end-%d", keys++);
        r[n] = (struct hf_request){ .action = confirm ? HF_CONFIRM : HF_RELEASE,
                                    .key = hf_str(key[n]),
                                    .hold = { hf_str(id[i]) } };
        n++;
    }
    assert_int_equal(hf_do_many(k->db, r, NULL, n), HF_OK);
}

static void check_states(struct kit *k, char (*id)[HF_ID_SIZE], const uint8_t *states, size_t holds)
{
    static struct hf_request r[GROUP];
    static struct hf_result got[GROUP];
    for (size_t from = 0; from < holds; from += GROUP) {
        for (size_t i = 0; i < GROUP; i++)
            r[i] = (struct hf_request){ .action = HF_GET_HOLD, .hold = { hf_str(id[from + i]) } };
        assert_int_equal(hf_do_many(k->db, r, got, GROUP), HF_OK);
        for (size_t i = 0; i < GROUP; i++) {
            assert_int_equal(got[i].answer.status, HF_OK);
            assert_int_equal(got[i].answer.hold.state, states[from + i]);
            assert_true(k->remote || got[i].answer.hold.ordinal == from + i + 1);
            hf_result_clear(&got[i]);
        }
    }
}

static void place_group(struct kit *k, size_t first, char (*id)[HF_ID_SIZE])
{
    static struct hf_request r[GROUP];
    static struct hf_result got[GROUP];
    static char key[GROUP][32];
    for (size_t i = 0; i < GROUP; i++) {
        snprintf(key[i], sizeof key[i], "hold-%zu", first + i);
        r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .key = hf_str(key[i]),
                                    .place_hold = { hf_str(key[i]), hf_str("guest"), DAY, 0 } };
    }
    assert_int_equal(hf_do_many(k->db, r, got, GROUP), HF_OK);
    for (size_t i = 0; i < GROUP; i++) {
        assert_int_equal(got[i].answer.status, HF_OK);
        memcpy(id[first + i], got[i].answer.hold.id, HF_ID_SIZE);
        hf_result_clear(&got[i]);
    }
}

static void holds_of_every_age_keep_their_state_whatever_help_files_are_lost(void **state)
{
    (void)state;
    static char id[GROUP * ROUNDS][HF_ID_SIZE];
    static uint8_t states[GROUP * ROUNDS];
    uint64_t random = test_seed("many holds", 5);
    struct kit *k = kit_make();
    k->options.snapshot_every_bytes = 400000;
    kit_reopen(k);
    for (int round = 0; round < test_size(k->remote ? ROUNDS / 2 : ROUNDS); round++) {
        size_t holds = (size_t)round * GROUP;
        place_group(k, holds, id);
        memset(states + holds, HF_HELD, GROUP);
        holds += GROUP;
        end_some(k, &random, id, states, holds, 500);
        uint64_t steps =
            test_below(&random, 40); /* a snapshot, perhaps cut short in any of its phases */
        for (uint64_t i = 0; i < steps; i++)
            hf_maintain(k->db);
        end_some(k, &random, id, states, holds, 500);
        if (test_below(&random, 2))
            kit_settle(k);
        end_some(k, &random, id, states, holds, 500);
        check_states(k, id, states, holds);
        kit_close(k);
        uint64_t lost = test_below(&random, 4);
        if (lost & 1)
            kit_remove(k, "holds.idx");
        if (lost & 2)
            kit_remove(k, ".snap");
        kit_open(k);
        assert_int_equal(kit_stats(k).holds, holds);
        check_states(k, id, states, holds);
    }
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_story_over_small_segments),
        cmocka_unit_test(a_story_over_larger_segments),
        cmocka_unit_test(a_story_on_a_disk_that_fails),
        cmocka_unit_test(overdue_holds_in_compressed_segments_make_room_one_by_one),
        cmocka_unit_test(holds_in_compressed_segments_can_be_ended_and_given_back),
        cmocka_unit_test(a_list_walks_over_plain_and_compressed_segments),
        cmocka_unit_test(a_group_of_8192_spans_many_small_segments),
        cmocka_unit_test(holds_of_every_age_keep_their_state_whatever_help_files_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

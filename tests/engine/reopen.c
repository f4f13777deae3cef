/* Stories at random over close and open: small segments, snapshots, compressed segments, lost help files.
 * After each opening everything that can be seen is as it was, and every key that is still in its window is
 * answered as it was the first time. */
#include "support/engine_kit.h"
#include "support/test.h"

enum { RESOURCES = 8, GUARDS = 3, CLIENTS = 3, REGISTERS = 4, MEMORY = 512 };

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
    uint64_t holds, replays, refusals;
};

static uint64_t below(struct story *s, uint64_t n)
{
    return test_below(&s->random, n);
}

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
    t->expires_at = t->sequence ? INT64_MAX : s->k->got.now + WINDOW;
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
    static const enum hf_action actions[] = { HF_PLACE_HOLD, HF_PLACE_HOLD, HF_PLACE_HOLD, HF_CONFIRM,
                                              HF_RELEASE,    HF_EXPIRE,     HF_REVERSE,    HF_GRANT,
                                              HF_WRITE };
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
    enum hf_status st = hf_do(s->k->db, &r, &s->k->got);
    assert_true(st < HF_STORAGE_FAILURE);
    assert_false(s->k->got.replayed);
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
        enum hf_status st = hf_do(s->k->db, &r, &s->k->got);
        if (s->sequence[tenant][client] - t->sequence >= HF_SEQUENCE_WINDOW) {
            assert_int_equal(st, HF_WINDOW_ELAPSED);
            return;
        }
    } else if (KIT_START + s->clock >= t->expires_at) {
        return; /* it would be a new request */
    } else {
        enum hf_status st = hf_do(s->k->db, &r, &s->k->got);
        assert_true(st < HF_STORAGE_FAILURE);
    }
    char *answer = kit_answer(s->k);
    assert_string_equal(answer, t->answer);
    assert_true(s->k->got.replayed);
    s->replays++;
    free(answer);
}

static void step_plain(struct story *s)
{
    char name[32];
    struct kit *k = s->k;
    k->tenant = tenants[below(s, TENANTS)];
    snprintf(name, sizeof name, "name-%llu", (unsigned long long)below(s, RESOURCES));
    enum hf_status st = HF_OK;
    switch (below(s, 6)) {
    case 0: st = kit_resource(k, name, (uint32_t)below(s, 5)); break;
    case 1: st = kit_guard(k, name, (int64_t)below(s, MINUTE) + 1, NULL, 0); break;
    case 2:
        st = kit_ask(k, HF_ADMIT, name, below(s, 2) ? "some" : "other", "a result");
        break;
    case 3:
        snprintf(name, sizeof name, "claim-%llu", (unsigned long long)below(s, 30));
        st = kit_begin(k, name, "payload", (int64_t)below(s, MINUTE) + 1, HF_ABANDON_RETRY);
        if (st == HF_OK && !k->got.replayed && below(s, 2))
            st = kit_settle_claim(k, HF_COMPLETE, name, k->got.answer.claim.fence, "done", false);
        break;
    case 4: {
        char identity[32];
        snprintf(identity, sizeof identity, "identity-%llu", (unsigned long long)below(s, 50));
        st = kit_ask(k, HF_RECORD, name, identity, NULL);
        break;
    }
    default: st = kit_get(k, HF_GET_RESOURCE, name); break;
    }
    k->tenant = NULL;
    assert_true(st < HF_STORAGE_FAILURE);
}

static void check_capacity(struct story *s)
{
    for (size_t i = 0; i < TENANTS; i++) {
        struct hf_page page;
        struct hf_query q = { .kind = HF_LIST_RESOURCES, .tenant = hf_str(tenants[i]) };
        assert_int_equal(hf_list(s->k->db, &q, &page), HF_OK);
        for (size_t n = 0; n < page.count; n++)
            assert_true(page.resources[n].held + page.resources[n].confirmed <= page.resources[n].capacity);
        hf_page_clear(&page);
    }
}

static void reopen(struct story *s)
{
    struct kit *k = s->k;
    char *before = kit_dump(k, tenants, TENANTS);
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
    char *after = kit_dump(k, tenants, TENANTS);
    assert_string_equal(after, before);
    struct hf_stats is = kit_stats(k);
    assert_int_equal(is.holds, was.holds);
    assert_int_equal(is.holds_live, was.holds_live);
    free(before);
    free(after);
}

static void tell(uint64_t seed, uint64_t segment_bytes, uint64_t snapshot_bytes, int rounds, int steps)
{
    struct story s = { .k = kit_make(), .random = seed };
    struct kit *k = s.k;
    kit_close(k);
    kit_remove(k, "");
    k->options.segment_max_bytes = segment_bytes;
    k->options.snapshot_every_bytes = snapshot_bytes;
    k->options.idempotency_window_ms = WINDOW;
    kit_open(k);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < steps; i++) {
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
                hf_maintain(k->db);
        }
        if (below(&s, 2)) {
            kit_at(k, s.clock += (int64_t)below(&s, 3 * MINUTE));
            kit_settle(k);
        }
        check_capacity(&s);
        reopen(&s);
    }
    printf("replays %llu, refusals %llu, holds %llu, snapshots now %zu, packed %zu, plain %zu\n",
           (unsigned long long)s.replays, (unsigned long long)s.refusals,
           (unsigned long long)kit_stats(k).holds, kit_files(k, ".snap"), kit_files(k, ".zst"),
           kit_files(k, ".log"));
    assert_true(s.replays > 0 && s.refusals > 0);
    for (size_t i = 0; i < s.told_count; i++)
        free(s.told[i].answer);
    kit_free(k);
}

static void a_story_over_small_segments(void **state)
{
    (void)state;
    tell(test_seed("small segments", 1), 65536, 100000, 12, 250);
}

static void a_story_over_larger_segments(void **state)
{
    (void)state;
    tell(test_seed("larger segments", 2), 1 << 20, 300000, 8, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_story_over_small_segments),
        cmocka_unit_test(a_story_over_larger_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

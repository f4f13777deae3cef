/* Laws of what runs out, for drawn requests: holds, leases of claims, and windows of guards. */
#include "support/test.h"
#include "unit/kit/world.h"

#include "base/bytes.h"

/* Random operations on a few resources: capacity is never passed, the counts equal the states, each
 * hold ends once, and each answer is the one that the rules give over the records as they stand. */

#define RUNS 40
#define HOLD_STEPS 400
#define RESOURCES 3

static uint64_t seed;
static int keys;

static struct hf_bytes fresh_key(void)
{
    static char text[32];
    snprintf(text, sizeof text, "key-%d", ++keys);
    return hf_str(text);
}

static const char *name_of(uint64_t i)
{
    static const char *const names[] = { "room", "bed", "seat" };
    return names[i];
}

static const struct hf_resource *resource_of(struct world *w, const char *name)
{
    const struct hf_row *row = world_row(w, HF_ROW_RESOURCE, "", name, "");
    return row ? &row->resource : NULL;
}

/* Held and not overdue, and confirmed and not given back: counted over the records alone. */
static uint32_t taken(const struct world *w, const char *resource)
{
    const struct world_table *t = &w->tables[HF_ROW_HOLD];
    uint32_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        const struct hf_hold *h = &t->rows[i].hold;
        if (!hf_bytes_equal(h->resource, hf_str(resource)))
            continue;
        n += h->state == HF_HELD && w->now < h->expires_at;
        n += h->state == HF_CONFIRMED;
        n -= h->reverses[0] != '\0';
    }
    return n;
}

static void place(struct world *w)
{
    const char *name = name_of(test_below(&seed, RESOURCES));
    uint64_t fence = test_below(&seed, 4) ? 0 : 1 + test_below(&seed, 50);
    const struct hf_resource *r = resource_of(w, name);
    enum hf_status want = HF_OK;
    if (r && fence != 0 && fence <= r->fence)
        want = HF_STALE_FENCE;
    else if (r ? !r->open || taken(w, name) >= r->capacity : w->rules.registry_strict)
        want = HF_RESOURCE_UNAVAILABLE;
    struct hf_request request = { .action = HF_PLACE_HOLD,
                                  .key = fresh_key(),
                                  .place_hold = { hf_str(name), hf_str("guest"),
                                                  1 + (int64_t)test_below(&seed, 30), fence } };
    size_t before = world_count(w, HF_ROW_HOLD);
    assert_int_equal(world_do(w, &request), want);
    assert_int_equal(world_count(w, HF_ROW_HOLD), before + (want == HF_OK));
    r = resource_of(w, name);
    if (r && want == HF_OK && fence != 0)
        assert_true(r->fence == fence);
}

static bool given_back(const struct world *w, const char *id)
{
    const struct world_table *t = &w->tables[HF_ROW_HOLD];
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].hold.reverses, id) == 0)
            return true;
    return false;
}

static enum hf_status end_wanted(const struct world *w, enum hf_action action,
                                 const struct hf_hold *h)
{
    if (action == HF_REVERSE)
        return h->state == HF_CONFIRMED && !given_back(w, h->id) ? HF_OK : HF_NOT_HELD;
    if (h->state != HF_HELD)
        return HF_NOT_HELD;
    if (action == HF_CONFIRM && w->now >= h->expires_at)
        return HF_WINDOW_ELAPSED;
    if (action == HF_EXPIRE && w->now < h->expires_at)
        return HF_WINDOW_NOT_ELAPSED;
    return HF_OK;
}

static void end(struct world *w)
{
    static const enum hf_action actions[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
    size_t count = world_count(w, HF_ROW_HOLD);
    if (count == 0)
        return;
    size_t back =
        test_below(&seed, count < 12 ? count : 12); /* newer ones are likelier to be held */
    struct hf_hold h = w->tables[HF_ROW_HOLD].rows[count - 1 - back].hold;
    enum hf_action action = actions[test_below(&seed, 4)];
    struct hf_request request = { .action = action, .key = fresh_key(), .hold = { hf_str(h.id) } };
    enum hf_status want = end_wanted(w, action, &h);
    assert_int_equal(world_do(w, &request), want);
}

static void sweep(struct world *w)
{
    size_t count = world_count(w, HF_ROW_HOLD);
    if (count == 0)
        return;
    struct hf_hold h = w->tables[HF_ROW_HOLD].rows[test_below(&seed, count)].hold;
    enum hf_status want = end_wanted(w, HF_EXPIRE, &h);
    assert_int_equal(world_sweep(w, &h), want);
}

static void set(struct world *w)
{
    const char *name = name_of(test_below(&seed, RESOURCES));
    struct hf_request request = { .action = HF_SET_RESOURCE };
    request.set_resource.name = hf_str(name);
    request.set_resource.capacity = (uint32_t)test_below(&seed, 6);
    request.set_resource.open = (int)test_below(&seed, 3);
    const struct hf_resource *r = resource_of(w, name);
    bool too_small = r && request.set_resource.capacity != 0 &&
                     request.set_resource.capacity < r->held + r->confirmed;
    assert_int_equal(world_do(w, &request), too_small ? HF_RESOURCE_UNAVAILABLE : HF_OK);
}

/* Any look-up may fail: then nothing happens. */
static void fail_somewhere(struct world *w)
{
    size_t holds = world_count(w, HF_ROW_HOLD), tokens = w->token_count;
    enum world_lookup lookup = (enum world_lookup)test_below(&seed, WORLD_LOOKUPS);
    w->unreadable[lookup] = true;
    struct hf_request request = { .action = HF_PLACE_HOLD,
                                  .key = fresh_key(),
                                  .place_hold = { hf_str("room"), hf_str("guest"), 10, 0 } };
    if (world_do(w, &request) == HF_STORAGE_FAILURE) {
        assert_int_equal(world_count(w, HF_ROW_HOLD), holds);
        assert_int_equal(w->token_count, tokens);
    }
    w->unreadable[lookup] = false;
}

static void random_operations(void **state)
{
    (void)state;
    for (int run = 0; run < RUNS; run++) {
        struct world *w = world_new();
        w->rules.registry_strict = run % 4 == 0;
        for (int step = 0; step < HOLD_STEPS; step++) {
            w->now += (int64_t)test_below(&seed, 6);
            switch (test_below(&seed, 16)) {
            case 0: set(w); break;
            case 1: sweep(w); break;
            case 2: fail_somewhere(w); break;
            case 3:
            case 4:
            case 5:
            case 6:
            case 7: end(w); break;
            default: place(w); break;
            }
            world_check(w);
        }
        world_free(w);
    }
}

/* Claims under random workers that finish, fail, fall silent and come back late: the fence of a key
 * only rises, no two workers hold the current fence, and what was completed is never begun
 * again. */

#define CLAIM_STEPS 40000
#define KEYS 4
#define LEASE 20
#define WINDOW 100

struct claim {
    bool known;
    uint64_t fence; /* the current one */
    bool started;   /* not settled under it */
    bool retry;     /* policy of this start */
    hf_time lease_until;
    hf_time settled_until;
    enum hf_claim_state settled;
    int word; /* the response it was settled with */
};

static struct hf_bytes key_of(int k)
{
    static char text[KEYS][16];
    snprintf(text[k], sizeof text[k], "k%d", k);
    return hf_str(text[k]);
}

static void begin(struct world *w, struct claim *c, int k)
{
    bool retry = test_below(&seed, 2);
    struct hf_request r = { .action = HF_BEGIN,
                            .key = key_of(k),
                            .begin = { .payload = hf_str("payload"),
                                       .lease_ms = LEASE,
                                       .on_abandon =
                                           retry ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN } };
    bool alive = c->known && (c->started || w->now < c->settled_until);
    bool lapsed = alive && c->started && w->now >= c->lease_until;
    bool starts =
        !alive || (lapsed && c->retry) || (!c->started && c->settled == HF_CLAIM_RETRYABLE);
    enum hf_status status = world_do(w, &r);
    if (starts) {
        assert_int_equal(status, HF_OK);
        assert_false(w->plan.replayed);
        assert_true(w->plan.answer.claim.fence > c->fence);
        *c = (struct claim){ .known = true,
                             .fence = w->plan.answer.claim.fence,
                             .started = true,
                             .retry = retry,
                             .lease_until = w->now + LEASE };
        return;
    }
    assert_true(w->plan.row_count == 0 && w->plan.answer.claim.fence == c->fence);
    if (c->started) {
        assert_int_equal(status, lapsed ? HF_OUTCOME_UNKNOWN : HF_IN_PROGRESS);
    } else {
        assert_int_equal(status, HF_OK);
        assert_true(w->plan.replayed);
        assert_int_equal(w->plan.answer.claim.state, c->settled);
    }
}

static void settle(struct world *w, struct claim *c, int k)
{
    static const enum hf_action actions[] = { HF_COMPLETE, HF_FAIL, HF_FAIL, HF_HEARTBEAT };
    unsigned which = (unsigned)test_below(&seed, 4);
    static const enum hf_claim_state states[] = { HF_CLAIM_COMPLETED, HF_CLAIM_FAILED,
                                                  HF_CLAIM_RETRYABLE };
    int word = (int)test_below(&seed, 3);
    char text[16];
    uint64_t fence = c->fence + 1 - test_below(&seed, 3); /* one too high, right, or stale */
    if (fence == 0 || fence > c->fence + 1)
        fence = 1;
    snprintf(text, sizeof text, "w%d", word);
    struct hf_request r = {
        .action = actions[which],
        .key = key_of(k),
        .settle = { .fence = fence, .response = hf_str(text), .retryable = which == 2 }
    };
    bool alive = c->known && (c->started || w->now < c->settled_until);
    enum hf_status status = world_do(w, &r);
    if (!alive) {
        assert_int_equal(status, HF_NOT_KNOWN);
    } else if (fence != c->fence) {
        assert_int_equal(status, fence > c->fence ? HF_INVALID_REQUEST : HF_STALE_FENCE);
    } else if (!c->started) {
        bool same = which < 3 && states[which] == c->settled && word == c->word;
        assert_int_equal(status, same ? HF_OK : which == 3 ? HF_NOT_HELD : HF_TOKEN_COLLISION);
        assert_int_equal(w->plan.replayed, same);
    } else {
        assert_int_equal(status, HF_OK);
        if (which == 3) {
            c->lease_until = w->now + LEASE;
        } else {
            c->started = false;
            c->settled = states[which];
            c->settled_until = w->now + WINDOW;
            c->word = word;
        }
    }
    if (status != HF_OK || w->plan.replayed)
        assert_int_equal(w->plan.row_count, 0);
}

static void random_workers(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct claim claims[KEYS] = { 0 };
    w->rules.idempotency_window_ms = WINDOW;
    for (int step = 0; step < CLAIM_STEPS; step++) {
        int k = (int)test_below(&seed, KEYS);
        w->now += (int64_t)test_below(&seed, 12);
        if (test_below(&seed, 2))
            begin(w, &claims[k], k);
        else
            settle(w, &claims[k], k);
    }
    world_free(w);
}

/* Guard windows are never stretched and never shrunk: every answer against a model that knows only
 * the list of fresh recordings, under random retries, times, guards that change and stores that
 * refuse. */

#define WINDOW_STEPS 60000
#define NAMES 6
#define GUARDS 2

struct recorded {
    hf_time at, until; /* until == 0: never */
    int result;        /* -1: none */
};

struct model {
    int64_t window_ms[GUARDS];
    struct recorded entries[GUARDS][NAMES];
};

static void set_guard(struct world *w, struct model *m, int g)
{
    char name[16];
    snprintf(name, sizeof name, "g%d", g);
    m->window_ms[g] = 1 + (int64_t)test_below(&seed, 100);
    struct hf_request r = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str(name),
                                           .window_ms = m->window_ms[g],
                                           .on_unavailable = g ? HF_FAIL_CLOSED : HF_FAIL_OPEN } };
    assert_int_equal(world_do(w, &r), HF_OK);
}

static void check_answer(const struct world *w, const struct recorded *e)
{
    const struct hf_seen *s = &w->plan.answer.seen;
    bool under_guard = w->now < e->until;
    assert_int_equal(s->seen, under_guard);
    assert_true(s->recorded_at == (under_guard ? e->at : 0));
    assert_true(s->expires_at == (under_guard ? e->until : 0));
    assert_int_equal(s->has_result, under_guard && e->result >= 0);
    if (s->has_result) {
        char want[16];
        snprintf(want, sizeof want, "%d", e->result);
        assert_true(s->result.size == strlen(want) &&
                    memcmp(s->result.data, want, s->result.size) == 0);
    }
}

static void ask(struct world *w, struct model *m)
{
    static const enum hf_action actions[] = { HF_CHECK, HF_RECORD, HF_ADMIT };
    int g = (int)test_below(&seed, GUARDS), n = (int)test_below(&seed, NAMES);
    enum hf_action action = actions[test_below(&seed, 3)];
    struct recorded *e = &m->entries[g][n];
    char guard[16], identity[16], result[16];
    int word = (int)test_below(&seed, 1000) - 200;
    snprintf(guard, sizeof guard, "g%d", g);
    snprintf(identity, sizeof identity, "i%d", n);
    snprintf(result, sizeof result, "%d", word);
    struct hf_request r = {
        .action = action, .identity = { hf_str(guard), hf_str(identity), hf_str(result), word >= 0 }
    };
    w->refuse_writes = test_below(&seed, 10) == 0;
    bool fresh = action != HF_CHECK && w->now >= e->until;
    assert_int_equal(world_do(w, &r), HF_OK);
    if (fresh && w->refuse_writes) { /* the guard misses this window, or says seen without a time */
        assert_int_equal(w->plan.answer.seen.seen, action == HF_ADMIT && g == 1);
        assert_int_equal(w->plan.missed, !w->plan.answer.seen.seen);
        assert_true(w->plan.row_count == 0 && w->plan.answer.seen.recorded_at == 0);
    } else {
        check_answer(w, e);
        assert_int_equal(w->plan.row_count, fresh);
        assert_false(w->plan.missed);
    }
    if (fresh && !w->refuse_writes)
        *e = (struct recorded){ w->now, w->now + m->window_ms[g], word >= 0 ? word : -1 };
    w->refuse_writes = false;
}

static void windows_are_never_stretched_or_shrunk(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct model m = { .window_ms = { 0 } };
    for (int g = 0; g < GUARDS; g++)
        set_guard(w, &m, g);
    for (int step = 0; step < WINDOW_STEPS; step++) {
        if (test_below(&seed, 3) == 0)
            w->now += (int64_t)test_below(&seed, 20);
        if (test_below(&seed, 100) == 0)
            set_guard(w, &m, (int)test_below(&seed, GUARDS));
        ask(w, &m);
    }
    world_free(w);
}

/* One window, retried at every millisecond: seen exactly until it closes, then fresh for exactly
 * one window again. */
static void retries_at_every_moment(void **state)
{
    (void)state;
    for (int64_t window = 1; window <= 12; window++) {
        struct world *w = world_new();
        struct hf_request set = { .action = HF_SET_GUARD,
                                  .set_guard = { .name = hf_str("g"), .window_ms = window } };
        struct hf_request admit = { .action = HF_ADMIT,
                                    .identity = { .guard = hf_str("g"), .identity = hf_str("x") } };
        assert_int_equal(world_do(w, &set), HF_OK);
        for (int64_t t = 0; t < 5 * window; t++) {
            w->now = WORLD_START + t;
            assert_int_equal(world_do(w, &admit), HF_OK);
            assert_int_equal(w->plan.answer.seen.seen, t % window != 0);
            assert_int_equal(world_do(w, &admit), HF_OK);
            assert_true(w->plan.answer.seen.seen);
        }
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest holds_tests[] = {
        cmocka_unit_test(random_operations),
    };
    const struct CMUnitTest claims_tests[] = {
        cmocka_unit_test(random_workers),
    };
    const struct CMUnitTest windows_tests[] = {
        cmocka_unit_test(windows_are_never_stretched_or_shrunk),
        cmocka_unit_test(retries_at_every_moment),
    };
    int failed = 0;
    seed = test_seed("holds", 20231117);
    failed += cmocka_run_group_tests(holds_tests, NULL, NULL);
    seed = test_seed("claims", 20231119);
    failed += cmocka_run_group_tests(claims_tests, NULL, NULL);
    seed = test_seed("windows", 20231116);
    failed += cmocka_run_group_tests(windows_tests, NULL, NULL);
    return failed;
}

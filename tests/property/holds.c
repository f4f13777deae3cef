/* Random operations on a few resources: capacity is never passed, the counts equal the states, each
 * hold ends once, and each answer is the one that the rules give over the records as they stand. */
#include "base/bytes.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define RUNS 40
#define STEPS 400
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
    struct hf_request request = { .action = HF_SET_RESOURCE,
                                  .set_resource = { hf_str(name), (uint32_t)test_below(&seed, 6),
                                                    (int)test_below(&seed, 3) } };
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
        for (int step = 0; step < STEPS; step++) {
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

int main(void)
{
    seed = test_seed("holds", 20231117);
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_operations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

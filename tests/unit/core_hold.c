/* Holds and resources: every rule, every refusal, every edge of a window. */
#include "core/hold.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define MINUTE INT64_C(60000)

static struct world *w;
static int keys;

static int setup(void **state)
{
    (void)state;
    w = world_new();
    keys = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_check(w);
    world_free(w);
    return 0;
}

static struct hf_bytes fresh_key(void)
{
    static char text[32];
    snprintf(text, sizeof text, "key-%d", ++keys);
    return hf_str(text);
}

static enum hf_status place(const char *resource, int64_t duration_ms, uint64_t fence)
{
    return world_do(w, &(struct hf_request){ .action = HF_PLACE_HOLD,
                                             .key = fresh_key(),
                                             .place_hold = { hf_str(resource), hf_str("guest"),
                                                             duration_ms, fence } });
}

static enum hf_status end(enum hf_action action, const char *id)
{
    return world_do(
        w, &(struct hf_request){ .action = action, .key = fresh_key(), .hold = { hf_str(id) } });
}

static enum hf_status set(const char *name, uint32_t capacity, int open)
{
    struct hf_request r = { .action = HF_SET_RESOURCE };
    r.set_resource.name = hf_str(name);
    r.set_resource.capacity = capacity;
    r.set_resource.open = open;
    return world_do(w, &r);
}

/* Place a hold of a minute on `resource`; its id. */
static const char *held(const char *resource)
{
    static char ids[4][HF_ID_SIZE];
    static int next;
    char *id = ids[next++ % 4];
    assert_int_equal(place(resource, MINUTE, 0), HF_OK);
    memcpy(id, w->plan.answer.hold.id, HF_ID_SIZE);
    return id;
}

static const struct hf_hold *hold_of(const char *id)
{
    const struct hf_row *row = world_row(w, HF_ROW_HOLD, "", id, "");
    assert_non_null(row);
    return &row->hold;
}

static const struct hf_resource *resource_of(const char *name)
{
    const struct hf_row *row = world_row(w, HF_ROW_RESOURCE, "", name, "");
    assert_non_null(row);
    return &row->resource;
}

static bool is(struct hf_bytes got, const char *want)
{
    return got.size == strlen(want) && memcmp(got.data, want, got.size) == 0;
}

static bool same(struct hf_bytes a, struct hf_bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static void assert_same_hold(const struct hf_hold *a, const struct hf_hold *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->reverses, b->reverses);
    assert_string_equal(a->reacquires, b->reacquires);
    assert_true(a->ordinal == b->ordinal && a->previous == b->previous && a->state == b->state);
    assert_true(same(a->resource, b->resource) && same(a->requester, b->requester));
    assert_true(a->tenant.size == b->tenant.size && a->placed_at == b->placed_at);
    assert_true(a->expires_at == b->expires_at && a->ended_at == b->ended_at);
}

/* ---- Placing ---- */

static void a_hold_is_placed(void **state)
{
    (void)state;
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
    const struct hf_hold *h = &w->plan.answer.hold;
    assert_int_equal(w->plan.answer.kind, HF_RECORD_HOLD);
    assert_true(w->plan.ordinal_used);
    assert_string_equal(h->id, "h0000000000000000000000001");
    assert_string_equal(h->reverses, "");
    assert_true(h->ordinal == 1 && h->previous == 0 && h->state == HF_HELD && h->ended_at == 0);
    assert_true(h->placed_at == WORLD_START && h->expires_at == WORLD_START + MINUTE);
    assert_true(is(h->resource, "room") && is(h->requester, "guest") && h->tenant.size == 0);
    /* The hold, then its resource. */
    assert_int_equal(w->plan.row_count, 2);
    assert_int_equal(w->plan.rows[0].kind, HF_ROW_HOLD);
    assert_same_hold(&w->plan.rows[0].hold, h);
    assert_int_equal(w->plan.rows[1].kind, HF_ROW_RESOURCE);
    const struct hf_resource *r = resource_of("room");
    assert_true(r->capacity == 1 && r->held == 1 && r->confirmed == 0 && r->open && r->newest == 1);
    assert_true(r->created_at == WORLD_START && r->fence == 0);
}

static void durations(void **state)
{
    (void)state;
    assert_int_equal(place("a", 0, 0), HF_INVALID_REQUEST);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(w->plan.remember, HF_REMEMBER_KEY); /* the key was fine, so it is remembered */
    assert_int_equal(place("a", -1, 0), HF_INVALID_REQUEST);
    assert_int_equal(place("a", HF_DURATION_MAX_MS + 1, 0), HF_INVALID_REQUEST);
    assert_int_equal(place("a", 1, 0), HF_OK);
    assert_int_equal(place("b", HF_DURATION_MAX_MS, 0), HF_OK);
    assert_true(w->plan.answer.hold.expires_at == WORLD_START + HF_DURATION_MAX_MS);
}

static void names(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "\xff" };
    for (size_t i = 0; i < 2; i++) {
        struct hf_request r = { .action = HF_PLACE_HOLD,
                                .key = fresh_key(),
                                .place_hold = { hf_str(bad[i]), hf_str("guest"), 1, 0 } };
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
        r.key = fresh_key();
        r.place_hold.resource = hf_str("room");
        r.place_hold.requester = hf_str(bad[i]);
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
    }
    assert_int_equal(world_count(w, HF_ROW_RESOURCE), 0);
}

static void a_full_resource_is_unavailable(void **state)
{
    (void)state;
    assert_int_equal(set("room", 2, HF_LEAVE), HF_OK);
    const char *first = held("room");
    const char *second = held("room");
    assert_true(hold_of(second)->previous == 1);
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(w->plan.answer.kind, HF_NO_RECORD);
    /* Confirmed units stay taken. */
    assert_int_equal(end(HF_CONFIRM, first), HF_OK);
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(end(HF_RELEASE, second), HF_OK);
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
    assert_true(w->plan.answer.hold.previous == 2);
}

static void a_closed_resource_is_unavailable(void **state)
{
    (void)state;
    assert_int_equal(set("room", 0, HF_SET_CLOSED), HF_OK);
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(set("room", 0, HF_SET_OPEN), HF_OK);
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
}

static void a_strict_registry_knows_only_what_was_set(void **state)
{
    (void)state;
    w->rules.registry_strict = true;
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(place("room", MINUTE, 5), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(world_count(w, HF_ROW_RESOURCE), 0);
    assert_int_equal(set("room", 1, HF_LEAVE), HF_OK);
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
}

static void fences_only_rise(void **state)
{
    (void)state;
    assert_int_equal(set("room", 9, HF_LEAVE), HF_OK);
    assert_int_equal(place("room", MINUTE, 5), HF_OK);
    assert_true(resource_of("room")->fence == 5);
    assert_int_equal(place("room", MINUTE, 5), HF_STALE_FENCE);
    assert_int_equal(place("room", MINUTE, 4), HF_STALE_FENCE);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(place("room", MINUTE, 0), HF_OK); /* without a fence, the highest stays */
    assert_true(resource_of("room")->fence == 5);
    assert_int_equal(place("room", MINUTE, 6), HF_OK);
    assert_true(resource_of("room")->fence == 6);
    /* A refused fence is not taken, and a stale one is told before a closed or full resource. */
    assert_int_equal(set("room", 0, HF_SET_CLOSED), HF_OK);
    assert_int_equal(place("room", MINUTE, 9), HF_RESOURCE_UNAVAILABLE);
    assert_true(resource_of("room")->fence == 6);
    assert_int_equal(place("room", MINUTE, 6), HF_STALE_FENCE);
}

static void an_overdue_hold_makes_way(void **state)
{
    (void)state;
    const char *first = held("room");
    w->now += MINUTE - 1;
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(hold_of(first)->state, HF_HELD);
    w->now += 1;
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
    assert_int_equal(w->plan.row_count, 3); /* expired, placed, resource */
    assert_string_equal(w->plan.rows[0].hold.id, first);
    assert_string_equal(w->plan.rows[1].hold.id, w->plan.answer.hold.id);
    assert_int_equal(w->plan.rows[2].kind, HF_ROW_RESOURCE);
    assert_int_equal(hold_of(first)->state, HF_EXPIRED);
    assert_true(hold_of(first)->ended_at == w->now);
    assert_true(resource_of("room")->held == 1);
}

static void an_overdue_hold_ends_also_when_the_answer_is_no(void **state)
{
    (void)state;
    assert_int_equal(place("room", MINUTE, 7), HF_OK);
    char id[HF_ID_SIZE];
    memcpy(id, w->plan.answer.hold.id, sizeof id);
    w->now += MINUTE;
    assert_int_equal(place("room", MINUTE, 7), HF_STALE_FENCE);
    assert_int_equal(w->plan.row_count, 2);
    assert_int_equal(w->plan.remember, HF_REMEMBER_KEY);
    assert_int_equal(hold_of(id)->state, HF_EXPIRED);
    assert_true(resource_of("room")->held == 0 && resource_of("room")->fence == 7);
    const char *next = held("room");
    assert_int_equal(set("room", 0, HF_SET_CLOSED), HF_OK);
    w->now += MINUTE;
    assert_int_equal(place("room", MINUTE, 0), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(hold_of(next)->state, HF_EXPIRED);
    /* A malformed request looks at nothing. */
    assert_int_equal(set("room", 0, HF_SET_OPEN), HF_OK);
    next = held("room");
    w->now += MINUTE;
    assert_int_equal(place("room", 0, 0), HF_INVALID_REQUEST);
    assert_int_equal(hold_of(next)->state, HF_HELD);
}

static void many_overdue_holds_leave_eight_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(set("room", 20, HF_LEAVE), HF_OK);
    for (int i = 0; i < 20; i++)
        held("room");
    w->now += MINUTE;
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
    assert_int_equal(w->plan.row_count, HF_OVERDUE_MAX + 2);
    assert_true(resource_of("room")->held == 20 - HF_OVERDUE_MAX + 1);
}

static void what_cannot_be_read_is_a_storage_failure(void **state)
{
    (void)state;
    const char *id = held("room");
    const enum world_lookup all[] = { WORLD_RESOURCE, WORLD_OVERDUE };
    for (size_t i = 0; i < 2; i++) {
        w->unreadable[all[i]] = true;
        assert_int_equal(place("room", MINUTE, 0), HF_STORAGE_FAILURE);
        assert_int_equal(w->plan.remember, HF_REMEMBER_NOT);
        assert_int_equal(w->plan.row_count, 0);
        w->unreadable[all[i]] = false;
    }
    w->unreadable[WORLD_OVERDUE] = true; /* not asked where nothing is held */
    assert_int_equal(place("other", MINUTE, 0), HF_OK);
    w->unreadable[WORLD_OVERDUE] = false;
    const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE,
                                    HF_CONFIRM_LATE };
    w->unreadable[WORLD_HOLD] = true;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(end(ends[i], id), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_HOLD] = false;
    w->unreadable[WORLD_RESOURCE] = true;
    assert_int_equal(end(HF_CONFIRM, id), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_RESOURCE] = false;
    assert_int_equal(end(HF_CONFIRM, id), HF_OK);
    w->unreadable[WORLD_RESOURCE] = true;
    assert_int_equal(end(HF_REVERSE, id), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_RESOURCE] = false;
    w->unreadable[WORLD_SUCCESSOR] = true;
    assert_int_equal(end(HF_REVERSE, id), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_SUCCESSOR] = false;
    assert_int_equal(end(HF_REVERSE, id), HF_OK);
    w->unreadable[WORLD_RESOURCE] = true;
    assert_int_equal(set("room", 3, HF_LEAVE), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_RESOURCE] = false;
}

/* ---- Ending ---- */

static void confirm_until_just_before_the_end(void **state)
{
    (void)state;
    assert_int_equal(set("room", 3, HF_LEAVE), HF_OK);
    const char *early = held("room");
    const char *just = held("room");
    const char *late = held("room");
    assert_int_equal(end(HF_CONFIRM, early), HF_OK);
    assert_true(hold_of(early)->ended_at == WORLD_START);
    w->now += MINUTE - 1;
    assert_int_equal(end(HF_CONFIRM, just), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_HOLD);
    assert_int_equal(w->plan.answer.hold.state, HF_CONFIRMED);
    assert_int_equal(w->plan.row_count, 2);
    assert_same_hold(&w->plan.rows[0].hold, &w->plan.answer.hold);
    assert_true(hold_of(just)->ended_at == w->now);
    w->now += 1;
    assert_int_equal(end(HF_CONFIRM, late), HF_WINDOW_ELAPSED);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(hold_of(late)->state, HF_HELD);
    assert_true(resource_of("room")->held == 1 && resource_of("room")->confirmed == 2);
}

static void expire_from_the_end_on(void **state)
{
    (void)state;
    const char *id = held("room");
    assert_int_equal(end(HF_EXPIRE, id), HF_WINDOW_NOT_ELAPSED);
    w->now += MINUTE - 1;
    assert_int_equal(end(HF_EXPIRE, id), HF_WINDOW_NOT_ELAPSED);
    assert_int_equal(hold_of(id)->state, HF_HELD);
    w->now += 1;
    assert_int_equal(end(HF_EXPIRE, id), HF_OK);
    assert_int_equal(hold_of(id)->state, HF_EXPIRED);
    assert_true(hold_of(id)->ended_at == w->now);
    assert_true(resource_of("room")->held == 0 && resource_of("room")->confirmed == 0);
}

static void release_at_any_time(void **state)
{
    (void)state;
    assert_int_equal(set("room", 2, HF_LEAVE), HF_OK);
    const char *early = held("room");
    const char *late = held("room");
    assert_int_equal(end(HF_RELEASE, early), HF_OK);
    w->now += 100 * MINUTE;
    assert_int_equal(end(HF_RELEASE, late), HF_OK);
    assert_int_equal(hold_of(late)->state, HF_RELEASED);
    assert_true(hold_of(late)->ended_at == w->now);
    assert_true(resource_of("room")->held == 0);
}

static void ends_absorb(void **state)
{
    (void)state;
    const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE };
    const enum hf_hold_state states[] = { HF_CONFIRMED, HF_RELEASED, HF_EXPIRED };
    assert_int_equal(set("room", 3, HF_LEAVE), HF_OK);
    for (size_t i = 0; i < 3; i++) {
        const char *id = held("room");
        if (ends[i] == HF_EXPIRE)
            w->now += MINUTE;
        assert_int_equal(end(ends[i], id), HF_OK);
        hf_time ended_at = hold_of(id)->ended_at;
        w->now += 5 * MINUTE;
        for (size_t j = 0; j < 3; j++) { /* held is checked before the window */
            assert_int_equal(end(ends[j], id), HF_NOT_HELD);
            assert_int_equal(w->plan.row_count, 0);
        }
        assert_int_equal(hold_of(id)->state, states[i]);
        assert_true(hold_of(id)->ended_at == ended_at);
    }
}

static void unknown_ids(void **state)
{
    (void)state;
    const char *id = held("room");
    const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE,
                                    HF_CONFIRM_LATE };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(end(ends[i], "h0000000000000000000000009"), HF_NOT_KNOWN);
        assert_int_equal(end(ends[i], ""), HF_NOT_KNOWN);
        /* A hold of another tenant is not there. */
        struct hf_request r = {
            .action = ends[i], .tenant = hf_str("other"), .key = fresh_key(), .hold = { hf_str(id) }
        };
        assert_int_equal(world_do(w, &r), HF_NOT_KNOWN);
    }
}

/* ---- Giving back ---- */

static void a_confirmed_unit_is_given_back(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += 1000;
    assert_int_equal(end(HF_CONFIRM, id), HF_OK);
    struct hf_hold before = *hold_of(id);
    w->now += 500 * MINUTE;
    assert_int_equal(end(HF_REVERSE, id), HF_OK);
    const struct hf_hold *r = &w->plan.answer.hold;
    assert_true(w->plan.ordinal_used);
    assert_string_equal(r->id, "h0000000000000000000000002");
    assert_string_equal(r->reverses, id);
    assert_true(r->ordinal == 2 && r->previous == 1 && r->state == HF_RELEASED);
    assert_true(r->placed_at == w->now && r->ended_at == w->now);
    assert_true(r->expires_at == w->now + MINUTE);
    assert_true(is(r->resource, "room") && is(r->requester, "guest"));
    assert_int_equal(w->plan.row_count, 3);
    assert_same_hold(&w->plan.rows[0].hold, r);
    assert_int_equal(w->plan.rows[1].kind, HF_ROW_RESOURCE);
    assert_int_equal(w->plan.rows[2].kind, HF_ROW_SUCCESSOR);
    assert_string_equal(w->plan.rows[2].successor.original, id);
    assert_string_equal(w->plan.rows[2].successor.successor, r->id);
    assert_same_hold(hold_of(id), &before); /* the original stays as it is */
    assert_true(resource_of("room")->confirmed == 0 && resource_of("room")->newest == 2);
    assert_int_equal(place("room", MINUTE, 0), HF_OK);
    assert_true(w->plan.answer.hold.previous == 2);
}

static void what_is_not_confirmed_cannot_be_given_back(void **state)
{
    (void)state;
    const char *id = held("room");
    assert_int_equal(end(HF_REVERSE, id), HF_NOT_HELD);
    assert_int_equal(end(HF_CONFIRM, id), HF_OK);
    assert_int_equal(end(HF_REVERSE, id), HF_OK);
    char reversal[HF_ID_SIZE];
    memcpy(reversal, w->plan.answer.hold.id, sizeof reversal);
    assert_int_equal(end(HF_REVERSE, id), HF_NOT_HELD); /* before */
    assert_int_equal(end(HF_REVERSE, reversal), HF_NOT_HELD);
    assert_int_equal(end(HF_CONFIRM, reversal), HF_NOT_HELD);
    id = held("room");
    assert_int_equal(end(HF_RELEASE, id), HF_OK);
    assert_int_equal(end(HF_REVERSE, id), HF_NOT_HELD);
}

/* ---- The late payment ---- */

static void a_late_confirm_in_time_is_a_confirm(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE - 1;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_string_equal(w->plan.answer.hold.id, id);
    assert_string_equal(w->plan.answer.hold.reacquires, "");
    assert_int_equal(hold_of(id)->state, HF_CONFIRMED);
    assert_int_equal(w->plan.row_count, 2);
    assert_false(w->plan.ordinal_used);
}

/* The answer of the last call: a hold in the place of `id`, confirmed at once. */
static void assert_reacquired(const char *id)
{
    const struct hf_hold *old = hold_of(id), *h = &w->plan.answer.hold;
    assert_true(w->plan.ordinal_used);
    assert_string_not_equal(h->id, id);
    assert_string_equal(h->reacquires, id);
    assert_string_equal(h->reverses, "");
    assert_true(h->state == HF_CONFIRMED && h->placed_at == w->now && h->ended_at == w->now);
    assert_true(h->expires_at == w->now + MINUTE);
    assert_true(same(h->resource, old->resource) && same(h->requester, old->requester));
    assert_int_equal(old->state, HF_EXPIRED);
}

static void an_expired_hold_is_reacquired_once(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE;
    assert_int_equal(end(HF_EXPIRE, id), HF_OK);
    struct hf_hold before = *hold_of(id);
    w->now += 7;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_reacquired(id);
    assert_same_hold(hold_of(id), &before);
    assert_int_equal(w->plan.row_count, 3);
    assert_int_equal(w->plan.rows[2].kind, HF_ROW_SUCCESSOR);
    assert_string_equal(w->plan.rows[2].successor.original, id);
    assert_true(resource_of("room")->held == 0 && resource_of("room")->confirmed == 1);
    assert_int_equal(set("room", 5, HF_LEAVE), HF_OK);
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_NOT_HELD); /* with units free */
    assert_false(w->plan.answer.refund);
    assert_int_equal(w->plan.row_count, 0);
    w->unreadable[WORLD_SUCCESSOR] = true;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_STORAGE_FAILURE);
}

static void an_overdue_hold_expires_and_is_reacquired(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_reacquired(id);
    assert_int_equal(w->plan.row_count, 4);
    assert_true(w->plan.rows[0].kind == HF_ROW_HOLD && w->plan.rows[0].hold.state == HF_EXPIRED);
    assert_true(resource_of("room")->held == 0 && resource_of("room")->confirmed == 1);
}

static void a_reacquired_hold_is_given_back_like_any_other(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    char late[HF_ID_SIZE];
    memcpy(late, w->plan.answer.hold.id, sizeof late);
    assert_int_equal(end(HF_REVERSE, id), HF_NOT_HELD);
    assert_int_equal(end(HF_REVERSE, late), HF_OK);
    assert_string_equal(w->plan.answer.hold.reverses, late);
    assert_string_equal(w->plan.answer.hold.reacquires, "");
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_NOT_HELD);
    assert_true(resource_of("room")->confirmed == 0);
}

/* Another hold has the unit, and is overdue too. */
static void overdue_holds_make_way_for_a_late_confirm(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE;
    assert_int_equal(end(HF_EXPIRE, id), HF_OK);
    const char *other = held("room");
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_WINDOW_ELAPSED);
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_reacquired(id);
    assert_int_equal(hold_of(other)->state, HF_EXPIRED);
}

/* The late hold is the newest of many overdue ones: it expires although only eight others do. */
static void a_late_hold_behind_many_overdue_ones(void **state)
{
    (void)state;
    assert_int_equal(set("room", 20, HF_LEAVE), HF_OK);
    for (int i = 0; i < 19; i++)
        held("room");
    w->now += 1;
    const char *id = held("room");
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_reacquired(id);
    assert_int_equal(w->plan.row_count, 1 + HF_OVERDUE_MAX + 3);
    assert_true(resource_of("room")->held == 20 - 1 - HF_OVERDUE_MAX);
}

static void without_a_free_unit_the_payment_goes_back(void **state)
{
    (void)state;
    const char *id = held("room");
    w->now += MINUTE;
    const char *other = held("room"); /* it expires the first */
    assert_int_equal(end(HF_CONFIRM, other), HF_OK);
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_WINDOW_ELAPSED);
    assert_true(w->plan.answer.refund && w->plan.answer.kind == HF_NO_RECORD);
    assert_int_equal(w->plan.row_count, 0);
    assert_false(w->plan.ordinal_used);
    assert_int_equal(end(HF_CONFIRM, id), HF_NOT_HELD);
    assert_false(w->plan.answer.refund);

    id = held("closed");
    assert_int_equal(set("closed", 0, HF_SET_CLOSED), HF_OK);
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM, id), HF_WINDOW_ELAPSED);
    assert_false(w->plan.answer.refund);
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_WINDOW_ELAPSED);
    assert_true(w->plan.answer.refund);
    assert_int_equal(hold_of(id)->state, HF_EXPIRED); /* it was overdue */
    assert_int_equal(w->plan.row_count, 2);
}

static void what_ended_otherwise_is_not_reacquired(void **state)
{
    (void)state;
    assert_int_equal(set("room", 9, HF_LEAVE), HF_OK);
    const char *id = held("room");
    assert_int_equal(end(HF_RELEASE, id), HF_OK);
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_NOT_HELD);
    id = held("room");
    assert_int_equal(end(HF_CONFIRM, id), HF_OK);
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_NOT_HELD);
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_NOT_HELD);
}

static void what_a_late_confirm_cannot_read(void **state)
{
    (void)state;
    const char *id = held("room");
    held("other");
    assert_int_equal(set("room", 2, HF_LEAVE), HF_OK);
    held("room");
    w->now += MINUTE;
    const enum world_lookup all[] = { WORLD_RESOURCE, WORLD_OVERDUE };
    for (size_t i = 0; i < 2; i++) {
        w->unreadable[all[i]] = true;
        assert_int_equal(end(HF_CONFIRM_LATE, id), HF_STORAGE_FAILURE);
        assert_int_equal(w->plan.row_count, 0);
        w->unreadable[all[i]] = false;
    }
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
}

/* At a limit, it ends a hold that is in time like a confirm; a new record needs the reserve. */
static void a_late_confirm_while_writes_are_refused(void **state)
{
    (void)state;
    const char *id = held("room"), *other = held("other");
    w->refuse_writes = true;
    w->may_end = true;
    assert_int_equal(end(HF_CONFIRM_LATE, id), HF_OK);
    assert_int_equal(hold_of(id)->state, HF_CONFIRMED);
    w->now += MINUTE;
    assert_int_equal(end(HF_CONFIRM_LATE, other), HF_STORAGE_FAILURE);
    assert_int_equal(w->plan.row_count, 0);
    w->has_reserve = true;
    assert_int_equal(end(HF_CONFIRM_LATE, other), HF_OK);
    assert_reacquired(other);
}

/* ---- Resources ---- */

static void resources_are_set(void **state)
{
    (void)state;
    assert_int_equal(set("room", 0, HF_LEAVE), HF_OK); /* new: one unit, open */
    assert_int_equal(w->plan.answer.kind, HF_RECORD_RESOURCE);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(resource_of("room")->capacity == 1 && resource_of("room")->open);
    w->now += 5;
    assert_int_equal(set("room", 0, HF_LEAVE), HF_OK); /* nothing changes, nothing is written */
    assert_int_equal(w->plan.row_count, 0);
    assert_true(w->plan.answer.resource.capacity == 1);
    assert_int_equal(set("room", 1, HF_SET_OPEN), HF_OK);
    assert_int_equal(w->plan.row_count, 0);
    assert_int_equal(set("room", 5, HF_LEAVE), HF_OK);
    assert_int_equal(w->plan.row_count, 1);
    assert_int_equal(set("room", 0, HF_SET_CLOSED), HF_OK);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(resource_of("room")->capacity == 5 && !resource_of("room")->open);
    assert_true(resource_of("room")->created_at == WORLD_START);
    assert_int_equal(set("closed", HF_CAPACITY_MAX, HF_SET_CLOSED), HF_OK);
    assert_true(resource_of("closed")->capacity == HF_CAPACITY_MAX && !resource_of("closed")->open);
}

static void resources_refuse_what_is_malformed(void **state)
{
    (void)state;
    assert_int_equal(set("", 1, HF_LEAVE), HF_INVALID_REQUEST);
    assert_int_equal(set("room", HF_CAPACITY_MAX + 1, HF_LEAVE), HF_INVALID_REQUEST);
    assert_int_equal(set("room", 1, 3), HF_INVALID_REQUEST);
    assert_int_equal(set("room", 1, -1), HF_INVALID_REQUEST);
    assert_int_equal(world_count(w, HF_ROW_RESOURCE), 0);
}

static void capacity_never_falls_below_what_is_taken(void **state)
{
    (void)state;
    assert_int_equal(set("room", 3, HF_LEAVE), HF_OK);
    const char *id = held("room");
    held("room");
    assert_int_equal(end(HF_CONFIRM, id), HF_OK);
    assert_int_equal(set("room", 1, HF_LEAVE), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(w->plan.row_count, 0);
    assert_true(resource_of("room")->capacity == 3);
    assert_int_equal(set("room", 2, HF_LEAVE), HF_OK);
}

static void a_store_that_refuses_writes(void **state)
{
    (void)state;
    const char *id = held("room");
    w->refuse_writes = true;
    assert_int_equal(place("other", MINUTE, 0), HF_STORAGE_FAILURE);
    assert_int_equal(end(HF_CONFIRM, id), HF_STORAGE_FAILURE);
    assert_int_equal(set("room", 2, HF_LEAVE), HF_STORAGE_FAILURE);
    assert_int_equal(set("room", 0, HF_SET_CLOSED), HF_STORAGE_FAILURE);
    assert_int_equal(set("other", 1, HF_LEAVE), HF_STORAGE_FAILURE);
    assert_int_equal(set("room", 1, HF_SET_OPEN), HF_OK); /* as it is */
    assert_int_equal(w->plan.answer.kind, HF_RECORD_RESOURCE);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hold_is_placed),
        TEST(durations),
        TEST(names),
        TEST(a_full_resource_is_unavailable),
        TEST(a_closed_resource_is_unavailable),
        TEST(a_strict_registry_knows_only_what_was_set),
        TEST(fences_only_rise),
        TEST(an_overdue_hold_makes_way),
        TEST(an_overdue_hold_ends_also_when_the_answer_is_no),
        TEST(many_overdue_holds_leave_eight_at_a_time),
        TEST(what_cannot_be_read_is_a_storage_failure),
        TEST(confirm_until_just_before_the_end),
        TEST(expire_from_the_end_on),
        TEST(release_at_any_time),
        TEST(ends_absorb),
        TEST(unknown_ids),
        TEST(a_confirmed_unit_is_given_back),
        TEST(what_is_not_confirmed_cannot_be_given_back),
        TEST(a_late_confirm_in_time_is_a_confirm),
        TEST(a_late_confirm_while_writes_are_refused),
        TEST(an_expired_hold_is_reacquired_once),
        TEST(an_overdue_hold_expires_and_is_reacquired),
        TEST(a_reacquired_hold_is_given_back_like_any_other),
        TEST(overdue_holds_make_way_for_a_late_confirm),
        TEST(a_late_hold_behind_many_overdue_ones),
        TEST(without_a_free_unit_the_payment_goes_back),
        TEST(what_ended_otherwise_is_not_reacquired),
        TEST(what_a_late_confirm_cannot_read),
        TEST(resources_are_set),
        TEST(resources_refuse_what_is_malformed),
        TEST(capacity_never_falls_below_what_is_taken),
        TEST(a_store_that_refuses_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

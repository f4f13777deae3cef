/* The judge minds what breaks the rules of holds: PC1 to PC11. */
#include "judge/tests/told.h"

/* ---- Well told ---- */

static void a_life_of_holds(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = refused(&a, "b", HF_RESOURCE_UNAVAILABLE);
    good(&op);
    now += DURATION - 1;
    op = finish("c", HF_CONFIRM, &a);
    good(&op);
    op = reverse("d", &a, 2, 1);
    good(&op);
    struct op b = place("e", "room", 3, 2);
    good(&b);
    op = finish("f", HF_RELEASE, &b);
    good(&op);
    b = place("g", "room", 4, 3);
    good(&b);
    now += DURATION; /* overdue: the next one takes its place */
    struct op c = place("h", "room", 5, 4);
    good(&c);
    op = get_hold(&b);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    good(&op);
}

static void the_sweeper_may_have_had_it_or_not(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0), op;
    good(&a);
    good(&b);
    now += DURATION + 50;
    op = finish("c", HF_RELEASE, &a); /* it has not */
    good(&op);
    op = refused(&op, "d", HF_NOT_HELD);
    op.q.hold.id = hf_str(b.r.answer.hold.id); /* and here it has */
    good(&op);
    op = get_hold(&b);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now - 20;
    good(&op);
}

/* ---- Badly told ---- */

static void two_holds_on_one_unit(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "room", 2, 1);
    good(&a);
    bad(&b, "PC11");
}

static void a_free_unit_refused(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a = refused(&a, "a", HF_RESOURCE_UNAVAILABLE);
    bad(&a, "a unit is free");
}

static void a_confirmed_unit_is_given_away(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_CONFIRM, &a);
    good(&op);
    now += 10 * DURATION;
    op = place("c", "room", 2, 1);
    bad(&op, "PC11");
}

static void an_overdue_hold_blocks(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION;
    op = refused(&a, "b", HF_RESOURCE_UNAVAILABLE);
    bad(&op, "a unit is free");
}

static void an_overdue_hold_makes_way_and_is_held_all_the_same(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION;
    op = place("b", "room", 2, 1);
    good(&op);
    op = finish("c", HF_RELEASE, &a);
    bad(&op, "PC11");
}

static void a_confirm_at_the_very_end(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION;
    op = finish("b", HF_CONFIRM, &a);
    bad(&op, "PC7");
}

static void a_confirm_refused_too_early(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION - 1;
    op = finish("b", HF_CONFIRM, &a);
    op = refused(&op, "b", HF_WINDOW_ELAPSED);
    bad(&op, "PC7");
}

static void an_expire_before_the_end(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION - 1;
    op = finish("b", HF_EXPIRE, &a);
    bad(&op, "PC8");
}

static void a_sweep_before_the_end(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION - 1;
    op = get_hold(&a);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    bad(&op, "PC2");
}

static void an_expiry_dated_back(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += 2 * DURATION;
    op = get_hold(&a);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = a.r.answer.hold.expires_at - 1;
    bad(&op, "PC8");
}

static void an_expiry_before_it_was_seen_held(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += 2 * DURATION;
    op = get_hold(&a); /* overdue, and still held */
    good(&op);
    op.r.now = ++now;
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now - 2;
    bad(&op, "PC8");
}

static void an_expired_hold_comes_back(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += DURATION;
    op = get_hold(&a);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    good(&op);
    op = finish("b", HF_RELEASE, &a);
    bad(&op, "PC3");
}

static void two_ends(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_RELEASE, &a);
    good(&op);
    op = finish("c", HF_CONFIRM, &a);
    bad(&op, "PC3");
}

static void an_end_that_did_not_last(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_CONFIRM, &a);
    good(&op);
    op = get_hold(&a);
    bad(&op, "PC3");
}

static void an_id_used_twice(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0);
    good(&a);
    memcpy(b.r.answer.hold.id, a.r.answer.hold.id, HF_ID_SIZE);
    bad(&b, "PC9");
}

static void an_ordinal_skipped(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 3, 0);
    good(&a);
    bad(&b, "PC10");
}

/* Where many write at a time, numbers are left out and come in any order; not on one resource. */
static void ordinals_of_a_database(void **state)
{
    (void)state;
    rules.many = true;
    judge_opened(j, &rules);
    struct op a = place("a", "room", 5, 0), b = place("b", "bed", 3, 0),
              c = place("c", "bed", 9, 3), d = place("d", "bed", 8, 9),
              wide = set_resource("bed", 3);
    good(&wide);
    good(&a);
    good(&b);
    good(&c);
    bad(&d, "PC10");
}

static void a_wrong_hold_before_it(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 1);
    good(&a);
    bad(&b, "PC6");
}

static void a_hold_that_lasts_too_long(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.r.answer.hold.expires_at++;
    bad(&a, "PC6");
}

static void a_hold_for_somebody_else(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.r.answer.hold.requester = hf_str("other");
    bad(&a, "PC6");
}

static void a_hold_changes_hands(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_hold(&a);
    op.r.answer.hold.requester = hf_str("other");
    bad(&op, "PC5");
}

static void a_hold_is_gone(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_hold(&a);
    op.st = op.r.answer.status = HF_NOT_KNOWN;
    op.r.answer.kind = HF_NO_RECORD;
    bad(&op, "PC10");
}

static void another_tenant_sees_it(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_hold(&a);
    op.q.tenant = hf_str("other");
    bad(&op, "no such hold");
}

static void a_malformed_hold_is_placed(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.q.place_hold.duration_ms = 0;
    a.r.answer.hold.expires_at = now;
    bad(&a, "PC6");
}

static void given_back_twice(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_CONFIRM, &a);
    good(&op);
    op = reverse("c", &a, 2, 1);
    good(&op);
    op = reverse("d", &a, 3, 2);
    bad(&op, "once");
}

static void given_back_though_not_confirmed(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = reverse("b", &a, 2, 1);
    bad(&op, "only what is confirmed");
}

static void a_strict_registry_takes_anything(void **state)
{
    (void)state;
    rules.strict = true;
    judge_opened(j, &rules);
    struct op a = place("a", "room", 1, 0);
    bad(&a, "no unit");
}

static void a_closed_resource_is_given_away(void **state)
{
    (void)state;
    struct op op = set_resource("room", 1);
    op.q.set_resource.open = HF_SET_CLOSED;
    op.r.answer.resource.open = false;
    good(&op);
    op = place("a", "room", 1, 0);
    bad(&op, "no unit");
}

static void a_stale_fence_is_taken(void **state)
{
    (void)state;
    struct op op = set_resource("room", 5), a = place("a", "room", 1, 0),
              b = place("b", "room", 2, 1);
    good(&op);
    a.q.place_hold.fence = b.q.place_hold.fence = 7; /* an equal one is stale too */
    good(&a);
    bad(&b, "fence");
}

static void a_higher_fence_is_refused(void **state)
{
    (void)state;
    struct op op = set_resource("room", 5), a = place("a", "room", 1, 0), b;
    good(&op);
    a.q.place_hold.fence = 7;
    good(&a);
    b = refused(&a, "b", HF_STALE_FENCE);
    b.q.place_hold.fence = 8;
    bad(&b, "a unit is free");
}

static void a_capacity_below_what_is_taken(void **state)
{
    (void)state;
    struct op op = set_resource("room", 2), a = place("a", "room", 1, 0),
              b = place("b", "room", 2, 1);
    good(&op);
    good(&a);
    good(&b);
    op = set_resource("room", 1);
    op.r.answer.resource.held = 2;
    op.r.answer.resource.newest = 2;
    bad(&op, "PC11");
}

static void a_wrong_count_of_units(void **state)
{
    (void)state;
    struct op op = set_resource("room", 2), a = place("a", "room", 1, 0);
    good(&op);
    good(&a);
    op.q.action = HF_GET_RESOURCE;
    op.q.get.name = hf_str("room");
    op.r.answer.resource.newest = 1;
    op.r.answer.resource.held = 0;
    bad(&op, "count of held");
}

static void time_past_the_wall_clock(void **state)
{
    (void)state;
    wall = START - 1;
    struct op a = place("a", "room", 1, 0);
    bad(&a, "past the wall clock");
}

static void time_runs_back(void **state)
{
    (void)state;
    wall = now;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    now--;
    struct op b = place("b", "bed", 2, 0);
    bad(&b, "ran back");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(a_life_of_holds),
        TOLD(the_sweeper_may_have_had_it_or_not),
        TOLD(two_holds_on_one_unit),
        TOLD(a_free_unit_refused),
        TOLD(a_confirmed_unit_is_given_away),
        TOLD(an_overdue_hold_blocks),
        TOLD(an_overdue_hold_makes_way_and_is_held_all_the_same),
        TOLD(a_confirm_at_the_very_end),
        TOLD(a_confirm_refused_too_early),
        TOLD(an_expire_before_the_end),
        TOLD(a_sweep_before_the_end),
        TOLD(an_expiry_dated_back),
        TOLD(an_expiry_before_it_was_seen_held),
        TOLD(an_expired_hold_comes_back),
        TOLD(two_ends),
        TOLD(an_end_that_did_not_last),
        TOLD(an_id_used_twice),
        TOLD(an_ordinal_skipped),
        TOLD(ordinals_of_a_database),
        TOLD(a_wrong_hold_before_it),
        TOLD(a_hold_that_lasts_too_long),
        TOLD(a_hold_for_somebody_else),
        TOLD(a_hold_changes_hands),
        TOLD(a_hold_is_gone),
        TOLD(another_tenant_sees_it),
        TOLD(a_malformed_hold_is_placed),
        TOLD(given_back_twice),
        TOLD(given_back_though_not_confirmed),
        TOLD(a_strict_registry_takes_anything),
        TOLD(a_closed_resource_is_given_away),
        TOLD(a_stale_fence_is_taken),
        TOLD(a_higher_fence_is_refused),
        TOLD(a_capacity_below_what_is_taken),
        TOLD(a_wrong_count_of_units),
        TOLD(time_past_the_wall_clock),
        TOLD(time_runs_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The judge minds what a crash must not take, and what it must not leave; and it follows what is
 * left open. */
#include "judge/model.h"
#include "judge/tests/told.h"

static struct hf_hold holds[8];
static struct hf_resource resources[8];
static struct hf_guard guards[2];
static struct hf_entry entries[2];
static struct hf_outbox outbox[4];
static struct judge_view view;

static void see_nothing(void)
{
    view = (struct judge_view){ .now = now,
                                .holds = holds,
                                .resources = resources,
                                .guards = guards,
                                .entries = entries,
                                .outbox = outbox };
}

/* A hold and its resource are seen. */
static void see(const struct op *placed)
{
    const struct hf_hold *h = &placed->r.answer.hold;
    holds[view.hold_count++] = *h;
    resources[view.resource_count++] = (struct hf_resource){ .tenant = h->tenant,
                                                             .name = h->resource,
                                                             .capacity = 1,
                                                             .held = 1,
                                                             .open = true,
                                                             .newest = h->ordinal,
                                                             .created_at = h->placed_at };
}

static void recover(void)
{
    view.now = now;
    judge_recovered(j, &rules, &view);
}

static void crash(void)
{
    judge_crashed(j);
    recover();
}

/* ---- Well told ---- */

static void what_was_not_shown_may_be_lost(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0);
    good(&a);
    decide(&b);
    see_nothing();
    see(&a);
    crash();
    agrees();
    assert_int_equal(judge_counted(j).lost, 1);
    b = place("b", "bed", 2, 0); /* once more, for the first time */
    good(&b);
}

static void what_was_not_shown_may_be_there(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0);
    decide(&a);
    decide(&b);
    see_nothing();
    see(&a);
    see(&b);
    crash();
    agrees();
    assert_int_equal(judge_counted(j).survived, 2);
    struct op op = again(&b);
    good(&op);
}

static void the_beginning_may_be_there(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0), op;
    decide(&a);
    decide(&b);
    see_nothing();
    see(&a);
    crash();
    agrees();
    op = again(&a);
    good(&op);
    b = place("b", "bed", 2, 0);
    good(&b);
}

/* Registers are in no view: the first read settles how many of the writes there were. */
static void a_later_answer_settles_it(void **state)
{
    for (uint64_t lasted = 0; lasted <= 3; lasted++) {
        struct op op[3];
        told_teardown(state);
        told_setup(state);
        for (uint64_t i = 0; i < 3; i++) {
            static const char *const keys[] = { "a", "b", "c" };
            op[i] = write_register(keys[i], "r", keys[i], i + 1);
            decide(&op[i]);
        }
        see_nothing();
        crash();
        agrees();
        struct op get = get_register(&op[lasted ? lasted - 1 : 0]);
        if (lasted == 0) {
            get.st = get.r.answer.status = HF_NOT_KNOWN;
            get.r.answer.kind = HF_NO_RECORD;
        }
        good(&get);
        for (uint64_t i = 0; i < 3; i++) {
            struct op retry = again(&op[i]);
            if (i < lasted)
                good(&retry);
        }
        if (lasted < 3) { /* what did not last is new */
            struct op next = write_register("c", "r", "c", lasted + 1);
            good(&next);
        }
    }
}

static void a_second_crash_before_it_is_settled(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), b = write_register("b", "s", "two", 1), op;
    decide(&a);
    see_nothing();
    crash();
    decide(&b);
    crash();
    agrees();
    op = again(&b); /* the second lasted */
    good(&op);
    op = write_register("a", "r", "one", 1); /* and the first did not */
    good(&op);
}

static void a_write_over_what_is_in_doubt(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), b, op;
    decide(&a);
    see_nothing();
    crash();
    b = write_register("b", "r", "two", 2); /* so the first one was there */
    good(&b);
    op = again(&a);
    good(&op);
}

static void a_sweep_in_doubt(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    now += 2 * DURATION;
    struct op op = get_hold(&a);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    decide(&op); /* nobody was shown it */
    see_nothing();
    see(&a);
    crash(); /* it is held again */
    agrees();
}

static void a_read_of_something_else_promises_nothing(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0), op;
    good(&a);
    decide(&b);
    op = get_hold(&a);
    good(&op);
    see_nothing();
    see(&a);
    crash();
    agrees();
}

static void a_volatile_guard_forgets(void **state)
{
    (void)state;
    struct op op = set_guard("g", 1000);
    op.q.set_guard.volatile_only = true;
    op.r.answer.guard.durable = false;
    good(&op);
    guards[0] = op.r.answer.guard;
    op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    see_nothing();
    view.guard_count = 1;
    crash();
    agrees();
    good(&op);
}

static void a_volatile_guard_forgets_what_it_may_have_missed(void **state)
{
    (void)state;
    struct op op = set_guard("g", 1000);
    op.q.set_guard.volatile_only = true;
    op.r.answer.guard.durable = false;
    good(&op);
    guards[0] = op.r.answer.guard;
    op = ask(HF_RECORD, "g", "x", NULL);
    op.weather = JUDGE_NO_ROOM;
    good(&op);
    op = ask(HF_CHECK, "g", "x", NULL); /* it had not */
    seen(&op, now, now + 1000, NULL);
    good(&op);
    struct op a =
        place("a", "room", 1, 0); /* with which all before it is on disk, but for the entry */
    good(&a);
    see_nothing();
    see(&a);
    view.guard_count = 1;
    crash();
    agrees();
}

/* A record in doubt under a guard that was durable, and one of the same identity under the guard as
 * it is now. */
static void a_volatile_record_over_one_in_doubt(void **state)
{
    (void)state;
    struct op op = set_guard("g", 10);
    good(&op);
    struct op first = ask(HF_ADMIT, "g", "x", NULL);
    decide(&first);
    now += 10; /* over, so that the view does not tell */
    see_nothing();
    guards[view.guard_count++] = op.r.answer.guard;
    crash();
    agrees();
    op.q.set_guard.volatile_only = true;
    op.r.answer.guard.durable = false;
    op.r.now = now;
    good(&op);
    guards[0] = op.r.answer.guard;
    struct op second = ask(HF_ADMIT, "g", "x", NULL);
    good(&second);
    second = ask(HF_CHECK, "g", "x", NULL);
    seen(&second, now, now + 10, NULL);
    good(&second);
    entries[0] = (struct hf_entry){ .tenant = hf_str(""),
                                    .guard = hf_str("g"),
                                    .identity = hf_str("x"),
                                    .result = hf_str(""),
                                    .recorded_at = now,
                                    .expires_at = now + 10 };
    view.entry_count = 1;
    view.now = now;
    judge_looked(j, &view);
    agrees();
}

/* The client's mark has moved in the meantime, and that is not on disk; but the replay does not
 * show it. */
static void a_replay_by_number_promises_its_first_answer_alone(void **state)
{
    (void)state;
    struct op a = place("", "room", 1, 0), b = place("", "bed", 2, 0), op;
    a.q.client = b.q.client = hf_str("client");
    a.q.sequence = 1;
    b.q.sequence = 2;
    good(&a);
    decide(&b);
    op = again(&a);
    good(&op);
    see_nothing();
    see(&a);
    crash();
    agrees();
}

/* A key that is too long for the rules after the crash was not too long before it. */
static void rules_that_change_with_the_crash(void **state)
{
    (void)state;
    struct op a = write_register("0123456789", "r", "one", 1), op;
    decide(&a);
    see_nothing();
    rules.token_max_length = 4;
    crash();
    agrees();
    rules.token_max_length = 16;
    judge_opened(j, &rules);
    op = again(&a);
    good(&op);
}

static struct op lease(enum hf_action action, const char *key, uint64_t fence)
{
    struct op op = answer(action, HF_OK);
    op.q.lease.name = hf_str("l");
    op.r.answer.kind = HF_RECORD_LEASE;
    op.r.answer.lease = (struct hf_lease){ .tenant = hf_str(""),
                                           .name = hf_str("l"),
                                           .holder = hf_str("me"),
                                           .fence = fence,
                                           .ttl_ms = 50,
                                           .granted_at = now,
                                           .expires_at = now + 50 };
    if (action == HF_GRANT) {
        op.q.lease.holder = hf_str("me");
        op.q.lease.ttl_ms = 50;
        with_key(&op, key);
    } else {
        op.q.lease.fence = fence;
        op.r.answer.lease.released_at = now;
    }
    return op;
}

/* Given back at the same moment before and after the crash: the second answer does not tell whether
 * the first return lasted, nor, then, whether the write before it did. */
static void an_answer_that_settles_nothing(void **state)
{
    (void)state;
    struct op a = lease(HF_GRANT, "a", 1), w = write_register("w", "r", "one", 1),
              back = lease(HF_RETURN, "", 1), op;
    good(&a);
    decide(&w);
    decide(&back);
    see_nothing();
    crash();
    good(&back);
    op = lease(HF_GRANT, "b", 2);
    good(&op);
    good(&w); /* for the first time, because it was lost */
}

static void time_may_run_back_to_what_is_on_disk(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += 50;
    op = get_hold(&a); /* moves nothing on disk */
    good(&op);
    now -= 20;
    see_nothing();
    see(&a);
    crash();
    agrees();
    op = get_hold(&a);
    good(&op);
}

/* ---- Badly told ---- */

static void what_was_shown_is_lost(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    see_nothing();
    crash();
    objects("PC10");
}

static void what_was_seen_by_a_read_is_lost(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    decide(&a);
    op = get_hold(&a);
    good(&op);
    see_nothing();
    crash();
    objects("PC10");
}

static void what_was_answered_again_is_lost(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    decide(&a);
    op = again(&a);
    good(&op);
    see_nothing();
    crash();
    objects("PC10");
}

static void a_later_one_without_the_earlier_one(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0);
    decide(&a);
    decide(&b);
    see_nothing();
    see(&b);
    crash();
    objects("no beginning");
}

static void an_earlier_one_shown_by_a_later_one_is_lost(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b = place("b", "bed", 2, 0);
    decide(&a);
    good(&b);
    see_nothing();
    see(&b);
    crash();
    objects("PC10");
}

static void something_that_nobody_did(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    see_nothing();
    see(&a);
    crash();
    objects("nothing made it");
}

static void half_an_effect(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    decide(&a);
    see_nothing();
    see(&a);
    view.resource_count = 0; /* the hold without its resource */
    crash();
    objects("after the crash");
}

static void an_effect_without_its_key(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    decide(&a);
    see_nothing();
    see(&a);
    crash();
    agrees();
    a = refused(&a, "a", HF_RESOURCE_UNAVAILABLE); /* as if the key were new */
    bad(&a, "IR1");
}

static void a_key_without_its_effect(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    decide(&a);
    see_nothing();
    crash();
    agrees();
    a = again(&a);
    bad(&a, "IR7");
}

static void a_later_write_without_the_earlier_one(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), b = write_register("b", "s", "two", 1), op;
    decide(&a);
    decide(&b);
    see_nothing();
    crash();
    agrees();
    op = again(&b); /* the second lasted */
    good(&op);
    op = get_register(&a);
    op.st = op.r.answer.status = HF_NOT_KNOWN;
    op.r.answer.kind = HF_NO_RECORD;
    bad(&op, "known once it was written");
}

static void a_write_that_lasted_and_did_not(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op;
    decide(&a);
    see_nothing();
    crash();
    op = get_register(&a);
    good(&op);
    op = write_register("a", "r", "one", 2);
    bad(&op, "IR8");
}

static void a_lost_write_comes_back_after_the_next_crash(void **state)
{
    (void)state;
    struct op a = write_register("a", "r", "one", 1), op;
    decide(&a);
    see_nothing();
    crash();
    op = get_register(&a);
    op.st = op.r.answer.status = HF_NOT_KNOWN;
    op.r.answer.kind = HF_NO_RECORD;
    good(&op);
    crash();
    agrees();
    op = get_register(&a);
    bad(&op, "known once it was written");
}

static void an_expiry_that_was_shown_is_taken_back(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    now += 2 * DURATION;
    struct op op = get_hold(&a);
    op.r.answer.hold.state = HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    good(&op);
    see_nothing();
    see(&a);
    crash();
    objects("PC3");
}

static void an_answer_after_the_crash(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    uint64_t n = decide(&a);
    see_nothing();
    crash();
    agrees();
    show(n, &a);
    objects("taken it back");
}

static void an_outbox_row_without_its_apply(void **state)
{
    (void)state;
    see_nothing();
    outbox[view.outbox_count++] = (struct hf_outbox){ .tenant = hf_str(""),
                                                      .number = 1,
                                                      .key = hf_str("a"),
                                                      .topic = hf_str("mail"),
                                                      .payload = hf_str("sent"),
                                                      .state = HF_OUTBOX_PENDING,
                                                      .created_at = now };
    crash();
    objects("outbox");
}

static void an_entry_that_was_shown_is_lost(void **state)
{
    (void)state;
    struct op op = set_guard("g", 1000);
    good(&op);
    guards[0] = op.r.answer.guard;
    op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    see_nothing();
    view.guard_count = 1;
    crash();
    objects("DP4");
}

static void time_before_what_is_on_disk(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    now--;
    see_nothing();
    see(&a);
    crash();
    objects("engine time");
}

static void a_view_that_contradicts_itself(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    see_nothing();
    see(&a);
    resources[0].held = 0;
    view.now = now;
    judge_looked(j, &view);
    objects("PC11");
}

static void a_look_at_something_else(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    good(&a);
    see_nothing();
    see(&a);
    holds[0].requester = hf_str("other");
    view.now = now;
    judge_looked(j, &view);
    objects("PC5");
}

/* ---- How fast ---- */

/* A simulator that judges fifty histories of 2,000 operations a second needs this, with room to
 * spare for a slow machine and for sanitizers. The time is the processor's: whoever else runs does
 * not count. */
static void a_step_takes_microseconds(void **state)
{
    (void)state;
    enum { STEPS = 20000 };
    struct op a = place("a", "room", 1, 0);
    good(&a);
    int64_t from = test_cpu_ns();
    for (int i = 0; i < STEPS; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        struct op op = refused(&a, key, HF_RESOURCE_UNAVAILABLE);
        tell(&op);
    }
    double us = (double)(test_cpu_ns() - from) / 1e3 / STEPS;
    agrees();
    printf("%.2f us a step\n", us);
    assert_true(us < 100);
}

/* The next refusal of a client that numbers its operations. */
static struct op refused_by_number(const struct op *as, uint64_t number)
{
    struct op op = refused(as, "", HF_RESOURCE_UNAVAILABLE);
    op.q.client = hf_str("client");
    op.q.sequence = number;
    return op;
}

/* Nothing shows how many refusals lasted, and numbers are never forgotten: two crashes with one
 * client leave every pair of two beginnings open. Then each operation takes some steps for each
 * pair, but not for each item of each pair, nor again for each item. */
static void many_alternatives_take_some_steps_each(void **state)
{
    (void)state;
    enum { REFUSALS = 40, ALTERNATIVES = (REFUSALS + 1) * (REFUSALS + 1), SOME = 20 };
    struct op a = place("a", "room", 1, 0), op = a;
    uint64_t number = 0;
    good(&a);
    see_nothing();
    see(&a);
    for (int crashes = 0; crashes < 2; crashes++) {
        for (int i = 0; i < REFUSALS; i++) {
            op = refused_by_number(&a, ++number);
            decide(&op);
        }
        crash();
        agrees();
    }
    struct op last = op;
    uint64_t before = j->step;
    op = refused_by_number(&a, number + 1);
    good(&op);
    assert_in_range(j->step - before, ALTERNATIVES, SOME * ALTERNATIVES);
    op = again(
        /* so all of the second crash lasted, and what the first has left open is of no interest */
        &last);
    good(&op);
    before = j->step;
    op = refused_by_number(&a, number + 2);
    good(&op);
    assert_int_equal(j->step - before, 1);
    op = refused_by_number(&a, number);
    bad(&op, "this is no replay");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(what_was_not_shown_may_be_lost),
        TOLD(what_was_not_shown_may_be_there),
        TOLD(the_beginning_may_be_there),
        TOLD(a_later_answer_settles_it),
        TOLD(a_second_crash_before_it_is_settled),
        TOLD(a_write_over_what_is_in_doubt),
        TOLD(a_sweep_in_doubt),
        TOLD(a_read_of_something_else_promises_nothing),
        TOLD(a_volatile_guard_forgets),
        TOLD(a_volatile_guard_forgets_what_it_may_have_missed),
        TOLD(a_volatile_record_over_one_in_doubt),
        TOLD(a_replay_by_number_promises_its_first_answer_alone),
        TOLD(rules_that_change_with_the_crash),
        TOLD(an_answer_that_settles_nothing),
        TOLD(time_may_run_back_to_what_is_on_disk),
        TOLD(what_was_shown_is_lost),
        TOLD(what_was_seen_by_a_read_is_lost),
        TOLD(what_was_answered_again_is_lost),
        TOLD(a_later_one_without_the_earlier_one),
        TOLD(an_earlier_one_shown_by_a_later_one_is_lost),
        TOLD(something_that_nobody_did),
        TOLD(half_an_effect),
        TOLD(an_effect_without_its_key),
        TOLD(a_key_without_its_effect),
        TOLD(a_later_write_without_the_earlier_one),
        TOLD(a_write_that_lasted_and_did_not),
        TOLD(a_lost_write_comes_back_after_the_next_crash),
        TOLD(an_expiry_that_was_shown_is_taken_back),
        TOLD(an_answer_after_the_crash),
        TOLD(an_outbox_row_without_its_apply),
        TOLD(an_entry_that_was_shown_is_lost),
        TOLD(time_before_what_is_on_disk),
        TOLD(a_view_that_contradicts_itself),
        TOLD(a_look_at_something_else),
        TOLD(a_step_takes_microseconds),
        TOLD(many_alternatives_take_some_steps_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The judge minds what breaks the rules of guards: DP1 to DP4, match rules, and stores that cannot
 * answer. */
#include "judge/tests/told.h"

#define SEEN_FOR INT64_C(60) /* the guard's window */

static void guarded(const enum hf_match *match, uint32_t count)
{
    struct op op = set_guard("g", SEEN_FOR);
    for (uint32_t i = 0; i < count; i++)
        op.q.set_guard.match[i] = op.r.answer.guard.match[i] = match[i];
    op.q.set_guard.match_count = op.r.answer.guard.match_count = count;
    op.q.set_guard.force = true;
    good(&op);
}

/* The same without force. */
static struct op ruled(enum hf_match rule)
{
    struct op op = set_guard("g", SEEN_FOR);
    op.q.set_guard.match[0] = op.r.answer.guard.match[0] = rule;
    op.q.set_guard.match_count = op.r.answer.guard.match_count = 1;
    return op;
}

/* Admitted by the first name, seen by the second. */
static void same_identity(const char *a, const char *b)
{
    struct op op = ask(HF_ADMIT, "g", a, NULL);
    good(&op);
    op = ask(HF_ADMIT, "g", b, NULL);
    seen(&op, now, now + SEEN_FOR, NULL);
    good(&op);
}

static void other_identity(const char *a)
{
    struct op op = ask(HF_CHECK, "g", a, NULL);
    good(&op);
}

/* ---- Well told ---- */

static void a_life_of_a_guard(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_CHECK, "g", "x", NULL);
    good(&op);
    op = ask(HF_RECORD, "g", "x", "first");
    good(&op);
    hf_time recorded = now;
    now += SEEN_FOR - 1;
    op = ask(HF_RECORD, "g", "x", "second");
    seen(&op, recorded, recorded + SEEN_FOR, "first");
    good(&op);
    now++;
    op = ask(HF_ADMIT, "g", "x", "third");
    good(&op);
    op = ask(HF_CHECK, "g", "x", NULL);
    seen(&op, now, now + SEEN_FOR, "third");
    good(&op);
}

static void match_rules_that_stay(void **state)
{
    (void)state;
    struct op first = ruled(HF_MATCH_TRIM), op;
    good(&first);
    op = ask(HF_RECORD, "g", "x", NULL);
    good(&op);
    op = ruled(HF_MATCH_HASH);
    op.st = op.r.answer.status = HF_WINDOW_NOT_ELAPSED;
    op.r.answer.guard = first.r.answer.guard;
    good(&op);
    now += SEEN_FOR;
    op = ruled(HF_MATCH_HASH);
    op.r.answer.guard.created_at = first.r.answer.guard.created_at;
    good(&op);
}

static void match_rules(void **state)
{
    (void)state;
    static const enum hf_match all[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_NORMALIZE,
                                         HF_MATCH_HASH };
    guarded(all, 1);
    same_identity(" a ", "a");
    other_identity("A");
    guarded(all + 1, 1);
    same_identity("STRA\xc3\x9f", "strass");
    same_identity("\xc3\x89", "e\xcc\x81");
    same_identity("\xc2\xb5", "\xce\xbc");
    guarded(all + 2, 1);
    same_identity("b \t b", "b b");
    other_identity("B b");
    guarded(all, 4);
    same_identity(" X  y", "x Y ");
}

static void what_the_match_rules_do_not_know_may_be_either(void **state)
{
    (void)state;
    static const enum hf_match fold[] = { HF_MATCH_CASEFOLD };
    guarded(fold, 1);
    struct op op = ask(HF_ADMIT, "g", "\xe2\x84\xaa", NULL); /* the Kelvin sign: by its fold, a k */
    good(&op);
    op = ask(HF_CHECK, "g", "K", NULL);
    good(&op);
    seen(&op, now, now + SEEN_FOR, NULL);
    good(&op);
}

static void in_bad_weather_it_may_miss(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", NULL);
    op.weather = JUDGE_NO_ROOM;
    good(&op);
    op = ask(HF_RECORD, "g", "y", NULL);
    op.weather = JUDGE_NO_ROOM;
    good(&op);
    op = ask(HF_CHECK, "g", "x", NULL); /* missed */
    good(&op);
    op = ask(HF_CHECK, "g", "y", NULL); /* not missed */
    seen(&op, now, now + SEEN_FOR, NULL);
    good(&op);
}

static void closed_in_bad_weather(void **state)
{
    (void)state;
    struct op op = set_guard("g", SEEN_FOR);
    op.q.set_guard.on_unavailable = op.r.answer.guard.on_unavailable = HF_FAIL_CLOSED;
    good(&op);
    op = ask(HF_CHECK, "g", "x", NULL);
    op.weather = JUDGE_NO_MEMORY;
    op.r.answer.seen.seen = true;
    good(&op);
    op.weather = JUDGE_FAIR;
    op.r.answer.seen.seen = false;
    good(&op);
}

static void a_volatile_guard_forgets_at_a_restart(void **state)
{
    (void)state;
    struct op op = set_guard("g", SEEN_FOR);
    op.q.set_guard.volatile_only = true;
    op.r.answer.guard.durable = false;
    good(&op);
    op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    judge_opened(j, &rules);
    op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
}

/* ---- Badly told ---- */

static void a_match_rule_that_changes_over_an_identity(void **state)
{
    (void)state;
    struct op op = ruled(HF_MATCH_TRIM);
    good(&op);
    op = ask(HF_RECORD, "g", "x", NULL);
    good(&op);
    op = ruled(HF_MATCH_HASH);
    bad(&op, "by force: expected window-not-elapsed");
}

static void a_match_rule_that_stays_for_nothing(void **state)
{
    (void)state;
    struct op op = ruled(HF_MATCH_TRIM);
    good(&op);
    op.r.answer.guard.match[0] = HF_MATCH_TRIM;
    op.q.set_guard.match[0] = HF_MATCH_HASH;
    op.st = op.r.answer.status = HF_WINDOW_NOT_ELAPSED;
    bad(&op, "expected ok");
}

static void what_was_recorded_is_not_seen(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", NULL);
    good(&op);
    now += SEEN_FOR - 1;
    op = ask(HF_CHECK, "g", "x", NULL);
    bad(&op, "DP4");
}

static void seen_at_the_end_of_the_window(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", NULL);
    good(&op);
    hf_time recorded = now;
    now += SEEN_FOR;
    op = ask(HF_CHECK, "g", "x", NULL);
    seen(&op, recorded, recorded + SEEN_FOR, NULL);
    bad(&op, "DP1");
}

static void a_window_that_recording_again_has_moved(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", NULL);
    good(&op);
    now += 10;
    op = ask(HF_RECORD, "g", "x", NULL);
    seen(&op, now, now + SEEN_FOR, NULL);
    bad(&op, "DP2");
}

static void a_result_that_recording_again_has_replaced(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", "first");
    good(&op);
    op = ask(HF_RECORD, "g", "x", "second");
    seen(&op, now, now + SEEN_FOR, "second");
    bad(&op, "DP2");
}

static void a_check_that_records(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_CHECK, "g", "x", NULL);
    good(&op);
    seen(&op, now, now + SEEN_FOR, NULL);
    bad(&op, "DP1");
}

static void admitted_twice(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    bad(&op, "DP4");
}

static void an_exact_guard_that_folds(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    op = ask(HF_CHECK, "g", "X", NULL);
    seen(&op, now, now + SEEN_FOR, NULL);
    bad(&op, "DP1");
}

static void a_folding_guard_that_does_not(void **state)
{
    (void)state;
    static const enum hf_match rule[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD };
    guarded(rule, 2);
    struct op op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    op = ask(HF_ADMIT, "g", " X", NULL);
    bad(&op, "DP4");
}

static void one_guard_answers_for_another(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = set_guard("h", SEEN_FOR);
    good(&op);
    op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    op = ask(HF_ADMIT, "h", "x", NULL);
    seen(&op, now, now + SEEN_FOR, NULL);
    bad(&op, "DP1");
}

static void a_durable_guard_forgets_at_a_restart(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_ADMIT, "g", "x", NULL);
    good(&op);
    judge_opened(j, &rules);
    op = ask(HF_ADMIT, "g", "x", NULL);
    bad(&op, "DP4");
}

static void an_open_guard_that_is_closed(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_CHECK, "g", "x", NULL);
    op.weather = JUDGE_NO_MEMORY;
    op.r.answer.seen.seen = true;
    bad(&op, "DP1");
}

static void a_record_that_says_no(void **state)
{
    (void)state;
    guarded(NULL, 0);
    struct op op = ask(HF_RECORD, "g", "x", NULL);
    op.st = op.r.answer.status = HF_RESOURCE_UNAVAILABLE;
    op.r.answer.kind = HF_NO_RECORD;
    bad(&op, "check, record and admit answer");
}

static void a_guard_that_nobody_set(void **state)
{
    (void)state;
    struct op op = ask(HF_CHECK, "g", "x", NULL);
    bad(&op, "no such guard");
}

static void a_guard_that_is_not_as_it_was_set(void **state)
{
    (void)state;
    struct op op = set_guard("g", SEEN_FOR);
    op.r.answer.guard.window_ms++;
    bad(&op, "not as it was set");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(a_life_of_a_guard),
        TOLD(match_rules),
        TOLD(match_rules_that_stay),
        TOLD(what_the_match_rules_do_not_know_may_be_either),
        TOLD(in_bad_weather_it_may_miss),
        TOLD(closed_in_bad_weather),
        TOLD(a_volatile_guard_forgets_at_a_restart),
        TOLD(a_match_rule_that_changes_over_an_identity),
        TOLD(a_match_rule_that_stays_for_nothing),
        TOLD(what_was_recorded_is_not_seen),
        TOLD(seen_at_the_end_of_the_window),
        TOLD(a_window_that_recording_again_has_moved),
        TOLD(a_result_that_recording_again_has_replaced),
        TOLD(a_check_that_records),
        TOLD(admitted_twice),
        TOLD(an_exact_guard_that_folds),
        TOLD(a_folding_guard_that_does_not),
        TOLD(one_guard_answers_for_another),
        TOLD(a_durable_guard_forgets_at_a_restart),
        TOLD(an_open_guard_that_is_closed),
        TOLD(a_record_that_says_no),
        TOLD(a_guard_that_nobody_set),
        TOLD(a_guard_that_is_not_as_it_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The judge minds what breaks the rules of keys: IR1 to IR8, windows, numbers, and faults. */
#include "judge/tests/told.h"

static struct op collision(const struct op *as)
{
    struct op op = { .q = as->q, .st = HF_TOKEN_COLLISION };
    op.r.now = now;
    op.r.answer.status = HF_TOKEN_COLLISION;
    return op;
}

static struct op get_token(const struct op *of)
{
    struct op op = *of;
    op.q.action = HF_GET_TOKEN;
    op.st = HF_OK;
    op.r.now = now;
    return op;
}

/* The same by number instead of by key. */
static struct op numbered(struct op op, uint64_t number)
{
    op.q.key = hf_str("");
    op.q.client = hf_str("client");
    op.q.sequence = number;
    op.r.token.expires_at = INT64_MAX;
    return op;
}

/* ---- Well told ---- */

static void a_life_of_keys(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_CONFIRM, &a);
    good(&op);
    now += WINDOW - 1;
    op = again(&a);
    good(&op);
    op = get_token(&a);
    good(&op);
    op = collision(&a);
    op.q.place_hold.duration_ms++;
    good(&op);
    now++;
    op = refused(&a, "a", HF_RESOURCE_UNAVAILABLE); /* a new call by now */
    good(&op);
    now += WINDOW - 1;
    op = again(&op);
    good(&op);
}

static void a_life_of_numbers(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 1), op;
    good(&a);
    now += 5 * WINDOW; /* they do not leave by time */
    op = again(&a);
    good(&op);
    struct op b = numbered(place("", "bed", 2, 0), 257);
    good(&b);
    op = a;
    op.r.now = now;
    op.st = op.r.answer.status = HF_WINDOW_ELAPSED;
    op.r.answer.kind = HF_NO_RECORD;
    good(&op);
    b = numbered(place("", "cot", 3, 0), 2); /* late, and not too late */
    good(&b);
}

static const struct hf_flaw sent = { "requester", { "7", 1 } },
                            nothing = { "requester", { "", 0 } };
static const struct hf_invalid not_a_name = { &sent, 1, { "no name", 7 } },
                               missing = { &nothing, 1, { "missing", 7 } };

/* A request whose parameters could not all be read, and its answer. */
static struct op flawed(const char *key, const struct hf_invalid *invalid)
{
    struct op as = place(key, "room", 1, 0), op;
    as.q.place_hold.requester = hf_str("");
    as.q.invalid = invalid;
    op = refused(&as, key, HF_INVALID_REQUEST);
    op.r.answer.kind = HF_RECORD_VALUE;
    op.r.answer.value = invalid->why;
    return op;
}

static void what_could_not_be_read(void **state)
{
    (void)state;
    struct op a = flawed("a", &not_a_name), op = again(&a);
    good(&a);
    op = again(&a);
    good(&op);
    op = flawed("a", &missing);
    op.st = op.r.answer.status = HF_TOKEN_COLLISION;
    op.r.answer.kind = HF_NO_RECORD;
    good(&op);
    op = flawed("b", &missing);
    good(&op);
    op = place("b", "room", 1, 0);
    op.st = op.r.answer.status = HF_TOKEN_COLLISION;
    op.r.answer.kind = HF_NO_RECORD;
    good(&op);
    op = place("c", "room", 1, 0);
    good(&op);
}

static void what_could_not_be_read_has_an_effect(void **state)
{
    (void)state;
    struct op op = place("a", "room", 1, 0);
    op.q.invalid = &missing;
    bad(&op, "not all of its parameters could be read");
}

static void what_could_not_be_read_is_decided_twice(void **state)
{
    (void)state;
    struct op a = flawed("a", &missing);
    good(&a);
    now++;
    a = flawed("a", &missing);
    bad(&a, "IR8");
}

static void what_could_not_be_read_and_another_reason(void **state)
{
    (void)state;
    struct op a = flawed("a", &missing);
    a.r.answer.value = hf_str("guessing");
    bad(&a, "does not say what is wrong");
}

static void faults_in_bad_weather(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), fault = a;
    fault.st = fault.r.answer.status = HF_STORAGE_FAILURE;
    fault.r.answer.kind = HF_NO_RECORD;
    fault.weather = JUDGE_NO_ROOM;
    good(&fault);
    fault.st = fault.r.answer.status = HF_NO_MEMORY;
    fault.weather = JUDGE_NO_MEMORY;
    good(&fault);
    good(&a); /* and nothing is remembered of them */
}

/* ---- Badly told ---- */

static void two_effects_for_one_key(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = place("a", "room", 2, 1);
    op.q.place_hold.resource = hf_str("room");
    bad(&op, "IR8");
}

static void a_replay_that_is_not_marked(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = again(&a);
    op.r.replayed = false;
    bad(&op, "IR8");
}

static void a_replay_that_shows_the_hold_as_it_is(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_CONFIRM, &a);
    good(&op);
    struct op r = again(&a);
    r.r.answer.hold = op.r.answer.hold;
    bad(&r, "byte for byte");
}

static void a_replay_with_one_byte_changed(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = again(&a);
    op.r.answer.hold.requester = hf_str("guesu");
    bad(&op, "byte for byte");
}

static void a_replay_with_another_status(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = refused(&a, "a", HF_RESOURCE_UNAVAILABLE);
    op.r.replayed = true;
    bad(&op, "IR1");
}

static void a_failure_that_is_not_remembered(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b, op;
    good(&a);
    b = refused(&a, "b", HF_RESOURCE_UNAVAILABLE);
    good(&b);
    op = finish("c", HF_RELEASE, &a);
    good(&op);
    op = place("b", "room", 2, 1);
    bad(&op, "IR1");
}

static void a_collision_with_an_effect(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = place("a", "bed", 2, 0);
    bad(&op, "IR4");
}

static void another_action_under_the_same_key(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("a", HF_RELEASE, &a);
    bad(&op, "IR4");
}

static void the_same_parameters_and_another_action_are_taken_for_a_replay(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), b, op;
    good(&a);
    b = finish("b", HF_CONFIRM, &a);
    good(&b);
    op = again(&b);
    op.q.action = HF_RELEASE;
    bad(&op, "IR4");
}

static void a_collision_that_is_none(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = collision(&a);
    bad(&op, "IR1");
}

static void a_key_of_another_tenant_collides(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = collision(&a);
    op.q.tenant = hf_str("other");
    bad(&op, "a unit is free");
}

static void a_window_that_a_retry_has_moved(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += WINDOW / 2;
    op = again(&a);
    op.r.token.expires_at = now + WINDOW;
    bad(&op, "DP2");
}

static void a_key_still_seen_at_the_end_of_its_window(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += WINDOW;
    op = again(&a);
    bad(&op, "IR7");
}

static void a_key_forgotten_too_early(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    now += WINDOW - 1;
    op = place("a", "room", 2, 1);
    bad(&op, "IR8");
}

static void a_key_not_known_to_get_token(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_token(&a);
    op.st = op.r.answer.status = HF_NOT_KNOWN;
    op.r.answer.kind = HF_NO_RECORD;
    bad(&op, "IR7");
}

static void a_wrong_answer_of_get_token(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_token(&a);
    op.r.answer.hold.ordinal++;
    bad(&op, "IR1");
}

static void a_window_of_the_wrong_length(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.r.token.expires_at++;
    bad(&a, "IR6");
}

static void a_malformed_key_with_an_effect(void **state)
{
    (void)state;
    struct op a = place("", "room", 1, 0);
    bad(&a, "malformed key");
}

static void a_key_that_is_too_long(void **state)
{
    (void)state;
    struct op a = place("12345678901234567", "room", 1, 0);
    bad(&a, "malformed key");
}

static void a_malformed_key_that_is_remembered(void **state)
{
    (void)state;
    struct op a = place("", "room", 1, 0);
    a = refused(&a, "", HF_INVALID_REQUEST);
    good(&a);
    a.r.replayed = true;
    bad(&a, "not remembered");
}

static void a_number_carried_out_twice(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 9), op;
    good(&a);
    now += 5 * WINDOW;
    op = numbered(place("", "room", 2, 1), 9);
    bad(&op, "IR8");
}

static void a_number_too_old_carried_out(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 300), op;
    good(&a);
    op = numbered(place("", "bed", 2, 0), 300 - 256);
    bad(&op, "too late for ever");
}

/* A refusal of which nothing is remembered. */
static struct op not_remembered(struct op op, enum hf_status status)
{
    op.st = status;
    op.r = (struct hf_result){ .answer = { .status = status }, .now = now };
    return op;
}

static void a_number_far_above_the_highest(void **state)
{
    (void)state;
    struct op first = numbered(place("", "room", 1, 0), 1000001), op;
    op = not_remembered(first, HF_INVALID_REQUEST);
    good(&op);
    first = numbered(place("", "room", 1, 0), 1000000); /* the first one counts from 0 */
    good(&first);
    op = not_remembered(numbered(place("", "bed", 2, 0), 2000001), HF_INVALID_REQUEST);
    good(&op);
    op = numbered(place("", "bed", 2, 0), 2000000);
    good(&op);
}

static void a_number_too_far_carried_out(void **state)
{
    (void)state;
    struct op op = numbered(place("", "room", 1, 0), 1000001);
    bad(&op, "more than a million above the highest");
}

static void a_number_too_far_remembered(void **state)
{
    (void)state;
    struct op op = numbered(place("", "room", 1, 0), 1000001);
    op = refused(&op, "", HF_INVALID_REQUEST);
    bad(&op, "not remembered");
}

static void a_number_near_refused_as_too_far(void **state)
{
    (void)state;
    struct op op = numbered(place("", "room", 1, 0), 1000000);
    op = not_remembered(op, HF_INVALID_REQUEST);
    bad(&op, "a unit is free");
}

static void a_number_looked_up(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 300), op;
    good(&a);
    op = numbered(get_token(&a), 300);
    good(&op);
    op = not_remembered(op, HF_NOT_KNOWN);
    op.q.sequence = 299;
    good(&op);
    op.q.sequence = 301;
    good(&op);
    op = not_remembered(op, HF_WINDOW_ELAPSED);
    op.q.sequence = 300 - 256;
    good(&op);
    op.q.sequence = 300 - 255;
    bad(&op, "nothing has the key");
}

static void a_number_that_is_not_found_though_it_was_used(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 300), op;
    good(&a);
    op = not_remembered(numbered(get_token(&a), 300), HF_NOT_KNOWN);
    bad(&op, "the key is remembered");
}

static void a_number_refused_though_it_is_in_time(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 300), op;
    good(&a);
    op = refused(&a, "", HF_WINDOW_ELAPSED);
    op = numbered(op, 300 - 255);
    op.q.place_hold.resource = hf_str("bed");
    bad(&op, "a unit is free");
}

static void the_answer_to_another_number(void **state)
{
    (void)state;
    struct op a = numbered(place("", "room", 1, 0), 1), b = numbered(place("", "bed", 2, 0), 2), op;
    good(&a);
    good(&b);
    op = again(&a);
    op.r.answer = b.r.answer;
    bad(&op, "byte for byte");
}

static void a_fault_that_nothing_excuses(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.st = a.r.answer.status = HF_STORAGE_FAILURE;
    a.r.answer.kind = HF_NO_RECORD;
    bad(&a, "nothing excuses");
}

static void a_full_disk_does_not_excuse_a_replay(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = again(&a);
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.weather = JUDGE_NO_ROOM;
    bad(&op, "the key has an answer");
}

static void a_full_disk_does_not_excuse_a_read(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_hold(&a);
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.r.answer.kind = HF_NO_RECORD;
    op.weather = JUDGE_NO_ROOM;
    bad(&op, "reading needs no room");
}

static void a_bad_index_excuses_what_needs_a_hold_alone(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = get_hold(&a);
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.r.answer.kind = HF_NO_RECORD;
    op.weather = JUDGE_NO_INDEX;
    good(&op);
    op = again(&a);
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.weather = JUDGE_NO_INDEX;
    bad(&op, "an index that is not right does not excuse it: the key has an answer");
}

static void a_limit_of_memory_excuses_what_is_new(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    a.st = a.r.answer.status = HF_STORAGE_FAILURE;
    a.r.answer.kind = HF_NO_RECORD;
    a.weather = JUDGE_AT_LIMIT;
    good(&a);
}

static void a_limit_of_memory_does_not_excuse_an_ending(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op;
    good(&a);
    op = finish("b", HF_RELEASE, &a);
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.r.answer.kind = HF_NO_RECORD;
    op.weather = JUDGE_AT_LIMIT;
    bad(&op, "what was begun can be ended");
}

static void a_fault_with_an_effect(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0), op = a;
    op.st = op.r.answer.status = HF_STORAGE_FAILURE;
    op.r.answer.kind = HF_NO_RECORD;
    op.weather = JUDGE_NO_ROOM;
    good(&op);
    op = again(&a); /* as if the fault had been remembered after all */
    bad(&op, "IR7");
}

static void the_caller_was_shown_something_else(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    uint64_t n = decide(&a);
    a.r.answer.hold.expires_at++;
    show(n, &a);
    objects("another answer");
}

static void the_caller_was_shown_another_status(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    uint64_t n = decide(&a);
    judge_shown(j, n, HF_RESOURCE_UNAVAILABLE, &a.r);
    objects("another status");
}

static void an_answer_to_nobody(void **state)
{
    (void)state;
    struct op a = place("a", "room", 1, 0);
    show(7, &a);
    objects("never decided");
}

/* ---- The order of the callers ---- */

static void timed(uint64_t called, uint64_t returned)
{
    static const char *const keys[] = { "t1", "t2", "t3", "t4" };
    static const char *const rooms[] = { "r1", "r2", "r3", "r4" };
    uint64_t n = judge_counted(j).operations;
    struct op op = place(keys[n], rooms[n], n + 1, 0);
    judge_timed(j, decide(&op), called, returned);
}

static void calls_that_overlap_may_be_decided_either_way(void **state)
{
    (void)state;
    timed(10, 40);
    timed(5, 12); /* called first, decided second */
    timed(41, 0); /* never answered */
    timed(13, 50);
    agrees();
}

static void decided_before_something_that_was_over(void **state)
{
    (void)state;
    timed(10, 40);
    timed(1, 9); /* over before the other was called, and decided after it */
    objects("answered before something was called");
}

static void answered_before_it_was_called(void **state)
{
    (void)state;
    timed(10, 9);
    objects("answered before it was called");
}

static void timed_in_another_order(void **state)
{
    (void)state;
    timed(10, 40);
    judge_timed(j, 1, 10, 40);
    objects("timed out of the order");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(a_life_of_keys),
        TOLD(a_life_of_numbers),
        TOLD(what_could_not_be_read),
        TOLD(what_could_not_be_read_has_an_effect),
        TOLD(what_could_not_be_read_is_decided_twice),
        TOLD(what_could_not_be_read_and_another_reason),
        TOLD(faults_in_bad_weather),
        TOLD(two_effects_for_one_key),
        TOLD(a_replay_that_is_not_marked),
        TOLD(a_replay_that_shows_the_hold_as_it_is),
        TOLD(a_replay_with_one_byte_changed),
        TOLD(a_replay_with_another_status),
        TOLD(a_failure_that_is_not_remembered),
        TOLD(a_collision_with_an_effect),
        TOLD(another_action_under_the_same_key),
        TOLD(the_same_parameters_and_another_action_are_taken_for_a_replay),
        TOLD(a_collision_that_is_none),
        TOLD(a_key_of_another_tenant_collides),
        TOLD(a_window_that_a_retry_has_moved),
        TOLD(a_key_still_seen_at_the_end_of_its_window),
        TOLD(a_key_forgotten_too_early),
        TOLD(a_key_not_known_to_get_token),
        TOLD(a_wrong_answer_of_get_token),
        TOLD(a_window_of_the_wrong_length),
        TOLD(a_malformed_key_with_an_effect),
        TOLD(a_key_that_is_too_long),
        TOLD(a_malformed_key_that_is_remembered),
        TOLD(a_number_carried_out_twice),
        TOLD(a_number_too_old_carried_out),
        TOLD(a_number_far_above_the_highest),
        TOLD(a_number_too_far_carried_out),
        TOLD(a_number_too_far_remembered),
        TOLD(a_number_near_refused_as_too_far),
        TOLD(a_number_looked_up),
        TOLD(a_number_that_is_not_found_though_it_was_used),
        TOLD(a_number_refused_though_it_is_in_time),
        TOLD(the_answer_to_another_number),
        TOLD(a_fault_that_nothing_excuses),
        TOLD(a_full_disk_does_not_excuse_a_replay),
        TOLD(a_full_disk_does_not_excuse_a_read),
        TOLD(a_bad_index_excuses_what_needs_a_hold_alone),
        TOLD(a_limit_of_memory_excuses_what_is_new),
        TOLD(a_limit_of_memory_does_not_excuse_an_ending),
        TOLD(a_fault_with_an_effect),
        TOLD(the_caller_was_shown_something_else),
        TOLD(the_caller_was_shown_another_status),
        TOLD(an_answer_to_nobody),
        TOLD(calls_that_overlap_may_be_decided_either_way),
        TOLD(decided_before_something_that_was_over),
        TOLD(answered_before_it_was_called),
        TOLD(timed_in_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

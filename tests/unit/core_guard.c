/* Guards: what is seen, for how long, and what happens when the store cannot tell. */
#include "core/guard.h"
#include "support/test.h"
#include "unit/kit/world.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct world *w;

static int setup(void **state)
{
    (void)state;
    w = world_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static struct hf_request guard(const char *name, int64_t window_ms)
{
    return (struct hf_request){ .action = HF_SET_GUARD,
                                .set_guard = { .name = hf_str(name), .window_ms = window_ms } };
}

static enum hf_status set(struct hf_request r)
{
    return world_do(w, &r);
}

static enum hf_status ask(enum hf_action action, const char *name, const char *identity,
                          const char *result)
{
    return world_do(w, &(struct hf_request){ .action = action,
                                             .identity = { hf_str(name), hf_str(identity),
                                                           hf_str(result), result != NULL } });
}

/* Ask, and tell whether it was seen. */
static bool seen(enum hf_action action, const char *name, const char *identity)
{
    assert_int_equal(ask(action, name, identity, NULL), HF_OK);
    assert_int_equal(w->plan.answer.kind, HF_RECORD_SEEN);
    const struct hf_seen *s = &w->plan.answer.seen;
    if (!s->seen)
        assert_true(s->recorded_at == 0 && s->expires_at == 0 && !s->has_result &&
                    s->result.size == 0);
    return s->seen;
}

static bool is(struct hf_bytes got, const char *want)
{
    return got.size == strlen(want) && memcmp(got.data, want, got.size) == 0;
}

/* ---- Setting ---- */

static void a_guard_is_set(void **state)
{
    (void)state;
    struct hf_request r = guard("todo", HOUR);
    r.set_guard.match[0] = HF_MATCH_TRIM;
    r.set_guard.match[1] = HF_MATCH_CASEFOLD;
    r.set_guard.match_count = 2;
    r.set_guard.on_unavailable = HF_FAIL_CLOSED;
    r.set_guard.volatile_only = true;
    assert_int_equal(set(r), HF_OK);
    const struct hf_guard *g = &w->plan.answer.guard;
    assert_int_equal(w->plan.answer.kind, HF_RECORD_GUARD);
    assert_int_equal(w->plan.row_count, 1);
    assert_true(is(g->name, "todo") && g->window_ms == HOUR && g->created_at == WORLD_START);
    assert_true(g->match_count == 2 && g->match[0] == HF_MATCH_TRIM &&
                g->match[1] == HF_MATCH_CASEFOLD);
    assert_true(g->on_unavailable == HF_FAIL_CLOSED && !g->durable);
    assert_int_equal(set(guard("plain", 1)), HF_OK);
    g = &world_row(w, HF_ROW_GUARD, "", "plain", "")->guard;
    assert_true(g->match_count == 0 && g->on_unavailable == HF_FAIL_OPEN && g->durable);
}

static void only_changes_are_written(void **state)
{
    (void)state;
    struct hf_request base = guard("g", HOUR);
    base.set_guard.match[0] = HF_MATCH_TRIM;
    base.set_guard.match_count = 1;
    assert_int_equal(set(base), HF_OK);
    w->now += 7;
    assert_int_equal(set(base), HF_OK);
    assert_int_equal(w->plan.row_count, 0);
    assert_true(w->plan.answer.guard.created_at == WORLD_START);
    struct hf_request others[5] = { base, base, base, base, base };
    others[0].set_guard.window_ms++;
    others[1].set_guard.match[0] = HF_MATCH_HASH;
    others[2].set_guard.match_count = 0;
    others[3].set_guard.on_unavailable = HF_FAIL_CLOSED;
    others[4].set_guard.volatile_only = true;
    for (size_t i = 0; i < 5; i++) {
        w->refuse_writes = true;
        assert_int_equal(set(others[i]), HF_STORAGE_FAILURE);
        assert_int_equal(set(base), HF_OK); /* as it is */
        w->refuse_writes = false;
        assert_int_equal(set(others[i]), HF_OK);
        assert_int_equal(w->plan.row_count, 1);
        assert_true(w->plan.answer.guard.created_at == WORLD_START);
        assert_int_equal(set(base), HF_OK);
    }
    w->refuse_writes = true;
    assert_int_equal(set(guard("new", HOUR)), HF_STORAGE_FAILURE);
    w->refuse_writes = false;
    w->unreadable[WORLD_GUARD] = true;
    assert_int_equal(set(base), HF_STORAGE_FAILURE);
}

static struct hf_request rule(const char *name, int64_t window_ms, enum hf_match first,
                              enum hf_match second)
{
    struct hf_request r = guard(name, window_ms);
    r.set_guard.match[0] = first;
    r.set_guard.match[1] = second;
    r.set_guard.match_count = first ? second ? 2 : 1 : 0;
    return r;
}

/* Under another match rule, a duplicate of what is under guard might not be recognised. */
static void the_match_rule_stays_while_identities_are_under_guard(void **state)
{
    (void)state;
    assert_int_equal(set(rule("g", HOUR, HF_MATCH_TRIM, HF_MATCH_CASEFOLD)), HF_OK);
    assert_int_equal(set(rule("other", HOUR, 0, 0)), HF_OK);
    assert_int_equal(ask(HF_RECORD, "other", "x", NULL), HF_OK);
    assert_int_equal(set(rule("g", HOUR, HF_MATCH_TRIM, 0)), HF_OK);
    assert_int_equal(ask(HF_RECORD, "g", "x", NULL), HF_OK);
    static const enum hf_match others[][2] = {
        { 0, 0 }, { HF_MATCH_EXACT, 0 }, { HF_MATCH_CASEFOLD, 0 }, { HF_MATCH_TRIM, HF_MATCH_HASH }
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(set(rule("g", HOUR, others[i][0], others[i][1])), HF_WINDOW_NOT_ELAPSED);
        assert_int_equal(w->plan.answer.kind, HF_RECORD_GUARD);
        assert_int_equal(w->plan.answer.guard.match[0], HF_MATCH_TRIM);
        assert_int_equal(w->plan.row_count, 0);
    }
    /* exact changes no identity; and the window is no match rule. */
    assert_int_equal(set(rule("g", 2 * HOUR, HF_MATCH_EXACT, HF_MATCH_TRIM)), HF_OK);
    w->unreadable[WORLD_ENTRY] = true;
    assert_int_equal(set(rule("g", HOUR, 0, 0)), HF_STORAGE_FAILURE);
    w->unreadable[WORLD_ENTRY] = false;
    w->now += HOUR - 1;
    assert_int_equal(set(rule("g", HOUR, 0, 0)), HF_WINDOW_NOT_ELAPSED);
    w->now += 1;
    assert_int_equal(set(rule("g", HOUR, 0, 0)), HF_OK);
    assert_int_equal(ask(HF_RECORD, "g", "x", NULL), HF_OK);
    struct hf_request r = rule("g", HOUR, HF_MATCH_HASH, 0);
    r.set_guard.force = true;
    assert_int_equal(set(r), HF_OK);
    assert_int_equal(w->plan.answer.guard.match[0], HF_MATCH_HASH);
}

static void malformed_guards_are_refused(void **state)
{
    (void)state;
    assert_int_equal(set(guard("", HOUR)), HF_INVALID_REQUEST);
    assert_int_equal(set(guard("g", 0)), HF_INVALID_REQUEST);
    assert_int_equal(set(guard("g", HF_DURATION_MAX_MS + 1)), HF_INVALID_REQUEST);
    struct hf_request r = guard("g", HF_DURATION_MAX_MS);
    r.set_guard.match[0] = HF_MATCH_HASH;
    r.set_guard.match[1] = HF_MATCH_TRIM;
    r.set_guard.match_count = 2;
    assert_int_equal(set(r), HF_INVALID_REQUEST);
    r.set_guard.match_count = HF_MATCH_MAX + 1;
    assert_int_equal(set(r), HF_INVALID_REQUEST);
    r.set_guard.match_count = 1;
    r.set_guard.on_unavailable = (enum hf_unavailable)2;
    assert_int_equal(set(r), HF_INVALID_REQUEST);
    assert_int_equal(world_count(w, HF_ROW_GUARD), 0);
}

/* ---- Asking ---- */

static void the_window_is_half_open(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", 1000)), HF_OK);
    assert_false(seen(HF_CHECK, "g", "x"));
    assert_int_equal(ask(HF_RECORD, "g", "x", "first"), HF_OK);
    assert_false(w->plan.answer.seen.seen);
    assert_int_equal(w->plan.row_count, 1);
    w->now = WORLD_START + 999;
    assert_true(seen(HF_CHECK, "g", "x"));
    assert_true(w->plan.answer.seen.recorded_at == WORLD_START);
    assert_true(w->plan.answer.seen.expires_at == WORLD_START + 1000);
    assert_true(w->plan.answer.seen.has_result && is(w->plan.answer.seen.result, "first"));
    w->now = WORLD_START + 1000;
    assert_false(seen(HF_CHECK, "g", "x"));
}

static void recording_again_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", 1000)), HF_OK);
    assert_int_equal(ask(HF_RECORD, "g", "x", "first"), HF_OK);
    for (int i = 1; i < 10; i++) {
        w->now = WORLD_START + 100 * i;
        assert_int_equal(ask(i % 2 ? HF_RECORD : HF_ADMIT, "g", "x", "again"), HF_OK);
        assert_true(w->plan.answer.seen.seen && is(w->plan.answer.seen.result, "first"));
        assert_int_equal(w->plan.row_count, 0);
    }
    w->now = WORLD_START + 1000; /* closed, still in memory: a fresh guard starts */
    assert_int_equal(ask(HF_RECORD, "g", "x", NULL), HF_OK);
    assert_false(w->plan.answer.seen.seen);
    assert_int_equal(world_count(w, HF_ROW_ENTRY), 1);
    w->now += 999;
    assert_true(seen(HF_CHECK, "g", "x"));
    assert_true(w->plan.answer.seen.recorded_at == WORLD_START + 1000);
    assert_false(w->plan.answer.seen.has_result);
}

static void admit_checks_and_records(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", 1000)), HF_OK);
    assert_false(seen(HF_ADMIT, "g", "x"));
    assert_int_equal(w->plan.row_count, 1);
    assert_true(seen(HF_ADMIT, "g", "x"));
    assert_int_equal(w->plan.row_count, 0);
    assert_false(seen(HF_ADMIT, "g", "y"));
    w->now += 1000;
    assert_false(seen(HF_ADMIT, "g", "x"));
}

static void checking_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", 1000)), HF_OK);
    for (int i = 0; i < 5; i++) {
        assert_false(seen(HF_CHECK, "g", "x"));
        assert_int_equal(w->plan.row_count, 0);
    }
    assert_int_equal(world_count(w, HF_ROW_ENTRY), 0);
}

static void an_entry_keeps_its_end_when_the_guard_changes(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", 1000)), HF_OK);
    assert_false(seen(HF_ADMIT, "g", "x"));
    assert_int_equal(set(guard("g", HOUR)), HF_OK);
    w->now += 999;
    assert_true(seen(HF_CHECK, "g", "x"));
    w->now += 1;
    assert_false(seen(HF_CHECK, "g", "x"));
    assert_false(seen(HF_ADMIT, "g", "x"));
    assert_int_equal(set(guard("g", 10)), HF_OK);
    w->now += 10;
    assert_true(seen(HF_CHECK, "g", "x")); /* it was given an hour */
}

static void guards_and_tenants_are_apart(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", HOUR)), HF_OK);
    assert_int_equal(set(guard("h", HOUR)), HF_OK);
    assert_false(seen(HF_ADMIT, "g", "x"));
    assert_false(seen(HF_CHECK, "h", "x"));
    struct hf_request r = { .action = HF_CHECK,
                            .tenant = hf_str("other"),
                            .identity = { .guard = hf_str("g"), .identity = hf_str("x") } };
    assert_int_equal(world_do(w, &r), HF_NOT_KNOWN);
}

static void malformed_questions_are_refused(void **state)
{
    (void)state;
    static char text[HF_GUARD_RESULT_MAX + 1];
    memset(text, 'i', sizeof text);
    struct hf_request r = guard("g", HOUR);
    r.set_guard.match[0] = HF_MATCH_TRIM;
    r.set_guard.match_count = 1;
    assert_int_equal(set(r), HF_OK);
    const enum hf_action actions[] = { HF_CHECK, HF_RECORD, HF_ADMIT };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ask(actions[i], "", "x", NULL), HF_INVALID_REQUEST);
        assert_int_equal(ask(actions[i], "g", "", NULL), HF_INVALID_REQUEST);
        assert_int_equal(ask(actions[i], "g", "  ", NULL),
                         HF_INVALID_REQUEST); /* nothing is left */
        assert_int_equal(ask(actions[i], "g", "\xff", NULL), HF_INVALID_REQUEST);
        assert_int_equal(ask(actions[i], "nobody", "x", NULL), HF_NOT_KNOWN);
        assert_int_equal(ask(actions[i], "nobody", "", NULL), HF_INVALID_REQUEST);
        r = (struct hf_request){ .action = actions[i],
                                 .identity = { .guard = hf_str("g"),
                                               .identity = hf_mem(text, HF_IDENTITY_MAX + 1) } };
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
        r.identity.identity.size = HF_IDENTITY_MAX - i;
        r.identity.has_result = true;
        r.identity.result = hf_mem(text, HF_GUARD_RESULT_MAX + 1);
        assert_int_equal(world_do(w, &r), HF_INVALID_REQUEST);
        r.identity.result.size--;
        assert_int_equal(world_do(w, &r), HF_OK);
        /* A result that was not given has no length. */
        r.identity.has_result = false;
        r.identity.result.size = HF_GUARD_RESULT_MAX + 1;
        assert_int_equal(world_do(w, &r), HF_OK);
    }
}

static void a_result_that_is_empty_is_a_result(void **state)
{
    (void)state;
    assert_int_equal(set(guard("g", HOUR)), HF_OK);
    assert_int_equal(ask(HF_ADMIT, "g", "x", ""), HF_OK);
    assert_true(seen(HF_CHECK, "g", "x"));
    assert_true(w->plan.answer.seen.has_result && w->plan.answer.seen.result.size == 0);
    /* And one that was not given is not kept. */
    struct hf_request r = { .action = HF_RECORD,
                            .identity = { hf_str("g"), hf_str("y"), hf_str("stray"), false } };
    assert_int_equal(world_do(w, &r), HF_OK);
    assert_true(seen(HF_CHECK, "g", "y"));
    assert_true(!w->plan.answer.seen.has_result && w->plan.answer.seen.result.size == 0);
}

/* ---- When the store cannot ---- */

static void guards_open_and_closed(void)
{
    assert_int_equal(set(guard("open", HOUR)), HF_OK);
    struct hf_request r = guard("closed", HOUR);
    r.set_guard.on_unavailable = HF_FAIL_CLOSED;
    assert_int_equal(set(r), HF_OK);
    assert_false(seen(HF_ADMIT, "open", "old"));
    assert_false(seen(HF_ADMIT, "closed", "old"));
}

/* The answer came without the store: no times, no row; `missed` as given. */
static void answered_blind(bool want_seen, bool want_missed, bool got_seen)
{
    const struct hf_seen *s = &w->plan.answer.seen;
    assert_int_equal(got_seen, want_seen);
    assert_int_equal(w->plan.missed, want_missed);
    assert_int_equal(w->plan.row_count, 0);
    assert_true(s->recorded_at == 0 && s->expires_at == 0 && !s->has_result);
}

static void a_store_that_refuses_writes(void **state)
{
    (void)state;
    guards_open_and_closed();
    w->refuse_writes = true;
    answered_blind(false, true, seen(HF_RECORD, "open", "x"));
    answered_blind(false, true, seen(HF_RECORD, "closed", "x"));
    answered_blind(false, true, seen(HF_ADMIT, "open", "x"));
    answered_blind(true, false, seen(HF_ADMIT, "closed", "x"));
    answered_blind(false, false, seen(HF_CHECK, "open", "x"));
    answered_blind(false, false,
                   seen(HF_CHECK, "closed", "x")); /* it could be asked, and it said no */
    /* What is under guard needs no write. */
    assert_true(seen(HF_RECORD, "open", "old"));
    assert_false(w->plan.missed);
    assert_true(seen(HF_ADMIT, "open", "old"));
    assert_true(w->plan.answer.seen.recorded_at == WORLD_START);
}

static void an_entry_that_cannot_be_read(void **state)
{
    (void)state;
    guards_open_and_closed();
    w->unreadable[WORLD_ENTRY] = true;
    answered_blind(false, false, seen(HF_CHECK, "open", "old"));
    answered_blind(true, false, seen(HF_CHECK, "closed", "old"));
    answered_blind(false, true, seen(HF_ADMIT, "open", "old"));
    answered_blind(true, false, seen(HF_ADMIT, "closed", "old"));
    answered_blind(false, true, seen(HF_RECORD, "open", "old"));
    answered_blind(false, true, seen(HF_RECORD, "closed", "old"));
    w->unreadable[WORLD_ENTRY] = false;
    w->unreadable[WORLD_GUARD] = true; /* without the guard there is no policy to go by */
    assert_int_equal(ask(HF_CHECK, "open", "old", NULL), HF_STORAGE_FAILURE);
    assert_int_equal(ask(HF_RECORD, "open", "old", NULL), HF_STORAGE_FAILURE);
}

/* ---- The worked examples ---- */

static void example_todo_list(void **state)
{
    (void)state;
    assert_int_equal(set(guard("todo", 24 * HOUR)), HF_OK);
    (void)seen(HF_RECORD, "todo", "buy milk");
    w->now += 2 * HOUR;
    assert_true(seen(HF_CHECK, "todo", "buy milk"));
    assert_false(seen(HF_CHECK, "todo", "Buy milk")); /* exact */
    w->now = WORLD_START + 25 * HOUR;
    assert_false(seen(HF_CHECK, "todo", "buy milk"));
}

static void example_comment_double_post(void **state)
{
    (void)state;
    struct hf_request r = guard("comments", MINUTE);
    r.set_guard.match[0] = HF_MATCH_TRIM;
    r.set_guard.match[1] = HF_MATCH_NORMALIZE;
    r.set_guard.match_count = 2;
    assert_int_equal(set(r), HF_OK);
    (void)seen(HF_RECORD, "comments", "Nice  caf\xc3\xa9!");
    w->now += 3000;
    assert_true(seen(HF_CHECK, "comments", " Nice cafe\xcc\x81!\n"));
    assert_false(seen(HF_CHECK, "comments", "nice caf\xc3\xa9!"));
    w->now = WORLD_START + MINUTE;
    assert_false(seen(HF_CHECK, "comments", "Nice caf\xc3\xa9!"));
}

static void example_payment_with_replay(void **state)
{
    (void)state;
    assert_int_equal(set(guard("payments", 5 * MINUTE)), HF_OK);
    assert_false(seen(HF_CHECK, "payments", "pay-81"));
    assert_int_equal(ask(HF_RECORD, "payments", "pay-81", "charged 12.50"), HF_OK);
    w->now += 4 * MINUTE;
    assert_true(seen(HF_CHECK, "payments", "pay-81"));
    assert_true(is(w->plan.answer.seen.result, "charged 12.50"));
    w->now += MINUTE;
    assert_false(seen(HF_CHECK, "payments", "pay-81"));
}

static void example_newsletter(void **state)
{
    (void)state;
    struct hf_request r = guard("newsletter", HOUR);
    r.set_guard.match[0] = HF_MATCH_TRIM;
    r.set_guard.match[1] = HF_MATCH_CASEFOLD;
    r.set_guard.match[2] = HF_MATCH_HASH;
    r.set_guard.match_count = 3;
    assert_int_equal(set(r), HF_OK);
    assert_false(seen(HF_ADMIT, "newsletter", "Ann@Example.org"));
    assert_true(w->plan.rows[0].entry.identity.size ==
                HF_DIGEST_SIZE); /* the address is not kept */
    assert_true(seen(HF_ADMIT, "newsletter", "ann@example.ORG "));
    w->now += HOUR;
    assert_false(seen(HF_ADMIT, "newsletter", "ann@example.org"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_guard_is_set),
        TEST(only_changes_are_written),
        TEST(the_match_rule_stays_while_identities_are_under_guard),
        TEST(malformed_guards_are_refused),
        TEST(the_window_is_half_open),
        TEST(recording_again_changes_nothing),
        TEST(admit_checks_and_records),
        TEST(checking_changes_nothing),
        TEST(an_entry_keeps_its_end_when_the_guard_changes),
        TEST(guards_and_tenants_are_apart),
        TEST(malformed_questions_are_refused),
        TEST(a_result_that_is_empty_is_a_result),
        TEST(a_store_that_refuses_writes),
        TEST(an_entry_that_cannot_be_read),
        TEST(example_todo_list),
        TEST(example_comment_double_post),
        TEST(example_payment_with_replay),
        TEST(example_newsletter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

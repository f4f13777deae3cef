/* Guards over a real journal: the four worked examples of Duplicate Prevention, its four
 * invariants, and what is kept, where, for how long. */
#include "engine/kit/engine.h"
#include "support/test.h"

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

/* The question must be answered; was the identity seen? */
static bool seen(enum hf_action action, const char *guard, const char *identity, const char *result)
{
    assert_int_equal(kit_ask(k, action, guard, identity, result), HF_OK);
    assert_int_equal(k->got.answer.kind, HF_RECORD_SEEN);
    return k->got.answer.seen.seen;
}

static void guard_exact(const char *name, int64_t window_ms)
{
    assert_int_equal(kit_guard(k, name, window_ms, NULL, 0), HF_OK);
}

static void guard_kept(const char *name, bool volatile_only, enum hf_unavailable on_unavailable)
{
    assert_int_equal(
        kit_do(k, (struct hf_request){ .action = HF_SET_GUARD,
                                       .set_guard = { .name = hf_str(name),
                                                      .window_ms = HOUR,
                                                      .on_unavailable = on_unavailable,
                                                      .volatile_only = volatile_only } }),
        HF_OK);
}

static size_t entries(const char *guard, struct hf_page *page)
{
    struct hf_query q = { .kind = HF_LIST_ENTRIES, .name = hf_str(guard), .limit = HF_LIST_MAX };
    kit_list(k, &q, page);
    return page->count;
}

static size_t entry_count(const char *guard)
{
    struct hf_page page;
    size_t n = entries(guard, &page);
    hf_page_clear(&page);
    return n;
}

/* ---- The four worked examples ---- */

static void todo_of_24_hours_rejects_the_same_item_until_the_next_day(void **state)
{
    (void)state;
    guard_exact("todo", 24 * HOUR);
    assert_false(seen(HF_RECORD, "todo", "buy milk", NULL)); /* "buy milk" is deleted */
    kit_at(k, 2 * HOUR);
    assert_true(seen(HF_CHECK, "todo", "buy milk", NULL));
    assert_int_equal(k->got.answer.seen.recorded_at, KIT_START);
    assert_int_equal(k->got.answer.seen.expires_at, KIT_START + 24 * HOUR);
    assert_false(seen(HF_CHECK, "todo", "Buy milk", NULL)); /* exact: byte for byte */
    assert_false(seen(HF_CHECK, "todo", "buy milk ", NULL));
    kit_at(k, 24 * HOUR - 1);
    assert_true(seen(HF_CHECK, "todo", "buy milk", NULL));
    kit_at(k, 24 * HOUR);
    assert_false(seen(HF_CHECK, "todo", "buy milk", NULL));
    kit_at(k, 25 * HOUR);
    assert_false(seen(HF_CHECK, "todo", "buy milk", NULL));
}

static void comment_posted_twice_within_60_seconds_is_one_comment(void **state)
{
    (void)state;
    static const enum hf_match rule[] = { HF_MATCH_TRIM, HF_MATCH_NORMALIZE };
    assert_int_equal(kit_guard(k, "comments", MINUTE, rule, 2), HF_OK);
    assert_false(seen(HF_ADMIT, "comments", "Nice  caf\xc3\xa9!", NULL));
    kit_at(k,
           /* the page hangs, the second click: other spaces, another form of the same letter */
           3 * SECOND);
    assert_true(seen(HF_ADMIT, "comments", " Nice cafe\xcc\x81!\n", NULL));
    assert_false(seen(HF_CHECK, "comments", "nice caf\xc3\xa9!", NULL)); /* not case-insensitive */
    kit_at(k, MINUTE - 1);
    assert_true(seen(HF_ADMIT, "comments", "Nice caf\xc3\xa9!", NULL));
    kit_at(k, MINUTE);
    assert_false(seen(HF_ADMIT, "comments", "Nice caf\xc3\xa9!", NULL));
}

static void payment_retried_within_5_minutes_gets_the_first_response(void **state)
{
    (void)state;
    static const char charge[] = "{\"charge\":\"ch_1\",\"amount\":25000}";
    guard_exact("payments", 5 * MINUTE);
    assert_false(seen(HF_CHECK, "payments", "idem-1", NULL));
    assert_false(
        seen(HF_RECORD, "payments", "idem-1", charge)); /* charged, and the response kept with it */
    kit_at(k, 4 * MINUTE);
    assert_true(seen(HF_CHECK, "payments", "idem-1", NULL));
    assert_true(k->got.answer.seen.has_result);
    assert_true(kit_is(k->got.answer.seen.result, charge));
    kit_reopen(k);
    kit_at(k, 5 * MINUTE - 1);
    assert_true(seen(HF_CHECK, "payments", "idem-1", NULL));
    assert_true(kit_is(k->got.answer.seen.result, charge));
    kit_at(k, 5 * MINUTE);
    assert_false(seen(HF_CHECK, "payments", "idem-1", NULL));
    assert_false(k->got.answer.seen.has_result);
    assert_int_equal(k->got.answer.seen.result.size, 0);
}

static void newsletter_absorbs_a_second_subscription_within_the_hour(void **state)
{
    (void)state;
    static const enum hf_match rule[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD };
    static const char *const posts[] = { "Ann@Example.org", "ann@example.org", " ANN@EXAMPLE.ORG ",
                                         "ann@example.ORG" };
    assert_int_equal(kit_guard(k, "newsletter", HOUR, rule, 2), HF_OK);
    int mails = 0;
    for (int i = 0; i < 4; i++) {
        kit_at(k, i * 15 * MINUTE);
        mails += !seen(HF_ADMIT, "newsletter", posts[i], NULL);
    }
    assert_int_equal(mails, 1);
    kit_at(k, HOUR); /* of the first one: the absorbed ones did not move the window */
    assert_false(seen(HF_ADMIT, "newsletter", "ann@example.org", NULL));
}

/* ---- DP1 to DP4 ---- */

static void dp1_everything_listed_is_inside_its_window(void **state)
{
    (void)state;
    guard_exact("g", MINUTE);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "i%d", i);
        kit_at(k, i * SECOND);
        assert_false(seen(HF_RECORD, "g", name, NULL));
        struct hf_page page;
        size_t n = entries("g", &page);
        assert_int_equal(n, i < 60 ? i + 1 : 60);
        for (size_t e = 0; e < n; e++)
            assert_true(KIT_START + i * SECOND - page.entries[e].recorded_at < MINUTE);
        hf_page_clear(&page);
    }
}

static void dp2_recording_again_moves_neither_the_time_nor_the_result(void **state)
{
    (void)state;
    guard_exact("g", MINUTE);
    assert_false(seen(HF_RECORD, "g", "x", "first"));
    for (int i = 1; i < 60; i++) {
        kit_at(k, i * SECOND);
        assert_true(seen(i % 2 ? HF_RECORD : HF_ADMIT, "g", "x", "second"));
        assert_int_equal(k->got.answer.seen.recorded_at, KIT_START);
        assert_true(kit_is(k->got.answer.seen.result, "first"));
    }
    kit_at(k, MINUTE);
    assert_false(seen(HF_CHECK, "g", "x", NULL));
    assert_false(
        seen(HF_RECORD, "g", "x", "second")); /* expired, though still in memory: a fresh guard */
    assert_true(seen(HF_CHECK, "g", "x", NULL));
    assert_int_equal(k->got.answer.seen.recorded_at, KIT_START + MINUTE);
    assert_true(kit_is(k->got.answer.seen.result, "second"));
}

static void dp3_checking_changes_nothing(void **state)
{
    (void)state;
    guard_exact("g", MINUTE);
    assert_false(seen(HF_RECORD, "g", "x", NULL));
    struct hf_stats before = kit_stats(k);
    uint64_t written = kit_written(k);
    for (int i = 0; i < 50; i++) {
        assert_true(seen(HF_CHECK, "g", "x", NULL));
        assert_false(seen(HF_CHECK, "g", "y", NULL));
    }
    struct hf_stats after = kit_stats(k);
    assert_int_equal(after.entries, 1);
    assert_int_equal(kit_written(k), written);
    assert_int_equal(after.batches, before.batches);
    assert_int_equal(entry_count("g"), 1);
}

static void dp4_after_the_window_the_identity_leaves_the_memory_too(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static struct hf_request r[MANY];
    static char names[MANY][24];
    guard_exact("g", MINUTE);
    for (int group = 0; group < 10; group++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(names[i], sizeof names[i], "i%d", group * MANY + i);
            r[i] = (struct hf_request){ .action = HF_RECORD,
                                        .identity = { .guard = hf_str("g"),
                                                      .identity = hf_str(names[i]) } };
        }
        kit_at(k, group);
        assert_int_equal(hf_do_many(k->db, r, NULL, MANY), HF_OK);
    }
    assert_int_equal(kit_stats(k).entries, 10 * MANY);
    kit_at(k, MINUTE + 4); /* five of the ten groups are out */
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, 5 * MANY);
    assert_false(seen(HF_CHECK, "g", "i4999", NULL));
    assert_true(seen(HF_CHECK, "g", "i5000", NULL));
    uint64_t bytes = kit_stats(k).memory_bytes;
    kit_at(k, MINUTE + 9);
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, 0);
    assert_true(k->remote || kit_stats(k).memory_bytes < bytes);
}

/* ---- What is kept where ---- */

static void volatile_guards_forget_at_a_restart_and_durable_ones_do_not(void **state)
{
    (void)state;
    both_needs_files(); /* in a database they are kept as the others are */
    guard_kept("memory", true, HF_FAIL_OPEN);
    guard_kept("disk", false, HF_FAIL_OPEN);
    uint64_t journal = kit_stats(k).journal_bytes;
    assert_false(seen(HF_ADMIT, "memory", "x", "kept in memory"));
    assert_true(seen(HF_ADMIT, "memory", "x", NULL));
    assert_true(kit_is(k->got.answer.seen.result, "kept in memory"));
    assert_int_equal(kit_stats(k).journal_bytes, journal);
    assert_false(seen(HF_ADMIT, "disk", "x", "kept on disk"));
    assert_true(kit_stats(k).journal_bytes > journal);
    assert_int_equal(entry_count("memory"), 1);
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_GUARD, "memory"), HF_OK); /* the guard itself is durable */
    assert_false(k->got.answer.guard.durable);
    assert_int_equal(entry_count("memory"), 0);
    assert_false(seen(HF_CHECK, "memory", "x", NULL));
    assert_true(seen(HF_CHECK, "disk", "x", NULL));
    assert_true(kit_is(k->got.answer.seen.result, "kept on disk"));
    assert_false(kit_on_disk(k, "kept in memory", 14));
    assert_true(kit_on_disk(k, "kept on disk", 12));
}

static void volatile_entries_are_in_no_snapshot(void **state)
{
    (void)state;
    both_needs_files();
    k->options.snapshot_every_bytes = 100000;
    kit_reopen(k);
    guard_kept("memory", true, HF_FAIL_OPEN);
    assert_false(seen(HF_ADMIT, "memory", "never-to-disk", NULL));
    guard_exact("g", HOUR);
    for (int i = 0; i < 40; i++)
        assert_int_equal(kit_ask(k, HF_RECORD, "g", kit_key(k), NULL), HF_OK);
    kit_settle(k);
    assert_true(kit_stats(k).snapshots > 0);
    assert_true(seen(HF_CHECK, "memory", "never-to-disk", NULL));
    assert_false(kit_on_disk(k, "never-to-disk", 13));
    kit_reopen(k);
    assert_false(seen(HF_CHECK, "memory", "never-to-disk", NULL));
    assert_int_equal(entry_count("g"), 40);
}

static void hash_guards_store_no_byte_of_the_identity(void **state)
{
    (void)state;
    static const enum hf_match rule[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_HASH };
    k->options.snapshot_every_bytes = 50000;
    kit_reopen(k);
    assert_int_equal(kit_guard(k, "cards", HOUR, rule, 3), HF_OK);
    guard_exact("plain", HOUR);
    assert_false(seen(HF_ADMIT, "cards", "4111-1111-1111-1111-Ann", "ok"));
    assert_true(seen(HF_ADMIT, "cards", " 4111-1111-1111-1111-ANN", NULL));
    assert_false(seen(HF_ADMIT, "plain", "5500-0000-0000-0004", NULL));
    for (int i = 0; i < 20; i++)
        assert_int_equal(kit_ask(k, HF_RECORD, "plain", kit_key(k), NULL), HF_OK);
    kit_settle(k); /* a snapshot too */
    assert_true(k->remote || kit_stats(k).snapshots > 0);
    assert_true(kit_on_disk(k, "5500-0000", 9)); /* the search does find what is there */
    assert_false(kit_on_disk(k, "4111-1111", 9));
    assert_false(kit_on_disk(k, "-ann", 4));
    assert_false(kit_on_disk(k, "-ANN", 4));
    assert_false(kit_on_disk(k, "-Ann", 4));
    struct hf_page page;
    assert_int_equal(entries("cards", &page), 1);
    assert_int_equal(page.entries[0].identity.size, 32);
    hf_page_clear(&page);
    kit_reopen(k);
    assert_true(seen(HF_CHECK, "cards", "4111-1111-1111-1111-ann", NULL));
    assert_false(seen(HF_CHECK, "cards", "4111-1111-1111-1112-ann", NULL));
}

static void the_recorded_set_is_listed_newest_first(void **state)
{
    (void)state;
    guard_exact("g", HOUR);
    assert_int_equal(entry_count("g"), 0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "one", "two", "three" };
        kit_at(k, i);
        assert_false(seen(HF_RECORD, "g", names[i], i == 1 ? "with a result" : NULL));
    }
    struct hf_page page;
    assert_int_equal(entries("g", &page), 3);
    assert_true(kit_is(page.entries[0].identity, "three"));
    assert_true(kit_is(page.entries[1].identity, "two"));
    assert_true(kit_is(page.entries[2].identity, "one"));
    assert_true(page.entries[1].has_result && kit_is(page.entries[1].result, "with a result"));
    assert_false(page.entries[0].has_result);
    assert_true(kit_is(page.entries[0].guard, "g"));
    assert_int_equal(page.entries[2].recorded_at, KIT_START);
    assert_int_equal(page.entries[2].expires_at, KIT_START + HOUR);
    hf_page_clear(&page);
}

static void a_changed_window_is_for_new_recordings(void **state)
{
    (void)state;
    guard_exact("g", HOUR);
    assert_false(seen(HF_RECORD, "g", "old", NULL));
    guard_exact("g", MINUTE);
    assert_false(seen(HF_RECORD, "g", "new", NULL));
    kit_at(k, MINUTE);
    kit_settle(k);
    assert_true(seen(HF_CHECK, "g", "old", NULL));
    assert_false(seen(HF_CHECK, "g", "new", NULL));
    assert_int_equal(entry_count("g"), 1);
    kit_at(k, HOUR);
    assert_false(seen(HF_CHECK, "g", "old", NULL));
}

static enum hf_status rule(const char *name, enum hf_match step, bool force, bool volatile_only)
{
    struct hf_request r = { .action = HF_SET_GUARD,
                            .set_guard = { .name = hf_str(name),
                                           .window_ms = HOUR,
                                           .match = { step },
                                           .match_count = 1,
                                           .volatile_only = volatile_only,
                                           .force = force } };
    return kit_do(k, r);
}

/* Under another match rule a duplicate of what is under guard might pass. */
static void a_match_rule_stays_while_identities_are_under_guard(void **state)
{
    (void)state;
    guard_exact("other", HOUR);
    assert_false(seen(HF_RECORD, "other", "x", NULL));
    for (int i = 0; i < 2; i++) { /* durable, and in memory alone */
        const char *name = i ? "volatile" : "durable";
        assert_int_equal(rule(name, HF_MATCH_TRIM, false, i), HF_OK);
        assert_int_equal(rule(name, HF_MATCH_CASEFOLD, false, i), HF_OK);
        assert_false(seen(HF_RECORD, name, "X", NULL));
        assert_int_equal(rule(name, HF_MATCH_EXACT, false, i), HF_WINDOW_NOT_ELAPSED);
        assert_int_equal(k->got.answer.kind, HF_RECORD_GUARD);
        assert_int_equal(k->got.answer.guard.match[0], HF_MATCH_CASEFOLD);
        assert_int_equal(rule(name, HF_MATCH_CASEFOLD, false, i), HF_OK);
        assert_int_equal(rule(name, HF_MATCH_HASH, true, i), HF_OK);
        assert_false(seen(HF_CHECK, name, "X", NULL));
        assert_false(seen(HF_RECORD, name, "X", NULL));
    }
    kit_reopen(k);
    assert_int_equal(rule("durable", HF_MATCH_TRIM, false, false), HF_WINDOW_NOT_ELAPSED);
    /* A window that was shortened does not end what was recorded before. */
    const struct hf_request hashed = { .action = HF_SET_GUARD,
                                       .set_guard = { .name = hf_str("durable"),
                                                      .window_ms = SECOND,
                                                      .match = { HF_MATCH_HASH },
                                                      .match_count = 1 } };
    assert_int_equal(kit_do(k, hashed), HF_OK);
    assert_false(seen(HF_RECORD, "durable", "newer", NULL));
    kit_at(k, MINUTE);
    assert_int_equal(rule("durable", HF_MATCH_TRIM, false, false), HF_WINDOW_NOT_ELAPSED);
    kit_at(k, HOUR);
    assert_int_equal(rule("durable", HF_MATCH_TRIM, false, false), HF_OK);
}

/* In one commit too: what the same batch has recorded counts. */
static void a_match_rule_stays_over_what_the_same_batch_recorded(void **state)
{
    (void)state;
    guard_exact("g", HOUR);
    struct hf_request requests[2] = { { .action = HF_RECORD }, { .action = HF_SET_GUARD } };
    struct hf_result results[2] = { HF_RESULT_INIT, HF_RESULT_INIT };
    requests[0].identity.guard = requests[1].set_guard.name = hf_str("g");
    requests[0].identity.identity = hf_str("x");
    requests[1].set_guard.window_ms = HOUR;
    requests[1].set_guard.match[0] = HF_MATCH_TRIM;
    requests[1].set_guard.match_count = 1;
    assert_int_equal(hf_do_many(k->db, requests, results, 2), HF_OK);
    assert_int_equal(results[0].answer.status, HF_OK);
    /* On PostgreSQL the second may be decided before the first. */
    bool first = results[1].answer.status == HF_OK;
    assert_true(results[1].answer.status == HF_WINDOW_NOT_ELAPSED || (first && both_is_postgres()));
    hf_result_clear(&results[0]);
    hf_result_clear(&results[1]);
}

static void guards_do_not_mix(void **state)
{
    (void)state;
    guard_exact("a", HOUR);
    guard_exact("b", HOUR);
    guard_exact("ab", HOUR);
    assert_false(seen(HF_RECORD, "a", "bx", NULL));
    assert_false(seen(HF_CHECK, "b", "bx", NULL));
    assert_false(seen(HF_CHECK, "ab", "x", NULL)); /* neither by running names together */
    assert_true(seen(HF_CHECK, "a", "bx", NULL));
    assert_int_equal(kit_ask(k, HF_CHECK, "c", "bx", NULL), HF_NOT_KNOWN);
    assert_int_equal(kit_ask(k, HF_RECORD, "c", "bx", NULL), HF_NOT_KNOWN);
}

static void many_guards_live_side_by_side(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    struct hf_request *r = calloc(MANY, sizeof *r);
    char(*names)[24] = calloc(MANY, sizeof *names);
    assert_non_null(r);
    assert_non_null(names);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "guard-%d", i);
        r[i] = (struct hf_request){ .action = HF_SET_GUARD,
                                    .set_guard = { .name = hf_str(names[i]),
                                                   .window_ms = (i + 1) * SECOND } };
    }
    assert_int_equal(hf_do_many(k->db, r, NULL, MANY), HF_OK);
    for (int i = 0; i < MANY; i++)
        r[i] = (struct hf_request){
            .action = HF_RECORD, .identity = { .guard = hf_str(names[i]), .identity = hf_str("x") }
        };
    assert_int_equal(hf_do_many(k->db, r, NULL, MANY), HF_OK);
    kit_reopen(k);
    kit_at(k, 700 * SECOND);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen(HF_CHECK, names[i], "x", NULL), i + 1 > 700);
    kit_settle(k);
    assert_int_equal(kit_stats(k).entries, MANY - 700);
    assert_int_equal(kit_stats(k).guards, MANY);
    free(r);
    free(names);
}

/* ---- A full store ---- */

/* Use up the journal that is there, with no room for more. */
static void fill_the_disk(void)
{
    atomic_store(&k->io.room, 0);
    enum hf_status st = HF_OK;
    for (int i = 0; st == HF_OK && i < 100000; i++)
        st = kit_place(k, kit_key(k), kit_key(k), "guest", HOUR);
    assert_int_equal(st, HF_STORAGE_FAILURE);
    st = HF_OK; /* what needs less may still have fitted */
    for (int i = 0; st == HF_OK && i < 1000; i++)
        st = kit_resource(k, kit_key(k), 1);
    assert_int_equal(st, HF_STORAGE_FAILURE);
    assert_true(kit_stats(k).out_of_space);
}

static void a_full_store_records_nothing_but_says_ok_and_counts(void **state)
{
    (void)state;
    both_needs_files();
    guard_kept("open", false, HF_FAIL_OPEN);
    guard_kept("closed", false, HF_FAIL_CLOSED);
    assert_false(seen(HF_RECORD, "open", "before", NULL));
    assert_false(seen(HF_RECORD, "closed", "before", NULL));
    fill_the_disk();
    assert_int_equal(kit_stats(k).guard_misses, 0);
    assert_false(seen(HF_RECORD, "open", "x", NULL));
    assert_false(seen(HF_RECORD, "closed", "x", NULL)); /* record never blocks */
    assert_int_equal(kit_stats(k).guard_misses, 2);
    assert_false(seen(HF_ADMIT, "open", "y", NULL));
    assert_int_equal(kit_stats(k).guard_misses, 3);
    assert_true(seen(HF_ADMIT, "closed", "y", NULL));
    assert_int_equal(k->got.answer.seen.recorded_at, 0);
    assert_int_equal(k->got.answer.seen.expires_at, 0);
    assert_int_equal(kit_stats(k).guard_misses, 3);
    /* Reading goes on: what is known is known, what was missed is not. */
    assert_true(seen(HF_ADMIT, "open", "before", NULL));
    assert_true(seen(HF_RECORD, "closed", "before", NULL));
    assert_false(seen(HF_CHECK, "open", "x", NULL));
    assert_false(seen(HF_CHECK, "closed", "y", NULL));
    assert_int_equal(kit_guard(k, "new", HOUR, NULL, 0), HF_STORAGE_FAILURE);
    atomic_store(&k->io.room, -1);
    atomic_fetch_add(&k->io.later_ns,
                     2 * UINT64_C(1000000000)); /* maintenance tries once a second */
    kit_settle(k);
    assert_false(kit_stats(k).out_of_space);
    assert_false(seen(HF_ADMIT, "open", "y", NULL));
    assert_true(seen(HF_ADMIT, "open", "y", NULL));
}

static void a_volatile_guard_works_on_a_full_disk(void **state)
{
    (void)state;
    both_needs_files();
    guard_kept("memory", true, HF_FAIL_CLOSED);
    fill_the_disk();
    assert_false(seen(HF_ADMIT, "memory", "x", NULL));
    assert_true(seen(HF_ADMIT, "memory", "x", NULL));
    assert_int_equal(kit_stats(k).guard_misses, 0);
}

static void identities_are_judged_before_the_guard_is_asked(void **state)
{
    (void)state;
    static const enum hf_match trim[] = { HF_MATCH_TRIM };
    assert_int_equal(kit_guard(k, "trim", HOUR, trim, 1), HF_OK);
    guard_exact("exact", HOUR);
    assert_int_equal(kit_ask(k, HF_ADMIT, "trim", "  ", NULL),
                     HF_INVALID_REQUEST); /* nothing is left */
    assert_int_equal(kit_ask(k, HF_ADMIT, "trim", "\xff", NULL), HF_INVALID_REQUEST); /* not text */
    assert_int_equal(kit_ask(k, HF_ADMIT, "exact", "", NULL), HF_INVALID_REQUEST);
    assert_false(seen(HF_ADMIT, "exact", "\xff\xfe", NULL)); /* bytes may be any */
    assert_true(seen(HF_ADMIT, "exact", "\xff\xfe", NULL));
    assert_int_equal(kit_stats(k).entries, 1);
}

/* A guard whose window was shortened once kept every later entry in memory until the last one of
 * the old window had run out (here ten years). */
static void entries_of_a_shortened_window_leave_the_memory(void **s)
{
    (void)s;
    struct kit *own = kit_make();
    assert_int_equal(kit_guard(own, "g", HF_DURATION_MAX_MS, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(own, HF_RECORD, "g", "head", NULL), HF_OK);
    assert_int_equal(kit_guard(own, "g", SECOND, NULL, 0), HF_OK);
    for (int i = 0; i < 500; i++) {
        kit_at(own, i * MINUTE);
        assert_int_equal(kit_ask(own, HF_RECORD, "g", kit_key(own), NULL), HF_OK);
    }
    kit_at(own, DAY);
    for (int i = 0; i < 1100; i++) /* once round the table */
        hf_maintain(own->db);
    assert_int_equal(kit_stats(own).entries, 1);
    kit_free(own);
}

/* memory_max_bytes does not hold for guards that are kept in memory alone: they grow without
 * limit. */
static void volatile_guards_keep_to_the_memory_limit(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *own = kit_make();
    own->options.memory_max_bytes = 2 << 20;
    kit_reopen(own);
    assert_int_equal(kit_do(own, (struct hf_request){ .action = HF_SET_GUARD,
                                                      .set_guard = { .name = hf_str("g"),
                                                                     .window_ms = DAY,
                                                                     .volatile_only = true } }),
                     HF_OK);
    char id[32], big[1000];
    memset(big, 'x', sizeof big);
    big[999] = 0;
    for (int i = 0; i < 10000; i++) {
        snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(kit_ask(own, HF_RECORD, "g", id, big), HF_OK);
    }
    struct hf_stats st = kit_stats(own);
    printf("memory %llu of 2 MiB, entries %llu, misses %llu\n", (unsigned long long)st.memory_bytes,
           (unsigned long long)st.entries, (unsigned long long)st.guard_misses);
    assert_true(st.memory_bytes < 3 << 20);
    kit_free(own);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(todo_of_24_hours_rejects_the_same_item_until_the_next_day),
        TEST(comment_posted_twice_within_60_seconds_is_one_comment),
        TEST(payment_retried_within_5_minutes_gets_the_first_response),
        TEST(newsletter_absorbs_a_second_subscription_within_the_hour),
        TEST(dp1_everything_listed_is_inside_its_window),
        TEST(dp2_recording_again_moves_neither_the_time_nor_the_result),
        TEST(dp3_checking_changes_nothing),
        TEST(dp4_after_the_window_the_identity_leaves_the_memory_too),
        TEST(volatile_guards_forget_at_a_restart_and_durable_ones_do_not),
        TEST(volatile_entries_are_in_no_snapshot),
        TEST(hash_guards_store_no_byte_of_the_identity),
        TEST(the_recorded_set_is_listed_newest_first),
        TEST(a_changed_window_is_for_new_recordings),
        TEST(a_match_rule_stays_while_identities_are_under_guard),
        TEST(a_match_rule_stays_over_what_the_same_batch_recorded),
        TEST(guards_do_not_mix),
        TEST(many_guards_live_side_by_side),
        TEST(a_full_store_records_nothing_but_says_ok_and_counts),
        TEST(a_volatile_guard_works_on_a_full_disk),
        TEST(identities_are_judged_before_the_guard_is_asked),
        cmocka_unit_test(entries_of_a_shortened_window_leave_the_memory),
        cmocka_unit_test(volatile_guards_keep_to_the_memory_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lists over what many wrote at once. */
#include "engine/kit/engine.h"
#include "postgres/kit/functions.h"
#include "postgres/kit/postgres.h"
#include "postgres/kit/swift.h"
#include "support/test.h"

#include "holdfast.h"
#include "store/postgres/replicated.h"

static struct postgres p;

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int end(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static size_t listed(struct hf_db *db, hf_time from, hf_time to)
{
    struct hf_page page = { .count = 0 };
    struct hf_query query = { .kind = HF_LIST_HOLDS, .from = from, .to = to };
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    size_t count = page.count;
    assert_int_equal(page.next_cursor, 0);
    hf_page_clear(&page);
    return count;
}

/* Transactions that overlap draw their ordinals in another order than they took the time: the third
 * was placed before the second. */
static void a_hold_is_listed_by_its_time_whoever_was_numbered_before_it(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    postgres_run(&p, "SELECT holdfast.place_hold('k' || i, 'r' || i, 'guest', '1 hour') FROM "
                     "generate_series(1, 4) i");
    postgres_run(&p, "UPDATE holdfast.hold SET placed_at = '2026-01-01 00:00:00Z'::timestamptz + "
                     "(ARRAY[0, 20, 18, 30])[ordinal] * interval '1 ms'");
    const hf_time start = INT64_C(1767225600000);
    assert_int_equal(listed(db, 0, 0), 4);
    assert_int_equal(listed(db, 0, start + 20), 2);
    assert_int_equal(listed(db, start + 20, 0), 2);
    assert_int_equal(listed(db, start + 19, start + 30), 1);
    assert_int_equal(listed(db, start + 31, 0), 0);
    hf_close(db);
}

/* Another server has committed something at a later time, of which this one has heard nothing
 * yet. */
static void identities_are_listed_by_engine_time(void **state)
{
    struct hf_options options = { .postgres = postgres_conninfo(&p), .no_background = true };
    struct hf_query query = { .kind = HF_LIST_ENTRIES, .name = hf_str("seen") };
    struct hf_page page = { .count = 0 };
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    struct hf_request set = { .action = HF_SET_GUARD,
                              .set_guard = { .name = hf_str("seen"), .window_ms = 1800000 } };
    struct hf_request record = { .action = HF_RECORD,
                                 .identity = { hf_str("seen"), hf_str("x"), hf_str(""), false } };
    assert_int_equal(hf_do(db, &set, NULL), HF_OK);
    assert_int_equal(hf_do(db, &record, NULL), HF_OK);
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    assert_int_equal(page.count, 1);
    hf_page_clear(&page);
    postgres_run(&p, "UPDATE holdfast.journal SET at = at + interval '1 hour' WHERE number = "
                     "(SELECT max(number) FROM holdfast.journal)");
    assert_int_equal(hf_list(db, &query, &page), HF_OK);
    assert_int_equal(page.count, 0);
    hf_page_clear(&page);
    hf_close(db);
}

/* Which transactions the standbys are known to have: numbers that wrap around, timelines, and what
 * is forgotten. No database. */

#define EPOCH (UINT64_C(1) << 32)

static void a_number_gets_its_epoch(void **state)
{
    (void)state;
    assert_int_equal(hf_pg_xid(700, 701), 700);
    assert_int_equal(hf_pg_xid(700, 3 * EPOCH + 701), 3 * EPOCH + 700);
    assert_int_equal(hf_pg_xid(700, 3 * EPOCH + 700),
                     2 * EPOCH + 700); /* nobody can see it in this epoch yet */
    assert_int_equal(hf_pg_xid(UINT32_MAX, 3 * EPOCH + 5), 3 * EPOCH - 1);
    for (uint32_t special = 0; special < 3; special++)
        assert_int_equal(hf_pg_xid(special, 3 * EPOCH + 5), 0);
}

static void nothing_is_known_at_first(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    assert_false(hf_pg_replicated_has(&r, 1, 3));
    assert_false(hf_pg_replicated_has(&r, 0, 3));
    assert_true(hf_pg_replicated_has(&r, 1, 0)); /* frozen */
}

static void all_below_are_known_and_single_ones(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    hf_pg_replicated_below(&r, 1, EPOCH + 100);
    assert_true(hf_pg_replicated_has(&r, 1, 99) && hf_pg_replicated_has(&r, 1, EPOCH + 99));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 100));
    hf_pg_replicated_below(&r, 1, 50); /* it was slower */
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 99));
    hf_pg_replicated_add(&r, 1, EPOCH + 200);
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 200));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 199));
    /* Another with the same place: one of the two is forgotten, and none is made up. */
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 200 + HF_PG_KNOWN));
    hf_pg_replicated_add(&r, 1, EPOCH + 200 + HF_PG_KNOWN);
    assert_true(hf_pg_replicated_has(&r, 1, EPOCH + 200 + HF_PG_KNOWN));
    assert_false(hf_pg_replicated_has(&r, 1, EPOCH + 200));
}

/* For a row that is not there. */
static void all_are_known_up_to_a_number(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    assert_false(hf_pg_replicated_all(&r, 1, 100));
    hf_pg_replicated_below(&r, 1, 100);
    assert_true(hf_pg_replicated_all(&r, 1, 99) && hf_pg_replicated_all(&r, 1, 100));
    assert_false(hf_pg_replicated_all(&r, 1, 101) || hf_pg_replicated_all(&r, 2, 100));
    hf_pg_replicated_add(&r, 1, 101);
    assert_false(hf_pg_replicated_all(&r, 1, 102)); /* 100 is missing */
    hf_pg_replicated_add(&r, 1, 100);
    assert_true(hf_pg_replicated_all(&r, 1, 102));
    assert_false(hf_pg_replicated_all(&r, 1, 103));
    for (uint64_t i = 100; i < 101 + HF_PG_KNOWN; i++)
        hf_pg_replicated_add(&r, 1, i);
    assert_false(hf_pg_replicated_all(&r, 1, 101 + HF_PG_KNOWN)); /* 100 is forgotten */
    hf_pg_replicated_below(&r, 1, 101);
    assert_true(hf_pg_replicated_all(&r, 1, 101 + HF_PG_KNOWN));
    assert_false(hf_pg_replicated_all(&r, 1, UINT64_C(1) << 47));
}

/* A standby that was promoted gives numbers that it has not heard of to others. */
static void a_timeline_knows_nothing_of_another(void **state)
{
    struct hf_pg_replicated r = { .below = 0 };
    (void)state;
    hf_pg_replicated_below(&r, 1, 1000);
    hf_pg_replicated_add(&r, 1, 1500);
    assert_false(hf_pg_replicated_has(&r, 2, 999) || hf_pg_replicated_has(&r, 2, 1500));
    hf_pg_replicated_below(&r, 2, 800);
    assert_true(hf_pg_replicated_has(&r, 2, 799));
    assert_false(hf_pg_replicated_has(&r, 2, 999) || hf_pg_replicated_has(&r, 1, 799));
    hf_pg_replicated_below(&r, 1, 2000); /* an old primary does not come back */
    assert_false(hf_pg_replicated_has(&r, 1, 799) || hf_pg_replicated_has(&r, 2, 800));
}

/* The head of each writer's chain is told at its first batch and at the end, so that a log kept
 * elsewhere proves later what was there. */

static char heads[4][160];
static int count;

static void on_note(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strncmp(line, "chain head of writer ", 21) == 0 && count < 4)
        snprintf(heads[count++], sizeof heads[0], "%s", line);
}

static void heads_are_those_of_the_database(void **state)
{
    struct hf_options options = { .no_background = true,
                                  .postgres = postgres_conninfo(&swift.p),
                                  .on_note = on_note };
    struct hf_request first = swift_placing("a", "room-a", SWIFT_HOUR_MS),
                      second = swift_placing("b", "room-b", SWIFT_HOUR_MS);
    struct hf_error why;
    struct hf_db *db;
    (void)state;
    assert_int_equal(hf_open(NULL, &options, &db, &why), HF_OK);
    assert_int_equal(hf_do(db, &first, NULL), HF_OK);
    assert_int_equal(hf_do(db, &second, NULL), HF_OK);
    hf_close(db);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        char sql[400], hex[65];
        int writer, batch;
        assert_int_equal(
            sscanf(heads[i], "chain head of writer %d: %64s after batch %d", &writer, hex, &batch),
            3);
        if (i == 0) {
            assert_int_equal(batch, 1);
            continue;
        }
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM holdfast.writer WHERE id = %d AND batch = %d AND "
                 "encode(chain, 'hex') = '%s'",
                 writer, batch, hex);
        assert_int_equal(postgres_number(&swift.p, sql), 1);
    }
}

/* What a batch reads does not grow with what is stored: every row is found by its key, also by
 * plans that were made while the tables were empty, before the database has gathered any statistics
 * of them, or when these say that the tables are empty. */

enum { GROUP = 400, GROUPS = 8, READ_MAX = 40 };
static struct hf_db *db;
static struct hf_request requests[GROUP];
static struct hf_result results[GROUP];
static char names[GROUP][32];
static char ids[GROUP][HF_ID_SIZE];

/* How many rows and entries of indexes have been read, by those who have ended. */
static long long all_read(void)
{
    return postgres_number(
        &p, "SELECT coalesce((SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE schemaname = "
            "'holdfast'), 0) + coalesce((SELECT sum(seq_tup_read) FROM pg_stat_all_tables WHERE "
            "schemaname = 'holdfast' AND relname <> 'store'), 0)");
}

/* Close the store. Since there were `before` no more may have been read than is right for
 * `rows`. */
static void close_store(const char *what, long long before, long long rows)
{
    hf_close(db);
    db = NULL;
    postgres_await_number(
        &p, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'", 0);
    long long read = all_read() - before;
    print_message("%s: %lld read for %lld\n", what, read, rows);
    assert_true(read < rows * READ_MAX);
}

static void open_store(void)
{
    const struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&p) };
    struct hf_error why;
    if (hf_open(NULL, &options, &db, &why) != HF_OK)
        fail_msg("%s", why.text);
}

/* ---- One request of each kind, for the i-th name ---- */

static enum hf_status applied(struct hf_tx *tx, void *arg)
{
    struct hf_bytes value;
    const char *name = arg;
    enum hf_status st = hf_tx_get(tx, hf_str(name), &value);
    return st == HF_NOT_KNOWN ? hf_tx_put(tx, hf_str(name), hf_str("value")) : HF_REFUSED;
}

static struct hf_request place(int i)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(names[i]),
                                .place_hold = { hf_str(names[i]), hf_str("guest"), 3600000, 0 } };
}

static struct hf_request what_became(int i)
{
    return (struct hf_request){ .action = HF_GET_TOKEN, .key = hf_str(names[i]) };
}

static struct hf_request confirm(int i)
{
    static char keys[GROUP][48];
    snprintf(keys[i], sizeof keys[i], "confirm %s", names[i]);
    return (struct hf_request){ .action = HF_CONFIRM,
                                .key = hf_str(keys[i]),
                                .hold = { hf_str(ids[i]) } };
}

static struct hf_request guard(int i)
{
    return (struct hf_request){ .action = HF_SET_GUARD,
                                .set_guard = { .name = hf_str(names[i]), .window_ms = 3600000 } };
}

static struct hf_request admit(int i)
{
    return (struct hf_request){
        .action = HF_ADMIT, .identity = { .guard = hf_str("all"), .identity = hf_str(names[i]) }
    };
}

static struct hf_request begin_plans(int i)
{
    static char keys[GROUP][48];
    snprintf(keys[i], sizeof keys[i], "claim %s", names[i]);
    return (struct hf_request){ .action = HF_BEGIN,
                                .key = hf_str(keys[i]),
                                .begin = { .lease_ms = 60000 } };
}

static struct hf_request grant(int i)
{
    static char keys[GROUP][48];
    snprintf(keys[i], sizeof keys[i], "grant %s", names[i]);
    return (struct hf_request){ .action = HF_GRANT,
                                .key = hf_str(keys[i]),
                                .lease = { hf_str(names[i]), hf_str("holder"), 60000, 0 } };
}

static struct hf_request write(int i)
{
    static char keys[GROUP][48];
    snprintf(keys[i], sizeof keys[i], "write %s", names[i]);
    return (struct hf_request){ .action = HF_WRITE,
                                .key = hf_str(keys[i]),
                                .write = { .name = hf_str(names[i]), .value = hf_str("value") } };
}

static struct hf_request numbered(int i)
{
    return (struct hf_request){ .action = HF_PLACE_HOLD,
                                .client = hf_str(names[i]),
                                .sequence = 1,
                                .place_hold = { hf_str(names[i]), hf_str("guest"), 3600000, 0 } };
}

static void name_all(const char *kind, int group)
{
    for (int i = 0; i < GROUP; i++)
        snprintf(names[i], sizeof names[i], "%s-%d-%d", kind, group, i);
}

static void do_all(struct hf_request (*make)(int i))
{
    for (int i = 0; i < GROUP; i++)
        requests[i] = make(i);
    assert_int_equal(hf_do_many(db, requests, results, GROUP), HF_OK);
    for (int i = 0; i < GROUP; i++) {
        bool in_progress =
            results[i].answer.status == HF_IN_PROGRESS; /* the second begin of a key */
        assert_true(results[i].answer.status == HF_OK || (in_progress && make == begin_plans));
        if (results[i].answer.kind == HF_RECORD_HOLD)
            memcpy(ids[i], results[i].answer.hold.id, HF_ID_SIZE);
        hf_result_clear(&results[i]);
    }
}

/* ---- Many of them, one kind after the other ---- */

static void every_row_is_found_by_its_key(void **state)
{
    static const struct {
        const char *name;
        struct hf_request (*make)(int i);
    } kinds[] = { { "place", place },       { "guard", guard }, { "admit", admit },
                  { "begin", begin_plans }, { "grant", grant }, { "write", write },
                  { "numbered", numbered } };
    (void)state;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        open_store();
        if (n == 0) {
            snprintf(names[0], sizeof names[0], "all");
            struct hf_request all = guard(0);
            assert_int_equal(hf_do(db, &all, NULL), HF_OK);
        }
        long long before = all_read();
        for (int group = 0; group < GROUPS; group++) {
            name_all(kinds[n].name, group);
            do_all(kinds[n].make);
            do_all(kinds[n].make); /* and again, when it is there */
            if (kinds[n].make == place)
                do_all(what_became);
            if (kinds[n].make == place && group % 2) /* the others stay held */
                do_all(confirm);
        }
        close_store(kinds[n].name, before, (long long)GROUP * GROUPS * 3);
    }
}

static void values_are_found_by_their_key(void **state)
{
    enum { VALUES = 600 };
    (void)state;
    open_store();
    long long before = all_read();
    for (int i = 0; i < VALUES; i++) {
        char key[32];
        snprintf(key, sizeof key, "value-%d", i);
        struct hf_request r = { .action = HF_APPLY,
                                .key = hf_str(key),
                                .apply = { .name = hf_str("put"), .fn = applied, .arg = key } };
        assert_int_equal(hf_do(db, &r, NULL), HF_OK);
    }
    close_store("apply", before, VALUES);
}

static void a_page_reads_what_it_shows(void **state)
{
    static const struct {
        const char *name;
        enum hf_list_kind kind;
    } lists[] = { { "resources", HF_LIST_RESOURCES },
                  { "guards", HF_LIST_GUARDS },
                  { "entries", HF_LIST_ENTRIES },
                  { "holds", HF_LIST_HOLDS } };
    enum { PAGES = 20, LIMIT = 50 };
    (void)state;
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++) {
        struct hf_query q = { .kind = lists[n].kind, .name = hf_str("all"), .limit = LIMIT };
        open_store();
        long long before = all_read();
        for (int pages = 0; pages < PAGES; pages++) {
            struct hf_page page;
            assert_int_equal(hf_list(db, &q, &page), HF_OK);
            assert_int_equal(page.count, LIMIT);
            q.cursor = page.next_cursor;
            hf_page_clear(&page);
        }
        close_store(lists[n].name, before, PAGES * LIMIT);
    }
}

/* A new store, of which the database has heard nothing. */
static int fresh(void **state)
{
    (void)state;
    hf_close(db);
    db = NULL;
    postgres_run(&p, "DROP SCHEMA IF EXISTS holdfast CASCADE");
    return 0;
}

/* A new store of which it knows that there is nothing in it. Nobody tells it anything else
 * later. */
static int known_as_empty(void **state)
{
    fresh(state);
    open_store();
    hf_close(db);
    db = NULL;
    postgres_run(&p, "VACUUM ANALYZE");
    return 0;
}

static int begin_all(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_set(&p, "autovacuum", "off");
    postgres_start(&p);
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    hf_close(db);
    postgres_end(&p);
    return 0;
}

int main(void)
{
    const struct CMUnitTest lists_tests[] = {
        cmocka_unit_test(a_hold_is_listed_by_its_time_whoever_was_numbered_before_it),
        cmocka_unit_test(identities_are_listed_by_engine_time),
    };
    const struct CMUnitTest known_tests[] = {
        cmocka_unit_test(a_number_gets_its_epoch),
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(all_below_are_known_and_single_ones),
        cmocka_unit_test(all_are_known_up_to_a_number),
        cmocka_unit_test(a_timeline_knows_nothing_of_another),
    };
    const struct CMUnitTest heads_tests[] = {
        cmocka_unit_test_setup_teardown(heads_are_those_of_the_database, swift_set_up,
                                        swift_tear_down),
    };
    const struct CMUnitTest plans_tests[] = {
        cmocka_unit_test_setup(every_row_is_found_by_its_key, fresh),
        cmocka_unit_test(values_are_found_by_their_key),
        cmocka_unit_test(a_page_reads_what_it_shows),
        cmocka_unit_test_setup(every_row_is_found_by_its_key, known_as_empty),
        cmocka_unit_test(values_are_found_by_their_key),
        cmocka_unit_test(a_page_reads_what_it_shows),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(lists_tests, begin, end);
    failed += cmocka_run_group_tests(known_tests, NULL, NULL);
    failed += cmocka_run_group_tests(heads_tests, swift_group_set_up, swift_group_tear_down);
    failed += cmocka_run_group_tests(plans_tests, begin_all, end_all);
    return failed;
}

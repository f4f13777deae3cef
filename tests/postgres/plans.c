/* What a batch reads does not grow with what is stored: every row is found by its key, also by
 * plans that were made while the tables were empty, before the database has gathered any statistics
 * of them, or when these say that the tables are empty. */
#include "postgres/kit/postgres.h"
#include "support/test.h"

#include "holdfast.h"

enum { GROUP = 400, GROUPS = 8, READ_MAX = 40 };

static struct postgres p;
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

static struct hf_request begin(int i)
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
        assert_true(results[i].answer.status == HF_OK || (in_progress && make == begin));
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
    } kinds[] = { { "place", place },      { "guard", guard }, { "admit", admit },
                  { "begin", begin },      { "grant", grant }, { "write", write },
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_row_is_found_by_its_key, fresh),
        cmocka_unit_test(values_are_found_by_their_key),
        cmocka_unit_test(a_page_reads_what_it_shows),
        cmocka_unit_test_setup(every_row_is_found_by_its_key, known_as_empty),
        cmocka_unit_test(values_are_found_by_their_key),
        cmocka_unit_test(a_page_reads_what_it_shows)
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}

/* doc/POSTGRES.md as its reader uses it: every query in it runs, as an auditor who may only read,
 * and finds what it says. */
#include "postgres/kit/functions.h"
#include "postgres/kit/story.h"
#include "server/kit/server.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct postgres p;
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

/* The next block between ```sql and ```; it is cut out in place. NULL: there is none. */
static char *next_block(char **at)
{
    char *begin = strstr(*at, "```sql\n");
    if (!begin)
        return NULL;
    begin += strlen("```sql\n");
    char *end = strstr(begin, "```");
    assert_non_null(end);
    *end = '\0';
    *at = end + 3;
    return begin;
}

static void every_query_of_the_guide_finds_what_it_says(void **state)
{
    static const struct {
        const char *words; /* which query it is */
        int least, most;   /* rows */
        const char *first; /* value of the first row, or NULL */
    } wanted[] = {
        { "FROM holdfast.token WHERE tenant = '' AND key", 1, 1, "place_hold" },
        { "FROM holdfast.journal WHERE tenant = '' AND key", 1, 1, NULL },
        { "FROM holdfast.hold WHERE state = 'held'", 1, 1, "room" },
        { "held + confirmed >= capacity", 1, 1, "" },
        { "lease_expires_at <= now()", 1, 1, "" },
        { "HAVING count(*) > r.capacity", 0, 0, NULL },
        { "FROM holdfast.writer", 2, 20, NULL },
    };
    enum { COUNT = sizeof wanted / sizeof *wanted };
    (void)state;
    story_database(&p, k);
    assert_int_equal(kit_resource(k, "room", 1), HF_OK);
    assert_int_equal(kit_resource(k, "hall", 9), HF_OK);
    story_do(
        k, HF_OK,
        "{\"op\":\"place_hold\",\"key\":\"order-1042\",\"resource\":\"room\",\"requester\":\"ann\","
        "\"duration\":\"1h\"}");
    story_do(k, HF_OK,
             "{\"op\":\"begin\",\"key\":\"silent\",\"fingerprint\":\"f\",\"lease\":\"1s\"}");
    kit_reopen(k); /* a second writer */
    story_do(k, HF_OK,
             "{\"op\":\"begin\",\"key\":\"at-work\",\"fingerprint\":\"f\",\"lease\":\"1h\"}");
    char *roles = functions_file("src/store/postgres/schema/roles.sql"),
         *guide = functions_file("doc/POSTGRES.md"), *at = guide;
    postgres_run(&p, roles);
    server_pause_ms(1100); /* the lease of the one that is silent runs out */
    PGconn *auditor = postgres_connect(&p);
    PQclear(PQexec(auditor, "SET ROLE holdfast_auditor"));
    int asked = 0;
    for (char *sql; (sql = next_block(&at)) != NULL; asked++) {
        assert_true(asked < COUNT);
        if (!strstr(sql, wanted[asked].words))
            fail_msg("this query is not the one that is expected (%s): %s", wanted[asked].words,
                     sql);
        PGresult *result = PQexec(auditor, sql);
        if (PQresultStatus(result) != PGRES_TUPLES_OK)
            fail_msg("%s%s", sql, PQresultErrorMessage(result));
        assert_in_range(PQntuples(result), wanted[asked].least, wanted[asked].most);
        if (wanted[asked].first)
            assert_string_equal(PQgetvalue(result, 0, 0), wanted[asked].first);
        PQclear(result);
    }
    assert_int_equal(asked, COUNT);
    PQfinish(auditor);
    free(roles);
    free(guide);
}

/* Each of the names that the query answers with, as one text with spaces, stands in the guide. */
static void all_are_in_the_guide(const char *query)
{
    char *guide = functions_file("doc/POSTGRES.md"), *names = postgres_ask(&p, query), *more = NULL;
    for (char *name = strtok_r(names, " ", &more); name; name = strtok_r(NULL, " ", &more)) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "`%s`", name);
        if (!strstr(guide, quoted))
            fail_msg("doc/POSTGRES.md does not say what %s is", name);
    }
    free(names);
    free(guide);
}

static void every_table_is_in_the_guide_and_explained(void **state)
{
    (void)state;
    story_database(&p, k);
    all_are_in_the_guide(
        "SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = "
        "'holdfast'");
    assert_int_equal(
        postgres_number(
            &p, "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = 'holdfast' AND c.relkind = 'r' AND "
                "obj_description(c.oid, 'pg_class') IS NULL"),
        0);
}

static void every_function_is_in_the_guide(void **state)
{
    (void)state;
    story_database(&p, k);
    all_are_in_the_guide(
        "SELECT string_agg(DISTINCT proname, ' ') FROM pg_proc WHERE pronamespace = "
        "'holdfast'::regnamespace AND proname !~ '^_'");
}

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_query_of_the_guide_finds_what_it_says),
        TEST(every_table_is_in_the_guide_and_explained),
        TEST(every_function_is_in_the_guide),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

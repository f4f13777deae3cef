/* doc/POSTGRES.md as its reader uses it: every query in it runs, as an auditor who may only read,
 * and finds what it says. */
#include "postgres/kit/functions.h"
#include "postgres/kit/relay.h"
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

/* The relay's eye for COMMIT: messages in pieces, prepared statements, pipelines. */

struct bytes {
    uint8_t data[1024];
    size_t size;
};

static void put_number(struct bytes *b, uint32_t n)
{
    for (int i = 24; i >= 0; i -= 8)
        b->data[b->size++] = (uint8_t)(n >> i);
}

/* A message: its type (0: none) and the bytes of its body, where a bar stands for a zero. */
static void put(struct bytes *b, char type, const char *body)
{
    size_t size = strlen(body);
    if (type)
        b->data[b->size++] = (uint8_t)type;
    put_number(b, (uint32_t)size + 4);
    for (size_t i = 0; i < size; i++)
        b->data[b->size++] = body[i] == '|' ? 0 : (uint8_t)body[i];
}

static void begin_wire(struct relay_wire *w)
{
    struct bytes b = { .size = 0 };
    *w = (struct relay_wire){ 0 };
    put(&b, 0, "|||~user|x||");
    assert_int_equal(relay_wire_client(w, b.data, b.size, "").size, b.size);
    b.size = 0;
    put(&b, 'Z', "I");
    assert_int_equal(relay_wire_server(w, b.data, b.size).kind, RELAY_WIRE_READY);
}

static struct relay_message say(struct relay_wire *w, char type, const char *body, const char *name)
{
    struct bytes b = { .size = 0 };
    put(&b, type, body);
    for (size_t i = 0; i < b.size; i++) { /* not before it is whole, and without a trace */
        struct relay_message part = relay_wire_client(w, b.data, i, name);
        assert_int_equal(part.size, 0);
        assert_int_equal(part.kind, RELAY_WIRE_OTHER);
    }
    struct relay_message m = relay_wire_client(w, b.data, b.size, name);
    assert_int_equal(m.size, b.size);
    return m;
}

static struct relay_message answer(struct relay_wire *w, char type, const char *body)
{
    struct bytes b = { .size = 0 };
    put(&b, type, body);
    assert_int_equal(relay_wire_server(w, b.data, b.size - 1).size, 0);
    struct relay_message m = relay_wire_server(w, b.data, b.size);
    assert_int_equal(m.size, b.size);
    return m;
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has;
    } cases[] = {
        { "COMMIT", true },
        { "commit;", true },
        { "insert; Commit", true },
        { "", false },
        { "commits", false },
        { "x_commit", false },
        { "commit_at", false },
        { "comm", false },
        { "recommit", false },
        { "SELECT 1;COMMIT", true },
        { "commit1", false },
        { "BEGIN", false },
        { "commits commit", true },
        { "(commit)", true },
        { "\xc3\xa9"
          "commit",
          false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (relay_wire_has_word(cases[i].text, strlen(cases[i].text), "commit") != cases[i].has)
            fail_msg("wrong about: %s", cases[i].text);
}

static void test_first_message(void **state)
{
    (void)state;
    struct relay_wire w = { 0 };
    struct bytes b = { .size = 0 };
    for (uint32_t code = 80877103; code <= 80877104; code++) {
        b.size = 0;
        put_number(&b, 8);
        put_number(&b, code);
        struct relay_message m = relay_wire_client(&w, b.data, b.size, "");
        assert_int_equal(m.kind, RELAY_WIRE_NO_TLS);
        assert_int_equal(m.size, 8);
        assert_false(w.begun);
    }
    begin_wire(&w);
    assert_true(w.begun);
}

static void test_broken(void **state)
{
    (void)state;
    struct relay_wire w;
    begin_wire(&w);
    static const uint32_t lengths[] = { 0, 3, UINT32_MAX, 257 << 20 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bytes b = { .data = "Q", .size = 1 };
        put_number(&b, lengths[i]);
        assert_int_equal(relay_wire_client(&w, b.data, b.size, "").kind, RELAY_WIRE_BROKEN);
        assert_int_equal(relay_wire_server(&w, b.data, b.size).kind, RELAY_WIRE_BROKEN);
    }
    /* Whole, but its texts do not end: not a COMMIT, and nothing is read behind it. */
    assert_int_equal(say(&w, 'B', "portal", "c").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "portal|c", "c").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'P', "c|commit", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|c|", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'S', "", "").kind, RELAY_WIRE_OTHER);
}

static void test_prepared(void **state)
{
    (void)state;
    struct relay_wire w;
    begin_wire(&w);
    assert_int_equal(say(&w, 'P', "a|COMMIT|||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'P', "b|SELECT 1|||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|a|||||||", "").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'B', "|b|||||||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|b|||||||", "b").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'B', "a|b|||||||", "").kind,
                     RELAY_WIRE_OTHER); /* a portal's name is none */
    assert_int_equal(say(&w, 'P', "|commit|||", "").kind, RELAY_WIRE_OTHER); /* without a name */
    assert_int_equal(say(&w, 'B', "|||||||||", "").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'P', "|SELECT 1|||", "").kind,
                     RELAY_WIRE_OTHER); /* it means another now */
    assert_int_equal(say(&w, 'B', "|||||||||", "").kind, RELAY_WIRE_OTHER);
}

/* Two transactions on their way at once: the second COMMIT is not answered by the first answer. */
static void test_pipeline(void **state)
{
    (void)state;
    struct relay_wire w;
    begin_wire(&w);
    (void)say(&w, 'P', "c|COMMIT|||", "");
    struct relay_message first = say(&w, 'B', "|c|||||||", "");
    assert_false(first.ends);
    assert_true(say(&w, 'H', "", "").ends);
    assert_true(say(&w, 'S', "", "").ends);
    struct relay_message second = say(&w, 'B', "|c|||||||", ""),
                         third = say(&w, 'B', "|c|||||||", "");
    (void)say(&w, 'S', "", "");
    struct relay_message fourth = say(&w, 'Q', "commit|", "");
    assert_true(fourth.ends && fourth.kind == RELAY_WIRE_COMMIT);

    const struct relay_message *wanted[] = { &first, &second, &third, &fourth };
    for (int i = 0; i < 4; i++) {
        struct relay_message m = answer(&w, 'C', "COMMIT|");
        assert_int_equal(m.kind, RELAY_WIRE_COMMITTED);
        assert_int_equal(m.place.stretch, wanted[i]->place.stretch);
        assert_int_equal(m.place.number, wanted[i]->place.number);
        assert_int_equal(answer(&w, 'C', "INSERT 0 1|").kind, RELAY_WIRE_OTHER);
        assert_int_equal(answer(&w, 'C', "ROLLBACK|").kind, RELAY_WIRE_OTHER);
        if (i != 1)
            assert_int_equal(answer(&w, 'Z', "I").place.stretch, wanted[i]->place.stretch);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest guide_tests[] = {
        TEST(every_query_of_the_guide_finds_what_it_says),
        TEST(every_table_is_in_the_guide_and_explained),
        TEST(every_function_is_in_the_guide),
    };
    const struct CMUnitTest wire_tests[] = {
        cmocka_unit_test(test_words),    cmocka_unit_test(test_first_message),
        cmocka_unit_test(test_broken),   cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_pipeline),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(guide_tests, begin, end);
    failed += cmocka_run_group_tests(wire_tests, NULL, NULL);
    return failed;
}

/* The SQL functions and src/core agree on bytes: ids of holds, digests of requests, and when two
 * identities are the same. */
#include "base/bytes.h"
#include "core/digest.h"
#include "core/match.h"
#include "postgres/kit/functions.h"
#include "store/postgres/id.h"
#include "support/test.h"

#include <utf8proc.h>

static struct postgres p;
static PGconn *c;
static struct hf_plan plan;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    functions_make(&p, &(struct hf_options){ 0 });
    c = postgres_connect(&p);
    plan.scratch = malloc(HF_PLAN_SCRATCH);
    return plan.scratch ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(plan.scratch);
    PQfinish(c);
    postgres_end(&p);
    return 0;
}

static bool full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* ---- Ids ---- */

static void test_ids(void **state)
{
    (void)state;
    static const int64_t ordinals[] = { 1, 2, 255, 256, 65536, INT64_C(1) << 32, INT64_MAX };
    PGresult *key =
        PQexecParams(c, "SELECT id_key FROM holdfast.store", 0, NULL, NULL, NULL, NULL, 1);
    uint8_t secret[HF_PG_ID_KEY];
    assert_int_equal(PQgetlength(key, 0, 0), sizeof secret);
    memcpy(secret, PQgetvalue(key, 0, 0), sizeof secret);
    PQclear(key);
    for (size_t i = 0; i < 200 + sizeof ordinals / sizeof *ordinals; i++) {
        int64_t ordinal = i < 200 ? (int64_t)i * 7919 : ordinals[i - 200];
        char text[32], id[HF_ID_SIZE], upper[HF_ID_SIZE];
        snprintf(text, sizeof text, "%lld", (long long)ordinal);
        hf_pg_id_make(secret, (uint64_t)ordinal, id);
        IS(c, id, "hold_id", "hold_id", text);
        for (size_t k = 0; k < sizeof id; k++)
            upper[k] = (char)(id[k] >= 'a' && id[k] <= 'z' ? id[k] - 'a' + 'A' : id[k]);
        IS(c, text, "hold_ordinal", "hold_ordinal", id);
        IS(c, text, "hold_ordinal", "hold_ordinal", upper);
        id[i % 26] = id[i % 26] == '0' ? '1' : '0';
        uint64_t ignored;
        assert_false(hf_pg_id_read(secret, hf_str(id), &ignored));
        IS(c, "", "hold_ordinal", "hold_ordinal", id);
    }
    static const char *const wrong[] = { "",
                                         "0",
                                         "00000000000000000000000000",
                                         "80000000000000000000000000",
                                         "uuuuuuuuuuuuuuuuuuuuuuuuuu",
                                         "0000000000000000000000000\xc3\xa9",
                                         "0000000000000000000000000\n",
                                         "000000000000000000000000000" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        IS(c, "", "hold_ordinal", "hold_ordinal", wrong[i]);
}

/* ---- Digests ---- */

static void digest_is(const char *key, const struct hf_request *request)
{
    uint8_t digest[HF_DIGEST_SIZE];
    char hex[3 + 2 * HF_DIGEST_SIZE] = "\\x";
    hf_digest(request, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 + 2 * i, 3, "%02x", digest[i]);
    IS(c, hex, "digest", "token_status", key);
}

static void test_digests(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD };
    r.place_hold.resource = hf_str("r\xc3\xb6om");
    r.place_hold.requester = hf_str("guest \\ \"91\"");
    r.place_hold.duration_ms = 900001;
    PQclear(CALL(c, "place_hold", "d1", "r\xc3\xb6om", "guest \\ \"91\"", "900.001 seconds"));
    digest_is("d1", &r);
    r.place_hold.fence = UINT64_MAX - 1;
    PQclear(CALL(c, "place_hold", "d2", "r\xc3\xb6om", "guest \\ \"91\"", "900.001 seconds",
                 "18446744073709551614"));
    digest_is("d2", &r);
    r.place_hold.duration_ms = -2000;
    PQclear(CALL(c, "place_hold", "d3", "r\xc3\xb6om", "guest \\ \"91\"", "-2 seconds",
                 "18446744073709551614"));
    digest_is("d3", &r);
    r = (struct hf_request){ .action = HF_CONFIRM, .hold.id = hf_str("NOT an \xc3\x84 ID") };
    PQclear(CALL(c, "confirm", "d4", "NOT an \xc3\x84 ID"));
    digest_is("d4", &r);
    r = (struct hf_request){ .action = HF_GRANT };
    r.lease.name = hf_str("leader");
    r.lease.holder = hf_str("me");
    r.lease.ttl_ms = 1;
    PQclear(CALL(c, "grant_lease", "d5", "leader", "me", "1 millisecond"));
    digest_is("d5", &r);
    r = (struct hf_request){ .action = HF_WRITE };
    r.write.name = hf_str("name");
    r.write.value = hf_str("");
    PQclear(CALL(c, "write", "d6", "name", ""));
    digest_is("d6", &r);
    r.write.has_if_version = true;
    r.write.fence = 1;
    PQclear(CALL(c, "write", "d7", "name", "", "1", "0"));
    digest_is("d7", &r);
    r = (struct hf_request){ .action = HF_BEGIN, .begin.payload = hf_str("payload") };
    PQclear(CALL(c, "begin", "d8", "payload"));
    digest_is("d8", &r);
}

/* ---- Identities ---- */

/* As hf_match_apply has it: {NULL, 0} if it is not valid. */
static struct hf_bytes expected(const char *rule, struct hf_bytes identity)
{
    static const char *const names[] = { "exact", "trim", "casefold", "normalize", "hash" };
    struct hf_guard guard = { .window_ms = 1 };
    char copy[64];
    snprintf(copy, sizeof copy, "%s", rule);
    for (char *save = NULL, *step = strtok_r(copy, ",", &save); step;
         step = strtok_r(NULL, ",", &save))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(step, names[i]) == 0)
                guard.match[guard.match_count++] = (enum hf_match)(i + 1);
    assert_true(hf_match_valid(guard.match, guard.match_count));
    hf_plan_reset(&plan);
    struct hf_bytes out;
    return hf_match_apply(&guard, identity, &plan, &out) == HF_OK ? out : hf_mem(NULL, 0);
}

enum { GROUP = 512, IDENTITY_ROOM = 160 };

struct group {
    const char *rule;
    size_t count, refused, agreed;
    struct hf_bytes identities[GROUP];
    unsigned char room[GROUP][IDENTITY_ROOM];
};

/* _match for each of the group, or a refusal to say; every answer must be the core's. */
static void group_ask(struct group *g)
{
    static const char *const sql =
        "SELECT i, CASE WHEN $1 ~ '(casefold|normalize)' AND (holdfast._foreign(convert_from(x, "
        "'UTF8')) OR ($1 ~ 'casefold' AND holdfast._fold(convert_from(x, 'UTF8')) IS NULL)) THEN "
        "NULL ELSE coalesce(holdfast._match($1, x), '') END FROM unnest($2::bytea[]) WITH "
        "ORDINALITY u(x, i) ORDER BY i";
    static char array[GROUP * (2 * IDENTITY_ROOM + 8)];
    size_t at = 0;
    for (size_t i = 0; i < g->count; i++) {
        const unsigned char *bytes = g->identities[i].data;
        at += (size_t)snprintf(array + at, sizeof array - at, "%s\"\\\\x", i ? "," : "{");
        for (size_t k = 0; k < g->identities[i].size; k++)
            at += (size_t)snprintf(array + at, sizeof array - at, "%02x", bytes[k]);
        at += (size_t)snprintf(array + at, sizeof array - at, "\"");
    }
    snprintf(array + at, sizeof array - at, "}");
    const char *values[] = { g->rule, array };
    PGresult *got = PQexecParams(c, sql, 2, NULL, values, NULL, NULL, 1);
    if (PQresultStatus(got) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(got));
    assert_int_equal(PQntuples(got), g->count);
    for (size_t i = 0; i < g->count; i++) {
        if (PQgetisnull(got, (int)i, 1)) {
            g->refused++;
            continue;
        }
        struct hf_bytes is =
            hf_mem(PQgetvalue(got, (int)i, 1), (size_t)PQgetlength(got, (int)i, 1));
        if (!hf_bytes_equal(is, expected(g->rule, g->identities[i]))) {
            for (size_t k = 0; k < g->identities[i].size; k++)
                fprintf(stderr, "%02x ", ((const unsigned char *)g->identities[i].data)[k]);
            fail_msg("is another identity under %s", g->rule);
        }
        g->agreed++;
    }
    PQclear(got);
    g->count = 0;
}

static void group_add(struct group *g, const unsigned char *bytes, size_t size)
{
    assert_true(size <= IDENTITY_ROOM);
    memcpy(g->room[g->count], bytes, size);
    g->identities[g->count] = hf_mem(g->room[g->count], size);
    if (++g->count == GROUP)
        group_ask(g);
}

static bool is_character(int32_t point)
{
    return point > 0 && (point < 0xd800 || point > 0xdfff) && point <= 0x10ffff;
}

/* Every character by itself, between letters, and before a mark. */
static void test_every_character(void **state)
{
    (void)state;
    static struct group g;
    static const char *const rules[] = { "casefold", "normalize", "trim" };
    int32_t step = full() ? 3 : 61;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        g = (struct group){ .rule = rules[r] };
        for (int32_t point = 1; point <= 0x2ffff; point += point < 0x3000 ? 1 : step) {
            unsigned char text[IDENTITY_ROOM];
            if (!is_character(point))
                continue;
            size_t n = (size_t)utf8proc_encode_char(point, text);
            group_add(&g, text, n);
            if (point >= 0x3000 && !full())
                continue;
            memcpy(text + n, "\xcc\x81\xcc\xa3 ",
                   5); /* acute, and a dot below, which goes before it */
            group_add(&g, text, n + 5);
            memmove(text + 1, text, n);
            text[0] = 'E';
            memcpy(text + n + 1, "\xcc\x88", 2);
            group_add(&g, text, n + 3);
        }
        if (g.count > 0)
            group_ask(&g);
        printf("%s: %zu agree, %zu are for a server\n", rules[r], g.agreed, g.refused);
        assert_true(g.agreed > 4 * g.refused / 5 && g.agreed > 10000);
    }
    assert_int_equal(g.refused, 0); /* trim can do all */
}

static int32_t some_character(uint64_t *random)
{
    static const struct {
        int32_t from, count;
    } kinds[] = { { 0x20, 95 },      { 0x9, 5 },       { 0xa0, 0x2b0 }, { 0x300, 0x70 },
                  { 0x370, 0x200 },  { 0x591, 40 },    { 0x900, 0x80 }, { 0x1100, 0x100 },
                  { 0x1e00, 0x200 }, { 0x2000, 0x70 }, { 0x3040, 90 },  { 0xac00, 600 },
                  { 0x4e00, 2000 },  { 0x1f600, 80 },  { 0x20d0, 0x21 } };
    size_t kind = (size_t)test_below(random, sizeof kinds / sizeof *kinds);
    return kinds[kind].from + (int32_t)test_below(random, (uint64_t)kinds[kind].count);
}

static void test_random_identities(void **state)
{
    (void)state;
    static struct group g;
    static const char *const rules[] = {
        "trim,casefold,normalize", "normalize,trim,hash", "casefold,hash",
        "normalize,casefold,trim", "exact,hash",          "exact"
    };
    uint64_t random = test_seed("identities", 20);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        g = (struct group){ .rule = rules[r] };
        for (int i = 0; i < (full() ? 8192 : 1024); i++) {
            unsigned char text[IDENTITY_ROOM];
            size_t size = 0, count = 1 + (size_t)test_below(&random, 30);
            for (size_t k = 0; k < count; k++)
                size += (size_t)utf8proc_encode_char(some_character(&random), text + size);
            group_add(&g, text, size);
        }
        if (g.count > 0)
            group_ask(&g);
        assert_true(g.agreed > 200);
    }
}

static void test_identities_that_only_a_server_can_compare(void **state)
{
    (void)state;
    EXPECT(c, "ok", false, "set_guard", "fold", "1 hour", "casefold");
    EXPECT(c, "ok", false, "set_guard", "trim", "1 hour", "trim");
    functions_fails(c, "0A000",
                    "SELECT holdfast.admit('fold', E'\\u10a0')"); /* Georgian has two cases */
    functions_fails(
        c, "0A000",
        "SELECT holdfast.check_seen('fold', E'\\U0001fae8')"); /* younger than Unicode 13 */
    functions_fails(c, "0A000", "SELECT holdfast.check_seen('trim', '\\x4100'::bytea)");
    functions_run(
        c, "DO $$ BEGIN ASSERT (holdfast.admit('trim', E'\\u10a0')).status = 'ok'; "
           "ASSERT (holdfast.admit('fold', '\\xff'::bytea)).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('trim', '\\xeda080'::bytea)).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('trim', E' \\u3000\\t')).status = 'invalid-request'; "
           /* Two bytes become three here, and then there are too many. */
           "ASSERT (holdfast.admit('fold', repeat(E'\\u0149', 512))).status = 'invalid-request'; "
           "ASSERT (holdfast.admit('fold', repeat(E'\\u0149', 341))).status = 'ok'; END $$");
    assert_int_equal(postgres_number(&p, "SELECT count(*) FROM holdfast.guard_entry"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_random_identities),
        cmocka_unit_test(test_identities_that_only_a_server_can_compare),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

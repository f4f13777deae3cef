/* JSON on both sides: what a server stores SQL reads, what SQL stores a server shows, and both make
 * the same fingerprint of the same payload. */
#include "api/decode.h"
#include "base/bytes.h"
#include "postgres/kit/functions.h"
#include "server/kit/talk.h"
#include "support/test.h"
#include "json/canonical.h"
#include "json/stored.h"
#include "json/writer.h"

static struct postgres p;
static struct server s;
static struct talk t;
static PGconn *c;
static struct hf_arena arena;

/* A server, which makes the schema, and a connection beside it. */
static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    server_init(&s);
    s.options.store.postgres = postgres_conninfo(&p);
    server_start(&s);
    talk_open(&t, &s);
    c = postgres_connect(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    functions_check_journal(c);
    PQfinish(c);
    talk_close(&t);
    server_end(&s);
    postgres_end(&p);
    hf_arena_free(&arena);
    return 0;
}

/* ---- The server's side, without the server ---- */

/* The value is inside of a request, so it stands one level deep. */
static struct hf_reader reader_of(struct hf_bytes text)
{
    return (struct hf_reader){ .text = text, .arena = &arena, .depth = 1 };
}

/* As a server stores it. False: it takes no such JSON. out: in the text or the arena. */
static bool stored_of(struct hf_bytes text, struct hf_bytes *out)
{
    struct hf_reader r = reader_of(text);
    return hf_stored_read(&r, out) && hf_reader_end(&r);
}

/* As a server hashes it. */
static struct hf_bytes canonical_of(struct hf_bytes text)
{
    struct hf_bytes out;
    struct hf_reader r = reader_of(text);
    assert_true(hf_reader_canonical(&r, &out) && hf_reader_end(&r));
    return out;
}

/* As a server shows it. Good until the next call; NUL-ended. */
static const char *shown(struct hf_bytes stored)
{
    static struct hf_buffer out;
    struct hf_json j = { .out = &out };
    hf_buffer_reset(&out);
    hf_json_stored(&j, stored);
    const char *text = hf_buffer_text(&out);
    assert_non_null(text);
    return text;
}

/* ---- SQL's side ---- */

/* One row about $1, which is the text. */
static PGresult *about(const char *sql, const char *text)
{
    return PQexecParams(c, sql, 1, (const Oid[]){ 25 /* text */ }, &text, NULL, NULL, 1);
}

static struct hf_bytes cell(const PGresult *row, int n)
{
    return hf_mem(PQgetvalue(row, 0, n), (size_t)PQgetlength(row, 0, n));
}

static void equal(const char *what, const char *text, struct hf_bytes got, struct hf_bytes wanted)
{
    if (!hf_bytes_equal(got, wanted))
        fail_msg("%s of %s: %.*s, not %.*s", what, text, (int)got.size, (const char *)got.data,
                 (int)wanted.size, (const char *)wanted.data);
}

static void is_true(const char *what, const char *text, const PGresult *row, int n)
{
    if (PQgetisnull(row, 0, n) || !*PQgetvalue(row, 0, n))
        fail_msg("%s: %s", text, what);
}

/* What as_json makes of the bytes is equal to `wanted` as jsonb. */
static void reads_as(struct hf_bytes stored, const char *wanted)
{
    const char *const values[] = { stored.data, wanted };
    PGresult *row =
        PQexecParams(c, "SELECT holdfast.as_json($1) = $2::jsonb, holdfast.as_json($1)::text", 2,
                     (const Oid[]){ 17 /* bytea */, 25 }, values,
                     (const int[]){ (int)stored.size, 0 }, (const int[]){ 1, 0 }, 0);
    if (PQresultStatus(row) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", wanted, PQresultErrorMessage(row));
    if (PQgetvalue(row, 0, 0)[0] != 't')
        fail_msg("%s, not %s", PQgetvalue(row, 0, 1), wanted);
    PQclear(row);
}

/* With a data exception. */
static void refuses(const char *sql, const char *text)
{
    PGresult *row = about(sql, text);
    const char *why = PQresultErrorField(row, PG_DIAG_SQLSTATE);
    if (!why || strncmp(why, "22", 2) != 0)
        fail_msg("%s with %s: %s", sql, text, why ? PQresultErrorMessage(row) : "taken");
    PQclear(row);
}

/* Both sides do the same with the text: they refuse it, or make the same bytes of it. nul: a string
 * in it has one, which SQL refuses alone. Was it taken by both? */
static bool agree(const char *text, bool nul)
{
    static const char sql[] =
        "SELECT holdfast.json($1), holdfast.json($1::json), holdfast.payload($1), "
        "holdfast.payload($1::json), holdfast.as_json(holdfast.json($1)) = $1::jsonb, "
        "holdfast.json($1::jsonb), holdfast.payload($1::jsonb) = holdfast.payload($1::jsonb::text)";
    struct hf_bytes stored;
    PGresult *row = about(sql, text);
    bool taken = PQresultStatus(row) == PGRES_TUPLES_OK;
    if ((stored_of(hf_str(text), &stored) && !nul) != taken)
        fail_msg("%s: SQL says %s", text, taken ? "yes" : PQresultErrorMessage(row));
    if (taken) {
        equal("json", text, cell(row, 0), stored);
        equal("json", text, cell(row, 1), stored);
        equal("payload", text, cell(row, 2), canonical_of(hf_str(text)));
        equal("payload", text, cell(row, 3), canonical_of(hf_str(text)));
        is_true("is not what as_json makes of it", text, row, 4);
        reads_as(cell(row, 5), text);
        assert_true(shown(cell(row, 5))[0] == '"' || ((const char *)cell(row, 5).data)[0] == '\0');
        reads_as(stored, shown(cell(row, 5)));
        is_true("has another payload as jsonb than as its text", text, row, 6);
    } else {
        refuses("SELECT holdfast.json($1)", text);
        refuses("SELECT holdfast.payload($1)", text);
    }
    PQclear(row);
    hf_arena_reset(&arena);
    return taken;
}

static const char *const values[] = {
    "{}",
    " [ ] ",
    "\t\r\n{ \"b\" : 1 , \"a\" : [ 1 , 2 ] }\n",
    "{\"order\":77,\"cents\":9900}",
    ("{\"a\":1,\"B\":2,\"\":3,\"aa\":4,\"\xc3\xa9\":5,\"z\":6,\"\xf0\x9f\x98\x80\":7,"
     "\"\xef\xbf\xbf\":8}"),
    "{\"white\":\" \\t  space \\\\\",\"\\\" :\":\"\\\\\\\" , \"}",
    "\"\"",
    "\"C1\"",
    "\" text \\u00e9 \\ud83d\\ude00 \\/ \\b\\f\\n\\r\\t \\\" \\\\ \x7f\"",
    "[\"\\u0001\\u001f\\u007f\\u2028</script>\"]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "[-0.0,1e2,1E+2,1.50,100,123456789012345678901234567890,0.1e-7]",
    "{\"n\":{\"z\":{\"y\":1,\"x\":[{\"b\":null,\"a\":[]}]}}}",
};
enum { VALUES = sizeof values / sizeof *values };

/* Of these only the canonical form is compared: jsonb does not hold all such numbers. */
static const char *const canonicals[] = {
    "[5e-324,2.4703282292062327e-324,2.4703282292062328e-324,3e-324,1e-400,-1e-400]",
    "[333333333.33333329,1424953923781206.25,0.000001,1e-7,1e21,1e20,123.456e18,1e400,-"
    "0e99999999999999999]",
    "[1.7976931348623157e308,0.17976931348623159e309,1e-99999999999999999999,2.2250738585072014e-"
    "308]",
    "{\"\xee\x80\x80\":1,\"\xf4\x8f\xbf\xbf\":2,\"\xf4\x8f\xbf\xbf\xee\x80\x80\":3,"
    "\"\xed\x9f\xbf\":4}",
    "{\"\xf4\x8f\xbf\xbf\\u0001\":1,\"\xef\xbf\xbd\":2,\"\xf0\x90\x80\x80\xee\x80\x80\":3}",
};

static void both_make_the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < VALUES; i++)
        assert_true(agree(values[i], false));
    IS(c, "", "json", "json", NULL);
    IS(c, "", "payload", "payload", NULL);
    IS(c, "", "as_json", "as_json", NULL);
}

static void both_have_one_canonical_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof canonicals / sizeof *canonicals; i++) {
        PGresult *row = about("SELECT holdfast.payload($1)", canonicals[i]);
        if (PQresultStatus(row) != PGRES_TUPLES_OK)
            fail_msg("%s: %s", canonicals[i], PQerrorMessage(c));
        equal("the canonical form", canonicals[i], cell(row, 0),
              canonical_of(hf_str(canonicals[i])));
        PQclear(row);
    }
}

static void both_refuse_the_same(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "C1",
        "{\"a\":1,\"a\":2}",
        "[{\"x\":{\"a\":1,\"\\u0061\":1}}]",
        "\"\\ud83d\"",
        "{\"a\":[\"\\ude00\\ud83d\"]}",
        "{\"\\ud83d\":1}",
        "01",
        "[1,]",
        "1 2",
        "\"\n\"",
        "{'a':1}",
    };
    char deep[200] = "";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(agree(wrong[i], false));
    for (size_t depth = 30; depth < 35; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = '\0';
        assert_int_equal(agree(deep, false), depth < 32);
    }
    char *at = deep; /* objects count as well */
    for (int i = 0; i < 32; i++)
        at += snprintf(at, 6, "{\"\":");
    snprintf(at, 34, "0}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}");
    assert_false(agree(deep, false));
    assert_false(agree("[\"\\u0000\"]", true));
    assert_false(agree("\"\\u0000j\"", true));
    assert_true(agree("[\"\\\\u0000\"]", false));
}

/* Whatever there is can be read. */
static void anything_stored_is_read(void **state)
{
    (void)state;
    static const struct {
        struct hf_bytes stored;
        const char *wanted;
    } cases[] = {
#define HEAD "\0j................................"
#define BYTES(literal) { literal, sizeof(literal) - 1 }
        { BYTES(""), "\"\"" },
        { BYTES("text \\x41 {\"a\":1}"), "\"text \\\\x41 {\\\"a\\\":1}\"" },
        { BYTES("j{}"), "\"j{}\"" },
        { BYTES("\xff"), "{\"base64\":\"/w==\"}" },
        { BYTES("\xed\xa0\x80"), "{\"base64\":\"7aCA\"}" },
        { BYTES("\0"), "{\"base64\":\"AA==\"}" },
        { BYTES("a\0b"), "{\"base64\":\"YQBi\"}" },
        { BYTES("\0j"), "{\"base64\":\"AGo=\"}" },
        { BYTES("\0j{}"), "{\"base64\":\"AGp7fQ==\"}" },
        { BYTES(HEAD), "{\"base64\":\"AGouLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLg==\"}" },
        { BYTES(HEAD "hello"),
          "{\"base64\":\"AGouLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLmhlbGxv\"}" },
        { BYTES(HEAD "\"\\u0000\""),
          "{\"base64\":\"AGouLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLiJcdTAwMDAi\"}" },
        { BYTES(HEAD "1e999999"),
          "{\"base64\":\"AGouLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLjFlOTk5OTk5\"}" },
        { BYTES(HEAD "\"\xff\""),
          "{\"base64\":\"AGouLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLi4uLiL/Ig==\"}" },
#undef BYTES
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        reads_as(cases[i].stored, cases[i].wanted);
    static char many[3000];
    memset(many, 0xff, sizeof many);
    reads_as(hf_mem(many, sizeof many), shown(hf_mem(many, sizeof many))); /* without line breaks */
    assert_int_equal(
        postgres_number(
            &p, "SELECT (decode(holdfast.as_json(x) ->> 'base64', 'base64') = x)::integer FROM "
                "(SELECT '\\x006a'::bytea || sha256('') || convert_to(repeat('[', 200000), 'UTF8') "
                "AS x) "
                "deep"),
        1);
}

/* ---- Random ---- */

static void space_add(struct hf_buffer *b, uint64_t *seed)
{
    while (test_below(seed, 6) == 0)
        hf_buffer_add_char(b, " \t\r\n"[test_below(seed, 4)]);
}

/* Seldom with half of a pair, which nobody takes, and seldom with a NUL. */
static void string_add(struct hf_buffer *b, uint64_t *seed, bool *nul)
{
    static const char *const parts[] = { "a",
                                         "b",
                                         "A",
                                         "\xc3\xa9",
                                         "\xf0\x9f\x98\x80",
                                         "\\n",
                                         "\\u0061",
                                         "\\u00E9",
                                         "\\\\",
                                         "\\\"",
                                         "\\/",
                                         "/",
                                         "\\\\n",
                                         " ",
                                         "\x7f",
                                         "\\u001f",
                                         "[",
                                         "{",
                                         ":",
                                         ",",
                                         "u0000",
                                         "\\ud83d\\ude00" };
    uint64_t odd = test_below(seed, 150);
    hf_buffer_add_char(b, '"');
    for (uint64_t n = test_below(seed, 5); n > 0; n--)
        hf_buffer_add_text(b, parts[test_below(seed, sizeof parts / sizeof *parts)]);
    if (odd < 2)
        hf_buffer_add_text(b, odd ? "\\ude00" : "\\u0000");
    *nul = *nul || odd == 0;
    hf_buffer_add_char(b, '"');
}

/* Any number that JSON can write: short, long, halves of doubles, far from the range of any
 * type. */
static void number_add(struct hf_buffer *b, uint64_t *seed)
{
    static const int most[] = { 3, 18, 40, 900 };
    hf_buffer_add_text(b, test_below(seed, 3) ? "" : "-");
    if (test_below(seed, 3) == 0) {
        hf_buffer_add_char(b, '0');
    } else {
        hf_buffer_add_char(b, (char)('1' + test_below(seed, 9)));
        for (uint64_t n = test_below(seed, (uint64_t)most[test_below(seed, 3)]); n > 0; n--)
            hf_buffer_add_char(b, (char)('0' + test_below(seed, test_below(seed, 2) ? 10 : 1)));
    }
    if (test_below(seed, 2)) {
        hf_buffer_add_char(b, '.');
        for (uint64_t n = 1 + test_below(seed, (uint64_t)most[test_below(seed, 40) ? 1 : 3]); n > 0;
             n--)
            hf_buffer_add_char(b, (char)('0' + test_below(seed, 10)));
    }
    if (test_below(seed, 2)) {
        static const unsigned far[] = { 9, 25, 340, 4000 };
        hf_buffer_add_text(b, test_below(seed, 2) ? "e" : "E");
        hf_buffer_add_text(b, ((const char *[]){ "", "+", "-" })[test_below(seed, 3)]);
        hf_buffer_printf(b, "%s%u", test_below(seed, 9) ? "" : "00",
                         (unsigned)test_below(seed, far[test_below(seed, 4)]));
    }
}

static void value_add(struct hf_buffer *b, uint64_t *seed, unsigned depth, bool *nul)
{
    static const char *const plain[] = { "0",    "-1",   "12.5e+3", "true", "false",
                                         "null", "1E20", "-0.0",    "1.10", "9007199254740993" };
    uint64_t kind = test_below(seed, depth > 0 ? 6 : 3);
    space_add(b, seed);
    if (kind == 0) {
        string_add(b, seed, nul);
    } else if (kind == 1) {
        number_add(b, seed);
    } else if (kind == 2) {
        hf_buffer_add_text(b, plain[test_below(seed, 10)]);
    } else {
        hf_buffer_add_char(b, kind > 3 ? '{' : '[');
        for (uint64_t i = 0, n = test_below(seed, test_below(seed, 8) == 0 ? 30 : 4); i < n; i++) {
            hf_buffer_add_text(b, i > 0 ? "," : "");
            space_add(b, seed);
            if (kind > 3) { /* mostly with names of its own */
                if (test_below(seed, 40) > 0)
                    hf_buffer_printf(b, "\"%u\\u006e\"", (unsigned)(i * 7919 % 101));
                else
                    string_add(b, seed, nul);
                space_add(b, seed);
                hf_buffer_add_char(b, ':');
            }
            value_add(b, seed, depth - 1, nul);
        }
        hf_buffer_add_char(b, kind > 3 ? '}' : ']');
    }
    space_add(b, seed);
}

static void random_json_goes_round(void **state)
{
    (void)state;
    const char *scale = getenv("HF_SCALE");
    int rounds = scale && strcmp(scale, "full") == 0 ? 6000 : 400, taken = 0;
    uint64_t seed = test_seed("functions_json", 20261116);
    struct hf_buffer b = { 0 };
    for (int i = 0; i < rounds; i++) {
        bool nul = false;
        struct hf_bytes stored;
        hf_buffer_reset(&b);
        value_add(&b, &seed, 5, &nul);
        taken += agree(hf_buffer_text(&b), nul);
        if (stored_of(hf_mem(b.data, b.size), &stored) && !nul)
            reads_as(stored, shown(stored));
        /* Bytes that nobody meant: they are read, as whatever it may be. */
        b.data[test_below(&seed, b.size)] = (unsigned char)test_random(&seed);
        const char *values_of[] = { (const char *)b.data };
        PGresult *row = PQexecParams(
            c, "SELECT holdfast.as_json('\\x006a' || sha256($1) || $1), holdfast.as_json($1)", 1,
            (const Oid[]){ 17 }, values_of, (const int[]){ (int)b.size }, (const int[]){ 1 }, 0);
        assert_int_equal(PQresultStatus(row), PGRES_TUPLES_OK);
        assert_true(!PQgetisnull(row, 0, 0) && !PQgetisnull(row, 0, 1));
        PQclear(row);
        hf_arena_reset(&arena);
    }
    hf_buffer_free(&b);
    assert_in_range(taken, rounds / 2, rounds - 1);
}

/* ---- Over HTTP ---- */

/* Call the server with a body that is made as printf does; it must say yes. */
__attribute__((format(printf, 3, 4))) static void http(const char *what, const char *key,
                                                       const char *format, ...)
{
    char body[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(body, sizeof body, format, args);
    va_end(args);
    int status = talk(&t, what, key, *body ? body : NULL);
    if (status != 200 && status != 201)
        fail_msg("%s %s: %d %s", what, body, status, t.got.body);
}

/* The newest answer has this member with this JSON. */
static void has(const char *name, const char *json)
{
    char part[1200];
    snprintf(part, sizeof part, "\"%s\":%s", name, json);
    if (!reply_has(&t.got, part))
        fail_msg("%s is not in %s", part, t.got.body);
}

/* The row that the statement has about the texts $1, $2 and $3. Owned. */
static PGresult *sql(const char *statement, const char *first, const char *second,
                     const char *third)
{
    const char *const texts[] = { first, second, third };
    PGresult *row =
        PQexecParams(c, statement, 3, (const Oid[]){ 25, 25, 25 }, texts, NULL, NULL, 0);
    if (PQresultStatus(row) != PGRES_TUPLES_OK || PQntuples(row) != 1)
        fail_msg("%s: %s", statement, PQresultErrorMessage(row));
    return row;
}

/* All columns of that row are true. */
static void sql_true(const char *statement, const char *first, const char *second,
                     const char *third)
{
    PGresult *row = sql(statement, first, second, third);
    for (int i = 0; i < PQnfields(row); i++)
        if (strcmp(PQgetvalue(row, 0, i), "t") != 0)
            fail_msg("%s with %s, %s, %s: column %d is not true", statement, first, second, third,
                     i);
    PQclear(row);
}

/* Claims alternate between the two ways to end. */
static void settle(const char *key, bool well, const char *fence, const char *v)
{
    char path[64];
    snprintf(path, sizeof path, "POST /v1/claims/%s/%s", key, well ? "complete" : "fail");
    http(path, NULL, "{\"fence\":%s,\"%s\":%s}", fence, well ? "response" : "error", v);
}

static const char *settle_sql(bool well)
{
    return well ? "SELECT status = 'ok', replayed = ($1 ~ 'http') FROM holdfast.complete($1, "
                  "$2::bigint, "
                  "holdfast.json($3))"
                : "SELECT status = 'ok', replayed = ($1 ~ 'http') FROM holdfast.fail($1, "
                  "$2::bigint, holdfast.json($3))";
}

static void a_server_shows_what_sql_stored(void **state)
{
    (void)state;
    http("PUT /v1/guards/sql", NULL, "{\"window\":\"1h\"}");
    for (size_t i = 0; i < VALUES; i++) {
        const char *v = values[i];
        char key[24], path[64], wanted[512];
        struct hf_bytes stored;
        assert_true(stored_of(hf_str(v), &stored));
        snprintf(wanted, sizeof wanted, "%s", shown(stored));
        snprintf(key, sizeof key, "sql-%zu", i);
        PGresult *claim =
            sql("SELECT fence, $3 FROM holdfast.begin($1, holdfast.payload($2))", key, v, "");
        sql_true(settle_sql(i % 2), key, PQgetvalue(claim, 0, 0), v);
        http("POST /v1/claims", NULL, "{\"key\":\"%s\",\"payload\":%s}", key, v);
        has(i % 2 ? "response" : "error", wanted);
        settle(key, i % 2, PQgetvalue(claim, 0, 0), v);
        PQclear(claim);
        sql_true("SELECT NOT seen, $3 = '' FROM holdfast.admit('sql', $1, holdfast.json($2))", key,
                 v, "");
        http("POST /v1/guards/sql/check", NULL, "{\"identity\":\"%s\"}", key);
        has("result", wanted);
        sql_true(
            "SELECT NOT seen, $3 = '' FROM holdfast.record('sql', $1 || 'r', holdfast.json($2))",
            key, v, "");
        http("POST /v1/guards/sql/check", NULL, "{\"identity\":\"%sr\"}", key);
        has("result", wanted);
        snprintf(path, sizeof path, "PUT /v1/registers/%s", key);
        snprintf(key, sizeof key, "write-%zu", i);
        sql_true(
            "SELECT status = 'ok', NOT replayed FROM holdfast.write($1, $3, holdfast.json($2))",
            key, v, strrchr(path, '/') + 1);
        http(path, key, "{\"value\":%s}", v);
        talk_replayed(&t);
        has("value", wanted);
        hf_arena_reset(&arena);
    }
}

static void sql_reads_what_a_server_stored(void **state)
{
    (void)state;
    http("PUT /v1/guards/http", NULL, "{\"window\":\"1h\"}");
    for (size_t i = 0; i < VALUES; i++) {
        const char *v = values[i];
        char key[24], path[64], fence[24];
        snprintf(key, sizeof key, "http-%zu", i);
        http("POST /v1/claims", NULL, "{\"key\":\"%s\",\"payload\":%s}", key, v);
        snprintf(fence, sizeof fence, "%lld", reply_number(&t.got, "fence"));
        settle(key, i % 2, fence, v);
        sql_true("SELECT replayed, fence::text = $3, holdfast.as_json(response) = $2::jsonb FROM "
                 "holdfast.begin($1, holdfast.payload($2))",
                 key, v, fence);
        sql_true(settle_sql(i % 2), key, fence, v);
        sql_true("SELECT holdfast.as_json(response) = $2::jsonb, fence::text = $3 FROM "
                 "holdfast.token_status($1)",
                 key, v, fence);
        http("POST /v1/guards/http/record", NULL, "{\"identity\":\"%s\",\"result\":%s}", key, v);
        sql_true(
            "SELECT seen, holdfast.as_json(result) = $2::jsonb FROM holdfast.check_seen($3, $1)",
            key, v, "http");
        snprintf(path, sizeof path, "PUT /v1/registers/%s", key);
        snprintf(key, sizeof key, "put-%zu", i);
        http(path, key, "{\"value\":%s}", v);
        sql_true("SELECT replayed, holdfast.as_json(value) = $2::jsonb FROM holdfast.write($1, $3, "
                 "holdfast.json($2))",
                 key, v, strrchr(path, '/') + 1);
    }
}

/* What cannot be read is the same request on both sides, and the answer to both is the first. */
static void flaws_are_the_same_request(void **state)
{
    (void)state;
    static const struct {
        const char *key, *path, *body, *call;
    } cases[] = {
        { "f1", "POST /v1/holds", "{\"resource\":\"r\",\"duration\":\"1m\"}",
          "place_hold($1, 'r', NULL, '1 minute')" },
        { "f2", "POST /v1/holds", "{}", "place_hold($1, NULL, NULL, NULL)" },
        { "f3", "POST /v1/holds",
          "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":1,\"fence\":-7.50}",
          "place_hold($1, 'r', 'q', '1 second', -7.5)" },
        { "f4", "POST /v1/holds/AB/confirm", "{\"late\":\"l\\u0061ter\"}",
          "confirm($1, 'ab', '', 'later')" },
        { "f5", "POST /v1/leases/l", "{\"ttl\":\"1h\"}", "grant_lease($1, 'l', NULL, '1 hour')" },
        { "f6", "PUT /v1/registers/r", "{}", "write($1, 'r', NULL::bytea)" },
        { "f7", "PUT /v1/registers/r", "{\"value\":\"v\",\"if_version\":-1}",
          "write($1, 'r', 'v'::bytea, 0, -1)" },
        { "f8", "PUT /v1/registers/r", "{\"value\":{\"b\":1.0,\"a\":2},\"fence\":1.5}",
          "write($1, 'r', holdfast.json('{\"a\":2,\"b\":1}'), 1.5)" },
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *key = cases[i / 2].key;
        char statement[200], own[8];
        bool sql_first = i % 2;
        snprintf(own, sizeof own, "%s%s", key, sql_first ? "s" : "h");
        snprintf(statement, sizeof statement,
                 "SELECT status = 'invalid-request', replayed = ($2 = 'again'), $3 = '' FROM "
                 "holdfast.%s",
                 cases[i / 2].call);
        if (sql_first)
            sql_true(statement, own, "", "");
        int status = talk(&t, cases[i / 2].path, own, cases[i / 2].body);
        if (status != 400)
            fail_msg("%s: %s", own, t.got.body);
        if (sql_first)
            talk_replayed(&t);
        else
            sql_true(statement, own, "again", "");
    }
}

/* The text that begin takes in SQL is a fingerprint over HTTP, and JSON of it is a payload. */
static void payload_and_fingerprint(void **state)
{
    (void)state;
    functions_run(c, "SELECT holdfast.begin('text', 'charge alice 100')");
    functions_run(
        c, "SELECT holdfast.begin('json', holdfast.payload(to_json('charge alice 100'::text)))");
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL, "{\"key\":\"text\",\"payload\":\"charge alice 100\"}"),
        422);
    assert_int_equal(talk(&t, "POST /v1/claims", NULL,
                          "{\"key\":\"text\",\"fingerprint\":\"charge alice 100\"}"),
                     409);
    assert_int_equal(
        talk(&t, "POST /v1/claims", NULL, "{\"key\":\"json\",\"payload\":\"charge alice 100\"}"),
        409);
}

/* ---- The example ---- */

static void pays(const char *key, const char *wanted)
{
    char command[256];
    snprintf(command, sizeof command,
             "psql -X -q -U billing -f examples/payment.sql -v key=%s -v amount=5 -v token=50",
             key);
    char *said = functions_shell(&p, command);
    assert_string_equal(said, wanted);
    free(said);
}

/* Whoever completed the claim, the script finds what was said. */
static void a_payment_through_a_server_was_made_before(void **state)
{
    (void)state;
    static const struct {
        const char *response, *said;
    } cases[] = {
        { "{\"charge\":\"C9\"}", "{\"charge\": \"C9\"}" },
        { "\"C9\"", "\"C9\"" },
        { "null", "null" },
        { "\"\"", "\"\"" },
        { "[\"it's \\u0000\"]",
          "{\"base64\": "
          "\"AGqMyoauz41IP4r5h4Ys5YH5o0CmkL4VGGvfX2OAAsmJEFsiaXQncyBcdTAwMDAiXQ==\"}" },
    };
    char *roles = functions_file("src/store/postgres/schema/roles.sql");
    functions_run(c, roles);
    free(roles);
    functions_run(c, "CREATE ROLE billing LOGIN IN ROLE holdfast_application");
    free(functions_shell(&p, "psql -X -q -f examples/payment-tables.sql -v role=billing"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[8], path[64], said[128];
        snprintf(key, sizeof key, "M%zu", i);
        http("POST /v1/claims", NULL,
             "{\"key\":\"%s\",\"payload\":{\"account\":\"alice\",\"amount\":5}}", key);
        snprintf(path, sizeof path, "POST /v1/claims/%s/complete", key);
        http(path, NULL, "{\"fence\":%lld,\"response\":%s}", reply_number(&t.got, "fence"),
             cases[i].response);
        snprintf(said, sizeof said, "charged before: %s. The balance is 1000.", cases[i].said);
        pays(key, said);
    }
    pays("N", "charged: {\"charge\": \"C1\"}. The balance is 995.");
    http("POST /v1/claims", NULL,
         "{\"key\":\"N\",\"payload\":{\"account\":\"alice\",\"amount\":5}}");
    has("response", "{\"charge\":\"C1\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_make_the_same_bytes),
        cmocka_unit_test(both_have_one_canonical_form),
        cmocka_unit_test(both_refuse_the_same),
        cmocka_unit_test(anything_stored_is_read),
        cmocka_unit_test(random_json_goes_round),
        cmocka_unit_test(a_server_shows_what_sql_stored),
        cmocka_unit_test(sql_reads_what_a_server_stored),
        cmocka_unit_test(flaws_are_the_same_request),
        cmocka_unit_test(payload_and_fingerprint),
        cmocka_unit_test(a_payment_through_a_server_was_made_before),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* What a server knows of guards while the database is away: every tenant's, however many another
 * has made, and whatever their names are. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <stdlib.h>

enum { MANY = 4200, AT_ONCE = 100, NAME = 1008 };

static struct postgres p;
static struct hf_db *db;
static struct hf_result got = HF_RESULT_INIT;
static char (*names)[NAME + 1];

static struct hf_db *opened(void)
{
    struct hf_options options = { .no_background = true, .postgres = postgres_conninfo(&p) };
    struct hf_error why;
    struct hf_db *made = NULL;
    if (hf_open(NULL, &options, &made, &why) != HF_OK)
        fail_msg("%s", why.text);
    return made;
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    db = opened();
    names = calloc(MANY, sizeof *names);
    assert_non_null(names);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_close(db);
    hf_result_clear(&got);
    postgres_end(&p);
    free(names);
    return 0;
}

/* ---- Guards ---- */

static struct hf_request setting(const char *tenant, const char *name)
{
    return (struct hf_request){
        .action = HF_SET_GUARD,
        .tenant = hf_str(tenant),
        .set_guard = { .name = hf_str(name), .window_ms = 3600000, .on_unavailable = HF_FAIL_OPEN }
    };
}

static void set(const char *tenant, const char *name)
{
    struct hf_request q = setting(tenant, name);
    assert_int_equal(hf_do(db, &q, NULL), HF_OK);
}

static void set_many(const char *tenant)
{
    static struct hf_request requests[AT_ONCE];
    for (size_t i = 0; i < MANY; i += AT_ONCE) {
        for (size_t k = 0; k < AT_ONCE; k++)
            requests[k] = setting(tenant, names[i + k]);
        assert_int_equal(hf_do_many(db, requests, NULL, AT_ONCE), HF_OK);
    }
}

static enum hf_status admit(const char *tenant, const char *name)
{
    struct hf_request q = { .action = HF_ADMIT,
                            .tenant = hf_str(tenant),
                            .identity = { .guard = hf_str(name), .identity = hf_str("i") } };
    return hf_do(db, &q, &got);
}

static void names_make(void)
{
    for (size_t i = 0; i < MANY; i++)
        snprintf(names[i], sizeof names[i], "%01008zu", i);
}

/* Names that have the same FNV-1a modulo 256, which was where the server kept them. */
static void names_meet(void)
{
    uint32_t prefix = 2166136261U;
    for (size_t i = 0; i < NAME - 8; i++)
        prefix = (prefix ^ 'p') * 16777619U;
    size_t made = 0;
    for (unsigned n = 0; made < MANY; n++) {
        char tail[9];
        uint32_t hash = prefix;
        snprintf(tail, sizeof tail, "%08x", n);
        for (int i = 0; i < 8; i++)
            hash = (hash ^ (unsigned char)tail[i]) * 16777619U;
        if (hash % 256 != 0)
            continue;
        memset(names[made], 'p', NAME - 8);
        memcpy(names[made++] + NAME - 8, tail, sizeof tail);
    }
}

/* ---- Tests ---- */

static void all_are_answered(void)
{
    assert_int_equal(admit("b", "early"), HF_OK);
    assert_int_equal(admit("b", "late"), HF_OK);
    assert_int_equal(admit("c", "later"), HF_OK);
    assert_int_equal(admit("a", names[MANY - 1]), HF_OK);
    assert_int_equal(admit("b", "never"), HF_STORAGE_FAILURE);
    assert_int_equal(admit("a", "late"), HF_STORAGE_FAILURE);
}

static void no_tenant_crowds_out_the_guards_of_others(void **state)
{
    struct hf_stats stats;
    (void)state;
    names_make();
    set("b", "early");
    set_many("a");
    hf_stats(db, &stats); /* it reads all guards */
    set("b", "late");
    set("c", "later");
    postgres_stop(&p, POSTGRES_FAST);
    all_are_answered(); /* as it has seen them being set */
    postgres_start(&p);
    hf_close(db);
    db = opened();
    postgres_stop(&p, POSTGRES_FAST);
    all_are_answered(); /* as it has read them */
    postgres_start(&p);
}

/* A rule that was changed since it was read is the rule. */
static void what_was_seen_last_counts(void **state)
{
    struct hf_stats stats;
    struct hf_request shut = setting("b", "early");
    (void)state;
    set("b", "early");
    hf_stats(db, &stats);
    shut.set_guard.on_unavailable = HF_FAIL_CLOSED;
    assert_int_equal(hf_do(db, &shut, NULL), HF_OK);
    postgres_stop(&p, POSTGRES_FAST);
    enum hf_status st = admit("b", "early");
    assert_true(st != HF_STORAGE_FAILURE && (st != HF_OK || got.answer.seen.seen));
    postgres_start(&p);
    set("b", "early");
    postgres_run(&p, "UPDATE holdfast.guard SET on_unavailable = 'closed'"); /* by another server */
    hf_stats(db, &stats); /* its connection is gone */
    hf_stats(db, &stats);
    postgres_stop(&p, POSTGRES_FAST);
    st = admit("b", "early");
    assert_true(st != HF_STORAGE_FAILURE && (st != HF_OK || got.answer.seen.seen));
    postgres_start(&p);
}

/* What this process works for reading the figures, and the guards with them. */
static int64_t reading_ms(void)
{
    struct hf_stats stats;
    int64_t best = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        int64_t since = test_cpu_ns();
        hf_stats(db, &stats);
        int64_t took = (test_cpu_ns() - since) / 1000000;
        best = took < best ? took : best;
    }
    return best;
}

static void no_names_make_reading_slow(void **state)
{
    (void)state;
    names_make();
    set_many("a");
    int64_t calm = reading_ms();
    postgres_run(&p, "TRUNCATE holdfast.guard");
    hf_close(db);
    db = opened();
    names_meet();
    set_many("a");
    int64_t met = reading_ms();
    if (met > 3 * calm + 50)
        fail_msg("reading guards took %d ms, and %d ms where their names were chosen", (int)calm,
                 (int)met);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(no_tenant_crowds_out_the_guards_of_others),
        TEST(what_was_seen_last_counts),
        TEST(no_names_make_reading_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A day of keys that come and go: the table of tokens, the identities under guard and their indexes
 * keep their size. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOURS = 24, GROUPS = 10, GROUP = 200, SETTLED = 8 };

static struct kit *k;
static PGconn *pg;

static long long number(const char *query)
{
    PGresult *result = PQexec(pg, query);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    long long value = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return value;
}

/* An hour's work: new keys for holds that are released at once, and new identities. */
static void hour(int n)
{
    static struct hf_request requests[GROUP];
    static struct hf_result results[GROUP];
    static char texts[GROUP][32];
    for (int g = 0; g < GROUPS; g++) {
        kit_at(k, n * HOUR + g * HOUR / GROUPS);
        for (int i = 0; i < GROUP; i++) {
            unsigned serial = (unsigned)((n * GROUPS + g) * GROUP + i);
            snprintf(texts[i], sizeof texts[i], "%08x-%u", serial * 2654435761U,
                     serial); /* as random as keys are */
            if (i % 2)
                requests[i] = (struct hf_request){ .action = HF_ADMIT,
                                                   .identity = { .guard = hf_str("g"),
                                                                 .identity = hf_str(texts[i]) } };
            else
                requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                                   .key = hf_str(texts[i]),
                                                   .place_hold = { .resource = hf_str(texts[i]),
                                                                   .requester = hf_str("guest"),
                                                                   .duration_ms = MINUTE } };
        }
        assert_int_equal(hf_do_many(k->db, requests, results, GROUP), HF_OK);
        for (int i = 0; i < GROUP; i++) {
            assert_int_equal(results[i].answer.status, HF_OK);
            hf_result_clear(&results[i]);
        }
        kit_settle(k);
        /* What autovacuum does when it comes by; a test cannot wait for it. */
        PQclear(PQexec(pg, "VACUUM holdfast.token"));
        PQclear(PQexec(pg, "VACUUM holdfast.guard_entry"));
    }
}

static void tables_and_indexes_keep_their_size_over_a_day(void **state)
{
    static const char *const sizes[] = { "SELECT pg_table_size('holdfast.token')",
                                         "SELECT pg_indexes_size('holdfast.token')",
                                         "SELECT pg_table_size('holdfast.guard_entry')",
                                         "SELECT pg_indexes_size('holdfast.guard_entry')" };
    long long settled[4] = { 0 };
    (void)state;
    setenv("HF_STORE", "postgres", 1);
    k = kit_make();
    k->options.idempotency_window_ms = 2 * HOUR;
    kit_reopen(k);
    pg = PQconnectdb(k->options.postgres);
    assert_int_equal(kit_guard(k, "g", 2 * HOUR, NULL, 0), HF_OK);
    for (int n = 0; n < HOURS; n++) {
        hour(n);
        for (int i = 0; i < 4 && n == SETTLED; i++)
            settled[i] = number(sizes[i]);
    }
    /* Two hours of keys are there, and the rest was taken out. */
    assert_in_range(number("SELECT count(*) FROM holdfast.token"), GROUPS * GROUP,
                    GROUPS * GROUP * 5 / 4);
    assert_int_equal(number("SELECT count(*) FROM holdfast.hold"), HOURS * GROUPS * GROUP / 2);
    for (int i = 0; i < 4; i++) {
        long long now = number(sizes[i]);
        print_message("%s: %lld after %d hours, %lld after %d\n", sizes[i], settled[i], SETTLED + 1,
                      now, HOURS);
        assert_true(now <= settled[i] + settled[i] / 4);
    }
    PQfinish(pg);
    kit_free(k);
}

static void change(enum hf_action action, const char *name, uint64_t fence)
{
    char key[32];
    snprintf(key, sizeof key, "%d %s", (int)action, name);
    struct hf_request q = { .action = action,
                            .key = hf_str(key),
                            .write = {
                                .name = hf_str(name), .value = hf_str(""), .fence = fence } };
    assert_int_equal(hf_do(k->db, &q, NULL), HF_OK);
}

/* What a deleted lease has left goes soon, and that of a register when its window has closed,
 * unless it keeps a fence; and it is counted as none. */
static void what_deleted_registers_and_leases_have_left_goes(void **state)
{
    (void)state;
    setenv("HF_STORE", "postgres", 1);
    k = kit_make();
    k->options.idempotency_window_ms = 2 * HOUR;
    kit_reopen(k);
    pg = PQconnectdb(k->options.postgres);
    kit_at(k, 0);
    change(HF_WRITE, "stays", 0);
    change(HF_WRITE, "fenced", 7);
    change(HF_DELETE_REGISTER, "fenced", 8);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "goes-%d", i);
        change(HF_WRITE, name, 0);
        change(HF_DELETE_REGISTER, name, 0);
    }
    struct hf_request lease = { .action = HF_GRANT,
                                .key = hf_str("grant"),
                                .lease = {
                                    .name = hf_str("l"), .holder = hf_str("me"), .ttl_ms = 1 } };
    assert_int_equal(hf_do(k->db, &lease, NULL), HF_OK);
    kit_at(k, 1);
    lease = (struct hf_request){ .action = HF_DELETE_LEASE,
                                 .key = hf_str("gone"),
                                 .lease = { .name = hf_str("l") } };
    assert_int_equal(hf_do(k->db, &lease, NULL), HF_OK);
    assert_int_equal(number("SELECT count(*) FROM holdfast.lease"), 1);
    assert_int_equal(kit_stats(k).registers, 1);
    kit_at(k, 2 * HOUR - 1);
    kit_settle(k);
    assert_int_equal(number("SELECT count(*) FROM holdfast.register"), 5);
    assert_int_equal(number("SELECT count(*) FROM holdfast.lease"), 0);
    kit_at(k, 2 * HOUR);
    kit_settle(k);
    assert_int_equal(number("SELECT count(*) FROM holdfast.register"), 2);
    assert_int_equal(kit_stats(k).registers, 1);
    PQfinish(pg);
    kit_free(k); /* and it audits the tables */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_indexes_keep_their_size_over_a_day),
        cmocka_unit_test(what_deleted_registers_and_leases_have_left_goes)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

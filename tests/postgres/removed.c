/* That a row is gone is shown to nobody before the synchronous standby has heard of it: else a
 * lease that was deleted, or a value, is there again after a failover, although a client was told
 * that it is not. The wait of such a deletion for the standby is cancelled, so that PostgreSQL
 * shows the rows to nobody any more; then another server is asked. Where everything is known to be
 * replicated, that something is not there costs no commit. */
#include "postgres/kit/postgres.h"
#include "server/kit/server.h"
#include "support/test.h"

#include "holdfast.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct postgres a, b; /* the primary and its standby */
static struct hf_db *first, *second, *third;
static struct hf_result got = HF_RESULT_INIT;
static char gone[] = "gone", new[] = "new";

/* ---- Calls ---- */

static enum hf_status put(struct hf_tx *tx, void *arg)
{
    return hf_tx_put(tx, hf_str(arg), hf_str("1"));
}

static enum hf_status erase(struct hf_tx *tx, void *arg)
{
    return hf_tx_delete(tx, hf_str(arg));
}

static struct hf_request effect(const char *key, hf_apply_fn *fn, char *name)
{
    return (struct hf_request){ .action = HF_APPLY,
                                .key = hf_str(key),
                                .apply = { .name = hf_str(key), .fn = fn, .arg = name } };
}

static enum hf_status get(struct hf_db *db, enum hf_action action, const char *name)
{
    return hf_do(db, &(struct hf_request){ .action = action, .get = { hf_str(name) } }, &got);
}

/* The first answer that is not a fault. */
static enum hf_status get_soon(struct hf_db *db, enum hf_action action, const char *name)
{
    enum hf_status st;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         (st = get(db, action, name)) >= HF_STORAGE_FAILURE && server_clock_ms() < until;
         server_pause_ms(20))
        ;
    return st;
}

/* ---- What all tests begin and end with ---- */

static struct hf_db *opened(void)
{
    static char conninfo[POSTGRES_CONNINFO_MAX];
    struct hf_error why;
    struct hf_db *db = NULL;
    postgres_conninfo_pair(conninfo, &a, &b);
    if (hf_open(NULL, &(struct hf_options){ .no_background = true, .postgres = conninfo }, &db,
                &why) != HF_OK)
        fail_msg("%s", why.text);
    return db;
}

static int begin(void **state)
{
    (void)state;
    postgres_init(&a);
    postgres_init(&b);
    postgres_start(&a);
    postgres_follow(&b, &a, POSTGRES_SYNC, 0);
    first = opened();
    struct hf_request made[] = {
        { .action = HF_GRANT,
          .key = hf_str("grant"),
          .lease = { .name = hf_str("gone"), .holder = hf_str("me"), .ttl_ms = 1 } },
        { .action = HF_WRITE,
          .key = hf_str("write"),
          .write = { .name = hf_str("gone"), .value = hf_str("x") } },
        effect("put", put, gone),
    };
    for (unsigned i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(hf_do(first, &made[i], &got), HF_OK);
    second = opened();
    third = opened();
    assert_int_equal(get(second, HF_GET_LEASE, "gone"), HF_OK);
    assert_int_equal(get(second, HF_GET_REGISTER, "gone"), HF_OK);
    assert_int_equal(get(second, HF_GET_VALUE, "gone"), HF_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hf_close(third);
    hf_close(second);
    hf_close(first);
    hf_result_clear(&got);
    postgres_end(&b);
    postgres_end(&a);
    return 0;
}

/* ---- What no standby has heard of ---- */

enum { CHANGES = 4 };
static struct hf_request changes[CHANGES];
static struct hf_op ops[CHANGES];
static atomic_int answered;

static void count(struct hf_op *op, enum hf_status status)
{
    op->status = status;
    atomic_fetch_add(&answered, 1);
}

/* The standby is away. The first server deletes a lease, a register and a value, and makes a value;
 * all waits for the standby are cancelled until that can be seen. */
static void leave_behind(void)
{
    changes[0] = (struct hf_request){ .action = HF_DELETE_LEASE,
                                      .key = hf_str("1"),
                                      .lease = { .name = hf_str("gone") } };
    changes[1] = (struct hf_request){ .action = HF_DELETE_REGISTER,
                                      .key = hf_str("2"),
                                      .write = { .name = hf_str("gone") } };
    changes[2] = effect("3", erase, gone);
    changes[3] = effect("4", put, new);
    atomic_store(&answered, 0);
    for (unsigned i = 0; i < CHANGES; i++) {
        ops[i] = (struct hf_op){ .request = &changes[i], .done = count };
        hf_submit(i < CHANGES - 1 ? first : third,
                  &ops[i]); /* a server keeps one of its workers for questions */
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         postgres_number(&a,
                         "SELECT (SELECT count(*) FROM holdfast.lease WHERE deleted_at IS NULL) + "
                         "(SELECT count(*) FROM holdfast.register WHERE type <> 'deleted') + "
                         "(SELECT count(*) FROM holdfast.app_value WHERE key = 'gone') + 1 - "
                         "(SELECT count(*) FROM holdfast.app_value WHERE key = 'new')") > 0;
         server_pause_ms(20)) {
        postgres_try(&a, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = "
                         "'SyncRep' AND (query = 'COMMIT' OR query LIKE 'INSERT%' OR query LIKE "
                         "'WITH alone%')");
        assert_true(server_clock_ms() < until);
    }
}

static void all_are_answered(void)
{
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; atomic_load(&answered) < CHANGES;
         server_pause_ms(20))
        assert_true(server_clock_ms() < until);
}

static void nobody_is_told(void)
{
    assert_int_equal(get(second, HF_GET_LEASE, "gone"), HF_STORAGE_FAILURE);
    assert_int_equal(get(second, HF_GET_REGISTER, "gone"), HF_STORAGE_FAILURE);
    assert_int_equal(get(second, HF_GET_VALUE, "gone"), HF_STORAGE_FAILURE);
    assert_int_equal(get(second, HF_GET_VALUE, "new"), HF_STORAGE_FAILURE);
    /* A call without a key, which changes nothing. */
    struct hf_request renew = { .action = HF_RENEW,
                                .lease = { .name = hf_str("gone"), .fence = 1 } };
    assert_int_equal(hf_do(second, &renew, &got), HF_INDETERMINATE);
}

static void what_was_deleted_is_gone_when_the_standby_has_heard_of_it(void **state)
{
    (void)state;
    postgres_stop(&b, POSTGRES_FAST);
    leave_behind();
    nobody_is_told();
    postgres_start(&b);
    assert_int_equal(get_soon(second, HF_GET_LEASE, "gone"), HF_NOT_KNOWN);
    assert_int_equal(get_soon(second, HF_GET_REGISTER, "gone"), HF_NOT_KNOWN);
    assert_int_equal(get_soon(second, HF_GET_VALUE, "gone"), HF_NOT_KNOWN);
    assert_int_equal(get_soon(second, HF_GET_VALUE, "new"), HF_OK);
    all_are_answered();
}

static void where_the_standby_is_promoted_instead_it_is_there(void **state)
{
    (void)state;
    postgres_stop(&b, POSTGRES_FAST);
    leave_behind();
    nobody_is_told();
    all_are_answered(); /* that nobody knows: so the first server does not do it again */
    postgres_stop(&a, POSTGRES_KILL);
    postgres_start(&b);
    postgres_promote(&b);
    assert_int_equal(get_soon(second, HF_GET_LEASE, "gone"), HF_OK);
    assert_int_equal(get_soon(second, HF_GET_REGISTER, "gone"), HF_OK);
    assert_int_equal(get_soon(second, HF_GET_VALUE, "gone"), HF_OK);
    assert_int_equal(get_soon(second, HF_GET_VALUE, "new"), HF_NOT_KNOWN);
}

static long long commits(void)
{
    return postgres_number(&a, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
}

/* Nobody has written since the last commit of this server was replicated, or since another answer
 * was waited for. */
static void that_something_is_not_there_costs_nothing_where_all_is_replicated(void **state)
{
    static const enum hf_action actions[] = { HF_GET_LEASE, HF_GET_REGISTER, HF_GET_VALUE };
    struct hf_request write = { .action = HF_WRITE,
                                .key = hf_str("own"),
                                .write = { .name = hf_str("own") } };
    (void)state;
    assert_int_equal(get(second, HF_GET_LEASE, "never"),
                     HF_NOT_KNOWN); /* behind what the first has written */
    long long before = commits();
    for (unsigned i = 0; i < 15; i++)
        assert_int_equal(get(second, actions[i % 3], "never"), HF_NOT_KNOWN);
    assert_int_equal(commits(), before);
    assert_int_equal(hf_do(first, &write, &got), HF_OK); /* and the first behind its own commit */
    before = commits();
    for (unsigned i = 0; i < 15; i++)
        assert_int_equal(get(first, actions[i % 3], "never"), HF_NOT_KNOWN);
    assert_int_equal(commits(), before);
    postgres_stop(&b, POSTGRES_FAST);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(get(first, actions[i], "never"), HF_NOT_KNOWN);
    postgres_start(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_deleted_is_gone_when_the_standby_has_heard_of_it,
                                        begin, end),
        cmocka_unit_test_setup_teardown(where_the_standby_is_promoted_instead_it_is_there, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            that_something_is_not_there_costs_nothing_where_all_is_replicated, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The head of each writer's chain is told at its first batch and at the end, so that a log kept
 * elsewhere proves later what was there. */
#include "postgres/kit/functions.h"
#include "postgres/kit/swift.h"
#include "support/test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(
        heads_are_those_of_the_database, swift_set_up, swift_tear_down) };
    return cmocka_run_group_tests(tests, swift_group_set_up, swift_group_tear_down);
}

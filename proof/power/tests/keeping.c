/* The power goes while the store keeps house: snapshots, holds.idx, holds and keys that expire,
 * segments that are compressed and cut off, old snapshots that are removed. */
#include "power/kit.h"
#include "support/test.h"

enum { STEPS = 37, GROUP = 6, WINDOW = 60000 };

static const char *const tenants[] = { "", NULL };
static const char *const names[] = { "register-0", "register-1", NULL };

static void place(struct power *p, size_t step, size_t count, int64_t duration_ms)
{
    struct hf_request r[GROUP];
    char keys[GROUP][32], rooms[GROUP][32];
    for (size_t i = 0; i < count; i++) {
        snprintf(keys[i], sizeof keys[i], "place-%zu-%zu", step, i);
        snprintf(rooms[i], sizeof rooms[i], "room-%zu-%zu", step % 7, i);
        r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .key = hf_str(keys[i]),
                                    .place_hold = { .resource = hf_str(rooms[i]),
                                                    .requester = hf_str("guest"),
                                                    .duration_ms = duration_ms } };
    }
    power_do(p, r, count);
}

/* A few kilobytes that do not compress well. */
static void write_much(struct power *p, size_t step, size_t size)
{
    static unsigned char value[9000];
    uint64_t random = step;
    char key[32], name[32];
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (unsigned char)test_random(&random);
    snprintf(key, sizeof key, "write-%zu", step);
    snprintf(name, sizeof name, "register-%zu", step % 2);
    power_do(
        p,
        &(struct hf_request){ .action = HF_WRITE,
                              .key = hf_str(key),
                              .write = { .name = hf_str(name), .value = hf_mem(value, size) } },
        1);
}

/* One of the holds that last is confirmed, long after it was placed: its place in holds.idx
 * changes. */
static void end(struct power *p, size_t step)
{
    size_t round = step / 9, which = GROUP + round / 2 * (GROUP + 2) + round % 2;
    char key[32];
    snprintf(key, sizeof key, "end-%zu", step);
    power_do(p,
             &(struct hf_request){
                 .action = HF_CONFIRM, .key = hf_str(key), .hold = { hf_str(power_id(p, which)) } },
             1);
}

static void guard(struct power *p, size_t step)
{
    char identity[32];
    snprintf(identity, sizeof identity, "identity-%zu", step);
    struct hf_request r[2] = {
        { .action = HF_SET_GUARD, .set_guard = { .name = hf_str("guard"), .window_ms = 90000 } },
        { .action = HF_ADMIT,
          .identity = { .guard = hf_str("guard"), .identity = hf_str(identity) } },
    };
    power_do(p, r, 2);
}

static void step(struct power *p, size_t number)
{
    static const int64_t minute = 60000;
    /* In each round of nine steps keys are first in the last quarter of their window; then the
     * identity under guard is in its last second, and the holds that were placed for two minutes
     * are overdue; then all that is over. */
    static const int64_t at[9] = { 0, 500, 1000, 1500, 2000, 50000, 53000, 54000, 142500 };
    power_at(p, (int64_t)(number / 9) * 3 * minute + at[number % 9]);
    switch (number % 9) {
    case 1: place(p, number, GROUP, 2 * minute); return;
    case 2: write_much(p, number, 9000); return;
    case 3: place(p, number, 2, 100 * minute); return;
    case 4: end(p, number); return;
    case 5: write_much(p, number, 5000 + 80 * number); return;
    case 6: guard(p, number); return;
    case 7: write_much(p, number, 9000); return;
    default: power_settle(p); return;
    }
}

static void house_is_kept(void **s)
{
    (void)s;
    const struct power_script script = { .name = "keeping",
                                         .options = { .segment_max_bytes = 64 << 10,
                                                      .snapshot_every_bytes = 48 << 10,
                                                      .idempotency_window_ms = WINDOW },
                                         .steps = STEPS,
                                         .step = step,
                                         .tenants = tenants,
                                         .names = names };
    struct power_count count;
    const char *objection = power_explore(&script, &count);
    power_print(&script, &count);
    if (objection)
        fail_msg("%s", objection);
    assert_true(count.judged > 300 && count.second_states > 50 && count.refusals > 0 &&
                count.audits > 0);
    assert_true(count.snapshots > 1 && count.packed > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(house_is_kept) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

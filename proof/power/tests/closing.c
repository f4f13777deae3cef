/* The power goes while a store is closed in order and opened again, with another configuration now
 * and then. */
#include "power/kit.h"
#include "support/test.h"

enum { STEPS = 26 };

static const char *const tenants[] = { "", NULL };
static const char *const names[] = { "register", NULL };

static void place(struct power *p, size_t step)
{
    char key[32], room[32];
    snprintf(key, sizeof key, "place-%zu", step);
    snprintf(room, sizeof room, "room-%zu", step % 4);
    power_do(p,
             &(struct hf_request){ .action = HF_PLACE_HOLD,
                                   .key = hf_str(key),
                                   .place_hold = { .resource = hf_str(room),
                                                   .requester = hf_str("guest"),
                                                   .duration_ms = 10000 } },
             1);
}

static void write_long(struct power *p, size_t step)
{
    static char value[24000];
    char key[32];
    memset(value, 'A' + (int)(step % 26), sizeof value);
    snprintf(key, sizeof key, "write-%zu", step);
    power_do(p,
             &(struct hf_request){
                 .action = HF_WRITE,
                 .key = hf_str(key),
                 .write = { .name = hf_str("register"), .value = hf_mem(value, sizeof value) } },
             1);
}

static void step(struct power *p, size_t number)
{
    power_at(p, (int64_t)number * 3000);
    switch (number % 5) {
    case 0: power_reopen(p, (int64_t)(number / 10 + 1) * 100000); return;
    case 1: place(p, number); return;
    case 2: write_long(p, number); return;
    case 3: power_reopen(p, 0); return;
    default: power_settle(p); return;
    }
}

static void a_store_is_closed_and_opened(void **s)
{
    (void)s;
    const struct power_script script = { .name = "closing",
                                         .options = { .segment_max_bytes = 64 << 10,
                                                      .snapshot_every_bytes = 64 << 10 },
                                         .steps = STEPS,
                                         .step = step,
                                         .tenants = tenants,
                                         .names = names };
    struct power_count count;
    const char *objection = power_explore(&script, &count);
    power_print(&script, &count);
    if (objection)
        fail_msg("%s", objection);
    assert_true(count.judged > 200 && count.second_states > 50 && count.refusals > 0 &&
                count.audits > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_store_is_closed_and_opened) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The power goes while requests are committed, one group after the other, over several segments. */
#include "power/kit.h"
#include "support/test.h"

enum { STEPS = 34, GROUP = 7, VALUE = 20000 };

static const char *const tenants[] = { "", "other", NULL };
static const char *const names[] = { "register-0", "register-1", "register-2",
                                     "lease",      "claim",      NULL };

/* The names of a group, which must outlive the call. */
struct texts {
    char key[GROUP][32], name[GROUP][32];
    char value[VALUE];
};

static void write_group(struct power *p, size_t step, size_t count, size_t size)
{
    struct hf_request r[GROUP];
    struct texts t;
    for (size_t i = 0; i < count; i++) {
        snprintf(t.key[i], sizeof t.key[i], "write-%zu-%zu", step, i);
        snprintf(t.name[i], sizeof t.name[i], "register-%zu", (step + i) % 3);
        memset(t.value, 'a' + (int)(step % 26), sizeof t.value);
        r[i] = (struct hf_request){ .action = HF_WRITE,
                                    .key = hf_str(t.key[i]),
                                    .write = { .name = hf_str(t.name[i]),
                                               .value = hf_mem(t.value, size) } };
    }
    power_do(p, r, count);
}

static void place_group(struct power *p, size_t step, size_t count)
{
    struct hf_request r[GROUP];
    struct texts t;
    for (size_t i = 0; i < count; i++) {
        snprintf(t.key[i], sizeof t.key[i], "place-%zu-%zu", step, i);
        snprintf(t.name[i], sizeof t.name[i], "room-%zu", (step + i) % 5);
        r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .tenant = hf_str(step % 2 ? "" : "other"),
                                    .key = hf_str(t.key[i]),
                                    .place_hold = { .resource = hf_str(t.name[i]),
                                                    .requester = hf_str("guest"),
                                                    .duration_ms = 3600000 } };
    }
    power_do(p, r, count);
}

/* The oldest holds are confirmed and given back. */
static void end_one(struct power *p, size_t step, enum hf_action action, size_t which,
                    const char *tenant)
{
    char key[32];
    snprintf(key, sizeof key, "end-%zu", step);
    struct hf_request r = { .action = action,
                            .tenant = hf_str(tenant),
                            .key = hf_str(key),
                            .hold = { hf_str(power_id(p, which)) } };
    power_do(p, &r, 1);
}

static void claim_and_lease(struct power *p, bool begin)
{
    struct hf_request r[2] = {
        { .action = begin ? HF_BEGIN : HF_COMPLETE, .key = hf_str("claim") },
        { .action = HF_GRANT,
          .key = hf_str(begin ? "grant-1" : "grant-2"),
          .lease = { .name = hf_str("lease"), .holder = hf_str("me"), .ttl_ms = 5000 } },
    };
    if (begin)
        r[0].begin.payload = hf_str("pay");
    else {
        r[0].settle.fence = 1;
        r[0].settle.response = hf_str("paid");
    }
    power_do(p, r, 2);
}

static void step(struct power *p, size_t number)
{
    power_at(p, (int64_t)number * 1000);
    switch (number) {
    case 1:
        power_do(p,
                 (struct hf_request[]){
                     { .action = HF_SET_RESOURCE,
                       .set_resource = { .name = hf_str("room-1"), .capacity = 3 } },
                     { .action = HF_SET_GUARD,
                       .set_guard = { .name = hf_str("guard"), .window_ms = 3600000 } } },
                 2);
        return;
    case 2: place_group(p, number, 3); return;
    case 3: place_group(p, number, GROUP); return;
    case 4: end_one(p, number, HF_CONFIRM, 0, "other"); return;
    case 5: end_one(p, number, HF_REVERSE, 0, "other"); return;
    case 6: claim_and_lease(p, true); return;
    case 8: power_settle(p); return;
    case 9:
        power_do(p,
                 &(struct hf_request){
                     .action = HF_RECORD,
                     .identity = { .guard = hf_str("guard"), .identity = hf_str("it") } },
                 1);
        return;
    case 16: claim_and_lease(p, false); return;
    case 17: end_one(p, number, HF_RELEASE, 4, ""); return;
    case 20: power_settle(p); return;
    default: break;
    }
    if (number % 3 == 0)
        place_group(p, number, 1 + number % GROUP);
    else
        write_group(p, number, 1 + number % 4, number % 5 == 0 ? VALUE / 4 : 100 * number);
}

static void requests_over_several_segments(void **s)
{
    (void)s;
    const struct power_script script = { .name = "plain",
                                         .options = { .segment_max_bytes = 64 << 10 },
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
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(requests_over_several_segments) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

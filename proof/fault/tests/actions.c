/* Every action of hf_do, with every failure point in it. */
#include "fault/store.h"
#include "support/test.h"

static char large[5000]; /* more than a result holds without memory of its own */

#define RUN(name, call)                                \
    static void name(struct kit *k, struct outcome *o) \
    {                                                  \
        outcome_add(o, k, call);                       \
    }

/* ---- Holds ---- */

RUN(place_new, kit_place(k, FAULT_KEY, "fresh", "guest", HOUR))
RUN(place_more, kit_place(k, FAULT_KEY, "room", "guest", HOUR))
RUN(place_refused, kit_place(k, FAULT_KEY, "full", "guest", HOUR))
RUN(place_again, kit_place(k, "used-key", "full", "guest", DAY))
RUN(place_collision, kit_place(k, "used-key", "full", "another", DAY))
RUN(place_over_due, kit_place(k, FAULT_KEY, "due", "guest", HOUR))
RUN(place_on_old, kit_place(k, FAULT_KEY, "old", "guest", HOUR))
RUN(confirm, kit_end(k, HF_CONFIRM, FAULT_KEY, furnished.held))
RUN(confirm_old, kit_end(k, HF_CONFIRM, FAULT_KEY, furnished.old_held))
RUN(confirm_late, kit_end(k, HF_CONFIRM, FAULT_KEY, furnished.due))
RUN(release, kit_end(k, HF_RELEASE, FAULT_KEY, furnished.held))
RUN(release_old, kit_end(k, HF_RELEASE, FAULT_KEY, furnished.old_held))
RUN(expire, kit_end(k, HF_EXPIRE, FAULT_KEY, furnished.due))
RUN(reverse, kit_end(k, HF_REVERSE, FAULT_KEY, furnished.confirmed))
RUN(reverse_old, kit_end(k, HF_REVERSE, FAULT_KEY, furnished.old_confirmed))

static enum hf_status numbered(struct kit *k, const char *client, uint64_t sequence)
{
    return kit_do(k, (struct hf_request){ .action = HF_PLACE_HOLD,
                                          .client = hf_str(client),
                                          .sequence = sequence,
                                          .place_hold = { .resource = hf_str("numbers"),
                                                          .requester = hf_str("guest"),
                                                          .duration_ms = HOUR } });
}

RUN(place_first_number, numbered(k, "newcomer", 1))
RUN(place_next_number, numbered(k, "client", 2))

/* ---- Resources and guards ---- */

RUN(set_resource_new, kit_resource(k, "fresh", 5))
RUN(set_resource, kit_resource(k, "room", 7))
RUN(set_guard_new, kit_guard(k, "fresh", HOUR, NULL, 0))
RUN(set_guard, kit_guard(k, "open", DAY, NULL, 0))
RUN(check_seen, kit_ask(k, HF_CHECK, "open", "seen", NULL))
RUN(check_new, kit_ask(k, HF_CHECK, "closed", "new", NULL))
RUN(record_open, kit_ask(k, HF_RECORD, "open", "new", large))
RUN(record_closed, kit_ask(k, HF_RECORD, "closed", "new", "result"))
RUN(record_memory, kit_ask(k, HF_RECORD, "memory", "new", "result"))
RUN(admit_open, kit_ask(k, HF_ADMIT, "open", "new", "result"))
RUN(admit_closed, kit_ask(k, HF_ADMIT, "closed", "new", "result"))
RUN(admit_memory, kit_ask(k, HF_ADMIT, "memory", "new", "result"))
RUN(admit_seen, kit_ask(k, HF_ADMIT, "open", "seen", "result"))

/* ---- Claims and leases ---- */

static uint64_t claim_fence(const char *name)
{
    return strcmp(name, "claim-begun") == 0 ? 1 : strcmp(name, "claim-retry") == 0 ? 2 : 3;
}

static enum hf_status lease(struct kit *k, enum hf_action action, const char *key, const char *name)
{
    return kit_do(k, (struct hf_request){ .action = action,
                                          .key = hf_str(key),
                                          .lease = { .name = hf_str(name),
                                                     .holder = hf_str("me"),
                                                     .ttl_ms = DAY,
                                                     .fence = action == HF_GRANT ? 0 : 4 } });
}

RUN(begin, kit_begin(k, FAULT_KEY, "payload", HOUR, HF_ABANDON_RETRY))
RUN(begin_again, kit_begin(k, "claim-retry", "work", HOUR, HF_ABANDON_UNKNOWN))
RUN(begin_done, kit_begin(k, "claim-done", "work", HOUR, HF_ABANDON_UNKNOWN))
RUN(complete,
    kit_settle_claim(k, HF_COMPLETE, "claim-begun", claim_fence("claim-begun"), large, false))
RUN(fail_for_good,
    kit_settle_claim(k, HF_FAIL, "claim-begun", claim_fence("claim-begun"), "no", false))
RUN(fail_retryable,
    kit_settle_claim(k, HF_FAIL, "claim-begun", claim_fence("claim-begun"), large, true))
RUN(heartbeat,
    kit_settle_claim(k, HF_HEARTBEAT, "claim-begun", claim_fence("claim-begun"), "", false))
RUN(grant, lease(k, HF_GRANT, FAULT_KEY, "fresh"))
RUN(grant_refused, lease(k, HF_GRANT, FAULT_KEY, "lease"))
RUN(renew, lease(k, HF_RENEW, NULL, "lease"))
RUN(give_back, lease(k, HF_RETURN, NULL, "lease"))

/* ---- Registers ---- */

static enum hf_status write_to(struct kit *k, const char *name, const char *value)
{
    return kit_do(k,
                  (struct hf_request){ .action = HF_WRITE,
                                       .key = hf_str(FAULT_KEY),
                                       .write = { .name = hf_str(name), .value = hf_str(value) } });
}

static enum hf_status merge(struct kit *k, const char *name, enum hf_register_type type)
{
    const struct hf_item items[] = { { .name = hf_str("b"), .up = 2, .down = 1 },
                                     { .name = hf_str("c"), .up = 3, .down = 1 } };
    struct hf_value value = { .type = type, .number = 3, .flag = true, .timestamp = 5 };
    if (type == HF_TYPE_LWW) {
        value.node = hf_str("node");
        value.bytes = hf_str(large);
    }
    struct hf_item plain[2] = { items[0], items[1] };
    if (type >= HF_TYPE_UNION && type != HF_TYPE_LWW) {
        for (int i = 0; i < 2; i++) {
            plain[i].up = type == HF_TYPE_UNION ? 0 : plain[i].up;
            plain[i].down = type == HF_TYPE_UPDOWN ? plain[i].down : 0;
        }
        value.items = plain;
        value.item_count = 2;
    }
    return kit_do(k, (struct hf_request){ .action = HF_MERGE,
                                          .merge = { .name = hf_str(name), .value = &value } });
}

RUN(write_new, write_to(k, "fresh", "value"))
RUN(write_larger, write_to(k, "plain", large))
RUN(merge_max, merge(k, "fresh", HF_TYPE_MAX))
RUN(merge_min, merge(k, "fresh", HF_TYPE_MIN))
RUN(merge_or, merge(k, "fresh", HF_TYPE_OR))
RUN(merge_union, merge(k, "set", HF_TYPE_UNION))
RUN(merge_lww, merge(k, "fresh", HF_TYPE_LWW))
RUN(merge_vector, merge(k, "fresh", HF_TYPE_VECTOR))
RUN(merge_counter, merge(k, "fresh", HF_TYPE_COUNTER))
RUN(merge_updown, merge(k, "fresh", HF_TYPE_UPDOWN))

/* ---- Apply ---- */

static enum hf_status effects(struct hf_tx *tx, void *arg)
{
    struct hf_bytes had;
    (void)arg;
    if (hf_tx_get(tx, hf_str("value"), &had) != HF_OK)
        return HF_STORAGE_FAILURE;
    if (hf_tx_put(tx, hf_str("value"), hf_str(large)) != HF_OK ||
        hf_tx_put(tx, hf_str("fresh"), hf_str("new")) != HF_OK ||
        hf_tx_delete(tx, hf_str("gone")) != HF_OK ||
        hf_tx_enqueue(tx, hf_str("topic"), hf_str("one")) != HF_OK ||
        hf_tx_enqueue(tx, hf_str("topic"), hf_str("two")) != HF_OK)
        return HF_NO_MEMORY;
    return hf_tx_result(tx, hf_str(large));
}

static enum hf_status says_no(struct hf_tx *tx, void *arg)
{
    (void)arg;
    if (hf_tx_put(tx, hf_str("fresh"), hf_str("dropped")) != HF_OK ||
        hf_tx_result(tx, hf_str("no")) != HF_OK)
        return HF_NO_MEMORY;
    return HF_REFUSED;
}

static enum hf_status apply(struct kit *k, hf_apply_fn *fn)
{
    return kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                          .key = hf_str(FAULT_KEY),
                                          .apply = { .name = hf_str("test"), .fn = fn } });
}

RUN(apply_effects, apply(k, effects))
RUN(apply_refused, apply(k, says_no))

/* ---- Reading ---- */

RUN(get_hold, kit_get_hold(k, furnished.held))
RUN(get_hold_old, kit_get_hold(k, furnished.old_held))
RUN(get_resource, kit_get(k, HF_GET_RESOURCE, "room"))
RUN(get_guard, kit_get(k, HF_GET_GUARD, "closed"))
RUN(get_claim, kit_get(k, HF_GET_CLAIM, "claim-done"))
RUN(get_lease, kit_get(k, HF_GET_LEASE, "lease"))
RUN(get_register, kit_get(k, HF_GET_REGISTER, "set"))
RUN(get_large_register, kit_get(k, HF_GET_REGISTER, "register-1"))
RUN(get_token, kit_get(k, HF_GET_TOKEN, "used-key"))
RUN(get_value, kit_get(k, HF_GET_VALUE, "value"))

#define KEYED(f)             \
    {                        \
        .name = #f, .run = f \
    }
#define ONCE(f)                            \
    {                                      \
        .name = #f, .run = f, .once = true \
    }
#define GUARD(f)                                          \
    {                                                     \
        .name = #f, .run = f, .guard = true, .once = true \
    }
#define READS(f)                            \
    {                                       \
        .name = #f, .run = f, .reads = true \
    }

static void try_all(const struct fault_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fault_wanted(3))
            fault_case_try(&cases[i]);
}
#define TRY(cases) try_all(cases, sizeof(cases) / sizeof *(cases))

static void holds(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        KEYED(place_new),
        KEYED(place_more),
        KEYED(place_refused),
        KEYED(place_again),
        KEYED(place_collision),
        KEYED(place_over_due),
        KEYED(place_on_old),
        KEYED(confirm),
        KEYED(confirm_old),
        KEYED(confirm_late),
        KEYED(release),
        KEYED(release_old),
        KEYED(expire),
        KEYED(reverse),
        KEYED(reverse_old),
        KEYED(place_first_number),
        KEYED(place_next_number),
    };
    TRY(cases);
}

static void resources_and_guards(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        KEYED(set_resource_new), KEYED(set_resource), KEYED(set_guard_new), KEYED(set_guard),
        READS(check_seen),       READS(check_new),    GUARD(record_open),   GUARD(record_closed),
        GUARD(record_memory),    GUARD(admit_open),   GUARD(admit_closed),  GUARD(admit_memory),
        READS(admit_seen),
    };
    TRY(cases);
}

static void claims_and_leases(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        ONCE(begin),          ONCE(begin_again),    READS(begin_done), KEYED(complete),
        ONCE(fail_for_good),  ONCE(fail_retryable), ONCE(heartbeat),   KEYED(grant),
        KEYED(grant_refused), ONCE(renew),          ONCE(give_back),
    };
    TRY(cases);
}

static void registers(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        KEYED(write_new),     KEYED(write_larger), KEYED(merge_max), KEYED(merge_min),
        KEYED(merge_or),      KEYED(merge_union),  KEYED(merge_lww), KEYED(merge_vector),
        KEYED(merge_counter), KEYED(merge_updown),
    };
    TRY(cases);
}

static void applies(void **state)
{
    (void)state;
    static const struct fault_case cases[] = { KEYED(apply_effects), KEYED(apply_refused) };
    TRY(cases);
}

static void reads(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        READS(get_hold),  READS(get_hold_old), READS(get_resource), READS(get_guard),
        READS(get_claim), READS(get_lease),    READS(get_register), READS(get_large_register),
        READS(get_token), READS(get_value),
    };
    TRY(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds),
        cmocka_unit_test(resources_and_guards),
        cmocka_unit_test(claims_and_leases),
        cmocka_unit_test(registers),
        cmocka_unit_test(applies),
        cmocka_unit_test(reads),
    };
    memset(large, 'x', sizeof large - 1);
    fault_furnish();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_unfurnish();
    fault_report("fault_actions");
    return failed;
}

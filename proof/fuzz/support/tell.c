#include "fuzz/support/tell.h"

#include "fuzz/support/fuzz.h"
#include "fuzz/support/store.h"

#include <stdio.h>

#define MINUTE INT64_C(60000)

static struct {
    struct hf_db *db;
    unsigned round;
    char keys[64][32]; /* given out in turn */
    unsigned next;
    char id[HF_ID_SIZE]; /* of the newest hold */
    uint64_t fence;      /* of the newest claim or lease */
    uint64_t bulk;       /* a number that only grows */
} at;

/* A key of this round. Good for a whole story. */
static struct hf_bytes key(const char *name)
{
    char *text = at.keys[at.next++ % (sizeof at.keys / sizeof *at.keys)];
    snprintf(text, sizeof *at.keys, "%s-%u", name, at.round);
    return hf_str(text);
}

static enum hf_status ask(struct hf_request request)
{
    struct hf_result got = HF_RESULT_INIT;
    enum hf_status status = hf_do(at.db, &request, &got);
    FUZZ_WANT(hf_status_kind(status) <= HF_KIND_REFUSAL);
    if (got.answer.kind == HF_RECORD_HOLD)
        memcpy(at.id, got.answer.hold.id, sizeof at.id);
    if (got.answer.kind == HF_RECORD_CLAIM)
        at.fence = got.answer.claim.fence;
    if (got.answer.kind == HF_RECORD_LEASE)
        at.fence = got.answer.lease.fence;
    hf_result_clear(&got);
    return status;
}

static void place(struct hf_bytes token, const char *resource, int64_t duration_ms)
{
    (void)ask((struct hf_request){ .action = HF_PLACE_HOLD,
                                   .key = token,
                                   .place_hold = { .resource = hf_str(resource),
                                                   .requester = hf_str("guest"),
                                                   .duration_ms = duration_ms } });
}

static void end(enum hf_action action, const char *name)
{
    (void)ask(
        (struct hf_request){ .action = action, .key = key(name), .hold = { .id = hf_str(at.id) } });
}

static void tell_holds(void)
{
    (void)ask((struct hf_request){ .action = HF_SET_RESOURCE,
                                   .set_resource = { .name = hf_str("room"), .capacity = 3 } });
    place(key("a"), "room", MINUTE);
    end(HF_CONFIRM, "b");
    end(HF_REVERSE, "c");
    place(key("d"), "room", 15 * MINUTE);
    end(HF_RELEASE, "e");
    end(HF_CONFIRM, "f"); /* refused: it is released */
    place(key("g"), "room", MINUTE);
    place(key("h"), "seat", MINUTE);
    place(key("i"), "seat", MINUTE); /* refused: it is taken */
    (void)ask((struct hf_request){ .action = HF_PLACE_HOLD,
                                   .tenant = hf_str("t"),
                                   .key = key("a"),
                                   .place_hold = { .resource = hf_str("room"),
                                                   .requester = hf_str("other"),
                                                   .duration_ms = MINUTE,
                                                   .fence = 7 } });
    (void)ask(
        (struct hf_request){ .action = HF_SET_RESOURCE,
                             .set_resource = { .name = hf_str("seat"), .open = HF_SET_CLOSED } });
}

static void identity(enum hf_action action, const char *guard, const char *name, const char *result)
{
    (void)ask((struct hf_request){ .action = action,
                                   .identity = { .guard = hf_str(guard),
                                                 .identity = hf_str(name),
                                                 .result = hf_str(result),
                                                 .has_result = result != NULL } });
}

static void tell_guards(void)
{
    (void)ask((struct hf_request){ .action = HF_SET_GUARD,
                                   .set_guard = { .name = hf_str("mail"),
                                                  .window_ms = 60 * MINUTE,
                                                  .match = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD },
                                                  .match_count = 2 } });
    (void)ask((struct hf_request){ .action = HF_SET_GUARD,
                                   .set_guard = { .name = hf_str("hashed"),
                                                  .window_ms = 10 * MINUTE,
                                                  .match = { HF_MATCH_HASH },
                                                  .match_count = 1,
                                                  .on_unavailable = HF_FAIL_CLOSED } });
    identity(HF_ADMIT, "mail", " One@Example.org", NULL);
    identity(HF_ADMIT, "mail", "one@example.org", NULL);
    identity(HF_RECORD, "mail", "two", "{\"sent\":1}");
    identity(HF_RECORD, "hashed", "secret", NULL);
    identity(HF_CHECK, "mail", "two", NULL);
}

static void claim(enum hf_action action, const char *name, const char *text, bool retryable)
{
    struct hf_request request = { .action = action, .key = key(name) };
    if (action == HF_BEGIN) {
        request.begin.payload = hf_str(text);
        request.begin.lease_ms = MINUTE;
        request.begin.on_abandon = retryable ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
    } else {
        request.settle.fence = at.fence;
        request.settle.response = hf_str(text);
        request.settle.retryable = retryable;
    }
    (void)ask(request);
}

static void tell_claims(void)
{
    claim(HF_BEGIN, "pay", "12 EUR", false);
    claim(HF_HEARTBEAT, "pay", NULL, false);
    claim(HF_COMPLETE, "pay", "\0j{}", false);
    claim(HF_BEGIN, "try", "x", true);
    claim(HF_FAIL, "try", "busy", true);
    claim(HF_BEGIN, "try", "x", true);
    claim(HF_FAIL, "try", "no", false);
    claim(HF_BEGIN, "open", "y", false);
    (void)ask((struct hf_request){
        .action = HF_GRANT,
        .key = key("grant"),
        .lease = { .name = hf_str("leader"), .holder = hf_str("node-1"), .ttl_ms = MINUTE } });
    (void)ask((struct hf_request){
        .action = HF_RENEW,
        .lease = { .name = hf_str("leader"), .fence = at.fence, .ttl_ms = 2 * MINUTE } });
    (void)ask((struct hf_request){ .action = HF_RETURN,
                                   .lease = { .name = hf_str("leader"), .fence = at.fence } });
}

static void merge(const char *name, struct hf_value value)
{
    (void)ask((struct hf_request){ .action = HF_MERGE,
                                   .merge = { .name = hf_str(name), .value = &value } });
}

static void tell_registers(void)
{
    const struct hf_item items[] = { { hf_str("n1"), 3, 1 }, { hf_str("n2"), 4, 0 } };
    (void)ask(
        (struct hf_request){ .action = HF_WRITE,
                             .key = key("w"),
                             .write = { .name = hf_str("plain"), .value = hf_str("value") } });
    (void)ask((struct hf_request){ .action = HF_WRITE,
                                   .key = key("v"),
                                   .write = { .name = hf_str("plain"),
                                              .value = hf_str("again"),
                                              .has_if_version = true,
                                              .if_version = 1 } });
    merge("max", (struct hf_value){ .type = HF_TYPE_MAX, .number = 5 });
    merge("min", (struct hf_value){ .type = HF_TYPE_MIN, .number = -5 });
    merge("or", (struct hf_value){ .type = HF_TYPE_OR, .flag = true });
    merge("union", (struct hf_value){ .type = HF_TYPE_UNION, .items = items, .item_count = 2 });
    merge("lww",
          (struct hf_value){
              .type = HF_TYPE_LWW, .timestamp = 1, .node = hf_str("n1"), .bytes = hf_str("last") });
    merge("vector", (struct hf_value){ .type = HF_TYPE_VECTOR, .items = items, .item_count = 2 });
    merge("counter", (struct hf_value){ .type = HF_TYPE_COUNTER, .items = items, .item_count = 2 });
    merge("updown", (struct hf_value){ .type = HF_TYPE_UPDOWN, .items = items, .item_count = 1 });
}

static void tell_numbers(void)
{
    static const uint64_t numbers[] = { 1, 2, 5, 300, 299 };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)ask((struct hf_request){ .action = HF_PLACE_HOLD,
                                       .client = hf_str("till"),
                                       .sequence = numbers[i] + at.round,
                                       .place_hold = { .resource = hf_str("shelf"),
                                                       .requester = hf_str("till"),
                                                       .duration_ms = MINUTE } });
}

static enum hf_status effect(struct hf_tx *tx, void *arg)
{
    (void)arg;
    if (hf_tx_put(tx, hf_str("key"), hf_str("value")) != HF_OK ||
        hf_tx_put(tx, hf_str("gone"), hf_str("soon")) != HF_OK ||
        hf_tx_delete(tx, hf_str("gone")) != HF_OK ||
        hf_tx_enqueue(tx, hf_str("mail"), hf_str("hello")) != HF_OK ||
        hf_tx_result(tx, hf_str("done")) != HF_OK)
        return HF_STORAGE_FAILURE;
    return HF_OK;
}

static enum hf_status refusal(struct hf_tx *tx, void *arg)
{
    (void)arg;
    return hf_tx_result(tx, hf_str("not today")) == HF_OK ? HF_REFUSED : HF_STORAGE_FAILURE;
}

static void tell_apply(void)
{
    (void)ask((struct hf_request){ .action = HF_APPLY,
                                   .key = key("order"),
                                   .apply = { .name = hf_str("order"), .fn = effect } });
    (void)ask((struct hf_request){ .action = HF_APPLY,
                                   .key = key("no"),
                                   .apply = { .name = hf_str("order"), .fn = refusal } });
    (void)ask((struct hf_request){ .action = HF_APPLY,
                                   .key = key("more"),
                                   .apply = { .name = hf_str("order"), .fn = effect } });
}

void fuzz_tell(struct hf_db *db, enum fuzz_story story, unsigned round)
{
    static void (*const stories[FUZZ_STORIES])(void) = {
        [FUZZ_STORY_HOLDS] = tell_holds,     [FUZZ_STORY_GUARDS] = tell_guards,
        [FUZZ_STORY_CLAIMS] = tell_claims,   [FUZZ_STORY_REGISTERS] = tell_registers,
        [FUZZ_STORY_NUMBERS] = tell_numbers, [FUZZ_STORY_APPLY] = tell_apply,
    };
    at.db = db;
    at.round = round;
    at.next = 0;
    stories[story]();
}

void fuzz_tell_segment(struct hf_db *db, unsigned round)
{
    struct hf_stats before, now;
    at.db = db;
    at.round = round;
    hf_stats(db, &before);
    do {
        merge("bulk", (struct hf_value){ .type = HF_TYPE_MAX, .number = (int64_t)++at.bulk });
        (void)ask(
            (struct hf_request){ .action = HF_WRITE,
                                 .key = key("bulk"),
                                 .write = { .name = hf_str("written"), .value = hf_str("bulk") } });
        while (hf_maintain(db))
            continue;
        hf_stats(db, &now);
    } while (now.journal_bytes / FUZZ_SEGMENT == before.journal_bytes / FUZZ_SEGMENT);
}

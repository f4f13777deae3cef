#include "postgres/kit/story.h"

#include "api/decode.h"
#include "base/clock.h"
#include "support/test.h"

#include <time.h>

void story_database(const struct postgres *p, struct kit *k)
{
    kit_close(k);
    postgres_run(p, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS holdfast CASCADE");
    k->options.postgres = postgres_conninfo(p);
    k->options.io = NULL; /* the time is the database's */
    kit_open(k);
}

void story_do(struct kit *k, enum hf_status wanted, const char *line)
{
    struct hf_request request;
    const struct hf_call *call;
    struct hf_api_fault fault = { "" };
    struct hf_arena arena = { 0 };
    const char *tenant = k->tenant ? k->tenant : "";
    if (hf_api_decode_line(hf_str(line), hf_str(tenant), &arena, &request, &call, &fault) != HF_OK)
        fail_msg("%s: %s", line, fault.detail);
    if (kit_do(k, request) != wanted)
        fail_msg("%s: %s", line, hf_status_code(k->got.answer.status));
    hf_arena_free(&arena);
}

/* A line with the id of a hold in it. */
static void do_with(struct kit *k, enum hf_status wanted, const char *format, const char *id)
{
    char line[300], *at;
    snprintf(line, sizeof line, "%s", format);
    at = strchr(line, '@');
    assert_non_null(at);
    snprintf(at, sizeof line - (size_t)(at - line), "%s%s", id, strchr(format, '@') + 1);
    story_do(k, wanted, line);
}

/* Wait until the newest hold is overdue. */
static void overdue(struct kit *k)
{
    hf_time end = k->got.answer.hold.expires_at;
    if (k->options.io)
        kit_at(k, end - KIT_START);
    else
        while (hf_clock_wall_ms() <= end)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void holds(struct kit *k)
{
    char id[3][HF_ID_SIZE];
    static const char *const place[] = {
        "{\"op\":\"place_hold\",\"key\":\"order-1\",\"resource\":\"room\",\"requester\":\"ann\","
        "\"duration\":\"15m\"}",
        "{\"op\":\"place_hold\",\"key\":\"order-2\",\"resource\":\"room\",\"requester\":\"ann\","
        "\"duration\":\"15m\"}",
        "{\"op\":\"place_hold\",\"key\":\"order-3\",\"resource\":\"seat\",\"requester\":\"bob\","
        "\"duration\":\"15m\"}",
    };
    assert_int_equal(kit_resource(k, "room", 2), HF_OK);
    for (int i = 0; i < 3; i++) {
        story_do(k, HF_OK, place[i]);
        memcpy(id[i], k->got.answer.hold.id, HF_ID_SIZE);
    }
    story_do(k, HF_OK, place[0]); /* a retry leaves nothing */
    story_do(
        k, HF_RESOURCE_UNAVAILABLE,
        "{\"op\":\"place_hold\",\"key\":\"order-4\",\"resource\":\"room\",\"requester\":\"cy\","
        "\"duration\":\"1m\"}");
    do_with(k, HF_OK, "{\"op\":\"confirm\",\"key\":\"paid-1\",\"id\":\"@\"}", id[0]);
    do_with(k, HF_NOT_HELD, "{\"op\":\"release\",\"key\":\"late-1\",\"id\":\"@\"}", id[0]);
    do_with(k, HF_OK, "{\"op\":\"release\",\"key\":\"back-2\",\"id\":\"@\"}", id[1]);
    do_with(k, HF_OK, "{\"op\":\"reverse\",\"key\":\"refund-1\",\"id\":\"@\"}", id[0]);
    do_with(k, HF_WINDOW_NOT_ELAPSED, "{\"op\":\"expire\",\"key\":\"early-3\",\"id\":\"@\"}",
            id[2]);
    story_do(k, HF_OK,
             "{\"op\":\"place_hold\",\"client\":\"till\",\"sequence\":1,\"resource\":\"seat "
             "2\",\"requester\":\"bob\",\"duration\":\"15m\"}");
    story_do(k, HF_OK,
             "{\"op\":\"place_hold\",\"client\":\"till\",\"sequence\":3,\"resource\":\"seat "
             "3\",\"requester\":\"bob\",\"duration\":\"15m\",\"fence\":7}");
    story_do(
        k, HF_OK,
        "{\"op\":\"place_hold\",\"key\":\"order-5\",\"resource\":\"desk\",\"requester\":\"dan\","
        "\"duration\":\"1ms\"}");
    overdue(k);
    do_with(k, HF_OK, "{\"op\":\"confirm\",\"key\":\"paid-5\",\"id\":\"@\",\"late\":\"reacquire\"}",
            k->got.answer.hold.id);
}

static void guards(struct kit *k)
{
    static const enum hf_match match[] = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD };
    assert_int_equal(kit_guard(k, "mail", HOUR, match, 2), HF_OK);
    assert_int_equal(kit_guard(k, "plain", HOUR, NULL, 0), HF_OK);
    assert_int_equal(kit_ask(k, HF_RECORD, "mail", " Ann@Example.ORG ", "\"sent\""), HF_OK);
    assert_int_equal(kit_ask(k, HF_ADMIT, "plain", "once", NULL), HF_OK);
    assert_int_equal(kit_ask(k, HF_ADMIT, "plain", "once", NULL), HF_OK);
}

static void claims(struct kit *k)
{
    assert_int_equal(kit_begin(k, "charge-1", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
    assert_int_equal(
        kit_settle_claim(k, HF_COMPLETE, "charge-1", k->got.answer.claim.fence, "\"done\"", false),
        HF_OK);
    assert_int_equal(kit_begin(k, "charge-2", "p", MINUTE, HF_ABANDON_RETRY), HF_OK);
    assert_int_equal(
        kit_settle_claim(k, HF_FAIL, "charge-2", k->got.answer.claim.fence, "\"no\"", true), HF_OK);
    assert_int_equal(kit_begin(k, "charge-2", "p", MINUTE, HF_ABANDON_RETRY), HF_OK);
    assert_int_equal(kit_begin(k, "charge-3", "p", MINUTE, HF_ABANDON_UNKNOWN), HF_OK);
}

static void registers(struct kit *k)
{
    static const char *const merges[] = {
        "\"name\":\"highest\",\"type\":\"max\",\"value\":-5",
        "\"name\":\"once\",\"type\":\"or\",\"value\":true",
        "\"name\":\"all\",\"type\":\"union\",\"value\":[\"pear\",\"apple\"]",
        ("\"name\":\"newest\",\"type\":\"lww\",\"value\":{\"value\":{\"a\":1},\"timestamp\":7,"
         "\"node\":\"n1\"}"),
        "\"name\":\"count\",\"type\":\"counter\",\"value\":{\"n1\":3,\"n2\":4}",
        "\"name\":\"stock\",\"type\":\"updown\",\"value\":{\"n1\":{\"up\":9,\"down\":2}}",
    };
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        char line[200];
        snprintf(line, sizeof line, "{\"op\":\"merge\",%s}", merges[i]);
        story_do(k, HF_OK, line);
    }
    story_do(k, HF_OK, "{\"op\":\"write\",\"key\":\"w1\",\"name\":\"plain\",\"value\":[1,2]}");
    story_do(k, HF_OK,
             "{\"op\":\"write\",\"key\":\"w2\",\"name\":\"plain\",\"value\":[3],\"fence\":"
             "18446744073709551615}");
}

static enum hf_status lease(struct kit *k, enum hf_action action, const char *key, const char *name,
                            uint64_t fence)
{
    return kit_do(k,
                  (struct hf_request){ .action = action,
                                       .key = hf_str(key),
                                       .lease = { .name = hf_str(name),
                                                  .holder = hf_str(action == HF_GRANT ? "n1" : ""),
                                                  .ttl_ms = action == HF_RETURN ? 0 : MINUTE,
                                                  .fence = fence } });
}

static void leases(struct kit *k)
{
    assert_int_equal(lease(k, HF_GRANT, "g1", "leader", 0), HF_OK);
    assert_int_equal(lease(k, HF_RENEW, "", "leader", k->got.answer.lease.fence), HF_OK);
    assert_int_equal(lease(k, HF_GRANT, "g2", "other", 0), HF_OK);
    assert_int_equal(lease(k, HF_RETURN, "", "other", k->got.answer.lease.fence), HF_OK);
}

static enum hf_status effect(struct hf_tx *tx, void *arg)
{
    const struct hf_bytes *value = arg;
    KIT_WANT(hf_tx_put(tx, hf_str("counter"), *value) == HF_OK);
    KIT_WANT(hf_tx_put(tx, *value, hf_str("x")) == HF_OK);
    KIT_WANT(hf_tx_enqueue(tx, hf_str("mails"), *value) == HF_OK);
    if (hf_tx_delete(tx, hf_str("old")) != HF_OK)
        return HF_REFUSED;
    return hf_tx_result(tx, *value);
}

static void effects(struct kit *k)
{
    static struct hf_bytes values[2];
    values[0] = hf_str("old");
    values[1] = hf_mem("\x00\xff\\", 3);
    for (size_t i = 0; i < 2; i++) {
        struct hf_request r = { .action = HF_APPLY,
                                .key = hf_mem(i ? "k\xff\\\n" : "apply-1", i ? 4 : 7),
                                .apply = { .name = hf_str("count"),
                                           .payload = values[i],
                                           .fn = effect,
                                           .arg = &values[i] } };
        assert_int_equal(kit_do(k, r), HF_OK);
    }
}

void story_do_all(struct kit *k)
{
    holds(k);
    guards(k);
    claims(k);
    registers(k);
    leases(k);
    effects(k);
    k->tenant = "shop";
    holds(k);
    guards(k);
    k->tenant = NULL;
}

void story_audit(const struct postgres *p, struct hf_audit_report *report)
{
    struct hf_audit_options options = { .postgres = postgres_conninfo(p) };
    struct hf_error why = { HF_OK, "" };
    if (hf_audit_run("", &options, report, &why) != HF_OK)
        fail_msg("%s", why.text);
    for (size_t i = 0; i < report->check_count; i++)
        for (size_t n = 0; n < report->checks[i].example_count; n++)
            print_message("%s: %s\n", report->checks[i].name, report->checks[i].examples[n]);
}

bool story_found(const struct hf_audit_report *report, const char *check, const char *words)
{
    for (size_t i = 0; i < report->check_count; i++)
        for (size_t n = 0;
             strcmp(report->checks[i].name, check) == 0 && n < report->checks[i].example_count; n++)
            if (strstr(report->checks[i].examples[n], words))
                return true;
    return false;
}

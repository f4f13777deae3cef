#include "core/action.h"

#include "core/claim.h"
#include "core/decide.h"
#include "core/fence.h"
#include "core/guard.h"
#include "core/hold.h"
#include "core/lease.h"
#include "core/read.h"

#include <stddef.h>

#define AT(member) offsetof(struct hf_request, member)

/* ---- What keys are bound to ---- */

static const struct hf_digest_field of_place[] = {
    { "duration_ms", HF_DIGEST_NUMBER, AT(place_hold.duration_ms), 0 },
    { "fence", HF_DIGEST_GIVEN, AT(place_hold.fence), 0 },
    { "requester", HF_DIGEST_BYTES, AT(place_hold.requester), 0 },
    { "resource", HF_DIGEST_BYTES, AT(place_hold.resource), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_hold[] = {
    { "id", HF_DIGEST_ID, AT(hold.id), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_grant[] = {
    { "holder", HF_DIGEST_BYTES, AT(lease.holder), 0 },
    { "name", HF_DIGEST_BYTES, AT(lease.name), 0 },
    { "ttl_ms", HF_DIGEST_NUMBER, AT(lease.ttl_ms), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_write[] = {
    { "fence", HF_DIGEST_GIVEN, AT(write.fence), 0 },
    { "if_version", HF_DIGEST_NUMBER, AT(write.if_version), AT(write.has_if_version) },
    { "name", HF_DIGEST_BYTES, AT(write.name), 0 },
    { "require_fence", HF_DIGEST_CHOICE, AT(write.require_fence), 0 },
    { "value", HF_DIGEST_VALUE, AT(write.value), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_delete_register[] = {
    { "fence", HF_DIGEST_GIVEN, AT(write.fence), 0 },
    { "if_version", HF_DIGEST_NUMBER, AT(write.if_version), AT(write.has_if_version) },
    { "name", HF_DIGEST_BYTES, AT(write.name), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_delete_lease[] = {
    { "fence", HF_DIGEST_GIVEN, AT(lease.fence), 0 },
    { "name", HF_DIGEST_BYTES, AT(lease.name), 0 },
    { .name = NULL },
};

static const struct hf_digest_field of_apply[] = {
    { "name", HF_DIGEST_BYTES, AT(apply.name), 0 },
    { "payload", HF_DIGEST_BYTES, AT(apply.payload), 0 },
    { .name = NULL },
};

/* ---- The actions ---- */

enum {
    /* Names are in the row of the record and in its answer. */
    NAMES = 4 * HF_NAME_MAX,
    /* Overdue holds that the same record expires have names too. */
    OVERDUE = HF_OVERDUE_MAX * (128 + 2 * HF_NAME_MAX),
    IDENTITIES = 8 * HF_IDENTITY_MAX + HF_NAME_MAX,
    EFFECTS = HF_APPLY_BYTES_MAX + HF_APPLY_ROWS_MAX * (64 + 2 * HF_TOKEN_MAX),
    VALUE = HF_VALUE_MAX + HF_MERGE_ITEMS_MAX * sizeof(struct hf_item),
};

/* A claim's response and a guard's result are read with their rows; few have their maximum size. */
enum {
    LIGHT = 1024,
    HEAVY = LIGHT + HF_VALUE_MAX,
    SEEN = HF_GUARD_RESULT_MAX / 4,
    RESPONSE = HF_RESPONSE_MAX / 4
};

enum {
    HOLD = 1 << HF_ROW_HOLD,
    RESOURCE = 1 << HF_ROW_RESOURCE,
    SUCCESSOR = 1 << HF_ROW_SUCCESSOR,
    EFFECT = 1 << HF_ROW_VALUE | 1 << HF_ROW_OUTBOX,
};

#define ROW(kind, member) .row = (kind), .row_name = AT(member)
#define CHANGES(bits, kind) .changes = (bits), .changes_once = (kind)
#define CHANGES_ONE(kind) CHANGES(1 << (kind), kind)
#define PAYLOAD(member, max) .payload = AT(member), .payload_max = (max)
#define KEYED(fields) .keyed = true, .digest = (fields)
#define SWIFT .swift = true
/* Bytes: of its record, of its answer, and of memory to decide it. */
#define SIZES(record, answer, weighs) \
    .record_max = (record), .answer_max = (answer), .weight = (weighs)
#define SMALL SIZES(NAMES, 0, LIGHT)
#define READS(rule) .decide = (rule), .reads = true

/* clang-format off */
#define OF_HOLD(kind) ROW(HF_ROW_HOLD, hold.id), CHANGES(HOLD | RESOURCE, HF_ROW_HOLD), \
    KEYED(of_hold), SWIFT, SMALL, .ends = (kind)
#define OF_GUARD ROW(HF_ROW_ENTRY, identity.guard)
#define OF_CLAIM ROW(HF_ROW_CLAIM, key)
#define OF_LEASE ROW(HF_ROW_LEASE, lease.name), CHANGES_ONE(HF_ROW_LEASE), SMALL
#define OF_REGISTER(member) ROW(HF_ROW_REGISTER, member), CHANGES_ONE(HF_ROW_REGISTER)

const struct hf_action_info hf_actions[HF_ACTIONS_END] = {
    [0] = { SMALL },

    [HF_PLACE_HOLD] = { "place_hold", hf_hold_place, KEYED(of_place), SWIFT,
        .draws = HF_DRAWS_ORDINAL, .overdue = true, ROW(HF_ROW_RESOURCE, place_hold.resource),
        CHANGES(HOLD | RESOURCE, HF_ROW_RESOURCE),
        SIZES(OVERDUE + NAMES, 0, LIGHT) },
    [HF_CONFIRM] = { "confirm", hf_hold_end, OF_HOLD(HF_ENDS_BEGUN) },
    [HF_RELEASE] = { "release", hf_hold_end, OF_HOLD(HF_ENDS_BEGUN) },
    [HF_EXPIRE] = { "expire", hf_hold_end, OF_HOLD(HF_ENDS_BEGUN) },
    [HF_REVERSE] = { "reverse", hf_hold_reverse, KEYED(of_hold), SWIFT, .draws = HF_DRAWS_ORDINAL,
        ROW(HF_ROW_HOLD, hold.id), CHANGES(HOLD | RESOURCE | SUCCESSOR, HF_ROW_SUCCESSOR), SMALL,
        .ends = HF_ENDS_RESERVE },
    [HF_CONFIRM_LATE] = { "confirm_late", hf_hold_confirm_late, KEYED(of_hold),
        .draws = HF_DRAWS_ORDINAL, .overdue = true, ROW(HF_ROW_HOLD, hold.id),
        CHANGES(HOLD | RESOURCE | SUCCESSOR, HF_ROW_RESOURCE), SIZES(OVERDUE + NAMES, 0, LIGHT),
        .ends = HF_ENDS_BEGUN },
    [HF_SET_RESOURCE] = { "set_resource", hf_resource_set, ROW(HF_ROW_RESOURCE, set_resource.name),
        CHANGES_ONE(HF_ROW_RESOURCE), SMALL },

    [HF_SET_GUARD] = { "set_guard", hf_guard_set, ROW(HF_ROW_GUARD, set_guard.name),
        CHANGES_ONE(HF_ROW_GUARD), SMALL },
    [HF_CHECK] = { "check", READS(hf_guard_ask), OF_GUARD,
        SIZES(NAMES, HF_GUARD_RESULT_MAX, SEEN) },
    [HF_RECORD] = { "record", hf_guard_ask, OF_GUARD, CHANGES_ONE(HF_ROW_ENTRY),
        PAYLOAD(identity.result, HF_GUARD_RESULT_MAX),
        SIZES(IDENTITIES, HF_GUARD_RESULT_MAX, SEEN) },
    [HF_ADMIT] = { "admit", hf_guard_ask, OF_GUARD, CHANGES_ONE(HF_ROW_ENTRY),
        PAYLOAD(identity.result, HF_GUARD_RESULT_MAX),
        SIZES(IDENTITIES, HF_GUARD_RESULT_MAX, SEEN) },

    [HF_BEGIN] = { "begin", hf_claim_begin, OF_CLAIM, CHANGES_ONE(HF_ROW_CLAIM), SWIFT,
        .draws = HF_DRAWS_FENCE, SIZES(NAMES, HF_RESPONSE_MAX, RESPONSE) },
    [HF_COMPLETE] = { "complete", hf_claim_settle, OF_CLAIM, CHANGES_ONE(HF_ROW_CLAIM), SWIFT,
        .ends = HF_ENDS_PAYLOAD, PAYLOAD(settle.response, HF_RESPONSE_MAX),
        SIZES(HF_TOKEN_MAX, HF_RESPONSE_MAX, RESPONSE) },
    [HF_FAIL] = { "fail", hf_claim_settle, OF_CLAIM, CHANGES_ONE(HF_ROW_CLAIM), SWIFT,
        .ends = HF_ENDS_PAYLOAD, PAYLOAD(settle.response, HF_RESPONSE_MAX),
        SIZES(HF_TOKEN_MAX, HF_RESPONSE_MAX, RESPONSE) },
    [HF_HEARTBEAT] = { "heartbeat", hf_claim_settle, OF_CLAIM, CHANGES_ONE(HF_ROW_CLAIM), SWIFT,
        .ends = HF_ENDS_BEGUN, SIZES(NAMES, HF_RESPONSE_MAX, RESPONSE) },

    [HF_ABANDON] = { "abandon", hf_claim_settle, OF_CLAIM, CHANGES_ONE(HF_ROW_CLAIM), SWIFT,
        .ends = HF_ENDS_BEGUN, SIZES(NAMES, HF_RESPONSE_MAX, RESPONSE) },

    [HF_GRANT] = { "grant", hf_lease_grant, KEYED(of_grant), OF_LEASE, SWIFT,
        .draws = HF_DRAWS_FENCE },
    [HF_RENEW] = { "renew", hf_lease_renew, OF_LEASE, SWIFT, .ends = HF_ENDS_BEGUN },
    [HF_RETURN] = { "return", hf_lease_return, OF_LEASE, SWIFT, .ends = HF_ENDS_BEGUN },
    [HF_DELETE_LEASE] = { "delete_lease", hf_lease_delete, KEYED(of_delete_lease), OF_LEASE,
        .ends = HF_ENDS_RECORD },

    [HF_WRITE] = { "write", hf_register_write, KEYED(of_write), SWIFT, OF_REGISTER(write.name),
        PAYLOAD(write.value, HF_VALUE_MAX), SIZES(HF_NAME_MAX, VALUE, LIGHT) },
    [HF_MERGE] = { "merge", hf_register_merge, OF_REGISTER(merge.name),
        SIZES(HF_NAME_MAX + HF_VALUE_MAX, VALUE, HEAVY) },
    [HF_DELETE_REGISTER] = { "delete_register", hf_register_delete, KEYED(of_delete_register),
        OF_REGISTER(write.name), SIZES(NAMES, VALUE, HEAVY), .ends = HF_ENDS_RECORD },

    [HF_APPLY] = { "apply", hf_decide_apply, KEYED(of_apply), .row = HF_ROW_VALUE,
        CHANGES(EFFECT, 0), SIZES(EFFECTS, 0, LIGHT) },

    [HF_SWEEP] = { "sweep", CHANGES(HOLD | RESOURCE, HF_ROW_HOLD), SMALL },
    [HF_CONFIGURE] = { "configure", CHANGES_ONE(HF_ROW_CONFIG), SMALL },

    [HF_GET_HOLD] = { "get_hold", READS(hf_read_hold), ROW(HF_ROW_HOLD, hold.id), SMALL },
    [HF_GET_RESOURCE] = { "get_resource", READS(hf_read_named),
        ROW(HF_ROW_RESOURCE, get.name), SMALL },
    [HF_GET_GUARD] = { "get_guard", READS(hf_read_named), ROW(HF_ROW_GUARD, get.name), SMALL },
    [HF_GET_CLAIM] = { "get_claim", READS(hf_read_claim), OF_CLAIM,
        SIZES(NAMES, HF_RESPONSE_MAX, RESPONSE) },
    [HF_GET_LEASE] = { "get_lease", READS(hf_read_named), ROW(HF_ROW_LEASE, get.name), SMALL },
    [HF_GET_REGISTER] = { "get_register", READS(hf_read_named), ROW(HF_ROW_REGISTER, get.name),
        SIZES(NAMES, VALUE, LIGHT) },
    [HF_GET_TOKEN] = { "get_token", READS(hf_read_token), OF_CLAIM,
        SIZES(NAMES, HF_RESPONSE_MAX, RESPONSE) },
    [HF_GET_VALUE] = { "get_value", READS(hf_read_value), ROW(HF_ROW_VALUE, get.name), SMALL },
};
/* clang-format on */

const char *hf_action_name(enum hf_action action)
{
    const char *name = hf_action_of(action)->name;
    return name ? name : "unknown";
}

#include "fuzz/support/script.h"

#include <stdio.h>

/* ---- Pools ---- */

static const enum hf_action actions[] = {
    HF_PLACE_HOLD,      HF_PLACE_HOLD,   HF_PLACE_HOLD,   HF_CONFIRM,      HF_RELEASE,
    HF_EXPIRE,          HF_REVERSE,      HF_SET_RESOURCE, HF_SET_GUARD,    HF_CHECK,
    HF_RECORD,          HF_ADMIT,        HF_BEGIN,        HF_COMPLETE,     HF_FAIL,
    HF_HEARTBEAT,       HF_GRANT,        HF_RENEW,        HF_RETURN,       HF_WRITE,
    HF_MERGE,           HF_APPLY,        HF_GET_HOLD,     HF_GET_TOKEN,    HF_GET_RESOURCE,
    HF_GET_GUARD,       HF_GET_CLAIM,    HF_GET_LEASE,    HF_GET_REGISTER, HF_GET_VALUE,
    HF_DELETE_REGISTER, HF_DELETE_LEASE, HF_ABANDON,      HF_CONFIRM_LATE
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const int64_t spans[] = {
    60000, 1000, 1, 3600000, 0, HF_DURATION_MAX_MS, HF_DURATION_MAX_MS + 1, -1, INT64_MIN, INT64_MAX
};
enum { SPANS = sizeof spans / sizeof *spans };

static char longer[HF_NAME_MAX + 1];

/* A name out of a few, now and then one that no name may be. */
static struct hf_bytes name(struct fuzz_script *s)
{
    static const char *const few[] = { "a", "b", "c", "\xc3\x84", "\xc3\xa4", " a", "A" };
    uint8_t which = fuzz_u8(&s->in);
    if (which < 0xf0)
        return hf_str(few[which % (sizeof few / sizeof *few)]);
    switch (which) {
    case 0xf0: return hf_mem(NULL, 0);
    case 0xf1: return hf_mem("a\0b", 3);
    case 0xf2: return hf_mem("\xff", 1);
    case 0xf3: memset(longer, 'x', sizeof longer); return hf_mem(longer, sizeof longer);
    case 0xf4: memset(longer, 'x', sizeof longer); return hf_mem(longer, HF_NAME_MAX);
    default: return fuzz_some(&s->in, which & 7);
    }
}

static struct hf_bytes tenant(struct fuzz_script *s)
{
    uint8_t which = fuzz_u8(&s->in);
    return which < 0xc0   ? hf_mem(NULL, 0)
           : which < 0xff ? hf_str("t")
                          : hf_mem(longer, HF_TENANT_MAX + 1);
}

static struct hf_bytes key(struct fuzz_script *s)
{
    static const char *const keys[] = { "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7" };
    uint8_t which = fuzz_u8(&s->in);
    return which < 0xf0 ? hf_str(keys[which % 8]) : fuzz_some(&s->in, which & 15);
}

static int64_t span(struct fuzz_script *s)
{
    return spans[fuzz_u8(&s->in) % SPANS];
}

static uint64_t fence(struct fuzz_script *s)
{
    const uint64_t fences[] = {
        s->fence, 0, s->fence + 1, 1, s->fence - 1, UINT64_MAX, INT64_MAX, 7
    };
    return fences[fuzz_u8(&s->in) % 8];
}

static struct hf_bytes id(struct fuzz_script *s)
{
    uint8_t which = fuzz_u8(&s->in);
    return which < 0xf0 ? hf_str(s->ids[which % FUZZ_IDS]) : fuzz_some(&s->in, 26);
}

/* ---- Members ---- */

static void guard(struct fuzz_script *s)
{
    s->request.set_guard.name = name(s);
    s->request.set_guard.window_ms = span(s);
    uint8_t flags = fuzz_u8(&s->in);
    s->request.set_guard.match_count = flags & 7;
    for (unsigned i = 0; i < HF_MATCH_MAX && i < s->request.set_guard.match_count; i++)
        s->request.set_guard.match[i] = (enum hf_match)(fuzz_u8(&s->in) % 7);
    s->request.set_guard.on_unavailable = flags & 8 ? HF_FAIL_CLOSED : HF_FAIL_OPEN;
    s->request.set_guard.volatile_only = flags & 16;
}

static void begin(struct fuzz_script *s)
{
    uint8_t flags = fuzz_u8(&s->in);
    s->request.begin.payload = name(s);
    s->request.begin.lease_ms = span(s);
    s->request.begin.on_abandon = flags & 1 ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
    if (flags & 2) {
        memset(s->fingerprint, flags, sizeof s->fingerprint);
        s->request.begin.fingerprint = s->fingerprint;
    }
}

static int64_t number(struct fuzz_script *s)
{
    static const int64_t numbers[] = { 0, 1, -1, 5, INT64_MAX, INT64_MIN, INT64_MAX - 1, 2 };
    return numbers[fuzz_u8(&s->in) % 8];
}

static void merge(struct fuzz_script *s)
{
    s->request.merge.name = name(s);
    s->request.merge.value = &s->value;
    s->value = (struct hf_value){ .type = (enum hf_register_type)(fuzz_u8(&s->in) % 11) };
    s->value.number = number(s);
    s->value.flag = s->value.number & 1;
    s->value.timestamp = number(s);
    s->value.node = name(s);
    s->value.bytes = name(s);
    s->value.item_count = fuzz_u8(&s->in) % 5;
    for (size_t i = 0; i < s->value.item_count; i++) {
        struct hf_bytes item = name(s);
        uint64_t up = (uint64_t)number(s);
        s->items[i] = (struct hf_item){ item, up, (uint64_t)number(s) };
    }
    s->value.items = s->items;
}

/* ---- Apply ---- */

static bool step_run(struct hf_tx *tx, struct fuzz_apply *a, size_t i)
{
    struct judge_effect *e = &a->effect;
    struct hf_bytes given = a->steps[i].name, bytes = a->steps[i].bytes, now;
    switch (a->steps[i].what) {
    case FUZZ_PUT:
        a->rows[e->row_count++] = (struct judge_row){ given, bytes, false };
        return hf_tx_put(tx, given, bytes) == HF_OK && hf_tx_get(tx, given, &now) == HF_OK &&
               now.size == bytes.size;
    case FUZZ_DELETE:
        a->rows[e->row_count++] = (struct judge_row){ .key = given, .deleted = true };
        return hf_tx_delete(tx, given) == HF_OK && hf_tx_get(tx, given, &now) == HF_NOT_KNOWN;
    case FUZZ_ENQUEUE:
        a->intents[e->outbox_count++] = (struct judge_intent){ given, bytes };
        return hf_tx_enqueue(tx, given, bytes) == HF_OK;
    default: e->result = bytes; return hf_tx_result(tx, bytes) == HF_OK;
    }
}

static enum hf_status apply_run(struct hf_tx *tx, void *arg)
{
    struct fuzz_apply *a = arg;
    a->effect.runs++;
    for (size_t i = 0; i < a->step_count; i++)
        FUZZ_WANT(step_run(tx, a, i));
    return a->effect.returned = a->returns;
}

static void apply(struct fuzz_script *s)
{
    static const enum hf_status returns[] = { HF_OK, HF_OK, HF_REFUSED, HF_STORAGE_FAILURE };
    static const char *const names[] = { "v0", "v1", "v2", "v3" };
    struct fuzz_apply *a = &s->apply;
    *a = (struct fuzz_apply){ .step_count = fuzz_u8(&s->in) % (FUZZ_EFFECTS + 1) };
    a->returns = returns[fuzz_u8(&s->in) % 4];
    for (size_t i = 0; i < a->step_count; i++) {
        a->steps[i].what = fuzz_u8(&s->in) % FUZZ_APPLY_STEPS;
        a->steps[i].name = hf_str(names[fuzz_u8(&s->in) % 4]);
        a->steps[i].bytes = name(s);
    }
    a->effect.rows = a->rows;
    a->effect.outbox = a->intents;
    s->request.apply.name = name(s);
    s->request.apply.payload = name(s);
    s->request.apply.fn = apply_run;
    s->request.apply.arg = a;
}

/* ---- Requests ---- */

static void members(struct fuzz_script *s)
{
    unsigned open, version;
    struct hf_request *r = &s->request;
    switch (r->action) {
    case HF_PLACE_HOLD:
        r->place_hold.resource = name(s);
        r->place_hold.requester = name(s);
        r->place_hold.duration_ms = span(s);
        r->place_hold.fence = fuzz_u8(&s->in) & 1 ? fence(s) : 0;
        break;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: r->hold.id = id(s); break;
    case HF_SET_RESOURCE:
        r->set_resource.name = name(s);
        r->set_resource.capacity =
            fuzz_u8(&s->in) == 0xff ? HF_CAPACITY_MAX + 1U : fuzz_u8(&s->in) % 4U;
        open = fuzz_u8(&s->in);
        r->set_resource.open = open % 3;
        r->set_resource.require_fence = open / 64;
        break;
    case HF_SET_GUARD: guard(s); break;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT:
        r->identity.guard = name(s);
        r->identity.identity = name(s);
        r->identity.has_result = fuzz_u8(&s->in) & 1;
        r->identity.result = r->identity.has_result ? name(s) : hf_mem(NULL, 0);
        break;
    case HF_BEGIN: begin(s); break;
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON:
        r->settle.fence = fence(s);
        r->settle.response = name(s);
        r->settle.retryable = fuzz_u8(&s->in) & 1;
        r->settle.lease_ms = span(s);
        break;
    case HF_GRANT:
    case HF_RENEW:
    case HF_RETURN:
    case HF_DELETE_LEASE:
        r->lease.name = name(s);
        r->lease.holder = name(s);
        r->lease.ttl_ms = span(s);
        r->lease.fence = fence(s);
        break;
    case HF_WRITE:
    case HF_DELETE_REGISTER:
        r->write.name = name(s);
        r->write.value = name(s);
        r->write.fence = fuzz_u8(&s->in) & 1 ? fence(s) : 0;
        r->write.has_if_version = fuzz_u8(&s->in) & 1;
        version = fuzz_u8(&s->in);
        r->write.if_version = version % 4;
        r->write.require_fence = version / 64;
        break;
    case HF_MERGE: merge(s); break;
    case HF_APPLY: apply(s); break;
    default: r->get.name = name(s); break;
    }
}

void fuzz_script_next(struct fuzz_script *s)
{
    uint8_t how = fuzz_u8(&s->in);
    s->request = (struct hf_request){ .action = actions[fuzz_u8(&s->in) % ACTIONS] };
    s->request.tenant = tenant(s);
    if (how < 0xe0) {
        s->request.key = key(s);
    } else if (how < 0xff) {
        s->request.client = name(s);
        s->request.sequence = how & 1 ? fuzz_u8(&s->in) : fuzz_u16(&s->in);
    }
    members(s);
}

void fuzz_script_learn(struct fuzz_script *s, const struct hf_result *result)
{
    const struct hf_answer *a = &result->answer;
    if (a->kind == HF_RECORD_HOLD)
        memcpy(s->ids[s->id_next++ % FUZZ_IDS], a->hold.id, HF_ID_SIZE);
    if (a->kind == HF_RECORD_CLAIM)
        s->fence = a->claim.fence;
    if (a->kind == HF_RECORD_LEASE)
        s->fence = a->lease.fence;
}

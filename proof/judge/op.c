/* op.c: copies of what was told, and comparisons of what was asked and answered. */
#include "judge/model.h"

/* ---- Copies ---- */

static void keep(struct judge *j, struct hf_bytes *bytes)
{
    *bytes = judge_keep(j, *bytes);
}

static void keep_value(struct judge *j, struct hf_value *v)
{
    keep(j, &v->node);
    keep(j, &v->bytes);
    if (v->item_count > HF_MERGE_ITEMS_MAX) /* past the limit: refused, and never looked at again */
        v->item_count = 0;
    if (v->item_count == 0) {
        v->items = NULL;
        return;
    }
    struct hf_item *items = judge_take(j, v->item_count * sizeof *items);
    for (size_t i = 0; i < v->item_count; i++) {
        items[i] = v->items[i];
        keep(j, &items[i].name);
    }
    v->items = items;
}

static void keep_merge(struct judge *j, struct hf_request *r)
{
    keep(j, &r->merge.name);
    if (!r->merge.value)
        return;
    bool many = r->merge.value->item_count > HF_MERGE_ITEMS_MAX;
    struct hf_value *copy = judge_take(j, sizeof *copy);
    *copy = *r->merge.value;
    keep_value(j, copy);
    if (many)
        copy->type = (enum hf_register_type)0; /* so that it stays malformed */
    r->merge.value = copy;
}

static void keep_begin(struct judge *j, struct hf_request *r)
{
    keep(j, &r->begin.payload);
    if (r->begin.fingerprint)
        r->begin.fingerprint = judge_keep(j, hf_mem(r->begin.fingerprint, HF_DIGEST_SIZE)).data;
}

static const struct hf_invalid *keep_invalid(struct judge *j, const struct hf_invalid *was)
{
    struct hf_invalid *copy = judge_take(j, sizeof *copy);
    struct hf_flaw *flaws = judge_take(j, (was->count + 1) * sizeof *flaws);
    for (size_t i = 0; i < was->count; i++) {
        struct hf_bytes name =
            judge_keep(j, hf_mem(was->flaws[i].name, strlen(was->flaws[i].name) + 1));
        flaws[i] = (struct hf_flaw){ name.data, judge_keep(j, was->flaws[i].sent) };
    }
    *copy = (struct hf_invalid){ flaws, was->count, judge_keep(j, was->why) };
    return copy;
}

static void keep_request(struct judge *j, struct hf_request *r)
{
    if (r->invalid)
        r->invalid = keep_invalid(j, r->invalid);
    keep(j, &r->tenant);
    keep(j, &r->key);
    keep(j, &r->client);
    switch (r->action) {
    case HF_PLACE_HOLD:
        keep(j, &r->place_hold.resource);
        keep(j, &r->place_hold.requester);
        break;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: keep(j, &r->hold.id); break;
    case HF_SET_RESOURCE: keep(j, &r->set_resource.name); break;
    case HF_SET_GUARD: keep(j, &r->set_guard.name); break;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT:
        keep(j, &r->identity.guard);
        keep(j, &r->identity.identity);
        r->identity.result =
            r->identity.has_result ? judge_keep(j, r->identity.result) : hf_mem("", 0);
        break;
    case HF_BEGIN: keep_begin(j, r); break;
    case HF_COMPLETE:
    case HF_FAIL: keep(j, &r->settle.response); break;
    case HF_GRANT: keep(j, &r->lease.holder); /* fall through */
    case HF_RENEW:
    case HF_RETURN:
    case HF_DELETE_LEASE: keep(j, &r->lease.name); break;
    case HF_WRITE:
    case HF_DELETE_REGISTER:
        keep(j, &r->write.name);
        keep(j, &r->write.value);
        break;
    case HF_MERGE: keep_merge(j, r); break;
    case HF_APPLY:
        keep(j, &r->apply.name);
        keep(j, &r->apply.payload);
        break;
    case HF_GET_RESOURCE:
    case HF_GET_GUARD:
    case HF_GET_LEASE:
    case HF_GET_REGISTER:
    case HF_GET_VALUE: keep(j, &r->get.name); break;
    default: break;
    }
}

static void keep_answer(struct judge *j, struct hf_answer *a)
{
    switch (a->kind) {
    case HF_RECORD_HOLD:
        keep(j, &a->hold.tenant);
        keep(j, &a->hold.resource);
        keep(j, &a->hold.requester);
        break;
    case HF_RECORD_RESOURCE:
        keep(j, &a->resource.tenant);
        keep(j, &a->resource.name);
        break;
    case HF_RECORD_GUARD:
        keep(j, &a->guard.tenant);
        keep(j, &a->guard.name);
        break;
    case HF_RECORD_SEEN: keep(j, &a->seen.result); break;
    case HF_RECORD_CLAIM:
        keep(j, &a->claim.tenant);
        keep(j, &a->claim.key);
        keep(j, &a->claim.response);
        break;
    case HF_RECORD_LEASE:
        keep(j, &a->lease.tenant);
        keep(j, &a->lease.name);
        keep(j, &a->lease.holder);
        break;
    case HF_RECORD_REGISTER:
        keep(j, &a->reg.tenant);
        keep(j, &a->reg.name);
        keep_value(j, &a->reg.value);
        break;
    case HF_RECORD_VALUE: keep(j, &a->value); break;
    default: break;
    }
}

static void keep_effect(struct judge *j, struct judge_effect *e)
{
    keep(j, &e->result);
    struct judge_row *rows = judge_take(j, (e->row_count + 1) * sizeof *rows);
    for (size_t i = 0; i < e->row_count; i++)
        rows[i] = (struct judge_row){ judge_keep(j, e->rows[i].key),
                                      judge_keep(j, e->rows[i].value), e->rows[i].deleted };
    struct judge_intent *outbox = judge_take(j, (e->outbox_count + 1) * sizeof *outbox);
    for (size_t i = 0; i < e->outbox_count; i++)
        outbox[i] = (struct judge_intent){ judge_keep(j, e->outbox[i].topic),
                                           judge_keep(j, e->outbox[i].payload) };
    e->rows = rows;
    e->outbox = outbox;
}

struct judge_op *judge_op_copy(struct judge *j, const struct hf_request *request,
                               const struct judge_effect *effect, const struct hf_result *result)
{
    struct judge_op *op = judge_take(j, sizeof *op);
    memset(op, 0, sizeof *op);
    op->request = *request;
    keep_request(j, &op->request);
    if (effect && effect->runs > 0) {
        op->effect = *effect;
        keep_effect(j, &op->effect);
    }
    if (result) {
        op->has_result = true;
        op->answer = result->answer;
        keep_answer(j, &op->answer);
        op->token = result->token;
        op->replayed = result->replayed;
        op->now = result->now;
    }
    return op;
}

/* ---- What was asked ---- */

static bool same(struct hf_bytes a, struct hf_bytes b)
{
    return judge_bytes_equal(a, b);
}

/* What says which value it is. Of JSON as servers store it that is its head: NUL, j and a hash. */
static struct hf_bytes head_of(struct hf_bytes value)
{
    const unsigned char *p = value.data;
    bool is_json = value.size >= HF_STORED_HEAD && p[0] == 0 && p[1] == 'j';
    return is_json ? hf_mem(p, HF_STORED_HEAD) : value;
}

bool judge_stored_same(struct hf_bytes a, struct hf_bytes b)
{
    return same(head_of(a), head_of(b));
}

/* The requests have the same flaws: then what else they say is compared too, but not what is
 * flawed, which is empty in both. */
static bool flaws_same(const struct hf_invalid *a, const struct hf_invalid *b)
{
    if (!a || !b)
        return !a && !b;
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->flaws[i].name, b->flaws[i].name) != 0 ||
            !same(a->flaws[i].sent, b->flaws[i].sent))
            return false;
    return true;
}

/* Of actions that need a key alone: nothing else is bound to one this way. */
bool judge_request_same(const struct hf_request *a, const struct hf_request *b)
{
    if (a->action != b->action || !flaws_same(a->invalid, b->invalid))
        return false;
    switch (a->action) {
    case HF_PLACE_HOLD:
        return same(a->place_hold.resource, b->place_hold.resource) &&
               same(a->place_hold.requester, b->place_hold.requester) &&
               a->place_hold.duration_ms == b->place_hold.duration_ms &&
               a->place_hold.fence == b->place_hold.fence;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE: return same(a->hold.id, b->hold.id);
    case HF_GRANT:
        return same(a->lease.name, b->lease.name) && same(a->lease.holder, b->lease.holder) &&
               a->lease.ttl_ms == b->lease.ttl_ms;
    case HF_DELETE_LEASE:
        return same(a->lease.name, b->lease.name) && a->lease.fence == b->lease.fence;
    case HF_WRITE:
    case HF_DELETE_REGISTER:
        return same(a->write.name, b->write.name) &&
               judge_stored_same(a->write.value, b->write.value) &&
               a->write.fence == b->write.fence &&
               a->write.require_fence == b->write.require_fence &&
               a->write.has_if_version == b->write.has_if_version &&
               (!a->write.has_if_version || a->write.if_version == b->write.if_version);
    case HF_APPLY:
        return same(a->apply.name, b->apply.name) && same(a->apply.payload, b->apply.payload);
    default: return false;
    }
}

/* ---- What was answered ---- */

bool judge_hold_same(const struct hf_hold *a, const struct hf_hold *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->reverses, b->reverses) == 0 &&
           strcmp(a->reacquires, b->reacquires) == 0 && a->ordinal == b->ordinal &&
           a->previous == b->previous && a->state == b->state && same(a->tenant, b->tenant) &&
           same(a->resource, b->resource) && same(a->requester, b->requester) &&
           a->placed_at == b->placed_at && a->expires_at == b->expires_at &&
           a->ended_at == b->ended_at;
}

static bool resource_same(const struct hf_resource *a, const struct hf_resource *b)
{
    return same(a->tenant, b->tenant) && same(a->name, b->name) && a->capacity == b->capacity &&
           a->held == b->held && a->confirmed == b->confirmed && a->open == b->open &&
           a->require_fence == b->require_fence && a->fence == b->fence && a->newest == b->newest &&
           a->created_at == b->created_at;
}

bool judge_guard_same(const struct hf_guard *a, const struct hf_guard *b)
{
    if (!same(a->tenant, b->tenant) || !same(a->name, b->name) || a->window_ms != b->window_ms ||
        a->match_count != b->match_count || a->on_unavailable != b->on_unavailable ||
        a->durable != b->durable || a->created_at != b->created_at)
        return false;
    for (uint32_t i = 0; i < a->match_count && i < HF_MATCH_MAX; i++)
        if (a->match[i] != b->match[i])
            return false;
    return true;
}

static bool seen_same(const struct hf_seen *a, const struct hf_seen *b)
{
    return a->seen == b->seen && a->has_result == b->has_result &&
           a->recorded_at == b->recorded_at && a->expires_at == b->expires_at &&
           same(a->result, b->result);
}

static bool lease_same(const struct hf_lease *a, const struct hf_lease *b)
{
    return same(a->tenant, b->tenant) && same(a->name, b->name) && same(a->holder, b->holder) &&
           a->fence == b->fence && a->ttl_ms == b->ttl_ms && a->granted_at == b->granted_at &&
           a->expires_at == b->expires_at && a->released_at == b->released_at;
}

static bool register_same(const struct hf_register *a, const struct hf_register *b)
{
    return same(a->tenant, b->tenant) && same(a->name, b->name) && a->version == b->version &&
           a->fence == b->fence && a->require_fence == b->require_fence &&
           a->changed_at == b->changed_at && judge_value_same(&a->value, &b->value);
}

bool judge_answer_same(const struct hf_answer *a, const struct hf_answer *b)
{
    if (a->status != b->status || a->kind != b->kind || a->refund != b->refund)
        return false;
    switch (a->kind) {
    case HF_RECORD_HOLD: return judge_hold_same(&a->hold, &b->hold);
    case HF_RECORD_RESOURCE: return resource_same(&a->resource, &b->resource);
    case HF_RECORD_GUARD: return judge_guard_same(&a->guard, &b->guard);
    case HF_RECORD_SEEN: return seen_same(&a->seen, &b->seen);
    case HF_RECORD_CLAIM: return judge_claim_same(&a->claim, &b->claim);
    case HF_RECORD_LEASE: return lease_same(&a->lease, &b->lease);
    case HF_RECORD_REGISTER: return register_same(&a->reg, &b->reg);
    case HF_RECORD_VALUE: return same(a->value, b->value);
    default: return true;
    }
}

/* ---- Words ---- */

const char *judge_action_name(enum hf_action action)
{
    static const char *const names[] = { [HF_PLACE_HOLD] = "place_hold",
                                         [HF_CONFIRM] = "confirm",
                                         [HF_RELEASE] = "release",
                                         [HF_EXPIRE] = "expire",
                                         [HF_REVERSE] = "reverse",
                                         [HF_CONFIRM_LATE] = "confirm_late",
                                         [HF_SET_RESOURCE] = "set_resource",
                                         [HF_SET_GUARD] = "set_guard",
                                         [HF_CHECK] = "check",
                                         [HF_RECORD] = "record",
                                         [HF_ADMIT] = "admit",
                                         [HF_BEGIN] = "begin",
                                         [HF_COMPLETE] = "complete",
                                         [HF_FAIL] = "fail",
                                         [HF_HEARTBEAT] = "heartbeat",
                                         [HF_GRANT] = "grant",
                                         [HF_RENEW] = "renew",
                                         [HF_RETURN] = "return",
                                         [HF_WRITE] = "write",
                                         [HF_MERGE] = "merge",
                                         [HF_APPLY] = "apply",
                                         [HF_DELETE_REGISTER] = "delete_register",
                                         [HF_DELETE_LEASE] = "delete_lease",
                                         [HF_ABANDON] = "abandon",
                                         [HF_GET_HOLD] = "get_hold",
                                         [HF_GET_RESOURCE] = "get_resource",
                                         [HF_GET_GUARD] = "get_guard",
                                         [HF_GET_CLAIM] = "get_claim",
                                         [HF_GET_LEASE] = "get_lease",
                                         [HF_GET_REGISTER] = "get_register",
                                         [HF_GET_TOKEN] = "get_token",
                                         [HF_GET_VALUE] = "get_value" };
    size_t at = (size_t)action;
    return at < sizeof names / sizeof *names && names[at] ? names[at] : "unknown action";
}

const char *judge_status_name(enum hf_status status)
{
    static const char *const names[] = { [HF_OK] = "ok",
                                         [HF_INVALID_REQUEST] = "invalid-request",
                                         [HF_NOT_KNOWN] = "not-known",
                                         [HF_RESOURCE_UNAVAILABLE] = "resource-unavailable",
                                         [HF_NOT_HELD] = "not-held",
                                         [HF_WINDOW_ELAPSED] = "window-elapsed",
                                         [HF_WINDOW_NOT_ELAPSED] = "window-not-elapsed",
                                         [HF_IN_PROGRESS] = "in-progress",
                                         [HF_OUTCOME_UNKNOWN] = "outcome-unknown",
                                         [HF_STALE_FENCE] = "stale-fence",
                                         [HF_VERSION_MISMATCH] = "version-mismatch",
                                         [HF_TOKEN_COLLISION] = "token-collision",
                                         [HF_LEASE_HELD] = "lease-held",
                                         [HF_REFUSED] = "refused",
                                         [HF_STORAGE_FAILURE] = "storage-failure",
                                         [HF_NO_MEMORY] = "no-memory",
                                         [HF_MISUSE] = "misuse",
                                         [HF_INDETERMINATE] = "indeterminate" };
    size_t at = (size_t)status;
    return at < sizeof names / sizeof *names && names[at] ? names[at] : "unknown status";
}

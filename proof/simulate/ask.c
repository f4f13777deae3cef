#include "simulate/ask.h"

#include "base/assert.h"
#include "simulate/script.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- What is known ---- */

void sim_known_init(struct sim_known *known, uint32_t labels)
{
    memset(known, 0, sizeof *known);
    known->labels = labels;
    known->steps = calloc((size_t)labels + 1, sizeof *known->steps);
    HF_ASSERT(known->steps);
}

void sim_known_free(struct sim_known *known)
{
    free(known->steps);
}

void sim_known_learn(struct sim_known *known, const struct sim_ask *ask)
{
    const struct sim_step *s = &ask->step;
    const struct hf_answer *a = &ask->result.answer;
    struct sim_shown *shown = &known->steps[s->first ? s->first : s->label];
    if (a->kind == HF_RECORD_HOLD &&
        (s->action == HF_PLACE_HOLD || s->action == HF_REVERSE || s->action == HF_CONFIRM_LATE))
        memcpy(shown->id, a->hold.id, sizeof shown->id);
    if (a->kind == HF_RECORD_CLAIM && s->key_kind == SIM_KEY_CLAIM)
        known->claims[s->tenant][s->key] = a->claim.fence;
    if (s->thing >= SIM_THINGS_MAX)
        return;
    if (a->kind == HF_RECORD_LEASE)
        known->leases[s->tenant][s->thing] = a->lease.fence;
    if (a->kind == HF_RECORD_REGISTER)
        known->versions[s->tenant][s->thing] = a->reg.version;
}

/* ---- Bytes ---- */

static unsigned char *take(struct hf_arena *arena, size_t size)
{
    unsigned char *p = hf_arena_take(arena, size ? size : 1);
    HF_ASSERT(p);
    return p;
}

/* "r17" and as many '-' as make `least` bytes. */
static struct hf_bytes named(struct hf_arena *arena, char prefix, uint32_t number, size_t least)
{
    char text[16];
    size_t n = (size_t)snprintf(text, sizeof text, "%c%" PRIu32, prefix, number);
    size_t size = n < least ? least : n;
    unsigned char *p = take(arena, size);
    memset(p, '-', size);
    memcpy(p, text, n);
    return hf_mem(p, size);
}

/* Bytes that follow from `draw`, and that pack well. */
static struct hf_bytes filled(struct hf_arena *arena, size_t size, uint64_t draw)
{
    unsigned char *p = take(arena, size);
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)(draw >> (i % 8 * 8));
    return hf_mem(p, size);
}

static struct hf_bytes thing(const struct sim_mix *mix, struct hf_arena *arena, char prefix,
                             uint32_t number)
{
    if (number == SIM_NAME_EMPTY)
        return hf_mem(NULL, 0);
    return named(arena, prefix, number,
                 number == SIM_NAME_LONG ? HF_NAME_MAX + 1 : mix->name_bytes);
}

struct hf_bytes sim_tenant(uint32_t number)
{
    static const char *const names[SIM_TENANTS_MAX] = { "", "north", "south-with-a-longer-name" };
    HF_ASSERT(number < SIM_TENANTS_MAX);
    return hf_str(names[number]);
}

struct hf_bytes sim_guard_name(const struct sim_mix *mix, uint32_t number, struct hf_arena *arena)
{
    return thing(mix, arena, 'g', number);
}

/* The same identity for most match rules, written in different ways. */
static struct hf_bytes identity(struct hf_arena *arena, const struct sim_step *s)
{
    static const char *const forms[] = {
        "Item %" PRIu32 " blue",     "item %" PRIu32 " blue",         "ITEM %" PRIu32 " BLUE",
        "  Item %" PRIu32 " blue\t", "Item   %" PRIu32 " \t\n  blue", " iTEM  %" PRIu32 "  bLUE ",
        "Item %" PRIu32 " blue",     "Item %" PRIu32 " blue",
    };
    unsigned char *p = take(arena, 64);
    static const size_t count = sizeof forms / sizeof *forms;
    const char *form = forms[s->variant % count];
    size_t n = 0;
    /* Not printf, because the format is not a literal. */
    for (const char *c = form; *c; c++) {
        if (*c != '%') {
            p[n++] = (unsigned char)*c;
            continue;
        }
        n += (size_t)snprintf((char *)p + n, 12, "%" PRIu32, s->who);
        c += strlen("%" PRIu32) - 1;
    }
    return hf_mem(p, n);
}

/* ---- Keys, ids and fences ---- */

/* Short ones, long ones, and some that differ only at their end. */
static struct hf_bytes token_key(struct hf_arena *arena, uint32_t number, size_t long_bytes)
{
    static const char front[] = "all-begin-alike-";
    if (number % 3 != 1)
        return named(arena, 'k', number, number % 3 ? 0 : long_bytes);
    struct hf_bytes end = named(arena, 'k', number, 0);
    unsigned char *p = take(arena, sizeof front - 1 + end.size);
    memcpy(p, front, sizeof front - 1);
    memcpy(p + sizeof front - 1, end.data, end.size);
    return hf_mem(p, sizeof front - 1 + end.size);
}

static void set_key(const struct sim_step *s, const struct sim_mix *mix, struct hf_arena *arena,
                    struct hf_request *r)
{
    switch ((enum sim_key)s->key_kind) {
    case SIM_KEY_TOKEN: r->key = token_key(arena, s->key, mix->key_bytes); break;
    case SIM_KEY_CLAIM: r->key = named(arena, 'c', s->key, 0); break;
    case SIM_KEY_NUMBER:
        r->client = named(arena, 'n', s->client, 0);
        r->sequence = s->key;
        break;
    case SIM_KEY_NONE: break;
    case SIM_KEY_LONG: r->key = named(arena, 'k', s->key, HF_TOKEN_MAX + 1); break;
    }
}

static uint64_t fence_by(enum sim_fence how, uint64_t newest)
{
    switch (how) {
    case SIM_FENCE_NONE: return 0;
    case SIM_FENCE_NEWEST: return newest;
    case SIM_FENCE_OLD: return newest ? newest - 1 : 0;
    case SIM_FENCE_NEXT: return newest + 1;
    }
    return 0;
}

static uint64_t newest_fence(const struct sim_step *s, const struct sim_known *known)
{
    if ((s->action >= HF_BEGIN && s->action <= HF_HEARTBEAT) || s->action == HF_ABANDON)
        return s->key_kind == SIM_KEY_CLAIM ? known->claims[s->tenant][s->key] : 1;
    return s->thing < SIM_THINGS_MAX ? known->leases[s->tenant][s->thing] : 0;
}

/* What the request needs to know: as the first time, or found now. */
static const struct sim_shown *knowledge(const struct sim_step *s, struct sim_known *known)
{
    struct sim_shown *k = &known->steps[s->first ? s->first : s->label];
    if (k->asked)
        return k;
    k->asked = true;
    k->fence = fence_by((enum sim_fence)s->fence, newest_fence(s, known));
    k->version = s->thing < SIM_THINGS_MAX ? known->versions[s->tenant][s->thing] : 0;
    const char *id = s->origin ? known->steps[s->origin].id : "";
    snprintf(k->used, sizeof k->used, "%s", *id ? id : "00000000000000000000000000");
    return k;
}

/* ---- Applying ---- */

static enum hf_status do_put(struct hf_tx *tx, struct sim_effect *e, struct hf_bytes key,
                             struct hf_bytes value)
{
    e->rows[e->did.row_count++] = (struct judge_row){ .key = key, .value = value };
    return hf_tx_put(tx, key, value);
}

static enum hf_status do_enqueue(struct hf_tx *tx, struct sim_effect *e, const char *topic)
{
    struct hf_bytes payload = filled(e->arena, e->step->size, e->step->draw);
    e->intents[e->did.outbox_count++] = (struct judge_intent){ hf_str(topic), payload };
    return hf_tx_enqueue(tx, hf_str(topic), payload);
}

/* One more than what is there: if it runs twice, it shows. */
static enum hf_status do_count(struct hf_tx *tx, struct sim_effect *e)
{
    struct hf_bytes value;
    uint64_t n = 0;
    enum hf_status st = hf_tx_get(tx, e->key, &value);
    if (st == HF_OK && value.size >= sizeof n)
        memcpy(&n, value.data, sizeof n);
    else if (st != HF_OK && st != HF_NOT_KNOWN)
        return st;
    n++;
    unsigned char *p = take(e->arena, sizeof n + e->step->size);
    memset(p, 'v', sizeof n + e->step->size);
    memcpy(p, &n, sizeof n);
    struct hf_bytes next = hf_mem(p, sizeof n + e->step->size);
    st = do_put(tx, e, e->key, next);
    if (st != HF_OK)
        return st;
    e->did.result = next;
    return hf_tx_result(tx, next);
}

static enum hf_status apply(struct hf_tx *tx, void *arg)
{
    struct sim_effect *e = arg;
    enum hf_status st;
    e->did.runs++;
    e->did.rows = e->rows;
    e->did.outbox = e->intents;
    e->did.row_count = e->did.outbox_count = 0;
    e->did.result = hf_mem(NULL, 0);
    switch (e->step->variant) {
    case 0:
        st = hf_tx_delete(tx, e->key);
        e->rows[e->did.row_count++] = (struct judge_row){ .key = e->key, .deleted = true };
        break;
    case 1:
        st = do_count(tx, e);
        if (st == HF_OK)
            st = do_enqueue(tx, e, "mail");
        if (st == HF_OK)
            st = do_enqueue(tx, e, "ship");
        break;
    case 2: st = do_count(tx, e) == HF_OK ? HF_REFUSED : HF_STORAGE_FAILURE; break;
    case 3: st = do_count(tx, e) == HF_OK ? HF_STORAGE_FAILURE : HF_NO_MEMORY; break;
    default: st = do_count(tx, e); break;
    }
    e->did.returned = st;
    return st;
}

/* ---- Parameters ---- */

static void make_merge(struct sim_ask *ask, const struct sim_step *s, struct hf_arena *arena)
{
    struct hf_value *v = &ask->value;
    static const char *const nodes[] = { "a", "b", "c", "d" };
    unsigned type = HF_TYPE_MAX + (s->thing + s->variant) % 8;
    *v = (struct hf_value){ .type = (enum hf_register_type)type };
    v->number = (int64_t)(s->draw % 1000) - 500;
    v->flag = s->draw >> 12 & 1;
    v->timestamp = (int64_t)(s->draw >> 20 & 63);
    if (type == HF_TYPE_LWW) {
        v->node = hf_str(nodes[s->draw >> 28 & 3]);
        v->bytes = filled(arena, s->draw >> 32 & 15, s->draw);
    }
    if (type != HF_TYPE_UNION && type < HF_TYPE_VECTOR)
        return;
    for (unsigned i = 0; i < 4; i++) {
        if (!(s->draw >> (40 + i) & 1))
            continue;
        ask->items[v->item_count++] =
            (struct hf_item){ .name = hf_str(nodes[i]),
                              .up = type == HF_TYPE_UNION ? 0 : s->draw >> (44 + i) & 15,
                              .down = type == HF_TYPE_UPDOWN ? s->draw >> (50 + i) & 15 : 0 };
    }
    v->items = ask->items;
}

static void make_guard(const struct sim_step *s, struct hf_request *r)
{
    static const enum hf_match rules[16][3] = {
        { HF_MATCH_EXACT },
        { HF_MATCH_TRIM },
        { HF_MATCH_CASEFOLD },
        { HF_MATCH_NORMALIZE },
        { HF_MATCH_HASH },
        { HF_MATCH_TRIM, HF_MATCH_CASEFOLD },
        { HF_MATCH_NORMALIZE, HF_MATCH_CASEFOLD },
        { HF_MATCH_TRIM, HF_MATCH_NORMALIZE, HF_MATCH_CASEFOLD },
        { HF_MATCH_TRIM, HF_MATCH_HASH },
        { HF_MATCH_CASEFOLD, HF_MATCH_HASH },
        { HF_MATCH_HASH, HF_MATCH_TRIM }, /* not allowed */
        { HF_MATCH_TRIM, HF_MATCH_TRIM }, /* not allowed */
    };
    const enum hf_match *rule = rules[s->variant & 15];
    r->set_guard.window_ms = s->amount;
    r->set_guard.on_unavailable = s->variant & 32 ? HF_FAIL_CLOSED : HF_FAIL_OPEN;
    r->set_guard.volatile_only = s->variant & 16;
    r->set_guard.force = s->variant & 64;
    for (uint32_t i = 0; i < 3 && rule[i]; i++)
        r->set_guard.match[r->set_guard.match_count++] = rule[i];
}

static void make_claim(const struct sim_step *s, const struct sim_shown *known,
                       struct hf_arena *arena, struct hf_request *r)
{
    if (r->action == HF_BEGIN) {
        r->begin.payload = filled(arena, 8, s->who);
        r->begin.lease_ms = s->amount;
        r->begin.on_abandon = s->variant & 1 ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
        r->begin.retention_ms = s->variant & 2 ? 1 + (int64_t)s->size * 100 : 0;
        return;
    }
    r->settle.fence = known->fence;
    if (r->action == HF_ABANDON)
        return;
    r->settle.response = filled(arena, s->size, s->draw);
    r->settle.retryable = s->variant & 1;
    r->settle.lease_ms = r->action == HF_HEARTBEAT ? s->amount : 0;
}

/* One in 16 requires a fence, and two say that none is required. */
static enum hf_require require(const struct sim_step *s)
{
    static const enum hf_require wishes[16] = { HF_REQUIRED, HF_NOT_REQUIRED, HF_NOT_REQUIRED };
    return wishes[s->draw >> 40 & 15];
}

static void make_write(const struct sim_step *s, const struct sim_shown *known,
                       struct hf_arena *arena, struct hf_request *r)
{
    r->write.value = filled(arena, s->size, s->draw);
    r->write.fence = known->fence;
    r->write.has_if_version = s->variant >= 3;
    r->write.if_version = s->variant == 4 ? known->version + 1 : known->version;
    r->write.require_fence = require(s);
}

static void make_identity(const struct sim_step *s, struct hf_arena *arena, struct hf_request *r)
{
    r->identity.identity = identity(arena, s);
    r->identity.has_result = s->size > 0;
    r->identity.result = filled(arena, s->size, s->draw);
}

static void make_apply(struct sim_ask *ask, const struct sim_mix *mix, struct hf_arena *arena)
{
    const struct sim_step *s = &ask->step;
    struct hf_request *r = &ask->request;
    ask->effect = (struct sim_effect){ .step = s,
                                       .arena = arena,
                                       .key = thing(mix, arena, 'v', s->thing % 8) };
    r->apply.name = thing(mix, arena, 'a', s->thing);
    r->apply.payload = filled(arena, 12, s->draw);
    r->apply.fn = apply;
    r->apply.arg = &ask->effect;
}

static void make_more(struct sim_ask *ask, const struct sim_mix *mix, const struct sim_shown *known,
                      struct hf_arena *arena)
{
    const struct sim_step *s = &ask->step;
    struct hf_request *r = &ask->request;
    switch (r->action) {
    case HF_SET_GUARD:
        r->set_guard.name = thing(mix, arena, 'g', s->thing);
        make_guard(s, r);
        break;
    case HF_CHECK:
    case HF_RECORD:
    case HF_ADMIT:
        r->identity.guard = thing(mix, arena, 'g', s->thing);
        make_identity(s, arena, r);
        break;
    case HF_BEGIN:
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON: make_claim(s, known, arena, r); break;
    case HF_GRANT:
    case HF_RENEW:
    case HF_RETURN:
        r->lease.name = thing(mix, arena, 'l', s->thing);
        r->lease.holder = r->action == HF_GRANT ? named(arena, 'h', s->who, 0) : hf_mem(NULL, 0);
        r->lease.ttl_ms = r->action == HF_RETURN ? 0 : s->amount;
        r->lease.fence = r->action == HF_GRANT ? 0 : known->fence;
        break;
    case HF_DELETE_LEASE:
        r->lease.name = thing(mix, arena, 'l', s->thing);
        r->lease.fence = known->fence;
        break;
    case HF_DELETE_REGISTER:
        r->write.name = thing(mix, arena, s->variant & 8 ? 'm' : 'p', s->thing);
        r->write.fence = known->fence;
        r->write.has_if_version = (s->variant & 7) == 0;
        r->write.if_version = known->version;
        break;
    case HF_WRITE:
        r->write.name = thing(mix, arena, 'p', s->thing);
        make_write(s, known, arena, r);
        break;
    case HF_MERGE:
        r->merge.name = thing(mix, arena, 'm', s->thing);
        r->merge.value = &ask->value;
        make_merge(ask, s, arena);
        break;
    case HF_APPLY: make_apply(ask, mix, arena); break;
    default: break;
    }
}

static void make_get(const struct sim_step *s, const struct sim_mix *mix, struct hf_arena *arena,
                     struct hf_request *r)
{
    static const char prefixes[] = { [HF_GET_RESOURCE - HF_GET_HOLD] = 'r',
                                     [HF_GET_GUARD - HF_GET_HOLD] = 'g',
                                     [HF_GET_LEASE - HF_GET_HOLD] = 'l',
                                     [HF_GET_REGISTER - HF_GET_HOLD] = 'p',
                                     [HF_GET_VALUE - HF_GET_HOLD] = 'v' };
    char prefix = prefixes[r->action - HF_GET_HOLD];
    if (r->action == HF_GET_REGISTER && s->draw & 1)
        prefix = 'm';
    if (prefix)
        r->get.name = thing(mix, arena, prefix, s->thing);
}

/* A request of a front end that could not read the name or the id: it came as null, or not at
 * all. */
static void make_invalid(const struct sim_step *s, struct hf_arena *arena, struct hf_request *r)
{
    const char *what = "name";
    if (r->action == HF_PLACE_HOLD) {
        what = "resource";
    } else if ((r->action >= HF_CONFIRM && r->action <= HF_REVERSE) ||
               r->action == HF_CONFIRM_LATE) {
        what = "id";
        r->hold.id = hf_str("");
    }
    struct hf_invalid *invalid = (void *)take(arena, sizeof *invalid);
    struct hf_flaw *flaw = (void *)take(arena, sizeof *flaw);
    *flaw = (struct hf_flaw){ what, hf_str(s->draw & 2 ? "null" : "") };
    *invalid = (struct hf_invalid){ flaw, 1, hf_str(s->draw & 4 ? "a name is missing" : "") };
    r->invalid = invalid;
}

void sim_ask_make(struct sim_ask *ask, const struct sim_mix *mix, struct sim_known *known,
                  struct hf_arena *arena)
{
    const struct sim_step *s = &ask->step;
    struct hf_request *r = &ask->request;
    HF_ASSERT(s->tenant < SIM_TENANTS_MAX);
    const struct sim_shown *k = knowledge(s, known);
    memset(r, 0, sizeof *r);
    r->action = (enum hf_action)s->action;
    r->tenant = sim_tenant(s->tenant);
    set_key(s, mix, arena, r);
    switch (r->action) {
    case HF_PLACE_HOLD:
        r->place_hold.resource = thing(mix, arena, 'r', s->thing);
        r->place_hold.requester = named(arena, 'q', s->who, mix->name_bytes / 2);
        r->place_hold.duration_ms = s->amount;
        r->place_hold.fence = k->fence;
        break;
    case HF_CONFIRM:
    case HF_RELEASE:
    case HF_EXPIRE:
    case HF_REVERSE:
    case HF_CONFIRM_LATE:
    case HF_GET_HOLD: r->hold.id = hf_str(k->used); break;
    case HF_SET_RESOURCE:
        r->set_resource.name = thing(mix, arena, 'r', s->thing);
        r->set_resource.capacity = (uint32_t)s->amount;
        r->set_resource.open = s->variant;
        r->set_resource.require_fence = require(s);
        break;
    default:
        if (r->action >= HF_GET_HOLD)
            make_get(s, mix, arena, r);
        else
            make_more(ask, mix, k, arena);
        break;
    }
    if (s->thing == SIM_NAME_EMPTY && s->key_kind != SIM_KEY_NONE && s->who & 1)
        make_invalid(s, arena, r);
}

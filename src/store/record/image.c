/* Row images: the new state of a row, as stored in the journal and in the tables. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"
#include "store/record/entry.h"

/* Bits of a resource's state. */
#define OPEN 1u
#define REQUIRES_FENCE 2u

/* ---- Writing: the caller has checked the room ---- */

static void put_u8(unsigned char **p, unsigned v)
{
    *(*p)++ = (unsigned char)v;
}

static void put_u32(unsigned char **p, uint32_t v)
{
    hf_put32(*p, v);
    *p += 4;
}

static void put_u64(unsigned char **p, uint64_t v)
{
    hf_put64(*p, v);
    *p += 8;
}

static void put_time(unsigned char **p, int64_t v)
{
    put_u64(p, (uint64_t)v);
}

static void put_raw(unsigned char **p, const void *data, size_t size)
{
    if (size > 0)
        memcpy(*p, data, size);
    *p += size;
}

static void put_str(unsigned char **p, struct hf_bytes b)
{
    HF_ASSERT(b.size <= UINT16_MAX);
    hf_put16(*p, (uint16_t)b.size);
    *p += 2;
    put_raw(p, b.data, b.size);
}

static void put_blob(unsigned char **p, struct hf_bytes b)
{
    put_u32(p, (uint32_t)b.size);
    put_raw(p, b.data, b.size);
}

static void put_id(unsigned char **p, const char *text)
{
    bool good = hf_id_pack(hf_str(text), *p);
    HF_ASSERT(good);
    *p += HF_ID_RAW;
}

static void put_hold(unsigned char **p, const struct hf_hold *h)
{
    unsigned follows = h->reverses[0] ? 1 : h->reacquires[0] ? 2 : 0;
    put_u64(p, h->ordinal);
    put_u64(p, h->previous);
    put_time(p, h->placed_at);
    put_time(p, h->expires_at);
    put_time(p, h->ended_at);
    put_u8(p, h->state);
    put_u8(p, follows);
    put_id(p, h->id);
    if (follows)
        put_id(p, follows == 1 ? h->reverses : h->reacquires);
    put_str(p, h->resource);
    put_str(p, h->requester);
}

static void put_resource(unsigned char **p, const struct hf_resource *r)
{
    put_u32(p, r->capacity);
    put_u32(p, r->held);
    put_u32(p, r->confirmed);
    put_u8(p, (r->open ? OPEN : 0) | (r->require_fence ? REQUIRES_FENCE : 0));
    put_u64(p, r->fence);
    put_u64(p, r->newest);
    put_time(p, r->created_at);
    put_str(p, r->name);
}

static void put_guard(unsigned char **p, const struct hf_guard *g)
{
    put_time(p, g->window_ms);
    put_u8(p, g->on_unavailable);
    put_u8(p, g->durable);
    put_u8(p, g->match_count);
    for (unsigned i = 0; i < HF_MATCH_MAX; i++)
        put_u8(p, i < g->match_count ? g->match[i] : 0);
    put_time(p, g->created_at);
    put_str(p, g->name);
}

static void put_entry(unsigned char **p, const struct hf_entry *e)
{
    put_time(p, e->recorded_at);
    put_time(p, e->expires_at);
    put_str(p, e->guard);
    put_str(p, e->identity);
    put_u8(p, e->has_result);
    put_blob(p, e->result);
}

static void put_claim(unsigned char **p, const struct hf_claim *c)
{
    put_u8(p, c->state);
    put_u8(p, c->on_abandon);
    put_u64(p, c->fence);
    put_time(p, c->lease_ms);
    put_time(p, c->begun_at);
    put_time(p, c->lease_expires_at);
    put_time(p, c->settled_at);
    put_time(p, c->expires_at);
    put_raw(p, c->fingerprint, HF_DIGEST_SIZE);
    put_str(p, c->key);
    put_blob(p, c->response);
    if (c->retention_ms)
        put_time(p, c->retention_ms);
}

static void put_lease(unsigned char **p, const struct hf_lease *l)
{
    put_u64(p, l->fence);
    put_time(p, l->ttl_ms);
    put_time(p, l->granted_at);
    put_time(p, l->expires_at);
    put_time(p, l->released_at);
    put_str(p, l->name);
    put_str(p, l->holder);
}

static void put_register(unsigned char **p, const struct hf_register *r)
{
    put_u8(p, r->value.type | (r->require_fence ? HF_REGISTER_REQUIRES_FENCE : 0));
    put_u64(p, r->version);
    put_u64(p, r->fence);
    put_time(p, r->changed_at);
    put_str(p, r->name);
    put_blob(p, r->value.bytes);
}

static void put_outbox(unsigned char **p, const struct hf_outbox *o)
{
    put_u64(p, o->number);
    put_u8(p, o->state);
    put_time(p, o->created_at);
    put_str(p, o->key);
    put_str(p, o->topic);
    put_blob(p, o->payload);
}

static void put_config(unsigned char **p, const struct hf_config *c)
{
    put_time(p, c->idempotency_window_ms);
    put_u32(p, c->token_max_length);
    put_u8(p, c->registry_strict);
    put_str(p, c->digest_name);
    put_str(p, c->program);
}

size_t hf_image_encode(const struct hf_row *row, unsigned char *out)
{
    unsigned char *p = out;
    switch (row->kind) {
    case HF_ROW_HOLD: put_hold(&p, &row->hold); break;
    case HF_ROW_RESOURCE: put_resource(&p, &row->resource); break;
    case HF_ROW_GUARD: put_guard(&p, &row->guard); break;
    case HF_ROW_ENTRY: put_entry(&p, &row->entry); break;
    case HF_ROW_CLAIM: put_claim(&p, &row->claim); break;
    case HF_ROW_LEASE: put_lease(&p, &row->lease); break;
    case HF_ROW_REGISTER: put_register(&p, &row->reg); break;
    case HF_ROW_CLIENT:
        put_u64(&p, row->client.highest);
        put_raw(&p, row->client.used, sizeof row->client.used);
        put_str(&p, row->client.name);
        break;
    case HF_ROW_VALUE:
        put_str(&p, row->pair.key);
        put_blob(&p, row->pair.value);
        break;
    case HF_ROW_OUTBOX: put_outbox(&p, &row->outbox); break;
    case HF_ROW_SUCCESSOR:
        put_id(&p, row->successor.original);
        put_id(&p, row->successor.successor);
        break;
    case HF_ROW_CONFIG: put_config(&p, &row->config); break;
    }
    return (size_t)(p - out);
}

/* Must match the put functions above. */
size_t hf_image_size(const struct hf_row *row)
{
    enum { STR = 2, BLOB = 4 };
    switch (row->kind) {
    case HF_ROW_HOLD:
        return 42 + HF_ID_RAW + (row->hold.reverses[0] || row->hold.reacquires[0] ? HF_ID_RAW : 0) +
               STR + row->hold.resource.size + STR + row->hold.requester.size;
    case HF_ROW_RESOURCE: return 37 + STR + row->resource.name.size;
    case HF_ROW_GUARD: return 19 + HF_MATCH_MAX + STR + row->guard.name.size;
    case HF_ROW_ENTRY:
        return 17 + STR + row->entry.guard.size + STR + row->entry.identity.size + BLOB +
               row->entry.result.size;
    case HF_ROW_CLAIM:
        return 50 + HF_DIGEST_SIZE + STR + row->claim.key.size + BLOB + row->claim.response.size +
               (row->claim.retention_ms ? 8 : 0);
    case HF_ROW_LEASE: return 40 + STR + row->lease.name.size + STR + row->lease.holder.size;
    case HF_ROW_REGISTER: return 25 + STR + row->reg.name.size + BLOB + row->reg.value.bytes.size;
    case HF_ROW_CLIENT: return 8 + sizeof row->client.used + STR + row->client.name.size;
    case HF_ROW_VALUE: return STR + row->pair.key.size + BLOB + row->pair.value.size;
    case HF_ROW_OUTBOX:
        return 17 + STR + row->outbox.key.size + STR + row->outbox.topic.size + BLOB +
               row->outbox.payload.size;
    case HF_ROW_SUCCESSOR: return 2 * HF_ID_RAW;
    case HF_ROW_CONFIG:
        return 13 + STR + row->config.digest_name.size + STR + row->config.program.size;
    }
    return 0;
}

/* ---- Reading: every length is checked; the first bad length makes the whole image bad ---- */

struct take {
    const unsigned char *p, *end;
    bool bad;
};

static const unsigned char *take_raw(struct take *t, size_t size)
{
    static const unsigned char zeros[64];
    if (t->bad || (size_t)(t->end - t->p) < size) {
        t->bad = true;
        return zeros; /* enough: callers that read it ask for at most 64 bytes */
    }
    const unsigned char *at = t->p;
    t->p += size;
    return at;
}

static unsigned take_u8(struct take *t)
{
    return *take_raw(t, 1);
}

static uint32_t take_u32(struct take *t)
{
    return hf_get32(take_raw(t, 4));
}

static uint64_t take_u64(struct take *t)
{
    return hf_get64(take_raw(t, 8));
}

static int64_t take_time(struct take *t)
{
    return (int64_t)take_u64(t);
}

static struct hf_bytes take_bytes(struct take *t, size_t size)
{
    const unsigned char *at = take_raw(t, size);
    return t->bad ? hf_mem(at, 0) : hf_mem(at, size);
}

static struct hf_bytes take_str(struct take *t)
{
    return take_bytes(t, hf_get16(take_raw(t, 2)));
}

static struct hf_bytes take_blob(struct take *t)
{
    return take_bytes(t, take_u32(t));
}

static void take_hold(struct take *t, struct hf_hold *h)
{
    h->ordinal = take_u64(t);
    h->previous = take_u64(t);
    h->placed_at = take_time(t);
    h->expires_at = take_time(t);
    h->ended_at = take_time(t);
    h->state = take_u8(t);
    unsigned follows = take_u8(t);
    t->bad |= follows > 2;
    hf_id_unpack(take_raw(t, HF_ID_RAW), h->id);
    h->reverses[0] = h->reacquires[0] = '\0';
    if (follows)
        hf_id_unpack(take_raw(t, HF_ID_RAW), follows == 1 ? h->reverses : h->reacquires);
    h->resource = take_str(t);
    h->requester = take_str(t);
}

static void take_resource(struct take *t, struct hf_resource *r)
{
    r->capacity = take_u32(t);
    r->held = take_u32(t);
    r->confirmed = take_u32(t);
    unsigned flags = take_u8(t);
    r->open = (flags & OPEN) != 0;
    r->require_fence = (flags & REQUIRES_FENCE) != 0;
    r->fence = take_u64(t);
    r->newest = take_u64(t);
    r->created_at = take_time(t);
    r->name = take_str(t);
}

static void take_guard(struct take *t, struct hf_guard *g)
{
    g->window_ms = take_time(t);
    g->on_unavailable = take_u8(t);
    g->durable = take_u8(t) != 0;
    g->match_count = take_u8(t);
    for (unsigned i = 0; i < HF_MATCH_MAX; i++)
        g->match[i] = take_u8(t);
    if (g->match_count > HF_MATCH_MAX)
        t->bad = true;
    g->created_at = take_time(t);
    g->name = take_str(t);
}

static void take_entry(struct take *t, struct hf_entry *e)
{
    e->recorded_at = take_time(t);
    e->expires_at = take_time(t);
    e->guard = take_str(t);
    e->identity = take_str(t);
    e->has_result = take_u8(t) != 0;
    e->result = take_blob(t);
}

static void take_claim(struct take *t, struct hf_claim *c)
{
    c->state = take_u8(t);
    c->on_abandon = take_u8(t);
    c->fence = take_u64(t);
    c->lease_ms = take_time(t);
    c->begun_at = take_time(t);
    c->lease_expires_at = take_time(t);
    c->settled_at = take_time(t);
    c->expires_at = take_time(t);
    memcpy(c->fingerprint, take_raw(t, HF_DIGEST_SIZE), HF_DIGEST_SIZE);
    c->key = take_str(t);
    c->response = take_blob(t);
    c->retention_ms = 0;
    if (!t->bad && t->p < t->end) {
        c->retention_ms = take_time(t);
        t->bad |= c->retention_ms == 0;
    }
}

static void take_lease(struct take *t, struct hf_lease *l)
{
    l->fence = take_u64(t);
    l->ttl_ms = take_time(t);
    l->granted_at = take_time(t);
    l->expires_at = take_time(t);
    l->released_at = take_time(t);
    l->name = take_str(t);
    l->holder = take_str(t);
}

static void take_register(struct take *t, struct hf_register *r)
{
    unsigned type = take_u8(t);
    r->value = (struct hf_value){ .type = type & ~HF_REGISTER_REQUIRES_FENCE };
    r->require_fence = (type & HF_REGISTER_REQUIRES_FENCE) != 0;
    r->version = take_u64(t);
    r->fence = take_u64(t);
    r->changed_at = take_time(t);
    r->name = take_str(t);
    r->value.bytes = take_blob(t);
}

static void take_outbox(struct take *t, struct hf_outbox *o)
{
    o->number = take_u64(t);
    o->state = take_u8(t);
    o->created_at = take_time(t);
    o->key = take_str(t);
    o->topic = take_str(t);
    o->payload = take_blob(t);
}

static void take_config(struct take *t, struct hf_config *c)
{
    c->idempotency_window_ms = take_time(t);
    c->token_max_length = take_u32(t);
    c->registry_strict = take_u8(t) != 0;
    c->digest_name = take_str(t);
    c->program = take_str(t);
}

bool hf_image_decode(const struct hf_image *image, struct hf_bytes tenant, struct hf_row *row)
{
    const unsigned char *start = image->bytes.data;
    struct take t = { start, start + image->bytes.size, false };
    row->kind = image->kind;
    row->erase = image->erase;
    switch (image->kind) {
    case HF_ROW_HOLD:
        take_hold(&t, &row->hold);
        row->hold.tenant = tenant;
        break;
    case HF_ROW_RESOURCE:
        take_resource(&t, &row->resource);
        row->resource.tenant = tenant;
        break;
    case HF_ROW_GUARD:
        take_guard(&t, &row->guard);
        row->guard.tenant = tenant;
        break;
    case HF_ROW_ENTRY:
        take_entry(&t, &row->entry);
        row->entry.tenant = tenant;
        break;
    case HF_ROW_CLAIM:
        take_claim(&t, &row->claim);
        row->claim.tenant = tenant;
        break;
    case HF_ROW_LEASE:
        take_lease(&t, &row->lease);
        row->lease.tenant = tenant;
        break;
    case HF_ROW_REGISTER:
        take_register(&t, &row->reg);
        row->reg.tenant = tenant;
        break;
    case HF_ROW_CLIENT:
        row->client.highest = take_u64(&t);
        memcpy(row->client.used, take_raw(&t, sizeof row->client.used), sizeof row->client.used);
        row->client.name = take_str(&t);
        row->client.tenant = tenant;
        break;
    case HF_ROW_VALUE:
        row->pair.key = take_str(&t);
        row->pair.value = take_blob(&t);
        row->pair.tenant = tenant;
        break;
    case HF_ROW_OUTBOX:
        take_outbox(&t, &row->outbox);
        row->outbox.tenant = tenant;
        break;
    case HF_ROW_SUCCESSOR:
        hf_id_unpack(take_raw(&t, HF_ID_RAW), row->successor.original);
        hf_id_unpack(take_raw(&t, HF_ID_RAW), row->successor.successor);
        row->successor.tenant = tenant;
        break;
    case HF_ROW_CONFIG: take_config(&t, &row->config); break;
    default: return false;
    }
    return !t.bad && t.p == t.end;
}

/* Bytes before the name in each kind's image. */
enum {
    NAME_RESOURCE = 37,
    NAME_GUARD = 23,
    NAME_ENTRY = 16,
    NAME_CLAIM = 82,
    NAME_LEASE = 40,
    NAME_REGISTER = 25,
    NAME_CLIENT = 40,
    NAME_VALUE = 0
};

bool hf_image_key(const struct hf_image *image, struct hf_image_key *key)
{
    static const unsigned char name_at[] = {
        [HF_ROW_RESOURCE] = NAME_RESOURCE, [HF_ROW_GUARD] = NAME_GUARD,
        [HF_ROW_ENTRY] = NAME_ENTRY,       [HF_ROW_CLAIM] = NAME_CLAIM,
        [HF_ROW_LEASE] = NAME_LEASE,       [HF_ROW_REGISTER] = NAME_REGISTER,
        [HF_ROW_CLIENT] = NAME_CLIENT,     [HF_ROW_VALUE] = NAME_VALUE,
    };
    const unsigned char *start = image->bytes.data;
    struct take t = { start, start + image->bytes.size, false };
    key->scope = hf_mem(start, 0);
    switch (image->kind) {
    case HF_ROW_ENTRY:
        take_raw(&t, NAME_ENTRY);
        key->scope = take_str(&t);
        key->name = take_str(&t);
        break;
    case HF_ROW_RESOURCE:
    case HF_ROW_GUARD:
    case HF_ROW_CLAIM:
    case HF_ROW_LEASE:
    case HF_ROW_REGISTER:
    case HF_ROW_CLIENT:
    case HF_ROW_VALUE:
        t.p += image->bytes.size < name_at[image->kind] ? image->bytes.size : name_at[image->kind];
        key->name = take_str(&t);
        break;
    case HF_ROW_OUTBOX: key->name = take_bytes(&t, 8); break;
    case HF_ROW_SUCCESSOR: key->name = take_bytes(&t, HF_ID_RAW); break;
    case HF_ROW_CONFIG: key->name = hf_mem(start, 0); break;
    default: return false;
    }
    return !t.bad;
}

bool hf_image_hold(const struct hf_image *image, struct hf_image_hold *out)
{
    enum { EXPIRES_AT = 24, STATE_AT = 40, REVERSES_AT = 41, IDS_AT = 42 };
    const unsigned char *p = image->bytes.data;
    if (image->bytes.size < IDS_AT)
        return false;
    struct take t = { p + IDS_AT, p + image->bytes.size, false };
    out->ordinal = hf_get64(p);
    out->expires_at = (hf_time)hf_get64(p + EXPIRES_AT);
    out->state = p[STATE_AT];
    take_raw(&t, p[REVERSES_AT] ? 2 * HF_ID_RAW : HF_ID_RAW);
    out->resource = take_str(&t);
    return !t.bad;
}

#include "audit/record.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/id.h"

/* The rest of the input. If a field is longer than the rest, `bad` is set, everything after it
 * reads as zero and empty, and the caller checks `bad` once, at the end. */
struct cursor {
    const unsigned char *p;
    size_t left;
    bool bad;
    struct hf_bytes tenant; /* the tenant of the entry and of all its rows */
};

static const unsigned char *take(struct cursor *c, size_t size)
{
    if (c->bad || size > c->left) {
        c->bad = true;
        return NULL;
    }
    const unsigned char *p = c->p;
    c->p += size;
    c->left -= size;
    return p;
}

static uint8_t take8(struct cursor *c)
{
    const unsigned char *p = take(c, 1);
    return p ? *p : 0;
}

static uint32_t take32(struct cursor *c)
{
    const unsigned char *p = take(c, 4);
    return p ? hf_get32(p) : 0;
}

static uint64_t take64(struct cursor *c)
{
    const unsigned char *p = take(c, 8);
    return p ? hf_get64(p) : 0;
}

static int64_t take_time(struct cursor *c)
{
    return (int64_t)take64(c);
}

static struct hf_bytes take_bytes(struct cursor *c, size_t size)
{
    const unsigned char *p = take(c, size);
    return p ? hf_mem(p, size) : hf_mem("", 0);
}

static struct hf_bytes take_str(struct cursor *c)
{
    const unsigned char *p = take(c, 2);
    return take_bytes(c, p ? hf_get16(p) : 0);
}

static struct hf_bytes take_blob(struct cursor *c)
{
    return take_bytes(c, take32(c));
}

static void take_id(struct cursor *c, char text[HF_ID_SIZE])
{
    const unsigned char *p = take(c, HF_ID_RAW);
    text[0] = '\0';
    if (p)
        hf_id_unpack(p, text);
}

/* ---- Images, in the order of the table in doc/FORMAT.md ---- */

static void hold_read(struct cursor *c, struct hf_hold *h)
{
    h->tenant = c->tenant;
    h->ordinal = take64(c);
    h->previous = take64(c);
    h->placed_at = take_time(c);
    h->expires_at = take_time(c);
    h->ended_at = take_time(c);
    h->state = (enum hf_hold_state)take8(c);
    unsigned follows = take8(c);
    c->bad |= follows > 2;
    take_id(c, h->id);
    if (follows == 1)
        take_id(c, h->reverses);
    else if (follows)
        take_id(c, h->reacquires);
    h->resource = take_str(c);
    h->requester = take_str(c);
}

static void resource_read(struct cursor *c, struct hf_resource *r)
{
    r->tenant = c->tenant;
    r->capacity = take32(c);
    r->held = take32(c);
    r->confirmed = take32(c);
    unsigned state = take8(c); /* open; a fence is required */
    r->open = (state & 1) != 0;
    r->require_fence = (state & 2) != 0;
    r->fence = take64(c);
    r->newest = take64(c);
    r->created_at = take_time(c);
    r->name = take_str(c);
}

static void guard_read(struct cursor *c, struct hf_guard *g)
{
    g->tenant = c->tenant;
    g->window_ms = take_time(c);
    g->on_unavailable = (enum hf_unavailable)take8(c);
    g->durable = take8(c) != 0;
    g->match_count = take8(c);
    if (g->match_count > HF_MATCH_MAX)
        c->bad = true;
    for (size_t i = 0; i < HF_MATCH_MAX; i++)
        g->match[i] = (enum hf_match)take8(c);
    g->created_at = take_time(c);
    g->name = take_str(c);
}

static void identity_read(struct cursor *c, struct hf_entry *e)
{
    e->tenant = c->tenant;
    e->recorded_at = take_time(c);
    e->expires_at = take_time(c);
    e->guard = take_str(c);
    e->identity = take_str(c);
    e->has_result = take8(c) != 0;
    e->result = take_blob(c);
}

static void claim_read(struct cursor *c, struct hf_claim *k)
{
    k->tenant = c->tenant;
    k->state = (enum hf_claim_state)take8(c);
    k->on_abandon = (enum hf_abandon)take8(c);
    k->fence = take64(c);
    k->lease_ms = take_time(c);
    k->begun_at = take_time(c);
    k->lease_expires_at = take_time(c);
    k->settled_at = take_time(c);
    k->expires_at = take_time(c);
    const unsigned char *fingerprint = take(c, HF_DIGEST_SIZE);
    if (fingerprint)
        memcpy(k->fingerprint, fingerprint, HF_DIGEST_SIZE);
    k->key = take_str(c);
    k->response = take_blob(c);
    if (c->left > 0) {
        k->retention_ms = take_time(c);
        c->bad |= k->retention_ms == 0;
    }
}

static void lease_read(struct cursor *c, struct hf_lease *l)
{
    l->tenant = c->tenant;
    l->fence = take64(c);
    l->ttl_ms = take_time(c);
    l->granted_at = take_time(c);
    l->expires_at = take_time(c);
    l->released_at = take_time(c);
    l->name = take_str(c);
    l->holder = take_str(c);
}

static void register_read(struct cursor *c, struct hf_register *r)
{
    r->tenant = c->tenant;
    unsigned type = take8(c);
    r->value.type = (enum hf_register_type)(type & 0x7f);
    r->require_fence = (type & 0x80) != 0;
    r->version = take64(c);
    r->fence = take64(c);
    r->changed_at = take_time(c);
    r->name = take_str(c);
    r->value.bytes = take_blob(c);
}

static void outbox_read(struct cursor *c, struct hf_outbox *o)
{
    o->tenant = c->tenant;
    o->number = take64(c);
    o->state = (enum hf_outbox_state)take8(c);
    o->created_at = take_time(c);
    o->key = take_str(c);
    o->topic = take_str(c);
    o->payload = take_blob(c);
}

static void config_read(struct cursor *c, struct hf_audit_config *g)
{
    g->idempotency_window_ms = take_time(c);
    g->token_max_length = take32(c);
    g->strict = take8(c) != 0;
    g->digest_name = take_str(c);
    g->program = take_str(c);
}

/* Decode an image of `row->kind`. False if it does not fill `image` exactly. */
static bool image_read(struct hf_bytes image, struct hf_bytes tenant, struct hf_audit_row *row)
{
    struct cursor c = { .p = image.data, .left = image.size, .tenant = tenant };
    switch (row->kind) {
    case HF_ROW_HOLD: hold_read(&c, &row->hold); break;
    case HF_ROW_RESOURCE: resource_read(&c, &row->resource); break;
    case HF_ROW_GUARD: guard_read(&c, &row->guard); break;
    case HF_ROW_ENTRY: identity_read(&c, &row->identity); break;
    case HF_ROW_CLAIM: claim_read(&c, &row->claim); break;
    case HF_ROW_LEASE: lease_read(&c, &row->lease); break;
    case HF_ROW_REGISTER: register_read(&c, &row->reg); break;
    case HF_ROW_CLIENT:
        row->client.highest = take64(&c);
        row->client.used = take(&c, HF_SEQUENCE_WINDOW / 8);
        row->client.name = take_str(&c);
        break;
    case HF_ROW_VALUE:
        row->pair.key = take_str(&c);
        row->pair.value = take_blob(&c);
        break;
    case HF_ROW_OUTBOX: outbox_read(&c, &row->outbox); break;
    case HF_ROW_SUCCESSOR:
        take_id(&c, row->successor.original);
        take_id(&c, row->successor.successor);
        break;
    case HF_ROW_CONFIG: config_read(&c, &row->config); break;
    default: return false;
    }
    return !c.bad && c.left == 0;
}

/* ---- Entries ---- */

static void entry_head_read(struct cursor *c, struct hf_audit_entry *e)
{
    e->action = (enum hf_action)take8(c);
    e->status = (enum hf_status)take8(c);
    e->remember = (enum hf_remember)take8(c);
    e->row_count = take8(c);
    e->answer = take8(c);
    size_t tenant = take8(c);
    const unsigned char *key = take(c, 2);
    e->recorded_at = take_time(c);
    if (e->remember != HF_REMEMBER_NOT) {
        e->expires_at = take_time(c);
        e->digest = take(c, HF_DIGEST_SIZE);
    }
    if (e->remember == HF_REMEMBER_SEQUENCE)
        e->sequence = take64(c);
    e->tenant = take_bytes(c, tenant);
    e->key = take_bytes(c, key ? hf_get16(key) : 0);
}

const char *hf_audit_entry_read(struct hf_bytes in, struct hf_audit_entry *out)
{
    struct cursor c = { .p = in.data, .left = in.size };
    *out = (struct hf_audit_entry){ .tenant = hf_mem("", 0), .key = hf_mem("", 0) };
    uint32_t size = take32(&c);
    uint32_t crc = take32(&c);
    if (c.bad || size < 24 || size > in.size)
        return "its size is not valid";
    c.left = size - 8;
    if (hf_crc32c(0, c.p, c.left) != crc)
        return "its CRC is wrong";
    out->size = size;
    entry_head_read(&c, out);
    if ((unsigned)out->remember > HF_REMEMBER_SEQUENCE)
        return "it has an unknown value of `remember`";
    if (out->remember == HF_REMEMBER_NOT && out->key.size > 0)
        return "it has a key that is not remembered";
    if (out->answer == HF_AUDIT_ANSWER_RECORD) {
        out->answer_kind = (enum hf_record)take8(&c);
        out->answer_image = take_blob(&c);
    } else if (out->answer != HF_AUDIT_ANSWER_STATUS && out->answer >= out->row_count) {
        return "its answer is a row that it does not have";
    }
    if (c.bad)
        return "its fields are longer than the entry";
    out->rows = hf_mem(c.p, c.left);
    return NULL;
}

const char *hf_audit_rows_read(const struct hf_audit_entry *entry, struct hf_audit_row *rows)
{
    struct cursor c = { .p = entry->rows.data, .left = entry->rows.size };
    for (size_t i = 0; i < entry->row_count; i++) {
        rows[i] = (struct hf_audit_row){ .kind = (enum hf_row_kind)take8(&c) };
        rows[i].flags = take8(&c);
        struct hf_bytes image = take_blob(&c);
        if (c.bad)
            return "a row is longer than the entry";
        if (!image_read(image, entry->tenant, &rows[i]))
            return "a row's image is not well-formed";
    }
    return c.left == 0 ? NULL : "there are bytes after its last row";
}

bool hf_audit_answer_read(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                          struct hf_audit_row *out)
{
    static const enum hf_row_kind kinds[] = {
        [HF_RECORD_HOLD] = HF_ROW_HOLD,   [HF_RECORD_RESOURCE] = HF_ROW_RESOURCE,
        [HF_RECORD_GUARD] = HF_ROW_GUARD, [HF_RECORD_CLAIM] = HF_ROW_CLAIM,
        [HF_RECORD_LEASE] = HF_ROW_LEASE, [HF_RECORD_REGISTER] = HF_ROW_REGISTER,
        [HF_RECORD_VALUE] = HF_ROW_VALUE
    };
    if (entry->answer == HF_AUDIT_ANSWER_STATUS)
        return false;
    if (entry->answer != HF_AUDIT_ANSWER_RECORD) {
        *out = rows[entry->answer];
        return true;
    }
    unsigned kind = (unsigned)entry->answer_kind;
    if (kind >= sizeof kinds / sizeof *kinds || kinds[kind] == 0)
        return false;
    *out = (struct hf_audit_row){ .kind = kinds[kind] };
    if (kind == HF_RECORD_VALUE) {
        out->pair.key = hf_mem("", 0);
        out->pair.value = entry->answer_image;
        return true;
    }
    return image_read(entry->answer_image, entry->tenant, out);
}

/* ---- Registers ---- */

static bool items_read(struct cursor *c, struct hf_item *items, size_t room, struct hf_value *out)
{
    bool numbers = out->type != HF_TYPE_UNION;
    bool down = out->type == HF_TYPE_UPDOWN;
    uint64_t total = 0;
    while (c->left > 0 && !c->bad) {
        struct hf_item item = { .name = take_str(c) };
        item.up = numbers ? take64(c) : 0;
        item.down = down ? take64(c) : 0;
        total += item.up - item.down;
        if (out->item_count < room)
            items[out->item_count] = item;
        out->item_count++;
    }
    out->items = items;
    if (out->type == HF_TYPE_COUNTER || down)
        out->number = (int64_t)total;
    return !c->bad;
}

bool hf_audit_value_read(const struct hf_value *stored, struct hf_item *items, size_t room,
                         struct hf_value *out)
{
    struct cursor c = { .p = stored->bytes.data, .left = stored->bytes.size };
    *out = (struct hf_value){ .type = stored->type, .node = hf_mem("", 0), .bytes = hf_mem("", 0) };
    switch (stored->type) {
    case HF_TYPE_PLAIN: out->bytes = stored->bytes; return true;
    case HF_TYPE_MAX:
    case HF_TYPE_MIN:
    case HF_TYPE_DELETED: out->number = take_time(&c); break;
    case HF_TYPE_OR: out->flag = take8(&c) != 0; break;
    case HF_TYPE_LWW:
        out->timestamp = take_time(&c);
        out->node = take_str(&c);
        out->bytes = take_bytes(&c, c.left);
        break;
    case HF_TYPE_UNION:
    case HF_TYPE_VECTOR:
    case HF_TYPE_COUNTER:
    case HF_TYPE_UPDOWN: return items_read(&c, items, room, out);
    default: return false;
    }
    return !c.bad && c.left == 0;
}

bool hf_audit_is_config(const struct hf_audit_entry *e, const struct hf_audit_row *rows)
{
    bool only = e->action == HF_CONFIGURE && e->remember == HF_REMEMBER_NOT &&
                e->tenant.size == 0 && e->answer == HF_AUDIT_ANSWER_STATUS;
    for (size_t i = 0; i < e->row_count; i++)
        only = only && rows[i].kind == HF_ROW_CONFIG;
    return only;
}

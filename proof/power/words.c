#include "power/words.h"

#include <stdio.h>
#include <string.h>

/* ---- Numbers and bytes ---- */

static void add(uint64_t *hash, uint64_t word)
{
    *hash = (*hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    *hash ^= *hash >> 29;
}

static void add_time(uint64_t *hash, hf_time t)
{
    add(hash, (uint64_t)t);
}

static void add_bytes(uint64_t *hash, struct hf_bytes b)
{
    const unsigned char *p = b.data;
    size_t left = b.size;
    uint64_t word;
    add(hash, b.size);
    /* By words: registers of some kilobytes are looked at after every step. */
    for (; left >= sizeof word; p += sizeof word, left -= sizeof word) {
        memcpy(&word, p, sizeof word);
        add(hash, word);
    }
    word = 0;
    for (size_t i = 0; i < left; i++)
        word = word << 8 | p[i];
    if (left > 0)
        add(hash, word);
}

/* ---- Records ---- */

static void add_hold(uint64_t *hash, const struct hf_hold *h)
{
    add_bytes(hash, hf_str(h->id));
    add_bytes(hash, hf_str(h->reverses));
    add_bytes(hash, hf_str(h->reacquires));
    add(hash, h->ordinal);
    add(hash, h->previous);
    add(hash, (uint64_t)h->state);
    add_bytes(hash, h->tenant);
    add_bytes(hash, h->resource);
    add_bytes(hash, h->requester);
    add_time(hash, h->placed_at);
    add_time(hash, h->expires_at);
    add_time(hash, h->ended_at);
}

static void add_resource(uint64_t *hash, const struct hf_resource *r)
{
    add_bytes(hash, r->tenant);
    add_bytes(hash, r->name);
    add(hash, r->capacity);
    add(hash, r->held);
    add(hash, r->confirmed);
    add(hash, r->open);
    add(hash, r->fence);
    add(hash, r->require_fence);
    add(hash, r->newest);
    add_time(hash, r->created_at);
}

static void add_guard(uint64_t *hash, const struct hf_guard *g)
{
    add_bytes(hash, g->tenant);
    add_bytes(hash, g->name);
    add_time(hash, g->window_ms);
    for (uint32_t i = 0; i < g->match_count; i++)
        add(hash, (uint64_t)g->match[i]);
    add(hash, (uint64_t)g->on_unavailable);
    add(hash, g->durable);
    add_time(hash, g->created_at);
}

static void add_entry(uint64_t *hash, const struct hf_entry *e)
{
    add_bytes(hash, e->tenant);
    add_bytes(hash, e->guard);
    add_bytes(hash, e->identity);
    add(hash, e->has_result);
    add_bytes(hash, e->result);
    add_time(hash, e->recorded_at);
    add_time(hash, e->expires_at);
}

static void add_outbox(uint64_t *hash, const struct hf_outbox *o)
{
    add_bytes(hash, o->tenant);
    add(hash, o->number);
    add_bytes(hash, o->key);
    add_bytes(hash, o->topic);
    add_bytes(hash, o->payload);
    add(hash, (uint64_t)o->state);
    add_time(hash, o->created_at);
}

static void add_seen(uint64_t *hash, const struct hf_seen *s)
{
    add(hash, s->seen);
    add(hash, s->has_result);
    add_time(hash, s->recorded_at);
    add_time(hash, s->expires_at);
    add_bytes(hash, s->result);
}

static void add_claim(uint64_t *hash, const struct hf_claim *c)
{
    add_bytes(hash, c->tenant);
    add_bytes(hash, c->key);
    add_bytes(hash, hf_mem(c->fingerprint, sizeof c->fingerprint));
    add(hash, (uint64_t)c->state);
    add(hash, (uint64_t)c->on_abandon);
    add(hash, c->fence);
    add_time(hash, c->lease_ms);
    add_time(hash, c->retention_ms);
    add_time(hash, c->begun_at);
    add_time(hash, c->lease_expires_at);
    add_time(hash, c->settled_at);
    add_time(hash, c->expires_at);
    add_bytes(hash, c->response);
}

static void add_lease(uint64_t *hash, const struct hf_lease *l)
{
    add_bytes(hash, l->tenant);
    add_bytes(hash, l->name);
    add_bytes(hash, l->holder);
    add(hash, l->fence);
    add_time(hash, l->ttl_ms);
    add_time(hash, l->granted_at);
    add_time(hash, l->expires_at);
    add_time(hash, l->released_at);
}

static void add_register(uint64_t *hash, const struct hf_register *r)
{
    const struct hf_value *v = &r->value;
    add_bytes(hash, r->tenant);
    add_bytes(hash, r->name);
    add(hash, r->version);
    add(hash, r->fence);
    add(hash, r->require_fence);
    add_time(hash, r->changed_at);
    add(hash, (uint64_t)v->type);
    add_time(hash, v->number);
    add(hash, v->flag);
    add_time(hash, v->timestamp);
    add_bytes(hash, v->node);
    add_bytes(hash, v->bytes);
    for (size_t i = 0; i < v->item_count; i++) {
        add_bytes(hash, v->items[i].name);
        add(hash, v->items[i].up);
        add(hash, v->items[i].down);
    }
}

uint64_t power_answer_hash(const struct hf_answer *a)
{
    uint64_t hash = (uint64_t)a->status;
    add(&hash, (uint64_t)a->kind);
    switch (a->kind) {
    case HF_NO_RECORD: break;
    case HF_RECORD_HOLD: add_hold(&hash, &a->hold); break;
    case HF_RECORD_RESOURCE: add_resource(&hash, &a->resource); break;
    case HF_RECORD_GUARD: add_guard(&hash, &a->guard); break;
    case HF_RECORD_SEEN: add_seen(&hash, &a->seen); break;
    case HF_RECORD_CLAIM: add_claim(&hash, &a->claim); break;
    case HF_RECORD_LEASE: add_lease(&hash, &a->lease); break;
    case HF_RECORD_REGISTER: add_register(&hash, &a->reg); break;
    case HF_RECORD_VALUE: add_bytes(&hash, a->value); break;
    }
    return hash;
}

/* ---- The whole store ---- */

static bool list_fails(struct hf_error *why, enum hf_list_kind kind, enum hf_status st)
{
    why->status = st;
    snprintf(why->text, sizeof why->text, "the list of kind %d is refused: %s", (int)kind,
             hf_status_code(st));
    return false;
}

static bool add_list(uint64_t *hash, struct hf_db *db, struct hf_query query, struct hf_error *why)
{
    bool good = true;
    query.limit = HF_LIST_MAX;
    do {
        struct hf_page page;
        enum hf_status st = hf_list(db, &query, &page);
        if (st != HF_OK)
            return list_fails(why, query.kind, st);
        for (size_t i = 0; good && i < page.count; i++) {
            switch (query.kind) {
            case HF_LIST_HOLDS: add_hold(hash, &page.holds[i]); break;
            case HF_LIST_RESOURCES: add_resource(hash, &page.resources[i]); break;
            case HF_LIST_ENTRIES: add_entry(hash, &page.entries[i]); break;
            case HF_LIST_OUTBOX: add_outbox(hash, &page.outbox[i]); break;
            case HF_LIST_CLAIMS: add_claim(hash, &page.claims[i]); break;
            case HF_LIST_GUARDS:
                add_guard(hash, &page.guards[i]);
                good = add_list(hash, db,
                                (struct hf_query){ .kind = HF_LIST_ENTRIES,
                                                   .tenant = query.tenant,
                                                   .name = page.guards[i].name },
                                why);
                break;
            }
        }
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (good && query.cursor != 0);
    return good;
}

/* Whatever is called by this name. */
static bool add_named(uint64_t *hash, struct hf_db *db, struct hf_request request,
                      struct hf_bytes name, struct hf_error *why)
{
    static const enum hf_action looks[] = { HF_GET_REGISTER, HF_GET_LEASE, HF_GET_VALUE,
                                            HF_GET_CLAIM };
    struct hf_result got = HF_RESULT_INIT;
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        request.action = looks[i];
        if (looks[i] == HF_GET_CLAIM)
            request.key = name;
        else
            request.get.name = name;
        enum hf_status st = hf_do(db, &request, &got);
        if (hf_status_kind(st) != HF_KIND_OK && hf_status_kind(st) != HF_KIND_REFUSAL) {
            why->status = st;
            snprintf(why->text, sizeof why->text, "%s cannot be answered: %s",
                     hf_action_name(looks[i]), hf_status_code(st));
            hf_result_clear(&got);
            return false;
        }
        add(hash, power_answer_hash(&got.answer));
    }
    hf_result_clear(&got);
    return true;
}

bool power_state_hash(struct hf_db *db, const char *const *tenants, const char *const *names,
                      uint64_t *out, struct hf_error *why)
{
    static const enum hf_list_kind kinds[] = { HF_LIST_HOLDS, HF_LIST_RESOURCES, HF_LIST_GUARDS,
                                               HF_LIST_OUTBOX, HF_LIST_CLAIMS };
    bool good = true;
    *out = 1;
    for (; *tenants; tenants++) {
        struct hf_bytes tenant = hf_str(*tenants);
        for (size_t i = 0; good && i < sizeof kinds / sizeof *kinds; i++)
            good = add_list(out, db, (struct hf_query){ .kind = kinds[i], .tenant = tenant }, why);
        for (size_t i = 0; good && names[i]; i++)
            good =
                add_named(out, db, (struct hf_request){ .tenant = tenant }, hf_str(names[i]), why);
    }
    return good;
}

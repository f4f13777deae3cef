#include "store/record/sound.h"

#include "core/merge.h"

/* Far beyond the year 9999, and far enough from INT64_MAX to add any duration. */
#define NOW_MAX (INT64_MAX / 4)

bool hf_now_sound(hf_time now)
{
    return now >= -NOW_MAX && now <= NOW_MAX;
}

static bool name_sound(struct hf_bytes name)
{
    return name.size <= HF_NAME_MAX;
}

static bool span_sound(int64_t ms)
{
    return ms >= 0 && ms <= HF_DURATION_MAX_MS;
}

static bool resource_sound(const struct hf_resource *r)
{
    return name_sound(r->name) && r->capacity <= HF_CAPACITY_MAX && r->held <= HF_CAPACITY_MAX &&
           r->confirmed <= HF_CAPACITY_MAX;
}

static bool guard_sound(const struct hf_guard *g)
{
    for (uint32_t i = 0; i < g->match_count; i++)
        if (g->match[i] < HF_MATCH_EXACT || g->match[i] > HF_MATCH_HASH)
            return false;
    return name_sound(g->name) && span_sound(g->window_ms) && g->on_unavailable <= HF_FAIL_CLOSED;
}

/* A claim has a response only once it is settled. */
static bool claim_sound(const struct hf_claim *c)
{
    size_t response_max = c->state == HF_CLAIM_STARTED ? 0 : HF_RESPONSE_MAX;
    return c->state <= HF_CLAIM_RETRYABLE && c->on_abandon <= HF_ABANDON_RETRY &&
           c->key.size <= HF_TOKEN_MAX && c->response.size <= response_max &&
           span_sound(c->lease_ms) && span_sound(c->retention_ms);
}

static bool register_sound(const struct hf_register *r)
{
    struct hf_item items[HF_MERGE_ITEMS_MAX];
    struct hf_value value;
    return name_sound(r->name) && r->value.bytes.size <= HF_VALUE_MAX &&
           hf_merge_decode(r->value.type, r->value.bytes, items, HF_MERGE_ITEMS_MAX, &value);
}

static bool hold_sound(const struct hf_hold *h)
{
    return h->state >= HF_HELD && h->state <= HF_EXPIRED && name_sound(h->resource) &&
           name_sound(h->requester) && hf_now_sound(h->placed_at) && hf_now_sound(h->expires_at);
}

bool hf_row_sound(const struct hf_row *row)
{
    switch (row->kind) {
    case HF_ROW_HOLD: return hold_sound(&row->hold);
    case HF_ROW_RESOURCE: return resource_sound(&row->resource);
    case HF_ROW_GUARD: return guard_sound(&row->guard);
    case HF_ROW_ENTRY:
        return name_sound(row->entry.guard) && row->entry.identity.size <= HF_IDENTITY_MAX &&
               row->entry.result.size <= HF_GUARD_RESULT_MAX;
    case HF_ROW_CLAIM: return claim_sound(&row->claim);
    case HF_ROW_LEASE:
        return name_sound(row->lease.name) && name_sound(row->lease.holder) &&
               span_sound(row->lease.ttl_ms);
    case HF_ROW_REGISTER: return register_sound(&row->reg);
    case HF_ROW_CLIENT: return name_sound(row->client.name);
    case HF_ROW_VALUE:
        return row->pair.key.size <= HF_APP_KEY_MAX && row->pair.value.size <= HF_APP_VALUE_MAX;
    case HF_ROW_CONFIG:
        return span_sound(row->config.idempotency_window_ms) &&
               row->config.idempotency_window_ms > 0 &&
               row->config.token_max_length <= HF_TOKEN_MAX;
    default: return true; /* outbox, successors: no rule reads their fields */
    }
}

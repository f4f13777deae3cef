#include "simulate/trace.h"

void sim_trace_bytes(struct sim_trace *t, struct hf_bytes bytes)
{
    const unsigned char *p = bytes.data;
    size_t left = bytes.size;
    sim_trace_number(t, left);
    while (left > 0) {
        uint64_t word = 0;
        size_t n = left < sizeof word ? left : sizeof word;
        for (size_t i = 0; i < n; i++)
            word |= (uint64_t)p[i] << (8 * i); /* not memcpy: the same on every machine */
        sim_trace_number(t, word);
        p += n;
        left -= n;
    }
}

void sim_trace_request(struct sim_trace *t, const struct hf_request *r)
{
    sim_trace_number(t, r->action);
    sim_trace_bytes(t, r->tenant);
    sim_trace_bytes(t, r->key);
    sim_trace_bytes(t, r->client);
    sim_trace_number(t, r->sequence);
}

static void add_hold(struct sim_trace *t, const struct hf_hold *h)
{
    sim_trace_bytes(t, hf_str(h->id));
    sim_trace_bytes(t, hf_str(h->reverses));
    sim_trace_bytes(t, hf_str(h->reacquires));
    sim_trace_number(t, h->ordinal);
    sim_trace_number(t, h->previous);
    sim_trace_number(t, h->state);
    sim_trace_bytes(t, h->resource);
    sim_trace_bytes(t, h->requester);
    sim_trace_number(t, (uint64_t)h->placed_at);
    sim_trace_number(t, (uint64_t)h->expires_at);
    sim_trace_number(t, (uint64_t)h->ended_at);
}

static void add_resource(struct sim_trace *t, const struct hf_resource *r)
{
    sim_trace_bytes(t, r->name);
    sim_trace_number(t, r->capacity);
    sim_trace_number(t, r->held);
    sim_trace_number(t, r->confirmed);
    sim_trace_number(t, r->open);
    sim_trace_number(t, r->require_fence);
    sim_trace_number(t, r->fence);
    sim_trace_number(t, r->newest);
}

static void add_guard(struct sim_trace *t, const struct hf_guard *g)
{
    sim_trace_bytes(t, g->name);
    sim_trace_number(t, (uint64_t)g->window_ms);
    sim_trace_number(t, g->match_count);
    sim_trace_number(t, g->durable);
}

static void add_seen(struct sim_trace *t, const struct hf_seen *s)
{
    sim_trace_number(t, s->seen);
    sim_trace_number(t, (uint64_t)s->recorded_at);
    sim_trace_number(t, (uint64_t)s->expires_at);
    sim_trace_bytes(t, s->result);
}

static void add_claim(struct sim_trace *t, const struct hf_claim *c)
{
    sim_trace_bytes(t, c->key);
    sim_trace_bytes(t, hf_mem(c->fingerprint, sizeof c->fingerprint));
    sim_trace_number(t, c->state);
    sim_trace_number(t, c->fence);
    sim_trace_number(t, (uint64_t)c->lease_expires_at);
    sim_trace_number(t, (uint64_t)c->retention_ms);
    sim_trace_number(t, (uint64_t)c->expires_at);
    sim_trace_bytes(t, c->response);
}

static void add_lease(struct sim_trace *t, const struct hf_lease *l)
{
    sim_trace_bytes(t, l->name);
    sim_trace_bytes(t, l->holder);
    sim_trace_number(t, l->fence);
    sim_trace_number(t, (uint64_t)l->expires_at);
    sim_trace_number(t, (uint64_t)l->released_at);
}

static void add_register(struct sim_trace *t, const struct hf_register *r)
{
    sim_trace_bytes(t, r->name);
    sim_trace_number(t, r->version);
    sim_trace_number(t, r->fence);
    sim_trace_number(t, r->require_fence);
    sim_trace_number(t, r->value.type);
    sim_trace_number(t, (uint64_t)r->value.number);
    sim_trace_number(t, r->value.flag);
    sim_trace_number(t, (uint64_t)r->value.timestamp);
    sim_trace_bytes(t, r->value.bytes);
    sim_trace_bytes(t, r->value.node);
    for (size_t i = 0; i < r->value.item_count; i++) {
        sim_trace_bytes(t, r->value.items[i].name);
        sim_trace_number(t, r->value.items[i].up);
        sim_trace_number(t, r->value.items[i].down);
    }
}

void sim_trace_answer(struct sim_trace *t, enum hf_status status, const struct hf_result *result)
{
    const struct hf_answer *a = &result->answer;
    sim_trace_number(t, status);
    sim_trace_number(t, a->kind);
    sim_trace_number(t, result->replayed);
    sim_trace_number(t, (uint64_t)result->now);
    sim_trace_number(t, (uint64_t)result->token.expires_at);
    switch (a->kind) {
    case HF_NO_RECORD: break;
    case HF_RECORD_HOLD: add_hold(t, &a->hold); break;
    case HF_RECORD_RESOURCE: add_resource(t, &a->resource); break;
    case HF_RECORD_GUARD: add_guard(t, &a->guard); break;
    case HF_RECORD_SEEN: add_seen(t, &a->seen); break;
    case HF_RECORD_CLAIM: add_claim(t, &a->claim); break;
    case HF_RECORD_LEASE: add_lease(t, &a->lease); break;
    case HF_RECORD_REGISTER: add_register(t, &a->reg); break;
    case HF_RECORD_VALUE: sim_trace_bytes(t, a->value); break;
    }
}

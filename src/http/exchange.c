/* Exchanges: create, reuse, and finish from any thread. */
#include "http/inner.h"

#include <stdlib.h>

enum { FREE_MAX = 1024 };

struct hf_http_exchange *hf_http_exchange_new(struct hf_http_conn *conn)
{
    struct hf_http_thread *t = conn->thread;
    struct hf_http_exchange *x = t->free;
    if (x) {
        t->free = x->next;
        t->free_count--;
    } else {
        size_t own = (sizeof *x + 63) / 64 * 64;
        x = calloc(1, own + t->server->options.handler.own_size);
        if (!x)
            return NULL;
        x->own = (char *)x + own;
    }
    x->thread = t;
    x->conn = conn;
    x->next = NULL;
    x->group = NULL;
    x->refusal.status = 0;
    x->done = x->last = x->wants_continue = x->has_body = false;
    x->alone = x->hang_up = x->in_turn = x->waits = false;
    x->gone = false;
    x->answer_max = x->answer_size = x->took = 0;
    x->body = hf_mem(NULL, 0);
    x->head.method = HF_HTTP_OTHER;
    t->live++;
    atomic_store_explicit(&t->in_flight, t->live, memory_order_relaxed);
    return x;
}

void hf_http_exchange_free(struct hf_http_exchange *x)
{
    struct hf_http_thread *t = x->thread;
    const struct hf_http_handler *handler = &t->server->options.handler;
    handler->release(handler->arg, x);
    t->request_bytes -= x->counted;
    if (x->group && x->counted > 0)
        atomic_fetch_sub_explicit(&x->group->request_bytes, x->counted, memory_order_relaxed);
    x->counted = 0;
    hf_http_due(x, 0);
    hf_buffer_free(&x->input);
    hf_arena_reset(&x->arena);
    t->live--;
    atomic_store_explicit(&t->in_flight, t->live, memory_order_relaxed);
    if (t->free_count >= FREE_MAX) {
        hf_arena_free(&x->arena);
        free(x);
        return;
    }
    x->next = t->free;
    t->free = x;
    t->free_count++;
}

void hf_http_done(struct hf_http_exchange *x)
{
    hf_inbox_put(&x->thread->done, &x->task);
}

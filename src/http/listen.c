#include "base/clock.h"
#include "base/error.h"
#include "http/inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPARE_FILES = 64, LINGER_MS = 2000 };

static enum hf_status say(struct hf_error *why, enum hf_status status, const char *listen,
                          const char *what)
{
    return hf_error_set(why, status, "cannot listen on \"%.100s\": %s", listen, what);
}

/* ---- Threads ---- */

static void thread_free(struct hf_http_thread *t)
{
    if (!t)
        return;
    while (t->free) {
        struct hf_http_exchange *x = t->free;
        t->free = x->next;
        hf_arena_free(&x->arena);
        free(x);
    }
    hf_buffer_free(&t->fields);
    hf_buffer_free(&t->body);
    hf_buffer_free(&t->spare);
    hf_loop_close(&t->loop);
    free(t);
}

static struct hf_http_thread *thread_new(struct hf_http_server *s)
{
    struct hf_http_thread *t = calloc(1, sizeof *t);
    if (!t || !hf_loop_open(&t->loop)) {
        free(t);
        return NULL;
    }
    t->server = s;
    t->listener = (struct hf_source){ .fd = s->listener, .ready = hf_http_on_listener };
    hf_inbox_open(&t->done, &t->loop);
    const struct hf_http_limits *limits = &s->options.limits;
    t->timers[HF_HTTP_TIMER_HEAD].duration_ms = limits->head_ms;
    t->timers[HF_HTTP_TIMER_BODY].duration_ms = limits->body_ms;
    t->timers[HF_HTTP_TIMER_IDLE].duration_ms = t->timers[HF_HTTP_TIMER_WRITE].duration_ms =
        limits->idle_ms;
    t->timers[HF_HTTP_TIMER_LINGER].duration_ms = LINGER_MS;
    return t;
}

/* ---- The server ---- */

static enum hf_status address_read(const char *listen, struct hf_address *address,
                                   struct hf_error *why)
{
    if (hf_address_parse(listen, address))
        return HF_OK;
    return say(why, HF_INVALID_REQUEST, listen,
               "expected an address and a port, such as 127.0.0.1:4653 or [::1]:4653; port 0 means "
               "any free port");
}

enum hf_status hf_http_listen_check(const char *listen, bool *loopback, struct hf_error *why)
{
    struct hf_address address;
    enum hf_status status = address_read(listen, &address, why);
    *loopback = status == HF_OK && hf_address_is_loopback(&address);
    return status;
}

enum hf_status hf_http_listen(const struct hf_http_options *options, struct hf_http_server **out,
                              struct hf_error *why)
{
    struct hf_address address;
    *out = NULL;
    if (address_read(options->listen, &address, why) != HF_OK)
        return HF_INVALID_REQUEST;
    struct hf_http_server *s = calloc(1, sizeof *s);
    if (!s)
        return say(why, HF_NO_MEMORY, options->listen, "out of memory");
    s->options = *options;
    s->listener = hf_socket_listen(&address, HF_HTTP_BACKLOG);
    s->tls = hf_tls_keep(options->tls);
    pthread_mutex_init(&s->lock, NULL);
    if (s->listener < 0) {
        char reason[160];
        int error = -s->listener;
        snprintf(reason, sizeof reason, "%s%s", strerror(error),
                 error == EADDRINUSE
                     ? ". Another process is listening there; stop it or choose another port"
                     : "");
        hf_http_free(s);
        return say(why, HF_STORAGE_FAILURE, options->listen, reason);
    }
    hf_address_print(&address, s->address);
    s->loopback = hf_address_is_loopback(&address);
    s->options.limits.connections_max =
        hf_socket_allow(options->limits.connections_max,
                        SPARE_FILES + 2 * options->threads + options->files_reserved);
    if (options->limits.must_join)
        s->unknown_max = hf_http_unknown_share(s->options.limits.connections_max);
    s->threads = calloc(options->threads, sizeof(struct hf_http_thread *));
    while (s->threads && s->thread_count < options->threads) {
        struct hf_http_thread *t = thread_new(s);
        if (!t)
            break;
        s->threads[s->thread_count++] = t;
    }
    if (!s->threads || s->thread_count < options->threads) {
        hf_http_free(s);
        return say(why, HF_STORAGE_FAILURE, options->listen,
                   "out of memory or descriptors for the threads");
    }
    *out = s;
    return HF_OK;
}

unsigned hf_http_connections_max(const struct hf_http_server *s)
{
    return s->options.limits.connections_max;
}

const char *hf_http_address(const struct hf_http_server *s)
{
    return s->address;
}

bool hf_http_loopback(const struct hf_http_server *s)
{
    return s->loopback;
}

enum hf_status hf_http_start(struct hf_http_server *s, struct hf_error *why)
{
    for (unsigned i = 0; i < s->thread_count; i++) {
        if (pthread_create(&s->threads[i]->id, NULL, hf_http_loop, s->threads[i]) != 0) {
            hf_http_stop(s, 0);
            return say(why, HF_STORAGE_FAILURE, s->address, "cannot start its threads");
        }
        s->threads[i]->started = true;
    }
    return HF_OK;
}

void hf_http_stop(struct hf_http_server *s, unsigned wait_ms)
{
    s->stop_at_ms = hf_clock_monotonic_ms() + wait_ms;
    s->stopping = true;
    for (unsigned i = 0; i < s->thread_count; i++)
        if (s->threads[i]->started)
            hf_loop_wake(&s->threads[i]->loop);
    for (unsigned i = 0; i < s->thread_count; i++) {
        if (s->threads[i]->started)
            pthread_join(s->threads[i]->id, NULL);
        s->threads[i]->started = false;
    }
}

void hf_http_free(struct hf_http_server *s)
{
    if (!s)
        return;
    for (unsigned i = 0; s->threads && i < s->thread_count; i++)
        thread_free(s->threads[i]);
    free(s->threads);
    if (s->listener >= 0)
        close(s->listener);
    hf_tls_drop(s->tls);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void hf_http_set_tls(struct hf_http_server *s, struct hf_tls *tls)
{
    pthread_mutex_lock(&s->lock);
    struct hf_tls *old = s->tls;
    s->tls = hf_tls_keep(tls);
    pthread_mutex_unlock(&s->lock);
    hf_tls_drop(old);
}

void hf_http_stats(struct hf_http_server *s, struct hf_http_stats *out)
{
    *out = (struct hf_http_stats){ .connections = s->connections,
                                   .accepted = s->accepted,
                                   .refused_connections = s->refused_connections };
    unsigned joined = s->joined;
    if (s->unknown_max > 0 && out->connections > joined)
        out->unknown = out->connections - joined;
    for (unsigned i = 0; i < s->thread_count; i++) {
        const struct hf_http_thread *t = s->threads[i];
        out->requests += t->requests;
        out->bytes_in += t->bytes_in;
        out->bytes_out += t->bytes_out;
        out->timeouts += t->timeouts;
        out->malformed += t->malformed;
        out->in_flight += t->in_flight;
        out->unknown_closed += t->unknown_closed;
        out->group_refused += t->group_refused;
    }
}

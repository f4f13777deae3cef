/* Calls and retries. */
#include "base/clock.h"
#include "base/error.h"
#include "client/inner.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct hf_client {
    struct hf_client_url url;
    struct hf_tls *tls;    /* owned; NULL: plain */
    struct hf_stream wire; /* kept between calls */
    char *credential;      /* owned; NULL: none */
};

/* ---- Opening ---- */

/* The field allows printable ASCII without blanks. */
static bool credential_valid(const char *credential)
{
    size_t size = 0;
    while (credential[size] > ' ' && credential[size] < 0x7f)
        size++;
    return credential[size] == '\0' && size > 0 && size <= HF_CLIENT_CREDENTIAL_MAX;
}

static enum hf_status client_fill(struct hf_client *client, const struct hf_client_options *options,
                                  struct hf_error *why)
{
    if (!hf_client_url_parse(options->url, &client->url, why))
        return why->status;
    if (options->credential && !credential_valid(options->credential)) {
        *why = (struct hf_error){
            HF_INVALID_REQUEST,
            "the credential is invalid; expected: 1 to 4096 bytes of printable ASCII without blanks"
        };
        return why->status;
    }
    if (client->url.tls && hf_tls_trust(options->ca_file, &client->tls, why) != HF_OK)
        return why->status;
    if (options->credential && !(client->credential = strdup(options->credential)))
        return why->status = HF_NO_MEMORY;
    return HF_OK;
}

enum hf_status hf_client_open(const struct hf_client_options *options, struct hf_client **out,
                              struct hf_error *why)
{
    struct hf_client *client = calloc(1, sizeof *client);
    *out = NULL;
    *why = (struct hf_error){ HF_NO_MEMORY, "out of memory" };
    if (!client)
        return HF_NO_MEMORY;
    client->wire.fd = -1;
    enum hf_status status = client_fill(client, options, why);
    if (status == HF_OK)
        *out = client;
    else
        hf_client_close(client);
    return status;
}

void hf_client_close(struct hf_client *client)
{
    if (!client)
        return;
    hf_stream_close(&client->wire);
    hf_tls_drop(client->tls);
    if (client->credential)
        OPENSSL_cleanse(client->credential, strlen(client->credential));
    free(client->credential);
    free(client);
}

const char *hf_client_url(const struct hf_client *client)
{
    return client->url.shown;
}

bool hf_client_exposed(const struct hf_client *client)
{
    return client->credential && !client->tls && !hf_client_url_loopback(&client->url);
}

/* ---- Sending ---- */

static const char *method_name(enum hf_http_method method)
{
    return method == HF_HTTP_POST     ? "POST"
           : method == HF_HTTP_PUT    ? "PUT"
           : method == HF_HTTP_DELETE ? "DELETE"
                                      : "GET";
}

static void request_write(const struct hf_client *client, const struct hf_client_call *call,
                          struct hf_buffer *out)
{
    hf_buffer_printf(out, "%s %s", method_name(call->method), client->url.prefix);
    hf_buffer_add(out, call->target.data, call->target.size);
    hf_buffer_printf(out, " HTTP/1.1\r\nHost: %s\r\nUser-Agent: holdfast/%s\r\nAccept: %s\r\n",
                     client->url.field, hf_version(), call->accept);
    if (client->credential)
        hf_buffer_printf(out, "Authorization: Bearer %s\r\n", client->credential);
    if (call->key.size > 0) {
        hf_buffer_add_text(out, "Idempotency-Key: ");
        hf_buffer_add(out, call->key.data, call->key.size);
        hf_buffer_add_text(out, "\r\n");
    }
    if (call->client.size > 0) {
        hf_buffer_add_text(out, "Holdfast-Client: ");
        hf_buffer_add(out, call->client.data, call->client.size);
        hf_buffer_printf(out, "\r\nHoldfast-Sequence: %" PRIu64 "\r\n", call->sequence);
    }
    if (call->body.size > 0)
        hf_buffer_add_text(out, "Content-Type: application/json\r\n");
    if (call->method != HF_HTTP_GET)
        hf_buffer_printf(out, "Content-Length: %zu\r\n", call->body.size);
    hf_buffer_add_text(out, "\r\n");
    hf_buffer_add(out, call->body.data, call->body.size);
}

/* ---- Receiving ---- */

/* One attempt and its result. */
struct attempt {
    struct hf_client *client;
    const struct hf_client_call *call;
    struct hf_client_answer *answer;
    int64_t deadline;
    bool sent;  /* the whole request was sent, in this attempt or an earlier one */
    bool heard; /* some bytes were received */
    bool spilt; /* a part of a body is in the sink */
    struct hf_wire_fault fault;
    struct hf_buffer input; /* received and not yet used */
};

static bool nonsense(struct attempt *a, const char *what)
{
    snprintf(a->fault.text, sizeof a->fault.text, "the answer is not from a Holdfast server: %s",
             what);
    a->fault.transient = false;
    return false;
}

/* Receive more into a->input. False also at the end of the stream, because the answer is not yet
 * complete. */
static bool more(struct attempt *a, int64_t deadline)
{
    const size_t step = 16384;
    if (!hf_buffer_reserve(&a->input, step))
        return nonsense(a, "out of memory");
    ssize_t n =
        hf_wire_read(&a->client->wire, a->input.data + a->input.size, step, deadline, &a->fault);
    if (n > 0) {
        a->heard = true;
        a->input.size += (size_t)n;
        return true;
    }
    if (n == 0) {
        a->fault.transient = true;
        snprintf(a->fault.text, sizeof a->fault.text,
                 "it closed the connection before its answer was complete");
    }
    return false;
}

static void input_drop(struct attempt *a, size_t size)
{
    memmove(a->input.data, a->input.data + size, a->input.size - size);
    a->input.size -= size;
}

/* Receive the head of the answer, after at most a few interim ones. */
static bool head_receive(struct attempt *a)
{
    enum { INTERIM_MAX = 4 };
    size_t scanned = 0;
    for (unsigned interim = 0; interim <= INTERIM_MAX;) {
        const char *why = NULL;
        struct hf_client_head *head = &a->answer->head;
        switch (hf_client_head_parse((const char *)a->input.data, a->input.size, &scanned, head,
                                     &why)) {
        case HF_HTTP_BAD: return nonsense(a, why);
        case HF_HTTP_MORE:
            if (!more(a, a->deadline))
                return false;
            break;
        case HF_HTTP_DONE:
            input_drop(a, head->size);
            if (head->status >= 200)
                return true;
            scanned = 0;
            interim++;
        }
    }
    return nonsense(a, "it has too many interim answers");
}

/* Receive the body into memory. The buffer grows with the received bytes, not with the announced
 * length. */
static bool body_keep(struct attempt *a)
{
    uint64_t length = a->answer->head.length;
    if (length > HF_CLIENT_BODY_MAX)
        return nonsense(a, "its body is longer than 64 MiB");
    while (a->input.size < length)
        if (!more(a, a->deadline))
            return false;
    hf_buffer_reset(&a->answer->body);
    hf_buffer_add(&a->answer->body, a->input.data, (size_t)length);
    input_drop(a, (size_t)length);
    return !a->answer->body.failed || nonsense(a, "out of memory");
}

/* Receive the body and write it to the sink. */
static bool body_pour(struct attempt *a)
{
    uint64_t left = a->answer->head.length;
    while (left > 0) {
        if (a->input.size == 0 && !more(a, hf_clock_monotonic_ms() + HF_CLIENT_IDLE_MS))
            return false;
        size_t size = a->input.size < left ? a->input.size : (size_t)left;
        a->spilt = true;
        if (fwrite(a->input.data, 1, size, a->call->sink) != size) {
            snprintf(a->fault.text, sizeof a->fault.text,
                     "its answer could not be written to the "
                     "file");
            a->fault.transient = false;
            return false;
        }
        left -= size;
        input_drop(a, size);
    }
    return true;
}

static bool receive(struct attempt *a)
{
    const struct hf_client_head *head = &a->answer->head;
    if (!head_receive(a))
        return false;
    hf_buffer_reset(&a->answer->body);
    bool pour =
        a->call->sink && head->status == 200 && strcmp(head->content_type, a->call->accept) == 0;
    if (!(pour ? body_pour(a) : body_keep(a)))
        return false;
    if (!head->keep_alive || a->input.size > 0)
        hf_stream_close(&a->client->wire);
    return true;
}

/* Send the request once and receive its answer. A server that refuses a request early may stop
 * reading it. So look for an answer even if the sending failed. */
static bool attempt_make(struct attempt *a, struct hf_bytes request)
{
    enum { REFUSAL_MS = 500 };
    struct hf_client *c = a->client;
    int64_t deadline = a->deadline;
    struct hf_wire_fault unsent;
    hf_buffer_reset(&a->input);
    if (c->wire.fd >= 0 && !hf_wire_quiet(&c->wire)) /* closed, or has unexpected bytes */
        hf_stream_close(&c->wire);
    if (c->wire.fd < 0 && !hf_wire_open(&c->wire, &c->url, c->tls, a->deadline, &a->fault))
        return false;
    bool whole = hf_wire_write(&c->wire, request, a->deadline, &unsent);
    a->sent |= whole;
    if (!whole && hf_clock_monotonic_ms() + REFUSAL_MS < deadline)
        a->deadline = hf_clock_monotonic_ms() + REFUSAL_MS;
    bool answered = receive(a);
    a->deadline = deadline;
    if (!answered) {
        hf_stream_close(&c->wire);
        if (!whole)
            a->fault = unsent;
    }
    return answered;
}

static void nap(int64_t ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

/* Is another attempt allowed and useful? */
static bool may_again(const struct attempt *a, unsigned attempts)
{
    return attempts < HF_CLIENT_ATTEMPTS && a->fault.transient && (!a->sent || a->call->again) &&
           !a->spilt && hf_clock_monotonic_ms() < a->deadline;
}

/* A server that expects TLS may send nothing in reply to plain HTTP. */
static const char *advice(const struct attempt *a)
{
    return a->sent && !a->heard && !a->client->tls ? "; if it uses TLS, use https:// in its URL"
                                                   : "";
}

static bool attempts_make(struct attempt *a, struct hf_bytes request)
{
    for (unsigned attempts = 1;; attempts++) {
        bool kept =
            a->client->wire.fd >= 0; /* an idle connection may have been closed: retry at once */
        if (attempt_make(a, request))
            return true;
        if (!may_again(a, attempts))
            return false;
        if (!kept)
            nap(attempts == 1 ? 100 : 400);
    }
}

enum hf_status hf_client_ask(struct hf_client *client, const struct hf_client_call *call,
                             struct hf_client_answer *answer, struct hf_error *why)
{
    struct attempt a = { .client = client,
                         .call = call,
                         .answer = answer,
                         .deadline = hf_clock_monotonic_ms() + call->wait_ms };
    struct hf_buffer request = { 0 };
    *why = (struct hf_error){ HF_OK, "" };
    request_write(client, call, &request);
    if (request.failed) {
        *why = (struct hf_error){ HF_NO_MEMORY, "out of memory" };
    } else if (!attempts_make(&a, hf_mem(request.data, request.size))) {
        (void)hf_error_set(why, a.sent ? HF_INDETERMINATE : HF_STORAGE_FAILURE,
                           "%s %.150s: %.250s%s",
                           a.sent ? "no usable answer from" : "cannot reach the server at",
                           client->url.shown, a.fault.text, advice(&a));
    }
    if (client->credential && request.data)
        OPENSSL_cleanse(request.data, request.size);
    hf_buffer_free(&request);
    hf_buffer_free(&a.input);
    return why->status;
}

void hf_client_answer_free(struct hf_client_answer *answer)
{
    hf_buffer_free(&answer->body);
}

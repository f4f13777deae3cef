/* Authentication, decoding of requests, and gathering operations for the engine. */
#include "server/inner.h"

#include "base/clock.h"
#include "core/action.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct hf_work *work_of(struct hf_http_exchange *x)
{
    return x->own;
}

void hf_work_refuse(struct hf_work *work, unsigned status, const char *code, const char *title,
                    const char *detail)
{
    if (detail != work->fault.detail)
        snprintf(work->fault.detail, sizeof work->fault.detail, "%s", detail);
    work->problem = (struct hf_refusal){ .code = code,
                                         .title = title,
                                         .detail = hf_str(work->fault.detail),
                                         .http_status = status,
                                         .retry = hf_retry_of(status) };
}

void hf_work_fail(struct hf_work *work, enum hf_action action, enum hf_status status,
                  const char *detail)
{
    struct hf_refusal words = hf_refusal_of(action, status);
    work->server->refusals[status]++;
    if (detail) {
        hf_work_refuse(work, words.http_status, words.code, words.title, detail);
        work->problem.retry = words.retry;
    } else {
        work->problem = words; /* static words, however long */
    }
}

/* ---- Authentication ---- */

/* Find the caller. False: not authenticated. Without an auth file every caller is the admin. */
static bool identify(struct hf_server *s, const struct hf_http_head *head, struct hf_work *work)
{
    struct hf_caller *caller = &work->caller;
    *caller = (struct hf_caller){ .role = s->options.auth_file ? HF_ROLE_NONE : HF_ROLE_ADMIN };
    work->figures = true;
    if (!s->options.auth_file)
        return true;
    pthread_mutex_lock(&s->auth_lock);
    struct hf_auth *auth = hf_auth_keep(s->auth);
    pthread_mutex_unlock(&s->auth_lock);
    bool known = head->has[HF_FIELD_AUTHORIZATION] &&
                 hf_auth_check(auth, head->field[HF_FIELD_AUTHORIZATION], caller);
    /* If the auth file has an operator, tenants do not see the figures. */
    work->figures =
        caller->is_operator || (caller->role >= HF_ROLE_READ && !hf_auth_has_operator(auth));
    hf_auth_drop(auth);
    return known;
}

/* Is it a loopback address? text: an IPv4 address, or an IPv6 address in brackets. */
static bool loopback(char *text)
{
    struct in6_addr six;
    struct in_addr four;
    size_t size = strlen(text);
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (size < 2 || text[0] != '[')
        return false;
    text[size - 1] = 0;
    if (inet_pton(AF_INET6, text + 1, &six) != 1)
        return false;
    return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

/* Is Host the address that the server listens on, localhost or a loopback address? The port is
 * ignored for the latter two. */
static bool local_host(const struct hf_server *s, struct hf_bytes host)
{
    const char *at = host.data, *address = hf_http_address(s->http);
    char name[INET6_ADDRSTRLEN + 2];
    if (host.size == strlen(address) && memcmp(at, address, host.size) == 0)
        return true;
    bool brackets = host.size > 0 && at[0] == '[';
    const char *end = host.size > 0 ? memchr(at, brackets ? ']' : ':', host.size) : NULL;
    size_t size = end ? (size_t)(end - at) + brackets : host.size;
    if (size >= sizeof name)
        return false;
    memcpy(name, at, size);
    name[size] = 0;
    return strcasecmp(name, "localhost") == 0 || loopback(name);
}

static bool field_is(const struct hf_http_head *head, enum hf_http_field field, const char *word)
{
    struct hf_bytes value = head->field[field];
    return head->has[field] && value.size == strlen(word) &&
           strncasecmp(value.data, word, value.size) == 0;
}

/* Does the request come from a web page of another site? Without an auth file the server accepts
 * every local caller, also a browser. An attacker can point a DNS name at this machine: their page
 * then has the same origin as its Host, and its GET has no Origin field. Health calls are not
 * secret, and a load balancer may use any name for the server. */
static bool foreign_page(const struct hf_server *s, const struct hf_call *call,
                         const struct hf_http_head *head)
{
    if (s->options.auth_file || (call && hf_handler_of(call)->at_any_host))
        return false;
    return (head->has[HF_FIELD_HOST] && !local_host(s, head->field[HF_FIELD_HOST])) ||
           field_is(head, HF_FIELD_SEC_FETCH_SITE, "cross-site");
}

/* A browser names the origin of a page in Origin when the page sends a request to another
 * origin. */
static bool foreign_origin(const struct hf_server *s, const struct hf_http_head *head)
{
    char own[300];
    struct hf_bytes host = head->field[HF_FIELD_HOST], origin = head->field[HF_FIELD_ORIGIN];
    if (!head->has[HF_FIELD_ORIGIN])
        return false;
    int n = snprintf(own, sizeof own, "%s://%.*s", s->tls ? "https" : "http", (int)host.size,
                     host.data ? (const char *)host.data : "");
    return n < 0 || (size_t)n >= sizeof own || origin.size != (size_t)n ||
           memcmp(origin.data, own, (size_t)n) != 0;
}

/* The caller is authenticated and may make the call. May its tenant have one more connection? False
 * after filling `why`. */
static bool admit(struct hf_work *work, struct hf_http_refusal *why)
{
    static const struct hf_http_refusal no_memory = {
        503, "storage-failure",
        "The server has no memory for this request now. Nothing was changed: try again later."
    };
    static const struct hf_http_refusal full[] = {
        [HF_HTTP_GROUP_FULL] = { 503, "too-many-connections",
                                 "Your tenant has reached its limit of connections. Reuse or close "
                                 "connections, or try again in a moment." },
        [HF_HTTP_SERVER_FULL] = { 503, "too-many-connections",
                                  "This server has as many connections as it takes. Close some, or "
                                  "try again in a moment." },
    };
    struct hf_server *s = work->server;
    work->tenant = &s->tenants.nobody;
    if (work->caller.role == HF_ROLE_NONE || !s->options.auth_file)
        return true;
    struct hf_bytes name = work->caller.is_operator
                               ? hf_str(HF_TENANT_OPERATORS)
                               : hf_mem(work->caller.tenant, work->caller.tenant_size);
    work->tenant = hf_tenant_find(&s->tenants, (struct hf_tenant *)hf_http_group_of(work->x), name);
    if (!work->tenant) {
        *why = no_memory;
        return false;
    }
    enum hf_http_joined joined = hf_http_join(work->x, &work->tenant->group);
    if (joined != HF_HTTP_JOINED) {
        work->x->hang_up = true;
        *why = full[joined];
        return false;
    }
    return true;
}

/* Of the calls for tenants, operators can make those that read or settle. Tenants cannot make calls
 * for operators. */
static bool may_call(const struct hf_work *work)
{
    const struct hf_call *call = work->match.call;
    if (!call)
        return true;
    if (work->caller.is_operator)
        return call->by_operator || !hf_handler_of(call)->of_tenant;
    if (hf_handler_of(call)->of_store && work->server->options.auth_file)
        return false;
    return !hf_handler_of(call)->of_operators || work->figures;
}

static const char no_call[] =
    "There is no call with this path. GET /v1/openapi.json describes them all.";
static const char no_call_named[] =
    "There is no call with this path. Write a slash in a key or a name as %2F. "
    "GET /v1/openapi.json describes all calls.";

static bool refuse(void *arg, struct hf_http_exchange *x, struct hf_http_refusal *why)
{
    static const struct hf_http_refusal unauthorized = {
        401, "unauthorized",
        "Authentication required: send `Authorization: Bearer CREDENTIAL` with a credential of the "
        "server's auth file."
    };
    static const struct hf_http_refusal forbidden = {
        403, "forbidden",
        "The credential is known, but its role may not make this call. Use one with a higher role."
    };
    static const struct hf_http_refusal of_operators = {
        403, "forbidden",
        "This is about the whole server, and for its operators alone. Use an operator's "
        "credential."
    };
    static const struct hf_http_refusal of_a_tenant = {
        403, "forbidden",
        "An operator may read the records of every tenant and settle claims, and make no other "
        "change. Use a credential of the tenant."
    };
    static const struct hf_http_refusal foreign = {
        403, "forbidden",
        "The request comes from a web page of another origin. The server refuses such requests."
    };
    static const struct hf_http_refusal elsewhere = {
        403, "forbidden",
        "Without an auth file this server accepts requests only from its own machine: Host must be "
        "localhost, a loopback address or the address that it listens on, and the request must not "
        "come from a web page of another site. Use http://127.0.0.1 or an auth file."
    };
    static const struct hf_http_refusal encoded = {
        415, "encoding-not-supported",
        "The body has a Content-Encoding that the server does not support. Send it without "
        "encoding."
    };
    /* Refused before the body is received. */
    static const struct hf_http_refusal unknown = { 404, "not-known", no_call };
    static const struct hf_http_refusal unknown_named = { 404, "not-known", no_call_named };
    static const struct hf_http_refusal not_allowed = {
        405, "method-not-allowed",
        "The path exists, but not with this method. The field Allow names its methods."
    };
    static const struct hf_http_refusal no_body = {
        400, "invalid-request", "This call has no body. Send the request without one."
    };
    struct hf_server *s = arg;
    struct hf_work *work = work_of(x);
    work->server = s;
    work->x = x;
    work->file = -1;
    work->retry_after = 0;
    hf_call_find(x->head.method, x->head.path, &work->match);
    /* The threads of slow.c do not see operations that are not submitted to the engine yet. */
    x->in_turn = work->match.call && hf_handler_of(work->match.call)->make;
    enum hf_role needed = work->match.call ? work->match.call->role : HF_ROLE_NONE;
    bool known = identify(s, &x->head, work);
    /* A connection of a tenant is for known callers: a removed credential keeps no connection. */
    if (!known && hf_http_group_of(x))
        x->hang_up = true;
    if (!known && needed > HF_ROLE_NONE) {
        s->unauthorized++;
        *why = unauthorized;
    } else if (work->caller.role < needed) {
        s->forbidden++;
        *why = forbidden;
    } else if (!may_call(work)) {
        s->forbidden++;
        *why = work->caller.is_operator ? of_a_tenant : of_operators;
    } else if (foreign_page(s, work->match.call, &x->head)) {
        s->forbidden++;
        *why = elsewhere;
    } else if (foreign_origin(s, &x->head)) {
        s->forbidden++;
        *why = foreign;
    } else if (!admit(work, why)) {
        return true;
    } else if (x->has_body && (!work->match.call || work->match.call->method == HF_HTTP_GET)) {
        bool is_unknown = !work->match.call && work->match.allow[0] == 0;
        *why = is_unknown          ? hf_call_is_named(x->head.path) ? unknown_named : unknown
               : !work->match.call ? not_allowed
                                   : no_body;
    } else if (x->has_body && x->head.field[HF_FIELD_CONTENT_ENCODING].size > 0 &&
               !field_is(&x->head, HF_FIELD_CONTENT_ENCODING, "identity")) {
        *why = encoded;
    } else {
        return false;
    }
    return true;
}

/* ---- Requests ---- */

/* The operations that this I/O thread gathers in a round. */
static _Thread_local struct hf_op *gathered, **gathered_end;

void hf_server_gather(struct hf_op *op)
{
    op->next = NULL;
    if (!gathered)
        gathered_end = &gathered;
    *gathered_end = op;
    gathered_end = &op->next;
}

size_t hf_server_answer_size(const struct hf_result *result)
{
    const struct hf_answer *answer = &result->answer;
    const struct hf_value *value = &answer->reg.value;
    size_t size = 0;
    switch (answer->kind) {
    case HF_RECORD_SEEN: return answer->seen.result.size;
    case HF_RECORD_CLAIM: return answer->claim.response.size;
    case HF_RECORD_REGISTER:
        for (size_t i = 0; i < value->item_count; i++)
            size += sizeof value->items[i] + value->items[i].name.size;
        return size + value->bytes.size;
    default: return 0;
    }
}

static void op_done(struct hf_op *op, enum hf_status status)
{
    struct hf_work *work = op->arg;
    work->status = status;
    work->x->answer_size = hf_server_answer_size(&work->result);
    hf_http_done(work->x);
}

/* Fill the input of the decoder. False after refusing. */
static bool input_make(struct hf_work *work)
{
    struct hf_http_exchange *x = work->x;
    struct hf_api_input *in = &work->input;
    struct hf_bytes key = x->head.field[HF_FIELD_IDEMPOTENCY_KEY];
    *in = (struct hf_api_input){ .tenant = hf_mem(work->caller.tenant, work->caller.tenant_size),
                                 .has_key = x->head.has[HF_FIELD_IDEMPOTENCY_KEY],
                                 .key_field = key,
                                 .has_client = x->head.has[HF_FIELD_CLIENT],
                                 .client_field = x->head.field[HF_FIELD_CLIENT],
                                 .has_sequence = x->head.has[HF_FIELD_SEQUENCE],
                                 .sequence_field = x->head.field[HF_FIELD_SEQUENCE],
                                 .query = x->head.query,
                                 .body = x->body };
    if (work->caller.is_operator && work->match.call->by_operator && !hf_operator_tenant(work))
        return false;
    for (size_t i = 0; i < HF_CALL_PARAMS; i++) {
        struct hf_bytes param = work->match.params[i];
        if (param.size == 0)
            continue;
        if (!memchr(param.data, '%', param.size)) {
            in->params[i] = param;
            continue;
        }
        char *room = hf_arena_take(&x->arena, param.size);
        size_t size = 0;
        if (!room || !hf_http_unescape(param, room, &size)) {
            hf_work_fail(work, (enum hf_action)0, room ? HF_INVALID_REQUEST : HF_NO_MEMORY,
                         room ? "The path has an invalid %-escape. Write each byte as % and two "
                                "hexadecimal digits."
                              : NULL);
            return false;
        }
        in->params[i] = hf_mem(room, size);
    }
    return true;
}

bool hf_request_begin(struct hf_work *work)
{
    const struct hf_call *call = work->match.call;
    if (!input_make(work))
        return false;
    enum hf_status st =
        hf_api_decode(call, &work->input, &work->x->arena, &work->request, &work->fault);
    if (st != HF_OK) {
        hf_work_fail(work, call->action, st, st == HF_INVALID_REQUEST ? work->fault.detail : NULL);
        return false;
    }
    work->op = (struct hf_op){ .request = &work->request,
                               .result = &work->result,
                               .done = op_done,
                               .arg = work,
                               .order_key = work->x->conn };
    work->x->took = work->x->arena.held;
    /* A request that is `alone` is the only one of its connection. The answers of all others are
     * counted. */
    if (!work->x->alone)
        work->x->answer_max = hf_action_of(work->request.action)->answer_max;
    hf_server_gather(&work->op);
    return true;
}

bool hf_slow_begin(struct hf_work *work)
{
    if (!input_make(work))
        return false;
    hf_slow_add(work);
    return true;
}

static void not_found(struct hf_work *work)
{
    if (work->match.allow[0] == 0) {
        hf_work_fail(work, (enum hf_action)0, HF_NOT_KNOWN,
                     hf_call_is_named(work->x->head.path) ? no_call_named : no_call);
        return;
    }
    hf_work_refuse(work, 405, "method-not-allowed", "Method not allowed",
                   "The path exists, but not with this method. The field Allow names its methods.");
}

/* Does the call end something that was begun, or keep it alive? */
static bool is_ending(const struct hf_call *call)
{
    enum hf_ends ends = call ? hf_action_of(call->action)->ends : HF_ENDS_NOTHING;
    return ends == HF_ENDS_BEGUN || ends == HF_ENDS_PAYLOAD;
}

/* Checked after the body has arrived, so that the connection can be kept. */
bool hf_server_too_fast(struct hf_work *work, uint64_t count)
{
    struct hf_server *s = work->server;
    if (s->tenants.rate == 0 || work->tenant == &s->tenants.nobody)
        return false;
    struct hf_charge charge = { .now_us = hf_clock_monotonic_ns() / 1000,
                                .count = count,
                                .ending = is_ending(work->match.call) };
    int64_t wait_us = hf_tenant_take(&s->tenants, work->tenant, &charge);
    if (wait_us == 0)
        return false;
    s->too_many_requests++;
    work->retry_after = (unsigned)((wait_us + 999999) / 1000000);
    hf_work_refuse(work, 429, "too-many-requests", "Too many requests",
                   "Your tenant exceeds its limit of requests per second. Nothing was changed. "
                   "Retry after the time in Retry-After, with the same key.");
    return true;
}

static void request(void *arg, struct hf_http_exchange *x)
{
    struct hf_server *s = arg;
    struct hf_work *work = work_of(x);
    const struct hf_call *call = work->match.call;
    const struct hf_handler *handler = call ? hf_handler_of(call) : NULL;
    x->alone =
        call && (handler->is_large || hf_action_of(call->action)->answer_max >= HF_RESPONSE_MAX);
    if (!(call && handler->charges) && hf_server_too_fast(work, 1)) {
        hf_http_done(x);
        return;
    }
    if (!call)
        not_found(work);
    else if (handler->needs_store && !s->db)
        hf_work_fail(work, (enum hf_action)0, HF_STORAGE_FAILURE,
                     "The server is not ready: it is reading its journal. Try again in a moment, "
                     "with the same key.");
    else if (handler->begin && handler->begin(work))
        return;
    hf_http_done(x);
}

/* ---- Rounds ---- */

/* Submit the operations of the round. With one I/O thread, this thread also commits: no other
 * thread has work meanwhile, and a switch to another thread costs more than it saves. Threads of
 * the library wait for a database. */
static void round_end(void *arg, struct hf_http_thread *thread)
{
    struct hf_server *s = arg;
    struct hf_op *first = gathered;
    (void)thread;
    if (!first)
        return;
    gathered = NULL;
    hf_submit(s->db, first);
    if (s->options.threads == 1 && !s->options.store.postgres)
        hf_flush(s->db);
}

/* An export was cut because its client reads too slowly. */
static void cut(void *arg, const struct hf_http_cut *cut)
{
    struct hf_server *s = arg;
    const struct hf_tenant *tenant =
        cut->group ? (const struct hf_tenant *)cut->group : &s->tenants.nobody;
    struct hf_log_field fields[] = {
        { .name = "tenant", .type = HF_LOG_NAME, .text = hf_mem(tenant->name, tenant->name_size) },
        { .name = "sent", .type = HF_LOG_NUMBER, .number = (int64_t)cut->sent },
        { .name = "size", .type = HF_LOG_NUMBER, .number = (int64_t)cut->size },
    };
    hf_log_line(s->log, HF_LOG_WARNING, hf_clock_wall_ms(), "export-cut", fields,
                sizeof fields / sizeof *fields);
}

static void release(void *arg, struct hf_http_exchange *x)
{
    struct hf_work *work = work_of(x);
    (void)arg;
    hf_result_clear(&work->result);
    hf_bulk_free(work);
    hf_buffer_free(&work->text);
    /* An export whose client has disconnected. If server is NULL, there was no request yet. */
    if (work->server && work->file >= 0) {
        close(work->file);
        atomic_fetch_sub(&work->tenant->exports, 1);
    }
    work->file = -1;
    work->problem.code = NULL;
    work->match.call = NULL;
    work->content_type = NULL;
}

void hf_server_handler(struct hf_server *s, struct hf_http_handler *handler)
{
    *handler = (struct hf_http_handler){ .arg = s,
                                         .own_size = sizeof(struct hf_work),
                                         .request = request,
                                         .refuse = refuse,
                                         .round = round_end,
                                         .render = hf_server_render,
                                         .render_refusal = hf_server_render_refusal,
                                         .cut = cut,
                                         .release = release };
}

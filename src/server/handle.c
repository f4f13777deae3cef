/* Who may ask, what is asked, and gathering it for the engine. */
#include "server/inner.h"

#include "base/bug.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static struct hf_work *work_of(struct hf_http_exchange *x)
{
    return x->own;
}

hf_time hf_server_clock(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (hf_time)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void hf_work_refuse(struct hf_work *work, unsigned status, const char *code, const char *title,
                    const char *detail)
{
    if (detail != work->fault.detail)
        snprintf(work->fault.detail, sizeof work->fault.detail, "%s", detail);
    work->problem = (struct hf_api_problem){
        .code = code, .title = title, .detail = hf_str(work->fault.detail), .http_status = status
    };
}

void hf_work_fail(struct hf_work *work, enum hf_action action, enum hf_status status, const char *detail)
{
    struct hf_api_problem words = hf_api_problem_of(action, status);
    work->server->refusals[status]++;
    hf_work_refuse(work, words.http_status, words.code, words.title,
                   detail ? detail : (const char *)words.detail.data);
}

/* ---- Who may ask ---- */

/* Who calls? False: nobody that we know. Without an auth file everybody is. */
static bool identify(struct hf_server *s, const struct hf_http_head *head, struct hf_caller *caller)
{
    caller->tenant_size = 0;
    caller->role = s->options.auth_file ? HF_ROLE_NONE : HF_ROLE_ADMIN;
    if (!s->options.auth_file)
        return true;
    pthread_mutex_lock(&s->auth_lock);
    struct hf_auth *auth = hf_auth_keep(s->auth);
    pthread_mutex_unlock(&s->auth_lock);
    bool known =
        head->has[HF_FIELD_AUTHORIZATION] && hf_auth_check(auth, head->field[HF_FIELD_AUTHORIZATION], caller);
    hf_auth_drop(auth);
    if (HF_BUG(server_tenant_ignored))
        caller->tenant_size = 0;
    return known;
}

/* Is it an address that only this machine has? text: an IPv4 address, or an IPv6 address in brackets. */
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

/* Does the request call the server by the address that it listens on, or by what no other machine is called? A name ends
 * where its port begins. */
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
    return head->has[field] && value.size == strlen(word) && strncasecmp(value.data, word, value.size) == 0;
}

/* Is it asked for by a page of another site that a browser shows? Without an auth file the browser's user is let in
 * without a word, so a name that somebody points at this machine must not make a page of theirs ours: such a page is of
 * the same origin as its Host, and a GET then says nothing in Origin. Whether the server lives is no secret, and who
 * asks that (a load balancer) calls it by any name. */
static bool foreign_page(const struct hf_server *s, const struct hf_call *call,
                         const struct hf_http_head *head)
{
    if (s->options.auth_file || (call && (call->kind == HF_CALL_HEALTH || call->kind == HF_CALL_READY)))
        return false;
    return (head->has[HF_FIELD_HOST] && !local_host(s, head->field[HF_FIELD_HOST])) ||
           field_is(head, HF_FIELD_SEC_FETCH_SITE, "cross-site");
}

/* A page of another origin may send requests here, but not without saying so in Origin. */
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

static bool refuse(void *arg, struct hf_http_exchange *x, struct hf_http_refusal *why)
{
    static const struct hf_http_refusal unauthorized = {
        401, "unauthorized",
        "This server asks who calls: send `Authorization: Bearer TOKEN` with a token of its auth file."
    };
    static const struct hf_http_refusal forbidden = {
        403, "forbidden",
        "The token is known, but its role may not make this call. Use one with a higher role."
    };
    static const struct hf_http_refusal foreign = {
        403, "forbidden",
        "The request comes from a web page of another origin, and those are not served here."
    };
    static const struct hf_http_refusal elsewhere = {
        403, "forbidden",
        "Without an auth file this server is for its own machine alone: Host must be localhost, a loopback "
        "address or "
        "the address it listens on, and no page of another site may ask. Use http://127.0.0.1 or an auth "
        "file."
    };
    static const struct hf_http_refusal encoded = {
        415, "encoding-not-supported",
        "The body is in a Content-Encoding that is not read here. Send it as it is, without the field."
    };
    /* Nobody sends a body to where it is of no use. */
    static const struct hf_http_refusal unknown = {
        404, "not-known", "There is no call with this path. GET /v1/openapi.json describes them all."
    };
    static const struct hf_http_refusal not_allowed = {
        405, "method-not-allowed",
        "This path is there, but not with this method. The field Allow names those that it takes."
    };
    static const struct hf_http_refusal no_body = { 400, "invalid-request",
                                                    "This call takes no body. Send it without one." };
    struct hf_server *s = arg;
    struct hf_work *work = work_of(x);
    work->server = s;
    work->x = x;
    work->file = -1;
    hf_call_find(x->head.method, x->head.path, &work->match);
    enum hf_role needed = work->match.call ? work->match.call->role : HF_ROLE_NONE;
    bool known = identify(s, &x->head, &work->caller);
    if (!known && needed > HF_ROLE_NONE) {
        s->unauthorized++;
        *why = unauthorized;
    } else if (work->caller.role < needed) {
        s->forbidden++;
        *why = forbidden;
    } else if (foreign_page(s, work->match.call, &x->head)) {
        s->forbidden++;
        *why = elsewhere;
    } else if (foreign_origin(s, &x->head)) {
        s->forbidden++;
        *why = foreign;
    } else if (x->has_body && (!work->match.call || work->match.call->method == HF_HTTP_GET)) {
        *why = !work->match.call && work->match.allow[0] == 0 ? unknown
               : !work->match.call                            ? not_allowed
                                                              : no_body;
    } else if (x->has_body && x->head.field[HF_FIELD_CONTENT_ENCODING].size > 0 &&
               !field_is(&x->head, HF_FIELD_CONTENT_ENCODING, "identity")) {
        *why = encoded;
    } else {
        return false;
    }
    return true;
}

/* ---- What is asked ---- */

/* What this I/O thread gathers in a round. */
static _Thread_local struct hf_op *gathered, **gathered_end;

void hf_server_gather(struct hf_op *op)
{
    op->next = NULL;
    if (!gathered)
        gathered_end = &gathered;
    *gathered_end = op;
    gathered_end = &op->next;
}

static void op_done(struct hf_op *op, enum hf_status status)
{
    struct hf_work *work = op->arg;
    work->status = status;
    hf_http_done(work->x);
}

/* Fill what every kind of decoding starts from. False after refusing. */
static bool input_make(struct hf_work *work)
{
    struct hf_http_exchange *x = work->x;
    struct hf_api_input *in = &work->input;
    struct hf_bytes key = x->head.field[HF_FIELD_IDEMPOTENCY_KEY];
    key.size -= HF_BUG(server_key_shortened) && key.size > 16;
    *in = (struct hf_api_input){ .tenant = hf_mem(work->caller.tenant, work->caller.tenant_size),
                                 .has_key = x->head.has[HF_FIELD_IDEMPOTENCY_KEY],
                                 .key_field = key,
                                 .query = x->head.query,
                                 .body = x->body };
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
            hf_work_fail(
                work, (enum hf_action)0, room ? HF_INVALID_REQUEST : HF_NO_MEMORY,
                room ? "The path has a broken %-escape. Write each byte as % and two hexadecimal digits."
                     : NULL);
            return false;
        }
        in->params[i] = hf_mem(room, size);
    }
    return true;
}

/* One request of the library. True if the engine has it now. */
static bool begin_request(struct hf_work *work)
{
    const struct hf_call *call = work->match.call;
    if (!input_make(work))
        return false;
    enum hf_status st = hf_api_decode(call, &work->input, &work->x->arena, &work->request, &work->fault);
    if (st != HF_OK) {
        hf_work_fail(work, call->action, st, st == HF_INVALID_REQUEST ? work->fault.detail : NULL);
        return false;
    }
    if (HF_BUG(server_duration_cut) && work->request.action == HF_PLACE_HOLD)
        work->request.place_hold.duration_ms -= work->request.place_hold.duration_ms % 1000;
    work->op = (struct hf_op){ .request = &work->request,
                               .result = &work->result,
                               .done = op_done,
                               .arg = work,
                               .lane = work->x->conn };
    hf_server_gather(&work->op);
    return true;
}

static void not_found(struct hf_work *work)
{
    if (work->match.allow[0] == 0) {
        hf_work_fail(work, (enum hf_action)0, HF_NOT_KNOWN,
                     "There is no call with this path. GET /v1/openapi.json describes them all.");
        return;
    }
    hf_work_refuse(
        work, 405, "method-not-allowed", "Not with this method",
        "This path is there, but not with this method. The field Allow names those that it takes.");
}

/* Does the call need the store? */
static bool needs_store(enum hf_call_kind kind)
{
    return kind <= HF_CALL_EXPORT;
}

/* May its answer be so large that a client that reads none of many would be dear? A claim carries a response of up to
 * HF_RESPONSE_MAX. */
static bool may_be_large(const struct hf_call *call)
{
    switch (call->kind) {
    case HF_CALL_DO:
        return (call->action >= HF_BEGIN && call->action <= HF_HEARTBEAT) || call->action == HF_GET_CLAIM ||
               call->action == HF_GET_TOKEN;
    case HF_CALL_BATCH:
    case HF_CALL_LIST:
    case HF_CALL_AUDIT:
    case HF_CALL_TRACE:
    case HF_CALL_EXPORT: return true;
    default: return false;
    }
}

static void request(void *arg, struct hf_http_exchange *x)
{
    struct hf_server *s = arg;
    struct hf_work *work = work_of(x);
    const struct hf_call *call = work->match.call;
    x->alone = call && may_be_large(call);
    if (!call) {
        not_found(work);
    } else if (needs_store(call->kind) && !s->db) {
        hf_work_fail(
            work, (enum hf_action)0, HF_STORAGE_FAILURE,
            "The server is reading its journal and not ready yet. Try again in a moment with the same key.");
    } else {
        switch (call->kind) {
        case HF_CALL_DO:
            if (begin_request(work))
                return;
            break;
        case HF_CALL_BATCH:
            hf_batch_begin(work);
            if (work->batch)
                return;
            break;
        case HF_CALL_LIST:
        case HF_CALL_AUDIT:
        case HF_CALL_TRACE:
        case HF_CALL_EXPORT:
            if (!input_make(work))
                break;
            hf_slow_add(work);
            return;
        default: break;
        }
    }
    hf_http_done(x);
}

/* ---- Rounds ---- */

/* Submit what the round has gathered. With one I/O thread it also commits here: nobody else would have anything to do
 * meanwhile, and a hand-over to another thread costs more than it hides. A database is waited for by threads of the library. */
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

static void release(void *arg, struct hf_http_exchange *x)
{
    struct hf_work *work = work_of(x);
    (void)arg;
    hf_result_clear(&work->result);
    hf_batch_free(work);
    hf_buffer_free(&work->text);
    if (work->server &&
        work->file >= 0) /* an export whose caller has left; without a server, nothing was asked yet */
        close(work->file);
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
                                         .release = release };
}

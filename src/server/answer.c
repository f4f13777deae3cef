/* Answers as JSON, with their header fields. */
#include "base/clock.h"
#include "base/text.h"

#include "server/inner.h"

static const char json[] = "application/json";
static const char problem_json[] = "application/problem+json";

/* The operator who gets the alert must be able to find the claim. */
static void unknown_log(struct hf_server *s, const struct hf_request *request,
                        const struct hf_result *result)
{
    const struct hf_claim *claim = &result->answer.claim;
    struct hf_log_field fields[] = {
        { .name = "key", .type = HF_LOG_NAME, .text = request->key },
        { .name = "tenant", .type = HF_LOG_NAME, .text = request->tenant },
        { .name = "fence", .type = HF_LOG_NUMBER, .number = (int64_t)claim->fence },
        { .name = "begun", .type = HF_LOG_TIME, .number = claim->begun_at },
        { .name = "unknown_since", .type = HF_LOG_TIME, .number = claim->lease_expires_at },
    };
    hf_log_line(s->log, HF_LOG_WARNING, result->now, "outcome-unknown", fields,
                sizeof fields / sizeof *fields);
}

/* A tenant is at its quota. Its requests may come fast, so at most one line in PAUSE_MS is
 * logged. */
static void quota_log(const struct hf_work *work, const struct hf_request *request,
                      const struct hf_result *result)
{
    enum { PAUSE_MS = 10000 };
    hf_time now = hf_clock_wall_ms(), told = work->tenant->quota_told_at;
    if ((told != 0 && now - told < PAUSE_MS && now >= told) ||
        !atomic_compare_exchange_strong(&work->tenant->quota_told_at, &told, now))
        return;
    struct hf_log_field fields[] = {
        { .name = "tenant", .type = HF_LOG_NAME, .text = request->tenant },
        { .name = "limit",
          .type = HF_LOG_TEXT,
          .text = hf_str(result->answer.limit == HF_LIMIT_TENANT_MEMORY ? "memory" : "records") },
        { .name = "action", .type = HF_LOG_TEXT, .text = hf_str(hf_action_name(request->action)) },
    };
    hf_log_line(work->server->log, HF_LOG_WARNING, result->now, "quota", fields,
                sizeof fields / sizeof *fields);
}

static bool is_quota(enum hf_limit limit)
{
    return limit == HF_LIMIT_TENANT_MEMORY || limit == HF_LIMIT_TENANT_RECORDS;
}

/* The store could not do it: log why, at most one line in PAUSE_MS for the whole server. */
static void failure_log(const struct hf_work *work, const struct hf_request *request,
                        const struct hf_result *result)
{
    enum { PAUSE_MS = 10000 };
    hf_time now = hf_clock_wall_ms(), told = work->server->failure_told_at;
    if ((told != 0 && now - told < PAUSE_MS && now >= told) ||
        !atomic_compare_exchange_strong(&work->server->failure_told_at, &told, now))
        return;
    struct hf_why cause = hf_why(request, result);
    struct hf_log_field fields[] = {
        { .name = "cause",
          .type = HF_LOG_TEXT,
          .text = hf_str(hf_why_name(result->answer.limit, result->answer.cause.fault)) },
        { .name = "action", .type = HF_LOG_TEXT, .text = hf_str(hf_action_name(request->action)) },
        { .name = "text", .type = HF_LOG_TEXT, .text = hf_str(cause.text) },
    };
    hf_log_line(work->server->log, HF_LOG_WARNING, now, "storage-failure", fields,
                sizeof fields / sizeof *fields);
}

void hf_server_noticed(const struct hf_work *work, const struct hf_request *request,
                       const struct hf_result *result)
{
    struct hf_server *s = work->server;
    enum hf_status status = result->answer.status;
    if (status != HF_OK && (unsigned)status < HF_STATUS_SLOTS)
        s->refusals[status]++;
    if (status == HF_OUTCOME_UNKNOWN && result->answer.kind == HF_RECORD_CLAIM &&
        hf_tenant_may_log(work->tenant, hf_clock_monotonic_ns() / 1000))
        unknown_log(s, request, result);
    if (status == HF_STORAGE_FAILURE && is_quota(result->answer.limit))
        quota_log(work, request, result);
    else if (status == HF_STORAGE_FAILURE)
        failure_log(work, request, result);
    if (!result->replayed || !s->options.log_duplicates)
        return;
    struct hf_log_field fields[] = {
        { .name = "key",
          .type = HF_LOG_NAME,
          .text = request->key.size ? request->key : request->client },
        { .name = "tenant", .type = HF_LOG_NAME, .text = request->tenant },
        { .name = "action", .type = HF_LOG_TEXT, .text = hf_str(hf_action_name(request->action)) },
        { .name = "first_seen", .type = HF_LOG_TIME, .number = result->token.recorded_at },
        { .name = "status",
          .type = HF_LOG_NUMBER,
          .number = hf_api_answer_status(request->action, &result->answer) },
    };
    hf_log_line(s->log, HF_LOG_INFO, result->now, "duplicate", fields,
                sizeof fields / sizeof *fields);
}

/* When to retry, for answers that ask for a retry. */
static void add_retry_after(struct hf_http_reply *reply, unsigned http_status, const char *code)
{
    if (http_status == 503 || strcmp(code, "in-progress") == 0)
        hf_buffer_add_text(reply->fields, "Retry-After: 1\r\n");
}

static void render_problem(const struct hf_refusal *problem, struct hf_http_reply *reply)
{
    struct hf_json j = { .out = reply->body };
    hf_api_problem(&j, problem);
    reply->status = problem->http_status;
    reply->content_type = problem_json;
    add_retry_after(reply, problem->http_status, problem->code);
}

void hf_server_answer(struct hf_json *j, const struct hf_request *request,
                      const struct hf_result *result)
{
    struct hf_why cause = hf_why(request, result);
    if (cause.text[0])
        hf_api_refusal(j, request->action, &result->answer, hf_str(cause.text));
    else
        hf_api_answer(j, request->action, &result->answer);
}

/* When the key of the answer is forgotten; 0: it is not remembered, or not by time: the number of a
 * client, or a claim that is not settled. */
static hf_time remembered_until(const struct hf_work *work)
{
    const struct hf_answer *answer = &work->result.answer;
    if (work->match.call->key)
        return work->request.client.size > 0 ? 0 : work->result.token.expires_at;
    bool settled = answer->status == HF_OK && answer->kind == HF_RECORD_CLAIM;
    return settled ? answer->claim.expires_at : 0;
}

void hf_render_answer(struct hf_work *work, struct hf_http_reply *reply)
{
    const struct hf_result *result = &work->result;
    enum hf_action action = work->request.action;
    struct hf_json j = { .out = reply->body };
    hf_server_noticed(work, &work->request, result);
    if (action == HF_GET_TOKEN && work->status == HF_OK) {
        hf_api_token(&j, &result->token, &result->answer);
        reply->status = 200;
        reply->content_type = json;
        return;
    }
    enum hf_status status = result->answer.status;
    reply->status = hf_api_answer_status(action, &result->answer);
    reply->content_type = status == HF_OK ? json : problem_json;
    hf_server_answer(&j, &work->request, result);
    if (status != HF_OK)
        add_retry_after(reply, reply->status, hf_status_code(status));
    if (result->replayed || (action == HF_BEGIN && reply->status == 200))
        hf_buffer_add_text(reply->fields, "Idempotent-Replayed: true\r\n");
    hf_time expires_at = remembered_until(work);
    if (expires_at != 0) {
        char when[HF_TIME_TEXT];
        hf_time_format(expires_at, when);
        hf_buffer_add_text(reply->fields, "Idempotency-Expires: ");
        hf_buffer_add(reply->fields, when, HF_TIME_TEXT - 1);
        hf_buffer_add(reply->fields, "\r\n", 2);
    }
}

/* Ready: the store is open and accepts new keys. */
void hf_render_ready(struct hf_work *work, struct hf_http_reply *reply)
{
    struct hf_db *db = work->server->db;
    const char *why = db ? NULL : "recovering";
    if (db) {
        struct hf_stats stats;
        hf_stats(db, &stats);
        why = hf_server_unready(&stats);
    }
    reply->status = why ? 503 : 200;
    reply->content_type = json;
    hf_buffer_printf(reply->body, "{\"ready\":%s%s%s%s}", why ? "false" : "true",
                     why ? ",\"why\":\"" : "", why ? why : "", why ? "\"" : "");
    if (why)
        hf_buffer_add_text(reply->fields, "Retry-After: 1\r\n");
}

/* A body that a thread of slow.c has made. */
void hf_render_made(struct hf_work *work, struct hf_http_reply *reply)
{
    reply->status = 200;
    reply->content_type = work->content_type;
    if (work->file >= 0) {
        reply->file = work->file;
        reply->file_size = work->file_size;
        reply->file_count = &work->tenant->exports;
        work->file = -1;
    }
    if (work->verdict) {
        hf_buffer_add_text(reply->fields, "Holdfast-Verdict: ");
        hf_buffer_add_text(reply->fields, work->verdict);
        hf_buffer_add(reply->fields, "\r\n", 2);
    }
    hf_buffer_add(reply->body, work->text.data, work->text.size);
}

void hf_render_page(struct hf_work *work, struct hf_http_reply *reply)
{
    hf_server_page(work->server, work->figures, reply->body);
    reply->status = 200;
    reply->content_type = "text/html; charset=utf-8";
    hf_buffer_add_text(
        reply->fields,
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors "
        "'none'; base-uri 'none'; form-action 'none'\r\nX-Content-Type-Options: nosniff\r\n"
        "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n");
}

static void add_allow(const struct hf_work *work, struct hf_http_reply *reply)
{
    hf_buffer_add_text(reply->fields, "Allow: ");
    hf_buffer_add_text(reply->fields, work->match.allow);
    hf_buffer_add_text(reply->fields, "\r\n");
}

void hf_server_render(void *server, struct hf_http_exchange *x, struct hf_http_reply *reply)
{
    struct hf_work *work = x->own;
    (void)server;
    if (!work->problem.code) {
        reply->status = 200;
        reply->content_type = json;
        hf_handler_of(work->match.call)->render(work, reply);
        return;
    }
    render_problem(&work->problem, reply);
    if (work->problem.http_status == 429)
        hf_buffer_printf(reply->fields, "Retry-After: %u\r\n", work->retry_after);
    if (work->problem.http_status == 405)
        add_allow(work, reply);
}

/* Titles for refusals by the HTTP server itself. */
static const char *title_of(unsigned status)
{
    switch (status) {
    case 401: return "Authentication required";
    case 404: return "Not known";
    case 405: return "Method not allowed";
    case 403: return "Forbidden";
    case 408: return "Request timeout";
    case 413: return "Too large";
    case 415: return "Encoding not supported";
    case 417: return "Expectation not supported";
    case 431: return "Request head too large";
    case 501: return "Transfer coding not supported";
    case 503: return "Too busy";
    case 505: return "HTTP version not supported";
    default: return "Invalid request";
    }
}

void hf_server_render_refusal(void *server, struct hf_http_exchange *x, struct hf_http_reply *reply)
{
    struct hf_refusal problem = { .code = x->refusal.code,
                                  .title = title_of(x->refusal.status),
                                  .detail = hf_str(x->refusal.detail),
                                  .http_status = x->refusal.status,
                                  .retry = hf_retry_of(x->refusal.status) };
    (void)server;
    render_problem(&problem, reply);
    if (x->refusal.status == 401)
        hf_buffer_add_text(reply->fields, "WWW-Authenticate: Bearer\r\n");
    if (x->refusal.status == 405)
        add_allow(x->own, reply);
}

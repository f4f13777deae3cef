#include "server/handler.h"

#include "server/inner.h"

#define JSON_MEDIA "application/json"

static void bulk_render(struct hf_work *work, struct hf_http_reply *reply)
{
    hf_bulk_render(work, reply->body);
    reply->content_type = "application/x-ndjson";
}

static void openapi_render(struct hf_work *work, struct hf_http_reply *reply)
{
    (void)work;
    hf_server_openapi(reply->body);
}

static void metrics_render(struct hf_work *work, struct hf_http_reply *reply)
{
    hf_server_metrics(work->server, &work->caller, reply->body);
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
}

static void health_render(struct hf_work *work, struct hf_http_reply *reply)
{
    static const char healthy[] = "{\"ok\":true}";
    (void)work;
    reply->static_body = hf_mem(healthy, sizeof healthy - 1);
}

#define SLOW(in, how)                                                              \
    .begin = hf_slow_begin, .make = (how), .slow = (in), .render = hf_render_made, \
    .needs_store = true, .is_large = true

const struct hf_handler hf_handlers[HF_CALL_KINDS] = {
    [HF_CALL_DO] = { .begin = hf_request_begin,
                     .render = hf_render_answer,
                     .needs_store = true,
                     .of_tenant = true,
                     .media = { JSON_MEDIA } },
    [HF_CALL_LIST] = { SLOW(HF_SLOW_PAGES, hf_slow_page), .of_tenant = true,
                       .media = { JSON_MEDIA } },
    [HF_CALL_BULK] = { .begin = hf_bulk_begin,
                       .render = bulk_render,
                       .needs_store = true,
                       .is_large = true,
                       .of_tenant = true,
                       .charges = true,
                       .media = { "application/x-ndjson" } },
    /* Audits and traces are text for people if Accept names text/plain first. */
    [HF_CALL_AUDIT] = { SLOW(HF_SLOW_FILES, hf_slow_audit), .media = { JSON_MEDIA, "text/plain" },
                        .headers = { "Holdfast-Verdict" } },
    [HF_CALL_HEAD] = { SLOW(HF_SLOW_PAGES, hf_slow_head), .of_store = true,
                       .media = { JSON_MEDIA } },
    [HF_CALL_TRACE] = { SLOW(HF_SLOW_FILES, hf_slow_trace), .media = { JSON_MEDIA, "text/plain" } },
    [HF_CALL_EXPORT] = { SLOW(HF_SLOW_FILES, hf_slow_export),
                         .media = { "application/x-ndjson", "application/vnd.sqlite3" },
                         .headers = { "Holdfast-Verdict" } },
    [HF_CALL_OPENAPI] = { .render = openapi_render, .media = { JSON_MEDIA } },
    [HF_CALL_METRICS] = { .render = metrics_render,
                          .of_operators = true,
                          .media = { "text/plain" } },
    [HF_CALL_HEALTH] = { .render = health_render, .at_any_host = true, .media = { JSON_MEDIA } },
    [HF_CALL_READY] = { .render = hf_render_ready, .at_any_host = true, .media = { JSON_MEDIA } },
    [HF_CALL_PAGE] = { .render = hf_render_page,
                       .media = { "text/html" },
                       .headers = { "Content-Security-Policy", "X-Content-Type-Options",
                                    "Referrer-Policy", "Cache-Control" } },
};

/* Bulk requests: many operations in one body. Each is decided by itself; they usually share a
 * commit. */
#include "server/inner.h"

#include "core/action.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines in progress at one time, over all connections: about 80 MiB. */
enum { LINES_NOW_MAX = 8 * HF_BULK_LINES_MAX };
/* Bytes of the answers of one bulk request: the maximum of all together, and the least that each
 * line may use (more than a hold needs). */
enum { ANSWERS_MAX = 32 << 20, ANSWER_LEAST = 4096 };

struct line {
    const struct hf_call *call; /* NULL: the line could not be read, and `fault` says why */
    struct hf_request request;
    struct hf_result result;
    struct hf_op op;
    enum hf_status status;
    char *fault; /* in the arena */
};

struct hf_bulk {
    struct hf_work *work;
    size_t count;
    _Atomic size_t left; /* not yet answered */
    struct line lines[];
};

static size_t lines_of(struct hf_bytes body)
{
    size_t count = 0;
    if (body.size == 0) /* body.data may be NULL */
        return 0;
    const char *at = body.data, *end = at + body.size;
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        count++;
        at = feed ? feed + 1 : end;
    }
    return count;
}

/* One line is answered. The last one ends the request and adds up the sizes of all answers. */
static void one_less(struct hf_bulk *bulk)
{
    if (atomic_fetch_sub(&bulk->left, 1) != 1)
        return;
    for (size_t i = 0; i < bulk->count; i++)
        bulk->work->x->answer_size += hf_server_answer_size(&bulk->lines[i].result);
    hf_http_done(bulk->work->x);
}

static void line_done(struct hf_op *op, enum hf_status status)
{
    struct hf_bulk *bulk = op->arg;
    struct line *line = (struct line *)((char *)op - offsetof(struct line, op));
    line->status = status;
    one_less(bulk);
}

static void line_read(struct hf_bulk *bulk, struct line *line, struct hf_bytes text)
{
    struct hf_work *work = bulk->work;
    struct hf_bytes tenant = hf_mem(work->caller.tenant, work->caller.tenant_size);
    struct hf_api_fault fault = { .detail = "" };
    line->status =
        hf_api_decode_line(text, tenant, &work->x->arena, &line->request, &line->call, &fault);
    if (line->status == HF_OK) {
        /* All answers of a bulk request are in memory at the same time. */
        size_t share = ANSWERS_MAX / bulk->count;
        line->op = (struct hf_op){ .request = &line->request,
                                   .result = &line->result,
                                   .done = line_done,
                                   .arg = bulk,
                                   .order_key = work->x->conn,
                                   .answer_max = share < ANSWER_LEAST ? ANSWER_LEAST : share };
        size_t most = hf_action_of(line->request.action)->answer_max;
        work->x->answer_max += most < line->op.answer_max ? most : line->op.answer_max;
        return;
    }
    line->call = NULL;
    size_t size = strlen(fault.detail) + 1;
    line->fault = fault.detail[0] ? hf_arena_take(&work->x->arena, size) : NULL;
    if (line->fault)
        memcpy(line->fault, fault.detail, size);
}

/* Decode all lines, then submit the valid ones: nothing begins before all lines are decoded. */
static void lines_begin(struct hf_bulk *bulk, struct hf_bytes body)
{
    const char *at = body.data, *end = at + body.size;
    size_t good = 0;
    for (size_t i = 0; i < bulk->count; i++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const char *stop = feed ? feed : end;
        line_read(bulk, &bulk->lines[i], hf_mem(at, (size_t)(stop - at)));
        good += bulk->lines[i].call != NULL;
        at = stop + 1;
    }
    bulk->work->x->took = bulk->work->x->arena.held;
    /* One more than there are, so that the request does not end before all lines are submitted. */
    bulk->left = good + 1;
    for (size_t i = 0; i < bulk->count; i++)
        if (bulk->lines[i].call)
            hf_server_gather(&bulk->lines[i].op);
    one_less(bulk);
}

/* More lines than the tenant's rate allows in one request? True after refusing. */
static bool too_many_for_rate(struct hf_work *work, size_t count)
{
    const struct hf_tenants *tenants = &work->server->tenants;
    uint64_t most = work->tenant == &tenants->nobody ? 0 : hf_tenant_batch_max(tenants);
    char text[200];
    if (most == 0 || count <= most)
        return false;
    snprintf(text, sizeof text,
             "Your tenant may make %u requests a second, so a bulk request of it has at most %llu "
             "lines. Nothing was done. Send fewer lines in each request.",
             tenants->rate, (unsigned long long)most);
    hf_work_refuse(work, 413, "batch-too-large", "Too many operations", text);
    return true;
}

static void lines_give(struct hf_work *work, size_t count)
{
    work->server->batch_lines_now -= (int64_t)count;
    work->tenant->batch_lines -= (int64_t)count;
}

/* Reserve `count` lines. False if fewer are left: of the server's, or of the tenant's. Adds before
 * it checks, because other threads reserve lines at the same time. */
static bool lines_take(struct hf_work *work, size_t count)
{
    int64_t more = (int64_t)count, max = LINES_NOW_MAX;
    /* Half is kept for other tenants. */
    int64_t own_max = work->server->options.auth_file ? max / 2 : max;
    int64_t all = atomic_fetch_add(&work->server->batch_lines_now, more) + more;
    int64_t own = atomic_fetch_add(&work->tenant->batch_lines, more) + more;
    if (all <= max && own <= own_max)
        return true;
    lines_give(work, count);
    return false;
}

/* May `count` lines begin now? If so, they are reserved. False after refusing. */
static bool may_begin(struct hf_work *work, size_t count)
{
    if (count == 0) {
        hf_work_fail(
            work, (enum hf_action)0, HF_INVALID_REQUEST,
            "The bulk request is empty. Send one JSON object per line, each with an \"op\".");
        return false;
    }
    if (count > HF_BULK_LINES_MAX) {
        hf_work_refuse(work, 413, "batch-too-large", "Too many operations",
                       "A bulk request has at most " HF_BULK_LINES_TEXT
                       " lines. Nothing was done. Send fewer lines in each request.");
        return false;
    }
    if (too_many_for_rate(work, count))
        return false;
    if (!lines_take(work, count)) {
        hf_work_refuse(
            work, 503, "too-busy", "Too busy",
            "Too many bulk requests are in progress. Nothing was done. Try again in a moment.");
        return false;
    }
    if (!hf_server_too_fast(work, count))
        return true;
    lines_give(work, count);
    return false;
}

bool hf_bulk_begin(struct hf_work *work)
{
    struct hf_server *s = work->server;
    struct hf_bytes body = work->x->body;
    size_t count = lines_of(body);
    if (!may_begin(work, count))
        return false;
    struct hf_bulk *bulk = malloc(sizeof *bulk + count * sizeof(struct line));
    if (!bulk) {
        lines_give(work, count);
        hf_work_fail(work, (enum hf_action)0, HF_NO_MEMORY, NULL);
        return false;
    }
    bulk->work = work;
    bulk->count = count;
    for (size_t i = 0; i < count; i++) {
        bulk->lines[i].result.heap = NULL;
        bulk->lines[i].fault = NULL;
        hf_result_clear(&bulk->lines[i].result);
    }
    work->bulk = bulk;
    s->batches++;
    s->batch_lines += count;
    lines_begin(bulk, body);
    return true;
}

static void line_render(const struct hf_work *work, struct line *line, struct hf_buffer *body)
{
    struct hf_server *s = work->server;
    struct hf_json j = { .out = body };
    bool replayed = line->call && line->result.replayed;
    enum hf_action action = line->request.action;
    hf_json_object(&j);
    hf_json_name(&j, "status");
    if (line->call && line->status == HF_INDETERMINATE) {
        struct hf_refusal problem = hf_refusal_of(action, HF_INDETERMINATE);
        problem.detail = hf_str("The answer is too large for a bulk request, or the store failed. "
                                "The operation may have been done. Send it again as a single "
                                "request, with the same key, to get its answer.");
        s->refusals[HF_INDETERMINATE]++;
        hf_json_uint(&j, problem.http_status);
        hf_json_name(&j, "replayed");
        hf_json_bool(&j, false);
        hf_json_name(&j, "body");
        hf_api_problem(&j, &problem);
    } else if (line->call) {
        unsigned status = hf_api_answer_status(action, &line->result.answer);
        hf_server_noticed(work, &line->request, &line->result);
        hf_json_uint(&j, status);
        hf_json_name(&j, "replayed");
        hf_json_bool(&j, replayed || (action == HF_BEGIN && status == 200));
        hf_json_name(&j, "body");
        hf_server_answer(&j, &line->request, &line->result);
    } else {
        struct hf_refusal problem = hf_refusal_of((enum hf_action)0, line->status);
        if (line->fault)
            problem.detail = hf_str(line->fault);
        s->refusals[line->status]++;
        hf_json_uint(&j, problem.http_status);
        hf_json_name(&j, "replayed");
        hf_json_bool(&j, false);
        hf_json_name(&j, "body");
        hf_api_problem(&j, &problem);
    }
    hf_json_object_end(&j);
    hf_buffer_add_char(body, '\n');
}

void hf_bulk_render(struct hf_work *work, struct hf_buffer *body)
{
    for (size_t i = 0; i < work->bulk->count; i++) {
        struct line *line = &work->bulk->lines[i];
        /* A byte may take six bytes in JSON, so the body may be far larger than the answers in
         * memory. */
        if (body->size > ANSWERS_MAX && line->call &&
            hf_server_answer_size(&line->result) > ANSWER_LEAST)
            line->status = HF_INDETERMINATE;
        line_render(work, line, body);
    }
}

void hf_bulk_free(struct hf_work *work)
{
    struct hf_bulk *bulk = work->bulk;
    if (!bulk)
        return;
    for (size_t i = 0; i < bulk->count; i++)
        hf_result_clear(&bulk->lines[i].result);
    lines_give(work, bulk->count);
    free(bulk);
    work->bulk = NULL;
}

/* Slow calls, on threads of their own: pages of lists wait for the disk, audits read the whole
 * journal. There are two queues, so that a page never waits for an audit. In each queue the tenants
 * take turns, and each has at most one call in progress, so that a tenant with many calls does not
 * delay the others. */
#include "audit/audit.h"
#include "audit/export.h"
#include "audit/trace.h"
#include "base/clock.h"
#include "refusal/why.h"
#include "server/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Threads of each queue, and how many calls may wait in it: for each tenant, and without an auth
 * file. An audit may need much memory, so few run at one time. */
static const unsigned queue_workers[HF_SLOW_QUEUES] = { 2, HF_SLOW_WORKERS };
static const unsigned queue_max[HF_SLOW_QUEUES] = { 256, 8 },
                      queue_max_alone[HF_SLOW_QUEUES] = { 1024, 16 };
/* Default number of rows of a page, the longest time to read one, because other calls wait, and the
 * size with which it ends. */
enum { PAGE_ROWS = 100, PAGE_MS = 250, PAGE_BYTES = 8 << 20 };
/* Exports of one tenant in progress. Each needs a file descriptor and disk space until it is
 * sent. */
enum { EXPORTS_MAX = 2 };

/* ---- Pages ---- */

/* Does the guard store hashes? Then its entries are shown as hashes. */
static enum hf_status guard_hashes(struct hf_db *db, const struct hf_query *query, bool *hashes)
{
    struct hf_request request = { .action = HF_GET_GUARD,
                                  .tenant = query->tenant,
                                  .get = { query->name } };
    struct hf_result result = HF_RESULT_INIT;
    enum hf_status st = hf_do(db, &request, &result);
    *hashes = false;
    for (uint32_t i = 0; st == HF_OK && i < result.answer.guard.match_count; i++)
        *hashes |= result.answer.guard.match[i] == HF_MATCH_HASH;
    hf_result_clear(&result);
    return st;
}

/* Read until the page is full, the list has ended, the time is up or the client has disconnected.
 * The library reads a limited number of records at a time, including records of other tenants and
 * records that do not match, and a client could take an empty page for the end. */
static enum hf_status page_fill(const struct hf_work *work, struct hf_query *query,
                                struct hf_json *j, struct hf_why *cause)
{
    struct hf_db *db = work->server->db;
    struct hf_api_shows shows = { .tenants = query->all_tenants };
    enum hf_status st =
        query->kind == HF_LIST_ENTRIES ? guard_hashes(db, query, &shows.hashed) : HF_OK;
    if (st != HF_OK)
        return st;
    int64_t until = hf_clock_monotonic_ms() + PAGE_MS;
    query->limit = query->limit ? query->limit : PAGE_ROWS;
    hf_api_page_begin(j, query->kind);
    for (;;) {
        struct hf_page page;
        st = hf_list(db, query, &page);
        if (st != HF_OK) {
            *cause = hf_why_page(st, &page);
            return st;
        }
        hf_api_page_rows(j, query->kind, &page, shows);
        query->cursor = page.next_cursor;
        query->limit -= (uint32_t)page.count;
        hf_page_clear(&page);
        if (query->cursor == 0 || query->limit == 0 || hf_clock_monotonic_ms() >= until ||
            work->text.size >= PAGE_BYTES || work->x->gone)
            break;
    }
    hf_api_page_end(j, query->cursor);
    return HF_OK;
}

void hf_slow_page(struct hf_work *work)
{
    struct hf_query query;
    struct hf_json j = { .out = &work->text };
    struct hf_why cause = { "" };
    enum hf_status st =
        hf_api_decode_list(work->match.call, &work->input, &work->x->arena, &query, &work->fault);
    if (st != HF_OK) {
        hf_work_fail(work, (enum hf_action)0, st,
                     st == HF_INVALID_REQUEST ? work->fault.detail : NULL);
        return;
    }
    st = page_fill(work, &query, &j, &cause);
    if (st != HF_OK) {
        hf_work_fail(work, query.kind == HF_LIST_ENTRIES ? HF_GET_GUARD : (enum hf_action)0, st,
                     cause.text[0] ? cause.text : NULL);
        return;
    }
    work->content_type = "application/json";
}

/* ---- Files ---- */

/* The directory of the journal, or with a database a directory for exports; NULL after refusing: a
 * store in memory has none. postgres: out, the database with the records, or NULL. */
static const char *records_of(struct hf_work *work, const char **postgres)
{
    const struct hf_server_options *o = &work->server->options;
    *postgres = o->store.postgres;
    if (*postgres)
        return work->server->temporary;
    if (strcmp(o->data, ":memory:") != 0)
        return o->data;
    hf_work_fail(work, (enum hf_action)0, HF_STORAGE_FAILURE,
                 "The server keeps its store in memory, so there are no records on disk. Start it "
                 "with --data DIR to have records.");
    return NULL;
}

/* With an auth file, a caller sees only its own tenant; an operator sees all. */
static bool sees_one_tenant(const struct hf_work *work)
{
    return work->server->options.auth_file != NULL && !work->caller.is_operator;
}

static struct hf_bytes tenant_of(const struct hf_work *work)
{
    return hf_mem(work->caller.tenant, work->caller.tenant_size);
}

/* Audits and traces are JSON, unless Accept begins with text/plain. */
static bool wants_text(const struct hf_work *work)
{
    static const char text[] = "text/plain";
    const size_t size = sizeof text - 1;
    struct hf_bytes accept = work->x->head.field[HF_FIELD_ACCEPT];
    const char *p = accept.data;
    return accept.size >= size && memcmp(p, text, size) == 0 &&
           (accept.size == size || p[size] == ',' || p[size] == ';' || p[size] == ' ');
}

/* Takes ownership of `text`. */
static void text_take(struct hf_work *work, char *text, size_t size)
{
    hf_buffer_add(&work->text, text, size);
    free(text);
    work->content_type = wants_text(work) ? "text/plain; charset=utf-8" : "application/json";
}

/* The records could not be read. The reason names files, so it is only for the operator: it goes to
 * the log. */
static void records_fail(struct hf_work *work, enum hf_status status, const struct hf_error *why)
{
    struct hf_log_field field = { .name = "text", .type = HF_LOG_TEXT, .text = hf_str(why->text) };
    if (why->text[0])
        hf_log_line(work->server->log, HF_LOG_ERROR, hf_clock_wall_ms(), "records-unreadable",
                    &field, 1);
    hf_work_fail(work, (enum hf_action)0, status,
                 why->text[0] ? "The records could not be read, or the answer not be written. The "
                                "server's log has the reason."
                              : NULL);
}

/* The chain is over the batches of all tenants, so its heads are not for one tenant. False after
 * refusing. */
static bool head_expected(struct hf_work *work, struct hf_audit_options *options)
{
    options->expect_head = work->wishes.head;
    if (!options->has_tenant)
        return true;
    hf_work_refuse(work, 403, "forbidden", "Not allowed",
                   "expect_head is for the audit of the whole store. Use the credential of an "
                   "operator, or leave it out.");
    return false;
}

void hf_slow_audit(struct hf_work *work)
{
    struct hf_audit_options options = { .has_tenant = sees_one_tenant(work),
                                        .tenant = tenant_of(work),
                                        .elsewhere = true };
    if (work->wishes.has_head && !head_expected(work, &options))
        return;
    const char *dir = records_of(work, &options.postgres);
    options.timeline = work->timeline;
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why = { .status = HF_OK };
    char *text = NULL;
    size_t size = 0;
    FILE *out = dir ? open_memstream(&text, &size) : NULL;
    if (!dir)
        return;
    enum hf_status st = out ? hf_audit_run(dir, &options, &report, &why) : HF_NO_MEMORY;
    bool printed = st == HF_OK && (wants_text(work) ? hf_audit_print_text(&report, out)
                                                    : hf_audit_print_json(&report, out));
    work->verdict = report.verdict == HF_AUDIT_OK        ? "ok"
                    : report.verdict == HF_AUDIT_DAMAGED ? "damaged"
                                                         : "violations";
    hf_audit_report_free(&report);
    if (out)
        fclose(out);
    if (printed) {
        text_take(work, text, size);
        return;
    }
    free(text);
    records_fail(work, st == HF_OK ? HF_NO_MEMORY : st, &why);
}

void hf_slow_trace(struct hf_work *work)
{
    struct hf_stats stats;
    hf_stats(work->server->db, &stats);
    struct hf_audit_trace_options options = { .has_tenant = sees_one_tenant(work),
                                              .tenant = tenant_of(work),
                                              .sequence = work->wishes.sequence,
                                              .json = !wants_text(work),
                                              .now = stats.now };
    if (options.sequence != 0)
        options.subject = HF_AUDIT_SUBJECT_KEY;
    const char *dir = records_of(work, &options.postgres);
    options.timeline = work->timeline;
    struct hf_error why = { .status = HF_OK };
    char *text = NULL;
    size_t size = 0;
    FILE *out = dir ? open_memstream(&text, &size) : NULL;
    if (!dir)
        return;
    int code = out ? hf_audit_trace(dir, work->input.params[0], &options, out, &why) : 3;
    if (out)
        fclose(out);
    if (code == 0) {
        text_take(work, text, size);
        return;
    }
    free(text);
    if (code == 1)
        hf_work_fail(work, (enum hf_action)0, HF_NOT_KNOWN, why.text);
    else
        records_fail(work, out ? why.status : HF_NO_MEMORY, &why);
}

void hf_slow_head(struct hf_work *work)
{
    struct hf_json j = { .out = &work->text };
    struct hf_head head;
    enum hf_status st = hf_head(work->server->db, &head);
    if (st != HF_OK) {
        hf_work_fail(work, (enum hf_action)0, st,
                     st == HF_NOT_KNOWN ? "No batch was written yet." : NULL);
        return;
    }
    hf_json_object(&j);
    hf_json_name(&j, "position");
    hf_json_uint(&j, head.position);
    hf_json_name(&j, "hash");
    hf_json_hex(&j, "", hf_mem(head.hash, sizeof head.hash));
    hf_json_name(&j, "at");
    hf_json_time(&j, head.at);
    hf_json_object_end(&j);
    work->content_type = "application/json";
}

static void export_open(struct hf_work *work, const char *path)
{
    struct stat st;
    work->file = open(path, O_RDONLY | O_CLOEXEC);
    if (work->file < 0 || fstat(work->file, &st) != 0) {
        hf_work_fail(work, (enum hf_action)0, HF_STORAGE_FAILURE,
                     "The export was written, but could not be read.");
        return;
    }
    work->file_size = (uint64_t)st.st_size;
}

/* May the tenant have one more export? False after refusing. */
static bool export_begin(struct hf_work *work)
{
    if (atomic_fetch_add(&work->tenant->exports, 1) < EXPORTS_MAX)
        return true;
    atomic_fetch_sub(&work->tenant->exports, 1);
    hf_work_refuse(work, 503, "too-busy", "Too busy",
                   "Your tenant already has two exports in progress. Read them to the end or close "
                   "their connections, then try again.");
    return false;
}

/* The export is made in the data directory, or in our temporary directory. Its name is removed as
 * soon as the file is open, so that no file is left over. */
static void export_make(struct hf_work *work)
{
    static const enum hf_audit_format formats[] = { HF_AUDIT_JSONL, HF_AUDIT_SQLITE };
    static const char *const types[] = { "application/x-ndjson", "application/vnd.sqlite3" };
    struct hf_audit_export_options options = { .format = formats[work->wishes.format],
                                               .has_tenant = sees_one_tenant(work),
                                               .tenant = tenant_of(work) };
    struct hf_error why = { .status = HF_OK };
    const char *dir = records_of(work, &options.postgres);
    options.timeline = work->timeline;
    char path[4096], half[4096];
    if (!dir)
        return;
    snprintf(path, sizeof path, "%s/export.%ld.%u", dir, (long)getpid(), work->worker);
    int n = snprintf(half, sizeof half, "%s/export.%ld.%u.tmp", dir, (long)getpid(), work->worker);
    if (n < 0 || (size_t)n >= sizeof half) {
        hf_work_fail(work, (enum hf_action)0, HF_STORAGE_FAILURE,
                     "The path of the store is too long for an export.");
        return;
    }
    unlink(path); /* left over if it could not be removed the last time */
    unlink(half);
    int code = hf_audit_export(dir, &options, path, &why);
    if (code == 3 || access(path, R_OK) != 0)
        records_fail(work, why.status == HF_OK ? HF_STORAGE_FAILURE : why.status, &why);
    else
        export_open(work, path);
    unlink(path);
    work->verdict = code == 1 ? "damaged" : "ok";
    work->content_type = types[work->wishes.format];
}

/* Make an export, if the tenant may have one more. It counts until the file is closed: by the HTTP
 * server, or when the work is released. */
void hf_slow_export(struct hf_work *work)
{
    if (!export_begin(work))
        return;
    export_make(work);
    if (work->file < 0)
        atomic_fetch_sub(&work->tenant->exports, 1);
}

/* ---- The queues ---- */

/* Decode the query of a call that is no list. False after refusing. */
static bool query_read(struct hf_work *work)
{
    enum hf_status st = hf_api_decode_other(work->match.call, &work->input, &work->x->arena,
                                            &work->wishes, &work->fault);
    if (st == HF_OK)
        return true;
    hf_work_fail(work, (enum hf_action)0, st, st == HF_INVALID_REQUEST ? work->fault.detail : NULL);
    return false;
}

static void make(struct hf_work *work)
{
    work->verdict = NULL;
    work->timeline = hf_timeline(work->server->db); /* before anything is read */
    const struct hf_handler *handler = hf_handler_of(work->match.call);
    bool files = handler->slow == HF_SLOW_FILES;
    if (files && !query_read(work))
        return;
    handler->make(work);
    /* The files may show entries that are not synced yet: wait until they are, before the answer is
     * sent. */
    if (files && hf_barrier_on(work->server->db, work->timeline) != HF_OK)
        hf_work_fail(work, (enum hf_action)0, HF_INDETERMINATE, NULL);
}

/* An answer that ran out of memory is not sent. */
static void make_whole(struct hf_work *work)
{
    make(work);
    if (work->text.failed)
        hf_work_fail(work, (enum hf_action)0, HF_NO_MEMORY, NULL);
}

/* Is the client still there, and is there time? Pages are fast, so a stopping server still makes
 * them. */
static bool of_use(const struct hf_work *work)
{
    return !work->x->gone &&
           (!work->server->stopping || hf_handler_of(work->match.call)->slow == HF_SLOW_PAGES);
}

/* The tenant has a waiting call and none in progress: add it to the end of the line. */
static void line_up(struct hf_slow_queue *queue, struct hf_turns *turns)
{
    turns->in_line = true;
    turns->next = NULL;
    *queue->end = turns;
    queue->end = &turns->next;
    pthread_cond_signal(&queue->work);
}

/* The next call. No other thread works for its tenant until turn_end. NULL: no call waits. */
static struct hf_work *turn_begin(struct hf_slow_queue *queue, struct hf_turns **whose)
{
    struct hf_turns *turns = queue->first;
    if (!turns)
        return NULL;
    queue->first = turns->next;
    if (!queue->first)
        queue->end = &queue->first;
    struct hf_work *work = turns->first;
    turns->first = work->next_slow;
    turns->in_line = false;
    turns->running = true;
    *whose = turns;
    return work;
}

static void turn_end(struct hf_slow_queue *queue, struct hf_turns *turns)
{
    /* before hf_http_done: a stop that waits for the request then finds the queue idle */
    queue->count--;
    turns->waiting--;
    turns->running = false;
    if (turns->first)
        line_up(queue, turns);
}

static void *queue_run(void *arg)
{
    struct hf_slow_worker *worker = arg;
    struct hf_slow_queue *queue = worker->queue;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        struct hf_turns *turns = NULL;
        struct hf_work *work = turn_begin(queue, &turns);
        if (!work && queue->stopping)
            break;
        if (!work) {
            pthread_cond_wait(&queue->work, &queue->lock);
            continue;
        }
        pthread_mutex_unlock(&queue->lock);
        work->worker = worker->number;
        if (of_use(work))
            make_whole(work);
        else
            hf_work_fail(work, (enum hf_action)0, HF_STORAGE_FAILURE,
                         "The server is stopping. The call was not begun. Try again when the "
                         "server is back.");
        work->x->answer_size = work->text.size;
        pthread_mutex_lock(&queue->lock);
        turn_end(queue, turns);
        pthread_mutex_unlock(&queue->lock);
        hf_http_done(work->x);
        pthread_mutex_lock(&queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

enum hf_status hf_slow_start(struct hf_server *s)
{
    for (size_t i = 0; i < HF_SLOW_QUEUES; i++) {
        struct hf_slow_queue *queue = &s->slow[i];
        /* A single tenant has one turn at a time. */
        unsigned wanted = s->options.auth_file ? queue_workers[i] : 1;
        queue->end = &queue->first;
        pthread_mutex_init(&queue->lock, NULL);
        pthread_cond_init(&queue->work, NULL);
        while (queue->worker_count < wanted) {
            struct hf_slow_worker *worker = &queue->workers[queue->worker_count];
            *worker = (struct hf_slow_worker){ .queue = queue, .number = queue->worker_count };
            if (pthread_create(&worker->thread, NULL, queue_run, worker) != 0)
                return HF_STORAGE_FAILURE;
            queue->worker_count++;
        }
    }
    return HF_OK;
}

bool hf_slow_stop(struct hf_server *s)
{
    bool idle = true;
    for (size_t i = 0; i < HF_SLOW_QUEUES; i++) {
        struct hf_slow_queue *queue = &s->slow[i];
        if (queue->worker_count == 0)
            continue;
        pthread_mutex_lock(&queue->lock);
        queue->stopping = true;
        bool busy = queue->count > 0;
        pthread_cond_broadcast(&queue->work);
        pthread_mutex_unlock(&queue->lock);
        idle &= !busy;
        for (unsigned k = 0; !busy && k < queue->worker_count; k++)
            pthread_join(queue->workers[k].thread, NULL);
    }
    return idle;
}

void hf_slow_add(struct hf_work *work)
{
    enum hf_slow_kind which = hf_handler_of(work->match.call)->slow;
    struct hf_slow_queue *queue = &work->server->slow[which];
    struct hf_tenant *tenant = work->tenant;
    struct hf_turns *turns = &tenant->turns[which];
    pthread_mutex_lock(&queue->lock);
    bool room =
        turns->waiting < (work->server->options.auth_file ? queue_max : queue_max_alone)[which];
    if (room) {
        queue->count++;
        turns->waiting++;
        work->next_slow = NULL;
        if (!turns->first)
            turns->end = &turns->first;
        *turns->end = work;
        turns->end = &work->next_slow;
        if (!turns->running && !turns->in_line)
            line_up(queue, turns);
    }
    pthread_mutex_unlock(&queue->lock);
    if (room)
        return;
    hf_work_refuse(work, 503, "too-busy", "Too busy",
                   "Too many lists, audits, traces and exports are waiting. Nothing was changed. "
                   "Try again in a moment.");
    hf_http_done(work->x);
}

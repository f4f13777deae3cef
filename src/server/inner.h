/* inner.h: what the files of the server share; nobody else includes it.
 *
 *   serve.c    start, signals, stop                 handle.c   who may ask, what is asked, gathering for the engine
 *   answer.c   answers as JSON, with their fields   bulk.c     many operations in one body
 *   slow.c     what takes long, on threads of its own: lists, audit, trace, export
 *   handler.c  what happens for each call           tenant.c   what each tenant may have at one time
 *   metrics.c  figures for Prometheus               page.c     the start page     openapi.c  the description
 *   log.c      lines for operators                  sandbox.c  what the process gives up */
#ifndef HF_SERVER_INNER_H
#define HF_SERVER_INNER_H

#include "api/cause.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/problem.h"
#include "http/server.h"
#include "server/handler.h"
#include "server/log.h"
#include "server/server.h"
#include "server/tenant.h"

#include <pthread.h>

#define HF_BULK_LINES_MAX 8192
#define HF_STATUS_SLOTS 72 /* more than the highest hf_status */

struct hf_server;

/* The handler's part of an exchange. */
struct hf_work {
    struct hf_caller caller;
    struct hf_tenant *tenant; /* that the caller is of; set once it is let in */
    bool figures;             /* may the caller see those of the whole server? */
    unsigned retry_after;     /* of a refusal that says when to come again: seconds, else 0 */
    struct hf_call_match match;
    struct hf_http_exchange *x;
    struct hf_server *server;

    struct hf_api_input input;
    struct hf_request request;
    struct hf_result result;
    struct hf_op op;
    enum hf_status status; /* the engine's, once it is there */

    struct hf_api_problem problem; /* an answer of the server itself, if problem.code is set */
    struct hf_api_fault fault;     /* the words of it */

    struct hf_bulk *bulk;
    struct hf_buffer text;    /* a body that was made on another thread; owned */
    const char *content_type; /* of `text` or of the file */
    const char *verdict;      /* of an audit or an export, static: "ok", "violations", "damaged" */
    int file;                 /* -1, or owned: what was exported */
    uint64_t file_size;
    unsigned choice;   /* the format of an export */
    unsigned worker;   /* the number of the thread that makes it */
    uint32_t timeline; /* of the database, before anything was read */
    struct hf_work *next_slow;
};

#define HF_SLOW_WORKERS 4

/* One of the threads of a queue. */
struct hf_slow_worker {
    struct hf_slow_queue *queue;
    unsigned number;
    pthread_t thread;
};

/* What takes long, of one kind. Each tenant has one piece of work under way in it at most, and
 * those that wait take turns. */
struct hf_slow_queue {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct hf_slow_worker workers[HF_SLOW_WORKERS];
    unsigned worker_count; /* that were started */
    bool stopping;
    struct hf_turns *first, **end; /* the line: tenants that have work waiting and none under way */
    _Atomic size_t count;          /* waiting and under way, of all tenants */
};

struct hf_server {
    struct hf_server_options options;
    struct hf_http_server *http;
    struct hf_log *log;
    struct hf_tenants tenants;
    _Atomic bool stopping;
    _Atomic(struct hf_db *) db; /* NULL until the store is open */
    struct hf_slow_queue slow[HF_SLOW_QUEUES];
    pthread_mutex_t auth_lock;
    struct hf_auth *auth; /* NULL: everybody is the default tenant's admin */
    bool tls;
    char url[96];
    char temporary
        /* of a store in a database: a directory for exports on their way; "" if there is none */
        [256];
    bool
        /* the store was not opened, and it is not known whether that changed its configuration */
        unsure;
    char notes[2][512]; /* about the auth file and the certificate, for the log once there is one */
    hf_time started_at;
    _Atomic uint64_t refusals[HF_STATUS_SLOTS]; /* answers that were not HF_OK, by status */
    _Atomic uint64_t unauthorized, forbidden, too_many_requests, batches, batch_lines;
    _Atomic int64_t batch_lines_now;
    uint64_t tenant_memory_max; /* the limit in force; 0: none */
};

/* serve.c */
/* Why no new keys are taken although the store is open, or NULL. Static. */
const char *hf_server_unready(const struct hf_stats *stats);

/* handle.c */
void hf_server_handler(struct hf_server *server, struct hf_http_handler *handler);
/* As hf_handler.begin: one request of the library; what takes long. */
bool hf_request_begin(struct hf_work *work);
bool hf_slow_begin(struct hf_work *work);
/* Answer with the server's own words. detail: copied. */
void hf_work_refuse(struct hf_work *work, unsigned status, const char *code, const char *title,
                    const char *detail);
/* The same with the words that the status has. */
void hf_work_fail(struct hf_work *work, enum hf_action action, enum hf_status status,
                  const char *detail);
/* Does the tenant make more requests than it may, with `count` more? True after refusing. */
bool hf_server_too_fast(struct hf_work *work, uint64_t count);
/* How many of the bytes that hf_action_info.answer_max bounds the answer has. */
size_t hf_server_answer_size(const struct hf_result *result);
/* Hand an operation to the engine when the round is over. On an I/O thread. */
void hf_server_gather(struct hf_op *op);

/* answer.c */
void hf_server_render(void *server, struct hf_http_exchange *x, struct hf_http_reply *reply);
void hf_server_render_refusal(void *server, struct hf_http_exchange *x,
                              struct hf_http_reply *reply);
/* What handlers render: the engine's answer, a body that another thread has made, whether the
 * server is ready (the store is open and takes new keys), the start page. */
void hf_render_answer(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_made(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_ready(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_page(struct hf_work *work, struct hf_http_reply *reply);
/* The body of an answer: as hf_api_answer, but a refusal that nobody remembers says exactly what
 * was wrong. */
void hf_server_answer(struct hf_json *j, const struct hf_request *request,
                      const struct hf_result *result);
/* Count a refusal, log a duplicate or an outcome that is not known. */
void hf_server_noticed(const struct hf_work *work, const struct hf_request *request,
                       const struct hf_result *result);

/* bulk.c: what a client sends to /v1/batch */
bool hf_bulk_begin(struct hf_work *work); /* as hf_handler.begin */
void hf_bulk_render(struct hf_work *work, struct hf_buffer *body);
void hf_bulk_free(struct hf_work *work);

/* slow.c */
enum hf_status hf_slow_start(struct hf_server *server);
/* False: something is still being worked on, and its thread goes on. */
bool hf_slow_stop(struct hf_server *server);
/* Do it on a thread of its queue; it ends with hf_http_done. Too many waiting: refused at once. */
void hf_slow_add(struct hf_work *work);
/* As hf_handler.make: a page of a list, an audit, a trace, an export. */
void hf_slow_page(struct hf_work *work);
void hf_slow_audit(struct hf_work *work);
void hf_slow_trace(struct hf_work *work);
void hf_slow_export(struct hf_work *work);

/* metrics.c, page.c, openapi.c: the body, appended. caller: sees its own tenant alone, if there is
 * an auth file. */
void hf_server_metrics(struct hf_server *server, const struct hf_caller *caller,
                       struct hf_buffer *out);
void hf_server_page(struct hf_server *server, bool figures, struct hf_buffer *out);
void hf_server_openapi(struct hf_buffer *out);

#endif

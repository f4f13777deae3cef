/* inner.h: shared by the files of the server; no other folder includes it.
 *
 *   serve.c    start, signals, stop
 *   handle.c   authentication, decoding, gathering operations for the engine
 *   handler.c  how each kind of call is handled
 *   answer.c   answers as JSON, with their header fields
 *   bulk.c     bulk requests: many operations in one body
 *   slow.c     slow calls on their own threads: lists, audits, traces, exports
 *   tenant.c   limits for each tenant
 *   metrics.c  figures for Prometheus
 *   page.c     the start page
 *   openapi.c  the OpenAPI description
 *   log.c      lines for operators
 *   sandbox.c  what the process gives up */
#ifndef HF_SERVER_INNER_H
#define HF_SERVER_INNER_H

#include "api/decode.h"
#include "api/encode.h"
#include "api/problem.h"
#include "http/server.h"
#include "refusal/why.h"
#include "server/handler.h"
#include "server/log.h"
#include "server/server.h"
#include "server/tenant.h"

#include <pthread.h>

#define HF_BULK_LINES_MAX 8192
#define HF_BULK_LINES_TEXT HF_BULK_QUOTE(HF_BULK_LINES_MAX) /* for sentences */
#define HF_BULK_QUOTE(number) HF_BULK_QUOTED(number)
#define HF_BULK_QUOTED(number) #number
#define HF_STATUS_SLOTS 72 /* more than the highest hf_status */

struct hf_server;

/* The handler's part of an exchange. */
struct hf_work {
    struct hf_caller caller;
    struct hf_tenant *tenant; /* of the caller; set once the call is admitted */
    bool figures;             /* may the caller see the figures of the whole server? */
    unsigned retry_after;     /* seconds, of a refusal with Retry-After; else 0 */
    struct hf_call_match match;
    struct hf_http_exchange *x;
    struct hf_server *server;

    struct hf_api_input input;
    struct hf_request request;
    struct hf_result result;
    struct hf_op op;
    enum hf_status status; /* the engine's status, once it has answered */

    struct hf_refusal problem; /* a refusal by the server itself, if problem.code is set */
    struct hf_api_fault fault; /* the detail of `problem` */

    struct hf_bulk *bulk;
    struct hf_buffer text;    /* owned: a body that a thread of slow.c made */
    const char *content_type; /* of `text` or of the file */
    const char *verdict;      /* of an audit or an export, static: "ok", "violations", "damaged" */
    int file;                 /* -1, or owned: the export */
    uint64_t file_size;
    struct hf_api_wishes wishes; /* of an audit or an export */
    unsigned worker;             /* the number of the thread of slow.c */
    uint32_t timeline;           /* of the database, before anything is read */
    struct hf_work *next_slow;
};

#define HF_SLOW_WORKERS 4

/* A thread of a queue. */
struct hf_slow_worker {
    struct hf_slow_queue *queue;
    unsigned number;
    pthread_t thread;
};

/* A queue of slow calls. Each tenant has at most one call in progress in it; tenants with waiting
 * calls take turns. */
struct hf_slow_queue {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct hf_slow_worker workers[HF_SLOW_WORKERS];
    unsigned worker_count; /* threads that were started */
    bool stopping;
    struct hf_turns *first, **end; /* tenants with a waiting call and none in progress */
    _Atomic size_t count;          /* calls waiting and in progress, of all tenants */
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
    struct hf_auth *auth; /* NULL: every caller is the default tenant's admin */
    bool tls;
    char url[96];
    /* for a store in a database: a directory for the files of exports; else "" */
    char temporary[256];
    /* opening the store failed, and its configuration may have been changed */
    bool unsure;
    char notes[2][512]; /* about the auth file and the certificate, for the log once it is open */
    hf_time started_at;
    _Atomic uint64_t refusals[HF_STATUS_SLOTS]; /* answers that were not HF_OK, by status */
    _Atomic uint64_t unauthorized, forbidden, too_many_requests, batches, batch_lines;
    _Atomic int64_t batch_lines_now;
    uint64_t tenant_memory_max;      /* the limit that applies; 0: none */
    _Atomic hf_time failure_told_at; /* when the log last said why the store could not do a call */
};

/* serve.c */
/* Why the open store does not accept new keys, or NULL. Static. */
const char *hf_server_unready(const struct hf_stats *stats);

/* handle.c */
void hf_server_handler(struct hf_server *server, struct hf_http_handler *handler);
/* As hf_handler.begin: for one request of the library; for a slow call. */
bool hf_request_begin(struct hf_work *work);
bool hf_slow_begin(struct hf_work *work);
/* Refuse with these words. detail: copied. */
void hf_work_refuse(struct hf_work *work, unsigned status, const char *code, const char *title,
                    const char *detail);
/* Refuse with the code, title and HTTP status of `status`. detail: copied; NULL: the status's
 * own. */
void hf_work_fail(struct hf_work *work, enum hf_action action, enum hf_status status,
                  const char *detail);
/* Do `count` more requests exceed the tenant's rate? True after refusing. */
bool hf_server_too_fast(struct hf_work *work, uint64_t count);
/* The bytes of the answer that hf_action_info.answer_max limits. */
size_t hf_server_answer_size(const struct hf_result *result);
/* Submit the operation to the engine at the end of the round. On an I/O thread. */
void hf_server_gather(struct hf_op *op);

/* answer.c */
void hf_server_render(void *server, struct hf_http_exchange *x, struct hf_http_reply *reply);
void hf_server_render_refusal(void *server, struct hf_http_exchange *x,
                              struct hf_http_reply *reply);
/* As hf_handler.render: the engine's answer, a body that a thread of slow.c made, whether the
 * server is ready (the store is open and accepts new keys), the start page. */
void hf_render_answer(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_made(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_ready(struct hf_work *work, struct hf_http_reply *reply);
void hf_render_page(struct hf_work *work, struct hf_http_reply *reply);
/* The body of an answer: as hf_api_answer, but a refusal that is not remembered says exactly what
 * was wrong. */
void hf_server_answer(struct hf_json *j, const struct hf_request *request,
                      const struct hf_result *result);
/* Count a refusal; log a duplicate, an unknown outcome or a tenant at its quota. */
void hf_server_noticed(const struct hf_work *work, const struct hf_request *request,
                       const struct hf_result *result);

/* operator.c: take the tenant that an operator names (?tenant=NAME, - for the default tenant) out
 * of the query of a call that has by_operator. False after refusing. Without one, a list of
 * unsettled claims is of all tenants. */
bool hf_operator_tenant(struct hf_work *work);

/* bulk.c: what a client sends to /v1/batch */
bool hf_bulk_begin(struct hf_work *work); /* as hf_handler.begin */
void hf_bulk_render(struct hf_work *work, struct hf_buffer *body);
void hf_bulk_free(struct hf_work *work);

/* slow.c */
enum hf_status hf_slow_start(struct hf_server *server);
/* False: a call is still in progress, and its thread goes on. */
bool hf_slow_stop(struct hf_server *server);
/* Make the answer on a thread of the queue, which ends the call with hf_http_done. Refused at once
 * if too many calls wait. */
void hf_slow_add(struct hf_work *work);
/* As hf_handler.make: a page of a list, an audit, a trace, an export. */
void hf_slow_page(struct hf_work *work);
void hf_slow_audit(struct hf_work *work);
void hf_slow_trace(struct hf_work *work);
void hf_slow_head(struct hf_work *work);
void hf_slow_export(struct hf_work *work);

/* metrics.c, page.c, openapi.c: the body, appended. caller: sees only its own tenant, if there is
 * an auth file and it is no operator. */
void hf_server_metrics(struct hf_server *server, const struct hf_caller *caller,
                       struct hf_buffer *out);
void hf_server_page(struct hf_server *server, bool figures, struct hf_buffer *out);
void hf_server_openapi(struct hf_buffer *out);

#endif

/* tenant.h: limits for each tenant, so that no tenant delays the others.
 *
 * Connections, requests per second, and turns on the slow threads (slow.c). A tenant is known here
 * from its first admitted call until the server ends; the auth file limits how many there are.
 * Without an auth file all callers are one tenant, and only the server's own limits apply. */
#ifndef HF_SERVER_TENANT_H
#define HF_SERVER_TENANT_H

#include "http/server.h"

#include <pthread.h>

#define HF_SLOW_QUEUES 2 /* pages of lists; audits, traces and exports */

struct hf_work;

/* A tenant's calls in a queue. Protected by the queue's lock. */
struct hf_turns {
    struct hf_work *first, **end;
    unsigned waiting;      /* including the one in progress */
    bool running, in_line; /* a call is in progress; the tenant is in the queue's line */
    struct hf_turns *next; /* in that line */
};

struct hf_tenant {
    /* its connections; the first member, so that a connection's group is also the tenant */
    struct hf_http_group group;
    struct hf_tenant *next; /* with the same hash */
    /* rate: the time up to which its requests have used it; the same for its endings */
    _Atomic int64_t paid_us[2];
    _Atomic int64_t batch_lines;   /* lines of its bulk requests in progress */
    _Atomic unsigned exports;      /* in progress: made or sent */
    _Atomic int64_t logged_us;     /* as paid_us, for lines of the log */
    _Atomic hf_time quota_told_at; /* when the log last said that the tenant is at its quota */
    struct hf_turns turns[HF_SLOW_QUEUES];
    size_t name_size;
    char name[HF_TENANT_MAX];
};

enum { HF_TENANT_SLOTS = 256 };

struct hf_tenants {
    pthread_mutex_t lock;
    unsigned connections_max; /* of each; 0: no limit. May be set until the first tenant exists */
    unsigned rate;            /* requests a second of each; 0: no limit */
    struct hf_tenant *slots[HF_TENANT_SLOTS];
    struct hf_tenant nobody; /* callers without a credential, or without an auth file */
};

void hf_tenants_init(struct hf_tenants *tenants, unsigned connections_max, unsigned rate);
void hf_tenants_free(struct hf_tenants *tenants);

/* The operators, as a tenant of their own. No other tenant's name contains a space: in the auth
 * file a space separates words. */
#define HF_TENANT_OPERATORS "the operators"

/* The tenant with this name, added if it is new. before: NULL, or the likely tenant, which is then
 * found without the lock. NULL if out of memory. */
struct hf_tenant *hf_tenant_find(struct hf_tenants *tenants, struct hf_tenant *before,
                                 struct hf_bytes name);

enum { HF_OWED_SECONDS = 10 };

/* What a request costs. */
struct hf_charge {
    int64_t now_us; /* of a monotonic clock */
    uint64_t count; /* 1, or the lines of a bulk request: at most hf_tenant_batch_max */
    /* an ending: endings have the same rate, counted separately, so that other requests cannot
     * block them */
    bool ending;
};

/* The most lines of a bulk request: what the rate allows in HF_OWED_SECONDS. 0: no limit. */
uint64_t hf_tenant_batch_max(const struct hf_tenants *tenants);
/* hf_tenant_take: may the tenant make this request now? After a pause, a tenant may make the
 * requests of one second at once. A bulk request is admitted when one request would be, and the
 * tenant owes the rest: at most HF_OWED_SECONDS. 0: yes, and it is counted. Else the microseconds
 * to wait. Thread-safe. */
int64_t hf_tenant_take(struct hf_tenants *tenants, struct hf_tenant *tenant,
                       const struct hf_charge *charge);
/* May one more warning about the tenant be logged? HF_TENANT_LOG_RATE per second: its requests must
 * not push other warnings out of the log. Counted if so. Thread-safe. */
enum { HF_TENANT_LOG_RATE = 100 };
bool hf_tenant_may_log(struct hf_tenant *tenant, int64_t now_us);

#endif

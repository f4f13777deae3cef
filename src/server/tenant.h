/* tenant.h: what each tenant may have of the server at one time, so that none of them keeps the
 * others waiting.
 *
 * Connections, requests a second, and turns on the slow threads (slow.c). A tenant is known here
 * from its first call that was let in until the server ends; the auth file bounds how many there
 * are. Without an auth file everybody is one tenant, and no limit but those of the server itself
 * counts. */
#ifndef HF_SERVER_TENANT_H
#define HF_SERVER_TENANT_H

#include "http/server.h"

#include <pthread.h>

#define HF_SLOW_QUEUES 2 /* pages of lists; audits, traces and exports */

struct hf_work;

/* What a tenant has waiting in a queue. All of it under the queue's lock. */
struct hf_turns {
    struct hf_work *first, **end;
    unsigned waiting;      /* with the one that is being worked on */
    bool running, in_line; /* one is being worked on; it stands in the queue's line */
    struct hf_turns *next; /* in that line */
};

struct hf_tenant {
    struct hf_http_group
        group;              /* its connections; first, so that a connection's group leads here */
    struct hf_tenant *next; /* of the same hash */
    _Atomic int64_t
        paid_us[2]; /* rate: up to when its requests have used up what they may; and its endings */
    _Atomic int64_t batch_lines;   /* of its batches that are being worked on */
    _Atomic unsigned exports;      /* that are being made or sent */
    _Atomic int64_t logged_us;     /* as paid_us, for lines of the log */
    _Atomic hf_time quota_told_at; /* when the log last said that it is at its quota */
    struct hf_turns turns[HF_SLOW_QUEUES];
    size_t name_size;
    char name[HF_TENANT_MAX];
};

enum { HF_TENANT_SLOTS = 256 };

struct hf_tenants {
    pthread_mutex_t lock;
    unsigned connections_max; /* of each; 0: no limit. May be set until the first tenant is there */
    unsigned rate;            /* requests a second of each; 0: no limit */
    struct hf_tenant *slots[HF_TENANT_SLOTS];
    struct hf_tenant nobody; /* who calls where there is no auth file, or without a token */
};

void hf_tenants_init(struct hf_tenants *tenants, unsigned connections_max, unsigned rate);
void hf_tenants_free(struct hf_tenants *tenants);

/* The operators, as a tenant of their own. No tenant has a name with a space in it: the auth file
 * divides words by them. */
#define HF_TENANT_OPERATORS "the operators"

/* The tenant of this name, made if it is new. before: NULL, or one that it may well be: found
 * without a lock then. NULL without memory. */
struct hf_tenant *hf_tenant_find(struct hf_tenants *tenants, struct hf_tenant *before,
                                 struct hf_bytes name);

enum { HF_OWED_SECONDS = 10 };

/* What a tenant asks for. */
struct hf_charge {
    int64_t now_us; /* of a clock that only goes forward */
    uint64_t count; /* 1, or the lines of a batch: at most hf_tenant_batch_max */
    bool
        /* it ends what was begun: such requests have the same rate, counted apart, so that no
         * others keep them out */
        ending;
};

/* The most lines that a batch may have: what the rate allows in HF_OWED_SECONDS. 0: no limit. */
uint64_t hf_tenant_batch_max(const struct hf_tenants *tenants);
/* hf_tenant_take: may the tenant make this request now? A tenant that was silent may make as many
 * at once as it may in a second. A batch is let in when one request would be, and the tenant owes
 * for the others: at most HF_OWED_SECONDS. 0: yes, and it is counted. Else in how many microseconds
 * it may. Safe from many threads. */
int64_t hf_tenant_take(struct hf_tenants *tenants, struct hf_tenant *tenant,
                       const struct hf_charge *charge);
/* May the log have one more warning about what the tenant does? So many a second: its requests must
 * not push warnings about others out of the log. Counted if so. Safe from many threads. */
enum { HF_TENANT_LOG_RATE = 100 };
bool hf_tenant_may_log(struct hf_tenant *tenant, int64_t now_us);

#endif

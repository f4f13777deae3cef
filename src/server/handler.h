/* handler.h: what happens for a call, in one table. */
#ifndef HF_SERVER_HANDLER_H
#define HF_SERVER_HANDLER_H

#include "api/call.h"
#include "http/server.h"

struct hf_work;

/* The queues of slow.c. */
enum hf_slow_kind { HF_SLOW_PAGES = 0, HF_SLOW_FILES = 1 };

struct hf_handler {
    /* Begin it, on an I/O thread. True: it is under way, and another thread or a later round ends
     * it with hf_http_done. False: it can be answered. NULL: there is nothing to do before the
     * answer. */
    bool (*begin)(struct hf_work *work);
    /* Of what takes long: make the answer, on a thread of the queue, into work->text or work->file.
     * Else NULL. */
    void (*make)(struct hf_work *work);
    enum hf_slow_kind slow;
    /* Write the answer. reply: has the status 200 and the content type of JSON. */
    void (*render)(struct hf_work *work, struct hf_http_reply *reply);
    bool needs_store;
    /* Its answer may be so large that unread ones could pile up in memory. */
    bool is_large;
    /* An operator may not make the call. */
    bool of_tenant;
    /* With an operator in the auth file, tenants may not make it. */
    bool of_operators;
    /* It is answered under any name that a client calls the server by. */
    bool at_any_host;
    /* It counts its operations against the tenant's rate itself. */
    bool charges;
    /* For the description: types of the body, fields of the head; NULL behind the last. */
    const char *media[3];
    const char *headers[5];
};

/* Indexed by enum hf_call_kind. */
extern const struct hf_handler hf_handlers[HF_CALL_KINDS];

static inline const struct hf_handler *hf_handler_of(const struct hf_call *call)
{
    return &hf_handlers[call->kind];
}

#endif

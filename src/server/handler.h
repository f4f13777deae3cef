/* handler.h: how each kind of call is handled, in one table. */
#ifndef HF_SERVER_HANDLER_H
#define HF_SERVER_HANDLER_H

#include "api/call.h"
#include "http/server.h"

struct hf_work;

/* The queues of slow.c. */
enum hf_slow_kind { HF_SLOW_PAGES = 0, HF_SLOW_FILES = 1 };

struct hf_handler {
    /* Begin the call, on an I/O thread. True: it is in progress, and another thread or a later
     * round ends it with hf_http_done. False: the answer can be written. NULL: there is nothing to
     * do before the answer. */
    bool (*begin)(struct hf_work *work);
    /* For slow calls: make the answer in work->text or work->file, on a thread of the queue. Else
     * NULL. */
    void (*make)(struct hf_work *work);
    enum hf_slow_kind slow;
    /* Write the answer. reply: has the status 200 and the content type of JSON. */
    void (*render)(struct hf_work *work, struct hf_http_reply *reply);
    bool needs_store;
    /* The answer may be so large that unread answers could fill the memory. */
    bool is_large;
    /* An operator may not make the call. */
    bool of_tenant;
    /* If the auth file has an operator, tenants may not make the call. */
    bool of_operators;
    /* About the whole store: if there is an auth file, only an operator may make the call. */
    bool of_store;
    /* Answered for any Host. */
    bool at_any_host;
    /* `begin` counts the operations against the tenant's rate. */
    bool charges;
    /* For the OpenAPI description: media types of the body, header fields; NULL after the last. */
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

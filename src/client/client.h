/* client.h: a blocking client of a Holdfast server.
 *
 *   url.c      the server's address                  request.c  from a library request to a call
 *   head.c     the head of an answer, read strictly  records.c  from JSON answers to records
 *   wire.c     bytes, with TLS and a deadline        member.c   from JSON members to fields
 *   client.c   calls and retries
 *
 * The client keeps one connection until it is closed. Every step has a deadline and every answer a
 * size limit. The client follows no redirect: it sends the credential only to the host in the URL.
 *
 * A call has one of three results: a complete answer came, whatever it says (HF_OK); the request
 * was not sent, so nothing happened (HF_STORAGE_FAILURE and other faults); the request was sent and
 * no usable answer came, so it may have happened (HF_INDETERMINATE). */
#ifndef HF_CLIENT_CLIENT_H
#define HF_CLIENT_CLIENT_H

#include "api/call.h"
#include "base/buffer.h"

#include <stdio.h>

#define HF_CLIENT_HEAD_MAX 32768 /* bytes of an answer's head */
#define HF_CLIENT_FIELDS_MAX 128
#define HF_CLIENT_ATTEMPTS 3
#define HF_CLIENT_CONNECT_MS 10000    /* for each address of the server */
#define HF_CLIENT_IDLE_MS 60000       /* between two parts of a body that goes to a file */
#define HF_CLIENT_CREDENTIAL_MAX 4096 /* bytes of a credential */
#define HF_CLIENT_BODY_MAX (UINT64_C(64) << 20) /* bytes of an answer that is kept in memory */

/* ---- Calls: request.c ---- */

/* What to send, and how to read the answer. Begin with all zero; free with hf_client_call_free. */
struct hf_client_call {
    enum hf_http_method method;
    struct hf_buffer target; /* owned: path and query, percent-encoded */
    struct hf_buffer key;    /* owned: the value of Idempotency-Key, in quotes; empty: none */
    struct hf_buffer client; /* owned: the value of Holdfast-Client, in quotes; empty: none */
    uint64_t sequence;       /* of the client: Holdfast-Sequence */
    struct hf_buffer body;   /* owned: JSON; empty: none */
    const char *accept;      /* static */
    bool changes;            /* the request may change something on the server */
    bool again;              /* retrying is safe: it has a key, or a second time changes nothing */
    /* from the first attempt to the end of the answer, or of its head if the body goes to `sink` */
    int64_t wait_ms;
    /* borrowed: gets the body of a 200 of the accepted type; any other body goes to the answer.
     * NULL: all bodies go to the answer */
    FILE *sink;
};
void hf_client_call_free(struct hf_client_call *call);

/* hf_client_encode: make the call for `request`. Knows the actions of the command line: holds,
 * resources, guards, claims, leases, registers. The server knows the tenant by the credential; a
 * tenant whose data is not NULL is sent, for an operator. The payload of a begin must be JSON.
 * request: borrowed, not needed afterwards. call: out, owned. why: out. HF_OK; HF_INVALID_REQUEST
 * if a text is not UTF-8 or the key has a control character; HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_client_encode(const struct hf_request *request,
                                            struct hf_client_call *call, struct hf_error *why);
/* The same for a page of holds or claims. */
HF_MUST_USE enum hf_status hf_client_encode_list(const struct hf_query *query,
                                                 struct hf_client_call *call, struct hf_error *why);
/* The same for any other GET. name: the variable part of its path, if it has one. query: borrowed,
 * "" or such as "format=jsonl". */
HF_MUST_USE enum hf_status hf_client_encode_other(enum hf_call_kind kind, struct hf_bytes name,
                                                  const char *query, struct hf_client_call *call,
                                                  struct hf_error *why);

/* ---- Answers: head.c ---- */

struct hf_client_head {
    unsigned status;
    uint64_t length;       /* of the body; every answer has it */
    bool keep_alive;       /* the connection may be used again */
    bool replayed;         /* Idempotent-Replayed */
    hf_time date;          /* the server's clock, in whole seconds; 0: unknown */
    char content_type[48]; /* in lower case, without parameters; "": none, or too long */
    char verdict[16];      /* Holdfast-Verdict, or "" */
    size_t size;           /* bytes of the head, the empty line included */
};

/* hf_client_head_parse: parse the head of an answer from the first `size` bytes of `data`. How the
 * bytes were split makes no difference. Pure. data: borrowed. scanned: in and out, 0 for a new
 * head. out: filled when done. why: out, static, what is wrong, when bad. */
enum hf_http_parse hf_client_head_parse(const char *data, size_t size, size_t *scanned,
                                        struct hf_client_head *out, const char **why);

/* ---- Calls to the server: client.c ---- */

struct hf_client;

/* Borrowed until hf_client_open returns. */
struct hf_client_options {
    /* "http://127.0.0.1:4653", or with a prefix for all paths: "https://example.org/shop" */
    const char *url;
    const char *credential; /* for `Authorization: Bearer`; NULL: none */
    const char *ca_file;    /* PEM: trust only these; NULL: the system's authorities */
};

/* hf_client_open: create a client; nothing is sent yet. client: out, owned, free with
 * hf_client_close. why: out. HF_OK; HF_INVALID_REQUEST with a sentence: the URL, the credential or
 * the file of certificates is invalid; HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_client_open(const struct hf_client_options *options,
                                          struct hf_client **client, struct hf_error *why);
void hf_client_close(struct hf_client *client); /* NULL is allowed */

/* The URL for messages. Borrowed. */
const char *hf_client_url(const struct hf_client *client);
/* Would the credential be sent unencrypted over a network? */
bool hf_client_exposed(const struct hf_client *client);

struct hf_client_answer {
    struct hf_client_head head;
    struct hf_buffer body; /* owned; empty if it went to the sink */
};

/* hf_client_ask: send the call and wait for its answer. If the connection cannot be opened, or
 * breaks before the answer is complete, the client retries, up to HF_CLIENT_ATTEMPTS attempts in
 * all, while there is time and either nothing was sent yet or call->again is set. It does not retry
 * once a part of the body is in the sink. call: borrowed. answer: in and out, all zero at first,
 * overwritten; owned, free with hf_client_answer_free. why: out. HF_OK: a complete answer came;
 * check its status. HF_STORAGE_FAILURE: the request was not sent, so nothing happened.
 * HF_INDETERMINATE: it was sent, and there is no answer, or one that no Holdfast server gives.
 * HF_NO_MEMORY: it was not sent. In all three, why is a sentence without a full stop. */
HF_MUST_USE enum hf_status hf_client_ask(struct hf_client *client,
                                         const struct hf_client_call *call,
                                         struct hf_client_answer *answer, struct hf_error *why);
void hf_client_answer_free(struct hf_client_answer *answer);

/* ---- Reading answers: records.c. All return false, with a sentence in why, for an answer that no
 * Holdfast server gives. Unknown members are ignored, because a newer server may have more. ---- */

/* The answer to `action`, as hf_do would give it. What the JSON does not have (tenants, ordinals,
 * times of decision) is zero. result: HF_RESULT_INIT or used; owned, free with hf_result_clear. */
bool hf_client_read_answer(enum hf_action action, struct hf_bytes body, struct hf_result *result,
                           struct hf_error *why);
/* A page of holds or claims. page: out, owned, free with hf_page_clear; all zero when false. */
bool hf_client_read_page(enum hf_list_kind kind, struct hf_bytes body, struct hf_page *page,
                         struct hf_error *why);

#define HF_CLIENT_CODE_MAX 64
struct hf_client_problem {
    char code[HF_CLIENT_CODE_MAX]; /* lower-case letters, digits and dashes */
    char detail[1024];             /* truncated if longer */
    enum hf_status status;         /* of the code; HF_OK: not a code of the library */
};
bool hf_client_read_problem(struct hf_bytes body, struct hf_client_problem *problem,
                            struct hf_error *why);

/* When the first call with a key was answered, from the answer of GET /v1/tokens. */
bool hf_client_read_token(struct hf_bytes body, hf_time *recorded_at, struct hf_error *why);
/* The version of the server, from its OpenAPI description; "" if there is none. */
struct hf_client_version {
    char text[32];
};
bool hf_client_read_version(struct hf_bytes body, struct hf_client_version *version,
                            struct hf_error *why);

#endif

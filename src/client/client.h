/* client.h: a Holdfast server, asked by a program that waits for the answer.
 *
 *   url.c      where the server is                   request.c  from a request of the library to a call
 *   head.c     the head of an answer, read strictly  records.c  from the JSON of an answer to records
 *   wire.c     bytes, with TLS and a deadline        member.c   members of JSON into the fields of a record
 *   client.c   asking, and asking again
 *
 * One connection is kept for as long as the client lives. Every step has a deadline and every
 * answer a limit. A redirect is never followed: whoever holds the name in the URL is the only one
 * who is asked, and gets the credential.
 *
 * What came of a call is one of three things that are never mixed up: an answer came, whole,
 * whatever it says (HF_OK); the request never left, so nothing happened (HF_STORAGE_FAILURE and
 * other faults); or it left and no answer came that could be understood, so it may have happened
 * (HF_INDETERMINATE). */
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

/* What to send, and how its answer is to be read. All zero is a beginning; free with
 * hf_client_call_free. */
struct hf_client_call {
    enum hf_http_method method;
    struct hf_buffer target; /* owned: path and query, percent-encoded */
    struct hf_buffer key;    /* owned: the value of Idempotency-Key, in quotes; empty: none */
    struct hf_buffer body;   /* owned: JSON; empty: none */
    const char *accept;      /* static */
    bool changes;            /* it may change something on the server */
    bool again;              /* it may be sent twice: it carries a key, or twice is like once */
    int64_t
        wait_ms; /* from the first attempt until the head of the answer is there, and its body too
                              * unless that goes to `sink` */
    FILE *
        /* borrowed: where the body goes if it is a 200 of the type that is accepted; NULL, and all
         * others: into the answer */
        sink;
};
void hf_client_call_free(struct hf_client_call *call);

/* hf_client_encode: the call that asks a server to do `request`. Knows the actions that the command
 * line has: holds, resources, guards. The tenant is not sent: a server knows it by the credential.
 * request: borrowed, not needed afterwards. call: out, owned. why: out. HF_OK; HF_INVALID_REQUEST,
 * if something cannot be sent: text that is not UTF-8, a key that is not printable ASCII;
 * HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_client_encode(const struct hf_request *request,
                                            struct hf_client_call *call, struct hf_error *why);
/* The same for a page of holds. */
HF_MUST_USE enum hf_status hf_client_encode_list(const struct hf_query *query,
                                                 struct hf_client_call *call, struct hf_error *why);
/* The same for a call that is neither, asked with GET. name: what stands in its path, if it has
 * such a part. query: static, "" or "format=jsonl". */
HF_MUST_USE enum hf_status hf_client_encode_other(enum hf_call_kind kind, struct hf_bytes name,
                                                  const char *query, struct hf_client_call *call,
                                                  struct hf_error *why);

/* ---- Answers: head.c ---- */

struct hf_client_head {
    unsigned status;
    uint64_t length; /* of the body: every answer says it */
    bool keep_alive; /* the connection may be used again */
    bool replayed;   /* Idempotent-Replayed */
    hf_time date;    /* the server's clock, whole seconds; 0: not told */
    char content_type
        [48];         /* in lower case, without parameters; "": none, or longer than any of ours */
    char verdict[16]; /* Holdfast-Verdict, or "" */
    size_t size;      /* bytes of the head, the empty line included */
};

/* hf_client_head_parse: read the head of an answer from the first `size` bytes of `data`; the same
 * answer however the bytes were split. Pure. data: borrowed. scanned: in and out, 0 for a new head.
 * out: filled when done. why: out, static, what was wrong, when bad. */
enum hf_http_parse hf_client_head_parse(const char *data, size_t size, size_t *scanned,
                                        struct hf_client_head *out, const char **why);

/* ---- Asking: client.c ---- */

struct hf_client;

/* Borrowed until hf_client_open returns. */
struct hf_client_options {
    const char *
        /* "http://127.0.0.1:4653", or with a path in front of all calls:
         * "https://example.org/shop" */
        url;
    const char *credential; /* for `Authorization: Bearer`; NULL: none */
    const char *ca_file; /* PEM: trust these instead of what the system trusts; NULL: the system */
};

/* hf_client_open: get ready to ask; nothing is sent yet. client: out, owned, free with
 * hf_client_close. why: out. HF_OK; HF_INVALID_REQUEST with a sentence: the URL, the credential
 * or the file of certificates is invalid; HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_client_open(const struct hf_client_options *options,
                                          struct hf_client **client, struct hf_error *why);
void hf_client_close(struct hf_client *client); /* NULL is allowed */

/* The URL, as it is shown in sentences. Borrowed. */
const char *hf_client_url(const struct hf_client *client);
/* Would somebody on the way to the server be able to read the credential? */
bool hf_client_exposed(const struct hf_client *client);

struct hf_client_answer {
    struct hf_client_head head;
    struct hf_buffer body; /* owned; empty if it went to the sink */
};

/* hf_client_ask: send the call and wait for its answer. A connection that cannot be had, or breaks
 * before the answer is whole, is tried again, HF_CLIENT_ATTEMPTS times in all, as long as there is
 * time and nothing was sent yet or the call may be sent twice; once a part of the body is in the
 * sink, no more. call: borrowed. answer: in and out, all zero at first, what it held is
 * overwritten; owned, free with hf_client_answer_free. why: out. HF_OK: an answer came, whole; look
 * at its status. HF_STORAGE_FAILURE: the request has not left, so nothing happened.
 * HF_INDETERMINATE: it has left, and there is no answer, or one that no Holdfast server gives.
 * HF_NO_MEMORY: it has not left. In all three, why is a sentence without its end. */
HF_MUST_USE enum hf_status hf_client_ask(struct hf_client *client,
                                         const struct hf_client_call *call,
                                         struct hf_client_answer *answer, struct hf_error *why);
void hf_client_answer_free(struct hf_client_answer *answer);

/* ---- Reading answers: records.c. All are false, with the sentence in why, for what no Holdfast
 * server answers with; members that are not known here are passed over, because a newer server may
 * have more. ---- */

/* The answer to `action`, as hf_do would give it; what an answer does not carry (tenants, ordinals,
 * times of decision) is zero. result: HF_RESULT_INIT or used; owned, free with hf_result_clear. */
bool hf_client_read_answer(enum hf_action action, struct hf_bytes body, struct hf_result *result,
                           struct hf_error *why);
/* A page of holds. page: out, owned, free with hf_page_clear; all zero when false. */
bool hf_client_read_holds(struct hf_bytes body, struct hf_page *page, struct hf_error *why);

#define HF_CLIENT_CODE_MAX 64
struct hf_client_problem {
    char code[HF_CLIENT_CODE_MAX]; /* lower-case letters, digits and dashes */
    char detail[1024];             /* cut off if it is longer */
    enum hf_status status;         /* what the code means; HF_OK: not a code of the library */
};
bool hf_client_read_problem(struct hf_bytes body, struct hf_client_problem *problem,
                            struct hf_error *why);

/* When the first call with a key was answered, out of what is known of the key. */
bool hf_client_read_token(struct hf_bytes body, hf_time *recorded_at, struct hf_error *why);
/* The version of the server, out of its description; "" if it tells none. */
struct hf_client_version {
    char text[32];
};
bool hf_client_read_version(struct hf_bytes body, struct hf_client_version *version,
                            struct hf_error *why);

#endif

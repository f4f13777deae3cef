/* inner.h: what the files of the client share; nobody else includes it. */
#ifndef HF_CLIENT_INNER_H
#define HF_CLIENT_INNER_H

#include "client/client.h"
#include "json/reader.h"

#include <openssl/ssl.h>
#include <sys/types.h>

/* ---- url.c ---- */

struct hf_client_url {
    bool tls;
    char host[256]; /* without brackets, as it is looked up */
    bool literal;   /* an IPv4 or IPv6 address */
    char port[6];
    char field[272];  /* the value of Host */
    char prefix[256]; /* path in front of all calls, without a slash at its end; "" mostly */
    char shown[800];  /* the whole, for sentences */
};

/* Take a URL apart. Pure. False: why says what is expected. */
bool hf_client_url_parse(const char *text, struct hf_client_url *url, struct hf_error *why);
/* Does it name this very machine? */
bool hf_client_url_loopback(const struct hf_client_url *url);

/* ---- wire.c ---- */

struct hf_wire {
    int fd;   /* -1: not connected */
    SSL *ssl; /* NULL: plain */
};

struct hf_wire_fault {
    char text[512]; /* what happened, without its end */
    bool transient; /* it may work the next time */
};

/* Connect, and shake hands if `tls` is not NULL, before `deadline`. False: nothing is left open, and why is filled. */
bool hf_wire_open(struct hf_wire *wire, const struct hf_client_url *url, SSL_CTX *tls, int64_t deadline,
                  struct hf_wire_fault *why);
void hf_wire_close(struct hf_wire *wire); /* also if it is not connected */
/* Has nothing come on it that nobody asked for, nor its end? */
bool hf_wire_quiet(const struct hf_wire *wire);
/* Send all of it. False: why is filled; a part may have left. */
bool hf_wire_write(struct hf_wire *wire, struct hf_bytes data, int64_t deadline, struct hf_wire_fault *why);
/* Receive at least a byte: how many, 0 at the end of the stream, -1 after filling why. */
ssize_t hf_wire_read(struct hf_wire *wire, void *data, size_t size, int64_t deadline,
                     struct hf_wire_fault *why);

/* A context for clients that trusts `ca_file`, or the system if that is NULL. NULL after filling why. */
SSL_CTX *hf_wire_context(const char *ca_file, struct hf_error *why);

/* ---- member.c ---- */

enum hf_member_type {
    HF_MEMBER_TEXT,     /* struct hf_bytes: borrowed from the text or the reader's arena */
    HF_MEMBER_STORED,   /* the same, any JSON as it is stored (json/stored.h) */
    HF_MEMBER_ID,       /* char[HF_ID_SIZE]: of a hold */
    HF_MEMBER_TIME,     /* hf_time */
    HF_MEMBER_DURATION, /* int64_t, milliseconds */
    HF_MEMBER_U32,
    HF_MEMBER_U64,
    HF_MEMBER_FLAG, /* bool */
    HF_MEMBER_NAMED, /* an enum by its names, behind a NULL at 0 if it begins with 1; 0 if the name is not known */
    HF_MEMBER_LIST, /* the same, an array of up to HF_MATCH_MAX; how many goes to a uint32_t behind it */
};

struct hf_member {
    const char *name;
    enum hf_member_type type;
    size_t offset; /* in the record */
    bool required;
    const char *(*name_of)(unsigned number); /* NAMED and LIST: from 0 or 1 on, NULL at the end */
};

#define HF_MEMBERS_MAX 16

/* Read the object that comes next into `record`. given: out, a bit for each member that was there. False: r->error
 * says why. */
bool hf_member_read(struct hf_reader *r, const struct hf_member *members, size_t count, void *record,
                    unsigned *given);

#endif

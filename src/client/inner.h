/* inner.h: what the files of the client share. Private to src/client. */
#ifndef HF_CLIENT_INNER_H
#define HF_CLIENT_INNER_H

#include "client/client.h"
#include "net/stream.h"
#include "json/reader.h"

/* ---- url.c ---- */

struct hf_client_url {
    bool tls;
    char host[256]; /* without brackets */
    bool literal;   /* an IPv4 or IPv6 address */
    char port[6];
    char field[272];  /* the value of Host */
    char prefix[256]; /* for all paths, without a slash at its end; mostly "" */
    char shown[800];  /* the whole URL, for messages */
};

/* Parse a URL. Pure. False: why says what is expected. */
bool hf_client_url_parse(const char *text, struct hf_client_url *url, struct hf_error *why);
/* Does it name a loopback address? */
bool hf_client_url_loopback(const struct hf_client_url *url);

/* ---- wire.c ---- */

struct hf_wire_fault {
    char text[512]; /* what happened, without a full stop */
    bool transient; /* a retry may work */
};

/* Connect, and do the TLS handshake if `tls` is not NULL, before `deadline`. False: nothing is left
 * open, and why is filled. */
bool hf_wire_open(struct hf_stream *wire, const struct hf_client_url *url, struct hf_tls *tls,
                  int64_t deadline, struct hf_wire_fault *why);
/* Is the idle connection still usable: no unexpected bytes, and not closed? */
bool hf_wire_quiet(const struct hf_stream *wire);
/* Send all of it. False: why is filled; a part may have been sent. */
bool hf_wire_write(struct hf_stream *wire, struct hf_bytes data, int64_t deadline,
                   struct hf_wire_fault *why);
/* Receive at least one byte. Returns how many, 0 at the end of the stream, -1 after filling why. */
ssize_t hf_wire_read(struct hf_stream *wire, void *data, size_t size, int64_t deadline,
                     struct hf_wire_fault *why);

/* ---- member.c ---- */

enum hf_member_type {
    HF_MEMBER_TEXT,     /* struct hf_bytes: borrowed from the text or the reader's arena */
    HF_MEMBER_STORED,   /* the same, any JSON as it is stored (json/stored.h) */
    HF_MEMBER_JSON,     /* the same, any JSON as its text without white space */
    HF_MEMBER_ID,       /* char[HF_ID_SIZE]: of a hold */
    HF_MEMBER_DIGEST,   /* uint8_t[HF_DIGEST_SIZE] */
    HF_MEMBER_TIME,     /* hf_time */
    HF_MEMBER_DURATION, /* int64_t, milliseconds */
    HF_MEMBER_U32,
    HF_MEMBER_U64,
    HF_MEMBER_I64,
    HF_MEMBER_FLAG, /* bool */
    /* an enum by its names; the table has NULL at 0 if the enum begins with 1; 0 if the name is
     * unknown */
    HF_MEMBER_NAMED,
    /* the same, an array of up to HF_MATCH_MAX; the count goes to a uint32_t after it */
    HF_MEMBER_LIST,
};

struct hf_member {
    const char *name;
    enum hf_member_type type;
    size_t offset; /* in the record */
    bool required;
    const char *(*name_of)(unsigned number); /* NAMED and LIST: from 0 or 1; NULL at the end */
};

#define HF_MEMBERS_MAX 16

/* Read the next object into `record`. given: out, a bit for each member that is present. False:
 * r->error says why. */
bool hf_member_read(struct hf_reader *r, const struct hf_member *members, size_t count,
                    void *record, unsigned *given);

#endif

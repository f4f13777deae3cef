/* op.h: one operation that a client of the crash test asks for, and what it was told.
 *
 * An operation is asked for by a call of its own, by one of several that are sent without waiting
 * (pipelined), or by a line of a batch. However it is sent, and however often, it is the same
 * operation: that is what is tested. */
#ifndef HF_PROOF_CRASH_OP_H
#define HF_PROOF_CRASH_OP_H

#include "server/kit/text.h"

enum crash_kind {
    CRASH_PLACE,
    /* a place_hold with a client and a sequence instead of a key; only a batch can say that */
    CRASH_NUMBERED,
    CRASH_CONFIRM,
    CRASH_RELEASE,
    CRASH_EXPIRE,
    CRASH_REVERSE,
    CRASH_ADMIT,
    CRASH_BEGIN,
    CRASH_COMPLETE,
    CRASH_FAIL,
    CRASH_GRANT,
    CRASH_WRITE,
    CRASH_MERGE,
    CRASH_KINDS
};

struct crash_op {
    enum crash_kind kind;
    unsigned client, number; /* "c<client>-<number>" names it, and is its key where it has one */
    unsigned sequence;       /* of a CRASH_NUMBERED; else 0 */
    char subject
        /* what stands in the path: a hold's id, a guard, a claim's key, a lease, a register; or
         * "" */
        [48];
    char fields[144]; /* the members of the body, without braces */

    int status;        /* of the first answer; 0: none yet */
    char *body;        /* owned: of the first answer */
    unsigned attempts; /* how often it was sent */
    /* how often it was sent and nobody said whether it happened: the server went away, */
    unsigned doubts;
    unsigned unknowns;    /* or, so often, said that it does not know */
    bool survived;        /* the answer showed that one of those had been done */
    uint64_t called_ns;   /* when it first left, by a clock that all processes share; 0: not yet */
    uint64_t answered_ns; /* when its first answer had come, by the same clock; 0: not yet */
    uint64_t fence;       /* of a CRASH_BEGIN that the client may settle: what it was given */
    /* of a call that ends or reverses a hold: the number of the operation that placed it */
    unsigned target;
    unsigned ends;      /* of one that placed a hold: how many calls ended it, */
    const char *state;  /* the state that the last of them led to; NULL: none did, */
    unsigned reversals; /* and how often it was given back */
};

/* What a kind is in the interface. */
struct crash_call {
    const char *op;      /* in a batch; NULL: it cannot be there */
    const char *method;  /* NULL: it can only be in a batch */
    const char *before;  /* of the path, in front of the subject */
    const char *after;   /* and behind it */
    const char *subject; /* the subject's name in a batch; NULL: there is none */
    bool keyed;     /* it carries an idempotency key, so that it can be asked again word for word */
    int done;       /* the status of its success */
    int refused[2]; /* statuses of its refusals; 0: none */
};
extern const struct crash_call crash_calls[CRASH_KINDS];

#define CRASH_NAME_MAX 32
/* "c2-17". Answers out. */
const char *crash_op_name(const struct crash_op *op, char out[CRASH_NAME_MAX]);

/* Add the operation to `out`: as a call over HTTP, or as a line of a batch. */
void crash_op_request(const struct crash_op *op, struct text *out);
void crash_op_line(const struct crash_op *op, struct text *out);

/* Note with `hold`, which placed a hold, that `op` was done to it. */
void crash_op_ends(struct crash_op *hold, const struct crash_op *op);
/* May the hold that `op` placed be in this state, as far as its owner knows? */
bool crash_op_may_be(const struct crash_op *op, const char *state);

/* Was it done? */
bool crash_op_done(const struct crash_op *op);
/* Is this a status that the kind can be answered with? */
bool crash_op_fits(const struct crash_op *op, int status);

/* The string behind "name":" in a body, up to the next quote, cut off at `size`; "" if there is
 * none. Answers out. */
const char *crash_text(const char *body, const char *name, char *out, size_t size);
/* The number behind "name": in a body, or -1. */
long long crash_number(const char *body, const char *name);

#endif

/* client.h: a client of the crash tests: a process of its own with its own ledger, which outlives
 * every server.
 *
 *   choose.c   what to ask next, and what was learnt from an answer
 *   client.c   asking: alone, pipelined, in batches; again when in doubt; again although there was
 *              an answer
 *
 * It asks for operations of all kinds, as fast as it is told to. When the server goes away without
 * a word, or says that it cannot tell what happened, it asks the same again until it knows: at the
 * other server, if there is one. Then it asks for some of what it had been told before: the newest,
 * and a few of any age. Whatever is not as it must be is a complaint, and the end of it. */
#ifndef HF_PROOF_CRASH_CLIENT_H
#define HF_PROOF_CRASH_CLIENT_H

#include "crash/ledger.h"

#include <stdatomic.h>

enum {
    CRASH_CLIENTS_MAX = 16,
    CRASH_SERVERS_MAX = 2,
    CRASH_SHARED = 6,           /* resources that all clients want, */
    CRASH_SHARED_CAPACITY = 20, /* with so many units each */
    CRASH_LEASES = 2,           /* leases that all want; a register goes with each */
    CRASH_REGISTERS = 2,        /* registers that all write */
    CRASH_COMPLAINT = 1200
};

/* What a client tells the driver, in memory that they share. */
struct crash_tally {
    _Atomic uint64_t acknowledged; /* operations that were answered */
    /* operations that were sent, and of which nobody said whether they happened, */
    _Atomic uint64_t in_doubt;
    _Atomic uint64_t survived;    /* of which so many had been done all the same, */
    _Atomic uint64_t undone;      /* and so many had not; of the rest, the answer cannot tell */
    _Atomic uint64_t resent;      /* requests that were sent because the one before had no answer */
    _Atomic uint64_t not_yet;     /* answers that said: not now */
    _Atomic uint64_t asked_again; /* questions about what had been answered before */
    _Atomic uint64_t breaks;      /* connections that broke while a request was under way */
    _Atomic uint64_t kinds[CRASH_KINDS]; /* operations that were done, by kind */
    char complaint[CRASH_COMPLAINT];     /* "" while nothing is wrong */
};

struct crash_board {
    /* ask for nothing new, settle what is in doubt, ask for everything again, and end */
    _Atomic bool stop;
    struct crash_tally clients[CRASH_CLIENTS_MAX];
};

/* A claim that this client has begun and must settle. */
struct crash_claim {
    char key[48];
    uint64_t fence;
};

struct crash_list { /* of numbers of operations, or of claims */
    void *data;     /* owned */
    size_t count, room;
};

struct crash_client {
    struct crash_board *board; /* shared */
    struct crash_tally *tally; /* its own there */
    struct crash_ledger ledger;
    struct server to[CRASH_SERVERS_MAX]; /* where the servers are, all of one store */
    unsigned servers, at;                /* how many, and which of them it talks to */
    unsigned clients;                    /* how many there are of its kind */
    uint64_t random;
    int fd;           /* -1: not connected */
    bool broke;       /* the server went, or could not answer, since this was last looked at */
    unsigned put_off; /* how much of what was last sent was answered with "not now" */
    unsigned pause;   /* at most so many microseconds between two requests */
    bool ghosts;      /* control: ask for things behind the ledger's back */
    /* What it knows, for crash_choose. */
    struct crash_list holds;  /* unsigned: operations that placed a hold */
    struct crash_list claims; /* struct crash_claim: to be settled */
    struct crash_list again;  /* struct crash_claim: failed, to be begun once more */
    uint64_t fences[CRASH_LEASES];
    unsigned version, sequence, counted;
};

/* Run until the board says stop. Answers the exit code: 0, or 1 after a complaint. */
int crash_client_run(struct crash_client *c);

/* ---- choose.c ---- */

/* Note the next operation in the ledger; batch: one that can stand in a batch, else one that can
 * stand alone. */
struct crash_op *crash_choose(struct crash_client *c, bool batch);
/* Learn from the first answer to `op`. */
void crash_learn(struct crash_client *c, struct crash_op *op);
/* The claim that a CRASH_BEGIN is about is wanted by other clients too. */
bool crash_claim_shared(const struct crash_op *op);
void crash_list_add(struct crash_list *list, const void *item, size_t size);
/* Free what it knows. */
void crash_forget(struct crash_client *c);

#endif

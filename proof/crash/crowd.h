/* crowd.h: the clients of a crash test together: as many processes, a ledger each, what they have
 * counted, and what is made for them before they begin.
 *
 *     struct crash_crowd crowd = { .count = 4, .dir = dir, .to = { server }, .servers = 1, ... };
 *     crash_furnish(&server) && crash_crowd_start(&crowd)
 *     ...                                   servers die and come back, whatever the test is about
 *     crash_crowd_end(&crowd)               every client knows the fate of everything, and has
 *                                           asked for all of it again
 *     crash_crowd_read(&crowd, ledgers)     and that goes to check.h
 *     crash_crowd_free(&crowd) */
#ifndef HF_PROOF_CRASH_CROWD_H
#define HF_PROOF_CRASH_CROWD_H

#include "crash/client.h"

#include <sys/types.h>

/* What a crowd came to; counters alone. The first ones as in struct crash_tally. */
struct crash_sum {
    uint64_t acknowledged, in_doubt, survived, undone, resent, not_yet, asked_again, breaks;
    uint64_t kinds[CRASH_KINDS];
    uint64_t holds, entries,
        judged;     /* at its end: records, journal entries, operations told to the judge, */
    uint64_t timed; /* and those of which it was told when they were called and answered */
};

struct crash_crowd {
    unsigned count; /* of clients */
    unsigned servers;
    /* where they listen; client i begins with number i % servers */
    struct server to[CRASH_SERVERS_MAX];
    const char *dir; /* borrowed: the ledgers are DIR/ledger-0 .. */
    uint64_t seed;
    unsigned pause_us; /* of a client between two requests, at most */
    bool ghosts;       /* control: they ask for things that no ledger has */
    /* Out. */
    struct crash_board *board; /* owned, shared with the clients */
    pid_t pids[CRASH_CLIENTS_MAX];
    char complaint
        /* of one of the clients, or of who looks after them; "" if there is none */
        [CRASH_COMPLAINT];
};

/* The program, which stands in the folder above that of the tests. Static. */
const char *crash_program(void);

/* A port that the kernel gives to nobody by itself: a client that calls while nobody listens could
 * otherwise be connected to itself, and take the server's place. It is no part of what a seed
 * decides: two runs with one seed must not meet. 0 if none is free. */
int crash_port_find(void);

/* Wait until the server that was begun says that it listens. False if it ends instead, or says
 * nothing for a minute. */
bool crash_listens(struct server *s);

/* Make what all clients share, resources and guards, at a server that nobody disturbs. False if it
 * cannot be done. */
bool crash_furnish(const struct server *s);

/* Let them begin. False after a complaint. */
bool crash_crowd_start(struct crash_crowd *c);
/* Operations that were acknowledged so far. */
uint64_t crash_crowd_acknowledged(const struct crash_crowd *c);
/* Has one of them complained? Then that is the crowd's complaint. */
bool crash_crowd_accused(struct crash_crowd *c);
/* Let them come to their end, which needs a server. False after a complaint. */
bool crash_crowd_end(struct crash_crowd *c);
/* What they have counted up to now; the rest of `sum` stays as it is. */
void crash_crowd_sum(const struct crash_crowd *c, struct crash_sum *sum);
/* Read what they have written; ledgers: out, `count` of them, crash_ledger_free frees each, also
 * after a complaint. */
bool crash_crowd_read(struct crash_crowd *c, struct crash_ledger *ledgers);
/* End those that still run, and forget them. */
void crash_crowd_free(struct crash_crowd *c);

/* Say what a crowd came to, in lines. */
void crash_sum_print(const struct crash_sum *n);

#endif

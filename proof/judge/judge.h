/* judge.h: was this history allowed?
 *
 * The judge is a naive model of the rules, written from the specification and from
 * include/holdfast.h alone. It shares no code with the core, the store or the engine: no table of
 * theirs, no hash, no digest, no match rule; it includes the public header for the shape of a
 * request and of an answer, and links nothing. What it lacks in speed it has in being easy to
 * believe.
 *
 * A history is told in the order in which the store decided. For each operation the teller says
 * what was asked, at which engine time it was decided and what was decided; the judge steps its
 * model and objects to anything that the rules do not allow. What the caller was shown is told
 * later and must be the same, byte for byte. After a crash, what had been shown must still be
 * there, and what had not been shown may be there, but only as a beginning: never a later operation
 * without an earlier one.
 *
 *     struct judge *j = judge_new();
 *     judge_opened(j, &rules);
 *     uint64_t n = judge_decided(j, wall, &request, &result);
 *     judge_shown(j, n, &result);
 *     judge_crashed(j);
 *     judge_recovered(j, &seen);            what the lists and reads show now
 *     if (judge_verdict(j)) puts(judge_verdict(j));
 *
 * The first objection is kept; everything after it is ignored. */
#ifndef HF_PROOF_JUDGE_JUDGE_H
#define HF_PROOF_JUDGE_JUDGE_H

#include "holdfast.h"

struct judge;

/* The configuration in force, as BEHAVIOUR has it. */
struct judge_rules {
    int64_t idempotency_window_ms;
    uint32_t token_max_length;
    bool strict; /* registry */
    /* write at a time, in a database: ordinals have gaps, and rise for each resource alone */
    bool many;
};

/* What the world did to the store at this moment, so that the faults which it excuses are
 * allowed. */
enum judge_weather {
    JUDGE_FAIR = 0,
    JUDGE_NO_ROOM =
        1, /* the disk is or was just full: a write may be HF_STORAGE_FAILURE, without any effect */
    JUDGE_NO_MEMORY =
        2, /* an allocation was refused: HF_NO_MEMORY or HF_STORAGE_FAILURE, without any effect */
    JUDGE_NO_INDEX =
        /* holds.idx is or was just not right: what needs the record of a hold may be
         * HF_STORAGE_FAILURE */
    4,
    JUDGE_AT_LIMIT =
        /* there is a limit of memory: what is new may be HF_STORAGE_FAILURE, without any effect;
         * what ends something that was begun may not */
    8
};

/* Everything that can be seen from outside at one moment, for judge_recovered and judge_looked. The
 * arrays are borrowed for the call. Records are in any order. Guards' entries are those that are
 * seen now. */
struct judge_view {
    hf_time now; /* engine time of the reads */
    const struct hf_hold *holds;
    size_t hold_count;
    const struct hf_resource *resources;
    size_t resource_count;
    const struct hf_guard *guards;
    size_t guard_count;
    const struct hf_entry *entries;
    size_t entry_count;
    const struct hf_outbox *outbox;
    size_t outbox_count;
    bool lists_claims;             /* false: the claims are not looked at */
    const struct hf_claim *claims; /* of a tenant newest begin first */
    size_t claim_count;
};

/* owned, free with judge_free; never NULL (it aborts without memory). */
struct judge *judge_new(void);
void judge_free(struct judge *j);

/* The store was opened (again, in an orderly way, or for the first time). Rules that changed apply
 * from here on. */
void judge_opened(struct judge *j, const struct judge_rules *rules);

/* What a function of HF_APPLY did, for judge_decided. All of it is borrowed for the call. */
struct judge_row {
    struct hf_bytes key,
        value; /* of the application key space, in the order of the puts and deletes */
    bool deleted;
};
struct judge_intent {
    struct hf_bytes topic, payload; /* of the outbox, in the order of the enqueues */
};
struct judge_effect {
    /* how often the function ran for this call; if never, the rest is not looked at */
    unsigned runs;
    enum hf_status returned; /* what it returned */
    struct hf_bytes result;
    const struct judge_row *rows;
    size_t row_count;
    const struct judge_intent *outbox;
    size_t outbox_count;
};

/* One operation was decided. wall: the latest that engine time may be, which is what the wall clock
 * has ever said and could be believed; engine time may not be past it, nor run back. weather: of
 * enum judge_weather, ored. request, effect, result: borrowed, copied as far as needed. effect: for
 * HF_APPLY, else NULL. status, result: what was decided, before anybody was shown it; so status is
 * never HF_INDETERMINATE here. result may be NULL with a fault. Returns the operation's number, 1,
 * 2, 3 ... */
uint64_t judge_decided(struct judge *j, hf_time wall, unsigned weather,
                       const struct hf_request *request, const struct judge_effect *effect,
                       enum hf_status status, const struct hf_result *result);

/* Operation `number` was answered to its caller with this. A status of HF_INDETERMINATE promises
 * nothing. */
void judge_shown(struct judge *j, uint64_t number, enum hf_status status,
                 const struct hf_result *result);

/* When its caller asked for operation `number`, and when it was answered (0: never), by one clock
 * that all callers share. Told in the order of the operations. Objects to an order that the callers
 * contradict: what was called after something else had been answered must have been decided after
 * it. */
void judge_timed(struct judge *j, uint64_t number, uint64_t called_ns, uint64_t returned_ns);

/* The store said that this claim has become unknown. wall: as for judge_decided. That is an answer
 * to a read: what is said must be so, and must last. Each end of a lease is said once, and not if
 * it was over when the store was opened. */
void judge_lapsed(struct judge *j, hf_time wall, const struct hf_claim *claim);

/* Maintenance has nothing left to do, and everything that was decided before it is on disk. now:
 * engine time when it began, or 0: the latest that the judge knows. All that has become unknown
 * since the store was opened has been said. stats: what is counted after it, or NULL. */
void judge_maintained(struct judge *j, hf_time now, const struct hf_stats *stats);

/* The process died, or the store stopped and said so. Operations that were decided and not shown
 * are in doubt. */
void judge_crashed(struct judge *j);

/* The store was opened again and shows this. The judge picks how many of the operations in doubt
 * happened: the beginning of them, long enough to hold everything that was shown, with which its
 * model shows the same. Objects if there is none. Keys in doubt are settled by this and by later
 * answers together. */
void judge_recovered(struct judge *j, const struct judge_rules *rules,
                     const struct judge_view *view);

/* Look at a quiet moment: the model must show the same. */
void judge_looked(struct judge *j, const struct judge_view *view);

/* NULL: nothing to object to. Else what is wrong, with the operation's number, in a sentence.
 * Borrowed. */
const char *judge_verdict(const struct judge *j);

/* How much was judged. */
struct judge_count {
    uint64_t operations, effects, replays, collisions, refusals, shown, crashes, in_doubt, lost,
        survived, looks, lapsed;
};
struct judge_count judge_counted(const struct judge *j);

#endif

/* store.h: one call of the library after the other, let fail at every point.
 *
 * Each trial begins with the same store: a copy of one that was furnished once, with something of
 * every kind in it, a part of which is in a packed segment behind a snapshot. Its clock stands
 * still, so what a call answers and what it leaves behind is the same each time, byte for byte. */
#ifndef HF_PROOF_FAULT_STORE_H
#define HF_PROOF_FAULT_STORE_H

#include "engine/kit/engine.h"
#include "fault/kit.h"

#define FAULT_KEY "the-key" /* of the call that is tried */

/* The ids of holds in the furnished store. */
struct furnished {
    char old_held[HF_ID_SIZE], old_confirmed[HF_ID_SIZE]; /* in a packed segment */
    char held[HF_ID_SIZE], confirmed[HF_ID_SIZE];
    char due[HF_ID_SIZE]; /* held, and overdue when a trial begins */
};
extern struct furnished furnished;

enum { FAULT_ITEMS = 8 };

/* What a call answered: one item for each request in it. */
struct outcome {
    size_t count;
    struct outcome_item {
        enum hf_status status;
        bool replayed;
        char *text; /* owned: the whole answer */
    } item[FAULT_ITEMS];
};

/* Add the answer in k->got, or in another result. Faults are off meanwhile. */
void outcome_add(struct outcome *o, struct kit *k, enum hf_status status);
void outcome_add_result(struct outcome *o, const struct hf_result *result, enum hf_status status);
/* Add what is no answer: the text is copied. */
void outcome_add_text(struct outcome *o, enum hf_status status, const char *text);
void outcome_clear(struct outcome *o);

struct fault_case {
    const char *name;
    void (*run)(struct kit *k, struct outcome *o); /* make the call; faults are on */
    bool reads;                                    /* it changes nothing */
    /* asked a second time it is another call: it has no key and is not idempotent by itself */
    bool once;
    /* record, admit: a store that cannot write leaves the answer to the guard's policy */
    bool guard;
    bool group; /* several requests, each of which may have its own fate */
};

/* Furnish the store. Called before anything else here, once. */
void fault_furnish(void);
void fault_unfurnish(void);

/* A kit with a fresh copy of the furnished store, not open, and `mark` for what is left behind. */
struct kit *fault_begin(void);
/* The same with what `prepare` makes of that store, at `at` after KIT_START. It is called once; the
 * trials that follow with the same one get copies of what it left. */
struct kit *fault_begin_prepared(void (*prepare)(struct kit *k), hf_time at);
/* Open it with faults off (they are counted, though); the open must succeed. */
void fault_open(struct kit *k);
/* Close it; assert that nothing is left behind by what was done since fault_begin; remove the
 * copy. */
void fault_end(struct kit *k);
/* Close it and forget what it was, without looking. */
void fault_close(struct kit *k);

/* Everything that can be read out of the store, as text. Its last line is the number of keys, which
 * depends on which of those that are over have been freed already. Owned, free with free(). */
#define FAULT_TOKENS "keys: "
char *fault_dump(struct kit *k);
/* Assert that two dumps are the same. */
void fault_same(const char *got, const char *wanted, const char *what);
/* Assert that the records pass every check of the audit. The store is closed. */
void fault_audit(struct kit *k);

/* What is being tried, for the words of a failure. */
void fault_say(const char *name, enum fault_call call, enum fault_mode mode, unsigned n);
_Noreturn void fault_blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Let the call fail at every point and in every way, and judge each. */
void fault_case_try(const struct fault_case *c);

#endif

/* doubt.h: what a crash left open.
 *
 * After a crash, the operations that nobody was answered may have happened: the first few of them,
 * or none, or all. The view tells most of it. What it does not tell (keys, claims, leases,
 * registers, values) stays in doubt: the operations are kept as items that are not carried out yet,
 * with the alternatives that are still possible, each of which takes some of the items. The records
 * that an item would change carry the doubt's mark, and an item changes no others, nor those that
 * were settled after it. An operation that looks at no marked record is judged as always, because
 * the items make no difference to it. One that does is judged once for each alternative; those that
 * cannot explain its answer are dropped, and when none is left the judge objects. A record about
 * which all remaining alternatives agree is settled: its body goes into the model, the mark goes,
 * and so do the items that change nothing else. What an operation changes while it is still open
 * how, makes the operation an item itself, which every alternative takes. */
#ifndef HF_PROOF_JUDGE_DOUBT_H
#define HF_PROOF_JUDGE_DOUBT_H

#include "judge/model.h"

struct judge_doubt {
    struct judge_doubt *next;
    struct judge_op **items; /* in the order of their numbers */
    size_t item_count, item_room;
    unsigned char **takes;         /* takes[alternative][item] */
    size_t count;                  /* of alternatives */
    struct judge_record **records; /* that have the mark */
    size_t record_count, record_room;
};

/* A doubt with room for so many items, and alternatives that take none. It belongs to the judge. */
struct judge_doubt *judge_doubt_make(struct judge *j, size_t room, size_t count);
/* An item that every alternative takes. What it did to holds, resources and the outbox is carried
 * out at once: that is never in doubt, because every view shows it. */
void judge_doubt_certain(struct judge *j, struct judge_doubt *d, struct judge_op *op);
void judge_doubt_drop(struct judge_doubt *d, size_t alternative);
/* Forget the items with a number above this, and the marks of what they alone have changed. */
void judge_doubt_cut(struct judge_doubt *d, uint64_t number);
/* One doubt that stands for two: every alternative of the one with every alternative of the
 * other. */
struct judge_doubt *judge_doubt_merge(struct judge *j, struct judge_doubt *a,
                                      struct judge_doubt *b);
/* Mark what has changed since the stack had `from` bodies. Doubts that are met on the way become
 * one with `d`, which is returned. */
struct judge_doubt *judge_doubt_mark(struct judge *j, size_t from, struct judge_doubt *d);
/* Carry out what the answer of `op` says. d: change marked records alone; NULL: all. */
void judge_doubt_carry(struct judge *j, const struct judge_op *op, const struct judge_doubt *d);

/* Going through alternatives, each carried out in turn. There may be thousands of them, and most
 * have nearly everything in common with the one before: that stays carried out. */
struct judge_walk {
    struct judge *j;
    const struct judge_doubt *d;
    /* the first so many items are carried out, as far as an alternative takes them */
    size_t item_count;
    unsigned char *takes; /* of the alternative that is carried out */
    size_t *before; /* how many bodies were on the stack before each item, and with all of them */
    size_t first;   /* items before this one are as they were with the alternative before */
    bool begun;
};
/* d: borrowed up to the last judge_walk_to. Alternatives may be dropped meanwhile, but its items
 * stay as they are. */
void judge_walk_begin(struct judge_walk *w, struct judge *j, const struct judge_doubt *d,
                      size_t item_count);
/* Carry out this alternative. What was put on the stack after the last one is taken off. */
void judge_walk_to(struct judge_walk *w, size_t alternative);
/* Everything is undone. */
void judge_walk_end(struct judge_walk *w);

/* Settle what all alternatives agree about. The doubt may be gone afterwards, or be several. */
void judge_doubt_settle(struct judge *j, struct judge_doubt *d);
/* May `guard` have recorded, and still show at `now`, what the judge's match rules do not know?
 * Under any alternative: such an identity is no record of the judge, so nothing else puts it in
 * doubt together with its guard. */
bool judge_doubt_cloudy(const struct judge_record *guard, hf_time now);
/* Object, unless there is an objection. */
void judge_doubt_object(struct judge *j, const char *why);

#endif

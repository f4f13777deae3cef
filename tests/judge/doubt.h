/* doubt.h: what a crash left open.
 *
 * After a crash, the operations that nobody was answered may have happened: the first few of them, or none, or all.
 * The view tells most of it. What it does not tell (keys, claims, leases, registers, values) stays in doubt: the
 * operations are kept as items that are not carried out yet, with the alternatives that are still possible, each of
 * which takes some of the items. The records that an item would change carry the doubt's mark, and an item changes
 * no others, nor those that were settled after it. An operation that looks at no marked record is judged as always, because the items make no difference
 * to it. One that does is judged once for each alternative; those that cannot explain its answer are dropped, and
 * when none is left the judge objects. A record about which all remaining alternatives agree is settled: its body
 * goes into the model, the mark goes, and so do the items that change nothing else. What an operation changes
 * while it is still open how, makes the operation an item itself, which every alternative takes. */
#ifndef HF_TESTS_JUDGE_DOUBT_H
#define HF_TESTS_JUDGE_DOUBT_H

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
/* An item that every alternative takes. What it did to holds, resources and the outbox is carried out at once: that is
 * never in doubt, because every view shows it. */
void judge_doubt_certain(struct judge *j, struct judge_doubt *d, struct judge_op *op);
void judge_doubt_drop(struct judge_doubt *d, size_t alternative);
/* Forget the items with a number above this, and the marks of what they alone have changed. */
void judge_doubt_cut(struct judge_doubt *d, uint64_t number);
/* One doubt that stands for two: every alternative of the one with every alternative of the other. */
struct judge_doubt *judge_doubt_merge(struct judge *j, struct judge_doubt *a, struct judge_doubt *b);
/* Mark what has changed since the stack had `from` bodies. Doubts that are met on the way become one with `d`, which
 * is returned. */
struct judge_doubt *judge_doubt_mark(struct judge *j, size_t from, struct judge_doubt *d);
/* Carry out what the answer of `op` says. d: change marked records alone; NULL: all. */
void judge_doubt_carry(struct judge *j, const struct judge_op *op, const struct judge_doubt *d);
void judge_doubt_carry_all(struct judge *j, const struct judge_doubt *d, size_t alternative);
/* Settle what all alternatives agree about. The doubt may be gone afterwards, or be several. */
void judge_doubt_settle(struct judge *j, struct judge_doubt *d);
/* Object, unless there is an objection. */
void judge_doubt_object(struct judge *j, const char *why);

#endif

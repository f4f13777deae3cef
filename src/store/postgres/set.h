/* set.h: the rows that a batch works on, in memory.
 *
 * First the requests want every row that they may need; then one round trip reads all of them; then
 * the core decides one request after the other, and each plan is absorbed here, so that the next
 * request sees it; at the end the changed rows are written. If the core needs a row that was not
 * read, the view answers "unreadable" and sets `missed`: the decision must be repeated.
 *
 * The life of a slot (want, assume: want.c; trip: transaction.c; write: write.c):
 *
 *                want              trip: no row came
 *     NEW ----------------> WANTED -----------------> ABSENT ---+
 *      |                      | ^                               |
 *      |                      | | want again (from these three) |
 *      |                      | +-------------------------------+
 *      |                      |                                 |
 *      |                      |    trip: set_take               | set_absorb      write
 *      |                      +---------------------> FOUND ----+----------> DIRTY ----> database
 *      |                                                        |            ^   |
 *      +-- assume (key of a blind batch) ----------> ASSUMED ---+            +---+
 *      +-- set_take (overdue hold, hold's resource) -> FOUND               set_absorb
 *      +-- set_absorb (new hold, outbox) ------------> DIRTY
 *
 *     NEW      no flag is set: a lookup is missed
 *     WANTED   wanted; lock, if the round trip is to lock the row
 *     ABSENT   fetched: there is no such row
 *     FOUND    fetched, stored; found, unless the row is unsound or marked as deleted
 *     ASSUMED  fetched, assumed: counts as absent; if the row exists, the commit fails
 *     DIRTY    fetched, dirty; found, unless erased; stored as before
 *
 * A dirty row that is found, or whose table marks deleted rows, is updated if it is stored, else
 * inserted. Any other dirty row is deleted if it is stored (or a value, which may not have been
 * read), else not written. hf_pg_set_clear ends all slots. */
#ifndef HF_STORE_POSTGRES_SET_H
#define HF_STORE_POSTGRES_SET_H

#include "store/postgres/id.h"
#include "store/postgres/table.h"

struct hf_pg_slot {
    struct hf_pg_slot *chain; /* private: the next with the same hash */
    struct hf_pg_slot *next;  /* of the same table */
    enum hf_pg_table table;
    struct hf_bytes tenant, scope, name; /* scope: the guard of an entry, the client of a call */
    uint64_t number; /* ordinal of a hold, slot of a call, number in the outbox */
    bool wanted;     /* to be read by the next round trip */
    bool lock;       /* and locked */
    bool whole;      /* keys: and read with the entry */
    bool fetched;    /* the database was asked, or the row was absorbed */
    bool found;      /* the row exists now, and can be read */
    bool stored;     /* the row exists in the database */
    bool locked;     /* and is locked until the transaction ends */
    bool dirty;      /* it differs from the database */
    bool awaited;    /* keys: a deferred request may change it */
    /* the standbys may not have this row, or its removal, and commits wait for them */
    bool doubtful;
    bool assumed;                        /* keys: not looked up; if it exists, the commit fails */
    unsigned uses;                       /* resources: how many requests place a hold on it */
    bool swept;                          /* resources: its overdue holds were read */
    unsigned overdue_max, overdue_count; /* the limit of that read, and how many came */
    bool overdue_all;                    /* and these are all held ones */
    bool overdue_unsound;                /* and one of them cannot be read */
    hf_time soonest; /* resources: the first end of a hold that the batch places; 0: none */
    /* resources: the overdue holds found, soonest first, and one more */
    struct hf_pg_slot *overdue;
    struct hf_pg_slot *last_overdue; /* the last of them */
    struct hf_pg_slot *next_overdue; /* holds: the next of them */
    struct hf_pg_record record;      /* its key is always set; unsound: nothing else */
    struct hf_pg_place place;        /* stored: its place */
};

enum { HF_PG_BUCKETS = 4096 };

struct hf_pg_set {
    struct hf_arena arena; /* all slots and bytes, until the set is cleared */
    struct hf_pg_slot *buckets[HF_PG_BUCKETS];
    struct hf_pg_slot *tables[HF_PG_TABLES]; /* newest first */
    const uint8_t *id_key;                   /* borrowed */
    struct hf_view view;
    /* borrowed: the request that is being decided, and its digest */
    const struct hf_request *asking;
    const uint8_t *digest;
    bool missed;
    /* because the overdue holds of a resource that may have some were not read */
    bool missed_overdue;
    bool doubtful; /* a row was found or missing, and the standbys may not have that */
    bool failed;   /* out of memory */
    /* For HF_APPLY: reads a value when the function asks for it. NULL: such a lookup is missed. */
    enum hf_found (*value)(void *arg, struct hf_scoped key, struct hf_bytes *out);
    void *value_arg;
    /* For HF_SET_GUARD: reads an entry of the guard that is seen at `now`, if there is one. NULL:
     * as above. HF_UNREADABLE: it could not be read. */
    enum hf_found (*guarded)(void *arg, struct hf_scoped guard, hf_time now);
};

void hf_pg_set_init(struct hf_pg_set *set, const uint8_t *id_key);
void hf_pg_set_clear(struct hf_pg_set *set);
void hf_pg_set_free(struct hf_pg_set *set);

/* The slot with this key, created if absent; NULL if out of memory (and set->failed). */
struct hf_pg_slot *hf_pg_set_slot(struct hf_pg_set *set, enum hf_pg_table table,
                                  struct hf_bytes tenant, struct hf_bytes scope,
                                  struct hf_bytes name, uint64_t number);

/* Store a row that the database returned; record.unsound: Holdfast cannot have written it. NULL:
 * out of memory. */
struct hf_pg_slot *hf_pg_set_take(struct hf_pg_set *set, enum hf_pg_table table,
                                  const PGresult *result, int row, bool locked);

/* Sort slots of one table into the common order of locks, changes and inserts. */
void hf_pg_set_sort(struct hf_pg_slot **slots, size_t count);

/* Before a resource is written: set due_at, before which none of its holds becomes overdue. */
void hf_pg_set_due(struct hf_pg_slot *resource);

/* Apply a plan to the slots. number: of its journal entry. head, image: of that entry; the tenant
 * and key of head, and image, are borrowed until the set is cleared. False if out of memory. */
struct hf_entry_head;
bool hf_pg_set_absorb(struct hf_pg_set *set, const struct hf_plan *plan,
                      const struct hf_entry_head *head, uint64_t number, struct hf_bytes image);

#endif

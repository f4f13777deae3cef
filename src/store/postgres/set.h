/* set.h: the rows that a batch works on, in memory.
 *
 * First every row that a request may need is wanted; then the database is asked for all of them at
 * once; then the core decides over them, one request after the other, and what it plans is taken in
 * here, so that the next request sees it; and in the end what changed is written back. A row that
 * nobody asked the database for is missed: the core is told that it cannot be read, and `missed`
 * says that the decision is worth nothing. */
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
    bool wanted;     /* to be asked for in the round that is being prepared */
    bool lock;       /* and locked */
    bool whole;      /* keys: and with the entry */
    bool fetched;    /* the database was asked */
    bool found;      /* there is such a row now, and it can be read */
    bool stored;     /* there was one in the database */
    bool locked;     /* and it is ours until the transaction ends */
    bool dirty;      /* it is another now than in the database */
    bool awaited;    /* keys: a request that may change it waits until it is taken */
    bool
        /* it is not known whether the standbys have it, or that it is not there, and one is to */
        doubtful;
    bool assumed;  /* keys: nobody has looked; there is none, or the commit fails */
    unsigned uses; /* resources: how many requests place a hold on it */
    bool swept;    /* resources: it was asked for overdue holds */
    unsigned overdue_max, overdue_count; /* and so many could have come, and came */
    bool overdue_all;                    /* and these are all that are held */
    bool overdue_unsound;                /* and one of them cannot be read */
    hf_time soonest; /* resources: when the first hold ends that the batch places on it; 0: none */
    struct hf_pg_slot
        *overdue; /* resources: the overdue holds that were found, soonest first, and one more */
    struct hf_pg_slot *last_overdue; /* the last of them */
    struct hf_pg_slot *next_overdue; /* holds: the next of them */
    struct hf_pg_record
        record; /* its key is always set; unsound: nothing else, and who needs it is refused */
    struct hf_pg_place place; /* stored: where */
};

enum { HF_PG_BUCKETS = 4096 };

struct hf_pg_set {
    struct hf_arena arena; /* all slots and bytes: until the set is cleared */
    struct hf_pg_slot *buckets[HF_PG_BUCKETS];
    struct hf_pg_slot *tables[HF_PG_TABLES]; /* newest first */
    const uint8_t *id_key;                   /* borrowed */
    struct hf_view view;
    const struct hf_request
        *asking; /* borrowed: the request that is being decided, and its digest */
    const uint8_t *digest;
    bool missed;
    bool
        /* because nobody asked for the overdue holds of a resource that may have some */
        missed_overdue;
    bool doubtful; /* a row was found, or found missing, and the standbys may not know of it */
    bool failed;   /* no memory */
    /* For HF_APPLY: reads a value of the application when it is asked for. NULL: they are
     * missed. */
    enum hf_found (*value)(void *arg, struct hf_scoped key, struct hf_bytes *out);
    void *value_arg;
};

void hf_pg_set_init(struct hf_pg_set *set, const uint8_t *id_key);
void hf_pg_set_clear(struct hf_pg_set *set);
void hf_pg_set_free(struct hf_pg_set *set);

/* The slot with this key, made if absent; NULL without memory (and set->failed). */
struct hf_pg_slot *hf_pg_set_slot(struct hf_pg_set *set, enum hf_pg_table table,
                                  struct hf_bytes tenant, struct hf_bytes scope,
                                  struct hf_bytes name, uint64_t number);

/* Take in a row that the database gave; record.unsound: it is not one that Holdfast can have
 * written. NULL: no memory. */
struct hf_pg_slot *hf_pg_set_take(struct hf_pg_set *set, enum hf_pg_table table,
                                  const PGresult *result, int row, bool locked);

/* Put slots of one table into the order in which everybody locks, changes and inserts them. */
void hf_pg_set_sort(struct hf_pg_slot **slots, size_t count);

/* Set when the resource, which is about to be written, has an overdue hold at the soonest. */
void hf_pg_set_due(struct hf_pg_slot *resource);

/* Take in what the core planned for a request that the journal's entry `number` stands for. head,
 * image: of that entry; image is copied. False without memory. */
struct hf_entry_head;
bool hf_pg_set_absorb(struct hf_pg_set *set, const struct hf_plan *plan,
                      const struct hf_entry_head *head, uint64_t number, struct hf_bytes image);

#endif

/* store.h: the interface between the engine and a store.
 *
 * A store decides requests in an order, makes their changes durable, and then answers. There are
 * two: journal/ keeps its records in its own files, postgres/ in a database that many servers
 * share. The engine opens one of them by the options and calls it through this table.
 *
 * Any thread may call any operation, unless stated otherwise. include/holdfast.h has the promises
 * of each call to its caller; here is what the store must do for them. */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "core/core.h"

struct hf_store;

/* What a store needs from the engine. */
struct hf_store_host {
    /* Run the caller's function of an HF_APPLY over the view. outbox_first: the number of the first
     * row that the function adds to the outbox. plan: out. */
    void (*apply)(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now);
    void *arg;
};

struct hf_store_operations {
    /* Answer everything submitted, stop, and free the store. No other thread may use it any
     * more. */
    void (*close)(struct hf_store *store);

    /* Decide, and return when the answer may be shown. result, results: out, may be NULL. */
    enum hf_status (*decide)(struct hf_store *store, const struct hf_request *request,
                             struct hf_result *result);
    enum hf_status (*decide_many)(struct hf_store *store, const struct hf_request *requests,
                                  struct hf_result *results, size_t count);
    /* Decide the linked operations, and call `done` of each when its answer may be shown. first:
     * not NULL. */
    void (*submit)(struct hf_store *store, struct hf_op *first);
    /* Return when everything submitted before is answered. */
    void (*flush)(struct hf_store *store);
    /* Return when everything visible is as durable as a commit makes it. timeline: of the database
     * that was read (hf_barrier_on); 0 for a store without timelines. */
    enum hf_status (*barrier)(struct hf_store *store, uint32_t timeline);
    uint32_t (*timeline)(struct hf_store *store);

    /* As hf_head. */
    enum hf_status (*head)(struct hf_store *store, struct hf_head *out);

    /* One step of maintenance. True if there is more to do. */
    bool (*maintain)(struct hf_store *store);
    enum hf_status (*list)(struct hf_store *store, const struct hf_query *query,
                           struct hf_page *page);
    /* applying: the caller is inside an apply function of this store and so has the store's
     * lock. */
    void (*stats)(struct hf_store *store, bool applying, struct hf_stats *out);
    /* As hf_usage and hf_usage_of. out, list: zeros at the call. A store that does not count by
     * tenant leaves them so. */
    size_t (*usage)(struct hf_store *store, struct hf_usage *list, size_t max,
                    struct hf_usage *others);
    void (*usage_of)(struct hf_store *store, struct hf_bytes tenant, struct hf_usage *out);
};

/* The first member of every store. */
struct hf_store {
    const struct hf_store_operations *does;
};

/* Open the store that the options name: options->postgres, else the directory `path`. host: copied.
 * out: owned, freed with close. As hf_open. */
enum hf_status hf_store_open(const char *path, const struct hf_options *options,
                             const struct hf_store_host *host, struct hf_store **out,
                             struct hf_error *why);

#endif

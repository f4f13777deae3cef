/* store.h: the seam between the engine and a store.
 *
 * A store decides requests in an order, makes what they changed durable, and answers when it is.
 * There are two: journal/ keeps its records in files of its own, postgres/ in a database that many
 * servers share. The engine knows neither: it opens one of them by the options and calls it through
 * this table.
 *
 * Every operation may be called by any thread, unless it says otherwise. What the library promises
 * of each call is in include/holdfast.h; here is only what an operation has to do for it. */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "core/core.h"

struct hf_store;

/* What a store asks of the engine. */
struct hf_store_host {
    /* Run the caller's function of an HF_APPLY over the view. outbox_first: the number of the first
     * row that it puts into the outbox. plan: out. */
    void (*apply)(void *arg, const struct hf_request *request, const struct hf_view *view,
                  uint64_t outbox_first, struct hf_plan *plan, hf_time now);
    void *arg;
};

struct hf_store_operations {
    /* Answer what was submitted, stop, and free the store. Nobody else calls it any more. */
    void (*close)(struct hf_store *store);

    /* Decide, and return when the answer may be shown. result, results: out, may be NULL. */
    enum hf_status (*decide)(struct hf_store *store, const struct hf_request *request,
                             struct hf_result *result);
    enum hf_status (*decide_many)(struct hf_store *store, const struct hf_request *requests,
                                  struct hf_result *results, size_t count);
    /* Decide the linked operations, and call each one's `done` when its answer may be shown. first:
     * not NULL. */
    void (*submit)(struct hf_store *store, struct hf_op *first);
    /* Return when everything that was submitted before is answered. */
    void (*flush)(struct hf_store *store);
    /* Return when everything that can be seen is as durable as a commit makes it. timeline: of the
     * database that was looked at (hf_barrier_on); a store without any passes 0. */
    enum hf_status (*barrier)(struct hf_store *store, uint32_t timeline);
    uint32_t (*timeline)(struct hf_store *store);

    /* One step of maintenance. True if there is more to do. */
    bool (*maintain)(struct hf_store *store);
    enum hf_status (*list)(struct hf_store *store, const struct hf_query *query,
                           struct hf_page *page);
    /* applying: the caller is inside an apply function of this store, which has the store's
     * lock. */
    void (*stats)(struct hf_store *store, bool applying, struct hf_stats *out);
    /* As hf_usage and hf_usage_of. out, list: zeros so far. A store that does not count by tenant
     * leaves them so. */
    size_t (*usage)(struct hf_store *store, struct hf_usage *list, size_t max,
                    struct hf_usage *others);
    void (*usage_of)(struct hf_store *store, struct hf_bytes tenant, struct hf_usage *out);
};

/* The first member of every store. */
struct hf_store {
    const struct hf_store_operations *does;
};

/* Open the store that the options name: options->postgres, else the directory `path`. host: copied.
 * out: owned, ended with close. As hf_open. */
enum hf_status hf_store_open(const char *path, const struct hf_options *options,
                             const struct hf_store_host *host, struct hf_store **out,
                             struct hf_error *why);

#endif

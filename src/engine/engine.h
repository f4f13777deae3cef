/* engine.h: the calls of the library that every store shares. What a store does for them is in
 * store/store.h. */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "store/store.h"

struct hf_db {
    struct hf_store *store; /* owned */
};

/* The database whose apply function runs in this thread, or NULL. Calls from inside it are
 * refused. */
extern _Thread_local const struct hf_db *hf_engine_applying;

/* apply.c: hf_store_host.apply; arg is the database. */
void hf_engine_apply(void *arg, const struct hf_request *request, const struct hf_view *view,
                     uint64_t outbox_first, struct hf_plan *plan, hf_time now);

#endif

/* postgres.h: a store in a PostgreSQL database. pool.h describes how it works. */
#ifndef HF_STORE_POSTGRES_POSTGRES_H
#define HF_STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

/* options: borrowed for the store's life. As hf_store_open. */
enum hf_status hf_postgres_open(const struct hf_options *options, const struct hf_store_host *host,
                                struct hf_store **out, struct hf_error *why);

#endif

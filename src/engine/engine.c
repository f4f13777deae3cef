#include "engine/engine.h"

#include "base/error.h"
#include "store/record/result.h"

#include <stdlib.h>

_Thread_local const struct hf_db *hf_engine_applying;

/* Is this call made from inside an apply function? */
static bool misused(const struct hf_db *db)
{
    return hf_engine_applying == db;
}

/* ---- Opening and closing ---- */

enum hf_status hf_open(const char *path, const struct hf_options *options, struct hf_db **out,
                       struct hf_error *why)
{
    static const struct hf_options defaults;
    struct hf_error ignored;
    if (!why)
        why = &ignored;
    *why = (struct hf_error){ .status = HF_OK };
    *out = NULL;
    struct hf_db *db = calloc(1, sizeof *db);
    if (!db)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to open a store");
    struct hf_store_host host = { .apply = hf_engine_apply, .arg = db };
    enum hf_status st = hf_store_open(path, options ? options : &defaults, &host, &db->store, why);
    if (st == HF_OK)
        *out = db;
    else
        free(db);
    return st;
}

void hf_close(struct hf_db *db)
{
    if (!db)
        return;
    db->store->does->close(db->store);
    free(db);
}

/* ---- Requests ---- */

enum hf_status hf_do(struct hf_db *db, const struct hf_request *request, struct hf_result *result)
{
    if (misused(db))
        return hf_result_status(result, HF_MISUSE);
    return db->store->does->decide(db->store, request, result);
}

enum hf_status hf_do_many(struct hf_db *db, const struct hf_request *requests,
                          struct hf_result *results, size_t count)
{
    if (count > HF_GROUP_MAX || misused(db))
        return HF_MISUSE;
    return db->store->does->decide_many(db->store, requests, results, count);
}

void hf_submit(struct hf_db *db, struct hf_op *first)
{
    while (first && misused(db)) {
        struct hf_op *op = first;
        first = op->next;
        op->next = NULL;
        op->done(op, hf_result_status(op->result, HF_MISUSE));
    }
    if (first)
        db->store->does->submit(db->store, first);
}

void hf_flush(struct hf_db *db)
{
    if (!misused(db))
        db->store->does->flush(db->store);
}

uint32_t hf_timeline(struct hf_db *db)
{
    return db->store->does->timeline(db->store);
}

enum hf_status hf_barrier(struct hf_db *db)
{
    return hf_barrier_on(db, hf_timeline(db));
}

enum hf_status hf_barrier_on(struct hf_db *db, uint32_t timeline)
{
    return misused(db) ? HF_MISUSE : db->store->does->barrier(db->store, timeline);
}

enum hf_status hf_head(struct hf_db *db, struct hf_head *out)
{
    return misused(db) ? HF_MISUSE : db->store->does->head(db->store, out);
}

/* ---- Everything else ---- */

bool hf_maintain(struct hf_db *db)
{
    return !misused(db) && db->store->does->maintain(db->store);
}

enum hf_status hf_list(struct hf_db *db, const struct hf_query *query, struct hf_page *page)
{
    *page = (struct hf_page){ 0 };
    return misused(db) ? HF_MISUSE : db->store->does->list(db->store, query, page);
}

void hf_stats(struct hf_db *db, struct hf_stats *out)
{
    db->store->does->stats(db->store, misused(db), out);
}

size_t hf_usage(struct hf_db *db, struct hf_usage *list, size_t max, struct hf_usage *others)
{
    if (others)
        *others = (struct hf_usage){ .records = 0 };
    return db->store->does->usage(db->store, list, max, others);
}

void hf_usage_of(struct hf_db *db, struct hf_bytes tenant, struct hf_usage *out)
{
    *out = (struct hf_usage){ .records = 0 };
    if (tenant.size > HF_TENANT_MAX)
        return;
    memcpy(out->tenant, tenant.data ? tenant.data : "", tenant.size);
    db->store->does->usage_of(db->store, tenant, out);
}

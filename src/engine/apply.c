/* hf_apply: the caller's function runs once for a key, in the same commit as the key. Its writes
 * are rows of the plan. */
#include "base/bytes.h"
#include "engine/engine.h"

#include <stdio.h>

struct hf_tx {
    const struct hf_view *view;
    uint64_t outbox_first; /* the number of the first row that the function adds to the outbox */
    struct hf_plan *plan;
    const struct hf_request *request;
    hf_time now;
    size_t first; /* the rows before it belong to the key (a numbered client) */
    size_t bytes; /* size of all rows and of the result */
    bool spoiled; /* a limit was exceeded */
    struct hf_bytes result;
};

/* Copy `from` into the plan's scratch memory. False if a limit is exceeded. */
static bool keep(struct hf_tx *tx, struct hf_bytes from, struct hf_bytes *out)
{
    if (from.size > HF_APPLY_BYTES_MAX - tx->bytes) {
        tx->spoiled = true;
        return false;
    }
    unsigned char *room = hf_plan_room(tx->plan, from.size);
    if (!room) {
        tx->spoiled = true;
        return false;
    }
    if (from.size > 0)
        memcpy(room, from.data, from.size);
    tx->bytes += from.size;
    *out = hf_mem(room, from.size);
    return true;
}

static struct hf_row *find_row(struct hf_tx *tx, struct hf_bytes key)
{
    for (size_t i = tx->first; i < tx->plan->row_count; i++) {
        struct hf_row *row = &tx->plan->rows[i];
        if (row->kind == HF_ROW_VALUE && hf_bytes_equal(row->pair.key, key))
            return row;
    }
    return NULL;
}

static bool key_valid(struct hf_tx *tx, struct hf_bytes key)
{
    if (key.size >= 1 && key.size <= HF_APP_KEY_MAX)
        return true;
    tx->spoiled = true;
    return false;
}

enum hf_status hf_tx_get(struct hf_tx *tx, struct hf_bytes key, struct hf_bytes *value)
{
    if (!key_valid(tx, key))
        return HF_INVALID_REQUEST;
    const struct hf_row *row = find_row(tx, key);
    if (row) {
        *value = row->pair.value;
        return row->erase ? HF_NOT_KNOWN : HF_OK;
    }
    const struct hf_view *view = tx->view;
    struct hf_scoped name = { tx->request->tenant, key };
    switch (view->value(view->ctx, name, value)) {
    case HF_FOUND: return HF_OK;
    case HF_ABSENT: return HF_NOT_KNOWN;
    default: return HF_STORAGE_FAILURE;
    }
}

/* The row for `key`: one that this function changed before, or a new one. */
static struct hf_row *row_for(struct hf_tx *tx, struct hf_bytes key)
{
    struct hf_row *row = find_row(tx, key);
    struct hf_bytes kept;
    if (row)
        return row;
    if (tx->plan->row_count - tx->first >= HF_APPLY_ROWS_MAX) {
        tx->spoiled = true;
        return NULL;
    }
    if (!keep(tx, key, &kept))
        return NULL;
    row = hf_plan_row(tx->plan, HF_ROW_VALUE);
    row->pair.tenant = tx->request->tenant;
    row->pair.key = kept;
    return row;
}

enum hf_status hf_tx_put(struct hf_tx *tx, struct hf_bytes key, struct hf_bytes value)
{
    struct hf_bytes kept;
    if (!key_valid(tx, key) || value.size > HF_APP_VALUE_MAX || !keep(tx, value, &kept)) {
        tx->spoiled = true;
        return HF_INVALID_REQUEST;
    }
    struct hf_row *row = row_for(tx, key);
    if (!row)
        return HF_INVALID_REQUEST;
    row->erase = false;
    row->pair.value = kept;
    return HF_OK;
}

enum hf_status hf_tx_delete(struct hf_tx *tx, struct hf_bytes key)
{
    if (!key_valid(tx, key))
        return HF_INVALID_REQUEST;
    struct hf_row *row = row_for(tx, key);
    if (!row)
        return HF_INVALID_REQUEST;
    row->erase = true;
    row->pair.value = hf_mem(NULL, 0);
    return HF_OK;
}

/* The key for the delivery: the request's key, or the client's name and number. */
static bool delivery_key(struct hf_tx *tx, struct hf_bytes *out)
{
    const struct hf_request *r = tx->request;
    char text[HF_NAME_MAX + 24];
    if (r->client.size == 0) {
        *out = r->key;
        return true;
    }
    int n = snprintf(text, sizeof text, "%.*s/%llu", (int)r->client.size,
                     (const char *)r->client.data, (unsigned long long)r->sequence);
    return keep(tx, hf_mem(text, (size_t)n), out);
}

enum hf_status hf_tx_enqueue(struct hf_tx *tx, struct hf_bytes topic, struct hf_bytes payload)
{
    struct hf_bytes kept_topic, kept_payload, key;
    if (topic.size < 1 || topic.size > HF_NAME_MAX ||
        tx->plan->row_count - tx->first >= HF_APPLY_ROWS_MAX || !keep(tx, topic, &kept_topic) ||
        !keep(tx, payload, &kept_payload) || !delivery_key(tx, &key)) {
        tx->spoiled = true;
        return HF_INVALID_REQUEST;
    }
    uint64_t number = tx->outbox_first;
    for (size_t i = tx->first; i < tx->plan->row_count; i++)
        number += tx->plan->rows[i].kind == HF_ROW_OUTBOX;
    struct hf_row *row = hf_plan_row(tx->plan, HF_ROW_OUTBOX);
    row->outbox = (struct hf_outbox){ .tenant = tx->request->tenant,
                                      .number = number,
                                      .key = key,
                                      .topic = kept_topic,
                                      .payload = kept_payload,
                                      .state = HF_OUTBOX_PENDING,
                                      .created_at = tx->now };
    return HF_OK;
}

enum hf_status hf_tx_result(struct hf_tx *tx, struct hf_bytes result)
{
    return keep(tx, result, &tx->result) ? HF_OK : HF_INVALID_REQUEST;
}

hf_time hf_tx_now(const struct hf_tx *tx)
{
    return tx->now;
}

void hf_engine_apply(void *arg, const struct hf_request *request, const struct hf_view *view,
                     uint64_t outbox_first, struct hf_plan *plan, hf_time now)
{
    struct hf_tx tx = { .view = view,
                        .outbox_first = outbox_first,
                        .plan = plan,
                        .request = request,
                        .now = now,
                        .first = plan->row_count };
    hf_engine_applying = arg;
    enum hf_status st = request->apply.fn(&tx, request->apply.arg);
    hf_engine_applying = NULL;
    if (tx.spoiled && (st == HF_OK || st == HF_REFUSED))
        st = HF_INVALID_REQUEST; /* a limit was exceeded: no rows; the key remembers the refusal */
    else if (st != HF_OK && st != HF_REFUSED && hf_status_kind(st) != HF_KIND_FAULT)
        st = HF_MISUSE;
    if (st != HF_OK)
        plan->row_count = tx.first;
    plan->answer.status = plan->token.status = st;
    plan->answer.kind = HF_NO_RECORD;
    if (st == HF_OK || st == HF_REFUSED) {
        plan->answer.kind = HF_RECORD_VALUE;
        plan->answer.value = tx.result;
    }
    if (hf_status_kind(st) == HF_KIND_FAULT) {
        plan->remember = HF_REMEMBER_NOT;
        plan->row_count = 0;
        plan->token = (struct hf_token){ .status = HF_OK };
    }
}

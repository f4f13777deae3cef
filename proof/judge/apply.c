/* apply.c: the caller's function runs once a key, and what it did commits with the key or not at
 * all. */
#include "judge/model.h"

#include <stdio.h>

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

static bool within_limits(const struct judge_effect *e)
{
    size_t bytes = e->result.size;
    if (e->row_count + e->outbox_count > HF_APPLY_ROWS_MAX || e->result.size > HF_RESPONSE_MAX)
        return false;
    for (size_t i = 0; i < e->row_count; i++) {
        if (e->rows[i].key.size < 1 || e->rows[i].key.size > HF_APP_KEY_MAX ||
            e->rows[i].value.size > HF_APP_VALUE_MAX)
            return false;
        bytes += e->rows[i].key.size + e->rows[i].value.size;
    }
    for (size_t i = 0; i < e->outbox_count; i++) {
        if (!judge_name_valid(e->outbox[i].topic))
            return false;
        bytes += e->outbox[i].topic.size + e->outbox[i].payload.size;
    }
    return bytes <= HF_APPLY_BYTES_MAX;
}

/* The key to deliver with: that of the call, or "client/sequence". */
static struct hf_bytes delivery_key(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (q->key.size > 0)
        return q->key;
    size_t room = q->client.size + 32;
    char *text = judge_take(s->j, room);
    memcpy(text, q->client.data, q->client.size);
    int n = snprintf(text + q->client.size, 32, "/%llu", (unsigned long long)q->sequence);
    return hf_mem(text, q->client.size + (size_t)n);
}

static void enqueue(struct judge_step *s, const struct judge_effect *e)
{
    struct judge *j = s->j;
    if (e->outbox_count == 0)
        return;
    struct hf_bytes key = delivery_key(s);
    judge_touch(s, j->counters);
    if (!s->quiet)
        s->note.first_row = j->counters->body.counters.outbox + 1;
    judge_change(s, j->counters)->counters.outbox = s->note.first_row + e->outbox_count - 1;
    for (size_t i = 0; i < e->outbox_count; i++) {
        uint64_t number = s->note.first_row + i;
        struct judge_record *r =
            judge_find(j, JUDGE_OUTBOX, none(), hf_mem(&number, sizeof number), none());
        struct judge_body *b = judge_change(s, r);
        b->present = true;
        b->outbox = (struct hf_outbox){ .tenant = s->op->request.tenant,
                                        .number = number,
                                        .key = key,
                                        .topic = e->outbox[i].topic,
                                        .payload = e->outbox[i].payload,
                                        .state = HF_OUTBOX_PENDING,
                                        .created_at = s->now };
    }
}

void judge_rule_apply(struct judge_step *s)
{
    const struct judge_effect *e = &s->op->effect;
    if (!judge_name_valid(s->op->request.apply.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        if (e->runs > 0)
            judge_object(s, "the function ran for a malformed request");
        return;
    }
    if (e->runs != 1) {
        judge_object(s, "IR8: the function should have run once, and ran %u times", e->runs);
        return;
    }
    bool fits = within_limits(e);
    judge_allow(s,
                JUDGE_IS(!fits                  ? HF_INVALID_REQUEST
                         : e->returned == HF_OK ? HF_OK
                                                : HF_REFUSED),
                "the function's word is the answer");
    if (!fits || (e->returned != HF_OK && e->returned != HF_REFUSED)) {
        if (fits)
            judge_object(s, "the function returned %s, which is a fault or a misuse",
                         judge_status_name(e->returned));
        return;
    }
    if (judge_has(s, HF_RECORD_VALUE) && !judge_bytes_equal(s->op->answer.value, e->result))
        judge_object(s, "the answer is not the function's result");
    if (s->op->status != HF_OK)
        return;
    for (size_t i = 0; i < e->row_count; i++) {
        struct judge_body *b = judge_change(s, judge_look(s, JUDGE_VALUE, e->rows[i].key, none()));
        b->present = !e->rows[i].deleted;
        b->value = e->rows[i].value;
    }
    enqueue(s, e);
}

void judge_rule_get_value(struct judge_step *s)
{
    struct hf_bytes key = s->op->request.get.name;
    if (key.size < 1 || key.size > HF_APP_KEY_MAX) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the key is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_VALUE, key, none());
    if (!judge_allow(s, JUDGE_IS(r->body.present ? HF_OK : HF_NOT_KNOWN),
                     "IR8: a value is there from its put to its delete") ||
        !r->body.present || !judge_has(s, HF_RECORD_VALUE))
        return;
    if (!judge_bytes_equal(r->body.value, s->op->answer.value))
        judge_object(s, "the value is not the one that was put last");
}

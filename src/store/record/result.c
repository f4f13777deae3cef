/* Results: the answer, copied into memory that the caller owns. */
#include "store/record/result.h"

#include "base/assert.h"
#include "core/action.h"
#include "core/merge.h"

#include <stdlib.h>

void hf_result_clear(struct hf_result *result)
{
    free(result->heap);
    result->heap = NULL;
    result->answer = (struct hf_answer){ .status = HF_OK };
    result->token = (struct hf_token){ .status = HF_OK };
    result->replayed = false;
    result->now = 0;
}

enum hf_status hf_result_status(struct hf_result *result, enum hf_status status)
{
    if (!result)
        return status;
    hf_result_clear(result);
    result->answer.status = status;
    return status;
}

enum hf_status hf_result_fault(struct hf_result *result, const struct hf_cause *cause)
{
    if (result) {
        (void)hf_result_status(result, HF_STORAGE_FAILURE);
        result->answer.cause = *cause;
    }
    return HF_STORAGE_FAILURE;
}

/* Every slice of an answer, by kind. */
struct slices {
    struct hf_bytes *list[8];
    size_t count;
};

static void slices_of(struct hf_answer *a, struct slices *s)
{
    s->count = 0;
#define SLICE(member) s->list[s->count++] = &(member)
    switch (a->kind) {
    case HF_NO_RECORD: break;
    case HF_RECORD_HOLD:
        SLICE(a->hold.tenant);
        SLICE(a->hold.resource);
        SLICE(a->hold.requester);
        break;
    case HF_RECORD_RESOURCE:
        SLICE(a->resource.tenant);
        SLICE(a->resource.name);
        break;
    case HF_RECORD_GUARD:
        SLICE(a->guard.tenant);
        SLICE(a->guard.name);
        break;
    case HF_RECORD_SEEN: SLICE(a->seen.result); break;
    case HF_RECORD_CLAIM:
        SLICE(a->claim.tenant);
        SLICE(a->claim.key);
        SLICE(a->claim.response);
        break;
    case HF_RECORD_LEASE:
        SLICE(a->lease.tenant);
        SLICE(a->lease.name);
        SLICE(a->lease.holder);
        break;
    case HF_RECORD_REGISTER:
        SLICE(a->reg.tenant);
        SLICE(a->reg.name);
        SLICE(a->reg.value.bytes);
        break;
    case HF_RECORD_VALUE: SLICE(a->value); break;
    }
#undef SLICE
}

/* Decode the value of a register. Its stored form is already in the result; `items` is behind
 * it. */
static void value_expand(struct hf_value *value, struct hf_item *items, size_t count)
{
    struct hf_bytes form = value->bytes;
    bool good = hf_merge_decode(value->type, form, items, count, value);
    HF_ASSERT(good);
}

/* False if out of memory, or if the answer has more than `answer_max` bytes. */
static bool fill(struct hf_result *result, const struct hf_plan *plan, hf_time now,
                 size_t answer_max)
{
    struct slices s;
    size_t size = 0, items = 0;
    free(result->heap);
    result->heap = NULL;
    result->answer = plan->answer;
    result->token = plan->token;
    result->replayed = plan->replayed;
    result->now = now;
    slices_of(&result->answer, &s);
    for (size_t i = 0; i < s.count; i++)
        size += s.list[i]->size;
    if (result->answer.kind == HF_RECORD_REGISTER)
        items = hf_merge_count(result->answer.reg.value.type, result->answer.reg.value.bytes);
    if (answer_max && size + items * sizeof(struct hf_item) > answer_max) {
        if (result->answer.status == HF_OK || result->answer.kind == HF_RECORD_VALUE)
            return false;
        result->answer.kind = HF_NO_RECORD; /* a refusal's record only explains */
        s.count = size = items = 0;
    }
    size_t aligned = (size + 15) & ~(size_t)15;
    unsigned char *room = result->room;
    if (items > 0 || size > sizeof result->room) {
        room = result->heap = malloc(aligned + items * sizeof(struct hf_item));
        if (!room)
            return false;
    }
    unsigned char *at = room;
    for (size_t i = 0; i < s.count; i++) {
        if (s.list[i]->size > 0)
            memcpy(at, s.list[i]->data, s.list[i]->size);
        s.list[i]->data = at;
        at += s.list[i]->size;
    }
    if (result->answer.kind == HF_RECORD_REGISTER)
        value_expand(&result->answer.reg.value, (struct hf_item *)(void *)(room + aligned), items);
    return true;
}

enum hf_status hf_result_answer(const struct hf_request *request, const struct hf_plan *plan,
                                hf_time now, size_t answer_max, struct hf_result *result)
{
    if (result && !fill(result, plan, now, answer_max))
        return hf_result_status(result, hf_action_reads(request->action) && answer_max == 0
                                            ? HF_NO_MEMORY
                                            : HF_INDETERMINATE);
    if (request->action == HF_GET_TOKEN && plan->token.action != 0)
        return HF_OK;
    return plan->answer.status;
}

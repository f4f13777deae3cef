/* plan.c: the plan's rows and its scratch space. */
#include "base/assert.h"
#include "core/core.h"

/* Scratch is given out in steps of this many bytes, so that code points and pointers fit
 * anywhere. */
#define STEP ((size_t)16)

void hf_plan_reset(struct hf_plan *plan)
{
    /* Everything in front of the rows. The rows are some 11 KiB and are zeroed one by one when
     * used. */
    memset(plan, 0, offsetof(struct hf_plan, rows));
    plan->scratch_used = 0;
}

struct hf_row *hf_plan_row(struct hf_plan *plan, enum hf_row_kind kind)
{
    HF_ASSERT(plan->row_count < HF_PLAN_ROWS);
    struct hf_row *row = &plan->rows[plan->row_count++];
    memset(row, 0, sizeof *row);
    row->kind = kind;
    return row;
}

unsigned char *hf_plan_room(struct hf_plan *plan, size_t size)
{
    size_t from = (plan->scratch_used + STEP - 1) / STEP * STEP;
    if (from > HF_PLAN_SCRATCH || size > HF_PLAN_SCRATCH - from)
        return NULL;
    plan->scratch_used = from + size;
    return plan->scratch + from;
}

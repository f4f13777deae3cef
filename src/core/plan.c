/* plan.c: the plan's rows and its scratch space. */
#include "base/assert.h"
#include "core/core.h"

/* Alignment of scratch: suitable for code points and pointers. */
#define STEP ((size_t)16)

void hf_plan_reset(struct hf_plan *plan)
{
    /* Only what is before the rows. The rows are about 11 KiB; hf_plan_row clears each one when it
     * is used. */
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

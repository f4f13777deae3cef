#include "api/problem.h"

unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer)
{
    if (answer->status != HF_OK)
        return hf_refusal_http(answer->status);
    if (action == HF_BEGIN) /* a settled claim is a stored answer, nothing new */
        return answer->kind == HF_RECORD_CLAIM && answer->claim.state == HF_CLAIM_STARTED ? 201
                                                                                          : 200;
    if (action == HF_CONFIRM_LATE)
        return answer->kind == HF_RECORD_HOLD && answer->hold.reacquires[0] ? 201 : 200;
    return action == HF_PLACE_HOLD || action == HF_GRANT ? 201 : 200;
}

enum hf_retry hf_retry_of(unsigned http_status)
{
    /* Too slow, too many, too busy: the same request may pass later. */
    return http_status == 408 || http_status == 429 || http_status == 503 ? HF_RETRY_SAME_KEY
                                                                          : HF_RETRY_NO;
}

/* The members that every problem has. The object stays open. */
static void problem_begin(struct hf_json *j, const struct hf_refusal *problem)
{
    static const char *const retries[] = {
        [HF_RETRY_NO] = "no", [HF_RETRY_SAME_KEY] = "same-key", [HF_RETRY_NEW_KEY] = "new-key"
    };
    hf_json_object(j);
    hf_json_name(j, "type");
    hf_json_joined(j, "urn:holdfast:", problem->code);
    hf_json_name(j, "title");
    hf_json_text(j, problem->title);
    hf_json_name(j, "status");
    hf_json_uint(j, problem->http_status);
    hf_json_name(j, "detail");
    hf_json_bytes(j, problem->detail);
    hf_json_name(j, "code");
    hf_json_text(j, problem->code);
    hf_json_name(j, "retry");
    hf_json_text(j, retries[problem->retry]);
}

void hf_api_problem(struct hf_json *j, const struct hf_refusal *problem)
{
    problem_begin(j, problem);
    hf_json_object_end(j);
}

/* What an operator or a worker needs to settle the claim. */
static void claim_add(struct hf_json *j, const struct hf_claim *claim)
{
    hf_json_name(j, "key");
    hf_json_opaque(j, claim->key);
    hf_json_name(j, "fence");
    hf_json_uint(j, claim->fence);
    hf_json_name(j, "begun_at");
    hf_json_time(j, claim->begun_at);
    hf_json_name(j, "lease_expires_at");
    hf_json_time(j, claim->lease_expires_at);
    if (claim->state == HF_CLAIM_UNKNOWN) {
        hf_json_name(j, "unknown_since");
        hf_json_time(j, claim->lease_expires_at);
    }
}

void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer,
                    struct hf_bytes detail)
{
    struct hf_refusal problem = hf_refusal_of(action, answer->status);
    bool unsettled = answer->status == HF_IN_PROGRESS || answer->status == HF_OUTCOME_UNKNOWN;
    if (detail.size > 0)
        problem.detail = detail;
    else if (answer->kind == HF_RECORD_VALUE && answer->value.size > 0)
        problem.detail = answer->value;
    problem_begin(j, &problem);
    if (unsettled && answer->kind == HF_RECORD_CLAIM)
        claim_add(j, &answer->claim);
    if (answer->refund) {
        hf_json_name(j, "verdict");
        hf_json_text(j, "refund");
    }
    hf_json_object_end(j);
}

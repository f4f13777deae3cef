#include "core/token.h"

#include "core/answer.h"
#include "core/claim.h"
#include "core/name.h"

/* The key has been used: is this a duplicate or a collision? A collision has no record, but the
 * caller may see what the key is bound to. */
static void judge(const struct hf_command *cmd, const struct hf_remembered *first,
                  struct hf_plan *plan)
{
    hf_token_of_call(first, &plan->token);
    if (first->action != cmd->request->action ||
        memcmp(first->digest, cmd->digest, sizeof cmd->digest) != 0) {
        hf_answer_status(plan, HF_TOKEN_COLLISION);
        return;
    }
    plan->answer = first->answer;
    plan->replayed = true;
}

/* The key is new: bind it. token.status is set once the action is decided. */
static void bind(const struct hf_command *cmd, hf_time now, enum hf_remember how,
                 struct hf_plan *plan)
{
    plan->remember = how;
    plan->token.action = cmd->request->action;
    memcpy(plan->token.digest, cmd->digest, sizeof cmd->digest);
    plan->token.recorded_at = now;
    plan->token.expires_at =
        how == HF_REMEMBER_KEY ? now + cmd->rules->idempotency_window_ms : INT64_MAX;
}

/* True: no call and no claim has the key at `now`. False: the answer is complete. */
static bool key_is_new(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                       struct hf_plan *plan)
{
    struct hf_scoped key = { cmd->request->tenant, cmd->request->key };
    struct hf_remembered first;
    enum hf_found found = view->token(view->ctx, key, &first);
    if (found == HF_FOUND && now < first.expires_at) {
        judge(cmd, &first, plan);
        return false;
    }
    struct hf_claim claim;
    enum hf_found claimed = found == HF_UNREADABLE ? found : view->claim(view->ctx, key, &claim);
    if (claimed == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    if (claimed == HF_FOUND && hf_claim_alive(&claim, now)) {
        hf_token_of_claim(&claim, &plan->token);
        hf_answer_status(plan, HF_TOKEN_COLLISION);
        return false;
    }
    return true;
}

/* Has the number left the ones that are remembered? */
static bool number_is_old(const struct hf_client *c, uint64_t n)
{
    return n < c->highest && c->highest - n >= HF_SEQUENCE_WINDOW;
}

static bool bit_get(const struct hf_client *c, uint64_t n)
{
    return c->used[n % HF_SEQUENCE_WINDOW / 8] >> (n % 8) & 1;
}

/* Mark `n` as used. The numbers between the old highest and `n` become unused. */
static void number_use(struct hf_client *c, uint64_t n)
{
    if (n > c->highest && n - c->highest >= HF_SEQUENCE_WINDOW) {
        memset(c->used, 0, sizeof c->used);
    } else {
        for (uint64_t below = c->highest; below < n; below++)
            c->used[(below + 1) % HF_SEQUENCE_WINDOW / 8] &= (uint8_t) ~(1U << ((below + 1) % 8));
    }
    c->used[n % HF_SEQUENCE_WINDOW / 8] |= (uint8_t)(1U << (n % 8));
    if (n > c->highest)
        c->highest = n;
}

/* The number `n` has been used: the first answer, or a collision. */
static void number_again(const struct hf_view *view, const struct hf_command *cmd,
                         struct hf_plan *plan)
{
    struct hf_scoped client = { cmd->request->tenant, cmd->request->client };
    struct hf_remembered first;
    /* The number is marked as used, so a missing answer means that the store cannot read it. */
    if (view->sequence(view->ctx, client, cmd->request->sequence, &first) == HF_FOUND)
        judge(cmd, &first, plan);
    else
        hf_answer_status(plan, HF_STORAGE_FAILURE);
}

/* True: the client's number is new, and marked as used in `client`; *known: the client's row
 * exists. False: the answer is complete. */
static bool number_is_new(const struct hf_view *view, const struct hf_command *cmd,
                          struct hf_client *client, bool *known, struct hf_plan *plan)
{
    const struct hf_request *r = cmd->request;
    struct hf_scoped name = { r->tenant, r->client };
    enum hf_found found = view->client(view->ctx, name, client);
    if (found == HF_UNREADABLE) {
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    *known = found == HF_FOUND;
    if (found == HF_ABSENT)
        *client = (struct hf_client){ .tenant = r->tenant, .name = r->client };
    if (r->sequence > client->highest && r->sequence - client->highest > HF_SEQUENCE_AHEAD_MAX) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return false;
    }
    if (number_is_old(client, r->sequence)) {
        hf_answer_status(plan, HF_WINDOW_ELAPSED);
        return false;
    }
    if (r->sequence <= client->highest && bit_get(client, r->sequence)) {
        number_again(view, cmd, plan);
        return false;
    }
    number_use(client, r->sequence);
    return true;
}

bool hf_token_valid(const struct hf_command *cmd)
{
    const struct hf_request *r = cmd->request;
    if (r->client.size == 0)
        return hf_key_valid(cmd, r->key);
    return r->key.size == 0 && r->sequence >= 1 && hf_name_valid(r->client);
}

bool hf_token_admit(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan)
{
    if (!hf_token_valid(cmd)) {
        hf_answer_status(plan, HF_INVALID_REQUEST);
        return false;
    }
    bool by_key = cmd->request->client.size == 0;
    struct hf_client client;
    bool known = true;
    if (!(by_key ? key_is_new(view, cmd, now, plan)
                 : number_is_new(view, cmd, &client, &known, plan)))
        return false;
    if (hf_refuses(cmd) ||
        (cmd->refuse_writes && !known)) { /* no room was kept for a new client's row */
        hf_answer_status(plan, HF_STORAGE_FAILURE);
        return false;
    }
    bind(cmd, now, by_key ? HF_REMEMBER_KEY : HF_REMEMBER_SEQUENCE, plan);
    if (!by_key)
        hf_plan_row(plan, HF_ROW_CLIENT)->client = client;
    return true;
}

enum hf_found hf_token_number(const struct hf_view *view, const struct hf_request *r,
                              struct hf_remembered *first, bool *old)
{
    struct hf_scoped name = { r->tenant, r->client };
    struct hf_client client;
    enum hf_found found = view->client(view->ctx, name, &client);
    *old = found == HF_FOUND && number_is_old(&client, r->sequence);
    if (found != HF_FOUND || *old)
        return found == HF_UNREADABLE ? HF_UNREADABLE : HF_ABSENT;
    if (r->sequence > client.highest || !bit_get(&client, r->sequence))
        return HF_ABSENT;
    found = view->sequence(view->ctx, name, r->sequence, first);
    return found == HF_FOUND ? HF_FOUND : HF_UNREADABLE; /* it was used, so it has an answer */
}

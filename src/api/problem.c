#include "api/problem.h"

/* The texts of a status for all actions. `detail` is used if the table below has no entry. */
struct words {
    enum hf_status status;
    unsigned http_status;
    const char *title;
    const char *detail;
};

static const struct words general[] = {
    { HF_INVALID_REQUEST, 400, "The request is not valid",
      "A part of the request is missing, too long or malformed. Correct it and send it with a new "
      "key." },
    { HF_NOT_KNOWN, 404, "Not known here",
      "There is nothing of this name or id here. Check the spelling, the tenant and the store." },
    { HF_RESOURCE_UNAVAILABLE, 409, "The resource is not available",
      "No unit of the resource is free. Try again later with a new key." },
    { HF_NOT_HELD, 409, "Not held any more",
      "It has ended already, and it ends once. Look at it to see how." },
    { HF_WINDOW_ELAPSED, 409, "The time has run out",
      "This client number is too far behind the newest one to be remembered, so it was not acted "
      "upon. Go on with a number above the highest." },
    { HF_WINDOW_NOT_ELAPSED, 409, "The time has not run out yet",
      "It is too early for this. Wait until expires_at and ask again with a new key." },
    { HF_IN_PROGRESS, 409, "Someone is at work on this key",
      "Another caller has begun this and its lease has not run out. Ask again in a moment." },
    { HF_OUTCOME_UNKNOWN, 409, "The outcome is not known",
      "Whoever began this went silent, so it may or may not have happened. Find out, then complete "
      "or fail it with its fence." },
    { HF_STALE_FENCE, 412, "The fence is stale",
      "A fence is good for one write, and this one is not above the highest that was seen here. "
      "Stop, or get a new fence." },
    { HF_VERSION_MISMATCH, 412, "The version is another one",
      "The register was changed since it was read. Read it again and decide anew, with a new "
      "key." },
    { HF_TOKEN_COLLISION, 422, "The key was used for something else",
      "This key belongs to another action or to other parameters, and nothing was changed. Use a "
      "new key for a new request, or send exactly the first request to get its answer again." },
    { HF_LEASE_HELD, 409, "The lease is held",
      "Someone holds this lease now. Try again with a new key after it has run out or was given "
      "back." },
    { HF_REFUSED, 409, "Refused by the application",
      "The application's own rule refused this. Its answer is remembered under this key." },
    { HF_STORAGE_FAILURE, 503, "The store cannot take this now",
      "There is no room on disk, no file can be opened, the memory limit is reached, a record "
      "cannot be read, the database cannot be asked, a row of it stays locked, or the store is "
      "closing. This call changed nothing. Try again later with the same key: an earlier call with "
      "it may have acted." },
    { HF_NO_MEMORY, 503, "Out of memory",
      "Nothing was changed and nothing is remembered: try again later with the same key." },
    { HF_MISUSE, 500, "The library was called wrongly",
      "This is a mistake in the program and not in the request. Nothing was changed; please report "
      "it." },
    { HF_STORE_BUSY, 503, "The store is in use",
      "Another process has this store open. Talk to that process, or wait until it has ended." },
    { HF_STORE_DAMAGED, 503, "The store is damaged",
      "The journal is damaged, not merely cut short, so it is not opened. The audit shows what is "
      "whole." },
    { HF_STORE_NEWER, 503, "The store is newer than this program",
      "It was written in a format that this program does not know. Use a newer holdfast." },
    { HF_STORE_ABSENT, 503, "There is no store",
      "There is no store at this place. Check the place, or make one with the first change." },
    { HF_INDETERMINATE, 503, "The outcome is not known yet",
      "The store failed while this was being written, so it may have happened. Ask again with the "
      "same key: the retry finds the truth." },
};

struct detail {
    enum hf_action action;
    enum hf_status status;
    const char *text;
};

#define NAMES "1 to 1024 bytes of UTF-8 without NUL"
#define KEYS "a key of 1 byte up to the token length limit (256 unless configured)"
#define TIMES "from 1ms to 3650d"
#define AGAIN " Correct it and send it with a new key."
#define NO_HOLD "There is no hold with this id. Check the id, the tenant and the store."
#define ENDED                                                                                      \
    "The hold was confirmed, released or expired before, and a hold ends once. Look at it to see " \
    "how."
#define HOLD_INVALID "This needs a hold's id and " KEYS "." AGAIN
#define NO_GUARD "There is no guard of this name. Set it up first, with its window."
#define IDENTITY_INVALID                                                                        \
    "A guard's name is " NAMES                                                                  \
    ". An identity has 1 to 1024 bytes, is UTF-8 if the guard's match rule "                    \
    "needs it, and is not blank under that rule; a result has at most 65536 bytes. Correct it " \
    "and ask "                                                                                  \
    "again."
#define NO_CLAIM \
    "There is no claim under this key. Begin it first; a settled one is forgotten in time."
#define SETTLE_INVALID                                                                          \
    "This needs the claim's key, the fence that begin answered with, at most 1048576 bytes of " \
    "response, "                                                                                \
    "and a lease " TIMES ". Correct it and ask again."
#define NO_LEASE \
    "Nobody ever held a lease of this name, or it was deleted. Check the name and the tenant."
#define LEASE_INVALID \
    "This needs the lease's name, the fence that it was granted with, and a ttl " TIMES "."
#define LEASE_STALE \
    "The lease was granted again since, under a higher fence. Stop acting on the old one."
#define LEASE_OVER "The lease ran out or was given back. Ask for a new one, and use its fence."
#define SETTLED                                                                                   \
    "This claim was settled in another way before, and the first word stands. Look at it to see " \
    "how."
#define CLAIM_STALE \
    "This claim was begun again under a higher fence, so this late word is not taken. Stop."

static const struct detail details[] = {
    { HF_PLACE_HOLD, HF_INVALID_REQUEST,
      "A hold needs a resource and a requester of " NAMES ", a duration " TIMES ", and " KEYS
      "." AGAIN },
    { HF_PLACE_HOLD, HF_RESOURCE_UNAVAILABLE,
      "Every unit of the resource is taken, or it is closed, or a strict registry does not know "
      "it. Try again later with a new key: this one stays bound to this answer." },
    { HF_PLACE_HOLD, HF_STALE_FENCE,
      "A hold on this resource has carried this fence or a higher one before (GET shows the "
      "resource's `fence`), and a fence is good for one hold. Get a new grant and use its fence, "
      "with a new key." },
    { HF_CONFIRM, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_CONFIRM, HF_NOT_KNOWN, NO_HOLD },
    { HF_CONFIRM, HF_NOT_HELD, ENDED },
    { HF_CONFIRM, HF_WINDOW_ELAPSED,
      "The hold's time ran out before it was confirmed. Place a new hold, with a new key." },
    { HF_RELEASE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_RELEASE, HF_NOT_KNOWN, NO_HOLD },
    { HF_RELEASE, HF_NOT_HELD, ENDED },
    { HF_EXPIRE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_EXPIRE, HF_NOT_KNOWN, NO_HOLD },
    { HF_EXPIRE, HF_NOT_HELD, ENDED },
    { HF_EXPIRE, HF_WINDOW_NOT_ELAPSED,
      "The hold's time has not run out. Wait until expires_at and ask again with a new key, or "
      "release it." },
    { HF_REVERSE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_REVERSE, HF_NOT_KNOWN, NO_HOLD },
    { HF_REVERSE, HF_NOT_HELD,
      "Only a confirmed hold that was not given back before can be reversed. Look at it to see its "
      "state." },
    { HF_SET_RESOURCE, HF_INVALID_REQUEST,
      "A resource's name is " NAMES
      ", and its capacity is 1 to 1000000000. Correct it and ask again." },
    { HF_SET_RESOURCE, HF_RESOURCE_UNAVAILABLE,
      "The capacity cannot go below the units that are held or confirmed now. Release or reverse "
      "some first, or close the resource." },
    { HF_SET_GUARD, HF_INVALID_REQUEST,
      "A guard's name is " NAMES ", its window is " TIMES
      ", and its match rule has each of exact, trim, casefold, normalize and hash at most once, 4 "
      "steps in all, hash last. Correct it and ask again." },
    { HF_CHECK, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_CHECK, HF_NOT_KNOWN, NO_GUARD },
    { HF_RECORD, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_RECORD, HF_NOT_KNOWN, NO_GUARD },
    { HF_ADMIT, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_ADMIT, HF_NOT_KNOWN, NO_GUARD },
    { HF_BEGIN, HF_INVALID_REQUEST,
      "A claim needs " KEYS ", a fingerprint or a payload, and a lease " TIMES
      ". Correct it and ask again." },
    { HF_BEGIN, HF_TOKEN_COLLISION,
      "This key was begun with another fingerprint, or used by another call, and nothing was "
      "changed. Use a new key for new work, or begin with exactly the first payload." },
    { HF_COMPLETE, HF_INVALID_REQUEST, SETTLE_INVALID },
    { HF_COMPLETE, HF_NOT_KNOWN, NO_CLAIM },
    { HF_COMPLETE, HF_STALE_FENCE, CLAIM_STALE },
    { HF_COMPLETE, HF_TOKEN_COLLISION, SETTLED },
    { HF_FAIL, HF_INVALID_REQUEST, SETTLE_INVALID },
    { HF_FAIL, HF_NOT_KNOWN, NO_CLAIM },
    { HF_FAIL, HF_STALE_FENCE, CLAIM_STALE },
    { HF_FAIL, HF_TOKEN_COLLISION, SETTLED },
    { HF_HEARTBEAT, HF_INVALID_REQUEST, SETTLE_INVALID },
    { HF_HEARTBEAT, HF_NOT_KNOWN, NO_CLAIM },
    { HF_HEARTBEAT, HF_STALE_FENCE, CLAIM_STALE },
    { HF_HEARTBEAT, HF_NOT_HELD,
      "The claim is settled, so there is nothing left to keep alive. Stop." },
    { HF_GRANT, HF_INVALID_REQUEST,
      "A lease needs a name and a holder of " NAMES ", a ttl " TIMES ", and " KEYS "." AGAIN },
    { HF_RENEW, HF_INVALID_REQUEST, LEASE_INVALID },
    { HF_RENEW, HF_NOT_KNOWN, NO_LEASE },
    { HF_RENEW, HF_STALE_FENCE, LEASE_STALE },
    { HF_RENEW, HF_NOT_HELD, LEASE_OVER },
    { HF_RETURN, HF_INVALID_REQUEST, LEASE_INVALID },
    { HF_RETURN, HF_NOT_KNOWN, NO_LEASE },
    { HF_RETURN, HF_STALE_FENCE, LEASE_STALE },
    { HF_RETURN, HF_NOT_HELD, LEASE_OVER },
    { HF_WRITE, HF_INVALID_REQUEST,
      "A write needs a register's name of " NAMES
      ", a value of at most 65536 bytes, and a register of the type "
      "plain: one that is merged (GET shows its type) is never written." AGAIN },
    { HF_WRITE, HF_STALE_FENCE,
      "A write has carried this fence or a higher one before (GET shows the register's `fence`), "
      "and a fence is good for one write of a register. Get a new grant and use its fence, with a "
      "new key." },
    { HF_DELETE_REGISTER, HF_INVALID_REQUEST,
      "This needs a register's name of " NAMES " and " KEYS "." AGAIN },
    { HF_DELETE_REGISTER, HF_NOT_KNOWN,
      "There is no register of this name. Check the name and the tenant; it may have been deleted "
      "before." },
    { HF_DELETE_REGISTER, HF_STALE_FENCE,
      "A write has carried this fence or a higher one before (GET shows the register's `fence`). "
      "Get a new grant and use its fence, with a new key." },
    { HF_DELETE_LEASE, HF_INVALID_REQUEST,
      "This needs the lease's name, " KEYS
      ", and no fence above the one that it was granted with." AGAIN },
    { HF_DELETE_LEASE, HF_NOT_KNOWN, NO_LEASE },
    { HF_DELETE_LEASE, HF_STALE_FENCE, LEASE_STALE },
    { HF_DELETE_LEASE, HF_LEASE_HELD,
      "Someone holds this lease now, and only its holder may delete it, with its fence. Try again "
      "with a new key after it has run out or was given back." },
    { HF_MERGE, HF_INVALID_REQUEST,
      "A merge needs a register's name of " NAMES
      ", the type that the register has, and a value of that type within the limits (1024 items, "
      "65536 bytes). Correct it and ask again." },
    { HF_APPLY, HF_INVALID_REQUEST,
      "This needs " KEYS ", a name, and at most 64 rows and 1048576 bytes of effects." AGAIN },
    { HF_GET_HOLD, HF_NOT_KNOWN, NO_HOLD },
    { HF_GET_RESOURCE, HF_NOT_KNOWN,
      "There is no resource of this name yet. It is made by its first hold, or by setting its "
      "capacity." },
    { HF_GET_GUARD, HF_NOT_KNOWN, NO_GUARD },
    { HF_GET_CLAIM, HF_NOT_KNOWN, NO_CLAIM },
    { HF_GET_LEASE, HF_NOT_KNOWN, NO_LEASE },
    { HF_GET_TOKEN, HF_NOT_KNOWN,
      "No call with this key is remembered: it never arrived, or its window has closed." },
};

static const struct words *words_of(enum hf_status status)
{
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        if (general[i].status == status)
            return &general[i];
    return NULL;
}

unsigned hf_api_http_status(enum hf_status status)
{
    const struct words *w = words_of(status);
    return status == HF_OK ? 200 : w ? w->http_status : 500;
}

unsigned hf_api_answer_status(enum hf_action action, const struct hf_answer *answer)
{
    if (answer->status != HF_OK)
        return hf_api_http_status(answer->status);
    if (action == HF_BEGIN) /* a settled claim is a stored answer, nothing new */
        return answer->kind == HF_RECORD_CLAIM && answer->claim.state == HF_CLAIM_STARTED ? 201
                                                                                          : 200;
    return action == HF_PLACE_HOLD || action == HF_GRANT ? 201 : 200;
}

struct hf_api_problem hf_api_problem_of(enum hf_action action, enum hf_status status)
{
    const struct words *w = words_of(status);
    struct hf_api_problem problem = { .code = hf_status_code(status),
                                      .title = w ? w->title : "Something went wrong",
                                      .detail = hf_str(w ? w->detail
                                                         : "The program has no words for this."),
                                      .http_status = hf_api_http_status(status) };
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (details[i].action == action && details[i].status == status)
            problem.detail = hf_str(details[i].text);
    return problem;
}

void hf_api_problem(struct hf_json *j, const struct hf_api_problem *problem)
{
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
    hf_json_object_end(j);
}

void hf_api_refusal(struct hf_json *j, enum hf_action action, const struct hf_answer *answer)
{
    struct hf_api_problem problem = hf_api_problem_of(action, answer->status);
    if (answer->status == HF_REFUSED && answer->kind == HF_RECORD_VALUE && answer->value.size > 0)
        problem.detail = answer->value;
    hf_api_problem(j, &problem);
}

#include "refusal/words.h"

#include "core/action.h"

/* The texts of a status for all actions. `detail` is used if the table below has no entry. */
struct words {
    enum hf_status status;
    unsigned http_status;
    enum hf_retry retry;
    const char *title;
    const char *detail;
};

#define NO HF_RETRY_NO
#define SAME_KEY HF_RETRY_SAME_KEY
#define NEW_KEY HF_RETRY_NEW_KEY

static const struct words general[] = {
    { HF_INVALID_REQUEST, 400, NO, "Invalid request",
      "A part of the request is missing, too long or malformed. Correct it and use a new key." },
    { HF_NOT_KNOWN, 404, NO, "Not known",
      "Nothing has this name or id. Check the spelling, the tenant and the store." },
    { HF_RESOURCE_UNAVAILABLE, 409, NEW_KEY, "The resource is not available",
      "No unit of the resource is free. Retry later with a new key." },
    { HF_NOT_HELD, 409, NO, "No longer held",
      "It has already ended, and it ends only once. Get it to see how it ended." },
    { HF_WINDOW_ELAPSED, 409, NO, "The time is over",
      "This number of a numbered client is too far below its newest number, so nothing was done. "
      "Continue with a number above the newest." },
    { HF_WINDOW_NOT_ELAPSED, 409, NEW_KEY, "Too early",
      "The time is not over. Wait until expires_at and retry with a new key." },
    { HF_IN_PROGRESS, 409, SAME_KEY, "In progress",
      "Another caller has begun this claim, and its lease has not expired. Retry later." },
    { HF_OUTCOME_UNKNOWN, 409, NO, "Outcome unknown",
      "The lease of this claim expired before it was settled, so its effect may or may not have "
      "happened. Find out, then complete or fail it with its fence." },
    { HF_STALE_FENCE, 412, NO, "Stale fence",
      "A fence is valid for one write, and this one is not above the highest fence seen. Stop, or "
      "get a new fence." },
    { HF_VERSION_MISMATCH, 412, NEW_KEY, "Version mismatch",
      "The register has changed since it was read. Read it again, and write with its new version "
      "and a new key." },
    { HF_TOKEN_COLLISION, 422, NEW_KEY, "Key already used for another request",
      "This key is already bound to another action or to other parameters. Nothing was changed. "
      "Use a new key for a new request, or send exactly the first request to get its answer." },
    { HF_LEASE_HELD, 409, NEW_KEY, "The lease is held",
      "Another holder has this lease now. Retry with a new key after it has expired or was "
      "released." },
    { HF_REFUSED, 409, NO, "Refused by the application",
      "A rule of the application refused this. Its answer is stored with this key." },
    { HF_STORAGE_FAILURE, 503, SAME_KEY, "The store cannot do this now",
      "The store is out of disk space or files, the memory limit is reached, a record cannot be "
      "read, the database cannot be reached, a lock timed out, or the store is closing. This call "
      "changed nothing. Retry later with the same key: an earlier call with it may have acted." },
    { HF_NO_MEMORY, 503, SAME_KEY, "Out of memory",
      "Nothing was changed and nothing was stored. Retry later with the same key." },
    { HF_MISUSE, 500, NO, "Wrong use of the library",
      "This is a bug in the program, not in the request. Nothing was changed. Please report it." },
    { HF_STORE_BUSY, 503, SAME_KEY, "The store is in use",
      "Another process has this store open. Use that process, or wait until it has ended." },
    { HF_STORE_DAMAGED, 503, NO, "The store is damaged",
      "The journal is damaged, not only cut short, so the store was not opened. The audit shows "
      "which records are undamaged." },
    { HF_STORE_NEWER, 503, NO, "The store is newer than this program",
      "Its format is unknown to this program. Use a newer holdfast." },
    { HF_STORE_ABSENT, 503, NO, "There is no store",
      "There is no store at this place. Check the place; the first change creates a store." },
    { HF_INDETERMINATE, 503, SAME_KEY, "Outcome unknown",
      "The store failed during the write, so the request may have happened. Retry with the same "
      "key to find out." },
};

struct detail {
    enum hf_action action;
    enum hf_status status;
    const char *text;
};

#define NAMES "1 to 1024 bytes of UTF-8 without NUL"
#define KEYS "a key of 1 byte up to the length limit (256 by default)"
#define TIMES "from 1ms to 3650d"
#define AGAIN " Correct it and use a new key."
#define NO_HOLD "There is no hold with this id. Check the id, the tenant and the store."
#define ENDED "The hold is already confirmed, released or expired. Get it to see its state."
#define HOLD_INVALID "This needs a hold's id and " KEYS "." AGAIN
#define NO_GUARD "There is no guard of this name. Set it up first, with its window."
#define IDENTITY_INVALID                                                                        \
    "A guard's name is " NAMES                                                                  \
    ". An identity has 1 to 1024 bytes, is UTF-8 if the guard's match rule "                    \
    "needs it, and is not blank under that rule; a result has at most 65536 bytes. Correct it " \
    "and retry."
#define NO_CLAIM                                                                             \
    "There is no claim with this key. Begin it first; a settled claim is removed after its " \
    "retention."
#define SETTLE_INVALID                                                                          \
    "This needs the claim's key, the fence that begin answered with, at most 1048576 bytes of " \
    "response, and a lease " TIMES ". Correct it and retry."
#define NO_LEASE "There is no lease of this name, or it was deleted. Check the name and the tenant."
#define LEASE_INVALID \
    "This needs the lease's name, the fence that it was granted with, and a ttl " TIMES "."
#define LEASE_STALE "The lease was granted again with a higher fence. Stop using the old one."
#define LEASE_OVER "The lease has expired or was released. Acquire a new one, and use its fence."
#define SETTLED \
    "This claim is already settled with another result, which stays. Get it to see the result."
#define CLAIM_STALE \
    "Your update was rejected: a newer attempt with a higher fence has taken over. Stop."

static const struct detail details[] = {
    { HF_PLACE_HOLD, HF_INVALID_REQUEST,
      "A hold needs a resource and a requester of " NAMES ", a duration " TIMES
      ", a fence that is a whole number if there is one, and " KEYS "." AGAIN },
    { HF_PLACE_HOLD, HF_RESOURCE_UNAVAILABLE,
      "Every unit of the resource is taken, or it is closed, or it is unknown and the registry is "
      "strict. Retry later with a new key: this key stays bound to this answer." },
    { HF_PLACE_HOLD, HF_STALE_FENCE,
      "A hold on this resource has already used this fence or a higher one (GET shows the "
      "resource's `fence`), and a fence is valid for one hold; or there is no fence, and the "
      "resource requires one. Acquire a new lease and use its fence, with a new key." },
    { HF_CONFIRM, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_CONFIRM, HF_NOT_KNOWN, NO_HOLD },
    { HF_CONFIRM, HF_NOT_HELD, ENDED },
    { HF_CONFIRM, HF_WINDOW_ELAPSED,
      "The hold expired before it was confirmed. Place a new hold, with a new key." },
    { HF_CONFIRM_LATE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_CONFIRM_LATE, HF_NOT_KNOWN, NO_HOLD },
    { HF_CONFIRM_LATE, HF_NOT_HELD,
      "The hold has already ended, or a late confirm has reacquired its unit before. Get it to see "
      "how it ended." },
    { HF_CONFIRM_LATE, HF_WINDOW_ELAPSED,
      "The hold expired before it was confirmed, and no unit of its resource is free. Refund the "
      "payment." },
    { HF_RELEASE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_RELEASE, HF_NOT_KNOWN, NO_HOLD },
    { HF_RELEASE, HF_NOT_HELD, ENDED },
    { HF_EXPIRE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_EXPIRE, HF_NOT_KNOWN, NO_HOLD },
    { HF_EXPIRE, HF_NOT_HELD, ENDED },
    { HF_EXPIRE, HF_WINDOW_NOT_ELAPSED,
      "The hold's time is not over. Wait until expires_at and retry with a new key, or release "
      "it." },
    { HF_REVERSE, HF_INVALID_REQUEST, HOLD_INVALID },
    { HF_REVERSE, HF_NOT_KNOWN, NO_HOLD },
    { HF_REVERSE, HF_NOT_HELD,
      "Only a confirmed hold that is not yet reversed can be reversed. Get it to see its state." },
    { HF_SET_RESOURCE, HF_INVALID_REQUEST,
      "A resource's name is " NAMES
      ", and its capacity is 1 to 1000000000. Correct it and retry." },
    { HF_SET_RESOURCE, HF_RESOURCE_UNAVAILABLE,
      "The capacity cannot go below the units that are held or confirmed now. Release or reverse "
      "some first, or close the resource." },
    { HF_SET_GUARD, HF_INVALID_REQUEST,
      "A guard's name is " NAMES ", its window is " TIMES
      ", and its match rule has each of exact, trim, casefold, normalize and hash at most once, 4 "
      "steps in all, hash last. Correct it and retry." },
    { HF_SET_GUARD, HF_WINDOW_NOT_ELAPSED,
      "The guard has live entries, which were recorded under its present match rule. Under another "
      "rule a duplicate of one may not be recognised. Wait until their windows have closed, or "
      "send force." },
    { HF_CHECK, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_CHECK, HF_NOT_KNOWN, NO_GUARD },
    { HF_RECORD, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_RECORD, HF_NOT_KNOWN, NO_GUARD },
    { HF_ADMIT, HF_INVALID_REQUEST, IDENTITY_INVALID },
    { HF_ADMIT, HF_NOT_KNOWN, NO_GUARD },
    { HF_BEGIN, HF_INVALID_REQUEST,
      "A claim needs " KEYS ", a fingerprint or a payload, and a lease and a retention " TIMES
      ". Correct it and retry." },
    { HF_BEGIN, HF_TOKEN_COLLISION,
      "This key is already bound to another fingerprint or to another call. Nothing was changed. "
      "Use a new key for new work, or begin with exactly the first payload." },
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
    { HF_HEARTBEAT, HF_NOT_HELD, "The claim is already settled. Stop." },
    { HF_ABANDON, HF_INVALID_REQUEST,
      "This needs the claim's key and the fence that begin answered with. Correct it and retry." },
    { HF_ABANDON, HF_NOT_KNOWN, NO_CLAIM },
    { HF_ABANDON, HF_STALE_FENCE, CLAIM_STALE },
    { HF_ABANDON, HF_NOT_HELD, "The claim is already settled. Get it to see its result." },
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
      "A write has already used this fence or a higher one (GET shows the register's `fence`), and "
      "a fence is valid for one write of a register; or there is no fence, and the register "
      "requires one. Acquire a new lease and use its fence, with a new key." },
    { HF_DELETE_REGISTER, HF_INVALID_REQUEST,
      "This needs a register's name of " NAMES " and " KEYS "." AGAIN },
    { HF_DELETE_REGISTER, HF_NOT_KNOWN,
      "There is no register of this name. Check the name and the tenant; it may be deleted "
      "already." },
    { HF_DELETE_REGISTER, HF_STALE_FENCE,
      "A write has already used this fence or a higher one (GET shows the register's `fence`), or "
      "there is no fence, and the register requires one. Acquire a new lease and use its fence, "
      "with a new key." },
    { HF_DELETE_LEASE, HF_INVALID_REQUEST,
      "This needs the lease's name, " KEYS
      ", and no fence above the one that it was granted with." AGAIN },
    { HF_DELETE_LEASE, HF_NOT_KNOWN, NO_LEASE },
    { HF_DELETE_LEASE, HF_STALE_FENCE, LEASE_STALE },
    { HF_DELETE_LEASE, HF_LEASE_HELD,
      "This lease is held now, and only its holder may delete it, with its fence. Retry with a new "
      "key after it has expired or was released." },
    { HF_MERGE, HF_INVALID_REQUEST,
      "A merge needs a register's name of " NAMES
      ", the type that the register has, and a value of that type within the limits (1024 items, "
      "65536 bytes). Correct it and retry." },
    { HF_APPLY, HF_INVALID_REQUEST,
      "This needs " KEYS ", a name, and at most 64 rows and 1048576 bytes of effects." AGAIN },
    { HF_GET_HOLD, HF_NOT_KNOWN, NO_HOLD },
    { HF_GET_RESOURCE, HF_NOT_KNOWN,
      "There is no resource of this name yet. Its first hold creates it, or setting its "
      "capacity." },
    { HF_GET_GUARD, HF_NOT_KNOWN, NO_GUARD },
    { HF_GET_CLAIM, HF_NOT_KNOWN, NO_CLAIM },
    { HF_GET_LEASE, HF_NOT_KNOWN, NO_LEASE },
    { HF_GET_TOKEN, HF_NOT_KNOWN,
      "No call with this key is remembered: it never arrived, or its window is over." },
};

static const struct words *words_of(enum hf_status status)
{
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        if (general[i].status == status)
            return &general[i];
    return NULL;
}

unsigned hf_refusal_http(enum hf_status status)
{
    const struct words *w = words_of(status);
    return status == HF_OK ? 200 : w ? w->http_status : 500;
}

struct hf_refusal hf_refusal_of(enum hf_action action, enum hf_status status)
{
    const struct words *w = words_of(status);
    struct hf_refusal problem = { .code = hf_status_code(status),
                                  .title = w ? w->title : "Unknown error",
                                  .detail = hf_str(w ? w->detail
                                                     : "The program has no text for this "
                                                       "status."),
                                  .http_status = hf_refusal_http(status),
                                  .retry = w ? w->retry : NO };
    for (size_t i = 0; i < sizeof details / sizeof *details; i++)
        if (details[i].action == action && details[i].status == status)
            problem.detail = hf_str(details[i].text);
    if (problem.retry == HF_RETRY_NEW_KEY && action != 0 && !hf_action_keyed(action))
        problem.retry = HF_RETRY_SAME_KEY; /* it takes no key: later */
    return problem;
}

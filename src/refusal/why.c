#include "refusal/why.h"

#include "base/text.h"
#include "core/action.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DURATION "expected a duration from 1ms to 3650d, got %" PRId64 "ms. Correct it and retry."

__attribute__((format(printf, 2, 3))) static void say(struct hf_why *c, const char *format, ...)
{
    va_list args;
    if (c->text[0]) /* report only the first error */
        return;
    va_start(args, format);
    vsnprintf(c->text, sizeof c->text, format, args);
    va_end(args);
}

/* ---- Errors in the request itself ---- */

static void blame_key(struct hf_why *c, struct hf_bytes key)
{
    if (key.size == 0)
        say(c, "key: it is empty. Use a key of 1 byte or more, the same for every attempt and new "
               "for every new request.");
    else
        say(c,
            "key: it has %zu bytes, which is above the server's limit (token-max-length, 256 by "
            "default). Use a shorter key.",
            key.size);
}

static void blame_name(struct hf_why *c, const char *what, struct hf_bytes name)
{
    if (name.size == 0 || name.size > HF_NAME_MAX)
        say(c, "%s: expected 1 to %d bytes, got %zu. Correct it and retry.", what, HF_NAME_MAX,
            name.size);
}

static void blame_duration(struct hf_why *c, const char *what, int64_t ms)
{
    if (ms < 0 || ms > HF_DURATION_MAX_MS)
        say(c, "%s: " DURATION, what, ms);
}

static void blame_fence_zero(struct hf_why *c, uint64_t fence)
{
    if (fence == 0)
        say(c, "fence: 0 is not a fence. Send the fence from the answer that you received.");
}

/* ---- Fences ---- */

/* `given` is not the newest fence. what: "claim" or "lease"; again: what gives a newer fence. */
static void blame_fence(struct hf_why *c, const char *what, const char *again, uint64_t given,
                        uint64_t newest)
{
    if (given > newest)
        say(c,
            "fence: %" PRIu64 " was never given for this %s. Its newest fence is %" PRIu64
            ". Send the fence from the answer that you received.",
            given, what, newest);
    else
        say(c,
            "Fence %" PRIu64 " is stale. The newest fence of this %s is %" PRIu64
            ": it was %s, or the fence belongs to another one. Nothing was changed. Stop.",
            given, what, newest, again);
}

static void blame_settle(struct hf_why *c, const struct hf_request *r,
                         const struct hf_answer *answer)
{
    if (answer->kind == HF_RECORD_CLAIM && answer->claim.fence != r->settle.fence) {
        blame_fence(c, "claim", "begun again", r->settle.fence, answer->claim.fence);
        return;
    }
    if (answer->status != HF_INVALID_REQUEST)
        return;
    blame_fence_zero(c, r->settle.fence);
    if (r->settle.response.size > HF_RESPONSE_MAX)
        say(c, "%s: expected at most %d bytes, got %zu.",
            r->action == HF_FAIL ? "error" : "response", HF_RESPONSE_MAX, r->settle.response.size);
    if (r->action == HF_HEARTBEAT)
        blame_duration(c, "lease", r->settle.lease_ms);
    blame_key(c, r->key);
}

static void blame_lease(struct hf_why *c, const struct hf_request *r,
                        const struct hf_answer *answer)
{
    if (answer->kind == HF_RECORD_LEASE && answer->lease.fence != r->lease.fence) {
        blame_fence(c, "lease", "granted again", r->lease.fence, answer->lease.fence);
        return;
    }
    if (answer->status != HF_INVALID_REQUEST)
        return;
    blame_name(c, "name", r->lease.name);
    blame_fence_zero(c, r->lease.fence);
    if (r->action == HF_RENEW)
        blame_duration(c, "ttl", r->lease.ttl_ms);
}

/* ---- Guards ---- */

static void blame_guard(struct hf_why *c, const struct hf_answer *answer)
{
    const struct hf_guard *guard = &answer->guard;
    char rule[64] = "exact";
    size_t at = 0;
    if (answer->status != HF_WINDOW_NOT_ELAPSED || answer->kind != HF_RECORD_GUARD)
        return;
    for (uint32_t i = 0; i < guard->match_count && at < sizeof rule; i++)
        at += (size_t)snprintf(rule + at, sizeof rule - at, "%s%s", i > 0 ? "," : "",
                               hf_match_name(guard->match[i]));
    say(c,
        "match: the guard has live entries, and its rule is %s. Under another rule a duplicate of "
        "one may not be recognised. Wait until they have left, or change the rule with force.",
        rule);
}

/* ---- Merges ---- */

static bool sums(enum hf_register_type type)
{
    return type == HF_TYPE_COUNTER || type == HF_TYPE_UPDOWN;
}

/* Check the value by itself: its names, its numbers and their sum. */
static void blame_items(struct hf_why *c, const struct hf_value *value)
{
    uint64_t up = 0, down = 0;
    bool numbers = value->type != HF_TYPE_UNION;
    for (size_t i = 0; i < value->item_count; i++) {
        const struct hf_item *item = &value->items[i];
        blame_name(c, "value: each name in it", item->name);
        if (numbers && (item->up > INT64_MAX || item->down > INT64_MAX))
            say(c, "value: expected numbers up to 9223372036854775807, got a higher one.");
        up = up > INT64_MAX ? up : up + item->up;
        down = down > INT64_MAX ? down : down + item->down;
    }
    if (sums(value->type) && (up > INT64_MAX || down > INT64_MAX))
        say(c, "value: the sum of its numbers is above the limit of a counter, "
               "9223372036854775807.");
}

static void blame_merge(struct hf_why *c, const struct hf_request *r,
                        const struct hf_answer *answer)
{
    const struct hf_value *value = r->merge.value;
    const char *type = value ? hf_register_type_name(value->type) : NULL;
    if (answer->status != HF_INVALID_REQUEST || !type)
        return;
    if (answer->kind == HF_RECORD_REGISTER && answer->reg.value.type != value->type) {
        const char *has = hf_register_type_name(answer->reg.value.type);
        say(c,
            "type: the register has the type %s, which cannot change, and this is a merge of type "
            "%s. Use another name.",
            has ? has : "unknown", type);
        return;
    }
    if (answer->kind == HF_RECORD_REGISTER) {
        say(c,
            "value: merged with the register's value it is above the limits of a register (%d "
            "items, %d bytes%s).",
            HF_MERGE_ITEMS_MAX, HF_VALUE_MAX,
            sums(value->type) ? ", a total of 9223372036854775807" : "");
        return;
    }
    blame_name(c, "name", r->merge.name);
    if (value->type == HF_TYPE_LWW)
        blame_name(c, "value: node", value->node);
    blame_items(c, value);
    say(c, "value: it is above the limits of a register (%d items, %d bytes).", HF_MERGE_ITEMS_MAX,
        HF_VALUE_MAX);
}

/* ---- All actions ---- */

static void blame_begin(struct hf_why *c, const struct hf_request *r)
{
    blame_duration(c, "lease", r->begin.lease_ms);
    blame_duration(c, "retention", r->begin.retention_ms);
    blame_key(c, r->key);
}

static void blame_keyed(struct hf_why *c, const struct hf_request *r)
{
    if (r->client.size == 0)
        blame_key(c, r->key);
    else if (r->sequence == 0)
        say(c, "sequence: expected a number from 1, got 0.");
    else if (r->client.size > HF_NAME_MAX)
        blame_name(c, "client", r->client);
    else
        say(c,
            "sequence: %" PRIu64 " is more than %d above the highest number of this client. "
            "Nothing was remembered. Correct the number and retry.",
            r->sequence, HF_SEQUENCE_AHEAD_MAX);
}

/* A client's number that has left the ones that are remembered. */
static void blame_old_number(struct hf_why *c, const struct hf_request *r)
{
    say(c,
        "sequence: %" PRIu64 " is %d or more below the highest number of this client, so what it "
        "was answered is no longer remembered. Nothing was done now.",
        r->sequence, HF_SEQUENCE_WINDOW);
}

static void blame_limit(struct hf_why *c, enum hf_limit limit)
{
    static const char again[] =
        "Nothing was changed and nothing was stored. Retry later with the same key.";
    static const char left[] =
        "Endings, and the deletion of registers and leases, are still accepted. ";
    switch (limit) {
    case HF_LIMIT_NONE: break;
    case HF_LIMIT_DISK: say(c, "Out of disk space. %s", again); break;
    case HF_LIMIT_MEMORY: say(c, "The memory limit is reached. %s%s", left, again); break;
    case HF_LIMIT_TENANT_MEMORY:
        say(c, "The memory quota of this tenant is used up. %s%s", left, again);
        break;
    case HF_LIMIT_TENANT_RECORDS:
        say(c, "The record quota of this tenant is used up. %s%s", left, again);
        break;
    case HF_LIMIT_DISK_QUOTA:
        say(c, "The file system's quota for the store's user is used up. %s", again);
        break;
    case HF_LIMIT_FILE_SIZE:
        say(c, "The process's file size limit (ulimit -f) is reached. %s", again);
        break;
    case HF_LIMIT_FILES: say(c, "The limit of open files (ulimit -n) is reached. %s", again); break;
    }
}

/* After a failure, unlike a limit, the outcome of an earlier call with the key may be unread. */
static void blame_fault(struct hf_why *c, const struct hf_cause *cause)
{
    static const char again[] = "This call changed nothing. Retry later with the same key: an "
                                "earlier call with it may have acted.";
    switch (cause->fault) {
    case HF_FAULT_NONE: break;
    case HF_FAULT_DISK:
        say(c, "The next segment of the journal cannot be written: %s. %s", strerror(cause->error),
            again);
        break;
    case HF_FAULT_UNREADABLE:
        say(c, "A record that this call needs cannot be read. The store's log says which. %s",
            again);
        break;
    case HF_FAULT_MEMORY: say(c, "The store is out of memory. %s", again); break;
    case HF_FAULT_TOO_LARGE:
        say(c, "The record is larger than a segment of the journal. Nothing was changed. Send "
               "less at once.");
        break;
    case HF_FAULT_STOPPED:
        say(c, "The store has stopped after a failure that its log names. %s", again);
        break;
    case HF_FAULT_DATABASE_AWAY: say(c, "The database cannot be reached. %s", again); break;
    case HF_FAULT_DATABASE_REFUSED:
        say(c, "The database refused this%s%s%s. The store's log has its message. %s",
            cause->sqlstate[0] ? " (SQLSTATE " : "", cause->sqlstate, cause->sqlstate[0] ? ")" : "",
            again);
        break;
    case HF_FAULT_LOCKED:
        say(c, "Lock timeout: another transaction in the database keeps a row locked. %s", again);
        break;
    case HF_FAULT_CONFLICTS:
        say(c, "Other transactions in the database changed the same rows again and again. %s",
            again);
        break;
    case HF_FAULT_STANDBY:
        say(c, "The synchronous standbys do not confirm what this answer would show. %s", again);
        break;
    }
}

const char *hf_why_name(enum hf_limit limit, enum hf_fault fault)
{
    static const char *const limits[] = {
        [HF_LIMIT_DISK] = "disk-full",
        [HF_LIMIT_MEMORY] = "memory-limit",
        [HF_LIMIT_TENANT_MEMORY] = "tenant-memory-quota",
        [HF_LIMIT_TENANT_RECORDS] = "tenant-record-quota",
        [HF_LIMIT_DISK_QUOTA] = "disk-quota",
        [HF_LIMIT_FILE_SIZE] = "file-size-limit",
        [HF_LIMIT_FILES] = "open-files-limit",
    };
    static const char *const faults[] = {
        [HF_FAULT_NONE] = "unknown",
        [HF_FAULT_DISK] = "disk-error",
        [HF_FAULT_UNREADABLE] = "record-unreadable",
        [HF_FAULT_MEMORY] = "out-of-memory",
        [HF_FAULT_TOO_LARGE] = "record-too-large",
        [HF_FAULT_STOPPED] = "store-stopped",
        [HF_FAULT_DATABASE_AWAY] = "database-away",
        [HF_FAULT_DATABASE_REFUSED] = "database-refused",
        [HF_FAULT_LOCKED] = "lock-timeout",
        [HF_FAULT_CONFLICTS] = "conflicts",
        [HF_FAULT_STANDBY] = "standby-silent",
    };
    if (limit != HF_LIMIT_NONE && (size_t)limit < sizeof limits / sizeof *limits)
        return limits[limit];
    return faults[(size_t)fault < sizeof faults / sizeof *faults ? fault : HF_FAULT_NONE];
}

struct hf_why hf_why_page(enum hf_status status, const struct hf_page *page)
{
    struct hf_why c = { "" };
    if (status == HF_STORAGE_FAILURE)
        blame_fault(&c, &page->cause);
    return c;
}

struct hf_why hf_why(const struct hf_request *r, const struct hf_result *result)
{
    struct hf_why c = { "" };
    const struct hf_answer *answer = &result->answer;
    if (answer->status == HF_STORAGE_FAILURE) {
        blame_limit(&c, answer->limit);
        blame_fault(&c, &answer->cause);
    }
    if (answer->status == HF_WINDOW_ELAPSED && r->client.size > 0 && result->token.expires_at == 0)
        blame_old_number(&c, r);
    if (r->invalid) /* the front end says what is wrong */
        return c;
    bool blames = answer->status == HF_INVALID_REQUEST || answer->status == HF_STALE_FENCE ||
                  answer->status == HF_WINDOW_NOT_ELAPSED;
    if (!blames || result->token.expires_at != 0)
        return c;
    switch (r->action) {
    case HF_SET_GUARD: blame_guard(&c, answer); break;
    case HF_BEGIN: blame_begin(&c, r); break;
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON: blame_settle(&c, r, answer); break;
    case HF_RENEW:
    case HF_RETURN: blame_lease(&c, r, answer); break;
    case HF_MERGE: blame_merge(&c, r, answer); break;
    case HF_GET_CLAIM: blame_key(&c, r->key); break;
    case HF_GET_TOKEN: blame_keyed(&c, r); break;
    default:
        if (hf_action_keyed(r->action))
            blame_keyed(&c, r);
        break;
    }
    return c;
}

/* ---- For programs that embed the library ---- */

size_t hf_explain(const struct hf_request *request, const struct hf_result *result, char *text,
                  size_t size)
{
    const struct hf_answer *answer = &result->answer;
    if (size > 0)
        text[0] = '\0';
    if (answer->status == HF_OK)
        return 0;
    struct hf_why why = hf_why(request, result);
    struct hf_bytes said = hf_refusal_of(request->action, answer->status).detail;
    if (why.text[0])
        said = hf_str(why.text);
    else if (answer->kind == HF_RECORD_VALUE && answer->value.size > 0)
        said = answer->value;
    return (size_t)snprintf(text, size, "%.*s", (int)said.size, (const char *)said.data);
}

/* From the JSON of an answer to the records of the library. */
#include "api/decode.h"
#include "api/encode.h"
#include "api/problem.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "client/inner.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- The records, member by member ---- */

static const char *state_name(unsigned number)
{
    return hf_api_hold_state((enum hf_hold_state)number);
}

static const char *match_name(unsigned number)
{
    return hf_match_name((enum hf_match)number);
}

static const char *unavailable_name(unsigned number)
{
    return hf_api_unavailable((enum hf_unavailable)number);
}

#define AT(type, field) offsetof(struct type, field)
#define COUNT(table) (sizeof(table) / sizeof *(table))

enum { HOLD_ENDED = 7 << 6 }; /* the bits of the three times below */

static const struct hf_member hold_members[] = {
    { "id", HF_MEMBER_ID, AT(hf_hold, id), true, NULL },
    { "resource", HF_MEMBER_TEXT, AT(hf_hold, resource), true, NULL },
    { "requester", HF_MEMBER_TEXT, AT(hf_hold, requester), true, NULL },
    { "state", HF_MEMBER_NAMED, AT(hf_hold, state), true, state_name },
    { "placed_at", HF_MEMBER_TIME, AT(hf_hold, placed_at), true, NULL },
    { "expires_at", HF_MEMBER_TIME, AT(hf_hold, expires_at), true, NULL },
    { "confirmed_at", HF_MEMBER_TIME, AT(hf_hold, ended_at), false, NULL },
    { "released_at", HF_MEMBER_TIME, AT(hf_hold, ended_at), false, NULL },
    { "expired_at", HF_MEMBER_TIME, AT(hf_hold, ended_at), false, NULL },
    { "reverses", HF_MEMBER_ID, AT(hf_hold, reverses), false, NULL },
    { "reacquires", HF_MEMBER_ID, AT(hf_hold, reacquires), false, NULL },
};

static const struct hf_member resource_members[] = {
    { "name", HF_MEMBER_TEXT, AT(hf_resource, name), true, NULL },
    { "capacity", HF_MEMBER_U32, AT(hf_resource, capacity), true, NULL },
    { "held", HF_MEMBER_U32, AT(hf_resource, held), true, NULL },
    { "confirmed", HF_MEMBER_U32, AT(hf_resource, confirmed), true, NULL },
    { "open", HF_MEMBER_FLAG, AT(hf_resource, open), true, NULL },
    { "fence", HF_MEMBER_U64, AT(hf_resource, fence), true, NULL },
    { "require_fence", HF_MEMBER_FLAG, AT(hf_resource, require_fence), false, NULL },
};

static const struct hf_member guard_members[] = {
    { "name", HF_MEMBER_TEXT, AT(hf_guard, name), true, NULL },
    { "window", HF_MEMBER_DURATION, AT(hf_guard, window_ms), true, NULL },
    { "match", HF_MEMBER_LIST, AT(hf_guard, match), true, match_name },
    { "on_unavailable", HF_MEMBER_NAMED, AT(hf_guard, on_unavailable), true, unavailable_name },
    { "durable", HF_MEMBER_FLAG, AT(hf_guard, durable), true, NULL },
    { "created_at", HF_MEMBER_TIME, AT(hf_guard, created_at), true, NULL },
};
_Static_assert(AT(hf_guard, match_count) == AT(hf_guard, match) + HF_MATCH_MAX * sizeof(unsigned) &&
                   sizeof(enum hf_match) == sizeof(unsigned),
               "HF_MEMBER_LIST writes the steps and then their count");

enum { SEEN_RESULT = 3 };

static const struct hf_member seen_members[] = {
    { "seen", HF_MEMBER_FLAG, AT(hf_seen, seen), true, NULL },
    { "recorded_at", HF_MEMBER_TIME, AT(hf_seen, recorded_at), false, NULL },
    { "expires_at", HF_MEMBER_TIME, AT(hf_seen, expires_at), false, NULL },
    [SEEN_RESULT] = { "result", HF_MEMBER_STORED, AT(hf_seen, result), false, NULL },
};

struct ok {
    bool ok;
};
static const struct hf_member ok_members[] = { { "ok", HF_MEMBER_FLAG, AT(ok, ok), true, NULL } };

/* A claim as the interface shows it: a failure has an error, and says whether it is for good. */
struct claim {
    struct hf_claim claim;
    struct hf_bytes error;
    bool retryable;
};

static const char *claim_status(unsigned number)
{
    return hf_api_claim_status((enum hf_claim_state)number);
}

static const char *abandon_name(unsigned number)
{
    static const char *const names[] = { "unknown", "retry" };
    return number < COUNT(names) ? names[number] : NULL;
}

enum { CLAIM_ERROR = 10 };

static const struct hf_member claim_members[] = {
    { "tenant", HF_MEMBER_TEXT, AT(claim, claim.tenant), false, NULL },
    { "key", HF_MEMBER_TEXT, AT(claim, claim.key), true, NULL },
    { "status", HF_MEMBER_NAMED, AT(claim, claim.state), true, claim_status },
    { "fence", HF_MEMBER_U64, AT(claim, claim.fence), true, NULL },
    { "fingerprint", HF_MEMBER_DIGEST, AT(claim, claim.fingerprint), true, NULL },
    { "on_abandon", HF_MEMBER_NAMED, AT(claim, claim.on_abandon), true, abandon_name },
    { "lease", HF_MEMBER_DURATION, AT(claim, claim.lease_ms), true, NULL },
    { "begun_at", HF_MEMBER_TIME, AT(claim, claim.begun_at), true, NULL },
    { "lease_expires_at", HF_MEMBER_TIME, AT(claim, claim.lease_expires_at), true, NULL },
    { "response", HF_MEMBER_STORED, AT(claim, claim.response), false, NULL },
    [CLAIM_ERROR] = { "error", HF_MEMBER_STORED, AT(claim, error), false, NULL },
    { "retryable", HF_MEMBER_FLAG, AT(claim, retryable), false, NULL },
    { "retention", HF_MEMBER_DURATION, AT(claim, claim.retention_ms), false, NULL },
    { "settled_at", HF_MEMBER_TIME, AT(claim, claim.settled_at), false, NULL },
    { "expires_at", HF_MEMBER_TIME, AT(claim, claim.expires_at), false, NULL },
};

static const struct hf_member lease_members[] = {
    { "name", HF_MEMBER_TEXT, AT(hf_lease, name), true, NULL },
    { "holder", HF_MEMBER_TEXT, AT(hf_lease, holder), true, NULL },
    { "fence", HF_MEMBER_U64, AT(hf_lease, fence), true, NULL },
    { "ttl", HF_MEMBER_DURATION, AT(hf_lease, ttl_ms), true, NULL },
    { "granted_at", HF_MEMBER_TIME, AT(hf_lease, granted_at), true, NULL },
    { "expires_at", HF_MEMBER_TIME, AT(hf_lease, expires_at), true, NULL },
    { "released_at", HF_MEMBER_TIME, AT(hf_lease, released_at), false, NULL },
};

/* A register as the interface shows it: how to read its value depends on its type. */
struct shown {
    struct hf_register reg;
    struct hf_bytes value; /* JSON */
};

static const char *type_name(unsigned number)
{
    return hf_register_type_name((enum hf_register_type)number);
}

static const struct hf_member register_members[] = {
    { "name", HF_MEMBER_TEXT, AT(shown, reg.name), true, NULL },
    { "type", HF_MEMBER_NAMED, AT(shown, reg.value.type), true, type_name },
    { "value", HF_MEMBER_JSON, AT(shown, value), true, NULL },
    { "total", HF_MEMBER_I64, AT(shown, reg.value.number), false, NULL },
    { "version", HF_MEMBER_U64, AT(shown, reg.version), true, NULL },
    { "fence", HF_MEMBER_U64, AT(shown, reg.fence), true, NULL },
    { "require_fence", HF_MEMBER_FLAG, AT(shown, reg.require_fence), false, NULL },
};

/* ---- One answer ---- */

static bool hold_read(struct hf_reader *r, struct hf_hold *hold)
{
    unsigned given;
    if (!hf_member_read(r, hold_members, COUNT(hold_members), hold, &given))
        return false;
    bool ended = given & HOLD_ENDED;
    return ended == (hold->state != HF_HELD) ||
           hf_reader_fail(r, ended ? "a held hold has the time of its end"
                                   : "the time of its end is missing");
}

static bool seen_read(struct hf_reader *r, struct hf_seen *seen)
{
    unsigned given;
    if (!hf_member_read(r, seen_members, COUNT(seen_members), seen, &given))
        return false;
    seen->has_result = given >> SEEN_RESULT & 1;
    return true;
}

static bool claim_read(struct hf_reader *r, struct hf_claim *claim)
{
    struct claim c = { .retryable = false };
    unsigned given;
    if (!hf_member_read(r, claim_members, COUNT(claim_members), &c, &given))
        return false;
    if (given >> CLAIM_ERROR & 1)
        c.claim.response = c.error;
    if (c.retryable)
        c.claim.state = HF_CLAIM_RETRYABLE;
    *claim = c.claim;
    return true;
}

static bool register_read(struct hf_reader *r, struct hf_register *reg)
{
    struct shown shown = { .reg = { .version = 0 } };
    unsigned given;
    if (!hf_member_read(r, register_members, COUNT(register_members), &shown, &given))
        return false;
    struct hf_reader value = { .text = shown.value, .arena = r->arena };
    *reg = shown.reg;
    return (hf_api_value_read(&value, &reg->value) && hf_reader_end(&value)) ||
           hf_reader_fail(r, "its value: %s", value.error);
}

static bool record_read(struct hf_reader *r, enum hf_action action, struct hf_answer *answer)
{
    struct ok ok;
    unsigned given;
    switch (action) {
    case HF_SET_RESOURCE:
    case HF_GET_RESOURCE:
        answer->kind = HF_RECORD_RESOURCE;
        return hf_member_read(r, resource_members, COUNT(resource_members), &answer->resource,
                              &given);
    case HF_SET_GUARD:
    case HF_GET_GUARD:
        answer->kind = HF_RECORD_GUARD;
        return hf_member_read(r, guard_members, COUNT(guard_members), &answer->guard, &given);
    case HF_CHECK:
    case HF_ADMIT: answer->kind = HF_RECORD_SEEN; return seen_read(r, &answer->seen);
    case HF_RECORD:
        answer->kind = HF_RECORD_SEEN;
        return hf_member_read(r, ok_members, COUNT(ok_members), &ok, &given);
    case HF_BEGIN:
    case HF_COMPLETE:
    case HF_FAIL:
    case HF_HEARTBEAT:
    case HF_ABANDON:
    case HF_GET_CLAIM: answer->kind = HF_RECORD_CLAIM; return claim_read(r, &answer->claim);
    case HF_GRANT:
    case HF_RENEW:
    case HF_RETURN:
    case HF_DELETE_LEASE:
    case HF_GET_LEASE:
        answer->kind = HF_RECORD_LEASE;
        return hf_member_read(r, lease_members, COUNT(lease_members), &answer->lease, &given);
    case HF_WRITE:
    case HF_MERGE:
    case HF_DELETE_REGISTER:
    case HF_GET_REGISTER: answer->kind = HF_RECORD_REGISTER; return register_read(r, &answer->reg);
    default: answer->kind = HF_RECORD_HOLD; return hold_read(r, &answer->hold);
    }
}

static size_t claim_slices(struct hf_claim *claim, struct hf_bytes *slices[3])
{
    slices[0] = &claim->tenant;
    slices[1] = &claim->key;
    slices[2] = &claim->response;
    return 3;
}

/* The slices of an answer: at most three. */
static size_t slices_of(struct hf_answer *answer, struct hf_bytes *slices[3])
{
    switch (answer->kind) {
    case HF_RECORD_HOLD:
        slices[0] = &answer->hold.resource;
        slices[1] = &answer->hold.requester;
        return 2;
    case HF_RECORD_RESOURCE: slices[0] = &answer->resource.name; return 1;
    case HF_RECORD_GUARD: slices[0] = &answer->guard.name; return 1;
    case HF_RECORD_SEEN: slices[0] = &answer->seen.result; return 1;
    case HF_RECORD_CLAIM: return claim_slices(&answer->claim, slices);
    case HF_RECORD_LEASE:
        slices[0] = &answer->lease.name;
        slices[1] = &answer->lease.holder;
        return 2;
    case HF_RECORD_REGISTER:
        slices[0] = &answer->reg.name;
        slices[1] = &answer->reg.value.node;
        slices[2] = &answer->reg.value.bytes;
        return 3;
    default: return 0;
    }
}

/* Copy a slice to *at and move on. */
static void slice_keep(struct hf_bytes *slice, char **at)
{
    if (slice->size > 0)
        memcpy(*at, slice->data, slice->size);
    slice->data = *at;
    *at += slice->size;
}

/* Copy the items to *at and move on; `text` is the place for their names. */
static void items_keep(struct hf_value *value, struct hf_item *kept, char **text)
{
    if (value->item_count > 0)
        memcpy(kept, value->items, value->item_count * sizeof *kept);
    for (size_t i = 0; i < value->item_count; i++)
        slice_keep(&kept[i].name, text);
    value->items = kept;
}

/* Copy slices and items into memory that the result owns. False if out of memory. */
static bool result_keep(struct hf_result *result)
{
    struct hf_bytes *slices[3];
    struct hf_answer *answer = &result->answer;
    size_t count = slices_of(answer, slices), size = 1;
    struct hf_value *value = answer->kind == HF_RECORD_REGISTER ? &answer->reg.value : NULL;
    size_t items = value ? value->item_count * sizeof *value->items : 0;
    for (size_t i = 0; i < count; i++)
        size += slices[i]->size;
    for (size_t i = 0; value && i < value->item_count; i++)
        size += value->items[i].name.size;
    result->heap = malloc(items + size);
    if (!result->heap)
        return false;
    char *at = (char *)result->heap + items;
    for (size_t i = 0; i < count; i++)
        slice_keep(slices[i], &at);
    if (value)
        items_keep(value, result->heap, &at);
    return true;
}

/* Say why the answer is invalid, and free the reader's memory. Always false. */
static bool failed(const struct hf_reader *r, struct hf_error *why)
{
    (void)hf_error_set(why, HF_INDETERMINATE, "the answer is not from a Holdfast server: %s",
                       r->failed ? r->error : "out of memory");
    return false;
}

bool hf_client_read_answer(enum hf_action action, struct hf_bytes body, struct hf_result *result,
                           struct hf_error *why)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = body, .arena = &arena };
    hf_result_clear(result);
    bool good =
        record_read(&r, action, &result->answer) && hf_reader_end(&r) && result_keep(result);
    if (!good) {
        failed(&r, why);
        hf_result_clear(result);
    }
    hf_arena_free(&arena);
    return good;
}

/* ---- Pages ---- */

/* A string of digits, or null at the end. */
static bool cursor_read(struct hf_reader *r, uint64_t *cursor)
{
    struct hf_bytes text;
    size_t at = r->at;
    *cursor = 0;
    if (hf_reader_peek(r) == HF_READ_NULL)
        return hf_reader_null(r);
    return hf_reader_string(r, &text) && ((hf_number_parse(text, cursor) && *cursor > 0) ||
                                          hf_reader_refuse(r, at, "a cursor of this program"));
}

/* What a page has, by its kind. */
struct paging {
    enum hf_list_kind kind;
    const char *name;      /* of the member with the rows */
    size_t size;           /* of a row */
    struct hf_buffer rows; /* owned */
};

static bool row_read(struct hf_reader *r, struct paging *p)
{
    struct hf_hold hold = { .ordinal = 0 };
    struct hf_claim claim = { .fence = 0 };
    bool is_claim = p->kind == HF_LIST_CLAIMS;
    if (!(is_claim ? claim_read(r, &claim) : hold_read(r, &hold)))
        return false;
    hf_buffer_add(&p->rows, is_claim ? (const void *)&claim : &hold, p->size);
    return true;
}

static bool rows_read(struct hf_reader *r, struct paging *p)
{
    if (!hf_reader_array(r))
        return false;
    while (hf_reader_element(r)) {
        if (p->rows.size >= HF_LIST_MAX * p->size)
            return hf_reader_fail(r, "a page has more than %d %s", HF_LIST_MAX, p->name);
        if (!row_read(r, p))
            return false;
    }
    return !r->failed;
}

static bool page_read(struct hf_reader *r, struct paging *p, uint64_t *cursor)
{
    struct hf_bytes name;
    bool has_rows = false, has_cursor = false;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        bool good;
        if (hf_bytes_equal(name, hf_str(p->name)))
            good = has_rows = rows_read(r, p);
        else if (hf_bytes_equal(name, hf_str("next_cursor")))
            good = has_cursor = cursor_read(r, cursor);
        else
            good = hf_reader_skip(r);
        if (!good)
            return false;
    }
    return !r->failed && hf_reader_end(r) && !p->rows.failed &&
           ((has_rows && has_cursor) ||
            hf_reader_fail(r, "the member \"%s\" or \"next_cursor\" is missing", p->name));
}

static size_t row_slices(struct hf_page *page, enum hf_list_kind kind, size_t i,
                         struct hf_bytes *slices[3])
{
    if (kind == HF_LIST_CLAIMS)
        return claim_slices(&page->claims[i], slices);
    slices[0] = &page->holds[i].resource;
    slices[1] = &page->holds[i].requester;
    return 2;
}

/* Copy the rows and their names into memory that the page owns. False if out of memory. */
static bool page_keep(struct hf_page *page, const struct paging *p)
{
    struct hf_bytes *slices[3];
    size_t size = 1;
    page->count = p->rows.size / p->size;
    page->rows = malloc(p->rows.size + 1);
    if (!page->rows)
        return false;
    if (p->rows.size > 0)
        memcpy(page->rows, p->rows.data, p->rows.size);
    for (size_t i = 0; i < page->count; i++)
        for (size_t n = row_slices(page, p->kind, i, slices); n > 0; n--)
            size += slices[n - 1]->size;
    char *at = page->heap = malloc(size);
    for (size_t i = 0; at && i < page->count; i++)
        for (size_t n = row_slices(page, p->kind, i, slices); n > 0; n--)
            slice_keep(slices[n - 1], &at);
    return at != NULL;
}

bool hf_client_read_page(enum hf_list_kind kind, struct hf_bytes body, struct hf_page *page,
                         struct hf_error *why)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = body, .arena = &arena };
    bool is_claims = kind == HF_LIST_CLAIMS;
    struct paging p = { .kind = kind,
                        .name = is_claims ? "claims" : "holds",
                        .size = is_claims ? sizeof(struct hf_claim) : sizeof(struct hf_hold) };
    *page = (struct hf_page){ .count = 0 };
    bool good = page_read(&r, &p, &page->next_cursor) && page_keep(page, &p);
    if (!good) {
        failed(&r, why);
        hf_page_clear(page);
    }
    hf_buffer_free(&p.rows);
    hf_arena_free(&arena);
    return good;
}

/* ---- Problems and the rest ---- */

/* A code is printed as it is, so it must consist of letters, digits and dashes. */
static bool code_valid(struct hf_bytes code)
{
    const char *p = code.data;
    for (size_t i = 0; i < code.size; i++)
        if (!(p[i] >= 'a' && p[i] <= 'z') && !(p[i] >= '0' && p[i] <= '9') && p[i] != '-')
            return false;
    return code.size > 0 && code.size < HF_CLIENT_CODE_MAX;
}

/* The status that has this code; HF_OK: none. */
static enum hf_status status_of(const char *code)
{
    const char *gap = hf_status_code((enum hf_status)UINT_MAX);
    for (unsigned i = 1; i <= HF_INDETERMINATE; i++) {
        const char *name = hf_status_code((enum hf_status)i);
        if (strcmp(name, gap) != 0 && strcmp(name, code) == 0)
            return (enum hf_status)i;
    }
    return HF_OK;
}

struct problem {
    struct hf_bytes code, detail;
    uint32_t status;
};

static const struct hf_member problem_members[] = {
    { "code", HF_MEMBER_TEXT, AT(problem, code), true, NULL },
    { "detail", HF_MEMBER_TEXT, AT(problem, detail), true, NULL },
    { "status", HF_MEMBER_U32, AT(problem, status), false, NULL },
};

bool hf_client_read_problem(struct hf_bytes body, struct hf_client_problem *out,
                            struct hf_error *why)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = body, .arena = &arena };
    struct problem p = { .status = 0 };
    unsigned given;
    *out = (struct hf_client_problem){ .status = HF_OK };
    bool good = hf_member_read(&r, problem_members, COUNT(problem_members), &p, &given) &&
                hf_reader_end(&r) &&
                (code_valid(p.code) || hf_reader_fail(&r, "its code is invalid"));
    if (good) {
        size_t size = p.detail.size < sizeof out->detail ? p.detail.size : sizeof out->detail - 1;
        memcpy(out->code, p.code.data, p.code.size);
        if (size > 0)
            memcpy(out->detail, p.detail.data, size);
        out->status = status_of(out->code);
    } else {
        failed(&r, why);
    }
    hf_arena_free(&arena);
    return good;
}

struct token {
    hf_time recorded_at;
};

static const struct hf_member token_members[] = {
    { "recorded_at", HF_MEMBER_TIME, AT(token, recorded_at), true, NULL },
};

bool hf_client_read_token(struct hf_bytes body, hf_time *recorded_at, struct hf_error *why)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = body, .arena = &arena };
    struct token token = { 0 };
    unsigned given;
    bool good = hf_member_read(&r, token_members, COUNT(token_members), &token, &given) &&
                hf_reader_end(&r);
    *recorded_at = token.recorded_at;
    if (!good)
        failed(&r, why);
    hf_arena_free(&arena);
    return good;
}

struct info {
    struct hf_bytes title, version;
};

static const struct hf_member info_members[] = {
    { "title", HF_MEMBER_TEXT, AT(info, title), true, NULL },
    { "version", HF_MEMBER_TEXT, AT(info, version), true, NULL },
};

/* {"openapi":..., "info":{"title":"Holdfast","version":...}, ...} */
static bool version_read(struct hf_reader *r, struct info *info)
{
    struct hf_bytes name;
    unsigned given;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        bool good = hf_bytes_equal(name, hf_str("info"))
                        ? hf_member_read(r, info_members, COUNT(info_members), info, &given)
                        : hf_reader_skip(r);
        if (!good)
            return false;
    }
    return !r->failed && hf_reader_end(r) &&
           (hf_bytes_equal(info->title, hf_str("Holdfast")) ||
            hf_reader_fail(r, "it does not describe Holdfast"));
}

bool hf_client_read_version(struct hf_bytes body, struct hf_client_version *version,
                            struct hf_error *why)
{
    struct hf_arena arena = { 0 };
    struct hf_reader r = { .text = body, .arena = &arena };
    struct info info = { { NULL, 0 }, { NULL, 0 } };
    *version = (struct hf_client_version){ "" };
    bool good = version_read(&r, &info);
    if (!good)
        failed(&r, why);
    else if (info.version.size > 0 && info.version.size < sizeof version->text)
        memcpy(version->text, info.version.data, info.version.size);
    hf_arena_free(&arena);
    return good;
}

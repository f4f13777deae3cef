/* The table of calls. */
#include "api/call.h"

#include <stddef.h>
#include <string.h>

#define TEXT HF_TYPE_OF_TEXT
#define DURATION HF_TYPE_OF_DURATION
#define NUMBER HF_TYPE_OF_NUMBER
#define FLAG HF_TYPE_OF_FLAG
#define JSON HF_TYPE_OF_JSON
#define MATCH HF_TYPE_OF_MATCH
#define CHOICE HF_TYPE_OF_CHOICE
#define TIME HF_TYPE_OF_TIME

#define IN(member) \
    .at = offsetof(struct hf_request, member), .size = sizeof((struct hf_request *)0)->member
#define IN_QUERY(member) \
    .at = offsetof(struct hf_query, member), .size = sizeof((struct hf_query *)0)->member
#define HAS(member) .has = offsetof(struct hf_request, member)
#define MEANS(for_false, for_true) .no = (for_false), .yes = (for_true)
#define NAME .is_name = true
#define BY_FUNCTION .at = 0

static const struct hf_call_field place_fields[] = {
    { "resource", TEXT, true, NULL, "what is held", IN(place_hold.resource), NAME },
    { "requester", TEXT, true, NULL, "who the hold is for", IN(place_hold.requester), NAME },
    { "duration", DURATION, true, NULL, "how long the hold lasts", IN(place_hold.duration_ms) },
    { "fence", NUMBER, false, NULL,
      "refuse the hold unless this is above every fence that was used on the resource; if missing "
      "or 0, fences are not checked",
      IN(place_hold.fence) },
};

static const struct hf_call_field confirm_fields[] = {
    { "late", CHOICE, false, "reacquire",
      "if the hold's window has elapsed and a unit is free, place and confirm a new hold in the "
      "same commit",
      .becomes = HF_CONFIRM_LATE },
};

static const struct hf_call_field resource_fields[] = {
    { "capacity", NUMBER, false, NULL,
      "number of units, 1 to 1000000000; default: unchanged (1 if new)", IN(set_resource.capacity),
      .most = HF_CAPACITY_MAX },
    { "open", FLAG, false, NULL, "false: no new holds; default: unchanged (true if new)",
      IN(set_resource.open), MEANS(HF_SET_CLOSED, HF_SET_OPEN) },
    { "require_fence", FLAG, false, NULL,
      "true: a hold without a fence is stale-fence; default: unchanged (false if new)",
      IN(set_resource.require_fence), MEANS(HF_NOT_REQUIRED, HF_REQUIRED) },
};

static const struct hf_call_field guard_fields[] = {
    { "window", DURATION, true, NULL, "how long an identity is remembered",
      IN(set_guard.window_ms) },
    { "match", MATCH, false, "exact|trim|casefold|normalize|hash",
      "steps that are applied to an identity, in order, before it is compared; default: exact",
      IN(set_guard.match) },
    { "on_unavailable", CHOICE, false, "open|closed",
      "the answer when the store cannot be used: not seen (open, the default), or seen (closed)",
      IN(set_guard.on_unavailable), .no = HF_FAIL_OPEN },
    { "durable", FLAG, false, NULL, "false: identities are only in memory; default: true",
      IN(set_guard.volatile_only), MEANS(true, false) },
    { "force", FLAG, false, NULL,
      "true: change the match rule although identities are under guard; a duplicate of one may "
      "then not be recognised; default: false",
      IN(set_guard.force), MEANS(false, true) },
};

static const struct hf_call_field identity_fields[] = {
    { "identity", TEXT, true, NULL, "what may arrive twice", IN(identity.identity) },
    { "result", JSON, false, NULL, "stored with the identity and returned to duplicates",
      IN(identity.result), HAS(identity.has_result) },
};

static const struct hf_call_field begin_fields[] = {
    { "key", TEXT, false, NULL,
      "the key that is claimed; if it is left out, the header Idempotency-Key has it", IN(key) },
    { "fingerprint", TEXT, false, NULL,
      "identifies the work: the 64 hexadecimal digits of a SHA-256, or 1 to 1024 bytes that are "
      "hashed; either this or payload",
      BY_FUNCTION },
    { "payload", JSON, false, NULL,
      "the work itself, hashed in canonical form; either this or fingerprint", IN(begin.payload) },
    { "lease", DURATION, false, NULL,
      "time until the next heartbeat or the end of the work; "
      "default: 60s",
      IN(begin.lease_ms) },
    { "on_abandon", CHOICE, false, "unknown|retry",
      "when the lease runs out: the next begin is refused (unknown, the default), or takes over "
      "(retry); a begin that takes over sets it again, so without it the claim becomes unknown",
      IN(begin.on_abandon), .no = HF_ABANDON_UNKNOWN },
    { "retention", DURATION, false, NULL,
      "how long the claim is remembered once it is settled; after that the same key begins again; "
      "default: the idempotency window",
      IN(begin.retention_ms) },
};

static const struct hf_call_field complete_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence from the answer of begin", IN(settle.fence) },
    { "response", JSON, false, NULL, "returned by every later begin", IN(settle.response) },
};

static const struct hf_call_field fail_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence from the answer of begin", IN(settle.fence) },
    { "retryable", FLAG, false, NULL, "true: the key may be begun again; default: false",
      IN(settle.retryable), MEANS(false, true) },
    { "error", JSON, false, NULL, "what went wrong", IN(settle.response) },
};

static const struct hf_call_field heartbeat_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence from the answer of begin", IN(settle.fence) },
    { "lease", DURATION, false, NULL, "from now on; default: unchanged", IN(settle.lease_ms) },
};

static const struct hf_call_field abandon_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence from the answer of begin", IN(settle.fence) },
};

static const struct hf_call_field grant_fields[] = {
    { "holder", TEXT, true, NULL, "the worker that gets the lease", IN(lease.holder), NAME },
    { "ttl", DURATION, true, NULL, "how long the lease lasts", IN(lease.ttl_ms) },
};

static const struct hf_call_field renew_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence of the lease", IN(lease.fence) },
    { "ttl", DURATION, false, NULL, "from now on; default: unchanged", IN(lease.ttl_ms) },
};

static const struct hf_call_field return_fields[] = {
    { "fence", NUMBER, true, NULL, "the fence of the lease", IN(lease.fence) },
};

static const struct hf_call_field write_fields[] = {
    { "value", JSON, true, NULL, "the new value", IN(write.value) },
    { "fence", NUMBER, false, NULL,
      "refuse the write unless this is above every fence that a write has used; if missing or 0, "
      "fences are not checked and the write is applied",
      IN(write.fence) },
    { "if_version", NUMBER, false, NULL,
      "refuse unless the register has this version; 0: refuse if it exists", IN(write.if_version),
      HAS(write.has_if_version) },
    { "require_fence", FLAG, false, NULL,
      "true: after this write, a write or deletion without a fence is stale-fence; default: "
      "unchanged (false if new)",
      IN(write.require_fence), MEANS(HF_NOT_REQUIRED, HF_REQUIRED) },
};

static const struct hf_call_field delete_fields[] = {
    { "fence", NUMBER, false, NULL,
      "refuse unless this is above every fence that a write has used; if missing or 0, fences are "
      "not checked",
      IN(write.fence) },
    { "if_version", NUMBER, false, NULL, "refuse unless the register has this version",
      IN(write.if_version), HAS(write.has_if_version) },
};

static const struct hf_call_field delete_lease_fields[] = {
    { "fence", NUMBER, false, NULL, "the fence of the lease; required while it is held",
      IN(lease.fence) },
};

static const struct hf_call_field merge_fields[] = {
    { "type", CHOICE, true, "max|min|or|union|lww|vector|counter|updown", "the merge type",
      BY_FUNCTION },
    { "value", JSON, true, NULL,
      "max, min: a whole number; or: a flag; union: an array of strings; lww: {value, timestamp, "
      "node}; vector, counter: {node: number}; updown: {node: {up, down}}",
      BY_FUNCTION },
};

static const struct hf_call_field list_fields[] = {
    { "limit", NUMBER, false, NULL, "the most records in a page, 1 to 1000; default: 100",
      IN_QUERY(limit), .most = HF_LIST_MAX },
    { "cursor", TEXT, false, NULL, "the next_cursor of the previous page", BY_FUNCTION },
    { "state", CHOICE, false, "held|confirmed|released|expired", "only holds in this state",
      IN_QUERY(state), .no = HF_HELD },
    { "resource", TEXT, false, NULL, "only holds on this resource", IN_QUERY(resource) },
    { "requester", TEXT, false, NULL, "only holds for this requester", IN_QUERY(requester) },
    { "from", TIME, false, NULL, "only holds placed at this time or later", IN_QUERY(from) },
    { "to", TIME, false, NULL, "only holds placed before this time", IN_QUERY(to) },
};

static const struct hf_call_field claim_list_fields[] = {
    { "limit", NUMBER, false, NULL, "the most records in a page, 1 to 1000; default: 100",
      IN_QUERY(limit), .most = HF_LIST_MAX },
    { "cursor", TEXT, false, NULL, "the next_cursor of the previous page", BY_FUNCTION },
    { "status", CHOICE, false, "started|completed|failed|retryable|unknown",
      "only claims with this status; failed: for good; retryable: the key may be begun again",
      IN_QUERY(claim_state), .no = HF_CLAIM_STARTED },
    { "from", TIME, false, NULL, "only claims begun at this time or later", IN_QUERY(from) },
    { "to", TIME, false, NULL, "only claims begun before this time", IN_QUERY(to) },
    { "prefix", TEXT, false, NULL, "only claims whose key begins with this text",
      IN_QUERY(prefix) },
};

static const struct hf_call_field audit_fields[] = {
    { "expect_head", TEXT, false, NULL,
      "the hash of a batch that was noted earlier, in 64 hexadecimal digits: the verdict is "
      "violations unless it is in the chain; with an auth file, only for operators",
      BY_FUNCTION },
};

static const struct hf_call_field number_fields[] = {
    { "client", TEXT, true, NULL, "the name of the numbered client", IN(client), NAME },
    { "sequence", NUMBER, true, NULL, "the number of its request", IN(sequence) },
};

static const struct hf_call_field trace_fields[] = {
    { "sequence", NUMBER, false, NULL,
      "the number of a request of a numbered client; the path has the client's name", BY_FUNCTION },
};

static const struct hf_call_field export_fields[] = {
    { "format", CHOICE, false, "jsonl|sqlite", "default: jsonl", BY_FUNCTION },
};

#define FIELDS(table) FIRST(table, sizeof(table) / sizeof *(table))
#define FIRST(table, count) .fields = (table), .field_count = (count)
#define GET(p) .method = HF_HTTP_GET, .path = (p)
#define POST(p) .method = HF_HTTP_POST, .path = (p)
#define PUT(p) .method = HF_HTTP_PUT, .path = (p)
#define DELETE(p) .method = HF_HTTP_DELETE, .path = (p)
#define PARAM(name) .param = (name)
#define ASKS(a) .kind = HF_CALL_DO, .action = (a), .role = HF_ROLE_READ, .by_operator = true
#define CHANGES(a) .kind = HF_CALL_DO, .action = (a), .role = HF_ROLE_WRITE
#define SETTLES(a) CHANGES(a), .by_operator = true
#define LISTS(l) .kind = HF_CALL_LIST, .list = (l), .role = HF_ROLE_READ, .by_operator = true
#define OTHER(k, r) .kind = (k), .role = (r)
#define KEYED .key = true
#define REFUSES(...) .refuses = { __VA_ARGS__ }

const struct hf_call hf_calls[] = {
    { POST("/v1/holds"), CHANGES(HF_PLACE_HOLD), KEYED, .op = "place_hold", .answers = "hold",
      REFUSES(HF_RESOURCE_UNAVAILABLE, HF_STALE_FENCE), FIELDS(place_fields),
      .help = "Hold a unit of a resource for a requester." },
    { GET("/v1/holds"), LISTS(HF_LIST_HOLDS), .answers = "holds", FIELDS(list_fields),
      .help = "List holds, newest first." },
    { POST("/v1/holds/{id}/confirm"), PARAM("id"), CHANGES(HF_CONFIRM), KEYED, .op = "confirm",
      .answers = "hold", REFUSES(HF_NOT_KNOWN, HF_NOT_HELD, HF_WINDOW_ELAPSED),
      FIELDS(confirm_fields), .help = "Make a hold final, before it expires." },
    { POST("/v1/holds/{id}/release"), PARAM("id"), CHANGES(HF_RELEASE), KEYED, .op = "release",
      .answers = "hold", REFUSES(HF_NOT_KNOWN, HF_NOT_HELD),
      .help = "Give the unit of a hold back." },
    { POST("/v1/holds/{id}/expire"), PARAM("id"), CHANGES(HF_EXPIRE), KEYED, .op = "expire",
      .answers = "hold", REFUSES(HF_NOT_KNOWN, HF_NOT_HELD, HF_WINDOW_NOT_ELAPSED),
      .help = "End an overdue hold." },
    { POST("/v1/holds/{id}/reverse"), PARAM("id"), CHANGES(HF_REVERSE), KEYED, .op = "reverse",
      .answers = "hold", REFUSES(HF_NOT_KNOWN, HF_NOT_HELD),
      .help = "Give the unit of a confirmed hold back, in a new record." },
    { GET("/v1/holds/{id}"), PARAM("id"), ASKS(HF_GET_HOLD), .answers = "hold",
      REFUSES(HF_NOT_KNOWN), .help = "Show a hold." },

    { PUT("/v1/resources/{name}"), PARAM("name"), CHANGES(HF_SET_RESOURCE), .answers = "resource",
      REFUSES(HF_RESOURCE_UNAVAILABLE), FIELDS(resource_fields),
      .help = "Set a resource's capacity, open or close it; missing fields do not change." },
    { GET("/v1/resources/{name}"), PARAM("name"), ASKS(HF_GET_RESOURCE), .answers = "resource",
      REFUSES(HF_NOT_KNOWN), .help = "Show a resource." },
    { GET("/v1/resources"), LISTS(HF_LIST_RESOURCES), .answers = "resources", FIRST(list_fields, 2),
      .help = "List resources, newest first." },

    { POST("/v1/guards/{name}/check"), PARAM("guard"), ASKS(HF_CHECK), .op = "check",
      .answers = "seen", REFUSES(HF_NOT_KNOWN), FIRST(identity_fields, 1),
      .help = "Was this identity recorded within the window?" },
    { POST("/v1/guards/{name}/record"), PARAM("guard"), CHANGES(HF_RECORD), .op = "record",
      .answers = "ok", REFUSES(HF_NOT_KNOWN), FIELDS(identity_fields),
      .help = "Record an identity unless it is already recorded." },
    { POST("/v1/guards/{name}/admit"), PARAM("guard"), CHANGES(HF_ADMIT), .op = "admit",
      .answers = "seen", REFUSES(HF_NOT_KNOWN), FIELDS(identity_fields),
      .help = "Check and record in one step." },
    { PUT("/v1/guards/{name}"), PARAM("guard"), CHANGES(HF_SET_GUARD), .answers = "guard",
      REFUSES(HF_WINDOW_NOT_ELAPSED), FIELDS(guard_fields),
      .help = "Create a guard, or replace all its properties: missing fields get their defaults." },
    { GET("/v1/guards/{name}"), PARAM("guard"), ASKS(HF_GET_GUARD), .answers = "guard",
      REFUSES(HF_NOT_KNOWN), .help = "Show a guard." },
    { GET("/v1/guards/{name}/entries"), PARAM("guard"), LISTS(HF_LIST_ENTRIES),
      .answers = "entries", REFUSES(HF_NOT_KNOWN), FIRST(list_fields, 2),
      .help = "List the recorded identities of a guard, newest first." },
    { GET("/v1/guards"), LISTS(HF_LIST_GUARDS), .answers = "guards", FIRST(list_fields, 2),
      .help = "List guards, newest first." },

    { POST("/v1/claims"), CHANGES(HF_BEGIN), .op = "begin", .answers = "claim",
      REFUSES(HF_IN_PROGRESS, HF_OUTCOME_UNKNOWN, HF_TOKEN_COLLISION), FIELDS(begin_fields),
      .help = "Reserve a key for an effect outside of this store." },
    { GET("/v1/claims"), LISTS(HF_LIST_CLAIMS), .answers = "claims", FIELDS(claim_list_fields),
      .help = "List claims, newest begin first." },
    { POST("/v1/claims/{key}/complete"), PARAM("key"), SETTLES(HF_COMPLETE), .op = "complete",
      .answers = "claim", REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_TOKEN_COLLISION),
      FIELDS(complete_fields), .help = "Report that the effect happened." },
    { POST("/v1/claims/{key}/fail"), PARAM("key"), SETTLES(HF_FAIL), .op = "fail",
      .answers = "claim", REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_TOKEN_COLLISION),
      FIELDS(fail_fields), .help = "Report that the effect did not happen." },
    { POST("/v1/claims/{key}/heartbeat"), PARAM("key"), SETTLES(HF_HEARTBEAT), .op = "heartbeat",
      .answers = "claim", REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_NOT_HELD),
      FIELDS(heartbeat_fields), .help = "Extend the lease of a claim." },
    { POST("/v1/claims/{key}/abandon"), PARAM("key"), SETTLES(HF_ABANDON), .op = "abandon",
      .answers = "claim", REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_NOT_HELD),
      FIELDS(abandon_fields),
      .help = "Report that the outcome is not known: the claim is unknown at once." },
    { GET("/v1/claims/{key}"), PARAM("key"), ASKS(HF_GET_CLAIM), .answers = "claim",
      REFUSES(HF_NOT_KNOWN), .help = "Show a claim." },

    { POST("/v1/leases/{name}"), PARAM("name"), CHANGES(HF_GRANT), KEYED, .answers = "lease",
      REFUSES(HF_LEASE_HELD), FIELDS(grant_fields),
      .help = "Acquire a lease of a name, with a fence." },
    { POST("/v1/leases/{name}/renew"), PARAM("name"), CHANGES(HF_RENEW), .answers = "lease",
      REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_NOT_HELD), FIELDS(renew_fields),
      .help = "Renew a lease." },
    { POST("/v1/leases/{name}/release"), PARAM("name"), CHANGES(HF_RETURN), .answers = "lease",
      REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_NOT_HELD), FIELDS(return_fields),
      .help = "Give a lease back." },
    { GET("/v1/leases/{name}"), PARAM("name"), ASKS(HF_GET_LEASE), .answers = "lease",
      REFUSES(HF_NOT_KNOWN), .help = "Show a lease." },
    { DELETE("/v1/leases/{name}"), PARAM("name"), CHANGES(HF_DELETE_LEASE), KEYED,
      .op = "delete_lease", .answers = "lease",
      REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_LEASE_HELD), FIELDS(delete_lease_fields),
      .help = "Delete a lease that is free, or that the caller holds. The fences of its name keep "
              "rising." },

    { PUT("/v1/registers/{name}"), PARAM("name"), CHANGES(HF_WRITE), KEYED, .op = "write",
      .answers = "register", REFUSES(HF_STALE_FENCE, HF_VERSION_MISMATCH), FIELDS(write_fields),
      .help = "Write a register, guarded by a fence or a version." },
    { POST("/v1/registers/{name}/merge"), PARAM("name"), CHANGES(HF_MERGE), .op = "merge",
      .answers = "register", FIELDS(merge_fields),
      .help = "Merge a value into a register; retrying is safe." },
    { GET("/v1/registers/{name}"), PARAM("name"), ASKS(HF_GET_REGISTER), .answers = "register",
      REFUSES(HF_NOT_KNOWN), .help = "Show a register." },
    { DELETE("/v1/registers/{name}"), PARAM("name"), CHANGES(HF_DELETE_REGISTER), KEYED,
      .op = "delete_register", .answers = "register",
      REFUSES(HF_NOT_KNOWN, HF_STALE_FENCE, HF_VERSION_MISMATCH), FIELDS(delete_fields),
      .help = "Delete a register. Its highest fence stays in force, and its versions continue if "
              "it is created again." },

    { POST("/v1/batch"), OTHER(HF_CALL_BULK, HF_ROLE_WRITE), .answers = "batch",
      .help =
          "A bulk request: operations, one a line, independent of each other, answered in the same "
          "order." },
    { GET("/v1/tokens/{key}"), PARAM("key"), ASKS(HF_GET_TOKEN), .answers = "token",
      REFUSES(HF_NOT_KNOWN),
      .help = "Show the first answer of the request with this key. For the key of a claim, show "
              "the claim as it is now." },
    { GET("/v1/tokens"), ASKS(HF_GET_TOKEN), .answers = "token",
      REFUSES(HF_NOT_KNOWN, HF_WINDOW_ELAPSED), FIELDS(number_fields),
      .help = "Show the first answer of a numbered client's request, by the client's name and the "
              "number." },
    { GET("/v1/audit"), OTHER(HF_CALL_AUDIT, HF_ROLE_READ), .answers = "audit",
      FIELDS(audit_fields), .help = "Check every invariant over the stored records." },
    { GET("/v1/head"), OTHER(HF_CALL_HEAD, HF_ROLE_READ), .answers = "head", REFUSES(HF_NOT_KNOWN),
      .help = "The newest batch: note its hash outside of the store, for a later audit. With an "
              "auth file, only for operators." },
    { GET("/v1/trace/{id}"), PARAM("id"), OTHER(HF_CALL_TRACE, HF_ROLE_READ), .answers = "trace",
      REFUSES(HF_NOT_KNOWN), FIELDS(trace_fields),
      .help = "Show every event of a hold or a key, by the hold's id or by the key; or of the "
              "request of a numbered client, by the client's name and ?sequence=N." },
    { GET("/v1/export"), OTHER(HF_CALL_EXPORT, HF_ROLE_ADMIN), .answers = "export",
      FIELDS(export_fields), .help = "Export all records." },
    { GET("/v1/openapi.json"), OTHER(HF_CALL_OPENAPI, HF_ROLE_NONE), .answers = "openapi",
      .help = "The OpenAPI description of this interface." },

    { GET("/healthz"), OTHER(HF_CALL_HEALTH, HF_ROLE_NONE), .answers = "health",
      .help = "Is the server alive?" },
    { GET("/readyz"), OTHER(HF_CALL_READY, HF_ROLE_NONE), .answers = "ready",
      .help = "Does the server accept requests?" },
    { GET("/metrics"), OTHER(HF_CALL_METRICS, HF_ROLE_READ), .answers = "metrics",
      .help = "Metrics, in the text format of Prometheus." },
    { GET("/"), OTHER(HF_CALL_PAGE, HF_ROLE_NONE), .answers = "page",
      .help = "The console, for a browser." },
};

const size_t hf_call_count = sizeof hf_calls / sizeof *hf_calls;

const struct hf_call_group hf_call_groups[] = {
#define GROUP(prefix, rows)              \
    {                                    \
        prefix, sizeof(prefix) - 1, rows \
    }
    GROUP("/v1/holds", 7),
    GROUP("/v1/resources", 3),
    GROUP("/v1/guards", 7),
    GROUP("/v1/claims", 7),
    GROUP("/v1/leases", 5),
    GROUP("/v1/registers", 4),
    GROUP("/v1/batch", 1),
    GROUP("/v1/tokens", 2),
    GROUP("/v1/audit", 1),
    GROUP("/v1/head", 1),
    GROUP("/v1/trace", 1),
    GROUP("/v1/export", 1),
    GROUP("/v1/openapi.json", 1),
    GROUP("/healthz", 1),
    GROUP("/readyz", 1),
    GROUP("/metrics", 1),
    GROUP("/", 1),
};

const size_t hf_call_group_count = sizeof hf_call_groups / sizeof *hf_call_groups;

uint64_t hf_call_number(const struct hf_call_field *field, const void *from)
{
    const char *at = (const char *)from + field->at;
    uint8_t one;
    uint32_t four;
    uint64_t eight;
    switch (field->size) {
    case sizeof one: memcpy(&one, at, sizeof one); return one;
    case sizeof four: memcpy(&four, at, sizeof four); return four;
    default: memcpy(&eight, at, sizeof eight); return eight;
    }
}

void hf_call_number_set(const struct hf_call_field *field, void *to, uint64_t number)
{
    char *at = (char *)to + field->at;
    uint8_t one = (uint8_t)number;
    uint32_t four = (uint32_t)number;
    switch (field->size) {
    case sizeof one: memcpy(at, &one, sizeof one); return;
    case sizeof four: memcpy(at, &four, sizeof four); return;
    default: memcpy(at, &number, sizeof number); return;
    }
}

/* The table of calls. The fields of each stand in the order of fields.h. */
#include "api/call.h"

#include "api/fields.h"

#define TEXT HF_TYPE_OF_TEXT
#define DURATION HF_TYPE_OF_DURATION
#define NUMBER HF_TYPE_OF_NUMBER
#define FLAG HF_TYPE_OF_FLAG
#define JSON HF_TYPE_OF_JSON
#define MATCH HF_TYPE_OF_MATCH
#define CHOICE HF_TYPE_OF_CHOICE
#define TIME HF_TYPE_OF_TIME

static const struct hf_call_field place_fields[F_PLACE_COUNT] = {
    [F_PLACE_RESOURCE] = { "resource", TEXT, true, NULL, "what is held" },
    [F_PLACE_REQUESTER] = { "requester", TEXT, true, NULL, "for whom" },
    [F_PLACE_DURATION] = { "duration", DURATION, true, NULL, "how long the hold lasts unless it is ended" },
    [F_PLACE_FENCE] = { "fence", NUMBER, false, NULL,
                        "refuse unless it is above every fence that a hold on the resource has carried; "
                        "without one, or "
                        "with 0, no fence is looked at" },
};

static const struct hf_call_field resource_fields[F_RESOURCE_COUNT] = {
    [F_RESOURCE_CAPACITY] = { "capacity", NUMBER, false, NULL,
                              "how many units there are, 1 to 1000000000; as it is (1 if new) unless given" },
    [F_RESOURCE_OPEN] = { "open", FLAG, false, NULL,
                          "false: no new holds; as it is (true if new) unless given" },
};

static const struct hf_call_field guard_fields[F_GUARD_COUNT] = {
    [F_GUARD_WINDOW] = { "window", DURATION, true, NULL,
                         "how long an identity is seen after it was recorded" },
    [F_GUARD_MATCH] = { "match", MATCH, false, "exact|trim|casefold|normalize|hash",
                        "what is done to an identity before it is compared, in order; exact unless given" },
    [F_GUARD_ON_UNAVAILABLE] = { "on_unavailable", CHOICE, false, "open|closed",
                                 "when the store cannot answer: not seen (open), or seen (closed)" },
    [F_GUARD_DURABLE] = { "durable", FLAG, false, NULL,
                          "false: entries are kept in memory alone; true unless given" },
};

static const struct hf_call_field identity_fields[F_IDENTITY_COUNT] = {
    [F_IDENTITY_IDENTITY] = { "identity", TEXT, true, NULL, "what may come twice" },
    [F_IDENTITY_RESULT] = { "result", JSON, false, NULL,
                            "kept with the identity and shown to who comes again" },
};

static const struct hf_call_field begin_fields[F_BEGIN_COUNT] = {
    [F_BEGIN_KEY] = { "key", TEXT, true, NULL, "the key that is claimed" },
    [F_BEGIN_FINGERPRINT] = { "fingerprint", TEXT, false, NULL,
                              "of the work: the 64 hexadecimal digits of a SHA-256, or 1 to 1024 bytes that "
                              "are hashed; this or payload" },
    [F_BEGIN_PAYLOAD] = { "payload", JSON, false, NULL,
                          "the work itself, hashed in canonical form; this or fingerprint" },
    [F_BEGIN_LEASE] = { "lease", DURATION, false, NULL, "how long to stay silent at most; 60s unless given" },
    [F_BEGIN_ON_ABANDON] = { "on_abandon", CHOICE, false, "unknown|retry",
                             "when the lease runs out: nobody goes on (unknown, unless given), or the next "
                             "begin "
                             "does (retry); a begin that goes on sets it anew, so one without it makes it "
                             "unknown" },
};

static const struct hf_call_field complete_fields[F_COMPLETE_COUNT] = {
    [F_COMPLETE_FENCE] = { "fence", NUMBER, true, NULL, "that begin answered with" },
    [F_COMPLETE_RESPONSE] = { "response", JSON, false, NULL, "what every later begin is answered with" },
};

static const struct hf_call_field fail_fields[F_FAIL_COUNT] = {
    [F_FAIL_FENCE] = { "fence", NUMBER, true, NULL, "that begin answered with" },
    [F_FAIL_RETRYABLE] = { "retryable", FLAG, false, NULL,
                           "true: the key may be begun again; false unless given" },
    [F_FAIL_ERROR] = { "error", JSON, false, NULL, "what went wrong" },
};

static const struct hf_call_field heartbeat_fields[F_HEARTBEAT_COUNT] = {
    [F_HEARTBEAT_FENCE] = { "fence", NUMBER, true, NULL, "that begin answered with" },
    [F_HEARTBEAT_LEASE] = { "lease", DURATION, false, NULL, "from now on; as before unless given" },
};

static const struct hf_call_field grant_fields[F_GRANT_COUNT] = {
    [F_GRANT_HOLDER] = { "holder", TEXT, true, NULL, "who asks for the lease" },
    [F_GRANT_TTL] = { "ttl", DURATION, true, NULL, "how long it lasts unless it is renewed" },
};

static const struct hf_call_field renew_fields[F_RENEW_COUNT] = {
    [F_RENEW_FENCE] = { "fence", NUMBER, true, NULL, "that the lease was granted with" },
    [F_RENEW_TTL] = { "ttl", DURATION, false, NULL, "from now on; as before unless given" },
};

static const struct hf_call_field return_fields[F_RETURN_COUNT] = {
    [F_RETURN_FENCE] = { "fence", NUMBER, true, NULL, "that the lease was granted with" },
};

static const struct hf_call_field write_fields[F_WRITE_COUNT] = {
    [F_WRITE_VALUE] = { "value", JSON, true, NULL, "what the register holds from now on" },
    [F_WRITE_FENCE] = { "fence", NUMBER, false, NULL,
                        "refuse unless it is above every fence that a write has carried; without one, or "
                        "with 0, no "
                        "fence is looked at, and the write is applied" },
    [F_WRITE_IF_VERSION] = { "if_version", NUMBER, false, NULL,
                             "refuse unless the register has this version; 0: unless it is not there" },
};

static const struct hf_call_field delete_fields[F_DELETE_COUNT] = {
    [F_DELETE_FENCE] = { "fence", NUMBER, false, NULL,
                         "refuse unless it is above every fence that a write has carried; without one, or "
                         "with 0, no "
                         "fence is looked at" },
    [F_DELETE_IF_VERSION] = { "if_version", NUMBER, false, NULL,
                              "refuse unless the register has this version" },
};

static const struct hf_call_field delete_lease_fields[F_DELETE_LEASE_COUNT] = {
    [F_DELETE_LEASE_FENCE] = { "fence", NUMBER, false, NULL,
                               "that the lease was granted with; needed while it is held" },
};

static const struct hf_call_field merge_fields[F_MERGE_COUNT] = {
    [F_MERGE_TYPE] = { "type", CHOICE, true, "max|min|or|union|lww|vector|counter|updown",
                       "how it is merged" },
    [F_MERGE_VALUE] = { "value", JSON, true, NULL,
                        "max, min: a whole number; or: a flag; union: an array of strings; lww: {value, "
                        "timestamp, node}; vector, counter: {node: number}; updown: {node: {up, down}}" },
};

static const struct hf_call_field list_fields[F_HOLDS_COUNT] = {
    [F_LIST_LIMIT] = { "limit", NUMBER, false, NULL,
                       "how many records at most, 1 to 1000; 100 unless given" },
    [F_LIST_CURSOR] = { "cursor", TEXT, false, NULL, "the next_cursor of the page before" },
    [F_LIST_STATE] = { "state", CHOICE, false, "held|confirmed|released|expired",
                       "only holds in this state" },
    [F_LIST_RESOURCE] = { "resource", TEXT, false, NULL, "only holds on this resource" },
    [F_LIST_REQUESTER] = { "requester", TEXT, false, NULL, "only holds for this requester" },
    [F_LIST_FROM] = { "from", TIME, false, NULL, "only holds placed at this time or later" },
    [F_LIST_TO] = { "to", TIME, false, NULL, "only holds placed before this time" },
};

static const struct hf_call_field export_fields[F_EXPORT_COUNT] = {
    [F_EXPORT_FORMAT] = { "format", CHOICE, false, "jsonl|sqlite", "jsonl unless given" },
};

#define FIELDS(table, count) .fields = (table), .field_count = (count)
#define GET(p) .method = HF_HTTP_GET, .path = (p)
#define POST(p) .method = HF_HTTP_POST, .path = (p)
#define PUT(p) .method = HF_HTTP_PUT, .path = (p)
#define DELETE(p) .method = HF_HTTP_DELETE, .path = (p)
#define PARAM(name) .param = (name)
#define ASKS(a) .kind = HF_CALL_DO, .action = (a), .role = HF_ROLE_READ
#define CHANGES(a) .kind = HF_CALL_DO, .action = (a), .role = HF_ROLE_WRITE
#define LISTS(l) .kind = HF_CALL_LIST, .list = (l), .role = HF_ROLE_READ
#define OTHER(k, r) .kind = (k), .role = (r)
#define KEYED .key = true

const struct hf_call hf_calls[] = {
    { POST("/v1/holds"), CHANGES(HF_PLACE_HOLD), KEYED, .op = "place_hold", .answers = "hold",
      FIELDS(place_fields, F_PLACE_COUNT), .help = "Hold a unit of a resource for a requester." },
    { GET("/v1/holds"), LISTS(HF_LIST_HOLDS), .answers = "holds", FIELDS(list_fields, F_HOLDS_COUNT),
      .help = "List holds, newest first." },
    { POST("/v1/holds/{id}/confirm"), PARAM("id"), CHANGES(HF_CONFIRM), KEYED, .op = "confirm",
      .answers = "hold", .help = "Take the unit for good, before the hold's time has run out." },
    { POST("/v1/holds/{id}/release"), PARAM("id"), CHANGES(HF_RELEASE), KEYED, .op = "release",
      .answers = "hold", .help = "Give the unit of a hold back." },
    { POST("/v1/holds/{id}/expire"), PARAM("id"), CHANGES(HF_EXPIRE), KEYED, .op = "expire",
      .answers = "hold", .help = "End a hold whose time has run out." },
    { POST("/v1/holds/{id}/reverse"), PARAM("id"), CHANGES(HF_REVERSE), KEYED, .op = "reverse",
      .answers = "hold", .help = "Give the unit of a confirmed hold back, in a new record." },
    { GET("/v1/holds/{id}"), PARAM("id"), ASKS(HF_GET_HOLD), .answers = "hold", .help = "Show a hold." },

    { PUT("/v1/resources/{name}"), PARAM("name"), CHANGES(HF_SET_RESOURCE), .answers = "resource",
      FIELDS(resource_fields, F_RESOURCE_COUNT),
      .help = "Set a resource's capacity, open or close it; what is left out stays as it is." },
    { GET("/v1/resources/{name}"), PARAM("name"), ASKS(HF_GET_RESOURCE), .answers = "resource",
      .help = "Show a resource." },
    { GET("/v1/resources"), LISTS(HF_LIST_RESOURCES), .answers = "resources",
      FIELDS(list_fields, F_LIST_COUNT), .help = "List resources, newest first." },

    { POST("/v1/guards/{name}/check"), PARAM("guard"), ASKS(HF_CHECK), .op = "check", .answers = "seen",
      FIELDS(identity_fields, F_IDENTITY_IDENTITY + 1),
      .help = "Was this identity recorded within the window?" },
    { POST("/v1/guards/{name}/record"), PARAM("guard"), CHANGES(HF_RECORD), .op = "record", .answers = "ok",
      FIELDS(identity_fields, F_IDENTITY_COUNT),
      .help = "Record an identity unless it is under guard already." },
    { POST("/v1/guards/{name}/admit"), PARAM("guard"), CHANGES(HF_ADMIT), .op = "admit", .answers = "seen",
      FIELDS(identity_fields, F_IDENTITY_COUNT), .help = "Check and record in one step." },
    { PUT("/v1/guards/{name}"), PARAM("guard"), CHANGES(HF_SET_GUARD), .answers = "guard",
      FIELDS(guard_fields, F_GUARD_COUNT),
      .help = "Set a guard up, or replace its rules: what is left out is as in a new one." },
    { GET("/v1/guards/{name}"), PARAM("guard"), ASKS(HF_GET_GUARD), .answers = "guard",
      .help = "Show a guard." },
    { GET("/v1/guards/{name}/entries"), PARAM("guard"), LISTS(HF_LIST_ENTRIES), .answers = "entries",
      FIELDS(list_fields, F_LIST_COUNT), .help = "List the identities under a guard, newest first." },
    { GET("/v1/guards"), LISTS(HF_LIST_GUARDS), .answers = "guards", FIELDS(list_fields, F_LIST_COUNT),
      .help = "List guards, newest first." },

    { POST("/v1/claims"), CHANGES(HF_BEGIN), .op = "begin", .answers = "claim",
      FIELDS(begin_fields, F_BEGIN_COUNT), .help = "Reserve a key for an effect outside of this store." },
    { POST("/v1/claims/{key}/complete"), PARAM("key"), CHANGES(HF_COMPLETE), .op = "complete",
      .answers = "claim", FIELDS(complete_fields, F_COMPLETE_COUNT),
      .help = "Say that the effect has happened." },
    { POST("/v1/claims/{key}/fail"), PARAM("key"), CHANGES(HF_FAIL), .op = "fail", .answers = "claim",
      FIELDS(fail_fields, F_FAIL_COUNT), .help = "Say that the effect has not happened." },
    { POST("/v1/claims/{key}/heartbeat"), PARAM("key"), CHANGES(HF_HEARTBEAT), .op = "heartbeat",
      .answers = "claim", FIELDS(heartbeat_fields, F_HEARTBEAT_COUNT), .help = "Say that the work goes on." },
    { GET("/v1/claims/{key}"), PARAM("key"), ASKS(HF_GET_CLAIM), .answers = "claim",
      .help = "Show a claim." },

    { POST("/v1/leases/{name}"), PARAM("name"), CHANGES(HF_GRANT), KEYED, .answers = "lease",
      FIELDS(grant_fields, F_GRANT_COUNT), .help = "Ask for authority over a name, with a fence." },
    { POST("/v1/leases/{name}/renew"), PARAM("name"), CHANGES(HF_RENEW), .answers = "lease",
      FIELDS(renew_fields, F_RENEW_COUNT), .help = "Keep a lease." },
    { POST("/v1/leases/{name}/release"), PARAM("name"), CHANGES(HF_RETURN), .answers = "lease",
      FIELDS(return_fields, F_RETURN_COUNT), .help = "Give a lease back." },
    { GET("/v1/leases/{name}"), PARAM("name"), ASKS(HF_GET_LEASE), .answers = "lease",
      .help = "Show a lease." },
    { DELETE("/v1/leases/{name}"), PARAM("name"), CHANGES(HF_DELETE_LEASE), KEYED, .op = "delete_lease",
      .answers = "lease", FIELDS(delete_lease_fields, F_DELETE_LEASE_COUNT),
      .help =
          "Delete a lease that nobody holds, or that the caller holds. Fences of its name go on rising." },

    { PUT("/v1/registers/{name}"), PARAM("name"), CHANGES(HF_WRITE), KEYED, .op = "write",
      .answers = "register", FIELDS(write_fields, F_WRITE_COUNT),
      .help = "Write a register, guarded by a fence or a version." },
    { POST("/v1/registers/{name}/merge"), PARAM("name"), CHANGES(HF_MERGE), .op = "merge",
      .answers = "register", FIELDS(merge_fields, F_MERGE_COUNT),
      .help = "Merge a value into a register; hearing it twice changes nothing." },
    { GET("/v1/registers/{name}"), PARAM("name"), ASKS(HF_GET_REGISTER), .answers = "register",
      .help = "Show a register." },
    { DELETE("/v1/registers/{name}"), PARAM("name"), CHANGES(HF_DELETE_REGISTER), KEYED,
      .op = "delete_register", .answers = "register", FIELDS(delete_fields, F_DELETE_COUNT),
      .help = "Delete a register. Its highest fence stays in force, and its versions go on if it is made "
              "again." },

    { POST("/v1/batch"), OTHER(HF_CALL_BATCH, HF_ROLE_WRITE), .answers = "batch",
      .help = "Many operations, one a line, independent of each other, answered in the same order." },
    { GET("/v1/tokens/{key}"), PARAM("key"), ASKS(HF_GET_TOKEN), .answers = "token",
      .help = "What happened to the request with this key? A claim's key shows the claim as it is now." },
    { GET("/v1/audit"), OTHER(HF_CALL_AUDIT, HF_ROLE_READ), .answers = "audit",
      .help = "Check every invariant over the stored records." },
    { GET("/v1/trace/{id}"), PARAM("id"), OTHER(HF_CALL_TRACE, HF_ROLE_READ), .answers = "trace",
      .help = "The life of a hold, or what a key did; by the hold's id or by the key." },
    { GET("/v1/export"), OTHER(HF_CALL_EXPORT, HF_ROLE_ADMIN), .answers = "export",
      FIELDS(export_fields, F_EXPORT_COUNT), .help = "All records, to be kept or examined elsewhere." },
    { GET("/v1/openapi.json"), OTHER(HF_CALL_OPENAPI, HF_ROLE_NONE), .answers = "openapi",
      .help = "This interface, described for programs." },

    { GET("/healthz"), OTHER(HF_CALL_HEALTH, HF_ROLE_NONE), .answers = "health",
      .help = "Does the server live?" },
    { GET("/readyz"), OTHER(HF_CALL_READY, HF_ROLE_NONE), .answers = "ready",
      .help = "Does the server take requests?" },
    { GET("/metrics"), OTHER(HF_CALL_METRICS, HF_ROLE_READ), .answers = "metrics",
      .help = "Figures, in the text format of Prometheus." },
    { GET("/"), OTHER(HF_CALL_PAGE, HF_ROLE_NONE), .answers = "page", .help = "The console, for a browser." },
};

const size_t hf_call_count = sizeof hf_calls / sizeof *hf_calls;

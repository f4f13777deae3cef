/* The schemas of answers. Each table lists the members that an encoder writes; a test compares the
 * two. */
#include "server/openapi.h"

enum shape {
    TEXT,
    TIME,
    DURATION,
    COUNT, /* a whole number, 0 or more */
    WHOLE, /* a whole number */
    FLAG,
    YES,    /* true, always */
    ANY,    /* any JSON */
    OPAQUE, /* bytes */
    HEX,
    CHOICE,    /* `detail`: the choices "a|b" */
    OBJECT,    /* `detail`: its schema */
    LIST,      /* `detail`: an array of this schema */
    CHOICES,   /* `detail`: an array of choices "a|b" */
    TEXTS,     /* an array of texts */
    COUNTS,    /* an object of numbers under any names */
    FIRST_BODY /* the first answer of a call */
};

struct member {
    const char *name;
    enum shape shape;
    const char *detail; /* see above, else NULL */
    const char *help;   /* or NULL */
    bool optional, nullable;
};

/* clang-format off */
#define HAS(n, s, d, h) { .name = (n), .shape = (s), .detail = (d), .help = (h) }
#define MAY_HAVE(n, s, d, h) \
    { .name = (n), .shape = (s), .detail = (d), .help = (h), .optional = true }
#define HAS_OR_NULL(n, s, d, h) \
    { .name = (n), .shape = (s), .detail = (d), .help = (h), .nullable = true }
#define MAY_HAVE_OR_NULL(n, s, d, h) \
    { .name = (n), .shape = (s), .detail = (d), .help = (h), .optional = true, .nullable = true }

static const struct member hold_members[] = {
    HAS("id", TEXT, NULL, "opaque, made by the server, never reused"),
    HAS("resource", TEXT, NULL, "what is held"),
    HAS("requester", TEXT, NULL, "for whom it is held"),
    HAS("state", CHOICE, "held|confirmed|released|expired", NULL),
    HAS("placed_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, "when it expires, unless it ends before"),
    MAY_HAVE("confirmed_at", TIME, NULL, "if confirmed"),
    MAY_HAVE("released_at", TIME, NULL, "if released"),
    MAY_HAVE("expired_at", TIME, NULL, "if expired"),
    MAY_HAVE("reverses", TEXT, NULL, "the id of the confirmed hold that this reversal gives back"),
    MAY_HAVE("reacquires", TEXT, NULL,
             "the id of the expired hold in whose place a late confirm made this one"),
};

static const struct member resource_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("capacity", COUNT, NULL, "number of units"),
    HAS("held", COUNT, NULL, "units held now"),
    HAS("confirmed", COUNT, NULL, "units confirmed"),
    HAS("available", COUNT, NULL, "units that can be held now; 0 while closed"),
    HAS("open", FLAG, NULL, "may new holds be placed?"),
    HAS("fence", COUNT, NULL, "the highest fence of a hold on it, or 0"),
    MAY_HAVE("require_fence", FLAG, NULL, "true: a hold without a fence is refused"),
};

#define MATCHES "exact|trim|casefold|normalize|hash"

static const struct member guard_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("window", DURATION, NULL, "how long an identity is remembered after it was recorded"),
    HAS("match", CHOICES, MATCHES, "the steps of the match rule, in order"),
    HAS("on_unavailable", CHOICE, "open|closed",
        "what a check answers if the store is unavailable: open: not seen; closed: seen"),
    HAS("durable", FLAG, NULL, "false: entries are kept only in memory"),
    HAS("created_at", TIME, NULL, NULL),
};

static const struct member entry_members[] = {
    MAY_HAVE("identity", OPAQUE, NULL,
        "in the form in which it is compared; missing if the guard stores hashes"),
    MAY_HAVE("identity_sha256", HEX, NULL, "instead of identity, if the guard stores hashes"),
    HAS("recorded_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, "when its window closes"),
    MAY_HAVE("result", ANY, NULL, "the result that was recorded with it"),
};

static const struct member seen_members[] = {
    HAS("seen", FLAG, NULL, "was it recorded within the window?"),
    MAY_HAVE("recorded_at", TIME, NULL, "if seen and known"),
    MAY_HAVE("expires_at", TIME, NULL, "when its window closes"),
    MAY_HAVE("result", ANY, NULL, "the result that was recorded with it"),
};

static const struct member ok_members[] = { HAS("ok", YES, NULL, NULL) };

static const struct member claim_members[] = {
    HAS("key", OPAQUE, NULL, NULL),
    HAS("status", CHOICE, "started|completed|failed|unknown",
        "unknown: its lease ran out before it was settled, or it was abandoned; the effect may or "
        "may not have happened"),
    HAS("fence", COUNT, NULL, "for complete, fail, heartbeat and abandon; rises with each begin"),
    HAS("fingerprint", HEX, NULL, "of the request: given, or the SHA-256 of the payload"),
    HAS("on_abandon", CHOICE, "unknown|retry",
        "what a begin gets after the lease ran out: unknown refuses it, retry lets it take over"),
    HAS("lease", DURATION, NULL, NULL),
    MAY_HAVE("retention", DURATION, NULL,
             "how long it is remembered once it is settled; if missing, the idempotency window"),
    HAS("begun_at", TIME, NULL, NULL),
    HAS("lease_expires_at", TIME, NULL, NULL),
    MAY_HAVE("unknown_since", TIME, NULL, "if unknown"),
    MAY_HAVE("response", ANY, NULL, "if completed"),
    MAY_HAVE("error", ANY, NULL, "if failed"),
    MAY_HAVE("retryable", FLAG, NULL, "if failed: may it be begun again?"),
    MAY_HAVE("settled_at", TIME, NULL, "if settled"),
    MAY_HAVE("expires_at", TIME, NULL, "if settled: when it is forgotten"),
};

static const struct member lease_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("holder", TEXT, NULL, NULL),
    HAS("fence", COUNT, NULL,
        "rises with each grant; send it to the resource that the lease protects"),
    HAS("ttl", DURATION, NULL, NULL),
    HAS("granted_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, NULL),
    MAY_HAVE("released_at", TIME, NULL, "if returned"),
};

static const struct member register_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("type", CHOICE, "plain|max|min|or|union|lww|vector|counter|updown|deleted",
        "plain: it is written; deleted: this call deleted it, and its value is null; else how it "
        "is merged"),
    HAS("value", ANY, NULL, "in the form of its type; it can be merged into another register"),
    MAY_HAVE("total", WHOLE, NULL, "of a counter or updown"),
    HAS("version", COUNT, NULL, "1, 2, 3 ... with each change"),
    HAS("fence", COUNT, NULL, "the highest fence of a write, or 0"),
    MAY_HAVE("require_fence", FLAG, NULL, "true: a write without a fence is refused"),
};

static const struct member token_members[] = {
    HAS("action", TEXT, NULL, "such as place_hold"),
    HAS("digest", HEX, NULL, "of the action's parameters"),
    HAS("digest_function", TEXT, NULL, NULL),
    HAS("recorded_at", TIME, NULL, "the time of the first call; for a claim: of its newest begin"),
    MAY_HAVE("expires_at", TIME, NULL,
             "when the key's window closes; 9999-12-31 for an unsettled claim; absent for a number "
             "of a client, which is remembered until it is 256 below the highest"),
    HAS("status", COUNT, NULL,
        "the HTTP status of the first answer; for a claim: what a begin would get now"),
    HAS("body", FIRST_BODY, NULL,
        "the first answer; for a claim: the claim as it is now, not the answer of its begin"),
};

static const struct member batch_line_members[] = {
    HAS("status", COUNT, NULL, "the HTTP status that a single request would get"),
    HAS("replayed", FLAG, NULL, "is this answer a replay?"),
    HAS("body", FIRST_BODY, NULL, "the body that a single request would get"),
};

/* The library reads a limited number of records for a page, and the server for a limited time. */
#define PAGE ", newest first. A page may be short or empty although more follow: the list ends " \
             "only with a next_cursor of null."
#define CURSOR \
    HAS_OR_NULL("next_cursor", TEXT, NULL, "for the next page; null: the list is complete")

static const struct member holds_members[] = {
    HAS("holds", LIST, "hold", "newest first"), CURSOR };
static const struct member resources_members[] = {
    HAS("resources", LIST, "resource", "newest first"), CURSOR };
static const struct member guards_members[] = {
    HAS("guards", LIST, "guard", "newest first"), CURSOR };
static const struct member entries_members[] = {
    HAS("entries", LIST, "entry", "newest first"), CURSOR };
static const struct member claims_members[] = {
    HAS("claims", LIST, "claim", "newest begin first"), CURSOR };

static const struct member audit_members[] = {
    HAS("verdict", CHOICE, "ok|violations|damaged", NULL),
    HAS_OR_NULL("tenant", OPAQUE, NULL,
        "the report covers only this tenant's records; null: all tenants"),
    MAY_HAVE("tenant_entries", COUNT, NULL, "number of entries of that tenant"),
    MAY_HAVE("expected_head_found", FLAG, NULL, "with expect_head: is it in the chain?"),
    HAS("checks", LIST, "audit_check", NULL),
    HAS("configuration", LIST, "audit_configuration",
        "oldest first; each applies until the next one"),
    HAS("guards", LIST, "audit_guard", "as each was last set; at most 1000"),
    HAS("near_duplicates", OBJECT, "audit_near_duplicates", NULL),
    HAS("claims", OBJECT, "audit_claims", NULL),
    HAS("journal", OBJECT, "audit_journal", NULL),
    HAS("holds", OBJECT, "audit_holds", NULL),
    HAS("failures_cached", OBJECT, "audit_failures", NULL),
    HAS("records", OBJECT, "audit_records", NULL),
};

static const struct member audit_check_members[] = {
    HAS("name", TEXT, NULL, "such as PC7"),
    HAS("title", TEXT, NULL, NULL),
    HAS("meaning", TEXT, NULL, "what the check verifies"),
    HAS("outcome", CHOICE, "ok|broken|incomplete", NULL),
    HAS("checked", COUNT, NULL, "number of records checked"),
    HAS("violations", COUNT, NULL, NULL),
    HAS("examples", TEXTS, NULL, "descriptions of violations, at most 100"),
};

static const struct member audit_configuration_members[] = {
    HAS("since", TIME, NULL, NULL),
    MAY_HAVE("position", COUNT, NULL, "in the journal; not in the audit of one tenant"),
    HAS("idempotency_window", DURATION, NULL, NULL),
    HAS("idempotency_window_ms", COUNT, NULL, NULL),
    HAS("token_max_length", COUNT, NULL, "bytes of a key"),
    HAS("registry", CHOICE, "open|strict", NULL),
    HAS("digest_function", TEXT, NULL, NULL),
    HAS("program", TEXT, NULL, "the program version that wrote it"),
};

static const struct member audit_near_duplicates_members[] = {
    HAS("within_ms", COUNT, NULL, NULL),
    HAS("count", COUNT, NULL, NULL),
    HAS("not_legitimate", COUNT, NULL, "of the listed pairs"),
    HAS("listed", LIST, "audit_near_duplicate", "at most 100"),
};

static const struct member audit_near_duplicate_members[] = {
    HAS("first", TEXT, NULL, "a hold's id"),
    HAS("first_at", TIME, NULL, NULL),
    HAS("first_key", TEXT, NULL, NULL),
    HAS("second", TEXT, NULL, "a hold's id"),
    HAS("second_at", TIME, NULL, NULL),
    HAS("second_key", TEXT, NULL, NULL),
    HAS("resource", TEXT, NULL, NULL),
    HAS("requester", TEXT, NULL, NULL),
    HAS("legitimate", FLAG, NULL, NULL),
    HAS("why", TEXT, NULL, NULL),
};

static const struct member head_members[] = {
    HAS("position", COUNT, NULL, "after it; with a database, the number of the newest entry"),
    HAS("hash", HEX, NULL, "its SHA-256: holdfast audit --expect-head looks for it"),
    HAS("at", TIME, NULL, "when it was written"),
};

static const struct member audit_guard_members[] = {
    HAS("guard", TEXT, NULL, "its name and tenant"),
    HAS("window_ms", COUNT, NULL, NULL),
    HAS("match", CHOICES, "exact|trim|casefold|normalize|hash", "empty: exact"),
    HAS("on_unavailable", CHOICE, "open|closed", NULL),
    HAS("durable", FLAG, NULL, NULL),
    HAS("since", TIME, NULL, NULL),
    HAS("forced", COUNT, NULL, "how often the match rule was changed over live entries"),
};

static const struct member audit_claims_members[] = {
    HAS("count", COUNT, NULL, "keys that were begun"),
    HAS("begun", COUNT, NULL, "begins in all"),
    HAS("retried", COUNT, NULL, "of these after a failure that may be retried"),
    HAS("taken_over", COUNT, NULL, "because the lease ran out and on_abandon is retry"),
    HAS("begun_again", COUNT, NULL, "because the retention of the first was over"),
    HAS("completed", COUNT, NULL, "calls of complete"),
    HAS("failed", COUNT, NULL, "calls of fail, for good"),
    HAS("failed_retryable", COUNT, NULL, "calls of fail with retryable"),
    HAS("abandoned", COUNT, NULL, "calls of abandon"),
    HAS("now", OBJECT, "audit_claims_now", "claims by their state at the end"),
    HAS("listed", LIST, "audit_rerun", "keys that were taken over or began again after their "
        "retention; at most 100"),
};

static const struct member audit_claims_now_members[] = {
    HAS("started", COUNT, NULL, NULL),
    HAS("completed", COUNT, NULL, NULL),
    HAS("failed", COUNT, NULL, NULL),
    HAS("retryable", COUNT, NULL, NULL),
    HAS("unknown", COUNT, NULL, NULL),
};

static const struct member audit_rerun_members[] = {
    HAS("claim", TEXT, NULL, "its key and tenant"),
    HAS("because", CHOICE, "taken-over|retention-over", NULL),
    HAS("first_state", CHOICE, "started|completed|failed|retryable", NULL),
    HAS("first_at", TIME, NULL, "begun"),
    HAS("first_fence", COUNT, NULL, NULL),
    HAS("first_ended_at", TIME, NULL, "settled, or its lease ran out"),
    HAS_OR_NULL("remembered_until", TIME, NULL, NULL),
    HAS("second_at", TIME, NULL, "begun again"),
    HAS("second_fence", COUNT, NULL, NULL),
};

/* Figures over all tenants are not in the audit of one tenant. */
#define ALL "; not in the audit of one tenant"

static const struct member audit_journal_members[] = {
    MAY_HAVE("directory", TEXT, NULL, "of the store; not over HTTP"),
    MAY_HAVE_OR_NULL("open_by", TEXT, NULL, "the process that has the store open" ALL),
    MAY_HAVE("store_id", HEX, NULL, "of the store" ALL),
    MAY_HAVE_OR_NULL("chain_head", HEX, NULL, "SHA-256 of the newest batch: note it" ALL),
    MAY_HAVE("chain_head_sequence", COUNT, NULL, "its number" ALL),
    MAY_HAVE("batches", COUNT, NULL, "number of batches" ALL),
    MAY_HAVE("batches_judged", COUNT, NULL, "fewer than batches if some batches are lost" ALL),
    HAS("entries", COUNT, NULL, NULL),
    HAS("records", COUNT, NULL, NULL),
    MAY_HAVE("segments", COUNT, NULL, "files" ALL),
    MAY_HAVE("segments_compressed", COUNT, NULL, "compressed files" ALL),
    MAY_HAVE("end", COUNT, NULL, "position after the newest batch" ALL),
    MAY_HAVE("torn_bytes", COUNT, NULL,
        "of a batch that a crash cut short; it was never acknowledged" ALL),
    MAY_HAVE("snapshots_unusable", COUNT, NULL,
        "damaged, or of version 1; the next start reads the journal instead" ALL),
    MAY_HAVE("index_parts", COUNT, NULL,
        "parts of holds.idx that were compared with the journal; 0: not possible" ALL),
    MAY_HAVE("index_wrong", COUNT, NULL,
        "parts that differ from the journal; rebuilt at the next start" ALL),
    HAS_OR_NULL("first_at", TIME, NULL, NULL),
    HAS_OR_NULL("last_at", TIME, NULL, NULL),
    MAY_HAVE("damage", LIST, "audit_damage", "at most 16" ALL),
    HAS("damaged", FLAG, NULL, "is the journal damaged?"),
};

static const struct member audit_damage_members[] = {
    HAS("file", TEXT, NULL, NULL),
    HAS("offset", COUNT, NULL, NULL),
    HAS("sequence", COUNT, NULL, "of the batch that should be here"),
    HAS("what", TEXT, NULL, NULL),
    HAS("next_whole_sequence", COUNT, NULL, NULL),
    HAS("next_whole_file", TEXT, NULL, NULL),
    HAS("next_whole_offset", COUNT, NULL, NULL),
};

static const struct member audit_holds_members[] = {
    HAS("count", COUNT, NULL, "without reversals"),
    HAS("traced_to_key", COUNT, NULL, NULL),
    HAS("held", COUNT, NULL, NULL),
    HAS("confirmed", COUNT, NULL, NULL),
    HAS("released", COUNT, NULL, NULL),
    HAS("expired", COUNT, NULL, NULL),
    HAS("overdue", COUNT, NULL, "held, but past expires_at"),
    HAS("reversals", COUNT, NULL, NULL),
};

static const struct member audit_failures_members[] = {
    HAS("remembered", COUNT, NULL, "remembered requests, with refusals"),
    HAS("count", COUNT, NULL, "remembered refusals"),
    HAS("by_code", COUNTS, NULL, NULL),
};

static const struct member audit_records_members[] = {
    HAS("resources", COUNT, NULL, NULL),
    HAS("guards", COUNT, NULL, NULL),
    HAS("guards_in_memory", COUNT, NULL, "guards whose entries are only in memory"),
    HAS("recordings", COUNT, NULL, NULL),
    HAS("leases", COUNT, NULL, NULL),
    HAS("registers", COUNT, NULL, NULL),
    HAS("clients", COUNT, NULL, NULL),
    HAS("outbox", COUNT, NULL, NULL),
};

static const struct member trace_members[] = {
    HAS("kind", CHOICE, "hold|key", NULL),
    HAS("name", OPAQUE, NULL, "the id or key of the request"),
    HAS("found", YES, NULL, NULL),
    HAS("as_of", TIME, NULL, "the time of the newest batch; with an auth file: of the call"),
    HAS("summary", TEXT, NULL, NULL),
    MAY_HAVE("tenants", LIST, "trace_tenant",
        "those that have events, at most 100; not in the trace of one tenant"),
    HAS("damaged", FLAG, NULL, "true: events may be missing"),
    MAY_HAVE("omitted", COUNT, NULL,
        "number of events that are not shown, if there are more than 1,000"),
    HAS("events", LIST, "trace_event", "oldest first: the first 500 and the newest 500"),
};

static const struct member trace_tenant_members[] = {
    HAS("tenant", OPAQUE, NULL, NULL),
    HAS("events", COUNT, NULL, NULL),
    MAY_HAVE("summary", TEXT, NULL, "of a key: what it stands for now"),
};

static const struct member trace_event_members[] = {
    HAS("at", TIME, NULL, NULL),
    MAY_HAVE("position", COUNT, NULL, "in the journal; not in the trace of one tenant"),
    HAS("action", TEXT, NULL, NULL),
    HAS("status", TEXT, NULL, "ok, or the code of the refusal"),
    HAS("tenant", OPAQUE, NULL, NULL),
    MAY_HAVE("key", OPAQUE, NULL, NULL),
    MAY_HAVE("key_expires_at", TIME, NULL, NULL),
    MAY_HAVE("client", OPAQUE, NULL, "instead of a key"),
    MAY_HAVE("sequence", COUNT, NULL, "the client's number"),
    MAY_HAVE("digest", HEX, NULL, NULL),
    HAS("words", TEXT, NULL, "description for people"),
};

static const struct member ready_members[] = {
    HAS("ready", FLAG, NULL, NULL),
    MAY_HAVE("why", TEXT, NULL, "the reason, if not ready"),
};

#define MEMBERS(table) (table), sizeof(table) / sizeof *(table)

static const struct schema {
    const char *name, *about;
    const struct member *members;
    size_t count;
} schemas[] = {
    { "hold", "One unit of a resource, held for a requester for a limited time.",
      MEMBERS(hold_members) },
    { "holds", "A page of holds" PAGE, MEMBERS(holds_members) },
    { "resource", "Something with a number of units that can be held.", MEMBERS(resource_members) },
    { "resources", "A page of resources" PAGE, MEMBERS(resources_members) },
    { "guard", "A rule that finds duplicate identities.", MEMBERS(guard_members) },
    { "guards", "A page of guards" PAGE, MEMBERS(guards_members) },
    { "entry", "An identity under guard.", MEMBERS(entry_members) },
    { "entries", "A page of identities" PAGE, MEMBERS(entries_members) },
    { "seen", "Whether an identity was recorded within the window, and its result.",
      MEMBERS(seen_members) },
    { "ok", "Done.", MEMBERS(ok_members) },
    { "claim", "A key that is reserved for an effect outside of this store.",
      MEMBERS(claim_members) },
    { "claims", "A page of claims" PAGE, MEMBERS(claims_members) },
    { "lease", "Authority over a name for a limited time, with a fence.", MEMBERS(lease_members) },
    { "register", "A named value.", MEMBERS(register_members) },
    { "token", "The first answer of a key, or its claim.", MEMBERS(token_members) },
    { "batch_line", "The answer to one line of a bulk request.", MEMBERS(batch_line_members) },
    { "audit", "All checks of the stored records, with counts.", MEMBERS(audit_members) },
    { "audit_check", "One check.", MEMBERS(audit_check_members) },
    { "audit_configuration", "A configuration, and the time since which it applies.",
      MEMBERS(audit_configuration_members) },
    { "head", "The newest batch.", MEMBERS(head_members) },
    { "audit_guard", "A guard as it was last set.", MEMBERS(audit_guard_members) },
    { "audit_claims", "What happened to claims.", MEMBERS(audit_claims_members) },
    { "audit_claims_now", "Claims by state.", MEMBERS(audit_claims_now_members) },
    { "audit_rerun", "A key that began again.", MEMBERS(audit_rerun_members) },
    { "audit_near_duplicates", "Holds of one requester on one resource, close in time.",
      MEMBERS(audit_near_duplicates_members) },
    { "audit_near_duplicate", "Two such holds, and whether they are legitimate.",
      MEMBERS(audit_near_duplicate_members) },
    { "audit_journal", "The journal that was read.", MEMBERS(audit_journal_members) },
    { "audit_damage", "A place where the journal is damaged.", MEMBERS(audit_damage_members) },
    { "audit_holds", "Holds, by state.", MEMBERS(audit_holds_members) },
    { "audit_failures", "Refusals that are remembered as answers.",
      MEMBERS(audit_failures_members) },
    { "audit_records", "How many records of each kind there are.", MEMBERS(audit_records_members) },
    { "trace", "The events of a hold or a key.", MEMBERS(trace_members) },
    { "trace_tenant", "A tenant with events in a trace.", MEMBERS(trace_tenant_members) },
    { "trace_event", "One event.", MEMBERS(trace_event_members) },
    { "health", "The server is running.", MEMBERS(ok_members) },
    { "ready", "Whether the server accepts requests.", MEMBERS(ready_members) },
};

/* Answers that are not our JSON. */
static const struct { const char *name, *about; } others[] = {
    { "batch", "The answers, one per line, in the order of the operations." },
    { "export", "All records: JSON lines, or a SQLite database." },
    { "openapi", "This description." },
    { "metrics", "Figures for Prometheus." },
    { "page", "The start page." },
};
/* clang-format on */

const char *hf_openapi_about(const char *schema)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        if (strcmp(schemas[i].name, schema) == 0)
            return schemas[i].about;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, schema) == 0)
            return others[i].about;
    return "The answer.";
}

/* ---- Members ---- */

static void type_add(struct hf_json *j, const char *type, bool nullable)
{
    hf_json_name(j, "type");
    if (!nullable) {
        hf_json_text(j, type);
        return;
    }
    hf_json_array(j);
    hf_json_text(j, type);
    hf_json_text(j, "null");
    hf_json_array_end(j);
}

/* A value of one of these schemas, or null. */
static void any_of_add(struct hf_json *j, const char *const *names, size_t count, bool nullable)
{
    hf_json_name(j, "anyOf");
    hf_json_array(j);
    for (size_t i = 0; i < count; i++)
        hf_openapi_ref(j, "schemas", names[i]);
    if (nullable) {
        hf_json_object(j);
        hf_openapi_text(j, "type", "null");
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
}

static void ref_add(struct hf_json *j, const char *name, bool nullable)
{
    if (nullable) {
        any_of_add(j, &name, 1, true);
        return;
    }
    hf_json_name(j, "$ref");
    hf_json_joined(j, "#/components/schemas/", name);
}

static void list_add(struct hf_json *j, const struct member *m)
{
    type_add(j, "array", m->nullable);
    hf_json_name(j, "items");
    if (m->shape == LIST) {
        hf_openapi_ref(j, "schemas", m->detail);
        return;
    }
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    if (m->shape == CHOICES)
        hf_openapi_choices(j, m->detail);
    hf_json_object_end(j);
}

static void count_add(struct hf_json *j)
{
    hf_json_name(j, "minimum");
    hf_json_uint(j, 0);
}

static void shape_add(struct hf_json *j, const struct member *m)
{
    static const char *const bodies[] = { "hold",  "seen",     "ok",    "claim",
                                          "lease", "register", "bytes", "problem" };
    switch (m->shape) {
    case TEXT: type_add(j, "string", m->nullable); break;
    case TIME: ref_add(j, "time", m->nullable); break;
    case DURATION: ref_add(j, "duration", m->nullable); break;
    case OPAQUE: ref_add(j, "bytes", m->nullable); break;
    case HEX: ref_add(j, "hex", m->nullable); break;
    case OBJECT: ref_add(j, m->detail, m->nullable); break;
    case WHOLE: type_add(j, "integer", m->nullable); break;
    case COUNT:
        type_add(j, "integer", m->nullable);
        count_add(j);
        break;
    case FLAG: type_add(j, "boolean", m->nullable); break;
    case YES:
        hf_json_name(j, "const");
        hf_json_bool(j, true);
        break;
    case ANY: break;
    case CHOICE:
        type_add(j, "string", m->nullable);
        hf_openapi_choices(j, m->detail);
        break;
    case LIST:
    case CHOICES:
    case TEXTS: list_add(j, m); break;
    case COUNTS:
        type_add(j, "object", m->nullable);
        hf_json_name(j, "additionalProperties");
        hf_json_object(j);
        type_add(j, "integer", false);
        count_add(j);
        hf_json_object_end(j);
        break;
    case FIRST_BODY: any_of_add(j, bodies, sizeof bodies / sizeof *bodies, m->nullable); break;
    }
}

static void schema_add(struct hf_json *j, const struct schema *s)
{
    hf_json_name_bytes(j, hf_str(s->name));
    hf_json_object(j);
    hf_openapi_text(j, "description", s->about);
    hf_openapi_text(j, "type", "object");
    hf_json_name(j, "properties");
    hf_json_object(j);
    for (size_t i = 0; i < s->count; i++) {
        hf_json_name_bytes(j, hf_str(s->members[i].name));
        hf_json_object(j);
        shape_add(j, &s->members[i]);
        if (s->members[i].help)
            hf_openapi_text(j, "description", s->members[i].help);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
    hf_json_name(j, "required");
    hf_json_array(j);
    for (size_t i = 0; i < s->count; i++)
        if (!s->members[i].optional)
            hf_json_text(j, s->members[i].name);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

/* ---- What the members are made of ---- */

static void pattern_add(struct hf_json *j, const char *about, const char *pattern,
                        const char *example)
{
    hf_json_object(j);
    hf_openapi_text(j, "description", about);
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "pattern", pattern);
    hf_json_name(j, "examples");
    hf_json_array(j);
    hf_json_text(j, example);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void bytes_add(struct hf_json *j)
{
    hf_json_name(j, "bytes");
    hf_json_object(j);
    hf_openapi_text(j, "description",
                    "Any bytes: a string if they are UTF-8, else base64 (RFC 4648).");
    hf_json_name(j, "anyOf");
    hf_json_array(j);
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_json_object_end(j);
    hf_json_object(j);
    hf_openapi_text(j, "type", "object");
    hf_json_name(j, "properties");
    hf_json_object(j);
    hf_json_name(j, "base64");
    hf_json_object(j);
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "contentEncoding", "base64");
    hf_json_object_end(j);
    hf_json_object_end(j);
    hf_json_name(j, "required");
    hf_json_array(j);
    hf_json_text(j, "base64");
    hf_json_array_end(j);
    hf_json_object_end(j);
    hf_json_array_end(j);
    hf_json_object_end(j);
}

static void simple_add(struct hf_json *j)
{
    hf_json_name(j, "time");
    hf_json_object(j);
    hf_openapi_text(j, "description", "RFC 3339, UTC, with milliseconds.");
    hf_openapi_text(j, "type", "string");
    hf_openapi_text(j, "format", "date-time");
    hf_json_object_end(j);
    hf_json_name(j, "duration");
    pattern_add(j, "A whole number with a unit; without a unit it is in seconds. At most 3650d.",
                "^[0-9]+(ms|s|m|h|d)?$", "15m");
    hf_json_name(j, "seconds");
    hf_json_object(j);
    hf_openapi_text(j, "description", "A duration in whole seconds.");
    type_add(j, "integer", false);
    count_add(j);
    hf_json_object_end(j);
    hf_json_name(j, "hex");
    pattern_add(j, "Bytes in lower-case hexadecimal.", "^([0-9a-f][0-9a-f])*$", "00ff");
    bytes_add(j);
}

/* The schema of this document itself: any object. */
static void openapi_add(struct hf_json *j)
{
    hf_json_name(j, "openapi");
    hf_json_object(j);
    hf_openapi_text(j, "description", "A document of OpenAPI 3.1.");
    type_add(j, "object", false);
    hf_json_object_end(j);
}

void hf_openapi_answers(struct hf_json *j)
{
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++)
        schema_add(j, &schemas[i]);
    simple_add(j);
    hf_openapi_problem(j);
    openapi_add(j);
}

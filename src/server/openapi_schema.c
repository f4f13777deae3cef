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
#define MAY_HAVE(n, s, d, h) { .name = (n), .shape = (s), .detail = (d), .help = (h), .optional = true }
#define HAS_OR_NULL(n, s, d, h) { .name = (n), .shape = (s), .detail = (d), .help = (h), .nullable = true }
#define MAY_HAVE_OR_NULL(n, s, d, h) { .name = (n), .shape = (s), .detail = (d), .help = (h), .optional = true, .nullable = true }

static const struct member hold_members[] = {
    HAS("id", TEXT, NULL, "opaque, made by the server, never used again"),
    HAS("resource", TEXT, NULL, "what is held"),
    HAS("requester", TEXT, NULL, "for whom"),
    HAS("state", CHOICE, "held|confirmed|released|expired", NULL),
    HAS("placed_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, "when its time runs out, unless it ended before"),
    MAY_HAVE("confirmed_at", TIME, NULL, "if it is confirmed"),
    MAY_HAVE("released_at", TIME, NULL, "if it is released"),
    MAY_HAVE("expired_at", TIME, NULL, "if it is expired"),
    MAY_HAVE("reverses", TEXT, NULL, "the id of the confirmed hold whose unit this record gives back"),
};

static const struct member resource_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("capacity", COUNT, NULL, "how many units there are"),
    HAS("held", COUNT, NULL, "units that are held"),
    HAS("confirmed", COUNT, NULL, "units that are taken for good"),
    HAS("available", COUNT, NULL, "units that can be held now; 0 while it is closed"),
    HAS("open", FLAG, NULL, "may new holds be placed?"),
    HAS("fence", COUNT, NULL, "the highest fence that a hold on it has carried, or 0"),
};

#define MATCHES "exact|trim|casefold|normalize|hash"

static const struct member guard_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("window", DURATION, NULL, "how long an identity is seen after it was recorded"),
    HAS("match", CHOICES, MATCHES, "what is done to an identity before it is compared, in order"),
    HAS("on_unavailable", CHOICE, "open|closed", "what a check answers when the store cannot"),
    HAS("durable", FLAG, NULL, "false: entries are kept in memory alone"),
    HAS("created_at", TIME, NULL, NULL),
};

static const struct member entry_members[] = {
    MAY_HAVE("identity", OPAQUE, NULL, "as it is compared; not there if the guard keeps hashes"),
    MAY_HAVE("identity_sha256", HEX, NULL, "instead of identity, if the guard keeps hashes"),
    HAS("recorded_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, "when its window closes"),
    MAY_HAVE("result", ANY, NULL, "what was recorded with it"),
};

static const struct member seen_members[] = {
    HAS("seen", FLAG, NULL, "was it recorded within the window?"),
    MAY_HAVE("recorded_at", TIME, NULL, "if it was seen and that is known"),
    MAY_HAVE("expires_at", TIME, NULL, "when its window closes"),
    MAY_HAVE("result", ANY, NULL, "what was recorded with it"),
};

static const struct member ok_members[] = { HAS("ok", YES, NULL, NULL) };

static const struct member claim_members[] = {
    HAS("key", OPAQUE, NULL, NULL),
    HAS("status", CHOICE, "started|completed|failed|unknown",
      "unknown: its lease ran out without a word, so it may or may not have happened"),
    HAS("fence", COUNT, NULL, "to complete, fail and heartbeat with; rises with each begin"),
    HAS("fingerprint", HEX, NULL, "of the work"),
    HAS("on_abandon", CHOICE, "unknown|retry", "what becomes of it when its lease runs out"),
    HAS("lease", DURATION, NULL, NULL),
    HAS("begun_at", TIME, NULL, NULL),
    HAS("lease_expires_at", TIME, NULL, NULL),
    MAY_HAVE("response", ANY, NULL, "if it is completed"),
    MAY_HAVE("error", ANY, NULL, "if it failed"),
    MAY_HAVE("retryable", FLAG, NULL, "if it failed: may it be begun again?"),
    MAY_HAVE("settled_at", TIME, NULL, "if it is settled"),
    MAY_HAVE("expires_at", TIME, NULL, "if it is settled: when it is forgotten"),
};

static const struct member lease_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("holder", TEXT, NULL, NULL),
    HAS("fence", COUNT, NULL, "rises with each grant; give it to whatever the lease protects"),
    HAS("ttl", DURATION, NULL, NULL),
    HAS("granted_at", TIME, NULL, NULL),
    HAS("expires_at", TIME, NULL, NULL),
    MAY_HAVE("released_at", TIME, NULL, "if it was given back"),
};

static const struct member register_members[] = {
    HAS("name", TEXT, NULL, NULL),
    HAS("type", CHOICE, "plain|max|min|or|union|lww|vector|counter|updown|deleted", "plain if it is written, else how it is merged; deleted: it was deleted by this call, and its value is null"),
    HAS("value", ANY, NULL, "in the shape of its type; it can be merged elsewhere as it is"),
    MAY_HAVE("total", WHOLE, NULL, "of a counter"),
    HAS("version", COUNT, NULL, "1, 2, 3 ... with each change"),
    HAS("fence", COUNT, NULL, "the highest fence that a write has carried, or 0"),
};

static const struct member token_members[] = {
    HAS("action", TEXT, NULL, "what was asked, such as place_hold"),
    HAS("digest", HEX, NULL, "of the action's parameters"),
    HAS("digest_function", TEXT, NULL, NULL),
    HAS("recorded_at", TIME, NULL, "of the first call; of a claim, of its newest begin"),
    HAS("expires_at", TIME, NULL, "when its window closes and the key is forgotten; 9999-12-31 for a claim that is not settled"),
    HAS("status", COUNT, NULL, "the HTTP status of the first answer; of a claim, that of a begin that met it as it is now"),
    HAS("body", FIRST_BODY, NULL, "the first answer; of a claim, the claim as it is now, not as its begin was answered"),
};

static const struct member batch_line_members[] = {
    HAS("status", COUNT, NULL, "the HTTP status that the call by itself would have"),
    HAS("replayed", FLAG, NULL, "is this a first answer, given again?"),
    HAS("body", FIRST_BODY, NULL, "what the call by itself would be answered with"),
};

/* The library reads a limited number of records for a page, and the server for a limited time. */
#define PAGE ", newest first. It may be short, or even empty, and still go on: only a next_cursor of null is the end."
#define CURSOR HAS_OR_NULL("next_cursor", TEXT, NULL, "for the next page; null, and nothing else, means that that was all")

static const struct member holds_members[] = { HAS("holds", LIST, "hold", "newest first"), CURSOR };
static const struct member resources_members[] = { HAS("resources", LIST, "resource", "newest first"), CURSOR };
static const struct member guards_members[] = { HAS("guards", LIST, "guard", "newest first"), CURSOR };
static const struct member entries_members[] = { HAS("entries", LIST, "entry", "newest first"), CURSOR };

static const struct member audit_members[] = {
    HAS("verdict", CHOICE, "ok|violations|damaged", NULL),
    HAS_OR_NULL("tenant", OPAQUE, NULL, "the only one whose records are judged, counted and named; null: those of all are"),
    MAY_HAVE("tenant_entries", COUNT, NULL, "how many entries are that tenant's"),
    HAS("checks", LIST, "audit_check", NULL),
    HAS("configuration", LIST, "audit_configuration", "oldest first; each is in force until the next"),
    HAS("near_duplicates", OBJECT, "audit_near_duplicates", NULL),
    HAS("journal", OBJECT, "audit_journal", NULL),
    HAS("holds", OBJECT, "audit_holds", NULL),
    HAS("failures_cached", OBJECT, "audit_failures", NULL),
    HAS("records", OBJECT, "audit_records", NULL),
};

static const struct member audit_check_members[] = {
    HAS("name", TEXT, NULL, "such as PC7"),
    HAS("title", TEXT, NULL, NULL),
    HAS("meaning", TEXT, NULL, "what is checked over the records"),
    HAS("outcome", CHOICE, "ok|broken|incomplete", NULL),
    HAS("checked", COUNT, NULL, "records that were looked at"),
    HAS("violations", COUNT, NULL, NULL),
    HAS("examples", TEXTS, NULL, "violations in words, at most 100"),
};

static const struct member audit_configuration_members[] = {
    HAS("since", TIME, NULL, NULL),
    MAY_HAVE("position", COUNT, NULL, "in the journal; not in the audit of one tenant"),
    HAS("idempotency_window", DURATION, NULL, NULL),
    HAS("idempotency_window_ms", COUNT, NULL, NULL),
    HAS("token_max_length", COUNT, NULL, "bytes of a key"),
    HAS("registry", CHOICE, "open|strict", NULL),
    HAS("digest_function", TEXT, NULL, NULL),
    HAS("program", TEXT, NULL, "the version that wrote it"),
};

static const struct member audit_near_duplicates_members[] = {
    HAS("within_ms", COUNT, NULL, NULL),
    HAS("count", COUNT, NULL, NULL),
    HAS("not_legitimate", COUNT, NULL, "of those that are listed"),
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

/* Figures over all tenants are not in the audit of one tenant. */
#define ALL "; not in the audit of one tenant"

static const struct member audit_journal_members[] = {
    MAY_HAVE("directory", TEXT, NULL, "of the store; not over HTTP"),
    MAY_HAVE_OR_NULL("open_by", TEXT, NULL, "who has the store open" ALL),
    MAY_HAVE("store_id", HEX, NULL, "of the store" ALL),
    MAY_HAVE_OR_NULL("chain_head", HEX, NULL, "SHA-256 of the newest batch: note it down" ALL),
    MAY_HAVE("chain_head_sequence", COUNT, NULL, "its number" ALL),
    MAY_HAVE("batches", COUNT, NULL, "how many there are" ALL),
    MAY_HAVE("batches_judged", COUNT, NULL, "fewer than there are if what came before the others is lost" ALL),
    HAS("entries", COUNT, NULL, NULL),
    HAS("records", COUNT, NULL, NULL),
    MAY_HAVE("segments", COUNT, NULL, "files" ALL),
    MAY_HAVE("segments_compressed", COUNT, NULL, "those of them that are compressed" ALL),
    MAY_HAVE("end", COUNT, NULL, "position behind the newest batch" ALL),
    MAY_HAVE("torn_bytes", COUNT, NULL, "of a batch that a crash cut short; never acknowledged" ALL),
    MAY_HAVE("snapshots_unusable", COUNT, NULL,
             "files that are not as they were written, or of version 1; the next start reads the journal instead" ALL),
    MAY_HAVE("index_parts", COUNT, NULL,
             "of holds.idx that were held against the journal; 0: none could be" ALL),
    MAY_HAVE("index_wrong", COUNT, NULL,
             "of these, how many do not agree with it; rebuilt at the next start" ALL),
    HAS_OR_NULL("first_at", TIME, NULL, NULL),
    HAS_OR_NULL("last_at", TIME, NULL, NULL),
    MAY_HAVE("damage", LIST, "audit_damage", "at most 16" ALL),
    HAS("damaged", FLAG, NULL, "is the journal damaged anywhere?"),
};

static const struct member audit_damage_members[] = {
    HAS("file", TEXT, NULL, NULL),
    HAS("offset", COUNT, NULL, NULL),
    HAS("sequence", COUNT, NULL, "of the batch that should be there"),
    HAS("what", TEXT, NULL, NULL),
    HAS("next_whole_sequence", COUNT, NULL, NULL),
    HAS("next_whole_file", TEXT, NULL, NULL),
    HAS("next_whole_offset", COUNT, NULL, NULL),
};

static const struct member audit_holds_members[] = {
    HAS("count", COUNT, NULL, "reversals are not in here"),
    HAS("traced_to_key", COUNT, NULL, NULL),
    HAS("held", COUNT, NULL, NULL),
    HAS("confirmed", COUNT, NULL, NULL),
    HAS("released", COUNT, NULL, NULL),
    HAS("expired", COUNT, NULL, NULL),
    HAS("overdue", COUNT, NULL, "held, and past the end of their time"),
    HAS("reversals", COUNT, NULL, NULL),
};

static const struct member audit_failures_members[] = {
    HAS("remembered", COUNT, NULL, "requests that were remembered, refused or not"),
    HAS("count", COUNT, NULL, "refusals among them"),
    HAS("by_code", COUNTS, NULL, NULL),
};

static const struct member audit_records_members[] = {
    HAS("resources", COUNT, NULL, NULL),
    HAS("guards", COUNT, NULL, NULL),
    HAS("guards_in_memory", COUNT, NULL, "whose entries leave no record"),
    HAS("recordings", COUNT, NULL, NULL),
    HAS("claims", COUNT, NULL, NULL),
    HAS("leases", COUNT, NULL, NULL),
    HAS("registers", COUNT, NULL, NULL),
    HAS("clients", COUNT, NULL, NULL),
    HAS("outbox", COUNT, NULL, NULL),
};

static const struct member trace_members[] = {
    HAS("kind", CHOICE, "hold|key", NULL),
    HAS("name", OPAQUE, NULL, "what was asked for"),
    HAS("found", YES, NULL, NULL),
    HAS("as_of", TIME, NULL, "of the newest batch; with an auth file, of the call"),
    HAS("summary", TEXT, NULL, NULL),
    HAS("damaged", FLAG, NULL, "true: something may be missing here"),
    MAY_HAVE("omitted", COUNT, NULL, "how many events are not shown, if there are more than 1,000"),
    HAS("events", LIST, "trace_event", "oldest first: the first 500 and the newest 500"),
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
    HAS("words", TEXT, NULL, "what happened, for people"),
};

static const struct member ready_members[] = {
    HAS("ready", FLAG, NULL, NULL),
    MAY_HAVE("why", TEXT, NULL, "if it is not"),
};

#define MEMBERS(table) (table), sizeof(table) / sizeof *(table)

static const struct schema {
    const char *name, *about;
    const struct member *members;
    size_t count;
} schemas[] = {
    { "hold", "One unit of a resource, held for a requester until it is confirmed, released or expired.", MEMBERS(hold_members) },
    { "holds", "A page of holds" PAGE, MEMBERS(holds_members) },
    { "resource", "Something that holds take units of.", MEMBERS(resource_members) },
    { "resources", "A page of resources" PAGE, MEMBERS(resources_members) },
    { "guard", "A rule that tells what came before.", MEMBERS(guard_members) },
    { "guards", "A page of guards" PAGE, MEMBERS(guards_members) },
    { "entry", "An identity under guard.", MEMBERS(entry_members) },
    { "entries", "A page of identities" PAGE, MEMBERS(entries_members) },
    { "seen", "Whether an identity was recorded before, and with what.", MEMBERS(seen_members) },
    { "ok", "Done.", MEMBERS(ok_members) },
    { "claim", "A key that is reserved for an effect outside of this store.", MEMBERS(claim_members) },
    { "lease", "Authority over a name, for a time.", MEMBERS(lease_members) },
    { "register", "A named value.", MEMBERS(register_members) },
    { "token", "What is known of a key.", MEMBERS(token_members) },
    { "batch_line", "The answer to one line of a batch.", MEMBERS(batch_line_members) },
    { "audit", "Every check over the stored records, with counts.", MEMBERS(audit_members) },
    { "audit_check", "One check.", MEMBERS(audit_check_members) },
    { "audit_configuration", "A configuration, and since when it is in force.", MEMBERS(audit_configuration_members) },
    { "audit_near_duplicates", "Holds of one requester on one resource, close in time.", MEMBERS(audit_near_duplicates_members) },
    { "audit_near_duplicate", "Two such holds, and why both are there.", MEMBERS(audit_near_duplicate_members) },
    { "audit_journal", "What was read.", MEMBERS(audit_journal_members) },
    { "audit_damage", "A place where the journal is damaged.", MEMBERS(audit_damage_members) },
    { "audit_holds", "Holds, by state.", MEMBERS(audit_holds_members) },
    { "audit_failures", "Refusals that are remembered as answers.", MEMBERS(audit_failures_members) },
    { "audit_records", "How many records of each kind there are.", MEMBERS(audit_records_members) },
    { "trace", "The life of a hold, or what a key did.", MEMBERS(trace_members) },
    { "trace_event", "One event of it.", MEMBERS(trace_event_members) },
    { "health", "The server lives.", MEMBERS(ok_members) },
    { "ready", "Whether the server takes requests.", MEMBERS(ready_members) },
};

/* Answers that are not our JSON. */
static const struct { const char *name, *about; } others[] = {
    { "batch", "The answers, one a line, in the order of the operations." },
    { "export", "All records: JSON lines, or a database of SQLite." },
    { "openapi", "This description." },
    { "metrics", "The figures." },
    { "page", "The page." },
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
                    "Any bytes: as a string if they are UTF-8, else in base 64 (RFC 4648).");
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
    pattern_add(j, "A whole number and its unit; without one it is seconds. At most 3650d.",
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

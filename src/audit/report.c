/* The names and meanings of the checks, and the counting of violations. */
#include "audit/check.h"
#include "audit/words.h"

#include "base/buffer.h"
#include "base/bytes.h"

#include <stdarg.h>
#include <stdlib.h>

struct wording {
    const char *name, *title, *meaning;
};

static const struct wording wordings[HF_AUDIT_CHECKS] = {
    [HF_AUDIT_CHAIN] = { "CHAIN", "nothing was changed afterwards",
                         "Every batch carries the SHA-256 of the batch before it, and each "
                         "segment's header repeats what its first batch says; so a change to any "
                         "byte of the history shows here." },
    [HF_AUDIT_SEQUENCE] = { "SEQUENCE", "no batch is missing",
                            "Batches are numbered 1, 2, 3 without a gap, each is at the position "
                            "that it names, and all its bytes match their checksums." },
    [HF_AUDIT_TIME] = { "TIME", "time never runs back",
                        "No batch has an earlier time than the batch before it, and every entry is "
                        "recorded at the time of its batch." },
    [HF_AUDIT_FORMAT] = { "FORMAT", "every record can be read",
                          "Every entry and every row is well-formed, and the bytes between batches "
                          "are zero." },
    [HF_AUDIT_CONFIG] = { "CONFIG", "the configuration in force is on record",
                          "The first entry is a configuration, digests are sha256/1, and every key "
                          "is from 1 to token_max_length bytes long." },
    [HF_AUDIT_PC1] = { "PC1", "a hold is in exactly one state",
                       "Every record of a hold has one of the four states, and an end time exactly "
                       "if the state is not Held." },
    [HF_AUDIT_PC2] = { "PC2", "Held until acted upon",
                       "A hold's first record is Held, and only these change that: confirm, "
                       "release, expire, the sweeper, or a place_hold that expires an overdue "
                       "hold." },
    [HF_AUDIT_PC3] = { "PC3", "terminal states are final",
                       "No record changes a hold that is Confirmed, Released or Expired." },
    [HF_AUDIT_PC4] = { "PC4", "an id never changes",
                       "Every record of a hold has the id that belongs to its number." },
    [HF_AUDIT_PC5] = { "PC5", "resource and requester never change",
                       "Every later record of a hold names the resource and the requester of the "
                       "first." },
    [HF_AUDIT_PC6] = { "PC6", "placed before it expires",
                       "In every record of a hold, placed_at is before expires_at, and neither "
                       "ever changes." },
    [HF_AUDIT_PC7] = { "PC7", "confirmed only in time",
                       "Every hold that is Confirmed was confirmed before its expires_at." },
    [HF_AUDIT_PC8] = { "PC8", "times are in order",
                       "placed_at is the time of the placing call; no hold ended before it was "
                       "placed, none expired before its expires_at, and each end is the time of "
                       "the call that made it." },
    [HF_AUDIT_PC9] = { "PC9", "no id is used again",
                       "Every hold that is placed has a number above all before it, and no two "
                       "holds share an id." },
    [HF_AUDIT_PC10] = { "PC10", "no record is deleted",
                        "Hold numbers have no gap, no record of a hold is deleted, and every hold "
                        "that changes has a record of its placing." },
    [HF_AUDIT_PC11] = { "PC11", "the capacity is never exceeded",
                        "After every entry, held + confirmed of a resource is at most its "
                        "capacity, the resource's record counts exactly the holds in those states, "
                        "and holds are placed only while it is open." },
    [HF_AUDIT_REVERSALS] = { "REVERSALS", "a unit is given back once",
                             "Every reversal names a Confirmed hold of the same resource and "
                             "requester that was not reversed before, and leaves it Confirmed." },
    [HF_AUDIT_LATE] = { "LATE", "a late confirm takes a free unit, once",
                        "Every hold that reacquires another is Confirmed at once and names an "
                        "Expired hold of the same resource and requester, which nothing reacquired "
                        "before." },
    [HF_AUDIT_LINKS] = { "LINKS", "a resource's history is complete",
                         "Every hold names the hold before it on its resource, and the resource's "
                         "record names the newest." },
    [HF_AUDIT_DP1] = { "DP1", "under guard for one window",
                       "Every recorded identity is recorded at the time of the call and until "
                       "exactly one window of its guard later, so that it is seen only while now - "
                       "recorded_at < window." },
    [HF_AUDIT_DP2] = { "DP2", "single recording",
                       "An identity is recorded again in a guard only at or after the end of its "
                       "last recording: repeats never extend the window." },
    [HF_AUDIT_DP3] = { "DP3", "check is read-only", "No check left any record." },
    [HF_AUDIT_DP4] = { "DP4", "recordings end",
                       "Every recording has an end, after its beginning and at most ten years "
                       "away." },
    [HF_AUDIT_IR1] = { "IR1", "same place_hold, same answer",
                       "Every place_hold under a key left its one answer on record (the hold it "
                       "placed, or the refusal), and none was decided again while its window was "
                       "open." },
    [HF_AUDIT_IR2] = { "IR2", "same confirm, release, expire, same answer",
                       "The same for confirm, release, expire and reverse: one answer on record, "
                       "the hold as that call left it, and none decided again while its window was "
                       "open." },
    [HF_AUDIT_IR3] = { "IR3", "one key, at most one hold",
                       "Every hold is traced to the key that placed it, no call placed two, and no "
                       "two holds share a key whose window was still open." },
    [HF_AUDIT_IR4] = { "IR4", "one key, one action and digest",
                       "No key was used for another action or other parameters while its window "
                       "was open, and the digest on record is computed again from what was done "
                       "and fits." },
    [HF_AUDIT_IR5] = { "IR5", "all rules for holds kept",
                       "PC1 to PC11 have no violation: calls with keys never bypass them." },
    [HF_AUDIT_IR6] = { "IR6", "all rules for guards kept, one record per first call",
                       "DP1 to DP4 have no violation, every key is recorded once, and its window "
                       "is the configured one from the first call on: retries never extended it." },
    [HF_AUDIT_IR7] = { "IR7", "a key is free again only after its window",
                       "A key appears again only at or after the end of its last window; key and "
                       "answer are one record, so neither can be removed before the other." },
    [HF_AUDIT_IR8] = { "IR8", "exactly one effect per key",
                       "Every call that was answered ok had exactly the one effect of its action, "
                       "every refusal had none, every state-changing call had a key, and no key "
                       "had a second effect while its window was open." },
    [HF_AUDIT_FAILURES] = { "FAILURES", "failures were remembered like successes",
                            "Every remembered outcome is a success or a refusal by a rule; no "
                            "storage failure and no collision was remembered as an answer." },
    [HF_AUDIT_SEQUENCES] = { "SEQUENCES", "a client's number is used once",
                             "No client's number is used twice, below the client's window or more "
                             "than a million above its highest, and the client's record has "
                             "exactly the numbers used." },
    [HF_AUDIT_CLAIM] = { "CLAIMS", "claims follow their states",
                         "A claim begins if it is new, retryable, or abandoned with on_abandon "
                         "retry; it is completed, failed or extended only with the fence that it "
                         "began with; a settled claim does not change for one window." },
    [HF_AUDIT_LEASE] = { "LEASES", "one holder at a time",
                         "A lease is granted only after the previous one ended, and renewed or "
                         "returned only with its fence, before it ends." },
    [HF_AUDIT_FENCES] = { "FENCES", "fences only rise",
                          "Every fence of a claim or a lease is above all earlier fences, so above "
                          "all of its own key or name; a resource's highest fence never falls, and "
                          "rises only to the fence of a call that placed a hold." },
    [HF_AUDIT_REGISTER] = { "REGISTERS", "versions count every change",
                            "A register's version rises by one with each change; its highest fence "
                            "never falls, and rises only to the fence of a write or deletion; its "
                            "type does not change until it is deleted. A deletion keeps version "
                            "and fence." },
    [HF_AUDIT_OUTBOX] = { "OUTBOX", "no message is missing",
                          "Outbox rows are numbered 1, 2, 3 without a gap, and each has a key for "
                          "its delivery." },
};

/* Different wordings for a database, which has several writers at the same time. */
static const struct wording database[HF_AUDIT_CHECKS] = {
    [HF_AUDIT_CHAIN] = { "CHAIN", "nothing was changed afterwards",
                         "The SHA-256 over all entries of each writer, batch by batch, is the "
                         "chain that is stored with the writer; so a changed or missing entry "
                         "shows here." },
    [HF_AUDIT_SEQUENCE] = { "SEQUENCE", "no batch is missing",
                            "The batches of each writer are numbered 1, 2, 3 without a gap, up to "
                            "the last one that is stored with the writer. Numbers of entries may "
                            "be missing: those of rolled-back transactions are." },
    [HF_AUDIT_TIME] = { "TIME", "time never runs back",
                        "No batch has an earlier time than the previous batch of the same writer, "
                        "and every entry is recorded at the time of its batch." },
    [HF_AUDIT_FORMAT] = { "FORMAT", "every record can be read",
                          "Every entry and every row of it is well-formed." },
    [HF_AUDIT_PC9] = { "PC9", "no id is used again",
                       "Every hold that is placed has a number of its own, and no two holds share "
                       "an id." },
    [HF_AUDIT_PC10] = { "PC10", "no record is deleted",
                        "No record of a hold is deleted, and every hold that changes has a record "
                        "of its placing." },
    [HF_AUDIT_FENCES] = { "FENCES", "fences only rise",
                          "Every fence of a claim or a lease is above all earlier fences of its "
                          "own key or name; a resource's highest fence never falls, and rises only "
                          "to the fence of a call that placed a hold." },
    [HF_AUDIT_OUTBOX] = { "OUTBOX", "no message is duplicated",
                          "Every outbox row has its own number and a key for its delivery." },
    [HF_AUDIT_TABLES] = { "TABLES", "the tables agree with the journal",
                          "Every row of every table agrees with the newest entry about it, no row "
                          "is missing, every row was made by an entry, the columns next to an "
                          "entry agree with it, and no sequence is behind the numbers drawn from "
                          "it." },
};

void hf_audit_checks_init(struct hf_audit_report *report, bool is_database)
{
    report->check_count = is_database ? HF_AUDIT_CHECKS : HF_AUDIT_TABLES;
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        const struct wording *w =
            (is_database && database[i].name) || !wordings[i].name ? &database[i] : &wordings[i];
        report->checks[i].name = w->name;
        report->checks[i].title = w->title;
        report->checks[i].meaning = w->meaning;
    }
}

enum hf_audit_outcome hf_audit_outcome(const struct hf_audit_check *check)
{
    if (check->violations > 0)
        return HF_AUDIT_BROKEN;
    return check->incomplete ? HF_AUDIT_INCOMPLETE : HF_AUDIT_PASSED;
}

bool hf_audit_may_name(const struct hf_audit_state *s, struct hf_bytes tenant)
{
    return !s->report->has_tenant || hf_bytes_equal(s->report->tenant, tenant);
}

void hf_audit_looked(struct hf_audit_state *s, enum hf_audit_check_id id, uint64_t count)
{
    s->report->checks[id].checked += count;
}

struct hf_audit_numeral hf_audit_figure(const struct hf_audit_state *s, uint64_t number)
{
    struct hf_audit_numeral n = { "(not shown)" };
    if (!s->report->has_tenant)
        snprintf(n.text, sizeof n.text, "%llu", (unsigned long long)number);
    return n;
}

static void entry_named(const struct hf_audit_state *s, struct hf_buffer *b,
                        const struct hf_audit_entry *e)
{
    hf_buffer_printf(b, " [%s under %s at %s", hf_action_name(e->action), hf_audit_who(e).text,
                     hf_audit_at(e->recorded_at).text);
    if (!s->report->has_tenant)
        hf_buffer_printf(b, ", position %llu", (unsigned long long)e->position);
    hf_buffer_add_char(b, ']');
}

static void example_add(struct hf_audit_state *s, struct hf_audit_check *c,
                        const struct hf_audit_entry *entry, const char *sentence)
{
    if (c->example_count == HF_AUDIT_LISTED_MAX)
        return;
    struct hf_buffer b = { 0 };
    hf_buffer_add_text(&b, sentence);
    if (entry)
        entry_named(s, &b, entry);
    hf_buffer_add_char(&b, '\0');
    if (b.failed) {
        s->no_memory = true;
        hf_buffer_free(&b);
        return;
    }
    c->examples[c->example_count++] = (char *)b.data;
}

void hf_audit_break(struct hf_audit_state *s, enum hf_audit_check_id id,
                    const struct hf_audit_entry *entry, const char *format, ...)
{
    struct hf_audit_check *c = &s->report->checks[id];
    char sentence[1024];
    va_list args;
    c->violations++;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    example_add(s, c, entry, sentence);
}

void hf_audit_break_store(struct hf_audit_state *s, enum hf_audit_check_id id, const char *format,
                          ...)
{
    struct hf_audit_check *c = &s->report->checks[id];
    bool one = s->report->has_tenant;
    char sentence[1024];
    va_list args;
    if (one && s->journal_told[id])
        return;
    s->journal_told[id] = true;
    c->violations++;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    example_add(s, c, NULL,
                one ? "the journal with these records is damaged or was changed; an audit of the "
                      "whole store shows where"
                    : sentence);
}

void hf_audit_report_free(struct hf_audit_report *report)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        for (size_t k = 0; k < report->checks[i].example_count; k++)
            free(report->checks[i].examples[k]);
    for (size_t i = 0; i < report->near_listed; i++) {
        struct hf_audit_near *n = &report->near[i];
        free(n->resource);
        free(n->requester);
        free(n->first_key);
        free(n->second_key);
        free(n->why);
    }
    for (size_t i = 0; i < report->rerun_listed; i++)
        free(report->reruns[i].who);
    free(report->reruns);
    for (size_t i = 0; i < report->guard_rule_count; i++)
        free(report->guard_rules[i].who);
    free(report->guard_rules);
    free(report->near);
    free(report->configs);
    free(report->writer);
    free(report->directory);
    free(report->tenant_copy);
    *report = (struct hf_audit_report){ 0 };
}

/* The report for people. The verdict comes first, then the details. */
#include "audit/audit.h"
#include "audit/words.h"

/* "1 hold" and so on; valid until the end of the full expression. */
#define COUNT(number, one, many) (hf_audit_count(number, one, many).text)

/* "each ", unless there is only one. */
static const char *each(uint64_t number)
{
    return number == 1 ? "" : "each ";
}

/* Count every violation once: IR5 and a part of IR6 repeat violations of other checks. */
static uint64_t violations_of(const struct hf_audit_report *r)
{
    uint64_t violations = 0;
    for (size_t i = 0; i < r->check_count; i++)
        violations += i == HF_AUDIT_IR5 ? 0 : r->checks[i].violations;
    for (size_t i = HF_AUDIT_DP1; i <= HF_AUDIT_DP4; i++)
        violations -= r->checks[i].violations;
    return violations;
}

static void print_scope(const struct hf_audit_report *r, FILE *out)
{
    if (!r->has_tenant)
        return;
    fprintf(out, "Only tenant %s: the report covers its %s and no other records.\n",
            r->tenant.size > 0 ? hf_audit_show(r->tenant).text : "\"\" (the default tenant)",
            COUNT(r->entries, "entry", "entries"));
}

/* Claims are about effects outside of the store, so the records show only when a key began: a key
 * that began again may have had its effect twice. */
static void print_claim_verdict(const struct hf_audit_report *r, FILE *out)
{
    const struct hf_audit_claims *c = &r->claim;
    uint64_t unknown = c->now[HF_CLAIM_UNKNOWN], reruns = c->again + c->taken_over;
    if (r->claims == 0)
        return;
    fprintf(out, "%s begun %s: ", COUNT(r->claims, "claim was", "claims were"),
            COUNT(c->begun, "time", "times"));
    fprintf(out, "%llu completed, %llu failed, %llu in progress, %llu unknown.\n",
            (unsigned long long)c->now[HF_CLAIM_COMPLETED],
            (unsigned long long)(c->now[HF_CLAIM_FAILED] + c->now[HF_CLAIM_RETRYABLE]),
            (unsigned long long)c->now[HF_CLAIM_STARTED], (unsigned long long)unknown);
    if (reruns > 0)
        fprintf(
            out,
            "BEGUN AGAIN: %s a key began again, because its retention was over or on_abandon is "
            "retry.\nIts effect may have happened twice: see Claims.\n",
            COUNT(reruns, "time", "times"));
    if (unknown > 0)
        fprintf(out, "UNKNOWN: the lease of %s ended before it was settled: see Claims.\n",
                COUNT(unknown, "claim", "claims"));
}

static void print_verdict(const struct hf_audit_report *r, FILE *out)
{
    uint64_t incomplete = 0;
    if (r->head_expected && !r->head_found)
        fprintf(out,
                "MISSING HEAD: no batch has the expected hash. The store was changed, cut short "
                "or replaced\nsince the head was noted, or the head is another store's.\n");
    if (r->verdict == HF_AUDIT_OK) {
        if (r->head_expected)
            fprintf(out, "The expected head is in the chain.\n");
        fprintf(out,
                "No duplicate state change occurred: %s with a key, %sdecided once;\n"
                "%s, %smade by its own key; all %d checks passed.\n",
                COUNT(r->remembered, "request", "requests"), each(r->remembered),
                COUNT(r->holds, "hold", "holds"), each(r->holds), (int)r->check_count);
        print_claim_verdict(r, out);
        return;
    }
    if (r->verdict == HF_AUDIT_DAMAGED)
        fprintf(
            out,
            "DAMAGED: the journal is damaged or was changed; the undamaged part was audited.\n");
    bool counted = violations_of(r) > 0 || r->verdict == HF_AUDIT_DAMAGED;
    if (counted)
        fprintf(out, "VIOLATIONS: %llu, by the checks", (unsigned long long)violations_of(r));
    for (size_t i = 0; i < r->check_count; i++) {
        incomplete += hf_audit_outcome(&r->checks[i]) == HF_AUDIT_INCOMPLETE;
        if (r->checks[i].violations > 0)
            fprintf(out, " %s", r->checks[i].name);
    }
    if (counted)
        fprintf(out, "\n");
    if (incomplete > 0)
        fprintf(out,
                "INCOMPLETE: %s found no violation, but could not check everything: lost and\n"
                "unreadable records, and records that depend on them, were not judged.\n",
                COUNT(incomplete, "other check", "other checks"));
}

static void print_damage(const struct hf_audit_report *r, FILE *out)
{
    size_t listed = sizeof r->damage / sizeof *r->damage;
    for (size_t i = 0; i < r->damages && i < listed; i++) {
        const struct hf_audit_damage *d = &r->damage[i];
        fprintf(out, "  damaged at     %s, offset %llu: batch %llu should be there, but %s\n",
                d->file, (unsigned long long)d->offset, (unsigned long long)d->sequence, d->what);
        if (d->found_sequence == 0)
            fprintf(out, "                 no whole batch follows\n");
        else
            fprintf(out, "                 the next whole batch is %llu, at %s, offset %llu%s\n",
                    (unsigned long long)d->found_sequence, d->found_file,
                    (unsigned long long)d->found_offset,
                    d->found_sequence == d->sequence ? ": nothing is lost" : "");
    }
    if (r->judged_batches < r->batches)
        fprintf(out, "  not judged     %s after the damage: earlier batches are lost\n",
                COUNT(r->batches - r->judged_batches, "batch", "batches"));
}

/* What one tenant may know about the journal. */
static void print_own(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nJournal\n  of the tenant  %s with %s\n", COUNT(r->entries, "entry", "entries"),
            COUNT(r->rows, "record", "records"));
    if (r->entries > 0)
        fprintf(out, "  from           %s to %s\n", hf_audit_at(r->first_now).text,
                hf_audit_at(r->last_now).text);
}

static void print_journal(const struct hf_audit_report *r, FILE *out)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    hf_audit_hex(r->journal.store_id, sizeof r->journal.store_id, hex);
    fprintf(out, "\nJournal\n");
    if (r->directory)
        fprintf(out, "  directory      %s\n", r->directory);
    if (r->journal.database)
        fprintf(out,
                "  database       %s; a position is the number of an entry in holdfast.journal\n",
                r->journal.where);
    if (r->holder[0])
        fprintf(out, "  in use         the store is open in: %s\n",
                hf_audit_show(hf_str(r->holder)).text);
    fprintf(out, "  store id       %s\n", hex);
    hf_audit_hex(r->chain_head, sizeof r->chain_head, hex);
    const char *head = r->head_sequence ? hex : "none: the journal is empty";
    if (r->journal.database)
        fprintf(out, "  chain head     %s (over those of %s)\n", head,
                COUNT(r->writers, "writer", "writers"));
    else
        fprintf(out, "  chain head     %s (batch %llu)\n", head,
                (unsigned long long)r->head_sequence);
    fprintf(out, "  batches        %llu\n  entries        %llu\n  records        %llu\n",
            (unsigned long long)r->batches, (unsigned long long)r->entries,
            (unsigned long long)r->rows);
    if (!r->journal.database)
        fprintf(out, "  segments       %llu, %llu of them compressed\n",
                (unsigned long long)r->journal.segments, (unsigned long long)r->journal.packed);
    fprintf(out, "  end            position %llu\n", (unsigned long long)r->journal.end);
    if (r->journal.torn_bytes > 0)
        fprintf(
            out,
            "  torn end       %s of a batch that is not whole: cut short by a crash before it was\n"
            "                 acknowledged, or damaged since; a noted chain head shows which\n",
            COUNT(r->journal.torn_bytes, "byte", "bytes"));
    if (r->journal.snapshots_unusable > 0)
        fprintf(out,
                "  snapshot       %s cannot be used: it is damaged, or of version 1.\n"
                "                 The history is not affected: the next start reads the journal "
                "instead\n",
                r->journal.snapshot_unusable);
    if (r->index_wrong > 0 && r->index_missing)
        fprintf(out, "  holds.idx      missing.\n"
                     "                 The history is not affected: it is rebuilt from the journal "
                     "at the next start\n");
    else if (r->index_wrong > 0)
        fprintf(out,
                "  holds.idx      damaged: %llu of its %llu parts do not agree with the journal, "
                "the first at byte %llu.\n"
                "                 The history is not affected: it is rebuilt from the journal at "
                "the next start\n",
                (unsigned long long)r->index_wrong, (unsigned long long)r->index_parts,
                (unsigned long long)r->index_wrong_at);
    if (r->entries > 0)
        fprintf(out, "  time           %s to %s\n", hf_audit_at(r->first_now).text,
                hf_audit_at(r->last_now).text);
    print_damage(r, out);
}

/* The writers of the database and their chain heads, which an auditor can note and compare
 * later. */
static void print_writers(const struct hf_audit_report *r, FILE *out)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    if (!r->journal.database)
        return;
    fprintf(out, "\nWriters\n");
    if (r->function_entries > 0)
        fprintf(out,
                "  %s written by functions, in users' own transactions: the database alone\n"
                "  protects these, because they are not in a chain\n",
                COUNT(r->function_entries, "entry was", "entries were"));
    if (r->writers > r->writers_listed)
        fprintf(out, "  %llu older writers, and\n",
                (unsigned long long)(r->writers - r->writers_listed));
    for (size_t i = 0; i < r->writers_listed; i++) {
        const struct hf_audit_writer *w = &r->writer[i];
        hf_audit_hex(w->chain, sizeof w->chain, hex);
        fprintf(out, "  %u, %s: %s in %s\n    chain head %s\n", w->id,
                w->name[0] ? hf_audit_show(hf_str(w->name)).text : "without a name",
                COUNT(w->entries, "entry", "entries"), COUNT(w->batch, "batch", "batches"), hex);
    }
}

static void print_check(const struct hf_audit_report *r, size_t id, FILE *out)
{
    static const char *const outcomes[] = { "ok", "BROKEN", "INCOMPLETE" };
    const struct hf_audit_check *c = &r->checks[id];
    bool sum = id == HF_AUDIT_IR5 || id == HF_AUDIT_IR6;
    uint64_t unlisted = c->violations - c->example_count;
    fprintf(out, "\n  %-10s %-10s %s\n", c->name, outcomes[hf_audit_outcome(c)], c->title);
    fprintf(out, "             %s\n", c->meaning);
    fprintf(out, "             %llu checked, %s%s\n", (unsigned long long)c->checked,
            COUNT(c->violations, "violation", "violations"),
            c->incomplete ? "; lost and unreadable records were not checked" : "");
    for (size_t k = 0; k < c->example_count; k++)
        fprintf(out, "             - %s\n", c->examples[k]);
    if (unlisted > 0 && !sum)
        fprintf(out, "             ... and %llu more\n", (unsigned long long)unlisted);
}

static void print_checks(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nChecks: what each one means, how many records it checked, how many violations "
                 "it found\n");
    for (size_t i = 0; i < r->check_count; i++)
        print_check(r, i, out);
}

static void print_guard_rule(const struct hf_audit_guard_rule *g, FILE *out)
{
    fprintf(out, "  %s: window %s, match ", g->who, hf_audit_for(g->window_ms).text);
    for (uint32_t i = 0; i < g->match_count && i < HF_MATCH_MAX; i++)
        fprintf(out, "%s%s", i ? "," : "", hf_audit_match_name(g->match[i]));
    fprintf(out, "%s, on unavailable %s, %s, since %s\n", g->match_count ? "" : "exact",
            g->closed ? "closed" : "open", g->durable ? "durable" : "only in memory",
            hf_audit_at(g->since).text);
    if (g->forced > 0)
        fprintf(out,
                "    its match rule was changed over live entries %s, the last time at %s:\n"
                "    duplicates of those entries may not have been recognised\n",
                COUNT(g->forced, "time", "times"), hf_audit_at(g->forced_at).text);
}

static void print_configs(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nConfiguration\n");
    for (size_t i = 0; i < r->config_count; i++) {
        const struct hf_audit_in_force *c = &r->configs[i];
        fprintf(out,
                "  since %s  window %s, keys up to %u bytes, registry %s, digest %s, holdfast %s\n",
                hf_audit_at(c->since).text, hf_audit_for(c->idempotency_window_ms).text,
                c->token_max_length, c->strict ? "strict" : "open", c->digest_name, c->program);
    }
    if (r->configs_seen > r->config_count)
        fprintf(out, "  ... and %llu more\n",
                (unsigned long long)(r->configs_seen - r->config_count));
    if (r->config_count == 0)
        fprintf(out, "  none on record\n");
    for (size_t i = 0; i < r->guard_rule_count; i++)
        print_guard_rule(&r->guard_rules[i], out);
    if (r->guards > r->guard_rule_count)
        fprintf(out, "  ... and %llu more guards\n",
                (unsigned long long)(r->guards - r->guard_rule_count));
}

static void print_records(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nHolds\n  %llu in all, %llu of them traced to the key that made it\n",
            (unsigned long long)r->holds, (unsigned long long)r->holds_traced);
    fprintf(out,
            "  %llu held (%llu of them overdue), %llu confirmed, %llu released, %llu expired, %s\n",
            (unsigned long long)r->holds_by_state[HF_HELD], (unsigned long long)r->overdue,
            (unsigned long long)r->holds_by_state[HF_CONFIRMED],
            (unsigned long long)r->holds_by_state[HF_RELEASED],
            (unsigned long long)r->holds_by_state[HF_EXPIRED],
            COUNT(r->reversals, "reversal", "reversals"));
    fprintf(out, "\nOther records\n  %s, %s, %s in guards, %s, %s, %s,\n  %s, %s\n",
            COUNT(r->resources, "resource", "resources"), COUNT(r->guards, "guard", "guards"),
            COUNT(r->identities, "recording", "recordings"), COUNT(r->claims, "claim", "claims"),
            COUNT(r->leases, "lease", "leases"), COUNT(r->registers, "register", "registers"),
            COUNT(r->clients, "numbered client", "numbered clients"),
            COUNT(r->outbox, "outbox row", "outbox rows"));
    if (r->guards_in_memory > 0 && !r->journal.database)
        fprintf(out, "  recordings of %s are only in memory and not in the journal\n",
                COUNT(r->guards_in_memory, "guard", "guards"));
    fprintf(
        out,
        "\nFailures remembered\n  %s stored with a key: a retry gets the same answer and changes "
        "nothing\n",
        COUNT(r->failures, "refusal", "refusals"));
    for (unsigned i = 0; i < 256; i++)
        if (r->failures_by_status[i] > 0)
            fprintf(out, "  %-22s %llu\n", hf_status_code((enum hf_status)i),
                    (unsigned long long)r->failures_by_status[i]);
}

static void print_rerun(const struct hf_audit_rerun *p, FILE *out)
{
    fprintf(out, "  - %s\n    begun at %s (fence %llu), ", p->who, hf_audit_at(p->first_at).text,
            (unsigned long long)p->first_fence);
    if (p->taken_over)
        fprintf(out, "its lease ran out at %s\n", hf_audit_at(p->ended_at).text);
    else
        fprintf(out, "%s at %s, remembered until %s\n", hf_audit_claim_name(p->first_state),
                hf_audit_at(p->ended_at).text, hf_audit_at(p->until).text);
    fprintf(out, "    begun again at %s (fence %llu): %s\n", hf_audit_at(p->second_at).text,
            (unsigned long long)p->second_fence,
            p->taken_over ? "on_abandon is retry, so the next begin took over"
                          : "its retention was over, so the key was new");
}

static void print_claims(const struct hf_audit_report *r, FILE *out)
{
    const struct hf_audit_claims *c = &r->claim;
    uint64_t reruns = c->again + c->taken_over;
    fprintf(out, "\nClaims: keys reserved for effects outside of the store\n");
    fprintf(out, "  %s, %s: %llu first, %llu after a failure that may be retried,\n",
            COUNT(r->claims, "claim", "claims"), COUNT(c->begun, "begin", "begins"),
            (unsigned long long)(c->begun - c->retried - reruns), (unsigned long long)c->retried);
    fprintf(out, "  %llu taken over after the lease ran out, %llu again after the retention\n",
            (unsigned long long)c->taken_over, (unsigned long long)c->again);
    fprintf(out,
            "  %llu completed, %llu failed for good, %llu failed and retryable, %llu abandoned\n",
            (unsigned long long)c->settled[HF_CLAIM_COMPLETED],
            (unsigned long long)c->settled[HF_CLAIM_FAILED],
            (unsigned long long)c->settled[HF_CLAIM_RETRYABLE], (unsigned long long)c->abandoned);
    fprintf(
        out,
        "  at the end: %llu in progress, %llu unknown, %llu completed, %llu failed for good, "
        "%llu retryable\n",
        (unsigned long long)c->now[HF_CLAIM_STARTED], (unsigned long long)c->now[HF_CLAIM_UNKNOWN],
        (unsigned long long)c->now[HF_CLAIM_COMPLETED], (unsigned long long)c->now[HF_CLAIM_FAILED],
        (unsigned long long)c->now[HF_CLAIM_RETRYABLE]);
    if (reruns == 0)
        return;
    fprintf(out, "  taken over or begun again: %s, %zu listed\n", COUNT(reruns, "time", "times"),
            r->rerun_listed);
    for (size_t i = 0; i < r->rerun_listed; i++)
        print_rerun(&r->reruns[i], out);
}

static void print_near(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nNear-duplicates: holds of one requester on one resource, at most %s apart\n",
            hf_audit_for(r->near_ms).text);
    fprintf(out, "  %s, %zu listed, %llu of those not legitimate\n",
            COUNT(r->near_count, "pair", "pairs"), r->near_listed,
            (unsigned long long)r->near_illegitimate);
    for (size_t i = 0; i < r->near_listed; i++) {
        const struct hf_audit_near *n = &r->near[i];
        fprintf(out,
                "  - %s at %s by %s\n    %s at %s by %s\n    resource %s, requester %s: %s%s\n",
                n->first, hf_audit_at(n->first_at).text, n->first_key, n->second,
                hf_audit_at(n->second_at).text, n->second_key, n->resource, n->requester,
                n->legitimate ? "" : "NOT LEGITIMATE: ", n->why);
    }
}

bool hf_audit_print_text(const struct hf_audit_report *report, FILE *out)
{
    print_verdict(report, out);
    print_scope(report, out);
    if (report->has_tenant) {
        print_own(report, out);
    } else {
        print_journal(report, out);
        print_writers(report, out);
    }
    print_configs(report, out);
    print_records(report, out);
    print_claims(report, out);
    print_near(report, out);
    print_checks(report, out);
    return fflush(out) == 0 && !ferror(out);
}

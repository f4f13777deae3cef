/* The report for people. The verdict comes first; everything that supports it, after. */
#include "audit/audit.h"
#include "audit/words.h"

static void print_verdict(const struct hf_audit_report *r, FILE *out)
{
    uint64_t violations = 0;
    size_t broken = 0;
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        if (i == HF_AUDIT_IR5)
            continue; /* the same ones again */
        violations += r->checks[i].violations;
        broken += r->checks[i].violations > 0;
    }
    unsigned long long keys = r->remembered, holds = r->holds;
    if (r->verdict == HF_AUDIT_OK) {
        fprintf(out,
                "No duplicate state change occurred: %llu requests with a key were decided once each, "
                "%llu holds were made,\nevery one by its own key, and all %d checks passed.\n",
                keys, holds, (int)HF_AUDIT_CHECKS);
        return;
    }
    if (r->verdict == HF_AUDIT_DAMAGED)
        fprintf(out, "DAMAGED: the journal is not whole or was changed; what is whole was audited.\n");
    fprintf(out, "VIOLATIONS: %llu, of %zu checks:", (unsigned long long)violations, broken);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (r->checks[i].violations > 0)
            fprintf(out, " %s", r->checks[i].name);
    fprintf(out, "\n");
}

static void print_damage(const struct hf_audit_report *r, FILE *out)
{
    size_t listed = sizeof r->damage / sizeof *r->damage;
    for (size_t i = 0; i < r->damages && i < listed; i++) {
        const struct hf_audit_damage *d = &r->damage[i];
        fprintf(out, "  damaged at     %s, offset %llu: batch %llu should be there, but %s\n", d->file,
                (unsigned long long)d->offset, (unsigned long long)d->sequence, d->what);
        if (d->found_sequence == 0)
            fprintf(out, "                 nothing whole is behind it\n");
        else
            fprintf(out, "                 the next whole batch is %llu, at %s, offset %llu%s\n",
                    (unsigned long long)d->found_sequence, d->found_file, (unsigned long long)d->found_offset,
                    d->found_sequence == d->sequence ? ": nothing is lost" : "");
    }
    if (r->judged_batches < r->batches)
        fprintf(out, "  not judged     %llu batches behind the damage: what they build on is lost\n",
                (unsigned long long)(r->batches - r->judged_batches));
}

static void print_journal(const struct hf_audit_report *r, FILE *out)
{
    char hex[2 * HF_DIGEST_SIZE + 1];
    hf_audit_hex(r->journal.store_id, sizeof r->journal.store_id, hex);
    fprintf(out, "\nJournal\n");
    fprintf(out, "  directory      %s\n", r->directory);
    if (r->holder[0])
        fprintf(out, "  in use         the store is open by: %s\n", hf_audit_show(hf_str(r->holder)).text);
    fprintf(out, "  store id       %s\n", hex);
    hf_audit_hex(r->chain_head, sizeof r->chain_head, hex);
    fprintf(out, "  chain head     %s (batch %llu)\n", r->head_sequence ? hex : "none: the journal is empty",
            (unsigned long long)r->head_sequence);
    fprintf(out, "  batches        %llu\n  entries        %llu\n  records        %llu\n",
            (unsigned long long)r->batches, (unsigned long long)r->entries, (unsigned long long)r->rows);
    fprintf(out, "  segments       %llu, %llu of them compressed\n", (unsigned long long)r->journal.segments,
            (unsigned long long)r->journal.packed);
    fprintf(out, "  end            position %llu\n", (unsigned long long)r->journal.end);
    if (r->journal.torn_bytes > 0)
        fprintf(out,
                "  torn end       %llu bytes of a batch that is not whole: cut short by a crash before\n"
                "                 anybody had its answer, or damaged since; a noted chain head tells\n",
                (unsigned long long)r->journal.torn_bytes);
    if (r->batches > 0)
        fprintf(out, "  time           %s to %s\n", hf_audit_at(r->first_now).text,
                hf_audit_at(r->last_now).text);
    print_damage(r, out);
}

static void print_checks(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nChecks: what each means over the records, how many were looked at, how many break it\n");
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        const struct hf_audit_check *c = &r->checks[i];
        fprintf(out, "\n  %-10s %-6s %s\n", c->name, c->violations ? "BROKEN" : "ok", c->title);
        fprintf(out, "             %s\n", c->meaning);
        fprintf(out, "             %llu checked, %llu violations\n", (unsigned long long)c->checked,
                (unsigned long long)c->violations);
        for (size_t k = 0; k < c->example_count; k++)
            fprintf(out, "             - %s\n", c->examples[k]);
        if (c->violations > c->example_count && i != HF_AUDIT_IR5 && i != HF_AUDIT_IR6)
            fprintf(out, "             ... and %llu more\n",
                    (unsigned long long)(c->violations - c->example_count));
    }
}

static void print_configs(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nConfiguration in force\n");
    for (size_t i = 0; i < r->config_count; i++) {
        const struct hf_audit_in_force *c = &r->configs[i];
        fprintf(out, "  since %s  window %s, keys up to %u bytes, registry %s, digest %s, holdfast %s\n",
                hf_audit_at(c->since).text, hf_audit_for(c->idempotency_window_ms).text, c->token_max_length,
                c->strict ? "strict" : "open", c->digest_name, c->program);
    }
    if (r->configs_seen > r->config_count)
        fprintf(out, "  ... and %llu more\n", (unsigned long long)(r->configs_seen - r->config_count));
    if (r->config_count == 0)
        fprintf(out, "  none on record\n");
}

static void print_records(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nHolds\n  %llu in all, %llu traced to the key that made them\n",
            (unsigned long long)r->holds, (unsigned long long)r->holds_traced);
    fprintf(out,
            "  %llu held (%llu of them overdue), %llu confirmed, %llu released, %llu expired, %llu "
            "reversals\n",
            (unsigned long long)r->holds_by_state[HF_HELD], (unsigned long long)r->overdue,
            (unsigned long long)r->holds_by_state[HF_CONFIRMED],
            (unsigned long long)r->holds_by_state[HF_RELEASED],
            (unsigned long long)r->holds_by_state[HF_EXPIRED], (unsigned long long)r->reversals);
    fprintf(out,
            "\nOther records\n  %llu resources, %llu guards, %llu recordings in guards, %llu claims, "
            "%llu leases, "
            "%llu registers,\n  %llu numbered clients, %llu outbox rows\n",
            (unsigned long long)r->resources, (unsigned long long)r->guards,
            (unsigned long long)r->identities, (unsigned long long)r->claims, (unsigned long long)r->leases,
            (unsigned long long)r->registers, (unsigned long long)r->clients, (unsigned long long)r->outbox);
    if (r->guards_in_memory > 0)
        fprintf(out, "  %llu guards keep their recordings in memory alone: those are not in the journal\n",
                (unsigned long long)r->guards_in_memory);
    fprintf(out,
            "\nFailures remembered\n  %llu refusals are kept under their keys: a retry is told the same and "
            "causes no call\n",
            (unsigned long long)r->failures);
    for (unsigned i = 0; i < 256; i++)
        if (r->failures_by_status[i] > 0)
            fprintf(out, "  %-22s %llu\n", hf_status_code((enum hf_status)i),
                    (unsigned long long)r->failures_by_status[i]);
}

static void print_near(const struct hf_audit_report *r, FILE *out)
{
    fprintf(out, "\nNear-duplicates: holds of one requester on one resource, at most %s apart\n",
            hf_audit_for(r->near_ms).text);
    fprintf(out, "  %llu pairs, %zu listed, %llu of those not legitimate\n",
            (unsigned long long)r->near_count, r->near_listed, (unsigned long long)r->near_illegitimate);
    for (size_t i = 0; i < r->near_listed; i++) {
        const struct hf_audit_near *n = &r->near[i];
        fprintf(out, "  - %s at %s by %s\n    %s at %s by %s\n    resource %s, requester %s: %s%s\n",
                n->first, hf_audit_at(n->first_at).text, n->first_key, n->second,
                hf_audit_at(n->second_at).text, n->second_key, n->resource, n->requester,
                n->legitimate ? "" : "NOT LEGITIMATE: ", n->why);
    }
}

bool hf_audit_print_text(const struct hf_audit_report *report, FILE *out)
{
    print_verdict(report, out);
    print_journal(report, out);
    print_configs(report, out);
    print_records(report, out);
    print_near(report, out);
    print_checks(report, out);
    return fflush(out) == 0 && !ferror(out);
}

/* The configuration in force: deciding and writing it. */
#include "store/postgres/transaction.h"

#include <stdio.h>

struct hf_rules hf_pg_rules_wanted(const struct hf_options *o, const struct hf_rules *in_force)
{
    struct hf_rules rules = *in_force;
    if (o->idempotency_window_ms)
        rules.idempotency_window_ms = o->idempotency_window_ms;
    if (o->token_max_length)
        rules.token_max_length = o->token_max_length;
    if (o->registry != HF_REGISTRY_KEEP)
        rules.registry_strict = o->registry == HF_REGISTRY_STRICT;
    return rules;
}

/* The caller has the lock on the rules. changed: out, false if they are in force already. */
static enum hf_pg_end rules_write(struct hf_pg_session *s, const struct hf_rules *rules,
                                  bool *changed)
{
    char window[24], length[16];
    PGresult *result = NULL;
    snprintf(window, sizeof window, "%lld", (long long)rules->idempotency_window_ms);
    snprintf(length, sizeof length, "%u", rules->token_max_length);
    const char *const params[] = { window, length, rules->registry_strict ? "t" : "f",
                                   HF_DIGEST_NAME, HF_VERSION };
    enum hf_pg_outcome outcome = hf_pg_ask(
        &s->conn,
        "UPDATE holdfast.store SET idempotency_window_ms = $1::bigint, token_max_length = "
        "$2::integer, registry_strict = $3::boolean, digest_name = $4, program = $5 WHERE program "
        "= 'none' OR (idempotency_window_ms, token_max_length, registry_strict) IS DISTINCT FROM "
        "($1::bigint, $2::integer, $3::boolean)",
        5, params, false, &result);
    *changed = outcome == HF_PG_FINE && strcmp(PQcmdTuples(result), "0") != 0;
    PQclear(result);
    return hf_pg_end_of(outcome);
}

enum hf_pg_end hf_pg_configure(struct hf_pg_session *s, const struct hf_options *options,
                               int patience_ms)
{
    struct hf_pg_tx w;
    char patience_text[16];
    struct hf_rules rules;
    bool changed = false;
    enum hf_pg_end end = hf_pg_end_of(hf_pg_session_register(s));
    if (end != HF_PG_DONE)
        return end;
    hf_pg_tx_begin(&w, s, NULL);
    hf_pg_tx_send(&w, HF_PG_BEGIN, HF_PG_TABLES, NULL, 0);
    /* All writing transactions queue behind one that waits for this lock. */
    snprintf(patience_text, sizeof patience_text, "%dms", patience_ms);
    const struct hf_bytes patience[] = { hf_str(patience_text) };
    hf_pg_tx_send(&w, HF_PG_PATIENCE, HF_PG_TABLES, patience, 1);
    hf_pg_tx_send(&w, HF_PG_CHANGE_RULES, HF_PG_TABLES, NULL, 0);
    hf_pg_tx_draw(&w, 1, 0, 0, 0);
    end = hf_pg_tx_trip(&w);
    hf_pg_tx_clear(&w);
    if (end == HF_PG_DONE) {
        rules = hf_pg_rules_wanted(options, &s->rules);
        end = rules_write(s, &rules, &changed);
    }
    if (end == HF_PG_DONE && changed) {
        hf_plan_reset(s->plan);
        hf_plan_row(s->plan, HF_ROW_CONFIG)->config =
            (struct hf_config){ .idempotency_window_ms = rules.idempotency_window_ms,
                                .token_max_length = rules.token_max_length,
                                .registry_strict = rules.registry_strict,
                                .digest_name = hf_str(HF_DIGEST_NAME),
                                .program = hf_str(HF_VERSION) };
        w.spoiled = !hf_pg_write_own(&w, HF_CONFIGURE, hf_pg_none());
        end = hf_pg_write(&w);
    }
    return hf_pg_tx_end(&w, end);
}

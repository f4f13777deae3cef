/* Detects rows and rules that Holdfast cannot have written: they were changed by hand. */
#include "base/bytes.h"
#include "core/name.h"
#include "store/postgres/session.h"
#include "store/record/entry.h"
#include "store/record/sound.h"

#include <stdio.h>

/* ---- Judging ---- */

void hf_pg_claim_of(const struct hf_pg_token *t, struct hf_claim *out)
{
    *out =
        (struct hf_claim){ .tenant = t->tenant,
                           .key = t->key,
                           .state = t->state,
                           .on_abandon = t->on_abandon == 2 ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN,
                           .fence = t->fence,
                           .lease_ms = t->lease_ms,
                           .retention_ms = t->retention_ms,
                           .begun_at = t->recorded_at,
                           .lease_expires_at = t->lease_expires_at,
                           .settled_at = t->settled_at,
                           .expires_at = t->expires_at == INT64_MAX ? 0 : t->expires_at,
                           .response = t->response };
    memcpy(out->fingerprint, t->digest, HF_DIGEST_SIZE);
}

/* Durations are added to the time of a call, and the journal stores a claim as a whole. */
static bool token_sound(const struct hf_pg_token *t)
{
    struct hf_row row = { .kind = HF_ROW_CLAIM };
    if (t->key.size > HF_TOKEN_MAX || !hf_now_sound(t->recorded_at))
        return false;
    if (t->state == 0)
        return true;
    hf_pg_claim_of(t, &row.claim);
    return t->action == HF_BEGIN && hf_row_sound(&row);
}

/* The row left by a deleted register is kept for the window of that time, or for ever if it has a
 * fence. The sweeper relies on that. */
static bool left_sound(const struct hf_register *r)
{
    if (r->value.type != HF_TYPE_DELETED)
        return true;
    hf_time until = (hf_time)hf_get64(r->value.bytes.data); /* hf_row_sound has checked the eight
                                                             * bytes */
    if (r->fence != 0)
        return until == INT64_MAX;
    return hf_now_sound(r->changed_at) && hf_now_sound(until) && until >= r->changed_at &&
           until - r->changed_at <= HF_DURATION_MAX_MS;
}

bool hf_pg_record_sound(enum hf_pg_table table, const struct hf_pg_record *record)
{
    if (table == HF_PG_TOKEN)
        return token_sound(&record->token);
    if (table == HF_PG_CALL)
        return record->call.client.size <= HF_NAME_MAX && hf_now_sound(record->call.recorded_at);
    if (!hf_row_sound(&record->row) ||
        (table == HF_PG_GUARD && !hf_name_valid(record->row.guard.name)))
        return false;
    /* A list follows these links from hold to hold, and must end. */
    if (table == HF_PG_HOLD && record->row.hold.previous >= record->row.hold.ordinal)
        return false;
    return table != HF_PG_REGISTER || left_sound(&record->row.reg);
}

/* Does the entry that came with the row belong to its call? A wrong number would lead to the entry
 * of another call, perhaps of another tenant. */
static bool is_entry_of(struct hf_bytes image, enum hf_remember remember, enum hf_action action,
                        struct hf_scoped key, uint64_t sequence, const uint8_t *digest)
{
    struct hf_entry_view entry;
    const struct hf_entry_head *head = &entry.head;
    return hf_entry_parse(image.data, image.size, &entry) &&
           (head->remember == remember && head->action == action && head->sequence == sequence &&
            hf_bytes_equal(head->tenant, key.tenant) && hf_bytes_equal(head->key, key.name) &&
            memcmp(head->digest, digest, HF_DIGEST_SIZE) == 0);
}

bool hf_pg_record_fits(const uint8_t *id_key, enum hf_pg_table table, const struct hf_pg_record *r)
{
    struct hf_scoped key;
    switch (table) {
    case HF_PG_HOLD: return hf_pg_id_fits(id_key, &r->row.hold);
    case HF_PG_TOKEN:
        key = (struct hf_scoped){ r->token.tenant, r->token.key };
        return r->token.image.size == 0 || is_entry_of(r->token.image, HF_REMEMBER_KEY,
                                                       r->token.action, key, 0, r->token.digest);
    case HF_PG_CALL:
        key = (struct hf_scoped){ r->call.tenant, r->call.client };
        return r->call.image.size == 0 ||
               is_entry_of(r->call.image, HF_REMEMBER_SEQUENCE, r->call.action, key,
                           r->call.sequence, r->call.digest);
    default: return true;
    }
}

/* ---- Reporting ---- */

void hf_pg_unsound(struct hf_pg_shared *shared, enum hf_pg_table table,
                   const struct hf_pg_record *record)
{
    enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS };
    char name[sizeof shared->unsound_name];
    hf_time now = hf_pg_clock_boot(shared);
    atomic_fetch_add(&shared->unsound, 1);
    hf_pg_record_name(table, record, name, sizeof name);
    pthread_mutex_lock(&shared->clock_lock);
    hf_time pause = strcmp(name, shared->unsound_name) == 0 ? MINUTE_MS : SECOND_MS;
    bool told = shared->unsound_name[0] && now - shared->unsound_said < pause;
    if (!told && shared->said_count < HF_PG_SAID_MAX) {
        struct hf_pg_said *said = &shared->said[shared->said_count++];
        shared->unsound_said = now;
        memcpy(shared->unsound_name, name, sizeof name);
        said->level = 1;
        snprintf(said->line, sizeof said->line,
                 "%s: the row was changed by hand, and requests that need it fail. Run "
                 "`holdfast audit`",
                 name);
    }
    pthread_mutex_unlock(&shared->clock_lock);
}

bool hf_pg_rules_sound(const struct hf_rules *rules)
{
    return rules->idempotency_window_ms > 0 && rules->idempotency_window_ms <= HF_DURATION_MAX_MS &&
           rules->token_max_length > 0 && rules->token_max_length <= HF_TOKEN_MAX;
}

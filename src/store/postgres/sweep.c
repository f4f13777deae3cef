/* The background thread's work in the database: expire overdue holds, and remove old rows. */
#include "store/postgres/transaction.h"

#include "core/claim.h"
#include "core/decide.h"

#include <stdio.h>
#include <stdlib.h>

enum hf_pg_end hf_pg_look(struct hf_pg_session *s)
{
    struct hf_pg_tx w;
    hf_pg_tx_begin(&w, s, NULL);
    hf_pg_tx_send(&w, HF_PG_NOW, HF_PG_TABLES, NULL, 0);
    return hf_pg_tx_end(&w, hf_pg_tx_trip(&w));
}

/* Read the overdue holds of the resources that are locked now. */
static enum hf_pg_end sweep_find(struct hf_pg_tx *w, unsigned max)
{
    struct hf_pg_slot **slots;
    size_t count = 0;
    for (struct hf_pg_slot *s = w->s->set.tables[HF_PG_RESOURCE]; s; s = s->next)
        s->wanted = s->lock = true;
    count = hf_pg_wanted(w, HF_PG_RESOURCE, true, &slots);
    for (size_t i = 0; i < count; i++)
        slots[i]->wanted = false;
    hf_pg_want_overdue(w, slots, count, max);
    hf_pg_tx_draw(w, (int)max, 0, 0, 0);
    enum hf_pg_end end = hf_pg_tx_trip(w);
    hf_pg_tx_clear(w);
    return end;
}

static unsigned sweep_decide(struct hf_pg_tx *w, unsigned max)
{
    struct hf_pg_session *s = w->s;
    unsigned swept = 0;
    for (struct hf_pg_slot *h = s->set.tables[HF_PG_HOLD]; h && swept < max; h = h->next) {
        struct hf_scoped id = { h->record.row.hold.tenant, hf_str(h->record.row.hold.id) };
        struct hf_hold hold;
        if (h->record.unsound)
            continue;
        if (s->set.view.hold(s->set.view.ctx, id, &hold) != HF_FOUND) {
            w->passed_over++; /* its resource does not count it: a row was changed by hand */
            continue;
        }
        hf_decide_sweep(&s->set.view, &hold, s->now, s->plan);
        if (s->plan->row_count == 0)
            continue;
        if (!hf_pg_write_own(w, HF_SWEEP, hold.tenant))
            w->spoiled = true;
        swept++;
    }
    return swept;
}

/* The most holds to skip at the front: beyond, the search would cost too much. */
enum { SKIP_MAX = 1000000 };

/* found: out, there is something to expire. Nothing is expired while the session may not write. */
static enum hf_pg_end sweep(struct hf_pg_session *s, unsigned max, bool *found, unsigned *swept)
{
    struct hf_pg_tx w;
    unsigned char limit[4], told[8], skip[4];
    const struct hf_bytes values[] = { hf_pg_param4(limit, (int64_t)max), hf_pg_param_told(told, s),
                                       hf_pg_param4(skip, s->sweep_skip) };
    hf_pg_tx_begin(&w, s, NULL);
    hf_pg_tx_send(&w, HF_PG_BEGIN, HF_PG_TABLES, NULL, 0);
    hf_pg_tx_send(&w, HF_PG_SWEEP, HF_PG_RESOURCE, values, 3);
    hf_pg_tx_send(&w, HF_PG_NOW, HF_PG_TABLES, NULL, 0);
    enum hf_pg_end end = hf_pg_tx_trip(&w);
    hf_pg_tx_clear(&w);
    *found = end == HF_PG_DONE && s->set.tables[HF_PG_RESOURCE];
    if (*found && s->resumed) {
        end = sweep_find(&w, max);
        if (end == HF_PG_DONE)
            *swept = sweep_decide(&w, max);
        if (end == HF_PG_DONE)
            end = hf_pg_write(&w);
        if (end == HF_PG_DONE && s->sweep_skip <= SKIP_MAX)
            s->sweep_skip += w.passed_over;
    } else if (end == HF_PG_DONE && !*found) {
        s->sweep_skip = 0; /* start with the skipped ones again */
    }
    return hf_pg_tx_end(&w, end);
}

enum hf_pg_end hf_pg_sweep(struct hf_pg_session *s, unsigned max, unsigned *swept)
{
    bool found;
    *swept = 0;
    if (!s->conn.pg)
        return HF_PG_GONE;
    enum hf_pg_end end = sweep(s, max, &found, swept);
    if (end != HF_PG_DONE || !found || s->resumed)
        return end;
    end = hf_pg_end_of(hf_pg_session_register(s));
    return end == HF_PG_DONE ? sweep(s, max, &found, swept) : end;
}

/* ---- Claims ---- */

/* A claim that was locked when its lease ended is looked for again for so long. */
enum { LAPSE_AGAIN_MS = 300000 };

enum hf_pg_end hf_pg_lapse(struct hf_pg_session *s, int max,
                           void (*tell)(void *arg, const struct hf_claim *claim), void *arg,
                           int *told)
{
    struct hf_pg_tx w;
    unsigned char limit[4], from[8], until[8];
    hf_time now = s->now;
    *told = 0;
    if (!s->conn.pg || now == 0)
        return HF_PG_GONE;
    const struct hf_bytes values[] = { hf_pg_param4(limit, max),
                                       hf_pg_param8(from, hf_pg_time(s->lapsed_until)),
                                       hf_pg_param8(until, hf_pg_time(now)) };
    hf_pg_tx_begin(&w, s, NULL);
    hf_pg_tx_send(&w, HF_PG_LAPSE, HF_PG_TABLES, values, 3);
    enum hf_pg_end end = hf_pg_tx_trip(&w);
    if (end != HF_PG_DONE)
        return hf_pg_tx_end(&w, end);
    *told = PQntuples(w.results[0]);
    for (int i = 0; i < *told; i++) {
        struct hf_pg_record record;
        struct hf_claim claim;
        if (!hf_pg_record_read(HF_PG_TOKEN, w.results[0], i, 0, &s->set.arena, &record))
            continue; /* changed by hand: requests for it report that */
        hf_pg_claim_of(&record.token, &claim);
        claim.state = hf_claim_state_at(&claim, now);
        tell(arg, &claim);
    }
    if (*told < max && now > s->lapsed_until + LAPSE_AGAIN_MS)
        s->lapsed_until = now - LAPSE_AGAIN_MS;
    return hf_pg_tx_end(&w, end);
}

/* ---- Removing ---- */

/* Every LEAVE_MS, read which transactions are in progress. */
static enum hf_pg_end horizon_move(struct hf_pg_session *s)
{
    struct hf_pg_horizon *h = &s->horizon;
    hf_time now = hf_pg_clock_boot(s->shared);
    struct hf_pg_tx w;
    if (h->coming && now - h->coming_at < HF_PG_LEAVE_MS)
        return HF_PG_DONE;
    h->ended = h->coming;
    h->ended_now = h->coming_now;
    hf_pg_tx_begin(&w, s, NULL);
    hf_pg_tx_send(&w, HF_PG_HORIZON, HF_PG_TABLES, NULL, 0);
    enum hf_pg_end end = hf_pg_tx_trip(&w);
    if (end == HF_PG_DONE) {
        h->coming = (uint64_t)hf_pg_get_int8(w.results[0], 0, 0);
        h->coming_now = s->now;
        h->coming_at = hf_pg_clock_boot(s->shared);
        h->moved = true;
    }
    return hf_pg_tx_end(&w, end);
}

enum hf_pg_end hf_pg_free_expired(struct hf_pg_session *s, int max, uint64_t *freed)
{
    static const int statements[] = { HF_PG_FREE_TOKENS, HF_PG_FREE_ENTRIES, HF_PG_FREE_LEFT,
                                      HF_PG_FREE_LEASES };
    enum { STATEMENTS = sizeof statements / sizeof *statements };
    struct hf_pg_tx w;
    unsigned char limit[4], until[8], ended[4];
    /* (The clock of a test stands still while a batch is in progress.) */
    bool at_once = s->shared->io != NULL;
    *freed = 0;
    if (!s->conn.pg || s->now == 0)
        return HF_PG_GONE;
    enum hf_pg_end end = at_once ? HF_PG_DONE : horizon_move(s);
    s->horizon.waiting = false;
    if (end != HF_PG_DONE || (!at_once && s->horizon.ended == 0))
        return end;
    s->horizon.waiting =
        !at_once && s->replicates &&
        !hf_pg_replicated_is_below(&s->shared->replicated, s->conn.timeline, s->horizon.ended);
    if (s->horizon.waiting)
        return HF_PG_DONE;
    const struct hf_bytes values[] = {
        hf_pg_param4(limit, max),
        hf_pg_param8(until, hf_pg_time(at_once ? s->now : s->horizon.ended_now)),
        at_once ? hf_pg_none() : hf_pg_param4(ended, (int64_t)s->horizon.ended)
    };
    hf_pg_tx_begin(&w, s, NULL);
    for (size_t i = 0; i < STATEMENTS; i++)
        hf_pg_tx_send(&w, statements[i], HF_PG_TABLES, values, 3);
    /* Report rows that cannot leave from time to time. */
    if (at_once || s->horizon.moved)
        hf_pg_tx_send(&w, HF_PG_ODD_LEFT, HF_PG_REGISTER, values, 3);
    s->horizon.moved = false;
    end = hf_pg_tx_trip(&w);
    for (int i = 0; end == HF_PG_DONE && i < STATEMENTS; i++)
        *freed += strtoull(PQcmdTuples(w.results[i]), NULL, 10);
    return hf_pg_tx_end(&w, end);
}

/* Holds, resources and reversals: PC1 to PC11. */
#include "audit/check.h"
#include "audit/digest.h"
#include "audit/id.h"
#include "audit/words.h"

#include "base/bytes.h"

#include <stdlib.h>

/* How many ordinals may be missing in a row before a number counts as invalid. In a database the
 * ordinals of rolled-back transactions are missing, so the limit is high: each missing one costs an
 * eighth of a byte. */
#define GAP_MAX 1024
#define GAP_MAX_DATABASE (UINT64_C(1) << 32)

/* ---- Look-ups ---- */

struct hf_audit_hold *hf_audit_hold_at(const struct hf_audit_state *s, uint64_t ordinal)
{
    if (ordinal == 0 || ordinal > s->hold_count || (ordinal - 1) / HF_AUDIT_CHUNK >= s->chunk_count)
        return NULL;
    struct hf_audit_hold *chunk = s->holds[(ordinal - 1) / HF_AUDIT_CHUNK];
    struct hf_audit_hold *h = chunk ? &chunk[(ordinal - 1) % HF_AUDIT_CHUNK] : NULL;
    return !h || h->state == 0 ? NULL : h;
}

static struct hf_audit_name id_name(const char *id)
{
    return hf_audit_name_of(HF_AUDIT_IDS, hf_mem("", 0), hf_str(id), hf_mem("", 0));
}

uint64_t hf_audit_ordinal_of(const struct hf_audit_state *s, const char *id)
{
    uint64_t ordinal;
    const struct hf_audit_journal *j = hf_audit_reader_journal(s->reader);
    if (!j->keys_known) {
        const struct hf_audit_id *known = hf_audit_table_find(&s->ids, id_name(id));
        return known ? known->ordinal : 0;
    }
    return hf_audit_id_read(j, hf_str(id), &ordinal) ? ordinal : 0;
}

/* Room for the hold `ordinal`, in its chunk; chunks without a hold are not allocated. */
static struct hf_audit_hold *hold_add(struct hf_audit_state *s, uint64_t ordinal)
{
    size_t chunk = (size_t)((ordinal - 1) / HF_AUDIT_CHUNK);
    if (chunk >= s->chunk_count) {
        struct hf_audit_hold **more = realloc(s->holds, (chunk + 1) * sizeof *more);
        if (more) {
            memset(more + s->chunk_count, 0, (chunk + 1 - s->chunk_count) * sizeof *more);
            s->holds = more;
            s->chunk_count = chunk + 1;
        }
    }
    if (chunk < s->chunk_count && !s->holds[chunk])
        s->holds[chunk] = calloc(HF_AUDIT_CHUNK, sizeof **s->holds);
    if (chunk >= s->chunk_count || !s->holds[chunk]) {
        s->no_memory = true;
        return NULL;
    }
    if (ordinal > s->hold_count)
        s->hold_count = ordinal;
    return &s->holds[chunk][(ordinal - 1) % HF_AUDIT_CHUNK];
}

/* The resource's index; a new one for a new name. */
static uint32_t resource_index(struct hf_audit_state *s, struct hf_bytes tenant,
                               struct hf_bytes name)
{
    struct hf_audit_name n = hf_audit_name_of(HF_AUDIT_RESOURCES, tenant, name, hf_mem("", 0));
    struct hf_audit_resource_item *item = hf_audit_table_find(&s->resource_names, n);
    if (item)
        return item->index;
    if (s->resource_count == s->resource_room) {
        uint32_t room = s->resource_room ? s->resource_room * 2 : 64;
        struct hf_audit_resource *more = realloc(s->resources, room * sizeof *more);
        if (more) {
            s->resources = more;
            s->resource_room = room;
        }
    }
    item =
        s->resource_count < s->resource_room ? hf_audit_table_add(&s->resource_names, n, 0) : NULL;
    if (!item) {
        s->no_memory = true;
        return UINT32_MAX;
    }
    item->index = s->resource_count;
    s->resources[s->resource_count] = (struct hf_audit_resource){ 0 };
    return s->resource_count++;
}

static void touch(struct hf_audit_state *s, uint32_t index, struct hf_bytes name)
{
    for (size_t i = 0; i < s->effects.touched_count; i++)
        if (s->effects.touched[i].index == index)
            return;
    s->effects.touched[s->effects.touched_count++] = (struct hf_audit_touched){ index, name };
}

/* ---- One record of a hold, by itself ---- */

static void judge_shape(struct hf_audit_state *s, const struct hf_audit_entry *e,
                        const struct hf_hold *h)
{
    bool known = h->state >= HF_HELD && h->state <= HF_EXPIRED;
    hf_audit_looked(s, HF_AUDIT_PC1, 1);
    if (!known || (h->state == HF_HELD) != (h->ended_at == 0))
        hf_audit_break(s, HF_AUDIT_PC1, e, "hold %s is recorded in state %s (%d) with an end of %s",
                       h->id, hf_audit_state_name(h->state), (int)h->state,
                       h->ended_at ? hf_audit_at(h->ended_at).text : "none");
    hf_audit_looked(s, HF_AUDIT_PC6, 1);
    if (h->placed_at >= h->expires_at)
        hf_audit_break(s, HF_AUDIT_PC6, e, "hold %s is placed at %s and expires at %s", h->id,
                       hf_audit_at(h->placed_at).text, hf_audit_at(h->expires_at).text);
    if (h->state == HF_CONFIRMED) {
        hf_audit_looked(s, HF_AUDIT_PC7, 1);
        if (h->ended_at >= h->expires_at)
            hf_audit_break(s, HF_AUDIT_PC7, e, "hold %s expires at %s and is confirmed at %s",
                           h->id, hf_audit_at(h->expires_at).text, hf_audit_at(h->ended_at).text);
    }
    hf_audit_looked(s, HF_AUDIT_PC8, 1);
    if (h->state != HF_HELD && (h->ended_at < h->placed_at || h->ended_at != e->recorded_at ||
                                (h->state == HF_EXPIRED && h->ended_at < h->expires_at)))
        hf_audit_break(s, HF_AUDIT_PC8, e,
                       "hold %s (placed %s, expires %s) is %s at %s, recorded at %s", h->id,
                       hf_audit_at(h->placed_at).text, hf_audit_at(h->expires_at).text,
                       hf_audit_state_name(h->state), hf_audit_at(h->ended_at).text,
                       hf_audit_at(e->recorded_at).text);
}

/* Note the ordinal of this id. */
static uint64_t id_take(struct hf_audit_state *s, const struct hf_hold *h)
{
    struct hf_audit_id *known = hf_audit_table_add(&s->ids, id_name(h->id), 0);
    if (known)
        known->ordinal = h->ordinal;
    s->no_memory |= !known;
    return h->ordinal;
}

static void judge_id(struct hf_audit_state *s, const struct hf_audit_entry *e,
                     const struct hf_hold *h)
{
    uint64_t inside = hf_audit_ordinal_of(s, h->id);
    bool key = hf_audit_reader_journal(s->reader)->keys_known;
    hf_audit_looked(s, HF_AUDIT_PC4, 1);
    if (!key && inside == 0 && !hf_audit_hold_at(s, h->ordinal))
        inside = id_take(s, h); /* its first record defines it */
    if (inside == h->ordinal)
        return;
    hf_audit_break(s, HF_AUDIT_PC4, e, "hold number %s is recorded with id %s, which is %s",
                   hf_audit_figure(s, h->ordinal).text, h->id,
                   inside ? "another hold's" : "not an id of this store");
    if (hf_audit_hold_at(s, inside))
        hf_audit_break(s, HF_AUDIT_PC9, e,
                       "id %s of hold number %s is used again by hold number %s", h->id,
                       hf_audit_figure(s, inside).text, hf_audit_figure(s, h->ordinal).text);
}

/* ---- The first record of a hold ---- */

static void judge_reversal(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_hold *h, uint32_t resource, uint64_t requester)
{
    uint64_t ordinal = hf_audit_ordinal_of(s, h->reverses);
    struct hf_audit_hold *original = hf_audit_hold_at(s, ordinal);
    hf_audit_looked(s, HF_AUDIT_REVERSALS, 1);
    const char *wrong = NULL;
    if (!original)
        wrong = "is not known";
    else if (original->flags & HF_AUDIT_IS_REVERSAL)
        wrong = "is itself a reversal";
    else if (original->state != HF_CONFIRMED)
        wrong = "is not confirmed";
    else if (original->flags & HF_AUDIT_IS_REVERSED)
        wrong = "was reversed before";
    else if (original->resource != resource || original->requester != requester)
        wrong = "has another resource or requester";
    if (wrong)
        hf_audit_break(s, HF_AUDIT_REVERSALS, e, "%s reverses hold %s, which %s", h->id,
                       h->reverses, wrong);
    if (h->state != HF_RELEASED)
        hf_audit_break(s, HF_AUDIT_REVERSALS, e, "reversal %s is in state %s instead of released",
                       h->id, hf_audit_state_name(h->state));
    if (original && original->state == HF_CONFIRMED && !(original->flags & HF_AUDIT_IS_REVERSED)) {
        original->flags |= HF_AUDIT_IS_REVERSED;
        s->resources[original->resource].confirmed--;
        touch(s, original->resource, h->resource);
    }
    s->effects.reversed++;
}

static void judge_reacquired(struct hf_audit_state *s, const struct hf_audit_entry *e,
                             const struct hf_hold *h, uint32_t resource, uint64_t requester)
{
    struct hf_audit_hold *late = hf_audit_hold_at(s, hf_audit_ordinal_of(s, h->reacquires));
    const char *wrong = NULL;
    hf_audit_looked(s, HF_AUDIT_LATE, 1);
    if (!late)
        wrong = "is not known";
    else if (late->state != HF_EXPIRED)
        wrong = "is not expired";
    else if (late->flags & HF_AUDIT_IS_REACQUIRED)
        wrong = "was reacquired before";
    else if (late->resource != resource || late->requester != requester)
        wrong = "has another resource or requester";
    if (wrong)
        hf_audit_break(s, HF_AUDIT_LATE, e, "%s reacquires hold %s, which %s", h->id, h->reacquires,
                       wrong);
    if (h->state != HF_CONFIRMED)
        hf_audit_break(s, HF_AUDIT_LATE, e, "%s reacquires a hold and is %s instead of confirmed",
                       h->id, hf_audit_state_name(h->state));
    if (late)
        late->flags |= HF_AUDIT_IS_REACQUIRED;
    s->effects.reacquired++;
}

static bool number_makes_sense(const struct hf_audit_state *s, uint64_t ordinal)
{
    return ordinal > 0 && ordinal <= s->hold_count + (s->database ? GAP_MAX_DATABASE : GAP_MAX);
}

void hf_audit_note_ordinal(struct hf_audit_state *s, uint64_t ordinal)
{
    if (ordinal > s->hold_count && number_makes_sense(s, ordinal))
        s->hold_count = ordinal;
}

static void judge_numbering(struct hf_audit_state *s, const struct hf_audit_entry *e,
                            const struct hf_hold *h)
{
    hf_audit_looked(s, HF_AUDIT_PC9, 1);
    hf_audit_looked(s, HF_AUDIT_PC10, 1);
    /* numbers come from a sequence; a number that is used twice is found as a later record */
    if (s->database) {
        if (!number_makes_sense(s, h->ordinal))
            hf_audit_break(s, HF_AUDIT_PC9, e,
                           "hold %s has number %s, far above the highest number so far, %s", h->id,
                           hf_audit_figure(s, h->ordinal).text,
                           hf_audit_figure(s, s->hold_count).text);
        return;
    }
    if (h->ordinal > s->hold_count + 1)
        hf_audit_break(
            s, HF_AUDIT_PC10, e,
            "hold %s has number %s, but the previous hold had %s: %s records are missing", h->id,
            hf_audit_figure(s, h->ordinal).text, hf_audit_figure(s, s->hold_count).text,
            hf_audit_figure(s, h->ordinal - s->hold_count - 1).text);
    else if (h->ordinal <= s->hold_count)
        hf_audit_break(s, HF_AUDIT_PC9, e,
                       "hold %s has number %s, which is not above the highest so far, %s", h->id,
                       hf_audit_figure(s, h->ordinal).text, hf_audit_figure(s, s->hold_count).text);
}

/* `previous` names the hold before this one on the resource, so that a resource's history is
 * complete. */
static void judge_previous(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_hold *h, struct hf_audit_resource *r)
{
    hf_audit_looked(s, HF_AUDIT_LINKS, 1);
    if (h->previous != r->newest)
        hf_audit_break(s, HF_AUDIT_LINKS, e,
                       "hold %s names number %s as the previous hold on its resource; it is %s",
                       h->id, hf_audit_figure(s, h->previous).text,
                       hf_audit_figure(s, r->newest).text);
    r->newest = h->ordinal;
}

static void hold_first(struct hf_audit_state *s, const struct hf_audit_entry *e,
                       const struct hf_hold *h, uint32_t resource, uint64_t requester)
{
    bool reversal = h->reverses[0] != '\0';
    judge_numbering(s, e, h);
    if (!number_makes_sense(s, h->ordinal))
        return;
    struct hf_audit_hold *mine = hold_add(s, h->ordinal);
    if (!mine)
        return;
    *mine = (struct hf_audit_hold){ .position = e->position,
                                    .placed_at = h->placed_at,
                                    .expires_at = h->expires_at,
                                    .ended_at = h->ended_at,
                                    .requester = requester,
                                    .resource = resource,
                                    .state = (uint8_t)h->state,
                                    .flags = reversal ? HF_AUDIT_IS_REVERSAL : 0 };
    s->effects.placed_ordinal = h->ordinal;
    judge_previous(s, e, h, &s->resources[resource]);
    if (h->placed_at != e->recorded_at)
        hf_audit_break(s, HF_AUDIT_PC8, e, "hold %s is placed at %s but recorded at %s", h->id,
                       hf_audit_at(h->placed_at).text, hf_audit_at(e->recorded_at).text);
    if (reversal) {
        judge_reversal(s, e, h, resource, requester);
        return;
    }
    s->resources[resource].held += h->state == HF_HELD;
    s->resources[resource].confirmed += h->state == HF_CONFIRMED;
    if (h->reacquires[0]) {
        judge_reacquired(s, e, h, resource, requester);
        return;
    }
    s->effects.placed++;
    hf_audit_looked(s, HF_AUDIT_PC2, 1);
    if (h->state != HF_HELD)
        hf_audit_break(s, HF_AUDIT_PC2, e, "the first record of hold %s is %s", h->id,
                       hf_audit_state_name(h->state));
    hf_audit_judge_near(s, e, h);
}

/* ---- Later records of a hold ---- */

/* May the action change a held hold to `state`? place_hold and a late confirm expire overdue holds
 * on their resource. */
static bool may_end(enum hf_action action, enum hf_hold_state state)
{
    switch (action) {
    case HF_CONFIRM: return state == HF_CONFIRMED;
    case HF_CONFIRM_LATE: return state == HF_CONFIRMED || state == HF_EXPIRED;
    case HF_RELEASE: return state == HF_RELEASED;
    case HF_EXPIRE:
    case HF_SWEEP:
    case HF_PLACE_HOLD: return state == HF_EXPIRED;
    default: return false;
    }
}

static void judge_unchanged(struct hf_audit_state *s, const struct hf_audit_entry *e,
                            const struct hf_hold *h, const struct hf_audit_hold *mine,
                            uint32_t resource, uint64_t requester)
{
    hf_audit_looked(s, HF_AUDIT_PC5, 1);
    if (mine->resource != resource || mine->requester != requester)
        hf_audit_break(
            s, HF_AUDIT_PC5, e,
            "hold %s has resource %s and requester %s, but was placed with others (position %s)",
            h->id, hf_audit_show(h->resource).text, hf_audit_show(h->requester).text,
            hf_audit_figure(s, mine->position).text);
    if (mine->placed_at != h->placed_at || mine->expires_at != h->expires_at)
        hf_audit_break(s, HF_AUDIT_PC6, e,
                       "hold %s was placed at %s until %s; a later record has %s until %s", h->id,
                       hf_audit_at(mine->placed_at).text, hf_audit_at(mine->expires_at).text,
                       hf_audit_at(h->placed_at).text, hf_audit_at(h->expires_at).text);
}

static void count_end(struct hf_audit_state *s, enum hf_hold_state state, uint64_t ordinal)
{
    s->effects.ended_ordinal = ordinal;
    switch (state) {
    case HF_CONFIRMED: s->effects.confirmed++; break;
    case HF_RELEASED: s->effects.released++; break;
    case HF_EXPIRED: s->effects.expired++; break;
    default: s->effects.other++;
    }
}

static void hold_later(struct hf_audit_state *s, const struct hf_audit_entry *e,
                       const struct hf_hold *h, struct hf_audit_hold *mine)
{
    struct hf_audit_resource *r = &s->resources[mine->resource];
    hf_audit_looked(s, HF_AUDIT_PC3, 1);
    count_end(s, h->state, h->ordinal);
    if (mine->state != HF_HELD) {
        hf_audit_break(s, HF_AUDIT_PC3, e,
                       "hold %s was %s since %s, but a later record changes it to %s", h->id,
                       hf_audit_state_name(mine->state), hf_audit_at(mine->ended_at).text,
                       hf_audit_state_name(h->state));
        r->confirmed -= mine->state == HF_CONFIRMED && !(mine->flags & HF_AUDIT_IS_REVERSED);
    } else {
        hf_audit_looked(s, HF_AUDIT_PC2, 1);
        if (!may_end(e->action, h->state))
            hf_audit_break(s, HF_AUDIT_PC2, e,
                           "hold %s was held, and an action that cannot do so makes it %s", h->id,
                           hf_audit_state_name(h->state));
        r->held--;
    }
    r->held += h->state == HF_HELD;
    r->confirmed += h->state == HF_CONFIRMED;
    mine->state = (uint8_t)h->state;
    mine->ended_at = h->ended_at;
    touch(s, mine->resource, h->resource);
}

static void judge_hold(struct hf_audit_state *s, const struct hf_audit_entry *e,
                       const struct hf_audit_row *row)
{
    const struct hf_hold *h = &row->hold;
    struct hf_audit_hold *mine = hf_audit_hold_at(s, h->ordinal);
    uint32_t resource = resource_index(s, h->tenant, h->resource);
    uint64_t requester =
        hf_audit_name_of(HF_AUDIT_REQUESTERS, h->tenant, h->requester, hf_mem("", 0)).high;
    if (s->no_memory)
        return;
    touch(s, resource, h->resource);
    judge_shape(s, e, h);
    judge_id(s, e, h);
    if (row->flags & HF_AUDIT_ROW_LEAVES)
        hf_audit_break(s, HF_AUDIT_PC10, e, "the record of hold %s is deleted", h->id);
    bool places = (e->action == HF_PLACE_HOLD && h->state == HF_HELD) || e->action == HF_REVERSE ||
                  (e->action == HF_CONFIRM_LATE && h->reacquires[0]);
    if (!mine && (places || e->action == HF_PLACE_HOLD)) {
        hold_first(s, e, h, resource, requester);
    } else if (!mine) {
        hf_audit_looked(s, HF_AUDIT_PC10, 1);
        hf_audit_break(s, HF_AUDIT_PC10, e,
                       "hold %s (number %s) is %s, but has no record of its placing", h->id,
                       hf_audit_figure(s, h->ordinal).text, hf_audit_state_name(h->state));
    } else if (places) {
        hf_audit_looked(s, HF_AUDIT_PC9, 1);
        hf_audit_break(
            s, HF_AUDIT_PC9, e, "hold %s (number %s) was placed at position %s and is placed again",
            h->id, hf_audit_figure(s, h->ordinal).text, hf_audit_figure(s, mine->position).text);
        s->effects.placed += e->action == HF_PLACE_HOLD;
    } else {
        judge_unchanged(s, e, h, mine, resource, requester);
        hold_later(s, e, h, mine);
    }
    mine = hf_audit_hold_at(s, h->ordinal);
    if (mine)
        mine->newest = e->position;
}

/* ---- Resources ---- */

static void judge_resource(struct hf_audit_state *s, const struct hf_audit_entry *e,
                           const struct hf_audit_row *record)
{
    const struct hf_resource *row = &record->resource;
    uint32_t index = resource_index(s, row->tenant, row->name);
    if (s->no_memory)
        return;
    struct hf_audit_resource *r = &s->resources[index];
    touch(s, index, row->name);
    hf_audit_looked(s, HF_AUDIT_FENCES, 1);
    if (row->fence < r->fence)
        hf_audit_break(s, HF_AUDIT_FENCES, e,
                       "the highest fence of resource %s falls from %llu to %llu",
                       hf_audit_show(row->name).text, (unsigned long long)r->fence,
                       (unsigned long long)row->fence);
    if (row->fence > r->fence && !hf_audit_digest_raises(e, s->rows, record))
        hf_audit_break(s, HF_AUDIT_FENCES, e,
                       "the highest fence of resource %s rises from %llu to %llu, but the call did "
                       "not have this fence",
                       hf_audit_show(row->name).text, (unsigned long long)r->fence,
                       (unsigned long long)row->fence);
    if (r->recorded && r->requires_fence && e->action == HF_PLACE_HOLD && e->status == HF_OK &&
        row->fence <= r->fence)
        hf_audit_break(s, HF_AUDIT_FENCES, e,
                       "resource %s requires a fence, and a hold was placed without one",
                       hf_audit_show(row->name).text);
    if (row->require_fence != r->requires_fence && e->action != HF_SET_RESOURCE)
        hf_audit_break(s, HF_AUDIT_FENCES, e,
                       "resource %s requires %s fence from now on, but this call does not set that",
                       hf_audit_show(row->name).text, row->require_fence ? "a" : "no");
    s->report->resources += !r->recorded;
    r->capacity = row->capacity;
    r->row_held = row->held;
    r->row_confirmed = row->confirmed;
    r->row_newest = row->newest;
    r->fence = row->fence;
    r->created_at = row->created_at;
    r->open = row->open;
    r->requires_fence = row->require_fence;
    r->recorded = true;
}

/* After an entry, for each resource that it touched: the taken units fit the capacity, and the
 * record agrees. */
static void judge_taken(struct hf_audit_state *s, const struct hf_audit_entry *e,
                        const struct hf_audit_touched *touched)
{
    const struct hf_audit_resource *r = &s->resources[touched->index];
    struct hf_audit_shown name = hf_audit_show(touched->name);
    unsigned long long taken = (unsigned long long)r->held + r->confirmed;
    hf_audit_looked(s, HF_AUDIT_PC11, 1);
    hf_audit_looked(s, HF_AUDIT_LINKS, 1);
    if (!r->recorded)
        hf_audit_break(s, HF_AUDIT_PC11, e, "resource %s has holds, but no record of its capacity",
                       name.text);
    else if (r->held != r->row_held || r->confirmed != r->row_confirmed)
        hf_audit_break(s, HF_AUDIT_PC11, e,
                       "resource %s is recorded with %u held and %u confirmed; its holds are "
                       "%u and %u",
                       name.text, r->row_held, r->row_confirmed, r->held, r->confirmed);
    else if (taken > r->capacity)
        hf_audit_break(s, HF_AUDIT_PC11, e,
                       "resource %s has capacity %u and %llu units taken (%u held, %u confirmed)",
                       name.text, r->capacity, taken, r->held, r->confirmed);
    else if (s->effects.placed + s->effects.reacquired > 0 && !r->open)
        hf_audit_break(s, HF_AUDIT_PC11, e, "a hold is placed on resource %s, which is closed",
                       name.text);
    if (r->recorded && r->newest != r->row_newest)
        hf_audit_break(s, HF_AUDIT_LINKS, e,
                       "resource %s is recorded with hold number %s as its newest; it is %s",
                       name.text, hf_audit_figure(s, r->row_newest).text,
                       hf_audit_figure(s, r->newest).text);
}

static void judge_successor_row(struct hf_audit_state *s, const struct hf_audit_entry *e,
                                const struct hf_audit_successor *row)
{
    for (size_t i = 0; i < e->row_count; i++) {
        const struct hf_hold *h = &s->rows[i].hold;
        if (s->rows[i].kind == HF_ROW_HOLD && strcmp(h->id, row->successor) == 0 &&
            (strcmp(h->reverses, row->original) == 0 || strcmp(h->reacquires, row->original) == 0))
            return;
    }
    bool late = e->action == HF_CONFIRM_LATE;
    hf_audit_break(s, late ? HF_AUDIT_LATE : HF_AUDIT_REVERSALS, e,
                   "the entry says that %s was %s by %s, but does not have that record",
                   row->original, late ? "reacquired" : "reversed", row->successor);
}

void hf_audit_judge_holds(struct hf_audit_state *s, const struct hf_audit_entry *e)
{
    s->effects = (struct hf_audit_effects){ 0 };
    for (size_t i = 0; i < e->row_count && !s->no_memory; i++) {
        if (s->rows[i].kind == HF_ROW_HOLD)
            judge_hold(s, e, &s->rows[i]);
        else if (s->rows[i].kind == HF_ROW_RESOURCE)
            judge_resource(s, e, &s->rows[i]);
        else if (s->rows[i].kind == HF_ROW_SUCCESSOR)
            judge_successor_row(s, e, &s->rows[i].successor);
    }
    for (size_t i = 0; i < s->effects.touched_count && !s->no_memory; i++)
        judge_taken(s, e, &s->effects.touched[i]);
}

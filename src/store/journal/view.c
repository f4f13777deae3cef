/* The core's view of the store, answered from the tables and the journal. */
#include "base/bytes.h"
#include "base/id.h"
#include "store/journal/journal.h"
#include "store/record/sound.h"

#include <errno.h>

static bool remembered_by(const struct hf_entry_view *entry, enum hf_remember how,
                          struct hf_scoped key)
{
    return entry->head.remember == how && hf_bytes_equal(entry->head.key, key.name) &&
           hf_bytes_equal(entry->head.tenant, key.tenant);
}

static enum hf_found remembered_fill(const struct hf_entry_view *entry, struct hf_remembered *out)
{
    out->action = entry->head.action;
    memcpy(out->digest, entry->head.digest, HF_DIGEST_SIZE);
    out->recorded_at = entry->head.recorded_at;
    out->expires_at = entry->head.expires_at;
    return hf_entry_answer(entry, &out->answer) ? HF_FOUND : HF_UNREADABLE;
}

/* Does this entry belong to a slot with this hash? If not, another entry is in its place: a disk
 * can write a block to the wrong place, where the block's own checksum is still right. */
static bool belongs(struct hf_journal *j, const struct hf_entry_view *entry, uint64_t hash)
{
    struct hf_scoped key = { entry->head.tenant, entry->head.key };
    return entry->head.remember == HF_REMEMBER_KEY && hf_tables_hash(&j->tables, key) == hash;
}

/* Is the entry at `position` in a batch of the time at which it was recorded? The batch begins at
 * one of the blocks before. */
static bool is_home(struct hf_journal *j, uint64_t position, hf_time recorded_at)
{
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    struct hf_batch_head head;
    const unsigned char *data;
    if (position >= j->durable)
        return true; /* it is in memory yet, as it was made */
    for (uint64_t at = position / HF_BLOCK * HF_BLOCK;
         g && at > g->base && position - at < HF_BATCH_MAX; at -= HF_BLOCK)
        if (hf_journal_batch(j, at, false, &data, &head) == 0)
            return position - at < head.length && head.now == recorded_at;
    return false;
}

static enum hf_found view_token(void *ctx, struct hf_scoped key, struct hf_remembered *out)
{
    struct hf_journal *j = ctx;
    /* During a decision, only the request's own key is looked up. */
    uint64_t hash = j->tables.hint_token ? j->tables.hint_token : hf_tables_hash(&j->tables, key);
    uint64_t newest = 0, read = 0;
    struct hf_entry_view entry;
    /* A key that was used again after its window is here twice until the sweeper frees the older
     * one; and two keys may share a hash. */
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&j->tables.tokens, hash, s)) != NULL;) {
        if (s->value < newest)
            continue;
        if (hf_journal_entry(j, s->value, &entry) != 0)
            return HF_UNREADABLE;
        read = s->value;
        if (remembered_by(&entry, HF_REMEMBER_KEY, key))
            newest = s->value;
        else if (!belongs(j, &entry, hash))
            return HF_UNREADABLE;
    }
    if (newest == 0)
        return HF_ABSENT;
    /* Almost always the entry that was read last, which is checked and borrowed until the next
     * read. */
    if (newest != read && hf_journal_entry(j, newest, &entry) != 0)
        return HF_UNREADABLE;
    /* If its window is over, the key counts as new: check that this is the key's newest use, and
     * not an older entry in its place. */
    if (entry.head.expires_at <= hf_journal_now(j) &&
        (!is_home(j, newest, entry.head.recorded_at) || hf_journal_entry(j, newest, &entry) != 0))
        return HF_UNREADABLE;
    j->seen_position = newest;
    return remembered_fill(&entry, out);
}

static struct hf_node *find(struct hf_journal *j, enum hf_row_kind kind, struct hf_scoped name)
{
    struct hf_image_key key = { .name = name.name };
    return hf_rows_find(&j->tables.rows, kind, name.tenant, &key);
}

/* Look a row up and decode it. */
static enum hf_found row_get(struct hf_journal *j, enum hf_row_kind kind, struct hf_scoped name,
                             struct hf_row *row)
{
    const struct hf_node *node = find(j, kind, name);
    if (!node)
        return HF_ABSENT;
    return hf_node_row(node, row) ? HF_FOUND : HF_UNREADABLE;
}

#define VIEW_ROW(function, kind, type, member)                                 \
    static enum hf_found function(void *ctx, struct hf_scoped name, type *out) \
    {                                                                          \
        struct hf_row row;                                                     \
        enum hf_found found = row_get(ctx, kind, name, &row);                  \
        if (found == HF_FOUND)                                                 \
            *out = row.member;                                                 \
        return found;                                                          \
    }

VIEW_ROW(view_client, HF_ROW_CLIENT, struct hf_client, client)
VIEW_ROW(view_resource, HF_ROW_RESOURCE, struct hf_resource, resource)
VIEW_ROW(view_guard, HF_ROW_GUARD, struct hf_guard, guard)
VIEW_ROW(view_claim, HF_ROW_CLAIM, struct hf_claim, claim)
VIEW_ROW(view_lease, HF_ROW_LEASE, struct hf_lease, lease)
VIEW_ROW(view_register, HF_ROW_REGISTER, struct hf_register, reg)
VIEW_ROW(view_value, HF_ROW_VALUE, struct hf_bytes, pair.value)

static enum hf_found view_sequence(void *ctx, struct hf_scoped client, uint64_t sequence,
                                   struct hf_remembered *out)
{
    struct hf_journal *j = ctx;
    const struct hf_node *node = find(j, HF_ROW_CLIENT, client);
    struct hf_entry_view entry;
    uint64_t position = node ? node->ring[sequence % HF_SEQUENCE_WINDOW] : 0;
    if (position == 0)
        return HF_ABSENT;
    if (hf_journal_entry(j, position, &entry) != 0)
        return HF_UNREADABLE;
    if (entry.head.sequence != sequence || !remembered_by(&entry, HF_REMEMBER_SEQUENCE, client))
        return HF_ABSENT;
    j->seen_position = position;
    return remembered_fill(&entry, out);
}

/* Find the record of the hold in the entry. */
static enum hf_found hold_in(const struct hf_entry_view *entry, uint64_t ordinal,
                             struct hf_hold *out)
{
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    struct hf_row row;
    while (hf_image_next(&rows, &image)) {
        if (image.kind != HF_ROW_HOLD || image.bytes.size < 8 ||
            hf_get64(image.bytes.data) != ordinal)
            continue;
        if (!hf_image_decode(&image, entry->head.tenant, &row) || !hf_row_sound(&row))
            return HF_UNREADABLE;
        *out = row.hold;
        return HF_FOUND;
    }
    return HF_ABSENT;
}

/* Does the record agree with the tables? A hold is held if and only if the table of held holds has
 * it. */
static bool hold_fits(const struct hf_journal *j, enum hf_found found, uint64_t ordinal,
                      const struct hf_hold *hold)
{
    bool live = hf_dense_get(&j->tables.live.by_ordinal, ordinal) != 0;
    return found == HF_UNREADABLE || (found == HF_FOUND && (hold->state == HF_HELD) == live);
}

int hf_journal_hold(struct hf_journal *j, uint64_t ordinal, struct hf_hold *out)
{
    struct hf_holds *h = &j->tables.holds;
    struct hf_entry_view entry;
    enum hf_found found = HF_UNREADABLE;
    uint64_t position;
    size_t bad = h->bad;
    int error = hf_holds_get(h, ordinal, &position);
    if (error == -ENOENT)
        return error;
    int unread =
        error ? error : hf_journal_entry(j, position, &entry); /* logs what it cannot read */
    if (!unread)
        found = hold_in(&entry, ordinal, out);
    if (!error && !hold_fits(j, found, ordinal, out)) {
        /* If a block of another batch is there, the journal is damaged, not the index. */
        if (is_home(j, position, entry.head.recorded_at))
            hf_holds_distrust(h, ordinal);
        else
            found = HF_UNREADABLE;
    }
    if (h->bad > bad) { /* just detected */
        hf_journal_index_note(j, hf_index_part_of(ordinal));
        error = -EBADMSG;
    }
    if (error) {
        /* A hold that is being searched for is not damaged. */
        j->stats.records_unreadable += !hf_journal_hold_awaited(j, ordinal, error);
        return error;
    }
    if (!unread && found != HF_FOUND) {
        hf_journal_note_unreadable(j, position, -EBADMSG);
        return -EBADMSG;
    }
    return unread == -ENOENT ? -EBADMSG : unread; /* a position outside of the journal is wrong */
}

bool hf_journal_counted(struct hf_journal *j, const struct hf_hold *hold)
{
    struct hf_image_key key = { .name = hold->resource };
    struct hf_row row;
    uint8_t raw[HF_ID_RAW];
    if (hold->state != HF_HELD && hold->state != HF_CONFIRMED)
        return true;
    const struct hf_node *node = hf_rows_find(&j->tables.rows, HF_ROW_RESOURCE, hold->tenant, &key);
    if (!node || !hf_node_row(node, &row))
        return false;
    if (hold->state == HF_HELD || row.resource.confirmed > 0)
        return hold->state == HF_CONFIRMED || row.resource.held > 0;
    /* No unit is confirmed: then this hold was reversed. */
    key.name = hf_mem(raw, hf_id_pack(hf_str(hold->id), raw) ? sizeof raw : 0);
    return hf_rows_find(&j->tables.rows, HF_ROW_SUCCESSOR, hold->tenant, &key) != NULL;
}

static enum hf_found view_hold(void *ctx, struct hf_scoped id, struct hf_hold *out)
{
    struct hf_journal *j = ctx;
    uint64_t ordinal;
    if (!hf_id_read(&j->keys.id, id.name, &ordinal))
        return HF_ABSENT;
    int error = hf_journal_hold(j, ordinal, out);
    if (error == -ENOENT || (!error && !hf_bytes_equal(out->tenant, id.tenant)))
        return HF_ABSENT;
    return error || !hf_journal_counted(j, out) ? HF_UNREADABLE : HF_FOUND;
}

static enum hf_found view_successor(void *ctx, struct hf_scoped id, struct hf_successor *out)
{
    uint8_t raw[HF_ID_RAW];
    struct hf_row row;
    if (!hf_id_pack(id.name, raw))
        return HF_ABSENT;
    struct hf_scoped name = { id.tenant, hf_mem(raw, sizeof raw) };
    enum hf_found found = row_get(ctx, HF_ROW_SUCCESSOR, name, &row);
    if (found == HF_FOUND)
        *out = row.successor;
    return found;
}

static enum hf_found view_overdue(void *ctx, struct hf_scoped resource, hf_time now,
                                  struct hf_hold out[HF_OVERDUE_MAX], size_t *count)
{
    struct hf_journal *j = ctx;
    uint64_t ordinals[HF_OVERDUE_MAX];
    const struct hf_node *node = find(j, HF_ROW_RESOURCE, resource);
    struct hf_row row;
    *count = 0;
    if (!node)
        return HF_FOUND;
    size_t held = hf_node_row(node, &row) ? row.resource.held : 0;
    size_t n = hf_live_overdue(&j->tables.live, node->live_root, now, ordinals, HF_OVERDUE_MAX);
    /* Entries of packed segments share one buffer: then only the first can be returned at a
     * time. */
    for (size_t i = 0; i < n; i++) {
        uint64_t position;
        if (i > 0 && (hf_holds_get(&j->tables.holds, ordinals[i], &position) != 0 ||
                      hf_journal_is_packed(j, position)))
            break;
        if (hf_journal_hold(j, ordinals[i], &out[i]) != 0 || out[i].state != HF_HELD ||
            out[i].expires_at > now || i >= held)
            return HF_UNREADABLE;
        *count = i + 1;
    }
    return HF_FOUND;
}

static enum hf_found view_entry(void *ctx, struct hf_scoped guard, struct hf_bytes identity,
                                struct hf_entry *out)
{
    struct hf_journal *j = ctx;
    struct hf_image_key key = { guard.name, identity };
    struct hf_row row;
    const struct hf_node *node = hf_rows_find(&j->tables.rows, HF_ROW_ENTRY, guard.tenant, &key);
    if (!node)
        return HF_ABSENT;
    if (!hf_node_row(node, &row))
        return HF_UNREADABLE;
    *out = row.entry;
    return HF_FOUND;
}

/* Does the order have an entry that is seen at `now`? The newest is, unless windows were changed or
 * the sweeper has not come yet. */
static bool any_seen(const struct hf_order *o, hf_time now)
{
    struct hf_order_at at = hf_order_end(o);
    const struct hf_order_item *item;
    while ((item = hf_order_back(o, &at)) != NULL)
        if (now < hf_node_entry_expiry(item->node))
            return true;
    return false;
}

static enum hf_found view_guarded(void *ctx, struct hf_scoped guard, hf_time now)
{
    const struct hf_node *node = find(ctx, HF_ROW_GUARD, guard);
    if (!node || !node->entries)
        return HF_ABSENT;
    return any_seen(&node->entries[0], now) || any_seen(&node->entries[1], now) ? HF_FOUND
                                                                                : HF_ABSENT;
}

void hf_journal_view_init(struct hf_journal *j)
{
    j->view = (struct hf_view){ .ctx = j,
                                .token = view_token,
                                .client = view_client,
                                .sequence = view_sequence,
                                .hold = view_hold,
                                .successor = view_successor,
                                .resource = view_resource,
                                .overdue = view_overdue,
                                .guard = view_guard,
                                .entry = view_entry,
                                .guarded = view_guarded,
                                .claim = view_claim,
                                .lease = view_lease,
                                .reg = view_register,
                                .value = view_value };
}

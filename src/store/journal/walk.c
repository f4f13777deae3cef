#include "store/journal/walk.h"

#include "base/bytes.h"
#include "store/record/sound.h"

#include <errno.h>

/* ---- One batch ---- */

static bool is_first(const struct hf_segment *g, const struct hf_batch_head *head)
{
    return head->position == g->base + HF_BLOCK;
}

const char hf_closed_differs[] = "the batch does not match the note `closed`";
static const char head_wrong[] = "the segment's header is damaged";

bool hf_head_fits(const struct hf_segment *g, const struct hf_batch_head *head)
{
    return !is_first(g, head) ||
           (g->version != 0 && g->first_sequence == head->sequence && g->created_at == head->now &&
            memcmp(g->chain, head->chain, HF_DIGEST_SIZE) == 0 && !g->head_dirty);
}

const char *hf_link_check(const struct hf_link *link, const struct hf_segment *g,
                          const struct hf_batch_head *head, const unsigned char *data)
{
    if (memcmp(head->chain, link->chain, HF_DIGEST_SIZE) != 0)
        return "the batch does not follow the previous one: chain mismatch";
    if (head->now < link->now || !hf_now_sound(head->now))
        return "the time of the batch is before the time of the previous one";
    if (!hf_head_fits(g, head))
        return head_wrong;
    uint32_t at = hf_batch_head_size(head->version), entries = 0;
    struct hf_entry_view entry;
    for (; at < head->length; at += entry.size, entries++)
        if (!hf_entry_decode(data + at, head->length - at, &entry))
            return "an entry of the batch is malformed";
    return entries == head->count ? NULL : "the batch has a wrong number of entries";
}

void hf_link_on(struct hf_link *link, const struct hf_batch_head *head, const unsigned char *data)
{
    hf_batch_hash(head, data, link->chain);
    link->now = head->now;
    link->sequence = head->sequence + 1;
}

bool hf_padding_clean(const struct hf_batch_head *head, const unsigned char *data)
{
    const unsigned char *rest = data + head->length;
    size_t size = (size_t)(hf_block_up(head->length) - head->length);
    return size == 0 || (*rest == 0 && memcmp(rest, rest + 1, size - 1) == 0);
}

/* ---- The end ---- */

/* The second place where the batch that is expected may begin. g: the segment of w->position. */
static uint64_t next_begin(const struct hf_walk *w, const struct hf_segment *g)
{
    return w->position == g->base ? g->base + HF_BLOCK : g->base + g->size + HF_BLOCK;
}

/* May a crash have left the header of the batch that is expected at `position`, or there the header
 * of the segment that the batch begins? */
static bool is_place_of_next(const struct hf_walk *w, uint64_t position)
{
    const struct hf_segment *g = hf_segments_at(&w->j->segments, w->position);
    if (!g)
        return false;
    uint64_t next = next_begin(w, g);
    return position == w->position || position == next || position + HF_BLOCK == next ||
           (position == g->base && w->position == g->base + HF_BLOCK);
}

/* Is there a sealed header in the bytes at `position` that proves more than was read? Each batch is
 * written after the previous ones are durable, and a disk may write to the wrong place. */
static bool piece_proves(const struct hf_walk *w, uint64_t position, const unsigned char *data,
                         size_t size)
{
    struct hf_sealed sealed;
    for (size_t at = 0; at < size; at += HF_SECTOR) {
        if (!hf_sealed_read(&w->j->keys.seal, data + at, &sealed) ||
            sealed.sequence < w->link.sequence)
            continue;
        if (sealed.sequence > w->link.sequence || sealed.position != position + at ||
            !is_place_of_next(w, position + at))
            return true;
    }
    return false;
}

/* The same in a segment, from `at` up to `end`. Also true if it cannot be read. */
static bool segment_proves(struct hf_walk *w, struct hf_segment *g, uint64_t at, uint64_t end)
{
    enum { PIECE = 32 * HF_BLOCK };
    while (at < end) {
        const unsigned char *data;
        size_t piece = PIECE - (size_t)(at % PIECE); /* of a compressed one: within a frame */
        size_t size = end - at < piece ? (size_t)(end - at) : piece;
        hf_segments_tick(&w->j->segments);
        int error = hf_journal_bytes(w->j, g, at, size, &data);
        if (hf_journal_unread(error)) {
            w->error = error;
            w->unread = g->base + at;
            return true;
        }
        if (!error && piece_proves(w, g->base + at, data, size))
            return true;
        at += size;
    }
    return false;
}

/* Is there proof in any segment from w->from on, and in the first block of the one with w->from? */
static bool is_sealed_elsewhere(struct hf_walk *w)
{
    struct hf_segments *s = &w->j->segments;
    if (!w->j->has_seal)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        struct hf_segment *g = &s->list[i];
        if (g->base + g->size <= w->from)
            continue;
        uint64_t at = g->base < w->from ? (w->from - g->base) & ~(uint64_t)(HF_BLOCK - 1) : 0;
        if ((at > 0 && segment_proves(w, g, 0, HF_BLOCK)) || segment_proves(w, g, at, g->size))
            return true;
    }
    return false;
}

/* Does a batch at `position` with a higher sequence prove that the expected batch existed? In
 * version 1, and without the key, the whole batch must be valid. */
static bool is_later(struct hf_walk *w, uint64_t position)
{
    struct hf_journal *j = w->j;
    struct hf_batch_head head;
    const unsigned char *data;
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    /* A segment's header is written with its first batch, and bytes of a client are never there. */
    if (g->base == position && g->version && g->first_sequence > w->link.sequence)
        return true;
    int error = hf_journal_batch(j, position, false, &data, &head);
    if (!error && head.sequence <= w->link.sequence)
        return false;
    bool sealed = !error && j->has_seal && head.version >= 2;
    if (!error && !sealed)
        error = hf_journal_batch(j, position, true, &data, &head);
    if (hf_journal_unread(error)) {
        w->error = error;
        w->unread = position;
    }
    return !error;
}

bool hf_walk_later(struct hf_walk *w, uint64_t position)
{
    struct hf_journal *j = w->j;
    struct hf_batch_head head;
    const unsigned char *data;
    if (is_sealed_elsewhere(w))
        return true;
    /* In version 1, and without the key: a valid header tells the length of its batch. Everything
     * inside are the batch's own bytes, whatever they look like. */
    if (hf_journal_batch(j, position, false, &data, &head) == 0 &&
        head.sequence == w->link.sequence)
        position += hf_block_up(head.length);
    for (; hf_segments_at(&j->segments, position); position += HF_BLOCK) {
        hf_segments_tick(&j->segments);
        if (is_later(w, position) || w->error)
            return true;
    }
    return false;
}

static enum hf_step damage(struct hf_walk *w, uint64_t position, const char *what)
{
    w->position = position;
    w->what = what;
    return HF_STEP_DAMAGE;
}

/* The batch at `position` is complete and has the expected sequence. */
static enum hf_step found(struct hf_walk *w, uint64_t position)
{
    /* Only a batch with a successor was surely written completely, including its padding. */
    if (w->suspect)
        return damage(w, w->suspect, "there are unexpected bytes after the batch");
    const struct hf_segment *g = hf_segments_at(&w->j->segments, position);
    if (g->version == 0) {
        /* In version 1 a segment's header and its first batch were one write, which a crash could
         * tear anywhere. */
        if (w->head.version == 1 && !hf_walk_later(w, position))
            return HF_STEP_END;
        return damage(w, g->base, head_wrong);
    }
    const char *what = hf_link_check(&w->link, g, &w->head, w->data);
    w->position = position;
    return what ? damage(w, hf_head_fits(g, &w->head) ? position : g->base, what) : HF_STEP_BATCH;
}

enum hf_step hf_walk_step(struct hf_walk *w)
{
    struct hf_journal *j = w->j;
    uint64_t tries[2] = { w->position, 0 };
    hf_segments_tick(&j->segments);
    const struct hf_segment *g = hf_segments_at(&j->segments, w->position);
    if (g)
        tries[1] = next_begin(w, g);
    for (size_t i = 0; g && i < 2; i++) {
        int error = hf_journal_batch(j, tries[i], true, &w->data, &w->head);
        if (hf_journal_unread(error)) {
            w->error = error;
            return damage(w, tries[i], "it cannot be read");
        }
        if (error == 0 && w->head.sequence == w->link.sequence)
            return found(w, tries[i]);
    }
    if (!hf_walk_later(w, w->position))
        return HF_STEP_END;
    if (w->error)
        return damage(w, w->unread, "it cannot be read");
    /* One of two places is wrong: the second, if its segment's header promises the batch. */
    g = hf_segments_at(&j->segments, tries[1]);
    return damage(w, tries[g && g->version && g->first_sequence == w->link.sequence],
                  "the batch is damaged, and later batches or headers at other places exist");
}

void hf_walk_on(struct hf_walk *w)
{
    w->suspect = hf_padding_clean(&w->head, w->data) ? 0 : w->position;
    hf_link_on(&w->link, &w->head, w->data);
    w->position = hf_block_up(w->position + w->head.length);
}

/* Note the positions of the holds in an entry at `position`. */
static enum hf_status holds_note(struct hf_holds *holds, const struct hf_entry_view *entry,
                                 uint64_t position)
{
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    while (hf_image_next(&rows, &image)) {
        if (image.kind != HF_ROW_HOLD || image.bytes.size < 8)
            continue;
        uint64_t ordinal = hf_get64(image.bytes.data);
        if (ordinal == 0 || ordinal > holds->highest + 1)
            return HF_STORE_DAMAGED; /* ordinals are given out in sequence */
        if (!hf_holds_reserve(holds, ordinal, 1))
            return HF_NO_MEMORY;
        hf_holds_set(holds, ordinal, position);
    }
    return HF_OK;
}

enum hf_status hf_walk_apply(struct hf_journal *j, uint64_t position,
                             const struct hf_batch_head *head, const unsigned char *data,
                             bool holds_only)
{
    struct hf_entry_view entry;
    for (uint32_t at = hf_batch_head_size(head->version); at < head->length; at += entry.size) {
        if (!hf_entry_parse(data + at, head->length - at, &entry))
            return HF_STORE_DAMAGED;
        enum hf_status st = holds_only ? holds_note(&j->tables.holds, &entry, position + at)
                                       : hf_tables_apply(&j->tables, &entry, position + at, true);
        hf_rows_bury(&j->tables.rows);
        if (st != HF_OK)
            return st;
        j->stats.recovery_replayed += !holds_only;
    }
    return HF_OK;
}

/* ---- After the end ---- */

enum { CLEAR_STEP = 64 * HF_BLOCK };
static const unsigned char zeros[CLEAR_STEP];

/* Is there anything but zeros? Unreadable bytes count: writing may repair them. */
static bool is_dirty(struct hf_journal *j, const struct hf_segment *g, uint64_t at, size_t size)
{
    return j->io->touch(g->source, g->data, at, size) != 0 ||
           memcmp(g->data + at, zeros, size) != 0;
}

/* Clear `size` bytes at `at`, if not zeros. *wrote: set if something was written. */
static int clear(struct hf_journal *j, struct hf_segment *g, uint64_t at, size_t size, bool *wrote)
{
    if (!is_dirty(j, g, at, size))
        return 0;
    int error = hf_segments_open_writer(&j->segments, g);
    *wrote = true;
    return error ? error : j->io->write(g->writer, zeros, size, at);
}

/* Clear the sector where the next batch can begin: the header of a torn batch goes first,
 * separately, so that an interrupted clearing cannot complete a batch. */
static int sector_clear(struct hf_journal *j, uint64_t position)
{
    struct hf_segment *g = hf_segments_at(&j->segments, position);
    bool wrote = false;
    int error = !g || g->state == HF_SEGMENT_PACKED ? 0 : hf_segments_reach(&j->segments, g);
    if (error || !g || !g->data)
        return error;
    error = clear(j, g, position - g->base, HF_SECTOR, &wrote);
    return error || !wrote ? error : j->io->sync(g->writer);
}

/* Clear a segment from `at` on. */
static int segment_clear(struct hf_journal *j, struct hf_segment *g, uint64_t at)
{
    bool wrote = false;
    int error = hf_segments_reach(&j->segments, g);
    while (!error && at < g->size) {
        size_t size = g->size - at < CLEAR_STEP ? (size_t)(g->size - at) : CLEAR_STEP;
        error = clear(j, g, at, size, &wrote);
        at += size;
    }
    return error || !wrote ? error : j->io->sync(g->writer);
}

int hf_tail_clear(struct hf_journal *j)
{
    struct hf_segments *s = &j->segments;
    const struct hf_segment *g = hf_segments_at(s, j->end);
    if (!g)
        return 0;
    bool begins = j->end == g->base;
    int error = begins ? 0 : sector_clear(j, j->end);
    if (!error)
        error = sector_clear(j, begins ? g->base + HF_BLOCK : g->base + g->size + HF_BLOCK);
    for (size_t i = 0; !error && i < s->count; i++) {
        struct hf_segment *at = &s->list[i];
        hf_segments_tick(s);
        if (at->base + at->size <= j->end || at->state == HF_SEGMENT_PACKED)
            continue;
        error = segment_clear(j, at, at->base >= j->end ? 0 : j->end - at->base);
    }
    return error;
}

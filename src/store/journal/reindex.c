/* Rebuilds parts of holds.idx, at a start for a moment and then in the background: reads the
 * journal from its beginning to where the file is up to date, in small steps, and notes the newest
 * position of each hold of these parts. The positions are usable only at the end: until then an
 * older record of a hold looks like the newest. */
#include "base/bytes.h"
#include "store/journal/maintain.h"

#include <errno.h>
#include <stdlib.h>

enum {
    PARTS_MAX = 65536, /* rebuilt in one pass: 33 million holds, which take 256 MiB meanwhile */
    PARTS_MANY = 8,    /* from so many on, they are neighbours */
    STEP_BYTES = 256 << 10, /* of the journal in a step */
    STEP_PARTS = 16,        /* put into the tables in a step */
};
#define AGAIN_NS UINT64_C(60000000000) /* after damage in the journal */
#define SOON_NS UINT64_C(1000000000)   /* after a temporary error */

struct mending {
    uint64_t part;
    uint64_t positions[HF_INDEX_ENTRIES];
};

struct hf_reindexing {
    uint64_t position, sequence;  /* of the next batch */
    uint64_t stop, stop_sequence; /* where to stop, and the sequence of the batch there */
    struct mending *list;         /* owned; in the order of their numbers */
    size_t count, done;           /* done: number that are in the tables */
};

void hf_journal_index_note(struct hf_journal *j, uint64_t p)
{
    unsigned long long first = (p - 1) * HF_INDEX_ENTRIES + 1;
    hf_journal_note(j, 1,
                    "holds.idx is damaged at byte %llu: holds number %llu to %llu cannot "
                    "be read from it; the store searches for them in the journal",
                    (unsigned long long)j->tables.holds.bad_at, first,
                    first + HF_INDEX_ENTRIES - 1);
    j->stats.index_rebuilds++;
}

bool hf_journal_hold_awaited(const struct hf_journal *j, uint64_t ordinal, int error)
{
    const struct hf_holds *h = &j->tables.holds;
    uint64_t b = hf_index_part_of(ordinal), position;
    if (hf_journal_short(error))
        return true;
    return !j->reindex_lost && b > 0 && b <= h->parts && h->sums[b - 1] >= HF_INDEX_MENDING &&
           !hf_holds_remembers(h, ordinal, &position);
}

void hf_reindex_drop(struct hf_journal *j)
{
    struct hf_reindexing *r = j->reindexing;
    if (!r)
        return;
    for (size_t i = r->done; i < r->count; i++) {
        j->tables.holds.sums[r->list[i].part - 1] = HF_INDEX_BAD;
        j->tables.holds.bad++;
    }
    free(r->list);
    free(r);
    j->reindexing = NULL;
}

static void give_up(struct hf_journal *j, uint64_t wait_ns)
{
    hf_reindex_drop(j);
    j->reindex_at_ns = j->io->monotonic_ns(j->io->ctx) + wait_ns;
}

static void begin(struct hf_journal *j)
{
    struct hf_holds *h = &j->tables.holds;
    struct hf_reindexing *r = calloc(1, sizeof *r);
    size_t count = h->bad < PARTS_MAX ? h->bad : PARTS_MAX;
    struct mending *list = calloc(count, sizeof *list);
    while (!list && count > 1) {
        count /= 2; /* the others follow after these */
        list = calloc(count, sizeof *list);
    }
    if (!r || !list) {
        free(r);
        free(list);
        j->reindex_at_ns = j->io->monotonic_ns(j->io->ctx) + SOON_NS;
        return;
    }
    *r = (struct hf_reindexing){ .position = HF_BLOCK,
                                 .sequence = 1,
                                 .stop = h->covers,
                                 .stop_sequence = h->next_sequence,
                                 .list = list };
    for (size_t b = 1; b <= h->parts && r->count < count; b++) {
        if (h->sums[b - 1] != HF_INDEX_BAD)
            continue;
        h->sums[b - 1] = HF_INDEX_MENDING;
        h->bad--;
        r->list[r->count++].part = b;
    }
    j->reindexing = r;
}

static struct mending *mending_find(struct hf_reindexing *r, uint64_t part)
{
    size_t lo = 0, hi = r->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->list[mid].part < part)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->count && r->list[lo].part == part ? &r->list[lo] : NULL;
}

/* Note the positions of the holds in the entry at `position`. */
static void entry_note(struct hf_journal *j, const struct hf_entry_view *entry, uint64_t position)
{
    struct hf_holds *h = &j->tables.holds;
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    while (hf_image_next(&rows, &image)) {
        if (image.kind != HF_ROW_HOLD || image.bytes.size < 8)
            continue;
        uint64_t ordinal = hf_get64(image.bytes.data), b = hf_index_part_of(ordinal);
        if (ordinal == 0 || b > h->parts || h->sums[b - 1] != HF_INDEX_MENDING)
            continue;
        struct mending *m = mending_find(j->reindexing, b);
        if (m)
            m->positions[(ordinal - 1) % HF_INDEX_ENTRIES] = position;
    }
}

/* The next batch, here or at the beginning of the next segment. -ENOENT: none before the end. */
static int batch_next(struct hf_journal *j, const unsigned char **data, struct hf_batch_head *head)
{
    struct hf_reindexing *r = j->reindexing;
    const struct hf_segment *g = hf_segments_at(&j->segments, r->position);
    if (!g)
        return -ENOENT;
    uint64_t places[2] = { r->position, r->position == g->base ? g->base + HF_BLOCK
                                                               : g->base + g->size + HF_BLOCK };
    for (size_t i = 0; i < 2 && places[i] < r->stop; i++) {
        int error = hf_journal_batch(j, places[i], false, data, head);
        if (error && error != -EBADMSG)
            return error;
        if (error || head->sequence != r->sequence)
            continue;
        r->position = places[i];
        return 0;
    }
    return -ENOENT;
}

/* 0 or a negative errno; -EBADMSG: the batch is damaged. */
static int batch_note(struct hf_journal *j, const unsigned char *data,
                      const struct hf_batch_head *head)
{
    uint32_t entries = 0;
    struct hf_entry_view entry;
    for (uint32_t at = hf_batch_head_size(head->version); at < head->length;
         at += entry.size, entries++) {
        if (!hf_entry_decode(data + at, head->length - at, &entry))
            return -EBADMSG;
        entry_note(j, &entry, j->reindexing->position + at);
    }
    return entries == head->count ? 0 : -EBADMSG;
}

/* Put the holds of one part into the tables, until the next snapshot writes the part. False if one
 * of them was not found in the journal, or if out of memory. */
static bool mending_end(struct hf_journal *j, const struct mending *m, bool *no_memory)
{
    struct hf_holds *h = &j->tables.holds;
    uint64_t first = (m->part - 1) * HF_INDEX_ENTRIES + 1, position;
    *no_memory = false;
    for (size_t i = 0; i < HF_INDEX_ENTRIES && first + i <= h->covered; i++) {
        if (hf_holds_remembers(h, first + i, &position))
            continue;
        *no_memory = m->positions[i] != 0 &&
                     !(j->reindexing->count >= PARTS_MANY ? hf_holds_reserve_many(h, first + i)
                                                          : hf_holds_reserve(h, first + i, 1));
        if (m->positions[i] == 0 || *no_memory)
            return false;
        hf_holds_set(h, first + i, m->positions[i]);
    }
    h->sums[m->part - 1] = HF_INDEX_BLANK;
    return true;
}

static void lost(struct hf_journal *j)
{
    hf_journal_note(j, 1,
                    "holds.idx cannot be rebuilt: the journal cannot be read at position "
                    "%llu. Some holds stay unreadable. Run `holdfast audit`",
                    (unsigned long long)j->reindexing->position);
    j->reindex_lost = true;
    give_up(j, AGAIN_NS);
}

static void put_step(struct hf_journal *j)
{
    struct hf_reindexing *r = j->reindexing;
    if (r->sequence != r->stop_sequence) {
        lost(j);
        return;
    }
    for (size_t i = 0; i < STEP_PARTS && r->done < r->count; i++) {
        bool no_memory;
        if (mending_end(j, &r->list[r->done], &no_memory)) {
            r->done++;
        } else if (no_memory) {
            give_up(j, SOON_NS);
            return;
        } else {
            lost(j);
            return;
        }
    }
    if (r->done < r->count)
        return;
    hf_journal_note(j, 0, "holds.idx: %zu of its parts were rebuilt from the journal", r->count);
    j->index_old = true;
    j->reindex_lost = false;
    hf_reindex_drop(j);
}

bool hf_reindex_step(struct hf_journal *j)
{
    struct hf_batch_head head;
    const unsigned char *data;
    if (!j->reindexing && j->tables.holds.bad > 0 &&
        j->io->monotonic_ns(j->io->ctx) >= j->reindex_at_ns)
        begin(j);
    struct hf_reindexing *r = j->reindexing;
    if (!r)
        return false;
    for (uint64_t from = r->position; r->position < from + STEP_BYTES;) {
        int error = batch_next(j, &data, &head);
        if (error == -ENOENT) {
            put_step(j);
            return true;
        }
        if (!error)
            error = batch_note(j, data, &head);
        if (error == -EBADMSG)
            lost(j);
        else if (error)
            give_up(j, SOON_NS);
        if (error)
            return false;
        r->sequence = head.sequence + 1;
        r->position = hf_block_up(r->position + head.length);
    }
    return true;
}

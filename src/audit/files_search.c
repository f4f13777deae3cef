/* The next segment, and the next whole batch after damage. */
#include "audit/directory.h"
#include "audit/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void hf_files_unopened(struct hf_files *r, enum hf_audit_opened got,
                       const struct hf_audit_segment *seg, uint32_t version)
{
    if (got == HF_AUDIT_IO) {
        r->open_error = errno;
        memcpy(r->open_name, seg->name, sizeof r->open_name);
    }
    if (got == HF_AUDIT_NEWER && !r->newer) {
        r->newer = version;
        memcpy(r->newer_name, seg->name, sizeof r->newer_name);
    }
}

bool hf_files_walked_add(struct hf_files *r, const struct hf_audit_segment *seg, uint64_t base)
{
    if (seg->number <= r->walked_count)
        return true;
    if (r->walked_count == r->walked_room) {
        size_t room = r->walked_room ? r->walked_room * 2 : 64;
        struct hf_files_walked *more = realloc(r->walked, room * sizeof *more);
        if (!more)
            return false;
        r->walked = more;
        r->walked_room = room;
    }
    r->walked[r->walked_count++] = (struct hf_files_walked){ base, seg->size };
    r->reader.journal.segments += seg->fd >= 0;
    r->reader.journal.packed += seg->fd >= 0 && seg->packed;
    return true;
}

enum hf_audit_opened hf_files_segment_enter(struct hf_files *r, uint64_t number, uint32_t *version)
{
    struct hf_audit_segment seg;
    enum hf_audit_opened got = hf_audit_segment_open(r->dir, number, &seg, version);
    hf_files_unopened(r, got, &seg, *version);
    if (got == HF_AUDIT_OPENED && seg.head_good && !hf_files_note_fits(r, &seg.head)) {
        seg.head_good = seg.head_dirty = false; /* of another store, or a client's bytes */
        seg.size = seg.packed ? seg.size : seg.file_size - seg.file_size % HF_AUDIT_BLOCK;
    }
    hf_audit_segment_close(&r->seg);
    r->seg = seg;
    return got;
}

bool hf_files_segment_renewed(struct hf_files *r)
{
    uint32_t version;
    if (r->seg.fd >= 0 && !hf_audit_segment_stale(&r->seg))
        return false;
    return hf_files_segment_enter(r, r->seg.number, &version) == HF_AUDIT_OPENED;
}

enum hf_files_ahead hf_files_next_segment_try(struct hf_files *r, struct hf_error *why)
{
    struct hf_audit_segment seg;
    uint32_t version = 0;
    uint64_t base = r->base + r->seg.size;
    switch (hf_audit_segment_open(r->dir, r->seg.number + 1, &seg, &version)) {
    case HF_AUDIT_OPENED: break;
    case HF_AUDIT_MISSING: return HF_FILES_AHEAD_NOTHING;
    case HF_AUDIT_BAD_PACK: return HF_FILES_AHEAD_BAD;
    case HF_AUDIT_NEWER: hf_files_fail_newer(why, seg.name, version); return HF_FILES_AHEAD_FAILED;
    case HF_AUDIT_IO: hf_files_fail_io(why, seg.name); return HF_FILES_AHEAD_FAILED;
    }
    if (!hf_files_head_belongs(r, &seg, base) ||
        !hf_files_batch_at(r, &seg, base, HF_AUDIT_BLOCK, r->next_sequence) ||
        r->head.sequence != r->next_sequence) {
        hf_audit_segment_close(&seg);
        return HF_FILES_AHEAD_NOTHING;
    }
    if (!hf_files_walked_add(r, &seg, base)) {
        hf_audit_segment_close(&seg);
        hf_files_fail_memory(why);
        return HF_FILES_AHEAD_FAILED;
    }
    hf_audit_segment_close(&r->seg);
    r->seg = seg;
    r->base = base;
    r->offset = HF_AUDIT_BLOCK;
    return HF_FILES_AHEAD_TAKEN;
}

/* ---- Sealed headers, wherever they are ---- */

/* May a crash have left the header of the wanted batch at `position`, or there the header of the
 * segment that the batch begins? */
static bool is_place_of_next(const struct hf_files *r, uint64_t position)
{
    uint64_t next = r->base + r->seg.size;
    return position == r->base + r->offset || position == next ||
           position == next + HF_AUDIT_BLOCK ||
           (r->offset == HF_AUDIT_BLOCK && position == r->base);
}

/* Is there a sealed header in the segment, from `offset` up to `end`, that proves more than was
 * read? Only the store can have made it, when all batches before it were durable. */
static bool segment_proves(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                           uint64_t offset, uint64_t end)
{
    enum { PIECE = 16 * HF_AUDIT_BLOCK };
    unsigned char piece[PIECE];
    for (; (offset = hf_audit_segment_skip(seg, offset)) < end; offset += PIECE - offset % PIECE) {
        size_t size = PIECE - (size_t)(offset % PIECE);
        if (end - offset < size)
            size = (size_t)(end - offset);
        if (!hf_audit_segment_read(seg, offset, piece, size))
            continue;
        for (size_t at = 0; at < size; at += HF_AUDIT_SECTOR) {
            uint64_t here = base + offset + at, position;
            uint64_t sequence = hf_audit_sealed_sequence(piece + at, &r->seal, &position);
            if (sequence > r->next_sequence ||
                (sequence == r->next_sequence && (position != here || !is_place_of_next(r, here))))
                return true;
        }
    }
    return false;
}

/* The same in a segment from the newest snapshot's start on, and in its first block. */
static bool searched_proves(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                            uint64_t end)
{
    uint64_t start = r->snapshot.found ? r->snapshot.start : 0;
    uint64_t from = start > base ? (start - base) / HF_AUDIT_BLOCK * HF_AUDIT_BLOCK : 0;
    if (!r->seal_known || base + seg->size <= start)
        return false;
    return (from > 0 && segment_proves(r, seg, base, 0, HF_AUDIT_BLOCK)) ||
           segment_proves(r, seg, base, from, end);
}

/* Is there such a header in what has been read, from the newest snapshot's start on? */
static bool read_proves(struct hf_files *r)
{
    uint64_t start = r->snapshot.found ? r->snapshot.start : 0;
    if (!r->seal_known)
        return false;
    if (r->seg.fd >= 0 && searched_proves(r, &r->seg, r->base, r->offset))
        return true;
    for (size_t n = r->seg.number - 1; n > 0 && n <= r->walked_count; n--) {
        const struct hf_files_walked *w = &r->walked[n - 1];
        struct hf_audit_segment seg;
        uint32_t version = 0;
        if (w->base + w->size <= start)
            return false;
        enum hf_audit_opened got = hf_audit_segment_open(r->dir, n, &seg, &version);
        hf_files_unopened(r, got, &seg, version);
        if (got != HF_AUDIT_OPENED)
            continue;
        bool proves = searched_proves(r, &seg, w->base, seg.size);
        if (seg.io_error) {
            r->io_error = seg.io_error;
            memcpy(r->open_name, seg.name, sizeof r->open_name);
        }
        hf_audit_segment_close(&seg);
        if (proves)
            return true;
    }
    return false;
}

/* ---- Batches ---- */

/* Is there a batch of sequence `lowest` or more? whole: all of it. If not, its header is enough if
 * that is sealed. */
static bool batch_counts(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                         uint64_t offset, uint64_t lowest, bool whole)
{
    enum hf_audit_batch_state state = hf_audit_batch_read(
        seg, base, offset, r->seal_known ? &r->seal : NULL, &r->head, &r->bytes);
    if (r->bytes.failed) {
        r->open_error = ENOMEM;
        return false;
    }
    /* A read error does not mean that the batch was cut short. */
    bool sealed =
        state == HF_AUDIT_BATCH_CUT && r->seal_known && r->head.version > 1 && seg->io_error == 0;
    return (state == HF_AUDIT_BATCH_WHOLE || (sealed && !whole)) && r->head.sequence >= lowest;
}

/* A batch with sequence `lowest` or higher in the segment, from `offset` on. whole: as above. */
static bool segment_search(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                           uint64_t offset, uint64_t lowest, bool whole,
                           struct hf_files_place *found)
{
    for (; (offset = hf_audit_segment_skip(seg, offset)) < seg->size; offset += HF_AUDIT_BLOCK) {
        if (!batch_counts(r, seg, base, offset, lowest, whole))
            continue;
        *found = (struct hf_files_place){ .segment = seg->number, .offset = offset };
        found->sequence = r->head.sequence;
        memcpy(found->file, seg->name, sizeof found->file);
        return true;
    }
    return false;
}

/* Does the segment's header say that its first batch has sequence `lowest` or higher? The header
 * was written together with that batch. */
static bool head_counts(const struct hf_files *r, const struct hf_audit_segment *seg, uint64_t base,
                        uint64_t lowest)
{
    return hf_files_head_belongs(r, seg, base) && seg->head.first_sequence >= lowest;
}

/* As hf_files_journal_search. whole: a header alone is not enough. */
static bool search(struct hf_files *r, uint64_t lowest, bool whole, struct hf_files_place *found)
{
    uint64_t base = r->base;
    uint64_t size = r->seg.size;
    /* In version 1, and without the key, a right header has the length of its batch: the bytes
     * inside belong to that batch. */
    uint64_t torn = hf_files_torn_bytes(r);
    uint64_t from =
        r->offset + (r->seal_known && r->head.version > 1 ? 0 : hf_files_block_up(torn));
    if (!whole && r->seg.fd >= 0 && r->seal_known &&
        segment_proves(r, &r->seg, base, r->offset, r->seg.size))
        return true;
    if (!whole && r->seg.fd >= 0 && r->offset == HF_AUDIT_BLOCK &&
        head_counts(r, &r->seg, base, lowest))
        return true;
    if (r->seg.fd >= 0 && segment_search(r, &r->seg, base, from, lowest, whole, found))
        return true;
    hf_files_look_again(r);
    for (uint64_t n = r->seg.number + 1; n <= r->last_segment; n++) {
        struct hf_audit_segment seg;
        uint32_t version = 0;
        base += size;
        size = 0;
        enum hf_audit_opened got_open = hf_audit_segment_open(r->dir, n, &seg, &version);
        hf_files_unopened(r, got_open, &seg, version);
        if (got_open == HF_AUDIT_MISSING) { /* perhaps millions of segments are missing */
            uint64_t next = hf_audit_directory_next(r->dir, n);
            if (next == 0)
                break;
            n = next - 1;
        }
        if (got_open != HF_AUDIT_OPENED)
            continue;
        size = seg.size;
        if (seg.head_good)
            base = seg.head.base;
        bool got = (!whole && head_counts(r, &seg, base, lowest)) ||
                   (!whole && searched_proves(r, &seg, base, seg.size)) ||
                   segment_search(r, &seg, base, HF_AUDIT_BLOCK, lowest, whole, found);
        if (seg.io_error) {
            r->io_error = seg.io_error;
            memcpy(r->open_name, seg.name, sizeof r->open_name);
        }
        hf_audit_segment_close(&seg);
        if (got)
            return true;
    }
    return false;
}

bool hf_files_journal_search(struct hf_files *r, uint64_t lowest, struct hf_files_place *found)
{
    return search(r, lowest, true, found);
}

/* Is the next batch the first of a segment, and whole, but the segment's header is wrong? From
 * version 2 on the header is durable before that batch is written. */
static bool lost_its_header(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base)
{
    return seg->fd >= 0 && !seg->head_good &&
           hf_files_batch_at(r, seg, base, HF_AUDIT_BLOCK, r->next_sequence) &&
           r->head.sequence == r->next_sequence && r->head.version > 1;
}

static bool header_is_lost(struct hf_files *r)
{
    struct hf_audit_segment seg;
    uint32_t version = 0;
    if (r->offset == HF_AUDIT_BLOCK && lost_its_header(r, &r->seg, r->base))
        return true;
    enum hf_audit_opened got = hf_audit_segment_open(r->dir, r->seg.number + 1, &seg, &version);
    hf_files_unopened(r, got, &seg, version);
    if (got != HF_AUDIT_OPENED)
        return false;
    bool lost = lost_its_header(r, &seg, r->base + r->seg.size);
    hf_audit_segment_close(&seg);
    return lost;
}

bool hf_files_journal_goes_on(struct hf_files *r)
{
    struct hf_files_place found;
    /* What follows goes first: of a store at work, it is there soon. */
    return search(r, r->next_sequence + 1, false, &found) || header_is_lost(r) || read_proves(r);
}

static const char *what_is_wrong(struct hf_files *r)
{
    unsigned char first;
    if (r->seg.fd < 0)
        return "the segment's file is missing or cannot be read";
    if (!r->seg.head_good)
        return "the segment's header is not right";
    if (!hf_audit_segment_read(&r->seg, r->offset, &first, 1))
        return "the file ends here, or its compressed frame is damaged";
    switch (hf_files_look_here(r)) {
    case HF_AUDIT_BATCH_NONE: return "there is no batch";
    case HF_AUDIT_BATCH_UNSEALED: return "the batch's header is damaged";
    case HF_AUDIT_BATCH_CUT: return "the batch's entries do not match its header";
    default: return "there is a batch with another position or sequence";
    }
}

enum hf_audit_step hf_files_damage_note(struct hf_files *r)
{
    struct hf_audit_damage *d = &r->reader.damage;
    *d = (struct hf_audit_damage){ .offset = r->offset,
                                   .sequence = r->next_sequence,
                                   .what = what_is_wrong(r) };
    memcpy(d->file, r->seg.name, sizeof d->file);
    r->finished = !hf_files_journal_search(r, r->next_sequence, &r->found);
    if (r->finished)
        return HF_AUDIT_DAMAGE;
    r->resume = true;
    d->found_sequence = r->found.sequence;
    d->found_offset = r->found.offset;
    memcpy(d->found_file, r->found.file, sizeof d->found_file);
    if (r->found.sequence == r->next_sequence && r->found.offset == HF_AUDIT_BLOCK) {
        memcpy(d->file, r->found.file, sizeof d->file);
        d->offset = 0;
        d->what = "the segment's header is not right";
    }
    return HF_AUDIT_DAMAGE;
}

enum hf_audit_step hf_files_bad_pack_note(struct hf_files *r)
{
    enum hf_audit_step step = hf_files_damage_note(r);
    snprintf(r->reader.damage.file, sizeof r->reader.damage.file, "journal-%08llu.zst",
             (unsigned long long)r->seg.number + 1);
    r->reader.damage.offset = 0;
    r->reader.damage.what = "the compressed segment's own header or frame table is damaged";
    return step;
}

bool hf_files_resume_there(struct hf_files *r)
{
    uint32_t version;
    while (r->seg.number < r->found.segment) {
        r->base += r->seg.size;
        if (hf_files_segment_enter(r, r->seg.number + 1, &version) == HF_AUDIT_OPENED &&
            r->seg.head_good)
            r->base = r->seg.head.base;
        if (!hf_files_walked_add(r, &r->seg, r->base))
            return false;
    }
    if (r->found.sequence != r->next_sequence) {
        r->gap = true;
        r->chain_known = false;
    }
    r->next_sequence = r->found.sequence;
    r->offset = r->found.offset;
    r->resume = false;
    r->headless = true;
    return true;
}

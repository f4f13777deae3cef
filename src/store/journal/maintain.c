#include "store/journal/maintain.h"

#include "base/bug.h"
#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    SWEEP_STEP = 256,     /* overdue holds a step */
    EXPIRE_STEP = 4096,   /* tokens or entries looked at a step */
    PREPARE_AT = 4,       /* prepare the next segment when 1/4 of this one is used */
    RETRY_NS = 1000000000 /* after a failure */
};

/* ---- Expiry of what is in memory ---- */

/* What is over at this time may be forgotten. A snapshot that is being written must not miss what is not over at the time
 * that it brings back. */
static hf_time forget_until(struct hf_journal *j)
{
    return j->snapshotting ? hf_snapshot_now(j) : hf_journal_now(j);
}

/* The position of the batch behind one that ends at `end`: there, or in the next segment. */
static uint64_t next_batch(struct hf_journal *j, uint64_t end)
{
    struct hf_batch_head head;
    const unsigned char *data;
    /* Deep: a batch that a crash cut short may have left a good header where the next one did not fit. And what cannot
     * be read at the moment is not passed over. */
    if (end >= j->durable || hf_journal_batch(j, end, true, &data, &head) != -EBADMSG)
        return end;
    const struct hf_segment *g = hf_segments_at(&j->segments, end);
    /* At a segment's very end, `end` is the next segment's first byte. */
    uint64_t next = g && end == g->base ? end : g ? g->base + g->size : end;
    return next + HF_BLOCK;
}

static void token_remove(struct hf_journal *j, const struct hf_entry_view *entry, uint64_t position)
{
    struct hf_tables *t = &j->tables;
    uint64_t hash = hf_tables_hash(t, (struct hf_scoped){ entry->head.tenant, entry->head.key });
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&t->tokens, hash, s)) != NULL;) {
        if (s->value == position) {
            hf_map64_remove(&t->tokens, s);
            return;
        }
    }
}

size_t hf_journal_expire_tokens(struct hf_journal *j, size_t max)
{
    hf_time now = forget_until(j);
    size_t freed = 0, looked = 0;
    while (looked < max) {
        struct hf_batch_head head;
        const unsigned char *data;
        if (j->token_cursor_entry == 0)
            j->token_cursor = next_batch(j, j->token_cursor);
        if (j->token_cursor >= j->durable || hf_journal_batch(j, j->token_cursor, false, &data, &head) != 0)
            break;
        uint32_t at = j->token_cursor_entry ? j->token_cursor_entry : HF_BATCH_HEAD;
        while (at < head.length && looked < max) {
            struct hf_entry_view entry;
            if (!hf_entry_parse(data + at, head.length - at, &entry))
                return freed;
            if (entry.head.remember == HF_REMEMBER_KEY) {
                hf_time early =
                    HF_BUG(tokens_freed_early) ? (entry.head.expires_at - entry.head.recorded_at) / 4 : 0;
                if (entry.head.expires_at > now + early) {
                    j->token_cursor_entry = at;
                    return freed;
                }
                token_remove(j, &entry, j->token_cursor + at);
                freed++;
            }
            looked++;
            at += entry.size;
        }
        j->token_cursor_entry = at;
        if (at >= head.length) {
            j->token_cursor = hf_block_up(j->token_cursor + head.length);
            j->token_cursor_entry = 0;
        }
    }
    return freed;
}

static size_t expire_entries(struct hf_journal *j)
{
    struct hf_rows *rows = &j->tables.rows;
    hf_time now = forget_until(j);
    size_t freed = 0;
    for (size_t i = rows->guards.start; i < rows->guards.end && freed < EXPIRE_STEP; i++)
        freed += hf_rows_expire_entries(rows, rows->guards.items[i].node,
                                        now + 1000 * HF_BUG(entry_freed_early), EXPIRE_STEP - freed);
    hf_rows_bury(rows);
    return freed;
}

/* Has the row been forgotten by the rules: a claim whose window has closed, an identity not seen any more? */
static bool row_is_over(const struct hf_node *n, hf_time now)
{
    enum { CLAIM_EXPIRES_AT = 42 };
    if (n->kind == HF_ROW_ENTRY)
        return hf_node_entry_expiry(n) <= now;
    if (n->kind != HF_ROW_CLAIM)
        return false;
    hf_time expires = (hf_time)hf_get64((const unsigned char *)hf_node_image(n).data + CLAIM_EXPIRES_AT);
    return expires != 0 && expires <= now;
}

/* Look through one part of the row table for rows that are over: claims, which leave in no order, and entries
 * that were recorded under a shorter window than some before them. */
static void expire_rows(struct hf_journal *j)
{
    struct hf_rows *rows = &j->tables.rows;
    if (rows->count[HF_ROW_CLAIM] + rows->count[HF_ROW_ENTRY] == 0)
        return;
    hf_time now = forget_until(j);
    j->row_cursor = (j->row_cursor + 1) % hf_map64_parts(&rows->map);
    const struct hf_map_part *part = &rows->map.parts[j->row_cursor];
    for (uint32_t i = 0; i < part->room; i++) {
        struct hf_node *n = (struct hf_node *)(uintptr_t)part->slots[i].value;
        if (n && row_is_over(n, now)) {
            hf_rows_erase(rows, n);
            i = UINT32_MAX; /* the part may have moved: look through it again */
        }
    }
    hf_rows_bury(rows);
}

/* ---- Segments ---- */

static size_t prepared_count(const struct hf_journal *j)
{
    size_t n = 0;
    while (n < j->segments.count && j->segments.list[j->segments.count - 1 - n].state == HF_SEGMENT_PREPARED)
        n++;
    return n;
}

static bool prepare_wanted(const struct hf_journal *j)
{
    size_t prepared = prepared_count(j);
    if (prepared > 0)
        return false;
    if (j->active == 0 || j->segment_wanted)
        return true;
    const struct hf_segment *g = &j->segments.list[j->segments.count - 1];
    return j->end - g->base >= g->size / PREPARE_AT;
}

static void prepare_failed(struct hf_journal *j, int error)
{
    if (!j->out_of_space)
        hf_journal_note(
            j, 1, "cannot prepare the next journal segment: %s; new writes are refused once this one is full",
            strerror(-error));
    j->out_of_space = true;
    j->retry_at_ns = j->io->monotonic_ns(j->io->ctx) + RETRY_NS;
}

static void lock_leave(const struct hf_lock *lock)
{
    if (lock)
        lock->unlock(lock->arg);
}

static void lock_enter(const struct hf_lock *lock)
{
    if (lock)
        lock->lock(lock->arg);
}

static bool no_room(int error)
{
    return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* One step of making the next segment. *done: it is there. */
static int prepare_step(struct hf_journal *j, const struct hf_lock *lock, bool *done)
{
    struct hf_segments *s = &j->segments;
    struct hf_preparing *p = &j->preparing;
    const struct hf_segment *last = s->count ? &s->list[s->count - 1] : NULL;
    struct hf_segment_head head = { .number = last ? last->number + 1 : 1,
                                    .base = last ? last->base + last->size : 0,
                                    .size = hf_segments_next_size(s, last ? last->size : 0) };
    lock_leave(lock);
    int error = p->file ? 0 : hf_prepare_begin(s, head.number, head.size, p);
    if (!error)
        error = hf_prepare_step(s, p);
    *done = !error && p->filled == p->size;
    if (*done)
        error = hf_prepare_name(s, p);
    lock_enter(lock);
    if (!error && *done) {
        struct hf_file *file = p->file;
        *p = (struct hf_preparing){ 0 };
        error = hf_segments_add(s, &head, HF_SEGMENT_PREPARED, file);
        if (j->out_of_space)
            hf_journal_note(j, 0, "there is room for the next journal segment again: new writes are taken");
        j->out_of_space = j->segment_wanted = false;
        s->size_fits = 0;
    }
    if (error) {
        hf_prepare_drop(s, p);
        *done = false;
        if (no_room(error) && hf_segments_smaller(s, head.size))
            return 0; /* try again with less */
        s->size_fits = 0;
        prepare_failed(j, error);
    }
    return error;
}

int hf_journal_prepare(struct hf_journal *j, const struct hf_lock *lock)
{
    bool done = false;
    int error = 0;
    while (!error && !done)
        error = prepare_step(j, lock, &done);
    return error;
}

/* ---- Getting rid of large files ----
 * Removing one at once keeps some disks busy with discarding for as long as a tenth of a second, and commits wait.
 * So it is cut off piece by piece first. */

void hf_journal_shed(struct hf_journal *j, const char *name, const char *as)
{
    struct hf_shedding *s = &j->shedding;
    if (s->file || j->io->rename(j->dir, name, as) != 0) {
        j->io->remove(j->dir, name);
        return;
    }
    /* Cut off only what surely has its new name: under the old one it would be taken for damage. */
    if (j->io->dir_sync(j->dir) != 0)
        return;
    if (j->io->open(j->dir, as, HF_OPEN_WRITE, &s->file) != 0) {
        s->file = NULL;
        j->io->remove(j->dir, as);
        return;
    }
    snprintf(s->name, sizeof s->name, "%s", as);
    if (j->io->size(s->file, &s->size) != 0)
        s->size = 0;
}

void hf_journal_shed_end(struct hf_journal *j)
{
    struct hf_shedding *s = &j->shedding;
    if (!s->file)
        return;
    j->io->close(s->file);
    s->file = NULL;
    j->io->remove(j->dir, s->name);
}

static void shed_step(struct hf_journal *j, const struct hf_lock *lock)
{
    enum { PIECE = 4 << 20 };
    struct hf_shedding *s = &j->shedding;
    lock_leave(lock);
    s->size = s->size > PIECE ? s->size - PIECE : 0;
    if (s->size == 0 || j->io->truncate(s->file, s->size) != 0)
        hf_journal_shed_end(j);
    lock_enter(lock);
}

/* ---- Compressing ---- */

static struct hf_segment *pack_candidate(struct hf_journal *j)
{
    if (j->keep_plain || j->is_memory || j->packing)
        return NULL;
    uint64_t before = j->token_cursor < j->snapshot_start ? j->token_cursor : j->snapshot_start;
    for (size_t i = 0; i < j->segments.count; i++) {
        struct hf_segment *g = &j->segments.list[i];
        if (g->base + g->size > before)
            return NULL;
        if (g->state == HF_SEGMENT_SEALED && !g->keep)
            return g;
    }
    return NULL;
}

/* The end of the last batch in the segment: what lies behind it is not worth keeping. 0 if not every batch up to
 * the next segment's first is there and whole: then what is left is kept as it is. */
static uint64_t used_bytes(struct hf_journal *j, const struct hf_segment *g)
{
    uint64_t at = g->base + HF_BLOCK, sequence = 0;
    struct hf_batch_head head;
    const unsigned char *data;
    while (at < g->base + g->size && hf_journal_batch(j, at, true, &data, &head) == 0 &&
           (sequence == 0 || head.sequence == sequence)) {
        sequence = head.sequence + 1;
        at = hf_block_up(at + head.length);
    }
    bool followed = hf_journal_batch(j, g->base + g->size + HF_BLOCK, true, &data, &head) == 0 &&
                    head.sequence == sequence;
    return followed ? at - g->base : 0;
}

/* Write the packed twin of the segment, without the lock. */
static int pack_write(struct hf_journal *j, const struct hf_segment_head *head, const unsigned char *data,
                      uint64_t used, struct hf_file **file)
{
    char tmp[HF_SEGMENT_NAME_SIZE], name[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(head->number, ".tmp", tmp);
    hf_segment_name(head->number, ".zst", name);
    int error = j->io->open(j->dir, tmp, HF_OPEN_CREATE, file);
    if (error)
        return error;
    error = hf_pack_write(j->io, *file, head, data, used);
    if (!error)
        error = j->io->rename(j->dir, tmp, name);
    if (!error)
        error = j->io->dir_sync(j->dir);
    if (error) {
        j->io->close(*file);
        j->io->remove(j->dir, tmp);
    }
    return error;
}

static void pack_step(struct hf_journal *j, struct hf_segment *g, const struct hf_lock *lock)
{
    struct hf_segment_head head = { .number = g->number, .base = g->base, .size = g->size };
    const unsigned char *data = g->data;
    uint64_t used = used_bytes(j, g);
    struct hf_file *file;
    struct hf_pack *pack = NULL;
    char name[HF_SEGMENT_NAME_SIZE], as[HF_SEGMENT_NAME_SIZE];
    size_t index = (size_t)(g - j->segments.list);
    if (used == 0) {
        hf_journal_note(j, 1, "journal segment %llu is damaged and is kept as it is; run audit",
                        (unsigned long long)g->number);
        g->keep = true;
        return;
    }
    j->packing = true;
    lock_leave(lock);
    int error = pack_write(j, &head, data, used, &file);
    if (!error) {
        error = hf_pack_open(j->io, file, &pack);
        if (error)
            j->io->close(file);
    }
    lock_enter(lock);
    j->packing = false;
    if (error) {
        hf_journal_note(j, 1, "cannot compress journal segment %llu: %s", (unsigned long long)head.number,
                        strerror(-error));
        j->retry_at_ns = j->io->monotonic_ns(j->io->ctx) + RETRY_NS;
        return;
    }
    g = &j->segments.list[index];
    struct hf_file *plain = g->file;
    g->data = NULL;
    g->file = file;
    g->pack = pack;
    g->state = HF_SEGMENT_PACKED;
    /* From here on nobody finds the plain bytes; getting rid of them takes its time. */
    lock_leave(lock);
    j->io->unmap(plain, data, head.size);
    j->io->close(plain);
    hf_segment_name(head.number, ".log", name);
    hf_segment_name(head.number, ".tmp", as);
    hf_journal_shed(j, name, as); /* if it stays, the next start finds both and removes the packed one */
    lock_enter(lock);
}

/* ---- All of it ---- */

/* A snapshot costs its size in writing, so the next one waits until as much journal has been written. */
static bool snapshot_due(const struct hf_journal *j)
{
    uint64_t written = j->end - j->snapshot_start;
    return written >= j->snapshot_every && written >= j->snapshot_bytes && !j->is_memory;
}

/* Give room back: a piece of an old file, or all that a segment takes too much while it is not compressed. */
static bool room_step(struct hf_journal *j, const struct hf_lock *lock, bool may_try)
{
    if (j->shedding.file) {
        shed_step(j, lock);
        return true;
    }
    struct hf_segment *g = may_try ? pack_candidate(j) : NULL;
    if (g)
        pack_step(j, g, lock);
    return g != NULL;
}

/* The slow work, one kind at a time: a snapshot, then getting rid of old files, then compressing. */
static bool slow_step(struct hf_journal *j, const struct hf_lock *lock, bool may_try)
{
    /* What gives room back goes first when there is none: a snapshot may need more than is left. */
    if (j->out_of_space && room_step(j, lock, may_try))
        return true;
    if (j->snapshotting)
        return hf_snapshot_step(j, lock);
    if (!j->snapshot_wanted && may_try && snapshot_due(j)) {
        j->snapshot_wanted = true;
        if (j->flight.size == 0)
            hf_snapshot_begin(j);
        return true;
    }
    return room_step(j, lock, may_try);
}

bool hf_journal_maintain(struct hf_journal *j, const struct hf_lock *lock)
{
    bool may_try = j->io->monotonic_ns(j->io->ctx) >= j->retry_at_ns;
    bool more = hf_journal_sweep(j, SWEEP_STEP) > 0, done;
    if (may_try && (j->preparing.file || prepare_wanted(j) || (j->out_of_space && prepared_count(j) == 0)))
        more |= prepare_step(j, lock, &done) == 0;
    expire_rows(j);
    more |= hf_journal_expire_tokens(j, EXPIRE_STEP) > 0;
    more |= expire_entries(j) > 0;
    /* Whoever waits for a segment waits for nothing else. */
    if (!j->segment_wanted || j->out_of_space)
        more |= slow_step(j, lock, may_try);
    return more;
}

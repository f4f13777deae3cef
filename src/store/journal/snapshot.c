/* Snapshots: the tables, written slice by slice while the store works (doc/FORMAT.md).
 *
 * Each step copies some parts of a table into a buffer under the lock, releases the lock and writes
 * the buffer. A step copies about SLICE bytes, which bounds the time that requests wait. */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "store/journal/maintain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* LOOK_MAX: slots of a table that one step looks at. */
enum {
    SLICE = 512 << 10,
    LOOK_MAX = 16384,
    SYNC_EVERY = 2 << 20,
    BLOCK_HEAD = 16,
    RETRY_NS = 1000000000
};

enum {
    BLOCK_HEADER = 1,
    BLOCK_TOKENS = 2,
    BLOCK_ROWS = 3,
    BLOCK_LIVE = 4,
    BLOCK_END = 5,
    BLOCK_INDEX = 6,
    BLOCK_OWNERS = 7,
    BLOCK_PASSED = 8
};

/* The phases of a snapshot, in this order. */
enum phase {
    PHASE_INDEX_TAKE,
    PHASE_INDEX_WRITE,
    PHASE_GUARDS,
    PHASE_INDEX_SUMS,
    PHASE_ROWS,
    PHASE_TOKENS,
    PHASE_LIVE,
    PHASE_END,
    PHASE_INDEX_FORGET
};

struct hf_snapshotting {
    enum phase phase;
    size_t part;
    uint64_t guard;       /* stamp: guards before it are copied */
    struct hf_file *file; /* owned */
    uint64_t at, synced;  /* bytes written, and before the last sync */
    uint64_t blocks;
    struct hf_sha256 sha;
    struct hf_buffer buffer, owners, passed;
    struct hf_snapshot_info info;
    uint64_t covered;       /* highest ordinal before start */
    uint64_t bad_part;      /* part of holds.idx that is wrong and had to be changed; 0: none */
    struct hf_moved *moved; /* owned */
    size_t moved_count, moved_room, forgotten;
    size_t fresh_at; /* for hf_holds_new_sum */
    bool closing;    /* the last table is copied; only writing remains */
    uint64_t end;    /* everything copied is from before this position */
    uint64_t highest_hold, highest_fence, highest_outbox; /* at that moment */
};

void hf_snapshot_name(uint64_t start, const char *suffix, char out[HF_SEGMENT_NAME_SIZE])
{
    snprintf(out, HF_SEGMENT_NAME_SIZE, "snapshot-%016llx%s", (unsigned long long)start, suffix);
}

/* Remove the file if it was not renamed yet. */
static void snapshotting_free(struct hf_journal *j)
{
    struct hf_snapshotting *s = j->snapshotting;
    char name[HF_SEGMENT_NAME_SIZE];
    if (s->file) {
        j->io->close(s->file);
        hf_snapshot_name(s->info.start, ".tmp", name);
        j->io->remove(j->dir, name);
    }
    hf_buffer_free(&s->buffer);
    hf_buffer_free(&s->owners);
    hf_buffer_free(&s->passed);
    free(s->moved);
    free(s);
    j->snapshotting = NULL;
}

hf_time hf_snapshot_now(const struct hf_journal *j)
{
    return j->snapshotting->info.now;
}

void hf_snapshot_drop(struct hf_journal *j)
{
    if (j->snapshotting)
        snapshotting_free(j);
}

static void add64(struct hf_buffer *b, uint64_t v)
{
    unsigned char p[8];
    hf_put64(p, v);
    hf_buffer_add(b, p, 8);
}

/* Count the keys of each tenant between the cursor and the snapshot's start: the tables also
 * contain those that are being gathered. If out of memory, there is no snapshot. */
static void owners_note(struct hf_journal *j, struct hf_buffer *out)
{
    struct hf_owners *o = &j->tables.rows.owners;
    const struct hf_batch *g = &j->gather;
    uint64_t *gathered = calloc(o->count, sizeof *gathered);
    struct hf_entry_view entry;
    for (size_t at = HF_BATCH_HEAD; gathered && at < g->size; at += entry.size) {
        bool parsed = hf_entry_parse(g->data + g->lead + at, g->size - at, &entry);
        HF_ASSERT(parsed);
        if (entry.head.remember == HF_REMEMBER_KEY)
            gathered[hf_owners_find(o, entry.head.tenant)]++;
    }
    for (uint32_t i = 0; gathered && i < o->count; i++) {
        const struct hf_owner *owner = &o->list[i];
        if (owner->tokens <= gathered[i])
            continue;
        hf_buffer_add(out, &owner->size, 1);
        hf_buffer_add(out, owner->name, owner->size);
        add64(out, owner->tokens - gathered[i]);
    }
    out->failed |= !gathered;
    free(gathered);
}

/* Ranges that the cursor has passed before the snapshot's start: their keys are counted. */
static void passed_note(const struct hf_journal *j, struct hf_buffer *out)
{
    for (size_t i = 0; i < j->passed_count; i++) {
        unsigned char entry[4];
        hf_put32(entry, j->passed[i].entry);
        add64(out, j->passed[i].position);
        add64(out, j->passed[i].end);
        hf_buffer_add(out, entry, sizeof entry);
    }
}

void hf_snapshot_begin(struct hf_journal *j)
{
    uint64_t start = j->gather.size ? j->gather.base : j->end;
    /* Rows from `start` on are left out because the journal has them. That works only if all stamps
     * are positions in the journal. */
    j->snapshot_wanted = start <= j->tables.rows.foreign;
    if (j->snapshot_wanted)
        return; /* after a later commit; only a snapshot of an older program has such stamps */
    struct hf_snapshotting *s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->info.start = start;
    s->info.next_sequence = j->next_sequence;
    /* Not only the time of the newest batch: rows that expired since then are already freed and are
     * not in it. */
    s->info.now = hf_journal_now(j);
    memcpy(s->info.chain, j->chain, HF_DIGEST_SIZE);
    s->info.token_cursor = j->token_cursor;
    s->info.token_cursor_entry = j->token_cursor_entry;
    owners_note(j, &s->owners);
    passed_note(j, &s->passed);
    s->covered = j->gather.size ? j->sealed_highest : j->tables.holds.highest;
    hf_sha256_init(&s->sha);
    j->snapshotting = s;
}

/* ---- Blocks ---- */

static size_t block_open(struct hf_buffer *b)
{
    static const unsigned char head[BLOCK_HEAD];
    hf_buffer_add(b, head, sizeof head);
    return b->size - BLOCK_HEAD;
}

static void block_close(struct hf_snapshotting *s, size_t at, uint32_t type, uint32_t count)
{
    struct hf_buffer *b = &s->buffer;
    if (b->failed)
        return;
    unsigned char *p = b->data + at;
    hf_put32(p, type);
    hf_put32(p + 4, (uint32_t)(b->size - at - BLOCK_HEAD));
    hf_put32(p + 8, count);
    uint32_t crc = hf_crc32c(0, p, 12);
    hf_put32(p + 12, hf_crc32c(crc, p + BLOCK_HEAD, b->size - at - BLOCK_HEAD));
    s->blocks++;
}

static void add_header(struct hf_journal *j, struct hf_snapshotting *s)
{
    struct hf_buffer *b = &s->buffer;
    size_t at = block_open(b);
    unsigned char version[8] = { HF_SNAPSHOT_VERSION };
    hf_buffer_add(b, "HOLDSNP1", 8);
    hf_buffer_add(b, version, 8);
    hf_buffer_add(b, j->keys.store_id, 16);
    add64(b, j->keys.table.k0);
    add64(b, j->keys.table.k1);
    add64(b, j->keys.id.k0);
    add64(b, j->keys.id.k1);
    add64(b, s->info.start);
    add64(b, s->info.next_sequence);
    add64(b, (uint64_t)s->info.now);
    hf_buffer_add(b, s->info.chain, HF_DIGEST_SIZE);
    add64(b, s->info.token_cursor);
    block_close(s, at, BLOCK_HEADER, 1);
}

/* Does replaying the journal from `start` make the row again, with its stamp? Then the snapshot
 * must not contain it: rows that are not in the snapshot would be listed after it. Resources,
 * guards and outbox rows never leave, and an identity that is recorded again is a new row; so the
 * stamp names the newest journal entry that made the row. */
static bool made_by_replay(const struct hf_node *n, uint64_t start)
{
    bool listed = n->kind == HF_ROW_RESOURCE || n->kind == HF_ROW_GUARD ||
                  n->kind == HF_ROW_ENTRY || n->kind == HF_ROW_OUTBOX;
    return listed && n->stamp >= start;
}

static void add_row(struct hf_buffer *b, const struct hf_node *n)
{
    struct hf_bytes tenant = hf_node_tenant(n);
    struct hf_bytes image = hf_node_image(n);
    unsigned char head[14] = { n->kind, (unsigned char)tenant.size };
    hf_put32(head + 2, (uint32_t)image.size);
    hf_put64(head + 6, n->stamp);
    hf_buffer_add(b, head, sizeof head);
    hf_buffer_add_bytes(b, tenant);
    hf_buffer_add_bytes(b, image);
    if (n->kind == HF_ROW_CLIENT)
        for (size_t i = 0; i < HF_SEQUENCE_WINDOW; i++)
            add64(b, n->ring[i]);
}

static void add_owners(struct hf_snapshotting *s)
{
    struct hf_buffer *b = &s->buffer;
    size_t at = block_open(b);
    unsigned char entry[4];
    hf_put32(entry, s->info.token_cursor_entry);
    hf_buffer_add(b, entry, sizeof entry);
    hf_buffer_add(b, s->owners.data, s->owners.size);
    b->failed |= s->owners.failed;
    block_close(s, at, BLOCK_OWNERS, 1);
    hf_buffer_free(&s->owners);
}

static void add_passed(struct hf_snapshotting *s)
{
    struct hf_buffer *b = &s->buffer;
    b->failed |= s->passed.failed;
    if (s->passed.size == 0)
        return;
    size_t at = block_open(b);
    hf_buffer_add(b, s->passed.data, s->passed.size);
    block_close(s, at, BLOCK_PASSED, (uint32_t)(s->passed.size / HF_PASSED_SIZE));
    hf_buffer_free(&s->passed);
}

/* Copy guards from s->guard on until the slice is full: before all other rows, because entries need
 * their guard. True when all are copied. */
static bool slice_guards(struct hf_journal *j, struct hf_snapshotting *s)
{
    const struct hf_order *o = &j->tables.rows.guards;
    struct hf_order_at from = hf_order_find(o, s->guard);
    const struct hf_order_item *item = NULL;
    size_t at = block_open(&s->buffer);
    uint32_t count = 0;
    while (s->buffer.size < SLICE && (item = hf_order_next(o, &from)) != NULL &&
           !made_by_replay(item->node, s->info.start)) {
        add_row(&s->buffer, item->node);
        s->guard = item->stamp + 1;
        count++;
    }
    block_close(s, at, BLOCK_ROWS, count);
    return !item || made_by_replay(item->node, s->info.start);
}

/* The checksums of the parts of holds.idx, from s->part on. True when that was the last. */
static bool slice_index(struct hf_journal *j, struct hf_snapshotting *s)
{
    const struct hf_holds *h = &j->tables.holds;
    size_t parts = (size_t)hf_index_part_of(s->covered), n = parts - s->part;
    if (n > SLICE / 8)
        n = SLICE / 8;
    size_t at = block_open(&s->buffer);
    add64(&s->buffer, s->covered);
    add64(&s->buffer, s->part + 1);
    for (size_t i = 0; i < n; i++)
        add64(&s->buffer, hf_holds_new_sum(h, s->part + i + 1, &s->fresh_at));
    block_close(s, at, BLOCK_INDEX, (uint32_t)n);
    s->part += n;
    return s->part == parts;
}

/* Copy one part of a table; each function returns the number of entries. */
static uint32_t part_rows(struct hf_journal *j, struct hf_buffer *b, size_t part)
{
    const struct hf_map_part *p = &j->tables.rows.map.parts[part];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->room; i++) {
        const struct hf_node *n = (const struct hf_node *)(uintptr_t)p->slots[i].value;
        if (!n || n->kind == HF_ROW_GUARD || n->is_volatile ||
            made_by_replay(n, j->snapshotting->info.start))
            continue;
        add_row(b, n);
        count++;
    }
    return count;
}

static uint32_t part_tokens(struct hf_journal *j, struct hf_buffer *b, size_t part)
{
    const struct hf_map_part *p = &j->tables.tokens.parts[part];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->room; i++) {
        if (p->slots[i].value == 0)
            continue;
        add64(b, p->slots[i].hash);
        add64(b, p->slots[i].value);
        count++;
    }
    return count;
}

static uint32_t part_live(struct hf_journal *j, struct hf_buffer *b, size_t part)
{
    const struct hf_dense_chunk *chunk = j->tables.live.by_ordinal.chunks[part];
    uint32_t count = 0;
    for (uint32_t i = 0; chunk && i < HF_DENSE_CHUNK; i++) {
        if (chunk->values[i] == 0)
            continue;
        const struct hf_live_node *n = hf_live_node(&j->tables.live, chunk->values[i]);
        add64(b, n->ordinal);
        add64(b, (uint64_t)n->expires_at);
        add64(b, n->resource);
        count++;
    }
    return count;
}

/* How many slots are read to copy a part. */
static size_t part_places(const struct hf_journal *j, uint32_t type, size_t part)
{
    const struct hf_tables *t = &j->tables;
    if (type == BLOCK_LIVE)
        return t->live.by_ordinal.chunks[part] ? HF_DENSE_CHUNK : 1;
    return 1 + (type == BLOCK_ROWS ? &t->rows.map : &t->tokens)->parts[part].room;
}

/* Copy parts from s->part on until the slice is full, or enough slots were read: there may be
 * little to copy in them. True when the table is done. */
static bool slice_table(struct hf_journal *j, struct hf_snapshotting *s, size_t parts,
                        uint32_t type,
                        uint32_t (*copy)(struct hf_journal *, struct hf_buffer *, size_t))
{
    size_t at = block_open(&s->buffer), looked = 0;
    uint32_t count = 0;
    while (s->part < parts && s->buffer.size < SLICE && looked < LOOK_MAX) {
        looked += part_places(j, type, s->part);
        count += copy(j, &s->buffer, s->part++);
    }
    block_close(s, at, type, count);
    return s->part == parts;
}

static void add_end(struct hf_snapshotting *s)
{
    struct hf_buffer *b = &s->buffer;
    uint8_t digest[HF_DIGEST_SIZE];
    struct hf_sha256 sha = s->sha;
    uint64_t blocks = s->blocks;
    hf_sha256_end(&sha, digest);
    size_t at = block_open(b);
    add64(b, s->end);
    add64(b, s->highest_hold);
    add64(b, s->highest_fence);
    add64(b, s->highest_outbox);
    add64(b, blocks);
    hf_buffer_add(b, digest, sizeof digest);
    block_close(s, at, BLOCK_END, 1);
}

/* ---- Steps ---- */

static bool index_take(struct hf_journal *j, struct hf_snapshotting *s)
{
    struct hf_holds *h = &j->tables.holds;
    size_t taken = 0;
    while (s->part < hf_holds_parts(h) && taken < SLICE / sizeof(struct hf_moved)) {
        size_t need = s->moved_count + hf_holds_part_size(h, s->part);
        if (need > s->moved_room) {
            size_t room = s->moved_room ? s->moved_room * 2 : 4096;
            while (room < need)
                room *= 2;
            struct hf_moved *moved = realloc(s->moved, room * sizeof *moved);
            if (!moved)
                return false;
            s->moved = moved;
            s->moved_room = room;
        }
        if (hf_holds_part_size(h, s->part) == 0) {
            s->part++;
            continue;
        }
        size_t n = hf_holds_take(h, s->part++, s->info.start, s->moved + s->moved_count);
        s->moved_count += n;
        taken += n;
    }
    return true;
}

static int index_write(struct hf_journal *j, struct hf_snapshotting *s)
{
    return hf_holds_write(&j->tables.holds, s->moved, s->moved_count, s->info.start, &s->bad_part);
}

/* The snapshot is complete: the new parts of holds.idx are in use, and leave the memory. */
static void index_forget(struct hf_journal *j, struct hf_snapshotting *s)
{
    enum { FORGET_STEP = 4096 };
    struct hf_holds *h = &j->tables.holds;
    size_t n = s->moved_count - s->forgotten;
    if (n > FORGET_STEP)
        n = FORGET_STEP;
    if (s->forgotten == 0)
        hf_holds_landed(h, s->info.start, s->info.next_sequence, s->covered);
    if (n > 0)
        hf_holds_forget(h, s->moved + s->forgotten, n);
    s->forgotten += n;
}

static int buffer_write(struct hf_journal *j, struct hf_snapshotting *s)
{
    char name[HF_SEGMENT_NAME_SIZE];
    int error = s->buffer.failed ? -ENOMEM : 0;
    if (!error && !s->file) {
        hf_snapshot_name(s->info.start, ".tmp", name);
        error = j->io->open(j->dir, name, HF_OPEN_CREATE, &s->file);
    }
    if (!error)
        error = j->io->write(s->file, s->buffer.data, s->buffer.size, s->at);
    if (!error)
        j->io->start(s->file, s->at, s->buffer.size);
    /* Keep the unsynced amount small, so that the system does not slow down commits to write it. */
    if (!error && s->at - s->synced >= SYNC_EVERY) {
        error = j->io->sync(s->file);
        s->synced = s->at;
    }
    if (!error && s->phase != PHASE_END)
        hf_sha256_add(&s->sha, s->buffer.data, s->buffer.size);
    s->at += s->buffer.size;
    hf_buffer_reset(&s->buffer);
    return error;
}

static int finish(struct hf_journal *j, struct hf_snapshotting *s)
{
    char from[HF_SEGMENT_NAME_SIZE], to[HF_SEGMENT_NAME_SIZE];
    int error = buffer_write(j, s);
    if (!error)
        error = j->io->sync(s->file);
    hf_snapshot_name(s->info.start, ".tmp", from);
    hf_snapshot_name(s->info.start, ".snap", to);
    if (!error)
        error = j->io->rename(j->dir, from, to);
    if (!error) {
        error = j->io->dir_sync(j->dir);
        if (error)
            j->io->remove(j->dir, to); /* else it would be unknown until the next start */
    }
    if (!error && j->snapshot_start && j->snapshot_start != s->info.start) {
        hf_snapshot_name(j->snapshot_start, ".snap", from);
        hf_snapshot_name(j->snapshot_start, ".tmp", to);
        hf_journal_shed(j, from, to);
    }
    return error;
}

static void phase_next(struct hf_snapshotting *s)
{
    s->phase++;
    s->part = 0;
}

/* The work of a phase under the lock. 0 or a negative errno. */
static int step_locked(struct hf_journal *j, struct hf_snapshotting *s)
{
    const struct hf_tables *t = &j->tables;
    switch (s->phase) {
    case PHASE_INDEX_TAKE:
        if (!index_take(j, s))
            return -ENOMEM;
        if (s->part == hf_holds_parts(&t->holds))
            phase_next(s);
        return 0;
    case PHASE_INDEX_WRITE: return hf_holds_make(&j->tables.holds, &j->keys, s->covered);
    case PHASE_INDEX_FORGET: index_forget(j, s); return 0;
    case PHASE_GUARDS:
        if (s->blocks == 0) {
            add_header(j, s);
            add_owners(s);
            add_passed(s);
        }
        if (slice_guards(j, s))
            phase_next(s);
        break;
    case PHASE_INDEX_SUMS:
        if (slice_index(j, s))
            phase_next(s);
        break;
    case PHASE_ROWS:
        if (slice_table(j, s, hf_map64_parts(&t->rows.map), BLOCK_ROWS, part_rows))
            phase_next(s);
        break;
    case PHASE_TOKENS:
        if (slice_table(j, s, hf_map64_parts(&t->tokens), BLOCK_TOKENS, part_tokens))
            phase_next(s);
        break;
    case PHASE_LIVE:
        if (slice_table(j, s, t->live.by_ordinal.count, BLOCK_LIVE, part_live)) {
            s->end = j->gather.size   ? j->gather.base + 1
                     : j->flight.size ? j->flight.base + 1
                                      : j->end;
            s->highest_hold = t->holds.highest;
            s->highest_fence = t->highest_fence;
            s->highest_outbox = t->highest_outbox;
            s->closing = true;
        }
        break;
    case PHASE_END: add_end(s); break;
    }
    return s->buffer.failed ? -ENOMEM : 0;
}

/* The work of a phase without the lock. */
static int step_unlocked(struct hf_journal *j, struct hf_snapshotting *s, enum phase phase)
{
    switch (phase) {
    case PHASE_INDEX_TAKE:
    case PHASE_INDEX_FORGET: return 0;
    case PHASE_INDEX_WRITE: return index_write(j, s);
    case PHASE_END: return finish(j, s);
    default: return buffer_write(j, s);
    }
}

/* The file has its final name. */
static void ended(struct hf_journal *j, struct hf_snapshotting *s)
{
    j->snapshot_start = s->info.start;
    j->snapshot_bytes = s->at;
    j->stats.snapshots++;
    j->index_old = false;
    if (hf_trouble_over(&j->snapshot_trouble))
        hf_journal_note(j, 0, "a snapshot could be written again");
    j->io->close(s->file);
    s->file = NULL;
}

static void failed(struct hf_journal *j, struct hf_snapshotting *s, int error)
{
    if (s->bad_part) {
        hf_holds_bad(&j->tables.holds, s->bad_part);
        hf_journal_index_note(j, s->bad_part);
    } else if (hf_trouble_tell(j, &j->snapshot_trouble)) {
        hf_journal_note(j, 1, "cannot write a snapshot: %s; the store retries", strerror(-error));
    }
    hf_snapshot_drop(j);
    j->retry_at_ns = j->io->monotonic_ns(j->io->ctx) + RETRY_NS;
}

bool hf_snapshot_step(struct hf_journal *j, const struct hf_lock *lock)
{
    struct hf_snapshotting *s = j->snapshotting;
    enum phase phase = s->phase;
    /* Everything copied must be durable before the snapshot may be used. */
    if (phase == PHASE_END && j->durable < s->end)
        return false;
    int error = step_locked(j, s);
    if (!error) {
        if (lock)
            lock->unlock(lock->arg);
        error = step_unlocked(j, s, phase);
        if (lock)
            lock->lock(lock->arg);
    }
    if (error) {
        failed(j, s, error);
        return false;
    }
    if (phase == PHASE_END)
        ended(j, s);
    if (phase == PHASE_INDEX_WRITE || phase == PHASE_END || s->closing) {
        s->closing = false;
        phase_next(s);
    }
    if (phase == PHASE_INDEX_FORGET && s->forgotten == s->moved_count)
        snapshotting_free(j);
    return true;
}

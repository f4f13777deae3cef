#include "store/journal/walk.h"

#include "base/bytes.h"
#include "core/claim.h"
#include "core/fence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How much a step looks at and frees while it holds the lock. */
enum {
    SWEEP_STEP = 256,     /* overdue holds */
    LAPSE_STEP = 64,      /* claims that become unknown, each with a line in a log */
    TOKEN_STEP = 1024,    /* journal entries, for their keys */
    GUARD_STEP = 256,     /* guards, and freed entries */
    ROW_STEP = 1024,      /* slots of the row table; a freed row counts as several */
    ROW_FREED = 4,        /* ... as so many */
    ROW_MANY = 64,        /* so many freed rows are a reason to continue at once */
    PREPARE_AT = 4,       /* prepare the next segment when 1/4 of this one is used */
    RETRY_NS = 1000000000 /* after a failure */
};

/* ---- Logging failures ---- */

bool hf_trouble_tell(struct hf_journal *j, struct hf_trouble *t)
{
    const uint64_t again_ns = UINT64_C(60) * 1000000000;
    uint64_t now = j->io->monotonic_ns(j->io->ctx);
    if (t->lasts && now - t->noted_ns < again_ns)
        return false;
    *t = (struct hf_trouble){ .lasts = true, .noted_ns = now };
    return true;
}

bool hf_trouble_over(struct hf_trouble *t)
{
    bool lasted = t->lasts;
    t->lasts = false;
    return lasted;
}

/* ---- Expiry in memory ---- */

hf_time hf_journal_forget_until(struct hf_journal *j)
{
    return j->snapshotting ? hf_snapshot_now(j) : hf_journal_now(j);
}

/* Free expired entries, each guard's oldest first, guard by guard. True if there may be more. */
static bool expire_entries(struct hf_journal *j)
{
    struct hf_rows *rows = &j->tables.rows;
    hf_time now = hf_journal_forget_until(j);
    struct hf_order_at at = hf_order_find(&rows->guards, j->guard_cursor);
    for (size_t looked = 0; looked < GUARD_STEP && rows->guards.live > 0;) {
        const struct hf_order_item *guard = hf_order_next(&rows->guards, &at);
        if (!guard) { /* all guards visited */
            j->guard_cursor = 0;
            break;
        }
        size_t freed = hf_rows_expire_entries(rows, guard->node, now, GUARD_STEP - looked);
        looked += 1 + freed;
        j->looked += 1 + freed;
        j->guards_idle = freed > 0 ? 0 : j->guards_idle + 1;
        j->guard_cursor = guard->stamp + (looked <= GUARD_STEP); /* else continue with this guard */
    }
    hf_rows_bury(rows);
    return j->guards_idle < rows->guards.live;
}

/* Has the row expired: a claim whose window has closed, an identity no longer seen, or the row left
 * by a deleted register? */
static bool row_is_over(const struct hf_node *n, hf_time now)
{
    enum { CLAIM_EXPIRES_AT = 42 };
    struct hf_row row;
    if (n->kind == HF_ROW_ENTRY)
        return hf_node_entry_expiry(n) <= now;
    if (n->kind == HF_ROW_REGISTER)
        return hf_node_row(n, &row) && hf_register_forgotten(&row.reg, now);
    if (n->kind != HF_ROW_CLAIM)
        return false;
    hf_time expires =
        (hf_time)hf_get64((const unsigned char *)hf_node_image(n).data + CLAIM_EXPIRES_AT);
    return expires != 0 && expires <= now;
}

/* Search a piece of the row table for expired rows: claims, which expire in no order, and entries
 * that were recorded under a shorter window than earlier ones. When a row is freed, others may move
 * into its slot, or the part may shrink: the next round finds what this one misses. True: continue
 * at once, because many were freed, or because a limit refuses requests: expired rows that still
 * count would block a tenant for a whole round of the table. */
static bool expire_rows(struct hf_journal *j)
{
    enum { AHEAD = 8 };
    struct hf_rows *rows = &j->tables.rows;
    size_t parts = hf_map64_parts(&rows->map), passed = 0, freed = 0, cost = 0;
    if (j->rows_wanted && j->rows_left == 0)
        j->rows_left = parts + 1;
    j->rows_wanted = false;
    if (rows->count[HF_ROW_CLAIM] + rows->count[HF_ROW_ENTRY] + rows->left == 0) {
        j->rows_left = 0;
        return false;
    }
    hf_time now = hf_journal_forget_until(j);
    while (cost < ROW_STEP && passed <= parts) {
        const struct hf_map_part *part = &rows->map.parts[j->row_cursor];
        cost++;
        if (j->row_slot >= part->room) {
            j->row_cursor = (j->row_cursor + 1) % parts;
            j->row_slot = 0;
            j->rows_left -= j->rows_left > 0;
            passed++;
            continue;
        }
        if (j->row_slot + AHEAD < part->room && part->slots[j->row_slot + AHEAD].value)
            __builtin_prefetch((const void *)(uintptr_t)part->slots[j->row_slot + AHEAD].value);
        struct hf_node *n = (struct hf_node *)(uintptr_t)part->slots[j->row_slot].value;
        if (n && row_is_over(n, now)) {
            hf_rows_erase(rows, n);
            freed++;
            cost += ROW_FREED;
        } else {
            j->row_slot++;
        }
    }
    hf_rows_bury(rows);
    j->looked += cost;
    return freed >= ROW_MANY || j->rows_left > 0;
}

/* ---- Claims ---- */

/* Leases that ended up to here did so by what is durable. A batch that is not durable may have
 * ended some, with an abandon, at its own time and not before. */
static hf_time lapse_until(struct hf_journal *j)
{
    if (j->flight.size > 0)
        return j->flight.now - 1;
    return j->gather.size > 0 ? j->gather.now - 1 : hf_journal_now(j);
}

/* Tell of claims that became unknown because their lease ended. True if there may be more. */
static bool lapse_step(struct hf_journal *j)
{
    hf_time now = lapse_until(j);
    struct hf_node *node;
    size_t told = 0;
    while (told < LAPSE_STEP && (node = hf_claims_lapse(&j->tables.rows.claims, now)) != NULL) {
        struct hf_row row;
        told++;
        if (!j->on_unknown || !hf_node_row(node, &row))
            continue;
        row.claim.state = hf_claim_state_at(&row.claim, now);
        j->on_unknown(j->arg, &row.claim);
    }
    return told == LAPSE_STEP;
}

/* ---- Segments ---- */

static size_t prepared_count(const struct hf_journal *j)
{
    size_t n = 0;
    while (n < j->segments.count &&
           j->segments.list[j->segments.count - 1 - n].state == HF_SEGMENT_PREPARED)
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
        hf_journal_note(j, 1,
                        "cannot prepare the next journal segment: %s; new writes are refused "
                        "once the current one is full",
                        strerror(-error));
    j->out_of_space = true;
    j->prepare_error = error;
    j->prepare_at_ns = j->io->monotonic_ns(j->io->ctx) + RETRY_NS;
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

void hf_journal_blocked(const struct hf_journal *j, struct hf_stats *out)
{
    int error = j->out_of_space ? j->prepare_error : 0;
    out->out_of_space = no_room(error);
    out->out_of_files = error == -EMFILE || error == -ENFILE;
    out->storage_failing = error != 0 && !out->out_of_space && !out->out_of_files;
}

/* One step of making the next segment. *done: out, it is ready. */
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
            hf_journal_note(
                j, 0,
                no_room(j->prepare_error)
                    ? "there is room for the next journal segment again: new writes are "
                      "accepted"
                    : "the next journal segment could be prepared: new writes are accepted "
                      "again");
        j->out_of_space = j->segment_wanted = false;
        s->size_fits = 0;
    }
    if (error) {
        hf_prepare_drop(s, p);
        *done = false;
        if (no_room(error) && hf_segments_smaller(s, head.size))
            return 0; /* retry with a smaller size */
        if (hf_segments_give_back(s, error))
            return 0; /* retry with the descriptor of another */
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

/* ---- Removing large files ---- Removing a file at once keeps some disks busy with discarding for
 * up to a tenth of a second, and commits wait. So it is first truncated piece by piece. */

void hf_journal_shed(struct hf_journal *j, const char *name, const char *as)
{
    struct hf_shedding *s = &j->shedding;
    if (s->file || j->io->rename(j->dir, name, as) != 0) {
        j->io->remove(j->dir, name);
        return;
    }
    /* Truncate only after the new name is durable: under the old name it would look like damage. */
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

/* Walk the batches of a pinned segment, without the lock. used: out, the end of the last one: bytes
 * after it need not be kept. next: out, the sequence that must follow. 0, or a negative errno if a
 * batch cannot be read now. */
static int used_bytes(struct hf_journal *j, struct hf_segment *g, uint64_t *used, uint64_t *next)
{
    uint64_t at = g->base + HF_BLOCK;
    struct hf_batch_head head;
    const unsigned char *data;
    int error = 0;
    *next = 0;
    while (at < g->base + g->size &&
           (error = hf_journal_batch_of(j, g, NULL, at, true, &data, &head)) == 0 &&
           (*next == 0 || head.sequence == *next) && hf_padding_clean(&head, data)) {
        *next = head.sequence + 1;
        at = hf_block_up(at + head.length);
    }
    *used = at - g->base;
    return hf_journal_unread(error) ? error : 0;
}

static void pack_failed(struct hf_journal *j, const struct hf_segment_head *head, int error)
{
    if (hf_trouble_tell(j, &j->pack_trouble))
        hf_journal_note(j, 1, "cannot compress journal segment %llu: %s; the store retries",
                        (unsigned long long)head->number, strerror(-error));
    j->retry_at_ns = j->io->monotonic_ns(j->io->ctx) + RETRY_NS;
}

/* Is every batch of the segment complete, up to the next segment's first? 0, -EBADMSG if not, or
 * another negative errno if that one cannot be read now. */
static int is_followed(struct hf_journal *j, const struct hf_segment_head *g, uint64_t next)
{
    struct hf_batch_head head;
    const unsigned char *data;
    int error = hf_journal_batch(j, g->base + g->size + HF_BLOCK, true, &data, &head);
    if (hf_journal_unread(error))
        return error;
    return !error && head.sequence == next ? 0 : -EBADMSG;
}

/* The segment is incomplete or unreadable. Memory or descriptors may be short only now; otherwise
 * it is kept as it is, and must not block the compression of others. */
static void pack_refused(struct hf_journal *j, struct hf_segment *g,
                         const struct hf_segment_head *head, int error)
{
    j->packing = false;
    g->pins--;
    if (hf_journal_short(error)) {
        pack_failed(j, head, error);
        return;
    }
    hf_journal_note(j, 1, "journal segment %llu %s and stays uncompressed. Run `holdfast audit`",
                    (unsigned long long)head->number,
                    error != -EBADMSG ? "cannot be read" : "is damaged");
    g->keep = true;
}

/* Write the packed copy of the segment, without the lock. */
static int pack_write(struct hf_journal *j, const struct hf_segment_head *head,
                      const struct hf_mapped *from, uint64_t used, struct hf_file **file)
{
    char tmp[HF_SEGMENT_NAME_SIZE], name[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(head->number, ".tmp", tmp);
    hf_segment_name(head->number, ".zst", name);
    int error = j->io->open(j->dir, tmp, HF_OPEN_CREATE, file);
    if (error)
        return error;
    error = hf_pack_write(j->io, *file, head, from, used);
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
    struct hf_segment was;
    struct hf_file *file = NULL;
    struct hf_pack *pack = NULL;
    uint64_t used, next;
    char name[HF_SEGMENT_NAME_SIZE], as[HF_SEGMENT_NAME_SIZE];
    int error = hf_segments_reach(&j->segments, g);
    if (error) {
        pack_failed(j, &head, error);
        return;
    }
    struct hf_mapped from = { g->source, g->data };
    j->packing = true;
    g->pins++;
    lock_leave(lock);
    error = used_bytes(j, g, &used, &next);
    lock_enter(lock);
    if (!error)
        error = is_followed(j, &head, next);
    if (error) {
        pack_refused(j, g, &head, error);
        return;
    }
    lock_leave(lock);
    error = pack_write(j, &head, &from, used, &file);
    if (!error) {
        error = hf_pack_open(j->io, file, &pack);
        if (error)
            j->io->close(file);
    }
    lock_enter(lock);
    j->packing = false;
    g->pins--;
    if (error) {
        pack_failed(j, &head, error);
        return;
    }
    hf_segments_packed(&j->segments, g, pack, file, &was);
    if (hf_trouble_over(&j->pack_trouble))
        hf_journal_note(j, 0, "journal segments can be compressed again");
    /* From here on no reader finds the plain bytes; removing them takes time. */
    lock_leave(lock);
    j->io->unmap(was.source, was.data, head.size);
    j->io->close(was.source);
    hf_segment_name(head.number, ".log", name);
    hf_segment_name(head.number, ".tmp", as);
    hf_journal_shed(j, name, as); /* if it stays, the next start removes the packed one */
    lock_enter(lock);
}

/* ---- Maintenance ---- */

/* A snapshot costs its size in writing, so the next one waits until as much journal was written. */
static bool snapshot_due(const struct hf_journal *j)
{
    uint64_t written = j->end - j->snapshot_start;
    if (j->index_old)
        return true;
    return written >= j->snapshot_every && written >= j->snapshot_bytes && !j->is_memory;
}

/* Free disk space: remove a piece of an old file, or compress a segment. */
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

/* The slow work, one kind at a time: a snapshot, then removing old files, then compressing. */
static bool slow_step(struct hf_journal *j, const struct hf_lock *lock, bool may_try)
{
    /* On a full disk, free space first: a snapshot may need more than is left. */
    if (j->out_of_space && no_room(j->prepare_error) && room_step(j, lock, may_try))
        return true;
    if (j->snapshotting)
        return hf_snapshot_step(j, lock);
    if (hf_reindex_step(j))
        return true;
    if (!j->snapshot_wanted && may_try && snapshot_due(j)) {
        j->snapshot_wanted = true;
        if (j->flight.size == 0)
            hf_snapshot_begin(j);
        return true;
    }
    return room_step(j, lock, may_try);
}

/* Log the result of the check in the background. */
static void verify_note(struct hf_journal *j)
{
    const struct hf_verify *v = &j->verify;
    const struct hf_segment *g = hf_segments_at(&j->segments, v->position);
    char name[HF_SEGMENT_NAME_SIZE] = "the journal";
    if (v->state == HF_VERIFY_GOOD) {
        hf_journal_note(j, 0, "the journal was checked up to the snapshot: its chain is unbroken");
        return;
    }
    if (g)
        hf_segment_name(g->number, g->state == HF_SEGMENT_PACKED ? ".zst" : ".log", name);
    hf_journal_note(j, 1,
                    "the journal is damaged in %s at byte %llu (position %llu): %s. The "
                    "store continues but is not ready. Run `holdfast audit`. Before you change a "
                    "file, read \"Damaged journal\" in doc/OPERATIONS.md",
                    name, (unsigned long long)(g ? v->position - g->base : 0),
                    (unsigned long long)v->position, v->what);
}

static bool verify_step(struct hf_journal *j, const struct hf_lock *lock)
{
    if (j->verify.state != HF_VERIFY_RUNNING)
        return false;
    bool more = hf_verify_step(j, lock);
    if (j->verify.state != HF_VERIFY_RUNNING)
        verify_note(j);
    return more;
}

static void head_step(struct hf_journal *j, uint64_t now_ns)
{
    const uint64_t every_ns = UINT64_C(3600) * 1000000000;
    if (now_ns - j->head_noted_ns < every_ns || j->flight.size > 0)
        return;
    hf_journal_note_head(j);
}

/* Note the first batch of a segment, so that the loss of its file is noticed. Retried until done:
 * on a full disk, or without descriptors, the previous note stays. */
static void begun_step(struct hf_journal *j, const struct hf_lock *lock, uint64_t now_ns)
{
    const uint64_t again_ns = UINT64_C(1000000000);
    struct hf_closed note = j->begun;
    if (note.sequence == 0 || now_ns < j->begun_at_ns)
        return;
    lock_leave(lock);
    int error = j->is_memory ? 0 : hf_closed_write(j->io, j->dir, &note);
    lock_enter(lock);
    if (!error && j->begun.sequence == note.sequence)
        j->begun.sequence = 0;
    if (error && !no_room(error) && !j->begun_failed)
        hf_journal_note(
            j, 1, "cannot note the first batch of the newest segment in " HF_CLOSED_NAME ": %s",
            strerror(-error));
    j->begun_failed = error != 0;
    j->begun_at_ns = error ? now_ns + again_ns : 0;
}

bool hf_journal_maintain(struct hf_journal *j, const struct hf_lock *lock)
{
    uint64_t now_ns = j->io->monotonic_ns(j->io->ctx);
    bool may_try = now_ns >= j->retry_at_ns;
    j->looked = 0;
    bool more = hf_journal_sweep(j, SWEEP_STEP) > 0, done;
    more |= lapse_step(j);
    if (now_ns >= j->prepare_at_ns &&
        (j->preparing.file || prepare_wanted(j) || (j->out_of_space && prepared_count(j) == 0)))
        more |= prepare_step(j, lock, &done) == 0;
    more |= expire_rows(j);
    more |= hf_journal_expire_tokens(j, TOKEN_STEP) > 0;
    more |= hf_journal_revisit_tokens(j, TOKEN_STEP);
    more |= expire_entries(j);
    more |= verify_step(j, lock);
    begun_step(j, lock, now_ns);
    head_step(j, now_ns);
    /* Requests that wait for a segment must not wait for anything else. */
    if (!j->segment_wanted || j->out_of_space)
        more |= slow_step(j, lock, may_try);
    return more;
}

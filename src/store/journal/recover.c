/* Recovery: finds the files, loads the newest snapshot, replays the journal after it, and tells a
 * torn end from damage (doc/FORMAT.md, "Where the journal ends, and what is damage"). */
#include "base/bytes.h"
#include "base/error.h"
#include "store/journal/names.h"
#include "store/journal/walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a start verifies the journal before the snapshot, and how long it rebuilds parts of
 * holds.idx; the background thread does the rest. */
enum { VERIFY_NS = 1000000000, REINDEX_NS = 1000000000 };
enum { REINDEX_STEPS = 64 }; /* but at least this: 16 MiB of the journal, even on a slow disk */
/* How much of holds.idx a start checks; the rest is checked when it is used. */
#define INDEX_CHECK_MAX (UINT64_C(1) << 30)

/* The file that contains `position`. Returns the offset in it. */
static uint64_t file_of(const struct hf_journal *j, uint64_t position,
                        char name[HF_SEGMENT_NAME_SIZE])
{
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    snprintf(name, HF_SEGMENT_NAME_SIZE, "the journal");
    if (g)
        hf_segment_name(g->number, g->state == HF_SEGMENT_PACKED ? ".zst" : ".log", name);
    return g ? position - g->base : 0;
}

/* The page has the steps: what to copy first, and when a single file may be put back. */
#define READ_FIRST "Before you change a file, read \"Damaged journal\" in doc/OPERATIONS.md"

static enum hf_status refuse_damage(struct hf_error *why, struct hf_journal *j, uint64_t position,
                                    const char *what)
{
    char name[HF_SEGMENT_NAME_SIZE];
    uint64_t at = file_of(j, position, name);
    return hf_error_set(why, HF_STORE_DAMAGED,
                        "the journal is damaged in %s at byte %" PRIu64 " (position %" PRIu64
                        "): %s. The store "
                        "does not open, so that no effect happens twice. `holdfast audit` shows "
                        "what is whole. " READ_FIRST,
                        name, at, position, what);
}

static enum hf_status refuse_unread(struct hf_error *why, const char *name, int error)
{
    return hf_error_set(why, error == -ENOMEM ? HF_NO_MEMORY : HF_STORAGE_FAILURE,
                        "cannot read %s: %s", name, strerror(-error));
}

static enum hf_status refuse_unread_at(struct hf_error *why, struct hf_journal *j,
                                       uint64_t position, int error)
{
    char name[HF_SEGMENT_NAME_SIZE], place[HF_SEGMENT_NAME_SIZE + 32];
    uint64_t at = file_of(j, position, name);
    snprintf(place, sizeof place, "%s at byte %" PRIu64, name, at);
    return refuse_unread(why, place, error);
}

/* A file that proves how far the journal went cannot be read. Continuing without it could drop
 * acknowledged batches. */
static enum hf_status refuse_unproven(struct hf_error *why, const char *name, int error)
{
    if (error == -ENOMEM)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to read %s", name);
    return hf_error_set(why, HF_STORAGE_FAILURE,
                        "cannot read %s: %s. It proves how far the journal went, so the store "
                        "does not open without it, and nothing was changed. %s. If the file is "
                        "lost for good, first read \"A file that cannot be read\" in "
                        "doc/OPERATIONS.md, then remove it",
                        name, strerror(-error),
                        hf_journal_short(error) ? "Give the program more descriptors or memory"
                                                : "Check the disk and the file's permissions");
}

static enum hf_status refuse_newer(struct hf_error *why, const char *name, uint32_t version,
                                   uint32_t known)
{
    return hf_error_set(why, HF_STORE_NEWER,
                        "%s has format version %u, but this program knows versions up to %u. "
                        "Use a newer holdfast",
                        name, version, known);
}

/* ---- Segments ---- */

/* Is the header from this store? The first header gives the store's keys, which must be those that
 * the note names; only headers of version 2 have the seal key. */
static bool same_store(struct hf_journal *j, const struct hf_segment_head *head)
{
    struct hf_store_keys *mine = &j->keys;
    const struct hf_store_keys *keys = &head->keys;
    bool sealed = head->version >= 2;
    if (!hf_closed_is_of(&j->closed, keys, sealed))
        return false;
    if (!j->has_keys)
        *mine = *keys;
    bool same = memcmp(mine->store_id, keys->store_id, sizeof mine->store_id) == 0 &&
                memcmp(&mine->table, &keys->table, sizeof mine->table) == 0 &&
                memcmp(&mine->id, &keys->id, sizeof mine->id) == 0;
    if (same && sealed && !j->has_seal)
        mine->seal = keys->seal;
    else if (same && sealed)
        same = memcmp(&mine->seal, &keys->seal, sizeof mine->seal) == 0;
    j->has_keys |= same;
    j->has_seal |= same && sealed;
    return same;
}

static bool is_zero(const unsigned char *p, size_t size)
{
    return size == 0 || (*p == 0 && memcmp(p, p + 1, size - 1) == 0);
}

/* The position where the next segment begins. */
static uint64_t next_base(const struct hf_segments *s)
{
    const struct hf_segment *last = s->count ? &s->list[s->count - 1] : NULL;
    return last ? last->base + last->size : 0;
}

/* Read the first block of a segment's file. size: out, of the file. */
static enum hf_status block_read(struct hf_journal *j, const struct hf_name *name,
                                 unsigned char block[HF_BLOCK], uint64_t *size,
                                 struct hf_error *why)
{
    struct hf_file *file;
    int error = j->io->open(j->dir, name->text, HF_OPEN_READ, &file);
    if (error)
        return hf_error_set(why, HF_STORAGE_FAILURE, "cannot open %s: %s", name->text,
                            strerror(-error));
    error = j->io->size(file, size);
    if (!error && *size >= HF_BLOCK)
        error = j->io->read(file, block, HF_BLOCK, 0);
    j->io->close(file);
    if (error)
        return refuse_unread(why, name->text, error);
    if (*size < 2 * HF_BLOCK || *size % HF_BLOCK != 0)
        return hf_error_set(why, HF_STORE_DAMAGED,
                            "%s has an invalid size of %" PRIu64
                            " bytes: it was truncated or extended. " READ_FIRST,
                            name->text, *size);
    return HF_OK;
}

/* Read the header of one segment file and add the segment to the list. A file without a header was
 * prepared; whether it is really empty is checked later. */
static enum hf_status segment_find(struct hf_journal *j, const struct hf_name *name,
                                   struct hf_error *why)
{
    struct hf_segments *s = &j->segments;
    struct hf_segment_head head = { 0 };
    unsigned char block[HF_BLOCK] = { 0 };
    uint64_t size = 0, base = next_base(s);
    enum hf_status st = block_read(j, name, block, &size, why);
    if (st != HF_OK)
        return st;
    enum hf_head_state state = hf_segment_head_decode(block, &head);
    if (state == HF_HEAD_NEWER)
        return refuse_newer(why, name->text, head.version, HF_FORMAT_VERSION);
    bool good = state == HF_HEAD_GOOD;
    /* A crash can tear a header, but not change it: another store has written this one. */
    if (good && !same_store(j, &head))
        return hf_error_set(why, HF_STORE_DAMAGED, "%s belongs to another store. " READ_FIRST,
                            name->text);
    if (good && (head.number != name->number || head.base != base || head.size != size))
        return hf_error_set(why, HF_STORE_DAMAGED,
                            "%s does not match its header: the file has %" PRIu64
                            " bytes and should begin at position %" PRIu64
                            ", but the header says segment %" PRIu64 " at position %" PRIu64
                            " of %" PRIu64 " bytes. " READ_FIRST,
                            name->text, size, base, head.number, head.base, head.size);
    if (!good)
        head = (struct hf_segment_head){ 0 };
    head.number = name->number;
    head.base = base;
    head.size = size;
    if (hf_segments_add(s, &head, good ? HF_SEGMENT_SEALED : HF_SEGMENT_PREPARED, NULL) != 0)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to list the journal's segments");
    size_t used = head.version == 1 ? HF_SEGMENT_HEAD_1 : HF_SEGMENT_HEAD;
    s->list[s->count - 1].head_dirty = good && !is_zero(block + used, HF_BLOCK - used);
    return HF_OK;
}

/* Read the header inside a compressed segment. state: out; NONE also if other bytes follow the
 * header. */
static int pack_head(struct hf_journal *j, struct hf_file *file, struct hf_segment_head *outer,
                     struct hf_segment_head *inner, enum hf_head_state *state)
{
    struct hf_pack *pack;
    const unsigned char *block;
    int error = hf_pack_open(j->io, file, &pack);
    if (error)
        return error;
    hf_pack_head(pack, outer);
    j->cache.number = 0;
    error = outer->size < 2 * HF_BLOCK || outer->size % HF_BLOCK != 0
                ? -EBADMSG
                : hf_pack_read(pack, &j->cache, 0, HF_BLOCK, &block);
    hf_pack_close(pack);
    j->cache.number = 0;
    if (error)
        return error;
    *state = hf_segment_head_decode(block, inner);
    size_t used = inner->version == 1 ? HF_SEGMENT_HEAD_1 : HF_SEGMENT_HEAD;
    if (*state == HF_HEAD_GOOD && !is_zero(block + used, HF_BLOCK - used))
        *state = HF_HEAD_NONE;
    return 0;
}

static enum hf_status pack_find(struct hf_journal *j, const struct hf_name *name,
                                struct hf_error *why)
{
    struct hf_segments *s = &j->segments;
    struct hf_segment_head outer = { 0 }, inner = { 0 };
    struct hf_file *file;
    enum hf_head_state state = HF_HEAD_NONE;
    int error = j->io->open(j->dir, name->text, HF_OPEN_READ, &file);
    if (error)
        return hf_error_set(why, HF_STORAGE_FAILURE, "cannot open %s: %s", name->text,
                            strerror(-error));
    error = pack_head(j, file, &outer, &inner, &state);
    uint32_t version = error == -EBADMSG ? hf_pack_version(j->io, file) : 0;
    j->io->close(file);
    if (hf_journal_unread(error))
        return refuse_unread(why, name->text, error);
    if (version > HF_PACK_VERSION)
        return refuse_newer(why, name->text, version, HF_PACK_VERSION);
    if (error)
        return hf_error_set(why, HF_STORE_DAMAGED, "%s is damaged. " READ_FIRST, name->text);
    if (state == HF_HEAD_NEWER)
        return refuse_newer(why, name->text, inner.version, HF_FORMAT_VERSION);
    if (state != HF_HEAD_GOOD || !same_store(j, &inner) || outer.number != name->number ||
        outer.base != next_base(s) || inner.number != outer.number || inner.base != outer.base ||
        inner.size != outer.size)
        return hf_error_set(why, HF_STORE_DAMAGED,
                            "%s does not match its place in the journal. " READ_FIRST, name->text);
    if (hf_segments_add(s, &inner, HF_SEGMENT_PACKED, NULL) != 0)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to list the journal's segments");
    return HF_OK;
}

/* A segment is missing. Unreadable files, and files of a newer program, are reported first,
 * wherever they are. */
static enum hf_status rest_look(struct hf_journal *j, const struct hf_names *names, size_t from,
                                struct hf_error *why)
{
    for (size_t i = from; i < names->count; i++) {
        const struct hf_name *name = &names->list[i];
        if (name->kind != HF_FILENAME_LOG && name->kind != HF_FILENAME_PACK)
            continue;
        enum hf_status st =
            name->kind == HF_FILENAME_LOG ? segment_find(j, name, why) : pack_find(j, name, why);
        if (st != HF_OK && st != HF_STORE_DAMAGED)
            return st;
    }
    return HF_OK;
}

static enum hf_status segments_open(struct hf_journal *j, const struct hf_names *names,
                                    struct hf_error *why)
{
    uint64_t next = 1;
    for (size_t i = 0; i < names->count; i++) {
        const struct hf_name *name = &names->list[i];
        if (name->kind != HF_FILENAME_LOG && name->kind != HF_FILENAME_PACK)
            continue;
        if (name->number + 1 == next && name->kind == HF_FILENAME_PACK) {
            /* A crash came between packing and removing the plain file: the plain one is used. The
             * packed one is removed once the store is open: a failed open changes nothing. */
            j->has_twins = true;
            continue;
        }
        if (name->number != next) {
            enum hf_status rest = rest_look(j, names, i, why);
            return rest != HF_OK
                       ? rest
                       : hf_error_set(why, HF_STORE_DAMAGED,
                                      "journal segment %" PRIu64 " is missing. " READ_FIRST, next);
        }
        enum hf_status st =
            name->kind == HF_FILENAME_LOG ? segment_find(j, name, why) : pack_find(j, name, why);
        if (st != HF_OK)
            return st;
        next++;
    }
    return HF_OK;
}

/* ---- Before the snapshot ---- */

static void progress(struct hf_journal *j, uint64_t done, uint64_t total)
{
    if (j->on_progress)
        j->on_progress(j->arg, done, total > done ? total : done);
}

/* Verify the batches before the snapshot, for a while; and rebuild holds.idx if needed. */
static enum hf_status verify_before(struct hf_journal *j, const struct hf_snapshot_info *info,
                                    struct hf_error *why)
{
    struct hf_verify *v = &j->verify;
    bool rebuild = j->tables.holds.covers < info->start;
    uint64_t begun = j->io->monotonic_ns(j->io->ctx);
    hf_verify_begin(j, info, rebuild);
    while ((rebuild || !j->no_verify) && hf_verify_step(j, NULL)) {
        progress(j, v->position, v->stop);
        if (!rebuild && j->io->monotonic_ns(j->io->ctx) - begun > VERIFY_NS)
            return HF_OK;
    }
    /* The store can open without this check, except if holds.idx needs it. */
    if (v->error && (rebuild || v->error == -ENOMEM))
        return refuse_unread_at(why, j, v->position, v->error);
    if (v->state != HF_VERIFY_BAD)
        return HF_OK;
    return v->status == HF_NO_MEMORY
               ? hf_error_set(why, HF_NO_MEMORY, "not enough memory to read the journal")
               : refuse_damage(why, j, v->position, v->what);
}

/* ---- After the snapshot ---- */

/* Make the newest batch durable once more. The previous process may have died between writing and
 * syncing it, or stopped because the sync failed: then the system may show it to us and still lose
 * it, and a retry would get an answer that is on no disk. Only writing makes its pages dirty again,
 * so it is written, not only synced. Earlier batches are durable: a batch is written after the
 * previous one was synced. */
static int last_settle(struct hf_journal *j, uint64_t last)
{
    struct hf_segment *g = hf_segments_at(&j->segments, last);
    struct hf_batch_head head;
    const unsigned char *data;
    int error = hf_journal_batch(j, last, false, &data, &head);
    if (!error)
        error = hf_segments_open_writer(&j->segments, g);
    size_t lead = last == g->base + HF_BLOCK ? HF_BLOCK : 0;
    if (!error)
        error = j->io->touch(g->source, g->data, last - lead - g->base, lead);
    if (error)
        return error;
    size_t size = lead + (size_t)hf_block_up(head.length);
    unsigned char *copy = calloc(1, size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, data - lead, lead + head.length);
    error = j->io->write(g->writer, copy, size, last - lead - g->base);
    free(copy);
    return error ? error : j->io->sync(g->writer);
}

/* The active segment contains the newest batch; later ones were only prepared. A segment is
 * compressed only after a batch in the next one, so none of these is compressed. */
static enum hf_status states_set(struct hf_journal *j, struct hf_error *why)
{
    struct hf_segments *s = &j->segments;
    for (size_t i = 0; i < s->count; i++) {
        struct hf_segment *g = &s->list[i];
        if (g->number < j->active)
            continue;
        if (g->state == HF_SEGMENT_PACKED)
            return refuse_damage(why, j, j->end > g->base ? j->end : g->base,
                                 "the segment is compressed, but the batches after it are missing");
        hf_segments_become(s, g, g->number == j->active ? HF_SEGMENT_ACTIVE : HF_SEGMENT_PREPARED);
        if (g->number > j->active)
            g->version = 0;
    }
    return HF_OK;
}

/* Is this the place in the journal where the snapshot began? */
static bool proof_fits(const struct hf_snapshot_info *proof, const struct hf_link *link)
{
    return link->sequence == proof->next_sequence &&
           memcmp(link->chain, proof->chain, HF_DIGEST_SIZE) == 0;
}

static const char proof_differs[] = "the batches there do not match the newest snapshot";

/* Compare a batch that was found with the snapshot. NULL: no contradiction. */
static const char *batch_unproven(const struct hf_walk *w, const struct hf_snapshot_info *proof,
                                  bool *passed)
{
    if (!proof->whole || *passed || w->position < proof->start)
        return NULL;
    *passed = true;
    return proof_fits(proof, &w->link) && w->head.now >= proof->now ? NULL : proof_differs;
}

/* The same for the end of the journal. */
static const char *end_unproven(const struct hf_walk *w, const struct hf_snapshot_info *proof,
                                bool passed)
{
    if (!proof->whole)
        return NULL;
    if (w->position < proof->start || w->position < proof->end)
        return "the journal ends here, before the end that its snapshot records";
    if (w->position == proof->start && w->suspect)
        return "there are unexpected bytes after the last batch before the newest "
               "snapshot";
    return passed || proof_fits(proof, &w->link) ? NULL : proof_differs;
}

/* Replay the journal after the loaded snapshot. proof: the newest complete one. last: out, the
 * position of the newest batch, 0 if there is none. */
static enum hf_status replay_all(struct hf_walk *w, const struct hf_snapshot_info *proof,
                                 uint64_t *last, struct hf_error *why)
{
    struct hf_journal *j = w->j;
    bool passed = false;
    if (!hf_closed_fits(&j->closed, w->link.sequence - 1, w->link.chain))
        return refuse_damage(why, j, w->position, hf_closed_differs);
    for (*last = 0;;) {
        enum hf_step step = hf_walk_step(w);
        if (step == HF_STEP_DAMAGE)
            return w->error ? refuse_unread_at(why, j, w->position, w->error)
                            : refuse_damage(why, j, w->position, w->what);
        const char *what = step == HF_STEP_END ? end_unproven(w, proof, passed)
                                               : batch_unproven(w, proof, &passed);
        if (what)
            return refuse_damage(why, j, w->position, what);
        if (step == HF_STEP_END)
            return HF_OK;
        enum hf_status st = hf_walk_apply(j, w->position, &w->head, w->data, false);
        if (st != HF_OK)
            return st == HF_NO_MEMORY
                       ? hf_error_set(why, st, "not enough memory to hold the store's tables")
                       : refuse_damage(why, j, w->position, "an entry there is malformed");
        *last = w->position;
        hf_walk_on(w);
        if (!hf_closed_fits(&j->closed, w->link.sequence - 1, w->link.chain))
            return refuse_damage(why, j, *last, hf_closed_differs);
        progress(j, w->position, next_base(&j->segments));
    }
}

/* Does the journal reach as far as its note says? The batch's hash was compared when it was
 * read. */
static enum hf_status closed_check(struct hf_journal *j, uint64_t newest, struct hf_error *why)
{
    if (newest >= j->closed.sequence)
        return HF_OK;
    return hf_error_set(why, HF_STORE_DAMAGED,
                        "the journal is damaged at its end: the note `" HF_CLOSED_NAME
                        "` names batch %" PRIu64 " (before position %" PRIu64
                        "), but the last whole batch is %" PRIu64
                        ". `holdfast audit` shows what is whole. " READ_FIRST,
                        j->closed.sequence, j->closed.end, newest);
}

static enum hf_status replay(struct hf_journal *j, const struct hf_snapshot_info *info,
                             const struct hf_snapshot_info *proof, struct hf_error *why)
{
    struct hf_walk w = { .j = j,
                         .position = info->start,
                         .from = proof->whole ? proof->start : 0,
                         .link = { .sequence = info->next_sequence, .now = info->now } };
    memcpy(w.link.chain, info->chain, HF_DIGEST_SIZE);
    uint64_t last = 0;
    enum hf_status st = replay_all(&w, proof, &last, why);
    if (st != HF_OK)
        return st;
    if (w.position < info->end) /* an older snapshot was loaded in place of the newest */
        return refuse_damage(why, j, w.position,
                             "the journal ends here, before the end that its snapshot records");
    j->end = j->durable = w.position;
    j->next_sequence = w.link.sequence;
    /* A snapshot may have a later time than the newest batch. Later batches must not have an
     * earlier time, even if the tables were not loaded from it. */
    hf_time now = proof->whole && proof->now > w.link.now ? proof->now : w.link.now;
    j->now = now > 0 ? now : 0;
    memcpy(j->chain, w.link.chain, HF_DIGEST_SIZE);
    if (w.link.sequence > 1)
        j->head = (struct hf_head){ .position = j->durable, .at = w.link.now };
    memcpy(j->head.hash, j->chain, HF_DIGEST_SIZE);
    const struct hf_segment *g = hf_segments_at(&j->segments, last          ? last
                                                              : info->start ? info->start - 1
                                                                            : 0);
    if (!g)
        return refuse_damage(why, j, w.position,
                             "the journal ends before the start of its snapshot");
    j->active = last || info->start ? g->number : 0;
    st = states_set(j, why);
    if (st != HF_OK)
        return st;
    st = closed_check(j, j->next_sequence - 1, why);
    if (st != HF_OK) /* a damaged last batch that the note names stays as it is */
        return st;
    j->sealed_highest = j->tables.holds.highest;
    int error = last ? last_settle(j, last) : 0;
    return error ? hf_error_set(why, HF_STORAGE_FAILURE,
                                "cannot make the end of the journal durable: %s", strerror(-error))
                 : HF_OK;
}

/* ---- Snapshots ---- */

static enum hf_status tables_anew(struct hf_journal *j, struct hf_error *why)
{
    hf_tables_free(&j->tables);
    j->tables = (struct hf_tables){ 0 };
    if (!hf_tables_init(&j->tables, &j->keys, j->io, j->dir))
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory for the store's tables");
    return HF_OK;
}

/* Load the tables from one snapshot, if possible. proof: from the newest complete snapshot, filled
 * in if this is it. *loaded: out; if false, the tables are initialized again. */
static enum hf_status snapshot_try(struct hf_journal *j, const struct hf_name *name,
                                   struct hf_snapshot_info *info, struct hf_snapshot_info *proof,
                                   bool *loaded, struct hf_error *why)
{
    struct hf_snapshot_info seen;
    int error;
    enum hf_status st = hf_snapshot_load(j, name->text, info, &error);
    *loaded = st == HF_OK && info->start == name->number;
    seen = *info;
    if (st == HF_STORE_DAMAGED && !proof->whole)
        st = hf_snapshot_look(j, name->text, &seen, &error);
    if (st == HF_STORAGE_FAILURE)
        return refuse_unproven(why, name->text, error);
    if (st == HF_NO_MEMORY)
        return hf_error_set(why, st, "not enough memory to load %s", name->text);
    if (st == HF_OK && !proof->whole && seen.start == name->number)
        *proof = seen;
    if (*loaded)
        return HF_OK;
    hf_journal_note(j, 1, "%s cannot be used; the store reads the journal instead", name->text);
    *info = (struct hf_snapshot_info){ .next_sequence = 1 };
    return tables_anew(j, why);
}

static enum hf_status snapshot_find(struct hf_journal *j, const struct hf_names *names,
                                    struct hf_snapshot_info *info, struct hf_snapshot_info *proof,
                                    struct hf_error *why)
{
    enum hf_status st = tables_anew(j, why);
    bool loaded = false;
    *proof = *info = (struct hf_snapshot_info){ .next_sequence = 1 };
    for (size_t i = names->count; st == HF_OK && !loaded && i > 0; i--)
        if (names->list[i - 1].kind == HF_FILENAME_SNAPSHOT)
            st = snapshot_try(j, &names->list[i - 1], info, proof, &loaded, why);
    if (loaded)
        j->snapshot_start = info->start;
    j->token_cursor = info->token_cursor;
    j->token_cursor_entry = info->token_cursor_entry;
    return st;
}

/* ---- holds.idx ---- */

/* Use holds.idx as far as it matches the snapshot; the rest is rebuilt from the journal. */
static void index_open(struct hf_journal *j, const struct hf_snapshot_info *info)
{
    struct hf_holds *h = &j->tables.holds;
    if (info->start == 0)
        return; /* the whole journal is read anyway */
    int level;
    const char *why = hf_holds_open(h, &j->keys, info->start, info->next_sequence, &level);
    uint64_t bad = hf_holds_check(h, INDEX_CHECK_MAX);
    if (!why && !bad)
        return;
    if (why)
        hf_journal_note(j, level, "holds.idx %s; the store rebuilds it from the journal", why);
    else
        hf_journal_note(j, 1,
                        "holds.idx is damaged at byte %" PRIu64
                        "; the store rebuilds it from the journal",
                        bad);
    j->index_old |= h->covers == 0; /* all of it is read now */
    j->stats.index_rebuilds++;
}

/* Rebuild wrong parts, for a while: a small store has all of them before it serves. */
static void index_rebuild(struct hf_journal *j)
{
    uint64_t begun = j->io->monotonic_ns(j->io->ctx);
    for (unsigned steps = 1; hf_reindex_step(j); steps++) {
        if (steps >= REINDEX_STEPS && j->io->monotonic_ns(j->io->ctx) - begun >= REINDEX_NS)
            break;
        hf_segments_tick(&j->segments);
    }
}

/* There is no complete batch. Then the store is new, or everything is lost: some files are only
 * made after the first batch. */
static enum hf_status remains_check(const struct hf_names *names, struct hf_error *why)
{
    for (size_t i = names->count; i > 0; i--) {
        const struct hf_name *name = &names->list[i - 1];
        if (hf_filename_follows_batch(name->kind, name->number))
            return hf_error_set(
                why, HF_STORE_DAMAGED,
                "%s belongs to a store whose journal is missing or has no whole batch: "
                "the journal is damaged or was removed. The store does not open, so "
                "that no effect happens twice. To start a new store, use an empty "
                "directory. " READ_FIRST,
                name->text);
    }
    return HF_OK;
}

/* No header of the journal is valid. Either nothing was ever written, or it is damaged: a complete
 * batch would show that. */
static enum hf_status fresh_check(struct hf_journal *j, const struct hf_names *names,
                                  struct hf_error *why)
{
    struct hf_walk w = { .j = j, .link = { .sequence = 1 } };
    if (hf_walk_step(&w) == HF_STEP_DAMAGE)
        return w.error ? refuse_unread_at(why, j, w.position, w.error)
                       : refuse_damage(why, j, 0, "the header of the first segment is damaged");
    return remains_check(names, why);
}

static enum hf_status recover(struct hf_journal *j, struct hf_names *names, bool *fresh,
                              struct hf_error *why)
{
    struct hf_snapshot_info info, proof;
    enum hf_status st = segments_open(j, names, why);
    if (st != HF_OK)
        return st;
    *fresh = !j->has_keys;
    if (*fresh) {
        st = fresh_check(j, names, why);
        return st == HF_OK ? closed_check(j, 0, why) : st;
    }
    st = snapshot_find(j, names, &info, &proof, why);
    if (st == HF_OK)
        index_open(j, &info);
    if (st == HF_OK)
        st = verify_before(j, &info, why);
    if (st == HF_OK)
        st = replay(j, &info, &proof, why);
    if (st == HF_OK && j->next_sequence == 1)
        st = remains_check(names, why);
    if (st == HF_OK)
        index_rebuild(j);
    return st;
}

enum hf_status hf_journal_recover(struct hf_journal *j, bool *fresh, struct hf_error *why)
{
    struct hf_names names;
    uint64_t before = j->io->monotonic_ns(j->io->ctx);
    *fresh = false;
    int error = hf_closed_read(j->io, j->dir, &j->closed);
    if (error)
        return refuse_unproven(why, HF_CLOSED_NAME, error);
    error = hf_names_list(j->io, j->dir, &names);
    enum hf_status st;
    if (error == -ENOMEM)
        st = hf_error_set(why, HF_NO_MEMORY, "not enough memory to list the store's directory");
    else if (error)
        st = hf_error_set(why, HF_STORAGE_FAILURE, "cannot list the store's directory: %s",
                          strerror(-error));
    else
        st = recover(j, &names, fresh, why);
    hf_names_free(&names);
    j->stats.recovery_ns = j->io->monotonic_ns(j->io->ctx) - before;
    return st;
}

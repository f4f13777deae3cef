/* Recovery: find the files, load the newest snapshot, replay the journal behind it, and tell a batch that a
 * crash cut short from damage (doc/FORMAT.md, "The end of the journal"). */
#include "base/bug.h"
#include "base/bytes.h"
#include "store/journal/maintain.h"
#include "store/journal/sound.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* At most so much of the journal before the snapshot is checked at a start; the audit checks all. */
#define VERIFY_MAX (UINT64_C(8) << 30)

struct names {
    struct name {
        char text[HF_SEGMENT_NAME_SIZE];
        uint64_t number; /* of a segment; `start` of a snapshot */
        enum { NAME_LOG, NAME_PACK, NAME_SNAPSHOT, NAME_TMP } kind;
    } * list; /* owned */
    size_t count, room;
    bool failed;
};

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

static bool name_parse(const char *text, struct name *out)
{
    int used = 0;
    if (strlen(text) >= sizeof out->text)
        return false;
    snprintf(out->text, sizeof out->text, "%s", text);
    if (ends_with(text, ".tmp")) {
        out->kind = NAME_TMP;
        return true;
    }
    if (sscanf(text, "journal-%8" SCNu64 "%n", &out->number, &used) == 1 && used == 16) {
        out->kind = strcmp(text + used, ".log") == 0 ? NAME_LOG : NAME_PACK;
        return out->kind == NAME_LOG || strcmp(text + used, ".zst") == 0;
    }
    if (sscanf(text, "snapshot-%16" SCNx64 "%n", &out->number, &used) == 1 && used == 25) {
        out->kind = NAME_SNAPSHOT;
        return strcmp(text + used, ".snap") == 0;
    }
    return false;
}

static bool name_each(void *arg, const char *text)
{
    struct names *n = arg;
    struct name name = { .number = 0 };
    if (!name_parse(text, &name))
        return true;
    if (n->count == n->room) {
        size_t room = n->room ? n->room * 2 : 64;
        struct name *list = realloc(n->list, room * sizeof *list);
        if (!list) {
            n->failed = true;
            return false;
        }
        n->list = list;
        n->room = room;
    }
    n->list[n->count++] = name;
    return true;
}

static int name_compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

static enum hf_status refuse(struct hf_error *why, enum hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum hf_status refuse(struct hf_error *why, enum hf_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    why->status = status;
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return status;
}

static enum hf_status refuse_damage(struct hf_error *why, struct hf_journal *j, uint64_t position,
                                    const char *what)
{
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    char name[HF_SEGMENT_NAME_SIZE] = "the journal";
    if (g)
        hf_segment_name(g->number, g->state == HF_SEGMENT_PACKED ? ".zst" : ".log", name);
    return refuse(why, HF_STORE_DAMAGED,
                  "the journal is damaged in %s at byte %" PRIu64 " (position %" PRIu64 "): %s. The store "
                  "does not open, so that nothing is done twice; `holdfast audit` shows what is whole. "
                  "Restore the file from a copy",
                  name, g ? position - g->base : 0, position, what);
}

/* Could it not be read now? That says nothing about what is in it. */
static bool unread(int error)
{
    return error && error != -EBADMSG && error != -EINVAL;
}

static enum hf_status refuse_unread(struct hf_error *why, const char *name, int error)
{
    return refuse(why, error == -ENOMEM ? HF_NO_MEMORY : HF_STORAGE_FAILURE, "cannot read %s: %s", name,
                  strerror(-error));
}

/* ---- Segments ---- */

static bool same_store(struct hf_journal *j, const struct hf_segment_head *head)
{
    if (j->segments.count == 0 || !j->has_keys) {
        j->keys = head->keys;
        j->has_keys = true;
    }
    return memcmp(&j->keys, &head->keys, sizeof j->keys) == 0;
}

/* Open one segment file and put it at the end of the list. A file without a header is one that was
 * prepared; whether it really holds nothing is looked at later. */
static enum hf_status segment_open(struct hf_journal *j, const struct name *name, struct hf_error *why)
{
    struct hf_segments *s = &j->segments;
    const struct hf_segment *last = s->count ? &s->list[s->count - 1] : NULL;
    struct hf_segment_head head = { 0 };
    struct hf_file *file;
    unsigned char bytes[HF_SEGMENT_HEAD];
    uint64_t size = 0;
    int error = j->io->open(j->dir, name->text, HF_OPEN_WRITE, &file);
    if (error)
        return refuse(why, HF_STORAGE_FAILURE, "cannot open %s: %s", name->text, strerror(-error));
    error = j->io->size(file, &size);
    if (!error && size >= sizeof bytes)
        error = j->io->read(file, bytes, sizeof bytes, 0);
    if (error || size < HF_BLOCK || size % HF_BLOCK != 0) {
        j->io->close(file);
        return error ? refuse(why, HF_STORAGE_FAILURE, "cannot read %s: %s", name->text, strerror(-error))
                     : refuse(why, HF_STORE_DAMAGED,
                              "%s has %" PRIu64 " bytes, which no segment has: it "
                              "was cut short; restore it from a copy",
                              name->text, size);
    }
    enum hf_head_state state = hf_segment_head_decode(bytes, &head);
    uint64_t base = last ? last->base + last->size : 0;
    bool good = state == HF_HEAD_GOOD && same_store(j, &head);
    if (state == HF_HEAD_NEWER) {
        j->io->close(file);
        return refuse(why, HF_STORE_NEWER,
                      "%s is of format version %u, and this program knows up to %u: "
                      "use a newer holdfast",
                      name->text, head.version, HF_FORMAT_VERSION);
    }
    if (good && (head.number != name->number || head.base != base || head.size != size)) {
        j->io->close(file);
        return refuse(why, HF_STORE_DAMAGED,
                      "%s does not fit: it says it is segment %" PRIu64 " at position "
                      "%" PRIu64 " of %" PRIu64 " bytes; restore it from a copy",
                      name->text, head.number, head.base, head.size);
    }
    head.number = name->number;
    head.base = base;
    head.size = size;
    error = hf_segments_add(s, &head, good ? HF_SEGMENT_SEALED : HF_SEGMENT_PREPARED, file);
    if (error)
        return refuse(why, HF_STORAGE_FAILURE, "cannot map %s: %s", name->text, strerror(-error));
    return HF_OK;
}

static enum hf_status pack_open(struct hf_journal *j, const struct name *name, struct hf_error *why)
{
    struct hf_segments *s = &j->segments;
    const struct hf_segment *last = s->count ? &s->list[s->count - 1] : NULL;
    struct hf_segment_head head = { 0 };
    struct hf_file *file;
    struct hf_pack *pack;
    int error = j->io->open(j->dir, name->text, HF_OPEN_READ, &file);
    if (error)
        return refuse(why, HF_STORAGE_FAILURE, "cannot open %s: %s", name->text, strerror(-error));
    error = hf_pack_open(j->io, file, &pack);
    if (error) {
        j->io->close(file);
        if (unread(error))
            return refuse_unread(why, name->text, error);
        return refuse(why, HF_STORE_DAMAGED, "%s is damaged or of a newer format; restore it from a copy",
                      name->text);
    }
    hf_pack_head(pack, &head);
    const unsigned char *bytes;
    struct hf_segment_head inner;
    error = hf_pack_read(pack, &j->cache, 0, HF_SEGMENT_HEAD, &bytes);
    bool fits = !error && head.number == name->number && head.base == (last ? last->base + last->size : 0) &&
                hf_segment_head_decode(bytes, &inner) == HF_HEAD_GOOD && same_store(j, &inner);
    hf_pack_close(pack);
    j->cache.pack = NULL;
    if (!fits) {
        j->io->close(file);
        if (unread(error))
            return refuse_unread(why, name->text, error);
        return refuse(why, HF_STORE_DAMAGED, "%s does not fit where it stands; restore it from a copy",
                      name->text);
    }
    error = hf_segments_add(s, &head, HF_SEGMENT_PACKED, file);
    return error ? refuse_unread(why, name->text, error) : HF_OK;
}

static enum hf_status segments_open(struct hf_journal *j, const struct names *names, struct hf_error *why)
{
    uint64_t next = 1;
    for (size_t i = 0; i < names->count; i++) {
        const struct name *name = &names->list[i];
        if (name->kind != NAME_LOG && name->kind != NAME_PACK)
            continue;
        if (name->number + 1 == next && name->kind == NAME_PACK) {
            /* A crash came between packing and removing the plain file: the plain one stands. */
            j->io->remove(j->dir, name->text);
            continue;
        }
        if (name->number != next)
            return refuse(why, HF_STORE_DAMAGED,
                          "journal segment %" PRIu64 " is missing; restore the file "
                          "from a copy",
                          next);
        enum hf_status st = name->kind == NAME_LOG ? segment_open(j, name, why) : pack_open(j, name, why);
        if (st != HF_OK)
            return st;
        next++;
    }
    return HF_OK;
}

/* ---- Walking batches ---- */

struct walk {
    struct hf_journal *j;
    uint64_t position; /* of the batch that is expected */
    uint64_t sequence; /* its sequence; 0: any */
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    bool check_chain;
    uint64_t stop;    /* do not go past this position */
    uint64_t suspect; /* a batch with something behind it that should be zeros, or 0 */
    int error;        /* a batch could not be read: what looks like damage may be none */
    const unsigned char *data;
    struct hf_batch_head head;
};

enum step { STEP_BATCH, STEP_END, STEP_DAMAGE };

/* Is there a whole batch with a higher sequence anywhere from `position` on? */
static bool later_batch(struct walk *w, uint64_t position)
{
    struct hf_journal *j = w->j;
    struct hf_batch_head head;
    const unsigned char *data;
    /* A header that is whole tells how long its batch was meant to be: what lies inside it are its own
     * bytes, whatever they look like. */
    if (hf_journal_batch(j, position, false, &data, &head) == 0 && head.sequence == w->sequence)
        position += hf_block_up(head.length);
    for (;; position += HF_BLOCK) {
        const struct hf_segment *g = hf_segments_at(&j->segments, position);
        if (!g)
            return false;
        int error = hf_journal_batch(j, position, true, &data, &head);
        if (unread(error))
            w->error = error;
        if (unread(error) || (error == 0 && head.sequence > w->sequence))
            return true;
    }
}

/* Go to the batch at w->position, or to the first of the next segment. */
static enum step walk_step(struct walk *w)
{
    struct hf_journal *j = w->j;
    uint64_t tries[2] = { w->position, 0 };
    const struct hf_segment *g = hf_segments_at(&j->segments, w->position);
    if (!g)
        return STEP_END;
    tries[1] = w->position == g->base ? g->base + HF_BLOCK : g->base + g->size + HF_BLOCK;
    for (size_t i = 0; i < 2; i++) {
        if (tries[i] >= w->stop)
            break;
        int error = hf_journal_batch(j, tries[i], true, &w->data, &w->head);
        if (unread(error)) {
            w->error = error;
            return STEP_DAMAGE;
        }
        if (error || (w->sequence && w->head.sequence != w->sequence))
            continue;
        /* Only a batch that has a follower was surely written in full, its padding included. */
        if (w->suspect) {
            w->position = w->suspect;
            return STEP_DAMAGE;
        }
        /* A segment's header and its first batch are one write, which a crash can tear anywhere. */
        g = hf_segments_at(&j->segments, tries[i]);
        if (g->state == HF_SEGMENT_PREPARED && tries[i] == g->base + HF_BLOCK) {
            bool lasted = later_batch(w, tries[i]);
            w->position = lasted ? g->base : w->position;
            return lasted ? STEP_DAMAGE : STEP_END;
        }
        w->position = tries[i];
        bool right = w->head.now >= w->now && hf_now_sound(w->head.now) &&
                     (!w->check_chain || memcmp(w->head.chain, w->chain, HF_DIGEST_SIZE) == 0);
        return right ? STEP_BATCH : STEP_DAMAGE;
    }
    if (w->stop != UINT64_MAX)
        return tries[0] >= w->stop || tries[1] >= w->stop ? STEP_END : STEP_DAMAGE;
    return later_batch(w, w->position) ? STEP_DAMAGE : STEP_END;
}

/* The walk met damage, or something that it could not read. */
static enum hf_status refuse_walk(struct hf_error *why, const struct walk *w, const char *what)
{
    return w->error ? refuse_unread(why, "the journal", w->error)
                    : refuse_damage(why, w->j, w->position, what);
}

/* Is everything from the batch's end to the next block zeros? (In a packed segment its CRCs have told.) */
static bool padding_clean(const struct walk *w)
{
    const struct hf_segment *g = hf_segments_at(&w->j->segments, w->position);
    if (!g->data)
        return true;
    const unsigned char *rest = w->data + w->head.length;
    size_t size = (size_t)(hf_block_up(w->head.length) - w->head.length);
    return size == 0 || (*rest == 0 && memcmp(rest, rest + 1, size - 1) == 0);
}

static void walk_on(struct walk *w)
{
    w->suspect = padding_clean(w) ? 0 : w->position;
    if (w->check_chain)
        hf_sha256_of(w->data, w->head.length, w->chain);
    w->now = w->head.now;
    w->sequence = w->head.sequence + 1;
    w->position = hf_block_up(w->position + w->head.length);
}

/* Apply all entries of the batch; or, if holds_only, note where its holds are. */
static enum hf_status batch_apply(struct hf_journal *j, const struct walk *w, bool holds_only, bool count)
{
    uint32_t at = HF_BATCH_HEAD;
    uint32_t entries = 0;
    for (; at < w->head.length; entries++) {
        struct hf_entry_view entry;
        if (!hf_entry_decode(w->data + at, w->head.length - at, &entry))
            return HF_STORE_DAMAGED;
        struct hf_bytes rows = entry.rows;
        struct hf_image image;
        enum hf_status st = HF_OK;
        if (!holds_only)
            st = hf_tables_apply(&j->tables, &entry, w->position + at, true);
        while (holds_only && hf_image_next(&rows, &image)) {
            if (image.kind != HF_ROW_HOLD || image.bytes.size < 8)
                continue;
            uint64_t ordinal = hf_get64(image.bytes.data);
            if (ordinal == 0 || ordinal > j->tables.holds.highest + 1)
                return HF_STORE_DAMAGED; /* they are given out one after the other */
            if (!hf_holds_reserve(&j->tables.holds, ordinal, 1))
                return HF_NO_MEMORY;
            hf_holds_set(&j->tables.holds, ordinal, w->position + at);
        }
        hf_rows_bury(&j->tables.rows);
        if (st != HF_OK)
            return st;
        at += entry.size;
        j->stats.recovery_replayed += count;
    }
    return entries == w->head.count ? HF_OK : HF_STORE_DAMAGED;
}

static void progress(struct hf_journal *j, uint64_t done, uint64_t total)
{
    if (j->on_progress)
        j->on_progress(j->arg, done, total > done ? total : done);
}

/* The sequence with which a segment begins, by its header; 0 if it cannot be read. */
static uint64_t first_sequence(struct hf_journal *j, const struct hf_segment *g)
{
    struct hf_segment_head head;
    const unsigned char *data = g->data;
    if (!data && hf_pack_read(g->pack, &j->cache, 0, HF_SEGMENT_HEAD, &data) != 0)
        return 0;
    return hf_segment_head_decode(data, &head) == HF_HEAD_GOOD ? head.first_sequence : 0;
}

/* Check the batches before `stop`, and bring back what holds.idx does not know. */
static enum hf_status verify_before(struct hf_journal *j, const struct hf_snapshot_info *info,
                                    struct hf_error *why)
{
    uint64_t stop = info->start;
    bool rebuild = j->tables.holds.covers < stop;
    uint64_t from = !rebuild && stop > VERIFY_MAX ? stop - VERIFY_MAX : 0;
    const struct hf_segment *g = hf_segments_at(&j->segments, from);
    struct walk w = { .j = j,
                      .position = g ? g->base + HF_BLOCK : HF_BLOCK,
                      .stop = stop,
                      .now = INT64_MIN,
                      .sequence = g ? first_sequence(j, g) : 1 };
    if (rebuild && stop > HF_BLOCK)
        hf_journal_note(j, 0, "holds.idx is missing or old: it is rebuilt from the journal");
    while (w.position < stop) {
        enum step step = walk_step(&w);
        if (step == STEP_END)
            break;
        if (step == STEP_DAMAGE)
            return refuse_walk(why, &w, "a batch there is not as it was written");
        enum hf_status st = rebuild ? batch_apply(j, &w, true, false) : HF_OK;
        if (st != HF_OK)
            return st == HF_NO_MEMORY ? refuse(why, st, "not enough memory to read the journal")
                                      : refuse_damage(why, j, w.position, "an entry there is malformed");
        walk_on(&w);
        progress(j, w.position, stop);
    }
    if (stop > 0 && (w.suspect || w.sequence != info->next_sequence))
        return refuse_damage(why, j, w.suspect ? w.suspect : w.position,
                             "a batch there is not as it was written");
    return HF_OK;
}

static uint64_t journal_size(const struct hf_journal *j)
{
    const struct hf_segments *s = &j->segments;
    return s->count ? s->list[s->count - 1].base + s->list[s->count - 1].size : 0;
}

/* The header of a segment that is in use, and the zeros behind it. */
static bool head_clean(const struct hf_segment *g)
{
    if (g->state == HF_SEGMENT_PREPARED)
        return false;
    for (size_t i = HF_SEGMENT_HEAD; g->data && i < HF_BLOCK; i++)
        if (g->data[i] != 0)
            return false;
    return true;
}

/* Make the newest batch durable once more. The process before may have died between writing and syncing it, or
 * stopped because the sync failed: then the system may show it to us and still lose it, and whoever asks again
 * would be told something that is on no disk. Only writing makes its pages dirty again, so it is written, not only
 * synced. Those before it are durable: a batch is written when the one before has landed. */
static int last_settle(struct hf_journal *j, uint64_t last)
{
    const struct hf_segment *g = hf_segments_at(&j->segments, last);
    struct hf_batch_head head;
    if (!g->data || !hf_batch_head_decode(g->data + (last - g->base), (size_t)(g->base + g->size - last),
                                          last, false, &head))
        return -EBADMSG;
    size_t lead = last == g->base + HF_BLOCK ? HF_BLOCK : 0;
    size_t size = lead + (size_t)hf_block_up(head.length);
    uint64_t at = last - lead - g->base;
    unsigned char *copy = calloc(1, size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, g->data + at, lead + head.length);
    int error = j->io->write(g->file, copy, size, at);
    free(copy);
    return error ? error : j->io->sync(g->file);
}

static enum hf_status replay(struct hf_journal *j, const struct hf_snapshot_info *info, struct hf_error *why)
{
    struct walk w = { .j = j,
                      .position = info->start,
                      .sequence = info->next_sequence,
                      .now = info->now,
                      .check_chain = true,
                      .stop = UINT64_MAX };
    memcpy(w.chain, info->chain, HF_DIGEST_SIZE);
    uint64_t last = 0;
    for (;;) {
        enum step step = walk_step(&w);
        if (step == STEP_DAMAGE)
            return refuse_walk(why, &w, "a batch there is not as it was written, and later ones are there");
        if (step == STEP_END)
            break;
        if (HF_BUG(recovery_drops_last) && w.sequence > 2 && !later_batch(&w, w.position))
            break;
        enum hf_status st = batch_apply(j, &w, false, true);
        if (st != HF_OK)
            return st == HF_NO_MEMORY ? refuse(why, st, "not enough memory to hold the store's tables")
                                      : refuse_damage(why, j, w.position, "an entry there is malformed");
        last = w.position;
        walk_on(&w);
        progress(j, w.position, journal_size(j));
    }
    if (w.position < info->end)
        return refuse_damage(why, j, w.position,
                             "the journal ends here, before the end that its snapshot "
                             "knows of");
    j->end = j->durable = w.position;
    j->next_sequence = w.sequence;
    j->now = w.now > 0 && !HF_BUG(recovery_clock_lost) ? w.now : 0;
    memcpy(j->chain, w.chain, HF_DIGEST_SIZE);
    /* The active segment is the one with the newest batch; what is behind it was only prepared. */
    const struct hf_segment *g = hf_segments_at(&j->segments, last          ? last
                                                              : info->start ? info->start - 1
                                                                            : 0);
    if (!g)
        return refuse_damage(why, j, w.position,
                             "the journal ends before the place where its snapshot began");
    j->active = last || info->start ? g->number : 0;
    for (size_t i = 0; i < j->segments.count; i++) {
        struct hf_segment *s = &j->segments.list[i];
        if (s->number <= j->active && !head_clean(s))
            return refuse_damage(why, j, s->base, "the segment's header is not as it was written");
        if (s->number == j->active && s->state != HF_SEGMENT_PACKED)
            s->state = HF_SEGMENT_ACTIVE;
        else if (s->number > j->active)
            s->state = HF_SEGMENT_PREPARED;
    }
    j->sealed_highest = j->tables.holds.highest;
    int error = last ? last_settle(j, last) : 0;
    return error ? refuse(why, HF_STORAGE_FAILURE, "the end of the journal cannot be made durable: %s",
                          strerror(-error))
                 : HF_OK;
}

/* ---- Snapshots ---- */

static enum hf_status tables_anew(struct hf_journal *j, struct hf_error *why)
{
    hf_tables_free(&j->tables);
    j->tables = (struct hf_tables){ 0 };
    if (!hf_tables_init(&j->tables, &j->keys, j->io, j->dir))
        return refuse(why, HF_NO_MEMORY, "not enough memory for the store's tables");
    return HF_OK;
}

static enum hf_status snapshot_find(struct hf_journal *j, const struct names *names,
                                    struct hf_snapshot_info *info, struct hf_error *why)
{
    enum hf_status st = tables_anew(j, why);
    *info = (struct hf_snapshot_info){ .next_sequence = 1 };
    for (size_t i = names->count; st == HF_OK && i > 0; i--) {
        const struct name *name = &names->list[i - 1];
        if (name->kind != NAME_SNAPSHOT)
            continue;
        if (j->snapshot_start) { /* an older one than that in use */
            j->io->remove(j->dir, name->text);
            continue;
        }
        st = hf_snapshot_load(j, name->text, info);
        if (st == HF_NO_MEMORY)
            return refuse(why, st, "not enough memory to load %s", name->text);
        if (st == HF_OK && info->start == name->number) {
            j->snapshot_start = info->start;
            continue;
        }
        hf_journal_note(j, 1, "%s cannot be used; the journal is read instead", name->text);
        st = tables_anew(j, why);
        *info = (struct hf_snapshot_info){ .next_sequence = 1 };
    }
    if (st == HF_OK)
        hf_holds_open(&j->tables.holds, &j->keys);
    j->token_cursor = info->token_cursor;
    return st;
}

static enum hf_status recover(struct hf_journal *j, struct names *names, bool *fresh, struct hf_error *why)
{
    struct hf_snapshot_info info;
    for (size_t i = 0; i < names->count; i++)
        if (names->list[i].kind == NAME_TMP)
            j->io->remove(j->dir, names->list[i].text);
    if (names->count > 0)
        qsort(names->list, names->count, sizeof *names->list, name_compare);
    enum hf_status st = segments_open(j, names, why);
    if (st != HF_OK)
        return st;
    if (!j->has_keys) {
        /* Nothing was ever written, or the first header is damaged: the walk below tells. */
        struct walk w = { .j = j, .sequence = 1 };
        *fresh = true;
        return later_batch(&w, HF_BLOCK)
                   ? refuse_damage(why, j, 0, "the header of the first segment is not as it was written")
                   : HF_OK;
    }
    st = snapshot_find(j, names, &info, why);
    if (st == HF_OK)
        st = verify_before(j, &info, why);
    if (st == HF_OK)
        st = replay(j, &info, why);
    return st;
}

enum hf_status hf_journal_recover(struct hf_journal *j, bool *fresh, struct hf_error *why)
{
    struct names names = { 0 };
    uint64_t before = j->io->monotonic_ns(j->io->ctx);
    *fresh = false;
    int error = j->io->dir_list(j->dir, name_each, &names);
    enum hf_status st;
    if (error)
        st = refuse(why, HF_STORAGE_FAILURE, "cannot list the store's directory: %s", strerror(-error));
    else if (names.failed)
        st = refuse(why, HF_NO_MEMORY, "not enough memory to list the store's directory");
    else
        st = recover(j, &names, fresh, why);
    free(names.list);
    j->stats.recovery_ns = j->io->monotonic_ns(j->io->ctx) - before;
    return st;
}

/* The records of a store in a directory: the journal's segments, batch by batch. */
#include "audit/read.h"

#include "audit/directory.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH_MAGIC 0x31424648U
#define BATCH_HEAD 80
#define BATCH_MAX (UINT32_C(16) << 20) /* no batch is longer */
#define RETRIES 3 /* looks at a place before it is called damaged: a store may be at work */

/* A segment that has been walked, so that an entry in it can be found again. */
struct walked {
    uint64_t base, size;
};

struct place {
    uint64_t segment, offset, sequence;
    char file[HF_AUDIT_NAME_SIZE];
};

struct files {
    struct hf_audit_reader reader;
    int dir;
    uint64_t last_segment; /* highest number in the directory, at the last look */
    struct hf_audit_segment seg;
    uint64_t base;   /* position of seg's first byte */
    uint64_t offset; /* where the next batch should be */
    uint64_t next_sequence;
    hf_time last_now;
    uint8_t chain[HF_DIGEST_SIZE];
    bool chain_known; /* false behind damage: then any chain fits once */
    bool gap;
    struct hf_buffer bytes;
    struct walked *walked; /* owned; walked[n - 1] is segment n */
    size_t walked_count, walked_room;
    struct hf_audit_segment side; /* for hf_audit_reader_entry */
    struct hf_buffer side_bytes;
    bool resume;   /* the last step was damage: go on at `found` */
    bool headless; /* the batch at `found` is taken although its segment's header is not right */
    bool finished; /* damage with nothing whole behind it was the last step */
    struct place found;
    int io_error;   /* of a later segment that was searched */
    int open_error; /* errno of a file that is there and could not be opened, or ENOMEM; 0: none */
};

static uint64_t block_up(uint64_t n)
{
    return (n + HF_AUDIT_BLOCK - 1) / HF_AUDIT_BLOCK * HF_AUDIT_BLOCK;
}

/* ---- Errors ---- */

static enum hf_status fail_newer(struct hf_error *why, const char *file, uint32_t version)
{
    why->status = HF_STORE_NEWER;
    snprintf(why->text, sizeof why->text,
             "%s is written in format version %u; this program (%s) knows version %d. Use a newer holdfast.",
             file, version, HF_VERSION, HF_AUDIT_VERSION);
    return why->status;
}

static enum hf_status fail_memory(struct hf_error *why)
{
    why->status = HF_NO_MEMORY;
    snprintf(why->text, sizeof why->text,
             "There is not enough memory to read the journal. Read a copy of the directory on a machine that "
             "has more.");
    return why->status;
}

static enum hf_status fail_io(struct hf_error *why, const char *file)
{
    if (errno == ENOMEM)
        return fail_memory(why);
    why->status = HF_STORAGE_FAILURE;
    snprintf(why->text, sizeof why->text, "%s cannot be read: %s. Check who may read it, and the disk.", file,
             strerror(errno));
    return why->status;
}

/* error: of opening the directory, or 0. */
static enum hf_status fail_absent(struct hf_error *why, const char *dir, int error)
{
    struct stat st;
    const char *what = "no journal-00000001.log is in it";
    if (error == ENOTDIR)
        what = stat(dir, &st) == 0 ? "it is a file, and a store is a directory"
                                   : "a part of this path is a file";
    else if (error)
        what = "there is no such directory";
    why->status = HF_STORE_ABSENT;
    snprintf(why->text, sizeof why->text, "%.300s is not a Holdfast store: %s.", dir, what);
    return why->status;
}

/* ---- Batches ---- */

/* Is there a whole batch at `offset` of the segment, with its own position in it and at least sequence
 * `lowest`? Its bytes come into `bytes`. Memory that runs out shows as bytes->failed. */
static bool batch_at(struct hf_audit_segment *seg, uint64_t base, uint64_t offset, uint64_t lowest,
                     struct hf_buffer *bytes)
{
    unsigned char h[BATCH_HEAD];
    if (!hf_audit_segment_read(seg, offset, h, sizeof h) || hf_get32(h) != BATCH_MAGIC)
        return false;
    uint32_t length = hf_get32(h + 4);
    if (hf_crc32c(0, h, 72) != hf_get32(h + 72) || hf_get64(h + 16) != base + offset ||
        hf_get64(h + 8) < lowest || length < BATCH_HEAD || length > BATCH_MAX || length > seg->size - offset)
        return false;
    hf_buffer_reset(bytes);
    if (!hf_buffer_reserve(bytes, length) || !hf_audit_segment_read(seg, offset, bytes->data, length))
        return false;
    bytes->size = length;
    return memcmp(bytes->data, h, sizeof h) == 0 &&
           hf_crc32c(0, bytes->data + BATCH_HEAD, length - BATCH_HEAD) == hf_get32(h + 76);
}

static bool batch_here(struct files *r)
{
    return r->seg.fd >= 0 && batch_at(&r->seg, r->base, r->offset, r->next_sequence, &r->bytes) &&
           hf_get64(r->bytes.data + 8) == r->next_sequence;
}

/* Note where a segment lies. Segments are walked in order, so there is one more each time. */
static bool walked_add(struct files *r, const struct hf_audit_segment *seg, uint64_t base)
{
    if (seg->number <= r->walked_count)
        return true;
    if (r->walked_count == r->walked_room) {
        size_t room = r->walked_room ? r->walked_room * 2 : 64;
        struct walked *more = realloc(r->walked, room * sizeof *more);
        if (!more)
            return false;
        r->walked = more;
        r->walked_room = room;
    }
    r->walked[r->walked_count++] = (struct walked){ base, seg->size };
    r->reader.journal.segments += seg->fd >= 0;
    r->reader.journal.packed += seg->fd >= 0 && seg->packed;
    return true;
}

/* Does the header of a used segment say what it should? */
static bool head_belongs(const struct files *r, const struct hf_audit_segment *seg, uint64_t base)
{
    return seg->head_good && seg->head.base == base && seg->head.size == seg->size &&
           (!r->reader.journal.keys_known ||
            memcmp(seg->head.store_id, r->reader.journal.store_id, sizeof seg->head.store_id) == 0);
}

/* Fill in the batch from r->bytes and move on behind it. */
static void batch_take(struct files *r, struct hf_audit_batch *out)
{
    const unsigned char *b = r->bytes.data;
    *out = (struct hf_audit_batch){ .sequence = hf_get64(b + 8),
                                    .position = r->base + r->offset,
                                    .length = hf_get32(b + 4),
                                    .entry_count = hf_get32(b + 64),
                                    .now = (hf_time)hf_get64(b + 24),
                                    .previous_now = r->last_now,
                                    .bytes = hf_mem(b, r->bytes.size),
                                    .segment = r->seg.number,
                                    .offset = r->offset,
                                    .after_gap = r->gap };
    memcpy(out->chain, b + 32, HF_DIGEST_SIZE);
    hf_sha256_of(b, out->length, out->hash);
    out->chain_fits = !r->chain_known || memcmp(out->chain, r->chain, HF_DIGEST_SIZE) == 0;
    out->now_fits = out->now >= r->last_now;
    out->head_fits = r->offset != HF_AUDIT_BLOCK || !r->seg.head_good ||
                     (r->seg.head.first_sequence == out->sequence && r->seg.head.first_now == out->now &&
                      memcmp(r->seg.head.chain, out->chain, HF_DIGEST_SIZE) == 0);
    unsigned char padding[HF_AUDIT_BLOCK] = { 0 };
    uint64_t end = r->offset + out->length;
    size_t rest = (size_t)(block_up(end) - end);
    out->padding_fits = hf_audit_segment_read(&r->seg, end, padding, rest);
    if (!out->padding_fits && r->seg.io_error)
        r->open_error = r->seg.io_error; /* not read is not wrong: the next step fails */
    for (size_t i = 0; i < rest; i++)
        out->padding_fits = out->padding_fits && padding[i] == 0;

    memcpy(r->chain, out->hash, HF_DIGEST_SIZE);
    r->chain_known = true;
    r->last_now = out->now > r->last_now ? out->now : r->last_now;
    r->next_sequence = out->sequence + 1;
    r->offset = block_up(end);
    r->reader.journal.end = r->base + r->offset;
}

/* ---- From segment to segment ---- */

/* Replace r->seg by another look at segment `number`. The first one tells the keys of the store. */
static enum hf_audit_opened segment_enter(struct files *r, uint64_t number, uint32_t *version)
{
    struct hf_audit_segment seg;
    enum hf_audit_opened got = hf_audit_segment_open(r->dir, number, &seg, version);
    if (got == HF_AUDIT_IO)
        r->open_error = errno;
    hf_audit_segment_close(&r->seg);
    r->seg = seg;
    if (number == 1 && got == HF_AUDIT_OPENED && seg.head_good) {
        memcpy(r->reader.journal.store_id, seg.head.store_id, sizeof r->reader.journal.store_id);
        r->reader.journal.id_key = seg.head.id_key;
        r->reader.journal.keys_known = true;
    }
    return got;
}

enum ahead {
    AHEAD_TAKEN,   /* the next segment's first batch is the one we want: we are there */
    AHEAD_NOTHING, /* it is not, or there is no next segment */
    AHEAD_BAD,     /* it is compressed, so it was full once, and cannot be read */
    AHEAD_FAILED   /* why says so */
};

static enum ahead next_segment_try(struct files *r, struct hf_error *why)
{
    struct hf_audit_segment seg;
    uint32_t version = 0;
    uint64_t base = r->base + r->seg.size;
    switch (hf_audit_segment_open(r->dir, r->seg.number + 1, &seg, &version)) {
    case HF_AUDIT_OPENED: break;
    case HF_AUDIT_MISSING: return AHEAD_NOTHING;
    case HF_AUDIT_BAD_PACK: return AHEAD_BAD;
    case HF_AUDIT_NEWER: fail_newer(why, seg.name, version); return AHEAD_FAILED;
    case HF_AUDIT_IO: fail_io(why, seg.name); return AHEAD_FAILED;
    }
    if (!head_belongs(r, &seg, base) || !batch_at(&seg, base, HF_AUDIT_BLOCK, r->next_sequence, &r->bytes) ||
        hf_get64(r->bytes.data + 8) != r->next_sequence) {
        hf_audit_segment_close(&seg);
        return AHEAD_NOTHING;
    }
    if (!walked_add(r, &seg, base)) {
        hf_audit_segment_close(&seg);
        fail_memory(why);
        return AHEAD_FAILED;
    }
    hf_audit_segment_close(&r->seg);
    r->seg = seg;
    r->base = base;
    r->offset = HF_AUDIT_BLOCK;
    return AHEAD_TAKEN;
}

/* A whole batch of sequence `lowest` or more in the segment, from `offset` on. */
static bool segment_search(struct files *r, struct hf_audit_segment *seg, uint64_t base, uint64_t offset,
                           uint64_t lowest, struct place *found)
{
    for (; (offset = hf_audit_segment_skip(seg, offset)) < seg->size; offset += HF_AUDIT_BLOCK) {
        if (!batch_at(seg, base, offset, lowest, &r->bytes)) {
            if (r->bytes.failed)
                r->open_error = ENOMEM;
            continue;
        }
        *found = (struct place){ .segment = seg->number, .offset = offset };
        found->sequence = hf_get64(r->bytes.data + 8);
        memcpy(found->file, seg->name, sizeof found->file);
        return true;
    }
    return false;
}

/* The first whole batch of sequence `lowest` or more, here or in a later segment. A segment that is
 * missing or whose header is not right is taken to be as long as its header or its file says. */
static bool journal_search(struct files *r, uint64_t lowest, struct place *found)
{
    uint64_t base = r->base;
    uint64_t size = r->seg.size;
    if (r->seg.fd >= 0 && segment_search(r, &r->seg, base, r->offset, lowest, found))
        return true;
    hf_audit_directory_look(r->dir, &r->last_segment, NULL);
    for (uint64_t n = r->seg.number + 1; n <= r->last_segment; n++) {
        struct hf_audit_segment seg;
        uint32_t version;
        base += size;
        size = 0;
        enum hf_audit_opened got_open = hf_audit_segment_open(r->dir, n, &seg, &version);
        if (got_open == HF_AUDIT_IO)
            r->open_error = errno;
        if (got_open != HF_AUDIT_OPENED)
            continue;
        size = seg.size;
        if (seg.head_good)
            base = seg.head.base;
        bool got = segment_search(r, &seg, base, HF_AUDIT_BLOCK, lowest, found);
        if (!got && seg.io_error)
            r->io_error = seg.io_error;
        hf_audit_segment_close(&seg);
        if (got)
            return true;
    }
    return false;
}

/* Bytes of a batch that was begun here and cut short, as far as its header tells. */
static uint64_t torn_bytes(struct files *r)
{
    unsigned char h[BATCH_HEAD];
    if (r->seg.fd < 0 || !hf_audit_segment_read(&r->seg, r->offset, h, sizeof h))
        return 0;
    if (hf_get32(h) != BATCH_MAGIC || hf_get64(h + 16) != r->base + r->offset ||
        hf_get64(h + 8) != r->next_sequence)
        return 0;
    uint64_t length = hf_get32(h + 4);
    return length <= r->seg.size - r->offset ? length : HF_AUDIT_BLOCK;
}

static const char *what_is_wrong(struct files *r)
{
    unsigned char h[BATCH_HEAD];
    if (r->seg.fd < 0)
        return "the segment's file is missing or cannot be read";
    if (!r->seg.head_good)
        return "the segment's header is not right";
    if (!hf_audit_segment_read(&r->seg, r->offset, h, sizeof h))
        return "the file ends here, or its compressed frame is damaged";
    if (hf_get32(h) != BATCH_MAGIC)
        return "there is no batch where one should be";
    if (hf_crc32c(0, h, 72) != hf_get32(h + 72))
        return "the batch's header does not fit its CRC";
    if (hf_get64(h + 16) != r->base + r->offset || hf_get64(h + 8) != r->next_sequence)
        return "there is a batch with another position or sequence";
    return "the batch's entries do not fit their CRC";
}

/* Nothing right here, though whole batches follow: note where, and where reading goes on. The search
 * begins with the wanted sequence itself: behind a wrong segment header nothing need be lost. */
static enum hf_audit_step damage_note(struct files *r)
{
    struct hf_audit_damage *d = &r->reader.damage;
    *d = (struct hf_audit_damage){ .offset = r->offset,
                                   .sequence = r->next_sequence,
                                   .what = what_is_wrong(r) };
    memcpy(d->file, r->seg.name, sizeof d->file);
    r->finished = !journal_search(r, r->next_sequence, &r->found);
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

/* The next segment is compressed and cannot be read: damage, even if nothing is behind it. */
static enum hf_audit_step bad_pack_note(struct files *r)
{
    enum hf_audit_step step = damage_note(r);
    snprintf(r->reader.damage.file, sizeof r->reader.damage.file, "journal-%08llu.zst",
             (unsigned long long)r->seg.number + 1);
    r->reader.damage.offset = 0;
    r->reader.damage.what = "the compressed segment's own header or frame table is not right";
    return step;
}

/* Go on at r->found, behind damage. */
static bool resume_there(struct files *r)
{
    uint32_t version;
    while (r->seg.number < r->found.segment) {
        r->base += r->seg.size;
        if (segment_enter(r, r->seg.number + 1, &version) == HF_AUDIT_OPENED && r->seg.head_good)
            r->base = r->seg.head.base;
        if (!walked_add(r, &r->seg, r->base))
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

/* ---- The contract ---- */

static enum hf_audit_step step_failed(enum hf_status status)
{
    HF_ASSERT(status != HF_OK);
    return HF_AUDIT_FAILED;
}

/* Is the open file another one by now? Then look at what the directory shows instead. */
static bool segment_renewed(struct files *r)
{
    uint32_t version;
    if (r->seg.fd >= 0 && !hf_audit_segment_stale(&r->seg))
        return false;
    return segment_enter(r, r->seg.number, &version) == HF_AUDIT_OPENED;
}

/* A first batch counts only with its header, because both were one write. */
static bool wanted_here(struct files *r)
{
    return (r->offset != HF_AUDIT_BLOCK || r->seg.head_good || r->headless) && batch_here(r);
}

/* Nothing right at this place, and no batch that proves that there was: the end, unless the files
 * could not be read properly. */
static enum hf_audit_step end_here(struct files *r, struct hf_error *why)
{
    errno = r->seg.io_error ? r->seg.io_error : r->io_error;
    if (errno)
        return step_failed(fail_io(why, r->seg.io_error ? r->seg.name : "the journal"));
    r->reader.journal.torn_bytes = torn_bytes(r);
    return HF_AUDIT_END;
}

/* A file that is there could not be opened: what it holds is neither read nor missing. */
static enum hf_audit_step open_failed(const struct files *r, struct hf_error *why)
{
    errno = r->open_error;
    return step_failed(fail_io(why, "the journal"));
}

/* ---- The note of an orderly close ---- */

enum { CLOSED_SIZE = 64 };

/* What the note proves to be missing or other at the end that was reached, or NULL. No note, or none that is whole,
 * proves nothing. */
static const char *closed_differs(struct files *r)
{
    unsigned char note[CLOSED_SIZE];
    int fd = openat(r->dir, "closed", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t got = pread(fd, note, sizeof note, 0);
    close(fd);
    if (got != CLOSED_SIZE || memcmp(note, "HFclose1", 8) != 0 ||
        hf_crc32c(0, note, 60) != hf_get32(note + 60))
        return NULL;
    uint64_t newest = r->next_sequence - 1;
    if (hf_get64(note + 8) > newest)
        return "the store was closed in order after later batches than this: they are lost or damaged";
    if (hf_get64(note + 8) == newest && r->chain_known && memcmp(note + 24, r->chain, HF_DIGEST_SIZE) != 0)
        return "the store was closed in order with another last batch than this";
    return NULL;
}

static enum hf_audit_step closed_note(struct files *r, const char *what)
{
    r->reader.damage =
        (struct hf_audit_damage){ .offset = r->offset, .sequence = r->next_sequence, .what = what };
    memcpy(r->reader.damage.file, r->seg.name, sizeof r->reader.damage.file);
    r->finished = true;
    return HF_AUDIT_DAMAGE;
}

static enum hf_audit_step files_next(struct hf_audit_reader *reader, struct hf_audit_batch *batch,
                                     struct hf_error *why)
{
    struct files *r = (struct files *)reader;
    struct place evidence;
    if (r->finished)
        return HF_AUDIT_END;
    if (r->resume && !resume_there(r))
        return step_failed(fail_memory(why));
    if (r->open_error)
        return open_failed(r, why);
    for (int look = 0;; look++) {
        enum ahead ahead = wanted_here(r) ? AHEAD_TAKEN : next_segment_try(r, why);
        if (ahead == AHEAD_TAKEN) {
            r->headless = false;
            batch_take(r, batch);
            return HF_AUDIT_BATCH;
        }
        if (r->bytes.failed)
            return step_failed(fail_memory(why));
        if (ahead == AHEAD_FAILED)
            return HF_AUDIT_FAILED;
        if (look < RETRIES && segment_renewed(r))
            continue;
        bool later = ahead == AHEAD_BAD || journal_search(r, r->next_sequence + 1, &evidence);
        if (r->open_error)
            return open_failed(r, why);
        if (!later) {
            const char *lost = closed_differs(r);
            if (lost && look < RETRIES)
                continue; /* a store that was closed meanwhile has written more since this place was looked at */
            return lost ? closed_note(r, lost) : end_here(r, why);
        }
        if (look < RETRIES)
            continue;
        enum hf_audit_step step = ahead == AHEAD_BAD ? bad_pack_note(r) : damage_note(r);
        return r->open_error ? open_failed(r, why) : step;
    }
}

static enum hf_status first_open(struct files *r, const char *dir, struct hf_error *why)
{
    uint32_t version = 0;
    r->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->dir >= 0 && !hf_audit_directory_look(r->dir, &r->last_segment, &r->reader.journal.bytes_total))
        return fail_io(why, dir);
    if (r->dir < 0 && errno != ENOENT && errno != ENOTDIR)
        return fail_io(why, dir);
    if (r->last_segment == 0)
        return fail_absent(why, dir, r->dir < 0 ? errno : 0);
    enum hf_audit_opened got = segment_enter(r, 1, &version);
    if (got == HF_AUDIT_BAD_PACK ||
        r->seg.io_error) /* too much hangs on it to take one bad look for damage */
        got = segment_enter(r, 1, &version);
    switch (got) {
    case HF_AUDIT_OPENED: break;
    case HF_AUDIT_MISSING: /* later segments are there: the first step finds the damage */
    case HF_AUDIT_BAD_PACK: break;
    case HF_AUDIT_NEWER: return fail_newer(why, r->seg.name, version);
    case HF_AUDIT_IO: return fail_io(why, r->seg.name);
    }
    return walked_add(r, &r->seg, 0) ? HF_OK : fail_memory(why);
}

static bool files_entry(struct hf_audit_reader *reader, uint64_t position, struct hf_audit_entry *entry)
{
    struct files *r = (struct files *)reader;
    size_t n = r->walked_count;
    while (n > 0 && r->walked[n - 1].base > position)
        n--;
    if (n == 0 || position - r->walked[n - 1].base >= r->walked[n - 1].size)
        return false;
    uint64_t offset = position - r->walked[n - 1].base;
    for (int look = 0; look < 2; look++) {
        uint32_t version;
        unsigned char size[4];
        if (look > 0 || r->side.fd < 0 || r->side.number != n) {
            hf_audit_segment_close(&r->side);
            enum hf_audit_opened got = hf_audit_segment_open(r->dir, n, &r->side, &version);
            if (got != HF_AUDIT_OPENED) {
                r->open_error = got == HF_AUDIT_IO ? errno : r->side.io_error; /* it was read before */
                return false;
            }
        }
        if (!hf_audit_segment_read(&r->side, offset, size, sizeof size) ||
            hf_get32(size) > r->side.size - offset)
            continue;
        hf_buffer_reset(&r->side_bytes);
        if (!hf_buffer_reserve(&r->side_bytes, hf_get32(size))) {
            r->open_error = ENOMEM;
            return false;
        }
        if (!hf_audit_segment_read(&r->side, offset, r->side_bytes.data, hf_get32(size)))
            continue;
        if (hf_audit_entry_read(hf_mem(r->side_bytes.data, hf_get32(size)), entry) != NULL)
            continue;
        entry->position = position;
        return true;
    }
    r->open_error = r->side.io_error;
    return false;
}

static void files_close(struct hf_audit_reader *reader)
{
    struct files *r = (struct files *)reader;
    hf_audit_segment_close(&r->seg);
    hf_audit_segment_close(&r->side);
    hf_buffer_free(&r->bytes);
    hf_buffer_free(&r->side_bytes);
    free(r->walked);
    if (r->dir >= 0)
        close(r->dir);
    free(r);
}

enum hf_status hf_audit_reader_open(const char *dir, struct hf_audit_reader **reader, struct hf_error *why)
{
    static const struct hf_audit_source source = { files_next, files_entry, NULL, files_close };
    struct files *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return fail_memory(why);
    r->reader.source = &source;
    r->seg = (struct hf_audit_segment)HF_AUDIT_SEGMENT_INIT;
    r->side = (struct hf_audit_segment)HF_AUDIT_SEGMENT_INIT;
    r->next_sequence = 1;
    r->last_now = INT64_MIN;
    r->chain_known = true; /* zeros stand before batch 1 */
    r->offset = HF_AUDIT_BLOCK;
    enum hf_status st = first_open(r, dir, why);
    if (st == HF_OK)
        *reader = &r->reader;
    else
        files_close(&r->reader);
    return st;
}

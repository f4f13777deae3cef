/* The records of a store in a directory: the journal's segments, batch by batch. */
#include "audit/directory.h"
#include "audit/files.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRIES 3 /* attempts before a place counts as damaged: a server may be writing */

/* ---- Errors ---- */

enum hf_status hf_files_fail_newer(struct hf_error *why, const char *file, uint32_t version)
{
    return hf_error_set(
        why, HF_STORE_NEWER,
        "%s has format version %u. This program (%s) knows version %d. Use a newer holdfast.", file,
        version, HF_VERSION, HF_AUDIT_VERSION);
}

enum hf_status hf_files_fail_memory(struct hf_error *why)
{
    return hf_error_set(why, HF_NO_MEMORY,
                        "Out of memory while reading the journal. Read a copy of the directory on "
                        "a machine with more memory.");
}

enum hf_status hf_files_fail_io(struct hf_error *why, const char *file)
{
    if (errno == ENOMEM)
        return hf_files_fail_memory(why);
    return hf_error_set(why, HF_STORAGE_FAILURE,
                        "%s cannot be read: %s. Check its permissions and the disk.", file,
                        strerror(errno));
}

/* error: errno of opening the directory, or 0. */
static enum hf_status fail_absent(struct hf_error *why, const char *dir, int error)
{
    struct stat st;
    const char *what = "it has no journal-00000001.log";
    if (error == ENOTDIR)
        what = stat(dir, &st) == 0 ? "it is a file, but a store is a directory"
                                   : "a part of this path is a file";
    else if (error)
        what = "there is no such directory";
    return hf_error_set(why, HF_STORE_ABSENT, "%.300s is not a Holdfast store: %s.", dir, what);
}

/* ---- The steps ---- */

static enum hf_audit_step step_failed(enum hf_status status)
{
    HF_ASSERT(status != HF_OK);
    return HF_AUDIT_FAILED;
}

/* The first batch of a segment counts only with the segment's header, which was durable before
 * it. */
static bool wanted_here(struct hf_files *r)
{
    return (r->offset != HF_AUDIT_BLOCK || r->seg.head_good || r->headless) &&
           hf_files_batch_here(r);
}

/* No right batch here, and no evidence that there was one: the end, unless there was a read
 * error. */
static enum hf_audit_step end_here(struct hf_files *r, struct hf_error *why)
{
    errno = r->seg.io_error ? r->seg.io_error : r->io_error;
    if (errno)
        return step_failed(hf_files_fail_io(why, r->seg.io_error ? r->seg.name : r->open_name));
    r->reader.journal.torn_bytes = hf_files_torn_bytes(r);
    return HF_AUDIT_END;
}

/* A file exists but could not be opened, or has an unknown format: its content is not known. */
static bool is_unknown(const struct hf_files *r)
{
    return r->open_error || r->newer;
}

static enum hf_audit_step open_failed(const struct hf_files *r, struct hf_error *why)
{
    if (!r->open_error)
        return step_failed(hf_files_fail_newer(why, r->newer_name, r->newer));
    errno = r->open_error;
    return step_failed(hf_files_fail_io(why, r->open_name[0] ? r->open_name : "the journal"));
}

static enum hf_audit_step end_damage(struct hf_files *r, const char *file, uint64_t offset,
                                     const char *what)
{
    r->reader.damage =
        (struct hf_audit_damage){ .offset = offset, .sequence = r->next_sequence, .what = what };
    snprintf(r->reader.damage.file, sizeof r->reader.damage.file, "%s", file);
    r->finished = true;
    return HF_AUDIT_DAMAGE;
}

/* Identify the store by the first whole header, because the first segment's header may be damaged.
 * The seal key is only in headers of version 2. store: out, that header; false if there is none. */
static bool keys_find(struct hf_files *r, struct hf_audit_head *store)
{
    struct hf_audit_journal *j = &r->reader.journal;
    for (uint64_t n = 1; n <= r->last_segment && !r->seal_known; n++) {
        struct hf_audit_segment seg;
        uint32_t version = 0;
        enum hf_audit_opened got = hf_audit_segment_open(r->dir, n, &seg, &version);
        hf_files_unopened(r, got, &seg, version);
        if (got == HF_AUDIT_MISSING) {
            uint64_t next = hf_audit_directory_next(r->dir, n);
            if (next == 0)
                break;
            n = next - 1;
        }
        if (got != HF_AUDIT_OPENED)
            continue;
        bool ours = seg.head_good && hf_files_note_fits(r, &seg.head);
        if (ours && !j->keys_known) {
            *store = seg.head;
            memcpy(j->store_id, seg.head.store_id, sizeof j->store_id);
            j->id_key = seg.head.id_key;
            j->table_key = seg.head.table_key;
            j->keys_known = true;
        }
        if (ours && seg.head.version > 1) {
            r->seal = seg.head.seal;
            r->seal_known = true;
        }
        hf_audit_segment_close(&seg);
    }
    return j->keys_known;
}

/* No batch has been read yet, and a new store may have written its first one after its file was
 * opened: open the segment again, with its header. */
static void begin_again(struct hf_files *r)
{
    struct hf_audit_head store;
    uint32_t version;
    hf_files_segment_enter(r, r->seg.number, &version);
    keys_find(r, &store);
}

static enum hf_audit_step files_next(struct hf_audit_reader *reader, struct hf_audit_batch *batch,
                                     struct hf_error *why)
{
    struct hf_files *r = (struct hf_files *)reader;
    if (r->finished)
        return HF_AUDIT_END;
    if (r->resume && !hf_files_resume_there(r))
        return step_failed(hf_files_fail_memory(why));
    if (is_unknown(r))
        return open_failed(r, why);
    for (int look = 0;; look++) {
        enum hf_files_ahead ahead =
            wanted_here(r) ? HF_FILES_AHEAD_TAKEN : hf_files_next_segment_try(r, why);
        if (ahead == HF_FILES_AHEAD_TAKEN) {
            r->headless = false;
            hf_files_batch_take(r, batch);
            return HF_AUDIT_BATCH;
        }
        if (r->bytes.failed)
            return step_failed(hf_files_fail_memory(why));
        if (ahead == HF_FILES_AHEAD_FAILED)
            return HF_AUDIT_FAILED;
        if (look < RETRIES && hf_files_segment_renewed(r))
            continue;
        bool later = ahead == HF_FILES_AHEAD_BAD || hf_files_journal_goes_on(r);
        if (is_unknown(r))
            return open_failed(r, why);
        /* After a read error it is not known whether the batch exists, and later batches do not
         * prove either. */
        if (r->seg.io_error || r->io_error) {
            if (look >= RETRIES)
                return end_here(r, why);
            r->seg.io_error = r->io_error = 0;
            continue;
        }
        if (!later) {
            char name[HF_AUDIT_NAME_SIZE];
            struct hf_files_place at;
            const char *lost = hf_files_closed_differs(r, &at);
            if (!lost)
                lost = hf_files_snapshot_differs(r);
            if (!lost)
                lost = hf_files_remains(r);
            const char *wrong = lost ? NULL : hf_files_rest_differs(r, name);
            if ((lost || wrong) && look < RETRIES) {
                if (r->next_sequence == 1)
                    begin_again(r);
                /* a store that was closed meanwhile has written more since this place was read */
                continue;
            }
            if (is_unknown(r))
                return open_failed(r, why);
            if (lost)
                snprintf(name, sizeof name, "%s",
                         at.segment == r->seg.number ? r->seg.name : at.file);
            return lost    ? end_damage(r, name, at.offset, lost)
                   : wrong ? end_damage(r, name, 0, wrong)
                           : end_here(r, why);
        }
        if (look < RETRIES) {
            if (r->next_sequence == 1)
                begin_again(r);
            continue;
        }
        enum hf_audit_step step =
            ahead == HF_FILES_AHEAD_BAD ? hf_files_bad_pack_note(r) : hf_files_damage_note(r);
        return is_unknown(r) ? open_failed(r, why) : step;
    }
}

static enum hf_status first_open(struct hf_files *r, const char *dir, struct hf_error *why)
{
    uint32_t version = 0;
    struct hf_audit_head store;
    r->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->dir >= 0 &&
        !hf_audit_directory_look(r->dir, &r->last_segment, &r->reader.journal.bytes_total))
        return hf_files_fail_io(why, dir);
    if (r->dir < 0 && errno != ENOENT && errno != ENOTDIR)
        return hf_files_fail_io(why, dir);
    if (r->dir < 0)
        return fail_absent(why, dir, errno);
    bool closed_read = hf_files_closed_read(r, &r->closed);
    /* Remains of a store without its journal: the first step finds the damage. */
    bool left = r->last_segment > 0 || r->closed.sequence > 0 || hf_files_remains(r);
    if (!closed_read || r->open_error) {
        errno = r->open_error;
        return hf_files_fail_io(why, r->open_name[0] ? r->open_name : dir);
    }
    if (!left)
        return fail_absent(why, dir, 0);
    bool known = keys_find(r, &store);
    enum hf_audit_opened got = hf_files_segment_enter(r, 1, &version);
    /* Too important to call it damaged after one attempt. */
    if (got == HF_AUDIT_BAD_PACK || r->seg.io_error)
        got = hf_files_segment_enter(r, 1, &version);
    switch (got) {
    case HF_AUDIT_OPENED: break;
    case HF_AUDIT_MISSING: /* later segments exist: the first step finds the damage */
    case HF_AUDIT_BAD_PACK: break;
    case HF_AUDIT_NEWER: return hf_files_fail_newer(why, r->seg.name, version);
    case HF_AUDIT_IO: return hf_files_fail_io(why, r->seg.name);
    }
    known = known || keys_find(r, &store); /* the first attempt may have failed */
    if (!hf_audit_snapshot_look(r->dir, known ? &store : NULL, &r->snapshot))
        return hf_files_fail_io(why,
                                r->snapshot.unusable_name[0] ? r->snapshot.unusable_name : dir);
    r->reader.journal.snapshots_unusable = r->snapshot.unusable;
    memcpy(r->reader.journal.snapshot_unusable, r->snapshot.unusable_name,
           sizeof r->reader.journal.snapshot_unusable);
    r->reader.journal.snapshot_start = r->snapshot.loaded_start;
    return hf_files_walked_add(r, &r->seg, 0) ? HF_OK : hf_files_fail_memory(why);
}

static bool files_entry(struct hf_audit_reader *reader, uint64_t position,
                        struct hf_audit_entry *entry)
{
    struct hf_files *r = (struct hf_files *)reader;
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
                /* The file was read before. */
                r->open_error = got == HF_AUDIT_IO ? errno : r->side.io_error;
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
    struct hf_files *r = (struct hf_files *)reader;
    hf_audit_segment_close(&r->seg);
    hf_audit_segment_close(&r->side);
    hf_buffer_free(&r->bytes);
    hf_buffer_free(&r->side_bytes);
    free(r->walked);
    if (r->dir >= 0)
        close(r->dir);
    free(r);
}

enum hf_status hf_audit_reader_open(const char *dir, struct hf_audit_reader **reader,
                                    struct hf_error *why)
{
    static const struct hf_audit_source source = { files_next, files_entry, NULL, files_close };
    struct hf_files *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return hf_files_fail_memory(why);
    r->reader.source = &source;
    r->seg = (struct hf_audit_segment)HF_AUDIT_SEGMENT_INIT;
    r->side = (struct hf_audit_segment)HF_AUDIT_SEGMENT_INIT;
    r->next_sequence = 1;
    r->last_now = INT64_MIN;
    r->chain_known = true; /* batch 1 has a chain of zeros */
    r->offset = HF_AUDIT_BLOCK;
    enum hf_status st = first_open(r, dir, why);
    if (st == HF_OK)
        *reader = &r->reader;
    else
        files_close(&r->reader);
    return st;
}

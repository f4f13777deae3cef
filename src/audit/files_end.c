/* Damage at the end of the journal (doc/FORMAT.md): evidence that there was more, or something
 * different. */
#include "audit/directory.h"
#include "audit/files.h"
#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Earlier programs wrote the first part alone. */
enum { CLOSED_FIRST = 64, CLOSED_SIZE = 136, CLOSED_CRC = 132 };

void hf_files_look_again(struct hf_files *r)
{
    if (!hf_audit_directory_look(r->dir, &r->last_segment, NULL))
        r->open_error = errno;
}

/* The file cannot be read: its content is not known. */
static bool unread(struct hf_files *r, const char *name, int error)
{
    r->open_error = error;
    snprintf(r->open_name, sizeof r->open_name, "%s", name);
    return false;
}

bool hf_files_closed_read(struct hf_files *r, struct hf_files_note *out)
{
    static const char name[] = "closed";
    unsigned char note[CLOSED_SIZE];
    *out = (struct hf_files_note){ .sequence = 0 };
    int fd = hf_audit_open(r->dir, name);
    if (fd < 0)
        return errno == ENOENT || unread(r, name, errno);
    int error = 0;
    bool whole = hf_audit_read_at(fd, note, CLOSED_FIRST, 0, &error);
    bool names = whole && hf_audit_read_at(fd, note + CLOSED_FIRST, CLOSED_SIZE - CLOSED_FIRST,
                                           CLOSED_FIRST, &error);
    close(fd);
    if (error)
        return unread(r, name, error);
    if (whole && memcmp(note, "HFclose1", 8) == 0 &&
        hf_crc32c(0, note, 60) == hf_get32(note + 60)) {
        out->sequence = hf_get64(note + 8);
        memcpy(out->hash, note + 24, HF_DIGEST_SIZE);
        out->names_store = names && out->sequence > 0 &&
                           hf_crc32c(0, note, CLOSED_CRC) == hf_get32(note + CLOSED_CRC);
    }
    if (out->names_store) {
        memcpy(out->store, note + 64, HF_DIGEST_SIZE);
        memcpy(out->seal, note + 96, HF_DIGEST_SIZE);
    }
    return true;
}

const char *hf_files_closed_differs(struct hf_files *r, struct hf_files_place *at)
{
    uint64_t newest = r->next_sequence - 1;
    struct hf_files_note note;
    *at = (struct hf_files_place){ .segment = r->seg.number, .offset = r->offset };
    if (!hf_files_closed_read(r, &note) || note.sequence == 0)
        return NULL;
    if (note.sequence > newest)
        return "the note `closed` names a later batch: batches are lost or damaged";
    if (note.sequence == newest && r->chain_known &&
        memcmp(note.hash, r->chain, HF_DIGEST_SIZE) != 0)
        return "the note `closed` names another batch than this one";
    if (note.sequence != r->closed.sequence || !r->closed_met ||
        memcmp(note.hash, r->closed_hash, HF_DIGEST_SIZE) == 0)
        return NULL;
    *at = r->closed_at;
    return "the note `closed` names another batch than the one there";
}

const char *hf_files_remains(struct hf_files *r)
{
    bool found = false;
    int error = r->next_sequence > 1 ? 0 : hf_audit_directory_remains(r->dir, &found);
    if (error)
        r->open_error = -error;
    return found ? "there is no whole batch, but there are files that only exist after the first "
                   "batch"
                 : NULL;
}

/* What is wrong with an unused segment that should begin at `base`? got: the result of opening
 * it. */
static const char *unused_differs(const struct hf_files *r, enum hf_audit_opened got,
                                  const struct hf_audit_segment *seg, uint64_t base)
{
    if (got == HF_AUDIT_MISSING)
        return "the segment's file is missing";
    if (got == HF_AUDIT_BAD_PACK)
        return "the compressed segment's own header or frame table is damaged";
    if (got != HF_AUDIT_OPENED)
        return NULL;
    if (seg->packed)
        return "the segment is compressed, but the batches after it are missing";
    if (hf_files_size_differs(seg))
        return hf_files_size_differs(seg);
    if (seg->head_other)
        return "the segment's header belongs to another segment";
    if (seg->head_good && !hf_files_same_keys(r, seg))
        return "the segment belongs to another store";
    return seg->head_good && !hf_files_head_belongs(r, seg, base)
               ? "the segment's header is damaged"
               : NULL;
}

const char *hf_files_rest_differs(struct hf_files *r, char name[HF_AUDIT_NAME_SIZE])
{
    const char *what = NULL;
    uint64_t base = r->base;
    hf_files_look_again(r);
    for (uint64_t n = r->seg.number; !what && n <= r->last_segment; n++) {
        struct hf_audit_segment seg;
        uint32_t version = 0;
        enum hf_audit_opened got = hf_audit_segment_open(r->dir, n, &seg, &version);
        what = unused_differs(r, got, &seg, base);
        memcpy(name, seg.name, sizeof seg.name);
        if (got == HF_AUDIT_OPENED) {
            base += seg.size;
            hf_audit_segment_close(&seg);
            continue;
        }
        hf_files_unopened(r, got, &seg, version);
        if (r->open_error || r->newer)
            break;
    }
    return what;
}

const char *hf_files_snapshot_differs(const struct hf_files *r)
{
    const struct hf_audit_snapshot *s = &r->snapshot;
    uint64_t end = r->reader.journal.end;
    if (!s->found)
        return NULL;
    if (end < s->end || end < s->start)
        return "the journal ends here, before the end that its snapshot names";
    /* A snapshot covers only durable batches, with their padding. */
    if (end == s->start && r->padded)
        return "there are bytes after the last batch before the newest snapshot";
    if (r->snapshot_passed ? !r->snapshot_fits
                           : r->chain_known && (r->next_sequence != s->next_sequence ||
                                                memcmp(r->chain, s->chain, HF_DIGEST_SIZE) != 0))
        return "the batches do not match the newest snapshot";
    return NULL;
}

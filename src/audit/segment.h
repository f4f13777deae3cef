/* segment.h: one file of the journal, plain or compressed, read only.
 *
 * A reader sees the same bytes in both cases: `journal-00000007.log` is read in place,
 * `journal-00000007.zst` frame by frame. The files may belong to a store that is at work: a plain
 * segment may be replaced by its compressed form at any time and its file used again for new
 * batches, so whoever reads something odd asks hf_audit_segment_stale and opens it again. */
#ifndef HF_AUDIT_SEGMENT_H
#define HF_AUDIT_SEGMENT_H

#include "base/hash.h"
#include "holdfast.h"

#include <sys/types.h>

#define HF_AUDIT_VERSION 2 /* the newest format that this reader knows */
#define HF_AUDIT_BLOCK 4096
#define HF_AUDIT_NAME_SIZE 32 /* "journal-00000007.log" and a NUL, with room */

/* No batch and no snapshot has a time beyond this, before or after 1970. */
#define HF_AUDIT_NOW_MAX (INT64_MAX / 4)

static inline bool hf_audit_now_sound(hf_time now)
{
    return now >= -HF_AUDIT_NOW_MAX && now <= HF_AUDIT_NOW_MAX;
}

/* The header in a segment's first block. */
struct hf_audit_head {
    uint64_t number, base, size, first_sequence;
    hf_time first_now;
    uint32_t version;
    uint8_t store_id[16];
    struct hf_sipkey table_key, id_key;
    struct hf_sipkey seal; /* behind the tags; from version 2 on */
    uint8_t chain[HF_DIGEST_SIZE];
};

struct hf_audit_frames; /* of a compressed segment; private */

struct hf_audit_segment {
    uint64_t number;
    int dir; /* borrowed descriptor of the directory */
    int fd;  /* owned, -1 if not open */
    dev_t device;
    ino_t inode;
    char name[HF_AUDIT_NAME_SIZE];
    bool packed;
    uint64_t
        size; /* bytes of the segment: by the header if that is right, else what the file has */
    uint64_t pack_base; /* if packed: where the segment begins, as the file itself says */
    uint64_t file_size; /* when it was opened, or last looked at */
    bool head_good;
    bool head_other;                /* there is a right header, and it is of another segment */
    bool head_dirty;                /* head_good, and there is something behind it in its block */
    struct hf_audit_head head;      /* if head_good */
    struct hf_audit_frames *frames; /* owned, if packed */
    int io_error; /* errno of a read that failed, other than by the file's end; 0 if none did */
};

enum hf_audit_opened {
    /* look at head_good: false for one that is prepared but not used, or damaged */
    HF_AUDIT_OPENED,
    HF_AUDIT_MISSING,  /* no such file */
    HF_AUDIT_BAD_PACK, /* the compressed file's own header or frame table is wrong */
    HF_AUDIT_NEWER,    /* a newer format; *version says which */
    HF_AUDIT_IO        /* errno says why */
};

/* hf_audit_segment_open: segment `number` of the directory `dir`, plain if it is there, else
 * compressed. dir: borrowed, must outlive the segment. seg: out, owned when HF_AUDIT_OPENED, close
 * with hf_audit_segment_close; otherwise nothing is open, and seg->name is the file that was looked
 * at. */
enum hf_audit_opened hf_audit_segment_open(int dir, uint64_t number, struct hf_audit_segment *seg,
                                           uint32_t *version);

/* hf_audit_segment_read: `size` bytes at `offset` of the segment. False if the file does not have
 * them all, or a frame is damaged. */
bool hf_audit_segment_read(struct hf_audit_segment *seg, uint64_t offset, void *out, size_t size);

/* The next offset from `offset` on, a multiple of HF_AUDIT_BLOCK, where there may be anything but
 * zeros, or seg->size: lets a search pass over the empty frames of a compressed segment, and over
 * what a header promises but the file does not have. */
uint64_t hf_audit_segment_skip(struct hf_audit_segment *seg, uint64_t offset);

/* Is the open file no longer the one that the directory shows under its name? */
bool hf_audit_segment_stale(const struct hf_audit_segment *seg);

/* Closing what is not open does nothing. */
void hf_audit_segment_close(struct hf_audit_segment *seg);
#define HF_AUDIT_SEGMENT_INIT \
    {                         \
        .fd = -1              \
    }

#endif

/* segment.h: one file of the journal, plain or compressed, read only.
 *
 * A reader sees the same bytes in both cases: `journal-00000007.log` is read in place,
 * `journal-00000007.zst` frame by frame. A server may be using the store: at any time it may
 * replace a plain segment by its compressed form and reuse the file for new batches. A caller that
 * reads unexpected bytes must call hf_audit_segment_stale and open the segment again. */
#ifndef HF_AUDIT_SEGMENT_H
#define HF_AUDIT_SEGMENT_H

#include "base/hash.h"
#include "holdfast.h"

#include <sys/types.h>

#define HF_AUDIT_VERSION 2 /* the newest format that this reader knows */
#define HF_AUDIT_BLOCK 4096
#define HF_AUDIT_NAME_SIZE 32 /* "journal-00000007.log" and a NUL, with room */

/* The largest distance of a batch's or snapshot's time from 1970, in both directions. */
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
    struct hf_sipkey seal; /* the key of the seals; from version 2 on */
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
    /* bytes of the segment: from the header if that is right, else from the file */
    uint64_t size;
    uint64_t pack_base; /* if packed: the segment's position, from the compressed file's header */
    uint64_t file_size; /* when the file was opened or last checked */
    bool head_good;
    bool head_other;                /* the header is right, but of another segment */
    bool head_dirty;                /* head_good, but the rest of its block is not zero */
    struct hf_audit_head head;      /* if head_good */
    struct hf_audit_frames *frames; /* owned, if packed */
    int io_error;                   /* errno of a failed read, not the end of the file; 0: none */
};

enum hf_audit_opened {
    /* head_good is false if the segment is prepared but not used, or damaged */
    HF_AUDIT_OPENED,
    HF_AUDIT_MISSING,  /* no such file */
    HF_AUDIT_BAD_PACK, /* the compressed file's own header or frame table is wrong */
    HF_AUDIT_NEWER,    /* a newer format: *version */
    HF_AUDIT_IO        /* errno says why */
};

/* hf_audit_segment_open: segment `number` of the directory `dir`, the plain file if it exists, else
 * the compressed one. dir: borrowed, must outlive the segment. seg: out, owned if HF_AUDIT_OPENED,
 * close with hf_audit_segment_close; otherwise nothing is open, and seg->name is the file that was
 * tried. */
enum hf_audit_opened hf_audit_segment_open(int dir, uint64_t number, struct hf_audit_segment *seg,
                                           uint32_t *version);

/* hf_audit_segment_read: `size` bytes at `offset` of the segment. False if the file is too short, a
 * read failed (io_error) or a frame is damaged. */
bool hf_audit_segment_read(struct hf_audit_segment *seg, uint64_t offset, void *out, size_t size);

/* The next offset from `offset` on, a multiple of HF_AUDIT_BLOCK, where there may be other bytes
 * than zeros, or seg->size. A search can so skip the empty frames of a compressed segment, and the
 * missing end of a truncated file. */
uint64_t hf_audit_segment_skip(struct hf_audit_segment *seg, uint64_t offset);

/* Does the name in the directory now belong to another file, or to none? */
bool hf_audit_segment_stale(const struct hf_audit_segment *seg);

/* Does nothing if the segment is not open. */
void hf_audit_segment_close(struct hf_audit_segment *seg);
#define HF_AUDIT_SEGMENT_INIT \
    {                         \
        .fd = -1              \
    }

#endif

/* segment.h: the journal's files, as one sequence of bytes.
 *
 * A segment is prepared (created, filled, synced) in the background before it is needed, so that a
 * full disk shows there and not during a commit. Its states:
 *
 *   PREPARED ──first batch──▶ ACTIVE ──next one begins──▶ SEALED ──no live key inside──▶ PACKED
 *
 * A prepared or active segment is open for writing. Others are opened when their bytes are needed:
 * a plain one is mapped and its descriptor closed; of compressed ones (.zst) a few are open at a
 * time. So a journal of any length takes a bounded number of descriptors and mappings.
 *
 * Not thread-safe: the owner's lock protects the list. Bytes before the end of the durable journal
 * never change and may be read without the lock while the segment is pinned. */
#ifndef HF_STORE_JOURNAL_SEGMENT_H
#define HF_STORE_JOURNAL_SEGMENT_H

#include "store/io.h"
#include "store/journal/format.h"

enum hf_segment_state {
    HF_SEGMENT_PREPARED,
    HF_SEGMENT_ACTIVE,
    HF_SEGMENT_SEALED,
    HF_SEGMENT_PACKED
};

struct hf_pack; /* a compressed segment, pack.h */

struct hf_segment {
    enum hf_segment_state state;
    uint64_t number, base, size;
    /* From its header: version (0: no header), and the same fields of its first batch. */
    uint32_t version;
    uint64_t first_sequence;
    hf_time created_at;
    uint8_t chain[HF_DIGEST_SIZE];
    bool head_dirty;           /* the header's block has other bytes after the header */
    struct hf_file *writer;    /* owned; NULL unless prepared or active */
    struct hf_file *source;    /* owned; the file behind `data` or `pack`, or NULL */
    const unsigned char *data; /* mapped, or NULL: hf_segments_reach */
    struct hf_pack *pack;      /* owned; open, or NULL: hf_segments_reach */
    uint64_t used;             /* the tick of its last use */
    unsigned pins;             /* readers without the lock: do not close it */
    bool keep;                 /* do not pack it: it is damaged */
};

/* How many sealed segments may be mapped, and how many compressed ones open. */
#define HF_SEGMENT_MAPS_MAX 8192
#define HF_SEGMENT_PACKS_MAX 64

struct hf_segments {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_segment *list; /* owned; in order of number, without gaps; prepared ones last */
    size_t count, room;
    size_t maps, maps_max;   /* sealed ones that are mapped, and the limit */
    size_t packs, packs_max; /* compressed ones that are open, and the limit */
    uint64_t tick;
    uint64_t size_max;
    /* a larger one did not fit on the disk; 0: never tried, or there is room again */
    uint64_t size_fits;
};

#define HF_SEGMENT_NAME_SIZE 32
void hf_segment_name(uint64_t number, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

void hf_segments_free(struct hf_segments *s);

/* The segment that contains `position`, or NULL. */
struct hf_segment *hf_segments_at(const struct hf_segments *s, uint64_t position);

/* Add a segment at the end of the list. head: borrowed; its keys are ignored. writer: its file if
 * open for writing, else NULL; owned from now on. 0 or -ENOMEM (then the file is closed). */
int hf_segments_add(struct hf_segments *s, const struct hf_segment_head *head,
                    enum hf_segment_state state, struct hf_file *writer);

/* Make g->data or g->pack available. It stays until the next tick, or while it is pinned. 0 or a
 * negative errno; -EBADMSG: its file has changed. */
int hf_segments_reach(struct hf_segments *s, struct hf_segment *g);
/* Segments reached so far may be closed when others need their place. */
static inline void hf_segments_tick(struct hf_segments *s)
{
    s->tick++;
}
/* Did a call fail with `error` (a negative errno) for lack of descriptors? Then close the least
 * recently used compressed segment that is not pinned and was not reached in this tick. True if
 * there was one: retry the call. */
bool hf_segments_give_back(struct hf_segments *s, int error);
/* Open the file of a segment for writing, if it is not open. 0 or a negative errno. */
int hf_segments_open_writer(struct hf_segments *s, struct hf_segment *g);
/* Set the state, not PACKED. A segment that is neither prepared nor active is no longer written
 * to. */
void hf_segments_become(struct hf_segments *s, struct hf_segment *g, enum hf_segment_state state);
/* Switch g from the plain bytes to the packed ones. pack, source: owned by g from now on. The
 * caller closes the old mapping and its file, without the lock: data, source of `was`. */
void hf_segments_packed(struct hf_segments *s, struct hf_segment *g, struct hf_pack *pack,
                        struct hf_file *source, struct hf_segment *was);

/* The size for the segment after one of `size` (0: the first). */
uint64_t hf_segments_next_size(const struct hf_segments *s, uint64_t size);
/* A segment of `size` bytes did not fit: make the next half as large. False if it is already the
 * smallest. */
bool hf_segments_smaller(struct hf_segments *s, uint64_t size);

/* Remove prepared segments at the end of the list that are smaller than new ones would be. */
void hf_segments_trim(struct hf_segments *s);

/* Preparing, step by step, without the owner's lock between the steps: begin creates the file
 * `<name>.tmp`, each step fills some of it, name syncs and renames it. */
struct hf_preparing {
    struct hf_file *file; /* owned; NULL: nothing is being prepared */
    uint64_t number, size, filled;
};
int hf_prepare_begin(struct hf_segments *s, uint64_t number, uint64_t size, struct hf_preparing *p);
int hf_prepare_step(struct hf_segments *s, struct hf_preparing *p);
/* Sync it, rename it, make that durable. Then hf_segments_add takes p->file. */
int hf_prepare_name(struct hf_segments *s, struct hf_preparing *p);
/* Cancel: close and remove. */
void hf_prepare_drop(struct hf_segments *s, struct hf_preparing *p);

#endif

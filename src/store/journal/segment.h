/* segment.h: the journal's files, seen as one run of bytes.
 *
 * A segment is prepared (made, filled, synced) in the background before it is needed, so that a
 * full disk is met there and not while committing. It is in one of these states:
 *
 *   PREPARED ──first batch──▶ ACTIVE ──next one begins──▶ SEALED ──no live token inside──▶ PACKED (.zst)
 *
 * A prepared or active segment is open for writing. Any other is opened when its bytes are asked
 * for: a plain one is mapped and its descriptor given back, of compressed ones a few are open at a
 * time. So a journal of any length takes a bounded number of descriptors and mappings.
 *
 * Not thread-safe: the owner's lock protects the list; bytes before the end of the durable journal
 * never change and may be read without it while the segment is pinned. */
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
    /* By its header: version (0: it has none), and of its first batch what stands there too. */
    uint32_t version;
    uint64_t first_sequence;
    hf_time created_at;
    uint8_t chain[HF_DIGEST_SIZE];
    bool head_dirty;           /* there is something behind its header */
    struct hf_file *writer;    /* owned; NULL unless prepared or active */
    struct hf_file *source;    /* owned; what `data` or `pack` was made of, or NULL */
    const unsigned char *data; /* mapped, or NULL: hf_segments_reach */
    struct hf_pack *pack;      /* owned; open, or NULL: hf_segments_reach */
    uint64_t used;             /* the tick at which it was reached last */
    unsigned pins;             /* readers without the lock: it is not to be closed */
    bool keep;                 /* not to be packed: something in it is damaged */
};

/* How many sealed segments are mapped at a time, and how many compressed ones are open. */
#define HF_SEGMENT_MAPS_MAX 8192
#define HF_SEGMENT_PACKS_MAX 64

struct hf_segments {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_segment *list; /* owned; in order of number, without gaps; prepared ones last */
    size_t count, room;
    size_t maps, maps_max;   /* sealed ones that are mapped, and how many may be */
    size_t packs, packs_max; /* compressed ones that are open, likewise */
    uint64_t tick;
    uint64_t size_max;
    uint64_t
        /* a larger one did not fit on the disk; 0: never tried, or there is room again */
        size_fits;
};

#define HF_SEGMENT_NAME_SIZE 32
void hf_segment_name(uint64_t number, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

void hf_segments_free(struct hf_segments *s);

/* The segment with `position` in it, or NULL. */
struct hf_segment *hf_segments_at(const struct hf_segments *s, uint64_t position);

/* Add a segment at the end of the list. head: borrowed; its keys do not matter. writer: its file,
 * if it is open for writing, else NULL; taken. 0 or -ENOMEM (then it is closed). */
int hf_segments_add(struct hf_segments *s, const struct hf_segment_head *head,
                    enum hf_segment_state state, struct hf_file *writer);

/* Make g->data or g->pack available. It stays until the next tick, or while it is pinned. 0 or a
 * negative errno; -EBADMSG: its file is not what it was. */
int hf_segments_reach(struct hf_segments *s, struct hf_segment *g);
/* What was reached until now may be closed when others need its place. */
static inline void hf_segments_tick(struct hf_segments *s)
{
    s->tick++;
}
/* A call failed with `error`, a negative errno, for want of descriptors? Then close the compressed
 * segment that was not used for longest, of those that are not pinned and were not reached in this
 * tick. True if there was one: the call can be tried again. */
bool hf_segments_give_back(struct hf_segments *s, int error);
/* Open the file of a segment that is to be written to, if it is not open. 0 or a negative errno. */
int hf_segments_open_writer(struct hf_segments *s, struct hf_segment *g);
/* Its state from now on, not PACKED. What is neither prepared nor active will not be written to any
 * more. */
void hf_segments_become(struct hf_segments *s, struct hf_segment *g, enum hf_segment_state state);
/* The plain bytes give way to the packed ones: g is packed from now on. pack, source: taken. The
 * mapping and its file are the caller's to close, without the lock: data, source of `was`. */
void hf_segments_packed(struct hf_segments *s, struct hf_segment *g, struct hf_pack *pack,
                        struct hf_file *source, struct hf_segment *was);

/* How large the segment after `size` should be (0: the first). */
uint64_t hf_segments_next_size(const struct hf_segments *s, uint64_t size);
/* One of `size` bytes did not fit: let the next be half of it. False if it is as small as they
 * get. */
bool hf_segments_smaller(struct hf_segments *s, uint64_t size);

/* Give up prepared segments at the end of the list that are smaller than they would be made now. */
void hf_segments_trim(struct hf_segments *s);

/* Preparing, step by step, without the owner's lock between the steps: begin makes the file
 * `<name>.tmp`, each step fills some of it, name syncs it and gives it its name. */
struct hf_preparing {
    struct hf_file *file; /* owned; NULL: nothing being prepared */
    uint64_t number, size, filled;
};
int hf_prepare_begin(struct hf_segments *s, uint64_t number, uint64_t size, struct hf_preparing *p);
int hf_prepare_step(struct hf_segments *s, struct hf_preparing *p);
/* Sync it, give it its name, make that durable. Then hf_segments_add takes p->file. */
int hf_prepare_name(struct hf_segments *s, struct hf_preparing *p);
/* Give up: close and remove. */
void hf_prepare_drop(struct hf_segments *s, struct hf_preparing *p);

#endif

/* segment.h: the journal's files, seen as one run of bytes.
 *
 * A segment is prepared (made, filled, synced) in the background before it is needed, so that a full
 * disk is met there and not while committing. It is in one of these states:
 *
 *   PREPARED ──first batch──▶ ACTIVE ──next one begins──▶ SEALED ──no live token inside──▶ PACKED (.zst)
 *
 * Not thread-safe: the owner's lock protects the list; bytes before the end of the durable journal never
 * change and may be read without it. */
#ifndef HF_STORE_JOURNAL_SEGMENT_H
#define HF_STORE_JOURNAL_SEGMENT_H

#include "store/io.h"
#include "store/journal/format.h"

enum hf_segment_state { HF_SEGMENT_PREPARED, HF_SEGMENT_ACTIVE, HF_SEGMENT_SEALED, HF_SEGMENT_PACKED };

struct hf_pack; /* a compressed segment, pack.h */

struct hf_segment {
    enum hf_segment_state state;
    uint64_t number, base, size;
    struct hf_file *file;      /* owned */
    const unsigned char *data; /* mapped; NULL if packed */
    struct hf_pack *pack;      /* owned, if packed */
    bool keep;                 /* not to be packed: something in it is damaged */
};

struct hf_segments {
    const struct hf_io *io; /* borrowed, like dir */
    struct hf_dir *dir;
    struct hf_segment *list; /* owned; in order of number, without gaps; prepared ones last */
    size_t count, room;
    uint64_t size_max;
    uint64_t size_fits; /* a larger one did not fit on the disk; 0: never tried, or there is room again */
};

#define HF_SEGMENT_NAME_SIZE 32
void hf_segment_name(uint64_t number, const char *suffix, char out[HF_SEGMENT_NAME_SIZE]);

void hf_segments_free(struct hf_segments *s);

/* The segment with `position` in it, or NULL. */
struct hf_segment *hf_segments_at(const struct hf_segments *s, uint64_t position);

/* Add an opened segment at the end of the list, mapping its file. Takes `file`. 0 or a negative errno (then the
 * file is closed). */
int hf_segments_add(struct hf_segments *s, const struct hf_segment_head *head, enum hf_segment_state state,
                    struct hf_file *file);

/* How large the segment after `size` should be (0: the first). */
uint64_t hf_segments_next_size(const struct hf_segments *s, uint64_t size);
/* One of `size` bytes did not fit: let the next be half of it. False if it is as small as they get. */
bool hf_segments_smaller(struct hf_segments *s, uint64_t size);

/* Give up prepared segments at the end of the list that are smaller than they would be made now. */
void hf_segments_trim(struct hf_segments *s);

/* Preparing, step by step, without the owner's lock between the steps:
 * begin makes the file `<name>.tmp`, each step fills some of it, name syncs it and gives it its name. */
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

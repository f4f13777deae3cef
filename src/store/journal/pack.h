/* pack.h: an old segment, compressed in frames that can be read separately (doc/FORMAT.md). */
#ifndef HF_STORE_JOURNAL_PACK_H
#define HF_STORE_JOURNAL_PACK_H

#include "store/io.h"
#include "store/journal/format.h"

#define HF_PACK_FRAME 131072
#define HF_PACK_VERSION 1

struct hf_pack;

/* A mapped file. Both borrowed. */
struct hf_mapped {
    struct hf_file *file;
    const unsigned char *data;
};

/* Write the segment `from` (head->size bytes; bytes from `used` on count as zeros) to the new file
 * `file`, and sync it. 0 or a negative errno. */
int hf_pack_write(const struct hf_io *io, struct hf_file *file, const struct hf_segment_head *head,
                  const struct hf_mapped *from, uint64_t used);

/* Open a packed segment. file: borrowed until hf_pack_close. out: owned. -EBADMSG: not a packed
 * segment, or damaged. */
int hf_pack_open(const struct hf_io *io, struct hf_file *file, struct hf_pack **out);
/* The version in the file, if it is a packed segment of any version; 0 if not, or unreadable. */
uint32_t hf_pack_version(const struct hf_io *io, struct hf_file *file);
void hf_pack_close(struct hf_pack *pack);
/* Sets only number, base and size. */
void hf_pack_head(const struct hf_pack *pack, struct hf_segment_head *head);

/* The frames unpacked last; one cache for all packs of a store. Starts as zeros. */
struct hf_pack_cache {
    uint64_t number;               /* of the segment; 0: empty */
    uint32_t first, loaded;        /* which of its frames are in `plain` */
    unsigned char *packed, *plain; /* owned */
    size_t packed_room, plain_room;
};
void hf_pack_cache_free(struct hf_pack_cache *cache);

/* `size` bytes at offset `at` of the segment, borrowed until the next read with this cache.
 * -EBADMSG: the bytes are damaged. */
int hf_pack_read(const struct hf_pack *pack, struct hf_pack_cache *cache, uint64_t at, size_t size,
                 const unsigned char **out);

#endif

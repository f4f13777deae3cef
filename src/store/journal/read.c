/* Reads the journal by position: gathered, in flight, mapped or packed. */
#include "base/bytes.h"
#include "store/journal/journal.h"

#include <errno.h>
#include <inttypes.h>

/* The first bytes of an entry to check: most entries are no longer. */
enum { FIRST_LOOK = 512 };

static bool batch_has(const struct hf_batch *b, uint64_t position)
{
    return b->size > 0 && position >= b->base && position < b->base + b->size;
}

bool hf_journal_unread(int error)
{
    return error && error != -EBADMSG && error != -EINVAL;
}

bool hf_journal_short(int error)
{
    return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN ||
           error == -EINTR;
}

void hf_journal_note_unreadable(struct hf_journal *j, uint64_t position, int error)
{
    enum { AGAIN_NS = 1000000000 };
    char name[HF_SEGMENT_NAME_SIZE] = "the journal";
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    uint64_t now = j->io->monotonic_ns(j->io->ctx), at = g ? position - g->base : position;
    j->stats.records_unreadable++;
    if (j->read_noted && now - j->read_noted_ns < AGAIN_NS)
        return;
    j->read_noted = true;
    j->read_noted_ns = now;
    if (g)
        hf_segment_name(g->number, g->state == HF_SEGMENT_PACKED ? ".zst" : ".log", name);
    if (error == -EBADMSG)
        hf_journal_note(j, 1,
                        "%s: the record at byte %" PRIu64
                        " is damaged; a request that needs it is answered "
                        "storage-failure. Run `holdfast audit`, and restore the file from a copy",
                        name, at);
    else
        hf_journal_note(j, 1,
                        "%s: cannot read at byte %" PRIu64
                        ": %s; a request that needs it is answered "
                        "storage-failure. %s",
                        name, at, strerror(-error),
                        hf_journal_short(error) ? "Give the server more memory or descriptors"
                                                : "Check the disk");
}

/* Can `size` bytes at `at` of a plain segment that has been reached be read? */
static int plain_touch(struct hf_journal *j, const struct hf_segment *g, uint64_t at, size_t size)
{
    return j->io->touch(g->source, g->data, at, size);
}

/* The bytes from `position` to the end of the segment or frame. The whole entry there is
 * readable. */
static int entry_bytes(struct hf_journal *j, uint64_t position, struct hf_segment *g,
                       const unsigned char **out, size_t *room)
{
    uint64_t at = position - g->base;
    int error = hf_segments_reach(&j->segments, g);
    if (error)
        return error;
    *room = (size_t)(g->size - at);
    if (g->data) {
        size_t first = *room < FIRST_LOOK ? *room : FIRST_LOOK;
        *out = g->data + at;
        error = plain_touch(j, g, at, first);
        size_t size = error || first < 4 ? 0 : hf_get32(*out);
        if (size > first && size <= *room)
            error = plain_touch(j, g, at + first, size - first);
        return error;
    }
    error = *room < 4 ? -EBADMSG : hf_pack_read(g->pack, &j->cache, at, 4, out);
    if (error)
        return error;
    size_t size = hf_get32(*out);
    if (size > *room || size > HF_BATCH_MAX)
        return -EBADMSG;
    *room = size;
    return hf_pack_read(g->pack, &j->cache, at, size, out);
}

int hf_journal_entry(struct hf_journal *j, uint64_t position, struct hf_entry_view *out)
{
    const struct hf_batch *batches[] = { &j->gather, &j->flight };
    const unsigned char *data;
    size_t room;
    for (size_t i = 0; i < 2; i++) {
        const struct hf_batch *b = batches[i];
        if (batch_has(b, position))
            return hf_entry_decode(b->data + b->lead + (position - b->base),
                                   (size_t)(b->base + b->size - position), out)
                       ? 0
                       : -EBADMSG;
    }
    struct hf_segment *g = hf_segments_at(&j->segments, position);
    if (!g)
        return -ENOENT;
    int error = entry_bytes(j, position, g, &data, &room);
    if (!error && !hf_entry_decode(data, room, out))
        error = -EBADMSG;
    if (error)
        hf_journal_note_unreadable(j, position, error);
    return error;
}

/* The forms in which a batch of this segment is accepted. Returns their number. */
static size_t forms_of(const struct hf_journal *j, const struct hf_segment *g,
                       struct hf_batch_form forms[2])
{
    const struct hf_sipkey *seal = j->has_seal ? &j->keys.seal : NULL;
    if (g->version) {
        forms[0] = (struct hf_batch_form){ g->version, seal };
        return 1;
    }
    /* Without a header: the newest batches are sealed, if the key is known. If not, both forms
     * count as evidence. */
    forms[0] = (struct hf_batch_form){ HF_FORMAT_VERSION, seal };
    forms[1] = (struct hf_batch_form){ 1, NULL };
    return seal ? 1 : 2;
}

static int plain_batch(struct hf_journal *j, const struct hf_segment *g, uint64_t at, bool deep,
                       const unsigned char **data, struct hf_batch_head *head)
{
    struct hf_batch_form forms[2];
    size_t room = (size_t)(g->size - at), count = forms_of(j, g, forms);
    int error = plain_touch(j, g, at, HF_BATCH_HEAD);
    *data = g->data + at;
    for (size_t i = 0; !error && i < count; i++) {
        if (!hf_batch_head_decode(&forms[i], *data, room, g->base + at, head))
            continue;
        error = plain_touch(j, g, at, head->length);
        int whole = error || !deep ? 0 : hf_batch_whole(&forms[i], head, *data);
        if (!error && whole != -EBADMSG)
            return whole;
    }
    return error ? error : -EBADMSG;
}

static int packed_batch(struct hf_journal *j, const struct hf_segment *g,
                        struct hf_pack_cache *cache, uint64_t at, bool deep,
                        const unsigned char **data, struct hf_batch_head *head)
{
    struct hf_batch_form forms[2];
    size_t room = (size_t)(g->size - at);
    forms_of(j, g, forms);
    int error = hf_pack_read(g->pack, cache, at, HF_BATCH_HEAD, data);
    if (!error && !hf_batch_head_decode(&forms[0], *data, room, g->base + at, head))
        error = -EBADMSG;
    /* Including the padding up to the next block. */
    size_t padded = error ? 0 : (size_t)hf_block_up(head->length);
    if (!error)
        error = hf_pack_read(g->pack, cache, at, padded < room ? padded : room, data);
    return error || !deep ? error : hf_batch_whole(&forms[0], head, *data);
}

int hf_journal_batch_of(struct hf_journal *j, struct hf_segment *g, struct hf_pack_cache *cache,
                        uint64_t position, bool deep, const unsigned char **data,
                        struct hf_batch_head *head)
{
    uint64_t at = position - g->base;
    if (g->size - at < HF_BATCH_HEAD)
        return -EBADMSG;
    return g->data ? plain_batch(j, g, at, deep, data, head)
                   : packed_batch(j, g, cache, at, deep, data, head);
}

int hf_journal_batch(struct hf_journal *j, uint64_t position, bool deep, const unsigned char **data,
                     struct hf_batch_head *head)
{
    struct hf_segment *g = hf_segments_at(&j->segments, position);
    if (!g)
        return -EBADMSG;
    int error = hf_segments_reach(&j->segments, g);
    return error ? error : hf_journal_batch_of(j, g, &j->cache, position, deep, data, head);
}

int hf_journal_bytes(struct hf_journal *j, struct hf_segment *g, uint64_t at, size_t size,
                     const unsigned char **data)
{
    int error = hf_segments_reach(&j->segments, g);
    if (error)
        return error;
    if (!g->data)
        return hf_pack_read(g->pack, &j->cache, at, size, data);
    *data = g->data + at;
    return plain_touch(j, g, at, size);
}

bool hf_journal_is_packed(const struct hf_journal *j, uint64_t position)
{
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    return g && g->state == HF_SEGMENT_PACKED;
}

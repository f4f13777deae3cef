#include "fuzz/support/journal.h"

#include "base/bytes.h"
#include "store/journal/segment.h"

#include <stdlib.h>

enum { NEXT = 0xffff, CUT = 0xfffe };

struct segment {
    struct fuzz_files *files;
    unsigned char *data; /* owned; FUZZ_SEGMENT bytes */
    uint64_t number;
    size_t end;  /* of the pieces */
    size_t size; /* of the file */
};

static void segment_begin(struct segment *s, uint64_t number)
{
    memset(s->data, 0, FUZZ_SEGMENT);
    s->number = number;
    s->end = 0;
    s->size = FUZZ_SEGMENT;
}

static void segment_end(const struct segment *s)
{
    char name[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(s->number, ".log", name);
    fuzz_files_put(s->files, name, hf_mem(s->data, s->size));
}

static void piece_add(struct segment *s, struct hf_bytes piece)
{
    size_t at = (size_t)hf_block_up(s->end);
    if (piece.size > FUZZ_SEGMENT - at)
        piece.size = FUZZ_SEGMENT - at;
    if (piece.size > 0)
        memcpy(s->data + at, piece.data, piece.size);
    s->end = at + piece.size;
    if (piece.size == 0 && at < FUZZ_SEGMENT)
        s->end = at + 1; /* an empty block */
}

void fuzz_pieces(struct fuzz_input *in, struct fuzz_files *files)
{
    struct segment s = { .files = files, .data = fuzz_alloc(FUZZ_SEGMENT) };
    segment_begin(&s, 1);
    while (in->left > 0) {
        size_t size = fuzz_u16(in);
        if (size == CUT) {
            size_t cut = (size_t)16 * fuzz_u16(in);
            s.size = cut < FUZZ_SEGMENT ? cut : FUZZ_SEGMENT;
        } else if (size == NEXT) {
            if (s.number == FUZZ_SEGMENTS)
                break;
            segment_end(&s);
            segment_begin(&s, s.number + 1);
        } else {
            piece_add(&s, fuzz_some(in, size));
        }
    }
    segment_end(&s);
    free(s.data);
}

/* ---- And back ---- */

static void add16(struct hf_buffer *out, size_t number)
{
    unsigned char bytes[2];
    hf_put16(bytes, (uint16_t)number);
    hf_buffer_add(out, bytes, 2);
}

/* How much of the block at p is not zeros at its end; of the last block with anything, and those
 * behind it. */
static size_t used(const unsigned char *p, size_t size)
{
    while (size > 0 && p[size - 1] == 0)
        size--;
    return size;
}

static void segment_pieces(struct hf_bytes segment, struct hf_buffer *out)
{
    const unsigned char *p = segment.data;
    size_t end = used(p, segment.size);
    for (size_t at = 0; at < end;) {
        struct hf_batch_head head;
        size_t room = segment.size - at;
        const struct hf_batch_form form = { HF_FORMAT_VERSION, NULL };
        size_t size = hf_batch_head_decode(&form, p + at, room, hf_get64(p + at + 16), &head)
                          ? head.length
                          : used(p + at, HF_BLOCK);
        add16(out, size);
        hf_buffer_add(out, p + at, size);
        at += size > 0 ? (size_t)hf_block_up(size) : HF_BLOCK;
    }
}

void fuzz_pieces_of(const struct fuzz_files *files, struct hf_buffer *out)
{
    for (uint64_t number = 1; number <= FUZZ_SEGMENTS; number++) {
        char name[HF_SEGMENT_NAME_SIZE];
        hf_segment_name(number, ".log", name);
        struct hf_bytes segment = fuzz_files_get(files, name);
        if (segment.size == 0)
            return;
        if (number > 1)
            add16(out, NEXT);
        segment_pieces(segment, out);
    }
}

#include "fuzz/support/journal.h"

#include "base/bytes.h"
#include "base/id.h"
#include "store/journal/segment.h"

#include <stdlib.h>

enum { OP_BATCH, OP_SEGMENT, OP_ENTRY, OP_ROW, OP_LIE, OPS };
enum { FLAG_RECORDED = 1, FLAG_EXPIRES = 2, FLAG_DIGEST = 4, FLAG_RECORD = 8 };
enum { ROW_FIX_ID = 128, ROW_HEAD = 6, ID_AT = 42, WINDOW_MS = 3600000 };

/* A journal while it is written. */
struct writer {
    struct fuzz_files *files;
    unsigned char *data; /* owned: the segment */
    uint64_t number, base, sequence;
    size_t at; /* where the next batch begins in the segment */
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE];
    struct hf_buffer batch, entry; /* being gathered; the entry is in none yet */
    uint32_t count;
    int8_t count_lie, rows_lie;
    unsigned rows;
};

/* ---- Segments and batches ---- */

static void segment_put(struct writer *w)
{
    char name[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(w->number, ".log", name);
    fuzz_files_put(w->files, name, hf_mem(w->data, FUZZ_SEGMENT));
}

/* False if there are enough of them. */
static bool segment_next(struct writer *w)
{
    if (w->number == FUZZ_SEGMENTS)
        return false;
    if (w->number > 0) {
        segment_put(w);
        w->base += FUZZ_SEGMENT;
    }
    memset(w->data, 0, FUZZ_SEGMENT);
    w->number++;
    w->at = HF_BLOCK;
    return true;
}

static void entry_end(struct writer *w)
{
    unsigned char *e = w->entry.data;
    if (w->entry.size == 0)
        return;
    e[11] = (unsigned char)((int)w->rows + w->rows_lie);
    hf_put32(e, (uint32_t)w->entry.size);
    hf_put32(e + 4, hf_crc32c(0, e + 8, w->entry.size - 8));
    hf_buffer_add(&w->batch, e, w->entry.size);
    hf_buffer_reset(&w->entry);
    w->rows = 0;
    w->rows_lie = 0;
    w->count++;
}

/* Write the batch out; false if there is no room for it anywhere. */
static bool batch_end(struct writer *w)
{
    entry_end(w);
    size_t length = HF_BATCH_HEAD + w->batch.size;
    if (w->batch.size == 0)
        return true;
    if (length > FUZZ_SEGMENT - HF_BLOCK || (length > FUZZ_SEGMENT - w->at && !segment_next(w)))
        return false;
    struct hf_batch_head head = { .version = HF_FORMAT_VERSION,
                                  .length = (uint32_t)length,
                                  .count = w->count + (uint32_t)w->count_lie,
                                  .sequence = ++w->sequence,
                                  .position = w->base + w->at,
                                  .now = w->now };
    memcpy(head.chain, w->chain, sizeof head.chain);
    unsigned char *batch = w->data + w->at;
    memcpy(batch + HF_BATCH_HEAD, w->batch.data, w->batch.size);
    struct hf_gmac *gmac = hf_gmac_new(&fuzz_store_keys()->seal);
    FUZZ_WANT(gmac && hf_batch_seal(&head, &fuzz_store_keys()->seal, gmac, batch) == 0);
    hf_gmac_free(gmac);
    if (w->at == HF_BLOCK) {
        struct hf_segment_head first = { .number = w->number,
                                         .base = w->base,
                                         .size = FUZZ_SEGMENT,
                                         .first_sequence = w->sequence,
                                         .created_at = w->now,
                                         .keys = *fuzz_store_keys() };
        memcpy(first.chain, w->chain, sizeof first.chain);
        hf_segment_head_encode(&first, w->data);
    }
    hf_batch_hash(&head, batch, w->chain);
    w->at = (size_t)hf_block_up(w->at + length);
    hf_buffer_reset(&w->batch);
    w->count = 0;
    w->count_lie = 0;
    return true;
}

/* ---- Entries and rows ---- */

static void add64(struct hf_buffer *out, uint64_t number)
{
    unsigned char bytes[8];
    hf_put64(bytes, number);
    hf_buffer_add(out, bytes, sizeof bytes);
}

static void add32(struct hf_buffer *out, size_t number)
{
    unsigned char bytes[4];
    hf_put32(bytes, (uint32_t)number);
    hf_buffer_add(out, bytes, sizeof bytes);
}

static void entry_begin(struct writer *w, struct fuzz_input *in)
{
    unsigned char head[24] = { 0 };
    uint8_t digest[HF_DIGEST_SIZE] = { 0 };
    entry_end(w);
    head[8] = fuzz_u8(in);
    head[9] = fuzz_u8(in);
    head[10] = fuzz_u8(in);
    head[12] = fuzz_u8(in);
    uint8_t flags = fuzz_u8(in);
    hf_put64(head + 16, flags & FLAG_RECORDED ? fuzz_u64(in) : (uint64_t)w->now);
    uint64_t expires = flags & FLAG_EXPIRES ? fuzz_u64(in) : (uint64_t)w->now + WINDOW_MS;
    if (flags & FLAG_DIGEST) {
        struct hf_bytes given = fuzz_some(in, sizeof digest);
        memcpy(digest, given.data, given.size);
    }
    uint16_t sequence = fuzz_u16(in);
    struct hf_bytes tenant = fuzz_some(in, fuzz_u8(in)), key = fuzz_some(in, fuzz_u8(in));
    head[13] = (unsigned char)tenant.size;
    hf_put16(head + 14, (uint16_t)key.size);
    hf_buffer_add(&w->entry, head, sizeof head);
    if (head[10] != HF_REMEMBER_NOT) {
        add64(&w->entry, expires);
        hf_buffer_add(&w->entry, digest, sizeof digest);
    }
    if (head[10] == HF_REMEMBER_SEQUENCE)
        add64(&w->entry, sequence);
    hf_buffer_add_bytes(&w->entry, tenant);
    hf_buffer_add_bytes(&w->entry, key);
    if (flags & FLAG_RECORD) {
        hf_buffer_add_char(&w->entry, (char)fuzz_u8(in));
        struct hf_bytes record = fuzz_some(in, fuzz_u16(in));
        add32(&w->entry, record.size);
        hf_buffer_add_bytes(&w->entry, record);
    }
}

static void row_add(struct writer *w, struct fuzz_input *in)
{
    char id[HF_ID_SIZE];
    uint8_t kind = fuzz_u8(in), flags = fuzz_u8(in);
    struct hf_bytes image = fuzz_some(in, fuzz_u16(in));
    if (w->entry.size == 0)
        return;
    hf_buffer_add_char(&w->entry, (char)kind);
    hf_buffer_add_char(&w->entry, (char)(flags & ~ROW_FIX_ID));
    add32(&w->entry, image.size);
    size_t at = w->entry.size;
    hf_buffer_add_bytes(&w->entry, image);
    w->rows++;
    if (kind == HF_ROW_HOLD && (flags & ROW_FIX_ID) && image.size >= ID_AT + HF_ID_RAW) {
        hf_id_make(&fuzz_store_keys()->id, hf_get64(image.data), id);
        FUZZ_WANT(hf_id_pack(hf_str(id), w->entry.data + at + ID_AT));
    }
}

static bool step(struct writer *w, struct fuzz_input *in)
{
    switch (fuzz_u8(in) % OPS) {
    case OP_BATCH:
        if (!batch_end(w))
            return false;
        w->now += fuzz_u16(in);
        return true;
    case OP_SEGMENT: return batch_end(w) && (w->at == HF_BLOCK || segment_next(w));
    case OP_ENTRY: entry_begin(w, in); return true;
    case OP_ROW: row_add(w, in); return true;
    default:
        w->count_lie = (int8_t)fuzz_u8(in);
        w->rows_lie = (int8_t)fuzz_u8(in);
        return true;
    }
}

void fuzz_rows(struct fuzz_input *in, struct fuzz_files *files)
{
    struct writer w = { .files = files, .data = fuzz_alloc(FUZZ_SEGMENT), .now = FUZZ_START };
    bool goes_on = segment_next(&w);
    while (goes_on && in->left > 0)
        goes_on = step(&w, in);
    (void)(goes_on && batch_end(&w));
    segment_put(&w);
    hf_buffer_free(&w.entry);
    hf_buffer_free(&w.batch);
    free(w.data);
}

/* ---- And back ---- */

static void add16(struct hf_buffer *out, size_t number)
{
    unsigned char bytes[2];
    hf_put16(bytes, (uint16_t)number);
    hf_buffer_add(out, bytes, sizeof bytes);
}

static void add8(struct hf_buffer *out, unsigned number)
{
    hf_buffer_add_char(out, (char)number);
}

static void rows_of(struct hf_bytes rows, struct hf_buffer *out)
{
    struct hf_image image;
    while (hf_image_next(&rows, &image)) {
        add8(out, OP_ROW);
        add8(out, image.kind);
        add8(out, (image.erase ? 1U : 0U) | (image.kind == HF_ROW_HOLD ? ROW_FIX_ID : 0U));
        add16(out, image.bytes.size);
        hf_buffer_add_bytes(out, image.bytes);
    }
}

static void entry_of(const struct hf_entry_view *entry, hf_time now, struct hf_buffer *out)
{
    const struct hf_entry_head *head = &entry->head;
    unsigned flags = (head->recorded_at != now ? FLAG_RECORDED : 0U) | FLAG_DIGEST |
                     (head->expires_at != now + WINDOW_MS ? FLAG_EXPIRES : 0U) |
                     (entry->answer == HF_ANSWER_INLINE ? FLAG_RECORD : 0U);
    add8(out, OP_ENTRY);
    add8(out, head->action);
    add8(out, head->status);
    add8(out, head->remember);
    add8(out, entry->answer);
    flags =
        head->remember == HF_REMEMBER_NOT ? flags & ~(unsigned)(FLAG_DIGEST | FLAG_EXPIRES) : flags;
    add8(out, flags);
    if (flags & FLAG_RECORDED)
        add64(out, (uint64_t)head->recorded_at);
    if (flags & FLAG_EXPIRES)
        add64(out, (uint64_t)head->expires_at);
    if (flags & FLAG_DIGEST)
        hf_buffer_add(out, head->digest, HF_DIGEST_SIZE);
    add16(out, head->remember == HF_REMEMBER_SEQUENCE ? (size_t)head->sequence : 0);
    add8(out, (unsigned)head->tenant.size);
    hf_buffer_add_bytes(out, head->tenant);
    add8(out, (unsigned)head->key.size);
    hf_buffer_add_bytes(out, head->key);
    if (flags & FLAG_RECORD) {
        add8(out, entry->inline_kind);
        add16(out, entry->inline_answer.size);
        hf_buffer_add_bytes(out, entry->inline_answer);
    }
    rows_of(entry->rows, out);
}

static void segment_of(struct hf_bytes segment, uint64_t base, hf_time *now, struct hf_buffer *out)
{
    const unsigned char *p = segment.data;
    struct hf_batch_head head;
    for (size_t at = HF_BLOCK; at < segment.size; at = (size_t)hf_block_up(at + head.length)) {
        struct hf_entry_view entry;
        const struct hf_batch_form form = { HF_FORMAT_VERSION, &fuzz_store_keys()->seal };
        if (!hf_batch_head_decode(&form, p + at, segment.size - at, base + at, &head) ||
            hf_batch_whole(&form, &head, p + at) != 0)
            return;
        add8(out, OP_BATCH);
        add16(out, (size_t)(head.now - *now));
        *now = head.now;
        for (size_t i = HF_BATCH_HEAD; i < head.length; i += entry.size) {
            FUZZ_WANT(hf_entry_decode(p + at + i, head.length - i, &entry));
            entry_of(&entry, head.now, out);
        }
    }
}

void fuzz_rows_of(const struct fuzz_files *files, struct hf_buffer *out)
{
    hf_time now = FUZZ_START;
    uint64_t base = 0;
    for (uint64_t number = 1;; number++) {
        char name[HF_SEGMENT_NAME_SIZE];
        hf_segment_name(number, ".log", name);
        struct hf_bytes segment = fuzz_files_get(files, name);
        if (segment.size == 0)
            return;
        segment_of(segment, base, &now, out);
        base += segment.size;
    }
}

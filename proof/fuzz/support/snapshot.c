#include "fuzz/support/snapshot.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "fuzz/support/fuzz.h"

enum { HEAD = 16, END = 5, NUMBERS = 32 };

static void add64(struct hf_buffer *out, uint64_t number)
{
    unsigned char bytes[8];
    hf_put64(bytes, number);
    hf_buffer_add(out, bytes, sizeof bytes);
}

static void block_add(struct hf_buffer *out, uint32_t type, uint32_t count, struct hf_bytes payload,
                      uint64_t blocks)
{
    unsigned char head[HEAD] = { 0 };
    uint8_t digest[HF_DIGEST_SIZE];
    size_t at = out->size;
    hf_sha256_of(out->data, out->size, digest);
    hf_buffer_add(out, head, sizeof head);
    if (type == END && payload.size > NUMBERS)
        payload.size = NUMBERS;
    hf_buffer_add_bytes(out, payload);
    if (type == END) {
        add64(out, blocks);
        hf_buffer_add(out, digest, sizeof digest);
    }
    unsigned char *p = out->data + at;
    hf_put32(p, type);
    hf_put32(p + 4, (uint32_t)(out->size - at - HEAD));
    hf_put32(p + 8, count);
    hf_put32(p + 12, hf_crc32c(hf_crc32c(0, p, 12), p + HEAD, out->size - at - HEAD));
}

void fuzz_snapshot_build(struct hf_bytes input, struct hf_buffer *out)
{
    struct fuzz_input in = { input.data, input.size };
    for (uint64_t blocks = 0; in.left > 0; blocks++) {
        uint32_t type = fuzz_u8(&in), count = fuzz_u16(&in);
        block_add(out, type, count, fuzz_some(&in, fuzz_u16(&in)), blocks);
    }
    FUZZ_WANT(!out->failed);
}

void fuzz_snapshot_of(struct hf_bytes file, struct hf_buffer *out)
{
    const unsigned char *p = file.data;
    for (size_t at = 0; at < file.size;) {
        uint32_t type = hf_get32(p + at), size = hf_get32(p + at + 4), count = hf_get32(p + at + 8);
        size_t kept = type == END ? NUMBERS : size;
        unsigned char head[5] = { (unsigned char)type };
        FUZZ_WANT(size <= UINT16_MAX && count <= UINT16_MAX);
        hf_put16(head + 1, (uint16_t)count);
        hf_put16(head + 3, (uint16_t)kept);
        hf_buffer_add(out, head, sizeof head);
        hf_buffer_add(out, p + at + HEAD, kept);
        at += HEAD + size;
    }
}

enum { PACK_HEAD = 48, PACK_ROW = 16 };

void fuzz_pack_fix(unsigned char *file, size_t size)
{
    if (size < PACK_HEAD)
        return;
    uint64_t frames = hf_get32(file + 40);
    if (frames > (size - PACK_HEAD) / PACK_ROW)
        return;
    for (uint64_t i = 0; i < frames; i++) {
        unsigned char *row = file + PACK_HEAD + i * PACK_ROW;
        uint64_t at = hf_get64(row), length = hf_get32(row + 8);
        if (at <= size && length <= size - at && length > 0)
            hf_put32(row + 12, hf_crc32c(0, file + at, length));
    }
    hf_put32(file + 44, hf_crc32c(hf_crc32c(0, file, 44), file + PACK_HEAD, frames * PACK_ROW));
}

#include "store/journal/closed.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <errno.h>

#define TEMPORARY HF_CLOSED_NAME ".tmp"

static const unsigned char magic[8] = "HFclose1";

static void encode(const struct hf_closed *note, unsigned char out[HF_CLOSED_SIZE])
{
    memset(out, 0, HF_CLOSED_SIZE);
    memcpy(out, magic, sizeof magic);
    hf_put64(out + 8, note->sequence);
    hf_put64(out + 16, note->end);
    memcpy(out + 24, note->chain, HF_DIGEST_SIZE);
    hf_put32(out + 60, hf_crc32c(0, out, 60));
}

int hf_closed_write(const struct hf_io *io, struct hf_dir *dir, const struct hf_closed *note)
{
    unsigned char bytes[HF_CLOSED_SIZE];
    struct hf_file *file;
    int error = io->open(dir, TEMPORARY, HF_OPEN_CREATE, &file);
    if (error)
        return error;
    encode(note, bytes);
    error = io->write(file, bytes, sizeof bytes, 0);
    if (!error)
        error = io->sync(file);
    io->close(file);
    if (!error)
        error = io->rename(dir, TEMPORARY, HF_CLOSED_NAME);
    return error ? error : io->dir_sync(dir);
}

int hf_closed_read(const struct hf_io *io, struct hf_dir *dir, struct hf_closed *note)
{
    unsigned char bytes[HF_CLOSED_SIZE];
    uint64_t size = 0;
    struct hf_file *file;
    *note = (struct hf_closed){ .sequence = 0 };
    int error = io->open(dir, HF_CLOSED_NAME, HF_OPEN_READ, &file);
    if (error)
        return error == -ENOENT ? 0 : error;
    error = io->size(file, &size);
    bool whole = !error && size >= sizeof bytes;
    if (whole)
        error = io->read(file, bytes, sizeof bytes, 0);
    io->close(file);
    if (error || !whole || memcmp(bytes, magic, sizeof magic) != 0 ||
        hf_get32(bytes + 60) != hf_crc32c(0, bytes, 60))
        return error;
    note->sequence = hf_get64(bytes + 8);
    note->end = hf_get64(bytes + 16);
    memcpy(note->chain, bytes + 24, HF_DIGEST_SIZE);
    return 0;
}

bool hf_closed_fits(const struct hf_closed *note, uint64_t sequence,
                    const uint8_t hash[HF_DIGEST_SIZE])
{
    return note->sequence == 0 || note->sequence != sequence ||
           memcmp(note->chain, hash, HF_DIGEST_SIZE) == 0;
}

#include "store/journal/closed.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <errno.h>

#define TEMPORARY HF_CLOSED_NAME ".tmp"

static const unsigned char magic[8] = "HFclose1";
enum { STORE = 64, SEAL = 96, CRC = 132 };

static void encode(const struct hf_closed *note, unsigned char out[HF_CLOSED_SIZE])
{
    memset(out, 0, HF_CLOSED_SIZE);
    memcpy(out, magic, sizeof magic);
    hf_put64(out + 8, note->sequence);
    hf_put64(out + 16, note->end);
    memcpy(out + 24, note->chain, HF_DIGEST_SIZE);
    hf_put32(out + 60, hf_crc32c(0, out, 60));
    memcpy(out + STORE, note->store, HF_DIGEST_SIZE);
    memcpy(out + SEAL, note->seal, HF_DIGEST_SIZE);
    hf_put32(out + CRC, hf_crc32c(0, out, CRC));
}

void hf_closed_name(struct hf_closed *note, const struct hf_store_keys *keys)
{
    unsigned char store[14 + 48] = "holdfast store", seal[13 + 16] = "holdfast seal";
    memcpy(store + 14, keys->store_id, 16);
    hf_put64(store + 30, keys->table.k0);
    hf_put64(store + 38, keys->table.k1);
    hf_put64(store + 46, keys->id.k0);
    hf_put64(store + 54, keys->id.k1);
    hf_put64(seal + 13, keys->seal.k0);
    hf_put64(seal + 21, keys->seal.k1);
    hf_sha256_of(store, sizeof store, note->store);
    hf_sha256_of(seal, sizeof seal, note->seal);
    note->names_store = true;
}

bool hf_closed_is_of(const struct hf_closed *note, const struct hf_store_keys *keys, bool sealed)
{
    struct hf_closed own = { .sequence = 0 };
    if (!note->names_store)
        return true;
    hf_closed_name(&own, keys);
    return memcmp(own.store, note->store, HF_DIGEST_SIZE) == 0 &&
           (!sealed || memcmp(own.seal, note->seal, HF_DIGEST_SIZE) == 0);
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
    unsigned char bytes[HF_CLOSED_SIZE] = { 0 };
    uint64_t size = 0;
    struct hf_file *file;
    *note = (struct hf_closed){ .sequence = 0 };
    int error = io->open(dir, HF_CLOSED_NAME, HF_OPEN_READ, &file);
    if (error)
        return error == -ENOENT ? 0 : error;
    error = io->size(file, &size);
    bool whole = !error && size >= HF_CLOSED_SIZE_1;
    if (whole)
        error = io->read(file, bytes, size < sizeof bytes ? HF_CLOSED_SIZE_1 : sizeof bytes, 0);
    io->close(file);
    if (error || !whole || memcmp(bytes, magic, sizeof magic) != 0 ||
        hf_get32(bytes + 60) != hf_crc32c(0, bytes, 60))
        return error;
    note->sequence = hf_get64(bytes + 8);
    note->end = hf_get64(bytes + 16);
    memcpy(note->chain, bytes + 24, HF_DIGEST_SIZE);
    memcpy(note->store, bytes + STORE, HF_DIGEST_SIZE);
    memcpy(note->seal, bytes + SEAL, HF_DIGEST_SIZE);
    note->names_store = note->sequence > 0 && size >= sizeof bytes &&
                        hf_get32(bytes + CRC) == hf_crc32c(0, bytes, CRC);
    return 0;
}

bool hf_closed_fits(const struct hf_closed *note, uint64_t sequence,
                    const uint8_t hash[HF_DIGEST_SIZE])
{
    return note->sequence == 0 || note->sequence != sequence ||
           memcmp(note->chain, hash, HF_DIGEST_SIZE) == 0;
}

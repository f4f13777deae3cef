#include "store/journal/format.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "store/record/sound.h"

#include <errno.h>

/* ---- Segment header ---- */

/* Offsets of the fields after the keys: version 1 has a CRC in place of the tag. */
enum { CHAIN_1 = 104, CRC_1 = 136, SEAL = 104, CHAIN = 120, TAG = 152 };

static void key_put(unsigned char *out, const struct hf_sipkey *key)
{
    hf_put64(out, key->k0);
    hf_put64(out + 8, key->k1);
}

static struct hf_sipkey key_get(const unsigned char *in)
{
    return (struct hf_sipkey){ hf_get64(in), hf_get64(in + 8) };
}

static uint64_t tag_of(const struct hf_sipkey *seal, const unsigned char *in, size_t size)
{
    return hf_siphash(seal, hf_mem(in, size), hf_mem(NULL, 0));
}

void hf_segment_head_encode(const struct hf_segment_head *head, unsigned char out[HF_BLOCK])
{
    memset(out, 0, HF_BLOCK);
    memcpy(out, "HOLDSEG1", 8);
    hf_put32(out + 8, HF_FORMAT_VERSION);
    hf_put32(out + 12, HF_BLOCK);
    hf_put64(out + 16, head->number);
    hf_put64(out + 24, head->base);
    hf_put64(out + 32, head->size);
    hf_put64(out + 40, head->first_sequence);
    hf_put64(out + 48, (uint64_t)head->created_at);
    memcpy(out + 56, head->keys.store_id, 16);
    key_put(out + 72, &head->keys.table);
    key_put(out + 88, &head->keys.id);
    key_put(out + SEAL, &head->keys.seal);
    memcpy(out + CHAIN, head->chain, HF_DIGEST_SIZE);
    hf_put64(out + TAG, tag_of(&head->keys.seal, out, TAG));
}

enum hf_head_state hf_segment_head_decode(const unsigned char *in, struct hf_segment_head *head)
{
    if (memcmp(in, "HOLDSEG1", 8) != 0)
        return HF_HEAD_NONE;
    /* Check the version before the tag: a newer format may have its tag elsewhere. */
    head->version = hf_get32(in + 8);
    if (head->version > HF_FORMAT_VERSION)
        return HF_HEAD_NEWER;
    if (head->version == 0 || hf_get32(in + 12) != HF_BLOCK)
        return HF_HEAD_NONE;
    bool first = head->version == 1;
    head->keys.seal = first ? (struct hf_sipkey){ 0, 0 } : key_get(in + SEAL);
    if (first ? hf_get32(in + CRC_1) != hf_crc32c(0, in, CRC_1)
              : hf_get64(in + TAG) != tag_of(&head->keys.seal, in, TAG))
        return HF_HEAD_NONE;
    head->number = hf_get64(in + 16);
    head->base = hf_get64(in + 24);
    head->size = hf_get64(in + 32);
    head->first_sequence = hf_get64(in + 40);
    head->created_at = (hf_time)hf_get64(in + 48);
    memcpy(head->keys.store_id, in + 56, 16);
    head->keys.table = key_get(in + 72);
    head->keys.id = key_get(in + 88);
    memcpy(head->chain, in + (first ? CHAIN_1 : CHAIN), HF_DIGEST_SIZE);
    return HF_HEAD_GOOD;
}

/* ---- Batch header ---- */

enum {
    ENTRIES_TAG = 64,
    COUNT = 96,
    BATCH_TAG = 104,
    COUNT_1 = 64,
    HEAD_CRC_1 = 72,
    BODY_CRC_1 = 76
};

/* The nonce of the entries' tag: their position. A batch that is written again after a torn one has
 * the same nonce, which only a reader of both tags could exploit. */
static void nonce_make(const struct hf_batch_head *head, uint8_t nonce[HF_GMAC_NONCE])
{
    hf_put64(nonce, head->position);
    hf_put32(nonce + 8, (uint32_t)head->sequence);
}

static struct hf_bytes entries_of(const struct hf_batch_head *head, const unsigned char *batch)
{
    return hf_mem(batch + HF_BATCH_HEAD, head->length - HF_BATCH_HEAD);
}

int hf_batch_seal(const struct hf_batch_head *head, const struct hf_sipkey *seal,
                  struct hf_gmac *gmac, unsigned char *batch)
{
    uint8_t nonce[HF_GMAC_NONCE];
    hf_put32(batch, HF_BATCH_MAGIC);
    hf_put32(batch + 4, head->length);
    hf_put64(batch + 8, head->sequence);
    hf_put64(batch + 16, head->position);
    hf_put64(batch + 24, (uint64_t)head->now);
    memcpy(batch + 32, head->chain, HF_DIGEST_SIZE);
    memset(batch + ENTRIES_TAG, 0, COUNT - ENTRIES_TAG);
    nonce_make(head, nonce);
    if (!hf_gmac_of(gmac, nonce, entries_of(head, batch), batch + ENTRIES_TAG))
        return -EIO;
    hf_put32(batch + COUNT, head->count);
    hf_put32(batch + COUNT + 4, 0);
    hf_put64(batch + BATCH_TAG, tag_of(seal, batch, BATCH_TAG));
    return 0;
}

bool hf_batch_head_decode(const struct hf_batch_form *form, const unsigned char *in, size_t room,
                          uint64_t position, struct hf_batch_head *head)
{
    bool first = form->version == 1;
    size_t size = hf_batch_head_size(form->version);
    if (room < size || hf_get32(in) != (first ? HF_BATCH_MAGIC_1 : HF_BATCH_MAGIC))
        return false;
    head->version = form->version;
    head->length = hf_get32(in + 4);
    head->sequence = hf_get64(in + 8);
    head->position = hf_get64(in + 16);
    head->now = (hf_time)hf_get64(in + 24);
    memcpy(head->chain, in + 32, HF_DIGEST_SIZE);
    head->count = hf_get32(in + (first ? COUNT_1 : COUNT));
    if (head->position != position || head->length < size || head->length > room ||
        head->length > HF_BATCH_MAX)
        return false;
    if (first)
        return hf_get32(in + HEAD_CRC_1) == hf_crc32c(0, in, HEAD_CRC_1);
    return !form->seal || hf_get64(in + BATCH_TAG) == tag_of(form->seal, in, BATCH_TAG);
}

bool hf_sealed_read(const struct hf_sipkey *seal, const unsigned char *in, struct hf_sealed *out)
{
    struct hf_segment_head head;
    if (hf_get32(in) == HF_BATCH_MAGIC) {
        *out = (struct hf_sealed){ hf_get64(in + 8), hf_get64(in + 16) };
        return hf_get64(in + BATCH_TAG) == tag_of(seal, in, BATCH_TAG);
    }
    if (hf_segment_head_decode(in, &head) != HF_HEAD_GOOD || head.version < 2)
        return false;
    *out = (struct hf_sealed){ head.first_sequence, head.base };
    return memcmp(&head.keys.seal, seal, sizeof *seal) == 0;
}

int hf_batch_whole(const struct hf_batch_form *form, const struct hf_batch_head *head,
                   const unsigned char *batch)
{
    uint8_t nonce[HF_GMAC_NONCE], tag[HF_GMAC_SIZE];
    if (head->version == 1)
        return hf_get32(batch + BODY_CRC_1) ==
                       hf_crc32c(0, batch + HF_BATCH_HEAD_1, head->length - HF_BATCH_HEAD_1)
                   ? 0
                   : -EBADMSG;
    if (!form->seal)
        return 0;
    nonce_make(head, nonce);
    if (!hf_gmac_once(form->seal, nonce, entries_of(head, batch), tag))
        return -ENOMEM;
    return memcmp(tag, batch + ENTRIES_TAG, sizeof tag) == 0 ? 0 : -EBADMSG;
}

void hf_batch_hash(const struct hf_batch_head *head, const unsigned char *batch,
                   uint8_t out[HF_DIGEST_SIZE])
{
    hf_sha256_of(batch, head->length, out);
}

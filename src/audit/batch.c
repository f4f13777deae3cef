#include "audit/batch.h"

#include "base/bytes.h"

#define MAGIC_1 0x31424648U
#define MAGIC_2 0x32424648U
#define SEALED 104 /* bytes of a header that the seal covers */

/* The header at `h`, read as one of `version`. seal: NULL: the seal is not checked. */
static enum hf_audit_batch_state head_read(const unsigned char *h, uint32_t version,
                                           const struct hf_sipkey *seal, uint64_t position,
                                           struct hf_audit_batch_head *head)
{
    bool first = version == 1;
    if (hf_get32(h) != (first ? MAGIC_1 : MAGIC_2))
        return HF_AUDIT_BATCH_NONE;
    bool sealed =
        first   ? hf_crc32c(0, h, 72) == hf_get32(h + 72)
        : !seal ? true
                : hf_siphash(seal, hf_mem(h, SEALED), hf_mem(NULL, 0)) == hf_get64(h + SEALED);
    if (!sealed)
        return HF_AUDIT_BATCH_UNSEALED;
    if (hf_get64(h + 16) != position)
        return HF_AUDIT_BATCH_ELSEWHERE;
    *head =
        (struct hf_audit_batch_head){ .version = version,
                                      .size = first ? HF_AUDIT_BATCH_HEAD_1 : HF_AUDIT_BATCH_HEAD,
                                      .length = hf_get32(h + 4),
                                      .count = hf_get32(h + (first ? 64 : 96)),
                                      .sequence = hf_get64(h + 8),
                                      .now = (hf_time)hf_get64(h + 24) };
    memcpy(head->chain, h + 32, HF_DIGEST_SIZE);
    return HF_AUDIT_BATCH_CUT; /* until the entries are checked */
}

/* Do the entries match the header? Without the seal's key only version 1 can be checked. bytes: the
 * batch; sets bytes->failed if out of memory. */
static bool entries_fit(const struct hf_audit_batch_head *head, const struct hf_sipkey *seal,
                        uint64_t position, struct hf_buffer *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes->data;
    uint8_t nonce[HF_GMAC_NONCE], tag[HF_GMAC_SIZE];
    struct hf_bytes entries = hf_mem(b + head->size, head->length - head->size);
    if (head->version == 1)
        return hf_crc32c(0, entries.data, entries.size) == hf_get32(b + 76);
    if (!seal)
        return true;
    hf_put64(nonce, position);
    hf_put32(nonce + 8, (uint32_t)head->sequence);
    if (!hf_gmac_once(seal, nonce, entries, tag)) {
        bytes->failed = true;
        return false;
    }
    return memcmp(tag, b + 64, sizeof tag) == 0;
}

static enum hf_audit_batch_state read_as(struct hf_audit_segment *seg, uint64_t base,
                                         uint64_t offset, uint32_t version,
                                         const struct hf_sipkey *seal,
                                         struct hf_audit_batch_head *head, struct hf_buffer *bytes)
{
    unsigned char h[HF_AUDIT_BATCH_HEAD];
    if (!hf_audit_segment_read(seg, offset, h, sizeof h))
        return HF_AUDIT_BATCH_NONE;
    enum hf_audit_batch_state state = head_read(h, version, seal, base + offset, head);
    if (state != HF_AUDIT_BATCH_CUT)
        return state;
    if (head->length < head->size || head->length > HF_AUDIT_BATCH_MAX ||
        head->length > seg->size - offset)
        return HF_AUDIT_BATCH_UNSEALED;
    hf_buffer_reset(bytes);
    if (!hf_buffer_reserve(bytes, head->length) ||
        !hf_audit_segment_read(seg, offset, bytes->data, head->length))
        return HF_AUDIT_BATCH_CUT;
    bytes->size = head->length;
    return memcmp(bytes->data, h, head->size) == 0 && entries_fit(head, seal, base + offset, bytes)
               ? HF_AUDIT_BATCH_WHOLE
               : HF_AUDIT_BATCH_CUT;
}

enum hf_audit_batch_state hf_audit_batch_read(struct hf_audit_segment *seg, uint64_t base,
                                              uint64_t offset, const struct hf_sipkey *seal,
                                              struct hf_audit_batch_head *head,
                                              struct hf_buffer *bytes)
{
    uint32_t version = seg->head_good ? seg->head.version : HF_AUDIT_VERSION;
    enum hf_audit_batch_state state = read_as(seg, base, offset, version, seal, head, bytes);
    if (seg->head_good || seal || state == HF_AUDIT_BATCH_WHOLE)
        return state;
    return read_as(seg, base, offset, 1, NULL, head, bytes);
}

uint64_t hf_audit_sealed_sequence(const unsigned char *b, const struct hf_sipkey *seal,
                                  uint64_t *position)
{
    bool batch = hf_get32(b) == MAGIC_2;
    size_t size = batch ? SEALED : 152;
    if (!batch && (memcmp(b, "HOLDSEG1", 8) != 0 || hf_get32(b + 8) < 2 ||
                   hf_get64(b + 104) != seal->k0 || hf_get64(b + 112) != seal->k1))
        return 0;
    if (hf_siphash(seal, hf_mem(b, size), hf_mem(NULL, 0)) != hf_get64(b + size))
        return 0;
    *position = hf_get64(b + (batch ? 16 : 24));
    return hf_get64(b + (batch ? 8 : 40));
}

void hf_audit_batch_hash(const struct hf_audit_batch_head *head, const unsigned char *batch,
                         uint8_t out[HF_DIGEST_SIZE])
{
    hf_sha256_of(batch, head->length, out);
}

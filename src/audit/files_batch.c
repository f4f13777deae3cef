/* One batch, and its segment. */
#include "audit/files.h"

#include "base/bytes.h"

bool hf_files_batch_at(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                       uint64_t offset, uint64_t lowest)
{
    return hf_audit_batch_read(seg, base, offset, r->seal_known ? &r->seal : NULL, &r->head,
                               &r->bytes) == HF_AUDIT_BATCH_WHOLE &&
           r->head.sequence >= lowest;
}

bool hf_files_batch_here(struct hf_files *r)
{
    return r->seg.fd >= 0 && hf_files_batch_at(r, &r->seg, r->base, r->offset, r->next_sequence) &&
           r->head.sequence == r->next_sequence;
}

enum hf_audit_batch_state hf_files_look_here(struct hf_files *r)
{
    return hf_audit_batch_read(&r->seg, r->base, r->offset, r->seal_known ? &r->seal : NULL,
                               &r->head, &r->bytes);
}

uint64_t hf_files_torn_bytes(struct hf_files *r)
{
    return r->seg.fd >= 0 && hf_files_look_here(r) == HF_AUDIT_BATCH_CUT &&
                   r->head.sequence == r->next_sequence
               ? r->head.length
               : 0;
}

bool hf_files_note_fits(const struct hf_files *r, const struct hf_audit_head *head)
{
    unsigned char store[14 + 48] = "holdfast store", seal[13 + 16] = "holdfast seal";
    uint8_t hash[HF_DIGEST_SIZE];
    const struct hf_sipkey *keys[] = { &head->table_key, &head->id_key };
    if (!r->closed.names_store)
        return true;
    memcpy(store + 14, head->store_id, 16);
    for (size_t i = 0; i < 2; i++) {
        hf_put64(store + 30 + 16 * i, keys[i]->k0);
        hf_put64(store + 38 + 16 * i, keys[i]->k1);
    }
    hf_sha256_of(store, sizeof store, hash);
    if (memcmp(hash, r->closed.store, sizeof hash) != 0)
        return false;
    hf_put64(seal + 13, head->seal.k0);
    hf_put64(seal + 21, head->seal.k1);
    hf_sha256_of(seal, sizeof seal, hash);
    return head->version == 1 || memcmp(hash, r->closed.seal, sizeof hash) == 0;
}

bool hf_files_same_keys(const struct hf_files *r, const struct hf_audit_segment *seg)
{
    const struct hf_audit_head *h = &seg->head;
    return hf_files_note_fits(r, h) &&
           (!r->reader.journal.keys_known ||
            (memcmp(h->store_id, r->reader.journal.store_id, sizeof h->store_id) == 0 &&
             memcmp(&h->id_key, &r->reader.journal.id_key, sizeof h->id_key) == 0 &&
             memcmp(&h->table_key, &r->reader.journal.table_key, sizeof h->table_key) == 0)) &&
           (h->version == 1 || !r->seal_known || memcmp(&h->seal, &r->seal, sizeof h->seal) == 0);
}

bool hf_files_head_belongs(const struct hf_files *r, const struct hf_audit_segment *seg,
                           uint64_t base)
{
    return seg->head_good && seg->head.base == base && seg->head.size == seg->size &&
           (!seg->packed || seg->pack_base == base) && hf_files_same_keys(r, seg);
}

const char *hf_files_size_differs(const struct hf_audit_segment *seg)
{
    if (seg->packed)
        return NULL;
    if (seg->head_good && seg->file_size != seg->head.size)
        return "the file's size does not match its header";
    if (!seg->head_good &&
        (seg->file_size % HF_AUDIT_BLOCK != 0 || seg->file_size < 2 * HF_AUDIT_BLOCK))
        return "the file's size is not valid for a segment";
    return NULL;
}

/* At the first batch after the start of the newest snapshot: does the snapshot match the batches
 * before? */
static void snapshot_pass(struct hf_files *r, const struct hf_audit_batch *b)
{
    const struct hf_audit_snapshot *s = &r->snapshot;
    if (!s->found || r->snapshot_passed || b->position < s->start)
        return;
    r->snapshot_passed = true;
    r->snapshot_fits =
        b->now >= s->now && (!r->chain_known || (b->sequence == s->next_sequence &&
                                                 memcmp(r->chain, s->chain, HF_DIGEST_SIZE) == 0));
}

void hf_files_batch_take(struct hf_files *r, struct hf_audit_batch *out)
{
    const unsigned char *b = r->bytes.data;
    *out = (struct hf_audit_batch){ .sequence = r->head.sequence,
                                    .position = r->base + r->offset,
                                    .length = r->head.length,
                                    .head_size = r->head.size,
                                    .entry_count = r->head.count,
                                    .now = r->head.now,
                                    .previous_now = r->last_now,
                                    .bytes = hf_mem(b, r->bytes.size),
                                    .segment = r->seg.number,
                                    .offset = r->offset,
                                    .after_gap = r->gap };
    memcpy(out->chain, r->head.chain, HF_DIGEST_SIZE);
    hf_audit_batch_hash(&r->head, b, out->hash);
    out->chain_fits = !r->chain_known || memcmp(out->chain, r->chain, HF_DIGEST_SIZE) == 0;
    out->now_fits = out->now >= r->last_now && hf_audit_now_sound(out->now);
    out->head_fits =
        r->offset != HF_AUDIT_BLOCK || !r->seg.head_good ||
        (!r->seg.head_dirty && !hf_files_size_differs(&r->seg) &&
         hf_files_head_belongs(r, &r->seg, r->base) &&
         r->seg.head.first_sequence == out->sequence && r->seg.head.first_now == out->now &&
         memcmp(r->seg.head.chain, out->chain, HF_DIGEST_SIZE) == 0);
    static const unsigned char zeros[HF_AUDIT_BLOCK];
    unsigned char padding[HF_AUDIT_BLOCK];
    uint64_t end = r->offset + out->length;
    size_t rest = (size_t)(hf_files_block_up(end) - end);
    out->padding_fits = hf_audit_segment_read(&r->seg, end, padding, rest);
    if (!out->padding_fits && r->seg.io_error)
        r->open_error = r->seg.io_error; /* a read error is not damage: the next step fails */
    /* Most of a small batch's block is padding: not byte by byte. */
    out->padding_fits = out->padding_fits && memcmp(padding, zeros, rest) == 0;

    if (out->sequence == r->closed.sequence && !r->closed_met) {
        r->closed_met = true;
        memcpy(r->closed_hash, out->hash, HF_DIGEST_SIZE);
        r->closed_at = (struct hf_files_place){ .segment = r->seg.number,
                                                .offset = r->offset,
                                                .sequence = out->sequence };
        memcpy(r->closed_at.file, r->seg.name, sizeof r->closed_at.file);
    }
    r->padded = !out->padding_fits;
    snapshot_pass(r, out);
    memcpy(r->chain, out->hash, HF_DIGEST_SIZE);
    r->chain_known = true;
    r->last_now = out->now > r->last_now ? out->now : r->last_now;
    r->next_sequence = out->sequence + 1;
    r->offset = hf_files_block_up(end);
    r->reader.journal.end = r->base + r->offset;
}

/* What both sources share. */
#include "audit/read.h"

#include "base/bytes.h"

enum hf_audit_step hf_audit_reader_next(struct hf_audit_reader *reader,
                                        struct hf_audit_batch *batch, struct hf_error *why)
{
    return reader->source->next(reader, batch, why);
}

const struct hf_audit_damage *hf_audit_reader_damage(const struct hf_audit_reader *reader)
{
    return &reader->damage;
}

const struct hf_audit_journal *hf_audit_reader_journal(const struct hf_audit_reader *reader)
{
    return &reader->journal;
}

const struct hf_audit_writer *hf_audit_reader_writer(const struct hf_audit_reader *reader)
{
    return &reader->writer;
}

void hf_audit_writer_add(struct hf_sha256 *heads, const struct hf_audit_writer *writer,
                         uint8_t head[HF_DIGEST_SIZE])
{
    unsigned char numbers[12];
    hf_put32(numbers, writer->id);
    hf_put64(numbers + 4, writer->batch);
    hf_sha256_add(heads, numbers, sizeof numbers);
    hf_sha256_add(heads, writer->chain, sizeof writer->chain);
    struct hf_sha256 so_far = *heads;
    hf_sha256_end(&so_far, head);
}

/* A single entry, which must fill its bytes exactly. */
static void entry_alone(const struct hf_audit_batch *batch, struct hf_audit_entry *entry,
                        const char **problem)
{
    *problem = hf_audit_entry_read(batch->bytes, entry);
    if (!*problem && entry->size != batch->bytes.size)
        *problem = "there are bytes after it";
    entry->position = batch->position;
}

bool hf_audit_batch_entry(const struct hf_audit_batch *batch, uint32_t *at,
                          struct hf_audit_entry *entry, const char **problem)
{
    if (batch->single) {
        if ((*at)++ > 0)
            return false;
        entry_alone(batch, entry, problem);
        return true;
    }
    if (*at == 0)
        *at = batch->head_size;
    if (*at >= batch->length)
        return false;
    const unsigned char *b = batch->bytes.data;
    *problem = hf_audit_entry_read(hf_mem(b + *at, batch->length - *at), entry);
    entry->position = batch->position + *at;
    *at = entry->size > 0 ? *at + entry->size : batch->length;
    return true;
}

bool hf_audit_reader_entry(struct hf_audit_reader *reader, uint64_t position,
                           struct hf_audit_entry *entry)
{
    return reader->source->entry(reader, position, entry);
}

bool hf_audit_reader_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                            struct hf_error *why)
{
    *why = (struct hf_error){ HF_OK, "" };
    return reader->source->stored && reader->source->stored(reader, row, why);
}

void hf_audit_reader_close(struct hf_audit_reader *reader)
{
    if (reader)
        reader->source->close(reader);
}

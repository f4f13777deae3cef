/* read.h: the journal of a store, batch by batch, from its files alone.
 *
 *     struct hf_audit_reader *r;
 *     if (hf_audit_reader_open(dir, &r, &why) != HF_OK) ...
 *     for (;;) {
 *         struct hf_audit_batch batch;
 *         enum hf_audit_step step = hf_audit_reader_next(r, &batch, &why);
 *         ...
 *     }
 *     hf_audit_reader_close(r);
 *
 * Nothing is written, nothing is locked and the library is not used, so this may be done to a store that
 * a server has open: what is durable when a place is reached is read, and the end is simply the end.
 * Memory: one batch, and a few words for each segment. */
#ifndef HF_AUDIT_READ_H
#define HF_AUDIT_READ_H

#include "audit/record.h"
#include "audit/segment.h"

struct hf_audit_reader;

struct hf_audit_batch {
    uint64_t sequence, position;
    uint32_t length, entry_count;
    hf_time now;
    hf_time previous_now;          /* of the batch before; INT64_MIN for the first */
    uint8_t chain[HF_DIGEST_SIZE]; /* as it stands in the batch */
    uint8_t hash[HF_DIGEST_SIZE];  /* SHA-256 of this batch: the chain head after it */
    struct hf_bytes bytes;         /* the whole batch; borrowed until the next step */
    uint64_t segment;              /* number of the segment it lies in */
    uint64_t offset;               /* within the segment */
    bool chain_fits;               /* false: the batch is intact, but it does not name the one before it */
    bool now_fits;                 /* false: its `now` runs back */
    bool head_fits;    /* false: it is a segment's first, and the segment's header says something else */
    bool padding_fits; /* false: what lies between its end and the next block is not zeros */
    bool after_gap;    /* batches before this one are lost: what it builds on is not known */
};

/* Where the journal is damaged: nothing right at this place, and whole batches behind it. */
struct hf_audit_damage {
    char file[HF_AUDIT_NAME_SIZE];
    uint64_t offset;         /* within the segment (of a compressed one: as if it were not) */
    uint64_t sequence;       /* of the batch that should be there */
    uint64_t found_sequence; /* of the next whole batch; it is where reading goes on */
    char found_file[HF_AUDIT_NAME_SIZE];
    uint64_t found_offset;
    const char *what; /* static: what was found to be wrong */
};

enum hf_audit_step {
    HF_AUDIT_BATCH,  /* the next batch */
    HF_AUDIT_END,    /* no more */
    HF_AUDIT_DAMAGE, /* hf_audit_reader_damage says where; the next step goes on behind it */
    HF_AUDIT_FAILED  /* the files cannot be read: why says so */
};

struct hf_audit_journal {
    uint64_t segments, packed; /* walked so far; how many of them were compressed */
    uint64_t end;              /* position behind the last whole batch, rounded up to a block */
    uint64_t torn_bytes;       /* of a batch cut short at the end, or 0 */
    uint64_t bytes_total;      /* of all journal files when the reader was opened */
    uint8_t store_id[16];
    bool keys_known; /* false if the first segment's header is not right: no id_key then */
    struct hf_sipkey id_key;
};

/* hf_audit_reader_open: dir: borrowed. reader: out, owned, close with hf_audit_reader_close. why: out.
 * HF_OK; HF_STORE_ABSENT (no such directory, or no journal in it); HF_STORE_NEWER; HF_STORAGE_FAILURE
 * (it cannot be read); HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_audit_reader_open(const char *dir, struct hf_audit_reader **reader,
                                                struct hf_error *why);
void hf_audit_reader_close(struct hf_audit_reader *reader);

/* hf_audit_reader_next: one step. batch: out, filled for HF_AUDIT_BATCH, its bytes borrowed until the
 * next step. why: out, filled for HF_AUDIT_FAILED (HF_STORE_NEWER, HF_STORAGE_FAILURE, HF_NO_MEMORY). */
HF_MUST_USE enum hf_audit_step hf_audit_reader_next(struct hf_audit_reader *reader,
                                                    struct hf_audit_batch *batch, struct hf_error *why);

/* Where the last step met damage. Borrowed until the reader is closed; overwritten by the next damage.
 */
const struct hf_audit_damage *hf_audit_reader_damage(const struct hf_audit_reader *reader);
const struct hf_audit_journal *hf_audit_reader_journal(const struct hf_audit_reader *reader);

/* hf_audit_batch_entry: the next entry of a batch; *at is 0 before the first call. Returns false at the
 * end of the batch. *problem: NULL, or what is wrong with the entry (static); the call after a problem
 * goes on behind the entry if its size can be relied on, else ends the batch. */
bool hf_audit_batch_entry(const struct hf_audit_batch *batch, uint32_t *at, struct hf_audit_entry *entry,
                          const char **problem);

/* hf_audit_reader_entry: read again the entry at `position`, which has been passed already. Borrowed
 * until the next call of this function. False if it cannot be read (any more); without memory, or if the file cannot be
 * opened or read, hf_audit_reader_next fails then too. */
bool hf_audit_reader_entry(struct hf_audit_reader *reader, uint64_t position, struct hf_audit_entry *entry);

#endif

/* read.h: the records of a store, batch by batch, from where they are kept.
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
 * There are two sources, and those who read need not know which it is: read_files.c, the journal in
 * a directory, and read_postgres.c, the table holdfast.journal of a database. Nothing is written,
 * nothing is locked and the library is not used, so this may be done to a store that servers have
 * open: what is durable when a place is reached is read, and the end is simply the end. Of a
 * database everything is read as it was at one moment. Memory: one batch, and a few words for each
 * segment or writer. */
#ifndef HF_AUDIT_READ_H
#define HF_AUDIT_READ_H

#include "audit/fields.h"
#include "audit/record.h"
#include "audit/segment.h"

#define HF_AUDIT_ID_KEY 32 /* bytes of a database's key for ids */

struct hf_audit_reader;

struct hf_audit_batch {
    uint64_t sequence, position;
    uint32_t length, entry_count;
    uint32_t head_size; /* of its header: where the entries begin */
    hf_time now;
    hf_time previous_now;          /* of the batch before; INT64_MIN for the first */
    uint8_t chain[HF_DIGEST_SIZE]; /* as it stands in the batch */
    uint8_t hash[HF_DIGEST_SIZE];  /* of this batch: the chain head after it */
    struct hf_bytes bytes;         /* the whole batch; borrowed until the next step */
    uint64_t segment;              /* number of the segment it lies in */
    uint64_t offset;               /* within the segment */
    bool chain_fits; /* false: the batch is intact, but it does not name the one before it */
    bool now_fits;   /* false: its `now` runs back, or is one that no clock shows */
    bool
        /* false: it is a segment's first, and the segment's header says something else */
        head_fits;
    bool padding_fits; /* false: what lies between its end and the next block is not zeros */
    bool after_gap;    /* batches before this one are lost: what it builds on is not known */

    /* Of a database alone. `position` is the number of an entry there, of a whole batch that of its
     * first one; the batch before is that of the same writer, and `sequence` counts the batches of
     * all writers as they begin. */
    bool single; /* `bytes` are one entry */
    uint32_t
        writer; /* 0: one of the functions, in somebody's own transaction: no batch and no chain */
    uint64_t writer_batch; /* its number among those of the writer */
    bool number_fits;      /* false: it does not follow the writer's batch before */
    const struct hf_audit_fields
        *beside; /* what stands beside the entry; borrowed until the next step */
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

/* One who writes batches into a database, and what its batches came to. */
struct hf_audit_writer {
    uint32_t id;
    bool known;              /* false: entries name it, and it is not in the table of writers */
    char name[128];          /* which server, as it can be shown */
    uint64_t batch, entries; /* its newest batch, and its entries, as they were read */
    uint8_t chain[HF_DIGEST_SIZE]; /* as computed from them */
    uint64_t told_batch;           /* as the table says */
    uint8_t told_chain[HF_DIGEST_SIZE];
};

enum hf_audit_step {
    HF_AUDIT_BATCH,  /* the next batch */
    HF_AUDIT_END,    /* no more */
    HF_AUDIT_DAMAGE, /* hf_audit_reader_damage says where; the next step goes on behind it */
    HF_AUDIT_FAILED, /* the records cannot be read: why says so */
    /* Of a database, where the batches of several writers lie among each other: */
    /* one entry; `batch` says which batch it is of, as far as that is known already */
    HF_AUDIT_PART,
    HF_AUDIT_WHOLE, /* that was the last entry of this batch, which has no bytes now */
    /* all entries are behind us; hf_audit_reader_writer says what one of the writers came to */
    HF_AUDIT_WRITER
};

struct hf_audit_journal {
    bool
        /* it is in a database: numbers may be missing, and time need not run straight from entry to
         * entry */
        database;
    uint64_t segments, packed; /* walked so far; how many of them were compressed */
    uint64_t
        end; /* position behind the last whole batch, rounded up to a block; or the newest number */
    uint64_t torn_bytes; /* of a batch cut short at the end, or 0 */
    uint64_t
        /* of all journal files when the reader was opened; or the newest number in the database */
        bytes_total;
    uint64_t
        /* of the one that the start loads, when the reader was opened; 0: there is none */
        snapshot_start;
    uint64_t snapshots_unusable; /* newer ones than that: the start passes over them */
    char snapshot_unusable[HF_AUDIT_NAME_SIZE]; /* the newest of them, or "" */
    uint8_t store_id[16];
    bool
        /* false if no segment's header is right, or the key may not be read: no id_key then */
        keys_known;
    struct hf_sipkey id_key, table_key;
    uint8_t database_key[HF_AUDIT_ID_KEY]; /* in place of id_key, for a database */
    hf_time as_of;                         /* of a database: its clock at the moment that is read */
    char where[200]; /* of a database: which one, as it can be shown; else "" */
};

/* hf_audit_reader_open: the journal in a directory. dir: borrowed. reader: out, owned, close with
 * hf_audit_reader_close. why: out. HF_OK; HF_STORE_ABSENT (no such directory, or no journal in it);
 * HF_STORE_NEWER; HF_STORAGE_FAILURE (it cannot be read); HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_audit_reader_open(const char *dir, struct hf_audit_reader **reader,
                                                struct hf_error *why);
/* The same for the database that a connection string of libpq leads to; HF_INVALID_REQUEST if it is
 * none. No sentence shows a password. timeline: 0, or that of the primary that is to be read:
 * HF_STORAGE_FAILURE if it is another. */
HF_MUST_USE enum hf_status hf_audit_reader_connect(const char *conninfo, uint32_t timeline,
                                                   struct hf_audit_reader **reader,
                                                   struct hf_error *why);
void hf_audit_reader_close(struct hf_audit_reader *reader);

/* hf_audit_reader_next: one step. batch: out, filled for HF_AUDIT_BATCH, HF_AUDIT_PART and
 * HF_AUDIT_WHOLE, its bytes borrowed until the next step. why: out, filled for HF_AUDIT_FAILED
 * (HF_STORE_NEWER, HF_STORAGE_FAILURE, HF_NO_MEMORY). */
HF_MUST_USE enum hf_audit_step hf_audit_reader_next(struct hf_audit_reader *reader,
                                                    struct hf_audit_batch *batch,
                                                    struct hf_error *why);

/* Where the last step met damage. Borrowed until the reader is closed; overwritten by the next
 * damage. */
const struct hf_audit_damage *hf_audit_reader_damage(const struct hf_audit_reader *reader);
const struct hf_audit_journal *hf_audit_reader_journal(const struct hf_audit_reader *reader);
/* The writer that the last step was about. Borrowed until the next step. */
const struct hf_audit_writer *hf_audit_reader_writer(const struct hf_audit_reader *reader);

/* hf_audit_writer_add: one more writer's newest batch under a chain head over all of them. heads:
 * begun with hf_sha256_init. head: out, that over the writers so far. */
void hf_audit_writer_add(struct hf_sha256 *heads, const struct hf_audit_writer *writer,
                         uint8_t head[HF_DIGEST_SIZE]);

/* hf_audit_batch_entry: the next entry of a batch; *at is 0 before the first call. Returns false at
 * the end of the batch. *problem: NULL, or what is wrong with the entry (static); the call after a
 * problem goes on behind the entry if its size can be relied on, else ends the batch. */
bool hf_audit_batch_entry(const struct hf_audit_batch *batch, uint32_t *at,
                          struct hf_audit_entry *entry, const char **problem);

/* hf_audit_reader_entry: read again the entry at `position`, which has been passed already.
 * Borrowed until the next call of this function. False if it cannot be read (any more); without
 * memory, or if the file cannot be opened or read, hf_audit_reader_next fails then too. */
bool hf_audit_reader_entry(struct hf_audit_reader *reader, uint64_t position,
                           struct hf_audit_entry *entry);

/* hf_audit_reader_stored: after the end, the next row of the tables beside the journal. row: out,
 * borrowed until the next call, hf_audit_reader_entry excepted. True for a row. False at the end,
 * which comes at once where there are no tables beside the journal; or after a failure: then
 * why->status, HF_OK before, says so. */
bool hf_audit_reader_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                            struct hf_error *why);

/* ---- For the sources ---- */

struct hf_audit_source {
    enum hf_audit_step (*next)(struct hf_audit_reader *reader, struct hf_audit_batch *batch,
                               struct hf_error *why);
    bool (*entry)(struct hf_audit_reader *reader, uint64_t position, struct hf_audit_entry *entry);
    bool (*stored)(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                   struct hf_error *why);          /* NULL: there is nothing beside the journal */
    void (*close)(struct hf_audit_reader *reader); /* frees the reader, too */
};

/* What all readers begin with. */
struct hf_audit_reader {
    const struct hf_audit_source *source;
    struct hf_audit_damage damage;
    struct hf_audit_journal journal;
    struct hf_audit_writer writer;
};

#endif

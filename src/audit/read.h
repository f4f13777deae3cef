/* read.h: read the records of a store, batch by batch.
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
 * There are two sources with the same interface: read_files.c, the journal in a directory, and
 * read_postgres.c, the table holdfast.journal of a database. The reader writes nothing, locks
 * nothing and does not use the library, so it can read a store that servers have open: it reads
 * what is durable when it reaches a place, up to the current end. A database is read as it was at
 * one moment. Memory: one batch, and a few words for each segment or writer. */
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
    uint8_t chain[HF_DIGEST_SIZE]; /* as stored in the batch */
    uint8_t hash[HF_DIGEST_SIZE];  /* of this batch: the chain head after it */
    struct hf_bytes bytes;         /* the whole batch; borrowed until the next step */
    uint64_t segment;              /* number of its segment */
    uint64_t offset;               /* within the segment */
    /* false: the batch is intact, but its chain is not the hash of the batch before it */
    bool chain_fits;
    bool now_fits; /* false: its `now` runs back, or is out of range */
    /* false: it is a segment's first batch, and the segment's header does not match */
    bool head_fits;
    bool padding_fits; /* false: the bytes between its end and the next block are not zero */
    bool after_gap;    /* batches before this one are lost: the state before it is not known */

    /* For a database only. `position` is the number of an entry, for a whole batch of its first
     * entry; the batch before is the previous batch of the same writer, and `sequence` counts the
     * batches of all writers in the order in which they begin. */
    bool single; /* `bytes` are one entry */
    /* 0: written by a function, in a user's own transaction: no batch and no chain */
    uint32_t writer;
    uint64_t writer_batch; /* its number in the writer's batches */
    bool number_fits;      /* false: it does not follow the writer's previous batch */
    /* the columns next to the entry; borrowed until the next step */
    const struct hf_audit_fields *beside;
};

/* A damaged place of the journal: no right batch here, and usually whole batches after it. */
struct hf_audit_damage {
    char file[HF_AUDIT_NAME_SIZE];
    uint64_t offset;         /* within the uncompressed segment */
    uint64_t sequence;       /* of the batch that should be here */
    uint64_t found_sequence; /* of the next whole batch, where reading continues; 0: none */
    char found_file[HF_AUDIT_NAME_SIZE];
    uint64_t found_offset;
    const char *what; /* static: what is wrong */
};

/* A writer of a database, with the totals of its batches. */
struct hf_audit_writer {
    uint32_t id;
    bool known;              /* false: entries name it, but it is not in the table of writers */
    char name[128];          /* which server, for display */
    uint64_t batch, entries; /* its newest batch, and its number of entries, as read */
    uint8_t chain[HF_DIGEST_SIZE]; /* as computed from the entries */
    uint64_t told_batch;           /* as the table says */
    uint8_t told_chain[HF_DIGEST_SIZE];
};

enum hf_audit_step {
    HF_AUDIT_BATCH,  /* the next batch */
    HF_AUDIT_END,    /* no more */
    HF_AUDIT_DAMAGE, /* see hf_audit_reader_damage; the next step continues after it */
    HF_AUDIT_FAILED, /* the records cannot be read: why has the reason */
    /* For a database, where the batches of several writers are interleaved: */
    /* one entry; `batch` describes its batch, as far as known */
    HF_AUDIT_PART,
    HF_AUDIT_WHOLE, /* the last entry of this batch was read; it has no bytes */
    /* all entries are read; hf_audit_reader_writer has the totals of one writer */
    HF_AUDIT_WRITER
};

struct hf_audit_journal {
    /* in a database: numbers may be missing, and times may be out of order between entries */
    bool database;
    uint64_t segments, packed; /* read so far; how many of them were compressed */
    /* position after the last whole batch, rounded up to a block; or the newest number */
    uint64_t end;
    uint64_t torn_bytes; /* of a batch cut short at the end, or 0 */
    /* of all journal files when the reader was opened; or the newest number in the database */
    uint64_t bytes_total;
    /* start of the snapshot that a start would load, at the time of opening; 0: none */
    uint64_t snapshot_start;
    uint64_t snapshots_unusable;                /* newer snapshots, which the start skips */
    char snapshot_unusable[HF_AUDIT_NAME_SIZE]; /* the newest of these, or "" */
    uint8_t store_id[16];
    /* false if no segment's header is right, or the key may not be read: then there is no id_key */
    bool keys_known;
    struct hf_sipkey id_key, table_key;
    uint8_t database_key[HF_AUDIT_ID_KEY]; /* in place of id_key, for a database */
    hf_time as_of;                         /* of a database: its clock at the moment of the read */
    char where[200];                       /* of a database: which one, for display; else "" */
};

/* hf_audit_reader_open: the journal in a directory. dir: borrowed. reader: out, owned, close with
 * hf_audit_reader_close. why: out. HF_OK; HF_STORE_ABSENT (no such directory, or no journal in it);
 * HF_STORE_NEWER; HF_STORAGE_FAILURE (cannot be read); HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_audit_reader_open(const char *dir, struct hf_audit_reader **reader,
                                                struct hf_error *why);
/* The same for a database. conninfo: a connection string of libpq, else HF_INVALID_REQUEST. No
 * message shows a password. timeline: 0, or the timeline of the primary to read: HF_STORAGE_FAILURE
 * if it is another. */
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

/* The damage that the last step found. Borrowed until the reader is closed; overwritten by the next
 * damage. */
const struct hf_audit_damage *hf_audit_reader_damage(const struct hf_audit_reader *reader);
const struct hf_audit_journal *hf_audit_reader_journal(const struct hf_audit_reader *reader);
/* The writer that the last step was about. Borrowed until the next step. */
const struct hf_audit_writer *hf_audit_reader_writer(const struct hf_audit_reader *reader);

/* hf_audit_writer_add: add a writer's newest batch to the chain head over all writers. heads: begun
 * with hf_sha256_init. head: out, the chain head over the writers so far. */
void hf_audit_writer_add(struct hf_sha256 *heads, const struct hf_audit_writer *writer,
                         uint8_t head[HF_DIGEST_SIZE]);

/* hf_audit_batch_entry: the next entry of a batch; *at is 0 before the first call. Returns false at
 * the end of the batch. *problem: NULL, or what is wrong with the entry (static); after a problem,
 * the next call continues after the entry if its size is reliable, else it ends the batch. */
bool hf_audit_batch_entry(const struct hf_audit_batch *batch, uint32_t *at,
                          struct hf_audit_entry *entry, const char **problem);

/* hf_audit_reader_entry: read the entry at `position` again, which was read before. Borrowed until
 * the next call of this function. False if it can no longer be read; if out of memory, or if the
 * file cannot be opened or read, the next hf_audit_reader_next fails too. */
bool hf_audit_reader_entry(struct hf_audit_reader *reader, uint64_t position,
                           struct hf_audit_entry *entry);

/* hf_audit_reader_stored: after the end, the next row of the database's tables. row: out, borrowed
 * until the next call, except hf_audit_reader_entry. True for a row. False at the end, at once if
 * there are no tables; or after a failure: then why->status is not HF_OK. */
bool hf_audit_reader_stored(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                            struct hf_error *why);

/* ---- For the sources ---- */

struct hf_audit_source {
    enum hf_audit_step (*next)(struct hf_audit_reader *reader, struct hf_audit_batch *batch,
                               struct hf_error *why);
    bool (*entry)(struct hf_audit_reader *reader, uint64_t position, struct hf_audit_entry *entry);
    bool (*stored)(struct hf_audit_reader *reader, struct hf_audit_fields *row,
                   struct hf_error *why);          /* NULL: there are no tables */
    void (*close)(struct hf_audit_reader *reader); /* also frees the reader */
};

/* The first member of every reader. */
struct hf_audit_reader {
    const struct hf_audit_source *source;
    struct hf_audit_damage damage;
    struct hf_audit_journal journal;
    struct hf_audit_writer writer;
};

#endif

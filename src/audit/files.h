/* files.h: inside the reader of a store in a directory.
 *
 *   read_files.c    the reader and its steps
 *   files_batch.c   one batch, and its segment
 *   files_search.c  the next segment, and the next whole batch after damage
 *   files_end.c     damage at the end of the journal */
#ifndef HF_AUDIT_FILES_H
#define HF_AUDIT_FILES_H

#include "audit/batch.h"
#include "audit/read.h"
#include "audit/snapshot.h"

/* A segment that was read, so that an entry in it can be found again. */
struct hf_files_walked {
    uint64_t base, size;
};

struct hf_files_place {
    uint64_t segment, offset, sequence;
    char file[HF_AUDIT_NAME_SIZE];
};

/* The note `closed`. */
struct hf_files_note {
    uint64_t sequence; /* of the batch that it names; 0: there is no note, or it is damaged */
    uint8_t hash[HF_DIGEST_SIZE];
    bool names_store; /* false: an earlier program wrote it */
    uint8_t store[HF_DIGEST_SIZE], seal[HF_DIGEST_SIZE];
};

struct hf_files {
    struct hf_audit_reader reader;
    int dir;
    uint64_t last_segment; /* highest number in the directory, when last listed */
    struct hf_audit_segment seg;
    uint64_t base;   /* position of seg's first byte */
    uint64_t offset; /* where the next batch should be */
    uint64_t next_sequence;
    hf_time last_now;
    uint8_t chain[HF_DIGEST_SIZE];
    bool chain_known; /* false after damage: then any chain is accepted once */
    bool gap;
    struct hf_audit_batch_head head; /* of the batch in `bytes` */
    struct hf_buffer bytes;
    struct hf_sipkey seal;
    bool seal_known;
    struct hf_audit_snapshot snapshot; /* the newest one at the time of opening */
    bool snapshot_passed, snapshot_fits;
    struct hf_files_note closed; /* at the time of opening */
    bool closed_met;             /* its batch was read, at closed_at, and has this hash: */
    uint8_t closed_hash[HF_DIGEST_SIZE];
    struct hf_files_place closed_at;
    bool padded;                    /* the padding after the newest batch is not zero */
    struct hf_files_walked *walked; /* owned; walked[n - 1] is segment n */
    size_t walked_count, walked_room;
    struct hf_audit_segment side; /* for hf_audit_reader_entry */
    struct hf_buffer side_bytes;
    bool resume;   /* the last step was damage: continue at `found` */
    bool headless; /* the batch at `found` is accepted although its segment's header is wrong */
    bool finished; /* the last step was damage with no whole batch after it */
    struct hf_files_place found;
    int io_error; /* errno, of a later segment that was searched */
    /* the format version of `newer_name`, which this program does not know; 0: none */
    uint32_t newer;
    char newer_name[HF_AUDIT_NAME_SIZE];
    int open_error; /* errno of an existing file that could not be opened, or ENOMEM; 0: none */
    /* the file of open_error or io_error; "": not known */
    char open_name[HF_AUDIT_NAME_SIZE];
};

static inline uint64_t hf_files_block_up(uint64_t n)
{
    return (n + HF_AUDIT_BLOCK - 1) / HF_AUDIT_BLOCK * HF_AUDIT_BLOCK;
}

/* ---- Errors: set *why and return the status ---- */

enum hf_status hf_files_fail_newer(struct hf_error *why, const char *file, uint32_t version);
/* The segment could not be opened: set open_error or newer. */
void hf_files_unopened(struct hf_files *r, enum hf_audit_opened got,
                       const struct hf_audit_segment *seg, uint32_t version);
enum hf_status hf_files_fail_memory(struct hf_error *why);
/* errno says why. */
enum hf_status hf_files_fail_io(struct hf_error *why, const char *file);

/* ---- One batch (files_batch.c) ---- */

/* Is there a whole batch at `offset` of the segment, with the right position and at least sequence
 * `lowest`? It is read into r->head and r->bytes. r->bytes.failed if out of memory. */
bool hf_files_batch_at(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                       uint64_t offset, uint64_t lowest);

/* Is the next batch at the expected place? As hf_files_batch_at. */
bool hf_files_batch_here(struct hf_files *r);

/* What is at the place of the next batch? As hf_audit_batch_read. */
enum hf_audit_batch_state hf_files_look_here(struct hf_files *r);

/* Bytes of a batch that was cut short here, by its header; else 0. */
uint64_t hf_files_torn_bytes(struct hf_files *r);

/* Is the header of the store that the note `closed` names, if it names one? */
bool hf_files_note_fits(const struct hf_files *r, const struct hf_audit_head *head);

/* Is the header of this store? */
bool hf_files_same_keys(const struct hf_files *r, const struct hf_audit_segment *seg);

/* Is the header of a used segment right? */
bool hf_files_head_belongs(const struct hf_files *r, const struct hf_audit_segment *seg,
                           uint64_t base);

/* What is wrong with the size of a segment's file, or NULL. */
const char *hf_files_size_differs(const struct hf_audit_segment *seg);

/* Fill in the batch from r->bytes and go to the next place. */
void hf_files_batch_take(struct hf_files *r, struct hf_audit_batch *out);

/* ---- From segment to segment (files_search.c) ---- */

/* Note the place of a segment. Segments are read in order. False if out of memory. */
bool hf_files_walked_add(struct hf_files *r, const struct hf_audit_segment *seg, uint64_t base);

/* Open segment `number` as r->seg, again if it is the same. */
enum hf_audit_opened hf_files_segment_enter(struct hf_files *r, uint64_t number, uint32_t *version);

/* Was the open file replaced in the directory? Then open the new one. True if it was opened. */
bool hf_files_segment_renewed(struct hf_files *r);

enum hf_files_ahead {
    /* the next segment's first batch is the next one, and r->seg is that segment */
    HF_FILES_AHEAD_TAKEN,
    HF_FILES_AHEAD_NOTHING, /* it is another batch, or there is no next segment */
    HF_FILES_AHEAD_BAD,     /* the next segment is compressed (so it was full) and cannot be read */
    HF_FILES_AHEAD_FAILED   /* why has the reason */
};

/* Does the journal continue with the first batch of the next segment? why: out, if FAILED. */
enum hf_files_ahead hf_files_next_segment_try(struct hf_files *r, struct hf_error *why);

/* The first whole batch with sequence `lowest` or higher, here or in a later segment. The length of
 * a segment comes from its header if that is right, else from its file; 0 if it is missing. */
bool hf_files_journal_search(struct hf_files *r, uint64_t lowest, struct hf_files_place *found);

/* Is there proof that more was durable than what was read (doc/FORMAT.md, rule 2)? */
bool hf_files_journal_goes_on(struct hf_files *r);

/* There is no right batch here, but batches follow: note the damage, and where reading continues.
 * The search begins with the next sequence itself: if only a segment header is wrong, nothing is
 * lost. */
enum hf_audit_step hf_files_damage_note(struct hf_files *r);

/* The next segment is compressed and cannot be read: damage, even if nothing follows. */
enum hf_audit_step hf_files_bad_pack_note(struct hf_files *r);

/* Continue at r->found, after damage. False if out of memory. */
bool hf_files_resume_there(struct hf_files *r);

/* ---- The end (files_end.c) ---- */

/* Look for higher segments. Sets r->open_error if the directory cannot be listed. */
void hf_files_look_again(struct hf_files *r);

/* Read the note. False: it cannot be read; sets r->open_error. */
bool hf_files_closed_read(struct hf_files *r, struct hf_files_note *out);

/* What the note proves to be missing or different in the journal, or NULL. at: out, where. A
 * missing or damaged note proves nothing. */
const char *hf_files_closed_differs(struct hf_files *r, struct hf_files_place *at);

/* If no batch was read: are there files that only exist after the first batch? The damage that this
 * proves, or NULL. */
const char *hf_files_remains(struct hf_files *r);

/* The damage that the newest snapshot proves, or NULL: it was taken of a longer or a different
 * journal. */
const char *hf_files_snapshot_differs(const struct hf_files *r);

/* What is wrong with the segments from here on, or NULL: they have no batch, but their files must
 * exist in full. name: out, the wrong one. */
const char *hf_files_rest_differs(struct hf_files *r, char name[HF_AUDIT_NAME_SIZE]);

#endif

/* files.h: the reader of a store in a directory, from the inside.
 *
 *   read_files.c    the reader: what each step gives
 *   files_batch.c   one batch, and the segment that it lies in
 *   files_search.c  from segment to segment, and behind damage
 *   files_end.c     what is damage where the journal ends */
#ifndef HF_AUDIT_FILES_H
#define HF_AUDIT_FILES_H

#include "audit/batch.h"
#include "audit/read.h"
#include "audit/snapshot.h"

/* A segment that has been walked, so that an entry in it can be found again. */
struct hf_files_walked {
    uint64_t base, size;
};

struct hf_files_place {
    uint64_t segment, offset, sequence;
    char file[HF_AUDIT_NAME_SIZE];
};

/* The note `closed`. */
struct hf_files_note {
    uint64_t sequence; /* of the batch that it names; 0: there is none, or none that is whole */
    uint8_t hash[HF_DIGEST_SIZE];
};

struct hf_files {
    struct hf_audit_reader reader;
    int dir;
    uint64_t last_segment; /* highest number in the directory, at the last look */
    struct hf_audit_segment seg;
    uint64_t base;   /* position of seg's first byte */
    uint64_t offset; /* where the next batch should be */
    uint64_t next_sequence;
    hf_time last_now;
    uint8_t chain[HF_DIGEST_SIZE];
    bool chain_known; /* false behind damage: then any chain fits once */
    bool gap;
    struct hf_audit_batch_head head; /* of the batch in `bytes` */
    struct hf_buffer bytes;
    struct hf_sipkey seal;
    bool seal_known;
    struct hf_audit_snapshot snapshot; /* the newest one when the reader was opened */
    bool snapshot_passed, snapshot_fits;
    struct hf_files_note closed; /* when the reader was opened */
    bool closed_met;             /* its batch has been read, at closed_at, and has this hash: */
    uint8_t closed_hash[HF_DIGEST_SIZE];
    struct hf_files_place closed_at;
    bool padded; /* there is something behind the newest batch, up to the next block */
    struct hf_files_walked *walked; /* owned; walked[n - 1] is segment n */
    size_t walked_count, walked_room;
    struct hf_audit_segment side; /* for hf_audit_reader_entry */
    struct hf_buffer side_bytes;
    bool resume;   /* the last step was damage: go on at `found` */
    bool headless; /* the batch at `found` is taken although its segment's header is not right */
    bool finished; /* damage with nothing whole behind it was the last step */
    struct hf_files_place found;
    int io_error; /* of a later segment that was searched */
    uint32_t
        /* the format version of `newer_name`, which this program does not know; 0: none was met */
        newer;
    char newer_name[HF_AUDIT_NAME_SIZE];
    int open_error; /* errno of a file that is there and could not be opened, or ENOMEM; 0: none */
    char
        open_name[HF_AUDIT_NAME_SIZE]; /* which file, of this or of io_error; "": it is not known */
};

static inline uint64_t hf_files_block_up(uint64_t n)
{
    return (n + HF_AUDIT_BLOCK - 1) / HF_AUDIT_BLOCK * HF_AUDIT_BLOCK;
}

/* ---- Errors: into *why, and returned ---- */

enum hf_status hf_files_fail_newer(struct hf_error *why, const char *file, uint32_t version);
/* The segment could not be opened: note what that means for the reader. */
void hf_files_unopened(struct hf_files *r, enum hf_audit_opened got,
                       const struct hf_audit_segment *seg, uint32_t version);
enum hf_status hf_files_fail_memory(struct hf_error *why);
/* errno says why. */
enum hf_status hf_files_fail_io(struct hf_error *why, const char *file);

/* ---- One batch (files_batch.c) ---- */

/* Is there a whole batch at `offset` of the segment, with its own position in it and at least
 * sequence `lowest`? It comes into r->head and r->bytes. Memory that runs out shows as
 * r->bytes.failed. */
bool hf_files_batch_at(struct hf_files *r, struct hf_audit_segment *seg, uint64_t base,
                       uint64_t offset, uint64_t lowest);

/* The batch that is wanted, at the place where it should be: is it there? As hf_files_batch_at. */
bool hf_files_batch_here(struct hf_files *r);

/* What is at the place where the next batch should be? As hf_audit_batch_read. */
enum hf_audit_batch_state hf_files_look_here(struct hf_files *r);

/* Bytes of a batch that was begun here and cut short, as far as its header tells. */
uint64_t hf_files_torn_bytes(struct hf_files *r);

/* Is the header one of this store? */
bool hf_files_same_keys(const struct hf_files *r, const struct hf_audit_segment *seg);

/* Does the header of a used segment say what it should? */
bool hf_files_head_belongs(const struct hf_files *r, const struct hf_audit_segment *seg,
                           uint64_t base);

/* Has the file of a segment the size that it must have? */
const char *hf_files_size_differs(const struct hf_audit_segment *seg);

/* Fill in the batch from r->bytes and move on behind it. */
void hf_files_batch_take(struct hf_files *r, struct hf_audit_batch *out);

/* ---- From segment to segment (files_search.c) ---- */

/* Note where a segment lies. Segments are walked in order, so there is one more each time. */
bool hf_files_walked_add(struct hf_files *r, const struct hf_audit_segment *seg, uint64_t base);

/* Replace r->seg by another look at segment `number`. The first one tells the keys of the store. */
enum hf_audit_opened hf_files_segment_enter(struct hf_files *r, uint64_t number, uint32_t *version);

/* Is the open file another one by now? Then look at what the directory shows instead. */
bool hf_files_segment_renewed(struct hf_files *r);

enum hf_files_ahead {
    HF_FILES_AHEAD_TAKEN,   /* the next segment's first batch is the one we want: we are there */
    HF_FILES_AHEAD_NOTHING, /* it is not, or there is no next segment */
    HF_FILES_AHEAD_BAD,     /* it is compressed, so it was full once, and cannot be read */
    HF_FILES_AHEAD_FAILED   /* why says so */
};

/* Does the journal go on with the first batch of the next segment? why: out, if FAILED. */
enum hf_files_ahead hf_files_next_segment_try(struct hf_files *r, struct hf_error *why);

/* The first whole batch of sequence `lowest` or more, here or in a later segment. A segment that is
 * missing or whose header is not right is taken to be as long as its header or its file says. */
bool hf_files_journal_search(struct hf_files *r, uint64_t lowest, struct hf_files_place *found);

/* Is there such a batch, or a header that only the store can have made of one? Then all batches
 * before it were there. */
bool hf_files_journal_goes_on(struct hf_files *r, uint64_t lowest);

/* Nothing right here, though whole batches follow: note where, and where reading goes on. The
 * search begins with the wanted sequence itself: behind a wrong segment header nothing need be
 * lost. */
enum hf_audit_step hf_files_damage_note(struct hf_files *r);

/* The next segment is compressed and cannot be read: damage, even if nothing is behind it. */
enum hf_audit_step hf_files_bad_pack_note(struct hf_files *r);

/* Go on at r->found, behind damage. */
bool hf_files_resume_there(struct hf_files *r);

/* ---- The end (files_end.c) ---- */

/* Look for higher segments. If the directory cannot be listed, r->open_error says why. */
void hf_files_look_again(struct hf_files *r);

/* Read the note. False: it cannot be read, and r->open_error says why. */
bool hf_files_closed_read(struct hf_files *r, struct hf_files_note *out);

/* What the note proves to be missing or other in the journal that was read, or NULL. at: out,
 * where. No note, or none that is whole, proves nothing. */
const char *hf_files_closed_differs(struct hf_files *r, struct hf_files_place *at);

/* No batch was read. Are there files that are only made behind the first one? What that proves, or
 * NULL. */
const char *hf_files_remains(struct hf_files *r);

/* A snapshot that was taken of more than is here, or of something else, proves that something is
 * lost. */
const char *hf_files_snapshot_differs(const struct hf_files *r);

/* Segments from here on hold no batch; their files must be there in full all the same. name: out,
 * the one that is not. */
const char *hf_files_rest_differs(struct hf_files *r, char name[HF_AUDIT_NAME_SIZE]);

#endif

/* journal.h: the journal is the database, and memory holds an index over it.
 *
 *   take ──decide, encode, apply──▶ gather ──seal──▶ flight ──write, fdatasync──▶ durable
 *
 * Two batches exist at a time: the store gathers one while the other is written ("in flight"). A
 * request is decided at once, and its rows are applied to the tables in memory, so that the next
 * request sees them. Its answer may be shown when the position that it needs is durable. A batch is
 * written only when the previous one is durable, so a crash can tear only the last batch.
 *
 * All functions need the owner's lock, except hf_journal_commit and those of maintain.h that say
 * so. */
#ifndef HF_STORE_JOURNAL_JOURNAL_H
#define HF_STORE_JOURNAL_JOURNAL_H

#include "core/decide.h"
#include "store/engine_clock.h"
#include "store/io.h"
#include "store/journal/closed.h"
#include "store/journal/holds.h"
#include "store/journal/live.h"
#include "store/journal/map64.h"
#include "store/journal/pack.h"
#include "store/journal/rows.h"
#include "store/journal/segment.h"

/* The whole state in memory. It can be rebuilt from the journal. */
struct hf_tables {
    struct hf_map64 tokens; /* SipHash of tenant and key -> position of the entry */
    struct hf_rows rows;
    struct hf_live live;
    struct hf_holds holds;
    uint64_t highest_fence, highest_outbox;
    struct hf_config config; /* digest_name and program are not kept */
    bool has_config;
    uint64_t hint_token; /* during a decision: the hash of the request's key; 0: unknown */
};

struct hf_batch {
    unsigned char *data; /* owned; also the segment's first block, if the batch begins one */
    size_t room;
    size_t lead;          /* bytes before the batch: HF_BLOCK if it begins a segment, else 0 */
    size_t size;          /* of the batch so far, including the header; 0: not open */
    size_t limit;         /* the largest allowed size */
    uint64_t base;        /* its position */
    uint64_t segment;     /* number of its segment */
    uint64_t segment_end; /* the end of that segment */
    uint32_t count;
    hf_time now;
    struct hf_file *file;        /* borrowed from the segment */
    uint64_t file_at;            /* where its bytes begin, including `lead` */
    struct hf_segment_head head; /* if lead */
};

/* Where a batch can begin. */
struct hf_place {
    size_t segment; /* index in the list of segments */
    uint64_t base;
    size_t lead;
    uint64_t avail; /* bytes from base to the segment's end */
};

/* A large file that is being removed. */
struct hf_shedding {
    struct hf_file *file; /* owned; NULL: none */
    char name[HF_SEGMENT_NAME_SIZE];
    uint64_t size;
};

/* An operation that is retried and keeps failing. */
struct hf_trouble {
    bool lasts;
    uint64_t noted_ns;
};

/* Batches that could not be read when their keys were to be freed. The keys stay until they can. */
struct hf_passed {
    uint64_t position, end; /* batches from here to there */
    uint32_t entry; /* offset in the first: keys of entries before it are freed; 0: none is */
};

struct hf_snapshotting;
struct hf_reindexing;

/* What the next batch must match. */
struct hf_link {
    uint64_t sequence; /* required sequence of the next batch */
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE]; /* required chain of the next batch */
};

/* The check of the journal before the snapshot that the store was opened with (walk.h). */
struct hf_verify {
    enum { HF_VERIFY_NOTHING, HF_VERIFY_RUNNING, HF_VERIFY_GOOD, HF_VERIFY_BAD } state;
    uint64_t position, stop; /* of the next batch; where the snapshot began */
    struct hf_link link, goal;
    bool begins;   /* `position` is the place of a segment's first batch */
    uint64_t left; /* if begins: where the previous segment ended, 0 if its last batch filled it */
    bool rebuild;  /* collect the positions of holds, for holds.idx */
    const char *what; /* if BAD: static, the error at `position` */
    enum hf_status status;
    int error;                  /* the last step could not read something: its error; or 0 */
    struct hf_pack_cache cache; /* owned */
    uint64_t rest_until_ns;     /* pause until then, so that others can use the disk */
};

struct hf_journal {
    const struct hf_io *io; /* borrowed */
    struct hf_dir *dir;     /* owned */
    bool is_memory, has_keys;
    bool has_twins; /* some segment exists plain and compressed */
    bool has_seal;  /* keys.seal is known: the store has a segment of version 2 */
    struct hf_store_keys keys;
    struct hf_gmac *gmac; /* owned; only for hf_journal_commit, while other threads read */
    struct hf_rules rules;
    uint64_t memory_max, tenant_memory_max, tenant_records_max, snapshot_every;
    bool keep_plain, no_verify;

    struct hf_segments segments;
    struct hf_pack_cache cache;
    struct hf_tables tables;
    struct hf_view view;
    struct hf_plan *plan;   /* owned, reused for each decision */
    uint64_t seen_position; /* position of the last remembered entry that the view returned */

    struct hf_batch gather, flight;
    struct hf_place place;   /* of the next batch */
    uint64_t sealed_highest; /* greatest ordinal in a sealed batch */
    uint64_t next_sequence, flight_sequence;
    uint64_t flight_sync_ns;
    uint64_t end;                  /* where the next batch begins, if it fits there */
    uint64_t active;               /* number of the segment that contains `end`; 0: none yet */
    bool opened;                   /* the open succeeded: the close is an orderly one */
    struct hf_closed closed;       /* the note as read at the start */
    struct hf_closed begun;        /* the first batch of a segment, to be noted; sequence 0: none */
    uint64_t begun_at_ns;          /* do not write the note before */
    bool begun_failed;             /* the last try failed */
    uint64_t durable;              /* everything before this position is on disk */
    hf_time now;                   /* engine time of the newest batch */
    struct hf_engine_clock clock;  /* gives engine time, to reads too */
    uint8_t chain[HF_DIGEST_SIZE]; /* hash of the newest committed batch */
    struct hf_head head;           /* the newest durable batch; position 0: there is none */

    uint64_t token_cursor;       /* position of a batch: all live keys are from there on */
    uint32_t token_cursor_entry; /* offset in that batch; 0: its beginning */
    uint64_t token_stuck_at, token_stuck_ns; /* the cursor of an unreadable batch, and since when */
    uint64_t token_seek;                     /* nothing is readable from the cursor to here */
    struct hf_passed *passed; /* owned: unreadable batches that the cursor has passed */
    size_t passed_count, passed_room, passed_next;
    uint64_t revisit_at_ns; /* not before this time */
    size_t row_cursor;      /* part of the row table that is searched for expired rows ... */
    uint32_t row_slot;      /* ... and the next slot in it */
    /* a limit has refused a request: search all rows now for expired ones */
    bool rows_wanted;
    size_t rows_left;      /* parts of the row table that are left to search for that */
    uint64_t guard_cursor; /* stamp: the next guard to search for expired entries */
    uint64_t guards_idle;  /* guards searched since the last entry was freed */
    size_t looked; /* slots, guards, entries and keys that the last step looked at; for tests */
    struct hf_preparing preparing;
    struct hf_shedding shedding;
    struct hf_snapshotting *snapshotting; /* owned, NULL unless one is being written */
    struct hf_reindexing *reindexing; /* owned, NULL unless parts of holds.idx are being rebuilt */
    bool index_old;          /* holds.idx was rebuilt in memory: a snapshot should write it */
    uint64_t reindex_at_ns;  /* after a failed rebuild: not before this time */
    bool reindex_lost;       /* the rebuild failed because the journal is damaged */
    bool snapshot_wanted;    /* begin one after the next commit */
    uint64_t snapshot_start; /* `start` of the newest snapshot, 0 if there is none */
    uint64_t snapshot_bytes; /* its size */
    uint64_t retry_at_ns;    /* after a failed snapshot or compression: not before this time */
    uint64_t prepare_at_ns;  /* the same for the next segment, which waits for neither */
    bool packing;            /* a segment is being compressed, without the lock */
    struct hf_verify verify;
    struct hf_trouble snapshot_trouble, pack_trouble;
    uint64_t head_noted_ns; /* when the chain head was last logged */

    /* Runs the function of an HF_APPLY whose key is new: adds rows to the plan and sets its
     * answer. */
    void (*run_apply)(void *arg, const struct hf_request *request, struct hf_plan *plan,
                      hf_time now);
    void *run_arg;

    bool segment_wanted; /* a request waits for the next segment */
    bool out_of_space;   /* the last try to prepare a segment failed ... */
    int prepare_error;   /* ... with this -errno: not always for lack of space */
    bool read_noted;     /* an unreadable record was logged, at read_noted_ns */
    uint64_t read_noted_ns;
    bool full_noted; /* the memory limit was logged as reached, at full_noted_ns */
    uint64_t full_noted_ns;
    struct hf_stats stats;
    void (*on_note)(void *arg, int level, const char *line);
    void (*on_progress)(void *arg, uint64_t done, uint64_t total);
    void (*on_unknown)(void *arg, const struct hf_claim *claim);
    void *arg;
};

/* Open or create the store. options, io: borrowed for the journal's life. out: owned. why: out. */
enum hf_status hf_journal_open(const char *path, const struct hf_options *options,
                               const struct hf_io *io, struct hf_journal **out,
                               struct hf_error *why);
/* Free everything. Entries that are gathered and not committed are lost: commit first. */
void hf_journal_close(struct hf_journal *j);

enum hf_take {
    /* decided: j->plan has the answer until the next take; *needs must be durable first */
    HF_TAKEN,
    HF_TAKE_FULL, /* the gathered batch is full: commit, then retry */
    HF_TAKE_WAIT  /* the next segment is not ready: maintain, then retry */
};

/* What can be computed for a request before the lock is taken. */
struct hf_hashed {
    uint8_t digest[HF_DIGEST_SIZE];
    uint64_t token_hash, resource_hash; /* 0: unknown */
};
/* Without the lock. */
void hf_journal_hash_request(const struct hf_journal *j, const struct hf_request *request,
                             struct hf_hashed *out);
/* Prefetch the memory that deciding these requests will read. Changes nothing. */
void hf_journal_prefetch(const struct hf_journal *j, const struct hf_hashed *hashed, size_t count);

/* Decide `request`. needs: out, the position that must be durable before the answer may be shown
 * (0: none). now: out. */
enum hf_take hf_journal_take(struct hf_journal *j, const struct hf_request *request,
                             const struct hf_hashed *hashed, uint64_t *needs, hf_time *now);

/* Bytes of memory that the store takes: its tables, and the journal itself if it is in memory. */
uint64_t hf_journal_memory(const struct hf_journal *j);

/* used: the bytes that count against the memory limit. is_full: does the limit refuse new work? */
uint64_t hf_journal_used(const struct hf_journal *j);
bool hf_journal_is_full(const struct hf_journal *j);

/* Engine time for a decision now. */
hf_time hf_journal_now(struct hf_journal *j);

/* Is there something to commit? */
static inline bool hf_journal_gathered(const struct hf_journal *j)
{
    return j->gather.size > 0;
}

/* Make the gathered batch the one in flight. Only while none is in flight. */
void hf_journal_seal(struct hf_journal *j);
/* Write and sync the batch in flight. Without the lock. 0 or a negative errno: then the batch's
 * outcome is unknown and the store must stop. */
int hf_journal_commit(struct hf_journal *j);
/* The commit succeeded: the batch in flight is durable. */
void hf_journal_landed(struct hf_journal *j);

/* Expire up to `max` overdue holds. Returns how many. */
size_t hf_journal_sweep(struct hf_journal *j, size_t max);
/* Gather an entry with the configuration in force (j->rules), unless it equals the last recorded
 * one. */
enum hf_status hf_journal_configure(struct hf_journal *j);

/* ---- Reading by position (read.c) ---- */

/* The entry at `position`: gathered, in flight, in a segment or compressed. Borrowed until the next
 * take or read. 0, -ENOENT or -EBADMSG (damaged). */
int hf_journal_entry(struct hf_journal *j, uint64_t position, struct hf_entry_view *out);
bool hf_journal_is_packed(const struct hf_journal *j, uint64_t position);

/* `size` bytes of the segment from its byte `at` on, unchecked. data: out, borrowed until the next
 * read. 0, -EBADMSG (a compressed frame is damaged) or another error: they cannot be read now. */
int hf_journal_bytes(struct hf_journal *j, struct hf_segment *g, uint64_t at, size_t size,
                     const unsigned char **data);
/* The batch at `position`, sealed; if `deep`, its entries are checked too. data, head: out, as
 * above. -EBADMSG: there is none. Another error: it cannot be read now. */
int hf_journal_batch(struct hf_journal *j, uint64_t position, bool deep, const unsigned char **data,
                     struct hf_batch_head *head);
/* The same in a segment that has been reached; without the lock if the segment is pinned and
 * `cache` is the caller's own. */
int hf_journal_batch_of(struct hf_journal *j, struct hf_segment *g, struct hf_pack_cache *cache,
                        uint64_t position, bool deep, const unsigned char **data,
                        struct hf_batch_head *head);
/* A record at `position` is damaged (-EBADMSG) or cannot be read (another error): count it, and log
 * which file it is in. Repeated requests for such a record do not fill the log. */
void hf_journal_note_unreadable(struct hf_journal *j, uint64_t position, int error);
/* Does the error mean that it could not be read now, whatever its content? */
bool hf_journal_unread(int error);
/* Memory or descriptors were short: the data may be intact. */
bool hf_journal_short(int error);

/* ---- Applying (tables.c) ---- */

bool hf_tables_init(struct hf_tables *t, const struct hf_store_keys *keys, const struct hf_io *io,
                    struct hf_dir *dir);
void hf_tables_free(struct hf_tables *t);
/* The hash of a key in its tenant. */
uint64_t hf_tables_hash(const struct hf_tables *t, struct hf_scoped key);
/* Apply the entry at `position`. replay: it may have been applied before (recovery over a
 * snapshot). All or nothing: HF_OK, HF_NO_MEMORY, or HF_STORE_DAMAGED (malformed). */
enum hf_status hf_tables_apply(struct hf_tables *t, const struct hf_entry_view *entry,
                               uint64_t position, bool replay);
/* Apply a row of a guard that is not durable: in memory only. */
enum hf_status hf_tables_apply_volatile(struct hf_tables *t, struct hf_bytes tenant,
                                        const struct hf_image *image);
uint64_t hf_tables_bytes(const struct hf_tables *t);
/* The bytes that count against the memory limit: of the content, without spare room. */
uint64_t hf_tables_in_use(const struct hf_tables *t);
/* The bytes that ending everything begun will take: see owners.h. */
uint64_t hf_tables_owed(const struct hf_tables *t);
/* A tenant has as many keys as the journal has entries with a key from the cursor on. The cursor
 * has passed one of them. */
void hf_tables_token_gone(struct hf_tables *t, struct hf_bytes tenant);

/* ---- The view (view.c) ---- */
void hf_journal_view_init(struct hf_journal *j);
/* The hold with this ordinal. 0, -ENOENT if there is none, or another negative errno: it cannot be
 * read. That is counted, and logged from time to time. */
int hf_journal_hold(struct hf_journal *j, uint64_t ordinal, struct hf_hold *out);
/* hf_journal_hold failed with this error: is that temporary, because memory or descriptors are
 * short or holds.idx is being rebuilt? */
bool hf_journal_hold_awaited(const struct hf_journal *j, uint64_t ordinal, int error);
/* Part p of holds.idx is wrong: log and count it. hf_journal_maintain rebuilds it. */
void hf_journal_index_note(struct hf_journal *j, uint64_t p);
/* Does the hold's resource count it, as held or as confirmed? The rules rely on that. False only in
 * a forged journal. */
bool hf_journal_counted(struct hf_journal *j, const struct hf_hold *hold);

/* ---- Recovery (recover.c) ---- */
/* Find the segments and snapshots, load, replay. why: out if not HF_OK. *fresh: out, the directory
 * was empty. */
enum hf_status hf_journal_recover(struct hf_journal *j, bool *fresh, struct hf_error *why);

/* Log the chain head: the hash of the newest durable batch. Not while a batch is in flight. */
void hf_journal_note_head(struct hf_journal *j);

/* Write a line to the operator's log. level: 0 info, 1 warning. */
void hf_journal_note(struct hf_journal *j, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

/* journal.h: the journal is the database, and memory holds an index over it.
 *
 *        take ──decide, encode, apply──▶ gather ──seal──▶ flight ──commit: write, fdatasync──▶ durable
 *
 * Two batches exist at a time: one is gathered while the other flies. A request is decided the
 * moment it is taken, and its rows are applied to the tables in memory at once, so that the next
 * one sees them; its answer may be shown when the position that it needs is durable. The flying
 * batch is written only when the one before is durable, so that a crash can tear the last batch
 * alone.
 *
 * All functions need the owner's lock, but hf_journal_commit and those of maintain.h that say
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

/* The whole state in memory. Everything in it can be rebuilt from the journal. */
struct hf_tables {
    struct hf_map64 tokens; /* SipHash of tenant and key -> position of the entry */
    struct hf_rows rows;
    struct hf_live live;
    struct hf_holds holds;
    uint64_t highest_fence, highest_outbox;
    struct hf_config config; /* digest_name and program are not kept */
    bool has_config;
    uint64_t hint_token; /* while a request is decided: the hash of its key, if known; else 0 */
};

struct hf_batch {
    unsigned char *data; /* owned; the segment's first block too, if it begins one */
    size_t room;
    size_t lead;          /* bytes before the batch: HF_BLOCK if it begins a segment, else 0 */
    size_t size;          /* of the batch so far, header included; 0: not open */
    size_t limit;         /* what its size may grow to */
    uint64_t base;        /* its position */
    uint64_t segment;     /* number of its segment */
    uint64_t segment_end; /* where that ends */
    uint32_t count;
    hf_time now;
    struct hf_file *file;        /* borrowed from the segment */
    uint64_t file_at;            /* where its bytes begin, those before it included */
    struct hf_segment_head head; /* if lead */
};

/* Where a batch can begin. */
struct hf_place {
    size_t segment; /* index in the list of segments */
    uint64_t base;
    size_t lead;
    uint64_t avail; /* bytes from base to the segment's end */
};

/* A large file on its way out. */
struct hf_shedding {
    struct hf_file *file; /* owned; NULL: none */
    char name[HF_SEGMENT_NAME_SIZE];
    uint64_t size;
};

/* Something that is tried again and again, and fails. */
struct hf_trouble {
    bool lasts;
    uint64_t noted_ns;
};

/* Batches that could not be read when their keys were to be freed. The keys count until they
 * are. */
struct hf_passed {
    uint64_t position, end; /* batches from here to there */
    uint32_t entry; /* offset in the first: keys of entries before it have left; 0: none has */
};

struct hf_snapshotting;
struct hf_reindexing;

/* What a batch leaves behind for the next one. */
struct hf_link {
    uint64_t sequence; /* that the next batch must have */
    hf_time now;
    uint8_t chain[HF_DIGEST_SIZE]; /* that it must name */
};

/* The check of what lies before the snapshot that the store was opened with (walk.h). */
struct hf_verify {
    enum { HF_VERIFY_NOTHING, HF_VERIFY_RUNNING, HF_VERIFY_GOOD, HF_VERIFY_BAD } state;
    uint64_t position, stop; /* of the next batch; where the snapshot began */
    struct hf_link link, goal;
    bool begins;   /* `position` is where a segment's first batch must be */
    uint64_t left; /* if begins: where the segment before was left, 0 if its last batch filled it */
    bool rebuild;  /* note where holds are, for holds.idx */
    const char *what; /* if BAD: static, what is wrong at `position` */
    enum hf_status status;
    int error;                  /* the last step could not read something; 0: it could */
    struct hf_pack_cache cache; /* owned */
    uint64_t rest_until_ns;     /* others have the disk until then */
};

struct hf_journal {
    const struct hf_io *io; /* borrowed */
    struct hf_dir *dir;     /* owned */
    bool is_memory, has_keys;
    bool has_twins; /* a segment is there plain and compressed */
    bool has_seal;  /* keys.seal is known: the store has a segment of version 2 */
    struct hf_store_keys keys;
    struct hf_gmac *gmac; /* owned; for hf_journal_commit alone: others read meanwhile */
    struct hf_rules rules;
    uint64_t memory_max, tenant_memory_max, tenant_records_max, snapshot_every;
    bool keep_plain, no_verify;

    struct hf_segments segments;
    struct hf_pack_cache cache;
    struct hf_tables tables;
    struct hf_view view;
    struct hf_plan *plan;   /* owned, reused for each decision */
    uint64_t seen_position; /* of the remembered entry that the view gave last */

    struct hf_batch gather, flight;
    struct hf_place place;   /* of the batch that is opened next */
    uint64_t sealed_highest; /* greatest ordinal in a batch that was sealed */
    uint64_t next_sequence, flight_sequence;
    uint64_t flight_sync_ns;
    uint64_t end;                  /* where the next batch begins, if it fits there */
    uint64_t active;               /* number of the segment with `end` in it; 0: none yet */
    bool opened;                   /* open went well: a close is an orderly one */
    struct hf_closed closed;       /* the note, as the start found it */
    struct hf_closed begun;        /* the first batch of a segment, to be noted; sequence 0: none */
    uint64_t begun_at_ns;          /* not before */
    bool begun_failed;             /* the last try */
    uint64_t durable;              /* everything before this position is on disk */
    hf_time now;                   /* engine time: of the newest batch */
    struct hf_engine_clock clock;  /* which gives engine time, to reads as well */
    uint8_t chain[HF_DIGEST_SIZE]; /* of the newest batch that was committed */

    uint64_t token_cursor;       /* position of a batch: no live token is remembered before it */
    uint32_t token_cursor_entry; /* offset in that batch; 0: its beginning */
    uint64_t token_stuck_at,
        token_stuck_ns;       /* the cursor of a batch that cannot be read, and since when */
    uint64_t token_seek;      /* from there up to here nothing can be read */
    struct hf_passed *passed; /* owned: what the cursor has passed */
    size_t passed_count, passed_room, passed_next;
    uint64_t revisit_at_ns; /* not before this */
    size_t row_cursor;      /* part of the row table that is looked through for what is over ... */
    uint32_t row_slot;      /* ... and the slot in it that comes next */
    bool
        /* a limit has refused a request: look through all rows now, some may be over */
        rows_wanted;
    size_t rows_left; /* parts of the row table that are to be looked through for that */
    uint64_t
        guard_cursor; /* stamp: guards from here on are looked at next for entries that are over */
    uint64_t guards_idle; /* guards looked at since the last entry was freed */
    size_t
        looked; /* by the last step of maintenance: slots, guards, entries and tokens; for tests */
    struct hf_preparing preparing;
    struct hf_shedding shedding;
    struct hf_snapshotting *snapshotting; /* owned, NULL unless one is being written */
    struct hf_reindexing *reindexing; /* owned, NULL unless parts of holds.idx are being rebuilt */
    bool index_old;          /* holds.idx was rebuilt in memory: a snapshot should write it */
    uint64_t reindex_at_ns;  /* after rebuilding failed: not before this */
    bool reindex_lost;       /* it failed because the journal itself is damaged */
    bool snapshot_wanted;    /* begin one at the next landing */
    uint64_t snapshot_start; /* `start` of the newest snapshot, 0 if there is none */
    uint64_t snapshot_bytes; /* its size */
    uint64_t retry_at_ns;    /* after a snapshot or a compression that failed: not before this */
    uint64_t prepare_at_ns;  /* the same for the next segment, which waits for neither */
    bool packing;            /* a segment is being compressed, without the lock */
    struct hf_verify verify;
    struct hf_trouble snapshot_trouble, pack_trouble;
    uint64_t head_noted_ns; /* when the head of the chain was last told to the operator */

    /* Runs the function of an HF_APPLY whose key is new: adds rows to the plan and sets its
     * answer. */
    void (*run_apply)(void *arg, const struct hf_request *request, struct hf_plan *plan,
                      hf_time now);
    void *run_arg;

    bool segment_wanted; /* a request waits for the next segment */
    bool out_of_space;   /* the last try to prepare a segment failed ... */
    int prepare_error;   /* ... for this reason, as -errno: not always for want of space */
    bool read_noted;     /* that something could not be read, at read_noted_ns */
    uint64_t read_noted_ns;
    bool full_noted; /* that the limit of memory is reached, at full_noted_ns */
    uint64_t full_noted_ns;
    struct hf_stats stats;
    void (*on_note)(void *arg, int level, const char *line);
    void (*on_progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

/* Open or make the store. options, io: borrowed for the journal's life. out: owned. why: out. */
enum hf_status hf_journal_open(const char *path, const struct hf_options *options,
                               const struct hf_io *io, struct hf_journal **out,
                               struct hf_error *why);
/* Free everything. What is gathered and not committed is lost: commit first. */
void hf_journal_close(struct hf_journal *j);

enum hf_take {
    /* decided: j->plan has the answer until the next take; *needs must be durable first */
    HF_TAKEN,
    HF_TAKE_FULL, /* the gathered batch has no room: commit, then try again */
    HF_TAKE_WAIT  /* the next segment is not ready yet: maintain, then try again */
};

/* What can be worked out about a request before the lock is taken. */
struct hf_hashed {
    uint8_t digest[HF_DIGEST_SIZE];
    uint64_t token_hash, resource_hash; /* 0: not known */
};
/* Without the lock. */
void hf_journal_hash_request(const struct hf_journal *j, const struct hf_request *request,
                             struct hf_hashed *out);
/* Ask the memory for what deciding these requests will read. Changes nothing. */
void hf_journal_prefetch(const struct hf_journal *j, const struct hf_hashed *hashed, size_t count);

/* Decide `request`. needs: out, the position that must be durable before the answer may be shown
 * (0: none). now: out. */
enum hf_take hf_journal_take(struct hf_journal *j, const struct hf_request *request,
                             const struct hf_hashed *hashed, uint64_t *needs, hf_time *now);

/* Bytes of memory that the store takes: its tables, and the journal itself if it is in memory. */
uint64_t hf_journal_memory(const struct hf_journal *j);

/* What the limit on memory is held against; and is it reached for all that is new? */
uint64_t hf_journal_used(const struct hf_journal *j);
bool hf_journal_is_full(const struct hf_journal *j);

/* Engine time for something that is decided now. */
hf_time hf_journal_now(struct hf_journal *j);

/* Is there something to commit? */
static inline bool hf_journal_gathered(const struct hf_journal *j)
{
    return j->gather.size > 0;
}

/* Take the gathered batch as the one to fly. Only when none flies. */
void hf_journal_seal(struct hf_journal *j);
/* Write and sync the flying batch. Without the lock. 0 or a negative errno: then nothing is known
 * about the batch and the store must not go on. */
int hf_journal_commit(struct hf_journal *j);
/* The commit went well: the flying batch is durable. */
void hf_journal_landed(struct hf_journal *j);

/* Expire up to `max` overdue holds. Returns how many. */
size_t hf_journal_sweep(struct hf_journal *j, size_t max);
/* Gather an entry with the configuration in force (j->rules), if it is not the one recorded
 * last. */
enum hf_status hf_journal_configure(struct hf_journal *j);

/* ---- Reading by position (read.c) ---- */

/* The entry at `position`, wherever it is: gathered, flying, in a segment or packed. Borrowed until
 * the next take or read. 0, -ENOENT or -EBADMSG (damaged). */
int hf_journal_entry(struct hf_journal *j, uint64_t position, struct hf_entry_view *out);
bool hf_journal_is_packed(const struct hf_journal *j, uint64_t position);

/* sequence: out, of the sealed header that stands at `position`, wherever it was meant to be; 0:
 * there is none. 0 or an error: it cannot be read. */
int hf_journal_sealed_at(struct hf_journal *j, uint64_t position, uint64_t *sequence);
/* The batch at `position`, sealed; if `deep`, whole. data, head: out, as above. -EBADMSG: there is
 * none. Another error: it cannot be read now. */
int hf_journal_batch(struct hf_journal *j, uint64_t position, bool deep, const unsigned char **data,
                     struct hf_batch_head *head);
/* The same in a segment that has been reached; without the lock if it is pinned and `cache` is the
 * caller's own. */
int hf_journal_batch_of(struct hf_journal *j, struct hf_segment *g, struct hf_pack_cache *cache,
                        uint64_t position, bool deep, const unsigned char **data,
                        struct hf_batch_head *head);
/* A record at `position` is damaged (-EBADMSG) or cannot be read (another error): count it, and
 * tell the operator which file it is. A record that every request asks for does not fill the
 * log. */
void hf_journal_note_unreadable(struct hf_journal *j, uint64_t position, int error);
/* Does the error say that something could not be read now, and nothing about what is in it? */
bool hf_journal_unread(int error);
/* Memory or descriptors were short: nothing is wrong with what was to be read. */
bool hf_journal_short(int error);

/* ---- Applying (tables.c) ---- */

bool hf_tables_init(struct hf_tables *t, const struct hf_store_keys *keys, const struct hf_io *io,
                    struct hf_dir *dir);
void hf_tables_free(struct hf_tables *t);
/* The hash of a key in its tenant. */
uint64_t hf_tables_hash(const struct hf_tables *t, struct hf_scoped key);
/* Apply the entry at `position`. replay: it may have been applied before (recovery over a
 * snapshot). All or nothing: HF_OK, HF_NO_MEMORY, or HF_STORE_DAMAGED (not well-formed). */
enum hf_status hf_tables_apply(struct hf_tables *t, const struct hf_entry_view *entry,
                               uint64_t position, bool replay);
/* Apply a row of a guard that is not durable: memory alone. */
enum hf_status hf_tables_apply_volatile(struct hf_tables *t, struct hf_bytes tenant,
                                        const struct hf_image *image);
uint64_t hf_tables_bytes(const struct hf_tables *t);
/* What the limit on memory is held against: the bytes of what is in them, without room to spare. */
uint64_t hf_tables_in_use(const struct hf_tables *t);
/* What it takes to end everything that was begun: see owners.h. */
uint64_t hf_tables_owed(const struct hf_tables *t);
/* A tenant has as many keys as there are entries with one in the journal from the cursor on: the
 * cursor has passed one. */
void hf_tables_token_gone(struct hf_tables *t, struct hf_bytes tenant);

/* ---- The view (view.c) ---- */
void hf_journal_view_init(struct hf_journal *j);
/* The hold with this ordinal. 0, -ENOENT if there is none, or another negative errno: it cannot be
 * read. That is counted, and told to the operator now and then. */
int hf_journal_hold(struct hf_journal *j, uint64_t ordinal, struct hf_hold *out);
/* hf_journal_hold could not read it, with this error: only for now, because memory or descriptors
 * are short or holds.idx is being rebuilt? */
bool hf_journal_hold_awaited(const struct hf_journal *j, uint64_t ordinal, int error);
/* Part p of holds.idx was found to be not right: say so, and count it. It is rebuilt by
 * hf_journal_maintain. */
void hf_journal_index_note(struct hf_journal *j, uint64_t p);
/* Does its resource count the hold, as held or as confirmed, as the rules rely on? Always, but in a
 * journal that somebody made up. */
bool hf_journal_counted(struct hf_journal *j, const struct hf_hold *hold);

/* ---- Recovery (recover.c) ---- */
/* Find the segments and snapshots, load, replay. why: out if not HF_OK. *fresh: out, the directory
 * was empty. */
enum hf_status hf_journal_recover(struct hf_journal *j, bool *fresh, struct hf_error *why);

/* Tell the operator the head of the chain: of the newest batch that is durable. Not while one
 * flies. */
void hf_journal_note_head(struct hf_journal *j);

/* Say something to the operator. level: 0 info, 1 warning. */
void hf_journal_note(struct hf_journal *j, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

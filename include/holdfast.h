/* holdfast.h: retry-safe writes, embedded.
 *
 * This header is the manual of the library. Read it top to bottom once and you can use all of it.
 *
 * Networks lose answers, people click twice, queues deliver again. Holdfast lets a program hear the
 * same request twice and act once: every change carries an idempotency key, and the key, the change
 * and the answer leave for the disk in one commit. Ask again with the same key and you get the
 * first answer, byte for byte, and nothing happens a second time.
 *
 *     struct hf_db *db;
 *     struct hf_error why;
 *     if (hf_open("./holdfast-data", NULL, &db, &why) != HF_OK)
 *         return complain(why.text);
 *
 *     struct hf_result got = HF_RESULT_INIT;
 *     enum hf_status st = hf_do(db, &(struct hf_request){
 *         .action = HF_PLACE_HOLD,
 *         .key = hf_str("order-8123"),
 *         .place_hold = { .resource = hf_str("room-307"), .requester = hf_str("guest-91"),
 *                         .duration_ms = 15 * 60 * 1000 } }, &got);
 *     if (st == HF_OK)
 *         printf("%s%s\n", got.answer.hold.id, got.replayed ? " (again)" : "");
 *     hf_result_clear(&got);
 *     hf_close(db);
 *
 * Three words describe memory in every contract below.
 *   borrowed   you keep it; it must stay as it is until the call returns (for hf_submit: until the
 *              callback has run).
 *   owned      it becomes yours, and the contract names the function that frees it.
 *   out        you provide the space, the call fills it.
 *
 * Caveats, up front.
 *   - One process at a time has a directory open. A second one is refused and told who has it.
 *   - Answers are released only when what they saw is on disk. A failed fdatasync stops the process
 *     (hf_options.on_fatal); it never tries again and never pretends.
 *   - Time is milliseconds since 1970-01-01 UTC. The engine's time never runs backwards: when the
 *     wall clock steps back, engine time stands still until the wall clock has caught up; when it
 *     jumps ahead and the boot clock does not confirm it, it is not believed before it has stayed
 *     there for 60 s.
 *   - Do not call into the library from inside an hf_apply function. Inside a callback of
 *     hf_submit, only hf_submit may be called.
 *   - Do not use a database handle in a child after fork. */
/* The tables of this page are set by hand. */
/* clang-format off */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_VERSION "0.1.0"
#define HF_API __attribute__((visibility("default")))
#define HF_MUST_USE __attribute__((warn_unused_result))

/* ---- Limits. Every one is checked before any work, and passing one is HF_INVALID_REQUEST. ---- */

#define HF_TENANT_MAX 64          /* bytes of a tenant; the empty name is the default tenant */
#define HF_TOKEN_MAX 1024         /* bytes: ceiling for hf_options.token_max_length (default 256) */
#define HF_NAME_MAX 1024          /* bytes of a resource, requester, guard, lease or register */
#define HF_IDENTITY_MAX 1024      /* bytes of a guard's identity */
#define HF_GUARD_RESULT_MAX 65536 /* bytes of a result stored with an identity */
#define HF_RESPONSE_MAX 1048576   /* bytes of a claim's response or error, or an apply's result */
#define HF_VALUE_MAX 65536        /* bytes of a register's value, in its stored form */
#define HF_MERGE_ITEMS_MAX 1024   /* members, nodes or entries of one merged value */
#define HF_DURATION_MAX_MS INT64_C(315360000000) /* ten years: durations, windows, leases */
#define HF_CAPACITY_MAX 1000000000 /* units of a resource */
#define HF_LIST_MAX 1000          /* records a page */
#define HF_APP_KEY_MAX 1024       /* bytes of a key in the application key space */
#define HF_APP_VALUE_MAX 1048576  /* bytes of a value there */
#define HF_APPLY_ROWS_MAX 64      /* puts, deletes and outbox rows of one hf_apply */
#define HF_APPLY_BYTES_MAX 1048576 /* their bytes together, the result included */
#define HF_SEQUENCE_WINDOW 256    /* how far back a client's sequence numbers are remembered */
#define HF_MATCH_MAX 4            /* steps of a guard's match rule */
#define HF_GROUP_MAX 8192         /* requests of one hf_do_many */

/* ---- Bytes and time ---- */

/* Bytes that are borrowed: not ended by a NUL, and NULs may be inside. */
struct hf_bytes {
    const void *data;
    size_t size;
};

static inline struct hf_bytes hf_str(const char *text)
{
    struct hf_bytes b = { text, text ? strlen(text) : 0 };
    return b;
}

static inline struct hf_bytes hf_mem(const void *data, size_t size)
{
    struct hf_bytes b = { data, size };
    return b;
}

/* Milliseconds since 1970-01-01T00:00:00Z. */
typedef int64_t hf_time;

/* ---- Status ----
 * Four kinds, never mixed up; hf_status_kind tells which.
 *   ok             done (or: this is the answer).
 *   refusal        an answer by the rules. Where the call carries a key, it is remembered like a
 *                  success.
 *   fault          nothing happened, nothing is remembered: try again.
 *   indeterminate  it may have happened. Ask again with the same key: the retry finds the truth.
 * The numbers are part of the file format. */
enum hf_status {
    HF_OK = 0,
    /* refusals */
    HF_INVALID_REQUEST = 1,
    HF_NOT_KNOWN = 2,
    HF_RESOURCE_UNAVAILABLE = 3,
    HF_NOT_HELD = 4,
    HF_WINDOW_ELAPSED = 5,
    HF_WINDOW_NOT_ELAPSED = 6,
    HF_IN_PROGRESS = 7,
    HF_OUTCOME_UNKNOWN = 8,
    HF_STALE_FENCE = 9,
    HF_VERSION_MISMATCH = 10,
    HF_TOKEN_COLLISION = 11,
    HF_LEASE_HELD = 12,
    HF_REFUSED = 13, /* an hf_apply function said no; its words are the answer */
    /* faults */
    /* no room on disk, a limit or quota is reached (hf_answer.limit), the store is closing */
    HF_STORAGE_FAILURE = 32,
    HF_NO_MEMORY = 33,
    HF_MISUSE = 34,          /* a call that this header forbids */
    HF_STORE_BUSY = 35,      /* hf_open: another process has the directory */
    HF_STORE_DAMAGED = 36,   /* hf_open: the journal is damaged, not merely cut short */
    HF_STORE_NEWER = 37,     /* hf_open: written by a newer format than this program knows */
    HF_STORE_ABSENT = 38,    /* hf_open with create off: there is no store */
    /* indeterminate */
    HF_INDETERMINATE = 64
};

enum hf_status_kind { HF_KIND_OK, HF_KIND_REFUSAL, HF_KIND_FAULT, HF_KIND_INDETERMINATE };

HF_API enum hf_status_kind hf_status_kind(enum hf_status status);

/* The code as it stands in every interface, such as "token-collision". Static. */
HF_API const char *hf_status_code(enum hf_status status);

/* What went wrong with an open or another call that has no record to answer with: one sentence that
 * names what was wrong, where, and what to do. */
struct hf_error {
    enum hf_status status;
    char text[512];
};

/* ---- Records ---- */

#define HF_ID_SIZE 27             /* a hold's id: 26 characters and a NUL */
#define HF_DIGEST_SIZE 32
#define HF_DIGEST_NAME "sha256/1"

/* A hold binds one unit of one resource to one requester for a bounded time and ends exactly once.
 *
 *   HELD ──confirm──▶ CONFIRMED
 *     ├───release──▶ RELEASED
 *     └───expire───▶ EXPIRED */
enum hf_hold_state { HF_HELD = 1, HF_CONFIRMED = 2, HF_RELEASED = 3, HF_EXPIRED = 4 };

struct hf_hold {
    char id[HF_ID_SIZE];       /* opaque, made here, never used again */
    char reverses[HF_ID_SIZE]; /* the confirmed hold that this record gives back, or "" */
    uint64_t ordinal;          /* 1, 2, 3 ... in the order of placing, over all tenants */
    uint64_t previous;         /* ordinal of the hold before this one on the same resource, or 0 */
    enum hf_hold_state state;
    struct hf_bytes tenant, resource, requester;
    hf_time placed_at, expires_at;
    hf_time ended_at; /* confirmed_at, released_at or expired_at, by state; 0 while held */
};

/* A resource has `capacity` units. It is available while it is open and held + confirmed <
 * capacity. */
struct hf_resource {
    struct hf_bytes tenant, name;
    uint32_t capacity, held, confirmed;
    bool open;
    uint64_t fence;  /* the highest fence that a hold on it has carried, or 0 */
    uint64_t newest; /* ordinal of the newest hold on it, or 0 */
    hf_time created_at;
};

/* A guard answers "have I seen this lately?". `match` is applied to an identity, in order, before
 * it is compared; HF_MATCH_HASH must come last, and then only a SHA-256 of the identity is kept. */
enum hf_match {
    HF_MATCH_EXACT = 1,     /* byte for byte */
    HF_MATCH_TRIM = 2,      /* without white space at both ends (Unicode's White_Space) */
    HF_MATCH_CASEFOLD = 3,  /* Unicode case folding */
    HF_MATCH_NORMALIZE = 4, /* NFC, and each run of white space inside becomes one space */
    HF_MATCH_HASH = 5       /* only the SHA-256 is stored, never the identity */
};

enum hf_unavailable { HF_FAIL_OPEN = 0, HF_FAIL_CLOSED = 1 };

struct hf_guard {
    struct hf_bytes tenant, name;
    int64_t window_ms;
    enum hf_match match[HF_MATCH_MAX]; /* match[0 .. match_count) ; none means exact */
    uint32_t match_count;
    enum hf_unavailable on_unavailable;
    bool durable;
    hf_time created_at;
};

/* One identity under guard: seen while now < expires_at (= recorded_at + the window at that
 * time). */
struct hf_entry {
    struct hf_bytes tenant, guard;
    struct hf_bytes identity; /* as compared: after the match rule; 32 raw bytes if hashed */
    struct hf_bytes result;
    bool has_result;
    hf_time recorded_at, expires_at;
};

/* The answer of check, record and admit. The times are 0 and the result empty where not known: not
 * seen, or seen only because a closed guard could not be asked. For record, `seen` says whether the
 * identity was under guard already. */
struct hf_seen {
    bool seen;
    bool has_result;
    hf_time recorded_at, expires_at;
    struct hf_bytes result;
};

/* A claim reserves a key, so that an effect outside this store happens once.
 *
 *              ┌────── begin, higher fence (if on_abandon is retry) ─────┐
 *              ▼                                                         │
 *   begin ▶ STARTED ──complete──▶ COMPLETED                              │
 *              ├────── fail, for good ──▶ FAILED                         │
 *              ├────── fail, retryable ─▶ RETRYABLE ──begin──▶ STARTED   │
 *              └ ─ ─ ─ lease ran out ─ ─ ▶ UNKNOWN (shown, never stored) ┘
 *
 * A lease that runs out without a word means that the outcome is unknown. Whoever holds the current
 * fence may still complete, fail or heartbeat then: that is how an operator or a probe settles it.
 * A claim is remembered until one idempotency window after it was settled; one that is not settled
 * is never forgotten. */
enum hf_claim_state {
    HF_CLAIM_STARTED = 1,
    HF_CLAIM_COMPLETED = 2,
    HF_CLAIM_FAILED = 3,
    HF_CLAIM_RETRYABLE = 4,
    HF_CLAIM_UNKNOWN = 5
};

enum hf_abandon { HF_ABANDON_UNKNOWN = 0, HF_ABANDON_RETRY = 1 };

struct hf_claim {
    struct hf_bytes tenant, key;
    uint8_t fingerprint[HF_DIGEST_SIZE];
    enum hf_claim_state state;
    enum hf_abandon on_abandon;
    uint64_t fence; /* rises strictly with each begin of a key, for ever */
    int64_t lease_ms;
    hf_time begun_at, lease_expires_at;
    hf_time settled_at, expires_at; /* 0 while not settled */
    struct hf_bytes response;       /* of complete; of fail: the error */
};

/* A lease grants authority over a name, with a fence that rises strictly for ever. */
struct hf_lease {
    struct hf_bytes tenant, name, holder;
    uint64_t fence;
    int64_t ttl_ms; /* as granted or last renewed */
    hf_time granted_at, expires_at;
    hf_time released_at; /* 0 unless given back */
};

/* A register: a named value, written with a fence or a version, or merged by its algebra. */
enum hf_register_type {
    HF_TYPE_PLAIN = 1,   /* opaque bytes, by HF_WRITE */
    HF_TYPE_MAX = 2,     /* number */
    HF_TYPE_MIN = 3,     /* number */
    HF_TYPE_OR = 4,      /* flag */
    HF_TYPE_UNION = 5,   /* items[].name: a set that only grows */
    HF_TYPE_LWW = 6,     /* timestamp, node, bytes: greatest (timestamp, node, bytes) wins */
    HF_TYPE_VECTOR = 7,  /* items[].name and .up: version vector, entrywise maximum */
    HF_TYPE_COUNTER = 8, /* the same, its value the sum of all .up: a counter that only grows */
    HF_TYPE_UPDOWN = 9,  /* items[].name, .up and .down, its value the sum of up - down */
    /* only as the answer of HF_DELETE_REGISTER: there is no value any more. number: from this time
     * on its version and fence are forgotten; INT64_MAX: never */
    HF_TYPE_DELETED = 10
};

struct hf_item {
    struct hf_bytes name; /* 1 .. HF_NAME_MAX bytes, each name once */
    uint64_t up, down;    /* at most INT64_MAX each */
};

struct hf_value {
    enum hf_register_type type;
    int64_t number;     /* MAX, MIN; as an answer also the total of COUNTER and UPDOWN */
    bool flag;          /* OR */
    int64_t timestamp;  /* LWW */
    struct hf_bytes node;  /* LWW */
    struct hf_bytes bytes; /* PLAIN, LWW */
    const struct hf_item *items; /* UNION, VECTOR, COUNTER, UPDOWN; answers are sorted by name */
    size_t item_count;
};

struct hf_register {
    struct hf_bytes tenant, name;
    struct hf_value value;
    uint64_t version; /* 1, 2, 3 ... with each change, its deletion included */
    uint64_t fence;   /* the highest fence that a write has carried, or 0 */
    hf_time changed_at;
};

/* A row of the outbox: an intent that was committed together with the effect it belongs to. */
enum hf_outbox_state { HF_OUTBOX_PENDING = 1 };

struct hf_outbox {
    struct hf_bytes tenant;
    uint64_t number; /* 1, 2, 3 ... in the order of commit */
    struct hf_bytes key; /* the idempotency key to deliver with */
    struct hf_bytes topic, payload;
    enum hf_outbox_state state;
    hf_time created_at;
};

/* ---- Actions ----
 * The numbers are part of the file format. K: needs a key. */
enum hf_action {
    HF_PLACE_HOLD = 1,    /* K  place_hold   -> hold */
    HF_CONFIRM = 2,       /* K  hold         -> hold */
    HF_RELEASE = 3,       /* K  hold         -> hold */
    HF_EXPIRE = 4,        /* K  hold         -> hold */
    HF_REVERSE = 5,       /* K  hold         -> hold: a new record that gives a unit back */
    HF_SET_RESOURCE = 6,  /*    set_resource -> resource */
    HF_SET_GUARD = 7,     /*    set_guard    -> guard */
    HF_CHECK = 8,         /*    identity     -> seen */
    HF_RECORD = 9,        /*    identity     -> seen; always HF_OK once the guard is known */
    HF_ADMIT = 10,        /*    identity     -> seen; check and record in one step */
    HF_BEGIN = 11,        /*    begin        -> claim; .key is the claim's key */
    HF_COMPLETE = 12,     /*    settle       -> claim; .key is the claim's key */
    HF_FAIL = 13,         /*    settle       -> claim; .key is the claim's key */
    HF_HEARTBEAT = 14,    /*    settle       -> claim; .key is the claim's key */
    HF_GRANT = 15,        /* K  lease        -> lease */
    HF_RENEW = 16,        /*    lease        -> lease */
    HF_RETURN = 17,       /*    lease        -> lease */
    HF_WRITE = 18,        /* K  write        -> register */
    HF_MERGE = 19,        /*    merge        -> register */
    HF_APPLY = 20,        /* K  apply        -> value */
    /* K write (no value) -> register: of the type HF_TYPE_DELETED. Its memory is given back but for
     * its name, version and highest fence. These are kept for one idempotency window, and for ever
     * if it has a fence: a stale writer stays refused, and the versions of a register that is made
     * again go on */
    HF_DELETE_REGISTER = 21,
    /* K lease (name, and the fence if it is held) -> lease, as it was last; HF_LEASE_HELD if it is
     * held and no fence was given */
    HF_DELETE_LEASE = 22,
    HF_SWEEP = 32,        /*    not for requests: the store itself expired an overdue hold */
    HF_CONFIGURE = 33,    /*    not for requests: the store was opened with another configuration */
    HF_GET_HOLD = 64,     /*    hold         -> hold */
    HF_GET_RESOURCE = 65, /*    get          -> resource */
    HF_GET_GUARD = 66,    /*    get          -> guard */
    HF_GET_CLAIM = 67,    /*    .key         -> claim */
    HF_GET_LEASE = 68,    /*    get          -> lease */
    HF_GET_REGISTER = 69, /*    get          -> register */
    HF_GET_TOKEN = 70,    /*    .key         -> the record of the key's first answer, and
                           *                    hf_result.token */
    HF_GET_VALUE = 71     /*    get          -> value, of the application key space */
};

/* The action's name in every interface, such as "place_hold". Static; "unknown" for other
 * numbers. */
HF_API const char *hf_action_name(enum hf_action action);

struct hf_tx;

/* The caller's function of HF_APPLY. Runs at most once a key, inside the atomic unit: what it did
 * through `tx` commits together with the key, or not at all. It may run on any thread that is in
 * the library, must be quick, must not block and must not call the library except through hf_tx_*.
 * Return HF_OK: the effects and the result are committed and remembered.
 * Return HF_REFUSED: the effects are dropped, the result is remembered as the refusal's words.
 * Return anything else: nothing happened, nothing is remembered, and hf_do returns that status
 * (only faults, HF_STORAGE_FAILURE and up, are allowed here; others become HF_MISUSE). */
typedef enum hf_status hf_apply_fn(struct hf_tx *tx, void *arg);

/* One request. Zero is the default of every member; set `action`, `key` where needed, and the
 * member of the union that the list above names. Everything is borrowed. */
struct hf_request {
    enum hf_action action;
    struct hf_bytes tenant;
    struct hf_bytes key; /* the idempotency token: opaque, compared byte for byte */

    /* Instead of `key`, for clients that number their operations 1, 2, 3 ...: far cheaper than a
     * record for each. A number within HF_SEQUENCE_WINDOW of the highest seen is answered like a
     * key (again: the first answer); one further back is HF_WINDOW_ELAPSED, for ever, and does
     * nothing. */
    struct hf_bytes client;
    uint64_t sequence;

    union {
        struct {
            struct hf_bytes resource, requester;
            int64_t duration_ms;
            /* 0: none. Else it must be above the resource's: HF_STALE_FENCE if not */
            uint64_t fence;
        } place_hold;
        struct {
            struct hf_bytes id;
        } hold;
        struct {
            struct hf_bytes name;
            uint32_t capacity; /* 0: as it is (1 if new). Never below what is taken */
            enum { HF_LEAVE = 0, HF_SET_OPEN = 1, HF_SET_CLOSED = 2 } open;
        } set_resource;
        struct {
            struct hf_bytes name;
            int64_t window_ms;
            enum hf_match match[HF_MATCH_MAX];
            uint32_t match_count;
            enum hf_unavailable on_unavailable;
            bool volatile_only; /* true: entries are kept in memory alone (durable: no) */
        } set_guard;
        struct {
            struct hf_bytes guard, identity, result;
            bool has_result;
        } identity;
        struct {
            struct hf_bytes payload;                  /* hashed to the fingerprint, unless ... */
            const uint8_t *fingerprint;               /* ... HF_DIGEST_SIZE bytes are given here */
            int64_t lease_ms;                         /* 0: 60 s */
            enum hf_abandon on_abandon;
        } begin;
        struct {
            uint64_t fence;
            struct hf_bytes response; /* HF_COMPLETE: the response; HF_FAIL: the error */
            bool retryable;           /* HF_FAIL */
            int64_t lease_ms;         /* HF_HEARTBEAT; 0: as before */
        } settle;
        struct {
            struct hf_bytes name, holder; /* holder: HF_GRANT */
            int64_t ttl_ms;               /* HF_GRANT, HF_RENEW (0: as before) */
            /* HF_RENEW, HF_RETURN; HF_DELETE_LEASE: 0 unless it is held */
            uint64_t fence;
        } lease;
        struct {
            struct hf_bytes name, value;
            /* 0: none. Else it must be above the highest: HF_STALE_FENCE if not */
            uint64_t fence;
            bool has_if_version; /* HF_VERSION_MISMATCH unless the register has this version; */
            uint64_t if_version; /* 0 means: only if it is not there */
        } write;
        struct {
            struct hf_bytes name;
            const struct hf_value *value;
        } merge;
        struct {
            struct hf_bytes name;    /* what kind of effect, part of what a key is bound to */
            struct hf_bytes payload; /* its parameters, hashed into the digest */
            hf_apply_fn *fn;
            void *arg;
        } apply;
        struct {
            struct hf_bytes name;
        } get;
    };
};

enum hf_record {
    HF_NO_RECORD = 0,
    HF_RECORD_HOLD = 1,
    HF_RECORD_RESOURCE = 2,
    HF_RECORD_GUARD = 3,
    HF_RECORD_SEEN = 4,
    HF_RECORD_CLAIM = 5,
    HF_RECORD_LEASE = 6,
    HF_RECORD_REGISTER = 7,
    HF_RECORD_VALUE = 8
};

/* Which limit an HF_STORAGE_FAILURE came from. At a limit of memory and at a quota, what ends
 * something that was begun before is still taken: confirm, release and expire of a hold that is
 * held, complete and fail of a claim (with a response of up to 1 KiB; longer ones, and reversals,
 * while a sixteenth of the limit that is kept for them lasts), heartbeat, renew and return, and the
 * deletion of registers and leases. On a full disk these are taken while the end of the last
 * segment lasts, which is kept for them. */
enum hf_limit {
    HF_LIMIT_NONE = 0,
    HF_LIMIT_DISK = 1,           /* the next segment of the journal has no room */
    HF_LIMIT_MEMORY = 2,         /* hf_options.memory_max_bytes, of all tenants together */
    HF_LIMIT_TENANT_MEMORY = 3,  /* hf_options.tenant_memory_max_bytes */
    HF_LIMIT_TENANT_RECORDS = 4  /* hf_options.tenant_records_max */
};

/* What a request was answered with. `kind` names the member that is set. Refusals mostly have none;
 * but in-progress, outcome-unknown and a fence that is not the newest have the claim (or the
 * lease), and a merge that the register does not take has the register, as they stand. */
struct hf_answer {
    enum hf_status status;
    enum hf_limit limit; /* with HF_STORAGE_FAILURE, if it came from a limit */
    enum hf_record kind;
    union {
        struct hf_hold hold;
        struct hf_resource resource;
        struct hf_guard guard;
        struct hf_seen seen;
        struct hf_claim claim;
        struct hf_lease lease;
        struct hf_register reg;
        struct hf_bytes value;
    };
};

/* What is known of a key. Filled for every call that carries one and was remembered. */
struct hf_token {
    enum hf_action action;
    enum hf_status status; /* of the first answer */
    uint8_t digest[HF_DIGEST_SIZE];
    hf_time recorded_at, expires_at;
};

/* The result of a call. Start with HF_RESULT_INIT; each call that fills it frees what it held
 * before. All bytes in `answer` live inside the result until hf_result_clear or the next call with
 * it. A result must not be copied by assignment while it holds an answer (it points into
 * itself). */
#define HF_RESULT_INLINE 448
struct hf_result {
    struct hf_answer answer;
    struct hf_token token;
    bool replayed;    /* this is a first answer, given again */
    hf_time now;      /* engine time at which the request was decided */
    void *heap;       /* private */
    unsigned char room[HF_RESULT_INLINE]; /* private */
};
#define HF_RESULT_INIT { .heap = NULL }

HF_API void hf_result_clear(struct hf_result *result);

/* ---- Opening and closing ---- */

struct hf_io; /* files, time and randomness: see src/store/io.h; NULL is the operating system */

enum hf_registry { HF_REGISTRY_KEEP = 0, HF_REGISTRY_OPEN = 1, HF_REGISTRY_STRICT = 2 };

/* The first three are the configuration in force: they are recorded in the journal whenever they
 * change, and 0 leaves each as the store has it. */
struct hf_options {
    /* new stores: 24 hours. A key is bound to the window of its first use */
    int64_t idempotency_window_ms;
    uint32_t token_max_length;     /* new stores: 256 bytes */
    /* new stores: open. Strict: a hold on a resource never set is refused */
    enum hf_registry registry;
    bool no_create;                /* true: HF_STORE_ABSENT instead of making a new store */
    /* 0: no limit. Reached: new keys and rows are HF_STORAGE_FAILURE (see enum hf_limit). In
     * ":memory:" the journal counts too, which only grows: endings are taken beyond the limit */
    uint64_t memory_max_bytes;
    /* 0: no limit. The same for the rows, keys and held holds of each tenant */
    uint64_t tenant_memory_max_bytes;
    /* 0: no limit. The same for how many a tenant has: rows, live keys and held holds; not what
     * deleted registers leave, which is limited by memory alone */
    uint64_t tenant_records_max;
    /* 0: 64 MiB. Size of a full-grown journal segment: a multiple of 64 KiB. A request that does
     * not fit into one is HF_STORAGE_FAILURE */
    uint64_t segment_max_bytes;
    uint64_t snapshot_every_bytes; /* 0: 256 MiB. Journal written between two snapshots */
    bool no_background;            /* true: no thread is started; call hf_maintain yourself */
    /* true: opening does not check the journal before the newest snapshot, which hf_maintain does;
     * for programs that open a store for one call */
    bool no_verify;
    /* true: what was submitted is committed by hf_flush alone, on the caller's thread */
    bool no_committer;
    bool keep_plain;               /* true: old segments are not compressed */
    /* NULL: the journal in the directory `path`. Else a libpq connection string: the store is in
     * that database, shared with every other process that opens it, and `path` is not looked at. Of
     * the members above then only the first three and no_create, no_background and no_committer
     * mean something */
    const char *postgres;
    /* who has the directory, for the one who is refused; NULL: the pid */
    const char *holder;
    /* NULL: the operating system; for PostgreSQL, whose clock counts there: the database */
    const struct hf_io *io;
    /* Called once when the store cannot go on (a write or fdatasync of the journal failed). NULL:
     * the sentence goes to stderr and the process exits with status 3. If it returns, every call
     * that waits answers HF_INDETERMINATE and every later one HF_STORAGE_FAILURE. Must not call the
     * library. */
    void (*on_fatal)(void *arg, const char *sentence);
    /* Told about things an operator should know, one line each; NULL: nothing. level: 0 info, 1
     * warning. Must not call the library. */
    void (*on_note)(void *arg, int level, const char *line);
    /* Told how far a long recovery is, from 0 to total bytes; NULL: nothing. */
    void (*on_progress)(void *arg, uint64_t done, uint64_t total);
    void *arg; /* borrowed, given to the three above */
};

struct hf_db;

/* Open the store in directory `path`, made if absent; ":memory:" keeps nothing on disk. path,
 * options: borrowed. db: out, owned, free with hf_close. why: out, may be NULL. HF_OK, or
 * HF_INVALID_REQUEST (options), HF_STORE_BUSY, HF_STORE_DAMAGED, HF_STORE_NEWER, HF_STORE_ABSENT,
 * HF_STORAGE_FAILURE, HF_NO_MEMORY; then *db is NULL and nothing was changed, except that a batch
 * cut short by a crash (never acknowledged) is dropped from the journal's end. HF_INDETERMINATE, in
 * a database alone: *db is NULL, and the schema or the configuration that was to be committed may
 * be there. The library maps its files and installs a handler for SIGBUS, so that an unreadable
 * sector is HF_STORAGE_FAILURE; other SIGBUS go to the handler that was there before. A thread that
 * calls the library must not block SIGBUS: then the system ends the process. */
HF_API HF_MUST_USE enum hf_status hf_open(const char *path, const struct hf_options *options,
                                          struct hf_db **db, struct hf_error *why);

/* Finish what is in flight, stop the threads, give the directory back. No call may be running or
 * come later. NULL is allowed. */
HF_API void hf_close(struct hf_db *db);

/* ---- Doing ---- */

/* Decide `request`, make it durable, answer. Blocks until what the answer saw is on disk. Safe from
 * many threads: those that wait together share one commit. Returns the answer's status
 * (result->answer.status is the same; but for HF_GET_TOKEN of a key that is known, HF_OK is
 * returned and the answer's status is that of the first call). result may be NULL. */
HF_API HF_MUST_USE enum hf_status hf_do(struct hf_db *db, const struct hf_request *request,
                                        struct hf_result *result);

/* The same for `count` requests, independent of each other, decided in order, one wait for all.
 * results: out, `count` of them, may be NULL. Returns HF_OK when all were answered (look at each),
 * HF_MISUSE for more than HF_GROUP_MAX. */
HF_API HF_MUST_USE enum hf_status hf_do_many(struct hf_db *db, const struct hf_request *requests,
                                             struct hf_result *results, size_t count);

/* A request in flight. You own it; it must stay in place until its callback has run. */
struct hf_op {
    const struct hf_request *request; /* borrowed until the callback */
    struct hf_result *result;         /* borrowed until the callback, may be NULL */
    void (*done)(struct hf_op *op, enum hf_status status);
    void *arg;           /* yours */
    /* 0: any size. An answer with more bytes is HF_INDETERMINATE instead: it is decided, and
     * remembered where it has a key; ask for it again by itself. A refusal with more bytes comes
     * without its record */
    size_t answer_max;
    /* NULL, or anything of yours: operations of a tenant with the same order key are decided in the
     * order in which they were submitted, also on PostgreSQL, where others may overtake each
     * other */
    const void *order_key;
    struct hf_op *next;  /* private until the callback; yours after it */
    uint64_t needs;      /* private */
    enum hf_status status; /* private */
};

/* Decide the linked operations first, first->next, ... now, and call each one's `done` when its
 * answer may be shown. `done` runs exactly once for each, on any thread in the library, perhaps
 * before hf_submit returns. Answers that wait for the disk come in the order of submission; one
 * that need not wait may come before them. Blocks only while the batch being gathered is full. */
HF_API void hf_submit(struct hf_db *db, struct hf_op *first);

/* Write and sync what has been submitted and call back, on this thread. Returns when everything
 * that was submitted before the call is answered. Unless hf_options says no_background or
 * no_committer, a thread of the library does it soon anyway. */
HF_API void hf_flush(struct hf_db *db);

/* Wait until everything that was decided before the call is on disk, whoever asked for it: for
 * those who read the store's files, or its tables, beside the library. In a database it is also
 * waited for the synchronous standbys. HF_OK or HF_INDETERMINATE. */
HF_API HF_MUST_USE enum hf_status hf_barrier(struct hf_db *db);

/* For those who read a database's tables while it may fail over. hf_timeline: the newest timeline
 * that the library has met, which rises when a standby is promoted; 0: there is none.
 * hf_barrier_on: as hf_barrier, but HF_INDETERMINATE if it is not on this timeline that the
 * standbys have everything: what was read on another primary may be lost. */
HF_API uint32_t hf_timeline(struct hf_db *db);
HF_API HF_MUST_USE enum hf_status hf_barrier_on(struct hf_db *db, uint32_t timeline);

/* One bounded step of the work that background threads do otherwise: expire overdue holds, free
 * expired keys, prepare segments, write a slice of a snapshot, compress. Returns true while there
 * is more to do. */
HF_API bool hf_maintain(struct hf_db *db);

/* ---- Inside an hf_apply function ---- Keys and values are copied. All of these see what this same
 * function did before. HF_INVALID_REQUEST past a limit; the function should return HF_REFUSED or a
 * fault then, and whatever it returns, nothing of it is committed. */

/* value: out, borrowed until the function returns. HF_NOT_KNOWN if there is none. */
HF_API HF_MUST_USE enum hf_status hf_tx_get(struct hf_tx *tx, struct hf_bytes key,
                                            struct hf_bytes *value);
HF_API HF_MUST_USE enum hf_status hf_tx_put(struct hf_tx *tx, struct hf_bytes key,
                                            struct hf_bytes value);
HF_API HF_MUST_USE enum hf_status hf_tx_delete(struct hf_tx *tx, struct hf_bytes key);
/* Add a row to the outbox, to be delivered with this apply's key ("client/sequence" for a numbered
 * one). */
HF_API HF_MUST_USE enum hf_status hf_tx_enqueue(struct hf_tx *tx, struct hf_bytes topic,
                                                struct hf_bytes payload);
/* What hf_do answers with, now and at each retry (HF_RECORD_VALUE). */
HF_API HF_MUST_USE enum hf_status hf_tx_result(struct hf_tx *tx, struct hf_bytes result);
/* Engine time of this unit. */
HF_API hf_time hf_tx_now(const struct hf_tx *tx);

/* ---- Lists, newest first ---- A page is stable while writes go on, and across restarts: what was
 * there when the first page was read, and stays, is seen once. Identities that are in memory alone
 * (volatile_only) come before those of the same guard that are on disk. */

enum hf_list_kind {
    HF_LIST_HOLDS = 1,
    HF_LIST_RESOURCES = 2,
    HF_LIST_GUARDS = 3,
    HF_LIST_ENTRIES = 4, /* of the guard `name` that are seen now */
    HF_LIST_OUTBOX = 5
};

struct hf_query {
    enum hf_list_kind kind;
    struct hf_bytes tenant;
    enum hf_hold_state state;            /* holds: 0 any */
    struct hf_bytes resource, requester; /* holds: empty any */
    hf_time from, to;                    /* holds: placed_at in [from, to), 0 open */
    struct hf_bytes name;                /* entries: the guard */
    uint32_t limit;                      /* 0: 100 */
    /* 0: the start; else a page's next_cursor, of the same tenant */
    uint64_t cursor;
};

struct hf_page {
    size_t count;
    /* opaque; 0: that was all. A page may be short, even empty, and still go on: a call looks at a
     * bounded number of records */
    uint64_t next_cursor;
    union {
        struct hf_hold *holds;
        struct hf_resource *resources;
        struct hf_guard *guards;
        struct hf_entry *entries;
        struct hf_outbox *outbox;
        void *rows;
    };
    void *heap; /* private */
};

/* page: out, owned, free with hf_page_clear. HF_OK, HF_INVALID_REQUEST, HF_NOT_KNOWN (no such
 * guard) or a fault. */
HF_API HF_MUST_USE enum hf_status hf_list(struct hf_db *db, const struct hf_query *query,
                                          struct hf_page *page);
HF_API void hf_page_clear(struct hf_page *page);

/* ---- Figures ---- */

#define HF_HISTOGRAM 17

struct hf_stats {
    uint64_t tokens;            /* keys in memory: live ones, and expired ones not yet freed */
    uint64_t holds;             /* ever placed, reversals included */
    uint64_t holds_live;        /* in state held */
    uint64_t resources, guards, entries, claims, registers, outbox, values;
    uint64_t operations;        /* decided since open */
    uint64_t duplicates;        /* answered from a stored answer since open */
    uint64_t collisions;        /* refused as token-collision since open */
    uint64_t races;             /* duplicates whose first call was not yet durable */
    uint64_t guard_misses;      /* recordings that a full store could not take */
    uint64_t clock_stalls;      /* batches for which the wall clock was behind engine time */
    /* how often the wall clock jumped ahead, which the boot clock did not confirm */
    uint64_t clock_jumps;
    uint64_t refusals_storage;  /* storage-failure answers since open */
    uint64_t batches, syncs;
    uint64_t sync_ns_total, sync_ns_max;
    /* [i]: batches written and synced within 32 us * 2^i; the last: the rest */
    uint64_t commits_by_time[HF_HISTOGRAM];
    /* [i]: batches of at most 2^i operations; the last: the rest */
    uint64_t commits_by_size[HF_HISTOGRAM];
    uint64_t batched;           /* operations in all batches */
    uint64_t journal_bytes;     /* position of the journal's end */
    uint64_t memory_bytes;      /* all tables */
    uint64_t memory_token_bytes; /* the part that keys take */
    /* what memory_max_bytes is held against: what is in the tables, without room to spare, and what
     * is kept to end what was begun */
    uint64_t memory_used_bytes;
    uint64_t memory_max_bytes;  /* as in hf_options */
    /* the limit of memory is reached: only what ends something is taken */
    bool memory_full;
    uint64_t tenants;           /* that have something in the tables */
    /* storage-failure answers since open that came from a tenant's own quota */
    uint64_t refusals_quota;
    uint64_t snapshots;
    /* how often holds.idx, or a part of it, was not right and was rebuilt since open */
    uint64_t index_rebuilds;
    /* times that a record was damaged or could not be read when it was needed since open; on
     * PostgreSQL, that a row was found changed by hand */
    uint64_t records_unreadable;
    /* of this open: time, operations replayed after the snapshot */
    uint64_t recovery_ns, recovery_replayed;
    hf_time now;
    /* The check of what lies before the snapshot that the store was opened with: how much there is,
     * how much was checked, and whether it is not as it was written. It goes on in the
     * background. */
    uint64_t verify_bytes, verified_bytes;
    bool journal_damaged;
    /* there was no room when it was last needed: on the journal's disk, or on the database's */
    bool out_of_space;
    /* the database cannot be reached, or takes no writes for another reason than that */
    bool database_away;
    bool out_of_files;          /* the system gave no descriptor when the journal last needed one */
    /* the journal's disk refused for another reason when it was last needed; on_note says why */
    bool storage_failing;
    /* for how long commits have waited for the database's synchronous standbys; 0: they do not, or
     * for less than four seconds */
    uint64_t standby_silent_ms;
};

HF_API void hf_stats(struct hf_db *db, struct hf_stats *out);

/* What a tenant has in the tables. */
struct hf_usage {
    char tenant[HF_TENANT_MAX + 1];
    uint64_t memory_bytes; /* what tenant_memory_max_bytes is held against */
    uint64_t records;      /* what tenant_records_max is held against: rows, keys, held holds */
    uint64_t refusals;     /* by its quota, since it came */
};

/* The tenants that use most memory, at most `max` of them, most first. list: out. others: out, may
 * be NULL: the sum of all others. Returns how many are in `list`. A store in PostgreSQL has no
 * tables in memory: 0. */
HF_API size_t hf_usage(struct hf_db *db, struct hf_usage *list, size_t max,
                       struct hf_usage *others);
/* The same of one tenant. */
HF_API void hf_usage_of(struct hf_db *db, struct hf_bytes tenant, struct hf_usage *out);

/* Library version, as HF_VERSION. Static. */
HF_API const char *hf_version(void);

#ifdef __cplusplus
}
#endif
#endif

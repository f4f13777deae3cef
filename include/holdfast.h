/* holdfast.h: retry-safe writes, embedded.
 *
 * This header is the manual of the library. Read it top to bottom once and you can use all of it.
 *
 * Networks lose answers, people click twice, queues deliver again. With Holdfast, a program can
 * receive the same request twice and act once: every change has an idempotency key, and the key,
 * the change and the answer are written in one commit. A retry with the same key gets the first
 * answer, byte for byte, and nothing happens a second time.
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
 *   borrowed   you keep it, and must not change it until the call returns (for hf_submit: until the
 *              callback has run).
 *   owned      it becomes yours, and the contract names the function that frees it.
 *   out        you provide the space, the call fills it.
 *
 * Caveats, up front.
 *   - One process at a time has a directory open. A second one is refused; the error names the
 *     first.
 *   - An answer is given only when everything that it depends on is on disk. A failed fdatasync
 *     stops the process (hf_options.on_fatal); it is never retried or ignored.
 *   - Time is milliseconds since 1970-01-01 UTC. Engine time never runs back: when the wall clock
 *     is set back, engine time stands still until the wall clock has caught up. When the wall clock
 *     jumps ahead and the boot clock does not confirm it, the jump is ignored for 60 s.
 *   - Do not call into the library from inside an hf_apply function. Inside a callback of
 *     hf_submit, only hf_submit may be called.
 *   - Do not use a database handle in a child after fork. */
/* The tables of this file are formatted by hand. */
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

/* ---- Limits. Each is checked before any work; above one, the status is HF_INVALID_REQUEST.
 * ---- */

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
#define HF_SEQUENCE_WINDOW 256    /* how many numbers of a client are remembered */
#define HF_SEQUENCE_AHEAD_MAX 1000000 /* how far a number may be above the client's highest */
#define HF_MATCH_MAX 4            /* steps of a guard's match rule */
#define HF_WHY_MAX 1024           /* bytes of hf_invalid.why; a longer one is left out */
#define HF_GROUP_MAX 8192         /* requests of one hf_do_many */

/* ---- Bytes and time ---- */

/* Borrowed bytes: no NUL at the end, and NULs may be inside. */
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

/* Results, responses, errors and plain registers are opaque bytes. To the library, two of them are
 * the same if they are equal byte for byte. The server, the command line and holdfast.json in SQL
 * store a JSON string as its bytes, and all other JSON as HF_STORED_JSON, the SHA-256 of its
 * canonical form (RFC 8785), and its text without white space. Two such values are the same if
 * their first HF_STORED_HEAD bytes are: the order of members, white space and 1 for 1.0 do not
 * count. A program that stores JSON text as plain bytes brings it into one form first. */
#define HF_STORED_JSON "\0j"
#define HF_STORED_HEAD 34

/* Milliseconds since 1970-01-01T00:00:00Z. */
typedef int64_t hf_time;

/* ---- Status ----
 * Four kinds; hf_status_kind tells which.
 *   ok             done (or: this is the answer).
 *   refusal        an answer by the rules. With a key, it is stored like a success.
 *   fault          nothing happened and nothing was stored: retry.
 *   indeterminate  it may have happened. Retry with the same key to find out.
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
    HF_REFUSED = 13, /* an hf_apply function refused; its result is the answer */
    /* faults */
    /* out of disk space, a limit or quota is reached (hf_answer.limit), the store is closing */
    HF_STORAGE_FAILURE = 32,
    HF_NO_MEMORY = 33,
    HF_MISUSE = 34,          /* a call that this header forbids */
    HF_STORE_BUSY = 35,      /* hf_open: another process has the directory */
    HF_STORE_DAMAGED = 36,   /* hf_open: the journal is damaged, not only cut short */
    HF_STORE_NEWER = 37,     /* hf_open: the store has a newer format than this program knows */
    HF_STORE_ABSENT = 38,    /* hf_open with no_create: there is no store */
    /* indeterminate */
    HF_INDETERMINATE = 64
};

enum hf_status_kind { HF_KIND_OK, HF_KIND_REFUSAL, HF_KIND_FAULT, HF_KIND_INDETERMINATE };

HF_API enum hf_status_kind hf_status_kind(enum hf_status status);

/* The code in every interface, such as "token-collision". Static. */
HF_API const char *hf_status_code(enum hf_status status);

/* The error of hf_open and other calls without a record as answer. text: what is wrong, where, and
 * what to do. */
struct hf_error {
    enum hf_status status;
    char text[512];
};

/* ---- Records ---- */

#define HF_ID_SIZE 27             /* a hold's id: 26 characters and a NUL */
#define HF_DIGEST_SIZE 32
#define HF_DIGEST_NAME "sha256/1"

/* A hold gives one unit of a resource to one requester for a limited time, and ends exactly once.
 *
 *   HELD ──confirm──▶ CONFIRMED
 *     ├───release──▶ RELEASED
 *     └───expire───▶ EXPIRED */
enum hf_hold_state { HF_HELD = 1, HF_CONFIRMED = 2, HF_RELEASED = 3, HF_EXPIRED = 4 };

struct hf_hold {
    char id[HF_ID_SIZE];       /* opaque, unique */
    char reverses[HF_ID_SIZE]; /* the confirmed hold that this record reverses, or "" */
    char reacquires[HF_ID_SIZE]; /* the expired hold in whose place this one is, or "" */
    uint64_t ordinal;          /* 1, 2, 3 ... in the order of placing, over all tenants */
    uint64_t previous;         /* ordinal of the previous hold on the same resource, or 0 */
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
    bool require_fence; /* a hold without a fence is HF_STALE_FENCE */
    uint64_t fence;  /* the highest fence that a hold on it has used, or 0 */
    uint64_t newest; /* ordinal of the newest hold on it, or 0 */
    hf_time created_at;
};

/* A guard answers "was this identity recorded within the window?". The steps of `match` are applied
 * to an identity, in order, before it is compared. HF_MATCH_HASH must be the last; then only a
 * SHA-256 of the identity is stored. */
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

/* One recorded identity: seen while now < expires_at (= recorded_at + the window at that time). */
struct hf_entry {
    struct hf_bytes tenant, guard;
    struct hf_bytes identity; /* as compared: after the match rule; 32 raw bytes if hashed */
    struct hf_bytes result;
    bool has_result;
    hf_time recorded_at, expires_at;
};

/* The answer of check, record and admit. If unknown, the times are 0 and the result is empty: not
 * seen, or seen only because a closed guard could not be read. For record, `seen` says whether the
 * identity was already recorded. */
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
 *              └ ─ abandon, or lease ran out ─ ▶ UNKNOWN (shown, never stored) ┘
 *
 * If the lease runs out before the claim is settled, the outcome is unknown. A worker that does not
 * know what happened says so with abandon, which ends the lease at once. The holder of the current
 * fence may still complete, fail or heartbeat: that is how an operator or a program settles the
 * claim. A settled claim is remembered for its retention, and then the key is new: "once" is a
 * promise until then. An unsettled claim is never removed. */
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
    uint64_t fence; /* rises with each begin of a key, for ever */
    int64_t lease_ms;
    int64_t retention_ms;                /* 0: the idempotency window when it is settled */
    hf_time begun_at, lease_expires_at;  /* UNKNOWN: it has been so since lease_expires_at */
    hf_time settled_at, expires_at;      /* 0 until settled */
    struct hf_bytes response;            /* of complete; the error of fail */
};

/* A lease grants authority over a name, with a fence that only rises. */
struct hf_lease {
    struct hf_bytes tenant, name, holder;
    uint64_t fence;
    int64_t ttl_ms; /* as granted or last renewed */
    hf_time granted_at, expires_at;
    hf_time released_at; /* 0 unless released */
};

/* A register: a named value, written under a fence or a version check, or merged by its type. */
enum hf_register_type {
    HF_TYPE_PLAIN = 1,   /* opaque bytes, by HF_WRITE */
    HF_TYPE_MAX = 2,     /* number */
    HF_TYPE_MIN = 3,     /* number */
    HF_TYPE_OR = 4,      /* flag */
    HF_TYPE_UNION = 5,   /* items[].name: a set that only grows */
    HF_TYPE_LWW = 6,     /* timestamp, node, bytes: greatest (timestamp, node, bytes) wins */
    HF_TYPE_VECTOR = 7,  /* items[].name and .up: version vector, entrywise maximum */
    HF_TYPE_COUNTER = 8, /* the same; its total is the sum of all .up: a counter that only grows */
    HF_TYPE_UPDOWN = 9,  /* items[].name, .up and .down; its total is the sum of up - down */
    /* only in the answer of HF_DELETE_REGISTER: the value is deleted. number: the time at which its
     * version and fence are forgotten; INT64_MAX: never */
    HF_TYPE_DELETED = 10
};

struct hf_item {
    struct hf_bytes name; /* 1 .. HF_NAME_MAX bytes, each name once */
    uint64_t up, down;    /* at most INT64_MAX each */
};

struct hf_value {
    enum hf_register_type type;
    int64_t number;     /* MAX, MIN; in an answer also the total of COUNTER and UPDOWN */
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
    uint64_t version; /* 1, 2, 3 ..., one more with each change and with its deletion */
    uint64_t fence;   /* the highest fence that a write has used, or 0 */
    bool require_fence; /* a write or deletion without a fence is HF_STALE_FENCE */
    hf_time changed_at;
};

/* A row of the outbox: a message that was committed together with its effect. */
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
    /* K write (no value) -> register, of the type HF_TYPE_DELETED. Its memory is freed except for
     * its name, version and highest fence. These are kept for one idempotency window, and for ever
     * if it has a fence: stale writers stay refused, and the versions continue if the register is
     * created again */
    HF_DELETE_REGISTER = 21,
    /* K lease (name, and the fence if it is held) -> lease, its last state; HF_LEASE_HELD if it is
     * held and no fence was given */
    HF_DELETE_LEASE = 22,
    HF_ABANDON = 23,      /*    settle       -> claim, UNKNOWN; .key is the claim's key */
    /* K hold -> hold. HF_CONFIRM, also if the hold's window has elapsed: if a unit is free, a new
     * hold is placed and confirmed in the same commit, and is the answer (`reacquires`); else
     * HF_WINDOW_ELAPSED with `refund` */
    HF_CONFIRM_LATE = 24,
    HF_SWEEP = 32,        /*    not for requests: the store expired an overdue hold */
    HF_CONFIGURE = 33,    /*    not for requests: the store was opened with another configuration */
    HF_GET_HOLD = 64,     /*    hold         -> hold */
    HF_GET_RESOURCE = 65, /*    get          -> resource */
    HF_GET_GUARD = 66,    /*    get          -> guard */
    HF_GET_CLAIM = 67,    /*    .key         -> claim */
    HF_GET_LEASE = 68,    /*    get          -> lease */
    HF_GET_REGISTER = 69, /*    get          -> register */
    /* .key, or .client and .sequence -> the record of the key's first answer, and hf_result.token.
     * A number that was not used: HF_NOT_KNOWN; one that is too low: HF_WINDOW_ELAPSED */
    HF_GET_TOKEN = 70,
    HF_GET_VALUE = 71     /*    get          -> value, of the application key space */
};

/* The action's name in every interface, such as "place_hold". Static; "unknown" for other
 * numbers. */
HF_API const char *hf_action_name(enum hf_action action);

struct hf_tx;

/* The caller's function of HF_APPLY. Runs at most once for a key: its writes through `tx` commit
 * together with the key, or not at all. It may run on any thread that is in the library, must be
 * quick, must not block and must not call the library except through hf_tx_*.
 * Return HF_OK: the effects and the result are committed and stored.
 * Return HF_REFUSED: the effects are rolled back, and the result is stored as the text of the
 * refusal.
 * Return anything else: nothing happened, nothing is stored, and hf_do returns that status (only
 * faults, HF_STORAGE_FAILURE and up, are allowed here; others become HF_MISUSE). */
typedef enum hf_status hf_apply_fn(struct hf_tx *tx, void *arg);

/* For a front end that could read a client's request, but not all of its parameters: one is
 * missing, or has a value that struct hf_request cannot hold. The answer is HF_INVALID_REQUEST.
 * With a key it is stored like every refusal: the same request again is a replay, another one a
 * collision. The server uses this for JSON. Set the other parameters as always: the key is bound to
 * them too. */
struct hf_flaw {
    const char *name;     /* of the parameter, in the digest: "requester", "duration_ms" ... */
    struct hf_bytes sent; /* what the client sent, in a canonical form; empty: nothing */
};

struct hf_invalid {
    const struct hf_flaw *flaws; /* sorted by name, each name once */
    size_t count;
    /* At most HF_WHY_MAX bytes: what is wrong, for the client. Stored with the key, and in the
     * answer (HF_RECORD_VALUE) */
    struct hf_bytes why;
};

/* From now on, must what takes a fence carry one? Without one, an old writer that never asked for a
 * fence would pass. */
enum hf_require { HF_REQUIRE_UNCHANGED = 0, HF_REQUIRED = 1, HF_NOT_REQUIRED = 2 };

/* One request. Zero is the default of every member; set `action`, `key` if needed, and the member
 * of the union that the list above names. Everything is borrowed. */
struct hf_request {
    enum hf_action action;
    struct hf_bytes tenant;
    struct hf_bytes key; /* the idempotency key: opaque, compared byte for byte */

    /* Instead of `key`, for clients that number their operations 1, 2, 3 ...: far cheaper than a
     * record for each. A number within HF_SEQUENCE_WINDOW of the highest works like a key: a retry
     * gets the first answer. A lower number is always HF_WINDOW_ELAPSED, and does nothing. A number
     * more than HF_SEQUENCE_AHEAD_MAX above the highest (0 for a new client) is HF_INVALID_REQUEST,
     * and is not remembered: one wrong number must not make all others too old. */
    struct hf_bytes client;
    uint64_t sequence;

    const struct hf_invalid *invalid; /* NULL: all parameters are here */

    union {
        struct {
            struct hf_bytes resource, requester;
            int64_t duration_ms;
            /* 0: none. Otherwise HF_STALE_FENCE unless it is above the resource's fence */
            uint64_t fence;
        } place_hold;
        struct {
            struct hf_bytes id;
        } hold;
        struct {
            struct hf_bytes name;
            uint32_t capacity; /* 0: unchanged (1 if new). Never below the units taken */
            enum { HF_LEAVE = 0, HF_SET_OPEN = 1, HF_SET_CLOSED = 2 } open;
            enum hf_require require_fence; /* of holds; new: not required */
        } set_resource;
        struct {
            struct hf_bytes name;
            int64_t window_ms;
            enum hf_match match[HF_MATCH_MAX];
            uint32_t match_count;
            enum hf_unavailable on_unavailable;
            bool volatile_only; /* true: identities are only in memory (durable: no) */
            /* true: change `match` also while identities are under guard. They stay in the form
             * that the old rule gave them, so a duplicate of one may not be recognised. Without it:
             * HF_WINDOW_NOT_ELAPSED, with the guard as it is */
            bool force;
        } set_guard;
        struct {
            struct hf_bytes guard, identity, result;
            bool has_result;
        } identity;
        struct {
            struct hf_bytes payload;                  /* hashed to the fingerprint, unless ... */
            const uint8_t *fingerprint;               /* ... HF_DIGEST_SIZE bytes are given here */
            int64_t lease_ms;                         /* 0: 60 s */
            int64_t retention_ms;                     /* 0: the idempotency window */
            enum hf_abandon on_abandon;
        } begin;
        struct {
            uint64_t fence;
            struct hf_bytes response; /* HF_COMPLETE: the response; HF_FAIL: the error */
            bool retryable;           /* HF_FAIL */
            int64_t lease_ms;         /* HF_HEARTBEAT; 0: unchanged */
        } settle;
        struct {
            struct hf_bytes name, holder; /* holder: HF_GRANT */
            int64_t ttl_ms;               /* HF_GRANT, HF_RENEW (0: unchanged) */
            /* HF_RENEW, HF_RETURN; HF_DELETE_LEASE: 0 unless it is held */
            uint64_t fence;
        } lease;
        struct {
            struct hf_bytes name, value;
            /* 0: none. Otherwise HF_STALE_FENCE unless it is above the highest fence */
            uint64_t fence;
            bool has_if_version; /* HF_VERSION_MISMATCH unless the register has this version; */
            uint64_t if_version; /* 0: unless it does not exist */
            /* HF_WRITE: of the writes and deletions after this one; new: not required. Merges need
             * none */
            enum hf_require require_fence;
        } write;
        struct {
            struct hf_bytes name;
            const struct hf_value *value;
        } merge;
        struct {
            struct hf_bytes name;    /* the kind of effect; the key is bound to it */
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

/* The limit that caused an HF_STORAGE_FAILURE. At a memory limit and at a quota, endings are still
 * accepted: confirm, release and expire of a held hold, complete and fail of a claim (with a
 * response of up to 1 KiB; longer ones, reversals, and late confirms that place a new hold, while
 * their reserve lasts, a sixteenth of the limit), abandon, heartbeat, renew and return, and the
 * deletion of registers and leases. On a full disk they are accepted while their reserve at the end
 * of the last segment lasts. */
enum hf_limit {
    HF_LIMIT_NONE = 0,
    HF_LIMIT_DISK = 1,           /* no disk space for the next segment of the journal */
    HF_LIMIT_MEMORY = 2,         /* hf_options.memory_max_bytes, for all tenants together */
    HF_LIMIT_TENANT_MEMORY = 3,  /* hf_options.tenant_memory_max_bytes */
    HF_LIMIT_TENANT_RECORDS = 4, /* hf_options.tenant_records_max */
    HF_LIMIT_DISK_QUOTA = 5,     /* the file system's quota of the user */
    HF_LIMIT_FILE_SIZE = 6,      /* the process's limit of the size of a file */
    HF_LIMIT_FILES = 7           /* the limit of open files, of the process or the system */
};

/* What failed, with HF_STORAGE_FAILURE that came from no limit. The notes of the store (on_note)
 * have the details: files, places, and the database's messages. */
enum hf_fault {
    HF_FAULT_NONE = 0,
    HF_FAULT_DISK = 1,       /* the next segment of the journal cannot be written: `error` */
    HF_FAULT_UNREADABLE = 2, /* a record that the request needs cannot be read, or is damaged */
    HF_FAULT_MEMORY = 3,     /* the process is out of memory */
    HF_FAULT_TOO_LARGE = 4,  /* the record is larger than a segment of the journal can be */
    HF_FAULT_STOPPED = 5,    /* the store failed before, and accepts nothing more */
    /* of a store in a database */
    HF_FAULT_DATABASE_AWAY = 6,    /* it cannot be reached */
    HF_FAULT_DATABASE_REFUSED = 7, /* it refused the connection or the change: `sqlstate` */
    HF_FAULT_LOCKED = 8,           /* another transaction keeps a row locked: lock timeout */
    HF_FAULT_CONFLICTS = 9,        /* others changed the same rows first, again and again */
    HF_FAULT_STANDBY = 10          /* the synchronous standbys have not confirmed what was read */
};

struct hf_cause {
    enum hf_fault fault;
    int error;        /* HF_FAULT_DISK: an errno */
    char sqlstate[6]; /* HF_FAULT_DATABASE_REFUSED: the SQLSTATE, or "" */
};

/* The answer to a request. `kind` names the member that is set. Most refusals have none; but
 * invalid-request has the text of hf_request.invalid, if there is one, and
 * in-progress, outcome-unknown and a fence that is not the newest have the claim (or the lease),
 * and a refused merge has the register, in their current state. */
struct hf_answer {
    enum hf_status status;
    enum hf_limit limit;   /* with HF_STORAGE_FAILURE, if it came from a limit */
    struct hf_cause cause; /* with HF_STORAGE_FAILURE, if it did not */
    /* HF_CONFIRM_LATE, with HF_WINDOW_ELAPSED: no unit is free, so give the money back */
    bool refund;
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

/* The record of a key. Filled for every call with a key that was stored. */
struct hf_token {
    enum hf_action action;
    enum hf_status status; /* of the first answer */
    uint8_t digest[HF_DIGEST_SIZE];
    hf_time recorded_at, expires_at;
};

/* The result of a call. Start with HF_RESULT_INIT; each call that fills it frees its previous
 * content. All bytes in `answer` live inside the result until hf_result_clear or the next call with
 * it. Do not copy a result by assignment while it has an answer (it points into itself). */
#define HF_RESULT_INLINE 448
struct hf_result {
    struct hf_answer answer;
    struct hf_token token;
    bool replayed;    /* this is a replay of the first answer */
    hf_time now;      /* engine time of the decision */
    void *heap;       /* private */
    unsigned char room[HF_RESULT_INLINE]; /* private */
};
#define HF_RESULT_INIT { .heap = NULL }

HF_API void hf_result_clear(struct hf_result *result);

/* Why the request was not HF_OK, and what to do, in one or two sentences: the `detail` that a server
 * answers. text: gets it with a NUL, cut to `size`. Returns its whole length without the NUL; 0 for
 * HF_OK. request: the one that `result` answers. */
HF_API size_t hf_explain(const struct hf_request *request, const struct hf_result *result,
                         char *text, size_t size);

/* ---- Opening and closing ---- */

struct hf_io; /* files, time and randomness: see src/store/io.h; NULL is the operating system */

enum hf_registry { HF_REGISTRY_KEEP = 0, HF_REGISTRY_OPEN = 1, HF_REGISTRY_STRICT = 2 };

/* The first three are the store's configuration: each change is recorded in the journal, and 0
 * leaves a value unchanged. */
struct hf_options {
    /* new stores: 24 hours. A key keeps the window of its first use */
    int64_t idempotency_window_ms;
    uint32_t token_max_length;     /* new stores: 256 bytes */
    /* new stores: open. Strict: a hold on a resource that was never set is refused */
    enum hf_registry registry;
    bool no_create;                /* true: HF_STORE_ABSENT instead of creating a store */
    /* 0: no limit. At the limit, new keys and rows are HF_STORAGE_FAILURE (see enum hf_limit). In
     * ":memory:" the journal counts too, which only grows: endings are accepted above the limit */
    uint64_t memory_max_bytes;
    /* 0: no limit. The same for the rows, keys and held holds of each tenant */
    uint64_t tenant_memory_max_bytes;
    /* 0: no limit. The same for the number of a tenant's rows, live keys and held holds; without
     * the remains of deleted registers, which only memory limits */
    uint64_t tenant_records_max;
    /* 0: 64 MiB. The largest size of a journal segment: a multiple of 64 KiB. A request that does
     * not fit into one is HF_STORAGE_FAILURE */
    uint64_t segment_max_bytes;
    uint64_t snapshot_every_bytes; /* 0: 256 MiB. Bytes of journal between two snapshots */
    bool no_background;            /* true: start no thread; call hf_maintain yourself */
    /* true: do not check the journal before the newest snapshot, as hf_maintain does otherwise; for
     * programs that open a store for one call */
    bool no_verify;
    /* true: only hf_flush commits submitted operations, on the caller's thread */
    bool no_committer;
    bool keep_plain;               /* true: do not compress old segments */
    /* NULL: the journal in the directory `path`. Otherwise a libpq connection string: the store is
     * in that database, shared with every other process that opens it, and `path` is ignored. Of
     * the members above, only the first three and no_create, no_background and no_committer are
     * then used */
    const char *postgres;
    /* how to name this process to another one that finds the directory in use; NULL: by its pid */
    const char *holder;
    /* NULL: the operating system; with PostgreSQL, the clock is the database's */
    const struct hf_io *io;
    /* Called once when the store cannot continue (a write or fdatasync of the journal failed).
     * NULL: the sentence goes to stderr and the process exits with status 3. If it returns, every
     * waiting call answers HF_INDETERMINATE and every later call HF_STORAGE_FAILURE. Must not call
     * the library. */
    void (*on_fatal)(void *arg, const char *sentence);
    /* Called with a line for the operator; may be NULL. level: 0 info, 1 warning. Must not call the
     * library. */
    void (*on_note)(void *arg, int level, const char *line);
    /* Called with the progress of a long recovery, from 0 to total bytes; may be NULL. */
    void (*on_progress)(void *arg, uint64_t done, uint64_t total);
    /* Called when a claim has become unknown because its lease ended, within a second, and after
     * the commit of what ended it. claim: borrowed. A directory: not for claims that were unknown
     * when it was opened. A database: for every claim once, in one of the processes that share it.
     * May be NULL. Must not call the library. */
    void (*on_unknown)(void *arg, const struct hf_claim *claim);
    void *arg; /* borrowed, passed to the four above */
};

struct hf_db;

/* Open the store in directory `path`, and create it if absent; ":memory:" stores nothing on disk.
 * path, options: borrowed. db: out, owned, free with hf_close. why: out, may be NULL. HF_OK, or
 * HF_INVALID_REQUEST (options), HF_STORE_BUSY, HF_STORE_DAMAGED, HF_STORE_NEWER, HF_STORE_ABSENT,
 * HF_STORAGE_FAILURE, HF_NO_MEMORY; then *db is NULL and nothing was changed, except that a torn
 * batch (never acknowledged) is removed from the journal's end. HF_INDETERMINATE, only with a
 * database: *db is NULL, and the schema or the configuration may or may not be committed. The
 * library maps its files and installs a handler for SIGBUS, so that an unreadable sector is
 * HF_STORAGE_FAILURE; any other SIGBUS goes to the previous handler. A thread that calls the
 * library must not block SIGBUS: otherwise the system ends the process. */
HF_API HF_MUST_USE enum hf_status hf_open(const char *path, const struct hf_options *options,
                                          struct hf_db **db, struct hf_error *why);

/* Finish the operations in progress, stop the threads, unlock the directory. No call may be running
 * or come later. NULL is allowed. */
HF_API void hf_close(struct hf_db *db);

/* ---- Requests ---- */

/* Decide `request`, make it durable, answer. Blocks until everything that the answer depends on is
 * on disk. Thread-safe: threads that wait at the same time share one commit. Returns the answer's
 * status (result->answer.status is the same; but for HF_GET_TOKEN of a known key, it returns HF_OK,
 * and the answer has the status of the first call). result may be NULL. */
HF_API HF_MUST_USE enum hf_status hf_do(struct hf_db *db, const struct hf_request *request,
                                        struct hf_result *result);

/* The same for `count` independent requests, decided in order, with one wait for all. results: out,
 * `count` of them, may be NULL. Returns HF_OK when all were answered (check each), HF_MISUSE for
 * more than HF_GROUP_MAX. */
HF_API HF_MUST_USE enum hf_status hf_do_many(struct hf_db *db, const struct hf_request *requests,
                                             struct hf_result *results, size_t count);

/* An asynchronous request. You own it; it must not move until its callback has run. */
struct hf_op {
    const struct hf_request *request; /* borrowed until the callback */
    struct hf_result *result;         /* borrowed until the callback, may be NULL */
    void (*done)(struct hf_op *op, enum hf_status status);
    void *arg;           /* yours */
    /* 0: any size. A longer answer is replaced by HF_INDETERMINATE: the request is decided, and
     * stored if it has a key; retry it alone. A longer refusal comes without its record */
    size_t answer_max;
    /* NULL, or any pointer: operations of a tenant with the same order key are decided in the order
     * of submission, also on PostgreSQL, where other operations may overtake each other */
    const void *order_key;
    struct hf_op *next;  /* private until the callback; yours after it */
    uint64_t needs;      /* private */
    enum hf_status status; /* private */
};

/* Decide the linked operations first, first->next, ... now, and call `done` of each when its answer
 * may be shown. `done` runs exactly once for each, on any thread in the library, perhaps before
 * hf_submit returns. Answers that wait for the disk come in the order of submission; an answer that
 * need not wait may come before them. Blocks only while the current batch is full. */
HF_API void hf_submit(struct hf_db *db, struct hf_op *first);

/* Write and sync the submitted operations and run their callbacks, on this thread. Returns when
 * everything that was submitted before the call is answered. Without no_background and no_committer
 * in hf_options, a background thread does this soon anyway. */
HF_API void hf_flush(struct hf_db *db);

/* Wait until everything that was decided before the call, by any thread, is on disk: for programs
 * that read the store's files, or its tables, without the library. With a database it also waits
 * for the synchronous standbys. HF_OK or HF_INDETERMINATE. */
HF_API HF_MUST_USE enum hf_status hf_barrier(struct hf_db *db);

/* For programs that read a database's tables during a possible failover. hf_timeline: the newest
 * timeline that the library has seen, which rises when a standby is promoted; 0: there is none.
 * hf_barrier_on: as hf_barrier, but HF_INDETERMINATE unless the standbys have everything on this
 * timeline: data that was read on another primary may be lost. */
HF_API uint32_t hf_timeline(struct hf_db *db);
HF_API HF_MUST_USE enum hf_status hf_barrier_on(struct hf_db *db, uint32_t timeline);

/* The newest durable batch: what an auditor notes outside of the store. A later audit must find its
 * hash (holdfast audit --expect-head). */
struct hf_head {
    uint64_t position; /* after it; with a database, the number of the newest entry */
    uint8_t hash[HF_DIGEST_SIZE];
    hf_time at;
};

/* out: filled if HF_OK. HF_NOT_KNOWN: no batch was written yet; or a fault. */
HF_API HF_MUST_USE enum hf_status hf_head(struct hf_db *db, struct hf_head *out);

/* One bounded step of the background work: expire overdue holds, free expired keys, prepare
 * segments, write a part of a snapshot, compress. Returns true while there is more to do. */
HF_API bool hf_maintain(struct hf_db *db);

/* ---- Inside an hf_apply function ---- Keys and values are copied. All of these see the earlier
 * writes of the same function. HF_INVALID_REQUEST above a limit; the function should then return
 * HF_REFUSED or a fault, and whatever it returns, none of its writes are committed. */

/* value: out, borrowed until the function returns. HF_NOT_KNOWN if there is none. */
HF_API HF_MUST_USE enum hf_status hf_tx_get(struct hf_tx *tx, struct hf_bytes key,
                                            struct hf_bytes *value);
HF_API HF_MUST_USE enum hf_status hf_tx_put(struct hf_tx *tx, struct hf_bytes key,
                                            struct hf_bytes value);
HF_API HF_MUST_USE enum hf_status hf_tx_delete(struct hf_tx *tx, struct hf_bytes key);
/* Add a row to the outbox, to be delivered with this apply's key ("client/sequence" for a numbered
 * client). */
HF_API HF_MUST_USE enum hf_status hf_tx_enqueue(struct hf_tx *tx, struct hf_bytes topic,
                                                struct hf_bytes payload);
/* Set the answer of hf_do, now and at each retry (HF_RECORD_VALUE). */
HF_API HF_MUST_USE enum hf_status hf_tx_result(struct hf_tx *tx, struct hf_bytes result);
/* The engine time of this request. */
HF_API hf_time hf_tx_now(const struct hf_tx *tx);

/* ---- Lists, newest first ---- Pages are stable during writes and across restarts: a record that
 * existed when the first page was read, and is not removed, appears once. A claim that begins again
 * meanwhile is the newest then: it is on no later page, as new records are not. Identities that are only
 * in memory (volatile_only) come before those of the same guard that are on disk. */

enum hf_list_kind {
    HF_LIST_HOLDS = 1,
    HF_LIST_RESOURCES = 2,
    HF_LIST_GUARDS = 3,
    HF_LIST_ENTRIES = 4, /* of the guard `name`: identities that are seen now */
    HF_LIST_OUTBOX = 5,
    HF_LIST_CLAIMS = 6   /* newest begin first; with their responses */
};

struct hf_query {
    enum hf_list_kind kind;
    struct hf_bytes tenant;
    enum hf_hold_state state;            /* holds: 0 any */
    struct hf_bytes resource, requester; /* holds: empty any */
    hf_time from, to;                    /* holds: placed_at in [from, to), 0 open;
                                          * claims: begun_at */
    struct hf_bytes name;                /* entries: the guard */
    enum hf_claim_state claim_state;     /* claims: 0 any */
    /* claims that are STARTED or UNKNOWN: of every tenant; `tenant` is empty */
    bool all_tenants;
    struct hf_bytes prefix;              /* claims: how the key begins; empty: any */
    uint32_t limit;                      /* 0: 100 */
    /* 0: the start; else a page's next_cursor, of the same tenant */
    uint64_t cursor;
};

struct hf_page {
    size_t count;
    /* opaque; 0: the list is complete. A page may be short or even empty before the end, because a
     * call reads a bounded number of records and returns about 8 MiB at most */
    uint64_t next_cursor;
    union {
        struct hf_hold *holds;
        struct hf_resource *resources;
        struct hf_guard *guards;
        struct hf_entry *entries;
        struct hf_outbox *outbox;
        struct hf_claim *claims;
        void *rows;
    };
    void *heap; /* private */
    struct hf_cause cause; /* after HF_STORAGE_FAILURE */
};

/* page: out, owned, free with hf_page_clear. HF_OK, HF_INVALID_REQUEST, HF_NOT_KNOWN (no such
 * guard) or a fault. */
HF_API HF_MUST_USE enum hf_status hf_list(struct hf_db *db, const struct hf_query *query,
                                          struct hf_page *page);
HF_API void hf_page_clear(struct hf_page *page);

/* ---- Statistics ---- */

#define HF_HISTOGRAM 17

struct hf_stats {
    uint64_t tokens;            /* keys in memory: live ones, and expired ones not yet freed */
    uint64_t holds;             /* ever placed, reversals included */
    uint64_t holds_live;        /* in state held */
    uint64_t resources, guards, entries, claims, registers, outbox, values;
    uint64_t clients;           /* that number their operations */
    /* claims by state; unknown: their lease has ended, noticed up to a second later */
    uint64_t claims_started, claims_unknown, claims_completed, claims_failed, claims_retryable;
    hf_time claims_unknown_since; /* of the one that is unknown for longest; 0: none is */
    uint64_t operations;        /* decided since open */
    uint64_t duplicates;        /* answered from a stored answer since open */
    uint64_t collisions;        /* refused as token-collision since open */
    uint64_t races;             /* duplicates whose first call was not yet durable, and begins of
                                 * a claim in progress */
    uint64_t guard_misses;      /* identities that a full store could not record */
    uint64_t clock_stalls;      /* batches for which the wall clock was behind engine time */
    /* jumps of the wall clock that the boot clock did not confirm */
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
    uint64_t memory_token_bytes; /* of which for keys */
    /* compared with memory_max_bytes: the used part of the tables, and the reserve for endings */
    uint64_t memory_used_bytes;
    uint64_t memory_max_bytes;  /* as in hf_options */
    /* the memory limit is reached: only endings are accepted */
    bool memory_full;
    uint64_t tenants;           /* with rows in the tables */
    /* storage-failure answers since open because of a tenant's quota */
    uint64_t refusals_quota;
    uint64_t snapshots;
    /* how often holds.idx, or a part of it, was wrong and was rebuilt since open */
    uint64_t index_rebuilds;
    /* how often a needed record was damaged or unreadable since open; on PostgreSQL, how often a
     * row was found changed by hand */
    uint64_t records_unreadable;
    /* of this open: time, operations replayed after the snapshot */
    uint64_t recovery_ns, recovery_replayed;
    hf_time now;
    /* The background check of the journal before the snapshot that the store was opened with: its
     * size, how much was checked, and whether damage was found. */
    uint64_t verify_bytes, verified_bytes;
    bool journal_damaged;
    /* out of disk space when it was last needed: on the journal's disk, or on the database's */
    bool out_of_space;
    /* the database cannot be reached, or accepts no writes for a reason other than disk space */
    bool database_away;
    bool out_of_files;          /* no descriptor was free when the journal last needed one */
    /* the journal's disk failed for another reason when it was last needed; on_note says why */
    bool storage_failing;
    /* how long commits have waited for the database's synchronous standbys; 0: they do not wait, or
     * for less than four seconds */
    uint64_t standby_silent_ms;
};

HF_API void hf_stats(struct hf_db *db, struct hf_stats *out);

/* What a tenant has in the tables. */
struct hf_usage {
    char tenant[HF_TENANT_MAX + 1];
    uint64_t memory_bytes; /* compared with tenant_memory_max_bytes */
    uint64_t records;      /* compared with tenant_records_max: rows, keys, held holds */
    uint64_t refusals;     /* because of its quota, since it first appeared */
};

/* The tenants that use the most memory, at most `max`, in descending order. list: out. others: out,
 * may be NULL: the sum of all others. Returns the number in `list`; 0 for a store in PostgreSQL,
 * which has no tables in memory. */
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

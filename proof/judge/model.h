/* model.h: what the judge believes is in the store, and how it changes its mind.
 *
 * Everything is a record: found by kind, tenant and one or two names, and never removed. A record
 * that is not `present` is one that the store does not have, so that finding a record and making
 * one are the same. Only bodies change, and only through judge_change, which first puts the old
 * body on a stack: going back to an earlier moment is taking bodies off that stack. The memory of a
 * judge is freed with the judge alone. */
#ifndef HF_PROOF_JUDGE_MODEL_H
#define HF_PROOF_JUDGE_MODEL_H

#include "holdfast.h"
#include "judge/judge.h"

#define JUDGE_WORDS 1024 /* bytes of an objection */

struct judge_doubt;
struct judge_record;

/* ---- What was told ---- */

/* What an operation did that its answer does not tell, but depends on what was there: noted when it
 * is judged, so that it can be carried out again when something else is there. */
struct judge_note {
    uint64_t first_row;         /* the number of its first row of the outbox */
    struct judge_record *entry; /* that it recorded, or NULL */
    hf_time expires_at;         /* of the entry */
    bool kept;                  /* the guard was durable */
    bool recorded;              /* there is something to carry out, be it in memory alone */
    unsigned opened;            /* how often the store had been opened then */
};

/* An operation as it was decided, with a copy of all its bytes. */
struct judge_op {
    uint64_t number;
    hf_time wall, now;
    unsigned weather;
    struct hf_request request;
    enum hf_status status;
    struct hf_answer answer;
    struct hf_token token;
    bool has_result, replayed;
    struct judge_effect effect; /* runs is 0 unless a function ran */
    struct judge_note note;     /* once it was judged */
    bool shown;
    bool lasting;   /* it changed something that a crash after its answer may not take back */
    bool unsure;    /* nobody can tell whether the store took it, so its answer promises nothing */
    bool lost;      /* a crash took it back, or may have */
    uint64_t saw;   /* the newest operation whose change it saw */
    uint64_t crash; /* the one that put it in doubt */
};

/* ---- What is believed ---- */

enum judge_kind {
    JUDGE_COUNTERS, /* how many holds and rows of the outbox there are */
    JUDGE_KEY,      /* tenant, key: the first call, and the claim */
    JUDGE_CLIENT,   /* tenant, client: the highest number */
    JUDGE_NUMBER,   /* tenant, client, number: the first call */
    JUDGE_HOLD,     /* id */
    JUDGE_RESOURCE, /* tenant, name */
    JUDGE_GUARD,    /* tenant, name */
    JUDGE_ENTRY,    /* tenant, guard, identity as compared */
    JUDGE_LEASE,    /* tenant, name */
    JUDGE_REGISTER, /* tenant, name */
    JUDGE_VALUE,    /* tenant, key of the application */
    JUDGE_OUTBOX,   /* number */
    JUDGE_KINDS
};

struct judge_body {
    bool present;
    uint64_t stamp; /* the operation that changed it last */
    union {
        struct {
            uint64_t holds, outbox;
        } counters;
        struct {
            const struct judge_op *first; /* NULL: no call has the key */
            hf_time recorded_at, expires_at;
            bool claimed;     /* the claim below was begun; perhaps it is forgotten by now */
            uint64_t highest; /* fence that a begin of this key was ever given */
            struct hf_claim claim;
        } key; /* also of JUDGE_NUMBER */
        struct {
            uint64_t highest;
        } client;
        struct {
            struct hf_hold hold;
            bool followed;    /* there is a record that reverses or reacquires it */
            bool ended_about; /* it is known to have expired, between the two times */
            hf_time ended_from, ended_until;
            hf_time held_until; /* an answer showed it held at this time */
            bool overdue;       /* counted among its resource's overdue ones */
            struct judge_record *after,
                *before; /* among those of its resource that are held and not overdue */
        } hold;
        struct {
            struct hf_resource resource; /* its `held` is not used: see live and overdue */
            /* held, and their time has not come: never more than the capacity */
            struct judge_record *live;
            uint32_t live_count;
            /* held when last heard of, and overdue: the sweeper may have had them */
            uint32_t overdue_count;
        } resource;
        struct {
            struct hf_guard guard;
            bool switched; /* it was durable at one time and not at another */
            /* until then it may have seen what the judge's match rules do not know */
            hf_time cloudy_until;
        } guard;
        struct {
            struct hf_entry entry;
            bool maybe;      /* the store may have missed it */
            bool kept;       /* the guard was durable when it was recorded */
            unsigned opened; /* how often the store had been opened then */
        } entry;
        struct hf_lease lease; /* stays when it ran out: its fence is the highest */
        struct hf_register reg;
        struct hf_bytes value;
        struct hf_outbox outbox;
    };
};

struct judge_record {
    enum judge_kind kind;
    struct hf_bytes tenant, name, more;
    uint64_t hash;
    struct judge_record *next; /* of its kind */
    struct judge_doubt *doubt; /* what is not settled about it, or NULL */
    uint64_t doubted_from;     /* the first operation whose change of it is not settled */
    uint64_t saved;            /* the step in which its body went onto the stack last */
    const void *row;           /* of the view that `row_of` names */
    uint64_t row_of;
    uint32_t held, confirmed; /* counted over the rows of that view */
    bool differs;             /* from that view */
    /* the end of a lease that was said to have come, since the store was opened so often, and since
     * this operation changed the claim */
    hf_time lapsed_at;
    uint64_t lapsed_fence, lapsed_stamp;
    unsigned lapsed_opened;
    struct judge_body body;
};

/* ---- The judge ---- */

struct judge_undo {
    struct judge_record *record;
    uint64_t op; /* the operation that changed it */
    struct judge_body body;
};

struct judge_chunk;

struct judge {
    struct judge_rules rules;
    unsigned opened; /* how often */
    hf_time now;     /* engine time may not be before this */
    /* engine time when the store was opened: not before, not after; the latter is known when the
     * store has first told the time */
    hf_time opened_from, opened_until;
    bool down;      /* between a crash and the recovery */
    uint64_t floor; /* this operation and those before it are on disk */
    uint64_t step;  /* counts steps of the model */
    uint64_t views;
    uint64_t timed, latest_call; /* the newest operation that was timed; the latest call up to it */
    struct judge_count count;
    char verdict[JUDGE_WORDS]; /* "" while there is none */

    struct judge_chunk *chunks;
    struct judge_record **slots; /* a table of slot_count, a power of two */
    size_t slot_count, record_count;
    struct judge_record *kinds[JUDGE_KINDS];
    struct judge_record *counters;

    struct judge_op **ops; /* ops[n - 1] is operation n */
    size_t op_count, op_room;
    struct judge_undo *undo; /* undo[undo_from .. undo_count) */
    size_t undo_from, undo_count, undo_room;
    struct judge_doubt *doubts;
};

/* Memory that lives as long as the judge. Never NULL. */
void *judge_take(struct judge *j, size_t size);
struct hf_bytes judge_keep(struct judge *j, struct hf_bytes bytes);
/* realloc that aborts without memory. */
void *judge_grow(void *old, size_t size);

/* The record of that name, made if it has to be. */
struct judge_record *judge_find(struct judge *j, enum judge_kind kind, struct hf_bytes tenant,
                                struct hf_bytes name, struct hf_bytes more);
/* Take bodies off the stack until `count` are left. */
void judge_undo_to(struct judge *j, size_t count);
/* Forget how to go back before the floor. */
void judge_undo_trim(struct judge *j);

/* ---- One step: an operation is held against the model, and changes it ---- */

#define JUDGE_TOUCHED 80 /* an apply looks at no more */

struct judge_step {
    struct judge *j;
    const struct judge_op *op;
    hf_time now;
    uint64_t serial;
    /* it was judged before, perhaps under other rules: only carry out what its answer says */
    bool quiet;
    bool bad;     /* objected to; the words are in `why` */
    bool lasting; /* see judge_op */
    bool unsure;  /* see judge_op */
    struct judge_note note;
    uint64_t saw;
    struct judge_doubt *touched[JUDGE_TOUCHED]; /* records in doubt that it looked at */
    size_t touched_count;
    char why[JUDGE_WORDS];
};

/* Run a step. It writes nothing into `op`; what it learned about it is in `s`, and judge_step_note
 * writes it there. */
void judge_step_run(struct judge_step *s, struct judge *j, const struct judge_op *op, bool quiet);
void judge_step_note(const struct judge_step *s, struct judge_op *op);

/* Find a record and note that the answer depends on it. */
struct judge_record *judge_look(struct judge_step *s, enum judge_kind kind, struct hf_bytes name,
                                struct hf_bytes more);
void judge_touch(struct judge_step *s, struct judge_record *record);
/* The same for a record that decides what is looked at, and is not shown itself. */
void judge_touch_only(struct judge_step *s, struct judge_record *record);
/* The body, to be changed by something that lasts. */
struct judge_body *judge_change(struct judge_step *s, struct judge_record *record);
/* The body, to be changed by something that was learned, or that does not last. */
struct judge_body *judge_learn(struct judge_step *s, struct judge_record *record);

__attribute__((format(printf, 2, 3))) void judge_object(struct judge_step *s, const char *format,
                                                        ...);

/* Sets of statuses. */
#define JUDGE_IS(status) (UINT64_C(1) << (status))
/* Object unless the status is in the set. rule: names what is broken. */
bool judge_allow(struct judge_step *s, uint64_t statuses, const char *rule);
/* Object unless the answer has this record. */
bool judge_has(struct judge_step *s, enum hf_record kind);

/* Is it a well-formed name of 1 to HF_NAME_MAX bytes? */
bool judge_name_valid(struct hf_bytes name);

/* ---- The rules, a file each ---- */

void judge_rule_place(struct judge_step *s);
void judge_rule_end(struct judge_step *s); /* confirm, release, expire, reverse */
void judge_rule_confirm_late(struct judge_step *s);
/* Does the operation end, or keep alive, a hold, a claim or a lease that is surely held? */
bool judge_hold_can_end(struct judge_step *s);
bool judge_claim_can_end(struct judge_step *s);
bool judge_lease_can_end(struct judge_step *s);
void judge_rule_delete_register(struct judge_step *s);
void judge_rule_delete_lease(struct judge_step *s);
void judge_rule_set_resource(struct judge_step *s);
void judge_rule_get_hold(struct judge_step *s);
void judge_rule_get_resource(struct judge_step *s);
void judge_rule_set_guard(struct judge_step *s);
void judge_rule_get_guard(struct judge_step *s);
void judge_rule_identity(struct judge_step *s); /* check, record, admit */
void judge_rule_begin(struct judge_step *s);
void judge_rule_settle(struct judge_step *s); /* complete, fail, heartbeat, abandon */
void judge_rule_get_claim(struct judge_step *s);
void judge_rule_grant(struct judge_step *s);
void judge_rule_renew(struct judge_step *s); /* and return */
void judge_rule_get_lease(struct judge_step *s);
void judge_rule_write(struct judge_step *s);
void judge_rule_merge(struct judge_step *s);
void judge_rule_get_register(struct judge_step *s);
void judge_rule_apply(struct judge_step *s);
void judge_rule_get_value(struct judge_step *s);
void judge_rule_get_token(struct judge_step *s);
/* A call that needs a key: answer again, collide, or run `rule` and remember. */
void judge_rule_keyed(struct judge_step *s, void (*rule)(struct judge_step *s));
/* Not all parameters of the request could be read. */
void judge_rule_invalid(struct judge_step *s);
/* Is the answer to this request bound by what was remembered, so that even a full disk must give
 * it? */
bool judge_key_remembered(struct judge_step *s);

/* The claim of a key, if it is remembered at `now`; else NULL. */
const struct hf_claim *judge_claim_alive(const struct judge_record *key, hf_time now);
/* The claim as it is shown at `now`. */
struct hf_claim judge_claim_shown(const struct hf_claim *claim, hf_time now);
bool judge_claim_same(const struct hf_claim *a, const struct hf_claim *b);

/* The identity as it is compared, in `out`. Empty if nothing is left of it. */
enum judge_form {
    JUDGE_FORM_KNOWN,
    JUDGE_FORM_INVALID, /* the rule needs text and this is none, or it is too long or too short */
    JUDGE_FORM_CLOUDY   /* beyond ASCII and Latin-1: the judge does not know */
};
#define JUDGE_FORM_MAX (4 * HF_IDENTITY_MAX)
enum judge_form judge_match(const struct hf_guard *guard, struct hf_bytes identity,
                            unsigned char out[JUDGE_FORM_MAX], size_t *size);
void judge_sha256(const void *data, size_t size, uint8_t out[HF_DIGEST_SIZE]);

/* merge.c: the join of two values of one type. Items are sorted by name. False: past a limit. */
bool judge_join(struct judge *j, const struct hf_value *old, const struct hf_value *value,
                struct hf_value *out);
bool judge_value_valid(const struct hf_value *value);
bool judge_value_same(const struct hf_value *a, const struct hf_value *b);

/* ---- Copies and comparisons ---- */

struct judge_op *judge_op_copy(struct judge *j, const struct hf_request *request,
                               const struct judge_effect *effect, const struct hf_result *result);
/* The same action with the same parameters? */
bool judge_request_same(const struct hf_request *a, const struct hf_request *b);
/* Is it the same value of a register, or the same response? */
bool judge_stored_same(struct hf_bytes a, struct hf_bytes b);
bool judge_answer_same(const struct hf_answer *a, const struct hf_answer *b);
bool judge_hold_same(const struct hf_hold *a, const struct hf_hold *b);
bool judge_guard_same(const struct hf_guard *a, const struct hf_guard *b);
const char *judge_action_name(enum hf_action action);
const char *judge_status_name(enum hf_status status);

/* ---- Views and doubts ---- */

/* The newest time that is known to be on disk: engine time cannot be before it. */
hf_time judge_time_on_disk(const struct judge *j);

/* Engine time may be less than before the crash: holds that are no longer overdue are live
 * again. */
void judge_hold_revive(struct judge_step *s);
/* Does the store have this entry, whatever the time? */
enum judge_there { JUDGE_ABSENT, JUDGE_MAYBE, JUDGE_THERE };
enum judge_there judge_entry_there(struct judge *j, const struct judge_record *entry,
                                   const struct judge_record *guard);
/* What a row of the view says about a hold, a resource ... is taken over. */
void judge_hold_learn(struct judge_step *s, struct judge_record *record,
                      const struct hf_hold *shown);
/* NULL, or how the hold cannot be what the model has. */
const char *judge_hold_differs(const struct judge_record *record, const struct hf_hold *shown,
                               hf_time now);
const char *judge_resource_differs(const struct judge_record *record,
                                   const struct hf_resource *shown, hf_time now);

/* Hang the rows of a view onto the records. False: it contradicts itself, and `why` says how. */
bool judge_view_hang(struct judge *j, const struct judge_view *view, char why[JUDGE_WORDS]);
bool judge_kind_viewed(enum judge_kind kind);
/* Does the record differ from the view that hangs? why: out, may be NULL. */
bool judge_view_differs(struct judge *j, const struct judge_view *view, struct judge_record *record,
                        char why[JUDGE_WORDS]);
/* How many records without doubt differ; the first words in `why`, which may be NULL. */
size_t judge_view_count(struct judge *j, const struct judge_view *view, char why[JUDGE_WORDS]);
/* Take over what the view tells about sweeps and about entries that may have been missed. */
void judge_view_learn(struct judge *j, const struct judge_view *view);

/* Judge the newest operation, whatever is in doubt. */
void judge_doubt_step(struct judge *j, struct judge_op *op);
/* Go back to the floor. */
void judge_doubt_crash(struct judge *j);
/* Find out from the hanging view how many of the operations in doubt have happened. */
void judge_doubt_recover(struct judge *j, const struct judge_view *view);
/* Those alternatives that contradict the hanging view are dropped. False: none is left. */
bool judge_doubt_look(struct judge *j, const struct judge_view *view, char why[JUDGE_WORDS]);
void judge_doubt_free(struct judge *j);

/* Runs of bytes that the judge keeps. */

/* A copy that lives until free() of its data. Aborts without memory: a judge that cannot remember
 * must not pass a verdict. */
struct hf_bytes judge_bytes_copy(struct hf_bytes bytes);
bool judge_bytes_equal(struct hf_bytes a, struct hf_bytes b);

#endif

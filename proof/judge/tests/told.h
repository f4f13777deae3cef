/* told.h: short histories for the judge, with the right answers, so that a test can change one
 * thing and see that the judge minds.
 *
 *     struct op op = place("k", "room", 1, 0);      the first hold, nothing before it on the room
 *     op.r.answer.hold.expires_at++;
 *     tell(&op);
 *     objects("PC6"); */
#ifndef HF_PROOF_JUDGE_TESTS_TOLD_H
#define HF_PROOF_JUDGE_TESTS_TOLD_H

#include "judge/judge.h"
#include "support/test.h"

#define START INT64_C(1000000)
#define WINDOW INT64_C(1000) /* of keys */
#define DURATION INT64_C(100)

struct op {
    struct hf_request q;
    enum hf_status st;
    struct hf_result r;
    struct judge_effect e;
    unsigned weather;
};

static struct judge *j;
static hf_time now, wall; /* wall: the latest that it has said; 0: the same as now */
static struct judge_rules rules;

static int told_setup(void **state)
{
    (void)state;
    j = judge_new();
    now = START;
    wall = 0;
    rules = (struct judge_rules){ .idempotency_window_ms = WINDOW, .token_max_length = 16 };
    judge_opened(j, &rules);
    return 0;
}

static int told_teardown(void **state)
{
    (void)state;
    judge_free(j);
    return 0;
}

#define TOLD(f) cmocka_unit_test_setup_teardown(f, told_setup, told_teardown)

/* ---- Telling ---- */

/* Decided, and not shown yet. */
static inline uint64_t decide(const struct op *op)
{
    return judge_decided(j, wall ? wall : op->r.now, op->weather, &op->q,
                         op->q.action == HF_APPLY ? &op->e : NULL, op->st, &op->r);
}

static inline void show(uint64_t number, const struct op *op)
{
    judge_shown(j, number, op->st, &op->r);
}

/* Decided and shown. */
static inline void tell(const struct op *op)
{
    show(decide(op), op);
}

static inline void agrees(void)
{
    if (judge_verdict(j))
        fail_msg("%s", judge_verdict(j));
}

/* The judge must object, and its words must name this rule. */
static inline void objects(const char *words)
{
    if (!judge_verdict(j))
        fail_msg("the judge should object: %s", words);
    if (!strstr(judge_verdict(j), words))
        fail_msg("the judge should say \"%s\", and says: %s", words, judge_verdict(j));
}

/* Tell it, which must be well so far, and then be objected to. */
static inline void bad(const struct op *op, const char *words)
{
    agrees();
    tell(op);
    objects(words);
}

static inline void good(const struct op *op)
{
    tell(op);
    agrees();
}

/* ---- Right answers ---- */

static inline struct op answer(enum hf_action action, enum hf_status status)
{
    struct op op = { .q = { .action = action }, .st = status };
    op.r.now = now;
    op.r.answer.status = status;
    return op;
}

/* A first call with this key. */
static inline void with_key(struct op *op, const char *key)
{
    op->q.key = hf_str(key);
    op->r.token = (struct hf_token){
        .action = op->q.action, .status = op->st, .recorded_at = now, .expires_at = now + WINDOW
    };
}

/* The same, asked again now, as it should be answered. */
static inline struct op again(const struct op *first)
{
    struct op op = *first;
    op.r.now = now;
    op.r.replayed = true;
    op.e.runs = 0;
    return op;
}

/* A refusal of the same request, with another key. */
static inline struct op refused(const struct op *as, const char *key, enum hf_status status)
{
    struct op op = { .q = as->q, .st = status };
    op.r.now = now;
    op.r.answer.status = status;
    op.r.answer.kind = HF_NO_RECORD;
    with_key(&op, key);
    return op;
}

static inline void id_of(char id[HF_ID_SIZE], uint64_t ordinal)
{
    snprintf(id, HF_ID_SIZE, "%026llu", (unsigned long long)ordinal);
}

static inline struct op place(const char *key, const char *resource, uint64_t ordinal,
                              uint64_t previous)
{
    struct op op = answer(HF_PLACE_HOLD, HF_OK);
    op.q.place_hold.resource = hf_str(resource);
    op.q.place_hold.requester = hf_str("guest");
    op.q.place_hold.duration_ms = DURATION;
    op.r.answer.kind = HF_RECORD_HOLD;
    op.r.answer.hold = (struct hf_hold){ .ordinal = ordinal,
                                         .previous = previous,
                                         .state = HF_HELD,
                                         .tenant = hf_str(""),
                                         .resource = hf_str(resource),
                                         .requester = hf_str("guest"),
                                         .placed_at = now,
                                         .expires_at = now + DURATION };
    id_of(op.r.answer.hold.id, ordinal);
    with_key(&op, key);
    return op;
}

/* confirm, release or expire, of what `placed` has placed. */
static inline struct op finish(const char *key, enum hf_action action, const struct op *placed)
{
    struct op op = answer(action, HF_OK);
    op.q.hold.id = hf_str(placed->r.answer.hold.id);
    op.r.answer.kind = HF_RECORD_HOLD;
    op.r.answer.hold = placed->r.answer.hold;
    op.r.answer.hold.state = action == HF_CONFIRM   ? HF_CONFIRMED
                             : action == HF_RELEASE ? HF_RELEASED
                                                    : HF_EXPIRED;
    op.r.answer.hold.ended_at = now;
    with_key(&op, key);
    return op;
}

static inline struct op reverse(const char *key, const struct op *placed, uint64_t ordinal,
                                uint64_t previous)
{
    struct op op = finish(key, HF_REVERSE, placed);
    struct hf_hold *h = &op.r.answer.hold;
    id_of(h->id, ordinal);
    memcpy(h->reverses, placed->r.answer.hold.id, sizeof h->reverses);
    h->ordinal = ordinal;
    h->previous = previous;
    h->state = HF_RELEASED;
    h->placed_at = now;
    h->expires_at = now + DURATION;
    return op;
}

static inline struct op get_hold(const struct op *placed)
{
    struct op op = answer(HF_GET_HOLD, HF_OK);
    op.q.hold.id = hf_str(placed->r.answer.hold.id);
    op.r.answer.kind = HF_RECORD_HOLD;
    op.r.answer.hold = placed->r.answer.hold;
    return op;
}

static inline struct op set_resource(const char *name, uint32_t capacity)
{
    struct op op = answer(HF_SET_RESOURCE, HF_OK);
    op.q.set_resource.name = hf_str(name);
    op.q.set_resource.capacity = capacity;
    op.r.answer.kind = HF_RECORD_RESOURCE;
    op.r.answer.resource = (struct hf_resource){ .tenant = hf_str(""),
                                                 .name = hf_str(name),
                                                 .capacity = capacity,
                                                 .open = true,
                                                 .created_at = now };
    return op;
}

static inline struct op set_guard(const char *name, int64_t window_ms)
{
    struct op op = answer(HF_SET_GUARD, HF_OK);
    op.q.set_guard.name = hf_str(name);
    op.q.set_guard.window_ms = window_ms;
    op.r.answer.kind = HF_RECORD_GUARD;
    op.r.answer.guard = (struct hf_guard){ .tenant = hf_str(""),
                                           .name = hf_str(name),
                                           .window_ms = window_ms,
                                           .durable = true,
                                           .created_at = now };
    return op;
}

/* check, record or admit; not seen. */
static inline struct op ask(enum hf_action action, const char *guard, const char *identity,
                            const char *result)
{
    struct op op = answer(action, HF_OK);
    op.q.identity.guard = hf_str(guard);
    op.q.identity.identity = hf_str(identity);
    op.q.identity.has_result = result != NULL;
    op.q.identity.result = hf_str(result ? result : "");
    op.r.answer.kind = HF_RECORD_SEEN;
    op.r.answer.seen = (struct hf_seen){ .result = hf_str("") };
    return op;
}

static inline void seen(struct op *op, hf_time recorded_at, hf_time expires_at, const char *result)
{
    op->r.answer.seen = (struct hf_seen){ .seen = true,
                                          .has_result = result != NULL,
                                          .recorded_at = recorded_at,
                                          .expires_at = expires_at,
                                          .result = hf_str(result ? result : "") };
}

static inline struct op write_register(const char *key, const char *name, const char *value,
                                       uint64_t version)
{
    struct op op = answer(HF_WRITE, HF_OK);
    op.q.write.name = hf_str(name);
    op.q.write.value = hf_str(value);
    op.r.answer.kind = HF_RECORD_REGISTER;
    op.r.answer.reg =
        (struct hf_register){ .tenant = hf_str(""),
                              .name = hf_str(name),
                              .value = { .type = HF_TYPE_PLAIN, .bytes = hf_str(value) },
                              .version = version,
                              .changed_at = now };
    with_key(&op, key);
    return op;
}

static inline struct op get_register(const struct op *as)
{
    struct op op = answer(HF_GET_REGISTER, HF_OK);
    op.q.get.name = as->r.answer.reg.name;
    op.r.answer.kind = HF_RECORD_REGISTER;
    op.r.answer.reg = as->r.answer.reg;
    return op;
}

#endif

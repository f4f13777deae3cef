/* hold.c: one unit of one resource, held for one requester, for a bounded time.
 *
 * The sweeper may expire an overdue hold at any moment, and nobody is told. So an overdue hold that
 * was held when last heard of is counted apart, and an answer may show it either way; what an
 * answer showed is then known. */
#include "judge/model.h"

static struct hf_bytes none(void)
{
    return hf_mem("", 0);
}

/* ---- The live ones of a resource ---- */

static void live_add(struct judge_step *s, struct judge_record *resource, struct judge_record *hold)
{
    struct judge_body *r = judge_learn(s, resource), *h = judge_learn(s, hold);
    h->hold.before = NULL;
    h->hold.after = r->resource.live;
    if (r->resource.live)
        judge_learn(s, r->resource.live)->hold.before = hold;
    r->resource.live = hold;
    r->resource.live_count++;
}

static void live_remove(struct judge_step *s, struct judge_record *resource,
                        struct judge_record *hold)
{
    struct judge_body *r = judge_learn(s, resource), *h = judge_learn(s, hold);
    if (h->hold.before)
        judge_learn(s, h->hold.before)->hold.after = h->hold.after;
    else
        r->resource.live = h->hold.after;
    if (h->hold.after)
        judge_learn(s, h->hold.after)->hold.before = h->hold.before;
    h->hold.before = h->hold.after = NULL;
    r->resource.live_count--;
}

/* Time has passed: those of the resource that are overdue by now are counted as such. */
static void age(struct judge_step *s, struct judge_record *resource)
{
    for (struct judge_record *h = resource->body.resource.live, *after; h; h = after) {
        after = h->body.hold.after;
        if (s->now < h->body.hold.hold.expires_at)
            continue;
        live_remove(s, resource, h);
        judge_learn(s, h)->hold.overdue = true;
        judge_learn(s, resource)->resource.overdue_count++;
    }
}

static struct judge_record *resource_of(struct judge_step *s, const struct judge_record *hold)
{
    const struct hf_hold *h = &hold->body.hold.hold;
    struct judge_record *r = judge_find(s->j, JUDGE_RESOURCE, h->tenant, h->resource, none());
    age(s, r);
    return r;
}

void judge_hold_revive(struct judge_step *s)
{
    for (struct judge_record *h = s->j->kinds[JUDGE_HOLD]; h; h = h->next) {
        if (!h->body.present || !h->body.hold.overdue || s->now >= h->body.hold.hold.expires_at)
            continue;
        struct judge_record *r = judge_find(s->j, JUDGE_RESOURCE, h->body.hold.hold.tenant,
                                            h->body.hold.hold.resource, none());
        judge_learn(s, h)->hold.overdue = false;
        judge_learn(s, r)->resource.overdue_count--;
        live_add(s, r, h);
    }
}

/* It is held no longer. */
static void leave(struct judge_step *s, struct judge_record *hold)
{
    struct judge_record *r = resource_of(s, hold);
    if (hold->body.hold.overdue) {
        judge_learn(s, hold)->hold.overdue = false;
        judge_learn(s, r)->resource.overdue_count--;
    } else {
        live_remove(s, r, hold);
    }
}

static hf_time expired_from(const struct judge_body *b)
{
    return b->hold.hold.expires_at > b->hold.held_until ? b->hold.hold.expires_at
                                                        : b->hold.held_until;
}

/* The answer shows that the sweeper, or a place_hold, has had it. */
static void learn_expired(struct judge_step *s, struct judge_record *hold)
{
    struct judge_body *b = judge_learn(s, hold);
    leave(s, hold);
    b->hold.hold.state = HF_EXPIRED;
    b->hold.ended_about = true;
    b->hold.ended_from = expired_from(b);
    b->hold.ended_until = s->now;
}

/* The answer shows that it was held all the time, though it is overdue. */
static void learn_held(struct judge_step *s, struct judge_record *hold)
{
    struct judge_record *r = resource_of(s, hold);
    const struct judge_body *b = &r->body;
    if (hold->body.hold.overdue &&
        (uint64_t)b->resource.live_count + b->resource.resource.confirmed >=
            b->resource.resource.capacity)
        judge_object(s, "PC11: hold %s is held, and so are all %u units of its resource without it",
                     hold->body.hold.hold.id, b->resource.resource.capacity);
    judge_learn(s, hold)->hold.held_until = s->now;
}

/* ---- Showing ---- */

const char *judge_hold_differs(const struct judge_record *record, const struct hf_hold *shown,
                               hf_time now)
{
    const struct judge_body *b = &record->body;
    struct hf_hold want = b->hold.hold;
    if (want.state == HF_HELD && shown->state == HF_EXPIRED && now >= want.expires_at) {
        if (shown->ended_at < expired_from(b) || shown->ended_at > now)
            return "PC8: it expired at a time at which it cannot have";
        want.state = HF_EXPIRED;
        want.ended_at = shown->ended_at;
    } else if (b->hold.ended_about) {
        if (shown->state == HF_EXPIRED &&
            (shown->ended_at < b->hold.ended_from || shown->ended_at > b->hold.ended_until))
            return "PC8: it expired at a time at which it cannot have";
        want.ended_at = shown->ended_at;
    }
    if (judge_hold_same(&want, shown))
        return NULL;
    if (want.state != shown->state)
        return want.state == HF_HELD ? "PC2: it is held until it is acted upon"
                                     : "PC3: an end is final, and it had another";
    if (!judge_bytes_equal(want.resource, shown->resource) ||
        !judge_bytes_equal(want.requester, shown->requester))
        return "PC5: resource and requester never change";
    if (want.ended_at != shown->ended_at)
        return "PC3: it ended at another time";
    return "PC4: id, ordinals and times never change";
}

void judge_hold_learn(struct judge_step *s, struct judge_record *record,
                      const struct hf_hold *shown)
{
    struct judge_body *b = &record->body;
    if (b->hold.hold.state == HF_HELD && shown->state == HF_EXPIRED) {
        learn_expired(s, record);
    } else if (b->hold.hold.state == HF_HELD && shown->state == HF_HELD &&
               s->now >= b->hold.hold.expires_at) {
        learn_held(s, record);
        return;
    }
    if (b->hold.ended_about) {
        b = judge_learn(s, record);
        b->hold.ended_about = false;
        b->hold.hold.ended_at = shown->ended_at;
    }
}

const char *judge_resource_differs(const struct judge_record *record,
                                   const struct hf_resource *shown, hf_time now)
{
    const struct judge_body *b = &record->body;
    const struct hf_resource *want = &b->resource.resource;
    uint32_t least = 0;
    for (const struct judge_record *h = b->resource.live; h; h = h->body.hold.after)
        least += now < h->body.hold.hold.expires_at;
    if ((uint64_t)shown->held + shown->confirmed > shown->capacity)
        return "PC11: more is taken than there is";
    if (shown->held < least ||
        shown->held > (uint64_t)b->resource.live_count + b->resource.overdue_count)
        return "its count of held units is wrong";
    if (shown->confirmed != want->confirmed)
        return "its count of confirmed units is wrong";
    if (shown->capacity != want->capacity || shown->open != want->open ||
        shown->require_fence != want->require_fence)
        return "its capacity, or whether it is open or requires a fence, is wrong";
    if (shown->fence != want->fence)
        return "its fence is not the highest that a hold has carried";
    if (shown->newest != want->newest || shown->created_at != want->created_at)
        return "its newest hold or its time of creation is wrong";
    if (!judge_bytes_equal(shown->tenant, record->tenant) ||
        !judge_bytes_equal(shown->name, record->name))
        return "its name is wrong";
    return NULL;
}

static void resource_answered(struct judge_step *s, struct judge_record *r)
{
    if (!judge_has(s, HF_RECORD_RESOURCE))
        return;
    const char *wrong = judge_resource_differs(r, &s->op->answer.resource, s->now);
    if (wrong)
        judge_object(
            s, "%s (held %u, confirmed %u, capacity %u; known: %u live, %u overdue, %u confirmed)",
            wrong, s->op->answer.resource.held, s->op->answer.resource.confirmed,
            s->op->answer.resource.capacity, r->body.resource.live_count,
            r->body.resource.overdue_count, r->body.resource.resource.confirmed);
}

/* ---- Placing ---- */

/* A new record: all that the system makes is checked here. shown: the answer's hold; want: the rest
 * of it. */
static void new_hold(struct judge_step *s, struct judge_record *resource,
                     const struct hf_hold *want)
{
    const struct hf_hold *shown = &s->op->answer.hold;
    struct judge *j = s->j;
    judge_touch(s, j->counters);
    if (memchr(shown->id, 0, HF_ID_SIZE) != shown->id + HF_ID_SIZE - 1) {
        judge_object(s, "an id has 26 characters");
        return;
    }
    struct judge_record *hold = judge_find(j, JUDGE_HOLD, none(), hf_str(shown->id), none());
    judge_touch(s, hold);
    if (hold->body.present)
        judge_object(s, "PC9: the id %s was used before", shown->id);
    uint64_t ordinal = j->counters->body.counters.holds + 1;
    uint64_t before = resource->body.resource.resource.newest;
    if (j->rules.many && shown->ordinal <= before)
        judge_object(s, "PC10: the ordinal should be above %llu, and is %llu",
                     (unsigned long long)before, (unsigned long long)shown->ordinal);
    else if (!j->rules.many && shown->ordinal != ordinal)
        judge_object(s, "PC10: the ordinal should be %llu, and is %llu",
                     (unsigned long long)ordinal, (unsigned long long)shown->ordinal);
    struct hf_hold all = *want;
    memcpy(all.id, shown->id, sizeof all.id);
    all.ordinal = shown->ordinal;
    all.previous = resource->body.resource.resource.newest;
    all.tenant = s->op->request.tenant;
    all.placed_at = s->now;
    if (!judge_hold_same(&all, shown))
        judge_object(s,
                     "PC6: the new hold is not what was asked for: it should be of %lld to %lld, "
                     "after hold %llu",
                     (long long)all.placed_at, (long long)all.expires_at,
                     (unsigned long long)all.previous);
    judge_change(s, j->counters)->counters.holds = shown->ordinal;
    struct judge_body *h = judge_change(s, hold);
    h->present = true;
    h->hold.hold = *shown;
    judge_change(s, resource)->resource.resource.newest = shown->ordinal;
}

static void placed(struct judge_step *s, struct judge_record *r)
{
    const struct hf_request *q = &s->op->request;
    if (!judge_has(s, HF_RECORD_HOLD))
        return;
    if (!r->body.present) { /* the registry is open, and this is its first use */
        struct judge_body *b = judge_change(s, r);
        b->present = true;
        b->resource.resource = (struct hf_resource){
            .tenant = r->tenant, .name = r->name, .capacity = 1, .open = true, .created_at = s->now
        };
    }
    new_hold(s, r,
             &(struct hf_hold){ .state = HF_HELD,
                                .resource = q->place_hold.resource,
                                .requester = q->place_hold.requester,
                                .expires_at = s->now + q->place_hold.duration_ms });
    struct judge_body *b = judge_change(s, r);
    if (q->place_hold.fence > b->resource.resource.fence)
        b->resource.resource.fence = q->place_hold.fence;
    live_add(s, r, judge_find(s->j, JUDGE_HOLD, none(), hf_str(s->op->answer.hold.id), none()));
}

void judge_rule_place(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    int64_t duration = q->place_hold.duration_ms;
    if (!judge_name_valid(q->place_hold.resource) || !judge_name_valid(q->place_hold.requester) ||
        duration < 1 || duration > HF_DURATION_MAX_MS) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "PC6: the request is malformed");
        return;
    }
    if (s->quiet && s->op->status != HF_OK)
        return;
    struct judge_record *r = judge_look(s, JUDGE_RESOURCE, q->place_hold.resource, none());
    age(s, r);
    const struct judge_body *b = &r->body;
    uint64_t taken = (uint64_t)b->resource.live_count + b->resource.resource.confirmed;
    bool full = b->present ? !b->resource.resource.open || taken >= b->resource.resource.capacity
                           : s->j->rules.strict;
    const struct hf_resource *is = &b->resource.resource;
    bool stale =
        b->present && (q->place_hold.fence ? q->place_hold.fence <= is->fence : is->require_fence);
    uint64_t may =
        (full ? JUDGE_IS(HF_RESOURCE_UNAVAILABLE) : 0) | (stale ? JUDGE_IS(HF_STALE_FENCE) : 0);
    if (may)
        judge_allow(s, may,
                    stale ? "the fence is not above the highest"
                          : "PC11: there is no unit to be had");
    else
        judge_allow(s, JUDGE_IS(HF_OK), "a unit is free");
    if (s->op->status == HF_OK)
        placed(s, r);
}

/* ---- Ending ---- */

static void ended(struct judge_step *s, struct judge_record *hold, enum hf_hold_state state)
{
    if (!judge_has(s, HF_RECORD_HOLD))
        return;
    if (hold->body.hold.hold.state == HF_HELD)
        leave(s, hold);
    struct judge_body *b = judge_change(s, hold);
    b->hold.hold.state = state;
    b->hold.hold.ended_at = s->now;
    b->hold.ended_about = false;
    if (state == HF_CONFIRMED)
        judge_change(s, resource_of(s, hold))->resource.resource.confirmed++;
    if (!judge_hold_same(&b->hold.hold, &s->op->answer.hold))
        judge_object(s, "PC4, PC5, PC8: the hold is not as it was, with this end at %lld",
                     (long long)s->now);
}

static void reversed(struct judge_step *s, struct judge_record *hold)
{
    const struct hf_hold *old = &hold->body.hold.hold, *shown = &s->op->answer.hold;
    if (!judge_has(s, HF_RECORD_HOLD))
        return;
    struct judge_record *r = resource_of(s, hold);
    judge_touch(s, r);
    struct hf_hold want = { .state = HF_RELEASED,
                            .resource = old->resource,
                            .requester = old->requester,
                            .expires_at = shown->expires_at,
                            .ended_at = s->now };
    memcpy(want.reverses, old->id, sizeof want.reverses);
    if (shown->expires_at <= s->now)
        judge_object(s, "PC6: the record ends before it begins");
    new_hold(s, r, &want);
    judge_change(s, r)->resource.resource.confirmed--;
    judge_change(s, hold)->hold.followed = true;
}

/* A late confirm made a hold in the place of `late`. */
static void reacquired(struct judge_step *s, struct judge_record *late)
{
    const struct hf_hold *old = &late->body.hold.hold;
    if (!judge_has(s, HF_RECORD_HOLD))
        return;
    struct judge_record *r = resource_of(s, late);
    judge_touch(s, r);
    struct hf_hold want = { .state = HF_CONFIRMED,
                            .resource = old->resource,
                            .requester = old->requester,
                            .expires_at = s->now + (old->expires_at - old->placed_at),
                            .ended_at = s->now };
    memcpy(want.reacquires, old->id, sizeof want.reacquires);
    new_hold(s, r, &want);
    judge_change(s, r)->resource.resource.confirmed++;
    judge_change(s, late)->hold.followed = true;
}

static uint64_t end_allowed(const struct judge_step *s, const struct judge_body *b)
{
    enum hf_action action = s->op->request.action;
    bool over = s->now >= b->hold.hold.expires_at;
    if (action == HF_REVERSE)
        return JUDGE_IS(b->hold.hold.state == HF_CONFIRMED && !b->hold.followed ? HF_OK
                                                                                : HF_NOT_HELD);
    if (b->hold.hold.state != HF_HELD)
        return JUDGE_IS(HF_NOT_HELD);
    uint64_t may = over ? JUDGE_IS(HF_NOT_HELD) : 0; /* the sweeper may have had it */
    if (action == HF_CONFIRM)
        return may | JUDGE_IS(over ? HF_WINDOW_ELAPSED : HF_OK);
    if (action == HF_EXPIRE)
        return may | JUDGE_IS(over ? HF_OK : HF_WINDOW_NOT_ELAPSED);
    return may | JUDGE_IS(HF_OK);
}

static const char *end_rule(const struct judge_step *s, const struct judge_body *b)
{
    enum hf_action action = s->op->request.action;
    if (action == HF_REVERSE)
        return "only what is confirmed is given back, and once";
    if (b->hold.hold.state != HF_HELD)
        return "PC3: the hold has ended";
    if (action == HF_CONFIRM)
        return "PC7: a hold can be confirmed before its end, and not from then on";
    return action == HF_EXPIRE ? "PC8: a hold can be expired from its end on, and not before"
                               : "PC2: the hold is held";
}

/* The hold that the request names. NULL: it is judged already. */
static struct judge_record *named(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (s->quiet && s->op->status != HF_OK)
        return NULL;
    struct judge_record *hold = judge_find(s->j, JUDGE_HOLD, none(), q->hold.id, none());
    judge_touch(s, hold);
    if (hold->body.present && judge_bytes_equal(hold->body.hold.hold.tenant, q->tenant))
        return hold;
    judge_allow(s,
                JUDGE_IS(HF_NOT_KNOWN) |
                    (q->hold.id.size == HF_ID_SIZE - 1 ? 0 : JUDGE_IS(HF_INVALID_REQUEST)),
                "there is no such hold");
    return NULL;
}

void judge_rule_confirm_late(struct judge_step *s)
{
    struct judge_record *hold = named(s);
    if (!hold)
        return;
    const struct judge_body *b = &hold->body;
    enum hf_status status = s->op->status;
    bool held = b->hold.hold.state == HF_HELD;
    if (held && s->now < b->hold.hold.expires_at) {
        judge_allow(s, JUDGE_IS(HF_OK), "PC7: a hold can be confirmed before its end");
        if (status == HF_OK)
            ended(s, hold, HF_CONFIRMED);
        return;
    }
    if (!held && (b->hold.hold.state != HF_EXPIRED || b->hold.followed)) {
        judge_allow(s, JUDGE_IS(HF_NOT_HELD), "only what has expired is reacquired, and once");
        return;
    }
    if (held)
        learn_expired(s, hold);
    const struct judge_body *r = &resource_of(s, hold)->body;
    uint64_t taken = (uint64_t)r->resource.live_count + r->resource.resource.confirmed;
    bool none_free = !r->resource.resource.open || taken >= r->resource.resource.capacity;
    judge_allow(s, JUDGE_IS(none_free ? HF_WINDOW_ELAPSED : HF_OK),
                none_free ? "PC11: there is no unit to be had" : "a unit is free");
    if (status == HF_WINDOW_ELAPSED && !s->op->answer.refund)
        judge_object(s, "a late payment without a unit is to be refunded, and nobody says so");
    if (status == HF_OK)
        reacquired(s, hold);
}

void judge_rule_end(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    struct judge_record *hold = named(s);
    if (!hold)
        return;
    struct judge_body *b = &hold->body;
    judge_allow(s, end_allowed(s, b), end_rule(s, b));
    enum hf_status status = s->op->status;
    if (b->hold.hold.state == HF_HELD && s->now >= b->hold.hold.expires_at &&
        q->action != HF_REVERSE) {
        if (status == HF_NOT_HELD)
            learn_expired(s, hold);
        else
            learn_held(s, hold);
    }
    if (status != HF_OK)
        return;
    if (q->action == HF_REVERSE)
        reversed(s, hold);
    else
        ended(s, hold,
              q->action == HF_CONFIRM   ? HF_CONFIRMED
              : q->action == HF_RELEASE ? HF_RELEASED
                                        : HF_EXPIRED);
}

bool judge_hold_can_end(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    if (q->client.size > 0) /* a client that never called before has no room kept for it */
        return false;
    struct judge_record *hold = judge_find(s->j, JUDGE_HOLD, none(), q->hold.id, none());
    const struct judge_body *b = &hold->body;
    return b->present && !hold->doubt && judge_bytes_equal(b->hold.hold.tenant, q->tenant) &&
           b->hold.hold.state == HF_HELD && s->now < b->hold.hold.expires_at;
}

void judge_rule_get_hold(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    struct judge_record *hold = judge_find(s->j, JUDGE_HOLD, none(), q->hold.id, none());
    judge_touch(s, hold);
    if (!hold->body.present || !judge_bytes_equal(hold->body.hold.hold.tenant, q->tenant)) {
        judge_allow(s,
                    JUDGE_IS(HF_NOT_KNOWN) |
                        (q->hold.id.size == HF_ID_SIZE - 1 ? 0 : JUDGE_IS(HF_INVALID_REQUEST)),
                    "there is no such hold");
        return;
    }
    if (!judge_allow(s, JUDGE_IS(HF_OK), "PC10: a record is never deleted") ||
        !judge_has(s, HF_RECORD_HOLD))
        return;
    const char *wrong = judge_hold_differs(hold, &s->op->answer.hold, s->now);
    if (wrong)
        judge_object(s, "hold %s: %s", hold->body.hold.hold.id, wrong);
    else
        judge_hold_learn(s, hold, &s->op->answer.hold);
}

/* ---- Resources ---- */

void judge_rule_set_resource(struct judge_step *s)
{
    const struct hf_request *q = &s->op->request;
    int open = (int)q->set_resource.open;
    if (!judge_name_valid(q->set_resource.name) || q->set_resource.capacity > HF_CAPACITY_MAX ||
        open < HF_LEAVE || open > HF_SET_CLOSED ||
        (unsigned)q->set_resource.require_fence > HF_NOT_REQUIRED) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the request is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_RESOURCE, q->set_resource.name, none());
    age(s, r);
    const struct judge_body *b = &r->body;
    struct hf_resource now = b->present ? b->resource.resource
                                        : (struct hf_resource){ .tenant = r->tenant,
                                                                .name = r->name,
                                                                .capacity = 1,
                                                                .open = true,
                                                                .created_at = s->now };
    struct hf_resource next = now;
    next.capacity = q->set_resource.capacity ? q->set_resource.capacity : now.capacity;
    next.open = open == HF_LEAVE ? now.open : open == HF_SET_OPEN;
    if (q->set_resource.require_fence != HF_REQUIRE_UNCHANGED)
        next.require_fence = q->set_resource.require_fence == HF_REQUIRED;
    uint64_t least = (uint64_t)b->resource.live_count + now.confirmed;
    uint64_t may =
        (next.capacity >= least ? JUDGE_IS(HF_OK) : 0) |
        (next.capacity < least + b->resource.overdue_count ? JUDGE_IS(HF_RESOURCE_UNAVAILABLE) : 0);
    judge_allow(s, may, "PC11: a capacity is never below what is taken");
    if (s->op->status != HF_OK)
        return;
    if (!b->present || next.capacity != now.capacity || next.open != now.open ||
        next.require_fence != now.require_fence) {
        struct judge_body *change = judge_change(s, r);
        change->present = true;
        change->resource.resource = next;
    }
    resource_answered(s, r);
}

void judge_rule_get_resource(struct judge_step *s)
{
    if (!judge_name_valid(s->op->request.get.name)) {
        judge_allow(s, JUDGE_IS(HF_INVALID_REQUEST), "the name is malformed");
        return;
    }
    struct judge_record *r = judge_look(s, JUDGE_RESOURCE, s->op->request.get.name, none());
    age(s, r);
    if (judge_allow(s, JUDGE_IS(r->body.present ? HF_OK : HF_NOT_KNOWN),
                    "a resource is known once it was used") &&
        r->body.present)
        resource_answered(s, r);
}

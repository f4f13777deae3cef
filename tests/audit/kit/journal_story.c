#include "audit/kit/journal_story.h"

#include "support/test.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"

#include <stdio.h>

/* ---- Batches and time ---- */

static struct jw_entry *entry_add(struct story *s, enum hf_action action)
{
    if (!s->w.open)
        jw_begin(&s->w, s->now);
    struct jw_entry *e = jw_add(&s->w, action);
    e->tenant = s->tenant;
    return e;
}

void story_commit(struct story *s)
{
    jw_commit(&s->w);
    s->now += 1000;
}

void story_pass(struct story *s, int64_t ms)
{
    s->now += ms;
}

static void remember(struct story *s, struct jw_entry *e, const char *key)
{
    e->remember = HF_REMEMBER_KEY;
    e->key = hf_str(key);
    e->expires_at = s->now + s->window_ms;
}

void story_open_sized(struct story *s, uint64_t segment_size)
{
    *s = (struct story){ .now = STORY_START, .window_ms = STORY_WINDOW };
    jw_directory(s->dir);
    jw_open(&s->w, s->dir, segment_size);
    story_configure(s);
    story_commit(s);
}

void story_open(struct story *s)
{
    story_open_sized(s, 256 * 1024);
}

void story_close(struct story *s)
{
    if (s->w.segment)
        jw_close(&s->w);
}

void story_remove(struct story *s)
{
    story_close(s);
    jw_remove(s->dir);
}

struct jw_entry *story_configure(struct story *s)
{
    struct jw_entry *e = entry_add(s, HF_CONFIGURE);
    e->tenant = hf_str("");
    struct hf_row *row = jw_row(e, HF_ROW_CONFIG);
    row->config = (struct hf_config){ .idempotency_window_ms = s->window_ms,
                                      .token_max_length = 256,
                                      .digest_name = hf_str(HF_DIGEST_NAME),
                                      .program = hf_str(HF_VERSION) };
    return e;
}

/* ---- Holds ---- */

static struct hf_resource *resource_of(struct story *s, struct hf_bytes name)
{
    for (size_t i = 0; i < s->resource_count; i++)
        if (hf_bytes_equal(s->resources[i].name, name) &&
            hf_bytes_equal(s->resources[i].tenant, s->tenant))
            return &s->resources[i];
    HF_ASSERT(s->resource_count < STORY_MAX);
    s->resources[s->resource_count] = (struct hf_resource){
        .tenant = s->tenant, .name = name, .capacity = 1, .open = true, .created_at = s->now
    };
    return &s->resources[s->resource_count++];
}

static void row_resource(struct jw_entry *e, const struct hf_resource *r)
{
    jw_row(e, HF_ROW_RESOURCE)->resource = *r;
}

struct jw_entry *story_resource(struct story *s, const char *name, uint32_t capacity)
{
    struct jw_entry *e = entry_add(s, HF_SET_RESOURCE);
    struct hf_resource *r = resource_of(s, hf_str(name));
    r->capacity = capacity;
    row_resource(e, r);
    e->answer = 0;
    return e;
}

static void place_digest(struct hf_bytes resource, struct hf_bytes requester, int64_t duration_ms,
                         uint8_t out[HF_DIGEST_SIZE])
{
    struct jw_field fields[] = { { .name = "duration_ms", .number = &duration_ms },
                                 { .name = "requester", .bytes = requester },
                                 { .name = "resource", .bytes = resource } };
    jw_digest(fields, 3, out);
}

static void id_digest(const char *id, uint8_t out[HF_DIGEST_SIZE])
{
    struct jw_field field = { .name = "id", .bytes = hf_str(id) };
    jw_digest(&field, 1, out);
}

static struct hf_hold *hold_make(struct story *s, struct hf_resource *r)
{
    HF_ASSERT(s->hold_count < STORY_MAX);
    struct hf_hold *h = &s->holds[++s->hold_count];
    *h = (struct hf_hold){ .ordinal = s->hold_count,
                           .previous = r->newest,
                           .state = HF_HELD,
                           .tenant = s->tenant,
                           .resource = r->name,
                           .placed_at = s->now };
    hf_id_make(&s->w.id_key, h->ordinal, h->id);
    r->newest = h->ordinal;
    return h;
}

struct jw_entry *story_place(struct story *s, const char *key, const char *resource,
                             const char *requester, int64_t duration_ms)
{
    struct jw_entry *e = entry_add(s, HF_PLACE_HOLD);
    struct hf_resource *r = resource_of(s, hf_str(resource));
    struct hf_hold *h = hold_make(s, r);
    h->requester = hf_str(requester);
    h->expires_at = s->now + duration_ms;
    r->held++;
    remember(s, e, key);
    place_digest(h->resource, h->requester, duration_ms, e->digest);
    jw_row(e, HF_ROW_HOLD)->hold = *h;
    row_resource(e, r);
    e->answer = 0;
    return e;
}

struct jw_entry *story_end(struct story *s, enum hf_action action, const char *key,
                           uint64_t ordinal)
{
    struct jw_entry *e = entry_add(s, action);
    struct hf_hold *h = &s->holds[ordinal];
    struct hf_resource *r = resource_of(s, h->resource);
    h->state = action == HF_CONFIRM   ? HF_CONFIRMED
               : action == HF_RELEASE ? HF_RELEASED
                                      : HF_EXPIRED;
    h->ended_at = s->now;
    r->held--;
    r->confirmed += action == HF_CONFIRM;
    if (key) {
        remember(s, e, key);
        id_digest(h->id, e->digest);
        e->answer = 0;
    }
    jw_row(e, HF_ROW_HOLD)->hold = *h;
    row_resource(e, r);
    return e;
}

/* A hold that follows another: it gives its unit back, or reacquires one. */
static struct jw_entry *follow(struct story *s, enum hf_action action, const char *key,
                               uint64_t ordinal)
{
    bool back = action == HF_REVERSE;
    struct jw_entry *e = entry_add(s, action);
    struct hf_hold *original = &s->holds[ordinal];
    struct hf_resource *r = resource_of(s, original->resource);
    struct hf_hold *h = hold_make(s, r);
    h->requester = original->requester;
    h->expires_at = s->now + (original->expires_at - original->placed_at);
    h->state = back ? HF_RELEASED : HF_CONFIRMED;
    h->ended_at = s->now;
    memcpy(back ? h->reverses : h->reacquires, original->id, HF_ID_SIZE);
    r->confirmed += back ? -1 : 1;
    remember(s, e, key);
    id_digest(original->id, e->digest);
    jw_row(e, HF_ROW_HOLD)->hold = *h;
    struct hf_row *row = jw_row(e, HF_ROW_SUCCESSOR);
    memcpy(row->successor.original, original->id, HF_ID_SIZE);
    memcpy(row->successor.successor, h->id, HF_ID_SIZE);
    row_resource(e, r);
    e->answer = 0;
    return e;
}

struct jw_entry *story_reverse(struct story *s, const char *key, uint64_t ordinal)
{
    return follow(s, HF_REVERSE, key, ordinal);
}

struct jw_entry *story_reacquire(struct story *s, const char *key, uint64_t ordinal)
{
    return follow(s, HF_CONFIRM_LATE, key, ordinal);
}

struct jw_entry *story_refuse(struct story *s, enum hf_action action, const char *key,
                              uint64_t ordinal, enum hf_status status)
{
    struct jw_entry *e = entry_add(s, action);
    remember(s, e, key);
    id_digest(s->holds[ordinal].id, e->digest);
    e->status = status;
    return e;
}

struct jw_entry *story_refuse_place(struct story *s, const char *key, const char *resource,
                                    const char *requester, enum hf_status status)
{
    struct jw_entry *e = entry_add(s, HF_PLACE_HOLD);
    remember(s, e, key);
    place_digest(hf_str(resource), hf_str(requester), 60000, e->digest);
    e->status = status;
    return e;
}

/* ---- Guards, claims, leases, registers ---- */

struct jw_entry *story_guard(struct story *s, const char *name, int64_t window_ms)
{
    struct jw_entry *e = entry_add(s, HF_SET_GUARD);
    jw_row(e, HF_ROW_GUARD)->guard = (struct hf_guard){ .name = hf_str(name),
                                                        .window_ms = window_ms,
                                                        .durable = true,
                                                        .match = { HF_MATCH_EXACT },
                                                        .match_count = 1,
                                                        .created_at = s->now };
    e->answer = 0;
    return e;
}

struct jw_entry *story_record(struct story *s, const char *guard, const char *identity,
                              int64_t window_ms)
{
    struct jw_entry *e = entry_add(s, HF_ADMIT);
    jw_row(e, HF_ROW_ENTRY)->entry = (struct hf_entry){ .guard = hf_str(guard),
                                                        .identity = hf_str(identity),
                                                        .recorded_at = s->now,
                                                        .expires_at = s->now + window_ms,
                                                        .has_result = true,
                                                        .result = hf_str("paid") };
    return e;
}

struct jw_entry *story_begin(struct story *s, const char *key)
{
    struct jw_entry *e = entry_add(s, HF_BEGIN);
    struct hf_claim *c = &jw_row(e, HF_ROW_CLAIM)->claim;
    *c = (struct hf_claim){ .key = hf_str(key),
                            .state = HF_CLAIM_STARTED,
                            .fence = ++s->fence,
                            .lease_ms = 60000,
                            .begun_at = s->now,
                            .lease_expires_at = s->now + 60000 };
    s->lease_until = c->lease_expires_at;
    memcpy(c->fingerprint, "0123456789abcdef0123456789abcdef", HF_DIGEST_SIZE);
    e->answer = 0;
    return e;
}

struct jw_entry *story_settle(struct story *s, enum hf_action action, const char *key,
                              uint64_t fence, hf_time begun_at)
{
    struct jw_entry *e = entry_add(s, action);
    struct hf_claim *c = &jw_row(e, HF_ROW_CLAIM)->claim;
    bool beat = action == HF_HEARTBEAT;
    if (beat)
        s->lease_until = s->now + 60000;
    *c = (struct hf_claim){ .key = hf_str(key),
                            .fence = fence,
                            .lease_ms = 60000,
                            .begun_at = begun_at,
                            .lease_expires_at = s->lease_until,
                            .settled_at = beat ? 0 : s->now,
                            .expires_at = beat ? 0 : s->now + s->window_ms,
                            .response = hf_str(beat ? "" : "charged") };
    c->state = beat                    ? HF_CLAIM_STARTED
               : action == HF_COMPLETE ? HF_CLAIM_COMPLETED
                                       : HF_CLAIM_FAILED;
    memcpy(c->fingerprint, "0123456789abcdef0123456789abcdef", HF_DIGEST_SIZE);
    e->answer = 0;
    return e;
}

struct jw_entry *story_grant(struct story *s, const char *key, const char *name, const char *holder)
{
    struct jw_entry *e = entry_add(s, HF_GRANT);
    int64_t ttl_ms = 30000;
    remember(s, e, key);
    jw_row(e, HF_ROW_LEASE)->lease = (struct hf_lease){ .name = hf_str(name),
                                                        .holder = hf_str(holder),
                                                        .fence = ++s->fence,
                                                        .ttl_ms = ttl_ms,
                                                        .granted_at = s->now,
                                                        .expires_at = s->now + ttl_ms };
    struct jw_field fields[] = { { .name = "holder", .bytes = hf_str(holder) },
                                 { .name = "name", .bytes = hf_str(name) },
                                 { .name = "ttl_ms", .number = &ttl_ms } };
    jw_digest(fields, 3, e->digest);
    e->answer = 0;
    return e;
}

struct jw_entry *story_write(struct story *s, const char *key, const char *name, const char *value,
                             uint64_t version)
{
    struct jw_entry *e = entry_add(s, HF_WRITE);
    remember(s, e, key);
    jw_row(e, HF_ROW_REGISTER)->reg =
        (struct hf_register){ .name = hf_str(name),
                              .version = version,
                              .changed_at = s->now,
                              .value = { .type = HF_TYPE_PLAIN, .bytes = hf_str(value) } };
    struct jw_field fields[] = { { .name = "name", .bytes = hf_str(name) },
                                 { .name = "value", .bytes = hf_str(value) } };
    jw_digest(fields, 2, e->digest);
    e->answer = 0;
    return e;
}

struct jw_entry *story_number(struct story *s, const char *client, uint64_t n, const char *resource)
{
    struct jw_entry *e = story_place(s, client, resource, "numbered", 60000);
    e->remember = HF_REMEMBER_SEQUENCE;
    e->sequence = n;
    e->expires_at = INT64_MAX;
    struct hf_client *c = &jw_row(e, HF_ROW_CLIENT)->client;
    c->name = hf_str(client);
    c->highest = n;
    for (uint64_t i = 1; i <= n; i++)
        c->used[i % HF_SEQUENCE_WINDOW / 8] |= (uint8_t)(1U << (i % 8));
    return e;
}

struct jw_entry *story_apply(struct story *s, const char *key, uint64_t outbox_number)
{
    struct jw_entry *e = entry_add(s, HF_APPLY);
    remember(s, e, key);
    memset(e->digest, 7, sizeof e->digest);
    struct hf_row *row = jw_row(e, HF_ROW_VALUE);
    row->pair = (struct hf_pair){ .key = hf_str("balance"), .value = hf_str("100") };
    jw_row(e, HF_ROW_OUTBOX)->outbox = (struct hf_outbox){ .number = outbox_number,
                                                           .state = HF_OUTBOX_PENDING,
                                                           .created_at = s->now,
                                                           .key = hf_str(key),
                                                           .topic = hf_str("mail"),
                                                           .payload = hf_str("{}") };
    e->answer = 254;
    e->inline_kind = HF_RECORD_VALUE;
    e->inline_image = hf_str("done");
    return e;
}

/* ---- A bit of everything ---- */

static void tell_holds(struct story *s)
{
    story_resource(s, "room-307", 2);
    story_commit(s);
    story_place(s, "order-1", "room-307", "guest-91", 900000);
    story_commit(s);
    story_end(s, HF_CONFIRM, "order-1-confirm", 1);
    story_commit(s);
    story_refuse(s, HF_RELEASE, "order-1-release", 1, HF_NOT_HELD);
    story_commit(s);
    story_place(s, "order-2", "room-307", "guest-91", 900000);
    story_commit(s);
    story_refuse_place(s, "order-3", "room-307", "guest-92", HF_RESOURCE_UNAVAILABLE);
    story_commit(s);
    story_end(s, HF_RELEASE, "order-2-release", 2);
    story_commit(s);
    story_reverse(s, "order-1-back", 1);
    story_commit(s);
    story_place(s, "order-4", "bed-12", "patient-41", 5000);
    story_commit(s);
    story_pass(s, 10000);
    story_end(s, HF_SWEEP, NULL, 4);
    story_commit(s);
    story_refuse(s, HF_CONFIRM, "order-4-confirm", 4, HF_NOT_HELD);
    story_commit(s);
    story_reacquire(s, "order-4-late", 4);
    story_commit(s);
}

static void tell_others(struct story *s)
{
    story_guard(s, "payments", 300000);
    story_commit(s);
    story_record(s, "payments", "invoice-7", 300000);
    story_commit(s);
    hf_time begun = s->now;
    story_begin(s, "charge-1");
    story_commit(s);
    story_settle(s, HF_HEARTBEAT, "charge-1", 1, begun);
    story_commit(s);
    story_settle(s, HF_COMPLETE, "charge-1", 1, begun);
    story_commit(s);
    story_grant(s, "lead-1", "leader", "node-a");
    story_commit(s);
    story_write(s, "write-1", "limit", "250", 1);
    story_commit(s);
    story_write(s, "write-2", "limit", "300", 2);
    story_commit(s);
    story_number(s, "terminal-5", 1, "seat-1");
    story_number(s, "terminal-5", 2, "seat-2");
    story_commit(s);
    story_apply(s, "apply-1", 1);
    story_commit(s);
    story_apply(s, "apply-2", 2);
    story_commit(s);
}

void story_tell_all(struct story *s)
{
    tell_holds(s);
    tell_others(s);
    /* A key again, after its window: a new request. */
    story_pass(s, s->window_ms);
    story_record(s, "payments", "invoice-7", 300000);
    story_place(s, "order-1", "room-308", "guest-91", 900000);
    story_commit(s);
    /* And a key that is not text, of a tenant. */
    s->tenant = hf_str("clinic");
    struct jw_entry *e = story_place(s, "k", "bed-12", "patient-42", 60000);
    e->key = hf_mem("\x00\xff\x01", 3);
    story_commit(s);
    s->tenant = hf_str("");
}

struct judge judge;

int judge_setup(void **state)
{
    (void)state;
    story_open(&judge.story);
    return 0;
}

int judge_teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&judge.report);
    story_remove(&judge.story);
    return 0;
}

void judge_run(void)
{
    struct hf_error why;
    story_close(&judge.story);
    assert_int_equal(hf_audit_run(judge.story.dir, NULL, &judge.report, &why), HF_OK);
}

void judge_show(void)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        for (size_t k = 0; k < judge.report.checks[i].example_count; k++)
            print_message("%s: %s\n", judge.report.checks[i].name,
                          judge.report.checks[i].examples[k]);
}

static bool sentence_found(const struct hf_audit_check *c, const char *words)
{
    for (size_t k = 0; k < c->example_count; k++)
        if (strstr(c->examples[k], words))
            return true;
    return false;
}

void judged(const char *name, const char *words)
{
    if (judge.story.w.open)
        story_commit(&judge.story);
    if (judge.story.w.segment)
        judge_run();
    assert_int_not_equal(judge.report.verdict, HF_AUDIT_OK);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (strcmp(judge.report.checks[i].name, name) == 0 &&
            sentence_found(&judge.report.checks[i], words))
            return;
    judge_show();
    fail_msg("%s does not say \"%s\"", name, words);
}

void judged_only(const char *names)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", judge.report.checks[i].name);
        if (judge.report.checks[i].violations > 0 && !strstr(names, word)) {
            judge_show();
            fail_msg("%s is broken too", judge.report.checks[i].name);
        }
    }
}

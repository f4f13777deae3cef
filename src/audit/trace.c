#include "audit/trace.h"

#include "audit/digest.h"
#include "audit/id.h"
#include "audit/words.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/id.h"
#include "core/action.h"
#include "json/writer.h"

#include <stdarg.h>
#include <stdlib.h>

/* How many events a trace shows: the first and the newest ones. A client can extend a claim
 * millions of times; a reader needs its beginning and its current state. */
enum { FIRST = 500, NEWEST = 500 };

/* A tenant that has events: what its key stands for now. */
struct owner {
    char name[HF_TENANT_MAX];
    size_t size;
    unsigned long long count; /* events */
    hf_time key_until;        /* when the key's newest window closes */
    bool unsettled;           /* the key is of a claim that is not settled */
    hf_time lease_until;      /* of that claim */
    unsigned long long fence; /* the fence to settle it with */
    enum hf_abandon on_abandon;
};

struct trace {
    const struct hf_audit_trace_options *options;
    struct hf_bytes name;
    char id[HF_ID_SIZE];             /* the hold, or "" for a key */
    uint8_t digest[HF_DIGEST_SIZE];  /* of an action on the hold */
    struct hf_buffer first;          /* the first events, formatted */
    struct hf_buffer newest[NEWEST]; /* the newest events, in a ring */
    unsigned long long count;
    enum hf_hold_state state; /* of the hold; 0: no record yet */
    hf_time state_at, hold_expires_at;
    bool reversed;
    struct owner *owners; /* owned; in the order of their first events */
    size_t owner_count, owner_room;
    struct owner lost; /* stands for an owner when there is no memory; then nothing is printed */
    /* the time of the newest batch; for one tenant: of its newest batch, or options->now if that is
     * later */
    hf_time as_of;
    unsigned long long damages;
    struct hf_audit_row rows[HF_AUDIT_ROWS_MAX];
};

/* ---- Tenants ---- */

/* A key may be in use by several tenants, each for itself. The text of an event has its tenant
 * between these two marks, which no name in a message has; they are shown if there are several. */
enum { LABEL = '\x1e', LABEL_END = '\x1f', OWNERS_SHOWN = 100 };

static struct hf_bytes owner_name(const struct owner *owner)
{
    return hf_mem(owner->name, owner->size);
}

/* `tenant "shop"`, or `the default tenant` */
static struct hf_audit_who owner_label(struct hf_bytes name)
{
    struct hf_audit_who w;
    if (name.size == 0)
        snprintf(w.text, sizeof w.text, "the default tenant");
    else
        snprintf(w.text, sizeof w.text, "tenant %s", hf_audit_show(name).text);
    return w;
}

static struct owner *owner_of(struct trace *t, struct hf_bytes tenant)
{
    if (tenant.size > HF_TENANT_MAX) /* only if the journal is damaged */
        tenant.size = HF_TENANT_MAX;
    for (size_t i = t->owner_count; i > 0; i--)
        if (hf_bytes_equal(owner_name(&t->owners[i - 1]), tenant))
            return &t->owners[i - 1];
    if (t->owner_count == t->owner_room) {
        size_t room = t->owner_room ? 2 * t->owner_room : 8;
        struct owner *grown = realloc(t->owners, room * sizeof *grown);
        t->first.failed |= !grown;
        if (!grown)
            return &t->lost;
        t->owners = grown;
        t->owner_room = room;
    }
    struct owner *owner = &t->owners[t->owner_count++];
    *owner = (struct owner){ .size = tenant.size };
    if (tenant.size > 0)
        memcpy(owner->name, tenant.data, tenant.size);
    return owner;
}

/* As hf_audit_who, without the tenant: it is named once for the whole event. */
static struct hf_audit_who by_whom(const struct hf_audit_entry *e)
{
    struct hf_audit_entry anonymous = *e;
    anonymous.tenant = hf_mem(NULL, 0);
    return hf_audit_who(&anonymous);
}

/* ---- One event ---- */

static void event_json(const struct trace *t, const struct hf_audit_entry *e, const char *sentence,
                       struct hf_buffer *out)
{
    struct hf_json json = { .out = out, .comma = t->count > 1 }, *j = &json;
    hf_json_object(j);
    hf_json_name(j, "at");
    hf_json_time(j, e->recorded_at);
    if (!t->options->has_tenant) {
        hf_json_name(j, "position");
        hf_json_uint(j, e->position);
    }
    hf_json_name(j, "action");
    hf_json_text(j, hf_action_name(e->action));
    hf_json_name(j, "status");
    hf_json_text(j, hf_status_code(e->status));
    hf_json_name(j, "tenant");
    hf_json_opaque(j, e->tenant);
    if (e->remember == HF_REMEMBER_KEY) {
        hf_json_name(j, "key");
        hf_json_opaque(j, e->key);
        hf_json_name(j, "key_expires_at");
        hf_json_time(j, e->expires_at);
    } else if (e->remember == HF_REMEMBER_SEQUENCE) {
        hf_json_name(j, "client");
        hf_json_opaque(j, e->key);
        hf_json_name(j, "sequence");
        hf_json_uint(j, e->sequence);
    }
    if (e->digest) {
        hf_json_name(j, "digest");
        hf_json_hex(j, "", hf_mem(e->digest, HF_DIGEST_SIZE));
    }
    hf_json_name(j, "words");
    hf_json_text(j, sentence);
    hf_json_object_end(j);
}

static void event(struct trace *t, const struct hf_audit_entry *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void event(struct trace *t, const struct hf_audit_entry *e, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    struct hf_buffer *out = &t->first;
    if (t->count >= FIRST) {
        out = &t->newest[(t->count - FIRST) % NEWEST];
        hf_buffer_reset(out);
    }
    t->count++;
    owner_of(t, e->tenant)->count++;
    if (t->options->json)
        event_json(t, e, sentence, out);
    else
        hf_buffer_printf(out, "%s  %c%s: %c%s\n", hf_audit_at(e->recorded_at).text, LABEL,
                         owner_label(e->tenant).text, LABEL_END, sentence);
}

/* The number of events that are not shown. */
static unsigned long long omitted(const struct trace *t)
{
    return t->count > FIRST + NEWEST ? t->count - FIRST - NEWEST : 0;
}

/* Append the text of events, their tenants only if there are several. */
static void text_add(const struct trace *t, const struct hf_buffer *text, struct hf_buffer *out)
{
    const char *p = (const char *)text->data, *end = p ? p + text->size : p;
    out->failed |= text->failed;
    while (p < end) {
        const char *label = t->options->json ? NULL : memchr(p, LABEL, (size_t)(end - p));
        const char *after = label ? memchr(label, LABEL_END, (size_t)(end - label)) : NULL;
        if (!after) {
            hf_buffer_add(out, p, (size_t)(end - p));
            return;
        }
        hf_buffer_add(out, p, (size_t)(label - p));
        if (t->owner_count > 1)
            hf_buffer_add(out, label + 1, (size_t)(after - label) - 1);
        p = after + 1;
    }
}

/* Append the shown events in order; between: text for the omitted events, or "". */
static void events_add(const struct trace *t, const char *between, struct hf_buffer *out)
{
    text_add(t, &t->first, out);
    hf_buffer_add_text(out, between);
    for (unsigned long long i = FIRST + omitted(t); i < t->count; i++)
        text_add(t, &t->newest[(i - FIRST) % NEWEST], out);
}

/* ---- A hold ---- */

static void hold_placed(struct trace *t, const struct hf_audit_entry *e, const struct hf_hold *h)
{
    if (h->reverses[0]) {
        event(t, e, "made by %s as a reversal: gives the unit of hold %s back to resource %s",
              by_whom(e).text, h->reverses, hf_audit_show(h->resource).text);
        return;
    }
    if (h->reacquires[0]) {
        event(
            t, e,
            "made and confirmed by %s, whose payment for hold %s came late: a unit of resource %s, "
            "requester %s",
            by_whom(e).text, h->reacquires, hf_audit_show(h->resource).text,
            hf_audit_show(h->requester).text);
        return;
    }
    event(t, e,
          "placed by %s for %s: resource %s, requester %s, held until %s; the key is bound %s",
          by_whom(e).text,
          hf_audit_for((int64_t)((uint64_t)h->expires_at - (uint64_t)h->placed_at)).text,
          hf_audit_show(h->resource).text, hf_audit_show(h->requester).text,
          hf_audit_at(h->expires_at).text, hf_audit_until(e->expires_at).text);
}

static void hold_row(struct trace *t, const struct hf_audit_entry *e, const struct hf_hold *h)
{
    bool held = h->state == HF_HELD;
    if (held || e->action == HF_REVERSE || h->reacquires[0])
        hold_placed(t, e, h);
    else if (e->action == HF_SWEEP)
        event(t, e, "expired by the sweeper: it was overdue since %s",
              hf_audit_at(h->expires_at).text);
    else if (hf_action_of(e->action)->overdue && h->state == HF_EXPIRED)
        event(t, e, "expired by the %s of %s: it was overdue since %s", hf_action_name(e->action),
              by_whom(e).text, hf_audit_at(h->expires_at).text);
    else
        event(t, e, "%s by %s", hf_audit_state_name(h->state), by_whom(e).text);
    t->state = h->state;
    t->state_at = held ? h->placed_at : h->ended_at;
    t->hold_expires_at = h->expires_at;
}

static void hold_entry(struct trace *t, const struct hf_audit_entry *e)
{
    for (size_t i = 0; i < e->row_count; i++) {
        const struct hf_hold *h = &t->rows[i].hold;
        if (t->rows[i].kind != HF_ROW_HOLD)
            continue;
        if (strcmp(h->id, t->id) == 0) {
            hold_row(t, e, h);
        } else if (strcmp(h->reverses, t->id) == 0) {
            event(t, e, "reversed by %s: reversal %s; this hold stays confirmed", by_whom(e).text,
                  h->id);
            t->reversed = true;
        } else if (strcmp(h->reacquires, t->id) == 0) {
            event(t, e, "reacquired by %s: hold %s; this hold stays expired", by_whom(e).text,
                  h->id);
        }
    }
    bool acts =
        (e->action >= HF_CONFIRM && e->action <= HF_REVERSE) || e->action == HF_CONFIRM_LATE;
    if (acts && e->status != HF_OK && e->digest &&
        memcmp(e->digest, t->digest, HF_DIGEST_SIZE) == 0)
        event(t, e,
              "%s by %s refused: %s; nothing was changed, and a retry gets the same answer %s",
              hf_action_name(e->action), by_whom(e).text, hf_status_code(e->status),
              hf_audit_until(e->expires_at).text);
}

/* ---- A key ---- */

static void key_used(struct trace *t, const struct hf_audit_entry *e)
{
    struct hf_audit_row answer;
    char led[128] = "";
    if (hf_audit_answer_read(e, t->rows, &answer) && answer.kind == HF_ROW_HOLD)
        snprintf(led, sizeof led, ", hold %s, %s", answer.hold.id,
                 hf_audit_state_name(answer.hold.state));
    owner_of(t, e->tenant)->key_until = e->expires_at;
    event(t, e, "%s by %s answered %s%s; every retry %s gets the same answer and changes nothing",
          hf_action_name(e->action), by_whom(e).text, hf_status_code(e->status), led,
          e->remember == HF_REMEMBER_SEQUENCE ? "while the number is in the client's window"
                                              : hf_audit_until(e->expires_at).text);
}

static void key_claim(struct trace *t, const struct hf_audit_entry *e, const struct hf_claim *c)
{
    if (c->state == HF_CLAIM_STARTED)
        event(t, e, "claim %s: started with fence %llu, lease until %s", hf_action_name(e->action),
              (unsigned long long)c->fence, hf_audit_at(c->lease_expires_at).text);
    else
        event(t, e, "claim %s: %s under fence %llu, remembered until %s", hf_action_name(e->action),
              hf_audit_claim_name(c->state), (unsigned long long)c->fence,
              c->expires_at ? hf_audit_at(c->expires_at).text : "it is settled");
    struct owner *owner = owner_of(t, e->tenant);
    owner->key_until = c->expires_at ? c->expires_at : INT64_MAX;
    owner->unsettled = c->expires_at == 0;
    owner->lease_until = c->lease_expires_at;
    owner->fence = c->fence;
    owner->on_abandon = c->on_abandon;
}

static void outbox_row(struct trace *t, const struct hf_audit_entry *e, const struct hf_outbox *row)
{
    char number[24] = "";
    if (!t->options->has_tenant) /* numbered over all tenants */
        snprintf(number, sizeof number, " %llu", (unsigned long long)row->number);
    event(t, e, "outbox row%s for topic %s, for delivery with this key", number,
          hf_audit_show(row->topic).text);
}

static void key_entry(struct trace *t, const struct hf_audit_entry *e)
{
    const struct hf_audit_trace_options *o = t->options;
    enum hf_remember wanted = o->sequence ? HF_REMEMBER_SEQUENCE : HF_REMEMBER_KEY;
    if (e->remember == wanted && e->sequence == o->sequence && hf_bytes_equal(e->key, t->name))
        key_used(t, e);
    for (size_t i = 0; i < e->row_count; i++) {
        const struct hf_audit_row *row = &t->rows[i];
        if (row->kind == HF_ROW_CLAIM && !o->sequence && hf_bytes_equal(row->claim.key, t->name))
            key_claim(t, e, &row->claim);
        else if (row->kind == HF_ROW_OUTBOX && !o->sequence &&
                 hf_bytes_equal(row->outbox.key, t->name))
            outbox_row(t, e, &row->outbox);
    }
}

/* ---- The whole ---- */

static void trace_batch(struct trace *t, const struct hf_audit_batch *batch)
{
    const struct hf_audit_trace_options *o = t->options;
    struct hf_audit_entry e;
    const char *problem;
    for (uint32_t at = 0; hf_audit_batch_entry(batch, &at, &e, &problem);) {
        if (problem || hf_audit_rows_read(&e, t->rows))
            continue;
        if (o->has_tenant && !hf_bytes_equal(o->tenant, e.tenant))
            continue;
        if (batch->now > t->as_of)
            t->as_of = batch->now;
        if (t->id[0])
            hold_entry(t, &e);
        else if (o->subject != HF_AUDIT_SUBJECT_HOLD)
            key_entry(t, &e);
    }
    if (!o->has_tenant && batch->now > t->as_of)
        t->as_of = batch->now;
}

/* Is the name an id? If the id key is known, only an id of this store counts. */
static void subject_find(struct trace *t, const struct hf_audit_journal *j)
{
    uint64_t ordinal;
    uint8_t raw[HF_ID_RAW];
    enum hf_audit_subject s = t->options->subject;
    if (s == HF_AUDIT_SUBJECT_KEY || !hf_id_pack(t->name, raw))
        return;
    if (s == HF_AUDIT_SUBJECT_GUESS && j->keys_known && !hf_audit_id_read(j, t->name, &ordinal))
        return;
    hf_id_unpack(raw, t->id);
    hf_audit_digest_id(t->id, t->digest);
}

/* An unsettled claim: is a worker in progress, or is the outcome unknown? */
static void claim_summary(const struct owner *o, hf_time now, struct hf_buffer *b)
{
    if (now < o->lease_until) {
        hf_buffer_printf(b, "bound until its claim is settled; the lease runs until %s",
                         hf_audit_at(o->lease_until).text);
        return;
    }
    hf_buffer_printf(b,
                     "the lease ran out before the claim was settled, so the outcome is unknown "
                     "since %s; bound until the claim is settled with fence %llu%s",
                     hf_audit_at(o->lease_until).text, o->fence,
                     o->on_abandon == HF_ABANDON_RETRY ? " or begun again (on_abandon is retry)"
                                                       : "");
}

/* What the key of one tenant stands for; its tenant is named if there are several. */
static void key_summary(const struct trace *t, const struct owner *o, struct hf_buffer *b)
{
    hf_time now = o->unsettled && t->options->now > t->as_of ? t->options->now : t->as_of;
    hf_buffer_printf(b, "As of %s", hf_audit_at(now).text);
    if (t->owner_count > 1)
        hf_buffer_printf(b, ", %s", owner_label(owner_name(o)).text);
    hf_buffer_add_text(b, ": ");
    if (t->options->sequence)
        hf_buffer_printf(b, "bound until the client's highest number is %llu",
                         (unsigned long long)t->options->sequence + HF_SEQUENCE_WINDOW);
    else if (o->unsettled)
        claim_summary(o, now, b);
    else if (now < o->key_until)
        hf_buffer_printf(b, "bound %s", hf_audit_until(o->key_until).text);
    else
        hf_buffer_printf(b, "free; its window closed at %s", hf_audit_at(o->key_until).text);
}

static void hold_summary(const struct trace *t, struct hf_buffer *b)
{
    hf_buffer_printf(b, "As of %s: ", hf_audit_at(t->as_of).text);
    if (t->state == HF_HELD)
        hf_buffer_printf(b, "held%s", t->as_of >= t->hold_expires_at ? ", and overdue" : "");
    else if (t->state == 0)
        hf_buffer_add_text(b, "the hold itself has no record");
    else
        hf_buffer_printf(b, "%s since %s%s", hf_audit_state_name(t->state),
                         hf_audit_at(t->state_at).text, t->reversed ? ", and reversed" : "");
}

/* A line for each tenant that has the key. */
static void summary(const struct trace *t, struct hf_buffer *b)
{
    size_t shown = t->id[0] ? 0 : t->owner_count;
    if (t->id[0])
        hold_summary(t, b);
    if (shown > OWNERS_SHOWN)
        shown = OWNERS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        hf_buffer_add_text(b, i > 0 ? "\n" : "");
        key_summary(t, &t->owners[i], b);
    }
    if (!t->id[0] && t->owner_count > shown)
        hf_buffer_printf(b, "\n... %s more; name one with --tenant",
                         hf_audit_count(t->owner_count - shown, "tenant", "tenants").text);
    if (t->damages)
        hf_buffer_printf(b, " (the journal is damaged: lost events are not shown)");
}

/* The hold, key or number, and its tenant unless that is the default one:
 * `Key "a" of tenant "shop"`. */
static void title(const struct trace *t, struct hf_buffer *b)
{
    if (t->options->sequence)
        hf_buffer_printf(b, "Number %llu of client ", (unsigned long long)t->options->sequence);
    else
        hf_buffer_add_text(b, t->id[0] ? "Hold " : "Key ");
    hf_buffer_add_text(b, t->id[0] ? t->id : hf_audit_show(t->name).text);
    if (t->owner_count == 1 && t->owners[0].size > 0)
        hf_buffer_printf(b, " of %s", owner_label(owner_name(t->owners)).text);
    hf_buffer_printf(b, ": %s", hf_audit_count(t->count, "event", "events").text);
    if (t->owner_count > 1)
        hf_buffer_printf(b, " in %s", hf_audit_count(t->owner_count, "tenant", "tenants").text);
}

static bool print_text(const struct trace *t, struct hf_buffer *b)
{
    char between[160] = "";
    if (t->count == 0)
        return true;
    if (omitted(t) > 0)
        snprintf(between, sizeof between, "... %s not shown. `holdfast export` has all of them.\n",
                 hf_audit_count(omitted(t), "event", "events").text);
    title(t, b);
    hf_buffer_add_text(b, "\n\n");
    events_add(t, between, b);
    hf_buffer_add_char(b, '\n');
    summary(t, b);
    hf_buffer_add_char(b, '\n');
    return !b->failed;
}

/* The tenants that have events, up to OWNERS_SHOWN; of a key with what it stands for now. */
static void tenants_json(const struct trace *t, struct hf_json *j)
{
    struct hf_buffer words = { 0 };
    hf_json_name(j, "tenants");
    hf_json_array(j);
    for (size_t i = 0; i < t->owner_count && i < OWNERS_SHOWN; i++) {
        hf_json_object(j);
        hf_json_name(j, "tenant");
        hf_json_opaque(j, owner_name(&t->owners[i]));
        hf_json_name(j, "events");
        hf_json_uint(j, t->owners[i].count);
        if (!t->id[0]) {
            hf_buffer_reset(&words);
            key_summary(t, &t->owners[i], &words);
            hf_json_name(j, "summary");
            hf_json_bytes(j, hf_mem(words.data, words.size));
            j->out->failed |= words.failed;
        }
        hf_json_object_end(j);
    }
    hf_json_array_end(j);
    hf_buffer_free(&words);
}

static bool print_json(const struct trace *t, struct hf_buffer *b)
{
    struct hf_buffer words = { 0 };
    struct hf_json j = { .out = b };
    summary(t, &words);
    hf_json_object(&j);
    hf_json_name(&j, "kind");
    hf_json_text(&j, t->id[0] || t->options->subject == HF_AUDIT_SUBJECT_HOLD ? "hold" : "key");
    hf_json_name(&j, "name");
    hf_json_opaque(&j, t->name);
    hf_json_name(&j, "found");
    hf_json_bool(&j, t->count > 0);
    if (t->count > 0) {
        hf_json_name(&j, "as_of");
        hf_json_time(&j, t->as_of);
        hf_json_name(&j, "summary");
        hf_json_bytes(&j, hf_mem(words.data, words.size));
    }
    if (t->count > 0 && !t->options->has_tenant)
        tenants_json(t, &j);
    hf_json_name(&j, "damaged");
    hf_json_bool(&j, t->damages > 0);
    if (omitted(t) > 0) {
        hf_json_name(&j, "omitted");
        hf_json_uint(&j, omitted(t));
    }
    hf_json_name(&j, "events");
    hf_json_array(&j);
    events_add(t, "", b);
    hf_json_array_end(&j);
    hf_json_object_end(&j);
    hf_buffer_add_char(b, '\n');
    bool done = !b->failed && !words.failed;
    hf_buffer_free(&words);
    return done;
}

static bool print(const struct trace *t, FILE *out)
{
    struct hf_buffer b = { 0 };
    bool done = (t->options->json ? print_json(t, &b) : print_text(t, &b)) &&
                (b.size == 0 || fwrite(b.data, 1, b.size, out) == b.size) && fflush(out) == 0;
    hf_buffer_free(&b);
    return done;
}

static enum hf_status read_all(struct trace *t, struct hf_audit_reader *reader,
                               struct hf_error *why)
{
    for (;;) {
        struct hf_audit_batch batch;
        switch (hf_audit_reader_next(reader, &batch, why)) {
        case HF_AUDIT_BATCH:
        case HF_AUDIT_PART: trace_batch(t, &batch); break;
        case HF_AUDIT_WHOLE:
        case HF_AUDIT_WRITER: break;
        case HF_AUDIT_DAMAGE: t->damages++; break;
        case HF_AUDIT_FAILED: return why->status;
        case HF_AUDIT_END: return HF_OK;
        }
    }
}

/* Read the whole journal once; as a hold, if the name is an id and `as_key` is not set. */
static enum hf_status trace_pass(struct trace *t, const char *dir, bool as_key,
                                 struct hf_error *why)
{
    struct hf_audit_reader *reader;
    const char *postgres = t->options->postgres;
    enum hf_status st = postgres
                            ? hf_audit_reader_connect(postgres, t->options->timeline, &reader, why)
                            : hf_audit_reader_open(dir, &reader, why);
    if (st != HF_OK)
        return st;
    t->damages = 0;
    if (!as_key)
        subject_find(t, hf_audit_reader_journal(reader));
    st = read_all(t, reader, why);
    hf_audit_reader_close(reader);
    if (t->options->has_tenant && t->options->now > t->as_of)
        t->as_of = t->options->now;
    return st;
}

/* Drop the events. */
static void trace_reset(struct trace *t)
{
    hf_buffer_reset(&t->first);
    t->count = 0;
    t->owner_count = 0;
}

/* Read the journal, a second time if the id turns out to be a key. A tenant's refused calls on
 * another tenant's hold do not count: they would show that the hold exists. */
static enum hf_status trace_read(struct trace *t, const char *dir, struct hf_error *why)
{
    enum hf_status st = trace_pass(t, dir, false, why);
    bool known = t->state != 0 || t->reversed || (t->count > 0 && !t->options->has_tenant);
    if (st != HF_OK || !t->id[0] || known)
        return st;
    trace_reset(t);
    if (t->options->subject != HF_AUDIT_SUBJECT_GUESS)
        return HF_OK;
    t->id[0] = '\0'; /* not a hold; it may be a key */
    return trace_pass(t, dir, true, why);
}

static int trace_run(struct trace *t, const char *dir, FILE *out, struct hf_error *why)
{
    if (trace_read(t, dir, why) != HF_OK)
        return 3;
    if (!print(t, out)) {
        *why = (struct hf_error){
            HF_STORAGE_FAILURE,
            "The trace could not be written. Try again when there is disk space and memory."
        };
        return 3;
    }
    if (t->count > 0)
        return 0;
    char number[64] = "";
    if (t->options->sequence)
        snprintf(number, sizeof number, "request with number %llu of client",
                 (unsigned long long)t->options->sequence);
    const char *what = number[0]                                      ? number
                       : t->options->subject == HF_AUDIT_SUBJECT_HOLD ? "hold"
                       : t->options->subject == HF_AUDIT_SUBJECT_KEY  ? "key"
                                                                      : "hold or key";
    (void)hf_error_set(why, HF_NOT_KNOWN,
                       "No %s %s is in the journal%s. Check the spelling%s and the store.", what,
                       hf_audit_show(t->name).text, t->damages ? ", as far as it can be read" : "",
                       t->options->has_tenant ? ", the tenant" : "");
    return 1;
}

int hf_audit_trace(const char *dir, struct hf_bytes name,
                   const struct hf_audit_trace_options *options, FILE *out, struct hf_error *why)
{
    static const struct hf_audit_trace_options defaults;
    struct trace *t = calloc(1, sizeof *t);
    *why = (struct hf_error){ HF_NO_MEMORY, "Out of memory while reading the journal." };
    if (!t)
        return 3;
    t->options = options ? options : &defaults;
    t->name = name;
    int code = trace_run(t, dir, out, why);
    hf_buffer_free(&t->first);
    free(t->owners);
    for (size_t i = 0; i < NEWEST; i++)
        hf_buffer_free(&t->newest[i]);
    free(t);
    return code;
}

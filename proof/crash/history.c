/* The journal as a history, for the judge who shares nothing with the program: what was asked, out
 * of the ledgers; in which order and with what result, out of the journal; what was shown, and when
 * it was asked for and answered, out of the ledgers again.
 *
 * Only what changed something has an entry. Of the rest, the replays of the last sweep are told,
 * which came behind it all. */
#include "api/decode.h"
#include "api/encode.h"
#include "api/problem.h"
#include "audit/read.h"
#include "crash/check.h"
#include "judge/judge.h"
#include "support/test.h"
#include "json/stored.h"

#include <time.h>

/* All entries of a journal in memory, in an order in which they can have been decided.
 *
 * Of files that is the order of the journal. In a database many write at a time: transactions that
 * do not touch each other may take their time and their numbers in different orders. Those that do
 * are ordered by locks, and take both while they have them. So the order of times, and at the same
 * time of numbers, is one in which all can have happened one after the other, and in which nothing
 * stands before what had been answered when it was asked for. */

struct crash_entries {
    struct hf_audit_entry *all; /* owned; what they borrow is in `pages` */
    size_t count, room;
    struct hf_arena pages;
};

static bool wrong(struct hf_error *why, uint64_t position, const char *what)
{
    snprintf(why->text, sizeof why->text, "at %llu: %s", (unsigned long long)position, what);
    return false;
}

/* The entries of a batch, or the one entry of a part of it. */
static bool batch_keep(struct crash_entries *e, const struct hf_audit_batch *batch,
                       struct hf_error *why)
{
    struct hf_audit_batch copy = *batch;
    const char *problem = NULL;
    unsigned char *bytes = hf_arena_take(&e->pages, batch->bytes.size);
    assert_non_null(bytes);
    memcpy(bytes, batch->bytes.data, batch->bytes.size);
    copy.bytes = hf_mem(bytes, batch->bytes.size);
    for (uint32_t at = 0;; e->count++) {
        if (e->count == e->room) {
            e->room = e->room ? 2 * e->room : 4096;
            e->all = realloc(e->all, e->room * sizeof *e->all);
            assert_non_null(e->all);
        }
        if (!hf_audit_batch_entry(&copy, &at, &e->all[e->count], &problem))
            return true;
        if (problem)
            return wrong(why, batch->position, problem);
    }
}

static bool journal_keep(struct crash_entries *e, struct hf_audit_reader *reader,
                         struct hf_error *why)
{
    for (;;) {
        struct hf_audit_batch batch;
        switch (hf_audit_reader_next(reader, &batch, why)) {
        case HF_AUDIT_BATCH:
        case HF_AUDIT_PART:
            if (!batch_keep(e, &batch, why))
                return false;
            break;
        case HF_AUDIT_WHOLE:
        case HF_AUDIT_WRITER: break;
        case HF_AUDIT_DAMAGE: return wrong(why, 0, "damage");
        case HF_AUDIT_FAILED: return false;
        case HF_AUDIT_END: return true;
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct hf_audit_entry *x = a, *y = b;
    if (x->recorded_at != y->recorded_at)
        return x->recorded_at < y->recorded_at ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* The journal in the directory `dir`, or in the database `postgres` if that is not NULL. out:
 * owned, free with crash_entries_free whatever comes of it. False with `why` if it cannot be read,
 * or if there is damage in it. */
static bool crash_entries_read(const char *dir, const char *postgres, struct crash_entries *out,
                               struct hf_error *why)
{
    struct hf_audit_reader *reader = NULL;
    *out = (struct crash_entries){ .all = NULL };
    bool fine = (postgres ? hf_audit_reader_connect(postgres, 0, &reader, why)
                          : hf_audit_reader_open(dir, &reader, why)) == HF_OK &&
                journal_keep(out, reader, why);
    if (reader)
        hf_audit_reader_close(reader);
    if (fine && postgres)
        qsort(out->all, out->count, sizeof *out->all, by_time);
    return fine;
}

static void crash_entries_free(struct crash_entries *e)
{
    free(e->all);
    hf_arena_free(&e->pages);
}

struct telling {
    struct crash_check *k;
    struct crash_entries journal;
    struct crash_index index; /* positions: of the entry in `journal`, from 1 on */
    struct crash_op **begins; /* owned: all begins, by the claim's key */
    size_t begin_count;
    struct crash_op **counts; /* owned: all merges of the counter, by client and number */
    size_t count_count;
    struct judge *judge;
    struct hf_arena arena; /* what a request borrows from, and ... */
    struct text line;      /* ... the same */
    struct hf_buffer json;
    struct hf_audit_row rows[HF_AUDIT_ROWS_MAX];
    struct hf_item items[HF_MERGE_ITEMS_MAX];
    hf_time wall, last;
};

/* ---- What was asked ---- */

static void grant_request(struct telling *t, const struct crash_op *op, struct hf_request *out)
{
    char parts[3][48], ttl[16];
    const char *at[3];
    crash_op_name(op, parts[0]);
    snprintf(parts[1], sizeof parts[1], "%s", op->subject);
    crash_text(op->fields, "holder", parts[2], sizeof parts[2]);
    crash_text(op->fields, "ttl", ttl, sizeof ttl);
    for (size_t i = 0; i < 3; i++) {
        char *copy = hf_arena_take(&t->arena, sizeof parts[i]);
        assert_non_null(copy);
        at[i] = memcpy(copy, parts[i], sizeof parts[i]);
    }
    *out = (struct hf_request){ .action = HF_GRANT, .key = hf_str(at[0]) };
    out->lease.name = hf_str(at[1]);
    out->lease.holder = hf_str(at[2]);
    out->lease.ttl_ms = strtol(ttl, NULL, 10);
}

/* out: good until the next call. False after a complaint. */
static bool request_of(struct telling *t, const struct crash_op *op, struct hf_request *out)
{
    struct hf_api_fault why = { "" };
    const struct hf_call *call = NULL;
    hf_arena_reset(&t->arena);
    if (op->kind == CRASH_GRANT) {
        grant_request(t, op, out);
        return true;
    }
    t->line.size = 0;
    crash_op_line(op, &t->line);
    struct hf_bytes line = hf_mem(t->line.data, t->line.size - 1); /* without its end */
    return hf_api_decode_line(line, hf_str(""), &t->arena, out, &call, &why) == HF_OK ||
           crash_complain(t->k, "c%u-%u is not understood: %s", op->client, op->number, why.detail);
}

/* What the driver asked for before the clients began. */
static void furnishing(const struct hf_audit_row *row, struct hf_request *out)
{
    *out =
        (struct hf_request){ .action = row->kind == HF_ROW_GUARD ? HF_SET_GUARD : HF_SET_RESOURCE };
    if (row->kind == HF_ROW_GUARD) {
        bool folded = row->guard.name.size == strlen("folded");
        out->set_guard.name = row->guard.name;
        out->set_guard.window_ms = INT64_C(24) * 3600 * 1000;
        out->set_guard.on_unavailable = HF_FAIL_CLOSED;
        out->set_guard.match[0] = folded ? HF_MATCH_CASEFOLD : HF_MATCH_EXACT;
        out->set_guard.match[1] = HF_MATCH_HASH;
        out->set_guard.match_count = folded ? 2 : 0;
    } else {
        out->set_resource.name = row->resource.name;
        out->set_resource.capacity = CRASH_SHARED_CAPACITY;
    }
}

/* ---- What was decided ---- */

/* result: out; it borrows from the entry and from the telling. False after a complaint. */
static bool result_of(struct telling *t, const struct hf_audit_entry *e, struct hf_result *result)
{
    struct hf_audit_row row = { .kind = HF_ROW_CONFIG };
    struct hf_answer *a = &result->answer;
    bool keyed = e->digest != NULL, found = keyed && hf_audit_answer_read(e, t->rows, &row);
    *result = (struct hf_result){ .now = e->recorded_at, .answer = { .status = e->status } };
    if (keyed) {
        result->token = (struct hf_token){ .action = e->action,
                                           .status = e->status,
                                           .recorded_at = e->recorded_at,
                                           .expires_at = e->expires_at };
        memcpy(result->token.digest, e->digest, HF_DIGEST_SIZE);
    } else if (e->row_count > 0) {
        row = t->rows[0];
        found = true;
    }
    if (!found)
        return true;
    switch (row.kind) {
    case HF_ROW_HOLD: a->kind = HF_RECORD_HOLD, a->hold = row.hold; break;
    case HF_ROW_RESOURCE: a->kind = HF_RECORD_RESOURCE, a->resource = row.resource; break;
    case HF_ROW_GUARD: a->kind = HF_RECORD_GUARD, a->guard = row.guard; break;
    case HF_ROW_ENTRY: a->kind = HF_RECORD_SEEN; break; /* who is recorded was not seen before */
    case HF_ROW_CLAIM: a->kind = HF_RECORD_CLAIM, a->claim = row.claim; break;
    case HF_ROW_LEASE: a->kind = HF_RECORD_LEASE, a->lease = row.lease; break;
    case HF_ROW_REGISTER:
        a->kind = HF_RECORD_REGISTER;
        a->reg = row.reg;
        if (!hf_audit_value_read(&row.reg.value, t->items, HF_MERGE_ITEMS_MAX, &a->reg.value))
            return crash_complain(t->k, "a register's value in the journal is not well-formed");
        break;
    default:
        return crash_complain(t->k, "an entry of action %d has a row of kind %d", (int)e->action,
                              (int)row.kind);
    }
    return true;
}

/* ---- Whose entry ---- */

static const char *text_of(struct hf_bytes bytes, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)bytes.size, (const char *)bytes.data);
    return out;
}

/* The operation whose name is in these bytes. */
static struct crash_op *op_named_in(const struct telling *t, struct hf_bytes bytes)
{
    char text[80];
    const char *at = text_of(bytes, text, sizeof text);
    if (bytes.size > HF_STORED_HEAD &&
        memcmp(bytes.data, HF_STORED_JSON, 2) == 0) /* else it is a string, stored as it is */
        at = strchr(text_of(hf_mem((const char *)bytes.data + HF_STORED_HEAD,
                                   bytes.size - HF_STORED_HEAD),
                            text, sizeof text),
                    ':') +
             2;
    return crash_index_name(&t->index, at);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct crash_op *const *)a)->subject, (*(struct crash_op *const *)b)->subject);
}

/* The fence that a begin was given, as far as its client knows; 0: it does not. */
static uint64_t fence_of(const struct crash_op *op)
{
    return crash_op_done(op) ? (uint64_t)crash_number(op->body, "fence") : op->fence;
}

/* Who began it: the one that knows its fence, or else someone of whom nobody knows whether it
 * did. */
static struct crash_op *op_of_begin(const struct telling *t, const struct hf_claim *claim)
{
    struct crash_op wanted = { .kind = CRASH_BEGIN }, *key = &wanted, *perhaps = NULL;
    text_of(claim->key, wanted.subject, sizeof wanted.subject);
    struct crash_op **found = bsearch(&key, t->begins, t->begin_count, sizeof *t->begins, by_key);
    if (!found)
        return NULL;
    while (found > t->begins && by_key(found - 1, &key) == 0)
        found--;
    for (; found < t->begins + t->begin_count && by_key(found, &key) == 0; found++) {
        struct crash_op *op = *found;
        if (fence_of(op) == claim->fence)
            return op;
        /* it may have begun it, and again when the lease had run out before it heard of it */
        if (op->doubts)
            perhaps = op;
    }
    return perhaps;
}

/* What an operation has counted to; 0: it has not. */
static uint64_t counted(const struct crash_op *op)
{
    char name[CRASH_NAME_MAX];
    snprintf(name, sizeof name, "c%u", op->client);
    long long n = crash_number(op->fields, name);
    return op->kind == CRASH_MERGE && n > 0 ? (uint64_t)n : 0;
}

static int by_count(const void *a, const void *b)
{
    const struct crash_op *x = *(struct crash_op *const *)a, *y = *(struct crash_op *const *)b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    return (counted(x) > counted(y)) - (counted(x) < counted(y));
}

/* The merge that put in what nobody had told of before. */
static struct crash_op *op_of_merge(const struct telling *t, const struct hf_value *value)
{
    for (size_t i = 0; i < value->item_count; i++) {
        char name[CRASH_NAME_MAX], fields[64];
        struct crash_op *op =
            crash_index_name(&t->index, text_of(value->items[i].name, name, sizeof name));
        if (value->type == HF_TYPE_COUNTER) {
            struct crash_op wanted = { .kind = CRASH_MERGE }, *key = &wanted;
            wanted.client = (unsigned)strtoul(name + 1, NULL, 10);
            snprintf(fields, sizeof fields, "\"%s\":%llu", name,
                     (unsigned long long)value->items[i].up);
            snprintf(wanted.fields, sizeof wanted.fields, "%s", fields);
            struct crash_op **found =
                bsearch(&key, t->counts, t->count_count, sizeof *t->counts, by_count);
            op = found ? *found : NULL;
        }
        if (op && !t->index.positions[op->client][op->number])
            return op;
    }
    return NULL;
}

/* NULL: nobody asked for it. */
static struct crash_op *op_of(const struct telling *t, const struct hf_audit_entry *e,
                              const struct hf_result *result)
{
    char name[48];
    if (e->digest && e->sequence)
        return crash_index_sequence(&t->index, text_of(e->key, name, sizeof name), e->sequence);
    if (e->digest)
        return crash_index_name(&t->index, text_of(e->key, name, sizeof name));
    switch (e->action) {
    case HF_ADMIT: return op_named_in(t, t->rows[0].identity.result);
    case HF_BEGIN: return op_of_begin(t, &result->answer.claim);
    case HF_COMPLETE:
    case HF_FAIL: return op_named_in(t, result->answer.claim.response);
    case HF_MERGE: return op_of_merge(t, &result->answer.reg.value);
    default: return NULL;
    }
}

/* ---- Telling ---- */

static bool objects(struct telling *t, const struct crash_op *op, uint64_t position)
{
    const char *verdict = judge_verdict(t->judge);
    if (verdict && op)
        crash_complain(t->k, "the judge objects to c%u-%u, whose entry is at %llu: %s", op->client,
                       op->number, (unsigned long long)position, verdict);
    else if (verdict)
        crash_complain(t->k, "the judge objects: %s", verdict);
    return verdict != NULL;
}

/* Was the client told this very answer? */
static bool was_shown(struct telling *t, const struct crash_op *op, enum hf_action action,
                      const struct hf_answer *answer)
{
    struct hf_json j = { .out = &t->json };
    hf_buffer_reset(&t->json);
    hf_api_answer(&j, action, answer);
    return (int)hf_api_answer_status(action, answer) == op->status &&
           strcmp(hf_buffer_text(&t->json), op->body) == 0;
}

/* When it was asked for and answered, so that the judge can compare that with the order of the
 * journal. Who began a claim in doubt may be a guess, and the times of a guess prove nothing. */
static void times_tell(struct telling *t, const struct crash_op *op, const struct hf_result *result,
                       uint64_t number)
{
    uint64_t late = t->k->late && op->client == 0 ? CRASH_LATE_NS : 0;
    if (op->kind == CRASH_BEGIN && fence_of(op) != result->answer.claim.fence)
        return;
    t->k->timed++;
    judge_timed(t->judge, number, op->called_ns - late,
                op->answered_ns ? op->answered_ns - late : 0);
}

static bool entry_tell(struct telling *t, size_t place)
{
    const struct hf_audit_entry *e = &t->journal.all[place];
    struct hf_request request;
    struct hf_result result;
    struct crash_op *op = NULL;
    const char *problem = hf_audit_rows_read(e, t->rows);
    if (problem)
        return crash_complain(t->k, "an entry at %llu: %s", (unsigned long long)e->position,
                              problem);
    if (e->action == HF_SWEEP || e->action == HF_CONFIGURE ||
        (t->k->hush && e->action == HF_RELEASE))
        return true;
    if (!result_of(t, e, &result))
        return false;
    if (e->action == HF_SET_RESOURCE || e->action == HF_SET_GUARD) {
        furnishing(&t->rows[0], &request);
    } else {
        op = op_of(t, e, &result);
        if (!op)
            return crash_complain(t->k, "the entry at %llu (%s) was asked for by nobody",
                                  (unsigned long long)e->position, hf_action_name(e->action));
        if (!request_of(t, op, &request))
            return false;
    }
    t->last = e->recorded_at;
    t->k->judged++;
    uint64_t number =
        judge_decided(t->judge, t->wall, JUDGE_FAIR, &request, NULL, e->status, &result);
    if (objects(t, op, e->position) || !op)
        return !op && !t->k->complaint[0];
    t->index.positions[op->client][op->number] = place + 1;
    if (was_shown(t, op, e->action, &result.answer))
        judge_shown(t->judge, number, e->status, &result);
    else if (crash_calls[op->kind].keyed || op->doubts == 0)
        return crash_complain(t->k, "c%u-%u was told %d %s, and the journal has %s", op->client,
                              op->number, op->status, op->body, hf_buffer_text(&t->json));
    times_tell(t, op, &result, number);
    return !objects(t, op, e->position);
}

static bool journal_tell(struct telling *t)
{
    bool fine = true;
    for (size_t i = 0; i < t->journal.count && fine; i++)
        fine = entry_tell(t, i);
    return fine;
}

/* At the end each client has asked for everything with a key again, and was answered the same. */
static bool replays_tell(struct telling *t)
{
    for (unsigned c = 0; c < t->k->clients; c++)
        for (size_t i = 0; i < t->k->ledgers[c].count; i++) {
            struct crash_op *op = t->k->ledgers[c].ops[i];
            struct hf_request request;
            struct hf_result result;
            uint64_t place = t->index.positions[c][i];
            if (!crash_calls[op->kind].keyed || op->sequence)
                continue;
            const struct hf_audit_entry *e = place ? &t->journal.all[place - 1] : NULL;
            if (!e || hf_audit_rows_read(e, t->rows))
                return crash_complain(t->k, "there is no entry of c%u-%zu", c, i);
            if (!result_of(t, e, &result) || !request_of(t, op, &request))
                return false;
            result.now = t->last;
            result.replayed = true;
            t->k->judged++;
            uint64_t number =
                judge_decided(t->judge, t->wall, JUDGE_FAIR, &request, NULL, e->status, &result);
            judge_shown(t->judge, number, e->status, &result);
            if (objects(t, op, e->position))
                return false;
        }
    return true;
}

/* ---- What is there at the end ---- */

/* All of a list, one page behind the other. rows: out, owned; the bytes in it are those of `pages`,
 * which stay. */
struct listed {
    struct hf_page *pages; /* owned */
    size_t page_count;
    char *rows; /* owned */
    size_t count;
};

static bool list_all(struct telling *t, struct hf_db *db, struct hf_query query, size_t size,
                     struct listed *out)
{
    query.limit = HF_LIST_MAX;
    do {
        out->pages = realloc(out->pages, (out->page_count + 1) * sizeof *out->pages);
        assert_non_null(out->pages);
        struct hf_page *page = &out->pages[out->page_count];
        if (hf_list(db, &query, page) != HF_OK)
            return crash_complain(t->k, "a list of the store cannot be had");
        out->page_count++;
        out->rows = realloc(out->rows, (out->count + page->count + 1) * size);
        assert_non_null(out->rows);
        memcpy(out->rows + out->count * size, page->rows, page->count * size);
        out->count += page->count;
        query.cursor = page->next_cursor;
    } while (query.cursor);
    return true;
}

static void listed_free(struct listed *l)
{
    for (size_t i = 0; i < l->page_count; i++)
        hf_page_clear(&l->pages[i]);
    free(l->pages);
    free(l->rows);
}

static bool view_tell(struct telling *t, struct hf_db *db)
{
    struct listed holds = { 0 }, resources = { 0 }, guards = { 0 }, entries = { 0 };
    struct hf_stats stats;
    bool fine =
        list_all(t, db, (struct hf_query){ .kind = HF_LIST_HOLDS }, sizeof(struct hf_hold),
                 &holds) &&
        list_all(t, db, (struct hf_query){ .kind = HF_LIST_RESOURCES }, sizeof(struct hf_resource),
                 &resources) &&
        list_all(t, db, (struct hf_query){ .kind = HF_LIST_GUARDS }, sizeof(struct hf_guard),
                 &guards) &&
        list_all(t, db, (struct hf_query){ .kind = HF_LIST_ENTRIES, .name = hf_str("plain") },
                 sizeof(struct hf_entry), &entries) &&
        list_all(t, db, (struct hf_query){ .kind = HF_LIST_ENTRIES, .name = hf_str("folded") },
                 sizeof(struct hf_entry), &entries);
    hf_stats(db, &stats);
    struct judge_view view = { .now = stats.now > t->last ? stats.now : t->last,
                               .holds = (const struct hf_hold *)(const void *)holds.rows,
                               .hold_count = holds.count,
                               .resources =
                                   (const struct hf_resource *)(const void *)resources.rows,
                               .resource_count = resources.count,
                               .guards = (const struct hf_guard *)(const void *)guards.rows,
                               .guard_count = guards.count,
                               .entries = (const struct hf_entry *)(const void *)entries.rows,
                               .entry_count = entries.count };
    if (fine)
        judge_looked(t->judge, &view);
    listed_free(&holds);
    listed_free(&resources);
    listed_free(&guards);
    listed_free(&entries);
    return fine && !objects(t, NULL, 0);
}

/* The store is opened by the library itself, without anything that would change it. */
static bool store_tell(struct telling *t)
{
    struct hf_options options = { .no_create = true,
                                  .no_background = true,
                                  .postgres = t->k->postgres };
    struct hf_error why;
    struct hf_db *db;
    if (hf_open(t->k->postgres ? NULL : t->k->server->data, &options, &db, &why) != HF_OK)
        return crash_complain(t->k, "the store cannot be opened: %s", why.text);
    bool fine = view_tell(t, db);
    hf_close(db);
    return fine;
}

/* ---- All of it ---- */

static void telling_begin(struct telling *t)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    t->wall = (hf_time)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
    t->judge = judge_new();
    judge_opened(t->judge,
                 &(struct judge_rules){ .idempotency_window_ms = INT64_C(24) * 3600 * 1000,
                                        .token_max_length = 256,
                                        .many = t->k->postgres != NULL });
    crash_index_make(t->k, &t->index);
    t->begins = crash_gather(t->k, 1 << CRASH_BEGIN, false, by_key, &t->begin_count);
    t->counts = crash_gather(t->k, 1 << CRASH_MERGE, false, by_count, &t->count_count);
}

bool crash_check_history(struct crash_check *k)
{
    struct telling *t = calloc(1, sizeof *t);
    struct hf_error why = { .text = "" };
    assert_non_null(t);
    t->k = k;
    telling_begin(t);
    bool fine = crash_entries_read(k->server->data, k->postgres, &t->journal, &why) ||
                crash_complain(k, "the journal cannot be read: %s", why.text);
    fine = fine && journal_tell(t) && replays_tell(t) && store_tell(t);
    crash_entries_free(&t->journal);
    judge_free(t->judge);
    crash_index_free(&t->index);
    hf_arena_free(&t->arena);
    hf_buffer_free(&t->json);
    free(t->line.data);
    free(t->begins);
    free(t->counts);
    free(t);
    return fine;
}

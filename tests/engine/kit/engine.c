#define _GNU_SOURCE
#include "engine/kit/engine.h"

#include "engine/kit/both.h"
#include "support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>

void kit_unwanted(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

static void on_fatal(void *arg, const char *sentence)
{
    struct kit *k = arg;
    (void)sentence;
    atomic_fetch_add(&k->fatal, 1);
}

static void on_note(void *arg, int level, const char *line)
{
    struct kit *k = arg;
    if (level < 1)
        return;
    atomic_fetch_add(&k->warnings, 1);
    snprintf(k->note, sizeof k->note, "%s", line);
}

struct kit *kit_make(void)
{
    struct kit *k = calloc(1, sizeof *k);
    assert_non_null(k);
    k->dir = test_dir_make();
    test_io_init(&k->io);
    kit_at(k, 0);
    k->options = (struct hf_options){ .no_background = true,
                                      .segment_max_bytes = 2 << 20,
                                      .io = &k->io.io,
                                      .on_fatal = on_fatal,
                                      .on_note = on_note,
                                      .arg = k };
    k->remote = both_is_postgres();
    if (k->remote)
        k->options.postgres = postgres_conninfo(both_cluster());
    both_empty();
    kit_open(k);
    return k;
}

void kit_free(struct kit *k)
{
    hf_result_clear(&k->got);
    kit_close(k);
    if (k->remote)
        both_audit();
    test_dir_remove(k->dir);
    free(k);
}

void kit_open(struct kit *k)
{
    struct hf_error why;
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, &why);
    if (st != HF_OK)
        fail_msg("hf_open: %s: %s", hf_status_code(st), why.text);
}

void kit_close(struct kit *k)
{
    hf_close(k->db);
    k->db = NULL;
}

void kit_reopen(struct kit *k)
{
    kit_close(k);
    kit_open(k);
}

void kit_leave(struct kit *k)
{
    kit_close(k);
    both_empty();
    test_dir_remove(k->dir);
    k->dir = test_dir_make();
}

void kit_at(struct kit *k, int64_t ms)
{
    atomic_store(&k->io.wall, KIT_START + ms);
}

void kit_settle(struct kit *k)
{
    int steps = 0;
    while (hf_maintain(k->db))
        assert_true(++steps < 100000);
}

/* How many rows there are, as one sees it who opens the store beside. */
static void count_rows(struct kit *k, struct hf_stats *stats)
{
    struct hf_options options = k->options;
    struct hf_stats now;
    struct hf_db *beside;
    options.no_background = true;
    assert_int_equal(hf_open(k->dir, &options, &beside, NULL), HF_OK);
    hf_stats(beside, &now);
    hf_close(beside);
    stats->tokens = now.tokens;
    stats->holds = now.holds;
    stats->holds_live = now.holds_live;
    stats->resources = now.resources;
    stats->guards = now.guards;
    stats->entries = now.entries;
    stats->claims = now.claims;
    stats->registers = now.registers;
    stats->outbox = now.outbox;
    stats->values = now.values;
}

struct hf_stats kit_stats(struct kit *k)
{
    struct hf_stats stats;
    hf_stats(k->db, &stats);
    if (k->remote && !k->options.no_background) /* they are read only every few seconds then */
        count_rows(k, &stats);
    return stats;
}

uint64_t kit_written(struct kit *k)
{
    if (k->remote)
        return (uint64_t)postgres_number(both_cluster(), "SELECT count(*) FROM holdfast.journal");
    return kit_stats(k).journal_bytes;
}

const char *kit_key(struct kit *k)
{
    static char keys[8][32];
    char *key = keys[k->keys % 8];
    snprintf(key, sizeof keys[0], "kit-%d", ++k->keys);
    return key;
}

/* ---- Actions ---- */

enum hf_status kit_do(struct kit *k, struct hf_request request)
{
    if (k->tenant)
        request.tenant = hf_str(k->tenant);
    return hf_do(k->db, &request, &k->got);
}

enum hf_status kit_place(struct kit *k, const char *key, const char *resource,
                         const char *requester, int64_t duration_ms)
{
    return kit_do(k, (struct hf_request){ .action = HF_PLACE_HOLD,
                                          .key = hf_str(key),
                                          .place_hold = { .resource = hf_str(resource),
                                                          .requester = hf_str(requester),
                                                          .duration_ms = duration_ms } });
}

enum hf_status kit_end(struct kit *k, enum hf_action action, const char *key, const char *id)
{
    return kit_do(
        k, (struct hf_request){ .action = action, .key = hf_str(key), .hold = { hf_str(id) } });
}

enum hf_status kit_resource(struct kit *k, const char *name, uint32_t capacity)
{
    return kit_do(
        k, (struct hf_request){ .action = HF_SET_RESOURCE,
                                .set_resource = { .name = hf_str(name), .capacity = capacity } });
}

enum hf_status kit_guard(struct kit *k, const char *name, int64_t window_ms,
                         const enum hf_match *match, uint32_t match_count)
{
    struct hf_request r = {
        .action = HF_SET_GUARD,
        .set_guard = { .name = hf_str(name), .window_ms = window_ms, .match_count = match_count }
    };
    for (uint32_t i = 0; i < match_count; i++)
        r.set_guard.match[i] = match[i];
    return kit_do(k, r);
}

enum hf_status kit_ask(struct kit *k, enum hf_action action, const char *guard,
                       const char *identity, const char *result)
{
    return kit_do(k, (struct hf_request){ .action = action,
                                          .identity = { .guard = hf_str(guard),
                                                        .identity = hf_str(identity),
                                                        .result = hf_str(result),
                                                        .has_result = result != NULL } });
}

enum hf_status kit_get(struct kit *k, enum hf_action action, const char *name)
{
    struct hf_request r = { .action = action };
    if (action == HF_GET_CLAIM || action == HF_GET_TOKEN)
        r.key = hf_str(name);
    else
        r.get.name = hf_str(name);
    return kit_do(k, r);
}

enum hf_status kit_get_hold(struct kit *k, const char *id)
{
    return kit_do(k, (struct hf_request){ .action = HF_GET_HOLD, .hold = { hf_str(id) } });
}

enum hf_status kit_begin(struct kit *k, const char *key, const char *payload, int64_t lease_ms,
                         enum hf_abandon on_abandon)
{
    return kit_do(k, (struct hf_request){ .action = HF_BEGIN,
                                          .key = hf_str(key),
                                          .begin = { .payload = hf_str(payload),
                                                     .lease_ms = lease_ms,
                                                     .on_abandon = on_abandon } });
}

enum hf_status kit_settle_claim(struct kit *k, enum hf_action action, const char *key,
                                uint64_t fence, const char *response, bool retryable)
{
    return kit_do(k, (struct hf_request){ .action = action,
                                          .key = hf_str(key),
                                          .settle = { .fence = fence,
                                                      .response = hf_str(response),
                                                      .retryable = retryable } });
}

enum hf_status kit_write(struct kit *k, unsigned count, size_t size, unsigned names)
{
    struct hf_request *requests = calloc(count, sizeof *requests);
    struct hf_result *results = calloc(count, sizeof *results);
    char(*texts)[2][32] = calloc(count, sizeof *texts);
    char *value = calloc(1, size + 1);
    assert_true(requests && results && texts && value);
    for (unsigned i = 0; i < count; i++) {
        snprintf(texts[i][0], sizeof texts[i][0], "kit-%d", ++k->keys);
        snprintf(texts[i][1], sizeof texts[i][1], "register-%u", i % names);
        requests[i] = (struct hf_request){ .action = HF_WRITE,
                                           .key = hf_str(texts[i][0]),
                                           .write = { .name = hf_str(texts[i][1]),
                                                      .value = hf_mem(value, size) } };
    }
    enum hf_status st = hf_do_many(k->db, requests, results, count);
    for (unsigned i = 0; i < count; i++) {
        if (st == HF_OK)
            st = results[i].answer.status;
        hf_result_clear(&results[i]);
    }
    free(value);
    free(texts);
    free(results);
    free(requests);
    return st;
}

void kit_held(struct kit *k, const char *resource, int64_t duration_ms, char id[HF_ID_SIZE])
{
    assert_int_equal(kit_place(k, kit_key(k), resource, "guest", duration_ms), HF_OK);
    memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
}

bool kit_is(struct hf_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

/* ---- Threads ---- */

static void *worker_main(void *arg)
{
    struct kit_worker *w = arg;
    w->work(w);
    return NULL;
}

void kit_run(struct kit_worker *workers, int count, void (*work)(struct kit_worker *w))
{
    pthread_t threads[64];
    assert_true(count <= 64);
    for (int i = 0; i < count; i++) {
        workers[i] = (struct kit_worker){ .number = i, .random = (uint64_t)i + 1, .work = work };
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- What can be seen ---- */

struct text {
    FILE *out;
    char *data;
    size_t size;
};

static void say(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(t->out, format, args);
    va_end(args);
}

static void say_bytes(struct text *t, struct hf_bytes b)
{
    const unsigned char *p = b.data;
    say(t, " %zu:", b.size);
    for (size_t i = 0; i < b.size; i++)
        say(t, p[i] >= ' ' && p[i] < 127 ? "%c" : "\\%02x", p[i]);
}

static void say_claim(struct text *t, const struct hf_claim *c)
{
    say(t, "claim %d %d %llu %lld %lld %lld %lld %lld", (int)c->state, (int)c->on_abandon,
        (unsigned long long)c->fence, (long long)c->lease_ms, (long long)c->begun_at,
        (long long)c->lease_expires_at, (long long)c->settled_at, (long long)c->expires_at);
    say_bytes(t, c->tenant);
    say_bytes(t, c->key);
    say_bytes(t, hf_mem(c->fingerprint, sizeof c->fingerprint));
    say_bytes(t, c->response);
}

static void say_row(struct text *t, enum hf_list_kind kind, const struct hf_page *page, size_t i)
{
    switch (kind) {
    case HF_LIST_HOLDS: {
        const struct hf_hold *h = &page->holds[i];
        say(t, "hold %s [%s] %llu %llu %d %lld %lld %lld", h->id, h->reverses,
            (unsigned long long)h->ordinal, (unsigned long long)h->previous, (int)h->state,
            (long long)h->placed_at, (long long)h->expires_at, (long long)h->ended_at);
        say_bytes(t, h->tenant);
        say_bytes(t, h->resource);
        say_bytes(t, h->requester);
        break;
    }
    case HF_LIST_RESOURCES: {
        const struct hf_resource *r = &page->resources[i];
        say(t, "resource %u %u %u %d %llu %llu %lld", r->capacity, r->held, r->confirmed, r->open,
            (unsigned long long)r->fence, (unsigned long long)r->newest, (long long)r->created_at);
        say_bytes(t, r->tenant);
        say_bytes(t, r->name);
        break;
    }
    case HF_LIST_GUARDS: {
        const struct hf_guard *g = &page->guards[i];
        say(t, "guard %lld %u %d %d %lld", (long long)g->window_ms, g->match_count,
            (int)g->on_unavailable, g->durable, (long long)g->created_at);
        for (uint32_t m = 0; m < g->match_count; m++)
            say(t, " m%d", (int)g->match[m]);
        say_bytes(t, g->tenant);
        say_bytes(t, g->name);
        break;
    }
    case HF_LIST_ENTRIES: {
        const struct hf_entry *e = &page->entries[i];
        say(t, "entry %lld %lld %d", (long long)e->recorded_at, (long long)e->expires_at,
            e->has_result);
        say_bytes(t, e->tenant);
        say_bytes(t, e->guard);
        say_bytes(t, e->identity);
        say_bytes(t, e->result);
        break;
    }
    case HF_LIST_CLAIMS: say_claim(t, &page->claims[i]); break;
    case HF_LIST_OUTBOX: {
        const struct hf_outbox *o = &page->outbox[i];
        say(t, "outbox %llu %d %lld", (unsigned long long)o->number, (int)o->state,
            (long long)o->created_at);
        say_bytes(t, o->tenant);
        say_bytes(t, o->key);
        say_bytes(t, o->topic);
        say_bytes(t, o->payload);
        break;
    }
    }
    say(t, "\n");
}

static void say_register(struct text *t, const struct hf_register *r)
{
    const struct hf_value *v = &r->value;
    say(t, "register %d %llu %llu %lld | %lld %d %lld", (int)v->type,
        (unsigned long long)r->version, (unsigned long long)r->fence, (long long)r->changed_at,
        (long long)v->number, v->flag, (long long)v->timestamp);
    say_bytes(t, r->tenant);
    say_bytes(t, r->name);
    say_bytes(t, v->node);
    say_bytes(t, v->bytes);
    for (size_t i = 0; i < v->item_count; i++) {
        say_bytes(t, v->items[i].name);
        say(t, " +%llu -%llu", (unsigned long long)v->items[i].up,
            (unsigned long long)v->items[i].down);
    }
}

static void say_lease(struct text *t, const struct hf_lease *l)
{
    say(t, "lease %llu %lld %lld %lld %lld", (unsigned long long)l->fence, (long long)l->ttl_ms,
        (long long)l->granted_at, (long long)l->expires_at, (long long)l->released_at);
    say_bytes(t, l->tenant);
    say_bytes(t, l->name);
    say_bytes(t, l->holder);
}

static void say_answer(struct text *t, const struct hf_answer *a)
{
    /* Pages point to their rows by pointers to non-const: a page is made of a copy. */
    struct hf_answer row = *a;
    struct hf_page page = { .count = 1 };
    switch (a->kind) {
    case HF_NO_RECORD: break;
    case HF_RECORD_HOLD:
        page.holds = &row.hold;
        say_row(t, HF_LIST_HOLDS, &page, 0);
        break;
    case HF_RECORD_RESOURCE:
        page.resources = &row.resource;
        say_row(t, HF_LIST_RESOURCES, &page, 0);
        break;
    case HF_RECORD_GUARD:
        page.guards = &row.guard;
        say_row(t, HF_LIST_GUARDS, &page, 0);
        break;
    case HF_RECORD_SEEN:
        say(t, "seen %d %d %lld %lld", a->seen.seen, a->seen.has_result,
            (long long)a->seen.recorded_at, (long long)a->seen.expires_at);
        say_bytes(t, a->seen.result);
        break;
    case HF_RECORD_CLAIM: say_claim(t, &a->claim); break;
    case HF_RECORD_LEASE: say_lease(t, &a->lease); break;
    case HF_RECORD_REGISTER: say_register(t, &a->reg); break;
    case HF_RECORD_VALUE: say_bytes(t, a->value); break;
    }
}

char *kit_answer_of(const struct hf_result *result)
{
    struct text t = { .out = NULL };
    t.out = open_memstream(&t.data, &t.size);
    assert_non_null(t.out);
    say(&t, "%s ", hf_status_code(result->answer.status));
    say_answer(&t, &result->answer);
    fclose(t.out);
    return t.data;
}

char *kit_answer(struct kit *k)
{
    return kit_answer_of(&k->got);
}

void kit_list(struct kit *k, const struct hf_query *query, struct hf_page *page)
{
    size_t limit = query->limit ? query->limit : 100;
    for (int tries = 0; tries < 1000; tries++) {
        enum hf_status st = hf_list(k->db, query, page);
        if (st != HF_OK)
            fail_msg("hf_list of kind %d: %s", (int)query->kind, hf_status_code(st));
        if (page->count == limit || page->next_cursor == 0)
            return;
        hf_page_clear(page);
    }
    fail_msg("hf_list gave a thousand short pages");
}

static void dump_list(struct kit *k, struct text *t, struct hf_query query)
{
    do {
        struct hf_page page;
        query.limit = HF_LIST_MAX;
        enum hf_status st = hf_list(k->db, &query, &page);
        if (st != HF_OK)
            fail_msg("hf_list of kind %d: %s", (int)query.kind, hf_status_code(st));
        for (size_t i = 0; i < page.count; i++) {
            say_row(t, query.kind, &page, i);
            if (query.kind == HF_LIST_GUARDS)
                dump_list(k, t,
                          (struct hf_query){ .kind = HF_LIST_ENTRIES,
                                             .tenant = query.tenant,
                                             .name = page.guards[i].name });
        }
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (query.cursor != 0);
}

char *kit_dump(struct kit *k, const char *const *tenants, size_t count)
{
    static const enum hf_list_kind kinds[] = { HF_LIST_HOLDS, HF_LIST_RESOURCES, HF_LIST_GUARDS,
                                               HF_LIST_OUTBOX, HF_LIST_CLAIMS };
    struct text t = { .out = NULL };
    t.out = open_memstream(&t.data, &t.size);
    assert_non_null(t.out);
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
            dump_list(k, &t, (struct hf_query){ .kind = kinds[n], .tenant = hf_str(tenants[i]) });
    fclose(t.out);
    return t.data;
}

/* ---- The directory ---- */

static bool ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Call `each` with the path of every file that ends with `suffix`; how many times it said yes. */
static size_t each_file(struct kit *k, const char *suffix,
                        bool (*each)(const char *path, void *arg), void *arg)
{
    size_t count = 0;
    DIR *d = opendir(k->dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char *path;
        if (e->d_name[0] == '.' || !ends_with(e->d_name, suffix))
            continue;
        assert_true(asprintf(&path, "%s/%s", k->dir, e->d_name) > 0);
        count += each(path, arg);
        free(path);
    }
    closedir(d);
    return count;
}

static bool count_it(const char *path, void *arg)
{
    (void)path;
    (void)arg;
    return true;
}

size_t kit_files(struct kit *k, const char *suffix)
{
    return each_file(k, suffix, count_it, NULL);
}

static bool remove_it(const char *path, void *arg)
{
    (void)arg;
    return remove(path) == 0;
}

size_t kit_remove(struct kit *k, const char *suffix)
{
    return each_file(k, suffix, remove_it, NULL);
}

static bool has_bytes(const char *path, void *arg)
{
    const struct hf_bytes *wanted = arg;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *all = malloc(size + 1);
    assert_non_null(all);
    assert_int_equal(fread(all, 1, size, f), size);
    fclose(f);
    bool found = memmem(all, size, wanted->data, wanted->size) != NULL;
    free(all);
    return found;
}

bool kit_on_disk(struct kit *k, const void *bytes, size_t size)
{
    struct hf_bytes wanted = { bytes, size };
    return k->remote ? both_stored(bytes, size) : each_file(k, "", has_bytes, &wanted) > 0;
}

/* The judge and the real library agree: random requests go through holdfast.h, in memory and in a
 * directory, with restarts and with crashes after which any beginning of the unanswered operations
 * may be left; the judge has no objection. */
#include "engine/kit/engine.h"
#include "judge/judge.h"
#include "support/test.h"

#include <time.h>

#define WINDOW INT64_C(2000)

static uint64_t first_seed, seed;
static struct kit *k;
static struct judge *j;
static struct judge_rules rules;
static hf_time latest; /* that the wall clock has said */
static bool real_time;

/* ---- Chance ---- */

static uint64_t below(uint64_t n)
{
    return test_below(&seed, n);
}

static struct hf_bytes pick(const char *stem, uint64_t n)
{
    static char texts[16][40];
    static unsigned turn;
    char *text = texts[turn++ % 16];
    snprintf(text, sizeof texts[0], "%s%llu", stem, (unsigned long long)below(n));
    return hf_str(text);
}

/* ---- Ids and fences that were seen, to ask for again ---- */

static char ids[32][HF_ID_SIZE];
static unsigned id_count;
static uint64_t fences[16];

static void remember(const struct hf_result *got)
{
    const struct hf_answer *a = &got->answer;
    if (a->status != HF_OK)
        return;
    if (a->kind == HF_RECORD_HOLD)
        memcpy(ids[id_count++ % 32], a->hold.id, HF_ID_SIZE);
    if (a->kind == HF_RECORD_CLAIM || a->kind == HF_RECORD_LEASE)
        fences[below(16)] = a->kind == HF_RECORD_CLAIM ? a->claim.fence : a->lease.fence;
}

static uint64_t some_fence(void)
{
    return below(8) ? fences[below(16)] : below(40);
}

/* ---- The function of an apply, and what it did ---- */

static struct judge_row rows[3];
static struct judge_intent intents[2];
static struct judge_effect effect;
static char texts[4][24];

static enum hf_status effect_of(struct hf_tx *tx, void *arg)
{
    (void)arg;
    effect.runs++;
    for (size_t i = 0; i < effect.row_count; i++) {
        if (rows[i].deleted)
            KIT_WANT(hf_tx_delete(tx, rows[i].key) == HF_OK);
        else
            KIT_WANT(hf_tx_put(tx, rows[i].key, rows[i].value) == HF_OK);
    }
    for (size_t i = 0; i < effect.outbox_count; i++)
        KIT_WANT(hf_tx_enqueue(tx, intents[i].topic, intents[i].payload) == HF_OK);
    KIT_WANT(hf_tx_result(tx, effect.result) == HF_OK);
    return effect.returned;
}

static void plan_effect(void)
{
    static const char *const keys[] = { "balance", "count", "x" };
    static const enum hf_status returned[] = {
        HF_OK, HF_OK, HF_OK, HF_REFUSED, HF_STORAGE_FAILURE, HF_NOT_KNOWN
    };
    effect =
        (struct judge_effect){ .rows = rows, .outbox = intents, .returned = returned[below(6)] };
    effect.row_count = below(4);
    effect.outbox_count = below(3);
    for (size_t i = 0; i < 4; i++)
        snprintf(texts[i], sizeof texts[i], "v%llu", (unsigned long long)below(1000));
    for (size_t i = 0; i < 3; i++) {
        rows[i] = (struct judge_row){ hf_str(keys[i]), hf_str(texts[i]), below(4) == 0 };
        if (rows[i].deleted)
            rows[i].value = hf_str("");
    }
    for (size_t i = 0; i < 2; i++)
        intents[i] = (struct judge_intent){ hf_str("mail"), hf_str(texts[i]) };
    effect.result = hf_str(texts[3]);
}

/* ---- Requests ---- */

static int64_t some_time(void)
{
    static const int64_t times[] = { 0, 50, 100, 100, 250, 500, 1000, 3000, -1 };
    return times[below(9)];
}

static struct hf_bytes some_id(void)
{
    if (id_count == 0 || below(30) == 0)
        return hf_str(below(2) ? "nobody" : "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    return hf_str(ids[below(id_count < 32 ? id_count : 32)]);
}

static struct hf_bytes some_identity(void)
{
    static const char *const all[] = { "ann",
                                       "Ann ",
                                       " ann",
                                       "b  b",
                                       "b b",
                                       "B b",
                                       "\xc3\x89t\xc3\xa9",   /* two letters with an accent */
                                       "\xc3\xa9t\xc3\xa9",   /* the same in lower case */
                                       "e\xcc\x81te\xcc\x81", /* the same, accents apart */
                                       "STRA\xc3\x9f",        /* a sharp s */
                                       "strass",
                                       "   ",
                                       "\xff",
                                       "",
                                       "\xc2\xb5",       /* the micro sign */
                                       "\xce\xbc",       /* a Greek mu */
                                       "a\xe2\x80\x80z", /* an en quad */
                                       "a\xe2\x80\x82z", /* an en space */
                                       "\xe2\x84\xaa",   /* the Kelvin sign */
                                       "k",
                                       "\xc2\xa0x" }; /* a no-break space */
    return hf_str(all[below(sizeof all / sizeof *all)]);
}

static struct hf_value some_value(struct hf_item items[3])
{
    struct hf_value v = { .type = (enum hf_register_type)(1 + below(10)),
                          .number = (int64_t)below(20) - 10,
                          .flag = below(3) == 0,
                          .timestamp = (int64_t)below(5),
                          .node = pick("n", 3),
                          .bytes = pick("b", 4),
                          .items = items,
                          .item_count = below(4) };
    for (size_t i = 0; i < 3; i++)
        items[i] = (struct hf_item){ pick("i", 5), below(9), below(9) };
    return v;
}

static void with_key(struct hf_request *r)
{
    static uint64_t high = 1;
    if (below(6) == 0) {
        high += below(3) == 0 ? below(40) : 1;
        r->client = pick("client", 2);
        r->sequence = below(3) ? high : high - (high > 300 ? below(300) : below(high));
    } else {
        r->key = below(3) ? pick("key", 60) : pick("fresh", 1000000);
    }
    if (below(200) == 0)
        r->key =
            hf_str(below(2) ? "" : "a key that is longer than the rules allow it to be, by far");
}

static struct hf_request holds(void)
{
    static const enum hf_action ends[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
    struct hf_request r = { .action = HF_PLACE_HOLD };
    uint64_t what = below(6);
    if (what < 2) {
        r.place_hold.resource = below(50) ? pick("room", 4) : hf_str("");
        r.place_hold.requester = pick("guest", 3);
        r.place_hold.duration_ms = some_time();
        r.place_hold.fence = below(5) ? 0 : below(60);
        with_key(&r);
    } else if (what < 4) {
        r.action = ends[below(4)];
        r.hold.id = some_id();
        with_key(&r);
    } else if (below(3)) {
        r.action = HF_GET_HOLD;
        r.hold.id = some_id();
    } else {
        r.action = HF_SET_RESOURCE;
        r.set_resource.name = pick("room", 5);
        r.set_resource.capacity = (uint32_t)below(4);
        r.set_resource.open = below(4) ? HF_SET_OPEN : HF_SET_CLOSED;
    }
    return r;
}

static struct hf_request some_guard(void)
{
    static const char *const names[] = { "guard0", "guard1", "guard2", "guard3", "guard4" };
    static const enum hf_match match[5][3] = { { HF_MATCH_EXACT },
                                               { HF_MATCH_TRIM, HF_MATCH_CASEFOLD },
                                               { HF_MATCH_NORMALIZE, HF_MATCH_HASH },
                                               { HF_MATCH_TRIM, HF_MATCH_CASEFOLD,
                                                 HF_MATCH_NORMALIZE },
                                               { HF_MATCH_HASH } };
    static const uint32_t counts[] = { 0, 2, 2, 3, 1 };
    uint64_t n = below(5);
    struct hf_request r = { .action = HF_SET_GUARD };
    r.set_guard.name = hf_str(names[n]);
    r.set_guard.window_ms = some_time();
    memcpy(r.set_guard.match, match[n], sizeof match[n]);
    r.set_guard.match_count = counts[n];
    r.set_guard.volatile_only = n == 4;
    return r;
}

static struct hf_request guards(void)
{
    static char result[32];
    if (below(8) == 0)
        return some_guard();
    struct hf_request r = { .action = (enum hf_action)(HF_CHECK + below(3)) };
    r.identity.guard = pick("guard", 6);
    r.identity.identity = some_identity();
    r.identity.has_result = below(2) == 0;
    snprintf(result, sizeof result, "result %llu", (unsigned long long)below(100));
    r.identity.result = hf_str(result);
    return r;
}

static struct hf_request claims(void)
{
    static const enum hf_action actions[] = { HF_COMPLETE, HF_FAIL, HF_HEARTBEAT };
    struct hf_request r = { .action = HF_BEGIN, .key = pick("key", 60) };
    if (below(3))
        r.key = pick("claim", 6);
    if (below(5) < 2) {
        r.begin.payload = pick("payload", 2);
        r.begin.lease_ms = some_time();
        r.begin.on_abandon = below(2) ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
    } else if (below(6) == 0) {
        r.action = below(2) ? HF_GET_CLAIM : HF_GET_TOKEN;
    } else {
        r.action = actions[below(3)];
        r.settle.fence = some_fence();
        r.settle.response = pick("response", 2);
        r.settle.retryable = below(2);
        r.settle.lease_ms = r.action == HF_HEARTBEAT ? some_time() : 0;
    }
    return r;
}

static struct hf_request leases(void)
{
    static const enum hf_action actions[] = { HF_GRANT, HF_RENEW, HF_RETURN, HF_GET_LEASE,
                                              HF_DELETE_LEASE };
    struct hf_request r = { .action = actions[below(5)] };
    if (r.action == HF_GET_LEASE) {
        r.get.name = pick("lease", 3);
        return r;
    }
    r.lease.name = pick("lease", 3);
    if (r.action == HF_DELETE_LEASE) {
        r.lease.fence = below(2) ? 0 : some_fence();
        with_key(&r);
        return r;
    }
    r.lease.ttl_ms = r.action == HF_RETURN ? 0 : some_time();
    if (r.action == HF_GRANT) {
        r.lease.holder = pick("holder", 3);
        with_key(&r);
    } else {
        r.lease.fence = some_fence();
    }
    return r;
}

static struct hf_request registers(void)
{
    static struct hf_item items[3];
    static struct hf_value value;
    static char name[24];
    struct hf_request r = { .action = HF_GET_REGISTER };
    uint64_t what = below(5);
    if (what == 0) {
        r.get.name = pick("register", 12);
    } else if (what < 3) {
        r.action = HF_WRITE;
        r.write.name = pick("register", 3);
        r.write.value = pick("value", 20);
        r.write.fence = below(2) ? 0 : some_fence();
        r.write.has_if_version = below(4) == 0;
        r.write.if_version = below(6);
        with_key(&r);
    } else if (what == 5) {
        r.action = HF_DELETE_REGISTER;
        r.write.name = pick("register", 12);
        r.write.fence = below(3) ? 0 : some_fence();
        r.write.has_if_version = below(4) == 0;
        r.write.if_version = below(6);
        with_key(&r);
    } else {
        value = some_value(items);
        snprintf(name, sizeof name, "register%d", below(10) ? (int)value.type + 2 : 1);
        r.action = HF_MERGE;
        r.merge.name = hf_str(name);
        r.merge.value = &value;
    }
    return r;
}

static struct hf_request applies(void)
{
    static const char *const keys[] = { "balance", "count", "x", "nothing" };
    struct hf_request r = { .action = HF_APPLY };
    if (below(3) == 0) {
        r.action = HF_GET_VALUE;
        r.get.name = hf_str(keys[below(4)]);
        return r;
    }
    r.apply.name = pick("effect", 2);
    r.apply.payload = pick("payload", 2);
    r.apply.fn = effect_of;
    with_key(&r);
    return r;
}

static struct hf_request reads(void)
{
    struct hf_request r = { .action = HF_GET_TOKEN };
    switch (below(4)) {
    case 0:
        r.action = HF_GET_RESOURCE;
        r.get.name = pick("room", 6);
        break;
    case 1:
        r.action = HF_GET_GUARD;
        r.get.name = pick("guard", 6);
        break;
    case 2: with_key(&r); break;
    default: r.key = pick("key", 60);
    }
    return r;
}

/* ---- Retries ---- */

#define KEPT 48

static struct {
    struct hf_request request;
    char text[5][80];
} kept[KEPT];
static unsigned kept_count;

static void keep_text(unsigned at, int slot, struct hf_bytes *bytes)
{
    assert_true(bytes->size <= sizeof kept[at].text[slot]);
    memcpy(kept[at].text[slot], bytes->size ? bytes->data : "", bytes->size);
    bytes->data = kept[at].text[slot];
}

/* Keep a request that has a key, to ask it again. */
static void keep(const struct hf_request *r)
{
    unsigned at = kept_count++ % KEPT;
    struct hf_request *q = &kept[at].request;
    *q = *r;
    keep_text(at, 0, &q->key);
    keep_text(at, 1, &q->client);
    switch (q->action) {
    case HF_PLACE_HOLD:
        keep_text(at, 2, &q->place_hold.resource);
        keep_text(at, 3, &q->place_hold.requester);
        break;
    case HF_GRANT:
        keep_text(at, 2, &q->lease.name);
        keep_text(at, 3, &q->lease.holder);
        break;
    case HF_DELETE_REGISTER: keep_text(at, 2, &q->write.name); break;
    case HF_DELETE_LEASE: keep_text(at, 2, &q->lease.name); break;
    case HF_WRITE:
        keep_text(at, 2, &q->write.name);
        keep_text(at, 3, &q->write.value);
        break;
    case HF_APPLY:
        keep_text(at, 2, &q->apply.name);
        keep_text(at, 3, &q->apply.payload);
        break;
    default: keep_text(at, 2, &q->hold.id);
    }
}

static bool has_key(enum hf_action action)
{
    return action <= HF_REVERSE || action == HF_GRANT || action == HF_WRITE || action == HF_APPLY ||
           action == HF_DELETE_REGISTER || action == HF_DELETE_LEASE;
}

static struct hf_request some_request(void)
{
    if (kept_count > 0 && below(4) == 0)
        return kept[below(kept_count < KEPT ? kept_count : KEPT)].request;
    static struct hf_request (*const makers[])(
        void) = { holds, holds, holds, guards, guards, claims, leases, registers, applies, reads };
    struct hf_request r = makers[below(10)]();
    r.tenant = hf_str(below(5) ? "" : "acme");
    if (has_key(r.action))
        keep(&r);
    return r;
}

/* ---- Telling ---- */

static void no_objection(void)
{
    if (judge_verdict(j))
        fail_msg("seed %llu: %s", (unsigned long long)first_seed, judge_verdict(j));
}

/* A store in memory has the machine's clock. */
static void tell_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    hf_time ms = (hf_time)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    latest = ms > latest ? ms : latest;
}

static void pass_time(void)
{
    static const int64_t steps[] = { 0, 0, 0, 0, 1, 49, 50, 50, 100, 250, 1000 };
    hf_time wall = atomic_load(&k->io.wall) + steps[below(11)];
    if (below(40) == 0)
        wall -= (hf_time)below(300); /* the wall clock steps back */
    atomic_store(&k->io.wall, wall);
    latest = wall > latest ? wall : latest;
}

static void do_one(struct hf_result *got, bool show)
{
    struct hf_request r = some_request();
    pass_time();
    plan_effect();
    enum hf_status st = hf_do(k->db, &r, got);
    if (real_time)
        tell_time();
    uint64_t n =
        judge_decided(j, latest, JUDGE_FAIR, &r, r.action == HF_APPLY ? &effect : NULL, st, got);
    if (show)
        judge_shown(j, n, st, got);
    remember(got);
    no_objection();
    if (below(5) == 0)
        hf_maintain(k->db);
}

/* ---- Looking ---- */

#define PAGES_MAX 256

struct sight {
    struct judge_view view;
    struct hf_page pages[PAGES_MAX];
    size_t page_count;
    void *arrays[5];
};

static void *add(struct sight *s, int kind, const struct hf_page *page, size_t size, size_t *have)
{
    s->arrays[kind] = realloc(s->arrays[kind], (*have + page->count + 1) * size);
    assert_non_null(s->arrays[kind]);
    if (page->count > 0)
        memcpy((char *)s->arrays[kind] + *have * size, page->rows, page->count * size);
    *have += page->count;
    return s->arrays[kind];
}

static void list(struct sight *s, struct hf_query q)
{
    struct judge_view *v = &s->view;
    q.limit = HF_LIST_MAX;
    do {
        assert_true(s->page_count < PAGES_MAX);
        struct hf_page *p = &s->pages[s->page_count++];
        assert_int_equal(hf_list(k->db, &q, p), HF_OK);
        switch (q.kind) {
        case HF_LIST_HOLDS: v->holds = add(s, 0, p, sizeof *v->holds, &v->hold_count); break;
        case HF_LIST_RESOURCES:
            v->resources = add(s, 1, p, sizeof *v->resources, &v->resource_count);
            break;
        case HF_LIST_GUARDS: v->guards = add(s, 2, p, sizeof *v->guards, &v->guard_count); break;
        case HF_LIST_ENTRIES: v->entries = add(s, 3, p, sizeof *v->entries, &v->entry_count); break;
        case HF_LIST_OUTBOX: v->outbox = add(s, 4, p, sizeof *v->outbox, &v->outbox_count); break;
        case HF_LIST_CLAIMS: break; /* with the machine's clock, a lease may end meanwhile */
        }
        q.cursor = p->next_cursor;
    } while (q.cursor != 0);
}

static hf_time engine_now(void)
{
    struct hf_result got = HF_RESULT_INIT;
    struct hf_request r = { .action = HF_GET_LEASE, .get = { hf_str("lease0") } };
    enum hf_status st = hf_do(k->db, &r, &got);
    assert_true(st == HF_OK || st == HF_NOT_KNOWN);
    hf_time now = got.now;
    hf_result_clear(&got);
    return now;
}

/* With the machine's clock, time passes while the lists are read: an identity whose window ended
 * meanwhile may be in its list or not. */
static void leave_out_what_ended(struct sight *s, hf_time begun)
{
    struct hf_entry *entries = s->arrays[3];
    size_t left = 0;
    for (size_t i = 0; i < s->view.entry_count; i++)
        if (entries[i].expires_at <= begun || entries[i].expires_at > s->view.now)
            entries[left++] = entries[i];
    s->view.entry_count = left;
}

static void look(struct sight *s)
{
    static const char *const tenants[] = { "", "acme" };
    hf_time begun = engine_now();
    memset(s, 0, sizeof *s);
    for (size_t t = 0; t < 2; t++) {
        struct hf_bytes tenant = hf_str(tenants[t]);
        size_t before = s->view.guard_count;
        for (int kind = HF_LIST_HOLDS; kind <= HF_LIST_OUTBOX; kind++)
            if (kind != HF_LIST_ENTRIES)
                list(s, (struct hf_query){ .kind = (enum hf_list_kind)kind, .tenant = tenant });
        for (size_t i = before; i < s->view.guard_count; i++)
            list(s, (struct hf_query){ .kind = HF_LIST_ENTRIES,
                                       .tenant = tenant,
                                       .name = s->view.guards[i].name });
    }
    s->view.now = engine_now();
    if (real_time)
        leave_out_what_ended(s, begun);
}

static void look_away(struct sight *s)
{
    for (size_t i = 0; i < s->page_count; i++)
        hf_page_clear(&s->pages[i]);
    for (size_t i = 0; i < 5; i++)
        free(s->arrays[i]);
}

static void look_and_tell(void)
{
    static struct sight s;
    look(&s);
    judge_looked(j, &s.view);
    look_away(&s);
    no_objection();
}

/* ---- Worlds ---- */

/* No power is cut here, so nothing has to reach the disk. */
static int no_sync(struct hf_file *file)
{
    (void)file;
    return 0;
}

static void begin(uint64_t with_seed, bool in_memory)
{
    first_seed = seed = with_seed;
    id_count = kept_count = 0;
    k = kit_make();
    real_time = in_memory;
    latest = in_memory ? 0 : atomic_load(&k->io.wall);
    kit_close(k);
    k->options.idempotency_window_ms = WINDOW;
    k->options.token_max_length = 40;
    k->options.segment_max_bytes = 4 << 20; /* an apply needs room for what it may do */
    k->options.snapshot_every_bytes = 256 << 10;
    rules = (struct judge_rules){ .idempotency_window_ms = WINDOW,
                                  .token_max_length = 40,
                                  .strict = below(4) == 0 };
    k->options.registry = rules.strict ? HF_REGISTRY_STRICT : HF_REGISTRY_OPEN;
    k->io.io.sync = no_sync;
    if (in_memory)
        assert_int_equal(hf_open(":memory:", &k->options, &k->db, NULL), HF_OK);
    else
        kit_open(k);
    j = judge_new();
    judge_opened(j, &rules);
}

static struct judge_count sum;

static void end(void)
{
    struct judge_count c = judge_counted(j);
    sum.operations += c.operations;
    sum.effects += c.effects;
    sum.replays += c.replays;
    sum.collisions += c.collisions;
    sum.refusals += c.refusals;
    sum.crashes += c.crashes;
    sum.in_doubt += c.in_doubt;
    sum.survived += c.survived;
    sum.lost += c.lost;
    judge_free(j);
    kit_free(k);
}

static void print_sum(void)
{
    printf("%llu operations: %llu effects, %llu replays, %llu collisions, %llu refusals; %llu "
           "crashes, %llu in doubt: %llu survived, %llu lost\n",
           (unsigned long long)sum.operations, (unsigned long long)sum.effects,
           (unsigned long long)sum.replays, (unsigned long long)sum.collisions,
           (unsigned long long)sum.refusals, (unsigned long long)sum.crashes,
           (unsigned long long)sum.in_doubt, (unsigned long long)sum.survived,
           (unsigned long long)sum.lost);
    /* Were these small, the agreement would mean little. */
    assert_true(sum.effects > sum.operations / 20 && sum.replays > sum.operations / 100);
    assert_true(sum.collisions > sum.operations / 100 && sum.refusals > sum.operations / 20);
    memset(&sum, 0, sizeof sum);
}

static int scale(int small, int full)
{
    const char *how = getenv("HF_SCALE");
    return how && strcmp(how, "full") == 0 ? full : small;
}

static void agree(uint64_t with_seed, bool in_memory, int operations)
{
    begin(with_seed, in_memory);
    struct hf_result got = HF_RESULT_INIT;
    for (int i = 0; i < operations; i++) {
        do_one(&got, true);
        if (i % 200 == 199)
            look_and_tell();
    }
    hf_result_clear(&got);
    end();
}

static void they_agree(void **state)
{
    (void)state;
    uint64_t first = test_seed("judge/library", 1000);
    for (int run = 0; run < scale(8, 60); run++)
        agree(first + (uint64_t)run, false, 2000);
    print_sum();
}

static void in_memory_they_agree(void **state)
{
    (void)state;
    agree(test_seed("judge/library", 1), true, 2000);
    print_sum();
}

static void reopen(void)
{
    if (below(3) == 0)
        rules.idempotency_window_ms = WINDOW / 2 + (int64_t)below(3) * WINDOW / 2;
    k->options.idempotency_window_ms = rules.idempotency_window_ms;
    kit_reopen(k);
    judge_opened(j, &rules);
}

static void over_restarts_they_agree(void **state)
{
    (void)state;
    uint64_t first = test_seed("judge/library", 2000);
    for (int run = 0; run < scale(3, 10); run++) {
        begin(first + (uint64_t)run, false);
        struct hf_result got = HF_RESULT_INIT;
        for (int i = 0; i < 600; i++) {
            do_one(&got, true);
            if (below(60) == 0)
                reopen();
            if (i % 100 == 99)
                look_and_tell();
        }
        hf_result_clear(&got);
        end();
    }
    print_sum();
}

static void copy_directory(const char *from, const char *to)
{
    char command[512];
    int n = snprintf(command, sizeof command, "cp -r '%s/.' '%s/'", from, to);
    assert_true(n > 0 && (size_t)n < sizeof command);
    assert_int_equal(system(command), 0);
}

/* Do more operations than the disk will have, then lose the machine. */
static void crash(struct hf_result *got)
{
    static struct sight s;
    unsigned before = (unsigned)below(10), after = (unsigned)below(12);
    for (unsigned i = 0; i < before; i++)
        do_one(got, below(8) == 0);
    char *copy = test_dir_make();
    copy_directory(k->dir, copy);
    for (unsigned i = 0; i < after; i++)
        do_one(got, false);
    kit_close(k);
    test_dir_remove(k->dir);
    k->dir = copy;
    judge_crashed(j);
    kit_open(k);
    look(&s);
    judge_recovered(j, &rules, &s.view);
    look_away(&s);
    no_objection();
}

static void over_crashes_they_agree(void **state)
{
    (void)state;
    uint64_t first = test_seed("judge/library", 3000);
    unsigned runs = (unsigned)scale(4, 20);
    for (unsigned run = 0; run < runs; run++) {
        begin(first + run, false);
        struct hf_result got = HF_RESULT_INIT;
        for (int i = 0; i < 25; i++) {
            for (uint64_t n = below(30); n > 0; n--)
                do_one(&got, true);
            crash(&got);
        }
        for (int i = 0; i < 300; i++)
            do_one(&got, true);
        look_and_tell();
        hf_result_clear(&got);
        end();
    }
    assert_true(sum.crashes == 25 * runs && sum.lost > 10 * runs && sum.survived > 5 * runs);
    print_sum();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_agree),
        cmocka_unit_test(in_memory_they_agree),
        cmocka_unit_test(over_restarts_they_agree),
        cmocka_unit_test(over_crashes_they_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

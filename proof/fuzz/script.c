/* Operations: bytes become requests to the library over files in memory, while the clock runs,
 * stands, jumps and steps back, and the store is closed and opened again. An independent judge, who
 * knows the rules alone, must have nothing to object to. */
#include "fuzz/support/script.h"
#include "fuzz/support/files.h"

#include <stdio.h>
#include <stdlib.h>

enum { OPERATIONS_MAX = 200, MAINTAIN_MAX = 16, PAGES = 5, TENANTS = 2, NAMES = 8 };
enum { SEGMENT = 21 * 65536 }; /* as much as an apply may ask for */

static const char *const tenants[TENANTS] = { "", "t" };

struct world {
    struct fuzz_script script;
    struct fuzz_files files;
    struct hf_db *db;
    struct judge *judge;
    struct judge_rules rules;
    hf_time latest; /* that the wall clock has said */
};

/* ---- Opening ---- */

static void on_fatal(void *arg, const char *sentence)
{
    (void)arg;
    (void)sentence;
    fuzz_unwanted("files in memory can be written", __FILE__, __LINE__);
}

static void world_open(struct world *w)
{
    const struct hf_options options = { .idempotency_window_ms = w->rules.idempotency_window_ms,
                                        .token_max_length = w->rules.token_max_length,
                                        .registry =
                                            w->rules.strict ? HF_REGISTRY_STRICT : HF_REGISTRY_OPEN,
                                        .segment_max_bytes = SEGMENT,
                                        .no_background = true,
                                        .io = &w->files.io,
                                        .on_fatal = on_fatal };
    struct hf_error why;
    FUZZ_WANT(hf_open("fuzz", &options, &w->db, &why) == HF_OK);
    judge_opened(w->judge, &w->rules);
}

/* ---- Looking ---- */

/* All that the lists show, of all tenants. */
struct look {
    struct hf_page pages[TENANTS][PAGES + NAMES];
    struct hf_hold holds[OPERATIONS_MAX];
    struct hf_resource resources[OPERATIONS_MAX];
    struct hf_guard guards[OPERATIONS_MAX];
    struct hf_entry entries[OPERATIONS_MAX];
    struct hf_outbox outbox[OPERATIONS_MAX * FUZZ_EFFECTS];
    struct hf_claim claims[OPERATIONS_MAX];
    struct judge_view view;
};

/* One page is all: there are fewer records than it may have. */
static const struct hf_page *list(struct world *w, struct hf_page *page,
                                  const struct hf_query *query)
{
    FUZZ_WANT(hf_list(w->db, query, page) == HF_OK && page->next_cursor == 0);
    return page;
}

#define TAKE(array, counter, page, member)                                                \
    do {                                                                                  \
        FUZZ_WANT((counter) + (page)->count <= sizeof(array) / sizeof *(array));          \
        if ((page)->count > 0)                                                            \
            memcpy((array) + (counter), (page)->member, (page)->count * sizeof *(array)); \
        (counter) += (page)->count;                                                       \
    } while (0)

static void look_tenant(struct world *w, struct look *l, size_t t)
{
    struct hf_query q = { .tenant = hf_str(tenants[t]), .limit = HF_LIST_MAX };
    const struct hf_page *page;
    struct hf_page *to = l->pages[t];
    q.kind = HF_LIST_HOLDS;
    page = list(w, to++, &q);
    TAKE(l->holds, l->view.hold_count, page, holds);
    q.kind = HF_LIST_RESOURCES;
    page = list(w, to++, &q);
    TAKE(l->resources, l->view.resource_count, page, resources);
    q.kind = HF_LIST_OUTBOX;
    page = list(w, to++, &q);
    TAKE(l->outbox, l->view.outbox_count, page, outbox);
    q.kind = HF_LIST_CLAIMS;
    page = list(w, to++, &q);
    TAKE(l->claims, l->view.claim_count, page, claims);
    q.kind = HF_LIST_GUARDS;
    page = list(w, to++, &q);
    TAKE(l->guards, l->view.guard_count, page, guards);
    q.kind = HF_LIST_ENTRIES;
    for (size_t i = 0; i < page->count && i < NAMES; i++) {
        q.name = page->guards[i].name;
        const struct hf_page *of_guard = list(w, to++, &q);
        TAKE(l->entries, l->view.entry_count, of_guard, entries);
    }
}

/* The engine's time, as a question is told it. */
static hf_time now_of(struct world *w)
{
    struct hf_result got = HF_RESULT_INIT;
    (void)!hf_do(w->db, &(struct hf_request){ .action = HF_GET_RESOURCE, .get = { hf_str("now") } },
                 &got);
    hf_time now = got.now;
    hf_result_clear(&got);
    return now;
}

static void look(struct world *w)
{
    struct look *l = calloc(1, sizeof *l);
    FUZZ_WANT(l);
    l->view = (struct judge_view){ .now = now_of(w),
                                   .holds = l->holds,
                                   .resources = l->resources,
                                   .guards = l->guards,
                                   .entries = l->entries,
                                   .outbox = l->outbox,
                                   .lists_claims = true,
                                   .claims = l->claims };
    for (size_t t = 0; t < TENANTS; t++)
        look_tenant(w, l, t);
    judge_looked(w->judge, &l->view);
    for (size_t t = 0; t < TENANTS; t++)
        for (size_t i = 0; i < PAGES + NAMES; i++)
            hf_page_clear(&l->pages[t][i]);
    free(l);
}

/* ---- Doing ---- */

static void operate(struct world *w)
{
    struct fuzz_script *s = &w->script;
    struct hf_result result = HF_RESULT_INIT;
    fuzz_script_next(s);
    enum hf_status status = hf_do(w->db, &s->request, &result);
    uint64_t number =
        judge_decided(w->judge, w->latest, JUDGE_FAIR, &s->request,
                      s->request.action == HF_APPLY ? &s->apply.effect : NULL, status, &result);
    judge_shown(w->judge, number, status, &result);
    fuzz_script_learn(s, &result);
    hf_result_clear(&result);
}

static void clock_set(struct world *w, hf_time wall)
{
    w->files.wall = wall;
    if (wall > w->latest)
        w->latest = wall;
}

static void again(struct world *w, uint8_t how)
{
    look(w);
    hf_close(w->db);
    w->rules.strict = how & 4;
    w->rules.idempotency_window_ms = how & 8 ? 1000 : 3600000;
    w->rules.token_max_length = how & 16 ? 2 : 256;
    world_open(w);
    look(w);
}

/* The first byte of a step says what it is; mostly an operation. */
static void step(struct world *w)
{
    uint8_t what = fuzz_u8(&w->script.in);
    if (what < 0xc0)
        operate(w);
    else if (what < 0xd0)
        clock_set(w, w->files.wall + fuzz_u16(&w->script.in));
    else if (what < 0xdc)
        clock_set(w, w->files.wall + fuzz_u8(&w->script.in) * INT64_C(60000));
    else if (what < 0xe0)
        clock_set(w, w->files.wall - fuzz_u16(&w->script.in));
    else if (what < 0xf0)
        for (unsigned i = 0; i < MAINTAIN_MAX && hf_maintain(w->db); i++)
            continue;
    else if (what < 0xf8)
        look(w);
    else
        again(w, fuzz_u8(&w->script.in));
}

static void objections(const struct world *w)
{
    const char *verdict = judge_verdict(w->judge);
    if (!verdict)
        return;
    fprintf(stderr, "the judge: %s\n", verdict);
    fuzz_unwanted("the judge has nothing to object to", __FILE__, __LINE__);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world *w = calloc(1, sizeof *w);
    FUZZ_WANT(w);
    w->script.in = (struct fuzz_input){ data, size };
    w->rules = (struct judge_rules){ .idempotency_window_ms = 3600000, .token_max_length = 256 };
    w->judge = judge_new();
    fuzz_files_init(&w->files);
    clock_set(w, w->files.wall);
    world_open(w);
    for (unsigned i = 0; i < OPERATIONS_MAX && w->script.in.left > 0; i++)
        step(w);
    look(w);
    objections(w);
    hf_close(w->db);
    fuzz_files_free(&w->files);
    judge_free(w->judge);
    free(w);
    return 0;
}

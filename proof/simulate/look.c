/* Everything that can be listed, for the judge. */
#include "simulate/world.h"

#include "base/assert.h"

#include <stdlib.h>

/* The rows of several pages in one run; the pages are kept, because the rows point into them. */
struct rows {
    unsigned char *data; /* owned */
    size_t size, count, room;
};

struct seen {
    struct rows holds, resources, guards, entries, outbox, claims;
    struct hf_page *pages; /* owned */
    size_t page_count, page_room;
    size_t lists; /* read so far */
    struct hf_arena arena;
};

static void rows_add(struct rows *r, const void *from, size_t count, size_t size)
{
    r->size = size;
    if (r->count + count > r->room) {
        size_t room = (r->count + count) * 2;
        unsigned char *data = realloc(r->data, room * size);
        HF_ASSERT(data);
        r->data = data;
        r->room = room;
    }
    if (count)
        memcpy(r->data + r->count * size, from, count * size);
    r->count += count;
}

static struct hf_page *page_new(struct seen *s)
{
    if (s->page_count == s->page_room) {
        size_t room = s->page_room ? s->page_room * 2 : 64;
        struct hf_page *pages = realloc(s->pages, room * sizeof *pages);
        HF_ASSERT(pages);
        s->pages = pages;
        s->page_room = room;
    }
    return &s->pages[s->page_count++];
}

static void seen_free(struct seen *s)
{
    for (size_t i = 0; i < s->page_count; i++)
        hf_page_clear(&s->pages[i]);
    free(s->pages);
    free(s->holds.data);
    free(s->resources.data);
    free(s->guards.data);
    free(s->entries.data);
    free(s->outbox.data);
    free(s->claims.data);
    hf_arena_free(&s->arena);
}

/* All pages of one list. */
static bool read_list(struct sim_world *w, struct hf_db *db, struct hf_query *query, struct seen *s,
                      struct rows *to, size_t size)
{
    struct sim_read read = { .list = s->lists++, .query = query };
    size_t before = to->count;
    do {
        struct hf_page *page = page_new(s);
        enum hf_status st = hf_list(db, query, page);
        if (st == HF_NOT_KNOWN && query->kind == HF_LIST_ENTRIES)
            return true; /* no such guard */
        sim_trace_number(&w->trace, st);
        if (st != HF_OK)
            return false;
        sim_trace_number(&w->trace, page->count);
        rows_add(to, page->rows, page->count, size);
        query->cursor = page->next_cursor;
    } while (query->cursor);
    read.rows = to->data ? to->data + before * size : NULL;
    read.count = to->count - before;
    return sim_pages_look(w, db, &read);
}

static bool read_tenant(struct sim_world *w, struct hf_db *db, uint32_t tenant, struct seen *s)
{
    struct {
        enum hf_list_kind kind;
        struct rows *rows;
        size_t size;
    } lists[] = {
        { HF_LIST_HOLDS, &s->holds, sizeof(struct hf_hold) },
        { HF_LIST_RESOURCES, &s->resources, sizeof(struct hf_resource) },
        { HF_LIST_GUARDS, &s->guards, sizeof(struct hf_guard) },
        { HF_LIST_OUTBOX, &s->outbox, sizeof(struct hf_outbox) },
        { HF_LIST_CLAIMS, &s->claims, sizeof(struct hf_claim) },
    };
    /* Sometimes small pages, so that a list of many is read, too. */
    uint32_t limit = w->calls % 5 == 0 ? 1 + (uint32_t)(w->calls / 5 % 40) : HF_LIST_MAX;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct hf_query query = { .kind = lists[i].kind,
                                  .tenant = sim_tenant(tenant),
                                  .limit = limit };
        if (!read_list(w, db, &query, s, lists[i].rows, lists[i].size))
            return false;
    }
    for (uint32_t g = 0; w->mix->weights[HF_ADMIT] && g < w->mix->things; g++) {
        struct hf_query query = { .kind = HF_LIST_ENTRIES,
                                  .tenant = sim_tenant(tenant),
                                  .limit = limit };
        query.name = sim_guard_name(w->mix, g, &s->arena);
        if (!read_list(w, db, &query, s, &s->entries, sizeof(struct hf_entry)))
            return false;
    }
    return true;
}

/* All of it is read at one time: no time passes meanwhile. */
static bool read_all(struct sim_world *w, struct hf_db *db, struct seen *s, hf_time *now)
{
    struct hf_stats before, after;
    bool read = true;
    w->frozen = true;
    hf_stats(db, &before);
    for (uint32_t t = 0; t < w->mix->tenants && read; t++)
        read = read_tenant(w, db, t, s);
    w->frozen = false;
    if (!read)
        return false;
    hf_stats(db, &after);
    *now = after.now;
    /* A list goes on past a record that cannot be read: then not all was seen. */
    return before.now == after.now && before.records_unreadable == after.records_unreadable;
}

static void view_make(const struct seen *s, hf_time now, struct judge_view *view)
{
    *view = (struct judge_view){ .now = now,
                                 .holds = (const void *)s->holds.data,
                                 .hold_count = s->holds.count,
                                 .resources = (const void *)s->resources.data,
                                 .resource_count = s->resources.count,
                                 .guards = (const void *)s->guards.data,
                                 .guard_count = s->guards.count,
                                 .entries = (const void *)s->entries.data,
                                 .entry_count = s->entries.count,
                                 .outbox = (const void *)s->outbox.data,
                                 .outbox_count = s->outbox.count,
                                 .lists_claims = true,
                                 .claims = (const void *)s->claims.data,
                                 .claim_count = s->claims.count };
}

enum sim_look sim_look(struct sim_world *w, struct hf_db *db, const struct judge_rules *recovered)
{
    struct seen seen = { .page_count = 0 };
    struct judge_view view;
    hf_time now;
    uint64_t slow_us = w->slow_us;
    w->slow_us = 0; /* all of it at one time */
    bool whole = read_all(w, db, &seen, &now) && !sim_disk_is_cut(w->disk);
    w->slow_us = slow_us;
    if (whole && now > sim_clock_latest(w))
        sim_fail(w, "engine time is %lld, and the clocks allow %lld at most", (long long)now,
                 (long long)sim_clock_latest(w));
    if (whole) {
        view_make(&seen, now, &view);
        if (recovered)
            judge_recovered(w->judge, recovered, &view);
        else
            judge_looked(w->judge, &view);
        if (now > w->told)
            w->told = now;
        w->out->looks++;
    }
    seen_free(&seen);
    return whole ? SIM_LOOK_OK : SIM_LOOK_FAULT;
}

size_t sim_overdue(struct sim_world *w)
{
    struct seen seen = { .page_count = 0 };
    size_t overdue = 0;
    hf_time now;
    if (read_all(w, w->db, &seen, &now)) {
        const struct hf_hold *holds = (const void *)seen.holds.data;
        for (size_t i = 0; i < seen.holds.count; i++)
            overdue += holds[i].state == HF_HELD && holds[i].expires_at <= now;
    }
    seen_free(&seen);
    return overdue;
}

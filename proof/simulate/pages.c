/* A client that reads a list in pages may read some of them before a restart of the store, and the
 * others after it. All rows that are there all the time must be in one of the pages, and in one
 * alone. */
#include "simulate/world.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"

#include <stdlib.h>

/* What a row has as long as it is the same row. */
static uint64_t row_id(enum hf_list_kind kind, const void *row)
{
    static const struct hf_sipkey key = { 1, 2 };
    unsigned char number[8] = { 0 };
    struct hf_bytes name = hf_mem(NULL, 0);
    switch (kind) {
    case HF_LIST_RESOURCES: name = ((const struct hf_resource *)row)->name; break;
    case HF_LIST_GUARDS: name = ((const struct hf_guard *)row)->name; break;
    case HF_LIST_OUTBOX: hf_put64(number, ((const struct hf_outbox *)row)->number); break;
    case HF_LIST_ENTRIES:
        name = ((const struct hf_entry *)row)->identity;
        hf_put64(number, (uint64_t)((const struct hf_entry *)row)->recorded_at);
        break;
    case HF_LIST_CLAIMS:
        name = ((const struct hf_claim *)row)->key;
        hf_put64(number, ((const struct hf_claim *)row)->fence);
        break;
    case HF_LIST_HOLDS: hf_put64(number, ((const struct hf_hold *)row)->ordinal); break;
    }
    return hf_siphash(&key, hf_mem(number, sizeof number), name);
}

/* Where the id stands, looked for from `from` on and round; `count` if nowhere. */
static size_t place_of(const uint64_t *ids, size_t count, uint64_t id, size_t from)
{
    for (size_t i = 0; i < count; i++)
        if (ids[(from + i) % count] == id)
            return (from + i) % count;
    return count;
}

static size_t row_size(enum hf_list_kind kind)
{
    switch (kind) {
    case HF_LIST_RESOURCES: return sizeof(struct hf_resource);
    case HF_LIST_GUARDS: return sizeof(struct hf_guard);
    case HF_LIST_OUTBOX: return sizeof(struct hf_outbox);
    case HF_LIST_ENTRIES: return sizeof(struct hf_entry);
    case HF_LIST_CLAIMS: return sizeof(struct hf_claim);
    case HF_LIST_HOLDS: break;
    }
    return sizeof(struct hf_hold);
}

static uint64_t *ids_of(enum hf_list_kind kind, const void *rows, size_t count)
{
    uint64_t *ids = malloc((count ? count : 1) * sizeof *ids);
    HF_ASSERT(ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = row_id(kind, (const unsigned char *)rows + i * row_size(kind));
    return ids;
}

/* The rows behind the mark. False if they cannot be read. */
static bool rest_read(struct hf_db *db, const struct hf_query *query, const struct sim_mark *mark,
                      uint64_t **out, size_t *count)
{
    struct hf_query from = *query;
    from.cursor = mark->cursor;
    from.limit = HF_LIST_MAX;
    *out = NULL;
    *count = 0;
    do {
        struct hf_page page;
        if (hf_list(db, &from, &page) != HF_OK)
            return false;
        uint64_t *ids = realloc(*out, (*count + page.count + 1) * sizeof *ids);
        HF_ASSERT(ids);
        *out = ids;
        for (size_t i = 0; i < page.count; i++)
            ids[(*count)++] =
                row_id(query->kind, (const unsigned char *)page.rows + i * row_size(query->kind));
        from.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (from.cursor);
    return true;
}

/* The rows that are still there must stand in the order of then, and behind the mark exactly those
 * that were there then. */
static void mark_check(struct sim_world *w, const struct hf_query *query,
                       const struct sim_mark *mark, const uint64_t *now, size_t now_count,
                       const uint64_t *rest, size_t rest_count)
{
    size_t at = 0, rest_at = 0;
    for (size_t i = 0; i < mark->count; i++) {
        size_t place = place_of(now, now_count, mark->ids[i], at);
        if (place == now_count)
            continue;
        if (place < at)
            sim_fail(w, "rows of a list (kind %d) have changed places", (int)query->kind);
        at = place;
        rest_at = place_of(rest, rest_count, mark->ids[i], rest_at);
        if (mark->cursor && (rest_at < rest_count) != (i >= mark->shown))
            sim_fail(w, "a list (kind %d) that is read in pages %s", (int)query->kind,
                     i < mark->shown ? "shows a row twice" : "leaves a row out");
        rest_at = rest_at < rest_count ? rest_at : 0;
    }
}

/* Leave the list behind some of its rows. False if it cannot be read. */
static bool mark_set(struct sim_world *w, struct hf_db *db, const struct hf_query *query,
                     struct sim_mark *mark)
{
    struct hf_query first = *query;
    struct hf_page page;
    mark->cursor = 0;
    if (mark->count < 2)
        return true;
    first.cursor = 0;
    first.limit = 1 + (uint32_t)(w->calls % (mark->count - 1));
    if (hf_list(db, &first, &page) != HF_OK)
        return false;
    mark->cursor = page.next_cursor;
    mark->shown = page.count;
    hf_page_clear(&page);
    return true;
}

bool sim_pages_look(struct sim_world *w, struct hf_db *db, const struct sim_read *read)
{
    const struct hf_query *query = read->query;
    if (query->kind == HF_LIST_HOLDS || db != w->db)
        return true; /* a list of holds passes over what cannot be read */
    if (read->list >= w->mark_count) {
        struct sim_mark *marks = realloc(w->marks, (read->list + 1) * sizeof *marks);
        HF_ASSERT(marks);
        memset(marks + w->mark_count, 0, (read->list + 1 - w->mark_count) * sizeof *marks);
        w->marks = marks;
        w->mark_count = read->list + 1;
    }
    struct sim_mark *mark = &w->marks[read->list];
    uint64_t *now = ids_of(query->kind, read->rows, read->count), *rest = NULL;
    size_t rest_count = 0;
    bool whole = !mark->cursor || rest_read(db, query, mark, &rest, &rest_count);
    if (whole)
        mark_check(w, query, mark, now, read->count, rest, rest_count);
    free(rest);
    free(mark->ids);
    mark->ids = now;
    mark->count = read->count;
    return mark_set(w, db, query, mark) && whole;
}

void sim_pages_free(struct sim_world *w)
{
    for (size_t i = 0; i < w->mark_count; i++)
        free(w->marks[i].ids);
    free(w->marks);
}

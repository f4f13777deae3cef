/* Rows that were made while a snapshot was written stood in another order after a restart. A list
 * that a client read in pages, some before the restart and some after it, then left rows out: up to
 * three of four identities. The snapshot had some of these rows; the others were made from the
 * journal, and put behind them.
 *
 * Here every list is read in pages before the restart, and from every one of their ends on after
 * it. */
#include "base/bytes.h"
#include "base/hash.h"
#include "engine/kit/engine.h"
#include "store/journal/format.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 8192, NAME = 24, LISTS = 5 };

/* One list as it was read before the restart. */
struct list {
    struct hf_query query;
    char names[ROWS_MAX][NAME];
    uint64_t cursors[ROWS_MAX]; /* behind the first so many rows, where a page ended; else 0 */
    size_t count;
};

static const struct
    hf_query
        queries
            [LISTS] = {
                { .kind = HF_LIST_RESOURCES }, { .kind = HF_LIST_GUARDS },
                { .kind = HF_LIST_OUTBOX },    { .kind = HF_LIST_ENTRIES },
                { .kind = HF_LIST_ENTRIES }, /* of the guards "kept" and "mixed" */
            };

static void name_of(const struct hf_page *page, enum hf_list_kind kind, size_t i, char out[NAME])
{
    struct hf_bytes name = hf_mem(NULL, 0);
    switch (kind) {
    case HF_LIST_RESOURCES: name = page->resources[i].name; break;
    case HF_LIST_GUARDS: name = page->guards[i].name; break;
    case HF_LIST_ENTRIES: name = page->entries[i].identity; break;
    case HF_LIST_OUTBOX:
        snprintf(out, NAME, "%llu", (unsigned long long)page->outbox[i].number);
        return;
    case HF_LIST_CLAIMS: name = page->claims[i].key; break;
    case HF_LIST_HOLDS: break;
    }
    assert_true(name.size > 0 && name.size < NAME);
    memcpy(out, name.data, name.size);
    out[name.size] = '\0';
}

/* The names from the cursor on. */
static size_t names_from(struct kit *k, struct hf_query query, uint64_t cursor, char out[][NAME])
{
    size_t count = 0;
    query.cursor = cursor;
    query.limit = HF_LIST_MAX;
    do {
        struct hf_page page;
        kit_list(k, &query, &page);
        for (size_t i = 0; i < page.count; i++) {
            assert_true(count < ROWS_MAX);
            name_of(&page, query.kind, i, out[count++]);
        }
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (query.cursor);
    return count;
}

/* In pages of `step` rows. */
static void list_read(struct kit *k, struct list *l, uint32_t step)
{
    struct hf_query query = l->query;
    query.limit = step;
    do {
        struct hf_page page;
        kit_list(k, &query, &page);
        assert_true(l->count + page.count < ROWS_MAX);
        for (size_t i = 0; i < page.count; i++)
            name_of(&page, query.kind, i, l->names[l->count++]);
        query.cursor = l->cursors[l->count] = page.next_cursor;
        hf_page_clear(&page);
    } while (query.cursor);
}

/* Identities that no journal has begin with a v, and leave with the restart. */
static bool stays(const char *name)
{
    return name[0] != 'v';
}

static void list_goes_on(struct kit *k, const struct list *l)
{
    static char rest[ROWS_MAX][NAME];
    for (size_t n = 0; n < l->count; n++) {
        if (n > 0 && !l->cursors[n])
            continue;
        size_t count = names_from(k, l->query, l->cursors[n], rest), at = 0;
        for (size_t i = n; i < l->count; i++) {
            if (!stays(l->names[i]))
                continue;
            if (at == count || strcmp(rest[at], l->names[i]) != 0)
                fail_msg("list %d of %zu, after %zu rows %s is missing; the rest has %zu, there %s",
                         (int)l->query.kind, l->count, n, l->names[i], count,
                         at < count ? rest[at] : "none");
            at++;
        }
        assert_int_equal(at, count);
    }
}

static struct list *lists_read(struct kit *k, uint32_t step)
{
    struct list *lists = calloc(LISTS, sizeof *lists);
    assert_non_null(lists);
    for (size_t i = 0; i < LISTS; i++) {
        lists[i].query = queries[i];
        lists[i].query.name = hf_str(i == 3 ? "kept" : i == 4 ? "mixed" : "");
        list_read(k, &lists[i], step);
    }
    return lists;
}

static void lists_go_on(struct kit *k, struct list *lists)
{
    for (size_t i = 0; i < LISTS; i++)
        list_goes_on(k, &lists[i]);
    free(lists);
}

/* ---- Rows ---- */

static enum hf_status enqueue(struct hf_tx *tx, void *arg)
{
    (void)arg;
    KIT_WANT(hf_tx_enqueue(tx, hf_str("topic"), hf_str("payload")) == HF_OK);
    return hf_tx_enqueue(tx, hf_str("topic"), hf_str("second"));
}

static void mixed_is(struct kit *k, bool in_memory)
{
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_SET_GUARD,
                                                    .set_guard = { .name = hf_str("mixed"),
                                                                   .window_ms = DAY,
                                                                   .volatile_only = in_memory } }),
                     HF_OK);
}

/* A row of every kind that is listed. Some identities are recorded again, because their window is
 * over. */
static void rows_make(struct kit *k, int number)
{
    char name[NAME], key[NAME];
    snprintf(name, sizeof name, "row%d", number);
    snprintf(key, sizeof key, "key%d", number);
    assert_int_equal(kit_resource(k, name, 5), HF_OK);
    assert_int_equal(kit_guard(k, name, HOUR, NULL, 0), HF_OK);
    assert_int_equal(
        kit_do(k, (struct hf_request){ .action = HF_APPLY,
                                       .key = hf_str(key),
                                       .apply = { .name = hf_str("two"), .fn = enqueue } }),
        HF_OK);
    snprintf(name, sizeof name, "id%d", number % 40);
    assert_int_equal(kit_ask(k, HF_RECORD, "kept", name, NULL), HF_OK);
    if (number % 3 == 0)
        mixed_is(k, number % 2);
    bool in_memory = number / 3 * 3 % 2;
    for (int i = 0; i < (in_memory ? 7 : 2); i++) {
        snprintf(name, sizeof name, "%c%d-%d", in_memory ? 'v' : 'd', number, i);
        assert_int_equal(kit_ask(k, HF_RECORD, "mixed", name, NULL), HF_OK);
    }
}

static struct kit *store_make(void)
{
    struct kit *k = kit_make();
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = DAY;
    kit_leave(k);
    kit_open(k);
    assert_int_equal(kit_guard(k, "kept", MINUTE, NULL, 0), HF_OK);
    mixed_is(k, false);
    return k;
}

/* Rows before, at every step of and behind one snapshot. number: in and out, of the rows. */
static void story(struct kit *k, int *number, int64_t *at)
{
    uint64_t before = kit_stats(k).snapshots;
    for (int behind = 0; behind < 3;) {
        kit_at(k, *at += 3 * SECOND);
        rows_make(k, (*number)++);
        hf_maintain(k->db);
        behind += kit_stats(k).snapshots > before;
        assert_true(*number < 200);
    }
}

static void pages_go_on_across_restarts(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    int number = 0;
    int64_t at = 0;
    for (int round = 0; round < 4; round++) {
        story(k, &number, &at);
        struct list *lists = lists_read(k, 1);
        assert_true(lists[0].count >= 5 && lists[2].count >= 10 && lists[3].count >= 5);
        kit_reopen(k);
        lists_go_on(k, lists);
    }
    kit_free(k);
}

/* All rows come from the journal, then from the snapshot and the journal, and stand where they
 * stood. */
static void pages_go_on_without_the_snapshot(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    int number = 0;
    int64_t at = 0;
    for (int round = 0; round < 3; round++) {
        story(k, &number, &at);
        struct list *lists = lists_read(k, 1);
        kit_close(k);
        assert_true(kit_remove(k, ".snap") > 0);
        kit_open(k);
        lists_go_on(k, lists);
    }
    kit_free(k);
}

/* What is in memory alone has its own place, however much of it there is: what is in the journal
 * does not move. */
static void entries_in_memory_move_no_others(void **s)
{
    (void)s;
    both_needs_files();
    struct kit *k = store_make();
    char name[NAME];
    mixed_is(k, true);
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof name, "v%d", i);
        assert_int_equal(kit_ask(k, HF_RECORD, "mixed", name, NULL), HF_OK);
    }
    mixed_is(k, false);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(kit_ask(k, HF_RECORD, "mixed", name, NULL), HF_OK);
    }
    struct list *lists = lists_read(k, 20);
    assert_int_equal(lists[4].count, 6100);
    kit_reopen(k);
    lists_go_on(k, lists);
    kit_free(k);
}

/* ---- A snapshot of an older program ---- */

/* Give the resource's row in the snapshot another stamp, and make the sums right again. */
static void snapshot_restamp(const char *dir, const char *name, const char *resource,
                             uint64_t stamp)
{
    enum { HEAD = 16, ROWS = 3, END = 5, ROW_HEAD = 14, NAME_AT = 39 };
    size_t size, found = 0;
    unsigned char *p = jw_load(dir, name, &size);
    for (size_t at = 0; at < size; at += HEAD + hf_get32(p + at + 4)) {
        unsigned char *block = p + at, *row = block + HEAD;
        size_t payload = hf_get32(block + 4);
        if (hf_get32(block) == END)
            hf_sha256_of(p, at, block + HEAD + 40);
        for (uint32_t i = 0; hf_get32(block) == ROWS && i < hf_get32(block + 8); i++) {
            size_t image = hf_get32(row + 2);
            const unsigned char *its = row + ROW_HEAD + row[1] + NAME_AT;
            if (row[0] == HF_ROW_RESOURCE && image == NAME_AT + strlen(resource) &&
                memcmp(its, resource, strlen(resource)) == 0) {
                hf_put64(row + 6, stamp);
                found++;
            }
            row += ROW_HEAD + row[1] + image;
        }
        hf_put32(block + 12, hf_crc32c(hf_crc32c(0, block, 12), block + HEAD, payload));
    }
    assert_int_equal(found, 1);
    jw_save(dir, name, p, size);
    free(p);
}

/* The name of the only snapshot. */
static void snapshot_name(const char *dir, char out[256])
{
    DIR *d = opendir(dir);
    size_t found = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".snap") && ++found)
            snprintf(out, 256, "%s", e->d_name);
    closedir(d);
    assert_int_equal(found, 1);
}

/* Older programs raised the stamps of rows, also above the end of the journal. A snapshot that
 * leaves out what the journal behind its start makes anew must not leave out such a row: the
 * journal has it before the start. */
static void raised_stamps_of_older_programs_hide_nothing(void **s)
{
    (void)s;
    enum { RAISED = 100000 };
    both_needs_files();
    struct kit *k = store_make();
    char file[256];
    int number = 0;
    int64_t at = 0;
    story(k, &number, &at);
    uint64_t end = kit_stats(k).journal_bytes;
    kit_close(k);
    snapshot_name(k->dir, file);
    snapshot_restamp(k->dir, file, "row0", end + RAISED);
    for (int round = 0; round < 3; round++) {
        kit_open(k);
        assert_int_equal(atomic_load(&k->warnings), 0); /* the snapshot was used */
        story(k, &number, &at);
        assert_true(kit_stats(k).journal_bytes > end + RAISED);
        struct list *lists = lists_read(k, 1);
        assert_int_equal(lists[0].count, number);
        kit_reopen(k);
        lists_go_on(k, lists);
        kit_close(k);
    }
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_go_on_across_restarts),
        cmocka_unit_test(pages_go_on_without_the_snapshot),
        cmocka_unit_test(entries_in_memory_move_no_others),
        cmocka_unit_test(raised_stamps_of_older_programs_hide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

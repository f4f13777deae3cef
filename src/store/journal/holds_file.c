/* The file holds.idx (doc/FORMAT.md). Each part is verified when it is read from the disk. */
#include "base/bytes.h"
#include "store/journal/holds.h"

#include <errno.h>
#include <stdlib.h>

enum { INDEX_VERSION = 2, HEAD = 40, HEAD_SUM = 32, PART_HEAD = 24 };

/* ---- Sums ---- */

static uint64_t page_sum(const struct hf_sipkey *key, const unsigned char page[HF_BLOCK],
                         unsigned place)
{
    unsigned char crc[4];
    hf_put32(crc, hf_crc32c(0, page + PART_HEAD, HF_BLOCK - PART_HEAD));
    uint64_t sum = hf_siphash(key, hf_mem(page + 8, PART_HEAD - 8), hf_mem(crc, sizeof crc));
    if (sum <= 1 || sum >= HF_INDEX_MENDING)
        sum = 2;
    return (sum & ~UINT64_C(1)) | place;
}

static uint64_t head_sum(const struct hf_holds *h, const unsigned char *head)
{
    return hf_siphash(&h->key, hf_mem(head, HEAD_SUM), hf_mem(NULL, 0));
}

static uint64_t sum_of(const struct hf_holds *h, uint64_t p)
{
    return atomic_load_explicit(&h->sums[p - 1], memory_order_relaxed);
}

static void sum_set(struct hf_holds *h, uint64_t p, uint64_t sum)
{
    atomic_store_explicit(&h->sums[p - 1], sum, memory_order_relaxed);
}

static uint64_t offset_of(uint64_t p, unsigned place)
{
    return HF_BLOCK * (2 * p - 1 + place);
}

/* The offset of part p in the file. */
static uint64_t index_offset(const struct hf_holds *h, uint64_t p)
{
    return offset_of(p, sum_of(h, p) & 1);
}

/* New parts are blank. */
static bool sums_room(struct hf_holds *h, size_t parts)
{
    if (parts > h->sum_room) {
        size_t room = h->sum_room ? h->sum_room : 64;
        while (room < parts)
            room *= 2;
        _Atomic uint64_t *sums = realloc(h->sums, room * sizeof *sums);
        if (!sums)
            return false;
        h->sums = sums;
        h->sum_room = room;
    }
    for (; h->parts < parts; h->parts++)
        atomic_init(&h->sums[h->parts], HF_INDEX_BLANK);
    return true;
}

void hf_holds_bad(struct hf_holds *h, uint64_t p)
{
    if (sum_of(h, p) >= HF_INDEX_MENDING)
        return;
    h->bad++;
    h->bad_at = index_offset(h, p);
    sum_set(h, p, HF_INDEX_BAD);
    if (h->page_part == p)
        h->page_part = 0;
}

/* ---- Reading ---- */

static bool page_right(const struct hf_holds *h, uint64_t p, const unsigned char *page)
{
    uint64_t sum = hf_get64(page);
    return sum == sum_of(h, p) && sum == page_sum(&h->key, page, sum & 1) &&
           hf_get64(page + 8) == p;
}

static int page_load(const struct hf_holds *h, uint64_t p, unsigned char *page)
{
    int error = h->io->read(h->file, page, HF_BLOCK, index_offset(h, p));
    return error ? error : page_right(h, p, page) ? 0 : -EBADMSG;
}

/* Read part p into h->page. */
static int page_get(struct hf_holds *h, uint64_t p)
{
    if (h->page_part == p)
        return 0;
    if (!h->page && !(h->page = malloc(HF_BLOCK)))
        return -ENOMEM;
    h->page_part = 0;
    int error = page_load(h, p, h->page);
    h->page_part = error ? 0 : p;
    return error;
}

/* An unreadable part is rebuilt like a wrong one: writing it to the other place helps. */
int hf_holds_file_get(struct hf_holds *h, uint64_t ordinal, uint64_t *position)
{
    uint64_t p = hf_index_part_of(ordinal);
    *position = 0;
    if (ordinal == 0 || ordinal > h->covered)
        return -ENOENT;
    if (sum_of(h, p) >= HF_INDEX_MENDING)
        return -EBADMSG;
    int error = sum_of(h, p) == HF_INDEX_BLANK || !h->file ? -EBADMSG : page_get(h, p);
    if (error == -ENOMEM)
        return error;
    if (!error)
        *position = hf_get64(h->page + PART_HEAD + 8 * ((ordinal - 1) % HF_INDEX_ENTRIES));
    if (!error && *position != 0 && *position < h->covers)
        return 0;
    hf_holds_bad(h, p);
    return -EBADMSG;
}

void hf_holds_distrust(struct hf_holds *h, uint64_t ordinal)
{
    uint64_t position;
    if (ordinal > 0 && ordinal <= h->covered && !hf_holds_remembers(h, ordinal, &position))
        hf_holds_bad(h, hf_index_part_of(ordinal));
}

/* ---- Opening ---- */

bool hf_holds_told(struct hf_holds *h, uint64_t covered, uint64_t first, const unsigned char *sums,
                   size_t count, bool *no_memory)
{
    *no_memory = false;
    if (first != h->parts + 1 || (h->parts > 0 && covered != h->covered) ||
        count > hf_index_part_of(covered) - h->parts)
        return false;
    *no_memory = !sums_room(h, h->parts + count);
    for (size_t i = 0; !*no_memory && i < count; i++) {
        uint64_t sum = hf_get64(sums + 8 * i);
        /* A part that was wrong when the snapshot was written is wrong now: no part has checksum
         * 1. */
        sum_set(h, first + i, sum == HF_INDEX_BLANK || sum >= HF_INDEX_MENDING ? 1 : sum);
    }
    h->covered = covered;
    h->told = true;
    return !*no_memory;
}

static int head_write(struct hf_holds *h, const struct hf_store_keys *keys)
{
    unsigned char head[HF_BLOCK] = { 0 };
    memcpy(head, "HOLDIDX2", 8);
    hf_put32(head + 8, INDEX_VERSION);
    memcpy(head + 16, keys->store_id, 16);
    hf_put64(head + HEAD_SUM, head_sum(h, head));
    return h->io->write(h->file, head, sizeof head, 0);
}

/* The error in the header. NULL: it is right. */
static const char *head_check(const struct hf_holds *h, const struct hf_store_keys *keys,
                              int *level)
{
    unsigned char head[HEAD];
    *level = h->io->read(h->file, head, HEAD, 0) != 0;
    if (*level)
        return "cannot be read";
    if (memcmp(head, "HOLDIDX1", 8) == 0)
        return "has an older version";
    *level = 1;
    if (memcmp(head, "HOLDIDX2", 8) != 0 || hf_get32(head + 8) != INDEX_VERSION ||
        memcmp(head + 16, keys->store_id, 16) != 0 ||
        hf_get64(head + HEAD_SUM) != head_sum(h, head))
        return "is damaged, or belongs to another store";
    return NULL;
}

static void file_close(struct hf_holds *h)
{
    if (h->file)
        h->io->close(h->file);
    h->file = NULL;
}

static const char *file_open(struct hf_holds *h, const struct hf_store_keys *keys, int *level)
{
    int error = h->io->open(h->dir, "holds.idx", HF_OPEN_WRITE, &h->file);
    if (error) {
        h->file = NULL;
        *level = error != -ENOENT;
        return error == -ENOENT ? "is missing" : "cannot be opened";
    }
    const char *why = head_check(h, keys, level);
    /* The checksums tell which parts are right. A wrong header is rewritten once this start has
     * succeeded, because the next start checks it too. */
    h->head_due = why != NULL;
    return why;
}

const char *hf_holds_open(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t start,
                          uint64_t next_sequence, int *level)
{
    if (!h->told || h->parts != hf_index_part_of(h->covered)) {
        hf_holds_close(h);
        *level = 1;
        return "is not in the snapshot";
    }
    const char *why = file_open(h, keys, level);
    h->covers = start;
    h->next_sequence = next_sequence;
    for (uint64_t p = 1; !h->file && p <= h->parts; p++)
        hf_holds_bad(h, p);
    return why;
}

uint64_t hf_holds_check(struct hf_holds *h, uint64_t max)
{
    uint64_t first = 0;
    max /= HF_BLOCK;
    for (uint64_t p = h->parts > max ? h->parts - max + 1 : 1; h->file && p <= h->parts; p++) {
        int error = page_get(h, p);
        if (error == -ENOMEM)
            break; /* each part is checked when it is read */
        if (!error)
            continue;
        hf_holds_bad(h, p);
        first = first ? first : h->bad_at;
    }
    return first;
}

void hf_holds_close(struct hf_holds *h)
{
    file_close(h);
    h->covers = h->covered = h->page_part = 0;
    h->told = h->head_due = false;
    h->parts = h->bad = h->fresh_count = 0;
}

/* ---- Writing ---- */

int hf_holds_settle(struct hf_holds *h, const struct hf_store_keys *keys)
{
    int error = h->file && h->head_due ? head_write(h, keys) : 0;
    h->head_due = h->head_due && error;
    return error;
}

int hf_holds_make(struct hf_holds *h, const struct hf_store_keys *keys, uint64_t covered)
{
    struct hf_file *file;
    if (!sums_room(h, (size_t)hf_index_part_of(covered)))
        return -ENOMEM;
    if (h->file)
        return hf_holds_settle(h, keys);
    int error = h->io->open(h->dir, "holds.idx", HF_OPEN_CREATE, &file);
    if (error)
        return error;
    h->file = file;
    error = head_write(h, keys);
    if (!error)
        error = h->io->dir_sync(h->dir);
    if (error) {
        h->io->close(file);
        h->file = NULL;
    }
    return error;
}

static int ordinal_compare(const void *a, const void *b)
{
    const struct hf_moved *x = a, *y = b;
    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* New holds are already in order. */
static bool in_order(const struct hf_moved *moved, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (ordinal_compare(&moved[i - 1], &moved[i]) > 0)
            return false;
    return true;
}

static bool fresh_add(struct hf_holds *h, uint64_t p, uint64_t sum)
{
    if (h->fresh_count == h->fresh_room) {
        size_t room = h->fresh_room ? h->fresh_room * 2 : 64;
        struct hf_index_sum *fresh = realloc(h->fresh, room * sizeof *fresh);
        if (!fresh)
            return false;
        h->fresh = fresh;
        h->fresh_room = room;
    }
    h->fresh[h->fresh_count++] = (struct hf_index_sum){ p, sum };
    return true;
}

/* Write part p with its changes to the place that is not in use. Unchanged values come from the
 * place in use. */
static int page_write(struct hf_holds *h, uint64_t p, const struct hf_moved *moved, size_t count,
                      uint64_t covers)
{
    unsigned char page[HF_BLOCK] = { 0 };
    uint64_t sum = sum_of(h, p);
    unsigned place = sum == HF_INDEX_BLANK ? 0 : !(sum & 1);
    if (sum >= HF_INDEX_MENDING || (sum != HF_INDEX_BLANK && page_load(h, p, page) != 0))
        return -EBADMSG;
    hf_put64(page + 8, p);
    hf_put64(page + 16, covers);
    for (size_t i = 0; i < count; i++)
        hf_put64(page + PART_HEAD + 8 * ((moved[i].ordinal - 1) % HF_INDEX_ENTRIES),
                 moved[i].position);
    sum = page_sum(&h->key, page, place);
    hf_put64(page, sum);
    return fresh_add(h, p, sum) ? h->io->write(h->file, page, sizeof page, offset_of(p, place))
                                : -ENOMEM;
}

int hf_holds_write(struct hf_holds *h, struct hf_moved *moved, size_t count, uint64_t covers,
                   uint64_t *bad)
{
    int error = 0;
    *bad = 0;
    h->fresh_count = 0;
    if (!in_order(moved, count))
        qsort(moved, count, sizeof *moved, ordinal_compare);
    size_t i = 0;
    for (uint64_t p = 1; !error && p <= h->parts; p++) {
        size_t n = 0;
        while (i + n < count && hf_index_part_of(moved[i + n].ordinal) == p)
            n++;
        /* A new part is written even if all its holds have changed since the snapshot began, then
         * empty: the snapshot must have its checksum. */
        if (n == 0 && sum_of(h, p) != HF_INDEX_BLANK)
            continue;
        error = page_write(h, p, moved + i, n, covers);
        *bad = error == -EBADMSG ? p : 0;
        i += n;
    }
    return error ? error : h->io->sync(h->file);
}

uint64_t hf_holds_new_sum(const struct hf_holds *h, uint64_t p, size_t *at)
{
    while (*at < h->fresh_count && h->fresh[*at].part < p)
        ++*at;
    return *at < h->fresh_count && h->fresh[*at].part == p ? h->fresh[*at].sum : sum_of(h, p);
}

void hf_holds_landed(struct hf_holds *h, uint64_t covers, uint64_t next_sequence, uint64_t covered)
{
    for (size_t i = 0; i < h->fresh_count; i++) {
        /* A part found bad meanwhile was right when its new copy was written. */
        h->bad -= sum_of(h, h->fresh[i].part) == HF_INDEX_BAD;
        sum_set(h, h->fresh[i].part, h->fresh[i].sum);
    }
    h->fresh_count = 0;
    h->page_part = 0;
    h->covers = covers;
    h->next_sequence = next_sequence;
    h->covered = covered;
}

/* Loads a snapshot. Anything inconsistent makes the snapshot unusable, never the store wrong: the
 * journal has the truth. */
#include "base/bytes.h"
#include "store/journal/maintain.h"
#include "store/record/sound.h"

#include <errno.h>
#include <stdlib.h>

enum {
    BLOCK_HEAD = 16,
    BLOCK_HEADER = 1,
    BLOCK_TOKENS = 2,
    BLOCK_ROWS = 3,
    BLOCK_LIVE = 4,
    BLOCK_END = 5,
    BLOCK_INDEX = 6,
    BLOCK_OWNERS = 7,
    BLOCK_PASSED = 8,
    END_SIZE = 40 + HF_DIGEST_SIZE
};

struct loading {
    struct hf_journal *j;
    struct hf_file *file; /* borrowed */
    const unsigned char *data;
    size_t size;
    struct hf_map64 resources; /* mix of the stamp -> node */
    struct hf_snapshot_info *info;
    uint64_t blocks;
    bool ended, owned;
    bool only_look; /* do not fill the tables */
    int error;      /* the file is unreadable: a negative errno */
};

static enum hf_status load_header(struct loading *l, const unsigned char *p, size_t size)
{
    const struct hf_store_keys *k = &l->j->keys;
    enum { SIZE = 8 + 8 + 48 + 24 + HF_DIGEST_SIZE + 8 };
    if (size != SIZE || memcmp(p, "HOLDSNP1", 8) != 0 || hf_get32(p + 8) != HF_SNAPSHOT_VERSION ||
        memcmp(p + 16, k->store_id, 16) != 0 || hf_get64(p + 32) != k->table.k0 ||
        hf_get64(p + 40) != k->table.k1)
        return HF_STORE_DAMAGED;
    l->info->start = hf_get64(p + 64);
    l->info->next_sequence = hf_get64(p + 72);
    l->info->now = (hf_time)hf_get64(p + 80);
    if (!hf_now_sound(l->info->now))
        return HF_STORE_DAMAGED;
    memcpy(l->info->chain, p + 88, HF_DIGEST_SIZE);
    l->info->token_cursor = hf_get64(p + 88 + HF_DIGEST_SIZE);
    return HF_OK;
}

static enum hf_status load_tokens(struct loading *l, const unsigned char *p, size_t size,
                                  uint32_t count)
{
    struct hf_map64 *tokens = &l->j->tables.tokens;
    if (size != (size_t)count * 16)
        return HF_STORE_DAMAGED;
    for (; count > 0; count--, p += 16) {
        uint64_t hash = hf_get64(p), position = hf_get64(p + 8);
        if (position == 0)
            return HF_STORE_DAMAGED;
        if (!hf_map64_reserve(tokens, hash, 1))
            return HF_NO_MEMORY;
        hf_map64_add(tokens, hash, position);
    }
    return HF_OK;
}

/* Can a row have this stamp? An older program raised stamps, by at most one for each row. */
static bool stamp_sound(const struct loading *l, uint64_t stamp)
{
    const struct hf_segments *s = &l->j->segments;
    const uint64_t rows_max = UINT64_C(1) << 32;
    return s->count > 0 &&
           stamp < s->list[s->count - 1].base + s->list[s->count - 1].size + rows_max;
}

static enum hf_status load_row(struct loading *l, const unsigned char **at,
                               const unsigned char *end)
{
    enum { HEAD = 14, RING = HF_SEQUENCE_WINDOW * 8 };
    const unsigned char *p = *at;
    struct hf_tables *t = &l->j->tables;
    if (end - p < HEAD)
        return HF_STORE_DAMAGED;
    size_t tenant = p[1], image_size = hf_get32(p + 2);
    uint64_t stamp = hf_get64(p + 6);
    size_t ring = p[0] == HF_ROW_CLIENT ? RING : 0;
    if ((size_t)(end - p) - HEAD < tenant + ring ||
        (size_t)(end - p) - HEAD - tenant - ring < image_size)
        return HF_STORE_DAMAGED;
    struct hf_image image = { .kind = p[0], .bytes = { p + HEAD + tenant, image_size } };
    struct hf_row row;
    *at = p + HEAD + tenant + image_size + ring;
    if (image.kind == HF_ROW_HOLD || tenant > HF_TENANT_MAX || !stamp_sound(l, stamp) ||
        !hf_image_decode(&image, hf_mem(p + HEAD, tenant), &row) || !hf_row_sound(&row))
        return HF_STORE_DAMAGED;
    struct hf_staged staged;
    enum hf_status st = hf_rows_stage(&t->rows, hf_mem(p + HEAD, tenant), &image, 1, &staged);
    if (st == HF_STORE_DAMAGED && image.kind == HF_ROW_ENTRY)
        return HF_OK; /* its guard was made after the guards were copied: the journal has both */
    if (st != HF_OK)
        return st;
    if (staged.old) { /* a duplicate row: before sorting, the first cannot be removed */
        hf_rows_drop(&t->rows, &staged);
        return HF_STORE_DAMAGED;
    }
    struct hf_node *node = hf_rows_put(&t->rows, &staged, stamp);
    for (size_t i = 0; i < ring / 8; i++)
        node->ring[i] = hf_get64(*at - ring + 8 * i);
    if (image.kind == HF_ROW_CONFIG) {
        t->config = row.config;
        t->has_config = true;
    }
    if (image.kind == HF_ROW_RESOURCE) {
        if (!hf_map64_reserve(&l->resources, hf_mix64(stamp), 1))
            return HF_NO_MEMORY;
        hf_map64_add(&l->resources, hf_mix64(stamp), (uint64_t)(uintptr_t)node);
    }
    return HF_OK;
}

static enum hf_status load_rows(struct loading *l, const unsigned char *p, size_t size,
                                uint32_t count)
{
    const unsigned char *end = p + size;
    for (; count > 0; count--) {
        enum hf_status st = load_row(l, &p, end);
        if (st != HF_OK)
            return st;
    }
    return p == end ? HF_OK : HF_STORE_DAMAGED;
}

/* Can there be so many holds? Each takes more than a byte of the journal. Tables by ordinal take
 * memory up to the highest. */
static bool ordinal_sound(const struct loading *l, uint64_t ordinal)
{
    const struct hf_segments *s = &l->j->segments;
    return s->count > 0 && ordinal <= s->list[s->count - 1].base + s->list[s->count - 1].size;
}

static enum hf_status load_live(struct loading *l, const unsigned char *p, size_t size,
                                uint32_t count)
{
    struct hf_live *live = &l->j->tables.live;
    if (size != (size_t)count * 24)
        return HF_STORE_DAMAGED;
    for (; count > 0; count--, p += 24) {
        const struct hf_slot *slot = hf_map64_next(&l->resources, hf_mix64(hf_get64(p + 16)), NULL);
        if (!ordinal_sound(l, hf_get64(p)))
            return HF_STORE_DAMAGED;
        if (!slot)
            /* its resource was made after the rows were copied: the journal has both */
            continue;
        struct hf_node *resource = (struct hf_node *)(uintptr_t)slot->value;
        if (!hf_live_reserve(live, hf_get64(p)))
            return HF_NO_MEMORY;
        l->j->tables.rows.owners.list[resource->tenant].live += hf_live_add(
            live, hf_get64(p), (hf_time)hf_get64(p + 8), &resource->live_root, resource->stamp);
    }
    return HF_OK;
}

/* The expected checksums of holds.idx. */
static enum hf_status load_index(struct loading *l, const unsigned char *p, size_t size,
                                 uint32_t count)
{
    bool no_memory;
    if (size != 16 + (size_t)count * 8 || !ordinal_sound(l, hf_get64(p)))
        return HF_STORE_DAMAGED;
    if (hf_holds_told(&l->j->tables.holds, hf_get64(p), hf_get64(p + 8), p + 16, count, &no_memory))
        return HF_OK;
    return no_memory ? HF_NO_MEMORY : HF_STORE_DAMAGED;
}

/* Where the keys begin in the cursor's batch, and how many keys each tenant has from there on. */
static enum hf_status load_owners(struct loading *l, const unsigned char *p, size_t size)
{
    struct hf_owners *owners = &l->j->tables.rows.owners;
    const unsigned char *end = p + size;
    if (size < 4 || l->owned)
        return HF_STORE_DAMAGED;
    l->owned = true;
    l->info->token_cursor_entry = hf_get32(p);
    for (p += 4; p < end; p += 1 + p[0] + 8) {
        if (p[0] > HF_TENANT_MAX || end - p < 1 + p[0] + 8)
            return HF_STORE_DAMAGED;
        uint32_t place = hf_owners_make(owners, hf_mem(p + 1, p[0]));
        if (place == HF_OWNER_NONE)
            return HF_NO_MEMORY;
        owners->list[place].tokens += hf_get64(p + 1 + p[0]);
    }
    return HF_OK;
}

/* Batches before the cursor whose keys are not freed. */
static enum hf_status load_passed(struct loading *l, const unsigned char *p, size_t size,
                                  uint32_t count)
{
    if (size != (size_t)count * HF_PASSED_SIZE)
        return HF_STORE_DAMAGED;
    for (; count > 0; count--, p += HF_PASSED_SIZE) {
        struct hf_passed range = { .position = hf_get64(p),
                                   .end = hf_get64(p + 8),
                                   .entry = hf_get32(p + 16) };
        if (range.position % HF_BLOCK != 0 || range.position >= range.end ||
            range.end > l->info->token_cursor || range.entry > HF_BATCH_MAX)
            return HF_STORE_DAMAGED;
        if (!hf_journal_pass(l->j, &range))
            return HF_NO_MEMORY;
    }
    return HF_OK;
}

/* Does the digest in the last block (payload at `p`) match everything before it? */
static bool digest_right(const struct loading *l, const unsigned char *p)
{
    uint8_t digest[HF_DIGEST_SIZE];
    hf_sha256_of(l->data, (size_t)(p - BLOCK_HEAD - l->data), digest);
    return memcmp(digest, p + 40, HF_DIGEST_SIZE) == 0;
}

static enum hf_status load_end(struct loading *l, const unsigned char *p, size_t size)
{
    if (!l->owned || size != END_SIZE || hf_get64(p + 32) != l->blocks ||
        !ordinal_sound(l, hf_get64(p + 8)) || !digest_right(l, p))
        return HF_STORE_DAMAGED;
    l->info->end = hf_get64(p);
    l->j->tables.holds.highest = hf_get64(p + 8);
    l->j->tables.highest_fence = hf_get64(p + 16);
    l->j->tables.highest_outbox = hf_get64(p + 24);
    l->ended = true;
    return HF_OK;
}

/* Check that the snapshot is complete, without loading its tables. */
static enum hf_status look_block(struct loading *l, uint32_t type, const unsigned char *p,
                                 size_t size)
{
    switch (type) {
    case BLOCK_HEADER: return load_header(l, p, size);
    case BLOCK_TOKENS:
    case BLOCK_ROWS:
    case BLOCK_LIVE:
    case BLOCK_INDEX:
    case BLOCK_OWNERS:
    case BLOCK_PASSED: return HF_OK;
    case BLOCK_END:
        l->ended = size == END_SIZE && hf_get64(p + 32) == l->blocks && digest_right(l, p);
        l->info->end = l->ended ? hf_get64(p) : 0;
        return l->ended ? HF_OK : HF_STORE_DAMAGED;
    default: return HF_STORE_DAMAGED;
    }
}

static enum hf_status load_block(struct loading *l, const unsigned char *p, size_t size)
{
    uint32_t type = hf_get32(p), count = hf_get32(p + 8);
    const unsigned char *payload = p + BLOCK_HEAD;
    uint32_t crc = hf_crc32c(0, p, 12);
    if (hf_get32(p + 12) != hf_crc32c(crc, payload, size) ||
        (l->blocks == 0) != (type == BLOCK_HEADER))
        return HF_STORE_DAMAGED;
    if (l->only_look)
        return look_block(l, type, payload, size);
    switch (type) {
    case BLOCK_HEADER: return load_header(l, payload, size);
    case BLOCK_TOKENS: return load_tokens(l, payload, size, count);
    case BLOCK_ROWS: return load_rows(l, payload, size, count);
    case BLOCK_LIVE: return load_live(l, payload, size, count);
    case BLOCK_INDEX: return load_index(l, payload, size, count);
    case BLOCK_OWNERS: return load_owners(l, payload, size);
    case BLOCK_PASSED: return load_passed(l, payload, size, count);
    case BLOCK_END: return load_end(l, payload, size);
    default: return HF_STORE_DAMAGED;
    }
}

/* Can the bytes be read? Unreadable bytes tell nothing: the snapshot may be complete or not. */
static bool readable(struct loading *l, size_t at, size_t size)
{
    l->error = l->j->io->touch(l->file, l->data, at, size);
    return l->error == 0;
}

static enum hf_status load_all(struct loading *l)
{
    size_t at = 0;
    while (!l->ended) {
        if (l->size - at < BLOCK_HEAD)
            return HF_STORE_DAMAGED;
        if (!readable(l, at, BLOCK_HEAD))
            return HF_STORAGE_FAILURE;
        size_t size = hf_get32(l->data + at + 4);
        if (size > l->size - at - BLOCK_HEAD)
            return HF_STORE_DAMAGED;
        if (!readable(l, at + BLOCK_HEAD, size))
            return HF_STORAGE_FAILURE;
        enum hf_status st = load_block(l, l->data + at, size);
        if (st != HF_OK)
            return st;
        l->blocks++;
        at += BLOCK_HEAD + size;
        if (l->j->on_progress)
            l->j->on_progress(l->j->arg, at, l->size);
    }
    l->info->whole = at == l->size;
    return l->info->whole ? HF_OK : HF_STORE_DAMAGED;
}

/* Map the file. HF_STORE_DAMAGED: it does not exist, or is empty. */
static enum hf_status file_map(struct loading *l, const char *name)
{
    const struct hf_io *io = l->j->io;
    uint64_t size = 0;
    *l->info = (struct hf_snapshot_info){ .next_sequence = 1 };
    l->error = io->open(l->j->dir, name, HF_OPEN_READ, &l->file);
    if (l->error)
        return l->error == -ENOENT ? HF_STORE_DAMAGED : HF_STORAGE_FAILURE;
    l->error = io->size(l->file, &size);
    if (!l->error && size > 0)
        l->error = io->map(l->file, size, &l->data);
    if (!l->error && size > 0) {
        l->size = size;
        return HF_OK;
    }
    io->close(l->file);
    return !l->error ? HF_STORE_DAMAGED : l->error == -ENOMEM ? HF_NO_MEMORY : HF_STORAGE_FAILURE;
}

static void file_unmap(struct loading *l)
{
    l->j->io->unmap(l->file, l->data, l->size);
    l->j->io->close(l->file);
}

enum hf_status hf_snapshot_load(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error)
{
    struct loading l = { .j = j, .info = info };
    enum hf_status st = file_map(&l, name);
    *error = l.error;
    if (st != HF_OK)
        return st;
    j->snapshot_bytes = l.size;
    st = HF_NO_MEMORY;
    if (hf_map64_init(&l.resources, 10)) {
        j->tables.rows.loading = true;
        st = load_all(&l);
        if (!hf_rows_loaded(&j->tables.rows) && st == HF_OK)
            st = HF_NO_MEMORY;
        hf_map64_free(&l.resources);
    }
    if (st != HF_OK)
        hf_journal_passed_free(j);
    file_unmap(&l);
    *error = l.error;
    return st;
}

enum hf_status hf_snapshot_look(struct hf_journal *j, const char *name,
                                struct hf_snapshot_info *info, int *error)
{
    struct loading l = { .j = j, .info = info, .only_look = true };
    enum hf_status st = file_map(&l, name);
    if (st == HF_OK) {
        st = load_all(&l);
        file_unmap(&l);
    }
    *error = l.error;
    return st;
}

#include "simulate/disk_file.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 4096 };

/* A simulation that runs out of memory has nothing to say. */
static void *grown(void *block, size_t bytes)
{
    void *p = realloc(block, bytes);
    HF_ASSERT(p);
    return p;
}

struct sim_file *sim_file_new(const char *name)
{
    struct sim_file *f = calloc(1, sizeof *f);
    HF_ASSERT(f && strlen(name) < sizeof f->name);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->sizes = grown(NULL, 8 * sizeof *f->sizes);
    f->size_room = 8;
    f->sizes[0] = 0;
    f->size_count = 1;
    return f;
}

static void *copied(const void *data, size_t size)
{
    return size ? memcpy(grown(NULL, size), data, size) : NULL;
}

struct sim_file *sim_file_copy(const struct sim_file *f)
{
    struct sim_file *c = copied(f, sizeof *f);
    c->handles = c->mapped = 0;
    c->data = copied(f->data, f->room);
    c->changes = copied(f->changes, f->change_count * sizeof *f->changes);
    c->before = copied(f->before, f->change_count * SIM_SECTOR);
    c->change_room = f->change_count;
    c->sizes = copied(f->sizes, f->size_count * sizeof *f->sizes);
    c->size_room = f->size_count;
    return c;
}

void sim_file_free(struct sim_file *f)
{
    free(f->data);
    free(f->changes);
    free(f->before);
    free(f->sizes);
    free(f);
}

/* ---- Changing ---- */

static void room_for(struct sim_file *f, uint64_t end)
{
    uint64_t room = f->room ? f->room : ROOM_LEAST;
    if (end <= f->room)
        return;
    HF_ASSERT(f->mapped == 0); /* who maps a file does not make it longer */
    while (room < end)
        room *= 2;
    f->data = grown(f->data, room);
    memset(f->data + f->room, 0, room - f->room);
    f->room = room;
}

static unsigned char *sector_of(struct sim_file *f, uint32_t sector)
{
    return f->data + (uint64_t)sector * SIM_SECTOR;
}

/* Remember what is in the sector, which is about to change. */
static void remember(struct sim_file *f, uint32_t sector, bool by_length)
{
    if (f->change_count == f->change_room) {
        f->change_room = f->change_room ? f->change_room * 2 : 32;
        f->changes = grown(f->changes, f->change_room * sizeof *f->changes);
        f->before = grown(f->before, f->change_room * SIM_SECTOR);
    }
    memcpy(f->before + f->change_count * SIM_SECTOR, sector_of(f, sector), SIM_SECTOR);
    f->changes[f->change_count++] =
        (struct sim_change){ .sector = sector, .cut = f->newest_cut, .by_length = by_length };
}

static void size_set(struct sim_file *f, uint64_t size)
{
    if (f->size_count == f->size_room) {
        f->size_room *= 2;
        f->sizes = grown(f->sizes, f->size_room * sizeof *f->sizes);
    }
    f->sizes[f->size_count++] = size;
    f->size = size;
}

void sim_file_write(struct sim_file *f, const void *data, size_t size, uint64_t at)
{
    const unsigned char *p = data;
    uint64_t end = at + size;
    room_for(f, end);
    /* A long growth may come to the disk by halves. */
    if (end > f->size && end - f->size > SIM_SECTOR)
        size_set(f, (f->size + (end - f->size) / 2) / SIM_SECTOR * SIM_SECTOR);
    if (end > f->size)
        size_set(f, end);
    while (at < end) {
        uint64_t next = (at / SIM_SECTOR + 1) * SIM_SECTOR;
        size_t n = (size_t)((next < end ? next : end) - at);
        /* Writing what is there already leaves nothing to lose, as with most zeros; unless a sync
         * that failed has left it in doubt. */
        if (f->change_doubted > 0 || memcmp(f->data + at, p, n) != 0) {
            remember(f, (uint32_t)(at / SIM_SECTOR), false);
            memcpy(f->data + at, p, n);
        }
        p += n;
        at += n;
    }
}

static bool all_zeros(const unsigned char *p, size_t size)
{
    return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

void sim_file_truncate(struct sim_file *f, uint64_t size)
{
    uint64_t had = f->size;
    if (size == had)
        return;
    room_for(f, size);
    if (size < had)
        f->newest_cut = (uint32_t)f->size_count;
    size_set(f, size);
    for (uint64_t at = size; at < had;) {
        uint64_t next = (at / SIM_SECTOR + 1) * SIM_SECTOR;
        size_t n = (size_t)((next < had ? next : had) - at);
        if (!all_zeros(f->data + at, n)) {
            remember(f, (uint32_t)(at / SIM_SECTOR), true);
            memset(f->data + at, 0, n);
        }
        at += n;
    }
}

/* ---- Syncing ---- */

void sim_file_doubted(struct sim_file *f)
{
    f->change_doubted = f->change_count;
    f->size_doubted = f->size_count - 1;
}

/* Was the sector of this change, which is in doubt, changed again since? */
static bool rewritten(const struct sim_file *f, size_t change)
{
    for (size_t i = f->change_doubted; i < f->change_count; i++)
        if (f->changes[i].sector == f->changes[change].sector)
            return true;
    return false;
}

/* After a sync that went well there remains what an earlier one, which failed, has left in
 * doubt. */
static void keep_doubted(struct sim_file *f)
{
    bool size_known = f->size_count - 1 > f->size_doubted;
    size_t kept = 0;
    for (size_t i = 0; i < f->change_doubted; i++) {
        struct sim_change c = f->changes[i];
        if (rewritten(f, i) || (size_known && c.by_length))
            continue;
        if (size_known)
            c.cut = 0;
        memmove(f->before + kept * SIM_SECTOR, f->before + i * SIM_SECTOR, SIM_SECTOR);
        f->changes[kept++] = c;
    }
    f->change_count = f->change_doubted = kept;
    if (size_known || f->size_doubted == 0) {
        f->sizes[0] = f->size;
        f->size_count = 1;
        f->size_doubted = 0;
        f->newest_cut = 0;
    }
}

void sim_file_synced(struct sim_file *f)
{
    if (f->change_doubted > 0 || f->size_doubted > 0) {
        keep_doubted(f);
        return;
    }
    f->change_count = 0;
    f->sizes[0] = f->size;
    f->size_count = 1;
    f->newest_cut = 0;
}

/* ---- The power cut ---- */

static void sector_swap(unsigned char *a, unsigned char *b)
{
    unsigned char t[SIM_SECTOR];
    memcpy(t, a, SIM_SECTOR);
    memcpy(a, b, SIM_SECTOR);
    memcpy(b, t, SIM_SECTOR);
}

/* Back to what is durable. Then `before` holds for each change what it made of its sector. */
static void walk_back(struct sim_file *f)
{
    for (size_t i = f->change_count; i-- > 0;)
        sector_swap(sector_of(f, f->changes[i].sector), f->before + i * SIM_SECTOR);
}

/* How many bytes of a change survive. */
static size_t survives(const struct sim_change *c, uint32_t size_chosen,
                       const struct sim_disk_owner *owner)
{
    if (c->cut > size_chosen)
        return 0;
    if (c->by_length)
        return SIM_SECTOR;
    switch (owner->choose(owner->arg, SIM_SURVIVALS)) {
    case SIM_LOST: return 0;
    case SIM_TORN: return 1 + owner->choose(owner->arg, SIM_SECTOR - 1);
    default: return SIM_SECTOR;
    }
}

void sim_file_settle(struct sim_file *f, const struct sim_disk_owner *owner)
{
    uint32_t chosen = 0;
    if (f->size_count > 1)
        chosen = owner->choose(owner->arg, (uint32_t)f->size_count);
    walk_back(f);
    for (size_t i = 0; i < f->change_count; i++) {
        size_t n = survives(&f->changes[i], chosen, owner);
        memcpy(sector_of(f, f->changes[i].sector), f->before + i * SIM_SECTOR, n);
    }
    uint64_t longest = 0;
    for (size_t i = 0; i < f->size_count; i++)
        longest = f->sizes[i] > longest ? f->sizes[i] : longest;
    f->size = f->sizes[chosen];
    if (longest > f->size)
        memset(f->data + f->size, 0, longest - f->size);
    f->change_doubted = f->size_doubted = 0;
    sim_file_synced(f);
}

void sim_file_flip(struct sim_file *f, uint64_t at, unsigned bit)
{
    unsigned char mask = (unsigned char)(1U << (bit & 7));
    f->data[at] ^= mask;
    for (size_t i = 0; i < f->change_count; i++)
        if (f->changes[i].sector == at / SIM_SECTOR)
            f->before[i * SIM_SECTOR + at % SIM_SECTOR] ^= mask;
}

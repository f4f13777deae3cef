#include "store/journal/segment.h"

#include "store/journal/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_FIRST = 4 << 20, FILL_STEP = 256 << 10, SYNC_EVERY = 2 << 20 };

void hf_segment_name(uint64_t number, const char *suffix, char out[HF_SEGMENT_NAME_SIZE])
{
    snprintf(out, HF_SEGMENT_NAME_SIZE, "journal-%08llu%s", (unsigned long long)number, suffix);
}

/* ---- Reaching the bytes ---- */

static bool is_counted(const struct hf_segment *g)
{
    return g->state == HF_SEGMENT_SEALED || g->state == HF_SEGMENT_PACKED;
}

static void source_close(struct hf_segments *s, struct hf_segment *g)
{
    if (!g->source)
        return;
    if (is_counted(g)) {
        s->maps -= g->data != NULL;
        s->packs -= g->pack != NULL;
    }
    if (g->data)
        s->io->unmap(g->source, g->data, g->size);
    if (g->pack)
        hf_pack_close(g->pack);
    s->io->close(g->source);
    g->source = NULL;
    g->data = NULL;
    g->pack = NULL;
}

/* Close the least recently used one of this state. False if there is none. */
static bool source_evict(struct hf_segments *s, enum hf_segment_state state)
{
    struct hf_segment *oldest = NULL;
    for (size_t i = 0; i < s->count; i++) {
        struct hf_segment *g = &s->list[i];
        if (g->state == state && g->source && g->pins == 0 && g->used < s->tick &&
            (!oldest || g->used < oldest->used))
            oldest = g;
    }
    if (oldest)
        source_close(s, oldest);
    return oldest != NULL;
}

bool hf_segments_give_back(struct hf_segments *s, int error)
{
    /* Mapped ones have already closed their descriptors. */
    return (error == -EMFILE || error == -ENFILE) && source_evict(s, HF_SEGMENT_PACKED);
}

/* Open the file; if descriptors are short, close an unused compressed segment. */
static int file_open(struct hf_segments *s, const char *name, enum hf_open_how how,
                     struct hf_file **out)
{
    int error;
    do {
        *out = NULL;
        error = s->io->open(s->dir, name, how, out);
    } while (hf_segments_give_back(s, error));
    if (error)
        *out = NULL;
    return error;
}

static int plain_reach(struct hf_segments *s, struct hf_segment *g)
{
    uint64_t size = 0;
    int error = s->io->size(g->source, &size);
    if (!error && size != g->size)
        error = -EBADMSG;
    if (!error)
        error = s->io->map(g->source, g->size, &g->data);
    if (!error)
        s->io->detach(g->source);
    return error;
}

static int pack_reach(struct hf_segments *s, struct hf_segment *g)
{
    struct hf_segment_head head;
    int error = hf_pack_open(s->io, g->source, &g->pack);
    if (error)
        return error;
    hf_pack_head(g->pack, &head);
    if (head.number == g->number && head.base == g->base && head.size == g->size)
        return 0;
    hf_pack_close(g->pack);
    return -EBADMSG;
}

int hf_segments_reach(struct hf_segments *s, struct hf_segment *g)
{
    char name[HF_SEGMENT_NAME_SIZE];
    g->used = s->tick;
    if (g->source)
        return 0;
    bool packed = g->state == HF_SEGMENT_PACKED;
    while (is_counted(g) && (packed ? s->packs >= s->packs_max : s->maps >= s->maps_max) &&
           source_evict(s, g->state))
        ;
    hf_segment_name(g->number, packed ? ".zst" : ".log", name);
    int error = file_open(s, name, HF_OPEN_READ, &g->source);
    if (error)
        return error;
    error = packed ? pack_reach(s, g) : plain_reach(s, g);
    if (error) {
        s->io->close(g->source);
        g->source = NULL;
        g->data = NULL;
        g->pack = NULL;
        return error;
    }
    if (is_counted(g)) {
        s->maps += !packed;
        s->packs += packed;
    }
    return 0;
}

int hf_segments_open_writer(struct hf_segments *s, struct hf_segment *g)
{
    char name[HF_SEGMENT_NAME_SIZE];
    if (g->writer)
        return 0;
    hf_segment_name(g->number, ".log", name);
    return file_open(s, name, HF_OPEN_WRITE, &g->writer);
}

static void writer_close(struct hf_segments *s, struct hf_segment *g)
{
    if (g->writer)
        s->io->close(g->writer);
    g->writer = NULL;
}

void hf_segments_become(struct hf_segments *s, struct hf_segment *g, enum hf_segment_state state)
{
    s->maps -= is_counted(g) && g->data;
    g->state = state;
    s->maps += is_counted(g) && g->data;
    if (is_counted(g))
        writer_close(s, g);
}

void hf_segments_packed(struct hf_segments *s, struct hf_segment *g, struct hf_pack *pack,
                        struct hf_file *source, struct hf_segment *was)
{
    *was = *g;
    s->maps -= g->data != NULL;
    s->packs++;
    g->data = NULL;
    g->source = source;
    g->pack = pack;
    g->state = HF_SEGMENT_PACKED;
    g->used = s->tick;
    while (s->packs > s->packs_max && source_evict(s, HF_SEGMENT_PACKED))
        ;
}

static void segment_close(struct hf_segments *s, struct hf_segment *g)
{
    source_close(s, g);
    writer_close(s, g);
}

void hf_segments_free(struct hf_segments *s)
{
    for (size_t i = 0; i < s->count; i++)
        segment_close(s, &s->list[i]);
    free(s->list);
    s->list = NULL;
    s->count = s->room = 0;
}

struct hf_segment *hf_segments_at(const struct hf_segments *s, uint64_t position)
{
    size_t lo = 0, hi = s->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->list[mid].base + s->list[mid].size <= position)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->count && s->list[lo].base <= position ? &s->list[lo] : NULL;
}

int hf_segments_add(struct hf_segments *s, const struct hf_segment_head *head,
                    enum hf_segment_state state, struct hf_file *writer)
{
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 16;
        struct hf_segment *list = realloc(s->list, room * sizeof *list);
        if (!list) {
            if (writer)
                s->io->close(writer);
            return -ENOMEM;
        }
        s->list = list;
        s->room = room;
    }
    struct hf_segment *g = &s->list[s->count++];
    *g = (struct hf_segment){ .state = state,
                              .number = head->number,
                              .base = head->base,
                              .size = head->size,
                              .version = head->version,
                              .first_sequence = head->first_sequence,
                              .created_at = head->created_at,
                              .writer = writer };
    memcpy(g->chain, head->chain, sizeof g->chain);
    return 0;
}

uint64_t hf_segments_next_size(const struct hf_segments *s, uint64_t size)
{
    /* Every entry fits into SEGMENT_FIRST bytes, so a store with smaller segments grows at once. */
    uint64_t next = size * 2 > SEGMENT_FIRST ? size * 2 : SEGMENT_FIRST;
    if (s->size_fits && next > s->size_fits)
        next = s->size_fits;
    return next < s->size_max ? next : s->size_max;
}

bool hf_segments_smaller(struct hf_segments *s, uint64_t size)
{
    uint64_t least = s->size_max < SEGMENT_FIRST ? s->size_max : SEGMENT_FIRST;
    if (size <= least)
        return false;
    enum { UNIT = 64 << 10 }; /* sizes are multiples of it */
    uint64_t half = size / 2 / UNIT * UNIT;
    s->size_fits = half > least ? half : least;
    return true;
}

void hf_segments_trim(struct hf_segments *s)
{
    while (s->count > 0 && s->list[s->count - 1].state == HF_SEGMENT_PREPARED) {
        struct hf_segment *g = &s->list[s->count - 1];
        uint64_t before = s->count > 1 ? s->list[s->count - 2].size : 0;
        char name[HF_SEGMENT_NAME_SIZE];
        if (g->size >= hf_segments_next_size(s, before))
            return;
        hf_segment_name(g->number, ".log", name);
        segment_close(s, g);
        s->io->remove(s->dir, name);
        s->count--;
    }
}

int hf_prepare_begin(struct hf_segments *s, uint64_t number, uint64_t size, struct hf_preparing *p)
{
    char name[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(number, ".tmp", name);
    *p = (struct hf_preparing){ .number = number, .size = size };
    return s->io->open(s->dir, name, HF_OPEN_CREATE, &p->file);
}

int hf_prepare_step(struct hf_segments *s, struct hf_preparing *p)
{
    static const unsigned char zeros[FILL_STEP];
    uint64_t left = p->size - p->filled;
    size_t n = left < FILL_STEP ? (size_t)left : FILL_STEP;
    int error = s->io->write(p->file, zeros, n, p->filled);
    if (error)
        return error;
    /* Start the write now and sync rarely: each sync makes commits wait for the disk's cache. But
     * keep the unsynced amount small, so that the system does not slow down commits to write it. */
    s->io->start(p->file, p->filled, n);
    p->filled += n;
    return p->filled % SYNC_EVERY == 0 ? s->io->sync(p->file) : 0;
}

int hf_prepare_name(struct hf_segments *s, struct hf_preparing *p)
{
    char from[HF_SEGMENT_NAME_SIZE], to[HF_SEGMENT_NAME_SIZE];
    hf_segment_name(p->number, ".tmp", from);
    hf_segment_name(p->number, ".log", to);
    int error = s->io->sync(p->file);
    if (!error)
        error = s->io->rename(s->dir, from, to);
    return error ? error : s->io->dir_sync(s->dir);
}

void hf_prepare_drop(struct hf_segments *s, struct hf_preparing *p)
{
    char name[HF_SEGMENT_NAME_SIZE];
    if (!p->file)
        return;
    s->io->close(p->file);
    hf_segment_name(p->number, ".tmp", name);
    s->io->remove(s->dir, name);
    *p = (struct hf_preparing){ 0 };
}

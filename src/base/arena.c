#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

struct hf_arena_block {
    struct hf_arena_block *older;
    size_t size; /* of `bytes` */
    alignas(max_align_t) unsigned char bytes[];
};

/* Enough for a small request; a larger piece gets a block of its own size. */
enum { BLOCK = 1024 - sizeof(struct hf_arena_block), KEPT_MAX = 4096 };

static bool grow(struct hf_arena *arena, size_t size)
{
    if (size < BLOCK)
        size = BLOCK;
    struct hf_arena_block *block = malloc(sizeof *block + size);
    if (!block)
        return false;
    block->older = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->at = block->bytes;
    arena->end = block->bytes + size;
    arena->held += sizeof *block + size;
    return true;
}

void *hf_arena_take(struct hf_arena *arena, size_t size)
{
    const size_t unit = alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size > 0 ? (size + unit - 1) / unit * unit : unit; /* NULL would mean out of memory */
    if (size > (size_t)(arena->end - arena->at) && !grow(arena, size))
        return NULL;
    void *taken = arena->at;
    arena->at += size;
    return taken;
}

static void drop(struct hf_arena *arena)
{
    struct hf_arena_block *block = arena->blocks;
    arena->blocks = block->older;
    arena->held -= sizeof *block + block->size;
    free(block);
}

void hf_arena_reset(struct hf_arena *arena)
{
    while (arena->blocks && (arena->blocks->older || arena->blocks->size > KEPT_MAX))
        drop(arena);
    arena->at = arena->blocks ? arena->blocks->bytes : NULL;
    arena->end = arena->blocks ? arena->at + arena->blocks->size : NULL;
}

void hf_arena_free(struct hf_arena *arena)
{
    while (arena->blocks)
        drop(arena);
    *arena = (struct hf_arena){ 0 };
}

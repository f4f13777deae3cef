/* arena.h: memory that is freed all at once.
 *
 * A request's pieces (unescaped text, lists of items) live exactly as long as the request, so they
 * are taken from shared blocks and not freed separately. */
#ifndef HF_BASE_ARENA_H
#define HF_BASE_ARENA_H

#include "holdfast.h"

struct hf_arena_block;

struct hf_arena {
    unsigned char *at, *end;       /* private: the free rest of the newest block */
    struct hf_arena_block *blocks; /* owned, newest first; free with hf_arena_free */
    size_t held;                   /* bytes of all blocks */
};

/* `size` bytes, aligned for any type, not cleared; valid until reset or free. NULL if out of
 * memory. */
void *hf_arena_take(struct hf_arena *arena, size_t size);
/* Free everything, but keep one block of moderate size for the next request. */
void hf_arena_reset(struct hf_arena *arena);
void hf_arena_free(struct hf_arena *arena);

#endif

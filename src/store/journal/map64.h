/* map64.h: a table from 64-bit hashes to 64-bit values, 16 bytes a slot.
 *
 * It consists of many small open-addressing tables, chosen by the top bits of the hash. Each grows
 * by itself, so a growth moves only one part (tens of thousands of slots, well under a
 * millisecond), and a snapshot can copy part by part. One hash may occur several times (two keys
 * that collide); the caller tells them apart. Value 0 means empty and cannot be stored. */
#ifndef HF_STORE_JOURNAL_MAP64_H
#define HF_STORE_JOURNAL_MAP64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_slot {
    uint64_t hash, value;
};

struct hf_map_part {
    struct hf_slot *slots; /* owned; a power of two of them, or NULL */
    uint32_t room, used;
};

enum { HF_MAP_FEW = 64 };

struct hf_map64 {
    struct hf_map_part *parts; /* owned */
    unsigned part_bits;
    uint64_t used;
    uint64_t bytes; /* of all slots and parts */
    uint32_t made;  /* parts that have slots */
    /* the first of them: a small store is freed without visiting all parts */
    uint32_t first_made[HF_MAP_FEW];
};

/* Create a map of 2^part_bits parts. False if out of memory. */
bool hf_map64_init(struct hf_map64 *m, unsigned part_bits);
void hf_map64_free(struct hf_map64 *m);

/* Make sure that adding `count` entries of hash `hash` needs no memory. */
bool hf_map64_reserve(struct hf_map64 *m, uint64_t hash, unsigned count);

/* Add an entry. Needs a reserve before; never fails. */
void hf_map64_add(struct hf_map64 *m, uint64_t hash, uint64_t value);

/* Walk the entries of one hash:
 *     for (struct hf_slot *s = NULL; (s = hf_map64_next(&m, hash, s)) != NULL;)
 * A slot is valid until the next add, reserve or remove; its value may be changed in place. */
struct hf_slot *hf_map64_next(const struct hf_map64 *m, uint64_t hash, struct hf_slot *after);

/* Prefetch the first slot of `hash`. */
static inline void hf_map64_prefetch(const struct hf_map64 *m, uint64_t hash)
{
    const struct hf_map_part *p = &m->parts[m->part_bits ? hash >> (64 - m->part_bits) : 0];
    if (p->slots)
        __builtin_prefetch(&p->slots[(uint32_t)hash & (p->room - 1)]);
}

/* Remove the slot. */
void hf_map64_remove(struct hf_map64 *m, struct hf_slot *slot);

static inline size_t hf_map64_parts(const struct hf_map64 *m)
{
    return (size_t)1 << m->part_bits;
}

/* A good 64-bit mix for keys that are plain numbers. */
static inline uint64_t hf_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

#endif

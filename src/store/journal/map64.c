#include "store/journal/map64.h"

#include "base/assert.h"

#include <stdlib.h>

bool hf_map64_init(struct hf_map64 *m, unsigned part_bits)
{
    m->parts = calloc((size_t)1 << part_bits, sizeof *m->parts);
    m->part_bits = part_bits;
    m->used = m->made = 0;
    m->bytes = sizeof *m->parts << part_bits;
    return m->parts != NULL;
}

void hf_map64_free(struct hf_map64 *m)
{
    if (!m->parts)
        return;
    bool few = m->made <= HF_MAP_FEW;
    for (size_t i = 0; i < (few ? m->made : hf_map64_parts(m)); i++)
        free(m->parts[few ? m->first_made[i] : i].slots);
    free(m->parts);
    m->parts = NULL;
}

static struct hf_map_part *part_of(const struct hf_map64 *m, uint64_t hash)
{
    return &m->parts[m->part_bits ? hash >> (64 - m->part_bits) : 0];
}

static void slot_put(struct hf_map_part *p, uint64_t hash, uint64_t value)
{
    uint32_t mask = p->room - 1;
    uint32_t i = (uint32_t)hash & mask;
    while (p->slots[i].value != 0)
        i = (i + 1) & mask;
    p->slots[i].hash = hash;
    p->slots[i].value = value;
}

/* Full at 11/16. If fuller, a lookup of an absent key (every new key) passes a dozen slots; if
 * emptier, an entry takes more than its 48 bytes: after doubling it is 16 / 0.344 = 46.5. */
static bool fits(const struct hf_map_part *p, uint32_t room, uint32_t count)
{
    return (uint64_t)p->used + count <= (uint64_t)room * 11 / 16;
}

static bool part_resize(struct hf_map64 *m, struct hf_map_part *p, uint32_t room)
{
    struct hf_map_part made = { .slots = calloc(room, sizeof *p->slots),
                                .room = room,
                                .used = p->used };
    if (!made.slots)
        return false;
    if (p->room == 0 && m->made++ < HF_MAP_FEW)
        m->first_made[m->made - 1] = (uint32_t)(p - m->parts);
    for (uint32_t i = 0; i < p->room; i++)
        if (p->slots[i].value != 0)
            slot_put(&made, p->slots[i].hash, p->slots[i].value);
    m->bytes += (uint64_t)made.room * sizeof *made.slots;
    m->bytes -= (uint64_t)p->room * sizeof *p->slots;
    free(p->slots);
    *p = made;
    return true;
}

bool hf_map64_reserve(struct hf_map64 *m, uint64_t hash, unsigned count)
{
    struct hf_map_part *p = part_of(m, hash);
    if (fits(p, p->room, count))
        return true;
    uint32_t room = p->room ? p->room : 4;
    do
        room *= 2;
    while (!fits(p, room, count));
    return part_resize(m, p, room);
}

void hf_map64_add(struct hf_map64 *m, uint64_t hash, uint64_t value)
{
    struct hf_map_part *p = part_of(m, hash);
    HF_ASSERT(value != 0 && p->used < p->room);
    slot_put(p, hash, value);
    p->used++;
    m->used++;
}

struct hf_slot *hf_map64_next(const struct hf_map64 *m, uint64_t hash, struct hf_slot *after)
{
    const struct hf_map_part *p = part_of(m, hash);
    if (p->used == 0)
        return NULL;
    uint32_t mask = p->room - 1;
    uint32_t i = after ? (uint32_t)(after - p->slots + 1) & mask : (uint32_t)hash & mask;
    for (; p->slots[i].value != 0; i = (i + 1) & mask)
        if (p->slots[i].hash == hash)
            return &p->slots[i];
    return NULL;
}

void hf_map64_remove(struct hf_map64 *m, struct hf_slot *slot)
{
    struct hf_map_part *p = part_of(m, slot->hash);
    uint32_t mask = p->room - 1;
    uint32_t hole = (uint32_t)(slot - p->slots);
    /* Close the gap: entries that probed over the hole move back into it, so no tombstone is
     * needed. */
    for (uint32_t i = (hole + 1) & mask; p->slots[i].value != 0; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)p->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            p->slots[hole] = p->slots[i];
            hole = i;
        }
    }
    p->slots[hole].value = 0;
    p->used--;
    m->used--;
    if (p->room > 64 && p->used < p->room / 8)
        part_resize(m, p, p->room / 4); /* if out of memory, it stays large */
}

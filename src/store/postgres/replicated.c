#include "store/postgres/replicated.h"

/* The timeline and the number in one word, so that both change at once. 48 bits are enough for ten
 * thousand transactions a second over eight hundred years. */
enum { XID_BITS = 48, SPECIAL = 3 /* numbers below it stand for "frozen" and the like */ };

static uint64_t pack(uint32_t timeline, uint64_t xid)
{
    return (uint64_t)(timeline & 0xffff) << XID_BITS | (xid & ((UINT64_C(1) << XID_BITS) - 1));
}

uint64_t hf_pg_xid(uint32_t xmin, uint64_t next)
{
    uint64_t epoch = UINT64_C(1) << 32, xid = (next & ~(epoch - 1)) | xmin;
    if (xmin < SPECIAL)
        return 0;
    return xid >= next && xid >= epoch ? xid - epoch : xid;
}

bool hf_pg_replicated_has(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid)
{
    uint64_t below = atomic_load(&r->below), mark = pack(timeline, xid);
    if (xid == 0)
        return true;
    if (below >> XID_BITS == mark >> XID_BITS && mark < below)
        return true;
    return atomic_load(&r->known[xid % HF_PG_KNOWN]) == mark;
}

bool hf_pg_replicated_all(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t next)
{
    uint64_t below = atomic_load(&r->below), from = below & ((UINT64_C(1) << XID_BITS) - 1);
    if (below >> XID_BITS != pack(timeline, 0) >> XID_BITS ||
        (next > from && next - from > HF_PG_KNOWN))
        return false;
    while (from < next && atomic_load(&r->known[from % HF_PG_KNOWN]) == pack(timeline, from))
        from++;
    return from >= next;
}

bool hf_pg_replicated_is_below(const struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid)
{
    uint64_t below = atomic_load(&r->below), mark = pack(timeline, xid);
    return below >> XID_BITS == mark >> XID_BITS && mark <= below;
}

void hf_pg_replicated_below(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid)
{
    uint64_t before = atomic_load(&r->below), mark = pack(timeline, xid);
    while (before < mark && !atomic_compare_exchange_weak(&r->below, &before, mark))
        ;
}

void hf_pg_replicated_add(struct hf_pg_replicated *r, uint32_t timeline, uint64_t xid)
{
    _Atomic uint64_t *place = &r->known[xid % HF_PG_KNOWN];
    uint64_t before = atomic_load(place), mark = pack(timeline, xid);
    while (before < mark && !atomic_compare_exchange_weak(place, &before, mark))
        ;
}

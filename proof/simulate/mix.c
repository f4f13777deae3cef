#include "simulate/mix.h"

#include <string.h>

static uint64_t below(struct sim_chance *c, uint64_t n)
{
    return sim_chance_below(c, n);
}

#define ONE_OF(c, list) ((list)[below(c, sizeof(list) / sizeof *(list))])

/* Actions come in groups that make sense together. A group is in or out. */
static const struct group {
    uint8_t actions[9];
    uint8_t weights[9];
} groups[] = {
    { { HF_PLACE_HOLD, HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE, HF_CONFIRM_LATE,
        HF_SET_RESOURCE },
      { 30, 8, 8, 4, 4, 4, 2 } },
    { { HF_PLACE_HOLD, HF_CONFIRM, HF_REVERSE, HF_CONFIRM_LATE }, { 20, 14, 8, 6 } },
    { { HF_SET_GUARD, HF_CHECK, HF_RECORD, HF_ADMIT }, { 1, 6, 8, 12 } },
    { { HF_BEGIN, HF_COMPLETE, HF_FAIL, HF_HEARTBEAT, HF_ABANDON }, { 14, 6, 4, 3, 2 } },
    { { HF_GRANT, HF_RENEW, HF_RETURN, HF_DELETE_LEASE }, { 8, 4, 4, 1 } },
    { { HF_WRITE, HF_DELETE_REGISTER }, { 12, 2 } },
    { { HF_MERGE, HF_DELETE_REGISTER }, { 10, 1 } },
    { { HF_APPLY, HF_GET_VALUE }, { 16, 2 } },
    { { HF_GET_HOLD, HF_GET_RESOURCE, HF_GET_GUARD, HF_GET_CLAIM, HF_GET_LEASE, HF_GET_REGISTER,
        HF_GET_TOKEN, HF_GET_VALUE },
      { 2, 2, 1, 2, 1, 1, 4, 1 } },
};

enum { GROUPS = sizeof groups / sizeof *groups };

static void draw_actions(struct sim_mix *m, struct sim_chance *c)
{
    uint64_t in = below(c, 1U << GROUPS);
    if (sim_chance_once_in(c, 4))
        in = (1U << GROUPS) - 1;
    if ((in & ((1U << (GROUPS - 1)) - 1)) == 0) /* reads alone are no run */
        in |= 1;
    for (size_t g = 0; g < GROUPS; g++) {
        if (!(in >> g & 1))
            continue;
        uint32_t factor = 1 + (uint32_t)below(c, 6);
        for (size_t i = 0; i < sizeof groups[g].actions && groups[g].actions[i]; i++)
            m->weights[groups[g].actions[i]] += groups[g].weights[i] * factor;
    }
    for (size_t i = 0; i < sizeof m->weights / sizeof *m->weights; i++)
        m->weight_total += m->weights[i];
}

static void draw_people(struct sim_mix *m, struct sim_chance *c)
{
    m->clients = 1 + (uint32_t)below(c, SIM_CLIENTS_MAX);
    m->tenants = 1 + (uint32_t)below(c, SIM_TENANTS_MAX);
    m->things = 1 + (uint32_t)below(c, SIM_THINGS_MAX);
    m->requesters = 1 + (uint32_t)below(c, 4);
    m->identities = 1 + (uint32_t)below(c, 20);
    m->claims = 1 + (uint32_t)below(c, 40);
}

static void draw_requests(struct sim_mix *m, struct sim_chance *c)
{
    static const uint32_t again[] = { 0, 2, 3, 5, 5, 10, 30 };
    static const uint32_t rare[] = { 0, 10, 30, 100 };
    static const uint32_t key_bytes[] = { 4, 8, 16, 36, 120, 256 };
    static const uint32_t name_bytes[] = { 0, 0, 12, 40, 200, 1000 };
    static const uint32_t payload[] = { 0, 10, 100, 1000, 4000 };
    static const int64_t span[] = { 1, 20, 300, 3000, 60000, 3600000, 86400000 };
    m->again_in = ONE_OF(c, again);
    m->together_in = ONE_OF(c, rare);
    m->wrong_in = ONE_OF(c, rare);
    m->odd_in = ONE_OF(c, rare);
    m->number_in = sim_chance_once_in(c, 3) ? 1 + (uint32_t)below(c, 6) : 0;
    m->key_bytes = ONE_OF(c, key_bytes);
    m->name_bytes = ONE_OF(c, name_bytes);
    m->payload_max = ONE_OF(c, payload);
    m->hold_ms_max = ONE_OF(c, span);
    m->lease_ms_max = ONE_OF(c, span);
    m->guard_ms_max = ONE_OF(c, span);
    m->match_rules = sim_chance_once_in(c, 2);
    m->volatile_guards = sim_chance_once_in(c, 4);
}

static void draw_store(struct sim_mix *m, struct sim_chance *c)
{
    static const int64_t window[] = { 1, 40, 500, 5000, 60000, 86400000, 86400000 };
    static const uint32_t token_max[] = { 0, 16, 64, 256, 1024 };
    static const uint64_t snapshot[] = { 65536, 100000, 200000, 500000, 4000000 };
    m->window_ms = ONE_OF(c, window);
    m->token_max = ONE_OF(c, token_max);
    m->strict = sim_chance_once_in(c, 5);
    m->keep_plain = sim_chance_once_in(c, 2);
    /* The store sets room aside for the largest effect that an apply may have, and the largest
     * value of a merge. */
    m->segment_least = m->weights[HF_APPLY] ? 2 << 20 : m->weights[HF_MERGE] ? 128 << 10 : 64 << 10;
    m->segment_bytes = m->segment_least + below(c, 1 + below(c, 4)) * 65536;
    m->snapshot_bytes = ONE_OF(c, snapshot);
}

static void draw_pace(struct sim_mix *m, struct sim_chance *c)
{
    static const uint32_t batch[] = { 1, 4, 8, 16, 32, 100 };
    static const uint32_t maintain[] = { 3, 10, 30, 100, 1000 };
    static const uint32_t pace[] = { 0, 1, 2, 10, 100, 2000 };
    m->batch_max = ONE_OF(c, batch);
    m->maintain_every = ONE_OF(c, maintain);
    m->pace_ms = ONE_OF(c, pace);
}

/* A number of events: often none, seldom many. */
static uint32_t times(struct sim_chance *c, uint32_t none_in, uint32_t most)
{
    if (!sim_chance_once_in(c, none_in))
        return 0;
    return 1 + (uint32_t)below(c, 1 + below(c, most));
}

static void draw_faults(struct sim_mix *m, struct sim_chance *c)
{
    bool calm = sim_chance_once_in(c, 12); /* the rules alone must hold, too */
    uint32_t cuts = times(c, 2, 10), failures = times(c, 3, 8), rooms = times(c, 4, 3);
    uint32_t slows = times(c, 5, 3), rots = times(c, 4, 2);
    m->cuts = calm ? 0 : cuts;
    m->failures = calm ? 0 : failures;
    m->rooms = calm ? 0 : rooms;
    m->slows = calm ? 0 : slows;
    m->rots = calm ? 0 : rots;
    m->reopens = times(c, 2, 4);
    m->jumps = times(c, 2, 10);
    m->stalls = times(c, 4, 4);
    m->looks = 1 + (uint32_t)below(c, 4);
    m->back = sim_chance_once_in(c, 2);
    m->tight = sim_chance_once_in(c, 5);
    uint32_t stales = times(c, 3, 6);
    m->stales = calm || stales == 0 ? 0 : 1 + stales;
}

void sim_mix_draw(struct sim_mix *m, uint64_t seed, uint32_t operations)
{
    struct sim_chance c;
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->operations = operations;
    sim_chance_init(&c, seed);
    draw_people(m, &c);
    draw_actions(m, &c);
    draw_requests(m, &c);
    draw_store(m, &c);
    draw_pace(m, &c);
    draw_faults(m, &c);
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

void sim_chance_init(struct sim_chance *c, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        c->state[i] = z ^ z >> 31;
    }
}

uint64_t sim_chance_next(struct sim_chance *c)
{
    uint64_t *s = c->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t sim_chance_below(struct sim_chance *c, uint64_t n)
{
    return sim_chance_next(c) % n; /* the bias does not matter here */
}

bool sim_chance_once_in(struct sim_chance *c, uint64_t n)
{
    return n && sim_chance_below(c, n) == 0;
}

void sim_chance_bytes(struct sim_chance *c, void *data, size_t size)
{
    unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)(sim_chance_next(c) >> 56);
}

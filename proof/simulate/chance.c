#include "simulate/chance.h"

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

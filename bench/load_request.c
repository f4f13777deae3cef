#include "load.h"

#include <assert.h>
#include <string.h>

/* A bijection of 64 bits (splitmix64's finish), so different numbers give different tokens. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void hex(uint64_t value, char *to, unsigned digits)
{
    for (unsigned i = 0; i < digits; i++)
        to[i] = "0123456789abcdef"[(value >> (4 * (digits - 1 - i))) & 15];
}

static void name(char letter, uint64_t number, char out[HF_LOAD_NAME])
{
    out[0] = letter;
    for (unsigned i = HF_LOAD_NAME - 1; i > 0; i--) {
        out[i] = (char)('0' + number % 10);
        number /= 10;
    }
}

void hf_load_resource(uint64_t number, char out[HF_LOAD_NAME])
{
    name('r', number, out);
}

void hf_load_request(uint64_t number, uint64_t resources, struct hf_load_request *out)
{
    uint64_t unique = mix(number), more = mix(unique);
    char *t = out->token;
    hex(unique >> 32, t, 8);
    t[8] = '-';
    hex(unique >> 16, t + 9, 4);
    t[13] = '-';
    hex(unique, t + 14, 4);
    t[18] = '-';
    hex(more >> 48, t + 19, 4);
    t[23] = '-';
    hex(more, t + 24, 12);
    name('r', more % resources, out->resource);
    name('u', (more >> 20) % 1000000, out->requester);
}

uint64_t hf_load_random(uint64_t *seed, uint64_t below)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)(((unsigned __int128)mix(*seed) * below) >> 64);
}

static size_t offset_of(const struct hf_load_template *t, const char *mark)
{
    const char *found = memmem(t->text, t->length, mark, strlen(mark));
    return found ? (size_t)(found - t->text) : 0;
}

void hf_load_template_mark(struct hf_load_template *t)
{
    static_assert(sizeof HF_LOAD_TOKEN_MARK == HF_LOAD_TOKEN + 1,
                  "a mark is as long as what replaces it");
    static_assert(sizeof HF_LOAD_RESOURCE_MARK == HF_LOAD_NAME + 1,
                  "a mark is as long as what replaces it");
    static_assert(sizeof HF_LOAD_REQUESTER_MARK == HF_LOAD_NAME + 1,
                  "a mark is as long as what replaces it");
    t->token = offset_of(t, HF_LOAD_TOKEN_MARK);
    t->resource = offset_of(t, HF_LOAD_RESOURCE_MARK);
    t->requester = offset_of(t, HF_LOAD_REQUESTER_MARK);
}

void hf_load_template_fill(const struct hf_load_template *t, const struct hf_load_request *r,
                           char *to)
{
    memcpy(to, t->text, t->length);
    if (t->token)
        memcpy(to + t->token, r->token, sizeof r->token);
    if (t->resource)
        memcpy(to + t->resource, r->resource, sizeof r->resource);
    if (t->requester)
        memcpy(to + t->requester, r->requester, sizeof r->requester);
}

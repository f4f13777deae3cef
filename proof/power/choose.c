/* What a power cut may leave, one way after the other. */
#include "power/inner.h"

#include "support/test.h"

/* ---- The chooser ---- */

/* In between the oldest and the newest, if there is anything. */
static uint32_t middle(uint32_t n)
{
    return n > 2 ? 1 + (n - 3) / 2 : n - 1;
}

/* A tear may be anywhere; all of them would be too many, so each is somewhere else. */
static uint32_t tear(const struct power_choosing *c, uint32_t n)
{
    return (uint32_t)((c->asked * 131 + c->index * 57 + 7) % n);
}

static uint32_t way_answer(struct power_choosing *c, uint32_t n)
{
    size_t i = c->asked;
    bool is_name = i < c->names;
    switch (c->way) {
    case WAY_OLDEST: return 0;
    case WAY_NEWEST: return n - 1;
    case WAY_ONE_LOST: return i == c->index ? 0 : n - 1;
    case WAY_ONE_KEPT: return i == c->index ? n - 1 : 0;
    case WAY_PREFIX: return i < c->index ? n - 1 : 0;
    case WAY_ONE_TORN: return i == c->index ? middle(n) : n - 1;
    case WAY_ALONE_TORN: return i == c->index ? middle(n) : 0;
    case WAY_NAMES_OLDEST: return is_name ? (uint32_t)(c->index >> i & 1) : 0;
    case WAY_NAMES_NEWEST: return is_name ? (uint32_t)(c->index >> i & 1) : n - 1;
    case WAY_LISTED: return i < POWER_ANSWERS && c->answers[i] < n ? c->answers[i] : 0;
    case WAY_RANDOM: return (uint32_t)test_below(&c->random, n);
    }
    return 0;
}

uint32_t power_choose(struct power_choosing *c, uint32_t n)
{
    bool is_tear = n == SIM_SECTOR - 1;
    uint32_t answer = is_tear && c->way != WAY_RANDOM ? tear(c, n) : way_answer(c, n);
    if (c->asked < POWER_ANSWERS)
        c->of[c->asked] = is_tear ? 1 : n;
    if (!is_tear && c->combinations < UINT32_MAX)
        c->combinations *= n;
    c->asked++;
    return answer;
}

/* ---- Disks that were judged already ---- */

static bool seen_insert(uint64_t *table, size_t room, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15)) & (room - 1);
    while (table[i] != 0 && table[i] != key)
        i = (i + 1) & (room - 1);
    bool fresh = table[i] == 0;
    table[i] = key;
    return fresh;
}

/* The verdict depends on the disk, and on what had been shown when it was cut. */
static bool is_new(struct power_ledger *l, const struct power *p)
{
    uint64_t shown = p->step * 16 + p->extra_count * 4 + p->pinned * 2 + p->answered;
    uint64_t key =
        sim_disk_hash(p->disk) ^ (shown * 2 + (p->level > 1)) * UINT64_C(0xff51afd7ed558ccd);
    if (l->seen_count * 2 >= l->seen_room) {
        size_t room = l->seen_room ? l->seen_room * 2 : 1024;
        uint64_t *table = calloc(room, sizeof *table);
        assert_non_null(table);
        for (size_t i = 0; i < l->seen_room; i++)
            if (l->seen[i])
                seen_insert(table, room, l->seen[i]);
        free(l->seen);
        l->seen = table;
        l->seen_room = room;
    }
    bool fresh = seen_insert(l->seen, l->seen_room, key ? key : 1);
    l->seen_count += fresh;
    return fresh;
}

/* ---- One state ---- */

static bool due(size_t every, uint64_t count)
{
    return every > 0 && count % every == 0;
}

/* Cut, let survive what the chooser says, and judge. choosing: in; out, what was asked. */
static void try_one(struct power *p, struct power_choosing *choosing)
{
    struct power_ledger *l = p->ledger;
    struct power q;
    if (power_objected(p))
        return;
    power_branch(&q, l, p, p->disk);
    choosing->asked = 0;
    choosing->combinations = 1;
    q.choosing = *choosing;
    q.level = p->level + 1;
    snprintf(q.where, sizeof q.where, "what survives: way %d, index %llu, random %llu",
             (int)choosing->way, (unsigned long long)choosing->index,
             (unsigned long long)choosing->random);
    sim_disk_cut(q.disk);
    sim_disk_restart(q.disk);
    *choosing = q.choosing;
    l->count->states++;
    if (!is_new(l, &q)) {
        power_end(&q);
        return;
    }
    uint64_t number = l->count->judged++;
    l->count->second_states += q.level > 1;
    if (q.level == 1 && due(l->limits[0].second_every, number))
        power_second_cuts(&q);
    if (q.level == 1 && due(l->limits[0].fault_every, number))
        power_faults(&q);
    power_judge(&q);
}

static void try_way(struct power *p, enum power_way way, uint64_t index)
{
    struct power_choosing c = { .way = way,
                                .index = index,
                                .random = index * 7919 + p->calls,
                                .names = sim_disk_names_unsynced(p->disk) };
    try_one(p, &c);
}

/* ---- Many ---- */

/* To the next combination, the last answer first. */
static bool next_listed(struct power_choosing *c)
{
    size_t i = c->asked < POWER_ANSWERS ? c->asked : POWER_ANSWERS;
    while (i-- > 0) {
        if (c->answers[i] + 1 < c->of[i]) {
            c->answers[i]++;
            memset(c->answers + i + 1, 0, (POWER_ANSWERS - i - 1) * sizeof *c->answers);
            return true;
        }
    }
    return false;
}

static void try_all(struct power *p)
{
    struct power_choosing c = { .way = WAY_LISTED, .names = sim_disk_names_unsynced(p->disk) };
    do {
        try_one(p, &c);
    } while (!power_objected(p) && next_listed(&c));
}

static void try_some(struct power *p, size_t asked, const struct power_limits *limits)
{
    size_t names = sim_disk_names_unsynced(p->disk);
    /* Of many single ones every n-th, and always the last. */
    size_t stride =
        asked > limits->ones_max ? (asked + limits->ones_max - 1) / limits->ones_max : 1;
    for (size_t i = 0; i < asked;
         i = i + stride < asked || i == asked - 1 ? i + stride : asked - 1) {
        try_way(p, WAY_ONE_LOST, i);
        try_way(p, WAY_ONE_KEPT, i);
        try_way(p, WAY_PREFIX, i);
        try_way(p, WAY_ONE_TORN, i);
        try_way(p, WAY_ALONE_TORN, i);
    }
    size_t bits = names < limits->names_max ? names : limits->names_max;
    for (uint64_t set = 0; names > 0 && set < UINT64_C(1) << bits; set++) {
        /* With more names than that, the oldest ones are all there: the newest are the ones in
         * doubt. */
        uint64_t all = ((UINT64_C(1) << (names - bits)) - 1) | set << (names - bits);
        try_way(p, WAY_NAMES_OLDEST, all);
        try_way(p, WAY_NAMES_NEWEST, all);
    }
    for (size_t i = 0; i < limits->random; i++)
        try_way(p, WAY_RANDOM, i);
}

void power_cut_here(struct power *p)
{
    const struct power_limits *limits = &p->ledger->limits[p->level > 0];
    struct power_choosing newest = { .way = WAY_NEWEST, .names = sim_disk_names_unsynced(p->disk) };
    if (power_objected(p))
        return;
    p->ledger->count->cuts++;
    try_one(p, &newest);
    try_way(p, WAY_OLDEST, 0);
    if (newest.asked == 0)
        return;
    if (newest.combinations <= limits->all_max)
        try_all(p);
    else
        try_some(p, newest.asked, limits);
}

/* The tables in memory against naive ones, under random changes. */
#include "base/bytes.h"
#include "store/journal/holds.h"
#include "store/journal/live.h"
#include "store/journal/map64.h"
#include "support/test.h"

#include <errno.h>

static void map64_keeps_what_a_list_keeps(void **state)
{
    (void)state;
    enum { KEYS = 300, STEPS = 200000 };
    uint64_t random = test_seed("map64", 1);
    uint64_t list[KEYS][3] = { { 0 } }; /* up to three values a key */
    struct hf_map64 m;
    assert_true(hf_map64_init(&m, 2));
    uint64_t used = 0;
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t k = test_below(&random, KEYS);
        /* Few different low bits, so that runs are long and wrap around. */
        uint64_t hash = (k % 7) | k << 40 | k << 60;
        size_t v = test_below(&random, 3);
        if (list[k][v] == 0) {
            list[k][v] = test_random(&random) | 1;
            assert_true(hf_map64_reserve(&m, hash, 1));
            hf_map64_add(&m, hash, list[k][v]);
            used++;
        } else {
            struct hf_slot *s = NULL;
            while ((s = hf_map64_next(&m, hash, s)) != NULL && s->value != list[k][v])
                ;
            assert_non_null(s);
            hf_map64_remove(&m, s);
            list[k][v] = 0;
            used--;
        }
        assert_int_equal(m.used, used);
        uint64_t probe = test_below(&random, KEYS);
        uint64_t probe_hash = (probe % 7) | probe << 40 | probe << 60;
        size_t found = 0, wanted = 0;
        for (struct hf_slot *s = NULL; (s = hf_map64_next(&m, probe_hash, s)) != NULL;)
            found += s->value == list[probe][0] || s->value == list[probe][1] ||
                     s->value == list[probe][2];
        for (v = 0; v < 3; v++)
            wanted += list[probe][v] != 0;
        assert_int_equal(found, wanted);
    }
    hf_map64_free(&m);
}

static void map64_costs_at_most_48_bytes_an_entry(void **state)
{
    (void)state;
    uint64_t random = 7;
    struct hf_map64 m;
    double worst = 0;
    assert_true(hf_map64_init(&m, 12));
    for (uint64_t n = 1; n <= 1500000; n++) {
        uint64_t hash = test_random(&random);
        assert_true(hf_map64_reserve(&m, hash, 1));
        hf_map64_add(&m, hash, n);
        double each = (double)m.bytes / (double)n;
        if (n > 100000 && each > worst)
            worst = each;
    }
    printf("worst: %.1f bytes an entry from 100,000 to 1,500,000\n", worst);
    assert_true(worst <= 48);
    hf_map64_free(&m);
}

static int number_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void mixing_numbers_is_one_to_one(void **state)
{
    (void)state;
    /* hf_mix64 is a permutation: otherwise two holds could share a place. Checked on a sample by
     * sorting. */
    enum { N = 1 << 16 };
    static uint64_t seen[N];
    for (uint64_t i = 0; i < N; i++)
        seen[i] = hf_mix64(i);
    qsort(seen, N, sizeof *seen, number_compare);
    for (size_t i = 1; i < N; i++)
        assert_true(seen[i] != seen[i - 1]);
}

struct naive_hold {
    bool held;
    hf_time expires_at;
    unsigned resource;
};

static void live_agrees_with_a_plain_array(void **state)
{
    (void)state;
    enum { HOLDS = 400, RESOURCES = 5, STEPS = 60000 };
    uint64_t random = test_seed("live", 3);
    struct naive_hold naive[HOLDS + 1] = { { .held = false } };
    uint32_t roots[RESOURCES] = { 0 };
    struct hf_live l;
    hf_live_init(&l);
    for (size_t step = 0; step < STEPS; step++) {
        uint64_t ordinal = 1 + test_below(&random, HOLDS);
        struct naive_hold *h = &naive[ordinal];
        if (!h->held) {
            *h = (struct naive_hold){ true, (hf_time)test_below(&random, 1000),
                                      (unsigned)test_below(&random, RESOURCES) };
            assert_true(hf_live_reserve(&l, ordinal));
            hf_live_add(&l, ordinal, h->expires_at, &roots[h->resource], h->resource);
        } else {
            h->held = false;
            hf_live_remove(&l, ordinal);
        }
        hf_time now = (hf_time)test_below(&random, 1000);
        hf_time first = INT64_MAX;
        for (size_t i = 1; i <= HOLDS; i++)
            if (naive[i].held && naive[i].expires_at < first)
                first = naive[i].expires_at;
        assert_int_equal(hf_live_next_expiry(&l), first);
        uint64_t overdue = hf_live_first_overdue(&l, now);
        assert_true((overdue != 0) == (first <= now));
        assert_true(!overdue || (naive[overdue].held && naive[overdue].expires_at == first));

        unsigned r = (unsigned)test_below(&random, RESOURCES);
        uint64_t found[8];
        size_t n = hf_live_overdue(&l, roots[r], now, found, 8), wanted = 0;
        for (size_t i = 1; i <= HOLDS; i++)
            wanted += naive[i].held && naive[i].resource == r && naive[i].expires_at <= now;
        assert_true(n <= wanted && (n > 0) == (wanted > 0));
        for (size_t i = 0; i < n; i++) {
            assert_true(naive[found[i]].held && naive[found[i]].resource == r);
            assert_true(naive[found[i]].expires_at <= now);
            for (size_t k = 0; k < i; k++)
                assert_true(found[k] != found[i]);
        }
    }
    hf_live_free(&l);
}

/* A hold that has moved, and moves again when its neighbours have brought a chunk of their own, is
 * known at its newest place, before and after the file is brought up to date. */
static void a_hold_is_known_where_it_went_last(void **state)
{
    (void)state;
    const struct hf_io *io = hf_io_memory();
    struct hf_store_keys keys = { { 0 }, { 1, 2 }, { 3, 4 }, { 5, 6 } };
    struct hf_dir *dir;
    struct hf_holds h;
    uint64_t at;
    assert_int_equal(io->dir_open(NULL, "", true, &dir), 0);
    assert_true(hf_holds_init(&h, io, dir, &keys.table));
    h.covered = h.highest = 10;
    assert_int_equal(hf_holds_make(&h, &keys, 10), 0);
    assert_true(hf_holds_reserve(&h, 5, 1));
    hf_holds_set(&h, 5, 1000); /* old, and moved */
    assert_true(hf_holds_reserve(&h, 11, 1));
    hf_holds_set(&h, 11, 2000); /* new: a chunk, in which 5 has a place too */
    assert_true(hf_holds_reserve(&h, 5, 1));
    hf_holds_set(&h, 5, 3000);
    assert_int_equal(hf_holds_get(&h, 5, &at), 0);
    assert_int_equal(at, 3000);
    struct hf_moved moved[8];
    size_t n = 0;
    for (size_t part = 0; part < hf_holds_parts(&h); part++)
        n += hf_holds_take(&h, part, 4000, moved + n);
    assert_int_equal(n, 2);
    uint64_t bad;
    assert_int_equal(hf_holds_make(&h, &keys, 11), 0);
    assert_int_equal(hf_holds_write(&h, moved, n, 4000, &bad), 0);
    hf_holds_landed(&h, 4000, 7, 11);
    hf_holds_forget(&h, moved, n);
    assert_int_equal(h.moved.used, 0);
    assert_int_equal(hf_holds_get(&h, 5, &at), 0);
    assert_int_equal(at, 3000);
    assert_int_equal(hf_holds_get(&h, 11, &at), 0);
    assert_int_equal(at, 2000);
    assert_int_equal(hf_holds_get(&h, 12, &at), -ENOENT);
    /* A snapshot that says nothing of the file, as those of version 0.1, does not vouch for it. */
    struct hf_holds other;
    int level;
    assert_true(hf_holds_init(&other, io, dir, &keys.table));
    assert_non_null(hf_holds_open(&other, &keys, 4000, 7, &level));
    bool no_memory;
    unsigned char sum[8];
    hf_put64(sum, h.sums[0]);
    assert_true(hf_holds_told(&other, 11, 1, sum, 1, &no_memory));
    assert_null(hf_holds_open(&other, &keys, 4000, 7, &level));
    assert_int_equal(hf_holds_check(&other, UINT64_MAX), 0);
    assert_int_equal(hf_holds_get(&other, 5, &at), 0);
    assert_int_equal(at, 3000);
    hf_holds_free(&other);
    hf_holds_free(&h);
    io->dir_close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map64_keeps_what_a_list_keeps),
        cmocka_unit_test(map64_costs_at_most_48_bytes_an_entry),
        cmocka_unit_test(mixing_numbers_is_one_to_one),
        cmocka_unit_test(live_agrees_with_a_plain_array),
        cmocka_unit_test(a_hold_is_known_where_it_went_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

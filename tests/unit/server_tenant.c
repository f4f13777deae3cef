/* What each tenant may have: found by name, and requests a second. */
#include "server/tenant.h"

#include "support/test.h"

static struct hf_tenants tenants;

static struct hf_tenant *find(const char *name, struct hf_tenant *before)
{
    struct hf_tenant *t = hf_tenant_find(&tenants, before, hf_str(name));
    assert_non_null(t);
    return t;
}

static void found_by_name(void **state)
{
    (void)state;
    hf_tenants_init(&tenants, 7, 0);
    struct hf_tenant *some[600];
    char name[32];
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "t%d", i);
        some[i] = find(name, i ? some[i - 1] : NULL);
        assert_int_equal(some[i]->group.max, 7);
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(some[i], some[k]);
    }
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "t%d", i);
        assert_ptr_equal(find(name, NULL), some[i]);
        assert_ptr_equal(find(name, some[i]), some[i]);
        assert_ptr_equal(find(name, some[(i + 1) % 600]), some[i]);
    }
    assert_ptr_equal(find("", NULL),
                     find("", some[0])); /* the default tenant is one like the others */
    assert_ptr_not_equal(find("", NULL), &tenants.nobody);
    hf_tenants_free(&tenants);
}

/* How many of `tries` are let in at `now`? */
static int64_t take(struct hf_tenant *t, int64_t now_us, uint64_t count)
{
    return hf_tenant_take(&tenants, t, &(struct hf_charge){ .now_us = now_us, .count = count });
}

static int let_in(struct hf_tenant *t, int64_t now_us, int tries)
{
    int in = 0;
    for (int i = 0; i < tries; i++)
        in += take(t, now_us, 1) == 0;
    return in;
}

static void a_second_at_once_and_then_the_rate(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL), *b = find("b", NULL);
    assert_int_equal(let_in(a, start, 50), 10);
    assert_int_equal(take(a, start, 1), 100000); /* in a tenth of a second */
    assert_int_equal(let_in(a, start + 99999, 5), 0);
    assert_int_equal(let_in(a, start + 100000, 5), 1);
    assert_int_equal(let_in(b, start + 100000, 50), 10); /* another one has its own */
    for (int i = 2; i < 100; i++)
        assert_int_equal(let_in(a, start + i * 100000, 3), 1);
    assert_int_equal(let_in(a, start + 3600000000, 50),
                     10); /* what was not used for an hour is worth a second */
    hf_tenants_free(&tenants);
}

/* A batch is owed for, for ten seconds at most, and two at once are not two of them. */
static void a_batch_is_owed_for(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL);
    assert_int_equal(hf_tenant_batch_max(&tenants), 100);
    assert_int_equal(let_in(a, start, 50), 10);
    assert_int_equal(take(a, start + 100000, 100), 0);
    assert_int_equal(take(a, start + 100000, 100), 10000000);
    assert_int_equal(let_in(a, start + 10099999, 5), 0);
    assert_int_equal(let_in(a, start + 10100000, 5), 1);
    hf_tenants_free(&tenants);
}

static void endings_are_counted_apart(void **state)
{
    (void)state;
    const int64_t start = INT64_C(5000000000);
    struct hf_charge ending = { .now_us = start, .count = 1, .ending = true };
    hf_tenants_init(&tenants, 0, 10);
    struct hf_tenant *a = find("a", NULL);
    assert_int_equal(take(a, start, 100), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(hf_tenant_take(&tenants, a, &ending), 0);
    assert_int_equal(hf_tenant_take(&tenants, a, &ending), 100000);
    hf_tenants_free(&tenants);
}

static void without_a_rate_all_are_let_in(void **state)
{
    (void)state;
    hf_tenants_init(&tenants, 0, 0);
    assert_int_equal(let_in(find("a", NULL), 1, 10000), 10000);
    assert_int_equal(hf_tenant_batch_max(&tenants), 0);
    assert_int_equal(take(find("a", NULL), 1, 8192), 0);
    assert_int_equal(let_in(find("a", NULL), 1, 10), 10);
    hf_tenants_free(&tenants);
    hf_tenants_init(&tenants, 0, 1000000); /* the highest */
    assert_int_equal(let_in(find("a", NULL), INT64_C(10000000), 2000000), 1000000);
    hf_tenants_free(&tenants);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(a_second_at_once_and_then_the_rate),
        cmocka_unit_test(a_batch_is_owed_for),
        cmocka_unit_test(endings_are_counted_apart),
        cmocka_unit_test(without_a_rate_all_are_let_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

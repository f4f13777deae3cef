/* Opening a store: who may, with which options, and what is in force then. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static enum hf_status opened(const char *path, const struct hf_options *options,
                             struct hf_error *why)
{
    struct hf_db *db = NULL;
    enum hf_status st = hf_open(path, options, &db, why);
    assert_int_equal(st == HF_OK, db != NULL);
    hf_close(db);
    return st;
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    const struct hf_options bad[] = {
        { .idempotency_window_ms = -1 },
        { .idempotency_window_ms = HF_DURATION_MAX_MS + 1 },
        { .token_max_length = HF_TOKEN_MAX + 1 },
        { .registry = HF_REGISTRY_STRICT + 1 },
        { .segment_max_bytes = 65535 },
        { .segment_max_bytes = 65537 },
        { .segment_max_bytes = 100 },
        { .segment_max_bytes = UINT64_MAX },
    };
    char *dir = test_dir_make();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_error why;
        struct hf_options o = bad[i];
        o.postgres = k->options.postgres;
        if (k->remote && o.segment_max_bytes)
            continue; /* there are none */
        assert_int_equal(opened(dir, &o, &why), HF_INVALID_REQUEST);
        assert_int_equal(why.status, HF_INVALID_REQUEST);
        assert_true(strlen(why.text) > 10);
    }
    const struct hf_options good = { .postgres = k->options.postgres,
                                     .idempotency_window_ms = HF_DURATION_MAX_MS,
                                     .token_max_length = HF_TOKEN_MAX,
                                     .registry = HF_REGISTRY_STRICT,
                                     .segment_max_bytes = 65536 };
    assert_int_equal(opened(dir, &good, NULL), HF_OK);
    test_dir_remove(dir);
}

static void a_second_opener_is_refused_and_told_who_has_it(void **state)
{
    (void)state;
    both_needs_files();
    struct hf_error why;
    k->options.holder = "the night shift";
    kit_reopen(k);
    assert_int_equal(opened(k->dir, &k->options, &why), HF_STORE_BUSY);
    assert_non_null(strstr(why.text, "the night shift"));
    char id[HF_ID_SIZE];
    kit_held(k, "room", HOUR, id); /* the first one goes on */
    kit_close(k);
    assert_int_equal(opened(k->dir, &k->options, &why), HF_OK);
    kit_open(k);
}

/* flock needs no right to write: any user who can open the directory can lock it. The store is
 * opened all the same. */
static void a_directory_that_others_may_open_is_told(void **state)
{
    (void)state;
    both_needs_files();
    static const mode_t modes[] = { 0700, 0711, 0750, 0705, 0720, 0702, 0755, 0777 };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        kit_close(k);
        k->note[0] = '\0';
        assert_int_equal(chmod(k->dir, modes[i]), 0);
        kit_open(k);
        assert_int_equal(strstr(k->note, "mode to 0700") != NULL, (modes[i] & 066) != 0);
        if (modes[i] & 066)
            assert_non_null(strstr(k->note, k->dir));
    }
    /* Also if the lock is taken: that may be why. */
    struct hf_error why;
    k->note[0] = '\0';
    assert_int_equal(opened(k->dir, &k->options, &why), HF_STORE_BUSY);
    assert_non_null(strstr(k->note, "mode to 0700"));
}

static void two_openers_of_a_database_share_it(void **state)
{
    (void)state;
    struct hf_db *first = k->db, *second;
    char id[HF_ID_SIZE];
    if (!k->remote)
        skip();
    assert_int_equal(hf_open(k->dir, &k->options, &second, NULL), HF_OK);
    for (int i = 0; i < 20; i++) {
        char key[24];
        snprintf(key, sizeof key, "shared-%d", i);
        k->db = i % 2 ? first : second;
        assert_int_equal(kit_place(k, key, key, "guest", HOUR), HF_OK);
        assert_false(k->got.replayed);
        memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
        k->db = i % 2 ? second : first;
        assert_int_equal(kit_place(k, key, key, "guest", HOUR), HF_OK);
        assert_true(k->got.replayed);
        assert_string_equal(k->got.answer.hold.id, id);
        assert_int_equal(kit_place(k, kit_key(k), key, "other", HOUR), HF_RESOURCE_UNAVAILABLE);
        assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), id), HF_OK);
    }
    k->db = first;
    hf_close(second);
    assert_int_equal(kit_stats(k).holds, 20);
    assert_int_equal(kit_get_hold(k, id), HF_OK); /* the first one goes on */
    assert_int_equal(k->got.answer.hold.state, HF_CONFIRMED);
}

static void without_create_there_must_be_a_database_with_a_store(void **state)
{
    (void)state;
    struct hf_error why;
    if (!k->remote)
        skip();
    kit_leave(k);
    both_absent();
    k->options.no_create = true;
    for (int i = 0; i < 2; i++) { /* nothing was made by the first */
        assert_int_equal(opened(k->dir, &k->options, &why), HF_STORE_ABSENT);
        assert_true(strlen(why.text) > 10);
    }
    k->options.no_create = false;
    kit_open(k);
    k->options.no_create = true;
    kit_reopen(k);
}

static void without_create_there_must_be_a_store(void **state)
{
    (void)state;
    both_needs_files();
    struct hf_error why;
    struct hf_options o = k->options;
    char path[512];
    o.no_create = true;
    snprintf(path, sizeof path, "%s/none", k->dir);
    assert_int_equal(opened(path, &o, &why), HF_STORE_ABSENT);
    struct stat st;
    assert_int_not_equal(stat(path, &st), 0); /* nothing was made */
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(opened(path, &o, &why), HF_STORE_ABSENT);
    o.no_create = false;
    snprintf(path, sizeof path, "%s/none/too/deep", k->dir);
    assert_int_equal(opened(path, &o, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "/none/too does not exist. Create it first"));
    kit_close(k);
    o.no_create = true;
    assert_int_equal(opened(k->dir, &o, &why), HF_OK);
}

static void the_configuration_in_force_is_kept_until_it_is_changed(void **state)
{
    (void)state;
    k->options.idempotency_window_ms = MINUTE;
    k->options.registry = HF_REGISTRY_STRICT;
    kit_reopen(k);
    assert_int_equal(kit_place(k, "k1", "unknown", "guest", HOUR), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(kit_resource(k, "known", 1), HF_OK);
    assert_int_equal(kit_place(k, "k2", "known", "guest", HOUR), HF_OK);
    assert_int_equal(k->got.token.expires_at, KIT_START + MINUTE);
    k->options.idempotency_window_ms = 0;
    k->options.registry = HF_REGISTRY_KEEP;
    uint64_t written = kit_written(k);
    kit_reopen(k);
    assert_int_equal(kit_written(k), written); /* nothing changed, nothing is written */
    assert_int_equal(kit_place(k, "k3", "unknown", "guest", HOUR), HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(k->got.token.expires_at, KIT_START + MINUTE);
    k->options.registry = HF_REGISTRY_OPEN;
    k->options.idempotency_window_ms = HOUR;
    kit_reopen(k);
    assert_true(kit_written(k) > written);
    assert_int_equal(kit_place(k, "k4", "unknown", "guest", HOUR), HF_OK);
    assert_int_equal(k->got.token.expires_at, KIT_START + HOUR);
    assert_int_equal(kit_place(k, "k2", "known", "guest", HOUR), HF_OK);
    assert_int_equal(k->got.token.expires_at, KIT_START + MINUTE); /* the window of its first use */
    kit_at(k, MINUTE);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "k2"), HF_NOT_KNOWN);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "k4"), HF_OK);
}

static void a_store_in_memory_works_and_leaves_nothing(void **state)
{
    (void)state;
    both_needs_files();
    struct hf_db *db, *other;
    struct hf_result got = HF_RESULT_INIT;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .key = hf_str("k"),
                            .place_hold = { hf_str("room"), hf_str("guest"), HOUR, 0 } };
    const struct hf_options small = { .segment_max_bytes = 65536, .snapshot_every_bytes = 100000 };
    assert_int_equal(hf_open(":memory:", &small, &db, NULL), HF_OK);
    assert_int_equal(hf_open(":memory:", NULL, &other, NULL), HF_OK); /* each is its own */
    assert_int_equal(hf_do(db, &r, &got), HF_OK);
    assert_false(got.replayed);
    assert_int_equal(hf_do(db, &r, &got), HF_OK);
    assert_true(got.replayed);
    assert_int_equal(hf_do(other, &r, &got), HF_OK);
    assert_false(got.replayed);
    hf_close(other);
    for (int i = 0; i < 2000;
         i++) { /* over many segments and snapshots, with the background at work */
        r.key = r.place_hold.resource = hf_str(kit_key(k));
        assert_int_equal(hf_do(db, &r, &got), HF_OK);
    }
    struct hf_page page;
    struct hf_query q = { .kind = HF_LIST_HOLDS, .limit = 1000 };
    size_t count = 0;
    do {
        assert_int_equal(hf_list(db, &q, &page), HF_OK);
        count += page.count;
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (q.cursor);
    assert_int_equal(count, 2001);
    hf_result_clear(&got);
    hf_close(db);
    assert_int_not_equal(access(":memory:", F_OK), 0);
    assert_int_equal(hf_open(":memory:", NULL, &db, NULL), HF_OK);
    struct hf_stats st;
    hf_stats(db, &st);
    assert_int_equal(st.holds, 0);
    hf_close(db);
    hf_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(options_out_of_range_are_refused),
        TEST(a_second_opener_is_refused_and_told_who_has_it),
        TEST(a_directory_that_others_may_open_is_told),
        TEST(two_openers_of_a_database_share_it),
        TEST(without_create_there_must_be_a_database_with_a_store),
        TEST(without_create_there_must_be_a_store),
        TEST(the_configuration_in_force_is_kept_until_it_is_changed),
        TEST(a_store_in_memory_works_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

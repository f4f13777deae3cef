/* The store when the world fails it: a full disk, a disk that cannot sync, no memory, another
 * process. */
#include "engine/kit/engine.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

struct fatal {
    int count;
    char sentence[256];
    int notes;
};

static void on_fatal(void *arg, const char *sentence)
{
    struct fatal *f = arg;
    f->count++;
    snprintf(f->sentence, sizeof f->sentence, "%s", sentence);
}

static void on_note(void *arg, int level, const char *line)
{
    struct fatal *f = arg;
    (void)line;
    f->notes += level > 0;
}

struct store {
    char *dir;
    struct test_io io;
    struct hf_options options;
    struct fatal fatal;
    struct hf_db *db;
};

static void store_init(struct store *s)
{
    memset(&s->fatal, 0, sizeof s->fatal);
    s->dir = test_dir_make();
    test_io_init(&s->io);
    s->io.wall = INT64_C(1700000000000);
    s->options = (struct hf_options){ .io = &s->io.io,
                                      .no_background = true,
                                      .on_fatal = on_fatal,
                                      .on_note = on_note,
                                      .arg = &s->fatal,
                                      .segment_max_bytes = 131072 };
    s->db = NULL;
}

static void store_open(struct store *s)
{
    struct hf_error why;
    if (hf_open(s->dir, &s->options, &s->db, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static void store_end(struct store *s)
{
    hf_close(s->db);
    test_dir_remove(s->dir);
}

static enum hf_status place(struct store *s, unsigned i, struct hf_result *got)
{
    char key[32], resource[32];
    snprintf(key, sizeof key, "key-%u", i);
    snprintf(resource, sizeof resource, "room-%u", i);
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .key = hf_str(key),
                            .place_hold = { .resource = hf_str(resource),
                                            .requester = hf_str("q"),
                                            .duration_ms = 600000 } };
    return hf_do(s->db, &r, got);
}

static void a_full_disk_refuses_new_work_and_nothing_else(void **state)
{
    (void)state;
    struct store s;
    struct hf_result got = HF_RESULT_INIT, again = HF_RESULT_INIT;
    struct hf_stats st;
    store_init(&s);
    store_open(&s);
    struct hf_request open_guard = { .action = HF_SET_GUARD,
                                     .set_guard = { .name = hf_str("open"), .window_ms = 1000 } };
    struct hf_request closed_guard = { .action = HF_SET_GUARD,
                                       .set_guard = { .name = hf_str("closed"),
                                                      .window_ms = 1000,
                                                      .on_unavailable = HF_FAIL_CLOSED } };
    assert_int_equal(hf_do(s.db, &open_guard, NULL), HF_OK);
    assert_int_equal(hf_do(s.db, &closed_guard, NULL), HF_OK);
    s.io.room = 0;
    unsigned n = 0;
    while (place(&s, n, &got) == HF_OK)
        n++;
    assert_int_equal(got.answer.status, HF_STORAGE_FAILURE);
    assert_true(n > 5);
    hf_stats(s.db, &st);
    assert_true(st.out_of_space);
    assert_int_equal(s.fatal.count, 0);
    assert_true(s.fatal.notes > 0);
    /* replays and reads go on */
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(place(&s, i, &again), HF_OK);
        assert_true(again.replayed);
    }
    struct hf_request show = { .action = HF_GET_HOLD,
                               .hold = { .id = hf_str(again.answer.hold.id) } };
    assert_int_equal(hf_do(s.db, &show, NULL), HF_OK);
    /* what is left of the last segment is still used, until nothing fits */
    for (unsigned i = 0; hf_stats(s.db, &st), st.guard_misses == 0; i++) {
        char identity[32];
        snprintf(identity, sizeof identity, "filler-%u", i);
        struct hf_request fill = { .action = HF_RECORD,
                                   .identity = { .guard = hf_str("open"),
                                                 .identity = hf_str(identity) } };
        assert_int_equal(hf_do(s.db, &fill, NULL), HF_OK);
        assert_true(i < 100);
    }
    /* guards: check answers, record is ok and missed, admit by policy */
    struct hf_request ask = { .action = HF_RECORD,
                              .identity = { .guard = hf_str("open"), .identity = hf_str("x") } };
    assert_int_equal(hf_do(s.db, &ask, &got), HF_OK);
    ask.action = HF_CHECK;
    assert_int_equal(hf_do(s.db, &ask, &got), HF_OK);
    assert_false(got.answer.seen.seen);
    ask.action = HF_ADMIT;
    assert_int_equal(hf_do(s.db, &ask, &got), HF_OK);
    assert_false(got.answer.seen.seen);
    ask.identity.guard = hf_str("closed");
    assert_int_equal(hf_do(s.db, &ask, &got), HF_OK);
    assert_true(got.answer.seen.seen);
    hf_stats(s.db, &st);
    assert_int_equal(st.guard_misses, 3);
    /* the refusal was not remembered: with room, the same key goes through */
    s.io.room = -1;
    for (int i = 0; i < 30 && place(&s, n, &got) == HF_STORAGE_FAILURE; i++) {
        atomic_fetch_add(&s.io.later_ns, 100000000); /* maintenance tries once a second */
        hf_maintain(s.db);
    }
    assert_int_equal(got.answer.status, HF_OK);
    assert_false(got.replayed);
    hf_stats(s.db, &st);
    assert_false(st.out_of_space);
    hf_result_clear(&got);
    hf_result_clear(&again);
    store_end(&s);
}

static void a_full_disk_while_a_store_is_opened(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    s.io.room = 1000;
    assert_int_equal(hf_open(s.dir, &s.options, &s.db, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "first journal segment"));
    s.io.room = -1;
    store_open(&s);
    assert_int_equal(place(&s, 1, NULL), HF_OK);
    hf_close(s.db);
    /* An existing store opens on a full disk and answers what it knows. */
    s.io.room = 0;
    store_open(&s);
    struct hf_result got = HF_RESULT_INIT;
    assert_int_equal(place(&s, 1, &got), HF_OK);
    assert_true(got.replayed);
    hf_result_clear(&got);
    store_end(&s);
}

static void a_failed_sync_stops_the_store_for_good(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct store s;
        struct hf_result got = HF_RESULT_INIT;
        store_init(&s);
        store_open(&s);
        assert_int_equal(place(&s, 1, NULL), HF_OK);
        *(kind ? &s.io.fail_write : &s.io.fail_sync) = 1;
        assert_int_equal(place(&s, 2, &got), HF_INDETERMINATE);
        assert_int_equal(got.answer.status, HF_INDETERMINATE);
        assert_int_equal(s.fatal.count, 1);
        assert_non_null(strstr(s.fatal.sentence, "next start"));
        /* never again, not even what is known */
        assert_int_equal(place(&s, 1, &got), HF_STORAGE_FAILURE);
        assert_int_equal(place(&s, 3, &got), HF_STORAGE_FAILURE);
        assert_int_equal(s.fatal.count, 1);
        hf_close(s.db);
        /* the next start finds out; the retry is right whichever way it went */
        store_open(&s);
        assert_int_equal(place(&s, 1, &got), HF_OK);
        assert_true(got.replayed);
        assert_int_equal(place(&s, 2, &got), HF_OK);
        struct hf_stats st;
        hf_stats(s.db, &st);
        assert_int_equal(st.holds, 2);
        hf_result_clear(&got);
        store_end(&s);
    }
}

static void what_a_failed_sync_left_is_made_durable_before_it_is_shown(void **state)
{
    (void)state;
    struct store s;
    struct hf_result got = HF_RESULT_INIT;
    store_init(&s);
    store_open(&s);
    assert_int_equal(place(&s, 1, NULL), HF_OK);
    s.io.fail_sync = 1;
    assert_int_equal(place(&s, 2, NULL), HF_INDETERMINATE);
    hf_close(s.db);
    uint64_t writes = s.io.writes, syncs = s.io.syncs;
    store_open(&s);
    assert_true(s.io.writes > writes && s.io.syncs > syncs);
    assert_int_equal(place(&s, 2, &got), HF_OK);
    assert_true(got.replayed);
    hf_close(s.db);
    /* and if that cannot be done, the store does not open */
    s.io.fail_sync = 1;
    struct hf_error why;
    assert_int_equal(hf_open(s.dir, &s.options, &s.db, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "durable"));
    hf_result_clear(&got);
    test_dir_remove(s.dir);
}

static void a_failed_sync_without_a_handler_ends_the_process_with_3(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    s.options.on_fatal = NULL;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(9);
        struct hf_error why;
        if (hf_open(s.dir, &s.options, &s.db, &why) != HF_OK)
            _exit(8);
        s.io.fail_sync = 1;
        enum hf_status st = place(&s, 1, NULL);
        _exit(st == HF_OK ? 7 : 6);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    test_dir_remove(s.dir);
}

static void the_memory_limit_refuses_new_keys(void **state)
{
    (void)state;
    struct store s;
    struct hf_result got = HF_RESULT_INIT;
    store_init(&s);
    s.options.memory_max_bytes = 1 << 20;
    store_open(&s);
    unsigned n = 0;
    while (n < 100000 && place(&s, n, &got) == HF_OK)
        n++;
    assert_int_equal(got.answer.status, HF_STORAGE_FAILURE);
    assert_true(n > 100 && n < 100000);
    assert_int_equal(place(&s, 0, &got), HF_OK);
    assert_true(got.replayed);
    struct hf_stats st;
    hf_stats(s.db, &st);
    assert_true(st.memory_bytes < (2 << 20));
    hf_result_clear(&got);
    store_end(&s);
}

static void a_second_opener_is_told_who_has_it(void **state)
{
    (void)state;
    struct store s;
    struct hf_db *second;
    struct hf_error why;
    store_init(&s);
    s.options.holder = "the server at http://127.0.0.1:4653";
    store_open(&s);
    assert_int_equal(hf_open(s.dir, &s.options, &second, &why), HF_STORE_BUSY);
    assert_null(second);
    assert_non_null(strstr(why.text, "the server at http://127.0.0.1:4653"));
    assert_int_equal(place(&s, 1, NULL), HF_OK);
    hf_close(s.db);
    store_open(&s);
    store_end(&s);
}

/* The note of who has the store is only a note: without it, under another name, or where the
 * directory was for a while somewhere else, a second one is refused as before. */
static void a_lost_note_lets_no_second_one_in(void **state)
{
    (void)state;
    struct store s;
    struct hf_db *second;
    struct hf_error why;
    char note[512], other[512];
    store_init(&s);
    s.options.holder = "the server at http://127.0.0.1:4653";
    store_open(&s);
    snprintf(note, sizeof note, "%s/LOCK", s.dir);
    snprintf(other, sizeof other, "%s/LOCK-before", s.dir);
    assert_int_equal(rename(note, other), 0);
    assert_int_equal(hf_open(s.dir, &s.options, &second, &why), HF_STORE_BUSY);
    assert_non_null(strstr(why.text, "by another process"));
    assert_int_equal(access(note, F_OK),
                     -1); /* the one that is refused does not call itself the holder */
    assert_int_equal(unlink(other), 0);
    assert_int_equal(hf_open(s.dir, &s.options, &second, &why), HF_STORE_BUSY);
    assert_null(second);
    snprintf(other, sizeof other, "%s-elsewhere", s.dir);
    assert_int_equal(rename(s.dir, other), 0);
    assert_int_equal(hf_open(other, &s.options, &second, &why), HF_STORE_BUSY);
    assert_int_equal(rename(other, s.dir), 0);
    assert_int_equal(hf_open(s.dir, &s.options, &second, &why), HF_STORE_BUSY);
    assert_int_equal(place(&s, 1, NULL), HF_OK);
    hf_close(s.db);
    store_open(&s);
    assert_int_equal(access(note, F_OK), 0);
    store_end(&s);
}

/* Version 0.1 locks the note alone: such a program and this one keep each other out. */
static void a_program_that_locks_the_note_alone_is_respected(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    char note[512];
    store_init(&s);
    store_open(&s);
    snprintf(note, sizeof note, "%s/LOCK", s.dir);
    int fd = open(note, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    hf_close(s.db);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(pwrite(fd, "an old program\n", 15, 0), 15);
    assert_int_equal(hf_open(s.dir, &s.options, &s.db, &why), HF_STORE_BUSY);
    assert_non_null(strstr(why.text, "by an old program"));
    close(fd);
    store_open(&s);
    store_end(&s);
}

static void nothing_is_made_where_nothing_should_be(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    char path[512];
    store_init(&s);
    s.options.no_create = true;
    snprintf(path, sizeof path, "%s/absent", s.dir);
    assert_int_equal(hf_open(path, &s.options, &s.db, &why), HF_STORE_ABSENT);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(hf_open(s.dir, &s.options, &s.db, &why), HF_STORE_ABSENT);
    assert_non_null(strstr(why.text, s.dir));
    snprintf(path, sizeof path, "%s/LOCK", s.dir);
    assert_int_equal(access(path, F_OK), -1);
    test_dir_remove(s.dir);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    const struct hf_options bad[] = {
        { .idempotency_window_ms = -1 },
        { .idempotency_window_ms = HF_DURATION_MAX_MS + 1 },
        { .token_max_length = HF_TOKEN_MAX + 1 },
        { .registry = (enum hf_registry)7 },
        { .segment_max_bytes = 1000 },
        { .segment_max_bytes = UINT64_C(1) << 40 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hf_open(s.dir, &bad[i], &s.db, &why), HF_INVALID_REQUEST);
        assert_null(s.db);
        assert_true(strlen(why.text) > 10);
    }
    test_dir_remove(s.dir);
}

/* The n-th open, write or sync fails, for every n: an open either works in the end or says why, and
 * what was acknowledged before is there at the next good start. */
static void any_failure_while_opening_leaves_the_store_whole(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    s.options.snapshot_every_bytes = 200000;
    store_open(&s);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(place(&s, i, NULL), HF_OK);
    while (hf_maintain(s.db))
        ;
    hf_close(s.db);
    s.options.token_max_length = 100; /* a changed configuration: opening has to write */
    _Atomic int *const faults[] = { &s.io.fail_open, &s.io.fail_write, &s.io.fail_sync };
    for (size_t f = 0; f < 3; f++) {
        for (int n = 1; n < 60; n++) {
            struct hf_error why;
            *faults[f] = n;
            s.options.token_max_length = (uint32_t)(100 + (n + (int)f) % 2);
            enum hf_status st = hf_open(s.dir, &s.options, &s.db, &why);
            bool fired = *faults[f] == 0;
            *faults[f] = 0;
            if (st != HF_OK) {
                assert_true(fired);
                assert_true(st == HF_STORAGE_FAILURE || st == HF_STORE_DAMAGED);
                assert_true(strlen(why.text) > 10);
            } else {
                hf_close(s.db);
            }
            s.options.token_max_length = 0;
            store_open(&s);
            struct hf_result got = HF_RESULT_INIT;
            assert_int_equal(place(&s, 99, &got), HF_OK);
            assert_true(got.replayed);
            hf_result_clear(&got);
            hf_close(s.db);
            if (!fired)
                break;
        }
    }
    s.db = NULL;
    test_dir_remove(s.dir);
}

static void the_wall_clock_may_step_back(void **state)
{
    (void)state;
    struct store s;
    struct hf_result got = HF_RESULT_INIT;
    struct hf_stats st;
    store_init(&s);
    store_open(&s);
    hf_time start = s.io.wall;
    assert_int_equal(place(&s, 1, &got), HF_OK);
    s.io.wall = start - 3600000;
    assert_int_equal(place(&s, 2, &got), HF_OK);
    assert_int_equal(got.answer.hold.placed_at, start);
    hf_stats(s.db, &st);
    assert_true(st.clock_stalls > 0);
    assert_int_equal(st.now, start);
    hf_close(s.db);
    store_open(&s);
    assert_int_equal(place(&s, 3, &got), HF_OK);
    assert_int_equal(got.answer.hold.placed_at, start);
    hf_result_clear(&got);
    store_end(&s);
}

/* No snapshot gets its name. */
static int snapshots_fail(struct test_io *t, enum test_call call, const char *name)
{
    (void)t;
    return call == TEST_RENAME && name && strstr(name, ".snap") ? -EIO : 0;
}

/* Writes wait for the next segment, and that must not wait for a snapshot that fails again and
 * again. */
static void a_failed_snapshot_does_not_hold_back_the_next_segment(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 8 << 20;
    k->options.snapshot_every_bytes = 65536;
    kit_open(k);
    k->io.before = snapshots_fail;
    for (int i = 0; i < 30; i++)
        assert_int_equal(kit_write(k, 1, 60000, 1), HF_OK);
    int warned = atomic_load(&k->warnings);
    for (int i = 0; atomic_load(&k->warnings) == warned; i++) {
        assert_true(i < 1000);
        hf_maintain(k->db);
    }
    assert_non_null(strstr(k->note, "cannot write a snapshot"));
    assert_int_equal(kit_files(k, ".log"), 1); /* the next one is being made */
    for (int i = 0; i < 40; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_files(k, ".log"), 2);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_refuses_new_work_and_nothing_else),
        cmocka_unit_test(a_full_disk_while_a_store_is_opened),
        cmocka_unit_test(a_failed_snapshot_does_not_hold_back_the_next_segment),
        cmocka_unit_test(a_failed_sync_stops_the_store_for_good),
        cmocka_unit_test(what_a_failed_sync_left_is_made_durable_before_it_is_shown),
        cmocka_unit_test(a_failed_sync_without_a_handler_ends_the_process_with_3),
        cmocka_unit_test(the_memory_limit_refuses_new_keys),
        cmocka_unit_test(a_second_opener_is_told_who_has_it),
        cmocka_unit_test(a_lost_note_lets_no_second_one_in),
        cmocka_unit_test(a_program_that_locks_the_note_alone_is_respected),
        cmocka_unit_test(nothing_is_made_where_nothing_should_be),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(any_failure_while_opening_leaves_the_store_whole),
        cmocka_unit_test(the_wall_clock_may_step_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

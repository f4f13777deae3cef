/* An unreadable sector of a mapped segment fails the requests that need it, and nothing else. Once
 * it ended the server with SIGBUS, without a word. A file that becomes shorter than its mapping
 * gives the same signal. */
#include "engine/kit/engine.h"
#include "store/touch.h"
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static struct kit *two_orders(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.keep_plain = true;
    kit_open(k);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK); /* the batch at 8192 */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(kit_write(k, 1, 50000, 1), HF_OK); /* the segments behind it */
    assert_int_equal(kit_place(k, "late", "b", "guest", 600000), HF_OK);
    return k;
}

static void look(struct kit *k, enum hf_status early)
{
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), early);
    assert_int_equal(kit_place(k, "late", "b", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    enum hf_status third = kit_stats(k).holds < 3 ? HF_OK : HF_RESOURCE_UNAVAILABLE;
    assert_int_equal(kit_place(k, kit_key(k), "c", "guest", 600000), third);
}

static void a_file_that_became_shorter_ends_nothing(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    char path[1024];
    look(k, HF_OK);
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    assert_int_equal(truncate(path, BLOCK), 0);
    look(k, HF_STORAGE_FAILURE);
    assert_true(kit_stats(k).records_unreadable > 0);
    assert_non_null(strstr(k->note, "journal-00000001.log"));
    assert_non_null(
        strstr(k->note, "byte 8304")); /* the entry: behind the batch's header at 8192 */
    while (hf_maintain(k->db))
        ;
    look(k, HF_STORAGE_FAILURE);
    kit_free(k);
}

static void an_unreadable_sector_fails_one_request(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    /* The same sector of the later segments is in the middle of a value that nobody asks for. */
    look(k, HF_STORAGE_FAILURE);
    assert_non_null(strstr(k->note, "cannot read at byte 8304"));
    atomic_store(&k->io.unreadable, 0);
    look(k, HF_OK);
    kit_free(k);
}

/* Keys leave in the order of the journal: one batch that cannot be read holds them up for a minute,
 * not for ever. */
static void keys_leave_past_an_unreadable_batch(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.idempotency_window_ms = 1000;
    kit_open(k);
    for (int i = 0; i < 10; i++)
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "guest", 600000), HF_OK);
    atomic_store(&k->io.unreadable, 4 * BLOCK);
    kit_at(k, 5000);
    assert_int_equal(kit_place(k, "new", "new", "guest", 600000), HF_OK);
    for (int i = 0; i < 5; i++)
        hf_maintain(k->db);
    assert_in_range(kit_stats(k).tokens, 6, 11);
    atomic_fetch_add(&k->io.later_ns, UINT64_C(61) * 1000000000);
    for (int i = 0; i < 5; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).tokens, 2); /* the newest, and that of the batch */
    kit_free(k);
}

/* An unreadable snapshot ends the start, and not the process: it proves how far the journal went,
 * so the start does not pass over it. The operator is told the file and what to do; without it the
 * journal is read instead. */
static void an_unreadable_snapshot_ends_the_start(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    kit_open(k);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(kit_write(k, 1, 30000, 1), HF_OK);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_files(k, ".snap"), 1);
    kit_close(k);
    struct hf_error why;
    atomic_store(&k->io.unreadable_snapshot, true);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    k->db = NULL;
    assert_non_null(strstr(why.text, "cannot read snapshot-"));
    assert_non_null(strstr(why.text, "remove it"));
    assert_int_equal(kit_remove(k, ".snap"), 1);
    kit_open(k);
    atomic_store(&k->io.unreadable_snapshot, false);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    kit_free(k);
}

/* ---- What is not ours ---- */

static void own_handler(int signal)
{
    (void)signal;
    _exit(42);
}

/* A SIGBUS that was sent, in a child: with the program's own handler, or without. Returns how the
 * child ended. Not under cmocka, which has a handler of its own. */
static int sent(void (*handler)(int))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGBUS, handler);
        if (hf_touch_ready() == 0)
            raise(SIGBUS);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int sent_to_a_handler, sent_to_none;

static void another_signal_is_handed_on(void **state)
{
    (void)state;
    assert_true(WIFEXITED(sent_to_a_handler) && WEXITSTATUS(sent_to_a_handler) == 42);
    assert_true(WIFSIGNALED(sent_to_none) && WTERMSIG(sent_to_none) == SIGBUS);
}

/* The start says which file it is, too. */
static void a_start_names_what_it_cannot_read(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    struct hf_error why;
    kit_close(k);
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    k->db = NULL;
    assert_non_null(strstr(why.text, "journal-00000001.log"));
    assert_non_null(strstr(why.text, "8192"));
    kit_free(k);
}

int main(void)
{
    sent_to_a_handler = sent(own_handler);
    sent_to_none = sent(SIG_DFL);
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_file_that_became_shorter_ends_nothing),
                                        cmocka_unit_test(an_unreadable_sector_fails_one_request),
                                        cmocka_unit_test(keys_leave_past_an_unreadable_batch),
                                        cmocka_unit_test(an_unreadable_snapshot_ends_the_start),
                                        cmocka_unit_test(another_signal_is_handed_on),
                                        cmocka_unit_test(a_start_names_what_it_cannot_read) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

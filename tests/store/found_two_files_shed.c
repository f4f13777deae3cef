/* Getting rid of a file while another one was on its way out forgot the first: its handle leaked,
 * and half of it stayed on the disk as *.tmp. One that could not be opened under its new name
 * stayed whole. */
#include "store/journal/maintain.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

struct shop {
    char *dir; /* owned */
    struct test_io io;
    struct hf_options options;
    struct hf_journal *j;
};

static void shop_open(struct shop *s)
{
    struct hf_error why;
    s->dir = test_dir_make();
    test_io_init(&s->io);
    s->options = (struct hf_options){ .segment_max_bytes = 65536, .io = &s->io.io };
    if (hf_journal_open(s->dir, &s->options, &s->io.io, &s->j, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static void shop_close(struct shop *s)
{
    hf_journal_close(s->j);
    test_dir_remove(s->dir);
}

static void file_make(const struct shop *s, const char *name, off_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static bool is_there(const struct shop *s, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return access(path, F_OK) == 0;
}

static void settle(struct shop *s)
{
    int steps = 0;
    while (hf_journal_maintain(s->j, NULL))
        assert_true(++steps < 1000);
}

static void the_first_goes_on_and_the_second_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    settle(&s); /* what has to be prepared */
    file_make(&s, "first", 13 * MIB);
    file_make(&s, "second", 9 * MIB);
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_true(hf_journal_maintain(s.j, NULL)); /* one piece of it */
    hf_journal_shed(s.j, "second", "second.tmp");
    assert_false(is_there(&s, "second") || is_there(&s, "second.tmp"));
    assert_true(is_there(&s, "first.tmp"));
    settle(&s);
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    /* And there is room for the next. */
    file_make(&s, "third", 9 * MIB);
    hf_journal_shed(s.j, "third", "third.tmp");
    assert_true(is_there(&s, "third.tmp"));
    settle(&s);
    assert_false(is_there(&s, "third.tmp"));
    shop_close(&s);
}

static void one_on_its_way_out_is_gone_when_the_store_closes(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 13 * MIB);
    file_make(&s, "second", 9 * MIB);
    hf_journal_shed(s.j, "first", "first.tmp");
    hf_journal_shed(s.j, "second", "second.tmp");
    hf_journal_close(s.j);
    s.j = NULL;
    assert_false(is_there(&s, "first.tmp") || is_there(&s, "second") || is_there(&s, "second.tmp"));
    shop_close(&s);
}

static void one_that_cannot_be_opened_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 9 * MIB);
    s.io.fail_open = 1;
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_int_equal(s.io.fail_open, 0);
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    shop_close(&s);
}

static int no_rename(struct test_io *t, enum test_call call, const char *name)
{
    (void)t;
    (void)name;
    return call == TEST_RENAME ? -EIO : 0;
}

static void one_that_cannot_be_renamed_goes_at_once(void **state)
{
    (void)state;
    struct shop s;
    shop_open(&s);
    file_make(&s, "first", 9 * MIB);
    s.io.before = no_rename;
    hf_journal_shed(s.j, "first", "first.tmp");
    assert_false(is_there(&s, "first") || is_there(&s, "first.tmp"));
    shop_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_goes_on_and_the_second_goes_at_once),
        cmocka_unit_test(one_on_its_way_out_is_gone_when_the_store_closes),
        cmocka_unit_test(one_that_cannot_be_opened_goes_at_once),
        cmocka_unit_test(one_that_cannot_be_renamed_goes_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arenas and buffers. */
#include "support/test.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory that is given back all at once. */

static void pieces(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    unsigned char *taken[200];
    for (size_t i = 0; i < 200; i++) {
        taken[i] = hf_arena_take(&a, 1 + i);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
        memset(taken[i], (int)i, 1 + i);
    }
    for (size_t i = 0; i < 200; i++) /* none lies over another */
        for (size_t k = 0; k <= i; k++)
            assert_int_equal(taken[i][k], i);
    hf_arena_free(&a);
    assert_null(a.blocks);
    assert_int_equal(a.held, 0);
}

static void one_block_for_a_small_request(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    unsigned char *first = hf_arena_take(&a, 16);
    size_t held = a.held;
    assert_ptr_equal(hf_arena_take(&a, 3), first + 16);
    assert_ptr_equal(hf_arena_take(&a, 16), first + 32); /* three bytes took a whole unit */
    for (int i = 0; i < 50; i++)
        assert_non_null(hf_arena_take(&a, 16));
    assert_int_equal(a.held, held);
    hf_arena_free(&a);
}

static void a_large_wish(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    char *small = hf_arena_take(&a, 8);
    strcpy(small, "kept");
    char *large = hf_arena_take(&a, 100000);
    memset(large, 'x', 100000);
    assert_true(a.held >= 100000);
    assert_string_equal(small, "kept");
    hf_arena_free(&a);
}

/* NULL means that there is no memory, so nothing at all is some of it. */
static void nothing(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    void *first = hf_arena_take(&a, 0);
    assert_non_null(first);
    assert_ptr_not_equal(hf_arena_take(&a, 0), first);
    hf_arena_free(&a);
}

static void too_much(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    assert_null(hf_arena_take(&a, SIZE_MAX));
    assert_null(hf_arena_take(&a, SIZE_MAX / 2 + 1));
    assert_int_equal(a.held, 0);
    hf_arena_free(&a);
}

static void resetting(void **state)
{
    (void)state;
    struct hf_arena a = { 0 };
    hf_arena_reset(&a);
    assert_null(a.blocks);
    void *first = hf_arena_take(&a, 64);
    size_t held = a.held;
    assert_non_null(hf_arena_take(&a, 2000));
    assert_non_null(hf_arena_take(&a, 50000));
    hf_arena_reset(&a);
    assert_int_equal(a.held, held); /* the first block stays for the next request */
    assert_ptr_equal(hf_arena_take(&a, 64), first);
    assert_int_equal(a.held, held);
    hf_arena_free(&a);

    assert_non_null(hf_arena_take(&a, 50000)); /* usable again after it was freed */
    hf_arena_reset(&a);
    assert_null(a.blocks); /* one great request leaves nothing behind */
    assert_int_equal(a.held, 0);
    assert_non_null(hf_arena_take(&a, 1));
    hf_arena_free(&a);
}

/* Growing buffers, slices, little-endian numbers, and the assertion that stays on. */

static void appending(void **state)
{
    (void)state;
    struct hf_buffer b = { 0 };
    assert_string_equal(hf_buffer_text(&b), "");
    hf_buffer_add(&b, NULL, 0);
    hf_buffer_add(&b, "ab", 2);
    hf_buffer_add_bytes(&b, hf_str("cd"));
    hf_buffer_add_text(&b, "ef");
    hf_buffer_add_char(&b, 'g');
    hf_buffer_printf(&b, "-%d-%s", 42, "x");
    assert_string_equal(hf_buffer_text(&b), "abcdefg-42-x");
    assert_int_equal(b.size, 12);
    hf_buffer_reset(&b);
    assert_int_equal(b.size, 0);
    assert_string_equal(hf_buffer_text(&b), "");
    hf_buffer_free(&b);
    assert_null(b.data);
    assert_int_equal(b.room, 0);
}

static void growing(void **state)
{
    (void)state;
    struct hf_buffer b = { 0 };
    for (int i = 0; i < 5000; i++)
        hf_buffer_printf(&b, "%04d,", i);
    assert_int_equal(b.size, 25000);
    assert_false(b.failed);
    assert_memory_equal(b.data, "0000,0001,", 10);
    assert_memory_equal(b.data + 24990, "4998,4999,", 10);
    static char big[100000];
    memset(big, 'x', sizeof big);
    hf_buffer_add(&b, big, sizeof big);
    assert_int_equal(b.size, 125000);
    assert_memory_equal(b.data + 25000, big, sizeof big);
    hf_buffer_free(&b);
}

static void without_memory(void **state)
{
    (void)state;
    struct hf_buffer b = { 0 };
    hf_buffer_add_text(&b, "kept");
    assert_false(hf_buffer_reserve(&b, SIZE_MAX - 4)); /* cannot be doubled to */
    assert_true(b.failed);
    hf_buffer_add_text(&b, "dropped");
    hf_buffer_printf(&b, "%d", 1);
    assert_int_equal(b.size, 4);
    assert_null(hf_buffer_text(&b));
    assert_false(hf_buffer_reserve(&b, 0));
    hf_buffer_reset(&b); /* works again */
    hf_buffer_add_text(&b, "again");
    assert_string_equal(hf_buffer_text(&b), "again");
    hf_buffer_free(&b);
}

static void slices(void **state)
{
    (void)state;
    assert_true(hf_bytes_equal(hf_mem(NULL, 0), hf_str("")));
    assert_true(hf_bytes_equal(hf_str("ab"), hf_mem("abc", 2)));
    assert_false(hf_bytes_equal(hf_str("ab"), hf_str("abc")));
    assert_false(hf_bytes_equal(hf_str("ab"), hf_str("ac")));
    assert_int_equal(hf_bytes_compare(hf_str("a"), hf_str("a")), 0);
    assert_int_equal(hf_bytes_compare(hf_mem(NULL, 0), hf_mem(NULL, 0)), 0);
    assert_true(hf_bytes_compare(hf_mem(NULL, 0), hf_str("a")) < 0);
    assert_true(hf_bytes_compare(hf_str("a"), hf_str("ab")) < 0);
    assert_true(hf_bytes_compare(hf_str("ab"), hf_str("a")) > 0);
    assert_true(hf_bytes_compare(hf_str("b"), hf_str("ab")) > 0);
    assert_true(hf_bytes_compare(hf_str("\x7f"), hf_str("\x80")) < 0); /* bytes are not signed */
    assert_int_equal(hf_str(NULL).size, 0);
}

static void little_endian(void **state)
{
    (void)state;
    unsigned char b[8];
    hf_put16(b, 0xfedc);
    assert_memory_equal(b, "\xdc\xfe", 2);
    assert_int_equal(hf_get16(b), 0xfedc);
    hf_put32(b, 0xfedcba98U);
    assert_memory_equal(b, "\x98\xba\xdc\xfe", 4);
    assert_true(hf_get32(b) == 0xfedcba98U);
    hf_put64(b, UINT64_C(0xfedcba9876543210));
    assert_memory_equal(b, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
    assert_true(hf_get64(b) == UINT64_C(0xfedcba9876543210));
}

/* In a child, its stderr in a pipe: it says what did not hold, and dies. */
static void assertions_stay_on(void **state)
{
    (void)state;
    int pipe_ends[2];
    char said[512] = "";
    assert_int_equal(pipe(pipe_ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka and the sanitizers catch it otherwise */
        dup2(pipe_ends[1], 2);
        HF_ASSERT(said[0] == '\0');
        HF_ASSERT(said[0] == 'x');
        _exit(0);
    }
    close(pipe_ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(pipe_ends[0], said + got, sizeof said - 1 - got)) > 0;)
        got += (size_t)n;
    close(pipe_ends[0]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    assert_non_null(strstr(said, "this is a bug: assertion failed: said[0] == 'x' at "));
    assert_non_null(strstr(said, "base_memory.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),         cmocka_unit_test(one_block_for_a_small_request),
        cmocka_unit_test(a_large_wish),   cmocka_unit_test(nothing),
        cmocka_unit_test(too_much),       cmocka_unit_test(resetting),
        cmocka_unit_test(appending),      cmocka_unit_test(growing),
        cmocka_unit_test(without_memory), cmocka_unit_test(slices),
        cmocka_unit_test(little_endian),  cmocka_unit_test(assertions_stay_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

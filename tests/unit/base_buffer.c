/* Growing buffers, slices, little-endian numbers, and the assertion that stays on. */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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
    assert_non_null(strstr(said, "base_buffer.c:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending),      cmocka_unit_test(growing),
        cmocka_unit_test(without_memory), cmocka_unit_test(slices),
        cmocka_unit_test(little_endian),  cmocka_unit_test(assertions_stay_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* assert.h: assertions that stay on in production. They find our own bugs and never check input. */
#ifndef HF_BASE_ASSERT_H
#define HF_BASE_ASSERT_H

#define HF_ASSERT(cond)                                \
    do {                                               \
        if (__builtin_expect(!(cond), 0))              \
            hf_assert_fail(#cond, __FILE__, __LINE__); \
    } while (0)

/* Print the failed condition and its place to stderr, then abort. */
_Noreturn void hf_assert_fail(const char *what, const char *file, int line);

#endif

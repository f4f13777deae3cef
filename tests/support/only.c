/* HF_TEST=NAME in the environment: a test program runs only its tests of that name, in which *
 * and ? are wildcards. proof/bugs uses it. cmake/testing.cmake links this file into every
 * program. */
#include "support/test.h"

__attribute__((constructor)) void test_only_named(void);

__attribute__((constructor)) void test_only_named(void)
{
    const char *name = getenv("HF_TEST");
    if (name && *name)
        cmocka_set_test_filter(name);
}

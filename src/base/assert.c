#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void hf_assert_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "holdfast: this is a bug: assertion failed: %s at %s:%d\n", what, file, line);
    abort();
}

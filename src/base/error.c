#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

enum hf_status hf_error_set(struct hf_error *why, enum hf_status status, const char *format, ...)
{
    va_list args;
    if (!why)
        return status;
    why->status = status;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return status;
}

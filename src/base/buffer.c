#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void hf_buffer_free(struct hf_buffer *b)
{
    free(b->data);
    *b = (struct hf_buffer){ 0 };
}

void hf_buffer_reset(struct hf_buffer *b)
{
    b->size = 0;
    b->failed = false;
}

bool hf_buffer_reserve(struct hf_buffer *b, size_t more)
{
    if (b->failed)
        return false;
    if (more <= b->room - b->size)
        return true;
    size_t room = b->room ? b->room : 256;
    while (room - b->size < more) {
        if (room > SIZE_MAX / 2) {
            b->failed = true;
            return false;
        }
        room *= 2;
    }
    unsigned char *data = realloc(b->data, room);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->room = room;
    return true;
}

void hf_buffer_printf(struct hf_buffer *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !hf_buffer_reserve(b, (size_t)n + 1))
        return;
    va_start(args, format);
    vsnprintf((char *)b->data + b->size, (size_t)n + 1, format, args);
    va_end(args);
    b->size += (size_t)n;
}

const char *hf_buffer_text(struct hf_buffer *b)
{
    if (!hf_buffer_reserve(b, 1))
        return NULL;
    b->data[b->size] = '\0';
    return (const char *)b->data;
}

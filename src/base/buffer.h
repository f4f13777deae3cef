/* buffer.h: bytes that grow.
 *
 * An append returns no error. If it runs out of memory, it sets `failed`, and later appends do
 * nothing. The owner checks `failed` once, at the end. */
#ifndef HF_BASE_BUFFER_H
#define HF_BASE_BUFFER_H

#include "holdfast.h"

struct hf_buffer {
    unsigned char *data; /* owned, free with hf_buffer_free */
    size_t size, room;
    bool failed;
};

void hf_buffer_free(struct hf_buffer *b);
/* Remove the bytes, keep the memory, clear `failed`. */
void hf_buffer_reset(struct hf_buffer *b);
/* Make room for `more` bytes. False (and sets b->failed) if out of memory. */
bool hf_buffer_reserve(struct hf_buffer *b, size_t more);
/* Append. Inline, because an answer is written in many small pieces. */
static inline void hf_buffer_add(struct hf_buffer *b, const void *data, size_t size)
{
    if (size > 0 && ((!b->failed && size <= b->room - b->size) || hf_buffer_reserve(b, size)) &&
        b->data) {
        memcpy(b->data + b->size, data, size);
        b->size += size;
    }
}

static inline void hf_buffer_add_bytes(struct hf_buffer *b, struct hf_bytes bytes)
{
    hf_buffer_add(b, bytes.data, bytes.size);
}

static inline void hf_buffer_add_text(struct hf_buffer *b, const char *text)
{
    hf_buffer_add(b, text, strlen(text));
}

static inline void hf_buffer_add_char(struct hf_buffer *b, char c)
{
    hf_buffer_add(b, &c, 1);
}

void hf_buffer_printf(struct hf_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The text with a NUL at its end that is not counted, or NULL if the buffer failed. Borrowed. */
const char *hf_buffer_text(struct hf_buffer *b);

#endif

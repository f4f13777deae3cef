#include "http/head.h"
#include "http/octet.h"

bool hf_http_unescape(struct hf_bytes in, char *out, size_t *out_size)
{
    const unsigned char *p = in.data;
    size_t size = 0;
    for (size_t i = 0; i < in.size; i++) {
        if (p[i] != '%') {
            out[size++] = (char)p[i];
            continue;
        }
        if (in.size - i < 3 || !hf_octet_is(p[i + 1], HF_OCTET_HEX) ||
            !hf_octet_is(p[i + 2], HF_OCTET_HEX))
            return false;
        out[size++] = (char)(hf_octet_hex(p[i + 1]) << 4 | hf_octet_hex(p[i + 2]));
        i += 2;
    }
    *out_size = size;
    return true;
}

bool hf_http_query_next(struct hf_bytes *rest, struct hf_bytes *name, struct hf_bytes *value)
{
    const char *p = rest->data;
    size_t left = rest->size;
    while (left > 0 && *p == '&') {
        p++;
        left--;
    }
    if (left == 0) {
        *rest = hf_mem(p, 0);
        return false;
    }
    const char *stop = memchr(p, '&', left);
    size_t size = stop ? (size_t)(stop - p) : left;
    const char *equals = memchr(p, '=', size);
    size_t name_size = equals ? (size_t)(equals - p) : size;
    *name = hf_mem(p, name_size);
    *value = equals ? hf_mem(equals + 1, size - name_size - 1) : hf_mem(p + size, 0);
    *rest = hf_mem(p + size, left - size);
    return true;
}

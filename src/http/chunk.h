/* chunk.h: a chunked body, decoded in place.
 *
 *   size line ─▶ data ─▶ CR LF ─▶ size line ... ─▶ size line "0" ─▶ empty line
 *
 * Chunk extensions and trailers are refused: the server does not use them, and request smuggling
 * does. */
#ifndef HF_HTTP_CHUNK_H
#define HF_HTTP_CHUNK_H

#include "http/head.h"

/* All zero at the start of a body. The caller may read `left`: the announced bytes of the chunk
 * that have not arrived, 0 until the size line is complete. With it, a caller with a limit can
 * refuse the body before these bytes arrive. */
struct hf_http_chunk {
    uint64_t left;
    uint64_t size;               /* private: while the size line is read */
    unsigned char state, digits; /* private */
};

/* Decode the raw bytes data[0 .. *size) to the front of data. size: in, raw bytes; out, decoded
 * bytes. used: out, raw bytes consumed (the bytes after them belong to the next request; only
 * HF_HTTP_DONE leaves any). HF_HTTP_MORE: all bytes were consumed and the body continues.
 * HF_HTTP_BAD: `why` is filled (400), and the bytes decoded so far should not be used. A size line
 * has 1 to 16 hexadecimal digits and nothing else. */
enum hf_http_parse hf_http_chunk_decode(struct hf_http_chunk *c, char *data, size_t *size,
                                        size_t *used, struct hf_http_refusal *why);

#endif

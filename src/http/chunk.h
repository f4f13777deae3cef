/* chunk.h: a chunked body, decoded where it stands.
 *
 *   size line ─▶ data ─▶ CR LF ─▶ size line ... ─▶ size line "0" ─▶ empty line
 *
 * Chunk extensions and trailers are refused: nobody here reads them, and smugglers do. */
#ifndef HF_HTTP_CHUNK_H
#define HF_HTTP_CHUNK_H

#include "http/head.h"

/* All zero at the start of a body. `left` may be read: it is what was announced of the chunk and
 * has not come, and 0 until the line of its size is complete. A caller with a limit need not wait
 * for so many bytes to refuse the body. */
struct hf_http_chunk {
    uint64_t left;
    uint64_t size;               /* private: while its line is read */
    unsigned char state, digits; /* private */
};

/* Take raw bytes data[0 .. *size), leave the decoded ones at its front. size: in, raw bytes; out,
 * decoded bytes. used: out, raw bytes consumed (what is behind them belongs to the next request,
 * and only HF_HTTP_DONE leaves any). HF_HTTP_MORE: all was consumed and the body goes on.
 * HF_HTTP_BAD: `why` is filled (400), and the bytes decoded so far should not be used. A size has 1
 * to 16 hexadecimal digits and nothing else on its line. */
enum hf_http_parse hf_http_chunk_decode(struct hf_http_chunk *c, char *data, size_t *size,
                                        size_t *used, struct hf_http_refusal *why);

#endif

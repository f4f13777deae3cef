/* head.h: parse a head whole or in pieces, and compare what came out. */
#ifndef HF_TESTS_HTTP_KIT_HEAD_H
#define HF_TESTS_HTTP_KIT_HEAD_H

#include "http/head.h"

/* What the parser said. The slices of `head` point into the bytes that were given in, whatever
 * copies of them the parser saw. `why` is all zero unless it is bad, `head` unless it is done. */
struct head_outcome {
    enum hf_http_parse parse;
    struct hf_http_head head;
    struct hf_http_refusal why;
    unsigned calls; /* of the parser, until it had an answer */
};

/* Give the parser data[0 .. cuts[0]), then data[0 .. cuts[1]) and so on, until it is done or bad.
 * cuts: rising. Every time the bytes stand in another block, of exactly their size, so that a
 * sanitizer sees what is read beyond them and nothing can be remembered but `scanned`. */
void head_parse_cut(struct hf_bytes data, const size_t *cuts, size_t count,
                    struct head_outcome *out);

void head_parse_whole(struct hf_bytes data, struct head_outcome *out);
/* `step` bytes at a time. */
void head_parse_steps(struct hf_bytes data, size_t step, struct head_outcome *out);

/* Fail the test unless the bytes in pieces give the same answer as the whole, slice for slice and
 * word for word. A refusal may come later than that of the whole, but no later than the end of the
 * head: then an empty line is put behind the bytes to see it. */
void head_same_cut(struct hf_bytes data, const size_t *cuts, size_t count,
                   const struct head_outcome *whole);
void head_same_steps(struct hf_bytes data, size_t step, const struct head_outcome *whole);

/* Fail the test unless an accepted head is what head.h promises, by a second and slower look at its
 * bytes. */
void head_check(struct hf_bytes data, const struct head_outcome *out);

#endif

/* reader.h: a strict JSON reader, one value after the other.
 *
 * The text is borrowed and read once, without a tree: the caller asks for the values that it
 * expects. Strict means RFC 8259 and no more: UTF-8 only, no byte order mark, no comment, no
 * trailing comma, no lone surrogate, nothing after the end. The first error stays: later calls
 * return false, and `error` says in one sentence what was wrong and, for an error of form, at which
 * byte (the first is byte 0). A duplicate name in one object is an error, also if it is escaped
 * differently.
 *
 *     struct hf_reader r = { .text = body, .arena = &arena };
 *     if (hf_reader_object(&r))
 *         while (hf_reader_member(&r, &name))
 *             ... read exactly one value ...
 *     if (!hf_reader_end(&r))
 *         complain(r.error); */
#ifndef HF_JSON_READER_H
#define HF_JSON_READER_H

#include "base/arena.h"
#include "base/buffer.h"

#define HF_READER_DEPTH 32 /* arrays and objects inside each other */
#define HF_READER_NAMES 16 /* private */

enum hf_reader_type {
    HF_READ_NONE,
    HF_READ_OBJECT,
    HF_READ_ARRAY,
    HF_READ_STRING,
    HF_READ_NUMBER,
    HF_READ_TRUE,
    HF_READ_FALSE,
    HF_READ_NULL
};

/* Must not be copied while in use: it has pointers into itself. */
struct hf_reader {
    struct hf_bytes text;   /* borrowed */
    struct hf_arena *arena; /* borrowed; unescaped strings go here, others point into the text */
    size_t at;              /* the next byte to read; may only be set back to an earlier value */
    size_t spaces;          /* private: how often white space was skipped */
    unsigned depth;         /* private */
    bool first;             /* private: no comma is due yet */
    bool failed;
    bool no_memory; /* failed because out of memory, not because of the text */
    char error[192];
    /* Private: the names of the open objects, innermost last. Before the names of each object is an
     * entry that says where the names of the outer object begin. They are in `few` until more are
     * needed. */
    struct hf_bytes *names;
    size_t name_count, name_room, name_base;
    struct hf_bytes few[HF_READER_NAMES];
};

/* The type of the next value, from its first byte; only white space is consumed. HF_READ_NONE:
 * there was an error before, or no value begins here (reading one sets the error). */
enum hf_reader_type hf_reader_peek(struct hf_reader *r);

/* Enter an object, then call hf_reader_member until false: either the object has ended (and was
 * left), or there was an error (r->failed). Exactly one value must be read after each member. */
bool hf_reader_object(struct hf_reader *r);
bool hf_reader_member(struct hf_reader *r, struct hf_bytes *name);
/* The same for an array. */
bool hf_reader_array(struct hf_reader *r);
bool hf_reader_element(struct hf_reader *r);

bool hf_reader_string(struct hf_reader *r, struct hf_bytes *out);
bool hf_reader_bool(struct hf_reader *r, bool *out);
bool hf_reader_null(struct hf_reader *r);
/* A number as it is written; checked for form only. */
bool hf_reader_number(struct hf_reader *r, struct hf_bytes *out);
/* A whole number (no fraction, no exponent, no -0) within the type. */
bool hf_reader_uint(struct hf_reader *r, uint64_t *out);
bool hf_reader_int(struct hf_reader *r, int64_t *out);
/* Any value, checked in full: its text without white space, members in their order, numbers and
 * strings as they are written. out: borrowed from the text or the arena. */
bool hf_reader_compact(struct hf_reader *r, struct hf_bytes *out);
/* Read past any value, checking it in full. */
bool hf_reader_skip(struct hf_reader *r);
/* True if nothing but white space is left. */
bool hf_reader_end(struct hf_reader *r);

/* A place before a value, to read it once more in another way. */
struct hf_reader_place { /* private */
    size_t at, name_count, name_base;
    unsigned depth;
    bool first;
};
void hf_reader_here(const struct hf_reader *r, struct hf_reader_place *place);
/* Go back to the place. An error since then is forgotten. */
void hf_reader_back(struct hf_reader *r, const struct hf_reader_place *place);

/* Fail, because the value at `at` (already read, or next) is not what the caller expects: "expected
 * <expected>, got <value>". Always false. */
bool hf_reader_refuse(struct hf_reader *r, size_t at, const char *expected);
/* Fail with a sentence, unless the reader has failed before. Always false. */
bool hf_reader_fail(struct hf_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Fail, because out of memory. Always false. */
bool hf_reader_no_memory(struct hf_reader *r);

/* What is read only to be skipped, or to be written in another form, uses an arena of its own,
 * which is freed at the end: unescaped strings and names would take many times the size of a small
 * text. Between begin and end, r->arena is that arena; nothing in it may be used after the end. */
struct hf_reader_aside { /* private */
    struct hf_arena own, *arena;
    struct hf_bytes *names;
    size_t name_count, name_room;
};
void hf_reader_aside(struct hf_reader *r, struct hf_reader_aside *a);
void hf_reader_aside_end(struct hf_reader *r, struct hf_reader_aside *a);

#define HF_READER_EXCERPT 44
/* Valid UTF-8 for use in a message: as much as fits, cut between two characters, with ? for control
 * characters, and a NUL. Returns out. */
const char *hf_reader_excerpt(struct hf_bytes text, char out[HF_READER_EXCERPT]);

#endif

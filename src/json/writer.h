/* writer.h: a small JSON writer over a buffer.
 *
 * Commas come by themselves: one flag says whether a comma is due before the next name or element.
 * It is down after an opening bracket and after a name, and up after every value. Nothing is
 * allocated but the buffer; memory that runs out shows as `failed` of the buffer, once, at the end.
 *
 *     struct hf_json j = { .out = &buffer };
 *     hf_json_object(&j);
 *     hf_json_name(&j, "id");
 *     hf_json_text(&j, hold->id);
 *     hf_json_object_end(&j);
 *
 * The same calls give the same bytes: no locale, no white space, no order of their own. */
#ifndef HF_JSON_WRITER_H
#define HF_JSON_WRITER_H

#include "base/buffer.h"

struct hf_json {
    struct hf_buffer *out; /* borrowed */
    bool comma;            /* private: is one due before the next name or element? */
};

void hf_json_object(struct hf_json *j);
void hf_json_object_end(struct hf_json *j);
void hf_json_array(struct hf_json *j);
void hf_json_array_end(struct hf_json *j);

/* The name of a member, as a literal that needs no escaping: it is quoted by the compiler. */
#define hf_json_name(j, literal) hf_json_name_quoted((j), "\"" literal "\":", sizeof(literal) + 2)
void hf_json_name_quoted(struct hf_json *j, const char *quoted, size_t size);
/* The name of a member, as bytes from outside. */
void hf_json_name_bytes(struct hf_json *j, struct hf_bytes name);

/* A string. Each maximal run that could begin a character but does not make one becomes U+FFFD, as
 * Unicode recommends, so the output is valid UTF-8 whatever comes in. */
void hf_json_bytes(struct hf_json *j, struct hf_bytes text);
void hf_json_text(struct hf_json *j, const char *text);
/* A string out of two parts that need no escaping. */
void hf_json_joined(struct hf_json *j, const char *first, const char *second);
/* Opaque bytes without loss: a string if they are valid UTF-8, else {"base64":"..."} (RFC 4648). */
void hf_json_opaque(struct hf_json *j, struct hf_bytes bytes);
/* A value that is JSON already; the caller vouches for it. */
void hf_json_raw(struct hf_json *j, struct hf_bytes text);
/* A string: `prefix`, then the bytes in lower-case hexadecimal. */
void hf_json_hex(struct hf_json *j, const char *prefix, struct hf_bytes bytes);

void hf_json_uint(struct hf_json *j, uint64_t number);
void hf_json_int(struct hf_json *j, int64_t number);
void hf_json_bool(struct hf_json *j, bool value);
void hf_json_null(struct hf_json *j);
/* RFC 3339, UTC, with milliseconds. */
void hf_json_time(struct hf_json *j, hf_time t);
/* The shortest exact form, such as "15m". */
void hf_json_duration(struct hf_json *j, int64_t ms);

#endif

/* writer.h: a small JSON writer over a buffer.
 *
 * The writer adds the commas: one flag says whether a comma is due before the next name or element.
 * It is clear after an opening bracket and after a name, and set after every value. Only the buffer
 * is allocated; out of memory is `failed` of the buffer, checked once, at the end.
 *
 *     struct hf_json j = { .out = &buffer };
 *     hf_json_object(&j);
 *     hf_json_name(&j, "id");
 *     hf_json_text(&j, hold->id);
 *     hf_json_object_end(&j);
 *
 * The same calls always give the same bytes: no locale, no white space, no reordering. */
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

/* The name of a member, as a literal that needs no escaping; the compiler adds the quotes. */
#define hf_json_name(j, literal) hf_json_name_quoted((j), "\"" literal "\":", sizeof(literal) + 2)
void hf_json_name_quoted(struct hf_json *j, const char *quoted, size_t size);
/* The name of a member, as bytes from outside. */
void hf_json_name_bytes(struct hf_json *j, struct hf_bytes name);

/* A string. Each maximal run that begins a character but does not complete it becomes U+FFFD, as
 * Unicode recommends. So the output is valid UTF-8 for any input. */
void hf_json_bytes(struct hf_json *j, struct hf_bytes text);
void hf_json_text(struct hf_json *j, const char *text);
/* A string of two parts that need no escaping. */
void hf_json_joined(struct hf_json *j, const char *first, const char *second);
/* Opaque bytes without loss: a string if they are valid UTF-8, else {"base64":"..."} (RFC 4648). */
void hf_json_opaque(struct hf_json *j, struct hf_bytes bytes);
/* A value that is already JSON; not checked. */
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

/* digest.h: is this the same request?
 *
 * "sha256/1": SHA-256 over the parameters in a canonical form. The form is a list of fields sorted
 * by name (bytewise); a field is
 *     u16 length of the name, the name, u8 type, u32 length of the value, the value
 * with type 1 for bytes, 2 for a number (8 bytes, signed), 3 for a truth value (1 byte), 4 for a
 * value that the parameter cannot have, as it was sent (from HTTP: its canonical JSON, RFC 8785);
 * all numbers little-endian. A parameter that was not given is left out, so that a parameter added
 * in a later version does not change the digests of requests that do not use it. The key, the
 * tenant and the action are not in the digest: they are compared separately. The fields of each
 * action are in action.c; of a register's value, hf_digest_value is digested. The digest of a begin
 * is its fingerprint: given, or the SHA-256 of the payload. */
#ifndef HF_CORE_DIGEST_H
#define HF_CORE_DIGEST_H

#include "core/core.h"

/* hf_digest: the digest of `request`, for actions with a key; zeros for all others. Pure. Reads
 * names and values of any length: hf_decide checks limits. A hold's id is digested as given, with
 * upper case letters made lower case. */
void hf_digest(const struct hf_request *request, uint8_t out[HF_DIGEST_SIZE]);

/* hf_digest_value: the bytes of a register's value or of a response that say which value it is: the
 * head of JSON as servers store it (HF_STORED_JSON in holdfast.h), else all of it. Pure. */
static inline struct hf_bytes hf_digest_value(struct hf_bytes value)
{
    const size_t mark = sizeof HF_STORED_JSON - 1;
    bool json = value.size >= HF_STORED_HEAD && memcmp(value.data, HF_STORED_JSON, mark) == 0;
    return json ? hf_mem(value.data, HF_STORED_HEAD) : value;
}

#endif

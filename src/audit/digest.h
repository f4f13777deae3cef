/* digest.h: the parameters' digest, computed again from what the records say.
 *
 * "sha256/1" is SHA-256 over fields sorted by name; a field is u16 length of the name, the name, u8
 * type (1 bytes, 2 number, 3 truth), u32 length of the value, the value. Written anew here, so that
 * a record whose digest does not belong to what it did is found out. Pure. */
#ifndef HF_AUDIT_DIGEST_H
#define HF_AUDIT_DIGEST_H

#include "audit/record.h"

/* Of confirm, release, expire and reverse: all of them have the hold's id alone. */
void hf_audit_digest_id(const char *id, uint8_t out[HF_DIGEST_SIZE]);

enum hf_audit_fits { HF_AUDIT_FITS, HF_AUDIT_FITS_NOT, HF_AUDIT_CANNOT_TELL };

/* hf_audit_digest_fits: does the entry's digest belong to what its answer says was done? Told for
 * successful place_hold, confirm, release, expire, reverse, grant and write; optional parameters
 * that the records do not show are tried with and without. entry, answer: borrowed. */
enum hf_audit_fits hf_audit_digest_fits(const struct hf_audit_entry *entry,
                                        const struct hf_audit_row *rows,
                                        const struct hf_audit_row *answer);

/* hf_audit_digest_raises: can the entry have raised the highest fence of a resource or a register
 * to what the row `raised` of it says? Only a place_hold, write or delete that went well and whose
 * digest has that very fence in it. Without a digest, which calls without a key do not have, it
 * cannot be told: true. */
bool hf_audit_digest_raises(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                            const struct hf_audit_row *raised);

#endif

/* digest.h: compute the digest of the parameters again, from the records.
 *
 * "sha256/1" is SHA-256 over fields sorted by name; a field is u16 length of the name, the name, u8
 * type (1 bytes, 2 number, 3 truth), u32 length of the value, the value. This is a second
 * implementation, to find records whose digest does not match their effect. Pure. */
#ifndef HF_AUDIT_DIGEST_H
#define HF_AUDIT_DIGEST_H

#include "audit/record.h"

/* The digest of confirm, release, expire and reverse: their only parameter is the hold's id. */
void hf_audit_digest_id(const char *id, uint8_t out[HF_DIGEST_SIZE]);

enum hf_audit_fits { HF_AUDIT_FITS, HF_AUDIT_FITS_NOT, HF_AUDIT_CANNOT_TELL };

/* hf_audit_digest_fits: does the entry's digest match its answer? Known for a successful
 * place_hold, confirm, release, expire, reverse, grant, delete_lease, write and delete_register;
 * optional parameters that the records do not show are tried with and without. entry, rows, answer:
 * borrowed. */
enum hf_audit_fits hf_audit_digest_fits(const struct hf_audit_entry *entry,
                                        const struct hf_audit_row *rows,
                                        const struct hf_audit_row *answer);

/* hf_audit_digest_raises: can the entry have raised the highest fence of a resource or a register
 * to the fence in its row `raised`? Only a successful place_hold, write or delete_register whose
 * digest contains this fence. An entry without a digest (a call without a key) cannot be checked:
 * true. */
bool hf_audit_digest_raises(const struct hf_audit_entry *entry, const struct hf_audit_row *rows,
                            const struct hf_audit_row *raised);

/* hf_audit_digest_requires: can the entry have set what `reg` says about fences? Only a successful
 * write that says so in its digest. */
bool hf_audit_digest_requires(const struct hf_audit_entry *entry, const struct hf_register *reg);

#endif

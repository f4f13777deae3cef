/* words.h: records as text for people. */
#ifndef HF_AUDIT_WORDS_H
#define HF_AUDIT_WORDS_H

#include "audit/record.h"

#include <stdio.h>

/* Static names, as every interface shows them; "unknown" for other numbers. */
const char *hf_audit_state_name(enum hf_hold_state state);
const char *hf_audit_claim_name(enum hf_claim_state state);
const char *hf_audit_type_name(enum hf_register_type type);
const char *hf_audit_match_name(enum hf_match match);
const char *hf_audit_row_name(enum hf_row_kind kind);

/* Bytes for a message: in quotes if they are UTF-8 without control characters and quotes, else 0x
 * and hexadecimal; long ones are cut and end with "...". */
#define HF_AUDIT_SHOW 160
struct hf_audit_shown {
    char text[HF_AUDIT_SHOW];
};
struct hf_audit_shown hf_audit_show(struct hf_bytes bytes);

/* A time for a message; "never" for INT64_MAX. */
struct hf_audit_clock {
    char text[40];
};
struct hf_audit_clock hf_audit_at(hf_time t);

/* "until" and a time; "for ever" for INT64_MAX. */
struct hf_audit_clock hf_audit_until(hf_time t);

/* A duration such as "15m". */
struct hf_audit_clock hf_audit_for(int64_t ms);

/* A number with its noun: "1 event", "2 events". */
struct hf_audit_counted {
    char text[80];
};
struct hf_audit_counted hf_audit_count(uint64_t number, const char *one, const char *many);

/* The key, or the client and number, and the tenant of an entry: `key "a" of tenant "b"`. */
struct hf_audit_who {
    char text[2 * HF_AUDIT_SHOW + 64];
};
struct hf_audit_who hf_audit_who(const struct hf_audit_entry *entry);

/* What it is, its name, and its tenant if it is not the default one: `guard "a" of tenant "b"`. */
struct hf_audit_who hf_audit_named(const char *what, struct hf_bytes name, struct hf_bytes tenant);

/* A copy of the text, owned; NULL if out of memory. */
char *hf_audit_copy(const char *text);

void hf_audit_hex(const uint8_t *bytes, size_t size, char *out);

#endif

/* encode.h: the records of holdfast.h as the JSON of the interface.
 *
 * All arguments are borrowed and only read; only the writer's buffer is allocated. The same record
 * gives the same bytes, so a replay is equal to the first answer. */
#ifndef HF_API_ENCODE_H
#define HF_API_ENCODE_H

#include "json/writer.h"

/* The names in the interface. Static; NULL for other numbers. */
const char *hf_api_hold_state(enum hf_hold_state state);
const char *hf_api_unavailable(enum hf_unavailable on_unavailable);
const char *hf_api_claim_status(enum hf_claim_state state);

/* The number of free units; 0 while the resource is closed. */
uint32_t hf_api_available(const struct hf_resource *resource);

/* One record each, as an object. */
void hf_api_hold(struct hf_json *j, const struct hf_hold *hold);
void hf_api_resource(struct hf_json *j, const struct hf_resource *resource);
void hf_api_guard(struct hf_json *j, const struct hf_guard *guard);
void hf_api_seen(struct hf_json *j, const struct hf_seen *seen);
void hf_api_claim(struct hf_json *j, const struct hf_claim *claim);
/* The same with its tenant. */
void hf_api_claim_of_tenant(struct hf_json *j, const struct hf_claim *claim);
void hf_api_lease(struct hf_json *j, const struct hf_lease *lease);
void hf_api_register(struct hf_json *j, const struct hf_register *reg);
/* Only its value; null if it is deleted. */
void hf_api_value(struct hf_json *j, const struct hf_value *value);
/* hashed: the guard stores SHA-256 values, so the member is identity_sha256, in hexadecimal. */
void hf_api_entry(struct hf_json *j, const struct hf_entry *entry, bool hashed);

/* The body of the answer to `action`: the record, or the problem if answer->status is not HF_OK. */
void hf_api_answer(struct hf_json *j, enum hf_action action, const struct hf_answer *answer);
/* The record of a key: `token` and `answer` as HF_GET_TOKEN fills them. */
void hf_api_token(struct hf_json *j, const struct hf_token *token, const struct hf_answer *answer);

/* The member next_cursor: a string, or null at the end. */
void hf_api_cursor(struct hf_json *j, uint64_t cursor);

/* What the rows of a page show. hashed: as for hf_api_entry. tenants: each claim has the member
 * `tenant`. */
struct hf_api_shows {
    bool hashed, tenants;
};
/* A page in parts: begin, any number of rows, end. kind: not HF_LIST_OUTBOX. */
void hf_api_page_begin(struct hf_json *j, enum hf_list_kind kind);
void hf_api_page_rows(struct hf_json *j, enum hf_list_kind kind, const struct hf_page *page,
                      struct hf_api_shows shows);
void hf_api_page_end(struct hf_json *j, uint64_t next_cursor);

/* A whole page: {"holds":[...],"next_cursor":...} and so on. hashed: as for hf_api_entry. */
void hf_api_holds(struct hf_json *j, const struct hf_page *page);
void hf_api_resources(struct hf_json *j, const struct hf_page *page);
void hf_api_guards(struct hf_json *j, const struct hf_page *page);
void hf_api_entries(struct hf_json *j, const struct hf_page *page, bool hashed);
void hf_api_claims(struct hf_json *j, const struct hf_page *page);

#endif

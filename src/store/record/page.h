/* page.h: builds a page of records, for both stores.
 *
 * Records are copied into `rows`, their bytes into `bytes`. The slices hold offsets until the end,
 * because the bytes may move while they grow. */
#ifndef HF_STORE_RECORD_PAGE_H
#define HF_STORE_RECORD_PAGE_H

#include "holdfast.h"

struct hf_paging {
    const struct hf_query *query; /* borrowed */
    struct hf_page *page;         /* borrowed */
    size_t limit, size;           /* maximum number of records, bytes of each */
    unsigned char *rows;          /* owned until hf_paging_end */
    struct {
        unsigned char *data;
        size_t size, room;
    } bytes;
    enum hf_status status; /* the first error */
};

/* Check the query and allocate. HF_OK, HF_INVALID_REQUEST or HF_NO_MEMORY; call hf_paging_end only
 * after HF_OK. */
enum hf_status hf_paging_begin(struct hf_paging *p, const struct hf_query *query,
                               struct hf_page *page);
/* Append a record of the query's kind. There must be room: page->count < limit. */
void hf_paging_add(struct hf_paging *p, const void *row);
/* Does the page have so many bytes that it must end here? */
bool hf_paging_is_full(const struct hf_paging *p);
/* Does this hold match the query? Ignores `from`: holds before it end the list. */
bool hf_paging_wants(const struct hf_query *query, const struct hf_hold *hold);
/* The same for a claim, with its state as shown. */
bool hf_paging_wants_claim(const struct hf_query *query, const struct hf_claim *claim);
/* Move the rows to the page, or free them after an error. cause: borrowed, of a
 * HF_STORAGE_FAILURE. Returns p->status. */
enum hf_status hf_paging_end(struct hf_paging *p, const struct hf_cause *cause);

#endif

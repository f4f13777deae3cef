/* Lists, a page at a time. */
#include "api/encode.h"

#include <inttypes.h>
#include <stdio.h>

/* A cursor is opaque to clients, so it is a string: numbers invite arithmetic, and not every
 * language has 64-bit numbers. */
void hf_api_cursor(struct hf_json *j, uint64_t cursor)
{
    char text[24];
    hf_json_name(j, "next_cursor");
    if (cursor == 0) {
        hf_json_null(j);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, cursor);
    hf_json_text(j, text);
}

void hf_api_page_begin(struct hf_json *j, enum hf_list_kind kind)
{
    static const char *const names[] = { [HF_LIST_HOLDS] = "holds",
                                         [HF_LIST_RESOURCES] = "resources",
                                         [HF_LIST_GUARDS] = "guards",
                                         [HF_LIST_ENTRIES] = "entries",
                                         [HF_LIST_CLAIMS] = "claims" };
    hf_json_object(j);
    hf_json_name_bytes(j, hf_str(names[kind]));
    hf_json_array(j);
}

void hf_api_page_rows(struct hf_json *j, enum hf_list_kind kind, const struct hf_page *page,
                      struct hf_api_shows shows)
{
    for (size_t i = 0; i < page->count; i++) {
        switch (kind) {
        case HF_LIST_HOLDS: hf_api_hold(j, &page->holds[i]); break;
        case HF_LIST_RESOURCES: hf_api_resource(j, &page->resources[i]); break;
        case HF_LIST_GUARDS: hf_api_guard(j, &page->guards[i]); break;
        case HF_LIST_ENTRIES: hf_api_entry(j, &page->entries[i], shows.hashed); break;
        case HF_LIST_CLAIMS:
            if (shows.tenants)
                hf_api_claim_of_tenant(j, &page->claims[i]);
            else
                hf_api_claim(j, &page->claims[i]);
            break;
        case HF_LIST_OUTBOX: break; /* only in the library */
        }
    }
}

void hf_api_page_end(struct hf_json *j, uint64_t next_cursor)
{
    hf_json_array_end(j);
    hf_api_cursor(j, next_cursor);
    hf_json_object_end(j);
}

static void page_add(struct hf_json *j, enum hf_list_kind kind, const struct hf_page *page,
                     bool hashed)
{
    hf_api_page_begin(j, kind);
    hf_api_page_rows(j, kind, page, (struct hf_api_shows){ .hashed = hashed });
    hf_api_page_end(j, page->next_cursor);
}

void hf_api_holds(struct hf_json *j, const struct hf_page *page)
{
    page_add(j, HF_LIST_HOLDS, page, false);
}

void hf_api_resources(struct hf_json *j, const struct hf_page *page)
{
    page_add(j, HF_LIST_RESOURCES, page, false);
}

void hf_api_guards(struct hf_json *j, const struct hf_page *page)
{
    page_add(j, HF_LIST_GUARDS, page, false);
}

void hf_api_entries(struct hf_json *j, const struct hf_page *page, bool hashed)
{
    page_add(j, HF_LIST_ENTRIES, page, hashed);
}

void hf_api_claims(struct hf_json *j, const struct hf_page *page)
{
    page_add(j, HF_LIST_CLAIMS, page, false);
}

/* Lists, a page at a time. */
#include "api/encode.h"

#include <inttypes.h>
#include <stdio.h>

/* A cursor is opaque to whoever gets it, so it is a string: numbers invite arithmetic, and 64 bits do
 * not fit into the numbers of every language. */
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

static void page_end(struct hf_json *j, const struct hf_page *page)
{
    hf_json_array_end(j);
    hf_api_cursor(j, page->next_cursor);
    hf_json_object_end(j);
}

void hf_api_holds(struct hf_json *j, const struct hf_page *page)
{
    hf_json_object(j);
    hf_json_name(j, "holds");
    hf_json_array(j);
    for (size_t i = 0; i < page->count; i++)
        hf_api_hold(j, &page->holds[i]);
    page_end(j, page);
}

void hf_api_resources(struct hf_json *j, const struct hf_page *page)
{
    hf_json_object(j);
    hf_json_name(j, "resources");
    hf_json_array(j);
    for (size_t i = 0; i < page->count; i++)
        hf_api_resource(j, &page->resources[i]);
    page_end(j, page);
}

void hf_api_guards(struct hf_json *j, const struct hf_page *page)
{
    hf_json_object(j);
    hf_json_name(j, "guards");
    hf_json_array(j);
    for (size_t i = 0; i < page->count; i++)
        hf_api_guard(j, &page->guards[i]);
    page_end(j, page);
}

void hf_api_entries(struct hf_json *j, const struct hf_page *page, bool hashed)
{
    hf_json_object(j);
    hf_json_name(j, "entries");
    hf_json_array(j);
    for (size_t i = 0; i < page->count; i++)
        hf_api_entry(j, &page->entries[i], hashed);
    page_end(j, page);
}

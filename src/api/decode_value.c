/* Values of merges, in the same form as in answers (value.c): a client can send back what it
 * received. */
#include "api/decode_part.h"
#include "base/bytes.h"
#include "json/stored.h"

#include <stdlib.h>
#include <string.h>

/* The items are collected on the stack, because their number is known only after all are read. */
struct items {
    struct hf_item data[HF_MERGE_ITEMS_MAX];
    size_t count;
};

/* NULL: too many items. */
static struct hf_item *items_add(struct hf_reader *r, struct items *items)
{
    if (items->count == HF_MERGE_ITEMS_MAX) {
        (void)hf_reader_fail(r, "expected at most %d items", HF_MERGE_ITEMS_MAX);
        return NULL;
    }
    struct hf_item *item = &items->data[items->count++];
    *item = (struct hf_item){ .up = 0 };
    return item;
}

static bool fail_name(struct hf_reader *r, const char *expected, struct hf_bytes name)
{
    char text[HF_READER_EXCERPT];
    return hf_reader_fail(r, "expected only %s, got the member \"%s\"", expected,
                          hf_reader_excerpt(name, text));
}

static int by_name(const void *a, const void *b)
{
    return hf_bytes_compare(((const struct hf_item *)a)->name, ((const struct hf_item *)b)->name);
}

/* Remove duplicates: a set has each member once. */
static void items_unite(struct items *items)
{
    size_t kept = 0;
    bool sorted = true; /* values from answers are sorted */
    for (size_t i = 1; i < items->count && sorted; i++)
        sorted = by_name(&items->data[i - 1], &items->data[i]) <= 0;
    if (!sorted)
        qsort(items->data, items->count, sizeof *items->data, by_name);
    for (size_t i = 0; i < items->count; i++)
        if (kept == 0 || by_name(&items->data[kept - 1], &items->data[i]) != 0)
            items->data[kept++] = items->data[i];
    items->count = kept;
}

/* ["a", "b"] */
static bool union_read(struct hf_reader *r, struct items *items)
{
    if (!hf_reader_array(r))
        return false;
    while (hf_reader_element(r)) {
        struct hf_item *item = items_add(r, items);
        if (!item || !hf_reader_string(r, &item->name))
            return false;
    }
    items_unite(items);
    return !r->failed;
}

/* {"up": 1, "down": 2}; a missing one is 0. */
static bool updown_read(struct hf_reader *r, struct hf_item *item)
{
    struct hf_bytes name;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        bool up = hf_bytes_equal(name, hf_str("up"));
        if (!up && !hf_bytes_equal(name, hf_str("down")))
            return fail_name(r, "up and down", name);
        if (!hf_reader_uint(r, up ? &item->up : &item->down))
            return false;
    }
    return !r->failed;
}

/* {"node": 1} or {"node": {"up": 1, "down": 2}} */
static bool nodes_read(struct hf_reader *r, enum hf_register_type type, struct items *items)
{
    struct hf_bytes name;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        struct hf_item *item = items_add(r, items);
        if (!item)
            return false;
        item->name = name;
        if (!(type == HF_TYPE_UPDOWN ? updown_read(r, item) : hf_reader_uint(r, &item->up)))
            return false;
    }
    return !r->failed;
}

/* {"value": any, "timestamp": 1, "node": "n"}, all three. */
static bool lww_read(struct hf_reader *r, struct hf_value *value)
{
    enum { VALUE = 1, TIMESTAMP = 2, NODE = 4 };
    unsigned seen = 0;
    struct hf_bytes name;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        bool ok = false;
        int which = hf_decode_choice("value|timestamp|node", name);
        switch (which) {
        case 0: ok = hf_stored_read(r, &value->bytes); break;
        case 1: ok = hf_reader_int(r, &value->timestamp); break;
        case 2: ok = hf_reader_string(r, &value->node); break;
        default: return fail_name(r, "value, timestamp and node", name);
        }
        if (!ok)
            return false;
        seen |= 1U << which;
    }
    if (r->failed)
        return false;
    return seen == (VALUE | TIMESTAMP | NODE) ||
           hf_reader_fail(r, "expected value, timestamp and node, all three");
}

static bool value_read(struct hf_reader *r, struct hf_value *value, struct items *items)
{
    switch (value->type) {
    case HF_TYPE_PLAIN: return hf_stored_read(r, &value->bytes);
    case HF_TYPE_DELETED: return hf_reader_null(r);
    case HF_TYPE_MAX:
    case HF_TYPE_MIN: return hf_reader_int(r, &value->number);
    case HF_TYPE_OR: return hf_reader_bool(r, &value->flag);
    case HF_TYPE_UNION: return union_read(r, items);
    case HF_TYPE_LWW: return lww_read(r, value);
    default: return nodes_read(r, value->type, items);
    }
}

bool hf_api_value_read(struct hf_reader *r, struct hf_value *value)
{
    struct items items;
    items.count = 0;
    if (!value_read(r, value, &items))
        return false;
    struct hf_item *kept =
        items.count > 0 ? hf_arena_take(r->arena, items.count * sizeof *kept) : NULL;
    if (items.count > 0 && !kept)
        return hf_reader_no_memory(r);
    if (kept)
        memcpy(kept, items.data, items.count * sizeof *kept);
    value->items = kept;
    value->item_count = items.count;
    return true;
}

static enum hf_status names_check(struct hf_decoding *d, const struct hf_value *value)
{
    enum hf_status status = hf_decode_name(d->why, "value: node", value->node);
    for (size_t i = 0; i < value->item_count && status == HF_OK; i++)
        status = hf_decode_name(d->why, "value: each name in it", value->items[i].name);
    return status;
}

/* The size of `bytes` if the reader had to create them; 0 if they are borrowed from the text. */
static size_t made(struct hf_bytes text, struct hf_bytes bytes)
{
    const unsigned char *from = text.data, *data = bytes.data;
    return bytes.size == 0 || (data >= from && data < from + text.size) ? 0 : bytes.size;
}

/* Copy such bytes to *to, and advance it. */
static void bytes_keep(struct hf_bytes text, struct hf_bytes *bytes, unsigned char **to)
{
    size_t size = made(text, *bytes);
    if (size == 0)
        return;
    memcpy(*to, bytes->data, size);
    bytes->data = *to;
    *to += size;
}

/* Copy what is not in the text to the arena, without unused space. False if out of memory. */
static bool value_keep(struct hf_decoding *d, struct hf_value *value, const struct items *items)
{
    struct hf_bytes text = d->r.text;
    size_t count = items->count, size = made(text, value->bytes) + made(text, value->node);
    for (size_t i = 0; i < count; i++)
        size += made(text, items->data[i].name);
    if (count + size == 0)
        return true;
    struct hf_item *kept = hf_arena_take(d->r.arena, count * sizeof *kept + size);
    if (!kept)
        return false;
    unsigned char *to = (unsigned char *)(kept + count);
    if (count > 0)
        memcpy(kept, items->data, count * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        bytes_keep(text, &kept[i].name, &to);
    bytes_keep(text, &value->bytes, &to);
    bytes_keep(text, &value->node, &to);
    value->items = kept;
    value->item_count = count;
    return true;
}

enum hf_status hf_decode_value(struct hf_decoding *d, const struct hf_value **out)
{
    const struct hf_got *got = hf_decode_got(d, "value");
    struct hf_value *value = hf_arena_take(d->r.arena, sizeof *value);
    struct hf_arena own = { 0 };
    struct items items;
    items.count = 0;
    /* The value may precede its type, so it is read a second time, at its position. */
    struct hf_reader r = {
        .text = hf_mem(d->r.text.data, got->end), .arena = &own, .at = got->at, .depth = 1
    };
    if (!value)
        return HF_NO_MEMORY;
    *value = (struct hf_value){ .type = (enum hf_register_type)(HF_TYPE_MAX +
                                                                hf_decode_got(d, "type")->number) };
    enum hf_status status = HF_OK;
    if (!value_read(&r, value, &items)) {
        (void)hf_decode_refuse(d->why, "value: %s.", r.error);
        status = r.no_memory ? HF_NO_MEMORY : HF_INVALID_REQUEST;
    } else if (!value_keep(d, value, &items)) {
        status = HF_NO_MEMORY;
    }
    hf_arena_free(&own);
    *out = value;
    return status == HF_OK ? names_check(d, value) : status;
}

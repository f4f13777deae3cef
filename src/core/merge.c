#include "core/merge.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "core/name.h"

/* ---- The shape of each type's stored form ---- */

enum form {
    FORM_NONE = 0,
    FORM_PLAIN,
    FORM_NUMBER,
    FORM_FLAG,
    FORM_STAMPED,
    FORM_ITEMS,
    FORM_DELETED
};

static const struct shape {
    enum form form;
    unsigned numbers; /* of an item, after its name */
    bool total;       /* the value is the sum over the items */
} shapes[] = {
    [HF_TYPE_PLAIN] = { FORM_PLAIN, 0, false },  [HF_TYPE_MAX] = { FORM_NUMBER, 0, false },
    [HF_TYPE_MIN] = { FORM_NUMBER, 0, false },   [HF_TYPE_OR] = { FORM_FLAG, 0, false },
    [HF_TYPE_UNION] = { FORM_ITEMS, 0, false },  [HF_TYPE_LWW] = { FORM_STAMPED, 0, false },
    [HF_TYPE_VECTOR] = { FORM_ITEMS, 1, false }, [HF_TYPE_COUNTER] = { FORM_ITEMS, 1, true },
    [HF_TYPE_UPDOWN] = { FORM_ITEMS, 2, true },  [HF_TYPE_DELETED] = { FORM_DELETED, 0, false },
};

static const struct shape *shape_of(enum hf_register_type type)
{
    return &shapes[(unsigned)type < sizeof shapes / sizeof *shapes ? (unsigned)type : 0];
}

/* Scratch for a form. The plan always has enough for forms and for sorting them. */
static void *room(struct hf_plan *plan, size_t size)
{
    unsigned char *at = hf_plan_room(plan, size);
    HF_ASSERT(at);
    return at;
}

/* ---- Items ---- */

struct sum {
    uint64_t up, down;
};

/* Add an item whose numbers are at most INT64_MAX. False if a sum does not fit into int64_t. Ups
 * and downs are bounded separately, so their difference fits too. */
static bool sum_add(const struct shape *s, struct sum *sum, const struct hf_item *item)
{
    if (!s->total)
        return true;
    sum->up += item->up;
    sum->down += s->numbers == 2 ? item->down : 0;
    return sum->up <= INT64_MAX && sum->down <= INT64_MAX;
}

static bool item_valid(const struct shape *s, const struct hf_item *item)
{
    return hf_name_valid(item->name) && (s->numbers < 1 || item->up <= INT64_MAX) &&
           (s->numbers < 2 || item->down <= INT64_MAX);
}

static size_t item_size(const struct shape *s, const struct hf_item *item)
{
    return 2 + item->name.size + 8 * (size_t)s->numbers;
}

static unsigned char *item_put(const struct shape *s, const struct hf_item *item, unsigned char *p)
{
    hf_put16(p, (uint16_t)item->name.size);
    memcpy(p + 2, item->name.data, item->name.size);
    p += 2 + item->name.size;
    if (s->numbers >= 1) {
        hf_put64(p, item->up);
        p += 8;
    }
    if (s->numbers == 2) {
        hf_put64(p, item->down);
        p += 8;
    }
    return p;
}

/* Take the next item from the front of `rest`. False at the end, or if no whole item follows: then
 * `rest` is not empty. */
static bool item_take(const struct shape *s, struct hf_bytes *rest, struct hf_item *item)
{
    const unsigned char *p = rest->data;
    size_t numbers = 8 * (size_t)s->numbers;
    if (rest->size < 2 + numbers || rest->size - 2 - numbers < hf_get16(p))
        return false;
    item->name = hf_mem(p + 2, hf_get16(p));
    p += 2 + item->name.size;
    item->up = s->numbers >= 1 ? hf_get64(p) : 0;
    item->down = s->numbers == 2 ? hf_get64(p + 8) : 0;
    *rest = hf_mem(p + numbers, rest->size - 2 - item->name.size - numbers);
    return true;
}

/* ---- Encoding ---- */

/* Pointers to the items, sorted by name. Shellsort: no recursion and no extra memory. */
static const struct hf_item **items_sorted(const struct hf_value *value, struct hf_plan *plan)
{
    size_t n = value->item_count;
    const struct hf_item **order = room(plan, n * sizeof(const struct hf_item *));
    for (size_t i = 0; i < n; i++)
        order[i] = &value->items[i];
    size_t gap = 1;
    while (gap < n)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (size_t i = gap; i < n; i++) {
            const struct hf_item *item = order[i];
            size_t at = i;
            for (; at >= gap && hf_bytes_compare(order[at - gap]->name, item->name) > 0; at -= gap)
                order[at] = order[at - gap];
            order[at] = item;
        }
    }
    return order;
}

static enum hf_status encode_items(const struct shape *s, const struct hf_value *value,
                                   struct hf_plan *plan, struct hf_bytes *out)
{
    struct sum sum = { 0, 0 };
    size_t size = 0;
    if (value->item_count > HF_MERGE_ITEMS_MAX)
        return HF_INVALID_REQUEST;
    for (size_t i = 0; i < value->item_count; i++) {
        const struct hf_item *item = &value->items[i];
        if (!item_valid(s, item) || !sum_add(s, &sum, item))
            return HF_INVALID_REQUEST;
        size += item_size(s, item);
    }
    if (size > HF_VALUE_MAX)
        return HF_INVALID_REQUEST;
    const struct hf_item **order = items_sorted(value, plan);
    unsigned char *form = room(plan, size);
    unsigned char *p = form;
    for (size_t i = 0; i < value->item_count; i++) {
        if (i > 0 && hf_bytes_equal(order[i - 1]->name, order[i]->name))
            return HF_INVALID_REQUEST;
        p = item_put(s, order[i], p);
    }
    *out = hf_mem(form, size);
    return HF_OK;
}

static enum hf_status encode_stamped(const struct hf_value *value, struct hf_plan *plan,
                                     struct hf_bytes *out)
{
    struct hf_bytes node = value->node, bytes = value->bytes;
    if (!hf_name_valid(node) || bytes.size > HF_VALUE_MAX - 10 - node.size)
        return HF_INVALID_REQUEST;
    size_t size = 10 + node.size + bytes.size;
    unsigned char *form = room(plan, size);
    hf_put64(form, (uint64_t)value->timestamp);
    hf_put16(form + 8, (uint16_t)node.size);
    memcpy(form + 10, node.data, node.size);
    if (bytes.size > 0)
        memcpy(form + 10 + node.size, bytes.data, bytes.size);
    *out = hf_mem(form, size);
    return HF_OK;
}

enum hf_status hf_merge_encode(const struct hf_value *value, struct hf_plan *plan,
                               struct hf_bytes *out)
{
    const struct shape *s = shape_of(value->type);
    unsigned char *form;
    switch (s->form) {
    case FORM_NUMBER:
        form = room(plan, 8);
        hf_put64(form, (uint64_t)value->number);
        *out = hf_mem(form, 8);
        return HF_OK;
    case FORM_FLAG:
        form = room(plan, 1);
        *form = value->flag;
        *out = hf_mem(form, 1);
        return HF_OK;
    case FORM_STAMPED: return encode_stamped(value, plan, out);
    case FORM_ITEMS: return encode_items(s, value, plan, out);
    default: return HF_INVALID_REQUEST; /* unknown, or plain, which cannot be merged */
    }
}

/* ---- Joining ---- */

static int64_t number_of(struct hf_bytes form)
{
    HF_ASSERT(form.size >= 8);
    return (int64_t)hf_get64(form.data);
}

struct stamped {
    int64_t timestamp;
    struct hf_bytes node, bytes;
};

/* False if the form is too short for what it says. */
static bool stamped_read(struct hf_bytes form, struct stamped *out)
{
    const unsigned char *p = form.data;
    if (form.size < 10 || form.size - 10 < hf_get16(p + 8))
        return false;
    out->timestamp = (int64_t)hf_get64(p);
    out->node = hf_mem(p + 10, hf_get16(p + 8));
    out->bytes = hf_mem(p + 10 + out->node.size, form.size - 10 - out->node.size);
    return true;
}

/* Compare timestamp, then node, then bytes: a total order, so that every replica picks the same
 * value. */
static bool stamped_above(struct hf_bytes a, struct hf_bytes b)
{
    struct stamped x, y;
    HF_ASSERT(stamped_read(a, &x) && stamped_read(b, &y));
    if (x.timestamp != y.timestamp)
        return x.timestamp > y.timestamp;
    int nodes = hf_bytes_compare(x.node, y.node);
    return nodes != 0 ? nodes > 0 : hf_bytes_compare(x.bytes, y.bytes) > 0;
}

static struct hf_item item_join(const struct hf_item *x, const struct hf_item *y)
{
    struct hf_item z = *x;
    if (y->up > z.up)
        z.up = y->up;
    if (y->down > z.down)
        z.down = y->down;
    return z;
}

/* Both forms are sorted: merge them in one pass. */
static enum hf_status join_items(const struct shape *s, struct hf_bytes a, struct hf_bytes b,
                                 struct hf_plan *plan, struct hf_bytes *out)
{
    unsigned char *form = room(plan, a.size + b.size);
    unsigned char *p = form;
    struct sum sum = { 0, 0 };
    struct hf_item x, y;
    size_t count = 0;
    bool has_x = item_take(s, &a, &x), has_y = item_take(s, &b, &y);
    for (; has_x || has_y; count++) {
        int order = !has_x ? 1 : !has_y ? -1 : hf_bytes_compare(x.name, y.name);
        struct hf_item z = order < 0 ? x : order > 0 ? y : item_join(&x, &y);
        if (!sum_add(s, &sum, &z))
            return HF_INVALID_REQUEST;
        p = item_put(s, &z, p);
        if (order <= 0)
            has_x = item_take(s, &a, &x);
        if (order >= 0)
            has_y = item_take(s, &b, &y);
    }
    HF_ASSERT(a.size == 0 && b.size == 0);
    *out = hf_mem(form, (size_t)(p - form));
    return count > HF_MERGE_ITEMS_MAX || out->size > HF_VALUE_MAX ? HF_INVALID_REQUEST : HF_OK;
}

enum hf_status hf_merge_join(enum hf_register_type type, struct hf_bytes a, struct hf_bytes b,
                             struct hf_plan *plan, struct hf_bytes *out)
{
    const struct shape *s = shape_of(type);
    bool a_wins;
    switch (s->form) {
    case FORM_NUMBER: a_wins = (number_of(a) >= number_of(b)) == (type == HF_TYPE_MAX); break;
    case FORM_FLAG:
        HF_ASSERT(a.size == 1 && b.size == 1);
        a_wins = *(const unsigned char *)a.data >= *(const unsigned char *)b.data;
        break;
    case FORM_STAMPED: a_wins = stamped_above(a, b); break;
    case FORM_ITEMS: return join_items(s, a, b, plan, out);
    default: return HF_INVALID_REQUEST;
    }
    *out = a_wins ? a : b;
    return HF_OK;
}

/* ---- Decoding ---- */

static bool decode_items(const struct shape *s, struct hf_bytes form, struct hf_item *items,
                         size_t items_max, struct hf_value *out)
{
    struct sum sum = { 0, 0 };
    struct hf_item item;
    size_t n = 0;
    for (; item_take(s, &form, &item); n++) {
        if (n == items_max || !item_valid(s, &item) || !sum_add(s, &sum, &item))
            return false;
        if (n > 0 && hf_bytes_compare(items[n - 1].name, item.name) >= 0)
            return false;
        items[n] = item;
    }
    out->items = items;
    out->item_count = n;
    out->number = (int64_t)sum.up - (int64_t)sum.down;
    return form.size == 0;
}

static bool decode_stamped(struct hf_bytes form, struct hf_value *out)
{
    struct stamped s;
    if (!stamped_read(form, &s) || !hf_name_valid(s.node))
        return false;
    out->timestamp = s.timestamp;
    out->node = s.node;
    out->bytes = s.bytes;
    return true;
}

bool hf_merge_decode(enum hf_register_type type, struct hf_bytes form, struct hf_item *items,
                     size_t items_max, struct hf_value *out)
{
    const struct shape *s = shape_of(type);
    *out = (struct hf_value){ .type = type };
    switch (s->form) {
    case FORM_PLAIN: out->bytes = form; return true;
    case FORM_NUMBER:
        if (form.size != 8)
            return false;
        out->number = number_of(form);
        return true;
    case FORM_FLAG:
        if (form.size != 1 || *(const unsigned char *)form.data > 1)
            return false;
        out->flag = *(const unsigned char *)form.data == 1;
        return true;
    case FORM_STAMPED: return decode_stamped(form, out);
    case FORM_ITEMS: return decode_items(s, form, items, items_max, out);
    case FORM_DELETED:
        if (form.size != 8)
            return false;
        out->number = number_of(form);
        return true;
    default: return false;
    }
}

size_t hf_merge_count(enum hf_register_type type, struct hf_bytes form)
{
    const struct shape *s = shape_of(type);
    struct hf_item item;
    size_t n = 0;
    while (s->form == FORM_ITEMS && item_take(s, &form, &item))
        n++;
    return n;
}

/* merge.c: the joins. Each is idempotent, commutative and associative because it takes a greatest
 * or a least. */
#include "judge/model.h"

#include <stdlib.h>

static bool has_items(enum hf_register_type type)
{
    return type == HF_TYPE_UNION || type == HF_TYPE_VECTOR || type == HF_TYPE_COUNTER ||
           type == HF_TYPE_UPDOWN;
}

static bool counts_up(enum hf_register_type type)
{
    return type != HF_TYPE_UNION;
}

static int order(struct hf_bytes a, struct hf_bytes b)
{
    size_t least = a.size < b.size ? a.size : b.size;
    int c = least ? memcmp(a.data, b.data, least) : 0;
    return c ? c : (a.size > b.size) - (a.size < b.size);
}

static int by_name(const void *a, const void *b)
{
    return order(((const struct hf_item *)a)->name, ((const struct hf_item *)b)->name);
}

/* A name, two numbers: how many bytes of them are kept, so that HF_VALUE_MAX can be held against
 * it. */
static size_t item_size(enum hf_register_type type, const struct hf_item *i)
{
    size_t numbers = type == HF_TYPE_UNION ? 0 : type == HF_TYPE_UPDOWN ? 16 : 8;
    return 2 + i->name.size + numbers;
}

/* Sorted items: within every limit, and with a total that can be told? */
static bool items_fit(enum hf_register_type type, const struct hf_item *items, size_t count,
                      int64_t *total)
{
    uint64_t up = 0, down = 0;
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        bool ups = counts_up(type), downs = type == HF_TYPE_UPDOWN;
        if (!judge_name_valid(items[i].name) ||
            (i > 0 && order(items[i - 1].name, items[i].name) == 0) ||
            (ups && items[i].up > INT64_MAX) || (downs && items[i].down > INT64_MAX))
            return false;
        size += item_size(type, &items[i]);
        up += ups && type != HF_TYPE_VECTOR ? items[i].up : 0;
        down += downs ? items[i].down : 0;
        if (up > INT64_MAX || down > INT64_MAX)
            return false;
    }
    *total = (int64_t)up - (int64_t)down;
    return count <= HF_MERGE_ITEMS_MAX && size <= HF_VALUE_MAX;
}

bool judge_value_valid(const struct hf_value *v)
{
    if (v->type == HF_TYPE_MAX || v->type == HF_TYPE_MIN || v->type == HF_TYPE_OR)
        return true;
    if (v->type == HF_TYPE_LWW)
        return judge_name_valid(v->node) && 10 + v->node.size + v->bytes.size <= HF_VALUE_MAX;
    return has_items(v->type) && v->item_count <= HF_MERGE_ITEMS_MAX;
}

static bool join_items(struct judge *j, const struct hf_value *old, const struct hf_value *value,
                       struct hf_value *out)
{
    enum hf_register_type type = value->type;
    size_t count = value->item_count, old_count = old ? old->item_count : 0, n = 0;
    int64_t total;
    struct hf_item *given = judge_take(j, (count + 1) * sizeof *given);
    struct hf_item *items = judge_take(j, (count + old_count + 1) * sizeof *items);
    if (count > 0)
        memcpy(given, value->items, count * sizeof *given);
    qsort(given, count, sizeof *given, by_name);
    if (!items_fit(type, given, count, &total))
        return false;
    for (size_t a = 0, b = 0; a < old_count || b < count; n++) {
        int c = a == old_count ? 1 : b == count ? -1 : order(old->items[a].name, given[b].name);
        struct hf_item i = c <= 0 ? old->items[a] : given[b];
        if (c == 0) {
            i.up = i.up > given[b].up ? i.up : given[b].up;
            i.down = i.down > given[b].down ? i.down : given[b].down;
        }
        if (!counts_up(type))
            i.up = 0;
        if (type != HF_TYPE_UPDOWN)
            i.down = 0;
        items[n] = i;
        a += c <= 0;
        b += c >= 0;
    }
    *out = (struct hf_value){ .type = type, .items = items, .item_count = n };
    if (!items_fit(type, items, n, &total))
        return false;
    if (type == HF_TYPE_COUNTER || type == HF_TYPE_UPDOWN)
        out->number = total;
    return true;
}

/* Is a the greater of the two? By time, then by node, then by what was written. */
static bool later(const struct hf_value *a, const struct hf_value *b)
{
    if (a->timestamp != b->timestamp)
        return a->timestamp > b->timestamp;
    int c = order(a->node, b->node);
    return c ? c > 0 : order(a->bytes, b->bytes) > 0;
}

bool judge_join(struct judge *j, const struct hf_value *old, const struct hf_value *value,
                struct hf_value *out)
{
    enum hf_register_type type = value->type;
    if (has_items(type))
        return join_items(j, old, value, out);
    const struct hf_value *won = value;
    if (old && ((type == HF_TYPE_MAX && old->number > value->number) ||
                (type == HF_TYPE_MIN && old->number < value->number) ||
                (type == HF_TYPE_OR && old->flag) || (type == HF_TYPE_LWW && later(old, value))))
        won = old;
    *out = (struct hf_value){ .type = type };
    if (type == HF_TYPE_LWW) {
        out->timestamp = won->timestamp;
        out->node = won->node;
        out->bytes = won->bytes;
    } else if (type == HF_TYPE_OR) {
        out->flag = won->flag;
    } else {
        out->number = won->number;
    }
    return true;
}

bool judge_value_same(const struct hf_value *a, const struct hf_value *b)
{
    if (a->type != b->type || a->item_count != b->item_count)
        return false;
    for (size_t i = 0; i < a->item_count; i++)
        if (!judge_bytes_equal(a->items[i].name, b->items[i].name) ||
            a->items[i].up != b->items[i].up || a->items[i].down != b->items[i].down)
            return false;
    switch (a->type) {
    case HF_TYPE_MAX:
    case HF_TYPE_MIN:
    case HF_TYPE_COUNTER:
    case HF_TYPE_DELETED:
    case HF_TYPE_UPDOWN: return a->number == b->number;
    case HF_TYPE_OR: return a->flag == b->flag;
    case HF_TYPE_LWW:
        return a->timestamp == b->timestamp && judge_bytes_equal(a->node, b->node) &&
               judge_bytes_equal(a->bytes, b->bytes);
    case HF_TYPE_PLAIN: return judge_bytes_equal(a->bytes, b->bytes);
    default: return true;
    }
}

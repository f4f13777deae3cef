/* Registers: the JSON of a value depends on its merge type. */
#include "api/encode.h"
#include "base/text.h"
#include "json/stored.h"

static void items_add(struct hf_json *j, const struct hf_value *value)
{
    hf_json_object(j);
    for (size_t i = 0; i < value->item_count; i++) {
        const struct hf_item *item = &value->items[i];
        hf_json_name_bytes(j, item->name);
        if (value->type != HF_TYPE_UPDOWN) {
            hf_json_uint(j, item->up);
            continue;
        }
        hf_json_object(j);
        hf_json_name(j, "up");
        hf_json_uint(j, item->up);
        hf_json_name(j, "down");
        hf_json_uint(j, item->down);
        hf_json_object_end(j);
    }
    hf_json_object_end(j);
}

static void union_add(struct hf_json *j, const struct hf_value *value)
{
    hf_json_array(j);
    for (size_t i = 0; i < value->item_count; i++)
        hf_json_bytes(j, value->items[i].name);
    hf_json_array_end(j);
}

static void lww_add(struct hf_json *j, const struct hf_value *value)
{
    hf_json_object(j);
    hf_json_name(j, "value");
    hf_json_stored(j, value->bytes);
    hf_json_name(j, "timestamp");
    hf_json_int(j, value->timestamp);
    hf_json_name(j, "node");
    hf_json_bytes(j, value->node);
    hf_json_object_end(j);
}

void hf_api_value(struct hf_json *j, const struct hf_value *value)
{
    switch (value->type) {
    case HF_TYPE_PLAIN: hf_json_stored(j, value->bytes); return;
    case HF_TYPE_MAX:
    case HF_TYPE_MIN: hf_json_int(j, value->number); return;
    case HF_TYPE_OR: hf_json_bool(j, value->flag); return;
    case HF_TYPE_UNION: union_add(j, value); return;
    case HF_TYPE_LWW: lww_add(j, value); return;
    case HF_TYPE_VECTOR:
    case HF_TYPE_COUNTER:
    case HF_TYPE_UPDOWN: items_add(j, value); return;
    case HF_TYPE_DELETED: break;
    }
    hf_json_null(j);
}

/* A client can send a counter's value back in a merge, so the sum is a separate member, `total`. */
void hf_api_register(struct hf_json *j, const struct hf_register *reg)
{
    const char *type = hf_register_type_name(reg->value.type);
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_bytes(j, reg->name);
    hf_json_name(j, "type");
    hf_json_text(j, type ? type : "unknown");
    hf_json_name(j, "value");
    hf_api_value(j, &reg->value);
    if (reg->value.type == HF_TYPE_COUNTER || reg->value.type == HF_TYPE_UPDOWN) {
        hf_json_name(j, "total");
        hf_json_int(j, reg->value.number);
    }
    hf_json_name(j, "version");
    hf_json_uint(j, reg->version);
    hf_json_name(j, "fence");
    hf_json_uint(j, reg->fence);
    if (reg->require_fence) {
        hf_json_name(j, "require_fence");
        hf_json_bool(j, true);
    }
    hf_json_object_end(j);
}

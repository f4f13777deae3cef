/* merge.h: operations that are idempotent by their mathematics.
 *
 * Each type is a join-semilattice: merging is idempotent, commutative, associative, and the value
 * only moves up. So a merge needs no key: a duplicate, late or reordered merge changes nothing.
 *
 * The stored form of a value (numbers little-endian), the same bytes for the same value:
 *     MAX, MIN         i64
 *     OR               u8, 0 or 1
 *     UNION            items, sorted by name, each: u16 length, name
 *     VECTOR, COUNTER  items, sorted by name, each: u16 length, name, u64
 *     UPDOWN           items, sorted by name, each: u16 length, name, u64 up, u64 down
 *     LWW              i64 timestamp, u16 length of node, node, bytes
 *     PLAIN            bytes
 *     DELETED          i64, see fence.h */
#ifndef HF_CORE_MERGE_H
#define HF_CORE_MERGE_H

#include "core/core.h"

/* hf_merge_encode: the stored form of `value`, made in the plan's scratch. HF_INVALID_REQUEST:
 * unknown type or HF_TYPE_PLAIN, more than HF_MERGE_ITEMS_MAX items, a name or node that is empty,
 * too long, not UTF-8 or a duplicate, a number above INT64_MAX, a sum of all items that does not
 * fit into int64_t, or a form longer than HF_VALUE_MAX. Items may come in any order. */
enum hf_status hf_merge_encode(const struct hf_value *value, struct hf_plan *plan,
                               struct hf_bytes *out);

/* hf_merge_join: the least value above both `a` and `b`, stored forms of `type`, made in scratch.
 * HF_INVALID_REQUEST if the joined value exceeds one of the limits above. */
enum hf_status hf_merge_join(enum hf_register_type type, struct hf_bytes a, struct hf_bytes b,
                             struct hf_plan *plan, struct hf_bytes *out);

/* hf_merge_decode: fill the members of struct hf_value from the stored form, for every type. items:
 * out, room for `items_max`; names are borrowed from `form`. False if the form is not well-formed
 * or has more items. */
bool hf_merge_decode(enum hf_register_type type, struct hf_bytes form, struct hf_item *items,
                     size_t items_max, struct hf_value *out);

/* The number of items in the stored form (0 for types without items). */
size_t hf_merge_count(enum hf_register_type type, struct hf_bytes form);

#endif

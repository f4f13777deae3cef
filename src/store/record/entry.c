#include "store/record/entry.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "core/action.h"
#include "store/record/sound.h"

void hf_entry_head_fill(const struct hf_request *request, const uint8_t digest[HF_DIGEST_SIZE],
                        const struct hf_plan *plan, hf_time now, struct hf_entry_head *out)
{
    bool by_sequence = plan->remember == HF_REMEMBER_SEQUENCE;
    struct hf_bytes key = by_sequence ? request->client : request->key;
    *out = (struct hf_entry_head){ .action = request->action,
                                   .status = plan->answer.status,
                                   .remember = plan->remember,
                                   .tenant = request->tenant,
                                   .key = plan->remember == HF_REMEMBER_NOT ? hf_mem(NULL, 0) : key,
                                   .recorded_at = now,
                                   .expires_at = plan->token.expires_at,
                                   .sequence = by_sequence ? request->sequence : 0 };
    memcpy(out->digest, digest, HF_DIGEST_SIZE);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t hf_entry_need(const struct hf_request *request)
{
    enum { FIXED = 4096 + HF_TENANT_MAX + HF_TOKEN_MAX + 2 * HF_NAME_MAX };
    const struct hf_action_info *action = hf_action_of(request->action);
    size_t payload = hf_action_bytes(request, action->payload).size;
    size_t why = request->invalid ? least(request->invalid->why.size, HF_WHY_MAX) : 0;
    return FIXED + action->record_max + least(payload, action->payload_max) + why;
}

size_t hf_entry_size(const struct hf_entry_head *head, const struct hf_plan *plan)
{
    size_t size = head->remember == HF_REMEMBER_NOT        ? 24
                  : head->remember == HF_REMEMBER_SEQUENCE ? 72
                                                           : 64;
    size += head->tenant.size + head->key.size;
    if (head->remember != HF_REMEMBER_NOT && plan->answer.kind == HF_RECORD_VALUE)
        size += 5 + plan->answer.value.size;
    for (size_t i = 0; i < plan->row_count; i++)
        size += 6 + hf_image_size(&plan->rows[i]);
    return size;
}

size_t hf_entry_encode(const struct hf_entry_head *head, const struct hf_plan *plan,
                       unsigned char *out)
{
    bool remembered = head->remember != HF_REMEMBER_NOT;
    out[8] = (unsigned char)head->action;
    out[9] = (unsigned char)head->status;
    out[10] = (unsigned char)head->remember;
    out[11] = (unsigned char)plan->row_count;
    out[13] = (unsigned char)head->tenant.size;
    hf_put16(out + 14, (uint16_t)head->key.size);
    hf_put64(out + 16, (uint64_t)head->recorded_at);
    size_t at = 24;
    if (remembered) {
        hf_put64(out + 24, (uint64_t)head->expires_at);
        memcpy(out + 32, head->digest, HF_DIGEST_SIZE);
        at = 64;
    }
    if (head->remember == HF_REMEMBER_SEQUENCE) {
        hf_put64(out + at, head->sequence);
        at += 8;
    }
    if (head->tenant.size > 0)
        memcpy(out + at, head->tenant.data, head->tenant.size);
    at += head->tenant.size;
    if (head->key.size > 0)
        memcpy(out + at, head->key.data, head->key.size);
    at += head->key.size;

    unsigned char answer = HF_ANSWER_STATUS;
    if (remembered && plan->answer.kind == HF_RECORD_VALUE) {
        answer = HF_ANSWER_INLINE;
        out[at] = HF_RECORD_VALUE;
        hf_put32(out + at + 1, (uint32_t)plan->answer.value.size);
        if (plan->answer.value.size > 0)
            memcpy(out + at + 5, plan->answer.value.data, plan->answer.value.size);
        at += 5 + plan->answer.value.size;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct hf_row *row = &plan->rows[i];
        size_t size = hf_image_encode(row, out + at + 6);
        out[at] = (unsigned char)row->kind;
        out[at + 1] = row->erase ? 1 : 0;
        hf_put32(out + at + 2, (uint32_t)size);
        at += 6 + size;
        /* The answer of a keyed action is the row that it made: the last of its kind, after the
         * holds that expired in the same request. */
        if (remembered &&
            ((plan->answer.kind == HF_RECORD_HOLD && row->kind == HF_ROW_HOLD) ||
             (plan->answer.kind == HF_RECORD_LEASE && row->kind == HF_ROW_LEASE) ||
             (plan->answer.kind == HF_RECORD_REGISTER && row->kind == HF_ROW_REGISTER)))
            answer = (unsigned char)i;
    }
    HF_ASSERT(!remembered || plan->answer.kind == HF_NO_RECORD || answer != HF_ANSWER_STATUS);
    out[12] = answer;
    hf_put32(out, (uint32_t)at);
    hf_put32(out + 4, hf_crc32c(0, out + 8, at - 8));
    return at;
}

bool hf_entry_decode(const unsigned char *in, size_t room, struct hf_entry_view *out)
{
    if (!hf_entry_parse(in, room, out))
        return false;
    return hf_get32(in + 4) == hf_crc32c(0, in + 8, out->size - 8);
}

bool hf_entry_parse(const unsigned char *in, size_t room, struct hf_entry_view *out)
{
    if (room < 24)
        return false;
    out->size = hf_get32(in);
    if (out->size < 24 || out->size > room)
        return false;
    struct hf_entry_head *head = &out->head;
    head->action = in[8];
    head->status = in[9];
    head->remember = in[10];
    out->row_count = in[11];
    out->answer = in[12];
    size_t tenant = in[13];
    size_t key = hf_get16(in + 14);
    head->recorded_at = (hf_time)hf_get64(in + 16);
    size_t at = head->remember == HF_REMEMBER_NOT   ? 24
                : head->remember == HF_REMEMBER_KEY ? 64
                                                    : 72;
    if (at + tenant + key > out->size)
        return false;
    if (at >= 64) {
        head->expires_at = (hf_time)hf_get64(in + 24);
        memcpy(head->digest, in + 32, HF_DIGEST_SIZE);
    }
    head->sequence = at == 72 ? hf_get64(in + 64) : 0;
    head->tenant = hf_mem(in + at, tenant);
    head->key = hf_mem(in + at + tenant, key);
    at += tenant + key;
    out->inline_kind = HF_NO_RECORD;
    if (out->answer == HF_ANSWER_INLINE) {
        if (out->size - at < 5 || hf_get32(in + at + 1) > out->size - at - 5)
            return false;
        out->inline_kind = in[at];
        out->inline_answer = hf_mem(in + at + 5, hf_get32(in + at + 1));
        at += 5 + out->inline_answer.size;
    }
    out->rows = hf_mem(in + at, out->size - at);
    return true;
}

bool hf_image_next(struct hf_bytes *rows, struct hf_image *image)
{
    const unsigned char *p = rows->data;
    if (rows->size < 6)
        return false;
    size_t size = hf_get32(p + 2);
    if (size > rows->size - 6)
        return false;
    image->kind = p[0];
    image->erase = (p[1] & 1) != 0;
    image->bytes = hf_mem(p + 6, size);
    *rows = hf_mem(p + 6 + size, rows->size - 6 - size);
    return true;
}

/* Decode the row that is the answer. */
static bool row_at(const struct hf_entry_view *entry, struct hf_row *row)
{
    struct hf_bytes rows = entry->rows;
    struct hf_image image;
    for (unsigned i = 0; hf_image_next(&rows, &image); i++)
        if (i == entry->answer)
            return hf_image_decode(&image, entry->head.tenant, row) && hf_row_sound(row);
    return false;
}

bool hf_entry_answer(const struct hf_entry_view *entry, struct hf_answer *answer)
{
    *answer = (struct hf_answer){ .status = entry->head.status, .kind = HF_NO_RECORD };
    answer->refund =
        entry->head.action == HF_CONFIRM_LATE && entry->head.status == HF_WINDOW_ELAPSED;
    if (entry->answer == HF_ANSWER_STATUS)
        return true;
    if (entry->answer == HF_ANSWER_INLINE) {
        answer->kind = HF_RECORD_VALUE;
        answer->value = entry->inline_answer;
        return entry->inline_kind == HF_RECORD_VALUE;
    }
    struct hf_row row;
    if (!row_at(entry, &row))
        return false;
    switch (row.kind) {
    case HF_ROW_HOLD:
        answer->kind = HF_RECORD_HOLD;
        answer->hold = row.hold;
        return true;
    case HF_ROW_LEASE:
        answer->kind = HF_RECORD_LEASE;
        answer->lease = row.lease;
        return true;
    case HF_ROW_REGISTER:
        answer->kind = HF_RECORD_REGISTER;
        answer->reg = row.reg;
        return true;
    default: return false;
    }
}

/* Read the members of a JSON object into the fields of a record, by a table. */
#include "api/decode.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"
#include "base/text.h"
#include "client/inner.h"
#include "json/stored.h"

#include <string.h>

static bool id_read(struct hf_reader *r, char *out)
{
    struct hf_bytes text;
    uint8_t raw[HF_ID_RAW];
    size_t at = r->at;
    if (!hf_reader_string(r, &text))
        return false;
    if (!hf_id_pack(text, raw))
        return hf_reader_refuse(r, at, "the id of a hold");
    memcpy(out, text.data, HF_ID_SIZE - 1);
    out[HF_ID_SIZE - 1] = '\0';
    return true;
}

static bool digest_read(struct hf_reader *r, uint8_t *out)
{
    struct hf_bytes text;
    size_t at = r->at;
    return hf_reader_string(r, &text) &&
           (hf_api_digest(text, out) || hf_reader_refuse(r, at, "64 hexadecimal digits"));
}

static bool time_read(struct hf_reader *r, hf_time *out)
{
    struct hf_bytes text;
    size_t at = r->at;
    return hf_reader_string(r, &text) &&
           (hf_time_parse(text, out) || hf_reader_refuse(r, at, "a time"));
}

static bool duration_read(struct hf_reader *r, int64_t *out)
{
    struct hf_bytes text;
    size_t at = r->at;
    return hf_reader_string(r, &text) &&
           (hf_duration_parse(text, out) || hf_reader_refuse(r, at, "a duration"));
}

static bool u32_read(struct hf_reader *r, uint32_t *out)
{
    uint64_t number;
    size_t at = r->at;
    if (!hf_reader_uint(r, &number))
        return false;
    *out = (uint32_t)number;
    return number <= UINT32_MAX || hf_reader_refuse(r, at, "a whole number below 4294967296");
}

static bool named_read(struct hf_reader *r, const struct hf_member *m, unsigned *out)
{
    enum { NAMES_MAX = 16 };
    struct hf_bytes text;
    size_t at = r->at;
    if (!hf_reader_string(r, &text))
        return false;
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        const char *name = m->name_of(i);
        if (name && hf_bytes_equal(hf_str(name), text)) {
            *out = i;
            return true;
        }
    }
    return hf_reader_refuse(r, at,
                            "a word that this program knows (a newer program may know "
                            "more)");
}

struct list {
    unsigned items[HF_MATCH_MAX];
    uint32_t count;
};

static bool list_read(struct hf_reader *r, const struct hf_member *m, struct list *out)
{
    out->count = 0;
    if (!hf_reader_array(r))
        return false;
    while (hf_reader_element(r)) {
        if (out->count == HF_MATCH_MAX)
            return hf_reader_fail(r, "expected at most %d in \"%s\", got more", HF_MATCH_MAX,
                                  m->name);
        if (!named_read(r, m, &out->items[out->count++]))
            return false;
    }
    return !r->failed;
}

static bool value_read(struct hf_reader *r, const struct hf_member *m, void *record)
{
    void *field = (char *)record + m->offset;
    switch (m->type) {
    case HF_MEMBER_TEXT: return hf_reader_string(r, field);
    case HF_MEMBER_STORED: return hf_stored_read(r, field);
    case HF_MEMBER_JSON: return hf_reader_compact(r, field);
    case HF_MEMBER_ID: return id_read(r, field);
    case HF_MEMBER_DIGEST: return digest_read(r, field);
    case HF_MEMBER_TIME: return time_read(r, field);
    case HF_MEMBER_DURATION: return duration_read(r, field);
    case HF_MEMBER_U32: return u32_read(r, field);
    case HF_MEMBER_U64: return hf_reader_uint(r, field);
    case HF_MEMBER_I64: return hf_reader_int(r, field);
    case HF_MEMBER_FLAG: return hf_reader_bool(r, field);
    case HF_MEMBER_NAMED: return named_read(r, m, field);
    case HF_MEMBER_LIST: return list_read(r, m, field);
    }
    return false;
}

bool hf_member_read(struct hf_reader *r, const struct hf_member *members, size_t count,
                    void *record, unsigned *given)
{
    struct hf_bytes name;
    HF_ASSERT(count <= HF_MEMBERS_MAX);
    *given = 0;
    if (!hf_reader_object(r))
        return false;
    while (hf_reader_member(r, &name)) {
        size_t i = 0;
        while (i < count && !hf_bytes_equal(hf_str(members[i].name), name))
            i++;
        (void)hf_reader_peek(r); /* skip white space before the value */
        if (i == count ? !hf_reader_skip(r) : !value_read(r, &members[i], record))
            return false;
        *given |= i < count ? 1U << i : 0;
    }
    for (size_t i = 0; i < count && !r->failed; i++)
        if (members[i].required && !(*given >> i & 1))
            return hf_reader_fail(r, "the member \"%s\" is missing", members[i].name);
    return !r->failed;
}

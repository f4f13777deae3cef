/* One field of a body: found by its name, read by its type. */
#include "api/decode_part.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/text.h"
#include "core/action.h"
#include "json/canonical.h"
#include "json/stored.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define A_DURATION "a duration such as \"15m\" or a number of seconds, at most 3650d"

enum hf_status hf_decode_refuse(struct hf_api_fault *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->detail, sizeof why->detail, format, args);
    va_end(args);
    return HF_INVALID_REQUEST;
}

enum hf_status hf_decode_failed(struct hf_decoding *d, const char *what)
{
    (void)hf_decode_refuse(d->why, "%s: %s.", what, d->r.error);
    return d->r.no_memory ? HF_NO_MEMORY : HF_INVALID_REQUEST;
}

/* ---- Flaws ---- */

/* The name of a parameter in the digest. */
static const char *digest_name(enum hf_action action, const char *name, uint16_t at)
{
    const struct hf_digest_field *field = hf_action_of(action)->digest;
    for (; at && field && field->name; field++)
        if (field->at == at)
            return field->name;
    return name;
}

enum hf_status hf_decode_flaw(struct hf_decoding *d, const char *name, uint16_t at,
                              struct hf_bytes sent)
{
    struct hf_flaw flaw = { digest_name(d->call->action, name, at), sent };
    size_t i = d->flaw_count;
    if (!d->call->key)
        return HF_INVALID_REQUEST;
    HF_ASSERT(i < sizeof d->flaws / sizeof *d->flaws);
    if (i == 0)
        d->flaw_why = *d->why;
    for (; i > 0 && strcmp(d->flaws[i - 1].name, flaw.name) > 0; i--)
        d->flaws[i] = d->flaws[i - 1];
    d->flaws[i] = flaw;
    d->flaw_count++;
    return HF_OK;
}

enum hf_status hf_decode_flawed(struct hf_decoding *d, const char *name, uint16_t at,
                                const struct hf_reader_place *place)
{
    struct hf_bytes sent;
    char what[HF_READER_EXCERPT];
    (void)hf_reader_excerpt(hf_str(name), what);
    enum hf_status status = hf_decode_failed(d, what);
    if (status != HF_INVALID_REQUEST || !d->call->key)
        return status;
    hf_reader_back(&d->r, place);
    if (hf_reader_canonical(&d->r, &sent))
        return hf_decode_flaw(d, name, at, sent);
    return d->r.no_memory ? HF_NO_MEMORY : status;
}

enum hf_status hf_decode_flaw_text(struct hf_decoding *d, const char *name, uint16_t at,
                                   struct hf_bytes text)
{
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    hf_json_bytes(&j, text);
    char *sent = out.failed ? NULL : hf_arena_take(d->r.arena, out.size);
    size_t size = out.size;
    if (sent)
        memcpy(sent, out.data, size);
    hf_buffer_free(&out);
    return sent ? hf_decode_flaw(d, name, at, hf_mem(sent, size)) : HF_NO_MEMORY;
}

enum hf_status hf_decode_name(struct hf_api_fault *why, const char *what, struct hf_bytes name)
{
    if (name.size > 0 && memchr(name.data, '\0', name.size))
        return hf_decode_refuse(why, "%s: expected text without NUL.", what);
    if (!hf_utf8_valid(name))
        return hf_decode_refuse(why, "%s: expected UTF-8.", what);
    return HF_OK;
}

int hf_decode_field_of(const struct hf_call *call, struct hf_bytes name)
{
    char first = name.size > 0 ? *(const char *)name.data : '\0';
    for (size_t i = 0; i < call->field_count; i++)
        if (*call->fields[i].name == first && hf_bytes_equal(hf_str(call->fields[i].name), name))
            return (int)i;
    return -1;
}

const struct hf_got *hf_decode_got(const struct hf_decoding *d, const char *name)
{
    int index = hf_decode_field_of(d->call, hf_str(name));
    HF_ASSERT(index >= 0);
    return &d->got[index];
}

int hf_decode_choice(const char *choices, struct hf_bytes word)
{
    for (int i = 0; *choices; i++) {
        size_t size = strcspn(choices, "|");
        if (hf_bytes_equal(hf_mem(choices, size), word))
            return i;
        choices += size + (choices[size] == '|');
    }
    return -1;
}

/* ---- Descriptions of expected values ---- */

struct hf_decode_words hf_decode_expected(const struct hf_call_field *field)
{
    struct hf_decode_words w;
    const char *what = "a string";
    switch (field->type) {
    case HF_TYPE_OF_TEXT: break;
    case HF_TYPE_OF_DURATION: what = A_DURATION; break;
    case HF_TYPE_OF_NUMBER: what = "a whole number"; break;
    case HF_TYPE_OF_FLAG: what = "true or false"; break;
    case HF_TYPE_OF_JSON: what = "any JSON"; break;
    case HF_TYPE_OF_MATCH: what = "at most 4, in an array, of "; break;
    case HF_TYPE_OF_CHOICE: what = "one of "; break;
    case HF_TYPE_OF_TIME: what = "a time such as 2026-11-15T21:39:57Z"; break;
    }
    size_t at = (size_t)snprintf(w.text, sizeof w.text, "%s", what);
    if (field->most > 0)
        at += (size_t)snprintf(w.text + at, sizeof w.text - at, " from 1 to %" PRIu32, field->most);
    for (const char *p = field->choices ? field->choices : ""; *p && at + 3 < sizeof w.text; p++) {
        if (*p == '|')
            w.text[at++] = ',';
        w.text[at++] = *p == '|' ? ' ' : *p;
    }
    w.text[at] = '\0';
    return w;
}

enum hf_status hf_decode_unknown(struct hf_decoding *d, const char *what, struct hf_bytes name,
                                 size_t count)
{
    char list[120] = "none", text[HF_READER_EXCERPT];
    size_t at = 0;
    if (d->line)
        at = (size_t)snprintf(list, sizeof list, "op, key%s%s", d->param ? ", " : "",
                              d->param ? d->param : "");
    for (size_t i = 0; i < count && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "",
                               d->call->fields[i].name);
    return hf_decode_refuse(d->why, "Unknown %s \"%s\". This call takes %s.", what,
                            hf_reader_excerpt(name, text), list);
}

enum hf_status hf_decode_complete(struct hf_decoding *d)
{
    for (size_t i = 0; i < d->call->field_count; i++) {
        const struct hf_call_field *field = &d->call->fields[i];
        if (!field->required || d->got[i].given)
            continue;
        (void)hf_decode_refuse(d->why, "%s: missing, expected %s.", field->name,
                               hf_decode_expected(field).text);
        enum hf_status status = hf_decode_flaw(d, field->name, field->at, hf_mem(NULL, 0));
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* ---- Reading ---- */

/* 1.0 and 1e0 are the same number as 1. */
static bool number_text(struct hf_reader *r, struct hf_bytes *text)
{
    struct hf_reader_place place;
    hf_reader_here(r, &place);
    if (!hf_reader_number(r, text))
        return false;
    for (size_t i = 0; i < text->size; i++)
        if (!strchr("0123456789", ((const char *)text->data)[i])) {
            hf_reader_back(r, &place);
            return hf_reader_canonical(r, text);
        }
    return true;
}

bool hf_decode_whole(struct hf_reader *r, uint64_t *number)
{
    static const char expected[] = "a whole number from 0 to 18446744073709551615";
    struct hf_bytes text;
    size_t at = r->at;
    if (hf_reader_peek(r) != HF_READ_NUMBER)
        return hf_reader_refuse(r, at, expected);
    return number_text(r, &text) &&
           (hf_number_parse(text, number) || hf_reader_refuse(r, at, expected));
}

/* Parse seconds, a JSON number with up to three decimals, to milliseconds. Negative and too long
 * durations are accepted here: the core refuses them, and stores that with the key. */
static bool seconds_read(struct hf_bytes text, int64_t *ms)
{
    const char *p = text.data;
    bool minus = p[0] == '-';
    if (minus)
        text = hf_mem(++p, text.size - 1);
    const char *point = memchr(p, '.', text.size);
    size_t whole_size = point ? (size_t)(point - p) : text.size,
           decimals = point ? text.size - whole_size - 1 : 0;
    uint64_t whole, part = 0;
    if (!hf_number_parse(hf_mem(p, whole_size), &whole) || decimals > 3)
        return false;
    if (point && !hf_number_parse(hf_mem(point + 1, decimals), &part))
        return false;
    for (size_t i = decimals; i < 3; i++)
        part *= 10;
    if (whole > (INT64_MAX - part) / 1000)
        return false;
    *ms = (int64_t)(whole * 1000 + part) * (minus ? -1 : 1);
    return true;
}

/* In the library, 0 means that an optional duration was not given, so a given 0 is refused here. */
static bool duration_read(struct hf_reader *r, const struct hf_call_field *field, int64_t *ms)
{
    struct hf_bytes text;
    enum hf_reader_type type = hf_reader_peek(r);
    size_t at = r->at;
    bool fits = false;
    if (type == HF_READ_STRING) {
        if (!hf_reader_string(r, &text))
            return false;
        fits = hf_duration_read(text, ms);
    } else if (type == HF_READ_NUMBER) {
        struct hf_reader_place place;
        hf_reader_here(r, &place);
        if (!hf_reader_number(r, &text))
            return false;
        fits = seconds_read(text, ms);
        if (!fits) { /* 1e3 */
            hf_reader_back(r, &place);
            if (!hf_reader_canonical(r, &text))
                return false;
            fits = seconds_read(text, ms);
        }
    }
    if (!fits)
        return hf_reader_refuse(r, at, A_DURATION);
    return field->required || *ms != 0 ||
           hf_reader_refuse(r, at, "a duration of at least 1ms, or nothing");
}

/* A capacity has its own bounds, so that every error in it gets the same message. */
static bool number_read(struct hf_reader *r, const struct hf_call_field *field, uint64_t *number)
{
    struct hf_bytes text;
    enum hf_reader_type type = hf_reader_peek(r);
    size_t at = r->at;
    if (field->most == 0)
        return hf_decode_whole(r, number);
    if (type == HF_READ_NUMBER && !number_text(r, &text))
        return false;
    if (type == HF_READ_NUMBER && hf_number_parse(text, number) && *number >= 1 &&
        *number <= field->most)
        return true;
    return hf_reader_refuse(r, at, hf_decode_expected(field).text);
}

static bool choice_read(struct hf_reader *r, const struct hf_call_field *field, uint64_t *which)
{
    struct hf_bytes text;
    size_t at = r->at;
    int index = -1;
    if (hf_reader_peek(r) == HF_READ_STRING) {
        if (!hf_reader_string(r, &text))
            return false;
        index = hf_decode_choice(field->choices, text);
    }
    *which = (uint64_t)index;
    return index >= 0 || hf_reader_refuse(r, at, hf_decode_expected(field).text);
}

/* Add a step of a match rule. False if the word is unknown, or there are too many. */
static bool match_add(const struct hf_call_field *field, struct hf_bytes word, struct hf_got *got)
{
    int index = hf_decode_choice(field->choices, word);
    if (index < 0 || got->number == HF_MATCH_MAX)
        return false;
    got->match[got->number++] = (uint8_t)index;
    return true;
}

static bool match_split(const struct hf_call_field *field, struct hf_bytes text, struct hf_got *got)
{
    const char *p = text.data, *end = p + text.size;
    for (;;) {
        const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        if (!match_add(field, hf_mem(p, (size_t)((comma ? comma : end) - p)), got))
            return false;
        if (!comma)
            return true;
        p = comma + 1;
    }
}

static bool match_read(struct hf_reader *r, const struct hf_call_field *field, struct hf_got *got)
{
    struct hf_bytes text;
    enum hf_reader_type type = hf_reader_peek(r);
    size_t at = r->at;
    if (type == HF_READ_STRING) {
        if (!hf_reader_string(r, &text))
            return false;
        return match_split(field, text, got) ||
               hf_reader_refuse(r, at, hf_decode_expected(field).text);
    }
    if (type != HF_READ_ARRAY)
        return hf_reader_refuse(r, at, hf_decode_expected(field).text);
    (void)hf_reader_array(r);
    while (hf_reader_element(r)) {
        (void)hf_reader_peek(r);
        at = r->at;
        if (!hf_reader_string(r, &text))
            return false;
        if (!match_add(field, text, got))
            return hf_reader_refuse(r, at, hf_decode_expected(field).text);
    }
    return !r->failed;
}

/* The call decides what happens to a JSON value: a payload is hashed, a merge is read when its type
 * is known, and all others are stored. */
static bool json_read(struct hf_reader *r, enum hf_action action, struct hf_got *got)
{
    if (action == HF_BEGIN)
        return hf_reader_canonical(r, &got->text);
    if (action != HF_MERGE)
        return hf_stored_read(r, &got->text);
    (void)hf_reader_peek(r);
    got->at = r->at;
    if (!hf_reader_skip(r))
        return false;
    got->end = r->at;
    return true;
}

static bool text_read(struct hf_reader *r, const struct hf_call_field *field, struct hf_bytes *out)
{
    if (!hf_reader_string(r, out))
        return false;
    return !field->is_name || out->size == 0 || !memchr(out->data, '\0', out->size) ||
           hf_reader_fail(r, "expected text without NUL");
}

enum hf_status hf_decode_field(struct hf_decoding *d, size_t index)
{
    const struct hf_call_field *field = &d->call->fields[index];
    struct hf_got *got = &d->got[index];
    struct hf_reader *r = &d->r;
    struct hf_reader_place place;
    bool ok = false;
    hf_reader_here(r, &place);
    switch (field->type) {
    case HF_TYPE_OF_TIME: /* only queries have times, as text */
    case HF_TYPE_OF_TEXT: ok = text_read(r, field, &got->text); break;
    case HF_TYPE_OF_DURATION: ok = duration_read(r, field, &got->ms); break;
    case HF_TYPE_OF_NUMBER: ok = number_read(r, field, &got->number); break;
    case HF_TYPE_OF_FLAG: ok = hf_reader_bool(r, &got->flag); break;
    case HF_TYPE_OF_JSON: ok = json_read(r, d->call->action, got); break;
    case HF_TYPE_OF_MATCH: ok = match_read(r, field, got); break;
    case HF_TYPE_OF_CHOICE: ok = choice_read(r, field, &got->number); break;
    }
    got->given = true;
    got->flawed = !ok;
    return ok ? HF_OK : hf_decode_flawed(d, field->name, field->at, &place);
}

/* ---- Storing the values ---- */

static void match_put(const struct hf_got *got, struct hf_request *out)
{
    out->set_guard.match_count = (uint32_t)got->number;
    for (size_t i = 0; i < out->set_guard.match_count; i++)
        out->set_guard.match[i] = (enum hf_match)(HF_MATCH_EXACT + got->match[i]);
}

static void value_put(const struct hf_call_field *field, const struct hf_got *got, void *out)
{
    switch (field->type) {
    case HF_TYPE_OF_JSON:
    case HF_TYPE_OF_TEXT: memcpy((char *)out + field->at, &got->text, sizeof got->text); break;
    case HF_TYPE_OF_TIME:
    case HF_TYPE_OF_DURATION: hf_call_number_set(field, out, (uint64_t)got->ms); break;
    case HF_TYPE_OF_NUMBER: hf_call_number_set(field, out, got->number); break;
    case HF_TYPE_OF_FLAG: hf_call_number_set(field, out, got->flag ? field->yes : field->no); break;
    case HF_TYPE_OF_CHOICE: hf_call_number_set(field, out, field->no + got->number); break;
    case HF_TYPE_OF_MATCH: match_put(got, out); break;
    }
    if (field->has)
        *(bool *)((char *)out + field->has) = true;
}

void hf_decode_put(const struct hf_decoding *d, void *out)
{
    for (size_t i = 0; i < d->call->field_count; i++) {
        const struct hf_call_field *field = &d->call->fields[i];
        if (!d->got[i].given || d->got[i].flawed)
            continue;
        if (field->becomes)
            ((struct hf_request *)out)->action = field->becomes;
        if (field->at)
            value_put(field, &d->got[i], out);
    }
}

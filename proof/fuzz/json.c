/* Any text as JSON: all ways to read a value agree about it, and what is written of it reads as the
 * same. */
#include "fuzz/support/fuzz.h"

#include "api/decode.h"
#include "base/bytes.h"
#include "base/text.h"
#include "json/canonical.h"
#include "json/stored.h"
#include "json/writer.h"

static struct hf_arena arena;

typedef bool read_fn(struct hf_reader *r, struct hf_bytes *out);

static bool skip(struct hf_reader *r, struct hf_bytes *out)
{
    *out = r->text;
    return hf_reader_skip(r);
}

/* Read one value and nothing else. */
static bool read_whole(struct hf_bytes text, read_fn *read, struct hf_bytes *out)
{
    struct hf_reader r = { .text = text, .arena = &arena };
    bool good = read(&r, out) && hf_reader_end(&r);
    FUZZ_WANT(good == !r.failed);
    FUZZ_WANT(good || (!r.no_memory && fuzz_sentence(r.error, sizeof r.error)));
    return good;
}

/* Read it, and read what came out of that: the same, with nothing left to change. */
static struct hf_bytes settled(struct hf_bytes text, read_fn *read)
{
    struct hf_bytes once = { 0 }, twice = { 0 };
    FUZZ_WANT(read_whole(text, read, &once));
    FUZZ_WANT(hf_utf8_valid(once) && once.size > 0);
    FUZZ_WANT(read_whole(once, read, &twice) && hf_bytes_equal(once, twice));
    return once;
}

/* As it is stored, and back. */
static void stored(struct hf_bytes text)
{
    struct hf_buffer buffer = { 0 };
    struct hf_json json = { .out = &buffer };
    struct hf_bytes once, twice;
    FUZZ_WANT(read_whole(text, hf_stored_read, &once));
    hf_json_stored(&json, once);
    FUZZ_WANT(!buffer.failed && read_whole(fuzz_held(&buffer), hf_stored_read, &twice));
    FUZZ_WANT(hf_bytes_equal(once, twice));
    hf_buffer_free(&buffer);
}

static void string(struct hf_bytes text)
{
    struct hf_buffer buffer = { 0 };
    struct hf_json json = { .out = &buffer };
    struct hf_bytes once, twice;
    if (!read_whole(text, hf_reader_string, &once))
        return;
    FUZZ_WANT(hf_utf8_valid(once));
    hf_json_bytes(&json, once);
    FUZZ_WANT(!buffer.failed && read_whole(fuzz_held(&buffer), hf_reader_string, &twice));
    FUZZ_WANT(hf_bytes_equal(once, twice));
    hf_buffer_free(&buffer);
}

/* Bytes of any kind make valid JSON. */
static void opaque(struct hf_bytes bytes)
{
    struct hf_buffer buffer = { 0 };
    struct hf_json json = { .out = &buffer };
    struct hf_bytes out;
    hf_json_array(&json);
    hf_json_opaque(&json, bytes);
    hf_json_bytes(&json, bytes);
    hf_json_stored(&json, bytes);
    hf_json_hex(&json, "", bytes);
    hf_json_array_end(&json);
    FUZZ_WANT(!buffer.failed && read_whole(fuzz_held(&buffer), skip, &out));
    hf_buffer_free(&buffer);
}

static void numbers(struct hf_bytes text)
{
    struct hf_reader r = { .text = text, .arena = &arena }, s = r;
    uint64_t number = 0;
    int64_t with_sign = 0;
    bool plain = hf_reader_uint(&r, &number) && hf_reader_end(&r);
    bool whole = hf_reader_int(&s, &with_sign) && hf_reader_end(&s);
    if (plain && whole)
        FUZZ_WANT(with_sign >= 0 && (uint64_t)with_sign == number);
    FUZZ_WANT(plain || !whole || with_sign < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_bytes text = hf_mem(data, size), out;
    bool good = read_whole(text, skip, &out);
    FUZZ_WANT(read_whole(text, hf_reader_compact, &out) == good);
    FUZZ_WANT(read_whole(text, hf_reader_canonical, &out) == good);
    FUZZ_WANT(read_whole(text, hf_stored_read, &out) == good);
    if (good) {
        struct hf_bytes compact = settled(text, hf_reader_compact);
        struct hf_bytes canonical = settled(text, hf_reader_canonical);
        FUZZ_WANT(hf_bytes_equal(settled(compact, hf_reader_canonical), canonical));
        stored(text);
        string(text);
        numbers(text);
    }
    opaque(text);
    hf_arena_reset(&arena);
    return 0;
}

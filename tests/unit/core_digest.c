/* The digest against the form that digest.h describes, written down here a second time by hand. */
#include "base/bytes.h"
#include "base/hash.h"
#include "core/digest.h"
#include "support/test.h"

/* ---- The form by hand ---- */

static unsigned char form[400000];
static size_t form_size;

static void put(const void *data, size_t size)
{
    assert_true(form_size + size <= sizeof form);
    if (size > 0)
        memcpy(form + form_size, data, size);
    form_size += size;
}

static void field(const char *name, unsigned char type, const void *value, size_t size)
{
    unsigned char n[2] = { (unsigned char)strlen(name), 0 };
    unsigned char v[4] = { (unsigned char)size, (unsigned char)(size >> 8),
                           (unsigned char)(size >> 16), (unsigned char)(size >> 24) };
    put(n, 2);
    put(name, strlen(name));
    put(&type, 1);
    put(v, 4);
    put(value, size);
}

static void field_text(const char *name, const char *value)
{
    field(name, 1, value, strlen(value));
}

static void field_number(const char *name, uint64_t value)
{
    unsigned char b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (unsigned char)(value >> (8 * i));
    field(name, 2, b, 8);
}

/* The digest of `request` is the SHA-256 of what was put; then start afresh. */
static void expect(const struct hf_request *request)
{
    uint8_t want[HF_DIGEST_SIZE], got[HF_DIGEST_SIZE];
    hf_sha256_of(form, form_size, want);
    hf_digest(request, got);
    assert_memory_equal(got, want, HF_DIGEST_SIZE);
    form_size = 0;
}

static void place_hold(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .tenant = hf_str("not part of it"),
                            .key = hf_str("nor this"),
                            .place_hold = { .resource = hf_str("room-307"),
                                            .requester = hf_str("guest-91"),
                                            .duration_ms = 900000 } };
    field_number("duration_ms", 900000);
    field_text("requester", "guest-91");
    field_text("resource", "room-307");
    expect(&r);

    r.place_hold.fence = 7;
    r.place_hold.duration_ms = -2;
    field_number("duration_ms", (uint64_t)-2);
    field_number("fence", 7);
    field_text("requester", "guest-91");
    field_text("resource", "room-307");
    expect(&r);
}

/* The very bytes, so that a change of the form cannot hide in both places. Made with:
 *   printf
 *   '\x0b\0duration_ms\x02\x08\0\0\0\xa0\xbb\x0d\0\0\0\0\0\x09\0requester\x01\x08\0\0\0guest-91'\
 *          '\x08\0resource\x01\x08\0\0\0room-307' | sha256sum */
static void known_digest(void **state)
{
    (void)state;
    static const char want[] = "868c5381590aedcba7a0947022a13889c56d8b69894dcf4bc6e3aca7423b1557";
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .place_hold = { .resource = hf_str("room-307"),
                                            .requester = hf_str("guest-91"),
                                            .duration_ms = 900000 } };
    uint8_t got[HF_DIGEST_SIZE];
    char text[2 * HF_DIGEST_SIZE + 1];
    hf_digest(&r, got);
    for (int i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(text, want);
}

static void ends_of_a_hold(void **state)
{
    (void)state;
    const enum hf_action actions[] = { HF_CONFIRM, HF_RELEASE, HF_EXPIRE, HF_REVERSE };
    for (size_t i = 0; i < 4; i++) {
        struct hf_request r = { .action = actions[i], .hold = { hf_str("0AZaz@[`{9") } };
        field_text("id", "0azaz@[`{9"); /* letters alone are folded, not what stands beside them */
        expect(&r);
        r.hold.id = hf_mem(NULL, 0);
        field_text("id", "");
        expect(&r);
    }
}

static void a_long_id_is_read_to_its_end(void **state)
{
    (void)state;
    static char id[1000], other[1000];
    uint8_t a[HF_DIGEST_SIZE], b[HF_DIGEST_SIZE];
    memset(id, 'q', sizeof id);
    memcpy(other, id, sizeof id);
    other[999] = 'r';
    struct hf_request r = { .action = HF_CONFIRM, .hold = { hf_mem(id, sizeof id) } };
    field("id", 1, id, sizeof id);
    expect(&r);
    hf_digest(&r, a);
    r.hold.id = hf_mem(other, sizeof other);
    hf_digest(&r, b);
    assert_memory_not_equal(a, b, HF_DIGEST_SIZE);
}

static void grant(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_GRANT,
                            .lease = {
                                .name = hf_str("leader"), .holder = hf_str("me"), .ttl_ms = 5 } };
    field_text("holder", "me");
    field_text("name", "leader");
    field_number("ttl_ms", 5);
    expect(&r);
}

static void write_with_and_without_conditions(void **state)
{
    (void)state;
    struct hf_request r = { .action = HF_WRITE,
                            .write = { .name = hf_str("n"), .value = hf_str("v") } };
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);

    r.write.has_if_version = true; /* version 0 was given: that is not the same as none */
    field_number("if_version", 0);
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);

    r.write.fence = UINT64_MAX;
    r.write.if_version = 3;
    field_number("fence", UINT64_MAX);
    field_number("if_version", 3);
    field_text("name", "n");
    field_text("value", "v");
    expect(&r);
}

/* Values of every length around the sizes at which the hash is fed differently. */
static void apply_with_payloads_of_many_lengths(void **state)
{
    (void)state;
    static unsigned char payload[300000];
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 7);
    static const size_t more[] = { 4096, 65535, 65536, 65537, sizeof payload };
    for (size_t n = 0; n < 600 + sizeof more / sizeof *more; n++) {
        size_t size = n < 600 ? n : more[n - 600];
        struct hf_request r = { .action = HF_APPLY,
                                .apply = { .name = hf_str("charge"),
                                           .payload = hf_mem(payload, size) } };
        field_text("name", "charge");
        field("payload", 1, payload, size);
        expect(&r);
    }
}

static void begin_is_its_fingerprint(void **state)
{
    (void)state;
    uint8_t fingerprint[HF_DIGEST_SIZE], got[HF_DIGEST_SIZE];
    memset(fingerprint, 0x5a, sizeof fingerprint);
    struct hf_request r = { .action = HF_BEGIN,
                            .begin = { .payload = hf_str("abc"), .fingerprint = fingerprint } };
    hf_digest(&r, got);
    assert_memory_equal(got, fingerprint, HF_DIGEST_SIZE);
    r.begin.fingerprint = NULL;
    put("abc", 3);
    expect(&r);
    r.begin.payload = hf_mem(NULL, 0);
    expect(&r);
}

static void other_actions_have_none(void **state)
{
    (void)state;
    static const uint8_t zeros[HF_DIGEST_SIZE];
    uint8_t got[HF_DIGEST_SIZE];
    const enum hf_action actions[] = { HF_SET_RESOURCE, HF_SET_GUARD, HF_CHECK, HF_RECORD,
                                       HF_ADMIT,        HF_COMPLETE,  HF_FAIL,  HF_HEARTBEAT,
                                       HF_RENEW,        HF_RETURN,    HF_MERGE, HF_GET_HOLD,
                                       HF_GET_TOKEN };
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        memset(got, 1, sizeof got);
        hf_digest(&(struct hf_request){ .action = actions[i] }, got);
        assert_memory_equal(got, zeros, HF_DIGEST_SIZE);
    }
}

/* Lengths stand in front, so bytes cannot wander from one field into the next. */
static void fields_do_not_run_together(void **state)
{
    (void)state;
    uint8_t a[HF_DIGEST_SIZE], b[HF_DIGEST_SIZE];
    hf_digest(&(struct hf_request){ .action = HF_APPLY,
                                    .apply = { .name = hf_str("ab"), .payload = hf_str("c") } },
              a);
    hf_digest(&(struct hf_request){ .action = HF_APPLY,
                                    .apply = { .name = hf_str("a"), .payload = hf_str("bc") } },
              b);
    assert_memory_not_equal(a, b, HF_DIGEST_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_hold),
        cmocka_unit_test(known_digest),
        cmocka_unit_test(ends_of_a_hold),
        cmocka_unit_test(a_long_id_is_read_to_its_end),
        cmocka_unit_test(grant),
        cmocka_unit_test(write_with_and_without_conditions),
        cmocka_unit_test(apply_with_payloads_of_many_lengths),
        cmocka_unit_test(begin_is_its_fingerprint),
        cmocka_unit_test(other_actions_have_none),
        cmocka_unit_test(fields_do_not_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

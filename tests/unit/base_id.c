/* Hold ids and UUIDs. */
#include "base/bytes.h"
#include "base/id.h"
#include "support/test.h"

static const struct hf_sipkey key = { UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210) };
static const struct hf_sipkey other_key = { UINT64_C(0x0123456789abcdef), 1 };

static void ids_lead_back_to_their_ordinal(void **state)
{
    (void)state;
    static const uint64_t ordinals[] = {
        0, 1, 2, 255, 256, UINT64_C(1) << 32, INT64_MAX, UINT64_MAX
    };
    for (size_t i = 0; i < sizeof ordinals / sizeof *ordinals; i++) {
        char id[HF_ID_SIZE];
        uint64_t got = 12345;
        hf_id_make(&key, ordinals[i], id);
        assert_int_equal(strlen(id), HF_ID_SIZE - 1);
        assert_int_equal(strspn(id, "0123456789abcdefghjkmnpqrstvwxyz"), HF_ID_SIZE - 1);
        assert_true(hf_id_read(&key, hf_str(id), &got));
        assert_true(got == ordinals[i]);
        assert_false(hf_id_read(&other_key, hf_str(id), &got));
        for (char *c = id; *c; c++)
            *c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
        assert_true(hf_id_read(&key, hf_str(id), &got)); /* upper case */
        assert_true(got == ordinals[i]);
    }
}

static void ids_differ_and_tell_nothing(void **state)
{
    (void)state;
    char one[HF_ID_SIZE], two[HF_ID_SIZE];
    hf_id_make(&key, 1, one);
    hf_id_make(&key, 2, two);
    int same = 0;
    for (int i = 0; i < HF_ID_SIZE - 1; i++)
        same += one[i] == two[i];
    assert_true(same < 13); /* neighbours share no more digits than chance would have it */
}

static void what_is_not_an_id(void **state)
{
    (void)state;
    char id[HF_ID_SIZE + 1];
    uint64_t ordinal;
    uint8_t raw[HF_ID_RAW];
    hf_id_make(&key, 7, id);
    assert_false(hf_id_read(&key, hf_mem(id, HF_ID_SIZE - 2), &ordinal));
    assert_false(hf_id_read(&key, hf_mem(id, 0), &ordinal));
    assert_false(hf_id_read(&key, hf_mem(id, HF_ID_SIZE), &ordinal)); /* with its NUL: too long */
    for (size_t i = 0; i < HF_ID_SIZE - 1; i++) {
        static const char bad[] = {
            'i', 'l', 'o', 'u', 'I', 'U', '-', ' ', '\0', '@', '[', '\x80'
        };
        char was = id[i];
        for (size_t j = 0; j < sizeof bad; j++) {
            id[i] = bad[j];
            assert_false(hf_id_pack(hf_mem(id, HF_ID_SIZE - 1), raw));
            assert_false(hf_id_read(&key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
        }
        id[i] = was == '3' ? '4' : '3'; /* another digit: well-formed, but not ours */
        assert_true(hf_id_pack(hf_mem(id, HF_ID_SIZE - 1), raw));
        assert_false(hf_id_read(&key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
        id[i] = was;
    }
    assert_true(hf_id_read(&key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
    id[0] = '8'; /* more than 128 bits */
    assert_false(hf_id_pack(hf_mem(id, HF_ID_SIZE - 1), raw));
}

static void packing(void **state)
{
    (void)state;
    uint8_t raw[HF_ID_RAW], back[HF_ID_RAW];
    char text[HF_ID_SIZE];
    memset(raw, 0xff, sizeof raw);
    hf_id_unpack(raw, text);
    assert_string_equal(text, "7zzzzzzzzzzzzzzzzzzzzzzzzz");
    memset(raw, 0, sizeof raw);
    hf_id_unpack(raw, text);
    assert_string_equal(text, "00000000000000000000000000");
    raw[15] = 1;
    hf_id_unpack(raw, text);
    assert_string_equal(text, "00000000000000000000000001");
    raw[0] = 0x20;
    hf_id_unpack(raw, text);
    assert_string_equal(text, "10000000000000000000000001");
    uint64_t seed = 42;
    for (int i = 0; i < 1000; i++) {
        hf_put64(raw, test_random(&seed));
        hf_put64(raw + 8, test_random(&seed));
        hf_id_unpack(raw, text);
        assert_true(hf_id_pack(hf_str(text), back));
        assert_memory_equal(back, raw, HF_ID_RAW);
    }
}

static void uuids(void **state)
{
    (void)state;
    char text[HF_UUID_SIZE];
    const uint8_t ones[10] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    const uint8_t count[10] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x10, 0x32 };
    hf_uuid7_make(INT64_C(0x0123456789ab), count, text);
    assert_string_equal(text, "01234567-89ab-7123-8567-89abcdef1032");
    hf_uuid7_make(INT64_C(0x017f22e279b0), ones, text); /* the time of RFC 9562's example */
    assert_string_equal(text, "017f22e2-79b0-7fff-bfff-ffffffffffff");
    const uint8_t zeros[10] = { 0 };
    hf_uuid7_make(0, zeros, text);
    assert_string_equal(text, "00000000-0000-7000-8000-000000000000");
}

static void cursors_lead_back_to_their_place(void **state)
{
    (void)state;
    static const uint64_t places[] = { 1, 2, 3, 1000, UINT64_C(1) << 32, INT64_MAX, UINT64_MAX };
    assert_true(hf_cursor_make(&key, hf_str("a"), 0) == 0);
    assert_true(hf_cursor_read(&key, hf_str("a"), 0) == 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t cursor = hf_cursor_make(&key, hf_str("a"), places[i]);
        assert_true(cursor != 0 && cursor != places[i]);
        assert_true(hf_cursor_read(&key, hf_str("a"), cursor) == places[i]);
        assert_true(hf_cursor_make(&key, hf_str("a"),
                                   hf_cursor_read(&key, hf_str("a"), places[i])) == places[i]);
        assert_true(cursor != hf_cursor_make(&key, hf_str("b"), places[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_lead_back_to_their_ordinal),
        cmocka_unit_test(ids_differ_and_tell_nothing),
        cmocka_unit_test(what_is_not_an_id),
        cmocka_unit_test(packing),
        cmocka_unit_test(uuids),
        cmocka_unit_test(cursors_lead_back_to_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

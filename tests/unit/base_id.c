/* Hold ids and UUIDs. */
#include "support/test.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/id.h"

static const struct hf_sipkey id_key = { UINT64_C(0x0123456789abcdef),
                                         UINT64_C(0xfedcba9876543210) };
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
        hf_id_make(&id_key, ordinals[i], id);
        assert_int_equal(strlen(id), HF_ID_SIZE - 1);
        assert_int_equal(strspn(id, "0123456789abcdefghjkmnpqrstvwxyz"), HF_ID_SIZE - 1);
        assert_true(hf_id_read(&id_key, hf_str(id), &got));
        assert_true(got == ordinals[i]);
        assert_false(hf_id_read(&other_key, hf_str(id), &got));
        for (char *c = id; *c; c++)
            *c = (char)(*c >= 'a' ? *c - 'a' + 'A' : *c);
        assert_true(hf_id_read(&id_key, hf_str(id), &got)); /* upper case */
        assert_true(got == ordinals[i]);
    }
}

static void ids_differ_and_tell_nothing(void **state)
{
    (void)state;
    char one[HF_ID_SIZE], two[HF_ID_SIZE];
    hf_id_make(&id_key, 1, one);
    hf_id_make(&id_key, 2, two);
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
    hf_id_make(&id_key, 7, id);
    assert_false(hf_id_read(&id_key, hf_mem(id, HF_ID_SIZE - 2), &ordinal));
    assert_false(hf_id_read(&id_key, hf_mem(id, 0), &ordinal));
    assert_false(
        hf_id_read(&id_key, hf_mem(id, HF_ID_SIZE), &ordinal)); /* with its NUL: too long */
    for (size_t i = 0; i < HF_ID_SIZE - 1; i++) {
        static const char bad[] = {
            'i', 'l', 'o', 'u', 'I', 'U', '-', ' ', '\0', '@', '[', '\x80'
        };
        char was = id[i];
        for (size_t j = 0; j < sizeof bad; j++) {
            id[i] = bad[j];
            assert_false(hf_id_pack(hf_mem(id, HF_ID_SIZE - 1), raw));
            assert_false(hf_id_read(&id_key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
        }
        id[i] = was == '3' ? '4' : '3'; /* another digit: well-formed, but not ours */
        assert_true(hf_id_pack(hf_mem(id, HF_ID_SIZE - 1), raw));
        assert_false(hf_id_read(&id_key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
        id[i] = was;
    }
    assert_true(hf_id_read(&id_key, hf_mem(id, HF_ID_SIZE - 1), &ordinal));
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
    assert_true(hf_cursor_make(&id_key, hf_str("a"), 0) == 0);
    assert_true(hf_cursor_read(&id_key, hf_str("a"), 0) == 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t cursor = hf_cursor_make(&id_key, hf_str("a"), places[i]);
        assert_true(cursor != 0 && cursor != places[i]);
        assert_true(hf_cursor_read(&id_key, hf_str("a"), cursor) == places[i]);
        assert_true(hf_cursor_make(&id_key, hf_str("a"),
                                   hf_cursor_read(&id_key, hf_str("a"), places[i])) == places[i]);
        assert_true(cursor != hf_cursor_make(&id_key, hf_str("b"), places[i]));
    }
}

/* CRC-32C, SHA-256 and SipHash against published vectors. */

/* The file itself, under another name: machines of today do not reach the table's path. */
static uint32_t crc32c_copy(uint32_t crc, const void *data, size_t size);
#define hf_crc32c crc32c_copy
#include "base/crc32c.c"
#undef hf_crc32c

static unsigned char bytes[4096];

static void crc32c_known_vectors(void **state)
{
    (void)state;
    unsigned char b[48] = { 0 };
    assert_int_equal(hf_crc32c(0, "", 0), 0);
    assert_true(hf_crc32c(0, "123456789", 9) == 0xe3069283U);
    assert_true(hf_crc32c(0, "a", 1) == 0xc1d04330U);
    assert_true(hf_crc32c(0, b, 32) == 0x8a9136aaU); /* RFC 3720, B.4 */
    memset(b, 0xff, 32);
    assert_true(hf_crc32c(0, b, 32) == 0x62a8ab43U);
    for (unsigned i = 0; i < 32; i++)
        b[i] = (unsigned char)i;
    assert_true(hf_crc32c(0, b, 32) == 0x46dd794eU);
    for (unsigned i = 0; i < 32; i++)
        b[i] = (unsigned char)(31 - i);
    assert_true(hf_crc32c(0, b, 32) == 0x113fdb5cU);
}

static void crc32c_goes_on(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= 40; cut++) {
        uint32_t crc = hf_crc32c(0, bytes, cut);
        assert_true(hf_crc32c(crc, bytes + cut, 100 - cut) == hf_crc32c(0, bytes, 100));
    }
}

/* Both paths, at every length and alignment, against the polynomial bit by bit. */
static uint32_t crc_slow(const unsigned char *p, size_t size)
{
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78U : crc >> 1;
    }
    return ~crc;
}

static void crc32c_by_table_and_by_instruction(void **state)
{
    (void)state;
    for (size_t from = 0; from < 9; from++) {
        for (size_t size = 0; size < 300; size++) {
            uint32_t want = crc_slow(bytes + from, size);
            assert_true(hf_crc32c(0, bytes + from, size) == want);
            assert_true(crc32c_copy(0, bytes + from, size) == want);
            assert_true(~crc_table(0xffffffffU, bytes + from, size) == want);
#ifdef __x86_64__
            if (__builtin_cpu_supports("sse4.2"))
                assert_true(~crc_sse42(0xffffffffU, bytes + from, size) == want);
#endif
        }
    }
    table_make(); /* a second maker finds it made */
    assert_true(~crc_table(0xffffffffU, (const unsigned char *)"123456789", 9) == 0xe3069283U);
}

static void sha256_is(const char *want, const void *data, size_t size)
{
    uint8_t got[HF_DIGEST_SIZE];
    char text[2 * HF_DIGEST_SIZE + 1];
    hf_sha256_of(data, size, got);
    for (int i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(text, want);
}

static void sha256_known_vectors(void **state)
{
    (void)state;
    static char million[1000000];
    memset(million, 'a', sizeof million);
    sha256_is("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL, 0);
    sha256_is("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc", 3);
    sha256_is("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
              "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    sha256_is("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", million,
              sizeof million);
}

static void sha256_in_pieces(void **state)
{
    (void)state;
    uint8_t whole[HF_DIGEST_SIZE], pieces[HF_DIGEST_SIZE];
    hf_sha256_of(bytes, 200, whole);
    for (size_t cut = 0; cut <= 200; cut++) {
        struct hf_sha256 s;
        hf_sha256_init(&s);
        hf_sha256_add(&s, bytes, cut);
        hf_sha256_add(&s, NULL, 0);
        hf_sha256_add(&s, bytes + cut, 200 - cut);
        hf_sha256_end(&s, pieces);
        assert_memory_equal(pieces, whole, HF_DIGEST_SIZE);
    }
}

/* Key 00 01 .. 0f, message 00 01 .. n-1. The paper prints n = 15 (appendix A); the others are from
 * the reference implementation's vectors.h. */
static void siphash_reference_vectors(void **state)
{
    (void)state;
    const struct hf_sipkey key = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
    static const struct {
        size_t size;
        uint64_t want;
    } vectors[] = {
        { 0, UINT64_C(0x726fdb47dd0e0e31) },  { 1, UINT64_C(0x74f839c593dc67fd) },
        { 2, UINT64_C(0x0d6c8009d9a94f5a) },  { 3, UINT64_C(0x85676696d7fb7e2d) },
        { 7, UINT64_C(0xab0200f58b01d137) },  { 8, UINT64_C(0x93f5f5799a932462) },
        { 15, UINT64_C(0xa129ca6149be45e5) }, { 63, UINT64_C(0x958a324ceb064572) },
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        unsigned char message[64];
        for (unsigned j = 0; j < sizeof message; j++)
            message[j] = (unsigned char)j;
        for (size_t cut = 0; cut <= vectors[i].size; cut++) /* two runs are as good as one */
            assert_true(hf_siphash(&key, hf_mem(message, cut),
                                   hf_mem(message + cut, vectors[i].size - cut)) ==
                        vectors[i].want);
    }
}

/* Made with `openssl mac`; the key is the SHA-256 of "holdfast entries" and the sixteen bytes 0, 1,
 * 2 ... */
static void gmac_reference_vectors(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *tag;
    } vectors[] = { { 0, "2de8e9c1d5aaa3f0cd0d702980fe4eb6" },
                    { 1, "ee6d2cbd7aa780bc525e5704168318f9" },
                    { 16, "7e5092d44168410cd5591b79dd74efde" },
                    { 100, "c84a3cd33a0a9cd5d93e5bbf2c952c26" },
                    { 1000, "039410475260457c15aaf19a294533e9" } };
    const struct hf_sipkey key = { 0x0706050403020100U, 0x0f0e0d0c0b0a0908U };
    uint8_t nonce[HF_GMAC_NONCE], tag[HF_GMAC_SIZE];
    unsigned char message[1000];
    char hex[2 * HF_GMAC_SIZE + 1];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (unsigned char)i;
    memcpy(nonce, message, sizeof nonce);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        assert_true(hf_gmac_once(&key, nonce, hf_mem(message, vectors[i].size), tag));
        for (size_t b = 0; b < sizeof tag; b++)
            snprintf(hex + 2 * b, 3, "%02x", tag[b]);
        assert_string_equal(hex, vectors[i].tag);
    }
}

int main(void)
{
    const struct CMUnitTest base_id_tests[] = {
        cmocka_unit_test(ids_lead_back_to_their_ordinal),
        cmocka_unit_test(ids_differ_and_tell_nothing),
        cmocka_unit_test(what_is_not_an_id),
        cmocka_unit_test(packing),
        cmocka_unit_test(uuids),
        cmocka_unit_test(cursors_lead_back_to_their_place),
    };
    const struct CMUnitTest base_hash_tests[] = {
        cmocka_unit_test(crc32c_known_vectors),
        cmocka_unit_test(crc32c_goes_on),
        cmocka_unit_test(crc32c_by_table_and_by_instruction),
        cmocka_unit_test(sha256_known_vectors),
        cmocka_unit_test(sha256_in_pieces),
        cmocka_unit_test(siphash_reference_vectors),
        cmocka_unit_test(gmac_reference_vectors),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(base_id_tests, NULL, NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 131 + (i >> 8));
    failed += cmocka_run_group_tests(base_hash_tests, NULL, NULL);
    return failed;
}

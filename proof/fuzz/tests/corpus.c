/* Packs of inputs: what is written is read again, always as the same bytes, and whatever is not a
 * whole pack is refused. */
#include "fuzz/support/corpus.h"
#include "fuzz/support/fuzz.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "support/test.h"

enum { HEAD = 16 };

/* In the order of their SHA-256: 2cf2..., ca97..., e3b0... */
static const char *const texts[] = { "hello", "a", "" };

#define SHA256_OF_HELLO "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

/* The pack of three inputs. Owned, free with hf_buffer_free. */
static struct hf_buffer three(void)
{
    struct hf_bytes inputs[] = { hf_str("a"), hf_str(""), hf_str("hello") };
    struct hf_buffer pack = { 0 };
    fuzz_corpus_write(inputs, 3, &pack);
    return pack;
}

/* The bytes as they are, in a block of their size. What is wrong with them as a pack, or NULL. */
static const char *wrong_with(const void *bytes, size_t size)
{
    struct fuzz_corpus corpus;
    char *copy = fuzz_copy(hf_mem(bytes, size));
    const char *wrong = fuzz_corpus_read(hf_mem(copy, size), &corpus);
    if (wrong) {
        assert_null(corpus.inputs);
        assert_int_equal(corpus.count, 0);
    }
    fuzz_corpus_free(&corpus);
    free(copy);
    return wrong;
}

/* The same with the checksum made right. */
static const char *wrong_when_summed(unsigned char *bytes, size_t size)
{
    hf_put32(bytes + 12, hf_crc32c(0, bytes + HEAD, size - HEAD));
    return wrong_with(bytes, size);
}

static void assert_wrong(const char *wrong, const char *expected)
{
    assert_non_null(wrong);
    assert_string_equal(wrong, expected);
}

static void what_is_packed_is_read(void **state)
{
    (void)state;
    struct hf_buffer pack = three();
    struct fuzz_corpus corpus;
    assert_null(fuzz_corpus_read(fuzz_held(&pack), &corpus));
    assert_int_equal(corpus.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(hf_bytes_equal(corpus.inputs[i], hf_str(texts[i])));
    fuzz_corpus_free(&corpus);
    hf_buffer_free(&pack);
}

/* The format is written down in corpus.c: these are its bytes. */
static void the_bytes_of_a_pack(void **state)
{
    (void)state;
    static const char want[] = "HOLDFUZ1\3\0\0\0----\5\0\0\0hello\1\0\0\0a\0\0\0\0";
    struct hf_buffer pack = three();
    assert_int_equal(pack.size, sizeof want - 1);
    assert_memory_equal(pack.data, want, 12);
    assert_true(hf_get32(pack.data + 12) == hf_crc32c(0, want + HEAD, sizeof want - 1 - HEAD));
    assert_memory_equal(pack.data + HEAD, want + HEAD, sizeof want - 1 - HEAD);
    hf_buffer_free(&pack);
}

static void the_same_inputs_make_the_same_pack(void **state)
{
    (void)state;
    struct hf_bytes inputs[] = { hf_str("hello"), hf_str("a"), hf_str("hello"), hf_str(""),
                                 hf_str("a") };
    struct hf_buffer pack = three(), other = { 0 };
    fuzz_corpus_write(inputs, 5, &other);
    assert_true(hf_bytes_equal(fuzz_held(&pack), fuzz_held(&other)));
    hf_buffer_free(&other);
    hf_buffer_free(&pack);
}

static void inputs_are_named_by_their_content(void **state)
{
    (void)state;
    char name[FUZZ_NAME_ROOM];
    fuzz_corpus_name(hf_str("hello"), name);
    assert_string_equal(name, SHA256_OF_HELLO);
}

/* At every byte, and also between two inputs. */
static void a_pack_that_is_cut_short_is_refused(void **state)
{
    (void)state;
    struct hf_buffer pack = three();
    for (size_t size = 0; size < pack.size; size++)
        assert_wrong(wrong_with(pack.data, size),
                     size < 8 ? "it does not begin with HOLDFUZ1" : "it is cut short");
    assert_null(wrong_with(pack.data, pack.size));
    hf_buffer_free(&pack);
}

static void a_pack_with_any_byte_changed_is_refused(void **state)
{
    (void)state;
    struct hf_buffer pack = three();
    for (size_t i = 0; i < pack.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            pack.data[i] ^= (unsigned char)(1U << bit);
            const char *wrong = wrong_with(pack.data, pack.size);
            assert_non_null(wrong);
            if (i < 8)
                assert_string_equal(wrong, "it does not begin with HOLDFUZ1");
            pack.data[i] ^= (unsigned char)(1U << bit);
        }
    assert_null(wrong_with(pack.data, pack.size));
    hf_buffer_free(&pack);
}

/* Each of these is wrong in one thing alone. */
static void what_is_wrong_is_said(void **state)
{
    (void)state;
    struct hf_buffer pack = three();
    unsigned char *p = pack.data;
    size_t size = pack.size;

    hf_put32(p + 8, 0);
    assert_wrong(wrong_with(p, size), "it has no inputs");
    hf_put32(p + 8, 2);
    assert_wrong(wrong_with(p, size), "there is something behind its last input");
    hf_put32(p + 8, 4);
    assert_wrong(wrong_with(p, size), "it is cut short");
    hf_put32(p + 8, UINT32_MAX);
    assert_wrong(wrong_with(p, size), "it is cut short");
    hf_put32(p + 8, 3);

    hf_put32(p + HEAD, UINT32_MAX);
    assert_wrong(wrong_when_summed(p, size), "it is cut short");
    hf_put32(p + HEAD, 5);
    assert_null(wrong_when_summed(p, size));

    p[HEAD + 4] ^= 1;
    assert_wrong(wrong_with(p, size), "its checksum is wrong");
    p[HEAD + 4] ^= 1;

    /* The last one first; one that is there twice. */
    memcpy(p + HEAD, "\0\0\0\0\1\0\0\0a\5\0\0\0hello", 18);
    assert_wrong(wrong_when_summed(p, size), "its inputs are not in order");
    memcpy(p + HEAD, "\5\0\0\0hello\0\0\0\0\0\0\0\0", 17);
    assert_wrong(wrong_when_summed(p, HEAD + 17), "its inputs are not in order");
    hf_buffer_free(&pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_is_read),
        cmocka_unit_test(the_bytes_of_a_pack),
        cmocka_unit_test(the_same_inputs_make_the_same_pack),
        cmocka_unit_test(inputs_are_named_by_their_content),
        cmocka_unit_test(a_pack_that_is_cut_short_is_refused),
        cmocka_unit_test(a_pack_with_any_byte_changed_is_refused),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

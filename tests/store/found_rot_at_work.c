/* Bytes that rot, reads that fail and files that are left over, while a store works or starts:
 * found by a hostile review. */
#define _GNU_SOURCE /* memmem */
#include "base/bytes.h"
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

enum { BLOCK = 4096, HEAD = 112, SEGMENT = 131072 };

static void poke(struct kit *k, const char *name, size_t at, unsigned char value)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &value, 1, (off_t)at), 1);
    close(fd);
}

/* The first entry with a key. */
static size_t keyed_entry(struct kit *k)
{
    size_t size, found = 0;
    unsigned char *data = jw_load(k->dir, "journal-00000001.log", &size);
    for (size_t b = BLOCK; found == 0 && b < size; b += BLOCK)
        if (memcmp(data + b, "HFB2", 4) == 0 && data[b + HEAD + 10] == 1)
            found = b + HEAD;
    free(data);
    assert_true(found > 0);
    return found;
}

/* The block of the first key is overwritten with the one behind it, as a disk does that writes into
 * the wrong place. */
static void misplace(struct kit *k)
{
    char path[1024];
    unsigned char block[BLOCK];
    size_t at = keyed_entry(k) - HEAD;
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, block, BLOCK, (off_t)(at + BLOCK)), BLOCK);
    assert_memory_equal(block, "HFB2", 4);
    assert_int_equal(pwrite(fd, block, BLOCK, (off_t)at), BLOCK);
    close(fd);
}

static struct kit *two_keys(void)
{
    struct kit *k = kit_make();
    assert_int_equal(kit_resource(k, "seat", 10), HF_OK);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_OK);
    assert_int_equal(kit_place(k, "pay-2", "seat", "guest", 600000), HF_OK);
    return k;
}

/* Every checksum of the block is right, and the key in it is another one: that counted as two keys
 * with one hash, and the key that had stood there acted a second time. */
static void a_block_of_another_key_does_not_free_a_key(void **state)
{
    (void)state;
    struct kit *k = two_keys();
    misplace(k);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    assert_int_equal(kit_place(k, "pay-2", "seat", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_stats(k).holds, 2);
    kit_free(k);
}

/* So too if it is the key's own, from before its window closed for the first time. */
static void an_older_use_of_a_key_does_not_free_it(void **state)
{
    (void)state;
    struct kit *k = two_keys();
    unsigned char block[BLOCK];
    char path[1024];
    size_t older = keyed_entry(k) - HEAD;
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, block, BLOCK, (off_t)older), BLOCK);
    kit_at(k, 2 * DAY);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_OK);
    assert_false(k->got.replayed);
    unsigned char was[BLOCK];
    size_t newer = older;
    do {
        newer += BLOCK;
        assert_int_equal(pread(fd, was, BLOCK, (off_t)newer), BLOCK);
    } while (memcmp(was, "HFB2", 4) != 0 || !memmem(was, BLOCK, "pay-1", 5));
    assert_int_equal(pwrite(fd, block, BLOCK, (off_t)newer), BLOCK);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    kit_settle(k);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    assert_int_equal(pwrite(fd, was, BLOCK, (off_t)newer), BLOCK);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    close(fd);
    kit_free(k);
}

/* A call of a numbered client with the name of the key counts as no use of the key. */
static void a_block_of_a_numbered_call_is_no_answer_to_a_key(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    assert_int_equal(kit_resource(k, "seat", 10), HF_OK);
    assert_int_equal(kit_place(k, "shop-1", "seat", "guest", 600000), HF_OK);
    struct hf_request numbered = { .action = HF_PLACE_HOLD,
                                   .client = hf_str("shop-1"),
                                   .sequence = 1,
                                   .place_hold = { hf_str("seat"), hf_str("guest"), 600000, 0 } };
    assert_int_equal(kit_do(k, numbered), HF_OK);
    misplace(k);
    assert_int_equal(kit_place(k, "shop-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    kit_free(k);
}

/* A hold whose block is another one made the part of holds.idx that leads there look wrong. It was
 * thrown away, and could not be made again for as long: 509 holds of all tenants could not be
 * read. */
static void a_block_of_another_hold_hides_that_hold_alone(void **state)
{
    (void)state;
    enum { HOLDS = 20 };
    char ids[HOLDS][HF_ID_SIZE];
    struct kit *k = kit_make();
    k->options.snapshot_every_bytes = 65536;
    kit_reopen(k);
    assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
    for (int i = 0; i < HOLDS; i++) {
        kit_held(k, "hall", DAY, ids[i]);
        kit_settle(k);
    }
    for (int i = 0; i < 100 && kit_stats(k).snapshots == 0; i++) {
        assert_int_equal(kit_write(k, 20, 1000, 4), HF_OK);
        kit_settle(k);
    }
    assert_true(kit_stats(k).snapshots > 0);
    kit_reopen(k); /* the places come from the file now */
    misplace(k);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < HOLDS; i++)
            assert_int_equal(kit_get(k, HF_GET_HOLD, ids[i]), i == 0 ? HF_STORAGE_FAILURE : HF_OK);
        kit_settle(k);
    }
    assert_int_equal(kit_stats(k).index_rebuilds, 0);
    kit_free(k);
}

/* Expiry believed when a key ends without its CRC: the key was forgotten, and a retry acted
 * again. */
static void a_rotten_time_does_not_free_a_key(void **state)
{
    (void)state;
    struct kit *k = two_keys();
    poke(k, "journal-00000001.log", keyed_entry(k) + 29, 0);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    kit_settle(k);
    assert_int_equal(kit_place(k, "pay-1", "seat", "guest", 600000), HF_STORAGE_FAILURE);
    assert_int_equal(kit_stats(k).holds, 2);
    /* The others leave when they should. */
    kit_at(k, 2 * DAY);
    kit_settle(k);
    assert_int_equal(kit_stats(k).tokens, 1);
    kit_free(k);
}

/* The same byte by byte: a length that no tenant has ended the process. */
static void a_rotten_length_ends_nothing(void **state)
{
    (void)state;
    struct kit *k = two_keys();
    size_t entry = keyed_entry(k);
    poke(k, "journal-00000001.log", entry + 13, 65);
    poke(k, "journal-00000001.log", entry + 14, 0);
    kit_at(k, 2 * DAY);
    kit_settle(k);
    assert_int_equal(kit_stats(k).tokens, 1);
    kit_free(k);
}

/* ---- Plain and compressed at once ---- */

/* A start that is refused removed the compressed twin of a damaged segment: the last good copy. */
static void a_refused_start_removes_nothing(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    struct hf_error why;
    size_t size;
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = 1000;
    kit_open(k);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(kit_write(k, 1, 20000, 1), HF_OK);
    unsigned char *plain = jw_load(k->dir, "journal-00000001.log", &size);
    kit_at(k, 10000);
    assert_int_equal(kit_write(k, 1, 20000, 1), HF_OK);
    kit_settle(k);
    kit_settle(k);
    kit_close(k);
    assert_true(kit_files(k, "00001.zst") == 1);
    plain[BLOCK + 300] ^= 1;
    jw_save(k->dir, "journal-00000001.log", plain, size);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    assert_int_equal(kit_files(k, "00001.zst"), 1);
    plain[BLOCK + 300] ^= 1;
    jw_save(k->dir, "journal-00000001.log", plain, size);
    kit_open(k);
    assert_int_equal(kit_files(k, "00001.zst"), 0); /* the plain one stands */
    free(plain);
    kit_free(k);
}

/* ---- The upgrade of version 1, cut short ---- */

/* Only the header with the secret came to the disk. The first batch of version 2 must be a small
 * one of the store's own all the same: while the header can be torn off again, its payload is
 * evidence of damage. */
static void the_first_batch_of_version_2_is_our_own(void **state)
{
    (void)state;
    static struct jw w;
    size_t size;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = SEGMENT;
    k->options.keep_plain = true;
    jw_open(&w, k->dir, SEGMENT);
    w.version = 1;
    jw_begin(&w, KIT_START);
    jw_row(jw_add(&w, HF_CONFIGURE), HF_ROW_CONFIG)->config =
        (struct hf_config){ .idempotency_window_ms = 24 * HOUR,
                            .token_max_length = 256,
                            .digest_name = hf_str("sha256/1"),
                            .program = hf_str("0") };
    jw_commit(&w);
    jw_close(&w);
    kit_open(k);
    kit_close(k);
    unsigned char *data = jw_load(k->dir, "journal-00000002.log", &size);
    assert_memory_equal(data + BLOCK, "HFB2", 4);
    memset(data + BLOCK, 0, size - BLOCK); /* the batch did not come to the disk */
    jw_save(k->dir, "journal-00000002.log", data, size);
    free(data);
    kit_remove(k, "closed");
    kit_open(k);
    assert_int_equal(kit_place(k, "key", "room", "guest", 600000), HF_OK);
    kit_close(k);
    data = jw_load(k->dir, "journal-00000002.log", &size);
    assert_memory_equal(data + BLOCK, "HFB2", 4);
    assert_int_equal(data[BLOCK + HEAD + 8], HF_CONFIGURE);
    free(data);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_of_another_key_does_not_free_a_key),
        cmocka_unit_test(an_older_use_of_a_key_does_not_free_it),
        cmocka_unit_test(a_block_of_a_numbered_call_is_no_answer_to_a_key),
        cmocka_unit_test(a_block_of_another_hold_hides_that_hold_alone),
        cmocka_unit_test(a_rotten_time_does_not_free_a_key),
        cmocka_unit_test(a_rotten_length_ends_nothing),
        cmocka_unit_test(a_refused_start_removes_nothing),
        cmocka_unit_test(the_first_batch_of_version_2_is_our_own)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

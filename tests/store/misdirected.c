/* A disk wrote a batch to the wrong place, or brought an old sector back, and the process was
 * killed. The sealed header of a batch proves that everything before it was durable, wherever it
 * stands. Each case here was opened with a clean audit, although acknowledged keys were lost, or
 * was refused by the start alone. */
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/agree.h"
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>

enum { BLOCK = 4096, SECTOR = 512, SEGMENT = 65536, NOTE = 136, NOTE_OLD = 64, HEAD = 160 };

static struct files files;

static struct kit *begin(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = SEGMENT;
    k->options.snapshot_every_bytes = UINT64_C(1) << 40;
    k->options.keep_plain = true;
    kit_open(k);
    return k;
}

/* One write of `size` bytes that are not zeros, in a batch of its own. */
static void put(struct kit *k, const char *key, size_t size)
{
    static char value[SEGMENT];
    memset(value, 'x', size);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_WRITE,
                                                    .key = hf_str(key),
                                                    .write = { .name = hf_str("register"),
                                                               .value = hf_mem(value, size) } }),
                     HF_OK);
}

/* The process is killed: nothing is written any more. */
static void killed(struct kit *k)
{
    files_load(&files, k->dir);
    kit_close(k);
}

static struct agreed look(struct kit *k, const char *what)
{
    files_put(&files, k->dir);
    return agree(k, what, "the journal", 0);
}

static void refused(struct kit *k, const char *what)
{
    struct agreed got = look(k, what);
    assert_false(got.opens);
    assert_int_equal(got.verdict, HF_AUDIT_DAMAGED);
}

static void end(struct kit *k)
{
    files_free(&files);
    kit_free(k);
}

/* Two batches of one block and a segment that is prepared. */
static struct kit *begin_small(void)
{
    struct kit *k = begin();
    put(k, "a", 100);
    put(k, "b", 100);
    kit_settle(k);
    return k;
}

struct moved {
    unsigned char *bytes; /* owned */
    size_t size;
};

/* The batch is not where it was written. */
static struct moved take(const struct place *p)
{
    struct moved m = { .size = (p->length + BLOCK - 1) / BLOCK * BLOCK };
    m.bytes = malloc(m.size);
    memcpy(m.bytes, p->file->data + p->at, m.size);
    memset(p->file->data + p->at, 0, m.size);
    return m;
}

/* It is here instead. */
static void land(struct moved m, struct file *f, size_t at)
{
    assert_true(at + m.size <= f->size);
    memcpy(f->data + at, m.bytes, m.size);
    free(m.bytes);
}

static void a_batch_inside_the_one_before(void **state)
{
    (void)state;
    for (size_t at = SECTOR; at <= 2 * BLOCK; at += SECTOR) {
        struct kit *k = begin_small();
        put(k, "c", 9000);
        put(k, "d", 300);
        killed(k);
        assert_true(look(k, "a kill").opens);
        struct place last = place_of_batch(&files, 0),
                     n = place_of_batch(&files, last.sequence - 1);
        assert_true(n.length > 2 * BLOCK);
        land(take(&last), n.file, n.at + at);
        refused(k, "the last batch inside the one before");
        end(k);
    }
}

static void the_last_batch_in_free_space(void **state)
{
    (void)state;
    for (int next = 0; next < 2; next++) {
        struct kit *k = begin_small();
        put(k, "c", 300);
        killed(k);
        struct place last = place_of_batch(&files, 0);
        struct file *f = next ? files_find(&files, "journal-00000002.log") : last.file;
        assert_non_null(f);
        land(take(&last), f, next ? BLOCK : last.at + 3 * BLOCK);
        refused(k, "the last batch in free space");
        end(k);
    }
}

/* A long batch was torn and cleared; shorter ones were written in its place. Then its first sector
 * came back. */
static void a_stale_sector_of_a_torn_longer_batch(void **state)
{
    (void)state;
    unsigned char stale[SECTOR];
    struct kit *k = begin_small();
    put(k, "long", 20000);
    killed(k);
    struct place n = place_of_batch(&files, 0);
    char name[256];
    snprintf(name, sizeof name, "%s", n.file->name);
    memset(n.file->data + n.at + 3 * BLOCK, 0, n.file->size - n.at - 3 * BLOCK);
    memcpy(stale, n.file->data + n.at, SECTOR);
    assert_true(look(k, "a torn batch").opens);
    files_put(&files, k->dir);
    files_free(&files);
    kit_open(k);
    put(k, "c", 100);
    put(k, "d", 300);
    put(k, "e", 100);
    killed(k);
    assert_int_equal(place_of_batch(&files, 0).sequence, n.sequence + 2);
    memcpy(files_find(&files, name)->data + n.at, stale, SECTOR);
    refused(k, "a stale sector");
    end(k);
}

static void a_batch_in_the_block_of_a_header(void **state)
{
    (void)state;
    struct kit *k = begin_small();
    put(k, "c", 100);
    put(k, "d", 300);
    killed(k);
    struct place last = place_of_batch(&files, 0), n = place_of_batch(&files, last.sequence - 1);
    n.file->data[n.at + 130] ^= 4;
    land(take(&last), files_find(&files, "journal-00000002.log"), 0);
    refused(k, "rot, and the next batch on the first block of the next segment");
    end(k);
}

static void a_batch_on_the_header_of_its_segment(void **state)
{
    (void)state;
    struct kit *k = begin();
    put(k, "a", 20000);
    put(k, "b", 20000);
    kit_settle(k);
    put(k, "c", 20000);
    put(k, "d", 9000);
    killed(k);
    struct place last = place_of_batch(&files, 0);
    assert_int_equal(place_of_batch(&files, last.sequence - 1).at, BLOCK);
    assert_string_equal(last.file->name, "journal-00000002.log");
    land(take(&last), last.file, 0);
    refused(k, "the last batch on the header of its segment");
    end(k);
}

static void a_batch_in_the_unused_end_of_an_older_segment(void **state)
{
    (void)state;
    struct kit *k = begin();
    put(k, "a", 20000);
    put(k, "b", 20000);
    kit_settle(k);
    put(k, "c", 20000);
    kit_settle(k);
    put(k, "d", 300);
    put(k, "e", 300);
    killed(k);
    struct place last = place_of_batch(&files, 0), n = place_of_batch(&files, last.sequence - 1);
    struct file *first = files_find(&files, "journal-00000001.log");
    assert_true(n.file != first && n.at > BLOCK);
    n.file->data[n.at + 130] ^= 4;
    land(take(&last), first, first->size - BLOCK);
    refused(k, "rot, and the next batch at the end of the segment before");
    end(k);
}

static void a_batch_between_two_blocks(void **state)
{
    (void)state;
    for (size_t before = SECTOR; before < BLOCK; before += SECTOR) {
        struct kit *k = begin_small();
        put(k, "c", 100);
        put(k, "d", 300);
        killed(k);
        struct place last = place_of_batch(&files, 0),
                     n = place_of_batch(&files, last.sequence - 1);
        land(take(&last), n.file, n.at - before);
        refused(k, "the last batch, some sectors before the one before it");
        end(k);
    }
}

/* ---- Which store it is ---- */

/* A client's payload can look like the header of a segment, with a key of the client's own. */
static void a_forged_header_of_the_only_segment(void **state)
{
    (void)state;
    struct kit *k = begin();
    put(k, "a", 100);
    put(k, "b", 600);
    killed(k);
    assert_true(look(k, "a kill").opens);
    struct file *first = files_find(&files, "journal-00000001.log");
    unsigned char *head = first->data;
    for (size_t i = 56; i < 120; i++)
        head[i] = (unsigned char)i;
    struct hf_sipkey key = { hf_get64(head + 104), hf_get64(head + 112) };
    hf_put64(head + 152, hf_siphash(&key, hf_mem(head, 152), hf_mem(NULL, 0)));
    memset(head + HEAD, 0, BLOCK - HEAD);
    refused(k, "a header with another key");
    /* One of version 1 needs no key at all. */
    hf_put32(head + 8, 1);
    memset(head + 104, 0, BLOCK - 104);
    hf_put32(head + 136, hf_crc32c(0, head, 136));
    refused(k, "a header of version 1");
    end(k);
}

static void a_first_segment_that_is_destroyed(void **state)
{
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        struct kit *k = begin();
        if (writes)
            put(k, "a", 100);
        killed(k);
        struct file *first = files_find(&files, "journal-00000001.log");
        memset(first->data, 0, (size_t)(2 + writes) * BLOCK);
        refused(k, "no header and no batch");
        end(k);
    }
}

static atomic_int notes_fail;

static int fail_notes(struct test_io *t, enum test_call call, const char *name)
{
    (void)t;
    if (call != TEST_RENAME || strcmp(name, "closed") != 0 || atomic_load(&notes_fail) == 0)
        return 0;
    atomic_fetch_sub(&notes_fail, 1);
    return -EIO;
}

static size_t note_size(void)
{
    struct file *note = files_find(&files, "closed");
    return note ? note->size : 0;
}

/* A new store does not open without its note. */
static void the_note_is_there_before_the_first_answer(void **state)
{
    (void)state;
    struct kit *k = begin();
    struct hf_error why;
    killed(k);
    assert_int_equal(note_size(), NOTE);
    files_free(&files);
    kit_leave(k);
    atomic_store(&notes_fail, 1);
    k->io.before = fail_notes;
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "closed"));
    k->db = NULL;
    kit_open(k);
    killed(k);
    assert_int_equal(note_size(), NOTE);
    end(k);
}

/* A store of an earlier version has no note, or one that does not say which store it is. */
static void an_older_store_gets_its_note_when_it_is_opened(void **state)
{
    (void)state;
    const uint64_t second_ns = UINT64_C(1000000000);
    for (int has = 0; has < 2; has++)
        for (int fails = 0; fails < 2; fails++) {
            struct kit *k = begin();
            put(k, "a", 100);
            killed(k);
            struct file *note = files_find(&files, "closed");
            assert_non_null(note);
            note->size = has ? NOTE_OLD : 0;
            assert_true(look(k, "an older note").opens);
            files_put(&files, k->dir);
            files_free(&files);
            if (!has)
                kit_remove(k, "closed");
            atomic_store(&notes_fail, fails);
            k->io.before = fail_notes;
            kit_open(k);
            files_load(&files, k->dir);
            assert_int_equal(note_size(), !fails ? NOTE : has ? NOTE_OLD : 0);
            files_free(&files);
            atomic_fetch_add(&k->io.later_ns, 2 * second_ns);
            kit_settle(k);
            killed(k);
            assert_int_equal(note_size(), NOTE);
            end(k);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_inside_the_one_before),
        cmocka_unit_test(the_last_batch_in_free_space),
        cmocka_unit_test(a_stale_sector_of_a_torn_longer_batch),
        cmocka_unit_test(a_batch_in_the_block_of_a_header),
        cmocka_unit_test(a_batch_on_the_header_of_its_segment),
        cmocka_unit_test(a_batch_in_the_unused_end_of_an_older_segment),
        cmocka_unit_test(a_batch_between_two_blocks),
        cmocka_unit_test(a_forged_header_of_the_only_segment),
        cmocka_unit_test(a_first_segment_that_is_destroyed),
        cmocka_unit_test(the_note_is_there_before_the_first_answer),
        cmocka_unit_test(an_older_store_gets_its_note_when_it_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

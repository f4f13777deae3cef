/* A disk wrote a batch to the wrong place, or brought an old sector back, and the process was
 * killed. The sealed header of a batch proves that everything before it was durable, wherever it
 * stands. Each case here was opened with a clean audit, although acknowledged keys were lost, or
 * was refused by the start alone. */
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/agree.h"
#include "support/test.h"

enum { BLOCK = 4096, SECTOR = 512, SEGMENT = 65536 };

static struct files files;

/* A batch in the files. */
struct place {
    struct file *file;
    size_t at, length;
    uint64_t sequence;
};

/* The batch with this sequence; 0: the newest. */
static struct place batch(uint64_t sequence)
{
    struct place found = { .file = NULL };
    for (size_t i = 0; i < files.count; i++) {
        struct file *f = &files.list[i];
        for (size_t at = BLOCK; file_ends(f, ".log") && at < f->size; at += BLOCK) {
            uint64_t n = hf_get64(f->data + at + 8);
            if (memcmp(f->data + at, "HFB2", 4) == 0 &&
                (sequence ? n == sequence : n > found.sequence))
                found = (struct place){ f, at, hf_get32(f->data + at + 4), n };
        }
    }
    assert_non_null(found.file);
    return found;
}

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
        struct place last = batch(0), n = batch(last.sequence - 1);
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
        struct place last = batch(0);
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
    struct place n = batch(0);
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
    assert_int_equal(batch(0).sequence, n.sequence + 2);
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
    struct place last = batch(0), n = batch(last.sequence - 1);
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
    struct place last = batch(0);
    assert_int_equal(batch(last.sequence - 1).at, BLOCK);
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
    struct place last = batch(0), n = batch(last.sequence - 1);
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
        struct place last = batch(0), n = batch(last.sequence - 1);
        land(take(&last), n.file, n.at - before);
        refused(k, "the last batch, some sectors before the one before it");
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

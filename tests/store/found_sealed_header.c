/* Batch N was acknowledged, and a power cut tore N+1: its header is there, its end is not. Then N
 * rotted. The header of N+1, which only the store can make and only when N is durable, proves that
 * N was there. It was not looked at: the start took N for a batch that was cut short, cleared it,
 * and N's key acted a second time, with a clean audit. */
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/agree.h"
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>

enum { BLOCK = 4096, SECTOR = 512, SEGMENT = 65536, LARGE = 20000, LARGER = 45000 };

static struct files files;

/* One write of `size` bytes that are not zeros: a part of it is never the whole. */
static void write_large(struct kit *k, size_t size)
{
    static char value[LARGER];
    memset(value, 'x', size);
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_WRITE,
                                                    .key = hf_str("large"),
                                                    .write = { .name = hf_str("large"),
                                                               .value = hf_mem(value, size) } }),
                     HF_OK);
}

/* The last batch is a large one; that before it made a hold, with the key "pay". next: the last
 * begins a segment. The process was killed then. */
static struct kit *story(bool next)
{
    struct kit *k = kit_make();
    struct place last;
    kit_leave(k);
    k->options.segment_max_bytes = SEGMENT;
    k->options.snapshot_every_bytes = UINT64_C(1) << 40;
    k->options.keep_plain = true;
    kit_open(k);
    assert_int_equal(kit_resource(k, "room", 2), HF_OK);
    for (int i = 0; next && i < 5; i++)
        assert_int_equal(kit_write(k, 1, 3000, 1), HF_OK);
    assert_int_equal(kit_place(k, "pay", "room", "guest", DAY), HF_OK);
    kit_settle(k);
    write_large(k, next ? LARGER : LARGE);
    kit_close(k);
    kit_remove(k, "closed");
    files_load(&files, k->dir);
    last = place_of_batch(&files, 0);
    assert_true(last.length > LARGE);
    assert_int_equal(last.at == BLOCK, next);
    assert_int_equal(strcmp(last.file->name, "journal-00000001.log") != 0, next);
    return k;
}

static void story_end(struct kit *k)
{
    files_free(&files);
    kit_free(k);
}

/* So much of the last batch came to the disk, in sectors. */
static void tear(size_t sectors)
{
    struct place last = place_of_batch(&files, 0);
    assert_true(sectors * SECTOR < last.length);
    memset(last.file->data + last.at + sectors * SECTOR, 0,
           last.file->size - last.at - sectors * SECTOR);
}

static struct agreed look(struct kit *k, const char *what)
{
    files_put(&files, k->dir);
    return agree(k, what, "the journal", 0);
}

/* Batch N with one byte changed, in its header, its entries, or all of it gone. */
static void rot(struct kit *k, const struct place *n, bool proven)
{
    static const size_t bytes[] = { 0, 8, 40, 70, 104, 130 };
    unsigned char kept[BLOCK], *data = n->file->data + n->at;
    assert_true(n->length <= BLOCK);
    memcpy(kept, data, BLOCK);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        data[bytes[i]] ^= 4;
        assert_int_equal(look(k, "rot, and the header of the next batch").opens, !proven);
        memcpy(data, kept, BLOCK);
    }
    memset(data, 0, BLOCK);
    assert_int_equal(look(k, "a lost write, and the header of the next batch").opens, !proven);
    memcpy(data, kept, BLOCK);
}

static void placed_before(struct kit *k)
{
    kit_open(k);
    assert_int_equal(kit_place(k, "pay", "room", "guest", DAY), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_get(k, HF_GET_REGISTER, "large"), HF_NOT_KNOWN);
    kit_close(k);
}

static void a_torn_batch_is_the_end_and_its_header_proves_those_before(void **state)
{
    (void)state;
    for (int next = 0; next < 2; next++)
        for (size_t sectors = 1; sectors < LARGE / SECTOR; sectors += 13) {
            struct kit *k = story(next);
            tear(sectors);
            struct place n = place_of_batch(&files, place_of_batch(&files, 0).sequence - 1);
            /* By itself it is what a power cut leaves. */
            assert_true(look(k, "a torn batch").opens);
            files_put(&files, k->dir);
            placed_before(k);
            rot(k, &n, true);
            /* Nothing of it was changed by the starts that were refused. */
            files_put(&files, k->dir);
            placed_before(k);
            story_end(k);
        }
}

/* The header of a segment is durable before its first batch is written. The power went between the
 * two. */
static void the_header_of_the_next_segment_proves_those_before(void **state)
{
    (void)state;
    struct kit *k = story(true);
    struct place last = place_of_batch(&files, 0), n = place_of_batch(&files, last.sequence - 1);
    memset(last.file->data + BLOCK, 0, last.file->size - BLOCK);
    assert_true(look(k, "the header alone").opens);
    files_put(&files, k->dir);
    placed_before(k);
    rot(k, &n, true);
    /* Without it nothing proves that N was there: a batch that was cut short looks the same. */
    memset(last.file->data, 0, BLOCK);
    rot(k, &n, false);
    story_end(k);
}

/* Every segment behind the first is gone. */
static void first_alone(void)
{
    for (size_t i = 0; i < files.count;)
        if (file_ends(&files.list[i], ".log") &&
            strcmp(files.list[i].name, "journal-00000001.log") != 0) {
            free(files.list[i].data);
            files.list[i] = files.list[--files.count];
        } else
            i++;
}

/* One bit of the newest segment's header rotted. Its first batch is whole and was acknowledged: it
 * was dropped as if a crash had torn both. So too if there is but one segment, and the key is lost
 * with its header. */
static void a_first_batch_without_its_header_is_damage(void **state)
{
    (void)state;
    for (int next = 0; next < 2; next++) {
        struct kit *k = story(next);
        struct place last = place_of_batch(&files, next ? 0 : 1);
        assert_int_equal(last.at, BLOCK);
        if (!next) { /* the first batch alone */
            memset(last.file->data + 2 * BLOCK, 0, last.file->size - 2 * BLOCK);
            first_alone();
            last = place_of_batch(&files, 1);
        }
        for (size_t at = 0; at < 160; at += 3) {
            last.file->data[at] ^= 1;
            assert_false(look(k, "a bit of the newest segment's header").opens);
            last.file->data[at] ^= 1;
        }
        unsigned char kept[BLOCK];
        memcpy(kept, last.file->data, BLOCK);
        memset(last.file->data, 0, BLOCK);
        assert_false(look(k, "no header").opens);
        memcpy(last.file->data, kept, BLOCK);
        assert_true(look(k, "as it was").opens);
        story_end(k);
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

/* The process was killed while it wrote to the second segment; then the files of that one and of
 * those that were prepared got lost. fails: so often the note of the segment cannot be written. */
static void newest_lost(int fails)
{
    const uint64_t second_ns = UINT64_C(1000000000);
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = SEGMENT;
    k->options.keep_plain = true;
    kit_open(k);
    write_large(k, LARGER);
    kit_settle(k);
    atomic_store(&notes_fail, fails);
    k->io.before = fail_notes;
    assert_int_equal(kit_resource(k, "room", 2), HF_OK);
    for (int i = 0; i < 12; i++)
        assert_int_equal(kit_write(k, 1, 3000, 1), HF_OK);
    for (int i = 0; i <= fails; i++) {
        kit_settle(k);
        atomic_fetch_add(&k->io.later_ns, 2 * second_ns);
    }
    k->io.before = NULL;
    files_load(&files, k->dir);
    kit_close(k);
    assert_true(look(k, "after a kill").opens);
    first_alone();
    assert_false(look(k, "without its newest segment").opens);
    story_end(k);
}

static void the_file_of_the_newest_segment_does_not_get_lost_unnoticed(void **state)
{
    (void)state;
    newest_lost(0);
    newest_lost(2);
}

/* What looks like the header of a later batch and has no right tag may stand in a client's
 * payload. */
static void a_header_without_its_tag_proves_nothing(void **state)
{
    (void)state;
    struct kit *k = story(false);
    struct place last = place_of_batch(&files, 0), n = place_of_batch(&files, last.sequence - 1);
    tear(1);
    last.file->data[last.at + 104] ^= 1;
    rot(k, &n, false);
    story_end(k);
}

/* A batch was torn at the begin of a segment. The start found the end before it, and cleared it;
 * then the power went before the zeros were on the disk. The store has gone on in the segment
 * before, with batches that were small enough. However much of the torn one is back, it has no
 * higher sequence than what is looked for, and proves nothing. */
static void what_a_clearing_has_left_proves_nothing(void **state)
{
    (void)state;
    static const size_t left[] = { 0, SECTOR, BLOCK, BLOCK + SECTOR, 2 * BLOCK };
    struct kit *k = story(true);
    static unsigned char torn[SEGMENT];
    char name[256];
    tear(20);
    struct place last = place_of_batch(&files, 0);
    assert_true(last.file->size <= sizeof torn);
    memcpy(torn, last.file->data, last.file->size);
    snprintf(name, sizeof name, "%s", last.file->name);
    uint64_t sequence = last.sequence;
    files_put(&files, k->dir);
    files_free(&files);
    kit_open(k);
    for (int i = 0; i < 3; i++)
        assert_int_equal(kit_write(k, 1, 100, 1), HF_OK);
    kit_close(k);
    kit_remove(k, "closed");
    files_load(&files, k->dir);
    struct file *stale = files_find(&files, name);
    assert_int_equal(place_of_batch(&files, 0).sequence, sequence + 2);
    assert_true(place_of_batch(&files, 0).file != stale);
    for (uint64_t n = sequence; n <= sequence + 2; n++)
        for (size_t from = 0; from < sizeof left / sizeof *left; from++) {
            /* The newest batches are not there yet. */
            memset(stale->data, 0, stale->size);
            struct place end = place_of_batch(&files, n);
            unsigned char *kept = malloc(end.file->size);
            memcpy(kept, end.file->data, end.file->size);
            memset(end.file->data + end.at + (n == sequence ? 0 : end.length / 2), 0,
                   end.file->size - end.at - (n == sequence ? 0 : end.length / 2));
            memcpy(stale->data + left[from], torn + left[from], stale->size - left[from]);
            assert_true(look(k, "a torn batch is back").opens);
            memcpy(end.file->data, kept, end.file->size);
            free(kept);
        }
    memset(stale->data, 0, stale->size);
    story_end(k);
}

/* The disk put the last batch, or the header of its segment, onto the one before. */
static void the_next_batch_in_its_place(void **state)
{
    (void)state;
    for (int next = 0; next < 2; next++) {
        struct kit *k = story(next);
        struct place last = place_of_batch(&files, 0),
                     before = place_of_batch(&files, last.sequence - 1);
        size_t size = next ? BLOCK : last.length;
        unsigned char *from = last.file->data + (next ? 0 : last.at);
        assert_true(before.length <= BLOCK);
        unsigned char *moved = malloc(size);
        memcpy(moved, from, size);
        memset(last.file->data + (next ? 0 : last.at), 0, last.file->size - (next ? 0 : last.at));
        memcpy(before.file->data + before.at, moved, size);
        free(moved);
        assert_false(look(k, "a batch on the place of another").opens);
        story_end(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_batch_in_its_place),
        cmocka_unit_test(a_torn_batch_is_the_end_and_its_header_proves_those_before),
        cmocka_unit_test(the_header_of_the_next_segment_proves_those_before),
        cmocka_unit_test(a_first_batch_without_its_header_is_damage),
        cmocka_unit_test(the_file_of_the_newest_segment_does_not_get_lost_unnoticed),
        cmocka_unit_test(a_header_without_its_tag_proves_nothing),
        cmocka_unit_test(what_a_clearing_has_left_proves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

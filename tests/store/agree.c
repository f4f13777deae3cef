/* One definition of damage (doc/FORMAT.md): a store is changed in many ways, and each time the
 * start refuses it exactly if the audit calls it damaged. Once there were 155 changes, among them
 * garbage behind the end and a cut in a segment's unused tail, that kept a store from opening while
 * its audit said that all was well; and a change before the snapshot, with its CRC put right, that
 * was served and that only the audit saw. */
#include "store/kit/agree.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

enum { BLOCK = 4096, SECTOR = 512 };

static struct files files;
static struct hf_sipkey seal;

static bool is_plain(const struct file *f)
{
    return strstr(f->name, "journal-") && strstr(f->name, ".log");
}

/* ---- The store ---- */

/* Several small segments, a snapshot in the middle, batches behind it. orderly: closed in order. */
static struct kit *story(bool orderly, bool snapshot)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = snapshot ? 65536 : UINT64_C(1) << 40;
    k->options.keep_plain = true;
    kit_open(k);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(kit_write(k, 1, 100 + 700 * (i % 3), 3), HF_OK);
    kit_settle(k);
    k->options.snapshot_every_bytes = UINT64_C(1) << 40;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(kit_place(k, kit_key(k), "room", "guest", 600000),
                         i == 0 ? HF_OK : HF_RESOURCE_UNAVAILABLE);
    if (!orderly) {
        atomic_store(&k->io.fail_write, 1);
        atomic_store(&k->io.torn, 200); /* the rest of the batch is not zeros */
        assert_int_equal(kit_write(k, 1, 3000, 1), HF_INDETERMINATE);
    }
    kit_close(k);
    files_load(&files, k->dir);
    for (size_t i = 0; i < files.count; i++)
        if (strcmp(files.list[i].name, "journal-00000001.log") == 0)
            seal = (struct hf_sipkey){ hf_get64(files.list[i].data + 104),
                                       hf_get64(files.list[i].data + 112) };
    return k;
}

/* ---- Changes ---- */

/* Somebody who has the files has the secret, too: make the batch that `at` lies in right again. */
static void reseal(unsigned char *data, size_t size, size_t at)
{
    size_t b = at / BLOCK * BLOCK;
    while (b >= BLOCK && memcmp(data + b, "HFB2", 4) != 0)
        b -= BLOCK;
    if (b < BLOCK)
        return;
    size_t length = hf_get32(data + b + 4);
    if (length < 112 || length > size - b)
        return;
    for (size_t e = b + 112; e + 8 < b + length;) {
        size_t n = hf_get32(data + e);
        if (n < 8 || n > b + length - e)
            break;
        hf_put32(data + e + 4, hf_crc32c(0, data + e + 8, n - 8));
        e += n;
    }
    jw_entries_tag(&seal, data + b, length);
    hf_put64(data + b + 104, hf_siphash(&seal, hf_mem(data + b, 104), hf_mem(NULL, 0)));
}

enum change {
    FLIP,
    FLIP_SEALED,
    ZERO_SECTOR,
    NOISE_SECTOR,
    COPY_BLOCK,
    CUT,
    GROW,
    HEAD_BYTE,
    HEAD_SEALED,
    CHANGES
};

static const char *const changes[] = { "a flipped bit",        "a flipped bit, sealed again",
                                       "a sector of zeros",    "a sector of garbage",
                                       "a block copied",       "a cut",
                                       "bytes added",          "a byte of the first block changed",
                                       "a header sealed again" };

/* Change one plain segment. */
static void change_one(struct kit *k, uint64_t *random)
{
    struct file *f;
    do
        f = &files.list[test_below(random, files.count)];
    while (!is_plain(f));
    enum change how = (enum change)test_below(random, CHANGES);
    unsigned char *data = calloc(1, f->size + 2 * BLOCK);
    size_t size = f->size, at = test_below(random, size);
    /* Most of a segment is unused: look at the used part more often. */
    if (test_below(random, 4) > 0)
        at = test_below(random, 8 * BLOCK);
    memcpy(data, f->data, size);
    switch (how) {
    case FLIP: data[at] ^= (unsigned char)(1 << test_below(random, 8)); break;
    case FLIP_SEALED:
        data[at] ^= (unsigned char)(1 << test_below(random, 8));
        reseal(data, size, at);
        break;
    case ZERO_SECTOR: memset(data + at / SECTOR * SECTOR, 0, SECTOR); break;
    case NOISE_SECTOR:
        for (size_t i = 0; i < SECTOR; i++)
            data[at / SECTOR * SECTOR + i] = (unsigned char)test_random(random);
        break;
    case COPY_BLOCK: {
        size_t from = test_below(random, 8) * BLOCK;
        memmove(data + at / BLOCK * BLOCK, data + from, BLOCK);
        break;
    }
    case CUT: size = at; break;
    case GROW: size += test_below(random, 3) ? 1 + test_below(random, BLOCK) : BLOCK; break;
    case HEAD_BYTE: data[at % BLOCK] ^= (unsigned char)(1 + test_below(random, 255)); break;
    case HEAD_SEALED:
        data[16 + at % 136] ^= 1;
        hf_put64(data + 152,
                 hf_siphash(&(struct hf_sipkey){ hf_get64(data + 104), hf_get64(data + 112) },
                            hf_mem(data, 152), hf_mem(NULL, 0)));
        break;
    case CHANGES: break;
    }
    files_put(&files, k->dir);
    file_write(k->dir, f->name, data, size);
    agree(k, changes[how], f->name, at);
    free(data);
}

static int rounds(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0 ? 1500 : 250;
}

static void changed(bool orderly, bool snapshot)
{
    struct kit *k = story(orderly, snapshot);
    uint64_t random = test_seed("agree", 13 + (uint64_t)orderly * 2 + snapshot);
    files_put(&files, k->dir);
    agree(k, "nothing", "it", 0);
    for (int i = 0; i < rounds(); i++)
        change_one(k, &random);
    files_free(&files);
    kit_free(k);
}

static void start_and_audit_agree_after_a_close(void **state)
{
    (void)state;
    changed(true, false);
}

static void start_and_audit_agree_after_a_crash(void **state)
{
    (void)state;
    changed(false, false);
}

static void start_and_audit_agree_behind_a_snapshot(void **state)
{
    (void)state;
    changed(true, true);
}

static void start_and_audit_agree_behind_a_snapshot_after_a_crash(void **state)
{
    (void)state;
    changed(false, true);
}

/* A byte of an entry before the snapshot, sealed again: only the chain tells, and the start looks
 * at it. */
static void sealed_change_before_the_snapshot_is_refused(void **state)
{
    (void)state;
    struct kit *k = story(false, true);
    struct hf_error why;
    assert_int_equal(kit_files(k, ".snap"), 1);
    for (size_t i = 0; i < files.count; i++) {
        if (strcmp(files.list[i].name, "journal-00000001.log") != 0)
            continue;
        files_put(&files, k->dir);
        unsigned char *data = files.list[i].data;
        size_t at =
            2 * BLOCK + 112 + 120; /* in the second batch's first entry, behind its fixed part */
        data[at] ^= 1;
        reseal(data, files.list[i].size, at);
        file_write(k->dir, files.list[i].name, data, files.list[i].size);
        assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
        k->db = NULL;
        assert_non_null(strstr(why.text, "chain"));
        break;
    }
    files_free(&files);
    kit_free(k);
}

/* A segment of another store at the end: it is refused, and not taken for a torn one and
 * cleared. */
static void a_segment_of_another_store_is_refused(void **state)
{
    (void)state;
    struct kit *k = story(false, false);
    struct kit *other = kit_make();
    struct hf_error why;
    kit_leave(other);
    other->options.segment_max_bytes = k->options.segment_max_bytes;
    other->options.keep_plain = true;
    kit_open(other);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(kit_write(other, 1, 2000, 3), HF_OK);
    kit_close(other);
    size_t last = 0;
    for (size_t i = 0; i < files.count; i++)
        if (is_plain(&files.list[i]) && memcmp(files.list[i].data, "HOLDSEG1", 8) == 0 &&
            (last == 0 || strcmp(files.list[i].name, files.list[last - 1].name) > 0))
            last = i + 1;
    assert_true(last > 0);
    char name[sizeof files.list[0].name];
    memcpy(name, files.list[last - 1].name, sizeof name);
    files_put(&files, k->dir);
    files_free(&files);
    files_load(&files, other->dir);
    for (size_t i = 0; i < files.count; i++)
        if (strcmp(files.list[i].name, name) == 0)
            file_write(k->dir, name, files.list[i].data, files.list[i].size);
    agree(k, "a foreign segment", name, 0);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    assert_non_null(strstr(why.text, "belongs to another store"));
    files_free(&files);
    kit_free(other);
    kit_free(k);
}

/* The newest batch says a time that no clock shows. Nothing follows it that could run back. */
static void a_time_that_no_clock_shows_is_damage(void **state)
{
    (void)state;
    static const uint64_t times[] = { INT64_MAX, INT64_MAX / 2, INT64_MAX / 4 + 1 };
    struct kit *k = story(true, false);
    struct file *f = NULL;
    size_t at = 0;
    for (size_t i = 0; i < files.count; i++)
        for (size_t b = BLOCK; is_plain(&files.list[i]) && b < files.list[i].size; b += BLOCK)
            if (memcmp(files.list[i].data + b, "HFB2", 4) == 0 &&
                (!f || hf_get64(files.list[i].data + b + 8) > hf_get64(f->data + at + 8))) {
                f = &files.list[i];
                at = b;
            }
    assert_non_null(f);
    kit_remove(k, "closed");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        hf_put64(f->data + at + 24, times[i]);
        reseal(f->data, f->size, at);
        file_write(k->dir, f->name, f->data, f->size);
        struct agreed got = agree(k, "a time that no clock shows", f->name, at + 24);
        assert_false(got.opens);
        assert_int_equal(got.verdict, HF_AUDIT_DAMAGED);
    }
    files_free(&files);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_and_audit_agree_after_a_close),
        cmocka_unit_test(start_and_audit_agree_after_a_crash),
        cmocka_unit_test(start_and_audit_agree_behind_a_snapshot),
        cmocka_unit_test(start_and_audit_agree_behind_a_snapshot_after_a_crash),
        cmocka_unit_test(sealed_change_before_the_snapshot_is_refused),
        cmocka_unit_test(a_segment_of_another_store_is_refused),
        cmocka_unit_test(a_time_that_no_clock_shows_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

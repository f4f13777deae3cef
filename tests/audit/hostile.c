/* Files that change while they are read, and files that an enemy wrote. */
#include "audit/kit/journal_story.h"
#include "engine/kit/engine.h"
#include "support/test.h"

#include "audit/audit.h"
#include "base/bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST "journal-00000001.log"
#define PACKED "journal-00000001.zst"

static struct story story;
static struct hf_audit_report report;
static struct hf_error why;

static int setup(void **state)
{
    (void)state;
    story_open_sized(&story, 32 * 1024); /* seven batches a segment */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&report);
    story_remove(&story);
    return 0;
}

static void run(void)
{
    story_close(&story);
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(story.dir, NULL, &report, &why), HF_OK);
}

/* n refused requests, one a batch. */
static void tell(unsigned n)
{
    static char keys[64][16];
    for (unsigned i = 0; i < n; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
        story_refuse_place(&story, keys[i], "room", "ann", HF_RESOURCE_UNAVAILABLE);
        story_commit(&story);
    }
}

/* A store at work: its files change under the reader. */
static void replaced_while_reading(void **state)
{
    (void)state;
    struct hf_audit_reader *reader;
    struct hf_audit_batch batch;
    size_t size;
    tell(20);
    story_close(&story);
    assert_int_equal(hf_audit_reader_open(story.dir, &reader, &why), HF_OK);
    assert_int_equal(hf_audit_reader_next(reader, &batch, &why), HF_AUDIT_BATCH);
    /* Segment 1 is compressed and its file used again, in place, for a new segment. */
    char from[512], to[512];
    unsigned char *old = jw_load(story.dir, FIRST, &size);
    snprintf(from, sizeof from, "%s/%s", story.dir, FIRST);
    snprintf(to, sizeof to, "%s/journal-00000009.log", story.dir);
    assert_int_equal(rename(from, to), 0);
    jw_save(story.dir, FIRST, old, size);
    jw_pack(&story.w, 1);
    memset(old, 0, size);
    int fd = open(to, O_WRONLY);
    assert_int_equal(write(fd, old, size), (ssize_t)size);
    close(fd);
    free(old);
    unsigned count = 1;
    while (hf_audit_reader_next(reader, &batch, &why) == HF_AUDIT_BATCH) {
        assert_true(batch.chain_fits);
        count++;
    }
    assert_int_equal(count, 21);
    hf_audit_reader_close(reader);
}

static void grows_while_reading(void **state)
{
    (void)state;
    struct hf_audit_reader *reader;
    struct hf_audit_batch batch;
    tell(2);
    jw_save(story.dir, FIRST, story.w.segment, story.w.segment_size);
    assert_int_equal(hf_audit_reader_open(story.dir, &reader, &why), HF_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_audit_reader_next(reader, &batch, &why), HF_AUDIT_BATCH);
    assert_int_equal(hf_audit_reader_next(reader, &batch, &why), HF_AUDIT_END);
    story_guard(&story, "g", 1000);
    story_commit(&story);
    jw_save(story.dir, FIRST, story.w.segment, story.w.segment_size);
    assert_int_equal(hf_audit_reader_next(reader, &batch, &why), HF_AUDIT_BATCH);
    assert_int_equal(hf_audit_reader_next(reader, &batch, &why), HF_AUDIT_END);
    hf_audit_reader_close(reader);
}

/* Bytes at random, with all CRCs made right again so that they get deep: nothing may be read out of
 * bounds (the sanitizers watch) and nothing may hang. */
static void hostile_bytes(void **state)
{
    (void)state;
    size_t size;
    char dir[256];
    uint64_t seed = 88172645463325252U;
    story_remove(&story);
    story_open(&story);
    story_tell_all(&story);
    story_close(&story);
    unsigned char *right = jw_load(story.dir, FIRST, &size);
    unsigned char *wrong = malloc(size);
    assert_non_null(wrong);
    jw_directory(dir);
    for (int round = 0; round < 1500; round++) {
        memcpy(wrong, right, size);
        for (int i = 0; i < 1 + round % 4; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            size_t block = 1 + seed % (story.w.sequence);
            size_t at = block * 4096 + 64 + (seed >> 20) % 400;
            static const unsigned char odd[] = { 0, 1, 0x7f, 0x80, 0xff, 254, 255, 9 };
            wrong[at] = odd[seed >> 40 & 7];
            jw_fix(wrong + block * 4096, size - block * 4096);
        }
        jw_save(dir, FIRST, wrong, size);
        hf_audit_report_free(&report);
        assert_int_equal(hf_audit_run(dir, NULL, &report, &why), HF_OK);
        FILE *sink = fopen("/dev/null", "w");
        assert_true(hf_audit_print_json(&report, sink));
        assert_true(hf_audit_print_text(&report, sink));
        fclose(sink);
    }
    free(right);
    free(wrong);
    jw_remove(dir);
}

static void hostile_lengths(void **state)
{
    (void)state;
    size_t size;
    tell(2);
    story_close(&story);
    unsigned char *data = jw_load(story.dir, FIRST, &size);
    static const uint32_t lengths[] = { 0,   1,    79,         80,         111,       112,
                                        113, 4096, 0x7fffffff, 0xffffffff, 0xfffff000 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char *b = data + 2 * 4096;
        unsigned char kept[128];
        memcpy(kept, b, sizeof kept);
        hf_put32(b + 4, lengths[i]); /* of the batch */
        jw_fix_tag(b);
        jw_save(story.dir, FIRST, data, size);
        run();
        memcpy(b, kept, sizeof kept);
        hf_put32(b + 112, lengths[i]); /* of its first entry */
        jw_fix(b, size - 2 * 4096);
        jw_save(story.dir, FIRST, data, size);
        run();
        assert_int_not_equal(report.verdict, HF_AUDIT_OK);
        memcpy(b, kept, sizeof kept);
    }
    hf_put64(data + 32, UINT64_MAX - 4095); /* of the segment */
    jw_fix_head(data);
    jw_save(story.dir, FIRST, data, size);
    run();
    free(data);
}

/* The same for a compressed segment: its header and frame table, with their CRC made right
 * again. */
static void hostile_packs(void **state)
{
    (void)state;
    size_t size;
    uint64_t seed = 2463534242U;
    tell(20);
    story_close(&story);
    jw_pack(&story.w, 1);
    unsigned char *right = jw_load(story.dir, PACKED, &size);
    unsigned char *wrong = malloc(size);
    assert_non_null(wrong);
    for (int round = 0; round < 500; round++) {
        memcpy(wrong, right, size);
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        static const unsigned char odd[] = { 0, 1, 0x7f, 0x80, 0xff, 2, 0x10, 9 };
        wrong[8 + seed % 72] = odd[seed >> 40 & 7];
        uint64_t table = 16 * (uint64_t)hf_get32(wrong + 40);
        if (table <= size - 48)
            hf_put32(wrong + 44, hf_crc32c(hf_crc32c(0, wrong, 44), wrong + 48, table));
        jw_save(story.dir, PACKED, wrong, size);
        hf_audit_report_free(&report);
        enum hf_status st = hf_audit_run(story.dir, NULL, &report, &why);
        assert_true(st == HF_OK || st == HF_STORE_NEWER);
        if (st == HF_OK && report.batches < 21)
            assert_int_equal(report.verdict, HF_AUDIT_DAMAGED);
    }
    free(right);
    free(wrong);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The audit holds holds.idx against the journal, and tells what is wrong with it without calling
 * the history damaged. */

enum { HOLDS = 1100, PARTS = 3, BLOCK = 4096 };

static char ids[HOLDS][HF_ID_SIZE];
static struct kit *k;

static void snapshot_make(void)
{
    uint64_t had = kit_stats(k).snapshots;
    kit_settle(k);
    for (int i = 0; kit_stats(k).snapshots == had; i++) {
        assert_true(i < 100);
        assert_int_equal(kit_write(k, 20, 1000, 4), HF_OK);
        kit_settle(k);
    }
}

static int setup_index(void **state)
{
    (void)state;
    k = kit_make();
    k->options.snapshot_every_bytes = 65536;
    kit_reopen(k);
    assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
    for (int i = 0; i < HOLDS; i++)
        kit_held(k, "hall", DAY, ids[i]);
    snapshot_make();
    return 0;
}

static int teardown_index(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static void audit(void)
{
    struct hf_error problem;
    hf_audit_report_free(&report);
    assert_int_equal(hf_audit_run(k->dir, NULL, &report, &problem), HF_OK);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
}

static void file_do(void *data, size_t size, off_t at, bool put)
{
    char path[512];
    snprintf(path, sizeof path, "%s/holds.idx", k->dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(put ? pwrite(fd, data, size, at) : pread(fd, data, size, at), size);
    close(fd);
}

/* A place that is in use: a snapshot begins with the first ones. */
static off_t place_of(int part)
{
    return (off_t)(2 * part - 1) * BLOCK;
}

static void a_good_index_agrees(void **state)
{
    (void)state;
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    /* Holds that changed since are not looked for in the file, with or without the store open. */
    for (int i = 0; i < HOLDS; i += 50)
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
    audit();
    assert_int_equal(report.index_wrong, 0);
    kit_close(k);
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    kit_open(k);
}

static void a_wrong_index_is_told_and_is_no_damage(void **state)
{
    (void)state;
    unsigned char c, page[BLOCK];
    for (int part = 1; part <= PARTS; part++) {
        file_do(&c, 1, place_of(part) + 100, false);
        c ^= 1;
        file_do(&c, 1, place_of(part) + 100, true);
        audit();
        assert_int_equal(report.index_parts, PARTS);
        assert_int_equal(report.index_wrong, part);
        assert_int_equal(report.index_wrong_at, place_of(1));
    }
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_true(hf_audit_print_text(&report, out));
    fclose(out);
    assert_non_null(strstr(
        text, "damaged: 3 of its 3 parts do not agree with the journal, the first at byte 4096"));
    free(text);
    kit_reopen(k); /* rebuilt */
    kit_settle(k);
    audit();
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, 0);
    /* A whole page that was right once. */
    file_do(page, sizeof page, place_of(1), false);
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < HOLDS; i += 50)
            assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
        snapshot_make();
    }
    file_do(page, sizeof page, place_of(1), true);
    audit();
    assert_int_equal(report.index_wrong, 1);
    /* The header. */
    kit_reopen(k);
    kit_settle(k);
    memset(page, 0, sizeof page);
    file_do(page, sizeof page, 0, true);
    audit();
    assert_int_equal(report.index_wrong, PARTS);
    /* None at all. */
    kit_close(k);
    kit_remove(k, "holds.idx");
    audit();
    assert_true(report.index_missing);
    assert_int_equal(report.index_parts, PARTS);
    assert_int_equal(report.index_wrong, PARTS);
    /* One that cannot be read: the start makes it anew, and the audit tells, and judges everything
     * else. */
    char path[512];
    snprintf(path, sizeof path, "%s/holds.idx", k->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    audit();
    assert_false(report.index_missing);
    assert_int_equal(report.index_wrong, PARTS);
    assert_int_equal(rmdir(path), 0);
    kit_open(k);
    hf_audit_report_free(&report);
}

#define INDEX(name) cmocka_unit_test_setup_teardown(name, setup_index, teardown_index)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(replaced_while_reading),
        T(grows_while_reading),
        T(hostile_bytes),
        T(hostile_lengths),
        T(hostile_packs),
        INDEX(a_good_index_agrees),
        INDEX(a_wrong_index_is_told_and_is_no_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

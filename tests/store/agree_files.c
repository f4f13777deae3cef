/* The same definition of damage as in agree.c, for all the files that a store has: compressed
 * segments, the snapshot, the note of an orderly close and holds.idx. Each is flipped, cut, made
 * longer, taken away and put back as it once was. The start refuses the store exactly if the audit
 * calls it damaged; and what the start makes anew by itself the audit names without calling it
 * damage. */
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/agree.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#include <sys/stat.h>

#include <unistd.h>
#include <zstd.h>

enum { BLOCK = 4096, SECTOR = 512, FRAME = 131072, HOLDS = 1100 };
enum { SNAP_HEAD = 16, SNAP_NOW = SNAP_HEAD + 80, SNAP_END = 72, PACK_HEAD = 48 };

static struct files older, files; /* of one store, at two times */
static struct hf_sipkey seal;

/* ---- The store ---- */

static void place_all(struct kit *k)
{
    static struct hf_request requests[HOLDS];
    static char keys[HOLDS][16];
    for (int i = 0; i < HOLDS; i++) {
        snprintf(keys[i], sizeof keys[i], "place-%d", i);
        requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .key = hf_str(keys[i]),
                                           .place_hold = { .resource = hf_str("hall"),
                                                           .requester = hf_str("guest"),
                                                           .duration_ms = DAY } };
    }
    assert_int_equal(hf_do_many(k->db, requests, NULL, HOLDS), HF_OK);
}

/* Write until there is another snapshot, and let every key's window close, so that segments are
 * compressed. */
static void age(struct kit *k, int64_t at)
{
    uint64_t had = kit_stats(k).snapshots;
    for (int i = 0; kit_stats(k).snapshots == had; i++) {
        assert_true(i < 200);
        assert_int_equal(kit_write(k, 4, 3000, 3), HF_OK);
        kit_settle(k);
    }
    kit_at(k, at);
    assert_int_equal(kit_write(k, 4, 3000, 3), HF_OK);
    kit_settle(k);
    kit_settle(k);
}

/* Where the seal key stands in a segment's header; a compressed one holds it in its first frame. */
static void seal_find(void)
{
    unsigned char *plain = malloc(FRAME);
    struct file *f = files_find(&files, "journal-00000001.zst");
    assert_non_null(f);
    size_t at = hf_get64(f->data + PACK_HEAD), size = hf_get32(f->data + PACK_HEAD + 8);
    assert_int_equal(ZSTD_decompress(plain, FRAME, f->data + at, size), FRAME);
    seal = (struct hf_sipkey){ hf_get64(plain + 104), hf_get64(plain + 112) };
    free(plain);
}

/* Compressed segments, plain ones, a snapshot, three parts of holds.idx. behind: batches follow the
 * snapshot. orderly: closed in order. */
static struct kit *story(bool orderly, bool behind)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 262144;
    k->options.snapshot_every_bytes = 65536;
    k->options.idempotency_window_ms = 1000;
    kit_open(k);
    assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
    place_all(k);
    age(k, 10 * SECOND);
    kit_close(k);
    files_load(&older, k->dir);
    kit_open(k);
    for (int i = 0; i < 4; i++)
        age(k, (20 + i * 10) * SECOND);
    uint64_t had = kit_stats(k).snapshots;
    for (int i = 0; !behind && kit_stats(k).snapshots == had; i++) {
        assert_true(i < 200);
        assert_int_equal(kit_write(k, 4, 3000, 3), HF_OK);
        kit_settle(k);
    }
    if (behind)
        assert_int_equal(kit_write(k, 1, 500, 3), HF_OK);
    if (!orderly) {
        atomic_store(&k->io.fail_write, 1);
        atomic_store(&k->io.torn, 200); /* the rest of the batch is not zeros */
        assert_int_equal(kit_write(k, 1, 3000, 1), HF_INDETERMINATE);
    }
    kit_close(k);
    files_load(&files, k->dir);
    assert_true(kit_files(k, ".zst") >= 2 && kit_files(k, ".snap") == 1 &&
                kit_files(k, "holds.idx") == 1);
    seal_find();
    return k;
}

static void story_end(struct kit *k)
{
    files_free(&files);
    files_free(&older);
    kit_free(k);
}

/* ---- Sealing again, by hands that have all the keys ---- */

static void closed_seal(unsigned char *data)
{
    hf_put32(data + 60, hf_crc32c(0, data, 60));
    hf_put32(data + 132, hf_crc32c(0, data, 132));
}

static void snapshot_seal(unsigned char *data, size_t size)
{
    for (size_t at = 0; at + SNAP_HEAD <= size;) {
        size_t n = hf_get32(data + at + 4);
        if (n > size - at - SNAP_HEAD)
            return; /* its own length was changed */
        if (at + SNAP_HEAD + n == size && n == SNAP_END)
            hf_sha256_of(data, at, data + at + SNAP_HEAD + 40);
        uint32_t crc = hf_crc32c(0, data + at, 12);
        hf_put32(data + at + 12, hf_crc32c(crc, data + at + SNAP_HEAD, n));
        at += SNAP_HEAD + n;
    }
}

static void pack_seal(unsigned char *data, size_t size)
{
    size_t frames = hf_get32(data + 40);
    if (frames > (size - PACK_HEAD) / 16)
        return;
    uint32_t crc = hf_crc32c(0, data, 44);
    hf_put32(data + 44, hf_crc32c(crc, data + PACK_HEAD, frames * 16));
}

/* The batch that byte `at` of a frame lies in, as far as it is in this frame. */
static void batch_seal(unsigned char *plain, size_t at)
{
    size_t b = at / BLOCK * BLOCK;
    while (b >= BLOCK && memcmp(plain + b, "HFB2", 4) != 0)
        b -= BLOCK;
    size_t length = b < BLOCK ? 0 : hf_get32(plain + b + 4);
    if (length < 112 || length > FRAME - b)
        return;
    jw_entries_tag(&seal, plain + b, length);
    hf_put64(plain + b + 104, hf_siphash(&seal, hf_mem(plain + b, 104), hf_mem(NULL, 0)));
}

/* Change a byte inside a compressed segment's first frame, and compress it again: at the file's
 * end, where there is room. */
static size_t repack(unsigned char *data, size_t size, size_t at, bool sealed)
{
    unsigned char *plain = malloc(FRAME), *row = data + PACK_HEAD;
    at %= hf_get64(data + 32) < FRAME ? (size_t)hf_get64(data + 32) : FRAME;
    assert_int_equal(ZSTD_decompress(plain, FRAME, data + hf_get64(row), hf_get32(row + 8)), FRAME);
    plain[at] ^= 1;
    if (sealed)
        batch_seal(plain, at);
    size_t n = ZSTD_compress(data + size, ZSTD_compressBound(FRAME), plain, FRAME, 3);
    assert_false(ZSTD_isError(n));
    hf_put64(row, size);
    hf_put32(row + 8, (uint32_t)n);
    hf_put32(row + 12, hf_crc32c(0, data + size, n));
    pack_seal(data, size);
    free(plain);
    return size + n;
}

/* ---- Changes ---- */

enum change {
    FLIP,
    ZERO_SECTOR,
    NOISE_SECTOR,
    CUT,
    GROW,
    MISSING,
    OLD,
    SEALED,
    INSIDE,
    INSIDE_SEALED,
    CHANGES
};

static const char *const changes[] = { "a flipped bit",
                                       "a sector of zeros",
                                       "a sector of garbage",
                                       "a cut",
                                       "bytes added",
                                       "the file taken away",
                                       "the file as it once was",
                                       "a byte changed, sealed again",
                                       "a byte inside changed, compressed again",
                                       "a byte inside changed, sealed and compressed again" };

/* A place in the file: mostly where the few numbers are that say something of the others. */
static size_t place(const struct file *f, uint64_t *random)
{
    if (f->size == 0)
        return 0;
    switch (test_below(random, 4)) {
    case 0: return test_below(random, f->size < 160 ? f->size : 160);
    case 1: return f->size - 1 - test_below(random, f->size < 90 ? f->size : 90);
    default: return test_below(random, f->size);
    }
}

/* The file as it was at the earlier time: under its own name, or, of a snapshot, under that which
 * it had; of a segment that has been compressed since, beside it. False if there was none. */
static bool old_put(struct kit *k, const struct file *f, uint64_t *random)
{
    char name[sizeof f->name], path[1200];
    snprintf(name, sizeof name, "%s", f->name);
    if (file_ends(f, ".zst"))
        memcpy(strstr(name, ".zst"), ".log", 4);
    const struct file *was =
        file_ends(f, ".snap") ? files_last(&older, "snapshot-", ".snap") : files_find(&older, name);
    if (!was)
        return false;
    snprintf(path, sizeof path, "%s/%s", k->dir, f->name);
    if (strcmp(was->name, f->name) != 0 && test_below(random, 2))
        unlink(path);
    file_write(k->dir, was->name, was->data, was->size);
    return true;
}

static void sealed(const struct file *f, unsigned char *data, size_t size)
{
    if (file_ends(f, ".zst"))
        pack_seal(data, size);
    if (file_ends(f, ".snap"))
        snapshot_seal(data, size);
    if (file_ends(f, "closed"))
        closed_seal(data);
}

/* What the two must name, beside agreeing. */
static void named(const struct file *f, enum change how, size_t at, const struct agreed *got)
{
    if (!got->opens || how == SEALED)
        return;
    if (got->index_named != got->index_rebuilt)
        fail_msg("%s in %s at byte %zu: the audit names holds.idx: %d, the start rebuilds it: %d",
                 changes[how], f->name, at, got->index_named, got->index_rebuilt);
    if (got->snapshot_named != got->snapshot_left)
        fail_msg(
            "%s in %s at byte %zu: the audit names the snapshot: %d, the start does not use it: %d",
            changes[how], f->name, at, got->snapshot_named, got->snapshot_left);
    if (file_ends(f, "holds.idx") || file_ends(f, ".snap"))
        assert_int_equal(got->verdict, HF_AUDIT_OK);
}

static void change_one(struct kit *k, uint64_t *random)
{
    const struct file *f;
    do
        f = &files.list[test_below(random, files.count)];
    while (strcmp(f->name, "LOCK") == 0);
    enum change how = (enum change)test_below(random, file_ends(f, ".zst") ? CHANGES : INSIDE);
    unsigned char *data = calloc(1, f->size + 2 * BLOCK + ZSTD_COMPRESSBOUND(FRAME));
    size_t size = f->size, at = place(f, random);
    memcpy(data, f->data, size);
    files_put(&files, k->dir);
    switch (how) {
    case FLIP:
    case SEALED:
        data[at] ^= (unsigned char)(1 << test_below(random, 8));
        if (how == SEALED)
            sealed(f, data, size);
        break;
    case ZERO_SECTOR:
    case NOISE_SECTOR:
        for (size_t i = at / SECTOR * SECTOR; i < size && i < at / SECTOR * SECTOR + SECTOR; i++)
            data[i] = how == ZERO_SECTOR ? 0 : (unsigned char)test_random(random);
        break;
    case CUT: size = at; break;
    case GROW: size += 1 + test_below(random, 2 * BLOCK); break;
    case INSIDE:
    case INSIDE_SEALED: size = repack(data, size, at, how == INSIDE_SEALED); break;
    case MISSING:
    case OLD:
    case CHANGES: break;
    }
    if (how == MISSING)
        kit_remove(k, f->name);
    else if (how != OLD)
        file_write(k->dir, f->name, data, size);
    else if (!old_put(k, f, random))
        how = CHANGES;
    if (how != CHANGES) {
        struct agreed got = agree(k, changes[how], f->name, at);
        named(f, how, at, &got);
    }
    free(data);
}

static int rounds(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0 ? 800 : 250;
}

static void changed(bool orderly, bool behind)
{
    struct kit *k = story(orderly, behind);
    uint64_t random = test_seed("agree_files", 31 + (uint64_t)orderly * 2 + behind);
    files_put(&files, k->dir);
    struct agreed got = agree(k, "nothing", "it", 0);
    assert_true(got.opens && !got.index_named && !got.index_rebuilt && !got.snapshot_named &&
                !got.snapshot_left);
    for (int i = 0; i < rounds(); i++)
        change_one(k, &random);
    story_end(k);
}

static void all_files_after_a_close(void **state)
{
    (void)state;
    changed(true, true);
}

static void all_files_after_a_crash(void **state)
{
    (void)state;
    changed(false, true);
}

static void all_files_with_the_snapshot_at_the_end(void **state)
{
    (void)state;
    changed(true, false);
}

/* ---- Known ones ---- */

/* The snapshot says a later time than the batch behind it: nothing of the journal is wrong by
 * itself, and time runs back. */
static void a_snapshot_of_a_later_time_is_damage(void **state)
{
    (void)state;
    static const int64_t later[] = { 1, 3600000, INT64_MAX / 8, INT64_MAX / 2, INT64_MAX };
    for (int behind = 0; behind < 2; behind++) {
        struct kit *k = story(false, behind);
        struct file *f = files_last(&files, "snapshot-", ".snap");
        for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
            unsigned char *data = malloc(f->size);
            memcpy(data, f->data, f->size);
            int64_t now = (int64_t)hf_get64(data + SNAP_NOW);
            hf_put64(data + SNAP_NOW,
                     (uint64_t)(later[i] < INT64_MAX / 2 ? now + later[i] : later[i]));
            if (behind && later[i] == 1)
                hf_put64(data + SNAP_NOW, (uint64_t)now + 60000);
            snapshot_seal(data, f->size);
            files_put(&files, k->dir);
            file_write(k->dir, f->name, data, f->size);
            struct agreed got = agree(k, "a later time", f->name, SNAP_NOW);
            assert_int_equal(got.opens, !behind || later[i] >= INT64_MAX / 2);
            free(data);
        }
        story_end(k);
    }
}

/* The file of a compressed segment says another place than the segment in it. */
static void a_compressed_segment_of_another_place_is_damage(void **state)
{
    (void)state;
    struct kit *k = story(true, true);
    struct file *f = files_last(&files, "journal-", ".zst");
    f->data[24 + 1] ^= 0x10;
    pack_seal(f->data, f->size);
    files_put(&files, k->dir);
    assert_false(agree(k, "another place", f->name, 24).opens);
    story_end(k);
}

static void file_directory(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void file_directory_remove(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(rmdir(path), 0);
}

/* One definition of what is newer, damaged or unused, also in segments behind the end that nothing
 * leads to. */
static void segments_behind_the_end_are_judged_alike(void **state)
{
    (void)state;
    enum {
        ZEROS,
        NEWER,
        OTHER_MAGIC,
        GARBAGE_PACK,
        EMPTY_PACK,
        NEWER_PACK,
        OTHER_PACK,
        VERSION_0_PACK,
        DIRECTORY,
        WAYS
    };
    struct kit *k = story(true, true);
    static unsigned char data[262144];
    /* hole: those before it are not there, and that is damage, unless there is something else to
     * tell. */
    for (uint64_t turn = 1; turn <= 5; turn++)
        for (int how = 0; how < WAYS; how++) {
            uint64_t number = turn <= 3 ? turn : turn - 2;
            bool hole = turn > 3;
            char last[32], name[32];
            files_put(&files, k->dir);
            uint64_t at = strtoull(files_last(&files, "journal-", ".log")->name + 8, NULL, 10);
            memset(data, 0, sizeof data);
            for (uint64_t n = 1; n < number && !hole; n++) {
                snprintf(last, sizeof last, "journal-%08llu.log", (unsigned long long)(at + n));
                file_write(k->dir, last, data, sizeof data);
            }
            snprintf(name, sizeof name, "journal-%08llu.%s", (unsigned long long)(at + number),
                     how < GARBAGE_PACK ? "log" : "zst");
            memcpy(data,
                   how == OTHER_MAGIC  ? "HOLDSEG3"
                   : how == OTHER_PACK ? "HOLDZST3"
                   : how > EMPTY_PACK  ? "HOLDZST1"
                                       : "HOLDSEG1",
                   how == ZEROS ? 0 : 8);
            if (how == NEWER || how == NEWER_PACK)
                data[8] = 9;
            if (how == DIRECTORY)
                file_directory(k->dir, name);
            else
                file_write(k->dir, name, data,
                           how == EMPTY_PACK     ? 0
                           : how == GARBAGE_PACK ? 7
                                                 : sizeof data);
            struct agreed got = agree(k, "a segment behind the end", name, (size_t)how);
            assert_int_equal(got.opens, !hole && (how == ZEROS || how == OTHER_MAGIC));
            if (how == DIRECTORY)
                file_directory_remove(k->dir, name);
        }
    story_end(k);
}

/* A crash may tear the header of the last segment anywhere, also in its magic: that is no newer
 * format. Its first batch is not there then. */
static void a_torn_magic_is_no_newer_format(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.keep_plain = true;
    kit_open(k);
    struct file *last;
    do { /* until a segment has one batch */
        assert_int_equal(kit_write(k, 1, 3000, 1), HF_OK);
        kit_settle(k);
        files_free(&files);
        files_load(&files, k->dir);
        last = files_find(&files, "journal-00000002.log");
    } while (!last || last->data[0] == 0);
    kit_close(k);
    kit_remove(k, "closed");
    files_free(&files);
    files_load(&files, k->dir);
    last = files_find(&files, "journal-00000002.log");
    memset(last->data + BLOCK, 0, last->size - BLOCK);
    for (size_t at = 0; at < 8; at++) {
        last->data[at] ^= 2;
        files_put(&files, k->dir);
        assert_true(agree(k, "a torn magic", last->name, at).opens);
        last->data[at] ^= 2;
    }
    files_free(&files);
    kit_free(k);
}

/* The journal is gone, and a snapshot tells that there was one: that is no new store. */
static void a_snapshot_without_its_journal_is_refused(void **state)
{
    (void)state;
    for (int zeros = 0; zeros < 2; zeros++) {
        struct kit *k = kit_make();
        struct hf_error why;
        kit_leave(k);
        k->options.snapshot_every_bytes = 65536;
        kit_open(k);
        assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
        for (int i = 0; kit_files(k, ".snap") == 0; i++) {
            assert_true(i < 200);
            assert_int_equal(kit_write(k, 4, 3000, 3), HF_OK);
            kit_settle(k);
        }
        kit_close(k);
        kit_remove(k, "closed");
        files_load(&files, k->dir);
        for (size_t i = 0; i < files.count; i++) {
            if (!file_ends(&files.list[i], ".log"))
                continue;
            memset(files.list[i].data, 0, files.list[i].size);
            if (zeros)
                file_write(k->dir, files.list[i].name, files.list[i].data, files.list[i].size);
            else
                kit_remove(k, files.list[i].name);
        }
        agree(k, zeros ? "zeros" : "nothing", "the journal", 0);
        assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
        k->db = NULL;
        assert_non_null(strstr(why.text, "snapshot-"));
        files_free(&files);
        kit_free(k);
    }
}

/* What is not exactly the name of a file of a store is none, for both. */
static void only_exact_names_count(void **state)
{
    (void)state;
    static const char *const names[] = {
        "journal-+0000020.log",
        "journal- 0000020.log",
        "journal--0000020.log",
        "journal-00000020.log.bak",
        "journal-00000020.LOG",
        "journal-000000020.log",
        "journal-0000020.log",
        "journal-00000000.log",
        "journal-00000000.zst",
        "journal-0x000020.zst",
        "snapshot-00000000FFFFF000.snap",
        "snapshot-+000000fffff0000.snap",
        "snapshot-0x0000fffff00000.snap",
        "snapshot- 000000fffff0000.snap",
        "snapshot-0000fffff0000.snap",
    };
    struct kit *k = story(true, true);
    struct hf_error why;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        files_put(&files, k->dir);
        file_write(k->dir, names[i], "something else", 14);
        struct agreed got = agree(k, "a file", names[i], 0);
        if (!got.opens || got.snapshot_named || got.snapshot_left)
            fail_msg("%s: opens %d, named %d, left %d", names[i], got.opens, got.snapshot_named,
                     got.snapshot_left);
        /* And alone it is no store. */
        for (size_t f = 0; f < files.count; f++)
            kit_remove(k, files.list[f].name);
        file_write(k->dir, names[i], "something else", 14);
        k->options.no_create = true;
        assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_ABSENT);
        k->options.no_create = false;
    }
    story_end(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_files_after_a_close),
        cmocka_unit_test(all_files_after_a_crash),
        cmocka_unit_test(all_files_with_the_snapshot_at_the_end),
        cmocka_unit_test(a_snapshot_of_a_later_time_is_damage),
        cmocka_unit_test(a_compressed_segment_of_another_place_is_damage),
        cmocka_unit_test(segments_behind_the_end_are_judged_alike),
        cmocka_unit_test(a_torn_magic_is_no_newer_format),
        cmocka_unit_test(a_snapshot_without_its_journal_is_refused),
        cmocka_unit_test(only_exact_names_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

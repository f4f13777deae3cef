/* Damage that a start must see, and damage that fails only the requests that need the damaged
 * part. */
#include "engine/kit/engine.h"
#include "store/kit/agree.h"
#include "support/test.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "store/touch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What proves that the journal went further, or was another one, was not always looked at: a
 * snapshot that the start could not load, a note or a snapshot that could not be read, files that
 * only a store with batches has, a note of a batch before the newest. Then a start opened what was
 * damaged, dropped what had been acknowledged, and cleared the rest. */

enum { BLOCK = 4096, SNAP_HEAD = 16, SNAP_END = 72, OWNERS = 7, PASSED = 8 };

static struct files files;

/* A store with a snapshot, batches behind it, holds.idx and the note of an orderly close. */
static struct kit *story(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 131072;
    k->options.keep_plain = true;
    kit_open(k);
    for (int i = 0; kit_files(k, ".snap") == 0; i++) {
        assert_true(i < 400);
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "guest", DAY), HF_OK);
        assert_int_equal(kit_write(k, 1, 3000, 3), HF_OK);
        kit_settle(k);
    }
    assert_int_equal(kit_place(k, "last", "last", "guest", DAY), HF_OK);
    kit_close(k);
    files_load(&files, k->dir);
    assert_true(kit_files(k, "holds.idx") == 1 && kit_files(k, "closed") == 1);
    return k;
}

static void story_end(struct kit *k)
{
    files_free(&files);
    kit_free(k);
}

static bool is_used(const struct file *f)
{
    return file_ends(f, ".log") && memcmp(f->data, "HOLDSEG1", 8) == 0;
}

/* The segment with the newest batch, of those in the set. */
static struct file *newest(void)
{
    struct file *found = NULL;
    for (size_t i = 0; i < files.count; i++)
        if (is_used(&files.list[i]) && (!found || strcmp(files.list[i].name, found->name) > 0))
            found = &files.list[i];
    assert_non_null(found);
    return found;
}

static size_t last_batch(const struct file *f)
{
    size_t last = 0;
    for (size_t at = BLOCK; at < f->size; at += BLOCK)
        if (memcmp(f->data + at, "HFB2", 4) == 0)
            last = at;
    assert_true(last > 0);
    return last;
}

static enum hf_status start(struct kit *k, struct hf_error *why)
{
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, why);
    if (st == HF_OK)
        kit_close(k);
    k->db = NULL;
    return st;
}

static enum hf_status audit(struct kit *k, enum hf_audit_verdict *verdict, struct hf_error *why)
{
    struct hf_audit_report report;
    enum hf_status st = hf_audit_run(k->dir, NULL, &report, why);
    *verdict = st == HF_OK ? report.verdict : HF_AUDIT_DAMAGED;
    hf_audit_report_free(&report);
    return st;
}

/* ---- A snapshot that the start cannot load ---- */

/* The snapshot without the block of this type, and right otherwise. */
static void snapshot_strip(struct file *f, uint32_t type)
{
    uint64_t blocks = 0;
    for (size_t at = 0; at < f->size;) {
        size_t n = SNAP_HEAD + hf_get32(f->data + at + 4);
        if (hf_get32(f->data + at) == type) {
            memmove(f->data + at, f->data + at + n, f->size - at - n);
            f->size -= n;
            continue;
        }
        if (at + n == f->size) {
            hf_put64(f->data + at + SNAP_HEAD + 32, blocks);
            hf_sha256_of(f->data, at, f->data + at + SNAP_HEAD + 40);
            uint32_t crc = hf_crc32c(0, f->data + at, 12);
            hf_put32(f->data + at + 12, hf_crc32c(crc, f->data + at + SNAP_HEAD, SNAP_END));
        }
        blocks++;
        at += n;
    }
}

static void a_snapshot_without_owners_is_evidence(void **state)
{
    (void)state;
    struct kit *k = story();
    struct file *snapshot = files_last(&files, "snapshot-", ".snap");
    snapshot_strip(snapshot, OWNERS);
    files_put(&files, k->dir);
    struct agreed got = agree(k, "no owners", snapshot->name, 0);
    assert_true(got.opens && got.snapshot_named && got.snapshot_left);
    /* The crash left no note, and everything from the snapshot's segment on is lost. */
    uint64_t start_at = hf_get64(snapshot->data + SNAP_HEAD + 64);
    for (size_t i = 0; i < files.count; i++)
        if (is_used(&files.list[i]) && hf_get64(files.list[i].data + 24) + 65536 >= start_at)
            memset(files.list[i].data, 0, files.list[i].size);
    files_put(&files, k->dir);
    kit_remove(k, "closed");
    assert_false(agree(k, "no owners, and no journal", snapshot->name, 0).opens);
    story_end(k);
}

/* It began later than the newest batch. What a start with a clock that is behind writes is not of
 * an earlier time. */
static void a_snapshot_without_owners_tells_the_time(void **state)
{
    (void)state;
    struct kit *k = story();
    struct file *snapshot = files_last(&files, "snapshot-", ".snap");
    unsigned char *head = snapshot->data;
    struct file *f = newest();
    uint64_t sequence = hf_get64(head + SNAP_HEAD + 72);
    hf_put64(head + SNAP_HEAD + 80, (uint64_t)(KIT_START + HOUR));
    hf_put32(head + 12, hf_crc32c(hf_crc32c(0, head, 12), head + SNAP_HEAD, hf_get32(head + 4)));
    snapshot_strip(snapshot, OWNERS);
    /* A crash before the batches behind the snapshot: it lies at the end. */
    for (size_t at = BLOCK; at < f->size; at += BLOCK)
        if (memcmp(f->data + at, "HFB2", 4) == 0 && hf_get64(f->data + at + 8) >= sequence)
            memset(f->data + at, 0, f->size - at);
    files_put(&files, k->dir);
    kit_remove(k, "closed");
    for (int start = 0; start < 3; start++) {
        kit_open(k);
        assert_int_equal(kit_place(k, "behind", "behind", "guest", DAY), HF_OK);
        assert_int_equal(k->got.answer.hold.placed_at, KIT_START + HOUR);
        kit_close(k);
        assert_true(agree(k, "a later time", snapshot->name, SNAP_HEAD + 80).opens);
    }
    story_end(k);
}

/* It names another chain than the journal has where it began. */
static void a_snapshot_without_owners_is_compared(void **state)
{
    (void)state;
    struct kit *k = story();
    struct file *snapshot = files_last(&files, "snapshot-", ".snap");
    unsigned char *head = snapshot->data;
    head[SNAP_HEAD + 88] ^= 1;
    hf_put32(head + 12, hf_crc32c(hf_crc32c(0, head, 12), head + SNAP_HEAD, hf_get32(head + 4)));
    snapshot_strip(snapshot, OWNERS);
    files_put(&files, k->dir);
    kit_remove(k, "closed");
    assert_false(agree(k, "another chain", snapshot->name, SNAP_HEAD + 88).opens);
    story_end(k);
}

/* Let seconds go by, with maintenance. */
static void steps(struct kit *k, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        atomic_fetch_add(&k->io.later_ns, UINT64_C(1000000000));
        for (int n = 0; n < 3; n++)
            hf_maintain(k->db);
    }
}

/* A store whose snapshot names a batch that could not be read when its keys were to leave. It can
 * be read again. */
static struct kit *story_passed(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 1 << 20;
    k->options.snapshot_every_bytes = 131072;
    k->options.idempotency_window_ms = MINUTE;
    k->options.keep_plain = true;
    kit_open(k);
    assert_int_equal(kit_write(k, 1, 100, 1), HF_OK); /* the batch at 8192 */
    assert_int_equal(kit_write(k, 1, 100, 1), HF_OK);
    kit_at(k, HOUR);
    atomic_store(&k->io.unreadable_segment, 1);
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    steps(k, 130);
    for (int i = 0; kit_files(k, ".snap") == 0; i++) {
        assert_true(i < 400);
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "guest", DAY), HF_OK);
        kit_settle(k);
    }
    atomic_store(&k->io.unreadable, 0);
    kit_close(k);
    kit_remove(k, "closed"); /* as after a crash */
    files_load(&files, k->dir);
    return k;
}

static bool snapshot_has(const struct file *f, uint32_t type)
{
    size_t at = 0;
    while (at < f->size && hf_get32(f->data + at) != type)
        at += SNAP_HEAD + hf_get32(f->data + at + 4);
    return at < f->size;
}

/* The audit did not know the block with the batches that could not be read, and took the snapshot
 * for one that is not whole. The start did not know it in a snapshot whose tables it cannot
 * load. */
static void a_snapshot_with_unread_batches_is_evidence(void **state)
{
    (void)state;
    struct kit *k = story_passed();
    struct file *snapshot = files_last(&files, "snapshot-", ".snap");
    assert_true(snapshot_has(snapshot, PASSED));
    for (int owners = 1; owners >= 0; owners--) {
        if (!owners)
            snapshot_strip(snapshot, OWNERS);
        files_put(&files, k->dir);
        struct agreed got = agree(k, owners ? "nothing" : "no owners", snapshot->name, 0);
        assert_true(got.opens && got.snapshot_named == !owners && got.snapshot_left == !owners);
        /* The newest batches that the snapshot knows of are lost. */
        files_put(&files, k->dir);
        struct file *f = newest();
        unsigned char *data = calloc(1, f->size);
        uint64_t end = hf_get64(snapshot->data + snapshot->size - SNAP_END);
        assert_true(end <= f->size && end > 10 * BLOCK);
        memcpy(data, f->data, end - 5 * BLOCK);
        file_write(k->dir, f->name, data, f->size);
        free(data);
        assert_false(
            agree(k, owners ? "zeros" : "zeros, no owners", f->name, end - 5 * BLOCK).opens);
    }
    story_end(k);
}

/* ---- What cannot be read ---- */

enum unreadable { LOOP, FOLDER, PIPE, WAYS };

/* Put something under the name that cannot be opened, or cannot be read, whoever asks. */
static void block(struct kit *k, const char *name, enum unreadable how)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(how == LOOP     ? symlink(name, path)
                     : how == FOLDER ? mkdir(path, 0700)
                                     : mkfifo(path, 0600),
                     0);
}

static void unblock(struct kit *k, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    assert_int_equal(remove(path), 0);
}

static void unreadable(const char *name, bool rotten)
{
    struct kit *k = story();
    struct file *f = newest();
    enum hf_audit_verdict verdict;
    if (rotten)
        f->data[last_batch(f) + 200] ^= 1;
    for (int how = LOOP; how < WAYS; how++) {
        struct hf_error why = { .text = "" };
        files_put(&files, k->dir);
        assert_int_equal(audit(k, &verdict, &why), HF_OK);
        assert_int_equal(verdict, rotten ? HF_AUDIT_DAMAGED : HF_AUDIT_OK);
        block(k, name, (enum unreadable)how);
        assert_int_equal(start(k, &why), HF_STORAGE_FAILURE);
        assert_non_null(strstr(why.text, name));
        assert_non_null(strstr(why.text, "remove"));
        assert_int_equal(audit(k, &verdict, &why), HF_STORAGE_FAILURE);
        assert_non_null(strstr(why.text, "cannot be read"));
        assert_non_null(strstr(why.text, name));
        unblock(k, name);
    }
    /* Nothing was changed by the starts that were refused. */
    files_put(&files, k->dir);
    struct hf_error why;
    assert_int_equal(start(k, &why), rotten ? HF_STORE_DAMAGED : HF_OK);
    story_end(k);
}

static void a_note_that_cannot_be_read_is_not_none(void **state)
{
    (void)state;
    unreadable("closed", true);
    unreadable("closed", false);
}

static void a_snapshot_that_cannot_be_read_is_not_none(void **state)
{
    (void)state;
    struct kit *k = story();
    char name[256];
    snprintf(name, sizeof name, "%s", files_last(&files, "snapshot-", ".snap")->name);
    story_end(k);
    unreadable(name, true);
    unreadable(name, false);
}

/* A note that is cut short is not whole, and counts as none: that is no error of the disk. */
static void a_note_that_is_cut_short_is_none(void **state)
{
    (void)state;
    struct kit *k = story();
    for (size_t size = 0; size < 64; size += 21) {
        files_put(&files, k->dir);
        file_write(k->dir, "closed", files_find(&files, "closed")->data, size);
        assert_true(agree(k, "a cut", "closed", size).opens);
    }
    story_end(k);
}

/* ---- What is left of a store ---- */

enum left {
    SNAPSHOT = 1,
    INDEX = 2,
    NOTE = 4,
    OTHER = 8,
    FIRST_ZEROS = 16,
    FIRST_HEADER = 32,
    LEFT = 64
};

/* Only what is in the set is there. */
static void leave(struct kit *k, unsigned left)
{
    static unsigned char zeros[65536];
    static const struct {
        enum left which;
        const char *end;
    } ends[] = { { SNAPSHOT, ".snap" }, { INDEX, "holds.idx" }, { NOTE, "closed" } };
    files_put(&files, k->dir);
    kit_remove(k, ".log");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!(left & ends[i].which))
            kit_remove(k, ends[i].end);
    if (left & (FIRST_ZEROS | FIRST_HEADER)) {
        memcpy(zeros, files_find(&files, "journal-00000001.log")->data,
               left & FIRST_HEADER ? 512 : 0);
        file_write(k->dir, "journal-00000001.log", zeros, sizeof zeros);
        memset(zeros, 0, sizeof zeros);
    }
    if (left & OTHER)
        file_write(k->dir, "journal-00000002.log", zeros, sizeof zeros);
}

/* Only a store that is being made has no whole batch: that has one segment, and none of the other
 * files. */
static void what_is_left_of_a_store_is_no_new_one(void **state)
{
    (void)state;
    struct kit *k = story();
    for (unsigned left = 0; left < LEFT; left++) {
        char what[32];
        struct hf_error why;
        enum hf_audit_verdict verdict;
        bool first = left & (FIRST_ZEROS | FIRST_HEADER),
             remains = left & ~(unsigned)(FIRST_ZEROS | FIRST_HEADER);
        snprintf(what, sizeof what, "left: %u", left);
        leave(k, left);
        if (!first && !remains) { /* no store; the start would make one */
            assert_int_equal(audit(k, &verdict, &why), HF_STORE_ABSENT);
            continue;
        }
        assert_int_equal(agree(k, what, "the journal", 0).opens, !remains);
        if (!remains)
            continue;
        k->options.no_create = true; /* a store that is damaged is not absent */
        leave(k, left);
        assert_int_equal(start(k, &why), HF_STORE_DAMAGED);
        k->options.no_create = false;
        assert_int_equal(audit(k, &verdict, &why), HF_OK);
        assert_int_equal(verdict, HF_AUDIT_DAMAGED);
    }
    story_end(k);
}

/* ---- A start that is refused ---- */

/* Are the files those of the set, byte for byte? */
static void unchanged(struct kit *k, const char *what)
{
    static struct files now;
    files_load(&now, k->dir);
    for (size_t i = 0; i < files.count; i++) {
        const struct file *was = &files.list[i], *is = files_find(&now, was->name);
        if (strcmp(was->name, "LOCK") != 0 &&
            (!is || is->size != was->size || memcmp(is->data, was->data, is->size) != 0))
            fail_msg("%s: the start was refused, and %s is %s", what, was->name,
                     is ? "changed" : "gone");
    }
    assert_int_equal(now.count, files.count);
    files_free(&now);
}

static void refused(struct kit *k, const char *what, struct file *f, size_t at)
{
    struct hf_error why;
    f->data[at] ^= 1;
    files_put(&files, k->dir);
    assert_int_equal(start(k, &why), HF_STORE_DAMAGED);
    unchanged(k, what);
    f->data[at] ^= 1;
}

/* Whoever is told that a store is damaged copies it before anything else: then everything must
 * still be there. */
static void a_refused_start_changes_nothing(void **state)
{
    (void)state;
    struct kit *k = story();
    struct file *snapshot = files_last(&files, "snapshot-", ".snap"),
                *index = files_find(&files, "holds.idx");
    file_write(k->dir, "snapshot-0000000000001000.snap", snapshot->data, snapshot->size);
    file_write(k->dir, "closed.tmp", "half", 4);
    index->data[33] ^= 1; /* its header */
    file_write(k->dir, "holds.idx", index->data, index->size);
    files_free(&files);
    files_load(&files, k->dir);
    struct file *f = newest();
    size_t last = last_batch(f);
    f->data[last + hf_get32(f->data + last + 4)] ^= 1; /* behind it, which is no damage */
    refused(k, "rot before the snapshot", files_find(&files, "journal-00000001.log"),
            2 * BLOCK + 200);
    refused(k, "rot of the newest batch", f, last + 200);
    f->data[last + hf_get32(f->data + last + 4)] ^= 1;
    refused(k, "rot in the header of the newest segment", f, 60);
    /* One that goes well clears up. */
    struct hf_error why;
    files_put(&files, k->dir);
    assert_int_equal(start(k, &why), HF_OK);
    assert_int_equal(kit_files(k, ".tmp"), 0);
    assert_int_equal(kit_files(k, ".snap"), 1);
    assert_false(agree(k, "cleared up", "holds.idx", 33).index_named);
    story_end(k);
}

/* ---- The note ---- */

/* The note is old after a crash, and still says what its batch was. */
static void an_old_note_is_compared(void **state)
{
    (void)state;
    struct kit *k = story();
    struct file *note = files_find(&files, "closed");
    for (size_t i = 0; i < files.count; i++) {
        const struct file *f = &files.list[i];
        for (size_t at = BLOCK; is_used(f) && at < f->size; at += BLOCK) {
            if (memcmp(f->data + at, "HFB2", 4) != 0)
                continue;
            size_t length = hf_get32(f->data + at + 4);
            hf_put64(note->data + 8, hf_get64(f->data + at + 8));
            hf_put64(note->data + 16,
                     hf_get64(f->data + at + 16) + (length + BLOCK - 1) / BLOCK * BLOCK);
            hf_sha256_of(f->data + at, hf_get32(f->data + at + 4), note->data + 24);
            for (int wrong = 0; wrong < 2; wrong++) {
                note->data[24 + at / BLOCK] ^= (unsigned char)wrong;
                hf_put32(note->data + 60, hf_crc32c(0, note->data, 60));
                files_put(&files, k->dir);
                assert_int_equal(agree(k, wrong ? "another hash" : "the hash", f->name, at).opens,
                                 !wrong);
            }
        }
    }
    story_end(k);
}

/* An unreadable sector of a mapped segment fails the requests that need it, and nothing else. Once
 * it ended the server with SIGBUS, without a word. A file that becomes shorter than its mapping
 * gives the same signal. */

static struct kit *two_orders(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.keep_plain = true;
    kit_open(k);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK); /* the batch at 8192 */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(kit_write(k, 1, 50000, 1), HF_OK); /* the segments behind it */
    assert_int_equal(kit_place(k, "late", "b", "guest", 600000), HF_OK);
    return k;
}

static void look(struct kit *k, enum hf_status early)
{
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), early);
    assert_int_equal(kit_place(k, "late", "b", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    enum hf_status third = kit_stats(k).holds < 3 ? HF_OK : HF_RESOURCE_UNAVAILABLE;
    assert_int_equal(kit_place(k, kit_key(k), "c", "guest", 600000), third);
}

static void a_file_that_became_shorter_ends_nothing(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    char path[1024];
    look(k, HF_OK);
    snprintf(path, sizeof path, "%s/journal-00000001.log", k->dir);
    assert_int_equal(truncate(path, BLOCK), 0);
    look(k, HF_STORAGE_FAILURE);
    assert_true(kit_stats(k).records_unreadable > 0);
    assert_non_null(strstr(k->note, "journal-00000001.log"));
    assert_non_null(
        strstr(k->note, "byte 8304")); /* the entry: behind the batch's header at 8192 */
    while (hf_maintain(k->db))
        ;
    look(k, HF_STORAGE_FAILURE);
    kit_free(k);
}

static void an_unreadable_sector_fails_one_request(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    /* The same sector of the later segments is in the middle of a value that nobody asks for. */
    look(k, HF_STORAGE_FAILURE);
    assert_non_null(strstr(k->note, "cannot read at byte 8304"));
    atomic_store(&k->io.unreadable, 0);
    look(k, HF_OK);
    kit_free(k);
}

/* Keys leave in the order of the journal: one batch that cannot be read holds them up for a minute,
 * not for ever. */
static void keys_leave_past_an_unreadable_batch(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.idempotency_window_ms = 1000;
    kit_open(k);
    for (int i = 0; i < 10; i++)
        assert_int_equal(kit_place(k, kit_key(k), kit_key(k), "guest", 600000), HF_OK);
    atomic_store(&k->io.unreadable, 4 * BLOCK);
    kit_at(k, 5000);
    assert_int_equal(kit_place(k, "new", "new", "guest", 600000), HF_OK);
    for (int i = 0; i < 5; i++)
        hf_maintain(k->db);
    assert_in_range(kit_stats(k).tokens, 6, 11);
    atomic_fetch_add(&k->io.later_ns, UINT64_C(61) * 1000000000);
    for (int i = 0; i < 5; i++)
        hf_maintain(k->db);
    assert_int_equal(kit_stats(k).tokens, 2); /* the newest, and that of the batch */
    kit_free(k);
}

/* An unreadable snapshot ends the start, and not the process: it proves how far the journal went,
 * so the start does not pass over it. The operator is told the file and what to do; without it the
 * journal is read instead. */
static void an_unreadable_snapshot_ends_the_start(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = 65536;
    k->options.snapshot_every_bytes = 65536;
    kit_open(k);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(kit_write(k, 1, 30000, 1), HF_OK);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK);
    kit_settle(k);
    assert_int_equal(kit_files(k, ".snap"), 1);
    kit_close(k);
    struct hf_error why;
    atomic_store(&k->io.unreadable_snapshot, true);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    k->db = NULL;
    assert_non_null(strstr(why.text, "cannot read snapshot-"));
    assert_non_null(strstr(why.text, "remove it"));
    assert_int_equal(kit_remove(k, ".snap"), 1);
    kit_open(k);
    atomic_store(&k->io.unreadable_snapshot, false);
    assert_int_equal(kit_place(k, "early", "a", "guest", 600000), HF_OK);
    assert_true(k->got.replayed);
    kit_free(k);
}

/* ---- What is not ours ---- */

static void own_handler(int signal)
{
    (void)signal;
    _exit(42);
}

/* A SIGBUS that was sent, in a child: with the program's own handler, or without. Returns how the
 * child ended. Not under cmocka, which has a handler of its own. */
static int sent(void (*handler)(int))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGBUS, handler);
        if (hf_touch_ready() == 0)
            raise(SIGBUS);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static int sent_to_a_handler, sent_to_none;

static void another_signal_is_handed_on(void **state)
{
    (void)state;
    assert_true(WIFEXITED(sent_to_a_handler) && WEXITSTATUS(sent_to_a_handler) == 42);
    assert_true(WIFSIGNALED(sent_to_none) && WTERMSIG(sent_to_none) == SIGBUS);
}

/* The start says which file it is, too. */
static void a_start_names_what_it_cannot_read(void **state)
{
    (void)state;
    struct kit *k = two_orders();
    struct hf_error why;
    kit_close(k);
    atomic_store(&k->io.unreadable, 2 * BLOCK);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    k->db = NULL;
    assert_non_null(strstr(why.text, "journal-00000001.log"));
    assert_non_null(strstr(why.text, "8192"));
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest evidence_ignored_tests[] = {
        cmocka_unit_test(a_snapshot_without_owners_is_evidence),
        cmocka_unit_test(a_snapshot_without_owners_is_compared),
        cmocka_unit_test(a_snapshot_without_owners_tells_the_time),
        cmocka_unit_test(a_snapshot_with_unread_batches_is_evidence),
        cmocka_unit_test(a_note_that_cannot_be_read_is_not_none),
        cmocka_unit_test(a_snapshot_that_cannot_be_read_is_not_none),
        cmocka_unit_test(a_note_that_is_cut_short_is_none),
        cmocka_unit_test(what_is_left_of_a_store_is_no_new_one),
        cmocka_unit_test(a_refused_start_changes_nothing),
        cmocka_unit_test(an_old_note_is_compared),
    };
    const struct CMUnitTest unreadable_sector_tests[] = {
        cmocka_unit_test(a_file_that_became_shorter_ends_nothing),
        cmocka_unit_test(an_unreadable_sector_fails_one_request),
        cmocka_unit_test(keys_leave_past_an_unreadable_batch),
        cmocka_unit_test(an_unreadable_snapshot_ends_the_start),
        cmocka_unit_test(another_signal_is_handed_on),
        cmocka_unit_test(a_start_names_what_it_cannot_read),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(evidence_ignored_tests, NULL, NULL);
    sent_to_a_handler = sent(own_handler);
    sent_to_none = sent(SIG_DFL);
    failed += cmocka_run_group_tests(unreadable_sector_tests, NULL, NULL);
    return failed;
}

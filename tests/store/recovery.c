/* Recovery: what a crash can leave, and what damage looks like. */
#include "base/bytes.h"
#include "support/test.h"
#include "support/test_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096 };

struct store {
    char *dir;
    struct test_io io;
    struct hf_options options;
    struct hf_db *db;
};

static void store_init(struct store *s)
{
    s->dir = test_dir_make();
    test_io_init(&s->io);
    s->io.wall = INT64_C(1700000000000);
    s->options = (struct hf_options){ .io = &s->io.io, .no_background = true };
    s->db = NULL;
}

static enum hf_status store_open(struct store *s, struct hf_error *why)
{
    return hf_open(s->dir, &s->options, &s->db, why);
}

static void store_must_open(struct store *s)
{
    struct hf_error why;
    if (store_open(s, &why) != HF_OK)
        fail_msg("%s", why.text);
}

static void store_close(struct store *s)
{
    hf_close(s->db);
    s->db = NULL;
}

static void store_end(struct store *s)
{
    hf_close(s->db);
    test_dir_remove(s->dir);
}

static void path_of(const struct store *s, const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", s->dir, name);
}

/* Change bytes of a file. */
static void poke(const struct store *s, const char *name, long at, const void *data, size_t size)
{
    char path[512];
    path_of(s, name, path);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, size, at), size);
    close(fd);
}

static unsigned char peek(const struct store *s, const char *name, long at)
{
    char path[512];
    unsigned char c;
    path_of(s, name, path);
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, &c, 1, at), 1);
    close(fd);
    return c;
}

static enum hf_status place(struct store *s, const char *key, const char *resource,
                            struct hf_result *got)
{
    struct hf_request r = { .action = HF_PLACE_HOLD,
                            .key = hf_str(key),
                            .place_hold = { .resource = hf_str(resource),
                                            .requester = hf_str("q"),
                                            .duration_ms = 600000 } };
    return hf_do(s->db, &r, got);
}

static void place_numbered(struct store *s, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        char key[32], resource[32];
        snprintf(key, sizeof key, "key-%u", i);
        snprintf(resource, sizeof resource, "room-%u", i);
        assert_int_equal(place(s, key, resource, NULL), HF_OK);
    }
}

/* Is the hold of key-i there? Asked in a way that changes nothing. */
static bool known(struct store *s, unsigned i)
{
    char key[32];
    snprintf(key, sizeof key, "key-%u", i);
    struct hf_request r = { .action = HF_GET_TOKEN, .key = hf_str(key) };
    enum hf_status st = hf_do(s->db, &r, NULL);
    assert_true(st == HF_OK || st == HF_NOT_KNOWN);
    return st == HF_OK;
}

/* As after a crash: nobody noted how far the journal went. */
static void forget_the_close(const struct store *s)
{
    char path[512];
    path_of(s, "closed", path);
    assert_int_equal(unlink(path), 0);
}

static void tear(struct store *s, long at, size_t size)
{
    unsigned char zeros[BLOCK] = { 0 };
    poke(s, "journal-00000001.log", at, zeros, size);
}

/* ---- Torn ends ---- */

static void a_torn_last_batch_is_dropped_and_nothing_else(void **state)
{
    (void)state;
    /* Batch 1 is the configuration; batch 2 + i places key-i. The last one is at block 1 + 5. */
    for (size_t sector = 0; sector < 2; sector++) {
        struct store s;
        store_init(&s);
        store_must_open(&s);
        place_numbered(&s, 0, 4);
        store_close(&s);
        forget_the_close(&s);
        tear(&s, 5 * BLOCK + (long)sector * 256, 256);
        store_must_open(&s);
        for (unsigned i = 0; i < 3; i++)
            assert_true(known(&s, i));
        assert_false(known(&s, 3));
        /* Its place is used again, and the store goes on as if it had never been. */
        place_numbered(&s, 3, 6);
        store_close(&s);
        store_must_open(&s);
        for (unsigned i = 0; i < 6; i++)
            assert_true(known(&s, i));
        store_end(&s);
    }
}

static void garbage_behind_the_end_is_not_the_journal(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 3);
    store_close(&s);
    unsigned char noise[3 * BLOCK];
    uint64_t random = 5;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)test_random(&random);
    poke(&s, "journal-00000001.log", 5 * BLOCK, noise, sizeof noise);
    store_must_open(&s);
    for (unsigned i = 0; i < 3; i++)
        assert_true(known(&s, i));
    place_numbered(&s, 3, 5);
    store_close(&s);
    store_must_open(&s);
    assert_true(known(&s, 4));
    store_end(&s);
}

static void a_store_that_died_while_it_was_made_is_made_again(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    store_must_open(&s);
    store_close(&s);
    forget_the_close(&s);
    /* The first batch never arrived: only zeros. */
    tear(&s, 0, BLOCK);
    tear(&s, BLOCK, BLOCK);
    store_must_open(&s);
    place_numbered(&s, 0, 2);
    store_close(&s);
    store_must_open(&s);
    assert_true(known(&s, 1));
    store_end(&s);
}

static void header_destroy(struct store *s, const char *name)
{
    unsigned char zeros[BLOCK] = { 0 };
    poke(s, name, 0, zeros, sizeof zeros);
}

static void a_first_batch_without_its_header_is_damage(void **state)
{
    (void)state;
    struct hf_stats st;
    /* The header is durable before the first batch is written, whether more batches follow or
     * not. */
    for (unsigned more = 0; more < 2; more++) {
        struct store s;
        struct hf_error why;
        unsigned n = 0;
        store_init(&s);
        s.options.segment_max_bytes = 65536;
        store_must_open(&s);
        do {
            place_numbered(&s, n, n + 1);
            n++;
            hf_stats(s.db, &st);
        } while (st.journal_bytes <= 65536);
        place_numbered(&s, n, n + more);
        store_close(&s);
        forget_the_close(&s);
        header_destroy(&s, "journal-00000002.log");
        assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
        assert_non_null(strstr(why.text, "journal-00000002.log"));
        store_end(&s);
    }
}

static void a_first_batch_of_a_store_without_its_header_is_damage(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    store_must_open(&s);
    store_close(&s);
    forget_the_close(&s);
    header_destroy(&s, "journal-00000001.log");
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "journal-00000001.log"));
    store_end(&s);
}

static void a_torn_first_write_of_a_store_is_a_new_store(void **state)
{
    (void)state;
    for (size_t kept = 0; kept < 2; kept++) { /* the header, or not even that */
        struct store s;
        unsigned char zeros[BLOCK] = { 0 };
        store_init(&s);
        store_must_open(&s);
        store_close(&s);
        forget_the_close(&s);
        poke(&s, "journal-00000001.log", BLOCK, zeros, sizeof zeros);
        if (!kept)
            header_destroy(&s, "journal-00000001.log");
        store_must_open(&s);
        place_numbered(&s, 0, 2);
        store_close(&s);
        store_must_open(&s);
        assert_true(known(&s, 1));
        store_end(&s);
    }
}

/* ---- The note of an orderly close ---- */

static void a_last_batch_damaged_after_an_orderly_close_refuses_the_start(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 4);
    store_close(&s);
    unsigned char flipped = peek(&s, "journal-00000001.log", 5 * BLOCK + 100) ^ 1;
    poke(&s, "journal-00000001.log", 5 * BLOCK + 100, &flipped, 1);
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "the note `closed` names batch 5"));
    assert_non_null(strstr(why.text, "last whole batch is 4"));
    flipped ^= 1;
    poke(&s, "journal-00000001.log", 5 * BLOCK + 100, &flipped, 1);
    store_must_open(&s);
    assert_true(known(&s, 3));
    store_end(&s);
}

static void a_journal_that_is_gone_is_no_new_store(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    char path[512];
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 4);
    store_close(&s);
    path_of(&s, "journal-00000001.log", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    store_end(&s);
}

static void an_old_note_is_no_hindrance(void **state)
{
    (void)state;
    struct store s;
    char closed[512], kept[512];
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 2);
    store_close(&s);
    path_of(&s, "closed", closed);
    path_of(&s, "kept", kept);
    assert_int_equal(rename(closed, kept), 0);
    store_must_open(&s);
    place_numbered(&s, 2, 4);
    store_close(&s);
    /* As if the second run had crashed in its last batch: the note is the first run's. */
    assert_int_equal(rename(kept, closed), 0);
    tear(&s, 5 * BLOCK, 256);
    store_must_open(&s);
    assert_true(known(&s, 2));
    assert_false(known(&s, 3));
    store_end(&s);
}

static void a_note_that_is_not_whole_counts_as_none(void **state)
{
    (void)state;
    for (long at = 0; at < 64; at += 9) {
        struct store s;
        store_init(&s);
        store_must_open(&s);
        place_numbered(&s, 0, 4);
        store_close(&s);
        unsigned char flipped = peek(&s, "closed", at) ^ 0x40;
        poke(&s, "closed", at, &flipped, 1);
        tear(&s, 5 * BLOCK, 256);
        store_must_open(&s);
        assert_true(known(&s, 2));
        store_end(&s);
    }
}

/* ---- Damage ---- */

static void a_flipped_byte_anywhere_before_the_last_batch_refuses_the_start(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 4);
    store_close(&s);
    /* Blocks 0 (header) to 4; the last batch is in block 5. */
    for (long at = 0; at < 5 * BLOCK; at += at % BLOCK < 400 ? 1 : 97) {
        unsigned char was = peek(&s, "journal-00000001.log", at);
        unsigned char is = was ^ 0x10;
        poke(&s, "journal-00000001.log", at, &is, 1);
        enum hf_status st = store_open(&s, &why);
        if (st != HF_STORE_DAMAGED && st != HF_STORE_NEWER)
            fail_msg("byte %ld: %s", at, hf_status_code(st));
        assert_null(s.db);
        assert_non_null(strstr(why.text, "journal-00000001.log"));
        poke(&s, "journal-00000001.log", at, &was, 1);
    }
    store_must_open(&s);
    for (unsigned i = 0; i < 4; i++)
        assert_true(known(&s, i));
    store_end(&s);
}

static void damage_is_named_with_its_place(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    store_must_open(&s);
    place_numbered(&s, 0, 4);
    store_close(&s);
    unsigned char x = 0xff;
    poke(&s, "journal-00000001.log", 3 * BLOCK + 100, &x, 1);
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "at byte 12288"));
    assert_non_null(strstr(why.text, "holdfast audit"));
    store_end(&s);
}

static void a_missing_or_short_segment_is_named(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    char path[512];
    store_init(&s);
    s.options.segment_max_bytes = 65536;
    store_must_open(&s);
    place_numbered(&s, 0, 60);
    store_close(&s);
    path_of(&s, "journal-00000002.log", path);
    char aside[520];
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "segment 2 is missing"));
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(truncate(path, 30000), 0);
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    assert_non_null(strstr(why.text, "journal-00000002.log"));
    store_end(&s);
}

static void a_newer_format_is_refused(void **state)
{
    (void)state;
    struct store s;
    struct hf_error why;
    store_init(&s);
    store_must_open(&s);
    store_close(&s);
    unsigned char three = 3;
    poke(&s, "journal-00000001.log", 8, &three, 1);
    assert_int_equal(store_open(&s, &why), HF_STORE_NEWER);
    assert_non_null(strstr(why.text, "format version 3"));
    store_end(&s);
}

/* ---- Snapshots, the index, compression ---- */

static int notes;

/* That a store was opened is always told; what is counted is what is unusual. */
static void count_note(void *arg, int level, const char *line)
{
    (void)arg;
    notes +=
        level > 0 || (strstr(line, " was opened") == NULL && strstr(line, "chain head") == NULL);
}

static void ignore(struct hf_op *op, enum hf_status status)
{
    (void)op;
    (void)status;
}

static bool has_file(const struct store *s, const char *part)
{
    DIR *d = opendir(s->dir);
    bool found = false;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        found = found || strstr(e->d_name, part) != NULL;
    closedir(d);
    return found;
}

/* Remove every file with `part` in its name, or flip a byte in the middle of it. */
static unsigned each_file(const struct store *s, const char *part, bool flip)
{
    DIR *d = opendir(s->dir);
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        struct stat st;
        if (!strstr(e->d_name, part))
            continue;
        snprintf(path, sizeof path, "%s/%.200s", s->dir, e->d_name);
        assert_int_equal(stat(path, &st), 0);
        count++;
        if (!flip) {
            assert_int_equal(unlink(path), 0);
            continue;
        }
        unsigned char c = peek(s, e->d_name, st.st_size / 2) ^ 1;
        poke(s, e->d_name, st.st_size / 2, &c, 1);
    }
    closedir(d);
    return count;
}

static void settle(struct store *s)
{
    for (int i = 0; i < 100000 && hf_maintain(s->db); i++)
        ;
}

/* All holds, newest first, page by page; the caller frees them (their slices are gone). */
static struct hf_hold *all_holds(struct store *s, size_t *count)
{
    struct hf_hold *all = NULL;
    uint64_t cursor = 0;
    *count = 0;
    do {
        struct hf_page page;
        struct hf_query q = { .kind = HF_LIST_HOLDS, .limit = 1000, .cursor = cursor };
        assert_int_equal(hf_list(s->db, &q, &page), HF_OK);
        all = realloc(all, (*count + page.count + 1) * sizeof *all);
        for (size_t i = 0; i < page.count; i++)
            all[(*count)++] = page.holds[i];
        cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (cursor);
    return all;
}

struct count {
    uint64_t tokens, holds, holds_live, resources, guards, entries, claims, registers;
};

static struct count count_all(struct store *s)
{
    struct hf_stats st;
    hf_stats(s->db, &st);
    return (struct count){ st.tokens, st.holds,   st.holds_live, st.resources,
                           st.guards, st.entries, st.claims,     st.registers };
}

static void snapshots_and_their_loss_change_nothing(void **state)
{
    (void)state;
    enum { N = 400 };
    for (int variant = 0; variant < 5; variant++) {
        struct store s;
        store_init(&s);
        s.options.segment_max_bytes = 65536;
        s.options.snapshot_every_bytes = 100000;
        store_must_open(&s);
        for (unsigned i = 0; i < N; i += 20) {
            place_numbered(&s, i, i + 20);
            settle(&s);
        }
        struct count before = count_all(&s);
        store_close(&s);
        assert_true(has_file(&s, ".snap"));
        assert_true(has_file(&s, "holds.idx"));
        switch (variant) {
        case 1: assert_int_equal(each_file(&s, ".snap", false), 1); break;
        case 2: assert_int_equal(each_file(&s, "holds.idx", false), 1); break;
        case 3: assert_int_equal(each_file(&s, ".snap", true), 1); break;
        case 4: each_file(&s, ".snap", false), each_file(&s, "holds.idx", false); break;
        default: break;
        }
        store_must_open(&s);
        struct count after = count_all(&s);
        assert_memory_equal(&before, &after, sizeof before);
        struct hf_stats st;
        hf_stats(s.db, &st);
        if (variant == 0)
            assert_true(st.recovery_replayed < N / 2);
        for (unsigned i = 0; i < N; i++)
            assert_true(known(&s, i));
        size_t count;
        struct hf_hold *holds = all_holds(&s, &count);
        assert_int_equal(count, N);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(holds[i].ordinal, N - i);
        free(holds);
        store_end(&s);
    }
}

static void old_segments_are_compressed_and_still_read(void **state)
{
    (void)state;
    enum { N = 200 };
    struct store s;
    struct hf_error why;
    store_init(&s);
    s.options.segment_max_bytes = 65536;
    s.options.snapshot_every_bytes = 65536;
    s.options.idempotency_window_ms = 1000;
    store_must_open(&s);
    place_numbered(&s, 0, N);
    s.io.wall += 2000; /* every key's window has closed; the holds live on */
    place_numbered(&s, N, N + 40);
    settle(&s);
    s.io.wall += 2000;
    place_numbered(&s, N + 40, N + 41);
    settle(&s);
    assert_true(has_file(&s, ".zst"));
    assert_false(has_file(&s, "journal-00000001.log"));
    for (int round = 0; round < 3; round++) {
        size_t count;
        struct hf_hold *holds = all_holds(&s, &count);
        assert_int_equal(count, N + 41);
        struct hf_request show = { .action = HF_GET_HOLD,
                                   .hold = { .id = hf_str(holds[N + 40].id) } };
        struct hf_result got = HF_RESULT_INIT;
        assert_int_equal(hf_do(s.db, &show, &got), HF_OK);
        assert_memory_equal(got.answer.hold.resource.data, "room-0", 6);
        hf_result_clear(&got);
        /* An old hold can still be ended. */
        char key[32];
        snprintf(key, sizeof key, "end-%d", round);
        struct hf_request confirm = { .action = HF_CONFIRM,
                                      .key = hf_str(key),
                                      .hold = { .id = hf_str(holds[N + 40 - round].id) } };
        assert_int_equal(hf_do(s.db, &confirm, NULL), HF_OK);
        free(holds);
        store_close(&s);
        if (round == 1) {
            each_file(&s, "holds.idx", false);
            each_file(&s, ".snap", false);
        }
        store_must_open(&s);
    }
    store_close(&s);
    assert_true(each_file(&s, ".zst", true) > 0);
    /* Damage in a packed segment: found when the journal is read through. */
    assert_int_equal(store_open(&s, &why), HF_STORE_DAMAGED);
    store_end(&s);
}

static void a_damaged_segment_is_not_packed(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    s.options.segment_max_bytes = 65536;
    s.options.snapshot_every_bytes = 65536;
    s.options.idempotency_window_ms = 1000;
    store_must_open(&s);
    place_numbered(&s, 0, 60);
    unsigned char c =
        peek(&s, "journal-00000002.log", 4 * BLOCK + 20) ^ 1; /* a batch's header rots */
    poke(&s, "journal-00000002.log", 4 * BLOCK + 20, &c, 1);
    s.io.wall += 5000;
    place_numbered(&s, 60, 61);
    settle(&s);
    assert_true(has_file(&s, "journal-00000001.zst"));
    assert_false(has_file(&s, "journal-00000002.zst"));
    assert_true(has_file(&s, "journal-00000002.log"));
    store_end(&s);
}

static void the_index_covers_only_what_it_has(void **state)
{
    (void)state;
    struct store s;
    store_init(&s);
    s.options.snapshot_every_bytes = 65536;
    store_must_open(&s);
    place_numbered(&s, 0, 30);
    /* A snapshot begins while a batch with five more holds is being gathered. */
    struct hf_request r[5];
    struct hf_op ops[5];
    char names[5][16];
    for (unsigned i = 0; i < 5; i++) {
        snprintf(names[i], sizeof names[i], "late-%u", i);
        r[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                    .key = hf_str(names[i]),
                                    .place_hold = { .resource = hf_str(names[i]),
                                                    .requester = hf_str("q"),
                                                    .duration_ms = 600000 } };
        ops[i] =
            (struct hf_op){ .request = &r[i], .done = ignore, .next = i < 4 ? &ops[i + 1] : NULL };
    }
    hf_submit(s.db, ops);
    settle(&s);
    store_close(&s);
    notes = 0;
    s.options.on_note = count_note;
    store_must_open(&s);
    assert_int_equal(notes, 0);
    assert_int_equal(count_all(&s).holds, 35);
    store_end(&s);
}

static void a_crash_between_packing_and_removing_leaves_both(void **state)
{
    (void)state;
    struct store s;
    char log[512], aside[520], zst[512];
    store_init(&s);
    s.options.segment_max_bytes = 65536;
    s.options.snapshot_every_bytes = 65536;
    s.options.idempotency_window_ms = 1000;
    store_must_open(&s);
    place_numbered(&s, 0, 100);
    store_close(&s);
    path_of(&s, "journal-00000001.log", log);
    path_of(&s, "journal-00000001.zst", zst);
    snprintf(aside, sizeof aside, "%s/aside", s.dir);
    assert_int_equal(link(log, aside), 0);
    s.io.wall += 5000;
    store_must_open(&s);
    place_numbered(&s, 100, 101);
    settle(&s);
    assert_true(has_file(&s, "journal-00000001.zst"));
    store_close(&s);
    assert_int_equal(rename(aside, log), 0);
    store_must_open(&s);
    assert_int_equal(access(zst, F_OK), -1);
    place_numbered(&s, 101, 102);
    store_end(&s);
}

static void half_written_files_are_removed(void **state)
{
    (void)state;
    struct store s;
    char path[512];
    store_init(&s);
    store_must_open(&s);
    store_close(&s);
    path_of(&s, "snapshot-0000000000001000.tmp", path);
    FILE *f = fopen(path, "w");
    fputs("half", f);
    fclose(f);
    store_must_open(&s);
    assert_false(has_file(&s, ".tmp"));
    store_end(&s);
}

/* ---- The same state after any number of openings ---- */

static void random_step(struct store *s, uint64_t *random, char ids[][HF_ID_SIZE], size_t *id_count)
{
    char key[32], name[32];
    struct hf_result got = HF_RESULT_INIT;
    snprintf(key, sizeof key, "k-%u", (unsigned)test_below(random, 500));
    snprintf(name, sizeof name, "n-%u", (unsigned)test_below(random, 12));
    struct hf_request r = { .key = hf_str(key) };
    switch (test_below(random, 10)) {
    case 0:
    case 1:
    case 2:
        r.action = HF_PLACE_HOLD;
        r.place_hold.resource = hf_str(name);
        r.place_hold.requester = hf_str("q");
        r.place_hold.duration_ms = 1 + (int64_t)test_below(random, 3000);
        break;
    case 3:
    case 4:
        if (*id_count == 0)
            return;
        r.action = HF_CONFIRM + (unsigned)test_below(random, 4);
        r.hold.id = hf_str(ids[test_below(random, *id_count)]);
        break;
    case 5:
        r = (struct hf_request){ .action = HF_ADMIT,
                                 .identity = { .guard = hf_str("g"), .identity = hf_str(name) } };
        break;
    case 6:
        r = (struct hf_request){
            .action = HF_BEGIN,
            .key = hf_str(name),
            .begin = { .payload = hf_str("p"), .lease_ms = 50, .on_abandon = HF_ABANDON_RETRY }
        };
        break;
    case 7:
        r.action = HF_WRITE;
        r.write.name = hf_str(name);
        r.write.value = hf_mem(ids, test_below(random, 200));
        break;
    case 8:
        r = (struct hf_request){
            .action = HF_PLACE_HOLD,
            .client = hf_str(name),
            .sequence = 1 + test_below(random, 40),
            .place_hold = { .resource = hf_str(key), .requester = hf_str("q"), .duration_ms = 500 }
        };
        break;
    default:
        r = (struct hf_request){ .action = HF_SET_RESOURCE,
                                 .set_resource = { .name = hf_str(name), .capacity = 500 } };
        break;
    }
    enum hf_status st = hf_do(s->db, &r, &got);
    assert_true(hf_status_kind(st) == HF_KIND_OK || hf_status_kind(st) == HF_KIND_REFUSAL);
    if (got.answer.kind == HF_RECORD_HOLD && *id_count < 4000)
        memcpy(ids[(*id_count)++], got.answer.hold.id, HF_ID_SIZE);
    hf_result_clear(&got);
}

/* Everything that can be asked, as one text. */
static void dump(struct store *s, char *out, size_t size)
{
    size_t n = 0, count;
    struct hf_hold *holds = all_holds(s, &count);
    for (size_t i = 0; i < count; i++)
        n += (size_t)snprintf(out + n, size - n, "%s %d %lld %lld\n", holds[i].id, holds[i].state,
                              (long long)holds[i].expires_at, (long long)holds[i].ended_at);
    free(holds);
    uint64_t cursor = 0;
    do {
        struct hf_page page;
        struct hf_query q = { .kind = HF_LIST_RESOURCES, .limit = 1000, .cursor = cursor };
        assert_int_equal(hf_list(s->db, &q, &page), HF_OK);
        for (size_t i = 0; i < page.count; i++)
            n += (size_t)snprintf(
                out + n, size - n, "%.*s %u %u %u\n", (int)page.resources[i].name.size,
                (const char *)page.resources[i].name.data, page.resources[i].capacity,
                page.resources[i].held, page.resources[i].confirmed);
        cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (cursor);
    for (unsigned i = 0; i < 500; i++) {
        char name[32];
        struct hf_result got = HF_RESULT_INIT;
        snprintf(name, sizeof name, "k-%u", i);
        struct hf_request r = { .action = HF_GET_TOKEN, .key = hf_str(name) };
        enum hf_status st = hf_do(s->db, &r, &got);
        n += (size_t)snprintf(out + n, size - n, "%d %d %d %lld\n", st, got.token.action,
                              got.answer.status, (long long)got.token.expires_at);
        snprintf(name, sizeof name, "n-%u", i % 12);
        r = (struct hf_request){ .action = HF_GET_REGISTER, .get = { .name = hf_str(name) } };
        st = hf_do(s->db, &r, &got);
        n += (size_t)snprintf(out + n, size - n, "%d %llu\n", st,
                              (unsigned long long)got.answer.reg.version);
        r = (struct hf_request){ .action = HF_GET_CLAIM, .key = hf_str(name) };
        st = hf_do(s->db, &r, &got);
        n += (size_t)snprintf(out + n, size - n, "%d %llu\n", st,
                              (unsigned long long)got.answer.claim.fence);
        r = (struct hf_request){ .action = HF_CHECK,
                                 .identity = { .guard = hf_str("g"), .identity = hf_str(name) } };
        st = hf_do(s->db, &r, &got);
        n += (size_t)snprintf(out + n, size - n, "%d %lld\n", st,
                              (long long)got.answer.seen.recorded_at);
        hf_result_clear(&got);
    }
    assert_true(n < size);
}

static void opening_again_finds_the_same(void **state)
{
    (void)state;
    enum { ROUNDS = 30, STEPS = 150, TEXT = 4 << 20 };
    static char ids[4000][HF_ID_SIZE];
    size_t id_count = 0;
    uint64_t random = test_seed("reopen", 11);
    char *before = malloc(TEXT), *after = malloc(TEXT);
    struct store s;
    store_init(&s);
    s.options.segment_max_bytes = 131072;
    s.options.snapshot_every_bytes = 150000;
    s.options.idempotency_window_ms = 5000;
    store_must_open(&s);
    struct hf_request guard = { .action = HF_SET_GUARD,
                                .set_guard = { .name = hf_str("g"), .window_ms = 700 } };
    assert_int_equal(hf_do(s.db, &guard, NULL), HF_OK);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STEPS; i++) {
            random_step(&s, &random, ids, &id_count);
            s.io.wall += (hf_time)test_below(&random, 20);
            if (test_below(&random, 4) == 0)
                hf_maintain(s.db);
        }
        if (round % 5 == 4)
            settle(&s);
        dump(&s, before, TEXT);
        store_close(&s);
        if (round % 7 == 3)
            each_file(&s, ".snap", false);
        if (round % 7 == 5)
            each_file(&s, "holds.idx", false);
        store_must_open(&s);
        dump(&s, after, TEXT);
        assert_string_equal(before, after);
    }
    assert_true(has_file(&s, ".zst"));
    free(before);
    free(after);
    store_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_torn_last_batch_is_dropped_and_nothing_else),
        cmocka_unit_test(garbage_behind_the_end_is_not_the_journal),
        cmocka_unit_test(a_store_that_died_while_it_was_made_is_made_again),
        cmocka_unit_test(a_first_batch_without_its_header_is_damage),
        cmocka_unit_test(a_first_batch_of_a_store_without_its_header_is_damage),
        cmocka_unit_test(a_torn_first_write_of_a_store_is_a_new_store),
        cmocka_unit_test(a_flipped_byte_anywhere_before_the_last_batch_refuses_the_start),
        cmocka_unit_test(a_last_batch_damaged_after_an_orderly_close_refuses_the_start),
        cmocka_unit_test(a_journal_that_is_gone_is_no_new_store),
        cmocka_unit_test(an_old_note_is_no_hindrance),
        cmocka_unit_test(a_note_that_is_not_whole_counts_as_none),
        cmocka_unit_test(damage_is_named_with_its_place),
        cmocka_unit_test(a_missing_or_short_segment_is_named),
        cmocka_unit_test(a_newer_format_is_refused),
        cmocka_unit_test(snapshots_and_their_loss_change_nothing),
        cmocka_unit_test(old_segments_are_compressed_and_still_read),
        cmocka_unit_test(a_damaged_segment_is_not_packed),
        cmocka_unit_test(the_index_covers_only_what_it_has),
        cmocka_unit_test(a_crash_between_packing_and_removing_leaves_both),
        cmocka_unit_test(half_written_files_are_removed),
        cmocka_unit_test(opening_again_finds_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

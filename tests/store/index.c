/* holds.idx is a help, and never believed more than the journal: whatever becomes of the file, a
 * hold is shown as it is, or not at all until the file is rebuilt, which happens by itself and is
 * said. */
#define _GNU_SOURCE /* memmem */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOLDS = 1300, PARTS = 3, BLOCK = 4096 };

static char ids[HOLDS][HF_ID_SIZE];

/* ---- Files ---- */

struct bytes {
    unsigned char *data; /* owned */
    size_t size;
};

static const char *path_of(const struct kit *k, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    return path;
}

static struct bytes file_read(const struct kit *k, const char *name)
{
    struct stat st;
    int fd = open(path_of(k, name), O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    struct bytes b = { malloc((size_t)st.st_size + 1), (size_t)st.st_size };
    assert_int_equal(pread(fd, b.data, b.size, 0), b.size);
    close(fd);
    return b;
}

/* In place, as a disk would: the store may have the file open. */
static void file_put(const struct kit *k, const char *name, const unsigned char *data, size_t size,
                     off_t at)
{
    int fd = open(path_of(k, name), O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && pwrite(fd, data, size, at) == (ssize_t)size);
    close(fd);
}

static void file_flip(const struct kit *k, const char *name, off_t at)
{
    struct bytes b = file_read(k, name);
    assert_true((size_t)at < b.size);
    unsigned char c = b.data[at] ^ 0x10;
    file_put(k, name, &c, 1, at);
    free(b.data);
}

static void dir_copy(const char *from, const char *to)
{
    char line[1200];
    snprintf(line, sizeof line, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(line), 0);
}

/* Byte `at` of a part of holds.idx, at both its places; of the header for part 0. */
static void index_flip(const struct kit *k, int part, off_t at)
{
    struct bytes b = file_read(k, "holds.idx");
    for (int i = part ? 2 * part - 1 : 0; i <= 2 * part; i++)
        if ((size_t)i * BLOCK < b.size)
            file_flip(k, "holds.idx", i * (off_t)BLOCK + at);
    free(b.data);
}

/* ---- The store ---- */

static void snapshot_make(struct kit *k)
{
    uint64_t had = kit_stats(k).snapshots;
    kit_settle(k);
    for (int i = 0; kit_stats(k).snapshots == had; i++) {
        assert_true(i < 100);
        assert_int_equal(kit_write(k, 20, 1000, 4), HF_OK);
        kit_settle(k);
    }
}

/* All in one group: a commit for each would take its time. */
static void place_all(struct kit *k)
{
    static struct hf_request requests[HOLDS];
    static struct hf_result results[HOLDS];
    static char keys[HOLDS][16];
    for (int i = 0; i < HOLDS; i++) {
        snprintf(keys[i], sizeof keys[i], "place-%d", i);
        requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                           .key = hf_str(keys[i]),
                                           .place_hold = { .resource = hf_str("hall"),
                                                           .requester = hf_str("guest"),
                                                           .duration_ms = DAY } };
    }
    assert_int_equal(hf_do_many(k->db, requests, results, HOLDS), HF_OK);
    for (int i = 0; i < HOLDS; i++) {
        assert_int_equal(results[i].answer.status, HF_OK);
        memcpy(ids[i], results[i].answer.hold.id, HF_ID_SIZE);
        hf_result_clear(&results[i]);
    }
}

static struct kit *kit_with_holds(void)
{
    struct kit *k = kit_make();
    k->options.snapshot_every_bytes = 65536;
    kit_reopen(k);
    assert_int_equal(kit_resource(k, "hall", HOLDS), HF_OK);
    place_all(k);
    snapshot_make(k);
    return k;
}

/* Holds 0, 100, 200 ... are released, and 50, 150, 250 ... confirmed; the others are held. Each
 * part of the file is written twice, so that neither of its places is as it was. */
static void change_some(struct kit *k)
{
    for (int i = 0; i < HOLDS; i += 100)
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
    snapshot_make(k);
    for (int i = 50; i < HOLDS; i += 100)
        assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), ids[i]), HF_OK);
    snapshot_make(k);
}

static enum hf_hold_state state_of(int i)
{
    return i % 100 == 0 ? HF_RELEASED : i % 100 == 50 ? HF_CONFIRMED : HF_HELD;
}

static void all_as_they_are(struct kit *k, bool changed)
{
    for (int i = 0; i < HOLDS; i++) {
        assert_int_equal(kit_get_hold(k, ids[i]), HF_OK);
        assert_int_equal(k->got.answer.hold.state, changed ? state_of(i) : HF_HELD);
    }
    struct hf_query q = { .kind = HF_LIST_HOLDS, .limit = 500 };
    size_t listed = 0;
    do {
        struct hf_page page;
        assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
        listed += page.count;
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (q.cursor);
    assert_int_equal(listed, HOLDS);
}

/* None of the released is shown as held, or can be confirmed: now, or when the store has had time
 * to rebuild. */
static void never_held_again(struct kit *k)
{
    for (int i = 0; i < HOLDS; i += 100) {
        enum hf_status st = kit_get_hold(k, ids[i]);
        assert_true(st == HF_STORAGE_FAILURE || st == HF_OK);
        if (st == HF_OK)
            assert_int_equal(k->got.answer.hold.state, HF_RELEASED);
        st = kit_end(k, HF_CONFIRM, kit_key(k), ids[i]);
        assert_true(st == HF_STORAGE_FAILURE || st == HF_NOT_HELD);
    }
}

/* Put the file back as it was; or only the places that were in use then and are now, as if the disk
 * had lost the newest write of each. */
static void stale_put(const struct kit *k, const struct bytes *old, bool whole)
{
    if (whole)
        file_put(k, "holds.idx", old->data, old->size, 0);
    for (int part = 1; !whole && part <= PARTS; part++)
        file_put(k, "holds.idx", old->data + (2 * part - 1) * BLOCK, BLOCK, (2 * part - 1) * BLOCK);
}

/* ---- Tests ---- */

static void a_stale_part_is_not_believed_while_the_store_runs(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct kit *k = kit_with_holds();
        struct bytes old = file_read(k, "holds.idx");
        change_some(k);
        k->warnings = 0;
        stale_put(k, &old, whole);
        never_held_again(k);
        /* a list that missed holds which are there would be a lie, and waiting helps */
        struct hf_page page;
        assert_int_equal(hf_list(k->db, &(struct hf_query){ .kind = HF_LIST_HOLDS }, &page),
                         HF_STORAGE_FAILURE);
        kit_settle(k);
        never_held_again(k);
        all_as_they_are(k, true);
        assert_true(k->warnings > 0);
        assert_non_null(strstr(k->note, "holds.idx"));
        assert_true(kit_stats(k).index_rebuilds > 0);
        /* And for good: what was rebuilt is written. */
        kit_settle(k);
        kit_reopen(k);
        assert_int_equal(kit_stats(k).index_rebuilds, 0);
        all_as_they_are(k, true);
        free(old.data);
        kit_free(k);
    }
}

static void a_stale_part_is_not_believed_at_a_start(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct kit *k = kit_with_holds();
        struct bytes old = file_read(k, "holds.idx");
        change_some(k);
        kit_close(k);
        stale_put(k, &old, whole);
        k->warnings = 0;
        kit_open(k);
        never_held_again(k);
        all_as_they_are(k, true);
        assert_true(k->warnings > 0);
        assert_int_equal(kit_stats(k).index_rebuilds, 1);
        free(old.data);
        kit_free(k);
    }
}

/* One flipped bit anywhere: found at a start, or when the part is read. */
static void a_flipped_bit_in_any_part_is_found(void **state)
{
    (void)state;
    static const off_t places[] = { 0, 7, 8, 15, 16, 23, 24, 31, 32, 39, 40, 2000, 4088, 4095 };
    struct kit *k = kit_with_holds();
    change_some(k);
    for (int part = 0; part <= PARTS; part++) {
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            if (part == 0 && places[i] >= 40)
                continue;
            kit_close(k);
            index_flip(k, part, places[i]);
            k->warnings = 0;
            kit_open(k);
            all_as_they_are(k, true);
            assert_int_equal(k->warnings, 1);
            assert_non_null(strstr(k->note, "holds.idx"));
            assert_int_equal(kit_stats(k).index_rebuilds, 1);
            kit_settle(k); /* it is written again by itself */
            kit_reopen(k);
            assert_int_equal(kit_stats(k).index_rebuilds, 0);
            if (part == 0)
                continue;
            assert_int_equal(kit_get_hold(k, ids[part == PARTS ? 0 : HOLDS - 1]),
                             HF_OK); /* another part */
            index_flip(k, part, places[i]);
            never_held_again(k);
            kit_settle(k);
            all_as_they_are(k, true);
            assert_int_equal(kit_stats(k).index_rebuilds, 1);
        }
    }
    kit_free(k);
}

/* A start with a slow journal: what is right in the file is used at once, and the rest is rebuilt
 * while the store works. */
static void a_start_waits_a_bounded_time_for_the_index(void **state)
{
    (void)state;
    enum { ONE_PART, HEADER, WHOLE_FILE, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        struct kit *k = kit_with_holds();
        for (int i = 0; i < 80; i++) /* 16 MiB are read in any case */
            assert_int_equal(kit_write(k, 6, 50000, 4), HF_OK);
        change_some(k);
        kit_close(k);
        if (kind == WHOLE_FILE)
            kit_remove(k, "holds.idx");
        else
            index_flip(k, kind == ONE_PART, 30);
        atomic_store(&k->io.step_ns, UINT64_C(600000000));
        kit_open(k);
        assert_int_equal(kit_stats(k).index_rebuilds, 1);
        never_held_again(k);
        assert_int_equal(kit_get_hold(k, ids[1]), kind == HEADER ? HF_OK : HF_STORAGE_FAILURE);
        assert_int_equal(kit_get_hold(k, ids[HOLDS - 1]),
                         kind == WHOLE_FILE ? HF_STORAGE_FAILURE : HF_OK);
        assert_int_equal(kit_place(k, kit_key(k), "elsewhere", "guest", DAY), HF_OK);
        char elsewhere[HF_ID_SIZE];
        memcpy(elsewhere, k->got.answer.hold.id, HF_ID_SIZE);
        assert_int_equal(kit_get_hold(k, elsewhere), HF_OK);
        assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), elsewhere), HF_OK);
        /* A store that is closed and opened meanwhile begins again, and forgets nothing. */
        kit_reopen(k);
        never_held_again(k);
        atomic_store(&k->io.step_ns, 0);
        kit_settle(k);
        never_held_again(k);
        for (int i = 0; i < HOLDS; i++) {
            assert_int_equal(kit_get_hold(k, ids[i]), HF_OK);
            assert_int_equal(k->got.answer.hold.state, state_of(i));
        }
        kit_settle(k);
        kit_reopen(k);
        assert_int_equal(kit_stats(k).index_rebuilds, 0);
        kit_free(k);
    }
}

/* The directory as it was, with the index of a later day: by itself, and after the older journal
 * has gone another way. */
static void a_newer_index_beside_an_older_journal_is_rebuilt(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        struct kit *k = kit_with_holds();
        char old[512];
        snprintf(old, sizeof old, "%s-old", k->dir);
        kit_close(k);
        dir_copy(k->dir, old);
        kit_open(k);
        change_some(k);
        kit_close(k);
        struct bytes newer = file_read(k, "holds.idx");
        dir_copy(old, k->dir);
        if (other) {
            kit_open(k);
            for (int i = 25; i < HOLDS; i += 100)
                assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), ids[i]), HF_OK);
            snapshot_make(k);
            for (int i = 75; i < HOLDS; i += 100)
                assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), ids[i]), HF_OK);
            snapshot_make(k);
            kit_close(k);
        }
        file_put(k, "holds.idx", newer.data, newer.size, 0);
        k->warnings = 0;
        kit_open(k);
        if (!other)
            all_as_they_are(k, false);
        for (int i = 0; other && i < HOLDS; i++) {
            assert_int_equal(kit_get_hold(k, ids[i]), HF_OK);
            assert_int_equal(k->got.answer.hold.state, i % 100 == 25   ? HF_CONFIRMED
                                                       : i % 100 == 75 ? HF_RELEASED
                                                                       : HF_HELD);
        }
        assert_true(k->warnings > 0);
        assert_int_equal(kit_stats(k).index_rebuilds, 1);
        char line[600];
        snprintf(line, sizeof line, "rm -rf '%s'", old);
        assert_int_equal(system(line), 0);
        free(newer.data);
        kit_free(k);
    }
}

static void an_index_of_any_length_and_content_does_no_harm(void **state)
{
    (void)state;
    struct kit *k = kit_with_holds();
    change_some(k);
    kit_close(k);
    struct bytes good = file_read(k, "holds.idx");
    const size_t in_use =
        2 * PARTS * BLOCK; /* the first place of the last part is the last that is in use */
    const size_t sizes[] = { 0,
                             1,
                             51,
                             4095,
                             4096,
                             4097,
                             8192,
                             12288,
                             good.size - 1,
                             good.size + 1,
                             good.size + 4096,
                             good.size + 100000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int garbage = 0; garbage < 2; garbage++) {
            unsigned char *data = malloc(sizes[i] + 1);
            for (size_t n = 0; n < sizes[i]; n++)
                data[n] = !garbage && n < good.size ? good.data[n] : (unsigned char)(n * 7 + 3);
            assert_int_equal(truncate(path_of(k, "holds.idx"), 0), 0);
            file_put(k, "holds.idx", data, sizes[i], 0);
            free(data);
            kit_open(k);
            all_as_they_are(k, true);
            assert_int_equal(kit_stats(k).index_rebuilds, garbage || sizes[i] < in_use);
            kit_close(k);
        }
    }
    free(good.data);
    kit_free(k);
}

/* Version 0.1 left another file, and its snapshots say nothing of it: no reason to warn. */
static void a_file_of_an_older_version_is_made_anew(void **state)
{
    (void)state;
    struct kit *k = kit_with_holds();
    change_some(k);
    kit_close(k);
    file_put(k, "holds.idx", (const unsigned char *)"HOLDIDX1", 8, 0);
    k->warnings = 0;
    kit_open(k);
    all_as_they_are(k, true);
    assert_int_equal(k->warnings, 0);
    kit_settle(k);
    struct bytes now = file_read(k, "holds.idx");
    assert_memory_equal(now.data, "HOLDIDX2", 8);
    free(now.data);
    kit_reopen(k);
    assert_int_equal(kit_stats(k).index_rebuilds, 0);
    all_as_they_are(k, true);
    kit_free(k);
}

/* ---- A rotten record in the journal itself ---- */

static void record_rot(const struct kit *k, const char *requester)
{
    DIR *d = opendir(k->dir);
    bool done = false;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 4, ".log") != 0)
            continue;
        struct bytes b = file_read(k, e->d_name);
        unsigned char *at = memmem(b.data, b.size, requester, strlen(requester));
        for (; at; at = memmem(at + 1, b.size - (size_t)(at + 1 - b.data), requester,
                               strlen(requester))) {
            file_flip(k, e->d_name, at - b.data);
            done = true;
        }
        free(b.data);
    }
    closedir(d);
    assert_true(done);
}

static size_t listed(struct kit *k, struct hf_query q)
{
    size_t count = 0;
    q.kind = HF_LIST_HOLDS;
    do {
        struct hf_page page;
        assert_int_equal(hf_list(k->db, &q, &page), HF_OK);
        count += page.count;
        q.cursor = page.next_cursor;
        hf_page_clear(&page);
    } while (q.cursor);
    return count;
}

static void a_list_goes_on_past_a_record_that_cannot_be_read(void **state)
{
    (void)state;
    struct kit *k = kit_make();
    char rotten[HF_ID_SIZE] = "", name[32];
    assert_int_equal(kit_resource(k, "hall", 1000), HF_OK);
    for (int i = 0; i < 99; i++) {
        kit_at(k, i * SECOND);
        snprintf(name, sizeof name, "who-%03d-", i);
        assert_int_equal(kit_place(k, kit_key(k), i % 3 == 1 ? "hall" : kit_key(k), name, DAY),
                         HF_OK);
        if (i == 49)
            memcpy(rotten, k->got.answer.hold.id, HF_ID_SIZE);
    }
    record_rot(k, "who-049-");
    k->warnings = 0;
    assert_int_equal(kit_get_hold(k, rotten), HF_STORAGE_FAILURE);
    assert_int_equal(k->warnings, 1);
    assert_non_null(strstr(k->note, "journal-00000001.log"));
    assert_int_equal(listed(k, (struct hf_query){ .limit = 10 }), 98);
    assert_int_equal(listed(k, (struct hf_query){ .limit = 200 }), 98);
    assert_int_equal(listed(k, (struct hf_query){ .resource = hf_str("hall"), .limit = 4 }), 32);
    assert_int_equal(listed(k, (struct hf_query){ .resource = hf_str("hall"), .limit = 100 }), 32);
    for (int i = 1; i < 99; i++)
        assert_int_equal(listed(k, (struct hf_query){ .to = KIT_START + i * SECOND }),
                         i > 49 ? i - 1 : i);
    assert_true(kit_stats(k).records_unreadable > 0);
    assert_true(k->warnings < 10); /* said, and not at every turn */
    kit_free(k);
}

/* A part that cannot be rebuilt, because the journal itself is damaged: its holds stay unreadable,
 * the others are listed. */
static void a_part_that_cannot_be_rebuilt_hides_no_other(void **state)
{
    (void)state;
    struct kit *k = kit_with_holds();
    assert_int_equal(kit_place(k, kit_key(k), "elsewhere", "who-is-rotten", DAY), HF_OK);
    change_some(k);
    kit_reopen(k); /* nothing of the file is in memory */
    record_rot(k, "who-is-rotten");
    index_flip(k, 1, 1000);
    assert_int_equal(kit_get_hold(k, ids[0]), HF_STORAGE_FAILURE);
    kit_settle(k);
    assert_non_null(strstr(k->note, "holds.idx cannot be rebuilt"));
    assert_int_equal(kit_get_hold(k, ids[0]), HF_STORAGE_FAILURE);
    assert_int_equal(kit_get_hold(k, ids[HOLDS - 1]), HF_OK);
    assert_int_equal(listed(k, (struct hf_query){ .limit = 300 }), HOLDS - 509);
    kit_free(k);
}

/* ---- Threads ---- */

static struct kit *shared;

static void read_all(struct kit_worker *w)
{
    struct hf_result got = HF_RESULT_INIT;
    for (int round = 0; round < 10000; round++) {
        int i = (round * 37 + w->number * 509) % HOLDS;
        struct hf_request r = { .action = HF_GET_HOLD, .hold = { hf_str(ids[i]) } };
        if (w->number == 0 && round % 1000 == 0)
            index_flip(shared, 1 + round / 1000 % PARTS, 500 + round / 10);
        enum hf_status st = hf_do(shared->db, &r, &got);
        KIT_WANT(st == HF_OK || st == HF_STORAGE_FAILURE);
        if (st == HF_OK)
            KIT_WANT(got.answer.hold.state == state_of(i));
        w->done += st == HF_OK;
    }
    hf_result_clear(&got);
}

static sem_t rebuilt; /* posted whenever some parts were */

static void note_rebuilt(void *arg, int level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "were rebuilt from the journal"))
        sem_post(&rebuilt);
}

static void damage_under_load_is_rebuilt_in_the_background(void **state)
{
    (void)state;
    struct kit_worker workers[4];
    shared = kit_with_holds();
    change_some(shared);
    shared->options.no_background = false;
    shared->options.on_note = note_rebuilt;
    assert_int_equal(sem_init(&rebuilt, 0, 0), 0);
    kit_reopen(shared);
    kit_run(workers, 4, read_all);
    for (int i = 0; i < 4; i++)
        assert_true(workers[i].done > 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    for (bool all = false;
         !all;) { /* a part that cannot be read is rebuilt, and the note says so */
        all = true;
        for (int i = 0; i < HOLDS && all; i++)
            all = kit_get_hold(shared, ids[i]) == HF_OK;
        if (!all)
            assert_int_equal(sem_timedwait(&rebuilt, &until), 0);
    }
    assert_true(kit_stats(shared).index_rebuilds > 0);
    /* Looked at without the thread, which may come by a damaged part once more when it writes the
     * next snapshot. */
    shared->options.no_background = true;
    kit_reopen(shared);
    all_as_they_are(shared, true);
    kit_free(shared);
}

/* A part has one hold, and that changes when a snapshot has begun and before it takes anything. The
 * snapshot said nothing of the part, and the next start took it for one that the disk had
 * spoilt. */
static void a_part_that_has_changed_since_the_snapshot_began_is_right(void **state)
{
    (void)state;
    enum { FULL = 509, STEPS = 8 };
    static struct hf_request requests[FULL];
    static char keys[FULL][16];
    for (int steps = 0; steps < STEPS; steps++) {
        struct kit *k = kit_make();
        char id[HF_ID_SIZE];
        kit_leave(k);
        k->options.snapshot_every_bytes = 65536;
        kit_open(k);
        assert_int_equal(kit_resource(k, "hall", FULL + 1), HF_OK);
        for (int i = 0; i < FULL; i++) {
            snprintf(keys[i], sizeof keys[i], "k%d", i);
            requests[i] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                               .key = hf_str(keys[i]),
                                               .place_hold = { .resource = hf_str("hall"),
                                                               .requester = hf_str("guest"),
                                                               .duration_ms = DAY } };
        }
        assert_int_equal(hf_do_many(k->db, requests, NULL, FULL), HF_OK);
        kit_held(k, "hall", DAY, id);
        for (int i = 0; i < steps; i++)
            hf_maintain(k->db);
        assert_int_equal(kit_end(k, HF_CONFIRM, "confirm", id), HF_OK);
        kit_settle(k);
        assert_true(kit_stats(k).snapshots > 0);
        int warnings = atomic_load(&k->warnings);
        kit_reopen(k);
        assert_int_equal(kit_stats(k).index_rebuilds, 0);
        assert_int_equal(atomic_load(&k->warnings), warnings);
        assert_int_equal(kit_get_hold(k, id), HF_OK);
        assert_int_equal(k->got.answer.hold.state, HF_CONFIRMED);
        kit_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stale_part_is_not_believed_while_the_store_runs),
        cmocka_unit_test(a_stale_part_is_not_believed_at_a_start),
        cmocka_unit_test(a_part_that_has_changed_since_the_snapshot_began_is_right),
        cmocka_unit_test(a_flipped_bit_in_any_part_is_found),
        cmocka_unit_test(a_start_waits_a_bounded_time_for_the_index),
        cmocka_unit_test(a_newer_index_beside_an_older_journal_is_rebuilt),
        cmocka_unit_test(an_index_of_any_length_and_content_does_no_harm),
        cmocka_unit_test(a_file_of_an_older_version_is_made_anew),
        cmocka_unit_test(a_list_goes_on_past_a_record_that_cannot_be_read),
        cmocka_unit_test(a_part_that_cannot_be_rebuilt_hides_no_other),
        cmocka_unit_test(damage_under_load_is_rebuilt_in_the_background),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

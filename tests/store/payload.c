/* A client's payload must never be taken for a part of the journal, wherever it lies and however a
 * write is torn. Once, a claim's response full of batches of the client's own making, torn by a
 * crash, kept the store from opening; and a whole follow-up batch, which needs only what an audit
 * shows to every tenant, was taken for real.
 *
 * The client of this test knows everything but the store's secret. */
#include "audit/audit.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"
#include "support/test_io.h"

#include <unistd.h>

enum { BLOCK = 4096, SECTOR = 512, SEGMENT = 262144, PAYLOAD = 9 * BLOCK };
#define NOW_MS INT64_C(1700000000000)
#define SEGMENT_FILE "journal-00000001.log"

struct bytes {
    unsigned char *data; /* owned */
    size_t size;
};

static struct test_io io;
static char *dir;

static void path_of(const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", dir, name);
}

static struct bytes load(const char *name)
{
    char path[512];
    path_of(name, path);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    struct bytes b = { .size = (size_t)ftell(f) };
    b.data = malloc(b.size);
    rewind(f);
    assert_int_equal(fread(b.data, 1, b.size, f), b.size);
    fclose(f);
    return b;
}

static void save(const char *name, const unsigned char *data, size_t size)
{
    char path[512];
    path_of(name, path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}

static enum hf_status store_open(struct hf_db **db, struct hf_error *why)
{
    struct hf_options o = { .io = &io.io, .no_background = true, .segment_max_bytes = SEGMENT };
    return hf_open(dir, &o, db, why);
}

static struct hf_db *must_open(void)
{
    struct hf_db *db;
    struct hf_error why;
    enum hf_status st = store_open(&db, &why);
    if (st != HF_OK)
        printf("the store does not open: %s\n", why.text);
    assert_int_equal(st, HF_OK);
    return db;
}

static enum hf_status set_resource(struct hf_db *db, const char *tenant, const char *name)
{
    return hf_do(db,
                 &(struct hf_request){ .action = HF_SET_RESOURCE,
                                       .tenant = hf_str(tenant),
                                       .set_resource = { .name = hf_str(name), .capacity = 1000 } },
                 NULL);
}

static enum hf_status place(struct hf_db *db, const char *key, bool *replayed)
{
    struct hf_result got = HF_RESULT_INIT;
    enum hf_status st = hf_do(db,
                              &(struct hf_request){ .action = HF_PLACE_HOLD,
                                                    .tenant = hf_str("victim"),
                                                    .key = hf_str(key),
                                                    .place_hold = { .resource = hf_str("room"),
                                                                    .requester = hf_str("guest"),
                                                                    .duration_ms = 600000 } },
                              &got);
    *replayed = got.replayed;
    hf_result_clear(&got);
    return st;
}

static enum hf_status complete(struct hf_db *db, struct hf_bytes response)
{
    struct hf_request r = { .action = HF_COMPLETE,
                            .tenant = hf_str("client"),
                            .key = hf_str("claim"),
                            .settle = { .fence = 1, .response = response } };
    return hf_do(db, &r, NULL);
}

static bool forged(struct hf_db *db)
{
    return hf_do(db,
                 &(struct hf_request){ .action = HF_GET_RESOURCE,
                                       .tenant = hf_str("victim"),
                                       .get = { .name = hf_str("forged") } },
                 NULL) != HF_NOT_KNOWN;
}

/* ---- What the client makes ---- */

/* The end of the journal, as an audit shows it. */
struct end {
    uint64_t position, sequence;
    uint8_t chain[HF_DIGEST_SIZE];
};

static size_t head_size(const unsigned char *batch)
{
    return batch[3] == '1' ? 80 : 112;
}

/* Walk the segment: sequence and hash of its newest batch, and the place behind it. */
static struct end end_of(const struct bytes *segment)
{
    struct end e = { .position = BLOCK };
    for (;;) {
        const unsigned char *b = segment->data + e.position;
        if (memcmp(b, "HFB", 3) != 0 || hf_get64(b + 16) != e.position)
            return e;
        hf_sha256_of(b, hf_get32(b + 4), e.chain);
        e.sequence = hf_get64(b + 8);
        e.position += (hf_get32(b + 4) + BLOCK - 1) / BLOCK * BLOCK;
    }
}

/* How the client may try to seal a batch. */
enum form { FORM_OLD, FORM_NO_TAG, FORM_ZERO_KEY, FORM_BORROWED_TAG, FORMS };

/* The entry that makes resource "forged" in the victim's tenant, as the client has learned it from
 * a store of its own. */
static struct bytes entry;

static void entry_learn(void)
{
    struct hf_db *db = must_open();
    struct bytes before = load(SEGMENT_FILE);
    assert_int_equal(set_resource(db, "victim", "forged"), HF_OK);
    hf_close(db);
    struct bytes after = load(SEGMENT_FILE);
    const unsigned char *batch = after.data + end_of(&before).position;
    entry.size = hf_get32(batch + 4) - head_size(batch);
    entry.data = malloc(entry.size);
    memcpy(entry.data, batch + head_size(batch), entry.size);
    free(before.data);
    free(after.data);
}

/* A batch at `position` that follows `end`, or comes some batches later. Returns its size. */
static size_t batch_make(enum form form, const struct end *end, uint64_t position,
                         uint64_t sequence, const unsigned char *borrowed, unsigned char out[BLOCK])
{
    size_t head = form == FORM_OLD ? 80 : 112, length = head + entry.size;
    memset(out, 0, BLOCK);
    memcpy(out, form == FORM_OLD ? "HFB1" : "HFB2", 4);
    hf_put32(out + 4, (uint32_t)length);
    hf_put64(out + 8, sequence);
    hf_put64(out + 16, position);
    hf_put64(out + 24, NOW_MS);
    memcpy(out + 32, end->chain, HF_DIGEST_SIZE);
    memcpy(out + head, entry.data, entry.size);
    if (form == FORM_OLD) {
        hf_put32(out + 64, 1);
        hf_put32(out + 72, hf_crc32c(0, out, 72));
        hf_put32(out + 76, hf_crc32c(0, out + head, entry.size));
        return length;
    }
    hf_put32(out + 96, 1);
    if (form == FORM_BORROWED_TAG)
        memcpy(out + 64, borrowed + 64, 32);
    else
        jw_entries_tag(&(struct hf_sipkey){ 0, 0 }, out, length);
    if (form == FORM_ZERO_KEY)
        hf_put64(out + 104,
                 hf_siphash(&(struct hf_sipkey){ 0, 0 }, hf_mem(out, 104), hf_mem(NULL, 0)));
    if (form == FORM_BORROWED_TAG)
        memcpy(out + 104, borrowed + 104, 8);
    return length;
}

/* ---- A store with a few batches, and its files ---- */

static struct bytes start_segment, start_closed;
static struct end start_end;

static void begin(void)
{
    bool replayed;
    dir = test_dir_make();
    test_io_init(&io);
    io.wall = NOW_MS;
    entry_learn();
    test_dir_remove(dir);
    dir = test_dir_make();
    struct hf_db *db = must_open();
    assert_int_equal(set_resource(db, "victim", "room"), HF_OK);
    assert_int_equal(place(db, "order-1", &replayed), HF_OK);
    assert_int_equal(hf_do(db,
                           &(struct hf_request){ .action = HF_BEGIN,
                                                 .tenant = hf_str("client"),
                                                 .key = hf_str("claim"),
                                                 .begin = { .payload = hf_str("x") } },
                           NULL),
                     HF_OK);
    hf_close(db);
    start_segment = load(SEGMENT_FILE);
    start_closed = load("closed");
    start_end = end_of(&start_segment);
}

static void end(void)
{
    free(start_segment.data);
    free(start_closed.data);
    free(entry.data);
    test_dir_remove(dir);
}

/* The store as it was, with another segment. */
static void files_put(const unsigned char *segment)
{
    save(SEGMENT_FILE, segment, start_segment.size);
    save("closed", start_closed.data, start_closed.size);
}

/* Everything that was acknowledged is there, nothing that the client made up is, and nothing is
 * left behind the end. */
static void look(const char *what, unsigned at)
{
    struct hf_audit_report report;
    struct hf_error why;
    bool replayed;
    struct hf_db *db;
    enum hf_status st = store_open(&db, &why);
    if (st != HF_OK)
        fail_msg("%s, sector %u: the store does not open: %s", what, at, why.text);
    if (forged(db))
        fail_msg("%s, sector %u: the client's batch was taken for real", what, at);
    assert_int_equal(place(db, "order-1", &replayed), HF_OK);
    assert_true(replayed);
    struct bytes now = load(SEGMENT_FILE);
    for (uint64_t i = end_of(&now).position; i < now.size; i++)
        if (now.data[i] != 0)
            fail_msg("%s, sector %u: something is left behind the end, at byte %llu", what, at,
                     (unsigned long long)i);
    free(now.data);
    assert_int_equal(set_resource(db, "client", "small"), HF_OK);
    hf_close(db);
    assert_int_equal(hf_audit_run(dir, NULL, &report, &why), HF_OK);
    assert_int_equal(report.verdict, HF_AUDIT_OK);
    hf_audit_report_free(&report);
}

/* A whole batch of the client's that follows the newest one, left where the next one begins. */
static void a_follow_up_batch_is_not_believed(void **state)
{
    (void)state;
    begin();
    unsigned char *segment = malloc(start_segment.size);
    for (unsigned form = 0; form < FORMS; form++) {
        for (uint64_t ahead = 0; ahead < 3;
             ahead++) { /* the next one; or later ones, as if one were damaged */
            unsigned char batch[BLOCK];
            uint64_t position = start_end.position + ahead * BLOCK;
            batch_make((enum form)form, &start_end, position, start_end.sequence + 1 + ahead,
                       start_segment.data + BLOCK, batch);
            memcpy(segment, start_segment.data, start_segment.size);
            memcpy(segment + position, batch, BLOCK);
            files_put(segment);
            look("a planted batch", form);
        }
    }
    free(segment);
    end();
}

/* ---- Torn writes of a payload full of such batches ---- */

/* Where in the file the payload of the next completed claim lies. */
static size_t payload_at(void)
{
    unsigned char marker[PAYLOAD];
    memset(marker, 'm', sizeof marker);
    struct hf_db *db = must_open();
    assert_int_equal(complete(db, hf_mem(marker, sizeof marker)), HF_OK);
    hf_close(db);
    struct bytes segment = load(SEGMENT_FILE);
    size_t at = start_end.position;
    while (memcmp(segment.data + at, marker, sizeof marker) != 0)
        at++;
    free(segment.data);
    return at;
}

static void payload_fill(unsigned char *payload, size_t at)
{
    memset(payload, 'p', PAYLOAD);
    for (size_t block = (at + BLOCK - 1) / BLOCK; (block + 1) * BLOCK <= at + PAYLOAD; block++) {
        unsigned char batch[BLOCK];
        uint64_t ahead = block - start_end.position / BLOCK;
        batch_make((enum form)(block % FORMS), &start_end, block * BLOCK,
                   start_end.sequence + 1 + ahead % 3, start_segment.data + BLOCK, batch);
        memcpy(payload + block * BLOCK - at, batch, BLOCK);
    }
}

static void a_payload_torn_at_every_sector_is_cleared(void **state)
{
    (void)state;
    begin();
    unsigned char payload[PAYLOAD];
    payload_fill(payload, payload_at());
    files_put(start_segment.data);
    struct hf_db *db = must_open();
    assert_int_equal(complete(db, hf_mem(payload, sizeof payload)), HF_OK);
    hf_close(db);
    struct bytes whole = load(SEGMENT_FILE);
    size_t from = start_end.position / SECTOR, to = end_of(&whole).position / SECTOR;
    assert_true(to - from >= PAYLOAD / SECTOR);
    unsigned char *torn = malloc(whole.size);
    for (size_t cut = from; cut < to; cut++) {
        size_t at = cut * SECTOR, end_at = to * SECTOR, begin_at = from * SECTOR;
        /* Only what comes before the cut is on the disk; only what comes from there on; all but one
         * sector. */
        memcpy(torn, whole.data, whole.size);
        memcpy(torn + at, start_segment.data + at, end_at - at);
        files_put(torn);
        look("the end is lost", (unsigned)(cut - from));
        memcpy(torn, whole.data, whole.size);
        memcpy(torn + begin_at, start_segment.data + begin_at, at + SECTOR - begin_at);
        files_put(torn);
        look("the beginning is lost", (unsigned)(cut - from));
        memcpy(torn, whole.data, whole.size);
        memcpy(torn + at, start_segment.data + at, SECTOR);
        if (memcmp(torn, whole.data, whole.size) == 0)
            continue; /* the sector is zeros in both */
        files_put(torn);
        look("one sector is lost", (unsigned)(cut - from));
    }
    free(torn);
    free(whole.data);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_follow_up_batch_is_not_believed),
                                        cmocka_unit_test(
                                            a_payload_torn_at_every_sector_is_cleared) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

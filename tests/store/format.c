/* The bytes on disk, held against doc/FORMAT.md: offsets and numbers here are copied from that
 * page, not from the code. */
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"
#include "support/test_io.h"

#include "audit/audit.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/id.h"

enum { NOW = 1700000000 };
#define NOW_MS (INT64_C(1000) * NOW)

struct file {
    unsigned char *data;
    size_t size;
};

static struct file slurp(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    struct file file = { .size = (size_t)ftell(f) };
    file.data = malloc(file.size);
    rewind(f);
    assert_int_equal(fread(file.data, 1, file.size, f), file.size);
    fclose(f);
    return file;
}

static struct hf_db *open_at(const char *dir, struct test_io *io)
{
    struct hf_db *db;
    struct hf_error why;
    struct hf_options o = { .io = &io->io, .no_background = true };
    assert_int_equal(hf_open(dir, &o, &db, &why), HF_OK);
    return db;
}

static void a_hold_on_disk_is_as_the_page_says(void **state)
{
    (void)state;
    struct test_io io;
    char *dir = test_dir_make();
    test_io_init(&io);
    io.wall = NOW_MS;
    struct hf_db *db = open_at(dir, &io);
    io.wall = NOW_MS + 5;
    struct hf_result got = HF_RESULT_INIT;
    struct hf_request place = { .action = HF_PLACE_HOLD,
                                .tenant = hf_str("acme"),
                                .key = hf_str("order-1"),
                                .place_hold = { .resource = hf_str("room-307"),
                                                .requester = hf_str("guest-91"),
                                                .duration_ms = 900000 } };
    assert_int_equal(hf_do(db, &place, &got), HF_OK);
    hf_close(db);

    struct file f = slurp(dir, "journal-00000001.log");
    const unsigned char *s = f.data;
    /* segment header */
    assert_int_equal(f.size, 4 << 20);
    assert_memory_equal(s, "HOLDSEG1", 8);
    assert_int_equal(hf_get32(s + 8), 2);
    assert_int_equal(hf_get32(s + 12), 4096);
    assert_int_equal(hf_get64(s + 16), 1);
    assert_int_equal(hf_get64(s + 24), 0);
    assert_int_equal(hf_get64(s + 32), 4 << 20);
    assert_int_equal(hf_get64(s + 40), 1);
    assert_int_equal(hf_get64(s + 48), NOW_MS);
    struct hf_sipkey id_key = { hf_get64(s + 88), hf_get64(s + 96) };
    struct hf_sipkey seal = { hf_get64(s + 104), hf_get64(s + 112) };
    assert_true(seal.k0 != 0 && seal.k1 != 0);
    for (size_t i = 120; i < 152; i++)
        assert_int_equal(s[i], 0);
    assert_int_equal(hf_get64(s + 152), hf_siphash(&seal, hf_mem(s, 152), hf_mem(NULL, 0)));
    for (size_t i = 160; i < 4096; i++)
        assert_int_equal(s[i], 0);

    /* batch 1: the configuration */
    const unsigned char *b1 = s + 4096;
    assert_memory_equal(b1, "HFB2", 4);
    uint32_t length1 = hf_get32(b1 + 4);
    assert_int_equal(hf_get64(b1 + 8), 1);
    assert_int_equal(hf_get64(b1 + 16), 4096);
    assert_int_equal(hf_get64(b1 + 24), NOW_MS);
    unsigned char copy[4096];
    memcpy(copy, b1, sizeof copy);
    jw_entries_tag(&seal, copy, length1);
    assert_memory_equal(b1, copy, sizeof copy);
    assert_int_equal(hf_get32(b1 + 96), 1);
    assert_int_equal(hf_get32(b1 + 100), 0);
    assert_int_equal(hf_get64(b1 + 104), hf_siphash(&seal, hf_mem(b1, 104), hf_mem(NULL, 0)));
    const unsigned char *e1 = b1 + 112;
    assert_int_equal(hf_get32(e1), length1 - 112);
    assert_int_equal(e1[8], 33);
    assert_int_equal(e1[9], 0);
    assert_int_equal(e1[10], 0);
    assert_int_equal(e1[11], 1);
    assert_int_equal(e1[12], 255);
    const unsigned char *config = e1 + 24;
    assert_int_equal(config[0], 12);
    assert_int_equal(config[1], 0);
    assert_int_equal(hf_get64(config + 6), INT64_C(24) * 3600 * 1000);
    assert_int_equal(hf_get32(config + 14), 256);
    assert_int_equal(config[18], 0);
    assert_int_equal(hf_get16(config + 19), 8);
    assert_memory_equal(config + 21, "sha256/1", 8);

    /* batch 2: the hold */
    const unsigned char *b2 = s + 8192;
    uint8_t chain[32];
    hf_sha256_of(b1, length1, chain);
    assert_memory_equal(b2, "HFB2", 4);
    uint32_t length2 = hf_get32(b2 + 4);
    assert_int_equal(hf_get64(b2 + 8), 2);
    assert_int_equal(hf_get64(b2 + 16), 8192);
    assert_int_equal(hf_get64(b2 + 24), NOW_MS + 5);
    assert_memory_equal(b2 + 32, chain, 32);
    for (size_t i = length2; i < 4096; i++)
        assert_int_equal(b2[i], 0);
    const unsigned char *e = b2 + 112;
    uint32_t size = hf_get32(e);
    assert_int_equal(size, length2 - 112);
    assert_int_equal(hf_get32(e + 4), hf_crc32c(0, e + 8, size - 8));
    assert_int_equal(e[8], 1);  /* place_hold */
    assert_int_equal(e[9], 0);  /* ok */
    assert_int_equal(e[10], 1); /* by key */
    assert_int_equal(e[11], 2); /* rows */
    assert_int_equal(e[12], 0); /* the answer is row 0 */
    assert_int_equal(e[13], 4);
    assert_int_equal(hf_get16(e + 14), 7);
    assert_int_equal(hf_get64(e + 16), NOW_MS + 5);
    assert_int_equal(hf_get64(e + 24), NOW_MS + 5 + INT64_C(24) * 3600 * 1000);
    assert_memory_equal(e + 64, "acme", 4);
    assert_memory_equal(e + 68, "order-1", 7);

    /* the digest, from the description in src/core/digest.h */
    unsigned char canon[256];
    size_t n = 0;
#define FIELD(name, type, value, value_size)         \
    do {                                             \
        hf_put16(canon + n, (uint16_t)strlen(name)); \
        memcpy(canon + n + 2, name, strlen(name));   \
        n += 2 + strlen(name);                       \
        canon[n++] = (type);                         \
        hf_put32(canon + n, (uint32_t)(value_size)); \
        memcpy(canon + n + 4, value, value_size);    \
        n += 4 + (value_size);                       \
    } while (0)
    unsigned char duration[8];
    hf_put64(duration, 900000);
    FIELD("duration_ms", 2, duration, 8);
    FIELD("requester", 1, "guest-91", 8);
    FIELD("resource", 1, "room-307", 8);
    uint8_t digest[32];
    hf_sha256_of(canon, n, digest);
    assert_memory_equal(e + 32, digest, 32);

    const unsigned char *row = e + 75;
    assert_int_equal(row[0], 1);
    assert_int_equal(row[1], 0);
    const unsigned char *h = row + 6;
    assert_int_equal(hf_get64(h), 1);
    assert_int_equal(hf_get64(h + 8), 0);
    assert_int_equal(hf_get64(h + 16), NOW_MS + 5);
    assert_int_equal(hf_get64(h + 24), NOW_MS + 5 + 900000);
    assert_int_equal(hf_get64(h + 32), 0);
    assert_int_equal(h[40], 1);
    assert_int_equal(h[41], 0);
    char id[HF_ID_SIZE];
    hf_id_make(&id_key, 1, id);
    assert_string_equal(got.answer.hold.id, id);
    uint8_t raw[16];
    assert_true(hf_id_pack(hf_str(id), raw));
    assert_memory_equal(h + 42, raw, 16);
    assert_int_equal(hf_get16(h + 58), 8);
    assert_memory_equal(h + 60, "room-307", 8);
    assert_int_equal(hf_get16(h + 68), 8);
    assert_memory_equal(h + 70, "guest-91", 8);
    assert_int_equal(hf_get32(row + 2), 78);
    row = h + 78;
    assert_int_equal(row[0], 2);
    const unsigned char *r = row + 6;
    assert_int_equal(hf_get32(r), 1);
    assert_int_equal(hf_get32(r + 4), 1);
    assert_int_equal(hf_get32(r + 8), 0);
    assert_int_equal(r[12], 1);
    assert_int_equal(hf_get64(r + 13), 0);
    assert_int_equal(hf_get64(r + 21), 1);
    assert_int_equal(hf_get64(r + 29), NOW_MS + 5);
    assert_int_equal(hf_get16(r + 37), 8);
    assert_memory_equal(r + 39, "room-307", 8);
    assert_ptr_equal(r + 47, e + size);

    hf_result_clear(&got);
    free(f.data);
    test_dir_remove(dir);
}

/* One row of each kind comes back as it was written. */
static void every_kind_of_row_survives_the_disk(void **state)
{
    (void)state;
    struct test_io io;
    char *dir = test_dir_make();
    struct hf_result got = HF_RESULT_INIT;
    test_io_init(&io);
    io.wall = NOW_MS;
    struct hf_db *db = open_at(dir, &io);
    struct hf_item items[] = { { .name = hf_str("b"), .up = 5, .down = 2 },
                               { .name = hf_str("a"), .up = 1 } };
    struct hf_value value = { .type = HF_TYPE_UPDOWN, .items = items, .item_count = 2 };
    const struct hf_request requests[] = {
        { .action = HF_SET_RESOURCE,
          .set_resource = { .name = hf_str("r"), .capacity = 3, .open = HF_SET_CLOSED } },
        { .action = HF_SET_GUARD,
          .set_guard = { .name = hf_str("g"),
                         .window_ms = 60000,
                         .match_count = 2,
                         .match = { HF_MATCH_TRIM, HF_MATCH_CASEFOLD },
                         .on_unavailable = HF_FAIL_CLOSED } },
        { .action = HF_RECORD,
          .identity = { .guard = hf_str("g"),
                        .identity = hf_str(" Milk "),
                        .result = hf_str("done"),
                        .has_result = true } },
        { .action = HF_BEGIN,
          .key = hf_str("c"),
          .begin = { .payload = hf_str("p"), .lease_ms = 1000, .on_abandon = HF_ABANDON_RETRY } },
        { .action = HF_GRANT,
          .key = hf_str("k1"),
          .lease = { .name = hf_str("l"), .holder = hf_str("me"), .ttl_ms = 500 } },
        { .action = HF_WRITE,
          .key = hf_str("k2"),
          .write = { .name = hf_str("w"), .value = hf_str("v"), .fence = 9 } },
        { .action = HF_MERGE, .merge = { .name = hf_str("m"), .value = &value } },
        { .action = HF_PLACE_HOLD,
          .client = hf_str("till-7"),
          .sequence = 3,
          .place_hold = { .resource = hf_str("x"),
                          .requester = hf_str("q"),
                          .duration_ms = 1000 } },
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        assert_int_equal(hf_do(db, &requests[i], &got), HF_OK);
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            hf_close(db);
            db = open_at(dir, &io);
        }
        struct hf_request get = { .action = HF_GET_RESOURCE, .get = { .name = hf_str("r") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.resource.capacity, 3);
        assert_false(got.answer.resource.open);
        get = (struct hf_request){ .action = HF_GET_GUARD, .get = { .name = hf_str("g") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.guard.window_ms, 60000);
        assert_int_equal(got.answer.guard.match[1], HF_MATCH_CASEFOLD);
        assert_int_equal(got.answer.guard.on_unavailable, HF_FAIL_CLOSED);
        assert_true(got.answer.guard.durable);
        get =
            (struct hf_request){ .action = HF_CHECK,
                                 .identity = { .guard = hf_str("g"), .identity = hf_str("mILK") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_true(got.answer.seen.seen);
        assert_int_equal(got.answer.seen.result.size, 4);
        assert_memory_equal(got.answer.seen.result.data, "done", 4);
        get = (struct hf_request){ .action = HF_GET_CLAIM, .key = hf_str("c") };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.claim.state, HF_CLAIM_STARTED);
        assert_int_equal(got.answer.claim.fence, 1);
        assert_int_equal(got.answer.claim.on_abandon, HF_ABANDON_RETRY);
        get = (struct hf_request){ .action = HF_GET_LEASE, .get = { .name = hf_str("l") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.lease.fence, 2);
        assert_memory_equal(got.answer.lease.holder.data, "me", 2);
        get = (struct hf_request){ .action = HF_GET_REGISTER, .get = { .name = hf_str("w") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.reg.fence, 9);
        assert_int_equal(got.answer.reg.version, 1);
        get = (struct hf_request){ .action = HF_GET_REGISTER, .get = { .name = hf_str("m") } };
        assert_int_equal(hf_do(db, &get, &got), HF_OK);
        assert_int_equal(got.answer.reg.value.number, 4);
        assert_int_equal(got.answer.reg.value.item_count, 2);
        assert_memory_equal(got.answer.reg.value.items[0].name.data, "a", 1);
        assert_int_equal(got.answer.reg.value.items[1].down, 2);
        assert_int_equal(hf_do(db, &requests[7], &got), HF_OK);
        assert_true(got.replayed);
        assert_int_equal(got.answer.hold.ordinal, 1);
    }
    hf_result_clear(&got);
    hf_close(db);
    test_dir_remove(dir);
}

/* A store of format version 1 is opened, goes on in version 2, and is audited as one history. */

enum { BLOCK = 4096, SEGMENT = 131072 };

/* A batch that makes a resource. */
static void tell(struct jw *w, const char *name)
{
    jw_begin(w, KIT_START);
    struct jw_entry *e = jw_add(w, HF_SET_RESOURCE);
    jw_row(e, HF_ROW_RESOURCE)->resource = (struct hf_resource){
        .name = hf_str(name), .capacity = 1, .created_at = KIT_START, .open = true
    };
    jw_commit(w);
}

static void configure(struct jw *w)
{
    jw_begin(w, KIT_START);
    jw_row(jw_add(w, HF_CONFIGURE), HF_ROW_CONFIG)->config =
        (struct hf_config){ .idempotency_window_ms = 24 * HOUR,
                            .token_max_length = 256,
                            .digest_name = hf_str("sha256/1"),
                            .program = hf_str("0") };
    jw_commit(w);
}

/* The files of version 1: two segments with batches, of which the second has `second`, and a
 * prepared one. */
static struct kit *old_store_of(struct jw *w, int second)
{
    struct kit *k = kit_make();
    kit_leave(k);
    k->options.segment_max_bytes = SEGMENT;
    k->options.keep_plain = true;
    jw_open(w, k->dir, SEGMENT);
    w->version = 1;
    configure(w);
    tell(w, "one");
    w->next_segment = true;
    tell(w, "two");
    if (second > 1)
        tell(w, "three");
    jw_close(w);
    return k;
}

static struct kit *old_store(struct jw *w)
{
    return old_store_of(w, 2);
}

static enum hf_audit_verdict audited(struct kit *k)
{
    struct hf_audit_report report;
    struct hf_error why;
    enum hf_status st = hf_audit_run(k->dir, NULL, &report, &why);
    enum hf_audit_verdict verdict = st == HF_OK ? report.verdict : HF_AUDIT_DAMAGED;
    hf_audit_report_free(&report);
    return verdict;
}

static void look(struct kit *k, bool placed)
{
    static const char *const names[] = { "one", "two", "three" };
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kit_get(k, HF_GET_RESOURCE, names[i]), HF_OK);
    assert_int_equal(kit_place(k, "order", "one", "guest", 600000), HF_OK);
    assert_int_equal(k->got.replayed, placed);
}

static uint32_t version_of(struct kit *k, const char *name)
{
    size_t size;
    unsigned char *data = jw_load(k->dir, name, &size);
    uint32_t version = memcmp(data, "HOLDSEG1", 8) == 0 ? hf_get32(data + 8) : 0;
    free(data);
    return version;
}

static void an_old_store_goes_on(void **state)
{
    (void)state;
    static struct jw w;
    struct kit *k = old_store(&w);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_open(k);
    look(k, false);
    kit_reopen(k);
    look(k, true);
    kit_close(k);
    assert_int_equal(version_of(k, "journal-00000001.log"), 1);
    assert_int_equal(version_of(k, "journal-00000002.log"), 1);
    assert_int_equal(version_of(k, "journal-00000003.log"), 2);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_free(k);
}

/* What is behind the end of version 1 is cleared, and a batch of either version there is not
 * believed from then on. */
static void the_old_end_is_cleared(void **state)
{
    (void)state;
    static struct jw w;
    size_t size;
    struct kit *k = old_store(&w);
    unsigned char *data = jw_load(k->dir, "journal-00000002.log", &size);
    memset(data + 3 * BLOCK + 100, 'x', 3 * BLOCK); /* a batch that a crash cut short */
    jw_save(k->dir, "journal-00000002.log", data, size);
    free(data);
    kit_open(k);
    look(k, false);
    kit_close(k);
    data = jw_load(k->dir, "journal-00000002.log", &size);
    for (size_t i = 3 * BLOCK; i < size; i++)
        assert_int_equal(data[i], 0);
    /* A follow-up batch of version 1, as anybody can make one, in the segment of version 2. */
    free(data);
    data = jw_load(k->dir, "journal-00000003.log", &size);
    size_t end = BLOCK;
    uint64_t sequence = 0;
    while (memcmp(data + end, "HFB2", 4) == 0) {
        sequence = hf_get64(data + end + 8);
        end += (hf_get32(data + end + 4) + BLOCK - 1) / BLOCK * BLOCK;
    }
    assert_true(sequence > 4);
    unsigned char *old = data + end;
    memcpy(old, "HFB1", 4);
    hf_put32(old + 4, 80);
    hf_put64(old + 8, sequence + 2);
    hf_put64(old + 16, 2 * SEGMENT + end);
    hf_put32(old + 72, hf_crc32c(0, old, 72));
    jw_save(k->dir, "journal-00000003.log", data, size);
    free(data);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_open(k);
    look(k, true);
    kit_free(k);
}

/* The header with the secret rots before a second one exists: that is damage, and nothing is thrown
 * away. */
static void a_lost_secret_is_damage(void **state)
{
    (void)state;
    static struct jw w;
    struct hf_error why;
    struct kit *k = old_store(&w);
    kit_open(k);
    look(k, false);
    kit_close(k);
    kit_remove(k, "closed"); /* the note would tell, too */
    jw_flip(k->dir, "journal-00000003.log", 110);
    assert_int_equal(audited(k), HF_AUDIT_DAMAGED);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    jw_flip(k->dir, "journal-00000003.log", 110);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_open(k);
    look(k, true);
    kit_free(k);
}

/* What a power cut left of a later batch of version 1, without its end. */
static void later_put(struct kit *k, bool whole)
{
    size_t size;
    unsigned char *data = jw_load(k->dir, "journal-00000002.log", &size), *b = data + 3 * BLOCK;
    memset(b, 0, BLOCK);
    memcpy(b, "HFB1", 4);
    hf_put32(b + 4, 200);
    hf_put64(b + 8, 6); /* the newest is 4 */
    hf_put64(b + 16, SEGMENT + 3 * BLOCK);
    hf_put32(b + 72, hf_crc32c(0, b, 72));
    hf_put32(b + 76, hf_crc32c(0, b + 80, 120) ^ !whole);
    jw_save(k->dir, "journal-00000002.log", data, size);
    free(data);
}

/* A header of version 1 needs no secret: a client's bytes may look like one. Only a whole batch
 * proves that there were others. The header of a segment stands where no client's bytes ever do. */
static void an_old_header_alone_proves_nothing(void **state)
{
    (void)state;
    static struct jw w;
    struct hf_error why;
    size_t size;
    struct kit *k = old_store(&w);
    later_put(k, true);
    assert_int_equal(audited(k), HF_AUDIT_DAMAGED);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    later_put(k, false);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    unsigned char *data = jw_load(k->dir, "journal-00000002.log", &size);
    unsigned char *next = calloc(1, SEGMENT);
    memcpy(next, data, BLOCK);
    hf_put64(next + 16, 3);
    hf_put64(next + 24, UINT64_C(2) * SEGMENT);
    for (uint64_t first = 6; first >= 5;
         first--) { /* a batch before it is not there; or it is the next one itself */
        hf_put64(next + 40, first);
        hf_put32(next + 136, hf_crc32c(0, next, 136));
        jw_save(k->dir, "journal-00000003.log", next, SEGMENT);
        assert_int_equal(audited(k), first == 6 ? HF_AUDIT_DAMAGED : HF_AUDIT_OK);
        assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why),
                         first == 6 ? HF_STORE_DAMAGED : HF_OK);
    }
    look(k, false);
    free(next);
    free(data);
    kit_free(k);
}

static size_t block_put(unsigned char *out, uint32_t type, size_t size)
{
    hf_put32(out, type);
    hf_put32(out + 4, (uint32_t)size);
    hf_put32(out + 8, 0);
    hf_put32(out + 12, hf_crc32c(hf_crc32c(0, out, 12), out + 16, size));
    return 16 + size;
}

/* A snapshot as version 1 wrote them, without owners, of the whole journal, begun at `now`. */
static void old_snapshot(const struct jw *w, hf_time now)
{
    enum { HEAD = 128, END = 72 };
    unsigned char data[32 + HEAD + END] = { 0 }, *p = data + 16;
    char name[64];
    size_t size, at;
    uint64_t end = w->base + w->offset;
    unsigned char *first = jw_load(w->dir, "journal-00000001.log", &size);
    memcpy(p, "HOLDSNP1", 8);
    hf_put32(p + 8, 1);
    memcpy(p + 16, first + 56, 48); /* the store's id, and its keys */
    free(first);
    hf_put64(p + 64, end);
    hf_put64(p + 72, w->sequence + 1);
    hf_put64(p + 80, (uint64_t)now);
    memcpy(p + 88, w->chain, HF_DIGEST_SIZE);
    hf_put64(p + 120, BLOCK);
    at = block_put(data, 1, HEAD);
    p = data + at + 16;
    hf_put64(p, end);
    hf_put64(p + 32, 1);
    hf_sha256_of(data, at, p + 40);
    at += block_put(data + at, 5, END);
    snprintf(name, sizeof name, "snapshot-%016llx.snap", (unsigned long long)end);
    jw_save(w->dir, name, data, at);
}

/* The snapshot of version 1 cannot be loaded, and proves all the same how far the journal went.
 * Once the first start of a newer program passed over it: it took a batch whose segment's header
 * was lost for one that a crash had cut short, and cleared it. */
static void an_old_snapshot_is_evidence(void **state)
{
    (void)state;
    static struct jw w;
    size_t size;
    struct hf_error why;
    struct kit *k = old_store_of(&w, 1);
    old_snapshot(&w, KIT_START);
    unsigned char *data = jw_load(k->dir, "journal-00000002.log", &size);
    unsigned char *sector = malloc(512);
    memcpy(sector, data, 512);
    memset(data, 0, 512);
    jw_save(k->dir, "journal-00000002.log", data, size);
    assert_int_equal(audited(k), HF_AUDIT_DAMAGED);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORE_DAMAGED);
    k->db = NULL;
    memcpy(data, sector, 512);
    jw_save(k->dir, "journal-00000002.log", data, size);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_open(k);
    assert_int_equal(kit_get(k, HF_GET_RESOURCE, "two"), HF_OK);
    free(data);
    free(sector);
    kit_free(k);
}

/* The snapshot began later than the newest batch, and the clock of the first start is behind both:
 * a reboot with a wrong clock. Once that start wrote batches of an earlier time than the
 * snapshot's, and every later one called the store damaged. */
static void an_old_snapshot_of_a_later_time_is_followed(void **state)
{
    (void)state;
    static struct jw w;
    struct kit *k = old_store(&w);
    old_snapshot(&w, KIT_START + 10 * MINUTE);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_at(k, 0);
    kit_open(k);
    look(k, false);
    assert_int_equal(k->got.answer.hold.placed_at, KIT_START + 10 * MINUTE);
    kit_close(k);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_at(k, 2 * MINUTE); /* the clock is still behind */
    kit_open(k);
    look(k, true);
    kit_close(k);
    assert_int_equal(audited(k), HF_AUDIT_OK);
    kit_free(k);
}

/* A start without room for the segment of version 2 says so: the operator changed no
 * configuration. */
static void without_room_it_says_what_for(void **state)
{
    (void)state;
    static struct jw w;
    struct hf_error why;
    struct kit *k = old_store(&w);
    kit_remove(k, "journal-00000003.log");
    atomic_store(&k->io.room, 0);
    assert_int_equal(hf_open(k->dir, &k->options, &k->db, &why), HF_STORAGE_FAILURE);
    k->db = NULL;
    assert_null(strstr(why.text, "configur"));
    assert_non_null(strstr(why.text, "version 1"));
    assert_non_null(strstr(why.text, "No space left"));
    atomic_store(&k->io.room, -1);
    kit_open(k);
    look(k, false);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hold_on_disk_is_as_the_page_says),
        cmocka_unit_test(every_kind_of_row_survives_the_disk),
        cmocka_unit_test(an_old_store_goes_on),
        cmocka_unit_test(the_old_end_is_cleared),
        cmocka_unit_test(a_lost_secret_is_damage),
        cmocka_unit_test(an_old_header_alone_proves_nothing),
        cmocka_unit_test(an_old_snapshot_is_evidence),
        cmocka_unit_test(an_old_snapshot_of_a_later_time_is_followed),
        cmocka_unit_test(without_room_it_says_what_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

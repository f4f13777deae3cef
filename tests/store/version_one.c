/* A store of format version 1 is opened, goes on in version 2, and is audited as one history. */
#include "audit/audit.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

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
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_old_store_goes_on),
                                        cmocka_unit_test(the_old_end_is_cleared),
                                        cmocka_unit_test(a_lost_secret_is_damage),
                                        cmocka_unit_test(an_old_header_alone_proves_nothing),
                                        cmocka_unit_test(an_old_snapshot_is_evidence),
                                        cmocka_unit_test(
                                            an_old_snapshot_of_a_later_time_is_followed),
                                        cmocka_unit_test(without_room_it_says_what_for) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

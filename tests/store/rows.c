/* Rows and lengths that no store writes, in files whose CRCs are right. */
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

#include "audit/audit.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/id.h"

#include <sys/resource.h>

/* Rows that no store writes, in files whose CRCs are right: a row that leaves although its kind
 * never does, the same row twice in one entry or one snapshot, two holds that are held by one
 * request, a hold far beyond the last. They met assertions, freed a row twice, or left a pointer to
 * a freed one. A start must say that the store is damaged; a snapshot is not used, and the journal
 * tells all. */

enum { SEGMENT = 1 << 20 };

static const enum hf_row_kind kinds[] = { HF_ROW_HOLD,     HF_ROW_RESOURCE,  HF_ROW_GUARD,
                                          HF_ROW_ENTRY,    HF_ROW_CLAIM,     HF_ROW_LEASE,
                                          HF_ROW_REGISTER, HF_ROW_CLIENT,    HF_ROW_VALUE,
                                          HF_ROW_OUTBOX,   HF_ROW_SUCCESSOR, HF_ROW_CONFIG };

/* ---- Rows ---- */

static const struct jw *writer;
static char names[64][16];

/* The n-th row of its kind (the configuration is one); what it can carry is `bulk` bytes long. */
static void row_set(struct hf_row *row, unsigned n, size_t bulk)
{
    static const char filler[1000];
    struct hf_bytes name, load = hf_mem(filler, bulk);
    char *text = names[n % (sizeof names / sizeof *names)];
    snprintf(text, sizeof *names, "name-%u", n);
    name = hf_str(text);
    switch (row->kind) {
    case HF_ROW_HOLD:
        row->hold = (struct hf_hold){ .ordinal = n + 1,
                                      .placed_at = KIT_START,
                                      .expires_at = KIT_START + HOUR,
                                      .ended_at = KIT_START,
                                      .state = HF_RELEASED,
                                      .resource = hf_str("name-0"),
                                      .requester = hf_str("q") };
        hf_id_make(&writer->id_key, n + 1, row->hold.id);
        break;
    case HF_ROW_RESOURCE:
        row->resource = (struct hf_resource){ .name = name, .capacity = 9 };
        break;
    case HF_ROW_GUARD:
        row->guard = (struct hf_guard){ .name = name, .window_ms = HOUR, .durable = true };
        break;
    case HF_ROW_ENTRY:
        row->entry = (struct hf_entry){ .guard = hf_str("name-0"),
                                        .identity = name,
                                        .recorded_at = KIT_START,
                                        .expires_at = KIT_START + HOUR,
                                        .has_result = true,
                                        .result = load };
        break;
    case HF_ROW_CLAIM:
        row->claim = (struct hf_claim){ .key = name, .fence = n + 1, .response = load };
        break;
    case HF_ROW_LEASE:
        row->lease = (struct hf_lease){ .name = name, .fence = n + 1, .holder = load };
        break;
    case HF_ROW_REGISTER:
        row->reg = (struct hf_register){ .name = name,
                                         .version = 1,
                                         .value = { HF_TYPE_PLAIN, .bytes = load } };
        break;
    case HF_ROW_CLIENT: row->client = (struct hf_client){ .name = name, .highest = 1 }; break;
    case HF_ROW_VALUE: row->pair = (struct hf_pair){ .key = name, .value = load }; break;
    case HF_ROW_OUTBOX:
        row->outbox =
            (struct hf_outbox){ .number = n + 1, .key = name, .topic = name, .payload = load };
        break;
    case HF_ROW_SUCCESSOR:
        hf_id_make(&writer->id_key, n + 1, row->successor.original);
        hf_id_make(&writer->id_key, n + 100, row->successor.successor);
        break;
    case HF_ROW_CONFIG:
        row->config = (struct hf_config){ .idempotency_window_ms = DAY,
                                          .token_max_length = 256,
                                          .digest_name = hf_str("sha256/1"),
                                          .program = load };
        break;
    }
}

static struct hf_row *row_add(struct jw_entry *e, enum hf_row_kind kind, unsigned n, size_t bulk)
{
    struct hf_row *row = jw_row(e, kind);
    row_set(row, n, bulk);
    return row;
}

/* ---- Journals ---- */

/* A closed kit, and in its directory a journal with the first row of every kind. */
static struct kit *journal_begin(struct jw *w)
{
    struct kit *k = kit_make();
    kit_leave(k);
    jw_open(w, k->dir, SEGMENT);
    writer = w;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        jw_begin(w, KIT_START);
        row_add(jw_add(w, HF_APPLY), kinds[i], 0, 100);
        jw_commit(w);
    }
    return k;
}

/* The entry that is judged. */
static struct jw_entry *entry_begin(struct jw *w)
{
    jw_begin(w, KIT_START);
    return jw_add(w, HF_APPLY);
}

static enum hf_status judge(struct kit *k, struct jw *w)
{
    struct hf_error why;
    jw_commit(w);
    jw_close(w);
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, &why);
    if (st != HF_OK)
        assert_non_null(strstr(why.text, "malformed"));
    kit_free(k);
    return st;
}

/* One entry with up to three rows of the kind. */
struct craft {
    const char *what;
    struct {
        bool there, erase;
        unsigned number; /* 0: a row that is in the store already */
        size_t bulk;
    } rows[3];
    enum hf_status with_values,
        with_others; /* what a start says; values are the only rows that may leave */
};

static const struct craft crafts[] = {
    { "sound",
      { { true, false, 0, 90 }, { true, false, 1, 90 }, { true, false, 2, 90 } },
      HF_OK,
      HF_OK },
    { "grown", { { true, false, 0, 500 }, { true, false, 1, 90 } }, HF_OK, HF_OK },
    { "an old one leaves", { { true, true, 0, 100 } }, HF_OK, HF_STORE_DAMAGED },
    { "one leaves that is not there", { { true, true, 1, 100 } }, HF_OK, HF_STORE_DAMAGED },
    { "an old one twice",
      { { true, false, 0, 90 }, { true, false, 0, 80 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "twice, one between",
      { { true, false, 0, 90 }, { true, false, 1, 9 }, { true, false, 0, 80 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "an old one twice, grown",
      { { true, false, 0, 500 }, { true, false, 0, 900 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "a new one twice",
      { { true, false, 1, 90 }, { true, false, 1, 80 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "leaves twice",
      { { true, true, 0, 0 }, { true, true, 0, 0 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "leaves and comes",
      { { true, true, 0, 0 }, { true, false, 0, 9 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
    { "comes and leaves",
      { { true, false, 1, 9 }, { true, true, 1, 0 } },
      HF_STORE_DAMAGED,
      HF_STORE_DAMAGED },
};

/* Does the craft make sense for the kind? There is one configuration, and holds come one by one. */
static bool craft_applies(const struct craft *c, enum hf_row_kind kind)
{
    for (size_t i = 0; i < 3; i++)
        if (c->rows[i].number >= (kind == HF_ROW_CONFIG ? 1U : kind == HF_ROW_HOLD ? 2U : 3U))
            return false;
    return true;
}

static void a_journal_with_rows_that_nobody_writes_is_damaged(void **state)
{
    (void)state;
    static struct jw w;
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++)
        for (size_t i = 0; i < sizeof crafts / sizeof *crafts; i++) {
            const struct craft *c = &crafts[i];
            if (!craft_applies(c, kinds[n]))
                continue;
            struct kit *k = journal_begin(&w);
            struct jw_entry *e = entry_begin(&w);
            for (size_t r = 0; r < 3 && c->rows[r].there; r++)
                row_add(e, kinds[n], c->rows[r].number, c->rows[r].bulk)->erase = c->rows[r].erase;
            enum hf_status st = judge(k, &w);
            if (st != (kinds[n] == HF_ROW_VALUE || kinds[n] == HF_ROW_LEASE ? c->with_values
                                                                            : c->with_others))
                fail_msg("kind %d, %s: %s", (int)kinds[n], c->what, hf_status_code(st));
        }
}

static void an_unknown_kind_is_damage(void **state)
{
    (void)state;
    static const unsigned unknown[] = { 0, 13, 14, 128, 255 };
    static struct jw w;
    for (int erase = 0; erase < 2; erase++)
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
            struct kit *k = journal_begin(&w);
            jw_row(entry_begin(&w), (enum hf_row_kind)unknown[i])->erase = erase;
            assert_int_equal(judge(k, &w), HF_STORE_DAMAGED);
        }
}

/* Held holds from ordinal 2 to `last`, 32 a batch. */
static void holds_add(struct jw *w, unsigned last)
{
    for (unsigned i = 2; i <= last; i++) {
        if (!w->open)
            jw_begin(w, KIT_START);
        row_add(jw_add(w, HF_APPLY), HF_ROW_HOLD, i - 1, 0)->hold.state = HF_HELD;
        if (w->entry_count == JW_ENTRIES_MAX || i == last)
            jw_commit(w);
    }
}

static void no_request_holds_two(void **state)
{
    (void)state;
    static struct jw w;
    /* 1023 are held: the table has room for one more, which is all that one request can need. */
    for (int two = 0; two < 2; two++) {
        struct kit *k = journal_begin(&w);
        holds_add(&w, 1024);
        struct jw_entry *e = entry_begin(&w);
        row_add(e, HF_ROW_HOLD, 1024, 0)->hold.state = HF_HELD;
        if (two)
            row_add(e, HF_ROW_HOLD, 0, 0)->hold.state = HF_HELD;
        assert_int_equal(judge(k, &w), two ? HF_STORE_DAMAGED : HF_OK);
    }
}

static void a_hold_beyond_the_next_is_damage(void **state)
{
    (void)state;
    static struct jw w;
    static const unsigned ordinal[] = { 2, 3, 100000 };
    for (size_t i = 0; i < sizeof ordinal / sizeof *ordinal; i++) {
        struct kit *k = journal_begin(&w);
        row_add(entry_begin(&w), HF_ROW_HOLD, ordinal[i] - 1, 0);
        assert_int_equal(judge(k, &w), i == 0 ? HF_OK : HF_STORE_DAMAGED);
    }
}

/* ---- Snapshots ---- */

enum { HEAD = 16, ROWS = 3, ROWS_EACH = 4 };

/* A store with four rows of every kind and a snapshot of them, after a crash. The snapshot's name
 * goes to `name`. */
static struct kit *snapshot_begin(struct jw *w, char name[64])
{
    struct kit *k = journal_begin(w);
    for (unsigned n = 1; n < ROWS_EACH; n++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            jw_begin(w, KIT_START);
            row_add(jw_add(w, HF_APPLY), kinds[i], n, 100);
            jw_commit(w);
        }
    jw_close(w);
    k->options.snapshot_every_bytes = 4096;
    kit_open(k);
    kit_settle(k);
    snprintf(name, 64, "snapshot-%016llx.snap", (unsigned long long)kit_stats(k).journal_bytes);
    atomic_store(&k->io.fail_write, 1);
    assert_int_equal(kit_write(k, 1, 10, 1), HF_INDETERMINATE);
    kit_close(k);
    assert_int_equal(kit_files(k, name), 1);
    return k;
}

/* One block of one row, as doc/FORMAT.md has it. */
static void block_make(const struct hf_row *row, struct hf_buffer *out)
{
    static const unsigned char ring[256 * 8];
    struct hf_buffer image = { 0 };
    unsigned char head[HEAD] = { 0 }, row_head[14] = { (unsigned char)row->kind };
    jw_image(row, &image);
    hf_put32(row_head + 2, (uint32_t)image.size);
    hf_put64(row_head + 6, 5); /* older than the others: it would stand elsewhere in their order */
    hf_buffer_add(out, head, sizeof head);
    hf_buffer_add(out, row_head, sizeof row_head);
    hf_buffer_add(out, image.data, image.size);
    if (row->kind == HF_ROW_CLIENT)
        hf_buffer_add(out, ring, sizeof ring);
    assert_false(out->failed || image.failed);
    hf_put32(out->data, ROWS);
    hf_put32(out->data + 4, (uint32_t)(out->size - HEAD));
    hf_put32(out->data + 8, 1);
    hf_put32(out->data + 12,
             hf_crc32c(hf_crc32c(0, out->data, 12), out->data + HEAD, out->size - HEAD));
    hf_buffer_free(&image);
}

/* Put the row behind all others of the snapshot, and make its end right again. */
static void snapshot_add(const char *dir, const char *name, const struct hf_row *row)
{
    enum { END_SIZE = HEAD + 40 + HF_DIGEST_SIZE };
    struct hf_buffer block = { 0 };
    size_t size;
    unsigned char *was = jw_load(dir, name, &size);
    size_t body = size - END_SIZE;
    block_make(row, &block);
    unsigned char *is = malloc(size + block.size);
    assert_non_null(is);
    unsigned char *end = is + body + block.size;
    memcpy(is, was, body);
    memcpy(is + body, block.data, block.size);
    memcpy(end, was + body, END_SIZE);
    hf_put64(end + HEAD + 32, hf_get64(end + HEAD + 32) + 1);
    hf_sha256_of(is, body + block.size, end + HEAD + 40);
    hf_put32(end + 12, hf_crc32c(hf_crc32c(0, end, 12), end + HEAD, END_SIZE - HEAD));
    jw_save(dir, name, is, size + block.size);
    free(is);
    free(was);
    hf_buffer_free(&block);
}

static char *dump(struct kit *k)
{
    static const char *const tenants[] = { "" };
    return kit_dump(k, tenants, 1);
}

static void a_snapshot_with_a_row_twice_is_not_used(void **state)
{
    (void)state;
    static struct jw w;
    char name[64];
    struct kit *k = snapshot_begin(&w, name);
    size_t size;
    unsigned char *sound = jw_load(k->dir, name, &size);
    kit_open(k);
    assert_int_equal(kit_stats(k).recovery_replayed, 0);
    char *before = dump(k);
    kit_close(k);
    for (size_t i = 1; i < sizeof kinds / sizeof *kinds; i++) /* holds are not in it */
        for (unsigned n = 0; n <= ROWS_EACH; n++) {
            struct hf_row row = { .kind = kinds[i] };
            bool is_new = n == ROWS_EACH && kinds[i] != HF_ROW_CONFIG;
            row_set(&row, n, n % 2 ? 500 : 100);
            jw_save(k->dir, name, sound, size);
            snapshot_add(k->dir, name, &row);
            atomic_store(&k->warnings, 0);
            kit_open(k);
            if ((atomic_load(&k->warnings) == 0) != is_new)
                fail_msg("kind %d, row %u: %d warnings", (int)kinds[i], n,
                         atomic_load(&k->warnings));
            char *after = dump(k);
            if (!is_new) {
                assert_non_null(strstr(k->note, "cannot be used"));
                assert_string_equal(before, after);
            }
            free(after);
            kit_close(k);
        }
    free(before);
    free(sound);
    kit_free(k);
}

/* Rows of right form and impossible content, in files whose CRCs and chain are right: a register
 * whose value is not in its stored form, states that there are not, names and times beyond every
 * limit, holds that their resource does not count. Found by the fuzz targets rows and snapshot:
 * they met assertions, or were read beyond a table's end. A start says that the store is damaged,
 * and what only work can meet is answered as a fault. */

static struct jw w;
static char filler[HF_NAME_MAX + 1];

/* A closed kit, and in its directory the beginning of a journal. */
static struct kit *unsound_begin(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    jw_open(&w, k->dir, SEGMENT);
    jw_begin(&w, KIT_START);
    return k;
}

static enum hf_status journal_open(struct kit *k)
{
    struct hf_error why;
    jw_commit(&w);
    jw_close(&w);
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, &why);
    if (st != HF_OK)
        assert_non_null(strstr(why.text, "malformed"));
    return st;
}

static void expect(const struct hf_row *row, enum hf_status wanted, const char *what)
{
    struct kit *k = unsound_begin();
    *jw_row(jw_add(&w, HF_APPLY), row->kind) = *row;
    enum hf_status st = journal_open(k);
    if (st != wanted)
        fail_msg("%s: %s", what, hf_status_code(st));
    kit_free(k);
}

static void damaged(struct hf_row row, const char *what)
{
    expect(&row, HF_STORE_DAMAGED, what);
}

static void good(struct hf_row row, const char *what)
{
    expect(&row, HF_OK, what);
}

static struct hf_row reg(enum hf_register_type type, const char *form, size_t size)
{
    return (struct hf_row){ .kind = HF_ROW_REGISTER,
                            .reg = { .name = hf_str("r"),
                                     .version = 1,
                                     .value = { .type = type, .bytes = hf_mem(form, size) } } };
}

static void registers(void **state)
{
    (void)state;
    good(reg(HF_TYPE_MAX, "12345678", 8), "a maximum");
    good(reg(HF_TYPE_UNION, "\1\0a\1\0b", 6), "a union");
    damaged(reg(HF_TYPE_MAX, "1234567", 7), "a maximum that is too short");
    damaged(reg(HF_TYPE_OR, "\2", 1), "a flag that is neither");
    damaged(reg(HF_TYPE_UNION, "\1\0b\1\0a", 6), "a union out of order");
    damaged(reg(HF_TYPE_LWW, "12345678", 8), "a stamped value without its node");
    damaged(reg((enum hf_register_type)10, "x", 1), "a type that there is not");
    damaged(reg((enum hf_register_type)0, "x", 1), "no type");
}

static void states_and_limits(void **state)
{
    (void)state;
    const struct hf_bytes name = hf_str("n"), longer = hf_mem(filler, sizeof filler);
    struct hf_row claim = {
        .kind = HF_ROW_CLAIM,
        .claim = { .key = name, .state = HF_CLAIM_STARTED, .fence = 1, .lease_ms = HOUR }
    };
    struct hf_row guard = { .kind = HF_ROW_GUARD, .guard = { .name = name, .window_ms = HOUR } };
    struct hf_row resource = { .kind = HF_ROW_RESOURCE,
                               .resource = { .name = name, .capacity = 1 } };
    struct hf_row config = { .kind = HF_ROW_CONFIG, .config = { HOUR, 256, false, name, name } };
    good(claim, "a claim");
    good(guard, "a guard");
    good(resource, "a resource");
    claim.claim.state = (enum hf_claim_state)77;
    damaged(claim, "a claim in no state");
    claim.claim.state = HF_CLAIM_STARTED;
    claim.claim.lease_ms = INT64_MAX;
    damaged(claim, "a claim without end");
    guard.guard.match_count = 1;
    guard.guard.match[0] = (enum hf_match)9;
    damaged(guard, "a step that there is not");
    resource.resource.held = UINT32_MAX;
    damaged(resource, "more held than any resource has");
    resource.resource.held = 0;
    resource.resource.name = longer;
    damaged(resource, "a name beyond the limit");
    config.config.token_max_length = HF_TOKEN_MAX + 1;
    damaged(config, "keys beyond the limit");
}

/* A store with two holds in one state on a resource that counts `held` of them. */
static struct kit *uncounted(enum hf_hold_state hold_state, uint32_t held)
{
    struct kit *k = unsound_begin();
    jw_row(jw_add(&w, HF_SET_RESOURCE), HF_ROW_RESOURCE)->resource =
        (struct hf_resource){ .name = hf_str("r"), .capacity = 5, .held = held, .open = true };
    for (uint64_t ordinal = 1; ordinal <= 2; ordinal++) {
        struct hf_hold *hold = &jw_row(jw_add(&w, HF_PLACE_HOLD), HF_ROW_HOLD)->hold;
        *hold = (struct hf_hold){ .ordinal = ordinal,
                                  .state = hold_state,
                                  .placed_at = KIT_START,
                                  .expires_at = KIT_START + MINUTE,
                                  .resource = hf_str("r"),
                                  .requester = hf_str("q") };
        hf_id_make(&w.id_key, ordinal, hold->id);
    }
    assert_int_equal(journal_open(k), HF_OK);
    return k;
}

static void a_hold_that_is_not_counted_is_not_decided_over(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    struct kit *k = uncounted(HF_HELD, 0);
    hf_id_make(&w.id_key, 1, id);
    assert_int_equal(kit_end(k, HF_RELEASE, "a", id), HF_STORAGE_FAILURE);
    kit_free(k);
    k = uncounted(HF_CONFIRMED, 0);
    assert_int_equal(kit_end(k, HF_REVERSE, "a", id), HF_STORAGE_FAILURE);
    kit_free(k);
}

static void the_sweeper_passes_over_it(void **state)
{
    (void)state;
    struct kit *k = uncounted(HF_HELD, 1);
    kit_at(k, HOUR);
    assert_int_equal(kit_place(k, "a", "r", "q", MINUTE),
                     HF_STORAGE_FAILURE); /* two are in its way */
    kit_settle(k);
    assert_non_null(strstr(k->note, "holdfast audit"));
    assert_int_equal(kit_place(k, "b", "r", "q", MINUTE), HF_OK);
    kit_free(k);
}

/* A confirmed hold that was given back is not counted either, and is all right. */
static void what_was_given_back_is_readable(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    struct kit *k = kit_make();
    kit_held(k, "r", HOUR, id);
    assert_int_equal(kit_end(k, HF_CONFIRM, "a", id), HF_OK);
    assert_int_equal(kit_end(k, HF_REVERSE, "b", id), HF_OK);
    kit_reopen(k);
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(kit_end(k, HF_REVERSE, "c", id), HF_NOT_HELD);
    kit_free(k);
}

/* Numbers in right files that would have made a start ask for gigabytes: a batch in a compressed
 * segment that says it is as long as the segment, which may be mostly zeros and a few bytes on
 * disk. (The highest hold of a snapshot is proof/fuzz/regressions/snapshot/absurd-highest.) */

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

enum { STRETCHED = 900 << 20, LENGTH = 800 << 20 };

/* As much memory as a small store needs, where no sanitizer needs more. The limit that was before
 * is answered. */
static struct rlimit limit_memory(void)
{
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)
    limit = (struct rlimit){ (rlim_t)512 << 20, before.rlim_max };
#else
    limit = before;
#endif
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    return before;
}

static void a_compressed_batch(void **state)
{
    (void)state;
    static struct jw jw;
    struct kit *k = kit_make();
    struct hf_error why;
    size_t size;
    kit_leave(k);
    jw_open(&jw, k->dir, SEGMENT);
    jw.stretched = STRETCHED;
    jw_begin(&jw, KIT_START);
    jw_row(jw_add(&jw, HF_SET_RESOURCE), HF_ROW_RESOURCE)->resource =
        (struct hf_resource){ .name = hf_str("r"), .capacity = 1 };
    jw_commit(&jw);
    jw_close(&jw);
    unsigned char *bytes = jw_load(k->dir, "journal-00000001.log", &size);
    hf_put32(bytes + 4096 + 4, LENGTH);
    jw_fix_tag(bytes + 4096);
    jw_save(k->dir, "journal-00000001.log", bytes, size);
    free(bytes);
    jw_pack(&jw, 1);
    kit_remove(k, "2.log");
    struct hf_audit_report report;
    struct rlimit before = limit_memory();
    enum hf_status audited = hf_audit_run(k->dir, NULL, &report, &why);
    enum hf_status opened = hf_open(k->dir, &k->options, &k->db, &why);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(audited, HF_OK);
    assert_int_not_equal(opened, HF_NO_MEMORY);
    hf_audit_report_free(&report);
    if (opened == HF_OK)
        kit_close(k);
    kit_free(k);
}

int main(void)
{
    const struct CMUnitTest crafted_rows_tests[] = {
        cmocka_unit_test(a_journal_with_rows_that_nobody_writes_is_damaged),
        cmocka_unit_test(an_unknown_kind_is_damage),
        cmocka_unit_test(no_request_holds_two),
        cmocka_unit_test(a_hold_beyond_the_next_is_damage),
        cmocka_unit_test(a_snapshot_with_a_row_twice_is_not_used),
        cmocka_unit_test(a_compressed_batch),
    };
    const struct CMUnitTest unsound_rows_tests[] = {
        cmocka_unit_test(registers),
        cmocka_unit_test(states_and_limits),
        cmocka_unit_test(a_hold_that_is_not_counted_is_not_decided_over),
        cmocka_unit_test(the_sweeper_passes_over_it),
        cmocka_unit_test(what_was_given_back_is_readable),
    };
    int failed = 0;
    failed += cmocka_run_group_tests(crafted_rows_tests, NULL, NULL);
    memset(filler, 'x', sizeof filler);
    failed += cmocka_run_group_tests(unsound_rows_tests, NULL, NULL);
    return failed;
}

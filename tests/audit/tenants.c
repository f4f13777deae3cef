/* What is shown to one tenant has no names of another: in the report, the trace and the export. */
#include "audit/audit.h"
#include "audit/export.h"
#include "audit/kit/journal_story.h"
#include "audit/trace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST "journal-00000001.log"

static struct story story;
static struct hf_error why;
static char *told; /* owned: what was printed last */
static size_t told_size;
static char file[300];

static int setup(void **state)
{
    (void)state;
    story_open(&story);
    snprintf(file, sizeof file, "%s/export", story.dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(told);
    told = NULL;
    story_remove(&story);
    return 0;
}

/* There may be NULs in it: a database is looked through, too. */
static bool has(const char *words)
{
    size_t size = strlen(words);
    for (size_t i = 0; i + size <= told_size; i++)
        if (told[i] == words[0] && memcmp(told + i, words, size) == 0)
            return true;
    return false;
}

static void expect(const char *words)
{
    if (!has(words))
        fail_msg("\"%s\" is not in:\n%s", words, told);
}

static void expect_not(const char *words)
{
    if (has(words))
        fail_msg("\"%s\" is in:\n%s", words, told);
}

/* ---- Two tenants that do the same, and the same wrong ---- */

struct names {
    const char *tenant, *resource, *requester, *key, *second_key, *guard, *identity, *claim, *lease,
        *holder, *reg;
};

static const struct names alpha = { "alpha",   "alpha-room",   "alpha-ann",  "alpha-key",
                                    "alpha-2", "alpha-guard",  "alpha-seen", "alpha-claim",
                                    "alpha-l", "alpha-holder", "alpha-reg" };
static const struct names beta = { "beta",   "beta-room",   "beta-bob",  "beta-key",
                                   "beta-2", "beta-guard",  "beta-seen", "beta-claim",
                                   "beta-l", "beta-holder", "beta-reg" };

/* Two holds under one key, of one requester and within a minute; another key's hold that changes
 * its requester; an identity recorded twice; a claim begun twice; a lease granted while it is held;
 * a version left out. */
static void tell_wrong(const struct names *n)
{
    story.tenant = hf_str(n->tenant);
    story_resource(&story, n->resource, 5);
    story_place(&story, n->key, n->resource, n->requester, 60000);
    story_commit(&story);
    story_place(&story, n->key, n->resource, n->requester, 60000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, n->second_key, story.hold_count)->rows[0].hold.requester =
        hf_str(n->holder);
    story_guard(&story, n->guard, 60000);
    story_record(&story, n->guard, n->identity, 60000);
    story_commit(&story);
    story_record(&story, n->guard, n->identity, 60000);
    story_begin(&story, n->claim);
    story_grant(&story, n->lease, n->lease, n->holder);
    story_commit(&story);
    story_begin(&story, n->claim);
    story_grant(&story, n->holder, n->lease, n->holder);
    story_write(&story, n->reg, n->reg, "x", 7);
    story_commit(&story);
    story.tenant = hf_str("");
}

static void report_to(struct hf_audit_report *report, const struct names *n, bool json)
{
    struct hf_audit_options options = { .has_tenant = n != NULL,
                                        .tenant = hf_str(n ? n->tenant : NULL) };
    story_close(&story);
    free(told);
    FILE *out = open_memstream(&told, &told_size);
    assert_int_equal(hf_audit_run(story.dir, &options, report, &why), HF_OK);
    assert_true(json ? hf_audit_print_json(report, out) : hf_audit_print_text(report, out));
    fclose(out);
}

/* Both did the same, so each has half of what is wrong, and nothing of the store is told. */
static void expect_half_of(const struct hf_audit_report *all, const struct hf_audit_report *own)
{
    char head[2 * HF_DIGEST_SIZE + 1];
    assert_int_equal(own->verdict, all->verdict);
    assert_int_equal(own->entries, (all->entries - 1) / 2); /* the configuration is nobody's */
    assert_int_equal(own->near_count * 2, all->near_count);
    assert_int_equal(own->holds * 2, all->holds);
    assert_int_equal(own->claims * 2, all->claims);
    assert_int_equal(own->remembered * 2, all->remembered);
    assert_int_equal(own->failures * 2, all->failures);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        assert_int_equal(own->checks[i].violations * 2, all->checks[i].violations);
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(head + 2 * i, 3, "%02x", all->chain_head[i]);
    expect_not(head);
    expect_not("61207374"); /* "a st", of the store's id */
    expect_not("store_id");
    expect_not("store id");
    for (char digit[] = "position 0"; digit[9] <= '9'; digit[9]++)
        expect_not(digit);
    expect_not(".log");
}

static void names_its_own_alone(void **state)
{
    (void)state;
    struct hf_audit_report all, own;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    for (int json = 0; json < 2; json++) {
        report_to(&all, NULL, json);
        expect("alpha-key");
        expect("beta-key");
        for (int second = 0; second < 2; second++) {
            const struct names *mine = second ? &beta : &alpha;
            report_to(&own, mine, json);
            expect_half_of(&all, &own);
            expect_not(second ? "alpha" : "beta");
            expect(mine->key);
            expect(mine->identity);
            expect(mine->claim);
            expect(mine->lease);
            expect(mine->reg);
            assert_int_equal(own.near_listed, 1);
            assert_int_equal(own.tenant_entries, 12);
            hf_audit_report_free(&own);
        }
        assert_int_equal(all.near_listed, 2);
        hf_audit_report_free(&all);
    }
}

static void report_says_so(void **state)
{
    (void)state;
    struct hf_audit_report report;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    report_to(&report, &alpha, false);
    expect("Only tenant \"alpha\": the report covers its 12 entries and no other records.");
    expect("of the tenant  12 entries with ");
    expect_not("other tenants");
    hf_audit_report_free(&report);
    report_to(&report, &alpha, true);
    expect("\"tenant\":\"alpha\",\"tenant_entries\":12,");
    hf_audit_report_free(&report);
    report_to(&report, &(struct names){ .tenant = "" }, false);
    expect("Only tenant \"\" (the default tenant)");
    expect_not("alpha");
    expect_not("beta");
    hf_audit_report_free(&report);
    report_to(&report, NULL, true);
    expect("\"tenant\":null,");
    hf_audit_report_free(&report);
}

/* What stands in for a configuration in a tenant's entry is shown to that tenant alone. */
static void configuration_of_a_tenant(void **state)
{
    (void)state;
    struct hf_audit_report report;
    story.tenant = hf_str("alpha");
    struct jw_entry *e = story_guard(&story, "alpha-guard", 60000);
    e->rows[0] = (struct hf_row){ .kind = HF_ROW_CONFIG,
                                  .config = { .idempotency_window_ms = STORY_WINDOW,
                                              .token_max_length = 256,
                                              .digest_name = hf_str(HF_DIGEST_NAME),
                                              .program = hf_str("alpha-program") } };
    story_commit(&story);
    report_to(&report, &alpha, false);
    expect("alpha-program");
    hf_audit_report_free(&report);
    report_to(&report, &beta, false);
    expect("holdfast " HF_VERSION); /* the real one is everybody's */
    expect_not("alpha");
    hf_audit_report_free(&report);
}

/* Damage is everybody's: each is told of it, and neither where it is nor how much. */
static void damage_without_a_place(void **state)
{
    (void)state;
    struct hf_audit_report all, own;
    size_t size;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    story_close(&story);
    unsigned char *file_bytes = jw_load(story.dir, FIRST, &size);
    for (size_t block = 2; block < 5; block++)
        memset(file_bytes + block * 4096, 0x55, 64);
    jw_save(story.dir, FIRST, file_bytes, size);
    free(file_bytes);
    for (int json = 0; json < 2; json++) {
        report_to(&all, NULL, json);
        expect(".log");
        report_to(&own, &beta, json);
        assert_int_equal(all.verdict, HF_AUDIT_DAMAGED);
        assert_int_equal(own.verdict, HF_AUDIT_DAMAGED);
        assert_int_equal(own.checks[HF_AUDIT_SEQUENCE].violations, 1);
        expect("the journal with these records is damaged or was changed");
        expect_not(".log");
        expect_not("offset");
        expect_not("batch 2");
        hf_audit_report_free(&all);
        hf_audit_report_free(&own);
    }
}

/* ---- Traces ---- */

static int trace(const char *name, const struct names *n, enum hf_audit_subject subject, bool json)
{
    struct hf_audit_trace_options options = { .subject = subject,
                                              .has_tenant = n != NULL,
                                              .tenant = hf_str(n ? n->tenant : NULL),
                                              .json = json };
    free(told);
    FILE *out = open_memstream(&told, &told_size);
    int code = hf_audit_trace(story.dir, hf_str(name), &options, out, &why);
    fclose(out);
    return code;
}

/* alpha has a hold and gives it back; beta tries to confirm it, and one that nobody has. */
static void tell_tries(char nobodys[HF_ID_SIZE])
{
    story.tenant = hf_str("alpha");
    story_place(&story, "alpha-key", "alpha-room", "alpha-ann", 60000);
    story_commit(&story);
    story_end(&story, HF_CONFIRM, "alpha-2", 1);
    story_commit(&story);
    story_reverse(&story, "alpha-back", 1);
    story_commit(&story);
    story.tenant = hf_str("beta");
    story_refuse(&story, HF_CONFIRM, "beta-key", 1, HF_NOT_KNOWN);
    story_commit(&story);
    memcpy(nobodys, story.holds[1].id, HF_ID_SIZE);
    nobodys[3] = nobodys[3] == '0' ? '1' : '0';
    struct hf_hold kept = story.holds[1];
    memcpy(story.holds[1].id, nobodys, HF_ID_SIZE);
    story_refuse(&story, HF_CONFIRM, "beta-2", 1, HF_NOT_KNOWN);
    story.holds[1] = kept;
    story_commit(&story);
    story_close(&story);
}

/* All that a trace tells beta of this id, without the id itself. */
static void told_to_beta(const char *id, enum hf_audit_subject subject, bool json, char words[1024])
{
    assert_int_equal(trace(id, &beta, subject, json), 1);
    expect_not("alpha");
    snprintf(words, 1024, "%.400s|%.400s", told, why.text);
    for (char *at; (at = strstr(words, id)) != NULL;)
        memset(at, '*', strlen(id));
}

static void trace_of_another_is_not_known(void **state)
{
    (void)state;
    char nobodys[HF_ID_SIZE], foreign[1024], none[1024];
    tell_tries(nobodys);
    const char *id = story.holds[1].id;
    assert_int_equal(trace(id, &alpha, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("3 events");
    expect("and reversed");
    expect_not("beta");
    assert_int_equal(trace(id, NULL, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("4 events in 2 tenants");
    expect("  tenant \"alpha\": placed by key \"alpha-key\" for");
    expect("  tenant \"alpha\": reversed by key \"alpha-back\"");
    expect("  tenant \"beta\": confirm by key \"beta-key\" refused");
    for (int subject = HF_AUDIT_SUBJECT_GUESS; subject <= HF_AUDIT_SUBJECT_KEY; subject++) {
        for (int json = 0; json < 2; json++) {
            told_to_beta(id, (enum hf_audit_subject)subject, json, foreign);
            told_to_beta(nobodys, (enum hf_audit_subject)subject, json, none);
            assert_string_equal(foreign, none);
        }
    }
    assert_int_equal(trace("alpha-key", &beta, HF_AUDIT_SUBJECT_GUESS, false), 1);
    assert_int_equal(trace("beta-key", &beta, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("confirm by key \"beta-key\"");
}

/* One key in three tenants, two of them with a claim: each event and each state has its tenant. */
static void one_key_in_several_tenants(void **state)
{
    (void)state;
    story_refuse_place(&story, "key-1", "room", "ann", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    story.tenant = hf_str("alpha");
    story_begin(&story, "key-1");
    story_commit(&story);
    story_settle(&story, HF_COMPLETE, "key-1", 1, story.now);
    story_commit(&story);
    story.tenant = hf_str("beta");
    story_begin(&story, "key-1");
    story_commit(&story);
    story_close(&story);
    assert_int_equal(trace("key-1", NULL, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("Key \"key-1\": 4 events in 3 tenants\n");
    expect("  the default tenant: place_hold by key \"key-1\" answered");
    expect("  tenant \"alpha\": claim begin: started with fence 1");
    expect("  tenant \"alpha\": claim complete: completed under fence 1");
    expect("  tenant \"beta\": claim begin: started with fence 2");
    expect(", the default tenant: bound until");
    expect(", tenant \"alpha\": bound until");
    expect(", tenant \"beta\": bound until its claim is settled");
    assert_int_equal(trace("key-1", NULL, HF_AUDIT_SUBJECT_GUESS, true), 0);
    expect("\"tenants\":[{\"tenant\":\"\",\"events\":1,\"summary\":\"As of ");
    expect("{\"tenant\":\"alpha\",\"events\":2,\"summary\":");
    expect("\"status\":\"ok\",\"tenant\":\"beta\"");
    assert_int_equal(trace("key-1", &alpha, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("Key \"key-1\" of tenant \"alpha\": 2 events\n");
    expect_not("beta");
    assert_null(strchr(told, '\x1e'));
    assert_int_equal(trace("key-1", &alpha, HF_AUDIT_SUBJECT_GUESS, true), 0);
    expect_not("\"tenants\"");
}

/* A key may look like an id, and be found although somebody else has that hold. */
static void key_like_an_id(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    story.tenant = hf_str("alpha");
    story_place(&story, "alpha-key", "alpha-room", "alpha-ann", 60000);
    memcpy(id, story.holds[1].id, sizeof id);
    story_commit(&story);
    story.tenant = hf_str("beta");
    story_refuse_place(&story, id, "beta-room", "beta-bob", HF_RESOURCE_UNAVAILABLE);
    story_commit(&story);
    story_close(&story);
    assert_int_equal(trace(id, &beta, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("Key \"");
    expect("answered resource-unavailable");
    expect_not("alpha");
    assert_int_equal(trace(id, &alpha, HF_AUDIT_SUBJECT_GUESS, false), 0);
    expect("Hold ");
}

/* ---- Exports ---- */

static void export(const struct names *n, enum hf_audit_format format)
{
    struct hf_audit_export_options options = { .format = format,
                                               .has_tenant = true,
                                               .tenant = hf_str(n->tenant) };
    story_close(&story);
    unlink(file);
    assert_int_equal(hf_audit_export(story.dir, &options, file, &why), 0);
    free(told);
    told = (char *)jw_load(story.dir, "export", &told_size);
}

static void export_of_one(void **state)
{
    (void)state;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    export(&alpha, HF_AUDIT_JSONL);
    expect("\"tenant\":\"alpha\"}\n{\"type\":\"entry\"");
    expect("\"kind\":\"config\"");
    expect("\"alpha-key\"");
    expect("{\"type\":\"end\",\"entries\":13,\"damaged\":false}");
    expect("\"position\":13,");
    expect_not("\"position\":14,");
    expect_not("\"batch\"");
    expect_not("store_id");
    expect_not("beta");
    assert_string_equal(why.text, "");
    export(&alpha, HF_AUDIT_SQLITE);
    expect("alpha-key");
    expect_not("beta");
}

static int number_in(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int number = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return number;
}

static void export_of_one_as_a_database(void **state)
{
    (void)state;
    sqlite3 *db;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    export(&beta, HF_AUDIT_SQLITE);
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(number_in(db, "SELECT count(*) FROM entries WHERE tenant = 'beta'"), 12);
    assert_int_equal(number_in(db, "SELECT count(*) FROM entries"), 13);
    assert_int_equal(number_in(db, "SELECT count(*) FROM config"), 1);
    assert_int_equal(number_in(db, "SELECT count(*) FROM holds"), 2);
    assert_int_equal(number_in(db, "SELECT count(*) FROM batches"), 0);
    assert_int_equal(number_in(db, "SELECT max(position) FROM entries"), 13);
    assert_int_equal(number_in(db, "SELECT max(ordinal) FROM holds"), 2);
    assert_int_equal(number_in(db, "SELECT max(newest) FROM resources"), 2);
    assert_int_equal(number_in(db, "SELECT previous FROM holds WHERE ordinal = 2"), 1);
    assert_int_equal(number_in(db, "SELECT count(*) FROM hold_keys WHERE key = 'beta-key'"), 2);
    assert_int_equal(
        number_in(db, "SELECT count(*) FROM store WHERE name = 'tenant' AND value = 'beta'"), 1);
    assert_int_equal(
        number_in(db, "SELECT count(*) FROM store WHERE name IN ('store_id', 'chain_head', "
                      "'batches', 'torn_bytes', 'damages')"),
        0);
    sqlite3_close(db);
}

static void export_of_nobody(void **state)
{
    (void)state;
    tell_wrong(&alpha);
    export(&(struct names){ .tenant = "gamma" }, HF_AUDIT_JSONL);
    expect("\"kind\":\"config\"");
    expect_not("alpha");
    assert_string_equal(
        why.text,
        "Tenant \"gamma\" has no entry in the journal. The export has only the configurations.");
}

/* Bytes at random, with all CRCs made right again: whatever the records then say, a tenant that has
 * none is shown none. */
static void hostile_bytes(void **state)
{
    (void)state;
    static const char *const names[] = { "alpha", "lpha-", "beta-", "eta-key" };
    const struct names nobody = { .tenant = "nobody" };
    uint64_t seed = 88172645463325252U;
    size_t size;
    struct hf_audit_report report;
    tell_wrong(&alpha);
    tell_wrong(&beta);
    story_close(&story);
    unsigned char *right = jw_load(story.dir, FIRST, &size);
    unsigned char *wrong = malloc(size);
    assert_non_null(wrong);
    for (int round = 0; round < 600; round++) {
        memcpy(wrong, right, size);
        for (int i = 0; i < 1 + round % 4; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            size_t block = 1 + seed % story.w.sequence;
            size_t at = block * 4096 + 80 + (seed >> 20) % 400;
            static const unsigned char odd[] = { 0, 1, 2, 5, 9, 12, 33, 255 };
            wrong[at] = odd[seed >> 40 & 7];
            jw_fix(wrong + block * 4096, size - block * 4096);
        }
        jw_save(story.dir, FIRST, wrong, size);
        report_to(&report, &nobody, round % 2 == 0);
        hf_audit_report_free(&report);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            expect_not(names[i]);
    }
    free(right);
    free(wrong);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(names_its_own_alone),
        T(report_says_so),
        T(configuration_of_a_tenant),
        T(damage_without_a_place),
        T(trace_of_another_is_not_known),
        T(one_key_in_several_tenants),
        T(key_like_an_id),
        T(export_of_one),
        T(export_of_one_as_a_database),
        T(export_of_nobody),
        T(hostile_bytes),
    };
    return cmocka_run_group_tests_name("audit of one tenant", tests, NULL, NULL);
}

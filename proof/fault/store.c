#define _GNU_SOURCE
#include "fault/store.h"

#include "audit/audit.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct furnished furnished;

/* ---- The words of a failure ---- */

static char trying[256];

void fault_say(const char *name, enum fault_call call, enum fault_mode mode, unsigned n)
{
    snprintf(trying, sizeof trying, "%s (%s, number %u)", name, fault_name(call, mode), n);
}

void fault_blame(const char *format, ...)
{
    char text[4096];
    va_list args;
    fault_here(false);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_msg("%s: %s", trying, text);
    abort();
}

void fault_same(const char *got, const char *wanted, const char *what)
{
    size_t at = 0;
    if (strcmp(got, wanted) == 0)
        return;
    while (got[at] && got[at] == wanted[at])
        at++;
    for (int back = 0; back < 200 && at > 0 && got[at - 1] != '\n'; back++)
        at--;
    fault_blame("%s: is \"%.300s\", should be \"%.300s\"", what, got + at, wanted + at);
}

/* ---- The furnished store, in memory ---- */

enum { FILES_MAX = 16, BLOCK = 4096 };

struct run {
    size_t at, size;
};

struct original {
    char name[64];
    size_t size, run_count;
    unsigned char *data; /* owned */
    struct run *runs;    /* owned: the blocks that are not zeros */
};

struct originals {
    size_t count;
    struct original list[FILES_MAX];
};

static struct originals furnished_files;
static struct originals prepared_files; /* what prepared_by made of them */
static void (*prepared_by)(struct kit *k);
static struct kit *kit;
static struct hf_io io;
static hf_time trial_at;

/* Found once, because the file is written for every trial. */
static void runs_find(struct original *o)
{
    static const unsigned char zeros[BLOCK];
    o->runs = calloc(o->size / BLOCK + 1, sizeof *o->runs);
    assert_non_null(o->runs);
    for (size_t at = 0; at < o->size; at += BLOCK) {
        size_t n = o->size - at < BLOCK ? o->size - at : BLOCK;
        struct run *last = o->run_count ? &o->runs[o->run_count - 1] : NULL;
        if (memcmp(o->data + at, zeros, n) == 0)
            continue;
        if (last && last->at + last->size == at)
            last->size += n;
        else
            o->runs[o->run_count++] = (struct run){ at, n };
    }
}

static void file_read(struct originals *set, const char *dir, const char *name)
{
    char path[600];
    assert_true(set->count < FILES_MAX);
    struct original *o = &set->list[set->count++];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(o->name, sizeof o->name, "%s", name);
    int fd = open(path, O_RDONLY);
    struct stat st;
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    o->size = (size_t)st.st_size;
    o->data = malloc(o->size + 1);
    assert_true(o->data && read(fd, o->data, o->size) == (ssize_t)o->size);
    close(fd);
    runs_find(o);
}

static void originals_read(struct originals *set, const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            file_read(set, dir, e->d_name);
    closedir(d);
}

static void originals_free(struct originals *set)
{
    for (size_t i = 0; i < set->count; i++) {
        free(set->list[i].data);
        free(set->list[i].runs);
    }
    *set = (struct originals){ 0 };
}

/* Blocks of zeros are left out: the file has a hole there. */
static void file_write(const char *dir, const struct original *o)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, o->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)o->size) == 0);
    for (size_t i = 0; i < o->run_count; i++) {
        const struct run *r = &o->runs[i];
        assert_int_equal(pwrite(fd, o->data + r->at, r->size, (off_t)r->at), r->size);
    }
    close(fd);
}

/* ---- Furnishing ---- */

static void wants(enum hf_status got, enum hf_status wanted, const char *what)
{
    if (got != wanted)
        fail_msg("furnishing: %s: %s", what, hf_status_code(got));
}
#define OK(call) wants(call, HF_OK, #call)

static void furnish_guards(void)
{
    struct hf_request memory = {
        .action = HF_SET_GUARD,
        .set_guard = { .name = hf_str("memory"), .window_ms = HOUR, .volatile_only = true }
    };
    struct hf_request closed = { .action = HF_SET_GUARD,
                                 .set_guard = { .name = hf_str("closed"),
                                                .window_ms = HOUR,
                                                .on_unavailable = HF_FAIL_CLOSED,
                                                .match = { HF_MATCH_HASH },
                                                .match_count = 1 } };
    OK(kit_guard(kit, "open", HOUR, NULL, 0));
    OK(kit_do(kit, closed));
    OK(kit_do(kit, memory));
    OK(kit_ask(kit, HF_RECORD, "open", "seen", "a result"));
    OK(kit_ask(kit, HF_RECORD, "closed", "seen", NULL));
}

static void furnish_claims(void)
{
    OK(kit_begin(kit, "claim-begun", "work", HOUR, HF_ABANDON_UNKNOWN));
    OK(kit_begin(kit, "claim-retry", "work", HOUR, HF_ABANDON_UNKNOWN));
    OK(kit_settle_claim(kit, HF_FAIL, "claim-retry", kit->got.answer.claim.fence, "no luck", true));
    OK(kit_begin(kit, "claim-done", "work", HOUR, HF_ABANDON_UNKNOWN));
    OK(kit_settle_claim(kit, HF_COMPLETE, "claim-done", kit->got.answer.claim.fence, "well done",
                        false));
    OK(kit_do(kit,
              (struct hf_request){
                  .action = HF_GRANT,
                  .key = hf_str(kit_key(kit)),
                  .lease = { .name = hf_str("lease"), .holder = hf_str("me"), .ttl_ms = HOUR } }));
}

static enum hf_status put_values(struct hf_tx *tx, void *arg)
{
    (void)arg;
    if (hf_tx_put(tx, hf_str("value"), hf_str("1")) != HF_OK ||
        hf_tx_put(tx, hf_str("gone"), hf_str("2")) != HF_OK ||
        hf_tx_enqueue(tx, hf_str("topic"), hf_str("payload")) != HF_OK)
        return HF_STORAGE_FAILURE;
    return hf_tx_result(tx, hf_str("applied"));
}

static void furnish_registers(void)
{
    const struct hf_item one = { .name = hf_str("a"), .up = 1 };
    const struct hf_value set = { .type = HF_TYPE_UNION, .items = &one, .item_count = 1 };
    OK(kit_do(kit, (struct hf_request){
                       .action = HF_WRITE,
                       .key = hf_str(kit_key(kit)),
                       .write = { .name = hf_str("plain"), .value = hf_str("small") } }));
    OK(kit_do(kit, (struct hf_request){ .action = HF_MERGE,
                                        .merge = { .name = hf_str("set"), .value = &set } }));
    OK(kit_do(kit, (struct hf_request){ .action = HF_APPLY,
                                        .key = hf_str(kit_key(kit)),
                                        .apply = { .name = hf_str("put"), .fn = put_values } }));
}

/* What stands in a packed segment when the trials begin. */
static void furnish_old(void)
{
    OK(kit_resource(kit, "old", 3));
    kit_held(kit, "old", DAY, furnished.old_held);
    kit_held(kit, "old", DAY, furnished.old_confirmed);
    OK(kit_end(kit, HF_CONFIRM, kit_key(kit), furnished.old_confirmed));
    OK(kit_write(kit, 8, 10000, 4)); /* more than a segment */
    kit_at(kit, 2 * MINUTE);
    kit_settle(kit);
    if (kit_files(kit, ".zst") == 0 || kit_files(kit, ".snap") == 0)
        fail_msg("furnishing: %zu packed segments, %zu snapshots", kit_files(kit, ".zst"),
                 kit_files(kit, ".snap"));
}

static void furnish_new(void)
{
    OK(kit_resource(kit, "room", 3));
    kit_held(kit, "room", DAY, furnished.held);
    kit_held(kit, "room", DAY, furnished.confirmed);
    OK(kit_end(kit, HF_CONFIRM, kit_key(kit), furnished.confirmed));
    OK(kit_resource(kit, "full", 1));
    OK(kit_place(kit, "used-key", "full", "guest", DAY));
    kit_held(kit, "due", SECOND, furnished.due);
    furnish_guards();
    furnish_claims();
    furnish_registers();
    OK(kit_do(kit, (struct hf_request){ .action = HF_PLACE_HOLD,
                                        .client = hf_str("client"),
                                        .sequence = 1,
                                        .place_hold = { .resource = hf_str("numbered"),
                                                        .requester = hf_str("guest"),
                                                        .duration_ms = DAY } }));
}

void fault_furnish(void)
{
    kit = kit_make();
    io = *hf_io_os();
    io.ctx = &kit->io; /* for the clocks; the rest of them has no use for it */
    io.wall_ms = kit->io.io.wall_ms;
    io.boot_ms = kit->io.io.boot_ms;
    io.monotonic_ns = kit->io.io.monotonic_ns;
    kit->options.io = &io;
    kit->options.idempotency_window_ms = MINUTE;
    kit->options.snapshot_every_bytes = 40000;
    kit->options.segment_max_bytes = 64 << 10;
    kit_leave(kit);
    kit_open(kit);
    furnish_old();
    kit->options.segment_max_bytes = 2 << 20; /* an apply may need more than half of it */
    kit_reopen(kit);
    furnish_new();
    kit->options.idempotency_window_ms = 0; /* as the store has it */
    trial_at = 2 * MINUTE + 10 * SECOND;
    kit_close(kit);
    originals_read(&furnished_files, kit->dir);
    hf_result_clear(&kit->got);
}

void fault_unfurnish(void)
{
    originals_free(&furnished_files);
    originals_free(&prepared_files);
    prepared_by = NULL;
    fault_here(false);
    kit_free(kit);
}

/* ---- A trial's store ---- */

static uint64_t mark;
static unsigned descriptors;
static int mappings;

static struct kit *begin_with(const struct originals *set)
{
    fault_here(false);
    kit_leave(kit);
    for (size_t i = 0; i < set->count; i++)
        file_write(kit->dir, &set->list[i]);
    kit_at(kit, trial_at);
    kit->keys = 1000000;
    kit->fatal = kit->warnings = 0;
    mark = fault_mark();
    descriptors = fault_descriptors();
    mappings = fault_mappings();
    return kit;
}

struct kit *fault_begin(void)
{
    return begin_with(&furnished_files);
}

struct kit *fault_begin_prepared(void (*prepare)(struct kit *k), hf_time at)
{
    if (prepared_by != prepare) {
        struct kit *k = fault_begin();
        kit_at(k, at);
        prepare(k);
        hf_result_clear(&k->got);
        originals_free(&prepared_files);
        originals_read(&prepared_files, k->dir);
        prepared_by = prepare;
    }
    struct kit *k = begin_with(&prepared_files);
    kit_at(k, at);
    return k;
}

void fault_open(struct kit *k)
{
    struct hf_error why;
    fault_here(true);
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, &why);
    fault_here(false);
    if (st != HF_OK)
        fault_blame("does not open: %s: %s", hf_status_code(st), why.text);
}

void fault_close(struct kit *k)
{
    fault_here(true);
    hf_close(k->db);
    fault_here(false);
    k->db = NULL;
    hf_result_clear(&k->got);
}

void fault_end(struct kit *k)
{
    fault_close(k);
    unsigned leaked = fault_leaked(mark);
    if (leaked)
        fault_blame("%u blocks of memory were not freed", leaked);
    if (fault_descriptors() != descriptors)
        fault_blame("%u files were open and %u are", descriptors, fault_descriptors());
    if (fault_mappings() != mappings)
        fault_blame("%d mappings are left", fault_mappings() - mappings);
}

static void dump_gets(struct kit *k, FILE *out)
{
    static const struct {
        enum hf_action action;
        const char *name;
    } gets[] = {
        { HF_GET_REGISTER, "plain" },     { HF_GET_REGISTER, "set" },
        { HF_GET_REGISTER, "fresh" },     { HF_GET_CLAIM, "claim-begun" },
        { HF_GET_CLAIM, "claim-retry" },  { HF_GET_CLAIM, "claim-done" },
        { HF_GET_CLAIM, FAULT_KEY },      { HF_GET_LEASE, "lease" },
        { HF_GET_LEASE, "fresh" },        { HF_GET_VALUE, "value" },
        { HF_GET_VALUE, "gone" },         { HF_GET_VALUE, "fresh" },
        { HF_GET_TOKEN, FAULT_KEY },      { HF_GET_TOKEN, "used-key" },
        { HF_GET_TOKEN, FAULT_KEY "-2" }, { HF_GET_TOKEN, FAULT_KEY "-3" },
    };
    for (size_t i = 0; i < sizeof gets / sizeof *gets; i++) {
        enum hf_status st = kit_get(k, gets[i].action, gets[i].name);
        char *text = kit_answer(k);
        fprintf(out, "get %d %s: %s %s\n", (int)gets[i].action, gets[i].name, hf_status_code(st),
                text);
        free(text);
    }
}

char *fault_dump(struct kit *k)
{
    static const char *const tenants[] = { "" };
    char *text = NULL;
    size_t size = 0;
    struct hf_stats s = kit_stats(k);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    char *lists = kit_dump(k, tenants, 1);
    fputs(lists, out);
    free(lists);
    dump_gets(k, out);
    fprintf(out, "%llu holds, %llu live, %llu resources, %llu guards, %llu entries, %llu claims, ",
            (unsigned long long)s.holds, (unsigned long long)s.holds_live,
            (unsigned long long)s.resources, (unsigned long long)s.guards,
            (unsigned long long)s.entries, (unsigned long long)s.claims);
    fprintf(out, "%llu registers, %llu rows to deliver, %llu values\n" FAULT_TOKENS "%llu\n",
            (unsigned long long)s.registers, (unsigned long long)s.outbox,
            (unsigned long long)s.values, (unsigned long long)s.tokens);
    fclose(out);
    return text;
}

void fault_audit(struct kit *k)
{
    struct hf_audit_report report;
    struct hf_error why = { .status = HF_OK };
    if (hf_audit_run(k->dir, NULL, &report, &why) != HF_OK)
        fault_blame("the store could not be audited: %s", why.text);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (hf_audit_outcome(&report.checks[i]) == HF_AUDIT_BROKEN)
            fault_blame("the audit does not pass %s: %s", report.checks[i].name,
                        report.checks[i].example_count ? report.checks[i].examples[0] : "?");
    if (report.verdict != HF_AUDIT_OK)
        fault_blame("the audit finds damage");
    hf_audit_report_free(&report);
}

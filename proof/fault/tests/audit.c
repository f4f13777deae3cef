/* Audit, trace and export, with every failure point in them: memory that runs out and files that
 * cannot be opened or read are told as such, and never as damage, as a rule that was broken, or as
 * nothing being known. */
#include "audit/audit.h"
#include "audit/export.h"
#include "audit/trace.h"
#include "fault/store.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a question came to. */
struct came {
    int code;    /* 0: done; 1: done, and there is something wrong; 3: not done */
    bool broken; /* it names a rule that was broken, or says that there is nothing */
    char *text;  /* owned: what was printed or written; NULL if it was not done */
    struct hf_error why;
};

struct question {
    const char *name;
    void (*ask)(const char *dir, struct came *came);
    bool damaged; /* of a store whose last batch rotted after an orderly close */
    bool every;   /* every failure point is tried, however late */
};

/* ---- Questions ---- */

static char *stream_text;
static size_t stream_size;

static FILE *stream_open(void)
{
    fault_here(false);
    FILE *out = open_memstream(&stream_text, &stream_size);
    assert_non_null(out);
    fault_here(true);
    return out;
}

static void stream_close(FILE *out, struct came *came)
{
    fault_here(false);
    fclose(out);
    if (came->code == 3)
        free(stream_text);
    else
        came->text = stream_text;
    fault_here(true);
}

static void audit(const char *dir, struct came *came, bool json)
{
    struct hf_audit_report report;
    FILE *out = stream_open();
    enum hf_status st = hf_audit_run(dir, NULL, &report, &came->why);
    bool printed = st == HF_OK &&
                   (json ? hf_audit_print_json(&report, out) : hf_audit_print_text(&report, out));
    came->code = !printed ? 3 : report.verdict == HF_AUDIT_OK ? 0 : 1;
    came->broken = printed && report.verdict == HF_AUDIT_VIOLATIONS;
    if (st == HF_OK && !printed)
        came->why.status = HF_NO_MEMORY;
    hf_audit_report_free(&report);
    stream_close(out, came);
}

static void audit_json(const char *dir, struct came *came)
{
    audit(dir, came, true);
}

static void audit_text(const char *dir, struct came *came)
{
    audit(dir, came, false);
}

static void trace(const char *dir, struct came *came, const char *name, bool json)
{
    struct hf_audit_trace_options options = { .json = json };
    FILE *out = stream_open();
    came->code = hf_audit_trace(dir, hf_str(name), &options, out, &came->why);
    came->broken = came->code == 1;
    stream_close(out, came);
    if (came->text && strstr(came->text, "damaged\":true"))
        came->code = 1;
}

static void trace_hold(const char *dir, struct came *came)
{
    trace(dir, came, furnished.old_confirmed, true);
}

static void trace_key(const char *dir, struct came *came)
{
    trace(dir, came, "used-key", true);
}

static char file[600];
static bool cannot_remove; /* what is tried is that a file cannot be removed */

/* What is in the file, as text: a database is hashed. NULL if it is not there. */
static char *file_text(bool whole)
{
    struct stat st;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int fd = open(file, O_RDONLY);
    if (fd < 0)
        return NULL;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 64);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    close(fd);
    for (size_t i = 0; i < (size_t)st.st_size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    if (!whole)
        snprintf(text, 64, "%lld bytes, %llx", (long long)st.st_size, (unsigned long long)hash);
    return text;
}

static void export(const char *dir, struct came *came, enum hf_audit_format format)
{
    struct hf_audit_export_options options = { .format = format };
    came->code = hf_audit_export(dir, &options, file, &came->why);
    fault_here(false);
    came->text = file_text(format == HF_AUDIT_JSONL);
    if ((came->text == NULL) != (came->code == 3))
        fault_blame("exit code %d, and the file is %s", came->code,
                    came->text ? "there" : "not there");
    unlink(file);
    char half[sizeof file + 8];
    snprintf(half, sizeof half, "%s.tmp", file);
    if (access(half, F_OK) == 0 && !cannot_remove)
        fault_blame("a half-written file is left");
    unlink(half);
    fault_here(true);
}

static void export_jsonl(const char *dir, struct came *came)
{
    export(dir, came, HF_AUDIT_JSONL);
}

static void export_sqlite(const char *dir, struct came *came)
{
    export(dir, came, HF_AUDIT_SQLITE);
}

/* ---- Judging ---- */

static void ask(const struct question *q, const char *dir, struct came *came)
{
    *came = (struct came){ .why = { .status = HF_OK } };
    uint64_t mark = fault_mark();
    unsigned descriptors = fault_descriptors();
    fault_here(true);
    q->ask(dir, came);
    fault_here(false);
    fault_failed();
    if (fault_leaked(mark))
        fault_blame("memory was not freed");
    if (fault_descriptors() != descriptors)
        fault_blame("files were left open");
}

static void judge(const struct came *got, const struct came *base, enum fault_mode mode)
{
    bool same = got->code == base->code && strcmp(got->text ? got->text : "", base->text) == 0;
    if (same)
        return;
    if (mode >= FAULT_INTERRUPTED)
        fault_blame("is another answer although nothing failed: %s", got->why.text);
    if (got->broken)
        fault_blame("says what is not so: %s %.300s", got->why.text, got->text ? got->text : "");
    if (got->code == 1 && base->code == 1)
        return;
    if (got->code == 0)
        fault_same(got->text, base->text, "is another answer");
    if (got->code != 3)
        fault_blame("exit code %d: %s %.300s", got->code, got->why.text,
                    got->text ? got->text : "");
    if (got->why.status != HF_NO_MEMORY && got->why.status != HF_STORAGE_FAILURE)
        fault_blame("fails with %s: %s", hf_status_code(got->why.status), got->why.text);
}

static bool question_fails(const struct question *q, const struct came *base, const char *dir,
                           enum fault_call call, enum fault_mode mode, unsigned n)
{
    struct came got;
    fault_say(q->name, call, mode, n);
    cannot_remove = call == FAULT_REMOVE;
    fault_arm(call, n, mode);
    ask(q, dir, &got);
    bool failed = fault_lift() > 0;
    judge(&got, base, failed ? mode : FAULT_INTERRUPTED);
    free(got.text);
    if (failed)
        fault_point();
    return failed;
}

/* What comes late are allocations of SQLite's own, and reads of one empty block after the other: of
 * those, only some are tried. */
enum { SPARSE_FROM = 120, SPARSE = 8 };

/* Turn over a byte in the newest batch: only the note `closed` tells that it was whole once. */
static void rot(const char *dir)
{
    char path[600];
    unsigned char magic[4];
    off_t last = 0;
    for (int n = 1;; n++) {
        snprintf(path, sizeof path, "%s/journal-%08d.log", dir, n);
        int fd = open(path, O_RDWR);
        if (fd < 0 && last > 0)
            break;
        off_t found = 0;
        for (off_t at = 4096; fd >= 0 && pread(fd, magic, 4, at) == 4; at += 4096)
            if (memcmp(magic, "HFB2", 4) == 0)
                found = at;
        if (fd >= 0)
            close(fd);
        if (found == 0 && last > 0)
            break; /* it is prepared */
        last = found;
        snprintf(file, sizeof file, "%s", path);
        assert_true(n < 1000);
    }
    int fd = open(file, O_RDWR);
    assert_true(fd >= 0 && pread(fd, magic, 1, last + 200) == 1);
    magic[0] ^= 1;
    assert_int_equal(pwrite(fd, magic, 1, last + 200), 1);
    close(fd);
}

static void question_try(const struct question *q)
{
    struct came base;
    bool makes[FAULT_CALLS];
    fault_tried();
    fault_say(q->name, FAULT_NONE, FAULT_ONCE, 0);
    struct kit *k = fault_begin();
    if (q->damaged)
        rot(k->dir);
    snprintf(file, sizeof file, "%s/export", k->dir);
    fault_arm(FAULT_NONE, 0, FAULT_ONCE);
    fault_forget();
    ask(q, k->dir, &base);
    if (base.code != q->damaged || !base.text)
        fault_blame("exit code %d: %s", base.code, base.why.text);
    for (int call = 0; call < FAULT_CALLS; call++)
        makes[call] = fault_count((enum fault_call)call) > 0;
    for (int call = FAULT_ALLOC; call <= FAULT_THREAD; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (makes[call] && fault_has_mode((enum fault_call)call, (enum fault_mode)mode))
                for (unsigned n = 1; question_fails(q, &base, k->dir, (enum fault_call)call,
                                                    (enum fault_mode)mode, n);)
                    n = q->every ? n + 1 : n > SPARSE_FROM ? n + n / SPARSE : fault_next(n);
    free(base.text);
}

static void questions(void **state)
{
    (void)state;
    static const struct question all[] = {
        { .name = "audit as JSON", .ask = audit_json, .every = true },
        { .name = "audit of a damaged store", .ask = audit_json, .damaged = true, .every = true },
        { .name = "audit as text", .ask = audit_text },
        { .name = "trace of a hold", .ask = trace_hold },
        { .name = "trace of a key", .ask = trace_key },
        { .name = "export as lines", .ask = export_jsonl },
        { .name = "export as a database", .ask = export_sqlite },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (fault_wanted(2))
            question_try(&all[i]);
}

/* A disk cannot read one sector, and the rest of the journal is well. Once the audit called that
 * damage and a broken rule. */
static void a_sector_that_cannot_be_read_is_not_damage(void **state)
{
    (void)state;
    static const int64_t sectors[] = { 0, 4096, 4200, 8192 };
    static const struct question audits[] = { { .name = "audit as JSON", .ask = audit_json },
                                              { .name = "trace of a hold", .ask = trace_hold },
                                              { .name = "export as lines", .ask = export_jsonl } };
    struct kit *k = fault_begin();
    char path[600];
    snprintf(file, sizeof file, "%s/export", k->dir);
    fault_arm(FAULT_NONE, 0, FAULT_ONCE);
    unsigned tried = 0;
    for (int n = 1; n < 100; n++)
        for (size_t i = 0; i < 2 * sizeof sectors / sizeof *sectors; i++) {
            const char *kind = i % 2 ? "zst" : "log";
            snprintf(path, sizeof path, "%s/journal-%08d.%s", k->dir, n, kind);
            if (access(path, F_OK) != 0)
                continue;
            fault_sector(path, sectors[i / 2]);
            for (size_t q = 0; q < sizeof audits / sizeof *audits; q++) {
                struct came got;
                ask(&audits[q], k->dir, &got);
                if (got.code == 1 || got.broken ||
                    (got.code == 3 && got.why.status != HF_STORAGE_FAILURE))
                    fail_msg("%s, byte %lld of %s: %d %s %.300s", audits[q].name,
                             (long long)sectors[i / 2], path, got.code, got.why.text,
                             got.text ? got.text : "");
                tried += got.code == 3 && strstr(got.why.text, strstr(path, "journal-"));
                free(got.text);
            }
            fault_sector(NULL, 0);
        }
    assert_true(tried > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions), cmocka_unit_test(a_sector_that_cannot_be_read_is_not_damage)
    };
    fault_sqlite();
    fault_furnish();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_unfurnish();
    fault_report("fault_audit");
    return failed;
}

#include "store/kit/agree.h"

#include "base/bytes.h"

#include "support/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ---- */

void files_load(struct files *set, const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    set->count = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        struct file *f = &set->list[set->count];
        if (e->d_name[0] == '.')
            continue;
        assert_true(set->count < FILES_MAX);
        snprintf(f->name, sizeof f->name, "%s", e->d_name);
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        fseek(in, 0, SEEK_END);
        f->size = (size_t)ftell(in);
        rewind(in);
        f->data = malloc(f->size + 1);
        assert_int_equal(fread(f->data, 1, f->size, in), f->size);
        fclose(in);
        set->count++;
    }
    closedir(d);
}

void files_free(struct files *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->list[i].data);
    set->count = 0;
}

void file_write(const char *dir, const char *name, const void *data, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    fclose(out);
}

void files_put(const struct files *set, const char *dir)
{
    DIR *d = opendir(dir);
    char path[1024];
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    closedir(d);
    for (size_t i = 0; i < set->count; i++)
        file_write(dir, set->list[i].name, set->list[i].data, set->list[i].size);
}

bool file_ends(const struct file *f, const char *suffix)
{
    size_t n = strlen(f->name), m = strlen(suffix);
    return n >= m && strcmp(f->name + n - m, suffix) == 0;
}

struct file *files_find(struct files *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->list[i].name, name) == 0)
            return &set->list[i];
    return NULL;
}

struct file *files_last(struct files *set, const char *begins, const char *ends)
{
    struct file *last = NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct file *f = &set->list[i];
        if (strncmp(f->name, begins, strlen(begins)) == 0 && file_ends(f, ends) &&
            (!last || strcmp(f->name, last->name) > 0))
            last = f;
    }
    return last;
}

/* ---- Agreement ---- */

static void on_note(void *arg, int level, const char *line)
{
    (void)level;
    if (strncmp(line, "snapshot-", 9) == 0 && strstr(line, "cannot be used"))
        *(bool *)arg = true;
}

/* Does the store open, and is everything before its snapshot as it was written? Returns what the
 * start answers. */
static enum hf_status start(struct kit *k, struct agreed *got, struct hf_error *why)
{
    struct hf_stats stats;
    struct hf_options options = k->options;
    options.on_note = on_note;
    options.arg = &got->snapshot_left;
    enum hf_status st = hf_open(k->dir, &options, &k->db, why);
    if (st != HF_OK) {
        k->db = NULL;
        return st;
    }
    hf_stats(k->db, &stats);
    kit_close(k);
    got->opens = !stats.journal_damaged;
    got->index_rebuilt = stats.index_rebuilds > 0;
    return HF_OK;
}

struct agreed agree(struct kit *k, const char *what, const char *name, size_t at)
{
    static const char *const verdicts[] = { "all is well", "violations", "damaged" };
    struct hf_audit_report report;
    struct agreed got = { .verdict = HF_AUDIT_DAMAGED };
    struct hf_error audit_why = { .text = "" }, why = { .text = "" };
    /* The audit goes first: a start changes what lies behind the end. */
    enum hf_status audited = hf_audit_run(k->dir, NULL, &report, &audit_why);
    if (audited == HF_OK)
        got.verdict = report.verdict;
    got.index_named = report.index_wrong > 0;
    got.snapshot_named = report.journal.snapshots_unusable > 0;
    hf_audit_report_free(&report);
    enum hf_status started = start(k, &got, &why);
    /* A store that is damaged is judged; anything else that keeps it from being read has one name
     * for both. */
    if (audited != (started == HF_STORE_DAMAGED ? HF_OK : started))
        fail_msg("%s in %s at byte %zu: the audit answers %s %s, and the start %s %s", what, name,
                 at, hf_status_code(audited), audit_why.text, hf_status_code(started), why.text);
    if (got.opens ? got.verdict == HF_AUDIT_DAMAGED : got.verdict == HF_AUDIT_OK)
        fail_msg("%s in %s at byte %zu: the audit says \"%s\" %s, and the start %s%s", what, name,
                 at, verdicts[got.verdict], audit_why.text,
                 got.opens ? "takes it" : "refuses it: ", why.text);
    return got;
}

struct place place_of_batch(struct files *files, uint64_t sequence)
{
    enum { BLOCK = 4096 };
    struct place found = { .file = NULL };
    for (size_t i = 0; i < files->count; i++) {
        struct file *f = &files->list[i];
        for (size_t at = BLOCK; file_ends(f, ".log") && at < f->size; at += BLOCK) {
            uint64_t n = hf_get64(f->data + at + 8);
            if (memcmp(f->data + at, "HFB2", 4) == 0 &&
                (sequence ? n == sequence : n > found.sequence))
                found = (struct place){ f, at, hf_get32(f->data + at + 4), n };
        }
    }
    assert_non_null(found.file);
    return found;
}

#include "audit/export.h"

#include "audit/own.h"
#include "audit/words.h"

#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* An export in progress. */
struct export
{
    const struct hf_audit_export_options *options;
    struct hf_audit_sink sink;
    struct hf_audit_row *rows; /* owned, HF_AUDIT_ROWS_MAX of them */
    struct hf_audit_row answer;
    struct hf_audit_own own; /* for an export of one tenant */
    struct hf_audit_export_sum sum;
    struct hf_sha256 heads; /* for a database: over the chain heads of all writers so far */
};

/* Give the entry, its rows and its answer the tenant's own numbers. */
static bool make_own(struct export *x, struct hf_audit_entry *e, struct hf_error *why)
{
    hf_audit_own_entry(&x->own, e);
    for (size_t i = 0; i < e->row_count; i++)
        hf_audit_own_row(&x->own, &x->rows[i]);
    if (e->answer == HF_AUDIT_ANSWER_RECORD)
        hf_audit_own_row(&x->own, &x->answer);
    if (x->own.no_memory)
        *why = (struct hf_error){ HF_NO_MEMORY, "Out of memory while exporting the journal." };
    return !x->own.no_memory;
}

static void times_of(struct hf_audit_export_sum *sum, hf_time now, bool first)
{
    if (first || now < sum->first_now)
        sum->first_now = now;
    if (now > sum->last_now)
        sum->last_now = now;
}

static bool write_entry(struct export *x, const struct hf_audit_batch *batch,
                        struct hf_audit_entry *e, struct hf_error *why)
{
    const struct hf_audit_export_options *o = x->options;
    bool config = hf_audit_is_config(e, x->rows);
    if (o->has_tenant && !config && !hf_bytes_equal(e->tenant, o->tenant))
        return true;
    bool answered = hf_audit_answer_read(e, x->rows, &x->answer);
    if (o->has_tenant && !make_own(x, e, why))
        return false;
    x->sum.entries++;
    x->sum.configs += config;
    if (o->has_tenant && !config)
        times_of(&x->sum, batch->now, x->sum.entries - x->sum.configs == 1);
    return x->sink.entry(x->sink.ctx, batch, e, x->rows, answered ? &x->answer : NULL, why);
}

static bool write_entries(struct export *x, const struct hf_audit_batch *batch,
                          struct hf_error *why)
{
    struct hf_audit_export_sum *sum = &x->sum;
    struct hf_audit_entry e;
    const char *problem;
    for (uint32_t at = 0; hf_audit_batch_entry(batch, &at, &e, &problem);) {
        if (problem || hf_audit_rows_read(&e, x->rows)) {
            sum->entries += !x->options->has_tenant;
            sum->unreadable++;
        } else if (!write_entry(x, batch, &e, why)) {
            return false;
        }
    }
    if (!x->options->has_tenant)
        times_of(sum, batch->now, sum->entries <= 1);
    return true;
}

/* A batch whose entries are all written, or will be now. */
static bool write_batch(struct export *x, const struct hf_audit_batch *batch, struct hf_error *why)
{
    x->sum.batches++;
    memcpy(x->sum.chain_head, batch->hash, sizeof x->sum.chain_head);
    return x->options->has_tenant || x->sink.batch(x->sink.ctx, batch, why);
}

/* A writer of a database: the chain head is over all writers, not the hash of the last batch.
 * Damaged if the entries do not match the writer's chain. */
static bool write_writer(struct export *x, const struct hf_audit_writer *w)
{
    if (w->id != 0)
        hf_audit_writer_add(&x->heads, w, x->sum.chain_head);
    x->sum.damages += w->id != 0 && (!w->known || w->batch != w->told_batch ||
                                     memcmp(w->chain, w->told_chain, HF_DIGEST_SIZE) != 0);
    return true;
}

static bool write_step(struct export *x, struct hf_audit_reader *reader, enum hf_audit_step step,
                       const struct hf_audit_batch *batch, struct hf_error *why)
{
    switch (step) {
    case HF_AUDIT_BATCH: return write_batch(x, batch, why) && write_entries(x, batch, why);
    case HF_AUDIT_PART: return write_entries(x, batch, why);
    case HF_AUDIT_WHOLE: return write_batch(x, batch, why);
    case HF_AUDIT_WRITER: return write_writer(x, hf_audit_reader_writer(reader));
    case HF_AUDIT_DAMAGE: x->sum.damages++; return true;
    case HF_AUDIT_FAILED: return false;
    case HF_AUDIT_END: return true;
    }
    return false;
}

static bool write_all(struct export *x, struct hf_audit_reader *reader, struct hf_error *why)
{
    const struct hf_audit_journal *j = hf_audit_reader_journal(reader);
    const struct hf_audit_export_options *options = x->options;
    struct hf_audit_export_sum *sum = &x->sum;
    bool more = true;
    *why = (struct hf_error){ HF_NO_MEMORY, "Out of memory while exporting the journal." };
    x->rows = malloc(HF_AUDIT_ROWS_MAX * sizeof *x->rows);
    hf_sha256_init(&x->heads);
    hf_audit_own_init(&x->own);
    bool good = x->rows && x->sink.begin(x->sink.ctx, j, options, why);
    while (good && more) {
        struct hf_audit_batch batch;
        enum hf_audit_step step = hf_audit_reader_next(reader, &batch, why);
        good = write_step(x, reader, step, &batch, why);
        more = step != HF_AUDIT_END;
        if (options->progress && (!more || sum->entries % 64 == 1))
            options->progress(options->arg,
                              more && j->end < j->bytes_total ? j->end : j->bytes_total,
                              j->bytes_total);
    }
    free(x->rows);
    hf_audit_own_free(&x->own);
    sum->torn_bytes = j->torn_bytes;
    return good && x->sink.end(x->sink.ctx, sum, why);
}

/* The complete file gets its name in one step and never replaces another file: link fails where
 * rename would replace. On file systems without links, check once more and rename. */
static bool file_name(const char *tmp, const char *file, struct hf_error *why)
{
    struct stat st;
    if (link(tmp, file) == 0) {
        unlink(tmp);
        return true;
    }
    if (errno != EEXIST && lstat(file, &st) != 0 && rename(tmp, file) == 0)
        return true;
    (void)hf_error_set(why, HF_STORAGE_FAILURE,
                       "The export is complete, but cannot be renamed to %.200s: %s. Export again, "
                       "to another file.",
                       file, strerror(errno));
    return false;
}

static int damage_told(const struct hf_audit_export_sum *sum, struct hf_error *why)
{
    (void)hf_error_set(why, HF_STORE_DAMAGED,
                       "The journal is damaged in %s, and %s cannot be read. Everything else was "
                       "exported. `holdfast audit` shows the places.",
                       hf_audit_count(sum->damages, "place", "places").text,
                       hf_audit_count(sum->unreadable, "entry", "entries").text);
    return 1;
}

/* The export is written: is there anything to report? */
static int told(const struct export *x, struct hf_error *why)
{
    const struct hf_audit_export_sum *sum = &x->sum;
    *why = (struct hf_error){ HF_OK, "" };
    if (sum->damages > 0 || sum->unreadable > 0)
        return damage_told(sum, why);
    if (x->options->has_tenant && sum->entries == sum->configs)
        snprintf(why->text, sizeof why->text,
                 "Tenant %s has no entry in the journal. The export has only the configurations.",
                 hf_audit_show(x->options->tenant).text);
    return 0;
}

static int export_to(const char *dir, const struct hf_audit_export_options *options,
                     const char *tmp, struct hf_error *why)
{
    struct hf_audit_reader *reader;
    struct export x = { .options = options };
    bool sqlite = options->format == HF_AUDIT_SQLITE;
    enum hf_status st = options->postgres ? hf_audit_reader_connect(options->postgres,
                                                                    options->timeline, &reader, why)
                                          : hf_audit_reader_open(dir, &reader, why);
    if (st != HF_OK)
        return 3;
    bool good =
        sqlite ? hf_audit_sqlite_open(tmp, &x.sink, why) : hf_audit_jsonl_open(tmp, &x.sink, why);
    if (good) {
        good = write_all(&x, reader, why);
        x.sink.close(x.sink.ctx);
    }
    hf_audit_reader_close(reader);
    return good ? told(&x, why) : 3;
}

static int refuse(struct hf_error *why, const char *file, const char *what)
{
    (void)hf_error_set(why, HF_INVALID_REQUEST, "%.300s %s", file, what);
    return 1;
}

int hf_audit_export(const char *dir, const struct hf_audit_export_options *options,
                    const char *file, struct hf_error *why)
{
    struct stat st;
    *why = (struct hf_error){ HF_OK, "" };
    if (options->format == HF_AUDIT_JSONL && strcmp(file, "-") == 0)
        return export_to(dir, options, file, why);
    if (lstat(file, &st) == 0)
        return refuse(why, file, "already exists and was not changed. Name another file.");
    size_t size = strlen(file) + sizeof ".tmp";
    char *tmp = malloc(size);
    if (!tmp) {
        refuse(why, file, "cannot be written: out of memory.");
        why->status = HF_NO_MEMORY;
        return 3;
    }
    snprintf(tmp, size, "%s.tmp", file);
    int code;
    if (lstat(tmp, &st) == 0) {
        code = refuse(why, tmp, "already exists, perhaps from an interrupted export. Remove it.");
    } else {
        code = export_to(dir, options, tmp, why);
        if (code != 3 && !file_name(tmp, file, why))
            code = 3;
        if (code == 3)
            unlink(tmp);
    }
    free(tmp);
    return code;
}

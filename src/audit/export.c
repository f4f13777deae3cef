#include "audit/export.h"

#include "audit/words.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_batch(const struct hf_audit_sink *sink, const struct hf_audit_batch *batch,
                        struct hf_audit_row *rows, struct hf_audit_export_sum *sum, struct hf_error *why)
{
    struct hf_audit_entry e;
    const char *problem;
    if (!sink->batch(sink->ctx, batch, why))
        return false;
    for (uint32_t at = 0; hf_audit_batch_entry(batch, &at, &e, &problem);) {
        sum->entries++;
        if (problem || hf_audit_rows_read(&e, rows))
            sum->unreadable++;
        else if (!sink->entry(sink->ctx, batch, &e, rows, why))
            return false;
    }
    if (sum->batches++ == 0)
        sum->first_now = batch->now;
    sum->last_now = batch->now;
    memcpy(sum->chain_head, batch->hash, sizeof sum->chain_head);
    return true;
}

static bool write_all(struct hf_audit_reader *reader, const struct hf_audit_export_options *options,
                      const struct hf_audit_sink *sink, struct hf_audit_export_sum *sum, struct hf_error *why)
{
    const struct hf_audit_journal *j = hf_audit_reader_journal(reader);
    struct hf_audit_row *rows = malloc(HF_AUDIT_ROWS_MAX * sizeof *rows);
    bool more = true;
    *why = (struct hf_error){ HF_NO_MEMORY, "There is not enough memory to export the journal." };
    bool good = rows && sink->begin(sink->ctx, j, why);
    while (good && more) {
        struct hf_audit_batch batch;
        switch (hf_audit_reader_next(reader, &batch, why)) {
        case HF_AUDIT_BATCH: good = write_batch(sink, &batch, rows, sum, why); break;
        case HF_AUDIT_DAMAGE: sum->damages++; break;
        case HF_AUDIT_FAILED: good = false; break;
        case HF_AUDIT_END: more = false; break;
        }
        if (options->progress && (!more || sum->batches % 64 == 1))
            options->progress(options->arg, more && j->end < j->bytes_total ? j->end : j->bytes_total,
                              j->bytes_total);
    }
    free(rows);
    sum->torn_bytes = j->torn_bytes;
    return good && sink->end(sink->ctx, sum, why);
}

/* The whole file gets its name in one step, and never in place of another: link refuses where rename
 * would not. File systems without links get the rename, after one more look. */
static bool file_name(const char *tmp, const char *file, struct hf_error *why)
{
    struct stat st;
    if (link(tmp, file) == 0) {
        unlink(tmp);
        return true;
    }
    if (errno != EEXIST && lstat(file, &st) != 0 && rename(tmp, file) == 0)
        return true;
    why->status = HF_STORAGE_FAILURE;
    snprintf(why->text, sizeof why->text, "%.200s is whole, but cannot get its name: %s.", tmp,
             strerror(errno));
    return false;
}

static int damage_told(const struct hf_audit_export_sum *sum, struct hf_error *why)
{
    if (sum->damages == 0 && sum->unreadable == 0)
        return 0;
    why->status = HF_STORE_DAMAGED;
    snprintf(why->text, sizeof why->text,
             "The journal is damaged in %llu places and %llu entries cannot be read: what is whole was "
             "exported. "
             "`holdfast audit` says where.",
             (unsigned long long)sum->damages, (unsigned long long)sum->unreadable);
    return 1;
}

static int export_to(const char *dir, const struct hf_audit_export_options *options, const char *tmp,
                     struct hf_error *why)
{
    struct hf_audit_reader *reader;
    struct hf_audit_sink sink;
    struct hf_audit_export_sum sum = { 0 };
    bool sqlite = options->format == HF_AUDIT_SQLITE;
    if (hf_audit_reader_open(dir, &reader, why) != HF_OK)
        return 3;
    bool good = sqlite ? hf_audit_sqlite_open(tmp, &sink, why) : hf_audit_jsonl_open(tmp, &sink, why);
    if (good) {
        good = write_all(reader, options, &sink, &sum, why);
        sink.close(sink.ctx);
    }
    hf_audit_reader_close(reader);
    return good ? damage_told(&sum, why) : 3;
}

static int refuse(struct hf_error *why, const char *file, const char *what)
{
    why->status = HF_INVALID_REQUEST;
    snprintf(why->text, sizeof why->text, "%.300s %s", file, what);
    return 1;
}

int hf_audit_export(const char *dir, const struct hf_audit_export_options *options, const char *file,
                    struct hf_error *why)
{
    struct stat st;
    *why = (struct hf_error){ HF_OK, "" };
    if (options->format == HF_AUDIT_JSONL && strcmp(file, "-") == 0)
        return export_to(dir, options, file, why);
    if (lstat(file, &st) == 0)
        return refuse(why, file, "is there already and is left as it is: name another file.");
    size_t size = strlen(file) + sizeof ".tmp";
    char *tmp = malloc(size);
    if (!tmp) {
        refuse(why, file, "cannot be written: there is not enough memory.");
        return 3;
    }
    snprintf(tmp, size, "%s.tmp", file);
    int code;
    if (lstat(tmp, &st) == 0) {
        code = refuse(why, tmp, "is in the way, perhaps of an export that was cut short: remove it.");
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

/* The auditor over files of any bytes: a report, a trace and an export, whatever is in them. */
#include "fuzz/support/fuzz.h"
#include "fuzz/support/journal.h"
#include "fuzz/support/snapshot.h"

#include "audit/audit.h"
#include "audit/export.h"
#include "audit/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECES, ROWS, PACK, PACK_FIXED, WAYS };

/* ---- The files ---- */

static bool put(void *arg, const char *name, struct hf_bytes bytes)
{
    (void)arg;
    fuzz_folder_put(name, bytes);
    return true;
}

/* The first byte says what the rest is. */
static void files_make(struct fuzz_input *in, struct fuzz_files *files)
{
    unsigned way = fuzz_u8(in) % WAYS;
    if (way == PIECES) {
        fuzz_pieces(in, files);
    } else if (way == ROWS) {
        fuzz_rows(in, files);
    } else {
        struct hf_bytes rest = fuzz_rest(in);
        char *file = fuzz_copy(rest);
        fuzz_files_copy(files, fuzz_store());
        if (way == PACK_FIXED)
            fuzz_pack_fix((unsigned char *)file, rest.size);
        fuzz_files_put(files, "journal-00000001.zst", hf_mem(file, rest.size));
        free(file);
    }
}

/* ---- The auditor ---- */

static FILE *sink;

static void refused(enum hf_status status, const struct hf_error *why)
{
    FUZZ_WANT(status == HF_STORE_ABSENT || status == HF_STORE_NEWER ||
              status == HF_STORAGE_FAILURE);
    FUZZ_WANT(why->status == status && fuzz_sentence(why->text, sizeof why->text));
}

static void audit(const char *dir, const struct hf_audit_options *options)
{
    struct hf_audit_report report;
    struct hf_error why = { HF_OK, "" };
    enum hf_status status = hf_audit_run(dir, options, &report, &why);
    if (status == HF_OK)
        FUZZ_WANT(hf_audit_print_text(&report, sink) && hf_audit_print_json(&report, sink));
    else
        refused(status, &why);
    hf_audit_report_free(&report);
}

static void trace(const char *dir, const char *name, bool json)
{
    const struct hf_audit_trace_options options = { .json = json };
    struct hf_error why = { HF_OK, "" };
    int code = hf_audit_trace(dir, hf_str(name), &options, sink, &why);
    FUZZ_WANT(code == 0 || code == 1 || code == 3);
    FUZZ_WANT(code != 3 || fuzz_sentence(why.text, sizeof why.text));
}

static void export(const char *dir, enum hf_audit_format format)
{
    const struct hf_audit_export_options options = { .format = format };
    struct hf_error why = { HF_OK, "" };
    char path[600];
    snprintf(path, sizeof path, "%s/export", dir);
    int code = hf_audit_export(dir, &options, path, &why);
    FUZZ_WANT(code == 0 || ((code == 1 || code == 3) && fuzz_sentence(why.text, sizeof why.text)));
    (void)unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct fuzz_files files;
    const struct hf_audit_options one = { .has_tenant = true, .tenant = hf_str("t") };
    const char *dir = fuzz_folder();
    if (!sink)
        sink = fopen("/dev/null", "w");
    FUZZ_WANT(sink);
    fuzz_files_init(&files);
    files_make(&in, &files);
    fuzz_folder_empty();
    fuzz_files_each(&files, put, NULL);
    audit(dir, size % 2 ? &one : NULL);
    trace(dir, "a-0", size % 2);
    export(dir, size % 16 ? HF_AUDIT_JSONL : HF_AUDIT_SQLITE);
    fuzz_files_free(&files);
    return 0;
}

/* export.h: the whole history in a form that other tools can read.
 *
 * jsonl: one line of JSON for each entry, with its rows in words. The first line describes the
 * store, the last line has the totals, so that a truncated file is noticed. sqlite: a database with
 * tables for each kind of record, the current state and the events, with indexes and views.
 * doc/AUDIT.md has the questions of a regulator as SQL over it. */
#ifndef HF_AUDIT_EXPORT_H
#define HF_AUDIT_EXPORT_H

#include "audit/read.h"

enum hf_audit_format { HF_AUDIT_JSONL = 1, HF_AUDIT_SQLITE = 2 };

struct hf_audit_export_options {
    enum hf_audit_format format;
    /* true: only entries of this tenant, and the configurations, which belong to no tenant. Nothing
     * shows the other tenants: no store id, no batches, no chain, and the tenant's own numbers
     * instead of positions, hold numbers and outbox numbers. */
    bool has_tenant;
    struct hf_bytes tenant;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; NULL: nothing */
    void *arg;
    const char *postgres; /* NULL, or the database to read instead of the directory */
    uint32_t timeline;    /* 0, or the timeline of the primary to read (hf_timeline) */
};

/* hf_audit_export: `holdfast export`: write the history of the store in `dir` to `file`. dir,
 * options, file: borrowed. why: out. The file is written as FILE.tmp and renamed when it is
 * complete; jsonl to "-" goes to stdout. Returns the exit code: 0 done; 1 the file already exists
 * (it is not changed), or the journal is damaged (the readable part was exported); 3 the store
 * could not be read or the file not be written. For 1 and 3, why has the reason; for 0, why->text
 * is "" or a note for the caller. */
int hf_audit_export(const char *dir, const struct hf_audit_export_options *options,
                    const char *file, struct hf_error *why);

/* ---- Inside: the two forms ---- */

/* The totals of the export. */
struct hf_audit_export_sum {
    uint64_t batches, entries, unreadable, damages;
    uint64_t configs; /* entries that are configurations */
    uint8_t chain_head[HF_DIGEST_SIZE];
    hf_time first_now, last_now;
    uint64_t torn_bytes;
};

/* The output of an export. Each call returns false if it could not write; `why` then has the
 * reason. */
struct hf_audit_sink {
    void *ctx;
    /* options: borrowed until `close`. */
    bool (*begin)(void *ctx, const struct hf_audit_journal *journal,
                  const struct hf_audit_export_options *options, struct hf_error *why);
    /* Not called for an export of one tenant. */
    bool (*batch)(void *ctx, const struct hf_audit_batch *batch, struct hf_error *why);
    /* answer: the record in the answer, or NULL. */
    bool (*entry)(void *ctx, const struct hf_audit_batch *batch, const struct hf_audit_entry *entry,
                  const struct hf_audit_row *rows, const struct hf_audit_row *answer,
                  struct hf_error *why);
    bool (*end)(void *ctx, const struct hf_audit_export_sum *sum, struct hf_error *why);
    void (*close)(void *ctx); /* always called, last */
};

/* Create `path` ("-" is stdout for jsonl). False: why has the reason, nothing is open. */
bool hf_audit_jsonl_open(const char *path, struct hf_audit_sink *sink, struct hf_error *why);
bool hf_audit_sqlite_open(const char *path, struct hf_audit_sink *sink, struct hf_error *why);

/* The tables, indexes and views of the SQLite form, as SQL. Static. */
const char *hf_audit_sqlite_tables(void);
const char *hf_audit_sqlite_views(void);

#endif

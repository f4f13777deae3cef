#include "crash/entries.h"

#include "support/test.h"

static bool wrong(struct hf_error *why, uint64_t position, const char *what)
{
    snprintf(why->text, sizeof why->text, "at %llu: %s", (unsigned long long)position, what);
    return false;
}

/* The entries of a batch, or the one entry of a part of it. */
static bool batch_keep(struct crash_entries *e, const struct hf_audit_batch *batch,
                       struct hf_error *why)
{
    struct hf_audit_batch copy = *batch;
    const char *problem = NULL;
    unsigned char *bytes = hf_arena_take(&e->pages, batch->bytes.size);
    assert_non_null(bytes);
    memcpy(bytes, batch->bytes.data, batch->bytes.size);
    copy.bytes = hf_mem(bytes, batch->bytes.size);
    for (uint32_t at = 0;; e->count++) {
        if (e->count == e->room) {
            e->room = e->room ? 2 * e->room : 4096;
            e->all = realloc(e->all, e->room * sizeof *e->all);
            assert_non_null(e->all);
        }
        if (!hf_audit_batch_entry(&copy, &at, &e->all[e->count], &problem))
            return true;
        if (problem)
            return wrong(why, batch->position, problem);
    }
}

static bool journal_keep(struct crash_entries *e, struct hf_audit_reader *reader,
                         struct hf_error *why)
{
    for (;;) {
        struct hf_audit_batch batch;
        switch (hf_audit_reader_next(reader, &batch, why)) {
        case HF_AUDIT_BATCH:
        case HF_AUDIT_PART:
            if (!batch_keep(e, &batch, why))
                return false;
            break;
        case HF_AUDIT_WHOLE:
        case HF_AUDIT_WRITER: break;
        case HF_AUDIT_DAMAGE: return wrong(why, 0, "damage");
        case HF_AUDIT_FAILED: return false;
        case HF_AUDIT_END: return true;
        }
    }
}

static int by_time(const void *a, const void *b)
{
    const struct hf_audit_entry *x = a, *y = b;
    if (x->recorded_at != y->recorded_at)
        return x->recorded_at < y->recorded_at ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

bool crash_entries_read(const char *dir, const char *postgres, struct crash_entries *out,
                        struct hf_error *why)
{
    struct hf_audit_reader *reader = NULL;
    *out = (struct crash_entries){ .all = NULL };
    bool fine = (postgres ? hf_audit_reader_connect(postgres, 0, &reader, why)
                          : hf_audit_reader_open(dir, &reader, why)) == HF_OK &&
                journal_keep(out, reader, why);
    if (reader)
        hf_audit_reader_close(reader);
    if (fine && postgres)
        qsort(out->all, out->count, sizeof *out->all, by_time);
    return fine;
}

void crash_entries_free(struct crash_entries *e)
{
    free(e->all);
    hf_arena_free(&e->pages);
}

/* Opening and closing a store. */
#include "base/assert.h"
#include "base/error.h"
#include "base/filename.h"
#include "store/journal/closed.h"
#include "store/journal/names.h"
#include "store/journal/walk.h"
#include "store/record/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEGMENT_LEAST = 64 << 10 };
#define SEGMENT_MOST (UINT64_C(1) << 30)

static enum hf_status segments_check(const struct hf_options *o, struct hf_error *why)
{
    if (o->segment_max_bytes &&
        (o->segment_max_bytes < SEGMENT_LEAST || o->segment_max_bytes > SEGMENT_MOST ||
         o->segment_max_bytes % SEGMENT_LEAST != 0))
        return hf_error_set(why, HF_INVALID_REQUEST,
                            "the segment size must be a multiple of 64 KiB, up to 1 GiB");
    return HF_OK;
}

static enum hf_status keys_make(struct hf_journal *j, struct hf_error *why)
{
    unsigned char random[64];
    if (j->io->random(j->io->ctx, random, sizeof random) != 0)
        return hf_error_set(why, HF_STORAGE_FAILURE, "cannot get random bytes for a new store");
    memcpy(&j->keys, random, sizeof random);
    j->has_seal = true;
    return HF_OK;
}
_Static_assert(sizeof(struct hf_store_keys) == 64, "four keys of 16 bytes without padding");

/* Has the store no batch of version 2 yet? */
static bool is_first_sealed(const struct hf_journal *j)
{
    const struct hf_segments *s = &j->segments;
    for (size_t i = s->count; i > 0; i--)
        if (s->list[i - 1].number == j->active)
            return s->list[i - 1].version != HF_FORMAT_VERSION;
    return false;
}

/* Give a store of version 1 its secret. config_commit records the configuration again as the first
 * batch of version 2: a small one, without bytes of a client. */
static enum hf_status seal_make(struct hf_journal *j, struct hf_error *why)
{
    /* A power cut may have left a header with the key, but no batch after it. */
    if (!j->has_seal && j->io->random(j->io->ctx, &j->keys.seal, sizeof j->keys.seal) != 0)
        return hf_error_set(why, HF_STORAGE_FAILURE,
                            "cannot get random bytes for the store's secret");
    j->has_seal = true;
    j->tables.has_config = false;
    hf_journal_note(j, 0, "the journal has format version 1: new batches are written in version 2");
    return HF_OK;
}

/* An empty directory: make the first segment now. */
static enum hf_status store_make(struct hf_journal *j, struct hf_error *why)
{
    enum hf_status st = keys_make(j, why);
    if (st != HF_OK)
        return st;
    hf_tables_free(&j->tables);
    if (!hf_tables_init(&j->tables, &j->keys, j->io, j->dir))
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory for the store's tables");
    j->next_sequence = 1;
    if (j->segments.count > 0)
        return HF_OK; /* prepared by a process that died before its first batch */
    int error = hf_journal_prepare(j, NULL);
    if (error) {
        snprintf(why->text, sizeof why->text, "cannot create the first journal segment: %s",
                 strerror(-error));
        why->status = HF_STORAGE_FAILURE;
        return HF_STORAGE_FAILURE;
    }
    return HF_OK;
}

static void rules_set(struct hf_journal *j, const struct hf_options *o)
{
    const struct hf_config *had = &j->tables.config;
    bool has = j->tables.has_config;
    j->rules = (struct hf_rules){
        .idempotency_window_ms = o->idempotency_window_ms ? o->idempotency_window_ms
                                 : has                    ? had->idempotency_window_ms
                                                          : INT64_C(86400000),
        .token_max_length = o->token_max_length ? o->token_max_length
                            : has               ? had->token_max_length
                                                : 256,
        .registry_strict =
            o->registry ? o->registry == HF_REGISTRY_STRICT : has && had->registry_strict,
    };
}

/* The configuration could not be gathered. error: from making a segment for it. */
static enum hf_status refuse_config(enum hf_status st, bool first_sealed, int error,
                                    struct hf_error *why)
{
    if (st == HF_NO_MEMORY || error == -ENOMEM)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to record the configuration");
    return hf_error_set(why, HF_STORAGE_FAILURE,
                        first_sealed
                            ? "the store has format version 1 and continues in a new segment of "
                              "version 2, which cannot be created: %s. Free disk space"
                            : "cannot record the changed configuration, because the next journal "
                              "segment cannot be created: %s. Free disk space, or open the store "
                              "with its previous configuration",
                        strerror(-error));
}

/* Record the configuration if it has changed, or is the first in version 2. */
static enum hf_status config_commit(struct hf_journal *j, bool first_sealed, struct hf_error *why)
{
    int error = 0;
    enum hf_status st = hf_journal_configure(j);
    if (st == HF_STORAGE_FAILURE && !hf_journal_gathered(j)) {
        error = hf_journal_prepare(j, NULL);
        if (!error)
            st = hf_journal_configure(j);
    }
    if (st != HF_OK)
        return refuse_config(st, first_sealed, error, why);
    if (!hf_journal_gathered(j))
        return HF_OK;
    hf_journal_seal(j);
    error = hf_journal_commit(j);
    if (error)
        return hf_error_set(why, HF_STORAGE_FAILURE, "cannot write the journal");
    hf_journal_landed(j);
    return HF_OK;
}

static bool journal_name(void *arg, const char *name)
{
    bool *found = arg;
    uint64_t number;
    enum hf_filename kind = hf_filename_read(name, &number);
    *found = kind != HF_FILENAME_OTHER && kind != HF_FILENAME_TMP;
    return !*found;
}

/* Is there a store? Checked before taking the lock, which would leave a file. */
static bool store_exists(struct hf_journal *j)
{
    bool found = false;
    return j->io->dir_list(j->dir, journal_name, &found) != 0 || found;
}

/* The previous process may have died after renaming a segment and before that was durable, or the
 * sync may have failed. Then we see the segment in the directory, but it could still be lost, with
 * everything that we write into it. */
static enum hf_status names_settle(struct hf_journal *j, struct hf_error *why)
{
    int error = j->io->dir_sync(j->dir);
    if (!error)
        return HF_OK;
    return hf_error_set(why, HF_STORAGE_FAILURE,
                        "cannot make the names of the journal's segments durable: %s",
                        strerror(-error));
}

/* Clear what a crash left after the end, and open the segments for writing. */
static enum hf_status tail_settle(struct hf_journal *j, struct hf_error *why)
{
    int error = hf_tail_clear(j);
    struct hf_segments *s = &j->segments;
    for (size_t i = 0; !error && i < s->count; i++)
        if (s->list[i].state == HF_SEGMENT_PREPARED || s->list[i].state == HF_SEGMENT_ACTIVE)
            error = hf_segments_open_writer(s, &s->list[i]);
    if (!error)
        return HF_OK;
    return hf_error_set(why, HF_STORAGE_FAILURE, "cannot write the end of the journal: %s",
                        strerror(-error));
}

/* A note of the newest batch, which is durable. */
static struct hf_closed newest_note(const struct hf_journal *j)
{
    struct hf_closed note = { .sequence = j->next_sequence - 1, .end = j->durable };
    memcpy(note.chain, j->chain, sizeof note.chain);
    hf_closed_name(&note, &j->keys);
    return note;
}

/* Write the note that names the store, if there is none: before the first request is answered. A
 * store of an earlier program opens also on a full disk; the note is then tried again later. */
static enum hf_status first_note(struct hf_journal *j, struct hf_error *why)
{
    struct hf_closed note = newest_note(j);
    if (j->is_memory || j->closed.names_store)
        return HF_OK;
    int error = hf_closed_write(j->io, j->dir, &note);
    if (error && note.sequence == 1)
        return hf_error_set(why, HF_STORAGE_FAILURE,
                            "cannot write the note `" HF_CLOSED_NAME "` of the new store: %s",
                            strerror(-error));
    if (error)
        hf_journal_note(j, 1, "cannot write the note `" HF_CLOSED_NAME "` yet: %s",
                        strerror(-error));
    j->begun = error ? note : (struct hf_closed){ .sequence = 0 };
    return HF_OK;
}

/* Write the note if everything decided is on disk. Without disk space, the previous note stays. */
static void closed_note(struct hf_journal *j)
{
    if (!j->opened || j->is_memory || j->gather.size > 0 || j->flight.size > 0)
        return;
    struct hf_closed note = newest_note(j);
    if (hf_closed_write(j->io, j->dir, &note) != 0)
        hf_journal_note(j, 1, "cannot write the note of an orderly close");
    hf_journal_note_head(j);
}

/* An empty directory where the operator expects a store is a bad surprise: log which of the two it
 * was. */
static void opened_note(struct hf_journal *j, bool fresh, const char *path)
{
    if (fresh)
        hf_journal_note(j, 0, "a new store was created in %s", path);
    else
        hf_journal_note(
            j, 0, "the store in %s was opened: %llu keys, %llu holds, the newest batch is %llu",
            path, (unsigned long long)j->tables.tokens.used,
            (unsigned long long)j->tables.holds.highest,
            (unsigned long long)(j->next_sequence - 1));
    if (!j->is_memory)
        hf_journal_note_head(j);
}

/* A refused start changes nothing; this one has succeeded. Remove incomplete files of processes
 * that died, snapshots older than the one in use, and packed segments whose plain segment exists:
 * the plain one is used. */
static void left_remove(struct hf_journal *j)
{
    char name[HF_SEGMENT_NAME_SIZE];
    struct hf_names names;
    if (hf_names_list(j->io, j->dir, &names) == 0)
        for (size_t i = 0; i < names.count; i++) {
            const struct hf_name *n = &names.list[i];
            if (n->kind == HF_FILENAME_TMP ||
                (n->kind == HF_FILENAME_SNAPSHOT && n->number < j->snapshot_start))
                j->io->remove(j->dir, n->text);
        }
    hf_names_free(&names);
    for (size_t i = 0; j->has_twins && i < j->segments.count; i++) {
        const struct hf_segment *g = &j->segments.list[i];
        hf_segment_name(g->number, ".zst", name);
        if (g->state != HF_SEGMENT_PACKED)
            j->io->remove(j->dir, name);
    }
}

static enum hf_status refuse_absent(const char *path, struct hf_error *why)
{
    return hf_error_set(why, HF_STORE_ABSENT, "there is no store in %s", path);
}

static enum hf_status open_locked(struct hf_journal *j, const struct hf_options *o,
                                  const char *path, struct hf_error *why)
{
    char who[160], holder[160] = "";
    char by_pid[32];
    snprintf(by_pid, sizeof by_pid, "process %ld", (long)getpid());
    snprintf(who, sizeof who, "%s\n", o->holder ? o->holder : by_pid);
    if (o->no_create && !store_exists(j))
        return refuse_absent(path, why);
    /* Logged before locking: it may be the reason why the lock is taken. */
    if (j->io->dir_shared && j->io->dir_shared(j->dir))
        hf_journal_note(j, 1,
                        "other users can open the directory %s. They could lock it and keep "
                        "the store from opening. Set its mode to 0700",
                        path);
    int error = j->io->lock(j->dir, who, holder, sizeof holder);
    if (error == -EBUSY) {
        return hf_error_set(why, HF_STORE_BUSY,
                            "the store in %s is already open, by %s: stop that process, or send "
                            "requests to it",
                            path, holder[0] ? holder : "another process");
    }
    if (error) {
        bool unable = error == -ENOLCK || error == -EBADF || error == -EINVAL ||
                      error == -EOPNOTSUPP || error == -ENOSYS;
        return hf_error_set(
            why, HF_STORAGE_FAILURE, "cannot lock the store in %s: %s%s", path, strerror(-error),
            unable ? ". Its file system cannot lock directories. Use a local one, such as "
                     "ext4 or XFS"
                   : "");
    }
    bool fresh;
    enum hf_status st = hf_journal_recover(j, &fresh, why);
    if (st == HF_OK && fresh && o->no_create && j->segments.count == 0)
        st = refuse_absent(path, why); /* the files do not come from a store */
    if (st == HF_OK)
        st = names_settle(j, why);
    if (st == HF_OK)
        st = tail_settle(j, why);
    if (st == HF_OK) {
        left_remove(j);
        /* If it fails, the next snapshot retries. */
        (void)hf_holds_settle(&j->tables.holds, &j->keys);
        hf_segments_trim(&j->segments);
    }
    if (st == HF_OK && fresh)
        st = store_make(j, why);
    if (st != HF_OK)
        return st;
    rules_set(j, o);
    bool first_sealed = !fresh && is_first_sealed(j);
    if (first_sealed)
        st = seal_make(j, why);
    if (st != HF_OK)
        return st;
    j->gmac = hf_gmac_new(&j->keys.seal);
    if (!j->gmac)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to open a store");
    st = config_commit(j, first_sealed, why);
    if (st == HF_OK)
        st = first_note(j, why);
    if (st != HF_OK)
        return st;
    if (!hf_rows_recovered(&j->tables.rows, hf_journal_now(j)))
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to hold the store's tables");
    opened_note(j, fresh, path);
    return HF_OK;
}

/* The directory cannot be used: say why. */
static enum hf_status not_opened(const char *path, bool no_create, int error, struct hf_error *why)
{
    char missing[200];
    if (error == -ENOENT && no_create)
        return hf_error_set(why, HF_STORE_ABSENT, "there is no store in %.300s", path);
    hf_filename_missing(path, missing, sizeof missing);
    if (error == -ENOENT && missing[0])
        return hf_error_set(why, HF_STORAGE_FAILURE,
                            "cannot create a store in %.200s: the directory %s does not exist. "
                            "Create it first",
                            path, missing);
    return hf_error_set(why, HF_STORAGE_FAILURE, "cannot open %.300s: %s", path, strerror(-error));
}

enum hf_status hf_journal_open(const char *path, const struct hf_options *options,
                               const struct hf_io *io, struct hf_journal **out,
                               struct hf_error *why)
{
    *out = NULL;
    enum hf_status st = hf_options_check(options, why);
    if (st == HF_OK)
        st = segments_check(options, why);
    if (st != HF_OK)
        return st;
    struct hf_journal *j = calloc(1, sizeof *j);
    if (!j)
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to open a store");
    j->io = io;
    j->is_memory = io == hf_io_memory();
    j->memory_max = options->memory_max_bytes;
    j->tenant_memory_max = options->tenant_memory_max_bytes;
    j->tenant_records_max = options->tenant_records_max;
    j->snapshot_every =
        options->snapshot_every_bytes ? options->snapshot_every_bytes : UINT64_C(256) << 20;
    j->keep_plain = options->keep_plain;
    j->no_verify = options->no_verify;
    j->on_note = options->on_note;
    j->on_progress = options->on_progress;
    j->on_unknown = options->on_unknown;
    j->arg = options->arg;
    hf_journal_view_init(j);
    j->plan = calloc(1, sizeof *j->plan);
    if (j->plan)
        j->plan->scratch = malloc(HF_PLAN_SCRATCH);
    if (!j->plan || !j->plan->scratch) {
        hf_journal_close(j);
        return hf_error_set(why, HF_NO_MEMORY, "not enough memory to open a store");
    }
    int error = io->dir_open(io->ctx, path, !options->no_create, &j->dir);
    if (error) {
        hf_journal_close(j);
        return not_opened(path, options->no_create, error, why);
    }
    j->segments.io = io;
    j->segments.dir = j->dir;
    j->segments.maps_max = HF_SEGMENT_MAPS_MAX;
    j->segments.packs_max = HF_SEGMENT_PACKS_MAX;
    j->segments.size_max =
        options->segment_max_bytes ? options->segment_max_bytes : UINT64_C(64) << 20;
    st = open_locked(j, options, path, why);
    if (st != HF_OK) {
        hf_journal_close(j);
        return st;
    }
    j->opened = true;
    *out = j;
    return HF_OK;
}

void hf_journal_close(struct hf_journal *j)
{
    if (!j)
        return;
    closed_note(j);
    hf_verify_end(j);
    hf_snapshot_drop(j);
    hf_reindex_drop(j);
    hf_journal_passed_free(j);
    hf_journal_shed_end(j);
    hf_prepare_drop(&j->segments, &j->preparing);
    hf_tables_free(&j->tables);
    hf_segments_free(&j->segments);
    hf_pack_cache_free(&j->cache);
    if (j->plan)
        free(j->plan->scratch);
    free(j->plan);
    hf_gmac_free(j->gmac);
    free(j->gather.data);
    free(j->flight.data);
    if (j->dir)
        j->io->dir_close(j->dir);
    free(j);
}

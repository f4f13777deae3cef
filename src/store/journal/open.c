/* Opening and closing a store. */
#include "base/assert.h"
#include "store/journal/closed.h"
#include "store/journal/maintain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEGMENT_LEAST = 64 << 10 };
#define SEGMENT_MOST (UINT64_C(1) << 30)

static enum hf_status refuse(struct hf_error *why, enum hf_status status, const char *sentence)
{
    why->status = status;
    snprintf(why->text, sizeof why->text, "%s", sentence);
    return status;
}

static enum hf_status options_check(const struct hf_options *o, struct hf_error *why)
{
    if (o->idempotency_window_ms < 0 || o->idempotency_window_ms > HF_DURATION_MAX_MS)
        return refuse(why, HF_INVALID_REQUEST, "the idempotency window must be 1 ms to 10 years");
    if (o->token_max_length > HF_TOKEN_MAX)
        return refuse(why, HF_INVALID_REQUEST, "the greatest token length must be 1 to 1024 bytes");
    if ((unsigned)o->registry > HF_REGISTRY_STRICT)
        return refuse(why, HF_INVALID_REQUEST, "the registry must be open or strict");
    if (o->segment_max_bytes &&
        (o->segment_max_bytes < SEGMENT_LEAST || o->segment_max_bytes > SEGMENT_MOST ||
         o->segment_max_bytes % SEGMENT_LEAST != 0))
        return refuse(why, HF_INVALID_REQUEST, "a segment must be a multiple of 64 KiB, up to 1 GiB");
    return HF_OK;
}

static enum hf_status keys_make(struct hf_journal *j, struct hf_error *why)
{
    unsigned char random[48];
    if (j->io->random(j->io->ctx, random, sizeof random) != 0)
        return refuse(why, HF_STORAGE_FAILURE, "the system gives no randomness for a new store");
    memcpy(&j->keys, random, sizeof random);
    return HF_OK;
}
_Static_assert(sizeof(struct hf_store_keys) == 48, "three keys of 16 bytes without padding");

/* A directory with nothing in it: the first segment, made here and now. */
static enum hf_status store_make(struct hf_journal *j, struct hf_error *why)
{
    enum hf_status st = keys_make(j, why);
    if (st != HF_OK)
        return st;
    hf_tables_free(&j->tables);
    if (!hf_tables_init(&j->tables, &j->keys, j->io, j->dir))
        return refuse(why, HF_NO_MEMORY, "not enough memory for the store's tables");
    j->next_sequence = 1;
    if (j->segments.count > 0)
        return HF_OK; /* prepared by a process that died before its first batch */
    int error = hf_journal_prepare(j, NULL);
    if (error) {
        snprintf(why->text, sizeof why->text, "cannot make the first journal segment: %s", strerror(-error));
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
        .registry_strict = o->registry ? o->registry == HF_REGISTRY_STRICT : has && had->registry_strict,
    };
}

/* Record the configuration if it is another one. */
static enum hf_status config_commit(struct hf_journal *j, struct hf_error *why)
{
    enum hf_status st = hf_journal_configure(j);
    if (st == HF_STORAGE_FAILURE && !hf_journal_gathered(j) && hf_journal_prepare(j, NULL) == 0)
        st = hf_journal_configure(j);
    if (st != HF_OK)
        return refuse(why, HF_STORAGE_FAILURE,
                      "there is no room to record the changed configuration: make room "
                      "on the disk, or open the store as it was configured");
    if (!hf_journal_gathered(j))
        return HF_OK;
    hf_journal_seal(j);
    int error = hf_journal_commit(j);
    if (error)
        return refuse(why, HF_STORAGE_FAILURE, "the journal cannot be written");
    hf_journal_landed(j);
    return HF_OK;
}

static bool journal_name(void *arg, const char *name)
{
    bool *found = arg;
    *found = strncmp(name, "journal-", 8) == 0;
    return !*found;
}

/* Is there anything to open? Looked at before the lock, which would leave a file. */
static bool store_exists(struct hf_journal *j)
{
    bool found = false;
    return j->io->dir_list(j->dir, journal_name, &found) != 0 || found;
}

/* Does the journal reach as far as when it was last closed in order? */
static enum hf_status closed_check(struct hf_journal *j, bool fresh, struct hf_error *why)
{
    struct hf_closed note;
    uint64_t newest = fresh ? 0 : j->next_sequence - 1;
    if (!hf_closed_read(j->io, j->dir, &note))
        return HF_OK;
    if (newest < note.sequence) {
        snprintf(why->text, sizeof why->text,
                 "the journal is damaged at its end: the store was closed in order after batch %llu "
                 "(position %llu), "
                 "but the last whole batch is %llu. `holdfast audit` shows what is whole",
                 (unsigned long long)note.sequence, (unsigned long long)note.end, (unsigned long long)newest);
        return why->status = HF_STORE_DAMAGED;
    }
    if (newest == note.sequence && memcmp(note.chain, j->chain, sizeof note.chain) != 0) {
        snprintf(why->text, sizeof why->text,
                 "the journal is damaged: batch %llu is not the one that the store was closed with. "
                 "`holdfast audit` "
                 "shows what is whole",
                 (unsigned long long)note.sequence);
        return why->status = HF_STORE_DAMAGED;
    }
    return HF_OK;
}

/* The process before may have died between naming a segment and making its name durable, or been told that it could not
 * be: then the directory shows it to us, and would still lose it with everything that we are about to write into it. */
static enum hf_status names_settle(struct hf_journal *j, struct hf_error *why)
{
    int error = j->io->dir_sync(j->dir);
    if (!error)
        return HF_OK;
    snprintf(why->text, sizeof why->text, "the names of the journal's segments cannot be made durable: %s",
             strerror(-error));
    return why->status = HF_STORAGE_FAILURE;
}

/* Wipe the header of a batch that was cut short and lies at `position`, where the next one can begin. The next one
 * overwrites it, but if that write is torn too, its bytes could complete the old batch: it would be there again after
 * it was said not to be. Only the header's sector is written, so that the wiping itself, cut short, completes nothing. */
static int torn_wipe(struct hf_journal *j, uint64_t position)
{
    enum { SECTOR = 512 };
    static const unsigned char zeros[SECTOR];
    const struct hf_segment *g = hf_segments_at(&j->segments, position);
    if (!g || !g->data || memcmp(g->data + (position - g->base), zeros, SECTOR) == 0)
        return 0;
    int error = j->io->write(g->file, zeros, SECTOR, position - g->base);
    return error ? error : j->io->sync(g->file);
}

/* Both places where it can begin: behind the newest batch, and at the beginning of the next segment. */
static enum hf_status torn_wipe_all(struct hf_journal *j, struct hf_error *why)
{
    const struct hf_segment *g = hf_segments_at(&j->segments, j->end);
    if (!g)
        return HF_OK;
    bool begins = j->end == g->base;
    int error = begins ? 0 : torn_wipe(j, j->end);
    if (!error)
        error = torn_wipe(j, begins ? g->base + HF_BLOCK : g->base + g->size + HF_BLOCK);
    if (!error)
        return HF_OK;
    snprintf(why->text, sizeof why->text, "the end of the journal cannot be written: %s", strerror(-error));
    return why->status = HF_STORAGE_FAILURE;
}

/* Leave the note, if everything that was decided is on disk. A store without room for it keeps the one before. */
static void closed_note(struct hf_journal *j)
{
    struct hf_closed note = { .sequence = j->next_sequence - 1, .end = j->durable };
    if (!j->opened || j->is_memory || j->gather.size > 0 || j->flight.size > 0)
        return;
    memcpy(note.chain, j->chain, sizeof note.chain);
    if (hf_closed_write(j->io, j->dir, &note) != 0)
        hf_journal_note(j, 1, "the note of an orderly close could not be written");
}

/* An empty directory where a store was expected is the worst of surprises: say which of the two it was. */
static void opened_note(struct hf_journal *j, bool fresh, const char *path)
{
    if (fresh)
        hf_journal_note(j, 0, "a new store was made in %s", path);
    else
        hf_journal_note(j, 0, "the store in %s was opened: %llu keys, %llu holds, the newest batch is %llu",
                        path, (unsigned long long)j->tables.tokens.used,
                        (unsigned long long)j->tables.holds.highest,
                        (unsigned long long)(j->next_sequence - 1));
}

static enum hf_status open_locked(struct hf_journal *j, const struct hf_options *o, const char *path,
                                  struct hf_error *why)
{
    char who[160], holder[160] = "";
    char by_pid[32];
    snprintf(by_pid, sizeof by_pid, "process %ld", (long)getpid());
    snprintf(who, sizeof who, "%s\n", o->holder ? o->holder : by_pid);
    if (o->no_create && !store_exists(j)) {
        snprintf(why->text, sizeof why->text, "there is no store in %s", path);
        return why->status = HF_STORE_ABSENT;
    }
    int error = j->io->lock(j->dir, who, holder, sizeof holder);
    if (error == -EBUSY) {
        snprintf(why->text, sizeof why->text,
                 "the store in %s is open already, by %s: stop it, or talk to it", path,
                 holder[0] ? holder : "another process");
        return why->status = HF_STORE_BUSY;
    }
    if (error) {
        snprintf(why->text, sizeof why->text, "cannot lock the store in %s: %s", path, strerror(-error));
        return why->status = HF_STORAGE_FAILURE;
    }
    bool fresh;
    enum hf_status st = hf_journal_recover(j, &fresh, why);
    if (st == HF_OK)
        st = closed_check(j, fresh, why);
    if (st == HF_OK)
        st = names_settle(j, why);
    if (st == HF_OK) /* only now: a last batch that the note knows is damaged, and stays as it is */
        st = torn_wipe_all(j, why);
    if (st == HF_OK)
        hf_segments_trim(&j->segments);
    if (st == HF_OK && fresh)
        st = store_make(j, why);
    if (st != HF_OK)
        return st;
    rules_set(j, o);
    st = config_commit(j, why);
    if (st == HF_OK)
        opened_note(j, fresh, path);
    return st;
}

enum hf_status hf_journal_open(const char *path, const struct hf_options *options, const struct hf_io *io,
                               struct hf_journal **out, struct hf_error *why)
{
    *out = NULL;
    enum hf_status st = options_check(options, why);
    if (st != HF_OK)
        return st;
    struct hf_journal *j = calloc(1, sizeof *j);
    if (!j)
        return refuse(why, HF_NO_MEMORY, "not enough memory to open a store");
    j->io = io;
    j->is_memory = io == hf_io_memory();
    j->memory_max = options->memory_max_bytes;
    j->snapshot_every = options->snapshot_every_bytes ? options->snapshot_every_bytes : UINT64_C(256) << 20;
    j->keep_plain = options->keep_plain;
    j->on_note = options->on_note;
    j->on_progress = options->on_progress;
    j->arg = options->arg;
    hf_journal_view_init(j);
    j->plan = calloc(1, sizeof *j->plan);
    if (j->plan)
        j->plan->scratch = malloc(HF_PLAN_SCRATCH);
    if (!j->plan || !j->plan->scratch) {
        hf_journal_close(j);
        return refuse(why, HF_NO_MEMORY, "not enough memory to open a store");
    }
    int error = io->dir_open(io->ctx, path, !options->no_create, &j->dir);
    if (error) {
        snprintf(why->text, sizeof why->text,
                 error == -ENOENT ? "there is no store in %s" : "cannot open %s: %s", path, strerror(-error));
        why->status = error == -ENOENT && options->no_create ? HF_STORE_ABSENT : HF_STORAGE_FAILURE;
        hf_journal_close(j);
        return why->status;
    }
    j->segments.io = io;
    j->segments.dir = j->dir;
    j->segments.size_max = options->segment_max_bytes ? options->segment_max_bytes : UINT64_C(64) << 20;
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
    hf_snapshot_drop(j);
    hf_journal_shed_end(j);
    hf_prepare_drop(&j->segments, &j->preparing);
    hf_tables_free(&j->tables);
    hf_segments_free(&j->segments);
    hf_pack_cache_free(&j->cache);
    if (j->plan)
        free(j->plan->scratch);
    free(j->plan);
    free(j->gather.data);
    free(j->flight.data);
    if (j->dir)
        j->io->dir_close(j->dir);
    free(j);
}

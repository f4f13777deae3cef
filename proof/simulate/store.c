/* Opening, closing, crashing. */
#include "simulate/world.h"

#include "simulate/script.h"

#include <stdlib.h>
#include <string.h>

enum { STARTS_MAX = 40, STARTS_PATIENT = 8 };
enum {
    UNREAD_IN = 12
}; /* `closed` and the first snapshot are among the first files that a start reads */

static void on_fatal(void *arg, const char *sentence)
{
    struct sim_world *w = arg;
    (void)sentence;
    w->stopped = true;
}

/* A power cut by itself spoils nothing that had its name: only failing disks and rot may. */
static void on_note(void *arg, int level, const char *line)
{
    struct sim_world *w = arg;
    if (level > 0 && w->faults_happened == 0 && !sim_disk_is_cut(w->disk) &&
        strstr(line, "cannot be used"))
        sim_fail(w, "after a power cut: %s", line);
}

/* What is said after the power went reaches nobody. */
static void on_unknown(void *arg, const struct hf_claim *claim)
{
    struct sim_world *w = arg;
    if (sim_failed(w) || sim_disk_is_cut(w->disk))
        return;
    sim_trace_bytes(&w->trace, claim->key);
    sim_trace_number(&w->trace, claim->fence);
    judge_lapsed(w->judge, sim_clock_latest(w), claim);
}

/* ---- Dying ---- */

/* The store is there, dead or alive: give it back, and turn the power on if it went. */
static void bury(struct sim_world *w)
{
    bool was_cut = sim_disk_is_cut(w->disk);
    struct hf_stats stats = { .journal_bytes = 0 };
    judge_crashed(w->judge);
    w->out->crashes++;
    if (w->db)
        hf_stats(w->db, &stats);
    hf_close(w->db);
    w->db = NULL;
    w->doubted = sim_asks_lose(w);
    /* After a failed sync, what the system still shows may be on no disk: sometimes the power goes
     * as well. */
    if (!was_cut && sim_chance_once_in(&w->chance, 2))
        sim_disk_cut(w->disk);
    if (sim_disk_is_cut(w->disk))
        sim_disk_restart(w->disk);
    if (stats.journal_bytes && sim_chance_once_in(&w->chance, 2))
        sim_forge(w, stats.journal_bytes);
    w->stopped = false;
    w->crashed = true;
    w->orderly = false;
}

bool sim_store_died(struct sim_world *w)
{
    if (!w->db || (!w->stopped && !sim_disk_is_cut(w->disk)))
        return false;
    if (w->stopped && !sim_disk_is_cut(w->disk) && !w->troubled)
        sim_fail(w, "the store stopped, and nothing had failed");
    bury(w);
    sim_store_open(w);
    return true;
}

/* ---- Opening ---- */

static void options_set(struct sim_world *w)
{
    w->options.io = sim_disk_io(w->disk);
    w->options.no_background = w->options.no_committer = true;
    w->options.holder = "the simulator";
    w->options.on_fatal = on_fatal;
    w->options.on_note = on_note;
    w->options.on_unknown = on_unknown;
    w->options.arg = w;
    w->options.idempotency_window_ms = w->rules.idempotency_window_ms;
    w->options.token_max_length = w->rules.token_max_length;
    w->options.registry = w->rules.strict ? HF_REGISTRY_STRICT : HF_REGISTRY_OPEN;
}

/* The store did not open. Is that allowed? */
static void refused(struct sim_world *w, const struct hf_error *why, bool failures, unsigned tries)
{
    if (!failures && !w->limited)
        sim_fail(w, "the store does not open: %s", why->text);
    if (tries >= STARTS_PATIENT) { /* whoever runs it makes room, or changes the disk */
        sim_faults_stop(w);
        w->troubled = true;
        w->troubled_ns = w->steady_ns;
    }
    sim_pass_us(w, 1000000);
}

/* One start. True if the store is open, and the power is on. */
static bool start(struct sim_world *w, unsigned tries)
{
    struct hf_error why;
    uint64_t failures = w->faults_happened;
    if (w->cuts_left > 0) {
        w->cuts_left--;
        w->cut_at =
            w->calls + 1 + sim_chance_below(&w->chance, 1 + sim_chance_below(&w->chance, 80));
    }
    w->unread = w->stale = false;
    w->starting = true;
    w->out->opens++;
    options_set(w);
    sim_clock_catch_up(w);
    sim_clock_first(w);
    enum hf_status st = hf_open("store", &w->options, &w->db, &why);
    w->starting = false;
    sim_trace_number(&w->trace, st);
    if (sim_disk_is_cut(w->disk)) {
        bury(w);
        return false;
    }
    if (st != HF_OK)
        refused(w, &why, w->faults_happened > failures, tries);
    return st == HF_OK;
}

/* The store is open: tell the judge, and show it what is there. */
static bool introduce(struct sim_world *w)
{
    if (!w->crashed)
        judge_opened(w->judge, &w->rules);
    if (sim_look(w, w->db, w->crashed ? &w->rules : NULL) == SIM_LOOK_OK) {
        w->crashed = false;
        return true;
    }
    if (!w->stopped && !sim_disk_is_cut(w->disk) && w->unread) {
        memset(w->faults, 0, sizeof w->faults);
        if (sim_look(w, w->db, w->crashed ? &w->rules : NULL) == SIM_LOOK_OK) {
            w->crashed = false;
            return true;
        }
    }
    if (w->stopped || sim_disk_is_cut(w->disk))
        bury(w);
    else
        sim_fail(w, "the store is open and cannot list what it holds");
    return false;
}

void sim_store_open(struct sim_world *w)
{
    for (unsigned tries = 0; tries < STARTS_MAX && !sim_failed(w); tries++)
        if (start(w, tries) && introduce(w))
            return;
    sim_fail(w, "the store was started %d times and never came up", STARTS_MAX);
}

/* ---- Closing ---- */

void sim_store_close(struct sim_world *w)
{
    sim_flush(w);
    if (sim_failed(w))
        return;
    hf_close(w->db);
    w->db = NULL;
    w->orderly = true;
    if (!sim_disk_is_cut(w->disk) && !w->stopped)
        return;
    bury(w);
}

/* ---- Changing the configuration ---- */

/* Limits of memory: a fixed one, or one that is reached at once or soon. used: what the store uses
 * now. */
static void limit(struct sim_world *w, uint64_t used, uint64_t draw)
{
    enum { ANY = 400000, LITTLE = 20000 };
    bool near = draw >> 61 & 1;
    w->options.memory_max_bytes = near ? used + (draw >> 32) % LITTLE : ANY + (draw >> 32) % ANY;
    if (draw >> 62 == 1)
        w->options.tenant_memory_max_bytes = w->options.memory_max_bytes / 2;
    if (draw >> 62 == 2)
        w->options.tenant_records_max = 500;
}

static void change(struct sim_world *w, uint8_t changes, uint64_t draw, uint64_t used)
{
    static const int64_t windows[] = { 1, 100, 3000, 60000, 86400000 };
    static const uint32_t lengths[] = { 8, 64, 256, 1024 };
    static const uint64_t snapshots[] = { 65536, 150000, 1000000 };
    if (changes & SIM_CHANGE_WINDOW)
        w->rules.idempotency_window_ms = windows[draw % 5];
    if (changes & SIM_CHANGE_TOKEN)
        w->rules.token_max_length = lengths[draw >> 8 & 3];
    if (changes & SIM_CHANGE_REGISTRY)
        w->rules.strict = !w->rules.strict;
    if (changes & SIM_CHANGE_SEGMENT)
        w->options.segment_max_bytes = w->mix->segment_least + (draw >> 16 & 7) * 65536;
    if (changes & SIM_CHANGE_SNAPSHOT)
        w->options.snapshot_every_bytes = snapshots[(draw >> 24) % 3];
    if (changes & SIM_CHANGE_PLAIN)
        w->options.keep_plain = !w->options.keep_plain;
    w->options.memory_max_bytes = w->options.tenant_memory_max_bytes =
        w->options.tenant_records_max = 0;
    if (changes & SIM_CHANGE_MEMORY)
        limit(w, used, draw);
}

void sim_store_reopen(struct sim_world *w, const struct sim_step *step)
{
    struct hf_stats stats = { .memory_used_bytes = 0 };
    if (w->db)
        hf_stats(w->db, &stats);
    sim_store_close(w);
    if (sim_failed(w))
        return;
    change(w, step->variant, step->draw, stats.memory_used_bytes);
    sim_store_open(w);
}

/* ---- Rot ---- */

struct files {
    struct {
        char name[64];
        uint64_t size;
    } list[256];
    size_t count;
};

static bool files_add(void *arg, const char *name, uint64_t size)
{
    struct files *f = arg;
    if (size == 0)
        return true;
    snprintf(f->list[f->count].name, sizeof f->list[f->count].name, "%s", name);
    f->list[f->count].size = size;
    f->count++;
    return f->count < sizeof f->list / sizeof *f->list;
}

/* Open the files with one bit changed. Refusing to open them is right, and so is showing what is
 * true; anything else is for the judge. */
static void rot_look(struct sim_world *w, struct sim_disk *copy)
{
    struct hf_options options = w->options;
    struct hf_error why;
    struct hf_db *db;
    options.io = sim_disk_io(copy);
    options.on_note = NULL;
    options.on_unknown = NULL;
    sim_clock_catch_up(w);
    sim_clock_first(w);
    enum hf_status st = hf_open("store", &options, &db, &why);
    w->unread_in = 0;
    sim_trace_number(&w->trace, st);
    if (st != HF_OK)
        return;
    judge_opened(w->judge, &w->rules);
    sim_look(w, db, NULL);
    hf_close(db);
}

/* The last byte of the journal that is not zero: it is in the newest batch. False if there is none
 * in a plain segment. */
static bool journal_last(struct sim_disk *copy, const struct files *files, size_t *which,
                         uint64_t *at)
{
    bool found = false;
    for (size_t i = 0; i < files->count; i++) {
        struct hf_bytes bytes;
        const char *name = files->list[i].name;
        if (!strstr(name, ".log") || (found && strcmp(name, files->list[*which].name) < 0) ||
            !sim_disk_bytes(copy, name, &bytes))
            continue;
        const unsigned char *data = bytes.data;
        size_t size = bytes.size;
        while (size > 0 && data[size - 1] == 0)
            size--;
        if (size == 0)
            continue;
        found = true;
        *which = i;
        *at = size - 1;
    }
    return found;
}

void sim_store_rot(struct sim_world *w, const struct sim_step *step)
{
    struct files files = { .count = 0 };
    sim_store_close(w);
    if (sim_failed(w))
        return;
    bool stopped = w->stopped;
    if (w->orderly) {
        struct sim_disk *copy = sim_disk_copy(w->disk, &w->owner);
        w->quiet = true;
        sim_disk_each(copy, files_add, &files);
        size_t which = step->draw % files.count;
        uint64_t at = (step->draw >> 8) % files.list[which].size;
        if (step->draw >> 63) /* heads of files are short and matter most */
            at %= 8192;
        /* What was acknowledged last, while what proves that it was there may not be readable. */
        if ((step->draw >> 40) % 3 == 0 && journal_last(copy, &files, &which, &at))
            w->unread_in = 1 + (unsigned)(step->draw >> 44) % UNREAD_IN;
        sim_disk_flip(copy, files.list[which].name, at, step->draw >> 60 & 7);
        snprintf(w->fault, sizeof w->fault, "a flipped bit in %s at byte %llu",
                 files.list[which].name, (unsigned long long)at);
        rot_look(w, copy);
        w->quiet = false;
        w->stopped = stopped;
        sim_disk_free(copy);
    }
    if (!sim_failed(w))
        sim_store_open(w);
}

/* ---- Lost writes ---- */

/* Put back some of the blocks that were noted, and note them all as they are. */
void sim_store_stale(struct sim_world *w, const struct sim_step *step)
{
    enum { BLOCK = 4096 };
    struct hf_bytes now;
    bool all = step->draw % 3 == 0, any = false;
    if (!sim_disk_bytes(w->disk, "holds.idx", &now))
        return;
    unsigned char *noted = now.size ? malloc(now.size) : NULL;
    if (noted)
        memcpy(noted, now.data, now.size);
    for (size_t at = BLOCK; w->kept && at + BLOCK <= w->kept_size; at += BLOCK)
        if (all || sim_chance_once_in(&w->chance, 2))
            any |= sim_disk_put(w->disk, "holds.idx", hf_mem(w->kept + at, BLOCK), at);
    if (any) {
        snprintf(w->fault, sizeof w->fault, "lost writes to holds.idx");
        w->stale = w->unread = true;
        w->faults_happened++;
    }
    free(w->kept);
    w->kept = noted;
    w->kept_size = noted ? now.size : 0;
}

/* Opening, closing, crashing. */
#include "simulate/world.h"

#include "simulate/script.h"

#include <string.h>

enum { STARTS_MAX = 40, STARTS_PATIENT = 8 };

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
    if (level > 0 && w->faults_happened == 0 && !sim_disk_is_cut(w->disk) && strstr(line, "cannot be used"))
        sim_fail(w, "after a power cut: %s", line);
}

/* ---- Dying ---- */

/* The store is there, dead or alive: give it back, and turn the power on if it went. */
static void bury(struct sim_world *w)
{
    bool was_cut = sim_disk_is_cut(w->disk);
    judge_crashed(w->judge);
    w->out->crashes++;
    hf_close(w->db);
    w->db = NULL;
    w->doubted = sim_asks_lose(w);
    /* After a failed sync, what the system still shows may be on no disk: sometimes the power goes as well. */
    if (!was_cut && sim_chance_once_in(&w->chance, 2))
        sim_disk_cut(w->disk);
    if (sim_disk_is_cut(w->disk))
        sim_disk_restart(w->disk);
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
        w->cut_at = w->calls + 1 + sim_chance_below(&w->chance, 1 + sim_chance_below(&w->chance, 80));
    }
    w->unread = false;
    w->starting = true;
    w->out->opens++;
    options_set(w);
    sim_clock_catch_up(w);
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

static void change(struct sim_world *w, uint8_t changes, uint64_t draw)
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
    w->options.memory_max_bytes = changes & SIM_CHANGE_MEMORY ? 400000 + (draw >> 32) % 400000 : 0;
}

void sim_store_reopen(struct sim_world *w, const struct sim_step *step)
{
    sim_store_close(w);
    if (sim_failed(w))
        return;
    change(w, step->variant, step->draw);
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

/* Open the files with one bit changed. Refusing to open them is right, and so is showing what is true; anything
 * else is for the judge. */
static void rot_look(struct sim_world *w, struct sim_disk *copy)
{
    struct hf_options options = w->options;
    struct hf_error why;
    struct hf_db *db;
    options.io = sim_disk_io(copy);
    options.on_note = NULL;
    sim_clock_catch_up(w);
    enum hf_status st = hf_open("store", &options, &db, &why);
    sim_trace_number(&w->trace, st);
    if (st != HF_OK)
        return;
    judge_opened(w->judge, &w->rules);
    sim_look(w, db, NULL);
    hf_close(db);
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
        sim_disk_flip(copy, files.list[which].name, at, step->draw >> 60 & 7);
        snprintf(w->fault, sizeof w->fault, "a flipped bit in %s at byte %llu", files.list[which].name,
                 (unsigned long long)at);
        rot_look(w, copy);
        w->quiet = false;
        w->stopped = stopped;
        sim_disk_free(copy);
    }
    if (!sim_failed(w))
        sim_store_open(w);
}

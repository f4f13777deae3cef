#include "simulate/step.h"

#include "base/assert.h"
#include "simulate/disk.h"

#include <inttypes.h>
#include <stdlib.h>

void sim_script_free(struct sim_script *script)
{
    free(script->steps);
    *script = (struct sim_script){ 0 };
}

struct sim_step *sim_script_add(struct sim_script *script, const struct sim_step *step)
{
    if (script->count == script->room) {
        size_t room = script->room ? script->room * 2 : 1024;
        struct sim_step *steps = realloc(script->steps, room * sizeof *steps);
        HF_ASSERT(steps);
        script->steps = steps;
        script->room = room;
    }
    script->steps[script->count] = *step;
    return &script->steps[script->count++];
}

/* ---- In words ---- */

static const char *const calls[SIM_CALLS] = {
    [SIM_DIR_OPEN] = "dir_open", [SIM_DIR_SYNC] = "dir_sync", [SIM_DIR_LIST] = "dir_list",
    [SIM_RENAME] = "rename",     [SIM_REMOVE] = "remove",     [SIM_LOCK] = "lock",
    [SIM_OPEN] = "open",         [SIM_SIZE] = "size",         [SIM_READ] = "read",
    [SIM_WRITE] = "write",       [SIM_SYNC] = "sync",         [SIM_TRUNCATE] = "truncate",
    [SIM_MAP] = "map",
};

static void print_key(const struct sim_step *s, FILE *out)
{
    switch ((enum sim_key)s->key_kind) {
    case SIM_KEY_TOKEN: fprintf(out, " key k%" PRIu32, s->key); break;
    case SIM_KEY_CLAIM: fprintf(out, " key c%" PRIu32, s->key); break;
    case SIM_KEY_NUMBER: fprintf(out, " client n%u number %" PRIu32, s->client, s->key); break;
    case SIM_KEY_NONE: fputs(" without a key", out); break;
    case SIM_KEY_LONG: fputs(" key too long", out); break;
    }
}

static void print_ask(const struct sim_step *s, FILE *out)
{
    static const char *const fences[] = { "", " newest fence", " old fence", " next fence" };
    fprintf(out, "client %u asks %s: tenant %u", s->client,
            hf_action_name((enum hf_action)s->action), s->tenant);
    print_key(s, out);
    fprintf(out, " thing %" PRIu32 " who %" PRIu32 " amount %" PRId64 " variant %u", s->thing,
            s->who, s->amount, s->variant);
    fputs(fences[s->fence], out);
    if (s->size)
        fprintf(out, " %" PRIu32 " bytes", s->size);
    if (s->origin)
        fprintf(out, ", the hold of step %" PRIu32, s->origin);
    if (s->first)
        fprintf(out, ", as step %" PRIu32 " did", s->first);
}

static void print_event(const struct sim_step *s, FILE *out)
{
    switch ((enum sim_kind)s->kind) {
    case SIM_ASK: print_ask(s, out); break;
    case SIM_FLUSH: fputs("commit, and answer", out); break;
    case SIM_MAINTAIN: fprintf(out, "%" PRId64 " steps of maintenance", s->amount); break;
    case SIM_LOOK: fputs("look at everything", out); break;
    case SIM_RETRY: fprintf(out, "clients ask again, up to %" PRId64 " requests", s->amount); break;
    case SIM_PASS: fprintf(out, "%" PRId64 " ms pass", s->amount); break;
    case SIM_JUMP:
        fprintf(out,
                s->variant ? "the machine sleeps for %" PRId64 " ms"
                           : "the wall clock jumps by %" PRId64 " ms",
                s->amount);
        break;
    case SIM_STALL:
        fputs(s->amount ? "the wall clock stands still" : "the wall clock goes on", out);
        break;
    case SIM_CUT:
        if (s->amount == 0)
            fprintf(out, "the power goes now, then %u times in starts", s->variant);
        else
            fprintf(out,
                    "the power goes at call %" PRId64
                    " to the disk from here, then %u times in starts",
                    s->amount, s->variant);
        break;
    case SIM_REOPEN: fprintf(out, "close, open again (variant %u)", s->variant); break;
    case SIM_ROOM:
        if (s->amount < 0)
            fputs("the disk has room again", out);
        else
            fprintf(out, "the disk has %" PRId64 " bytes left", s->amount);
        break;
    case SIM_FAIL:
        fprintf(out, "call %" PRId64 " of %s from here fails", s->amount,
                calls[s->variant % SIM_CALLS]);
        break;
    case SIM_SLOW: fprintf(out, "each call to the disk takes %" PRId64 " us", s->amount); break;
    case SIM_STALE:
        fputs("the disk loses writes to holds.idx since the last such step", out);
        break;
    case SIM_ROT:
        fputs("close; a bit flips in a copy of the files, which is opened and looked at", out);
        break;
    }
}

void sim_step_print(const struct sim_step *step, FILE *out)
{
    fprintf(out, "%6" PRIu32 "  ", step->label);
    print_event(step, out);
    fputc('\n', out);
}

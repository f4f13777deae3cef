/* engine_clock.h: engine time, out of a wall clock that people and programs set and a boot clock
 * that nobody sets.
 *
 * Engine time is the wall clock's, but never runs back, and never goes ahead faster than the boot
 * clock goes: a wall clock that is ahead of what the boot clock confirms by more than
 * HF_ENGINE_CLOCK_SLACK_MS has jumped. It is not believed for HF_ENGINE_CLOCK_WATCH_MS; meanwhile
 * engine time goes on at the boot clock's pace. If the wall clock comes back before that, it is
 * followed again as if nothing had been; if it stays where it is, it is believed. One that jumps
 * again is watched anew.
 *
 * The slack is for the small steps by which clocks are corrected. What of it was used comes back at
 * 1 ms a second, so many small steps do not add up to a large one. It is no allowance for slewing:
 * the kernel slews both clocks alike.
 *
 * The first reading is believed, because the boot clock does not say how long nobody looked. No
 * I/O, no lock. */
#ifndef HF_STORE_ENGINE_CLOCK_H
#define HF_STORE_ENGINE_CLOCK_H

#include "holdfast.h"

enum {
    HF_ENGINE_CLOCK_SLACK_MS = 1000,
    HF_ENGINE_CLOCK_WATCH_MS = 60000,
    HF_ENGINE_CLOCK_LINE = 256
};

struct hf_engine_clock {
    hf_time now; /* engine time: the latest that was told */
    /* Engine time `line` is confirmed at `line_boot`, and may be the slack ahead of that. */
    hf_time line, line_boot;
    hf_time pace,
        pace_boot; /* from here engine time goes on while the wall clock is not believed */
    hf_time place, place_from,
        place_to; /* where the wall clock is watched since, if it is not believed */
    bool started, doubted;
    uint64_t jumps;       /* how often it jumped */
    hf_time wall;         /* what it said last */
    hf_time step;         /* how far it was ahead of engine time when it jumped, or was believed */
    hf_time told_boot;    /* when the operator was told of a jump, if ever */
    bool told_ever, told; /* told: of the newest one */
};

/* The wall clock said `wall` at some moment when the boot clock said `from` to `to`; both never run
 * back. */
struct hf_engine_clock_reading {
    hf_time wall, from, to;
    /* The latest time at which something was committed: engine time is not before it. 0: nothing
     * was. */
    hf_time committed;
};

enum hf_engine_clock_event {
    HF_ENGINE_CLOCK_GOES,     /* nothing to speak of */
    HF_ENGINE_CLOCK_JUMPED,   /* it is not believed from here on */
    HF_ENGINE_CLOCK_RETURNED, /* it came back in time */
    HF_ENGINE_CLOCK_BELIEVED  /* it stayed, and engine time has stepped forward */
};

/* Take a reading: c->now is engine time then. A clock of zeros has not started. */
enum hf_engine_clock_event hf_engine_clock_read(struct hf_engine_clock *c,
                                                const struct hf_engine_clock_reading *reading);

/* Should the operator be told of the event that was just read? A clock that jumps again and again
 * is spoken of once a minute. whose: "the wall" or "the database's". line: out. */
bool hf_engine_clock_tell(struct hf_engine_clock *c, enum hf_engine_clock_event event,
                          const char *whose, char line[HF_ENGINE_CLOCK_LINE]);

#endif

/* engine_clock.h: engine time, made of the wall clock, which can be set, and the boot clock, which
 * cannot.
 *
 * Engine time follows the wall clock, but never runs back and never runs faster than the boot
 * clock. If the wall clock is ahead of the time that the boot clock confirms by more than
 * HF_ENGINE_CLOCK_SLACK_MS, it has jumped. The store ignores the wall clock for
 * HF_ENGINE_CLOCK_WATCH_MS, and engine time runs at the rate of the boot clock. If the wall clock
 * returns before that time is over, engine time follows it again. If it stays ahead, engine time
 * steps forward to it. Another jump starts the waiting time again.
 *
 * The slack is for the small steps by which clocks are corrected. Used slack is regained at 1 ms a
 * second, so many small steps do not add up to a large one. Slewing needs no slack: the kernel
 * slews both clocks alike.
 *
 * The first reading is trusted, because the boot clock cannot tell how long the store was closed.
 * No I/O, no lock. */
#ifndef HF_STORE_ENGINE_CLOCK_H
#define HF_STORE_ENGINE_CLOCK_H

#include "holdfast.h"

enum {
    HF_ENGINE_CLOCK_SLACK_MS = 1000,
    HF_ENGINE_CLOCK_WATCH_MS = 60000,
    HF_ENGINE_CLOCK_LINE = 256
};

struct hf_engine_clock {
    hf_time now; /* engine time: the latest one returned */
    /* Engine time `line` is confirmed at `line_boot`. Engine time may be ahead of it by the
     * slack. */
    hf_time line, line_boot;
    hf_time pace,
        pace_boot; /* the start of the boot clock's rate while the wall clock is ignored */
    hf_time place, place_from, place_to; /* the jumped wall clock and when it was read */
    bool started, doubted;
    uint64_t jumps;       /* how often the wall clock jumped */
    hf_time wall;         /* the last reading */
    hf_time step;         /* how far it was ahead of engine time at the jump, or when trusted
                           * again */
    hf_time told_boot;    /* when a jump was logged, if ever */
    bool told_ever, told; /* told: the newest jump was logged */
};

/* The wall clock read `wall` at some moment while the boot clock read `from` to `to`. Neither
 * `from` nor `to` ever runs back. */
struct hf_engine_clock_reading {
    hf_time wall, from, to;
    /* The latest time of any commit: engine time is not before it. 0: nothing was committed. */
    hf_time committed;
};

enum hf_engine_clock_event {
    HF_ENGINE_CLOCK_GOES,     /* nothing to report */
    HF_ENGINE_CLOCK_JUMPED,   /* the wall clock is ignored from now on */
    HF_ENGINE_CLOCK_RETURNED, /* the wall clock returned in time */
    HF_ENGINE_CLOCK_BELIEVED  /* it stayed ahead: engine time has stepped forward */
};

/* Process a reading: c->now becomes the engine time. A clock of zeros has not started. */
enum hf_engine_clock_event hf_engine_clock_read(struct hf_engine_clock *c,
                                                const struct hf_engine_clock_reading *reading);

/* Should the operator see a log line for the event that was just read? Jumps are logged at most
 * once a minute. whose: "the wall" or "the database's". line: out. */
bool hf_engine_clock_tell(struct hf_engine_clock *c, enum hf_engine_clock_event event,
                          const char *whose, char line[HF_ENGINE_CLOCK_LINE]);

#endif

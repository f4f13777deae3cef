#include "store/engine_clock.h"

#include <stdio.h>

enum { REGAIN = 1000 }; /* the slack regains 1 ms in so many milliseconds */

static hf_time later(hf_time a, hf_time b)
{
    return a > b ? a : b;
}

/* The time that the boot clock confirms when it reads `boot`. */
static hf_time confirmed(const struct hf_engine_clock *c, hf_time boot)
{
    hf_time passed = later(boot - c->line_boot, 0);
    hf_time regained = passed / REGAIN;
    return c->line + passed +
           (regained < HF_ENGINE_CLOCK_SLACK_MS ? regained : HF_ENGINE_CLOCK_SLACK_MS);
}

/* Set engine time to `now`, regardless of earlier readings. */
static void follow(struct hf_engine_clock *c, hf_time now, const struct hf_engine_clock_reading *r)
{
    c->line = c->pace = c->now = now;
    c->line_boot = r->from;
    c->pace_boot = r->to;
}

/* Another server has committed at a later time: engine time cannot stay before it. */
static void reach(struct hf_engine_clock *c, const struct hf_engine_clock_reading *r)
{
    if (r->committed <= c->now)
        return;
    if (r->committed > confirmed(c, r->to) + HF_ENGINE_CLOCK_SLACK_MS)
        follow(c, r->committed, r);
    c->pace = c->now = r->committed;
    c->pace_boot = r->to;
}

/* The wall clock is not ahead of the time that the boot clock confirms. */
static void believe(struct hf_engine_clock *c, const struct hf_engine_clock_reading *r)
{
    c->doubted = false;
    if (r->wall >= c->now) { /* else it was set back, or another reading was later */
        c->now = r->wall;
        /* Used slack stays used: the line is lowered to the wall clock, never raised. */
        if (r->wall < confirmed(c, r->from)) {
            c->line = r->wall;
            c->line_boot = r->from;
        }
    }
    c->pace = c->now;
    c->pace_boot = r->to;
}

/* How far the wall clock has moved from the jump's place, as far as the boot clock can tell; 0 if
 * it stayed there. */
static hf_time strayed(const struct hf_engine_clock *c, const struct hf_engine_clock_reading *r)
{
    hf_time ahead = r->wall - (c->place + (r->to - c->place_from));
    hf_time behind = r->wall - (c->place + (r->from - c->place_to));
    if (ahead > HF_ENGINE_CLOCK_SLACK_MS)
        return ahead;
    return behind < -HF_ENGINE_CLOCK_SLACK_MS ? behind : 0;
}

static void watch(struct hf_engine_clock *c, const struct hf_engine_clock_reading *r)
{
    c->place = r->wall;
    c->place_from = r->from;
    c->place_to = r->to;
}

/* The wall clock is ahead of the time that the boot clock confirms. */
static enum hf_engine_clock_event doubt(struct hf_engine_clock *c,
                                        const struct hf_engine_clock_reading *r)
{
    hf_time by = c->doubted ? strayed(c, r) : 1; /* 1: this is the jump itself */
    bool believed = by == 0 && r->from - c->place_to >= HF_ENGINE_CLOCK_WATCH_MS;
    c->now = later(c->now, c->pace + later(r->from - c->pace_boot, 0));
    c->step = r->wall - c->now;
    c->doubted = !believed;
    c->jumps += by > 0;
    if (by != 0)
        watch(c, r);
    if (believed)
        follow(c, r->wall, r);
    return believed ? HF_ENGINE_CLOCK_BELIEVED
           : by > 0 ? HF_ENGINE_CLOCK_JUMPED
                    : HF_ENGINE_CLOCK_GOES;
}

enum hf_engine_clock_event hf_engine_clock_read(struct hf_engine_clock *c,
                                                const struct hf_engine_clock_reading *r)
{
    c->wall = r->wall;
    if (!c->started) {
        c->started = true;
        follow(c, later(later(c->now, r->committed), r->wall), r);
        return HF_ENGINE_CLOCK_GOES;
    }
    reach(c, r);
    bool was_doubted = c->doubted;
    if (r->wall > confirmed(c, r->to) + HF_ENGINE_CLOCK_SLACK_MS)
        return doubt(c, r);
    believe(c, r);
    return was_doubted ? HF_ENGINE_CLOCK_RETURNED : HF_ENGINE_CLOCK_GOES;
}

bool hf_engine_clock_tell(struct hf_engine_clock *c, enum hf_engine_clock_event event,
                          const char *whose, char line[HF_ENGINE_CLOCK_LINE])
{
    double seconds = (double)c->step / 1000;
    switch (event) {
    case HF_ENGINE_CLOCK_GOES: return false;
    case HF_ENGINE_CLOCK_JUMPED:
        c->told = !c->told_ever || c->place_to - c->told_boot >= HF_ENGINE_CLOCK_WATCH_MS;
        if (!c->told)
            return false;
        c->told_ever = true;
        c->told_boot = c->place_to;
        snprintf(line, HF_ENGINE_CLOCK_LINE,
                 "%s clock has jumped ahead by %.3f s, and the boot clock does not "
                 "confirm it. The store ignores the jump unless it lasts for %d s; "
                 "meanwhile engine time follows the boot clock",
                 whose, seconds, HF_ENGINE_CLOCK_WATCH_MS / 1000);
        return true;
    case HF_ENGINE_CLOCK_RETURNED:
        snprintf(line, HF_ENGINE_CLOCK_LINE,
                 "%s clock has returned: engine time follows it again, and the jump had "
                 "no effect",
                 whose);
        return c->told;
    case HF_ENGINE_CLOCK_BELIEVED: break;
    }
    snprintf(line, HF_ENGINE_CLOCK_LINE,
             "%s clock has stayed ahead for %d s: engine time steps forward by %.3f "
             "s",
             whose, HF_ENGINE_CLOCK_WATCH_MS / 1000, seconds);
    return true;
}

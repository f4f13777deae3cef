/* Engine time of a process: the database's clock, checked against the boot clock of this
 * machine. */
#include "store/postgres/session.h"

#include <stdio.h>

hf_time hf_pg_clock_boot(const struct hf_pg_shared *shared)
{
    const struct hf_io *io = shared->io ? shared->io : hf_io_os();
    return io->boot_ms(io->ctx);
}

/* The time of the newest entries: engine time is not before it. A time after the year 9999 was
 * written by hand: nothing could be added to it, and engine time would stay there for ever. */
static hf_time committed(const PGresult *result)
{
    const hf_time year_9999_ends = INT64_C(253402300799999);
    hf_time at = PQgetisnull(result, 0, 1) ? 0 : hf_pg_get_time(result, 0, 1);
    return at > year_9999_ends ? 0 : at;
}

struct hf_engine_clock_reading hf_pg_clock_reading(const struct hf_pg_shared *shared,
                                                   const PGresult *result, hf_time asked)
{
    const struct hf_io *io = shared->io;
    return (struct hf_engine_clock_reading){ .wall = io ? io->wall_ms(io->ctx)
                                                        : hf_pg_get_time(result, 0, 0),
                                             .from = asked,
                                             .to = hf_pg_clock_boot(shared),
                                             .committed = committed(result) };
}

hf_time hf_pg_clock_read(struct hf_pg_shared *shared, const struct hf_engine_clock_reading *reading)
{
    char line[HF_ENGINE_CLOCK_LINE];
    pthread_mutex_lock(&shared->clock_lock);
    enum hf_engine_clock_event event = hf_engine_clock_read(&shared->clock, reading);
    hf_time now = shared->clock.now;
    if (event != HF_ENGINE_CLOCK_GOES &&
        hf_engine_clock_tell(&shared->clock, event, "the database's", line) &&
        shared->said_count < HF_PG_SAID_MAX) {
        struct hf_pg_said *said = &shared->said[shared->said_count++];
        said->level = event != HF_ENGINE_CLOCK_RETURNED;
        memcpy(said->line, line, sizeof said->line);
    }
    atomic_store(&shared->told, now); /* never runs back; written only here */
    pthread_mutex_unlock(&shared->clock_lock);
    return now;
}

uint64_t hf_pg_clock_jumps(struct hf_pg_shared *shared)
{
    pthread_mutex_lock(&shared->clock_lock);
    uint64_t jumps = shared->clock.jumps;
    pthread_mutex_unlock(&shared->clock_lock);
    return jumps;
}

bool hf_pg_clock_said(struct hf_pg_shared *shared, struct hf_pg_said *out)
{
    pthread_mutex_lock(&shared->clock_lock);
    bool any = shared->said_count > 0;
    if (any) {
        *out = shared->said[0];
        shared->said_count--;
        memmove(shared->said, shared->said + 1, shared->said_count * sizeof *shared->said);
    }
    pthread_mutex_unlock(&shared->clock_lock);
    return any;
}

#include "crash/world.h"

#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { LIFE_US = 160000, FILES_MS = 1500 };

const char *const crash_sort_names[CRASH_SORTS] = { "kill",    "commit",   "stop-kill", "snapshot",
                                                    "segment", "recovery", "term-kill", "term" };

static void pause_us(uint64_t us)
{
    nanosleep(&(struct timespec){ .tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000 },
              NULL);
}

/* A random while, up to `most`; short ones are as likely as long ones: the logarithm is what is
 * drawn. */
static uint64_t some_us(struct crash_world *w, uint64_t most)
{
    uint64_t us = most >> test_below(&w->random, 8);
    return us ? test_below(&w->random, us) : 0;
}

/* Only ever to the one process that is meant: 0 and -1 would mean many. */
static bool signal_send(struct crash_world *w, int signal)
{
    return (w->server.pid > 1 && kill(w->server.pid, signal) == 0) ||
           crash_world_complain(w, "there is no server to be killed");
}

bool crash_listening(struct crash_world *w)
{
    if (crash_listens(&w->server))
        return true;
    int code = signal_send(w, SIGKILL) ? server_wait(&w->server) : -1;
    return crash_world_complain(w, "the server did not start, and ended with exit code %d", code);
}

bool crash_end(struct crash_world *w, int signal)
{
    int expected = signal == SIGTERM ? 0 : 128 + signal;
    if (!signal_send(w, signal))
        return false;
    int code = server_wait(&w->server);
    return code == expected ||
           crash_world_complain(w, "the server ended with %d instead of %d", code, expected);
}

/* ---- While files are made ---- */

/* Is it an event of a file whose name begins so? */
static bool event_of(const char *events, ssize_t size, const char *prefix)
{
    for (ssize_t at = 0; at < size;) {
        struct inotify_event event;
        memcpy(&event, events + at, sizeof event);
        if (event.len && strncmp(events + at + sizeof event, prefix, strlen(prefix)) == 0)
            return true;
        at += (ssize_t)(sizeof event + event.len);
    }
    return false;
}

/* Wait until something happens to a file whose name begins so. False if nothing does for a
 * while. */
static bool file_happens(struct crash_world *w, const char *prefix)
{
    char events[8192];
    for (int64_t until = server_clock_ms() + FILES_MS; server_clock_ms() < until;) {
        struct pollfd p = { .fd = w->watch, .events = POLLIN };
        ssize_t n = poll(&p, 1, 20) > 0 ? read(w->watch, events, sizeof events) : 0;
        if (n > 0 && event_of(events, n, prefix))
            return true;
        if (crash_crowd_accused(&w->crowd))
            return false;
    }
    return false;
}

/* Wait until something is written to the journal. */
static bool write_happens(struct crash_world *w)
{
    char events[8192];
    int watch = inotify_init1(IN_CLOEXEC);
    struct pollfd p = { .fd = watch, .events = POLLIN };
    bool happened = watch >= 0 && inotify_add_watch(watch, w->server.data, IN_MODIFY) >= 0;
    for (int64_t until = server_clock_ms() + FILES_MS; happened;) {
        ssize_t n = poll(&p, 1, FILES_MS) > 0 ? read(watch, events, sizeof events) : 0;
        if (n > 0 && event_of(events, n, "journal-"))
            break;
        happened = n > 0 && server_clock_ms() < until;
    }
    if (watch >= 0)
        close(watch);
    return happened;
}

static void files_forget(struct crash_world *w)
{
    char events[8192];
    struct pollfd p = { .fd = w->watch, .events = POLLIN };
    while (poll(&p, 1, 0) > 0 && read(w->watch, events, sizeof events) > 0)
        ;
}

static bool kill_at_file(struct crash_world *w, const char *prefix)
{
    if (!crash_listening(w))
        return false;
    pause_us(some_us(w, LIFE_US / 4));
    files_forget(w);
    w->reached = file_happens(w, prefix);
    pause_us(some_us(w, 4000));
    return crash_end(w, SIGKILL);
}

/* ---- All sorts ---- */

bool crash_kill(struct crash_world *w, enum crash_sort sort)
{
    w->reached = true;
    if (sort == CRASH_SNAPSHOT || sort == CRASH_SEGMENT)
        return kill_at_file(w, sort == CRASH_SNAPSHOT ? "snapshot-" : "journal-");
    if (sort == CRASH_RECOVERY) {
        pause_us(some_us(w, 50000));
        return crash_end(w, SIGKILL);
    }
    if (!crash_listening(w))
        return false;
    pause_us(some_us(w, LIFE_US) + test_below(&w->random, LIFE_US / 2));
    if (sort == CRASH_COMMIT) {
        w->reached = write_happens(w);
        pause_us(some_us(w, 400));
    }
    if (sort == CRASH_STOP_KILL) {
        if (!signal_send(w, SIGSTOP))
            return false;
        pause_us(some_us(w, 20000));
    }
    if (sort == CRASH_TERM_KILL) {
        if (!signal_send(w, SIGTERM))
            return false;
        pause_us(some_us(w, 8000));
        int code =
            signal_send(w, SIGKILL) ? server_wait(&w->server) : -1; /* it may have been quicker */
        return code == 0 || code == 128 + SIGKILL ||
               crash_world_complain(w, "the server ended with %d", code);
    }
    return crash_end(w, sort == CRASH_TERM ? SIGTERM : SIGKILL);
}

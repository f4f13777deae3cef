/* The buffer between the threads that log and the one thread that writes. */
#include "base/clock.h"
#include "server/log_text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(HF_LOG_LINE_MAX <= PIPE_BUF, "a pipe takes a line whole or not at all");

enum {
    ROOM_INFO = HF_LOG_BUFFER - HF_LOG_BUFFER / 8,
    POLL_MS = 50, /* how often a blocked writer checks give_up */
    /* hf_log_drain and hf_log_close wait this long until the remaining lines are written, */
    DRAIN_MS = 800,
    GIVE_UP_MS = 200, /* and hf_log_close then this long until the writer sees give_up */
    /* the writer waits this long for more lines, so that a flood needs few writes and wake-ups */
    GATHER_MS = 10,
    /* one write to a file; to anything else HF_LOG_LINE_MAX, so that other writers' lines fit
     * between */
    PIECE_MAX = 65536
};

struct hf_log {
    struct hf_log_options options;
    bool is_socket;
    size_t piece_max;
    pthread_t writer;
    pthread_mutex_t lock;
    pthread_cond_t filled, ended;
    /* under the lock */
    uint64_t put, written; /* bytes of the ring: total put in, total taken out */
    uint64_t said;         /* the number of dropped lines that was logged last */
    hf_time newest;        /* the time of the newest line, dropped or not */
    bool closing, has_ended;
    /* only used by the writer */
    bool failing; /* the newest write failed */
    bool torn;    /* the last write ended within a line */
    char piece[PIECE_MAX];
    /* used by all threads */
    atomic_bool give_up;
    _Atomic uint64_t dropped;
    char ring[HF_LOG_BUFFER];
};

/* ---- Adding lines; the lock is held ---- */

static void ring_put(struct hf_log *log, const char *data, size_t size)
{
    size_t at = log->put % HF_LOG_BUFFER;
    size_t first = size < HF_LOG_BUFFER - at ? size : HF_LOG_BUFFER - at;
    memcpy(log->ring + at, data, first);
    memcpy(log->ring, data + first, size - first);
    log->put += size;
}

/* End the line, with the number of dropped lines if it has changed, and put it in. There is
 * room. */
static void line_put(struct hf_log *log, struct hf_log_text *line)
{
    bool sleeps = log->put == log->written;
    uint64_t dropped = log->dropped;
    hf_log_text_end(line, dropped != log->said ? dropped : 0);
    log->said = dropped;
    ring_put(log, line->text, line->size);
    if (sleeps)
        pthread_cond_signal(&log->filled);
}

void hf_log_line(struct hf_log *log, enum hf_log_level level, hf_time when, const char *event,
                 const struct hf_log_field *fields, size_t count)
{
    struct hf_log_text line;
    line.json = log->options.json;
    line.hash_keys = log->options.hash_keys;
    hf_log_text_begin(&line, level, when, event);
    for (size_t i = 0; i < count; i++)
        hf_log_text_field(&line, &fields[i]);
    size_t room = level == HF_LOG_INFO ? ROOM_INFO : HF_LOG_BUFFER;
    pthread_mutex_lock(&log->lock);
    log->newest = when;
    if (log->put - log->written + line.size + HF_LOG_TAIL <= room)
        line_put(log, &line);
    else
        log->dropped++;
    pthread_mutex_unlock(&log->lock);
}

uint64_t hf_log_dropped(const struct hf_log *log)
{
    return log->dropped;
}

/* ---- Writing ---- */

/* Write one piece; waits for the reader until give_up is set. *left: bytes not written. A write
 * after poll does not block, unless other processes write to the same pipe. */
static void piece_write(struct hf_log *log, const char *data, size_t size, size_t *left)
{
    struct pollfd ready = { .fd = log->options.fd, .events = POLLOUT };
    *left = size;
    while (*left > 0 && !log->give_up) {
        int n = poll(&ready, 1, POLL_MS);
        if (n == 0 || (n < 0 && errno == EINTR))
            continue;
        const char *rest = data + (size - *left);
        ssize_t done = log->is_socket ? send(ready.fd, rest, *left, MSG_DONTWAIT | MSG_NOSIGNAL)
                                      : write(ready.fd, rest, *left);
        if (done > 0)
            *left -= (size_t)done;
        else if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            /* poll would return at once */
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        else if (done == 0 || errno != EINTR)
            return;
    }
}

static uint64_t lines_in(const char *data, size_t size)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

/* Copy the oldest lines of the ring to `piece`, as many as one write may have: at least one. The
 * lock is held. */
static size_t piece_take(struct hf_log *log)
{
    uint64_t waiting = log->put - log->written;
    size_t size = waiting < log->piece_max ? (size_t)waiting : log->piece_max;
    char *piece = log->piece;
    size_t at = log->written % HF_LOG_BUFFER;
    size_t first = size < HF_LOG_BUFFER - at ? size : HF_LOG_BUFFER - at;
    memcpy(piece, log->ring + at, first);
    memcpy(piece + first, log->ring, size - first);
    while (piece[size - 1] != '\n')
        size--;
    return size;
}

/* Write one piece, and count its lines as dropped if that fails. The lock is held, and released
 * during the write. */
static void piece_pass(struct hf_log *log)
{
    const char *piece = log->piece;
    size_t left = 0;
    size_t size = piece_take(log);
    pthread_mutex_unlock(&log->lock);
    if (log->torn)
        piece_write(log, "\n", 1, &left);
    log->torn = left > 0;
    if (!log->torn) {
        piece_write(log, piece, size, &left);
        log->torn = left > 0 && left < size && piece[size - left - 1] != '\n';
    } else {
        left = size;
    }
    log->failing = left > 0;
    pthread_mutex_lock(&log->lock);
    log->written += size;
    log->dropped += lines_in(piece + (size - left), left);
}

/* Lines were dropped, and no later line has reported it. */
static void dropped_say(struct hf_log *log)
{
    struct hf_log_text line;
    line.json = log->options.json;
    hf_log_text_begin(&line, HF_LOG_WARNING, log->newest, "lines_dropped");
    line_put(log, &line);
}

/* Wait for a line, and then a little longer for more lines. The lock is held, and released
 * meanwhile. */
static void writer_sleep(struct hf_log *log)
{
    pthread_cond_wait(&log->filled, &log->lock);
    if (log->closing)
        return;
    pthread_mutex_unlock(&log->lock);
    nanosleep(&(struct timespec){ .tv_nsec = GATHER_MS * 1000000L }, NULL);
    pthread_mutex_lock(&log->lock);
}

static void *writer_run(void *arg)
{
    struct hf_log *log = arg;
    pthread_mutex_lock(&log->lock);
    while (!log->give_up) {
        if (log->put != log->written)
            piece_pass(log);
        else if (log->said != log->dropped && !log->failing)
            dropped_say(log);
        else if (log->closing)
            break;
        else
            writer_sleep(log);
    }
    log->has_ended = true;
    pthread_cond_signal(&log->ended);
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

static bool writer_start(struct hf_log *log)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&log->writer, NULL, writer_run, log) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void log_free(struct hf_log *log)
{
    pthread_cond_destroy(&log->ended);
    pthread_cond_destroy(&log->filled);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

enum hf_status hf_log_open(const struct hf_log_options *options, struct hf_log **out)
{
    struct hf_log *log = calloc(1, sizeof *log);
    struct stat st;
    *out = NULL;
    if (!log)
        return HF_NO_MEMORY;
    log->options = *options;
    bool known = fstat(options->fd, &st) == 0;
    log->is_socket = known && S_ISSOCK(st.st_mode);
    log->piece_max = known && S_ISREG(st.st_mode) ? PIECE_MAX : HF_LOG_LINE_MAX;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->filled, NULL);
    hf_clock_cond_init(&log->ended);
    if (!writer_start(log)) {
        log_free(log);
        return HF_NO_MEMORY;
    }
    *out = log;
    return HF_OK;
}

void hf_log_drain(struct hf_log *log)
{
    pthread_mutex_lock(&log->lock);
    uint64_t put = log->put;
    for (int ms = 0; log->written < put && ms < DRAIN_MS; ms += GATHER_MS) {
        pthread_mutex_unlock(&log->lock);
        nanosleep(&(struct timespec){ .tv_nsec = GATHER_MS * 1000000L }, NULL);
        pthread_mutex_lock(&log->lock);
    }
    pthread_mutex_unlock(&log->lock);
}

/* Wait for the writer to end; the lock is held. */
static void writer_wait(struct hf_log *log, int64_t ms)
{
    int64_t until_ns = hf_clock_monotonic_ns() + ms * 1000000;
    while (!log->has_ended && hf_clock_wait(&log->ended, &log->lock, until_ns))
        continue;
}

void hf_log_close(struct hf_log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    log->closing = true;
    pthread_cond_signal(&log->filled);
    writer_wait(log, DRAIN_MS);
    log->give_up = true;
    writer_wait(log, GIVE_UP_MS);
    bool ended = log->has_ended;
    pthread_mutex_unlock(&log->lock);
    if (!ended) {
        pthread_detach(log->writer); /* it is blocked in a write, and may still return */
        return;
    }
    pthread_join(log->writer, NULL);
    log_free(log);
}

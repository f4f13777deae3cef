/* log.h: lines for operators, on stderr, as text or as JSON.
 *
 * A caller puts a line into a bounded buffer and goes on; one background thread writes. If the
 * reader of stderr is too slow, lines are dropped and counted, and the next line says how many:
 * logging never slows a request down. The last eighth of the buffer is for warnings and errors, so
 * that a flood of duplicates does not hide them.
 *
 *   text   2026-11-15T21:39:57.123Z info duplicate key="order-8123" action=place_hold
 *          first_seen=2026-... status=201
 *   json   {"time":"2026-...","level":"info","event":"duplicate","key":"order-8123",...}
 *
 * A line after dropped lines ends with dropped=N ("dropped":N). N counts all dropped lines since
 * the start, so it is still right if a line with it is lost. If no other line comes, the writer
 * adds the line `lines_dropped`. */
#ifndef HF_SERVER_LOG_H
#define HF_SERVER_LOG_H

#include "holdfast.h"

#define HF_LOG_TEXT_MAX 256   /* bytes of a text or name; "..." replaces the rest */
#define HF_LOG_LINE_MAX 4096  /* bytes of a line; without fields that do not fit, then with cut=1 */
#define HF_LOG_BUFFER 1048576 /* bytes of lines that wait for the writer */

enum hf_log_level { HF_LOG_INFO, HF_LOG_WARNING, HF_LOG_ERROR };

struct hf_log;

struct hf_log_options {
    bool json;
    bool hash_keys; /* show names from clients as the first 16 hex digits of their SHA-256 */
    int fd;         /* borrowed; 2 is stderr. It may block or not */
};

/* options: borrowed. log: out, owned, free with hf_log_close. HF_OK or HF_NO_MEMORY. Starts a
 * thread, which blocks all signals. */
HF_MUST_USE enum hf_status hf_log_open(const struct hf_log_options *options, struct hf_log **log);
/* Wait until the lines so far are written, for at most a second. Other threads may go on logging:
 * call this before the process ends while they run. */
void hf_log_drain(struct hf_log *log);
/* Writes the remaining lines, for at most a second, then ends the thread. Lines not written by then
 * are lost. If the thread is still blocked in a write (a stopped terminal), the thread and its
 * memory stay until the process ends. No other call may run at the same time or later. NULL is
 * allowed. */
void hf_log_close(struct hf_log *log);

/* A NAME is text from a client, hashed if hash_keys is set. */
enum hf_log_type { HF_LOG_TEXT, HF_LOG_NAME, HF_LOG_NUMBER, HF_LOG_TIME };

struct hf_log_field {
    const char *name; /* needs no escaping */
    enum hf_log_type type;
    struct hf_bytes text;
    int64_t number; /* NUMBER, or TIME in milliseconds since 1970 */
};

/* One line. Everything is borrowed. Text is escaped in both forms: whatever a client sent, it stays
 * one line and cannot control a terminal. `when` is the time to show; the event is a word that
 * needs no escaping. Never blocks on the reader of the log. Thread-safe: the lines of one thread
 * stay in order. Cheap: it is called for every duplicate. */
void hf_log_line(struct hf_log *log, enum hf_log_level level, hf_time when, const char *event,
                 const struct hf_log_field *fields, size_t count);

/* Lines dropped since the start, because the buffer was full or a write failed. */
uint64_t hf_log_dropped(const struct hf_log *log);

#endif

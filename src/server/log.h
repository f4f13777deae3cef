/* log.h: lines for operators, on stderr, as text or as JSON.
 *
 * Whoever has something to say puts a line into a bounded buffer and goes on; one thread writes.
 * When the reader of stderr is slower than we are, lines are dropped and counted, and the next line
 * that goes out says how many: a log never slows a payment down. The last eighth of the buffer is
 * for warnings and errors, so that a flood of duplicates does not hide them.
 *
 *   text   2026-11-15T21:39:57.123Z info duplicate key="order-8123" action=place_hold
 *          first_seen=2026-... status=201
 *   json   {"time":"2026-...","level":"info","event":"duplicate","key":"order-8123",...}
 *
 * A line that comes after dropped ones ends with dropped=N ("dropped":N), N being how many were
 * dropped since the start, so that nothing is lost if this line is; if no line comes, the writer
 * adds one, `lines_dropped`, by itself. */
#ifndef HF_SERVER_LOG_H
#define HF_SERVER_LOG_H

#include "holdfast.h"

#define HF_LOG_TEXT_MAX \
    256 /* bytes of one text or name; the rest is left out and "..." stands for it */
#define HF_LOG_LINE_MAX \
    4096 /* bytes of a line; fields that do not fit are left out: cut=1 says so */
#define HF_LOG_BUFFER 1048576 /* bytes of lines that wait for the writer */

enum hf_log_level { HF_LOG_INFO, HF_LOG_WARNING, HF_LOG_ERROR };

struct hf_log;

struct hf_log_options {
    bool json;
    bool hash_keys; /* names from outside are shown as the first 16 hex digits of their SHA-256 */
    int fd;         /* borrowed; 2 is stderr. It may block or not */
};

/* options: borrowed. log: out, owned, free with hf_log_close. HF_OK or HF_NO_MEMORY. Starts a
 * thread, which takes no signals. */
HF_MUST_USE enum hf_status hf_log_open(const struct hf_log_options *options, struct hf_log **log);
/* Wait until what was said before is written, for at most a second. Others may go on logging: this
 * is for whoever is about to end the process under them. */
void hf_log_drain(struct hf_log *log);
/* Writes what is left, for at most a second, then ends the thread. What could not be written by
 * then is lost. Should the system hold the thread in a write even so (a stopped terminal), it is
 * left behind with its memory until the process ends. No other call may be running or come later.
 * NULL is allowed. */
void hf_log_close(struct hf_log *log);

/* A name is text from outside, hashed if so configured. */
enum hf_log_type { HF_LOG_TEXT, HF_LOG_NAME, HF_LOG_NUMBER, HF_LOG_TIME };

struct hf_log_field {
    const char *name; /* needs no escaping */
    enum hf_log_type type;
    struct hf_bytes text;
    int64_t number; /* NUMBER, or TIME in milliseconds since 1970 */
};

/* One line. Everything is borrowed. Text is escaped in both forms: a line stays one line, and no
 * more than that, whatever a client sent, and whatever terminal shows it. `when` is the time to
 * show; the event is a word that needs no escaping. Never blocks on the reader of the log. Safe
 * from many threads: the lines of one thread stay in order. Cheap: it is called for every
 * duplicate. */
void hf_log_line(struct hf_log *log, enum hf_log_level level, hf_time when, const char *event,
                 const struct hf_log_field *fields, size_t count);

/* Lines dropped since the start, for want of room or because they could not be written. */
uint64_t hf_log_dropped(const struct hf_log *log);

#endif

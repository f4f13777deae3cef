/* watch.h: a server looked at from outside while somebody misuses it: its memory, its files, its
 * log, and whether what it says is a refusal as promised. */
#ifndef HF_TESTS_SERVER_KIT_WATCH_H
#define HF_TESTS_SERVER_KIT_WATCH_H

#include "server/kit/server.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCH_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCH_SANITIZED 1
#endif
#endif
#ifndef WATCH_SANITIZED
#define WATCH_SANITIZED 0
#endif

/* KiB of memory that the server has now (VmRSS); and at most since its start, or since
 * watch_peak_forget. */
long watch_memory_kib(const struct server *s);
long watch_peak_kib(const struct server *s);
void watch_peak_forget(const struct server *s);
/* A bound in KiB as it is in a plain build: a sanitizer keeps freed memory and notes about the
 * rest, so that there it is much wider. */
long watch_bound_kib(long plain_kib);

/* Files and sockets that the server has open. */
int watch_files(const struct server *s);
/* Wait until it has one open whose path has `part` in it. */
void watch_await_file(const struct server *s, const char *part);

/* The figure of /metrics, -1 if it is not there. fields: as for server_ask. */
double watch_figure(const struct server *s, const char *fields, const char *name);
/* Wait until the figure, of what is there now, has this value. */
void watch_await_figure(const struct server *s, const char *fields, const char *name, double value);

/* Wait until the log has the text so often, for at most a minute. False if it does not come. */
bool watch_log(struct server *s, const char *text, unsigned times);
/* SIGHUP, and wait until the log says what came of it: one more line with `event`. */
void watch_hangup(struct server *s, const char *event);

/* Assert that it is a refusal as promised: problem+json, with this status and code and with words;
 * `sentence` is a part of its detail, or NULL. */
void watch_refused(const struct reply *r, int status, const char *code, const char *sentence);
/* Is it a whole problem+json of its status? NULL, or what is wrong. Static. */
const char *watch_problem(const struct reply *r);

/* Assert that the server closes the connection by itself, within a minute and without another
 * byte. */
void watch_ends(int fd);

/* Let this process have so many files, as far as it may. How many it may have now. */
unsigned watch_allow_files(unsigned count);

#endif

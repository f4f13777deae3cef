/* touch.h: check that mapped bytes can be read, before reading them.
 *
 * The system reports an unreadable sector of a mapped file with the signal SIGBUS, which ends the
 * process. hf_touch reads one byte of each page under its own handler and returns an error instead.
 * The handler passes every SIGBUS that hf_touch did not cause to the previous handler. */
#ifndef HF_STORE_TOUCH_H
#define HF_STORE_TOUCH_H

#include <stddef.h>

/* Install the handler if it is missing or was replaced. 0 or a negative errno. Thread-safe. */
int hf_touch_ready(void);

/* Unblock SIGBUS in this thread: a blocked one ends the process. For the library's own threads.
 * holdfast.h documents what happens in an application's thread that blocks it. */
void hf_touch_unblock(void);

/* 0: `size` bytes at `data` can be read. -EIO: they cannot. Call hf_touch_ready first. Any
 * thread. */
int hf_touch(const unsigned char *data, size_t size);

#endif

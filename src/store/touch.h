/* touch.h: ask whether mapped bytes can be read, before they are read.
 *
 * The system tells of an unreadable sector of a mapped file by the signal SIGBUS, which ends the
 * process. hf_touch reads one byte of each page under a handler of its own, so that the answer is
 * an error instead. The handler takes a SIGBUS that hf_touch caused, and hands every other one to
 * the handler that was there before. */
#ifndef HF_STORE_TOUCH_H
#define HF_STORE_TOUCH_H

#include <stddef.h>

/* Install the handler, if it is not there or was replaced. 0 or a negative errno. Thread-safe. */
int hf_touch_ready(void);

/* Let SIGBUS through in this thread, if it is blocked: a blocked one ends the process. For the
 * library's own threads; a thread of the application that blocks it is documented in holdfast.h. */
void hf_touch_unblock(void);

/* 0: `size` bytes at `data` can be read. -EIO: they cannot. Needs hf_touch_ready before. Any
 * thread. */
int hf_touch(const unsigned char *data, size_t size);

#endif

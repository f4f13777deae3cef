/* sandbox_calls.h: the system calls of the sandbox. */
#ifndef HF_SERVER_SANDBOX_CALLS_H
#define HF_SERVER_SANDBOX_CALLS_H

#include <stdbool.h>

/* Apply the filter to this thread and all threads that it starts later. connects: allow connections
 * and DNS. 0, or a negative errno. */
int hf_sandbox_calls(bool connects);

#endif

/* sandbox_calls.h: the half of the sandbox that is about system calls. */
#ifndef HF_SERVER_SANDBOX_CALLS_H
#define HF_SERVER_SANDBOX_CALLS_H

#include <stdbool.h>

/* Put the filter in force for this thread and all that it makes later. connects: it may connect,
 * and ask the resolver of names. 0, or a negative errno. */
int hf_sandbox_calls(bool connects);

#endif

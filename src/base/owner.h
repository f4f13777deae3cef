/* owner.h: from a member that a list or a callback has to the struct that contains it. */
#ifndef HF_BASE_OWNER_H
#define HF_BASE_OWNER_H

#include <stddef.h>

/* The struct `type` whose `member` is at `pointer`, which is not NULL. */
#define HF_OWNER(type, member, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif

/* relay_process.h: what the process of a relay does, and how it is told. For relay.c alone. */
#ifndef HF_TESTS_POSTGRES_KIT_RELAY_PROCESS_H
#define HF_TESTS_POSTGRES_KIT_RELAY_PROCESS_H

#include "postgres/kit/relay.h"

enum relay_order_kind {
    RELAY_ORDER_TARGET,
    RELAY_ORDER_NAME,
    RELAY_ORDER_AT_COMMIT,
    RELAY_ORDER_LATE,
    RELAY_ORDER_HOLE,
    RELAY_ORDER_DELAY,
    RELAY_ORDER_REFUSE,
    RELAY_ORDER_CUT,
    RELAY_ORDER_PASS,
    RELAY_ORDER_COUNT
};

/* A packet to the relay; it answers with a number in a packet of its own. */
struct relay_order {
    enum relay_order_kind kind;
    int64_t value;
    uint64_t times;
    char name[RELAY_NAME_MAX];
};

/* Run until the parent `parent` is gone or the other end of `control` is closed. First the port is
 * told on `control`. */
_Noreturn void relay_process_run(int control, int target, pid_t parent);

#endif

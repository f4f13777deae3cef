#include "server/kit/calls.h"

int calls_setup(void **state)
{
    struct server_case wanted = { .make = talk_server, .threads = 1 };
    (void)state;
    return case_setup((void *[]){ &wanted });
}

int calls_teardown(void **state)
{
    return case_teardown(state);
}

void clock_at(int64_t ms)
{
    atomic_store(&s.io->wall, TALK_START + ms);
}

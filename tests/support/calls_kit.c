#include "support/calls_kit.h"

struct server s;
struct talk t;

int calls_setup(void **state)
{
    (void)state;
    talk_server(&s);
    server_start(&s);
    talk_open(&t, &s);
    return 0;
}

int calls_teardown(void **state)
{
    (void)state;
    talk_close(&t);
    server_end(&s);
    return 0;
}

void clock_at(int64_t ms)
{
    atomic_store(&s.io->wall, TALK_START + ms);
}

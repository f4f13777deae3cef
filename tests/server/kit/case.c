#include "server/kit/case.h"

struct server s;
struct talk t;

int case_setup(void **state)
{
    const struct server_case *wanted = *state;
    wanted->make(&s);
    if (wanted->threads > 0) {
        s.options.threads = wanted->threads;
        server_start(&s);
    }
    talk_open(&t, &s);
    return 0;
}

int case_teardown(void **state)
{
    (void)state;
    talk_close(&t);
    server_end(&s);
    return 0;
}

void case_restart(void)
{
    if (s.pid > 0)
        assert_int_equal(server_stop(&s), 0);
    talk_close(&t);
    server_start(&s);
    talk_open(&t, &s);
}

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

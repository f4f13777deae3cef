#include "server/kit/case.h"

#include "server/kit/calls.h"

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

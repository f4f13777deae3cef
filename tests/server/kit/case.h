/* case.h: the server of a test program, new for each test and ended behind it.
 *
 *     SERVER_TEST(what_had_come_in_is_answered, server_init, 2)
 *
 * is a test with a server of two threads that server_init makes. Instead of server_init there may
 * be talk_server, or a function that calls one of them and changes options. Whoever wants a client
 * beside it includes calls.h. */
#ifndef HF_TESTS_SERVER_KIT_CASE_H
#define HF_TESTS_SERVER_KIT_CASE_H

#include "server/kit/server.h"
#include "server/kit/talk.h"
#include "support/test.h"

extern struct server s; /* of the test that runs */

struct server_case {
    void (*make)(struct server *server);
    unsigned threads; /* 0: do not start it */
};

/* For cmocka. state: of case_setup, points to a struct server_case, which is borrowed. */
int case_setup(void **state);
int case_teardown(void **state);
#define SERVER_TEST(name, how, count)         \
    cmocka_unit_test_prestate_setup_teardown( \
        name, case_setup, case_teardown,      \
        (&(struct server_case){ .make = (how), .threads = (count) }))

/* The same with a server that the test itself starts, after it has changed options; it has one
 * thread. */
#define SERVER_TEST_STOPPED(name, how) SERVER_TEST(name, how, 0)

/* Stop it, which must go well, unless it has ended by itself; and start it with the options that it
 * has now. */
void case_restart(void);

/* What the tests of calls share: one server and one client of it, new for each test. */

extern struct talk t; /* a client of the server of the test that runs; case_restart makes it anew */

/* For cmocka: with a server as talk_server makes it. A test that needs something else calls them in
 * its own. */
int calls_setup(void **state);
int calls_teardown(void **state);
#define CALLS_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

/* It is so many milliseconds after TALK_START. */
void clock_at(int64_t ms);

#endif

/* calls.h: what the tests of calls share: one server and one client of it, new for each test. */
#ifndef HF_TESTS_SERVER_KIT_CALLS_H
#define HF_TESTS_SERVER_KIT_CALLS_H

#include "server/kit/case.h"
#include "server/kit/talk.h"

extern struct talk t; /* a client of the server of the test that runs; case_restart makes it anew */

/* For cmocka: with a server as talk_server makes it. A test that needs something else calls them in
 * its own. */
int calls_setup(void **state);
int calls_teardown(void **state);
#define CALLS_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

/* It is so many milliseconds after TALK_START. */
void clock_at(int64_t ms);

#endif

/* sandbox.h: a place with something to hide, and children that enter the sandbox there.
 *
 *   dir/data       the data directory, with data/old in it
 *   dir/etc/auth   may be read again
 *   dir/live/link  leads to dir/archive/1.pem, may be read again
 *   dir/secret     may not be touched, like everything else */
#ifndef HF_TESTS_UNIT_KIT_SANDBOX_H
#define HF_TESTS_UNIT_KIT_SANDBOX_H

#include "server/sandbox.h"
#include "support/test.h"

#include <errno.h>
#include <unistd.h>

/* In a child: say what did not hold, and end. */
#define WANT(cond)                                                                \
    do {                                                                          \
        if (!(cond)) {                                                            \
            fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #cond, \
                    strerror(errno));                                             \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)
#define FAILS(call, error) WANT((errno = 0, (call)) == -1 && errno == (error))

struct cell {
    char *dir;
    char data[256], auth[256], link[256], secret[256], old[300];
};
extern struct cell cell;

/* Make the place, and remove it: setup and teardown of the tests. */
int cell_setup(void **state);
int cell_teardown(void **state);

/* A path in a folder; good until seven more were asked for. */
const char *cell_in(const char *folder, const char *name);
void cell_write(const char *path, const char *text);

/* Skip the test if the sandbox cannot be entered here: a sanitizer's run time needs calls that a
 * server does not, and a kernel may have no Landlock (that this is refused is tried in any
 * case). */
void cell_skip_unless_possible(void);
/* Is this a build with counters? They are files below HF_BUILD, which the sandbox does not let be
 * written; a child that does not enter is counted, one that enters is not unless that folder is
 * what it may write. */
#ifdef HF_COVERAGE
enum { CELL_COUNTED = true };
#else
enum { CELL_COUNTED = false };
#endif

/* How a child ends that does this, as waitpid tells it. */
int cell_child_status(void (*work)(void));
/* A child does this, and ends well. Skips the test if the sandbox cannot be entered. */
void cell_child_does(void (*work)(void));

/* ---- In a child ---- */

/* Enter, with what the list above says. */
void cell_enter(void);
/* The same with another folder than dir/data. */
void cell_enter_with(const char *writable);
/* Do what may be done, and try what may not. */
void cell_use_inside(void);
void cell_use_outside(void);
void cell_file_is(const char *path, const char *text);

#endif

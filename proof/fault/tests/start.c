/* The server's start, and its second look at the auth file, with every failure point in them: it
 * comes up and works, or says why not, leaves nothing behind, and comes up the next time. */
#include "fault/kit.h"
#include "server/kit/talk.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* SHA-256 of "secret". */
#define AUTH_LINE " admin 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n"
#define CREDENTIAL "Authorization: Bearer secret\r\n"

static struct server server;
static struct hf_io io;
static char auth[600], trying[128];

static void in_the_child(void)
{
    fault_here(true);
    fault_watch_exit();
}

static void server_make(void)
{
    talk_server(&server);
    io = *hf_io_os();
    io.ctx = server.io; /* for the clocks; the rest of them has no use for it */
    io.wall_ms = server.io->io.wall_ms;
    io.boot_ms = server.io->io.boot_ms;
    io.monotonic_ns = server.io->io.monotonic_ns;
    server.options.store.io = &io;
    server.options.store.no_background = false;
    server.options.store.segment_max_bytes = 256 << 10;
    server.options.threads = 2;
    snprintf(auth, sizeof auth, "%s/auth", server.dir);
    int fd = open(auth, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && dprintf(fd, "tenant" AUTH_LINE) > 0);
    close(fd);
    server.options.auth_file = auth;
    server.before = in_the_child;
}

/* Does it say that it listens? */
static bool comes_up(void)
{
    size_t n = 0;
    char c;
    while (n + 1 < sizeof server.first_line && read(server.out, &c, 1) == 1 && c != '\n')
        server.first_line[n++] = c;
    server.first_line[n] = 0;
    const char *colon = strrchr(server.first_line, ':');
    server.port = colon ? atoi(colon + 1) : 0;
    return server.port > 0;
}

static void works(void)
{
    struct reply got;
    server_ask(&server, "GET /v1/resources", CREDENTIAL, NULL, &got);
    if (got.status != 200)
        fail_msg("%s: is up and answers %d %s", trying, got.status, got.body);
    reply_free(&got);
}

/* file: a file that an option names could not be read, which is the option's fault as far as
 * anybody can tell. */
static void left_nothing(int code, bool up, bool file)
{
    char *log = server_log(&server);
    size_t size = strlen(log);
    const char *end = log + (size > 1000 ? size - 1000 : 0);
    if (code != (up ? 0 : 3) && !(code == 2 && file && !up))
        fail_msg("%s: exit code %d: %s", trying, code, end);
    if (!up && !strstr(log, "holdfast: "))
        fail_msg("%s: it does not say why: %s", trying, end);
    if (fault_leaked_there() != 0)
        fail_msg("%s: %d blocks were not freed: %s", trying, fault_leaked_there(), end);
    free(log);
    char path[600];
    snprintf(path, sizeof path, "%s/log", server.dir);
    unlink(path);
}

static bool start_fails(enum fault_call call, enum fault_mode mode, unsigned n)
{
    snprintf(trying, sizeof trying, "start (%s, number %u)", fault_name(call, mode), n);
    fault_arm(call, n, mode);
    server_begin(&server);
    bool up = comes_up();
    bool failed = fault_lift() > 0;
    if (up)
        works();
    else if (!failed || mode >= FAULT_INTERRUPTED)
        fail_msg("%s: does not come up although nothing failed: %s", trying, server_log(&server));
    left_nothing(up ? server_stop(&server) : server_wait(&server), up,
                 call == FAULT_OPEN || call == FAULT_STAT || call == FAULT_READ);
    if (failed)
        fault_point();
    return failed;
}

static void starts(void **state)
{
    (void)state;
    fault_tried();
    server_make();
    assert_false(start_fails(FAULT_NONE, FAULT_ONCE, 1));
    for (int call = FAULT_ALLOC; call <= FAULT_WATCH; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (call != FAULT_ACCEPT && call != FAULT_RECV && call != FAULT_SEND &&
                call != FAULT_WAIT &&
                fault_has_mode((enum fault_call)call, (enum fault_mode)mode) && fault_wanted(2))
                for (unsigned n = 1; start_fails((enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
    assert_false(start_fails(FAULT_NONE, FAULT_ONCE, 1));
    server_end(&server);
}

/* ---- The second look ---- */

static unsigned looks(void)
{
    unsigned count = 0;
    char *log = server_log(&server);
    for (const char *at = log; (at = strstr(at, " reload")) != NULL; at++)
        count++;
    free(log);
    return count;
}

static bool look_fails(enum fault_call call, enum fault_mode mode, unsigned n)
{
    snprintf(trying, sizeof trying, "reload (%s, number %u)", fault_name(call, mode), n);
    unsigned before = looks();
    fault_arm(call, n, mode);
    assert_int_equal(kill(server.pid, SIGHUP), 0);
    for (int ms = 0; looks() == before; ms++) {
        if (ms > SERVER_PATIENCE_MS)
            fail_msg("%s: nothing was said", trying);
        server_pause_ms(1);
    }
    bool failed = fault_lift() > 0;
    works(); /* with the file as it was read before, or again */
    if (failed)
        fault_point();
    return failed;
}

static void second_looks(void **state)
{
    static const enum fault_call kinds[] = { FAULT_ALLOC, FAULT_OPEN, FAULT_STAT, FAULT_READ };
    (void)state;
    fault_tried();
    server_make();
    server_start(&server);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (fault_has_mode(kinds[i], (enum fault_mode)mode))
                for (unsigned n = 1; look_fails(kinds[i], (enum fault_mode)mode, n);)
                    n = fault_next(n);
    left_nothing(server_stop(&server), true, false);
    server_end(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(starts), cmocka_unit_test(second_looks) };
    fault_here(false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_report("fault_start");
    return failed;
}

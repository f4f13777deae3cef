/* The sandbox of a server whose store is in a database: it reaches the database, again and again,
 * and nobody else. */
#define _GNU_SOURCE /* syscall */
#include "unit/kit/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static unsigned ports[2];

/* Listen on a free port of this machine. */
static int listener(unsigned *port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static int connect_to(unsigned port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int result = connect(fd, (struct sockaddr *)&at, sizeof at);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

/* Landlock knows ports since its version 4. */
static bool knows_ports(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4;
}

static char temporary[300];

static void reach_a_database(void)
{
    char conninfo[400];
    struct hf_error why;
    struct addrinfo *found = NULL;
    bool exact = knows_ports(); /* asked before the call is forbidden */
    snprintf(conninfo, sizeof conninfo, "host=localhost port=%u dbname=d sslrootcert=%s", ports[0],
             cell.link);
    struct hf_sandbox sandbox = { .temporary = temporary, .postgres = conninfo };
    WANT(hf_sandbox_enter(&sandbox, &why) == HF_OK);
    for (int again = 0; again < 2; again++)
        WANT(connect_to(ports[0]) == 0);
    if (exact)
        FAILS(connect_to(ports[1]), EACCES);
    WANT(getaddrinfo("localhost", NULL, NULL, &found) == 0);
    freeaddrinfo(found);
    int fd = open(cell.link, O_RDONLY | O_CLOEXEC);
    WANT(fd >= 0);
    fd = open("/etc/hosts", O_RDONLY | O_CLOEXEC);
    WANT(fd >= 0);
    FAILS(open("/etc/hostname", O_RDONLY), EACCES);
    FAILS(open("/etc/shadow", O_RDONLY), EACCES);
    FAILS(open(cell.secret, O_RDONLY), EACCES);
    FAILS(open(cell.old, O_RDONLY), EACCES);
    FAILS(bind(socket(AF_INET, SOCK_STREAM, 0),
               (struct sockaddr *)&(struct sockaddr_in){ .sin_family = AF_INET },
               sizeof(struct sockaddr_in)),
          EPERM);
    fd = open(cell_in(temporary, "export"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    WANT(fd >= 0 && close(fd) == 0 && unlink(cell_in(temporary, "export")) == 0 &&
         rmdir(temporary) == 0);
    _exit(0); /* there is nowhere to write counters to */
}

static void a_database_can_be_reached(void **state)
{
    (void)state;
    int listeners[2];
    for (size_t i = 0; i < 2; i++)
        listeners[i] = listener(&ports[i]);
    snprintf(temporary, sizeof temporary, "%s/temporary", cell.dir);
    assert_int_equal(mkdir(temporary, 0700), 0);
    cell_child_does(reach_a_database);
    for (size_t i = 0; i < 2; i++)
        close(listeners[i]);
    assert_int_not_equal(access(temporary, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_database_can_be_reached) };
    return cmocka_run_group_tests(tests, cell_setup, cell_teardown);
}

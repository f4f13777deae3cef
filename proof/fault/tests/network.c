/* The server's sockets fail: accepting, receiving, sending, waiting and watching. An answer comes
 * whole or its connection is closed; nobody waits for ever, and the next connection is served. */
#include "fault/server.h"
#include "server/kit/text.h"
#include "support/test.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- Calls, one at a time ---- */

#define HOLD "{\"resource\":\"r-#\",\"requester\":\"q-#\",\"duration\":\"1h\"}"

static const struct fault_route routes[] = {
    { .call = { "POST /v1/holds", "k-#", HOLD }, .look = "GET /v1/resources/r-#" },
    { .call = { "PUT /v1/registers/v-#", "k-#", "{\"value\":1}" },
      .look = "GET /v1/registers/v-#" },
    { .call = { "POST /v1/batch", NULL,
                "{\"op\":\"write\",\"key\":\"k-#\",\"name\":\"v-#\",\"value\":2}\n" },
      .look = "GET /v1/registers/v-#",
      .once = true },
    { .call = { .what = "GET /v1/holds?resource=none" } },
    { .call = { .what = "GET /v1/export" }, .loose = true },
    { .call = { .what = "GET /healthz" } },
};

static void calls(unsigned threads, bool kept)
{
    fault_server_start(threads);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (fault_wanted(4))
            fault_route_try(&routes[i], FAULT_ACCEPT, FAULT_SAY, kept);
    fault_server_end(0);
}

static void calls_on_new_connections(void **state)
{
    (void)state;
    calls(1, false);
}

static void calls_on_kept_connections_of_many_threads(void **state)
{
    (void)state;
    calls(4, true);
}

/* ---- Longer talks ---- */

enum { STUCK_S = 20 }; /* a slow machine is not stuck */

struct talk_script {
    const char *name;
    int (*connect)(const struct server *s);
    /* Talk, and say how many answers came, whole and as they should be. */
    unsigned (*play)(int fd);
    unsigned answers;     /* when nothing fails */
    void (*before)(void); /* each trial, or NULL */
};

static char trying[128];

static void impatient(int fd)
{
    struct timeval t = { .tv_sec = STUCK_S };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

/* Read an answer. False: closed. Whoever gets none and is not closed is stuck. */
static bool answer_comes(int fd, int status)
{
    struct reply got;
    int64_t since = server_clock_ms();
    impatient(fd);
    bool came = server_receive(fd, &got, false);
    if (!came && server_clock_ms() - since > (STUCK_S - 1) * 1000)
        fail_msg("%s: stuck", trying);
    if (came && got.status != status && got.status != 503)
        fail_msg("%s: %d instead of %d: %s", trying, got.status, status, got.body);
    bool right = came && got.status == status;
    if (came)
        reply_free(&got);
    return right;
}

static unsigned pipelined(int fd)
{
    enum { REQUESTS = 4 };
    struct text all = { .data = NULL };
    unsigned count = 0;
    for (int i = 0; i < REQUESTS; i++)
        text_request(&all, i % 2 ? "GET /healthz" : "GET /v1/resources", "", NULL);
    (void)server_send(fd, all.data, all.size);
    free(all.data);
    while (count < REQUESTS && answer_comes(fd, 200))
        count++;
    return count;
}

static unsigned in_pieces(int fd)
{
    static const char *const pieces[] = { "PUT /v1/resour",
                                          "ces/pieces HTTP/1.1\r\nHost: localhost\r\nTransfer-Enc",
                                          "oding: chunked\r\n\r\n8\r\n{\"capaci",
                                          "\r\n5\r\nty\":2\r\n1\r\n}\r\n", "0\r\n\r\n" };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        if (!server_send_text(fd, pieces[i]))
            break;
        server_pause_ms(1); /* so that the pieces are mostly read one by one */
    }
    return answer_comes(fd, 200);
}

/* The body is sent when the server has said that it may be. */
static unsigned continued(int fd)
{
    char got[256] = "";
    int64_t since = server_clock_ms();
    if (!server_send_text(
            fd, "PUT /v1/resources/continued HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n"
                "Expect: 100-continue\r\n\r\n"))
        return 0;
    impatient(fd);
    ssize_t n;
    do
        n = recv(fd, got, sizeof got - 1, MSG_PEEK);
    while (n > 0 && !strstr(got, "\r\n\r\n"));
    if (n <= 0 && server_clock_ms() - since > (STUCK_S - 1) * 1000)
        fail_msg("%s: stuck, neither told to go on nor closed", trying);
    if (n <= 0 ||
        (strncmp(got, "HTTP/1.1 100 ", 13) == 0 && !server_send_text(fd, "{\"capacity\":2}")))
        return 0;
    return answer_comes(fd, 200);
}

static void ask_for_much(int fd)
{
    char *request = server_request("GET /v1/holds?limit=800", "", NULL);
    (void)server_send_text(fd, request);
    free(request);
}

/* Somebody does not take its answer, and so keeps the buffer that others take turns with. */
static int beside = -1;

static void somebody_waits(void)
{
    beside = server_connect_narrow(fault_server());
    ask_for_much(beside);
    server_await_read(beside);
}

static unsigned large(int fd)
{
    ask_for_much(fd);
    server_pause_ms(2); /* it does not go out at once */
    return answer_comes(fd, 200);
}

static bool script_fails(const struct talk_script *t, enum fault_call call, enum fault_mode mode,
                         unsigned n)
{
    struct reply got;
    snprintf(trying, sizeof trying, "%s (%s, number %u)", t->name, fault_name(call, mode), n);
    if (t->before)
        t->before();
    fault_arm(call, n, mode);
    int fd = t->connect(fault_server());
    if (mode == FAULT_LASTING) { /* and it ends while the client still talks */
        server_pause_ms(1);
        fault_lift();
    }
    unsigned count = t->play(fd);
    bool failed = fault_lift() > 0;
    close(fd);
    if (beside >= 0)
        close(beside);
    beside = -1;
    if ((!failed || mode >= FAULT_INTERRUPTED) && count != t->answers)
        fail_msg("%s: %u answers instead of %u, although nothing failed", trying, count,
                 t->answers);
    fault_ask(&(struct fault_request){ .what = "GET /healthz" }, NULL, &got);
    assert_int_equal(got.status, 200);
    reply_free(&got);
    if (failed)
        fault_point();
    return failed;
}

static void script_try(const struct talk_script *t)
{
    bool makes[FAULT_CALLS];
    fault_tried();
    fault_forget();
    assert_false(script_fails(t, FAULT_NONE, FAULT_ONCE, 1));
    for (int call = 0; call < FAULT_CALLS; call++)
        makes[call] = fault_count((enum fault_call)call) > 0;
    for (int call = FAULT_ALLOC; call < FAULT_SAY; call++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (makes[call] && call != FAULT_WRITE && call != FAULT_SYNC &&
                fault_has_mode((enum fault_call)call, (enum fault_mode)mode))
                for (unsigned n = 1;
                     script_fails(t, (enum fault_call)call, (enum fault_mode)mode, n);)
                    n = fault_next(n);
}

static void longer_talks(void **state)
{
    (void)state;
    static const struct talk_script scripts[] = {
        { .name = "pipelined", .connect = server_connect, .play = pipelined, .answers = 4 },
        { .name = "in pieces", .connect = server_connect, .play = in_pieces, .answers = 1 },
        { .name = "continued", .connect = server_connect, .play = continued, .answers = 1 },
        { .name = "continued beside another",
          .connect = server_connect,
          .play = continued,
          .answers = 1,
          .before = somebody_waits },
        { .name = "large", .connect = server_connect_narrow, .play = large, .answers = 1 },
    };
    fault_server_start(1);
    server_fill_holds(fault_server(), 800);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (fault_wanted(2))
            script_try(&scripts[i]);
    fault_server_end(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_on_new_connections),
        cmocka_unit_test(calls_on_kept_connections_of_many_threads),
        cmocka_unit_test(longer_talks),
    };
    fault_sqlite();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_report("fault_network");
    return failed;
}

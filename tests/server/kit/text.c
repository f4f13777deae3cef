#include "server/kit/text.h"

#include "support/test.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void text_add(struct text *t, const char *data, size_t size)
{
    if (t->size + size + 1 > t->room) {
        t->room = 2 * (t->size + size + 1);
        t->data = realloc(t->data, t->room);
        assert_non_null(t->data);
    }
    memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_string(struct text *t, const char *what)
{
    text_add(t, what, strlen(what));
}

void text_repeat(struct text *t, const char *what, size_t times)
{
    for (size_t i = 0; i < times; i++)
        text_string(t, what);
}

void text_request(struct text *t, const char *what, const char *fields, const char *body)
{
    char *request = server_request(what, fields, body);
    text_add(t, request, strlen(request));
    free(request);
}

void text_hold(struct text *t, int number)
{
    char fields[64], body[128];
    snprintf(fields, sizeof fields, "Idempotency-Key: h%d\r\n", number);
    snprintf(body, sizeof body, "{\"resource\":\"r%d\",\"requester\":\"q\",\"duration\":\"1h\"}",
             number);
    text_request(t, "POST /v1/holds", fields, body);
}

void server_fill_holds(const struct server *s, size_t count)
{
    char *name = malloc(1025);
    struct text t = { 0 };
    assert_non_null(name);
    memset(name, 'r', 1024);
    name[1024] = 0;
    for (size_t i = 0; i < count; i++) {
        char number[24], line[2600];
        snprintf(number, sizeof number, "%08zu", i);
        memcpy(name, number, 8);
        snprintf(
            line, sizeof line,
            "{\"op\":\"place_hold\",\"key\":\"fill-%zu\",\"resource\":\"%s\",\"requester\":\"%s\","
            "\"duration\":\"1d\"}\n",
            i, name, name);
        text_string(&t, line);
        if (t.size > 900000 || i + 1 == count) {
            struct reply r;
            server_ask(s, "POST /v1/batch", "", t.data, &r);
            assert_int_equal(r.status, 200);
            assert_false(reply_has(&r, "{\"status\":4"));
            reply_free(&r);
            t.size = 0;
        }
    }
    free(t.data);
    free(name);
}

void server_fill_registers(const struct server *s, size_t size)
{
    enum { EACH = 60000, GROUP = 16 };
    char *value = malloc(EACH + 1);
    assert_non_null(value);
    memset(value, 'v', EACH);
    value[EACH] = 0;
    for (size_t i = 0; i * EACH < size;) {
        struct text t = { 0 };
        struct reply r;
        for (int k = 0; k < GROUP; k++, i++) {
            char begin[128];
            snprintf(begin, sizeof begin,
                     "{\"op\":\"write\",\"key\":\"w%zu\",\"name\":\"x%zu\",\"value\":\"", i, i);
            text_string(&t, begin);
            text_string(&t, value);
            text_string(&t, "\"}\n");
        }
        server_ask(s, "POST /v1/batch", "", t.data, &r);
        assert_int_equal(r.status, 200);
        assert_false(reply_has(&r, "{\"status\":4"));
        reply_free(&r);
        free(t.data);
    }
    free(value);
}

int server_connect_narrow(const struct server *s)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), room = 4096, segment = 536;
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* PostgreSQL through libpq, asynchronous: the whole job is one call of a prepared function of
 * bench/postgres/schema.sql, or one SELECT of a token's row. A call of more than one request hands
 * over arrays, in the binary format. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OID_INT8 = 20, OID_TEXT = 25, OID_TEXT_ARRAY = 1009 };

/* A bigint in the binary format, most significant byte first. */
static const char duration_ms[8] = { 0,
                                     0,
                                     0,
                                     0,
                                     (char)(HF_LOAD_DURATION_MS >> 24),
                                     (char)(HF_LOAD_DURATION_MS >> 16 & 255),
                                     (char)(HF_LOAD_DURATION_MS >> 8 & 255),
                                     (char)(HF_LOAD_DURATION_MS & 255) };

static bool pq_fail(struct hf_load_conn *c, PGconn *pg)
{
    snprintf(c->why, sizeof c->why, "%s", PQerrorMessage(pg));
    return false;
}

static bool prepare(const struct hf_load_options *o, struct hf_load_conn *c, PGconn *pg)
{
    bool arrays = o->group > 1, select = o->job == HF_LOAD_SELECT;
    Oid text = arrays ? OID_TEXT_ARRAY : OID_TEXT;
    const Oid types[4] = { text, text, text, OID_INT8 };
    PGresult *r = PQprepare(pg, "ask",
                            select   ? "SELECT '1 ' || answer FROM tokens WHERE token = $1"
                            : arrays ? "SELECT place_holds($1, $2, $3, $4)"
                                     : "SELECT place_hold($1, $2, $3, $4)",
                            select ? 1 : 4, types);
    bool done = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return done || pq_fail(c, pg);
}

static bool postgres_connect(const struct hf_load_options *o, struct hf_load_conn *c)
{
    const char *names[] = { "host", "port", "user", "dbname", NULL };
    const char *values[] = { o->servers[c->server].host, o->servers[c->server].port, "bench",
                             "bench", NULL };
    PGconn *pg = PQconnectdbParams(names, values, 0);
    c->handle = pg;
    if (PQstatus(pg) != CONNECTION_OK)
        return pq_fail(c, pg);
    c->fd = PQsocket(pg);
    return prepare(o, c, pg) && (PQsetnonblocking(pg, 1) == 0 || pq_fail(c, pg));
}

static bool postgres_flush(struct hf_load_conn *c)
{
    int left = PQflush(c->handle);
    c->writing = left == 1;
    return left >= 0 || pq_fail(c, c->handle);
}

static void put_int(struct hf_load_buffer *b, uint32_t value)
{
    value = htonl(value);
    memcpy(b->bytes + b->length, &value, 4);
    b->length += 4;
}

static void put_text(struct hf_load_buffer *b, const char *text, size_t length)
{
    put_int(b, (uint32_t)length);
    memcpy(b->bytes + b->length, text, length);
    b->length += length;
}

/* The header of an array of one dimension without nulls. */
static void put_array(struct hf_load_buffer *b, unsigned count)
{
    put_int(b, 1);
    put_int(b, 0);
    put_int(b, OID_TEXT);
    put_int(b, count);
    put_int(b, 1);
}

enum { ARRAY_HEAD = 20 };

static bool arrays_send(const struct hf_load_options *o, struct hf_load_conn *c,
                        const uint64_t *numbers, unsigned count)
{
    static struct hf_load_request requests[HF_LOAD_GROUP_MAX];
    const size_t token_bytes = ARRAY_HEAD + count * (4U + HF_LOAD_TOKEN);
    const size_t name_bytes = ARRAY_HEAD + count * (4U + HF_LOAD_NAME);
    c->out.length = 0;
    if (!hf_load_buffer_reserve(&c->out, token_bytes + 2 * name_bytes))
        return hf_load_fail(c, "memory");
    put_array(&c->out, count);
    for (unsigned i = 0; i < count; i++) {
        hf_load_request(numbers[i], o->resources, &requests[i]);
        put_text(&c->out, requests[i].token, HF_LOAD_TOKEN);
    }
    put_array(&c->out, count);
    for (unsigned i = 0; i < count; i++)
        put_text(&c->out, requests[i].resource, HF_LOAD_NAME);
    put_array(&c->out, count);
    for (unsigned i = 0; i < count; i++)
        put_text(&c->out, requests[i].requester, HF_LOAD_NAME);
    const char *at = c->out.bytes;
    const char *values[4] = { at, at + token_bytes, at + token_bytes + name_bytes, duration_ms };
    const int lengths[4] = { (int)token_bytes, (int)name_bytes, (int)name_bytes,
                             sizeof duration_ms };
    const int binary[4] = { 1, 1, 1, 1 };
    return PQsendQueryPrepared(c->handle, "ask", 4, values, lengths, binary, 1) ||
           pq_fail(c, c->handle);
}

static bool single_send(const struct hf_load_options *o, struct hf_load_conn *c, uint64_t number)
{
    struct hf_load_request r = { 0 };
    hf_load_request(number, o->resources, &r);
    const char *values[4] = { r.token, r.resource, r.requester, duration_ms };
    const int lengths[4] = { HF_LOAD_TOKEN, HF_LOAD_NAME, HF_LOAD_NAME, sizeof duration_ms };
    const int binary[4] = { 1, 1, 1, 1 };
    return PQsendQueryPrepared(c->handle, "ask", o->job == HF_LOAD_SELECT ? 1 : 4, values, lengths,
                               binary, 1) ||
           pq_fail(c, c->handle);
}

static bool postgres_send(const struct hf_load_options *o, struct hf_load_conn *c,
                          const uint64_t *numbers, unsigned count)
{
    bool sent = o->group > 1 ? arrays_send(o, c, numbers, count) : single_send(o, c, numbers[0]);
    return sent && postgres_flush(c);
}

/* A value of a row: one answer, or as many lines as the arrays had elements. */
static bool value_count(const struct hf_load_options *o, struct hf_load_conn *c,
                        struct hf_load_tally *t, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        errno = 0;
        if (c->due == 0)
            return hf_load_fail(c, "an array was answered with too many lines");
        hf_load_tally_add_text(t, o->job, at, (size_t)(stop - at));
        c->due--;
        at = stop + 1;
    }
    return true;
}

static bool result_count(const struct hf_load_options *o, struct hf_load_conn *c,
                         struct hf_load_tally *t, PGresult *r)
{
    if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1)
        return value_count(o, c, t, PQgetvalue(r, 0, 0), (size_t)PQgetlength(r, 0, 0));
    const char *why = PQresultErrorMessage(r);
    for (; c->due > 0; c->due--)
        hf_load_tally_add(t, o->job, 0, false, why, strlen(why));
    return true;
}

static bool postgres_receive(const struct hf_load_options *o, struct hf_load_conn *c,
                             struct hf_load_tally *t)
{
    PGconn *pg = c->handle;
    if (!PQconsumeInput(pg))
        return pq_fail(c, pg);
    if (c->writing && !postgres_flush(c))
        return false;
    /* The call is over when libpq says so, not when its row has come: the next call may be sent
     * only then. */
    while (!PQisBusy(pg)) {
        PGresult *r = PQgetResult(pg);
        if (!r) {
            c->busy = false;
            errno = 0;
            return c->due == 0 || hf_load_fail(c, "an array was answered with too few lines");
        }
        bool counted = result_count(o, c, t, r);
        PQclear(r);
        if (!counted)
            return false;
    }
    return true;
}

static void postgres_close(struct hf_load_conn *c)
{
    if (c->handle)
        PQfinish(c->handle);
    c->handle = NULL;
    c->fd = -1;
    free(c->out.bytes);
    c->out = (struct hf_load_buffer){ 0 };
}

const struct hf_load_peer hf_load_postgres = {
    .name = "postgres",
    .connect = postgres_connect,
    .send = postgres_send,
    .flush = postgres_flush,
    .receive = postgres_receive,
    .close = postgres_close,
};

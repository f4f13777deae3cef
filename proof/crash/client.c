#include "crash/client.h"

#include "support/test.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum {
    GROUP = 16,
    PATIENCE_MS = 2 * SERVER_PATIENCE_MS,
    SAMPLE_NEW = 6,
    SAMPLE_OLD = 6,
    SWEEP = 64
};

/* Operations that leave together, in this order. */
struct group {
    char how; /* s alone, p pipelined, b in a batch */
    unsigned count;
    struct crash_op *ops[SWEEP];
};

/* ---- Complaints ---- */

/* Say what is wrong with `op`; always false. Only the first complaint counts. */
static bool complain(struct crash_client *c, const struct crash_op *op, const char *what,
                     int status, const char *body)
{
    char name[CRASH_NAME_MAX] = "-";
    if (c->tally->complaint[0])
        return false;
    if (op)
        crash_op_name(op, name);
    snprintf(c->tally->complaint, sizeof c->tally->complaint,
             "%s (%s %s, sent %u times, in doubt %u times): %s: %d %s%s%s", name,
             op ? crash_calls[op->kind].op ? crash_calls[op->kind].op : "grant" : "",
             op ? op->subject : "", op ? op->attempts : 0, op ? op->doubts : 0, what, status, body,
             op && op->status ? "; it was told " : "", op && op->status ? op->body : "");
    crash_ledger_says(&c->ledger, c->tally->complaint);
    crash_ledger_flush(&c->ledger);
    return false;
}

static bool fine(const struct crash_client *c)
{
    return !c->tally->complaint[0];
}

/* ---- Connections ---- */

static void hang_up(struct crash_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

/* Ask the other server next, if there is one. Only behind all that this one was asked for: what it
 * still has under way could otherwise be done behind the back of who asks elsewhere, and without a
 * key be done twice. */
static void turn_away(struct crash_client *c)
{
    hang_up(c);
    c->at = (c->at + 1) % c->servers;
}

/* Be connected. False after a complaint: nobody has listened for two minutes. */
static bool dial(struct crash_client *c)
{
    for (int64_t until = server_clock_ms() + PATIENCE_MS; c->fd < 0; server_pause_ms(1)) {
        if (server_clock_ms() > until)
            return complain(c, NULL, "nobody listens", 0, "");
        c->fd = server_try_connect(&c->to[c->at]);
        if (c->fd >= 0)
            break;
        turn_away(c);
    }
    return true;
}

/* One answer on the connection, which is closed if none comes or the server says so. */
static bool hear(struct crash_client *c, struct reply *r)
{
    if (c->fd < 0 || !server_receive(c->fd, r, false)) {
        hang_up(c);
        return false;
    }
    const char *connection = reply_field(r, "Connection");
    if (connection && strcmp(connection, "close") == 0)
        hang_up(c);
    return true;
}

/* Ask until there is an answer. what, body: as for server_request. False after a complaint. */
static bool ask(struct crash_client *c, const char *what, const char *body, struct reply *r)
{
    for (int64_t until = server_clock_ms() + PATIENCE_MS; server_clock_ms() < until;) {
        if (!dial(c))
            return false;
        char *request = server_request(what, "", body);
        bool answered = server_send_text(c->fd, request) && hear(c, r);
        free(request);
        if (answered && !crash_ledger_put_off(r->status, r->body))
            return true;
        if (answered)
            reply_free(r);
        turn_away(c);
        c->broke = c->broke || !answered;
        server_pause_ms(1);
    }
    return complain(c, NULL, "no answer for two minutes", 0, what);
}

/* ---- Answers ---- */

/* It was answered before, and must be answered the same. */
static bool same_again(struct crash_client *c, struct crash_op *op, int status, bool replayed,
                       const char *body)
{
    c->tally->asked_again++;
    if (op->kind == CRASH_NUMBERED && c->sequence - op->sequence >= HF_SEQUENCE_WINDOW)
        return (status == 409 && strstr(body, "window-elapsed")) ||
               complain(c, op, "expected that its number is too old", status, body);
    if (status != op->status || strcmp(body, op->body) != 0)
        return complain(c, op, "another answer than before", status, body);
    return replayed || complain(c, op, "done again, and not a replay", status, body);
}

/* A claim that only this client wants is in progress, so the begin that was in doubt had been done.
 * Ask for its fence. */
static bool fence_find(struct crash_client *c, struct crash_op *op)
{
    char what[80];
    struct reply r;
    snprintf(what, sizeof what, "GET /v1/claims/%s", op->subject);
    if (!ask(c, what, NULL, &r))
        return false;
    long long fence = crash_number(r.body, "fence");
    bool started = r.status == 200 && reply_has(&r, "\"status\":\"started\"") && fence > 0;
    if (started)
        crash_ledger_fenced(&c->ledger, op, (uint64_t)fence);
    else
        complain(c, op, "in progress, and yet not there", r.status, r.body);
    reply_free(&r);
    return started;
}

/* Did the answer show that it had been done before? 1 yes, 0 no, -1 it cannot tell. */
static int shows_survival(const struct crash_op *op, bool replayed)
{
    char name[CRASH_NAME_MAX], result[CRASH_NAME_MAX];
    switch (op->kind) {
    case CRASH_MERGE: return -1;
    case CRASH_ADMIT:
        crash_text(op->body, "result", result, sizeof result);
        return strcmp(crash_op_name(op, name), result) == 0;
    case CRASH_BEGIN: return crash_claim_shared(op) ? -1 : op->status == 409;
    default: return replayed;
    }
}

static void doubt_settled(struct crash_client *c, struct crash_op *op, bool replayed)
{
    int shown = shows_survival(op, replayed);
    op->survived = shown == 1;
    c->tally->survived += shown == 1;
    c->tally->undone += shown == 0;
}

/* The first answer to `op` has come. */
static bool first_answer(struct crash_client *c, struct crash_op *op, bool replayed)
{
    const char *wrong = NULL;
    if (!crash_op_fits(op, op->status))
        wrong = "an answer that cannot be";
    else if (replayed && op->doubts == 0 && op->kind != CRASH_BEGIN)
        wrong = "a replay of what was never asked";
    else if (op->kind == CRASH_BEGIN && !crash_claim_shared(op) &&
             (op->status == 200 || (op->status == 409 && !op->doubts)))
        wrong = "somebody else has a claim that nobody else wants";
    else if (op->status == 412 && op->kind != CRASH_WRITE && strncmp(op->subject, "all-", 4) != 0)
        wrong = "a fence is stale that nobody has passed";
    if (wrong)
        return complain(c, op, wrong, op->status, "");
    c->tally->acknowledged++;
    c->tally->kinds[op->kind] += crash_op_done(op);
    if (op->doubts)
        doubt_settled(c, op, replayed);
    if (op->kind == CRASH_BEGIN && op->status == 409 && !crash_claim_shared(op) &&
        !fence_find(c, op))
        return false;
    crash_learn(c, op);
    return true;
}

static bool answered(struct crash_client *c, struct crash_op *op, int status, bool replayed,
                     const char *body)
{
    bool first = op->status == 0;
    unsigned doubts = op->doubts;
    crash_ledger_answered(&c->ledger, op, status, replayed, body);
    if (!crash_ledger_put_off(status, body))
        return first ? first_answer(c, op, replayed) : same_again(c, op, status, replayed, body);
    c->put_off++; /* it stays to be asked */
    c->tally->not_yet++;
    c->tally->in_doubt += op->doubts > doubts && doubts == 0;
    return true;
}

/* The lines of a batch's answer. */
static bool lines_answered(struct crash_client *c, const struct group *g, struct reply *r)
{
    char *at = r->body;
    for (unsigned i = 0; i < g->count; i++) {
        int status = 0;
        char *end = strchr(at, '\n'), *body = strstr(at, ",\"body\":");
        if (!end || !body || body > end || sscanf(at, "{\"status\":%d,", &status) != 1)
            return complain(c, g->ops[i], "a batch was answered with too little", r->status,
                            r->body);
        end[-1] = 0; /* the brace of the line */
        bool replayed = strstr(at, "\"replayed\":true,") == at + strcspn(at, ",") + 1;
        if (!answered(c, g->ops[i], status, replayed, body + strlen(",\"body\":")))
            return false;
        at = end + 1;
    }
    return true;
}

/* ---- Asking ---- */

static void group_render(const struct group *g, struct text *out)
{
    struct text lines = { 0 };
    for (unsigned i = 0; i < g->count; i++) {
        if (g->how == 'b')
            crash_op_line(g->ops[i], &lines);
        else
            crash_op_request(g->ops[i], out);
    }
    if (lines.data)
        text_request(out, "POST /v1/batch", "", lines.data);
    free(lines.data);
}

/* Hear what is said to the group; how many of it were answered. */
static unsigned group_hear(struct crash_client *c, const struct group *g)
{
    struct reply r;
    unsigned heard = 0;
    while (heard < g->count && hear(c, &r)) {
        bool whole = g->how == 'b' && r.status == 200;
        if (whole) {
            (void)lines_answered(c, g, &r);
            heard = g->count;
        } else if (g->how == 'b') { /* nothing of it was done */
            for (; heard < g->count; heard++)
                (void)answered(c, g->ops[heard], r.status, false, r.body);
        } else {
            bool replayed = reply_field(&r, "Idempotent-Replayed") != NULL;
            (void)answered(c, g->ops[heard++], r.status, replayed, r.body);
        }
        reply_free(&r);
        if (!fine(c))
            break;
    }
    return heard;
}

/* Send the group once. False if the server went away before all was answered; what was answered
 * with "not now" is counted in c->put_off. */
static bool group_send(struct crash_client *c, const struct group *g)
{
    struct text request = { 0 };
    c->put_off = 0;
    if (!dial(c))
        return false;
    group_render(g, &request);
    for (unsigned i = 0; i < g->count; i++)
        crash_ledger_sent(&c->ledger, g->ops[i], g->how);
    crash_ledger_flush(&c->ledger);
    unsigned heard = server_send(c->fd, request.data, request.size) ? group_hear(c, g) : 0;
    free(request.data);
    if (heard < g->count || c->put_off > 0) {
        turn_away(c);
        c->broke = true;
    }
    if (heard < g->count) {
        c->tally->breaks++;
        for (unsigned i = heard; i < g->count; i++)
            if (g->ops[i]->status == 0) {
                c->tally->in_doubt += g->ops[i]->doubts == 0;
                c->tally->resent++; /* as group_settle will do */
                crash_ledger_doubted(&c->ledger, g->ops[i]);
            }
    }
    crash_ledger_flush(&c->ledger);
    return heard == g->count;
}

/* Before it is asked for again: a server that says "not now" is given a moment. */
static void rest(const struct crash_client *c)
{
    server_pause_ms(c->put_off > 0 ? 10 : 1);
}

/* Ask for what has no answer yet, one at a time and in order, until it has. */
static void group_settle(struct crash_client *c, const struct group *g)
{
    int64_t until = server_clock_ms() + PATIENCE_MS;
    for (unsigned i = 0; i < g->count && fine(c);) {
        struct group one = { .how = crash_calls[g->ops[i]->kind].method ? 's' : 'b',
                             .count = 1,
                             .ops = { g->ops[i] } };
        if (g->ops[i]->status) {
            i++;
            continue;
        }
        if (!group_send(c, &one) || g->ops[i]->status == 0)
            rest(c);
        if (server_clock_ms() > until)
            (void)complain(c, g->ops[i], "no answer for two minutes", 0, "");
    }
}

/* What survived of a group that left together is its beginning; but behind what a server gave up,
 * it goes on. */
static void group_prefix(struct crash_client *c, const struct group *g)
{
    const struct crash_op *lost = NULL;
    for (unsigned i = 0; i < g->count && fine(c); i++) {
        const struct crash_op *op = g->ops[i];
        if (!crash_calls[op->kind].keyed || op->doubts != 1 || op->attempts != 2 || op->unknowns)
            continue;
        if (!op->survived)
            lost = op;
        else if (lost)
            (void)complain(c, op, "it survived, and what was sent before it did not", lost->status,
                           lost->body);
    }
}

static void group_do(struct crash_client *c, const struct group *g)
{
    if (group_send(c, g))
        group_settle(c, g); /* what was answered with "not now" */
    else if (fine(c)) {
        group_settle(c, g);
        group_prefix(c, g);
    }
}

/* ---- Asking again ---- */

/* The hold that `op` placed: is it as its owner left it? */
static bool look_hold(struct crash_client *c, const struct crash_op *op)
{
    char what[80], id[48], placed[40], there[40], state[16];
    struct reply r;
    snprintf(what, sizeof what, "GET /v1/holds/%s", crash_text(op->body, "id", id, sizeof id));
    if (!ask(c, what, NULL, &r))
        return false;
    crash_text(op->body, "placed_at", placed, sizeof placed);
    crash_text(r.body, "placed_at", there, sizeof there);
    if (r.status != 200 || strcmp(placed, there) != 0)
        (void)complain(c, op, "its hold is not there", r.status, r.body);
    else if (!crash_op_may_be(op, crash_text(r.body, "state", state, sizeof state)))
        (void)complain(c, op, "its hold is not in the state that it was left in", r.status, r.body);
    reply_free(&r);
    return fine(c);
}

static bool look_identity(struct crash_client *c, const struct crash_op *op)
{
    char what[80], body[96], identity[48], name[CRASH_NAME_MAX], owner[48], now[48];
    struct reply r;
    snprintf(what, sizeof what, "POST /v1/guards/%s/check", op->subject);
    snprintf(body, sizeof body, "{\"identity\":\"%s\"}",
             crash_text(op->fields, "identity", identity, sizeof identity));
    if (!ask(c, what, body, &r))
        return false;
    crash_text(op->body, "result", owner, sizeof owner);
    crash_text(r.body, "result", now, sizeof now);
    if (strcmp(now, owner[0] ? owner : crash_op_name(op, name)) != 0)
        (void)complain(c, op, "the identity is another's now", r.status, r.body);
    reply_free(&r);
    return fine(c);
}

/* A claim that was settled for good, or a register: the same, or for a register no older. */
static bool look_record(struct crash_client *c, const struct crash_op *op)
{
    char what[80];
    struct reply r;
    bool claim = op->kind != CRASH_MERGE;
    snprintf(what, sizeof what, "GET /v1/%s/%s", claim ? "claims" : "registers", op->subject);
    if (!ask(c, what, NULL, &r))
        return false;
    bool same = claim ? strcmp(r.body, op->body) == 0
                      : crash_number(r.body, "version") >= crash_number(op->body, "version");
    if (r.status != 200 || !same)
        (void)complain(c, op, "what was settled is not so any more", r.status, r.body);
    reply_free(&r);
    return fine(c);
}

/* What can be asked about an operation that was answered, beside asking for it again. */
static bool look(struct crash_client *c, const struct crash_op *op)
{
    c->tally->asked_again++;
    switch (op->kind) {
    case CRASH_PLACE:
    case CRASH_NUMBERED: return !crash_op_done(op) || look_hold(c, op);
    case CRASH_ADMIT: return look_identity(c, op);
    case CRASH_MERGE: return look_record(c, op);
    case CRASH_COMPLETE: return !crash_op_done(op) || look_record(c, op);
    case CRASH_FAIL: return !crash_op_done(op) || strstr(op->fields, "true") || look_record(c, op);
    default: return true;
    }
}

/* Ask for all of it again, although there was an answer, until there is one again. */
static void group_repeat(struct crash_client *c, const struct group *g)
{
    int64_t until = server_clock_ms() + PATIENCE_MS;
    while (fine(c) && (!group_send(c, g) || c->put_off > 0)) {
        rest(c);
        if (server_clock_ms() > until)
            (void)complain(c, g->ops[0], "no answer again for two minutes", 0, "");
    }
}

static void ask_again(struct crash_client *c, struct crash_op *op)
{
    struct group one = { .how = crash_calls[op->kind].method ? 's' : 'b',
                         .count = 1,
                         .ops = { op } };
    if (op->status && crash_calls[op->kind].keyed)
        group_repeat(c, &one);
    if (op->status && fine(c))
        (void)look(c, op);
}

/* The newest, and a few of any age. */
static void sample(struct crash_client *c)
{
    size_t count = c->ledger.count;
    for (size_t i = 0; i < SAMPLE_NEW && i < count && fine(c); i++)
        ask_again(c, c->ledger.ops[count - 1 - i]);
    for (size_t i = 0; i < SAMPLE_OLD && count && fine(c); i++)
        ask_again(c, c->ledger.ops[test_below(&c->random, count)]);
}

/* Everything that has a key, once more, many at a time. */
static void sweep(struct crash_client *c)
{
    struct group groups[2] = { { .how = 'p' }, { .how = 'b' } };
    for (size_t i = 0; i < c->ledger.count && fine(c); i++) {
        struct crash_op *op = c->ledger.ops[i];
        struct group *g = &groups[crash_calls[op->kind].method == NULL];
        if (op->status && crash_calls[op->kind].keyed)
            g->ops[g->count++] = op;
        for (g = groups; g < groups + 2; g++)
            if (g->count == SWEEP || (g->count && i + 1 == c->ledger.count)) {
                group_repeat(c, g);
                g->count = 0;
            }
    }
}

/* ---- All of it ---- */

static void group_choose(struct crash_client *c, struct group *g)
{
    uint64_t how = test_below(&c->random, 10);
    g->how = how < 4 ? 's' : how < 7 ? 'p' : 'b';
    g->count = g->how == 's' ? 1 : 2 + (unsigned)test_below(&c->random, GROUP - 2);
    for (unsigned i = 0; i < g->count; i++) {
        /* Sometimes a request is sent twice without waiting: one of the two is the other's
         * replay. */
        bool twice = g->how == 'p' && i > 0 && test_below(&c->random, 8) == 0;
        struct crash_op *before = twice ? g->ops[i - 1] : NULL;
        g->ops[i] =
            before && crash_calls[before->kind].keyed ? before : crash_choose(c, g->how == 'b');
    }
}

/* Control: a hold behind the ledger's back, as a server would make it that does a thing twice. */
static void ghost(struct crash_client *c)
{
    struct text request = { 0 };
    struct reply r;
    char fields[64];
    snprintf(fields, sizeof fields, "Idempotency-Key: ghost-%u-%zu\r\n", c->ledger.client,
             c->ledger.count);
    text_request(&request, "POST /v1/holds", fields,
                 "{\"resource\":\"shared-0\",\"requester\":\"ghost\",\"duration\":\"10ms\"}");
    if (dial(c) && server_send(c->fd, request.data, request.size) && hear(c, &r))
        reply_free(&r);
    else
        hang_up(c);
    free(request.data);
}

int crash_client_run(struct crash_client *c)
{
    c->fd = -1;
    while (!c->board->stop && fine(c)) {
        struct group g;
        unsigned us = c->pause ? (unsigned)test_below(&c->random, c->pause) : 0;
        group_choose(c, &g);
        group_do(c, &g);
        if (c->broke && fine(c)) {
            c->broke = false;
            sample(c);
        }
        if (c->ghosts && test_below(&c->random, 20) == 0)
            ghost(c);
        nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
    }
    if (fine(c))
        sweep(c);
    for (size_t i = 0; i < c->ledger.count && fine(c); i++)
        if (!crash_calls[c->ledger.ops[i]->kind].keyed || c->ledger.count - i < 200)
            (void)look(c, c->ledger.ops[i]);
    hang_up(c);
    int code = fine(c) ? 0 : 1;
    crash_ledger_free(&c->ledger);
    crash_forget(c);
    return code;
}

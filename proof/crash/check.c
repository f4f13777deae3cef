#include "crash/check.h"

#include "support/test.h"

#include <stdarg.h>
#include <unistd.h>

bool crash_complain(struct crash_check *k, const char *format, ...)
{
    va_list args;
    if (k->complaint[0])
        return false;
    va_start(args, format);
    vsnprintf(k->complaint, sizeof k->complaint, format, args);
    va_end(args);
    return false;
}

struct crash_op **crash_gather(const struct crash_check *k, unsigned kinds, bool done,
                               int (*by)(const void *, const void *), size_t *count)
{
    size_t room = 1;
    *count = 0;
    for (unsigned c = 0; c < k->clients; c++)
        room += k->ledgers[c].count;
    struct crash_op **ops = malloc(room * sizeof *ops);
    assert_non_null(ops);
    for (unsigned c = 0; c < k->clients; c++)
        for (size_t i = 0; i < k->ledgers[c].count; i++) {
            struct crash_op *op = k->ledgers[c].ops[i];
            if ((kinds >> op->kind & 1) && (done ? crash_op_done(op) : op->status != 0))
                ops[(*count)++] = op;
        }
    if (by)
        qsort(ops, *count, sizeof *ops, by);
    return ops;
}

bool crash_get(struct crash_check *k, const char *what, struct reply *r)
{
    int fd = server_try_connect(k->server);
    bool answered = fd >= 0 && server_call(fd, what, "", NULL, r);
    if (fd >= 0)
        close(fd);
    if (!answered)
        return crash_complain(k, "no answer to %s", what);
    if (r->status == 200)
        return true;
    crash_complain(k, "%s: %d %s", what, r->status, r->body);
    reply_free(r);
    return false;
}

/* ---- Holds ---- */

/* Records that must be there, one for each operation that made one, by id. */
struct known {
    char id[32];
    struct crash_op *op;
    bool seen;
};

struct shelf {
    struct known *known; /* owned */
    size_t count, listed;
    unsigned confirmed[CRASH_SHARED]; /* units of the shared resources that are taken for good */
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct known *)a)->id, ((const struct known *)b)->id);
}

static struct known *known_find(const struct shelf *s, const char *id)
{
    struct known wanted = { .op = NULL };
    memcpy(wanted.id, id, strnlen(id, sizeof wanted.id - 1));
    return s->count ? bsearch(&wanted, s->known, s->count, sizeof wanted, by_id) : NULL;
}

static bool shelf_fill(struct crash_check *k, struct shelf *s)
{
    unsigned makers = 1 << CRASH_PLACE | 1 << CRASH_NUMBERED | 1 << CRASH_REVERSE;
    struct crash_op **ops = crash_gather(k, makers, true, NULL, &s->count);
    s->known = calloc(s->count + 1, sizeof *s->known);
    assert_non_null(s->known);
    for (size_t i = 0; i < s->count; i++) {
        crash_text(ops[i]->body, "id", s->known[i].id, sizeof s->known[i].id);
        s->known[i].op = ops[i];
    }
    free(ops);
    qsort(s->known, s->count, sizeof *s->known, by_id);
    for (size_t i = 1; i < s->count; i++)
        if (strcmp(s->known[i - 1].id, s->known[i].id) == 0)
            return crash_complain(k, "two operations, c%u-%u and c%u-%u, were given the hold %s",
                                  s->known[i - 1].op->client, s->known[i - 1].op->number,
                                  s->known[i].op->client, s->known[i].op->number, s->known[i].id);
    return true;
}

/* Each hold is ended once at most, and given back once at most and only if it was confirmed. */
static bool ends_check(struct crash_check *k, const struct shelf *s)
{
    unsigned enders =
        1 << CRASH_CONFIRM | 1 << CRASH_RELEASE | 1 << CRASH_EXPIRE | 1 << CRASH_REVERSE;
    size_t count = 0;
    struct crash_op **ops = crash_gather(k, enders, true, NULL, &count);
    for (size_t i = 0; i < count; i++) {
        struct known *hold = known_find(s, ops[i]->subject);
        if (!hold)
            crash_complain(k, "c%u-%u ended the hold %s, which nobody placed", ops[i]->client,
                           ops[i]->number, ops[i]->subject);
        else
            crash_op_ends(hold->op, ops[i]);
    }
    free(ops);
    for (size_t i = 0; i < s->count; i++) {
        const struct crash_op *op = s->known[i].op;
        if (op->ends > 1 || op->reversals > 1 ||
            (op->reversals && strcmp(op->state ? op->state : "", "confirmed") != 0))
            return crash_complain(
                k, "hold %s of c%u-%u was ended %u times (last: %s) and given back %u times",
                s->known[i].id, op->client, op->number, op->ends, op->state ? op->state : "-",
                op->reversals);
    }
    return !k->complaint[0];
}

/* One hold of the list, as JSON. */
static bool hold_listed(struct crash_check *k, struct shelf *s, const char *hold)
{
    char id[32], state[16], resource[40], reverses[32];
    struct known *known = known_find(s, crash_text(hold, "id", id, sizeof id));
    crash_text(hold, "state", state, sizeof state);
    crash_text(hold, "resource", resource, sizeof resource);
    bool reversal = crash_text(hold, "reverses", reverses, sizeof reverses)[0] != 0;
    if (!known)
        return crash_complain(k, "a hold that nobody asked for: %s", hold);
    if (known->seen)
        return crash_complain(k, "hold %s is listed twice", id);
    if (reversal ? strcmp(reverses, known->op->subject) != 0 : !crash_op_may_be(known->op, state))
        return crash_complain(k, "hold of c%u-%u, left %s: %s", known->op->client,
                              known->op->number,
                              known->op->state ? known->op->state : "as it was placed", hold);
    known->seen = true;
    s->listed++;
    if (strncmp(resource, "shared-", 7) == 0) {
        unsigned long which = strtoul(resource + 7, NULL, 10) % CRASH_SHARED;
        s->confirmed[which] += !reversal && strcmp(state, "confirmed") == 0;
        s->confirmed[which] -= reversal;
    }
    return true;
}

static bool holds_list(struct crash_check *k, struct shelf *s)
{
    char next[64] = "", what[128];
    do {
        struct reply r;
        snprintf(what, sizeof what, "GET /v1/holds?limit=1000&cursor=%s", next);
        if (!crash_get(k, what, &r))
            return false;
        crash_text(r.body, "next_cursor", next, sizeof next);
        for (char *at = r.body, *end; !k->complaint[0] && (at = strstr(at, "{\"id\":")) != NULL;
             at = end + 1) {
            end = strchr(at, '}');
            *end = 0;
            (void)hold_listed(k, s, at);
        }
        reply_free(&r);
    } while (next[0] && !k->complaint[0]);
    if (!k->complaint[0] && s->listed != s->count)
        crash_complain(k, "%zu holds are listed, and %zu were made", s->listed, s->count);
    for (size_t i = 0; i < s->count && s->listed != s->count; i++)
        if (!s->known[i].seen)
            return crash_complain(k, "the hold %s of c%u-%u is lost", s->known[i].id,
                                  s->known[i].op->client, s->known[i].op->number);
    return !k->complaint[0];
}

/* How many holds on a shared resource are held, by the list of them; -1 after a complaint. */
static long long held_listed(struct crash_check *k, unsigned resource)
{
    char what[96];
    long long held = 0;
    struct reply r;
    snprintf(what, sizeof what, "GET /v1/holds?state=held&limit=1000&resource=shared-%u", resource);
    if (!crash_get(k, what, &r))
        return -1;
    for (const char *at = r.body; (at = strstr(at, "{\"id\":")) != NULL; at++)
        held++;
    reply_free(&r);
    return held;
}

/* What a resource says it has taken is what its holds say. Brief holds may still run out meanwhile,
 * one after the other: between two answers that agree none has. */
static bool resource_check(struct crash_check *k, const struct shelf *s, unsigned i)
{
    char what[64];
    struct reply r = { 0 };
    long long before = -1, held = -2;
    snprintf(what, sizeof what, "GET /v1/resources/shared-%u", i);
    for (int64_t until = server_clock_ms() + 20000; server_clock_ms() < until;
         before = reply_number(&r, "held")) {
        reply_free(&r);
        held = held_listed(k, i);
        if (held < 0 || !crash_get(k, what, &r))
            return false;
        if (reply_number(&r, "held") == before)
            break;
    }
    if (held != before || reply_number(&r, "confirmed") != s->confirmed[i] ||
        held + s->confirmed[i] > CRASH_SHARED_CAPACITY)
        crash_complain(k, "its holds are %lld held and %u confirmed, and the resource says %s",
                       held, s->confirmed[i], r.body);
    reply_free(&r);
    return !k->complaint[0];
}

static bool resources_check(struct crash_check *k, const struct shelf *s)
{
    bool fine = true;
    for (unsigned i = 0; i < CRASH_SHARED && fine; i++)
        fine = resource_check(k, s, i);
    return fine;
}

void crash_check_sum(const struct crash_check *k, struct crash_sum *sum)
{
    sum->holds = k->holds;
    sum->entries = k->entries;
    sum->judged = k->judged;
    sum->timed = k->timed;
}

bool crash_check_server(struct crash_check *k)
{
    struct shelf s = { .known = NULL };
    bool fine = shelf_fill(k, &s) && ends_check(k, &s) && holds_list(k, &s) &&
                resources_check(k, &s) && crash_check_rest(k);
    k->holds = s.count;
    free(s.known);
    return fine;
}

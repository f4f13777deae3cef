/* What a client asks for next. All kinds come all the time, and most can be refused: refusals are
 * remembered too. */
#include "crash/client.h"
#include "support/test.h"

void crash_list_add(struct crash_list *list, const void *item, size_t size)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->data = realloc(list->data, list->room * size);
        assert_non_null(list->data);
    }
    memcpy((char *)list->data + list->count++ * size, item, size);
}

void crash_forget(struct crash_client *c)
{
    free(c->holds.data);
    free(c->claims.data);
    free(c->again.data);
}

static unsigned below(struct crash_client *c, unsigned n)
{
    return (unsigned)test_below(&c->random, n);
}

static unsigned number(const struct crash_client *c)
{
    return (unsigned)c->ledger.count;
}

#define FIELDS(op, ...) snprintf((op)->fields, sizeof(op)->fields, __VA_ARGS__)
#define SUBJECT(op, ...) snprintf((op)->subject, sizeof(op)->subject, __VA_ARGS__)

/* ---- Holds ---- */

static bool place(struct crash_client *c, struct crash_op *op, bool batch)
{
    unsigned draw = below(c, 10), me = c->ledger.client;
    const char *duration = "1h";
    char brief[16], resource[32];
    snprintf(brief, sizeof brief, "%ums", 20 + below(c, 200));
    if (draw < 4) { /* which nobody else wants */
        snprintf(resource, sizeof resource, "c%u-%u", me, number(c));
    } else if (draw < 6) { /* which this client has held before, perhaps */
        snprintf(resource, sizeof resource, "pool-%u-%u", me, below(c, 5));
        duration = below(c, 2) ? brief : duration;
    } else {
        snprintf(resource, sizeof resource, "shared-%u", below(c, CRASH_SHARED));
        duration = below(c, 3) ? brief : duration;
    }
    op->kind = CRASH_PLACE;
    if (batch && below(c, 3) == 0) {
        op->kind = CRASH_NUMBERED;
        op->sequence = ++c->sequence;
    }
    FIELDS(op, "\"resource\":\"%s\",\"requester\":\"client %u\",\"duration\":\"%s\"", resource, me,
           duration);
    return true;
}

/* Confirm, release, expire or reverse a hold of its own: mostly one of the newest. */
static bool end(struct crash_client *c, struct crash_op *op, enum crash_kind kind)
{
    const unsigned *holds = c->holds.data;
    unsigned count = (unsigned)c->holds.count, id = 0;
    if (count == 0)
        return false;
    id = below(c, 4) ? count - 1 - below(c, count < 12 ? count : 12) : below(c, count);
    op->kind = kind;
    op->target = holds[id];
    crash_text(c->ledger.ops[holds[id]]->body, "id", op->subject, sizeof op->subject);
    return true;
}

/* ---- Guards and claims ---- */

/* All clients come by the same identities at about the same time. */
static bool admit(struct crash_client *c, struct crash_op *op)
{
    bool hashed = below(c, 3) == 0;
    op->kind = CRASH_ADMIT;
    SUBJECT(op, "%s", hashed ? "folded" : "plain");
    FIELDS(op, "\"identity\":\"%c-%u\",\"result\":\"c%u-%016u\"", hashed && below(c, 2) ? 'I' : 'i',
           number(c) / 6 + below(c, 4), c->ledger.client, number(c));
    return true;
}

static struct crash_claim claim_take(struct crash_client *c, struct crash_list *list)
{
    struct crash_claim *claims = list->data;
    unsigned at = below(c, (unsigned)list->count);
    struct crash_claim claim = claims[at];
    claims[at] = claims[--list->count];
    return claim;
}

static bool begin(struct crash_client *c, struct crash_op *op)
{
    unsigned draw = below(c, 8);
    op->kind = CRASH_BEGIN;
    if (draw < 3 && c->again.count) {
        SUBJECT(op, "%s", claim_take(c, &c->again).key);
    } else if (draw < 5) {
        SUBJECT(op, "all-%u", number(c) / 50);
        FIELDS(op, "\"payload\":{\"work\":1},\"lease\":\"150ms\",\"on_abandon\":\"retry\"");
        return true;
    } else {
        SUBJECT(op, "claim-%u-%u", c->ledger.client, number(c));
    }
    FIELDS(op, "\"payload\":{\"work\":2},\"lease\":\"1h\"");
    return true;
}

bool crash_claim_shared(const struct crash_op *op)
{
    return strncmp(op->subject, "all-", 4) == 0;
}

static bool settle(struct crash_client *c, struct crash_op *op)
{
    if (c->claims.count == 0)
        return false;
    struct crash_claim claim = claim_take(c, &c->claims);
    unsigned draw = below(c, 6);
    op->fence = claim.fence;
    SUBJECT(op, "%s", claim.key);
    if (draw < 3) {
        op->kind = CRASH_COMPLETE;
        FIELDS(op, "\"fence\":%llu,\"response\":{\"by\":\"c%u-%016u\"}",
               (unsigned long long)claim.fence, c->ledger.client, number(c));
        return true;
    }
    op->kind = CRASH_FAIL;
    FIELDS(op, "\"fence\":%llu,\"error\":\"c%u-%016u\",\"retryable\":%s",
           (unsigned long long)claim.fence, c->ledger.client, number(c),
           draw < 5 ? "true" : "false");
    return true;
}

/* ---- Leases and registers ---- */

static bool grant(struct crash_client *c, struct crash_op *op)
{
    op->kind = CRASH_GRANT;
    SUBJECT(op, "lease-%u", below(c, CRASH_LEASES));
    FIELDS(op, "\"holder\":\"client %u\",\"ttl\":\"%ums\"", c->ledger.client, 10 + below(c, 100));
    return true;
}

/* With the newest fence that it was given: sometimes for the first time, often again, sometimes too
 * late. */
static bool write_fenced(struct crash_client *c, struct crash_op *op)
{
    unsigned which = below(c, CRASH_LEASES);
    if (c->fences[which] == 0)
        return false;
    op->kind = CRASH_WRITE;
    SUBJECT(op, "fenced-%u", which);
    FIELDS(op, "\"value\":\"c%u-%016u\",\"fence\":%llu", c->ledger.client, number(c),
           (unsigned long long)c->fences[which]);
    return true;
}

/* One that all write, or its own, by version. */
static bool write_plain(struct crash_client *c, struct crash_op *op)
{
    op->kind = CRASH_WRITE;
    if (below(c, 2)) {
        SUBJECT(op, "written-%u", below(c, CRASH_REGISTERS));
        FIELDS(op, "\"value\":\"c%u-%016u\"", c->ledger.client, number(c));
    } else {
        SUBJECT(op, "version-%u", c->ledger.client);
        FIELDS(op, "\"value\":\"c%u-%016u\",\"if_version\":%u", c->ledger.client, number(c),
               c->version);
    }
    return true;
}

static bool merge(struct crash_client *c, struct crash_op *op)
{
    op->kind = CRASH_MERGE;
    if (below(c, 2)) {
        SUBJECT(op, "counter");
        FIELDS(op, "\"type\":\"counter\",\"value\":{\"c%u\":%u}", c->ledger.client, ++c->counted);
    } else {
        SUBJECT(op, "union-%u", number(c) * c->clients / 4000); /* it must not become too large */
        FIELDS(op, "\"type\":\"union\",\"value\":[\"c%u-%016u\"]", c->ledger.client, number(c));
    }
    return true;
}

/* ---- All of it ---- */

/* False: it cannot be, now. */
static bool draw(struct crash_client *c, struct crash_op *op, bool batch)
{
    unsigned at = below(c, 100);
    if (at < 30)
        return place(c, op, batch);
    if (at < 40)
        return end(c, op, CRASH_CONFIRM);
    if (at < 47)
        return end(c, op, CRASH_RELEASE);
    if (at < 50)
        return end(c, op, CRASH_EXPIRE);
    if (at < 55)
        return end(c, op, CRASH_REVERSE);
    if (at < 65)
        return admit(c, op);
    if (at < 73)
        return begin(c, op);
    if (at < 80)
        return settle(c, op);
    if (at < 84)
        return !batch && grant(c, op);
    if (at < 89)
        return write_fenced(c, op);
    if (at < 95)
        return write_plain(c, op);
    return merge(c, op);
}

struct crash_op *crash_choose(struct crash_client *c, bool batch)
{
    struct crash_op op = { .kind = CRASH_PLACE };
    while (!draw(c, &op, batch))
        op = (struct crash_op){ .kind = CRASH_PLACE };
    return crash_ledger_add(&c->ledger, &op);
}

static void learn_claim(struct crash_client *c, const struct crash_op *op)
{
    struct crash_claim claim = { .fence = op->fence };
    snprintf(claim.key, sizeof claim.key, "%s", op->subject);
    crash_list_add(op->kind == CRASH_FAIL ? &c->again : &c->claims, &claim, sizeof claim);
}

void crash_learn(struct crash_client *c, struct crash_op *op)
{
    if (!crash_op_done(op) && op->fence == 0)
        return;
    if (op->kind == CRASH_PLACE || op->kind == CRASH_NUMBERED)
        crash_list_add(&c->holds, &op->number, sizeof op->number);
    if (op->kind >= CRASH_CONFIRM && op->kind <= CRASH_REVERSE)
        crash_op_ends(c->ledger.ops[op->target], op);
    if (op->kind == CRASH_BEGIN && crash_op_done(op))
        op->fence = (uint64_t)crash_number(op->body, "fence");
    if (op->kind == CRASH_BEGIN ||
        (op->kind == CRASH_FAIL && crash_op_done(op) && !crash_claim_shared(op) &&
         strstr(op->fields, "\"retryable\":true")))
        learn_claim(c, op);
    if (op->kind == CRASH_GRANT)
        c->fences[strtoul(strchr(op->subject, '-') + 1, NULL, 10)] =
            (uint64_t)crash_number(op->body, "fence");
    if (op->kind == CRASH_WRITE && strncmp(op->subject, "version-", 8) == 0)
        c->version = (unsigned)crash_number(op->body, "version");
}

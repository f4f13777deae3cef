/* Guards, claims, leases and registers: the ledgers of all clients must fit each other. */
#include "crash/check.h"
#include "support/test.h"

#include <ctype.h>
#include <unistd.h>

static const struct crash_op *at(const void *entry)
{
    return *(struct crash_op *const *)entry;
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The first of the operations behind `from` that is about something else. */
static size_t run_end(struct crash_op **ops, size_t count, size_t from,
                      int (*by)(const void *, const void *))
{
    size_t to = from + 1;
    while (to < count && by(&ops[from], &ops[to]) == 0)
        to++;
    return to;
}

/* ---- Guards ---- */

static int by_identity(const void *a, const void *b)
{
    char x[48], y[48];
    int guard = strcmp(at(a)->subject, at(b)->subject);
    crash_text(at(a)->fields, "identity", x, sizeof x);
    crash_text(at(b)->fields, "identity", y, sizeof y);
    x[0] = y[0]; /* only its case differs, and only where the guard folds it */
    return guard ? guard : strcmp(x, y);
}

/* The operations about one identity: one of them was the first, and all others were told so. */
static bool identity_check(struct crash_check *k, struct crash_op **ops, size_t count)
{
    char owner[CRASH_NAME_MAX] = "", result[CRASH_NAME_MAX], when[48], recorded[48] = "";
    const struct crash_op *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!strstr(ops[i]->body, "\"seen\":false"))
            continue;
        if (first)
            return crash_complain(k, "both c%u-%u and c%u-%u were the first with %s", first->client,
                                  first->number, ops[i]->client, ops[i]->number, ops[i]->fields);
        first = ops[i];
        crash_op_name(first, owner);
    }
    for (size_t i = 0; i < count; i++) {
        if (ops[i] == first)
            continue;
        crash_text(ops[i]->body, "result", result, sizeof result);
        crash_text(ops[i]->body, "recorded_at", when, sizeof when);
        if (!owner[0])
            snprintf(owner, sizeof owner, "%s", result);
        if (!recorded[0])
            snprintf(recorded, sizeof recorded, "%s", when);
        if (strcmp(owner, result) != 0 || strcmp(recorded, when) != 0)
            return crash_complain(k, "c%u-%u was told that %s is %s's since %s: %s", ops[i]->client,
                                  ops[i]->number, ops[i]->fields, owner, recorded, ops[i]->body);
        /* If nobody was told to be the first, then the first is one who was told nothing. */
        char name[CRASH_NAME_MAX];
        if (!first && strcmp(crash_op_name(ops[i], name), owner) == 0 && ops[i]->doubts > 0)
            first = ops[i];
    }
    return first || crash_complain(k, "nobody is the first with %s", ops[0]->fields);
}

static bool guards_check(struct crash_check *k)
{
    size_t count;
    struct crash_op **ops = crash_gather(k, 1 << CRASH_ADMIT, true, by_identity, &count);
    bool fine = true;
    for (size_t i = 0, end; i < count && fine; i = end) {
        end = run_end(ops, count, i, by_identity);
        fine = identity_check(k, ops + i, end - i);
    }
    free(ops);
    return fine;
}

/* ---- Claims ---- */

static int by_subject(const void *a, const void *b)
{
    return strcmp(at(a)->subject, at(b)->subject);
}

/* A fail that was in doubt, and refused when it was sent again: perhaps it had been done, and
 * somebody has begun anew. */
static bool perhaps_given_up(const struct crash_op *op)
{
    return op->kind == CRASH_FAIL && !crash_op_done(op) && op->doubts > 0 &&
           strstr(op->fields, "\"retryable\":true");
}

/* By claim, and within it by fence; a begin stands in front of what settled it, and who was refused
 * at the end. */
static uint64_t fence_of(const struct crash_op *op)
{
    if (op->kind == CRASH_BEGIN)
        return op->status == 201 ? (uint64_t)crash_number(op->body, "fence")
               : op->fence       ? op->fence
                                 : UINT64_MAX;
    return crash_op_done(op) || perhaps_given_up(op) ? (uint64_t)crash_number(op->fields, "fence")
                                                     : UINT64_MAX;
}

static int by_claim(const void *a, const void *b)
{
    int order = by_subject(a, b);
    order = order ? order : compare(fence_of(at(a)), fence_of(at(b)));
    return order ? order : compare(at(a)->kind, at(b)->kind);
}

/* Two begins of one claim, the later under the higher fence: the earlier one had been given up, or
 * its time was over. */
static bool begin_follows(struct crash_check *k, const struct crash_op *a, const struct crash_op *b,
                          bool given_up)
{
    char over[40], begun[40];
    if (given_up || a->status != 201 || b->status != 201)
        return true;
    crash_text(a->body, "lease_expires_at", over, sizeof over);
    crash_text(b->body, "begun_at", begun, sizeof begun);
    return strcmp(begun, over) >= 0 ||
           crash_complain(k, "the claim %s was begun by c%u-%u until %s and by c%u-%u at %s",
                          a->subject, a->client, a->number, over, b->client, b->number, begun);
}

static bool claim_check(struct crash_check *k, struct crash_op **ops, size_t count)
{
    const struct crash_op *begun = NULL, *settled = NULL;
    bool given_up = false;
    for (size_t i = 0; i < count; i++) {
        struct crash_op *op = ops[i];
        bool retryable = op->kind == CRASH_FAIL && strstr(op->fields, "\"retryable\":true");
        if (fence_of(op) == UINT64_MAX)
            continue;
        if (settled)
            return crash_complain(
                k, "c%u-%u has something to do with the claim %s after c%u-%u had settled it",
                op->client, op->number, op->subject, settled->client, settled->number);
        if (op->kind == CRASH_BEGIN) {
            if (begun && fence_of(begun) == fence_of(op))
                return crash_complain(k, "c%u-%u and c%u-%u have begun %s with one fence",
                                      begun->client, begun->number, op->client, op->number,
                                      op->subject);
            if (begun && !begin_follows(k, begun, op, given_up))
                return false;
            begun = op;
            given_up = false;
        } else if (retryable) {
            given_up = true;
        } else {
            settled = op;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (ops[i]->kind == CRASH_BEGIN && ops[i]->status == 200 &&
            (!settled || strcmp(settled->body, ops[i]->body) != 0))
            return crash_complain(k, "c%u-%u was answered with a claim that nobody settled so: %s",
                                  ops[i]->client, ops[i]->number, ops[i]->body);
    return true;
}

static bool claims_check(struct crash_check *k)
{
    size_t count;
    unsigned kinds = 1 << CRASH_BEGIN | 1 << CRASH_COMPLETE | 1 << CRASH_FAIL;
    struct crash_op **ops = crash_gather(k, kinds, false, by_claim, &count);
    bool fine = true;
    for (size_t i = 0, end; i < count && fine; i = end) {
        end = run_end(ops, count, i, by_subject);
        fine = claim_check(k, ops + i, end - i);
    }
    free(ops);
    return fine;
}

/* ---- Leases ---- */

static int by_fence(const void *a, const void *b)
{
    int order = by_subject(a, b);
    return order ? order
                 : compare((uint64_t)crash_number(at(a)->body, "fence"),
                           (uint64_t)crash_number(at(b)->body, "fence"));
}

/* Nobody has a lease while another has it. */
static bool leases_check(struct crash_check *k)
{
    size_t count;
    struct crash_op **ops = crash_gather(k, 1 << CRASH_GRANT, true, by_fence, &count);
    for (size_t i = 1; i < count; i++) {
        const struct crash_op *a = ops[i - 1], *b = ops[i];
        char over[40], granted[40];
        crash_text(a->body, "expires_at", over, sizeof over);
        crash_text(b->body, "granted_at", granted, sizeof granted);
        if (by_subject(&ops[i - 1], &ops[i]) == 0 &&
            (by_fence(&ops[i - 1], &ops[i]) == 0 || strcmp(granted, over) < 0))
            crash_complain(k, "both c%u-%u and c%u-%u have the lease %s: %s, %s", a->client,
                           a->number, b->client, b->number, a->subject, a->body, b->body);
    }
    free(ops);
    return !k->complaint[0];
}

/* ---- Registers ---- */

static int by_version(const void *a, const void *b)
{
    int order = by_subject(a, b);
    return order ? order
                 : compare((uint64_t)crash_number(at(a)->body, "version"),
                           (uint64_t)crash_number(at(b)->body, "version"));
}

/* The register has as many versions as there were writes, and the value of the last. */
static bool register_check(struct crash_check *k, struct crash_op **ops, size_t count)
{
    char what[80];
    struct reply r;
    for (size_t i = 0; i < count; i++) {
        if (crash_number(ops[i]->body, "version") != (long long)i + 1)
            return crash_complain(k, "write %zu of %s is c%u-%u's, which was told %s", i + 1,
                                  ops[i]->subject, ops[i]->client, ops[i]->number, ops[i]->body);
        if (i > 0 && strncmp(ops[i]->subject, "fenced-", 7) == 0 &&
            crash_number(ops[i]->body, "fence") <= crash_number(ops[i - 1]->body, "fence"))
            return crash_complain(k, "the fence of %s falls with c%u-%u: %s, then %s",
                                  ops[i]->subject, ops[i]->client, ops[i]->number, ops[i - 1]->body,
                                  ops[i]->body);
    }
    snprintf(what, sizeof what, "GET /v1/registers/%s", ops[0]->subject);
    if (!crash_get(k, what, &r))
        return false;
    if (strcmp(r.body, ops[count - 1]->body) != 0)
        crash_complain(k, "the last of %zu writes to %s was told %s, and it is %s", count,
                       ops[0]->subject, ops[count - 1]->body, r.body);
    reply_free(&r);
    return !k->complaint[0];
}

/* A set has every member that was put in, and no other; a counter has every client's last count. */
static bool merged_check(struct crash_check *k, struct crash_op **ops, size_t count)
{
    char what[80], name[CRASH_NAME_MAX], member[48];
    struct reply r;
    bool counter = strcmp(ops[0]->subject, "counter") == 0;
    long long counted[CRASH_CLIENTS_MAX] = { 0 };
    snprintf(what, sizeof what, "GET /v1/registers/%s", ops[0]->subject);
    if (!crash_get(k, what, &r))
        return false;
    for (size_t i = 0; i < count && !counter; i++) {
        snprintf(member, sizeof member, "\"%s\"", crash_op_name(ops[i], name));
        if (!reply_has(&r, member))
            crash_complain(k, "%s has lost the member %s: %s", ops[0]->subject, member, r.body);
    }
    for (size_t i = 0; i < count && counter; i++) {
        snprintf(name, sizeof name, "c%u", ops[i]->client);
        long long n = crash_number(ops[i]->fields, name);
        counted[ops[i]->client] = n > counted[ops[i]->client] ? n : counted[ops[i]->client];
    }
    for (unsigned c = 0; c < k->clients && counter; c++) {
        snprintf(name, sizeof name, "c%u", c);
        if (counted[c] && crash_number(r.body, name) != counted[c])
            crash_complain(k, "client %u has counted to %lld, and the counter says %s", c,
                           counted[c], r.body);
    }
    /* Each merge adds something, so that there are as many versions as merges. */
    if (!counter && crash_number(r.body, "version") != (long long)count)
        crash_complain(k, "%zu merges have made this of %s: %s", count, ops[0]->subject, r.body);
    reply_free(&r);
    return !k->complaint[0];
}

static bool registers_check(struct crash_check *k)
{
    size_t count;
    bool fine = true;
    struct crash_op **ops = crash_gather(k, 1 << CRASH_WRITE, true, by_version, &count);
    for (size_t i = 0, end; i < count && fine; i = end) {
        end = run_end(ops, count, i, by_subject);
        fine = register_check(k, ops + i, end - i);
    }
    free(ops);
    ops = crash_gather(k, 1 << CRASH_MERGE, true, by_subject, &count);
    for (size_t i = 0, end; i < count && fine; i = end) {
        end = run_end(ops, count, i, by_subject);
        fine = merged_check(k, ops + i, end - i);
    }
    free(ops);
    return fine;
}

/* ---- All of it ---- */

static bool settled_check(struct crash_check *k)
{
    for (unsigned c = 0; c < k->clients; c++)
        for (size_t i = 0; i < k->ledgers[c].count; i++)
            if (k->ledgers[c].ops[i]->status == 0)
                return crash_complain(k, "c%u-%zu was never answered", c, i);
    return true;
}

bool crash_check_rest(struct crash_check *k)
{
    return settled_check(k) && guards_check(k) && claims_check(k) && leases_check(k) &&
           registers_check(k);
}

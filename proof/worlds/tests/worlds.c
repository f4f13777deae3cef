/* Every interleaving of three clients with three or four operations each, with the power cut after
 * any step, over one token, one resource, one claim and one fence. The library is the real one, on
 * the simulated disk; the judge says whether what everybody was told, before and after, could be
 * told.
 *
 * A run follows a schedule up to some step, whose operation the cut meets in one of three ways: it
 * was committed and its caller not told; it was written, not synced, and lost; it was written, not
 * synced, and is there all the same. Then the store is opened again, whoever had no answer asks
 * again, and everybody goes on to the end, one after the other. (A cut between two operations
 * leaves the same as one that loses the second.)
 *
 * HF_SCALE=full runs all of them; otherwise one in 97. */
#include "support/test.h"

#include "judge/judge.h"
#include "simulate/disk.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 3, STEPS = 4, ALL = CLIENTS * STEPS };
#define START INT64_C(1700000000000)

/* ---- Worlds ---- */

enum verb {
    END, /* of a client that has fewer steps */
    TICK,
    PLACE,
    CONFIRM,
    LATE, /* confirm, or reacquire */
    RELEASE,
    TOKEN,
    BEGIN,
    COMPLETE,
    HEARTBEAT,
    ABANDON,
    CLAIM,
    GRANT,
    RENEW,
    RETURN,
    WRITE,
    COUNT,
    READ
};

struct step {
    enum verb verb;
    const char *key;  /* of the call; of a claim */
    const char *what; /* who asks, the payload, the value */
    /* milliseconds, of a tick, and of a begin's retention; of a write: 1 means only if the version
     * is 1 */
    int64_t number;
};

struct world {
    const char *name;
    bool lists_claims; /* else the judge learns of claims from answers alone */
    struct step steps[CLIENTS][STEPS];
};

static const struct world worlds[] = {
    { "one token, one resource",
      false,
      { { { PLACE, "t", "a", 0 },
          { PLACE, "t", "a", 0 },
          { CONFIRM, "c", "", 0 },
          { TOKEN, "t", "", 0 } },
        { { PLACE, "t", "a", 0 },
          { RELEASE, "r", "", 0 },
          { PLACE, "t", "b", 0 },
          { PLACE, "u", "b", 0 } },
        { { TICK, "", "", 5000 },
          { PLACE, "v", "c", 0 },
          { TICK, "", "", 5000 },
          { PLACE, "t", "a", 0 } } } },
    { "one claim",
      false,
      { { { BEGIN, "k", "p", 0 },
          { COMPLETE, "k", "by a", 0 },
          { COMPLETE, "k", "by a", 0 },
          { BEGIN, "k", "p", 0 } },
        { { BEGIN, "k", "p", 0 },
          { COMPLETE, "k", "by b", 0 },
          { BEGIN, "k", "q", 0 },
          { CLAIM, "k", "", 0 } },
        { { TICK, "", "", 5000 },
          { BEGIN, "k", "p", 0 },
          { TICK, "", "", 11000 },
          { BEGIN, "k", "p", 0 } } } },
    { "one lease, one fenced register",
      false,
      { { { GRANT, "g", "a", 0 },
          { WRITE, "w", "by a", 0 },
          { WRITE, "w", "by a", 0 },
          { RENEW, "", "", 0 } },
        { { GRANT, "h", "b", 0 },
          { WRITE, "x", "by b", 0 },
          { RETURN, "", "", 0 },
          { COUNT, "", "b", 0 } },
        { { TICK, "", "", 5000 },
          { GRANT, "i", "c", 0 },
          { WRITE, "y", "by c", 1 },
          { READ, "", "", 0 } } } },
    /* A lease, and the retention of what is settled, end exactly with a tick. */
    { "a claim that is abandoned",
      true,
      { { { BEGIN, "k", "p", 5000 },
          { ABANDON, "k", "", 0 },
          { COMPLETE, "k", "by a", 0 },
          { BEGIN, "k", "p", 5000 } },
        { { BEGIN, "k", "p", 5000 }, { HEARTBEAT, "k", "", 0 }, { ABANDON, "k", "", 0 } },
        { { TICK, "", "", 5000 }, { BEGIN, "k", "p", 0 }, { TICK, "", "", 5000 } } } },
    { "a late confirm",
      false,
      { { { PLACE, "t", "a", 0 },
          { LATE, "l", "", 0 },
          { LATE, "l", "", 0 },
          { TOKEN, "l", "", 0 } },
        { { PLACE, "u", "b", 0 }, { LATE, "m", "", 0 }, { PLACE, "v", "b", 0 } },
        { { TICK, "", "", 5000 }, { RELEASE, "r", "", 0 }, { TICK, "", "", 5000 } } } },
};
enum { WORLDS = sizeof worlds / sizeof *worlds };

/* ---- One run ---- */

/* How the cut meets the last operation of the schedule. */
enum cut { COMMITTED, LOST, KEPT, CUTS };

struct run {
    const struct world *world;
    struct sim_disk_owner owner;
    struct sim_disk *disk;
    struct hf_db *db;
    struct judge *judges[2]; /* one for each way on after the cut; the second may be NULL */
    hf_time wall;
    bool keep;        /* does what was not synced survive? */
    bool cut_at_sync; /* the next sync meets the cut */
    uint64_t random;
    char hold[HF_ID_SIZE];         /* the newest that anybody was told of */
    char own[CLIENTS][HF_ID_SIZE]; /* the newest that each client placed */
    uint64_t fence[CLIENTS];
};

static int before(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    struct run *r = arg;
    (void)name;
    (void)at;
    (void)size;
    if (call != SIM_SYNC || !r->cut_at_sync)
        return 0;
    r->cut_at_sync = false;
    return SIM_POWER_CUT;
}

/* Everything is kept, or nothing. */
static uint32_t choose(void *arg, uint32_t n)
{
    const struct run *r = arg;
    return r->keep ? n - 1 : 0;
}

static hf_time wall_ms(void *arg)
{
    return ((const struct run *)arg)->wall;
}

static uint64_t monotonic_ns(void *arg)
{
    return (uint64_t)((const struct run *)arg)->wall * 1000000;
}

static int fill_random(void *arg, void *data, size_t size)
{
    struct run *r = arg;
    unsigned char *p = data;
    for (size_t i = 0; i < size; i++) {
        r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        p[i] = (unsigned char)(r->random >> 56);
    }
    return 0;
}

static const struct judge_rules rules = { .idempotency_window_ms = 10000, .token_max_length = 256 };

static void quiet(void *arg, const char *sentence)
{
    (void)arg;
    (void)sentence;
}

/* What is said after the power went reaches nobody. */
static void on_unknown(void *arg, const struct hf_claim *claim)
{
    struct run *r = arg;
    for (size_t i = 0; i < 2 && r->judges[i] && !sim_disk_is_cut(r->disk); i++)
        judge_lapsed(r->judges[i], r->wall, claim);
}

static void run_open(struct run *r)
{
    struct hf_options options = { .idempotency_window_ms = rules.idempotency_window_ms,
                                  .no_background = true,
                                  .no_committer = true,
                                  .segment_max_bytes = 131072,
                                  .io = sim_disk_io(r->disk),
                                  .on_fatal = quiet,
                                  .on_unknown = on_unknown,
                                  .arg = r };
    struct hf_error why;
    enum hf_status st = hf_open("store", &options, &r->db, &why);
    if (st != HF_OK)
        fail_msg("cannot open: %s", why.text);
}

/* The request of a step, with what its client knows by now. */
static struct hf_request request_of(const struct run *r, int client, const struct step *s)
{
    static const struct hf_item one = { { "b", 1 }, 1, 0 };
    static const struct hf_value count = { .type = HF_TYPE_COUNTER,
                                           .items = &one,
                                           .item_count = 1 };
    struct hf_request q = { .key = hf_str(s->key) };
    uint64_t fence = r->fence[client] ? r->fence[client] : 1;
    switch (s->verb) {
    case PLACE:
        q.action = HF_PLACE_HOLD;
        q.place_hold.resource = hf_str("room");
        q.place_hold.requester = hf_str(s->what);
        q.place_hold.duration_ms = 5000;
        break;
    case CONFIRM:
    case LATE:
    case RELEASE:
        q.action = s->verb == CONFIRM ? HF_CONFIRM : s->verb == LATE ? HF_CONFIRM_LATE : HF_RELEASE;
        q.hold.id = hf_str(s->verb == LATE ? r->own[client] : r->hold);
        break;
    case TOKEN: q.action = HF_GET_TOKEN; break;
    case BEGIN:
        q.action = HF_BEGIN;
        q.begin.payload = hf_str(s->what);
        q.begin.lease_ms = 5000;
        q.begin.retention_ms = s->number;
        q.begin.on_abandon = client == 1 ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
        break;
    case COMPLETE:
        q.action = HF_COMPLETE;
        q.settle.fence = fence;
        q.settle.response = hf_str(s->what);
        break;
    case HEARTBEAT:
    case ABANDON:
        q.action = s->verb == HEARTBEAT ? HF_HEARTBEAT : HF_ABANDON;
        q.settle.fence = fence;
        break;
    case CLAIM: q.action = HF_GET_CLAIM; break;
    case GRANT:
        q.action = HF_GRANT;
        q.lease.name = hf_str("desk");
        q.lease.holder = hf_str(s->what);
        q.lease.ttl_ms = 5000;
        break;
    case RENEW:
    case RETURN:
        q.action = s->verb == RENEW ? HF_RENEW : HF_RETURN;
        q.lease.name = hf_str("desk");
        q.lease.fence = fence;
        break;
    case WRITE:
        q.action = HF_WRITE;
        q.write.name = hf_str("file");
        q.write.value = hf_str(s->what);
        q.write.fence = fence;
        q.write.has_if_version = s->number != 0;
        q.write.if_version = (uint64_t)s->number;
        break;
    case COUNT:
        q.action = HF_MERGE;
        q.merge.name = hf_str("visits");
        q.merge.value = &count;
        break;
    case READ:
        q.action = HF_GET_REGISTER;
        q.get.name = hf_str("file");
        break;
    case TICK:
    case END: break;
    }
    return q;
}

struct asked {
    struct hf_op op;
    bool done;
    enum hf_status status;
};

static void asked_done(struct hf_op *op, enum hf_status status)
{
    struct asked *a = op->arg;
    a->done = true;
    a->status = status;
}

/* What the caller takes from an answer. */
static void learn(struct run *r, int client, enum verb verb, const struct hf_result *result)
{
    const struct hf_answer *a = &result->answer;
    if (a->status == HF_OK && a->kind == HF_RECORD_HOLD)
        memcpy(r->hold, a->hold.id, sizeof r->hold);
    if (a->status == HF_OK && verb == PLACE)
        memcpy(r->own[client], a->hold.id, sizeof r->own[client]);
    if (a->status == HF_OK && a->kind == HF_RECORD_CLAIM && a->claim.state == HF_CLAIM_STARTED)
        r->fence[client] = a->claim.fence;
    if (a->status == HF_OK && a->kind == HF_RECORD_LEASE)
        r->fence[client] = a->lease.fence;
}

/* Carry one step out. tell: is the caller told? cut_at_sync: its commit meets the cut. */
static void run_step(struct run *r, int client, const struct step *s, bool tell)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_request q = request_of(r, client, s);
    struct asked asked = { .op = { .request = &q, .result = &result, .done = asked_done } };
    if (s->verb == TICK) {
        r->wall += s->number;
        hf_maintain(r->db);
        for (size_t i = 0; i < 2 && r->judges[i] && !sim_disk_is_cut(r->disk); i++)
            judge_maintained(r->judges[i], r->wall, NULL);
        return;
    }
    asked.op.arg = &asked;
    hf_submit(r->db, &asked.op);
    uint64_t numbers[2] = { 0 };
    for (size_t i = 0; i < 2 && r->judges[i]; i++)
        numbers[i] = judge_decided(r->judges[i], r->wall, JUDGE_FAIR, &q, NULL,
                                   asked.done ? asked.status : asked.op.status, &result);
    hf_flush(r->db);
    if (!asked.done)
        fail_msg("a flush did not answer");
    if (tell && asked.status != HF_INDETERMINATE) {
        for (size_t i = 0; i < 2 && r->judges[i]; i++)
            judge_shown(r->judges[i], numbers[i], asked.status, &result);
        learn(r, client, s->verb, &result);
    }
    hf_result_clear(&result);
}

/* ---- Looking ---- */

struct looked {
    struct hf_page holds, resources, claims;
    struct judge_view view;
};

static void run_look(struct run *r, struct looked *l)
{
    struct hf_query holds = { .kind = HF_LIST_HOLDS }, resources = { .kind = HF_LIST_RESOURCES };
    struct hf_query claims = { .kind = HF_LIST_CLAIMS };
    l->claims = (struct hf_page){ .count = 0 };
    if (hf_list(r->db, &holds, &l->holds) != HF_OK ||
        hf_list(r->db, &resources, &l->resources) != HF_OK ||
        (r->world->lists_claims && hf_list(r->db, &claims, &l->claims) != HF_OK))
        fail_msg("cannot list");
    l->view = (struct judge_view){ .now = r->wall,
                                   .holds = l->holds.holds,
                                   .hold_count = l->holds.count,
                                   .resources = l->resources.resources,
                                   .resource_count = l->resources.count,
                                   .lists_claims = r->world->lists_claims,
                                   .claims = l->claims.claims,
                                   .claim_count = l->claims.count };
}

static void looked_clear(struct looked *l)
{
    hf_page_clear(&l->holds);
    hf_page_clear(&l->resources);
    hf_page_clear(&l->claims);
}

/* ---- Schedules ---- */

/* Has the client a step after the first `after`? */
static bool has_step(const struct world *world, int client, int after)
{
    return after < STEPS && world->steps[client][after].verb != END;
}

/* A store in a new world, with one judge or two. */
static void run_begin(struct run *r, const struct world *world, size_t judges)
{
    *r = (struct run){ .world = world, .wall = START, .random = 1 };
    r->owner = (struct sim_disk_owner){ .arg = r,
                                        .before = before,
                                        .choose = choose,
                                        .wall_ms = wall_ms,
                                        .monotonic_ns = monotonic_ns,
                                        .random = fill_random };
    r->disk = sim_disk_new(&r->owner);
    run_open(r);
    for (size_t i = 0; i < judges; i++) {
        r->judges[i] = judge_new();
        judge_opened(r->judges[i], &rules);
    }
}

/* Follow the schedule, with the cut at its last step. */
static void run_to_cut(struct run *r, const char *schedule, bool at_sync, int at[CLIENTS])
{
    const struct world *world = r->world;
    size_t length = strlen(schedule);
    for (size_t i = 0; i + 1 < length; i++) {
        int client = schedule[i] - '0';
        run_step(r, client, &world->steps[client][at[client]++], true);
    }
    int last = schedule[length - 1] - '0';
    r->cut_at_sync = at_sync;
    run_step(r, last, &world->steps[last][at[last]], false);
    r->cut_at_sync = false;
    if (!sim_disk_is_cut(r->disk))
        sim_disk_cut(r->disk);
    hf_close(r->db);
}

/* The other way on: the same world, on a copy of the disk, with the second judge. */
static void run_part(struct run *r, struct run *other)
{
    *other = *r;
    other->owner.arg = other;
    other->disk = sim_disk_copy(r->disk, &other->owner);
    other->judges[0] = r->judges[1];
    other->judges[1] = r->judges[1] = NULL;
}

static void run_recover(struct run *r, bool keep)
{
    struct looked l;
    judge_crashed(r->judges[0]);
    r->keep = keep;
    sim_disk_restart(r->disk);
    run_open(r);
    run_look(r, &l);
    judge_recovered(r->judges[0], &rules, &l.view);
    looked_clear(&l);
}

static void verdict(const struct run *r, const char *schedule, enum cut cut)
{
    static const char *const words[] = { "committed", "lost", "kept" };
    const char *objection = judge_verdict(r->judges[0]);
    if (objection)
        fail_msg("%s, schedule %s, cut at its last step (%s): %s", r->world->name, schedule,
                 words[cut], objection);
}

/* Open the store after the cut, go on to the end, beginning with whose step was cut, and end the
 * world. */
static void run_on(struct run *r, const char *schedule, enum cut cut, const int reached[CLIENTS])
{
    int at[CLIENTS], last = schedule[strlen(schedule) - 1] - '0';
    memcpy(at, reached, sizeof at);
    run_recover(r, cut == KEPT);
    for (int client = last, n = 0; n < CLIENTS; n++, client = (client + 1) % CLIENTS)
        while (has_step(r->world, client, at[client]))
            run_step(r, client, &r->world->steps[client][at[client]++], true);
    struct looked l;
    run_look(r, &l);
    judge_looked(r->judges[0], &l.view);
    looked_clear(&l);
    verdict(r, schedule, cut);
    hf_close(r->db);
    judge_free(r->judges[0]);
    sim_disk_free(r->disk);
}

/* Follow `schedule` ('0', '1', '2': whose turn it is), cut at its last step in each of the ways
 * that are wanted, and go on to the end. What is lost and what is kept are two ways on from the
 * same cut: up to there they are one run. */
static void run_schedule(const struct world *world, const char *schedule, const bool wanted[CUTS])
{
    struct run r, other;
    if (wanted[COMMITTED]) {
        int at[CLIENTS] = { 0 };
        run_begin(&r, world, 1);
        run_to_cut(&r, schedule, false, at);
        run_on(&r, schedule, COMMITTED, at);
    }
    if (wanted[LOST] || wanted[KEPT]) {
        int at[CLIENTS] = { 0 };
        bool both = wanted[LOST] && wanted[KEPT];
        run_begin(&r, world, both ? 2 : 1);
        run_to_cut(&r, schedule, true, at);
        if (both) {
            run_part(&r, &other);
            run_on(&other, schedule, LOST, at);
        }
        run_on(&r, schedule, wanted[KEPT] ? KEPT : LOST, at);
    }
}

struct walk {
    const struct world *world;
    char schedule[ALL + 1];
    int used[CLIENTS];
    uint64_t seen, stride; /* runs; one in how many is wanted */
    uint64_t schedules;    /* with a wanted run; every second one is this process's */
    uint64_t parity, runs;
};

/* The runs of the present schedule. */
static void walk_here(struct walk *w, int last)
{
    bool tick = w->world->steps[last][w->used[last] - 1].verb == TICK, wanted[CUTS] = { false };
    uint64_t count = 0;
    for (int cut = 0; cut < (tick ? 1 : CUTS); cut++) {
        wanted[cut] = w->seen++ % w->stride == 0;
        count += wanted[cut];
    }
    if (count == 0 || w->schedules++ % 2 != w->parity)
        return;
    run_schedule(w->world, w->schedule, wanted);
    w->runs += count;
}

/* Every schedule that begins with the present one. */
static void walk(struct walk *w, size_t length)
{
    if (length > 0)
        walk_here(w, w->schedule[length - 1] - '0');
    for (int client = 0; client < CLIENTS; client++) {
        if (!has_step(w->world, client, w->used[client]))
            continue;
        w->schedule[length] = (char)('0' + client);
        w->used[client]++;
        walk(w, length + 1);
        w->used[client]--;
        w->schedule[length] = 0;
    }
}

/* All of one world, shared among two processes. */
static void world_run(const struct world *world)
{
    const char *scale = getenv("HF_SCALE");
    struct walk w = { .world = world, .stride = scale && strcmp(scale, "full") == 0 ? 1 : 97 };
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    w.parity = child == 0;
    walk(&w, 0);
    if (child == 0)
        _exit(0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    print_message("%s: %llu runs out of %llu in this process, the others in another\n", world->name,
                  (unsigned long long)w.runs, (unsigned long long)w.seen);
    assert_true(w.runs > 0);
}

static void test_token(void **state)
{
    (void)state;
    world_run(&worlds[0]);
}

static void test_claim(void **state)
{
    (void)state;
    world_run(&worlds[1]);
}

static void test_fence(void **state)
{
    (void)state;
    world_run(&worlds[2]);
}

static void test_abandon(void **state)
{
    (void)state;
    world_run(&worlds[3]);
}

static void test_late(void **state)
{
    (void)state;
    world_run(&worlds[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_token), cmocka_unit_test(test_claim),
                                        cmocka_unit_test(test_fence),
                                        cmocka_unit_test(test_abandon),
                                        cmocka_unit_test(test_late) };
    /* Each run frees all that it had. If that went back to the kernel, the next one would fetch it
     * again, page by page. */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    mallopt(M_MMAP_THRESHOLD, 1 << 24);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

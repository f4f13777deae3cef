/* The primary is killed, its standby promoted, the old one revived, while two servers of Holdfast,
 * which are killed too and whose connections are cut at COMMIT, and sixteen clients go on. What
 * each client asked for, was told, and when, goes to the judge: what was acknowledged is there, and
 * nothing happened twice. Before some of these deaths the waits for the standby are given up, so
 * that the old primary shows what the new one will not have. The controls: with asynchronous
 * replication the same test sees a loss.
 *
 *   HF_CYCLES=N postgres_failover     as many cycles, in rounds of 20, each with a store of its own
 *                                     */
#include "crash/check.h"
#include "postgres/kit/relay.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    SERVERS = 2,
    CUTS = RELAY_CUT_IN_ANSWER + 1,
    CLIENTS = 16,
    ROUND = 20,       /* cycles with one store */
    PAUSE_US = 40000, /* of a client between two requests, at most */
    SLOW = 10,        /* the cycle of a round in which that takes AWAY_MS */
    GIVEN_UP = 4,     /* in one of so many cycles the waits for the standby are given up first */
    SHOWN_MS = 400,   /* for so long, until what all clients have asked for can be seen */
    TOLD_MS = 1500,   /* and clients have so long to be told what came of it */
    AWAY_MS = 11000,
    ENOUGH = 60, /* so much goes on between two things that happen */
};

static struct postgres a, b, *primary, *standby;
static struct relay relay;          /* between the standby and its primary */
static struct relay gates[2];       /* between servers of Holdfast and a, b */
static uint64_t cuts[RELAY_FAULTS]; /* at a COMMIT, by their kind */
static struct server servers[SERVERS];
static struct crash_crowd crowd;
static uint64_t draws;
static bool is_cut_off;                          /* the standby, by the relay */
static unsigned cycles_done, cycles_all, killed; /* killed: servers of Holdfast */
static uint64_t unknown;      /* operations of which a server said that it cannot tell */
static uint64_t unreplicated; /* keys that a primary showed and took with it */

/* ---- Complaints ---- */

static struct crash_check check_of(const struct postgres *p, const struct crash_ledger *ledgers)
{
    return (struct crash_check){ .server = &servers[0],
                                 .postgres = postgres_conninfo(p),
                                 .ledgers = ledgers,
                                 .clients = CLIENTS,
                                 .program = crash_program() };
}

/* What the clients wrote, the servers said and the journal has, stays. */
static _Noreturn void accuse(const char *complaint)
{
    char file[600];
    for (unsigned i = 0; i < 2; i++) {
        struct crash_check k = check_of(i == 0 ? primary : standby, NULL);
        if (postgres_accepting(i == 0 ? primary : standby) && crash_check_export(&k, file))
            break;
    }
    for (unsigned i = 0; i < SERVERS; i++) {
        print_error("kept: %s (%slog)\n", servers[i].dir,
                    i == 0 ? "ledger-0 .., export.jsonl, " : "");
        servers[i].dir = NULL;
    }
    fail_msg("cycle %u: %s", cycles_done + 1, complaint);
    abort(); /* it does not come back, but does not say so */
}

/* Wait until so many more operations were acknowledged. */
static void more(unsigned count)
{
    uint64_t wanted = crash_crowd_acknowledged(&crowd) + count;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         crash_crowd_acknowledged(&crowd) < wanted; server_pause_ms(2)) {
        if (crash_crowd_accused(&crowd))
            accuse(crowd.complaint);
        if (server_clock_ms() > until)
            accuse("nothing goes on");
    }
}

/* ---- Servers of Holdfast ---- */

static void server_make(unsigned i)
{
    static char conninfos[SERVERS][POSTGRES_CONNINFO_MAX];
    static const char *argvs[SERVERS][16];
    struct server *s = &servers[i];
    server_init(s);
    s->port = crash_port_find();
    server_fix_port(s);
    postgres_conninfo_pair(conninfos[i], &(struct postgres){ .port = gates[i].port },
                           &(struct postgres){ .port = gates[1 - i].port });
    const char *const argv[] = { crash_program(),
                                 "serve",
                                 "--store",
                                 "postgres",
                                 "--postgres",
                                 conninfos[i],
                                 "--listen",
                                 s->address,
                                 "--threads",
                                 "1",
                                 "--log-duplicates",
                                 "no",
                                 "--sandbox",
                                 WATCH_SANITIZED ? "off" : "on",
                                 NULL };
    memcpy(argvs[i], argv, sizeof argv);
    s->argv = argvs[i];
}

/* Start it, again and again while there is no database that it could write to. */
static void server_up(unsigned i)
{
    struct server *s = &servers[i];
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; server_clock_ms() < until;
         server_pause_ms(20)) {
        server_begin(s);
        if (crash_listens(s))
            return;
        server_kill(s);
    }
    accuse("a server does not start");
}

/* Wait until the server has an answer out of the database. */
static void server_reaches(unsigned i)
{
    int status = 0;
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS; status != 200;
         server_pause_ms(5)) {
        int fd = server_try_connect(&servers[i]);
        struct reply r;
        if (fd >= 0 && server_call(fd, "GET /v1/resources/shared-0", "", NULL, &r)) {
            status = r.status;
            reply_free(&r);
        }
        if (fd >= 0)
            close(fd);
        if (server_clock_ms() > until)
            accuse("a server does not find the new primary");
    }
}

static void server_down(unsigned i)
{
    server_kill(&servers[i]);
    killed++;
}

/* ---- A round ---- */

static void round_begin(enum postgres_copy how)
{
    postgres_init(&a);
    postgres_init(&b);
    primary = &a;
    standby = &b;
    postgres_start(primary);
    relay_start(&gates[0], a.port);
    relay_start(&gates[1], b.port);
    relay_start(&relay, a.port);
    postgres_follow(standby, primary, how, relay.port);
    crowd = (struct crash_crowd){
        .count = CLIENTS, .servers = SERVERS, .seed = test_random(&draws), .pause_us = PAUSE_US
    };
    for (unsigned i = 0; i < SERVERS; i++) {
        server_make(i);
        server_up(i);
        crowd.to[i] = servers[i];
    }
    crowd.dir = servers[0].dir;
    if (!crash_furnish(&servers[0]))
        accuse("the store could not be furnished");
    if (!crash_crowd_start(&crowd))
        accuse(crowd.complaint);
}

static void round_end(void)
{
    crash_crowd_free(&crowd);
    for (unsigned i = 0; i < SERVERS; i++) {
        if (servers[i].pid > 0)
            server_kill(&servers[i]);
        if (servers[i].dir)
            server_end(&servers[i]);
        servers[i].dir = NULL;
    }
    for (unsigned i = 0; i < 2; i++)
        if (gates[i].pid) {
            for (unsigned fault = 0; fault < RELAY_FAULTS; fault++)
                cuts[fault] += relay_count(&gates[i], fault);
            relay_end(&gates[i]);
        }
    if (relay.pid)
        relay_end(&relay);
    postgres_end(&a);
    postgres_end(&b);
}

/* When in a cycle a server of Holdfast is killed. It is started again when there is one primary:
 * who has never seen the new one cannot tell the old one from it (doc/POSTGRES.md). */
enum when { NEVER, BEFORE, TOGETHER, BOTH, BEHIND, WHILE_TWO, WHENS };

/* Two connections are cut at COMMIT: before it, in the middle of it, behind it, each in its
 * turn. */
static void commits_are_cut(void)
{
    struct relay *gate = primary == &a ? &gates[0] : &gates[1];
    enum relay_fault fault = (enum relay_fault)(cycles_done % CUTS);
    uint64_t before = relay_count(gate, fault);
    relay_at_commit(gate, fault, 2);
    relay_await(gate, fault, before + 2);
    more(ENOUGH);
}

/* The standby falls silent for a moment, or what is sent to it does not arrive: commits are under
 * way and not answered. */
static void commits_hang(void)
{
    is_cut_off = test_below(&draws, 2);
    if (is_cut_off)
        relay_black_hole(&relay, true);
    else
        postgres_pause(standby);
    server_pause_ms((int)test_below(&draws, 60));
}

/* The standby goes on. dead: without what had not arrived when the primary died. */
static void standby_goes_on(bool dead)
{
    if (is_cut_off && dead)
        relay_cut_all(&relay);
    if (is_cut_off)
        relay_black_hole(&relay, false);
    else if (standby->paused)
        postgres_resume(standby);
    is_cut_off = false;
}

/* A server dies while its commits are under way, and they happen all the same, behind the back of
 * who asks elsewhere. */
static void dies_in_commit(unsigned victim)
{
    commits_hang();
    server_down(victim);
    server_pause_ms((int)test_below(&draws, 20));
    standby_goes_on(false);
    more(ENOUGH);
    server_up(victim);
}

/* Nobody notices for a while that the primary is dead: longer than servers wait to find out about
 * their commits. */
static void dies_for_long(void)
{
    commits_hang();
    server_pause_ms(50);
    postgres_stop(primary, POSTGRES_KILL);
    server_pause_ms(AWAY_MS);
    standby_goes_on(true);
    postgres_promote(standby);
}

/* Give up all waits of batches for the standby, for a while: what they wrote can be seen from now
 * on. */
static void waits_given_up(bool ended, int ms)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "SELECT %s(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'",
        ended ? "pg_terminate_backend" : "pg_cancel_backend");
    for (int64_t until = server_clock_ms() + ms; server_clock_ms() < until; server_pause_ms(20))
        postgres_try(primary, sql);
}

/* The standby hears nothing, the waits for it are given up, and both servers are killed and started
 * again: their clients ask the new ones, for which nothing is in doubt but what the database shows.
 * Then all that goes with the primary. */
static void dies_given_up(void)
{
    bool ended = test_below(&draws, 2), restarts = test_below(&draws, 2);
    is_cut_off = true;
    relay_black_hole(&relay, true);
    waits_given_up(ended, SHOWN_MS);
    for (unsigned i = 0; i < SERVERS; i++)
        server_down(i);
    if (restarts) {
        postgres_stop(primary, POSTGRES_KILL);
        postgres_start(primary);
    }
    for (unsigned i = 0; i < SERVERS; i++)
        server_up(i);
    waits_given_up(ended, TOLD_MS);
    long long shown = postgres_number(primary, "SELECT count(*) FROM holdfast.token");
    postgres_stop(primary, POSTGRES_KILL);
    standby_goes_on(true);
    postgres_promote(standby);
    long long has = postgres_number(standby, "SELECT count(*) FROM holdfast.token");
    unreplicated += shown > has ? (uint64_t)(shown - has) : 0;
}

/* The primary dies, and one or both servers at the same moment: sometimes just before it, sometimes
 * just after. What was under way may have come to the standby, or not. */
static void dies(enum when when, unsigned victim)
{
    bool too[SERVERS] = { when == BOTH || (when == TOGETHER && victim == 0),
                          when == BOTH || (when == TOGETHER && victim == 1) };
    bool first = test_below(&draws, 2);
    if (test_below(&draws, 2))
        commits_hang();
    for (unsigned i = 0; i < SERVERS && first; i++)
        if (too[i])
            server_down(i);
    postgres_stop(primary, POSTGRES_KILL);
    for (unsigned i = 0; i < SERVERS && !first; i++)
        if (too[i])
            server_down(i);
    standby_goes_on(true);
    postgres_promote(standby);
    for (unsigned i = 0; i < SERVERS; i++)
        if (too[i])
            server_up(i);
}

/* What a server lists first is newer than anything that the old primary has. */
static void list_is_new(unsigned i)
{
    char query[160];
    struct reply r;
    server_ask(&servers[i], "GET /v1/holds?limit=1", "", NULL, &r);
    if (r.status != 200)
        accuse(r.body);
    snprintf(query, sizeof query, "SELECT count(*) FROM holdfast.hold WHERE id = '%s'",
             reply_text(&r, "id"));
    if (!reply_text(&r, "id")[0] || postgres_number(primary, query) != 0)
        accuse("a list is that of the old primary");
    reply_free(&r);
}

/* The old primary comes back as it was, and takes writes if anybody lets it: nobody may who has
 * seen the new one. */
static void old_comes_back(enum when when, unsigned victim)
{
    for (unsigned i = 0; i < SERVERS; i++)
        server_reaches(i);
    postgres_set(primary, "synchronous_standby_names", "");
    postgres_start(primary);
    long long written = postgres_number(primary, "SELECT count(*) FROM holdfast.journal");
    postgres_run(standby, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                          "application_name = 'holdfast'");
    if (when == WHILE_TWO)
        server_down(victim);
    more(ENOUGH);
    if (postgres_number(primary, "SELECT count(*) FROM holdfast.journal") != written)
        accuse("the old primary was written to");
    for (unsigned i = 0; i < SERVERS; i++)
        if (servers[i].pid)
            list_is_new(i);
    postgres_stop(primary, POSTGRES_IMMEDIATE);
    if (when == WHILE_TWO)
        server_up(victim);
}

static void cycle(void)
{
    bool slow = cycles_done % ROUND == SLOW, given_up = cycles_done % GIVEN_UP == 1;
    enum when when = slow || given_up ? NEVER : (enum when)((cycles_done + 2) % WHENS);
    unsigned victim = (unsigned)test_below(&draws, SERVERS);
    more(ENOUGH);
    commits_are_cut();
    if (when == BEFORE)
        dies_in_commit(victim);
    if (slow)
        dies_for_long();
    else if (given_up)
        dies_given_up();
    else
        dies(when, victim);
    more(ENOUGH);
    if (when == BEHIND) {
        server_down(victim);
        server_up(victim);
    }
    old_comes_back(when, victim);
    struct postgres *old = primary;
    primary = standby;
    standby = old;
    relay_target(&relay, primary->port);
    postgres_follow(standby, primary, POSTGRES_SYNC, relay.port);
    cycles_done++;
    if (isatty(2))
        fprintf(stderr,
                "\rcycle %u of %u, %" PRIu64 " operations acknowledged since the last judgement ",
                cycles_done, cycles_all, crash_crowd_acknowledged(&crowd));
}

/* Everyone has come to an end: compare. */
static void round_judge(struct crash_sum *sum)
{
    struct crash_ledger ledgers[CLIENTS];
    if (!crash_crowd_end(&crowd))
        accuse(crowd.complaint);
    crash_crowd_sum(&crowd, sum);
    if (!crash_crowd_read(&crowd, ledgers))
        accuse(crowd.complaint);
    struct crash_check k = check_of(primary, ledgers);
    if (!crash_check_server(&k))
        accuse(k.complaint);
    for (unsigned i = 0; i < SERVERS; i++)
        if (server_stop(&servers[i]) != 0)
            accuse("a server did not end in order");
    if (!crash_check_journal(&k))
        accuse(k.complaint);
    crash_check_sum(&k, sum);
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (size_t n = 0; n < ledgers[i].count; n++)
            unknown += ledgers[i].ops[n]->unknowns > 0;
        crash_ledger_free(&ledgers[i]);
    }
}

/* ---- The tests ---- */

static bool is_full(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

static void sum_add(struct crash_sum *to, const struct crash_sum *more)
{
    uint64_t *sums = (uint64_t *)to;
    const uint64_t *parts = (const uint64_t *)more;
    for (size_t i = 0; i < sizeof *to / sizeof *sums; i++)
        sums[i] += parts[i];
}

/* When a primary dies is left to chance. Go on until one has died with rows that only it had: a
 * test that never meets that is blind. */
static bool goes_on(void)
{
    enum { LONGER = 20 };
    bool blind = cycles_all >= 2 && unreplicated == 0;
    return cycles_done < cycles_all + (blind ? LONGER : 0);
}

static void what_was_acknowledged_survives_every_failover(void **state)
{
    struct crash_sum all = { .acknowledged = 0 };
    (void)state;
    cycles_all = getenv("HF_CYCLES") ? (unsigned)atoi(getenv("HF_CYCLES")) : is_full() ? ROUND : 2;
    draws = test_seed("failover", 20261116);
    while (goes_on()) {
        struct crash_sum sum = { .acknowledged = 0 };
        round_begin(POSTGRES_SYNC);
        for (unsigned i = 0; i < ROUND && goes_on(); i++)
            cycle();
        more(ENOUGH);
        round_judge(&sum);
        round_end();
        sum_add(&all, &sum);
    }
    uint64_t cut = 0;
    for (unsigned i = 0; i < CUTS; i++) {
        cut += cuts[i];
        assert_true(cuts[i] > 0 || cycles_all < CUTS);
    }
    print_message("%u cycles, %u servers killed and %" PRIu64
                  " connections cut at COMMIT besides, %" PRIu64
                  " operations acknowledged, none lost, none twice\n",
                  cycles_done, killed, cut, all.acknowledged);
    crash_sum_print(&all);
    print_message("%" PRIu64 " operations were told that their outcome is not known yet\n",
                  unknown);
    print_message("%" PRIu64 " keys were shown by a primary and not by its successor\n",
                  unreplicated);
    /* A test in which nothing is in doubt, or in which the order of the callers is not looked at,
     * is blind. */
    assert_true(all.in_doubt > 0 && all.timed > all.entries / 2);
    assert_true(unreplicated > 0 || cycles_all < 2);
    assert_true(!is_full() || (all.survived > 0 && all.undone > 0 && unknown > 0));
    for (unsigned i = 0; i < CRASH_KINDS && is_full(); i++)
        assert_true(all.kinds[i] > 0 ||
                    i == CRASH_EXPIRE); /* the servers expire holds before clients come to it */
}

/* The standby is behind when the primary dies: what it had not received is lost, although it was
 * acknowledged. If this test saw nothing, the one above would prove nothing. */
static void without_a_synchronous_standby_the_judge_sees_the_loss(void **state)
{
    struct crash_ledger ledgers[CLIENTS];
    (void)state;
    round_begin(POSTGRES_ASYNC);
    more(ENOUGH);
    relay_black_hole(&relay, true); /* the standby hears nothing more */
    more(2 * ENOUGH);
    assert_true(crash_crowd_end(&crowd)); /* for all that they can see, all is well */
    assert_true(crash_crowd_read(&crowd, ledgers));
    dies(BOTH, 0);
    struct crash_check k = check_of(standby, ledgers);
    assert_false(crash_check_server(&k));
    print_message("found by asking: %.200s\n", k.complaint);
    k.complaint[0] = 0;
    assert_false(crash_check_history(&k));
    print_message("found by telling the judge: %.200s\n", k.complaint);
    for (unsigned i = 0; i < CLIENTS; i++)
        crash_ledger_free(&ledgers[i]);
}

/* The same, and the clients go on: they ask for what they had been told, and are told something
 * else. */
static void without_a_synchronous_standby_the_clients_see_the_loss(void **state)
{
    (void)state;
    round_begin(POSTGRES_ASYNC);
    more(ENOUGH);
    relay_black_hole(&relay, true);
    more(2 * ENOUGH);
    dies(BOTH, 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         !crash_crowd_accused(&crowd) && server_clock_ms() < until;)
        server_pause_ms(2);
    assert_true(crash_crowd_accused(&crowd));
    print_message("found: %.300s\n", crowd.complaint);
}

static int end(void **state)
{
    (void)state;
    round_end();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_was_acknowledged_survives_every_failover, end),
        cmocka_unit_test_teardown(without_a_synchronous_standby_the_judge_sees_the_loss, end),
        cmocka_unit_test_teardown(without_a_synchronous_standby_the_clients_see_the_loss, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

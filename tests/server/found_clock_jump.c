/* The wall clock of a running server jumped thirty days ahead for a second and a half, while
 * clients only asked: the sweeper committed that time, every key was forgotten, and a retry acted
 * again. */
#include "server/kit/calls.h"

#define JUMP (INT64_C(30) * 24 * 3600 * 1000)
#define HOLD "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

/* The boot clock is `boot` ms after the start, and the wall clock is ahead of it by `ahead`. While
 * one of the two is set the other is behind by a moment, which is less than the store tolerates. */
static void at(int64_t boot, int64_t ahead)
{
    atomic_store(&s.io->boot, 1000000 + boot);
    atomic_store(&s.io->wall, TALK_START + boot + ahead);
}

/* A server with its sweeper. */
static void make(struct server *server)
{
    talk_server(server);
    server->options.store.no_background = false;
    atomic_store(&server->io->boot, 1000000);
}

/* Wait until the sweeper has come by and gone. It looks at the wall clock three times when it
 * comes, and nobody else does meanwhile: of seven looks, the last belongs to a later visit than the
 * first that was whole. */
static void sweeper_comes_by(void)
{
    enum { LOOKS = 7 };
    uint64_t before = atomic_load(&s.io->looks);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         atomic_load(&s.io->looks) < before + LOOKS;) {
        assert_true(server_clock_ms() < until);
        server_pause_ms(1);
    }
}

static void a_retry_after_a_short_jump_is_a_replay(void **state)
{
    (void)state;
    char id[32], path[64];
    assert_int_equal(talk(&t, "POST /v1/holds", "key", HOLD), 201);
    snprintf(id, sizeof id, "%s", reply_text(&t.got, "id"));
    snprintf(path, sizeof path, "GET /v1/holds/%s", id);
    for (int64_t ms = 0; ms <= 1500; ms += 100) {
        at(ms, JUMP);
        sweeper_comes_by();
        assert_int_equal(talk(&t, path, NULL, NULL), 200);
        assert_string_equal(reply_text(&t.got, "state"), "held");
    }
    at(1600, 0);
    sweeper_comes_by();
    assert_int_equal(talk(&t, "POST /v1/holds", "key", HOLD), 201);
    assert_string_equal(reply_text(&t.got, "id"), id);
    assert_non_null(reply_field(&t.got, "Idempotent-Replayed"));
    assert_true(talk_figure(&t, "holdfast_clock_jumps_total") == 1);
    assert_true(talk_figure(&t, "holdfast_clock_stalls_total") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_retry_after_a_short_jump_is_a_replay, make, 1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

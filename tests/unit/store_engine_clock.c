/* The rule of engine time: a wall clock that the boot clock confirms is followed; one that steps
 * back is waited for; one that jumps ahead is not believed for a minute. */
#include "store/engine_clock.h"

#include "support/test.h"

#define WALL INT64_C(1700000000000)
#define BOOT INT64_C(5000000)
#define MINUTE INT64_C(60000)
#define DAY (1440 * MINUTE)

static struct hf_engine_clock c;

/* The boot clock is `boot` after the start, and the wall clock says `wall` after it. Returns engine
 * time after it. */
static hf_time event;
static hf_time say(hf_time boot, hf_time wall)
{
    struct hf_engine_clock_reading r = { .wall = WALL + wall,
                                         .from = BOOT + boot,
                                         .to = BOOT + boot };
    event = hf_engine_clock_read(&c, &r);
    return c.now - WALL;
}

#define SAYS(boot, wall, now, what)                      \
    do {                                                 \
        assert_int_equal(say(boot, wall), (now));        \
        assert_int_equal(event, HF_ENGINE_CLOCK_##what); \
    } while (0)

static int setup(void **state)
{
    (void)state;
    c = (struct hf_engine_clock){ .now = 0 };
    SAYS(0, 0, 0, GOES);
    return 0;
}

static void a_clock_that_is_confirmed_is_followed(void **state)
{
    (void)state;
    SAYS(1, 1, 1, GOES);
    SAYS(1, 1, 1, GOES);
    SAYS(1000, 990, 990, GOES); /* slewed */
    SAYS(2000, 2005, 2005, GOES);
    SAYS(10 * DAY, 10 * DAY, 10 * DAY, GOES); /* the machine slept, or nobody looked */
    SAYS(10 * DAY + 5, 10 * DAY + 5, 10 * DAY + 5, GOES);
    assert_int_equal(c.jumps, 0);
}

static void engine_time_waits_for_a_clock_that_was_set_back(void **state)
{
    (void)state;
    SAYS(DAY, DAY, DAY, GOES);
    SAYS(DAY + 1000, DAY - MINUTE, DAY, GOES);
    SAYS(DAY + MINUTE, DAY - 1, DAY, GOES);
    SAYS(DAY + MINUTE + 2, DAY + 1, DAY + 1, GOES);
    /* And when it is set forward again, to where it would have been, nothing has happened. */
    SAYS(2 * DAY, 2 * DAY - MINUTE, 2 * DAY - MINUTE, GOES);
    SAYS(2 * DAY + 5000, DAY, 2 * DAY - MINUTE, GOES);
    SAYS(2 * DAY + 10000, 2 * DAY - MINUTE + 10000, 2 * DAY - MINUTE + 10000, GOES);
    assert_int_equal(c.jumps, 0);
}

/* The line must not stay where the clock was before it was set back. */
static void a_clock_that_has_caught_up_has_no_credit(void **state)
{
    (void)state;
    SAYS(DAY, DAY, DAY, GOES);
    SAYS(DAY + 1000, DAY - 10 * MINUTE, DAY, GOES);
    SAYS(DAY + 11 * MINUTE, DAY + 1, DAY + 1, GOES); /* caught up */
    SAYS(DAY + 11 * MINUTE + 5, DAY + 9 * MINUTE, DAY + 6, JUMPED);
}

static void a_jump_that_comes_back_leaves_nothing(void **state)
{
    (void)state;
    SAYS(1000, 1000, 1000, GOES);
    SAYS(1100, 30 * DAY, 1100, JUMPED);
    SAYS(1200, 30 * DAY + 100, 1200, GOES);
    SAYS(30000, 30 * DAY + 28900, 30000, GOES); /* at the boot clock's pace */
    SAYS(30500, 30500, 30500, RETURNED);
    SAYS(30501, 30501, 30501, GOES);
    assert_int_equal(c.jumps, 1);
    SAYS(30600, 30 * DAY, 30600, JUMPED); /* it has to stay for a minute again */
    SAYS(30600 + MINUTE - 1, 30 * DAY + MINUTE - 1, 30600 + MINUTE - 1, GOES);
    SAYS(30600 + MINUTE, 30 * DAY + MINUTE, 30 * DAY + MINUTE, BELIEVED);
    assert_int_equal(c.jumps, 2);
}

static void a_clock_that_stays_is_believed_and_followed(void **state)
{
    (void)state;
    SAYS(10, DAY, 10, JUMPED);
    SAYS(10 + MINUTE - 1, DAY + MINUTE, 10 + MINUTE - 1, GOES);
    SAYS(10 + MINUTE, DAY + MINUTE, DAY + MINUTE, BELIEVED);
    SAYS(20 + MINUTE, DAY + MINUTE + 10, DAY + MINUTE + 10, GOES);
    SAYS(30 + MINUTE, MINUTE, DAY + MINUTE + 10, GOES); /* too late: engine time never runs back */
    assert_int_equal(c.jumps, 1);
}

static void a_second_jump_is_watched_anew(void **state)
{
    (void)state;
    SAYS(0, DAY, 0, JUMPED);
    SAYS(50000, 2 * DAY, 50000, JUMPED);
    SAYS(60000, 2 * DAY + 10000, 60000, GOES);
    SAYS(109999, 2 * DAY + 59999, 109999, GOES);
    SAYS(110000, 2 * DAY + MINUTE, 2 * DAY + MINUTE, BELIEVED);
    assert_int_equal(c.jumps, 2);
}

/* It fell back, but not all the way: it has not stayed there either. */
static void a_place_between_is_watched_anew(void **state)
{
    (void)state;
    SAYS(0, 2 * DAY, 0, JUMPED);
    SAYS(50000, DAY, 50000, GOES);
    SAYS(60000, DAY + 10000, 60000, GOES);
    SAYS(110000, DAY + MINUTE, DAY + MINUTE, BELIEVED);
    assert_int_equal(c.jumps, 1);
}

static void a_clock_that_stands_still_ahead_is_not_believed(void **state)
{
    (void)state;
    SAYS(0, DAY, 0, JUMPED);
    for (hf_time boot = 100; boot < 10 * MINUTE; boot += 100)
        SAYS(boot, DAY, boot, GOES);
    assert_int_equal(c.jumps, 1);
}

static void small_steps_are_tolerated_and_do_not_add_up(void **state)
{
    (void)state;
    hf_time boot = 1000, ahead = 0;
    SAYS(boot, boot + 400, boot + 400, GOES);
    SAYS(boot, boot + HF_ENGINE_CLOCK_SLACK_MS, boot + HF_ENGINE_CLOCK_SLACK_MS, GOES);
    SAYS(boot, boot + HF_ENGINE_CLOCK_SLACK_MS + 2, boot + HF_ENGINE_CLOCK_SLACK_MS, JUMPED);
    SAYS(boot + 1, boot + HF_ENGINE_CLOCK_SLACK_MS, boot + HF_ENGINE_CLOCK_SLACK_MS, RETURNED);
    /* Each millisecond a step of a hundred. */
    c = (struct hf_engine_clock){ .now = 0 };
    for (boot = 0; boot < 2000; boot++, ahead += 100)
        assert_true(say(boot, boot + ahead) <= boot + HF_ENGINE_CLOCK_SLACK_MS + 2);
    assert_true(c.jumps > 0);
    /* What was used comes back in time. */
    c = (struct hf_engine_clock){ .now = 0 };
    for (boot = 0, ahead = 0; boot < 10 * DAY; boot += 1000 * 1000, ahead += 999)
        SAYS(boot, boot + ahead, boot + ahead, GOES);
}

/* After a start under a clock that is behind what was committed. */
static void a_start_behind_what_was_committed_waits(void **state)
{
    (void)state;
    struct hf_engine_clock_reading r = {
        .wall = WALL, .from = BOOT, .to = BOOT, .committed = WALL + DAY
    };
    c = (struct hf_engine_clock){ .now = 0 };
    assert_int_equal(hf_engine_clock_read(&c, &r), HF_ENGINE_CLOCK_GOES);
    assert_int_equal(c.now, WALL + DAY);
    SAYS(1000, 1000, DAY, GOES);
    /* The clock is put right: as far as the boot clock goes, that is fine. */
    SAYS(2000, DAY + 2000, DAY + 2000, GOES);
    c = (struct hf_engine_clock){ .now = 0 };
    hf_engine_clock_read(&c, &r);
    SAYS(5000, 5000, DAY, GOES);
    SAYS(6000, DAY + MINUTE, DAY + 1000,
         JUMPED); /* that is farther; engine time goes on from where it stands */
    SAYS(7000, DAY + MINUTE + 1000, DAY + 2000, GOES);
    assert_int_equal(c.jumps, 1);
}

static void what_others_committed_is_engine_time(void **state)
{
    (void)state;
    struct hf_engine_clock_reading r = { .wall = WALL + DAY + 100,
                                         .from = BOOT + 100,
                                         .to = BOOT + 100 };
    assert_int_equal(hf_engine_clock_read(&c, &r), HF_ENGINE_CLOCK_JUMPED);
    assert_int_equal(c.now, WALL + 100);
    r.committed = WALL + DAY;
    assert_int_equal(hf_engine_clock_read(&c, &r), HF_ENGINE_CLOCK_RETURNED); /* they believe it */
    assert_int_equal(c.now, WALL + DAY + 100);
    /* What is a little ahead does not bring new slack. */
    SAYS(200, DAY + 200, DAY + 200, GOES);
    r = (struct hf_engine_clock_reading){ .wall = WALL + DAY + 300,
                                          .from = BOOT + 300,
                                          .to = BOOT + 300,
                                          .committed = WALL + DAY + 1200 };
    assert_int_equal(hf_engine_clock_read(&c, &r), HF_ENGINE_CLOCK_GOES);
    assert_int_equal(c.now, WALL + DAY + 1200);
    SAYS(400, DAY + 1500, DAY + 1300, JUMPED);
}

/* Answers of a database come late, and not in the order in which it looked at its clock. */
static void a_reading_that_took_long_is_no_jump(void **state)
{
    (void)state;
    struct hf_engine_clock_reading late = { .wall = WALL + 1000,
                                            .from = BOOT + 1000,
                                            .to = BOOT + 9000 };
    assert_int_equal(hf_engine_clock_read(&c, &late), HF_ENGINE_CLOCK_GOES);
    SAYS(9001, 9001, 9001, GOES);
    late = (struct hf_engine_clock_reading){ .wall = WALL + 17000,
                                             .from = BOOT + 10000,
                                             .to = BOOT + 18000 };
    assert_int_equal(hf_engine_clock_read(&c, &late), HF_ENGINE_CLOCK_GOES);
    SAYS(18001, 18001, 18001, GOES);
    late = (struct hf_engine_clock_reading){ .wall = WALL + 11000,
                                             .from = BOOT + 10500,
                                             .to = BOOT + 25000 };
    assert_int_equal(hf_engine_clock_read(&c, &late),
                     HF_ENGINE_CLOCK_GOES); /* others were quicker */
    SAYS(26000, 26000, 26000, GOES);
    /* Nor does it hide one. */
    late = (struct hf_engine_clock_reading){ .wall = WALL + DAY,
                                             .from = BOOT + 26000,
                                             .to = BOOT + 30000 };
    assert_int_equal(hf_engine_clock_read(&c, &late), HF_ENGINE_CLOCK_JUMPED);
    late = (struct hf_engine_clock_reading){ .wall = WALL + DAY + 500,
                                             .from = BOOT + 26100,
                                             .to = BOOT + 26200 };
    assert_int_equal(hf_engine_clock_read(&c, &late), HF_ENGINE_CLOCK_GOES);
    assert_int_equal(c.jumps, 1);
}

static const char *said(void)
{
    static char line[HF_ENGINE_CLOCK_LINE];
    return hf_engine_clock_tell(&c, (enum hf_engine_clock_event)event, "the wall", line) ? line
                                                                                         : NULL;
}

static void a_clock_that_jumps_all_the_time_is_spoken_of_once_a_minute(void **state)
{
    (void)state;
    unsigned jumps = 0, returns = 0;
    SAYS(10, 10, 10, GOES);
    assert_null(said());
    SAYS(20, DAY, 20, JUMPED);
    assert_string_equal(
        said(),
        "the wall clock has jumped ahead by 86399.980 s, and the boot clock does not confirm it. "
        "The store ignores the jump unless it lasts for 60 s; meanwhile engine time follows the "
        "boot clock");
    SAYS(30, DAY + 10, 30, GOES);
    assert_null(said());
    SAYS(40, 40, 40, RETURNED);
    assert_non_null(strstr(said(), "has returned"));
    for (hf_time boot = 100; boot < 10 * MINUTE; boot += 200) {
        say(boot, DAY);
        jumps += said() != NULL;
        say(boot + 100, boot + 100);
        returns += said() != NULL;
    }
    assert_int_equal(jumps, 9);
    assert_int_equal(returns, 9);
    assert_int_equal(c.jumps, 3001);
    say(20 * MINUTE, DAY);
    assert_non_null(said());
    SAYS(21 * MINUTE, DAY + MINUTE, DAY + MINUTE, BELIEVED);
    assert_non_null(strstr(said(), "60 s: engine time steps forward by 85200.000 s"));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_clock_that_is_confirmed_is_followed),
        TEST(engine_time_waits_for_a_clock_that_was_set_back),
        TEST(a_clock_that_has_caught_up_has_no_credit),
        TEST(a_jump_that_comes_back_leaves_nothing),
        TEST(a_clock_that_stays_is_believed_and_followed),
        TEST(a_second_jump_is_watched_anew),
        TEST(a_place_between_is_watched_anew),
        TEST(a_clock_that_stands_still_ahead_is_not_believed),
        TEST(small_steps_are_tolerated_and_do_not_add_up),
        TEST(a_start_behind_what_was_committed_waits),
        TEST(what_others_committed_is_engine_time),
        TEST(a_reading_that_took_long_is_no_jump),
        TEST(a_clock_that_jumps_all_the_time_is_spoken_of_once_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

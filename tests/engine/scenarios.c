/* The stories of Idempotent Reservation, told to a real store: the walkthrough in six steps, the
 * four examples from industry, the four adversarial scenarios. */
#include "engine/kit/engine.h"
#include "support/test.h"

#include <pthread.h>

static struct kit *k;

static int setup(void **state)
{
    (void)state;
    k = kit_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_free(k);
    return 0;
}

static void window(int64_t ms)
{
    k->options.idempotency_window_ms = ms;
    kit_reopen(k);
}

static uint64_t holds(void)
{
    return kit_stats(k).holds;
}

static enum hf_hold_state state_of(const char *id)
{
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    return k->got.answer.hold.state;
}

/* ---- The walkthrough ---- */

static void walkthrough_of_a_hotel_room_in_six_steps(void **state)
{
    (void)state;
    char rm_b4c[HF_ID_SIZE];
    window(10 * MINUTE);

    /* 1: the first call places the hold. */
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest_g91", 24 * HOUR), HF_OK);
    assert_false(k->got.replayed);
    memcpy(rm_b4c, k->got.answer.hold.id, HF_ID_SIZE);
    assert_int_equal(state_of(rm_b4c), HF_HELD);

    /* 2 and 3: the answer was lost; three retries get the same id, and no second hold comes. */
    for (int i = 0; i < 3; i++) {
        kit_at(k, (i + 1) * SECOND);
        assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest_g91", 24 * HOUR), HF_OK);
        assert_true(k->got.replayed);
        assert_string_equal(k->got.answer.hold.id, rm_b4c);
        assert_int_equal(k->got.token.recorded_at,
                         KIT_START); /* a retry does not move the window */
    }
    assert_int_equal(holds(), 1);

    /* 4: two hours later a fresh token confirms. */
    kit_at(k, 2 * HOUR);
    assert_int_equal(kit_end(k, HF_CONFIRM, "idem_y22", rm_b4c), HF_OK);
    assert_int_equal(k->got.answer.hold.state, HF_CONFIRMED);

    /* 5: the confirm again: ok, and not not-held. Only a new token meets the hold as it is now. */
    assert_int_equal(kit_end(k, HF_CONFIRM, "idem_y22", rm_b4c), HF_OK);
    assert_true(k->got.replayed);
    assert_int_equal(kit_end(k, HF_CONFIRM, "idem_y23", rm_b4c), HF_NOT_HELD);

    /* 6: eleven minutes later the old token is a new one. The room is taken, and that is
     * remembered. */
    kit_at(k, 2 * HOUR + 11 * MINUTE);
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest_g91", 24 * HOUR),
                     HF_RESOURCE_UNAVAILABLE);
    assert_false(k->got.replayed);
    assert_int_equal(kit_end(k, HF_REVERSE, "idem_z", rm_b4c),
                     HF_OK); /* the room is free again ... */
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest_g91", 24 * HOUR),
                     HF_RESOURCE_UNAVAILABLE);
    assert_true(k->got.replayed); /* ... but the same token gets the same answer */
    assert_int_equal(holds(), 2); /* the hold, and the record that gives it back */
}

static void retries_of_every_action_survive_a_restart(void **state)
{
    (void)state;
    char id[4][HF_ID_SIZE];
    for (int i = 0; i < 4; i++)
        kit_held(k, i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", MINUTE, id[i]);
    assert_int_equal(kit_end(k, HF_CONFIRM, "confirm", id[0]), HF_OK);
    assert_int_equal(kit_end(k, HF_RELEASE, "release", id[1]), HF_OK);
    assert_int_equal(kit_end(k, HF_EXPIRE, "early", id[2]), HF_WINDOW_NOT_ELAPSED);
    assert_int_equal(kit_end(k, HF_REVERSE, "reverse", id[0]), HF_OK);
    char reversal[HF_ID_SIZE];
    memcpy(reversal, k->got.answer.hold.id, HF_ID_SIZE);
    assert_string_equal(k->got.answer.hold.reverses, id[0]);
    kit_at(k, MINUTE);
    assert_int_equal(kit_end(k, HF_EXPIRE, "expire", id[2]), HF_OK);
    assert_int_equal(kit_end(k, HF_CONFIRM, "late", id[3]), HF_WINDOW_ELAPSED);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(kit_end(k, HF_CONFIRM, "confirm", id[0]), HF_OK);
        assert_int_equal(kit_end(k, HF_RELEASE, "release", id[1]), HF_OK);
        assert_int_equal(kit_end(k, HF_EXPIRE, "early", id[2]), HF_WINDOW_NOT_ELAPSED);
        assert_int_equal(kit_end(k, HF_EXPIRE, "expire", id[2]), HF_OK);
        assert_int_equal(kit_end(k, HF_CONFIRM, "late", id[3]), HF_WINDOW_ELAPSED);
        assert_int_equal(kit_end(k, HF_REVERSE, "reverse", id[0]), HF_OK);
        assert_string_equal(k->got.answer.hold.id, reversal);
        assert_true(k->got.replayed);
        assert_int_equal(holds(), 5);
        kit_reopen(k);
    }
    assert_int_equal(state_of(id[0]), HF_CONFIRMED); /* a reversal leaves the original untouched */
    assert_int_equal(kit_end(k, HF_REVERSE, kit_key(k), id[0]), HF_NOT_HELD); /* twice is once */
    assert_int_equal(kit_end(k, HF_CONFIRM, kit_key(k), reversal),
                     HF_NOT_HELD); /* a reversal has ended */
    assert_int_equal(kit_end(k, HF_RELEASE, kit_key(k), reversal), HF_NOT_HELD);
    assert_int_equal(kit_end(k, HF_EXPIRE, kit_key(k), reversal), HF_NOT_HELD);
    assert_int_equal(kit_end(k, HF_REVERSE, kit_key(k), reversal), HF_NOT_HELD);
}

/* The money arrives after the hold ran out. Retries get the same answer, over restarts too. */
static void a_late_payment_takes_a_free_unit_or_goes_back(void **state)
{
    (void)state;
    char id[3][HF_ID_SIZE], late[HF_ID_SIZE];
    kit_held(k, "room", MINUTE, id[0]);
    kit_held(k, "full", MINUTE, id[1]);
    kit_held(k, "intime", 10 * MINUTE, id[2]);
    kit_at(k, MINUTE);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, "paid", id[0]), HF_OK);
    memcpy(late, k->got.answer.hold.id, HF_ID_SIZE);
    assert_string_equal(k->got.answer.hold.reacquires, id[0]);
    assert_int_equal(k->got.answer.hold.state, HF_CONFIRMED);
    char other[HF_ID_SIZE];
    kit_held(k, "full", HOUR, other);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, "none", id[1]), HF_WINDOW_ELAPSED);
    assert_true(k->got.answer.refund);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, "soon", id[2]), HF_OK);
    assert_string_equal(k->got.answer.hold.id, id[2]);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(kit_end(k, HF_CONFIRM_LATE, "paid", id[0]), HF_OK);
        assert_string_equal(k->got.answer.hold.id, late);
        assert_string_equal(k->got.answer.hold.reacquires, id[0]);
        assert_true(k->got.replayed);
        assert_int_equal(kit_end(k, HF_CONFIRM_LATE, "none", id[1]), HF_WINDOW_ELAPSED);
        assert_true(k->got.answer.refund && k->got.replayed);
        assert_int_equal(kit_end(k, HF_CONFIRM, "paid", id[0]), HF_TOKEN_COLLISION);
        assert_int_equal(kit_end(k, HF_CONFIRM_LATE, kit_key(k), id[0]), HF_NOT_HELD);
        assert_int_equal(state_of(id[0]), HF_EXPIRED);
        assert_int_equal(state_of(late), HF_CONFIRMED);
        assert_int_equal(holds(), 5);
        kit_reopen(k);
    }
    assert_int_equal(kit_end(k, HF_REVERSE, kit_key(k), late), HF_OK);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, kit_key(k), id[0]), HF_NOT_HELD);
    kit_held(k, "room", MINUTE, other); /* its unit is free again */
}

/* Those who hold the unit now are overdue too, and more than one commit expires. */
static void a_late_payment_need_not_wait_for_the_sweeper(void **state)
{
    (void)state;
    char first[HF_ID_SIZE], other[HF_ID_SIZE];
    kit_held(k, "room", MINUTE, first);
    kit_at(k, MINUTE);
    kit_held(k, "room", MINUTE, other);
    kit_at(k, 2 * MINUTE);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, kit_key(k), first), HF_OK);
    assert_int_equal(state_of(other), HF_EXPIRED);
    assert_int_equal(kit_resource(k, "bus", 20), HF_OK);
    for (int i = 0; i < 20; i++)
        kit_held(k, "bus", MINUTE, other);
    kit_at(k, 3 * MINUTE);
    assert_int_equal(kit_end(k, HF_CONFIRM_LATE, kit_key(k), other), HF_OK);
    assert_int_equal(state_of(other), HF_EXPIRED);
}

/* ---- Industry ---- */

static void banking_an_authorization_retried_by_the_terminal_charges_once(void **state)
{
    (void)state;
    assert_int_equal(kit_resource(k, "card-4711", 4), HF_OK); /* a credit line of four times 250 */
    static const char *const messages[] = { "BizMsgIdr-1", "BizMsgIdr-2", "BizMsgIdr-3" };
    char ids[3][HF_ID_SIZE];
    for (int m = 0; m < 3; m++) {
        for (int attempt = 0; attempt < 5; attempt++) {
            kit_at(k, m * MINUTE + attempt * SECOND);
            assert_int_equal(kit_place(k, messages[m], "card-4711", "shop-9", 7 * DAY), HF_OK);
            if (attempt == 0)
                memcpy(ids[m], k->got.answer.hold.id, HF_ID_SIZE);
            assert_string_equal(k->got.answer.hold.id, ids[m]);
        }
    }
    assert_int_equal(holds(), 3);
    assert_int_equal(kit_end(k, HF_CONFIRM, "capture-1", ids[0]), HF_OK);
    assert_int_equal(kit_end(k, HF_CONFIRM, "capture-1", ids[0]), HF_OK);
    assert_int_equal(kit_get(k, HF_GET_RESOURCE, "card-4711"), HF_OK);
    assert_int_equal(k->got.answer.resource.held, 2);
    assert_int_equal(k->got.answer.resource.confirmed, 1);
    assert_int_equal(kit_stats(k).duplicates, 12 + 1);
}

struct click {
    pthread_t thread;
    struct hf_result result;
    enum hf_status status;
};

static void *assign_bed(void *arg)
{
    struct click *c = arg;
    c->status = hf_do(k->db,
                      &(struct hf_request){ .action = HF_PLACE_HOLD,
                                            .key = hf_str("session-17/assign"),
                                            .place_hold = { .resource = hf_str("bed_307"),
                                                            .requester = hf_str("patient_p41"),
                                                            .duration_ms = 2 * HOUR } },
                      &c->result);
    return NULL;
}

static void healthcare_a_double_click_from_two_threads_assigns_one_bed(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct click clicks[2] = { { .status = HF_MISUSE }, { .status = HF_MISUSE } };
        kit_at(k, round * 2 *
                      DAY); /* the token's window closes between the rounds, and the bed is free */
        atomic_store(&k->io.slow_sync_us, 2000);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&clicks[i].thread, NULL, assign_bed, &clicks[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(clicks[i].thread, NULL);
        atomic_store(&k->io.slow_sync_us, 0);
        assert_int_equal(clicks[0].status, HF_OK);
        assert_int_equal(clicks[1].status, HF_OK);
        assert_string_equal(clicks[0].result.answer.hold.id, clicks[1].result.answer.hold.id);
        assert_int_equal(clicks[0].result.replayed + clicks[1].result.replayed, 1);
        assert_int_equal(holds(), round + 1);
        for (int i = 0; i < 2; i++)
            hf_result_clear(&clicks[i].result);
    }
}

static void retail_one_of_one_is_reserved_by_one_shopper_however_often_both_retry(void **state)
{
    (void)state;
    enum hf_status first[2] = { HF_OK, HF_OK };
    char id[HF_ID_SIZE] = "";
    for (int attempt = 0; attempt < 6; attempt++) { /* back-off: 1, 2, 4 ... seconds */
        kit_at(k, (1 << attempt) * SECOND);
        for (int shopper = 0; shopper < 2; shopper++) {
            const char *key = shopper ? "cart-b/watch" : "cart-a/watch";
            enum hf_status st = kit_place(k, key, "sku-watch-1of1", key, HOUR);
            if (attempt == 0)
                first[shopper] = st;
            assert_int_equal(st, first[shopper]);
            assert_int_equal(k->got.replayed, attempt > 0);
            if (st == HF_OK && attempt == 0)
                memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
        }
        if (attempt == 3) /* even when the item comes back in between: the failure was the answer */
            assert_int_equal(kit_end(k, HF_RELEASE, "cart-a/leave", id), HF_OK);
    }
    assert_int_equal(first[0], HF_OK);
    assert_int_equal(first[1], HF_RESOURCE_UNAVAILABLE);
    assert_int_equal(holds(), 1);
    assert_int_equal(kit_place(k, "cart-b/watch/2", "sku-watch-1of1", "b", HOUR),
                     HF_OK); /* a fresh token */
}

static void airline_an_hour_replayed_after_a_failover_holds_no_seat_twice(void **state)
{
    (void)state;
    enum { SEATS = 30 };
    char id[SEATS][HF_ID_SIZE], key[24], seat[24];
    window(HOUR);
    for (int i = 0; i < SEATS; i++) { /* one request each two minutes */
        kit_at(k, i * 2 * MINUTE);
        snprintf(key, sizeof key, "req-%d", i);
        snprintf(seat, sizeof seat, "seat-%d", i);
        assert_int_equal(kit_place(k, key, seat, "agency", i < 10 ? 30 * MINUTE : 3 * HOUR), HF_OK);
        memcpy(id[i], k->got.answer.hold.id, HF_ID_SIZE);
    }
    kit_close(k); /* the failover */
    kit_at(k, 70 * MINUTE);
    kit_open(k);
    for (int i = 0; i < SEATS; i++) {
        snprintf(key, sizeof key, "req-%d", i);
        snprintf(seat, sizeof seat, "seat-%d", i);
        enum hf_status st = kit_place(k, key, seat, "agency", i < 10 ? 30 * MINUTE : 3 * HOUR);
        assert_int_equal(st, HF_OK);
        /* Requests 0 to 5 are an hour old: fresh requests, for seats whose holds have run out. */
        bool fresh = i <= 5;
        assert_int_equal(k->got.replayed, !fresh);
        assert_int_equal(strcmp(k->got.answer.hold.id, id[i]) != 0, fresh);
    }
    assert_int_equal(holds(), SEATS + 6);
    /* Much later every token is new; seats that are still held are refused, not held twice. */
    kit_at(k, 130 * MINUTE);
    for (int i = 10; i < SEATS; i++) {
        snprintf(key, sizeof key, "req-%d", i);
        snprintf(seat, sizeof seat, "seat-%d", i);
        assert_int_equal(kit_place(k, key, seat, "agency", 3 * HOUR), HF_RESOURCE_UNAVAILABLE);
    }
    assert_int_equal(holds(), SEATS + 6);
}

/* ---- Adversaries ---- */

static int text_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void regulator_no_two_holds_share_a_key(void **state)
{
    (void)state;
    enum { KEYS = 60 };
    static char by_key[KEYS][HF_ID_SIZE];
    uint64_t random = test_seed("regulator", 7);
    size_t placed = 0;
    char key[24], resource[24], requester[24];
    for (int i = 0; i < 600; i++) {
        int n = (int)test_below(&random, KEYS);
        snprintf(key, sizeof key, "key-%d", n);
        snprintf(resource, sizeof resource, "res-%d", n % 20);
        snprintf(requester, sizeof requester, "req-%d", n % 3);
        enum hf_status st = kit_place(k, key, resource, requester, HOUR);
        assert_true(st == HF_OK || st == HF_RESOURCE_UNAVAILABLE);
        kit_at(k, i * 10);
    }
    for (int n = 0; n < KEYS; n++) { /* from each key to its hold */
        snprintf(key, sizeof key, "key-%d", n);
        if (kit_get(k, HF_GET_TOKEN, key) != HF_OK || k->got.answer.status != HF_OK)
            continue;
        assert_int_equal(k->got.token.action, HF_PLACE_HOLD);
        memcpy(by_key[placed++], k->got.answer.hold.id, HF_ID_SIZE);
    }
    assert_int_equal(placed, 20);
    assert_int_equal(holds(), placed); /* and no hold that came from nowhere */
    qsort(by_key, placed, HF_ID_SIZE, text_compare);
    for (size_t i = 1; i < placed; i++)
        assert_string_not_equal(by_key[i - 1], by_key[i]);
    struct hf_page page; /* the query by signature: same resource and requester, near in time */
    kit_list(k, &(struct hf_query){ .kind = HF_LIST_HOLDS, .limit = HF_LIST_MAX }, &page);
    assert_int_equal(page.count, placed);
    for (size_t a = 0; a < page.count; a++)
        for (size_t b = a + 1; b < page.count; b++)
            assert_false(page.holds[a].resource.size == page.holds[b].resource.size &&
                         memcmp(page.holds[a].resource.data, page.holds[b].resource.data,
                                page.holds[a].resource.size) == 0);
    hf_page_clear(&page);
}

static void disputed_the_same_token_is_one_charge_and_two_tokens_are_two(void **state)
{
    (void)state;
    assert_int_equal(kit_resource(k, "account", 10), HF_OK);
    assert_int_equal(kit_place(k, "pay-1", "account", "customer", HOUR), HF_OK);
    uint8_t digest[HF_DIGEST_SIZE];
    memcpy(digest, k->got.token.digest, sizeof digest);
    assert_int_equal(kit_place(k, "pay-1", "account", "customer", HOUR), HF_OK);
    assert_int_equal(holds(), 1); /* nothing to dispute */
    kit_at(k, SECOND);
    assert_int_equal(kit_place(k, "pay-2", "account", "customer", HOUR), HF_OK);
    assert_int_equal(holds(), 2); /* two operations, as far as anybody can tell */
    kit_reopen(k);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "pay-1"), HF_OK);
    assert_memory_equal(k->got.token.digest, digest, sizeof digest);
    assert_int_equal(k->got.token.status, HF_OK);
    assert_int_equal(k->got.token.recorded_at, KIT_START);
    char first[HF_ID_SIZE];
    memcpy(first, k->got.answer.hold.id, HF_ID_SIZE);
    assert_int_equal(kit_get(k, HF_GET_TOKEN, "pay-2"), HF_OK);
    assert_string_not_equal(k->got.answer.hold.id, first);
    assert_int_equal(k->got.token.recorded_at, KIT_START + SECOND);
}

static void
replay_attack_inside_the_window_changes_nothing_and_outside_is_a_new_request(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    window(10 * MINUTE);
    assert_int_equal(kit_place(k, "captured", "seat", "victim", MINUTE), HF_OK);
    memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
    assert_int_equal(kit_end(k, HF_RELEASE, "released", id), HF_OK);
    uint64_t written = kit_written(k);
    for (int i = 0; i < 50; i++) {
        kit_at(k, i * 10 * SECOND);
        assert_int_equal(kit_place(k, "captured", "seat", "victim", MINUTE), HF_OK);
        assert_string_equal(k->got.answer.hold.id, id);
        assert_int_equal(k->got.answer.hold.state, HF_HELD); /* as it was, byte for byte */
        assert_int_equal(kit_end(k, HF_RELEASE, "released", id), HF_OK);
    }
    assert_int_equal(kit_written(k), written);
    assert_int_equal(holds(), 1);
    assert_int_equal(state_of(id), HF_RELEASED);
    kit_at(k, 10 * MINUTE - 1);
    assert_int_equal(kit_place(k, "captured", "seat", "victim", MINUTE), HF_OK);
    assert_true(k->got.replayed);
    kit_at(k, 10 * MINUTE);
    assert_int_equal(kit_place(k, "captured", "seat", "victim", MINUTE), HF_OK);
    assert_false(k->got.replayed);
    assert_string_not_equal(k->got.answer.hold.id, id);
    assert_int_equal(holds(), 2);
}

static void token_reuse_for_another_operation_is_a_collision(void **state)
{
    (void)state;
    char id[HF_ID_SIZE], other[HF_ID_SIZE];
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest", HOUR), HF_OK);
    memcpy(id, k->got.answer.hold.id, HF_ID_SIZE);
    kit_held(k, "room_308", HOUR, other);
    assert_int_equal(kit_end(k, HF_CONFIRM, "idem_x73a", id),
                     HF_TOKEN_COLLISION); /* another action */
    assert_int_equal(k->got.token.action,
                     HF_PLACE_HOLD); /* and the caller may see what it is bound to */
    assert_int_equal(state_of(id), HF_HELD);
    assert_int_equal(kit_place(k, "idem_x73a", "room_309", "guest", HOUR), HF_TOKEN_COLLISION);
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guesu", HOUR), HF_TOKEN_COLLISION);
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest", HOUR + 1), HF_TOKEN_COLLISION);
    assert_int_equal(kit_end(k, HF_CONFIRM, "c", id), HF_OK);
    assert_int_equal(kit_end(k, HF_CONFIRM, "c", other), HF_TOKEN_COLLISION); /* another hold */
    assert_int_equal(kit_end(k, HF_RELEASE, "c", id), HF_TOKEN_COLLISION);
    assert_int_equal(kit_begin(k, "c", "payload", 0, HF_ABANDON_UNKNOWN), HF_TOKEN_COLLISION);
    assert_int_equal(state_of(other), HF_HELD);
    assert_int_equal(kit_stats(k).collisions, 7);
    assert_int_equal(holds(), 2);
    kit_reopen(k);
    assert_int_equal(kit_place(k, "idem_x73a", "room_309", "guest", HOUR), HF_TOKEN_COLLISION);
    assert_int_equal(kit_place(k, "idem_x73a", "room_307", "guest", HOUR), HF_OK);
    assert_string_equal(k->got.answer.hold.id, id);
    /* A collision is no use of the key and no refusal to remember: the same key of another tenant
     * is free. */
    k->tenant = "another";
    assert_int_equal(kit_place(k, "idem_x73a", "room_309", "guest", HOUR), HF_OK);
    assert_false(k->got.replayed);
}

static void a_token_used_again_after_its_window_is_found_by_its_newest_use(void **state)
{
    (void)state;
    char id[3][HF_ID_SIZE];
    window(MINUTE);
    for (int i = 0; i < 3; i++) { /* nobody frees the old ones: no maintenance runs */
        kit_at(k, i * MINUTE);
        assert_int_equal(kit_place(k, "again",
                                   i == 0   ? "a"
                                   : i == 1 ? "b"
                                            : "c",
                                   "guest", DAY),
                         HF_OK);
        assert_false(k->got.replayed);
        memcpy(id[i], k->got.answer.hold.id, HF_ID_SIZE);
    }
    assert_int_equal(kit_place(k, "again", "c", "guest", DAY), HF_OK);
    assert_true(k->got.replayed);
    assert_string_equal(k->got.answer.hold.id, id[2]);
    assert_int_equal(kit_place(k, "again", "b", "guest", DAY), HF_TOKEN_COLLISION);
    kit_settle(k); /* frees the old uses and not the new one */
    assert_int_equal(kit_stats(k).tokens, 1);
    assert_int_equal(kit_place(k, "again", "c", "guest", DAY), HF_OK);
    assert_string_equal(k->got.answer.hold.id, id[2]);
    kit_reopen(k);
    assert_int_equal(kit_place(k, "again", "c", "guest", DAY), HF_OK);
    assert_string_equal(k->got.answer.hold.id, id[2]);
    assert_int_equal(holds(), 3);
}

static void a_malformed_token_is_refused_before_all_else_and_not_remembered(void **state)
{
    (void)state;
    char longest[258];
    memset(longest, 't', sizeof longest);
    longest[257] = '\0';
    assert_int_equal(kit_place(k, "", "", "", 0), HF_INVALID_REQUEST);
    assert_int_equal(kit_place(k, longest, "room", "guest", HOUR), HF_INVALID_REQUEST);
    assert_int_equal(kit_stats(k).tokens, 0);
    longest[256] = '\0';
    assert_int_equal(kit_place(k, longest, "", "guest", HOUR),
                     HF_INVALID_REQUEST); /* this one is remembered */
    assert_int_equal(kit_stats(k).tokens, 1);
    assert_int_equal(kit_place(k, longest, "room", "guest", HOUR), HF_TOKEN_COLLISION);
    assert_int_equal(kit_place(k, longest, "", "guest", HOUR), HF_INVALID_REQUEST);
    assert_true(k->got.replayed);
}

/* A front end could not read all of the parameters: the refusal and its reason are remembered, in a
 * key or a number, over a restart, and in the audit's eyes they are like every other. */
static void what_could_not_be_read_is_remembered_with_its_reason(void **state)
{
    (void)state;
    static const struct hf_flaw sent = { "resource", { "7", 1 } }, none = { "resource", { "", 0 } };
    char why[HF_WHY_MAX + 1];
    memset(why, 'w', sizeof why);
    const struct hf_invalid seven = { &sent, 1, hf_str("resource: expected text, got 7") },
                            missing = { &none, 1, hf_mem(why, HF_WHY_MAX) },
                            wordy = { &none, 1, hf_mem(why, sizeof why) };
    struct hf_request r = { .action = HF_PLACE_HOLD, .key = hf_str("k"), .invalid = &seven };
    r.place_hold.requester = hf_str("guest");
    r.place_hold.duration_ms = HOUR;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        assert_int_equal(k->got.replayed, i > 0);
        assert_int_equal(k->got.answer.kind, HF_RECORD_VALUE);
        assert_true(kit_is(k->got.answer.value, "resource: expected text, got 7"));
        if (i == 1)
            kit_reopen(k);
    }
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_GET_TOKEN, .key = r.key }), HF_OK);
    assert_int_equal(k->got.token.status, HF_INVALID_REQUEST);
    assert_true(kit_is(k->got.answer.value, "resource: expected text, got 7"));
    r.invalid = &missing;
    assert_int_equal(kit_do(k, r), HF_TOKEN_COLLISION);
    r.key = hf_str("");
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    assert_int_equal(k->got.token.expires_at, 0);
    r.client = hf_str("client");
    r.sequence = 1;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
        assert_int_equal(k->got.replayed, i);
        assert_int_equal(k->got.answer.value.size, HF_WHY_MAX);
    }
    r.client = hf_str("");
    r.sequence = 0;
    r.key = hf_str("l");
    r.invalid = &wordy;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    assert_int_equal(k->got.answer.kind, HF_NO_RECORD);
    static const enum hf_action actions[] = { HF_CONFIRM, HF_CONFIRM_LATE, HF_REVERSE,
                                              HF_GRANT,   HF_WRITE,        HF_DELETE_REGISTER,
                                              HF_APPLY,   HF_DELETE_LEASE };
    for (size_t i = 0; i < 2 * sizeof actions / sizeof *actions; i++) {
        struct hf_request other = { .action = actions[i / 2], .invalid = &missing };
        char key[8];
        snprintf(key, sizeof key, "a%zu", i / 2);
        other.key = hf_str(key);
        assert_int_equal(kit_do(k, other), HF_INVALID_REQUEST);
        assert_int_equal(k->got.replayed, i % 2);
    }
    assert_int_equal(kit_do(k, (struct hf_request){ .action = HF_CHECK, .invalid = &missing }),
                     HF_INVALID_REQUEST);
    assert_int_equal(holds(), 0);
}

/* The sentence of the answer that kit_do has just got. */
static void says(struct hf_request r, const char *sentence)
{
    char text[512], cut[8];
    size_t size = hf_explain(&r, &k->got, text, sizeof text);
    assert_string_equal(text, sentence);
    assert_int_equal(size, strlen(sentence));
    assert_int_equal(hf_explain(&r, &k->got, cut, sizeof cut), size);
    assert_int_equal(strncmp(cut, sentence, sizeof cut - 1), 0);
    assert_int_equal(hf_explain(&r, &k->got, NULL, 0), size);
}

/* As over HTTP: the exact reason where there is one, else the fixed sentence, or the text that is
 * stored with the key. */
static void a_refusal_says_what_happened_and_what_to_do(void **state)
{
    (void)state;
    static const struct hf_flaw sent = { "resource", { "7", 1 } };
    const struct hf_invalid seven = { &sent, 1, hf_str("resource: expected text, got 7") };
    struct hf_request r = { .action = HF_BEGIN, .key = hf_str("c") };
    r.begin.payload = hf_str("1");
    assert_int_equal(kit_do(k, r), HF_OK);
    says(r, "");
    r.begin.lease_ms = -1;
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    says(r, "lease: expected a duration from 1ms to 3650d, got -1ms. Correct it and retry.");
    r = (struct hf_request){ .action = HF_COMPLETE, .key = hf_str("c"), .settle = { .fence = 7 } };
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    says(r, "fence: 7 was never given for this claim. Its newest fence is 1. Send the fence from "
            "the answer that you received.");
    r = (struct hf_request){ .action = HF_CONFIRM, .key = hf_str("k") };
    r.hold.id = hf_str("none");
    assert_int_equal(kit_do(k, r), HF_NOT_KNOWN);
    says(r, "There is no hold with this id. Check the id, the tenant and the store.");
    r = (struct hf_request){ .action = HF_PLACE_HOLD, .key = hf_str("l"), .invalid = &seven };
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    says(r, "resource: expected text, got 7");
    r = (struct hf_request){ .action = HF_BEGIN, .key = hf_str("b"), .invalid = &seven };
    assert_int_equal(kit_do(k, r), HF_INVALID_REQUEST);
    says(r, "resource: expected text, got 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(walkthrough_of_a_hotel_room_in_six_steps),
        TEST(retries_of_every_action_survive_a_restart),
        TEST(a_late_payment_takes_a_free_unit_or_goes_back),
        TEST(a_late_payment_need_not_wait_for_the_sweeper),
        TEST(banking_an_authorization_retried_by_the_terminal_charges_once),
        TEST(healthcare_a_double_click_from_two_threads_assigns_one_bed),
        TEST(retail_one_of_one_is_reserved_by_one_shopper_however_often_both_retry),
        TEST(airline_an_hour_replayed_after_a_failover_holds_no_seat_twice),
        TEST(regulator_no_two_holds_share_a_key),
        TEST(disputed_the_same_token_is_one_charge_and_two_tokens_are_two),
        TEST(replay_attack_inside_the_window_changes_nothing_and_outside_is_a_new_request),
        TEST(token_reuse_for_another_operation_is_a_collision),
        TEST(a_token_used_again_after_its_window_is_found_by_its_newest_use),
        TEST(a_malformed_token_is_refused_before_all_else_and_not_remembered),
        TEST(what_could_not_be_read_is_remembered_with_its_reason),
        TEST(a_refusal_says_what_happened_and_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

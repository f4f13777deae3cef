/* Rows of right form and impossible content, in files whose CRCs and chain are right: a register
 * whose value is not in its stored form, states that there are not, names and times beyond every
 * limit, holds that their resource does not count. Found by the fuzz targets rows and snapshot:
 * they met assertions, or were read beyond a table's end. A start says that the store is damaged,
 * and what only work can meet is answered as a fault. */
#include "base/id.h"
#include "engine/kit/engine.h"
#include "store/kit/journal_writer.h"
#include "support/test.h"

enum { SEGMENT = 1 << 20 };

static struct jw w;
static char filler[HF_NAME_MAX + 1];

/* A closed kit, and in its directory the beginning of a journal. */
static struct kit *journal_begin(void)
{
    struct kit *k = kit_make();
    kit_leave(k);
    jw_open(&w, k->dir, SEGMENT);
    jw_begin(&w, KIT_START);
    return k;
}

static enum hf_status journal_open(struct kit *k)
{
    struct hf_error why;
    jw_commit(&w);
    jw_close(&w);
    enum hf_status st = hf_open(k->dir, &k->options, &k->db, &why);
    if (st != HF_OK)
        assert_non_null(strstr(why.text, "malformed"));
    return st;
}

static void expect(const struct hf_row *row, enum hf_status wanted, const char *what)
{
    struct kit *k = journal_begin();
    *jw_row(jw_add(&w, HF_APPLY), row->kind) = *row;
    enum hf_status st = journal_open(k);
    if (st != wanted)
        fail_msg("%s: %s", what, hf_status_code(st));
    kit_free(k);
}

static void damaged(struct hf_row row, const char *what)
{
    expect(&row, HF_STORE_DAMAGED, what);
}

static void good(struct hf_row row, const char *what)
{
    expect(&row, HF_OK, what);
}

static struct hf_row reg(enum hf_register_type type, const char *form, size_t size)
{
    return (struct hf_row){ .kind = HF_ROW_REGISTER,
                            .reg = { .name = hf_str("r"),
                                     .version = 1,
                                     .value = { .type = type, .bytes = hf_mem(form, size) } } };
}

static void registers(void **state)
{
    (void)state;
    good(reg(HF_TYPE_MAX, "12345678", 8), "a maximum");
    good(reg(HF_TYPE_UNION, "\1\0a\1\0b", 6), "a union");
    damaged(reg(HF_TYPE_MAX, "1234567", 7), "a maximum that is too short");
    damaged(reg(HF_TYPE_OR, "\2", 1), "a flag that is neither");
    damaged(reg(HF_TYPE_UNION, "\1\0b\1\0a", 6), "a union out of order");
    damaged(reg(HF_TYPE_LWW, "12345678", 8), "a stamped value without its node");
    damaged(reg((enum hf_register_type)10, "x", 1), "a type that there is not");
    damaged(reg((enum hf_register_type)0, "x", 1), "no type");
}

static void states_and_limits(void **state)
{
    (void)state;
    const struct hf_bytes name = hf_str("n"), longer = hf_mem(filler, sizeof filler);
    struct hf_row claim = {
        .kind = HF_ROW_CLAIM,
        .claim = { .key = name, .state = HF_CLAIM_STARTED, .fence = 1, .lease_ms = HOUR }
    };
    struct hf_row guard = { .kind = HF_ROW_GUARD, .guard = { .name = name, .window_ms = HOUR } };
    struct hf_row resource = { .kind = HF_ROW_RESOURCE,
                               .resource = { .name = name, .capacity = 1 } };
    struct hf_row config = { .kind = HF_ROW_CONFIG, .config = { HOUR, 256, false, name, name } };
    good(claim, "a claim");
    good(guard, "a guard");
    good(resource, "a resource");
    claim.claim.state = (enum hf_claim_state)77;
    damaged(claim, "a claim in no state");
    claim.claim.state = HF_CLAIM_STARTED;
    claim.claim.lease_ms = INT64_MAX;
    damaged(claim, "a claim without end");
    guard.guard.match_count = 1;
    guard.guard.match[0] = (enum hf_match)9;
    damaged(guard, "a step that there is not");
    resource.resource.held = UINT32_MAX;
    damaged(resource, "more held than any resource has");
    resource.resource.held = 0;
    resource.resource.name = longer;
    damaged(resource, "a name beyond the limit");
    config.config.token_max_length = HF_TOKEN_MAX + 1;
    damaged(config, "keys beyond the limit");
}

/* A store with two holds in one state on a resource that counts `held` of them. */
static struct kit *uncounted(enum hf_hold_state hold_state, uint32_t held)
{
    struct kit *k = journal_begin();
    jw_row(jw_add(&w, HF_SET_RESOURCE), HF_ROW_RESOURCE)->resource =
        (struct hf_resource){ .name = hf_str("r"), .capacity = 5, .held = held, .open = true };
    for (uint64_t ordinal = 1; ordinal <= 2; ordinal++) {
        struct hf_hold *hold = &jw_row(jw_add(&w, HF_PLACE_HOLD), HF_ROW_HOLD)->hold;
        *hold = (struct hf_hold){ .ordinal = ordinal,
                                  .state = hold_state,
                                  .placed_at = KIT_START,
                                  .expires_at = KIT_START + MINUTE,
                                  .resource = hf_str("r"),
                                  .requester = hf_str("q") };
        hf_id_make(&w.id_key, ordinal, hold->id);
    }
    assert_int_equal(journal_open(k), HF_OK);
    return k;
}

static void a_hold_that_is_not_counted_is_not_decided_over(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    struct kit *k = uncounted(HF_HELD, 0);
    hf_id_make(&w.id_key, 1, id);
    assert_int_equal(kit_end(k, HF_RELEASE, "a", id), HF_STORAGE_FAILURE);
    kit_free(k);
    k = uncounted(HF_CONFIRMED, 0);
    assert_int_equal(kit_end(k, HF_REVERSE, "a", id), HF_STORAGE_FAILURE);
    kit_free(k);
}

static void the_sweeper_passes_over_it(void **state)
{
    (void)state;
    struct kit *k = uncounted(HF_HELD, 1);
    kit_at(k, HOUR);
    assert_int_equal(kit_place(k, "a", "r", "q", MINUTE),
                     HF_STORAGE_FAILURE); /* two are in its way */
    kit_settle(k);
    assert_non_null(strstr(k->note, "holdfast audit"));
    assert_int_equal(kit_place(k, "b", "r", "q", MINUTE), HF_OK);
    kit_free(k);
}

/* A confirmed hold that was given back is not counted either, and is all right. */
static void what_was_given_back_is_readable(void **state)
{
    (void)state;
    char id[HF_ID_SIZE];
    struct kit *k = kit_make();
    kit_held(k, "r", HOUR, id);
    assert_int_equal(kit_end(k, HF_CONFIRM, "a", id), HF_OK);
    assert_int_equal(kit_end(k, HF_REVERSE, "b", id), HF_OK);
    kit_reopen(k);
    assert_int_equal(kit_get_hold(k, id), HF_OK);
    assert_int_equal(kit_end(k, HF_REVERSE, "c", id), HF_NOT_HELD);
    kit_free(k);
}

int main(void)
{
    memset(filler, 'x', sizeof filler);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers),
        cmocka_unit_test(states_and_limits),
        cmocka_unit_test(a_hold_that_is_not_counted_is_not_decided_over),
        cmocka_unit_test(the_sweeper_passes_over_it),
        cmocka_unit_test(what_was_given_back_is_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* hf_close: "finish what is in flight". An operation that a callback submits while hf_close flushes
 * is never called back. */
#include "engine/kit/engine.h"
#include "support/test.h"
struct chain {
    struct hf_op op;
    struct hf_request r;
    char key[32];
    struct kit *k;
    int left, done;
};
static void done(struct hf_op *op, enum hf_status st)
{
    struct chain *c = op->arg;
    (void)st;
    c->done++;
    if (c->left-- > 0) {
        snprintf(c->key, sizeof c->key, "c%d", c->left);
        c->r.key = hf_str(c->key);
        hf_submit(c->k->db, op);
    }
}
static void run(bool background)
{
    struct kit *k = kit_make();
    if (background) {
        k->options.no_background = false;
        kit_reopen(k);
    }
    struct chain c = { .k = k,
                       .left = 3,
                       .r = { .action = HF_PLACE_HOLD,
                              .key = hf_str("first"),
                              .place_hold = { hf_str("x"), hf_str("y"), 1000, 0 } } };
    c.op = (struct hf_op){ .request = &c.r, .done = done, .arg = &c };
    hf_submit(k->db, &c.op);
    struct hf_db *db = k->db;
    hf_close(db);
    k->db = NULL;
    printf("callbacks %d of 4\n", c.done);
    assert_int_equal(c.done, 4);
    kit_free(k);
}
static void close_waits_for_what_callbacks_submit(void **s)
{
    (void)s;
    run(false);
}
static void close_waits_for_what_callbacks_submit_in_the_background(void **s)
{
    (void)s;
    run(true);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_waits_for_what_callbacks_submit),
        cmocka_unit_test(close_waits_for_what_callbacks_submit_in_the_background)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* TSan: misused() reads db->deciding while another thread's apply writes it. And background is
 * written unlocked. */
#include "engine/kit/engine.h"
#include "support/test.h"
#include <pthread.h>
#include <sched.h>
static enum hf_status fn(struct hf_tx *tx, void *arg)
{
    (void)arg;
    for (int z = 0; z < 3; z++)
        sched_yield();
    return hf_tx_put(tx, hf_str("a"), hf_str("1"));
}
static struct kit *k;
static _Atomic int n;
static void *work(void *arg)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "k%d", atomic_fetch_add(&n, 1));
        struct hf_request r = { .action = HF_APPLY,
                                .key = hf_str(key),
                                .apply = { .name = hf_str("n"), .fn = fn } };
        KIT_WANT(hf_do(k->db, &r, NULL) == HF_OK);
    }
    return NULL;
}
static void asking_while_an_apply_runs_does_not_race(void **s)
{
    (void)s;
    k = kit_make();
    pthread_t th[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&th[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(th[i], NULL);
    kit_free(k);
}
static void opening_while_others_commit_does_not_race(void **s)
{
    (void)s;
    k = kit_make();
    char id[HF_ID_SIZE];
    for (int i = 0; i < 300; i++) {
        char r[16];
        snprintf(r, sizeof r, "r%d", i);
        kit_held(k, r, 1, id);
    }
    kit_at(k, 1000);
    k->options.no_background = false;
    for (int i = 0; i < 20; i++) {
        kit_reopen(k);
        for (int z = 0; z < 20; z++) {
            char r[16];
            snprintf(r, sizeof r, "q%d-%d", i, z);
            kit_held(k, r, 1, id);
        }
        kit_at(k, 2000 * (i + 1));
    }
    kit_free(k);
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(asking_while_an_apply_runs_does_not_race),
                                        cmocka_unit_test(
                                            opening_while_others_commit_does_not_race) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

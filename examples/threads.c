/* threads.c: payments from many threads, one commit for all of them.
 *
 *     cc threads.c -pthread $(pkg-config --cflags --libs holdfast) -o threads && ./threads
 *
 * Each thread takes payments from a queue that delivers some of them twice, to different threads.
 * It begins a claim for each with hf_submit, which does not wait for the disk, and goes on to the
 * next payment. The library calls `begun` when the claim is durable: only then may the card be
 * charged. Exactly one of two deliveries is told to charge; the other hears in-progress, or the
 * stored response. */
#include <holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, PAYMENTS = 100, DELIVERIES = 2 * PAYMENTS };

static struct hf_db *db;
static atomic_int next_delivery, charges, waits, replays, failures;
static atomic_int unanswered = DELIVERIES;

/* A payment on its way. The library borrows request and result until the callback has run, so they
 * live here and not on the stack of the thread. */
struct payment {
    char key[32];
    struct hf_request request;
    struct hf_result result;
    struct hf_op op;
};

/* The card company. It runs on the thread that got the claim, outside of the library. */
static void charge(struct payment *p)
{
    struct hf_result settled = HF_RESULT_INIT;
    atomic_fetch_add(&charges, 1);
    enum hf_status status =
        hf_do(db,
              &(struct hf_request){ .action = HF_COMPLETE,
                                    .key = hf_str(p->key),
                                    .settle = { .fence = p->result.answer.claim.fence,
                                                .response = hf_str("charged") } },
              &settled);
    if (status != HF_OK)
        atomic_fetch_add(&failures, 1);
    hf_result_clear(&settled);
}

/* Payments whose claim is begun, for the threads that charge. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct payment *begun[DELIVERIES];
    int count;
} work = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

/* Called by the library, on any of its callers' threads: note the answer and return at once. Only
 * hf_submit may be called from here. */
static void begun(struct hf_op *op, enum hf_status status)
{
    struct payment *p = op->arg;
    bool charges_now = status == HF_OK && !p->result.replayed;
    if (status == HF_IN_PROGRESS)
        atomic_fetch_add(&waits, 1);
    else if (status == HF_OK && p->result.replayed)
        atomic_fetch_add(&replays, 1);
    else if (status != HF_OK)
        atomic_fetch_add(&failures, 1);
    pthread_mutex_lock(&work.lock);
    if (charges_now)
        work.begun[work.count++] = p;
    atomic_fetch_sub(&unanswered, 1);
    pthread_cond_broadcast(&work.more);
    pthread_mutex_unlock(&work.lock);
}

static struct payment payments[DELIVERIES];

static void submit(int delivery)
{
    struct payment *p = &payments[delivery];
    snprintf(p->key, sizeof p->key, "payment-%d", delivery % PAYMENTS);
    p->request =
        (struct hf_request){ .action = HF_BEGIN,
                             .key = hf_str(p->key),
                             .begin = { .payload = hf_str("100 EUR"), .lease_ms = 60000 } };
    p->op = (struct hf_op){ .request = &p->request, .result = &p->result, .done = begun, .arg = p };
    hf_submit(db, &p->op);
}

/* A payment to charge; NULL when every delivery is answered and charged. */
static struct payment *take(void)
{
    struct payment *p = NULL;
    pthread_mutex_lock(&work.lock);
    while (work.count == 0 && atomic_load(&unanswered) > 0)
        pthread_cond_wait(&work.more, &work.lock);
    if (work.count > 0)
        p = work.begun[--work.count];
    pthread_mutex_unlock(&work.lock);
    return p;
}

static void *run(void *arg)
{
    (void)arg;
    for (int delivery; (delivery = atomic_fetch_add(&next_delivery, 1)) < DELIVERIES;)
        submit(delivery);
    for (struct payment *p; (p = take()) != NULL;)
        charge(p);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct hf_error why;
    int started = 0;
    if (hf_open(argc > 1 ? argv[1] : ":memory:", NULL, &db, &why) != HF_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    while (started < THREADS && pthread_create(&threads[started], NULL, run, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < DELIVERIES; i++)
        hf_result_clear(&payments[i].result);
    hf_close(db);
    printf("%d deliveries: %d charges, %d were told to wait or got the response, %d failures\n",
           DELIVERIES, atomic_load(&charges), atomic_load(&waits) + atomic_load(&replays),
           atomic_load(&failures));
    return started > 0 && atomic_load(&charges) == PAYMENTS && atomic_load(&failures) == 0 ? 0 : 1;
}

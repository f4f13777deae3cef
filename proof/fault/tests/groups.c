/* Calls of the library that are more than one request, or none: groups, submissions, lists,
 * figures. */
#include "fault/store.h"
#include "support/test.h"

static char large[5000];

/* ---- Groups ---- */

enum { REQUESTS = 5 };

static void requests_make(struct hf_request r[REQUESTS])
{
    r[0] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str(FAULT_KEY),
                                .place_hold = { .resource = hf_str("fresh"),
                                                .requester = hf_str("guest"),
                                                .duration_ms = HOUR } };
    r[1] = (struct hf_request){ .action = HF_CONFIRM,
                                .key = hf_str(FAULT_KEY "-2"),
                                .hold = { hf_str(furnished.old_held) } };
    r[2] = (struct hf_request){ .action = HF_WRITE,
                                .key = hf_str(FAULT_KEY "-3"),
                                .write = { .name = hf_str("plain"), .value = hf_str(large) } };
    r[3] = (struct hf_request){ .action = HF_GET_REGISTER, .get = { hf_str("register-1") } };
    r[4] = (struct hf_request){ .action = HF_PLACE_HOLD,
                                .key = hf_str("used-key"),
                                .place_hold = { .resource = hf_str("full"),
                                                .requester = hf_str("guest"),
                                                .duration_ms = DAY } };
}

static void do_many(struct kit *k, struct outcome *o)
{
    struct hf_request r[REQUESTS];
    struct hf_result got[REQUESTS] = { HF_RESULT_INIT };
    requests_make(r);
    enum hf_status st = hf_do_many(k->db, r, got, REQUESTS);
    for (size_t i = 0; i < REQUESTS; i++) {
        KIT_WANT(st == HF_OK || st == HF_INDETERMINATE);
        outcome_add_result(o, &got[i], got[i].answer.status);
        hf_result_clear(&got[i]);
    }
}

/* ---- Submissions ---- */

struct flight {
    struct hf_op op;
    struct hf_result got;
    int done;
    enum hf_status status;
};

static void landed(struct hf_op *op, enum hf_status status)
{
    struct flight *f = op->arg;
    f->done++;
    f->status = status;
}

static void submit(struct kit *k, struct outcome *o)
{
    struct hf_request r[REQUESTS];
    struct flight f[REQUESTS];
    requests_make(r);
    memset(f, 0, sizeof f);
    for (size_t i = 0; i < REQUESTS; i++)
        f[i].op = (struct hf_op){ .request = &r[i],
                                  .result = &f[i].got,
                                  .done = landed,
                                  .arg = &f[i],
                                  .next = i + 1 < REQUESTS ? &f[i + 1].op : NULL };
    hf_submit(k->db, &f[0].op);
    hf_flush(k->db);
    for (size_t i = 0; i < REQUESTS; i++) {
        KIT_WANT(f[i].done == 1);
        outcome_add_result(o, &f[i].got, f[i].status);
        hf_result_clear(&f[i].got);
    }
}

/* What was submitted and not flushed is finished by the close; here the barrier does it. */
static void barrier(struct kit *k, struct outcome *o)
{
    struct hf_request r[REQUESTS];
    struct flight f = { .op = { .done = landed } };
    requests_make(r);
    f.op.request = &r[0];
    f.op.result = &f.got;
    f.op.arg = &f;
    hf_submit(k->db, &f.op);
    enum hf_status st = hf_barrier(k->db);
    KIT_WANT(st == HF_OK || st == HF_INDETERMINATE);
    hf_flush(k->db);
    KIT_WANT(f.done == 1);
    outcome_add_result(o, &f.got, f.status);
    hf_result_clear(&f.got);
}

/* ---- Lists ---- */

static void list(struct kit *k, struct outcome *o, const struct hf_query *query)
{
    struct hf_page page;
    char text[64];
    enum hf_status st = hf_list(k->db, query, &page);
    if (st != HF_OK && (page.count || page.rows || page.heap))
        fault_blame("a list that failed has left something in its page");
    snprintf(text, sizeof text, "%s: %zu records, more: %d", hf_status_code(st), page.count,
             page.next_cursor != 0);
    hf_page_clear(&page);
    outcome_add_text(o, st, text);
}

static void list_holds(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_HOLDS });
}

static void list_holds_before(struct kit *k, struct outcome *o)
{
    list(k, o,
         &(struct hf_query){ .kind = HF_LIST_HOLDS, .to = KIT_START + MINUTE, .state = HF_HELD });
}

static void list_holds_of(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_HOLDS, .resource = hf_str("old"), .limit = 1 });
}

static void list_resources(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_RESOURCES });
}

static void list_guards(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_GUARDS });
}

static void list_entries(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_ENTRIES, .name = hf_str("open") });
}

static void list_outbox(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_OUTBOX });
}

static void list_claims(struct kit *k, struct outcome *o)
{
    list(k, o, &(struct hf_query){ .kind = HF_LIST_CLAIMS });
}

static void stats(struct kit *k, struct outcome *o)
{
    struct hf_stats s = kit_stats(k);
    char text[64];
    snprintf(text, sizeof text, "%llu holds", (unsigned long long)s.holds);
    outcome_add_text(o, HF_OK, text);
}

#define READS(f)                            \
    {                                       \
        .name = #f, .run = f, .reads = true \
    }

static void groups(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        { .name = "do_many", .run = do_many, .group = true },
        { .name = "submit", .run = submit, .group = true },
        { .name = "barrier", .run = barrier },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (fault_wanted(2))
            fault_case_try(&cases[i]);
}

static void lists(void **state)
{
    (void)state;
    static const struct fault_case cases[] = {
        READS(list_holds),     READS(list_holds_before), READS(list_holds_of),
        READS(list_resources), READS(list_guards),       READS(list_entries),
        READS(list_outbox),    READS(list_claims),       READS(stats),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (fault_wanted(2))
            fault_case_try(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups),
        cmocka_unit_test(lists),
    };
    memset(large, 'x', sizeof large - 1);
    fault_furnish();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_unfurnish();
    fault_report("fault_groups");
    return failed;
}

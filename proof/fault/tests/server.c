/* Every call of the HTTP interface, with every failure point in the server: memory and files. What
 * is told is right, what is not told is settled by asking again, and the server lives on. */
#include "fault/server.h"
#include "support/test.h"

#define HOLD "{\"resource\":\"r-#\",\"requester\":\"q-#\",\"duration\":\"1h\"}"
#define PLACED                           \
    {                                    \
        "POST /v1/holds", "lead-#", HOLD \
    }
#define CONFIRMED                                  \
    {                                              \
        "POST /v1/holds/@/confirm", "then-#", NULL \
    }
#define GUARDED                                                                       \
    {                                                                                 \
        "PUT /v1/guards/g-#", NULL, "{\"window\":\"1h\",\"on_unavailable\":\"open\"}" \
    }
#define CLOSED                                                                          \
    {                                                                                   \
        "PUT /v1/guards/g-#", NULL, "{\"window\":\"1h\",\"on_unavailable\":\"closed\"}" \
    }
#define HASHED                                                                 \
    {                                                                          \
        "PUT /v1/guards/g-#", NULL, "{\"window\":\"1h\",\"match\":[\"hash\"]}" \
    }
#define RECORDED                                                                                \
    {                                                                                           \
        "POST /v1/guards/g-#/record", NULL, "{\"identity\":\"known\",\"result\":{\"a\":[1,2]}}" \
    }
/* A name for which a result needs memory of its own. */
#define FIFTY "--------------------------------------------------"
#define LONG FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY
#define HASHED_LONG                                                                 \
    {                                                                               \
        "PUT /v1/guards/g-#" LONG, NULL, "{\"window\":\"1h\",\"match\":[\"hash\"]}" \
    }
#define RECORDED_LONG                                                          \
    {                                                                          \
        "POST /v1/guards/g-#" LONG "/record", NULL, "{\"identity\":\"known\"}" \
    }
#define BEGUN                                                                      \
    {                                                                              \
        "POST /v1/claims", NULL,                                                   \
            "{\"key\":\"c-#\",\"payload\":{\"b\":1,\"a\":[2,3]},\"lease\":\"1h\"}" \
    }
#define GRANTED                                                               \
    {                                                                         \
        "POST /v1/leases/l-#", "lead-#", "{\"holder\":\"me\",\"ttl\":\"1h\"}" \
    }
#define WRITTEN                                                    \
    {                                                              \
        "PUT /v1/registers/v-#", "lead-#", "{\"value\":{\"a\":1}}" \
    }

static const struct fault_route changes[] = {
    { .call = { "POST /v1/holds", "k-#", HOLD }, .look = "GET /v1/resources/r-#" },
    { .call = { "POST /v1/holds", "k-#",
                "{\"resource\":\"\\u00e4-#\",\"requester\":\"q\\n\",\"duration\":\"1h\"}" },
      .look = "GET /v1/resources/%C3%A4-#" },
    { .call = { "POST /v1/holds/@/confirm", "k-#", NULL },
      .leads = { PLACED },
      .look = "GET /v1/holds/@" },
    { .call = { "POST /v1/holds/@/release", "k-#", "{}" },
      .leads = { PLACED },
      .look = "GET /v1/holds/@" },
    { .call = { "POST /v1/holds/@/reverse", "k-#", NULL },
      .leads = { PLACED, CONFIRMED },
      .look = "GET /v1/resources/r-#" },
    { .call = { "PUT /v1/resources/r-#", NULL, "{\"capacity\":7,\"open\":false}" },
      .look = "GET /v1/resources/r-#" },
    { .call = { "PUT /v1/guards/g-#", NULL,
                "{\"window\":\"1h\",\"match\":[\"trim\",\"casefold\"]}" },
      .look = "GET /v1/guards/g-#" },
    { .call = { "POST /v1/guards/g-#/record", NULL,
                "{\"identity\":\"i\",\"result\":{\"z\":[1,{\"y\":null}]}}" },
      .leads = { GUARDED },
      .look = "GET /v1/guards/g-#/entries",
      .guard = true },
    { .call = { "POST /v1/guards/g-#/admit", NULL, "{\"identity\":\"i\",\"result\":\"\\u20ac\"}" },
      .leads = { CLOSED },
      .look = "GET /v1/guards/g-#/entries",
      .once = true,
      .guard = true },
    { .call = { "POST /v1/claims", NULL,
                "{\"key\":\"c-#\",\"payload\":{\"b\":1,\"a\":[2,3]},\"lease\":\"1h\"}" },
      .look = "GET /v1/claims/c-#",
      .once = true },
    { .call = { "POST /v1/claims/c-#/complete", NULL,
                "{\"fence\":^,\"response\":{\"z\":1,\"a\":\"\\u00e9\"}}" },
      .leads = { BEGUN },
      .look = "GET /v1/claims/c-#" },
    { .call = { "POST /v1/claims/c-#/fail", NULL,
                "{\"fence\":^,\"retryable\":false,\"error\":[1,2,3]}" },
      .leads = { BEGUN },
      .look = "GET /v1/claims/c-#",
      .once = true },
    { .call = { "POST /v1/claims/c-#/heartbeat", NULL, "{\"fence\":^,\"lease\":\"2h\"}" },
      .leads = { BEGUN },
      .look = "GET /v1/claims/c-#" },
    { .call = { "POST /v1/leases/l-#", "k-#", "{\"holder\":\"me\",\"ttl\":\"1h\"}" },
      .look = "GET /v1/leases/l-#" },
    { .call = { "POST /v1/leases/l-#/renew", NULL, "{\"fence\":^,\"ttl\":\"2h\"}" },
      .leads = { GRANTED },
      .look = "GET /v1/leases/l-#" },
    { .call = { "POST /v1/leases/l-#/release", NULL, "{\"fence\":^}" },
      .leads = { GRANTED },
      .look = "GET /v1/leases/l-#",
      .once = true },
    { .call = { "PUT /v1/registers/v-#", "k-#",
                "{\"value\":[1,{\"c\":2,\"b\":3}],\"if_version\":1}" },
      .leads = { WRITTEN },
      .look = "GET /v1/registers/v-#" },
    { .call = { "POST /v1/registers/v-#/merge", NULL,
                "{\"type\":\"union\",\"value\":[\"x\",\"y\",\"z\"]}" },
      .look = "GET /v1/registers/v-#" },
    { .call = { "POST /v1/registers/v-#/merge", NULL,
                "{\"type\":\"updown\",\"value\":{\"n\":{\"up\":3,\"down\":1},\"m\":{\"up\":1,"
                "\"down\":0}}}" },
      .look = "GET /v1/registers/v-#" },
};

/* Each line of a batch has its own fate. One line that changes something is enough to see it. */
static const struct fault_route batches[] = {
    { .call = { "POST /v1/batch", NULL,
                "{\"op\":\"write\",\"key\":\"k-#\",\"name\":\"v-#\",\"value\":{\"b\":[1],\"a\":2}}"
                "\n" },
      .look = "GET /v1/registers/v-#",
      .once = true },
};

static const struct fault_route reads[] = {
    { .call = { .what = "GET /v1/holds/@" }, .leads = { PLACED } },
    { .call = { .what = "GET /v1/holds?resource=r-#&limit=5" }, .leads = { PLACED } },
    { .call = { .what = "GET /v1/resources/r-#" }, .leads = { PLACED } },
    { .call = { .what = "GET /v1/resources/%72-#" }, .leads = { PLACED } },
    { .call = { .what = "GET /v1/guards/g-#" }, .leads = { GUARDED } },
    { .call = { .what = "GET /v1/guards/g-#/entries" }, .leads = { GUARDED, RECORDED } },
    { .call = { .what = "GET /v1/guards/g-#/entries" }, .leads = { HASHED, RECORDED } },
    { .call = { .what = "GET /v1/guards/g-#" LONG "/entries" },
      .leads = { HASHED_LONG, RECORDED_LONG } },
    { .call = { "POST /v1/guards/g-#/check", NULL, "{\"identity\":\"known\"}" },
      .leads = { GUARDED, RECORDED } },
    { .call = { .what = "GET /v1/claims/c-#" }, .leads = { BEGUN } },
    { .call = { .what = "GET /v1/leases/l-#" }, .leads = { GRANTED } },
    { .call = { .what = "GET /v1/registers/v-#" }, .leads = { WRITTEN } },
    { .call = { .what = "GET /v1/tokens/lead-#" }, .leads = { PLACED } },
    { .call = { .what = "GET /v1/tokens/nobody-#" } },
    { .call = { "POST /v1/holds", "lead-#", HOLD }, .leads = { PLACED } },
    { .call = { "POST /v1/holds", "lead-#",
                "{\"resource\":\"other\",\"requester\":\"q\",\"duration\":\"1h\"}" },
      .leads = { PLACED } },
    { .call = { "POST /v1/holds", "k-#", "{\"resource\":}" } },
    { .call = { .what = "GET /v1/trace/lead-#" },
      .leads = { PLACED },
      .audits = true,
      .sparse = true },
    { .call = { .what = "GET /v1/trace/@" },
      .leads = { PLACED, CONFIRMED },
      .fields = "Accept: text/plain\r\n",
      .audits = true,
      .sparse = true },
    { .call = { .what = "GET /nowhere" } },
    { .call = { .what = "DELETE /v1/holds" } },
    { .call = { .what = "GET /healthz" } },
    { .call = { .what = "GET /readyz" } },
};

/* Their answers grow with the store or the time. */
static const struct fault_route figures[] = {
    { .call = { .what = "GET /v1/resources" } },
    { .call = { .what = "GET /v1/guards" } },
    { .call = { .what = "GET /v1/audit" }, .loose = true, .audits = true },
    { .call = { .what = "GET /v1/audit" },
      .fields = "Accept: text/plain\r\n",
      .loose = true,
      .audits = true },
    { .call = { .what = "GET /v1/export" }, .audits = true },
    { .call = { .what = "GET /v1/export?format=sqlite" },
      .loose = true,
      .audits = true,
      .sparse = true },
    { .call = { .what = "GET /v1/openapi.json" } },
    { .call = { .what = "GET /metrics" }, .loose = true },
    { .call = { .what = "GET /" }, .loose = true },
};

#define TRY_ALL(routes, kept)                                      \
    for (size_t i = 0; i < sizeof(routes) / sizeof *(routes); i++) \
        if (fault_wanted(4))                                       \
    fault_route_try(&(routes)[i], FAULT_ALLOC, FAULT_THREAD, kept)

static void changing(void **state)
{
    (void)state;
    fault_server_start(1);
    TRY_ALL(changes, false);
    TRY_ALL(batches, false);
    fault_server_end(0);
}

static void reading(void **state)
{
    (void)state;
    fault_server_start(1);
    TRY_ALL(reads, false);
    fault_server_end(0);
}

static void telling(void **state)
{
    (void)state;
    fault_server_start(1);
    TRY_ALL(figures, false);
    fault_server_end(1); /* the description of the interface, which is made once */
}

static void on_kept_connections_of_many_threads(void **state)
{
    (void)state;
    fault_server_start(4);
    TRY_ALL(changes, true);
    TRY_ALL(batches, true);
    TRY_ALL(reads, true);
    fault_server_end(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changing),
        cmocka_unit_test(reading),
        cmocka_unit_test(telling),
        cmocka_unit_test(on_kept_connections_of_many_threads),
    };
    fault_sqlite();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_report("fault_server");
    return failed;
}

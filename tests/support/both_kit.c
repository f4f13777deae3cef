#include "support/both_kit.h"

#include "support/test.h"

bool both_is_postgres(void)
{
    const char *store = getenv("HF_STORE");
    return store && strcmp(store, "postgres") == 0;
}

struct postgres *both_cluster(void)
{
    static struct postgres p;
    static bool started;
    if (!started) {
        postgres_init(&p);
        postgres_start(&p);
        started = true;
    }
    return &p;
}

void both_empty(void)
{
    if (both_is_postgres())
        postgres_run(both_cluster(), "DROP SCHEMA IF EXISTS holdfast CASCADE");
}

void both_needs_files(void)
{
    if (both_is_postgres())
        skip();
}

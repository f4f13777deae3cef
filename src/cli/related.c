/* Facts that are not in a record: which record reversed a hold, and how many units of a resource
 * are overdue. Both are found by reading the resource's holds, newest first. */
#include "cli/cli.h"

#include "base/clock.h"

/* The time for a search: enough for some hundred thousand holds. */
enum { LOOK_MS = 500 };

static bool look_on(int64_t begun_ms)
{
    return hf_clock_monotonic_ms() - begun_ms < LOOK_MS;
}

enum hf_cli_found hf_cli_reversal(struct hf_cli *cli, const struct hf_hold *hold,
                                  struct hf_hold *reversal)
{
    struct hf_query query = { .kind = HF_LIST_HOLDS,
                              .tenant = hold->tenant,
                              .state = HF_RELEASED,
                              .resource = hold->resource,
                              .requester = hold->requester,
                              .from = hold->ended_at, /* a reversal comes after the confirm */
                              .limit = HF_LIST_MAX };
    for (int64_t begun = hf_clock_monotonic_ms(); look_on(begun);) {
        enum hf_cli_found found = HF_CLI_NONE;
        struct hf_page page;
        if (hf_cli_list(cli, &query, &page, true) != HF_EXIT_DONE)
            return HF_CLI_TOO_FAR;
        for (size_t i = 0; i < page.count && found == HF_CLI_NONE; i++) {
            if (strcmp(page.holds[i].reverses, hold->id) != 0)
                continue;
            memcpy(reversal->id, page.holds[i].id, sizeof reversal->id);
            reversal->placed_at = page.holds[i].placed_at;
            found = HF_CLI_FOUND;
        }
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
        if (found == HF_CLI_FOUND || query.cursor == 0)
            return found;
    }
    return HF_CLI_TOO_FAR;
}

uint32_t hf_cli_overdue(struct hf_cli *cli, const struct hf_resource *resource, hf_time now,
                        bool *exact)
{
    struct hf_query query = { .kind = HF_LIST_HOLDS,
                              .tenant = resource->tenant,
                              .state = HF_HELD,
                              .resource = resource->name,
                              .limit = HF_LIST_MAX };
    uint32_t held = 0, overdue = 0;
    for (int64_t begun = hf_clock_monotonic_ms(); held < resource->held && look_on(begun);) {
        struct hf_page page;
        if (hf_cli_list(cli, &query, &page, true) != HF_EXIT_DONE)
            break;
        for (size_t i = 0; i < page.count; i++)
            overdue += page.holds[i].expires_at <= now;
        held += (uint32_t)page.count;
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
        if (query.cursor == 0)
            break;
    }
    *exact = held == resource->held;
    return overdue;
}

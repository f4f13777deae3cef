/* holdfast list and holdfast claim list: records, newest first, as a table or as JSON. One page at
 * a time is fetched and printed, so a long list needs no more memory than a short one. */
#include "api/encode.h"
#include "base/text.h"
#include "cli/commands.h"

enum { COLUMNS = 6, CLEAN = 2 };

/* The cells of a row. Cells with text from outside are borrowed from the list's `clean`. */
struct row {
    char state[32], number[24], begun[HF_TIME_TEXT], until[HF_TIME_TEXT];
    struct hf_bytes cells[COLUMNS];
};

struct list;

/* What differs between the kinds of records. */
struct kind {
    const char *plural; /* also the member of the JSON */
    const char *titles[COLUMNS];
    void (*row_make)(struct list *list, const struct hf_page *page, size_t i, struct row *row);
};

struct list {
    struct hf_cli *cli;
    const struct kind *kind;
    struct hf_query query;
    uint64_t limit; /* of all pages together; 0: none */
    uint64_t shown;
    hf_time now; /* the store's time at the start of the list */
    size_t widths[COLUMNS];
    struct hf_buffer out, clean[CLEAN];
    struct hf_json json;
};

/* ---- Queries ---- */

/* The options of every list. */
static bool query_read(struct list *list)
{
    struct hf_cli *cli = list->cli;
    struct hf_query *q = &list->query;
    list->limit = 100;
    q->tenant = hf_str(cli->values[HF_OPT_TENANT]);
    return hf_cli_time(cli, HF_OPT_FROM, &q->from) && hf_cli_time(cli, HF_OPT_TO, &q->to) &&
           hf_cli_number(cli, HF_OPT_LIMIT, (struct hf_cli_range){ 0, UINT32_MAX }, &list->limit) &&
           hf_cli_number(cli, HF_OPT_CURSOR, (struct hf_cli_range){ 1, UINT64_MAX }, &q->cursor);
}

static bool holds_read(struct list *list)
{
    struct hf_cli *cli = list->cli;
    struct hf_query *q = &list->query;
    unsigned state = 0;
    q->kind = HF_LIST_HOLDS;
    if (!hf_cli_choice(cli, HF_OPT_STATE, &state) ||
        !hf_cli_filled(cli, HF_OPT_RESOURCE, &q->resource) ||
        !hf_cli_filled(cli, HF_OPT_REQUESTER, &q->requester))
        return false;
    q->state =
        cli->values[HF_OPT_STATE] ? (enum hf_hold_state)(HF_HELD + state) : (enum hf_hold_state)0;
    return true;
}

/* Without a tenant, unsettled claims are those of all tenants; a server decides that itself. */
static bool claims_read(struct list *list)
{
    struct hf_cli *cli = list->cli;
    struct hf_query *q = &list->query;
    unsigned state = 0;
    q->kind = HF_LIST_CLAIMS;
    if (!hf_cli_choice(cli, HF_OPT_STATUS, &state) ||
        !hf_cli_filled(cli, HF_OPT_PREFIX, &q->prefix))
        return false;
    if (cli->values[HF_OPT_STATUS])
        q->claim_state = (enum hf_claim_state)(HF_CLAIM_STARTED + state);
    bool is_open = q->claim_state == HF_CLAIM_STARTED || q->claim_state == HF_CLAIM_UNKNOWN;
    q->all_tenants = is_open && !cli->values[HF_OPT_TENANT] && !hf_cli_remote(cli);
    return true;
}

/* ---- Rows ---- */

/* Text from outside, made safe for the terminal. index: which of list->clean. */
static struct hf_bytes clean(struct list *list, int index, struct hf_bytes text)
{
    hf_buffer_reset(&list->clean[index]);
    hf_cli_add_clean(&list->clean[index], text);
    return hf_mem(list->clean[index].data, list->clean[index].size);
}

static void hold_row(struct list *list, const struct hf_page *page, size_t i, struct row *row)
{
    const struct hf_hold *hold = &page->holds[i];
    const char *state = hf_api_hold_state(hold->state);
    bool overdue = hold->state == HF_HELD && hold->expires_at <= list->now;
    snprintf(row->state, sizeof row->state, "%s%s", state ? state : "unknown",
             overdue             ? " (overdue)"
             : hold->reverses[0] ? " (reversal)"
                                 : "");
    hf_time_format(hold->placed_at, row->begun);
    hf_time_format(hold->state == HF_HELD ? hold->expires_at : hold->ended_at, row->until);
    row->cells[0] = hf_str(hold->id);
    row->cells[1] = hf_str(row->state);
    row->cells[2] = clean(list, 0, hold->resource);
    row->cells[3] = clean(list, 1, hold->requester);
    row->cells[4] = hf_str(row->begun);
    row->cells[5] = hf_str(row->until);
}

static void claim_row(struct list *list, const struct hf_page *page, size_t i, struct row *row)
{
    const struct hf_claim *claim = &page->claims[i];
    const char *state = hf_api_claim_status(claim->state);
    snprintf(row->state, sizeof row->state, "%s%s", state ? state : "?",
             claim->state == HF_CLAIM_RETRYABLE ? " (retryable)" : "");
    snprintf(row->number, sizeof row->number, "%llu", (unsigned long long)claim->fence);
    hf_time_format(claim->begun_at, row->begun);
    hf_time_format(claim->settled_at ? claim->settled_at : claim->lease_expires_at, row->until);
    row->cells[0] = clean(list, 0, claim->key);
    row->cells[1] = hf_str(row->state);
    row->cells[2] = hf_str(row->number);
    row->cells[3] = hf_str(row->begun);
    row->cells[4] = hf_str(row->until);
    row->cells[5] = clean(list, 1, claim->tenant);
}

static const struct kind hold_kind = {
    "holds", { "ID", "STATE", "RESOURCE", "REQUESTER", "PLACED", "EXPIRES / ENDED" }, hold_row
};
static const struct kind claim_kind = {
    "claims", { "KEY", "STATUS", "FENCE", "BEGUN", "LEASE ENDS / SETTLED", "TENANT" }, claim_row
};

/* ---- Printing ---- */

static void row_print(struct list *list, const struct row *row, enum hf_cli_color color)
{
    hf_buffer_add_text(&list->out, hf_cli_color_begin(list->cli->color_out, color));
    for (int i = 0; i < COLUMNS; i++) {
        size_t width = hf_cli_width(row->cells[i]);
        hf_buffer_add_bytes(&list->out, row->cells[i]);
        for (; i + 1 < COLUMNS && width < list->widths[i] + 2; width++)
            hf_buffer_add_char(&list->out, ' ');
    }
    hf_buffer_add_text(&list->out, hf_cli_color_end(list->cli->color_out, color));
    hf_buffer_add_char(&list->out, '\n');
}

/* A column is as wide as its widest cell so far. */
static void page_print(struct list *list, const struct hf_page *page)
{
    const char *const *titles = list->kind->titles;
    struct row row;
    for (size_t i = 0; i < page->count; i++) {
        list->kind->row_make(list, page, i, &row);
        for (int k = 0; k < COLUMNS; k++)
            if (hf_cli_width(row.cells[k]) > list->widths[k])
                list->widths[k] = hf_cli_width(row.cells[k]);
    }
    for (int k = 0; k < COLUMNS; k++)
        if (strlen(titles[k]) > list->widths[k])
            list->widths[k] = strlen(titles[k]);
    if (list->shown == 0 && page->count > 0) {
        for (int k = 0; k < COLUMNS; k++)
            row.cells[k] = hf_str(titles[k]);
        row_print(list, &row, HF_DIM);
    }
    for (size_t i = 0; i < page->count; i++) {
        list->kind->row_make(list, page, i, &row);
        row_print(list, &row, HF_PLAIN);
    }
}

static void page_take(struct list *list, const struct hf_page *page)
{
    if (list->cli->json) {
        hf_api_page_rows(&list->json, list->query.kind, page,
                         (struct hf_api_shows){ .tenants = list->query.all_tenants });
    } else {
        page_print(list, page);
    }
    list->shown += page->count;
    list->query.cursor = page->next_cursor;
    hf_cli_flush_to_stdout(&list->out);
}

static enum hf_cli_exit pages_take(struct list *list)
{
    do {
        struct hf_page page;
        uint64_t left = list->limit ? list->limit - list->shown : HF_LIST_MAX;
        list->query.limit = left < HF_LIST_MAX ? (uint32_t)left : HF_LIST_MAX;
        enum hf_cli_exit code = hf_cli_list(list->cli, &list->query, &page, false);
        if (code != HF_EXIT_DONE)
            return code;
        if (list->now == 0)
            list->now = hf_cli_now(list->cli);
        if (list->shown == 0 && list->json.out == NULL && list->cli->json) {
            list->json.out = &list->out;
            hf_json_object(&list->json);
            hf_json_name_bytes(&list->json, hf_str(list->kind->plural));
            hf_json_array(&list->json);
        }
        page_take(list, &page);
        hf_page_clear(&page);
    } while (list->query.cursor != 0 && (list->limit == 0 || list->shown < list->limit));
    return HF_EXIT_DONE;
}

/* Do the options filter the records? */
static bool list_filtered(const struct hf_cli *cli)
{
    hf_cli_set limits = cli->command->options | HF_OPT_BIT(TENANT);
    for (int i = 0; i < HF_OPT_COUNT; i++)
        if ((limits >> i & 1) && cli->values[i] && i != HF_OPT_LIMIT)
            return true;
    return false;
}

static void list_end(struct list *list)
{
    unsigned long long cursor = list->query.cursor;
    if (list->cli->json) {
        hf_json_array_end(&list->json);
        hf_api_cursor(&list->json, list->query.cursor);
        hf_json_object_end(&list->json);
        hf_buffer_add_char(&list->out, '\n');
        hf_cli_flush_to_stdout(&list->out);
    } else if (list->shown == 0) {
        hf_cli_note(list->cli, "no %s%s", list->kind->plural,
                    list_filtered(list->cli) ? " match these options" : "");
    }
    if (cursor != 0 && !list->cli->json)
        hf_cli_note(list->cli,
                    "there are more: continue with --cursor %llu, or use --limit 0 for "
                    "all",
                    cursor);
}

static enum hf_cli_exit list_run(struct list *list)
{
    enum hf_cli_exit code = hf_cli_open(list->cli, false);
    if (code != HF_EXIT_DONE)
        return code;
    code = pages_take(list);
    if (code == HF_EXIT_DONE)
        list_end(list);
    hf_buffer_free(&list->out);
    for (int i = 0; i < CLEAN; i++)
        hf_buffer_free(&list->clean[i]);
    hf_cli_close(list->cli, false);
    return code;
}

int hf_cmd_list(struct hf_cli *cli)
{
    struct list list = { .cli = cli, .kind = &hold_kind };
    return holds_read(&list) && query_read(&list) ? list_run(&list) : HF_EXIT_USAGE;
}

int hf_cli_list_claims(struct hf_cli *cli)
{
    struct list list = { .cli = cli, .kind = &claim_kind };
    return claims_read(&list) && query_read(&list) ? list_run(&list) : HF_EXIT_USAGE;
}

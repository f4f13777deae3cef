/* holdfast list: holds, newest first, as a table or as JSON. It fetches and prints one page at a
 * time, so a long list needs no more memory than a short one. */
#include "api/encode.h"
#include "base/text.h"
#include "cli/commands.h"

enum { COLUMNS = 6, RESOURCE_COLUMN = 2, REQUESTER_COLUMN = 3 };

struct list {
    struct hf_cli *cli;
    struct hf_query query;
    uint64_t limit; /* of all pages together; 0: none */
    uint64_t shown;
    hf_time now; /* the store's time at the start of the list */
    size_t widths[COLUMNS];
    struct hf_buffer out;
    struct hf_json json;
};

static bool query_read(struct list *list)
{
    struct hf_cli *cli = list->cli;
    struct hf_query *q = &list->query;
    unsigned state = 0;
    list->limit = 100;
    if (!hf_cli_choice(cli, HF_OPT_STATE, &state) ||
        !hf_cli_filled(cli, HF_OPT_RESOURCE, &q->resource) ||
        !hf_cli_filled(cli, HF_OPT_REQUESTER, &q->requester) ||
        !hf_cli_time(cli, HF_OPT_FROM, &q->from) || !hf_cli_time(cli, HF_OPT_TO, &q->to) ||
        !hf_cli_number(cli, HF_OPT_LIMIT, (struct hf_cli_range){ 0, UINT32_MAX }, &list->limit) ||
        !hf_cli_number(cli, HF_OPT_CURSOR, (struct hf_cli_range){ 1, UINT64_MAX }, &q->cursor))
        return false;
    q->kind = HF_LIST_HOLDS;
    q->state =
        cli->values[HF_OPT_STATE] ? (enum hf_hold_state)(HF_HELD + state) : (enum hf_hold_state)0;
    q->tenant = hf_str(cli->values[HF_OPT_TENANT]);
    return true;
}

/* The cells of a row. Cells with text from outside are borrowed from `clean`. */
struct row {
    char state[32], placed[HF_TIME_TEXT], until[HF_TIME_TEXT];
    struct hf_bytes cells[COLUMNS];
};

static void row_make(const struct list *list, const struct hf_hold *hold, struct hf_buffer clean[2],
                     struct row *row)
{
    const char *state = hf_api_hold_state(hold->state);
    bool overdue = hold->state == HF_HELD && hold->expires_at <= list->now;
    snprintf(row->state, sizeof row->state, "%s%s", state ? state : "unknown",
             overdue             ? " (overdue)"
             : hold->reverses[0] ? " (reversal)"
                                 : "");
    hf_buffer_reset(&clean[0]);
    hf_buffer_reset(&clean[1]);
    hf_cli_add_clean(&clean[0], hold->resource);
    hf_cli_add_clean(&clean[1], hold->requester);
    hf_time_format(hold->placed_at, row->placed);
    hf_time_format(hold->state == HF_HELD ? hold->expires_at : hold->ended_at, row->until);
    row->cells[0] = hf_str(hold->id);
    row->cells[1] = hf_str(row->state);
    row->cells[RESOURCE_COLUMN] = hf_mem(clean[0].data, clean[0].size);
    row->cells[REQUESTER_COLUMN] = hf_mem(clean[1].data, clean[1].size);
    row->cells[4] = hf_str(row->placed);
    row->cells[5] = hf_str(row->until);
}

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
    static const char *const titles[COLUMNS] = { "ID",        "STATE",  "RESOURCE",
                                                 "REQUESTER", "PLACED", "EXPIRES / ENDED" };
    struct hf_buffer clean[2] = { { 0 }, { 0 } };
    struct row row;
    for (size_t i = 0; i < page->count; i++) {
        row_make(list, &page->holds[i], clean, &row);
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
        row_make(list, &page->holds[i], clean, &row);
        row_print(list, &row, HF_PLAIN);
    }
    hf_buffer_free(&clean[0]);
    hf_buffer_free(&clean[1]);
}

static void page_take(struct list *list, const struct hf_page *page)
{
    if (list->cli->json) {
        for (size_t i = 0; i < page->count; i++)
            hf_api_hold(&list->json, &page->holds[i]);
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
            hf_json_name(&list->json, "holds");
            hf_json_array(&list->json);
        }
        page_take(list, &page);
        hf_page_clear(&page);
    } while (list->query.cursor != 0 && (list->limit == 0 || list->shown < list->limit));
    return HF_EXIT_DONE;
}

/* Do the options filter the holds? */
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
        hf_cli_note(list->cli,
                    list_filtered(list->cli) ? "no holds match these options" : "no holds");
    }
    if (cursor != 0 && !list->cli->json)
        hf_cli_note(list->cli,
                    "there are more: continue with --cursor %llu, or use --limit 0 for "
                    "all",
                    cursor);
}

int hf_cmd_list(struct hf_cli *cli)
{
    struct list list = { .cli = cli };
    if (!query_read(&list))
        return HF_EXIT_USAGE;
    enum hf_cli_exit code = hf_cli_open(cli, false);
    if (code != HF_EXIT_DONE)
        return code;
    code = pages_take(&list);
    if (code == HF_EXIT_DONE)
        list_end(&list);
    hf_buffer_free(&list.out);
    hf_cli_close(cli, false);
    return code;
}

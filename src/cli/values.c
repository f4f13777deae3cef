/* Option values: parse and check them, with one message for an invalid value. */
#include "base/bytes.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "json/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hf_cli_unfit(const struct hf_cli *cli, enum hf_cli_option_id id, const char *expected)
{
    const struct hf_cli_option *option = &hf_cli_options[id];
    struct hf_buffer text = { 0 };
    if (cli->config_line[id])
        hf_cli_add_place(&text, cli, id);
    else if (!cli->from_environment[id])
        hf_buffer_add_text(&text, "--");
    hf_buffer_printf(&text, "%s: ", cli->from_environment[id] ? option->env : option->name);
    hf_cli_add_quoted(&text, hf_str(cli->values[id]));
    hf_cli_error(cli, "%s is invalid; expected: %s", hf_buffer_text(&text), expected);
    hf_buffer_free(&text);
    return false;
}

bool hf_cli_duration(const struct hf_cli *cli, enum hf_cli_option_id id, int64_t *out_ms)
{
    const char *value = cli->values[id];
    return !value || hf_duration_parse(hf_str(value), out_ms) ||
           hf_cli_unfit(
               cli, id,
               "a duration such as 250ms, 30s, 15m, 24h, 7d, or a number of seconds, at most "
               "3650d");
}

bool hf_cli_time(const struct hf_cli *cli, enum hf_cli_option_id id, hf_time *out)
{
    const char *value = cli->values[id];
    return !value || hf_time_parse(hf_str(value), out) ||
           hf_cli_unfit(cli, id,
                        "a time such as 2026-11-15T21:39:57Z, a date such as 2026-11-15, or @ and "
                        "milliseconds since 1970");
}

bool hf_cli_number(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_cli_range range,
                   uint64_t *out)
{
    const char *value = cli->values[id];
    uint64_t number;
    char expected[80];
    if (!value)
        return true;
    if (hf_number_parse(hf_str(value), &number) && number >= range.lowest &&
        number <= range.highest) {
        *out = number;
        return true;
    }
    snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64, range.lowest,
             range.highest);
    return hf_cli_unfit(cli, id, expected);
}

bool hf_cli_size(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_cli_range range,
                 uint64_t *out)
{
    const char *value = cli->values[id];
    uint64_t size;
    char expected[100];
    if (!value)
        return true;
    if (hf_size_parse(hf_str(value), &size) && size >= range.lowest && size <= range.highest) {
        *out = size;
        return true;
    }
    snprintf(expected, sizeof expected,
             "a size from %" PRIu64 " to %" PRIu64 " bytes, such as 1MiB", range.lowest,
             range.highest);
    return hf_cli_unfit(cli, id, expected);
}

/* The index of `word` in "a|b|c", or -1. */
static int choice_index(const char *choices, struct hf_bytes word)
{
    for (int i = 0; *choices; i++) {
        size_t size = strcspn(choices, "|");
        if (hf_bytes_equal(hf_mem(choices, size), word))
            return i;
        choices += size + (choices[size] == '|');
    }
    return -1;
}

static bool choice_bad(const struct hf_cli *cli, enum hf_cli_option_id id, const char *prefix)
{
    struct hf_buffer text = { 0 };
    hf_buffer_add_text(&text, prefix);
    for (const char *p = hf_cli_options[id].choices; *p; p++)
        hf_buffer_add_text(&text, *p == '|' ? ", " : (char[]){ *p, '\0' });
    hf_cli_unfit(cli, id, hf_buffer_text(&text));
    hf_buffer_free(&text);
    return false;
}

bool hf_cli_choice(const struct hf_cli *cli, enum hf_cli_option_id id, unsigned *out)
{
    const char *value = cli->values[id];
    if (!value)
        return true;
    int index = choice_index(hf_cli_options[id].choices, hf_str(value));
    if (index < 0)
        return choice_bad(cli, id, "one of ");
    *out = (unsigned)index;
    return true;
}

bool hf_cli_require_fence(const struct hf_cli *cli, enum hf_require *out)
{
    unsigned no = 0;
    *out = HF_REQUIRE_UNCHANGED;
    if (!cli->values[HF_OPT_REQUIRE_FENCE])
        return true;
    if (!hf_cli_choice(cli, HF_OPT_REQUIRE_FENCE, &no))
        return false;
    *out = no ? HF_NOT_REQUIRED : HF_REQUIRED;
    return true;
}

bool hf_cli_choices(const struct hf_cli *cli, enum hf_cli_option_id id, unsigned *out, size_t max,
                    size_t *count)
{
    const char *p = cli->values[id];
    *count = 0;
    while (p) {
        size_t size = strcspn(p, ",");
        int index = choice_index(hf_cli_options[id].choices, hf_mem(p, size));
        if (index < 0 || *count == max)
            return choice_bad(cli, id, "up to 4, separated by commas, of ");
        out[(*count)++] = (unsigned)index;
        p = p[size] ? p + size + 1 : NULL;
    }
    return true;
}

bool hf_cli_filled(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_bytes *out)
{
    const char *value = cli->values[id];
    if (!value)
        return true;
    *out = hf_str(value);
    return *value || hf_cli_unfit(cli, id, "a non-empty name");
}

bool hf_cli_flag(const struct hf_cli *cli, enum hf_cli_option_id id, bool *out)
{
    const char *value = cli->values[id];
    *out = value != NULL;
    if (!value || !cli->from_environment[id])
        return true;
    int index = choice_index("0|no|false|1|yes|true", hf_str(value));
    *out = index >= 3;
    return index >= 0 || hf_cli_unfit(cli, id, "1 or 0");
}

struct hf_bytes hf_cli_any_json(const char *text, struct hf_arena *arena)
{
    struct hf_reader r = { .text = hf_str(text), .arena = arena };
    struct hf_bytes stored;
    return text && hf_stored_read(&r, &stored) && hf_reader_end(&r) ? stored : hf_str(text);
}

unsigned hf_cli_distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t n = strlen(b);
    if (n >= sizeof row / sizeof *row)
        return 64;
    for (size_t i = 0; i <= n; i++)
        row[i] = (unsigned)i;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= n; k++) {
            unsigned change = corner + (a[i - 1] != b[k - 1]);
            unsigned drop = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            corner = row[k];
            row[k] = change < drop ? change : drop;
        }
    }
    return row[n];
}

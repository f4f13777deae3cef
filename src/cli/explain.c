/* Find the argument that caused a refusal. The library refuses a request as a whole; this code
 * knows the names that the user typed. */
#include "base/id.h"
#include "base/text.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* The rule for one kind of argument, and its description. */
struct rule {
    const char *label;
    size_t least, most;
    bool utf8;
    const char *expected;
};

static const struct rule rules[] = {
    { "RESOURCE", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "NAME", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "GUARD", 1, HF_NAME_MAX, true, "a guard's name of 1 to 1024 bytes of UTF-8" },
    { "IDENTITY", 1, HF_IDENTITY_MAX, false, "1 to 1024 bytes" },
    { "--for", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "--resource", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "--client", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "--requester", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "--tenant", 0, HF_TENANT_MAX, true, "a tenant's name of at most 64 bytes of UTF-8" },
    { "--holder", 1, HF_NAME_MAX, true, "a name of 1 to 1024 bytes of UTF-8" },
    { "--result", 0, HF_GUARD_RESULT_MAX, false, "at most 65536 bytes" },
    { "--response", 0, HF_RESPONSE_MAX, false, "at most 1048576 bytes" },
    { "--error", 0, HF_RESPONSE_MAX, false, "at most 1048576 bytes" },
};

static const struct rule *rule_find(const char *label, size_t size)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strlen(rules[i].label) == size && memcmp(rules[i].label, label, size) == 0)
            return &rules[i];
    return NULL;
}

/* If `text` breaks the rule, append a sentence and return true. */
static bool blame(const struct rule *rule, const char *text, struct hf_buffer *out)
{
    struct hf_bytes given = hf_str(text);
    const char *what = given.size < rule->least              ? "is empty"
                       : given.size > rule->most             ? "is too long"
                       : rule->utf8 && !hf_utf8_valid(given) ? "is not UTF-8"
                                                             : NULL;
    if (!what)
        return false;
    hf_buffer_printf(out, "%s %s", rule->label, what);
    if (given.size > 0) {
        hf_buffer_printf(out, " (%zu bytes): ", given.size);
        hf_cli_add_quoted(out, given);
    }
    hf_buffer_printf(out, "; expected: %s", rule->expected);
    return true;
}

/* command->args has the names of the arguments, such as "GUARD IDENTITY". */
static bool blame_arguments(const struct hf_cli *cli, struct hf_buffer *out)
{
    const char *label = cli->command->args;
    for (int i = 0; i < cli->arg_count && *label; i++) {
        size_t size = strcspn(label, " ");
        const struct rule *rule = rule_find(label, size);
        if (rule && blame(rule, cli->args[i], out))
            return true;
        label += size + (label[size] == ' ');
    }
    return false;
}

static bool blame_options(const struct hf_cli *cli, struct hf_buffer *out)
{
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        char label[32];
        int size = snprintf(label, sizeof label, "--%s", hf_cli_options[i].name);
        const struct rule *rule = cli->values[i] ? rule_find(label, (size_t)size) : NULL;
        if (rule && blame(rule, cli->values[i], out))
            return true;
    }
    return false;
}

/* The store's limit is unknown here. A key that the store refused and that is longer than the
 * default is too long. */
static bool blame_key(const struct hf_cli *cli, struct hf_buffer *out)
{
    const char *key = cli->values[HF_OPT_KEY];
    const char *most = cli->values[HF_OPT_TOKEN_MAX_LENGTH];
    uint64_t limit = 256;
    char expected[80] = "1 byte up to the store's limit (default 256)";
    if (!key || (most && !hf_number_parse(hf_str(most), &limit)))
        return false;
    if (most)
        snprintf(expected, sizeof expected, "1 to %llu bytes", (unsigned long long)limit);
    return blame(&(struct rule){ "--key", 1, (size_t)limit, false, expected }, key, out);
}

static bool blame_duration(const struct hf_cli *cli, enum hf_cli_option_id id,
                           struct hf_buffer *out)
{
    int64_t ms = 1;
    if (!cli->values[id] || !hf_duration_parse(hf_str(cli->values[id]), &ms) || ms > 0)
        return false;
    hf_buffer_printf(out, "--%s \"%s\" is too short; expected: at least 1ms",
                     hf_cli_options[id].name, cli->values[id]);
    return true;
}

static void blame_id(const struct hf_cli *cli, struct hf_buffer *out)
{
    uint8_t raw[HF_ID_RAW];
    if (strcmp(cli->command->args, "ID") != 0 || hf_id_pack(hf_str(cli->args[0]), raw))
        return;
    hf_buffer_add_text(out, "ID ");
    hf_cli_add_quoted(out, hf_str(cli->args[0]));
    hf_buffer_add_text(
        out, " is not the id of a hold; expected: the 26 letters and digits that `holdfast hold` "
             "printed");
}

/* The guard does not exist: name it, and say how to set it up. */
static void blame_guard(const struct hf_cli *cli, struct hf_buffer *out)
{
    if (strcmp(cli->command->args, "GUARD IDENTITY") != 0 &&
        strcmp(cli->command->name, "guard") != 0)
        return;
    hf_buffer_add_text(out, "there is no guard ");
    hf_cli_add_quoted(out, hf_str(cli->args[0]));
    hf_buffer_add_text(
        out, "; check the name and the tenant, or set it up: holdfast guard NAME --window D");
}

/* A key that no store accepts, whatever its limit. */
static bool blame_any_key(const struct hf_cli *cli, struct hf_buffer *out)
{
    const char *key = cli->values[HF_OPT_KEY];
    struct rule rule = { "--key", 1, HF_TOKEN_MAX, false, "1 to 1024 bytes" };
    return key && blame(&rule, key, out);
}

enum hf_status hf_cli_malformed(const struct hf_cli *cli, struct hf_buffer *out)
{
    if (blame_any_key(cli, out) || blame_arguments(cli, out) || blame_options(cli, out) ||
        blame_duration(cli, HF_OPT_DURATION, out) || blame_duration(cli, HF_OPT_WINDOW, out) ||
        blame_duration(cli, HF_OPT_LEASE, out) || blame_duration(cli, HF_OPT_RETENTION, out) ||
        blame_duration(cli, HF_OPT_TTL, out))
        return HF_INVALID_REQUEST;
    blame_id(cli, out);
    return out->size > 0 ? HF_NOT_KNOWN : HF_OK;
}

void hf_cli_explain(const struct hf_cli *cli, enum hf_status status, struct hf_buffer *out)
{
    if (status == HF_NOT_KNOWN) {
        blame_id(cli, out);
        blame_guard(cli, out);
    }
    if (status != HF_INVALID_REQUEST || blame_key(cli, out) || blame_arguments(cli, out) ||
        blame_options(cli, out) || blame_duration(cli, HF_OPT_DURATION, out))
        return;
    blame_duration(cli, HF_OPT_WINDOW, out);
}

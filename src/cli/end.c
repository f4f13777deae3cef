/* holdfast confirm, release, expire, reverse: the ends of a hold. */
#include "cli/commands.h"

static int end(struct hf_cli *cli, enum hf_action action)
{
    struct hf_request request = { .action = action, .hold = { .id = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, true);
}

int hf_cmd_confirm(struct hf_cli *cli)
{
    unsigned late;
    if (!hf_cli_choice(cli, HF_OPT_LATE, &late))
        return HF_EXIT_USAGE;
    return end(cli, cli->values[HF_OPT_LATE] ? HF_CONFIRM_LATE : HF_CONFIRM);
}

int hf_cmd_release(struct hf_cli *cli)
{
    return end(cli, HF_RELEASE);
}

int hf_cmd_expire(struct hf_cli *cli)
{
    return end(cli, HF_EXPIRE);
}

int hf_cmd_reverse(struct hf_cli *cli)
{
    return end(cli, HF_REVERSE);
}

/* holdfast show: one hold as it is now. */
#include "cli/commands.h"

int hf_cmd_show(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_GET_HOLD, .hold = { .id = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, false);
}

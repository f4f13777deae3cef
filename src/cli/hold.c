/* holdfast hold: place a hold on a resource. */
#include "cli/commands.h"

int hf_cmd_hold(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_PLACE_HOLD };
    request.place_hold.resource = hf_str(cli->args[0]);
    request.place_hold.requester = hf_str(cli->values[HF_OPT_FOR]);
    if (!hf_cli_duration(cli, HF_OPT_DURATION, &request.place_hold.duration_ms) ||
        !hf_cli_number(cli, HF_OPT_FENCE, (struct hf_cli_range){ 1, UINT64_MAX },
                       &request.place_hold.fence))
        return HF_EXIT_USAGE;
    return hf_cli_ask(cli, &request, true);
}

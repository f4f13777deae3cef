/* holdfast resource: show a resource, or set its capacity, or close and open it. */
#include "cli/commands.h"

static int show(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_GET_RESOURCE,
                                  .get = { .name = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, false);
}

int hf_cmd_resource(struct hf_cli *cli)
{
    const bool close = cli->values[HF_OPT_CLOSE], open = cli->values[HF_OPT_OPEN];
    struct hf_request request = { .action = HF_SET_RESOURCE };
    uint64_t capacity = 0;
    if (close && open) {
        hf_cli_error(cli, "resource: --close and --open exclude each other; use one of them");
        return HF_EXIT_USAGE;
    }
    if (!hf_cli_number(cli, HF_OPT_CAPACITY, (struct hf_cli_range){ 1, HF_CAPACITY_MAX },
                       &capacity))
        return HF_EXIT_USAGE;
    if (!close && !open && capacity == 0)
        return show(cli);
    request.set_resource.name = hf_str(cli->args[0]);
    request.set_resource.capacity = (uint32_t)capacity;
    request.set_resource.open = close ? HF_SET_CLOSED : open ? HF_SET_OPEN : HF_LEAVE;
    return hf_cli_ask(cli, &request, true);
}

/* holdfast hold, show, confirm, release, expire, reverse and resource: holds and what they hold. */
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

int hf_cmd_show(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_GET_HOLD, .hold = { .id = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, false);
}

/* ---- Its ends ---- */

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

/* ---- Resources ---- */

static int resource_show(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_GET_RESOURCE,
                                  .get = { .name = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, false);
}

int hf_cmd_resource(struct hf_cli *cli)
{
    const bool close = cli->values[HF_OPT_CLOSE], open = cli->values[HF_OPT_OPEN];
    struct hf_request request = { .action = HF_SET_RESOURCE };
    const bool fences = cli->values[HF_OPT_REQUIRE_FENCE] != NULL;
    uint64_t capacity = 0;
    if (close && open) {
        hf_cli_error(cli, "resource: --close and --open exclude each other; use one of them");
        return HF_EXIT_USAGE;
    }
    if (!hf_cli_number(cli, HF_OPT_CAPACITY, (struct hf_cli_range){ 1, HF_CAPACITY_MAX },
                       &capacity))
        return HF_EXIT_USAGE;
    if (!hf_cli_require_fence(cli, &request.set_resource.require_fence))
        return HF_EXIT_USAGE;
    if (!close && !open && !fences && capacity == 0)
        return resource_show(cli);
    request.set_resource.name = hf_str(cli->args[0]);
    request.set_resource.capacity = (uint32_t)capacity;
    request.set_resource.open = close ? HF_SET_CLOSED : open ? HF_SET_OPEN : HF_LEAVE;
    return hf_cli_ask(cli, &request, true);
}

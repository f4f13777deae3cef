/* holdfast guard: set up or show a guard. */
#include "cli/commands.h"

static int show(struct hf_cli *cli)
{
    static const enum hf_cli_option_id needy[] = { HF_OPT_MATCH, HF_OPT_ON_UNAVAILABLE,
                                                   HF_OPT_DURABLE, HF_OPT_FORCE };
    for (size_t i = 0; i < sizeof needy / sizeof *needy; i++) {
        if (!cli->values[needy[i]])
            continue;
        hf_cli_error(cli,
                     "guard: --%s needs --window D, because all properties of a guard are set "
                     "together",
                     hf_cli_options[needy[i]].name);
        return HF_EXIT_USAGE;
    }
    struct hf_request request = { .action = HF_GET_GUARD, .get = { .name = hf_str(cli->args[0]) } };
    return hf_cli_ask(cli, &request, false);
}

int hf_cmd_guard(struct hf_cli *cli)
{
    struct hf_request request = { .action = HF_SET_GUARD };
    unsigned match[HF_MATCH_MAX], on_unavailable = 0, durable = 0;
    size_t count;
    if (!cli->values[HF_OPT_WINDOW])
        return show(cli);
    if (!hf_cli_duration(cli, HF_OPT_WINDOW, &request.set_guard.window_ms) ||
        !hf_cli_choices(cli, HF_OPT_MATCH, match, HF_MATCH_MAX, &count) ||
        !hf_cli_choice(cli, HF_OPT_ON_UNAVAILABLE, &on_unavailable) ||
        !hf_cli_choice(cli, HF_OPT_DURABLE, &durable))
        return HF_EXIT_USAGE;
    request.set_guard.name = hf_str(cli->args[0]);
    for (size_t i = 0; i < count; i++)
        request.set_guard.match[i] = (enum hf_match)(HF_MATCH_EXACT + match[i]);
    request.set_guard.match_count = (uint32_t)count;
    request.set_guard.on_unavailable = on_unavailable == 1 ? HF_FAIL_CLOSED : HF_FAIL_OPEN;
    request.set_guard.volatile_only = durable == 1;
    request.set_guard.force = cli->values[HF_OPT_FORCE] != NULL;
    int code = hf_cli_ask(cli, &request, true);
    if (code == HF_EXIT_DONE && durable == 1 && !hf_cli_remote(cli))
        hf_cli_note(cli, "note: this guard remembers identities only while one process has the "
                         "store open, so every holdfast command forgets them at its end; use "
                         "--durable yes to keep them");
    return code;
}

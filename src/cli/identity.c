/* holdfast check, record, admit: was this identity recorded? "seen" is an answer, not a refusal,
 * unless a script asks for it with --fail-if-seen. */
#include "cli/commands.h"

static int ask(struct hf_cli *cli, enum hf_action action)
{
    const char *result = cli->values[HF_OPT_RESULT];
    struct hf_request request = { .action = action };
    request.identity.guard = hf_str(cli->args[0]);
    request.identity.identity = hf_str(cli->args[1]);
    request.identity.result = hf_str(result);
    request.identity.has_result = result != NULL;
    int code = hf_cli_ask(cli, &request, action != HF_CHECK);
    bool fails = cli->values[HF_OPT_FAIL_IF_SEEN] && cli->seen;
    return code == HF_EXIT_DONE && fails ? HF_EXIT_REFUSED : code;
}

int hf_cmd_check(struct hf_cli *cli)
{
    return ask(cli, HF_CHECK);
}

int hf_cmd_record(struct hf_cli *cli)
{
    return ask(cli, HF_RECORD);
}

int hf_cmd_admit(struct hf_cli *cli)
{
    return ask(cli, HF_ADMIT);
}

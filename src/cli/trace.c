/* holdfast trace: every event of a hold or a key, from the records alone. */
#include "audit/trace.h"

#include "cli/commands.h"

#include <time.h>

int hf_cmd_trace(struct hf_cli *cli)
{
    const char *tenant = cli->values[HF_OPT_TENANT];
    struct hf_audit_trace_options options = { .has_tenant = tenant != NULL,
                                              .tenant = hf_str(tenant),
                                              .json = cli->json,
                                              .now = (hf_time)time(NULL) * 1000 };
    struct hf_error why = { .status = HF_OK };
    enum hf_cli_exit wrong;
    if (hf_cli_remote(cli))
        return hf_cli_remote_trace(cli);
    const char *directory = hf_cli_records(cli, &options.postgres, &wrong);
    if (!directory)
        return wrong;
    int code = hf_audit_trace(directory, hf_str(cli->args[0]), &options, stdout, &why);
    if (code == HF_EXIT_STORE)
        hf_cli_refuse_store(cli, &why);
    else if (code != HF_EXIT_DONE) /* with --json, it is on stdout too */
        hf_cli_error(cli, "%s: %s", hf_status_code(HF_NOT_KNOWN), why.text);
    if (code != HF_EXIT_STORE)
        hf_cli_warn_unreplicated(cli, options.postgres);
    return code;
}

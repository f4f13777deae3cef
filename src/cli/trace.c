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
    struct hf_bytes name = cli->arg_count > 0 ? hf_str(cli->args[0]) : hf_mem(NULL, 0);
    if (!hf_cli_numbered(cli, &name, &options.sequence))
        return HF_EXIT_USAGE;
    if ((cli->arg_count > 0) == (options.sequence != 0)) {
        hf_cli_error(cli, "trace: expected either the id of a hold or a key, or --client NAME and "
                          "--sequence N; see: holdfast help trace");
        return HF_EXIT_USAGE;
    }
    if (options.sequence != 0)
        options.subject = HF_AUDIT_SUBJECT_KEY;
    if (hf_cli_remote(cli))
        return hf_cli_remote_trace(cli, name, options.sequence);
    const char *directory = hf_cli_records(cli, &options.postgres, &wrong);
    if (!directory)
        return wrong;
    int code = hf_audit_trace(directory, name, &options, stdout, &why);
    if (code == HF_EXIT_STORE)
        hf_cli_refuse_store(cli, &why);
    else if (code != HF_EXIT_DONE) /* with --json, it is on stdout too */
        hf_cli_error(cli, "%s: %s", hf_status_code(HF_NOT_KNOWN), why.text);
    if (code != HF_EXIT_STORE)
        hf_cli_warn_unreplicated(cli, options.postgres);
    return code;
}

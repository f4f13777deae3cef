/* holdfast export: the records of the whole store or of one tenant, for other tools. */
#include "audit/export.h"

#include "cli/commands.h"

#include <string.h>

static void progress(void *arg, uint64_t done, uint64_t total)
{
    hf_cli_progress(arg, "exporting", done, total);
}

int hf_cmd_export(struct hf_cli *cli)
{
    static const enum hf_audit_format formats[] = { HF_AUDIT_JSONL, HF_AUDIT_SQLITE };
    const char *tenant = cli->values[HF_OPT_TENANT];
    struct hf_audit_export_options options = {
        .has_tenant = tenant != NULL, .tenant = hf_str(tenant), .progress = progress, .arg = cli
    };
    struct hf_error why = { .status = HF_OK };
    unsigned format = 0;
    cli->json = false; /* ignore HOLDFAST_JSON: stdout may be the export itself */
    if (!hf_cli_choice(cli, HF_OPT_FORMAT, &format))
        return HF_EXIT_USAGE;
    options.format = formats[format];
    if (options.format == HF_AUDIT_SQLITE && strcmp(cli->args[0], "-") == 0) {
        hf_cli_error(cli, "export: a SQLite database cannot be written to the standard output; "
                          "name a file, or use --format jsonl");
        return HF_EXIT_USAGE;
    }
    if (hf_cli_remote(cli))
        return hf_cli_remote_export(cli, options.format == HF_AUDIT_SQLITE);
    enum hf_cli_exit wrong;
    const char *directory = hf_cli_records(cli, &options.postgres, &wrong);
    if (!directory)
        return wrong;
    int code = hf_audit_export(directory, &options, cli->args[0], &why);
    hf_cli_progress_end(cli);
    if (why.status == HF_STORE_ABSENT)
        hf_cli_refuse_store(cli, &why);
    else if (code != HF_EXIT_DONE)
        hf_cli_error(cli, "%s: %s", hf_status_code(why.status), why.text);
    else if (why.text[0])
        hf_cli_note(cli, "note: %s", why.text);
    if (code == HF_EXIT_DONE)
        hf_cli_warn_unreplicated(cli, options.postgres);
    return code;
}

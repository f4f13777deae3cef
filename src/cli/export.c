/* holdfast export: the whole history, for other tools. */
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
    struct hf_audit_export_options options = { .progress = progress, .arg = cli };
    struct hf_error why = { .status = HF_OK };
    unsigned format = 0;
    if (!hf_cli_choice(cli, HF_OPT_FORMAT, &format))
        return HF_EXIT_USAGE;
    options.format = formats[format];
    if (options.format == HF_AUDIT_SQLITE && strcmp(cli->args[0], "-") == 0) {
        hf_cli_error(cli, "export: a SQLite database needs a file; only jsonl goes to the standard output");
        return HF_EXIT_USAGE;
    }
    const char *directory = hf_cli_directory(cli);
    if (!directory)
        return HF_EXIT_USAGE;
    int code = hf_audit_export(directory, &options, cli->args[0], &why);
    hf_cli_progress_end(cli);
    if (code != HF_EXIT_DONE) /* never JSON: the standard output may be the export itself */
        hf_cli_error(cli, "%s: %s", hf_status_code(why.status), why.text);
    return code;
}

/* holdfast audit: check all rules from the records alone. It takes no lock and writes nothing, so
 * it can run while a server uses the store. */
#include "audit/audit.h"

#include "api/decode.h"

#include "cli/commands.h"

static void progress(void *arg, uint64_t done, uint64_t total)
{
    hf_cli_progress(arg, "auditing", done, total);
}

static bool print(const struct hf_cli *cli, const struct hf_audit_report *report)
{
    return cli->json ? hf_audit_print_json(report, stdout) : hf_audit_print_text(report, stdout);
}

int hf_cmd_audit(struct hf_cli *cli)
{
    const char *tenant = cli->values[HF_OPT_TENANT];
    struct hf_audit_options options = {
        .has_tenant = tenant != NULL, .tenant = hf_str(tenant), .progress = progress, .arg = cli
    };
    const char *expected = cli->values[HF_OPT_EXPECT_HEAD];
    uint8_t head[HF_DIGEST_SIZE];
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why = { .status = HF_OK };
    enum hf_cli_exit code;
    if (expected && !hf_api_digest(hf_str(expected), head)) {
        (void)hf_cli_unfit(cli, HF_OPT_EXPECT_HEAD, "the 64 hexadecimal digits of a hash");
        return HF_EXIT_USAGE;
    }
    if (expected)
        options.expect_head = head;
    if (hf_cli_remote(cli))
        return hf_cli_remote_audit(cli);
    const char *directory = hf_cli_records(cli, &options.postgres, &code);
    if (!directory)
        return code;
    enum hf_status status = hf_audit_run(directory, &options, &report, &why);
    code = report.verdict == HF_AUDIT_OK ? HF_EXIT_DONE : HF_EXIT_REFUSED;
    hf_cli_progress_end(cli);
    if (status != HF_OK) {
        code = hf_cli_refuse_store(cli, &why);
    } else if (!print(cli, &report)) {
        hf_cli_error(cli,
                     "the report could not be written to the standard output. Is the disk full?");
        code = HF_EXIT_STORE;
    } else {
        hf_cli_warn_unreplicated(cli, options.postgres);
    }
    hf_audit_report_free(&report);
    return code;
}

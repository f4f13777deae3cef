/* holdfast version: prints the version of the program, and of the server if one is given. */
#include "cli/commands.h"
#include "json/writer.h"

/* Get the server's version. HOLDFAST_SERVER is for all commands, so it does not make this one need
 * a server. */
static enum hf_cli_exit server_ask(struct hf_cli *cli, struct hf_client_version *version)
{
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    enum hf_cli_exit code = hf_cli_remote_open(cli);
    if (code != HF_EXIT_DONE)
        return code;
    if (hf_client_encode_other(HF_CALL_OPENAPI, hf_mem(NULL, 0), "", &call, &why) != HF_OK) {
        hf_cli_close(cli, false);
        return HF_EXIT_STORE;
    }
    code = hf_cli_remote_call(cli, &call, &answer, false);
    if (code == HF_EXIT_DONE &&
        !hf_client_read_version(hf_mem(answer.body.data, answer.body.size), version, &why))
        code = hf_cli_remote_lost(cli, &call, &why);
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    hf_cli_close(cli, false);
    return code;
}

static void print_text(const struct hf_client_version *server)
{
    struct hf_buffer clean = { 0 };
    hf_cli_add_clean(&clean, hf_str(server->text));
    printf("holdfast %s\n", hf_version());
    if (clean.size > 0)
        printf("server   %s\n", hf_buffer_text(&clean));
    hf_buffer_free(&clean);
}

int hf_cmd_version(struct hf_cli *cli)
{
    struct hf_client_version server = { "" };
    enum hf_cli_exit code =
        hf_cli_given(cli, HF_OPT_SERVER) ? server_ask(cli, &server) : HF_EXIT_DONE;
    if (code != HF_EXIT_DONE)
        return code;
    if (!cli->json) {
        print_text(&server);
        return HF_EXIT_DONE;
    }
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    hf_json_object(&j);
    hf_json_name(&j, "name");
    hf_json_text(&j, "holdfast");
    hf_json_name(&j, "version");
    hf_json_text(&j, hf_version());
    hf_json_name(&j, "digest");
    hf_json_text(&j, HF_DIGEST_NAME);
    if (server.text[0]) {
        hf_json_name(&j, "server");
        hf_json_text(&j, server.text);
    }
    hf_json_object_end(&j);
    hf_buffer_add_char(&out, '\n');
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&out);
    return HF_EXIT_DONE;
}

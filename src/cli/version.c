/* holdfast version. */
#include "api/json.h"
#include "cli/commands.h"

int hf_cmd_version(struct hf_cli *cli)
{
    if (!cli->json) {
        printf("holdfast %s\n", hf_version());
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
    hf_json_object_end(&j);
    hf_buffer_add_char(&out, '\n');
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&out);
    return HF_EXIT_DONE;
}

/* holdfast lease and holdfast register: authority over a name, and the values that it protects. */
#include "api/call.h"
#include "api/decode.h"
#include "cli/commands.h"
#include "json/reader.h"
#include "json/writer.h"

#define BIT HF_OPT_BIT
#define KEY HF_OPTS_KEY
#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char lease_fence[] = "the fence that grant printed; holdfast lease show prints it too";

static const struct hf_cli_verb lease_verbs[] = {
    { "grant", HF_GRANT, .keyed = true, .options = BIT(HOLDER) | BIT(TTL) | KEY,
      .needs = HF_OPT_HOLDER, .hint = "the worker that gets the lease" },
    { "renew", HF_RENEW, .options = BIT(FENCE) | BIT(TTL), .needs = HF_OPT_FENCE,
      .hint = lease_fence },
    { "release", HF_RETURN, .options = BIT(FENCE), .needs = HF_OPT_FENCE, .hint = lease_fence },
    { .name = "show", .action = HF_GET_LEASE },
    { "delete", HF_DELETE_LEASE, .keyed = true, .options = BIT(FENCE) | KEY },
};

static const struct hf_cli_verb register_verbs[] = {
    { "write", HF_WRITE, .keyed = true,
      .options = BIT(VALUE) | BIT(FENCE) | BIT(IF_VERSION) | BIT(REQUIRE_FENCE) | KEY,
      .needs = HF_OPT_VALUE, .hint = "the new value, JSON or a text" },
    { "merge", HF_MERGE, .options = BIT(TYPE) | BIT(VALUE), .needs = HF_OPT_TYPE,
      .hint = "how the value is merged; see: holdfast help register" },
    { .name = "show", .action = HF_GET_REGISTER },
    { "delete", HF_DELETE_REGISTER, .keyed = true, .options = BIT(FENCE) | BIT(IF_VERSION) | KEY },
};

static bool fence_read(const struct hf_cli *cli, uint64_t *fence)
{
    return hf_cli_number(cli, HF_OPT_FENCE, (struct hf_cli_range){ 1, UINT64_MAX }, fence);
}

/* ---- Leases ---- */

int hf_cmd_lease(struct hf_cli *cli)
{
    const struct hf_cli_verb *verb = hf_cli_verb_take(cli, lease_verbs, COUNT(lease_verbs), "NAME");
    if (!verb)
        return HF_EXIT_USAGE;
    struct hf_request request = { .action = verb->action };
    if (verb->action == HF_GET_LEASE) {
        request.get.name = hf_str(cli->args[1]);
        return hf_cli_ask(cli, &request, false);
    }
    if (verb->action == HF_GRANT && !cli->values[HF_OPT_TTL]) {
        hf_cli_error(cli, "lease grant needs --ttl D: how long the lease lasts, such as 30s");
        return HF_EXIT_USAGE;
    }
    if (!fence_read(cli, &request.lease.fence) ||
        !hf_cli_duration(cli, HF_OPT_TTL, &request.lease.ttl_ms))
        return HF_EXIT_USAGE;
    request.lease.name = hf_str(cli->args[1]);
    request.lease.holder = hf_str(cli->values[HF_OPT_HOLDER]);
    return hf_cli_ask(cli, &request, verb->action == HF_GRANT);
}

/* ---- Registers ---- */

static bool write_read(struct hf_cli *cli, struct hf_arena *arena, struct hf_request *request)
{
    request->write.has_if_version = cli->values[HF_OPT_IF_VERSION] != NULL;
    request->write.value = hf_cli_any_json(cli->values[HF_OPT_VALUE], arena);
    return fence_read(cli, &request->write.fence) &&
           hf_cli_require_fence(cli, &request->write.require_fence) &&
           hf_cli_number(cli, HF_OPT_IF_VERSION, (struct hf_cli_range){ 0, UINT64_MAX },
                         &request->write.if_version);
}

static const struct hf_call *merge_call(void)
{
    size_t i = 0;
    while (hf_calls[i].kind != HF_CALL_DO || hf_calls[i].action != HF_MERGE)
        i++;
    return &hf_calls[i];
}

/* The value as the server would read it from {"type":T,"value":V}. body: out, what the request may
 * point to. */
static bool merge_read(struct hf_cli *cli, struct hf_arena *arena, struct hf_buffer *body,
                       struct hf_request *request)
{
    struct hf_json j = { .out = body };
    struct hf_api_input in = { .params = { hf_str("name") } }; /* the caller sets the name */
    struct hf_reader r = { .text = hf_str(cli->values[HF_OPT_VALUE]), .arena = arena };
    struct hf_api_fault why = { "" };
    unsigned type = 0;
    if (!cli->values[HF_OPT_VALUE]) {
        hf_cli_error(cli, "register merge needs --value JSON, as the type wants it; see: holdfast "
                          "help register");
        return false;
    }
    if (!hf_cli_choice(cli, HF_OPT_TYPE, &type))
        return false;
    if (!hf_reader_skip(&r) || !hf_reader_end(&r)) {
        hf_cli_error(cli, "--value: expected JSON: %s", r.error);
        return false;
    }
    hf_json_object(&j);
    hf_json_name(&j, "type");
    hf_json_text(&j, cli->values[HF_OPT_TYPE]);
    hf_json_name(&j, "value");
    hf_json_raw(&j, hf_str(cli->values[HF_OPT_VALUE]));
    hf_json_object_end(&j);
    in.body = hf_mem(body->data, body->size);
    if (hf_api_decode(merge_call(), &in, arena, request, &why) == HF_OK)
        return true;
    struct hf_buffer text = { 0 };
    hf_cli_add_clean(&text, hf_str(why.detail[0] ? why.detail : "value: out of memory"));
    hf_cli_error(cli, "--%s", hf_buffer_text(&text));
    hf_buffer_free(&text);
    return false;
}

static int change(struct hf_cli *cli, struct hf_request *request)
{
    struct hf_arena arena = { 0 };
    struct hf_buffer body = { 0 };
    bool merges = request->action == HF_MERGE;
    bool good = merges ? merge_read(cli, &arena, &body, request) : write_read(cli, &arena, request);
    int code = HF_EXIT_USAGE;
    if (good) {
        *(merges ? &request->merge.name : &request->write.name) = hf_str(cli->args[1]);
        code = (int)hf_cli_ask(cli, request, request->action != HF_DELETE_REGISTER);
    }
    hf_buffer_free(&body);
    hf_arena_free(&arena);
    return code;
}

int hf_cmd_register(struct hf_cli *cli)
{
    const struct hf_cli_verb *verb =
        hf_cli_verb_take(cli, register_verbs, COUNT(register_verbs), "NAME");
    if (!verb)
        return HF_EXIT_USAGE;
    struct hf_request request = { .action = verb->action };
    if (verb->action != HF_GET_REGISTER)
        return change(cli, &request);
    request.get.name = hf_str(cli->args[1]);
    return hf_cli_ask(cli, &request, false);
}

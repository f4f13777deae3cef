/* holdfast claim: begin, show, list and settle claims. */
#include "api/decode.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "json/canonical.h"
#include "json/stored.h"

#include <string.h>

#define BIT HF_OPT_BIT

static const char fence_hint[] =
    "the fence that begin printed; holdfast claim show and list print it too";

#define FENCED .needs = HF_OPT_FENCE, .hint = fence_hint

static const struct hf_cli_verb verbs[] = {
    { "begin", HF_BEGIN,
      .options = BIT(PAYLOAD) | BIT(FINGERPRINT) | BIT(LEASE) | BIT(RETENTION) | BIT(ON_ABANDON) },
    { .name = "show", .action = HF_GET_CLAIM },
    { "list", (enum hf_action)0, .nameless = true,
      .options = BIT(STATUS) | BIT(PREFIX) | BIT(FROM) | BIT(TO) | BIT(LIMIT) | BIT(CURSOR) },
    { "heartbeat", HF_HEARTBEAT, .options = BIT(FENCE) | BIT(LEASE), FENCED },
    { "complete", HF_COMPLETE, .options = BIT(FENCE) | BIT(RESPONSE), FENCED },
    { "fail", HF_FAIL, .options = BIT(FENCE) | BIT(ERROR) | BIT(RETRYABLE), FENCED },
    { "abandon", HF_ABANDON, .options = BIT(FENCE), FENCED },
};

static bool payload_read(struct hf_cli *cli, struct hf_arena *arena, struct hf_request *request)
{
    struct hf_reader r = { .text = hf_str(cli->values[HF_OPT_PAYLOAD]), .arena = arena };
    if (hf_reader_canonical(&r, &request->begin.payload) && hf_reader_end(&r))
        return true;
    hf_cli_error(cli, "--payload: expected JSON: %s. Use --fingerprint for a text",
                 r.failed ? r.error : "out of memory");
    return false;
}

/* digest: out, what the request may point to. */
static bool begin_read(struct hf_cli *cli, struct hf_arena *arena, uint8_t digest[HF_DIGEST_SIZE],
                       struct hf_request *request)
{
    const char *fingerprint = cli->values[HF_OPT_FINGERPRINT];
    unsigned on_abandon = HF_ABANDON_UNKNOWN;
    if (!fingerprint == !cli->values[HF_OPT_PAYLOAD]) {
        hf_cli_error(cli, "claim begin needs either --payload JSON or --fingerprint F: they say "
                          "what the key is for; see: holdfast help claim");
        return false;
    }
    if (!hf_cli_duration(cli, HF_OPT_LEASE, &request->begin.lease_ms) ||
        !hf_cli_duration(cli, HF_OPT_RETENTION, &request->begin.retention_ms) ||
        !hf_cli_choice(cli, HF_OPT_ON_ABANDON, &on_abandon))
        return false;
    request->begin.on_abandon = (enum hf_abandon)on_abandon;
    if (!fingerprint)
        return payload_read(cli, arena, request);
    if (!hf_api_digest(hf_str(fingerprint), digest))
        hf_sha256_of(fingerprint, strlen(fingerprint), digest);
    request->begin.fingerprint = digest;
    return true;
}

static bool settle_read(struct hf_cli *cli, struct hf_arena *arena, struct hf_request *request)
{
    const char *text = cli->values[request->action == HF_FAIL ? HF_OPT_ERROR : HF_OPT_RESPONSE];
    if (!hf_cli_number(cli, HF_OPT_FENCE, (struct hf_cli_range){ 1, UINT64_MAX },
                       &request->settle.fence) ||
        !hf_cli_duration(cli, HF_OPT_LEASE, &request->settle.lease_ms))
        return false;
    request->settle.response = hf_cli_any_json(text, arena);
    request->settle.retryable = cli->values[HF_OPT_RETRYABLE] != NULL;
    return true;
}

int hf_cmd_claim(struct hf_cli *cli)
{
    const struct hf_cli_verb *verb =
        hf_cli_verb_take(cli, verbs, sizeof verbs / sizeof *verbs, "KEY");
    uint8_t digest[HF_DIGEST_SIZE];
    struct hf_arena arena = { 0 };
    if (!verb)
        return HF_EXIT_USAGE;
    if (!verb->action)
        return hf_cli_list_claims(cli);
    struct hf_request request = { .action = verb->action, .key = hf_str(cli->args[1]) };
    bool good = verb->action == HF_BEGIN ? begin_read(cli, &arena, digest, &request)
                : verb->options          ? settle_read(cli, &arena, &request)
                                         : true;
    int code = good ? (int)hf_cli_ask(cli, &request, verb->action == HF_BEGIN) : HF_EXIT_USAGE;
    hf_arena_free(&arena);
    return code;
}

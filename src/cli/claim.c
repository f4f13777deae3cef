/* holdfast claim: begin, show, list and settle claims. */
#include "api/decode.h"
#include "base/hash.h"
#include "cli/commands.h"
#include "json/canonical.h"
#include "json/stored.h"

#include <string.h>

#define BIT HF_OPT_BIT

static const struct verb {
    const char *name;
    enum hf_action action; /* 0: list */
    hf_cli_set options;    /* of those of the command, the ones that it takes */
} verbs[] = {
    { "begin", HF_BEGIN,
      BIT(PAYLOAD) | BIT(FINGERPRINT) | BIT(LEASE) | BIT(RETENTION) | BIT(ON_ABANDON) },
    { "show", HF_GET_CLAIM, 0 },
    { "list", (enum hf_action)0,
      BIT(STATUS) | BIT(PREFIX) | BIT(FROM) | BIT(TO) | BIT(LIMIT) | BIT(CURSOR) },
    { "heartbeat", HF_HEARTBEAT, BIT(FENCE) | BIT(LEASE) },
    { "complete", HF_COMPLETE, BIT(FENCE) | BIT(RESPONSE) },
    { "fail", HF_FAIL, BIT(FENCE) | BIT(ERROR) | BIT(RETRYABLE) },
    { "abandon", HF_ABANDON, BIT(FENCE) },
};

static const struct verb *verb_find(struct hf_cli *cli)
{
    struct hf_buffer given = { 0 };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, cli->args[0]) == 0)
            return &verbs[i];
    hf_cli_add_quoted(&given, hf_str(cli->args[0]));
    hf_cli_error(cli,
                 "claim %s: expected begin, show, list, heartbeat, complete, fail or abandon; see: "
                 "holdfast help claim",
                 hf_buffer_text(&given));
    hf_buffer_free(&given);
    return NULL;
}

/* Are the arguments and options those of the verb? */
static bool verb_fits(const struct hf_cli *cli, const struct verb *verb)
{
    int wanted = verb->action ? 2 : 1;
    if (cli->arg_count != wanted) {
        hf_cli_error(cli, "claim %s takes %s; see: holdfast help claim", verb->name,
                     verb->action ? "a KEY" : "no KEY");
        return false;
    }
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        bool is_own = cli->command->options >> i & 1;
        if (!cli->values[i] || !is_own || (verb->options >> i & 1))
            continue;
        hf_cli_error(cli, "claim %s does not accept --%s; see: holdfast help claim", verb->name,
                     hf_cli_options[i].name);
        return false;
    }
    if (!(verb->options & BIT(FENCE)) || cli->values[HF_OPT_FENCE])
        return true;
    hf_cli_error(cli,
                 "claim %s needs --fence N, the fence that begin printed; holdfast claim show and "
                 "list print it too",
                 verb->name);
    return false;
}

/* What the text means where the interface takes any JSON: itself if it is JSON, else a string. Out
 * of memory is a string too. */
static struct hf_bytes any_json(const char *text, struct hf_arena *arena)
{
    struct hf_reader r = { .text = hf_str(text), .arena = arena };
    struct hf_bytes stored;
    return text && hf_stored_read(&r, &stored) && hf_reader_end(&r) ? stored : hf_str(text);
}

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
    request->settle.response = any_json(text, arena);
    request->settle.retryable = cli->values[HF_OPT_RETRYABLE] != NULL;
    return true;
}

int hf_cmd_claim(struct hf_cli *cli)
{
    const struct verb *verb = verb_find(cli);
    uint8_t digest[HF_DIGEST_SIZE];
    struct hf_arena arena = { 0 };
    if (!verb || !verb_fits(cli, verb))
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

#include "cli/options.h"

#include "cli/commands.h"
#include "cli/config.h"

#include <stdlib.h>
#include <string.h>

const struct hf_cli_option hf_cli_options[HF_OPT_COUNT] = {
    [HF_OPT_DATA] = { "data", "DIR", "HOLDFAST_DATA", NULL,
                      "the store's directory (./holdfast-data); :memory: stores nothing on disk" },
    [HF_OPT_STORE] = { "store", "KIND", "HOLDFAST_STORE", "journal|postgres",
                       "where records are stored: in a directory, or in a PostgreSQL database that "
                       "servers can share (journal); --postgres alone means postgres" },
    [HF_OPT_POSTGRES] = { "postgres", "CONNINFO", "HOLDFAST_POSTGRES", NULL,
                          "the database, as a libpq connection string: \"host=db1 dbname=shop\" or "
                          "postgresql://db1/shop; PGHOST, PGDATABASE ... give the missing parts" },
    [HF_OPT_SERVER] = { "server", "URL", "HOLDFAST_SERVER", NULL,
                        "call the server at this address, such as http://127.0.0.1:4653, instead "
                        "of opening a directory" },
    [HF_OPT_CREDENTIAL_FILE] = { "credential-file", "FILE", "HOLDFAST_CREDENTIAL_FILE", NULL,
                                 "with --server: the file with the caller's credential "
                                 "(HOLDFAST_CREDENTIAL has the credential itself)" },
    [HF_OPT_TLS_CA] = { "tls-ca", "FILE", "HOLDFAST_TLS_CA", NULL,
                        "with --server https://...: trust the authorities in this file, in PEM, "
                        "instead of the system's" },
    [HF_OPT_TIMEOUT] = { "timeout", "D", "HOLDFAST_TIMEOUT", NULL,
                         "with --server: how long to wait for an answer (30s; audit, trace and "
                         "export: 1h)" },
    [HF_OPT_TENANT] = { "tenant", "T", "HOLDFAST_TENANT", NULL,
                        "the tenant to work for (the default tenant; audit, trace and export: all "
                        "tenants)" },
    [HF_OPT_IDEMPOTENCY_WINDOW] = { "idempotency-window", "D", "HOLDFAST_IDEMPOTENCY_WINDOW", NULL,
                                    "how long new keys are remembered (unchanged; 24h in a new "
                                    "store)" },
    [HF_OPT_TOKEN_MAX_LENGTH] = { "token-max-length", "N", "HOLDFAST_TOKEN_MAX_LENGTH", NULL,
                                  "longest key in bytes, up to 1024 (unchanged; 256 in a new "
                                  "store)" },
    [HF_OPT_REGISTRY] = { "registry", "MODE", "HOLDFAST_REGISTRY", "open|strict",
                          "open creates a resource at its first hold, strict refuses unknown ones "
                          "(open)" },
    [HF_OPT_JSON] = { "json", NULL, "HOLDFAST_JSON", NULL, "print JSON, for programs" },
    [HF_OPT_HELP] = { "help", NULL, NULL, NULL, "show this text" },
    [HF_OPT_FOR] = { "for", "REQUESTER", NULL, NULL, "who the hold is for" },
    [HF_OPT_DURATION] = { "duration", "D", NULL, NULL,
                          "how long it lasts: 250ms 30s 15m 24h 7d, or a number of seconds" },
    [HF_OPT_FENCE] = { "fence", "N", NULL, NULL,
                       "the fence of the caller's lease or claim; an older fence is refused" },
    [HF_OPT_KEY] = { "key", "K", NULL, NULL,
                     "idempotency key: a retry with the same key acts once (a new key, which is "
                     "printed)" },
    [HF_OPT_CLIENT] = { "client", "NAME", NULL, NULL,
                        "in place of a key, with --sequence: the name of a client that numbers its "
                        "requests" },
    [HF_OPT_SEQUENCE] = { "sequence", "N", NULL, NULL,
                          "the number of the client's request: 1, 2, 3 ... The last 256 are "
                          "remembered" },
    [HF_OPT_STATE] = { "state", "S", NULL, "held|confirmed|released|expired",
                       "only holds in this state" },
    [HF_OPT_RESOURCE] = { "resource", "R", NULL, NULL, "only holds on this resource" },
    [HF_OPT_REQUESTER] = { "requester", "Q", NULL, NULL, "only holds of this requester" },
    [HF_OPT_FROM] = { "from", "T", NULL, NULL,
                      "only holds placed, or claims begun, at this time or later" },
    [HF_OPT_TO] = { "to", "T", NULL, NULL, "only holds placed, or claims begun, before this time" },
    [HF_OPT_LIMIT] = { "limit", "N", NULL, NULL, "the most records to list; 0 for all (100)" },
    [HF_OPT_LATE] = { "late", "HOW", NULL, "reacquire",
                      "if the window has elapsed and a unit is free, place and confirm a new "
                      "hold" },
    [HF_OPT_CURSOR] = { "cursor", "C", NULL, NULL, "continue a list that a limit ended" },
    [HF_OPT_CAPACITY] = { "capacity", "N", NULL, NULL,
                          "number of units, not below the units taken" },
    [HF_OPT_CLOSE] = { "close", NULL, NULL, NULL, "accept no new holds; existing holds stay" },
    [HF_OPT_OPEN] = { "open", NULL, NULL, NULL, "accept holds again" },
    [HF_OPT_WINDOW] = { "window", "D", NULL, NULL, "how long an identity counts as seen" },
    [HF_OPT_MATCH] = { "match", "M1,M2", NULL, "exact|trim|casefold|normalize|hash",
                       "steps that are applied, in order, before identities are compared; hash "
                       "comes last and stores only a SHA-256 (exact)" },
    [HF_OPT_ON_UNAVAILABLE] = { "on-unavailable", "HOW", NULL, "open|closed",
                                "the answer when the store cannot be used: open is not-seen, "
                                "closed is seen (open)" },
    [HF_OPT_DURABLE] = { "durable", "YN", NULL, "yes|no",
                         "whether identities survive the end of the process (yes)" },
    [HF_OPT_REQUIRE_FENCE] = { "require-fence", "YN", NULL, "yes|no",
                               "whether what takes a fence is refused without one" },
    [HF_OPT_FORCE] = { "force", NULL, NULL, NULL,
                       "change the match rule although identities are under guard" },
    [HF_OPT_RESULT] = { "result", "R", NULL, NULL,
                        "result to store with the identity; later answers have it" },
    [HF_OPT_FAIL_IF_SEEN] = { "fail-if-seen", NULL, NULL, NULL,
                              "exit with 1 if the identity is seen, for scripts" },
    [HF_OPT_FORMAT] = { "format", "F", NULL, "jsonl|sqlite", "what to write" },
    [HF_OPT_TOKENS] = { "tokens", "N", NULL, NULL, "live keys at the start (1000000)" },
    [HF_OPT_RESOURCES] = { "resources", "N", NULL, NULL,
                           "number of resources for the holds (100000)" },
    [HF_OPT_TIME] = { "time", "D", NULL, NULL,
                      "how long each point of each round is measured (1s)" },
    [HF_OPT_ROUNDS] = { "rounds", "N", NULL, NULL, "number of rounds; the medians are shown (3)" },
    [HF_OPT_DIR] = { "dir", "DIR", NULL, NULL,
                     "working folder: created, and removed at the end (holdfast-bench-PID)" },
    [HF_OPT_OUT] = { "out", "DIR", NULL, NULL,
                     "also write bench.txt, bench.json and bench.svg there" },
    [HF_OPT_LIST] = { "list", NULL, NULL, NULL, NULL },
    [HF_OPT_PAYLOAD] = { "payload", "JSON", NULL, NULL,
                         "begin: the work itself, hashed in canonical form to the fingerprint" },
    [HF_OPT_FINGERPRINT] = { "fingerprint", "F", NULL, NULL,
                             "begin: instead of --payload, 64 hexadecimal digits of a SHA-256, or "
                             "a text that is hashed" },
    [HF_OPT_LEASE] = { "lease", "D", NULL, NULL,
                       "begin, heartbeat: time until the next heartbeat or the end of the work "
                       "(60s; heartbeat: as before)" },
    [HF_OPT_RETENTION] = { "retention", "D", NULL, NULL,
                           "begin: how long the claim is remembered once it is settled (the "
                           "idempotency window)" },
    [HF_OPT_ON_ABANDON] = { "on-abandon", "HOW", NULL, "unknown|retry",
                            "begin: when the lease runs out, the next begin is refused, or takes "
                            "over (unknown)" },
    [HF_OPT_RESPONSE] = { "response", "R", NULL, NULL,
                          "complete: JSON, or a text; every later begin gets it" },
    [HF_OPT_ERROR] = { "error", "E", NULL, NULL, "fail: what went wrong, JSON or a text" },
    [HF_OPT_RETRYABLE] = { "retryable", NULL, NULL, NULL, "fail: the key may begin again" },
    [HF_OPT_STATUS] = { "status", "S", NULL, "started|completed|failed|retryable|unknown",
                        "list: only claims with this status" },
    [HF_OPT_PREFIX] = { "prefix", "P", NULL, NULL, "list: only claims whose key begins with P" },
    [HF_OPT_HOLDER] = { "holder", "H", NULL, NULL, "grant: the worker that gets the lease" },
    [HF_OPT_TTL] = { "ttl", "D", NULL, NULL,
                     "grant, renew: how long the lease lasts from now (renew: as before)" },
    [HF_OPT_VALUE] = { "value", "V", NULL, NULL,
                       "write: the new value, JSON or a text; merge: JSON, as the type wants it" },
    [HF_OPT_TYPE] = { "type", "T", NULL, "max|min|or|union|lww|vector|counter|updown",
                      "merge: how the value is merged" },
    [HF_OPT_IF_VERSION] = { "if-version", "N", NULL, NULL,
                            "write, delete: refuse unless the register has this version; 0: unless "
                            "it does not exist" },
    [HF_OPT_EXPECT_HEAD] = { "expect-head", "HASH", NULL, NULL,
                             "fail unless a batch with this hash is in the chain: one that was "
                             "noted earlier" },
    [HF_OPT_SEED] = { "seed", "N", NULL, NULL,
                      "the first seed (1; with --record, the one after the last recorded)" },
    [HF_OPT_SEEDS] = { "seeds", "N", NULL, NULL, "how many seeds, one after the other (1)" },
    [HF_OPT_OPS] = { "ops", "N", NULL, NULL, "operations of clients in each run (2000)" },
    [HF_OPT_JOBS] = { "jobs", "N", NULL, NULL, "processes at a time (1)" },
    [HF_OPT_RECORD] = { "record", "FILE", NULL, NULL, "record in FILE which seeds were run" },
    [HF_OPT_TRACE_HASH] = { "trace-hash", NULL, NULL, NULL,
                            "print a hash of everything that happened in each run" },
    [HF_OPT_MINIMIZE] = { "minimize", NULL, NULL, NULL,
                          "shorten the script of the first seed that fails, and print it" },
    [HF_OPT_CONFIG] = { "config", "FILE", "HOLDFAST_CONFIG", NULL,
                        "a file with one option a line: name = value" },
    [HF_OPT_LISTEN] = { "listen", "ADDR:PORT", "HOLDFAST_LISTEN", NULL,
                        "the address to listen on; port 0 means any free port (127.0.0.1:4653)" },
    [HF_OPT_THREADS] = { "threads", "N", "HOLDFAST_THREADS", NULL,
                         "I/O threads; each can use one core (1)" },
    [HF_OPT_AUTH_FILE] = { "auth-file", "FILE", "HOLDFAST_AUTH_FILE", NULL,
                           "the credentials, one a line: `tenant role sha256-of-credential`; "
                           "without it the server listens only on a loopback address" },
    [HF_OPT_TLS_CERT] = { "tls-cert", "FILE", "HOLDFAST_TLS_CERT", NULL,
                          "the certificate and its chain, in PEM: serve https" },
    [HF_OPT_TLS_KEY] = { "tls-key", "FILE", "HOLDFAST_TLS_KEY", NULL, "its private key, in PEM" },
    [HF_OPT_MAX_BODY] = { "max-body", "SIZE", "HOLDFAST_MAX_BODY", NULL,
                          "the largest request body (1MiB)" },
    [HF_OPT_MAX_CONNECTIONS] = { "max-connections", "N", "HOLDFAST_MAX_CONNECTIONS", NULL,
                                 "connections at one time (4096)" },
    [HF_OPT_TENANT_CONNECTIONS] = { "tenant-connections", "N", "HOLDFAST_TENANT_CONNECTIONS", NULL,
                                    "connections of one tenant; default: half of all" },
    [HF_OPT_TENANT_RATE] = { "tenant-rate", "N", "HOLDFAST_TENANT_RATE", NULL,
                             "requests a second of one tenant (no limit)" },
    [HF_OPT_MEMORY_MAX] = { "memory-max", "SIZE", "HOLDFAST_MEMORY_MAX", NULL,
                            "memory for all tables; above it new keys are refused (no limit)" },
    [HF_OPT_TENANT_MEMORY_MAX] = { "tenant-memory-max", "SIZE", "HOLDFAST_TENANT_MEMORY_MAX", NULL,
                                   "memory for the tables of one tenant; with several tenants in "
                                   "the auth file half of --memory-max (no limit)" },
    [HF_OPT_TENANT_RECORDS_MAX] = { "tenant-records-max", "N", "HOLDFAST_TENANT_RECORDS_MAX", NULL,
                                    "rows, live keys and held holds of one tenant (no limit)" },
    [HF_OPT_LOG] = { "log", "FORM", "HOLDFAST_LOG", "text|json",
                     "the form of log lines, on stderr (text)" },
    [HF_OPT_LOG_KEYS] = { "log-keys", "HOW", "HOLDFAST_LOG_KEYS", "plain|hashed",
                          "how keys and names appear in log lines (plain)" },
    [HF_OPT_LOG_DUPLICATES] = { "log-duplicates", "YN", "HOLDFAST_LOG_DUPLICATES", "yes|no",
                                "log a line for each duplicate (yes)" },
    [HF_OPT_SANDBOX] = { "sandbox", "ONOFF", "HOLDFAST_SANDBOX", "on|off",
                         "give up access to all files except the store's, and to unneeded system "
                         "calls (on)" },
    [HF_OPT_WELCOME] = { "welcome", NULL, NULL, NULL, "also print three commands to try" },
};

static const char *help_of(const struct hf_cli *cli)
{
    return cli->command ? cli->command->name : "";
}

/* The option among `allowed` with the most similar name, or NULL. */
static const char *option_nearest(hf_cli_set allowed, const char *name)
{
    const char *best = NULL;
    unsigned least = 3;
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        unsigned d = hf_cli_distance(hf_cli_options[i].name, name);
        if ((allowed >> i & 1) && hf_cli_options[i].help && d < least) {
            least = d;
            best = hf_cli_options[i].name;
        }
    }
    return best;
}

static hf_cli_set allowed_now(const struct hf_cli *cli)
{
    return HF_OPT_GLOBAL | (cli->command ? cli->command->options : 0);
}

static bool option_unknown(const struct hf_cli *cli, const char *given, const char *name)
{
    struct hf_buffer text = { 0 };
    const char *near = option_nearest(allowed_now(cli), name);
    hf_cli_add_quoted(&text, hf_str(given));
    hf_cli_error(cli, "%s%sunknown option %s%s%s; see: holdfast help%s%s", help_of(cli),
                 cli->command ? ": " : "", hf_buffer_text(&text), near ? "; did you mean --" : "",
                 near ? near : "", cli->command ? " " : "", help_of(cli));
    hf_buffer_free(&text);
    return false;
}

/* The option whose name is the first `size` bytes of `name`; HF_OPT_COUNT if the command has no
 * such option. */
static enum hf_cli_option_id option_find(hf_cli_set allowed, const char *name, size_t size)
{
    int i = 0;
    while (i < HF_OPT_COUNT && (!(allowed >> i & 1) || strlen(hf_cli_options[i].name) != size ||
                                memcmp(hf_cli_options[i].name, name, size) != 0))
        i++;
    return (enum hf_cli_option_id)i;
}

/* A connection string may contain a password, and every user of the machine can see arguments: keep
 * a copy, and overwrite the argument. */
static bool hide(struct hf_cli *cli, char *value)
{
    static char copy[HF_CLI_CONFIG_LINE_MAX];
    size_t size = value ? strlen(value) : 0;
    if (!value)
        return true;
    if (size >= sizeof copy) {
        hf_cli_error(cli,
                     "--postgres: the connection string has %zu bytes; at most %zu are "
                     "allowed",
                     size, sizeof copy - 1);
        return false;
    }
    memcpy(copy, value, size + 1);
    memset(value, '*', size);
    cli->values[HF_OPT_POSTGRES] = copy;
    return true;
}

/* Take the option at argv[*at], and its value if it has one. */
static bool option_take(struct hf_cli *cli, int argc, char **argv, int *at)
{
    char *given = argv[*at];
    const char *name = strcmp(given, "-h") == 0 ? "help" : given + 2;
    size_t size = strcspn(name, "=");
    if (given[1] != '-' && strcmp(given, "-h") != 0)
        return option_unknown(cli, given, given + 1);
    enum hf_cli_option_id id = option_find(allowed_now(cli), name, size);
    if (id == HF_OPT_COUNT) {
        given[strcspn(given, "=")] = '\0';
        return option_unknown(cli, given, given + 2);
    }
    const struct hf_cli_option *option = &hf_cli_options[id];
    const char *value = name[size] == '=' ? name + size + 1 : NULL;
    if (!option->value && value) {
        hf_cli_error(cli, "--%s takes no value; write only --%s", option->name, option->name);
        return false;
    }
    if (option->value && !value) {
        if (*at + 1 >= argc) {
            hf_cli_error(cli, "--%s needs a value: --%s %s", option->name, option->name,
                         option->value);
            return false;
        }
        value = argv[++*at];
    }
    if (option->value && cli->values[id]) {
        hf_cli_error(cli, "--%s is given twice; give it once", option->name);
        return false;
    }
    cli->values[id] = value ? value : "";
    return id != HF_OPT_POSTGRES || !value || hide(cli, argv[*at] + (value - argv[*at]));
}

static bool command_take(struct hf_cli *cli, const char *name)
{
    cli->command = hf_cli_command_find(name);
    if (cli->command) {
        cli->keyed = cli->command->keyed;
        return true;
    }
    const struct hf_cli_command *near = hf_cli_command_nearest(name);
    struct hf_buffer text = { 0 };
    hf_cli_add_quoted(&text, hf_str(name));
    hf_cli_error(cli, "unknown command %s%s%s; see: holdfast help", hf_buffer_text(&text),
                 near ? "; did you mean " : "", near ? near->name : "");
    hf_buffer_free(&text);
    return false;
}

/* "begin, show or list" */
static void verbs_add(const struct hf_cli_verb *verbs, size_t count, struct hf_buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        hf_buffer_add_text(out, i == 0 ? "" : i + 1 == count ? " or " : ", ");
        hf_buffer_add_text(out, verbs[i].name);
    }
}

static const struct hf_cli_verb *verb_find(struct hf_cli *cli, const struct hf_cli_verb *verbs,
                                           size_t count)
{
    const char *name = cli->command->name;
    struct hf_buffer given = { 0 }, expected = { 0 };
    for (size_t i = 0; i < count; i++)
        if (strcmp(verbs[i].name, cli->args[0]) == 0)
            return &verbs[i];
    hf_cli_add_quoted(&given, hf_str(cli->args[0]));
    verbs_add(verbs, count, &expected);
    hf_cli_error(cli, "%s %s: expected %s; see: holdfast help %s", name, hf_buffer_text(&given),
                 hf_buffer_text(&expected), name);
    hf_buffer_free(&given);
    hf_buffer_free(&expected);
    return NULL;
}

const struct hf_cli_verb *hf_cli_verb_take(struct hf_cli *cli, const struct hf_cli_verb *verbs,
                                           size_t count, const char *what)
{
    const char *name = cli->command->name;
    const struct hf_cli_verb *verb = verb_find(cli, verbs, count);
    if (!verb)
        return NULL;
    if (cli->arg_count != (verb->nameless ? 1 : 2)) {
        hf_cli_error(cli, "%s %s takes %s %s; see: holdfast help %s", name, verb->name,
                     verb->nameless ? "no" : "a", what, name);
        return NULL;
    }
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        bool is_own = cli->command->options >> i & 1;
        if (!cli->values[i] || !is_own || (verb->options >> i & 1))
            continue;
        hf_cli_error(cli, "%s %s does not accept --%s; see: holdfast help %s", name, verb->name,
                     hf_cli_options[i].name, name);
        return NULL;
    }
    const struct hf_cli_option *needs = &hf_cli_options[verb->needs];
    cli->keyed = verb->keyed;
    if (verb->needs == 0 || cli->values[verb->needs])
        return verb;
    hf_cli_error(cli, "%s %s needs --%s %s: %s", name, verb->name, needs->name, needs->value,
                 verb->hint ? verb->hint : needs->help);
    return NULL;
}

bool hf_cli_given(const struct hf_cli *cli, enum hf_cli_option_id id)
{
    return cli->values[id] && !cli->from_environment[id];
}

static void environment_take(struct hf_cli *cli)
{
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        const char *value = hf_cli_options[i].env ? getenv(hf_cli_options[i].env) : NULL;
        if (cli->values[i] || !value || !*value)
            continue;
        cli->values[i] = value;
        cli->from_environment[i] = true;
    }
}

/* Was a global option given that the command does not use? It is refused, because the user expects
 * an effect. The environment is for all commands, so values from there may be unused. */
static bool idle_option(const struct hf_cli *cli)
{
    const struct hf_cli_command *c = cli->command;
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        if (!hf_cli_given(cli, (enum hf_cli_option_id)i) || !(HF_OPT_GLOBAL >> i & 1) ||
            (c->globals >> i & 1))
            continue;
        hf_cli_error(cli, "%s does not accept --%s; see: holdfast help %s", c->name,
                     hf_cli_options[i].name, c->name);
        return true;
    }
    return false;
}

/* Check the number of arguments and the required options. */
static bool complete(const struct hf_cli *cli)
{
    const struct hf_cli_command *c = cli->command;
    if (idle_option(cli) || !hf_cli_place_fits(cli))
        return false;
    if (cli->arg_count < c->args_min || cli->arg_count > c->args_max) {
        hf_cli_error(cli, "%s takes %s, but %d %s given; see: holdfast help %s", c->name,
                     c->args_max == 0 ? "no arguments" : c->args, cli->arg_count,
                     cli->arg_count == 1 ? "argument was" : "arguments were", c->name);
        return false;
    }
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        if (!(c->required >> i & 1) || cli->values[i])
            continue;
        const struct hf_cli_option *o = &hf_cli_options[i];
        hf_cli_error(cli, "%s needs --%s %s: %s%s%s; see: holdfast help %s", c->name, o->name,
                     o->value, o->help, o->choices ? ", one of " : "", o->choices ? o->choices : "",
                     c->name);
        return false;
    }
    return true;
}

bool hf_cli_parse(struct hf_cli *cli, int argc, char **argv)
{
    bool ended = false;
    cli->args = argv;
    for (int i = 1; i < argc; i++) {
        bool raw = cli->command && cli->command->raw && strcmp(argv[i], "--help") != 0;
        if (!raw && !ended && strcmp(argv[i], "--") == 0) {
            ended = true;
        } else if (!raw && !ended && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!option_take(cli, argc, argv, &i))
                return false;
        } else if (!cli->command) {
            if (!command_take(cli, argv[i]))
                return false;
        } else {
            cli->args[cli->arg_count++] = argv[i]; /* arg_count <= i: argv was read up to i */
        }
    }
    if (cli->values[HF_OPT_HELP])
        return true;
    if (!cli->command) {
        hf_cli_error(cli, "no command given; see: holdfast help");
        return false;
    }
    if (!cli->command->checks)
        environment_take(cli);
    return complete(cli) && hf_cli_flag(cli, HF_OPT_JSON, &cli->json);
}

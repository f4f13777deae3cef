/* options.h: long options, from a table.
 *
 * `--name VALUE` and `--name=VALUE` are the same; `--` ends the options; `-` alone is an argument.
 * If an option is not given, the environment variable in the table sets it. */
#ifndef HF_CLI_OPTIONS_H
#define HF_CLI_OPTIONS_H

#include "holdfast.h"

enum hf_cli_option_id {
    /* global: every command takes these */
    HF_OPT_DATA,
    HF_OPT_STORE,
    HF_OPT_POSTGRES,
    HF_OPT_SERVER,
    HF_OPT_CREDENTIAL_FILE,
    HF_OPT_TLS_CA,
    HF_OPT_TIMEOUT,
    HF_OPT_TENANT,
    HF_OPT_IDEMPOTENCY_WINDOW,
    HF_OPT_TOKEN_MAX_LENGTH,
    HF_OPT_REGISTRY,
    HF_OPT_JSON,
    HF_OPT_HELP,
    /* of some commands */
    HF_OPT_FOR,
    HF_OPT_DURATION,
    HF_OPT_FENCE,
    HF_OPT_KEY,
    HF_OPT_CLIENT,
    HF_OPT_SEQUENCE,
    HF_OPT_LATE,
    HF_OPT_STATE,
    HF_OPT_RESOURCE,
    HF_OPT_REQUESTER,
    HF_OPT_FROM,
    HF_OPT_TO,
    HF_OPT_LIMIT,
    HF_OPT_CURSOR,
    HF_OPT_CAPACITY,
    HF_OPT_CLOSE,
    HF_OPT_OPEN,
    HF_OPT_WINDOW,
    HF_OPT_MATCH,
    HF_OPT_ON_UNAVAILABLE,
    HF_OPT_DURABLE,
    HF_OPT_FORCE,
    HF_OPT_REQUIRE_FENCE,
    HF_OPT_RESULT,
    HF_OPT_FAIL_IF_SEEN,
    HF_OPT_FORMAT,
    HF_OPT_TOKENS,
    HF_OPT_RESOURCES,
    HF_OPT_TIME,
    HF_OPT_ROUNDS,
    HF_OPT_DIR,
    HF_OPT_OUT,
    HF_OPT_LIST,
    /* of claim */
    HF_OPT_PAYLOAD,
    HF_OPT_FINGERPRINT,
    HF_OPT_LEASE,
    HF_OPT_RETENTION,
    HF_OPT_ON_ABANDON,
    HF_OPT_RESPONSE,
    HF_OPT_ERROR,
    HF_OPT_RETRYABLE,
    HF_OPT_STATUS,
    HF_OPT_PREFIX,
    /* of lease and register */
    HF_OPT_HOLDER,
    HF_OPT_TTL,
    HF_OPT_VALUE,
    HF_OPT_TYPE,
    HF_OPT_IF_VERSION,
    /* of audit */
    HF_OPT_EXPECT_HEAD,
    /* of simulate */
    HF_OPT_SEED,
    HF_OPT_SEEDS,
    HF_OPT_OPS,
    HF_OPT_JOBS,
    HF_OPT_RECORD,
    HF_OPT_TRACE_HASH,
    HF_OPT_MINIMIZE,
    /* of serve */
    HF_OPT_CONFIG,
    HF_OPT_LISTEN,
    HF_OPT_THREADS,
    HF_OPT_AUTH_FILE,
    HF_OPT_TLS_CERT,
    HF_OPT_TLS_KEY,
    HF_OPT_MAX_BODY,
    HF_OPT_MAX_CONNECTIONS,
    HF_OPT_TENANT_CONNECTIONS,
    HF_OPT_TENANT_RATE,
    HF_OPT_MEMORY_MAX,
    HF_OPT_TENANT_MEMORY_MAX,
    HF_OPT_TENANT_RECORDS_MAX,
    HF_OPT_LOG,
    HF_OPT_LOG_KEYS,
    HF_OPT_LOG_DUPLICATES,
    HF_OPT_SANDBOX,
    HF_OPT_WELCOME,
    HF_OPT_COUNT
};

/* A set of options, a bit for each: there are more than 64. */
__extension__ typedef unsigned __int128 hf_cli_set;
#define HF_OPT_BIT(name) ((hf_cli_set)1 << HF_OPT_##name)
/* What names the request of a keyed command: its key, or a client and the number of its request. */
#define HF_OPTS_KEY (HF_OPT_BIT(KEY) | HF_OPT_BIT(CLIENT) | HF_OPT_BIT(SEQUENCE))
#define HF_OPT_GLOBAL (((hf_cli_set)1 << HF_OPT_FOR) - 1)

struct hf_cli_option {
    const char *name;    /* without the dashes */
    const char *value;   /* placeholder for the value in help, or NULL: a flag */
    const char *env;     /* environment variable, or NULL */
    const char *choices; /* "a|b|c" if only these values are valid, else NULL */
    const char *help;    /* NULL: hidden */
};

extern const struct hf_cli_option hf_cli_options[HF_OPT_COUNT];

struct hf_cli;

/* Parse the command line into cli: command, options, arguments. argv is reordered. False after an
 * error message on stderr. With --help only the command is filled in. */
bool hf_cli_parse(struct hf_cli *cli, int argc, char **argv);

/* A command whose first argument says what to do, such as `holdfast lease grant NAME`. */
struct hf_cli_verb {
    const char *name;
    enum hf_action action;       /* 0: not one request */
    bool nameless;               /* it takes no second argument */
    bool keyed;                  /* it takes an idempotency key */
    hf_cli_set options;          /* of those of the command, the ones that it takes */
    enum hf_cli_option_id needs; /* the one that it needs besides; 0: none */
    const char *hint;            /* where to get that from; NULL: the help of the option */
};

/* The verb that the arguments name; sets cli->keyed. NULL after an error message: no verb has this
 * name, or the other arguments and the options are not those of the verb. what: its argument. */
const struct hf_cli_verb *hf_cli_verb_take(struct hf_cli *cli, const struct hf_cli_verb *verbs,
                                           size_t count, const char *what);

/* Was the option given on the command line? */
bool hf_cli_given(const struct hf_cli *cli, enum hf_cli_option_id id);

/* ---- values.c: all of these return false after an error message with the given and the expected
 * value. If the option was not given, they return true and leave *out unchanged. ---- */

/* Say that the value of this option is invalid, and where it was given: the option, the variable,
 * or the file and its line. Always false. */
bool hf_cli_unfit(const struct hf_cli *cli, enum hf_cli_option_id id, const char *expected);

bool hf_cli_duration(const struct hf_cli *cli, enum hf_cli_option_id id, int64_t *out_ms);
bool hf_cli_time(const struct hf_cli *cli, enum hf_cli_option_id id, hf_time *out);

struct hf_cli_range {
    uint64_t lowest, highest;
};
bool hf_cli_number(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_cli_range range,
                   uint64_t *out);
/* Bytes, such as 1MiB. */
bool hf_cli_size(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_cli_range range,
                 uint64_t *out);
/* The index of the value among the option's choices. */
bool hf_cli_choice(const struct hf_cli *cli, enum hf_cli_option_id id, unsigned *out);
/* --require-fence. False: it is neither yes nor no, which is reported. */
bool hf_cli_require_fence(const struct hf_cli *cli, enum hf_require *out);
/* A comma-separated list of choices; at most `max`. */
bool hf_cli_choices(const struct hf_cli *cli, enum hf_cli_option_id id, unsigned *out, size_t max,
                    size_t *count);
/* A non-empty text. */
bool hf_cli_filled(const struct hf_cli *cli, enum hf_cli_option_id id, struct hf_bytes *out);
/* A flag that may also come from the environment, as yes or no. */
bool hf_cli_flag(const struct hf_cli *cli, enum hf_cli_option_id id, bool *out);

struct hf_arena;
/* What the text means where the interface takes any JSON: itself if it is JSON, else a string. Out
 * of memory is a string too. Borrowed from the text or the arena. */
struct hf_bytes hf_cli_any_json(const char *text, struct hf_arena *arena);

/* The edit distance of two words: letters to add, drop or change. */
unsigned hf_cli_distance(const char *a, const char *b);

#endif

/* Opening the store, asking it, and what to say when it does not answer with yes. */
#include "api/encode.h"
#include "api/problem.h"
#include "base/text.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* Long enough for a snapshot of a few million keys, short enough for a shell. */
enum { TIDY_MS = 5000 };

enum hf_cli_exit hf_cli_exit_of(enum hf_status status)
{
    switch (hf_status_kind(status)) {
    case HF_KIND_OK: return HF_EXIT_DONE;
    case HF_KIND_REFUSAL: return HF_EXIT_REFUSED;
    case HF_KIND_INDETERMINATE: return HF_EXIT_UNKNOWN;
    case HF_KIND_FAULT: break;
    }
    return HF_EXIT_STORE;
}

const char *hf_cli_directory(struct hf_cli *cli)
{
    bool data_given = cli->values[HF_OPT_DATA] && !cli->from_environment[HF_OPT_DATA];
    bool server_given = cli->values[HF_OPT_SERVER] && !cli->from_environment[HF_OPT_SERVER];
    if (cli->values[HF_OPT_SERVER] && (server_given || !data_given)) {
        hf_cli_error(cli, "this build talks to directories only, not to servers; drop %s and give --data DIR",
                     server_given ? "--server" : "HOLDFAST_SERVER");
        return NULL;
    }
    return cli->values[HF_OPT_DATA] ? cli->values[HF_OPT_DATA] : "./holdfast-data";
}

static void note(void *arg, int level, const char *line)
{
    if (level > 0)
        hf_cli_error(arg, "warning: %s", line);
}

/* Returning from here makes the call that waits answer HF_INDETERMINATE, and so the program ends with
 * the exit code of that. */
static void fatal(void *arg, const char *sentence)
{
    static const char prefix[] = "holdfast: "; /* the library speaks for itself where no one listens */
    size_t skip = strncmp(sentence, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    hf_cli_error(arg, "%s", sentence + skip);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
    hf_cli_progress(arg, "reading the journal", done, total);
}

enum hf_cli_exit hf_cli_refuse(struct hf_cli *cli, enum hf_action action, enum hf_status status,
                               const char *sentence)
{
    struct hf_api_problem problem = hf_api_problem_of(action, status);
    if (cli->json) {
        struct hf_api_problem shown = problem;
        struct hf_buffer out = { 0 };
        struct hf_json j = { .out = &out };
        if (sentence && hf_status_kind(status) != HF_KIND_REFUSAL)
            shown.detail = hf_str(sentence);
        hf_api_problem(&j, &shown);
        hf_buffer_add_char(&out, '\n');
        hf_cli_flush_to_stdout(&out);
        hf_buffer_free(&out);
    }
    hf_cli_error(
        cli, "%s: %s%s", problem.code, sentence ? sentence : (const char *)problem.detail.data,
        status == HF_STORE_ABSENT ? " (--data DIR names another place; the first change makes a store)" : "");
    return hf_cli_exit_of(status);
}

/* The configuration: what is not given stays as the store has it. */
static bool options_read(struct hf_cli *cli, struct hf_options *options)
{
    uint64_t length = 0;
    unsigned registry = 0;
    if (!hf_cli_duration(cli, HF_OPT_IDEMPOTENCY_WINDOW, &options->idempotency_window_ms) ||
        !hf_cli_number(cli, HF_OPT_TOKEN_MAX_LENGTH, (struct hf_cli_range){ 1, HF_TOKEN_MAX }, &length) ||
        !hf_cli_choice(cli, HF_OPT_REGISTRY, &registry))
        return false;
    if (cli->values[HF_OPT_IDEMPOTENCY_WINDOW] && options->idempotency_window_ms == 0) {
        hf_cli_error(cli, "the idempotency window is 0; give at least 1ms, such as --idempotency-window 24h");
        return false;
    }
    if (options->no_create) { /* who only looks does not configure */
        options->idempotency_window_ms = 0;
        return true;
    }
    options->token_max_length = (uint32_t)length;
    if (cli->values[HF_OPT_REGISTRY])
        options->registry = registry == 1 ? HF_REGISTRY_STRICT : HF_REGISTRY_OPEN;
    return true;
}

enum hf_cli_exit hf_cli_open(struct hf_cli *cli, bool create)
{
    struct hf_options options = { .no_create = !create,
                                  .no_background = true, /* one request needs no threads */
                                  .on_note = note,
                                  .on_fatal = fatal,
                                  .on_progress = progress,
                                  .arg = cli };
    struct hf_error why = { .status = HF_OK };
    const char *directory = hf_cli_directory(cli);
    if (!directory || !options_read(cli, &options))
        return HF_EXIT_USAGE;
    enum hf_status status = hf_open(directory, &options, &cli->db, &why);
    hf_cli_progress_end(cli);
    if (status == HF_OK)
        return HF_EXIT_DONE;
    hf_cli_refuse(cli, (enum hf_action)0, status, why.text);
    return status == HF_INVALID_REQUEST ? HF_EXIT_USAGE : hf_cli_exit_of(status);
}

void hf_cli_close(struct hf_cli *cli, bool tidy)
{
    int64_t begun = hf_cli_clock_ms();
    fflush(stdout); /* the answer does not wait for the tidying */
    while (tidy)
        tidy = hf_maintain(cli->db) && hf_cli_clock_ms() - begun < TIDY_MS;
    hf_close(cli->db);
    cli->db = NULL;
}

/* A key that nobody else has, shown so that the call can be made again if its answer is lost. */
static void key_make(struct hf_cli *cli)
{
    struct timespec t;
    uint8_t random[10];
    clock_gettime(CLOCK_REALTIME, &t);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0, sizeof random); /* cannot happen for so few bytes; the time still tells */
    hf_uuid7_make((hf_time)t.tv_sec * 1000 + t.tv_nsec / 1000000, random, cli->key);
    hf_cli_note(cli, "key: %s", cli->key);
}

static void say_replayed(const struct hf_cli *cli, const struct hf_result *result)
{
    char when[HF_TIME_TEXT];
    if (!result->replayed)
        return;
    hf_time_format(result->token.recorded_at, when);
    hf_cli_note(cli, "(replayed: first answered at %s)", when);
}

static enum hf_cli_exit refused(struct hf_cli *cli, enum hf_action action, const struct hf_result *result)
{
    struct hf_buffer sentence = { 0 };
    enum hf_status status = result->answer.status;
    if (hf_status_kind(status) == HF_KIND_REFUSAL)
        hf_cli_explain(cli, status, &sentence);
    enum hf_cli_exit code =
        hf_cli_refuse(cli, action, status, sentence.size > 0 ? hf_buffer_text(&sentence) : NULL);
    hf_buffer_free(&sentence);
    return code;
}

enum hf_cli_exit hf_cli_ask(struct hf_cli *cli, struct hf_request *request, bool create)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_buffer blame = { 0 };
    enum hf_status malformed = hf_cli_malformed(cli, &blame);
    enum hf_cli_exit code = malformed == HF_OK
                                ? hf_cli_open(cli, create)
                                : hf_cli_refuse(cli, request->action, malformed, hf_buffer_text(&blame));
    hf_buffer_free(&blame);
    if (code != HF_EXIT_DONE)
        return code;
    if (cli->values[HF_OPT_TENANT])
        request->tenant = hf_str(cli->values[HF_OPT_TENANT]);
    if (cli->command->keyed) {
        if (!cli->values[HF_OPT_KEY])
            key_make(cli);
        request->key = hf_str(cli->values[HF_OPT_KEY] ? cli->values[HF_OPT_KEY] : cli->key);
    }
    if (hf_do(cli->db, request, &result) == HF_OK)
        hf_cli_print(cli, request->action, &result);
    else
        code = refused(cli, request->action, &result);
    say_replayed(cli, &result);
    hf_result_clear(&result);
    hf_cli_close(cli, create);
    return code;
}

/* Open the store, run a request, and report refusals and failures. */
#include "api/encode.h"
#include "api/problem.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/commands.h"
#include "refusal/why.h"
#include "store/postgres/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

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

static const char *place_of(const struct hf_cli *cli)
{
    return cli->values[HF_OPT_DATA] ? cli->values[HF_OPT_DATA] : "./holdfast-data";
}

const char *hf_cli_directory(struct hf_cli *cli)
{
    if (hf_cli_postgres(cli))
        return "";
    if (place_of(cli)[0] == '\0') {
        hf_cli_error(
            cli,
            "--data is empty; give the store's directory, such as --data ./holdfast-data, or leave "
            "out --data to use that one");
        return NULL;
    }
    return place_of(cli);
}

static void note(void *arg, int level, const char *line)
{
    if (level > 0)
        hf_cli_error(arg, "warning: %s", line);
}

/* When this returns, the waiting call answers HF_INDETERMINATE, and its exit code ends the
 * program. */
static void fatal(void *arg, const char *sentence)
{
    static const char prefix[] = "holdfast: "; /* the library adds it too */
    size_t skip = strncmp(sentence, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    hf_cli_error(arg, "%s", sentence + skip);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
    hf_cli_progress(arg, "reading the journal", done, total);
}

/* With --json: the problem that was written to `out`, on stdout. Frees it. */
static void problem_print(const struct hf_cli *cli, struct hf_buffer *out)
{
    hf_buffer_add_char(out, '\n');
    if (cli->json)
        hf_cli_flush_to_stdout(out);
    hf_buffer_free(out);
}

void hf_cli_say_problem(struct hf_cli *cli, const struct hf_refusal *problem)
{
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    hf_api_problem(&j, problem);
    problem_print(cli, &out);
    hf_cli_error(cli, "%s: %.*s", problem->code, (int)problem->detail.size,
                 (const char *)problem->detail.data);
}

/* sentence: NULL for the default one. */
static enum hf_cli_exit refuse(struct hf_cli *cli, enum hf_action action,
                               const struct hf_answer *answer, const char *sentence)
{
    enum hf_status status = answer->status;
    bool shown = sentence && hf_status_kind(status) != HF_KIND_REFUSAL;
    struct hf_refusal problem = hf_refusal_of(action, status);
    struct hf_buffer out = { 0 };
    struct hf_json j = { .out = &out };
    hf_api_refusal(&j, action, answer, shown ? hf_str(sentence) : hf_mem(NULL, 0));
    problem_print(cli, &out);
    hf_cli_error(cli, "%s: %s", problem.code,
                 sentence ? sentence : (const char *)problem.detail.data);
    return hf_cli_exit_of(status);
}

enum hf_cli_exit hf_cli_refuse(struct hf_cli *cli, enum hf_action action, enum hf_status status,
                               const char *sentence)
{
    return refuse(cli, action, &(struct hf_answer){ .status = status }, sentence);
}

/* The hint for a store in a database that cannot be used; "" if there is none. */
static const char *database_advice(enum hf_status status)
{
    return status == HF_STORE_ABSENT
               ? "use --postgres for another database; the first change creates a store"
           : status == HF_STORE_DAMAGED ? "holdfast audit shows which records are undamaged"
                                        : "";
}

/* The same for a directory: find out why it cannot be used as a store. */
static const char *advice(const char *place, enum hf_status status)
{
    struct stat st;
    int error = stat(place, &st) == 0 ? 0 : errno;
    if (status == HF_STORE_DAMAGED)
        return "holdfast audit shows which records are undamaged";
    if (status != HF_STORE_ABSENT && status != HF_STORAGE_FAILURE)
        return "";
    if (strcmp(place, ":memory:") == 0)
        return ":memory: is empty at the start of each command; use --data DIR for a store on disk";
    if (error == ENOTDIR || (!error && !S_ISDIR(st.st_mode)))
        return "a store is a directory, but this is a file; use another --data DIR";
    if (status == HF_STORE_ABSENT)
        return "use --data DIR for another place; the first change creates a store";
    if (error == ENOENT)
        return "or use another --data DIR";
    if (error == EACCES || (!error && access(place, R_OK | X_OK) != 0))
        return "you have no access to it; ask its owner, or use another --data DIR";
    return "";
}

/* The URL of the server that has the store open, taken from the error text; empty if it is not a
 * server. */
static struct hf_bytes holder_of(const struct hf_error *why)
{
    static const char by[] = ", by ";
    const char *found = NULL;
    if (why->status == HF_STORE_BUSY)
        for (const char *p = why->text; (p = strstr(p, by)) != NULL; p++)
            found =
                p + sizeof by - 1; /* the last match: the directory's name may contain one too */
    if (!found || (strncmp(found, "http://", 7) != 0 && strncmp(found, "https://", 8) != 0))
        return hf_mem(NULL, 0);
    const char *end = strstr(found, ": ");
    return hf_mem(found, end ? (size_t)(end - found) : strlen(found));
}

enum hf_cli_exit hf_cli_refuse_store(struct hf_cli *cli, const struct hf_error *why)
{
    struct hf_buffer sentence = { 0 };
    const char *more =
        hf_cli_postgres(cli) ? database_advice(why->status) : advice(place_of(cli), why->status);
    struct hf_bytes holder = holder_of(why);
    if (why->status == HF_STORE_DAMAGED && strstr(why->text, "holdfast audit"))
        more = ""; /* the text has this hint already */
    hf_buffer_printf(&sentence, *more ? "%s (%s)" : "%s", why->text, more);
    if (holder.size > 0)
        hf_buffer_printf(&sentence, " (use --server %.*s instead of --data)", (int)holder.size,
                         (const char *)holder.data);
    const char *text = hf_buffer_text(&sentence);
    hf_cli_refuse(cli, (enum hf_action)0, why->status, text ? text : why->text);
    hf_buffer_free(&sentence);
    return why->status == HF_INVALID_REQUEST ? HF_EXIT_USAGE : hf_cli_exit_of(why->status);
}

void hf_cli_warn_unreplicated(struct hf_cli *cli, const char *postgres)
{
    enum { WAIT_MS = 4000 };
    fflush(stdout); /* print the result before the wait */
    if (postgres && !hf_pg_scan_replicated(postgres, WAIT_MS))
        hf_cli_note(cli, "warning: the synchronous standbys have not confirmed all of this. After "
                         "a failover now, the newest records may be lost");
}

const char *hf_cli_records(struct hf_cli *cli, const char **postgres, enum hf_cli_exit *code)
{
    struct hf_buffer blame = { 0 };
    enum hf_status malformed = hf_cli_malformed(cli, &blame);
    const char *directory = malformed == HF_OK ? hf_cli_directory(cli) : NULL;
    *postgres = hf_cli_postgres(cli);
    *code = directory ? HF_EXIT_DONE : HF_EXIT_USAGE;
    if (malformed != HF_OK)
        *code = hf_cli_refuse(cli, (enum hf_action)0, malformed, hf_buffer_text(&blame));
    hf_buffer_free(&blame);
    return directory;
}

/* Was a setting of the store given to a read-only command? Values from the environment are for all
 * commands, and are ignored. */
static bool configures(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id setting[] = { HF_OPT_IDEMPOTENCY_WINDOW,
                                                     HF_OPT_TOKEN_MAX_LENGTH, HF_OPT_REGISTRY };
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++) {
        if (!cli->values[setting[i]] || cli->from_environment[setting[i]])
            continue;
        hf_cli_error(cli,
                     "--%s is only for commands that write. Leave it out, or see what %s can set: "
                     "holdfast help %s",
                     hf_cli_options[setting[i]].name, cli->command->name, cli->command->name);
        return true;
    }
    return false;
}

bool hf_cli_store_options(struct hf_cli *cli, struct hf_options *options)
{
    uint64_t length = 0;
    unsigned registry = 0;
    bool good = hf_cli_duration(cli, HF_OPT_IDEMPOTENCY_WINDOW, &options->idempotency_window_ms);
    if (good && cli->values[HF_OPT_IDEMPOTENCY_WINDOW] && options->idempotency_window_ms == 0)
        good = hf_cli_unfit(cli, HF_OPT_IDEMPOTENCY_WINDOW, "at least 1ms, such as 24h");
    good = hf_cli_number(cli, HF_OPT_TOKEN_MAX_LENGTH, (struct hf_cli_range){ 1, HF_TOKEN_MAX },
                         &length) &&
           good;
    good = hf_cli_choice(cli, HF_OPT_REGISTRY, &registry) && good;
    if (!good) /* every mistake was reported */
        return false;
    if (options->no_create) { /* a read-only command changes no setting */
        options->idempotency_window_ms = 0;
        return !configures(cli);
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
                                  .no_verify = true,
                                  .postgres = hf_cli_postgres(cli),
                                  .on_note = note,
                                  .on_fatal = fatal,
                                  .on_progress = progress,
                                  .arg = cli };
    struct hf_error why = { .status = HF_OK };
    if (hf_cli_remote(cli))
        return hf_cli_remote_open(cli);
    const char *directory = hf_cli_directory(cli);
    if (!directory || !hf_cli_store_options(cli, &options))
        return HF_EXIT_USAGE;
    enum hf_status status = hf_open(directory, &options, &cli->db, &why);
    hf_cli_progress_end(cli);
    if (status == HF_OK)
        return HF_EXIT_DONE;
    return hf_cli_refuse_store(cli, &why);
}

void hf_cli_close(struct hf_cli *cli, bool tidy)
{
    int64_t begun = hf_clock_monotonic_ms();
    fflush(stdout); /* print the answer before the background work */
    hf_client_close(cli->client);
    cli->client = NULL;
    while (tidy && cli->db)
        tidy = hf_maintain(cli->db) && hf_clock_monotonic_ms() - begun < TIDY_MS;
    hf_close(cli->db);
    cli->db = NULL;
}

/* Generate a unique key. Print it, so that the user can retry if the answer is lost. */
static void key_make(struct hf_cli *cli)
{
    uint8_t random[10];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        memset(random, 0,
               sizeof random); /* cannot happen for so few bytes; the time still differs */
    hf_uuid7_make(hf_clock_wall_ms(), random, cli->key);
    hf_cli_note(cli, "key: %s", cli->key);
}

void hf_cli_say_replayed(const struct hf_cli *cli, hf_time recorded_at)
{
    char when[HF_TIME_TEXT];
    hf_time_format(recorded_at, when);
    if (recorded_at != 0)
        hf_cli_note(cli, "(replayed: first answered at %s)", when);
    else
        hf_cli_note(cli, "(replayed)");
}

/* With the name of the argument that caused it, else as a server would say it. */
static enum hf_cli_exit refused(struct hf_cli *cli, const struct hf_request *request,
                                const struct hf_result *result)
{
    struct hf_buffer sentence = { 0 };
    enum hf_status status = result->answer.status;
    struct hf_why cause = hf_why(request, result);
    if (hf_status_kind(status) == HF_KIND_REFUSAL)
        hf_cli_explain(cli, status, &sentence);
    if (sentence.size == 0)
        hf_buffer_add_text(&sentence, cause.text);
    enum hf_cli_exit code = refuse(cli, request->action, &result->answer,
                                   sentence.size > 0 ? hf_buffer_text(&sentence) : NULL);
    hf_buffer_free(&sentence);
    return code;
}

static enum hf_cli_exit ask(struct hf_cli *cli, const struct hf_request *request)
{
    struct hf_result result = HF_RESULT_INIT;
    enum hf_cli_exit code = HF_EXIT_DONE;
    bool done = hf_do(cli->db, request, &result) == HF_OK;
    cli->seen = done && result.answer.kind == HF_RECORD_SEEN && result.answer.seen.seen;
    if (done)
        hf_cli_print(cli, request->action, &result);
    else
        code = refused(cli, request, &result);
    if (result.replayed)
        hf_cli_say_replayed(cli, result.token.recorded_at);
    hf_result_clear(&result);
    return code;
}

bool hf_cli_numbered(const struct hf_cli *cli, struct hf_bytes *client, uint64_t *sequence)
{
    const char *name = cli->values[HF_OPT_CLIENT], *number = cli->values[HF_OPT_SEQUENCE];
    if (!name != !number) {
        hf_cli_error(cli, "%s: --client and --sequence belong together: use both or none",
                     cli->command->name);
        return false;
    }
    if (name && cli->values[HF_OPT_KEY]) {
        hf_cli_error(cli,
                     "%s: --key and --client exclude each other: a numbered client sends its "
                     "number in place of a key. Use one of them",
                     cli->command->name);
        return false;
    }
    if (name)
        *client = hf_str(name);
    return hf_cli_number(cli, HF_OPT_SEQUENCE, (struct hf_cli_range){ 1, UINT64_MAX }, sequence);
}

/* Fill in the key or the number of an action that needs one. */
static void key_fill(struct hf_cli *cli, struct hf_request *request)
{
    if (!cli->keyed || request->client.size > 0)
        return;
    if (!cli->values[HF_OPT_KEY])
        key_make(cli);
    request->key = hf_str(cli->values[HF_OPT_KEY] ? cli->values[HF_OPT_KEY] : cli->key);
}

enum hf_cli_exit hf_cli_ask(struct hf_cli *cli, struct hf_request *request, bool create)
{
    struct hf_buffer blame = { 0 };
    if (!hf_cli_numbered(cli, &request->client, &request->sequence))
        return HF_EXIT_USAGE;
    enum hf_status malformed = hf_cli_malformed(cli, &blame);
    enum hf_cli_exit code =
        malformed == HF_OK ? hf_cli_open(cli, create)
                           : hf_cli_refuse(cli, request->action, malformed, hf_buffer_text(&blame));
    hf_buffer_free(&blame);
    if (code != HF_EXIT_DONE)
        return code;
    if (cli->values[HF_OPT_TENANT])
        request->tenant = hf_str(cli->values[HF_OPT_TENANT]);
    key_fill(cli, request);
    code = cli->client ? hf_cli_remote_ask(cli, request) : ask(cli, request);
    hf_cli_close(cli, create);
    return code;
}

enum hf_cli_exit hf_cli_list(struct hf_cli *cli, const struct hf_query *query, struct hf_page *page,
                             bool quiet)
{
    struct hf_buffer sentence = { 0 };
    if (cli->client)
        return hf_cli_remote_list(cli, query, page, quiet);
    enum hf_status status = hf_list(cli->db, query, page);
    if (status == HF_OK || quiet)
        return hf_cli_exit_of(status);
    hf_cli_explain(cli, status, &sentence);
    if (sentence.size == 0)
        hf_buffer_add_text(&sentence, hf_why_page(status, page).text);
    hf_cli_refuse(cli, (enum hf_action)0, status, sentence.size ? hf_buffer_text(&sentence) : NULL);
    hf_buffer_free(&sentence);
    return hf_cli_exit_of(status);
}

hf_time hf_cli_now(const struct hf_cli *cli)
{
    struct hf_stats stats = { .now = cli->server_now };
    if (cli->db)
        hf_stats(cli->db, &stats);
    return stats.now != 0 ? stats.now : hf_clock_wall_ms();
}

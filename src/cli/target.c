/* A directory, a database or a server: which of them a command uses, and which options only one of
 * them accepts. */
#include "cli/commands.h"
#include "cli/config.h"
#include "store/postgres/conninfo.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WAIT_MS = 30000 };

/* ---- A directory or a database ---- */

/* Where a value came from. The command line wins over the environment, and the environment over the
 * config file. */
enum level { NOWHERE, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND };

static enum level level_of(const struct hf_cli *cli, enum hf_cli_option_id id)
{
    if (!cli->values[id])
        return NOWHERE;
    return cli->from_environment[id] ? FROM_ENVIRONMENT
           : cli->config_line[id]    ? FROM_FILE
                                     : FROM_COMMAND;
}

/* The highest level with an option that says where the store is, and which options it has. */
struct told {
    enum level level;
    bool data, store, postgres;
};

static struct told told_of(const struct hf_cli *cli)
{
    enum level data = level_of(cli, HF_OPT_DATA), store = level_of(cli, HF_OPT_STORE),
               postgres = level_of(cli, HF_OPT_POSTGRES);
    enum level top = data > store ? data : store;
    if (postgres > top)
        top = postgres;
    return (struct told){ top, data && data == top, store && store == top,
                          postgres && postgres == top };
}

static bool store_is_database(const struct hf_cli *cli)
{
    const char *store = cli->values[HF_OPT_STORE];
    return store && strcmp(store, "postgres") == 0;
}

const char *hf_cli_postgres(const struct hf_cli *cli)
{
    struct told told = told_of(cli);
    bool database = told.store ? store_is_database(cli) : told.postgres;
    const char *conninfo = cli->values[HF_OPT_POSTGRES];
    return !database ? NULL : conninfo ? conninfo : "";
}

/* Print the sentence, after FILE:LINE if the value is from the config file. Always false. */
static bool misplaced(const struct hf_cli *cli, enum hf_cli_option_id id, const char *sentence)
{
    struct hf_buffer place = { 0 };
    if (cli->config_line[id])
        hf_cli_add_place(&place, cli, id);
    hf_cli_error(cli, "%s%s", place.size > 0 ? hf_buffer_text(&place) : "", sentence);
    hf_buffer_free(&place);
    return false;
}

/* If the config file names a database and another place a directory, or the other way round, the
 * server could open a second store by mistake. Only --store may decide between them. */
static bool file_fits(const struct hf_cli *cli)
{
    struct told told = told_of(cli);
    bool database = hf_cli_postgres(cli) != NULL;
    bool file_data = level_of(cli, HF_OPT_DATA) == FROM_FILE;
    enum hf_cli_option_id id =
        level_of(cli, HF_OPT_POSTGRES) == FROM_FILE ? HF_OPT_POSTGRES : HF_OPT_STORE;
    bool file_database =
        level_of(cli, id) == FROM_FILE && (id == HF_OPT_POSTGRES || store_is_database(cli));
    if (told.level <= FROM_FILE || told.store || (database ? !file_data : !file_database))
        return true;
    const char *other = told.level == FROM_COMMAND ? database ? "--postgres" : "--data"
                        : database                 ? "HOLDFAST_POSTGRES"
                                                   : "HOLDFAST_DATA";
    char sentence[320];
    snprintf(sentence, sizeof sentence,
             "the config file says that the store is in a %s, but %s names a %s. Remove one of "
             "them, or decide with --store %s",
             database ? "directory" : "database", other, database ? "database" : "directory",
             database ? "postgres" : "journal");
    return misplaced(cli, database ? HF_OPT_DATA : id, sentence);
}

/* These limits are for tables in memory, which a database store does not have. */
static bool tables_fit(const struct hf_cli *cli, enum hf_cli_option_id id)
{
    char text[128];
    if (!cli->values[id] || cli->from_environment[id])
        return true;
    snprintf(text, sizeof text,
             "--%s is only for a store in a directory, whose tables are in memory; leave it out",
             hf_cli_options[id].name);
    return misplaced(cli, id, text);
}

/* Refuse options that contradict each other. The environment is for all commands, so values from
 * there may be unused. */
static bool kept_fits(const struct hf_cli *cli)
{
    struct told told = told_of(cli);
    bool database = store_is_database(cli);
    struct hf_error why = { HF_OK, "" };
    unsigned kind;
    if (!hf_cli_choice(cli, HF_OPT_STORE, &kind))
        return false;
    if (told.level != FROM_ENVIRONMENT && told.store && database && told.data)
        return misplaced(
            cli, HF_OPT_DATA,
            "--data names a directory, but with --store postgres the store is in a database. Leave "
            "out one of them, and name the database with --postgres");
    if (told.level != FROM_ENVIRONMENT && told.store && !database && told.postgres)
        return misplaced(
            cli, HF_OPT_POSTGRES,
            "--postgres names a database, but with --store journal the store is in a directory. "
            "Leave out one of them");
    if (told.level != FROM_ENVIRONMENT && !told.store && told.data && told.postgres)
        return misplaced(
            cli, HF_OPT_POSTGRES,
            "--data and --postgres exclude each other: a store is in a directory or in a database. "
            "Use one of them");
    if (!file_fits(cli))
        return false;
    const char *conninfo = hf_cli_postgres(cli);
    if (conninfo && hf_conninfo_check(conninfo, &why) != HF_OK)
        return misplaced(cli, HF_OPT_POSTGRES, why.text);
    if (!conninfo)
        return true;
    bool good = tables_fit(cli, HF_OPT_MEMORY_MAX);
    good = tables_fit(cli, HF_OPT_TENANT_MEMORY_MAX) && good;
    return tables_fit(cli, HF_OPT_TENANT_RECORDS_MAX) && good;
}

bool hf_cli_remote(const struct hf_cli *cli)
{
    bool kept = hf_cli_given(cli, HF_OPT_DATA) || hf_cli_given(cli, HF_OPT_STORE) ||
                hf_cli_given(cli, HF_OPT_POSTGRES);
    return cli->values[HF_OPT_SERVER] && (hf_cli_given(cli, HF_OPT_SERVER) || !kept);
}

/* The option or variable that named the server. */
static const char *server_name(const struct hf_cli *cli)
{
    return hf_cli_given(cli, HF_OPT_SERVER) ? "--server" : "HOLDFAST_SERVER";
}

/* Acting on another tenant's records would be worse than an error, so a tenant from the environment
 * is refused too. */
static bool tenant_fits(const struct hf_cli *cli)
{
    const char *given = hf_cli_given(cli, HF_OPT_TENANT) ? "--tenant" : "HOLDFAST_TENANT";
    if (!cli->values[HF_OPT_TENANT] || !(cli->command->globals & HF_OPT_BIT(TENANT)) ||
        cli->command->names_tenant)
        return true;
    hf_cli_error(cli,
                 "a server knows the tenant by the caller's credential, so %s cannot be used with "
                 "%s. Leave it out, and use a credential of that tenant (--credential-file FILE or "
                 "HOLDFAST_CREDENTIAL)",
                 given, server_name(cli));
    return false;
}

/* Settings that only the server's own command line may change. */
static bool settings_fit(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id setting[] = { HF_OPT_IDEMPOTENCY_WINDOW,
                                                     HF_OPT_TOKEN_MAX_LENGTH, HF_OPT_REGISTRY };
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++) {
        if (!hf_cli_given(cli, setting[i]))
            continue;
        hf_cli_error(
            cli,
            "--%s is set where the server is started, not by its callers; leave it out with %s",
            hf_cli_options[setting[i]].name, server_name(cli));
        return false;
    }
    return true;
}

/* Options that need a server. */
static bool callings_fit(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id calling[] = { HF_OPT_CREDENTIAL_FILE, HF_OPT_TLS_CA,
                                                     HF_OPT_TIMEOUT };
    for (size_t i = 0; i < sizeof calling / sizeof *calling; i++) {
        if (!hf_cli_given(cli, calling[i]))
            continue;
        hf_cli_error(cli, "--%s needs a server; add --server URL, or leave it out",
                     hf_cli_options[calling[i]].name);
        return false;
    }
    return true;
}

bool hf_cli_place_fits(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id kept[] = { HF_OPT_DATA, HF_OPT_STORE, HF_OPT_POSTGRES };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (!hf_cli_given(cli, kept[i]) || !hf_cli_given(cli, HF_OPT_SERVER))
            continue;
        hf_cli_error(
            cli,
            "--%s and --server exclude each other: a command uses a directory, a database or a "
            "server. Use one of them",
            hf_cli_options[kept[i]].name);
        return false;
    }
    if (!hf_cli_remote(cli) || !(cli->command->globals & HF_OPT_BIT(SERVER)))
        return callings_fit(cli) && (!(cli->command->globals & HF_OPT_BIT(DATA)) || kept_fits(cli));
    return tenant_fits(cli) && settings_fit(cli);
}

/* ---- The credential ---- */

/* Read the file: only the credential, with or without a line end. out: HF_CLIENT_CREDENTIAL_MAX
 * + 3 bytes. NULL, or what is wrong. */
static const char *credential_read(const char *path, char *out)
{
    struct stat st;
    FILE *file = fopen(path, "re");
    if (!file)
        return strerror(errno);
    size_t size = fread(out, 1, HF_CLIENT_CREDENTIAL_MAX + 2, file);
    const char *wrong = ferror(file) ? strerror(errno) : NULL;
    if (!wrong && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_mode & (S_IROTH | S_IWOTH)))
        wrong = "every user may read or write it; use chmod o-rw";
    fclose(file);
    if (size > 0 && out[size - 1] == '\n')
        size--;
    if (size > 0 && out[size - 1] == '\r')
        size--;
    out[size] = '\0';
    return wrong ? wrong : strlen(out) != size ? "it contains a NUL byte" : NULL;
}

/* The credential: --credential-file, else HOLDFAST_CREDENTIAL, else HOLDFAST_CREDENTIAL_FILE. It
 * is never an argument, because every user of the machine can see arguments. credential: out, NULL
 * if there is none. False after an error message. */
static bool credential_find(const struct hf_cli *cli, char *room, const char **credential)
{
    const char *path = cli->values[HF_OPT_CREDENTIAL_FILE], *own = getenv("HOLDFAST_CREDENTIAL");
    *credential = NULL;
    if (own && *own && !hf_cli_given(cli, HF_OPT_CREDENTIAL_FILE)) {
        *credential = own;
        return true;
    }
    if (!path)
        return true;
    const char *wrong = credential_read(path, room);
    if (wrong) {
        struct hf_buffer text = { 0 };
        hf_cli_add_quoted(&text, hf_str(path));
        hf_cli_error(cli, "the credential file %s cannot be used: %s", hf_buffer_text(&text),
                     wrong);
        hf_buffer_free(&text);
        return false;
    }
    *credential = room;
    return true;
}

/* ---- The client ---- */

static bool wait_read(struct hf_cli *cli)
{
    cli->wait_ms = WAIT_MS;
    if (!hf_cli_duration(cli, HF_OPT_TIMEOUT, &cli->wait_ms))
        return false;
    if (cli->wait_ms > 0)
        return true;
    hf_cli_error(cli, "the timeout is 0; use at least 1ms, such as --timeout 30s");
    return false;
}

enum hf_cli_exit hf_cli_remote_open(struct hf_cli *cli)
{
    char room[HF_CLIENT_CREDENTIAL_MAX + 3] = "";
    struct hf_client_options options = { .url = cli->values[HF_OPT_SERVER],
                                         .ca_file = cli->values[HF_OPT_TLS_CA] };
    struct hf_error why = { .status = HF_OK };
    if (!wait_read(cli) || !credential_find(cli, room, &options.credential))
        return HF_EXIT_USAGE;
    if (hf_cli_given(cli, HF_OPT_TLS_CA) && strncmp(options.url, "https://", 8) != 0) {
        hf_cli_error(cli, "--tls-ca needs a URL that begins with https://");
        return HF_EXIT_USAGE;
    }
    enum hf_status status = hf_client_open(&options, &cli->client, &why);
    OPENSSL_cleanse(room, sizeof room);
    if (status != HF_OK) {
        struct hf_buffer text = { 0 };
        hf_cli_add_clean(&text, hf_str(why.text));
        hf_cli_error(cli, "%s: %s", server_name(cli), hf_buffer_text(&text));
        hf_buffer_free(&text);
        return status == HF_INVALID_REQUEST ? HF_EXIT_USAGE : HF_EXIT_STORE;
    }
    if (hf_client_exposed(cli->client))
        hf_cli_error(cli, "warning: the credential is sent to %s unencrypted; use https",
                     hf_client_url(cli->client));
    return HF_EXIT_DONE;
}

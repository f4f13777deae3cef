/* A directory or a server: which of the two a command acts on, and what only one of them takes. */
#include "cli/commands.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WAIT_MS = 30000 };

bool hf_cli_remote(const struct hf_cli *cli)
{
    return cli->values[HF_OPT_SERVER] &&
           (hf_cli_given(cli, HF_OPT_SERVER) || !hf_cli_given(cli, HF_OPT_DATA));
}

/* How the server was named. */
static const char *server_name(const struct hf_cli *cli)
{
    return hf_cli_given(cli, HF_OPT_SERVER) ? "--server" : "HOLDFAST_SERVER";
}

/* Whoever names a tenant means that tenant: to act on another one's records would be worse than not to act. So it
 * counts from the environment too. */
static bool tenant_fits(const struct hf_cli *cli)
{
    const char *given = hf_cli_given(cli, HF_OPT_TENANT) ? "--tenant" : "HOLDFAST_TENANT";
    if (!cli->values[HF_OPT_TENANT] || !(cli->command->globals & HF_OPT_BIT(TENANT)))
        return true;
    hf_cli_error(
        cli,
        "a server knows the tenant by the token of the caller, so %s cannot be chosen with %s; leave it "
        "out, and call with a token of that tenant (--token-file FILE or HOLDFAST_TOKEN)",
        given, server_name(cli));
    return false;
}

/* What is set where the server is started. */
static bool settings_fit(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id setting[] = { HF_OPT_IDEMPOTENCY_WINDOW, HF_OPT_TOKEN_MAX_LENGTH,
                                                     HF_OPT_REGISTRY };
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++) {
        if (!hf_cli_given(cli, setting[i]))
            continue;
        hf_cli_error(cli,
                     "--%s is set where the server is started and not by who asks it; leave it out with %s",
                     hf_cli_options[setting[i]].name, server_name(cli));
        return false;
    }
    return true;
}

/* What means something to a server alone. */
static bool callings_fit(const struct hf_cli *cli)
{
    static const enum hf_cli_option_id calling[] = { HF_OPT_TOKEN_FILE, HF_OPT_TLS_CA, HF_OPT_TIMEOUT };
    for (size_t i = 0; i < sizeof calling / sizeof *calling; i++) {
        if (!hf_cli_given(cli, calling[i]))
            continue;
        hf_cli_error(cli, "--%s is for asking a server, and none is named; add --server URL, or leave it out",
                     hf_cli_options[calling[i]].name);
        return false;
    }
    return true;
}

bool hf_cli_place_fits(const struct hf_cli *cli)
{
    if (hf_cli_given(cli, HF_OPT_DATA) && hf_cli_given(cli, HF_OPT_SERVER)) {
        hf_cli_error(
            cli, "--data and --server exclude each other: a command acts on a directory or through a server; "
                 "give one of them");
        return false;
    }
    if (!hf_cli_remote(cli) || !(cli->command->globals & HF_OPT_BIT(SERVER)))
        return callings_fit(cli);
    return tenant_fits(cli) && settings_fit(cli);
}

/* ---- The token ---- */

/* Read the file: the token alone, perhaps with a line end. out: HF_CLIENT_TOKEN_MAX + 3 bytes. NULL, or what is
 * wrong. */
static const char *token_read(const char *path, char *out)
{
    struct stat st;
    FILE *file = fopen(path, "re");
    if (!file)
        return strerror(errno);
    size_t size = fread(out, 1, HF_CLIENT_TOKEN_MAX + 2, file);
    const char *wrong = ferror(file) ? strerror(errno) : NULL;
    if (!wrong && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & (S_IROTH | S_IWOTH)))
        wrong = "everybody may read or write it; do: chmod o-rw on it";
    fclose(file);
    if (size > 0 && out[size - 1] == '\n')
        size--;
    if (size > 0 && out[size - 1] == '\r')
        size--;
    out[size] = '\0';
    return wrong ? wrong : strlen(out) != size ? "it is not text" : NULL;
}

/* The token: --token-file, else HOLDFAST_TOKEN, else HOLDFAST_TOKEN_FILE. It is never an argument, because those are
 * shown to everybody on the machine. token: out, NULL if there is none. False after saying what is wrong. */
static bool token_find(const struct hf_cli *cli, char *room, const char **token)
{
    const char *path = cli->values[HF_OPT_TOKEN_FILE], *own = getenv("HOLDFAST_TOKEN");
    *token = NULL;
    if (own && *own && !hf_cli_given(cli, HF_OPT_TOKEN_FILE)) {
        *token = own;
        return true;
    }
    if (!path)
        return true;
    const char *wrong = token_read(path, room);
    if (wrong) {
        struct hf_buffer text = { 0 };
        hf_cli_add_quoted(&text, hf_str(path));
        hf_cli_error(cli, "the token file %s cannot be used: %s", hf_buffer_text(&text), wrong);
        hf_buffer_free(&text);
        return false;
    }
    *token = room;
    return true;
}

/* ---- Getting ready ---- */

static bool wait_read(struct hf_cli *cli)
{
    cli->wait_ms = WAIT_MS;
    if (!hf_cli_duration(cli, HF_OPT_TIMEOUT, &cli->wait_ms))
        return false;
    if (cli->wait_ms > 0)
        return true;
    hf_cli_error(cli, "the timeout is 0; give at least 1ms, such as --timeout 30s");
    return false;
}

enum hf_cli_exit hf_cli_remote_open(struct hf_cli *cli)
{
    char room[HF_CLIENT_TOKEN_MAX + 3] = "";
    struct hf_client_options options = { .url = cli->values[HF_OPT_SERVER],
                                         .ca_file = cli->values[HF_OPT_TLS_CA] };
    struct hf_error why = { .status = HF_OK };
    if (!wait_read(cli) || !token_find(cli, room, &options.token))
        return HF_EXIT_USAGE;
    if (hf_cli_given(cli, HF_OPT_TLS_CA) && strncmp(options.url, "https://", 8) != 0) {
        hf_cli_error(cli, "--tls-ca is for a URL that begins with https://, and this one does not");
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
        hf_cli_error(
            cli, "warning: the token goes to %s unencrypted, so everybody on the way can read it; use https",
            hf_client_url(cli->client));
    return HF_EXIT_DONE;
}

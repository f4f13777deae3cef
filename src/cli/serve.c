/* holdfast serve: the server's options, from the command line, the environment and a file. */
#include "cli/commands.h"
#include "cli/config.h"
#include "server/server.h"

#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static bool sizes_read(const struct hf_cli *cli, struct hf_server_options *o)
{
    uint64_t threads = 1, connections = 4096, tenant_connections = 0, tenant_rate = 0;
    o->max_body = 1 << 20;
    if (!hf_cli_number(cli, HF_OPT_THREADS, (struct hf_cli_range){ 1, 64 }, &threads) ||
        !hf_cli_number(cli, HF_OPT_MAX_CONNECTIONS, (struct hf_cli_range){ 1, 1000000 },
                       &connections) ||
        !hf_cli_number(cli, HF_OPT_TENANT_CONNECTIONS, (struct hf_cli_range){ 1, 1000000 },
                       &tenant_connections) ||
        !hf_cli_number(cli, HF_OPT_TENANT_RATE, (struct hf_cli_range){ 1, 1000000 },
                       &tenant_rate) ||
        !hf_cli_size(cli, HF_OPT_MAX_BODY, (struct hf_cli_range){ 1024, 64 << 20 }, &o->max_body) ||
        !hf_cli_size(cli, HF_OPT_MEMORY_MAX, (struct hf_cli_range){ 1 << 20, UINT64_MAX },
                     &o->store.memory_max_bytes) ||
        !hf_cli_size(cli, HF_OPT_TENANT_MEMORY_MAX, (struct hf_cli_range){ 1 << 16, UINT64_MAX },
                     &o->store.tenant_memory_max_bytes) ||
        !hf_cli_number(cli, HF_OPT_TENANT_RECORDS_MAX, (struct hf_cli_range){ 1, UINT64_MAX },
                       &o->store.tenant_records_max))
        return false;
    o->threads = (unsigned)threads;
    o->max_connections = (unsigned)connections;
    o->tenant_connections = (unsigned)tenant_connections;
    o->tenant_rate = (unsigned)tenant_rate;
    return true;
}

static bool choices_read(const struct hf_cli *cli, struct hf_server_options *o)
{
    unsigned log = 0, keys = 0, duplicates = 0, sandbox = 0;
    if (!hf_cli_choice(cli, HF_OPT_LOG, &log) || !hf_cli_choice(cli, HF_OPT_LOG_KEYS, &keys) ||
        !hf_cli_choice(cli, HF_OPT_LOG_DUPLICATES, &duplicates) ||
        !hf_cli_choice(cli, HF_OPT_SANDBOX, &sandbox))
        return false;
    o->log_json = log == 1;
    o->log_hash_keys = keys == 1;
    o->log_duplicates = duplicates == 0;
    o->sandbox = sandbox == 0;
    return true;
}

static void welcome(const char *url)
{
    struct hf_buffer lines = { 0 };
    hf_server_lines(url, &lines);
    hf_cli_flush_to_stdout(&lines);
    hf_buffer_free(&lines);
    fflush(stdout);
}

/* Where the values are that only the server can check. */
struct places {
    struct hf_buffer data, postgres, listen, auth_file, tls_cert, tls_key;
};

/* "FILE:LINE: " if the value came from the config file, else NULL. text: out, owned. */
static const char *place_of(const struct hf_cli *cli, enum hf_cli_option_id id,
                            struct hf_buffer *text)
{
    if (!cli->config_line[id])
        return NULL;
    hf_cli_add_place(text, cli, id);
    return hf_buffer_text(text);
}

static void places_fill(const struct hf_cli *cli, struct places *p, struct hf_server_places *out)
{
    out->data = place_of(cli, HF_OPT_DATA, &p->data);
    out->postgres = place_of(cli, HF_OPT_POSTGRES, &p->postgres);
    out->listen = place_of(cli, HF_OPT_LISTEN, &p->listen);
    out->auth_file = place_of(cli, HF_OPT_AUTH_FILE, &p->auth_file);
    out->tls_cert = place_of(cli, HF_OPT_TLS_CERT, &p->tls_cert);
    out->tls_key = place_of(cli, HF_OPT_TLS_KEY, &p->tls_key);
}

static void places_free(struct places *p)
{
    hf_buffer_free(&p->data);
    hf_buffer_free(&p->postgres);
    hf_buffer_free(&p->listen);
    hf_buffer_free(&p->auth_file);
    hf_buffer_free(&p->tls_cert);
    hf_buffer_free(&p->tls_key);
}

/* glibc keeps small freed chunks in fastbins and merges them all at the next large malloc. After a
 * mass expiry that took 0.1 s, in the middle of a request. Without fastbins, each free merges at
 * once. */
static void allocator_set(void)
{
#ifdef __GLIBC__
    mallopt(M_MXFAST, 0);
#endif
}

int hf_cmd_serve(struct hf_cli *cli)
{
    struct hf_server_options options = { .listen = "127.0.0.1:4653" };
    struct places places = { 0 };
    const char *config = cli->values[HF_OPT_CONFIG];
    if (config && (!hf_cli_config_load(cli, config) || !hf_cli_place_fits(cli)))
        return HF_EXIT_USAGE;
    if (!sizes_read(cli, &options) || !choices_read(cli, &options) ||
        !hf_cli_store_options(cli, &options.store))
        return HF_EXIT_USAGE;
    options.data = cli->values[HF_OPT_DATA] ? cli->values[HF_OPT_DATA] : "./holdfast-data";
    options.store.postgres = hf_cli_postgres(cli);
    if (cli->values[HF_OPT_LISTEN])
        options.listen = cli->values[HF_OPT_LISTEN];
    options.auth_file = cli->values[HF_OPT_AUTH_FILE];
    options.tls_cert = cli->values[HF_OPT_TLS_CERT];
    options.tls_key = cli->values[HF_OPT_TLS_KEY];
    if (cli->values[HF_OPT_WELCOME])
        options.welcome = welcome;
    places_fill(cli, &places, &options.places);
    allocator_set();
    int code = hf_server_run(&options);
    places_free(&places);
    return code;
}

/* holdfast serve and holdfast check-config: the server's options, from the command line, the
 * environment and a file. */
#include "cli/commands.h"
#include "cli/config.h"
#include "server/server.h"
#include "store/postgres/conninfo.h"
#include "json/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Each of these reads all of its options, and reports every value that is invalid. */
static bool numbers_read(const struct hf_cli *cli, struct hf_server_options *o)
{
    uint64_t threads = 1, connections = 4096, tenant_connections = 0, tenant_rate = 0;
    const struct {
        enum hf_cli_option_id id;
        struct hf_cli_range range;
        uint64_t *out;
    } numbers[] = {
        { HF_OPT_THREADS, { 1, 64 }, &threads },
        { HF_OPT_MAX_CONNECTIONS, { 1, 1000000 }, &connections },
        { HF_OPT_TENANT_CONNECTIONS, { 1, 1000000 }, &tenant_connections },
        { HF_OPT_TENANT_RATE, { 1, 1000000 }, &tenant_rate },
        { HF_OPT_TENANT_RECORDS_MAX, { 1, UINT64_MAX }, &o->store.tenant_records_max },
    };
    bool good = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        good = hf_cli_number(cli, numbers[i].id, numbers[i].range, numbers[i].out) && good;
    o->threads = (unsigned)threads;
    o->max_connections = (unsigned)connections;
    o->tenant_connections = (unsigned)tenant_connections;
    o->tenant_rate = (unsigned)tenant_rate;
    return good;
}

static bool sizes_read(const struct hf_cli *cli, struct hf_server_options *o)
{
    const struct {
        enum hf_cli_option_id id;
        struct hf_cli_range range;
        uint64_t *out;
    } sizes[] = {
        { HF_OPT_MAX_BODY, { 1024, 64 << 20 }, &o->max_body },
        { HF_OPT_MEMORY_MAX, { 1 << 20, UINT64_MAX }, &o->store.memory_max_bytes },
        { HF_OPT_TENANT_MEMORY_MAX, { 1 << 16, UINT64_MAX }, &o->store.tenant_memory_max_bytes },
    };
    bool good = true;
    o->max_body = 1 << 20;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        good = hf_cli_size(cli, sizes[i].id, sizes[i].range, sizes[i].out) && good;
    return good;
}

static bool choices_read(const struct hf_cli *cli, struct hf_server_options *o)
{
    unsigned log = 0, keys = 0, duplicates = 0, sandbox = 0;
    bool good = hf_cli_choice(cli, HF_OPT_LOG, &log);
    good = hf_cli_choice(cli, HF_OPT_LOG_KEYS, &keys) && good;
    good = hf_cli_choice(cli, HF_OPT_LOG_DUPLICATES, &duplicates) && good;
    good = hf_cli_choice(cli, HF_OPT_SANDBOX, &sandbox) && good;
    o->log_json = log == 1;
    o->log_hash_keys = keys == 1;
    o->log_duplicates = duplicates == 0;
    o->sandbox = sandbox == 0;
    return good;
}

/* Fill in the server's options. False after an error message for each mistake. */
static bool options_read(struct hf_cli *cli, struct hf_server_options *o)
{
    bool good = numbers_read(cli, o);
    good = sizes_read(cli, o) && good;
    good = choices_read(cli, o) && good;
    good = hf_cli_store_options(cli, &o->store) && good;
    o->data = cli->values[HF_OPT_DATA] ? cli->values[HF_OPT_DATA] : "./holdfast-data";
    o->store.postgres = hf_cli_postgres(cli);
    o->listen = cli->values[HF_OPT_LISTEN] ? cli->values[HF_OPT_LISTEN] : "127.0.0.1:4653";
    o->auth_file = cli->values[HF_OPT_AUTH_FILE];
    o->tls_cert = cli->values[HF_OPT_TLS_CERT];
    o->tls_key = cli->values[HF_OPT_TLS_KEY];
    return good;
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
    struct hf_server_options options = { .threads = 1 };
    struct places places = { 0 };
    const char *config = cli->values[HF_OPT_CONFIG];
    if (config && (!hf_cli_config_load(cli, config) || !hf_cli_place_fits(cli)))
        return HF_EXIT_USAGE;
    if (!options_read(cli, &options))
        return HF_EXIT_USAGE;
    if (cli->values[HF_OPT_WELCOME])
        options.welcome = welcome;
    places_fill(cli, &places, &options.places);
    allocator_set();
    int code = hf_server_run(&options);
    places_free(&places);
    return code;
}

/* ---- holdfast check-config ---- */

/* What applies if an option is not given. Options that are not here do not apply then. */
static const char *const defaults[HF_OPT_COUNT] = {
    [HF_OPT_DATA] = "./holdfast-data",
    [HF_OPT_STORE] = "journal",
    [HF_OPT_POSTGRES] = "libpq's defaults",
    [HF_OPT_IDEMPOTENCY_WINDOW] = "as the store has it; 24h in a new store",
    [HF_OPT_TOKEN_MAX_LENGTH] = "as the store has it; 256 in a new store",
    [HF_OPT_REGISTRY] = "as the store has it; open in a new store",
    [HF_OPT_LISTEN] = "127.0.0.1:4653",
    [HF_OPT_THREADS] = "1",
    [HF_OPT_AUTH_FILE] = "none: every local caller has full access",
    [HF_OPT_TLS_CERT] = "none: http",
    [HF_OPT_MAX_BODY] = "1MiB",
    [HF_OPT_MAX_CONNECTIONS] = "4096",
    [HF_OPT_TENANT_CONNECTIONS] = "half of all",
    [HF_OPT_TENANT_RATE] = "no limit",
    [HF_OPT_MEMORY_MAX] = "no limit",
    [HF_OPT_TENANT_MEMORY_MAX] = "no limit; with several tenants half of memory-max",
    [HF_OPT_TENANT_RECORDS_MAX] = "no limit",
    [HF_OPT_LOG] = "text",
    [HF_OPT_LOG_KEYS] = "plain",
    [HF_OPT_LOG_DUPLICATES] = "yes",
    [HF_OPT_SANDBOX] = "on",
};

/* Does the option apply to a store of this kind? */
static bool applies(enum hf_cli_option_id id, bool database)
{
    static const hf_cli_set of_directories = HF_OPT_BIT(DATA) | HF_OPT_BIT(MEMORY_MAX) |
                                             HF_OPT_BIT(TENANT_MEMORY_MAX) |
                                             HF_OPT_BIT(TENANT_RECORDS_MAX);
    return id == HF_OPT_POSTGRES ? database : !database || !(of_directories >> id & 1);
}

/* The value in force; NULL if there is none. room: for a database, which is shown without its
 * password. */
static const char *in_force(const struct hf_cli *cli, enum hf_cli_option_id id, char *room,
                            size_t size)
{
    const char *conninfo = hf_cli_postgres(cli);
    if (!applies(id, conninfo != NULL))
        return NULL;
    if (id == HF_OPT_STORE && !cli->values[id]) /* then --postgres alone decides */
        return conninfo ? NULL : defaults[id];
    if (id != HF_OPT_POSTGRES)
        return cli->values[id] ? cli->values[id] : defaults[id];
    hf_conninfo_show(conninfo, room, size);
    return room;
}

static void setting_print(const struct hf_cli *cli, enum hf_cli_option_id id, const char *value,
                          struct hf_buffer *out)
{
    hf_buffer_printf(out, "%-20s  ", hf_cli_options[id].name);
    hf_cli_add_clean(out, hf_str(value));
    if (cli->config_line[id])
        hf_buffer_printf(out, "  (line %u)\n", cli->config_line[id]);
    else
        hf_buffer_add_text(out, cli->values[id] ? "  (option)\n" : "  (default)\n");
}

static void setting_add(const struct hf_cli *cli, enum hf_cli_option_id id, const char *value,
                        struct hf_json *j)
{
    hf_json_object(j);
    hf_json_name(j, "name");
    hf_json_text(j, hf_cli_options[id].name);
    hf_json_name(j, "value");
    hf_json_bytes(j, hf_str(value));
    hf_json_name(j, "from");
    hf_json_text(j, cli->config_line[id] ? "file" : cli->values[id] ? "option" : "default");
    if (cli->config_line[id]) {
        hf_json_name(j, "line");
        hf_json_uint(j, cli->config_line[id]);
    }
    hf_json_object_end(j);
}

/* Print what is in force. */
static void settings_print(const struct hf_cli *cli, struct hf_buffer *out)
{
    struct hf_json j = { .out = out };
    char room[512];
    if (cli->json) {
        hf_json_object(&j);
        hf_json_name(&j, "ok");
        hf_json_bool(&j, true);
        hf_json_name(&j, "settings");
        hf_json_array(&j);
    }
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        const char *value = in_force(cli, (enum hf_cli_option_id)i, room, sizeof room);
        bool is_known = (cli->command->options | cli->command->globals) >> i & 1;
        if (!is_known || !value || i == HF_OPT_CONFIG)
            continue;
        if (cli->json)
            setting_add(cli, (enum hf_cli_option_id)i, value, &j);
        else
            setting_print(cli, (enum hf_cli_option_id)i, *value ? value : "yes", out);
    }
    if (cli->json) {
        hf_json_array_end(&j);
        hf_json_object_end(&j);
        hf_buffer_add_char(out, '\n');
    }
}

/* ---- The mistakes ---- */

struct mistake {
    unsigned line;    /* in the config file; 0: in none */
    const char *text; /* the whole message; borrowed */
    const char *what; /* the same, without FILE:LINE: */
};

static int by_line(const void *a, const void *b)
{
    const struct mistake *x = a, *y = b;
    unsigned m = x->line - 1, n = y->line - 1; /* without a line: last */
    return m != n ? (m > n) - (m < n) : (x->text > y->text) - (x->text < y->text);
}

/* place: "FILE:". text: one message. */
static struct mistake mistake_of(const char *place, const char *text)
{
    struct mistake m = { 0, text, text };
    size_t size = strlen(place);
    char *end;
    if (strncmp(text, place, size) != 0)
        return m;
    unsigned long line = strtoul(text + size, &end, 10);
    if (end == text + size || strncmp(end, ": ", 2) != 0)
        return m;
    return (struct mistake){ (unsigned)line, text, end + 2 };
}

/* One for each message, in the order of lines. Owned; NULL if out of memory. messages: cut into
 * texts. */
static struct mistake *mistakes_sort(const char *place, char *messages, size_t *count)
{
    size_t lines = 0;
    for (const char *p = messages; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    struct mistake *all = malloc((lines + 1) * sizeof *all);
    *count = 0;
    for (char *end; all && *count < lines; messages = end + 1) {
        end = strchr(messages, '\n');
        *end = '\0';
        all[(*count)++] = mistake_of(place, messages);
    }
    if (all)
        qsort(all, lines, sizeof *all, by_line);
    return all;
}

static void mistakes_add(const struct mistake *all, size_t count, struct hf_buffer *out)
{
    struct hf_json j = { .out = out };
    hf_json_object(&j);
    hf_json_name(&j, "ok");
    hf_json_bool(&j, false);
    hf_json_name(&j, "mistakes");
    hf_json_array(&j);
    for (size_t i = 0; i < count; i++) {
        hf_json_object(&j);
        if (all[i].line) {
            hf_json_name(&j, "line");
            hf_json_uint(&j, all[i].line);
        }
        hf_json_name(&j, "text");
        hf_json_text(&j, all[i].what);
        hf_json_object_end(&j);
    }
    hf_json_array_end(&j);
    hf_json_object_end(&j);
    hf_buffer_add_char(out, '\n');
}

/* Print the messages on stderr, with --json also on stdout. */
static int mistakes_print(const struct hf_cli *cli, const char *path, struct hf_buffer *heard)
{
    struct hf_buffer name = { 0 }, out = { 0 };
    hf_cli_add_clean(&name, hf_str(path));
    size_t size = name.size, count = 0;
    hf_buffer_add_char(&name, ':');
    char *messages = (char *)(uintptr_t)hf_buffer_text(heard);
    const char *place = hf_buffer_text(&name);
    struct mistake *all = messages && place ? mistakes_sort(place, messages, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        hf_cli_error(cli, "%s", all[i].text);
    if (cli->json && all)
        mistakes_add(all, count, &out);
    hf_cli_flush_to_stdout(&out);
    if (!all)
        hf_cli_error(cli, "out of memory");
    else if (cli->config) /* else it could not be read */
        hf_cli_error(cli, "%.*s has %zu mistake%s", (int)size, place, count, count == 1 ? "" : "s");
    hf_buffer_free(&name);
    hf_buffer_free(&out);
    free(all);
    return HF_EXIT_USAGE;
}

static void finding(void *arg, const struct hf_server_finding *f)
{
    const struct hf_cli *cli = arg;
    struct hf_buffer text = { 0 };
    hf_buffer_add_text(&text, f->place ? f->place : "");
    hf_cli_add_clean(&text, hf_str(f->sentence));
    if (f->is_mistake)
        hf_cli_error(cli, "%s", hf_buffer_text(&text));
    else
        hf_cli_note(cli, "warning: %s", hf_buffer_text(&text));
    hf_buffer_free(&text);
}

/* Report every mistake. */
static void mistakes_find(struct hf_cli *cli, const char *path)
{
    struct hf_server_options options = { .threads = 1 };
    struct places places = { 0 };
    if (!hf_cli_config_check(cli, path))
        return;
    (void)hf_cli_place_fits(cli);
    (void)options_read(cli, &options);
    places_fill(cli, &places, &options.places);
    (void)hf_server_check(&options, finding, cli);
    places_free(&places);
}

int hf_cmd_check_config(struct hf_cli *cli)
{
    struct hf_buffer heard = { 0 }, out = { 0 };
    const char *path = cli->args[0];
    int code = HF_EXIT_DONE;
    cli->command = hf_cli_command_find("serve"); /* the file is read as serve reads it */
    cli->heard = &heard;
    mistakes_find(cli, path);
    cli->heard = NULL;
    if (heard.size > 0 || heard.failed)
        code = mistakes_print(cli, path, &heard);
    else
        settings_print(cli, &out);
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&heard);
    hf_buffer_free(&out);
    return code;
}

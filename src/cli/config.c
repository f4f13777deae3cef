/* The config file of `holdfast serve`: from lines to options. */
#include "cli/config.h"

#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct loading {
    struct hf_cli *cli;
    hf_cli_set known;             /* the options that the file may set */
    unsigned lines[HF_OPT_COUNT]; /* the line of each option, or 0 */
};

static void place_add(struct hf_buffer *out, const char *path, unsigned line)
{
    hf_cli_add_clean(out, hf_str(path));
    hf_buffer_printf(out, ":%u: ", line);
}

void hf_cli_add_place(struct hf_buffer *out, const struct hf_cli *cli, enum hf_cli_option_id id)
{
    place_add(out, cli->config, cli->config_line[id]);
}

/* Print FILE:LINE, what is wrong, the given word, and a hint; word and hint may be NULL. Always
 * false. */
static bool refuse(const struct loading *l, unsigned line, const char *what, const char *word,
                   const char *hint)
{
    struct hf_buffer text = { 0 };
    place_add(&text, l->cli->config, line);
    hf_buffer_add_text(&text, what);
    if (word) {
        hf_buffer_add_char(&text, ' ');
        hf_cli_add_quoted(&text, hf_str(word));
    }
    hf_cli_error(l->cli, "%s%s", hf_buffer_text(&text), hint ? hint : "");
    hf_buffer_free(&text);
    return false;
}

static bool unknown(const struct loading *l, const struct hf_cli_setting *s)
{
    const char *near = NULL;
    unsigned least = 3;
    char hint[120];
    const char *name = s->name + strspn(s->name, "-"); /* accept the name with dashes too */
    for (int i = 0; i < HF_OPT_COUNT; i++) {
        unsigned distance = hf_cli_distance(hf_cli_options[i].name, name);
        if ((l->known >> i & 1) && distance < least) {
            least = distance;
            near = hf_cli_options[i].name;
        }
    }
    snprintf(hint, sizeof hint, "%s%s; see: holdfast help %s", near ? "; did you mean " : "",
             near ? near : "", l->cli->command->name);
    return refuse(l, s->line, "unknown name", s->name, hint);
}

/* The command line and the environment win over the file. */
static void value_set(const struct loading *l, enum hf_cli_option_id id, unsigned line,
                      const char *value)
{
    if (l->cli->values[id])
        return;
    l->cli->values[id] = value;
    l->cli->config_line[id] = line;
}

/* In the file, a flag has the value yes or no. */
static bool flag_take(struct loading *l, enum hf_cli_option_id id, const struct hf_cli_setting *s)
{
    if (strcmp(s->value, "yes") != 0 && strcmp(s->value, "no") != 0) {
        char what[80];
        snprintf(what, sizeof what, "%s must be yes or no, not", s->name);
        return refuse(l, s->line, what, s->value, NULL);
    }
    if (s->value[0] == 'y')
        value_set(l, id, s->line, "");
    return true;
}

static bool setting_take(void *arg, const struct hf_cli_setting *s)
{
    struct loading *l = arg;
    int id = 0;
    while (id < HF_OPT_COUNT &&
           (!(l->known >> id & 1) || strcmp(hf_cli_options[id].name, s->name) != 0))
        id++;
    if (id == HF_OPT_COUNT)
        return unknown(l, s);
    if (l->lines[id]) {
        char what[80];
        snprintf(what, sizeof what, "%s is already set in line %u", s->name, l->lines[id]);
        return refuse(l, s->line, what, NULL, "; remove one of them");
    }
    l->lines[id] = s->line;
    if (!hf_cli_options[id].value)
        return flag_take(l, (enum hf_cli_option_id)id, s);
    value_set(l, (enum hf_cli_option_id)id, s->line, s->value);
    return true;
}

/* Read the whole file. text: out, HF_CLI_CONFIG_MAX bytes. NULL, or what is wrong. */
static const char *file_read(const char *path, char *text, size_t *size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return strerror(errno);
    *size = fread(text, 1, HF_CLI_CONFIG_MAX, file);
    bool longer = *size == HF_CLI_CONFIG_MAX && fgetc(file) != EOF;
    const char *wrong = ferror(file) ? strerror(errno)
                        : longer     ? "it is longer than 65536 bytes"
                                     : NULL;
    fclose(file);
    return wrong;
}

static char file_text[HF_CLI_CONFIG_MAX + 1]; /* owns the values until the program ends */

/* Read the file into file_text. False after an error message. */
static bool loading_begin(struct loading *l, struct hf_cli *cli, const char *path, size_t *size)
{
    const hf_cli_set never = HF_OPT_BIT(HELP) | HF_OPT_BIT(CONFIG);
    const char *wrong = file_read(path, file_text, size);
    *l = (struct loading){ .cli = cli,
                           .known = (cli->command->options | cli->command->globals) & ~never };
    if (wrong) {
        struct hf_buffer name = { 0 };
        hf_cli_add_quoted(&name, hf_str(path));
        hf_cli_error(cli, "the config file %s cannot be read: %s", hf_buffer_text(&name), wrong);
        hf_buffer_free(&name);
        return false;
    }
    cli->config = path;
    return true;
}

bool hf_cli_config_load(struct hf_cli *cli, const char *path)
{
    struct loading l;
    struct hf_cli_config_refusal refusal;
    size_t size = 0;
    if (!loading_begin(&l, cli, path, &size))
        return false;
    if (hf_cli_config_parse(file_text, size, setting_take, &l, &refusal))
        return true;
    return refusal.line && refuse(&l, refusal.line, refusal.what, NULL, NULL);
}

/* ---- All mistakes ---- */

static void each_take(void *arg, const struct hf_cli_setting *s)
{
    (void)setting_take(arg, s);
}

static void malformed_refuse(void *arg, const struct hf_cli_config_refusal *refusal)
{
    (void)refuse(arg, refusal->line, refusal->what, NULL, NULL);
}

bool hf_cli_config_check(struct hf_cli *cli, const char *path)
{
    struct loading l;
    struct hf_cli_config_sink sink = { each_take, malformed_refuse, &l };
    size_t size = 0;
    if (!loading_begin(&l, cli, path, &size))
        return false;
    hf_cli_config_parse_all(file_text, size, &sink);
    return true;
}

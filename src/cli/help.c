/* Help, from the tables of commands and options. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

enum { MARGIN = 80, COLUMN = 29 };

#define GLUE '\x1f' /* a non-breaking space */

/* Print words from column `at` on, wrapped at MARGIN, with `indent` on later lines. */
static void wrap(FILE *to, const char *text, size_t at, size_t indent)
{
    for (bool first = true; *text; first = false) {
        size_t word = strcspn(text, " ");
        if (!first && at + 1 + word > MARGIN) {
            fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', to);
            at++;
        }
        for (size_t i = 0; i < word; i++)
            fputc(text[i] == GLUE ? ' ' : text[i], to);
        at += word;
        text += word + (text[word] == ' ');
    }
    fputc('\n', to);
}

/* The usage line: the required options of the command first, then the optional ones. */
static void usage_line(FILE *to, const struct hf_cli_command *c)
{
    struct hf_buffer line = { 0 };
    hf_buffer_printf(&line, "usage: holdfast %s%s%s", c->name, *c->args ? " " : "", c->args);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < HF_OPT_COUNT; i++) {
            const struct hf_cli_option *o = &hf_cli_options[i];
            bool required = c->required >> i & 1;
            if (!(c->options >> i & 1) || !o->help || required != (pass == 0))
                continue;
            hf_buffer_printf(&line, " %s--%s", required ? "" : "[", o->name);
            if (o->value)
                hf_buffer_printf(&line, "%c%s", GLUE, o->value);
            hf_buffer_add_text(&line, required ? "" : "]");
        }
    }
    if (c->globals)
        hf_buffer_add_text(&line, " [options]");
    wrap(to, hf_buffer_text(&line) ? hf_buffer_text(&line) : "", 0, 7);
    hf_buffer_free(&line);
}

static void option_line(FILE *to, const struct hf_cli_option *o)
{
    struct hf_buffer text = { 0 };
    int n = fprintf(to, "  --%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    fprintf(to, "%*s", n < COLUMN - 1 ? COLUMN - n : 2, "");
    hf_buffer_add_text(&text, o->help);
    if (o->choices && o->value)
        hf_buffer_printf(&text, "; %s of %s", strchr(o->value, ',') ? "some" : "one", o->choices);
    if (o->env)
        hf_buffer_printf(&text, "; also %s", o->env);
    wrap(to, hf_buffer_text(&text) ? hf_buffer_text(&text) : "", COLUMN, COLUMN);
    hf_buffer_free(&text);
}

static void options_list(FILE *to, const char *title, hf_cli_set options)
{
    if (!options)
        return;
    fprintf(to, "\n%s\n", title);
    for (int i = 0; i < HF_OPT_COUNT; i++)
        if ((options >> i & 1) && hf_cli_options[i].help)
            option_line(to, &hf_cli_options[i]);
}

static void exits_list(FILE *to, const struct hf_cli_command *c)
{
    fprintf(to, "\nExit codes:\n  0  done%s\n",
            c->keyed ? ", or done before with the same key (replayed)" : "");
    if (c->refusals) {
        fputs("  1  ", to);
        wrap(to, c->refusals, 5, 5);
    }
    fprintf(to, "  2  the command line is wrong%s\n",
            c->checks ? ", or the file has mistakes" : "");
    bool store = ((c->globals & HF_OPT_BIT(DATA)) || c->raw) && !c->checks,
         server = c->globals & HF_OPT_BIT(SERVER);
    if (store)
        fprintf(to,
                "  3  the store failed: absent, in use, damaged, newer, full, or unreachable%s\n",
                server ? ";" : "");
    if (server)
        fprintf(to, "  %s  the server failed: unreachable, or not a Holdfast server\n",
                store ? " " : "3");
    if (c->keyed)
        fputs("  4  the outcome is unknown: retry with the same key\n", to);
    else if (server && (c->globals & HF_OPT_BIT(REGISTRY)))
        fputs("  4  the outcome is unknown: the server's answer was lost\n", to);
}

void hf_cli_help_command(FILE *to, const struct hf_cli_command *c)
{
    usage_line(to, c);
    fputc('\n', to);
    wrap(to, c->about, 0, 0);
    options_list(to, "Options:", c->options);
    options_list(to, "Common options:", c->globals);
    fprintf(to, "\nExample:\n%s", c->example);
    exits_list(to, c);
}

void hf_cli_help_short(FILE *to)
{
    fputs("usage: holdfast COMMAND [ARGUMENTS] [OPTIONS]\n\n"
          "Retry-safe writes: receive the same request twice, act once.\n\n",
          to);
    for (size_t i = 0; i < hf_cli_command_count; i++)
        fprintf(to, "  %-12s  %s\n", hf_cli_commands[i].name, hf_cli_commands[i].summary);
    fputs("\nholdfast help COMMAND shows the help of one command.\n", to);
}

/* For the tests of man pages and completions: "command" and "command --option" lines. */
static void names_list(void)
{
    for (size_t i = 0; i < hf_cli_command_count; i++) {
        const struct hf_cli_command *c = &hf_cli_commands[i];
        puts(c->name);
        for (int k = 0; k < HF_OPT_COUNT; k++)
            if (((c->options | c->globals) >> k & 1) && hf_cli_options[k].help)
                printf("%s --%s\n", c->name, hf_cli_options[k].name);
    }
}

static int general(void)
{
    hf_cli_help_short(stdout);
    options_list(stdout,
                 "Common options (a command refuses those that it does not use):", HF_OPT_GLOBAL);
    fputs("\nExit codes: 0 done, 1 refused by a rule, 2 wrong usage, 3 the store or server\n"
          "failed, 4 outcome unknown. Durations are 250ms, 30s, 15m, 24h, 7d or a number of\n"
          "seconds; times are RFC 3339, a date, or @ and milliseconds since 1970.\n",
          stdout);
    return HF_EXIT_DONE;
}

int hf_cmd_help(struct hf_cli *cli)
{
    if (cli->values[HF_OPT_LIST]) {
        names_list();
        return HF_EXIT_DONE;
    }
    if (cli->arg_count == 0)
        return general();
    const struct hf_cli_command *c = hf_cli_command_find(cli->args[0]);
    if (!c) {
        struct hf_buffer text = { 0 };
        hf_cli_add_quoted(&text, hf_str(cli->args[0]));
        hf_cli_error(cli, "there is no command %s; see: holdfast help", hf_buffer_text(&text));
        hf_buffer_free(&text);
        return HF_EXIT_USAGE;
    }
    hf_cli_help_command(stdout, c);
    return HF_EXIT_DONE;
}

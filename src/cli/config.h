/* config.h: options from a file.
 *
 *     # what the shop's server is started with
 *     data   = /srv/holdfast
 *     listen = 127.0.0.1:4653        # behind the proxy
 *     auth-file = "/etc/holdfast/the \"shop\""
 *
 * A line is `name = value`. The names are those of the command line's options, without the dashes.
 * A # begins a comment at the start of a line and after white space. A value needs double quotes if
 * it is empty, begins or ends with white space, or has a # after white space. In quotes, \" and \\
 * are the only escapes. A flag is yes or no. A name may appear once. Paths are interpreted as on
 * the command line. */
#ifndef HF_CLI_CONFIG_H
#define HF_CLI_CONFIG_H

#include "cli/options.h"

#define HF_CLI_CONFIG_MAX 65536     /* bytes of a file */
#define HF_CLI_CONFIG_LINE_MAX 4096 /* bytes of a line, without its end */

struct hf_cli;

/* hf_cli_config_load: read the file at `path` and set the options that were given neither on the
 * command line nor in the environment; cli->config and cli->config_line say where they are. Accepts
 * the options of cli->command, except help and config. False after an error message on stderr:
 * which line is wrong and why, or why the file cannot be read. May be called once in a run: the
 * values live until the program ends. path: borrowed, until then. */
bool hf_cli_config_load(struct hf_cli *cli, const char *path);
/* hf_cli_config_check: the same, but report every mistake, and set what is right. The file is read
 * as `holdfast serve` reads it: cli->command is that command. False if it cannot be read. */
bool hf_cli_config_check(struct hf_cli *cli, const char *path);

struct hf_buffer;

/* hf_cli_add_place: append "FILE:LINE: " of an option that came from the file, safe for a terminal.
 * out: appended to. */
void hf_cli_add_place(struct hf_buffer *out, const struct hf_cli *cli, enum hf_cli_option_id id);

/* ---- config_text.c: parses the lines; knows no files and no options. Pure. ---- */

struct hf_cli_setting {
    const char *name, *value; /* borrowed from the text */
    unsigned line;            /* 1, 2, 3 ... */
};

struct hf_cli_config_refusal {
    unsigned line;    /* 0: no line is malformed */
    const char *what; /* static; a sentence without a full stop */
};

/* hf_cli_config_parse: call `each` for every setting in `text`, in order. text: borrowed, `size`
 * bytes and room for one more; overwritten, because names and values are terminated and unescaped
 * in place. arg: passed to each. refusal: out. True if every line is well-formed and `each` always
 * returned true. Otherwise `refusal` says what is wrong; its line is 0 if `each` returned false. */
bool hf_cli_config_parse(char *text, size_t size,
                         bool (*each)(void *arg, const struct hf_cli_setting *setting), void *arg,
                         struct hf_cli_config_refusal *refusal);

struct hf_cli_config_sink {
    void (*each)(void *arg, const struct hf_cli_setting *setting);
    void (*malformed)(void *arg, const struct hf_cli_config_refusal *refusal);
    void *arg;
};

/* hf_cli_config_parse_all: the same, but every line is read, also after a malformed one. */
void hf_cli_config_parse_all(char *text, size_t size, const struct hf_cli_config_sink *sink);

#endif

/* config.h: options out of a file.
 *
 *     # what the shop's server is started with
 *     data   = /srv/holdfast
 *     listen = 127.0.0.1:4653        # behind the proxy
 *     auth-file = "/etc/holdfast/the \"shop\""
 *
 * A line is `name = value`, with the names of the command line's options without the dashes. A #
 * begins a comment at the start of a line and behind white space. A value with white space at an
 * end, with a # behind white space, or an empty one stands in double quotes, in which \" and \\ are
 * escapes and nothing else is. A flag has yes or no. A name may stand once. Paths mean what they
 * mean on the command line. */
#ifndef HF_CLI_CONFIG_H
#define HF_CLI_CONFIG_H

#include "cli/options.h"

#define HF_CLI_CONFIG_MAX 65536     /* bytes of a file */
#define HF_CLI_CONFIG_LINE_MAX 4096 /* bytes of a line, its end not counted */

struct hf_cli;

/* hf_cli_config_load: read the file at `path` and set the options that were given neither on the
 * command line nor in the environment; cli->config and cli->config_line say where they stand. Knows
 * the options that cli->command takes, but for help and config. False after saying on stderr which
 * line is wrong and why, or why the file cannot be read. The values live until the program ends, so
 * it may be called once in a run. path: borrowed, for as long. */
bool hf_cli_config_load(struct hf_cli *cli, const char *path);

struct hf_buffer;

/* hf_cli_add_place: append "FILE:LINE: ", where the value of an option that came from the file
 * stands in it, as it can be shown. out: appended to. */
void hf_cli_add_place(struct hf_buffer *out, const struct hf_cli *cli, enum hf_cli_option_id id);

/* ---- config_text.c: the lines, without files and without knowing any option. Pure. ---- */

struct hf_cli_setting {
    const char *name, *value; /* both lie in the text */
    unsigned line;            /* 1, 2, 3 ... */
};

struct hf_cli_config_refusal {
    unsigned line;    /* 0: nothing was refused here */
    const char *what; /* static: a sentence without its end */
};

/* hf_cli_config_parse: call `each` for every setting in `text`, in order. text: borrowed, `size`
 * bytes and room for one more; overwritten, as names and values are ended and unescaped in place.
 * arg: given to each. refusal: out. True if every line was well-formed and each time `each`
 * returned true. Otherwise what is wrong is in `refusal`, unless it was `each` that said no: then
 * its line is 0. */
bool hf_cli_config_parse(char *text, size_t size,
                         bool (*each)(void *arg, const struct hf_cli_setting *setting), void *arg,
                         struct hf_cli_config_refusal *refusal);

#endif

/* cli.h: what every command of the program stands on.
 *
 *   main.c      finds the command and runs it        commands.c  the table of commands, with their help
 *   options.c   the table of options, the parser     values.c    option values: times, numbers, choices
 *   session.c   opens the store, asks, answers       explain.c   says which argument was wrong, and why
 *   print.c     answers for people                   say.c       words, tables and colours
 *   progress.c  one line that moves                  help.c      help out of the two tables
 *
 * The other files are one command each. Exit codes are part of the interface. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include "base/buffer.h"
#include "base/id.h"
#include "cli/options.h"

enum hf_cli_exit {
    HF_EXIT_DONE = 0,    /* done, a replay too */
    HF_EXIT_REFUSED = 1, /* an answer by the rules */
    HF_EXIT_USAGE = 2,   /* the command line makes no sense */
    HF_EXIT_STORE = 3,   /* the store failed: nothing happened */
    HF_EXIT_UNKNOWN = 4  /* it may have happened: ask again with the same key */
};

struct hf_cli_progress {
    int64_t begun_ms, shown_ms;
    bool begun, shown;
};

/* One run of the program. */
struct hf_cli {
    const struct hf_cli_command *command; /* NULL until it is found */
    char **args;                          /* what is neither the command nor an option; borrowed */
    int arg_count;
    const char *values[HF_OPT_COUNT];    /* NULL: not given; flags have "" */
    bool from_environment[HF_OPT_COUNT]; /* the value came from there */
    bool json, color_out, color_err;
    char key[HF_UUID_SIZE]; /* the key that was made, if none was given */
    struct hf_db *db;
    struct hf_cli_progress progress;
};

/* ---- session.c ---- */

/* The exit code of a status. */
enum hf_cli_exit hf_cli_exit_of(enum hf_status status);

/* The directory of the store: --data, HOLDFAST_DATA or ./holdfast-data. NULL, with the sentence said, if
 * a server is asked for. */
const char *hf_cli_directory(struct hf_cli *cli);

/* Open the store; `create` as the command changes something. HF_EXIT_DONE, or the exit code after
 * saying why. */
enum hf_cli_exit hf_cli_open(struct hf_cli *cli, bool create);
/* Sweep and tidy up for a bounded time if the command was one that writes, then give the store back. */
void hf_cli_close(struct hf_cli *cli, bool tidy);

/* Open, ask, show the answer, close: what most commands are. Fills in the tenant and, for actions that
 * carry a key, the key. */
enum hf_cli_exit hf_cli_ask(struct hf_cli *cli, struct hf_request *request, bool create);

/* Show that `status` was the answer to `action`: the sentence on stderr, with --json also the problem
 * on stdout. sentence: NULL for the fixed one. Answers the exit code. */
enum hf_cli_exit hf_cli_refuse(struct hf_cli *cli, enum hf_action action, enum hf_status status,
                               const char *sentence);

/* ---- explain.c ---- */

/* If one of the arguments can be blamed for `status`, add the sentence that names it, what was given and
 * what is expected. */
void hf_cli_explain(const struct hf_cli *cli, enum hf_status status, struct hf_buffer *out);

/* Is one of the arguments malformed, whatever the store holds? HF_INVALID_REQUEST or HF_NOT_KNOWN with the sentence,
 * or HF_OK. Asked before the store is opened, so that a slip of the fingers neither makes a store nor binds a
 * key. */
enum hf_status hf_cli_malformed(const struct hf_cli *cli, struct hf_buffer *out);

/* ---- print.c ---- */

/* The answer to a request that was HF_OK, as JSON or for people, to stdout. */
void hf_cli_print(struct hf_cli *cli, enum hf_action action, const struct hf_result *result);

/* ---- say.c ---- */

enum hf_cli_color { HF_PLAIN, HF_DIM, HF_BOLD, HF_GREEN, HF_YELLOW, HF_RED };

/* "holdfast: ..." and a line end, to stderr. */
void hf_cli_error(const struct hf_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is not wrong: no prefix. */
void hf_cli_note(const struct hf_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from outside, made harmless for a terminal: control characters as \xNN, broken UTF-8 as U+FFFD.
 */
void hf_cli_add_clean(struct hf_buffer *out, struct hf_bytes text);
/* The same in quotes, cut after 60 bytes: for sentences. */
void hf_cli_add_quoted(struct hf_buffer *out, struct hf_bytes text);
/* How many columns a terminal needs for clean text. */
size_t hf_cli_width(struct hf_bytes clean);

/* A line of a "label  text" list. */
struct hf_cli_field {
    const char *label;
    struct hf_bytes text;
    enum hf_cli_color color;
};
/* Print fields with their texts aligned. Fields without a label are left out. */
void hf_cli_fields(const struct hf_cli *cli, const struct hf_cli_field *fields, size_t count);
/* Print one line, in a colour. */
void hf_cli_line(const struct hf_cli *cli, enum hf_cli_color color, const char *text);
/* Begin and end of a colour on stdout, or "" where there are none. */
const char *hf_cli_color_begin(bool enabled, enum hf_cli_color color);
const char *hf_cli_color_end(bool enabled, enum hf_cli_color color);

/* Write the buffer to stdout and empty it. What goes wrong is found once, by main, at the end. */
void hf_cli_flush_to_stdout(struct hf_buffer *out);

/* ---- progress.c ---- */

/* Say how far a long work is; a line appears only on a terminal, and only after half a second.
 * total 0: not known. */
void hf_cli_progress(struct hf_cli *cli, const char *what, uint64_t done, uint64_t total);
/* Take the line away. */
void hf_cli_progress_end(struct hf_cli *cli);

/* Milliseconds of a clock that only goes forward. */
int64_t hf_cli_clock_ms(void);

#endif

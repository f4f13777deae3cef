/* cli.h: what every command of the program stands on.
 *
 *   main.c      finds the command and runs it        commands.c  the table of commands, with their help
 *   options.c   the table of options, the parser     values.c    option values: times, numbers, choices
 *   session.c   opens the store, asks, answers       explain.c   says which argument was wrong, and why
 *   remote.c    the same through a server            target.c    a directory, a database or a server, and which
 *   download.c  an export through a server
 *   print.c     answers for people                   related.c   what belongs to a record, for people
 *   say.c       words, tables and colours            progress.c  one line that moves
 *   help.c      help out of the two tables
 *
 * The other files are one command each. Exit codes are part of the interface. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include "base/buffer.h"
#include "base/id.h"
#include "cli/options.h"
#include "client/client.h"

enum hf_cli_exit {
    HF_EXIT_DONE = 0,    /* done, a replay too */
    HF_EXIT_REFUSED = 1, /* an answer by the rules */
    HF_EXIT_USAGE = 2,   /* the command line makes no sense */
    HF_EXIT_STORE = 3,   /* the store or the server failed: nothing happened */
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
    const char *config;                  /* the config file, or NULL; borrowed */
    unsigned config_line
        [HF_OPT_COUNT]; /* the value stands in this line of it; 0: it came from elsewhere */
    bool json, color_out, color_err;
    char key[HF_UUID_SIZE]; /* the key that was made, if none was given */
    struct hf_db *db;       /* one of the two is there while the command asks */
    struct hf_client *client;
    int64_t wait_ms;    /* for an answer of the server */
    hf_time server_now; /* its clock at its last answer, whole seconds; 0: not known */
    struct hf_cli_progress progress;
};

/* ---- session.c ---- */

/* The exit code of a status. */
enum hf_cli_exit hf_cli_exit_of(enum hf_status status);

/* The directory of the store: --data, HOLDFAST_DATA or ./holdfast-data; "" if the store is in a
 * database. NULL, with the sentence said, if --data is empty. */
const char *hf_cli_directory(struct hf_cli *cli);
/* The same for a command that reads the records by itself, and so checks its arguments too.
 * postgres: out, the database's connection string, or NULL. NULL, with the sentence said and the
 * exit code in *code, if something is wrong. */
const char *hf_cli_records(struct hf_cli *cli, const char **postgres, enum hf_cli_exit *code);
/* The records were shown. postgres: as above. Warn if a failover may undo some of them: no
 * synchronous standby is known to have them. */
void hf_cli_warn_unreplicated(struct hf_cli *cli, const char *postgres);

/* Fill the configuration in from the options; what is not given stays as the store has it. False
 * after saying what is wrong. */
bool hf_cli_store_options(struct hf_cli *cli, struct hf_options *options);

/* Open the store, or get ready to ask the server; `create` as the command changes something.
 * HF_EXIT_DONE, or the exit code after saying why. */
enum hf_cli_exit hf_cli_open(struct hf_cli *cli, bool create);
/* Sweep and tidy up for a bounded time if the command was one that writes, then give the store
 * back. */
void hf_cli_close(struct hf_cli *cli, bool tidy);

/* Open, ask, show the answer, close: what most commands are. Fills in the tenant and, for actions
 * that carry a key, the key. */
enum hf_cli_exit hf_cli_ask(struct hf_cli *cli, struct hf_request *request, bool create);

/* Show that `status` was the answer to `action`: the sentence on stderr, with --json also the
 * problem on stdout. sentence: NULL for the fixed one. Answers the exit code. */
enum hf_cli_exit hf_cli_refuse(struct hf_cli *cli, enum hf_action action, enum hf_status status,
                               const char *sentence);
/* The same for a store that could not be opened or read, with what to do about it. */
enum hf_cli_exit hf_cli_refuse_store(struct hf_cli *cli, const struct hf_error *why);
/* The same for what is no status of the library: a problem out of these words. */
struct hf_api_problem;
void hf_cli_say_problem(struct hf_cli *cli, const struct hf_api_problem *problem);

/* A page of a list, from the store or the server. page: out, owned, free with hf_page_clear.
 * HF_EXIT_DONE, or the exit code after saying why (not if `quiet`). */
enum hf_cli_exit hf_cli_list(struct hf_cli *cli, const struct hf_query *query, struct hf_page *page,
                             bool quiet);
/* The time by which the answers were made: the store's, or the server's to the second. */
hf_time hf_cli_now(const struct hf_cli *cli);
/* Say that this is an answer given before, and when, if that is known (0: it is not). */
void hf_cli_say_replayed(const struct hf_cli *cli, hf_time recorded_at);

/* ---- target.c ---- */

/* Is it a server that the command acts through? --server, else --data, --store and --postgres, else
 * HOLDFAST_SERVER says so. */
bool hf_cli_remote(const struct hf_cli *cli);
/* The connection string of the database that the store is in, "" for what libpq takes by itself;
 * NULL: it is in a directory. What is given on the command line goes before what is in the
 * environment, and that before what is in the config file; of one place, --store counts, else
 * --postgres, else --data. */
const char *hf_cli_postgres(const struct hf_cli *cli);
/* Do the options for a directory, for a database and for a server fit together? False after saying
 * which do not. */
bool hf_cli_place_fits(const struct hf_cli *cli);
/* Get ready to ask the server. HF_EXIT_DONE, or the exit code after saying why. */
enum hf_cli_exit hf_cli_remote_open(struct hf_cli *cli);

/* ---- remote.c: the server has been got ready. ---- */

/* Ask, and show the answer. */
enum hf_cli_exit hf_cli_remote_ask(struct hf_cli *cli, const struct hf_request *request);
enum hf_cli_exit hf_cli_remote_list(struct hf_cli *cli, const struct hf_query *query,
                                    struct hf_page *page, bool quiet);
/* Send the call and get an answer of the type that it accepts, or say why there is none (not if
 * `quiet`). call: borrowed; its wait_ms is filled in unless it has one. answer: out, owned, also
 * after a failure; what was refused is in it. */
enum hf_cli_exit hf_cli_remote_call(struct hf_cli *cli, struct hf_client_call *call,
                                    struct hf_client_answer *answer, bool quiet);
/* Say that there is an answer that cannot be used. */
enum hf_cli_exit hf_cli_remote_lost(struct hf_cli *cli, const struct hf_client_call *call,
                                    const struct hf_error *why);

/* The commands that read the journal, as the server reads it; from the beginning. */
enum hf_cli_exit hf_cli_remote_audit(struct hf_cli *cli);
enum hf_cli_exit hf_cli_remote_trace(struct hf_cli *cli);
/* ---- download.c ---- */
enum hf_cli_exit hf_cli_remote_export(struct hf_cli *cli, bool sqlite);

/* ---- explain.c ---- */

/* If one of the arguments can be blamed for `status`, add the sentence that names it, what was
 * given and what is expected. */
void hf_cli_explain(const struct hf_cli *cli, enum hf_status status, struct hf_buffer *out);

/* Is one of the arguments malformed, whatever the store holds? HF_INVALID_REQUEST or HF_NOT_KNOWN
 * with the sentence, or HF_OK. Asked before the store is opened, so that a slip of the fingers
 * neither makes a store nor binds a key. */
enum hf_status hf_cli_malformed(const struct hf_cli *cli, struct hf_buffer *out);

/* ---- print.c ---- */

/* The answer to a request that was HF_OK, as JSON or for people, to stdout. The store is open. */
void hf_cli_print(struct hf_cli *cli, enum hf_action action, const struct hf_result *result);

/* ---- related.c: found by going through the newest holds of a resource, and not through all of a
 * long history. People are told; the JSON of a record is the record alone. ---- */

enum hf_cli_found { HF_CLI_NONE, HF_CLI_FOUND, HF_CLI_TOO_FAR };

/* The record that gave the confirmed `hold` back. reversal: out, its id and placed_at, if
 * HF_CLI_FOUND. */
enum hf_cli_found hf_cli_reversal(struct hf_cli *cli, const struct hf_hold *hold,
                                  struct hf_hold *reversal);

/* How many of the resource's held units are overdue at `now`. *exact: out, false if there may be
 * more. */
uint32_t hf_cli_overdue(struct hf_cli *cli, const struct hf_resource *resource, hf_time now,
                        bool *exact);

/* ---- say.c ---- */

enum hf_cli_color { HF_PLAIN, HF_DIM, HF_BOLD, HF_GREEN, HF_YELLOW, HF_RED };

/* "holdfast: ..." and a line end, to stderr. */
void hf_cli_error(const struct hf_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for what is not wrong: no prefix. */
void hf_cli_note(const struct hf_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text from outside, made harmless for a terminal: control characters as \xNN, broken UTF-8 as
 * U+FFFD. */
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

#endif

/* cli.h: what all commands share.
 *
 *   main.c      finds the command and runs it        commands.c  the commands and their help
 *   options.c   the table of options, the parser     values.c    option values
 *   session.c   opens the store, runs a request      explain.c   says which argument is wrong
 *   remote.c    the same through a server            target.c    directory, database or server
 *   download.c  an export through a server
 *   print.c     answers for people                   related.c   reversals and overdue holds
 *   say.c       messages, fields and colours         progress.c  the progress line
 *   help.c      help from the two tables          lease.c     leases and registers
 *
 * The other files are one command each. Exit codes are part of the interface. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include "base/buffer.h"
#include "base/id.h"
#include "cli/options.h"
#include "client/client.h"

enum hf_cli_exit {
    HF_EXIT_DONE = 0,    /* done; also a replay */
    HF_EXIT_REFUSED = 1, /* refused by a rule */
    HF_EXIT_USAGE = 2,   /* the command line is wrong */
    HF_EXIT_STORE = 3,   /* the store or the server failed: nothing happened */
    HF_EXIT_UNKNOWN = 4  /* it may have happened: retry with the same key */
};

struct hf_cli_progress {
    int64_t begun_ms, shown_ms;
    bool begun, shown;
};

/* One run of the program. */
struct hf_cli {
    const struct hf_cli_command *command; /* NULL until known */
    char **args;                          /* without the command and the options; borrowed */
    int arg_count;
    const char *values[HF_OPT_COUNT];    /* NULL: not given; flags have "" */
    bool from_environment[HF_OPT_COUNT]; /* the value is from the environment */
    const char *config;                  /* the config file, or NULL; borrowed */
    unsigned config_line[HF_OPT_COUNT];  /* the value's line in it; 0: not from the file */
    bool json, color_out, color_err;
    bool keyed;             /* the command, or its verb, takes an idempotency key */
    char key[HF_UUID_SIZE]; /* the generated key, if none was given */
    struct hf_db *db;       /* during a request, db or client is set */
    struct hf_client *client;
    int64_t wait_ms;    /* for an answer of the server */
    bool seen;          /* a guard answered that it has seen the identity */
    hf_time server_now; /* the server's clock at its last answer, in whole seconds; 0: unknown */
    struct hf_cli_progress progress;
    /* NULL, or gets every error message, each with a line end, instead of stderr; borrowed */
    struct hf_buffer *heard;
};

/* ---- session.c ---- */

/* The exit code of a status. */
enum hf_cli_exit hf_cli_exit_of(enum hf_status status);

/* The directory of the store: --data, HOLDFAST_DATA or ./holdfast-data; "" if the store is in a
 * database. NULL, after an error message, if --data is empty. */
const char *hf_cli_directory(struct hf_cli *cli);
/* The same for a command that reads the records by itself. It checks the arguments too. postgres:
 * out, the database's connection string, or NULL. NULL, after an error message and with the exit
 * code in *code, if something is wrong. */
const char *hf_cli_records(struct hf_cli *cli, const char **postgres, enum hf_cli_exit *code);
/* Called after the records were shown. postgres: as above. Warn if a failover may undo some of
 * them, because no synchronous standby is known to have them. */
void hf_cli_warn_unreplicated(struct hf_cli *cli, const char *postgres);

/* Fill in the configuration from the options. A value that is not given stays as the store has it.
 * False after an error message. */
bool hf_cli_store_options(struct hf_cli *cli, struct hf_options *options);

/* Open the store, or prepare the client of a server. create: the command changes something.
 * HF_EXIT_DONE, or the exit code after an error message. */
enum hf_cli_exit hf_cli_open(struct hf_cli *cli, bool create);
/* Close the store. tidy: the command writes, so run the background work first, for a bounded
 * time. */
void hf_cli_close(struct hf_cli *cli, bool tidy);

/* Read --client and --sequence, which replace the key. client: out, unchanged if they are not
 * given. False after an error message: one of them is missing, or there is a key too. */
bool hf_cli_numbered(const struct hf_cli *cli, struct hf_bytes *client, uint64_t *sequence);

/* Open, send the request, show the answer, close. Fills in the tenant and, for actions with a key,
 * the key. */
enum hf_cli_exit hf_cli_ask(struct hf_cli *cli, struct hf_request *request, bool create);

/* Show that `status` was the answer to `action`: the sentence on stderr, with --json also the
 * problem on stdout. sentence: NULL for the default one. Returns the exit code. */
enum hf_cli_exit hf_cli_refuse(struct hf_cli *cli, enum hf_action action, enum hf_status status,
                               const char *sentence);
/* The same for a store that could not be opened or read, with a hint. */
enum hf_cli_exit hf_cli_refuse_store(struct hf_cli *cli, const struct hf_error *why);
/* The same for a problem that is not a status of the library. */
struct hf_refusal;
void hf_cli_say_problem(struct hf_cli *cli, const struct hf_refusal *problem);

/* A page of a list, from the store or the server. page: out, owned, free with hf_page_clear.
 * HF_EXIT_DONE, or the exit code after an error message (none if `quiet`). */
enum hf_cli_exit hf_cli_list(struct hf_cli *cli, const struct hf_query *query, struct hf_page *page,
                             bool quiet);
/* The time of the last answer: the store's, or the server's in whole seconds. */
hf_time hf_cli_now(const struct hf_cli *cli);
/* Say that the answer is a replay, and when it was first given (0: unknown). */
void hf_cli_say_replayed(const struct hf_cli *cli, hf_time recorded_at);

/* ---- target.c ---- */

/* Does the command use a server? The first of these that is given decides: --server; --data,
 * --store and --postgres; HOLDFAST_SERVER. */
bool hf_cli_remote(const struct hf_cli *cli);
/* The connection string of the store's database, "" for libpq's defaults; NULL: the store is in a
 * directory. The command line wins over the environment, and the environment over the config file.
 * Within one of them, --store decides, else --postgres, else --data. */
const char *hf_cli_postgres(const struct hf_cli *cli);
/* Check that the options for a directory, a database and a server do not contradict each other.
 * False after an error message. */
bool hf_cli_place_fits(const struct hf_cli *cli);
/* Prepare the client of the server. HF_EXIT_DONE, or the exit code after an error message. */
enum hf_cli_exit hf_cli_remote_open(struct hf_cli *cli);

/* ---- remote.c: after hf_cli_remote_open ---- */

/* Send the request and show the answer. */
enum hf_cli_exit hf_cli_remote_ask(struct hf_cli *cli, const struct hf_request *request);
enum hf_cli_exit hf_cli_remote_list(struct hf_cli *cli, const struct hf_query *query,
                                    struct hf_page *page, bool quiet);
/* Send the call and get an answer of the type that it accepts, or say why there is none (not if
 * `quiet`). call: borrowed; its wait_ms is filled in if it is 0. answer: out, owned, also after a
 * failure; a refusal is in it. */
enum hf_cli_exit hf_cli_remote_call(struct hf_cli *cli, struct hf_client_call *call,
                                    struct hf_client_answer *answer, bool quiet);
/* Say that there is no answer, or one that cannot be used. */
enum hf_cli_exit hf_cli_remote_lost(struct hf_cli *cli, const struct hf_client_call *call,
                                    const struct hf_error *why);

/* The commands that read the whole journal, run by the server. */
enum hf_cli_exit hf_cli_remote_audit(struct hf_cli *cli);
/* sequence: not 0: of the client `name`. */
enum hf_cli_exit hf_cli_remote_trace(struct hf_cli *cli, struct hf_bytes name, uint64_t sequence);
/* ---- download.c ---- */
enum hf_cli_exit hf_cli_remote_export(struct hf_cli *cli, bool sqlite);

/* ---- explain.c ---- */

/* If one of the arguments caused `status`, append a sentence with its name, its value and what is
 * expected. */
void hf_cli_explain(const struct hf_cli *cli, enum hf_status status, struct hf_buffer *out);

/* Is one of the arguments malformed for any store? HF_INVALID_REQUEST or HF_NOT_KNOWN with the
 * sentence, or HF_OK. Called before the store is opened, so that a typing error neither creates a
 * store nor binds a key. */
enum hf_status hf_cli_malformed(const struct hf_cli *cli, struct hf_buffer *out);

/* ---- print.c ---- */

/* Print an answer that is HF_OK, as JSON or for people, to stdout. The store is open. */
void hf_cli_print(struct hf_cli *cli, enum hf_action action, const struct hf_result *result);

/* ---- related.c: searches the newest holds of a resource, not a long history. Shown to people
 * only: JSON has the record alone. ---- */

enum hf_cli_found { HF_CLI_NONE, HF_CLI_FOUND, HF_CLI_TOO_FAR };

/* Find the record that reversed the confirmed `hold`. reversal: out, its id and placed_at, if
 * HF_CLI_FOUND. */
enum hf_cli_found hf_cli_reversal(struct hf_cli *cli, const struct hf_hold *hold,
                                  struct hf_hold *reversal);

/* Count the resource's held units that are overdue at `now`. exact: out, false if there may be
 * more. */
uint32_t hf_cli_overdue(struct hf_cli *cli, const struct hf_resource *resource, hf_time now,
                        bool *exact);

/* ---- say.c ---- */

enum hf_cli_color { HF_PLAIN, HF_DIM, HF_BOLD, HF_GREEN, HF_YELLOW, HF_RED };

/* "holdfast: ..." and a line end, to stderr. */
void hf_cli_error(const struct hf_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same without the prefix: not an error. */
void hf_cli_note(const struct hf_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append text from outside, made safe for a terminal: control characters as \xNN, invalid UTF-8 as
 * U+FFFD. */
void hf_cli_add_clean(struct hf_buffer *out, struct hf_bytes text);
/* The same in quotes, cut after 60 bytes, for messages. */
void hf_cli_add_quoted(struct hf_buffer *out, struct hf_bytes text);
/* The width of clean text on a terminal, in columns. */
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
/* The escape sequences that begin and end a colour, or "" if colours are off. */
const char *hf_cli_color_begin(bool enabled, enum hf_cli_color color);
const char *hf_cli_color_end(bool enabled, enum hf_cli_color color);

/* Write the buffer to stdout and empty it. main checks for write errors, once at the end. */
void hf_cli_flush_to_stdout(struct hf_buffer *out);

/* ---- progress.c ---- */

/* Show the progress of long work, only on a terminal and only after half a second. total 0:
 * unknown. */
void hf_cli_progress(struct hf_cli *cli, const char *what, uint64_t done, uint64_t total);
/* Remove the line. */
void hf_cli_progress_end(struct hf_cli *cli);

#endif

/* commands.h: the table of commands. Dispatch, help, man pages and completions follow it. */
#ifndef HF_CLI_COMMANDS_H
#define HF_CLI_COMMANDS_H

#include "cli/cli.h"

struct hf_cli_command {
    const char *name;
    /* Run the command and return the exit code. Arguments and options are already parsed and
     * counted. */
    int (*run)(struct hf_cli *cli);
    const char *args; /* positional arguments as in the usage line */
    int args_min, args_max;
    hf_cli_set options;  /* HF_OPT_BIT of each option that it takes, without the global ones */
    hf_cli_set required; /* the required ones among them */
    hf_cli_set globals;  /* the global options that it uses */
    bool raw;   /* the command parses its options itself: all words after its name are arguments */
    bool keyed; /* it takes an idempotency key */
    /* It checks what `serve` would read: it opens no store and uses no environment variables, and
     * exits with 2 if it finds a mistake. */
    bool checks;
    bool names_tenant;    /* a server's operator may name the tenant with --tenant */
    const char *summary;  /* half a line */
    const char *about;    /* a paragraph or two */
    const char *example;  /* with its output */
    const char *refusals; /* when it exits with 1; NULL: never */
};

extern const struct hf_cli_command hf_cli_commands[];
extern const size_t hf_cli_command_count;

/* The command of that name, or NULL. */
const struct hf_cli_command *hf_cli_command_find(const char *name);
/* The command with the most similar name, or NULL if none is similar. */
const struct hf_cli_command *hf_cli_command_nearest(const char *name);

int hf_cmd_serve(struct hf_cli *cli);
int hf_cmd_check_config(struct hf_cli *cli);
int hf_cmd_hold(struct hf_cli *cli);
int hf_cmd_confirm(struct hf_cli *cli);
int hf_cmd_release(struct hf_cli *cli);
int hf_cmd_expire(struct hf_cli *cli);
int hf_cmd_reverse(struct hf_cli *cli);
int hf_cmd_show(struct hf_cli *cli);
int hf_cmd_list(struct hf_cli *cli);
int hf_cmd_resource(struct hf_cli *cli);
int hf_cmd_guard(struct hf_cli *cli);
int hf_cmd_check(struct hf_cli *cli);
int hf_cmd_record(struct hf_cli *cli);
int hf_cmd_admit(struct hf_cli *cli);
int hf_cmd_claim(struct hf_cli *cli);
int hf_cmd_lease(struct hf_cli *cli);
int hf_cmd_register(struct hf_cli *cli);
int hf_cmd_audit(struct hf_cli *cli);
int hf_cmd_trace(struct hf_cli *cli);
int hf_cmd_export(struct hf_cli *cli);
int hf_cmd_bench(struct hf_cli *cli);
int hf_cmd_simulate(struct hf_cli *cli);
int hf_cmd_version(struct hf_cli *cli);
int hf_cmd_help(struct hf_cli *cli);

/* list.c: holdfast claim list. */
int hf_cli_list_claims(struct hf_cli *cli);

/* ---- help.c ---- */

#include <stdio.h>

/* Usage: one line for each command. */
void hf_cli_help_short(FILE *to);
/* The help of one command. */
void hf_cli_help_command(FILE *to, const struct hf_cli_command *command);

#endif

/* commands.h: the commands, in the one table that dispatch, help, man page and completions
 * follow. */
#ifndef HF_CLI_COMMANDS_H
#define HF_CLI_COMMANDS_H

#include "cli/cli.h"

struct hf_cli_command {
    const char *name;
    /* Runs the command and answers the exit code. Arguments and options are parsed and counted. */
    int (*run)(struct hf_cli *cli);
    const char *args; /* positional arguments as in the usage line */
    int args_min, args_max;
    hf_cli_set options;  /* HF_OPT_BIT of each that it takes, besides the global ones */
    hf_cli_set required; /* those of them that must be there */
    hf_cli_set globals;  /* the global options that mean something to it, for its help */
    bool raw;   /* all behind the name are arguments: the command parses its options itself */
    bool keyed; /* it carries an idempotency key */
    const char *summary;  /* half a line */
    const char *about;    /* a paragraph or two */
    const char *example;  /* with its output */
    const char *refusals; /* when it exits with 1; NULL: never */
};

extern const struct hf_cli_command hf_cli_commands[];
extern const size_t hf_cli_command_count;

/* The command of that name, or NULL. */
const struct hf_cli_command *hf_cli_command_find(const char *name);
/* The command whose name is most like `name`, or NULL if none is. */
const struct hf_cli_command *hf_cli_command_nearest(const char *name);

int hf_cmd_serve(struct hf_cli *cli);
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
int hf_cmd_audit(struct hf_cli *cli);
int hf_cmd_trace(struct hf_cli *cli);
int hf_cmd_export(struct hf_cli *cli);
int hf_cmd_bench(struct hf_cli *cli);
int hf_cmd_simulate(struct hf_cli *cli);
int hf_cmd_version(struct hf_cli *cli);
int hf_cmd_help(struct hf_cli *cli);

/* ---- help.c ---- */

#include <stdio.h>

/* What to type: a line a command. */
void hf_cli_help_short(FILE *to);
/* All about one command. */
void hf_cli_help_command(FILE *to, const struct hf_cli_command *command);

#endif

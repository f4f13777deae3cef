/* holdfast: the program. Finds the command, runs it, and checks that its output was written. */
#include "cli/commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool colors_wanted(int fd)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* Accept `holdfast --help` and `holdfast --version` as commands. */
static void spellings_accept(char **argv)
{
    static char version[] = "version";
    static char help[] = "help";
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        argv[1] = help;
}

static int run(struct hf_cli *cli, int argc, char **argv)
{
    if (!hf_cli_parse(cli, argc, argv))
        return HF_EXIT_USAGE;
    if (!cli->values[HF_OPT_HELP])
        return cli->command->run(cli);
    if (cli->command)
        hf_cli_help_command(stdout, cli->command);
    else
        hf_cli_help_short(stdout);
    return HF_EXIT_DONE;
}

int main(int argc, char **argv)
{
    struct hf_cli cli = { .color_out = colors_wanted(STDOUT_FILENO),
                          .color_err = colors_wanted(STDERR_FILENO) };
    if (argc < 2) {
        hf_cli_help_short(stderr);
        return HF_EXIT_USAGE;
    }
    spellings_accept(argv);
    int code = run(&cli, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        /* The command was done, but its caller did not get the answer. */
        bool changed = cli.keyed;
        hf_cli_error(&cli, "the answer could not be written to the standard output.%s",
                     changed ? " Retry with the same key to get it" : " Is the disk full?");
        return code != HF_EXIT_DONE ? code : changed ? HF_EXIT_UNKNOWN : HF_EXIT_STORE;
    }
    return code;
}

/* holdfast simulate: runs holdfast-simulate, a separate program, so that the server's program
 * contains no code of the proof. */
#include "cli/commands.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "holdfast-simulate";
enum { WORDS_MAX = 20 };

/* Check the values. holdfast-simulate checks those of a record. */
static bool values_fit(const struct hf_cli *cli)
{
    uint64_t number;
    return hf_cli_number(cli, HF_OPT_SEED, (struct hf_cli_range){ 1, UINT64_MAX >> 1 }, &number) &&
           hf_cli_number(cli, HF_OPT_SEEDS, (struct hf_cli_range){ 1, 100000000 }, &number) &&
           hf_cli_number(cli, HF_OPT_OPS, (struct hf_cli_range){ 1, 100000 }, &number) &&
           hf_cli_number(cli, HF_OPT_JOBS, (struct hf_cli_range){ 1, 256 }, &number);
}

/* The path of holdfast-simulate beside this program. False if it cannot be found out. */
static bool path_beside(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0 || (size_t)n >= size - 1)
        return false;
    path[n] = '\0';
    char *name = strrchr(path, '/');
    if (!name || (size_t)(name + 1 - path) + sizeof program > size)
        return false;
    memcpy(name + 1, program, sizeof program);
    return true;
}

/* execv does not modify the words, although its type allows it. */
static int run(const char *const *words, size_t count)
{
    char path[PATH_MAX], *argv[WORDS_MAX];
    memcpy(argv, words, count * sizeof *argv);
    if (path_beside(path, sizeof path))
        execv(path, argv);
    return execvp(program, argv);
}

int hf_cmd_simulate(struct hf_cli *cli)
{
    static const struct {
        enum hf_cli_option_id id;
        const char *word;
    } passed[] = { { HF_OPT_SEED, "--seed" },        { HF_OPT_SEEDS, "--seeds" },
                   { HF_OPT_OPS, "--ops" },          { HF_OPT_JOBS, "--jobs" },
                   { HF_OPT_RECORD, "--record" },    { HF_OPT_TRACE_HASH, "--trace-hash" },
                   { HF_OPT_MINIMIZE, "--minimize" } };
    enum { COUNT = sizeof passed / sizeof *passed };
    _Static_assert(2 * COUNT + 3 <= WORDS_MAX, "all words fit");
    const char *words[WORDS_MAX] = { program };
    size_t count = 1;
    if (!values_fit(cli))
        return HF_EXIT_USAGE;
    for (size_t i = 0; i < COUNT; i++) {
        const char *value = cli->values[passed[i].id];
        if (!value)
            continue;
        words[count++] = passed[i].word;
        if (hf_cli_options[passed[i].id].value)
            words[count++] = value;
    }
    if (cli->json)
        words[count++] = "--json";
    words[count++] = NULL;
    run(words, count);
    hf_cli_error(cli, "cannot run %s: %s. It must be beside this program or in a folder of PATH",
                 program, strerror(errno));
    return HF_EXIT_STORE;
}

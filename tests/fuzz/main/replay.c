/* The main of a fuzz target in builds without libFuzzer: gives it every file of the folders and files that are named.
 * Says the name of each before it runs, so that the last one is to blame. */
#include "fuzz/support/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#define MEMORY_MAX ((rlim_t)512 << 20)

static int fail(const char *path)
{
    perror(path);
    return -1;
}

/* Run one input. 1, or -1 if it cannot be read. */
static int run_file(const char *path, size_t size)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return fail(path);
    uint8_t *data = fuzz_alloc(size);
    size_t got = fread(data, 1, size, in);
    fclose(in);
    printf("%s\n", path);
    fflush(stdout);
    if (got == size)
        (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return got == size ? 1 : fail(path);
}

/* Run a file, or all files of a folder. How many there were, or -1. */
static int run(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail(path);
    if (!S_ISDIR(st.st_mode))
        return run_file(path, (size_t)st.st_size);
    struct dirent **names;
    int count = scandir(path, &names, NULL, alphasort), ran = 0;
    if (count < 0)
        return fail(path);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
        if (ran >= 0 && names[i]->d_name[0] != '.') {
            int more = run(inner);
            ran = more < 0 ? -1 : ran + more;
        }
        free(names[i]);
    }
    free(names);
    return ran;
}

/* An input that makes the code ask for absurd amounts of memory shall not get them. A sanitizer needs more room than any
 * limit leaves it; libFuzzer has limits of its own. */
static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)
    const struct rlimit limit = { MEMORY_MAX, MEMORY_MAX };
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        perror("setrlimit");
#endif
}

int main(int argc, char **argv)
{
    int total = 0;
    limit_memory();
    for (int i = 1; i < argc; i++) {
        int ran = run(argv[i]);
        if (ran < 0)
            return 1;
        total += ran;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1; /* a corpus that is not there proves nothing */
}

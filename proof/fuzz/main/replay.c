/* The main of a fuzz target in builds without libFuzzer: gives it every input of the packs, folders
 * and files that are named. Says the name of each before it runs, so that the last one is to
 * blame. */
#include "fuzz/support/corpus.h"
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

/* Run one input. It stands in a block of exactly its size, so that a sanitizer sees what is read
 * beyond it. */
static void run_input(const char *name, struct hf_bytes input)
{
    char *data = fuzz_copy(input);
    printf("%s\n", name);
    fflush(stdout);
    (void)LLVMFuzzerTestOneInput((const uint8_t *)data, input.size);
    free(data);
}

/* Run all inputs of a pack. How many there were, or -1 if it is not a whole one. */
static int run_pack(const char *path, struct hf_bytes pack)
{
    struct fuzz_corpus corpus;
    const char *wrong = fuzz_corpus_read(pack, &corpus);
    if (wrong) {
        fprintf(stderr, "%s: %s\n", path, wrong);
        return -1;
    }
    int count = (int)corpus.count;
    for (size_t i = 0; i < corpus.count; i++) {
        char name[FUZZ_NAME_ROOM], whole[4096];
        fuzz_corpus_name(corpus.inputs[i], name);
        snprintf(whole, sizeof whole, "%s: %s", path, name);
        run_input(whole, corpus.inputs[i]);
    }
    fuzz_corpus_free(&corpus);
    return count;
}

/* A file is a pack by its name alone: one that does not begin like a pack is a broken pack. */
static bool is_pack(const char *path)
{
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".pack") == 0;
}

/* Run a pack, or the one input that any other file is. How many there were, or -1. */
static int run_file(const char *path)
{
    struct hf_buffer file = { 0 };
    int ran = 1;
    if (!fuzz_file_read(path, &file))
        ran = fail(path);
    else if (is_pack(path))
        ran = run_pack(path, fuzz_held(&file));
    else
        run_input(path, fuzz_held(&file));
    hf_buffer_free(&file);
    return ran;
}

/* Run a file, or all files of a folder. How many there were, or -1. */
static int run(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail(path);
    if (!S_ISDIR(st.st_mode))
        return run_file(path);
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

/* An input that makes the code ask for absurd amounts of memory shall not get them. A sanitizer
 * needs more room than any limit leaves it; libFuzzer has limits of its own. */
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

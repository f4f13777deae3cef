/* fuzz_corpus pack FOLDER PACK: pack all files of the folder. The pack that was there is replaced
 * when the new one is whole. fuzz_corpus unpack PACK FOLDER: write each input of the pack to a file
 * in the folder, named by its SHA-256. */
#include "fuzz/support/corpus.h"
#include "fuzz/support/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "fuzz_corpus: %s: %s\n", path, why);
    return 1;
}

static bool file_write(const char *path, struct hf_bytes bytes)
{
    FILE *out = fopen(path, "wb");
    if (!out)
        return false;
    bool written = fwrite(bytes.data, 1, bytes.size, out) == bytes.size;
    return fclose(out) == 0 && written;
}

/* ---- pack ---- */

/* The files of a folder, in any order. */
struct gathered {
    struct hf_bytes *inputs; /* owned, and so are their bytes */
    size_t count;
};

static void gathered_free(struct gathered *all)
{
    for (size_t i = 0; i < all->count; i++)
        free((void *)(uintptr_t)all->inputs[i].data);
    free(all->inputs);
}

static void gathered_add(struct gathered *all, struct hf_bytes input)
{
    struct hf_bytes *more = realloc(all->inputs, (all->count + 1) * sizeof *more);
    FUZZ_WANT(more);
    all->inputs = more;
    all->inputs[all->count++] = hf_mem(fuzz_copy(input), input.size);
}

static int gather(const char *folder, struct gathered *all)
{
    int status = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return fail(folder, strerror(errno));
    for (struct dirent *entry; status == 0 && (entry = readdir(dir));) {
        char path[4096];
        struct hf_buffer file = { 0 };
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (fuzz_file_read(path, &file))
            gathered_add(all, fuzz_held(&file));
        else
            status = fail(path, strerror(errno));
        hf_buffer_free(&file);
    }
    closedir(dir);
    return status != 0 || all->count > 0 ? status : fail(folder, "it has no files");
}

static int pack(const char *folder, const char *path)
{
    struct gathered all = { 0 };
    struct hf_buffer built = { 0 };
    int status = gather(folder, &all);
    if (status == 0) {
        char fresh[4096];
        snprintf(fresh, sizeof fresh, "%s.new", path);
        fuzz_corpus_write(all.inputs, all.count, &built);
        if (!file_write(fresh, fuzz_held(&built)) || rename(fresh, path) != 0)
            status = fail(path, strerror(errno));
    }
    hf_buffer_free(&built);
    gathered_free(&all);
    return status;
}

/* ---- unpack ---- */

static int unpack(const char *path, const char *folder)
{
    struct hf_buffer file = { 0 };
    struct fuzz_corpus corpus = { 0 };
    int status = fuzz_file_read(path, &file) ? 0 : fail(path, strerror(errno));
    const char *wrong = status == 0 ? fuzz_corpus_read(fuzz_held(&file), &corpus) : NULL;
    if (wrong)
        status = fail(path, wrong);
    if (status == 0 && mkdir(folder, 0777) != 0 && errno != EEXIST)
        status = fail(folder, strerror(errno));
    for (size_t i = 0; status == 0 && i < corpus.count; i++) {
        char name[FUZZ_NAME_ROOM], inner[4096];
        fuzz_corpus_name(corpus.inputs[i], name);
        snprintf(inner, sizeof inner, "%s/%s", folder, name);
        if (!file_write(inner, corpus.inputs[i]))
            status = fail(inner, strerror(errno));
    }
    fuzz_corpus_free(&corpus);
    hf_buffer_free(&file);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        return pack(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "unpack") == 0)
        return unpack(argv[2], argv[3]);
    fprintf(stderr, "usage: fuzz_corpus pack FOLDER PACK\n       fuzz_corpus unpack PACK FOLDER\n");
    return 2;
}

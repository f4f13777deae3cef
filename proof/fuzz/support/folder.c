#include "fuzz/support/folder.h"

#include "fuzz/support/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[512];
static int folder = -1;

static void folder_remove(void)
{
    fuzz_folder_empty();
    (void)rmdir(path);
}

const char *fuzz_folder(void)
{
    if (folder >= 0)
        return path;
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/holdfast-fuzz-XXXXXX", parent && *parent ? parent : "/tmp");
    FUZZ_WANT(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_WANT(folder >= 0 && atexit(folder_remove) == 0);
    return path;
}

void fuzz_folder_put(const char *name, struct hf_bytes bytes)
{
    (void)fuzz_folder();
    const char *p = bytes.data;
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_WANT(fd >= 0);
    for (size_t done = 0; done < bytes.size;) {
        ssize_t n = write(fd, p + done, bytes.size - done);
        FUZZ_WANT(n > 0);
        done += (size_t)n;
    }
    close(fd);
}

void fuzz_folder_empty(void)
{
    DIR *dir = opendir(path);
    FUZZ_WANT(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            FUZZ_WANT(unlinkat(folder, entry->d_name, 0) == 0);
    closedir(dir);
}

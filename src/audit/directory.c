#include "audit/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number in "journal-00000001.log" or ".zst"; 0 for any other name. */
static uint64_t segment_number(const char *name)
{
    if (strlen(name) != 20 || memcmp(name, "journal-", 8) != 0)
        return 0;
    if (strcmp(name + 16, ".log") != 0 && strcmp(name + 16, ".zst") != 0)
        return 0;
    uint64_t n = 0;
    for (int i = 8; i < 16; i++) {
        if (name[i] < '0' || name[i] > '9')
            return 0;
        n = n * 10 + (uint64_t)(name[i] - '0');
    }
    return n;
}

bool hf_audit_directory_look(int dir, uint64_t *last, uint64_t *bytes)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        uint64_t n = segment_number(e->d_name);
        struct stat st;
        if (n > *last)
            *last = n;
        if (n > 0 && bytes && fstatat(dir, e->d_name, &st, 0) == 0 && st.st_size > 0)
            *bytes += (uint64_t)st.st_size;
    }
    closedir(d);
    return true;
}

void hf_audit_holder(const char *dir, char line[256])
{
    char path[4096];
    line[0] = '\0';
    if ((size_t)snprintf(path, sizeof path, "%s/LOCK", dir) >= sizeof path)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    /* Asking is trying: a shared lock that is given at once, and given back, means nobody has it. */
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        flock(fd, LOCK_UN);
    } else if (errno == EWOULDBLOCK) {
        ssize_t n = pread(fd, line, 255, 0);
        line[n > 0 ? n : 0] = '\0';
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0')
            snprintf(line, 256, "a process that did not say who it is");
    }
    close(fd);
}

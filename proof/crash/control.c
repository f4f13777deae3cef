/* Stores that forget. What they do must be found, or the test is blind. */
#define _GNU_SOURCE /* posix_spawnp's environ */
#include "crash/world.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 4096, BATCHES_CUT = 4 };

static bool run(struct crash_world *w, char *const argv[])
{
    pid_t pid;
    int status = -1;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        return crash_world_complain(w, "cannot run %s", argv[0]);
    return true;
}

static bool copy_make(struct crash_world *w)
{
    char copy[600];
    snprintf(copy, sizeof copy, "%s/copy", w->server.dir);
    return run(w, (char *[]){ (char[]){ "rm" }, (char[]){ "-rf" }, copy, NULL }) &&
           run(w, (char *[]){ (char[]){ "cp" }, (char[]){ "-r" }, w->server.data, copy, NULL });
}

static bool copy_use(struct crash_world *w)
{
    char copy[600];
    snprintf(copy, sizeof copy, "%s/copy", w->server.dir);
    return run(w, (char *[]){ (char[]){ "rm" }, (char[]){ "-rf" }, w->server.data, NULL }) &&
           run(w, (char *[]){ (char[]){ "mv" }, copy, w->server.data, NULL });
}

/* The sequence of the batch that begins with this block, or 0. */
static uint64_t sequence_of(const unsigned char *block)
{
    uint64_t sequence = 0;
    for (int i = 7; i >= 0 && memcmp(block, "HFB2", 4) == 0; i--)
        sequence = sequence << 8 | block[8 + i];
    return sequence;
}

/* Look at the batches of a segment: find the highest sequence, and overwrite those from `from` on
 * with zeros. */
static uint64_t segment_walk(const char *path, uint64_t from)
{
    static const unsigned char nothing[BLOCK];
    unsigned char block[BLOCK];
    uint64_t highest = 0;
    int fd = open(path, O_RDWR);
    for (off_t at = 0; fd >= 0 && pread(fd, block, BLOCK, at) == BLOCK; at += BLOCK) {
        uint64_t sequence = sequence_of(block);
        if (sequence > highest)
            highest = sequence;
        if (sequence >= from && pwrite(fd, nothing, BLOCK, at) != BLOCK)
            break;
    }
    if (fd >= 0)
        close(fd);
    return highest;
}

static uint64_t journal_walk(struct crash_world *w, uint64_t from)
{
    uint64_t highest = 0;
    DIR *dir = opendir(w->server.data);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        char path[900];
        snprintf(path, sizeof path, "%s/%s", w->server.data, e->d_name);
        uint64_t here = strstr(e->d_name, ".log") ? segment_walk(path, from) : 0;
        highest = here > highest ? here : highest;
    }
    if (dir)
        closedir(dir);
    return highest;
}

bool crash_control_before(struct crash_world *w)
{
    return w->round->control != CRASH_OLD_COPY || copy_make(w);
}

bool crash_control_after(struct crash_world *w)
{
    if (w->round->control == CRASH_OLD_COPY)
        return copy_use(w);
    if (w->round->control == CRASH_CUT) {
        uint64_t highest = journal_walk(w, UINT64_MAX);
        if (highest <= BATCHES_CUT)
            return crash_world_complain(w, "there is nothing to cut");
        (void)journal_walk(w, highest - BATCHES_CUT);
    }
    return true;
}

#include "load.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat_line {
    pid_t parent;
    unsigned long own, reaped; /* ticks of the process, and of children that are gone */
};

static bool stat_read(pid_t pid, struct stat_line *out)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    bool read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    /* The name stands in brackets and may hold anything; what follows the last bracket is
     * numbers. */
    char *at = read ? strrchr(line, ')') : NULL;
    if (!at || strlen(at) < 5)
        return false;
    at += 4;                  /* behind ") S" */
    unsigned long fields[14]; /* ppid is the 4th field of the line, cstime the 17th */
    for (size_t i = 0; i < 14; i++)
        fields[i] = strtoul(at, &at, 10);
    *out = (struct stat_line){ .parent = (pid_t)fields[0],
                               .own = fields[10] + fields[11],
                               .reaped = fields[12] + fields[13] };
    return true;
}

/* Call `each` for the process and for each child that lives. False: the process is not there. */
static bool family(pid_t pid, void (*each)(pid_t, const struct stat_line *, struct hf_load_usage *),
                   struct hf_load_usage *out)
{
    struct stat_line line;
    if (!stat_read(pid, &line))
        return false;
    each(pid, &line, out);
    DIR *proc = opendir("/proc");
    if (!proc)
        return false;
    for (struct dirent *entry; (entry = readdir(proc));) {
        pid_t child =
            isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        if (child && stat_read(child, &line) && line.parent == pid)
            each(child, &line, out);
    }
    closedir(proc);
    return true;
}

static void cpu_add(pid_t pid, const struct stat_line *line, struct hf_load_usage *out)
{
    (void)pid;
    out->cpu_seconds += (double)(line->own + line->reaped) / (double)sysconf(_SC_CLK_TCK);
}

static void memory_add(pid_t pid, const struct stat_line *line, struct hf_load_usage *out)
{
    char path[64], text[256];
    (void)line;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", (long)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(text, sizeof text, f)) {
        /* Proportional: a page that several processes share is counted once in their sum. */
        if (strncmp(text, "Pss:", 4) == 0)
            out->memory_bytes += strtoull(text + 4, NULL, 10) * 1024;
        else if (strncmp(text, "Pss_Anon:", 9) == 0)
            out->private_bytes += strtoull(text + 9, NULL, 10) * 1024;
    }
    if (f)
        fclose(f);
}

static bool families(const struct hf_load_options *o,
                     void (*each)(pid_t, const struct stat_line *, struct hf_load_usage *),
                     struct hf_load_usage *out)
{
    bool there = true;
    for (size_t i = 0; i < HF_LOAD_SERVERS_MAX && o->pids[i]; i++)
        there = family(o->pids[i], each, out) && there;
    return there;
}

bool hf_load_usage_cpu(const struct hf_load_options *o, struct hf_load_usage *out)
{
    return families(o, cpu_add, out);
}

double hf_load_machine_cpu(void)
{
    /* user nice system idle iowait irq softirq steal, in ticks, of all cores together */
    char text[512];
    unsigned long ticks = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (f && fgets(text, sizeof text, f) && strncmp(text, "cpu ", 4) == 0) {
        char *at = text + 4;
        for (unsigned field = 0; field < 8; field++) {
            unsigned long n = strtoul(at, &at, 10);
            if (field != 3 && field != 4)
                ticks += n;
        }
    }
    if (f)
        fclose(f);
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Pages of shared memory in the whole machine. PostgreSQL's buffers are among them, and once its
 * backends have ended no process has them mapped, so they are in nobody's sum. */
static uint64_t machine_shared(void)
{
    char text[256];
    uint64_t bytes = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(text, sizeof text, f))
        if (strncmp(text, "Shmem:", 6) == 0)
            bytes = strtoull(text + 6, NULL, 10) * 1024;
    if (f)
        fclose(f);
    return bytes;
}

bool hf_load_usage_memory(const struct hf_load_options *o, struct hf_load_usage *out)
{
    out->machine_shared_bytes = machine_shared();
    /* A child may end while it is looked at; a server that may not be looked at would seem to need
     * nothing. */
    return families(o, memory_add, out) && out->memory_bytes > 0;
}

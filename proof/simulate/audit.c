/* The auditor reads files of the system, so the simulated ones are written out for it. */
#include "audit/audit.h"

#include "simulate/world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct dump {
    struct sim_world *w;
    int to;
};

static bool dump_file(void *arg, const char *name, uint64_t size)
{
    struct dump *d = arg;
    struct hf_bytes bytes;
    int fd = openat(d->to, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (!sim_disk_bytes(d->w->disk, name, &bytes) || fd < 0 ||
        write(fd, bytes.data, size) != (ssize_t)size)
        sim_fail(d->w, "%s could not be written out for the audit", name);
    if (fd >= 0)
        close(fd);
    return true;
}

static bool remove_file(void *arg, const char *name, uint64_t size)
{
    (void)size;
    unlinkat(*(int *)arg, name, 0);
    return true;
}

static void judge_report(struct sim_world *w, const struct hf_audit_report *report)
{
    if (report->index_wrong > 0 && !w->stale)
        sim_fail(w, "the audit finds that holds.idx does not agree with the journal at byte %llu",
                 (unsigned long long)report->index_wrong_at);
    if (report->verdict == HF_AUDIT_OK)
        return;
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        const struct hf_audit_check *c = &report->checks[i];
        if (c->violations > 0)
            sim_fail(w, "the audit finds %llu violations of %s: %s",
                     (unsigned long long)c->violations, c->name,
                     c->example_count ? c->examples[0] : "");
    }
    sim_fail(w, "the audit finds the journal damaged");
}

static void audit_folder(struct sim_world *w, const char *path)
{
    struct hf_audit_report report = { .verdict = HF_AUDIT_OK };
    struct hf_error why;
    if (hf_audit_run(path, NULL, &report, &why) != HF_OK)
        sim_fail(w, "the audit could not be made: %s", why.text);
    else
        judge_report(w, &report);
    hf_audit_report_free(&report);
}

void sim_audit(struct sim_world *w)
{
    const char *base = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/holdfast-simulate-XXXXXX", base && *base ? base : "/tmp");
    struct dump d = { .w = w, .to = -1 };
    if (!mkdtemp(path) || (d.to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        sim_fail(w, "no folder could be made in %s for the audit", base && *base ? base : "/tmp");
        return;
    }
    sim_disk_each(w->disk, dump_file, &d);
    if (!sim_failed(w))
        audit_folder(w, path);
    sim_disk_each(w->disk, remove_file, &d.to);
    close(d.to);
    rmdir(path);
    w->out->audits++;
}

/* The progress line on stderr, for work that takes longer than half a second, on a terminal
 * only. */
#include "base/clock.h"
#include "cli/cli.h"

#include <stdio.h>
#include <unistd.h>

enum { PATIENCE_MS = 500, BETWEEN_MS = 100 };

void hf_cli_progress(struct hf_cli *cli, const char *what, uint64_t done, uint64_t total)
{
    struct hf_cli_progress *p = &cli->progress;
    int64_t now = hf_clock_monotonic_ms();
    if (!p->begun) {
        *p = (struct hf_cli_progress){ .begun = true, .begun_ms = now };
        return;
    }
    if (now - p->begun_ms < PATIENCE_MS || (p->shown && now - p->shown_ms < BETWEEN_MS) ||
        !isatty(STDERR_FILENO))
        return;
    p->shown = true;
    p->shown_ms = now;
    if (total > 0)
        fprintf(stderr, "\r%s %.0f %%\033[K", what, 100.0 * (double)done / (double)total);
    else
        fprintf(stderr, "\r%s %llu\033[K", what, (unsigned long long)done);
    fflush(stderr);
}

void hf_cli_progress_end(struct hf_cli *cli)
{
    if (cli->progress.shown)
        fputs("\r\033[K", stderr);
    cli->progress = (struct hf_cli_progress){ 0 };
}

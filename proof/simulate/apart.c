#include "simulate/apart.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEED_SECONDS = 300 };

/* What a worker says when a seed has ended. Small enough for a pipe to take it whole. */
struct message {
    uint64_t seed;
    struct sim_outcome outcome;
};

/* Whoever asks for the runs may be killed, and nobody would hear of what goes on behind it. */
static void end_with(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(1);
}

static bool send_all(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

/* False at the end, or in the middle of what was sent. */
static bool receive_all(int fd, void *data, size_t size)
{
    char *p = data;
    while (size > 0) {
        ssize_t n = read(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

/* The child is gone without a word: that is how its run ended. */
static void outcome_of_death(pid_t pid, unsigned seconds, struct sim_outcome *out)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    memset(out, 0, sizeof *out);
    out->failed = true;
    snprintf(out->fault, sizeof out->fault, "not known");
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(out->sentence, sizeof out->sentence, "the run did not end within %u seconds",
                 seconds);
    else if (WIFSIGNALED(status))
        snprintf(out->sentence, sizeof out->sentence, "the process died: %s",
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out->sentence, sizeof out->sentence, "the process exited with status %d",
                 WEXITSTATUS(status));
}

bool sim_run_apart(const struct sim_mix *mix, const struct sim_script *script, unsigned seconds,
                   struct sim_outcome *out)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (pid == 0) {
        close(ends[0]);
        end_with(parent);
        alarm(seconds);
        sim_run(mix, script, out);
        _exit(send_all(ends[1], out, sizeof *out) ? 0 : 1);
    }
    close(ends[1]);
    bool told = receive_all(ends[0], out, sizeof *out);
    close(ends[0]);
    if (told)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    else
        outcome_of_death(pid, seconds, out);
    return true;
}

/* ---- Many seeds ---- */

/* A worker has every jobs-th seed. */
struct worker {
    pid_t pid; /* 0: none */
    int fd;
    uint64_t next, step; /* the seed that it runs or will run; the distance to the one after */
};

struct crew {
    const struct sim_campaign *c;
    struct worker *workers; /* owned */
    struct pollfd *polls;   /* owned */
    unsigned live;
    bool stopped;
};

static void work(const struct sim_campaign *c, const struct worker *w, int fd)
{
    for (uint64_t i = w->next; i < c->count; i += w->step) {
        struct message m;
        memset(&m, 0, sizeof m);
        m.seed = c->from + i;
        alarm(SEED_SECONDS);
        sim_run_seed(m.seed, c->operations, &m.outcome);
        if (!send_all(fd, &m, sizeof m))
            _exit(1);
    }
    _exit(0);
}

static bool worker_start(struct crew *crew, struct worker *w)
{
    int ends[2];
    if (w->next >= crew->c->count)
        return true;
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    pid_t parent = getpid();
    w->pid = fork();
    if (w->pid == 0) {
        close(ends[0]);
        end_with(parent);
        work(crew->c, w, ends[1]);
    }
    close(ends[1]);
    w->fd = ends[0];
    if (w->pid < 0) {
        close(ends[0]);
        w->pid = 0;
        return false;
    }
    crew->live++;
    return true;
}

static void worker_end(struct crew *crew, struct worker *w)
{
    close(w->fd);
    w->pid = 0;
    crew->live--;
}

static void tell(struct crew *crew, uint64_t seed, const struct sim_outcome *outcome)
{
    if (!crew->stopped && !crew->c->ended(crew->c->arg, seed, outcome))
        crew->stopped = true;
}

/* The worker has something to say, or has died over a seed: then another one goes on behind it. */
static bool worker_hear(struct crew *crew, struct worker *w)
{
    struct message m;
    if (receive_all(w->fd, &m, sizeof m)) {
        w->next += w->step;
        tell(crew, m.seed, &m.outcome);
        return true;
    }
    if (w->next >= crew->c->count) {
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        worker_end(crew, w);
        return true;
    }
    outcome_of_death(w->pid, SEED_SECONDS, &m.outcome);
    worker_end(crew, w);
    tell(crew, crew->c->from + w->next, &m.outcome);
    w->next += w->step;
    return worker_start(crew, w);
}

static void workers_stop(struct crew *crew)
{
    for (unsigned i = 0; i < crew->c->jobs; i++) {
        struct worker *w = &crew->workers[i];
        if (!w->pid)
            continue;
        kill(w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        worker_end(crew, w);
    }
}

static bool workers_hear(struct crew *crew)
{
    bool good = true;
    while (good && crew->live > 0 && !crew->stopped) {
        for (unsigned i = 0; i < crew->c->jobs; i++)
            crew->polls[i] = (struct pollfd){ .fd = crew->workers[i].pid ? crew->workers[i].fd : -1,
                                              .events = POLLIN };
        if (poll(crew->polls, crew->c->jobs, -1) < 0 && errno != EINTR)
            return false;
        for (unsigned i = 0; good && !crew->stopped && i < crew->c->jobs; i++)
            if (crew->polls[i].fd >= 0 && crew->polls[i].revents)
                good = worker_hear(crew, &crew->workers[i]);
    }
    return good;
}

bool sim_campaign_run(const struct sim_campaign *c)
{
    struct crew crew = { .c = c };
    bool good = true;
    crew.workers = calloc(c->jobs, sizeof *crew.workers);
    crew.polls = calloc(c->jobs, sizeof *crew.polls);
    HF_ASSERT(crew.workers && crew.polls);
    for (unsigned i = 0; good && i < c->jobs; i++) {
        crew.workers[i] = (struct worker){ .next = i, .step = c->jobs };
        good = worker_start(&crew, &crew.workers[i]);
    }
    if (good)
        good = workers_hear(&crew);
    workers_stop(&crew);
    free(crew.workers);
    free(crew.polls);
    return good;
}

/* hf_load: the load generator behind bench/compare. Its output is lines of "name value". */
#include "load.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usage[] =
    "hf_load run    --peer holdfast|redis|postgres --address HOST:PORT[,...]\n"
    "               --job place|replay|select|empty|resource\n"
    "               [--connections N] [--group N] [--seconds S] [--warm S] [--count N] [--rate "
    "CALLS]\n"
    "               [--first N] [--loaded N] [--resources N] [--script SHA1] [--pid PID[,...]]\n"
    "hf_load idle   --address HOST:PORT --connections N --pid PID\n"
    "hf_load slow   --address HOST:PORT --connections N\n"
    "hf_load held   --address HOST:PORT\n"
    "hf_load memory --pid PID[,...]\n"
    "hf_load disk   --dir DIR [--seconds S]\n"
    "hf_load port\n";

struct arguments {
    struct hf_load_options o;
    const char *dir;
};

static bool address_take(struct hf_load_options *o, const char *value)
{
    for (o->server_count = 0; o->server_count < HF_LOAD_SERVERS_MAX; value++) {
        struct hf_load_address *a = &o->servers[o->server_count++];
        size_t length = strcspn(value, ",");
        const char *colon = memrchr(value, ':', length);
        if (!colon ||
            snprintf(a->host, sizeof a->host, "%.*s", (int)(colon - value), value) >=
                (int)sizeof a->host ||
            snprintf(a->port, sizeof a->port, "%.*s", (int)(value + length - colon - 1),
                     colon + 1) >= (int)sizeof a->port)
            return false;
        value += length;
        if (!*value)
            return true;
    }
    return false;
}

static bool pids_take(struct hf_load_options *o, const char *value)
{
    for (size_t i = 0; i < HF_LOAD_SERVERS_MAX; i++) {
        char *end;
        o->pids[i] = (pid_t)strtol(value, &end, 10);
        if (end == value || o->pids[i] <= 0)
            return false;
        if (!*end)
            return true;
        value = end + (*end == ',');
    }
    return false;
}

static bool peer_take(struct hf_load_options *o, const char *value)
{
    static const struct hf_load_peer *const peers[] = { &hf_load_holdfast, &hf_load_redis,
                                                        &hf_load_postgres };
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (strcmp(peers[i]->name, value) == 0) {
            o->peer = peers[i];
            return true;
        }
    }
    return false;
}

static bool job_take(struct hf_load_options *o, const char *value)
{
    static const char *const jobs[] = {
        [HF_LOAD_PLACE] = "place", [HF_LOAD_REPLAY] = "replay",     [HF_LOAD_SELECT] = "select",
        [HF_LOAD_EMPTY] = "empty", [HF_LOAD_RESOURCE] = "resource",
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        if (strcmp(jobs[i], value) == 0) {
            o->job = (enum hf_load_job)i;
            return true;
        }
    }
    return false;
}

static bool number_take(double *out, const char *value)
{
    char *end;
    *out = strtod(value, &end);
    return end != value && *end == '\0' && *out >= 0 && *out < 1e15;
}

static bool option_take(struct arguments *a, const char *name, const char *value)
{
    struct hf_load_options *o = &a->o;
    double n = 0;
    if (strcmp(name, "--address") == 0)
        return address_take(o, value);
    if (strcmp(name, "--pid") == 0)
        return pids_take(o, value);
    if (strcmp(name, "--peer") == 0)
        return peer_take(o, value);
    if (strcmp(name, "--job") == 0)
        return job_take(o, value);
    if (strcmp(name, "--script") == 0 || strcmp(name, "--dir") == 0) {
        *(name[2] == 's' ? &o->script : &a->dir) = value;
        return true;
    }
    if (!number_take(&n, value))
        return false;
    if (strcmp(name, "--connections") == 0)
        o->connections = (unsigned)n;
    else if (strcmp(name, "--group") == 0)
        o->group = (unsigned)n;
    else if (strcmp(name, "--seconds") == 0)
        o->seconds = n;
    else if (strcmp(name, "--warm") == 0)
        o->warm = n;
    else if (strcmp(name, "--count") == 0)
        o->count = (uint64_t)n;
    else if (strcmp(name, "--rate") == 0)
        o->rate = n;
    else if (strcmp(name, "--first") == 0)
        o->first = (uint64_t)n;
    else if (strcmp(name, "--loaded") == 0)
        o->loaded = (uint64_t)n;
    else if (strcmp(name, "--resources") == 0)
        o->resources = (uint64_t)n;
    else
        return false;
    return true;
}

/* What does not fit together, or NULL. */
static const char *objection(const struct hf_load_options *o)
{
    if (o->connections == 0 || o->connections > HF_LOAD_CONNECTIONS_MAX)
        return "--connections is 1 to 16384";
    if (o->group == 0 || o->group > HF_LOAD_GROUP_MAX)
        return "--group is 1 to 8192";
    if (o->resources == 0 || o->resources > HF_LOAD_MOST_NAMES)
        return "--resources is 1 to 9999999";
    if ((o->job == HF_LOAD_REPLAY || o->job == HF_LOAD_SELECT) && (o->loaded == 0 || o->count))
        return "--job replay and select need --loaded, and take no --count";
    if (o->job == HF_LOAD_SELECT && (o->peer != &hf_load_postgres || o->group != 1))
        return "--job select is for postgres, one at a time";
    if (o->job >= HF_LOAD_EMPTY && (o->peer != &hf_load_holdfast || o->group != 1))
        return "--job empty and resource are for holdfast, one at a time";
    return NULL;
}

/* What neither the client nor the server used, in percent of the machine: a noisy neighbour shows
 * here. */
static double others_percent(const struct hf_load_result *r)
{
    double others = r->machine_cpu - r->client_cpu - r->server_cpu;
    double share = 100 * others / (r->seconds * (double)sysconf(_SC_NPROCESSORS_ONLN));
    return share > 0 ? share : 0;
}

static bool run(const struct hf_load_options *o)
{
    static struct hf_load_result r;
    bool done = hf_load_drive(o, &r);
    double per_second = r.seconds > 0 ? (double)r.requests / r.seconds : 0;
    double requests = r.requests ? (double)r.requests : 1;
    printf("per_second %.1f\n", per_second);
    printf("p50_us %.1f\np99_us %.1f\np999_us %.1f\nmax_us %.1f\n",
           hf_load_histogram_at(&r.calls, 0.5), hf_load_histogram_at(&r.calls, 0.99),
           hf_load_histogram_at(&r.calls, 0.999), (double)r.calls.max_ns / 1000);
    printf("client_cpu_us %.2f\nserver_cpu_us %.2f\n", r.client_cpu * 1e6 / requests,
           r.server_cpu * 1e6 / requests);
    if (o->pids[0] && r.seconds > 0)
        printf("others_percent %.1f\n", others_percent(&r));
    printf("calls %llu\nseconds %.3f\nrequests %llu\n", (unsigned long long)r.calls.total,
           r.seconds, (unsigned long long)r.requests);
    for (unsigned status = 0; status < sizeof r.tally.by_status / sizeof *r.tally.by_status;
         status++)
        if (r.tally.by_status[status])
            printf("status_%u %llu\n", status, (unsigned long long)r.tally.by_status[status]);
    printf("right %llu\nwrong %llu\nnext %llu\n", (unsigned long long)r.tally.right,
           (unsigned long long)r.tally.wrong, (unsigned long long)r.next);
    if (r.tally.wrong)
        fprintf(stderr, "hf_load: %s: %llu wrong answers, the first: %s\n", o->peer->name,
                (unsigned long long)r.tally.wrong, r.tally.first_wrong);
    if (done && r.tally.right == 0)
        fprintf(stderr, "hf_load: %s: nothing was answered\n", o->peer->name);
    return done && r.tally.wrong == 0 && r.tally.right > 0;
}

/* Print a port that was free a moment ago, for servers that cannot choose one themselves. */
static bool port_print(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool found = fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 &&
                 getsockname(fd, (struct sockaddr *)&a, &size) == 0;
    if (fd >= 0)
        close(fd);
    if (found)
        printf("%u\n", (unsigned)ntohs(a.sin_port));
    return found;
}

static bool memory_print(const struct hf_load_options *o)
{
    struct hf_load_usage u = { 0 };
    if (!hf_load_usage_memory(o, &u)) {
        fprintf(stderr, "hf_load: no process %ld, or its memory may not be read\n",
                (long)o->pids[0]);
        return false;
    }
    printf("memory_bytes %llu\nprivate_bytes %llu\nmachine_shared_bytes %llu\n",
           (unsigned long long)u.memory_bytes, (unsigned long long)u.private_bytes,
           (unsigned long long)u.machine_shared_bytes);
    return true;
}

static int usage_fail(const char *why)
{
    fprintf(stderr, "hf_load: %s\n%s", why, usage);
    return 2;
}

int main(int argc, char **argv)
{
    static struct arguments a = {
        .dir = ".",
        .o = { .peer = &hf_load_holdfast,
               .servers = { { "127.0.0.1", "4653" } },
               .server_count = 1,
               .connections = 64,
               .group = 1,
               .seconds = 1,
               .resources = 100000 },
    };
    const char *command = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; i += 2)
        if (i + 1 == argc || !option_take(&a, argv[i], argv[i + 1]))
            return usage_fail(argv[i]);
    const char *why = objection(&a.o);
    if (why)
        return usage_fail(why);
    bool done = false;
    if (strcmp(command, "run") == 0)
        done = run(&a.o);
    else if (strcmp(command, "idle") == 0) {
        a.o.job = HF_LOAD_RESOURCE;
        done = hf_load_idle(&a.o);
    } else if (strcmp(command, "slow") == 0)
        done = hf_load_slow(&a.o);
    else if (strcmp(command, "held") == 0)
        done = hf_load_held(&a.o);
    else if (strcmp(command, "memory") == 0)
        done = memory_print(&a.o);
    else if (strcmp(command, "disk") == 0)
        done = hf_load_disk(a.dir, a.o.seconds);
    else if (strcmp(command, "port") == 0)
        done = port_print();
    else
        return usage_fail("no such command");
    if (fflush(stdout) != 0)
        done = false;
    return done ? 0 : 1;
}

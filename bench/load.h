/* load.h: one load generator for three servers, so that the client is the same whoever answers.
 *
 *   load.c             the command line, and what is printed
 *   load_driver.c      connections on one epoll thread: closed loop, or a fixed rate
 *   load_request.c     the n-th request: one token, resource and requester, whoever is asked
 *   load_stream.c      buffers and sockets            load_holdfast.c   HTTP/1.1
 *   load_tally.c       answers by status              load_redis.c      RESP, pipelined
 *   load_histogram.c   latencies                      load_postgres.c   libpq, asynchronous
 *   load_process.c     a server's CPU and memory      load_disk.c       what an fdatasync takes
 *   load_crowd.c       idle connections and slow senders
 *
 * A *call* is what a connection sends and waits for before it sends again: one request, some
 * requests in a pipeline, or one batch. A request is numbered, and everything in it follows from
 * its number; so a replay is the same number again, and fresh requests are numbers not used before.
 * Any answer but the expected one makes the run fail. */
#ifndef HF_LOAD_H
#define HF_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- What is asked ---- */

enum hf_load_job {
    HF_LOAD_PLACE,    /* place_hold, a fresh token each */
    HF_LOAD_REPLAY,   /* place_hold with a token known already, uniformly among the loaded */
    HF_LOAD_SELECT,   /* the token's row by its primary key, of PostgreSQL alone */
    HF_LOAD_EMPTY,    /* an empty answer: GET /healthz, of Holdfast alone */
    HF_LOAD_RESOURCE, /* PUT a resource, of Holdfast alone; the others get theirs by a script */
};

#define HF_LOAD_GROUP_MAX 8192
#define HF_LOAD_CONNECTIONS_MAX 16384
#define HF_LOAD_SERVERS_MAX 4

struct hf_load_address {
    char host[256], port[8];
};

struct hf_load_options {
    const struct hf_load_peer *peer;
    /* the connections are dealt out to them in turn */
    struct hf_load_address servers[HF_LOAD_SERVERS_MAX];
    unsigned server_count;
    const char *script; /* SHA-1 of the Lua script, Redis alone */
    enum hf_load_job job;
    unsigned connections;
    unsigned group;                  /* requests a call */
    double seconds, warm;            /* measured time, and the time before it that does not count */
    uint64_t count;                  /* not 0: so many requests instead of a time */
    double rate;                     /* calls a second; 0: closed loop */
    uint64_t first;                  /* number of the first fresh request */
    uint64_t loaded;                 /* requests [0, loaded) are known to the server */
    uint64_t resources;              /* names over which the holds are spread */
    pid_t pids[HF_LOAD_SERVERS_MAX]; /* whose CPU and memory are watched; 0: none */
};

enum { HF_LOAD_TOKEN = 36, HF_LOAD_NAME = 8, HF_LOAD_MOST_NAMES = 9999999 };

struct hf_load_request {
    char token[HF_LOAD_TOKEN];   /* looks like a UUID */
    char resource[HF_LOAD_NAME]; /* r0000000 */
    char requester[HF_LOAD_NAME];
};

#define HF_LOAD_DURATION "24h" /* of a hold, and the window of a token */
#define HF_LOAD_DURATION_MS 86400000
#define HF_LOAD_CAPACITY 1000000000 /* of a resource: never runs out */

/* The n-th request of a load over so many resources. Tokens of different numbers differ. */
void hf_load_request(uint64_t number, uint64_t resources, struct hf_load_request *out);
/* The n-th resource. */
void hf_load_resource(uint64_t number, char out[HF_LOAD_NAME]);
/* A number of [0, below), from a small generator whose state is *seed. */
uint64_t hf_load_random(uint64_t *seed, uint64_t below);

/* A request's bytes, made once; only token, resource and requester are filled in for each
 * request. */
struct hf_load_template {
    char text[1024];
    size_t length;
    size_t token, resource, requester; /* offsets; 0: not in it */
};
/* Marks in a template's text, each as long as what takes its place. */
#define HF_LOAD_TOKEN_MARK "tttttttttttttttttttttttttttttttttttT"
#define HF_LOAD_RESOURCE_MARK "rrrrrrrR"
#define HF_LOAD_REQUESTER_MARK "qqqqqqqQ"
/* Find the marks in text[0 .. length). */
void hf_load_template_mark(struct hf_load_template *t);
/* Write the request into `to`, which has room for t->length bytes. */
void hf_load_template_fill(const struct hf_load_template *t, const struct hf_load_request *r,
                           char *to);

/* ---- What was answered ---- */

struct hf_load_tally {
    uint64_t by_status[600]; /* in Holdfast's terms: 201 placed, 409 refused ... */
    uint64_t right, wrong;
    char first_wrong[240];
};

/* Count one answer. It is right if its status is the one that the job expects and `replayed` says
 * what the job did; `text` (borrowed) is kept for the first that is not. */
void hf_load_tally_add(struct hf_load_tally *t, enum hf_load_job job, unsigned status,
                       bool replayed, const char *text, size_t length);
/* Count an answer of the scripts for Redis and PostgreSQL: "0 201 ...", the first digit 1 if
 * replayed. */
void hf_load_tally_add_text(struct hf_load_tally *t, enum hf_load_job job, const char *text,
                            size_t length);

/* Log-linear: 64 steps in each power of two of nanoseconds, so a value is off by 1.6 % at most. */
struct hf_load_histogram {
    uint64_t count[64 * 59], total, max_ns;
};
void hf_load_histogram_add(struct hf_load_histogram *h, uint64_t ns);
/* The time that a part of all calls (0.99 ...) did not exceed, in microseconds. */
double hf_load_histogram_at(const struct hf_load_histogram *h, double part);

/* ---- Connections ---- */

struct hf_load_buffer {
    char *bytes; /* owned */
    size_t length, room;
};
/* Room for `more` bytes behind the length. False: no memory. */
bool hf_load_buffer_reserve(struct hf_load_buffer *b, size_t more);

struct hf_load_conn {
    int fd;
    unsigned server; /* index of o->servers */
    void *handle;    /* the peer's own: a PGconn */
    struct hf_load_buffer in, out;
    size_t sent;         /* of out */
    unsigned due;        /* answers that the call still waits for */
    bool busy;           /* a call is under way */
    uint64_t started_ns; /* when the call was sent, or when it should have been */
    bool writing;        /* bytes are left to send */
    bool watched_write;  /* the epoll set knows that */
    char why[160];       /* after false: what failed */
};

/* How a server is spoken to. Each function answers false, with conn->why filled, if the connection
 * failed. */
struct hf_load_peer {
    const char *name;
    bool (*connect)(const struct hf_load_options *o, struct hf_load_conn *c);
    /* Encode a call of `count` requests and send what the socket takes. The caller has set c->busy
     * and c->due. */
    bool (*send)(const struct hf_load_options *o, struct hf_load_conn *c, const uint64_t *numbers,
                 unsigned count);
    /* Send what was left. */
    bool (*flush)(struct hf_load_conn *c);
    /* Read what came, and count answers; c->busy is false when the call is over. */
    bool (*receive)(const struct hf_load_options *o, struct hf_load_conn *c,
                    struct hf_load_tally *t);
    void (*close)(struct hf_load_conn *c);
};
extern const struct hf_load_peer hf_load_holdfast, hf_load_redis, hf_load_postgres;

/* load_stream.c: what plain sockets share. */
int hf_load_stream_dial(const struct hf_load_address *server); /* blocking; -1: errno says why */
bool hf_load_stream_connect(const struct hf_load_options *o, struct hf_load_conn *c);
bool hf_load_stream_flush(struct hf_load_conn *c);
/* Read once. Nothing there is true, the end of the stream is false. */
bool hf_load_stream_fill(struct hf_load_conn *c);
void hf_load_stream_eat(struct hf_load_conn *c, size_t bytes);
void hf_load_stream_close(struct hf_load_conn *c);
bool hf_load_fail(struct hf_load_conn *c,
                  const char *what); /* fills why from what and errno; false */

/* The head of an HTTP answer. Answers its length, 0 if it is not whole yet. */
struct hf_load_head {
    unsigned status;
    size_t body;   /* bytes */
    bool replayed; /* Idempotent-Replayed: true */
    bool has_body_length;
};
size_t hf_load_head_parse(const char *bytes, size_t length, struct hf_load_head *out);

/* ---- A server, watched from outside ---- */

struct hf_load_usage {
    double cpu_seconds;            /* of the process, its threads, its children alive and gone */
    uint64_t memory_bytes;         /* resident, shared pages counted once */
    uint64_t private_bytes;        /* of these, anonymous: neither shared nor a file's */
    uint64_t machine_shared_bytes; /* shared memory of the whole machine */
};
/* CPU alone, of all that o->pids names; memory takes the kernel much longer to say. False: no such
 * process. */
bool hf_load_usage_cpu(const struct hf_load_options *o, struct hf_load_usage *out);
bool hf_load_usage_memory(const struct hf_load_options *o, struct hf_load_usage *out);
/* Seconds that all cores together have been busy, with whatever. */
double hf_load_machine_cpu(void);

/* ---- The runs ---- */

struct hf_load_result {
    struct hf_load_tally tally;
    struct hf_load_histogram calls;
    uint64_t requests;                          /* answered within the measured time */
    uint64_t next;                              /* the first number not used */
    double seconds;                             /* measured */
    double client_cpu, server_cpu, machine_cpu; /* seconds, within the measured time */
};

/* Run a load. False: it failed, and stderr says why; right and wrong answers are counted all the
 * same. */
bool hf_load_drive(const struct hf_load_options *o, struct hf_load_result *out);

/* Time writing and syncing 4 KiB again and again in a file that was written before. */
bool hf_load_disk(const char *dir, double seconds);
/* Open so many connections, let each ask once, and say what they cost the server in memory. */
bool hf_load_idle(const struct hf_load_options *o);
/* Keep so many connections that send a byte a second, until SIGTERM. */
bool hf_load_slow(const struct hf_load_options *o);
/* Walk the list of resources and print the sum of what is held. */
bool hf_load_held(const struct hf_load_options *o);

uint64_t hf_load_now(void); /* monotonic, nanoseconds */

#endif

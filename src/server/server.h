/* server.h: the HTTP server, as one call. */
#ifndef HF_SERVER_SERVER_H
#define HF_SERVER_SERVER_H

#include "holdfast.h"

/* Where a value was given, as a prefix of error messages, such as "holdfast.conf:12: "; NULL:
 * none. */
struct hf_server_places {
    const char *data, *postgres, *listen, *auth_file, *tls_cert, *tls_key;
};

/* Everything is borrowed for as long as the server runs. */
struct hf_server_options {
    const char *data;   /* a directory, or ":memory:"; ignored if store.postgres is set */
    const char *listen; /* "127.0.0.1:4653" */
    unsigned threads;
    uint64_t max_body;
    unsigned max_connections;
    /* of each tenant, with an auth file; 0: half of all connections */
    unsigned tenant_connections;
    unsigned tenant_rate; /* requests a second of each tenant, with an auth file; 0: no limit */
    /* how long a head may take, a connection may be idle, a body may take; 0: 10 s, 60 s, 60 s */
    unsigned head_ms, idle_ms, body_ms;
    /* how long a stop waits for requests in progress, and for a request on an idle connection; 0:
     * 30 s, 1 s */
    unsigned stop_ms, stop_idle_ms;
    /* how long a client may take to read an export; 0: 10 minutes, and a second for each MiB */
    unsigned send_ms;
    const char *auth_file; /* NULL: the server listens on loopback addresses only */
    const char *tls_cert, *tls_key;
    bool log_json, log_hash_keys, log_duplicates;
    bool sandbox;
    void (*welcome)(const char *url); /* called when the server is ready, or NULL */
    struct hf_server_places places;
    /* window, token length, registry, limits and postgres; the rest is filled in */
    struct hf_options store;
};

/* hf_server_run: listen, open the store, print to stdout that the server is ready, serve until
 * SIGTERM or SIGINT, finish the requests in progress, close. SIGHUP reads the certificate and the
 * auth file again. Returns the exit code of the program: 0; 2 if an option is invalid (reported on
 * stderr); 3 if the store or the address cannot be opened, or the store failed. */
int hf_server_run(const struct hf_server_options *options);

/* What hf_server_check found: `place` is from hf_server_places, or NULL; `sentence` says what is
 * wrong. Both are borrowed. */
struct hf_server_finding {
    bool is_mistake; /* false: only a warning */
    const char *place, *sentence;
};

/* hf_server_check: would hf_server_run get as far as opening the store? Reads the auth file, the
 * certificate and the key, and looks at the address and the directory. Creates, binds and opens
 * nothing. finding: called for each mistake and each warning. Returns the number of mistakes. */
unsigned hf_server_check(const struct hf_server_options *options,
                         void (*finding)(void *arg, const struct hf_server_finding *finding),
                         void *arg);

struct hf_buffer;

/* hf_server_lines: append three shell commands, one per line, that show what a retry does on a
 * server at `url`: place a hold, retry it, list the holds. The key contains the date: on the same
 * day the commands are retries, on another day a new request. url: borrowed, such as
 * "http://127.0.0.1:4653". */
void hf_server_lines(const char *url, struct hf_buffer *out);

#endif

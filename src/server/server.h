/* server.h: the HTTP server, as one call. */
#ifndef HF_SERVER_SERVER_H
#define HF_SERVER_SERVER_H

#include "holdfast.h"

/* Where a value was given, as the beginning of the sentence that refuses it, such as
 * "holdfast.conf:12: "; NULL: the value says enough by itself. */
struct hf_server_places {
    const char *data, *postgres, *listen, *auth_file, *tls_cert, *tls_key;
};

/* Everything is borrowed for as long as the server runs. */
struct hf_server_options {
    const char *data;   /* a directory, or ":memory:"; not looked at if store.postgres is set */
    const char *listen; /* "127.0.0.1:4653" */
    unsigned threads;
    uint64_t max_body;
    unsigned max_connections;
    unsigned
        tenant_connections; /* of each tenant, with an auth file; 0: half of what there can be */
    unsigned tenant_rate;   /* requests a second of each tenant, with an auth file; 0: no limit */
    unsigned head_ms, idle_ms,
        body_ms;      /* how long a head, silence and a body may take; 0: 10 s, 60 s and 60 s */
    unsigned stop_ms; /* how long a stop waits for what is being worked on; 0: 30 s */
    unsigned
        /* how long a client may take to read an export; 0: 10 minutes, and a second for each MiB */
        send_ms;
    const char *auth_file; /* NULL: only a loopback address may be listened on */
    const char *tls_cert, *tls_key;
    bool log_json, log_hash_keys, log_duplicates;
    bool sandbox;
    void (*welcome)(const char *url); /* called once it is ready, or NULL */
    struct hf_server_places places;
    struct hf_options
        store; /* window, token length, registry, limits and postgres; the rest is filled in */
};

/* hf_server_run: listen, open the store, say on stdout that it is ready, serve until SIGTERM or
 * SIGINT, finish what is in flight, close. SIGHUP reads the certificate and the auth file again.
 * Returns the exit code of the program: 0; 2 if an option makes no sense (said on stderr); 3 if the
 * store or the address cannot be had, or the store failed. */
int hf_server_run(const struct hf_server_options *options);

struct hf_buffer;

/* hf_server_lines: append three shell commands, one a line, that show a server at `url` what a
 * retry does: place a hold, the same again, and the holds that there are. The key has the day in
 * it: pasted twice on one day they are one request, and on another day a new one. url: borrowed,
 * such as "http://127.0.0.1:4653". */
void hf_server_lines(const char *url, struct hf_buffer *out);

#endif

/* Start, signals, stop. */
#include "base/clock.h"
#include "base/filename.h"
#include "server/inner.h"
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_USAGE_ERROR = 2, EXIT_STORE = 3 };
enum { STOP_MS = 30000, STOP_IDLE_MS = 1000, STOP_PART_MS = 5000 };
enum { MEMORY_MAX = 256 << 20, PIPELINE_MAX = 128 };
enum { HEAD_MS = 10000, IDLE_MS = 60000, BODY_MS = 60000 };
/* The time to send an export, which may be as large as the store: SEND_MS, and SEND_MIB_MS for each
 * MiB. */
enum { SEND_MS = 600000, SEND_MIB_MS = 1000 };
/* How long a connection may stay open without a valid credential. */
enum { UNKNOWN_MS = 10000 };
/* File descriptors of the store (segments, snapshots, a database's connections), and of each slow
 * thread. */
enum { STORE_FILES = 64, WORKER_FILES = 8 };

/* place: of the wrong value, or NULL. */
static int complain(int code, const char *place, const char *sentence)
{
    fprintf(stderr, "holdfast: %s%s\n", place ? place : "", sentence);
    return code;
}

static void log_text(struct hf_server *s, enum hf_log_level level, const char *event,
                     const char *text)
{
    struct hf_log_field field = { .name = "text", .type = HF_LOG_TEXT, .text = hf_str(text) };
    hf_log_line(s->log, level, hf_clock_wall_ms(), event, &field, 1);
}

/* ---- Notes of the store ---- */

static void on_note(void *arg, int level, const char *line)
{
    log_text(arg, level > 0 ? HF_LOG_WARNING : HF_LOG_INFO, "store", line);
}

/* An operator or a probe must settle the claim, so the log says so although no client asks. */
static void on_unknown(void *arg, const struct hf_claim *claim)
{
    struct hf_server *s = arg;
    const struct hf_log_field fields[] = {
        { .name = "key", .type = HF_LOG_NAME, .text = claim->key },
        { .name = "tenant", .type = HF_LOG_NAME, .text = claim->tenant },
        { .name = "fence", .type = HF_LOG_NUMBER, .number = (int64_t)claim->fence },
        { .name = "begun", .type = HF_LOG_TIME, .number = claim->begun_at },
        { .name = "unknown_since", .type = HF_LOG_TIME, .number = claim->lease_expires_at },
        { .name = "on_abandon",
          .type = HF_LOG_TEXT,
          .text = hf_str(claim->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown") },
    };
    hf_log_line(s->log, HF_LOG_WARNING, hf_clock_wall_ms(), "claim-unknown", fields,
                sizeof fields / sizeof *fields);
}

/* The journal can no longer be trusted: log it and exit; the next start finds out what happened. */
static void on_fatal(void *arg, const char *sentence)
{
    struct hf_server *s = arg;
    log_text(s, HF_LOG_ERROR, "fatal", sentence);
    hf_log_drain(s->log); /* not closed: other threads still log */
    _exit(EXIT_STORE);
}

/* ---- Files that may change ---- */

static bool load_tls(const struct hf_server_options *options, struct hf_tls **tls,
                     struct hf_error *why)
{
    struct hf_tls_files files = { options->tls_cert, options->tls_key };
    *tls = NULL;
    return !options->tls_cert || hf_tls_load(&files, tls, why) == HF_OK;
}

/* Which of the two files does the message name? If they do not belong together, it begins with the
 * key's path. */
static const char *tls_place(const struct hf_server_options *o, const struct hf_error *why)
{
    size_t n = strlen(o->tls_key);
    return strncmp(why->text, o->tls_key, n < 180 ? n : 180) == 0 ? o->places.tls_key
                                                                  : o->places.tls_cert;
}

/* SIGHUP: read the auth file and the certificate again. If one cannot be read, both stay as they
 * were. */
static void reload(struct hf_server *s)
{
    struct hf_error why = { .status = HF_OK };
    struct hf_auth *auth = NULL;
    struct hf_tls *tls = NULL;
    if (s->options.auth_file && hf_auth_load(s->options.auth_file, &auth, &why) != HF_OK) {
        log_text(s, HF_LOG_ERROR, "reload-refused", why.text);
        return;
    }
    if (why.text[0])
        log_text(s, HF_LOG_WARNING, "file", why.text);
    why.text[0] = 0;
    if (!load_tls(&s->options, &tls, &why)) {
        log_text(s, HF_LOG_ERROR, "reload-refused", why.text);
        hf_auth_drop(auth);
        return;
    }
    if (why.text[0])
        log_text(s, HF_LOG_WARNING, "file", why.text);
    pthread_mutex_lock(&s->auth_lock);
    struct hf_auth *old = s->auth;
    s->auth = auth;
    pthread_mutex_unlock(&s->auth_lock);
    hf_auth_drop(old);
    hf_http_set_tls(s->http, tls);
    hf_tls_drop(tls);
    log_text(s, HF_LOG_INFO, "reloaded", "the auth file and the certificate were reloaded");
}

/* ---- Checking ---- */

static const char both_needed[] = "TLS needs both --tls-cert and --tls-key",
                  loopback_needed[] =
                      "without --auth-file the server listens on loopback addresses only, because "
                      "every caller would have full access. Give --auth-file FILE, or --listen "
                      "127.0.0.1:4653";

struct checking {
    void (*finding)(void *arg, const struct hf_server_finding *finding);
    void *arg;
    unsigned mistakes;
};

static void mistake(struct checking *c, const char *place, const char *sentence)
{
    c->mistakes++;
    c->finding(c->arg, &(struct hf_server_finding){ true, place, sentence });
}

/* A file that was read: `why` may have a warning. */
static void warning(const struct checking *c, const char *place, const struct hf_error *why)
{
    if (why->text[0])
        c->finding(c->arg, &(struct hf_server_finding){ false, place, why->text });
}

/* Can the file be opened? NULL: none was named. */
static bool opens(struct checking *c, const char *place, const char *path)
{
    char text[320];
    int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || !path)
        return true;
    snprintf(text, sizeof text, "%.200s cannot be opened: %s.", path, strerror(errno));
    mistake(c, place, text);
    return false;
}

static void files_check(struct checking *c, const struct hf_server_options *o)
{
    struct hf_error why = { .status = HF_OK };
    struct hf_auth *auth = NULL;
    struct hf_tls *tls = NULL;
    if (o->auth_file && hf_auth_load(o->auth_file, &auth, &why) != HF_OK)
        mistake(c, o->places.auth_file, why.text);
    else
        warning(c, o->places.auth_file, &why);
    hf_auth_drop(auth);
    why.text[0] = '\0';
    bool opened = opens(c, o->places.tls_cert, o->tls_cert);
    opened = opens(c, o->places.tls_key, o->tls_key) && opened;
    if (!o->tls_cert != !o->tls_key)
        mistake(c, o->tls_cert ? o->places.tls_cert : o->places.tls_key, both_needed);
    else if (opened && !load_tls(o, &tls, &why))
        mistake(c, tls_place(o, &why), why.text);
    else
        warning(c, o->places.tls_cert, &why);
    hf_tls_drop(tls);
}

static void address_check(struct checking *c, const struct hf_server_options *o)
{
    struct hf_error why = { .status = HF_OK };
    char text[400];
    bool loopback;
    if (hf_http_listen_check(o->listen, &loopback, &why) != HF_OK)
        mistake(c, o->places.listen, why.text);
    else if (!loopback && !o->auth_file) {
        snprintf(text, sizeof text, "\"%.100s\" is not a loopback address: %s", o->listen,
                 loopback_needed);
        mistake(c, o->places.listen, text);
    }
}

/* The directory must be one that this user may use, or one that can be created. */
static void directory_check(struct checking *c, const struct hf_server_options *o)
{
    char copy[4096], missing[160], text[400] = "";
    struct stat st;
    if (o->store.postgres || strcmp(o->data, ":memory:") == 0)
        return;
    snprintf(copy, sizeof copy, "%s", o->data);
    const char *parent = dirname(copy);
    if (stat(o->data, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            snprintf(text, sizeof text, "the store \"%.200s\" is not a directory", o->data);
        else if (access(o->data, R_OK | W_OK | X_OK) != 0)
            snprintf(text, sizeof text, "this user cannot read and write the directory \"%.200s\"",
                     o->data);
    } else if (errno != ENOENT) {
        snprintf(text, sizeof text, "the directory \"%.200s\" cannot be read: %s", o->data,
                 strerror(errno));
    } else if (hf_filename_missing(o->data, missing, sizeof missing), missing[0]) {
        snprintf(text, sizeof text,
                 "cannot create the directory \"%.140s\": the directory \"%s\" does not exist. "
                 "Create it first",
                 o->data, missing);
    } else if (access(parent, W_OK | X_OK) != 0) {
        snprintf(text, sizeof text, "this user cannot create the directory \"%.200s\": %s", o->data,
                 strerror(errno));
    }
    if (text[0])
        mistake(c, o->places.data, text);
}

unsigned hf_server_check(const struct hf_server_options *options,
                         void (*finding)(void *arg, const struct hf_server_finding *finding),
                         void *arg)
{
    struct checking c = { .finding = finding, .arg = arg };
    files_check(&c, options);
    address_check(&c, options);
    directory_check(&c, options);
    return c.mistakes;
}

/* ---- Starting ---- */

/* The sandbox allows the data directory but not its parent, so the directory must exist before. */
static bool make_directory(const char *path, struct hf_error *why)
{
    if (strcmp(path, ":memory:") == 0 || mkdir(path, 0700) != 0) {
        if (strcmp(path, ":memory:") == 0 || errno == EEXIST)
            return true;
        char missing[160], text[240];
        snprintf(text, sizeof text, "%s", strerror(errno));
        hf_filename_missing(path, missing, sizeof missing);
        if (missing[0])
            snprintf(text, sizeof text, "the directory \"%s\" does not exist. Create it first",
                     missing);
        snprintf(why->text, sizeof why->text, "cannot create the directory \"%.200s\": %s", path,
                 text);
        return false;
    }
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    int parent = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool durable = parent >= 0 && fsync(parent) == 0;
    if (parent >= 0)
        close(parent);
    if (!durable)
        snprintf(why->text, sizeof why->text, "cannot make the directory \"%.300s\" durable: %s",
                 path, strerror(errno));
    return durable;
}

/* With a database there is no data directory for the file of an export. */
static bool make_temporary(struct hf_server *s, struct hf_error *why)
{
    const char *folder = getenv("TMPDIR");
    int n = snprintf(s->temporary, sizeof s->temporary, "%s/holdfast-XXXXXX",
                     folder && *folder ? folder : "/tmp");
    if (n > 0 && (size_t)n < sizeof s->temporary && mkdtemp(s->temporary))
        return true;
    snprintf(why->text, sizeof why->text, "cannot create a temporary directory in \"%.200s\": %s",
             folder && *folder ? folder : "/tmp", strerror(errno));
    s->temporary[0] = '\0';
    return false;
}

/* Also removes the files of an export that is still in progress. */
static void remove_temporary(const struct hf_server *s)
{
    static const char *const endings[] = { "", ".tmp" };
    char path[sizeof s->temporary + 40];
    for (unsigned i = 0; s->temporary[0] && i < 2 * HF_SLOW_WORKERS; i++) {
        snprintf(path, sizeof path, "%s/export.%ld.%u%s", s->temporary, (long)getpid(), i / 2,
                 endings[i % 2]);
        unlink(path);
    }
    if (s->temporary[0])
        rmdir(s->temporary);
}

static bool enter_sandbox(struct hf_server *s, struct hf_error *why)
{
    const struct hf_server_options *options = &s->options;
    const char *readable[3];
    size_t count = 0;
    const char *files[] = { options->auth_file, options->tls_cert, options->tls_key };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            readable[count++] = files[i];
    bool kept = !options->store.postgres && strcmp(options->data, ":memory:") != 0;
    struct hf_sandbox sandbox = { .writable = kept ? options->data : NULL,
                                  .readable = readable,
                                  .readable_count = count,
                                  .temporary = s->temporary[0] ? s->temporary : NULL,
                                  .postgres = options->store.postgres };
    return !options->sandbox || hf_sandbox_enter(&sandbox, why) == HF_OK;
}

/* How many connections each tenant may have: the configured number, or half of all. If the system
 * allows fewer connections than max_connections, a tenant never has more than half. */
static unsigned tenant_connections(const struct hf_server *s)
{
    unsigned possible = hf_http_connections_max(s->http);
    unsigned given = s->options.tenant_connections;
    unsigned half = possible / 2 > 0 ? possible / 2 : 1;
    bool fewer = possible < s->options.max_connections;
    return given == 0 || (fewer && given > half) ? half : given;
}

/* Everything up to the sandbox: files, address, directory. Returns an exit code, or -1 to go on. */
static int prepare(struct hf_server *s)
{
    const struct hf_server_options *o = &s->options;
    struct hf_error why = { .status = HF_OK };
    struct hf_http_options http = {
        .listen = o->listen,
        .threads = o->threads,
        .files_reserved = STORE_FILES + HF_SLOW_QUEUES * HF_SLOW_WORKERS * WORKER_FILES,
        .limits = { .body_max = o->max_body,
                    .connections_max = o->max_connections,
                    .must_join = o->auth_file != NULL,
                    .unknown_ms = UNKNOWN_MS,
                    .pipeline_max = PIPELINE_MAX,
                    .head_ms = o->head_ms ? o->head_ms : HEAD_MS,
                    .idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS,
                    .body_ms = o->body_ms ? o->body_ms : BODY_MS,
                    .file_ms = o->send_ms ? o->send_ms : SEND_MS,
                    .file_mib_ms = o->send_ms ? 0 : SEND_MIB_MS,
                    .stop_idle_ms = o->stop_idle_ms ? o->stop_idle_ms : STOP_IDLE_MS,
                    .stop_part_ms = STOP_PART_MS,
                    .memory_max = MEMORY_MAX }
    };
    if (!o->tls_cert != !o->tls_key)
        return complain(EXIT_USAGE_ERROR, o->tls_cert ? o->places.tls_cert : o->places.tls_key,
                        both_needed);
    if (o->auth_file && hf_auth_load(o->auth_file, &s->auth, &why) != HF_OK)
        return complain(why.status == HF_NO_MEMORY ? EXIT_STORE : EXIT_USAGE_ERROR,
                        o->places.auth_file, why.text);
    snprintf(s->notes[0], sizeof s->notes[0], "%s", o->auth_file ? why.text : "");
    if (!load_tls(o, &http.tls, &why))
        return complain(why.status == HF_NO_MEMORY ? EXIT_STORE : EXIT_USAGE_ERROR,
                        tls_place(o, &why), why.text);
    snprintf(s->notes[1], sizeof s->notes[1], "%s", o->tls_cert ? why.text : "");
    hf_server_handler(s, &http.handler);
    s->tls = http.tls != NULL;
    enum hf_status st = hf_http_listen(&http, &s->http, &why);
    hf_tls_drop(http.tls);
    if (st != HF_OK)
        return complain(st == HF_INVALID_REQUEST ? EXIT_USAGE_ERROR : EXIT_STORE, o->places.listen,
                        why.text);
    if (!o->auth_file && !hf_http_loopback(s->http))
        return complain(EXIT_USAGE_ERROR, o->places.listen, loopback_needed);
    s->tenants.connections_max = tenant_connections(s); /* needs the limit from hf_http_listen */
    snprintf(s->url, sizeof s->url, "%s://%s", s->tls ? "https" : "http", hf_http_address(s->http));
    if (o->store.postgres ? !make_temporary(s, &why) : !make_directory(o->data, &why))
        return complain(EXIT_STORE, o->store.postgres ? NULL : o->places.data, why.text);
    if (!enter_sandbox(s, &why))
        return complain(EXIT_STORE, NULL, why.text);
    return -1;
}

/* Claims that were unknown before the start were logged then, and are not settled yet. */
static void unknown_note(struct hf_server *s)
{
    struct hf_stats stats;
    hf_stats(s->db, &stats);
    if (stats.claims_unknown == 0)
        return;
    const struct hf_log_field fields[] = {
        { .name = "count", .type = HF_LOG_NUMBER, .number = (int64_t)stats.claims_unknown },
        { .name = "oldest_since", .type = HF_LOG_TIME, .number = stats.claims_unknown_since },
        { .name = "text",
          .type = HF_LOG_TEXT,
          .text = hf_str("list them with `holdfast claim list --status unknown`") },
    };
    hf_log_line(s->log, HF_LOG_WARNING, hf_clock_wall_ms(), "claims-unknown", fields,
                sizeof fields / sizeof *fields);
}

static int open_store(struct hf_server *s)
{
    struct hf_options store = s->options.store;
    struct hf_error why = { .status = HF_OK };
    struct hf_db *db = NULL;
    store.holder = s->url;
    store.no_committer = s->options.threads == 1;
    store.on_note = on_note;
    store.on_unknown = on_unknown;
    store.on_fatal = on_fatal;
    store.arg = s;
    /* With several tenants, one tenant may use at most half of the memory. */
    if (s->auth && hf_auth_tenants(s->auth) > 1 && store.tenant_memory_max_bytes == 0)
        store.tenant_memory_max_bytes = store.memory_max_bytes / 2;
    s->tenant_memory_max = store.postgres ? 0 : store.tenant_memory_max_bytes;
    const char *place = store.postgres ? s->options.places.postgres : s->options.places.data;
    enum hf_status st = hf_open(store.postgres ? "" : s->options.data, &store, &db, &why);
    s->unsure = st == HF_INDETERMINATE;
    if (st != HF_OK)
        return complain(st == HF_INVALID_REQUEST ? EXIT_USAGE_ERROR : EXIT_STORE, place, why.text);
    s->db = db;
    unknown_note(s);
    return -1;
}

/* Warn if the limit of file descriptors is too low for max_connections. */
static void connections_note(struct hf_server *s)
{
    char text[300];
    unsigned most = hf_http_connections_max(s->http);
    if (most >= s->options.max_connections)
        return;
    int n = snprintf(text, sizeof text,
                     "the limit of open files is too low for max-connections %u; the server "
                     "accepts %u connections. Raise LimitNOFILE or ulimit -n",
                     s->options.max_connections, most);
    if (s->options.tenant_connections > s->tenants.connections_max)
        snprintf(text + n, sizeof text - (size_t)n,
                 ". Each tenant may have %u instead of tenant-connections %u",
                 s->tenants.connections_max, s->options.tenant_connections);
    log_text(s, HF_LOG_WARNING, "limits", text);
}

static int start(struct hf_server *s)
{
    struct hf_log_options log = { .json = s->options.log_json,
                                  .hash_keys = s->options.log_hash_keys,
                                  .fd = 2 };
    struct hf_error why = { .status = HF_OK };
    if (hf_log_open(&log, &s->log) != HF_OK || hf_slow_start(s) != HF_OK)
        return complain(EXIT_STORE, NULL, "cannot start background threads");
    for (size_t i = 0; i < 2; i++)
        if (s->notes[i][0])
            log_text(s, HF_LOG_WARNING, "file", s->notes[i]);
    connections_note(s);
    if (hf_http_start(s->http, &why) != HF_OK)
        return complain(EXIT_STORE, NULL, why.text);
    return open_store(s);
}

const char *hf_server_unready(const struct hf_stats *stats)
{
    return stats->database_away       ? "the database cannot be reached, or does not accept writes"
           : stats->standby_silent_ms ? "the synchronous standbys confirm nothing"
           : stats->out_of_space      ? "out of space"
           : stats->out_of_files      ? "too many open files"
           : stats->storage_failing   ? "disk error"
           : stats->memory_full
               ? "out of memory: memory-max is reached, and only endings are accepted"
           : stats->journal_damaged ? "the journal is damaged"
                                    : NULL;
}

/* ---- Running ---- */

static void serve(struct hf_server *s, const sigset_t *signals)
{
    int got = 0;
    printf("holdfast: listening on %s\n", s->url);
    fflush(stdout);
    if (s->options.welcome)
        s->options.welcome(s->url);
    while (sigwait(signals, &got) == 0 && got == SIGHUP)
        reload(s);
    log_text(s, HF_LOG_INFO, "stopping", "requests in progress are finished first");
}

/* False: a slow call is still in progress, so nothing may be freed. */
static bool stop(struct hf_server *s)
{
    bool opened = s->db != NULL;
    s->stopping = true;
    if (s->http)
        hf_http_stop(s->http, s->options.stop_ms ? s->options.stop_ms : STOP_MS);
    if (!hf_slow_stop(s))
        return false;
    hf_close(s->db);
    s->db = NULL;
    hf_http_free(s->http);
    hf_auth_drop(s->auth);
    if (s->log) {
        bool database = s->options.store.postgres != NULL;
        bool kept = database || strcmp(s->options.data, ":memory:") != 0;
        if (opened)
            log_text(s, HF_LOG_INFO, "stopped",
                     database ? "all answered requests are in the database"
                     : kept   ? "all answered requests are on disk"
                              : "the store was in memory and is lost now");
        else
            log_text(s, HF_LOG_ERROR, "not-started",
                     s->unsure
                         ? "the store could not be opened; its configuration may have been changed"
                         : "the store could not be opened; nothing was changed");
        hf_log_close(s->log);
    }
    return true;
}

int hf_server_run(const struct hf_server_options *options)
{
    struct hf_server *s = calloc(1, sizeof *s);
    sigset_t signals;
    if (!s)
        return complain(EXIT_STORE, NULL, "out of memory");
    s->options = *options;
    s->started_at = hf_clock_wall_ms();
    hf_tenants_init(&s->tenants, 0, options->tenant_rate);
    pthread_mutex_init(&s->auth_lock, NULL);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write above the file size limit then fails like a full disk */
    int code = prepare(s);
    if (code < 0)
        code = start(s);
    if (code < 0) {
        code = EXIT_DONE;
        serve(s, &signals);
    }
    bool idle = stop(s);
    remove_temporary(s);
    if (!idle) {
        hf_log_close(s->log);
        /* All answered requests are durable. A slow call still reads the store: do not close it. */
        _exit(code);
    }
    pthread_mutex_destroy(&s->auth_lock);
    hf_tenants_free(&s->tenants);
    free(s);
    return code;
}

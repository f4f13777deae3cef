/* The program with a store in a database: which store a command line means, what is refused with
 * which words, the server in its sandbox, and that no password is ever shown. */
#define _GNU_SOURCE /* syscall */
#include "api/call.h"
#include "net/kit/tls.h"
#include "postgres/kit/postgres.h"
#include "server/kit/talk.h"
#include "server/kit/watch.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET "s3cret-w0rd"

static struct postgres p;
static struct server s;
static char program[1100], conninfo[POSTGRES_CONNINFO_MAX + 400];
static char said[1 << 16]; /* by the last command, on both outputs */

static int group_set_up(void **state)
{
    (void)state;
    ssize_t n = readlink("/proc/self/exe", program,
                         sizeof program - 20); /* it stands in the folder above */
    assert_true(n > 0);
    program[n] = '\0';
    *strrchr(program, '/') = '\0';
    strcat(program, "/../holdfast");
    postgres_init(&p);
    postgres_start(&p);
    /* By name, so that the resolver is asked too. */
    snprintf(
        conninfo, sizeof conninfo,
        "host=localhost port=%d user=postgres dbname=postgres sslmode=disable password=" SECRET,
        p.port);
    return 0;
}

static int group_tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    server_init(&s);
    postgres_run(&p, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS holdfast CASCADE");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_end(&s);
    return 0;
}

/* ---- Commands ---- */

/* Run the program in an empty folder; its exit code. environment: "A=b C='d e'", or "". */
static int command(const char *environment, const char *arguments)
{
    char line[4096];
    snprintf(line, sizeof line,
             "cd %s && env -u HOLDFAST_DATA -u HOLDFAST_STORE -u HOLDFAST_POSTGRES -u "
             "HOLDFAST_SERVER %s %s %s 2>&1",
             s.dir, environment, program, arguments);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    said[fread(said, 1, sizeof said - 1, f)] = '\0';
    int status = pclose(f);
    assert_null(strstr(said, SECRET));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run a line of bash, which must end well. */
static void shell(const char *line)
{
    char *const argv[] = { (char[]){ "bash" }, (char[]){ "-c" }, strdup(line), NULL };
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execvp("bash", argv);
        _exit(127);
    }
    free(argv[2]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void says(const char *words)
{
    if (!strstr(said, words))
        fail_msg("\"%s\" is not in: %s", words, said);
}

static long long tokens(void)
{
    return postgres_number(
        &p, "SELECT CASE WHEN to_regclass('holdfast.token') IS NULL THEN -1 ELSE "
            "(xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM holdfast.token', "
            "true, true, '')))[1]::text::int END");
}

#define HOLD "hold room --for ann --duration 15m --key "

static void commands_act_on_the_database(void **state)
{
    (void)state;
    char with[900], id[HF_ID_SIZE];
    snprintf(with, sizeof with, "HOLDFAST_POSTGRES='%s'", conninfo);
    assert_int_equal(command(with, "show 00000000000000000000000000"), 3);
    says("store-absent");
    says("the first change creates a store");
    assert_int_equal(command(with, HOLD "k1 --json"), 0);
    const char *at = strstr(said, "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%s", at + 6);
    assert_int_equal(command(with, HOLD "k1 --json"), 0);
    says("(replayed");
    says(id);
    assert_int_equal(command(with, "list"), 0);
    says(id);
    assert_int_equal(command(with, "audit"), 0);
    says("No duplicate state change occurred: 1 request with a key, decided once;");
    says("all 39 checks passed");
    says("database       database \"postgres\" at localhost:");
    assert_int_equal(command(with, "audit --json"), 0);
    says("\"database\":\"database \\\"postgres\\\" at localhost:");
    assert_int_equal(command(with, "trace k1"), 0);
    says(id);
    char line[200];
    snprintf(line, sizeof line, "trace %s", id);
    assert_int_equal(command(with, line), 0);
    says("placed by key \"k1\" for 15m");
    assert_int_equal(command(with, "trace nothing"), 1);
    assert_int_equal(command(with, "export --format jsonl -"), 0);
    says("\"type\":\"end\",\"batches\":");
    says("\"writer\":");
    assert_int_equal(command(with, "export --format sqlite out.db"), 0);
    assert_int_equal(command("", "version"), 0);
    assert_int_equal(command(with, "lease grant leader --holder w1 --ttl 1h --key l1"), 0);
    assert_int_equal(command(with, "lease grant leader --holder w2 --ttl 1h"), 1);
    says("lease-held");
    assert_int_equal(command(with, "lease show leader --json"), 0);
    says("\"holder\":\"w1\"");
    assert_int_equal(command(with, "register write r --value 1 --fence 2 --key r1"), 0);
    assert_int_equal(command(with, "register write r --value 1 --fence 1"), 1);
    says("stale-fence");
    assert_int_equal(command(with, "register merge c --type counter --value '{\"n\":4}'"), 0);
    assert_int_equal(command(with, "register merge c --type counter --value '{\"m\":3}'"), 0);
    says("total     7");
    assert_int_equal(command(with, "register show c --json"), 0);
    says("\"value\":{\"m\":3,\"n\":4},\"total\":7,\"version\":2");
    assert_int_equal(command(with, "register delete c --key r2"), 0);
    assert_int_equal(command(with, "lease release leader --fence 1"), 0);
    postgres_run(&p, "UPDATE holdfast.hold SET requester = 'eve'");
    assert_int_equal(command(with, "audit"), 1);
    says("VIOLATIONS: 1, by the checks TABLES");
    says("requester is \"eve\", but in the journal it is \"ann\"");
}

/* What the export says is what the journal says. */
static void an_export_has_every_batch(void **state)
{
    (void)state;
    char with[900];
    snprintf(with, sizeof with, "HOLDFAST_POSTGRES='%s'", conninfo);
    assert_int_equal(command(with, HOLD "k1"), 0);
    assert_int_equal(command(with, "hold seat --for bob --duration 15m --key k2 --tenant shop"), 0);
    assert_int_equal(command(with, "export --format sqlite out.db"), 0);
    char line[300];
    snprintf(
        line, sizeof line,
        "cd %s && sqlite3 out.db \"SELECT count(*) FROM batches WHERE writer > 0 AND writer_batch "
        "> 0; SELECT count(*) FROM entries e JOIN batches b ON b.sequence = e.batch; SELECT key "
        "FROM hold_keys ORDER BY key\"",
        s.dir);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    said[fread(said, 1, sizeof said - 1, f)] = '\0';
    assert_int_equal(pclose(f), 0);
    char wanted[100];
    snprintf(wanted, sizeof wanted, "%lld\n%lld\nk1\nk2\n",
             postgres_number(&p, "SELECT sum(batch) FROM holdfast.writer"),
             postgres_number(&p, "SELECT count(*) FROM holdfast.journal"));
    assert_string_equal(said, wanted);
}

/* ---- Backups ---- */

/* As doc/POSTGRES.md says it: psql takes the function `begin` for the beginning of a body unless
 * its name is quoted. */
static void a_dump_is_a_store_again(void **state)
{
    static const char *const ways[] = { "pg_dump --quote-all-identifiers postgres | psql -X -q -v "
                                        "ON_ERROR_STOP=1 -d copy >/dev/null",
                                        "pg_dump -Fc postgres | pg_restore -e -d copy" };
    (void)state;
    char with[900], line[2000];
    snprintf(with, sizeof with, "HOLDFAST_POSTGRES='%s'", conninfo);
    assert_int_equal(command(with, HOLD "k1 --json"), 0);
    for (size_t i = 0; i < 2; i++) {
        postgres_run(&p, "DROP DATABASE IF EXISTS copy");
        postgres_run(&p, "CREATE DATABASE copy TEMPLATE template0");
        snprintf(
            line, sizeof line,
            "export PATH=$(pg_config --bindir):$PATH PGHOST=127.0.0.1 PGPORT=%d PGUSER=postgres "
            "PGPASSWORD=" SECRET "; set -o pipefail; %s",
            p.port, ways[i]);
        shell(line);
        snprintf(with, sizeof with, "HOLDFAST_POSTGRES='%s dbname=copy'", conninfo);
        assert_int_equal(command(with, "audit"), 0);
        says("all 39 checks passed");
        assert_int_equal(command(with, HOLD "k1 --json"), 0);
        says("(replayed");
        assert_int_equal(command(with, HOLD "k2 --json"), 1);
        says("resource-unavailable");
    }
    postgres_run(&p, "DROP DATABASE copy");
}

/* ---- Which store is meant ---- */

static void the_command_line_goes_before_the_environment(void **state)
{
    (void)state;
    char with[1500], postgres[900], line[1500];
    snprintf(postgres, sizeof postgres, "HOLDFAST_POSTGRES='%s'", conninfo);
    assert_int_equal(command(postgres, HOLD "k1 --data d"), 0); /* a directory */
    assert_int_equal(tokens(), -1);
    assert_int_equal(command(postgres, HOLD "k1 --store journal --json"), 0);
    assert_int_equal(tokens(), -1);
    snprintf(with, sizeof with, "HOLDFAST_DATA=e HOLDFAST_STORE=journal");
    snprintf(line, sizeof line, HOLD "k2 --postgres '%s'", conninfo);
    assert_int_equal(command(with, line), 0); /* the database */
    assert_int_equal(tokens(), 1);
    snprintf(with, sizeof with, "HOLDFAST_DATA=e %s", postgres);
    assert_int_equal(command(with, "resource room --capacity 9"), 0);
    assert_int_equal(command(with, HOLD "k3"), 0);
    assert_int_equal(tokens(), 2);
    snprintf(with, sizeof with, "HOLDFAST_STORE=journal %s", postgres);
    assert_int_equal(command(with, "hold r4 --for a --duration 1m --key k4"),
                     0); /* --store counts */
    assert_int_equal(tokens(), 2);
    snprintf(with, sizeof with,
             "HOLDFAST_DATA=e PGHOST=127.0.0.1 PGPORT=%d PGUSER=postgres PGPASSWORD=" SECRET,
             p.port);
    assert_int_equal(command(with, HOLD "k5 --store postgres"), 0); /* libpq finds it by itself */
    assert_int_equal(tokens(), 3);
    snprintf(with, sizeof with, "HOLDFAST_SERVER=http://127.0.0.1:1 %s", postgres);
    assert_int_equal(command(with, HOLD "k6 --store postgres"), 0);
    assert_int_equal(tokens(), 4);
    assert_int_equal(command(with, HOLD "k7 --timeout 100ms"),
                     3); /* the server, which is not there */
    assert_int_equal(tokens(), 4);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *words;
    } wrong[] = {
        { "list --data d --store postgres",
          "--data names a directory, but with --store postgres the store is in a "
          "database" },
        { "list --store journal --postgres host=h",
          "--postgres names a database, but with --store journal" },
        { "list --data d --postgres host=h", "--data and --postgres exclude each other" },
        { "list --server http://h --postgres host=h",
          "--postgres and --server exclude each other" },
        { "list --server http://h --store journal", "--store and --server exclude each other" },
        { "list --store paper",
          "--store: \"paper\" is invalid; expected: one of journal, postgres" },
        { "list --postgres 'host=h password=very " SECRET "'",
          "The connection string cannot be read: missing" },
        { "list --postgres postgresql://app:" SECRET "/x@h/d", "the port is not a number" },
        { "list --postgres", "--postgres needs a value: --postgres CONNINFO" },
        { "list --postgres host=h --postgres host=" SECRET, "--postgres is given twice" },
        { "serve --memory-max 1GiB --postgres host=h",
          "--memory-max is only for a store in a directory" },
        { "bench --postgres host=h", "" },
        { "version --postgres host=h", "version does not accept --postgres" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (command("", wrong[i].arguments) != 2)
            fail_msg("%s: %s", wrong[i].arguments, said);
        says(wrong[i].words);
    }
    assert_int_equal(command("", "list --postgres 'host=127.0.0.1 port=1 password=" SECRET "'"), 3);
    says("storage-failure: ");
    assert_int_equal(command("", "audit --postgres 'host=127.0.0.1 port=1 password=" SECRET "'"),
                     3);
    says("storage-failure: Cannot connect to ");
    assert_int_equal(command("", "serve --postgres 'host=127.0.0.1 port=1 password=" SECRET
                                 "' --sandbox off --listen 127.0.0.1:0"),
                     3);
}

static void the_config_file_has_them_too(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/conf", s.dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "listen = 127.0.0.1:0\ndata = d\npostgres = \"host=h password=" SECRET "\"\n");
    fclose(f);
    assert_int_equal(command("", "serve --config conf"), 2);
    says("conf:3: --data and --postgres exclude each other");
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "listen = 127.0.0.1:0\nstore = postgres\ndata = d\n");
    fclose(f);
    assert_int_equal(command("", "serve --config conf"), 2);
    says("conf:3: --data names a directory");
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "store = postgres\npostgres = \"host=127.0.0.1 port=1 password=" SECRET "\"\n");
    fclose(f);
    assert_int_equal(command("HOLDFAST_DATA=/nonexistent/store",
                             "serve --config conf --sandbox off --listen 127.0.0.1:0"),
                     2);
    says("conf:2: the config file says that the store is in a database, but HOLDFAST_DATA names a "
         "directory");
    assert_int_equal(command("", "serve --config conf --data d --sandbox off --listen 127.0.0.1:0"),
                     2);
    says("conf:2: the config file says that the store is in a database, but --data names a "
         "directory. Remove one of them, or decide with --store journal");
    assert_int_equal(
        command("", "serve --config conf --data /nonexistent/store --store journal --sandbox "
                    "off --listen 127.0.0.1:0"),
        3);
    says("cannot create the directory"); /* the command line goes before the file */
    assert_int_equal(command("", "serve --config conf --sandbox off --listen 127.0.0.1:0"), 3);
    says("conf:2: ");
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "postgres = \"host=h password=a " SECRET "\"\n");
    fclose(f);
    assert_int_equal(command("", "serve --config conf"), 2);
    says("conf:1: The connection string cannot be read");
}

/* ---- The server ---- */

static void needs_a_sandbox(void)
{
    if (WATCH_SANITIZED) {
        print_message("skipped: a sanitizer needs calls that the sandbox does not allow\n");
        skip();
    }
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1) { /* its version */
        print_message("skipped: this kernel has no Landlock\n");
        skip();
    }
}

/* Start the program; `sandbox` is on or off. */
static void serve(const char *sandbox)
{
    static const char *argv[16];
    const char *own[] = { program, "serve",      "--listen", "127.0.0.1:0", "--sandbox",
                          sandbox, "--postgres", conninfo,   NULL };
    memcpy(argv, own, sizeof own);
    s.argv = argv;
    setenv("TMPDIR", s.dir, 1);
    server_start(&s);
    unsetenv("TMPDIR");
}

/* How many entries of the folder begin so? */
static unsigned entries_of(const char *folder, const char *prefix)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        count += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return count;
}

static void holds_no_secret(const char *text, const char *what)
{
    if (strstr(text, SECRET))
        fail_msg("%s shows the password: %s", what, text);
}

/* Neither the list of processes nor anything that the server says. */
static void nothing_shows_the_password(struct talk *t)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)s.pid);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, line, sizeof line - 1);
    close(fd);
    assert_true(n > 0);
    for (ssize_t i = 0; i < n; i++)
        line[i] = line[i] ? line[i] : ' ';
    line[n] = '\0';
    holds_no_secret(line, "the process");
    assert_non_null(strstr(line, "--postgres ****"));
    for (size_t i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        if (call->method != HF_HTTP_GET || strchr(call->path, '{'))
            continue;
        int want = strcmp(call->path, "/v1/tokens") == 0 ? 404 : 200; /* it has no such number */
        const char *query = want == 404 ? "?client=till&sequence=1" : "";
        if (talkf(t, NULL, NULL, "GET %s%s", call->path, query) != want)
            fail_msg("GET %s: %d %s", call->path, t->got.status, t->got.body);
        holds_no_secret(t->got.body, call->path);
        holds_no_secret(t->got.head, call->path);
    }
    char *log = server_log(&s);
    holds_no_secret(log, "the log");
    free(log);
}

#define PLACE "{\"resource\":\"r\",\"requester\":\"q\",\"duration\":\"1h\"}"

static void works(const char *sandbox)
{
    struct talk t;
    serve(sandbox);
    assert_int_equal(entries_of(s.dir, "holdfast-"), 1);
    talk_open(&t, &s);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Holdfast-Verdict"), "ok");
    assert_int_equal(talk(&t, "GET /v1/trace/k1", NULL, NULL), 200);
    assert_non_null(strstr(t.got.body, "every retry until"));
    assert_int_equal(talk(&t, "GET /v1/trace/k2", NULL, NULL), 404);
    assert_int_equal(talk(&t, "GET /v1/export?format=sqlite", NULL, NULL), 200);
    assert_memory_equal(t.got.body, "SQLite format 3", 16);
    assert_int_equal(talk(&t, "GET /v1/export?format=jsonl", NULL, NULL), 200);
    assert_non_null(strstr(t.got.body, "\"type\":\"end\""));
    assert_int_equal(talk(&t, "GET /", NULL, NULL), 200);
    assert_non_null(strstr(t.got.body, "at localhost:"));
    nothing_shows_the_password(&t);
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    assert_int_equal(entries_of(s.dir, "holdfast-"), 0);
    char *log = server_log(&s);
    assert_non_null(strstr(log, "all answered requests are in the database"));
    free(log);
}

static void the_server_answers_every_question(void **state)
{
    (void)state;
    works("off");
}

static void the_server_answers_in_its_sandbox(void **state)
{
    (void)state;
    needs_a_sandbox();
    works("on");
}

/* Ask until it is ready, or is not. */
static void await_ready(struct talk *t, int status)
{
    int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
    while (talk(t, "GET /readyz", NULL, NULL) != status) {
        if (server_clock_ms() > until)
            fail_msg("/readyz is not %d: %s", status, t->got.body);
        server_pause_ms(50);
    }
}

/* The database goes and comes back, and the server, which gave up nearly everything, finds it again
 * by its name. */
static void goes_and_comes(const char *sandbox)
{
    struct talk t;
    serve(sandbox);
    talk_open(&t, &s);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE), 201);
    await_ready(&t, 200);
    postgres_stop(&p, POSTGRES_IMMEDIATE);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE), 503);
    await_ready(&t, 503);
    assert_non_null(strstr(
        t.got.body, "\"why\":\"the database cannot be reached, or does not accept writes\""));
    assert_int_equal(talk(&t, "GET /healthz", NULL, NULL), 200);
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 503);
    assert_int_equal(talk(&t, "GET /", NULL, NULL), 200);
    assert_non_null(strstr(t.got.body, "the database cannot be reached"));
    assert_true(talk_figure(&t, "holdfast_ready") == 0);
    assert_true(talk_figure(&t, "holdfast_database_up") == 0);
    assert_true(talk_figure(&t, "holdfast_out_of_space") == 0);
    char *log = server_log(&s);
    holds_no_secret(log, "the log");
    free(log);
    postgres_start(&p);
    await_ready(&t, 200);
    assert_true(talk_figure(&t, "holdfast_database_up") == 1);
    int status = talk(&t, "POST /v1/holds", "k2",
                      "{\"resource\":\"r2\",\"requester\":\"q\",\"duration\":\"1h\"}");
    assert_true(status == 201 ||
                status == 422); /* 422: the first try was decided after all, with another body */
    assert_int_equal(talk(&t, "POST /v1/holds", "k3",
                          "{\"resource\":\"r3\",\"requester\":\"q\",\"duration\":\"1h\"}"),
                     201);
    assert_int_equal(talk(&t, "GET /v1/audit", NULL, NULL), 200);
    assert_string_equal(reply_field(&t.got, "Holdfast-Verdict"), "ok");
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
}

static void the_database_goes_and_comes_back(void **state)
{
    (void)state;
    goes_and_comes("off");
}

static void it_comes_back_in_the_sandbox(void **state)
{
    (void)state;
    needs_a_sandbox();
    goes_and_comes("on");
}

/* The same over TLS, with an authority of our own: libpq reads its file at each connection. */
static void it_comes_back_over_tls(void **state)
{
    (void)state;
    struct tls_files files;
    struct stat owner;
    char folder[600], before[sizeof conninfo];
    needs_a_sandbox();
    snprintf(folder, sizeof folder, "%s/tls", s.dir);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(chmod(s.dir, 0755), 0);
    tls_files_make(&files, folder, "db", -60, 3600, NULL);
    assert_true(stat(p.data, &owner) == 0 && chown(files.key, owner.st_uid, owner.st_gid) == 0);
    postgres_set(&p, "ssl", "on");
    postgres_set(&p, "ssl_cert_file", files.cert);
    postgres_set(&p, "ssl_key_file", files.key);
    postgres_stop(&p, POSTGRES_FAST);
    postgres_start(&p);
    memcpy(before, conninfo, sizeof before);
    snprintf(
        conninfo, sizeof conninfo,
        "host=localhost port=%d user=postgres dbname=postgres sslmode=verify-full sslrootcert=%s "
        "password=" SECRET,
        p.port, files.cert);
    goes_and_comes("on");
    memcpy(conninfo, before, sizeof before);
    postgres_set(&p, "ssl", "off");
    postgres_stop(&p, POSTGRES_FAST);
    postgres_start(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(commands_act_on_the_database),
        TEST(an_export_has_every_batch),
        TEST(a_dump_is_a_store_again),
        TEST(the_command_line_goes_before_the_environment),
        TEST(what_does_not_go_together_is_refused),
        TEST(the_config_file_has_them_too),
        TEST(the_server_answers_every_question),
        TEST(the_server_answers_in_its_sandbox),
        TEST(the_database_goes_and_comes_back),
        TEST(it_comes_back_in_the_sandbox),
        TEST(it_comes_back_over_tls),
    };
    return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}

/* What is in the journal, held against the ledgers: each operation that was answered has one entry,
 * in the order in which it was decided, and there is no entry that nobody asked for. */
#define _GNU_SOURCE /* environ */
#include "crash/check.h"
#include "support/test.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run the program with these arguments; what it says goes to DIR/said. False after a complaint
 * unless it ends with 0. */
static bool program_run(struct crash_check *k, char *const argv[])
{
    char said[600];
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t actions;
    snprintf(said, sizeof said, "%s/said", k->server->dir);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    bool ran = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) == 0 &&
               waitpid(pid, &status, 0) == pid;
    posix_spawn_file_actions_destroy(&actions);
    if (ran && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return crash_complain(k, "%s %s ended with %d; what it said is in %s", argv[0], argv[1],
                          ran && WIFEXITED(status) ? WEXITSTATUS(status) : -1, said);
}

/* ---- Which operation ---- */

void crash_index_make(const struct crash_check *k, struct crash_index *x)
{
    *x = (struct crash_index){ .check = k };
    assert_true(k->clients <= CRASH_CLIENTS_MAX);
    for (unsigned c = 0; c < k->clients; c++) {
        const struct crash_ledger *l = &k->ledgers[c];
        x->positions[c] = calloc(l->count + 1, sizeof *x->positions[c]);
        x->by_sequence[c] = calloc(l->count + 2, sizeof(struct crash_op *));
        assert_true(x->positions[c] && x->by_sequence[c]);
        for (size_t i = 0; i < l->count; i++)
            if (l->ops[i]->sequence) {
                x->sequences[c] = l->ops[i]->sequence;
                x->by_sequence[c][l->ops[i]->sequence] = l->ops[i];
            }
    }
}

void crash_index_free(struct crash_index *x)
{
    for (unsigned c = 0; c < x->check->clients; c++) {
        free(x->positions[c]);
        free(x->by_sequence[c]);
    }
}

struct crash_op *crash_index_name(const struct crash_index *x, const char *name)
{
    unsigned c = 0, number = 0;
    if (sscanf(name, "c%u-%u", &c, &number) != 2 || c >= x->check->clients ||
        number >= x->check->ledgers[c].count)
        return NULL;
    return x->check->ledgers[c].ops[number];
}

struct crash_op *crash_index_sequence(const struct crash_index *x, const char *client,
                                      uint64_t sequence)
{
    unsigned c = 0;
    if (sscanf(client, "c%u", &c) != 1 || c >= x->check->clients || sequence > x->sequences[c])
        return NULL;
    return x->by_sequence[c][sequence];
}

/* ---- Entries ---- */

/* The operation that the entry is about; NULL if nobody asked for it. */
static struct crash_op *entry_op(const struct crash_index *x, const char *entry)
{
    char key[48], client[16];
    crash_text(entry, "client", client, sizeof client);
    if (client[0])
        return crash_index_sequence(x, client, (uint64_t)crash_number(entry, "sequence"));
    return crash_index_name(x, crash_text(entry, "key", key, sizeof key));
}

/* Is the entry what the client was told? */
static bool entry_fits(const struct crash_op *op, const char *entry, const char *rows)
{
    char action[32], status[32], id[48], told[64];
    const char *expected = op->kind == CRASH_GRANT ? "grant" : crash_calls[op->kind].op;
    crash_text(entry, "action", action, sizeof action);
    crash_text(entry, "status", status, sizeof status);
    if (strcmp(action, expected) != 0)
        return false;
    if (!crash_op_done(op))
        return strcmp(status, crash_text(op->body, "code", told, sizeof told)) == 0;
    bool made = op->kind == CRASH_PLACE || op->kind == CRASH_NUMBERED || op->kind == CRASH_REVERSE;
    snprintf(told, sizeof told, "\"id\":\"%s\"", crash_text(op->body, "id", id, sizeof id));
    return strcmp(status, "ok") == 0 && (!made || strstr(rows, told));
}

static bool entry_read(struct crash_check *k, struct crash_index *x, char *line)
{
    char *rows = strstr(line, ",\"rows\":[");
    long long position = crash_number(line, "position");
    if (!rows)
        return crash_complain(k, "an entry without rows: %s", line);
    *rows++ = 0;
    k->entries++;
    if (!strstr(line, "\"digest\":"))
        return true; /* it carries no key; the store's own, or one that is told by its record */
    struct crash_op *op = entry_op(x, line);
    if (!op || !crash_calls[op->kind].keyed)
        return crash_complain(k, "an entry that nobody asked for: %s", line);
    uint64_t *place = &x->positions[op->client][op->number];
    if (*place)
        return crash_complain(k, "c%u-%u was done twice, at %llu and at %lld", op->client,
                              op->number, (unsigned long long)*place, position);
    *place = (uint64_t)position;
    return entry_fits(op, line, rows) ||
           crash_complain(k, "c%u-%u was told %d %s, and the journal has %s", op->client,
                          op->number, op->status, op->body, line);
}

/* Nothing that was answered is missing. */
static bool entries_whole(struct crash_check *k, const struct crash_index *x)
{
    for (unsigned c = 0; c < k->clients; c++)
        for (size_t i = 0; i < k->ledgers[c].count; i++) {
            const struct crash_op *op = k->ledgers[c].ops[i];
            if (crash_calls[op->kind].keyed && !x->positions[c][i])
                return crash_complain(k, "c%u-%zu was told %d, and the journal has nothing of it",
                                      c, i, op->status);
        }
    return true;
}

static bool export_read(struct crash_check *k, const char *path)
{
    struct crash_index x;
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    bool fine = file != NULL || crash_complain(k, "there is no export at %s", path), ended = false;
    crash_index_make(k, &x);
    for (ssize_t n; fine && (n = getline(&line, &room, file)) > 0;) {
        if (strncmp(line, "{\"type\":\"entry\",", 16) == 0)
            fine = entry_read(k, &x, line);
        ended = strncmp(line, "{\"type\":\"end\",", 14) == 0;
    }
    fine = fine && (ended || crash_complain(k, "the export has no end")) && entries_whole(k, &x);
    crash_index_free(&x);
    free(line);
    if (file)
        fclose(file);
    return fine;
}

/* Run the program's command on the store; file: what comes behind the options, or NULL. */
static bool command_run(struct crash_check *k, const char *command, const char *format,
                        const char *file)
{
    char parts[6][600];
    char *argv[7] = { NULL };
    snprintf(parts[0], sizeof parts[0], "%s", k->program);
    snprintf(parts[1], sizeof parts[1], "%s", command);
    snprintf(parts[2], sizeof parts[2], "--store=%s", k->postgres ? "postgres" : "journal");
    snprintf(parts[3], sizeof parts[3], k->postgres ? "--postgres=%s" : "--data=%s",
             k->postgres ? k->postgres : k->server->data);
    for (unsigned i = 0; i < 4; i++)
        argv[i] = parts[i];
    if (file) {
        snprintf(parts[4], sizeof parts[4], "%s", format);
        snprintf(parts[5], sizeof parts[5], "%s", file);
        argv[4] = parts[4];
        argv[5] = parts[5];
    }
    return program_run(k, argv);
}

bool crash_check_export(struct crash_check *k, char file[600])
{
    snprintf(file, 600, "%s/export.jsonl", k->server->dir);
    return command_run(k, "export", "--format=jsonl", file);
}

bool crash_check_journal(struct crash_check *k)
{
    char file[600];
    return command_run(k, "audit", NULL, NULL) && crash_check_export(k, file) &&
           export_read(k, file) && crash_check_history(k);
}

#include "crash/ledger.h"

#include "support/test.h"

#include <inttypes.h>
#include <time.h>

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool crash_ledger_make(struct crash_ledger *l, const char *path, unsigned client)
{
    *l = (struct crash_ledger){ .file = fopen(path, "w"), .client = client };
    return l->file != NULL;
}

void crash_ledger_free(struct crash_ledger *l)
{
    if (l->file)
        fclose(l->file);
    for (size_t i = 0; i < l->count; i++) {
        free(l->ops[i]->body);
        free(l->ops[i]);
    }
    free(l->ops);
    *l = (struct crash_ledger){ .file = NULL };
}

static struct crash_op *op_add(struct crash_ledger *l, const struct crash_op *op)
{
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->ops = realloc(l->ops, l->room * sizeof(struct crash_op *));
        assert_non_null(l->ops);
    }
    struct crash_op *copy = malloc(sizeof *copy);
    assert_non_null(copy);
    *copy = *op;
    copy->client = l->client;
    copy->number = (unsigned)l->count;
    l->ops[l->count++] = copy;
    return copy;
}

struct crash_op *crash_ledger_add(struct crash_ledger *l, const struct crash_op *op)
{
    struct crash_op *copy = op_add(l, op);
    fprintf(l->file, "+\t%u\t%d\t%u\t%s\t%s\n", copy->number, (int)copy->kind, copy->sequence,
            copy->subject, copy->fields);
    return copy;
}

/* The first time counts: whatever is sent later may be its replay. */
static void sending_keep(struct crash_op *op, uint64_t ns)
{
    op->attempts++;
    if (!op->called_ns)
        op->called_ns = ns;
}

void crash_ledger_sent(struct crash_ledger *l, struct crash_op *op, char how)
{
    uint64_t ns = clock_ns();
    sending_keep(op, ns);
    fprintf(l->file, ">\t%u\t%c\t%" PRIu64 "\n", op->number, how, ns);
}

bool crash_ledger_put_off(int status, const char *body)
{
    return status == 503 || strcmp(body, "{\"seen\":true}") == 0;
}

/* The first answer counts, and "not now" is none. */
static void answer_keep(struct crash_op *op, int status, uint64_t ns, const char *body)
{
    bool unsure = !op->status && status == 503 && strstr(body, "\"code\":\"indeterminate\"");
    op->doubts += unsure;
    op->unknowns += unsure;
    if (op->status || crash_ledger_put_off(status, body))
        return;
    op->status = status;
    op->answered_ns = ns;
    op->body = strdup(body);
    assert_non_null(op->body);
}

void crash_ledger_answered(struct crash_ledger *l, struct crash_op *op, int status, bool replayed,
                           const char *body)
{
    uint64_t ns = clock_ns();
    fprintf(l->file, "=\t%u\t%d\t%d\t%" PRIu64 "\t%s\n", op->number, status, replayed, ns, body);
    answer_keep(op, status, ns, body);
}

void crash_ledger_doubted(struct crash_ledger *l, struct crash_op *op)
{
    op->doubts++;
    fprintf(l->file, "?\t%u\n", op->number);
}

void crash_ledger_fenced(struct crash_ledger *l, struct crash_op *op, uint64_t fence)
{
    op->fence = fence;
    fprintf(l->file, "f\t%u\t%llu\n", op->number, (unsigned long long)fence);
}

void crash_ledger_says(struct crash_ledger *l, const char *sentence)
{
    fprintf(l->file, "!\t%s\n", sentence);
}

void crash_ledger_flush(struct crash_ledger *l)
{
    fflush(l->file);
}

/* ---- Reading ---- */

/* The next part of the line, which ends with a tab or the line. "" if there is none. */
static char *part(char **line)
{
    char *from = *line;
    size_t size = strcspn(from, "\t");
    *line = from + size + (from[size] != 0);
    from[size] = 0;
    return from;
}

static bool added(struct crash_ledger *l, unsigned long number, char *rest)
{
    struct crash_op op = { .kind = (enum crash_kind)strtoul(part(&rest), NULL, 10) };
    op.sequence = (unsigned)strtoul(part(&rest), NULL, 10);
    snprintf(op.subject, sizeof op.subject, "%s", part(&rest));
    snprintf(op.fields, sizeof op.fields, "%s", rest);
    if (number != l->count || (unsigned)op.kind >= CRASH_KINDS)
        return false;
    op_add(l, &op);
    return true;
}

static bool line_read(struct crash_ledger *l, char *line)
{
    char sign = *part(&line);
    if (sign == '!')
        return true;
    unsigned long number = strtoul(part(&line), NULL, 10);
    if (sign == '+')
        return added(l, number, line);
    if (number >= l->count)
        return false;
    struct crash_op *op = l->ops[number];
    if (sign == '=') {
        int status = (int)strtol(part(&line), NULL, 10);
        (void)part(&line); /* whether it was a replay */
        uint64_t ns = strtoull(part(&line), NULL, 10);
        answer_keep(op, status, ns, line);
    } else if (sign == '>') {
        (void)part(&line); /* how */
        sending_keep(op, strtoull(line, NULL, 10));
    } else if (sign == 'f') {
        op->fence = strtoull(line, NULL, 10);
    }
    op->doubts += sign == '?';
    return strchr(">=?f", sign) != NULL;
}

bool crash_ledger_read(struct crash_ledger *l, const char *path, unsigned client, char *complaint,
                       size_t size)
{
    *l = (struct crash_ledger){ .client = client };
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, number = 0;
    bool fine = file != NULL;
    for (ssize_t n; fine && (n = getline(&line, &room, file)) > 0;) {
        number++;
        fine = line[n - 1] == '\n';
        line[n - 1] = 0;
        fine = fine && line_read(l, line);
    }
    if (!fine)
        snprintf(complaint, size, "the ledger %s does not make sense at line %zu", path, number);
    free(line);
    if (file)
        fclose(file);
    return fine;
}

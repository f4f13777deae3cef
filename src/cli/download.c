/* holdfast export through a server. The file appears here complete or not at all. */
#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG_WAIT_MS = 3600000 };

/* "code: FILE what", the name made safe for a terminal. */
static void complain(const struct hf_cli *cli, enum hf_status status, const char *file,
                     const char *what)
{
    struct hf_buffer text = { 0 };
    hf_cli_add_clean(&text, hf_str(file));
    hf_cli_error(cli, "%s: %s %s", hf_status_code(status), hf_buffer_text(&text), what);
    hf_buffer_free(&text);
}

/* Fetch the export into `sink`. whole: out, true if it is complete. */
static enum hf_cli_exit fetch(struct hf_cli *cli, bool sqlite, FILE *sink, bool *whole)
{
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    *whole = false;
    if (hf_client_encode_other(HF_CALL_EXPORT, hf_mem(NULL, 0),
                               sqlite ? "format=sqlite" : "format=jsonl", &call, &why) != HF_OK) {
        hf_cli_error(cli, "export: %s", why.text);
        return HF_EXIT_STORE;
    }
    call.accept = sqlite ? "application/vnd.sqlite3" : "application/x-ndjson";
    call.wait_ms = cli->values[HF_OPT_TIMEOUT] ? cli->wait_ms : LONG_WAIT_MS;
    call.sink = sink;
    enum hf_cli_exit code = hf_cli_remote_call(cli, &call, &answer, false);
    *whole = code == HF_EXIT_DONE;
    if (*whole && strcmp(answer.head.verdict, "damaged") == 0) {
        hf_cli_error(cli,
                     "%s: The server's journal is damaged. The undamaged records were exported. "
                     "`holdfast audit` shows the damage.",
                     hf_status_code(HF_STORE_DAMAGED));
        code = HF_EXIT_REFUSED;
    }
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return code;
}

/* Give the complete file its name in one step, without replacing another file: link refuses that,
 * rename does not. File systems without links get the rename, after a second check. */
static bool name_give(const char *tmp, const char *file)
{
    struct stat st;
    if (link(tmp, file) == 0)
        return unlink(tmp) == 0;
    return errno != EEXIST && lstat(file, &st) != 0 && rename(tmp, file) == 0;
}

/* Fetch into `tmp`, a new file, and rename it to `file` when it is complete. */
static enum hf_cli_exit fetch_file(struct hf_cli *cli, bool sqlite, const char *tmp,
                                   const char *file)
{
    bool whole = false;
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* as a local export does */
    FILE *sink = fd < 0 ? NULL : fdopen(fd, "w");
    if (!sink) {
        complain(cli, HF_STORAGE_FAILURE, tmp,
                 "cannot be created. Name another file, in a writable folder.");
        if (fd >= 0)
            close(fd);
        return HF_EXIT_STORE;
    }
    enum hf_cli_exit code = fetch(cli, sqlite, sink, &whole);
    bool written = fflush(sink) == 0 && fsync(fd) == 0;
    written = fclose(sink) == 0 && written;
    if (whole && written && name_give(tmp, file))
        return code;
    if (whole)
        complain(cli, HF_STORAGE_FAILURE, file,
                 "could not be written or renamed. Export again, to another file.");
    unlink(tmp);
    return whole ? HF_EXIT_STORE : code;
}

static enum hf_cli_exit export_to(struct hf_cli *cli, bool sqlite, const char *file)
{
    struct stat st;
    struct hf_buffer tmp = { 0 };
    enum hf_cli_exit code = HF_EXIT_REFUSED;
    hf_buffer_printf(&tmp, "%s.tmp", file);
    const char *beside = hf_buffer_text(&tmp);
    if (lstat(file, &st) == 0)
        complain(cli, HF_INVALID_REQUEST, file,
                 "already exists and was not changed. Name another file.");
    else if (!beside)
        code = HF_EXIT_STORE;
    else if (lstat(beside, &st) == 0)
        complain(cli, HF_INVALID_REQUEST, beside,
                 "already exists, perhaps from an interrupted export. Remove it.");
    else
        code = fetch_file(cli, sqlite, beside, file);
    hf_buffer_free(&tmp);
    return code;
}

enum hf_cli_exit hf_cli_remote_export(struct hf_cli *cli, bool sqlite)
{
    bool whole;
    enum hf_cli_exit code = hf_cli_remote_open(cli);
    if (code != HF_EXIT_DONE)
        return code;
    code = strcmp(cli->args[0], "-") == 0 ? fetch(cli, sqlite, stdout, &whole)
                                          : export_to(cli, sqlite, cli->args[0]);
    hf_cli_close(cli, false);
    return code;
}

/* The commands through a server: the same messages and exit codes as with a directory, and one more
 * case: if an answer is lost, the outcome is unknown. */
#include "api/problem.h"
#include "base/bytes.h"
#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Long enough to read the journal of a large store. */
enum { LONG_WAIT_MS = 3600000 };

/* ---- No answer ---- */

/* Append how the user can find out what happened. */
static void retry_advice(const struct hf_cli *cli, const struct hf_client_call *call,
                         struct hf_buffer *out)
{
    const char *key = cli->values[HF_OPT_KEY] ? cli->values[HF_OPT_KEY] : cli->key;
    if (cli->keyed && cli->values[HF_OPT_CLIENT]) {
        hf_buffer_printf(out, "retry with the same number, --sequence %s --client ",
                         cli->values[HF_OPT_SEQUENCE]);
        hf_cli_add_quoted(out, hf_str(cli->values[HF_OPT_CLIENT]));
        hf_buffer_add_text(out, ". The retry returns the first answer, or does the work now, once");
    } else if (cli->keyed) {
        hf_buffer_add_text(out, "retry with the same key, --key ");
        hf_cli_add_quoted(out, hf_str(key));
        hf_buffer_add_text(out, ". The retry returns the first answer, or does the work now, once");
    } else if (call->again) {
        hf_buffer_add_text(out, "retrying is safe");
    } else if (cli->command->names_tenant) { /* claim begin */
        hf_buffer_add_text(out, "holdfast claim show says whether it was begun");
    } else {
        hf_buffer_add_text(out, "holdfast check shows whether the identity is recorded");
    }
}

enum hf_cli_exit hf_cli_remote_lost(struct hf_cli *cli, const struct hf_client_call *call,
                                    const struct hf_error *why)
{
    bool unknown = call->changes && why->status == HF_INDETERMINATE;
    struct hf_buffer text = { 0 };
    hf_cli_add_clean(&text, hf_str(why->text));
    if (unknown) {
        hf_buffer_add_text(&text, ". It may have happened: ");
        retry_advice(cli, call, &text);
    }
    struct hf_refusal problem = {
        .code = unknown ? hf_status_code(HF_INDETERMINATE) : "server-failed",
        .title = unknown ? "The outcome is unknown" : "The server cannot be reached",
        .detail = hf_str(hf_buffer_text(&text)),
        .http_status = 503,
        .retry = HF_RETRY_SAME_KEY
    };
    hf_cli_say_problem(cli, &problem);
    hf_buffer_free(&text);
    return unknown ? HF_EXIT_UNKNOWN : HF_EXIT_STORE;
}

/* The answer is neither of the accepted type nor a refusal of a Holdfast server. A proxy that
 * answers 3xx or 4xx has not forwarded the request; with any other status it may have. */
static enum hf_cli_exit strange(struct hf_cli *cli, const struct hf_client_call *call,
                                const struct hf_client_answer *answer)
{
    unsigned status = answer->head.status;
    struct hf_error why = { .status = status >= 300 && status < 500 ? HF_STORAGE_FAILURE
                                                                    : HF_INDETERMINATE };
    snprintf(
        why.text, sizeof why.text,
        "the answer from %.150s is not from a Holdfast server, perhaps from a proxy: status %u, %s",
        hf_client_url(cli->client), status,
        answer->head.content_type[0] ? answer->head.content_type : "no content type");
    return hf_cli_remote_lost(cli, call, &why);
}

/* ---- Refusals ---- */

/* The body as it is, with a line end. */
static void body_print(const struct hf_client_answer *answer)
{
    const struct hf_buffer *body = &answer->body;
    if (body->size > 0)
        fwrite(body->data, 1, body->size, stdout);
    if (body->size == 0 || body->data[body->size - 1] != '\n')
        putchar('\n');
}

static enum hf_cli_exit exit_of(const struct hf_client_call *call, unsigned http_status,
                                const struct hf_client_problem *problem)
{
    if (problem->status != HF_OK)
        return hf_cli_exit_of(problem->status);
    if (http_status < 500) /* including unauthorized and forbidden */
        return HF_EXIT_REFUSED;
    return http_status == 503 || !call->changes ? HF_EXIT_STORE : HF_EXIT_UNKNOWN;
}

static enum hf_cli_exit refused(struct hf_cli *cli, const struct hf_client_call *call,
                                const struct hf_client_answer *answer,
                                const struct hf_client_problem *problem)
{
    struct hf_buffer sentence = { 0 };
    if (hf_status_kind(problem->status) == HF_KIND_REFUSAL)
        hf_cli_explain(cli, problem->status, &sentence);
    if (sentence.size == 0)
        hf_cli_add_clean(&sentence, hf_str(problem->detail));
    if (answer->head.status == 401)
        hf_buffer_add_text(
            &sentence, " On the command line, use --credential-file FILE or HOLDFAST_CREDENTIAL.");
    if (cli->json)
        body_print(answer);
    hf_cli_error(cli, "%s: %s", problem->code, hf_buffer_text(&sentence));
    hf_buffer_free(&sentence);
    return exit_of(call, answer->head.status, problem);
}

/* ---- Calls ---- */

enum hf_cli_exit hf_cli_remote_call(struct hf_cli *cli, struct hf_client_call *call,
                                    struct hf_client_answer *answer, bool quiet)
{
    struct hf_client_problem problem;
    struct hf_error why;
    if (call->wait_ms == 0)
        call->wait_ms = cli->wait_ms;
    enum hf_status status = hf_client_ask(cli->client, call, answer, &why);
    if (status != HF_OK)
        return quiet ? HF_EXIT_STORE : hf_cli_remote_lost(cli, call, &why);
    const struct hf_client_head *head = &answer->head;
    cli->server_now = head->date;
    if (head->status >= 200 && head->status < 300 && strcmp(head->content_type, call->accept) == 0)
        return HF_EXIT_DONE;
    if (quiet)
        return HF_EXIT_STORE;
    if (head->status < 400 || strcmp(head->content_type, "application/problem+json") != 0 ||
        !hf_client_read_problem(hf_mem(answer->body.data, answer->body.size), &problem, &why))
        return strange(cli, call, answer);
    return refused(cli, call, answer, &problem);
}

/* The request cannot be encoded as a call. */
static enum hf_cli_exit unsendable(const struct hf_cli *cli, const struct hf_error *why)
{
    hf_cli_error(cli, "%s: %s", cli->command->name, why->text);
    return why->status == HF_INVALID_REQUEST ? HF_EXIT_USAGE : HF_EXIT_STORE;
}

static struct hf_bytes body_of(const struct hf_client_answer *answer)
{
    return hf_mem(answer->body.data, answer->body.size);
}

/* When was the call with the key or number of `first` answered for the first time? 0: unknown. */
static hf_time first_answered(struct hf_cli *cli, const struct hf_request *first)
{
    struct hf_request request = { .action = HF_GET_TOKEN,
                                  .key = first->key,
                                  .client = first->client,
                                  .sequence = first->sequence };
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    hf_time recorded_at = 0;
    if (hf_client_encode(&request, &call, &why) != HF_OK)
        return 0;
    if (hf_cli_remote_call(cli, &call, &answer, true) != HF_EXIT_DONE ||
        !hf_client_read_token(body_of(&answer), &recorded_at, &why))
        recorded_at = 0;
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return recorded_at;
}

static enum hf_cli_exit show(struct hf_cli *cli, const struct hf_client_call *call,
                             enum hf_action action, const struct hf_client_answer *answer)
{
    struct hf_result result = HF_RESULT_INIT;
    struct hf_error why = { .status = HF_OK };
    if (!hf_client_read_answer(action, body_of(answer), &result, &why))
        return hf_cli_remote_lost(cli, call, &why);
    result.now = hf_cli_now(cli);
    cli->seen = result.answer.kind == HF_RECORD_SEEN && result.answer.seen.seen;
    if (cli->json)
        body_print(answer);
    else
        hf_cli_print(cli, action, &result);
    hf_result_clear(&result);
    return HF_EXIT_DONE;
}

enum hf_cli_exit hf_cli_remote_ask(struct hf_cli *cli, const struct hf_request *request)
{
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    if (hf_client_encode(request, &call, &why) != HF_OK)
        return unsendable(cli, &why);
    enum hf_cli_exit code = hf_cli_remote_call(cli, &call, &answer, false);
    if (code == HF_EXIT_DONE)
        code = show(cli, &call, request->action, &answer);
    if (answer.head.replayed && (code == HF_EXIT_DONE || code == HF_EXIT_REFUSED))
        hf_cli_say_replayed(cli, first_answered(cli, request));
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return code;
}

/* Read a page, and check that its cursor moves on, so that a broken server cannot cause an endless
 * loop. */
static bool page_read(const struct hf_query *query, const struct hf_client_answer *answer,
                      struct hf_page *page, struct hf_error *why)
{
    if (!hf_client_read_page(query->kind, body_of(answer), page, why))
        return false;
    if (page->count <= query->limit && (query->cursor == 0 || page->next_cursor != query->cursor))
        return true;
    hf_page_clear(page);
    *why = (struct hf_error){ HF_INDETERMINATE, "the server's pages are not in order" };
    return false;
}

enum hf_cli_exit hf_cli_remote_list(struct hf_cli *cli, const struct hf_query *query,
                                    struct hf_page *page, bool quiet)
{
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    if (hf_client_encode_list(query, &call, &why) != HF_OK)
        return quiet ? HF_EXIT_USAGE : unsendable(cli, &why);
    enum hf_cli_exit code = hf_cli_remote_call(cli, &call, &answer, quiet);
    if (code == HF_EXIT_DONE && !page_read(query, &answer, page, &why))
        code = quiet ? HF_EXIT_STORE : hf_cli_remote_lost(cli, &call, &why);
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return code;
}

/* ---- Audit and trace ---- */

/* Print the server's text line by line, made safe for the terminal. */
static void text_print(const struct hf_client_answer *answer)
{
    struct hf_buffer out = { 0 };
    const char *p = (const char *)answer->body.data;
    for (size_t left = answer->body.size; left > 0;) {
        const char *end = memchr(p, '\n', left);
        size_t size = end ? (size_t)(end - p) : left;
        hf_cli_add_clean(&out, hf_mem(p, size));
        hf_buffer_add_char(&out, '\n');
        p += size + (end != NULL);
        left -= size + (end != NULL);
    }
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&out);
}

/* The audit's verdict becomes the exit code, so an answer without a verdict is an error. */
static enum hf_cli_exit judged(struct hf_cli *cli, const struct hf_client_call *call,
                               const char *verdict)
{
    struct hf_error why = { HF_INDETERMINATE, "the server's answer has no known verdict" };
    if (strcmp(verdict, "ok") == 0)
        return HF_EXIT_DONE;
    if (strcmp(verdict, "violations") == 0 || strcmp(verdict, "damaged") == 0)
        return HF_EXIT_REFUSED;
    return hf_cli_remote_lost(cli, call, &why);
}

/* Request the report, as JSON or as text, and print it. */
static enum hf_cli_exit report(struct hf_cli *cli, enum hf_call_kind kind, struct hf_bytes name,
                               const char *query)
{
    struct hf_client_call call;
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_error why;
    enum hf_cli_exit code = hf_cli_remote_open(cli);
    if (code != HF_EXIT_DONE)
        return code;
    if (hf_client_encode_other(kind, name, query, &call, &why) != HF_OK) {
        hf_cli_close(cli, false);
        return unsendable(cli, &why);
    }
    if (!cli->json)
        call.accept = "text/plain";
    call.wait_ms = cli->values[HF_OPT_TIMEOUT] ? cli->wait_ms : LONG_WAIT_MS;
    code = hf_cli_remote_call(cli, &call, &answer, false);
    if (code == HF_EXIT_DONE && kind == HF_CALL_AUDIT)
        code = judged(cli, &call, answer.head.verdict);
    if (answer.head.status == 200 && code != HF_EXIT_STORE) {
        if (cli->json)
            body_print(&answer);
        else
            text_print(&answer);
    }
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    hf_cli_close(cli, false);
    return code;
}

enum hf_cli_exit hf_cli_remote_audit(struct hf_cli *cli)
{
    const char *head = cli->values[HF_OPT_EXPECT_HEAD]; /* hexadecimal digits, checked before */
    char query[2 * HF_DIGEST_SIZE + 16] = "";
    if (head)
        snprintf(query, sizeof query, "expect_head=%s", head);
    return report(cli, HF_CALL_AUDIT, hf_mem(NULL, 0), query);
}

enum hf_cli_exit hf_cli_remote_trace(struct hf_cli *cli, struct hf_bytes name, uint64_t sequence)
{
    char query[40] = "";
    if (name.size == 0) /* the path would be invalid, and no hold or key is empty */
        return hf_cli_refuse(
            cli, (enum hf_action)0, HF_NOT_KNOWN,
            "No hold or key \"\" is in the journal. Check the spelling and the store.");
    if (sequence != 0)
        snprintf(query, sizeof query, "sequence=%" PRIu64, sequence);
    return report(cli, HF_CALL_TRACE, name, query);
}

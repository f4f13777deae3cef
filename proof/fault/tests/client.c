/* The client library, with every failure point in it: what it says of a call is what the server
 * knows of it. */
#include "client/client.h"
#include "fault/kit.h"
#include "server/kit/talk.h"
#include "support/test.h"

#include <stdarg.h>

static struct server server;
static unsigned number; /* of the trial */
static char url[64], resource[32], key[32], trying[128];

_Noreturn static void blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void blame(const char *format, ...)
{
    char text[1024];
    va_list args;
    fault_here(false);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_msg("%s: %s", trying, text);
    abort();
}

/* ---- What the client does: open, place a hold, list, close ---- */

struct came {
    enum hf_status place, list; /* HF_OK: an answer came, was a good one and could be read */
    bool unread;                /* an answer came, and there was no memory to read it */
    char id[HF_ID_SIZE];
    size_t listed;
};

static enum hf_status place(struct hf_client *client, struct came *came)
{
    const struct hf_request r = { .action = HF_PLACE_HOLD,
                                  .key = hf_str(key),
                                  .place_hold = { .resource = hf_str(resource),
                                                  .requester = hf_str("guest"),
                                                  .duration_ms = 3600000 } };
    struct hf_client_call call = { .accept = NULL };
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_result result = HF_RESULT_INIT;
    struct hf_error why = { .status = HF_OK };
    enum hf_status st = hf_client_encode(&r, &call, &why);
    call.wait_ms = 10000;
    if (st == HF_OK)
        st = hf_client_ask(client, &call, &answer, &why);
    if (st != HF_OK && strlen(why.text) < 10)
        blame("placing fails without a reason: %s", hf_status_code(st));
    if (st == HF_OK && answer.head.status != 201)
        blame("the server answers %u", answer.head.status);
    if (st == HF_OK &&
        !hf_client_read_answer(HF_PLACE_HOLD, hf_mem(answer.body.data, answer.body.size), &result,
                               &why)) {
        came->unread = true;
        st = HF_INDETERMINATE;
    }
    if (st == HF_OK)
        memcpy(came->id, result.answer.hold.id, HF_ID_SIZE);
    hf_result_clear(&result);
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return st;
}

static enum hf_status list(struct hf_client *client, struct came *came)
{
    const struct hf_query q = { .kind = HF_LIST_HOLDS, .resource = hf_str(resource) };
    struct hf_client_call call = { .accept = NULL };
    struct hf_client_answer answer = { .head = { .status = 0 } };
    struct hf_page page = { .count = 0 };
    struct hf_error why = { .status = HF_OK };
    enum hf_status st = hf_client_encode_list(&q, &call, &why);
    call.wait_ms = 10000;
    if (st == HF_OK)
        st = hf_client_ask(client, &call, &answer, &why);
    if (st == HF_OK && !hf_client_read_page(
                           HF_LIST_HOLDS, hf_mem(answer.body.data, answer.body.size), &page, &why))
        st = HF_INDETERMINATE;
    came->listed = page.count;
    hf_page_clear(&page);
    hf_client_answer_free(&answer);
    hf_client_call_free(&call);
    return st;
}

static void script(struct came *came)
{
    struct hf_client_options options = { .url = url, .credential = "a-credential" };
    struct hf_client *client;
    struct hf_error why;
    *came = (struct came){ .place = HF_NO_MEMORY, .list = HF_NO_MEMORY };
    enum hf_status st = hf_client_open(&options, &client, &why);
    if (st == HF_OK) {
        came->place = place(client, came);
        came->list = list(client, came);
    } else if (st != HF_NO_MEMORY || strlen(why.text) < 10) {
        blame("opening answers %s: %s", hf_status_code(st), why.text);
    }
    hf_client_close(client);
}

/* ---- Judging ---- */

/* How many holds there are, by the server's own word. */
static long long held(char id[HF_ID_SIZE])
{
    struct reply got;
    char what[64];
    snprintf(what, sizeof what, "GET /v1/holds?resource=%s", resource);
    server_ask(&server, what, "", NULL, &got);
    snprintf(id, HF_ID_SIZE, "%s", reply_text(&got, "id"));
    reply_free(&got);
    return id[0] != 0;
}

static void judge(const struct came *came, bool failed, enum fault_mode mode)
{
    char id[HF_ID_SIZE];
    long long is_held = held(id);
    bool well = came->place == HF_OK && came->list == HF_OK;
    if ((!failed || mode >= FAULT_INTERRUPTED) && !well)
        blame("fails although nothing failed: %s, %s", hf_status_code(came->place),
              hf_status_code(came->list));
    if (came->place == HF_OK && strcmp(id, came->id) != 0)
        blame("hold %s was placed, and the client says %s", id, came->id);
    if ((came->place == HF_STORAGE_FAILURE || came->place == HF_NO_MEMORY) && is_held)
        blame("said not to have left (%s), and has arrived", hf_status_code(came->place));
    if (came->unread && !is_held)
        blame("an answer came, and there is no hold");
    /* What nobody waited for may have arrived behind the list. */
    bool late = came->place == HF_INDETERMINATE && came->listed < (size_t)is_held;
    if (came->list == HF_OK && came->listed != (size_t)is_held && !late)
        blame("%zu holds are listed, and %lld are there", came->listed, is_held);
}

static bool trial(enum fault_call call, enum fault_mode mode, unsigned n)
{
    struct came came, again;
    snprintf(trying, sizeof trying, "client (%s, number %u)", fault_name(call, mode), n);
    snprintf(resource, sizeof resource, "resource-%u", ++number);
    snprintf(key, sizeof key, "key-%u", number);
    uint64_t mark = fault_mark();
    unsigned descriptors = fault_descriptors();
    fault_here(true);
    fault_arm(call, n, mode);
    script(&came);
    bool failed = fault_lift() > 0;
    fault_here(false);
    if (fault_leaked(mark))
        blame("memory was not freed");
    if (fault_descriptors() != descriptors)
        blame("a socket was left open");
    judge(&came, failed, mode);
    script(&again);
    if (again.place != HF_OK || again.list != HF_OK || again.listed != 1 ||
        (came.place == HF_OK && strcmp(came.id, again.id) != 0))
        blame("the second try: %s, %s, %zu holds", hf_status_code(again.place),
              hf_status_code(again.list), again.listed);
    if (failed)
        fault_point();
    return failed;
}

static void every_point(void **state)
{
    (void)state;
    static const enum fault_call kinds[] = { FAULT_ALLOC, FAULT_SOCKET, FAULT_RECV, FAULT_SEND,
                                             FAULT_WAIT };
    unsigned lasting_most = fault_full() ? 4 : 1; /* it waits before it tries again */
    fault_tried();
    assert_false(trial(FAULT_NONE, FAULT_ONCE, 1));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int mode = 0; mode < FAULT_MODES; mode++)
            if (fault_has_mode(kinds[i], (enum fault_mode)mode))
                for (unsigned n = 1; trial(kinds[i], (enum fault_mode)mode, n);) {
                    n = fault_next(n);
                    if (mode == FAULT_LASTING && kinds[i] != FAULT_ALLOC && n > lasting_most)
                        break;
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_point) };
    talk_server(&server);
    server.options.store.no_background = false;
    server_start(&server);
    fault_no_naps();
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    fault_here(false);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_end(&server);
    fault_report("fault_client");
    return failed;
}

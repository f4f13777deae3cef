/* The body of an answer, as our client reads it. What it understands can be written as an answer
 * and read again. */
#include "fuzz/support/fuzz.h"

#include "api/encode.h"
#include "base/bytes.h"
#include "client/client.h"

static const enum hf_action actions[] = { HF_PLACE_HOLD,   HF_CONFIRM,      HF_RELEASE,
                                          HF_EXPIRE,       HF_REVERSE,      HF_GET_HOLD,
                                          HF_SET_GUARD,    HF_SET_RESOURCE, HF_GET_GUARD,
                                          HF_GET_RESOURCE, HF_CHECK,        HF_RECORD,
                                          HF_ADMIT };
enum { ACTIONS = sizeof actions / sizeof *actions };

static void refused(const struct hf_error *why)
{
    FUZZ_WANT(fuzz_sentence(why->text, sizeof why->text));
}

static void write_answer(enum hf_action action, const struct hf_answer *answer,
                         struct hf_buffer *out)
{
    struct hf_json json = { .out = out };
    hf_api_answer(&json, action, answer);
    FUZZ_WANT(!out->failed);
}

static void read_answer(enum hf_action action, struct hf_bytes body)
{
    struct hf_result first = HF_RESULT_INIT, second = HF_RESULT_INIT;
    struct hf_buffer once = { 0 }, twice = { 0 };
    struct hf_error why = { HF_OK, "" };
    if (hf_client_read_answer(action, body, &first, &why)) {
        write_answer(action, &first.answer, &once);
        if (hf_client_read_answer(action, fuzz_held(&once), &second, &why)) {
            write_answer(action, &second.answer, &twice);
            FUZZ_WANT(hf_bytes_equal(fuzz_held(&once), fuzz_held(&twice)));
        } else { /* a name that a newer server has, and that cannot be written here */
            refused(&why);
        }
    } else {
        refused(&why);
    }
    hf_result_clear(&first);
    hf_result_clear(&second);
    hf_buffer_free(&once);
    hf_buffer_free(&twice);
}

static void read_others(struct hf_bytes body)
{
    struct hf_page page;
    struct hf_client_problem problem;
    struct hf_client_version version;
    struct hf_error why = { HF_OK, "" };
    hf_time at;
    if (hf_client_read_page(HF_LIST_HOLDS, body, &page, &why))
        hf_page_clear(&page);
    else
        refused(&why);
    if (hf_client_read_problem(body, &problem, &why))
        FUZZ_WANT(strnlen(problem.code, sizeof problem.code) < sizeof problem.code &&
                  strnlen(problem.detail, sizeof problem.detail) < sizeof problem.detail);
    else
        refused(&why);
    if (!hf_client_read_token(body, &at, &why))
        refused(&why);
    if (!hf_client_read_version(body, &version, &why))
        refused(&why);
    else
        FUZZ_WANT(strnlen(version.text, sizeof version.text) < sizeof version.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    uint8_t which = fuzz_u8(&in);
    if (which < ACTIONS)
        read_answer(actions[which], fuzz_rest(&in));
    else
        read_others(fuzz_rest(&in));
    return 0;
}

/* embed.c: an order form that is submitted twice.
 *
 *     cc embed.c $(pkg-config --cflags --libs holdfast) -o embed && ./embed
 *
 * The shop's own effect (count the order, write it down, ask for a receipt to be sent) runs inside
 * Holdfast's atomic unit: it happens once for each key, together with the key, or not at all. The
 * second click, the browser that reloads and the retry after a crash all get the first answer. */
#include <holdfast.h>

#include <stdio.h>
#include <stdlib.h>

struct order {
    const char *customer, *article;
};

/* The effect. Everything it does goes through `tx`. */
static enum hf_status place_order(struct hf_tx *tx, void *arg)
{
    const struct order *order = arg;
    char number[32], record[128], receipt[160];
    struct hf_bytes last;
    long next = 1;
    if (hf_tx_get(tx, hf_str("last-order"), &last) == HF_OK) {
        snprintf(number, sizeof number, "%.*s", (int)last.size, (const char *)last.data);
        next = atol(number) + 1;
    }
    snprintf(number, sizeof number, "%ld", next);
    snprintf(record, sizeof record, "%s ordered %s", order->customer, order->article);
    snprintf(receipt, sizeof receipt, "{\"to\":\"%s\",\"order\":%ld}", order->customer, next);
    if (hf_tx_put(tx, hf_str("last-order"), hf_str(number)) != HF_OK ||
        hf_tx_put(tx, hf_str(number), hf_str(record)) != HF_OK ||
        hf_tx_enqueue(tx, hf_str("receipts"), hf_str(receipt)) != HF_OK ||
        hf_tx_result(tx, hf_str(number)) != HF_OK)
        return HF_STORAGE_FAILURE;
    return HF_OK;
}

/* What the web server calls for each POST. `token` was created when the form was opened. */
static int submit(struct hf_db *db, const char *token, struct order order)
{
    char payload[128];
    struct hf_result result = HF_RESULT_INIT;
    snprintf(payload, sizeof payload, "%s|%s", order.customer, order.article);
    const struct hf_request request = { .action = HF_APPLY,
                                        .key = hf_str(token),
                                        .apply = { .name = hf_str("order"),
                                                   .payload = hf_str(payload),
                                                   .fn = place_order,
                                                   .arg = &order } };
    enum hf_status status = hf_do(db, &request, &result);
    if (status == HF_OK) {
        printf("%s: order %.*s%s\n", token, (int)result.answer.value.size,
               (const char *)result.answer.value.data,
               result.replayed ? " (already submitted)" : "");
    } else {
        char sentence[512];
        hf_explain(&request, &result, sentence, sizeof sentence);
        printf("%s: %s: %s\n", token, hf_status_code(status), sentence);
    }
    hf_result_clear(&result);
    return status == HF_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct hf_db *db;
    struct hf_error why;
    if (hf_open(argc > 1 ? argv[1] : ":memory:", NULL, &db, &why) != HF_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    submit(db, "form-1", (struct order){ "ada", "lamp" });
    submit(db, "form-1", (struct order){ "ada", "lamp" }); /* the second click */
    submit(db, "form-2", (struct order){ "bob", "chair" });
    submit(db, "form-1", (struct order){ "eve", "yacht" }); /* another order under the same key */

    struct hf_page page;
    struct hf_query outbox = { .kind = HF_LIST_OUTBOX };
    if (hf_list(db, &outbox, &page) == HF_OK) {
        printf("%zu receipts to send\n", page.count);
        hf_page_clear(&page);
    }
    hf_close(db);
    return 0;
}

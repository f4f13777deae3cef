/* The URL of a server. What is taken is shown as a URL that means the same. */
#include "fuzz/support/fuzz.h"

#include "client/inner.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(hf_mem(data, size));
    struct hf_client_url url, again;
    struct hf_error why = { HF_OK, "" };
    if (hf_client_url_parse(text, &url, &why)) {
        FUZZ_WANT(hf_client_url_parse(url.shown, &again, &why));
        FUZZ_WANT(url.tls == again.tls && url.literal == again.literal);
        FUZZ_WANT(strcmp(url.host, again.host) == 0 && strcmp(url.port, again.port) == 0);
        FUZZ_WANT(strcmp(url.field, again.field) == 0 && strcmp(url.prefix, again.prefix) == 0);
        FUZZ_WANT(strcmp(url.shown, again.shown) == 0);
        FUZZ_WANT(hf_client_url_loopback(&url) == hf_client_url_loopback(&again));
    } else {
        FUZZ_WANT(why.status == HF_INVALID_REQUEST && fuzz_sentence(why.text, sizeof why.text));
    }
    free(text);
    return 0;
}

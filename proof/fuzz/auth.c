/* The file of credentials, and an Authorization field that is held against it. */
#include "fuzz/support/fuzz.h"

#include "base/text.h"
#include "http/auth.h"

#include <stdio.h>

/* A caller is somebody with a role and a tenant's name, or nobody. */
static void check(const struct hf_auth *auth, struct hf_bytes field)
{
    struct hf_caller caller;
    bool known = hf_auth_check(auth, field, &caller);
    FUZZ_WANT(known == (caller.role != HF_ROLE_NONE) && caller.role <= HF_ROLE_ADMIN);
    FUZZ_WANT(caller.tenant_size <= HF_TENANT_MAX && (known || caller.tenant_size == 0));
    FUZZ_WANT(hf_utf8_valid(hf_mem(caller.tenant, caller.tenant_size)));
}

/* The first line of the input is the field, the rest is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    const uint8_t *feed = size > 0 ? memchr(data, '\n', size) : NULL;
    struct hf_bytes field = fuzz_some(&in, feed ? (size_t)(feed - data) : 0);
    struct hf_auth *auth = NULL;
    struct hf_error why = { HF_OK, "" };
    char path[600];
    (void)fuzz_u8(&in);
    snprintf(path, sizeof path, "%s/auth", fuzz_folder());
    fuzz_folder_put("auth", fuzz_rest(&in));
    enum hf_status status = hf_auth_load(path, &auth, &why);
    FUZZ_WANT(status == HF_OK || (status == HF_INVALID_REQUEST && why.status == status));
    if (status == HF_OK) {
        check(auth, field);
        check(auth, hf_str("Bearer token"));
        FUZZ_WANT(why.text[0] == '\0');
    } else {
        FUZZ_WANT(!auth && fuzz_sentence(why.text, sizeof why.text));
    }
    hf_auth_drop(auth);
    return 0;
}

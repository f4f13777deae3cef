/* auth.h: credentials, their tenants and their roles.
 *
 * The file has one credential a line, `tenant role sha256-of-credential`, with # comments and empty
 * lines:
 *
 *     # tenant  role   printf %s "$credential" | sha256sum
 *     acme      write  0f1b6cd2...   # the shop
 *     -         admin  9a4e27f0...
 *     *         operator 41c0d3aa...
 *
 * The role is read, write or admin. The tenant "-" is the default tenant (the empty name). The role
 * operator is used only with "*": an operator belongs to no tenant, and sees the whole store and
 * the server's metrics. The file never has a credential itself, only its SHA-256 in hexadecimal. A
 * caller sends `Authorization: Bearer CREDENTIAL`. The server compares its hash with every line,
 * all 32 bytes of each, so that the time taken reveals nothing. */
#ifndef HF_HTTP_AUTH_H
#define HF_HTTP_AUTH_H

#include "holdfast.h"

#define HF_AUTH_MAX 1024         /* credentials: each request is compared with all of them */
#define HF_AUTH_FILE_MAX 1048576 /* bytes of the file, comments included */

/* Each role includes the previous ones. */
enum hf_role { HF_ROLE_NONE, HF_ROLE_READ, HF_ROLE_WRITE, HF_ROLE_ADMIN };

struct hf_caller {
    enum hf_role role;
    bool is_operator; /* belongs to no tenant; the role is HF_ROLE_ADMIN */
    size_t tenant_size;
    char tenant[HF_TENANT_MAX];
};

struct hf_auth; /* immutable after loading; reference-counted */

/* Read the file. path: borrowed. auth: out, owned, free with hf_auth_drop; NULL unless HF_OK. why:
 * out. HF_OK, or HF_INVALID_REQUEST (why names the file, the line and what is wrong; also if every
 * user may write the file, if it is not a regular file, or if it exceeds a limit above),
 * HF_STORAGE_FAILURE (cannot be read), HF_NO_MEMORY. If every user may read it: HF_OK, and
 * why->text is a warning for the operator; otherwise it is empty. A credential may appear in one
 * line only, otherwise the caller would be ambiguous. A file without any credential is refused,
 * because it would lock out every caller. */
HF_MUST_USE enum hf_status hf_auth_load(const char *path, struct hf_auth **auth,
                                        struct hf_error *why);

/* Add and drop a reference. Thread-safe. NULL is allowed. */
struct hf_auth *hf_auth_keep(struct hf_auth *auth);
void hf_auth_drop(struct hf_auth *auth);

/* Is there a line with the role operator? */
bool hf_auth_has_operator(const struct hf_auth *auth);
/* The number of tenants in the file. */
size_t hf_auth_tenants(const struct hf_auth *auth);

/* Find the caller of an Authorization value. field: borrowed. caller: out. False if the field has
 * no Bearer, or a credential that no line has; the caller then has HF_ROLE_NONE. Takes the same
 * time for every credential of one length, known or unknown. */
bool hf_auth_check(const struct hf_auth *auth, struct hf_bytes field, struct hf_caller *caller);

#endif

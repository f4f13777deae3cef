#include "http/auth.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The digests are in an array of their own, so that a check reads only digests until it has a
 * result. */
struct hf_auth {
    atomic_size_t owners;
    size_t count;
    bool has_operator;
    uint8_t digests[HF_AUTH_MAX][HF_DIGEST_SIZE];
    /* callers[0]: unknown; callers[i + 1] has digests[i] */
    struct hf_caller callers[HF_AUTH_MAX + 1];
};

struct loading {
    const char *path;
    struct hf_auth *auth;
    unsigned line;
    unsigned lines[HF_AUTH_MAX]; /* the line of each credential */
    struct hf_error *why;
    bool readable; /* by every user */
};

__attribute__((format(printf, 3, 4))) static enum hf_status
refuse(struct loading *l, enum hf_status status, const char *format, ...)
{
    struct hf_error *why = l->why;
    va_list args;
    size_t size =
        l->line ? (size_t)snprintf(why->text, sizeof why->text, "%.200s:%u: ", l->path, l->line)
                : (size_t)snprintf(why->text, sizeof why->text, "%.200s ", l->path);
    va_start(args, format);
    vsnprintf(why->text + size, sizeof why->text - size, format, args);
    va_end(args);
    why->status = status;
    return status;
}

#define BAD(l, ...) refuse((l), HF_INVALID_REQUEST, __VA_ARGS__)

/* ---- One line ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; empty at its end and before a comment. */
static struct hf_bytes word_take(struct hf_bytes *line)
{
    const char *p = line->data;
    const char *end = p + line->size;
    while (p < end && is_space(*p))
        p++;
    const char *word = p;
    if (p < end && *p == '#')
        p = end;
    while (p < end && !is_space(*p))
        p++;
    *line = hf_mem(p, (size_t)(end - p));
    return hf_mem(word, word < end && *word == '#' ? 0 : (size_t)(p - word));
}

static bool has_control(struct hf_bytes text)
{
    const unsigned char *p = text.data;
    for (size_t i = 0; i < text.size; i++)
        if (p[i] < 0x20 || p[i] == 0x7f)
            return true;
    return false;
}

static enum hf_status tenant_read(struct loading *l, struct hf_bytes word, struct hf_caller *caller)
{
    if (word.size > HF_TENANT_MAX)
        return BAD(l, "the tenant has %zu bytes; the limit is %d.", word.size, HF_TENANT_MAX);
    if (!hf_utf8_valid(word) || has_control(word))
        return BAD(l, "the tenant is not UTF-8.");
    caller->tenant_size = hf_bytes_equal(word, hf_str("-")) ? 0 : word.size;
    memcpy(caller->tenant, word.data, caller->tenant_size);
    return HF_OK;
}

/* An operator is for all tenants, so it belongs to none. */
static enum hf_status operator_read(struct loading *l, struct hf_caller *caller)
{
    if (caller->tenant_size != 1 || caller->tenant[0] != '*')
        return BAD(l, "an operator belongs to no tenant: the first word must be *.");
    *caller = (struct hf_caller){ .role = HF_ROLE_ADMIN, .is_operator = true };
    return HF_OK;
}

static enum hf_status role_read(struct loading *l, struct hf_bytes word, struct hf_caller *caller)
{
    static const char *const roles[] = {
        [HF_ROLE_READ] = "read", [HF_ROLE_WRITE] = "write", [HF_ROLE_ADMIN] = "admin"
    };
    if (hf_bytes_equal(word, hf_str("operator")))
        return operator_read(l, caller);
    if (caller->tenant_size == 1 && caller->tenant[0] == '*')
        return BAD(l, "* is only for operators: for any other role, name a tenant.");
    for (int i = HF_ROLE_READ; i <= HF_ROLE_ADMIN; i++) {
        if (hf_bytes_equal(word, hf_str(roles[i]))) {
            caller->role = (enum hf_role)i;
            return HF_OK;
        }
    }
    return BAD(l, "the second word is the role: it must be read, write or admin, or operator with "
                  "the tenant *.");
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum hf_status digest_read(struct loading *l, struct hf_bytes word,
                                  uint8_t digest[HF_DIGEST_SIZE])
{
    const char *p = word.data;
    uint8_t empty[HF_DIGEST_SIZE];
    bool good = word.size == (size_t)2 * HF_DIGEST_SIZE;
    for (size_t i = 0; good && i < HF_DIGEST_SIZE; i++) {
        int high = digit_of(p[2 * i]);
        int low = digit_of(p[2 * i + 1]);
        good = high >= 0 && low >= 0;
        digest[i] = (uint8_t)(good ? high << 4 | low : 0);
    }
    if (!good)
        return BAD(l, "the third word must be the SHA-256 of the credential, 64 hexadecimal "
                      "digits, and not the credential itself.");
    hf_sha256_of("", 0, empty);
    if (memcmp(digest, empty, sizeof empty) == 0)
        return BAD(l, "this is the SHA-256 of an empty credential.");
    return HF_OK;
}

static enum hf_status credential_add(struct loading *l, const struct hf_caller *caller,
                                     const uint8_t digest[HF_DIGEST_SIZE])
{
    struct hf_auth *auth = l->auth;
    for (size_t i = 0; i < auth->count; i++)
        if (memcmp(auth->digests[i], digest, HF_DIGEST_SIZE) == 0)
            return BAD(l, "this credential is already in line %u.", l->lines[i]);
    if (auth->count == HF_AUTH_MAX)
        return BAD(l, "there are more than %d credentials.", HF_AUTH_MAX);
    memcpy(auth->digests[auth->count], digest, HF_DIGEST_SIZE);
    auth->callers[auth->count + 1] = *caller;
    auth->has_operator |= caller->is_operator;
    l->lines[auth->count] = l->line;
    auth->count++;
    return HF_OK;
}

static enum hf_status line_read(struct loading *l, struct hf_bytes line)
{
    struct hf_caller caller = { .role = HF_ROLE_NONE };
    uint8_t digest[HF_DIGEST_SIZE];
    struct hf_bytes words[3];
    size_t count = 0;
    if (memchr(line.data, '\0', line.size))
        return BAD(l, "the line contains a NUL byte: this is not a text file.");
    while (count < 3 && (words[count] = word_take(&line)).size > 0)
        count++;
    if (count == 0)
        return HF_OK;
    if (count < 3 || word_take(&line).size > 0)
        return BAD(l, "expected three words: tenant, role and the SHA-256 of the credential.");
    enum hf_status st = tenant_read(l, words[0], &caller);
    if (st == HF_OK)
        st = role_read(l, words[1], &caller);
    if (st == HF_OK)
        st = digest_read(l, words[2], digest);
    return st == HF_OK ? credential_add(l, &caller, digest) : st;
}

static enum hf_status text_read(struct loading *l, struct hf_bytes text)
{
    const char *p = text.data;
    const char *end = p + text.size;
    enum hf_status st = HF_OK;
    l->line = 1;
    if (text.size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return BAD(l, "the file begins with a byte order mark; save it as UTF-8 without one.");
    while (st == HF_OK && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        st = line_read(l, hf_mem(p, (size_t)(stop - p)));
        p = stop + 1;
        l->line++;
    }
    if (st != HF_OK)
        return st;
    l->line = 0;
    if (l->auth->count == 0)
        return BAD(l, "has no credential, so all calls would be refused.");
    return HF_OK;
}

/* ---- The file ---- */

/* Read from `fd`, one byte more than the limit, to detect a file that is too long. */
static enum hf_status file_read(struct loading *l, int fd, char *text, size_t *size)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse(l, HF_STORAGE_FAILURE, "cannot be read: %s.", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return BAD(l, "is not a regular file.");
    if (st.st_mode & S_IWOTH)
        return BAD(l, "may be written by every user; use chmod o-w.");
    l->readable = st.st_mode & S_IROTH;
    *size = 0;
    while (*size <= HF_AUTH_FILE_MAX) {
        ssize_t n = read(fd, text + *size, HF_AUTH_FILE_MAX + 1 - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse(l, HF_STORAGE_FAILURE, "cannot be read: %s.", strerror(errno));
        if (n == 0)
            return HF_OK;
        *size += (size_t)n;
    }
    return BAD(l, "is longer than %d bytes.", HF_AUTH_FILE_MAX);
}

static enum hf_status file_load(struct loading *l, char *text)
{
    size_t size = 0;
    /* Without O_NONBLOCK, a named pipe at this path would block a server that reloads the file. */
    int fd = open(l->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return refuse(l, HF_STORAGE_FAILURE, "cannot be opened: %s.", strerror(errno));
    enum hf_status st = file_read(l, fd, text, &size);
    close(fd);
    return st == HF_OK ? text_read(l, hf_mem(text, size)) : st;
}

enum hf_status hf_auth_load(const char *path, struct hf_auth **auth, struct hf_error *why)
{
    struct loading l = { .path = path, .auth = calloc(1, sizeof *l.auth), .why = why };
    char *text = malloc(HF_AUTH_FILE_MAX + 1);
    enum hf_status st = l.auth && text ? file_load(&l, text)
                                       : refuse(&l, HF_NO_MEMORY, "cannot be read: out of memory.");
    free(text);
    *auth = NULL;
    if (st != HF_OK) {
        free(l.auth);
        return st;
    }
    atomic_init(&l.auth->owners, 1);
    *auth = l.auth;
    *why = (struct hf_error){ HF_OK, "" };
    if (l.readable) /* the file has only hashes: a warning is enough */
        snprintf(why->text, sizeof why->text, "%.200s may be read by every user; use chmod o-r",
                 path);
    return HF_OK;
}

struct hf_auth *hf_auth_keep(struct hf_auth *auth)
{
    if (auth)
        atomic_fetch_add_explicit(&auth->owners, 1, memory_order_relaxed);
    return auth;
}

void hf_auth_drop(struct hf_auth *auth)
{
    if (auth && atomic_fetch_sub_explicit(&auth->owners, 1, memory_order_acq_rel) == 1)
        free(auth);
}

bool hf_auth_has_operator(const struct hf_auth *auth)
{
    return auth->has_operator;
}

/* ---- Checking ---- */

/* The text after "Bearer" and its spaces. The scheme is case-insensitive (RFC 9110). */
static struct hf_bytes credential_of(struct hf_bytes field)
{
    static const char scheme[] = "bearer";
    const char *p = field.data;
    size_t at = sizeof scheme - 1;
    if (field.size <= at || p[at] != ' ')
        return hf_mem(NULL, 0);
    for (size_t i = 0; i < at; i++)
        if ((p[i] | 0x20) != scheme[i])
            return hf_mem(NULL, 0);
    while (at < field.size && p[at] == ' ')
        at++;
    return hf_mem(p + at, field.size - at);
}

/* All bits set if the digests are equal, else none; without a branch. */
static size_t equal_mask(const uint8_t *a, const uint8_t *b)
{
    unsigned differs = (unsigned)CRYPTO_memcmp(a, b, HF_DIGEST_SIZE) & 0xff;
    return (size_t)0 - ((differs - 1) >> (8 * sizeof differs - 1));
}

size_t hf_auth_tenants(const struct hf_auth *auth)
{
    size_t count = 0;
    for (size_t i = 1; i <= auth->count; i++) {
        const struct hf_caller *one = &auth->callers[i];
        size_t k = 1;
        if (one->is_operator)
            continue;
        while (k < i &&
               (auth->callers[k].is_operator || auth->callers[k].tenant_size != one->tenant_size ||
                memcmp(auth->callers[k].tenant, one->tenant, one->tenant_size) != 0))
            k++;
        count += k == i;
    }
    return count;
}

bool hf_auth_check(const struct hf_auth *auth, struct hf_bytes field, struct hf_caller *caller)
{
    struct hf_bytes credential = credential_of(field);
    uint8_t digest[HF_DIGEST_SIZE];
    size_t found = 0;
    *caller = auth->callers[0];
    if (credential.size == 0)
        return false;
    hf_sha256_of(credential.data, credential.size, digest);
    /* Compare with every line. A digest appears only once, so at most one mask is not zero. */
    for (size_t i = 0; i < auth->count; i++)
        found |= equal_mask(auth->digests[i], digest) & (i + 1);
    *caller = auth->callers[found];
    return found != 0;
}

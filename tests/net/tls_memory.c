/* Every allocation of OpenSSL on the server's side fails once: a connection is refused or broken
 * then, and nothing else happens. */
#include "net/kit/tls.h"
#include "support/test.h"
#include "support/test_io.h"

#include <openssl/crypto.h>
#include <unistd.h>

static long left = -1; /* allocations until the one that fails; below 0: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *take(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : malloc(size);
}

static void *retake(void *block, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : realloc(block, size);
}

static void give(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block);
}

static struct hf_tls *tls;
static SSL_CTX *client;
static struct hf_tls_files names;

/* A connection of which the n-th allocation fails. True if there were fewer. */
static bool connection(long n, unsigned *refused, unsigned *broken)
{
    struct tls_link l;
    char got[4];
    ssize_t done = -1;
    enum hf_tls_wants wants = HF_TLS_WANTS_READ;
    tls_link_open(&l, tls, client);
    hf_tls_close(l.server);
    left = n;
    l.server = hf_tls_accept(tls, l.server_fd);
    bool failed = left < 0;
    *refused += !l.server;
    while (l.server && done < 0 && wants != HF_TLS_WANTS_NOTHING) {
        long rest = left;
        left = -1; /* not the client's */
        SSL_write(l.client, "ping", 4);
        tls_pump(&l, 100000);
        left = rest;
        done = hf_tls_read(l.server, got, sizeof got, &wants);
        failed = left < 0;
    }
    left = -1;
    assert_true(done == 4 || failed);
    *broken += l.server && done < 0;
    tls_link_close(&l);
    return !failed;
}

static void connections(void **state)
{
    (void)state;
    unsigned refused = 0, broken = 0;
    long n = 0;
    while (!connection(n, &refused, &broken))
        n++;
    print_message("%ld allocations: %u connections refused, %u broken\n", n, refused, broken);
    assert_true(refused > 2 && broken > 10);
    assert_true(connection(1000000, &refused, &broken)); /* nothing stays behind */
}

static void loading(void **state)
{
    (void)state;
    struct hf_tls *loaded = NULL;
    unsigned refused = 0;
    for (long n = 0; n < 100000;
         n += 1 + n / 50) { /* there are thousands: each of the first, then fewer */
        struct hf_error why;
        left = n;
        enum hf_status st = hf_tls_load(&names, &loaded, &why);
        bool failed = left < 0;
        left = -1;
        assert_int_equal(loaded != NULL, st == HF_OK);
        assert_true(st == HF_OK || (failed && why.text[0] && why.status == st));
        refused += st != HF_OK;
        hf_tls_drop(loaded);
        if (!failed)
            break;
    }
    assert_true(refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(connections), cmocka_unit_test(loading) };
    struct tls_files files;
    struct hf_error why;
    if (!CRYPTO_set_mem_functions(take, retake, give))
        return 1;
    char *dir = test_dir_make();
    tls_files_make(&files, dir, "server", -60, 3600, NULL);
    names = (struct hf_tls_files){ files.cert, files.key };
    client = SSL_CTX_new(TLS_client_method());
    if (!client || hf_tls_load(&names, &tls, &why) != HF_OK)
        return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_tls_drop(tls);
    SSL_CTX_free(client);
    test_dir_remove(dir);
    return failures;
}

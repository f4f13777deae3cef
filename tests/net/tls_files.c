/* The files of a certificate and its key: what is refused, in which words, and what only gets a
 * note. */
#include "net/kit/tls.h"
#include "support/test.h"
#include "support/test_io.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <sys/stat.h>
#include <unistd.h>

#define YEAR (365L * 86400)

static char *dir;
static struct tls_files files; /* right ones */
static struct hf_error why;

static int setup(void **state)
{
    (void)state;
    dir = test_dir_make();
    tls_files_make(&files, dir, "server", -60, YEAR, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static struct hf_tls_files names(const struct tls_files *f)
{
    return (struct hf_tls_files){ f->cert, f->key };
}

static void right_files(void **state)
{
    (void)state;
    struct hf_tls *tls = NULL;
    struct hf_tls_files n = names(&files);
    memset(&why, 'x', sizeof why);
    assert_int_equal(hf_tls_load(&n, &tls, &why), HF_OK);
    assert_non_null(tls);
    assert_int_equal(why.status, HF_OK);
    assert_string_equal(why.text, "");
    hf_tls_drop(tls);
}

static void refused(const char *cert, const char *key, const char *blamed, const char *words)
{
    struct hf_tls *none = (struct hf_tls *)&why;
    struct hf_tls_files n = { cert, key };
    enum hf_status st = hf_tls_load(&n, &none, &why);
    if (st != HF_INVALID_REQUEST || none || !strstr(why.text, blamed) || !strstr(why.text, words))
        fail_msg("%d: %s", st, why.text);
    assert_int_equal(why.status, HF_INVALID_REQUEST);
    assert_int_equal(ERR_peek_error(), 0);
}

static void text_file(char *path, size_t size, const char *name, const char *text)
{
    snprintf(path, size, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void files_that_do_not_fit(void **state)
{
    (void)state;
    struct tls_files other, locked;
    char empty[300], garbage[300], torn[300], absent[300];
    tls_files_make(&other, dir, "other", -60, YEAR, NULL);
    tls_files_make(&locked, dir, "locked", -60, YEAR, "open sesame");
    snprintf(absent, sizeof absent, "%s/absent", dir);
    text_file(empty, sizeof empty, "empty", "");
    text_file(garbage, sizeof garbage, "garbage", "not PEM at all\n");
    text_file(torn, sizeof torn, "torn",
              "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    refused(absent, files.key, absent, "No such file");
    refused(files.cert, absent, absent, "No such file");
    refused(empty, files.key, empty, "PEM");
    refused(files.cert, empty, empty, "PEM");
    refused(garbage, files.key, garbage, "PEM");
    refused(files.cert, garbage, garbage, "PEM");
    refused(torn, files.key, torn, "PEM");
    refused(files.key, files.key, files.key, "PEM");
    refused(files.cert, files.cert, files.cert, "by every user");
    refused(dir, files.key, dir, "not a regular file");
    refused(files.cert, other.key, other.key, "is not the key of the certificate");
    refused(files.cert, locked.key, locked.key,
            "passphrase"); /* and nobody is asked on the terminal */
    assert_int_equal(chmod(other.key, 0604), 0);
    refused(other.cert, other.key, other.key, "read by every user");
    assert_int_equal(chmod(other.key, 0602), 0);
    refused(other.cert, other.key, other.key, "written by every user");
}

static void notes(void **state)
{
    (void)state;
    static const struct {
        long from, to;
        const char *words;
    } cases[] = { { -YEAR, -1, "has expired" }, { 3600, YEAR, "is not valid yet" } };
    for (size_t i = 0; i < 2; i++) {
        struct tls_files f;
        struct hf_tls *loaded = NULL;
        tls_files_make(&f, dir, "noted", cases[i].from, cases[i].to, NULL);
        struct hf_tls_files n = names(&f);
        assert_int_equal(hf_tls_load(&n, &loaded, &why), HF_OK);
        assert_non_null(loaded);
        assert_non_null(strstr(why.text, f.cert));
        assert_non_null(strstr(why.text, cases[i].words));
        hf_tls_drop(loaded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_files),
        cmocka_unit_test(files_that_do_not_fit),
        cmocka_unit_test(notes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

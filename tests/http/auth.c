/* Who calls: the file line by line, what it grants, and that a check tells nothing by its time. */
#include "http/auth.h"
#include "base/hash.h"
#include "support/test.h"
#include "support/test_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *dir;
static char path[256];
static struct hf_error why;

static int setup(void **state)
{
    (void)state;
    dir = test_dir_make();
    snprintf(path, sizeof path, "%s/auth", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void write_file(const void *text, size_t size, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, text, size), (ssize_t)size);
    close(fd);
}

static enum hf_status load(const void *text, size_t size, struct hf_auth **auth)
{
    write_file(text, size, 0600);
    memset(&why, 'x', sizeof why);
    return hf_auth_load(path, auth, &why);
}

static void hex_of(const uint8_t digest[HF_DIGEST_SIZE], char out[65])
{
    for (size_t i = 0; i < HF_DIGEST_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* The line of a credential: good until three more were asked for. */
static const char *line_of(const char *tenant, const char *role, const char *credential)
{
    static char lines[4][512];
    static int next;
    char *line = lines[next++ % 4];
    uint8_t digest[HF_DIGEST_SIZE];
    char hex[65];
    hf_sha256_of(credential, strlen(credential), digest);
    hex_of(digest, hex);
    snprintf(line, sizeof lines[0], "%s %s %s\n", tenant, role, hex);
    return line;
}

static struct hf_auth *loaded(const char *text)
{
    struct hf_auth *auth = NULL;
    enum hf_status st = load(text, strlen(text), &auth);
    if (st != HF_OK)
        print_error("%s\n", why.text);
    assert_int_equal(st, HF_OK);
    assert_non_null(auth);
    assert_string_equal(why.text, "");
    return auth;
}

static void is(const struct hf_auth *auth, const char *field, enum hf_role role, const char *tenant)
{
    struct hf_caller caller;
    memset(&caller, 'x', sizeof caller);
    bool known = hf_auth_check(auth, hf_str(field), &caller);
    assert_int_equal(known, role != HF_ROLE_NONE);
    assert_int_equal(caller.role, role);
    assert_int_equal(caller.tenant_size, strlen(tenant));
    assert_memory_equal(caller.tenant, tenant, strlen(tenant));
}

/* ---- What is granted ---- */

static void two_tenants_and_roles(void **state)
{
    (void)state;
    char text[2048];
    snprintf(text, sizeof text, "# who\n\n%s   \t\r\n%s%s\t# no one\n%s",
             line_of("acme", "write", "alpha"), line_of("acme", "read", "beta"),
             line_of("-", "admin", "gamma"),
             line_of("b\xc3\xbc"
                     "cher",
                     "admin", "delta"));
    struct hf_auth *auth = loaded(text);
    is(auth, "Bearer alpha", HF_ROLE_WRITE, "acme");
    is(auth, "Bearer beta", HF_ROLE_READ, "acme");
    is(auth, "Bearer gamma", HF_ROLE_ADMIN, "");
    is(auth, "Bearer delta", HF_ROLE_ADMIN,
       "b\xc3\xbc"
       "cher");
    is(auth, "bEARER   alpha", HF_ROLE_WRITE, "acme");
    const char *const nobody[] = { "Bearer epsilon", "Bearer alph",   "Bearer alphaa",
                                   "Bearer Alpha",   "Bearer",        "Bearer ",
                                   "Bearer    ",     "alpha",         "",
                                   "Basic alpha",    "Bearer\talpha", " Bearer alpha",
                                   "Bearerx alpha",  "Beare",         "Bearer alpha " };
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++)
        is(auth, nobody[i], HF_ROLE_NONE, "");
    struct hf_caller caller;
    assert_false(hf_auth_check(auth, hf_mem(NULL, 0), &caller));
    assert_false(hf_auth_check(auth, hf_mem("Bearer alpha\0", 13), &caller));
    hf_auth_drop(auth);
}

static void spellings(void **state)
{
    (void)state;
    /* Upper-case digits, white space around, no line end at the end, lines ended as elsewhere. */
    char text[256] = "  \tacme\t \tread\t";
    const char *hex = line_of("", "", "alpha") + 2;
    size_t at = strlen(text);
    for (size_t i = 0; i < 64; i++)
        text[at + i] = (char)(hex[i] >= 'a' ? hex[i] - 32 : hex[i]);
    strcpy(text + at + 64, "\t# the shop \r\n# end");
    struct hf_auth *auth = loaded(text);
    is(auth, "Bearer alpha", HF_ROLE_READ, "acme");
    hf_auth_drop(auth);
    char tenant[HF_TENANT_MAX + 1];
    memset(tenant, 't', HF_TENANT_MAX);
    tenant[HF_TENANT_MAX] = '\0';
    auth = loaded(line_of(tenant, "write", "alpha"));
    is(auth, "Bearer alpha", HF_ROLE_WRITE, tenant);
    hf_auth_drop(auth);
    auth = loaded(line_of("a#b", "write", "alpha"));
    is(auth, "Bearer alpha", HF_ROLE_WRITE, "a#b");
    hf_auth_drop(auth);
}

/* ---- What is refused ---- */

#define HEX "0f1b6cd2a94e5573880127bb34aa9ce6d1e0f5c4b3a2918070605040302010ff"

static void malformed_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line, *words;
    } cases[] = {
        { "acme", "three words" },
        { "acme write", "three words" },
        { "acme " HEX, "three words" },
        { "acme write # " HEX, "three words" },
        { "acme write " HEX " more", "three words" },
        { "acme write " HEX " more # why", "three words" },
        { "acme owner " HEX, "read, write or admin" },
        { "acme Write " HEX, "read, write or admin" },
        { "acme writ " HEX, "read, write or admin" },
        { "write acme " HEX, "read, write or admin" },
        { "acme write 0f1b", "64 hexadecimal digits" },
        { "acme write " HEX "0", "64 hexadecimal digits" },
        { "acme write gf1b6cd2a94e5573880127bb34aa9ce6d1e0f5c4b3a2918070605040302010ff",
          "64 hexadecimal" },
        { "acme write 0f1b6cd2a94e5573880127bb34aa9ce6d1e0f5c4b3a2918070605040302010f:",
          "64 hexadecimal" },
        { "acme write e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
          "SHA-256 of an empty credential" },
        { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa write " HEX,
          "65 bytes" },
        { "ac\xffme write " HEX, "UTF-8" },
        { "ac\x1bme write " HEX, "UTF-8" },
        { "ac\x7fme write " HEX, "UTF-8" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024], place[300];
        struct hf_auth *auth = (struct hf_auth *)&why;
        int size = snprintf(text, sizeof text, "# comment\n\n%s%s\n%s", line_of("-", "read", "ok"),
                            cases[i].line, "what comes later is not looked at\n");
        assert_int_equal(load(text, (size_t)size, &auth), HF_INVALID_REQUEST);
        assert_null(auth);
        assert_int_equal(why.status, HF_INVALID_REQUEST);
        snprintf(place, sizeof place, "%s:4: ", path);
        if (strncmp(why.text, place, strlen(place)) != 0 || !strstr(why.text, cases[i].words))
            fail_msg("case %zu: %s", i, why.text);
    }
}

static void binary_lines(void **state)
{
    (void)state;
    static const char nul[] = "acme wri\0te " HEX "\n";
    static const char mark[] = "\xef\xbb\xbf"
                               "acme write " HEX "\n";
    struct hf_auth *auth;
    assert_int_equal(load(nul, sizeof nul - 1, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, ":1: the line contains a NUL"));
    assert_int_equal(load(mark, sizeof mark - 1, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, ":1: the file begins with a byte order mark"));
}

static void one_credential_twice(void **state)
{
    (void)state;
    char text[1024];
    struct hf_auth *auth;
    int size = snprintf(text, sizeof text, "%s\n%s%s", line_of("acme", "read", "alpha"),
                        line_of("-", "read", "beta"), line_of("other", "admin", "alpha"));
    assert_int_equal(load(text, (size_t)size, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, ":4: this credential is already in line 1"));
}

static void nobody_at_all(void **state)
{
    (void)state;
    struct hf_auth *auth;
    assert_int_equal(load("", 0, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, "no credential"));
    assert_int_equal(load("# nobody\n\n  \n", 13, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, "no credential"));
}

static void limits(void **state)
{
    (void)state;
    struct hf_auth *auth;
    char *text = malloc(HF_AUTH_FILE_MAX + 200);
    size_t size = 0;
    char credential[32];
    assert_non_null(text);
    for (int i = 0; i < HF_AUTH_MAX; i++) {
        snprintf(credential, sizeof credential, "credential-%d", i);
        size += (size_t)sprintf(text + size, "%s", line_of("t", "read", credential));
    }
    assert_int_equal(load(text, size, &auth), HF_OK);
    is(auth, "Bearer credential-0", HF_ROLE_READ, "t");
    is(auth, "Bearer credential-1023", HF_ROLE_READ, "t");
    is(auth, "Bearer credential-1024", HF_ROLE_NONE, "");
    hf_auth_drop(auth);
    size_t full = size;
    size += (size_t)sprintf(text + size, "%s", line_of("t", "read", "credential-1024"));
    assert_int_equal(load(text, size, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, ":1025: there are more than 1024 credentials"));
    memset(text + full, '#', HF_AUTH_FILE_MAX - full);
    assert_int_equal(load(text, HF_AUTH_FILE_MAX, &auth), HF_OK);
    hf_auth_drop(auth);
    text[HF_AUTH_FILE_MAX] = '#';
    assert_int_equal(load(text, HF_AUTH_FILE_MAX + 1, &auth), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, "longer than 1048576 bytes"));
    free(text);
}

static void files(void **state)
{
    (void)state;
    struct hf_auth *auth;
    const char *line = line_of("-", "admin", "alpha");
    static const mode_t open_modes[] = { 0602, 0666 };
    for (size_t i = 0; i < sizeof open_modes / sizeof *open_modes; i++) {
        write_file(line, strlen(line), open_modes[i]);
        assert_int_equal(hf_auth_load(path, &auth, &why), HF_INVALID_REQUEST);
        assert_non_null(strstr(why.text, path));
        assert_non_null(strstr(why.text, "by every user"));
    }
    write_file(line, strlen(line), 0640);
    assert_int_equal(hf_auth_load(path, &auth, &why), HF_OK);
    assert_string_equal(why.text, "");
    hf_auth_drop(auth);
    write_file(line, strlen(line), 0644);
    assert_int_equal(hf_auth_load(path, &auth, &why), HF_OK);
    assert_non_null(strstr(why.text, "read by every user")); /* a note */
    hf_auth_drop(auth);
    unlink(path);
    assert_int_equal(hf_auth_load(path, &auth, &why), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, path));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(hf_auth_load(path, &auth, &why),
                     HF_INVALID_REQUEST); /* and does not wait for a writer */
    assert_non_null(strstr(why.text, "not a regular file"));
    assert_int_equal(hf_auth_load(dir, &auth, &why), HF_INVALID_REQUEST);
    assert_non_null(strstr(why.text, "not a regular file"));
}

/* ---- Time: a check is stepped through, one instruction after the other, and they are counted
 * ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

#ifndef INSTRUMENTED

typedef bool check_fn(const struct hf_auth *auth, struct hf_bytes field, struct hf_caller *caller);

/* What must not be done: stops at the first byte that differs. A control for the counting. */
static bool hasty_check(const struct hf_auth *auth, struct hf_bytes field, struct hf_caller *caller)
{
    const volatile char *p = field.data;
    static const char secret[] = "Bearer near-first";
    (void)auth;
    (void)caller;
    for (size_t i = 0; i < sizeof secret - 1; i++)
        if (p[i] != secret[i])
            return false;
    return true;
}

/* Instructions between the two stops of a child that runs the check; 0 if children cannot be traced
 * here. */
static long steps_of(check_fn *check, const struct hf_auth *auth, const char *field)
{
    static char copy[64]; /* the same place for every field */
    static struct hf_caller caller;
    snprintf(copy, sizeof copy, "%s", field);
    struct hf_bytes bytes = hf_str(copy);
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        check(auth, bytes, &caller);
        raise(SIGSTOP);
        check(auth, bytes, &caller);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    long steps = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    while (WIFSTOPPED(status)) {
        if (steps > 0 && WSTOPSIG(status) == SIGSTOP)
            break;
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        steps++;
    }
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    return steps;
}

/* A line whose digest is that of the credential but for one bit of byte `at`. */
static void near_line(char *text, const char *credential, size_t at)
{
    uint8_t digest[HF_DIGEST_SIZE];
    char hex[65];
    hf_sha256_of(credential, strlen(credential), digest);
    digest[at] ^= 1;
    hex_of(digest, hex);
    sprintf(text + strlen(text), "near read %s\n", hex);
}

static void every_check_takes_the_same_steps(void **state)
{
    (void)state;
    char text[4096] = "";
    strcat(text, line_of("first", "read", "known-1st."));
    near_line(text, "near-first", 0);
    near_line(text, "near-last.", HF_DIGEST_SIZE - 1);
    near_line(text, "near-midst", 16);
    strcat(text, line_of("a-tenant-with-a-longer-name", "admin", "known-last"));
    struct hf_auth *auth = loaded(text);
    long steps = steps_of(hf_auth_check, auth, "Bearer quite-else");
    if (steps == 0) {
        hf_auth_drop(auth);
        print_message("children cannot be traced here\n");
        skip();
    }
    assert_true(steps_of(hasty_check, auth, "Bearer quite-else") <
                steps_of(hasty_check, auth, "Bearer near-first"));
    static const char *const others[] = { "Bearer near-first", "Bearer near-last.",
                                          "Bearer near-midst", "Bearer known-last",
                                          "Bearer known-1st." };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(steps_of(hf_auth_check, auth, others[i]), steps);
    hf_auth_drop(auth);
}

#endif

/* ---- Many owners ---- */

static struct {
    pthread_mutex_t lock;
    struct hf_auth *now; /* what is in force; one owner */
    _Atomic int wrong;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *ask_again_and_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++) {
        struct hf_caller caller;
        pthread_mutex_lock(&shared.lock);
        struct hf_auth *auth = hf_auth_keep(shared.now);
        pthread_mutex_unlock(&shared.lock);
        bool known = hf_auth_check(auth, hf_str("Bearer alpha"), &caller);
        if (!known || caller.role < HF_ROLE_READ || caller.tenant_size != 1 ||
            caller.tenant[0] != 't')
            shared.wrong++;
        hf_auth_drop(auth);
    }
    return NULL;
}

static void reload_under_load(void **state)
{
    (void)state;
    pthread_t threads[4];
    shared.now = loaded(line_of("t", "read", "alpha"));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_again_and_again, NULL), 0);
    for (int i = 0; i < 100; i++) {
        struct hf_auth *fresh = loaded(line_of("t", i % 2 ? "read" : "admin", "alpha"));
        pthread_mutex_lock(&shared.lock);
        struct hf_auth *old = shared.now;
        shared.now = fresh;
        pthread_mutex_unlock(&shared.lock);
        hf_auth_drop(old);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    hf_auth_drop(shared.now);
    assert_int_equal(shared.wrong, 0);
    assert_null(hf_auth_keep(NULL));
    hf_auth_drop(NULL);
}

/* An operator is of no tenant; a tenant may still be called by the same sign. */
static void operators(void **state)
{
    (void)state;
    char text[2048];
    struct hf_caller caller;
    struct hf_auth *auth;
    for (int i = 0; i < 3;
         i++) { /* * is all tenants to a reader, and none of these roles is of all */
        static const char *const roles[] = { "read", "write", "admin" };
        const char *line = line_of("*", roles[i], "star");
        assert_int_equal(load(line, strlen(line), &auth), HF_INVALID_REQUEST);
        assert_non_null(strstr(why.text, ":1: * is only for operators"));
    }
    snprintf(text, sizeof text, "%s%s", line_of("*", "operator", "op"),
             line_of("acme", "admin", "alpha"));
    auth = loaded(text);
    assert_true(hf_auth_has_operator(auth));
    is(auth, "Bearer op", HF_ROLE_ADMIN, "");
    assert_true(hf_auth_check(auth, hf_str("Bearer op"), &caller) && caller.is_operator);
    assert_true(hf_auth_check(auth, hf_str("Bearer alpha"), &caller) && !caller.is_operator);
    assert_true(!hf_auth_check(auth, hf_str("Bearer x"), &caller) && !caller.is_operator);
    hf_auth_drop(auth);
    static const char *const wrong[] = { "acme", "-", "**" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *line = line_of(wrong[i], "operator", "op");
        assert_int_equal(load(line, strlen(line), &auth), HF_INVALID_REQUEST);
        assert_non_null(
            strstr(why.text, ":1: an operator belongs to no tenant: the first word must be *."));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tenants_and_roles),
        cmocka_unit_test(spellings),
        cmocka_unit_test(malformed_lines),
        cmocka_unit_test(operators),
        cmocka_unit_test(binary_lines),
        cmocka_unit_test(one_credential_twice),
        cmocka_unit_test(nobody_at_all),
        cmocka_unit_test(limits),
        cmocka_unit_test(files),
#ifndef INSTRUMENTED
        cmocka_unit_test(every_check_takes_the_same_steps),
#endif
        cmocka_unit_test(reload_under_load),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* The log: both forms, what clients cannot do to a line, and readers that are slow, stuck or
 * gone. */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include "base/hash.h"
#include "base/text.h"
#include "server/log_text.h"
#include "support/test.h"
#include "support/test_io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define T0 INT64_C(1794778797123)
#define T0_TEXT "2026-11-15T21:39:57.123Z"

static int64_t clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* ---- How a line is spelled ---- */

static struct hf_log_text line;

static const char *spell(bool json, const struct hf_log_field *fields, size_t count,
                         uint64_t dropped)
{
    line.json = json;
    hf_log_text_begin(&line, HF_LOG_INFO, T0, "duplicate");
    for (size_t i = 0; i < count; i++)
        hf_log_text_field(&line, &fields[i]);
    hf_log_text_end(&line, dropped);
    assert_true(line.size < sizeof line.text);
    line.text[line.size] = '\0';
    assert_int_equal(strlen(line.text), line.size);
    return line.text;
}

static void both_forms(void **state)
{
    (void)state;
    const struct hf_log_field fields[] = {
        { .name = "key", .type = HF_LOG_NAME, .text = hf_str("order-8123") },
        { .name = "action", .type = HF_LOG_TEXT, .text = hf_str("place_hold") },
        { .name = "why", .type = HF_LOG_TEXT, .text = hf_str("two words") },
        { .name = "none", .type = HF_LOG_TEXT, .text = hf_mem(NULL, 0) },
        { .name = "first_seen", .type = HF_LOG_TIME, .number = T0 },
        { .name = "status", .type = HF_LOG_NUMBER, .number = 201 },
        { .name = "least", .type = HF_LOG_NUMBER, .number = INT64_MIN },
    };
    line.hash_keys = false;
    assert_string_equal(
        spell(false, fields, 7, 0),
        T0_TEXT " info duplicate key=\"order-8123\" action=place_hold why=\"two words\" none=\"\" "
                "first_seen=" T0_TEXT " status=201 least=-9223372036854775808\n");
    assert_string_equal(
        spell(true, fields, 7, 0),
        "{\"time\":\"" T0_TEXT
        "\",\"level\":\"info\",\"event\":\"duplicate\",\"key\":\"order-8123\","
        "\"action\":\"place_hold\",\"why\":\"two words\",\"none\":\"\",\"first_seen\":\"" T0_TEXT
        "\",\"status\":201,\"least\":-9223372036854775808}\n");
    assert_string_equal(spell(false, fields, 0, 17), T0_TEXT " info duplicate dropped=17\n");
    assert_string_equal(spell(true, fields, 0, UINT64_MAX),
                        "{\"time\":\"" T0_TEXT
                        "\",\"level\":\"info\",\"event\":\"duplicate\",\"dropped\":"
                        "18446744073709551615}\n");
    hf_log_text_begin(&line, HF_LOG_ERROR, T0, "x");
    line.text[line.size] = '\0';
    assert_non_null(strstr(line.text, "\"error\""));
}

static void hashed_names(void **state)
{
    (void)state;
    char name[1000];
    memset(name, 'n', sizeof name);
    const struct hf_log_field fields[] = {
        { .name = "key", .type = HF_LOG_NAME, .text = hf_str("order-8123") },
        { .name = "why", .type = HF_LOG_TEXT, .text = hf_str("order-8123") },
        { .name = "long", .type = HF_LOG_NAME, .text = hf_mem(name, 1000) }
    };
    line.hash_keys = true;
    /* printf %s order-8123 | sha256sum, and the whole of a long one counts. */
    uint8_t digest[HF_DIGEST_SIZE];
    char want[300];
    hf_sha256_of("order-8123", 10, digest);
    int size = snprintf(want, sizeof want, T0_TEXT " info duplicate key=\"");
    for (int i = 0; i < 8; i++)
        size += snprintf(want + size, sizeof want - (size_t)size, "%02x", digest[i]);
    size += snprintf(want + size, sizeof want - (size_t)size, "\" why=order-8123 long=\"");
    hf_sha256_of(name, sizeof name, digest);
    for (int i = 0; i < 8; i++)
        size += snprintf(want + size, sizeof want - (size_t)size, "%02x", digest[i]);
    snprintf(want + size, sizeof want - (size_t)size, "\"\n");
    assert_string_equal(spell(false, fields, 3, 0), want);
    line.hash_keys = false;
}

static void hostile_bytes(void **state)
{
    (void)state;
    static const struct {
        struct hf_bytes bytes;
        const char *text, *json;
    } cases[] = {
#define BYTES(b) { b, sizeof(b) - 1 }
        { BYTES("a\" level=error \\"), "\"a\\\" level=error \\\\\"", "\"a\\\" level=error \\\\\"" },
        { BYTES("a\nb\rc\td"), "\"a\\nb\\rc\\td\"", "\"a\\nb\\rc\\td\"" },
        { BYTES("\0\x1b[2J\x7f"), "\"\\x00\\x1b[2J\\x7f\"", "\"\\u0000\\u001b[2J\\u007f\"" },
        { BYTES("\xff\xc3(\xe2\x82"), "\"\\xff\\xc3(\\xe2\\x82\"",
          "\"\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\"" },
        { BYTES("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"",
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { BYTES("\xc2\x85\xc2\x9b"), "\"\\u{85}\\u{9b}\"", "\"\\u0085\\u009b\"" }, /* C1 */
        { BYTES("\xe2\x80\xa8\xe2\x80\xae"), "\"\\u{2028}\\u{202e}\"",
          "\"\\u2028\\u202e\"" },                                              /* line end, bidi */
        { BYTES("\xf3\xa0\x81\x81"), "\"\\u{e0041}\"", "\"\\udb40\\udc41\"" }, /* unseen */
        { BYTES("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"",
          "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"" },
        { BYTES("k=v"), "\"k=v\"", "\"k=v\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[300];
        for (int type = HF_LOG_TEXT; type <= HF_LOG_NAME; type++) {
            struct hf_log_field field = { .name = "f",
                                          .type = (enum hf_log_type)type,
                                          .text = cases[i].bytes };
            snprintf(want, sizeof want, T0_TEXT " info duplicate f=%s\n", cases[i].text);
            assert_string_equal(spell(false, &field, 1, 0), want);
            snprintf(want, sizeof want,
                     "{\"time\":\"" T0_TEXT
                     "\",\"level\":\"info\",\"event\":\"duplicate\",\"f\":%s}\n",
                     cases[i].json);
            assert_string_equal(spell(true, &field, 1, 0), want);
        }
    }
}

static void long_names(void **state)
{
    (void)state;
    char name[600];
    memset(name, 'n', sizeof name);
    struct hf_log_field field = { .name = "f",
                                  .type = HF_LOG_NAME,
                                  .text = hf_mem(name, HF_LOG_TEXT_MAX) };
    const char *value = strchr(spell(false, &field, 1, 0), '"');
    assert_int_equal(strlen(value), HF_LOG_TEXT_MAX + 3);
    field.text.size++;
    field.type = HF_LOG_TEXT;
    value = strchr(spell(false, &field, 1, 0), '"');
    assert_int_equal(strlen(value), HF_LOG_TEXT_MAX + 6);
    assert_non_null(strstr(value, "n...\"\n"));
    for (size_t before = HF_LOG_TEXT_MAX - 4; before <= HF_LOG_TEXT_MAX; before++) {
        memset(name, 'n', sizeof name);
        memcpy(name + before, "\xf0\x9f\x98\x80", 4);
        field.text.size = sizeof name;
        value = strchr(spell(false, &field, 1, 0), '"');
        assert_null(strstr(value, "\\x")); /* not cut in the middle of a character */
        assert_int_equal(strstr(value, "\x80") != NULL, before == HF_LOG_TEXT_MAX - 4);
    }
}

/* Fields that do not fit are left out whole: the line stays well-formed. */
static void lines_too_long(void **state)
{
    (void)state;
    char name[256];
    struct hf_log_field fields[20];
    memset(name, '\x01', sizeof name);
    for (int i = 0; i < 20; i++)
        fields[i] = (struct hf_log_field){ .name = "f",
                                           .type = HF_LOG_NAME,
                                           .text = hf_mem(name, sizeof name) };
    fields[19] = (struct hf_log_field){ .name = "last", .type = HF_LOG_NUMBER, .number = 1 };
    const char *text = spell(true, fields, 20, 3);
    const char *end = text + strlen(text) - strlen("\\u0001\",\"cut\":1,\"dropped\":3}\n");
    assert_string_equal(end, "\\u0001\",\"cut\":1,\"dropped\":3}\n");
    text = spell(false, fields, 20, 3);
    end = text + strlen(text) - strlen("\\x01\" cut=1 dropped=3\n");
    assert_string_equal(end, "\\x01\" cut=1 dropped=3\n");
    assert_string_equal(spell(false, fields, 0, 0),
                        T0_TEXT " info duplicate\n"); /* the next one is not cut */
}

/* A value in quotes, its end included: no quote, backslash or line end of its own. */
static const char *skip_string(const char *p)
{
    assert_int_equal(*p++, '"');
    while (*p != '"') {
        assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
        p += *p == '\\' ? 2 : 1;
    }
    return p + 1;
}

static void random_bytes_stay_in_their_place(void **state)
{
    (void)state;
    static const unsigned char awkward[] = "\xc2\xe2\xf0\x80\x85\xa8\"\\\n a";
    uint64_t seed = test_seed("log", 3);
    for (int i = 0; i < 20000; i++) {
        unsigned char bytes[300];
        size_t size = test_below(&seed, i % 10 ? 40 : sizeof bytes);
        for (size_t k = 0; k < size; k++) {
            uint64_t any = test_random(&seed);
            bytes[k] = (unsigned char)(i % 3 ? any : (uint64_t)awkward[any % (sizeof awkward - 1)]);
        }
        struct hf_log_field field = { .name = "f",
                                      .type = HF_LOG_NAME,
                                      .text = hf_mem(bytes, size) };
        const char *text = spell(i % 2, &field, 1, 0);
        assert_true(hf_utf8_valid(hf_str(text)));
        assert_string_equal(skip_string(strstr(text, i % 2 ? "\"f\":" : " f=") + (i % 2 ? 4 : 3)),
                            i % 2 ? "}\n" : "\n");
    }
}

/* ---- Writing ---- */

static struct hf_log *log_open(int fd)
{
    struct hf_log *log = NULL;
    struct hf_log_options options = { .fd = fd };
    assert_int_equal(hf_log_open(&options, &log), HF_OK);
    return log;
}

static void log_number(struct hf_log *log, enum hf_log_level level, const char *event,
                       int64_t number)
{
    struct hf_log_field field = { .name = "n", .type = HF_LOG_NUMBER, .number = number };
    hf_log_line(log, level, T0, event, &field, 1);
}

/* Everything that is written to a descriptor, gathered by a thread. */
struct reader {
    int fd;
    pthread_t thread;
    char *text; /* owned; ended by a NUL */
    size_t size;
};

static void *reader_run(void *arg)
{
    struct reader *r = arg;
    size_t room = 1 << 20;
    r->text = malloc(room);
    for (;;) {
        if (room - r->size < 65536)
            r->text = realloc(r->text, room *= 2);
        ssize_t n = read(r->fd, r->text + r->size, 65535);
        if (n < 0 && errno == EAGAIN) {
            pause_ms(1);
            continue;
        }
        if (n <= 0)
            break;
        r->size += (size_t)n;
    }
    r->text[r->size] = '\0';
    return NULL;
}

static void reader_start(struct reader *r, int fd)
{
    *r = (struct reader){ .fd = fd };
    assert_int_equal(pthread_create(&r->thread, NULL, reader_run, r), 0);
}

/* Close the writer's end first. */
static void reader_end(struct reader *r)
{
    pthread_join(r->thread, NULL);
    close(r->fd);
}

/* Walk over the lines: numbers rise, and with each gap a line says how long it is. Returns how many
 * lines `event` has. */
static uint64_t lines_walk(char *text, const char *event, uint64_t *dropped)
{
    uint64_t lines = 0, next = 0;
    char word[40];
    snprintf(word, sizeof word, " %s n=", event);
    for (char *p = text; *p;) {
        char *end = strchr(p, '\n');
        assert_non_null(end);
        *end = '\0';
        const char *own = strstr(p, word);
        const char *gap = strstr(p, " dropped=");
        if (gap) {
            uint64_t total = strtoull(gap + 9, NULL, 10);
            next += total - *dropped;
            *dropped = total;
        }
        if (own) {
            assert_int_equal(strtoull(own + strlen(word), NULL, 10), next);
            next++;
            lines++;
        }
        *end = '\n';
        p = end + 1;
    }
    return lines;
}

static void everything_arrives(void **state)
{
    (void)state;
    int fds[2];
    struct reader r;
    uint64_t dropped = 0;
    assert_int_equal(pipe(fds), 0);
    reader_start(&r, fds[0]);
    struct hf_log *log = log_open(fds[1]);
    for (int i = 0; i < 3000; i++)
        log_number(log, HF_LOG_INFO, "a", i);
    assert_int_equal(hf_log_dropped(log), 0);
    hf_log_close(log);
    close(fds[1]);
    reader_end(&r);
    assert_int_equal(lines_walk(r.text, "a", &dropped), 3000);
    assert_int_equal(dropped, 0);
    assert_non_null(strstr(r.text, T0_TEXT " info a n=0\n" T0_TEXT " info a n=1\n"));
    free(r.text);
    hf_log_close(NULL);
}

/* Nobody reads: nobody waits, and what is lost is counted. Then somebody reads. */
static void reader_that_sleeps(int reading, int writing)
{
    enum { LINES = 100000 };
    struct reader r;
    uint64_t told = 0;
    struct hf_log *log = log_open(writing);
    int64_t begun = clock_ms();
    for (int i = 0; i < LINES; i++)
        log_number(log, HF_LOG_INFO, "a", i);
    assert_true(clock_ms() - begun <
                20000); /* a machine may be slow; a writer that waits is for ever */
    uint64_t dropped = hf_log_dropped(log);
    assert_true(dropped > LINES / 2);
    reader_start(&r, reading);
    do { /* until there is room again */
        pause_ms(1);
        dropped = hf_log_dropped(log);
        log_number(log, HF_LOG_INFO, "b", 0);
    } while (hf_log_dropped(log) != dropped);
    hf_log_close(log);
    close(writing);
    reader_end(&r);
    uint64_t lines = lines_walk(r.text, "a", &told);
    assert_int_equal(told, dropped);
    assert_true(lines > 10000);
    free(r.text);
}

static void sleeping_reader_of_a_pipe(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    reader_that_sleeps(fds[0], fds[1]);
}

static void sleeping_reader_of_a_pipe_that_does_not_block(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    reader_that_sleeps(fds[0], fds[1]);
}

static void sleeping_reader_of_a_socket(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    reader_that_sleeps(fds[0], fds[1]);
}

/* Whoever is about to end the process waits for what was said before, while others go on. */
static void what_was_said_is_written_before_the_end(void **state)
{
    (void)state;
    int fds[2];
    char text[64 * 1024];
    assert_int_equal(pipe(fds), 0);
    struct hf_log *log = log_open(fds[1]);
    for (int i = 0; i < 500; i++)
        log_number(log, HF_LOG_INFO, "a", i);
    hf_log_drain(log);
    ssize_t n = read(fds[0], text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_non_null(strstr(text, " info a n=499\n"));
    log_number(log, HF_LOG_INFO, "a", 500); /* it goes on */
    hf_log_drain(log);
    n = read(fds[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    assert_non_null(strstr(text, " info a n=500\n"));
    hf_log_close(log);
    close(fds[0]);
    close(fds[1]);
}

/* Fill everything, with nobody reading. */
static struct hf_log *log_full(int fds[2])
{
    assert_int_equal(pipe(fds), 0);
    struct hf_log *log = log_open(fds[1]);
    while (hf_log_dropped(log) < 1000)
        log_number(log, HF_LOG_INFO, "a", 0);
    return log;
}

static void close_does_not_wait_for_ever(void **state)
{
    (void)state;
    int fds[2];
    struct hf_log *log = log_full(fds);
    int64_t begun = clock_ms();
    hf_log_close(log);
    assert_in_range(clock_ms() - begun, 500, 20000); /* about a second */
    close(fds[0]);
    close(fds[1]);
}

static void the_end_does_not_wait_for_ever(void **state)
{
    (void)state;
    int fds[2];
    struct hf_log *log = log_full(fds);
    int64_t begun = clock_ms();
    hf_log_drain(log); /* nobody reads */
    assert_in_range(clock_ms() - begun, 500, 20000);
    hf_log_close(log);
    close(fds[0]);
    close(fds[1]);
}

static void warnings_find_room(void **state)
{
    (void)state;
    int fds[2];
    struct reader r;
    struct hf_log *log = log_full(fds);
    uint64_t dropped = hf_log_dropped(log);
    for (int i = 0; i < 100; i++)
        log_number(log, i % 2 ? HF_LOG_WARNING : HF_LOG_ERROR, "w", i);
    assert_int_equal(hf_log_dropped(log), dropped);
    while (hf_log_dropped(log) == dropped) /* their room has an end too */
        log_number(log, HF_LOG_ERROR, "w", 100);
    reader_start(&r, fds[0]);
    hf_log_close(log);
    close(fds[1]);
    reader_end(&r);
    char first[120];
    snprintf(first, sizeof first, T0_TEXT " error w n=0 dropped=%llu\n" T0_TEXT " warning w n=1\n",
             (unsigned long long)dropped);
    assert_non_null(strstr(r.text, first));
    /* Nobody logged after the last one was dropped, so the writer said it. */
    snprintf(first, sizeof first, T0_TEXT " warning lines_dropped dropped=%llu\n",
             (unsigned long long)dropped + 1);
    assert_non_null(strstr(r.text, first));
    free(r.text);
}

/* ---- Writes that fail ---- */

static void dropped_becomes(const struct hf_log *log, uint64_t want)
{
    for (int i = 0; i < 60000 && hf_log_dropped(log) < want; i++)
        pause_ms(1);
    assert_int_equal(hf_log_dropped(log), want);
}

static void reader_that_is_gone(void **state)
{
    (void)state;
    int fds[2], pair[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(fds[0]);
    close(pair[0]);
    const int gone[] = { fds[1], pair[1], 1000 /* not open */, open("/dev/full", O_WRONLY) };
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) { /* a signal would end the test */
        struct hf_log *log = log_open(gone[i]);
        log_number(log, HF_LOG_INFO, "a", 0);
        dropped_becomes(log, 1);
        for (int n = 1; n < 10; n++)
            log_number(log, HF_LOG_INFO, "a", n);
        dropped_becomes(log, 10);
        int64_t begun = clock_ms();
        hf_log_close(log);
        assert_true(clock_ms() - begun < 20000);
        close(gone[i]);
    }
}

/* A disk that is full in the middle of a line, and later has room again. */
static void line_cut_in_two(void **state)
{
    (void)state;
    char *dir = test_dir_make();
    char path[256], name[201], got[1000];
    snprintf(path, sizeof path, "%s/log", dir);
    memset(name, 'n', sizeof name);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = { 100, before.rlim_max };
    struct hf_log *log = log_open(fd);
    struct hf_log_field field = { .name = "name", .type = HF_LOG_NAME, .text = hf_mem(name, 200) };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    hf_log_line(log, HF_LOG_INFO, T0, "cut", &field, 1);
    dropped_becomes(log, 1);
    hf_log_line(log, HF_LOG_INFO, T0, "lost", &field, 1);
    dropped_becomes(log, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    log_number(log, HF_LOG_INFO, "whole", 7);
    hf_log_close(log);
    ssize_t n = pread(fd, got, sizeof got - 1, 0);
    assert_true(n > 100);
    got[n] = '\0';
    assert_string_equal(got + 100, "\n" T0_TEXT " info whole n=7 dropped=2\n");
    close(fd);
    test_dir_remove(dir);
}

/* ---- Many threads ---- */

enum { THREADS = 4, EACH = 20000 };
static struct hf_log *shared;

static void *log_much(void *arg)
{
    char event[8];
    snprintf(event, sizeof event, "t%d", *(int *)arg);
    for (int i = 0; i < EACH; i++)
        log_number(shared, HF_LOG_INFO, event, i);
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    int fds[2], numbers[THREADS];
    pthread_t threads[THREADS];
    struct reader r;
    assert_int_equal(pipe(fds), 0);
    reader_start(&r, fds[0]);
    shared = log_open(fds[1]);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, log_much, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t dropped = hf_log_dropped(shared), told = 0, lines = 0;
    hf_log_close(shared);
    close(fds[1]);
    reader_end(&r);
    int64_t last[THREADS] = { -1, -1, -1, -1 };
    for (char *p = r.text, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        *end = '\0';
        int t = -1;
        long long n = -1;
        unsigned long long gap = 0;
        int fields = sscanf(p, T0_TEXT " info t%d n=%lld dropped=%llu", &t, &n, &gap);
        if (fields < 2) {
            assert_int_equal(sscanf(p, T0_TEXT " warning lines_dropped dropped=%llu", &gap), 1);
        } else {
            assert_in_range(t, 0, THREADS - 1);
            assert_true(n > last[t]); /* each thread's lines in its order */
            last[t] = n;
            lines++;
        }
        told = gap ? gap : told;
    }
    assert_int_equal(told, dropped);
    assert_int_equal(lines + dropped, THREADS * EACH);
    free(r.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),
        cmocka_unit_test(hashed_names),
        cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(long_names),
        cmocka_unit_test(lines_too_long),
        cmocka_unit_test(random_bytes_stay_in_their_place),
        cmocka_unit_test(everything_arrives),
        cmocka_unit_test(sleeping_reader_of_a_pipe),
        cmocka_unit_test(sleeping_reader_of_a_pipe_that_does_not_block),
        cmocka_unit_test(sleeping_reader_of_a_socket),
        cmocka_unit_test(what_was_said_is_written_before_the_end),
        cmocka_unit_test(close_does_not_wait_for_ever),
        cmocka_unit_test(the_end_does_not_wait_for_ever),
        cmocka_unit_test(warnings_find_room),
        cmocka_unit_test(reader_that_is_gone),
        cmocka_unit_test(line_cut_in_two),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A journal that rots under a server: one request fails, the server lives, and the operator hears
 * of it. */
#include "server/kit/calls.h"
#include "server/kit/text.h"

#include <unistd.h>

#define PLACE(resource) "{\"resource\":\"" resource "\",\"requester\":\"q\",\"duration\":\"1h\"}"

enum { BLOCK = 4096 };

static void make(struct server *server)
{
    server_init(server);
    server->options.store.segment_max_bytes = 1 << 20;
    server->options.store.keep_plain = true;
}

/* Holds under two keys, in the second and the third batch. */
static void furnish(void)
{
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE("a")), 201);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE("b")), 201);
}

static void log_has(const char *text)
{
    char *log = server_log(&s);
    if (!strstr(log, text))
        fail_msg("the log does not say \"%s\":\n%s", text, log);
    free(log);
}

/* The file gets shorter than its mapping: the system's signal is the same as for an unreadable
 * sector. */
static void an_unreadable_sector_fails_one_request(void **state)
{
    (void)state;
    char path[600];
    furnish();
    snprintf(path, sizeof path, "%s/journal-00000001.log", s.data);
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE("a")), 201);
    talk_replayed(&t);
    assert_int_equal(truncate(path, 3 * BLOCK), 0);
    assert_int_equal(talk(&t, "POST /v1/holds", "k2", PLACE("b")), 503);
    talk_refused(&t, 503, "storage-failure");
    assert_int_equal(talk(&t, "POST /v1/holds", "k1", PLACE("a")), 201);
    talk_replayed(&t);
    assert_int_equal(talk(&t, "POST /v1/holds", "k3", PLACE("c")), 201);
    assert_true(talk_figure(&t, "holdfast_records_unreadable_total") >= 1);
    assert_int_equal(server_stop(&s), 0); /* the log is written behind the answers */
    log_has("journal-00000001.log: cannot read at byte 12400");
}

static void again(uint64_t snapshot_every_bytes)
{
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    s.options.store.snapshot_every_bytes = snapshot_every_bytes;
    server_start(&s);
    talk_open(&t, &s);
}

/* Damage before the snapshot, which a slow start has not come to. */
static void damage_found_in_the_background_is_told(void **state)
{
    (void)state;
    static char body[60100];
    char path[600], key[32];
    again(3 << 20);
    strcpy(body, "{\"value\":\"");
    memset(body + 10, 'v', 60000);
    strcpy(body + 60010, "\"}");
    for (int i = 0; i < 80; i++) {
        snprintf(key, sizeof key, "big-%d", i);
        assert_int_equal(talk(&t, "PUT /v1/registers/big", key, body), 200);
    }
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk_figure(&t, "holdfast_snapshots_total") == 0 && server_clock_ms() < until;
         server_pause_ms(20))
        ;
    talk_close(&t);
    assert_int_equal(server_stop(&s), 0);
    snprintf(path, sizeof path, "%s/journal-00000003.log", s.data);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, BLOCK + 500, SEEK_SET), 0);
    assert_int_equal(fputc('x', f), 'x');
    fclose(f);
    atomic_store(&s.io->step_ns, 300000000);
    server_start(&s);
    talk_open(&t, &s);
    atomic_store(&s.io->step_ns, 0);
    for (int64_t until = server_clock_ms() + SERVER_PATIENCE_MS;
         talk_figure(&t, "holdfast_journal_damaged") == 0 && server_clock_ms() < until;
         server_pause_ms(20))
        ;
    assert_int_equal(talk(&t, "GET /readyz", NULL, NULL), 503);
    talk_is(&t, "{\"ready\":false,\"why\":\"the journal is damaged\"}");
    assert_true(talk_figure(&t, "holdfast_ready") == 0);
    assert_int_equal(talk(&t, "POST /v1/holds", "k9", PLACE("z")), 201);
    assert_int_equal(server_stop(&s), 0);
    log_has("the journal is damaged in journal-00000003.log at byte 4096");
    log_has("chain head: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(an_unreadable_sector_fails_one_request, make, 1),
        SERVER_TEST(an_unreadable_sector_fails_one_request, make, 4),
        SERVER_TEST(damage_found_in_the_background_is_told, make, 1)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

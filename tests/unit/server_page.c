/* The start page and the three commands: what is shown, what is not, and that nothing from outside
 * can become markup. */
#include "base/clock.h"
#include "server/inner.h"
#include "support/test.h"

#define HOSTILE "da<script>alert(1)</script>&\"'\x01\xff"

static struct hf_server server;
static struct hf_buffer page;

static int setup(void **state)
{
    (void)state;
    struct hf_error why;
    struct hf_http_options http = { .listen = "127.0.0.1:0",
                                    .threads = 1,
                                    .limits = { .connections_max = 8 } };
    struct hf_db *db = NULL;
    server = (struct hf_server){ .options = { .data = "/srv/holdfast" },
                                 .url = "http://127.0.0.1:4653" };
    server.started_at = hf_clock_wall_ms() - 100 * 1000;
    if (hf_http_listen(&http, &server.http, &why) != HF_OK ||
        hf_open(":memory:", NULL, &db, &why) != HF_OK)
        return -1;
    server.db = db;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hf_close(server.db);
    hf_http_free(server.http);
    hf_buffer_free(&page);
    return 0;
}

static const char *show(bool figures)
{
    hf_buffer_reset(&page);
    hf_server_page(&server, figures, &page);
    assert_false(page.failed);
    return hf_buffer_text(&page);
}

static void has(const char *html, const char *words)
{
    if (!strstr(html, words))
        fail_msg("the page has no \"%s\"", words);
}

static void hasnt(const char *html, const char *words)
{
    if (strstr(html, words))
        fail_msg("the page has \"%s\"", words);
}

static void test_what_runs(void **state)
{
    (void)state;
    const char *html = show(true);
    has(html, "<!doctype html>");
    has(html, "<html lang=\"en\">");
    has(html, "<dt>Version</dt><dd>" HF_VERSION "</dd>");
    has(html, "<dt>Address</dt><dd>http://127.0.0.1:4653</dd>");
    has(html, "<dt>Store</dt><dd>/srv/holdfast</dd>");
    has(html, "(1 min)</dd>");
    has(html, ">Ready</span>");
    has(html, "href=\"/v1/openapi.json\"");
    has(html, "href=\"/metrics\"");
    has(html, "href=\"/healthz\"");
    has(html, "href=\"/readyz\"");
}

static void place(const char *key)
{
    struct hf_request request = { .action = HF_PLACE_HOLD,
                                  .key = hf_str(key),
                                  .place_hold = { hf_str("r"), hf_str("q"), 60000, 0 } };
    (void)!hf_do(server.db, &request, NULL);
}

static void test_figures(void **state)
{
    (void)state;
    place("one");
    place("one");
    place("two"); /* refused and remembered */
    const char *html = show(true);
    has(html, "<dt>Keys remembered</dt><dd>2</dd>");
    has(html, "<dt>Duplicates answered</dt><dd>1</dd>");
    has(html, "<dt>Holds</dt><dd>1</dd><dd class=\"more\">1 held now</dd>");
    has(html, "<dt>Operations</dt>");
    has(html, "<dt>Commits</dt>");
    has(html, "<dt>Memory</dt>");
    has(html, "<dt>Journal</dt>");
    has(html, "0 connections open");
}

static void test_figures_are_for_readers(void **state)
{
    (void)state;
    const char *html = show(false);
    hasnt(html, "Keys remembered");
    hasnt(html, "/srv/holdfast");
    has(html, HF_VERSION);
    has(html, "curl -si");
}

static void test_not_ready(void **state)
{
    (void)state;
    struct hf_db *db = server.db;
    server.db = NULL;
    const char *html = show(true);
    has(html, "Not ready: reading the journal");
    hasnt(html, "Keys remembered");
    has(html, "curl -si");
    server.db = db;
}

static void test_in_memory(void **state)
{
    (void)state;
    server.options.data = ":memory:";
    has(show(true), "in memory: nothing is kept");
    server.options.data = "/srv/holdfast";
}

/* Elements are closed in the order in which they were opened, and every < begins one. */
static void well_formed(const char *html)
{
    static const char *const alone[] = { "meta", "rect", "path", "!doctype" };
    char open[64][16];
    size_t depth = 0;
    for (const char *p = strchr(html, '<'); p; p = strchr(p + 1, '<')) {
        bool closes = p[1] == '/', single = false;
        char name[16] = "";
        size_t size = strcspn(p + 1 + closes, " >/");
        assert_in_range(size, 1, sizeof name - 1);
        memcpy(name, p + 1 + closes, size);
        for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
            single |= strcmp(name, alone[i]) == 0;
        if (single)
            continue;
        if (closes) {
            assert_true(depth > 0);
            assert_string_equal(open[--depth], name);
        } else {
            assert_true(depth < 64);
            strcpy(open[depth++], name);
        }
    }
    assert_int_equal(depth, 0);
}

static void test_well_formed_and_of_itself(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *html = show(i == 0);
        well_formed(html);
        hasnt(html, "<script");
        hasnt(html, "<img");
        hasnt(html, "url(");
        hasnt(html, "@import");
        hasnt(html, "src=");
        hasnt(html, "href=\"http");
        hasnt(html, "style=\"");
        hasnt(html, " onclick");
    }
}

static void test_nothing_from_outside_is_markup(void **state)
{
    (void)state;
    server.options.data = HOSTILE;
    const char *html = show(true);
    well_formed(html);
    hasnt(html, "<script");
    has(html, "da&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\\x01\\xff</dd>");
    server.options.data = "r\xc3\xa4ume";
    has(show(true), "<dd>r\xc3\xa4ume</dd>");
    server.options.data = "/srv/holdfast";
}

static void test_commands(void **state)
{
    (void)state;
    const char *html = show(true);
    hasnt(html, "Authorization");
    hasnt(html, "--cacert");
    has(html, "curl -si -w &#39;\\n&#39; &quot;http://127.0.0.1:4653/v1/holds&quot; \\\n  -H "
              "&quot;Idempotency-Key: order-");
    server.options.auth_file = "/etc/holdfast/auth";
    server.tls = true;
    html = show(false);
    has(html, "-H &quot;Authorization: Bearer $CREDENTIAL&quot;");
    has(html, "--cacert");
    hasnt(html, "/etc/holdfast/auth");
    server.options.auth_file = NULL;
    server.tls = false;
}

static void test_lines(void **state)
{
    (void)state;
    struct hf_buffer lines = { 0 };
    hf_server_lines("http://[::1]:4653", &lines);
#define PLACE                                                                                 \
    "curl -si -w '\\n' \"http://[::1]:4653/v1/holds\" -H \"Idempotency-Key: order-$(date -u " \
    "+%F)\""                                                                                  \
    " -d '{\"resource\":\"room-307\",\"requester\":\"guest-91\",\"duration\":\"15m\"}'\n"
    assert_string_equal(
        hf_buffer_text(&lines), PLACE PLACE
        "curl -si -w '\\n' \"http://[::1]:4653/v1/holds?resource=room-307&from=$(date -u +%F)\"\n");
    hf_buffer_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_runs),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_figures_are_for_readers),
        cmocka_unit_test(test_not_ready),
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test(test_well_formed_and_of_itself),
        cmocka_unit_test(test_nothing_from_outside_is_markup),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

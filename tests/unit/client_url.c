/* Where the server is: URLs that are taken apart, and those that are refused. */
#include "client/inner.h"
#include "support/test.h"

static void taken_apart(void **state)
{
    static const struct {
        const char *text;
        bool tls, literal, loopback;
        const char *host, *port, *field, *prefix, *shown;
    } good[] = {
        { "http://127.0.0.1:4653", false, true, true, "127.0.0.1", "4653", "127.0.0.1:4653", "",
          "http://127.0.0.1:4653" },
        { "http://localhost", false, false, true, "localhost", "80", "localhost", "",
          "http://localhost" },
        { "https://example.org", true, false, false, "example.org", "443", "example.org", "",
          "https://example.org" },
        { "https://example.org:443/", true, false, false, "example.org", "443", "example.org", "",
          "https://example.org" },
        { "http://example.org:443", false, false, false, "example.org", "443", "example.org:443",
          "", "http://example.org:443" },
        { "http://[::1]:4653", false, true, true, "::1", "4653", "[::1]:4653", "",
          "http://[::1]:4653" },
        { "https://[2001:db8::1]", true, true, false, "2001:db8::1", "443", "[2001:db8::1]", "",
          "https://[2001:db8::1]" },
        { "http://h:65535/shop/eu//", false, false, false, "h", "65535", "h:65535", "/shop/eu",
          "http://h:65535/shop/eu" },
        { "http://h/a.b:c@d;e", false, false, false, "h", "80", "h", "/a.b:c@d;e",
          "http://h/a.b:c@d;e" },
        { "http://127.0.0.1.example.org", false, false, false, "127.0.0.1.example.org", "80",
          "127.0.0.1.example.org", "", "http://127.0.0.1.example.org" },
        { "http://h:0080", false, false, false, "h", "80", "h", "", "http://h" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct hf_client_url url;
        struct hf_error why = { .status = HF_OK };
        if (!hf_client_url_parse(good[i].text, &url, &why))
            fail_msg("%s: %s", good[i].text, why.text);
        assert_int_equal(url.tls, good[i].tls);
        assert_int_equal(url.literal, good[i].literal);
        assert_int_equal(hf_client_url_loopback(&url), good[i].loopback);
        assert_string_equal(url.host, good[i].host);
        assert_string_equal(url.port, good[i].port);
        assert_string_equal(url.field, good[i].field);
        assert_string_equal(url.prefix, good[i].prefix);
        assert_string_equal(url.shown, good[i].shown);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "begins with http://" },
        { "127.0.0.1:4653", "begins with http://" },
        { "HTTP://h", "begins with http://" },
        { "ws://h", "begins with http://" },
        { "http:/h", "begins with http://" },
        { "http://", "host name" },
        { "http://:80", "host name" },
        { "http://\xc3\xa9", "host name" },
        { "http://a b", "after its host" },
        { "http://a\r\nX: y", "after its host" },
        { "http://user@h", "never in a URL" },
        { "http://user:pass@h/x", "never in a URL" },
        { "http://h:", "no port from 1" },
        { "http://h:0", "no port from 1" },
        { "http://h:65536", "no port from 1" },
        { "http://h:4294967297", "no port from 1" },
        { "http://h:99999999999999999999", "no port from 1" },
        { "http://h:-1", "no port from 1" },
        { "http://h:1x", "no / before it" },
        { "http://h/x?y", "after its host" },
        { "http://h/x#y", "after its host" },
        { "http://h/%2f", "after its host" },
        { "http://h/\x80", "after its host" },
        { "http://[::1", "IPv6" },
        { "http://[]", "IPv6" },
        { "http://[127.0.0.1]", "IPv6" },
        { "http://[::1]x", "no / before it" },
    };
    struct hf_client_url url;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_error why = { .status = HF_OK };
        if (hf_client_url_parse(bad[i].text, &url, &why) || !strstr(why.text, bad[i].why) ||
            why.status != HF_INVALID_REQUEST)
            fail_msg("%s: %s", bad[i].text, why.text);
    }
}

static void lengths(void **state)
{
    char text[700];
    struct hf_client_url url;
    struct hf_error why;
    (void)state;
    for (size_t size = 254; size < 258; size++) {
        memset(text, 'a', sizeof text);
        memcpy(text, "http://", 7);
        text[7 + size] = '\0';
        assert_int_equal(hf_client_url_parse(text, &url, &why), size <= 255);
        memcpy(text + 7, "h/", 2);
        assert_int_equal(hf_client_url_parse(text, &url, &why), size - 1 <= 255);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_apart),
        cmocka_unit_test(refused),
        cmocka_unit_test(lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

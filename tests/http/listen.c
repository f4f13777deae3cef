/* Where a server may be asked to listen: addresses and ports, and what is said of those that are
 * none. */
#include "http/server.h"
#include "support/test.h"

static struct hf_error why;

static enum hf_status listens(const char *where, struct hf_http_server **s)
{
    struct hf_http_options options = { .listen = where,
                                       .threads = 2,
                                       .limits = { .connections_max = 10 } };
    why = (struct hf_error){ .status = HF_OK };
    return hf_http_listen(&options, s, &why);
}

/* Listen there, and free it again; the beginning of its address. */
static void good(const char *where, const char *begins, bool loopback)
{
    struct hf_http_server *s;
    if (listens(where, &s) != HF_OK)
        fail_msg("%s", why.text);
    const char *address = hf_http_address(s);
    if (strncmp(address, begins, strlen(begins)) != 0 || atoi(address + strlen(begins)) <= 0)
        fail_msg("%s became %s", where, address);
    assert_int_equal(hf_http_loopback(s), loopback);
    hf_http_free(s);
}

static void addresses_are_numbers(void **state)
{
    (void)state;
    good("127.0.0.1:0", "127.0.0.1:", true);
    good("127.255.255.254:0", "127.255.255.254:", true);
    good("localhost:0", "127.0.0.1:", true); /* the one name that is what it is */
    good("0.0.0.0:0", "0.0.0.0:", false);
}

static void addresses_may_be_of_six(void **state)
{
    (void)state;
    struct hf_http_server *s;
    if (listens("[::1]:0", &s) != HF_OK) {
        print_message("%s\n", why.text); /* a machine without IPv6 */
        skip();
    }
    hf_http_free(s);
    good("[::1]:0", "[::1]:", true);
    good("[0:0::0:1]:0", "[::1]:", true);
    good("[::]:0", "[::]:", false);
    assert_int_equal(listens("[::ffff:127.0.0.1]:0", &s),
                     HF_STORAGE_FAILURE); /* six is six, and four is four */
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        ":",
        "4653",
        ":4653",
        "127.0.0.1",
        "127.0.0.1:",
        "here:80",
        "127.1:80",
        "1.2.3:80",
        "1.2.3.4.5:80",
        "127.0.0.1:x",
        "127.0.0.1:8x",
        "[::1]",
        "[::1:80",
        "::1:80",
        "[]:80",
        "[127.0.0.1]:80",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 1",
        "127.0.0.1:99999999999999999999",
        "http://127.0.0.1:80",
        "127.0.0.256:80",
        "[::g]:80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_http_server *s = (struct hf_http_server *)&why;
        if (listens(bad[i], &s) != HF_INVALID_REQUEST || s)
            fail_msg("\"%s\" is taken", bad[i]);
        if (!strstr(why.text, "expected an address and a port") || !strstr(why.text, bad[i]))
            fail_msg("\"%s\": %s", bad[i], why.text);
    }
}

static void a_port_has_one_listener(void **state)
{
    (void)state;
    struct hf_http_server *first, *second;
    assert_int_equal(listens("127.0.0.1:0", &first), HF_OK);
    assert_int_equal(listens(hf_http_address(first), &second), HF_STORAGE_FAILURE);
    assert_non_null(strstr(why.text, "Another process is listening there"));
    assert_non_null(strstr(why.text, hf_http_address(first)));
    hf_http_free(first);
    assert_int_equal(listens("192.0.2.1:0", &second), HF_STORAGE_FAILURE); /* nobody's address */
    assert_non_null(strstr(why.text, "192.0.2.1:0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_numbers),
        cmocka_unit_test(addresses_may_be_of_six),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_port_has_one_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

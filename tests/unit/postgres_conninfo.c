/* Connection strings: what is refused, what is shown, and that no password is in either. */
#include "store/postgres/conninfo.h"
#include "support/test.h"

static int no_environment(void **state)
{
    static const char *const names[] = { "PGHOST",     "PGPORT",    "PGDATABASE", "PGUSER",
                                         "PGPASSWORD", "PGSERVICE", "PGHOSTADDR" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    return 0;
}

static void shown(const char *conninfo, const char *wanted)
{
    char text[300];
    struct hf_error why = { HF_OK, "" };
    assert_int_equal(hf_conninfo_check(conninfo, &why), HF_OK);
    hf_conninfo_show(conninfo, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void test_shown(void **state)
{
    (void)state;
    shown("host=db1 dbname=shop user=app password=s3cret", "database \"shop\" at db1:5432");
    shown("postgresql://app:s3cret@db1:6000/shop?sslmode=require", "database \"shop\" at db1:6000");
    shown("host=db1,db2 port=1,2 dbname=shop", "database \"shop\" at db1:1,db2:2");
    shown("host=db1,db2 dbname=shop", "database \"shop\" at db1:5432,db2:5432");
    shown("postgresql://db1,db2:7/shop", "database \"shop\" at db1:5432,db2:7");
    shown("host=/run/postgresql dbname=shop", "database \"shop\" at /run/postgresql:5432");
    shown("hostaddr=127.0.0.1 dbname=shop", "database \"shop\" at 127.0.0.1:5432");
    shown("dbname=shop", "database \"shop\" at this machine");
    shown("service=books password=s3cret", "the database of service \"books\"");
    setenv("PGHOST", "far", 1);
    setenv("PGDATABASE", "far db", 1);
    shown("", "database \"far db\" at far:5432");
    no_environment(NULL);
}

static void refused_for(const char *conninfo, const char *reason)
{
    struct hf_error why = { HF_OK, "" };
    assert_int_equal(hf_conninfo_check(conninfo, &why), HF_INVALID_REQUEST);
    if (strncmp(why.text, "The connection string cannot be read: ", 38) != 0 ||
        strstr(why.text, "s3cret") || !strstr(why.text, reason))
        fail_msg("%s", why.text);
}

static void refused(const char *conninfo)
{
    refused_for(conninfo, "");
}

static void test_refused(void **state)
{
    (void)state;
    refused("s3cret");
    refused("host=h password=very s3cret");
    refused("host=h password='s3cret");
    refused("s3cret=1");
    refused("postgresql://app:s3cret/2@h/d");
    refused("postgresql://app:12/s3cret@h/d");
    refused("postgresql://app:a@s3cret@h/d");
    refused("postgresql://app:%zs3cret@h/d");
    refused("postgresql://[s3cret/d");
    refused("postgresql://h/d?s3cret");
    refused("port=s3cret");
    refused_for("s3cret", "missing \"=\" after");
    refused_for("host=h dbnam=d", "(did you mean dbname?)");
    refused_for("host=h sslmod=require", "(did you mean sslmode?)");
    refused_for("host=h a-word-that-is-longer-than-any-option-of-libpq-is=d", "needs 'quotes'");
    refused_for("host=h password=very s3cret=1", "needs 'quotes'");
    refused_for("host=h port=99999", "1 to 65535");
    refused_for("host=a,b port=5432,0", "1 to 65535");
}

static void test_ports(void **state)
{
    (void)state;
    shown("host=a,b,c port=1,,65535 dbname=d", "database \"d\" at a:1,b:5432,c:65535");
}

static void hidden(const char *conninfo, const char *text, size_t room, const char *wanted)
{
    char copy[64] = "";
    snprintf(copy, sizeof copy, "%s", text);
    hf_conninfo_hide(conninfo, copy, room);
    assert_string_equal(copy, wanted);
}

static void test_hidden(void **state)
{
    (void)state;
    hidden("password=s3cret", "no s3cret, s3cret", 64, "no ***, ***");
    hidden("password=s3cret", "s3cret", 64, "***");
    hidden("password=ab", "ab", 4, "***");
    hidden("password=ab", "xab", 4, "x"); /* there is no room for the stars */
    hidden("password=a", "a-a-a", 8, "***-***");
    hidden("host=h", "nothing", 64, "nothing");
    hidden("postgresql://u:p%40ss@h/d", "it is p@ss!", 64, "it is ***!");
    hidden("host=h sslpassword=key", "the key", 64, "the ***");
    setenv("PGPASSWORD", "env-word", 1);
    hidden("host=h", "an env-word", 64, "an ***");
    no_environment(NULL);
}

static void test_values(void **state)
{
    (void)state;
    char value[16];
    hf_conninfo_value("host=h", "port", value, sizeof value);
    assert_string_equal(value, "5432");
    hf_conninfo_value("port=1,2", "port", value, sizeof value);
    assert_string_equal(value, "1,2");
    hf_conninfo_value("host=h", "sslrootcert", value, sizeof value);
    assert_string_equal(value, "");
    hf_conninfo_value("host=longer-than-the-room", "host", value, sizeof value);
    assert_string_equal(value, "");
    setenv("PGPORT", "77", 1);
    hf_conninfo_value("", "port", value, sizeof value);
    assert_string_equal(value, "77");
    no_environment(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shown),
                                        cmocka_unit_test(test_refused),
                                        cmocka_unit_test(test_ports), cmocka_unit_test(test_hidden),
                                        cmocka_unit_test(test_values) };
    return cmocka_run_group_tests(tests, no_environment, NULL);
}

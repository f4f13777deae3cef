/* The relay's eye for COMMIT: messages in pieces, prepared statements, pipelines. */
#include "postgres/kit/relay_wire.h"
#include "support/test.h"

struct bytes {
    uint8_t data[1024];
    size_t size;
};

static void put_number(struct bytes *b, uint32_t n)
{
    for (int i = 24; i >= 0; i -= 8)
        b->data[b->size++] = (uint8_t)(n >> i);
}

/* A message: its type (0: none) and the bytes of its body, where a bar stands for a zero. */
static void put(struct bytes *b, char type, const char *body)
{
    size_t size = strlen(body);
    if (type)
        b->data[b->size++] = (uint8_t)type;
    put_number(b, (uint32_t)size + 4);
    for (size_t i = 0; i < size; i++)
        b->data[b->size++] = body[i] == '|' ? 0 : (uint8_t)body[i];
}

static void begin(struct relay_wire *w)
{
    struct bytes b = { .size = 0 };
    *w = (struct relay_wire){ 0 };
    put(&b, 0, "|||~user|x||");
    assert_int_equal(relay_wire_client(w, b.data, b.size, "").size, b.size);
    b.size = 0;
    put(&b, 'Z', "I");
    assert_int_equal(relay_wire_server(w, b.data, b.size).kind, RELAY_WIRE_READY);
}

static struct relay_message say(struct relay_wire *w, char type, const char *body, const char *name)
{
    struct bytes b = { .size = 0 };
    put(&b, type, body);
    for (size_t i = 0; i < b.size; i++) { /* not before it is whole, and without a trace */
        struct relay_message part = relay_wire_client(w, b.data, i, name);
        assert_int_equal(part.size, 0);
        assert_int_equal(part.kind, RELAY_WIRE_OTHER);
    }
    struct relay_message m = relay_wire_client(w, b.data, b.size, name);
    assert_int_equal(m.size, b.size);
    return m;
}

static struct relay_message answer(struct relay_wire *w, char type, const char *body)
{
    struct bytes b = { .size = 0 };
    put(&b, type, body);
    assert_int_equal(relay_wire_server(w, b.data, b.size - 1).size, 0);
    struct relay_message m = relay_wire_server(w, b.data, b.size);
    assert_int_equal(m.size, b.size);
    return m;
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has;
    } cases[] = {
        { "COMMIT", true },
        { "commit;", true },
        { "insert; Commit", true },
        { "", false },
        { "commits", false },
        { "x_commit", false },
        { "commit_at", false },
        { "comm", false },
        { "recommit", false },
        { "SELECT 1;COMMIT", true },
        { "commit1", false },
        { "BEGIN", false },
        { "commits commit", true },
        { "(commit)", true },
        { "\xc3\xa9"
          "commit",
          false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (relay_wire_has_word(cases[i].text, strlen(cases[i].text), "commit") != cases[i].has)
            fail_msg("wrong about: %s", cases[i].text);
}

static void test_first_message(void **state)
{
    (void)state;
    struct relay_wire w = { 0 };
    struct bytes b = { .size = 0 };
    for (uint32_t code = 80877103; code <= 80877104; code++) {
        b.size = 0;
        put_number(&b, 8);
        put_number(&b, code);
        struct relay_message m = relay_wire_client(&w, b.data, b.size, "");
        assert_int_equal(m.kind, RELAY_WIRE_NO_TLS);
        assert_int_equal(m.size, 8);
        assert_false(w.begun);
    }
    begin(&w);
    assert_true(w.begun);
}

static void test_broken(void **state)
{
    (void)state;
    struct relay_wire w;
    begin(&w);
    static const uint32_t lengths[] = { 0, 3, UINT32_MAX, 257 << 20 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bytes b = { .data = "Q", .size = 1 };
        put_number(&b, lengths[i]);
        assert_int_equal(relay_wire_client(&w, b.data, b.size, "").kind, RELAY_WIRE_BROKEN);
        assert_int_equal(relay_wire_server(&w, b.data, b.size).kind, RELAY_WIRE_BROKEN);
    }
    /* Whole, but its texts do not end: not a COMMIT, and nothing is read behind it. */
    assert_int_equal(say(&w, 'B', "portal", "c").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "portal|c", "c").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'P', "c|commit", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|c|", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'S', "", "").kind, RELAY_WIRE_OTHER);
}

static void test_prepared(void **state)
{
    (void)state;
    struct relay_wire w;
    begin(&w);
    assert_int_equal(say(&w, 'P', "a|COMMIT|||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'P', "b|SELECT 1|||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|a|||||||", "").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'B', "|b|||||||", "").kind, RELAY_WIRE_OTHER);
    assert_int_equal(say(&w, 'B', "|b|||||||", "b").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'B', "a|b|||||||", "").kind,
                     RELAY_WIRE_OTHER); /* a portal's name is none */
    assert_int_equal(say(&w, 'P', "|commit|||", "").kind, RELAY_WIRE_OTHER); /* without a name */
    assert_int_equal(say(&w, 'B', "|||||||||", "").kind, RELAY_WIRE_COMMIT);
    assert_int_equal(say(&w, 'P', "|SELECT 1|||", "").kind,
                     RELAY_WIRE_OTHER); /* it means another now */
    assert_int_equal(say(&w, 'B', "|||||||||", "").kind, RELAY_WIRE_OTHER);
}

/* Two transactions on their way at once: the second COMMIT is not answered by the first answer. */
static void test_pipeline(void **state)
{
    (void)state;
    struct relay_wire w;
    begin(&w);
    (void)say(&w, 'P', "c|COMMIT|||", "");
    struct relay_message first = say(&w, 'B', "|c|||||||", "");
    assert_false(first.ends);
    assert_true(say(&w, 'H', "", "").ends);
    assert_true(say(&w, 'S', "", "").ends);
    struct relay_message second = say(&w, 'B', "|c|||||||", ""),
                         third = say(&w, 'B', "|c|||||||", "");
    (void)say(&w, 'S', "", "");
    struct relay_message fourth = say(&w, 'Q', "commit|", "");
    assert_true(fourth.ends && fourth.kind == RELAY_WIRE_COMMIT);

    const struct relay_message *wanted[] = { &first, &second, &third, &fourth };
    for (int i = 0; i < 4; i++) {
        struct relay_message m = answer(&w, 'C', "COMMIT|");
        assert_int_equal(m.kind, RELAY_WIRE_COMMITTED);
        assert_int_equal(m.place.stretch, wanted[i]->place.stretch);
        assert_int_equal(m.place.number, wanted[i]->place.number);
        assert_int_equal(answer(&w, 'C', "INSERT 0 1|").kind, RELAY_WIRE_OTHER);
        assert_int_equal(answer(&w, 'C', "ROLLBACK|").kind, RELAY_WIRE_OTHER);
        if (i != 1)
            assert_int_equal(answer(&w, 'Z', "I").place.stretch, wanted[i]->place.stretch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),    cmocka_unit_test(test_first_message),
        cmocka_unit_test(test_broken),   cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The hostile requests of tests/http/hostile, as far as the parsers alone decide about them; and
 * the reader of their format. */
#include "http/chunk.h"
#include "server/kit/hostile.h"
#include "support/test.h"
#include "support/test_io.h"

#define BODY_MAX 1048576 /* of the servers that the README tells of */

static struct hf_hostile all;

static int load(void **state)
{
    (void)state;
    all = hf_hostile_load(NULL);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    hf_hostile_free(&all);
    return 0;
}

/* ---- A connection without a socket ---- */

struct wire {
    char *data; /* owned */
    size_t size, arrived, at;
    uint64_t random; /* of the pieces that arrive; 0: all at once */
};

struct verdict {
    enum hf_hostile_layer layer; /* head, chunk or body, or none of them */
    unsigned status;
    size_t requests; /* complete ones before that */
    bool hangs;      /* the bytes are over in the middle of a request */
    bool closes;
};

static bool more(struct wire *w)
{
    if (w->arrived == w->size)
        return false;
    w->arrived = w->random ? w->arrived + 1 + test_below(&w->random, 64) : w->size;
    if (w->arrived > w->size)
        w->arrived = w->size;
    return true;
}

static void refuse(struct verdict *v, enum hf_hostile_layer layer, unsigned status)
{
    v->layer = layer;
    v->status = status;
    v->closes = true;
}

/* True if a head was read. */
static bool take_head(struct wire *w, struct hf_http_head *head, struct verdict *v)
{
    size_t scanned = 0;
    for (;;) {
        struct hf_http_refusal why;
        switch (hf_http_head_parse(w->data + w->at, w->arrived - w->at, &scanned, head, &why)) {
        case HF_HTTP_DONE: w->at += head->size; return true;
        case HF_HTTP_BAD: refuse(v, HF_HOSTILE_HEAD, why.status); return false;
        case HF_HTTP_MORE: break;
        }
        if (!more(w)) {
            v->hangs = w->at < w->size;
            return false;
        }
    }
}

static bool take_chunks(struct wire *w, struct verdict *v)
{
    struct hf_http_chunk c = { 0 };
    uint64_t total = 0;
    for (;;) {
        struct hf_http_refusal why;
        size_t size = w->arrived - w->at, used;
        enum hf_http_parse parse = hf_http_chunk_decode(&c, w->data + w->at, &size, &used, &why);
        w->at += used;
        total += size;
        if (parse == HF_HTTP_BAD)
            refuse(v, HF_HOSTILE_CHUNK, why.status);
        else if (total > BODY_MAX || c.left > BODY_MAX - total)
            refuse(v, HF_HOSTILE_BODY, 413);
        if (v->layer != HF_HOSTILE_NONE)
            return false;
        if (parse == HF_HTTP_DONE)
            return true;
        if (!more(w)) {
            v->hangs = true;
            return false;
        }
    }
}

static bool take_body(struct wire *w, const struct hf_http_head *head, struct verdict *v)
{
    if (head->chunked)
        return take_chunks(w, v);
    if (head->length > BODY_MAX) {
        refuse(v, HF_HOSTILE_BODY, 413);
        return false;
    }
    while (w->arrived - w->at < head->length)
        if (!more(w)) {
            v->hangs = true;
            return false;
        }
    w->at += (size_t)head->length;
    return true;
}

static struct verdict judge(const struct hf_hostile_case *c, uint64_t random)
{
    struct verdict v = { .layer = HF_HOSTILE_NONE };
    struct hf_http_head head;
    struct wire w = { .data = malloc(c->size), .size = c->size, .random = random };
    assert_non_null(w.data);
    memcpy(w.data, c->bytes, c->size);
    while (!v.closes && take_head(&w, &head, &v) && take_body(&w, &head, &v)) {
        v.requests++;
        v.closes = !head.keep_alive;
    }
    free(w.data);
    return v;
}

static void expect(bool right, const struct hf_hostile_case *c, const char *what)
{
    if (!right)
        fail_msg("%s (%s): %s", c->where, c->name, what);
}

static void check(const struct hf_hostile_case *c, const struct verdict *v)
{
    bool ours =
        c->layer == HF_HOSTILE_HEAD || c->layer == HF_HOSTILE_CHUNK || c->layer == HF_HOSTILE_BODY;
    expect(!v->hangs, c, "a server would wait for more");
    if (ours) {
        expect(v->layer == c->layer, c, "another layer refuses it, or none");
        expect(v->requests + 1 == c->answers, c, "not as many answers");
        expect(hf_hostile_allows(c, v->requests, v->status), c, "another status");
        expect(c->close == HF_HOSTILE_MUST_CLOSE, c, "must be closed");
    } else {
        expect(v->layer == HF_HOSTILE_NONE, c, "the parsers refuse it");
        expect(v->requests == c->answers, c, "not as many requests as answers");
        expect(c->layer != HF_HOSTILE_NONE || v->closes == (c->close == HF_HOSTILE_MUST_CLOSE), c,
               "open or closed");
    }
}

static void what_the_parsers_decide(void **state)
{
    (void)state;
    for (size_t i = 0; i < all.count; i++) {
        struct verdict v = judge(&all.cases[i], 0);
        check(&all.cases[i], &v);
    }
}

static void in_random_pieces(void **state)
{
    (void)state;
    uint64_t random = test_seed("in_random_pieces", 43);
    for (size_t i = 0; i < all.count; i++)
        for (int round = 0; round < (all.cases[i].size < 1000 ? 40 : 2); round++) {
            struct verdict v = judge(&all.cases[i], test_random(&random) | 1);
            check(&all.cases[i], &v);
        }
}

/* The corpus is what it should be: large, of every layer, mostly refusals. */
static void enough_of_everything(void **state)
{
    (void)state;
    size_t layers[HF_HOSTILE_LAYERS] = { 0 }, auth = 0;
    for (size_t i = 0; i < all.count; i++) {
        layers[all.cases[i].layer]++;
        auth += all.cases[i].auth;
    }
    for (int i = 0; i < HF_HOSTILE_LAYERS; i++) {
        printf("%-8s %zu\n", hf_hostile_layer_name((enum hf_hostile_layer)i), layers[i]);
        assert_true(layers[i] >= 10);
    }
    printf("%zu cases, %zu of them for a server with credentials\n", all.count, auth);
    assert_true(all.count >= 500 && auth >= 20);
}

/* ---- The format ---- */

static void the_format(void **state)
{
    (void)state;
    static const char file[] =
        "# nothing\n\nhead get\n> GET /\\(number)\n>  HTTP/1.1\\r\\n\n"
        "case first one\nstatus 200 405|501\nclose any\nlayer core\nserver auth\n"
        "like get\n> \\t\\0\\\\\\x4a\\xfF\\(3:a\\n)\n> L\\(length).\n| 12\\(9:3)\n| \\0\n> "
        "M\\(length)!\n"
        "| \n> N\n"
        "case second\nstatus 400\nclose no\nlayer none\nlike get\n> \\(length)";
    static const char first[] = "GET /1 HTTP/1.1\r\n\t\0\\J\xff"
                                "a\na\na\nL12.12333333333\0M0!N";
    char path[1024];
    char *dir = test_dir_make();
    snprintf(path, sizeof path, "%s/a.case", dir);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(file, 1, sizeof file - 1, out), sizeof file - 1);
    assert_int_equal(fclose(out), 0);
    struct hf_hostile h = hf_hostile_load(dir);
    assert_int_equal(h.count, 2);
    const struct hf_hostile_case *c = h.cases;
    assert_string_equal(c->name, "first one");
    assert_string_equal(c->where, "a.case:6");
    assert_int_equal(c->size, sizeof first - 1);
    assert_memory_equal(c->bytes, first, sizeof first - 1);
    assert_true(c->auth && c->layer == HF_HOSTILE_CORE && c->close == HF_HOSTILE_MAY_CLOSE);
    assert_int_equal(c->answers, 2);
    assert_true(hf_hostile_allows(c, 0, 200) && !hf_hostile_allows(c, 0, 405) &&
                !hf_hostile_allows(c, 0, 0));
    assert_true(hf_hostile_allows(c, 1, 405) && hf_hostile_allows(c, 1, 501) &&
                !hf_hostile_allows(c, 1, 200));
    assert_false(hf_hostile_allows(c, 2, 200));
    c++;
    assert_int_equal(c->size, strlen("GET /2 HTTP/1.1\r\n0"));
    assert_memory_equal(c->bytes, "GET /2 HTTP/1.1\r\n0", c->size);
    assert_true(!c->auth && c->layer == HF_HOSTILE_NONE && c->close == HF_HOSTILE_MUST_STAY);
    hf_hostile_free(&h);
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_format),
        cmocka_unit_test(what_the_parsers_decide),
        cmocka_unit_test(in_random_pieces),
        cmocka_unit_test(enough_of_everything),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

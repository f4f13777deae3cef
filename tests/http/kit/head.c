#include "http/kit/head.h"

#include "support/test.h"

/* The slice, with its place in `from` changed to the same place in `to`. */
static void move(struct hf_bytes *slice, struct hf_bytes from, struct hf_bytes to)
{
    if (slice->data == NULL)
        return;
    size_t offset = (size_t)((const char *)slice->data - (const char *)from.data);
    assert_true(offset <= from.size && slice->size <= from.size - offset);
    slice->data = (const char *)to.data + offset;
}

void head_parse_cut(struct hf_bytes data, const size_t *cuts, size_t count,
                    struct head_outcome *out)
{
    size_t scanned = 0;
    *out = (struct head_outcome){ .parse = HF_HTTP_MORE };
    for (size_t i = 0; i < count && out->parse == HF_HTTP_MORE; i++) {
        char *block = malloc(cuts[i] > 0 ? cuts[i] : 1);
        assert_non_null(block);
        if (cuts[i] > 0)
            memcpy(block, data.data, cuts[i]);
        struct hf_bytes copy = hf_mem(block, cuts[i]);
        struct hf_http_head head;
        struct hf_http_refusal why = { 0 };
        memset(&head, 0xa5, sizeof head);
        out->parse = hf_http_head_parse(block, cuts[i], &scanned, &head, &why);
        out->calls++;
        if (out->parse == HF_HTTP_MORE)
            assert_int_equal(scanned, cuts[i]);
        if (out->parse == HF_HTTP_DONE) {
            move(&head.method_name, copy, data);
            move(&head.path, copy, data);
            move(&head.query, copy, data);
            for (int f = 0; f < HF_FIELD_COUNT; f++)
                move(&head.field[f], copy, data);
            out->head = head;
        }
        if (out->parse == HF_HTTP_BAD)
            out->why = why;
        free(block);
    }
}

void head_parse_whole(struct hf_bytes data, struct head_outcome *out)
{
    head_parse_cut(data, &data.size, 1, out);
}

/* Cuts at every `step` bytes, the last at `size`. Owned, free with free(). */
static size_t *steps(size_t size, size_t step, size_t *count)
{
    *count = (size + step - 1) / step;
    size_t *cuts = calloc(*count + 1, sizeof *cuts);
    assert_non_null(cuts);
    for (size_t i = 0; i < *count; i++)
        cuts[i] = i + 1 < *count ? (i + 1) * step : size;
    return cuts;
}

void head_parse_steps(struct hf_bytes data, size_t step, struct head_outcome *out)
{
    size_t count, *cuts = steps(data.size, step, &count);
    head_parse_cut(data, cuts, count, out);
    free(cuts);
}

static void same_slice(struct hf_bytes a, struct hf_bytes b)
{
    assert_ptr_equal(a.data, b.data);
    assert_int_equal(a.size, b.size);
}

static void same(const struct head_outcome *a, const struct head_outcome *b)
{
    const struct hf_http_head *x = &a->head, *y = &b->head;
    assert_int_equal(a->parse, b->parse);
    if (a->parse == HF_HTTP_BAD) {
        assert_int_equal(a->why.status, b->why.status);
        assert_string_equal(a->why.code, b->why.code);
        assert_string_equal(a->why.detail, b->why.detail);
    }
    if (a->parse != HF_HTTP_DONE)
        return;
    assert_int_equal(x->method, y->method);
    same_slice(x->method_name, y->method_name);
    same_slice(x->path, y->path);
    same_slice(x->query, y->query);
    for (int f = 0; f < HF_FIELD_COUNT; f++) {
        assert_int_equal(x->has[f], y->has[f]);
        same_slice(x->field[f], y->field[f]);
    }
    assert_int_equal(x->chunked, y->chunked);
    assert_true(x->length == y->length);
    assert_int_equal(x->has_length, y->has_length);
    assert_int_equal(x->keep_alive, y->keep_alive);
    assert_int_equal(x->expect_continue, y->expect_continue);
    assert_int_equal(x->size, y->size);
}

/* The pieces, and an empty line behind the last of them. */
static void parse_ended(struct hf_bytes data, const size_t *cuts, size_t count,
                        struct head_outcome *out)
{
    char *longer = malloc(data.size + 4);
    size_t *more = calloc(count + 1, sizeof *more);
    assert_true(longer != NULL && more != NULL);
    memcpy(longer, data.data, data.size);
    memcpy(longer + data.size, "\r\n\r\n", 4);
    memcpy(more, cuts, count * sizeof *more);
    more[count] = data.size + 4;
    head_parse_cut(hf_mem(longer, data.size + 4), more, count + 1, out);
    free(more);
    free(longer);
}

void head_same_cut(struct hf_bytes data, const size_t *cuts, size_t count,
                   const struct head_outcome *whole)
{
    struct head_outcome parts;
    head_parse_cut(data, cuts, count, &parts);
    if (parts.parse == HF_HTTP_MORE && whole->parse == HF_HTTP_BAD)
        parse_ended(data, cuts, count, &parts);
    same(whole, &parts);
}

void head_same_steps(struct hf_bytes data, size_t step, const struct head_outcome *whole)
{
    size_t count, *cuts = steps(data.size, step, &count);
    head_same_cut(data, cuts, count, whole);
    free(cuts);
}

/* Lines end with CR LF and only with it, none is folded, no other control byte is there but tab. */
static void check_bytes(const unsigned char *p, size_t size)
{
    size_t lines = 0, empty = 0;
    for (size_t i = 0; i < size; i++) {
        if (p[i] == '\n') {
            assert_true(i > 0 && p[i - 1] == '\r');
            bool blank = i == 1 || p[i - 2] == '\n';
            empty += blank;
            lines += !blank;
            assert_true(i + 1 == size || (p[i + 1] != ' ' && p[i + 1] != '\t'));
        } else if (p[i] == '\r') {
            assert_true(i + 1 < size && p[i + 1] == '\n');
        } else {
            assert_true(p[i] == '\t' || (p[i] >= 0x20 && p[i] != 0x7f));
        }
    }
    assert_true(size >= 4 && memcmp(p + size - 4, "\r\n\r\n", 4) == 0);
    assert_in_range(lines, 1, 1 + HF_HTTP_FIELDS_MAX);
    assert_in_range(empty, 1, 1 + HF_HTTP_EMPTY_MAX);
}

void head_check(struct hf_bytes data, const struct head_outcome *out)
{
    const struct hf_http_head *h = &out->head;
    if (out->parse == HF_HTTP_BAD) {
        assert_true(out->why.status >= 400 && out->why.code != NULL && out->why.detail != NULL);
        return;
    }
    if (out->parse == HF_HTTP_MORE) {
        assert_true(data.size < HF_HTTP_HEAD_MAX);
        return;
    }
    assert_in_range(h->size, 1, data.size);
    assert_true(h->size <= HF_HTTP_HEAD_MAX);
    check_bytes(data.data, h->size);
    assert_false(h->chunked && h->has_length);
    assert_true(h->has_length || h->length == 0);
    assert_true(h->path.size > 0 && *(const char *)h->path.data == '/');
    assert_null(memchr(h->path.data, '?', h->path.size));
    assert_true(h->method_name.size > 0);
    for (int f = 0; f < HF_FIELD_COUNT; f++) {
        const unsigned char *p = h->field[f].data;
        size_t size = h->field[f].size;
        assert_true(h->has[f] == (p != NULL));
        bool bytes = f == HF_FIELD_IDEMPOTENCY_KEY || f == HF_FIELD_CLIENT;
        for (size_t i = 0; i < size && !bytes; i++)
            assert_true(p[i] < 0x80);
        if (size > 0)
            assert_true(p[0] > ' ' && p[size - 1] > ' ');
    }
}

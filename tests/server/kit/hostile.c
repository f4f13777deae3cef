#include "server/kit/hostile.h"

#include "base/buffer.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADS_MAX 16
#define NOWHERE SIZE_MAX

struct head {
    char *name;
    struct hf_buffer text; /* its > lines as they are written, one behind the other */
};

/* One file while it is read. */
struct file {
    const char *name;
    unsigned line;
    struct hf_hostile *all;
    struct head heads[HEADS_MAX];
    size_t head_count;
    bool in_head;              /* > lines belong to the newest head */
    struct hf_hostile_case *c; /* the case that is read, or NULL */
    unsigned number;           /* of that case */
    bool has_close, has_layer;
    struct hf_buffer bytes;
    size_t length_at; /* where \(length) goes, or NOWHERE */
    size_t body_size; /* of the | lines since then */
    bool in_body;
};

static _Noreturn void broken(const struct file *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void broken(const struct file *f, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "%s:%u: ", f->name, f->line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

static void *kept(const struct file *f, void *memory)
{
    if (memory == NULL)
        broken(f, "no memory");
    return memory;
}

static char *text_copy(const struct file *f, const char *text, size_t size)
{
    char *copy = kept(f, malloc(size + 1));
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* ---- Bytes ---- */

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)((at - digits) % 16) : -1;
}

/* One byte, written plainly or as \r \n \t \0 \\ \xHH. What follows it. */
static const char *byte_take(const struct file *f, const char *p, char *out)
{
    static const char names[] = "rnt0\\", bytes[] = "\r\n\t\0\\";
    *out = *p;
    if (*p != '\\')
        return p + 1;
    const char *at = p[1] ? strchr(names, p[1]) : NULL;
    if (at != NULL) {
        *out = bytes[at - names];
        return p + 2;
    }
    if (p[1] != 'x' || hex_digit(p[2]) < 0 || hex_digit(p[3]) < 0)
        broken(f, "not an escape: %.8s", p);
    *out = (char)(hex_digit(p[2]) << 4 | hex_digit(p[3]));
    return p + 4;
}

/* The COUNT:BYTES) of a repetition. What follows it. */
static const char *repetition_take(struct file *f, const char *p)
{
    char *colon;
    unsigned long count = strtoul(p, &colon, 10);
    struct hf_buffer once = { 0 };
    if (*colon != ':' || count == 0 || count > 9999999)
        broken(f, "not a repetition: %.8s", p);
    p = colon + 1;
    while (*p != ')') {
        char byte;
        if (*p == '\0')
            broken(f, "a repetition without its )");
        p = byte_take(f, p, &byte);
        hf_buffer_add_char(&once, byte);
    }
    for (unsigned long i = 0; i < count; i++)
        hf_buffer_add(&f->bytes, once.data, once.size);
    hf_buffer_free(&once);
    return p + 1;
}

/* What stands between \( and behind its ). */
static const char *special_take(struct file *f, const char *p)
{
    if (strncmp(p, "length)", 7) == 0) {
        if (f->length_at != NOWHERE)
            broken(f, "two \\(length) for one body");
        f->length_at = f->bytes.size;
        return p + 7;
    }
    if (strncmp(p, "number)", 7) == 0) {
        hf_buffer_printf(&f->bytes, "%u", f->number);
        return p + 7;
    }
    return repetition_take(f, p);
}

/* Put the size of the body where \(length) stood. */
static void body_end(struct file *f)
{
    if (f->length_at != NOWHERE) {
        char text[24];
        size_t size = (size_t)snprintf(text, sizeof text, "%zu", f->body_size);
        size_t behind = f->bytes.size - f->length_at;
        hf_buffer_add(&f->bytes, text, size);
        if (f->bytes.failed)
            broken(f, "no memory");
        memmove(f->bytes.data + f->length_at + size, f->bytes.data + f->length_at, behind);
        memcpy(f->bytes.data + f->length_at, text, size);
    }
    f->length_at = NOWHERE;
    f->body_size = 0;
    f->in_body = false;
}

static void bytes_add(struct file *f, const char *p, bool body)
{
    if (f->c == NULL)
        broken(f, "bytes outside of a case");
    if (f->in_body && !body)
        body_end(f);
    f->in_body = body;
    size_t before = f->bytes.size;
    while (*p != '\0') {
        char byte;
        if (p[0] == '\\' && p[1] == '(') {
            p = special_take(f, p + 2);
            continue;
        }
        p = byte_take(f, p, &byte);
        hf_buffer_add_char(&f->bytes, byte);
    }
    if (body)
        f->body_size += f->bytes.size - before;
}

/* ---- Words ---- */

static size_t word_index(const struct file *f, const char *word, const char *const *words,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    broken(f, "not a word for this: %s", word);
}

static const char *const layers[HF_HOSTILE_LAYERS] = { "none", "head",  "chunk",  "body",
                                                       "auth", "route", "decode", "core" };

const char *hf_hostile_layer_name(enum hf_hostile_layer layer)
{
    return layers[layer];
}

static void status_read(struct file *f, const char *p)
{
    struct hf_hostile_case *c = f->c;
    if (c->answers > 0)
        broken(f, "a second status");
    for (;; p++) {
        size_t choice = 0;
        if (c->answers == HF_HOSTILE_ANSWERS)
            broken(f, "more than %d answers", HF_HOSTILE_ANSWERS);
        for (;; p++) {
            char *end;
            unsigned long status = strtoul(p, &end, 10);
            if (end != p + 3 || status < 100 || status > 599 || choice == HF_HOSTILE_CHOICES)
                broken(f, "not a status: %s", p);
            c->status[c->answers][choice++] = (unsigned)status;
            p = end;
            if (*p != '|')
                break;
        }
        c->answers++;
        if (*p == '\0')
            return;
        if (*p != ' ')
            broken(f, "not a list of statuses: %s", p);
    }
}

static void like_read(struct file *f, const char *name)
{
    for (size_t i = 0; i < f->head_count; i++)
        if (strcmp(f->heads[i].name, name) == 0) {
            const char *text = hf_buffer_text(&f->heads[i].text);
            if (text == NULL)
                broken(f, "no memory");
            bytes_add(f, text, false);
            return;
        }
    broken(f, "no head of this name: %s", name);
}

/* ---- Lines ---- */

static void case_end(struct file *f)
{
    struct hf_hostile_case *c = f->c;
    f->in_head = false;
    if (c == NULL)
        return;
    body_end(f);
    if (c->answers == 0 || !f->has_close || !f->has_layer || f->bytes.size == 0)
        broken(f, "the case before has no status, close, layer or bytes");
    if (f->bytes.failed)
        broken(f, "no memory");
    c->bytes = (char *)f->bytes.data;
    c->size = f->bytes.size;
    f->bytes = (struct hf_buffer){ 0 };
    f->c = NULL;
}

static void case_begin(struct file *f, const char *name)
{
    char where[256];
    case_end(f);
    size_t first = f->all->count - f->number; /* of this file */
    for (size_t i = first; i < f->all->count; i++)
        if (strcmp(f->all->cases[i].name, name) == 0)
            broken(f, "a second case of this name: %s", name);
    f->all->cases = kept(f, realloc(f->all->cases, (f->all->count + 1) * sizeof *f->all->cases));
    f->c = &f->all->cases[f->all->count++];
    f->number++;
    f->has_close = f->has_layer = false;
    int size = snprintf(where, sizeof where, "%s:%u", f->name, f->line);
    *f->c = (struct hf_hostile_case){ .where = text_copy(f, where, (size_t)size),
                                      .name = text_copy(f, name, strlen(name)) };
}

static void head_begin(struct file *f, const char *name)
{
    case_end(f);
    if (f->head_count == HEADS_MAX)
        broken(f, "more than %d heads", HEADS_MAX);
    f->heads[f->head_count++] = (struct head){ .name = text_copy(f, name, strlen(name)) };
    f->in_head = true;
}

/* A line that says something about the case. */
static void about_read(struct file *f, const char *word, const char *rest)
{
    static const char *const closes[] = { "yes", "no", "any" }, *const servers[] = { "plain",
                                                                                     "auth" };
    if (f->c == NULL)
        broken(f, "%s outside of a case", word);
    if (strcmp(word, "status") == 0) {
        status_read(f, rest);
    } else if (strcmp(word, "close") == 0) {
        f->c->close = (enum hf_hostile_close)word_index(f, rest, closes, 3);
        f->has_close = true;
    } else if (strcmp(word, "layer") == 0) {
        f->c->layer = (enum hf_hostile_layer)word_index(f, rest, layers, HF_HOSTILE_LAYERS);
        f->has_layer = true;
    } else if (strcmp(word, "server") == 0) {
        f->c->auth = word_index(f, rest, servers, 2) == 1;
    } else if (strcmp(word, "like") == 0) {
        like_read(f, rest);
    } else {
        broken(f, "not a word of the format: %s", word);
    }
}

static void line_read(struct file *f, char *line)
{
    if (line[0] == '\0' || line[0] == '#')
        return;
    char *rest = strchr(line, ' ');
    if (rest == NULL)
        broken(f, "a word alone: %s", line);
    *rest++ = '\0';
    if (strcmp(line, "case") == 0)
        case_begin(f, rest);
    else if (strcmp(line, "head") == 0)
        head_begin(f, rest);
    else if (strcmp(line, ">") == 0 && f->in_head)
        hf_buffer_add_text(&f->heads[f->head_count - 1].text, rest);
    else if (strcmp(line, ">") == 0)
        bytes_add(f, rest, false);
    else if (strcmp(line, "|") == 0)
        bytes_add(f, rest, true);
    else
        about_read(f, line, rest);
}

static void file_read(const char *dir, const char *name, struct hf_hostile *all)
{
    char path[2048];
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    struct file f = { .name = name, .all = all, .length_at = NOWHERE };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *in = fopen(path, "r");
    if (in == NULL)
        broken(&f, "cannot be read");
    while ((size = getline(&line, &room, in)) > 0) {
        f.line++;
        if (line[size - 1] == '\n')
            line[--size] = '\0';
        for (ssize_t i = 0; i < size; i++)
            if (line[i] < ' ' || line[i] > '~')
                broken(&f, "a byte that is not printable ASCII; write it as \\xHH");
        line_read(&f, line);
    }
    case_end(&f);
    fclose(in);
    free(line);
    for (size_t i = 0; i < f.head_count; i++) {
        free(f.heads[i].name);
        hf_buffer_free(&f.heads[i].text);
    }
}

/* ---- The folder ---- */

static int is_case_file(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 5 && strcmp(entry->d_name + size - 5, ".case") == 0;
}

struct hf_hostile hf_hostile_load(const char *dir)
{
    static const char here[] = __FILE__, tail[] = "server/kit/hostile.c";
    struct hf_hostile all = { 0 };
    struct dirent **entries;
    char own[1024];
    if (dir == NULL) {
        snprintf(own, sizeof own, "%.*shttp/hostile", (int)(sizeof here - sizeof tail), here);
        dir = own;
    }
    int count = scandir(dir, &entries, is_case_file, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no *.case file can be read there\n", dir);
        abort();
    }
    for (int i = 0; i < count; i++) {
        file_read(dir, entries[i]->d_name, &all);
        free(entries[i]);
    }
    free(entries);
    return all;
}

void hf_hostile_free(struct hf_hostile *h)
{
    for (size_t i = 0; i < h->count; i++) {
        free(h->cases[i].where);
        free(h->cases[i].name);
        free(h->cases[i].bytes);
    }
    free(h->cases);
    *h = (struct hf_hostile){ 0 };
}

bool hf_hostile_allows(const struct hf_hostile_case *c, size_t answer, unsigned status)
{
    for (size_t i = 0; answer < c->answers && i < HF_HOSTILE_CHOICES; i++)
        if (c->status[answer][i] == status && status != 0)
            return true;
    return false;
}

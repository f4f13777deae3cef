#include "postgres/kit/relay_wire.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MESSAGE_MAX = 256 << 20, SSL_REQUEST = 80877103, GSS_REQUEST = 80877104 };

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool in_a_name(int c)
{
    return isalnum(c) || c == '_' || c == '$' || c >= 0x80;
}

bool relay_wire_has_word(const char *text, size_t size, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= size; i++)
        if (strncasecmp(text + i, word, n) == 0 &&
            (i == 0 || !in_a_name((unsigned char)text[i - 1])) &&
            (i + n == size || !in_a_name((unsigned char)text[i + n])))
            return true;
    return false;
}

/* The size of the message that begins here, with `head` bytes before the length and in the count;
 * 0: not known yet. */
static size_t size_of(const uint8_t *data, size_t size, size_t head, struct relay_message *m)
{
    if (size < head + 4)
        return 0;
    uint32_t length = number_at(data + head);
    if (length < 4 || length > MESSAGE_MAX) {
        m->kind = RELAY_WIRE_BROKEN;
        return 0;
    }
    return head + length;
}

/* The text that begins at *at and ends with a zero before `end`; NULL if there is none. *at is
 * moved behind it. */
static const char *text_at(const uint8_t **at, const uint8_t *end)
{
    const char *text = (const char *)*at;
    const uint8_t *zero = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
    if (!zero)
        return NULL;
    *at = zero + 1;
    return text;
}

static size_t find_name(const struct relay_wire *w, const char *name)
{
    size_t i = 0;
    while (i < RELAY_NAMES && !(w->used[i] && strcmp(w->commits[i], name) == 0))
        i++;
    return i;
}

/* A Parse: the name now means this text, whatever it meant before. */
static void prepare(struct relay_wire *w, const uint8_t *body, const uint8_t *end)
{
    const char *name = text_at(&body, end), *text = text_at(&body, end);
    if (!name || !text || strlen(name) >= RELAY_NAME_MAX)
        return;
    size_t i = find_name(w, name);
    if (i < RELAY_NAMES)
        w->used[i] = false;
    if (!relay_wire_has_word(text, strlen(text), "commit"))
        return;
    for (i = 0; i < RELAY_NAMES && w->used[i];)
        i++;
    if (i < RELAY_NAMES) {
        w->used[i] = true;
        memcpy(w->commits[i], name, strlen(name) + 1);
    }
}

static bool binds_commit(const struct relay_wire *w, const uint8_t *body, const uint8_t *end,
                         const char *name)
{
    const char *portal = text_at(&body, end), *statement = text_at(&body, end);
    if (!portal || !statement)
        return false;
    return (*name && strcmp(statement, name) == 0) || find_name(w, statement) < RELAY_NAMES;
}

static struct relay_message first_message(struct relay_wire *w, const uint8_t *data, size_t size)
{
    struct relay_message m = { 0 };
    size_t whole = size_of(data, size, 0, &m);
    if (whole == 0 || size < whole)
        return m;
    uint32_t code = whole >= 8 ? number_at(data + 4) : 0;
    m.size = whole;
    if (code == SSL_REQUEST || code == GSS_REQUEST) {
        m.kind = RELAY_WIRE_NO_TLS;
        return m;
    }
    w->begun = true;
    w->asked.stretch++;
    m.ends = true;
    return m;
}

struct relay_message relay_wire_client(struct relay_wire *w, const uint8_t *data, size_t size,
                                       const char *name)
{
    struct relay_message m = { 0 };
    if (!w->begun)
        return first_message(w, data, size);
    size_t whole = size_of(data, size, 1, &m);
    if (whole == 0 || size < whole)
        return m;
    const uint8_t *body = data + 5, *end = data + whole;
    bool commit = false;
    m.size = whole;
    m.place = w->asked;
    switch (data[0]) {
    case 'P': prepare(w, body, end); break;
    case 'B': commit = binds_commit(w, body, end, name); break;
    case 'Q':
        commit = relay_wire_has_word((const char *)body, (size_t)(end - body), "commit");
        break;
    default: break;
    }
    if (commit) {
        m.kind = RELAY_WIRE_COMMIT;
        w->asked.number++;
    }
    m.ends = strchr("QFSH", data[0]) != NULL;
    if (m.ends && data[0] != 'H')
        w->asked = (struct relay_place){ .stretch = w->asked.stretch + 1 };
    return m;
}

struct relay_message relay_wire_server(struct relay_wire *w, const uint8_t *data, size_t size)
{
    struct relay_message m = { 0 };
    size_t whole = size_of(data, size, 1, &m);
    if (whole == 0 || size < whole)
        return m;
    m.size = whole;
    m.place = w->answered;
    if (data[0] == 'C' && whole == 5 + sizeof "COMMIT" &&
        memcmp(data + 5, "COMMIT", sizeof "COMMIT") == 0) {
        m.kind = RELAY_WIRE_COMMITTED;
        w->answered.number++;
    } else if (data[0] == 'Z') {
        m.kind = RELAY_WIRE_READY;
        w->answered = (struct relay_place){ .stretch = w->answered.stretch + 1 };
    }
    return m;
}

#include "store/postgres/conninfo.h"
#include "base/error.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any option of libpq. */
enum { WORD_MAX = 40 };

/* libpq's message without its quotations, which may be any part of the string. Only a quoted = is
 * shown. */
static void unquoted(const char *message, char *out, size_t room)
{
    size_t n = 0;
    bool inside = false;
    for (const char *p = message; *p && *p != '\n' && n + 4 < room; p++) {
        if (*p == '"' && !inside) {
            memcpy(out + n, strncmp(p, "\"=\"", 3) == 0 ? "\"=\"" : "...", 3);
            n += 3;
        } else if (*p != '"' && !inside) {
            out[n++] = *p;
        }
        inside ^= *p == '"';
    }
    out[n] = '\0';
}

/* The edit distance between `b` and the first `size` letters of `a`; 9 for longer words. */
static unsigned distance(const char *a, size_t size, const char *b)
{
    unsigned row[WORD_MAX + 1];
    size_t other = strlen(b);
    if (size > WORD_MAX || other > WORD_MAX)
        return 9;
    for (size_t j = 0; j <= other; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= size; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= other; j++) {
            unsigned best = corner + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[other];
}

/* The message names an option that libpq does not know. The name may be part of a password, so it
 * is not shown; but a similar option of libpq is. False: it is another message. */
static bool unknown_option(const char *message, char *out, size_t room)
{
    static const char begin[] = "invalid connection option \"";
    const char *name = message + sizeof begin - 1, *meant = NULL;
    if (strncmp(message, begin, sizeof begin - 1) != 0)
        return false;
    PQconninfoOption *options = PQconndefaults();
    unsigned nearest = 3;
    for (const PQconninfoOption *o = options; o && o->keyword; o++) {
        unsigned far = distance(name, strcspn(name, "\""), o->keyword);
        if (far < nearest) {
            nearest = far;
            meant = o->keyword;
        }
    }
    if (meant)
        snprintf(out, room, "libpq does not know one of the options (did you mean %s?)", meant);
    else
        snprintf(out, room,
                 "libpq does not know one of the options (a value with spaces needs 'quotes')");
    PQconninfoFree(options);
    return true;
}

/* The value in `options`, or NULL. */
static const char *value_in(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

static enum hf_status refuse(struct hf_error *why, const char *what)
{
    return hf_error_set(why, HF_INVALID_REQUEST,
                        "The connection string cannot be read: %s. Write it as \"host=db1 "
                        "dbname=shop user=app\" or as postgresql://app@db1/shop, with "
                        "%%-escapes for special characters in the second form.",
                        what);
}

/* Are all non-empty items of the list ports? */
static bool are_ports(const char *list)
{
    for (;; list++) {
        unsigned long port = strtoul(list, NULL, 10);
        if (*list != ',' && *list != '\0' && (port < 1 || port > 65535))
            return false;
        list += strcspn(list, ",");
        if (*list == '\0')
            return true;
    }
}

/* libpq reads a password with unescaped special characters as the port, the host or the database's
 * name, and a message would show it. NULL, or the error. */
static const char *misread(const PQconninfoOption *options)
{
    const char *port = value_in(options, "port"), *host = value_in(options, "host");
    const char *database = value_in(options, "dbname");
    if (port && port[strspn(port, "0123456789,")] != '\0')
        return "the port is not a number";
    if (port && !are_ports(port))
        return "a port must be a number from 1 to 65535";
    if ((host && strchr(host, '@')) || (database && strchr(database, '@')))
        return "there is an extra @";
    return NULL;
}

enum hf_status hf_conninfo_check(const char *conninfo, struct hf_error *why)
{
    char *message = NULL, told[200] = "";
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    const char *wrong = options ? misread(options) : NULL;
    PQconninfoFree(options);
    if (options)
        return wrong ? refuse(why, wrong) : HF_OK;
    if (!message) {
        *why =
            (struct hf_error){ HF_NO_MEMORY, "Not enough memory to read the connection string." };
        return why->status;
    }
    if (!unknown_option(message, told, sizeof told))
        unquoted(message, told, sizeof told);
    PQfreemem(message);
    return refuse(why, told);
}

/* The value of the keyword: from the string, else the environment, else the built-in default. */
static const char *value_of(const PQconninfoOption *own, const PQconninfoOption *defaults,
                            const char *keyword)
{
    const char *value = value_in(own, keyword);
    return value ? value : value_in(defaults, keyword);
}

void hf_conninfo_value(const char *conninfo, const char *keyword, char *out, size_t room)
{
    PQconninfoOption *own = PQconninfoParse(conninfo, NULL), *defaults = PQconndefaults();
    const char *value = value_of(own, defaults, keyword);
    int n = snprintf(out, room, "%s", value ? value : "");
    if (n < 0 || (size_t)n >= room)
        out[0] = '\0';
    PQconninfoFree(own);
    PQconninfoFree(defaults);
}

/* Item `index` of a list with commas; the last one if there are fewer. */
static struct hf_bytes part_of(const char *list, unsigned index)
{
    size_t size = strcspn(list, ",");
    for (; index > 0 && list[size]; index--) {
        list += size + 1;
        size = strcspn(list, ",");
    }
    return hf_mem(list, size);
}

static void hosts_show(const char *hosts, const char *ports, char *out, size_t room)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; used < room; i++) {
        struct hf_bytes host = part_of(hosts, i), port = part_of(ports, i);
        if (port.size == 0)
            port = hf_str("5432");
        used +=
            (size_t)snprintf(out + used, room - used, "%s%.*s:%.*s", i ? "," : "", (int)host.size,
                             (const char *)host.data, (int)port.size, (const char *)port.data);
        if (((const char *)host.data)[host.size] == '\0')
            break;
    }
}

void hf_conninfo_show(const char *conninfo, char *out, size_t room)
{
    PQconninfoOption *own = PQconninfoParse(conninfo, NULL), *defaults = PQconndefaults();
    char places[160] = "this machine";
    const char *host = value_of(own, defaults, "host"), *port = value_of(own, defaults, "port");
    const char *database = value_of(own, defaults, "dbname"),
               *service = value_of(own, defaults, "service");
    if (!host)
        host = value_of(own, defaults, "hostaddr");
    if (host)
        hosts_show(host, port ? port : "5432", places, sizeof places);
    if (service && !value_in(own, "host"))
        snprintf(out, room, "the database of service \"%.60s\"", service);
    else if (database)
        snprintf(out, room, "database \"%.60s\" at %s", database, places);
    else
        snprintf(out, room, "the database at %s", places);
    PQconninfoFree(own);
    PQconninfoFree(defaults);
}

static void hide(const char *secret, char *text, size_t room)
{
    size_t size = secret ? strlen(secret) : 0;
    for (char *p = text; size > 0 && (p = strstr(p, secret)) != NULL; p += 3) {
        size_t left = room - (size_t)(p - text), rest = strlen(p + size) + 1;
        if (left < 4) { /* no room for the stars: cut the text */
            *p = '\0';
            return;
        }
        memmove(p + 3, p + size, rest < left - 3 ? rest : left - 3);
        memcpy(p, "***", 3);
        text[room - 1] = '\0';
    }
}

void hf_conninfo_hide(const char *conninfo, char *text, size_t room)
{
    PQconninfoOption *own = PQconninfoParse(conninfo, NULL);
    for (const PQconninfoOption *o = own; o && o->keyword; o++)
        if (o->dispchar && o->dispchar[0] == '*')
            hide(o->val, text, room);
    hide(getenv("PGPASSWORD"), text, room);
    PQconninfoFree(own);
}

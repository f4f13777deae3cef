/* The server's URL: http://HOST:PORT/PREFIX, without the other parts that a URL can have. */
#include "client/inner.h"
#include "http/octet.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static bool refuse(struct hf_error *why, const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    why->status = HF_INVALID_REQUEST;
    return false;
}

static bool scheme_take(const char **p, struct hf_client_url *url, struct hf_error *why)
{
    static const char plain[] = "http://", secure[] = "https://";
    url->tls = strncmp(*p, secure, sizeof secure - 1) == 0;
    if (!url->tls && strncmp(*p, plain, sizeof plain - 1) != 0)
        return refuse(
            why, "a server's URL begins with http:// or https://, such as http://127.0.0.1:4653");
    *p += url->tls ? sizeof secure - 1 : sizeof plain - 1;
    return true;
}

static bool copy(char *out, size_t room, const char *text, size_t size)
{
    if (size >= room)
        return false;
    memcpy(out, text, size);
    out[size] = '\0';
    return true;
}

/* [::1] */
static bool literal_take(const char **p, struct hf_client_url *url, struct hf_error *why)
{
    struct in6_addr address;
    size_t size = strcspn(*p + 1, "]");
    if ((*p)[1 + size] != ']' || !copy(url->host, sizeof url->host, *p + 1, size) ||
        inet_pton(AF_INET6, url->host, &address) != 1)
        return refuse(
            why, "the URL has a [, but no IPv6 address and ] after it, such as http://[::1]:4653");
    url->literal = true;
    *p += size + 2;
    return true;
}

static bool host_take(const char **p, struct hf_client_url *url, struct hf_error *why)
{
    struct in_addr address;
    size_t size = 0;
    if (**p == '[')
        return literal_take(p, url, why);
    while (hf_octet_is((unsigned char)(*p)[size], HF_OCTET_HOST))
        size++;
    if (size == 0 || !copy(url->host, sizeof url->host, *p, size))
        return refuse(why, "the URL has no usable host name; expected: 1 to 255 letters, digits, "
                           "dashes and dots, such as http://localhost:4653");
    url->literal = inet_pton(AF_INET, url->host, &address) == 1;
    *p += size;
    return true;
}

static bool port_take(const char **p, struct hf_client_url *url, struct hf_error *why)
{
    unsigned number = 0;
    size_t size;
    snprintf(url->port, sizeof url->port, "%s", url->tls ? "443" : "80");
    if (**p != ':')
        return true;
    size = strspn(++*p, "0123456789");
    for (size_t i = 0; i < size && number <= 65535; i++)
        number = number * 10 + (unsigned)((*p)[i] - '0');
    if (number < 1 || number > 65535)
        return refuse(why, "the URL has a : after its host, but no port from 1 to 65535 after it");
    snprintf(url->port, sizeof url->port, "%u", number);
    *p += size;
    return true;
}

static bool prefix_take(const char **p, struct hf_client_url *url, struct hf_error *why)
{
    size_t size = 0;
    while (hf_octet_is((unsigned char)(*p)[size], HF_OCTET_TARGET) && (*p)[size] != '?')
        size++;
    const char *end = *p + size;
    while (size > 0 && (*p)[size - 1] == '/')
        size--;
    if ((size > 0 && **p != '/') || !copy(url->prefix, sizeof url->prefix, *p, size))
        return refuse(why, "the path in the URL is longer than 255 bytes, or has no / before it");
    *p = end;
    return true;
}

bool hf_client_url_parse(const char *text, struct hf_client_url *url, struct hf_error *why)
{
    const char *p = text;
    *url = (struct hf_client_url){ .tls = false };
    if (!scheme_take(&p, url, why))
        return false;
    if (memchr(p, '@', strcspn(p, "/?#")))
        return refuse(why, "the URL contains an @. Give the credential with "
                           "HOLDFAST_CREDENTIAL or --credential-file, never in a URL");
    if (!host_take(&p, url, why) || !port_take(&p, url, why) || !prefix_take(&p, url, why))
        return false;
    if (*p != '\0')
        return refuse(why, "the URL has unexpected text after its host, port and path");
    bool six = strchr(url->host, ':') != NULL,
         usual = strcmp(url->port, url->tls ? "443" : "80") == 0;
    snprintf(url->field, sizeof url->field, "%s%s%s%s%s", six ? "[" : "", url->host, six ? "]" : "",
             usual ? "" : ":", usual ? "" : url->port);
    snprintf(url->shown, sizeof url->shown, "%s://%s%s", url->tls ? "https" : "http", url->field,
             url->prefix);
    return true;
}

bool hf_client_url_loopback(const struct hf_client_url *url)
{
    bool four = url->literal && strncmp(url->host, "127.", 4) == 0;
    return four || strcmp(url->host, "::1") == 0 || strcmp(url->host, "localhost") == 0;
}

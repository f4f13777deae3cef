/* Messages, fields and colours. All text from outside is made safe before it goes to a terminal:
 * the name of a resource may contain escape sequences. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

__attribute__((format(printf, 3, 0))) static void say(const struct hf_cli *cli, const char *prefix,
                                                      const char *format, va_list args)
{
    fprintf(stderr, "%s%s%s", hf_cli_color_begin(cli->color_err, HF_BOLD), prefix,
            hf_cli_color_end(cli->color_err, HF_BOLD));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void hf_cli_error(const struct hf_cli *cli, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    if (cli->heard) {
        vsnprintf(line, sizeof line, format, args);
        hf_buffer_printf(cli->heard, "%s\n", line);
    } else {
        say(cli, "holdfast: ", format, args);
    }
    va_end(args);
}

void hf_cli_note(const struct hf_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(cli, "", format, args);
    va_end(args);
}

void hf_cli_add_clean(struct hf_buffer *out, struct hf_bytes text)
{
    const utf8proc_uint8_t *p = text.data;
    for (size_t at = 0; at < text.size;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(p + at, (utf8proc_ssize_t)(text.size - at), &c);
        if (n <= 0) {
            hf_buffer_add_text(out, "\xef\xbf\xbd");
            at++;
            continue;
        }
        utf8proc_category_t kind = utf8proc_category(c);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            hf_buffer_printf(out, "\\x%02x", (unsigned)c);
        else if (kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_ZL ||
                 kind == UTF8PROC_CATEGORY_ZP)
            hf_buffer_printf(out, "\\u{%x}", (unsigned)c); /* could reverse or break the line */
        else
            hf_buffer_add(out, p + at, (size_t)n);
        at += (size_t)n;
    }
}

void hf_cli_add_quoted(struct hf_buffer *out, struct hf_bytes text)
{
    enum { SHOWN = 60 };
    struct hf_bytes part = text;
    if (part.size > SHOWN) {
        part.size = SHOWN;
        while (part.size > SHOWN - 3 &&
               (((const unsigned char *)text.data)[part.size] & 0xc0) == 0x80)
            part.size--; /* not in the middle of a character */
    }
    hf_buffer_add_char(out, '"');
    hf_cli_add_clean(out, part);
    hf_buffer_add_text(out, part.size < text.size ? "...\"" : "\"");
}

size_t hf_cli_width(struct hf_bytes clean)
{
    const utf8proc_uint8_t *p = clean.data;
    size_t width = 0;
    for (size_t at = 0; at < clean.size;) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(p + at, (utf8proc_ssize_t)(clean.size - at), &c);
        if (n <= 0)
            return width;
        width += (size_t)utf8proc_charwidth(c);
        at += (size_t)n;
    }
    return width;
}

const char *hf_cli_color_begin(bool enabled, enum hf_cli_color color)
{
    static const char *const begin[] = { "",         "\033[2m",  "\033[1m",
                                         "\033[32m", "\033[33m", "\033[31m" };
    return enabled ? begin[color] : "";
}

const char *hf_cli_color_end(bool enabled, enum hf_cli_color color)
{
    return enabled && color != HF_PLAIN ? "\033[0m" : "";
}

void hf_cli_fields(const struct hf_cli *cli, const struct hf_cli_field *fields, size_t count)
{
    int widest = 0;
    struct hf_buffer out = { 0 };
    for (size_t i = 0; i < count; i++)
        if (fields[i].label && (int)strlen(fields[i].label) > widest)
            widest = (int)strlen(fields[i].label);
    for (size_t i = 0; i < count; i++) {
        const struct hf_cli_field *f = &fields[i];
        if (!f->label)
            continue;
        hf_buffer_printf(&out, "%s%-*s%s  %s", hf_cli_color_begin(cli->color_out, HF_DIM), widest,
                         f->label, hf_cli_color_end(cli->color_out, HF_DIM),
                         hf_cli_color_begin(cli->color_out, f->color));
        hf_cli_add_clean(&out, f->text);
        hf_buffer_printf(&out, "%s\n", hf_cli_color_end(cli->color_out, f->color));
    }
    hf_cli_flush_to_stdout(&out);
    hf_buffer_free(&out);
}

void hf_cli_line(const struct hf_cli *cli, enum hf_cli_color color, const char *text)
{
    printf("%s%s%s\n", hf_cli_color_begin(cli->color_out, color), text,
           hf_cli_color_end(cli->color_out, color));
}

void hf_cli_flush_to_stdout(struct hf_buffer *out)
{
    if (out->failed) {
        fputs("holdfast: out of memory for the answer\n", stderr);
        exit(HF_EXIT_STORE);
    }
    if (out->size > 0)
        fwrite(out->data, 1, out->size, stdout);
    hf_buffer_reset(out);
}

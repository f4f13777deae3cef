#include "cli/config.h"

#include "base/text.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static char *skip_space(char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

/* Check a line: bounded length, UTF-8, and no control character except tab. NULL, or what is
 * wrong. */
static const char *line_check(const char *line, size_t size)
{
    if (size > HF_CLI_CONFIG_LINE_MAX)
        return "the line is longer than 4096 bytes";
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < 0x20 ? line[i] != '\t' : line[i] == 0x7f)
            return "the line contains a control character";
    return hf_utf8_valid(hf_mem(line, size)) ? NULL : "the line is not UTF-8";
}

/* Unescape `"...` up to the closing quote, in place. Only a comment may follow. */
static const char *quoted_parse(char *p)
{
    char *out = p++;
    while (*p != '"') {
        if (*p == '\\' && p[1] != '"' && p[1] != '\\')
            return "in quotes, only \\\" and \\\\ are escapes; write \\\\ for a backslash";
        p += *p == '\\';
        if (*p == '\0')
            return "the closing quote is missing";
        *out++ = *p++;
    }
    p = skip_space(p + 1);
    if (*p != '\0' && *p != '#')
        return "unexpected text after the closing quote";
    *out = '\0';
    return NULL;
}

/* End the value in place before a comment or the end of the line, and before white space there.
 * p[-1] exists. */
static const char *bare_parse(char *p)
{
    const char *begin = p;
    char *end = p;
    if (*p == '\'')
        return "use \" to quote a value, not '";
    for (; *p != '\0' && !(*p == '#' && is_space(p[-1])); p++)
        if (!is_space(*p))
            end = p + 1;
    if (end == begin)
        return "the value is missing; write \"\" for an empty value";
    *end = '\0';
    return NULL;
}

/* Parse one line that ends with a NUL. setting: out; its name is NULL if the line is empty or a
 * comment. NULL, or what is wrong. */
static const char *line_parse(char *line, struct hf_cli_setting *setting)
{
    char *name = skip_space(line);
    setting->name = NULL;
    if (*name == '\0' || *name == '#')
        return NULL;
    char *end = name;
    while (*end != '\0' && *end != '=' && !is_space(*end))
        end++;
    char *equals = skip_space(end);
    if (*equals != '=' || end == name)
        return "expected: name = value";
    char *value = skip_space(equals + 1);
    *end = '\0';
    setting->name = name;
    setting->value = value;
    return *value == '"' ? quoted_parse(value) : bare_parse(value);
}

struct lines {
    char *at, *end;
    unsigned number; /* of the line that was read last */
};

/* Read the next line. setting: out; its name is NULL if the line has none. what: out, NULL or what
 * is wrong with it. False at the end of the text. */
static bool line_next(struct lines *l, struct hf_cli_setting *setting, const char **what)
{
    char *line = l->at, *stop;
    if (line >= l->end)
        return false;
    stop = memchr(line, '\n', (size_t)(l->end - line));
    stop = stop ? stop : l->end;
    l->at = stop + 1;
    if (stop > line && stop[-1] == '\r')
        stop--;
    *stop = '\0';
    *setting = (struct hf_cli_setting){ .line = ++l->number };
    *what = line_check(line, (size_t)(stop - line));
    if (!*what)
        *what = line_parse(line, setting);
    return true;
}

bool hf_cli_config_parse(char *text, size_t size,
                         bool (*each)(void *arg, const struct hf_cli_setting *setting), void *arg,
                         struct hf_cli_config_refusal *refusal)
{
    struct lines lines = { .at = text, .end = text + size };
    struct hf_cli_setting setting;
    const char *what;
    *refusal = (struct hf_cli_config_refusal){ 0 };
    while (line_next(&lines, &setting, &what)) {
        if (what) {
            *refusal = (struct hf_cli_config_refusal){ setting.line, what };
            return false;
        }
        if (setting.name && !each(arg, &setting))
            return false;
    }
    return true;
}

void hf_cli_config_parse_all(char *text, size_t size, const struct hf_cli_config_sink *sink)
{
    struct lines lines = { .at = text, .end = text + size };
    struct hf_cli_setting setting;
    const char *what;
    while (line_next(&lines, &setting, &what)) {
        const struct hf_cli_config_refusal refusal = { setting.line, what };
        if (what)
            sink->malformed(sink->arg, &refusal);
        else if (setting.name)
            sink->each(sink->arg, &setting);
    }
}

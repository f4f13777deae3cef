/* The lines of a config file. What is understood can be written down again, quoted, and means the
 * same. */
#include "fuzz/support/fuzz.h"

/* The program's own objects bring a main along, so the one file that is tried here is taken in
 * whole. */
#include "cli/config_text.c" /* NOLINT(bugprone-suspicious-include): see above */

#include "base/buffer.h"
#include "base/bytes.h"

#include <stdlib.h>

struct seen {
    struct hf_buffer again; /* the settings, written down */
    struct hf_buffer told;  /* names and values, with NULs */
    unsigned line;
    bool longer; /* quotes made a line longer than any may be */
};

static bool take(void *arg, const struct hf_cli_setting *setting)
{
    struct seen *seen = arg;
    FUZZ_WANT(setting->name[0] != '\0' && setting->line > seen->line);
    seen->line = setting->line;
    size_t begin = seen->again.size;
    hf_buffer_printf(&seen->again, "%s = \"", setting->name);
    for (const char *p = setting->value; *p; p++) {
        if (*p == '"' || *p == '\\')
            hf_buffer_add_char(&seen->again, '\\');
        hf_buffer_add_char(&seen->again, *p);
    }
    hf_buffer_add_char(&seen->again, '"');
    seen->longer |= seen->again.size - begin > HF_CLI_CONFIG_LINE_MAX;
    hf_buffer_add_char(&seen->again, '\n');
    hf_buffer_add(&seen->told, setting->name, strlen(setting->name) + 1);
    hf_buffer_add(&seen->told, setting->value, strlen(setting->value) + 1);
    return true;
}

static bool parse(struct hf_bytes text, struct seen *seen, struct hf_cli_config_refusal *refusal)
{
    char *copy = fuzz_alloc(text.size + 1);
    *seen = (struct seen){ .line = 0 };
    *refusal = (struct hf_cli_config_refusal){ 77, "not filled" };
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = 'x';
    bool good = hf_cli_config_parse(copy, text.size, take, seen, refusal);
    FUZZ_WANT(good == (refusal->line == 0) && !seen->again.failed && !seen->told.failed);
    FUZZ_WANT(good || fuzz_sentence(refusal->what, 512));
    free(copy);
    return good;
}

static void seen_free(struct seen *seen)
{
    hf_buffer_free(&seen->again);
    hf_buffer_free(&seen->told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen first, second;
    struct hf_cli_config_refusal refusal;
    if (parse(hf_mem(data, size), &first, &refusal) && !first.longer) {
        FUZZ_WANT(parse(fuzz_held(&first.again), &second, &refusal));
        FUZZ_WANT(hf_bytes_equal(fuzz_held(&first.told), fuzz_held(&second.told)));
        seen_free(&second);
    }
    seen_free(&first);
    return 0;
}

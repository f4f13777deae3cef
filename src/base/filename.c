#include "base/filename.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* `count` digits at `text`, lower case. False if any is not a digit. */
static bool digits_read(const char *text, size_t count, unsigned radix, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        const char *found = text[i] ? strchr(digits, text[i]) : NULL;
        if (!found || (unsigned)(found - digits) >= radix)
            return false;
        *out = *out * radix + (uint64_t)(found - digits);
    }
    return true;
}

enum hf_filename hf_filename_read(const char *name, uint64_t *number)
{
    enum { JOURNAL = 8, NUMBER = 8, SNAPSHOT = 9, POSITION = 16 };
    if (strncmp(name, "journal-", JOURNAL) == 0 &&
        digits_read(name + JOURNAL, NUMBER, 10, number)) {
        const char *suffix = name + JOURNAL + NUMBER;
        if (*number > 0 && strcmp(suffix, ".log") == 0)
            return HF_FILENAME_LOG;
        if (*number > 0 && strcmp(suffix, ".zst") == 0)
            return HF_FILENAME_PACK;
    }
    if (strncmp(name, "snapshot-", SNAPSHOT) == 0 &&
        digits_read(name + SNAPSHOT, POSITION, 16, number) &&
        strcmp(name + SNAPSHOT + POSITION, ".snap") == 0)
        return HF_FILENAME_SNAPSHOT;
    *number = 0;
    size_t size = strlen(name);
    return strcmp(name, "holds.idx") == 0                      ? HF_FILENAME_INDEX
           : strcmp(name, "closed") == 0                       ? HF_FILENAME_CLOSED
           : size >= 4 && strcmp(name + size - 4, ".tmp") == 0 ? HF_FILENAME_TMP
                                                               : HF_FILENAME_OTHER;
}

bool hf_filename_follows_batch(enum hf_filename kind, uint64_t number)
{
    return ((kind == HF_FILENAME_LOG || kind == HF_FILENAME_PACK) && number > 1) ||
           kind == HF_FILENAME_SNAPSHOT || kind == HF_FILENAME_INDEX;
}

void hf_filename_missing(const char *path, char *out, size_t size)
{
    out[0] = '\0';
    for (const char *end = path; (end = strchr(end + 1, '/')) != NULL && *end;) {
        char above[4096];
        if (end[1] == '/' || end[1] == '\0' || (size_t)(end - path) >= sizeof above)
            continue;
        snprintf(above, sizeof above, "%.*s", (int)(end - path), path);
        if (access(above, F_OK) == 0 || errno != ENOENT)
            continue;
        snprintf(out, size, "%s", above);
        return;
    }
}

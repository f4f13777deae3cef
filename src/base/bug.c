#include "base/bug.h"

#ifdef HF_BUGS

#include <stddef.h>
#include <string.h>

enum hf_bug hf_bug_planted;

bool hf_bug_plant(const char *name)
{
    static const struct {
        const char *name;
        enum hf_bug bug;
    } bugs[] = {
#define HF_BUG_ROW(name, part, words) { #name, HF_BUG_##name },
        HF_BUG_LIST(HF_BUG_ROW)
#undef HF_BUG_ROW
    };
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        if (strcmp(bugs[i].name, name) == 0) {
            hf_bug_planted = bugs[i].bug;
            return true;
        }
    }
    return false;
}

#else
typedef int hf_bug_no_bugs_here; /* a file must not be empty */
#endif

#include "store/journal/names.h"

#include <errno.h>
#include <stdlib.h>

static bool each(void *arg, const char *text)
{
    struct hf_names *n = arg;
    struct hf_name name;
    name.kind = hf_filename_read(text, &name.number);
    if (name.kind == HF_FILENAME_OTHER || strlen(text) >= sizeof name.text)
        return true;
    memcpy(name.text, text, strlen(text) + 1);
    if (n->count == n->room) {
        size_t room = n->room ? n->room * 2 : 64;
        struct hf_name *list = realloc(n->list, room * sizeof *list);
        if (!list) {
            n->failed = true;
            return false;
        }
        n->list = list;
        n->room = room;
    }
    n->list[n->count++] = name;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct hf_name *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

int hf_names_list(const struct hf_io *io, struct hf_dir *dir, struct hf_names *out)
{
    *out = (struct hf_names){ 0 };
    int error = io->dir_list(dir, each, out);
    if (error || out->failed)
        return error ? error : -ENOMEM;
    if (out->count > 0)
        qsort(out->list, out->count, sizeof *out->list, compare);
    return 0;
}

void hf_names_free(struct hf_names *n)
{
    free(n->list);
    *n = (struct hf_names){ 0 };
}

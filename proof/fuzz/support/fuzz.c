#include "fuzz/support/fuzz.h"

#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void fuzz_unwanted(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not as it should be: %s\n", file, line, what);
    abort();
}

uint8_t fuzz_u8(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->p++;
}

uint16_t fuzz_u16(struct fuzz_input *in)
{
    unsigned low = fuzz_u8(in);
    return (uint16_t)(low | (unsigned)fuzz_u8(in) << 8);
}

uint64_t fuzz_u64(struct fuzz_input *in)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 64; i += 8)
        value |= (uint64_t)fuzz_u8(in) << i;
    return value;
}

struct hf_bytes fuzz_some(struct fuzz_input *in, size_t size)
{
    struct hf_bytes got = hf_mem(in->p, size < in->left ? size : in->left);
    in->p += got.size;
    in->left -= got.size;
    return got;
}

struct hf_bytes fuzz_rest(struct fuzz_input *in)
{
    return fuzz_some(in, in->left);
}

void *fuzz_alloc(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    if (!memory)
        fuzz_unwanted("there is memory", __FILE__, __LINE__);
    return memory;
}

char *fuzz_copy(struct hf_bytes bytes)
{
    char *copy = fuzz_alloc(bytes.size);
    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

char *fuzz_text(struct hf_bytes bytes)
{
    const void *end = bytes.size > 0 ? memchr(bytes.data, 0, bytes.size) : NULL;
    size_t size = end ? (size_t)((const char *)end - (const char *)bytes.data) : bytes.size;
    char *text = fuzz_alloc(size + 1);
    if (size > 0)
        memcpy(text, bytes.data, size);
    text[size] = '\0';
    return text;
}

void fuzz_split(struct fuzz_input *in, struct fuzz_split *out)
{
    uint8_t steps[FUZZ_CUTS] = { 0 };
    size_t count = fuzz_u8(in) % FUZZ_CUTS, at = 0;
    for (size_t i = 0; i < count; i++)
        steps[i] = fuzz_u8(in);
    out->bytes = fuzz_rest(in);
    for (size_t i = 0; i < count; i++) {
        at += steps[i];
        out->ends[i] = at < out->bytes.size ? at : out->bytes.size;
    }
    out->ends[count] = out->bytes.size;
    out->count = count + 1;
}

struct hf_bytes fuzz_held(const struct hf_buffer *buffer)
{
    return buffer->data ? hf_mem(buffer->data, buffer->size) : hf_mem("", 0);
}

bool fuzz_sentence(const char *text, size_t room)
{
    size_t size = strnlen(text, room);
    if (size == 0 || size == room || !hf_utf8_valid(hf_mem(text, size)))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
            ((unsigned char)text[i] == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
            return false;
    return true;
}

static char path[512];
static int folder = -1;

static void folder_remove(void)
{
    fuzz_folder_empty();
    (void)rmdir(path);
}

const char *fuzz_folder(void)
{
    if (folder >= 0)
        return path;
    const char *parent = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/holdfast-fuzz-XXXXXX", parent && *parent ? parent : "/tmp");
    FUZZ_WANT(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_WANT(folder >= 0 && atexit(folder_remove) == 0);
    return path;
}

void fuzz_folder_put(const char *name, struct hf_bytes bytes)
{
    (void)fuzz_folder();
    const char *p = bytes.data;
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_WANT(fd >= 0);
    for (size_t done = 0; done < bytes.size;) {
        ssize_t n = write(fd, p + done, bytes.size - done);
        FUZZ_WANT(n > 0);
        done += (size_t)n;
    }
    close(fd);
}

void fuzz_folder_empty(void)
{
    DIR *dir = opendir(path);
    FUZZ_WANT(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            FUZZ_WANT(unlinkat(folder, entry->d_name, 0) == 0);
    closedir(dir);
}

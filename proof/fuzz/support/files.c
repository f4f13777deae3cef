#include "fuzz/support/files.h"

#include "fuzz/support/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct fuzz_content {
    char name[64];
    unsigned char *data; /* owned; stays where it is while it is mapped */
    uint64_t size, room;
    unsigned mapped, handles;
    bool removed;
    struct fuzz_content *next;
};

struct hf_dir {
    struct fuzz_files *files;
};

struct hf_file {
    struct fuzz_files *files;
    struct fuzz_content *content;
};

/* ---- Blocks ---- Large ones are used again, because fresh memory is most of what a run would
 * cost. They fit exactly, so that a sanitizer still sees what is read beyond them. */

enum { BLOCKS = 16, BLOCK_LEAST = 65536 };

static struct block {
    void *data;
    uint64_t size;
} blocks[BLOCKS];

static void *block_get(uint64_t size)
{
    for (size_t i = 0; size >= BLOCK_LEAST && i < BLOCKS; i++) {
        if (blocks[i].size != size)
            continue;
        void *data = blocks[i].data;
        blocks[i] = (struct block){ 0 };
        return data;
    }
    return fuzz_alloc(size);
}

static void block_put(void *data, uint64_t size)
{
    for (size_t i = 0; size >= BLOCK_LEAST && i < BLOCKS; i++) {
        if (blocks[i].data)
            continue;
        blocks[i] = (struct block){ data, size };
        return;
    }
    free(data);
}

/* ---- Files ---- */

static struct fuzz_content **find(struct fuzz_files *files, const char *name)
{
    struct fuzz_content **at = &files->first;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static void content_free(struct fuzz_files *files, struct fuzz_content *c)
{
    files->bytes -= c->size;
    block_put(c->data, c->room);
    free(c);
}

/* Take it out of the directory; it lives on while a handle has it open. */
static void detach(struct fuzz_files *files, struct fuzz_content **at)
{
    struct fuzz_content *c = *at;
    *at = c->next;
    c->removed = true;
    if (c->handles == 0)
        content_free(files, c);
}

static struct fuzz_content *content_make(struct fuzz_files *files, const char *name)
{
    struct fuzz_content *c = calloc(1, sizeof *c);
    FUZZ_WANT(c && strlen(name) < sizeof c->name);
    snprintf(c->name, sizeof c->name, "%s", name);
    c->next = files->first;
    files->first = c;
    return c;
}

static int content_write(struct fuzz_files *files, struct fuzz_content *c, struct hf_bytes bytes,
                         uint64_t at)
{
    uint64_t end = at + bytes.size;
    if (end < at || (end > c->size && end - c->size > FUZZ_FILES_MAX - files->bytes))
        return -ENOSPC;
    if (end > c->room) {
        FUZZ_WANT(c->mapped == 0);
        uint64_t room = end > 2 * c->room ? end : 2 * c->room;
        unsigned char *grown = block_get(room);
        if (c->size > 0)
            memcpy(grown, c->data, c->size);
        block_put(c->data, c->room);
        c->data = grown;
        c->room = room;
    }
    if (at > c->size)
        memset(c->data + c->size, 0, at - c->size);
    if (bytes.size > 0)
        memcpy(c->data + at, bytes.data, bytes.size);
    if (end > c->size) {
        files->bytes += end - c->size;
        c->size = end;
    }
    return 0;
}

/* ---- The table ---- */

static int files_dir_open(void *ctx, const char *path, bool create, struct hf_dir **out)
{
    (void)path;
    (void)create;
    *out = fuzz_alloc(sizeof **out);
    (*out)->files = ctx;
    return 0;
}

static void files_dir_close(struct hf_dir *dir)
{
    free(dir);
}

static int files_dir_sync(struct hf_dir *dir)
{
    (void)dir;
    return 0;
}

static int files_dir_list(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg)
{
    for (struct fuzz_content *c = dir->files->first; c; c = c->next)
        if (!each(arg, c->name))
            break;
    return 0;
}

static int files_rename(struct hf_dir *dir, const char *from, const char *to)
{
    struct fuzz_content *c = *find(dir->files, from), **old = find(dir->files, to);
    if (!c)
        return -ENOENT;
    if (*old && *old != c)
        detach(dir->files, old);
    snprintf(c->name, sizeof c->name, "%s", to);
    return 0;
}

static int files_remove(struct hf_dir *dir, const char *name)
{
    struct fuzz_content **at = find(dir->files, name);
    if (!*at)
        return -ENOENT;
    detach(dir->files, at);
    return 0;
}

static int files_lock(struct hf_dir *dir, const char *who, char *holder, size_t holder_size)
{
    (void)dir;
    (void)who;
    (void)holder;
    (void)holder_size;
    return 0;
}

static int files_open(struct hf_dir *dir, const char *name, enum hf_open_how how,
                      struct hf_file **out)
{
    struct fuzz_content **at = find(dir->files, name), *c = *at;
    if (how == HF_OPEN_CREATE) {
        if (c)
            detach(dir->files, at);
        c = content_make(dir->files, name);
    }
    if (!c)
        return -ENOENT;
    c->handles++;
    *out = fuzz_alloc(sizeof **out);
    **out = (struct hf_file){ dir->files, c };
    return 0;
}

static void files_close(struct hf_file *file)
{
    struct fuzz_content *c = file->content;
    if (--c->handles == 0 && c->removed)
        content_free(file->files, c);
    free(file);
}

static int files_size(struct hf_file *file, uint64_t *out)
{
    *out = file->content->size;
    return 0;
}

static int files_read(struct hf_file *file, void *data, size_t size, uint64_t at)
{
    struct fuzz_content *c = file->content;
    if (at > c->size || size > c->size - at)
        return -EIO;
    if (size > 0)
        memcpy(data, c->data + at, size);
    return 0;
}

static int files_write(struct hf_file *file, const void *data, size_t size, uint64_t at)
{
    return content_write(file->files, file->content, hf_mem(data, size), at);
}

static void files_start(struct hf_file *file, uint64_t at, size_t size)
{
    (void)file;
    (void)at;
    (void)size;
}

static int files_sync(struct hf_file *file)
{
    (void)file;
    return 0;
}

static int files_truncate(struct hf_file *file, uint64_t size)
{
    struct fuzz_content *c = file->content;
    if (size < c->size) {
        file->files->bytes -= c->size - size;
        c->size = size;
    }
    return 0;
}

static int files_map(struct hf_file *file, size_t size, const unsigned char **out)
{
    if (size > file->content->size)
        return -EINVAL;
    file->content->mapped++;
    *out = file->content->data;
    return 0;
}

static void files_unmap(struct hf_file *file, const unsigned char *data, size_t size)
{
    (void)data;
    (void)size;
    file->content->mapped--;
}

static int files_touch(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size)
{
    (void)file;
    (void)map;
    (void)at;
    (void)size;
    return 0;
}

static void files_detach(struct hf_file *file)
{
    (void)file;
}

static hf_time files_wall_ms(void *ctx)
{
    return ((struct fuzz_files *)ctx)->wall;
}

/* It goes forward with the wall clock, and confirms it. */
static hf_time files_boot_ms(void *ctx)
{
    struct fuzz_files *files = ctx;
    if (files->wall > files->followed)
        files->boot += files->wall - files->followed;
    files->followed = files->wall;
    return files->boot;
}

static uint64_t files_monotonic_ns(void *ctx)
{
    return ((struct fuzz_files *)ctx)->ticks += 100;
}

static int files_random(void *ctx, void *data, size_t size)
{
    struct fuzz_files *files = ctx;
    unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)(files->random++ * 167 >> 3);
    return 0;
}

/* ---- For targets ---- */

void fuzz_files_init(struct fuzz_files *files)
{
    *files = (struct fuzz_files){ .wall = FUZZ_START };
    files->io = (struct hf_io){
        .ctx = files,
        .dir_open = files_dir_open,
        .dir_close = files_dir_close,
        .dir_sync = files_dir_sync,
        .dir_list = files_dir_list,
        .rename = files_rename,
        .remove = files_remove,
        .lock = files_lock,
        .open = files_open,
        .close = files_close,
        .size = files_size,
        .read = files_read,
        .write = files_write,
        .start = files_start,
        .sync = files_sync,
        .truncate = files_truncate,
        .map = files_map,
        .unmap = files_unmap,
        .touch = files_touch,
        .detach = files_detach,
        .wall_ms = files_wall_ms,
        .boot_ms = files_boot_ms,
        .monotonic_ns = files_monotonic_ns,
        .random = files_random,
    };
}

void fuzz_files_free(struct fuzz_files *files)
{
    while (files->first) {
        FUZZ_WANT(files->first->handles == 0 && files->first->mapped == 0);
        detach(files, &files->first);
    }
    FUZZ_WANT(files->bytes == 0);
}

void fuzz_files_put(struct fuzz_files *files, const char *name, struct hf_bytes bytes)
{
    struct fuzz_content **old, *c = content_make(files, name);
    FUZZ_WANT(content_write(files, c, bytes, 0) == 0);
    for (old = &c->next; *old && strcmp((*old)->name, c->name) != 0; old = &(*old)->next)
        continue;
    if (*old)
        detach(files, old); /* last: the name may be its own */
}

struct hf_bytes fuzz_files_get(const struct fuzz_files *files, const char *name)
{
    const struct fuzz_content *c = files->first;
    while (c && strcmp(c->name, name) != 0)
        c = c->next;
    return c ? hf_mem(c->data, c->size) : hf_mem(NULL, 0);
}

void fuzz_files_remove(struct fuzz_files *files, const char *name)
{
    struct fuzz_content **at = find(files, name);
    if (*at)
        detach(files, at);
}

static bool copy_one(void *arg, const char *name, struct hf_bytes bytes)
{
    fuzz_files_put(arg, name, bytes);
    return true;
}

void fuzz_files_copy(struct fuzz_files *to, const struct fuzz_files *from)
{
    fuzz_files_each(from, copy_one, to);
}

const char *fuzz_files_find(const struct fuzz_files *files, const char *suffix)
{
    size_t size = strlen(suffix);
    for (const struct fuzz_content *c = files->first; c; c = c->next)
        if (strlen(c->name) >= size && strcmp(c->name + strlen(c->name) - size, suffix) == 0)
            return c->name;
    return NULL;
}

void fuzz_files_each(const struct fuzz_files *files,
                     bool (*each)(void *arg, const char *name, struct hf_bytes bytes), void *arg)
{
    for (const struct fuzz_content *c = files->first; c; c = c->next)
        if (!each(arg, c->name, hf_mem(c->data, c->size)))
            break;
}

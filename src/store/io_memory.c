/* Files in memory, for ":memory:". A directory is a list of files; the last handle frees a removed
 * file. */
#include "store/io.h"

#include "base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct content {
    char name[64];
    unsigned char *data; /* never moved while mapped */
    uint64_t size, room;
    unsigned mapped, handles;
    bool removed;
    struct content *next;
};

struct hf_dir {
    pthread_mutex_t lock;
    struct content *files;
};

struct hf_file {
    struct hf_dir *dir;
    struct content *content;
};

static int mem_dir_open(void *ctx, const char *path, bool create, struct hf_dir **out)
{
    (void)ctx;
    (void)path;
    (void)create;
    struct hf_dir *dir = calloc(1, sizeof *dir);
    if (!dir)
        return -ENOMEM;
    pthread_mutex_init(&dir->lock, NULL);
    *out = dir;
    return 0;
}

static void content_free(struct content *c)
{
    free(c->data);
    free(c);
}

static void mem_dir_close(struct hf_dir *dir)
{
    while (dir->files) {
        struct content *c = dir->files;
        dir->files = c->next;
        content_free(c);
    }
    pthread_mutex_destroy(&dir->lock);
    free(dir);
}

static int mem_dir_sync(struct hf_dir *dir)
{
    (void)dir;
    return 0;
}

static struct content **find(struct hf_dir *dir, const char *name)
{
    struct content **at = &dir->files;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static int mem_dir_list(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg)
{
    pthread_mutex_lock(&dir->lock);
    for (struct content *c = dir->files; c; c = c->next)
        if (!each(arg, c->name))
            break;
    pthread_mutex_unlock(&dir->lock);
    return 0;
}

/* Remove the file at `at` from the directory; it stays in memory while a handle has it open. */
static void detach(struct content **at)
{
    struct content *c = *at;
    *at = c->next;
    c->removed = true;
    if (c->handles == 0)
        content_free(c);
}

static int mem_remove(struct hf_dir *dir, const char *name)
{
    pthread_mutex_lock(&dir->lock);
    struct content **at = find(dir, name);
    bool there = *at != NULL;
    if (there)
        detach(at);
    pthread_mutex_unlock(&dir->lock);
    return there ? 0 : -ENOENT;
}

static int mem_rename(struct hf_dir *dir, const char *from, const char *to)
{
    pthread_mutex_lock(&dir->lock);
    struct content *c = *find(dir, from);
    if (c) {
        struct content **old = find(dir, to);
        if (*old && *old != c)
            detach(old);
        snprintf(c->name, sizeof c->name, "%s", to);
    }
    pthread_mutex_unlock(&dir->lock);
    return c ? 0 : -ENOENT;
}

static int mem_lock(struct hf_dir *dir, const char *who, char *holder, size_t holder_size)
{
    (void)dir;
    (void)who;
    (void)holder;
    (void)holder_size;
    return 0;
}

static struct content *content_make(struct hf_dir *dir, const char *name)
{
    struct content *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->next = dir->files;
    dir->files = c;
    return c;
}

static int mem_open(struct hf_dir *dir, const char *name, enum hf_open_how how,
                    struct hf_file **out)
{
    struct hf_file *file = malloc(sizeof *file);
    if (!file)
        return -ENOMEM;
    pthread_mutex_lock(&dir->lock);
    struct content **at = find(dir, name);
    if (*at && how == HF_OPEN_CREATE)
        detach(at);
    struct content *c = how == HF_OPEN_CREATE ? content_make(dir, name) : *find(dir, name);
    if (c)
        c->handles++;
    pthread_mutex_unlock(&dir->lock);
    if (!c) {
        free(file);
        return how == HF_OPEN_CREATE ? -ENOMEM : -ENOENT;
    }
    file->dir = dir;
    file->content = c;
    *out = file;
    return 0;
}

static void mem_close(struct hf_file *file)
{
    pthread_mutex_lock(&file->dir->lock);
    struct content *c = file->content;
    if (--c->handles == 0 && c->removed)
        content_free(c);
    pthread_mutex_unlock(&file->dir->lock);
    free(file);
}

static int mem_size(struct hf_file *file, uint64_t *out)
{
    *out = file->content->size;
    return 0;
}

static int mem_read(struct hf_file *file, void *data, size_t size, uint64_t at)
{
    struct content *c = file->content;
    if (at > c->size || size > c->size - at)
        return -EIO;
    if (size > 0) /* an empty file has no data */
        memcpy(data, c->data + at, size);
    return 0;
}

static int mem_write(struct hf_file *file, const void *data, size_t size, uint64_t at)
{
    struct content *c = file->content;
    uint64_t end = at + size;
    if (size == 0)
        return 0;
    if (end > c->room) {
        HF_ASSERT(c->mapped == 0);
        uint64_t room = c->room ? c->room : 4096;
        while (room < end)
            room *= 2;
        unsigned char *grown = realloc(c->data, room);
        if (!grown)
            return -ENOSPC;
        c->data = grown;
        c->room = room;
    }
    if (at > c->size)
        memset(c->data + c->size, 0, at - c->size);
    memcpy(c->data + at, data, size);
    if (end > c->size)
        c->size = end;
    return 0;
}

static void mem_start(struct hf_file *file, uint64_t at, size_t size)
{
    (void)file;
    (void)at;
    (void)size;
}

static int mem_truncate(struct hf_file *file, uint64_t size)
{
    HF_ASSERT(file->content->mapped == 0);
    if (size < file->content->size)
        file->content->size = size;
    return 0;
}

static int mem_sync(struct hf_file *file)
{
    (void)file;
    return 0;
}

static int mem_map(struct hf_file *file, size_t size, const unsigned char **out)
{
    if (size > file->content->size)
        return -EINVAL;
    file->content->mapped++;
    *out = file->content->data;
    return 0;
}

static void mem_unmap(struct hf_file *file, const unsigned char *data, size_t size)
{
    (void)data;
    (void)size;
    file->content->mapped--;
}

static int mem_touch(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size)
{
    (void)file;
    (void)map;
    (void)at;
    (void)size;
    return 0;
}

static void mem_detach(struct hf_file *file)
{
    (void)file;
}

static hf_time mem_wall_ms(void *ctx)
{
    return hf_io_os()->wall_ms(ctx);
}

static hf_time mem_boot_ms(void *ctx)
{
    return hf_io_os()->boot_ms(ctx);
}

static uint64_t mem_monotonic_ns(void *ctx)
{
    return hf_io_os()->monotonic_ns(ctx);
}

static int mem_random(void *ctx, void *data, size_t size)
{
    return hf_io_os()->random(ctx, data, size);
}

static const struct hf_io memory = {
    .dir_open = mem_dir_open,
    .dir_close = mem_dir_close,
    .dir_sync = mem_dir_sync,
    .dir_list = mem_dir_list,
    .rename = mem_rename,
    .remove = mem_remove,
    .lock = mem_lock,
    .open = mem_open,
    .close = mem_close,
    .size = mem_size,
    .read = mem_read,
    .write = mem_write,
    .start = mem_start,
    .sync = mem_sync,
    .truncate = mem_truncate,
    .map = mem_map,
    .unmap = mem_unmap,
    .touch = mem_touch,
    .detach = mem_detach,
    .wall_ms = mem_wall_ms,
    .boot_ms = mem_boot_ms,
    .monotonic_ns = mem_monotonic_ns,
    .random = mem_random,
};

const struct hf_io *hf_io_memory(void)
{
    return &memory;
}

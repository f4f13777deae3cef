/* The table over simulated files: names, handles, faults, and the power cut. */
#include "simulate/disk.h"

#include "base/assert.h"
#include "simulate/disk_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A change of a name that was not synced. "" stands for no name. */
struct renaming {
    struct sim_file *file;
    char to[SIM_NAME_SIZE];
};

struct sim_disk {
    struct sim_disk_owner owner;
    struct hf_io io;
    struct sim_file **files; /* owned, oldest first */
    size_t file_count, file_room;
    struct renaming *renamings; /* owned, in order */
    size_t renaming_count, renaming_room;
    uint64_t room, used;
    hf_time follows,
        followed; /* the boot clock, if it follows the wall clock, and that as it was seen last */
    unsigned dirs;
    bool made, cut, locked;
    char holder[SIM_NAME_SIZE];
};

struct hf_dir {
    struct sim_disk *disk;
    bool locked;
};

struct hf_file {
    struct sim_disk *disk;
    struct sim_file *content;
    bool may_write;
};

static void *grown(void *block, size_t bytes)
{
    void *p = realloc(block, bytes);
    HF_ASSERT(p);
    return p;
}

/* ---- Files and names ---- */

/* Names are shorter than SIM_NAME_SIZE: a file gets no other. */
static void name_set(char name[SIM_NAME_SIZE], const char *to)
{
    memcpy(name, to, strlen(to) + 1);
}

static struct sim_file *find(const struct sim_disk *d, const char *name)
{
    for (size_t i = 0; i < d->file_count; i++)
        if (strcmp(d->files[i]->name, name) == 0)
            return d->files[i];
    return NULL;
}

static struct sim_file *file_add(struct sim_disk *d, struct sim_file *f)
{
    if (d->file_count == d->file_room) {
        d->file_room = d->file_room ? d->file_room * 2 : 32;
        d->files = grown(d->files, d->file_room * sizeof(struct sim_file *));
    }
    return d->files[d->file_count++] = f;
}

static void renaming_add(struct sim_disk *d, struct sim_file *f, const char *to)
{
    if (d->renaming_count == d->renaming_room) {
        d->renaming_room = d->renaming_room ? d->renaming_room * 2 : 16;
        d->renamings = grown(d->renamings, d->renaming_room * sizeof *d->renamings);
    }
    struct renaming *r = &d->renamings[d->renaming_count++];
    r->file = f;
    name_set(r->to, to);
}

/* A file without a name lives on while it is open, and takes its room so long. */
static bool takes_room(const struct sim_file *f)
{
    return f->name[0] || f->handles > 0;
}

static void used_count(struct sim_disk *d)
{
    d->used = 0;
    for (size_t i = 0; i < d->file_count; i++)
        if (takes_room(d->files[i]))
            d->used += d->files[i]->size;
}

/* Forget the files that nothing can bring back: no name, no handle, and no durable name. */
static void collect(struct sim_disk *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->file_count; i++) {
        struct sim_file *f = d->files[i];
        if (f->name[0] || f->durable_name[0] || f->handles > 0)
            d->files[kept++] = f;
        else
            sim_file_free(f);
    }
    d->file_count = kept;
}

static void names_synced(struct sim_disk *d)
{
    for (size_t i = 0; i < d->file_count; i++)
        name_set(d->files[i]->durable_name, d->files[i]->name);
    d->renaming_count = 0;
    collect(d);
}

/* ---- Faults ---- */

static int ask(struct sim_disk *d, enum sim_call call, const char *name, uint64_t at, size_t size)
{
    if (d->cut)
        return -EIO;
    int error = d->owner.before ? d->owner.before(d->owner.arg, call, name, at, size) : 0;
    if (error == SIM_POWER_CUT)
        sim_disk_cut(d);
    return d->cut ? -EIO : error;
}

void sim_disk_cut(struct sim_disk *d)
{
    d->cut = true;
}

bool sim_disk_is_cut(const struct sim_disk *d)
{
    return d->cut;
}

/* Back to the durable names, and then each change that survives. A file has one name at most, and a
 * name one file: the one that was replaced comes back if what replaced it is lost. */
static void names_settle(struct sim_disk *d)
{
    for (size_t i = 0; i < d->file_count; i++)
        name_set(d->files[i]->name, d->files[i]->durable_name);
    for (size_t i = 0; i < d->renaming_count; i++) {
        const struct renaming *r = &d->renamings[i];
        if (d->owner.choose(d->owner.arg, 2) == 0)
            continue;
        struct sim_file *there = r->to[0] ? find(d, r->to) : NULL;
        if (there)
            there->name[0] = '\0';
        name_set(r->file->name, r->to);
    }
}

void sim_disk_restart(struct sim_disk *d)
{
    HF_ASSERT(d->dirs == 0);
    names_settle(d);
    for (size_t i = 0; i < d->file_count; i++) {
        struct sim_file *f = d->files[i];
        HF_ASSERT(f->handles == 0 && f->mapped == 0);
        if (f->name[0])
            sim_file_settle(f, &d->owner);
    }
    names_synced(d);
    used_count(d);
    d->cut = false;
}

void sim_disk_room(struct sim_disk *d, uint64_t bytes)
{
    d->room = bytes;
}

bool sim_disk_flip(struct sim_disk *d, const char *name, uint64_t at, unsigned bit)
{
    struct sim_file *f = find(d, name);
    if (!f || at >= f->size)
        return false;
    sim_file_flip(f, at, bit);
    return true;
}

bool sim_disk_put(struct sim_disk *d, const char *name, struct hf_bytes bytes, uint64_t at)
{
    struct sim_file *f = find(d, name);
    if (!f || at > f->size || bytes.size > f->size - at || f->change_count > 0 || f->size_count > 1)
        return false;
    memcpy(f->data + at, bytes.data, bytes.size);
    return true;
}

/* ---- The directory ---- */

static int disk_dir_open(void *ctx, const char *path, bool create, struct hf_dir **out)
{
    struct sim_disk *d = ctx;
    (void)path;
    int error = ask(d, SIM_DIR_OPEN, "", 0, 0);
    if (error)
        return error;
    if (!d->made && !create)
        return -ENOENT;
    d->made = true;
    struct hf_dir *dir = grown(NULL, sizeof *dir);
    *dir = (struct hf_dir){ .disk = d };
    d->dirs++;
    *out = dir;
    return 0;
}

static void disk_dir_close(struct hf_dir *dir)
{
    if (dir->locked)
        dir->disk->locked = false;
    dir->disk->dirs--;
    free(dir);
}

static int disk_dir_sync(struct hf_dir *dir)
{
    int error = ask(dir->disk, SIM_DIR_SYNC, "", 0, 0);
    if (!error)
        names_synced(dir->disk);
    return error;
}

static int disk_dir_list(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg)
{
    struct sim_disk *d = dir->disk;
    int error = ask(d, SIM_DIR_LIST, "", 0, 0);
    for (size_t i = 0; !error && i < d->file_count; i++)
        if (d->files[i]->name[0] && !each(arg, d->files[i]->name))
            break;
    return error;
}

/* Take the file's name away, for now. */
static void name_drop(struct sim_disk *d, struct sim_file *f)
{
    f->name[0] = '\0';
    if (!takes_room(f))
        d->used -= f->size;
}

static int disk_rename(struct hf_dir *dir, const char *from, const char *to)
{
    struct sim_disk *d = dir->disk;
    int error = ask(d, SIM_RENAME, to, 0, 0);
    if (error)
        return error;
    struct sim_file *f = find(d, from), *old = find(d, to);
    if (!f || strlen(to) >= SIM_NAME_SIZE)
        return f ? -ENAMETOOLONG : -ENOENT;
    if (old == f)
        return 0;
    if (old)
        name_drop(d, old);
    renaming_add(d, f, to);
    name_set(f->name, to);
    return 0;
}

static int disk_remove(struct hf_dir *dir, const char *name)
{
    struct sim_disk *d = dir->disk;
    int error = ask(d, SIM_REMOVE, name, 0, 0);
    struct sim_file *f = error ? NULL : find(d, name);
    if (!f)
        return error ? error : -ENOENT;
    renaming_add(d, f, "");
    name_drop(d, f);
    return 0;
}

static int disk_lock(struct hf_dir *dir, const char *who, char *holder, size_t holder_size)
{
    struct sim_disk *d = dir->disk;
    int error = ask(d, SIM_LOCK, "", 0, 0);
    if (error)
        return error;
    if (d->locked) {
        snprintf(holder, holder_size, "%s", d->holder);
        return -EBUSY;
    }
    snprintf(d->holder, sizeof d->holder, "%.*s", (int)strcspn(who, "\n"), who);
    d->locked = dir->locked = true;
    return 0;
}

/* ---- Files ---- */

static void used_truncate(struct sim_disk *d, struct sim_file *f, uint64_t size)
{
    d->used = d->used - f->size + size;
    sim_file_truncate(f, size);
}

static int disk_open(struct hf_dir *dir, const char *name, enum hf_open_how how,
                     struct hf_file **out)
{
    struct sim_disk *d = dir->disk;
    int error = ask(d, SIM_OPEN, name, (uint64_t)how, 0);
    if (error)
        return error;
    struct sim_file *f = find(d, name);
    if (!f && (how != HF_OPEN_CREATE || strlen(name) >= SIM_NAME_SIZE))
        return how == HF_OPEN_CREATE ? -ENAMETOOLONG : -ENOENT;
    if (f && how == HF_OPEN_CREATE)
        used_truncate(d, f, 0);
    if (!f) {
        f = file_add(d, sim_file_new(name));
        renaming_add(d, f, name);
    }
    struct hf_file *file = grown(NULL, sizeof *file);
    *file = (struct hf_file){ .disk = d, .content = f, .may_write = how != HF_OPEN_READ };
    f->handles++;
    *out = file;
    return 0;
}

static void disk_close(struct hf_file *file)
{
    struct sim_disk *d = file->disk;
    struct sim_file *f = file->content;
    f->handles--;
    if (!takes_room(f))
        d->used -= f->size;
    /* One that a cut could bring back waits for the directory's sync. */
    if (!takes_room(f) && d->renaming_count == 0)
        collect(d);
    free(file);
}

static int disk_size(struct hf_file *file, uint64_t *out)
{
    int error = ask(file->disk, SIM_SIZE, file->content->name, 0, 0);
    if (!error)
        *out = file->content->size;
    return error;
}

static int disk_read(struct hf_file *file, void *data, size_t size, uint64_t at)
{
    const struct sim_file *f = file->content;
    int error = ask(file->disk, SIM_READ, f->name, at, size);
    if (error)
        return error;
    if (at > f->size || size > f->size - at)
        return -EIO;
    if (size > 0)
        memcpy(data, f->data + at, size);
    return 0;
}

static void write_part(struct sim_disk *d, struct sim_file *f, const void *data, size_t size,
                       uint64_t at)
{
    uint64_t had = f->size;
    if (size > 0)
        sim_file_write(f, data, size, at);
    d->used += f->size - had;
}

/* How much of a write that fails was written all the same. */
static size_t failed_part(struct sim_disk *d, size_t size)
{
    uint32_t much = size > 0 ? d->owner.choose(d->owner.arg, 3) : 0;
    return much == 0 ? 0 : much == 2 ? size : d->owner.choose(d->owner.arg, (uint32_t)size);
}

static int disk_write(struct hf_file *file, const void *data, size_t size, uint64_t at)
{
    struct sim_disk *d = file->disk;
    struct sim_file *f = file->content;
    int error = ask(d, SIM_WRITE, f->name, at, size);
    if (d->cut)
        return -EIO;
    if (!file->may_write)
        return -EBADF;
    if (error) {
        write_part(d, f, data, failed_part(d, size), at);
        return error;
    }
    /* What is over the room, and grows the file, is not written. */
    uint64_t left = d->room > d->used ? d->room - d->used : 0, fits = size;
    if (at + size > f->size && at + size - f->size > left)
        fits = f->size + left > at ? f->size + left - at : 0;
    write_part(d, f, data, (size_t)fits, at);
    return fits < size ? -ENOSPC : 0;
}

static void disk_start(struct hf_file *file, uint64_t at, size_t size)
{
    /* What is on its way may or may not arrive: so it is without the hint too. */
    (void)file;
    (void)at;
    (void)size;
}

static int disk_sync(struct hf_file *file)
{
    int error = ask(file->disk, SIM_SYNC, file->content->name, 0, 0);
    if (file->disk->cut)
        return -EIO;
    if (error)
        sim_file_doubted(file->content);
    else
        sim_file_synced(file->content);
    return error;
}

static int disk_truncate(struct hf_file *file, uint64_t size)
{
    struct sim_disk *d = file->disk;
    int error = ask(d, SIM_TRUNCATE, file->content->name, size, 0);
    if (error)
        return error;
    if (!file->may_write)
        return -EBADF;
    if (size > file->content->size &&
        size - file->content->size > (d->room > d->used ? d->room - d->used : 0))
        return -ENOSPC;
    used_truncate(d, file->content, size);
    return 0;
}

static int disk_map(struct hf_file *file, size_t size, const unsigned char **out)
{
    struct sim_file *f = file->content;
    int error = ask(file->disk, SIM_MAP, f->name, 0, size);
    if (error)
        return error;
    if (size == 0 || size > f->size)
        return -EINVAL;
    f->mapped++;
    *out = f->data;
    return 0;
}

static void disk_unmap(struct hf_file *file, const unsigned char *data, size_t size)
{
    (void)data;
    (void)size;
    file->content->mapped--;
}

static int disk_touch(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size)
{
    const struct sim_disk *d = file->disk;
    (void)map;
    if (d->cut)
        return -EIO;
    return d->owner.touch ? d->owner.touch(d->owner.arg, file->content->name, at, size) : 0;
}

static void disk_detach(struct hf_file *file)
{
    (void)file;
}

/* ---- Time and randomness ---- */

static hf_time disk_wall_ms(void *ctx)
{
    const struct sim_disk *d = ctx;
    return d->owner.wall_ms(d->owner.arg);
}

static hf_time disk_boot_ms(void *ctx)
{
    struct sim_disk *d = ctx;
    if (d->owner.boot_ms)
        return d->owner.boot_ms(d->owner.arg);
    hf_time wall = disk_wall_ms(d);
    if (wall > d->followed)
        d->follows += wall - d->followed;
    d->followed = wall;
    return d->follows;
}

static uint64_t disk_monotonic_ns(void *ctx)
{
    const struct sim_disk *d = ctx;
    return d->owner.monotonic_ns(d->owner.arg);
}

static int disk_random(void *ctx, void *data, size_t size)
{
    const struct sim_disk *d = ctx;
    return d->owner.random(d->owner.arg, data, size);
}

/* ---- Making and looking ---- */

struct sim_disk *sim_disk_new(const struct sim_disk_owner *owner)
{
    struct sim_disk *d = calloc(1, sizeof *d);
    HF_ASSERT(d);
    d->owner = *owner;
    d->room = UINT64_MAX;
    d->io = (struct hf_io){ .ctx = d,
                            .dir_open = disk_dir_open,
                            .dir_close = disk_dir_close,
                            .dir_sync = disk_dir_sync,
                            .dir_list = disk_dir_list,
                            .rename = disk_rename,
                            .remove = disk_remove,
                            .lock = disk_lock,
                            .open = disk_open,
                            .close = disk_close,
                            .size = disk_size,
                            .read = disk_read,
                            .write = disk_write,
                            .start = disk_start,
                            .sync = disk_sync,
                            .truncate = disk_truncate,
                            .map = disk_map,
                            .unmap = disk_unmap,
                            .touch = disk_touch,
                            .detach = disk_detach,
                            .wall_ms = disk_wall_ms,
                            .boot_ms = disk_boot_ms,
                            .monotonic_ns = disk_monotonic_ns,
                            .random = disk_random };
    return d;
}

void sim_disk_free(struct sim_disk *d)
{
    if (!d)
        return;
    HF_ASSERT(d->dirs == 0);
    for (size_t i = 0; i < d->file_count; i++)
        sim_file_free(d->files[i]);
    free(d->files);
    free(d->renamings);
    free(d);
}

const struct hf_io *sim_disk_io(struct sim_disk *d)
{
    return &d->io;
}

uint64_t sim_disk_used(const struct sim_disk *d)
{
    return d->used;
}

bool sim_disk_each(struct sim_disk *d, bool (*each)(void *arg, const char *name, uint64_t size),
                   void *arg)
{
    for (size_t i = 0; i < d->file_count; i++)
        if (d->files[i]->name[0] && !each(arg, d->files[i]->name, d->files[i]->size))
            return false;
    return true;
}

bool sim_disk_bytes(const struct sim_disk *d, const char *name, struct hf_bytes *out)
{
    const struct sim_file *f = find(d, name);
    if (f)
        *out = (struct hf_bytes){ f->data, (size_t)f->size };
    return f != NULL;
}

size_t sim_disk_names_unsynced(const struct sim_disk *d)
{
    return d->renaming_count;
}

/* FNV-1a by words. */
static uint64_t hash_add(uint64_t hash, const unsigned char *p, uint64_t size)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 32;
    }
    for (; size > 0; p++, size--)
        hash = (hash ^ *p) * prime;
    return hash;
}

uint64_t sim_disk_hash(const struct sim_disk *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->file_count; i++) {
        const struct sim_file *f = d->files[i];
        if (!f->name[0])
            continue;
        uint64_t hash =
            hash_add(UINT64_C(0xcbf29ce484222325), (const unsigned char *)f->name, strlen(f->name));
        sum += hash_add(hash ^ f->size, f->data,
                        f->size); /* a sum: the order of the files says nothing */
    }
    return sum;
}

struct sim_disk *sim_disk_copy(const struct sim_disk *d, const struct sim_disk_owner *owner)
{
    struct sim_disk *c = sim_disk_new(owner);
    c->room = d->room;
    c->made = d->made;
    c->cut = d->cut;
    for (size_t i = 0; i < d->file_count; i++)
        file_add(c, sim_file_copy(d->files[i]));
    for (size_t i = 0; i < d->renaming_count; i++) {
        size_t n = 0;
        while (d->files[n] != d->renamings[i].file)
            n++;
        renaming_add(c, c->files[n], d->renamings[i].to);
    }
    used_count(c);
    return c;
}

/* io.h: everything the store asks of the world outside: files, time, randomness, and what to do
 * when it cannot go on. One table, so that a test can cut the power between any two calls.
 *
 * A handle stands for one directory; names are plain file names in it. Results are 0 or a negative
 * errno, unless said otherwise. All calls may come from several threads, though never two writes to
 * one file at once. */
#ifndef HF_STORE_IO_H
#define HF_STORE_IO_H

#include "holdfast.h"

struct hf_file; /* an open file, made by the table's owner */
struct hf_dir;  /* an open directory, likewise */

enum hf_open_how {
    HF_OPEN_READ,  /* must exist */
    HF_OPEN_WRITE, /* must exist; read and write */
    HF_OPEN_CREATE /* made, or emptied if it exists; read and write */
};

struct hf_io {
    void *ctx;

    /* The directory `path`; made (its last component) if `create`. */
    int (*dir_open)(void *ctx, const char *path, bool create, struct hf_dir **out);
    void (*dir_close)(struct hf_dir *dir);
    /* Make renames, creations and deletions in it durable. */
    int (*dir_sync)(struct hf_dir *dir);
    /* Every name in it, in any order, until `each` returns false. */
    int (*dir_list)(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg);
    int (*rename)(struct hf_dir *dir, const char *from, const char *to);
    int (*remove)(struct hf_dir *dir, const char *name);
    /* Lock the directory itself for this process: no file in it can be removed or renamed so that a
     * second one gets in. who: written where the next one can read it. -EBUSY: taken, and `holder`
     * (out, `holder_size` bytes, NUL-ended) says by whom, "" if that is not known. Given back by
     * dir_close. */
    int (*lock)(struct hf_dir *dir, const char *who, char *holder, size_t holder_size);

    /* May others than its owner open the directory, or change it? Then they can take its lock, too.
     * NULL: there are no others. */
    bool (*dir_shared)(struct hf_dir *dir);

    int (*open)(struct hf_dir *dir, const char *name, enum hf_open_how how, struct hf_file **out);
    void (*close)(struct hf_file *file);
    int (*size)(struct hf_file *file, uint64_t *out);
    /* All of it, or an error; a file that ends before is -EIO. */
    int (*read)(struct hf_file *file, void *data, size_t size, uint64_t at);
    /* All of it, or an error; then any part may have been written. */
    int (*write)(struct hf_file *file, const void *data, size_t size, uint64_t at);
    /* Begin to bring this range, just written, to the disk, and do not wait. A hint. */
    void (*start)(struct hf_file *file, uint64_t at, size_t size);
    /* fdatasync. An error means: what was written since the last success may be lost. */
    int (*sync)(struct hf_file *file);
    /* Cut the file off at `size` bytes. */
    int (*truncate)(struct hf_file *file, uint64_t size);
    /* `size` bytes from the start, readable until unmap, showing later writes. */
    int (*map)(struct hf_file *file, size_t size, const unsigned char **out);
    void (*unmap)(struct hf_file *file, const unsigned char *data, size_t size);
    /* Can `size` bytes at `at` of the mapping `map` be read now? 0, or -EIO: a sector is
     * unreadable, or the file has become shorter than its mapping. Reading them without having
     * asked ends the process then. */
    int (*touch)(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size);
    /* Give the descriptor of a mapped file back. What is mapped stays; after this only touch, unmap
     * and close may be called. */
    void (*detach)(struct hf_file *file);

    hf_time (*wall_ms)(void *ctx); /* milliseconds since 1970 */
    hf_time (*boot_ms)(
        void *ctx); /* milliseconds from any start, never back; also while the machine sleeps */
    uint64_t (*monotonic_ns)(void *ctx); /* from any start, never back */
    int (*random)(void *ctx, void *data, size_t size);
};

/* The operating system. Static. */
const struct hf_io *hf_io_os(void);

/* Files that live in memory and die with the directory handle; time and randomness are real.
 * Static. */
const struct hf_io *hf_io_memory(void);

#endif

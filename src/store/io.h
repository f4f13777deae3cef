/* io.h: everything that the store needs from the operating system: files, time, randomness. It is
 * one table, so that a test can cut the power between any two calls.
 *
 * A handle stands for one directory; names are plain file names in it. Results are 0 or a negative
 * errno, unless stated otherwise. Any thread may call, but never two writes to one file at once. */
#ifndef HF_STORE_IO_H
#define HF_STORE_IO_H

#include "holdfast.h"

struct hf_file; /* an open file; the implementation defines it */
struct hf_dir;  /* an open directory, likewise */

enum hf_open_how {
    HF_OPEN_READ,  /* must exist */
    HF_OPEN_WRITE, /* must exist; read and write */
    HF_OPEN_CREATE /* created, or emptied if it exists; read and write */
};

struct hf_io {
    void *ctx;

    /* Open the directory `path`. create: make its last component if missing. */
    int (*dir_open)(void *ctx, const char *path, bool create, struct hf_dir **out);
    void (*dir_close)(struct hf_dir *dir);
    /* Make renames, creations and deletions in the directory durable. */
    int (*dir_sync)(struct hf_dir *dir);
    /* Call `each` for every name in the directory, in any order, until it returns false. */
    int (*dir_list)(struct hf_dir *dir, bool (*each)(void *arg, const char *name), void *arg);
    int (*rename)(struct hf_dir *dir, const char *from, const char *to);
    int (*remove)(struct hf_dir *dir, const char *name);
    /* Lock the directory itself for this process, so that removing or renaming a file in it does
     * not let a second process in. who: written where the next process can read it. -EBUSY: another
     * process has the lock, and `holder` (out, `holder_size` bytes, NUL-ended) names it, "" if
     * unknown. dir_close unlocks. */
    int (*lock)(struct hf_dir *dir, const char *who, char *holder, size_t holder_size);

    /* Can users other than the owner open or change the directory? Then they can also lock it.
     * NULL: there are no other users. */
    bool (*dir_shared)(struct hf_dir *dir);

    int (*open)(struct hf_dir *dir, const char *name, enum hf_open_how how, struct hf_file **out);
    void (*close)(struct hf_file *file);
    int (*size)(struct hf_file *file, uint64_t *out);
    /* Read all bytes, or return an error; -EIO if the file is too short. */
    int (*read)(struct hf_file *file, void *data, size_t size, uint64_t at);
    /* Write all bytes, or return an error; then any part may have been written. */
    int (*write)(struct hf_file *file, const void *data, size_t size, uint64_t at);
    /* Begin to write this range to the disk, and do not wait. A hint. */
    void (*start)(struct hf_file *file, uint64_t at, size_t size);
    /* fdatasync. After an error, everything written since the last success may be lost. */
    int (*sync)(struct hf_file *file);
    /* Cut the file off at `size` bytes. */
    int (*truncate)(struct hf_file *file, uint64_t size);
    /* `size` bytes from the start, readable until unmap, showing later writes. */
    int (*map)(struct hf_file *file, size_t size, const unsigned char **out);
    void (*unmap)(struct hf_file *file, const unsigned char *data, size_t size);
    /* Can `size` bytes at `at` of the mapping `map` be read now? 0, or -EIO: a sector is
     * unreadable, or the file has become shorter than its mapping. In that case, reading without
     * this check ends the process. */
    int (*touch)(struct hf_file *file, const unsigned char *map, uint64_t at, size_t size);
    /* Close the descriptor of a mapped file. The mapping stays; after this only touch, unmap and
     * close may be called. */
    void (*detach)(struct hf_file *file);

    hf_time (*wall_ms)(void *ctx); /* milliseconds since 1970 */
    hf_time (*boot_ms)(
        void *ctx); /* milliseconds from any start, never back; counts during sleep too */
    uint64_t (*monotonic_ns)(void *ctx); /* from any start, never back */
    int (*random)(void *ctx, void *data, size_t size);
};

/* The operating system. Static. */
const struct hf_io *hf_io_os(void);

/* Files in memory, freed with the directory handle; time and randomness are real. Static. */
const struct hf_io *hf_io_memory(void);

#endif

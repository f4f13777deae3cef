/* test_io.h: the operating system behind struct hf_io, with a clock that the test moves and faults
 * that it orders. Beneath are real files, so that what is tested is what runs. */
#ifndef HF_TESTS_SUPPORT_TEST_IO_H
#define HF_TESTS_SUPPORT_TEST_IO_H

#include "store/io.h"

#include <stdatomic.h>

/* Calls that a test can watch. What is removed or cut off comes back to `room`. */
enum test_call { TEST_DIR_SYNC, TEST_RENAME, TEST_REMOVE, TEST_TRUNCATE };

struct test_io {
    struct hf_io io;      /* give &t.io to hf_options.io */
    _Atomic hf_time wall; /* what the wall clock says; 0: the real one */
    /* What the boot clock says; 0: it goes forward with the wall clock, and confirms it. */
    _Atomic hf_time boot;
    hf_time follows, followed; /* the boot clock then, and the wall clock as it was seen last */
    atomic_flag following;     /* a lock for these two */
    _Atomic uint64_t looks;    /* how often the wall clock was asked for */
    /* the monotonic clock is so far ahead of the real one; must not go back */
    _Atomic uint64_t later_ns;
    _Atomic uint64_t step_ns; /* and each look at it takes so long */
    _Atomic int64_t room;   /* bytes by which files may still grow before -ENOSPC; < 0: no limit */
    _Atomic int room_error; /* not 0: this errno instead of ENOSPC */
    /* Of all files but the note `closed`: */
    _Atomic int fail_sync;    /* the n-th sync from now fails (1: the next); 0: none */
    _Atomic int fail_write;   /* the n-th write from now fails; 0: none */
    _Atomic size_t torn;      /* of a write that fails, so many bytes are written all the same */
    _Atomic int fail_open;    /* the n-th open from now fails; 0: none */
    _Atomic int slow_sync_us; /* every sync takes so much longer */
    _Atomic bool stop_sync;   /* no sync goes on while this is set */
    _Atomic uint64_t syncs, writes;
    _Atomic int descriptors, descriptors_most; /* files that are open now, and at most so far */
    _Atomic int unreadable_segment;            /* of this segment alone; 0: of every one */
    _Atomic bool unreadable_snapshot;          /* no snapshot that is mapped can be read */
    /* the sector at this offset of every segment that is mapped cannot be read; 0: none */
    _Atomic uint64_t unreadable;
    /* Called before each enum test_call, if not NULL, by the thread that makes it. name: of the
     * file, as it was opened; of a rename, the new one; NULL for the directory. What it returns
     * other than 0 is what the call answers, and then nothing is done. */
    int (*before)(struct test_io *t, enum test_call call, const char *name);
};

void test_io_init(struct test_io *t);

/* A new empty directory below the system's folder for temporary files; the caller frees the name.
 * Removed with all that is in it by test_dir_remove. */
char *test_dir_make(void);
void test_dir_remove(char *path);

#endif

/* test_io.h: the operating system behind struct hf_io, with a clock that the test moves and faults that it
 * orders. Beneath are real files, so that what is tested is what runs. */
#ifndef HF_TESTS_TEST_IO_H
#define HF_TESTS_TEST_IO_H

#include "store/io.h"

#include <stdatomic.h>

struct test_io {
    struct hf_io io;          /* give &t.io to hf_options.io */
    _Atomic hf_time wall;     /* what the wall clock says; 0: the real one */
    _Atomic int64_t room;     /* bytes by which files may still grow before -ENOSPC; < 0: no limit */
    _Atomic int fail_sync;    /* the n-th sync from now fails (1: the next); 0: none */
    _Atomic int fail_write;   /* the n-th write from now fails; 0: none */
    _Atomic int fail_open;    /* the n-th open from now fails; 0: none */
    _Atomic int slow_sync_us; /* every sync takes so much longer */
    _Atomic uint64_t syncs, writes;
};

void test_io_init(struct test_io *t);

/* A new empty directory below the system's folder for temporary files; the caller frees the name. Removed
 * with all that is in it by test_dir_remove. */
char *test_dir_make(void);
void test_dir_remove(char *path);

#endif

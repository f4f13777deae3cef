/* agree.h: one definition of damage (doc/FORMAT.md). The files of a store are kept in memory, put
 * back, and changed; then the audit judges the store and the start opens it, and both must say the
 * same. */
#ifndef HF_TESTS_STORE_KIT_AGREE_H
#define HF_TESTS_STORE_KIT_AGREE_H

#include "audit/audit.h"
#include "engine/kit/engine.h"

#include <stddef.h>

enum { FILES_MAX = 64 };

struct file {
    char name[256];
    unsigned char *data; /* owned */
    size_t size;
};

struct files {
    struct file list[FILES_MAX];
    size_t count;
};

/* All files of the directory. set: out, owned, free with files_free. */
void files_load(struct files *set, const char *dir);
void files_free(struct files *set);
/* The directory has exactly the files of the set. */
void files_put(const struct files *set, const char *dir);
/* The file with this name, or NULL. */
struct file *files_find(struct files *set, const char *name);
/* The file whose name begins and ends so, the last by its name, or NULL. */
struct file *files_last(struct files *set, const char *begins, const char *ends);

void file_write(const char *dir, const char *name, const void *data, size_t size);
bool file_ends(const struct file *f, const char *suffix);

/* What the two said. */
struct agreed {
    enum hf_audit_verdict verdict; /* HF_AUDIT_DAMAGED also if the audit could not be done */
    bool opens;                    /* and everything before its snapshot is as it was written */
    bool index_named, index_rebuilt;
    bool snapshot_named,
        snapshot_left; /* a snapshot that cannot be used: by the audit; by the start */
};

/* Fails unless the start refuses the store if the audit calls it damaged, and opens it if the audit
 * says that all is well; and unless both give the same reason if it cannot be read. what, name, at:
 * for the message. */
struct agreed agree(struct kit *k, const char *what, const char *name, size_t at);

/* A batch in the files. */
struct place {
    struct file *file;
    size_t at, length;
    uint64_t sequence;
};
/* The batch with this sequence; 0: the newest. It must be there. */
struct place place_of_batch(struct files *files, uint64_t sequence);

#endif

/* directory.h: the files in a store's directory. */
#ifndef HF_AUDIT_DIRECTORY_H
#define HF_AUDIT_DIRECTORY_H

#include "holdfast.h"

/* hf_audit_directory_look: raise *last to the highest segment number in the directory `dir` (a
 * descriptor, borrowed), and, if bytes is not NULL, add the sizes of all segment files to it. False
 * if the directory cannot be listed; errno says why. */
bool hf_audit_directory_look(int dir, uint64_t *last, uint64_t *bytes);

/* hf_audit_directory_next: the lowest segment number above `after` in the directory; 0 if there is
 * none. */
uint64_t hf_audit_directory_next(int dir, uint64_t after);

/* hf_audit_open: open a regular file of the directory for reading, as openat. Anything else with
 * this name, such as a directory, is an error. */
int hf_audit_open(int dir, const char *name);

/* hf_audit_read_at: `size` bytes at `at` of an open file. False if the file is too short, or if
 * they cannot be read: then *error is an errno, otherwise it is not changed. */
bool hf_audit_read_at(int fd, void *out, size_t size, uint64_t at, int *error);

/* Is there a file that only a store with a batch in its journal has (hf_filename_follows_batch)? 0
 * or a negative errno. */
int hf_audit_directory_remains(int dir, bool *found);

/* Where the newest snapshot in the directory begins, by its name; *start is 0 if there is none. 0
 * or a negative errno. */
int hf_audit_directory_snapshot(int dir, uint64_t *start);

/* hf_audit_holder: which process has the store open: the directory is locked, and its LOCK file
 * names the process. line: out, "" if no process has. */
void hf_audit_holder(const char *dir, char line[256]);

#endif

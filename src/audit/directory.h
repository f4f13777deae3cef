/* directory.h: what a store's directory shows. */
#ifndef HF_AUDIT_DIRECTORY_H
#define HF_AUDIT_DIRECTORY_H

#include "holdfast.h"

/* hf_audit_directory_look: raise *last to the highest segment number in the directory `dir` (a
 * descriptor, borrowed), and, if bytes is not NULL, add the sizes of all segment files to it. False if
 * the directory cannot be listed; errno says why. */
bool hf_audit_directory_look(int dir, uint64_t *last, uint64_t *bytes);

/* hf_audit_holder: who has the store open, by its LOCK file. line: out, "" if nobody has. */
void hf_audit_holder(const char *dir, char line[256]);

#endif

/* sandbox.h: give up what a server never needs.
 *
 * After start (sockets bound, certificates loaded, threads not yet made) the process may touch only
 * its data directory and the files named here (Landlock), and may use only the system calls it
 * needs (seccomp): no exec, no new processes, no ptrace, no mounts, no new kinds of sockets, no
 * connection to anybody but a database that is named here, no further address to listen on, no new
 * code. Fails closed: if the kernel cannot do it, the answer is an error, and the server does not
 * start (an operator may say --sandbox off, knowingly). */
#ifndef HF_SERVER_SANDBOX_H
#define HF_SERVER_SANDBOX_H

#include "holdfast.h"

/* Everything named must exist. Files that are open already stay usable, whatever is named here.
 * Files are replaced by renaming others to their names, and the kernel would take the new one for
 * another file; so a file to be read again is allowed together with the directory it stands in, and
 * if it is a link, with the directory of what it leads to (the root directory excepted). Such files
 * should have a directory of their own. */
struct hf_sandbox {
    const char *writable; /* the data directory, or NULL; becomes TMPDIR, too */
    const char *const
        *readable; /* files and directories to be read again (certificates, auth file) */
    size_t readable_count;
    const char *
        /* a directory for files that do not last, or NULL: writable, becomes TMPDIR, may be
         * removed */
        temporary;
    /* NULL, or the connection string of a database that must be reached again and again: the
     * process may then connect, over TCP to the database's ports and the resolver's alone where the
     * kernel can tell (Linux 6.7), and read what libpq, its TLS and the resolver of names read, but
     * no further files beside those. */
    const char *postgres;
};

/* Enter, for this thread and all that it makes later; there is no way back. Call before any other
 * thread exists, and after OpenSSL has been used for the first time (it reads a configuration of
 * its own then). sandbox: borrowed. HF_OK, or HF_MISUSE with why: which path cannot be allowed, or
 * what the kernel lacks and how to go on without. After a failure a part may be in force already:
 * end the process. What is refused fails with EACCES (files) or EPERM (calls); calls that nothing
 * but an intruder would try, such as execve or ptrace, end the process by SIGSYS. */
HF_MUST_USE enum hf_status hf_sandbox_enter(const struct hf_sandbox *sandbox, struct hf_error *why);

#endif

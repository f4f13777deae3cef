/* sandbox.h: give up what a server never needs.
 *
 * After start (sockets bound, certificates loaded, threads not yet started) the process may use
 * only its data directory and the files named here (Landlock), and only the system calls that it
 * needs (seccomp): no exec, no new processes, no ptrace, no mounts, no new kinds of sockets, no
 * connection except to the database that is named here, no new listening address, no new code.
 * Fails closed: if the kernel does not support it, entering is an error, and the server does not
 * start (the operator can choose --sandbox off). */
#ifndef HF_SERVER_SANDBOX_H
#define HF_SERVER_SANDBOX_H

#include "holdfast.h"

/* Everything named must exist. Files that are already open stay usable. A file is usually replaced
 * by a rename, and for the kernel the new one is another file. So a file that is read again is
 * allowed together with its directory and, if it is a link, with the directory of its target
 * (except the root directory). Such files should have a directory of their own. */
struct hf_sandbox {
    const char *writable; /* the data directory, or NULL; becomes TMPDIR, too */
    /* files and directories that are read again (certificates, auth file) */
    const char *const *readable;
    size_t readable_count;
    /* a directory for temporary files, or NULL: writable, becomes TMPDIR, may be removed */
    const char *temporary;
    /* NULL, or the connection string of the database. The process may then connect: since Linux 6.7
     * only to the TCP ports of the database and of the DNS resolver. It may also read the files
     * that libpq, its TLS and the resolver read, and no others. */
    const char *postgres;
};

/* Enter the sandbox, for this thread and all threads that it starts later; it cannot be left. Call
 * this before any other thread exists, and after the first use of OpenSSL (which reads its
 * configuration then). sandbox: borrowed. HF_OK, or HF_MISUSE with why: which path cannot be
 * allowed, or what the kernel lacks and how to start without a sandbox. After a failure a part of
 * the rules may apply: end the process. Inside, forbidden files fail with EACCES and forbidden
 * calls with EPERM; calls that only an intruder would make, such as execve or ptrace, end the
 * process with SIGSYS. */
HF_MUST_USE enum hf_status hf_sandbox_enter(const struct hf_sandbox *sandbox, struct hf_error *why);

#endif

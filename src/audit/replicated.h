/* replicated.h: is what was read from a database on its synchronous standbys? The commands that read the tables show what the database
 * has, also while a standby is away: that is when an operator needs them. But what no standby has is lost if the primary is. */
#ifndef HF_AUDIT_REPLICATED_H
#define HF_AUDIT_REPLICATED_H

#include <stdbool.h>

/* hf_audit_replicated: wait up to `wait_ms` until the synchronous standbys have all that could be seen in the database before the
 * call. conninfo: borrowed. True: they have, or none is named, or the database is a standby itself. False: not in time, or the
 * database could not be asked. A commit that writes nothing but an empty message to the log tells; it needs no right. */
bool hf_audit_replicated(const char *conninfo, int wait_ms);

#endif

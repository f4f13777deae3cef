/* disk.h: files that can lose what was not synced.
 *
 * A struct hf_io over memory. Every file is a run of 512-byte sectors; what was written since the last sync
 * of the file is kept beside what is durable, sector by sector and in order; names made, changed or removed since
 * the last sync of the directory likewise. A cut of the power asks a chooser what survives of both: any subset of
 * the unsynced sector writes, a sector torn in the middle, any subset of the changes of names. Faults are ordered
 * by the owner. One thread; nothing here reads a real clock, file or random number, so that a run is a function
 * of its seed. */
#ifndef HF_SIMULATE_DISK_H
#define HF_SIMULATE_DISK_H

#include "store/io.h"

enum { SIM_SECTOR = 512 };

/* Every call of the table that a fault can meet or a power cut can precede. */
enum sim_call {
    SIM_DIR_OPEN,
    SIM_DIR_SYNC,
    SIM_DIR_LIST,
    SIM_RENAME,
    SIM_REMOVE,
    SIM_LOCK,
    SIM_OPEN,
    SIM_SIZE,
    SIM_READ,
    SIM_WRITE,
    SIM_SYNC,
    SIM_TRUNCATE,
    SIM_MAP,
    SIM_CALLS
};

struct sim_disk;

/* What the owner is asked and told. */
struct sim_disk_owner {
    void *arg;
    /* Before each call. 0: go on. A negative errno: the call answers it and does nothing (a write that fails may have
     * written any part: the chooser is asked). SIM_POWER_CUT: the power goes now, before the call has done anything. */
    int (*before)(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size);
    /* A number below n. Asked while a cut decides what survives; the explorer enumerates, the simulator draws. */
    uint32_t (*choose)(void *arg, uint32_t n);
    hf_time (*wall_ms)(void *arg);
    uint64_t (*monotonic_ns)(void *arg);
    int (*random)(void *arg, void *data, size_t size);
};
#define SIM_POWER_CUT (-100000)

/* owned, free with sim_disk_free. owner: borrowed while the disk lives. */
struct sim_disk *sim_disk_new(const struct sim_disk_owner *owner);
void sim_disk_free(struct sim_disk *d);

/* The table to give to hf_options.io. Borrowed from the disk. */
const struct hf_io *sim_disk_io(struct sim_disk *d);

/* Once the power is cut every call fails with -EIO and changes nothing, until sim_disk_restart, so the code above
 * unwinds by its own error paths and may be closed. */
void sim_disk_cut(struct sim_disk *d);
bool sim_disk_is_cut(const struct sim_disk *d);
/* Decide what survived, forget the rest, and turn the power on again. All handles must have been closed. */
void sim_disk_restart(struct sim_disk *d);

/* ---- Faults that are a state, not an event ---- */
void sim_disk_room(struct sim_disk *d, uint64_t bytes); /* all files together; UINT64_MAX: no limit */
/* Flip one bit of what is durable in a file; undone by flipping it again. False if there is no such byte. */
bool sim_disk_flip(struct sim_disk *d, const char *name, uint64_t at, unsigned bit);

/* ---- Looking ---- */
uint64_t sim_disk_used(const struct sim_disk *d);
bool sim_disk_each(struct sim_disk *d, bool (*each)(void *arg, const char *name, uint64_t size), void *arg);
/* A hash over names and contents, for the trace. */
uint64_t sim_disk_hash(const struct sim_disk *d);

/* A copy of all that is durable and all that is not, to come back to. owned, free with sim_disk_free. */
struct sim_disk *sim_disk_copy(const struct sim_disk *d, const struct sim_disk_owner *owner);

#endif

/* disk.h: files that can lose what was not synced.
 *
 * A struct hf_io over memory. Every file is a run of 512-byte sectors; what was written since the
 * last sync of the file is kept beside what is durable, sector by sector and in order; names made,
 * changed or removed since the last sync of the directory likewise. A cut of the power asks a
 * chooser what survives of both: any subset of the unsynced sector writes, a sector torn in the
 * middle, any subset of the changes of names. Faults are ordered by the owner. One thread; nothing
 * here reads a real clock, file or random number, so that a run is a function of its seed. */
#ifndef HF_PROOF_SIMULATE_DISK_H
#define HF_PROOF_SIMULATE_DISK_H

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

/* What becomes of the change of a sector. */
enum sim_survival { SIM_LOST, SIM_TORN, SIM_KEPT, SIM_SURVIVALS };

/* What the owner is asked and told. */
struct sim_disk_owner {
    void *arg;
    /* Before each call. 0: go on. A negative errno: the call answers it and does nothing (a write
     * that fails may have written any part: the chooser is asked). SIM_POWER_CUT: the power goes
     * now, before the call has done anything. A sync of a file that fails leaves what it was to
     * save in doubt: readable, and lost or not at the next cut, whatever later syncs say, unless it
     * is written again. name: of the file, as it is called now; of a rename, the new one; "" for
     * the directory. at: for SIM_OPEN the enum hf_open_how, for SIM_TRUNCATE the new size. */
    int (*before)(void *arg, enum sim_call call, const char *name, uint64_t at, size_t size);
    /* A number below n. Asked while a restart decides what survives, always in the same order: for
     * each change of a name, of 2 (0: it is lost); then for each file, of its sizes since the last
     * sync, oldest first, if there are several; then for each change of a sector, of SIM_SURVIVALS,
     * and after SIM_TORN of SIM_SECTOR - 1 how many bytes more than one came to the disk. So 0 is
     * everywhere the oldest and n - 1 everywhere the newest. And of 3 for a write that fails (0:
     * nothing was written, 2: all), after 1 of its size, how much. */
    uint32_t (*choose)(void *arg, uint32_t n);
    hf_time (*wall_ms)(void *arg);
    uint64_t (*monotonic_ns)(void *arg);
    int (*random)(void *arg, void *data, size_t size);
    /* Before mapped bytes are read. -EIO: their sector is unreadable. NULL: all can be read. No
     * power cut comes here. */
    int (*touch)(void *arg, const char *name, uint64_t at, size_t size);
    hf_time (*boot_ms)(
        void *arg); /* NULL: it goes forward with the wall clock, and confirms whatever that says */
};
#define SIM_POWER_CUT (-100000)

/* owned, free with sim_disk_free. owner: borrowed while the disk lives. */
struct sim_disk *sim_disk_new(const struct sim_disk_owner *owner);
void sim_disk_free(struct sim_disk *d);

/* The table to give to hf_options.io. Borrowed from the disk, which is one directory, whatever its
 * path. A file must not be made longer while it is mapped. The directory's lock leaves no file. */
const struct hf_io *sim_disk_io(struct sim_disk *d);

/* Once the power is cut every call fails with -EIO and changes nothing, until sim_disk_restart, so
 * the code above unwinds by its own error paths and may be closed. */
void sim_disk_cut(struct sim_disk *d);
bool sim_disk_is_cut(const struct sim_disk *d);
/* Decide what survived, forget the rest, and turn the power on again. All handles must have been
 * closed. */
void sim_disk_restart(struct sim_disk *d);

/* ---- Faults that are a state, not an event ---- */
/* All files together; UINT64_MAX: no limit. A write that does not fit writes what fits, and answers
 * -ENOSPC. */
void sim_disk_room(struct sim_disk *d, uint64_t bytes);
/* Flip one bit of a byte of a file, wherever it stands; undone by flipping it again, unless it was
 * written in between. False if there is no such byte. */
bool sim_disk_flip(struct sim_disk *d, const char *name, uint64_t at, unsigned bit);

/* Put bytes into a file where others are, durably and unasked, as if the writes since then had been
 * lost. False if they are not all within the file, or it has something that is not synced. */
bool sim_disk_put(struct sim_disk *d, const char *name, struct hf_bytes bytes, uint64_t at);

/* ---- Looking ---- */
uint64_t sim_disk_used(const struct sim_disk *d);
/* Every file, oldest first, until `each` returns false; then false. */
bool sim_disk_each(struct sim_disk *d, bool (*each)(void *arg, const char *name, uint64_t size),
                   void *arg);
/* The bytes of a file as they are now. Borrowed until the next call. False if there is no such
 * file. */
bool sim_disk_bytes(const struct sim_disk *d, const char *name, struct hf_bytes *out);
/* How many changes of names were not synced: the first so many questions of a restart. */
size_t sim_disk_names_unsynced(const struct sim_disk *d);
/* A hash over names and contents, for the trace. */
uint64_t sim_disk_hash(const struct sim_disk *d);

/* A copy of all that is durable and all that is not, without the handles, to come back to or to go
 * another way from. May be taken at any time, also inside `before`. owned, free with
 * sim_disk_free. */
struct sim_disk *sim_disk_copy(const struct sim_disk *d, const struct sim_disk_owner *owner);

#endif

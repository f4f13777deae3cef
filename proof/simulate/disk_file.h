/* disk_file.h: the bytes of one file, and which of them a power cut may take back.
 *
 * The newest content is one block of memory. Beside it, for every change of a sector since the last
 * sync, stands what was in the sector before, in order; and every size that the file had since
 * then. A cut walks back to what is durable and then forward again, asking what survives. For
 * disk.c alone. */
#ifndef HF_PROOF_SIMULATE_DISK_FILE_H
#define HF_PROOF_SIMULATE_DISK_FILE_H

#include "simulate/disk.h"

#define SIM_NAME_SIZE 64

/* A change of one sector that was not synced. */
struct sim_change {
    uint32_t sector;
    /* it came after this size change, which made the file shorter and which it cannot outlive; 0:
     * none */
    uint32_t cut;
    bool by_length; /* it is a part of that size change, not a write: both survive, or neither */
};

struct sim_file {
    char name[SIM_NAME_SIZE], durable_name[SIM_NAME_SIZE]; /* "": it has none */
    unsigned char *data;                                   /* owned; zeros behind `size` */
    uint64_t size, room;
    unsigned handles, mapped;

    struct sim_change *changes; /* owned */
    unsigned char *before;      /* owned: SIM_SECTOR bytes for each change */
    size_t change_count, change_room;
    uint64_t *sizes; /* owned: [0] is durable, the newest is last; only [0] if it did not change */
    size_t size_count, size_room;
    uint32_t newest_cut; /* index in `sizes` of the newest that made it shorter; 0: none */
    size_t change_doubted,
        size_doubted; /* so many met a sync that failed: a later one does not help them */
};

/* owned, free with sim_file_free. */
struct sim_file *sim_file_new(const char *name);
struct sim_file *sim_file_copy(const struct sim_file *f); /* with no handles */
void sim_file_free(struct sim_file *f);

void sim_file_write(struct sim_file *f, const void *data, size_t size, uint64_t at);
void sim_file_truncate(struct sim_file *f, uint64_t size);
void sim_file_synced(struct sim_file *f);
/* A sync failed: what it was to save is in doubt for good, unless it is written again. */
void sim_file_doubted(struct sim_file *f);

/* The power was cut: decide what survives of what was not synced. */
void sim_file_settle(struct sim_file *f, const struct sim_disk_owner *owner);

/* Flip a bit wherever the byte stands, durable or not. */
void sim_file_flip(struct sim_file *f, uint64_t at, unsigned bit);

#endif

/* disk.h: a simulated disk with an open directory, and every state that a power cut can leave of
 * it. */
#ifndef HF_PROOF_SIMULATE_TESTS_KIT_DISK_H
#define HF_PROOF_SIMULATE_TESTS_KIT_DISK_H

#include "simulate/disk.h"

enum { DESK_ANSWERS = 64 };

/* Answers the chooser by a list that is counted through like the digits of a number; the rest are
 * 0. */
struct desk_odometer {
    uint32_t answers[DESK_ANSWERS], of[DESK_ANSWERS];
    size_t asked;
    int fail; /* what the next call of `fail_call` answers, once */
    enum sim_call fail_call;
    uint64_t calls[SIM_CALLS];
};

/* A disk, its directory and the table, for short tests. */
struct desk {
    struct desk_odometer odometer;
    struct sim_disk *disk;
    const struct hf_io *io;
    struct hf_dir *dir;
};

struct sim_disk_owner desk_owner(struct desk_odometer *o);

/* k: out. */
void desk_open(struct desk *k);
void desk_close(struct desk *k);
struct hf_file *desk_file(struct desk *k, const char *name, enum hf_open_how how);
/* A file with so many bytes `fill`; synced if asked for. */
void desk_put(struct desk *k, const char *name, int fill, size_t size, bool sync);
/* The file "a" with so many sectors of ones, durable and open for writing. */
struct hf_file *desk_sectors(struct desk *k, size_t sectors);

/* Add a file's name and size to the text at `arg`, of 200 bytes. For sim_disk_each. */
bool desk_list(void *arg, const char *name, uint64_t size);
/* The size of the file "a", and for each sector its first and its last byte. */
void desk_look(struct sim_disk *d, char *text, size_t room);

/* Every state that a cut can leave, as text, between bars: what `look` says of it, or its names and
 * sizes. */
void desk_states(struct desk *k, char *out, size_t room,
                 void (*look)(struct sim_disk *d, char *text, size_t room));
bool desk_has(const char *seen, const char *state);
size_t desk_count(const char *seen);

#endif

/* What a client's payload may leave behind the end of the journal: a batch of the client's own
 * making, right in everything but the tag, because a torn write can bring any part of a payload to
 * any place there. */
#include "simulate/world.h"

#include "base/bytes.h"
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 4096, HEAD = 112, SEALED = 104 };

/* The plain segment in which the journal ended. */
struct place {
    const struct sim_world *world;
    uint64_t end, base;
    char name[64];
    bool found;
};

static bool look(void *arg, const char *name, uint64_t size)
{
    struct place *p = arg;
    struct hf_bytes bytes;
    if (!strstr(name, "journal-") || !strstr(name, ".log") || size < BLOCK ||
        !sim_disk_bytes(p->world->disk, name, &bytes))
        return true;
    const unsigned char *head = bytes.data;
    p->base = hf_get64(head + 24);
    p->found = memcmp(head, "HOLDSEG1", 8) == 0 && p->base <= p->end && p->end < p->base + size;
    snprintf(p->name, sizeof p->name, "%s", name);
    return !p->found;
}

/* The first block from `at` on behind which there are zeros alone; 0 if there is none. */
static uint64_t clean_from(struct hf_bytes file, uint64_t at)
{
    const unsigned char *p = file.data;
    uint64_t end = file.size;
    while (end > at && p[end - 1] == 0)
        end--;
    end = (end + BLOCK - 1) / BLOCK * BLOCK;
    return end + BLOCK <= file.size ? end : 0;
}

static void batch_make(unsigned char out[BLOCK], uint64_t position, uint64_t tag)
{
    memset(out, 0, BLOCK);
    memcpy(out, "HFB2", 4);
    hf_put32(out + 4, HEAD + 64);
    hf_put64(out + 8, UINT32_MAX); /* a sequence that was not reached yet */
    hf_put64(out + 16, position);
    memset(out + HEAD, 'f', 64);
    hf_sha256_of(out + HEAD, 64, out + 64);
    hf_put64(out + SEALED, tag);
}

void sim_forge(struct sim_world *w, uint64_t end)
{
    struct place p = { .world = w, .end = end };
    struct hf_bytes bytes;
    struct hf_dir *dir;
    struct hf_file *file;
    unsigned char batch[BLOCK];
    const struct hf_io *io = sim_disk_io(w->disk);
    sim_disk_each(w->disk, look, &p);
    if (!p.found || !sim_disk_bytes(w->disk, p.name, &bytes))
        return;
    uint64_t at = clean_from(bytes, end - p.base);
    if (at == 0)
        return;
    batch_make(batch, p.base + at, sim_chance_below(&w->chance, UINT64_MAX));
    bool quiet = w->quiet;
    w->quiet = true;
    if (io->dir_open(io->ctx, "store", false, &dir) == 0) {
        if (io->open(dir, p.name, HF_OPEN_WRITE, &file) == 0) {
            if (io->write(file, batch, sizeof batch, at) == 0)
                (void)io->sync(file);
            io->close(file);
        }
        io->dir_close(dir);
    }
    w->quiet = quiet;
}

#include "simulate/tests/kit/disk.h"

#include "support/test.h"

static uint32_t odometer_choose(void *arg, uint32_t n)
{
    struct desk_odometer *o = arg;
    assert_true(o->asked < DESK_ANSWERS && n > 0);
    o->of[o->asked] = n;
    assert_true(o->answers[o->asked] < n);
    return o->answers[o->asked++];
}

static int odometer_before(void *arg, enum sim_call call, const char *name, uint64_t at,
                           size_t size)
{
    struct desk_odometer *o = arg;
    (void)at;
    (void)size;
    assert_non_null(name);
    o->calls[call]++;
    if (!o->fail || call != o->fail_call)
        return 0;
    int error = o->fail;
    o->fail = 0;
    return error;
}

static hf_time odometer_wall(void *arg)
{
    (void)arg;
    return 7;
}

static uint64_t odometer_ns(void *arg)
{
    (void)arg;
    return 8;
}

static int odometer_random(void *arg, void *data, size_t size)
{
    (void)arg;
    memset(data, 9, size);
    return 0;
}

struct sim_disk_owner desk_owner(struct desk_odometer *o)
{
    return (struct sim_disk_owner){ .arg = o,
                                    .before = odometer_before,
                                    .choose = odometer_choose,
                                    .wall_ms = odometer_wall,
                                    .monotonic_ns = odometer_ns,
                                    .random = odometer_random };
}

/* To the next combination of answers; tears are tried at one byte alone, or there would be no end.
 * False: that was the last. */
static bool odometer_next(struct desk_odometer *o)
{
    size_t i = o->asked;
    o->asked = 0;
    while (i-- > 0) {
        if (o->of[i] != SIM_SECTOR - 1 && o->answers[i] + 1 < o->of[i]) {
            o->answers[i]++;
            memset(o->answers + i + 1, 0, (DESK_ANSWERS - i - 1) * sizeof *o->answers);
            return true;
        }
    }
    return false;
}

void desk_open(struct desk *k)
{
    memset(k, 0, sizeof *k);
    struct sim_disk_owner owner = desk_owner(&k->odometer);
    k->disk = sim_disk_new(&owner);
    k->io = sim_disk_io(k->disk);
    assert_int_equal(k->io->dir_open(k->io->ctx, "store", true, &k->dir), 0);
}

void desk_close(struct desk *k)
{
    k->io->dir_close(k->dir);
    sim_disk_free(k->disk);
}

struct hf_file *desk_file(struct desk *k, const char *name, enum hf_open_how how)
{
    struct hf_file *file = NULL;
    assert_int_equal(k->io->open(k->dir, name, how, &file), 0);
    return file;
}

void desk_put(struct desk *k, const char *name, int fill, size_t size, bool sync)
{
    unsigned char bytes[4096];
    struct hf_file *file = desk_file(k, name, HF_OPEN_CREATE);
    memset(bytes, fill, sizeof bytes);
    assert_int_equal(k->io->write(file, bytes, size, 0), 0);
    if (sync)
        assert_int_equal(k->io->sync(file), 0);
    k->io->close(file);
}

bool desk_list(void *arg, const char *name, uint64_t size)
{
    char *list = arg;
    snprintf(list + strlen(list), 200 - strlen(list), "%s:%d ", name, (int)size);
    return true;
}

void desk_states(struct desk *k, char *out, size_t room,
                 void (*look)(struct sim_disk *d, char *text, size_t room))
{
    char seen[4000] = "|";
    struct desk_odometer o = { .asked = 0 };
    struct sim_disk_owner owner = desk_owner(&o);
    do {
        struct sim_disk *d = sim_disk_copy(k->disk, &owner);
        char text[200] = "", marked[208];
        sim_disk_cut(d);
        sim_disk_restart(d);
        if (look)
            look(d, text, sizeof text);
        else
            sim_disk_each(d, desk_list, text);
        sim_disk_free(d);
        snprintf(marked, sizeof marked, "|%s|", text);
        if (!strstr(seen, marked))
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s|", text);
    } while (odometer_next(&o));
    snprintf(out, room, "%s", seen);
}

bool desk_has(const char *seen, const char *state)
{
    char marked[300];
    snprintf(marked, sizeof marked, "|%s|", state);
    return strstr(seen, marked) != NULL;
}

size_t desk_count(const char *seen)
{
    size_t n = 0;
    for (; *seen; seen++)
        n += *seen == '|';
    return n - 1;
}

void desk_look(struct sim_disk *d, char *text, size_t room)
{
    struct hf_bytes b;
    if (!sim_disk_bytes(d, "a", &b))
        return;
    const unsigned char *data = b.data;
    size_t n = (size_t)snprintf(text, room, "%d:", (int)b.size);
    for (size_t at = 0; at < b.size && n < room; at += SIM_SECTOR) {
        size_t last = at + SIM_SECTOR < b.size ? at + SIM_SECTOR : b.size;
        n += (size_t)snprintf(text + n, room - n, "%d%d ", data[at], data[last - 1]);
    }
}

struct hf_file *desk_sectors(struct desk *k, size_t sectors)
{
    desk_put(k, "a", 1, sectors * SIM_SECTOR, true);
    assert_int_equal(k->io->dir_sync(k->dir), 0);
    return desk_file(k, "a", HF_OPEN_WRITE);
}

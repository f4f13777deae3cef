#include "judge/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK_SIZE ((size_t)65536)

struct judge_chunk {
    struct judge_chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

void *judge_grow(void *old, size_t size)
{
    void *grown = realloc(old, size);
    if (!grown)
        abort();
    return grown;
}

void *judge_take(struct judge *j, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct judge_chunk *c = j->chunks;
    if (!c || c->size - c->used < size) {
        size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
        c = judge_grow(NULL, sizeof *c + room);
        *c = (struct judge_chunk){ .next = j->chunks, .size = room };
        j->chunks = c;
    }
    void *taken = c->bytes + c->used;
    c->used += size;
    return taken;
}

struct hf_bytes judge_keep(struct judge *j, struct hf_bytes bytes)
{
    if (bytes.size == 0)
        return hf_mem("", 0);
    void *copy = judge_take(j, bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    return hf_mem(copy, bytes.size);
}

/* ---- Records ---- */

static uint64_t mix(uint64_t hash, struct hf_bytes bytes)
{
    const unsigned char *at = bytes.data;
    size_t left = bytes.size;
    hash = (hash ^ left) * UINT64_C(0x9e3779b97f4a7c15);
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    for (; left > 0; at++, left--)
        hash = (hash ^ *at) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 29;
}

static void rehash(struct judge *j)
{
    size_t old_count = j->slot_count;
    struct judge_record **old = j->slots;
    j->slot_count = old_count ? 2 * old_count : 4096;
    j->slots = judge_grow(NULL, j->slot_count * sizeof *j->slots);
    memset(j->slots, 0, j->slot_count * sizeof *j->slots);
    for (size_t i = 0; i < old_count; i++) {
        if (!old[i])
            continue;
        size_t at = old[i]->hash & (j->slot_count - 1);
        while (j->slots[at])
            at = (at + 1) & (j->slot_count - 1);
        j->slots[at] = old[i];
    }
    free(old);
}

struct judge_record *judge_find(struct judge *j, enum judge_kind kind, struct hf_bytes tenant,
                                struct hf_bytes name, struct hf_bytes more)
{
    if (2 * j->record_count >= j->slot_count)
        rehash(j);
    uint64_t hash = mix(mix(mix((uint64_t)kind + 1, tenant), name), more);
    size_t at = hash & (j->slot_count - 1);
    for (struct judge_record *r; (r = j->slots[at]) != NULL; at = (at + 1) & (j->slot_count - 1))
        if (r->hash == hash && r->kind == kind && judge_bytes_equal(r->name, name) &&
            judge_bytes_equal(r->more, more) && judge_bytes_equal(r->tenant, tenant))
            return r;
    struct judge_record *made = judge_take(j, sizeof *made);
    *made = (struct judge_record){ .kind = kind,
                                   .tenant = judge_keep(j, tenant),
                                   .name = judge_keep(j, name),
                                   .more = judge_keep(j, more),
                                   .hash = hash,
                                   .next = j->kinds[kind] };
    j->kinds[kind] = made;
    j->slots[at] = made;
    j->record_count++;
    return made;
}

/* ---- Changing and going back ---- */

void judge_touch_only(struct judge_step *s, struct judge_record *record)
{
    if (!record->doubt)
        return;
    for (size_t i = 0; i < s->touched_count; i++)
        if (s->touched[i] == record->doubt)
            return;
    if (s->touched_count < JUDGE_TOUCHED)
        s->touched[s->touched_count++] = record->doubt;
}

static struct judge_body *save(struct judge_step *s, struct judge_record *record)
{
    struct judge *j = s->j;
    if (record->saved != s->serial) {
        if (j->undo_count == j->undo_room) {
            j->undo_room = j->undo_room ? 2 * j->undo_room : 256;
            j->undo = judge_grow(j->undo, j->undo_room * sizeof *j->undo);
        }
        j->undo[j->undo_count++] = (struct judge_undo){ .record = record,
                                                        .op = s->op ? s->op->number : j->op_count,
                                                        .body = record->body };
        record->saved = s->serial;
        judge_touch_only(s, record);
    }
    return &record->body;
}

struct judge_body *judge_change(struct judge_step *s, struct judge_record *record)
{
    struct judge_body *body = save(s, record);
    body->stamp = s->op->number;
    s->lasting = true;
    return body;
}

struct judge_body *judge_learn(struct judge_step *s, struct judge_record *record)
{
    return save(s, record);
}

void judge_undo_to(struct judge *j, size_t count)
{
    while (j->undo_count > count) {
        struct judge_undo *u = &j->undo[--j->undo_count];
        u->record->body = u->body;
        u->record->saved = 0;
    }
}

void judge_undo_trim(struct judge *j)
{
    while (j->undo_from < j->undo_count && j->undo[j->undo_from].op <= j->floor)
        j->undo_from++;
    if (j->undo_from == j->undo_count) {
        j->undo_from = j->undo_count = 0;
    } else if (j->undo_from > 4096 && j->undo_from > j->undo_count / 2) {
        j->undo_count -= j->undo_from;
        memmove(j->undo, j->undo + j->undo_from, j->undo_count * sizeof *j->undo);
        j->undo_from = 0;
    }
}

/* ---- The tools of a step ---- */

void judge_touch(struct judge_step *s, struct judge_record *record)
{
    if (record->body.stamp > s->saw)
        s->saw = record->body.stamp;
    judge_touch_only(s, record);
}

struct judge_record *judge_look(struct judge_step *s, enum judge_kind kind, struct hf_bytes name,
                                struct hf_bytes more)
{
    struct judge_record *record = judge_find(s->j, kind, s->op->request.tenant, name, more);
    judge_touch(s, record);
    return record;
}

void judge_object(struct judge_step *s, const char *format, ...)
{
    if (s->bad || s->quiet)
        return;
    s->bad = true;
    int n = snprintf(s->why, sizeof s->why, "operation %llu (%s, answered %s at %lld): ",
                     (unsigned long long)s->op->number, judge_action_name(s->op->request.action),
                     judge_status_name(s->op->status), (long long)s->now);
    va_list args;
    va_start(args, format);
    vsnprintf(s->why + n, sizeof s->why - (size_t)n, format, args);
    va_end(args);
}

bool judge_allow(struct judge_step *s, uint64_t statuses, const char *rule)
{
    unsigned status = (unsigned)s->op->status;
    if (status < 64 && statuses >> status & 1)
        return true;
    char wanted[256] = "";
    size_t n = 0;
    for (unsigned i = 0; i < 64 && n + 32 < sizeof wanted; i++)
        if (statuses >> i & 1)
            n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s%s", n ? " or " : "",
                                  judge_status_name((enum hf_status)i));
    judge_object(s, "%s: expected %s, seen %s", rule, wanted, judge_status_name(s->op->status));
    return false;
}

bool judge_has(struct judge_step *s, enum hf_record kind)
{
    if (s->op->answer.kind == kind)
        return true;
    judge_object(s, "the answer should carry a record of kind %d, and carries %d", (int)kind,
                 (int)s->op->answer.kind);
    return false;
}

/* ---- The judge ---- */

struct judge *judge_new(void)
{
    struct judge *j = judge_grow(NULL, sizeof *j);
    *j = (struct judge){ .rules = { .idempotency_window_ms = INT64_C(86400000),
                                    .token_max_length = 256 } };
    j->counters = judge_find(j, JUDGE_COUNTERS, hf_mem("", 0), hf_mem("", 0), hf_mem("", 0));
    return j;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    judge_doubt_free(j);
    while (j->chunks) {
        struct judge_chunk *next = j->chunks->next;
        free(j->chunks);
        j->chunks = next;
    }
    free(j->slots);
    free(j->ops);
    free(j->undo);
    free(j);
}

struct hf_bytes judge_bytes_copy(struct hf_bytes bytes)
{
    void *data = malloc(bytes.size ? bytes.size : 1);
    if (!data)
        abort();
    if (bytes.size)
        memcpy(data, bytes.data, bytes.size);
    return hf_mem(data, bytes.size);
}

bool judge_bytes_equal(struct hf_bytes a, struct hf_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Verifies the journal before the snapshot: the store can open without it, but all of it must be
 * undamaged. */
#include "store/journal/walk.h"

#include <errno.h>
#include <inttypes.h>

enum { STEP_BYTES = 4 << 20, REST = 3 }; /* REST: pause so many times as long as the work took */
#define AGAIN_NS UINT64_C(10000000000)   /* after a read error */

void hf_verify_begin(struct hf_journal *j, const struct hf_snapshot_info *info, bool rebuild)
{
    struct hf_verify *v = &j->verify;
    *v = (struct hf_verify){ .state = info->start > 0 ? HF_VERIFY_RUNNING : HF_VERIFY_NOTHING,
                             .position = HF_BLOCK,
                             .stop = info->start,
                             .link = { .sequence = 1, .now = INT64_MIN },
                             .goal = { .sequence = info->next_sequence },
                             .begins = true,
                             .rebuild = rebuild };
    memcpy(v->goal.chain, info->chain, HF_DIGEST_SIZE);
}

static bool bad(struct hf_verify *v, enum hf_status status, const char *what)
{
    v->state = HF_VERIFY_BAD;
    v->status = status;
    v->what = what;
    return false;
}

/* Check one complete batch, and advance past it. */
static bool batch_check(struct hf_journal *j, struct hf_verify *v, const struct hf_segment *g,
                        const struct hf_batch_head *head, const unsigned char *data)
{
    const char *what = hf_link_check(&v->link, g, head, data);
    if (!what && !hf_padding_clean(head, data))
        what = "there are unexpected bytes after the batch";
    if (what) {
        v->position = hf_head_fits(g, head) ? v->position : g->base;
        return bad(v, HF_STORE_DAMAGED, what);
    }
    enum hf_status st = v->rebuild ? hf_walk_apply(j, v->position, head, data, true) : HF_OK;
    if (st != HF_OK)
        return bad(v, st, "an entry of the batch is malformed");
    hf_link_on(&v->link, head, data);
    if (!hf_closed_fits(&j->closed, head->sequence, v->link.chain))
        return bad(v, HF_STORE_DAMAGED, hf_closed_differs);
    v->position = hf_block_up(v->position + head->length);
    v->begins = false;
    return true;
}

/* Check the batches of a pinned segment, up to the limit of a step. */
static void segment_check(struct hf_journal *j, struct hf_verify *v, struct hf_segment *g)
{
    uint64_t begun = v->position, end = g->base + g->size;
    while (v->position < v->stop && v->position - begun < STEP_BYTES) {
        struct hf_batch_head head;
        const unsigned char *data;
        int error = v->position < end
                        ? hf_journal_batch_of(j, g, &v->cache, v->position, true, &data, &head)
                        : -EBADMSG;
        if (error == 0 && head.sequence == v->link.sequence) {
            if (!batch_check(j, v, g, &head, data))
                return;
            continue;
        }
        if (hf_journal_unread(error)) {
            v->error = error; /* not damage: retried later */
            return;
        }
        if (v->begins || end + HF_BLOCK > v->stop) {
            /* One of two places is wrong: this one, if its segment's header promises the batch. */
            if (v->begins && v->left && g->first_sequence != v->link.sequence)
                v->position = v->left;
            bad(v, HF_STORE_DAMAGED, "the batch is damaged");
            return;
        }
        v->left = v->position;
        v->position = end + HF_BLOCK; /* the rest of this segment was too small for the batch */
        v->begins = true;
        return;
    }
}

static void finish(struct hf_journal *j)
{
    struct hf_verify *v = &j->verify;
    if (v->link.sequence != v->goal.sequence ||
        memcmp(v->link.chain, v->goal.chain, HF_DIGEST_SIZE) != 0)
        bad(v, HF_STORE_DAMAGED,
            "the batches before this position do not lead to the snapshot that "
            "begins here");
    else
        v->state = HF_VERIFY_GOOD;
}

static void step(struct hf_journal *j, const struct hf_lock *lock)
{
    struct hf_verify *v = &j->verify;
    /* If a batch ends with its segment, the next one begins after the next header. */
    struct hf_segment *g = hf_segments_at(&j->segments, v->position);
    if (g && v->position == g->base) {
        v->position += HF_BLOCK;
        v->begins = true;
        v->left = 0;
    }
    if (v->position >= v->stop) {
        finish(j);
        return;
    }
    hf_segments_tick(&j->segments);
    int error = g ? hf_segments_reach(&j->segments, g) : -EBADMSG;
    if (hf_journal_unread(error)) {
        v->error = error;
        return;
    }
    if (error) {
        bad(v, HF_STORE_DAMAGED, "the segment cannot be read");
        return;
    }
    struct hf_verify work = *v; /* others read the progress */
    g->pins++;
    size_t index = (size_t)(g - j->segments.list);
    if (lock)
        lock->unlock(lock->arg);
    segment_check(j, &work, g);
    if (lock)
        lock->lock(lock->arg);
    j->segments.list[index].pins--;
    *v = work;
    if (v->state == HF_VERIFY_RUNNING && v->position >= v->stop)
        finish(j);
}

bool hf_verify_step(struct hf_journal *j, const struct hf_lock *lock)
{
    struct hf_verify *v = &j->verify;
    uint64_t before = j->io->monotonic_ns(j->io->ctx);
    if (v->state != HF_VERIFY_RUNNING)
        return false;
    if (lock && before < v->rest_until_ns)
        return false;
    v->error = 0;
    step(j, lock);
    uint64_t after = j->io->monotonic_ns(j->io->ctx);
    v->rest_until_ns = v->error ? after + AGAIN_NS : after + REST * (after - before);
    if (v->error)
        hf_journal_note_unreadable(j, v->position, v->error);
    if (v->state != HF_VERIFY_RUNNING)
        hf_pack_cache_free(&v->cache);
    return v->state == HF_VERIFY_RUNNING && !v->error;
}

void hf_verify_end(struct hf_journal *j)
{
    hf_pack_cache_free(&j->verify.cache);
}

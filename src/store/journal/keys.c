/* Frees keys whose window is over. A cursor walks the journal's batches, oldest first, because keys
 * expire in the order of their arrival. After a while it passes a batch that it cannot read, notes
 * it, and returns to it later. */
#include "store/journal/maintain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void token_remove(struct hf_journal *j, const struct hf_entry_view *entry, uint64_t position)
{
    struct hf_tables *t = &j->tables;
    uint64_t hash = hf_tables_hash(t, (struct hf_scoped){ entry->head.tenant, entry->head.key });
    for (struct hf_slot *s = NULL; (s = hf_map64_next(&t->tokens, hash, s)) != NULL;) {
        if (s->value == position) {
            hf_map64_remove(&t->tokens, s);
            return;
        }
    }
}

/* The progress of a walk. */
struct walk {
    size_t max, looked, freed; /* entries */
    hf_time now;
};

enum walked {
    WALKED_ALL,
    WALKED_MAX,   /* and there is more */
    WALKED_LATER, /* stopped at a key whose window is not over */
    WALKED_BROKEN /* stopped at a damaged entry, or an unreadable batch */
};

/* Free the keys of a batch, from the offset *entry on (0: all), which is advanced. */
static enum walked batch_walk(struct hf_journal *j, const struct hf_batch_head *head,
                              const unsigned char *data, uint32_t *entry, struct walk *w)
{
    uint32_t at = *entry ? *entry : (uint32_t)hf_batch_head_size(head->version);
    for (; at < head->length; w->looked++) {
        struct hf_entry_view e;
        *entry = at;
        if (w->looked >= w->max)
            return WALKED_MAX;
        /* Check the entry before trusting it: a block of another batch may be here. */
        if (!hf_entry_decode(data + at, head->length - at, &e) || e.head.recorded_at != head->now)
            return WALKED_BROKEN;
        if (e.head.remember == HF_REMEMBER_KEY) {
            if (e.head.expires_at > w->now)
                return WALKED_LATER;
            token_remove(j, &e, head->position + at);
            hf_tables_token_gone(&j->tables, e.head.tenant);
            w->freed++;
        }
        at += e.size;
    }
    *entry = 0;
    return WALKED_ALL;
}

/* The position of the batch after one that ends at `end`: there, or in the next segment. */
static uint64_t next_batch(struct hf_journal *j, uint64_t end)
{
    struct hf_batch_head head;
    const unsigned char *data;
    /* Do not skip what is only unreadable at the moment. */
    if (end >= j->durable || hf_journal_batch(j, end, false, &data, &head) != -EBADMSG)
        return end;
    const struct hf_segment *g = hf_segments_at(&j->segments, end);
    /* If the segment is full, `end` is the next segment's first byte. */
    uint64_t next = g && end == g->base ? end : g ? g->base + g->size : end;
    return next + HF_BLOCK;
}

/* ---- Passed batches ---- */

bool hf_journal_pass(struct hf_journal *j, const struct hf_passed *range)
{
    if (j->passed_count == j->passed_room) {
        size_t room = j->passed_room ? j->passed_room * 2 : 16;
        struct hf_passed *passed = realloc(j->passed, room * sizeof *passed);
        if (!passed)
            return false;
        j->passed = passed;
        j->passed_room = room;
    }
    j->passed[j->passed_count++] = *range;
    return true;
}

/* Free the keys of one range, as far as it can be read. */
static enum walked range_walk(struct hf_journal *j, struct hf_passed *range, struct walk *w)
{
    enum walked walked = WALKED_ALL;
    while (walked == WALKED_ALL && range->position < range->end) {
        struct hf_batch_head head;
        const unsigned char *data;
        if (hf_journal_batch(j, range->position, false, &data, &head) != 0)
            return WALKED_BROKEN;
        walked = batch_walk(j, &head, data, &range->entry, w);
        if (walked == WALKED_ALL)
            range->position = next_batch(j, hf_block_up(range->position + head.length));
    }
    return walked;
}

bool hf_journal_revisit_tokens(struct hf_journal *j, size_t max)
{
    const uint64_t every_ns = UINT64_C(60) * 1000000000;
    uint64_t now_ns = j->io->monotonic_ns(j->io->ctx);
    if (j->passed_count == 0 || now_ns < j->revisit_at_ns)
        return false;
    struct walk w = { .max = max, .now = hf_journal_forget_until(j) };
    struct hf_passed *range = &j->passed[j->passed_next % j->passed_count];
    enum walked walked = range_walk(j, range, &w);
    if (walked == WALKED_MAX)
        return true;
    if (walked == WALKED_ALL) {
        hf_journal_note(j, 0,
                        "the journal before position %llu is readable again: its expired keys "
                        "are freed",
                        (unsigned long long)range->end);
        *range = j->passed[--j->passed_count];
    } else {
        j->passed_next++;
    }
    j->revisit_at_ns = now_ns + every_ns;
    return w.freed > 0;
}

void hf_journal_passed_free(struct hf_journal *j)
{
    free(j->passed);
    j->passed = NULL;
    j->passed_count = j->passed_room = 0;
}

/* ---- The cursor ---- */

static bool cursor_jump(struct hf_journal *j, uint64_t to)
{
    struct hf_passed range = { .position = j->token_cursor,
                               .end = to,
                               .entry = j->token_cursor_entry };
    if (!hf_journal_pass(j, &range))
        return false;
    j->revisit_at_ns = j->io->monotonic_ns(j->io->ctx) + UINT64_C(60) * 1000000000;
    j->token_cursor = to;
    j->token_cursor_entry = 0;
    return true;
}

/* The batch at the cursor is unreadable. It may become readable later; but it must not block all
 * later keys for ever. After a while the cursor moves past it. True if it has. */
static bool cursor_pass(struct hf_journal *j)
{
    const uint64_t patience_ns = UINT64_C(60) * 1000000000;
    enum { BLOCKS = 1024 }; /* checked in one step */
    uint64_t now = j->io->monotonic_ns(j->io->ctx), from = j->token_cursor;
    struct hf_batch_head head;
    const unsigned char *data;
    if (j->token_stuck_at != from) {
        j->token_stuck_at = j->token_seek = from;
        j->token_stuck_ns = now;
    }
    if (now - j->token_stuck_ns < patience_ns)
        return false;
    for (size_t i = 0; i < BLOCKS && j->token_seek + HF_BLOCK < j->durable; i++) {
        j->token_seek += HF_BLOCK;
        if (hf_journal_batch(j, j->token_seek, false, &data, &head) != 0)
            continue;
        if (!cursor_jump(j, j->token_seek)) {
            j->token_seek -= HF_BLOCK;
            return false;
        }
        hf_journal_note(j, 1,
                        "cannot read the batch at position %llu. Its keys stay in memory until "
                        "it is readable. Run `holdfast audit`",
                        (unsigned long long)from);
        return true;
    }
    if (j->token_seek + HF_BLOCK >= j->durable) {
        j->token_seek = from; /* unreadable to the end: start again after a while */
        j->token_stuck_ns = now;
    }
    return false;
}

/* An entry of the batch at the cursor is damaged: the keys of the rest of the batch stay. A torn
 * batch, whose sequence the next one repeats, has no keys. */
static void cursor_skip(struct hf_journal *j, const struct hf_batch_head *head)
{
    uint64_t end = hf_block_up(j->token_cursor + head->length), next = next_batch(j, end);
    struct hf_batch_head follows;
    const unsigned char *data;
    bool torn = hf_journal_batch(j, next, false, &data, &follows) == 0 &&
                follows.sequence == head->sequence;
    hf_journal_note_unreadable(j, j->token_cursor + j->token_cursor_entry, -EBADMSG);
    if (!torn && cursor_jump(j, end))
        return;
    j->token_cursor = end;
    j->token_cursor_entry = 0;
}

size_t hf_journal_expire_tokens(struct hf_journal *j, size_t max)
{
    struct walk w = { .max = max, .now = hf_journal_forget_until(j) };
    while (w.looked < max) {
        struct hf_batch_head head;
        const unsigned char *data;
        hf_segments_tick(&j->segments);
        if (j->token_cursor_entry == 0)
            j->token_cursor = next_batch(j, j->token_cursor);
        if (j->token_cursor >= j->durable)
            break;
        if (hf_journal_batch(j, j->token_cursor, false, &data, &head) != 0) {
            if (!cursor_pass(j))
                break;
            continue;
        }
        enum walked walked = batch_walk(j, &head, data, &j->token_cursor_entry, &w);
        if (walked == WALKED_LATER)
            break;
        if (walked == WALKED_BROKEN) {
            cursor_skip(j, &head);
            w.looked++;
        } else if (walked == WALKED_ALL) {
            j->token_cursor = hf_block_up(j->token_cursor + head.length);
        }
    }
    return w.freed;
}

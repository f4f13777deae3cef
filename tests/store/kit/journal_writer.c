#include "store/kit/journal_writer.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/id.h"

#include <dirent.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define BLOCK 4096
#define FRAME 131072

/* ---- Little-endian into a buffer ---- */

static void add8(struct hf_buffer *b, unsigned v)
{
    hf_buffer_add_char(b, (char)v);
}

static void add16(struct hf_buffer *b, size_t v)
{
    unsigned char p[2];
    hf_put16(p, (uint16_t)v);
    hf_buffer_add(b, p, sizeof p);
}

static void add32(struct hf_buffer *b, size_t v)
{
    unsigned char p[4];
    hf_put32(p, (uint32_t)v);
    hf_buffer_add(b, p, sizeof p);
}

static void add64(struct hf_buffer *b, uint64_t v)
{
    unsigned char p[8];
    hf_put64(p, v);
    hf_buffer_add(b, p, sizeof p);
}

static void add_time(struct hf_buffer *b, int64_t v)
{
    add64(b, (uint64_t)v);
}

static void add_str(struct hf_buffer *b, struct hf_bytes s)
{
    add16(b, s.size);
    hf_buffer_add_bytes(b, s);
}

static void add_blob(struct hf_buffer *b, struct hf_bytes s)
{
    add32(b, s.size);
    hf_buffer_add_bytes(b, s);
}

static void add_id(struct hf_buffer *b, const char *text)
{
    uint8_t raw[HF_ID_RAW] = { 0 };
    HF_ASSERT(hf_id_pack(hf_str(text), raw));
    hf_buffer_add(b, raw, sizeof raw);
}

/* ---- Images ---- */

static void hold_image(const struct hf_hold *h, struct hf_buffer *b)
{
    add64(b, h->ordinal);
    add64(b, h->previous);
    add_time(b, h->placed_at);
    add_time(b, h->expires_at);
    add_time(b, h->ended_at);
    add8(b, (unsigned)h->state);
    add8(b, h->reverses[0] ? 1 : h->reacquires[0] ? 2 : 0);
    add_id(b, h->id);
    if (h->reverses[0])
        add_id(b, h->reverses);
    else if (h->reacquires[0])
        add_id(b, h->reacquires);
    add_str(b, h->resource);
    add_str(b, h->requester);
}

static void resource_image(const struct hf_resource *r, struct hf_buffer *b)
{
    add32(b, r->capacity);
    add32(b, r->held);
    add32(b, r->confirmed);
    add8(b, r->open);
    add64(b, r->fence);
    add64(b, r->newest);
    add_time(b, r->created_at);
    add_str(b, r->name);
}

static void guard_image(const struct hf_guard *g, struct hf_buffer *b)
{
    add_time(b, g->window_ms);
    add8(b, (unsigned)g->on_unavailable);
    add8(b, g->durable);
    add8(b, g->match_count);
    for (size_t i = 0; i < HF_MATCH_MAX; i++)
        add8(b, i < g->match_count ? (unsigned)g->match[i] : 0);
    add_time(b, g->created_at);
    add_str(b, g->name);
}

static void claim_image(const struct hf_claim *c, struct hf_buffer *b)
{
    add8(b, (unsigned)c->state);
    add8(b, (unsigned)c->on_abandon);
    add64(b, c->fence);
    add_time(b, c->lease_ms);
    add_time(b, c->begun_at);
    add_time(b, c->lease_expires_at);
    add_time(b, c->settled_at);
    add_time(b, c->expires_at);
    hf_buffer_add(b, c->fingerprint, HF_DIGEST_SIZE);
    add_str(b, c->key);
    add_blob(b, c->response);
    if (c->retention_ms)
        add_time(b, c->retention_ms);
}

static void lease_image(const struct hf_lease *l, struct hf_buffer *b)
{
    add64(b, l->fence);
    add_time(b, l->ttl_ms);
    add_time(b, l->granted_at);
    add_time(b, l->expires_at);
    add_time(b, l->released_at);
    add_str(b, l->name);
    add_str(b, l->holder);
}

static void other_image(const struct hf_row *row, struct hf_buffer *b)
{
    switch (row->kind) {
    case HF_ROW_ENTRY:
        add_time(b, row->entry.recorded_at);
        add_time(b, row->entry.expires_at);
        add_str(b, row->entry.guard);
        add_str(b, row->entry.identity);
        add8(b, row->entry.has_result);
        add_blob(b, row->entry.result);
        break;
    case HF_ROW_REGISTER:
        add8(b, (unsigned)row->reg.value.type);
        add64(b, row->reg.version);
        add64(b, row->reg.fence);
        add_time(b, row->reg.changed_at);
        add_str(b, row->reg.name);
        add_blob(b, row->reg.value.bytes);
        break;
    case HF_ROW_CLIENT:
        add64(b, row->client.highest);
        hf_buffer_add(b, row->client.used, sizeof row->client.used);
        add_str(b, row->client.name);
        break;
    case HF_ROW_VALUE:
        add_str(b, row->pair.key);
        add_blob(b, row->pair.value);
        break;
    case HF_ROW_OUTBOX:
        add64(b, row->outbox.number);
        add8(b, (unsigned)row->outbox.state);
        add_time(b, row->outbox.created_at);
        add_str(b, row->outbox.key);
        add_str(b, row->outbox.topic);
        add_blob(b, row->outbox.payload);
        break;
    case HF_ROW_SUCCESSOR:
        add_id(b, row->successor.original);
        add_id(b, row->successor.successor);
        break;
    case HF_ROW_CONFIG:
        add_time(b, row->config.idempotency_window_ms);
        add32(b, row->config.token_max_length);
        add8(b, row->config.registry_strict);
        add_str(b, row->config.digest_name);
        add_str(b, row->config.program);
        break;
    default: break; /* a kind that nobody knows: no bytes */
    }
}

void jw_image(const struct hf_row *row, struct hf_buffer *out)
{
    switch (row->kind) {
    case HF_ROW_HOLD: hold_image(&row->hold, out); break;
    case HF_ROW_RESOURCE: resource_image(&row->resource, out); break;
    case HF_ROW_GUARD: guard_image(&row->guard, out); break;
    case HF_ROW_CLAIM: claim_image(&row->claim, out); break;
    case HF_ROW_LEASE: lease_image(&row->lease, out); break;
    default: other_image(row, out);
    }
}

/* ---- Entries and batches ---- */

static void entry_write(const struct jw_entry *e, struct hf_buffer *b)
{
    size_t start = b->size;
    struct hf_buffer image = { 0 };
    add64(b, 0); /* size and CRC, when known */
    add8(b, (unsigned)e->action);
    add8(b, (unsigned)e->status);
    add8(b, (unsigned)e->remember);
    add8(b, (unsigned)e->row_count);
    add8(b, e->answer);
    add8(b, (unsigned)e->tenant.size);
    add16(b, e->key.size);
    add_time(b, e->recorded_at);
    if (e->remember) {
        add_time(b, e->expires_at);
        hf_buffer_add(b, e->digest, HF_DIGEST_SIZE);
    }
    if (e->remember == HF_REMEMBER_SEQUENCE)
        add64(b, e->sequence);
    hf_buffer_add_bytes(b, e->tenant);
    hf_buffer_add_bytes(b, e->key);
    if (e->answer == 254) {
        add8(b, (unsigned)e->inline_kind);
        add_blob(b, e->inline_image);
    }
    for (size_t i = 0; i < e->row_count; i++) {
        hf_buffer_reset(&image);
        jw_image(&e->rows[i], &image);
        add8(b, (unsigned)e->rows[i].kind);
        add8(b, e->rows[i].erase);
        add32(b, image.size + (e->row_lies && i + 1 == e->row_count ? 1000 : 0));
        hf_buffer_add(b, image.data, image.size);
    }
    hf_buffer_free(&image);
    HF_ASSERT(!b->failed);
    hf_put32(b->data + start, (uint32_t)(b->size - start));
    hf_put32(b->data + start + 4, hf_crc32c(0, b->data + start + 8, b->size - start - 8));
}

const struct hf_sipkey jw_seal = { 0x5ea15ea15ea15ea1U, 0x0123456789abcdefU };

#define MAGIC_1 0x31424648U
#define MAGIC_2 0x32424648U

/* By doc/FORMAT.md, through another door of libcrypto than the store uses. */
void jw_entries_tag(const struct hf_sipkey *seal, unsigned char *b, size_t length)
{
    unsigned char secret[32] = "holdfast entries", key[32], nonce[12];
    char name[] = "AES-128-GCM";
    size_t size;
    hf_put64(secret + 16, seal->k0);
    hf_put64(secret + 24, seal->k1);
    hf_sha256_of(secret, sizeof secret, key);
    memcpy(nonce, b + 16, 8);
    memcpy(nonce + 8, b + 8, 4);
    OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, name, 0),
                            OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, nonce,
                                                              sizeof nonce),
                            OSSL_PARAM_construct_end() };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "GMAC", NULL);
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);
    memset(b + 64, 0, 32);
    HF_ASSERT(ctx && EVP_MAC_init(ctx, key, 16, params) == 1 &&
              EVP_MAC_update(ctx, b + 112, length - 112) == 1 &&
              EVP_MAC_final(ctx, b + 64, &size, 16) == 1 && size == 16);
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
}

static void batch_check(unsigned char *b, size_t length)
{
    if (hf_get32(b) == MAGIC_1) {
        hf_put32(b + 72, hf_crc32c(0, b, 72));
        hf_put32(b + 76, hf_crc32c(0, b + 80, length - 80));
        return;
    }
    jw_entries_tag(&jw_seal, b, length);
    jw_fix_tag(b);
}

void jw_fix(unsigned char *b, size_t room)
{
    size_t length = hf_get32(b + 4), head = hf_get32(b) == MAGIC_1 ? 80 : 112;
    if (length < head || length > room)
        return;
    for (size_t at = head; at + 8 < length;) {
        size_t size = hf_get32(b + at);
        if (size < 8 || size > length - at)
            break;
        hf_put32(b + at + 4, hf_crc32c(0, b + at + 8, size - 8));
        at += size;
    }
    batch_check(b, length);
}

void jw_fix_tag(unsigned char *b)
{
    hf_put64(b + 104, hf_siphash(&jw_seal, hf_mem(b, 104), hf_mem(NULL, 0)));
}

void jw_fix_head(unsigned char *h)
{
    hf_put64(h + 152, hf_siphash(&jw_seal, hf_mem(h, 152), hf_mem(NULL, 0)));
}

void jw_begin(struct jw *w, hf_time now)
{
    HF_ASSERT(!w->open);
    w->open = true;
    w->batch_now = now;
    w->entry_count = 0;
}

struct jw_entry *jw_add(struct jw *w, enum hf_action action)
{
    HF_ASSERT(w->open && w->entry_count < JW_ENTRIES_MAX);
    struct jw_entry *e = &w->entries[w->entry_count++];
    *e = (struct jw_entry){ .action = action, .answer = 255, .recorded_at = w->batch_now };
    return e;
}

struct hf_row *jw_row(struct jw_entry *e, enum hf_row_kind kind)
{
    HF_ASSERT(e->row_count < JW_ROWS_MAX);
    e->rows[e->row_count] = (struct hf_row){ .kind = kind };
    return &e->rows[e->row_count++];
}

static void segment_name(char out[32], uint64_t number, const char *end)
{
    snprintf(out, 32, "journal-%08llu.%s", (unsigned long long)number, end);
}

static void segment_save(struct jw *w)
{
    char name[32];
    segment_name(name, w->number, "log");
    jw_save(w->dir, name, w->segment, w->segment_size);
}

static void head_write(struct jw *w, uint64_t sequence, hf_time now)
{
    unsigned char *h = w->segment;
    memcpy(h, "HOLDSEG1", 8);
    hf_put32(h + 8, w->version);
    hf_put32(h + 12, BLOCK);
    hf_put64(h + 16, w->number);
    hf_put64(h + 24, w->base);
    hf_put64(h + 32, w->stretched ? w->stretched : w->segment_size);
    hf_put64(h + 40, sequence);
    hf_put64(h + 48, (uint64_t)now);
    memcpy(h + 56, w->store_id, 16);
    hf_put64(h + 72, 1);
    hf_put64(h + 80, 2);
    hf_put64(h + 88, w->id_key.k0);
    hf_put64(h + 96, w->id_key.k1);
    if (w->version == 1) {
        memcpy(h + 104, w->chain, HF_DIGEST_SIZE);
        hf_put32(h + 136, hf_crc32c(0, h, 136));
        return;
    }
    hf_put64(h + 104, jw_seal.k0);
    hf_put64(h + 112, jw_seal.k1);
    memcpy(h + 120, w->chain, HF_DIGEST_SIZE);
    jw_fix_head(h);
}

static void segment_next(struct jw *w)
{
    segment_save(w);
    w->base += hf_get64(w->segment + 32);
    w->number++;
    w->offset = BLOCK;
    memset(w->segment, 0, w->segment_size);
}

void jw_commit(struct jw *w)
{
    struct hf_buffer b = { 0 };
    HF_ASSERT(w->open);
    bool first = w->version == 1;
    size_t head = first ? 80 : 112;
    HF_ASSERT(hf_buffer_reserve(&b, head));
    memset(b.data, 0, head);
    b.size = head;
    for (size_t i = 0; i < w->entry_count; i++)
        entry_write(&w->entries[i], &b);
    if (w->offset + b.size > w->segment_size || w->next_segment)
        segment_next(w);
    HF_ASSERT(w->offset + b.size <= w->segment_size);
    w->sequence += w->skip_sequence ? 2 : 1;
    if (w->break_chain)
        w->chain[0] ^= 1;
    if (w->offset == BLOCK)
        head_write(w, w->sequence, w->batch_now);
    hf_put32(b.data, first ? MAGIC_1 : MAGIC_2);
    hf_put32(b.data + 4, (uint32_t)b.size);
    hf_put64(b.data + 8, w->sequence);
    hf_put64(b.data + 16, w->base + w->offset);
    hf_put64(b.data + 24, (uint64_t)w->batch_now);
    memcpy(b.data + 32, w->chain, HF_DIGEST_SIZE);
    hf_put32(b.data + (first ? 64 : 96), (uint32_t)w->entry_count + w->wrong_count);
    batch_check(b.data, b.size);
    memcpy(w->segment + w->offset, b.data, b.size);
    if (w->dirty_padding)
        w->segment[w->offset + b.size] = 1;
    hf_sha256_of(b.data, b.size, w->chain);
    w->last_position = w->base + w->offset;
    w->last_length = (uint32_t)b.size;
    w->offset += (b.size + BLOCK - 1) / BLOCK * BLOCK;
    w->now = w->batch_now;
    w->open = false;
    w->break_chain = w->skip_sequence = w->wrong_count = w->dirty_padding = w->next_segment = false;
    hf_buffer_free(&b);
}

void jw_open(struct jw *w, const char *dir, uint64_t segment_size)
{
    *w = (struct jw){ .segment_size = segment_size, .version = 2, .number = 1, .offset = BLOCK };
    snprintf(w->dir, sizeof w->dir, "%s", dir);
    memcpy(w->store_id, "a store of tests", 16);
    w->id_key = (struct hf_sipkey){ 0x1122334455667788U, 0x99aabbccddeeff00U };
    w->segment = calloc(1, segment_size);
    HF_ASSERT(w->segment);
}

void jw_close(struct jw *w)
{
    char name[32];
    segment_save(w);
    memset(w->segment, 0, w->segment_size);
    segment_name(name, w->number + 1, "log");
    jw_save(w->dir, name, w->segment, w->segment_size);
    free(w->segment);
    w->segment = NULL;
}

/* ---- Compressed segments ---- */

/* The frame of the `size` bytes at `plain`, behind those in `body`; none if they are zeros. */
static void frame_pack(const unsigned char *plain, size_t size, struct hf_buffer *table,
                       struct hf_buffer *body, size_t body_at)
{
    bool zeros = size == 0 || (plain[0] == 0 && memcmp(plain, plain + 1, size - 1) == 0);
    add64(table, body_at + body->size);
    if (zeros) {
        add64(table, 0);
        return;
    }
    unsigned char *padded = calloc(1, FRAME);
    unsigned char *out = malloc(ZSTD_compressBound(FRAME));
    HF_ASSERT(out && padded);
    memcpy(padded, plain, size);
    size_t got = ZSTD_compress(out, ZSTD_compressBound(FRAME), padded, FRAME, 3);
    HF_ASSERT(!ZSTD_isError(got));
    free(padded);
    add32(table, got);
    add32(table, hf_crc32c(0, out, got));
    hf_buffer_add(body, out, got);
    free(out);
}

void jw_pack(struct jw *w, uint64_t number)
{
    char name[32], packed_name[32], path[1024];
    size_t there;
    segment_name(name, number, "log");
    segment_name(packed_name, number, "zst");
    unsigned char *plain = jw_load(w->dir, name, &there);
    size_t size = w->stretched ? w->stretched : there;
    size_t frames = (size + FRAME - 1) / FRAME;
    struct hf_buffer table = { 0 }, body = { 0 }, head = { 0 };
    size_t body_at = 48 + 16 * frames;
    for (size_t i = 0; i < frames; i++) {
        size_t at = i * FRAME < there ? i * FRAME : there;
        frame_pack(plain + at, there - at < FRAME ? there - at : FRAME, &table, &body, body_at);
    }
    hf_buffer_add_text(&head, "HOLDZST1");
    add32(&head, 1);
    add32(&head, FRAME);
    add64(&head, number);
    add64(&head, hf_get64(plain + 24));
    add64(&head, size);
    add32(&head, frames);
    add32(&head, hf_crc32c(hf_crc32c(0, head.data, 44), table.data, table.size));
    hf_buffer_add(&head, table.data, table.size);
    hf_buffer_add(&head, body.data, body.size);
    HF_ASSERT(!head.failed);
    jw_save(w->dir, packed_name, head.data, head.size);
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    unlink(path);
    hf_buffer_free(&head);
    hf_buffer_free(&table);
    hf_buffer_free(&body);
    free(plain);
}

/* ---- Files ---- */

unsigned char *jw_load(const char *dir, const char *name, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    HF_ASSERT(f && fseek(f, 0, SEEK_END) == 0);
    *size = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*size + 1);
    HF_ASSERT(data && fread(data, 1, *size, f) == *size);
    fclose(f);
    return data;
}

void jw_save(const char *dir, const char *name, const void *data, size_t size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    HF_ASSERT(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

void jw_flip(const char *dir, const char *name, size_t offset)
{
    size_t size;
    unsigned char *data = jw_load(dir, name, &size);
    HF_ASSERT(offset < size);
    data[offset] ^= 0x10;
    jw_save(dir, name, data, size);
    free(data);
}

void jw_digest(const struct jw_field *fields, size_t count, uint8_t out[HF_DIGEST_SIZE])
{
    struct hf_buffer b = { 0 };
    for (size_t i = 0; i < count; i++) {
        add_str(&b, hf_str(fields[i].name));
        add8(&b, fields[i].number ? 2 : 1);
        if (fields[i].number) {
            add32(&b, 8);
            add_time(&b, *fields[i].number);
        } else {
            add_blob(&b, fields[i].bytes);
        }
    }
    hf_sha256_of(b.data, b.size, out);
    hf_buffer_free(&b);
}

void jw_directory(char out[256])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, 256, "%s/holdfast-test-XXXXXX", tmp ? tmp : "/tmp");
    HF_ASSERT(mkdtemp(out));
}

void jw_remove(const char *dir)
{
    DIR *d = opendir(dir);
    char path[1024];
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

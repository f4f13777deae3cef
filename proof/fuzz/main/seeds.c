/* fuzz_seeds FOLDER: write inputs to begin with to FOLDER/<target>, made by the code as it is now,
 * so that they are good inputs whatever has become of formats and limits. */
#include "fuzz/support/journal.h"
#include "fuzz/support/snapshot.h"
#include "fuzz/support/tell.h"

#include "api/call.h"
#include "base/bytes.h"
#include "server/kit/hostile.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *folder;

static void make_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        perror(path);
        fuzz_unwanted("the folder can be made", __FILE__, __LINE__);
    }
}

/* One input: `prefix` and the bytes. */
static void seed(const char *target, unsigned number, struct hf_bytes prefix, struct hf_bytes bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, target);
    make_folder(path);
    snprintf(path, sizeof path, "%s/%s/seed-%03u", folder, target, number);
    FILE *out = fopen(path, "wb");
    FUZZ_WANT(out);
    FUZZ_WANT(prefix.size == 0 || fwrite(prefix.data, 1, prefix.size, out) == prefix.size);
    FUZZ_WANT(bytes.size == 0 || fwrite(bytes.data, 1, bytes.size, out) == bytes.size);
    FUZZ_WANT(fclose(out) == 0);
}

static void seed_texts(const char *target, struct hf_bytes prefix, const char *const *texts)
{
    for (unsigned i = 0; texts[i]; i++)
        seed(target, i, prefix, hf_str(texts[i]));
}

/* ---- Journals ---- */

static void tell_store(struct fuzz_files *files, enum fuzz_story story)
{
    const struct hf_options options = { .segment_max_bytes =
                                            story == FUZZ_STORY_APPLY ? 2U << 20 : FUZZ_SEGMENT,
                                        .idempotency_window_ms = 3600000,
                                        .no_background = true,
                                        .io = &files->io };
    struct hf_db *db;
    struct hf_error why;
    fuzz_files_init(files);
    FUZZ_WANT(hf_open("fuzz", &options, &db, &why) == HF_OK);
    fuzz_tell(db, story, 0);
    hf_close(db);
}

static void seed_journals(void)
{
    for (unsigned story = 0; story < FUZZ_STORIES; story++) {
        struct fuzz_files files;
        struct hf_buffer pieces = { 0 }, rows = { 0 };
        tell_store(&files, (enum fuzz_story)story);
        fuzz_rows_of(&files, &rows);
        seed("rows", story, hf_mem(NULL, 0), hf_mem(rows.data, rows.size));
        seed("audit", 10 + story, hf_mem("\1", 1), hf_mem(rows.data, rows.size));
        if (story != FUZZ_STORY_APPLY) { /* its segments have another size */
            fuzz_pieces_of(&files, &pieces);
            seed("journal", story, hf_mem(NULL, 0), hf_mem(pieces.data, pieces.size));
            seed("audit", story, hf_mem("\0", 1), hf_mem(pieces.data, pieces.size));
        }
        hf_buffer_free(&pieces);
        hf_buffer_free(&rows);
        fuzz_files_free(&files);
    }
}

static void seed_files(void)
{
    const struct fuzz_files *store = fuzz_store();
    struct hf_bytes snapshot = fuzz_files_get(store, fuzz_files_find(store, ".snap"));
    struct hf_bytes index = fuzz_files_get(store, "holds.idx");
    struct hf_bytes pack = fuzz_files_get(store, "journal-00000001.zst");
    struct hf_bytes closed = fuzz_files_get(store, "closed");
    struct hf_buffer built = { 0 }, head = { 0 };
    fuzz_snapshot_of(snapshot, &built);
    hf_buffer_add(&head, index.data, 40);
    hf_buffer_add(&head, (const char *)index.data + HF_BLOCK, index.size - HF_BLOCK);
    for (unsigned fix = 0; fix < 4; fix++) {
        unsigned char first = (unsigned char)fix;
        struct hf_bytes prefix = hf_mem(&first, 1);
        seed("snapshot", fix, prefix, fix & 1 ? hf_mem(built.data, built.size) : snapshot);
        seed("index", fix, prefix, hf_mem(head.data, head.size));
        first |= 4;
        seed("index", 4 + fix, prefix, hf_mem(head.data, head.size));
        seed("pack", fix, prefix, pack);
        seed("closed", fix, prefix, closed);
    }
    seed("audit", 20, hf_mem("\2", 1), pack);
    seed("audit", 21, hf_mem("\3", 1), pack);
    hf_buffer_free(&built);
    hf_buffer_free(&head);
}

/* ---- HTTP ---- */

static void seed_http(void)
{
    struct hf_hostile all = hf_hostile_load(NULL);
    const char *const heads[] = {
        "HTTP/1.1 201 Created\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: "
        "application/json\r\nContent-Length: 12\r\nIdempotent-Replayed: true\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n"
        "Holdfast-Verdict: ok\r\n\r\n",
        NULL
    };
    static const unsigned char cuts[] = { 3, 20, 1, 40 };
    for (size_t i = 0; i < all.count; i++) {
        const struct hf_hostile_case *c = &all.cases[i];
        struct hf_bytes bytes = hf_mem(c->bytes, c->size);
        if (c->size > 3000)
            continue; /* those of great length are the server's tests' */
        seed("http", (unsigned)i, hf_mem(cuts, sizeof cuts), bytes);
        if (c->layer == HF_HOSTILE_HEAD || c->layer == HF_HOSTILE_NONE)
            seed("head", (unsigned)i, hf_mem(cuts, sizeof cuts), bytes);
        const char *body = c->layer == HF_HOSTILE_CHUNK ? strstr(c->bytes, "\r\n\r\n") : NULL;
        if (body)
            seed("chunk", (unsigned)i, hf_mem(cuts, sizeof cuts),
                 hf_mem(body + 4, c->size - (size_t)(body + 4 - c->bytes)));
    }
    seed_texts("client_head", hf_mem(cuts, sizeof cuts), heads);
    hf_hostile_free(&all);
}

/* ---- Calls ---- */

/* An empty body and an empty query for each call, and its path as a target. */
static void seed_calls(void)
{
    for (unsigned i = 0; i < hf_call_count; i++) {
        const struct hf_call *call = &hf_calls[i];
        unsigned char first = (unsigned char)i, method = (unsigned char)call->method;
        struct hf_buffer body = { 0 }, line = { 0 };
        bool query = !hf_call_has_body(call);
        hf_buffer_printf(&body, "\"key\"\nname%%20\n");
        hf_buffer_printf(&line,
                         "{\"op\":\"%s\",\"key\":\"k\",\"id\":\"x\",\"guard\":\"g\",\"name\":\"n\"",
                         call->op ? call->op : "");
        for (size_t f = 0; f < call->field_count; f++) {
            const struct hf_call_field *field = &call->fields[f];
            static const char *const values[] = {
                "\"text\"",         "\"15m\"",    "1",           "true",
                "{\"a\":[1,null]}", "[\"trim\"]", "\"counter\"", "\"2026-11-15T21:39:57Z\""
            };
            if (query)
                hf_buffer_printf(&body, "%s%s=1", f ? "&" : "", field->name);
            else
                hf_buffer_printf(&body, "%s\"%s\":%s", f ? "," : "\n{", field->name,
                                 values[field->type]);
            hf_buffer_printf(&line, ",\"%s\":%s", field->name, values[field->type]);
        }
        hf_buffer_add_text(&body, query || call->field_count == 0 ? "\n" : "}");
        hf_buffer_add_text(&line, "}\n");
        seed("call", i, hf_mem(&first, 1), hf_mem(body.data, body.size));
        seed("target", i, hf_mem(&method, 1), hf_str(call->path));
        if (call->op)
            seed("line", i, hf_mem(NULL, 0), hf_mem(line.data, line.size));
        hf_buffer_free(&body);
        hf_buffer_free(&line);
    }
}

static void seed_others(void)
{
    static const char *const json[] = {
        "{\"a\":[1,-2.5e3,true,false,null,\"\\u00e9\\ud83d\\ude00\\n\"]}",
        "\"text\"",
        " [ ] ",
        "18446744073709551615",
        "-9223372036854775808",
        NULL
    };
    static const char *const config[] = {
        "# comment\ndata = /srv/x # more\nauth-file = \"the \\\"shop\\\" \\\\\"\r\n",
        "listen=127.0.0.1:0\nwelcome = yes", NULL
    };
    static const char *const auth[] = {
        "Bearer token\nacme write 3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0 "
        "# the shop\n"
        "- admin 9a4e27f09a4e27f09a4e27f09a4e27f09a4e27f09a4e27f09a4e27f09a4e27f0\n",
        NULL
    };
    static const char *const urls[] = { "http://127.0.0.1:4653", "https://[::1]:443/shop/",
                                        "http://localhost/a/b", NULL };
    static const char *const texts[] = { "15m",
                                         "7d",
                                         "250ms",
                                         "2026-11-15T21:39:57.123Z",
                                         "@1700000000000",
                                         "2026-11-15",
                                         "64KiB",
                                         "00000000000000000000000000",
                                         NULL };
    static const char *const holds[] = {
        "{\"id\":\"0123456789abcdefghjkmnpqrs\",\"state\":\"held\",\"resource\":\"r\","
        "\"requester\":\"q\",\"placed_at\":\"2026-11-15T21:39:57.123Z\",\"expires_at\":\"2026-11-"
        "15T21:54:57.123Z\"}",
        NULL
    };
    seed_texts("json", hf_mem(NULL, 0), json);
    seed_texts("config", hf_mem(NULL, 0), config);
    seed_texts("auth", hf_mem(NULL, 0), auth);
    seed_texts("url", hf_mem(NULL, 0), urls);
    seed_texts("text", hf_mem(NULL, 0), texts);
    seed_texts("client_body", hf_mem("\0", 1), holds);
}

/* Scripts of nothing in particular: any bytes are one. */
static void seed_scripts(void)
{
    uint64_t random = 7;
    for (unsigned i = 0; i < 12; i++) {
        unsigned char bytes[600];
        for (size_t b = 0; b < sizeof bytes; b++)
            bytes[b] = (unsigned char)test_random(&random);
        seed("script", i, hf_mem(NULL, 0), hf_mem(bytes, 50U * (i + 1)));
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    folder = argv[1];
    make_folder(folder);
    seed_journals();
    seed_files();
    seed_http();
    seed_calls();
    seed_others();
    seed_scripts();
    return 0;
}

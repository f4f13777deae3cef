#include "fuzz/support/store.h"

#include "api/encode.h"
#include "base/bytes.h"
#include "fuzz/support/fuzz.h"
#include "fuzz/support/tell.h"

enum { MAINTAIN_MAX = 400, PAGES_MAX = 40 };

static const char *const tenants[] = { "", "t" };

/* ---- Opening ---- */

static void on_fatal(void *arg, const char *sentence)
{
    (void)arg;
    (void)sentence;
    fuzz_unwanted("files in memory can be written", __FILE__, __LINE__);
}

enum hf_status fuzz_store_open(struct fuzz_files *files, struct hf_db **db)
{
    const struct hf_options options = { .segment_max_bytes = FUZZ_SEGMENT,
                                        .snapshot_every_bytes = 2 * FUZZ_SEGMENT,
                                        .idempotency_window_ms = 3600000,
                                        .no_background = true,
                                        .io = &files->io,
                                        .on_fatal = on_fatal };
    struct hf_error why = { HF_OK, "" };
    enum hf_status status = hf_open("fuzz", &options, db, &why);
    if (status == HF_OK)
        return status;
    FUZZ_WANT(!*db && why.status == status && fuzz_sentence(why.text, sizeof why.text));
    FUZZ_WANT(status == HF_STORE_DAMAGED || status == HF_STORE_NEWER ||
              status == HF_STORAGE_FAILURE);
    return status;
}

/* ---- Showing ---- */

struct showing {
    struct hf_db *db;
    struct hf_json json;
    unsigned faults;
};

static void show_page(struct showing *s, const struct hf_query *query, const struct hf_page *page)
{
    switch (query->kind) {
    case HF_LIST_HOLDS: hf_api_holds(&s->json, page); break;
    case HF_LIST_RESOURCES: hf_api_resources(&s->json, page); break;
    case HF_LIST_GUARDS: hf_api_guards(&s->json, page); break;
    case HF_LIST_ENTRIES: hf_api_entries(&s->json, page, true); break;
    case HF_LIST_CLAIMS: hf_api_claims(&s->json, page); break;
    case HF_LIST_OUTBOX:
        for (size_t i = 0; i < page->count; i++) {
            hf_json_uint(&s->json, page->outbox[i].number);
            hf_json_opaque(&s->json, page->outbox[i].key);
            hf_json_opaque(&s->json, page->outbox[i].topic);
            hf_json_opaque(&s->json, page->outbox[i].payload);
        }
        break;
    }
}

static void show_list(struct showing *s, struct hf_query query)
{
    struct hf_page page;
    for (unsigned i = 0; i < PAGES_MAX; i++) {
        enum hf_status status = hf_list(s->db, &query, &page);
        if (status != HF_OK) {
            s->faults += hf_status_kind(status) == HF_KIND_FAULT;
            hf_json_text(&s->json, hf_status_code(status));
            return;
        }
        show_page(s, &query, &page);
        query.cursor = page.next_cursor;
        hf_page_clear(&page);
        if (query.cursor == 0)
            return;
    }
}

static void show_record(struct showing *s, struct hf_request request)
{
    struct hf_result got = HF_RESULT_INIT;
    enum hf_status status = hf_do(s->db, &request, &got);
    s->faults += hf_status_kind(status) == HF_KIND_FAULT;
    hf_json_text(&s->json, hf_status_code(status));
    if (got.answer.kind == HF_RECORD_VALUE)
        hf_json_opaque(&s->json, got.answer.value);
    else if (status == HF_OK && request.action != HF_GET_TOKEN)
        hf_api_answer(&s->json, request.action, &got.answer);
    else if (status == HF_OK)
        hf_api_token(&s->json, &got.token, &got.answer);
    hf_result_clear(&got);
}

static void show_tenant(struct showing *s, struct hf_bytes tenant)
{
    static const char *const keys[] = { "a-0",     "d-0", "i-0", "pay-0",
                                        "order-0", "a-1", "g-1", "bulk-3" };
    static const char *const registers[] = { "plain",  "max",     "union", "lww",
                                             "vector", "counter", "updown" };
    static const char *const claims[] = { "pay-0", "try-0", "open-0", "open-1" };
    for (int kind = HF_LIST_HOLDS; kind <= HF_LIST_CLAIMS; kind++)
        if (kind != HF_LIST_ENTRIES)
            show_list(s, (struct hf_query){ .kind = (enum hf_list_kind)kind, .tenant = tenant });
    show_list(s, (struct hf_query){
                     .kind = HF_LIST_HOLDS, .tenant = tenant, .resource = hf_str("room") });
    show_list(
        s, (struct hf_query){ .kind = HF_LIST_ENTRIES, .tenant = tenant, .name = hf_str("mail") });
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        show_record(s, (struct hf_request){
                           .action = HF_GET_TOKEN, .tenant = tenant, .key = hf_str(keys[i]) });
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        show_record(s, (struct hf_request){
                           .action = HF_GET_CLAIM, .tenant = tenant, .key = hf_str(claims[i]) });
    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        show_record(s, (struct hf_request){ .action = HF_GET_REGISTER,
                                            .tenant = tenant,
                                            .get = { hf_str(registers[i]) } });
    show_record(s, (struct hf_request){
                       .action = HF_GET_LEASE, .tenant = tenant, .get = { hf_str("leader") } });
    show_record(s, (struct hf_request){
                       .action = HF_GET_VALUE, .tenant = tenant, .get = { hf_str("key") } });
}

unsigned fuzz_store_show(struct hf_db *db, struct hf_buffer *out)
{
    struct showing s = { .db = db, .json = { .out = out } };
    for (size_t i = 0; i < sizeof tenants / sizeof *tenants; i++)
        show_tenant(&s, hf_str(tenants[i]));
    FUZZ_WANT(!out->failed);
    return s.faults;
}

/* ---- Working ---- */

static void settle(struct hf_db *db)
{
    for (unsigned i = 0; i < MAINTAIN_MAX && hf_maintain(db); i++)
        continue;
}

/* A damaged store may refuse or fail, but not stop, and not for want of memory. */
static void act(struct hf_db *db, struct hf_request request, struct hf_result *got)
{
    FUZZ_WANT(hf_do(db, &request, got) != HF_NO_MEMORY);
}

/* Something that decides over what is there. */
static void work(struct hf_db *db, struct fuzz_files *files)
{
    static const char *const resources[] = { "room", "seat", "shelf", "new" };
    struct hf_result got = HF_RESULT_INIT;
    settle(db);
    files->wall += 5 * 60000;
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        act(db,
            (struct hf_request){ .action = HF_PLACE_HOLD,
                                 .key = hf_str(resources[i]),
                                 .place_hold = { .resource = hf_str(resources[i]),
                                                 .requester = hf_str("worker"),
                                                 .duration_ms = 60000 } },
            &got);
    char id[HF_ID_SIZE] = "none";
    if (got.answer.kind == HF_RECORD_HOLD)
        memcpy(id, got.answer.hold.id, sizeof id);
    act(db,
        (struct hf_request){
            .action = HF_CONFIRM, .key = hf_str("confirm"), .hold = { .id = hf_str(id) } },
        &got);
    act(db,
        (struct hf_request){
            .action = HF_BEGIN, .key = hf_str("pay-0"), .begin = { .payload = hf_str("x") } },
        &got);
    act(db,
        (struct hf_request){ .action = HF_WRITE,
                             .key = hf_str("write"),
                             .write = { .name = hf_str("max"), .value = hf_str("plain") } },
        &got);
    files->wall += INT64_C(7200000);
    settle(db);
    hf_result_clear(&got);
}

enum hf_status fuzz_store_try(struct fuzz_files *files, bool with_work, struct hf_buffer *shown,
                              unsigned *faults)
{
    struct hf_db *db;
    struct hf_buffer before = { 0 }, after = { 0 };
    enum hf_status status = fuzz_store_open(files, &db);
    if (status != HF_OK)
        return status;
    *faults = fuzz_store_show(db, shown);
    if (!with_work) {
        hf_close(db);
        return status;
    }
    work(db, files);
    unsigned faults_before = fuzz_store_show(db, &before);
    hf_close(db);
    FUZZ_WANT(fuzz_store_open(files, &db) == HF_OK);
    unsigned faults_after = fuzz_store_show(db, &after);
    hf_close(db);
    /* What cannot be read is forgotten when its time is over, and is there again after a start. */
    if (faults_before == 0 && faults_after == 0)
        FUZZ_WANT(hf_bytes_equal(fuzz_held(&before), fuzz_held(&after)));
    hf_buffer_free(&before);
    hf_buffer_free(&after);
    return status;
}

/* ---- The store to begin with ---- */

static struct fuzz_files made;
static struct hf_buffer truth;
static struct hf_store_keys keys;

static void make(void)
{
    struct hf_db *db;
    struct hf_segment_head head;
    fuzz_files_init(&made);
    FUZZ_WANT(fuzz_store_open(&made, &db) == HF_OK);
    for (int story = 0; story < FUZZ_STORY_APPLY; story++)
        fuzz_tell(db, (enum fuzz_story)story, 0);
    fuzz_tell_segment(db, 0);
    fuzz_tell_segment(db, 0);
    FUZZ_WANT(hf_segment_head_decode(fuzz_files_get(&made, "journal-00000001.log").data, &head) ==
              HF_HEAD_GOOD);
    keys = head.keys;
    made.wall += INT64_C(7200000);
    settle(db);
    fuzz_tell_segment(db, 1);
    for (int story = 0; story < FUZZ_STORY_APPLY; story++)
        fuzz_tell(db, (enum fuzz_story)story, 1);
    FUZZ_WANT(fuzz_store_show(db, &truth) == 0);
    hf_close(db);
    FUZZ_WANT(fuzz_files_find(&made, ".zst") && fuzz_files_find(&made, ".snap"));
    FUZZ_WANT(fuzz_files_find(&made, ".idx") && fuzz_files_find(&made, "closed"));
}

const struct fuzz_files *fuzz_store(void)
{
    if (!made.first)
        make();
    return &made;
}

struct hf_bytes fuzz_store_truth(void)
{
    (void)fuzz_store();
    return fuzz_held(&truth);
}

const struct hf_store_keys *fuzz_store_keys(void)
{
    (void)fuzz_store();
    return &keys;
}

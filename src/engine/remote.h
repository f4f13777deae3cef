/* remote.h: the same library over PostgreSQL.
 *
 *   submit ──▶ queue ──▶ a worker takes what waits ──▶ one transaction ──▶ done, on the worker's thread
 *
 * Each worker has a session (store/postgres/session.h). Two work at a time as a rule: while one waits for its commit, the
 * other takes what came meanwhile; the others come in only when a batch takes long, so that a row which somebody keeps locked
 * stops nobody but those who want it. Operations with the same lane are never in two batches at once. Tenants take turns
 * (remote_queue.c).
 *
 * When the database is away, operations wait for it for some seconds and are then answered HF_STORAGE_FAILURE; where COMMIT
 * had been sent, the answer is only given when the session has found out what became of it, or is HF_INDETERMINATE. */
#ifndef HF_ENGINE_REMOTE_H
#define HF_ENGINE_REMOTE_H

#include "engine/engine.h"

#ifdef HF_NO_POSTGRES /* the library with the journal alone (CMake: -DHF_POSTGRES=OFF) */

static inline enum hf_status hf_remote_open(struct hf_db *db, const struct hf_options *options,
                                            struct hf_remote **out, struct hf_error *why)
{
    static const char sentence[] = "this library was built without PostgreSQL: only a journal can be opened";
    (void)db;
    (void)options;
    *out = NULL;
    why->status = HF_MISUSE;
    memcpy(why->text, sentence, sizeof sentence);
    return HF_MISUSE;
}
/* There is never a remote to do these with. */
#define hf_remote_close(remote) (void)(remote)
#define hf_remote_do(remote, request, result) HF_MISUSE
#define hf_remote_do_many(remote, requests, results, count) HF_MISUSE
#define hf_remote_submit(remote, first) (void)(first)
#define hf_remote_flush(remote) (void)(remote)
#define hf_remote_barrier(remote, timeline) ((void)(timeline), HF_MISUSE)
#define hf_remote_timeline(remote) 0
#define hf_remote_maintain(remote) false
#define hf_remote_list(remote, query, page) HF_MISUSE
#define hf_remote_stats(remote, out) (void)(out)

#else

/* db, options: borrowed for its life. As hf_open. */
enum hf_status hf_remote_open(struct hf_db *db, const struct hf_options *options, struct hf_remote **out,
                              struct hf_error *why);
void hf_remote_close(struct hf_remote *remote);

enum hf_status hf_remote_do(struct hf_remote *remote, const struct hf_request *request,
                            struct hf_result *result);
enum hf_status hf_remote_do_many(struct hf_remote *remote, const struct hf_request *requests,
                                 struct hf_result *results, size_t count);
void hf_remote_submit(struct hf_remote *remote, struct hf_op *first);
/* Wait until everything that was submitted before is answered. */
void hf_remote_flush(struct hf_remote *remote);
/* The same, and until the synchronous standbys have what can be seen in the database. As hf_barrier_on. */
enum hf_status hf_remote_barrier(struct hf_remote *remote, uint32_t timeline);
uint32_t hf_remote_timeline(struct hf_remote *remote);
bool hf_remote_maintain(struct hf_remote *remote);
enum hf_status hf_remote_list(struct hf_remote *remote, const struct hf_query *query, struct hf_page *page);
void hf_remote_stats(struct hf_remote *remote, struct hf_stats *out);

#endif
#endif

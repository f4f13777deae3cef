/* story.h: a store in a real database with a bit of everything in it, and an audit of it.
 *
 *     story_database(&p, &k);      the schema is gone; a new store is open
 *     story_do_all(k);
 *     story_audit(&p, &report);    judged by what stands in the database */
#ifndef HF_TESTS_POSTGRES_KIT_STORY_H
#define HF_TESTS_POSTGRES_KIT_STORY_H

#include "audit/audit.h"
#include "engine/kit/engine.h"
#include "postgres/kit/postgres.h"

/* The database without a store, and `k` open on a new one in it. */
void story_database(const struct postgres *p, struct kit *k);

/* Every kind of record, every type of register and most of the refusals, in whatever store `k` has
 * open. The names and keys are the same each time; ids, fences and times are the store's. */
void story_do_all(struct kit *k);

/* One operation, as a line of a batch has it, which must be answered so. */
void story_do(struct kit *k, enum hf_status wanted, const char *line);

/* The audit of the store in the database, with everything that it found wrong on stdout. It must be
 * able to read it. report: out, owned, hf_audit_report_free. */
void story_audit(const struct postgres *p, struct hf_audit_report *report);

/* Does the check that is called so name a record with these words? */
bool story_found(const struct hf_audit_report *report, const char *check, const char *words);

#endif

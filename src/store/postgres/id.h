/* id.h: the ids of holds in PostgreSQL.
 *
 * As in base/id.h, an id is the masked ordinal and a tag. But the secret hash is SHA-256, because
 * the database has it too: its functions make and read the same ids (holdfast.hold_id,
 * holdfast.hold_ordinal):
 *
 *   tag  = first 8 bytes of SHA-256(key, "tag", ordinal)
 *   mask = first 8 bytes of SHA-256(key, "mask", tag)
 *   id   = (ordinal XOR mask), tag                         numbers with the lowest byte first */
#ifndef HF_STORE_POSTGRES_ID_H
#define HF_STORE_POSTGRES_ID_H

#include "holdfast.h"

#define HF_PG_ID_KEY 32

void hf_pg_id_make(const uint8_t key[HF_PG_ID_KEY], uint64_t ordinal, char text[HF_ID_SIZE]);

/* The ordinal inside `text`. False if it is not an id made with this key. Upper case is
 * accepted. */
bool hf_pg_id_read(const uint8_t key[HF_PG_ID_KEY], struct hf_bytes text, uint64_t *ordinal);

/* Does the hold's id belong to its ordinal? */
bool hf_pg_id_fits(const uint8_t key[HF_PG_ID_KEY], const struct hf_hold *hold);

#endif

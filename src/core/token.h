/* token.h: one key, one action, one effect.
 *
 *   key not seen ──▶ decide the action, remember its answer, in one commit with its rows
 *   key seen, same action and digest ──▶ the first answer again, nothing else
 *   key seen, other action or digest ──▶ HF_TOKEN_COLLISION, nothing else
 *
 * Invariants IR1 to IR8 in doc/ARCHITECTURE.md. */
#ifndef HF_CORE_TOKEN_H
#define HF_CORE_TOKEN_H

#include "core/core.h"

/* hf_token_admit: is this the first call with the command's key (or client number)? True: the plan
 * has remember and token set (and the client's row, for a number), and the caller decides the
 * action. False: the plan's answer is complete: HF_INVALID_REQUEST (malformed, not remembered), the
 * first answer (replayed), HF_TOKEN_COLLISION, HF_WINDOW_ELAPSED (a client's number below its
 * window), or HF_STORAGE_FAILURE (unreadable, or the store refuses writes). A live claim with the
 * same key is a collision too: keys and claims share one name space in a tenant. */
bool hf_token_admit(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);

#endif

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
 * action. False: the plan's answer is complete: HF_INVALID_REQUEST (malformed, or a client's number
 * more than HF_SEQUENCE_AHEAD_MAX above its highest; not remembered), the first answer (replayed),
 * HF_TOKEN_COLLISION, HF_WINDOW_ELAPSED (a client's number below its window), or HF_STORAGE_FAILURE
 * (unreadable, or the store refuses writes). A live claim with the same key is a collision too:
 * keys and claims share one name space in a tenant. */
bool hf_token_admit(const struct hf_view *view, const struct hf_command *cmd, hf_time now,
                    struct hf_plan *plan);

/* hf_token_valid: has the request exactly one of the two kinds of key, and a well-formed one? */
bool hf_token_valid(const struct hf_command *cmd);

/* hf_token_number: the first call with the request's client and number. first: out, if HF_FOUND.
 * old: out, the number is below the window, and what was remembered of it is gone. HF_ABSENT: it is
 * old, or was not used. */
enum hf_found hf_token_number(const struct hf_view *view, const struct hf_request *r,
                              struct hf_remembered *first, bool *old);

#endif

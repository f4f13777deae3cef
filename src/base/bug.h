/* bug.h: bugs on purpose, to see that the proof would find them.
 *
 * A build with -DHF_BUGS=ON has one switch for each line below; the variable HF_BUG turns one on.
 * Any other build has none of it: HF_BUG(name) is the constant 0 there. The list names each bug,
 * the part that it is in, and what goes wrong. doc/TESTING.md has the table of how each was
 * caught. */
#ifndef HF_BASE_BUG_H
#define HF_BASE_BUG_H

/* clang-format off */
#define HF_BUG_LIST(X) \
    X(token_action_ignored,    core,   "a key used for another action with the same parameters is not a collision") \
    X(token_digest_ignored,    core,   "a key used with other parameters is not a collision") \
    X(token_window_extended,   core,   "a retry starts the key's window anew") \
    X(token_window_closed,     core,   "a key is still seen at the very end of its window") \
    X(failure_not_cached,      core,   "a refusal is not remembered") \
    X(sequence_forgets_newest, core,   "the newest number of a client is not known again") \
    X(sequence_too_old_runs,   core,   "a number behind the remembered ones is carried out") \
    X(capacity_off_by_one,     core,   "a resource takes one hold more than it has units") \
    X(confirm_at_the_end,      core,   "a hold can be confirmed at the very moment it ends") \
    X(expire_early,            core,   "a hold can be expired before its time") \
    X(overdue_blocks,          core,   "placing does not expire what is overdue on the resource") \
    X(reverse_twice,           core,   "a confirmed hold can be given back again and again") \
    X(release_keeps_unit,      core,   "releasing does not give the unit back") \
    X(strict_ignored,          core,   "a strict registry takes unknown resources") \
    X(hold_fence_forgotten,    core,   "a hold's fence is compared and not kept") \
    X(guard_retry_extends,     core,   "an identity seen again starts its window anew") \
    X(guard_window_closed,     core,   "an identity is still seen at the very end of its window") \
    X(guard_check_records,     core,   "a check records") \
    X(guard_result_replaced,   core,   "recording again replaces the stored result") \
    X(claim_late_finisher,     core,   "a claim is settled under an older fence") \
    X(claim_unknown_reruns,    core,   "an abandoned claim whose outcome is unknown is begun again") \
    X(claim_failed_reruns,     core,   "a claim that failed for good is begun again") \
    X(claim_other_payload,     core,   "a claim's fingerprint is not compared") \
    X(claim_forgotten,         core,   "a claim that is not settled is forgotten when its lease ends") \
    X(lease_held_twice,        core,   "a lease that is held is granted again") \
    X(fence_equal,             core,   "a write with the fence that was seen last is applied") \
    X(version_ignored,         core,   "if_version is not compared") \
    X(ending_refused_at_limit, core,   "at a limit of memory a hold that is held can be neither released nor confirmed") \
    X(register_delete_forgets_fence, core, "a register that is made again after its deletion takes every fence") \
    X(merge_max_overwrites,    core,   "max and min take the newer number") \
    X(merge_counter_adds,      core,   "counters are added, so that a retry counts twice") \
    X(merge_lww_ties,          core,   "equal timestamps are settled by who came first") \
    X(sync_skipped,            journal, "a batch is written and not synced") \
    X(header_not_first,        journal, "a segment's header is not synced before its first batch is written") \
    X(clock_runs_back,         journal, "engine time follows a wall clock that steps back") \
    X(jump_believed,           journal, "a wall clock that jumps ahead is believed at once") \
    X(fence_not_rising,        journal, "a fence is given out twice") \
    X(tenant_ignored,          journal, "a key is compared without its tenant") \
    X(key_prefix_compared,     journal, "a key is compared by its first eight bytes") \
    X(entry_of_another_key,    journal, "a block in the place of another makes the key there a new one") \
    X(recovery_drops_last,     journal, "recovery leaves out the newest batch") \
    X(recovery_clock_lost,     journal, "recovery forgets engine time") \
    X(unread_counts_as_none,   journal, "a note of the last close that cannot be read counts as none") \
    X(snapshot_leaves_out,     journal, "a snapshot leaves some keys out") \
    X(snapshot_has_newer,      journal, "a snapshot has rows that were made while it was written, and the others come behind them") \
    X(snapshot_not_synced,     journal, "a snapshot gets its name before it is synced") \
    X(segment_not_named,       journal, "a new segment is used before its name is durable") \
    X(index_unchecked,         journal, "holds.idx is believed without being checked") \
    X(index_rebuilt_short,     journal, "a part of holds.idx is rebuilt without the journal's end") \
    X(tokens_freed_early,      journal, "a key is freed before its window has ended") \
    X(entry_freed_early,       journal, "a guard's entry is freed before its window has ended") \
    X(seal_not_checked,        journal, "a batch's tag is not compared, so that a payload can pass for a batch") \
    X(header_proves_nothing,   journal, "a batch that rotted is dropped as the end though the sealed header of the next one is there") \
    X(answer_before_sync,      engine, "answers go out when the batch is sealed, before it is written") \
    X(replay_not_waiting,      engine, "a replay does not wait until what it repeats is durable") \
    X(read_not_waiting,        engine, "a read does not wait until what it saw is durable") \
    X(apply_keeps_refused,     engine, "what an apply function did is kept though it refused") \
    X(apply_runs_twice,        engine, "an apply function runs twice") \
    X(outbox_number_reused,    engine, "two rows of the outbox get the same number") \
    X(list_hides_newest,       engine, "a list of holds leaves out the newest") \
    X(unreplicated_told,       postgres, "an answer does not wait until a standby has what it saw") \
    X(absence_told,            postgres, "that a row is not there is told before a standby has heard of its deletion") \
    X(reload_ignored,          postgres, "a commit during which the standbys were given up counts as replicated") \
    X(entry_of_another,        postgres, "a key whose row leads to the entry of another call is answered with it") \
    X(left_freed_at_once,      postgres, "what a deleted lease has left goes before the batches under way have ended") \
    X(guards_crowded,          postgres, "the guards of one tenant leave no room for those of others while the database is away") \
    X(questions_behind_commits, postgres, "while commits wait for a standby, no worker is left for questions") \
    X(tenants_in_one_line,     postgres, "what a tenant asks for waits behind all that others have asked for before") \
    X(old_primary_kept,        postgres, "a session goes on with its primary though a standby was promoted and another session knows") \
    X(commit_undone,           postgres, "an error of a statement behind COMMIT makes the batch count as not done") \
    X(left_unreplicated,       postgres, "rows whose window has closed leave before a standby has what closed it") \
    X(server_batch_swapped,    server, "the first two answers of a batch change places") \
    X(server_pipeline_swapped, server, "two answers to pipelined requests change places") \
    X(server_key_shortened,    server, "the last byte of a long Idempotency-Key is lost") \
    X(server_tenant_ignored,   server, "everybody is the default tenant") \
    X(server_audit_of_all,     server, "a tenant's audit counts the records of all tenants") \
    X(server_one_line,         server, "lists and audits of all tenants wait in one line") \
    X(server_share_configured, server, "a tenant's share of connections is of those configured, not of those possible") \
    X(server_exports_unbounded, server, "a tenant may have any number of exports that nobody reads") \
    X(server_sheds_any, server, "unread answers of one tenant get another tenant's connections closed") \
    X(server_endings_wait, server, "a tenant that is over its rate cannot end what it has begun") \
    X(server_duration_cut,     server, "a duration loses its milliseconds") \
    X(server_replay_unmarked,  server, "a replay does not say that it is one") \
    X(server_refusal_ok,       server, "a remembered refusal is repeated as a success")
/* clang-format on */

#ifdef HF_BUGS

#include <stdbool.h>

enum hf_bug {
    HF_BUG_none,
#define HF_BUG_NAME(name, part, words) HF_BUG_##name,
    HF_BUG_LIST(HF_BUG_NAME)
#undef HF_BUG_NAME
};

extern enum hf_bug hf_bug_planted;

/* Turn the named bug on, and all others off. False if there is none of this name. */
bool hf_bug_plant(const char *name);

#define HF_BUG(name) (hf_bug_planted == HF_BUG_##name)
#else
#define HF_BUG(name) 0
#endif

#endif

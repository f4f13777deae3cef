/* Answers, for people and for programs. A call with a key prints only what is in the record on
 * stdout, so that a replay prints the same. */
#include "api/decode.h"
#include "api/encode.h"
#include "base/text.h"
#include "cli/cli.h"
#include "json/stored.h"

#include <stdio.h>

static enum hf_cli_color state_color(enum hf_hold_state state)
{
    return state == HF_HELD ? HF_YELLOW : state == HF_CONFIRMED ? HF_GREEN : HF_DIM;
}

static const char *state_label(enum hf_hold_state state)
{
    const char *name = hf_api_hold_state(state);
    return state != HF_HELD && name ? name : NULL;
}

/* Was the confirmed hold reversed? The text is about now, not about the first answer, so only
 * `show` prints it. */
static const char *reversal_text(struct hf_cli *cli, const struct hf_hold *hold, char *out,
                                 size_t room)
{
    struct hf_hold reversal;
    char at[HF_TIME_TEXT];
    if (hold->state != HF_CONFIRMED)
        return NULL;
    switch (hf_cli_reversal(cli, hold, &reversal)) {
    case HF_CLI_NONE: return NULL;
    case HF_CLI_FOUND:
        hf_time_format(reversal.placed_at, at);
        snprintf(out, room, "%s  by %s", at, reversal.id);
        break;
    case HF_CLI_TOO_FAR:
        snprintf(out, room, "perhaps, long ago: use holdfast trace %s", hold->id);
        break;
    }
    return out;
}

static void print_hold(struct hf_cli *cli, const struct hf_hold *hold, bool now, bool overdue)
{
    char reversed[96];
    const char *back = now ? reversal_text(cli, hold, reversed, sizeof reversed) : NULL;
    char placed[HF_TIME_TEXT], ended[HF_TIME_TEXT], expires[HF_TIME_TEXT], length[24];
    char until[HF_TIME_TEXT + 32], state[32];
    const char *name = hf_api_hold_state(hold->state);
    hf_time_format(hold->placed_at, placed);
    hf_time_format(hold->expires_at, expires);
    hf_time_format(hold->ended_at, ended);
    hf_duration_format(hold->expires_at - hold->placed_at, length);
    snprintf(until, sizeof until, "%s  (%s)", expires, length);
    snprintf(state, sizeof state, "%s%s", name ? name : "unknown", overdue ? " (overdue)" : "");
    const struct hf_cli_field fields[] = {
        { "id", hf_str(hold->id), HF_BOLD },
        { "state", hf_str(state), state_color(hold->state) },
        { "resource", hold->resource, HF_PLAIN },
        { "requester", hold->requester, HF_PLAIN },
        { "placed", hf_str(placed), HF_PLAIN },
        { "expires", hf_str(until), HF_PLAIN },
        { state_label(hold->state), hf_str(ended), HF_PLAIN },
        { back ? "reversed" : NULL, hf_str(back), HF_YELLOW },
        { hold->reverses[0] ? "reverses" : NULL, hf_str(hold->reverses), HF_PLAIN },
        { hold->reacquires[0] ? "reacquires" : NULL, hf_str(hold->reacquires), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

/* Overdue units count as held until they are expired, and the next hold expires them. Print both
 * facts. */
static void print_resource(struct hf_cli *cli, const struct hf_resource *resource, hf_time now)
{
    char units[128], available[96], fence[24], late[48] = "", soon[72] = "";
    bool exact;
    uint32_t overdue = hf_cli_overdue(cli, resource, now, &exact);
    if (overdue > 0)
        snprintf(late, sizeof late, " of which %s%u overdue", exact ? "" : "at least ", overdue);
    if (overdue > 0 && resource->open)
        snprintf(soon, sizeof soon, "  (and the overdue ones, which a new hold expires first)");
    snprintf(units, sizeof units, "%u  (%u held%s, %u confirmed)", resource->capacity,
             resource->held, late, resource->confirmed);
    snprintf(available, sizeof available, "%u%s", hf_api_available(resource), soon);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)resource->fence);
    const struct hf_cli_field fields[] = {
        { "resource", resource->name, HF_BOLD },
        { "state", hf_str(resource->open ? "open" : "closed"),
          resource->open ? HF_GREEN : HF_YELLOW },
        { "capacity", hf_str(units), HF_PLAIN },
        { "available", hf_str(available), HF_PLAIN },
        { "fence", hf_str(fence), HF_PLAIN },
        { resource->require_fence ? "holds without a fence" : NULL, hf_str("refused"), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

static void print_guard(const struct hf_cli *cli, const struct hf_guard *guard)
{
    char window[24], created[HF_TIME_TEXT], match[64] = "";
    hf_duration_format(guard->window_ms, window);
    hf_time_format(guard->created_at, created);
    for (uint32_t i = 0, at = 0; i < guard->match_count && i < HF_MATCH_MAX && at < sizeof match;
         i++) {
        const char *name = hf_match_name(guard->match[i]);
        at += (uint32_t)snprintf(match + at, sizeof match - at, "%s%s", i ? "," : "",
                                 name ? name : "?");
    }
    const char *how = hf_api_unavailable(guard->on_unavailable);
    const struct hf_cli_field fields[] = {
        { "guard", guard->name, HF_BOLD },
        { "window", hf_str(window), HF_PLAIN },
        { "match", hf_str(match[0] ? match : "exact"), HF_PLAIN },
        { "on unavailable", hf_str(how ? how : "?"), HF_PLAIN },
        { "durable",
          hf_str(guard->durable ? "yes" : "no  (only in memory, while the store is open)"),
          HF_PLAIN },
        { "created", hf_str(created), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

/* A result that came over HTTP may be any JSON. Show it as it was written. */
static struct hf_bytes result_text(struct hf_bytes stored)
{
    return hf_stored_text(stored);
}

static const char *claim_state_label(const struct hf_claim *claim)
{
    return claim->settled_at ? claim->state == HF_CLAIM_COMPLETED ? "completed" : "failed" : NULL;
}

static void print_claim(const struct hf_cli *cli, const struct hf_claim *claim)
{
    char fence[24], begun[HF_TIME_TEXT], lease[HF_TIME_TEXT], settled[HF_TIME_TEXT],
        until[HF_TIME_TEXT], state[32];
    bool unknown = claim->state == HF_CLAIM_UNKNOWN,
         failed = claim->state == HF_CLAIM_FAILED || claim->state == HF_CLAIM_RETRYABLE;
    const char *name = hf_api_claim_status(claim->state);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)claim->fence);
    snprintf(state, sizeof state, "%s%s", name ? name : "?",
             claim->state == HF_CLAIM_RETRYABLE ? " (retryable)" : "");
    hf_time_format(claim->begun_at, begun);
    hf_time_format(claim->lease_expires_at, lease);
    hf_time_format(claim->settled_at, settled);
    hf_time_format(claim->expires_at, until);
    const struct hf_cli_field fields[] = {
        { "key", claim->key, HF_BOLD },
        { "status", hf_str(state),
          unknown                              ? HF_RED
          : claim->state == HF_CLAIM_COMPLETED ? HF_GREEN
                                               : HF_YELLOW },
        { "fence", hf_str(fence), HF_PLAIN },
        { "begun", hf_str(begun), HF_PLAIN },
        { unknown             ? "unknown since"
          : claim->settled_at ? NULL
                              : "lease ends",
          hf_str(lease), HF_PLAIN },
        { unknown || !claim->settled_at ? "after that" : NULL,
          hf_str(claim->on_abandon == HF_ABANDON_RETRY
                     ? "the next begin takes over (on_abandon: retry)"
                     : "unknown until it is settled (on_abandon: unknown)"),
          HF_PLAIN },
        { claim_state_label(claim), hf_str(settled), HF_PLAIN },
        { claim->expires_at ? "remembered until" : NULL, hf_str(until), HF_PLAIN },
        { claim->response.size > 0 ? failed ? "error" : "response" : NULL,
          result_text(claim->response), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

/* ended: the answer is about now, and the lease ran out. */
static void print_lease(const struct hf_cli *cli, const struct hf_lease *lease, bool ended)
{
    char fence[24], granted[HF_TIME_TEXT], expires[HF_TIME_TEXT], released[HF_TIME_TEXT],
        length[24], until[HF_TIME_TEXT + 48];
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)lease->fence);
    hf_time_format(lease->granted_at, granted);
    hf_time_format(lease->expires_at, expires);
    hf_time_format(lease->released_at, released);
    hf_duration_format(lease->ttl_ms, length);
    snprintf(until, sizeof until, "%s  (%s%s)", expires, length, ended ? "; it has run out" : "");
    const struct hf_cli_field fields[] = {
        { "lease", lease->name, HF_BOLD },
        { "holder", lease->holder, HF_PLAIN },
        { "fence", hf_str(fence), HF_PLAIN },
        { "granted", hf_str(granted), HF_PLAIN },
        { "expires", hf_str(until), ended ? HF_YELLOW : HF_PLAIN },
        { lease->released_at ? "released" : NULL, hf_str(released), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

static void print_register(const struct hf_cli *cli, const struct hf_register *reg)
{
    char total[24], version[24], fence[24];
    const struct hf_value *value = &reg->value;
    const char *type = hf_register_type_name(value->type);
    bool sums = value->type == HF_TYPE_COUNTER || value->type == HF_TYPE_UPDOWN;
    struct hf_buffer json = { 0 };
    struct hf_json j = { .out = &json };
    hf_api_value(&j, value);
    snprintf(total, sizeof total, "%lld", (long long)value->number);
    snprintf(version, sizeof version, "%llu", (unsigned long long)reg->version);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)reg->fence);
    const struct hf_cli_field fields[] = {
        { "register", reg->name, HF_BOLD },
        { "type", hf_str(type ? type : "unknown"), HF_PLAIN },
        { value->type == HF_TYPE_DELETED ? NULL : "value",
          value->type == HF_TYPE_PLAIN ? result_text(value->bytes) : hf_mem(json.data, json.size),
          HF_PLAIN },
        { sums ? "total" : NULL, hf_str(total), HF_PLAIN },
        { "version", hf_str(version), HF_PLAIN },
        { "fence", hf_str(fence), HF_PLAIN },
        { reg->require_fence ? "writes without a fence" : NULL, hf_str("refused"), HF_PLAIN },
    };
    if (json.failed)
        hf_cli_flush_to_stdout(&json); /* ends the program */
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
    hf_buffer_free(&json);
}

/* The first line is one word, for scripts that do not want JSON. */
static void print_seen(const struct hf_cli *cli, enum hf_action action, const struct hf_seen *seen)
{
    char recorded[HF_TIME_TEXT], until[HF_TIME_TEXT];
    bool known = seen->expires_at != 0;
    if (action == HF_RECORD) { /* a duplicate prints the same */
        hf_cli_line(cli, HF_GREEN, "ok");
        return;
    }
    hf_time_format(seen->recorded_at, recorded);
    hf_time_format(seen->expires_at, until);
    hf_cli_line(cli, seen->seen ? HF_YELLOW : HF_GREEN, seen->seen ? "seen" : "not-seen");
    const struct hf_cli_field fields[] = {
        { known ? "recorded" : NULL, hf_str(recorded), HF_PLAIN },
        { known ? "until" : NULL, hf_str(until), HF_PLAIN },
        { seen->has_result ? "result" : NULL, result_text(seen->result), HF_PLAIN },
    };
    hf_cli_fields(cli, fields, sizeof fields / sizeof *fields);
}

void hf_cli_print(struct hf_cli *cli, enum hf_action action, const struct hf_result *result)
{
    const struct hf_answer *answer = &result->answer;
    if (cli->json) {
        struct hf_buffer out = { 0 };
        struct hf_json j = { .out = &out };
        hf_api_answer(&j, action, answer);
        hf_buffer_add_char(&out, '\n');
        hf_cli_flush_to_stdout(&out);
        hf_buffer_free(&out);
        return;
    }
    bool shown = action == HF_GET_HOLD;
    switch (answer->kind) {
    case HF_RECORD_HOLD:
        print_hold(cli, &answer->hold, shown,
                   shown && answer->hold.state == HF_HELD &&
                       result->now >= answer->hold.expires_at);
        break;
    case HF_RECORD_RESOURCE: print_resource(cli, &answer->resource, result->now); break;
    case HF_RECORD_GUARD: print_guard(cli, &answer->guard); break;
    case HF_RECORD_SEEN: print_seen(cli, action, &answer->seen); break;
    case HF_RECORD_CLAIM: print_claim(cli, &answer->claim); break;
    case HF_RECORD_LEASE:
        print_lease(cli, &answer->lease,
                    action == HF_GET_LEASE && answer->lease.released_at == 0 &&
                        result->now >= answer->lease.expires_at);
        break;
    case HF_RECORD_REGISTER: print_register(cli, &answer->reg); break;
    default: hf_cli_line(cli, HF_GREEN, "ok");
    }
}

/* The same calls, chosen at random, through the library with a store in memory and through the SQL
 * functions: every answer must be the same, but for the moments in it. What differs by nature (ids,
 * fences that the store gives out) is kept in pairs. */
#include "base/text.h"
#include "postgres/kit/functions.h"
#include "server/kit/server.h"
#include "support/test.h"

enum { NAMES = 4, CLAIMS = 6, CLIENTS = 3, HOLDS_MAX = 8192, ARGUMENT = 64 };

/* One call in both languages. */
struct step {
    struct hf_request r;
    const char *function;
    const char *arguments[FUNCTIONS_ARGUMENTS_MAX];
    size_t count;
    char room[FUNCTIONS_ARGUMENTS_MAX][ARGUMENT];
    char client[ARGUMENT]; /* "": it has a key, or needs none */
    char key[ARGUMENT], name[ARGUMENT], other[ARGUMENT], id[ARGUMENT], bytes[ARGUMENT];
    int owner; /* the number of the claim or lease whose fence the answer shows */
};

/* What the two stores call the same thing. */
struct fences {
    uint64_t ours, theirs;
};

struct pair {
    struct hf_db *db;
    PGconn *c;
    uint64_t random;
    size_t keys;               /* given so far */
    uint64_t numbers[CLIENTS]; /* given so far */
    struct fences claims[CLAIMS], leases[NAMES];
    size_t holds;
    char ours[HOLDS_MAX][HF_ID_SIZE], theirs[HOLDS_MAX][HF_ID_SIZE];
};

static struct postgres p;

static int set_up(void **state)
{
    (void)state;
    postgres_init(&p);
    postgres_start(&p);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    postgres_end(&p);
    return 0;
}

/* ---- Choosing ---- */

static uint64_t below(struct pair *w, uint64_t n)
{
    return test_below(&w->random, n);
}

static void argue(struct step *s, const char *text)
{
    snprintf(s->room[s->count], ARGUMENT, "%s", text);
    s->arguments[s->count] = s->room[s->count];
    s->count++;
}

static void argue_number(struct step *s, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    argue(s, text);
}

static void argue_ms(struct step *s, int64_t ms)
{
    char text[40];
    snprintf(text, sizeof text, "%lld milliseconds", (long long)ms);
    argue(s, text);
}

static void give_key(struct pair *w, struct step *s)
{
    if (below(w, 100) == 0)
        s->key[0] = '\0';
    s->r.key = hf_str(s->key);
    argue(s, s->key);
}

/* Mostly a new one; now and then one that has been used, or one of a claim. */
static void choose_key(struct pair *w, struct step *s)
{
    size_t back = below(w, 8) == 0 ? (size_t)below(w, 20) : 0;
    if (below(w, 30) == 0)
        snprintf(s->key, sizeof s->key, "c%d", (int)below(w, CLAIMS));
    else
        snprintf(s->key, sizeof s->key, "k%zu", w->keys > back ? w->keys - back : 0);
    w->keys++;
    give_key(w, s);
}

static void choose_claim(struct pair *w, struct step *s)
{
    s->owner = (int)below(w, CLAIMS);
    snprintf(s->key, sizeof s->key, "c%d", s->owner);
    give_key(w, s);
}

static struct hf_bytes choose_name(struct pair *w, char room[ARGUMENT], const char *what)
{
    snprintf(room, ARGUMENT, "%s-%d", what, (int)below(w, NAMES));
    if (below(w, 50) == 0)
        room[0] = '\0';
    return hf_str(room);
}

/* Long enough to last, or over before the next step, or not valid. */
static int64_t choose_ms(struct pair *w)
{
    static const int64_t some[] = {
        3600000, 3600000, 3600000, 7200000, 7200000, 1, 1, 1, 1, 1, 0, HF_DURATION_MAX_MS
    };
    if (below(w, 40) == 0)
        return below(w, 2) ? -5 : HF_DURATION_MAX_MS + 1;
    return some[below(w, sizeof some / sizeof *some)];
}

static uint64_t choose_fence(struct pair *w)
{
    if (below(w, 200) == 0)
        return UINT64_MAX;
    return below(w, 3) == 0 ? 1 + below(w, 1000) : 0;
}

/* The fence that both have given out, or one beside it. */
static struct fences choose_given(struct pair *w, struct fences given)
{
    uint64_t step = below(w, 8);
    if (given.ours == 0 || step > 2)
        return given;
    given.ours += step - 1;
    given.theirs += step - 1;
    return given;
}

static const char *const functions[] = {
    [HF_CONFIRM] = "confirm",     [HF_RELEASE] = "release",           [HF_EXPIRE] = "expire",
    [HF_REVERSE] = "reverse",     [HF_CHECK] = "check_seen",          [HF_RECORD] = "record",
    [HF_ADMIT] = "admit",         [HF_COMPLETE] = "complete",         [HF_FAIL] = "fail",
    [HF_HEARTBEAT] = "heartbeat", [HF_GET_RESOURCE] = "get_resource", [HF_GET_GUARD] = "get_guard",
    [HF_GET_LEASE] = "get_lease", [HF_GET_REGISTER] = "get_register", [HF_CONFIRM_LATE] = "confirm",
};

/* Mostly the next number; now and then one after a gap, an older one, one that is too far ahead, or
 * 0. */
static uint64_t choose_number(struct pair *w, uint64_t *newest)
{
    switch (below(w, 24)) {
    case 0: return 1 + below(w, *newest + 1);
    case 1: return *newest > 250 ? *newest - 250 + below(w, 250) : 1;
    case 2: return *newest + HF_SEQUENCE_AHEAD_MAX + below(w, 3);
    case 3: return 0;
    case 4: *newest += below(w, 300); /* fall through */
    default: return ++*newest;
    }
}

/* Let a client number the call, in place of its key. */
static void give_number(struct pair *w, struct step *s)
{
    static const struct {
        const char *function;
        size_t tenant, client; /* the indexes of these arguments */
    } all[] = { { "place_hold", 5, 6 }, { "confirm", 2, 4 }, { "release", 2, 3 },
                { "expire", 2, 3 },     { "reverse", 2, 3 }, { "grant_lease", 4, 5 },
                { "write", 5, 6 } };
    size_t f = 0, n = (size_t)below(w, CLIENTS);
    while (f < sizeof all / sizeof *all && strcmp(all[f].function, s->function) != 0)
        f++;
    if (f == sizeof all / sizeof *all)
        return;
    snprintf(s->client, sizeof s->client, "till %d", (int)n);
    s->r.key = hf_mem(NULL, 0);
    s->r.client = hf_str(s->client);
    s->r.sequence = choose_number(w, &w->numbers[n]);
    s->arguments[0] = NULL;
    while (s->count < all[f].client) {
        s->arguments[s->count] = s->count == all[f].tenant ? "" : NULL;
        s->count++;
    }
    argue(s, s->client);
    argue_number(s, s->r.sequence);
}

static void choose_place(struct pair *w, struct step *s)
{
    choose_key(w, s);
    s->function = "place_hold";
    s->r.place_hold.resource = choose_name(w, s->name, "resource");
    s->r.place_hold.requester = choose_name(w, s->other, "requester");
    s->r.place_hold.duration_ms = choose_ms(w);
    s->r.place_hold.fence = choose_fence(w);
    argue(s, s->name);
    argue(s, s->other);
    argue_ms(s, s->r.place_hold.duration_ms);
    argue_number(s, s->r.place_hold.fence);
    if (below(w, 16) == 0) {
        static const struct hf_flaw missing = { "requester", { NULL, 0 } };
        static const struct hf_invalid invalid = { &missing, 1, { NULL, 0 } };
        s->r.invalid = &invalid;
        s->r.place_hold.requester = hf_mem(NULL, 0);
        s->arguments[2] = NULL; /* behind the key and the resource */
    }
}

static void argue_late(struct step *s)
{
    if (s->r.action == HF_CONFIRM_LATE) {
        argue(s, "");
        argue(s, "reacquire");
    }
}

static void choose_hold(struct pair *w, struct step *s)
{
    choose_key(w, s);
    s->function = functions[s->r.action];
    if (w->holds == 0 || below(w, 20) == 0) {
        s->r.hold.id = hf_str("00000000000000000000000000");
        argue(s, "00000000000000000000000000");
        argue_late(s);
        return;
    }
    size_t newest = w->holds < 6 ? w->holds : 6;
    size_t n = w->holds - 1 - (size_t)below(w, below(w, 4) ? newest : w->holds);
    snprintf(s->id, sizeof s->id, "%s", w->ours[n]);
    s->r.hold.id = hf_str(s->id);
    argue(s, w->theirs[n]);
    argue_late(s);
}

static void choose_set_resource(struct pair *w, struct step *s)
{
    static const char *const open[] = { NULL, "true", "false" };
    s->function = "set_resource";
    s->r.set_resource.name = choose_name(w, s->name, "resource");
    s->r.set_resource.capacity = (uint32_t)below(w, 4);
    s->r.set_resource.open = below(w, 3) ? HF_SET_OPEN : (unsigned)below(w, 3);
    argue(s, s->name);
    argue_number(s, s->r.set_resource.capacity);
    s->arguments[s->count++] = open[s->r.set_resource.open];
}

static void choose_set_guard(struct pair *w, struct step *s)
{
    static const struct {
        const char *text;
        uint32_t count;
        enum hf_match steps[HF_MATCH_MAX];
    } rules[] = {
        { "", 0, { 0 } },
        { "exact", 1, { HF_MATCH_EXACT } },
        { "trim,casefold", 2, { HF_MATCH_TRIM, HF_MATCH_CASEFOLD } },
        { "normalize,trim,casefold,hash",
          4,
          { HF_MATCH_NORMALIZE, HF_MATCH_TRIM, HF_MATCH_CASEFOLD, HF_MATCH_HASH } },
        { "hash,trim", 2, { HF_MATCH_HASH, HF_MATCH_TRIM } },
    };
    size_t n = (size_t)below(w, sizeof rules / sizeof *rules);
    s->function = "set_guard";
    s->r.set_guard.name = choose_name(w, s->name, "guard");
    s->r.set_guard.window_ms = choose_ms(w);
    s->r.set_guard.match_count = rules[n].count;
    memcpy(s->r.set_guard.match, rules[n].steps, sizeof rules[n].steps);
    s->r.set_guard.on_unavailable = below(w, 2) ? HF_FAIL_CLOSED : HF_FAIL_OPEN;
    argue(s, s->name);
    argue_ms(s, s->r.set_guard.window_ms);
    argue(s, rules[n].text);
    argue(s, s->r.set_guard.on_unavailable == HF_FAIL_CLOSED ? "closed" : "open");
    s->r.set_guard.force = below(w, 2);
    argue(s, "t");
    argue(s, "");
    argue(s, s->r.set_guard.force ? "t" : "f");
}

static void choose_ask(struct pair *w, struct step *s)
{
    static const char *const identities[] = { "a",   " a", "A\t", "gro\xc3\x9f", "GROSS", "a  b",
                                              "a b", "",   " " };
    s->function = functions[s->r.action];
    s->r.identity.guard = choose_name(w, s->name, "guard");
    s->r.identity.identity = hf_str(identities[below(w, sizeof identities / sizeof *identities)]);
    argue(s, s->name);
    argue(s, s->r.identity.identity.data);
    if (s->r.action != HF_CHECK && below(w, 2)) {
        snprintf(s->bytes, sizeof s->bytes, "result-%d", (int)below(w, 9));
        s->r.identity.has_result = true;
        s->r.identity.result = hf_str(s->bytes);
        argue(s, s->bytes);
    }
}

static void choose_begin(struct pair *w, struct step *s)
{
    choose_claim(w, s);
    s->function = "begin";
    snprintf(s->bytes, sizeof s->bytes, "payload-%d", (int)below(w, 8) / 7);
    s->r.begin.payload = hf_str(s->bytes);
    s->r.begin.lease_ms = choose_ms(w);
    s->r.begin.on_abandon = below(w, 2) ? HF_ABANDON_RETRY : HF_ABANDON_UNKNOWN;
    argue(s, s->bytes);
    argue_ms(s, s->r.begin.lease_ms);
    argue(s, s->r.begin.on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
}

static void choose_settle(struct pair *w, struct step *s)
{
    choose_claim(w, s);
    s->function = functions[s->r.action];
    struct fences fence = choose_given(w, w->claims[s->owner]);
    s->r.settle.fence = fence.ours;
    argue_number(s, fence.theirs);
    if (s->r.action == HF_HEARTBEAT) {
        s->r.settle.lease_ms = choose_ms(w);
        argue_ms(s, s->r.settle.lease_ms);
        return;
    }
    snprintf(s->bytes, sizeof s->bytes, "response-%d", (int)below(w, 3) / 2);
    s->r.settle.response = hf_str(below(w, 6) ? s->bytes : "");
    argue(s, s->r.settle.response.data);
    if (s->r.action == HF_FAIL) {
        s->r.settle.retryable = below(w, 2) == 0;
        argue(s, s->r.settle.retryable ? "true" : "false");
    }
}

static void choose_grant(struct pair *w, struct step *s)
{
    choose_key(w, s);
    s->owner = (int)below(w, NAMES);
    s->function = "grant_lease";
    snprintf(s->name, sizeof s->name, "lease-%d", s->owner);
    s->r.lease.name = hf_str(s->name);
    s->r.lease.holder = choose_name(w, s->other, "holder");
    s->r.lease.ttl_ms = choose_ms(w);
    argue(s, s->name);
    argue(s, s->other);
    argue_ms(s, s->r.lease.ttl_ms);
}

static void choose_lease(struct pair *w, struct step *s)
{
    s->owner = (int)below(w, NAMES);
    s->function = s->r.action == HF_RENEW ? "renew_lease" : "return_lease";
    snprintf(s->name, sizeof s->name, "lease-%d", s->owner);
    struct fences fence = choose_given(w, w->leases[s->owner]);
    s->r.lease.name = hf_str(s->name);
    s->r.lease.fence = fence.ours;
    argue(s, s->name);
    argue_number(s, fence.theirs);
    if (s->r.action == HF_RENEW) {
        s->r.lease.ttl_ms = choose_ms(w);
        argue_ms(s, s->r.lease.ttl_ms);
    }
}

static void choose_write(struct pair *w, struct step *s)
{
    choose_key(w, s);
    s->function = "write";
    s->r.write.name = choose_name(w, s->name, "register");
    snprintf(s->bytes, sizeof s->bytes, "value-%d", (int)below(w, 3));
    s->r.write.value = hf_str(s->bytes);
    s->r.write.fence = choose_fence(w);
    argue(s, s->name);
    argue(s, s->bytes);
    argue_number(s, s->r.write.fence);
    if (below(w, 3) == 0) {
        s->r.write.has_if_version = true;
        s->r.write.if_version = below(w, 6);
        argue_number(s, s->r.write.if_version);
    }
}

static void choose_get(struct pair *w, struct step *s)
{
    static const char *const what[] = { "resource", "guard", "", "lease", "register" };
    s->function = functions[s->r.action];
    s->owner = (int)below(w, NAMES);
    snprintf(s->name, sizeof s->name, "%s-%d", what[s->r.action - HF_GET_RESOURCE], s->owner);
    s->r.get.name = hf_str(s->name);
    argue(s, s->name);
}

static void choose(struct pair *w, struct step *s)
{
    static const struct {
        enum hf_action action;
        void (*choose)(struct pair *w, struct step *s);
    } menu[] = {
        { HF_PLACE_HOLD, choose_place },    { HF_PLACE_HOLD, choose_place },
        { HF_PLACE_HOLD, choose_place },    { HF_CONFIRM, choose_hold },
        { HF_RELEASE, choose_hold },        { HF_EXPIRE, choose_hold },
        { HF_REVERSE, choose_hold },        { HF_SET_RESOURCE, choose_set_resource },
        { HF_CONFIRM_LATE, choose_hold },   { HF_CONFIRM_LATE, choose_hold },
        { HF_SET_GUARD, choose_set_guard }, { HF_CHECK, choose_ask },
        { HF_RECORD, choose_ask },          { HF_ADMIT, choose_ask },
        { HF_ADMIT, choose_ask },           { HF_BEGIN, choose_begin },
        { HF_BEGIN, choose_begin },         { HF_COMPLETE, choose_settle },
        { HF_FAIL, choose_settle },         { HF_HEARTBEAT, choose_settle },
        { HF_GRANT, choose_grant },         { HF_RENEW, choose_lease },
        { HF_RETURN, choose_lease },        { HF_WRITE, choose_write },
        { HF_WRITE, choose_write },         { HF_GET_RESOURCE, choose_get },
        { HF_GET_GUARD, choose_get },       { HF_GET_LEASE, choose_get },
        { HF_GET_REGISTER, choose_get },
    };
    size_t n = (size_t)below(w, sizeof menu / sizeof *menu);
    memset(s, 0, sizeof *s);
    s->r.action = menu[n].action;
    menu[n].choose(w, s);
}

/* ---- Comparing ---- */

static void same_text(const PGresult *got, const char *column, struct hf_bytes ours)
{
    char text[256];
    assert_true(ours.size < sizeof text);
    if (ours.size > 0)
        memcpy(text, ours.data, ours.size);
    text[ours.size] = '\0';
    assert_string_equal(functions_text(got, column), text);
}

static void same_bytes(const PGresult *got, const char *column, struct hf_bytes ours)
{
    char hex[512] = "\\x";
    assert_true(2 * ours.size + 3 < sizeof hex);
    for (size_t i = 0; i < ours.size; i++)
        snprintf(hex + 2 + 2 * i, 3, "%02x", ((const unsigned char *)ours.data)[i]);
    assert_string_equal(functions_text(got, column), hex);
}

static void same_number(const PGresult *got, const char *column, uint64_t ours)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)ours);
    assert_string_equal(functions_text(got, column), text);
}

static void same_flag(const PGresult *got, const char *column, bool ours)
{
    assert_string_equal(functions_text(got, column), ours ? "t" : "f");
}

static hf_time moment(const PGresult *got, const char *column)
{
    char text[64];
    hf_time t;
    snprintf(text, sizeof text, "%s:00", functions_text(got, column));
    if (!hf_time_parse(hf_str(text), &t))
        fail_msg("%s is no time", text);
    return t;
}

/* From one moment to another: the same stretch on both sides. */
static void same_span(const PGresult *got, const char *from, const char *to, hf_time ours)
{
    assert_int_equal(moment(got, to) - moment(got, from), ours);
}

static void same_presence(const PGresult *got, const char *column, hf_time ours)
{
    assert_int_equal(functions_text(got, column)[0] != '\0', ours != 0);
}

static const char *theirs_of(const struct pair *w, const char *ours)
{
    for (size_t i = 0; i < w->holds; i++)
        if (strcmp(w->ours[i], ours) == 0)
            return w->theirs[i];
    return "";
}

static void same_hold(struct pair *w, const struct hf_hold *h, const PGresult *got)
{
    static const char *const states[] = { "", "held", "confirmed", "released", "expired" };
    if (theirs_of(w, h->id)[0] == '\0') {
        assert_true(w->holds < HOLDS_MAX);
        memcpy(w->ours[w->holds], h->id, HF_ID_SIZE);
        snprintf(w->theirs[w->holds++], HF_ID_SIZE, "%s", functions_text(got, "id"));
    }
    assert_string_equal(functions_text(got, "id"), theirs_of(w, h->id));
    assert_string_equal(functions_text(got, "reverses"), theirs_of(w, h->reverses));
    assert_string_equal(functions_text(got, "reacquires"), theirs_of(w, h->reacquires));
    assert_string_equal(functions_text(got, "state"), states[h->state]);
    same_text(got, "resource", h->resource);
    same_text(got, "requester", h->requester);
    same_span(got, "placed_at", "expires_at", h->expires_at - h->placed_at);
    same_presence(got, "ended_at", h->ended_at);
}

static void same_resource(const struct hf_resource *r, const PGresult *got)
{
    same_text(got, "name", r->name);
    same_number(got, "capacity", r->capacity);
    same_number(got, "held", r->held);
    same_number(got, "confirmed", r->confirmed);
    same_number(got, "fence", r->fence);
    same_flag(got, "open", r->open);
}

static void same_guard(const struct hf_guard *g, const PGresult *got)
{
    static const char *const steps[] = { "", "exact", "trim", "casefold", "normalize", "hash" };
    char match[64] = "";
    for (uint32_t i = 0; i < g->match_count; i++) {
        strcat(match, i ? "," : "");
        strcat(match, steps[g->match[i]]);
    }
    same_text(got, "name", g->name);
    same_number(got, "window_ms", (uint64_t)g->window_ms);
    assert_string_equal(functions_text(got, "match"), match);
    assert_string_equal(functions_text(got, "on_unavailable"),
                        g->on_unavailable == HF_FAIL_OPEN ? "open" : "closed");
    same_flag(got, "durable", g->durable);
}

static void same_seen(const struct hf_seen *s, const PGresult *got)
{
    same_flag(got, "seen", s->seen);
    same_presence(got, "recorded_at", s->recorded_at);
    if (s->seen)
        same_span(got, "recorded_at", "expires_at", s->expires_at - s->recorded_at);
    if (s->has_result)
        same_bytes(got, "result", s->result);
    else
        assert_string_equal(functions_text(got, "result"), "");
}

static void same_claim(struct pair *w, const struct step *s, const struct hf_claim *c,
                       const PGresult *got)
{
    static const char *const states[] = { "",       "started",   "completed",
                                          "failed", "retryable", "unknown" };
    struct fences *known = &w->claims[s->owner];
    uint64_t theirs = strtoull(functions_text(got, "fence"), NULL, 10);
    assert_true(c->fence >= known->ours && theirs >= known->theirs);
    assert_int_equal(c->fence == known->ours, theirs == known->theirs);
    *known = (struct fences){ c->fence, theirs };
    same_text(got, "key", c->key);
    assert_string_equal(functions_text(got, "state"), states[c->state]);
    assert_string_equal(functions_text(got, "on_abandon"),
                        c->on_abandon == HF_ABANDON_RETRY ? "retry" : "unknown");
    same_number(got, "lease_ms", (uint64_t)c->lease_ms);
    same_presence(got, "settled_at", c->settled_at);
    same_presence(got, "expires_at", c->expires_at);
    if (c->settled_at) {
        same_span(got, "settled_at", "expires_at", c->expires_at - c->settled_at);
        same_bytes(got, "response", c->response);
    }
}

static void same_lease(struct pair *w, const struct step *s, const struct hf_lease *l,
                       const PGresult *got)
{
    struct fences *known = &w->leases[s->owner];
    uint64_t theirs = strtoull(functions_text(got, "fence"), NULL, 10);
    assert_int_equal(l->fence > known->ours, theirs > known->theirs);
    assert_int_equal(l->fence == known->ours, theirs == known->theirs);
    if (l->fence > known->ours) /* a replay may show an older one */
        *known = (struct fences){ l->fence, theirs };
    same_text(got, "name", l->name);
    same_text(got, "holder", l->holder);
    same_number(got, "ttl_ms", (uint64_t)l->ttl_ms);
    same_presence(got, "released_at", l->released_at);
}

static void same_register(const struct hf_register *r, const PGresult *got)
{
    same_text(got, "name", r->name);
    assert_string_equal(functions_text(got, "type"), "plain");
    same_bytes(got, "value", r->value.bytes);
    same_number(got, "version", r->version);
    same_number(got, "fence", r->fence);
}

static void same(struct pair *w, const struct step *s, const struct hf_result *ours,
                 const PGresult *got)
{
    assert_string_equal(functions_text(got, "status"), hf_status_code(ours->answer.status));
    same_flag(got, "replayed", ours->replayed);
    switch (ours->answer.kind) {
    case HF_RECORD_HOLD: same_hold(w, &ours->answer.hold, got); break;
    case HF_RECORD_RESOURCE: same_resource(&ours->answer.resource, got); break;
    case HF_RECORD_GUARD: same_guard(&ours->answer.guard, got); break;
    case HF_RECORD_SEEN: same_seen(&ours->answer.seen, got); break;
    case HF_RECORD_CLAIM: same_claim(w, s, &ours->answer.claim, got); break;
    case HF_RECORD_LEASE: same_lease(w, s, &ours->answer.lease, got); break;
    case HF_RECORD_REGISTER: same_register(&ours->answer.reg, got); break;
    default:
        for (int i = 2; i < PQnfields(got); i++)
            assert_true(PQgetisnull(got, 0, i));
        break;
    }
}

/* What happened to the number? */
static void same_number_status(struct pair *w, const struct step *s)
{
    struct hf_result ours = HF_RESULT_INIT;
    struct hf_request ask = { .action = HF_GET_TOKEN,
                              .client = s->r.client,
                              .sequence = s->r.sequence };
    enum hf_status status = hf_do(w->db, &ask, &ours);
    PGresult *got =
        functions_call(w->c, "token_status",
                       (const char *const[]){ NULL, "", s->client, s->arguments[s->count - 1] }, 4);
    assert_string_equal(functions_text(got, "status"), hf_status_code(status));
    if (status == HF_OK) {
        assert_string_equal(functions_text(got, "action"), hf_action_name(ours.token.action));
        assert_string_equal(functions_text(got, "answered"), hf_status_code(ours.token.status));
        assert_string_equal(functions_text(got, "expires_at"), "");
        assert_int_equal(functions_text(got, "hold")[0] != 0,
                         ours.answer.kind == HF_RECORD_HOLD && ours.token.status == HF_OK);
    }
    PQclear(got);
    hf_result_clear(&ours);
}

static void run_step(struct pair *w, const struct step *s, struct hf_result *ours)
{
    enum hf_status status = hf_do(w->db, &s->r, ours);
    (void)status; /* it is in the result */
    PGresult *got = functions_call(w->c, s->function, s->arguments, s->count);
    same(w, s, ours, got);
    PQclear(got);
    if (s->client[0])
        same_number_status(w, s);
}

/* ---- Runs ---- */

static void run(const struct hf_options *options, uint64_t seed, size_t steps)
{
    static struct pair w;
    enum { RECENT = 16 };
    static struct step recent[RECENT];
    unsigned statuses[HF_REFUSED + 1] = { 0 }, replays = 0;
    struct hf_result ours = HF_RESULT_INIT;
    struct hf_error why;
    memset(&w, 0, sizeof w);
    w.random = seed;
    functions_make(&p, options);
    w.c = postgres_connect(&p);
    functions_run(w.c, "SET TIME ZONE 'UTC'; SELECT setval('holdfast.fence', 100)");
    assert_int_equal(hf_open(":memory:", options, &w.db, &why), HF_OK);
    for (int i = 0; i < 20; i++) { /* so that there are fences below those that follow */
        char key[ARGUMENT];
        snprintf(key, sizeof key, "b%d", i);
        assert_int_equal(
            hf_do(w.db, &(struct hf_request){ .action = HF_BEGIN, .key = hf_str(key) }, &ours),
            HF_OK);
    }
    for (size_t i = 0; i < steps; i++) {
        struct step *s = &recent[i % RECENT];
        bool fresh = i < RECENT || below(&w, 5) > 0;
        if (fresh)
            choose(&w, s);
        if (fresh && below(&w, 4) == 0)
            give_number(&w, s);
        if (!fresh) /* a step from a while ago, once more */
            s = &recent[below(&w, RECENT)];
        run_step(&w, s, &ours);
        statuses[ours.answer.status]++;
        replays += ours.replayed;
        server_pause_ms(3); /* what lasts a millisecond is over in both */
    }
    for (unsigned i = 0; i <= HF_REFUSED; i++)
        if (statuses[i] > 0)
            printf("%s %u  ", hf_status_code((enum hf_status)i), statuses[i]);
    printf("replayed %u; %zu entries\n", replays, functions_check_journal(w.c));
    assert_true(statuses[HF_OK] > steps / 4 && statuses[HF_INVALID_REQUEST] > 0 &&
                statuses[HF_NOT_HELD] > 0);
    hf_result_clear(&ours);
    hf_close(w.db);
    PQfinish(w.c);
}

static size_t steps(void)
{
    const char *scale = getenv("HF_SCALE");
    return scale && strcmp(scale, "full") == 0 ? 800 : 250;
}

static void test_same_answers(void **state)
{
    (void)state;
    run(&(struct hf_options){ .no_background = true }, test_seed("same answers", 4), steps());
}

/* Every key is free again at once, so that each call takes one over. */
static void test_same_answers_when_keys_leave(void **state)
{
    (void)state;
    run(&(struct hf_options){ .no_background = true, .idempotency_window_ms = 1 },
        test_seed("short window", 5), steps());
}

static void test_same_answers_of_a_strict_registry(void **state)
{
    (void)state;
    run(&(struct hf_options){ .no_background = true,
                              .registry = HF_REGISTRY_STRICT,
                              .token_max_length = 5 },
        test_seed("strict", 6), steps());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_same_answers_when_keys_leave),
        cmocka_unit_test(test_same_answers_of_a_strict_registry),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

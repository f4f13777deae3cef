/* The start page: what runs here, its figures, and three commands to try. It has no scripts and
 * loads nothing, so that the strictest Content-Security-Policy can be used. */
#include "base/clock.h"
#include "base/text.h"
#include "server/inner.h"
#include "store/postgres/conninfo.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Text ---- */

static void escaped_char_add(struct hf_buffer *out, char c)
{
    switch (c) {
    case '&': hf_buffer_add_text(out, "&amp;"); return;
    case '<': hf_buffer_add_text(out, "&lt;"); return;
    case '>': hf_buffer_add_text(out, "&gt;"); return;
    case '"': hf_buffer_add_text(out, "&quot;"); return;
    case '\'': hf_buffer_add_text(out, "&#39;"); return;
    default: hf_buffer_add_char(out, c); return;
    }
}

/* Text that is not ours. Invalid UTF-8 and control characters are shown as \xNN. */
static void escaped_add(struct hf_buffer *out, const char *text)
{
    bool utf8 = hf_utf8_valid(hf_str(text));
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            hf_buffer_printf(out, "\\x%02x", c);
        else
            escaped_char_add(out, *p);
    }
}

/* 1234567 as 1,234,567. */
static void number_add(struct hf_buffer *out, uint64_t number)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, number);
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            hf_buffer_add_char(out, ',');
        hf_buffer_add_char(out, digits[i]);
    }
}

static void size_add(struct hf_buffer *out, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;
    double size = (double)bytes;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    hf_buffer_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", size, units[unit]);
}

/* The two largest units of a duration: "3 d 4 h". */
static void since_add(struct hf_buffer *out, int64_t ms)
{
    int64_t s = ms > 0 ? ms / 1000 : 0;
    if (s < 60)
        hf_buffer_printf(out, "%" PRId64 " s", s);
    else if (s < 3600)
        hf_buffer_printf(out, "%" PRId64 " min", s / 60);
    else if (s < 86400)
        hf_buffer_printf(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s / 60 % 60);
    else
        hf_buffer_printf(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s / 3600 % 24);
}

/* ---- The three commands ---- */

enum { COMMANDS = 3 };

struct command {
    const char *url;
    bool credential;     /* the server has an auth file */
    const char *between; /* separates its parts */
};

static void command_add(struct hf_buffer *out, const struct command *c, unsigned number)
{
    bool looks = number == COMMANDS - 1;
    hf_buffer_printf(out, "curl -si -w '\\n' \"%s/v1/holds%s\"", c->url,
                     looks ? "?resource=room-307&from=$(date -u +%F)" : "");
    if (c->credential)
        hf_buffer_printf(out, "%s-H \"Authorization: Bearer $CREDENTIAL\"", c->between);
    if (looks)
        return;
    hf_buffer_printf(out, "%s-H \"Idempotency-Key: order-$(date -u +%%F)\"", c->between);
    hf_buffer_printf(
        out, "%s-d '{\"resource\":\"room-307\",\"requester\":\"guest-91\",\"duration\":\"15m\"}'",
        c->between);
}

void hf_server_lines(const char *url, struct hf_buffer *out)
{
    const struct command c = { url, false, " " };
    for (unsigned i = 0; i < COMMANDS; i++) {
        command_add(out, &c, i);
        hf_buffer_add_char(out, '\n');
    }
}

/* ---- The page ---- */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>Holdfast</title>\n<style>\n"
    ":root{--paper:#faf9f6;--card:#fff;--ink:#1b2326;--soft:#58646a;--line:#e2dfd7;--mark:#0a6b5d;-"
    "-good:#0a6b5d;--bad:#a62b1f;--code:#f2f0ea}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--paper:#0f1315;--card:#161c1f;--ink:#e7eaeb;--soft:#9ba8ad;"
    "--line:#283236;--mark:#5ccbb8;--good:#5ccbb8;--bad:#f08b7f;--code:#0b0f10}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.55 "
    "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif}\n"
    "header,main,footer{max-width:62rem;margin:0 auto;padding:0 1.5rem}\n"
    "header{padding-top:3.5rem}\n"
    ".name{display:flex;align-items:center;gap:.75rem;flex-wrap:wrap}\n"
    "h1{font-size:2rem;line-height:1.2;letter-spacing:-.02em;margin:0}\n"
    "h2{font-size:1.15rem;letter-spacing:-.01em;margin:2.75rem 0 .9rem}\n"
    ".lead{font-size:1.15rem;color:var(--soft);max-width:40rem;margin:.9rem 0 0}\n"
    "svg{color:var(--mark);flex:none}\n"
    ".state{margin-left:auto;border:1px solid var(--line);border-radius:2rem;padding:.2rem "
    ".85rem;background:var(--card);font-size:.95rem;white-space:nowrap}\n"
    ".state::before{content:\"\";display:inline-block;width:.6rem;height:.6rem;border-radius:50%;"
    "margin-right:.5rem;background:var(--good)}\n"
    ".state.not{color:var(--bad)}\n.state.not::before{background:var(--bad);border-radius:0}\n"
    "dl{margin:0}\ndt{color:var(--soft);font-size:.9rem}\ndd{margin:0;overflow-wrap:anywhere}\n"
    ".facts{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1.5rem;border-top:1px "
    "solid var(--line);border-bottom:1px solid var(--line);padding:1rem 0}\n"
    ".facts dt{line-height:1.7}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:.75rem}\n"
    ".figures div{background:var(--card);border:1px solid "
    "var(--line);border-radius:.6rem;padding:.85rem 1rem}\n"
    ".figures "
    "dd{font-size:1.5rem;line-height:1.35;font-variant-numeric:tabular-nums;letter-spacing:-.01em}"
    "\n"
    ".figures .more{font-size:.9rem;color:var(--soft);letter-spacing:0}\n"
    "ol{list-style:none;counter-reset:step;margin:0;padding:0}\n"
    "ol li{counter-increment:step;margin:0 0 1.1rem}\n"
    "ol p{margin:0 0 .4rem}\nol p::before{content:counter(step) \". "
    "\";color:var(--mark);font-weight:600}\n"
    "pre{margin:0;padding:.8rem 1rem;overflow-x:auto;background:var(--code);border:1px solid "
    "var(--line);border-radius:.6rem}\n"
    "code,pre{font:.9rem/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation "
    "Mono\",monospace}\n"
    ".note{color:var(--soft);margin:0 0 1rem}\n.facts+.note{margin-top:1rem}\n"
    "a{color:var(--mark);text-underline-offset:.2em}\n"
    "a:focus-visible,pre:focus-visible{outline:3px solid var(--mark);outline-offset:3px}\n"
    "nav "
    "ul{list-style:none;display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:"
    ".75rem "
    "1.5rem;margin:0;padding:0}\nnav span{display:block;color:var(--soft);font-size:.9rem}\n"
    "footer{color:var(--soft);font-size:.9rem;padding-top:2.5rem;padding-bottom:3rem}\n"
    "@media "
    "(max-width:34rem){header{padding-top:2rem}.state{margin-left:0}.facts{grid-template-columns:"
    "1fr;gap:0}.facts "
    "dd{margin-bottom:.5rem}.figures,nav ul{grid-template-columns:1fr 1fr}.figures "
    "dd{font-size:1.25rem}}\n"
    "@media (max-width:20rem){.figures,nav ul{grid-template-columns:1fr}}\n"
    "</style>\n</head>\n<body>\n"
    "<header>\n<div class=\"name\">\n"
    "<svg width=\"36\" height=\"36\" viewBox=\"0 0 36 36\" fill=\"none\" stroke=\"currentColor\" "
    "stroke-width=\"2.5\" stroke-linejoin=\"round\" stroke-linecap=\"round\" "
    "aria-hidden=\"true\"><rect x=\"3\" y=\"3\" width=\"22\" height=\"22\" rx=\"6\" "
    "opacity=\".45\"/><rect x=\"11\" y=\"11\" width=\"22\" height=\"22\" rx=\"6\"/><path d=\"m17 "
    "22.5 3.6 3.5 6.4-7.5\"/></svg>\n<h1>Holdfast</h1>\n";

static const char links[] =
    "<nav aria-labelledby=\"more\">\n<h2 id=\"more\">More</h2>\n<ul>\n"
    "<li><a href=\"/v1/openapi.json\">API description</a><span>every call, as OpenAPI "
    "3.1</span></li>\n"
    "<li><a href=\"/metrics\">Metrics</a><span>for Prometheus</span></li>\n"
    "<li><a href=\"/healthz\">Health</a><span>is the server running?</span></li>\n"
    "<li><a href=\"/readyz\">Readiness</a><span>does it accept requests?</span></li>\n"
    "</ul>\n</nav>\n</main>\n";

/* not_ready: why, or NULL: it is ready. */
static void state_add(struct hf_buffer *out, const char *not_ready)
{
    hf_buffer_printf(out, "<span class=\"state%s\" role=\"status\">%s%s</span>\n",
                     not_ready ? " not" : "", not_ready ? "Not ready: " : "Ready",
                     not_ready ? not_ready : "");
    hf_buffer_add_text(
        out,
        "</div>\n<p class=\"lead\">Retry-safe writes. Send a request twice, and it happens once: "
        "the key, the change and the answer are written in one commit.</p>\n</header>\n<main>\n");
}

static void fact_add(struct hf_buffer *out, const char *name, const char *value)
{
    hf_buffer_printf(out, "<dt>%s</dt><dd>", name);
    escaped_add(out, value);
    hf_buffer_add_text(out, "</dd>\n");
}

/* Only callers who may see the figures see the path of the store. */
static void facts_add(struct hf_server *s, bool figures, struct hf_buffer *out)
{
    char when[HF_TIME_TEXT], database[300] = "";
    hf_time_format(s->started_at, when);
    hf_buffer_add_text(out, "<h2>Running here</h2>\n<dl class=\"facts\">\n");
    fact_add(out, "Version", hf_version());
    fact_add(out, "Address", s->url);
    if (figures && s->options.store.postgres)
        hf_conninfo_show(s->options.store.postgres, database, sizeof database);
    if (figures)
        fact_add(out, "Store",
                 database[0] ? database
                 : strcmp(s->options.data, ":memory:") == 0
                     ? "in memory: nothing is kept after a stop"
                     : s->options.data);
    hf_buffer_printf(out, "<dt>Since</dt><dd><time datetime=\"%s\">%s</time> (", when, when);
    since_add(out, hf_clock_wall_ms() - s->started_at);
    hf_buffer_add_text(out, ")</dd>\n");
    fact_add(out, "Callers",
             s->options.auth_file ? "with a credential of the auth file"
                                  : "from this machine, without a credential");
    hf_buffer_add_text(out, "</dl>\n");
}

static void figure_begin(struct hf_buffer *out, const char *name)
{
    hf_buffer_printf(out, "<div><dt>%s</dt><dd>", name);
}

static void figure_more(struct hf_buffer *out)
{
    hf_buffer_add_text(out, "</dd><dd class=\"more\">");
}

static void figure_end(struct hf_buffer *out)
{
    hf_buffer_add_text(out, "</dd></div>\n");
}

/* A number, and another one below it, with its words for one and for many. */
struct figure {
    const char *name;
    uint64_t number, other;
    const char *one, *many;
};

static void figure_add(struct hf_buffer *out, const struct figure *f)
{
    figure_begin(out, f->name);
    number_add(out, f->number);
    figure_more(out);
    number_add(out, f->other);
    hf_buffer_printf(out, " %s", f->other == 1 ? f->one : f->many);
    figure_end(out);
}

static void commits_add(struct hf_buffer *out, const struct hf_stats *stats)
{
    figure_begin(out, "Commits");
    number_add(out, stats->batches);
    figure_more(out);
    if (stats->syncs > 0)
        hf_buffer_printf(out, "%.2f ms on average",
                         (double)stats->sync_ns_total / (double)stats->syncs / 1e6);
    else
        hf_buffer_add_text(out, "none synced to disk so far");
    figure_end(out);
}

static void sizes_add(struct hf_buffer *out, const struct hf_stats *stats)
{
    figure_begin(out, "Memory");
    size_add(out, stats->memory_bytes);
    figure_more(out);
    size_add(out, stats->memory_token_bytes);
    hf_buffer_add_text(out, " of it for keys");
    figure_end(out);
    figure_begin(out, "Journal");
    size_add(out, stats->journal_bytes);
    figure_more(out);
    hf_buffer_add_text(out, "written since the store was created");
    figure_end(out);
}

static void figures_add(struct hf_server *s, const struct hf_stats *stats, struct hf_buffer *out)
{
    static const char elsewhere[] = "collisions, refused";
    static const char meanwhile[] = "while the first was in progress";
    static const char not_taken[] = "refused by the store";
    struct hf_http_stats http;
    hf_http_stats(s->http, &http);
    const struct figure before[] = {
        { "Keys remembered", stats->tokens, stats->collisions, elsewhere, elsewhere },
        { "Duplicates answered", stats->duplicates, stats->races, meanwhile, meanwhile },
        { "Holds", stats->holds, stats->holds_live, "held now", "held now" },
        { "Operations", stats->operations, stats->refusals_storage, not_taken, not_taken },
    };
    const struct figure requests = { "Requests", http.requests, http.connections, "connection open",
                                     "connections open" };
    hf_buffer_add_text(out, "<h2>Figures</h2>\n<dl class=\"figures\">\n");
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        figure_add(out, &before[i]);
    commits_add(out, stats);
    sizes_add(out, stats);
    figure_add(out, &requests);
    hf_buffer_add_text(out, "</dl>\n");
}

static void commands_add(struct hf_server *s, struct hf_buffer *out)
{
    static const char first[] =
        "Place a hold. The answer is <code>201</code>, with the hold in it.";
    static const char again[] = "Retry it, as if the answer was lost. You get the first answer, "
                                "byte for byte, with <code>Idempotent-Replayed: true</code>.";
    static const char look[] = "List the holds of today: there is one hold, not two.";
    static const char *const words[COMMANDS] = { first, again, look };
    const struct command c = { s->url, s->options.auth_file != NULL, " \\\n  " };
    hf_buffer_add_text(out, "<h2>Try it</h2>\n");
    if (c.credential)
        hf_buffer_add_text(out, "<p class=\"note\">Put a credential that may write into "
                                "<code>CREDENTIAL</code> first.</p>\n");
    if (s->tls)
        hf_buffer_add_text(
            out, "<p class=\"note\">If curl does not trust the certificate, add <code>--cacert "
                 "FILE</code>.</p>\n");
    hf_buffer_add_text(out, "<ol>\n");
    for (unsigned i = 0; i < COMMANDS; i++) {
        struct hf_buffer command = { 0 };
        command_add(&command, &c, i);
        const char *text = hf_buffer_text(&command);
        hf_buffer_printf(out, "<li><p>%s</p><pre tabindex=\"0\"><code>", words[i]);
        for (const char *p = text ? text : ""; *p; p++)
            escaped_char_add(out, *p); /* our own text: line ends stay */
        out->failed |= !text;
        hf_buffer_add_text(out, "</code></pre></li>\n");
        hf_buffer_free(&command);
    }
    hf_buffer_add_text(out, "</ol>\n");
}

static void footer_add(bool figures, struct hf_buffer *out)
{
    char when[HF_TIME_TEXT];
    hf_time_format(hf_clock_wall_ms(), when);
    hf_buffer_printf(out, "<footer>As of <time datetime=\"%s\">%s</time>.%s</footer>\n", when, when,
                     figures ? " Reload for newer figures." : "");
    hf_buffer_add_text(out, "</body>\n</html>\n");
}

void hf_server_page(struct hf_server *s, bool figures, struct hf_buffer *out)
{
    struct hf_db *db = s->db;
    struct hf_stats stats = { 0 };
    if (db)
        hf_stats(db, &stats);
    hf_buffer_add_text(out, head);
    const char *unready = db ? hf_server_unready(&stats) : NULL;
    state_add(out, !db                                          ? "reading the journal"
                   : stats.out_of_space && !stats.database_away ? "out of disk space"
                   : stats.memory_full && !stats.database_away  ? "the memory limit is reached"
                                                                : unready);
    facts_add(s, figures, out);
    if (figures && db)
        figures_add(s, &stats, out);
    else if (!figures)
        hf_buffer_add_text(
            out, "<p class=\"note\">The figures are for callers with a credential: ask for "
                 "<code>/metrics</code>.</p>\n");
    commands_add(s, out);
    hf_buffer_add_text(out, links);
    footer_add(figures, out);
}

#include "cli/bench.h"

#include <math.h>

static void point_text(FILE *to, const char *what, const struct hf_bench_point *p)
{
    fprintf(to, "%-10s %6u %12.0f %9.2f %9.0f %9.0f %9.0f %9.0f\n", what, p->group, p->per_second,
            p->cpu_us, p->p50_us, p->p99_us, p->p999_us, p->max_us);
}

void hf_bench_print_text(const struct hf_bench_report *r, FILE *to)
{
    fprintf(to,
            "holdfast %s, embedded: durable place_hold beside the bare log (same bytes, append and "
            "fdatasync)\n"
            "%llu live keys, %llu resources, %u rounds of %.1f s a point, medians\n\n",
            HF_VERSION, (unsigned long long)r->options.tokens,
            (unsigned long long)r->options.resources, r->options.rounds, r->options.seconds);
    fprintf(to, "%-10s %6s %12s %9s %9s %9s %9s %9s\n", "", "G", "a second", "CPU us", "p50 us",
            "p99 us", "p99.9 us", "max us");
    for (size_t i = 0; i < HF_BENCH_GROUPS; i++) {
        point_text(to, "holdfast", &r->store[i]);
        point_text(to, "bare log", &r->log[i]);
        fprintf(to, "%-10s %6u %12.2f\n", "  ratio", r->store[i].group, r->ratio[i]);
    }
    fprintf(to, "\n");
    point_text(to, "replay", &r->replay);
    point_text(to, "snapshots", &r->pause);
    fprintf(
        to,
        "           (place_hold while %llu snapshots were written and %llu segments prepared)\n\n"
        "One thread submits groups of G operations and waits for each. Times are of a group; CPU "
        "is of the\n"
        "whole process, an operation, background threads included.\n\n",
        (unsigned long long)r->pause_snapshots, (unsigned long long)r->pause_segments);
    fprintf(to, "loading    %.0f keys a second\n", r->preload_per_second);
    fprintf(to, "recovery   %.2f s for %llu keys (%llu operations replayed after the snapshot)\n",
            r->recovery_seconds, (unsigned long long)r->recovery_tokens,
            (unsigned long long)r->recovery_replayed);
    fprintf(to,
            "memory     %.1f bytes a key in the key index; all tables %.1f, whole process %.1f\n",
            r->memory_token_bytes, r->memory_all_bytes, r->rss_bytes);
    fprintf(to, "disk       %.0f bytes a key at G = 64\n", r->disk_token_bytes);
}

static void point_json(FILE *to, const struct hf_bench_point *p)
{
    fprintf(to,
            "{\"group\":%u,\"per_second\":%.0f,\"cpu_us\":%.3f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
            "\"p999_us\":%.1f,\"max_us\":%.1f,\"group_bytes\":%.0f}",
            p->group, p->per_second, p->cpu_us, p->p50_us, p->p99_us, p->p999_us, p->max_us,
            p->group_bytes);
}

void hf_bench_print_json(const struct hf_bench_report *r, FILE *to)
{
    fprintf(to,
            "{\"version\":\"%s\",\"tokens\":%llu,\"resources\":%llu,\"rounds\":%u,\"seconds\":%.2f,"
            "\"place_hold\":[",
            HF_VERSION, (unsigned long long)r->options.tokens,
            (unsigned long long)r->options.resources, r->options.rounds, r->options.seconds);
    for (size_t i = 0; i < HF_BENCH_GROUPS; i++) {
        fprintf(to, "%s{\"holdfast\":", i ? "," : "");
        point_json(to, &r->store[i]);
        fprintf(to, ",\"bare_log\":");
        point_json(to, &r->log[i]);
        fprintf(to, ",\"ratio\":%.4f}", r->ratio[i]);
    }
    fprintf(to, "],\"replay\":");
    point_json(to, &r->replay);
    fprintf(to, ",\"during_snapshots\":");
    point_json(to, &r->pause);
    fprintf(
        to,
        ",\"snapshots\":%llu,\"segments\":%llu,\"load_per_second\":%.0f,\"recovery_seconds\":%.3f,"
        "\"recovery_tokens\":%llu,\"recovery_replayed\":%llu,\"memory_token_bytes\":%.2f,"
        "\"memory_all_bytes\":%.2f,\"rss_bytes_a_token\":%.2f,\"disk_token_bytes\":%.1f}\n",
        (unsigned long long)r->pause_snapshots, (unsigned long long)r->pause_segments,
        r->preload_per_second, r->recovery_seconds, (unsigned long long)r->recovery_tokens,
        (unsigned long long)r->recovery_replayed, r->memory_token_bytes, r->memory_all_bytes,
        r->rss_bytes, r->disk_token_bytes);
}

/* ---- The plot: operations a second by group size, logarithmic ---- */

enum { WIDTH = 720, HEIGHT = 400, LEFT = 80, RIGHT = 20, TOP = 50, BOTTOM = 60, BAR = 44 };

static double y_of(double per_second)
{
    const double lowest = 3, highest = 7; /* 1 k to 10 M */
    double t = (log10(per_second < 1000 ? 1000 : per_second) - lowest) / (highest - lowest);
    return HEIGHT - BOTTOM - t * (HEIGHT - TOP - BOTTOM);
}

static void bar_svg(FILE *to, double x, const struct hf_bench_point *p, const char *color)
{
    double y = y_of(p->per_second);
    fprintf(to, "<rect x='%.0f' y='%.1f' width='%d' height='%.1f' fill='%s'/>\n", x, y, BAR,
            HEIGHT - BOTTOM - y, color);
    fprintf(to, "<text x='%.0f' y='%.1f' text-anchor='middle' font-size='11'>%.0f k</text>\n",
            x + BAR / 2.0, y - 4, p->per_second / 1000);
}

void hf_bench_print_svg(const struct hf_bench_report *r, FILE *to)
{
    static const char *const ours = "#1f6f8b", *const bare = "#c9b79c";
    double step = (double)(WIDTH - LEFT - RIGHT) / HF_BENCH_GROUPS;
    fprintf(to,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
            "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
            WIDTH, HEIGHT);
    fprintf(to,
            "<text x='%d' y='22' font-size='15'>Durable place_hold a second, embedded, %llu live "
            "keys</text>\n",
            LEFT, (unsigned long long)r->options.tokens);
    fprintf(
        to,
        "<rect x='%d' y='30' width='12' height='12' fill='%s'/><text x='%d' y='40'>holdfast</text>"
        "<rect x='%d' y='30' width='12' height='12' fill='%s'/><text x='%d' y='40'>bare "
        "log</text>\n",
        LEFT, ours, LEFT + 16, LEFT + 90, bare, LEFT + 106);
    for (int e = 3; e <= 7; e++) {
        static const char *const names[] = { "1 k", "10 k", "100 k", "1 M", "10 M" };
        double y = y_of(pow(10, e));
        fprintf(to,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
                "<text x='%d' y='%.1f' text-anchor='end'>%s</text>\n",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4, names[e - 3]);
    }
    for (size_t i = 0; i < HF_BENCH_GROUPS; i++) {
        double x = LEFT + step * ((double)i + 0.5);
        bar_svg(to, x - BAR - 2, &r->store[i], ours);
        bar_svg(to, x + 2, &r->log[i], bare);
        fprintf(to,
                "<text x='%.0f' y='%d' text-anchor='middle'>G = %u</text>"
                "<text x='%.0f' y='%d' text-anchor='middle' fill='#555'>%.2f of the log</text>\n",
                x, HEIGHT - BOTTOM + 20, r->store[i].group, x, HEIGHT - BOTTOM + 38, r->ratio[i]);
    }
    fprintf(to, "</svg>\n");
}

#include "base/text.h"

#include "base/bytes.h"

#include <stdio.h>

bool hf_utf8_valid(struct hf_bytes text)
{
    if (text.size == 0)
        return true; /* text.data may be NULL */
    const unsigned char *p = text.data;
    if (text.size == 0)
        return true;
    const unsigned char *end = p + text.size;
    while (p < end) {
        if (*p < 0x80) {
            p++;
            continue;
        }
        unsigned c = *p++;
        unsigned lo = 0x80, hi = 0xbf;
        size_t more;
        if (c >= 0xc2 && c <= 0xdf) {
            more = 1;
        } else if (c >= 0xe0 && c <= 0xef) {
            more = 2;
            lo = c == 0xe0 ? 0xa0 : 0x80;
            hi = c == 0xed ? 0x9f : 0xbf;
        } else if (c >= 0xf0 && c <= 0xf4) {
            more = 3;
            lo = c == 0xf0 ? 0x90 : 0x80;
            hi = c == 0xf4 ? 0x8f : 0xbf;
        } else {
            return false;
        }
        if ((size_t)(end - p) < more)
            return false;
        if (*p < lo || *p > hi)
            return false;
        for (size_t i = 1; i < more; i++)
            if (p[i] < 0x80 || p[i] > 0xbf)
                return false;
        p += more;
    }
    return true;
}

/* The digits at the front of `text`; *rest is what follows. False if there are none or too many. */
static bool digits_take(struct hf_bytes text, uint64_t *number, struct hf_bytes *rest)
{
    const unsigned char *p = text.data;
    size_t n = 0;
    uint64_t v = 0;
    if (text.size == 0)
        return false;
    while (n < text.size && p[n] >= '0' && p[n] <= '9') {
        uint64_t d = (uint64_t)(p[n] - '0');
        if (v > (UINT64_MAX - d) / 10)
            return false;
        v = v * 10 + d;
        n++;
    }
    *number = v;
    *rest = hf_mem(p + n, text.size - n);
    return n > 0;
}

bool hf_number_parse(struct hf_bytes text, uint64_t *number)
{
    struct hf_bytes rest;
    return digits_take(text, number, &rest) && rest.size == 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* A number and one of `units`; a bare number has the first unit. */
static bool quantity_parse(struct hf_bytes text, const struct unit *units, size_t count,
                           uint64_t *out)
{
    struct hf_bytes rest;
    uint64_t v;
    if (!digits_take(text, &v, &rest))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!hf_bytes_equal(rest, hf_str(units[i].name)))
            continue;
        if (v > UINT64_MAX / units[i].factor)
            return false;
        *out = v * units[i].factor;
        return true;
    }
    return false;
}

bool hf_duration_read(struct hf_bytes text, int64_t *ms)
{
    static const struct unit units[] = { { "", 1000 },   { "ms", 1 },      { "s", 1000 },
                                         { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    uint64_t v;
    bool minus = text.size > 0 && *(const char *)text.data == '-';
    struct hf_bytes size = minus ? hf_mem((const char *)text.data + 1, text.size - 1) : text;
    if (!quantity_parse(size, units, sizeof units / sizeof *units, &v) || v > INT64_MAX)
        return false;
    *ms = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

bool hf_duration_parse(struct hf_bytes text, int64_t *ms)
{
    int64_t read;
    if (!hf_duration_read(text, &read) || *(const char *)text.data == '-' ||
        read > HF_DURATION_MAX_MS)
        return false;
    *ms = read;
    return true;
}

bool hf_size_parse(struct hf_bytes text, uint64_t *bytes)
{
    static const struct unit units[] = { { "", 1 },
                                         { "B", 1 },
                                         { "KiB", UINT64_C(1) << 10 },
                                         { "MiB", UINT64_C(1) << 20 },
                                         { "GiB", UINT64_C(1) << 30 } };
    return quantity_parse(text, units, sizeof units / sizeof *units, bytes);
}

void hf_duration_format(int64_t ms, char *out)
{
    static const struct unit units[] = {
        { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 }
    };
    size_t i = 0;
    while (units[i].factor > 1 && (ms == 0 || ms % (int64_t)units[i].factor != 0))
        i++;
    snprintf(out, 24, "%lld%s", (long long)(ms / (int64_t)units[i].factor), units[i].name);
}

/* Days since 1970-01-01 of a date in the proleptic Gregorian calendar, and back. */
static int64_t days_of(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_of(int64_t days, int *y, int *m, int *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = (int)(yoe + era * 400 + (*m <= 2));
}

#define TIME_LOWEST INT64_C(-62167219200000)  /* 0000-01-01 */
#define TIME_HIGHEST INT64_C(253402300799999) /* 9999-12-31T23:59:59.999 */

/* Two digits of v, which is below 100. */
static void pair_put(char *out, unsigned v)
{
    out[0] = (char)('0' + v / 10);
    out[1] = (char)('0' + v % 10);
}

/* "2026-11-15T". Most times are of the same day, so the newest date is kept. */
static void date_put(int64_t days, char *out)
{
    static _Thread_local int64_t last_days = INT64_MIN;
    static _Thread_local char last[11];
    if (days != last_days) {
        int y, m, d;
        date_of(days, &y, &m, &d);
        memcpy(last, "0000-00-00T", sizeof last);
        pair_put(last, (unsigned)y / 100);
        pair_put(last + 2, (unsigned)y % 100);
        pair_put(last + 5, (unsigned)m);
        pair_put(last + 8, (unsigned)d);
        last_days = days;
    }
    memcpy(out, last, sizeof last);
}

void hf_time_format(hf_time t, char out[HF_TIME_TEXT])
{
    if (t < TIME_LOWEST)
        t = TIME_LOWEST;
    if (t > TIME_HIGHEST)
        t = TIME_HIGHEST;
    int64_t days = t / 86400000;
    int64_t ms = t % 86400000;
    if (ms < 0) {
        ms += 86400000;
        days--;
    }
    date_put(days, out);
    memcpy(out + 11, "00:00:00.000Z", HF_TIME_TEXT - 11);
    unsigned second = (unsigned)ms / 1000, thousandth = (unsigned)ms % 1000;
    pair_put(out + 11, second / 3600);
    pair_put(out + 14, second / 60 % 60);
    pair_put(out + 17, second % 60);
    out[20] = (char)('0' + thousandth / 100);
    pair_put(out + 21, thousandth % 100);
}

struct cursor {
    const char *p, *end;
};

static bool take_digits(struct cursor *c, int width, int *v)
{
    *v = 0;
    for (int i = 0; i < width; i++, c->p++) {
        if (c->p == c->end || *c->p < '0' || *c->p > '9')
            return false;
        *v = *v * 10 + (*c->p - '0');
    }
    return true;
}

static bool take_char(struct cursor *c, const char *any)
{
    if (c->p == c->end || *c->p == '\0' || !strchr(any, *c->p))
        return false;
    c->p++;
    return true;
}

static int days_in_month(int y, int m)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return m == 2 && leap ? 29 : days[m - 1];
}

/* "Z", "+hh:mm" or "-hh:mm", to minutes. */
static bool take_offset(struct cursor *c, int *minutes)
{
    int h, m;
    *minutes = 0;
    if (take_char(c, "Zz"))
        return true;
    int sign = c->p < c->end && *c->p == '-' ? -1 : 1;
    if (!take_char(c, "+-") || !take_digits(c, 2, &h) || !take_char(c, ":") ||
        !take_digits(c, 2, &m))
        return false;
    *minutes = sign * (h * 60 + m);
    return h < 24 && m < 60;
}

/* A point and 1 to 9 digits, to milliseconds; digits after the third are dropped. */
static bool take_fraction(struct cursor *c, int *ms)
{
    int n = 0;
    *ms = 0;
    if (!take_char(c, "."))
        return true;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, n++)
        if (n < 3)
            *ms = *ms * 10 + (*c->p - '0');
    for (int i = n; i < 3; i++)
        *ms *= 10;
    return n >= 1 && n <= 9;
}

bool hf_time_parse(struct hf_bytes text, hf_time *t)
{
    if (text.size == 0)
        return false;
    struct cursor c = { text.data, (const char *)text.data + text.size };
    if (take_char(&c, "@")) {
        uint64_t ms;
        if (!hf_number_parse(hf_mem(c.p, (size_t)(c.end - c.p)), &ms) ||
            ms > (uint64_t)TIME_HIGHEST)
            return false;
        *t = (hf_time)ms;
        return true;
    }
    int y, mo, d, h = 0, mi = 0, s = 0, ms = 0, offset = 0;
    if (!take_digits(&c, 4, &y) || !take_char(&c, "-") || !take_digits(&c, 2, &mo) ||
        !take_char(&c, "-") || !take_digits(&c, 2, &d))
        return false;
    if (mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo))
        return false;
    if (c.p != c.end) {
        if (!take_char(&c, "Tt ") || !take_digits(&c, 2, &h) || !take_char(&c, ":") ||
            !take_digits(&c, 2, &mi) || !take_char(&c, ":") || !take_digits(&c, 2, &s) ||
            !take_fraction(&c, &ms) || !take_offset(&c, &offset))
            return false;
        if (c.p != c.end || h > 23 || mi > 59 || s > 59)
            return false;
    }
    *t = days_of(y, mo, d) * 86400000 + ((int64_t)h * 60 + mi - offset) * 60000 + s * 1000 + ms;
    return true;
}

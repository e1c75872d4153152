/* Clocks and dates, without the C library's time zones. */
#include "base/clock.h"
#include "base/err.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_mono_ms(void)
{
    return clock_mono_ns() / NS_PER_MS;
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) / NS_PER_MS);
}

struct date {
    int64_t year;
    unsigned month, day, hour, minute, second, ms; /* month and day count from 1 */
    unsigned weekday;                              /* 0 is Sunday */
};

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* days_from_civil() and the next function convert a date to days since 1970-01-01 and back. Source:
 * Howard Hinnant, "chrono-compatible low-level date algorithms", which counts in eras of 400 years
 * that begin on 1 March. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static struct date date_from_ms(int64_t wall_ms)
{
    const int64_t last = 253402300799999; /* 9999-12-31T23:59:59.999Z */
    struct date d = {0};
    int64_t z, era, doe, yoe, doy, mp, secs;

    wall_ms = wall_ms < 0 ? 0 : wall_ms > last ? last : wall_ms;
    secs = wall_ms / MS_PER_S;
    d.ms = (unsigned)(wall_ms % MS_PER_S);
    d.second = (unsigned)(secs % 60);
    d.minute = (unsigned)(secs / 60 % 60);
    d.hour = (unsigned)(secs / S_PER_HOUR % 24);
    d.weekday = (unsigned)((secs / S_PER_DAY + 4) % 7);
    z = secs / S_PER_DAY + 719468;
    era = z / 146097;
    doe = z - era * 146097;
    yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    mp = (5 * doy + 2) / 153;
    d.day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
    d.month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
    d.year = yoe + era * 400 + (d.month <= 2);
    return d;
}

static unsigned month_days(int64_t year, unsigned month)
{
    static const unsigned char len[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return len[month - 1] + (month == 2 && leap);
}

static int date_to_ms(const struct date *d, int64_t *wall_ms)
{
    if (d->year < 1970 || d->year > 9999 || d->month < 1 || d->month > 12 || d->day < 1 ||
        d->day > month_days(d->year, d->month) || d->hour > 23 || d->minute > 59 || d->second > 60)
        return ERR_PARSE;
    *wall_ms = ((days_from_civil(d->year, d->month, d->day) * 24 + d->hour) * 60 + d->minute) *
                   MS_PER_MINUTE +
               (int64_t)d->second * MS_PER_S + d->ms;
    return 0;
}

/* Writes `v` with `width` digits at *p and moves *p behind them. */
static void digits_put(char **p, uint64_t v, int width)
{
    for (int i = width; i-- > 0; v /= 10)
        (*p)[i] = (char)('0' + v % 10);
    *p += width;
}

/* Writes a date as the pattern says. The letters Y O D h m s f stand for year, month, day, hour,
 * minute, second and milliseconds, W and N for the names of weekday and month. Other characters
 * stand for themselves. */
static void date_format(const struct date *d, const char *pattern, char *out)
{
    for (; *pattern; pattern++) {
        switch (*pattern) {
        case 'Y':
            digits_put(&out, (uint64_t)d->year, 4);
            break;
        case 'O':
            digits_put(&out, d->month, 2);
            break;
        case 'D':
            digits_put(&out, d->day, 2);
            break;
        case 'h':
            digits_put(&out, d->hour, 2);
            break;
        case 'm':
            digits_put(&out, d->minute, 2);
            break;
        case 's':
            digits_put(&out, d->second, 2);
            break;
        case 'f':
            digits_put(&out, d->ms, 3);
            break;
        case 'W':
            memcpy(out, days[d->weekday], 3), out += 3;
            break;
        case 'N':
            memcpy(out, months[d->month - 1], 3), out += 3;
            break;
        default:
            *out++ = *pattern;
            break;
        }
    }
    *out = '\0';
}

void clock_iso(int64_t wall_ms, char out[CLOCK_ISO_LEN + 1])
{
    struct date d = date_from_ms(wall_ms);
    date_format(&d, "Y-O-DTh:m:s.fZ", out);
}

void clock_http(int64_t wall_ms, char out[CLOCK_HTTP_LEN + 1])
{
    struct date d = date_from_ms(wall_ms);
    date_format(&d, "W, D N Y h:m:s GMT", out);
}

void clock_basic(int64_t wall_ms, char out[CLOCK_BASIC_LEN + 1])
{
    struct date d = date_from_ms(wall_ms);
    date_format(&d, "YODThmsZ", out);
}

static bool digits_take(struct str *s, size_t width, uint64_t *out)
{
    if (s->len < width || str_u64(str_head(*s, width), out) < 0)
        return false;
    *s = str_skip(*s, width);
    return true;
}

static bool date_take_text(struct str *s, struct str text)
{
    if (!str_starts(*s, text))
        return false;
    *s = str_skip(*s, text.len);
    return true;
}

static bool month_take(struct str *s, unsigned *month)
{
    for (unsigned i = 0; i < 12; i++)
        if (date_take_text(s, str_n(months[i], 3))) {
            *month = i + 1;
            return true;
        }
    return false;
}

static bool weekday_take(struct str *s, bool whole)
{
    for (size_t i = 0; i < ARRAY_SIZE(days); i++)
        if (date_take_text(s, whole ? str_z(days[i]) : str_n(days[i], 3)))
            return true;
    return false;
}

/* Reads a date that has the form of the pattern, with the letters of date_format() and four more: w
 * and W are a short and a long weekday, d is a day padded by a blank, and y is a year of two
 * digits, where 70 to 99 mean 1970 to 1999 and 00 to 69 mean 2000 to 2069. */
static bool date_parse(struct str *s, const char *pattern, struct date *d)
{
    uint64_t v = 0;
    for (; *pattern; pattern++) {
        bool ok;
        switch (*pattern) {
        case 'Y':
            ok = digits_take(s, 4, &v), d->year = (int64_t)v;
            break;
        case 'y':
            ok = digits_take(s, 2, &v), d->year = (int64_t)(v < 70 ? 2000 + v : 1900 + v);
            break;
        case 'O':
            ok = digits_take(s, 2, &v), d->month = (unsigned)v;
            break;
        case 'D':
            ok = digits_take(s, 2, &v), d->day = (unsigned)v;
            break;
        case 'd':
            ok = digits_take(s, s->len && *s->p == ' ' ? (*s = str_skip(*s, 1), 1) : 2, &v),
            d->day = (unsigned)v;
            break;
        case 'h':
            ok = digits_take(s, 2, &v), d->hour = (unsigned)v;
            break;
        case 'm':
            ok = digits_take(s, 2, &v), d->minute = (unsigned)v;
            break;
        case 's':
            ok = digits_take(s, 2, &v), d->second = (unsigned)v;
            break;
        case 'N':
            ok = month_take(s, &d->month);
            break;
        case 'w':
            ok = weekday_take(s, false);
            break;
        case 'W':
            ok = weekday_take(s, true);
            break;
        default:
            ok = date_take_text(s, str_n(pattern, 1));
            break;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* Reads a fraction of a second (".5", ".123456") as milliseconds; digits after the third are
 * dropped. */
static bool fraction_take(struct str *s, unsigned *ms)
{
    unsigned scale = 100;
    size_t n = 0;

    *s = str_skip(*s, 1);
    for (; n < s->len && s->p[n] >= '0' && s->p[n] <= '9'; n++, scale /= 10)
        *ms += (unsigned)(s->p[n] - '0') * scale;
    *s = str_skip(*s, n);
    return n > 0;
}

int clock_parse_iso(struct str s, int64_t *wall_ms)
{
    struct date d = {0}, offset = {0};
    int64_t ms, shift = 0;

    if (!date_parse(&s, "Y-O-DTh:m:s", &d))
        return ERR_PARSE;
    if (s.len && s.p[0] == '.' && !fraction_take(&s, &d.ms))
        return ERR_PARSE;
    if (s.len && (s.p[0] == '+' || s.p[0] == '-')) {
        int sign = s.p[0] == '-' ? 1 : -1;
        s = str_skip(s, 1);
        if (!date_parse(&s, "h:m", &offset) || offset.hour > 23 || offset.minute > 59)
            return ERR_PARSE;
        shift = sign * (int64_t)(offset.hour * 60 + offset.minute) * MS_PER_MINUTE;
    } else if (!date_take_text(&s, STR("Z"))) {
        return ERR_PARSE;
    }
    if (s.len || date_to_ms(&d, &ms) < 0)
        return ERR_PARSE;
    *wall_ms = ms + shift;
    return 0;
}

int clock_parse_http(struct str s, int64_t *wall_ms)
{
    static const char *const patterns[] = {
        "w, D N Y h:m:s GMT", /* Sun, 06 Nov 1994 08:49:37 GMT */
        "W, D-N-y h:m:s GMT", /* Sunday, 06-Nov-94 08:49:37 GMT */
        "w N d h:m:s Y",      /* Sun Nov  6 08:49:37 1994 */
    };

    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
        struct str rest = s;
        struct date d = {0};
        if (date_parse(&rest, patterns[i], &d) && rest.len == 0)
            return date_to_ms(&d, wall_ms);
    }
    return ERR_PARSE;
}

int clock_parse_basic(struct str s, int64_t *wall_ms)
{
    struct date d = {0};
    if (!date_parse(&s, "YODThmsZ", &d) || s.len)
        return ERR_PARSE;
    return date_to_ms(&d, wall_ms);
}

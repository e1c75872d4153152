/* Parses cron lines and finds their next time. */
#include "replica/cron.h"
#include "base/clock.h"

enum {
    HOUR_MINUTES = 60,
    DAY_MINUTES = 24 * 60,
    DAYS_MAX = 9 * 366, /* 29 February occurs again within eight years */
};

static const struct field {
    const char *name;
    unsigned first, last;
} fields[] = {
    {"minute", 0, 59}, {"hour", 0, 23}, {"day", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 7},
};
enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS };

/* --- reading --- */

static bool cron_number(struct str text, unsigned *out)
{
    uint64_t n;

    if (str_u64(text, &n) < 0 || n > 99)
        return false;
    *out = (unsigned)n;
    return true;
}

/* Sets the bits that one item of a field names: `*`, `a` or `a-b`, each with an optional `/n`. */
static int read_item(const struct field *f, struct str text, uint64_t *bits, struct err *err)
{
    struct str range, step_text, low_text, high_text;
    bool stepped = str_cut(text, '/', &range, &step_text);
    unsigned step = 1, low = f->first, high = f->last;
    bool good = !stepped || (cron_number(step_text, &step) && step > 0);

    if (!str_eq(range, STR("*"))) {
        bool two = str_cut(range, '-', &low_text, &high_text);
        good = good && cron_number(low_text, &low);
        if (two)
            good = good && cron_number(high_text, &high);
        else if (!stepped)
            high = low;
    }
    if (!good || low < f->first || high > f->last || low > high)
        return err_set(err, ERR_INVALID,
                       "'" STR_FMT "' is not a valid %s in a cron line; use %u to %u",
                       STR_ARG(text), f->name, f->first, f->last);
    for (unsigned n = low; n <= high; n += step)
        *bits |= (uint64_t)1 << n;
    return 0;
}

static int cron_read_field(const struct field *f, struct str text, uint64_t *bits, struct err *err)
{
    bool more = true;
    int code = 0;

    while (more && code == 0) {
        struct str item;
        more = str_cut(text, ',', &item, &text);
        code = read_item(f, item, bits, err);
    }
    return code;
}

int cron_parse(struct cron *out, struct str line, struct err *err)
{
    uint64_t bits[FIELDS] = {0};
    struct str text, given[FIELDS];
    size_t count = 0;
    int code = 0;

    while (str_token(&line, " \t", &text)) {
        if (count == FIELDS)
            return err_set(err, ERR_INVALID, "a cron line has five fields");
        given[count] = text;
        code = cron_read_field(&fields[count], text, &bits[count], err);
        if (code < 0)
            return code;
        count++;
    }
    if (count < FIELDS)
        return err_set(err, ERR_INVALID, "a cron line has five fields");
    if (bits[WEEKDAY] >> 7 & 1)
        bits[WEEKDAY] |= 1;
    *out = (struct cron){.minutes = bits[MINUTE],
                         .hours = (uint32_t)bits[HOUR],
                         .days = (uint32_t)bits[DAY],
                         .months = (uint32_t)bits[MONTH],
                         .weekdays = (uint32_t)bits[WEEKDAY] & 0x7f,
                         .either_day = given[DAY].p[0] != '*' && given[WEEKDAY].p[0] != '*'};
    return 0;
}

/* --- the next time --- */

/* Turns a number of days since 1970 into a month and a day. In this computation years begin in
 * March, so that the leap day comes last. */
static void civil(int64_t days, unsigned *month, unsigned *day)
{
    int64_t z = days + 719468;
    int64_t of_era = (z % 146097 + 146097) % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = (unsigned)(of_year - (153 * m + 2) / 5 + 1);
    *month = (unsigned)(m < 10 ? m + 3 : m - 9);
}

static bool has_day(const struct cron *c, int64_t days)
{
    unsigned month, day;

    civil(days, &month, &day);
    bool by_date = c->days >> day & 1;
    bool by_weekday = c->weekdays >> ((days % 7 + 11) % 7) & 1; /* 1970 began on a Thursday */
    if (!(c->months >> month & 1))
        return false;
    return c->either_day ? by_date || by_weekday : by_date && by_weekday;
}

/* Returns the first minute of a day, from `minute` on, that matches; DAY_MINUTES: no minute
 * matches. */
static int64_t in_day(const struct cron *c, int64_t minute)
{
    while (minute < DAY_MINUTES) {
        if (!(c->hours >> minute / HOUR_MINUTES & 1))
            minute += HOUR_MINUTES - minute % HOUR_MINUTES;
        else if (c->minutes >> minute % HOUR_MINUTES & 1)
            break;
        else
            minute++;
    }
    return minute;
}

int cron_next(const struct cron *c, int64_t after_ms, int64_t *out)
{
    int64_t from = (after_ms > 0 ? after_ms : 0) / MS_PER_MINUTE + 1;
    int64_t day = from / DAY_MINUTES, minute = from % DAY_MINUTES;

    for (int i = 0; i < DAYS_MAX; i++, day++, minute = 0) {
        if (!has_day(c, day))
            continue;
        int64_t found = in_day(c, minute);
        if (found < DAY_MINUTES) {
            *out = (day * DAY_MINUTES + found) * MS_PER_MINUTE;
            return 0;
        }
    }
    return ERR_NOT_FOUND;
}

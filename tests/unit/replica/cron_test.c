/* Cron lines: the times that they name, and lines that are refused. */
#include "replica/cron.h"
#include "base/clock.h"
#include "unit/test.h"

static void check_next(const char *line, const char *after, const char *want)
{
    int64_t from, next = 0, wanted;
    struct cron c;
    struct err err = {0};

    CHECK_OK(cron_parse(&c, str_z(line), &err));
    CHECK_OK(clock_parse_iso(str_z(after), &from));
    CHECK_OK(clock_parse_iso(str_z(want), &wanted));
    CHECK_OK(cron_next(&c, from, &next));
    if (next != wanted) {
        char got[CLOCK_ISO_LEN + 1];
        clock_iso(next, got);
        test_fail(__FILE__, __LINE__, "%s after %s: %s, not %s", line, after, got, want);
    }
}

TEST(cron, the_next_time_is_the_first_minute_behind)
{
    static const struct {
        const char *line, *after, *next;
    } rows[] = {
        {"* * * * *", "2026-11-16T06:30:00Z", "2026-11-16T06:31:00Z"},
        {"* * * * *", "2026-11-16T06:30:59.999Z", "2026-11-16T06:31:00Z"},
        {"0 3 * * *", "2026-11-16T03:00:00Z", "2026-11-17T03:00:00Z"},
        {"0 3 * * *", "2026-11-16T02:59:59Z", "2026-11-16T03:00:00Z"},
        {"*/15 * * * *", "2026-11-16T06:46:00Z", "2026-11-16T07:00:00Z"},
        {"5/20 * * * *", "2026-11-16T06:06:00Z", "2026-11-16T06:25:00Z"},
        {"0 3 * * 6", "2026-11-16T00:00:00Z", "2026-11-21T03:00:00Z"},
        {"0 3 * * 7", "2026-11-16T00:00:00Z", "2026-11-22T03:00:00Z"},
        {"0 3 * * 0", "2026-11-16T00:00:00Z", "2026-11-22T03:00:00Z"},
        {"30 22-23,1 * * *", "2026-11-16T23:30:00Z", "2026-11-17T01:30:00Z"},
        {"0 0 31 * *", "2026-11-16T00:00:00Z", "2026-12-31T00:00:00Z"},
        {"0 0 29 2 *", "2026-11-16T00:00:00Z", "2028-02-29T00:00:00Z"},
        {"0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
        {"0 0 1 1 *", "2026-11-16T00:00:00Z", "2027-01-01T00:00:00Z"},
        {"59 23 31 12 *", "2026-11-16T00:00:00Z", "2026-12-31T23:59:00Z"},
        /* both kinds of days are restricted: either matches */
        {"0 0 20 * 3", "2026-11-16T00:00:00Z", "2026-11-18T00:00:00Z"},
        {"0 0 17 * 5", "2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"},
        {" 0\t3  *  * * ", "2026-11-16T03:00:00Z", "2026-11-17T03:00:00Z"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        check_next(rows[i].line, rows[i].after, rows[i].next);
}

TEST(cron, a_day_that_never_comes_is_not_found)
{
    struct cron c;
    struct err err = {0};
    int64_t next;

    CHECK_OK(cron_parse(&c, STR("0 0 30 2 *"), &err));
    CHECK_ERR(cron_next(&c, 0, &next), ERR_NOT_FOUND);
}

TEST(cron, what_is_no_line_is_refused)
{
    static const char *const lines[] = {
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * 0 *",
        "* * * * 8",
        "a * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "1, * * * *",
        ",1 * * * *",
        "1--2 * * * *",
        "-1 * * * *",
        "1/ * * * *",
        "100 * * * *",
        "@daily",
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct cron c;
        struct err err = {0};
        int code = cron_parse(&c, str_z(lines[i]), &err);
        if (code != ERR_INVALID)
            test_fail(__FILE__, __LINE__, "'%s' was taken", lines[i]);
    }
}

/* clock: the calendar against the C library's, and the written forms. */
#include "base/clock.h"
#include "base/ids.h"
#include "unit/test.h"

#include <stdio.h>
#include <time.h>

static const int64_t last_ms = 253402300799999; /* the end of 9999 */

static void check_iso(int64_t ms, const char *want)
{
    char text[CLOCK_ISO_LEN + 1];
    int64_t back;

    clock_iso(ms, text);
    CHECK_STR(str_z(text), str_z(want));
    CHECK_INT(clock_parse_iso(str_z(text), &back), 0);
    CHECK_INT(back, ms);
}

TEST(clock, known_dates_are_written_and_read)
{
    check_iso(0, "1970-01-01T00:00:00.000Z");
    check_iso(951782400000, "2000-02-29T00:00:00.000Z");
    check_iso(951868799999, "2000-02-29T23:59:59.999Z");
    check_iso(1709164800000, "2024-02-29T00:00:00.000Z");
    check_iso(4107542400000, "2100-03-01T00:00:00.000Z");
    check_iso(last_ms, "9999-12-31T23:59:59.999Z");
}

TEST(clock, times_outside_the_calendar_are_cut_to_it)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_iso(-1, text);
    CHECK_STR(str_z(text), STR("1970-01-01T00:00:00.000Z"));
    clock_iso(INT64_MIN, text);
    CHECK_STR(str_z(text), STR("1970-01-01T00:00:00.000Z"));
    clock_iso(INT64_MAX, text);
    CHECK_STR(str_z(text), STR("9999-12-31T23:59:59.999Z"));
}

TEST(clock, random_times_agree_with_the_c_library_and_read_back)
{
    for (int i = 0; i < 20000; i++) {
        int64_t ms = (int64_t)random_below((uint64_t)last_ms + 1), back;
        time_t seconds = (time_t)(ms / MS_PER_S);
        char iso[CLOCK_ISO_LEN + 1], http[CLOCK_HTTP_LEN + 1], basic[CLOCK_BASIC_LEN + 1];
        char want[64], want_iso[72];
        struct tm tm;

        gmtime_r(&seconds, &tm);
        clock_iso(ms, iso);
        clock_http(ms, http);
        clock_basic(ms, basic);
        strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S", &tm);
        snprintf(want_iso, sizeof(want_iso), "%s.%03dZ", want, (int)(ms % 1000));
        CHECK_STR(str_z(iso), str_z(want_iso));
        strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        CHECK_STR(str_z(http), str_z(want));
        strftime(want, sizeof(want), "%Y%m%dT%H%M%SZ", &tm);
        CHECK_STR(str_z(basic), str_z(want));
        CHECK_INT(clock_parse_iso(str_z(iso), &back), 0);
        CHECK_INT(back, ms);
        CHECK_INT(clock_parse_http(str_z(http), &back), 0);
        CHECK_INT(back, ms / MS_PER_S * MS_PER_S);
        CHECK_INT(clock_parse_basic(str_z(basic), &back), 0);
        CHECK_INT(back, ms / MS_PER_S * MS_PER_S);
    }
}

TEST(clock, the_three_forms_of_http_dates_are_read)
{
    static const char *const forms[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };
    int64_t ms;

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        CHECK_INT(clock_parse_http(str_z(forms[i]), &ms), 0);
        CHECK_INT(ms, 784111777000);
    }
    CHECK_INT(clock_parse_http(STR("Sun Nov 16 08:49:37 1994"), &ms), 0);
    CHECK_INT(clock_parse_http(STR("Thursday, 01-Jan-26 00:00:00 GMT"), &ms), 0);
    CHECK_INT(ms, 1767225600000);
}

TEST(clock, offsets_and_fractions_of_rfc_3339_count)
{
    int64_t ms;

    CHECK_INT(clock_parse_iso(STR("2000-01-01T02:30:00+02:30"), &ms), 0);
    CHECK_INT(ms, 946684800000);
    CHECK_INT(clock_parse_iso(STR("1999-12-31T19:00:00.5-05:00"), &ms), 0);
    CHECK_INT(ms, 946684800500);
    CHECK_INT(clock_parse_iso(STR("2000-01-01T00:00:00.123456789Z"), &ms), 0);
    CHECK_INT(ms, 946684800123);
}

TEST(clock, malformed_dates_are_refused)
{
    static const char *const iso[] = {
        "",
        "2000-01-01",
        "2000-01-01T00:00:00",
        "2000-01-01T00:00:00.Z",
        "2000-13-01T00:00:00Z",
        "2000-00-01T00:00:00Z",
        "2001-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2000-01-01T24:00:00Z",
        "2000-01-01T00:60:00Z",
        "1969-12-31T23:59:59Z",
        "2000-01-01T00:00:00Zx",
        "2000-01-01T00:00:00+99:00",
        "2000-01-01T00:00:00+1:00",
    };
    static const char *const http[] = {
        "",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun Nov   6 08:49:37 1994",
    };
    int64_t ms;

    for (size_t i = 0; i < ARRAY_SIZE(iso); i++)
        CHECK_ERR(clock_parse_iso(str_z(iso[i]), &ms), ERR_PARSE);
    for (size_t i = 0; i < ARRAY_SIZE(http); i++)
        CHECK_ERR(clock_parse_http(str_z(http[i]), &ms), ERR_PARSE);
    CHECK_ERR(clock_parse_basic(STR("20060102T150405"), &ms), ERR_PARSE);
    CHECK_ERR(clock_parse_basic(STR("20060102T150405ZZ"), &ms), ERR_PARSE);
    CHECK_ERR(clock_parse_basic(STR_EMPTY, &ms), ERR_PARSE);
}

TEST(clock, monotonic_time_never_goes_back)
{
    uint64_t last = clock_mono_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_mono_ns();
        CHECK(now >= last);
        last = now;
    }
    CHECK(clock_mono_ms() >= last / NS_PER_MS);
}

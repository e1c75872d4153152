/* log: what a line looks like, that no value can forge one, and the rate limit. */
#include "base/ids.h"
#include "base/json.h"
#include "base/log_int.h"
#include "unit/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A sink into a file of its own. */
struct capture {
    struct log_sink *sink;
    struct log log;
    int fd;
    struct buf text;
};

static void capture_init(struct capture *c, enum log_level level, enum log_format format)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/log", test_dir());
    *c = (struct capture){.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600)};
    CHECK(c->fd >= 0);
    c->sink = log_sink_new(c->fd, level, format);
    c->log.sink = c->sink;
}

/* Everything written so far. */
static struct str written(struct capture *c)
{
    char piece[4096];
    ssize_t n;

    buf_reset(&c->text);
    for (off_t at = 0; (n = pread(c->fd, piece, sizeof(piece), at)) > 0; at += n)
        buf_append(&c->text, piece, (size_t)n);
    return buf_str(&c->text);
}

static void capture_release(struct capture *c)
{
    log_sink_free(c->sink);
    close(c->fd);
    buf_release(&c->text);
}

/* The one line that was written, without its time and newline. */
static struct str only_line(struct capture *c)
{
    struct str line, rest;

    CHECK(str_cut(written(c), '\n', &line, &rest));
    CHECK_INT(rest.len, 0);
    CHECK(line.len > 25 && line.p[23] == 'Z');
    return str_skip(line, 25);
}

static size_t count_lines(struct str text, const char *having)
{
    struct str line;
    size_t count = 0;

    while (str_cut(text, '\n', &line, &text))
        count += str_find(line, str_z(having)) >= 0;
    return count;
}

static void check_value(struct str value, const char *want)
{
    struct capture c;

    capture_init(&c, LOG_INFO, LOG_TEXT);
    log_info(&c.log, "e", log_s("k", value));
    CHECK_STR(str_skip(only_line(&c), 9), str_z(want));
    capture_release(&c);
}

TEST(log, a_line_has_time_level_event_context_and_fields)
{
    struct capture c;
    struct log with;

    capture_init(&c, LOG_INFO, LOG_TEXT);
    with = log_with(&c.log, log_z("request", "01J"));
    log_warn(&with, "bucket.created", log_z("bucket", "photos"), log_u("objects", UINT64_MAX),
             log_i("delta", INT64_MIN));
    CHECK_STR(only_line(&c), STR("warn bucket.created request=01J bucket=photos "
                                 "objects=18446744073709551615 delta=-9223372036854775808"));
    capture_release(&c);
}

TEST(log, values_are_quoted_only_when_they_must_be)
{
    check_value(STR("plain/value:1"), "plain/value:1");
    check_value(STR(""), "\"\"");
    check_value(STR_EMPTY, "\"\"");
    check_value(STR("two words"), "\"two words\"");
    check_value(STR("a=b"), "\"a=b\"");
    check_value(STR("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
    check_value(STR("\xc3\xa4"), "\xc3\xa4");
    check_value(STR("\xff"), "\"\\xff\"");
    check_value(STR("nul\0"), "\"nul\\x00\"");
}

TEST(log, no_value_can_forge_a_line)
{
    check_value(STR("x\n2026-11-15T21:30:00.123Z error forged"),
                "\"x\\n2026-11-15T21:30:00.123Z error forged\"");
    check_value(STR("\r\x1b[2J"), "\"\\r\\x1b[2J\"");
    check_value(STR("\x7f\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"),
                "\"\\x7f\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xa9\"");
}

TEST(log, json_lines_are_valid_whatever_the_bytes)
{
    struct capture c;
    struct err err = {0};
    struct str rest, line;
    size_t lines = 0;

    capture_init(&c, LOG_INFO, LOG_JSON);
    for (int i = 0; i < 300; i++) {
        char bytes[64];
        random_bytes(bytes, sizeof(bytes));
        log_info(&c.log, "random", log_s("value", str_n(bytes, random_below(sizeof(bytes)))),
                 log_u("n", 7));
    }
    for (rest = written(&c); str_cut(rest, '\n', &line, &rest); lines++) {
        json_t *value = NULL;
        CHECK_OK(json_read(&value, line, &err));
        CHECK_STR(json_get_str(value, "event", STR("")), STR("random"));
        CHECK_STR(json_get_str(value, "level", STR("")), STR("info"));
        CHECK_INT(json_get_i64(value, "n", 0), 7);
        json_decref(value);
    }
    CHECK_INT(lines, 300);
    capture_release(&c);
}

/* A line whose value has `len` bytes of `unit`, in both forms: never over the limit. */
static void check_cut(enum log_format format, const char *unit, size_t len)
{
    struct capture c;
    struct err err = {0};
    struct buf value = {0};
    struct str line, rest;
    json_t *json = NULL;

    while (value.len < len)
        buf_append_z(&value, unit);
    capture_init(&c, LOG_INFO, format);
    log_info(&c.log, "e", log_u("first", 1), log_s("v", buf_str(&value)), log_u("last", 2));
    CHECK(str_cut(written(&c), '\n', &line, &rest) && rest.len == 0);
    CHECK(line.len < LOG_LINE_MAX);
    if (len > LOG_LINE_MAX)
        CHECK(str_ends(line, format == LOG_JSON ? STR("\"cut\":true}") : STR(" cut=true")));
    if (format == LOG_JSON) {
        CHECK_OK(json_read(&json, line, &err));
        CHECK_INT(json_get_i64(json, "first", 0), 1);
        json_decref(json);
    }
    buf_release(&value);
    capture_release(&c);
}

TEST(log, long_lines_are_cut_and_stay_whole_values)
{
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        check_cut((enum log_format)format, "x", 100000);
        check_cut((enum log_format)format, "\n", 100000);
        check_cut((enum log_format)format, "\xe2\x82\xac", 100000);
        for (size_t len = LOG_LINE_MAX - 140; len < LOG_LINE_MAX; len++)
            check_cut((enum log_format)format, len % 2 ? "x" : "\"", len);
    }
}

TEST(log, levels_below_the_sinks_are_dropped_and_can_be_changed)
{
    struct capture c;

    capture_init(&c, LOG_WARN, LOG_TEXT);
    log_info(&c.log, "dropped");
    CHECK_INT(written(&c).len, 0);
    log_sink_set(c.sink, LOG_DEBUG, LOG_TEXT);
    log_debug(&c.log, "kept");
    CHECK_STR(only_line(&c), STR("debug kept"));
    log_error((struct log *)NULL, "to.nobody");
    CHECK(!log_enabled(NULL, LOG_ERROR));
    CHECK(!log_enabled(&(struct log){0}, LOG_ERROR));
    capture_release(&c);
}

TEST(log, the_same_warning_over_and_over_is_cut_and_counted)
{
    struct capture c;
    struct str text;

    capture_init(&c, LOG_INFO, LOG_TEXT);
    for (int i = 0; i < 100; i++) {
        log_warn(&c.log, "peer.failed");
        log_info(&c.log, "peer.asked");
    }
    log_error(&c.log, "disk.failed");
    log_sink_free(c.sink);
    c.sink = NULL;
    text = written(&c);
    CHECK_INT(count_lines(text, "warn peer.failed"), LOG_BURST);
    CHECK_INT(count_lines(text, "peer.asked"), 100);
    CHECK_INT(count_lines(text, "disk.failed"), 1);
    CHECK_INT(count_lines(text, "warn log.left_out of=peer.failed lines=80"), 1);
    capture_release(&c);
}

TEST(log, the_window_opens_again_after_its_time)
{
    struct log_rate *r = xcalloc(1, sizeof(*r));
    struct log_rate_slot slot;

    for (int i = 0; i < LOG_BURST; i++)
        CHECK(log_rate_admit(r, "a", LOG_WARN, 5));
    CHECK(!log_rate_admit(r, "a", LOG_WARN, 6));
    CHECK(!log_rate_admit(r, "a", LOG_ERROR, 5 + LOG_WINDOW_MS - 1));
    CHECK(log_rate_admit(r, "b", LOG_WARN, 6));
    CHECK(!log_rate_settle(r, 5 + LOG_WINDOW_MS - 1, &slot));
    CHECK(log_rate_settle(r, 5 + LOG_WINDOW_MS, &slot));
    CHECK_INT(slot.left_out, 2);
    CHECK_INT(slot.level, LOG_ERROR);
    CHECK(!log_rate_settle(r, 5 + LOG_WINDOW_MS, &slot));
    CHECK(log_rate_admit(r, "a", LOG_WARN, 5 + LOG_WINDOW_MS));
    free(r);
}

TEST(log, more_events_than_slots_are_let_through)
{
    static char names[2 * LOG_RATE_SLOTS][8];
    struct log_rate *r = xcalloc(1, sizeof(*r));

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(names[i], sizeof(names[i]), "e%zu", i);
        CHECK(log_rate_admit(r, names[i], LOG_WARN, 1));
    }
    free(r);
}

static void *log_many(void *ctx)
{
    for (int i = 0; i < 200; i++)
        log_info((struct log *)ctx, "e", log_z("a", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    for (int i = 0; i < 200; i++)
        log_error((struct log *)ctx, "f");
    return NULL;
}

TEST(log, lines_of_several_threads_never_mix)
{
    struct capture c;
    pthread_t threads[4];
    struct str rest, line;
    size_t lines = 0;

    capture_init(&c, LOG_INFO, LOG_TEXT);
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, log_many, &c.log), 0);
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    for (rest = written(&c); str_cut(rest, '\n', &line, &rest); lines++)
        CHECK(str_ends(line, STR("info e a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")) ||
              str_ends(line, STR("error f")));
    CHECK_INT(lines, 4 * 200 + LOG_BURST);
    capture_release(&c);
}

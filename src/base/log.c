/* Writes log lines. A line is built on the stack, cut at LOG_LINE_MAX bytes, and written whole. No
 * value that a peer chose can end a line, begin a field or end its own quotes. */
#include "base/clock.h"
#include "base/json.h"
#include "base/log_int.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The destination of log lines. The lock is a plain mutex because base/ may not use the locks of
 * os/. Code that holds the lock calls nothing that takes another lock. */
struct log_sink {
    int fd;
    _Atomic(int) level, format;
    _Atomic(bool) owing; /* whether rate.owing > 0; readable without the lock */
    pthread_mutex_t lock;
    struct log_rate rate; /* guarded by lock */
};

/* The bytes at the end of struct line that only a closing quote and the end of the line may use. */
enum { TAIL_MAX = 32 };

struct line {
    char p[LOG_LINE_MAX];
    size_t len;
    enum log_format format;
    bool cut; /* a field did not fit, so no more fields are added */
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static bool line_put(struct line *line, const void *p, size_t len)
{
    if (line->cut || len > sizeof(line->p) - TAIL_MAX - line->len) {
        line->cut = true;
        return false;
    }
    memcpy(line->p + line->len, p, len);
    line->len += len;
    return true;
}

static void put_z(struct line *line, const char *z)
{
    line_put(line, z, strlen(z));
}

/* Removes the first character from *rest and writes it to `out` in the form that it has in the text
 * format, plain or escaped. Returns the number of bytes written. Control characters of ASCII and of
 * Unicode (C1, line and paragraph separators) are escaped, because some programs break lines at
 * them. Every byte that is not UTF-8 is escaped too. */
static size_t text_escape(struct str *rest, char out[4])
{
    static const char hex[] = "0123456789abcdef";
    static const char from[] = "\n\r\t\"\\", to[] = "nrt\"\\";
    unsigned char c = (unsigned char)rest->p[0];
    size_t n = str_utf8_len(*rest);
    const char *special = c ? strchr(from, c) : NULL;

    if (special) {
        *rest = str_skip(*rest, 1);
        memcpy(out, (char[]){'\\', to[special - from]}, 2);
        return 2;
    }
    if (n && !str_utf8_is_control(*rest)) {
        memcpy(out, rest->p, n);
        *rest = str_skip(*rest, n);
        return n;
    }
    *rest = str_skip(*rest, 1);
    memcpy(out, (char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
    return 4;
}

static bool needs_quotes(struct str s)
{
    struct str rest = s;
    char unit[4];

    if (s.len == 0 || str_chr(s, ' ') >= 0 || str_chr(s, '=') >= 0)
        return true;
    while (rest.len)
        if (text_escape(&rest, unit) > 1 && unit[0] == '\\')
            return true;
    return false;
}

static void put_text_value(struct line *line, struct str s)
{
    bool quotes = needs_quotes(s);
    char unit[4];

    if (quotes)
        line_put(line, "\"", 1);
    while (s.len && !line->cut)
        line_put(line, unit, text_escape(&s, unit));
    if (quotes)
        line->p[line->len++] = '"'; /* fits in the bytes of TAIL_MAX */
}

static void put_json_value(struct line *line, struct str s)
{
    char unit[JSON_ESCAPE_MAX];

    line_put(line, "\"", 1);
    while (s.len && !line->cut)
        line_put(line, unit, json_escape(&s, unit));
    line->p[line->len++] = '"'; /* fits in the bytes of TAIL_MAX */
}

static void line_put_number(struct line *line, const struct log_field *f)
{
    char text[24];
    size_t at = sizeof(text);
    bool negative = f->kind == LOG_FIELD_I64 && (int64_t)f->u < 0;
    uint64_t v = negative ? 0 - f->u : f->u;

    do
        text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    if (negative)
        text[--at] = '-';
    line_put(line, text + at, sizeof(text) - at);
}

static void put_key(struct line *line, const char *key)
{
    if (line->format == LOG_JSON) {
        put_z(line, line->len > 1 ? ",\"" : "\"");
        put_z(line, key);
        put_z(line, "\":");
    } else {
        put_z(line, " ");
        put_z(line, key);
        put_z(line, "=");
    }
}

/* Writes a field. When the key or a number does not fit, the field is left out; a text that does
 * not fit is cut. */
static void put_field(struct line *line, const struct log_field *f)
{
    size_t start = line->len;

    if (line->cut)
        return;
    put_key(line, f->key);
    if (line->cut || line->len + 2 > sizeof(line->p) - TAIL_MAX) {
        line->len = start;
        line->cut = true;
        return;
    }
    if (f->kind != LOG_FIELD_STR) {
        line_put_number(line, f);
        if (line->cut)
            line->len = start;
    } else if (line->format == LOG_JSON) {
        put_json_value(line, f->s);
    } else {
        put_text_value(line, f->s);
    }
}

static void put_fields(struct line *line, const struct log_field *f, size_t max)
{
    for (size_t i = 0; i < max && f[i].kind != LOG_FIELD_END; i++)
        put_field(line, &f[i]);
}

static void line_put_head(struct line *line, enum log_level level, const char *event)
{
    char when[CLOCK_ISO_LEN + 1];

    clock_iso(clock_wall_ms(), when);
    if (line->format == LOG_JSON) {
        put_z(line, "{");
        put_field(line, &(struct log_field){"time", LOG_FIELD_STR, str_z(when), 0});
        put_field(line, &(struct log_field){"level", LOG_FIELD_STR, str_z(level_names[level]), 0});
        put_field(line, &(struct log_field){"event", LOG_FIELD_STR, str_z(event), 0});
        return;
    }
    put_z(line, when);
    put_z(line, " ");
    put_z(line, level_names[level]);
    put_z(line, " ");
    put_z(line, event);
}

static void put_tail(struct line *line)
{
    static const char *const tails[2][2] = {
        [LOG_TEXT] = {"\n", " cut=true\n"},
        [LOG_JSON] = {"}\n", ",\"cut\":true}\n"},
    };
    const char *tail = tails[line->format][line->cut];
    size_t len = strlen(tail);

    BUG_ON(line->len + len > sizeof(line->p));
    memcpy(line->p + line->len, tail, len);
    line->len += len;
}

/* Writes a line. The caller holds the sink's lock, so a long line stays in one piece even when a
 * pipe accepts it in parts. If a line cannot be written, it is lost, because there is no other
 * place to report it. */
static void line_write(struct log_sink *sink, const struct line *line)
{
    size_t done = 0;

    while (done < line->len) {
        ssize_t n = write(sink->fd, line->p + done, line->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

static void build(struct line *line, const struct log *log, enum log_level level, const char *event,
                  const struct log_field *fields)
{
    line->len = 0;
    line->cut = false;
    line->format = (enum log_format)atomic_load_explicit(&log->sink->format, memory_order_relaxed);
    line_put_head(line, level, event);
    put_fields(line, log->with, ARRAY_SIZE(log->with));
    put_fields(line, fields, LOG_FIELDS_MAX);
    put_tail(line);
}

/* For each event whose window has ended, logs how many lines the rate limit has left out. */
static void log_settle(struct log_sink *sink, uint64_t now_ms)
{
    const struct log log = {.sink = sink};
    struct log_rate_slot slot;
    struct line line;

    while (log_rate_settle(&sink->rate, now_ms, &slot)) {
        build(&line, &log, slot.level, "log.left_out",
              LOG_FIELDS(log_z("of", slot.event), log_u("lines", slot.left_out)));
        line_write(sink, &line);
    }
    atomic_store_explicit(&sink->owing, sink->rate.owing > 0, memory_order_relaxed);
}

static bool log_admits(struct log_sink *sink, enum log_level level, const char *event)
{
    bool yes = true;
    uint64_t now_ms;

    if (level < LOG_WARN && !atomic_load_explicit(&sink->owing, memory_order_relaxed))
        return true;
    now_ms = clock_mono_ms();
    pthread_mutex_lock(&sink->lock);
    log_settle(sink, now_ms);
    if (level >= LOG_WARN)
        yes = log_rate_admit(&sink->rate, event, level, now_ms);
    if (!yes)
        atomic_store_explicit(&sink->owing, true, memory_order_relaxed);
    pthread_mutex_unlock(&sink->lock);
    return yes;
}

void log_event(const struct log *log, enum log_level level, const char *event,
               const struct log_field *fields)
{
    struct line line;

    if (!log_enabled(log, level) || !log_admits(log->sink, level, event))
        return;
    build(&line, log, level, event, fields);
    pthread_mutex_lock(&log->sink->lock);
    line_write(log->sink, &line);
    pthread_mutex_unlock(&log->sink->lock);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log && log->sink &&
           (int)level >= atomic_load_explicit(&log->sink->level, memory_order_relaxed);
}

struct log log_with(const struct log *parent, struct log_field field)
{
    struct log log = parent ? *parent : (struct log){0};

    for (size_t i = 0; i < ARRAY_SIZE(log.with); i++)
        if (log.with[i].kind == LOG_FIELD_END) {
            log.with[i] = field;
            return log;
        }
    bug(__FILE__, __LINE__, "a log context has at most four fields");
}

struct log_sink *log_sink_new(int fd, enum log_level level, enum log_format format)
{
    struct log_sink *sink = xcalloc(1, sizeof(*sink));

    sink->fd = fd;
    BUG_ON(pthread_mutex_init(&sink->lock, NULL) != 0);
    log_sink_set(sink, level, format);
    return sink;
}

void log_sink_set(struct log_sink *sink, enum log_level level, enum log_format format)
{
    atomic_store(&sink->level, (int)level);
    atomic_store(&sink->format, (int)format);
}

void log_sink_free(struct log_sink *sink)
{
    if (!sink)
        return;
    log_settle(sink, UINT64_MAX);
    pthread_mutex_destroy(&sink->lock);
    free(sink);
}

/* Log lines: one event in each line, as key=value or as JSON, with fields of the request that
 * caused it.
 *
 *     log_info(log, "bucket.created", log_s("bucket", name), log_u("objects", n));
 *
 * An event is a short dotted name that never changes; everything that varies is a field. A secret
 * is never a field. Lines go to one descriptor, and each is written under a lock, so lines of
 * several threads never mix; a line is cut at LOG_LINE_MAX bytes and then ends with cut=true. A
 * value stays one value on one line, whatever bytes it has: the text format quotes and escapes it
 * (\n, \x1b), and JSON replaces bytes that are not UTF-8 by U+FFFD. Keys and event names are
 * literals of letters, digits, '_' and '.'.
 *
 *     2026-11-15T21:30:00.123Z info bucket.created bucket=photos objects=3
 *     {"time":"2026-11-15T21:30:00.123Z","level":"info","event":"bucket.created","bucket":"photos"}
 *
 * A failure that repeats does not flood the log: for each event, at most LOG_BURST lines of level
 * warn and above are written in ten seconds. After those ten seconds, before the next line of any
 * event, a line log.left_out says how many lines were left out. Any thread may log. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };
enum { LOG_BURST = 20, LOG_LINE_MAX = 8 * 1024, LOG_FIELDS_MAX = 12 };

enum log_kind { LOG_FIELD_END, LOG_FIELD_STR, LOG_FIELD_U64, LOG_FIELD_I64 };

struct log_field {
    const char *key;
    enum log_kind kind;
    struct str s;
    uint64_t u;
};

struct log_sink; /* where lines go; several contexts may share a sink */

/* A context: the sink, and up to four fields that every line gets. It is passed by value. The
 * strings of its fields are borrowed for as long as the context lives. A NULL context pointer logs
 * nothing. */
struct log {
    struct log_sink *sink;
    struct log_field with[4];
};

struct log_sink *log_sink_new(int fd, enum log_level level, enum log_format format);
/* Frees the sink, after the last line. The caller closes the descriptor. */
void log_sink_free(struct log_sink *sink);
/* Changes level and format, when the configuration is reloaded. */
void log_sink_set(struct log_sink *sink, enum log_level level, enum log_format format);

/* Returns a copy of the parent with one more field. */
struct log log_with(const struct log *parent, struct log_field field);
bool log_enabled(const struct log *log, enum log_level level);

void log_event(const struct log *log, enum log_level level, const char *event,
               const struct log_field *fields); /* from LOG_FIELDS(...) */

static inline struct log_field log_s(const char *key, struct str s)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_STR, .s = s};
}

static inline struct log_field log_z(const char *key, const char *z)
{
    return log_s(key, str_z(z));
}

static inline struct log_field log_u(const char *key, uint64_t u)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_U64, .u = u};
}

static inline struct log_field log_i(const char *key, int64_t i)
{
    return (struct log_field){.key = key, .kind = LOG_FIELD_I64, .u = (uint64_t)i};
}

/* The array has a fixed size, so that unused fields at its end are empty and mark the end.
 * __VA_OPT__ could do the same, but cppcheck cannot read it. */
#define LOG_FIELDS(...) ((const struct log_field[LOG_FIELDS_MAX + 1]){__VA_ARGS__})
#define log_at(log, level, event, ...)                                                             \
    do {                                                                                           \
        if (log_enabled(log, level))                                                               \
            log_event(log, level, event, LOG_FIELDS(__VA_ARGS__));                                 \
    } while (0)

#define log_debug(log, event, ...) log_at(log, LOG_DEBUG, event, ##__VA_ARGS__)
#define log_info(log, event, ...)  log_at(log, LOG_INFO, event, ##__VA_ARGS__)
#define log_warn(log, event, ...)  log_at(log, LOG_WARN, event, ##__VA_ARGS__)
#define log_error(log, event, ...) log_at(log, LOG_ERROR, event, ##__VA_ARGS__)

#endif

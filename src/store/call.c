/* Functions that the commands share: reading arguments, and answering as Redis does. */
#include "store/embedded_int.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DOUBLE_MAX_CHARS = 512, LONG_DOUBLE_MAX_CHARS = 5 * 1024 };

void answer_bulk(struct call *c, struct str s)
{
    *c->reply = as_bulk(arena_str(c->arena, s));
}

void answer_error(struct call *c, const char *fmt, ...)
{
    va_list ap;
    struct buf text = BUF_INIT(64 * KIB);

    va_start(ap, fmt);
    buf_vappendf(&text, fmt, ap);
    va_end(ap);
    *c->reply = (struct reply){.type = REPLY_ERROR, .str = arena_str(c->arena, buf_str(&text))};
    buf_release(&text);
}

void answer_wrong_type(struct call *c)
{
    answer_error(c, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void answer_syntax(struct call *c)
{
    answer_error(c, "ERR syntax error");
}

void answer_not_integer(struct call *c)
{
    answer_error(c, "ERR value is not an integer or out of range");
}

void answer_wrong_args(struct call *c)
{
    answer_error(c, "ERR wrong number of arguments for '%s' command", c->command->name);
}

struct reply *answer_array(struct call *c, size_t n)
{
    struct reply *items = arena_array(c->arena, n ? n : 1, sizeof(*items));
    *c->reply = (struct reply){.type = REPLY_ARRAY, .items = items, .count = items ? n : 0};
    return items;
}

void items_push(struct call *c, struct items *items, struct reply r)
{
    if (items->len == items->cap) {
        size_t cap = size_max(8, items->cap * 2);
        struct reply *p = arena_array(c->arena, cap, sizeof(*p));
        if (!p)
            return;
        if (items->len)
            memcpy(p, items->p, items->len * sizeof(*p));
        items->p = p;
        items->cap = cap;
    }
    items->p[items->len++] = r;
}

void items_push_copy(struct call *c, struct items *items, struct str s)
{
    items_push(c, items, as_bulk(arena_str(c->arena, s)));
}

void answer_items(struct call *c, const struct items *items)
{
    *c->reply = (struct reply){.type = REPLY_ARRAY, .items = items->p, .count = items->len};
}

bool number_parse(struct str s, int64_t *out)
{
    bool negative = s.len > 1 && s.p[0] == '-';

    if (s.len == 0 || s.len > 20)
        return false;
    if (s.p[negative] < '1' || s.p[negative] > '9') {
        if (s.len != 1 || s.p[0] != '0')
            return false;
    }
    return str_i64(s, out) == 0;
}

/* Whether Redis accepts the number `v` that strtod() read from the text `s`. `read` is the number
 * of bytes that strtod() used, and `error` is the errno that it left. */
static bool sane(struct str s, size_t read, int error, long double v)
{
    bool out_of_range = error == ERANGE && (isinf(v) || v == 0);
    return !isspace((unsigned char)s.p[0]) && read == s.len && !out_of_range && !isnan(v);
}

bool double_parse(struct str s, double *out)
{
    char text[DOUBLE_MAX_CHARS], *end;
    double v;

    if (s.len == 0 || s.len >= sizeof(text))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    errno = 0;
    v = strtod(text, &end);
    if (!sane(s, (size_t)(end - text), errno, v))
        return false;
    *out = v;
    return true;
}

bool long_double_parse(struct str s, long double *out)
{
    char text[LONG_DOUBLE_MAX_CHARS], *end;
    long double v;

    if (s.len == 0 || s.len >= sizeof(text))
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    errno = 0;
    v = strtold(text, &end);
    if (!sane(s, (size_t)(end - text), errno, v))
        return false;
    *out = v;
    return true;
}

struct str double_print(struct arena *a, double v)
{
    if (isinf(v))
        return v > 0 ? STR("inf") : STR("-inf");
    return arena_fmt(a, "%.17g", v);
}

static struct str long_double_print(struct arena *a, long double v)
{
    char text[LONG_DOUBLE_MAX_CHARS];
    size_t len;

    if (isinf(v))
        return v > 0 ? STR("inf") : STR("-inf");
    len = (size_t)snprintf(text, sizeof(text), "%.17Lf", v);
    BUG_ON(len >= sizeof(text));
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    if (len == 2 && text[0] == '-' && text[1] == '0')
        return STR("0");
    return arena_str(a, str_n(text, len));
}

bool float_sum(struct call *c, long double value, long double by, struct str *out)
{
    value += by;
    if (isnan(value) || isinf(value)) {
        answer_error(c, "ERR increment would produce NaN or Infinity");
        return false;
    }
    *out = long_double_print(c->arena, value);
    return true;
}

bool arg_is(const struct call *c, size_t i, const char *word)
{
    return str_ieq(c->argv[i], str_z(word));
}

bool arg_int(struct call *c, size_t i, int64_t *out)
{
    if (number_parse(c->argv[i], out))
        return true;
    answer_not_integer(c);
    return false;
}

bool arg_int_between(struct call *c, size_t i, int64_t min, int64_t max, int64_t *out)
{
    if (!arg_int(c, i, out))
        return false;
    if (*out >= min && *out <= max)
        return true;
    answer_error(c, "ERR value is out of range, value must between %lld and %lld", (long long)min,
                 (long long)max);
    return false;
}

bool arg_positive(struct call *c, size_t i, const char *text, int64_t *out)
{
    if (number_parse(c->argv[i], out) && *out >= 0)
        return true;
    answer_error(c, "%s", text ? text : "ERR value is out of range, must be positive");
    return false;
}

bool arg_double(struct call *c, size_t i, double *out)
{
    if (double_parse(c->argv[i], out))
        return true;
    answer_error(c, "ERR value is not a valid float");
    return false;
}

bool range_normalize(int64_t *start, int64_t *stop, uint64_t count)
{
    int64_t n = (int64_t)count;

    if (*start < 0)
        *start = *start + n < 0 ? 0 : *start + n;
    if (*stop < 0)
        *stop += n;
    if (*stop >= n)
        *stop = n - 1;
    return *start <= *stop && *start < n;
}

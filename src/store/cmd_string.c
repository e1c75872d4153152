/* Commands on strings. */
#include "store/embedded_int.h"
#include "base/clock.h"

#include <math.h>

enum set_flags {
    SET_NX = 1,
    SET_XX = 2,
    SET_GET = 4,
    SET_KEEPTTL = 8,
    SET_PERSIST = 16,
    SET_EXPIRE = 32,
    SET_SECONDS = 64,
    SET_ABSOLUTE = 128,
};

struct set_options {
    unsigned flags;
    struct str expire; /* the text of the expiry time, if flags have SET_EXPIRE */
};

/* The option words of SET and GETEX. A row has the flags that the word sets, the flags that it
 * excludes, whether a value follows the word, and which of the two commands accepts the word. */
static const struct set_word {
    const char *word;
    unsigned sets, excludes;
    bool takes_value, in_set, in_getex;
} set_words[] = {
    {"nx", SET_NX, SET_XX, false, true, false},
    {"xx", SET_XX, SET_NX, false, true, false},
    {"get", SET_GET, 0, false, true, false},
    {"keepttl", SET_KEEPTTL, SET_EXPIRE | SET_PERSIST, false, true, false},
    {"persist", SET_PERSIST, SET_EXPIRE | SET_KEEPTTL, false, false, true},
    {"ex", SET_EXPIRE | SET_SECONDS, SET_EXPIRE | SET_KEEPTTL | SET_PERSIST, true, true, true},
    {"px", SET_EXPIRE, SET_EXPIRE | SET_KEEPTTL | SET_PERSIST, true, true, true},
    {"exat", SET_EXPIRE | SET_SECONDS | SET_ABSOLUTE, SET_EXPIRE | SET_KEEPTTL | SET_PERSIST, true,
     true, true},
    {"pxat", SET_EXPIRE | SET_ABSOLUTE, SET_EXPIRE | SET_KEEPTTL | SET_PERSIST, true, true, true},
};

static const int64_t string_max = 512 * 1024 * 1024; /* bytes; Redis's limit too */

static const struct set_word *find_word(struct call *c, size_t i, bool getex)
{
    for (size_t w = 0; w < ARRAY_SIZE(set_words); w++)
        if (arg_is(c, i, set_words[w].word) &&
            (getex ? set_words[w].in_getex : set_words[w].in_set))
            return &set_words[w];
    return NULL;
}

static bool parse_options(struct call *c, size_t i, bool getex, struct set_options *o)
{
    *o = (struct set_options){0};
    for (; i < c->argc; i++) {
        const struct set_word *w = find_word(c, i, getex);
        if (!w || o->flags & w->excludes || (w->takes_value && i + 1 == c->argc)) {
            answer_syntax(c);
            return false;
        }
        o->flags |= w->sets;
        if (w->takes_value)
            o->expire = c->argv[++i];
    }
    return true;
}

/* Reads an expiry time from an argument and converts it to ms since 1970. `flags` say whether it is
 * in seconds or ms, and absolute or from now. False: the call was answered with Redis's error. */
static bool expire_time(struct call *c, struct str arg, unsigned flags, int64_t *out)
{
    int64_t when;
    bool seconds = flags & SET_SECONDS;

    if (!number_parse(arg, &when)) {
        answer_not_integer(c);
        return false;
    }
    if (when <= 0 || (seconds && when > INT64_MAX / MS_PER_S))
        goto out;
    if (seconds)
        when *= MS_PER_S;
    if (!(flags & SET_ABSOLUTE)) {
        if (when > INT64_MAX - c->run->now_ms)
            goto out;
        when += c->run->now_ms;
    }
    *out = when;
    return true;
out:
    answer_error(c, "ERR invalid expire time in '%s' command", c->command->name);
    return false;
}

static void answer_value(struct call *c, const struct object *o)
{
    if (o->m.type == TYPE_STRING)
        answer_bulk(c, o->m.value);
}

void cmd_get(struct call *c)
{
    struct object o;
    if (object_want(c, c->argv[1], TYPE_STRING, &o))
        answer_value(c, &o);
}

void cmd_set(struct call *c)
{
    struct set_options options;
    struct object o;
    int64_t expire_ms = 0;

    if (!parse_options(c, 3, false, &options) ||
        ((options.flags & SET_EXPIRE) &&
         !expire_time(c, options.expire, options.flags, &expire_ms)) ||
        !object_load(c, c->argv[1], &o))
        return;
    if (options.flags & SET_GET) {
        if (o.m.type > TYPE_STRING) {
            answer_wrong_type(c);
            return;
        }
        answer_value(c, &o);
    }
    if (((options.flags & SET_NX) && o.m.type != TYPE_NONE) ||
        ((options.flags & SET_XX) && o.m.type == TYPE_NONE))
        return;
    if (options.flags & SET_KEEPTTL)
        expire_ms = o.m.expire_ms;
    object_set_string(c, &o, c->argv[2], expire_ms);
    if (!(options.flags & SET_GET))
        answer_ok(c);
}

void cmd_setnx(struct call *c)
{
    struct object o;

    if (!object_load(c, c->argv[1], &o))
        return;
    answer_int(c, o.m.type == TYPE_NONE);
    if (o.m.type == TYPE_NONE)
        object_set_string(c, &o, c->argv[2], 0);
}

static void set_with_time(struct call *c, unsigned flags)
{
    struct object o;
    int64_t expire_ms;

    if (!expire_time(c, c->argv[2], flags, &expire_ms) || !object_load(c, c->argv[1], &o))
        return;
    object_set_string(c, &o, c->argv[3], expire_ms);
    answer_ok(c);
}

void cmd_setex(struct call *c)
{
    set_with_time(c, SET_SECONDS);
}

void cmd_psetex(struct call *c)
{
    set_with_time(c, 0);
}

void cmd_getset(struct call *c)
{
    struct object o;

    if (!object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    answer_value(c, &o);
    object_set_string(c, &o, c->argv[2], 0);
}

void cmd_getdel(struct call *c)
{
    struct object o;

    if (!object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    answer_value(c, &o);
    object_drop(c, &o);
}

void cmd_getex(struct call *c)
{
    struct set_options options;
    struct object o;
    int64_t expire_ms = 0;

    if (!parse_options(c, 2, true, &options) || !object_want(c, c->argv[1], TYPE_STRING, &o) ||
        o.m.type == TYPE_NONE)
        return;
    if ((options.flags & SET_EXPIRE) && !expire_time(c, options.expire, options.flags, &expire_ms))
        return;
    answer_value(c, &o);
    if ((options.flags & SET_EXPIRE) && expire_ms <= c->run->now_ms)
        object_drop(c, &o);
    else if (options.flags & (SET_EXPIRE | SET_PERSIST))
        object_set_expire(c, &o, expire_ms);
}

void cmd_mget(struct call *c)
{
    struct reply *items = answer_array(c, c->argc - 1);
    struct object o;

    for (size_t i = 1; items && i < c->argc && object_load(c, c->argv[i], &o); i++)
        if (o.m.type == TYPE_STRING)
            items[i - 1] = as_bulk(arena_str(c->arena, o.m.value));
}

static void string_set_pairs(struct call *c)
{
    struct object o;
    for (size_t i = 1; i < c->argc && object_load(c, c->argv[i], &o); i += 2)
        object_set_string(c, &o, c->argv[i + 1], 0);
}

void cmd_mset(struct call *c)
{
    if (c->argc % 2 == 0) {
        answer_wrong_args(c);
        return;
    }
    string_set_pairs(c);
    answer_ok(c);
}

void cmd_msetnx(struct call *c)
{
    struct object o;

    if (c->argc % 2 == 0) {
        answer_wrong_args(c);
        return;
    }
    answer_int(c, 0);
    for (size_t i = 1; i < c->argc; i += 2)
        if (!object_load(c, c->argv[i], &o) || o.m.type != TYPE_NONE)
            return;
    string_set_pairs(c);
    answer_int(c, 1);
}

void cmd_strlen(struct call *c)
{
    struct object o;
    if (object_want(c, c->argv[1], TYPE_STRING, &o))
        answer_int(c, (int64_t)o.m.value.len);
}

static bool length_ok(struct call *c, int64_t length)
{
    if (length <= string_max)
        return true;
    answer_error(c, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

/* Returns a copy of `value`, in the arena, with `s` written at `offset`. If `offset` is past the
 * end of `value`, zero bytes fill the gap. */
static struct str overwrite(struct call *c, struct str value, size_t offset, struct str s)
{
    size_t len = size_max(value.len, offset + s.len);
    char *p = arena_alloc(c->arena, len);

    if (!p)
        return STR_EMPTY;
    if (value.len)
        memcpy(p, value.p, value.len);
    if (s.len)
        memcpy(p + offset, s.p, s.len);
    return str_n(p, len);
}

static void write_at(struct call *c, struct object *o, size_t offset, struct str s)
{
    struct str value = overwrite(c, o->m.value, offset, s);
    object_set_string(c, o, value, o->m.expire_ms);
    answer_int(c, (int64_t)value.len);
}

void cmd_append(struct call *c)
{
    struct object o;

    if (object_want(c, c->argv[1], TYPE_STRING, &o) &&
        length_ok(c, (int64_t)(o.m.value.len + c->argv[2].len)))
        write_at(c, &o, o.m.value.len, c->argv[2]);
}

void cmd_setrange(struct call *c)
{
    struct object o;
    int64_t offset;

    if (!arg_int(c, 2, &offset))
        return;
    if (offset < 0) {
        answer_error(c, "ERR offset is out of range");
        return;
    }
    if (!object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    if (c->argv[3].len == 0)
        answer_int(c, (int64_t)o.m.value.len);
    else if (length_ok(c, offset > string_max ? offset : offset + (int64_t)c->argv[3].len))
        write_at(c, &o, (size_t)offset, c->argv[3]);
}

void cmd_getrange(struct call *c)
{
    struct object o;
    int64_t start, end, n;

    if (!arg_int(c, 2, &start) || !arg_int(c, 3, &end) ||
        !object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    *c->reply = as_bulk(STR(""));
    n = (int64_t)o.m.value.len;
    if (n == 0 || (start < 0 && end < 0 && start > end))
        return;
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    start = start < 0 ? 0 : start;
    end = end < 0 ? 0 : end >= n ? n - 1 : end;
    if (start <= end)
        answer_bulk(c, str_n(o.m.value.p + start, (size_t)(end - start + 1)));
}

static void increment(struct call *c, int64_t by)
{
    struct object o;
    int64_t value = 0;

    if (!object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    if (o.m.type == TYPE_STRING && !number_parse(o.m.value, &value)) {
        answer_not_integer(c);
        return;
    }
    if (__builtin_add_overflow(value, by, &value)) {
        answer_error(c, "ERR increment or decrement would overflow");
        return;
    }
    object_set_string(c, &o, arena_fmt(c->arena, "%lld", (long long)value), o.m.expire_ms);
    answer_int(c, value);
}

void cmd_incr(struct call *c)
{
    increment(c, 1);
}

void cmd_decr(struct call *c)
{
    increment(c, -1);
}

void cmd_incrby(struct call *c)
{
    int64_t by;
    if (arg_int(c, 2, &by))
        increment(c, by);
}

void cmd_decrby(struct call *c)
{
    int64_t by;

    if (!arg_int(c, 2, &by))
        return;
    if (by == INT64_MIN)
        answer_error(c, "ERR decrement would overflow");
    else
        increment(c, -by);
}

void cmd_incrbyfloat(struct call *c)
{
    struct object o;
    long double value = 0, by;
    struct str text;

    if (!object_want(c, c->argv[1], TYPE_STRING, &o))
        return;
    if ((o.m.type == TYPE_STRING && !long_double_parse(o.m.value, &value)) ||
        !long_double_parse(c->argv[2], &by)) {
        answer_error(c, "ERR value is not a valid float");
        return;
    }
    if (!float_sum(c, value, by, &text))
        return;
    object_set_string(c, &o, text, o.m.expire_ms);
    *c->reply = as_bulk(text);
}

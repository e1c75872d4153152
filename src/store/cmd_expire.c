/* Commands on the expiry time of a key. */
#include "store/embedded_int.h"
#include "base/clock.h"

enum expire_flags { EXPIRE_NX = 1, EXPIRE_XX = 2, EXPIRE_GT = 4, EXPIRE_LT = 8 };

static bool parse_flags(struct call *c, unsigned *flags)
{
    static const char *const words[] = {"nx", "xx", "gt", "lt"};

    *flags = 0;
    for (size_t i = 3; i < c->argc; i++) {
        unsigned flag = 0;
        for (size_t w = 0; w < ARRAY_SIZE(words); w++)
            if (arg_is(c, i, words[w]))
                flag = 1u << w;
        if (!flag) {
            answer_error(c, "ERR Unsupported option " STR_FMT, STR_ARG(c->argv[i]));
            return false;
        }
        *flags |= flag;
    }
    if ((*flags & EXPIRE_NX) && (*flags & ~(unsigned)EXPIRE_NX)) {
        answer_error(c, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*flags & EXPIRE_GT) && (*flags & EXPIRE_LT)) {
        answer_error(c, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* Whether the flags let the expiry time `when` replace `current` (0: the key never expires). */
static bool allowed(unsigned flags, int64_t current, int64_t when)
{
    if ((flags & EXPIRE_NX) && current)
        return false;
    if ((flags & EXPIRE_XX) && !current)
        return false;
    if ((flags & EXPIRE_GT) && (!current || when <= current))
        return false;
    return !(flags & EXPIRE_LT) || !current || when < current;
}

/* Sets the key's expiry time to `base` (ms since 1970) plus argument 2, which counts units of
 * `unit` ms. With base 0, argument 2 is a time since 1970 itself. */
static void set_time(struct call *c, int64_t base, int64_t unit)
{
    struct object o;
    unsigned flags;
    int64_t when;

    if (!parse_flags(c, &flags) || !arg_int(c, 2, &when))
        return;
    if (__builtin_mul_overflow(when, unit, &when) || __builtin_add_overflow(when, base, &when)) {
        answer_error(c, "ERR invalid expire time in '%s' command", c->command->name);
        return;
    }
    if (!object_load(c, c->argv[1], &o))
        return;
    if (o.m.type == TYPE_NONE || !allowed(flags, o.m.expire_ms, when)) {
        answer_int(c, 0);
        return;
    }
    if (when <= c->run->now_ms)
        object_drop(c, &o);
    else
        object_set_expire(c, &o, when);
    answer_int(c, 1);
}

void cmd_expire(struct call *c)
{
    set_time(c, c->run->now_ms, MS_PER_S);
}

void cmd_pexpire(struct call *c)
{
    set_time(c, c->run->now_ms, 1);
}

void cmd_expireat(struct call *c)
{
    set_time(c, 0, MS_PER_S);
}

void cmd_pexpireat(struct call *c)
{
    set_time(c, 0, 1);
}

/* Answers -2 if the key does not exist, -1 if it never expires, else its expiry time minus `base`
 * (ms since 1970), rounded to units of `unit` ms. */
static void answer_time(struct call *c, int64_t base, int64_t unit)
{
    struct object o;
    int64_t left;

    if (!object_load(c, c->argv[1], &o))
        return;
    left = o.m.expire_ms - base;
    if (o.m.type == TYPE_NONE)
        answer_int(c, -2);
    else if (!o.m.expire_ms)
        answer_int(c, -1);
    else
        answer_int(c, left / unit +
                          (left % unit * 2 >= unit)); /* this form rounds, and cannot overflow */
}

void cmd_ttl(struct call *c)
{
    answer_time(c, c->run->now_ms, MS_PER_S);
}

void cmd_pttl(struct call *c)
{
    answer_time(c, c->run->now_ms, 1);
}

void cmd_expiretime(struct call *c)
{
    answer_time(c, 0, MS_PER_S);
}

void cmd_pexpiretime(struct call *c)
{
    answer_time(c, 0, 1);
}

void cmd_persist(struct call *c)
{
    struct object o;

    if (!object_load(c, c->argv[1], &o))
        return;
    answer_int(c, o.m.expire_ms != 0);
    if (o.m.expire_ms)
        object_set_expire(c, &o, 0);
}

/* Commands on hashes. */
#include "store/embedded_int.h"

#include <math.h>

enum parts { FIELDS = 1, VALUES = 2 };
/* An HSET that creates a hash compares its fields with each other to find duplicates. If the HSET
 * has more arguments than FRESH_ARGS, it looks up every field in the hash instead. */
enum { FRESH_ARGS = 34 };

static bool want_hash(struct call *c, struct object *o)
{
    return object_want(c, c->argv[1], TYPE_HASH, o);
}

static bool want_or_create(struct call *c, struct object *o)
{
    if (!want_hash(c, o))
        return false;
    if (o->m.type == TYPE_NONE)
        object_create(c, o, TYPE_HASH);
    return true;
}

static void save_changed(struct call *c, struct object *o)
{
    if (o->changed)
        object_save(c, o);
}

/* Whether an earlier pair of the command sets the same field as the pair at argument `i`. */
static bool is_again(const struct call *c, size_t i)
{
    for (size_t k = 2; k < i; k += 2)
        if (str_eq(c->argv[k], c->argv[i]))
            return true;
    return false;
}

/* Sets the pairs that begin at argument 2. *added is the number of new fields. False: the call was
 * answered with an error. */
static bool hash_set_pairs(struct call *c, int64_t *added)
{
    struct object o;
    uint64_t before;

    if (c->argc % 2) {
        answer_wrong_args(c);
        return false;
    }
    if (!want_or_create(c, &o))
        return false;
    before = o.m.count;
    /* A new hash has no fields yet, so fields need not be looked up: is_again() finds
     * duplicates. */
    bool fresh = before == 0 && c->argc <= FRESH_ARGS;
    for (size_t i = 2; i < c->argc; i += 2) {
        if (fresh)
            member_write(c, &o, c->argv[i], c->argv[i + 1], !is_again(c, i));
        else
            member_put(c, &o, c->argv[i], c->argv[i + 1]);
    }
    *added = (int64_t)(o.m.count - before);
    save_changed(c, &o);
    return true;
}

void cmd_hset(struct call *c)
{
    int64_t added;
    if (hash_set_pairs(c, &added))
        answer_int(c, added);
}

void cmd_hmset(struct call *c)
{
    int64_t added;
    if (hash_set_pairs(c, &added))
        answer_ok(c);
}

void cmd_hsetnx(struct call *c)
{
    struct object o;
    struct str value;

    if (!want_or_create(c, &o))
        return;
    if (member_get(c, &o, c->argv[2], &value)) {
        answer_int(c, 0);
        return;
    }
    member_write(c, &o, c->argv[2], c->argv[3], true);
    object_save(c, &o);
    answer_int(c, 1);
}

void cmd_hget(struct call *c)
{
    struct object o;
    struct str value;

    if (want_hash(c, &o) && member_get(c, &o, c->argv[2], &value))
        answer_bulk(c, value);
}

void cmd_hmget(struct call *c)
{
    struct object o;
    struct str value;
    struct reply *items;

    if (!want_hash(c, &o))
        return;
    items = answer_array(c, c->argc - 2);
    for (size_t i = 2; items && i < c->argc; i++)
        if (member_get(c, &o, c->argv[i], &value))
            items[i - 2] = as_bulk(arena_str(c->arena, value));
}

static void answer_all(struct call *c, enum parts parts)
{
    struct object o;
    struct member_walk w;
    struct items items = {0};

    if (!want_hash(c, &o))
        return;
    if (o.m.type == TYPE_HASH) {
        members_open(&w, c->run, &o, 0);
        while (members_next(&w) && !c->arena->failed) {
            if (parts & FIELDS)
                items_push_copy(c, &items, w.member);
            if (parts & VALUES)
                items_push_copy(c, &items, w.value);
        }
        members_close(&w);
    }
    answer_items(c, &items);
}

void cmd_hgetall(struct call *c)
{
    answer_all(c, FIELDS | VALUES);
}

void cmd_hkeys(struct call *c)
{
    answer_all(c, FIELDS);
}

void cmd_hvals(struct call *c)
{
    answer_all(c, VALUES);
}

void cmd_hlen(struct call *c)
{
    struct object o;
    if (want_hash(c, &o))
        answer_int(c, (int64_t)o.m.count);
}

void cmd_hexists(struct call *c)
{
    struct object o;
    struct str value;
    if (want_hash(c, &o))
        answer_int(c, member_get(c, &o, c->argv[2], &value));
}

void cmd_hstrlen(struct call *c)
{
    struct object o;
    struct str value = STR_EMPTY;
    if (want_hash(c, &o))
        answer_int(c, member_get(c, &o, c->argv[2], &value) ? (int64_t)value.len : 0);
}

void cmd_hdel(struct call *c)
{
    struct object o;
    uint64_t before;

    if (!want_hash(c, &o))
        return;
    before = o.m.count;
    for (size_t i = 2; i < c->argc && o.m.count; i++)
        member_delete(c, &o, c->argv[i]);
    answer_int(c, (int64_t)(before - o.m.count));
    save_changed(c, &o);
}

static void hash_put_number(struct call *c, struct object *o, struct str text, bool is_new)
{
    if (o->m.type == TYPE_NONE)
        object_create(c, o, TYPE_HASH);
    member_write(c, o, c->argv[2], text, is_new);
    save_changed(c, o);
}

void cmd_hincrby(struct call *c)
{
    struct object o;
    struct str old;
    int64_t value = 0, by;
    bool exists;

    if (!arg_int(c, 3, &by) || !want_hash(c, &o))
        return;
    exists = member_get(c, &o, c->argv[2], &old);
    if (exists && !number_parse(old, &value)) {
        answer_error(c, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(value, by, &value)) {
        answer_error(c, "ERR increment or decrement would overflow");
        return;
    }
    hash_put_number(c, &o, arena_fmt(c->arena, "%lld", (long long)value), !exists);
    answer_int(c, value);
}

void cmd_hincrbyfloat(struct call *c)
{
    struct object o;
    struct str old, text;
    long double value = 0, by;
    bool exists;

    if (!long_double_parse(c->argv[3], &by)) {
        answer_error(c, "ERR value is not a valid float");
        return;
    }
    if (isinf(by)) {
        answer_error(c, "ERR value is NaN or Infinity");
        return;
    }
    if (!want_hash(c, &o))
        return;
    exists = member_get(c, &o, c->argv[2], &old);
    if (exists && !long_double_parse(old, &value)) {
        answer_error(c, "ERR hash value is not a float");
        return;
    }
    if (!float_sum(c, value, by, &text))
        return;
    hash_put_number(c, &o, text, !exists);
    *c->reply = as_bulk(text);
}

void cmd_hscan(struct call *c)
{
    scan_members(c, TYPE_HASH);
}

void cmd_hrandfield(struct call *c)
{
    answer_random(c, TYPE_HASH, "withvalues");
}

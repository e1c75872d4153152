/* Commands that change the ends of lists, and commands that read lists. */
#include "store/list_rows.h"

static void list_answer_push(struct call *c, bool left, bool only_existing)
{
    struct object o;

    if (!list_want(c, c->argv[1], &o))
        return;
    if (only_existing && o.m.type == TYPE_NONE) {
        answer_int(c, 0);
        return;
    }
    for (size_t i = 2; i < c->argc; i++)
        list_push_item(c, &o, left, c->argv[i]);
    object_save(c, &o);
    answer_int(c, (int64_t)o.m.count);
}

void cmd_lpush(struct call *c)
{
    list_answer_push(c, true, false);
}

void cmd_rpush(struct call *c)
{
    list_answer_push(c, false, false);
}

void cmd_lpushx(struct call *c)
{
    list_answer_push(c, true, true);
}

void cmd_rpushx(struct call *c)
{
    list_answer_push(c, false, true);
}

static void pop_many(struct call *c, struct object *o, bool left, uint64_t count)
{
    struct items items = {0};

    for (; count && o->m.count && c->run->code == 0 && !c->arena->failed; count--)
        items_push(c, &items, as_bulk(list_pop_item(c, o, left)));
    object_save(c, o);
    answer_items(c, &items);
}

static void list_answer_pop(struct call *c, bool left)
{
    struct object o;
    int64_t count = 1;

    if (c->argc > 3) {
        answer_wrong_args(c);
        return;
    }
    if ((c->argc == 3 && !arg_positive(c, 2, NULL, &count)) || !list_want(c, c->argv[1], &o) ||
        o.m.type == TYPE_NONE)
        return;
    if (c->argc == 3 && count == 0) {
        answer_array(c, 0);
    } else if (c->argc == 3) {
        pop_many(c, &o, left, (uint64_t)count);
    } else {
        *c->reply = as_bulk(list_pop_item(c, &o, left));
        object_save(c, &o);
    }
}

void cmd_lpop(struct call *c)
{
    list_answer_pop(c, true);
}

void cmd_rpop(struct call *c)
{
    list_answer_pop(c, false);
}

void cmd_llen(struct call *c)
{
    struct object o;
    if (list_want(c, c->argv[1], &o))
        answer_int(c, (int64_t)o.m.count);
}

void cmd_lrange(struct call *c)
{
    struct object o;
    struct items items = {0};
    int64_t start, stop;

    if (!arg_int(c, 2, &start) || !arg_int(c, 3, &stop) || !list_want(c, c->argv[1], &o))
        return;
    if (range_normalize(&start, &stop, o.m.count))
        items = list_read(c, &o, start, stop + 1);
    answer_items(c, &items);
}

/* Returns the position, counted from 0, of the item with this index. A negative index counts from
 * the end. -1: the list has no such item. */
static int64_t position_of(const struct object *o, int64_t index)
{
    int64_t n = (int64_t)o->m.count;

    if (index < 0)
        index += n;
    return index >= 0 && index < n ? index : -1;
}

void cmd_lindex(struct call *c)
{
    struct object o;
    struct str value;
    int64_t index;

    if (!list_want(c, c->argv[1], &o) || o.m.type == TYPE_NONE || !arg_int(c, 2, &index))
        return;
    index = position_of(&o, index);
    if (index >= 0 && list_get(c, &o, index, &value))
        answer_bulk(c, value);
}

void cmd_lset(struct call *c)
{
    struct object o;
    int64_t index;

    if (!object_load(c, c->argv[1], &o))
        return;
    if (o.m.type == TYPE_NONE) {
        answer_error(c, "ERR no such key");
        return;
    }
    if (o.m.type != TYPE_LIST) {
        answer_wrong_type(c);
        return;
    }
    if (!arg_int(c, 2, &index))
        return;
    index = position_of(&o, index);
    if (index < 0) {
        answer_error(c, "ERR index out of range");
        return;
    }
    list_put(c, &o, index, c->argv[3]);
    answer_ok(c);
}

static void list_answer_move(struct call *c, bool from_left, bool to_left)
{
    struct object from, to;
    struct str value;

    if (!list_want(c, c->argv[1], &from) || from.m.type == TYPE_NONE ||
        !list_want(c, c->argv[2], &to))
        return;
    value = list_pop_item(c, &from, from_left);
    if (str_eq(from.key, to.key)) {
        list_push_item(c, &from, to_left, value);
    } else {
        list_push_item(c, &to, to_left, value);
        object_save(c, &to);
    }
    object_save(c, &from);
    *c->reply = as_bulk(value);
}

void cmd_rpoplpush(struct call *c)
{
    list_answer_move(c, false, true);
}

static bool arg_side(struct call *c, size_t i, bool *left)
{
    *left = arg_is(c, i, "left");
    if (*left || arg_is(c, i, "right"))
        return true;
    answer_syntax(c);
    return false;
}

void cmd_lmove(struct call *c)
{
    bool from_left, to_left;
    if (arg_side(c, 3, &from_left) && arg_side(c, 4, &to_left))
        list_answer_move(c, from_left, to_left);
}

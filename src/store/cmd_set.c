/* Commands on single sets; cmd_setop.c has the commands that combine sets. */
#include "store/embedded_int.h"

static bool want_set(struct call *c, struct object *o)
{
    return object_want(c, c->argv[1], TYPE_SET, o);
}

void cmd_sadd(struct call *c)
{
    struct object o;
    int64_t added = 0;
    struct str old;

    if (!want_set(c, &o))
        return;
    if (o.m.type == TYPE_NONE)
        object_create(c, &o, TYPE_SET);
    for (size_t i = 2; i < c->argc; i++)
        if (!member_get(c, &o, c->argv[i], &old)) {
            member_write(c, &o, c->argv[i], STR_EMPTY, true);
            added++;
        }
    if (added)
        object_save(c, &o);
    answer_int(c, added);
}

void cmd_srem(struct call *c)
{
    struct object o;
    int64_t removed = 0;

    if (!want_set(c, &o))
        return;
    for (size_t i = 2; i < c->argc && o.m.count; i++)
        removed += member_delete(c, &o, c->argv[i]);
    if (removed)
        object_save(c, &o);
    answer_int(c, removed);
}

void cmd_scard(struct call *c)
{
    struct object o;
    if (want_set(c, &o))
        answer_int(c, (int64_t)o.m.count);
}

void cmd_sismember(struct call *c)
{
    struct object o;
    struct str value;
    if (want_set(c, &o))
        answer_int(c, member_get(c, &o, c->argv[2], &value));
}

void cmd_smismember(struct call *c)
{
    struct object o;
    struct str value;
    struct reply *items;

    if (!want_set(c, &o))
        return;
    items = answer_array(c, c->argc - 2);
    for (size_t i = 2; items && i < c->argc; i++)
        items[i - 2] = as_int(member_get(c, &o, c->argv[i], &value));
}

void cmd_smove(struct call *c)
{
    struct object from, to;
    struct str value;

    if (!object_load(c, c->argv[1], &from) || !object_load(c, c->argv[2], &to))
        return;
    answer_int(c, 0);
    if (from.m.type == TYPE_NONE)
        return;
    if (from.m.type != TYPE_SET || (to.m.type != TYPE_NONE && to.m.type != TYPE_SET)) {
        answer_wrong_type(c);
        return;
    }
    if (str_eq(from.key, to.key)) {
        answer_int(c, member_get(c, &from, c->argv[3], &value));
        return;
    }
    if (!member_delete(c, &from, c->argv[3]))
        return;
    object_save(c, &from);
    if (to.m.type == TYPE_NONE)
        object_create(c, &to, TYPE_SET);
    if (member_put(c, &to, c->argv[3], STR_EMPTY))
        object_save(c, &to);
    answer_int(c, 1);
}

static void answer_picks(struct call *c, const struct pick *picks, size_t n)
{
    struct reply *items = answer_array(c, n);
    for (size_t i = 0; items && i < n; i++)
        items[i] = as_bulk(picks[i].member);
}

static void set_pop(struct call *c, struct object *o, uint64_t count, bool single)
{
    size_t got;
    struct pick *picks = pick_members(c, o, count, false, &got);

    if (!picks)
        return;
    if (got == o->m.count) {
        object_drop(c, o);
    } else {
        for (size_t i = 0; i < got; i++)
            member_delete(c, o, picks[i].member);
        if (got)
            object_save(c, o);
    }
    if (!single)
        answer_picks(c, picks, got);
    else if (got)
        *c->reply = as_bulk(picks[0].member);
}

void cmd_spop(struct call *c)
{
    struct object o;
    int64_t count = 1;

    if (c->argc > 3) {
        answer_syntax(c);
        return;
    }
    if ((c->argc == 3 && !arg_positive(c, 2, NULL, &count)) || !want_set(c, &o))
        return;
    if (o.m.type == TYPE_SET)
        set_pop(c, &o, (uint64_t)count, c->argc == 2);
    else if (c->argc == 3)
        answer_array(c, 0);
}

void cmd_srandmember(struct call *c)
{
    answer_random(c, TYPE_SET, NULL);
}

void cmd_smembers(struct call *c)
{
    struct object o;
    struct version_range range;
    struct walk w;
    struct items items = {0};

    if (!want_set(c, &o))
        return;
    if (o.m.type == TYPE_SET) {
        version_range(&range, ROW_MEMBER, o.m.version);
        walk_version(&w, c->run, &range, false);
        while (walk_next(&w) && !c->arena->failed)
            items_push_copy(c, &items, member_of(w.key));
        walk_close(&w);
    }
    answer_items(c, &items);
}

void cmd_sscan(struct call *c)
{
    scan_members(c, TYPE_SET);
}

/* The rows of lists. Items have contiguous signed indexes, so a list grows at both ends without
 * moving any item. */
#include "store/list_rows.h"

bool list_want(struct call *c, struct str key, struct object *o)
{
    return object_want(c, key, TYPE_LIST, o);
}

bool list_get(struct call *c, const struct object *o, int64_t position, struct str *value)
{
    struct row row;
    row_item(&row, o->m.version, o->m.head + position);
    return run_get(c->run, row.key, value);
}

void list_put(struct call *c, struct object *o, int64_t position, struct str value)
{
    struct row row;
    row_item(&row, o->m.version, o->m.head + position);
    run_put(c->run, row.key, value);
}

void list_push_item(struct call *c, struct object *o, bool left, struct str value)
{
    if (o->m.type == TYPE_NONE)
        object_create(c, o, TYPE_LIST);
    if (left)
        o->m.head--;
    list_put(c, o, left ? 0 : (int64_t)o->m.count, value);
    o->m.count++;
}

struct str list_pop_item(struct call *c, struct object *o, bool left)
{
    int64_t position = left ? 0 : (int64_t)o->m.count - 1;
    struct str value = STR_EMPTY;
    struct row row;

    if (list_get(c, o, position, &value))
        value = arena_str(c->arena, value);
    row_item(&row, o->m.version, o->m.head + position);
    run_delete(c->run, row.key);
    if (left)
        o->m.head++;
    o->m.count--;
    return value;
}

void list_walk_open(struct list_walk *lw, struct call *c, const struct object *o, int64_t from,
                    int64_t to)
{
    row_item(&lw->from, o->m.version, o->m.head + from);
    row_item(&lw->to, o->m.version, o->m.head + to);
    walk_open(&lw->w, c->run, lw->from.key, lw->to.key, false);
}

void list_walk_open_reverse(struct list_walk *lw, struct call *c, const struct object *o)
{
    row_item(&lw->from, o->m.version, o->m.head);
    row_item(&lw->to, o->m.version, o->m.head + (int64_t)o->m.count);
    walk_open(&lw->w, c->run, lw->from.key, lw->to.key, true);
}

struct items list_read(struct call *c, const struct object *o, int64_t from, int64_t to)
{
    struct items items = {0};
    struct list_walk lw;

    if (from >= to)
        return items;
    list_walk_open(&lw, c, o, from, to);
    while (walk_next(&lw.w) && !c->arena->failed)
        items_push_copy(c, &items, lw.w.value);
    walk_close(&lw.w);
    return items;
}

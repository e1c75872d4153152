/* Members of hashes, sets and sorted sets: a row each. */
#include "store/embedded_int.h"

static void member_row(struct call *c, const struct object *o, struct str member, struct row *row)
{
    enum row_tag other, tag = type_tag(o->m.type, &other);
    row_hashed(row, c->arena, tag, o->m.version, run_hash(c->run, member), member);
}

bool member_get(struct call *c, const struct object *o, struct str member, struct str *value)
{
    struct row row;

    if (o->m.type == TYPE_NONE)
        return false;
    member_row(c, o, member, &row);
    if (run_get(c->run, row.key, value))
        return true;
    c->run->missed = true;
    return false;
}

void member_write(struct call *c, struct object *o, struct str member, struct str value,
                  bool is_new)
{
    struct row row;

    member_row(c, o, member, &row);
    run_put(c->run, row.key, value);
    o->m.count += is_new;
}

bool member_put(struct call *c, struct object *o, struct str member, struct str value)
{
    struct str old;
    bool is_new = !member_get(c, o, member, &old);

    member_write(c, o, member, value, is_new);
    return is_new;
}

bool member_delete(struct call *c, struct object *o, struct str member)
{
    struct str old;
    struct row row;

    if (!member_get(c, o, member, &old))
        return false;
    member_row(c, o, member, &row);
    run_delete(c->run, row.key);
    o->m.count--;
    return true;
}

struct str member_of(struct str row_key)
{
    return str_skip(row_key, ROW_HASHED);
}

void members_open(struct member_walk *w, struct run *run, const struct object *o, uint64_t from)
{
    enum row_tag other, tag = type_tag(o->m.type, &other);

    row_position(&w->from, tag, o->m.version, from);
    row_prefix(&w->to, tag, o->m.version + 1);
    walk_open(&w->rows, run, w->from.key, w->to.key, false);
}

bool members_next(struct member_walk *w)
{
    if (!walk_next(&w->rows))
        return false;
    w->member = member_of(w->rows.key);
    w->value = w->rows.value;
    w->cursor = row_read_be64(w->rows.key.p + ROW_PREFIX);
    return true;
}

void members_close(struct member_walk *w)
{
    walk_close(&w->rows);
}

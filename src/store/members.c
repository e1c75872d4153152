/* Members of hashes, sets and sorted sets. Each member has a row; in a small hash each member is a
 * pair in the owner row (docs/store.md, invariant 11). Callers do not see the difference. */
#include "store/embedded_int.h"
#include "base/bytes.h"

/* The place of a field among the pairs of a small hash. */
struct place {
    /* Offset and size of the field's pair, in bytes. If there is no such pair, `at` is the end of
     * the last pair, and `len` is 0. */
    size_t at, len;
    struct str value;
};

static struct place place_of(const struct meta *m, struct str field)
{
    struct str rest = m->value, name, value;
    size_t at = 0;

    while (pair_next(&rest, &name, &value)) {
        size_t end = m->value.len - rest.len;
        if (str_eq(name, field))
            return (struct place){at, end - at, value};
        at = end;
    }
    return (struct place){.at = at};
}

/* Copies the pairs of `m` and replaces the pair at *p by `size` bytes, which the caller fills.
 * Returns these bytes. NULL: the arena is full. */
static char *splice(struct call *c, struct meta *m, const struct place *p, size_t size)
{
    struct str after = str_skip(m->value, p->at + p->len);
    size_t len = p->at + size + after.len;
    char *pairs = arena_alloc(c->arena, len);

    if (!pairs)
        return NULL;
    if (p->at)
        memcpy(pairs, m->value.p, p->at);
    if (after.len)
        memcpy(pairs + p->at + size, after.p, after.len);
    m->value = str_n(pairs, len);
    return pairs + p->at;
}

static void member_row(struct call *c, const struct object *o, struct str member, struct row *row)
{
    enum row_tag other, tag = type_tag(o->m.type, &other);
    row_hashed(row, c->arena, tag, o->m.version, run_hash(c->run, member), member);
}

static void member_put_row(struct call *c, const struct object *o, struct str member,
                           struct str value)
{
    struct row row;
    member_row(c, o, member, &row);
    run_put(c->run, row.key, value);
}

/* Turns the pairs of a small hash into rows. The pairs are copied first, because run_new_version()
 * reads a row, which overwrites them. */
static void spill(struct call *c, struct object *o)
{
    struct str rest = arena_str(c->arena, o->m.value), field, value;

    o->m.small = false;
    o->m.value = STR_EMPTY;
    o->m.version = run_new_version(c->run);
    o->changed = true;
    while (pair_next(&rest, &field, &value))
        member_put_row(c, o, field, value);
}

/* Sets a field of a small hash. False: nothing was done, because the hash would not be small any
 * more. */
static bool write_small(struct call *c, struct object *o, struct str field, struct str value)
{
    struct place p = place_of(&o->m, field);
    size_t size = pair_size(field, value);
    char *to;

    if (o->m.value.len - p.len + size > SMALL_BYTES || o->m.count + !p.len > SMALL_FIELDS)
        return false;
    to = splice(c, &o->m, &p, size);
    if (to)
        pair_write(to, field, value);
    o->changed = true;
    return true;
}

bool member_get(struct call *c, const struct object *o, struct str member, struct str *value)
{
    struct row row;

    if (o->m.type == TYPE_NONE)
        return false;
    if (o->m.small) {
        struct place p = place_of(&o->m, member);
        *value = p.value;
        return p.len;
    }
    member_row(c, o, member, &row);
    if (run_get(c->run, row.key, value))
        return true;
    c->run->missed = true;
    return false;
}

void member_write(struct call *c, struct object *o, struct str member, struct str value,
                  bool is_new)
{
    if (!o->m.small || !write_small(c, o, member, value)) {
        if (o->m.small)
            spill(c, o);
        member_put_row(c, o, member, value);
    }
    o->m.count += is_new;
    o->changed |= is_new;
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
    struct place p;
    struct str old;
    struct row row;

    if (!member_get(c, o, member, &old))
        return false;
    if (o->m.small) {
        p = place_of(&o->m, member);
        splice(c, &o->m, &p, 0);
    } else {
        member_row(c, o, member, &row);
        run_delete(c->run, row.key);
    }
    o->m.count--;
    o->changed = true;
    return true;
}

struct str member_of(struct str row_key)
{
    return str_skip(row_key, ROW_HASHED);
}

void members_open(struct member_walk *w, struct run *run, const struct object *o, uint64_t from)
{
    enum row_tag other, tag = type_tag(o->m.type, &other);

    *w = (struct member_walk){.pairs = o->m.value};
    if (o->m.small)
        return;
    row_position(&w->from, tag, o->m.version, from);
    row_prefix(&w->to, tag, o->m.version + 1);
    walk_open(&w->rows, run, w->from.key, w->to.key, false);
}

bool members_next(struct member_walk *w)
{
    if (!w->rows.it)
        return pair_next(&w->pairs, &w->member, &w->value);
    if (!walk_next(&w->rows))
        return false;
    w->member = member_of(w->rows.key);
    w->value = w->rows.value;
    w->cursor = be64_read(w->rows.key.p + ROW_PREFIX);
    return true;
}

void members_close(struct member_walk *w)
{
    walk_close(&w->rows);
}

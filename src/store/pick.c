/* Random members of a collection (docs/store.md "Random choices"). */
#include "store/embedded_int.h"

#include "base/bytes.h"
#include "base/ids.h"

enum {
    PICK_EXACT = 128, /* number of members up to which choices are exactly uniform */
    /* If more than 1/16 of the members are wanted, the choice is made in a walk over all members,
     * not by a seek for each. */
    PICK_PART = 16,
};

static struct pick copy_member(struct call *c, const struct member_walk *w)
{
    return (struct pick){arena_str(c->arena, w->member), arena_str(c->arena, w->value)};
}

/* Picks `count` of all members by selection sampling (Knuth, volume 2, 3.4.2 S): each combination
 * is equally likely. */
static size_t pick_walk_all(struct call *c, const struct object *o, uint64_t count,
                            struct pick *out)
{
    struct member_walk w;
    uint64_t left = o->m.count;
    size_t got = 0;

    members_open(&w, c->run, o, 0);
    for (; left && got < count && members_next(&w); left--)
        if (random_below(left) < count - got)
            out[got++] = copy_member(c, &w);
    members_close(&w);
    return got;
}

/* Picks the first member whose hash is a random hash or greater; if there is no such member, the
 * first member of all. Returns false when there is no member. */
static bool seek_one(struct call *c, const struct object *o, struct pick *out)
{
    uint64_t from_hash = random_u64();
    bool found = false;

    for (int round = 0; round < 2 && !found; round++, from_hash = 0) {
        struct member_walk w;
        members_open(&w, c->run, o, from_hash);
        found = members_next(&w);
        if (found)
            *out = copy_member(c, &w);
        members_close(&w);
    }
    return found;
}

static bool already(const struct pick *out, size_t got, struct str member)
{
    for (size_t i = 0; i < got; i++)
        if (str_eq(out[i].member, member))
            return true;
    return false;
}

/* Picks `count` distinct members, at most PICK_EXACT, of a large collection by seeking random
 * hashes. If too many seeks find members that were found before, it walks over all members
 * instead. */
static size_t seek_some(struct call *c, const struct object *o, uint64_t count, struct pick *out)
{
    size_t got = 0;

    for (uint64_t tries = 0; got < count && tries < 8 * count + 64; tries++) {
        struct pick p;
        if (!seek_one(c, o, &p))
            return got;
        if (!already(out, got, p.member))
            out[got++] = p;
    }
    return got < count && c->run->code == 0 ? pick_walk_all(c, o, count, out) : got;
}

static void shuffle(struct pick *p, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t other = (size_t)random_below(i);
        struct pick swap = p[i - 1];
        p[i - 1] = p[other];
        p[other] = swap;
    }
}

/* Picks `count` members by independent draws, so that a member may come twice. The function draws
 * from a copy of all members, unless the collection is large and `count` a small part of it. */
static size_t repeat_some(struct call *c, const struct object *o, uint64_t count, struct pick *out)
{
    uint64_t n = o->m.count;
    struct pick *all;
    size_t got = 0;

    if (n > PICK_EXACT && count < n / PICK_PART) {
        while (got < count && seek_one(c, o, &out[got]))
            got++;
        return got;
    }
    all = arena_array(c->arena, n, sizeof(*all));
    if (!all || pick_walk_all(c, o, n, all) != n)
        return 0;
    for (; got < count; got++)
        out[got] = all[random_below(n)];
    return got;
}

struct pick *pick_members(struct call *c, const struct object *o, uint64_t count, bool repeat,
                          size_t *got)
{
    struct pick *out;

    if (!repeat && count > o->m.count)
        count = o->m.count;
    out = arena_array(c->arena, count ? count : 1, sizeof(*out));
    *got = 0;
    if (!out)
        return NULL;
    if (repeat)
        *got = repeat_some(c, o, count, out);
    else if (o->m.count <= PICK_EXACT || count > PICK_EXACT || count > o->m.count / PICK_PART)
        *got = pick_walk_all(c, o, count, out);
    else
        *got = seek_some(c, o, count, out);
    if (!repeat)
        shuffle(out, *got);
    return out;
}

static struct reply value_reply(struct call *c, enum value_type type, struct str value)
{
    if (type == TYPE_ZSET)
        return as_bulk(double_print(c->arena, score_decode(be64_read(value.p))));
    return as_bulk(value);
}

static void answer_picked(struct call *c, const struct object *o, int64_t count, bool values)
{
    size_t got, step = values ? 2 : 1;
    uint64_t n = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    struct pick *picks = pick_members(c, o, n, count < 0, &got);
    struct reply *items = picks ? answer_array(c, got * step) : NULL;

    for (size_t i = 0; items && i < got; i++) {
        items[i * step] = as_bulk(picks[i].member);
        if (values)
            items[i * step + 1] = value_reply(c, o->m.type, picks[i].value);
    }
}

void answer_random(struct call *c, enum value_type type, const char *values_word)
{
    struct object o;
    int64_t count = 1;
    bool values = false;
    size_t got;
    struct pick *one;

    if (c->argc > 3 && !values_word) {
        answer_syntax(c);
        return;
    }
    if (c->argc >= 3 && !arg_int_between(c, 2, -INT64_MAX, INT64_MAX, &count))
        return;
    if (c->argc > 4 || (c->argc == 4 && !arg_is(c, 3, values_word))) {
        answer_syntax(c);
        return;
    }
    values = c->argc == 4;
    if (values && (count < -INT64_MAX / 2 || count > INT64_MAX / 2)) {
        answer_error(c, "ERR value is out of range");
        return;
    }
    if (!object_want(c, c->argv[1], type, &o))
        return;
    if (c->argc >= 3 && (o.m.type == TYPE_NONE || count == 0)) {
        answer_array(c, 0);
    } else if (c->argc >= 3) {
        answer_picked(c, &o, count, values);
    } else if (o.m.type != TYPE_NONE) {
        one = pick_members(c, &o, 1, false, &got);
        if (one && got)
            *c->reply = as_bulk(one->member);
    }
}

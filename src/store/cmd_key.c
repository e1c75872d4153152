/* Commands on keys of any type, and commands that need no key. */
#include "store/embedded_int.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"

void cmd_ping(struct call *c)
{
    if (c->argc > 2)
        answer_wrong_args(c);
    else if (c->argc == 2)
        answer_bulk(c, c->argv[1]);
    else
        *c->reply = as_status(STR("PONG"));
}

/* Chooses the database for the following commands of a script, until the next SELECT or the end of
 * the script, as in Redis. SELECT is refused outside of scripts. */
void cmd_select(struct call *c)
{
    struct run *run = c->run;
    int64_t number;

    if (!number_parse(c->argv[1], &number)) {
        answer_error(c, "ERR invalid DB index");
    } else if (number < 0 || number >= STORE_DATABASES || !run->owners ||
               (number != run->home->base.number && !run->home->joined[number])) {
        answer_error(c, "ERR DB index is out of range");
    } else {
        if (number != run->e->base.number)
            run->e = number == run->home->base.number ? run->home : run->home->joined[number];
        answer_ok(c);
    }
}

void cmd_echo(struct call *c)
{
    answer_bulk(c, c->argv[1]);
}

/* Answers the time in ms at which the step began; it does not change within a step (docs/store.md,
 * invariant 7). */
void cmd_time(struct call *c)
{
    int64_t now_ms = c->run->now_ms;
    struct reply *items = answer_array(c, 2);

    if (!items)
        return;
    items[0] = as_bulk(arena_fmt(c->arena, "%lld", (long long)(now_ms / MS_PER_S)));
    items[1] = as_bulk(arena_fmt(c->arena, "%lld", (long long)(now_ms % MS_PER_S * US_PER_MS)));
}

void cmd_publish(struct call *c)
{
    struct run *run = c->run;
    int64_t n = pubsub_publish(run->home->pubsub, &run->published, c->argv[1], c->argv[2]);

    if (n < 0)
        run_fail(run, err_set(run->err, (int)n, "too many messages wait for delivery"));
    else
        answer_int(c, n);
}

void cmd_del(struct call *c)
{
    struct object o;
    int64_t deleted = 0;

    for (size_t i = 1; i < c->argc && object_load(c, c->argv[i], &o); i++) {
        deleted += o.m.type != TYPE_NONE;
        object_drop(c, &o);
    }
    answer_int(c, deleted);
}

void cmd_exists(struct call *c)
{
    struct object o;
    int64_t found = 0;

    for (size_t i = 1; i < c->argc && object_load(c, c->argv[i], &o); i++)
        found += o.m.type != TYPE_NONE;
    answer_int(c, found);
}

void cmd_type(struct call *c)
{
    struct object o;
    if (object_load(c, c->argv[1], &o))
        *c->reply = as_status(str_z(type_name(o.m.type)));
}

/* Loads the object at the key in argument 1. A string's value is copied, so that it stays valid
 * after the next read. False: the call was answered with an error. */
static bool load_source(struct call *c, struct object *o)
{
    if (!object_load(c, c->argv[1], o))
        return false;
    o->m.value = arena_str(c->arena, o->m.value);
    if (o->m.type == TYPE_NONE)
        answer_error(c, "ERR no such key");
    return o->m.type != TYPE_NONE;
}

void cmd_rename(struct call *c)
{
    struct object from, to;

    if (!load_source(c, &from) || !object_load(c, c->argv[2], &to))
        return;
    if (!str_eq(from.key, to.key))
        object_rename(c, &from, &to);
    answer_ok(c);
}

void cmd_renamenx(struct call *c)
{
    struct object from, to;

    if (!load_source(c, &from) || !object_load(c, c->argv[2], &to))
        return;
    answer_int(c, to.m.type == TYPE_NONE);
    if (to.m.type == TYPE_NONE)
        object_rename(c, &from, &to);
}

/* --- commands that walk over all keys --- */

struct key_walk {
    struct walk w;
    struct row from, to;
    struct str key;
    struct meta m;
};

static void keys_open(struct key_walk *k, struct run *run, uint64_t from_hash)
{
    row_prefix(&k->from, ROW_META, from_hash);
    k->to.small[0] = ROW_META + 1;
    walk_open(&k->w, run, k->from.key, str_n(k->to.small, 1), false);
}

/* Moves to the next key that has not expired. False: there is none, or reading failed. */
static bool key_walk_next(struct key_walk *k)
{
    while (walk_next(&k->w)) {
        if (meta_decode(&k->m, k->w.value) < 0) {
            run_fail(k->w.run, err_set(k->w.run->err, ERR_CORRUPT, "a key's row is damaged"));
            return false;
        }
        k->key = str_skip(k->w.key, ROW_PREFIX);
        if (!k->m.expire_ms || k->m.expire_ms > k->w.run->now_ms)
            return true;
    }
    return false;
}

void cmd_dbsize(struct call *c)
{
    struct key_walk k;
    int64_t n = 0;

    keys_open(&k, c->run, 0);
    while (key_walk_next(&k))
        n++;
    walk_close(&k.w);
    answer_int(c, n);
}

void cmd_keys(struct call *c)
{
    struct key_walk k;
    struct items items = {0};

    keys_open(&k, c->run, 0);
    while (key_walk_next(&k) && !c->arena->failed)
        if (glob_match(c->argv[1], k.key))
            items_push_copy(c, &items, k.key);
    walk_close(&k.w);
    answer_items(c, &items);
}

void cmd_flushdb(struct call *c)
{
    struct key_walk k;
    struct items keys = {0};
    struct object o;

    if (c->argc > 2 || (c->argc == 2 && !arg_is(c, 1, "async") && !arg_is(c, 1, "sync"))) {
        answer_syntax(c);
        return;
    }
    keys_open(&k, c->run, 0);
    while (walk_next(&k.w) && !c->arena->failed)
        items_push_copy(c, &keys, str_skip(k.w.key, ROW_PREFIX));
    walk_close(&k.w);
    for (size_t i = 0; i < keys.len && object_load(c, keys.p[i].str, &o); i++)
        object_drop(c, &o);
    answer_ok(c);
}

/* Answers the first key whose hash is a random hash or greater; if there is no such key, the first
 * key of all. As in Redis, the choice is not quite uniform. */
void cmd_randomkey(struct call *c)
{
    uint64_t from = random_u64();

    for (int round = 0; round < 2 && c->reply->type == REPLY_NIL; round++, from = 0) {
        struct key_walk k;
        keys_open(&k, c->run, from);
        if (key_walk_next(&k))
            answer_bulk(c, k.key);
        walk_close(&k.w);
    }
}

/* --- SCAN family: a cursor is the hash of the next row (docs/store.md "Rows") --- */

struct scan {
    uint64_t cursor;
    uint64_t count;
    struct str match; /* the pattern of MATCH; only if has_match */
    bool has_match;
    struct str type;
};

static bool scan_cursor(struct call *c, size_t i, uint64_t *out)
{
    if (str_u64(c->argv[i], out) == 0)
        return true;
    answer_error(c, "ERR invalid cursor");
    return false;
}

static bool scan_count(struct call *c, size_t i, uint64_t *out)
{
    int64_t n;

    if (!arg_int(c, i, &n))
        return false;
    if (n < 1)
        answer_syntax(c);
    *out = (uint64_t)n;
    return n >= 1;
}

static bool scan_options(struct call *c, size_t i, bool with_type, struct scan *s)
{
    s->count = 10;
    for (; i < c->argc; i += 2) {
        if (i + 1 < c->argc && arg_is(c, i, "count")) {
            if (!scan_count(c, i + 1, &s->count))
                return false;
        } else if (i + 1 < c->argc && arg_is(c, i, "match")) {
            s->match = c->argv[i + 1];
            s->has_match = !str_eq(s->match, STR("*"));
        } else if (i + 1 < c->argc && with_type && arg_is(c, i, "type")) {
            s->type = c->argv[i + 1];
        } else {
            answer_syntax(c);
            return false;
        }
    }
    return true;
}

static void scan_answer(struct call *c, uint64_t next, const struct items *items)
{
    struct reply *pair = answer_array(c, 2);

    if (!pair)
        return;
    pair[0] = as_bulk(arena_fmt(c->arena, "%llu", (unsigned long long)next));
    pair[1] = (struct reply){.type = REPLY_ARRAY, .items = items->p, .count = items->len};
}

void cmd_scan(struct call *c)
{
    struct scan s = {0};
    struct key_walk k;
    struct items items = {0};
    uint64_t seen = 0, hash = 0, next = 0;

    if (!scan_cursor(c, 1, &s.cursor) || !scan_options(c, 2, true, &s))
        return;
    keys_open(&k, c->run, s.cursor);
    while (key_walk_next(&k) && !c->arena->failed) {
        next = be64_read(k.w.key.p + 1);
        if (seen >= s.count && next != hash)
            break;
        hash = next;
        next = 0;
        seen++;
        if ((!s.has_match || glob_match(s.match, k.key)) &&
            (!s.type.p || str_ieq(s.type, str_z(type_name(k.m.type)))))
            items_push_copy(c, &items, k.key);
    }
    walk_close(&k.w);
    scan_answer(c, next, &items);
}

static void scan_push(struct call *c, struct items *items, const struct member_walk *w,
                      enum value_type type)
{
    items_push_copy(c, items, w->member);
    if (type == TYPE_HASH)
        items_push_copy(c, items, w->value);
    else if (type == TYPE_ZSET)
        items_push(c, items, as_bulk(double_print(c->arena, score_decode(be64_read(w->value.p)))));
}

/* Reads one page of the members, from s->cursor on. Returns the next cursor; 0: that was the last
 * page. */
static uint64_t scan_read_members(struct call *c, const struct object *o, const struct scan *s,
                                  struct items *items)
{
    struct member_walk w;
    uint64_t seen = 0, hash = 0, next = 0;

    members_open(&w, c->run, o, s->cursor);
    while (members_next(&w) && !c->arena->failed) {
        next = w.cursor;
        if (seen >= s->count && next != hash)
            break;
        hash = next;
        next = 0;
        seen++;
        if (!s->has_match || glob_match(s->match, w.member))
            scan_push(c, items, &w, o->m.type);
    }
    members_close(&w);
    return next;
}

void scan_members(struct call *c, enum value_type type)
{
    struct scan s = {0};
    struct items items = {0};
    struct object o;

    if (!scan_cursor(c, 2, &s.cursor) || !object_want(c, c->argv[1], type, &o))
        return;
    if (o.m.type == TYPE_NONE)
        scan_answer(c, 0, &items);
    else if (scan_options(c, 3, false, &s))
        scan_answer(c, scan_read_members(c, &o, &s, &items), &items);
}

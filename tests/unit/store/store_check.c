/* Rows against invariants. */
#include "unit/store/store_check.h"

#include "base/bytes.h"
#include "base/map.h"
#include "store/rows.h"

#include <stdio.h>
#include <stdlib.h>

/* What was seen of one version. */
struct owner {
    char version[8]; /* the map's key */
    struct meta m;   /* type NONE: no meta row */
    bool garbage;
    uint64_t members, orders;
    uint64_t score_sum; /* of member rows, minus that of order rows: 0 at the end */
    int64_t lowest, highest;
};

struct checker {
    struct store_check *out;
    struct map owners;
    uint64_t times; /* over keys with a time and expiry rows: sums that cancel */
    size_t timed;   /* collections with a time */
};

static void problem(struct checker *k, const char *what, struct str key)
{
    if (k->out->problems++)
        return;
    snprintf(k->out->problem, sizeof(k->out->problem), "%s: '%.*s'", what,
             (int)size_min(key.len, 100), key.p);
}

static struct owner *owner_of(struct checker *k, const char *version)
{
    struct owner *o = map_get(&k->owners, str_n(version, 8));

    if (!o) {
        o = xcalloc(1, sizeof(*o));
        memcpy(o->version, version, 8);
        o->lowest = INT64_MAX;
        o->highest = INT64_MIN;
        map_put(&k->owners, str_n(o->version, 8), o);
    }
    return o;
}

static uint64_t time_word(int64_t expire_ms, struct str hashed_key)
{
    return hash_xxh3(hashed_key, (uint64_t)expire_ms);
}

/* What hangs on the version in an owner row. */
static void owner_row(struct checker *k, struct str key, const struct meta *m)
{
    char version[8];
    struct owner *o;

    be64_write(version, m->version);
    o = owner_of(k, version);
    if (o->m.type != TYPE_NONE)
        problem(k, "a version with two owners", key);
    if (m->count == 0)
        problem(k, "an empty collection", key);
    o->m = *m;
}

static void small_row(struct checker *k, struct str key, const struct meta *m)
{
    struct str rest = m->value, again, field, other, value;

    while (pair_next(&rest, &field, &value)) {
        again = rest;
        while (pair_next(&again, &other, &value))
            if (str_eq(field, other))
                problem(k, "a field that is there twice", key);
    }
}

static void meta_row(struct checker *k, struct str key, struct str value)
{
    struct meta m;

    k->out->keys++;
    if (meta_decode(&m, value) < 0) {
        problem(k, "a meta row that cannot be read", key);
        return;
    }
    if (m.type == TYPE_STRING)
        return;
    if (m.small)
        small_row(k, key, &m);
    else
        owner_row(k, key, &m);
    if (m.expire_ms) {
        k->timed++;
        k->times += time_word(m.expire_ms, str_skip(key, 1));
    }
}

static void sub_row(struct checker *k, struct str key, struct str value)
{
    struct owner *o = owner_of(k, key.p + 1);
    uint64_t member = hash_xxh3(str_skip(key, ROW_HASHED), 0);

    switch (key.p[0]) {
    case ROW_ORDER:
        o->orders++;
        o->score_sum -= be64_read(key.p + ROW_PREFIX) ^ member;
        return;
    case ROW_SCORE:
        o->score_sum += be64_read(value.p) ^ member;
        break;
    case ROW_ITEM:
        o->lowest = o->lowest < row_item_index(key) ? o->lowest : row_item_index(key);
        o->highest = o->highest > row_item_index(key) ? o->highest : row_item_index(key);
        break;
    }
    o->members++;
}

static void one_row(struct checker *k, struct str key, struct str value)
{
    if (key.p[0] == ROW_SETTING)
        return;
    k->out->rows++;
    switch (key.p[0]) {
    case ROW_META:
        meta_row(k, key, value);
        break;
    case ROW_EXPIRY:
        k->out->expiry++;
        k->times -= time_word((int64_t)be64_read(key.p + 1), str_skip(key, ROW_PREFIX));
        break;
    case ROW_GARBAGE:
        k->out->garbage++;
        owner_of(k, key.p + 1)->garbage = true;
        break;
    case ROW_FIELD:
    case ROW_ITEM:
    case ROW_MEMBER:
    case ROW_ORDER:
    case ROW_SCORE:
        sub_row(k, key, value);
        break;
    default:
        problem(k, "an unknown row", key);
    }
}

static void check_owner(struct checker *k, const struct owner *o)
{
    struct str name = str_n(o->version, 8);

    if (o->m.type == TYPE_NONE) {
        if (o->garbage)
            k->out->dead += o->members + o->orders;
        else
            problem(k, "rows without an owner", name);
        return;
    }
    if (o->garbage)
        problem(k, "garbage that has an owner", name);
    if (o->m.count != o->members)
        problem(k, "a count that is not the number of members", name);
    if (o->orders != (o->m.type == TYPE_ZSET ? o->members : 0) || o->score_sum)
        problem(k, "member rows and order rows that differ", name);
    if (o->m.type == TYPE_LIST &&
        (o->lowest != o->m.head || o->highest - o->lowest + 1 != (int64_t)o->members))
        problem(k, "a list with a hole", name);
}

static int walk_rows(struct checker *k, struct db_view *view, struct db_cf *cf, struct err *err)
{
    struct db_iter *it;
    struct str key, value;
    int rc = db_iter_open(&it, view, cf, &(struct db_range){0}, err);

    if (rc < 0)
        return rc;
    while ((rc = db_iter_next(it, &key, &value, err)) == 0)
        one_row(k, key, value);
    db_iter_close(it);
    return rc == ERR_END ? 0 : rc;
}

int store_check(struct store_check *out, struct db *db, int number, struct err *err)
{
    struct checker k = {.out = out};
    struct db_view *view;
    char name[16];
    size_t cursor = 0;
    struct str key;
    void *owner;
    int rc;

    *out = (struct store_check){0};
    snprintf(name, sizeof(name), "store%d", number);
    rc = db_snapshot(&view, db, err);
    if (rc < 0)
        return rc;
    map_init(&k.owners);
    rc = walk_rows(&k, view, db_cf(db, name), err);
    db_snapshot_free(view);
    while (map_next(&k.owners, &cursor, &key, &owner)) {
        check_owner(&k, owner);
        map_remove(&k.owners, key);
        free(owner);
    }
    map_release(&k.owners);
    if (k.times || k.timed != out->expiry)
        problem(&k, "expiry rows that are not those of the keys", STR(""));
    return rc;
}
